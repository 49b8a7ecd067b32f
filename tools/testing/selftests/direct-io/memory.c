// SPDX-License-Identifier: GPL-2.0
/*
 * The caller's memory: pages that are not there, that may not be written, huge
 * pages, mappings of files, memory that is shared, forked or never touched.
 */
#include "../kselftest_harness.h"
#include "dio.h"
#include "fixture-any.h"

#include <sys/wait.h>

#define PAGES 8
#define SIZE (PAGES * 4096)
#define BY(m) TH_LOG("by %s", dio_method_name(m))

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static int open_with(struct dio_target *t, size_t len, __u32 seed)
{
	int fd = dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC);
	void *buf = dio_alloc(len);

	dio_fill(buf, len, 0, seed);
	if (fd < 0 || pwrite(fd, buf, len, 0) != (ssize_t)len || fsync(fd))
		return -1;
	close(fd);
	munmap(buf, len);
	return dio_target_open(t, O_RDWR | O_DIRECT);
}

/* Memory whose page @bad has protection @prot, or is not mapped (-1). */
static unsigned char *alloc_bad(int bad, int prot, size_t shift, __u32 seed)
{
	unsigned char *buf = dio_alloc(SIZE + 4096);

	dio_fill(buf + shift, SIZE, 0, seed);
	if (prot < 0)
		munmap(buf + bad * 4096, 4096);
	else
		mprotect(buf + bad * 4096, 4096, prot);
	return buf;
}

/* What can be transferred before page @bad: whole sectors. */
static ssize_t before(int bad, size_t shift, unsigned int lbs)
{
	size_t len = bad ? (bad * 4096 - shift) / lbs * lbs : 0;

	return len ? (ssize_t)len : -EFAULT;
}

static bool can_fail(enum dio_method m)
{
	/* Registering bad memory fails by itself. */
	return m != DIO_URING_FIXED;
}

TEST_F(any, read_into_a_missing_page)
{
	enum dio_method m;
	unsigned char *buf;
	ssize_t want;
	int fd, bad;

	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		for (bad = 0; bad < PAGES && can_fail(m); bad++) {
			want = before(bad, 0, self->lbs);
			buf = alloc_bad(bad, -1, 0, 2);
			EXPECT_EQ(want, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) {
				BY(m);
				TH_LOG("page %d", bad);
			}
			if (want > 0)
				EXPECT_EQ(-1, dio_differs(buf, want, 0, 1))
					BY(m);
			munmap(buf, SIZE + 4096);
		}
	}
}

TEST_F(any, read_into_a_read_only_page)
{
	enum dio_method m;
	unsigned char *buf;
	ssize_t want;
	int fd, bad;

	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		for (bad = 0; bad < PAGES && can_fail(m); bad++) {
			want = before(bad, 0, self->lbs);
			buf = alloc_bad(bad, PROT_READ, 0, 2);
			EXPECT_EQ(want, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) {
				BY(m);
				TH_LOG("page %d", bad);
			}
			if (want > 0)
				EXPECT_EQ(-1, dio_differs(buf, want, 0, 1))
					BY(m);
			/* Not a byte of it changed. */
			EXPECT_EQ(-1, dio_differs(buf + bad * 4096, 4096,
						  bad * 4096, 2)) BY(m);
			munmap(buf, SIZE + 4096);
		}
	}
}

TEST_F(any, write_from_a_missing_page)
{
	unsigned char *buf, *all = dio_alloc(SIZE);
	enum dio_method m;
	ssize_t want, got;
	int fd, bad;

	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		for (bad = 0; bad < PAGES && can_fail(m); bad++) {
			fd = open_with(self->t, SIZE, 1);
			ASSERT_LE(0, fd);
			if (!dio_can_or_close(m, fd))
				break;
			want = before(bad, 0, self->lbs);
			buf = alloc_bad(bad, -1, 0, 2);
			EXPECT_EQ(want, dio_rw(m, DIO_WRITE, fd, buf, SIZE, 0)) {
				BY(m);
				TH_LOG("page %d", bad);
			}
			got = want > 0 ? want : 0;
			ASSERT_EQ(SIZE, pread(fd, all, SIZE, 0));
			EXPECT_EQ(-1, dio_differs(all, got, 0, 2)) BY(m);
			EXPECT_EQ(-1, dio_differs(all + got, SIZE - got, got, 1))
				BY(m);
			munmap(buf, SIZE + 4096);
			close(fd);
		}
	}
}

