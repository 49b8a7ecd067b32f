// SPDX-License-Identifier: GPL-2.0
/*
 * Raw devices: what binding allows and refuses, and that I/O on them is direct
 * I/O on the block device, on disks with 512 and 4096 byte blocks.
 */
#include "../kselftest_harness.h"
#include "rawdev.h"

#include <grp.h>
#include <liburing.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

#define NOBODY 65534
#define OPENS 32

FIXTURE(raw) {
	struct raw_pair p;
	const char *path;	/* of the raw minor that is bound */
	int lbs;
	off_t size;
	char dir[32];		/* where to mount, if made */
};

FIXTURE_VARIANT(raw) {
	unsigned int lbs;
};

FIXTURE_VARIANT_ADD(raw, lbs_512) { 512 };
FIXTURE_VARIANT_ADD(raw, lbs_4096) { 4096 };

FIXTURE_SETUP(raw)
{
	const char *why;
	int err;

	self->lbs = variant->lbs;
	self->p.disk.lbs = variant->lbs;
	self->p.disk.mib = 8;
	self->p.disk.poll_queues = 1;
	self->size = 8 * MIB;
	err = raw_pair_create(&self->p, &why);
	if (err)
		SKIP(return, "%s: %s", why, strerror(-err));
	self->path = self->p.path[0];
}

FIXTURE_TEARDOWN(raw)
{
	if (self->dir[0]) {
		umount2(self->dir, MNT_DETACH);
		rmdir(self->dir);
	}
	raw_pair_destroy(&self->p);
}

/* Close, and see that the raw device can be unbound and bound at once. */
static int rebind(struct raw_pair *p)
{
	return raw_unbind(p->ctl, p->minor[0]) ?: raw_pair_bind(p, 0);
}

static int make_fs(struct raw_pair *p, char *dir, size_t size)
{
	int err = dio_mkfs_ext2(p->disk.path, 4096);

	if (err)
		return err;
	snprintf(dir, size, "/tmp/raw.XXXXXX");
	if (!mkdtemp(dir)) {
		dir[0] = '\0';
		return -errno;
	}
	return 0;
}

/* ---- binding ---- */

TEST_F(raw, bind_makes_node_and_is_told)
{
	unsigned int block_major = 0, block_minor = 0;
	struct stat st;

	ASSERT_EQ(0, raw_query(self->p.ctl, self->p.minor[0], &block_major,
			       &block_minor));
	EXPECT_EQ(major(self->p.dev), block_major);
	EXPECT_EQ(minor(self->p.dev), block_minor);
	ASSERT_EQ(0, stat(self->path, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(makedev(RAW_CHAR_MAJOR, self->p.minor[0]), st.st_rdev);
	EXPECT_EQ(-1, access(self->p.path[1], F_OK));
}

TEST_F(raw, sysfs_tells_binding)
{
	char path[64], want[32], got[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/raw/raw%d/binding",
		 self->p.minor[0]);
	snprintf(want, sizeof(want), "%u:%u\n", major(self->p.dev),
		 minor(self->p.dev));
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	ASSERT_NE(NULL, fgets(got, sizeof(got), f));
	fclose(f);
	EXPECT_STREQ(want, got);
	ASSERT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
	EXPECT_EQ(-1, access(path, F_OK));
}

TEST_F(raw, unbind_takes_node_away)
{
	unsigned int block_major = 1, block_minor = 1;
	char node[] = "/tmp/raw-node.XXXXXX";

	ASSERT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
	ASSERT_EQ(0, raw_query(self->p.ctl, self->p.minor[0], &block_major,
			       &block_minor));
	EXPECT_EQ(0, (int)(block_major | block_minor));
	EXPECT_EQ(-1, access(self->path, F_OK));
	/* unbinding once more is no error */
	EXPECT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));

	/* a node that someone else made has nothing behind it */
	close(mkstemp(node));
	unlink(node);
	ASSERT_EQ(0, mknod(node, S_IFCHR | 0600,
			   makedev(RAW_CHAR_MAJOR, self->p.minor[0])));
	EXPECT_EQ(-1, open(node, O_RDWR));
	EXPECT_EQ(ENODEV, errno);
	unlink(node);
	/* and past the last minor not even a driver */
	ASSERT_EQ(0, mknod(node, S_IFCHR | 0600,
			   makedev(RAW_CHAR_MAJOR, raw_minors(self->p.ctl))));
	EXPECT_EQ(-1, open(node, O_RDWR));
	EXPECT_EQ(ENXIO, errno);
	unlink(node);
}

