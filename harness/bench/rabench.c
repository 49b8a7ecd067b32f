// SPDX-License-Identifier: GPL-2.0
/*
 * rabench list | tick | lay DIR TRACE
 * rabench DISK PATTERN [SEED]
 * rabench DISK replay DIR TRACE
 *
 * Reads DISK, which nothing else uses, through one descriptor and the page
 * cache, as PATTERN says, and prints how long that took in nanoseconds, the
 * number of requests that reached the disk, the bytes these read and the bytes
 * that the program read. SEED moves the pattern to another place and, where it
 * is a random one, makes it another; 0, the default, is that of the goals.
 *
 * "replay" does the same with the reads of a program in TRACE, see struct traced,
 * of files in DIR, on DISK, that "lay" has made before.
 *
 * "list" prints the patterns' names. "tick" waits for the moment at which
 * null_blk lets a disk of limited bandwidth go on, if that was made right after
 * a "tick": all that is measured begins then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define K		1024L
#define M		(1024 * K)
#define PAGE		4096L
#define MAX_THREADS	16
#define MAX_READ	(128 * K)
#define MAX_FILES	4096

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

/* ARG: reads, bytes of each, bytes from one to the next; from the disk's start */
static void from_start(const long *arg)
{
	steps(0, arg[0], arg[1], arg[2]);
}

