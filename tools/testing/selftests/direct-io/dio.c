// SPDX-License-Identifier: GPL-2.0
/*
 * Shared parts of the direct I/O tests; dio.h tells what each is for.
 */
#include "dio.h"

#include <libaio.h>
#include <liburing.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/stat.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#define NULLB "/sys/kernel/config/nullb"
#define TRACEFS "/sys/kernel/tracing"
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static char why[1024];

const char *dio_why(void)
{
	return why;
}

/* Note why something failed, on one line, and pass its error on. */
static int fail(int err, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (p = why; *p; p++)
		if (*p == '\n')
			*p = ' ';
	return err < 0 ? err : -err;
}

/* ---- programs, files under /proc, /sys and configfs ---- */

/* Where administrators' programs are, and those that come with the tests. */
static void find_programs(void)
{
	char path[PATH_MAX + 64] = "/sbin:/usr/sbin:/bin:/usr/bin:/usr/local/bin:";
	size_t used = strlen(path);
	ssize_t n;

	n = readlink("/proc/self/exe", path + used, sizeof(path) - used - 1);
	if (n > 0) {
		path[used + n] = '\0';
		*strrchr(path, '/') = '\0';
	} else {
		path[used - 1] = '\0';
	}
	setenv("PATH", path, 1);
}

/**
 * dio_have() - can this program be run?
 * @prog: its name
 */
bool dio_have(const char *prog)
{
	char *path, *dir, *save, *dirs;
	bool found = false;

	find_programs();
	dirs = strdup(getenv("PATH"));
	for (dir = strtok_r(dirs, ":", &save); dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		if (asprintf(&path, "%s/%s", dir, prog) < 0)
			break;
		found = !access(path, X_OK);
		free(path);
	}
	free(dirs);
	return found;
}

/*
 * Run it with its output kept and nothing to read; argv[0] says which. There is
 * an fsck that locks any memory it is given, for a cache: give it little.
 */
static int run(char *const argv[])
{
	const struct rlimit memory = { 96 * MIB, 96 * MIB };
	const char *prog = argv[0];
	char said[900] = "";
	int in, out, status;
	pid_t pid;

	if (!dio_have(prog))
		return fail(ENOENT, "%s is not installed", prog);
	out = memfd_create("out", MFD_CLOEXEC);
	if (out < 0)
		return fail(errno, "memfd_create: %m");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_AS, &memory);
		in = open("/dev/null", O_RDONLY);
		dup2(in, 0);
		dup2(out, 1);
		dup2(out, 2);
		execvp(prog, argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		close(out);
		return fail(errno, "%s: %m", prog);
	}
	if (pread(out, said, sizeof(said) - 1, 0) < 0)
		said[0] = '\0';
	close(out);
	if (WIFSIGNALED(status))
		return fail(EINTR, "%s: signal %d", prog, WTERMSIG(status));
	fail(EIO, "%s: exit status %d: %s", prog, WEXITSTATUS(status), said);
	return WEXITSTATUS(status);
}

/**
 * dio_run() - run a program, its output kept for dio_why()
 * @prog: program, then its arguments, then NULL
 *
 * Return: its exit status, or -errno if it could not be started.
 */
int dio_run(const char *prog, ...)
{
	char *argv[32];
	int argc = 1;
	va_list ap;

	argv[0] = (char *)prog;
	va_start(ap, prog);
	do
		argv[argc] = va_arg(ap, char *);
	while (argv[argc] && ++argc < 31);
	va_end(ap);
	argv[argc] = NULL;
	return run(argv);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	int err = 0;

	if (fd < 0)
		return fail(errno, "%s: %m", path);
	if (write(fd, text, strlen(text)) < 0)
		err = fail(errno, "%s: writing \"%s\": %m", path, text);
	close(fd);
	return err;
}

/**
 * dio_write_file() - write a line to a file of the kernel's
 * @path: the file
 * @fmt: what to write
 */
int dio_write_file(const char *path, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return write_file(path, text);
}

static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fail(errno, "%s: %m", path);
	n = read(fd, text, size - 1);
	if (n < 0)
		n = fail(errno, "%s: %m", path);
	else
		text[n] = '\0';
	close(fd);
	return n;
}

/**
 * dio_read_long() - read a number from a file of the kernel's
 * @fmt: the file's path
 *
 * Return: the number, or -errno.
 */
long dio_read_long(const char *fmt, ...)
{
	char path[PATH_MAX], text[64];
	va_list ap;
	ssize_t n;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	n = read_file(path, text, sizeof(text));
	return n < 0 ? n : atol(text);
}

/**
 * dio_vmstat() - one counter of /proc/vmstat
 * @name: the counter
 *
 * Return: its value, or -ENOENT if this kernel has none of that name.
 */
long dio_vmstat(const char *name)
{
	char text[16384], *p;
	size_t len = strlen(name);

	if (read_file("/proc/vmstat", text, sizeof(text)) < 0)
		return -ENOENT;
	for (p = text; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (!strncmp(p, name, len) && p[len] == ' ')
			return atol(p + len);
	}
	return fail(ENOENT, "/proc/vmstat has no %s", name);
}

/**
 * dio_drop_caches() - write all dirty data out and drop every clean page
 */
int dio_drop_caches(void)
{
	sync();
	return write_file("/proc/sys/vm/drop_caches", "3");
}

/**
 * dio_now() - seconds on a clock that never steps
 */
double dio_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- disks ---- */

