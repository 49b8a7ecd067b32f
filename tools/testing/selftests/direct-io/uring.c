// SPDX-License-Identifier: GPL-2.0
/*
 * Many requests at once, NOWAIT, polling, registered buffers, atomic writes,
 * integrity metadata.
 */
#include "../kselftest_harness.h"
#include "dio.h"
#include "fixture-any.h"
#include "fixture-ext2.h"

#include <dirent.h>
#include <libaio.h>
#include <liburing.h>
#include <linux/stat.h>
#include <sys/syscall.h>

#define DEPTH 64
#define SIZE (2 * MIB)

#ifndef STATX_WRITE_ATOMIC
#define STATX_WRITE_ATOMIC 0x00010000U
#endif

static int open_full(struct dio_target *t, size_t len)
{
	int fd = dio_target_open(t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	void *buf = dio_alloc(len);

	dio_fill(buf, len, 0, 1);
	if (fd >= 0 && (pwrite(fd, buf, len, 0) != (ssize_t)len || fsync(fd)))
		fd = -1;
	munmap(buf, len);
	return fd;
}

/* Place @i of @nr, in an order that looks random and visits each once. */
static int place(int i, int nr)
{
	return i * 37 % nr;
}

/* ---- depth ---- */

static int uring_all(struct io_uring *ring, enum dio_dir dir, int fd, char *buf,
		     size_t unit, bool fixed)
{
	int nr = SIZE / unit, sent = 0, got = 0, bad = 0;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	off_t pos;

	while (got < nr) {
		while (sent < nr && sent - got < DEPTH) {
			sqe = io_uring_get_sqe(ring);
			if (!sqe)
				break;
			pos = place(sent++, nr) * unit;
			if (dir == DIO_WRITE)
				io_uring_prep_write(sqe, fd, buf + pos, unit,
						    pos);
			else
				io_uring_prep_read(sqe, fd, buf + pos, unit,
						   pos);
			if (fixed)
				sqe->opcode = dir == DIO_WRITE ?
					IORING_OP_WRITE_FIXED :
					IORING_OP_READ_FIXED;
		}
		if (io_uring_submit_and_wait(ring, 1) < 0)
			return -1;
		while (!io_uring_peek_cqe(ring, &cqe)) {
			bad += cqe->res != (int)unit;
			io_uring_cqe_seen(ring, cqe);
			got++;
		}
	}
	return bad;
}

static void check_uring(struct __test_metadata *_metadata, int fd,
			unsigned int lbs, unsigned int flags, bool fixed)
{
	char *buf = dio_alloc(SIZE);
	struct iovec iov = { buf, SIZE };
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(DEPTH, &ring, flags));
	if (fixed)
		ASSERT_EQ(0, io_uring_register_buffers(&ring, &iov, 1));
	/* 8 KiB writes, then reads of a sector and of 64 KiB. */
	dio_fill(buf, SIZE, 0, 2);
	EXPECT_EQ(0, uring_all(&ring, DIO_WRITE, fd, buf, 8192, fixed));
	memset(buf, 0, SIZE);
	EXPECT_EQ(0, uring_all(&ring, DIO_READ, fd, buf, lbs, fixed));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
	memset(buf, 0, SIZE);
	EXPECT_EQ(0, uring_all(&ring, DIO_READ, fd, buf, 65536, fixed));
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
	io_uring_queue_exit(&ring);
}

TEST_F(any, io_uring_64_deep)
{
	int fd = open_full(self->t, SIZE);

	ASSERT_LE(0, fd);
	check_uring(_metadata, fd, self->lbs, 0, false);
}

TEST_F(any, io_uring_64_deep_fixed_buffer)
{
	int fd = open_full(self->t, SIZE);

	ASSERT_LE(0, fd);
	check_uring(_metadata, fd, self->lbs, 0, true);
}

TEST_F(any, io_uring_polled)
{
	int fd = open_full(self->t, SIZE);

	ASSERT_LE(0, fd);
	if (dio_disk_queue(&self->t->fs.disk, "io_poll") != 1)
		SKIP(return, "the queue does not poll");
	ASSERT_TRUE(dio_can(DIO_URING_POLL, fd));
	check_uring(_metadata, fd, self->lbs, IORING_SETUP_IOPOLL, false);
}

