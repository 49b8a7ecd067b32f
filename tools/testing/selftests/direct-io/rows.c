// SPDX-License-Identifier: GPL-2.0
/*
 * What a program sees of direct I/O: data, alignment, holes, the end of the
 * file, blocks larger than sectors. Each test runs over bare disks of 512- and
 * 4096-byte sectors and over ext2 of every block size, by every method.
 */
#include "../kselftest_harness.h"
#include "dio.h"
#include "fixture-any.h"
#include "fixture-ext2.h"

#define FILE_SIZE (256 * KIB)
#define MARK 0xe5

/* A test says which method it was at when it failed. */
#define BY(m) TH_LOG("by %s", dio_method_name(m))

static int open_new(struct dio_target *t)
{
	return dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
}

/* The file, or the start of the device, holds pattern @seed; buffered. */
static int prepare(struct dio_target *t, size_t len, __u32 seed)
{
	int fd = dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC);
	void *buf = malloc(len);
	ssize_t n;

	if (fd < 0)
		return fd;
	dio_fill(buf, len, 0, seed);
	n = pwrite(fd, buf, len, 0);
	free(buf);
	if (fsync(fd))
		n = -1;
	close(fd);
	return n == (ssize_t)len ? 0 : -EIO;
}

static off_t size_of(int fd)
{
	return lseek(fd, 0, SEEK_END);
}

TEST_F(any, data_by_every_method)
{
	size_t len = 96 * KIB;
	void *buf = dio_alloc(len);
	enum dio_method w, r;
	int fd;

	fd = open_new(self->t);
	ASSERT_LE(0, fd) TH_LOG("%s", dio_why());
	for (w = DIO_SYNC; w < DIO_METHODS; w = dio_next_method(w, fd)) {
		dio_fill(buf, len, 4096, w);
		ASSERT_EQ((ssize_t)len, dio_rw(w, DIO_WRITE, fd, buf, len, 4096))
			BY(w);
		for (r = DIO_SYNC; r < DIO_METHODS; r = dio_next_method(r, fd)) {
			memset(buf, 0, len);
			ASSERT_EQ((ssize_t)len,
				  dio_rw(r, DIO_READ, fd, buf, len, 4096))
				BY(r);
			ASSERT_EQ(-1, dio_differs(buf, len, 4096, w)) BY(r);
		}
	}
}

TEST_F(any, single_sector_anywhere)
{
	unsigned int lbs = self->lbs;
	unsigned char *buf = dio_alloc(FILE_SIZE), *all = dio_alloc(FILE_SIZE);
	enum dio_method m;
	off_t pos;
	int fd;

	ASSERT_EQ(0, prepare(self->t, FILE_SIZE, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(all, FILE_SIZE, 0, 1);
		for (pos = m * lbs; pos < FILE_SIZE; pos += 7 * lbs) {
			dio_fill(buf, lbs, pos, 2);
			dio_fill(all + pos, lbs, pos, 2);
			ASSERT_EQ((ssize_t)lbs,
				  dio_rw(m, DIO_WRITE, fd, buf, lbs, pos))
				BY(m);
		}
		ASSERT_EQ(FILE_SIZE,
			  dio_rw(m, DIO_READ, fd, buf, FILE_SIZE, 0)) BY(m);
		EXPECT_EQ(0, memcmp(buf, all, FILE_SIZE)) BY(m);
		for (pos = 0; pos < FILE_SIZE; pos += 5 * lbs) {
			ASSERT_EQ((ssize_t)lbs,
				  dio_rw(m, DIO_READ, fd, buf, lbs, pos))
				BY(m);
			ASSERT_EQ(0, memcmp(buf, all + pos, lbs)) BY(m);
		}
		ASSERT_EQ(0, prepare(self->t, FILE_SIZE, 1));
	}
}

/* The file's pattern and size are still what prepare() made of them. */
static bool untouched(struct dio_target *t, int fd, size_t len, __u32 seed)
{
	bool same = !t->block_size || size_of(fd) == (off_t)len;
	void *buf = malloc(len);
	int plain;

	plain = dio_target_open(t, O_RDONLY);
	same = same && dio_drop_caches() == 0 &&
	       pread(plain, buf, len, 0) == (ssize_t)len &&
	       dio_differs(buf, len, 0, seed) < 0;
	close(plain);
	free(buf);
	return same;
}

TEST_F(any, unaligned_offset_refused)
{
	off_t bad[] = { 1, self->lbs / 2, self->lbs - 1, 8192 + 1,
			8192 + self->lbs / 2 };
	void *buf = dio_alloc(8192);
	enum dio_method m;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, prepare(self->t, 16384, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			EXPECT_EQ(-EINVAL, dio_rw(m, DIO_READ, fd, buf, 4096,
						  bad[i])) BY(m);
			EXPECT_EQ(-EINVAL, dio_rw(m, DIO_WRITE, fd, buf, 8192,
						  bad[i])) BY(m);
		}
	}
	EXPECT_EQ(-1, dio_not_byte(buf, 8192, 0));
	EXPECT_TRUE(untouched(self->t, fd, 16384, 1));
}