/*
 * The bad page begins in the middle of a sector on a 4096-byte disk. Whole
 * sectors go; a device falls back to the page cache, which may transfer what
 * is left before that page as well.
 */
TEST_F(any, missing_page_after_an_unaligned_start)
{
	unsigned char *buf, *all = dio_alloc(SIZE);
	ssize_t want, bytes, n;
	int fd, bad;

	for (bad = 0; bad < PAGES; bad++) {
		fd = open_with(self->t, SIZE, 1);
		ASSERT_LE(0, fd);
		want = before(bad, 512, self->lbs);
		bytes = before(bad, 512, 1);
		buf = alloc_bad(bad, -1, 512, 2);
		n = dio_rw(DIO_SYNC, DIO_WRITE, fd, buf + 512, SIZE, 0);
		EXPECT_TRUE(n == want || n == bytes)
			TH_LOG("page %d: %ld", bad, (long)n);
		if (n < 0)
			n = 0;
		ASSERT_EQ(SIZE, pread(fd, all, SIZE, 0));
		EXPECT_EQ(-1, dio_differs(all, n, 0, 2));
		EXPECT_EQ(-1, dio_differs(all + n, SIZE - n, n, 1));
		n = dio_rw(DIO_SYNC, DIO_READ, fd, buf + 512, SIZE, 0);
		EXPECT_TRUE(n == want || n == bytes)
			TH_LOG("page %d: %ld", bad, (long)n);
		munmap(buf, SIZE + 4096);
		close(fd);
	}
}

TEST_F(any, write_past_the_end_from_a_missing_page)
{
	unsigned char *buf, *all = dio_alloc(SIZE);
	ssize_t want;
	struct stat st;
	int fd, bad;

	if (!variant->block_size)
		SKIP(return, "a device does not grow");
	for (bad = 0; bad < PAGES; bad++) {
		fd = dio_target_open(self->t,
				     O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
		want = before(bad, 0, self->lbs);
		buf = alloc_bad(bad, -1, 0, 2);
		EXPECT_EQ(want, dio_rw(DIO_SYNC, DIO_WRITE, fd, buf, SIZE, 0));
		ASSERT_EQ(0, fstat(fd, &st));
		EXPECT_EQ(want > 0 ? want : 0, st.st_size);
		EXPECT_LE(st.st_blocks * 512, st.st_size + 4096);
		if (want > 0) {
			ASSERT_EQ(want, pread(fd, all, SIZE, 0));
			EXPECT_EQ(-1, dio_differs(all, want, 0, 2));
		}
		munmap(buf, SIZE + 4096);
		close(fd);
	}
}

TEST_F(any, write_from_a_read_only_page)
{
	unsigned char *buf, *all = dio_alloc(SIZE);
	enum dio_method m;
	int fd, bad;

	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		for (bad = 0; bad < PAGES && can_fail(m); bad += 3) {
			buf = alloc_bad(bad, PROT_READ, 0, 10 + bad);
			EXPECT_EQ(SIZE, dio_rw(m, DIO_WRITE, fd, buf, SIZE, 0))
				BY(m);
			ASSERT_EQ(SIZE, pread(fd, all, SIZE, 0));
			EXPECT_EQ(-1, dio_differs(all, SIZE, 0, 10 + bad)) BY(m);
			munmap(buf, SIZE + 4096);
		}
	}
}

