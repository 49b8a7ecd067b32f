// SPDX-License-Identifier: GPL-2.0
/*
 * raw - bind raw character devices to block devices, and show the bindings
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/raw.h>

#define RAW_VERSION	"1.0"

#define MAX_BLOCK_MAJOR	4095
#define MAX_BLOCK_MINOR	1048575

enum {
	EXIT_FAILED	= 1,	/* the system refused */
	EXIT_USAGE	= 2,	/* the command line makes no sense */
};

static const char usage_text[] =
	"Usage: raw /dev/raw/rawN BLOCKDEVICE\n"
	"       raw /dev/raw/rawN MAJOR MINOR\n"
	"       raw -q /dev/raw/rawN\n"
	"       raw -qa\n"
	"Bind a raw character device to a block device, or show bindings.\n"
	"\n"
	"  -q, --query    show what a raw device is bound to, do not bind it\n"
	"  -a, --all      with -q: show all raw devices that are bound\n"
	"  -h, --help     show this help\n"
	"  -V, --version  show the version\n"
	"\n"
	"MAJOR MINOR of 0 0 removes a binding. rawN and /dev/rawN name the raw\n"
	"device as well. See raw(8).\n";

static noreturn void die_usage(const char *what)
{
	errx(EXIT_USAGE, "%s\nTry 'raw -h' for help.", what);
}

static bool parse_number(const char *text, unsigned long max,
			 unsigned long *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoul(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	return !errno && !*end && *number <= max;
}

/* The minor number behind /dev/raw/rawN, /dev/rawN or rawN. */
static int parse_raw_name(const char *name)
{
	static const char * const prefixes[] = { "/dev/raw/", "/dev/" };
	const char *digits = name;
	unsigned long minor;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], len)) {
			digits += len;
			break;
		}
	}
	if (strncmp(digits, "raw", 3))
		goto bad;
	digits += 3;
	/* "raw01" and "raw0x1" are names of nothing */
	if (*digits == '0' || !parse_number(digits, INT_MAX, &minor))
		goto bad;
	return minor;
bad:
	errx(EXIT_USAGE, "%s: not a raw device: name it /dev/raw/rawN, N from 1",
	     name);
}

static int open_ctl(void)
{
	static const char * const names[] = { "/dev/raw/rawctl", "/dev/rawctl" };
	int fd;

	fd = open(names[0], O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENOTDIR)
		fd = open(names[1], O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;

	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ENXIO:
	case ENODEV:
		errx(EXIT_FAILED,
		     "%s: the raw driver is not loaded: try 'modprobe raw' (the kernel needs CONFIG_RAW_DRIVER)",
		     names[0]);
	case EACCES:
	case EPERM:
		errx(EXIT_FAILED, "%s: permission denied: run raw as root",
		     names[0]);
	}
	errx(EXIT_FAILED, "%s: %s", names[0], strerror(errno));
}

/* The driver knows only the minors below its parameter max_raw_minors. */
static noreturn void die_range(int minor)
{
	FILE *f = fopen("/sys/module/raw/parameters/max_raw_minors", "r");
	unsigned int max;

	if (!f || fscanf(f, "%u", &max) != 1 || max > (unsigned int)minor)
		errx(EXIT_FAILED, "/dev/raw/raw%d: invalid argument", minor);
	errx(EXIT_FAILED,
	     "/dev/raw/raw%d: no such raw device: the last one is raw%u; the raw driver's parameter max_raw_minors allows for more",
	     minor, max - 1);
}

static noreturn void die_ioctl(int minor)
{
	switch (errno) {
	case EBUSY:
		errx(EXIT_FAILED, "/dev/raw/raw%d: busy", minor);
	case EPERM:
	case EACCES:
		errx(EXIT_FAILED,
		     "/dev/raw/raw%d: not permitted: run raw as root (CAP_SYS_ADMIN)",
		     minor);
	case EINVAL:
		die_range(minor);
	case ENOTTY:
		errx(EXIT_FAILED,
		     "rawctl is not the raw driver's control device (character device 162, 0)");
	}
	errx(EXIT_FAILED, "/dev/raw/raw%d: %s", minor, strerror(errno));
}