TEST_F(any, unaligned_length_refused)
{
	size_t bad[] = { 1, self->lbs / 2, self->lbs - 1, self->lbs + 1,
			 4096 + 1, 4096 + self->lbs / 2 };
	void *buf = dio_alloc(16384);
	enum dio_method m;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, prepare(self->t, 16384, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			EXPECT_EQ(-EINVAL, dio_rw(m, DIO_READ, fd, buf, bad[i],
						  4096)) BY(m);
			EXPECT_EQ(-EINVAL, dio_rw(m, DIO_WRITE, fd, buf, bad[i],
						  4096)) BY(m);
			EXPECT_EQ(-EINVAL, dio_rw(m, DIO_WRITE, fd, buf, bad[i],
						  16384)) BY(m);
		}
	}
	EXPECT_EQ(-1, dio_not_byte(buf, 16384, 0));
	EXPECT_TRUE(untouched(self->t, fd, 16384, 1));
}

TEST_F(any, refused_request_leaves_offset_alone)
{
	void *buf = dio_alloc(8192);
	int fd;

	ASSERT_EQ(0, prepare(self->t, 16384, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	ASSERT_EQ(4096, lseek(fd, 4096, SEEK_SET));
	EXPECT_EQ(-1, read(fd, buf, self->lbs + 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(fd, buf, self->lbs / 2));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(4096, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(4096, read(fd, buf, 4096));
	EXPECT_EQ(8192, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(-1, dio_differs(buf, 4096, 4096, 1));
}

TEST_F(any, misaligned_memory_refused)
{
	char *buf = dio_alloc(16384);
	enum dio_method m;
	int fd;

	if (!(dio_disk_queue(&self->t->fs.disk, "dma_alignment") & 1))
		SKIP(return, "the disk takes memory at any address");
	ASSERT_EQ(0, prepare(self->t, 16384, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		EXPECT_EQ(-EINVAL, dio_rw(m, DIO_READ, fd, buf + 1, 8192, 4096))
			BY(m);
		EXPECT_EQ(-EINVAL, dio_rw(m, DIO_WRITE, fd, buf + 1, 8192, 4096))
			BY(m);
		EXPECT_EQ(-EINVAL, dio_rw(m, DIO_WRITE, fd, buf + 4097, 4096,
					  16384)) BY(m);
	}
	EXPECT_EQ(-1, dio_not_byte(buf, 16384, 0));
	EXPECT_TRUE(untouched(self->t, fd, 16384, 1));
}

TEST_F(any, one_misaligned_vector_refuses_all)
{
	char *buf = dio_alloc(16384);
	struct iovec iov[3] = {
		{ buf, 4096 }, { buf + 4097, 4096 }, { buf + 12288, 4096 },
	};
	int fd;

	if (!(dio_disk_queue(&self->t->fs.disk, "dma_alignment") & 1))
		SKIP(return, "the disk takes memory at any address");
	ASSERT_EQ(0, prepare(self->t, 16384, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	EXPECT_EQ(-1, preadv(fd, iov, 3, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pwritev(fd, iov, 3, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, dio_not_byte(buf, 16384, 0));
	EXPECT_TRUE(untouched(self->t, fd, 16384, 1));
}

TEST_F(any, device_memory_alignment_is_enough)
{
	long align = dio_disk_queue(&self->t->fs.disk, "dma_alignment") + 1;
	size_t len = 64 * KIB;
	char *buf = dio_alloc(len + 4096);
	enum dio_method m;
	int fd;

	ASSERT_LT(0, align) TH_LOG("%s", dio_why());
	fd = open_new(self->t);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf + align, len, 0, m);
		ASSERT_EQ((ssize_t)len,
			  dio_rw(m, DIO_WRITE, fd, buf + align, len, 0)) BY(m);
		memset(buf, 0, len + 4096);
		ASSERT_EQ((ssize_t)len,
			  dio_rw(m, DIO_READ, fd, buf + align, len, 0)) BY(m);
		ASSERT_EQ(-1, dio_differs(buf + align, len, 0, m)) BY(m);
		ASSERT_EQ(-1, dio_not_byte(buf, align, 0));
		ASSERT_EQ(-1, dio_not_byte(buf + align + len, 4096 - align, 0));
	}
}

TEST_F(any, statx_tells_alignment)
{
	long align = dio_disk_queue(&self->t->fs.disk, "dma_alignment") + 1;
	unsigned int mem = 0, offset = 0;
	int fd;

	fd = open_new(self->t);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, dio_statx(fd, &mem, &offset)) TH_LOG("%s", dio_why());
	EXPECT_EQ(self->lbs, offset);
	EXPECT_EQ(align, (long)mem);
}

TEST_F(any, count_zero_is_nothing)
{
	void *buf = dio_alloc(4096);
	enum dio_method m;
	int fd;

	ASSERT_EQ(0, prepare(self->t, 8192, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* There is no registering of no memory. */
		if (m == DIO_URING_FIXED)
			continue;
		EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, 0, 0)) BY(m);
		EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, 0, 4096)) BY(m);
		EXPECT_EQ(0, dio_rw(m, DIO_WRITE, fd, buf, 0, 0)) BY(m);
		EXPECT_EQ(0, dio_rw(m, DIO_WRITE, fd, buf, 0, 1 << 20)) BY(m);
	}
	EXPECT_TRUE(untouched(self->t, fd, 8192, 1));
}

TEST_F(ext2, count_zero_leaves_atime_alone)
{
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	void *buf = dio_alloc(4096);
	struct stat st;
	int fd;

	ASSERT_EQ(0, prepare(self->t, 8192, 1));
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	ASSERT_EQ(0, futimens(fd, old));
	EXPECT_EQ(0, pread(fd, buf, 0, 0));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(1000, st.st_atime);
	/* Whereas one byte or more does touch it. */
	EXPECT_EQ(4096, pread(fd, buf, 4096, 0));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_NE(1000, st.st_atime);
}

TEST_F(ext2, read_at_and_past_end_is_zero)
{
	off_t sizes[] = { 0, 1, 511, 512, 1000, 4096, 4097, 70000 };
	void *buf = dio_alloc(8192);
	enum dio_method m;
	unsigned int i;
	off_t end;
	int fd;

	fd = open_new(self->t);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, ftruncate(fd, sizes[i]));
		end = (sizes[i] + self->lbs - 1) / self->lbs * self->lbs;
		for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
			EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, 8192, end))
				BY(m);
			EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, self->lbs,
					    end + 4096)) BY(m);
			EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, 4096,
					    end + (1 << 30))) BY(m);
		}
	}
}