static int nullb_ready(void)
{
	if (!access(NULLB, F_OK))
		return 0;
	if (dio_have("modprobe"))
		dio_run("modprobe", "null_blk", "nr_devices=0", NULL);
	if (access(NULLB, F_OK) && mount("configfs", "/sys/kernel/config",
					 "configfs", 0, NULL) && errno != EBUSY)
		return fail(errno, "configfs cannot be mounted: %m");
	if (access(NULLB, F_OK))
		return fail(ENODEV, "null_blk is not there (CONFIG_BLK_DEV_NULL_BLK)");
	return 0;
}

/**
 * dio_disk_set() - set an attribute of a null_blk disk
 * @d: the disk
 * @attr: attribute in configfs
 * @fmt: its value
 */
int dio_disk_set(const struct dio_disk *d, const char *attr, const char *fmt,
		 ...)
{
	char path[PATH_MAX], text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), NULLB "/%s/%s", d->name, attr);
	return write_file(path, text);
}

/**
 * dio_disk_queue() - a number from the disk's request queue
 * @d: the disk
 * @attr: file in /sys/block/DISK/queue
 */
long dio_disk_queue(const struct dio_disk *d, const char *attr)
{
	return dio_read_long("/sys/block/%s/queue/%s", d->name, attr);
}

static int disk_configure(const struct dio_disk *d)
{
	int err;

	err = dio_disk_set(d, "size", "%u", d->mib);
	err = err ?: dio_disk_set(d, "blocksize", "%u", d->lbs);
	err = err ?: dio_disk_set(d, "memory_backed", "%d", !d->no_data);
	err = err ?: dio_disk_set(d, "submit_queues", "1");
	err = err ?: dio_disk_set(d, "poll_queues", "%u", d->poll_queues);
	err = err ?: dio_disk_set(d, "irqmode", "%d", d->latency_ns ? 2 : 0);
	if (d->latency_ns)
		err = err ?: dio_disk_set(d, "completion_nsec", "%lu",
					  d->latency_ns);
	if (d->cache_mib)
		err = err ?: dio_disk_set(d, "cache_size", "%u", d->cache_mib);
	if (d->fua)
		err = err ?: dio_disk_set(d, "fua", "1");
	if (d->max_sectors)
		err = err ?: dio_disk_set(d, "max_sectors", "%u",
					  d->max_sectors);
	return err ?: dio_disk_set(d, "power", "1");
}

static int loop_configure(struct dio_disk *d, int nr, int mem)
{
	struct loop_config config = { .fd = mem, .block_size = d->lbs };
	int err = 0, fd;

	snprintf(d->name, sizeof(d->name), "loop%d", nr);
	snprintf(d->path, sizeof(d->path), "/dev/%s", d->name);
	fd = open(d->path, O_RDWR);
	if (fd < 0)
		return fail(errno, "%s: %m", d->path);
	if (ioctl(fd, LOOP_CONFIGURE, &config))
		err = fail(errno, "LOOP_CONFIGURE %s: %m", d->path);
	close(fd);
	return err;
}

static int loop_create(struct dio_disk *d)
{
	int ctl, nr, err, mem;

	if (access("/dev/loop-control", F_OK) && dio_have("modprobe"))
		dio_run("modprobe", "loop", NULL);
	ctl = open("/dev/loop-control", O_RDWR);
	if (ctl < 0)
		return fail(errno, "no loop devices (CONFIG_BLK_DEV_LOOP): %m");
	mem = memfd_create("disk", MFD_CLOEXEC);
	if (mem < 0 || ftruncate(mem, d->mib * MIB))
		err = fail(errno, "memory for a disk: %m");
	else
		do {
			nr = ioctl(ctl, LOOP_CTL_GET_FREE);
			err = nr < 0 ? fail(errno, "LOOP_CTL_GET_FREE: %m") :
				       loop_configure(d, nr, mem);
		} while (err == -EBUSY);
	close(mem);
	close(ctl);
	if (err)
		d->name[0] = '\0';
	return err;
}

static void loop_destroy(struct dio_disk *d)
{
	int fd = open(d->path, O_RDWR);

	if (fd < 0)
		return;
	ioctl(fd, LOOP_CLR_FD, 0);
	close(fd);
}

/**
 * dio_disk_create() - make a disk
 * @d: what it is to be like; gets the disk's name and path
 */
int dio_disk_create(struct dio_disk *d)
{
	static unsigned int serial;
	char dir[PATH_MAX];
	int err, fd;

	d->lbs = d->lbs ?: 512;
	d->mib = d->mib ?: 64;
	if (d->loop)
		return loop_create(d);
	err = nullb_ready();
	if (err)
		return err;
	snprintf(d->name, sizeof(d->name), "dio%dn%u", getpid(), serial++);
	snprintf(d->path, sizeof(d->path), "/dev/%s", d->name);
	snprintf(dir, sizeof(dir), NULLB "/%s", d->name);
	if (mkdir(dir, 0700))
		return fail(errno, "%s: %m", dir);
	err = disk_configure(d);
	if (err) {
		rmdir(dir);
		return err;
	}
	fd = open(d->path, O_RDONLY);
	if (fd < 0) {
		err = fail(errno, "%s: %m (no devtmpfs?)", d->path);
		rmdir(dir);
		return err;
	}
	close(fd);
	return 0;
}

/**
 * dio_disk_destroy() - take the disk away, whether or not it is in use
 * @d: the disk
 */
void dio_disk_destroy(struct dio_disk *d)
{
	char dir[PATH_MAX];

	if (!d->name[0])
		return;
	snprintf(dir, sizeof(dir), NULLB "/%s", d->name);
	if (d->loop)
		loop_destroy(d);
	else
		rmdir(dir);
	d->name[0] = '\0';
}