/* The same in the middle of the disk, ARG[3] bytes further on */
static void from_base(const long *arg)
{
	steps(base + arg[3], arg[0], arg[1], arg[2]);
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

/* ARG: threads, bytes a read and bytes that each reads, at a place of its own */
static void threads(const long *arg)
{
	struct reader readers[MAX_THREADS];
	long n = arg[0], size = arg[1], length = arg[2];

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

/* ARG: windows, pages of each, how many of these to read; in any order */
static void shuffled(const long *arg)
{
	long windows = arg[0], pages = arg[1], reads = arg[2];
	int order[64];

	for (int w = 0; w < windows; w++) {
		shuffle(order, pages);
		for (int i = 0; i < reads; i++)
			get(base + (w * pages + order[i]) * PAGE, PAGE);
	}
}

static void jitter(const long *arg)
{
	static const int order[] = { 1, 0, 3, 2 };

	for (int i = 0; i < arg[0]; i++)
		get(base + (i / 4 * 4 + order[i % 4]) * PAGE, PAGE);
}

static void look_back(const long *arg)
{
	for (int i = 0; i < arg[0]; i++) {
		get(base + i * 2 * PAGE, 2 * PAGE);
		if (i % 8 == 7)
			get(base + (i - 4) * 2 * PAGE, PAGE);
	}
}

/* ARG: bytes between places, places, pages: many reads in one, then in another */
static void hot_places(const long *arg)
{
	long unit = arg[0], places = arg[1], pages = arg[2];

	for (int w = 0; w < 64; w++) {
		off_t place = any(places) * unit;

		for (int i = 0; i < 64; i++)
			get(place + any(pages) * PAGE, PAGE);
	}
}

/* Within a window of 32 pages that moves up by three pages in four reads */
static void moving(const long *arg)
{
	for (long i = 0; i < arg[0]; i++)
		get(base + (i * 3 / 4 + any(32)) * PAGE, PAGE);
}

/* ARG: reads, places, bytes between these, and up to how many of them to read */
static void random_reads(const long *arg)
{
	long count = arg[0], places = arg[1], most = arg[3];
	size_t unit = arg[2];

	while (count--) {
		off_t pos = any(places) * unit;

		get(pos, most > 1 ? unit * (1 + any(most)) : unit);
	}
}

/* ARG: runs, places, bytes between these, least and most pages of a run */
static void runs(const long *arg)
{
	long count = arg[0], places = arg[1], unit = arg[2];
	long least = arg[3], most = arg[4];

	while (count--) {
		off_t pos = any(places) * unit;

		for (long n = least + any(most - least + 1); n--; pos += PAGE)
			get(pos, PAGE);
	}
}

static void shuffled_runs(const long *arg)
{
	int order[16];

	for (int w = 0; w < arg[0]; w++) {
		off_t place = any(4096) * 64 * K;

		shuffle(order, 16);
		for (int i = 0; i < 16; i++)
			get(place + order[i] * PAGE, PAGE);
	}
}

/* ARG: one more than how many pages may be left out each time, upwards */
static void skipping(const long *arg)
{
	long most = arg[0];
	off_t pos = base;

	for (int i = 0; i < 2048; i++, pos += PAGE * (1 + any(most)))
		get(pos, PAGE);
}

/* Chunks of 32 KiB, page by page, every 256 KiB: one column of a table */
static void column(const long *arg)
{
	for (int i = 0; i < arg[0]; i++)
		steps(base + i * 256 * K, 8, PAGE, PAGE);
}

/* Sequential, with a read of the index at random every so often */
static void with_index(const long *arg)
{
	for (long i = 0; i < arg[0]; i++) {
		get(base + i * PAGE, PAGE);
		if (i % 64 == 63)
			get(100 * M + any(30000) * PAGE, PAGE);
	}
}

/* The directory at the end first, then all members with a jump between them */
static void archive(const long *arg)
{
	off_t end = base + 200 * M, pos = base;

	get(end - PAGE, PAGE);
	steps(end - 64 * K, 16, PAGE, PAGE);
	for (int i = 0; i < arg[0]; i++) {
		long n = 1 + any(40);

		get(pos, 512);
		steps(pos + 512, n, 8 * K, 8 * K);
		pos += n * 8 * K + any(64) * 512;
	}
}

/* A player that seeks: sequential for a while, then elsewhere */
static void player(const long *arg)
{
	for (int i = 0; i < arg[0]; i++)
		steps(any(700) * M + any(M), 64, 32 * K, 32 * K);
}

static void read_again(const long *arg)
{
	for (int i = 0; i < arg[0]; i++)
		steps(0, 512, PAGE, PAGE);
}

/* The first 20 have goals, see ra-goals. One number alone is how many rounds. */
static const struct pattern {
	const char *name;
	void (*run)(const long *arg);
	long arg[5];
} patterns[] = {
	{ "seq4k", from_start, { 4096, PAGE, PAGE } },
	{ "seq11k", from_start, { 1500, 11 * K, 11 * K } },
	{ "seq-midfile4k", from_base, { 4096, PAGE, PAGE, 31 * M } },
	{ "2thr-samefd-11k", threads, { 2, 11 * K, 16 * M } },
	{ "8thr-samefd-4k", threads, { 8, PAGE, 4 * M } },
	{ "8thr-samefd-64k", threads, { 8, 64 * K, 8 * M } },
	{ "stride-4of8k", from_base, { 2048, PAGE, 8 * K } },
	{ "stride-4of16k", from_base, { 2048, PAGE, 16 * K } },
	{ "stride-4of64k", from_base, { 1024, PAGE, 64 * K } },
	{ "backward4k", from_base, { 4096, PAGE, -PAGE } },
	{ "backward64k", from_base, { 256, 64 * K, -64 * K } },
	{ "winshuffle-128k-full", shuffled, { 128, 32, 32 } },
	{ "winshuffle-128k-half", shuffled, { 128, 32, 16 } },
	{ "jitter-seq", jitter, { 4096 } },
	{ "lseekback-reread", look_back, { 2048 } },
	{ "hot-random-regions", hot_places, { 256 * K, 900, 64 } },
	{ "random4k", random_reads, { 2048, 65536, PAGE, 1 } },
	{ "random16k", random_reads, { 1024, 16384, 16 * K, 1 } },
	{ "random-chunk64k-4k", runs, { 256, 4096, 64 * K, 16, 16 } },
	{ "cached-reread4k", read_again, { 4 } },
	{ "3thr-samefd-7k", threads, { 3, 7 * K, 8 * M } },
	{ "16thr-samefd-20k", threads, { 16, 20 * K, 4 * M } },
	{ "backward11k", from_base, { 1500, 11 * K, -11 * K } },
	{ "stride-4of10000", from_base, { 2000, PAGE, 10000 } },
	{ "stride-500of30000", from_base, { 2000, 500, 30000 } },
	{ "stride-12of16k", from_base, { 1024, 12 * K, 16 * K } },
	{ "stride-8of40k-back", from_base, { 1024, 8 * K, -40 * K } },
	{ "hot-random-48-pages", hot_places, { PAGE, 57600, 48 } },
	{ "moving-window", moving, { 4096 } },
	{ "random4k-of-16m", random_reads, { 2048, 4096, PAGE, 1 } },
	{ "random4k-64k", random_reads, { 2048, 262000, PAGE, 16 } },
	{ "run20k", runs, { 400, 40000, 5000, 5, 5 } },
	{ "run4k-96k", runs, { 340, 60000, PAGE, 1, 24 } },
	{ "shuffled-run64k", shuffled_runs, { 256 } },
	{ "skip-0-2", skipping, { 3 } },
	{ "skip-0-7", skipping, { 8 } },
	{ "column32of256k", column, { 256 } },
	{ "seq+index", with_index, { 4096 } },
	{ "archive", archive, { 100 } },
	{ "player", player, { 16 } },
};

#define PATTERNS	(sizeof(patterns) / sizeof(*patterns))

static bool run(const char *name)
{
	for (size_t i = 0; i < PATTERNS; i++) {
		if (!strcmp(name, patterns[i].name)) {
			patterns[i].run(patterns[i].arg);
			return true;
		}
	}
	return false;
}

static void list(void)
{
	for (size_t i = 0; i < PATTERNS; i++)
		puts(patterns[i].name);
}

/**
 * struct traced - a file of a trace
 * @fd: its descriptor, or -1 as long as nothing has been read
 * @size: bytes when the program began
 * @map: where it is mapped, or NULL
 *
 * A trace has a line "file BYTES" for each file, which are counted from 1, and
 * then, in the order in which they came, a line "FILE PAGE COUNT [TIMES]" for
 * reads of COUNT pages, TIMES of them one behind the other, and a line "FILE PAGE
 * fault" for a page of a mapping that was touched. Reads above the file's size
 * are of pages that another program has just appended.
 */
struct traced {
	int fd;
	off_t size;
	char *map;
};

static struct traced files[MAX_FILES + 1];

static void path_of(char *path, const char *dir, long file)
{
	snprintf(path, PATH_MAX, "%s/%ld", dir, file);
}

static void append(const char *dir, long file, off_t size)
{
	static const char page[PAGE];
	char path[PATH_MAX];
	int fd;

	path_of(path, dir, file);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0)
		die(path);
	while (size > 0) {
		ssize_t n = write(fd, page, size < PAGE ? size : PAGE);

		if (n < 0)
			die(path);
		size -= n;
	}
	close(fd);
}

static struct traced *traced(const char *dir, long file)
{
	struct traced *f = &files[file];
	char path[PATH_MAX];

	if (file < 1 || file > MAX_FILES || !f->size) {
		errno = EINVAL;
		die("trace");
	}
	if (f->fd < 0) {
		path_of(path, dir, file);
		f->fd = open(path, O_RDONLY);
		if (f->fd < 0)
			die(path);
	}
	return f;
}

static void touch(struct traced *f, long page)
{
	if (!f->map) {
		f->map = mmap(NULL, f->size, PROT_READ, MAP_SHARED, f->fd, 0);
		if (f->map == MAP_FAILED)
			die("mmap");
	}
	used += PAGE + f->map[page * PAGE];	/* "lay" has written zeroes */
}

static void reads(const char *dir, long file, long page, long count, long times)
{
	struct traced *f = traced(dir, file);
	char *buf = malloc(count * PAGE);
	off_t end;
	ssize_t n;

	for (; times--; page += count) {
		end = (page + count) * PAGE;
		if (page * PAGE >= f->size) {
			append(dir, file, end - f->size);
			f->size = end;
		}
		n = pread(f->fd, buf, count * PAGE, page * PAGE);
		if (n <= 0)
			die("pread");
		used += n;
	}
	free(buf);
}

/* A descriptor for each file of a trace, which are more than a process may have */
static void allow_files(void)
{
	struct rlimit limit = { MAX_FILES + 64, MAX_FILES + 64 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit");
}

/* Calls EACH for each file of the trace, or makes its reads when that is NULL. */
static void follow(const char *dir, const char *trace,
		   void (*each)(const char *dir, long file, off_t size))
{
	long file, page, count, times, nr = 0;
	FILE *in = fopen(trace, "r");
	char line[1024], what[16];

	if (!in)
		die(trace);
	while (fgets(line, sizeof(line), in)) {
		times = 1;
		if (sscanf(line, "file %ld", &count) == 1 && nr < MAX_FILES) {
			files[++nr] = (struct traced){ .fd = -1, .size = count };
			if (each)
				each(dir, nr, count);
		} else if (each || line[0] == '#') {
			continue;
		} else if (sscanf(line, "%ld %ld %ld %ld", &file, &page, &count,
				  &times) >= 3) {
			reads(dir, file, page, count, times);
		} else if (sscanf(line, "%ld %ld %15s", &file, &page, what) == 3 &&
			   !strcmp(what, "fault")) {
			touch(traced(dir, file), page);
		} else {
			errno = EINVAL;
			die(line);
		}
	}
	fclose(in);
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

/* Does what is to be measured and prints what it took. */
static void measure(char **argv)
{
	unsigned long began, took, requests[2], bytes[2];

	statistics(argv[1], &requests[0], &bytes[0]);
	tick();
	began = now();
	if (!strcmp(argv[2], "replay")) {
		follow(argv[3], argv[4], NULL);
	} else if (!run(argv[2])) {
		fprintf(stderr, "rabench: no pattern %s\n", argv[2]);
		exit(1);
	}
	took = now() - began;
	usleep(20000);	/* readahead that is still on its way */
	statistics(argv[1], &requests[1], &bytes[1]);
	printf("%lu %lu %lu %lu\n", took, requests[1] - requests[0],
	       bytes[1] - bytes[0], used);
}

int main(int argc, char **argv)
{
	unsigned long seed;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "tick")) {
		tick();
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "lay")) {
		follow(argv[2], argv[3], append);
		return 0;
	}
	if (argc == 5 && !strcmp(argv[2], "replay")) {
		allow_files();
		measure(argv);
		return 0;
	}
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: rabench list | tick | lay DIR TRACE\n"
			"       rabench DISK PATTERN [SEED]\n"
			"       rabench DISK replay DIR TRACE\n");
		return 1;
	}
	seed = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	state ^= seed * 0x9e3779b97f4a7c15UL;
	base = M + (seed ? any(2048) * PAGE : 0);
	disk = open(argv[1], O_RDONLY);
	if (disk < 0)
		die(argv[1]);
	measure(argv);
	return 0;
}
