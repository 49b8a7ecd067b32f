// SPDX-License-Identifier: GPL-2.0
/*
 * What reads of a file bring into the page cache beyond what they ask for, and
 * that programs and administrators have the last word on it.
 */
#include "../kselftest_harness.h"
#include "dio.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define PAGES	5120		/* of the file */
#define MAX_KIB	128		/* the largest window */
#define MAX	(MAX_KIB / 4)	/* in pages */
#define PAGE	4096L

/* Each test is a process of its own. */
static struct dio_target *target;
static unsigned char *map;	/* the whole file */
static int fd = -1;

FIXTURE(readahead) {
};

FIXTURE_VARIANT(readahead) {
	unsigned int block_size;
};

FIXTURE_VARIANT_ADD(readahead, ext2) { 4096 };
FIXTURE_VARIANT_ADD(readahead, bdev) { 0 };

static int largest_window(int kib)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/block/%s/queue/read_ahead_kb",
		 target->fs.disk.name);
	return dio_write_file(path, "%d", kib);
}

/* The file is made by the first test. */
static int make_file(void)
{
	void *buf = dio_alloc(MIB);
	int file = dio_target_open(target, O_RDWR | O_CREAT);
	off_t pos = lseek(file, 0, SEEK_END);

	while (pos >= 0 && pos < PAGES * PAGE) {
		if (pwrite(file, buf, MIB, pos) != MIB)
			break;
		pos += MIB;
	}
	munmap(buf, MIB);
	if (file < 0 || pos < PAGES * PAGE || fsync(file))
		return -1;
	return close(file);
}

/* Opens the file, nothing of which is cached, and maps it. */
static int begin(void)
{
	if (fd >= 0)
		close(fd);
	fd = dio_target_open(target, O_RDONLY);
	if (fd < 0 || dio_drop_caches())
		return -1;
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? -1 : 0;
}

FIXTURE_SETUP(readahead)
{
	target = dio_target(512, variant->block_size);
	if (target->state < 0)
		SKIP(return, "%s", target->why);
	ASSERT_EQ(0, make_file());
	ASSERT_EQ(0, largest_window(MAX_KIB));
	ASSERT_EQ(0, begin());
}

FIXTURE_TEARDOWN(readahead)
{
	if (target->state == 1)
		largest_window(MAX_KIB);
}

/* Number of pages that are cached, of COUNT */
static int cached(int page, int count)
{
	unsigned char vec[PAGES];
	int i, nr = 0;

	if (mincore(map + page * PAGE, count * PAGE, vec))
		return -1;
	for (i = 0; i < count; i++)
		nr += vec[i] & 1;
	return nr;
}

static bool get(int page)
{
	static char buf[PAGE];

	return pread(fd, buf, PAGE, page * PAGE) == PAGE;
}

/* Reads pages one by one; returns how many were cached beyond one, at most. */
static int most_ahead(int page, int count)
{
	int most = 0, ahead;

	for (; count--; page++) {
		if (!get(page))
			return -1;
		ahead = cached(page + 1, 4 * MAX);
		if (ahead > most)
			most = ahead;
	}
	return most;
}

/* Requests that the disk has read */
static long requests(void)
{
	return dio_read_long("/sys/block/%s/stat", target->fs.disk.name);
}

/* ---- patterns ---- */

TEST_F(readahead, sequential)
{
	EXPECT_LT(MAX, most_ahead(0, 128));
	/* One window is read by the program, the next one is ready. */
	EXPECT_GE(2 * MAX, most_ahead(128, 128));
	EXPECT_GE(256 + 2 * MAX, cached(0, PAGES));
}

TEST_F(readahead, two_streams_through_one_descriptor)
{
	int i;

	for (i = 0; i < 256; i++) {
		ASSERT_TRUE(get(1000 + i));
		ASSERT_TRUE(get(3000 + i));
	}
	EXPECT_LE(MAX / 2, cached(1000 + i, 2 * MAX));
	EXPECT_LE(MAX / 2, cached(3000 + i, 2 * MAX));
	EXPECT_GE(2 * (i + 2 * MAX), cached(0, PAGES));
}

TEST_F(readahead, backward)
{
	int page = 2000;

	while (page > 1900)
		ASSERT_TRUE(get(page--));
	EXPECT_LE(MAX / 2, cached(page - 2 * MAX, 2 * MAX));
	/* Not a page above where the reader began */
	EXPECT_EQ(0, cached(2001, 2 * MAX));
}

TEST_F(readahead, stride_leaves_the_holes)
{
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_TRUE(get(1000 + 16 * i));
	EXPECT_EQ(1, cached(1000 + 16 * i, 1));
	EXPECT_EQ(0, cached(1001, 15));
	EXPECT_EQ(0, cached(1001 + 16 * i, 15));
}