/**
 * dio_disk_fill() - write one byte all over the disk
 * @d: the disk
 * @byte: the byte
 */
int dio_disk_fill(const struct dio_disk *d, unsigned char byte)
{
	int fd = open(d->path, O_WRONLY | O_DIRECT);
	unsigned int i;
	void *buf;
	int err = 0;

	if (fd < 0)
		return fail(errno, "%s: %m", d->path);
	buf = dio_alloc(MIB);
	memset(buf, byte, MIB);
	for (i = 0; i < d->mib && !err; i++)
		if (pwrite(fd, buf, MIB, i * MIB) != MIB)
			err = fail(errno ?: EIO, "%s: filling: %m", d->path);
	munmap(buf, MIB);
	close(fd);
	return err;
}

/* ---- filesystems ---- */

static const struct dio_fs_type fs_types[] = {
	{
		.name = "vfat", .mib = 16,
		.mkfs = { "mkfs.fat", "-S", "%lbs", "%dev" },
		.fsck = { "fsck.fat", "-n", "%dev" },
	}, {
		.name = "exfat", .mib = 16,
		.mkfs = { "mkfs.exfat", "%dev" },
		.fsck = { "fsck.exfat", "-n", "%dev" },
		.direct_io = "exfat_direct_IO",
	}, {
		.name = "udf", .mib = 16,
		.mkfs = { "mkfs.udf", "-b", "%lbs", "%dev" },
		.unchecked = "udftools come without an fsck",
	}, {
		.name = "jfs", .mib = 20,
		.mkfs = { "mkfs.jfs", "-q", "%dev" },
		.fsck = { "fsck.jfs", "-n", "-f", "%dev" },
	}, {
		/* small segments: it needs many of them */
		.name = "nilfs2", .mib = 96, .wears = true,
		.mkfs = { "mkfs.nilfs2", "-q", "-f", "-B", "64", "%dev" },
		.unchecked = "nilfs-tools come without an fsck",
	}, {
		/* what else there is for checking looks at $MFT only */
		.name = "ntfs3", .mib = 16,
		.mkfs = { "mkfs.ntfs", "-q", "-f", "-F", "-s", "%lbs", "%dev" },
		.fsck = { "ntfsresize", "-i", "%dev" },
		.direct_io = "ntfs_direct_IO",
	}, {
		/*
		 * Of 16 MiB it has blocks of 2 KiB, and 6.12 waits for itself
		 * when the bitmap begins in the block of the superblock.
		 */
		.name = "hfs", .mib = 18,
		.mkfs = { "mkfs.hfs", "-h", "-b", "4096", "-v", "test", "%dev" },
		.fsck = { "fsck.hfs", "-n", "-f", "%dev" },
	}, {
		.name = "hfsplus", .mib = 16,
		.mkfs = { "mkfs.hfsplus", "-b", "4096", "-v", "test", "%dev" },
		.fsck = { "fsck.hfsplus", "-n", "-f", "%dev" },
	}, {
		/* it would not find the root on 4096-byte sectors by itself */
		.name = "affs", .mib = 16, .options = "bs=%lbs",
		.mkfs = { "affs_volume", "make", "%dev", "%lbs" },
		.fsck = { "affs_volume", "check", "%dev", "%lbs" },
	}, {
		.name = "ocfs2", .mib = 40, .options = "heartbeat=none",
		.mkfs = { "mkfs.ocfs2", "-q", "-x", "-M", "local", "-N", "1",
			  "-b", "4096", "-C", "4096", "-J", "size=4M",
			  "--fs-features=append-dio", "%dev" },
		.fsck = { "fsck.ocfs2", "-f", "-n", "%dev" },
	}, {
		/* its journal takes 32 MiB */
		.name = "reiserfs", .mib = 48,
		.mkfs = { "mkfs.reiserfs", "-q", "-f", "-f", "%dev" },
		.fsck = { "reiserfsck", "--check", "-y", "%dev" },
	},
};

/* Does this kernel have it? It may have to be loaded. */
static bool fs_known(const char *name)
{
	char text[4096], want[40];
	int i;

	snprintf(want, sizeof(want), "\t%s\n", name);
	for (i = 0; i < 2; i++) {
		if (read_file("/proc/filesystems", text, sizeof(text)) > 0 &&
		    strstr(text, want))
			return true;
		if (!dio_have("modprobe"))
			break;
		dio_run("modprobe", name, NULL);
	}
	return false;
}

/* Does the kernel have this function? It does if it does not tell. */
static bool kernel_has(const char *function)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], name[256];
	bool found = !f;

	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %*s %255s", name) == 1 &&
			!strcmp(name, function);
	if (f)
		fclose(f);
	return found;
}

/* Whether a filesystem of fs_types uses get_block, 0 if nobody has looked yet. */
static signed char *fs_maps;

/* The list of functions is long: the first test looks, for all of them. */
static bool fs_has_get_block(const struct dio_fs_type *type)
{
	signed char *maps = &fs_maps[type - fs_types];

	if (!type->direct_io)
		return true;
	if (!*maps)
		*maps = kernel_has(type->direct_io) ? 1 : -1;
	return *maps > 0;
}

/**
 * dio_fs_type() - how to make a filesystem
 * @name: what mount(2) calls it
 *
 * Return: the filesystem, or NULL if this machine cannot have it; dio_why()
 * says why.
 */