TEST_F(ext2, read_across_end_returns_what_is_there)
{
	off_t sizes[] = { 1, 511, 512, 513, 1023, 1024, 1500, 4095, 4096, 4097,
			  9999, 16383 };
	void *buf = dio_alloc(32768);
	enum dio_method m;
	off_t size, last;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size = sizes[i];
		last = (size - 1) / self->lbs * self->lbs;
		ASSERT_EQ(0, prepare(self->t, size, i));
		fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
		for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
			memset(buf, 0, 32768);
			ASSERT_EQ(size,
				  dio_rw(m, DIO_READ, fd, buf, 32768, 0)) {
				BY(m);
				TH_LOG("size %ld", (long)size);
			}
			EXPECT_EQ(-1, dio_differs(buf, size, 0, i)) BY(m);
			EXPECT_EQ(size - last, dio_rw(m, DIO_READ, fd, buf,
						      self->lbs, last)) BY(m);
			EXPECT_EQ(-1, dio_differs(buf, size - last, last, i))
				BY(m);
		}
		close(fd);
	}
}

TEST_F(ext2, holes_read_as_zeroes)
{
	unsigned int bs = variant->block_size;
	/* Blocks of the file that are there; holes of many sizes between. */
	static const int there[] = { 1, 2, 4, 7, 11, 12, 13, 20, 40, 41 };
	size_t size = 64 * bs;
	unsigned char *buf = dio_alloc(size), *all = calloc(1, size);
	enum dio_method m;
	unsigned int i;
	off_t pos;
	int fd;

	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC);
	for (i = 0; i < ARRAY_SIZE(there); i++) {
		pos = there[i] * bs;
		dio_fill(all + pos, bs, pos, 1);
		ASSERT_EQ((ssize_t)bs, pwrite(fd, all + pos, bs, pos));
	}
	ASSERT_EQ(0, ftruncate(fd, size));
	close(fd);
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* One request for all, then hole or data by itself. */
		memset(buf, MARK, size);
		ASSERT_EQ((ssize_t)size,
			  dio_rw(m, DIO_READ, fd, buf, size, 0)) BY(m);
		ASSERT_EQ(0, memcmp(buf, all, size)) BY(m);
		for (pos = 0; pos < (off_t)size; pos += self->lbs * 3) {
			memset(buf, MARK, self->lbs);
			ASSERT_EQ((ssize_t)self->lbs,
				  dio_rw(m, DIO_READ, fd, buf, self->lbs, pos))
				BY(m);
			ASSERT_EQ(0, memcmp(buf, all + pos, self->lbs)) BY(m);
		}
	}
}