TEST_F(any, io_uring_polled_fixed_buffer)
{
	int fd = open_full(self->t, SIZE);

	ASSERT_LE(0, fd);
	if (dio_disk_queue(&self->t->fs.disk, "io_poll") != 1)
		SKIP(return, "the queue does not poll");
	ASSERT_TRUE(dio_can(DIO_URING_POLL, fd));
	check_uring(_metadata, fd, self->lbs, IORING_SETUP_IOPOLL, true);
}

TEST_F(any, preadv2_hipri)
{
	void *buf = dio_alloc(65536);
	struct iovec iov = { buf, 65536 };
	int fd = open_full(self->t, SIZE);

	ASSERT_LE(0, fd);
	ASSERT_EQ(65536, preadv2(fd, &iov, 1, 4096, RWF_HIPRI));
	EXPECT_EQ(-1, dio_differs(buf, 65536, 4096, 1));
	dio_fill(buf, 65536, 4096, 2);
	ASSERT_EQ(65536, pwritev2(fd, &iov, 1, 4096, RWF_HIPRI));
	memset(buf, 0, 65536);
	ASSERT_EQ(65536, pread(fd, buf, 65536, 4096));
	EXPECT_EQ(-1, dio_differs(buf, 65536, 4096, 2));
}

TEST_F(any, libaio_64_deep)
{
	char *buf = dio_alloc(SIZE);
	struct iocb cb[DEPTH], *cbs[DEPTH];
	struct io_event ev[DEPTH];
	io_context_t ctx = NULL;
	int fd, dir, i, unit = SIZE / DEPTH;

	fd = open_full(self->t, SIZE);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, io_setup(DEPTH, &ctx));
	for (dir = DIO_WRITE; dir >= DIO_READ; dir--) {
		if (dir == DIO_WRITE)
			dio_fill(buf, SIZE, 0, 2);
		else
			memset(buf, 0, SIZE);
		for (i = 0; i < DEPTH; i++) {
			off_t pos = place(i, DEPTH) * unit;

			cbs[i] = &cb[i];
			if (dir == DIO_WRITE)
				io_prep_pwrite(&cb[i], fd, buf + pos, unit, pos);
			else
				io_prep_pread(&cb[i], fd, buf + pos, unit, pos);
		}
		ASSERT_EQ(DEPTH, io_submit(ctx, DEPTH, cbs));
		ASSERT_EQ(DEPTH, io_getevents(ctx, DEPTH, DEPTH, ev, NULL));
		for (i = 0; i < DEPTH; i++)
			EXPECT_EQ(unit, (int)ev[i].res);
	}
	EXPECT_EQ(-1, dio_differs(buf, SIZE, 0, 2));
	io_destroy(ctx);
}