const struct dio_fs_type *dio_fs_type(const char *name)
{
	const struct dio_fs_type *type = fs_types;

	while (strcmp(type->name, name))
		type++;
	if (!fs_known(name))
		fail(ENODEV, "%s: this kernel has none", name);
	else if (!fs_has_get_block(type))
		fail(EOPNOTSUPP, "%s: does not use get_block in this kernel", name);
	else if (!dio_have(type->mkfs[0]))
		fail(ENOENT, "%s: %s is not installed", name, type->mkfs[0]);
	else
		return type;
	return NULL;
}

/**
 * dio_fs_unchecked() - why a filesystem cannot be checked
 * @type: the filesystem
 *
 * Return: the reason, or NULL if there is an fsck.
 */
const char *dio_fs_unchecked(const struct dio_fs_type *type)
{
	if (type->unchecked)
		return type->unchecked;
	if (dio_have(type->fsck[0]))
		return NULL;
	fail(ENOENT, "%s is not installed", type->fsck[0]);
	return why;
}

/* ---- ext2 ---- */

/**
 * dio_mkfs_ext2() - make an ext2
 * @dev: block device
 * @block_size: in bytes
 */
int dio_mkfs_ext2(const char *dev, unsigned int block_size)
{
	char bs[16];
	int ret;

	snprintf(bs, sizeof(bs), "%u", block_size);
	ret = dio_run("mke2fs", "-q", "-F", "-t", "ext2", "-b", bs, "-m", "0",
		      "-N", "128", "-E", "nodiscard", dev, NULL);
	return ret > 0 ? -EIO : ret;
}

/**
 * dio_fsck_ext2() - check an ext2 that is not mounted; repairs nothing
 * @dev: block device
 *
 * Return: 0 if e2fsck has nothing to say against it.
 */
int dio_fsck_ext2(const char *dev)
{
	int ret = dio_run("e2fsck", "-f", "-n", dev, NULL);

	return ret > 0 ? -EUCLEAN : ret;
}

static int do_mount(const char *dev, const char *type, const char *dir,
		    const char *options)
{
	if (mount(dev, dir, type, 0, options))
		return fail(errno, "mount -t %s %s: %m", type, dev);
	return 0;
}

/**
 * dio_mount() - mount a device, with the filesystem's own defaults
 * @dev: block device
 * @type: filesystem
 * @dir: mount point
 */
int dio_mount(const char *dev, const char *type, const char *dir)
{
	return do_mount(dev, type, dir, NULL);
}

/**
 * dio_umount() - unmount, waiting for who still has it open
 * @dir: mount point
 *
 * A killed process, or a request in flight, may hold a file for a moment.
 */
int dio_umount(const char *dir)
{
	int i;

	for (i = 0; i < 200; i++) {
		if (!umount2(dir, UMOUNT_NOFOLLOW))
			return 0;
		if (errno != EBUSY)
			break;
		usleep(50000);
	}
	fail(errno, "umount %s: %m", dir);
	umount2(dir, MNT_DETACH);
	return -EBUSY;
}

/* Run a tool of a filesystem's; "%dev" and "%lbs" stand for what the disk is. */
static int fs_tool(const char *const tool[], const struct dio_disk *d)
{
	char *argv[DIO_TOOL_ARGS + 1] = { NULL };
	char lbs[16];
	int i;

	snprintf(lbs, sizeof(lbs), "%u", d->lbs);
	for (i = 0; i < DIO_TOOL_ARGS && tool[i]; i++) {
		if (!strcmp(tool[i], "%dev"))
			argv[i] = (char *)d->path;
		else if (!strcmp(tool[i], "%lbs"))
			argv[i] = lbs;
		else
			argv[i] = (char *)tool[i];
	}
	return run(argv);
}

static int fs_make(struct dio_fs *fs)
{
	int ret;

	if (!fs->type)
		return dio_mkfs_ext2(fs->disk.path, fs->block_size);
	ret = fs_tool(fs->type->mkfs, &fs->disk);
	return ret > 0 ? -EIO : ret;
}

static int fs_fsck(struct dio_fs *fs)
{
	int ret;

	if (!fs->type)
		return dio_fsck_ext2(fs->disk.path);
	if (dio_fs_unchecked(fs->type))
		return 0;
	ret = fs_tool(fs->type->fsck, &fs->disk);
	return ret > 0 ? -EUCLEAN : ret;
}

static int fs_mount(struct dio_fs *fs)
{
	const struct dio_fs_type *type = fs->type;
	char options[32] = "";
	const char *lbs;

	if (!type)
		return dio_mount(fs->disk.path, "ext2", fs->dir);
	if (type->options) {
		lbs = strstr(type->options, "%lbs") ?: strchr(type->options, 0);
		snprintf(options, sizeof(options), "%.*s",
			 (int)(lbs - type->options), type->options);
		if (*lbs)
			snprintf(strchr(options, 0), 8, "%u", fs->disk.lbs);
	}
	return do_mount(fs->disk.path, type->name, fs->dir, options);
}

/**
 * dio_fs_create() - make a disk with a filesystem on it and mount that
 * @fs: what it is to be like; gets the mount point
 *
 * With neither type nor block size there is to be no filesystem, just the disk.
 */
int dio_fs_create(struct dio_fs *fs)
{
	int err = dio_disk_create(&fs->disk);

	if (err || (!fs->type && !fs->block_size))
		return err;
	if (fs->type)
		err = dio_disk_fill(&fs->disk, DIO_FS_MARK);
	err = err ?: fs_make(fs);
	if (err)
		goto no_disk;
	snprintf(fs->dir, sizeof(fs->dir), "/tmp/%s", fs->disk.name);
	mkdir("/tmp", 01777);
	if (mkdir(fs->dir, 0700)) {
		err = fail(errno, "%s: %m", fs->dir);
		goto no_disk;
	}
	err = fs_mount(fs);
	if (!err)
		return 0;
	rmdir(fs->dir);
no_disk:
	fs->dir[0] = '\0';
	dio_disk_destroy(&fs->disk);
	return err;
}

