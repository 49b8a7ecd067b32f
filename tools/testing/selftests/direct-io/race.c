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
	int err;

	self->fs.disk.mib = 16;
	self->fs.disk.latency_ns = 30000000;
	self->fs.disk.max_sectors = 256;
	self->fs.block_size = variant->block_size;
	err = variant->block_size ? dio_fs_create(&self->fs) :
				    dio_disk_create(&self->fs.disk);
	if (err)
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

struct racer {
	pthread_t thread;
	struct dio_target *t;
	unsigned int seed;
	double until;
	const char *failed;
	char why[128];
	unsigned long did;
};

/*
 * A sector is the pattern of its place, or zeroes, or a start of the one; a read
 * through the page cache that meets the write of a hole may also find zeroes
 * before what it finds written. Returns where it is none of that, or -1.
 */
static ssize_t insane(const unsigned char *buf, size_t len, off_t pos,
		      bool torn)
{
	unsigned char want[512];
	size_t i, j;

	for (i = 0; i + 512 <= len; i += 512) {
		bool ended = false;

		dio_fill(want, 512, pos + i, 1);
		for (j = 0; j < 512; j++) {
			if (buf[i + j] == want[j] && (torn || !ended))
				continue;
			if (buf[i + j])
				return i + j;
			ended = true;
		}
	}
	return -1;
}

static void *race_write(void *arg)
{
	struct racer *r = arg;
	int fd = dio_target_open(r->t, O_RDWR | O_DIRECT);
	void *buf = dio_alloc(SIZE);
	unsigned int lbs = r->t->lbs;
	off_t pos;
	size_t len;
	ssize_t n;

	while (dio_now() < r->until) {
		pos = rand_r(&r->seed) % (SIZE / lbs) * lbs;
		len = (1 + rand_r(&r->seed) % (SIZE / lbs / 4)) * lbs;
		dio_fill(buf, len, pos, 1);
		n = dio_rw(rand_r(&r->seed) % DIO_URING_POLL, DIO_WRITE, fd,
			   buf, len, pos);
		if (n != (ssize_t)len) {
			snprintf(r->why, sizeof(r->why),
				 "write of %zu bytes at %lld: %zd", len,
				 (long long)pos, n);
			r->failed = r->why;
		}
		r->did++;
	}
	close(fd);
	return NULL;
}

static void *race_read(void *arg)
{
	struct racer *r = arg;
	int fd = dio_target_open(r->t, O_RDWR | O_DIRECT);
	int plain = dio_target_open(r->t, O_RDWR);
	unsigned char *buf = dio_alloc(2 * SIZE);
	ssize_t n, at;
	bool direct;

	while (dio_now() < r->until) {
		direct = rand_r(&r->seed) % 3;
		n = dio_rw(rand_r(&r->seed) % DIO_URING_POLL, DIO_READ,
			   direct ? fd : plain, buf, 2 * SIZE, 0);
		if (n < 0)
			r->failed = "read";
		at = n < 0 ? -1 : insane(buf, n, 0, !direct);
		if (at >= 0) {
			snprintf(r->why, sizeof(r->why),
				 "%s read of %zd bytes: stale or foreign at %zd: %02x %02x %02x %02x",
				 direct ? "direct" : "buffered", n, at, buf[at],
				 buf[at + 1], buf[at + 2], buf[at + 3]);
			r->failed = r->why;
		}
		r->did++;
	}
	close(plain);
	close(fd);
	return NULL;
}

static void *race_truncate(void *arg)
{
	struct racer *r = arg;
	int fd = dio_target_open(r->t, O_RDWR);

	while (dio_now() < r->until) {
		if (ftruncate(fd, rand_r(&r->seed) % (2 * SIZE))) {
			snprintf(r->why, sizeof(r->why), "truncate: %s",
				 strerror(errno));
			r->failed = r->why;
		}
		r->did++;
		usleep(rand_r(&r->seed) % 2000);
	}
	close(fd);
	return NULL;
}