TEST_F(readahead, random_reads_get_what_they_ask_for)
{
	unsigned int x = 1;
	int i, read = 0;

	for (i = 0; i < 200; i++) {
		int page = (x = x * 1103515245 + 12345) / 65536 % PAGES;

		read += !cached(page, 1);
		ASSERT_TRUE(get(page));
	}
	EXPECT_EQ(read, cached(0, PAGES));
}

TEST_F(readahead, a_read_elsewhere_keeps_the_window)
{
	long before;
	int i;

	ASSERT_LT(MAX, most_ahead(0, 128));
	before = requests();
	for (i = 0; i < 64; i++) {
		ASSERT_TRUE(get(128 + i));
		ASSERT_TRUE(get(3000 + 67 * (i * 7 % 31)));
	}
	/* 31 places elsewhere; two windows here, of two requests or more */
	EXPECT_GE(31 + 12, requests() - before);
	EXPECT_LE(MAX / 2, cached(128 + i, 2 * MAX));
}

TEST_F(readahead, cached_pages_cost_no_request)
{
	long before;
	int i, all;

	most_ahead(0, 256);
	all = cached(0, PAGES);
	before = requests();
	for (i = 0; i < 200; i++)
		ASSERT_TRUE(get(i * 7 % 256));
	EXPECT_EQ(before, requests());
	EXPECT_EQ(all, cached(0, PAGES));
}

TEST_F(readahead, up_to_the_end)
{
	int end = lseek(fd, 0, SEEK_END) / PAGE;
	int page;

	for (page = end - 100; page < end; page++)
		ASSERT_TRUE(get(page));
	EXPECT_FALSE(get(end));
	EXPECT_FALSE(get(end + 1000));
}

TEST_F(readahead, large_folios)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int flags = open("/proc/kpageflags", O_RDONLY);
	__u64 pfn, flag, compound = 0;
	struct utsname u;
	int i;

	if (variant->block_size)
		SKIP(return, "ext2 has no large folios");
	uname(&u);
	if (strtod(u.release, NULL) < 6.14)
		SKIP(return, "before 6.14 block devices had no large folios");
	most_ahead(0, 256);
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(0, map[i * PAGE]);
		ASSERT_EQ(8, pread(pagemap, &pfn, 8,
				   ((long)map / PAGE + i) * 8));
		ASSERT_EQ(8, pread(flags, &flag, 8, (pfn & ((1UL << 55) - 1)) * 8));
		compound += flag >> 15 & 3;	/* KPF_COMPOUND_HEAD, _TAIL */
	}
	EXPECT_LT(0UL, compound);
}

/* ---- memory that is short ---- */

TEST_F(readahead, pages_thrown_out_unread_shrink_the_window)
{
	ASSERT_LT(MAX, most_ahead(0, 256));
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	ASSERT_EQ(0, cached(256, 2 * MAX));
	EXPECT_GT(MAX + MAX / 2, most_ahead(256, MAX));
	/* It is not held against the reader for long. */
	EXPECT_LT(MAX + MAX / 2, most_ahead(256 + MAX, 20 * MAX));
}

/* Reads all of the file and tells how many requests that took. */
static long requests_of_all(void)
{
	long before;
	int page;

	if (begin())
		return -1;
	before = requests();
	for (page = 0; page < PAGES; page++)
		if (!get(page))
			return -1;
	return requests() - before;
}

static int enter_group(const char *dir, const char *max)
{
	char path[96];
	int err;

	err = dio_write_file("/sys/fs/cgroup/cgroup.subtree_control",
			     "+memory");
	if (err || (mkdir(dir, 0700) && errno != EEXIST))
		return -1;
	snprintf(path, sizeof(path), "%s/memory.max", dir);
	if (dio_write_file(path, "%s", max))
		return -1;
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return dio_write_file(path, "%d", getpid());
}

static int leave_group(const char *dir)
{
	int err = dio_write_file("/sys/fs/cgroup/cgroup.procs", "%d", getpid());

	return rmdir(dir) ?: err;
}

TEST_F(readahead, file_larger_than_memory_keeps_its_rate)
{
	static const char group[] = "/sys/fs/cgroup/readahead";
	long roomy, tight;

	roomy = requests_of_all();
	ASSERT_LT(0, roomy);
	if (enter_group(group, "8M"))
		SKIP(return, "no control group with a limit: %s", dio_why());
	tight = requests_of_all();
	EXPECT_EQ(0, leave_group(group));
	/* The file is more than twice what the group may have. */
	EXPECT_GT(PAGES / 2, cached(0, PAGES));
	EXPECT_LT(0, tight);
	EXPECT_GE(roomy + roomy / 8, tight);
}

/* ---- what is asked for ---- */

TEST_F(readahead, fadvise_random)
{
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
	EXPECT_EQ(0, most_ahead(0, 64));
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL));
	EXPECT_LT(MAX, most_ahead(64, 128));
}