/**
 * dio_fs_remount() - unmount and mount again, so that nothing is cached
 * @fs: the filesystem
 */
int dio_fs_remount(struct dio_fs *fs)
{
	int err = dio_umount(fs->dir);

	return err ?: fs_mount(fs);
}

/**
 * dio_fs_check() - unmount, check with the filesystem's fsck, mount again
 * @fs: the filesystem
 *
 * Where dio_fs_unchecked() says that nothing can check it, that is left out.
 */
int dio_fs_check(struct dio_fs *fs)
{
	int err = dio_umount(fs->dir);
	int bad;

	if (err)
		return err;
	bad = fs_fsck(fs);
	return bad ?: fs_mount(fs);
}

/**
 * dio_fs_destroy() - unmount and take the disk away
 * @fs: the filesystem
 */
void dio_fs_destroy(struct dio_fs *fs)
{
	if (fs->dir[0]) {
		dio_umount(fs->dir);
		rmdir(fs->dir);
		fs->dir[0] = '\0';
	}
	dio_disk_destroy(&fs->disk);
}

/* ---- targets that stay until the program ends ---- */

#define TARGETS 8	/* and one more, dio_target_fs()'s */

static struct dio_target *targets;
static pid_t targets_owner;

static void trace_destroy(void);

static void targets_destroy(void)
{
	int i;

	if (getpid() != targets_owner)
		return;
	trace_destroy();
	for (i = 0; i <= TARGETS; i++)
		if (targets[i].state == 1)
			dio_fs_destroy(&targets[i].fs);
}

