// SPDX-License-Identifier: GPL-2.0
/*
 * Direct I/O beside the page cache: buffered I/O, mmap, splice and loop on the
 * same file, by the same thread and by others.
 */
#include "../kselftest_harness.h"
#include "dio.h"
#include "fixture-any.h"

#include <linux/loop.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#define SIZE (256 * KIB)
#define BY(m) TH_LOG("by %s", dio_method_name(m))

/* One descriptor for each way; the file holds pattern 1. */
static int open_both(struct dio_target *t, int *plain)
{
	void *buf = dio_alloc(SIZE);
	int fd;

	*plain = dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC);
	fd = dio_target_open(t, O_RDWR | O_DIRECT);
	dio_fill(buf, SIZE, 0, 1);
	if (fd >= 0 && (pwrite(*plain, buf, SIZE, 0) != SIZE || fsync(*plain)))
		fd = -1;
	munmap(buf, SIZE);
	return fd;
}

static int cached_pages(int fd, off_t pos, size_t len)
{
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, pos);
	unsigned char vec[SIZE / 4096];
	unsigned int i;
	int nr = 0;

	if (map == MAP_FAILED || mincore(map, len, vec))
		return -1;
	for (i = 0; i < len / 4096; i++)
		nr += vec[i] & 1;
	munmap(map, len);
	return nr;
}

TEST_F(any, direct_read_sees_buffered_write)
{
	void *buf = dio_alloc(SIZE);
	enum dio_method m;
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf, 20000, 30000, 10 + m);
		ASSERT_EQ(20000, pwrite(plain, buf, 20000, 30000));
		ASSERT_EQ(SIZE, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, 30000, 0, 1)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 30000, 20000, 30000, 10 + m))
			BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 50000, SIZE - 50000, 50000, 1))
			BY(m);
	}
}

TEST_F(any, buffered_read_sees_direct_write)
{
	unsigned int lbs = self->lbs;
	void *buf = dio_alloc(SIZE);
	enum dio_method m;
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* All of it cached and clean. */
		ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
		dio_fill(buf, 5 * lbs, 3 * lbs, 10 + m);
		ASSERT_EQ((ssize_t)(5 * lbs), dio_rw(m, DIO_WRITE, fd, buf,
						     5 * lbs, 3 * lbs)) BY(m);
		ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
		EXPECT_EQ(-1, dio_differs(buf, 3 * lbs, 0, 1)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 3 * lbs, 5 * lbs, 3 * lbs,
					  10 + m)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 8 * lbs, SIZE - 8 * lbs,
					  8 * lbs, 1)) BY(m);
	}
}

TEST_F(any, direct_write_over_part_of_dirty_pages)
{
	unsigned int lbs = self->lbs;
	void *buf = dio_alloc(SIZE);
	enum dio_method m;
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* All dirty; a few sectors in the middle go direct. */
		dio_fill(buf, SIZE, 0, 10 + m);
		ASSERT_EQ(SIZE, pwrite(plain, buf, SIZE, 0));
		dio_fill(buf, 3 * lbs, 9 * lbs, 20 + m);
		ASSERT_EQ((ssize_t)(3 * lbs), dio_rw(m, DIO_WRITE, fd, buf,
						     3 * lbs, 9 * lbs)) BY(m);
		ASSERT_EQ(0, dio_drop_caches());
		ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
		EXPECT_EQ(-1, dio_differs(buf, 9 * lbs, 0, 10 + m)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 9 * lbs, 3 * lbs, 9 * lbs,
					  20 + m)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 12 * lbs, SIZE - 12 * lbs,
					  12 * lbs, 10 + m)) BY(m);
	}
}

TEST_F(any, direct_write_drops_the_pages_it_covers)
{
	void *buf = dio_alloc(SIZE);
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	ASSERT_EQ(SIZE / 4096, cached_pages(plain, 0, SIZE));
	ASSERT_EQ(65536, pwrite(fd, buf, 65536, 65536));
	EXPECT_EQ(0, cached_pages(plain, 65536, 65536));
	/* A device's large folios go whole, ext2's pages one by one. */
	if (variant->block_size)
		EXPECT_EQ((SIZE - 65536) / 4096, cached_pages(plain, 0, SIZE));
}

