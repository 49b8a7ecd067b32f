// SPDX-License-Identifier: GPL-2.0
/*
 * Disks that fail, fill up or go away; limits.
 */
#include "../kselftest_harness.h"
#include "dio.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define BY(m) TH_LOG("by %s", dio_method_name(m))

/* A disk of the test's own, for it will not be fit for another. */
FIXTURE(fault) {
	struct dio_fs fs;
	bool removed;
};

FIXTURE_VARIANT(fault) {
	unsigned int lbs;
	unsigned int block_size;
};

FIXTURE_VARIANT_ADD(fault, bdev_512) { 512, 0 };
FIXTURE_VARIANT_ADD(fault, bdev_4096) { 4096, 0 };
FIXTURE_VARIANT_ADD(fault, ext2_1k_on_512) { 512, 1024 };
FIXTURE_VARIANT_ADD(fault, ext2_2k_on_512) { 512, 2048 };
FIXTURE_VARIANT_ADD(fault, ext2_4k_on_512) { 512, 4096 };
FIXTURE_VARIANT_ADD(fault, ext2_4k_on_4096) { 4096, 4096 };

FIXTURE_SETUP(fault)
{
	self->fs.disk.lbs = variant->lbs;
	self->fs.disk.mib = 8;
	self->fs.disk.poll_queues = 1;
	self->fs.block_size = variant->block_size;
	if (dio_fs_create(&self->fs))
		SKIP(return, "%s", dio_why());
}

FIXTURE_TEARDOWN_PARENT(fault)
{
	dio_fs_destroy(&self->fs);
}

static int open_on(struct dio_fs *fs, int flags)
{
	char path[96];

	if (!fs->block_size)
		return open(fs->disk.path, flags & ~(O_CREAT | O_TRUNC));
	snprintf(path, sizeof(path), "%s/f", fs->dir);
	return open(path, flags, 0600);
}

/* The file holds pattern 1 and is known to the disk. */
static int open_full(struct dio_fs *fs, size_t len)
{
	int fd = open_on(fs, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	void *buf = dio_alloc(len);

	dio_fill(buf, len, 0, 1);
	if (fd >= 0 && (pwrite(fd, buf, len, 0) != (ssize_t)len || fsync(fd)))
		fd = -1;
	munmap(buf, len);
	return fd;
}

/*
 * The first byte of the disk where a file's data may be: the lowest block of a
 * file that takes all there is. The disk is one block group, so that nothing
 * but data and what maps it lies behind.
 */
static long long first_data(struct dio_fs *fs)
{
	int fd = open_on(fs, O_RDWR | O_CREAT | O_TRUNC);
	char *buf = calloc(1, MIB);
	long long where, least = -1;
	off_t pos, size;

	while (write(fd, buf, MIB) > 0)
		;
	free(buf);
	size = lseek(fd, 0, SEEK_END);
	for (pos = 0; pos < size; pos += fs->block_size) {
		where = dio_physical(fd, pos);
		if (where > 0 && (least < 0 || where < least))
			least = where;
	}
	if (ftruncate(fd, 0) || fsync(fd))
		least = -1;
	close(fd);
	return least;
}

/* Make @len bytes at @start of the disk good or bad. */
static int set_bad(struct dio_fs *fs, bool bad, long long start, size_t len)
{
	return dio_disk_set(&fs->disk, "badblocks", "%c%lld-%lld",
			    bad ? '+' : '-', start / 512,
			    (start + (long long)len) / 512 - 1);
}

static long free_blocks(struct dio_fs *fs)
{
	struct statfs st;

	return statfs(fs->dir, &st) ? -1 : (long)st.f_bfree;
}

/* e2fsck has the last word. */
static int check(struct dio_fs *fs)
{
	return fs->block_size ? dio_fs_check(fs) : 0;
}

TEST_F(fault, bad_sector_anywhere_in_a_request)
{
	unsigned int lbs = variant->lbs;
	void *buf = dio_alloc(MIB);
	enum dio_method m;
	long long where;
	off_t bad;
	int fd, i;

	fd = open_full(&self->fs, MIB);
	ASSERT_LE(0, fd);
	for (i = 0; i <= 8; i++) {
		bad = i < 8 ? i * 128 * KIB : MIB - lbs;
		where = dio_physical(fd, bad);
		ASSERT_LE(0, where) TH_LOG("%s", dio_why());
		ASSERT_EQ(0, set_bad(&self->fs, true, where, lbs))
			TH_LOG("%s", dio_why());
		for (m = DIO_SYNC; m < DIO_METHODS; m++) {
			if (m == DIO_URING_POLL)
				continue;
			EXPECT_EQ(-EIO, dio_rw(m, DIO_READ, fd, buf, MIB, 0)) {
				BY(m);
				TH_LOG("bad at %ld", (long)bad);
			}
			EXPECT_EQ(-EIO, dio_rw(m, DIO_WRITE, fd, buf, MIB, 0)) {
				BY(m);
				TH_LOG("bad at %ld", (long)bad);
			}
		}
		ASSERT_EQ(0, set_bad(&self->fs, false, where, lbs));
	}
	/* All well again, and nothing of the trouble stayed behind. */
	dio_fill(buf, MIB, 0, 2);
	EXPECT_EQ(MIB, pwrite(fd, buf, MIB, 0));
	memset(buf, 0, MIB);
	EXPECT_EQ(MIB, pread(fd, buf, MIB, 0));
	EXPECT_EQ(-1, dio_differs(buf, MIB, 0, 2));
	close(fd);
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, bad_sector_alone)
{
	unsigned int lbs = variant->lbs;
	void *buf = dio_alloc(MIB);
	enum dio_method m;
	long long where;
	int fd;

	fd = open_full(&self->fs, 128 * KIB);
	ASSERT_LE(0, fd);
	where = dio_physical(fd, 65536);
	ASSERT_EQ(0, set_bad(&self->fs, true, where, lbs));
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		if (!dio_can(m, fd))
			continue;
		EXPECT_EQ(-EIO, dio_rw(m, DIO_READ, fd, buf, lbs, 65536)) BY(m);
		EXPECT_EQ(-EIO, dio_rw(m, DIO_WRITE, fd, buf, lbs, 65536)) BY(m);
		/* Its neighbours are well. */
		EXPECT_EQ((ssize_t)lbs, dio_rw(m, DIO_READ, fd, buf, lbs,
					       65536 - lbs)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, lbs, 65536 - lbs, 1)) BY(m);
		EXPECT_EQ((ssize_t)lbs, dio_rw(m, DIO_READ, fd, buf, lbs,
					       65536 + lbs)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, lbs, 65536 + lbs, 1)) BY(m);
	}
	ASSERT_EQ(0, set_bad(&self->fs, false, where, lbs));
}