TEST_F(ext2, async_append_is_in_the_file_when_it_completes)
{
	void *buf = dio_alloc(65536);
	enum dio_method m;
	off_t size = 0;
	int fd;

	fd = dio_target_open(self->t, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	for (m = DIO_AIO; m <= DIO_URING_FIXED; m++) {
		for (int i = 0; i < 8; i++, size += 65536) {
			dio_fill(buf, 65536, size, 3);
			ASSERT_EQ(65536, dio_rw(m, DIO_WRITE, fd, buf, 65536,
						size));
			ASSERT_EQ(size + 65536, lseek(fd, 0, SEEK_END));
			memset(buf, 0, 65536);
			ASSERT_EQ(65536, dio_rw(m, DIO_READ, fd, buf, 65536,
						size));
			ASSERT_EQ(-1, dio_differs(buf, 65536, size, 3));
		}
	}
}

/*
 * io_uring submits with NOWAIT first, and such a request cannot be split. It has
 * to hear of that in its own task, to send a worker: never the program.
 */
TEST_F(any, more_than_the_disk_takes_at_once)
{
	struct dio_target t = {
		.fs = {
			.disk = { .lbs = self->lbs, .mib = 16, .max_sectors = 64 },
			.block_size = variant->block_size,
		},
		.block_size = variant->block_size,
	};
	off_t pos = 12 * 4096;	/* one range in an ext2 of 4 KiB blocks */
	char *buf = dio_alloc(MIB);
	enum dio_method m;
	int fd;

	ASSERT_EQ(0, dio_fs_create(&t.fs)) TH_LOG("%s", dio_why());
	fd = open_full(&t, pos + MIB);
	ASSERT_LE(0, fd);
	close(fd);
	/* O_DSYNC: a filesystem's write ends in a work queue */
	fd = dio_target_open(&t, O_RDWR | O_DIRECT | O_DSYNC);
	ASSERT_LE(0, fd);
	for (m = DIO_URING; m <= DIO_URING_FIXED; m++) {
		dio_fill(buf, MIB, pos, m);
		EXPECT_EQ(MIB, dio_rw(m, DIO_WRITE, fd, buf, MIB, pos));
		memset(buf, 0, MIB);
		EXPECT_EQ(MIB, dio_rw(m, DIO_READ, fd, buf, MIB, pos));
		EXPECT_EQ(-1, dio_differs(buf, MIB, pos, m));
	}
	close(fd);
	dio_fs_destroy(&t.fs);
}

TEST_F(any, part_of_a_registered_buffer)
{
	char *buf = dio_alloc(8 * MIB);
	struct iovec iov = { buf, 8 * MIB };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	size_t at[] = { 0, 512, 4096 + 512, 3 * MIB + 1024, 8 * MIB - 40960 };
	unsigned int i;
	int fd;

	/* The iterator starts in the middle of a vector of many pages. */
	madvise(buf, 8 * MIB, MADV_HUGEPAGE);
	fd = open_full(self->t, SIZE);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	ASSERT_EQ(0, io_uring_register_buffers(&ring, &iov, 1));
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_read_fixed(sqe, fd, buf + at[i], 40960, 8192, 0);
		ASSERT_EQ(1, io_uring_submit_and_wait(&ring, 1));
		ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
		EXPECT_EQ(40960, cqe->res) TH_LOG("at %zu", at[i]);
		io_uring_cqe_seen(&ring, cqe);
		EXPECT_EQ(-1, dio_differs(buf + at[i], 40960, 8192, 1));
		dio_fill(buf + at[i], 40960, 16384, 10 + i);
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_write_fixed(sqe, fd, buf + at[i], 40960, SIZE / 2,
					  0);
		ASSERT_EQ(1, io_uring_submit_and_wait(&ring, 1));
		ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
		EXPECT_EQ(40960, cqe->res) TH_LOG("at %zu", at[i]);
		io_uring_cqe_seen(&ring, cqe);
		ASSERT_EQ(40960, pread(fd, buf, 40960, SIZE / 2));
		EXPECT_EQ(-1, dio_differs(buf, 40960, 16384, 10 + i));
	}
	io_uring_queue_exit(&ring);
}

/* ---- NOWAIT ---- */

static ssize_t rw_nowait(enum dio_dir dir, int fd, void *buf, size_t len,
			 off_t pos)
{
	struct iovec iov = { buf, len };
	ssize_t n = dir == DIO_WRITE ? pwritev2(fd, &iov, 1, pos, RWF_NOWAIT) :
				       preadv2(fd, &iov, 1, pos, RWF_NOWAIT);

	return n < 0 ? -errno : n;
}

TEST_F(any, nowait_on_a_known_mapping)
{
	void *buf = dio_alloc(65536);
	int fd, i;

	fd = open_full(self->t, SIZE);
	ASSERT_LE(0, fd);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(8192, pread(fd, buf, 8192, i * 200 * KIB));
		ASSERT_EQ(8192, rw_nowait(DIO_READ, fd, buf, 8192,
					  i * 200 * KIB));
		EXPECT_EQ(-1, dio_differs(buf, 8192, i * 200 * KIB, 1));
		ASSERT_EQ(8192, rw_nowait(DIO_WRITE, fd, buf, 8192,
					  i * 200 * KIB));
	}
	ASSERT_EQ(8192, pread(fd, buf, 8192, 7 * 200 * KIB));
	EXPECT_EQ(-1, dio_differs(buf, 8192, 7 * 200 * KIB, 1));
}

TEST_F(any, nowait_over_dirty_pages_is_refused)
{
	void *buf = dio_alloc(65536);
	int fd, plain;

	fd = open_full(self->t, SIZE);
	ASSERT_LE(0, fd);
	plain = dio_target_open(self->t, O_RDWR);
	dio_fill(buf, 8192, 0, 2);
	ASSERT_EQ(8192, pwrite(plain, buf, 8192, 0));
	EXPECT_EQ(-EAGAIN, rw_nowait(DIO_READ, fd, buf, 8192, 0));
	EXPECT_EQ(-EAGAIN, rw_nowait(DIO_WRITE, fd, buf, 8192, 0));
	ASSERT_EQ(8192, pread(fd, buf, 8192, 0));
	EXPECT_EQ(-1, dio_differs(buf, 8192, 0, 2));
}

