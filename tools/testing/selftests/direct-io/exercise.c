// SPDX-License-Identifier: GPL-2.0
/*
 * Exercises that several test programs give a file: threads that race, and a
 * random walk beside a model.
 */
#include "dio.h"

#include <pthread.h>
#include <stdarg.h>
#include <time.h>

#define SIZE (256 * KIB)
#define POISON 0x5a	/* in memory before a read */

/* What went wrong, for who called. */
static int failed(struct dio_target *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
	return -EIO;
}

/* ---- threads that race ---- */

struct racer {
	pthread_t thread;
	struct dio_target *t;
	unsigned int seed;
	double until;
	bool failed;
	char why[128];
};

/* Note the first failure, and go on: the others may depend on it. */
static void race_failed(struct racer *r, const char *fmt, ...)
{
	va_list ap;

	if (r->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	r->failed = true;
}

static int race_open(struct racer *r, int flags)
{
	int fd = dio_target_open(r->t, flags);

	if (fd < 0)
		race_failed(r, "%s: %s", dio_target_path(r->t), strerror(-fd));
	return fd;
}

/*
 * A sector is the pattern of its place, or zeroes, or a start of the one; where
 * the read was not one moment's (see tears()) zeroes may also come before what
 * is written. Returns where it is none of that, or -1.
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
	int fd = race_open(r, O_RDWR | O_DIRECT);
	void *buf = dio_alloc(SIZE);
	unsigned int lbs = r->t->lbs;
	off_t pos;
	size_t len;
	ssize_t n;

	do {
		pos = rand_r(&r->seed) % (SIZE / lbs) * lbs;
		len = (1 + rand_r(&r->seed) % (SIZE / lbs / 4)) * lbs;
		dio_fill(buf, len, pos, 1);
		n = dio_rw(rand_r(&r->seed) % DIO_URING_POLL, DIO_WRITE, fd,
			   buf, len, pos);
		if (n != (ssize_t)len)
			race_failed(r, "write of %zu bytes at %lld: %zd", len,
				    (long long)pos, n);
	} while (dio_now() < r->until);
	munmap(buf, SIZE);
	close(fd);
	return NULL;
}

/*
 * A read through the page cache may meet the write of a hole half way. A direct
 * one that came to the end of the file goes on through the page cache when the
 * end has moved in the meantime, unless it holds a lock as on ext2.
 */
static bool tears(struct racer *r, bool direct)
{
	return !direct || r->t->fs.type;
}

static void *race_read(void *arg)
{
	struct racer *r = arg;
	int fd = race_open(r, O_RDWR | O_DIRECT), plain = race_open(r, O_RDWR);
	unsigned char *buf = dio_alloc(2 * SIZE);
	ssize_t n, at;
	bool direct;

	do {
		direct = rand_r(&r->seed) % 3;
		memset(buf, POISON, 2 * SIZE);
		n = dio_rw(rand_r(&r->seed) % DIO_URING_POLL, DIO_READ,
			   direct ? fd : plain, buf, 2 * SIZE, 0);
		if (n < 0)
			race_failed(r, "read: %zd", n);
		at = n < 0 ? -1 : insane(buf, n, 0, tears(r, direct));
		if (at >= 0)
			race_failed(r, "%s read of %zd bytes: stale or foreign at %zd: %016llx",
				    direct ? "direct" : "buffered", n, at,
				    *(unsigned long long *)(buf + (at & ~7)));
	} while (dio_now() < r->until);
	munmap(buf, 2 * SIZE);
	close(plain);
	close(fd);
	return NULL;
}

static void *race_truncate(void *arg)
{
	struct racer *r = arg;
	int fd = race_open(r, O_RDWR);

	do {
		if (ftruncate(fd, rand_r(&r->seed) % (2 * SIZE)))
			race_failed(r, "truncate: %s", strerror(errno));
		usleep(rand_r(&r->seed) % 2000);
	} while (dio_now() < r->until);
	close(fd);
	return NULL;
}

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
	int direct = race_open(r, O_RDWR | O_DIRECT);
	int plain = race_open(r, O_RDWR);
	void *buf = dio_alloc(SIZE);
	char other[96];

	snprintf(other, sizeof(other), "%s/other", r->t->fs.dir);
	do {
		if (!reallocate(r, rand_r(&r->seed) % 3 ? direct : plain, other, buf))
			race_failed(r, "reallocating: %s", strerror(errno));
	} while (dio_now() < r->until);
	unlink(other);
	munmap(buf, SIZE);
	close(plain);
	close(direct);
	return NULL;
}

/* All four at it, once at least; one that failed is told in t->why. */
static int race_run(struct dio_target *t, const enum dio_racer what[4],
		    double seconds)
{
	static void *(*const racers[])(void *) = {
		[DIO_RACE_READ] = race_read,
		[DIO_RACE_WRITE] = race_write,
		[DIO_RACE_TRUNCATE] = race_truncate,
		[DIO_RACE_REALLOCATE] = race_reallocate,
	};
	struct racer r[4] = { 0 };
	int i, err = 0;

	for (i = 0; i < 4; i++) {
		r[i].t = t;
		r[i].seed = i + 1;
		r[i].until = dio_now() + seconds;
		if (pthread_create(&r[i].thread, NULL, racers[what[i]], &r[i]))
			abort();
	}
	for (i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		if (r[i].failed)
			err = failed(t, "thread %d: %s", i, r[i].why);
	}
	return err;
}

