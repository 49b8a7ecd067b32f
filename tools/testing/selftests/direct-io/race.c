// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to a request in flight when its process forks, unmaps, exits;
 * truncate and appends beside it; freezing; and a random walk against a model.
 */
#include "../kselftest_harness.h"
#include "dio.h"
#include "fixture-any.h"

#include <libaio.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#define SIZE (256 * KIB)
#define MARK 0xe5

/* A slow disk, so that what happens next happens in mid-flight. */
FIXTURE(slow) {
	struct dio_fs fs;
};

FIXTURE_VARIANT(slow) {
	unsigned int block_size;
};

FIXTURE_VARIANT_ADD(slow, bdev) { 0 };
FIXTURE_VARIANT_ADD(slow, ext2_1k) { 1024 };
FIXTURE_VARIANT_ADD(slow, ext2_4k) { 4096 };

FIXTURE_SETUP(slow)
{
	self->fs.disk.mib = 16;
	self->fs.disk.latency_ns = 30000000;
	self->fs.disk.max_sectors = 256;
	self->fs.block_size = variant->block_size;
	if (dio_fs_create(&self->fs))
		SKIP(return, "%s", dio_why());
}

FIXTURE_TEARDOWN_PARENT(slow)
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

static int open_full(struct dio_fs *fs)
{
	int fd = open_on(fs, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	void *buf = dio_alloc(SIZE);

	dio_fill(buf, SIZE, 0, 1);
	if (fd >= 0 && (pwrite(fd, buf, SIZE, 0) != SIZE || fsync(fd)))
		fd = -1;
	munmap(buf, SIZE);
	return fd;
}

/* One request that is left in flight. */
struct flight {
	io_context_t ctx;
	struct iocb cb;
};

static int take_off(struct flight *f, enum dio_dir dir, int fd, void *buf)
{
	struct iocb *cbs[] = { &f->cb };
	int err;

	memset(f, 0, sizeof(*f));
	err = io_setup(1, &f->ctx);
	if (err)
		return err;
	if (dir == DIO_WRITE)
		io_prep_pwrite(&f->cb, fd, buf, SIZE, 0);
	else
		io_prep_pread(&f->cb, fd, buf, SIZE, 0);
	return io_submit(f->ctx, 1, cbs);
}

static long land(struct flight *f)
{
	struct io_event ev;
	int n;

	do
		n = io_getevents(f->ctx, 1, 1, &ev, NULL);
	while (n == -EINTR);
	io_destroy(f->ctx);
	return n == 1 ? (long)ev.res : n;
}

TEST_F(slow, fork_while_reading)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd, status;
	pid_t pid;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, take_off(&f, DIO_READ, fd, buf));
	pid = fork();
	if (!pid) {
		/* Ours is a copy: writing to it is nobody's business. */
		memset(buf, 9, SIZE);
		usleep(10000);
		_exit(dio_not_byte(buf, SIZE, 9) >= 0);
	}
	EXPECT_EQ(SIZE, land(&f));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(slow, fork_while_writing)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd, status;
	pid_t pid;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dio_fill(buf, SIZE, 0, 2);
	ASSERT_EQ(1, take_off(&f, DIO_WRITE, fd, buf));
	pid = fork();
	if (!pid) {
		memset(buf, 9, SIZE);
		_exit(0);
	}
	EXPECT_EQ(SIZE, land(&f));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	memset(buf, 0, SIZE);
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
}

TEST_F(slow, munmap_while_reading)
{
	unsigned char *buf = dio_alloc(SIZE), *other;
	struct flight f;
	int fd;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, take_off(&f, DIO_READ, fd, buf));
	munmap(buf, SIZE);
	other = mmap(buf, SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(other, 5, SIZE);
	EXPECT_EQ(SIZE, land(&f));
	/* It went where nobody looks, not into what came instead. */
	EXPECT_EQ(-1, dio_not_byte(other, SIZE, 5));
}

