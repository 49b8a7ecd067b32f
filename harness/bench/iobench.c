// SPDX-License-Identifier: GPL-2.0
/*
 * iobench FILE METHOD read|write SIZE pages|huge SPAN COUNT
 *
 * Does COUNT direct I/Os of SIZE bytes, scattered over the first SPAN bytes of
 * FILE, and prints nanoseconds per I/O, the best of three rounds: where a
 * nanosecond is an instruction (QEMU's icount) that is what an I/O costs.
 *
 * METHOD is sync; libaio, 32 at a time; or uring, uring-fixed (registered
 * buffers), uring-poll (IOPOLL) and uring-fixed-poll, 32 at a time too.
 *
 * METHOD flight does them like sync and prints instead how much memory was pinned
 * at most, in KiB, and how many requests the disk had at a time.
 *
 * With SPAN "-" it does COUNT plain writes of SIZE bytes one after the other to
 * an empty FILE, or reads them again.
 *
 * Exit status: 0; 2 if FILE, the method or the memory is not to be had here,
 * with the reason as output; 1 if an I/O went wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	32
#define ROUNDS	3
#define HUGE	(2UL << 20)

static struct {
	int fd;
	bool write;
	size_t size;
	unsigned long slots;	/* places of SIZE bytes in SPAN */
	unsigned long count;
	char *memory;
} job;

static io_context_t aio;
static struct io_uring ring;
static bool fixed;

static void lacking(const char *what, int error)
{
	printf("%s: %s\n", what, strerror(error));
	exit(2);
}

static void wrong(const char *what, long result)
{
	fprintf(stderr, "iobench: %s: %ld\n", what, result);
	exit(1);
}

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

/*
 * The profiler (insnprof.c) knows by this instruction, which does nothing, that
 * the last round begins, and that it ended.
 */
static void mark(void)
{
	asm volatile("nopl 0x216f6964(%%rax)" ::: "memory");
}

/* A prime apart, so that no readahead or merging is of any use. */
static off_t place(unsigned long i)
{
	return i * 7919 % job.slots * job.size;
}

static void do_sync(void)
{
	for (unsigned long i = 0; i < job.count; i++) {
		ssize_t n = job.write ?
			pwrite(job.fd, job.memory, job.size, place(i)) :
			pread(job.fd, job.memory, job.size, place(i));

		if (n != (ssize_t)job.size)
			wrong("sync", n < 0 ? -errno : n);
	}
}

/* Pages that user memory has pinned, so far as the counters are up to date. */
static long pinned(void)
{
	long acquired = 0, released = 0;
	char line[128];
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "nr_foll_pin_acquired %ld", &acquired);
		sscanf(line, "nr_foll_pin_released %ld", &released);
	}
	if (f)
		fclose(f);
	return acquired - released;
}

static int requests(const char *disk)
{
	char path[128];
	int reads = 0, writes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/%s/inflight", strrchr(disk, '/') + 1);
	f = fopen(path, "r");
	if (f && fscanf(f, "%d %d", &reads, &writes) == 2)
		reads += writes;
	if (f)
		fclose(f);
	return reads;
}

static atomic_bool landed;

static void *fly(void *unused)
{
	(void)unused;
	do_sync();
	landed = true;
	return NULL;
}

static void flight(const char *disk)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	long base = pinned(), most = 0, now;
	int requests_most = 0, n;
	pthread_t thread;

	if (pthread_create(&thread, NULL, fly, NULL))
		wrong("pthread_create", -errno);
	while (!landed) {
		now = pinned() - base;
		n = requests(disk);
		if (now > most)
			most = now;
		if (n > requests_most)
			requests_most = n;
		nanosleep(&nap, NULL);
	}
	pthread_join(thread, NULL);
	printf("%ld %d\n", most * 4, requests_most);
}

static void do_stream(void)
{
	if (!job.write)
		lseek(job.fd, 0, SEEK_SET);
	else if (ftruncate(job.fd, 0) || lseek(job.fd, 0, SEEK_SET))
		wrong("ftruncate", -errno);
	for (unsigned long i = 0; i < job.count; i++) {
		ssize_t n = job.write ? write(job.fd, job.memory, job.size) :
					read(job.fd, job.memory, job.size);

		if (n != (ssize_t)job.size)
			wrong("stream", n < 0 ? -errno : n);
	}
}

static void do_libaio(void)
{
	struct iocb cbs[DEPTH], *list[DEPTH];
	struct io_event events[DEPTH];

	for (unsigned long i = 0; i < job.count; i += DEPTH) {
		for (int j = 0; j < DEPTH; j++) {
			char *memory = job.memory + j * job.size;

			if (job.write)
				io_prep_pwrite(&cbs[j], job.fd, memory,
					       job.size, place(i + j));
			else
				io_prep_pread(&cbs[j], job.fd, memory,
					      job.size, place(i + j));
			list[j] = &cbs[j];
		}
		int n = io_submit(aio, DEPTH, list);

		if (n != DEPTH)
			wrong("io_submit", n);
		for (int got = 0; got < DEPTH; got += n) {
			n = io_getevents(aio, 1, DEPTH, events, NULL);
			if (n < 0)
				wrong("io_getevents", n);
			for (int j = 0; j < n; j++)
				if (events[j].res != job.size)
					wrong("libaio", (long)events[j].res);
		}
	}
}

