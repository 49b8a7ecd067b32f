/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _UAPI_LINUX_RAW_H
#define _UAPI_LINUX_RAW_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Both ioctls are sent to /dev/raw/rawctl (minor 0) and take a pointer to a
 * struct raw_config_request.  The numbers carry neither size nor direction.
 */
#define RAW_SETBIND	_IO(0xac, 0)
#define RAW_GETBIND	_IO(0xac, 1)

/**
 * struct raw_config_request - which block device a raw device stands for
 * @raw_minor: minor number of the raw device, 1 or more
 * @block_major: major number of the block device
 * @block_minor: minor number of the block device
 *
 * RAW_SETBIND reads all three.  A block device of 0, 0 removes the binding.
 * RAW_GETBIND reads @raw_minor and fills in the others, 0, 0 if not bound.
 */
struct raw_config_request {
	int	raw_minor;
	__u64	block_major;
	__u64	block_minor;
};

#endif /* _UAPI_LINUX_RAW_H */