TEST_F(slow, munmap_while_writing)
{
	unsigned char *buf = dio_alloc(SIZE), *other;
	struct flight f;
	int fd;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dio_fill(buf, SIZE, 0, 2);
	ASSERT_EQ(1, take_off(&f, DIO_WRITE, fd, buf));
	munmap(buf, SIZE);
	other = dio_alloc(SIZE);
	memset(other, 5, SIZE);
	EXPECT_EQ(SIZE, land(&f));
	ASSERT_EQ(SIZE, pread(fd, other, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(other, SIZE, 0, 2));
}

TEST_F(slow, madv_dontneed_while_reading)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	memset(buf, 7, SIZE);
	ASSERT_EQ(1, take_off(&f, DIO_READ, fd, buf));
	ASSERT_EQ(0, madvise(buf, SIZE, MADV_DONTNEED));
	EXPECT_EQ(-1, dio_not_byte(buf, SIZE, 0));
	EXPECT_EQ(SIZE, land(&f));
	EXPECT_EQ(-1, dio_not_byte(buf, SIZE, 0));
}

TEST_F(slow, madv_dontneed_while_writing)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dio_fill(buf, SIZE, 0, 2);
	ASSERT_EQ(1, take_off(&f, DIO_WRITE, fd, buf));
	ASSERT_EQ(0, madvise(buf, SIZE, MADV_DONTNEED));
	EXPECT_EQ(SIZE, land(&f));
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
}

TEST_F(slow, close_while_writing)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dio_fill(buf, SIZE, 0, 2);
	ASSERT_EQ(1, take_off(&f, DIO_WRITE, fd, buf));
	close(fd);
	EXPECT_EQ(SIZE, land(&f));
	fd = open_on(&self->fs, O_RDWR | O_DIRECT);
	memset(buf, 0, SIZE);
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
}

TEST_F(slow, exit_while_writing)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd, status;
	pid_t pid;

	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dio_fill(buf, SIZE, 0, 2);
	pid = fork();
	if (!pid)
		_exit(take_off(&f, DIO_WRITE, fd, buf) != 1);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* The kernel saw it through: exit waits for AIO. */
	memset(buf, 0, SIZE);
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
}

TEST_F(slow, truncate_waits_for_a_write_in_flight)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	struct stat st;
	int fd;

	if (!variant->block_size)
		SKIP(return, "a device cannot be truncated");
	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dio_fill(buf, SIZE, 0, 2);
	ASSERT_EQ(1, take_off(&f, DIO_WRITE, fd, buf));
	ASSERT_EQ(0, ftruncate(fd, 4096));
	EXPECT_EQ(SIZE, land(&f));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(4096, st.st_size);
	close(fd);
	EXPECT_EQ(0, dio_fs_check(&self->fs)) TH_LOG("%s", dio_why());
}

/* ---- freezing ---- */

struct freezer {
	pthread_t thread;
	int fd;
	int written;
	bool stop;
	bool failed;
};

static void *write_on(void *arg)
{
	struct freezer *f = arg;
	void *buf = dio_alloc(65536);

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		if (pwrite(f->fd, buf, 65536, 0) != 65536)
			f->failed = true;
		__atomic_add_fetch(&f->written, 1, __ATOMIC_RELAXED);
	}
	munmap(buf, 65536);
	return NULL;
}

TEST_F(slow, frozen_filesystem_holds_writes_back)
{
	struct freezer f = { 0 };
	void *buf = dio_alloc(SIZE);
	int dir, frozen;

	if (!variant->block_size)
		SKIP(return, "no filesystem to freeze");
	f.fd = open_full(&self->fs);
	ASSERT_LE(0, f.fd);
	dir = open(self->fs.dir, O_RDONLY);
	ASSERT_EQ(0, pthread_create(&f.thread, NULL, write_on, &f));
	usleep(200000);
	ASSERT_EQ(0, ioctl(dir, FIFREEZE, 0)) TH_LOG("%s", strerror(errno));
	frozen = __atomic_load_n(&f.written, __ATOMIC_RELAXED);
	EXPECT_LT(0, frozen);
	usleep(300000);
	/* One may have ended between the freeze and the look. */
	EXPECT_GE(frozen + 1, __atomic_load_n(&f.written, __ATOMIC_RELAXED));
	/* Reading goes on. */
	EXPECT_EQ(SIZE, pread(f.fd, buf, SIZE, 0));
	frozen = __atomic_load_n(&f.written, __ATOMIC_RELAXED);
	EXPECT_EQ(0, ioctl(dir, FITHAW, 0));
	usleep(500000);
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	pthread_join(f.thread, NULL);
	EXPECT_LT(frozen, f.written);
	EXPECT_FALSE(f.failed);
	close(dir);
	close(f.fd);
	EXPECT_EQ(0, dio_fs_check(&self->fs)) TH_LOG("%s", dio_why());
}