TEST_F(ext2, file_that_is_all_hole)
{
	void *buf = dio_alloc(MIB);
	enum dio_method m;
	struct stat st;
	int fd;

	fd = open_new(self->t);
	ASSERT_EQ(0, ftruncate(fd, 3 * MIB + 777));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		memset(buf, MARK, MIB);
		ASSERT_EQ(MIB,
			  dio_rw(m, DIO_READ, fd, buf, MIB, MIB)) BY(m);
		EXPECT_EQ(-1, dio_not_byte(buf, MIB, 0)) BY(m);
		memset(buf, MARK, MIB);
		ASSERT_EQ(777, dio_rw(m, DIO_READ, fd, buf, MIB, 3 * MIB)) BY(m);
		EXPECT_EQ(-1, dio_not_byte(buf, 777, 0)) BY(m);
	}
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0, st.st_blocks);
}

TEST_F(ext2, sector_overwrite_keeps_the_rest_of_the_block)
{
	unsigned int bs = variant->block_size, lbs = self->lbs;
	unsigned char *buf = dio_alloc(bs * 4), *all = dio_alloc(bs * 4);
	enum dio_method m;
	off_t pos;
	int fd;

	if (bs == lbs)
		SKIP(return, "a block is one sector");
	for (pos = bs; pos < 3 * bs; pos += lbs) {
		ASSERT_EQ(0, prepare(self->t, bs * 4, 1));
		fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
		dio_fill(all, bs * 4, 0, 1);
		for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
			dio_fill(all + pos, lbs, pos, 10 + m);
			memcpy(buf, all + pos, lbs);
			ASSERT_EQ((ssize_t)lbs,
				  dio_rw(m, DIO_WRITE, fd, buf, lbs, pos)) BY(m);
			ASSERT_EQ((ssize_t)bs * 4,
				  dio_rw(m, DIO_READ, fd, buf, bs * 4, 0)) BY(m);
			ASSERT_EQ(0, memcmp(buf, all, bs * 4)) BY(m);
		}
		close(fd);
	}
}