TEST_F(ext2, nowait_on_a_mapping_not_in_memory_is_refused)
{
	off_t pos = 16 * variant->block_size;
	void *buf = dio_alloc(65536);
	int fd;

	fd = open_full(self->t, 64 * variant->block_size);
	ASSERT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, dio_fs_remount(&self->t->fs)) TH_LOG("%s", dio_why());
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	/* Block 16 is behind the indirect block, which is on the disk only. */
	EXPECT_EQ(-EAGAIN, rw_nowait(DIO_READ, fd, buf, 4096, pos));
	EXPECT_EQ(-EAGAIN, rw_nowait(DIO_WRITE, fd, buf, 4096, pos));
	ASSERT_EQ(4096, pread(fd, buf, 4096, pos));
	EXPECT_EQ(-1, dio_differs(buf, 4096, pos, 1));
	EXPECT_EQ(4096, rw_nowait(DIO_READ, fd, buf, 4096, pos));
	EXPECT_EQ(4096, rw_nowait(DIO_WRITE, fd, buf, 4096, pos));
}

TEST_F(ext2, nowait_that_must_allocate_is_refused)
{
	void *buf = dio_alloc(65536);
	struct stat st;
	int fd;

	fd = open_full(self->t, 65536);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EAGAIN, rw_nowait(DIO_WRITE, fd, buf, 4096, 65536));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(65536, st.st_size);
	ASSERT_EQ(0, ftruncate(fd, SIZE));
	EXPECT_EQ(-EAGAIN, rw_nowait(DIO_WRITE, fd, buf, 4096, MIB));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_GE(65536 + 8192, st.st_blocks * 512);
}

static int uring_workers(void)
{
	char path[64], comm[32];
	struct dirent *de;
	int nr = 0, fd;
	ssize_t n;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (de = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm",
			 de->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		n = read(fd, comm, sizeof(comm) - 1);
		comm[n > 0 ? n : 0] = '\0';
		nr += !strncmp(comm, "iou-wrk", 7);
		close(fd);
	}
	if (dir)
		closedir(dir);
	return nr;
}

TEST_F(any, io_uring_needs_no_worker_for_a_known_mapping)
{
	void *buf = dio_alloc(65536);
	int fd, i;

	fd = open_full(self->t, SIZE);
	ASSERT_LE(0, fd);
	for (i = 0; i < 32; i++) {
		ASSERT_EQ(65536, pread(fd, buf, 65536, i * 65536));
		ASSERT_EQ(8192, dio_rw(DIO_URING, DIO_READ, fd, buf, 8192,
				       i * 65536));
		ASSERT_EQ(8192, dio_rw(DIO_URING, DIO_WRITE, fd, buf, 8192,
				       i * 65536));
		ASSERT_EQ(8192, dio_rw(DIO_URING_FIXED, DIO_READ, fd, buf, 8192,
				       i * 65536));
		ASSERT_EQ(8192, dio_rw(DIO_URING_FIXED, DIO_WRITE, fd, buf, 8192,
				       i * 65536));
	}
	EXPECT_EQ(0, uring_workers());
}

TEST_F(ext2, io_uring_finds_a_mapping_not_in_memory_all_the_same)
{
	off_t pos = 16 * variant->block_size;
	void *buf = dio_alloc(65536);
	int fd;

	fd = open_full(self->t, 64 * variant->block_size);
	ASSERT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, dio_fs_remount(&self->t->fs)) TH_LOG("%s", dio_why());
	fd = dio_target_open(self->t, O_RDWR | O_DIRECT);
	ASSERT_EQ(4096, dio_rw(DIO_URING, DIO_READ, fd, buf, 4096, pos));
	EXPECT_EQ(-1, dio_differs(buf, 4096, pos, 1));
	dio_fill(buf, 4096, 1 << 20, 2);
	ASSERT_EQ(4096, dio_rw(DIO_URING, DIO_WRITE, fd, buf, 4096, 1 << 20));
	memset(buf, 0, 4096);
	ASSERT_EQ(4096, dio_rw(DIO_URING, DIO_READ, fd, buf, 4096, 1 << 20));
	EXPECT_EQ(-1, dio_differs(buf, 4096, 1 << 20, 2));
}

TEST_F(any, filesystem_is_clean_afterwards)
{
	if (!variant->block_size)
		SKIP(return, "no filesystem");
	EXPECT_EQ(0, dio_fs_check(&self->t->fs)) TH_LOG("%s", dio_why());
}

/* ---- scsi_debug: what null_blk does not have ---- */