/* Shared memory: each test is a process of its own. */
static void __attribute__((constructor)) targets_init(void)
{
	size_t size = (TARGETS + 1) * sizeof(*targets);

	targets = mmap(NULL, size + ARRAY_SIZE(fs_types), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (targets == MAP_FAILED)
		abort();
	fs_maps = (signed char *)targets + size;
	targets_owner = getpid();
	atexit(targets_destroy);
}

/**
 * dio_target() - the target with these block sizes, made at its first use
 * @lbs: logical block size of the disk
 * @block_size: ext2's block size, 0 for the bare block device
 *
 * Return: the target; its state is negative if it could not be made.
 */
struct dio_target *dio_target(unsigned int lbs, unsigned int block_size)
{
	struct dio_target *t = targets;

	while (t->state && (t->lbs != lbs || t->block_size != block_size))
		t++;
	if (t->state)
		return t;
	t->lbs = lbs;
	t->block_size = block_size;
	t->fs.block_size = block_size;
	t->fs.disk.lbs = lbs;
	t->fs.disk.mib = 32;
	t->fs.disk.loop = lbs == 4096;
	t->fs.disk.poll_queues = 1;
	t->state = dio_fs_create(&t->fs) ?: 1;
	if (t->state < 0)
		snprintf(t->why, sizeof(t->why), "%.255s", why);
	return t;
}

static bool half_free(struct dio_target *t)
{
	struct statfs st;

	return !statfs(t->fs.dir, &st) && st.f_bfree > st.f_blocks / 2;
}

/**
 * dio_target_fs() - the target with another filesystem
 * @type: the filesystem
 * @lbs: logical block size of the disk
 *
 * There is one at a time: the last one stays until another is asked for, or it
 * is spoiled, or worn.
 *
 * Return: the target; its state is negative if it could not be made.
 */
struct dio_target *dio_target_fs(const struct dio_fs_type *type,
				 unsigned int lbs)
{
	struct dio_target *t = &targets[TARGETS];
	struct statfs st;

	if (t->state == 1) {
		if (t->fs.type == type && t->lbs == lbs && !t->spoiled &&
		    (!type->wears || half_free(t)))
			return t;
		dio_fs_destroy(&t->fs);
	}
	memset(t, 0, sizeof(*t));
	t->lbs = lbs;
	t->fs.type = type;
	t->fs.disk.lbs = lbs;
	t->fs.disk.mib = type->mib;
	t->fs.disk.loop = lbs == 4096;
	t->fs.disk.poll_queues = 1;
	t->state = dio_fs_create(&t->fs) ?: 1;
	if (t->state == 1 && !statfs(t->fs.dir, &st))
		t->block_size = st.f_bsize;
	else
		snprintf(t->why, sizeof(t->why), "%.255s", why);
	return t;
}

/**
 * dio_target_path() - the file (or device) that a test works on
 * @t: the target
 */
char *dio_target_path(struct dio_target *t)
{
	static __thread char path[PATH_MAX];

	if (t->block_size)
		snprintf(path, sizeof(path), "%s/f", t->fs.dir);
	else
		snprintf(path, sizeof(path), "%s", t->fs.disk.path);
	return path;
}

/**
 * dio_target_open() - open the target's file, or its device
 * @t: the target
 * @flags: open(2) flags; a device takes no notice of O_CREAT and O_TRUNC
 */
int dio_target_open(struct dio_target *t, int flags)
{
	int fd;

	if (!t->block_size)
		flags &= ~(O_CREAT | O_TRUNC);
	fd = open(dio_target_path(t), flags, 0600);
	if (fd < 0)
		return fail(errno, "%s: %m", dio_target_path(t));
	return fd;
}

/**
 * dio_target_mark() - leave a byte in every free block of the filesystem
 * @t: the target
 * @byte: the byte
 *
 * What a new block then holds, if it is neither written nor zeroed, is known.
 */
int dio_target_mark(struct dio_target *t, unsigned char byte)
{
	int fd = dio_target_open(t, O_WRONLY | O_CREAT | O_TRUNC);
	void *buf;
	int err = 0;

	if (fd < 0)
		return fd;
	buf = dio_alloc(MIB);
	memset(buf, byte, MIB);
	while (write(fd, buf, MIB) > 0)
		;
	if (errno != ENOSPC)
		err = fail(errno, "filling %s: %m", t->fs.dir);
	munmap(buf, MIB);
	fsync(fd);
	close(fd);
	unlink(dio_target_path(t));
	return err ?: dio_drop_caches();
}

/* ---- data ---- */

/**
 * dio_alloc() - memory that starts on a page boundary, zeroed, present
 * @len: in bytes; free it with munmap(2)
 */
void *dio_alloc(size_t len)
{
	void *buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (buf == MAP_FAILED) {
		perror("# mmap");
		abort();
	}
	return buf;
}

static __u64 pattern(__u64 pos, __u32 seed)
{
	__u64 x = ((pos >> 3) + 1 + ((__u64)seed << 40)) *
		     0x9e3779b97f4a7c15ULL;

	return x ^ (x >> 29);
}

static unsigned char pattern_byte(__u64 pos, __u32 seed)
{
	return pattern(pos, seed) >> (8 * (pos & 7));
}

/**
 * dio_fill() - fill memory with a pattern that tells its place
 * @buf: memory
 * @len: in bytes
 * @pos: place in the file of its first byte
 * @seed: which pattern
 */
void dio_fill(void *buf, size_t len, __u64 pos, __u32 seed)
{
	unsigned char *p = buf;
	__u64 word;

	for (; len && (pos & 7); len--)
		*p++ = pattern_byte(pos++, seed);
	for (; len >= 8; len -= 8, p += 8, pos += 8) {
		word = pattern(pos, seed);
		memcpy(p, &word, 8);
	}
	while (len--)
		*p++ = pattern_byte(pos++, seed);
}

/**
 * dio_differs() - does memory hold what dio_fill() put there?
 * @buf: memory
 * @len: in bytes
 * @pos: place in the file of its first byte
 * @seed: which pattern
 *
 * Return: -1 if every byte is as it should be, else the first that is not.
 */
ssize_t dio_differs(const void *buf, size_t len, __u64 pos, __u32 seed)
{
	const unsigned char *p = buf;
	__u64 word;
	size_t i = 0;

	while (i < len) {
		if (!((pos + i) & 7) && len - i >= 8) {
			word = pattern(pos + i, seed);
			if (!memcmp(p + i, &word, 8)) {
				i += 8;
				continue;
			}
		}
		if (p[i] != pattern_byte(pos + i, seed))
			return i;
		i++;
	}
	return -1;
}

/**
 * dio_not_byte() - is memory full of one byte?
 * @buf: memory
 * @len: in bytes
 * @byte: the byte
 *
 * Return: -1 if it is, else where the first other byte is.
 */
ssize_t dio_not_byte(const void *buf, size_t len, unsigned char byte)
{
	const unsigned char *p = buf;
	size_t i;

	if (!len || (p[0] == byte && !memcmp(p, p + 1, len - 1)))
		return -1;
	for (i = 0; p[i] == byte; i++)
		;
	return i;
}

/**
 * dio_has_byte_run() - is there a sector's beginning of one byte only?
 * @buf: memory
 * @len: in bytes
 * @byte: the byte
 *
 * Looks at 64 bytes at the start of each 512: a pattern never looks so.
 */
bool dio_has_byte_run(const void *buf, size_t len, unsigned char byte)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i + 64 <= len; i += 512)
		if (dio_not_byte(p + i, 64, byte) < 0)
			return true;
	return false;
}

/* ---- I/O by any method ---- */

const char *dio_method_name(enum dio_method m)
{
	static const char * const names[DIO_METHODS] = {
		[DIO_SYNC] = "sync",
		[DIO_VEC] = "vec",
		[DIO_AIO] = "libaio",
		[DIO_URING] = "io_uring",
		[DIO_URING_FIXED] = "io_uring fixed buffer",
		[DIO_URING_POLL] = "io_uring polled",
	};

	return names[m];
}

static ssize_t rw_sync(enum dio_dir dir, int fd, void *buf, size_t len,
		       off_t pos)
{
	ssize_t n = dir == DIO_WRITE ? pwrite(fd, buf, len, pos) :
				       pread(fd, buf, len, pos);

	return n < 0 ? -errno : n;
}

/* Pieces of a page or three, or of sectors if pages do not fit. */
static ssize_t rw_vec(enum dio_dir dir, int fd, void *buf, size_t len,
		      off_t pos)
{
	size_t unit = len % 4096 ? 512 : 4096, done, piece;
	struct iovec iov[IOV_MAX];
	int nr = 0;
	ssize_t n;

	for (done = 0; done < len; done += piece) {
		piece = unit * (1 + nr % 3);
		if (piece > len - done || nr == IOV_MAX - 1)
			piece = len - done;
		iov[nr].iov_base = (char *)buf + done;
		iov[nr++].iov_len = piece;
	}
	n = dir == DIO_WRITE ? pwritev(fd, iov, nr, pos) :
			       preadv(fd, iov, nr, pos);
	return n < 0 ? -errno : n;
}

