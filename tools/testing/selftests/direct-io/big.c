// SPDX-License-Identifier: GPL-2.0
/*
 * Requests larger than what one may keep pinned: they are reaped as they go.
 */
#include "../kselftest_harness.h"
#include "dio.h"
#include "fixture-any.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define GIB (1024 * MIB)

/*
 * A synchronous request keeps 16 MiB pinned. Counters are kept per CPU and
 * are folded at 125 pages or less, for two counters on each CPU.
 */
#define BOUND (16 * MIB / 4096)

static long bound(void)
{
	return BOUND + 64 + 2 * 125 * sysconf(_SC_NPROCESSORS_ONLN);
}

static long pinned(void)
{
	return dio_vmstat("nr_foll_pin_acquired") -
	       dio_vmstat("nr_foll_pin_released");
}

/*
 * The processor that a request ended on first says so and then unpins the pages
 * of its last bio; for a killed process io_uring may still be letting go.
 */
static long pinned_at_last(long most)
{
	int i;

	for (i = 0; i < 100 && pinned() > most; i++)
		usleep(100000);
	return pinned();
}

/* 1 GiB of addresses, @real bytes of memory. */
static void *alloc_gib(size_t real)
{
	int mem = memfd_create("gib", 0);
	char *buf;
	long i;

	buf = mmap(NULL, GIB, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem < 0 || ftruncate(mem, real) || buf == MAP_FAILED)
		return NULL;
	for (i = 0; i < (long)(GIB / real); i++)
		if (mmap(buf + i * real, real, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, mem, 0) == MAP_FAILED)
			return NULL;
	close(mem);
	return buf;
}

struct sampler {
	pthread_t thread;
	bool stop;
	long base;
	long most;
	long samples;
};

static void *sample(void *arg)
{
	struct sampler *s = arg;
	long now;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		now = pinned() - s->base;
		if (now > s->most)
			s->most = now;
		s->samples++;
		usleep(500);
	}
	return NULL;
}

/* A disk that keeps no data and takes its time. */
FIXTURE(gib) {
	struct dio_disk disk;
};

FIXTURE_VARIANT(gib) {
	enum dio_dir dir;
};

FIXTURE_VARIANT_ADD(gib, read) { DIO_READ };
FIXTURE_VARIANT_ADD(gib, write) { DIO_WRITE };

FIXTURE_SETUP(gib)
{
	self->disk.no_data = true;
	self->disk.mib = 2048;
	self->disk.latency_ns = 4000000;
	if (dio_disk_create(&self->disk))
		SKIP(return, "%s", dio_why());
}

FIXTURE_TEARDOWN_PARENT(gib)
{
	dio_disk_destroy(&self->disk);
}

TEST_F(gib, one_request_keeps_little_pinned)
{
	struct sampler s = { 0 };
	ssize_t done;
	void *buf;
	int fd;

	if (dio_vmstat("nr_foll_pin_acquired") < 0)
		SKIP(return, "%s", dio_why());
	buf = alloc_gib(16 * MIB);
	ASSERT_NE(NULL, buf);
	fd = open(self->disk.path, O_RDWR | O_DIRECT);
	ASSERT_LE(0, fd);
	s.base = pinned();
	ASSERT_EQ(0, pthread_create(&s.thread, NULL, sample, &s));
	done = dio_rw(DIO_SYNC, variant->dir, fd, buf, GIB, 0);
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	EXPECT_EQ(GIB, done);
	/* It was looked at while it lasted, and it did pin. */
	EXPECT_LT(20, s.samples);
	EXPECT_LT(256, s.most);
	EXPECT_GE(bound(), s.most) TH_LOG("%ld MiB pinned", s.most / 256);
}

TEST_F(gib, vectors_keep_little_pinned)
{
	struct sampler s = { 0 };
	struct iovec iov[512];
	ssize_t done;
	char *buf;
	int fd, i;

	if (dio_vmstat("nr_foll_pin_acquired") < 0)
		SKIP(return, "%s", dio_why());
	buf = alloc_gib(16 * MIB);
	ASSERT_NE(NULL, buf);
	for (i = 0; i < 512; i++)
		iov[i] = (struct iovec) { buf + i * MIB, MIB / 2 };
	fd = open(self->disk.path, O_RDWR | O_DIRECT);
	s.base = pinned();
	ASSERT_EQ(0, pthread_create(&s.thread, NULL, sample, &s));
	done = variant->dir == DIO_WRITE ? pwritev(fd, iov, 512, 0) :
					   preadv(fd, iov, 512, 0);
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	EXPECT_EQ(256 * MIB, done);
	EXPECT_GE(bound(), s.most) TH_LOG("%ld MiB pinned", s.most / 256);
}

TEST_F(gib, everything_is_unpinned_at_the_end)
{
	long base, slack = 2 * 125 * sysconf(_SC_NPROCESSORS_ONLN);
	enum dio_method m;
	void *buf;
	int fd;

	if (dio_vmstat("nr_foll_pin_acquired") < 0)
		SKIP(return, "%s", dio_why());
	buf = alloc_gib(16 * MIB);
	ASSERT_NE(NULL, buf);
	fd = open(self->disk.path, O_RDWR | O_DIRECT);
	base = pinned();
	for (m = DIO_SYNC; m < DIO_URING_FIXED; m++) {
		if (!dio_can(m, fd))
			continue;
		EXPECT_EQ(64 * MIB,
			  dio_rw(m, variant->dir, fd, buf, 64 * MIB, 0))
			TH_LOG("by %s", dio_method_name(m));
	}
	EXPECT_GE(base + slack, pinned_at_last(base + slack));
}

/* SIGKILL in the middle: the process goes, with all that it had pinned. */
TEST_F(gib, killed_in_the_middle)
{
	long base, slack = 2 * 125 * sysconf(_SC_NPROCESSORS_ONLN);
	double start;
	int status, i;
	void *buf;
	pid_t pid;
	int fd;

	buf = alloc_gib(16 * MIB);
	ASSERT_NE(NULL, buf);
	fd = open(self->disk.path, O_RDWR | O_DIRECT);
	base = pinned();
	for (i = 0; i < 4; i++) {
		pid = fork();
		if (!pid) {
			while (1)
				dio_rw(i & 1 ? DIO_URING : DIO_SYNC,
				       variant->dir, fd, buf, GIB, 0);
		}
		usleep(30000 + 20000 * i);
		start = dio_now();
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_GT(60, (int)(dio_now() - start));
	}
	EXPECT_GE(base + slack, pinned_at_last(base + slack));
	EXPECT_EQ(MIB, dio_rw(DIO_SYNC, variant->dir, fd, buf, MIB, 0));
}

TEST_F(any, more_than_the_bound_is_right_to_the_byte)
{
	size_t len = 20 * MIB;
	void *buf = dio_alloc(len);
	enum dio_method m;
	int fd;

	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* New blocks the first time, overwritten then. */
		dio_fill(buf, len, 0, m);
		ASSERT_EQ((ssize_t)len, dio_rw(m, DIO_WRITE, fd, buf, len, 0))
			TH_LOG("by %s", dio_method_name(m));
		memset(buf, 0, len);
		ASSERT_EQ((ssize_t)len, dio_rw(m, DIO_READ, fd, buf, len, 0))
			TH_LOG("by %s", dio_method_name(m));
		ASSERT_EQ(-1, dio_differs(buf, len, 0, m))
			TH_LOG("by %s", dio_method_name(m));
	}
}

TEST_F(any, filesystem_is_clean_afterwards)
{
	if (!variant->block_size)
		SKIP(return, "no filesystem");
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
}

TEST_HARNESS_MAIN