TEST_F(fault, nothing_stays_pinned_after_errors)
{
	long base, slack = 2 * 125 * sysconf(_SC_NPROCESSORS_ONLN);
	void *buf = dio_alloc(4 * MIB);
	enum dio_method m;
	long long where;
	int fd;

	if (dio_vmstat("nr_foll_pin_acquired") < 0)
		SKIP(return, "%s", dio_why());
	fd = open_full(&self->fs, 4 * MIB);
	ASSERT_LE(0, fd);
	where = dio_physical(fd, 2 * MIB);
	ASSERT_EQ(0, set_bad(&self->fs, true, where, variant->lbs));
	base = dio_vmstat("nr_foll_pin_acquired") -
	       dio_vmstat("nr_foll_pin_released");
	for (m = DIO_SYNC; m < DIO_URING_FIXED; m++)
		EXPECT_EQ(-EIO, dio_rw(m, DIO_READ, fd, buf, 4 * MIB, 0)) BY(m);
	EXPECT_GE(base + slack, dio_vmstat("nr_foll_pin_acquired") -
				dio_vmstat("nr_foll_pin_released"));
	ASSERT_EQ(0, set_bad(&self->fs, false, where, variant->lbs));
}

TEST_F(fault, failed_append_does_not_move_the_size)
{
	unsigned int bs = variant->block_size;
	void *buf = dio_alloc(64 * KIB);
	enum dio_method m;
	long long where;
	struct stat st;
	long before;
	int fd;

	if (!bs)
		SKIP(return, "a device does not grow");
	where = first_data(&self->fs);
	ASSERT_LT(0, where) TH_LOG("%s", dio_why());
	fd = open_on(&self->fs, O_RDWR | O_DIRECT);
	ASSERT_EQ(0, set_bad(&self->fs, true, where, 8 * MIB - where));
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		if (!dio_can(m, fd))
			continue;
		before = free_blocks(&self->fs);
		EXPECT_EQ(-EIO, dio_rw(m, DIO_WRITE, fd, buf, 8 * bs, 0)) BY(m);
		ASSERT_EQ(0, fstat(fd, &st));
		EXPECT_EQ(0, st.st_size) BY(m);
		EXPECT_EQ(0, st.st_blocks) BY(m);
		EXPECT_EQ(before, free_blocks(&self->fs)) BY(m);
	}
	ASSERT_EQ(0, set_bad(&self->fs, false, where, 8 * MIB - where));
	dio_fill(buf, 8 * bs, 0, 1);
	EXPECT_EQ((ssize_t)(8 * bs), pwrite(fd, buf, 8 * bs, 0));
	close(fd);
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, append_that_fails_half_way)
{
	unsigned int bs = variant->block_size;
	void *buf = dio_alloc(64 * KIB);
	long long where;
	struct stat st;
	int fd;

	if (!bs)
		SKIP(return, "a device does not grow");
	fd = open_full(&self->fs, 2 * bs);
	ASSERT_LE(0, fd);
	/* See where six blocks more go; from the fifth on, all is bad. */
	ASSERT_EQ((ssize_t)(6 * bs), pwrite(fd, buf, 6 * bs, 2 * bs));
	where = dio_physical(fd, 6 * bs);
	ASSERT_LT(0, where) TH_LOG("%s", dio_why());
	ASSERT_EQ(0, ftruncate(fd, 2 * bs));
	ASSERT_EQ(0, fsync(fd));
	ASSERT_EQ(0, set_bad(&self->fs, true, where, 8 * MIB - where));
	EXPECT_EQ(-EIO,
		  dio_rw(DIO_SYNC, DIO_WRITE, fd, buf, 6 * bs, 2 * bs));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_GE(6 * bs, st.st_size);
	EXPECT_LE(2 * bs, st.st_size);
	ASSERT_EQ(0, set_bad(&self->fs, false, where, 8 * MIB - where));
	/* What was there before is there. */
	ASSERT_EQ((ssize_t)(2 * bs), pread(fd, buf, 2 * bs, 0));
	EXPECT_EQ(-1, dio_differs(buf, 2 * bs, 0, 1));
	close(fd);
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, write_into_a_hole_that_fails)
{
	unsigned int bs = variant->block_size;
	void *buf = dio_alloc(64 * KIB);
	long long where;
	struct stat st;
	int fd;

	if (!bs)
		SKIP(return, "a device has no holes");
	where = first_data(&self->fs);
	ASSERT_LT(0, where) TH_LOG("%s", dio_why());
	fd = open_on(&self->fs, O_RDWR | O_DIRECT);
	ASSERT_EQ(0, ftruncate(fd, 10 * bs));
	ASSERT_EQ(0, fsync(fd));
	ASSERT_EQ(0, set_bad(&self->fs, true, where, 8 * MIB - where));
	EXPECT_EQ(-EIO, dio_rw(DIO_SYNC, DIO_WRITE, fd, buf, 4 * bs, 2 * bs));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(10 * bs, st.st_size);
	ASSERT_EQ(0, set_bad(&self->fs, false, where, 8 * MIB - where));
	close(fd);
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, mapping_that_cannot_be_read)
{
	unsigned int bs = variant->block_size;
	void *buf = dio_alloc(128 * KIB);
	long long last, first;
	ssize_t n;
	int fd;

	if (!bs)
		SKIP(return, "a device needs no mapping");
	fd = open_full(&self->fs, 24 * bs);
	ASSERT_LE(0, fd);
	last = dio_physical(fd, 11 * bs);
	first = dio_physical(fd, 12 * bs);
	if (first != last + 2 * bs)
		SKIP(return, "the indirect block is not where it should be");
	close(fd);
	ASSERT_EQ(0, dio_fs_remount(&self->fs)) TH_LOG("%s", dio_why());
	ASSERT_EQ(0, set_bad(&self->fs, true, last + bs, bs));
	fd = open_on(&self->fs, O_RDWR | O_DIRECT);
	EXPECT_EQ(-EIO, dio_rw(DIO_SYNC, DIO_READ, fd, buf, bs, 20 * bs));
	EXPECT_EQ(-EIO, dio_rw(DIO_SYNC, DIO_WRITE, fd, buf, bs, 20 * bs));
	/* Across: what comes before it, or the error. */
	n = dio_rw(DIO_SYNC, DIO_READ, fd, buf, 24 * bs, 0);
	EXPECT_TRUE(n == -EIO || n == (ssize_t)(12 * bs)) TH_LOG("%ld", (long)n);
	ASSERT_EQ(0, set_bad(&self->fs, false, last + bs, bs));
	EXPECT_EQ((ssize_t)(24 * bs),
		  dio_rw(DIO_SYNC, DIO_READ, fd, buf, 24 * bs, 0));
	close(fd);
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, no_space_in_the_middle_of_an_append)
{
	size_t len = 12 * MIB;
	void *buf = dio_alloc(len), *all = dio_alloc(len);
	enum dio_method m;
	struct stat st;
	long before;
	ssize_t n;
	int fd;

	if (!variant->block_size)
		SKIP(return, "a device does not grow");
	dio_fill(buf, len, 0, 1);
	before = free_blocks(&self->fs);
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		fd = open_on(&self->fs, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
		ASSERT_LE(0, fd);
		if (!dio_can_or_close(m, fd))
			continue;
		/* It does not fit: what did is in the file, or nothing is. */
		n = dio_rw(m, DIO_WRITE, fd, buf, len, 0);
		EXPECT_TRUE(n == -ENOSPC || (n > 0 && n < (ssize_t)len)) {
			BY(m);
			TH_LOG("%ld", (long)n);
		}
		ASSERT_EQ(0, fstat(fd, &st));
		EXPECT_EQ(n > 0 ? n : 0, st.st_size) BY(m);
		if (n > 0) {
			ASSERT_EQ(n, pread(fd, all, n, 0)) BY(m);
			EXPECT_EQ(-1, dio_differs(all, n, 0, 1)) BY(m);
		} else {
			EXPECT_EQ(before, free_blocks(&self->fs)) BY(m);
		}
		ASSERT_EQ(0, ftruncate(fd, 0));
		EXPECT_EQ(before, free_blocks(&self->fs)) BY(m);
		close(fd);
	}
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, no_space_in_a_hole)
{
	size_t len = 12 * MIB;
	void *buf = dio_alloc(len), *all = dio_alloc(len);
	struct stat st;
	ssize_t n;
	int fd;

	if (!variant->block_size)
		SKIP(return, "a device has no holes");
	dio_fill(buf, len, 0, 1);
	fd = open_on(&self->fs, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	ASSERT_EQ(0, ftruncate(fd, len));
	n = dio_rw(DIO_SYNC, DIO_WRITE, fd, buf, len, 0);
	EXPECT_TRUE(n == -ENOSPC || (n > 0 && n < (ssize_t)len));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ((off_t)len, st.st_size);
	ASSERT_EQ((ssize_t)len, pread(fd, all, len, 0));
	if (n > 0)
		EXPECT_EQ(-1, dio_differs(all, n, 0, 1));
	close(fd);
	EXPECT_EQ(0, check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(fault, file_size_limit)
{
	struct rlimit lim = { 65536, 65536 };
	void *buf = dio_alloc(65536);
	enum dio_method m;
	struct stat st;
	int fd;

	if (!variant->block_size)
		SKIP(return, "a device has no such limit");
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &lim));
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		fd = open_on(&self->fs, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
		ASSERT_LE(0, fd);
		if (!dio_can_or_close(m, fd))
			continue;
		/* Up to it, across it, at it. */
		EXPECT_EQ(32768, dio_rw(m, DIO_WRITE, fd, buf, 32768, 0)) BY(m);
		EXPECT_EQ(32768, dio_rw(m, DIO_WRITE, fd, buf, 65536, 32768))
			BY(m);
		EXPECT_EQ(-EFBIG, dio_rw(m, DIO_WRITE, fd, buf, 4096, 65536))
			BY(m);
		ASSERT_EQ(0, fstat(fd, &st));
		EXPECT_EQ(65536, st.st_size) BY(m);
		close(fd);
	}
}

/* Device mapper: part of the disk always fails, and dm splits the BIOs. */
TEST_F(fault, part_of_a_mapped_device_fails)
{
	unsigned long mib = 2048;
	char name[32], table[512], path[64];
	void *buf = dio_alloc(4 * MIB);
	enum dio_method m;
	int fd, ret;
	off_t pos;

	if (variant->block_size)
		SKIP(return, "on the bare disk is enough");
	snprintf(name, sizeof(name), "dio%d", getpid());
	snprintf(path, sizeof(path), "/dev/mapper/%s", name);
	snprintf(table, sizeof(table),
		 "0 %lu linear %s 0\n%lu %lu error\n%lu %lu linear %s %lu\n",
		 3 * mib, self->fs.disk.path, 3 * mib, mib, 4 * mib, 4 * mib,
		 self->fs.disk.path, 4 * mib);
	ret = dio_run("dmsetup", "create", name, "--noudevsync", "--table",
		      table, NULL);
	if (ret < 0 || access("/dev/mapper/control", F_OK))
		SKIP(return, "%s", dio_why());
	ASSERT_EQ(0, ret) TH_LOG("%s", dio_why());
	dio_run("dmsetup", "mknodes", name, NULL);
	fd = open(path, O_RDWR | O_DIRECT);
	EXPECT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		if (!dio_can(m, fd))
			continue;
		for (pos = 0; pos <= 4 * MIB; pos += MIB) {
			ret = pos + 4 * MIB <= 3 * MIB || pos >= 4 * MIB;
			EXPECT_EQ(ret ? 4 * MIB : -EIO,
				  dio_rw(m, DIO_READ, fd, buf, 4 * MIB, pos))
				BY(m);
			EXPECT_EQ(ret ? 4 * MIB : -EIO,
				  dio_rw(m, DIO_WRITE, fd, buf, 4 * MIB, pos))
				BY(m);
		}
		EXPECT_EQ(2 * MIB, dio_rw(m, DIO_READ, fd, buf, 2 * MIB, MIB));
	}
	close(fd);
	EXPECT_EQ(0, dio_run("dmsetup", "remove", "--noudevsync", "--retry",
			     name, NULL)) TH_LOG("%s", dio_why());
}

