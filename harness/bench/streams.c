// SPDX-License-Identifier: GPL-2.0
/*
 * streams [OPTION]... FILE...
 *
 * Threads that read or write in parallel: one for each FILE or, with -t,
 * THREADS for each FILE that share a descriptor and have a region of the file
 * each. All start together. Prints, in one line,
 *
 *   MB/S SECONDS IDLE% CPU SYSTEM SPREAD%
 *
 * MB are 10^6 bytes; IDLE% is of all processors, idle and iowait, as /proc/stat
 * has it, which is not more than a sample of each tick where the tick goes on in
 * idle; CPU the seconds that are left; SYSTEM is this program's own system time;
 * SPREAD% tells how long before the last thread the first one was done, of all the
 * time that it took. With -m, the profiler (insnprof.c) counts meanwhile; -m and no
 * FILE is a mark for it and nothing else.
 *
 *   -w	write (reads if not given)	-c	create the file anew
 *   -d	O_DIRECT			-f	fsync() before a thread is done
 *   -b SIZE	of an I/O		-n BYTES	for each thread
 *   -o BYTES	where in the file	-t THREADS	for each file
 *   -r	in random order			-l	lseek() and read() or write()
 *   -k	look back: after every 8 I/Os, the last but four again
 *   -e	each thread opens its FILE itself
 *   -h	in hugepages, so that it is the same memory each time
 *   -p PASSES	over the region	-m	mark the begin and the end
 *
 * Sizes take k, m and g. Exit status 1 if anything went wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HUGE	(2UL << 20)

static struct {
	bool write, create, direct, sync, random, seek, back, mark, apart, huge;
	unsigned long size, passes, first;
	unsigned long bytes;	/* for each thread, a multiple of size */
	unsigned long threads;	/* for each file */
} job = { .size = 4096, .bytes = 1 << 20, .passes = 1, .threads = 1 };

struct stream {
	pthread_t thread;
	int fd;
	off_t base;
	char *memory;
	unsigned long seed;
	double end;
};

static pthread_barrier_t barrier;

static void die(const char *what)
{
	fprintf(stderr, "streams: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Seconds of idle processors since the system was booted. */
static double idle_time(void)
{
	unsigned long user, nice, system, idle, iowait;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %lu %lu %lu %lu %lu", &user, &nice, &system,
			 &idle, &iowait) != 5)
		die("/proc/stat");
	fclose(f);
	return (double)(idle + iowait) / sysconf(_SC_CLK_TCK);
}

static double system_time(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_stime.tv_sec + use.ru_stime.tv_usec / 1e6;
}

static void mark(void)
{
	if (job.mark)
		asm volatile("nopl 0x216f6964(%%rax)" ::: "memory");
}

static void transfer(struct stream *s, unsigned long nr)
{
	off_t pos = s->base + nr * job.size;
	ssize_t n;

	if (job.seek) {
		if (lseek(s->fd, pos, SEEK_SET) != pos)
			die("lseek");
		n = job.write ? write(s->fd, s->memory, job.size) :
				read(s->fd, s->memory, job.size);
	} else {
		n = job.write ? pwrite(s->fd, s->memory, job.size, pos) :
				pread(s->fd, s->memory, job.size, pos);
	}
	if (n >= 0 && n != (ssize_t)job.size)
		errno = ENODATA;
	if (n != (ssize_t)job.size)
		die(job.write ? "write" : "read");
}

static unsigned long next_random(struct stream *s)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed;
}

static void *run(void *arg)
{
	struct stream *s = arg;
	unsigned long count = job.bytes / job.size;

	pthread_barrier_wait(&barrier);
	for (unsigned long i = 0; i < count * job.passes; i++) {
		transfer(s, (job.random ? next_random(s) : i) % count);
		if (job.back && i % 8 == 7)
			transfer(s, (i - 4) % count);
	}
	if (job.sync && fsync(s->fd))
		die("fsync");
	s->end = now();
	return NULL;
}

