// SPDX-License-Identifier: GPL-2.0
/*
 * The other filesystems: what a program sees of direct I/O on each of them, on
 * disks of 512- and of 4096-byte sectors. Each test ends with an unmount, the
 * filesystem's own fsck, and the data again after a new mount.
 */
#include "../kselftest_harness.h"
#include "dio.h"

#define ROOM (2 * MIB)
#define PAGE 4096
#define BY(m) TH_LOG("by %s", dio_method_name(m))

FIXTURE(fs) {
	struct dio_target *t;
	unsigned int lbs;
};

FIXTURE_VARIANT(fs) {
	const char *type;
	unsigned int lbs;
};

FIXTURE_VARIANT_ADD(fs, vfat_512) { "vfat", 512 };
FIXTURE_VARIANT_ADD(fs, vfat_4096) { "vfat", 4096 };
FIXTURE_VARIANT_ADD(fs, exfat_512) { "exfat", 512 };
FIXTURE_VARIANT_ADD(fs, exfat_4096) { "exfat", 4096 };
FIXTURE_VARIANT_ADD(fs, udf_512) { "udf", 512 };
FIXTURE_VARIANT_ADD(fs, udf_4096) { "udf", 4096 };
FIXTURE_VARIANT_ADD(fs, jfs_512) { "jfs", 512 };
FIXTURE_VARIANT_ADD(fs, jfs_4096) { "jfs", 4096 };
FIXTURE_VARIANT_ADD(fs, nilfs2_512) { "nilfs2", 512 };
FIXTURE_VARIANT_ADD(fs, nilfs2_4096) { "nilfs2", 4096 };
FIXTURE_VARIANT_ADD(fs, ntfs3_512) { "ntfs3", 512 };
FIXTURE_VARIANT_ADD(fs, ntfs3_4096) { "ntfs3", 4096 };
/* has blocks of 512 bytes and no others */
FIXTURE_VARIANT_ADD(fs, hfs_512) { "hfs", 512 };
FIXTURE_VARIANT_ADD(fs, hfsplus_512) { "hfsplus", 512 };
FIXTURE_VARIANT_ADD(fs, hfsplus_4096) { "hfsplus", 4096 };
FIXTURE_VARIANT_ADD(fs, affs_512) { "affs", 512 };
FIXTURE_VARIANT_ADD(fs, affs_4096) { "affs", 4096 };
FIXTURE_VARIANT_ADD(fs, ocfs2_512) { "ocfs2", 512 };
FIXTURE_VARIANT_ADD(fs, ocfs2_4096) { "ocfs2", 4096 };
FIXTURE_VARIANT_ADD(fs, reiserfs_512) { "reiserfs", 512 };
FIXTURE_VARIANT_ADD(fs, reiserfs_4096) { "reiserfs", 4096 };

FIXTURE_SETUP(fs)
{
	const struct dio_fs_type *type = dio_fs_type(variant->type);

	if (!type)
		SKIP(return, "%s", dio_why());
	self->lbs = variant->lbs;
	self->t = dio_target_fs(type, variant->lbs);
	ASSERT_EQ(1, self->t->state) TH_LOG("%s", self->t->why);
	self->t->spoiled = true;
}

/* Only a test that came through leaves the filesystem for another one. */
FIXTURE_TEARDOWN(fs)
{
	if (self->t && __test_passed(_metadata))
		self->t->spoiled = false;
}

/* A file, open both ways, and what it should hold. */
struct file {
	char path[96];
	int fd;
	int plain;
	unsigned char *model;
	unsigned char *buf;
	size_t room;
	off_t size;
};

static int file_open(struct file *f)
{
	f->plain = open(f->path, O_RDWR);
	f->fd = open(f->path, O_RDWR | O_DIRECT);
	return f->plain < 0 || f->fd < 0 ? -errno : 0;
}

static void file_close(struct file *f)
{
	close(f->fd);
	close(f->plain);
}

/* A new, empty one, which may come to hold @room bytes. */
static int file_new(struct file *f, struct dio_target *t, const char *name,
		    size_t room)
{
	int fd;

	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s/%s", t->fs.dir, name);
	fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	f->room = room;
	f->model = dio_alloc(room);
	f->buf = dio_alloc(room);
	return file_open(f);
}

static int file_resize(struct file *f, off_t size)
{
	if (ftruncate(f->plain, size))
		return -errno;
	if (size < f->size)
		memset(f->model + size, 0, f->size - size);
	f->size = size;
	return 0;
}