/*
 * After the file is made longer, what follows @size up to the end of its block
 * must be zeroes, and nothing of the disk's past may show anywhere.
 */
static bool tail_is_zero(struct dio_target *t, off_t size)
{
	size_t len = size + 2 * t->block_size;
	unsigned char *buf = malloc(len);
	int fd = dio_target_open(t, O_RDWR);
	bool zero;

	zero = ftruncate(fd, len) == 0 && dio_drop_caches() == 0 &&
	       pread(fd, buf, len, 0) == (ssize_t)len &&
	       dio_not_byte(buf + size, len - size, 0) < 0;
	close(fd);
	free(buf);
	return zero;
}

TEST_F(ext2, append_by_sectors)
{
	unsigned int lbs = self->lbs, sectors = 3 * variant->block_size / lbs + 1;
	unsigned char *buf = dio_alloc(sectors * lbs);
	enum dio_method m;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		fd = open_new(self->t);
		if (!dio_can_or_close(m, fd))
			continue;
		for (i = 0; i < sectors; i++) {
			dio_fill(buf, lbs, i * lbs, m);
			ASSERT_EQ((ssize_t)lbs, dio_rw(m, DIO_WRITE, fd, buf,
						       lbs, i * lbs)) BY(m);
			ASSERT_EQ((i + 1) * lbs, size_of(fd)) BY(m);
		}
		ASSERT_EQ((ssize_t)(sectors * lbs),
			  dio_rw(m, DIO_READ, fd, buf, sectors * lbs, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, sectors * lbs, 0, m)) BY(m);
		close(fd);
		EXPECT_TRUE(tail_is_zero(self->t, sectors * lbs)) BY(m);
	}
}

TEST_F(ext2, rest_of_a_new_block_is_zeroed)
{
	unsigned int bs = variant->block_size, lbs = self->lbs;
	unsigned char *buf = dio_alloc(8 * bs), *all = malloc(8 * bs);
	enum dio_method m;
	off_t pos, size;
	int fd, inside;

	if (bs == lbs)
		SKIP(return, "a block is one sector");
	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	/* One sector of a new block: past the end, then in a hole. */
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		for (pos = 3 * bs; pos < 4 * bs; pos += lbs) {
			inside = (pos / lbs) & 1;
			fd = open_new(self->t);
			if (!dio_can(m, fd))
				break;
			size = inside ? 8 * bs : pos + lbs;
			if (inside)
				ASSERT_EQ(0, ftruncate(fd, size));
			dio_fill(buf, lbs, pos, m);
			ASSERT_EQ((ssize_t)lbs, dio_rw(m, DIO_WRITE, fd, buf,
						       lbs, pos)) BY(m);
			ASSERT_EQ(size, size_of(fd)) BY(m);
			memset(all, 0, 8 * bs);
			memcpy(all + pos, buf, lbs);
			ASSERT_EQ(size, dio_rw(m, DIO_READ, fd, buf, 8 * bs, 0))
				BY(m);
			ASSERT_EQ(0, memcmp(buf, all, size)) BY(m);
			if (!inside)
				ASSERT_TRUE(tail_is_zero(self->t, size)) BY(m);
			close(fd);
		}
	}
}

