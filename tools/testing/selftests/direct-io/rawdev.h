/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of raw devices share: the control device, minors that nobody
 * uses, and binding.  Calls return -errno when they fail.
 */
#ifndef _SELFTESTS_DIRECT_IO_RAWDEV_H
#define _SELFTESTS_DIRECT_IO_RAWDEV_H

#include <errno.h>
#include <fcntl.h>
#include <linux/raw.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dio.h"

#define RAW_CHAR_MAJOR 162

static inline int raw_open_ctl(void)
{
	int fd;

	if (access("/dev/raw/rawctl", F_OK) && dio_have("modprobe"))
		dio_run("modprobe", "raw", NULL);
	fd = open("/dev/raw/rawctl", O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static inline int raw_bind(int ctl, int minor, unsigned int block_major,
			   unsigned int block_minor)
{
	struct raw_config_request rq = {
		.raw_minor = minor,
		.block_major = block_major,
		.block_minor = block_minor,
	};

	return ioctl(ctl, RAW_SETBIND, &rq) ? -errno : 0;
}

static inline int raw_unbind(int ctl, int minor)
{
	return raw_bind(ctl, minor, 0, 0);
}

static inline int raw_query(int ctl, int minor, unsigned int *block_major,
			    unsigned int *block_minor)
{
	struct raw_config_request rq = { .raw_minor = minor };

	if (ioctl(ctl, RAW_GETBIND, &rq))
		return -errno;
	*block_major = rq.block_major;
	*block_minor = rq.block_minor;
	return 0;
}

/* The first minor that the driver does not have. */
static inline int raw_minors(int ctl)
{
	unsigned int major = 0, minor = 0;
	int n = 1;

	while (!raw_query(ctl, n, &major, &minor))
		n++;
	return n;
}

/* The highest minor below @below that is not bound; 0 if there is none. */
static inline int raw_free_minor(int ctl, int below)
{
	unsigned int major = 0, minor = 0;

	while (--below > 0)
		if (!raw_query(ctl, below, &major, &minor) && !major && !minor)
			return below;
	return 0;
}

/**
 * struct raw_pair - a disk of the test's own and two raw minors for it
 * @disk:	the disk
 * @dev:	its number
 * @ctl:	the control device
 * @minor:	minors that nobody else uses
 * @path:	their device nodes
 *
 * The first minor is bound to the disk to begin with.
 */
struct raw_pair {
	struct dio_disk disk;
	dev_t dev;
	int ctl;
	int minor[2];
	char path[2][32];
};

/* Set @why when it fails.  Only what is missing here is a reason to skip. */
static inline int raw_pair_create(struct raw_pair *p, const char **why)
{
	struct stat st;
	int i, err, below;

	p->ctl = raw_open_ctl();
	if (p->ctl < 0) {
		*why = "/dev/raw/rawctl cannot be opened (CONFIG_RAW_DRIVER)";
		return p->ctl;
	}
	below = raw_minors(p->ctl);
	for (i = 0; i < 2; i++) {
		below = raw_free_minor(p->ctl, below);
		p->minor[i] = below;
		snprintf(p->path[i], sizeof(p->path[i]), "/dev/raw/raw%d",
			 below);
	}
	*why = "all raw devices are bound";
	if (!below)
		return -EBUSY;
	*why = dio_why();
	err = dio_disk_create(&p->disk);
	if (err)
		return err;
	*why = "the disk cannot be bound";
	if (stat(p->disk.path, &st))
		return -errno;
	p->dev = st.st_rdev;
	return raw_bind(p->ctl, p->minor[0], major(p->dev), minor(p->dev));
}

static inline int raw_pair_bind(struct raw_pair *p, int i)
{
	return raw_bind(p->ctl, p->minor[i], major(p->dev), minor(p->dev));
}

static inline void raw_pair_destroy(struct raw_pair *p)
{
	int i;

	/* a test that failed half-way has its files open: nothing unbinds then */
	close_range(3, ~0U, 0);
	p->ctl = raw_open_ctl();
	for (i = 0; i < 2; i++)
		if (p->ctl >= 0 && p->minor[i])
			raw_unbind(p->ctl, p->minor[i]);
	if (p->disk.name[0])
		dio_disk_destroy(&p->disk);
	close(p->ctl);
}

#endif /* _SELFTESTS_DIRECT_IO_RAWDEV_H */