static void prepare(struct io_uring_sqe *sqe, char *memory, off_t pos)
{
	if (fixed && job.write)
		io_uring_prep_write_fixed(sqe, 0, memory, job.size, pos, 0);
	else if (fixed)
		io_uring_prep_read_fixed(sqe, 0, memory, job.size, pos, 0);
	else if (job.write)
		io_uring_prep_write(sqe, 0, memory, job.size, pos);
	else
		io_uring_prep_read(sqe, 0, memory, job.size, pos);
	sqe->flags |= IOSQE_FIXED_FILE;
}

static void do_uring(void)
{
	struct io_uring_cqe *cqe;

	for (unsigned long i = 0; i < job.count; i += DEPTH) {
		for (int j = 0; j < DEPTH; j++)
			prepare(io_uring_get_sqe(&ring),
				job.memory + j * job.size, place(i + j));
		int n = io_uring_submit_and_wait(&ring, DEPTH);

		if (n < 0)
			wrong("io_uring_submit", n);
		for (int got = 0; got < DEPTH; got++) {
			n = io_uring_wait_cqe(&ring, &cqe);
			if (n < 0)
				wrong("io_uring_wait_cqe", n);
			if (cqe->res == -EOPNOTSUPP)
				lacking("io_uring", EOPNOTSUPP);
			if (cqe->res != (int)job.size)
				wrong("io_uring", cqe->res);
			io_uring_cqe_seen(&ring, cqe);
		}
	}
}

static void uring_init(bool poll, size_t bytes)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SINGLE_ISSUER };
	struct iovec iov = { job.memory, bytes };
	int ret;

	if (poll)
		params.flags |= IORING_SETUP_IOPOLL;
	ret = io_uring_queue_init_params(2 * DEPTH, &ring, &params);
	if (!ret && fixed)
		ret = io_uring_register_buffers(&ring, &iov, 1);
	if (!ret)
		ret = io_uring_register_files(&ring, &job.fd, 1);
	if (ret)
		lacking("io_uring", -ret);
}

/*
 * Ordinary pages are taken in turn for the memory that is used and for some that
 * is not, so that they do not happen to be contiguous, now more and now less.
 */
static char *memory(size_t bytes, bool huge)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p, *apart;

	if (huge)
		flags |= MAP_HUGETLB;
	bytes = (bytes + HUGE - 1) & ~(HUGE - 1);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	apart = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     flags & ~MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED || apart == MAP_FAILED)
		lacking("memory", errno);
	for (size_t i = 0; i < bytes; i += 4096) {
		p[i] = 1;
		if (!huge)
			apart[i] = 1;
	}
	munmap(apart, bytes);
	return p;
}

int main(int argc, char **argv)
{
	void (*rounds)(void) = do_sync;
	unsigned long best = -1UL;

	if (argc != 8) {
		fprintf(stderr, "usage: iobench FILE METHOD read|write SIZE pages|huge SPAN COUNT\n");
		return 1;
	}
	const char *method = argv[2];
	bool stream = argv[6][0] == '-';
	bool batch = strcmp(method, "sync") && strcmp(method, "flight");
	size_t bytes;

	job.write = argv[3][0] == 'w';
	job.size = strtoul(argv[4], NULL, 0);
	job.slots = stream ? 1 : strtoul(argv[6], NULL, 0) / job.size;
	job.count = strtoul(argv[7], NULL, 0);
	if (!job.slots)
		wrong("SPAN is less than SIZE", 0);
	job.fd = open(argv[1], stream ? O_RDWR | O_CREAT :
		      (job.write ? O_RDWR : O_RDONLY) | O_DIRECT, 0600);
	if (job.fd < 0)
		lacking(argv[1], errno);
	bytes = batch ? DEPTH * job.size : job.size;
	job.memory = memory(bytes, argv[5][0] == 'h');

	fixed = strstr(method, "fixed");
	if (stream) {
		rounds = do_stream;
	} else if (!strcmp(method, "libaio")) {
		int ret = io_setup(DEPTH, &aio);

		if (ret)
			lacking("io_setup", -ret);
		rounds = do_libaio;
	} else if (!strncmp(method, "uring", 5)) {
		uring_init(strstr(method, "poll"), bytes);
		rounds = do_uring;
	} else if (batch) {
		wrong("no such METHOD", 0);
	}

	if (!strcmp(method, "flight")) {
		flight(argv[1]);
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		unsigned long began = now(), took;

		if (i == ROUNDS - 1)
			mark();
		rounds();
		took = now() - began;
		if (took < best)
			best = took;
	}
	mark();
	printf("%.1f\n", (double)best / job.count);
	return 0;
}