TEST_F(raw, busy_while_open)
{
	int fd = open(self->path, O_RDONLY);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EBUSY, raw_unbind(self->p.ctl, self->p.minor[0]));
	EXPECT_EQ(-EBUSY, raw_pair_bind(&self->p, 0));
	/* the other minor is another matter */
	EXPECT_EQ(0, raw_pair_bind(&self->p, 1));
	close(fd);
	EXPECT_EQ(0, rebind(&self->p));
}

TEST_F(raw, rebind_resets_permission)
{
	struct dio_disk other = { .lbs = 512, .mib = 4 };
	__u64 size = 0;
	struct stat st;
	int fd;

	ASSERT_EQ(0, chmod(self->path, 0666));
	ASSERT_EQ(0, dio_disk_create(&other)) TH_LOG("%s", dio_why());
	ASSERT_EQ(0, stat(other.path, &st));
	EXPECT_EQ(0, raw_bind(self->p.ctl, self->p.minor[0],
			      major(st.st_rdev), minor(st.st_rdev)));
	EXPECT_EQ(0, stat(self->path, &st));
	EXPECT_EQ(0, (int)(st.st_mode & 0007));
	fd = open(self->path, O_RDONLY);
	EXPECT_GE(fd, 0);
	EXPECT_EQ(0, ioctl(fd, BLKGETSIZE64, &size));
	EXPECT_EQ((__u64)(4 * MIB), size);
	close(fd);
	EXPECT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
	dio_disk_destroy(&other);
}