TEST_F(ext2, write_into_a_hole)
{
	unsigned int bs = variant->block_size, lbs = self->lbs;
	struct { off_t pos; size_t len; } part[] = {
		{ 2 * bs, bs }, { 8 * bs, 3 * bs }, { 20 * bs - lbs, 2 * lbs },
		{ 30 * bs + lbs, bs * 14 }, { 60 * bs, lbs }, { 63 * bs, bs },
	};
	size_t size = 64 * bs;
	unsigned char *buf = dio_alloc(size), *all = malloc(size);
	enum dio_method m;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		fd = open_new(self->t);
		if (!dio_can_or_close(m, fd))
			continue;
		ASSERT_EQ(0, ftruncate(fd, size));
		memset(all, 0, size);
		for (i = 0; i < ARRAY_SIZE(part); i++) {
			dio_fill(all + part[i].pos, part[i].len, part[i].pos, m);
			memcpy(buf, all + part[i].pos, part[i].len);
			ASSERT_EQ((ssize_t)part[i].len,
				  dio_rw(m, DIO_WRITE, fd, buf, part[i].len,
					 part[i].pos)) {
				BY(m);
				TH_LOG("part %u", i);
			}
		}
		EXPECT_EQ((off_t)size, size_of(fd));
		ASSERT_EQ((ssize_t)size, dio_rw(m, DIO_READ, fd, buf, size, 0))
			BY(m);
		EXPECT_EQ(0, memcmp(buf, all, size)) BY(m);
		EXPECT_FALSE(dio_has_byte_run(buf, size, MARK)) BY(m);
		close(fd);
		/* And the same from the disk, buffered. */
		ASSERT_EQ(0, dio_fs_remount(&self->t->fs));
		fd = dio_target_open(self->t, O_RDONLY);
		ASSERT_EQ((ssize_t)size, read(fd, buf, size));
		EXPECT_EQ(0, memcmp(buf, all, size)) BY(m);
		close(fd);
	}
}

TEST_F(ext2, write_over_data_and_holes_at_once)
{
	unsigned int bs = variant->block_size;
	size_t size = 40 * bs;
	unsigned char *buf = dio_alloc(size);
	enum dio_method m;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, dio_target_mark(self->t, MARK)) TH_LOG("%s", dio_why());
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		fd = open_new(self->t);
		if (!dio_can_or_close(m, fd))
			continue;
		/* Every third block is there; the request also extends. */
		for (i = 0; i < 30; i += 3)
			ASSERT_EQ((ssize_t)bs,
				  pwrite(fd, buf, bs, i * bs));
		dio_fill(buf, size, 0, m);
		ASSERT_EQ((ssize_t)size,
			  dio_rw(m, DIO_WRITE, fd, buf, size, 0)) BY(m);
		ASSERT_EQ((off_t)size, size_of(fd)) BY(m);
		ASSERT_EQ(0, dio_drop_caches());
		ASSERT_EQ((ssize_t)size,
			  dio_rw(m, DIO_READ, fd, buf, size, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, size, 0, m)) BY(m);
		close(fd);
	}
}

TEST_F(ext2, write_past_the_end_moves_the_size)
{
	unsigned int lbs = self->lbs;
	size_t len = 64 * KIB;
	void *buf = dio_alloc(len + MIB);
	enum dio_method m;
	struct stat st;
	int fd;

	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		fd = open_new(self->t);
		if (!dio_can_or_close(m, fd))
			continue;
		dio_fill(buf, len, 0, m);
		ASSERT_EQ((ssize_t)len, dio_rw(m, DIO_WRITE, fd, buf, len, 0))
			BY(m);
		EXPECT_EQ((off_t)len, size_of(fd)) BY(m);
		/* Half of it inside the file. */
		dio_fill(buf, len, len / 2, m);
		ASSERT_EQ((ssize_t)len,
			  dio_rw(m, DIO_WRITE, fd, buf, len, len / 2)) BY(m);
		EXPECT_EQ((off_t)len * 3 / 2, size_of(fd)) BY(m);
		/* Far behind it, leaving a hole. */
		dio_fill(buf, lbs, MIB, m);
		ASSERT_EQ((ssize_t)lbs,
			  dio_rw(m, DIO_WRITE, fd, buf, lbs, MIB)) BY(m);
		ASSERT_EQ(0, fstat(fd, &st));
		EXPECT_EQ(MIB + lbs, st.st_size) BY(m);
		EXPECT_GT(MIB / 512, st.st_blocks) BY(m);
		ASSERT_EQ(MIB + lbs,
			  dio_rw(m, DIO_READ, fd, buf, len + MIB, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, len * 3 / 2, 0, m)) BY(m);
		EXPECT_EQ(-1, dio_not_byte(buf + len * 3 / 2,
					   MIB - len * 3 / 2, 0)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf + MIB, lbs, MIB, m)) BY(m);
		close(fd);
	}
}