/* Have four of them at it for some seconds: each does something, and none fails. */
static void race(struct __test_metadata *_metadata, struct dio_target *t,
		 void *(*what[4])(void *), double seconds)
{
	struct racer r[4] = { 0 };
	int i;

	for (i = 0; i < 4; i++) {
		r[i].t = t;
		r[i].seed = i + 1;
		r[i].until = dio_now() + seconds;
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL, what[i], &r[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_LT(0UL, r[i].did);
		EXPECT_EQ(NULL, r[i].failed)
			TH_LOG("thread %d: %s", i, r[i].failed);
	}
}

TEST_F(any, truncate_beside_direct_io)
{
	void *(*what[4])(void *) = {
		race_write, race_write, race_read, race_truncate,
	};
	void *buf = dio_alloc(2 * SIZE);
	ssize_t n;
	int fd;

	if (!variant->block_size)
		SKIP(return, "a device cannot be truncated");
	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	race(_metadata, self->t, what, 2);
	close(fd);
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
	fd = dio_target_open(self->t, O_RDWR);
	n = pread(fd, buf, 2 * SIZE, 0);
	EXPECT_LE(0, n);
	EXPECT_EQ(-1, insane(buf, n, 0, false));
}

/* ---- blocks that go from one file to another ---- */

/* Give all of the file's blocks to another one, and write the file anew. */
static bool reallocate(struct racer *r, int fd, const char *other, void *buf)
{
	int taker = open(other, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	off_t at = rand_r(&r->seed) % 4 * (SIZE / 4);
	bool good;

	if (taker < 0)
		return false;
	good = !ftruncate(fd, at);
	dio_fill(buf, SIZE, 0, 2);
	good &= pwrite(taker, buf, SIZE, 0) == SIZE;
	if (rand_r(&r->seed) & 1)
		good &= !ftruncate(fd, SIZE);	/* a hole, to be filled */
	dio_fill(buf, SIZE - at, at, 1);
	good &= pwrite(fd, buf, SIZE - at, at) == SIZE - at;
	close(taker);
	return good;
}

static void *race_reallocate(void *arg)
{
	struct racer *r = arg;
	int direct = dio_target_open(r->t, O_RDWR | O_DIRECT);
	int plain = dio_target_open(r->t, O_RDWR);
	void *buf = dio_alloc(SIZE);
	char other[96];

	snprintf(other, sizeof(other), "%s/other", r->t->fs.dir);
	while (dio_now() < r->until) {
		if (!reallocate(r, rand_r(&r->seed) % 3 ? direct : plain, other, buf)) {
			snprintf(r->why, sizeof(r->why), "%s", strerror(errno));
			r->failed = r->why;
		}
		r->did++;
	}
	unlink(other);
	munmap(buf, SIZE);
	close(plain);
	close(direct);
	return NULL;
}

/* Where blocks are is remembered: never longer than they are the file's. */
TEST_F(any, reallocation_beside_direct_io)
{
	void *(*what[4])(void *) = {
		race_read, race_read, race_write, race_reallocate,
	};
	int fd;

	if (!variant->block_size)
		SKIP(return, "a device's blocks are never reallocated");
	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	ASSERT_LE(0, fd);
	race(_metadata, self->t, what, 3);
	close(fd);
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
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

#define WALK (1 * MIB)

struct walk {
	struct dio_target *t;
	unsigned char *model;
	unsigned char *buf;
	off_t size;
	int fd;
	int plain;
	unsigned int seed;
	unsigned long step;
	char what[96];
};

static void walk_range(struct walk *w, off_t *pos, size_t *len, size_t unit)
{
	size_t most = rand_r(&w->seed) % 8 ? 32 * KIB : WALK / 2;

	*pos = rand_r(&w->seed) % (WALK / unit) * unit;
	*len = (1 + rand_r(&w->seed) % (most / unit)) * unit;
	if (*pos + (off_t)*len > WALK)
		*len = WALK - *pos;
}

static bool walk_write(struct walk *w, bool direct)
{
	enum dio_method m = rand_r(&w->seed) % DIO_URING_POLL;
	off_t pos;
	size_t len;

	walk_range(w, &pos, &len, direct ? w->t->lbs : 1);
	snprintf(w->what, sizeof(w->what), "%s write %zu at %ld by %s",
		 direct ? "direct" : "buffered", len, (long)pos,
		 direct ? dio_method_name(m) : "sync");
	dio_fill(w->buf, len, pos, ++w->step);
	memcpy(w->model + pos, w->buf, len);
	if (pos + (off_t)len > w->size)
		w->size = pos + len;
	if (direct)
		return dio_rw(m, DIO_WRITE, w->fd, w->buf, len, pos) ==
		       (ssize_t)len;
	return pwrite(w->plain, w->buf, len, pos) == (ssize_t)len;
}

static bool walk_read(struct walk *w, bool direct)
{
	enum dio_method m = rand_r(&w->seed) % DIO_URING_POLL;
	ssize_t n, want;
	off_t pos;
	size_t len;

	walk_range(w, &pos, &len, direct ? w->t->lbs : 1);
	want = pos >= w->size ? 0 : w->size - pos < (off_t)len ?
	       w->size - pos : (off_t)len;
	snprintf(w->what, sizeof(w->what), "%s read %zu at %ld by %s",
		 direct ? "direct" : "buffered", len, (long)pos,
		 direct ? dio_method_name(m) : "sync");
	memset(w->buf, MARK, len);
	n = direct ? dio_rw(m, DIO_READ, w->fd, w->buf, len, pos) :
		     pread(w->plain, w->buf, len, pos);
	return n == want && !memcmp(w->buf, w->model + pos, want);
}

static bool walk_truncate(struct walk *w)
{
	off_t size = rand_r(&w->seed) % WALK;

	snprintf(w->what, sizeof(w->what), "truncate to %ld", (long)size);
	if (!w->t->block_size)
		return true;
	if (size < w->size)
		memset(w->model + size, 0, WALK - size);
	w->size = size;
	return !ftruncate(w->plain, size);
}

static bool walk_map(struct walk *w)
{
	unsigned char *map;
	bool same;
	off_t pos;
	size_t len;

	walk_range(w, &pos, &len, 1);
	if (pos >= w->size)
		return true;
	if (pos + (off_t)len > w->size)
		len = w->size - pos;
	snprintf(w->what, sizeof(w->what), "mmap %zu at %ld", len, (long)pos);
	map = mmap(NULL, WALK, PROT_READ | PROT_WRITE, MAP_SHARED, w->plain, 0);
	if (map == MAP_FAILED)
		return false;
	same = !memcmp(map + pos, w->model + pos, len);
	if (rand_r(&w->seed) & 1) {
		dio_fill(map + pos, len, pos, ++w->step);
		memcpy(w->model + pos, map + pos, len);
	}
	munmap(map, WALK);
	return same;
}

static bool walk_step(struct walk *w)
{
	switch (rand_r(&w->seed) % 12) {
	case 0:
		return walk_truncate(w);
	case 1:
		return walk_map(w);
	case 2:
		return walk_write(w, false);
	case 3:
		return walk_read(w, false);
	case 4:
		snprintf(w->what, sizeof(w->what), "fsync");
		return !fsync(w->plain);
	case 5:
	case 6:
	case 7:
	case 8:
		return walk_write(w, true);
	default:
		return walk_read(w, true);
	}
}

static long from_env(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

/* DIO_SEED repeats a walk, DIO_SECONDS makes it longer. */
TEST_F(any, random_walk_agrees_with_a_model)
{
	struct walk w = {
		.t = self->t, .model = calloc(1, WALK), .buf = dio_alloc(WALK),
	};
	unsigned int seed;
	unsigned long n;
	double until;
	ssize_t got;

	seed = from_env("DIO_SEED", time(NULL));
	w.seed = seed;
	if (variant->block_size)
		ASSERT_EQ(0, dio_target_mark(self->t, MARK));
	w.plain = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC);
	w.fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	ASSERT_LE(0, w.fd);
	if (!variant->block_size) {
		w.size = WALK;
		ASSERT_EQ(WALK, pwrite(w.fd, w.buf, WALK, 0));
		/* Reads past what the model has do not happen. */
	}
	/* the set-up alone takes a debugging kernel seconds */
	until = dio_now() + from_env("DIO_SECONDS", 3);
	for (n = 0; dio_now() < until; n++)
		ASSERT_TRUE(walk_step(&w))
			TH_LOG("DIO_SEED=%u, step %lu: %s, size %ld", seed, n,
			       w.what, (long)w.size);
	EXPECT_LT(20UL, n);
	if (variant->block_size) {
		close(w.plain);
		close(w.fd);
		EXPECT_EQ(0, dio_fs_check(&self->t->fs))
			TH_LOG("DIO_SEED=%u: %s", seed, dio_why());
		w.plain = dio_target_open(self->t, O_RDWR);
	} else {
		ASSERT_EQ(0, dio_drop_caches());
	}
	got = pread(w.plain, w.buf, WALK, 0);
	EXPECT_EQ(w.size, got);
	EXPECT_EQ(0, memcmp(w.buf, w.model, w.size))
		TH_LOG("DIO_SEED=%u: differs at the end", seed);
}

TEST_HARNESS_MAIN