/* Pattern @seed goes to the model, and into the buffer that is then written. */
static void compose(struct file *f, off_t pos, size_t len, __u32 seed)
{
	dio_fill(f->model + pos, len, pos, seed);
	memcpy(f->buf, f->model + pos, len);
	if (f->size < pos + (off_t)len)
		f->size = pos + len;
}

static ssize_t put(struct file *f, enum dio_method m, off_t pos, size_t len,
		   __u32 seed)
{
	compose(f, pos, len, seed);
	return dio_rw(m, DIO_WRITE, f->fd, f->buf, len, pos);
}

static ssize_t put_plain(struct file *f, off_t pos, size_t len, __u32 seed)
{
	compose(f, pos, len, seed);
	return pwrite(f->plain, f->buf, len, pos);
}

/* Are these @n bytes in the buffer all that is in the file? Else say where not. */
static bool as_modelled(struct file *f, ssize_t n)
{
	off_t at;

	if (n == f->size && !memcmp(f->buf, f->model, n))
		return true;
	for (at = 0; at < n && at < f->size && f->buf[at] == f->model[at]; at++)
		;
	printf("# %s: %zd bytes read of %lld, wrong at %lld: %02x, not %02x\n",
	       f->path, n, (long long)f->size, (long long)at,
	       at < n ? f->buf[at] : 0, at < f->size ? f->model[at] : 0);
	return false;
}

/* All of the file, and not a byte more, by this method and descriptor. */
static bool same(struct file *f, enum dio_method m, int fd)
{
	memset(f->buf, ~DIO_FS_MARK, f->size);
	return as_modelled(f, dio_rw(m, DIO_READ, fd, f->buf, f->room, 0));
}

static bool holds(struct file *f, enum dio_method m)
{
	return same(f, m, f->fd);
}

static bool holds_plain(struct file *f)
{
	return same(f, DIO_SYNC, f->plain);
}

/* What the disk has of these files in the end, and that fsck is content. */
static bool settled(struct dio_target *t, struct file *f, int nr)
{
	bool good = true;
	int i;

	for (i = 0; i < nr; i++)
		file_close(&f[i]);
	if (dio_fs_check(&t->fs)) {
		printf("# %s\n", dio_why());
		return false;
	}
	for (i = 0; i < nr && good; i++) {
		good = !file_open(&f[i]) && holds(&f[i], DIO_SYNC) &&
		       holds_plain(&f[i]);
		file_close(&f[i]);
	}
	return good;
}

TEST_F(fs, data_by_every_method)
{
	size_t len = 96 * KIB;
	enum dio_method w, r;
	struct file f;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	for (w = DIO_SYNC; w < DIO_METHODS; w = dio_next_method(w, f.fd)) {
		ASSERT_EQ((ssize_t)len, put(&f, w, PAGE, len, w)) BY(w);
		for (r = DIO_SYNC; r < DIO_METHODS;
		     r = dio_next_method(r, f.fd))
			ASSERT_TRUE(holds(&f, r)) BY(r);
	}
	EXPECT_TRUE(settled(self->t, &f, 1));
}

TEST_F(fs, sectors_overwritten_and_appended)
{
	size_t len = 64 * KIB;
	ssize_t lbs = self->lbs;
	enum dio_method m;
	struct file f;
	off_t pos;
	int i;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	ASSERT_EQ((ssize_t)len, put_plain(&f, 0, len, 100));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, f.fd)) {
		for (pos = m * lbs; pos < (off_t)len; pos += 7 * lbs)
			ASSERT_EQ(lbs, put(&f, m, pos, lbs, m)) BY(m);
		ASSERT_TRUE(holds(&f, m)) BY(m);
		for (i = 0; i < 9; i++)
			ASSERT_EQ(lbs, put(&f, m, f.size, lbs, m)) BY(m);
		ASSERT_TRUE(holds(&f, m)) BY(m);
		ASSERT_TRUE(holds_plain(&f)) BY(m);
	}
	/* The rest of the last block is zeroes, not what the disk had. */
	ASSERT_EQ(0, file_resize(&f, f.size + 3 * self->t->block_size));
	ASSERT_EQ(0, dio_drop_caches());
	EXPECT_TRUE(holds_plain(&f));
	EXPECT_TRUE(settled(self->t, &f, 1));
}