TEST_F(ext2, o_append_writes_at_the_end)
{
	void *buf = dio_alloc(16384);
	enum dio_method m;
	off_t size = 0;
	int fd;

	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT |
				      O_APPEND);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf, 8192, size, 1);
		ASSERT_EQ(8192, dio_rw(m, DIO_WRITE, fd, buf, 8192, 0)) BY(m);
		ASSERT_EQ(size + 8192, size_of(fd)) BY(m);
		ASSERT_EQ(8192, dio_rw(m, DIO_READ, fd, buf, 8192, size)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, 8192, size, 1)) BY(m);
		size += 8192;
	}
}

TEST_F(ext2, file_with_a_tail_grows_by_a_sector)
{
	unsigned int lbs = self->lbs;
	unsigned char *buf = dio_alloc(32768);
	enum dio_method m;
	off_t pos, size;
	int fd;

	/* A write after an odd end: what was between reads as zeroes. */
	for (m = DIO_SYNC; m < DIO_METHODS; m++) {
		for (size = 1; size < 9000; size += 1777) {
			ASSERT_EQ(0, prepare(self->t, size, 1));
			fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
			if (!dio_can(m, fd))
				break;
			pos = (size + lbs - 1) / lbs * lbs;
			dio_fill(buf, lbs, pos, 2);
			ASSERT_EQ((ssize_t)lbs, dio_rw(m, DIO_WRITE, fd, buf,
						       lbs, pos)) BY(m);
			ASSERT_EQ(pos + lbs,
				  dio_rw(m, DIO_READ, fd, buf, 32768, 0)) BY(m);
			EXPECT_EQ(-1, dio_differs(buf, size, 0, 1)) BY(m);
			EXPECT_EQ(-1, dio_not_byte(buf + size, pos - size, 0))
				BY(m);
			EXPECT_EQ(-1, dio_differs(buf + pos, lbs, pos, 2)) BY(m);
			close(fd);
		}
	}
}

TEST_F(ext2, write_beyond_the_largest_file_refused)
{
	void *buf = dio_alloc(4096);
	struct stat st;
	int fd;

	fd = open_new(self->t);
	EXPECT_EQ(-EFBIG, dio_rw(DIO_SYNC, DIO_WRITE, fd, buf, 4096, 1LL << 50));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0, st.st_size);
	EXPECT_EQ(0, st.st_blocks);
}

TEST_F(any, a_thousand_small_vectors)
{
	size_t len = 1024 * self->lbs;
	unsigned char *buf = dio_alloc(2 * len);
	struct iovec iov[1024];
	unsigned int i;
	int fd;

	/* Every other sector of the memory. */
	for (i = 0; i < 1024; i++) {
		iov[i].iov_base = buf + 2 * i * self->lbs;
		iov[i].iov_len = self->lbs;
		dio_fill(iov[i].iov_base, self->lbs, i * self->lbs, 1);
	}
	fd = open_new(self->t);
	ASSERT_EQ((ssize_t)len, pwritev(fd, iov, 1024, 0));
	memset(buf, 0, 2 * len);
	ASSERT_EQ((ssize_t)len, preadv(fd, iov, 1024, 0));
	for (i = 0; i < 1024; i++) {
		ASSERT_EQ(-1, dio_differs(iov[i].iov_base, self->lbs,
					  i * self->lbs, 1));
		ASSERT_EQ(-1, dio_not_byte(iov[i].iov_base + self->lbs,
					   self->lbs, 0));
	}
}