TEST_F(any, no_access_at_all)
{
	enum dio_method m;
	unsigned char *buf;
	int fd;

	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	buf = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		if (!can_fail(m))
			continue;
		EXPECT_EQ(-EFAULT, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(-EFAULT, dio_rw(m, DIO_WRITE, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(-EFAULT, dio_rw(m, DIO_READ, fd, NULL, SIZE, 0)) BY(m);
	}
}

TEST_F(any, memory_never_touched)
{
	unsigned char *buf, *all = dio_alloc(SIZE);
	enum dio_method m;
	int fd;

	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT_EQ(SIZE, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 1)) BY(m);
		munmap(buf, SIZE);
	}
	/* Written, it is zeroes. */
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		memset(all, m + 1, SIZE);
		ASSERT_EQ(SIZE, pwrite(fd, all, SIZE, 0));
		buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT_EQ(SIZE, dio_rw(m, DIO_WRITE, fd, buf, SIZE, 0)) BY(m);
		ASSERT_EQ(SIZE, pread(fd, all, SIZE, 0));
		EXPECT_EQ(-1, dio_not_byte(all, SIZE, 0)) BY(m);
		munmap(buf, SIZE);
	}
}

TEST_F(any, reads_mark_the_pages_dirty)
{
	char name[] = "/tmp/diomemXXXXXX";
	unsigned char *map, *all = dio_alloc(SIZE);
	enum dio_method m;
	int fd, other;

	/* Memory that is a mapping of another file: it must get the data. */
	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	other = mkstemp(name);
	ASSERT_EQ(0, ftruncate(other, SIZE));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		memset(all, 0, SIZE);
		ASSERT_EQ(SIZE, pwrite(other, all, SIZE, 0));
		map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			   other, 0);
		EXPECT_EQ(SIZE, dio_rw(m, DIO_READ, fd, map, SIZE, 0)) BY(m);
		munmap(map, SIZE);
		ASSERT_EQ(0, dio_drop_caches());
		ASSERT_EQ(SIZE, pread(other, all, SIZE, 0));
		EXPECT_EQ(-1, dio_differs(all, SIZE, 0, 1)) BY(m);
	}
	unlink(name);
}

TEST_F(any, file_mapping_on_ext2_gets_the_data)
{
	struct dio_target *t = dio_target(512, 1024);
	unsigned char *map, *all = dio_alloc(SIZE);
	char path[96];
	int fd, other;

	if (t->state < 0)
		SKIP(return, "%s", t->why);
	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	snprintf(path, sizeof(path), "%s/mapped", t->fs.dir);
	other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ASSERT_EQ(0, ftruncate(other, SIZE));
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	EXPECT_EQ(SIZE, pread(fd, map, SIZE, 0));
	munmap(map, SIZE);
	ASSERT_EQ(0, fsync(other));
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(other, all, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(all, SIZE, 0, 1));
	close(other);
	unlink(path);
}

TEST_F(any, own_mapping_as_memory_does_not_hang)
{
	unsigned char *map, *all = dio_alloc(2 * SIZE);
	int fd, plain;
	ssize_t n;

	fd = open_with(self->t, 2 * SIZE, 1);
	ASSERT_LE(0, fd);
	plain = dio_target_open(self->t, O_RDWR);
	map = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
	ASSERT_NE(MAP_FAILED, (void *)map);
	/* Elsewhere in the file: plain copying. */
	EXPECT_EQ(SIZE, pwrite(fd, map, SIZE, SIZE));
	ASSERT_EQ(2 * SIZE, pread(plain, all, 2 * SIZE, 0));
	EXPECT_EQ(-1, dio_differs(all, SIZE, 0, 1));
	EXPECT_EQ(-1, dio_differs(all + SIZE, SIZE, 0, 1));
	/* Onto itself: any result, but one. */
	dio_fill(map, SIZE, 0, 2);
	n = pwrite(fd, map, SIZE, 0);
	EXPECT_TRUE(n == SIZE || n < 0);
	n = pread(fd, map, SIZE, 0);
	EXPECT_TRUE(n == SIZE || n < 0);
	munmap(map, 2 * SIZE);
	ASSERT_EQ(2 * SIZE, pread(plain, all, 2 * SIZE, 0));
	EXPECT_EQ(-1, dio_differs(all + SIZE, SIZE, 0, 1));
}