static ssize_t rw_aio(enum dio_dir dir, int fd, void *buf, size_t len,
		      off_t pos)
{
	static __thread io_context_t ctx;
	struct iocb cb, *cbs[] = { &cb };
	struct io_event ev;
	int ret;

	if (!ctx) {
		ret = io_setup(4, &ctx);
		if (ret)
			return fail(EOPNOTSUPP, "io_setup: %s", strerror(-ret));
	}
	if (dir == DIO_WRITE)
		io_prep_pwrite(&cb, fd, buf, len, pos);
	else
		io_prep_pread(&cb, fd, buf, len, pos);
	ret = io_submit(ctx, 1, cbs);
	if (ret != 1)
		return ret;
	do
		ret = io_getevents(ctx, 1, 1, &ev, NULL);
	while (ret == -EINTR);
	return ret == 1 ? (ssize_t)ev.res : ret;
}

static struct io_uring *ring_get(bool poll)
{
	static __thread struct io_uring rings[2];
	struct io_uring *ring = &rings[poll];

	if (!ring->ring_fd &&
	    io_uring_queue_init(4, ring, poll ? IORING_SETUP_IOPOLL : 0))
		return NULL;
	return ring;
}

static ssize_t rw_uring(enum dio_method m, enum dio_dir dir, int fd, void *buf,
			size_t len, off_t pos)
{
	struct io_uring *ring = ring_get(m == DIO_URING_POLL);
	bool fixed = m == DIO_URING_FIXED;
	struct iovec iov = { buf, len };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	ssize_t ret;

	if (!ring)
		return fail(EOPNOTSUPP, "io_uring_setup: %m");
	if (fixed) {
		ret = io_uring_register_buffers(ring, &iov, 1);
		if (ret)
			return ret;
	}
	sqe = io_uring_get_sqe(ring);
	if (dir == DIO_WRITE)
		io_uring_prep_write(sqe, fd, buf, len, pos);
	else
		io_uring_prep_read(sqe, fd, buf, len, pos);
	if (fixed)
		sqe->opcode = dir == DIO_WRITE ? IORING_OP_WRITE_FIXED :
						 IORING_OP_READ_FIXED;
	ret = io_uring_submit(ring);
	if (ret == 1) {
		do
			ret = io_uring_wait_cqe(ring, &cqe);
		while (ret == -EINTR);
		if (!ret) {
			ret = cqe->res;
			io_uring_cqe_seen(ring, cqe);
		}
	}
	if (fixed)
		io_uring_unregister_buffers(ring);
	return ret;
}

/**
 * dio_rw() - read or write once
 * @m: by which method
 * @dir: DIO_READ or DIO_WRITE
 * @fd: open file
 * @buf: memory
 * @len: in bytes
 * @pos: where in the file
 *
 * Return: bytes transferred, or -errno.
 */
ssize_t dio_rw(enum dio_method m, enum dio_dir dir, int fd, void *buf,
	       size_t len, off_t pos)
{
	switch (m) {
	case DIO_SYNC:
		return rw_sync(dir, fd, buf, len, pos);
	case DIO_VEC:
		return rw_vec(dir, fd, buf, len, pos);
	case DIO_AIO:
		return rw_aio(dir, fd, buf, len, pos);
	default:
		return rw_uring(m, dir, fd, buf, len, pos);
	}
}

/* A queue without poll queues does not refuse what needs no disk. */
static bool queue_polls(int fd)
{
	struct stat st;
	dev_t dev;

	if (fstat(fd, &st))
		return false;
	dev = S_ISREG(st.st_mode) ? st.st_dev : st.st_rdev;
	return dio_read_long("/sys/dev/block/%d:%d/queue/io_poll", major(dev),
			     minor(dev)) == 1;
}

/**
 * dio_can() - does this file take this method?
 * @m: the method
 * @fd: open for reading
 */
bool dio_can(enum dio_method m, int fd)
{
	ssize_t ret = 0;
	void *buf;

	if (m == DIO_URING_POLL && !queue_polls(fd))
		return false;
	if (m == DIO_AIO || m >= DIO_URING) {
		buf = dio_alloc(4096);
		ret = dio_rw(m, DIO_READ, fd, buf, 4096, 0);
		munmap(buf, 4096);
	}
	return ret != -EOPNOTSUPP;
}

/**
 * dio_can_or_close() - does this file take this method? If not, it is closed
 * @m: the method
 * @fd: open for reading
 */
bool dio_can_or_close(enum dio_method m, int fd)
{
	bool can = dio_can(m, fd);

	if (!can)
		close(fd);
	return can;
}

/**
 * dio_next_method() - the next method that a file takes
 * @m: method; begin with DIO_SYNC
 * @fd: open for reading
 *
 * Return: a method, or DIO_METHODS after the last.
 */
enum dio_method dio_next_method(enum dio_method m, int fd)
{
	do
		m++;
	while (m < DIO_METHODS && !dio_can(m, fd));
	return m;
}

/**
 * dio_statx() - what alignment a file asks for
 * @fd: the file
 * @mem_align: gets the memory alignment in bytes, 0 if there is no direct I/O
 * @offset_align: gets the alignment of offset and length in bytes
 *
 * Return: 0, or -EOPNOTSUPP if the filesystem does not tell.
 */
int dio_statx(int fd, unsigned int *mem_align, unsigned int *offset_align)
{
	struct statx stx;

	if (syscall(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx))
		return fail(errno, "statx: %m");
	if (!(stx.stx_mask & STATX_DIOALIGN))
		return fail(EOPNOTSUPP, "statx does not tell STATX_DIOALIGN");
	*mem_align = stx.stx_dio_mem_align;
	*offset_align = stx.stx_dio_offset_align;
	return 0;
}