TEST_F(any, direct_read_keeps_clean_pages)
{
	void *buf = dio_alloc(SIZE);
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 1));
	EXPECT_EQ(SIZE / 4096, cached_pages(plain, 0, SIZE));
}

TEST_F(any, direct_io_caches_nothing)
{
	void *buf = dio_alloc(SIZE);
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	ASSERT_EQ(SIZE, pwrite(fd, buf, SIZE, 0));
	EXPECT_EQ(0, cached_pages(plain, 0, SIZE));
}

TEST_F(any, direct_read_sees_mmap_stores)
{
	unsigned char *map, *buf = dio_alloc(SIZE);
	enum dio_method m;
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
	ASSERT_NE(MAP_FAILED, (void *)map);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(map + 5000, 70000, 5000, 10 + m);
		ASSERT_EQ(SIZE, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(0, memcmp(buf, map, SIZE)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + 5000, 70000, 5000, 10 + m))
			BY(m);
	}
}

TEST_F(any, mmap_sees_direct_write)
{
	unsigned char *map, *buf = dio_alloc(SIZE);
	enum dio_method m;
	int fd, plain;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
	ASSERT_NE(MAP_FAILED, (void *)map);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* Mapped and dirty, then overwritten on the disk. */
		memset(map, m, SIZE);
		dio_fill(buf, 65536, 8192, 10 + m);
		ASSERT_EQ(65536, dio_rw(m, DIO_WRITE, fd, buf, 65536, 8192))
			BY(m);
		EXPECT_EQ(-1, dio_differs(map + 8192, 65536, 8192, 10 + m))
			BY(m);
		EXPECT_EQ(-1, dio_not_byte(map, 8192, m)) BY(m);
		EXPECT_EQ(-1, dio_not_byte(map + 73728, SIZE - 73728, m)) BY(m);
	}
}

/*
 * A page in a pipe is referenced and cannot be dropped from the cache. The
 * write then has to come out the same by way of the cache.
 */
TEST_F(any, write_over_pages_held_by_a_pipe)
{
	void *buf = dio_alloc(SIZE);
	enum dio_method m, last = DIO_SYNC;
	loff_t off = 4096;
	int fd, plain, p[2];

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(p));
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	ASSERT_EQ(16384, splice(plain, &off, p[1], NULL, 16384, 0));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		last = m;
		dio_fill(buf, SIZE, 0, 10 + m);
		ASSERT_EQ(SIZE, dio_rw(m, DIO_WRITE, fd, buf, SIZE, 0)) BY(m);
		memset(buf, 0, SIZE);
		ASSERT_EQ(SIZE, dio_rw(m, DIO_READ, fd, buf, SIZE, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 10 + m)) BY(m);
		ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
		EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 10 + m)) BY(m);
	}
	close(p[0]);
	close(p[1]);
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 10 + last));
}

/* ---- other threads ---- */

struct worker {
	pthread_t thread;
	int fd;
	bool direct;
	unsigned int unit;
	size_t pos;
	size_t len;
	__u32 seed;
	double until;
	bool failed;
};

/* Own region: write all of it in units, read back, compare; until time is up. */
static void *work(void *arg)
{
	struct worker *w = arg;
	void *buf = dio_alloc(w->len);
	size_t i;

	while (!w->failed && dio_now() < w->until) {
		dio_fill(buf, w->len, w->pos, ++w->seed);
		for (i = 0; i < w->len; i += w->unit)
			if (pwrite(w->fd, buf + i, w->unit, w->pos + i) !=
			    w->unit)
				w->failed = true;
		memset(buf, 0, w->len);
		if (pread(w->fd, buf, w->len, w->pos) != (ssize_t)w->len ||
		    dio_differs(buf, w->len, w->pos, w->seed) >= 0)
			w->failed = true;
	}
	munmap(buf, w->len);
	return NULL;
}

