/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the direct I/O tests share: disks made of null_blk, filesystems on
 * them, patterns that tell where each byte belongs, one call that does an
 * I/O by any method, and the block layer's tracepoints.
 *
 * Functions return 0 or a byte count, and -errno on failure; dio_why() then
 * has the failure in words, for the SKIP or the assertion that reports it.
 */
#ifndef _SELFTESTS_DIRECT_IO_DIO_H
#define _SELFTESTS_DIRECT_IO_DIO_H

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Programs include ../kselftest_harness.h before this file. Under emulation,
 * with KASAN, its 30 s a test are short.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

#define KIB 1024L
#define MIB (1024 * KIB)

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif
#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x00000040
#endif

const char *dio_why(void);

/* ---- programs, files under /proc, /sys and configfs ---- */

int dio_run(const char *prog, ...) __attribute__((sentinel));
bool dio_have(const char *prog);
int dio_write_file(const char *path, const char *fmt, ...);
long dio_read_long(const char *fmt, ...);
long dio_vmstat(const char *name);
int dio_drop_caches(void);
double dio_now(void);

/* ---- disks ---- */

/**
 * struct dio_disk - a disk of the test's own: null_blk, or loop over memory
 * @name:	its name; set by dio_disk_create()
 * @path:	its device node; set by dio_disk_create()
 * @lbs:	logical block size in bytes, 512 unless set
 * @mib:	size in MiB, 64 unless set
 * @poll_queues: number of poll queues
 * @latency_ns:	time that each request takes, 0 for inline completion
 * @cache_mib:	size of the volatile write cache in MiB, 0 for none
 * @fua:	the cache knows FUA
 * @no_data:	keep nothing: reads return whatever the buffer held
 * @max_sectors: largest request in 512-byte sectors, 0 for null_blk's default
 * @loop:	a loop device, which knows @lbs and @mib only
 *
 * Fill in what is not to be 0, then call dio_disk_create(). null_blk remembers
 * which pieces were written, not which sectors: with 4096-byte sectors it takes
 * no memory but whole pages (and in older kernels writes outside of its own).
 * Loop has no such fault.
 */
struct dio_disk {
	char name[32];
	char path[48];
	unsigned int lbs;
	unsigned int mib;
	unsigned int poll_queues;
	unsigned long latency_ns;
	unsigned int cache_mib;
	bool fua;
	bool no_data;
	unsigned int max_sectors;
	bool loop;
};

int dio_disk_create(struct dio_disk *d);
int dio_disk_set(const struct dio_disk *d, const char *attr, const char *fmt,
		 ...);
long dio_disk_queue(const struct dio_disk *d, const char *attr);
void dio_disk_destroy(struct dio_disk *d);
int dio_disk_fill(const struct dio_disk *d, unsigned char byte);

/* ---- filesystems ---- */

#define DIO_TOOL_ARGS 16

/* What is in every byte of the disk before a filesystem other than ext2. */
#define DIO_FS_MARK 0xe5

/**
 * struct dio_fs_type - how a filesystem is made and checked
 * @name:	what mount(2) calls it
 * @mib:	size of its disk in MiB
 * @options:	mount options that it cannot do without
 * @wears:	deleting files does not give their space back
 * @mkfs:	program and arguments
 * @fsck:	program and arguments of a check that changes nothing
 * @unchecked:	why there is no @fsck
 * @direct_io:	function of the kernel's that is there when it uses get_block;
 *		none if it always does
 *
 * In arguments "%dev" is the disk and "%lbs" its logical block size, the latter
 * at the end of @options, too.
 */
struct dio_fs_type {
	const char *name;
	unsigned int mib;
	const char *options;
	bool wears;
	const char *mkfs[DIO_TOOL_ARGS];
	const char *fsck[DIO_TOOL_ARGS];
	const char *unchecked;
	const char *direct_io;
};

const struct dio_fs_type *dio_fs_type(const char *name);
const char *dio_fs_unchecked(const struct dio_fs_type *type);

int dio_mkfs_ext2(const char *dev, unsigned int block_size);
int dio_fsck_ext2(const char *dev);
int dio_mount(const char *dev, const char *type, const char *dir);
int dio_umount(const char *dir);