TEST_F(fs, end_of_file_at_odd_sizes)
{
	static const off_t sizes[] = { 1, 511, 512, 513, 4097, 9999, 70000 };
	off_t lbs = self->lbs, last, end;
	enum dio_method m;
	struct file f;
	unsigned int i;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, file_resize(&f, 0));
		ASSERT_EQ(sizes[i], put_plain(&f, 0, sizes[i], i));
		last = (sizes[i] - 1) / lbs * lbs;
		end = last + lbs;
		for (m = DIO_SYNC; m < DIO_METHODS;
		     m = dio_next_method(m, f.fd)) {
			ASSERT_TRUE(holds(&f, m)) BY(m);
			EXPECT_EQ(sizes[i] - last,
				  dio_rw(m, DIO_READ, f.fd, f.buf, lbs, last))
				BY(m);
			EXPECT_EQ(0, dio_rw(m, DIO_READ, f.fd, f.buf, 8192,
					    end)) BY(m);
			EXPECT_EQ(0, dio_rw(m, DIO_READ, f.fd, f.buf, 8192,
					    end + MIB)) BY(m);
		}
		/* A sector behind it: what is between is zeroes. */
		m = i % DIO_URING_POLL;
		ASSERT_EQ(lbs, put(&f, m, end, lbs, 100)) BY(m);
		ASSERT_TRUE(holds(&f, m)) BY(m);
	}
	EXPECT_TRUE(settled(self->t, &f, 1));
}

TEST_F(fs, holes_read_and_written)
{
	ssize_t lbs = self->lbs;
	enum dio_method m;
	struct file f;
	off_t pos;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	ASSERT_EQ(0, file_resize(&f, 400001));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, f.fd)) {
		ASSERT_TRUE(holds(&f, m)) BY(m);
		/* Inside of a block, whole blocks, and across their ends. */
		pos = m * 12 * PAGE;
		ASSERT_EQ(lbs, put(&f, m, pos + lbs, lbs, m)) BY(m);
		ASSERT_EQ(3 * PAGE, put(&f, m, pos + 2 * PAGE, 3 * PAGE, m))
			BY(m);
		ASSERT_EQ(2 * PAGE + 2 * lbs, put(&f, m, pos + 7 * PAGE - lbs,
						  2 * PAGE + 2 * lbs, m)) BY(m);
		ASSERT_TRUE(holds(&f, m)) BY(m);
		ASSERT_TRUE(holds_plain(&f)) BY(m);
	}
	/* Over data and holes and past the end, all in one. */
	ASSERT_EQ(400 * KIB, put(&f, DIO_AIO, 16 * KIB, 400 * KIB, 100));
	ASSERT_TRUE(holds(&f, DIO_SYNC));
	ASSERT_EQ(0, dio_drop_caches());
	EXPECT_TRUE(holds_plain(&f));
	EXPECT_TRUE(settled(self->t, &f, 1));
}

TEST_F(fs, growth)
{
	ssize_t len = 64 * KIB, lbs = self->lbs;
	enum dio_method m;
	struct file f;
	int fd;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	fd = open(f.path, O_RDWR | O_DIRECT | O_APPEND);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		ASSERT_EQ(0, file_resize(&f, 0));
		ASSERT_EQ(len, put(&f, m, 0, len, m)) BY(m);
		/* Half of it inside the file; far behind; wherever that is. */
		ASSERT_EQ(len, put(&f, m, len / 2, len, 10 + m)) BY(m);
		ASSERT_EQ(lbs, put(&f, m, 200 * KIB, lbs, 20 + m)) BY(m);
		compose(&f, f.size, 2 * lbs, 30 + m);
		ASSERT_EQ(2 * lbs, dio_rw(m, DIO_WRITE, fd, f.buf, 2 * lbs, 0))
			BY(m);
		ASSERT_TRUE(holds(&f, m)) BY(m);
		ASSERT_EQ(0, dio_drop_caches());
		ASSERT_TRUE(holds_plain(&f)) BY(m);
	}
	close(fd);
	EXPECT_TRUE(settled(self->t, &f, 1));
}