TEST_F(any, huge_pages)
{
	size_t len = 3 * MIB, huge = 2 * MIB;
	unsigned char *area, *buf;
	enum dio_method m;
	int fd;

	area = mmap(NULL, 4 * huge, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	buf = (void *)(((unsigned long)area + huge - 1) & ~(huge - 1));
	if (madvise(buf, 2 * huge, MADV_HUGEPAGE))
		SKIP(return, "no transparent huge pages");
	memset(buf, 1, 2 * huge);
	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* Across the edge of two, not from the start of a page. */
		dio_fill(buf + 512, len, 0, m);
		ASSERT_EQ((ssize_t)len,
			  dio_rw(m, DIO_WRITE, fd, buf + 512, len, 0)) BY(m);
		memset(buf, 0, 2 * huge);
		ASSERT_EQ((ssize_t)len,
			  dio_rw(m, DIO_READ, fd, buf + 512, len, 0)) BY(m);
		ASSERT_EQ(-1, dio_differs(buf + 512, len, 0, m)) BY(m);
		ASSERT_EQ(-1, dio_not_byte(buf, 512, 0));
	}
}

TEST_F(any, hugetlb_pages)
{
	size_t huge = 2 * MIB;
	unsigned char *buf;
	enum dio_method m;
	long had;
	int fd;

	had = dio_read_long("/proc/sys/vm/nr_hugepages");
	if (had < 0 || dio_write_file("/proc/sys/vm/nr_hugepages", "%ld",
				      had + 2))
		SKIP(return, "no hugetlb: %s", dio_why());
	buf = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (buf == MAP_FAILED) {
		dio_write_file("/proc/sys/vm/nr_hugepages", "%ld", had);
		SKIP(return, "no two huge pages free");
	}
	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf, 2 * huge, 0, m);
		EXPECT_EQ((ssize_t)(2 * huge),
			  dio_rw(m, DIO_WRITE, fd, buf, 2 * huge, 0)) BY(m);
		memset(buf, 0, 2 * huge);
		EXPECT_EQ((ssize_t)(2 * huge),
			  dio_rw(m, DIO_READ, fd, buf, 2 * huge, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, 2 * huge, 0, m)) BY(m);
	}
	munmap(buf, 2 * huge);
	dio_write_file("/proc/sys/vm/nr_hugepages", "%ld", had);
}

TEST_F(any, memory_shared_with_a_child_is_copied_first)
{
	unsigned char *buf = dio_alloc(SIZE);
	int fd, status, p[2];
	enum dio_method m;
	pid_t pid;
	char c;

	fd = open_with(self->t, SIZE, 1);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		if (!dio_can(m, fd))
			continue;
		memset(buf, 7, SIZE);
		ASSERT_EQ(0, pipe(p));
		pid = fork();
		if (!pid) {
			/* Parent has read into its copy: ours is as it was. */
			if (read(p[0], &c, 1) != 1)
				_exit(2);
			_exit(dio_not_byte(buf, SIZE, 7) >= 0);
		}
		EXPECT_EQ(SIZE, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 1)) BY(m);
		ASSERT_EQ(1, write(p[1], "x", 1));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status) BY(m);
		close(p[0]);
		close(p[1]);
	}
}

/* More pages than a BIO has room for, none next to another. */
TEST_F(any, three_megabytes_of_scattered_pages)
{
	unsigned int pages = 3 * MIB / 4096, i;
	unsigned char *buf, *src;
	enum dio_method m;
	int fd, mem;

	mem = memfd_create("pages", 0);
	ASSERT_EQ(0, ftruncate(mem, 3 * MIB));
	src = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	memset(src, 0, 3 * MIB);
	buf = dio_alloc(3 * MIB);
	for (i = 0; i < pages; i++)
		ASSERT_NE(MAP_FAILED,
			  mmap(buf + i * 4096, 4096, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, mem,
			       i * 37 % pages * 4096));
	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf, 3 * MIB, 0, m);
		ASSERT_EQ(3 * MIB,
			  dio_rw(m, DIO_WRITE, fd, buf, 3 * MIB, 0)) BY(m);
		memset(buf, 0, 3 * MIB);
		ASSERT_EQ(3 * MIB,
			  dio_rw(m, DIO_READ, fd, buf, 3 * MIB, 0)) BY(m);
		ASSERT_EQ(-1, dio_differs(buf, 3 * MIB, 0, m)) BY(m);
	}
}

TEST_F(any, filesystem_is_clean_afterwards)
{
	if (!variant->block_size)
		SKIP(return, "no filesystem");
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
}

TEST_HARNESS_MAIN