/* ---- a disk that goes away ---- */

struct user {
	pthread_t thread;
	enum dio_method method;
	enum dio_dir dir;
	int fd;
	int done;
	int failed;
	ssize_t last;
};

static void *use(void *arg)
{
	struct user *u = arg;
	void *buf = dio_alloc(MIB);

	/* Until the disk is gone, then a few times more. */
	while (u->failed < 3) {
		u->last = dio_rw(u->method, u->dir, u->fd, buf, MIB, MIB);
		if (u->last == MIB)
			u->done++;
		else
			u->failed++;
	}
	munmap(buf, MIB);
	return NULL;
}

TEST_F(fault, disk_removed_under_load)
{
	struct user u[8] = { 0 };
	struct dio_disk d = {
		.lbs = variant->lbs, .mib = 8, .latency_ns = 2000000,
	};
	int i;

	if (variant->block_size)
		SKIP(return, "a mounted disk has a test of its own");
	ASSERT_EQ(0, dio_disk_create(&d)) TH_LOG("%s", dio_why());
	for (i = 0; i < 8; i++) {
		u[i].method = i % 4;
		u[i].dir = i / 4;
		u[i].fd = open(d.path, O_RDWR | O_DIRECT);
		ASSERT_LE(0, u[i].fd);
		ASSERT_EQ(0, pthread_create(&u[i].thread, NULL, use, &u[i]));
	}
	for (i = 0; i < 8; i++)
		while (!__atomic_load_n(&u[i].done, __ATOMIC_RELAXED) &&
		       !__atomic_load_n(&u[i].failed, __ATOMIC_RELAXED))
			usleep(10000);
	EXPECT_EQ(0, dio_disk_set(&d, "power", "0")) TH_LOG("%s", dio_why());
	for (i = 0; i < 8; i++) {
		pthread_join(u[i].thread, NULL);
		EXPECT_LT(0, u[i].done) TH_LOG("thread %d", i);
		EXPECT_TRUE(u[i].last == -EIO || u[i].last == -ENXIO ||
			    u[i].last == -ENODEV || u[i].last == -ENOSPC ||
			    u[i].last == 0)
			TH_LOG("thread %d: %ld", i, (long)u[i].last);
		close(u[i].fd);
	}
	dio_disk_destroy(&d);
}

