// SPDX-License-Identifier: GPL-2.0
/*
 * Durable appends, and the check that they were.
 *
 *   powercut append FILE         appends with O_DIRECT | O_DSYNC until it is
 *                                stopped; "ack END" tells after each append
 *                                where the file ends
 *   powercut verify FILE END     FILE has at least END bytes, all as appended;
 *                                behind them may be appends under way
 *   powercut replay LOG IMAGE [N]
 *                                does to IMAGE what LOG, written by QEMU's
 *                                blklogwrites, tells up to its last flush, or
 *                                up to N entries before that
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR		512
#define MAX_SECTORS	16
#define MAX_APPENDS	20000
/* What may be behind the last append that is known: done, told, not heard. */
#define MAX_AHEAD	(8 * MAX_SECTORS * SECTOR)

#define LOG_MAGIC	0x6a736677736872ULL
#define LOG_VERSION	1
#define LOG_FLUSH	1
#define LOG_DISCARD	4

struct log_super {
	uint64_t magic;
	uint64_t version;
	uint64_t entries;
	uint32_t sector_size;
} __attribute__((packed));

struct log_entry {
	uint64_t sector;
	uint64_t sectors;
	uint64_t flags;
	uint64_t data_len;
};

__attribute__((noreturn, format(printf, 1, 2)))
static void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "powercut: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	exit(1);
}

/* Every 8 bytes tell where in the file they belong. */
static uint64_t word_at(uint64_t offset)
{
	uint64_t x = offset + 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 31);
}

static void append(const char *path)
{
	static uint64_t buf[MAX_SECTORS * SECTOR / 8]
		__attribute__((aligned(4096)));
	int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_DSYNC, 0644);
	uint64_t end = 0;
	size_t i, len;
	int n;

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	/* The name is not what is tested: it is on disk before we start. */
	sync();
	for (n = 0; n < MAX_APPENDS; n++) {
		len = (n % MAX_SECTORS + 1) * SECTOR;
		for (i = 0; i < len / 8; i++)
			buf[i] = word_at(end + i * 8);
		if (pwrite(fd, buf, len, end) != (ssize_t)len)
			die("append at %llu: %s", (unsigned long long)end,
			    strerror(errno));
		end += len;
		printf("ack %llu\n", (unsigned long long)end);
		fflush(stdout);
	}
	close(fd);
}

/*
 * ext2 writes an indirect block before the inode. Between the two the append
 * under way has its blocks and i_size does not count them: e2fsck then raises
 * i_size to the end of the last block, whose end nobody wrote. So behind what
 * was acknowledged zeroes are right, but nothing else's data.
 */
static int right_word(uint64_t word, uint64_t offset, uint64_t acked)
{
	return word == word_at(offset) || (offset >= acked && !word);
}

static void verify(const char *path, uint64_t acked)
{
	uint64_t word, end = 0;
	FILE *f = fopen(path, "rb");

	if (!f)
		die("%s: %s", path, strerror(errno));
	while (fread(&word, sizeof(word), 1, f) == 1) {
		if (!right_word(word, end, acked))
			die("byte %llu is not what was appended",
			    (unsigned long long)end);
		end += sizeof(word);
	}
	fclose(f);
	if (end < acked)
		die("%llu bytes were acknowledged, the file has %llu",
		    (unsigned long long)acked, (unsigned long long)end);
	if (end > acked + MAX_AHEAD)
		die("%llu bytes were acknowledged, the file has %llu: too many",
		    (unsigned long long)acked, (unsigned long long)end);
}

static void must_read(int fd, void *buf, size_t len, off_t pos)
{
	if (pread(fd, buf, len, pos) != (ssize_t)len)
		die("the log ends in the middle of an entry");
}

/* Follows the log from its first entry; returns how many end in a flush. */
static uint64_t walk(int log, int image, uint64_t entries, uint32_t unit)
{
	uint64_t n, flushed = 0, len;
	struct log_entry e;
	off_t pos = unit;
	char *data;

	for (n = 0; n < entries; n++) {
		must_read(log, &e, sizeof(e), pos);
		pos += unit;
		if (le64toh(e.flags) & LOG_FLUSH)
			flushed = n + 1;
		if (le64toh(e.flags) & LOG_DISCARD)
			continue;
		len = le64toh(e.sectors) * unit;
		if (image >= 0 && len) {
			data = malloc(len);
			if (!data)
				die("no memory");
			must_read(log, data, len, pos);
			if (pwrite(image, data, len, le64toh(e.sector) * unit) !=
			    (ssize_t)len)
				die("writing the image: %s", strerror(errno));
			free(data);
		}
		pos += len;
	}
	return flushed;
}

static void replay(const char *log_path, const char *image_path, uint64_t back)
{
	int log = open(log_path, O_RDONLY), image = open(image_path, O_WRONLY);
	uint64_t flushed, entries;
	struct log_super super;
	uint32_t unit;

	if (log < 0 || image < 0)
		die("%s, %s: %s", log_path, image_path, strerror(errno));
	must_read(log, &super, sizeof(super), 0);
	if (le64toh(super.magic) != LOG_MAGIC ||
	    le64toh(super.version) != LOG_VERSION)
		die("%s is no log of writes", log_path);
	entries = le64toh(super.entries);
	unit = le32toh(super.sector_size);
	flushed = walk(log, -1, entries, unit);
	if (flushed <= back)
		die("nothing was ever flushed");
	walk(log, image, flushed - back, unit);
	printf("%llu of %llu entries are before the last flush\n",
	       (unsigned long long)flushed, (unsigned long long)entries);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "append"))
		append(argv[2]);
	else if (argc == 4 && !strcmp(argv[1], "verify"))
		verify(argv[2], strtoull(argv[3], NULL, 0));
	else if ((argc == 4 || argc == 5) && !strcmp(argv[1], "replay"))
		replay(argv[2], argv[3], argc == 5 ? strtoull(argv[4], NULL, 0) : 0);
	else
		die("usage: append FILE | verify FILE END | replay LOG IMAGE [N]");
	return 0;
}
