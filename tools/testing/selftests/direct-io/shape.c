// SPDX-License-Identifier: GPL-2.0
/*
 * What reaches the disk: how many BIOs of what size, and the flags on them.
 * Seen through the block layer's tracepoints.
 */
#include "../kselftest_harness.h"
#include "dio.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define MAX_BIOS 4096

/* A disk, with an ext2 or without, and the events seen there. */
struct traced {
	struct dio_fs fs;
	struct dio_bio *bio;
	int nr;
};

static int traced_create(struct traced *t)
{
	int err;

	t->fs.disk.poll_queues = 1;
	err = dio_fs_create(&t->fs);
	t->bio = mmap(NULL, MAX_BIOS * sizeof(*t->bio), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return err;
}

FIXTURE(shape) {
	struct traced t;
};

FIXTURE_VARIANT(shape) {
	unsigned int lbs;
	unsigned int block_size;
};

FIXTURE_VARIANT_ADD(shape, bdev_512) { 512, 0 };
FIXTURE_VARIANT_ADD(shape, bdev_4096) { 4096, 0 };
FIXTURE_VARIANT_ADD(shape, ext2_1k) { 512, 1024 };
FIXTURE_VARIANT_ADD(shape, ext2_4k) { 4096, 4096 };

FIXTURE_SETUP(shape)
{
	char path[96];

	self->t.fs.disk.lbs = variant->lbs;
	self->t.fs.disk.max_sectors = 8192;
	self->t.fs.block_size = variant->block_size;
	if (traced_create(&self->t))
		SKIP(return, "%s", dio_why());
	/* One request takes 4 MiB, so that the queue splits nothing. */
	snprintf(path, sizeof(path), "/sys/block/%s/queue/max_sectors_kb",
		 self->t.fs.disk.name);
	ASSERT_EQ(0, dio_write_file(path, "4096")) TH_LOG("%s", dio_why());
}

FIXTURE_TEARDOWN_PARENT(shape)
{
	dio_fs_destroy(&self->t.fs);
}

static int open_on(struct traced *t, int flags)
{
	char path[96];

	if (!t->fs.block_size)
		return open(t->fs.disk.path, flags & ~O_CREAT);
	snprintf(path, sizeof(path), "%s/f", t->fs.dir);
	return open(path, flags, 0600);
}

/*
 * The file, all of its blocks allocated and its mapping in memory, so that a
 * request on it needs no other I/O.
 */
static int open_full(struct traced *t, size_t len)
{
	int fd = open_on(t, O_RDWR | O_CREAT | O_DIRECT);
	void *buf = dio_alloc(len);

	if (fd >= 0 && (pwrite(fd, buf, len, 0) != (ssize_t)len || fsync(fd)))
		fd = -1;
	if (fd >= 0 && pread(fd, buf, len, 0) != (ssize_t)len)
		fd = -1;
	munmap(buf, len);
	return fd;
}

/* Contiguous memory of at least 2 MiB, or NULL. */
static void *alloc_huge(void)
{
	unsigned long huge = 2 * MIB;
	char *area, *buf;

	area = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	buf = (void *)(((unsigned long)area + huge - 1) & ~(huge - 1));
	if (madvise(buf, huge, MADV_HUGEPAGE))
		return NULL;
	memset(buf, 1, huge);
	return buf;
}

/* Is the range one transparent huge page now? The kernel may have had none. */
static bool is_huge(void *buf)
{
	char line[256];
	unsigned long start, end, kb;
	bool in = false, huge = false;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			in = start <= (unsigned long)buf &&
			     end > (unsigned long)buf;
		else if (in && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			huge = kb >= 2048;
	}
	if (f)
		fclose(f);
	return huge;
}

/* Of the events, only BIOs of one direction. */
static int bios(struct traced *t, char dir, struct dio_bio *out)
{
	int i, nr = 0;

	for (i = 0; i < t->nr && i < MAX_BIOS; i++)
		if (!strcmp(t->bio[i].event, "bio_queue") &&
		    strchr(t->bio[i].rwbs, dir))
			out[nr++] = t->bio[i];
	return nr;
}

/* Do @what and keep what came to the disk meanwhile in @t. */
#define TRACED(t, what) do {						\
	struct traced *__t = (t);					\
									\
	ASSERT_EQ(0, dio_trace_start(__t->fs.disk.path))		\
		TH_LOG("%s", dio_why());				\
	what;								\
	__t->nr = dio_trace_stop(__t->bio, MAX_BIOS);			\
	ASSERT_LE(0, __t->nr) TH_LOG("%s", dio_why());			\
} while (0)