TEST_F(raw, bad_numbers_refused)
{
	int ctl = self->p.ctl, minor = self->p.minor[1];
	unsigned int a = 1, b = 1;

	EXPECT_EQ(-EINVAL, raw_bind(ctl, 0, 8, 0));
	EXPECT_EQ(-EINVAL, raw_bind(ctl, -1, 8, 0));
	EXPECT_EQ(-EINVAL, raw_bind(ctl, raw_minors(ctl), 8, 0));
	EXPECT_EQ(-EINVAL, raw_bind(ctl, minor, 4096, 0));
	EXPECT_EQ(-EINVAL, raw_bind(ctl, minor, 8, 1 << 20));
	EXPECT_EQ(-EINVAL, raw_bind(ctl, minor, 0, 1));
	EXPECT_EQ(-EINVAL, raw_query(ctl, 0, &a, &b));
	EXPECT_EQ(-EINVAL, raw_query(ctl, -1, &a, &b));
	EXPECT_EQ(0, raw_query(ctl, minor, &a, &b));
	EXPECT_EQ(0, (int)(a | b));

	EXPECT_EQ(-1, ioctl(ctl, RAW_SETBIND, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(ctl, RAW_GETBIND, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(ctl, BLKFLSBUF, 0));
	EXPECT_EQ(ENOTTY, errno);
}

TEST_F(raw, only_rawctl_binds)
{
	struct raw_config_request rq = { .raw_minor = self->p.minor[1] };
	int fd = open(self->path, O_RDWR);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-1, ioctl(fd, RAW_GETBIND, &rq));
	EXPECT_EQ(ENOTTY, errno);
	EXPECT_EQ(-1, ioctl(fd, RAW_SETBIND, &rq));
	EXPECT_EQ(ENOTTY, errno);
	close(fd);
}

TEST_F(raw, binding_does_not_hold_disk)
{
	/* bound but not open: the disk may go */
	dio_disk_destroy(&self->p.disk);
	EXPECT_EQ(-1, open(self->path, O_RDWR));
	EXPECT_EQ(ENXIO, errno);
	/* nor need it be there */
	EXPECT_EQ(0, raw_pair_bind(&self->p, 1));
}

TEST_F(raw, module_stays_while_bound)
{
	if (access("/sys/module/raw/refcnt", F_OK))
		SKIP(return, "the raw driver is built in");
	close(self->p.ctl);
	EXPECT_EQ(-1, syscall(SYS_delete_module, "raw", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	self->p.ctl = raw_open_ctl();
	ASSERT_GE(self->p.ctl, 0);
	EXPECT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
}

TEST_F(raw, module_goes_when_nothing_is_bound)
{
	unsigned int block_major = 1, block_minor = 1;

	if (access("/sys/module/raw/refcnt", F_OK))
		SKIP(return, "the raw driver is built in");
	ASSERT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
	if (!dio_have("modprobe") || dio_run("modprobe", "raw", NULL))
		SKIP(return, "modprobe could not bring it back");
	close(self->p.ctl);
	self->p.ctl = -1;
	if (dio_read_long("/sys/module/raw/refcnt"))
		SKIP(return, "other raw devices are bound");
	EXPECT_EQ(0, syscall(SYS_delete_module, "raw", O_NONBLOCK));
	EXPECT_EQ(-1, access("/dev/raw/rawctl", F_OK));
	self->p.ctl = raw_open_ctl();
	ASSERT_GE(self->p.ctl, 0);
	/* what it knew is forgotten */
	EXPECT_EQ(0, raw_query(self->p.ctl, self->p.minor[0],
			       &block_major, &block_minor));
	EXPECT_EQ(0, (int)(block_major | block_minor));
}

/* What a user without rights gets; exit status for the parent, 0 if all right. */
static int as_nobody(struct raw_pair *p)
{
	unsigned int a = 0, b = 0;
	int fd;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 1;
	if (open("/dev/raw/rawctl", O_RDONLY) != -1 || errno != EACCES)
		return 2;
	if (open(p->path[0], O_RDONLY) != -1 || errno != EACCES)
		return 3;
	/* with rawctl open, he may ask but not bind */
	if (raw_query(p->ctl, p->minor[0], &a, &b) || a != major(p->dev))
		return 4;
	if (raw_unbind(p->ctl, p->minor[0]) != -EPERM)
		return 5;
	if (raw_pair_bind(p, 1) != -EPERM)
		return 6;
	/* permission on the node is enough to use it */
	fd = open(p->path[1], O_RDWR);
	return fd < 0 ? 7 : 0;
}

TEST_F(raw, unprivileged_user_refused)
{
	int status;
	pid_t pid;

	ASSERT_EQ(0, chmod("/dev/raw/rawctl", 0600));
	ASSERT_EQ(0, raw_pair_bind(&self->p, 1));
	ASSERT_EQ(0, chmod(self->p.path[1], 0666));
	pid = fork();
	if (!pid)
		_exit(as_nobody(&self->p));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("check %d", WEXITSTATUS(status));
}

/* ---- who shares the disk ---- */

TEST_F(raw, mounted_disk_not_opened)
{
	int fd;

	if (make_fs(&self->p, self->dir,
		    sizeof(self->dir)))
		SKIP(return, "%s", dio_why());
	ASSERT_EQ(0, mount(self->p.disk.path, self->dir, "ext2", 0, NULL));
	EXPECT_EQ(-1, open(self->path, O_RDONLY));
	EXPECT_EQ(EBUSY, errno);
	/* a failed open does not count as one */
	EXPECT_EQ(0, rebind(&self->p));
	ASSERT_EQ(0, umount(self->dir));
	fd = open(self->path, O_RDONLY);
	EXPECT_GE(fd, 0);
	close(fd);
}

TEST_F(raw, open_raw_disk_not_mounted)
{
	int fd, i;

	if (make_fs(&self->p, self->dir,
		    sizeof(self->dir)))
		SKIP(return, "%s", dio_why());
	for (i = 0; i < 20; i++) {
		fd = open(self->path, O_RDONLY);
		ASSERT_GE(fd, 0);
		EXPECT_EQ(-1, mount(self->p.disk.path, self->dir, "ext2", 0,
				    NULL));
		EXPECT_EQ(EBUSY, errno);
		close(fd);
		/* the claim is gone when close(2) returns */
		ASSERT_EQ(0, mount(self->p.disk.path, self->dir, "ext2", 0,
				   NULL));
		ASSERT_EQ(0, umount(self->dir));
	}
}

TEST_F(raw, block_device_beside_raw)
{
	int fd = open(self->path, O_RDWR);
	int bdev;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-1, open(self->p.disk.path, O_RDWR | O_EXCL));
	EXPECT_EQ(EBUSY, errno);
	bdev = open(self->p.disk.path, O_RDWR);
	EXPECT_GE(bdev, 0);
	close(bdev);
	close(fd);
	bdev = open(self->p.disk.path, O_RDWR | O_EXCL);
	EXPECT_GE(bdev, 0);
	EXPECT_EQ(-1, open(self->path, O_RDWR));
	EXPECT_EQ(EBUSY, errno);
	close(bdev);
}

TEST_F(raw, two_minors_of_one_disk)
{
	char *buf = dio_alloc(64 * KIB);
	int fd[2];

	ASSERT_EQ(0, raw_pair_bind(&self->p, 1));
	fd[0] = open(self->p.path[0], O_RDWR);
	fd[1] = open(self->p.path[1], O_RDWR);
	ASSERT_GE(fd[0], 0);
	ASSERT_GE(fd[1], 0);
	dio_fill(buf, 64 * KIB, MIB, 1);
	EXPECT_EQ(64 * KIB, pwrite(fd[0], buf, 64 * KIB, MIB));
	memset(buf, 0, 64 * KIB);
	close(fd[0]);
	EXPECT_EQ(64 * KIB, pread(fd[1], buf, 64 * KIB, MIB));
	EXPECT_EQ(-1, dio_differs(buf, 64 * KIB, MIB, 1));
	/* the claim is there until the last one is closed */
	EXPECT_EQ(-1, open(self->p.disk.path, O_RDONLY | O_EXCL));
	EXPECT_EQ(EBUSY, errno);
	close(fd[1]);
	fd[0] = open(self->p.disk.path, O_RDONLY | O_EXCL);
	EXPECT_GE(fd[0], 0);
	close(fd[0]);
}

TEST_F(raw, many_opens)
{
	char *buf = dio_alloc(4096);
	int fd[OPENS], i;

	for (i = 0; i < OPENS; i++) {
		fd[i] = open(self->path, O_RDWR);
		ASSERT_GE(fd[i], 0);
		dio_fill(buf, 4096, i * 4096, 2);
		ASSERT_EQ(4096, pwrite(fd[i], buf, 4096, i * 4096));
	}
	for (i = 0; i < OPENS; i++) {
		EXPECT_EQ(-EBUSY, raw_unbind(self->p.ctl, self->p.minor[0]));
		ASSERT_EQ(4096, pread(fd[i], buf, 4096,
				      (OPENS - 1 - i) * 4096));
		EXPECT_EQ(-1, dio_differs(buf, 4096, (OPENS - 1 - i) * 4096, 2));
		close(fd[i]);
	}
	EXPECT_EQ(0, rebind(&self->p));
}

struct churn {
	struct raw_pair *p;
	bool stop;
	unsigned long opened;
	int bad;		/* an errno that nobody expects */
};

static void *churn_opens(void *arg)
{
	struct churn *c = arg;
	char *buf = dio_alloc(4096);

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		int fd = open(c->p->path[0], O_RDONLY);

		if (fd >= 0) {
			c->opened++;
			if (pread(fd, buf, 4096, 0) != 4096)
				c->bad = errno ?: EIO;
			close(fd);
		} else if (errno != ENOENT && errno != ENODEV &&
			   errno != ENXIO) {
			c->bad = errno;
		}
	}
	munmap(buf, 4096);
	return NULL;
}

TEST_F(raw, opens_race_with_binding)
{
	struct churn c = { .p = &self->p };
	unsigned long bound = 0;
	double end = dio_now() + 2;
	pthread_t thread;
	int err = 0;

	ASSERT_EQ(0, pthread_create(&thread, NULL, churn_opens, &c));
	while (dio_now() < end) {
		err = raw_unbind(self->p.ctl, self->p.minor[0]);
		if (err && err != -EBUSY)
			break;
		err = raw_pair_bind(&self->p, 0);
		if (err && err != -EBUSY)
			break;
		bound += !err;
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_TRUE(!err || err == -EBUSY) TH_LOG("%s", strerror(-err));
	EXPECT_EQ(0, c.bad) TH_LOG("%s", strerror(c.bad));
	EXPECT_GT(bound, 0UL);
	EXPECT_GT(c.opened, 0UL);
	EXPECT_EQ(0, rebind(&self->p));
}

/* ---- I/O ---- */

TEST_F(raw, every_method_moves_the_data)
{
	ssize_t len = 256 * KIB;
	char *buf = dio_alloc(len);
	enum dio_method m;
	int fd, bdev;

	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	bdev = open(self->p.disk.path, O_RDWR | O_DIRECT);
	ASSERT_GE(bdev, 0);
	for (m = 0; m < DIO_METHODS; m++) {
		/* what the block device can, the raw device can */
		if (!dio_can(m, bdev)) {
			TH_LOG("%s cannot be used here", dio_method_name(m));
			continue;
		}
		dio_fill(buf, len, MIB, m);
		ASSERT_EQ(len, dio_rw(m, DIO_WRITE, fd, buf, len, MIB))
			TH_LOG("%s", dio_method_name(m));
		memset(buf, 0, len);
		ASSERT_EQ(len, pread(bdev, buf, len, MIB));
		ASSERT_EQ(-1, dio_differs(buf, len, MIB, m))
			TH_LOG("%s write", dio_method_name(m));
		dio_fill(buf, len, MIB, 100 + m);
		ASSERT_EQ(len, pwrite(bdev, buf, len, MIB));
		memset(buf, 0, len);
		ASSERT_EQ(len, dio_rw(m, DIO_READ, fd, buf, len, MIB))
			TH_LOG("%s", dio_method_name(m));
		ASSERT_EQ(-1, dio_differs(buf, len, MIB, 100 + m))
			TH_LOG("%s read", dio_method_name(m));
	}
	close(bdev);
	close(fd);
}

TEST_F(raw, smallest_io)
{
	char *buf = dio_alloc(4096);
	int fd = open(self->path, O_RDWR);

	ASSERT_GE(fd, 0);
	dio_fill(buf, self->lbs, self->lbs, 3);
	EXPECT_EQ(self->lbs, pwrite(fd, buf, self->lbs, self->lbs));
	memset(buf, 0, self->lbs);
	EXPECT_EQ(self->lbs, pread(fd, buf, self->lbs, self->lbs));
	EXPECT_EQ(-1, dio_differs(buf, self->lbs, self->lbs, 3));
	EXPECT_EQ(0, pread(fd, buf, 0, 0));
	EXPECT_EQ(0, pwrite(fd, buf, 0, 0));
	close(fd);
}

TEST_F(raw, odd_sizes_refused)
{
	char *buf = dio_alloc(16 * KIB);
	int lbs = self->lbs;
	int fd = open(self->path, O_RDWR);

	ASSERT_GE(fd, 0);
	dio_fill(buf, 8 * KIB, 0, 4);
	ASSERT_EQ(8 * KIB, pwrite(fd, buf, 8 * KIB, 0));
	memset(buf, 0xee, 16 * KIB);

	EXPECT_EQ(-1, pread(fd, buf, lbs - 1, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pread(fd, buf, lbs + 1, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pread(fd, buf, lbs, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pread(fd, buf, lbs, lbs / 2));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pread(fd, buf + 1, lbs, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, dio_not_byte(buf, 16 * KIB, 0xee));

	EXPECT_EQ(-1, pwrite(fd, buf, lbs - 1, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pwrite(fd, buf, lbs / 2, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pwrite(fd, buf, lbs, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pwrite(fd, buf + 1, lbs, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(8 * KIB, pread(fd, buf, 8 * KIB, 0));
	EXPECT_EQ(-1, dio_differs(buf, 8 * KIB, 0, 4));
	close(fd);
}

TEST_F(raw, end_of_device)
{
	int lbs = self->lbs;
	char *buf = dio_alloc(16 * KIB);
	int fd = open(self->path, O_RDWR);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(self->size, lseek(fd, 0, SEEK_END));
	EXPECT_EQ(0, read(fd, buf, lbs));
	EXPECT_EQ(-1, write(fd, buf, lbs));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, pread(fd, buf, lbs, self->size + 64 * MIB));
	EXPECT_EQ(-1, pwrite(fd, buf, lbs, self->size + 64 * MIB));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(-1, lseek(fd, self->size + lbs, SEEK_SET));
	EXPECT_EQ(EINVAL, errno);

	dio_fill(buf, 16 * KIB, 0, 5);
	EXPECT_EQ(lbs, pwrite(fd, buf, 16 * KIB, self->size - lbs));
	memset(buf, 0xee, 16 * KIB);
	EXPECT_EQ(lbs, pread(fd, buf, 16 * KIB, self->size - lbs));
	EXPECT_EQ(-1, dio_differs(buf, lbs, 0, 5));
	EXPECT_EQ(-1, dio_not_byte(buf + lbs, 16 * KIB - lbs, 0xee));
	close(fd);
}

TEST_F(raw, read_to_the_end)
{
	size_t len = 3 * MIB;
	char *buf = dio_alloc(len);
	int fd = open(self->path, O_RDONLY);
	off_t total = 0;
	ssize_t n;

	ASSERT_GE(fd, 0);
	while ((n = read(fd, buf, len)) > 0)
		total += n;
	EXPECT_EQ(0, n);
	EXPECT_EQ(self->size, total);
	EXPECT_EQ(self->size, lseek(fd, 0, SEEK_CUR));
	close(fd);
}

/* How many pages of the block device are in the page cache. */
static long cached_pages(const char *path, size_t len)
{
	unsigned char vec[4096];
	int fd = open(path, O_RDONLY);
	long n = 0;
	size_t i;
	void *map;

	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || map == MAP_FAILED || mincore(map, len, vec))
		return -1;
	for (i = 0; i < len / getpagesize(); i++)
		n += vec[i] & 1;
	munmap(map, len);
	close(fd);
	return n;
}

TEST_F(raw, direct_without_asking)
{
	char *buf = dio_alloc(MIB);
	int fd, flags, bdev, i;

	/* mincore() is told only what the block device's owner may know */
	bdev = open(self->p.disk.path, O_RDWR);
	ASSERT_GE(bdev, 0);
	ASSERT_EQ(0, ioctl(bdev, BLKFLSBUF, 0));
	ASSERT_EQ(4096, pread(bdev, buf, 4096, 4 * MIB));
	ASSERT_GT(cached_pages(self->p.disk.path, self->size), 0);

	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ioctl(bdev, BLKFLSBUF, 0));
		ASSERT_EQ(0, cached_pages(self->p.disk.path, self->size));
		ASSERT_EQ(MIB, pwrite(fd, buf, MIB, 0));
		ASSERT_EQ(MIB, pread(fd, buf, MIB, 0));
		EXPECT_EQ(0, cached_pages(self->p.disk.path, self->size));
		EXPECT_EQ(-1, pread(fd, buf, 100, 0));
		EXPECT_EQ(EINVAL, errno);

		/* a program that clears O_DIRECT does not clear this */
		flags = fcntl(fd, F_GETFL);
		EXPECT_EQ(i ? 0 : O_DIRECT, flags & O_DIRECT);
		ASSERT_EQ(0, fcntl(fd, F_SETFL, flags & ~O_DIRECT));
	}
	close(fd);
	/* and one that knows O_DIRECT gets the same */
	fd = open(self->path, O_RDWR | O_DIRECT);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(MIB, pread(fd, buf, MIB, 0));
	close(fd);
	close(bdev);
}

TEST_F(raw, coherent_with_page_cache)
{
	char *buf = dio_alloc(64 * KIB);
	int fd, bdev;

	bdev = open(self->p.disk.path, O_RDWR);
	ASSERT_GE(bdev, 0);
	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	/* dirty in the page cache */
	dio_fill(buf, 64 * KIB, 0, 6);
	ASSERT_EQ(64 * KIB, pwrite(bdev, buf, 64 * KIB, 0));
	memset(buf, 0, 64 * KIB);
	EXPECT_EQ(64 * KIB, pread(fd, buf, 64 * KIB, 0));
	EXPECT_EQ(-1, dio_differs(buf, 64 * KIB, 0, 6));
	/* clean, and then stale if it stayed */
	dio_fill(buf, 64 * KIB, 0, 7);
	ASSERT_EQ(64 * KIB, pwrite(fd, buf, 64 * KIB, 0));
	memset(buf, 0, 64 * KIB);
	EXPECT_EQ(64 * KIB, pread(bdev, buf, 64 * KIB, 0));
	EXPECT_EQ(-1, dio_differs(buf, 64 * KIB, 0, 7));
	close(fd);
	close(bdev);
}

TEST_F(raw, nowait)
{
	struct iovec iov = { .iov_base = dio_alloc(4096), .iov_len = 4096 };
	int fd = open(self->path, O_RDWR | O_NONBLOCK);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(4096, preadv2(fd, &iov, 1, 0, RWF_NOWAIT));
	EXPECT_EQ(4096, pwritev2(fd, &iov, 1, 0, RWF_NOWAIT));
	close(fd);
}

TEST_F(raw, uring_registered_file)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	char *buf = dio_alloc(8 * KIB);
	struct io_uring ring;
	int fd, err, i;

	err = io_uring_queue_init(4, &ring, 0);
	if (err)
		SKIP(return, "io_uring: %s", strerror(-err));
	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, io_uring_register_files(&ring, &fd, 1));
	close(fd);
	/* the ring has it open still */
	EXPECT_EQ(-EBUSY, raw_unbind(self->p.ctl, self->p.minor[0]));

	dio_fill(buf, 8 * KIB, 0, 8);
	for (i = 0; i < 2; i++) {
		sqe = io_uring_get_sqe(&ring);
		if (!i)
			io_uring_prep_write(sqe, 0, buf, 8 * KIB, 0);
		else
			io_uring_prep_read(sqe, 0, buf, 8 * KIB, 0);
		sqe->flags |= IOSQE_FIXED_FILE;
		ASSERT_EQ(1, io_uring_submit_and_wait(&ring, 1));
		ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
		EXPECT_EQ(8 * KIB, cqe->res);
		io_uring_cqe_seen(&ring, cqe);
		if (!i)
			memset(buf, 0, 8 * KIB);
	}
	EXPECT_EQ(-1, dio_differs(buf, 8 * KIB, 0, 8));
	io_uring_unregister_files(&ring);
	io_uring_queue_exit(&ring);
	/* the kernel lets go of the ring's files a little later */
	for (i = 0; i < 500 && rebind(&self->p) == -EBUSY; i++)
		usleep(10000);
	EXPECT_EQ(0, rebind(&self->p));
}

/* Submit @n reads at once; the number that failed, -errno without io_uring. */
static int uring_reads(int fd, char *buf, int n, int *first_error)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int i, err, bad = 0;

	err = io_uring_queue_init(n, &ring, 0);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_read(sqe, fd, buf + i * 4096, 4096, i * 4096);
	}
	io_uring_submit(&ring);
	for (i = 0; i < n; i++) {
		err = io_uring_wait_cqe(&ring, &cqe);
		if (!err && cqe->res == 4096) {
			io_uring_cqe_seen(&ring, cqe);
			continue;
		}
		bad++;
		*first_error = *first_error ?: -(err ?: cqe->res);
		if (!err)
			io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
	return bad;
}

/*
 * io_uring submits with NOWAIT first.  When the disk has no free tag, the
 * request ends with EAGAIN and has to be issued again, not handed to the user.
 */
TEST_F(raw, uring_deeper_than_the_disk)
{
	const struct dio_disk *d = &self->p.disk;
	char *buf = dio_alloc(128 * 4096);
	int fd, bad, first_error = 0;

	ASSERT_EQ(0, dio_disk_set(d, "power", "0"));
	ASSERT_EQ(0, dio_disk_set(d, "hw_queue_depth", "2"));
	ASSERT_EQ(0, dio_disk_set(d, "irqmode", "2"));
	ASSERT_EQ(0, dio_disk_set(d, "completion_nsec", "2000000"));
	ASSERT_EQ(0, dio_disk_set(d, "power", "1"));
	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	bad = uring_reads(fd, buf, 128, &first_error);
	if (bad < 0)
		SKIP(return, "io_uring: %s", strerror(-bad));
	EXPECT_EQ(0, bad) TH_LOG("%s", strerror(first_error));
	close(fd);
}

TEST_F(raw, no_mmap)
{
	int fd = open(self->path, O_RDWR);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(ENODEV, errno);
	close(fd);
}

TEST_F(raw, block_ioctls_pass)
{
	int fd, lbs = 0, ro = 1, set = 1;
	char *buf = dio_alloc(4096);
	int pbs = 0;
	__u64 size = 0;

	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, ioctl(fd, BLKSSZGET, &lbs));
	EXPECT_EQ(self->lbs, lbs);
	EXPECT_EQ(0, ioctl(fd, BLKPBSZGET, &pbs));
	EXPECT_GE(pbs, self->lbs);
	EXPECT_EQ(0, ioctl(fd, BLKGETSIZE64, &size));
	EXPECT_EQ((__u64)self->size, size);
	EXPECT_EQ(0, ioctl(fd, BLKROGET, &ro));
	EXPECT_EQ(0, ro);
	EXPECT_EQ(0, ioctl(fd, BLKROSET, &set));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, 0));
	EXPECT_EQ(EPERM, errno);
	set = 0;
	EXPECT_EQ(0, ioctl(fd, BLKROSET, &set));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 0));
	close(fd);
}

