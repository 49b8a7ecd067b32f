// SPDX-License-Identifier: GPL-2.0
/*
 * affs_volume make DEVICE BLOCKSIZE: writes an empty Amiga volume (FFS).
 * affs_volume check DEVICE BLOCKSIZE: reads it all and says what is wrong with it.
 *
 * No package has a mkfs or a fsck for it.  Numbers are big endian, 32 bits wide.
 * The root block is in the middle, and names the blocks of the bitmap, in which a
 * set bit is a free block.  Headers of directories have a hash table of their
 * entries; headers of files a table of data blocks, from its end to its start,
 * and the number of the block where the table goes on.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RESERVED	2	/* boot blocks, outside of the bitmap */
#define T_HEADER	2
#define T_LIST		16
#define ST_ROOT		1
#define ST_DIR		2
#define ST_FILE		-3

/* Words from the start of a header ... */
enum { TYPE, KEY, COUNT, HASH_SIZE, FIRST, CHECKSUM, TABLE };
/* ... and from its end */
enum { STYPE = 1, EXTENSION = 2, PARENT = 3, CHAIN = 4, SIZE = 47,
	BM_FLAG = 50, BM_PAGES = 49, NR_BM_PAGES = 25, BM_EXT = 24,
	NAME = 20, ROOT_DATE = 23, DISK_DATE = 10, DISK_CREATED = 7 };

static int fd;
static __u32 bsize, words, nr_blocks, root;
static __u8 *seen;
static unsigned int nr_bad;

static __u32 get(const __u32 *b, unsigned int i)
{
	return ntohl(b[i]);
}

static __u32 end(const __u32 *b, unsigned int i)
{
	return ntohl(b[words - i]);
}

static __u32 sum(const __u32 *b)
{
	__u32 total = 0;
	unsigned int i;

	for (i = 0; i < words; i++)
		total += get(b, i);
	return total;
}

static void *block_alloc(void)
{
	void *b = calloc(1, bsize);

	if (!b)
		err(1, "no memory");
	return b;
}

static void block_read(__u32 nr, void *b)
{
	if (pread(fd, b, bsize, (off_t)nr * bsize) != (ssize_t)bsize)
		err(1, "reading block %u", nr);
}

static void block_write(__u32 nr, const void *b)
{
	if (pwrite(fd, b, bsize, (off_t)nr * bsize) != (ssize_t)bsize)
		err(1, "writing block %u", nr);
}

static __u32 bits_per_page(void)
{
	return bsize * 8 - 32;
}

static __u32 nr_pages(void)
{
	return (nr_blocks - RESERVED + bits_per_page() - 1) / bits_per_page();
}

/* Blocks with the numbers of those pages for which the root has no room. */
static __u32 nr_extensions(void)
{
	__u32 pages = nr_pages();

	if (pages <= NR_BM_PAGES)
		return 0;
	return (pages - NR_BM_PAGES + words - 2) / (words - 1);
}

static void put_date(__u32 *b, unsigned int i)
{
	time_t now = time(NULL) - (8 * 365 + 2) * 86400L;	/* since 1978 */

	b[words - i] = htonl(now / 86400);
	b[words - i + 1] = htonl(now % 86400 / 60);
	b[words - i + 2] = htonl(now % 60 * 50);
}

/* Page @nr of a bitmap in which all but the first @used blocks from @root are free. */
static void make_page(__u32 nr, __u32 used)
{
	__u32 *b = block_alloc(), i;

	for (i = 0; i < bits_per_page(); i++) {
		__u32 block = RESERVED + nr * bits_per_page() + i;

		if (block < nr_blocks && (block < root || block >= root + used))
			b[1 + i / 32] |= htonl(1U << (i % 32));
	}
	b[0] = htonl(-sum(b));
	block_write(root + 1 + nr, b);
	free(b);
}

static void make_extension(__u32 nr)
{
	__u32 first = NR_BM_PAGES + nr * (words - 1), i;
	__u32 *b = block_alloc();

	for (i = 0; i < words - 1 && first + i < nr_pages(); i++)
		b[i] = htonl(root + 1 + first + i);
	if (nr + 1 < nr_extensions())
		b[words - 1] = htonl(root + 1 + nr_pages() + nr + 1);
	block_write(root + 1 + nr_pages() + nr, b);
	free(b);
}

static void make_root(void)
{
	static const char name[] = "\4test";
	__u32 *b = block_alloc(), i;

	b[TYPE] = htonl(T_HEADER);
	b[HASH_SIZE] = htonl(words - 56);
	b[words - BM_FLAG] = htonl(~0U);
	for (i = 0; i < NR_BM_PAGES && i < nr_pages(); i++)
		b[words - BM_PAGES + i] = htonl(root + 1 + i);
	if (nr_extensions())
		b[words - BM_EXT] = htonl(root + 1 + nr_pages());
	put_date(b, ROOT_DATE);
	put_date(b, DISK_DATE);
	put_date(b, DISK_CREATED);
	memcpy(b + words - NAME, name, sizeof(name) - 1);
	b[words - STYPE] = htonl(ST_ROOT);
	b[CHECKSUM] = htonl(-sum(b));
	block_write(root, b);
	free(b);
}

static int make(void)
{
	__u32 *boot = block_alloc(), i;

	block_write(1, boot);
	memcpy(boot, "DOS\1", 4);
	block_write(0, boot);
	free(boot);
	for (i = 0; i < nr_pages(); i++)
		make_page(i, 1 + nr_pages() + nr_extensions());
	for (i = 0; i < nr_extensions(); i++)
		make_extension(i);
	make_root();
	if (fsync(fd))
		err(1, "fsync");
	return 0;
}