/* How many pieces of the disk the file's first @len bytes are. */
static int extents(struct traced *t, int fd, size_t len)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extent[256];
	} f = { .map = { .fm_length = len, .fm_extent_count = 256 } };
	unsigned int i;
	int nr = 1;

	if (!t->fs.block_size)
		return 1;
	if (ioctl(fd, FS_IOC_FIEMAP, &f.map))
		return -1;
	for (i = 1; i < f.map.fm_mapped_extents; i++)
		if (f.extent[i].fe_physical != f.extent[i - 1].fe_physical +
					       f.extent[i - 1].fe_length)
			nr++;
	return nr;
}

TEST_F(shape, one_sector_is_one_bio)
{
	struct dio_bio bio[8];
	enum dio_method m;
	void *buf = dio_alloc(4096);
	int fd;

	fd = open_full(&self->t, 65536);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		TRACED(&self->t, dio_rw(m, DIO_READ, fd, buf, variant->lbs, 4096));
		ASSERT_EQ(1, bios(&self->t, 'R', bio)) TH_LOG("%d events", self->t.nr);
		EXPECT_EQ(variant->lbs / 512, bio[0].sectors);
		TRACED(&self->t, dio_rw(m, DIO_WRITE, fd, buf, variant->lbs, 4096));
		ASSERT_EQ(1, bios(&self->t, 'W', bio)) TH_LOG("%d events", self->t.nr);
		EXPECT_EQ(variant->lbs / 512, bio[0].sectors);
	}
}

TEST_F(shape, huge_page_is_one_bio_per_extent)
{
	struct dio_bio *bio = calloc(MAX_BIOS, sizeof(*bio));
	unsigned int sectors;
	enum dio_method m;
	void *buf;
	int fd, i, nr, want;

	buf = alloc_huge();
	if (!buf || !is_huge(buf))
		SKIP(return, "no transparent huge page to be had");
	fd = open_full(&self->t, 2 * MIB);
	ASSERT_LE(0, fd);
	want = extents(&self->t, fd, 2 * MIB);
	ASSERT_LT(0, want);
	/* ext2 asks to submit before it reads an indirect block. */
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		if (m == DIO_VEC)
			continue;
		TRACED(&self->t, dio_rw(m, DIO_READ, fd, buf, 2 * MIB, 0));
		nr = bios(&self->t, 'R', bio);
		if (!variant->block_size)
			EXPECT_EQ(1, nr) TH_LOG("by %s", dio_method_name(m));
		EXPECT_LE(want, nr);
		EXPECT_GE(want + (variant->block_size == 1024 ? 8 : 2), nr)
			TH_LOG("by %s: %d extents", dio_method_name(m), want);
		for (sectors = 0, i = 0; i < nr; i++)
			sectors += bio[i].sectors;
		EXPECT_EQ(4096U, sectors);
		TRACED(&self->t, dio_rw(m, DIO_WRITE, fd, buf, 2 * MIB, 0));
		nr = bios(&self->t, 'W', bio);
		if (!variant->block_size)
			EXPECT_EQ(1, nr) TH_LOG("by %s", dio_method_name(m));
		EXPECT_GE(want + (variant->block_size == 1024 ? 8 : 2), nr)
			TH_LOG("by %s: %d extents", dio_method_name(m), want);
	}
}

TEST_F(shape, scattered_pages_fill_each_bio)
{
	struct dio_bio *bio = calloc(MAX_BIOS, sizeof(*bio));
	int pages = 3 * MIB / 4096, i, fd, mem, nr;
	unsigned char *buf, *all;

	if (variant->block_size)
		SKIP(return, "the extents of a file come into it");
	mem = memfd_create("pages", 0);
	ASSERT_EQ(0, ftruncate(mem, 3 * MIB));
	all = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	memset(all, 1, 3 * MIB);
	buf = dio_alloc(3 * MIB);
	for (i = 0; i < pages; i++)
		ASSERT_NE(MAP_FAILED,
			  mmap(buf + i * 4096, 4096, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, mem,
			       i * 37 % pages * 4096L));
	fd = open_full(&self->t, 3 * MIB);
	ASSERT_LE(0, fd);
	/* 256 pages a BIO at most; a few more than three are no harm. */
	TRACED(&self->t, ASSERT_EQ(3 * MIB, pread(fd, buf, 3 * MIB, 0)));
	nr = bios(&self->t, 'R', bio);
	EXPECT_LE(3, nr);
	EXPECT_GE(4, nr);
	TRACED(&self->t, ASSERT_EQ(3 * MIB, pwrite(fd, buf, 3 * MIB, 0)));
	nr = bios(&self->t, 'W', bio);
	EXPECT_LE(3, nr);
	EXPECT_GE(4, nr);
}