/* A disk with a write cache: count the flushes that each sync sends. */
static int flushes(const char *disk, int fd, int (*sync_call)(int))
{
	struct dio_bio bios[64];
	int i, n, flushed = 0;

	n = dio_trace_start(disk);
	if (n)
		return n;
	n = sync_call(fd);
	i = dio_trace_stop(bios, 64);
	if (n || i < 0)
		return n ? -errno : i;
	while (i-- > 0)
		if (strchr(bios[i].rwbs, 'F'))
			flushed++;
	return flushed;
}

TEST_F(raw, fsync_flushes_disk)
{
	struct dio_disk *d = &self->p.disk;
	char *buf = dio_alloc(4096);
	int fd, n;

	ASSERT_EQ(0, dio_disk_set(d, "power", "0"));
	ASSERT_EQ(0, dio_disk_set(d, "cache_size", "1"));
	ASSERT_EQ(0, dio_disk_set(d, "power", "1"));
	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(4096, pwrite(fd, buf, 4096, 0));
	n = flushes(d->path, fd, fsync);
	if (n < 0)
		SKIP(return, "%s", dio_why());
	EXPECT_GT(n, 0);
	EXPECT_GT(flushes(d->path, fd, fdatasync), 0);
	close(fd);
}

static int write_4k(int fd)
{
	return pwrite(fd, dio_alloc(4096), 4096, 0) == 4096 ? 0 : -1;
}