/**
 * dio_physical() - where on the disk a byte of a file is
 * @fd: file on ext2, or block device
 * @pos: the byte
 *
 * Return: byte on the disk, or -errno; -ENXIO for a hole.
 */
long long dio_physical(int fd, off_t pos)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extent;
	} f = { .map = { .fm_start = pos, .fm_length = 1,
			 .fm_extent_count = 1, .fm_flags = FIEMAP_FLAG_SYNC } };
	struct stat st;

	if (!fstat(fd, &st) && S_ISBLK(st.st_mode))
		return pos;
	if (ioctl(fd, FS_IOC_FIEMAP, &f.map))
		return fail(errno, "FIEMAP: %m");
	if (!f.map.fm_mapped_extents || f.extent.fe_logical > (__u64)pos)
		return fail(ENXIO, "a hole at %ld", (long)pos);
	return f.extent.fe_physical + (pos - f.extent.fe_logical);
}

/* ---- tracepoints ---- */

#define BIO_QUEUE "events/block/block_bio_queue/enable"
#define RQ_ISSUE "events/block/block_rq_issue/enable"

static char trace_dir[64];
static char trace_dev[24];

static int trace_file(const char *file, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", trace_dir, file);
	return write_file(path, text);
}

/*
 * Tracing of the program's own, so that nobody else's is disturbed. Once on,
 * the events stay so until the program ends, and only the recording stops:
 * turning events on and off rewrites code, which costs time, and which not
 * every emulator stands for long. Recording the names of tasks rewrites the
 * scheduler; a new instance takes that option from the top level.
 */
#define RECORD_CMD TRACEFS "/options/record-cmd"

static int trace_instance(void)
{
	long record_cmd = dio_read_long(RECORD_CMD);
	int err = 0;

	if (record_cmd > 0)
		write_file(RECORD_CMD, "0");
	if (mkdir(trace_dir, 0700))
		err = fail(errno, "%s: %m", trace_dir);
	if (record_cmd > 0)
		write_file(RECORD_CMD, "1");
	return err;
}

static int trace_setup(void)
{
	int err;

	snprintf(trace_dir, sizeof(trace_dir), TRACEFS "/instances/dio%d",
		 targets_owner);
	if (!access(trace_dir, F_OK))
		return 0;
	if (access(TRACEFS "/instances", F_OK) &&
	    mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return fail(errno, "tracefs cannot be mounted: %m");
	if (access(TRACEFS "/events/block/block_bio_queue", F_OK))
		return fail(ENOENT, "no block tracepoints (CONFIG_BLK_DEV_IO_TRACE)");
	err = trace_instance();
	if (err)
		return err;
	err = trace_file("tracing_on", "0");
	err = err ?: trace_file(BIO_QUEUE, "1");
	err = err ?: trace_file(RQ_ISSUE, "1");
	if (err)
		rmdir(trace_dir);
	return err;
}

static void trace_destroy(void)
{
	snprintf(trace_dir, sizeof(trace_dir), TRACEFS "/instances/dio%d",
		 targets_owner);
	if (access(trace_dir, F_OK))
		return;
	trace_file(BIO_QUEUE, "0");
	trace_file(RQ_ISSUE, "0");
	rmdir(trace_dir);
}

/**
 * dio_trace_start() - begin to record a device's BIOs and requests
 * @dev: block device node
 */
int dio_trace_start(const char *dev)
{
	struct stat st;
	int err;

	if (stat(dev, &st))
		return fail(errno, "%s: %m", dev);
	snprintf(trace_dev, sizeof(trace_dev), ": %d,%d ",
		 major(st.st_rdev), minor(st.st_rdev));
	err = trace_setup();
	err = err ?: trace_file("trace", "\n");
	return err ?: trace_file("tracing_on", "1");
}

static bool trace_parse(const char *line, struct dio_bio *bio)
{
	const char *p = strstr(line, ": block_");
	int ma, mi;

	memset(bio, 0, sizeof(*bio));
	if (!p || !strstr(line, trace_dev))
		return false;
	if (sscanf(p, ": block_%15[a-z_]: %d,%d %11s", bio->event, &ma, &mi,
		   bio->rwbs) != 4)
		return false;
	if (!strcmp(bio->event, "bio_queue"))
		return sscanf(p, ": block_bio_queue: %*d,%*d %*s %llu + %u",
			      &bio->sector, &bio->sectors) == 2;
	p = strchr(p, ')');
	return p && sscanf(p, ") %llu + %u %23[a-z]", &bio->sector,
			   &bio->sectors, bio->ioprio) >= 2;
}

/**
 * dio_trace_stop() - stop recording
 * @bios: gets the events, oldest first
 * @max: room in @bios
 *
 * Return: how many events there were, which may be more than @max.
 */
int dio_trace_stop(struct dio_bio *bios, int max)
{
	char path[PATH_MAX], line[512];
	struct dio_bio bio;
	int nr = 0;
	FILE *f;

	trace_file("tracing_on", "0");
	snprintf(path, sizeof(path), "%s/trace", trace_dir);
	f = fopen(path, "r");
	if (!f)
		return fail(errno, "%s: %m", path);
	while (fgets(line, sizeof(line), f)) {
		if (!trace_parse(line, &bio))
			continue;
		if (nr < max)
			bios[nr] = bio;
		nr++;
	}
	fclose(f);
	return nr;
}
