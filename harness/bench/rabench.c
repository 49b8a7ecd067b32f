// SPDX-License-Identifier: GPL-2.0
/*
 * rabench list | tick
 * rabench DISK PATTERN [SEED]
 *
 * Reads DISK, which nothing else uses, through one descriptor and the page
 * cache, as PATTERN says, and prints how long that took in nanoseconds, the
 * number of requests that reached the disk, the bytes these read and the bytes
 * that the program read. SEED moves the pattern to another place and, where it
 * is a random one, makes it another; 0, the default, is that of the goals.
 *
 * "list" prints the patterns' names. "tick" waits for the moment at which
 * null_blk lets a disk of limited bandwidth go on, if that was made right after
 * a "tick": all that is measured begins then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define K		1024L
#define M		(1024 * K)
#define PAGE		4096L
#define MAX_THREADS	16
#define MAX_READ	(128 * K)

static int disk;
static unsigned long used;	/* bytes */
static off_t base;		/* where patterns begin that begin anywhere */
static unsigned long state = 88172645463325252UL;

static void die(const char *what)
{
	fprintf(stderr, "rabench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Marsaglia's xorshift */
static unsigned long any(unsigned long below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static void get(off_t pos, size_t size)
{
	static char buf[MAX_READ];

	if (pread(disk, buf, size, pos) != (ssize_t)size)
		die("pread");
	used += size;
}

/* COUNT reads of SIZE bytes, STEP bytes apart; backwards if it is negative */
static void steps(off_t pos, long count, size_t size, off_t step)
{
	if (step < 0)
		pos -= step * (count - 1);
	for (; count--; pos += step)
		get(pos, size);
}

struct reader {
	pthread_t thread;
	off_t pos, end;
	size_t size;
};

static void *reading(void *arg)
{
	struct reader *r = arg;
	char buf[MAX_READ];

	for (; r->pos + (off_t)r->size <= r->end; r->pos += r->size)
		if (pread(disk, buf, r->size, r->pos) != (ssize_t)r->size)
			die("pread");
	return NULL;
}

/* N threads, each reads LENGTH bytes at a place of its own */
static void threads(int n, size_t size, off_t length)
{
	struct reader readers[MAX_THREADS];

	for (int i = 0; i < n; i++) {
		readers[i].pos = base + i * 60 * M + 37 * PAGE;
		readers[i].end = readers[i].pos + length;
		readers[i].size = size;
		used += length / size * size;
		errno = pthread_create(&readers[i].thread, NULL, reading,
				       &readers[i]);
		if (errno)
			die("pthread_create");
	}
	for (int i = 0; i < n; i++)
		pthread_join(readers[i].thread, NULL);
}

static void shuffle(int *order, int n)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = any(i + 1), other = order[i];

		order[i] = order[j];
		order[j] = other;
	}
}

/* Each window of PAGES pages in an order of its own, READS of them */
static void shuffled(int windows, int pages, int reads)
{
	int order[64];

	for (int w = 0; w < windows; w++) {
		shuffle(order, pages);
		for (int i = 0; i < reads; i++)
			get(base + (w * pages + order[i]) * PAGE, PAGE);
	}
}

static void jitter(void)
{
	static const int order[] = { 1, 0, 3, 2 };

	for (int i = 0; i < 4096; i++)
		get(base + (i / 4 * 4 + order[i % 4]) * PAGE, PAGE);
}

static void look_back(void)
{
	for (int i = 0; i < 2048; i++) {
		get(base + i * 2 * PAGE, 2 * PAGE);
		if (i % 8 == 7)
			get(base + (i - 4) * 2 * PAGE, PAGE);
	}
}

/* Many reads in one place of PAGES pages, then in another */
static void hot_places(long unit, long places, long pages)
{
	for (int w = 0; w < 64; w++) {
		off_t place = any(places) * unit;

		for (int i = 0; i < 64; i++)
			get(place + any(pages) * PAGE, PAGE);
	}
}

/* Within a window of 32 pages that moves up by three pages in four reads */
static void moving(void)
{
	for (long i = 0; i < 4096; i++)
		get(base + (i * 3 / 4 + any(32)) * PAGE, PAGE);
}

static void random_reads(int count, long places, size_t unit, long most)
{
	while (count--) {
		off_t pos = any(places) * unit;

		get(pos, most > 1 ? unit * (1 + any(most)) : unit);
	}
}

/* Short runs of LEAST to MOST pages at random places */
static void runs(int count, long places, long unit, long least, long most)
{
	while (count--) {
		off_t pos = any(places) * unit;

		for (long n = least + any(most - least + 1); n--; pos += PAGE)
			get(pos, PAGE);
	}
}

static void shuffled_runs(void)
{
	int order[16];

	for (int w = 0; w < 256; w++) {
		off_t place = any(4096) * 64 * K;

		shuffle(order, 16);
		for (int i = 0; i < 16; i++)
			get(place + order[i] * PAGE, PAGE);
	}
}

/* Upwards, with up to MOST - 1 pages left out each time */
static void skipping(long most)
{
	off_t pos = base;

	for (int i = 0; i < 2048; i++, pos += PAGE * (1 + any(most)))
		get(pos, PAGE);
}

/* Chunks of 32 KiB, page by page, every 256 KiB: one column of a table */
static void column(void)
{
	for (int i = 0; i < 256; i++)
		steps(base + i * 256 * K, 8, PAGE, PAGE);
}

/* Sequential, with a read of the index at random every so often */
static void with_index(void)
{
	for (long i = 0; i < 4096; i++) {
		get(base + i * PAGE, PAGE);
		if (i % 64 == 63)
			get(100 * M + any(30000) * PAGE, PAGE);
	}
}

/* The directory at the end first, then all members with a jump between them */
static void archive(void)
{
	off_t end = base + 200 * M, pos = base;

	get(end - PAGE, PAGE);
	steps(end - 64 * K, 16, PAGE, PAGE);
	for (int i = 0; i < 100; i++) {
		long n = 1 + any(40);

		get(pos, 512);
		steps(pos + 512, n, 8 * K, 8 * K);
		pos += n * 8 * K + any(64) * 512;
	}
}

/* A player that seeks: sequential for a while, then elsewhere */
static void player(void)
{
	for (int i = 0; i < 16; i++)
		steps(any(700) * M + any(M), 64, 32 * K, 32 * K);
}

static void read_again(void)
{
	for (int i = 0; i < 4; i++)
		steps(0, 512, PAGE, PAGE);
}

/* The first 20 have goals, see ra-goals. */
#define PATTERNS						\
	P("seq4k", steps(0, 4096, PAGE, PAGE))			\
	P("seq11k", steps(0, 1500, 11 * K, 11 * K))		\
	P("seq-midfile4k", steps(base + 31 * M, 4096, PAGE, PAGE)) \
	P("2thr-samefd-11k", threads(2, 11 * K, 16 * M))	\
	P("8thr-samefd-4k", threads(8, PAGE, 4 * M))		\
	P("8thr-samefd-64k", threads(8, 64 * K, 8 * M))		\
	P("stride-4of8k", steps(base, 2048, PAGE, 8 * K))	\
	P("stride-4of16k", steps(base, 2048, PAGE, 16 * K))	\
	P("stride-4of64k", steps(base, 1024, PAGE, 64 * K))	\
	P("backward4k", steps(base, 4096, PAGE, -PAGE))		\
	P("backward64k", steps(base, 256, 64 * K, -64 * K))	\
	P("winshuffle-128k-full", shuffled(128, 32, 32))	\
	P("winshuffle-128k-half", shuffled(128, 32, 16))	\
	P("jitter-seq", jitter())				\
	P("lseekback-reread", look_back())			\
	P("hot-random-regions", hot_places(256 * K, 900, 64))	\
	P("random4k", random_reads(2048, 65536, PAGE, 1))	\
	P("random16k", random_reads(1024, 16384, 16 * K, 1))	\
	P("random-chunk64k-4k", runs(256, 4096, 64 * K, 16, 16)) \
	P("cached-reread4k", read_again())			\
	P("3thr-samefd-7k", threads(3, 7 * K, 8 * M))		\
	P("16thr-samefd-20k", threads(16, 20 * K, 4 * M))	\
	P("backward11k", steps(base, 1500, 11 * K, -11 * K))	\
	P("stride-4of10000", steps(base, 2000, PAGE, 10000))	\
	P("stride-500of30000", steps(base, 2000, 500, 30000))	\
	P("stride-12of16k", steps(base, 1024, 12 * K, 16 * K))	\
	P("stride-8of40k-back", steps(base, 1024, 8 * K, -40 * K)) \
	P("hot-random-48-pages", hot_places(PAGE, 57600, 48))	\
	P("moving-window", moving())				\
	P("random4k-of-16m", random_reads(2048, 4096, PAGE, 1))	\
	P("random4k-64k", random_reads(2048, 262000, PAGE, 16))	\
	P("run20k", runs(400, 40000, 5000, 5, 5))		\
	P("run4k-96k", runs(340, 60000, PAGE, 1, 24))		\
	P("shuffled-run64k", shuffled_runs())			\
	P("skip-0-2", skipping(3))				\
	P("skip-0-7", skipping(8))				\
	P("column32of256k", column())				\
	P("seq+index", with_index())				\
	P("archive", archive())					\
	P("player", player())

static bool run(const char *name)
{
#define P(is, what)						\
	if (!strcmp(name, is)) {				\
		what;						\
		return true;					\
	}
	PATTERNS
#undef P
	return false;
}

static void list(void)
{
#define P(name, what)	puts(name);
	PATTERNS
#undef P
}

/* Requests and bytes that the disk has read */
static void statistics(const char *path, unsigned long *requests,
		       unsigned long *bytes)
{
	const char *name = strrchr(path, '/');
	char stat[64];
	FILE *f;

	snprintf(stat, sizeof(stat), "/sys/block/%s/stat", name ? name + 1 : path);
	f = fopen(stat, "r");
	if (!f || fscanf(f, "%lu %*u %lu", requests, bytes) != 2)
		die(stat);
	fclose(f);
	*bytes *= 512;
}

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

/* The next multiple of null_blk's 20 ms */
static void tick(void)
{
	unsigned long t = (now() / 20000000 + 1) * 20000000;
	struct timespec until = { t / 1000000000, t % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int argc, char **argv)
{
	unsigned long began, took, requests[2], bytes[2], seed;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "tick")) {
		tick();
		return 0;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: rabench list | tick | DISK PATTERN [SEED]\n");
		return 1;
	}
	seed = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	state ^= seed * 0x9e3779b97f4a7c15UL;
	base = M + (seed ? any(2048) * PAGE : 0);
	disk = open(argv[1], O_RDONLY);
	if (disk < 0)
		die(argv[1]);

	statistics(argv[1], &requests[0], &bytes[0]);
	tick();
	began = now();
	if (!run(argv[2])) {
		fprintf(stderr, "rabench: no pattern %s\n", argv[2]);
		return 1;
	}
	took = now() - began;
	usleep(20000);	/* readahead that is still on its way */
	statistics(argv[1], &requests[1], &bytes[1]);
	printf("%lu %lu %lu %lu\n", took, requests[1] - requests[0],
	       bytes[1] - bytes[0], used);
	return 0;
}