TEST_F(any, vectors_of_mixed_alignment)
{
	size_t align = dio_disk_queue(&self->t->fs.disk, "dma_alignment") + 1;
	unsigned int lbs = self->lbs;
	unsigned char *buf = dio_alloc(MIB);
	size_t shift[] = { 512, 0, 1536, align, 3584, align * 3, 512, 2048 };
	size_t len[] = { 1, 8, 3, 1, 16, 2, 5, 28 };
	struct iovec iov[8];
	off_t pos = 0;
	unsigned int i;
	int fd;

	for (i = 0; i < 8; i++) {
		iov[i].iov_base = buf + i * 128 * KIB + shift[i];
		iov[i].iov_len = len[i] * lbs;
		dio_fill(iov[i].iov_base, iov[i].iov_len, pos, 1);
		pos += iov[i].iov_len;
	}
	fd = open_new(self->t);
	ASSERT_EQ(pos, pwritev(fd, iov, 8, lbs));
	memset(buf, 0, MIB);
	ASSERT_EQ(pos, preadv(fd, iov, 8, lbs));
	for (pos = 0, i = 0; i < 8; i++) {
		ASSERT_EQ(-1, dio_differs(iov[i].iov_base, iov[i].iov_len, pos,
					  1)) TH_LOG("vector %u", i);
		pos += iov[i].iov_len;
	}
}

TEST_F(any, filesystem_is_clean_afterwards)
{
	if (!variant->block_size)
		SKIP(return, "no filesystem");
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
}

/* The end of a disk: the two bare devices only. */
FIXTURE(disk) {
	struct dio_target *t;
	off_t end;
};

FIXTURE_VARIANT(disk) {
	unsigned int lbs;
};

FIXTURE_VARIANT_ADD(disk, of_512) { 512 };
FIXTURE_VARIANT_ADD(disk, of_4096) { 4096 };

FIXTURE_SETUP(disk)
{
	self->t = dio_target(variant->lbs, 0);
	if (self->t->state < 0)
		SKIP(return, "%s", self->t->why);
	self->end = self->t->fs.disk.mib * MIB;
}

FIXTURE_TEARDOWN(disk)
{
}

TEST_F(disk, read_at_the_end_is_zero)
{
	int fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	void *buf = dio_alloc(16384);
	enum dio_method m;

	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, 8192, self->end))
			BY(m);
		EXPECT_EQ(0, dio_rw(m, DIO_READ, fd, buf, 8192,
				    self->end + MIB)) BY(m);
	}
}

TEST_F(disk, transfer_across_the_end_is_cut_short)
{
	int fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	off_t pos = self->end - 8192;
	void *buf = dio_alloc(32768);
	enum dio_method m;

	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf, 32768, pos, m);
		EXPECT_EQ(8192, dio_rw(m, DIO_WRITE, fd, buf, 32768, pos)) BY(m);
		memset(buf, 0, 32768);
		EXPECT_EQ(8192, dio_rw(m, DIO_READ, fd, buf, 32768, pos)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, 8192, pos, m)) BY(m);
		EXPECT_EQ(-1, dio_not_byte(buf + 8192, 32768 - 8192, 0)) BY(m);
	}
}

TEST_F(disk, write_at_the_end_finds_no_space)
{
	int fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	void *buf = dio_alloc(16384);
	enum dio_method m;

	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		EXPECT_EQ(-ENOSPC, dio_rw(m, DIO_WRITE, fd, buf, 8192,
					  self->end)) BY(m);
		EXPECT_EQ(-ENOSPC, dio_rw(m, DIO_WRITE, fd, buf, 8192,
					  self->end + MIB)) BY(m);
	}
}

TEST_HARNESS_MAIN