static bool run_workers(struct worker *w, int nr, double seconds)
{
	bool ok = true;
	int i;

	for (i = 0; i < nr; i++) {
		w[i].until = dio_now() + seconds;
		w[i].seed = i << 16;
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			abort();
	}
	for (i = 0; i < nr; i++) {
		pthread_join(w[i].thread, NULL);
		ok = ok && !w[i].failed;
	}
	return ok;
}

TEST_F(any, four_threads_overwrite_regions_of_their_own)
{
	struct worker w[4] = { 0 };
	void *buf = dio_alloc(SIZE);
	int fd, plain, i;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		w[i].fd = fd;
		w[i].unit = self->lbs << (i % 3);
		w[i].pos = i * SIZE / 4;
		w[i].len = SIZE / 4;
	}
	EXPECT_TRUE(run_workers(w, 4, 0.6));
	/* Nobody wrote over a neighbour, on the disk neither. */
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(-1, dio_differs(buf + w[i].pos, w[i].len, w[i].pos,
					  w[i].seed)) TH_LOG("thread %d", i);
}

TEST_F(any, threads_direct_and_buffered_side_by_side)
{
	struct worker w[4] = { 0 };
	void *buf = dio_alloc(SIZE);
	int fd, plain, i;

	/* Their regions meet in no page, so each must see its own data. */
	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		w[i].fd = i & 1 ? plain : fd;
		w[i].unit = 4096;
		w[i].pos = i * SIZE / 4;
		w[i].len = SIZE / 4;
	}
	EXPECT_TRUE(run_workers(w, 4, 0.6));
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(-1, dio_differs(buf + w[i].pos, w[i].len, w[i].pos,
					  w[i].seed)) TH_LOG("thread %d", i);
}

/* Stores to a mapping of a region that nobody else writes, until told. */
struct mapper {
	unsigned char *map;
	size_t pos, len;
	__u32 seed;
	double until;
};

static void *store(void *arg)
{
	struct mapper *m = arg;

	while (dio_now() < m->until) {
		dio_fill(m->map + m->pos, m->len, m->pos, ++m->seed);
		usleep(1000);
	}
	return NULL;
}

TEST_F(any, mmap_stores_survive_direct_writes_beside_them)
{
	struct mapper m = { .pos = SIZE / 2, .len = SIZE / 2, .seed = 100 };
	void *buf = dio_alloc(SIZE);
	pthread_t thread;
	int fd, plain;
	__u32 seed = 1;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	m.map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
	ASSERT_NE(MAP_FAILED, (void *)m.map);
	m.until = dio_now() + 0.6;
	ASSERT_EQ(0, pthread_create(&thread, NULL, store, &m));
	while (dio_now() < m.until) {
		dio_fill(buf, SIZE / 2, 0, ++seed);
		ASSERT_EQ(SIZE / 2, pwrite(fd, buf, SIZE / 2, 0));
		ASSERT_EQ(-1, dio_differs(m.map, SIZE / 2, 0, seed));
		/* Reads over pages that are being dirtied. */
		ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
		ASSERT_EQ(-1, dio_differs(buf, SIZE / 2, 0, seed));
	}
	pthread_join(thread, NULL);
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf + m.pos, m.len, m.pos, m.seed));
	munmap(m.map, SIZE);
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE / 2, 0, seed));
	EXPECT_EQ(-1, dio_differs(buf + m.pos, m.len, m.pos, m.seed));
}

/* ---- the kernel as the caller: bvec iterators ---- */

TEST_F(any, splice_from_a_direct_file)
{
	void *buf = dio_alloc(65536);
	int fd, plain, p[2];
	loff_t off = 8192;
	ssize_t n, got = 0;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(p));
	while (got < 65536) {
		n = splice(fd, &off, p[1], NULL, 32768, 0);
		ASSERT_LT(0, n);
		ASSERT_EQ(n, read(p[0], buf, n));
		ASSERT_EQ(-1, dio_differs(buf, n, 8192 + got, 1));
		got += n;
	}
}