static void *memory(size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
	void *p;

	if (job.huge) {
		flags |= MAP_HUGETLB;
		size = (size + HUGE - 1) & ~(HUGE - 1);
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		die("memory");
	return memset(p, 'd', size);
}

static struct stream *prepare(int files, char **file)
{
	struct stream *list = calloc(files * job.threads, sizeof(*list));
	int flags = job.write ? O_RDWR : O_RDONLY;

	if (job.create)
		flags |= O_CREAT | O_TRUNC;
	if (job.direct)
		flags |= O_DIRECT;
	for (unsigned long i = 0; i < files * job.threads; i++) {
		struct stream *s = &list[i];
		unsigned long nr = i % job.threads;

		s->fd = nr && !job.apart ? s[-1].fd :
			 open(file[i / job.threads], flags, 0600);
		if (s->fd < 0)
			die(file[i / job.threads]);
		s->base = job.first + nr * job.bytes;
		s->memory = memory(job.size);
		s->seed = 88172645463325252UL + i;
	}
	return list;
}

static unsigned long size_of(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	switch (*end) {
	case 'g':
		return n << 30;
	case 'm':
		return n << 20;
	case 'k':
		return n << 10;
	}
	return n;
}

static const struct option {
	char letter;
	bool *flag;		/* it sets this one, */
	unsigned long *number;	/* or takes this one */
} known[] = {
	{ 'w', &job.write, NULL },
	{ 'c', &job.create, NULL },
	{ 'd', &job.direct, NULL },
	{ 'f', &job.sync, NULL },
	{ 'r', &job.random, NULL },
	{ 'l', &job.seek, NULL },
	{ 'k', &job.back, NULL },
	{ 'm', &job.mark, NULL },
	{ 'e', &job.apart, NULL },
	{ 'h', &job.huge, NULL },
	{ 'b', NULL, &job.size },
	{ 'n', NULL, &job.bytes },
	{ 'o', NULL, &job.first },
	{ 't', NULL, &job.threads },
	{ 'p', NULL, &job.passes },
};

static void usage(void)
{
	fprintf(stderr, "usage: streams [-wcdfrlkmeh] [-b SIZE] [-n BYTES] [-o BYTES]\n"
			"	[-t THREADS] [-p PASSES] FILE...\n");
	exit(1);
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "wcdfrlkmehb:n:o:t:p:")) != -1) {
		const struct option *o = known;

		if (c == '?')
			usage();
		while (o->letter != c)
			o++;
		if (o->flag)
			*o->flag = true;
		else
			*o->number = size_of(optarg);
	}
	if (optind == argc && job.mark)
		return;
	if (optind == argc || !job.size || job.size > job.bytes || !job.threads)
		usage();
	job.bytes -= job.bytes % job.size;
}

int main(int argc, char **argv)
{
	double began, idle, system, took, first = 0, last = 0;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct stream *list;
	int nr;

	options(argc, argv);
	if (optind == argc) {
		mark();
		return 0;
	}
	nr = (argc - optind) * job.threads;
	list = prepare(argc - optind, argv + optind);
	pthread_barrier_init(&barrier, NULL, nr + 1);
	for (int i = 0; i < nr; i++) {
		errno = pthread_create(&list[i].thread, NULL, run, &list[i]);
		if (errno)
			die("thread");
	}
	idle = idle_time();
	system = system_time();
	began = now();
	mark();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < nr; i++) {
		pthread_join(list[i].thread, NULL);
		if (!i || list[i].end < first)
			first = list[i].end;
		if (list[i].end > last)
			last = list[i].end;
	}
	mark();
	took = last - began;
	idle = idle_time() - idle;
	system = system_time() - system;
	/* /proc/stat counts by hundredths of a second */
	if (idle > took * processors)
		idle = took * processors;
	printf("%.2f %.6f %.1f %.3f %.3f %.2f\n",
	       (double)nr * job.bytes * job.passes / took / 1e6, took,
	       100 * idle / took / processors, took * processors - idle,
	       system, 100 * (last - first) / took);
	return 0;
}