static void bad(__u32 block, const char *what)
{
	printf("block %u: %s\n", block, what);
	nr_bad++;
}

/* Note that @block is in use by block @user.  Returns whether it can be followed. */
static int use(__u32 block, __u32 user)
{
	if (block < RESERVED || block >= nr_blocks) {
		bad(user, "a block number is out of range");
		return 0;
	}
	if (seen[block]++) {
		bad(block, "is used twice");
		return 0;
	}
	return 1;
}

static void check_header(__u32 nr, const __u32 *b, __u32 type)
{
	if (sum(b))
		bad(nr, "wrong checksum");
	if (get(b, TYPE) != type || get(b, KEY) != nr)
		bad(nr, "is no such header");
}

/* A file's header, with its table, and the blocks where the table goes on. */
static void check_file(__u32 nr, __u32 *b)
{
	__u32 want = (end(b, SIZE) + (__u64)bsize - 1) / bsize;
	__u32 have = 0, header = nr, i;

	for (;;) {
		if (get(b, COUNT) > words - 56) {
			bad(nr, "has a table that is too long");
			return;
		}
		for (i = 0; i < get(b, COUNT); i++)
			use(end(b, 51 + i), nr);
		have += i;
		if (!end(b, EXTENSION))
			break;
		if (!use(end(b, EXTENSION), nr))
			return;
		nr = end(b, EXTENSION);
		block_read(nr, b);
		check_header(nr, b, T_LIST);
		if (end(b, PARENT) != header)
			bad(nr, "belongs to another file");
	}
	if (have != want)
		bad(header, "has another number of blocks than its size says");
}

static void check_dir(__u32 nr)
{
	__u32 *dir = block_alloc(), *b = block_alloc(), i, entry, next;

	block_read(nr, dir);
	for (i = 0; i < words - 56; i++) {
		for (entry = get(dir, TABLE + i); entry; entry = next) {
			if (!use(entry, nr))
				break;
			block_read(entry, b);
			check_header(entry, b, T_HEADER);
			next = end(b, CHAIN);
			if (end(b, PARENT) != nr)
				bad(entry, "is in another directory");
			if (end(b, STYPE) == (__u32)ST_FILE)
				check_file(entry, b);
			else if (end(b, STYPE) == ST_DIR)
				check_dir(entry);
		}
	}
	free(dir);
	free(b);
}

static void check_page(__u32 nr, __u32 page, __u32 *b)
{
	__u32 i;

	block_read(page, b);
	if (sum(b))
		bad(page, "wrong checksum of the bitmap");
	for (i = 0; i < bits_per_page(); i++) {
		__u32 block = RESERVED + nr * bits_per_page() + i;
		int is_free = get(b, 1 + i / 32) >> (i % 32) & 1;

		if (block >= nr_blocks)
			break;
		if (is_free && seen[block])
			bad(block, "is in use, and free");
		if (!is_free && !seen[block])
			bad(block, "is neither in use nor free");
	}
}

/* Calls use() or check_page() for each page of the bitmap. */
static void walk_bitmap(const __u32 *top, int check)
{
	__u32 *list = block_alloc(), *b = block_alloc();
	__u32 ext = end(top, BM_EXT), user = root, at = words - BM_PAGES;
	__u32 last = at + NR_BM_PAGES, nr;

	memcpy(list, top, bsize);
	for (nr = 0; nr < nr_pages(); nr++, at++) {
		if (at == last) {
			if (!check && !use(ext, user))
				break;
			block_read(ext, list);
			user = ext;
			at = 0;
			last = words - 1;
			ext = get(list, last);
		}
		if (check)
			check_page(nr, get(list, at), b);
		else if (!use(get(list, at), user))
			break;
	}
	free(list);
	free(b);
}

static int check(void)
{
	__u32 *top = block_alloc();

	seen = calloc(nr_blocks, 1);
	if (!seen)
		err(1, "no memory");
	block_read(0, top);
	if (memcmp(top, "DOS\1", 4))
		errx(1, "not a volume of ours");
	block_read(root, top);
	if (sum(top) || get(top, TYPE) != T_HEADER || end(top, STYPE) != ST_ROOT)
		errx(1, "block %u is not the root", root);
	if (end(top, BM_FLAG) != ~0U)
		bad(root, "the bitmap is not valid");
	use(root, root);
	walk_bitmap(top, 0);
	check_dir(root);
	if (!nr_bad)
		walk_bitmap(top, 1);
	free(top);
	free(seen);
	return nr_bad != 0;
}

int main(int argc, char **argv)
{
	int making = argc == 4 && !strcmp(argv[1], "make");
	off_t size;

	if (argc != 4 || (!making && strcmp(argv[1], "check")))
		errx(2, "usage: affs_volume make|check DEVICE BLOCKSIZE");
	bsize = atoi(argv[3]);
	if (bsize < 512 || bsize > 4096 || bsize & (bsize - 1))
		errx(2, "block size %s: 512, 1024, 2048 or 4096", argv[3]);
	fd = open(argv[2], making ? O_RDWR : O_RDONLY);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 0)
		err(1, "%s", argv[2]);
	if (size / bsize < 64 || size / bsize > INT_MAX)
		errx(1, "%s: a size that we can't do", argv[2]);
	words = bsize / 4;
	nr_blocks = size / bsize;
	root = (RESERVED + nr_blocks - 1) / 2;
	return making ? make() : check();
}