TEST_F(any, splice_to_a_direct_file)
{
	void *buf = dio_alloc(SIZE);
	int fd, plain, p[2];
	loff_t off;
	ssize_t n;
	int i;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(p));
	for (i = 0; i < 8; i++) {
		off = i * 16384;
		dio_fill(buf, 16384, off, 2);
		ASSERT_EQ(16384, write(p[1], buf, 16384));
		for (n = 0; n < 16384; n += 4096)
			ASSERT_EQ(4096, splice(p[0], NULL, fd, &off, 4096, 0));
	}
	ASSERT_EQ(0, dio_drop_caches());
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, 8 * 16384, 0, 2));
	EXPECT_EQ(-1, dio_differs(buf + 8 * 16384, SIZE - 8 * 16384, 8 * 16384,
				  1));
}

TEST_F(any, sendfile_from_a_direct_file)
{
	void *buf = dio_alloc(SIZE);
	int fd, plain, out;
	off_t off = 0;
	ssize_t n;

	fd = open_both(self->t, &plain);
	ASSERT_LE(0, fd);
	out = memfd_create("out", 0);
	while (off < SIZE) {
		n = sendfile(out, fd, &off, SIZE - off);
		ASSERT_LT(0, n);
	}
	ASSERT_EQ(SIZE, pread(out, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 1));
}

TEST_F(any, loop_with_direct_io)
{
	char loop[32], dir[] = "/tmp/dioloopXXXXXX", path[64];
	void *buf = dio_alloc(MIB);
	int ctl, lo, back, fd, n;
	int use = 1;

	ctl = open("/dev/loop-control", O_RDWR);
	if (ctl < 0)
		SKIP(return, "no loop devices: %s", strerror(errno));
	n = ioctl(ctl, LOOP_CTL_GET_FREE);
	ASSERT_LE(0, n);
	snprintf(loop, sizeof(loop), "/dev/loop%d", n);
	back = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC);
	if (variant->block_size)
		ASSERT_EQ(0, ftruncate(back, 12 * MIB));
	lo = open(loop, O_RDWR);
	ASSERT_LE(0, lo);
	ASSERT_EQ(0, ioctl(lo, LOOP_SET_FD, back));
	if (self->lbs > 512)
		ASSERT_EQ(0, ioctl(lo, LOOP_SET_BLOCK_SIZE,
				   (unsigned long)self->lbs));
	ASSERT_EQ(0, ioctl(lo, LOOP_SET_DIRECT_IO, (unsigned long)use))
		TH_LOG("%s", strerror(errno));
	/* Closed, so that what mke2fs leaves in the device's cache goes. */
	close(lo);
	ASSERT_NE(NULL, mkdtemp(dir));
	/* A filesystem inside, and direct I/O through both layers. */
	EXPECT_EQ(0, dio_mkfs_ext2(loop, 4096)) TH_LOG("%s", dio_why());
	EXPECT_EQ(0, dio_mount(loop, "ext2", dir)) TH_LOG("%s", dio_why());
	snprintf(path, sizeof(path), "%s/f", dir);
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	dio_fill(buf, MIB, 0, 7);
	EXPECT_EQ(MIB, pwrite(fd, buf, MIB, 0));
	memset(buf, 0, MIB);
	EXPECT_EQ(MIB, pread(fd, buf, MIB, 0));
	EXPECT_EQ(-1, dio_differs(buf, MIB, 0, 7));
	close(fd);
	EXPECT_EQ(0, dio_umount(dir)) TH_LOG("%s", dio_why());
	EXPECT_EQ(0, dio_fsck_ext2(loop)) TH_LOG("%s", dio_why());
	lo = open(loop, O_RDWR);
	ioctl(lo, LOOP_CLR_FD, 0);
	close(lo);
	close(back);
	rmdir(dir);
}

TEST_F(any, filesystem_is_clean_afterwards)
{
	if (!variant->block_size)
		SKIP(return, "no filesystem");
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
}

TEST_HARNESS_MAIN