/* The disk whose model is "scsi_debug", if there is one by now. */
static bool find_simulated(char *path)
{
	DIR *d = opendir("/sys/block");
	bool found = false;
	struct dirent *de;
	char model[64];
	int fd;

	while (d && !found && (de = readdir(d))) {
		snprintf(path, 96, "/sys/block/%.32s/device/model", de->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		found = read(fd, model, sizeof(model)) > 10 &&
			!strncmp(model, "scsi_debug", 10);
		snprintf(path, 96, "/dev/%.32s", de->d_name);
		close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

/* Make one; NULL, or why there is none. */
static const char *simulate_disk(const char *arg1, const char *arg2, char *path)
{
	int i;

	dio_run("modprobe", "-r", "scsi_debug", NULL);
	dio_run("modprobe", "sd_mod", NULL);
	if (dio_run("modprobe", "scsi_debug", "dev_size_mb=16", arg1, arg2,
		    NULL))
		return dio_why();
	for (i = 0; i < 100; i++) {
		if (find_simulated(path) && !access(path, F_OK))
			return NULL;
		usleep(100000);
	}
	return "the SCSI disk does not appear";
}

TEST(atomic_write_on_a_disk_that_has_it)
{
	void *buf = dio_alloc(65536);
	struct iovec iov = { buf, 16384 };
	const char *missing;
	struct statx stx;
	char path[96];
	int fd;

	missing = simulate_disk("atomic_wr=1", "atomic_wr_max_length=128", path);
	if (missing)
		SKIP(return, "no scsi_debug: %s", missing);
	fd = open(path, O_RDWR | O_DIRECT);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, syscall(__NR_statx, fd, "", AT_EMPTY_PATH,
			     STATX_WRITE_ATOMIC, &stx));
	if (!(stx.stx_mask & STATX_WRITE_ATOMIC))
		SKIP(return, "the kernel does not tell of atomic writes");
	dio_fill(buf, 65536, 0, 1);
	EXPECT_EQ(16384, pwritev2(fd, &iov, 1, 16384, RWF_ATOMIC))
		TH_LOG("%s", strerror(errno));
	memset(buf, 0, 16384);
	ASSERT_EQ(16384, pread(fd, buf, 16384, 16384));
	EXPECT_EQ(-1, dio_differs(buf, 16384, 0, 1));
	/* A length that is no power of two, a place that does not fit it. */
	iov.iov_len = 12288;
	EXPECT_EQ(-1, pwritev2(fd, &iov, 1, 0, RWF_ATOMIC));
	EXPECT_EQ(EINVAL, errno);
	iov.iov_len = 16384;
	EXPECT_EQ(-1, pwritev2(fd, &iov, 1, 4096, RWF_ATOMIC));
	EXPECT_EQ(EINVAL, errno);
	close(fd);
	dio_run("modprobe", "-r", "scsi_debug", NULL);
}

TEST_F(any, atomic_write_where_there_is_none_is_refused)
{
	void *buf = dio_alloc(4096);
	struct iovec iov = { buf, 4096 };
	int fd;

	fd = open_full(self->t, SIZE);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, pwritev2(fd, &iov, 1, 0, RWF_ATOMIC));
	if (errno != EOPNOTSUPP)
		EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(4096, pread(fd, buf, 4096, 0));
	EXPECT_EQ(-1, dio_differs(buf, 4096, 0, 1));
}

TEST(disk_with_integrity_metadata)
{
	void *buf = dio_alloc(MIB);
	const char *missing;
	enum dio_method m;
	char path[96];
	int fd;

	/* Type 1 protection; the kernel makes and checks the tags itself. */
	missing = simulate_disk("dif=1", "dix=1", path);
	if (missing)
		SKIP(return, "no scsi_debug: %s", missing);
	fd = open(path, O_RDWR | O_DIRECT);
	ASSERT_LE(0, fd);
	for (m = DIO_SYNC; m < DIO_METHODS; m = dio_next_method(m, fd)) {
		dio_fill(buf, MIB, 0, m);
		EXPECT_EQ(MIB, dio_rw(m, DIO_WRITE, fd, buf, MIB, 4096));
		memset(buf, 0, MIB);
		EXPECT_EQ(MIB, dio_rw(m, DIO_READ, fd, buf, MIB, 4096));
		EXPECT_EQ(-1, dio_differs(buf, MIB, 0, m));
	}
	close(fd);
	dio_run("modprobe", "-r", "scsi_debug", NULL);
}

TEST_HARNESS_MAIN
