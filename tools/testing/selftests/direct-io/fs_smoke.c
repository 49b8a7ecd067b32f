// SPDX-License-Identifier: GPL-2.0
/*
 * The other filesystems whose direct I/O goes through a get_block: write, read
 * back, overwrite, grow, holes, beside the page cache, and after a remount.
 */
#include "../kselftest_harness.h"
#include "dio.h"

#define BY(m) TH_LOG("by %s", dio_method_name(m))
#define SIZE (512 * KIB)

FIXTURE(fs) {
	struct dio_disk disk;
	char dir[64];
	char path[80];
	bool mounted;
};

FIXTURE_VARIANT(fs) {
	const char *type;
	const char *mkfs[6];
};

FIXTURE_VARIANT_ADD(fs, vfat) { "vfat", { "mkfs.fat", "-S", "512" } };
FIXTURE_VARIANT_ADD(fs, exfat) { "exfat", { "mkfs.exfat" } };
FIXTURE_VARIANT_ADD(fs, udf) { "udf", { "mkudffs", "-b", "512" } };
FIXTURE_VARIANT_ADD(fs, jfs) { "jfs", { "mkfs.jfs", "-q" } };
FIXTURE_VARIANT_ADD(fs, nilfs2) { "nilfs2", { "mkfs.nilfs2", "-q" } };
FIXTURE_VARIANT_ADD(fs, hfs) { "hfs", { "hformat", "-f" } };
FIXTURE_VARIANT_ADD(fs, hfsplus) { "hfsplus", { "mkfs.hfsplus" } };
FIXTURE_VARIANT_ADD(fs, ntfs3) { "ntfs3", { "mkntfs", "-q", "-f" } };
FIXTURE_VARIANT_ADD(fs, ext4) { "ext4", { "mke2fs", "-q", "-F", "-t", "ext4" } };

FIXTURE_SETUP(fs)
{
	const char *a[7] = { NULL };
	int i, err;

	if (!dio_have(variant->mkfs[0]))
		SKIP(return, "%s is not installed", variant->mkfs[0]);
	self->disk.mib = 160;
	self->disk.poll_queues = 1;
	if (dio_disk_create(&self->disk))
		SKIP(return, "%s", dio_why());
	for (i = 0; variant->mkfs[i]; i++)
		a[i] = variant->mkfs[i];
	a[i] = self->disk.path;
	err = dio_run(a[0], a[1], a[2], a[3], a[4], a[5], a[6], NULL);
	snprintf(self->dir, sizeof(self->dir), "/tmp/%s", self->disk.name);
	snprintf(self->path, sizeof(self->path), "%s/f", self->dir);
	mkdir(self->dir, 0700);
	err = err ?: dio_mount(self->disk.path, variant->type, self->dir);
	self->mounted = !err;
	if (err) {
		rmdir(self->dir);
		dio_disk_destroy(&self->disk);
		SKIP(return, "%s", dio_why());
	}
}

FIXTURE_TEARDOWN_PARENT(fs)
{
	if (self->mounted)
		dio_umount(self->dir);
	rmdir(self->dir);
	dio_disk_destroy(&self->disk);
}

TEST_F(fs, write_read_back_remount_verify)
{
	void *buf = dio_alloc(SIZE);
	enum dio_method m;
	int fd;

	fd = open(self->path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0 && errno == EINVAL)
		SKIP(return, "%s has no direct I/O", variant->type);
	ASSERT_LE(0, fd) TH_LOG("%s", strerror(errno));
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		/* New at first, then an overwrite; half past the end. */
		dio_fill(buf, SIZE, m * SIZE / 2, m);
		ASSERT_EQ(SIZE, dio_rw(m, DIO_WRITE, fd, buf, SIZE,
				       m * SIZE / 2)) BY(m);
		memset(buf, 0, SIZE);
		ASSERT_EQ(SIZE, dio_rw(m, DIO_READ, fd, buf, SIZE,
				       m * SIZE / 2)) BY(m);
		ASSERT_EQ(-1, dio_differs(buf, SIZE, m * SIZE / 2, m)) BY(m);
	}
	close(fd);
	ASSERT_EQ(0, dio_umount(self->dir)) TH_LOG("%s", dio_why());
	ASSERT_EQ(0, dio_mount(self->disk.path, variant->type, self->dir))
		TH_LOG("%s", dio_why());
	fd = open(self->path, O_RDWR);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m <= DIO_URING_FIXED; m++) {
		ASSERT_EQ(SIZE / 2, pread(fd, buf, SIZE / 2, m * SIZE / 2));
		EXPECT_EQ(-1, dio_differs(buf, SIZE / 2, m * SIZE / 2, m))
			BY(m);
	}
}

TEST_F(fs, end_of_file_and_holes)
{
	void *buf = dio_alloc(SIZE);
	int fd;

	fd = open(self->path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0)
		SKIP(return, "%s has no direct I/O", variant->type);
	dio_fill(buf, 65536, 0, 1);
	ASSERT_EQ(65536, pwrite(fd, buf, 65536, 0));
	ASSERT_EQ(0, ftruncate(fd, 200001));
	memset(buf, 0xe5, SIZE);
	/* Grown by truncate: zeroes, to the odd end. */
	ASSERT_EQ(200001, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, 65536, 0, 1));
	EXPECT_EQ(-1, dio_not_byte(buf + 65536, 200001 - 65536, 0));
	EXPECT_EQ(0, pread(fd, buf, 4096, 262144));
	/* Write into the middle of it. */
	dio_fill(buf, 4096, 131072, 2);
	ASSERT_EQ(4096, pwrite(fd, buf, 4096, 131072));
	ASSERT_EQ(0, dio_drop_caches());
	memset(buf, 0xe5, SIZE);
	ASSERT_EQ(200001, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, 65536, 0, 1));
	EXPECT_EQ(-1, dio_not_byte(buf + 65536, 65536, 0));
	EXPECT_EQ(-1, dio_differs(buf + 131072, 4096, 131072, 2));
	EXPECT_EQ(-1, dio_not_byte(buf + 135168, 200001 - 135168, 0));
}

TEST_F(fs, beside_the_page_cache)
{
	void *buf = dio_alloc(SIZE);
	int fd, plain;

	fd = open(self->path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0)
		SKIP(return, "%s has no direct I/O", variant->type);
	plain = open(self->path, O_RDWR);
	dio_fill(buf, SIZE, 0, 1);
	ASSERT_EQ(SIZE, pwrite(plain, buf, SIZE, 0));
	memset(buf, 0, SIZE);
	ASSERT_EQ(SIZE, pread(fd, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 1));
	dio_fill(buf, 65536, 8192, 2);
	ASSERT_EQ(65536, pwrite(fd, buf, 65536, 8192));
	ASSERT_EQ(SIZE, pread(plain, buf, SIZE, 0));
	EXPECT_EQ(-1, dio_differs(buf, 8192, 0, 1));
	EXPECT_EQ(-1, dio_differs(buf + 8192, 65536, 8192, 2));
	EXPECT_EQ(-1, dio_differs(buf + 73728, SIZE - 73728, 73728, 1));
}

TEST_HARNESS_MAIN