TEST_F(raw, dsync_write_flushes_disk)
{
	struct dio_disk *d = &self->p.disk;
	int fd, n;

	ASSERT_EQ(0, dio_disk_set(d, "power", "0"));
	ASSERT_EQ(0, dio_disk_set(d, "cache_size", "1"));
	ASSERT_EQ(0, dio_disk_set(d, "power", "1"));
	fd = open(self->path, O_RDWR);
	ASSERT_GE(fd, 0);
	n = flushes(d->path, fd, write_4k);
	if (n < 0)
		SKIP(return, "%s", dio_why());
	EXPECT_EQ(0, n);
	close(fd);
	fd = open(self->path, O_RDWR | O_DSYNC);
	ASSERT_GE(fd, 0);
	EXPECT_GT(flushes(d->path, fd, write_4k), 0);
	close(fd);
}

/* ---- the disk goes ---- */

TEST_F(raw, removal_while_open)
{
	char *buf = dio_alloc(4096);
	int fd[2], i;

	fd[0] = open(self->path, O_RDWR);
	fd[1] = open(self->path, O_RDONLY);
	ASSERT_GE(fd[0], 0);
	ASSERT_GE(fd[1], 0);
	ASSERT_EQ(4096, pwrite(fd[0], buf, 4096, 0));
	dio_disk_destroy(&self->p.disk);
	for (i = 0; i < 2; i++) {
		/* a copy that the removal cut off must not look complete */
		EXPECT_EQ(-1, pread(fd[i], buf, 4096, 0));
		EXPECT_EQ(EIO, errno);
	}
	EXPECT_EQ(-1, pwrite(fd[0], buf, 4096, 0));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, open(self->path, O_RDWR));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(-EBUSY, raw_unbind(self->p.ctl, self->p.minor[0]));
	EXPECT_EQ(0, close(fd[0]));
	EXPECT_EQ(0, close(fd[1]));
	EXPECT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
}