/**
 * dio_race() - four threads on one file of a filesystem
 * @t: the filesystem
 * @what: what each of them does
 * @seconds: for how long
 *
 * They write nothing but pattern 1 (and truncate, and reallocate), so that a
 * read finds that, zeroes, or an error. So does one after fsck and a new mount.
 *
 * Return: 0, or -EIO with the reason in @t->why.
 */
int dio_race(struct dio_target *t, const enum dio_racer what[4],
	     double seconds)
{
	int fd = dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC);
	void *buf;
	ssize_t n;
	int err;

	if (fd < 0)
		return failed(t, "%s", dio_why());
	close(fd);
	err = race_run(t, what, seconds);
	if (dio_fs_check(&t->fs))
		return failed(t, "%s", dio_why());
	if (err)
		return err;
	buf = dio_alloc(2 * SIZE);
	fd = dio_target_open(t, O_RDWR);
	n = pread(fd, buf, 2 * SIZE, 0);
	if (n < 0 || insane(buf, n, 0, false) >= 0)
		err = failed(t, "mounted again, %zd bytes, stale or foreign at %zd",
			     n, n < 0 ? n : insane(buf, n, 0, false));
	munmap(buf, 2 * SIZE);
	close(fd);
	return err;
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
	unsigned int first, seed;
	unsigned long step;
	ssize_t got;
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
	w->got = direct ? dio_rw(m, DIO_WRITE, w->fd, w->buf, len, pos) :
			  pwrite(w->plain, w->buf, len, pos);
	return w->got == (ssize_t)len;
}

static bool walk_read(struct walk *w, bool direct)
{
	enum dio_method m = rand_r(&w->seed) % DIO_URING_POLL;
	ssize_t want;
	off_t pos;
	size_t len;

	walk_range(w, &pos, &len, direct ? w->t->lbs : 1);
	want = pos >= w->size ? 0 : w->size - pos < (off_t)len ?
	       w->size - pos : (off_t)len;
	snprintf(w->what, sizeof(w->what), "%s read %zu at %ld by %s",
		 direct ? "direct" : "buffered", len, (long)pos,
		 direct ? dio_method_name(m) : "sync");
	memset(w->buf, POISON, len);
	w->got = direct ? dio_rw(m, DIO_READ, w->fd, w->buf, len, pos) :
			  pread(w->plain, w->buf, len, pos);
	return w->got == want && !memcmp(w->buf, w->model + pos, want);
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

static int walk_steps(struct walk *w, double seconds)
{
	double until = dio_now() + seconds;
	unsigned long n;

	for (n = 0; n < 20 || dio_now() < until; n++)
		if (!walk_step(w))
			return failed(w->t, "DIO_SEED=%u, step %lu: %s, size %ld: %zd",
				      w->first, n, w->what, (long)w->size,
				      w->got);
	return 0;
}

/* What is there in the end, after fsck and a new mount if it is a filesystem. */
static int walk_end(struct walk *w)
{
	struct dio_target *t = w->t;
	ssize_t n;
	int fd, err;

	err = t->block_size ? dio_fs_check(&t->fs) : dio_drop_caches();
	if (err)
		return failed(t, "DIO_SEED=%u: %s", w->first, dio_why());
	fd = dio_target_open(t, O_RDONLY);
	n = pread(fd, w->buf, WALK, 0);
	close(fd);
	if (n != w->size || memcmp(w->buf, w->model, n))
		return failed(t, "DIO_SEED=%u: differs at the end", w->first);
	return 0;
}

static long from_env(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

/**
 * dio_walk() - steps of all kinds at random, beside a model in memory
 * @t: filesystem or device
 * @seconds: for how long, unless DIO_SECONDS says otherwise
 *
 * DIO_SEED repeats a walk.
 *
 * Return: 0, or -EIO with the reason in @t->why.
 */
int dio_walk(struct dio_target *t, double seconds)
{
	struct walk w = {
		.t = t, .model = dio_alloc(WALK), .buf = dio_alloc(WALK),
	};
	int err;

	w.first = from_env("DIO_SEED", time(NULL));
	w.seed = w.first;
	w.plain = dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC);
	w.fd = dio_target_open(t, O_RDWR | O_DIRECT);
	/* Reads past what the model has of a device do not happen. */
	if (!t->block_size)
		w.size = pwrite(w.fd, w.buf, WALK, 0);
	err = w.fd < 0 || w.size < 0 ? failed(t, "%s: %m", dio_target_path(t)) :
	      walk_steps(&w, from_env("DIO_SECONDS", 0) ?: seconds);
	close(w.plain);
	close(w.fd);
	err = err ?: walk_end(&w);
	munmap(w.buf, WALK);
	munmap(w.model, WALK);
	return err;
}