TEST_F(fault, mounted_disk_removed_under_load)
{
	struct user u[8] = { 0 };
	struct dio_fs fs = {
		.disk = { .lbs = variant->lbs, .mib = 8, .latency_ns = 2000000 },
		.block_size = variant->block_size,
	};
	int i, fd;

	if (!variant->block_size)
		SKIP(return, "not mounted");
	ASSERT_EQ(0, dio_fs_create(&fs)) TH_LOG("%s", dio_why());
	fd = open_full(&fs, 2 * MIB);
	ASSERT_LE(0, fd);
	close(fd);
	for (i = 0; i < 8; i++) {
		u[i].method = i % 4;
		u[i].dir = i / 4;
		u[i].fd = open_on(&fs, O_RDWR | O_DIRECT);
		ASSERT_LE(0, u[i].fd);
		ASSERT_EQ(0, pthread_create(&u[i].thread, NULL, use, &u[i]));
	}
	usleep(300000);
	EXPECT_EQ(0, dio_disk_set(&fs.disk, "power", "0"))
		TH_LOG("%s", dio_why());
	for (i = 0; i < 8; i++) {
		pthread_join(u[i].thread, NULL);
		EXPECT_GT(0, u[i].last) TH_LOG("thread %d", i);
		close(u[i].fd);
	}
	dio_fs_destroy(&fs);
}

TEST_HARNESS_MAIN
