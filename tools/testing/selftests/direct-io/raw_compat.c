// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of raw devices as a 32-bit program sends them.
 *
 * A 64-bit process on x86 enters the kernel's 32-bit ioctl(2) with int $0x80.
 * That is the same path as that of a 32-bit program, and needs neither a
 * compiler nor a C library for one.
 */
#include "../kselftest_harness.h"
#include "rawdev.h"

#include <assert.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>

/* Where 32-bit code aligns 64-bit numbers to four bytes. */
#pragma pack(push, 4)
struct raw_config_request32 {
	__s32 raw_minor;
	__u64 block_major;
	__u64 block_minor;
};

#pragma pack(pop)

static_assert(sizeof(struct raw_config_request32) == 20, "32-bit layout");

#ifdef __x86_64__
#define IOCTL32 54		/* __NR_ioctl of i386 */

static long int80_ioctl(int fd, unsigned int cmd, void *arg)
{
	long ret = IOCTL32;

	asm volatile("int $0x80"
		     : "+a" (ret)
		     : "b" ((long)fd), "c" ((long)cmd), "d" (arg)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static sigjmp_buf no_int80;

static void on_fault(int sig)
{
	siglongjmp(no_int80, 1);
}

/* A kernel without 32-bit emulation kills the process, or knows no such call. */
static bool have_ioctl32(void)
{
	struct sigaction old, catch = { .sa_handler = on_fault };
	static bool have;

	sigaction(SIGSEGV, &catch, &old);
	if (!sigsetjmp(no_int80, 1))
		have = int80_ioctl(-1, 0, NULL) == -EBADF;
	sigaction(SIGSEGV, &old, NULL);
	return have;
}

/* A pointer of the caller's fits into 32 bits when MAP_32BIT gave it. */
static void *alloc32(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}
#else
static long int80_ioctl(int fd, unsigned int cmd, void *arg)
{
	return -EOPNOTSUPP;
}

static bool have_ioctl32(void)
{
	return false;
}

static void *alloc32(void)
{
	return MAP_FAILED;
}
#endif

FIXTURE(raw_compat) {
	struct raw_pair p;
	struct raw_config_request32 *rq;
};

FIXTURE_SETUP(raw_compat)
{
	const char *why;
	int err;

	if (!have_ioctl32())
		SKIP(return, "no 32-bit system calls here (CONFIG_IA32_EMULATION)");
	self->rq = alloc32();
	ASSERT_NE(MAP_FAILED, self->rq);
	self->p.disk.mib = 4;
	err = raw_pair_create(&self->p, &why);
	if (err)
		SKIP(return, "%s: %s", why, strerror(-err));
}

FIXTURE_TEARDOWN(raw_compat)
{
	raw_pair_destroy(&self->p);
}

TEST_F(raw_compat, query)
{
	struct raw_config_request32 *rq = self->rq;

	memset(rq, 0xee, 64);
	rq->raw_minor = self->p.minor[0];
	ASSERT_EQ(0, int80_ioctl(self->p.ctl, RAW_GETBIND, rq));
	EXPECT_EQ(self->p.minor[0], (int)rq->raw_minor);
	EXPECT_EQ((__u64)major(self->p.dev), rq->block_major);
	EXPECT_EQ((__u64)minor(self->p.dev), rq->block_minor);
	/* the 64-bit structure is longer: nothing after the 32-bit one */
	EXPECT_EQ(-1, dio_not_byte(rq + 1, 64 - sizeof(*rq), 0xee));
}

TEST_F(raw_compat, bind_and_unbind)
{
	struct raw_config_request32 *rq = self->rq;
	unsigned int block_major = 0, block_minor = 0;

	rq->raw_minor = self->p.minor[1];
	rq->block_major = major(self->p.dev);
	rq->block_minor = minor(self->p.dev);
	ASSERT_EQ(0, int80_ioctl(self->p.ctl, RAW_SETBIND, rq));
	ASSERT_EQ(0, raw_query(self->p.ctl, self->p.minor[1], &block_major,
			       &block_minor));
	EXPECT_EQ(major(self->p.dev), block_major);
	EXPECT_EQ(minor(self->p.dev), block_minor);

	rq->block_major = 0;
	rq->block_minor = 0;
	ASSERT_EQ(0, int80_ioctl(self->p.ctl, RAW_SETBIND, rq));
	ASSERT_EQ(0, raw_query(self->p.ctl, self->p.minor[1], &block_major,
			       &block_minor));
	EXPECT_EQ(0, (int)(block_major | block_minor));
}

TEST_F(raw_compat, refused)
{
	struct raw_config_request32 *rq = self->rq;
	int fd = open(self->p.path[0], O_RDONLY);

	ASSERT_GE(fd, 0);
	rq->raw_minor = self->p.minor[0];
	rq->block_major = 0;
	rq->block_minor = 0;
	EXPECT_EQ(-EBUSY, int80_ioctl(self->p.ctl, RAW_SETBIND, rq));
	close(fd);
	rq->raw_minor = -1;
	EXPECT_EQ(-EINVAL, int80_ioctl(self->p.ctl, RAW_SETBIND, rq));
	EXPECT_EQ(-EINVAL, int80_ioctl(self->p.ctl, RAW_GETBIND, rq));
	rq->raw_minor = self->p.minor[1];
	rq->block_major = 1ULL << 32 | 8;
	EXPECT_EQ(-EINVAL, int80_ioctl(self->p.ctl, RAW_SETBIND, rq));
	EXPECT_EQ(-EFAULT, int80_ioctl(self->p.ctl, RAW_SETBIND, NULL));
	EXPECT_EQ(-EFAULT, int80_ioctl(self->p.ctl, RAW_GETBIND, NULL));
	EXPECT_EQ(-ENOTTY, int80_ioctl(self->p.ctl, BLKFLSBUF, NULL));
}

TEST_F(raw_compat, block_ioctls_pass)
{
	void *arg = self->rq;
	int fd = open(self->p.path[0], O_RDWR);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, int80_ioctl(fd, BLKSSZGET, arg));
	EXPECT_EQ(512, *(int *)arg);
	/* a 32-bit program's BLKGETSIZE64 has the size of its size_t in it */
	EXPECT_EQ(0, int80_ioctl(fd, _IOR(0x12, 114, __s32), arg));
	EXPECT_EQ((__u64)(4 * MIB), *(__u64 *)arg);
	/* a number of sectors that fits into 32 bits */
	EXPECT_EQ(0, int80_ioctl(fd, BLKGETSIZE, arg));
	EXPECT_EQ((__u32)(4 * MIB / 512), *(__u32 *)arg);
	close(fd);
}

TEST_HARNESS_MAIN