TEST_F(fs, beside_the_page_cache)
{
	ssize_t len = 128 * KIB, lbs = self->lbs;
	enum dio_method m;
	struct file f;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	ASSERT_EQ(len, put_plain(&f, 0, len, 100));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, f.fd)) {
		/* Dirty and read; cached and written. */
		ASSERT_EQ(20000, put_plain(&f, 30000, 20000, m));
		ASSERT_TRUE(holds(&f, m)) BY(m);
		ASSERT_TRUE(holds_plain(&f));
		ASSERT_EQ(5 * lbs, put(&f, m, 3 * lbs, 5 * lbs, 10 + m)) BY(m);
		ASSERT_TRUE(holds_plain(&f)) BY(m);
		/* All dirty, and a few sectors in the middle go direct. */
		ASSERT_EQ(len, put_plain(&f, 0, len, 20 + m));
		ASSERT_EQ(3 * lbs, put(&f, m, 9 * lbs, 3 * lbs, 30 + m)) BY(m);
		ASSERT_EQ(0, dio_drop_caches());
		ASSERT_TRUE(holds_plain(&f)) BY(m);
	}
	EXPECT_TRUE(settled(self->t, &f, 1));
}

TEST_F(fs, beside_a_mapping)
{
	ssize_t len = 128 * KIB;
	enum dio_method m;
	unsigned char *map;
	struct file f;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	ASSERT_EQ(len, put_plain(&f, 0, len, 100));
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, f.plain, 0);
	ASSERT_NE(MAP_FAILED, (void *)map);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, f.fd)) {
		compose(&f, 5000, 70000, m);
		memcpy(map + 5000, f.buf, 70000);
		ASSERT_TRUE(holds(&f, m)) BY(m);
		/* Mapped and dirty, then overwritten on the disk. */
		compose(&f, 0, len, 10 + m);
		memcpy(map, f.buf, len);
		ASSERT_EQ(65536, put(&f, m, 8192, 65536, 20 + m)) BY(m);
		EXPECT_EQ(0, memcmp(map, f.model, len)) BY(m);
	}
	munmap(map, len);
	EXPECT_TRUE(settled(self->t, &f, 1));
}

/* Memory of @len bytes, pattern 2, whose page @bad nobody may touch. */
static unsigned char *alloc_bad(size_t len, int bad)
{
	unsigned char *buf = dio_alloc(len);

	dio_fill(buf, len, 0, 2);
	mprotect(buf + bad * PAGE, PAGE, PROT_NONE);
	return buf;
}

/*
 * The file starts with the @n bytes that a write said it wrote, and all else is
 * as it was. Where the write said EFAULT for all, which only iomap does, what
 * was before the bad page may be new already, and the file longer, by zeroes.
 */
static bool cut_short(struct file *f, ssize_t n, ssize_t before)
{
	ssize_t i, got;

	if (n > 0 && f->size < n)
		f->size = n;
	if (n > 0)
		dio_fill(f->model, n, 0, 2);
	got = pread(f->plain, f->buf, f->room, 0);
	if (n == -EFAULT) {
		f->size = got < 2 * before ? got : f->size;
		for (i = 0; i < before; i += 512)
			if (dio_differs(f->buf + i, 512, i, 2) < 0)
				dio_fill(f->model + i, 512, i, 2);
	} else if (n != before) {
		return false;
	}
	return as_modelled(f, got);
}

TEST_F(fs, bad_page_in_the_middle)
{
	static const enum dio_method methods[] = {
		DIO_SYNC, DIO_AIO, DIO_URING,
	};
	ssize_t len = 8 * PAGE, before = 5 * PAGE, n;
	unsigned char *bad = alloc_bad(len, 5);
	enum dio_method m;
	struct file f;
	unsigned int i;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	/* After a short direct write comes a buffered one, which has to be good. */
	ASSERT_EQ(len, put(&f, DIO_SYNC, 0, len, 1));
	if (!cut_short(&f, pwrite(f.plain, bad, len, 0), before))
		SKIP(return, "%s: a buffered write spoils the file already",
		     variant->type);
	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		m = methods[i];
		ASSERT_EQ(0, file_resize(&f, 0));
		ASSERT_EQ(len, put(&f, m, 0, len, 1)) BY(m);
		n = dio_rw(m, DIO_READ, f.fd, bad, len, 0);
		EXPECT_TRUE(n == before || n == -EFAULT) {
			BY(m);
			TH_LOG("read: %zd", n);
		}
		EXPECT_EQ(-1, dio_differs(bad, n > 0 ? n : 0, 0, 1)) BY(m);
		dio_fill(bad, before, 0, 2);
		n = dio_rw(m, DIO_WRITE, f.fd, bad, len, 0);
		EXPECT_TRUE(cut_short(&f, n, before)) {
			BY(m);
			TH_LOG("overwrite: %zd", n);
		}
		ASSERT_EQ(0, file_resize(&f, 0));
		ASSERT_EQ(0, file_resize(&f, 2 * len));
		n = dio_rw(m, DIO_WRITE, f.fd, bad, len, 0);
		EXPECT_TRUE(cut_short(&f, n, before)) {
			BY(m);
			TH_LOG("into a hole: %zd", n);
		}
		ASSERT_EQ(0, file_resize(&f, 0));
		n = dio_rw(m, DIO_WRITE, f.fd, bad, len, 0);
		EXPECT_TRUE(cut_short(&f, n, before)) {
			BY(m);
			TH_LOG("append: %zd", n);
		}
	}
	/* which iomap's callers, and NTFS3, do not leave as long as they say it is */
	if (n < 0 || !strcmp(variant->type, "ntfs3"))
		ASSERT_EQ(len, put(&f, DIO_SYNC, 0, len, 3));
	EXPECT_TRUE(settled(self->t, &f, 1));
}