static void show(const struct raw_config_request *rq)
{
	printf("/dev/raw/raw%d:\tbound to major %llu, minor %llu\n",
	       rq->raw_minor, (unsigned long long)rq->block_major,
	       (unsigned long long)rq->block_minor);
}

static void query(int ctl, int minor)
{
	struct raw_config_request rq = { .raw_minor = minor };

	if (ioctl(ctl, RAW_GETBIND, &rq))
		die_ioctl(minor);
	show(&rq);
}

static void query_all(int ctl)
{
	struct raw_config_request rq = { .raw_minor = 1 };

	for (; !ioctl(ctl, RAW_GETBIND, &rq); rq.raw_minor++) {
		if (rq.block_major || rq.block_minor)
			show(&rq);
	}
	/* EINVAL: that was the last minor, unless it was the first */
	if (errno != EINVAL || rq.raw_minor == 1) {
		fflush(stdout);
		die_ioctl(rq.raw_minor);
	}
}

static void bind_raw(int ctl, struct raw_config_request *rq)
{
	if (ioctl(ctl, RAW_SETBIND, rq))
		die_ioctl(rq->raw_minor);
	query(ctl, rq->raw_minor);
}

static void parse_block_path(const char *path, struct raw_config_request *rq)
{
	struct stat st;

	if (stat(path, &st))
		errx(EXIT_FAILED, "%s: %s", path, strerror(errno));
	if (!S_ISBLK(st.st_mode))
		errx(EXIT_FAILED, "%s: not a block device", path);
	rq->block_major = major(st.st_rdev);
	rq->block_minor = minor(st.st_rdev);
}

static void parse_block_numbers(char **argv, struct raw_config_request *rq)
{
	unsigned long major, minor;

	if (!parse_number(argv[0], MAX_BLOCK_MAJOR, &major))
		errx(EXIT_USAGE, "%s: not a major number (0 to %d)", argv[0],
		     MAX_BLOCK_MAJOR);
	if (!parse_number(argv[1], MAX_BLOCK_MINOR, &minor))
		errx(EXIT_USAGE, "%s: not a minor number (0 to %d)", argv[1],
		     MAX_BLOCK_MINOR);
	if (!major && minor)
		errx(EXIT_USAGE,
		     "%lu %lu: no block device has major number 0; 0 0 removes a binding",
		     major, minor);
	rq->block_major = major;
	rq->block_minor = minor;
}

static void run_query(bool all, int argc, char **argv)
{
	int minor;

	if (all) {
		if (argc)
			die_usage("-a takes no raw device");
		query_all(open_ctl());
		return;
	}
	if (argc != 1)
		die_usage("-q needs one raw device, or -a for all");
	minor = parse_raw_name(argv[0]);
	query(open_ctl(), minor);
}

static void run_bind(int argc, char **argv)
{
	struct raw_config_request rq = { 0 };

	if (argc != 2 && argc != 3)
		die_usage("a raw device and a block device are needed");
	rq.raw_minor = parse_raw_name(argv[0]);
	if (argc == 2)
		parse_block_path(argv[1], &rq);
	else
		parse_block_numbers(argv + 1, &rq);
	bind_raw(open_ctl(), &rq);
}

static int finish(void)
{
	if (fflush(stdout) || ferror(stdout))
		errx(EXIT_FAILED, "standard output: %s", strerror(errno));
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "query",	no_argument,	NULL, 'q' },
		{ "all",	no_argument,	NULL, 'a' },
		{ "help",	no_argument,	NULL, 'h' },
		{ "version",	no_argument,	NULL, 'V' },
		{ }
	};
	bool is_query = false, all = false;
	int c;

	while ((c = getopt_long(argc, argv, "qahV", options, NULL)) != -1) {
		switch (c) {
		case 'q':
			is_query = true;
			break;
		case 'a':
			all = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return finish();
		case 'V':
			puts("raw " RAW_VERSION);
			return finish();
		default:
			fputs("Try 'raw -h' for help.\n", stderr);
			return EXIT_USAGE;
		}
	}
	argc -= optind;
	argv += optind;

	if (all && !is_query)
		die_usage("-a goes with -q");
	if (is_query)
		run_query(all, argc, argv);
	else
		run_bind(argc, argv);
	return finish();
}