TEST_F(shape, sectors_cover_the_range_once)
{
	struct dio_bio *bio = calloc(MAX_BIOS, sizeof(*bio));
	unsigned long long next = 2048;
	void *buf = dio_alloc(4 * MIB);
	int fd, i, nr;

	if (variant->block_size)
		SKIP(return, "a file's place on the disk comes into it");
	fd = open_full(&self->t, 8 * MIB);
	ASSERT_LE(0, fd);
	TRACED(&self->t, ASSERT_EQ(4 * MIB, pwrite(fd, buf, 4 * MIB, MIB)));
	nr = bios(&self->t, 'W', bio);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(next, bio[i].sector);
		next += bio[i].sectors;
	}
	EXPECT_EQ(2048ULL + 8192, next);
}

/* The last write or flush that went to the disk. */
static struct dio_bio *last_issued(struct traced *t)
{
	struct dio_bio *last = NULL;
	int i;

	for (i = 0; i < t->nr && i < MAX_BIOS; i++)
		if (!strcmp(t->bio[i].event, "rq_issue") &&
		    t->bio[i].rwbs[0] != 'R')
			last = &t->bio[i];
	return last;
}

/* 'F' before the operation's letter is a flush, after it FUA. */
static bool is_durable(const struct dio_bio *bio)
{
	return bio && strchr(bio->rwbs, 'F');
}

/* Disks with a volatile cache, with and without FUA. */
FIXTURE(sync) {
	struct traced t;
};

FIXTURE_VARIANT(sync) {
	unsigned int block_size;
	bool fua;
};

FIXTURE_VARIANT_ADD(sync, bdev_with_fua) { 0, true };
FIXTURE_VARIANT_ADD(sync, bdev_without_fua) { 0, false };
FIXTURE_VARIANT_ADD(sync, ext2_with_fua) { 4096, true };
FIXTURE_VARIANT_ADD(sync, ext2_without_fua) { 4096, false };

FIXTURE_SETUP(sync)
{
	self->t.fs.disk.cache_mib = 16;
	self->t.fs.disk.fua = variant->fua;
	self->t.fs.block_size = variant->block_size;
	if (traced_create(&self->t))
		SKIP(return, "%s", dio_why());
}

FIXTURE_TEARDOWN_PARENT(sync)
{
	dio_fs_destroy(&self->t.fs);
}

static void check_durable(struct __test_metadata *_metadata,
			  struct traced *t, int flag, bool extend)
{
	void *buf = dio_alloc(65536);
	struct dio_bio *last;
	enum dio_method m;
	int fd, i;

	fd = open_full(t, 65536);
	ASSERT_LE(0, fd);
	close(fd);
	fd = open_on(t, O_RDWR | O_DIRECT | flag);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		for (i = 0; i < 2; i++) {
			off_t pos = extend ? lseek(fd, 0, SEEK_END) : 8192 * i;
			ssize_t len = 8192 << i, n;

			TRACED(t, n = dio_rw(m, DIO_WRITE, fd, buf, len, pos));
			ASSERT_EQ(len, n);
			last = last_issued(t);
			ASSERT_NE(NULL, last);
			EXPECT_TRUE(is_durable(last))
				TH_LOG("by %s: last was %s",
				       dio_method_name(m), last->rwbs);
		}
	}
}

TEST_F(sync, o_dsync_overwrite_is_durable_on_return)
{
	check_durable(_metadata, &self->t, O_DSYNC, false);
}

TEST_F(sync, o_sync_overwrite_is_durable_on_return)
{
	check_durable(_metadata, &self->t, O_SYNC, false);
}

TEST_F(sync, o_dsync_append_is_durable_on_return)
{
	if (!variant->block_size)
		SKIP(return, "a device does not grow");
	check_durable(_metadata, &self->t, O_DSYNC, true);
}

TEST_F(sync, o_sync_append_is_durable_on_return)
{
	if (!variant->block_size)
		SKIP(return, "a device does not grow");
	check_durable(_metadata, &self->t, O_SYNC, true);
}

TEST_F(sync, rwf_dsync_is_durable_on_return)
{
	void *buf = dio_alloc(65536);
	struct iovec iov = { buf, 8192 };
	int fd;

	fd = open_full(&self->t, 65536);
	ASSERT_LE(0, fd);
	TRACED(&self->t, ASSERT_EQ(8192, pwritev2(fd, &iov, 1, 0, RWF_DSYNC)));
	EXPECT_TRUE(is_durable(last_issued(&self->t)));
}