TEST_F(readahead, fadvise_sequential)
{
	int most;

	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
	most = most_ahead(0, 512);
	EXPECT_LT(2 * MAX, most);
	EXPECT_GE(4 * MAX, most);
}

TEST_F(readahead, fadvise_willneed_and_readahead)
{
	int i;

	most_ahead(0, 100);
	for (i = 0; i < 2; i++) {
		int page = 2000 + 1000 * i;
		int err;

		err = i ? readahead(fd, page * PAGE, 20 * PAGE) :
			  posix_fadvise(fd, page * PAGE, 20 * PAGE,
					POSIX_FADV_WILLNEED);
		ASSERT_EQ(0, err);
		EXPECT_EQ(20, cached(page, 20));
		EXPECT_EQ(0, cached(page + 20, 100));
		EXPECT_EQ(0, cached(page - 100, 100));
		/* The window of the reads is what it was. */
		EXPECT_LT(MAX, most_ahead(100 + 100 * i, 100));
	}
}

TEST_F(readahead, read_ahead_kb)
{
	ASSERT_EQ(0, largest_window(0));
	ASSERT_EQ(0, begin());
	EXPECT_EQ(0, most_ahead(0, 64));
	ASSERT_EQ(0, largest_window(32));
	ASSERT_EQ(0, begin());
	EXPECT_GE(2 * 8, most_ahead(0, 128));
	EXPECT_LE(8, most_ahead(128, 128));
}

TEST_F(readahead, blkraset)
{
	int disk = open(target->fs.disk.path, O_RDONLY);

	ASSERT_LE(0, disk);
	ASSERT_EQ(0, ioctl(disk, BLKRASET, 64));
	close(disk);
	EXPECT_EQ(32, dio_disk_queue(&target->fs.disk, "read_ahead_kb"));
	ASSERT_EQ(0, begin());
	EXPECT_GE(2 * 8, most_ahead(0, 128));
}

TEST_F(readahead, direct_reads_bring_nothing_in)
{
	int direct = dio_target_open(target, O_RDONLY | O_DIRECT);
	char *buf = dio_alloc(PAGE);
	int i;

	ASSERT_LE(0, direct);
	for (i = 0; i < 64; i++)
		ASSERT_EQ(PAGE, pread(direct, buf, PAGE, (1000 + i) * PAGE));
	EXPECT_EQ(0, cached(1000, 64 + 2 * MAX));
}

TEST_F(readahead, nowait_brings_in_what_it_could_not_have)
{
	char *buf = dio_alloc(PAGE);
	struct iovec iov = { buf, PAGE };
	double end = dio_now() + 20;
	ssize_t n;

	if (variant->block_size)
		SKIP(return, "the base's ext2 does not know RWF_NOWAIT");
	do {
		n = preadv2(fd, &iov, 1, 0, RWF_NOWAIT);
	} while (n < 0 && errno == EAGAIN && dio_now() < end);
	EXPECT_EQ(PAGE, n);
	EXPECT_LT(1, cached(0, MAX));
}

/* ---- mappings ---- */

/* The file is all zeroes. */
static int touch(int page)
{
	return map[page * PAGE];
}

TEST_F(readahead, fault_reads_around)
{
	EXPECT_EQ(0, touch(2000));
	EXPECT_LT(4, cached(2000 - MAX, MAX));
	EXPECT_LT(4, cached(2001, MAX));
	EXPECT_GE(MAX + 1, cached(0, PAGES));
}

TEST_F(readahead, fault_after_madvise_random)
{
	ASSERT_EQ(0, madvise(map, PAGES * PAGE, MADV_RANDOM));
	EXPECT_EQ(0, touch(2000));
	EXPECT_EQ(1, cached(0, PAGES));
}

TEST_F(readahead, fault_after_madvise_sequential)
{
	int page;

	ASSERT_EQ(0, madvise(map, PAGES * PAGE, MADV_SEQUENTIAL));
	EXPECT_EQ(0, touch(2000));
	EXPECT_EQ(0, cached(0, 2000));
	EXPECT_LE(MAX, cached(2000, MAX));
	for (page = 2000; page < 2256; page++)
		ASSERT_EQ(0, touch(page));
	EXPECT_GE(256 + 2 * MAX, cached(2000, PAGES - 2000));
}

TEST_F(readahead, madvise_willneed)
{
	double end = dio_now() + 20;

	ASSERT_EQ(0, madvise(map + 2000 * PAGE, 20 * PAGE, MADV_WILLNEED));
	while (cached(2000, 20) < 20 && dio_now() < end)
		usleep(1000);
	EXPECT_EQ(20, cached(0, PAGES));
}

TEST_F(readahead, fault_at_a_mark_reads_the_next_window)
{
	int page;

	for (page = 2000; page < 2000 + 4 * MAX; page++)
		ASSERT_EQ(0, touch(page));
	EXPECT_LE(4, cached(page, 2 * MAX));
}

TEST_HARNESS_MAIN