struct reader {
	const char *path;
	unsigned long done;
	int err;
};

static void *read_until_error(void *arg)
{
	struct reader *r = arg;
	char *buf = dio_alloc(64 * KIB);
	int fd = open(r->path, O_RDONLY);

	while (pread(fd, buf, 64 * KIB, 0) == 64 * KIB)
		__atomic_add_fetch(&r->done, 1, __ATOMIC_RELAXED);
	r->err = errno;
	close(fd);
	munmap(buf, 64 * KIB);
	return NULL;
}

TEST_F(raw, removal_in_mid_flight)
{
	const struct dio_disk *d = &self->p.disk;
	struct reader r[4] = {};
	pthread_t thread[4];
	int i;

	ASSERT_EQ(0, dio_disk_set(d, "power", "0"));
	ASSERT_EQ(0, dio_disk_set(d, "irqmode", "2"));
	ASSERT_EQ(0, dio_disk_set(d, "completion_nsec", "1000000"));
	ASSERT_EQ(0, dio_disk_set(d, "power", "1"));
	for (i = 0; i < 4; i++) {
		r[i].path = self->path;
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, read_until_error,
					    &r[i]));
	}
	for (i = 0; i < 4; i++)
		while (__atomic_load_n(&r[i].done, __ATOMIC_RELAXED) < 10)
			usleep(1000);
	dio_disk_destroy(&self->p.disk);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(EIO, r[i].err) TH_LOG("%s", strerror(r[i].err));
	}
	EXPECT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
}

TEST_HARNESS_MAIN