TEST_F(sync, dsync_overwrite_needs_no_flush_where_there_is_fua)
{
	void *buf = dio_alloc(65536);
	int fd, i, fua = 0;

	if (!variant->fua)
		SKIP(return, "the disk has no FUA");
	fd = open_full(&self->t, 65536);
	ASSERT_LE(0, fd);
	close(fd);
	fd = open_on(&self->t, O_RDWR | O_DIRECT | O_DSYNC);
	TRACED(&self->t, ASSERT_EQ(8192, pwrite(fd, buf, 8192, 0)));
	for (i = 0; i < self->t.nr; i++)
		if (!strcmp(self->t.bio[i].event, "rq_issue") &&
		    !strncmp(self->t.bio[i].rwbs, "WF", 2))
			fua++;
	EXPECT_EQ(1, fua);
}

TEST_F(sync, plain_write_flushes_nothing)
{
	void *buf = dio_alloc(65536);
	int fd, i;

	fd = open_full(&self->t, 65536);
	ASSERT_LE(0, fd);
	TRACED(&self->t, ASSERT_EQ(8192, pwrite(fd, buf, 8192, 0)));
	ASSERT_LT(0, self->t.nr);
	for (i = 0; i < self->t.nr; i++)
		EXPECT_FALSE(is_durable(&self->t.bio[i]))
			TH_LOG("%s", self->t.bio[i].rwbs);
}

/* An append's data goes out before the inode that makes it part of the file. */
TEST_F(sync, appended_data_goes_before_the_inode)
{
	void *buf = dio_alloc(65536);
	int fd, i, data = -1, other = -1;

	if (!variant->block_size)
		SKIP(return, "a device does not grow");
	fd = open_on(&self->t, O_RDWR | O_CREAT | O_DIRECT | O_DSYNC);
	TRACED(&self->t, ASSERT_EQ(65536, pwrite(fd, buf, 65536, 0)));
	for (i = 0; i < self->t.nr; i++) {
		if (strcmp(self->t.bio[i].event, "rq_issue") ||
		    self->t.bio[i].rwbs[0] != 'W')
			continue;
		if (self->t.bio[i].sectors >= 16 && data < 0)
			data = i;
		else
			other = i;
	}
	EXPECT_LE(0, data);
	EXPECT_LT(data, other);
}

TEST_F(shape, io_priority_reaches_the_request)
{
	void *buf = dio_alloc(65536);
	bool seen = false;
	int fd, i;

	fd = open_full(&self->t, 65536);
	ASSERT_LE(0, fd);
	/* IOPRIO_WHO_PROCESS, class "best effort", level 1 */
	ASSERT_EQ(0, syscall(__NR_ioprio_set, 1, 0, 2 << 13 | 1));
	TRACED(&self->t, ASSERT_EQ(8192, pwrite(fd, buf, 8192, 0)));
	for (i = 0; i < self->t.nr; i++) {
		if (strcmp(self->t.bio[i].event, "rq_issue"))
			continue;
		if (!self->t.bio[i].ioprio[0])
			SKIP(return, "the tracepoint does not print priority");
		seen = !strcmp(self->t.bio[i].ioprio, "be");
	}
	EXPECT_TRUE(seen);
}

TEST_F(shape, write_life_hint_accepted)
{
	void *buf = dio_alloc(65536);
	__u64 hint = RWH_WRITE_LIFE_SHORT;
	int fd;

	fd = open_full(&self->t, 65536);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fcntl(fd, F_SET_RW_HINT, &hint))
		TH_LOG("%s", strerror(errno));
	dio_fill(buf, 65536, 0, 1);
	EXPECT_EQ(65536, pwrite(fd, buf, 65536, 0));
	memset(buf, 0, 65536);
	EXPECT_EQ(65536, pread(fd, buf, 65536, 0));
	EXPECT_EQ(-1, dio_differs(buf, 65536, 0, 1));
}

static long accounted(const char *name)
{
	char line[128];
	long n = -1;
	FILE *f = fopen("/proc/self/io", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			n = atol(line + strlen(name) + 1);
	if (f)
		fclose(f);
	return n;
}

TEST_F(shape, io_is_accounted_to_the_task)
{
	void *buf = dio_alloc(MIB);
	long r, w;
	int fd;

	fd = open_full(&self->t, MIB);
	ASSERT_LE(0, fd);
	r = accounted("read_bytes");
	if (r < 0)
		SKIP(return, "no /proc/self/io (CONFIG_TASK_IO_ACCOUNTING)");
	w = accounted("write_bytes");
	ASSERT_EQ(MIB, pread(fd, buf, MIB, 0));
	EXPECT_EQ(r + MIB, accounted("read_bytes"));
	EXPECT_EQ(w, accounted("write_bytes"));
	ASSERT_EQ(MIB, pwrite(fd, buf, MIB, 0));
	EXPECT_EQ(r + MIB, accounted("read_bytes"));
	EXPECT_EQ(w + MIB, accounted("write_bytes"));
}

TEST_HARNESS_MAIN