TEST_F(slow, freeze_waits_for_async_writes)
{
	unsigned char *buf = dio_alloc(SIZE);
	struct flight f;
	int fd, dir;

	if (!variant->block_size)
		SKIP(return, "no filesystem to freeze");
	fd = open_full(&self->fs);
	ASSERT_LE(0, fd);
	dir = open(self->fs.dir, O_RDONLY);
	dio_fill(buf, SIZE, 0, 2);
	ASSERT_EQ(1, take_off(&f, DIO_WRITE, fd, buf));
	ASSERT_EQ(0, ioctl(dir, FIFREEZE, 0));
	ASSERT_EQ(0, ioctl(dir, FITHAW, 0));
	EXPECT_EQ(SIZE, land(&f));
	memset(buf, 0, SIZE);
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
}

/* ---- truncate, reads and writes all at once ---- */

TEST_F(any, truncate_beside_direct_io)
{
	static const enum dio_racer what[4] = {
		DIO_RACE_WRITE, DIO_RACE_WRITE, DIO_RACE_READ, DIO_RACE_TRUNCATE,
	};

	if (!variant->block_size)
		SKIP(return, "a device cannot be truncated");
	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	EXPECT_EQ(0, dio_race(self->t, what, 2)) TH_LOG("%s", self->t->why);
}

/* Where blocks are is remembered: never longer than they are the file's. */
TEST_F(any, reallocation_beside_direct_io)
{
	static const enum dio_racer what[4] = {
		DIO_RACE_READ, DIO_RACE_READ, DIO_RACE_WRITE, DIO_RACE_REALLOCATE,
	};

	if (!variant->block_size)
		SKIP(return, "a device's blocks are never reallocated");
	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	EXPECT_EQ(0, dio_race(self->t, what, 3)) TH_LOG("%s", self->t->why);
}

/* ---- appends by several threads ---- */

struct appender {
	pthread_t thread;
	int fd;
	int nr;
	unsigned int lbs;
	bool failed;
};

#define RECORDS 24

static void *append(void *arg)
{
	struct appender *a = arg;
	void *buf = dio_alloc(a->lbs);
	int i;

	for (i = 0; i < RECORDS; i++) {
		memset(buf, 1 + a->nr * RECORDS + i, a->lbs);
		if (dio_rw(i & 1 ? DIO_SYNC : DIO_URING, DIO_WRITE, a->fd, buf,
			   a->lbs, 0) != a->lbs)
			a->failed = true;
	}
	return NULL;
}

TEST_F(any, appends_by_four_threads_all_arrive)
{
	struct appender a[4] = { 0 };
	int seen[256] = { 0 };
	unsigned char *buf;
	unsigned int lbs = self->lbs;
	int fd, i;

	if (!variant->block_size)
		SKIP(return, "a device does not grow");
	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT |
				      O_APPEND);
	for (i = 0; i < 4; i++) {
		a[i].fd = fd;
		a[i].nr = i;
		a[i].lbs = lbs;
		ASSERT_EQ(0, pthread_create(&a[i].thread, NULL, append, &a[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(a[i].thread, NULL);
		EXPECT_FALSE(a[i].failed);
	}
	ASSERT_EQ(4 * RECORDS * lbs, lseek(fd, 0, SEEK_END));
	buf = dio_alloc(4 * RECORDS * lbs);
	ASSERT_EQ((ssize_t)(4 * RECORDS * lbs),
		  pread(fd, buf, 4 * RECORDS * lbs, 0));
	for (i = 0; i < 4 * RECORDS; i++) {
		EXPECT_EQ(-1, dio_not_byte(buf + i * lbs, lbs, buf[i * lbs]));
		seen[buf[i * lbs]]++;
	}
	for (i = 1; i <= 4 * RECORDS; i++)
		EXPECT_EQ(1, seen[i]) TH_LOG("record %d", i);
}

/* ---- a random walk against a model in memory ---- */

/* DIO_SEED repeats a walk, DIO_SECONDS makes it longer. */
TEST_F(any, random_walk_agrees_with_a_model)
{
	if (variant->block_size)
		ASSERT_EQ(0, dio_target_mark(self->t, MARK));
	EXPECT_EQ(0, dio_walk(self->t, 3)) TH_LOG("%s", self->t->why);
}

TEST_HARNESS_MAIN