/**
 * struct dio_fs - a filesystem on a disk of its own, mounted
 * @disk:	the disk; set what dio_disk_create() is to know
 * @type:	the filesystem, NULL for ext2
 * @block_size:	ext2's block size in bytes, 0 for no filesystem, or for @type's own
 * @dir:	where it is mounted; set by dio_fs_create()
 */
struct dio_fs {
	struct dio_disk disk;
	const struct dio_fs_type *type;
	unsigned int block_size;
	char dir[64];
};

int dio_fs_create(struct dio_fs *fs);
int dio_fs_remount(struct dio_fs *fs);
int dio_fs_check(struct dio_fs *fs);
void dio_fs_destroy(struct dio_fs *fs);

/**
 * struct dio_target - what a table of tests runs over
 * @lbs:	logical block size of the disk
 * @block_size:	the filesystem's block size, 0 for the bare block device
 * @fs:		the disk and the filesystem
 * @spoiled:	not fit for another test; of dio_target_fs() only
 * @state:	0 not made yet, 1 ready, -errno if it cannot be made
 * @why:	the reason in words
 *
 * A target is made by the first test that asks for it and stays until the
 * program ends, because making one costs more than most tests.
 */
struct dio_target {
	unsigned int lbs;
	unsigned int block_size;
	struct dio_fs fs;
	bool spoiled;
	int state;
	char why[256];
};

struct dio_target *dio_target(unsigned int lbs, unsigned int block_size);
struct dio_target *dio_target_fs(const struct dio_fs_type *type,
				 unsigned int lbs);
int dio_target_open(struct dio_target *t, int flags);
char *dio_target_path(struct dio_target *t);
int dio_target_mark(struct dio_target *t, unsigned char byte);

/* ---- data ---- */

void *dio_alloc(size_t len);
void dio_fill(void *buf, size_t len, __u64 pos, __u32 seed);
ssize_t dio_differs(const void *buf, size_t len, __u64 pos, __u32 seed);
ssize_t dio_not_byte(const void *buf, size_t len, unsigned char byte);
bool dio_has_byte_run(const void *buf, size_t len, unsigned char byte);

/* ---- I/O by any method ---- */

enum dio_method {
	DIO_SYNC,		/* pread(2), pwrite(2) */
	DIO_VEC,		/* preadv(2), pwritev(2), the buffer in pieces */
	DIO_AIO,		/* io_submit(2) */
	DIO_URING,		/* io_uring */
	DIO_URING_FIXED,	/* io_uring, registered buffer */
	DIO_URING_POLL,		/* io_uring, IORING_SETUP_IOPOLL */
	DIO_METHODS
};

enum dio_dir { DIO_READ, DIO_WRITE };

const char *dio_method_name(enum dio_method m);
ssize_t dio_rw(enum dio_method m, enum dio_dir dir, int fd, void *buf,
	       size_t len, off_t pos);
bool dio_can(enum dio_method m, int fd);
bool dio_can_or_close(enum dio_method m, int fd);
enum dio_method dio_next_method(enum dio_method m, int fd);

long long dio_physical(int fd, off_t pos);
int dio_statx(int fd, unsigned int *mem_align, unsigned int *offset_align);

/* ---- exercises: many requests at random, for some seconds ---- */

enum dio_racer {
	DIO_RACE_READ,		/* all of the file, direct or buffered */
	DIO_RACE_WRITE,		/* ranges, direct */
	DIO_RACE_TRUNCATE,	/* to any size */
	DIO_RACE_REALLOCATE,	/* blocks to another file, and the file anew */
};

int dio_race(struct dio_target *t, const enum dio_racer what[4],
	     double seconds);
int dio_walk(struct dio_target *t, double seconds);

/* ---- tracepoints ---- */

/**
 * struct dio_bio - one event of the block layer
 * @event:	"bio_queue" or "rq_issue"
 * @rwbs:	its flags as blktrace prints them ("R", "WFS", "FF"…)
 * @sector:	where, in 512-byte sectors
 * @sectors:	how many
 * @ioprio:	priority as rq_issue printed it, "" if it did not
 */
struct dio_bio {
	char event[16];
	char rwbs[12];
	unsigned long long sector;
	unsigned int sectors;
	char ioprio[24];
};

int dio_trace_start(const char *dev);
int dio_trace_stop(struct dio_bio *bios, int max);

#endif /* _SELFTESTS_DIRECT_IO_DIO_H */