/* The file holds pattern @seed, @size bytes of it. */
static bool all_there(int fd, void *buf, off_t size, __u32 seed)
{
	off_t pos;
	ssize_t n;

	for (pos = 0; pos < size; pos += n) {
		n = pread(fd, buf, MIB, pos);
		if (n <= 0 || dio_differs(buf, n, pos, seed) >= 0)
			break;
	}
	if (pos != size)
		printf("# wrong between %lld and %lld of %lld\n",
		       (long long)pos, (long long)pos + MIB, (long long)size);
	return pos == size && pread(fd, buf, MIB, pos) == 0;
}

/* Append until nothing more goes; the size then, or -errno. */
static off_t fill_up(struct file *f, int *last)
{
	enum dio_method m = DIO_SYNC;
	off_t pos = 0;
	ssize_t n;

	do {
		/* Once no MiB goes, a sector may. */
		dio_fill(f->buf, MIB, pos, 1);
		n = dio_rw(m, DIO_WRITE, f->fd, f->buf, MIB, pos);
		m = (m + 1) % DIO_URING_POLL;
		if (n > 0)
			pos += n;
	} while (n == MIB);
	*last = n;
	return pos;
}

TEST_F(fs, disk_full)
{
	struct file f;
	off_t size;
	int last;

	ASSERT_EQ(0, file_new(&f, self->t, "full", MIB));
	size = fill_up(&f, &last);
	EXPECT_LT(2 * MIB, size);
	EXPECT_TRUE(last == -ENOSPC || last >= 0) TH_LOG("%d", last);
	ASSERT_EQ(size, lseek(f.fd, 0, SEEK_END)) TH_LOG("last: %d", last);
	EXPECT_TRUE(all_there(f.fd, f.buf, size, 1));
	/* No room is no room, and what is there can be written over. */
	EXPECT_GT(MIB, dio_rw(DIO_AIO, DIO_WRITE, f.fd, f.buf, MIB, size));
	size = lseek(f.fd, 0, SEEK_END);
	dio_fill(f.buf, MIB, MIB, 1);
	if (!self->t->fs.type->wears)
		EXPECT_EQ(MIB, pwrite(f.fd, f.buf, MIB, MIB));
	/* fsck.hfs takes a volume's very last block for one too many */
	size -= 64 * KIB;
	EXPECT_EQ(0, ftruncate(f.fd, size));
	fsync(f.fd);
	file_close(&f);
	ASSERT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
	ASSERT_EQ(0, file_open(&f));
	EXPECT_EQ(size, lseek(f.fd, 0, SEEK_END));
	file_close(&f);
	ASSERT_EQ(0, unlink(f.path));
	if (self->t->fs.type->wears)
		return;
	/* And all of it is free again, once a journal has said so. */
	sync();
	ASSERT_EQ(0, file_new(&f, self->t, "full", MIB));
	EXPECT_EQ(MIB, put(&f, DIO_SYNC, 0, MIB, 2));
	EXPECT_TRUE(settled(self->t, &f, 1));
	EXPECT_EQ(0, unlink(f.path));
}

TEST_F(fs, truncate_beside_direct_io)
{
	static const enum dio_racer what[4] = {
		DIO_RACE_WRITE, DIO_RACE_WRITE, DIO_RACE_READ, DIO_RACE_TRUNCATE,
	};

	EXPECT_EQ(0, dio_race(self->t, what, 0.5)) TH_LOG("%s", self->t->why);
}

TEST_F(fs, reallocation_beside_direct_io)
{
	static const enum dio_racer what[4] = {
		DIO_RACE_READ, DIO_RACE_READ, DIO_RACE_WRITE, DIO_RACE_REALLOCATE,
	};

	EXPECT_EQ(0, dio_race(self->t, what, 0.3)) TH_LOG("%s", self->t->why);
}

/* DIO_SEED repeats a walk, DIO_SECONDS makes it longer. */
TEST_F(fs, random_walk_agrees_with_a_model)
{
	EXPECT_EQ(0, dio_walk(self->t, 0.4)) TH_LOG("%s", self->t->why);
}

TEST_F(fs, eight_mib_at_once)
{
	static const enum dio_method methods[] = {
		DIO_AIO, DIO_URING_FIXED,
	};
	ssize_t len = 8 * MIB;
	struct file f;
	unsigned int i;

	ASSERT_EQ(0, file_new(&f, self->t, "big", len + MIB));
	ASSERT_EQ(len, put(&f, DIO_SYNC, 0, len, 1));
	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		ASSERT_TRUE(holds(&f, methods[i])) BY(methods[i]);
		ASSERT_EQ(3 * MIB, put(&f, methods[i], 2 * i * MIB + self->lbs,
				       3 * MIB, 2 + i)) BY(methods[i]);
	}
	EXPECT_TRUE(settled(self->t, &f, 1));
	EXPECT_EQ(0, unlink(f.path));
}

TEST_F(fs, fragmented_files)
{
	ssize_t piece = 3 * PAGE, lbs = self->lbs;
	enum dio_method m;
	struct file f[2];
	int i, k;

	ASSERT_EQ(0, file_new(&f[0], self->t, "f", ROOM));
	ASSERT_EQ(0, file_new(&f[1], self->t, "other", ROOM));
	for (i = 0; i < 24; i++)
		for (k = 0; k < 2; k++)
			ASSERT_EQ(piece, put(&f[k], i % DIO_URING_POLL,
					     i * piece, piece, 10 * k));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, f[0].fd)) {
		for (k = 0; k < 2; k++) {
			ASSERT_TRUE(holds(&f[k], m)) BY(m);
			ASSERT_EQ(9 * PAGE, put(&f[k], m, 5 * PAGE + m * lbs,
						9 * PAGE, 10 * k + m)) BY(m);
			ASSERT_TRUE(holds(&f[k], m)) BY(m);
		}
	}
	EXPECT_TRUE(settled(self->t, f, 2));
	EXPECT_EQ(0, unlink(f[1].path));
}

TEST_F(fs, statx_tells_what_works)
{
	unsigned int mem, offset;
	unsigned char *buf;
	enum dio_method m;
	struct file f;
	off_t pos;

	ASSERT_EQ(0, file_new(&f, self->t, "f", ROOM));
	/* not so small that a filesystem keeps it in the inode */
	ASSERT_EQ(64 * KIB, put_plain(&f, 0, 64 * KIB, 1));
	ASSERT_EQ(0, fsync(f.plain));
	if (dio_statx(f.fd, &mem, &offset)) {
		self->t->spoiled = false;
		SKIP(return, "%s: %s", variant->type, dio_why());
	}
	ASSERT_LT(0U, mem);
	EXPECT_LE(self->lbs, offset);
	/* The least memory and the smallest piece, at the oddest place. */
	buf = dio_alloc(offset + mem + PAGE) + mem;
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, f.fd)) {
		pos = 8 * PAGE + (2 * m + 1) * offset;
		compose(&f, pos, offset, 10 + m);
		memcpy(buf, f.buf, offset);
		ASSERT_EQ((ssize_t)offset, dio_rw(m, DIO_WRITE, f.fd, buf,
						  offset, pos)) BY(m);
		memset(buf, 0, offset);
		ASSERT_EQ((ssize_t)offset, dio_rw(m, DIO_READ, f.fd, buf,
						  offset, pos)) BY(m);
		EXPECT_EQ(-1, dio_differs(buf, offset, pos, 10 + m)) BY(m);
	}
	EXPECT_TRUE(settled(self->t, &f, 1));
}

/* Says of a filesystem that all that is above went without an fsck. */
TEST_F(fs, has_been_checked)
{
	const char *why = dio_fs_unchecked(self->t->fs.type);

	self->t->spoiled = false;
	if (why)
		SKIP(return, "%s: %s", variant->type, why);
}

TEST_HARNESS_MAIN
