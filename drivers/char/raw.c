// SPDX-License-Identifier: GPL-2.0
/*
 * Raw character devices: unbuffered access to block devices
 *
 * A raw device is a character device that an administrator binds to a block
 * device.  All its reads and writes are direct I/O, whether or not the program
 * has heard of O_DIRECT.
 *
 * There is no I/O code here.  An open of a raw device opens the block device
 * and lets the raw file's f_mapping point at the block device's page cache,
 * just as the f_mapping of an open block special file does.  That is all that
 * the block device's own read_iter and write_iter look at, so they can be
 * called with the raw file's kiocb; what is left to do is to set IOCB_DIRECT.
 * The raw inode's i_mapping is not touched: it is shared by every open of the
 * node, which can be bound to another block device while old opens of it are
 * still being torn down.
 *
 * Whatever does not need the kiocb (ioctl, fsync) is handed to the block
 * device's own file, which the raw file keeps in private_data.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/capability.h>
#include <linux/cdev.h>
#include <linux/compat.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/major.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/raw.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#define RAW_CTL_MINOR	0
#define RAW_MIN_MINORS	2
#define RAW_MAX_MINORS	65536

/**
 * struct raw_device - one raw minor
 * @bdev: the block device that it is bound to, 0 if none
 * @users: open files, and opens under way; @bdev stays while it is not 0
 *
 * Both change under raw_mutex only.  @bdev may be read without it.
 */
struct raw_device {
	dev_t		bdev;
	unsigned int	users;
};

static unsigned int max_raw_minors = CONFIG_MAX_RAW_DEVS;
module_param(max_raw_minors, uint, 0444);
MODULE_PARM_DESC(max_raw_minors,
		 "Number of raw minors, rawctl included (2-65536)");

static DEFINE_MUTEX(raw_mutex);
static struct raw_device *raw_devices;

/*
 * All raw opens claim their block device for this one holder.  So any number
 * of them can share a disk, but not with a mounted filesystem, swap, md or dm.
 */
static void *const raw_holder = &raw_devices;

static char *raw_devnode(const struct device *dev, umode_t *mode)
{
	return kasprintf(GFP_KERNEL, "raw/%s", dev_name(dev));
}

static const struct class raw_class = {
	.name		= "raw",
	.devnode	= raw_devnode,
};

static ssize_t binding_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	struct raw_device *raw = dev_get_drvdata(dev);
	/* not under raw_mutex: its holder may wait for us to remove the file */
	dev_t bdev = READ_ONCE(raw->bdev);

	return sysfs_emit(buf, "%u:%u\n", MAJOR(bdev), MINOR(bdev));
}
static DEVICE_ATTR_RO(binding);

static struct attribute *raw_attrs[] = {
	&dev_attr_binding.attr,
	NULL
};
ATTRIBUTE_GROUPS(raw);

/*
 * I/O on a bound raw device
 */

static blk_mode_t raw_blk_mode(const struct file *filp)
{
	blk_mode_t mode = 0;

	if (filp->f_mode & FMODE_READ)
		mode |= BLK_OPEN_READ;
	if (filp->f_mode & FMODE_WRITE)
		mode |= BLK_OPEN_WRITE;
	if (filp->f_flags & O_NDELAY)
		mode |= BLK_OPEN_NDELAY;
	return mode;
}

/* Give the raw file what an open of the block special file would have had. */
static void raw_adopt(struct file *filp, struct file *bdev_file)
{
	struct block_device *bdev = file_bdev(bdev_file);

	filp->private_data = bdev_file;
	filp->f_mapping = bdev_file->f_mapping;
	filp->f_wb_err = bdev_file->f_wb_err;
	filp->f_flags |= O_DIRECT | O_LARGEFILE;
	filp->f_mode |= bdev_file->f_mode & (FMODE_CAN_ODIRECT | FMODE_NOWAIT);
	if (bdev_can_atomic_write(bdev))
		filp->f_mode |= FMODE_CAN_ATOMIC_WRITE;
	if (blk_get_integrity(bdev->bd_disk))
		filp->f_mode |= FMODE_HAS_METADATA;
}

/* Keep the binding of @raw, for an open.  Returns the block device or 0. */
static dev_t raw_get(struct raw_device *raw)
{
	guard(mutex)(&raw_mutex);
	if (raw->bdev)
		raw->users++;
	return raw->bdev;
}

static void raw_put(struct raw_device *raw)
{
	guard(mutex)(&raw_mutex);
	raw->users--;
}

static int raw_open(struct inode *inode, struct file *filp)
{
	struct raw_device *raw = &raw_devices[iminor(inode)];
	blk_mode_t mode = raw_blk_mode(filp);
	struct file *bdev_file;
	dev_t dev;

	/* O_ACCMODE: ioctls only, a habit of floppy tools that raw never had */
	if (!(mode & (BLK_OPEN_READ | BLK_OPEN_WRITE)))
		return -EINVAL;

	dev = raw_get(raw);
	if (!dev)
		return -ENODEV;

	/* may wait long, for a medium or a module: not under raw_mutex */
	bdev_file = bdev_file_open_by_dev(dev, mode, raw_holder, NULL);
	if (IS_ERR(bdev_file)) {
		raw_put(raw);
		return PTR_ERR(bdev_file);
	}
	raw_adopt(filp, bdev_file);
	return 0;
}

static int raw_release(struct inode *inode, struct file *filp)
{
	struct file *bdev_file = filp->private_data;

	filp->f_mapping = inode->i_mapping;
	/* gives up the claim at once, so that a mount can follow close(2) */
	bdev_fput(bdev_file);
	raw_put(&raw_devices[iminor(inode)]);
	return 0;
}

static bool raw_disk_dead(struct file *bdev_file)
{
	return test_bit(GD_DEAD, &file_bdev(bdev_file)->bd_disk->state);
}

/*
 * A removed disk has size 0, so the block layer answers like at the end of the
 * device.  A copy that was cut off must not look complete: say EIO instead.
 */
static ssize_t raw_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *bdev_file = iocb->ki_filp->private_data;
	ssize_t ret;

	/* F_SETFL may have cleared O_DIRECT: it has no say here */
	iocb->ki_flags |= IOCB_DIRECT;
	ret = bdev_file->f_op->read_iter(iocb, to);
	if (unlikely(!ret) && iov_iter_count(to) && raw_disk_dead(bdev_file))
		ret = -EIO;
	return ret;
}

static ssize_t raw_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct file *bdev_file = iocb->ki_filp->private_data;
	ssize_t ret;

	iocb->ki_flags |= IOCB_DIRECT;
	ret = bdev_file->f_op->write_iter(iocb, from);
	if (unlikely(ret == -ENOSPC) && raw_disk_dead(bdev_file))
		ret = -EIO;
	return ret;
}

static loff_t raw_llseek(struct file *filp, loff_t offset, int whence)
{
	struct file *bdev_file = filp->private_data;

	return fixed_size_llseek(filp, offset, whence,
				 bdev_nr_bytes(file_bdev(bdev_file)));
}

static int raw_fsync(struct file *filp, loff_t start, loff_t end, int datasync)
{
	return vfs_fsync_range(filp->private_data, start, end, datasync);
}

static long raw_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct file *bdev_file = filp->private_data;

	return bdev_file->f_op->unlocked_ioctl(bdev_file, cmd, arg);
}

#ifdef CONFIG_COMPAT
static long raw_compat_ioctl(struct file *filp, unsigned int cmd,
			     unsigned long arg)
{
	struct file *bdev_file = filp->private_data;

	return bdev_file->f_op->compat_ioctl(bdev_file, cmd, arg);
}
#endif

static const struct file_operations raw_fops = {
	.owner		= THIS_MODULE,
	.open		= raw_open,
	.release	= raw_release,
	.llseek		= raw_llseek,
	.read_iter	= raw_read_iter,
	.write_iter	= raw_write_iter,
	.iopoll		= iocb_bio_iopoll,
	.fsync		= raw_fsync,
	.unlocked_ioctl	= raw_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl	= raw_compat_ioctl,
#endif
};

/*
 * Binding, through rawctl
 */

/*
 * A bound minor holds a reference on this module, since its binding would be
 * lost with it.  It holds none on the block device, which may come and go.
 */
static void raw_unbind(unsigned int minor)
{
	struct raw_device *raw = &raw_devices[minor];

	lockdep_assert_held(&raw_mutex);

	if (!raw->bdev)
		return;
	device_destroy(&raw_class, MKDEV(RAW_MAJOR, minor));
	WRITE_ONCE(raw->bdev, 0);
	module_put(THIS_MODULE);
}

/*
 * A minor that is bound anew gets a new device node, so that the owner and
 * mode which suited the old disk do not open the new one to anybody.
 */
static int raw_bind(unsigned int minor, dev_t bdev)
{
	struct raw_device *raw = &raw_devices[minor];
	struct device *dev;

	guard(mutex)(&raw_mutex);
	if (raw->users)
		return -EBUSY;

	raw_unbind(minor);
	if (!bdev)
		return 0;

	/* the attribute is read as soon as the device is there */
	__module_get(THIS_MODULE);
	WRITE_ONCE(raw->bdev, bdev);
	dev = device_create_with_groups(&raw_class, NULL,
					MKDEV(RAW_MAJOR, minor), raw,
					raw_groups, "raw%u", minor);
	if (IS_ERR(dev)) {
		WRITE_ONCE(raw->bdev, 0);
		module_put(THIS_MODULE);
		return PTR_ERR(dev);
	}
	return 0;
}

static int raw_set_binding(unsigned int minor,
			   const struct raw_config_request *rq)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (rq->block_major > MAJOR(~0U) || rq->block_minor > MINORMASK)
		return -EINVAL;
	/* no block device has major 0; 0, 0 unbinds */
	if (!rq->block_major && rq->block_minor)
		return -EINVAL;
	return raw_bind(minor, MKDEV(rq->block_major, rq->block_minor));
}

static int raw_configure(unsigned int cmd, struct raw_config_request *rq)
{
	unsigned int minor;
	dev_t bdev;

	if (rq->raw_minor <= RAW_CTL_MINOR || rq->raw_minor >= max_raw_minors)
		return -EINVAL;
	minor = array_index_nospec(rq->raw_minor, max_raw_minors);
	if (cmd == RAW_SETBIND)
		return raw_set_binding(minor, rq);

	bdev = READ_ONCE(raw_devices[minor].bdev);
	rq->block_major = MAJOR(bdev);
	rq->block_minor = MINOR(bdev);
	return 0;
}

static long raw_ctl_ioctl(struct file *filp, unsigned int cmd,
			  unsigned long arg)
{
	struct raw_config_request __user *urq = (void __user *)arg;
	struct raw_config_request rq;
	int err;

	if (cmd != RAW_SETBIND && cmd != RAW_GETBIND)
		return -ENOTTY;
	if (copy_from_user(&rq, urq, sizeof(rq)))
		return -EFAULT;
	err = raw_configure(cmd, &rq);
	if (!err && cmd == RAW_GETBIND && copy_to_user(urq, &rq, sizeof(rq)))
		err = -EFAULT;
	return err;
}

#ifdef CONFIG_COMPAT
/* Where 32-bit code aligns __u64 to four bytes, there is no padding. */
struct compat_raw_config_request {
	compat_int_t	raw_minor;
	compat_u64	block_major;
	compat_u64	block_minor;
};

static long raw_ctl_compat_ioctl(struct file *filp, unsigned int cmd,
				 unsigned long arg)
{
	struct compat_raw_config_request __user *urq = compat_ptr(arg);
	struct compat_raw_config_request crq;
	struct raw_config_request rq;
	int err;

	if (cmd != RAW_SETBIND && cmd != RAW_GETBIND)
		return -ENOTTY;
	if (copy_from_user(&crq, urq, sizeof(crq)))
		return -EFAULT;
	rq.raw_minor = crq.raw_minor;
	rq.block_major = crq.block_major;
	rq.block_minor = crq.block_minor;
	err = raw_configure(cmd, &rq);
	if (err || cmd != RAW_GETBIND)
		return err;
	crq.block_major = rq.block_major;
	crq.block_minor = rq.block_minor;
	return copy_to_user(urq, &crq, sizeof(crq)) ? -EFAULT : 0;
}
#endif

static const struct file_operations raw_ctl_fops = {
	.owner		= THIS_MODULE,
	.llseek		= noop_llseek,
	.unlocked_ioctl	= raw_ctl_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl	= raw_ctl_compat_ioctl,
#endif
};

/*
 * Load and unload
 */

static struct cdev raw_ctl_cdev;
static struct cdev raw_cdev;

static int __init raw_add_cdev(struct cdev *cdev,
			       const struct file_operations *fops,
			       unsigned int first, unsigned int count)
{
	cdev_init(cdev, fops);
	cdev->owner = THIS_MODULE;
	return cdev_add(cdev, MKDEV(RAW_MAJOR, first), count);
}

static int __init raw_init(void)
{
	const dev_t ctl = MKDEV(RAW_MAJOR, RAW_CTL_MINOR);
	struct device *dev;
	int err;

	if (max_raw_minors < RAW_MIN_MINORS || max_raw_minors > RAW_MAX_MINORS) {
		pr_warn("max_raw_minors=%u is not between %u and %u, using %u\n",
			max_raw_minors, RAW_MIN_MINORS, RAW_MAX_MINORS,
			CONFIG_MAX_RAW_DEVS);
		max_raw_minors = CONFIG_MAX_RAW_DEVS;
	}

	raw_devices = kvcalloc(max_raw_minors, sizeof(*raw_devices),
			       GFP_KERNEL);
	if (!raw_devices)
		return -ENOMEM;

	err = register_chrdev_region(ctl, max_raw_minors, "raw");
	if (err)
		goto free_devices;
	err = class_register(&raw_class);
	if (err)
		goto free_region;
	err = raw_add_cdev(&raw_cdev, &raw_fops, 1, max_raw_minors - 1);
	if (err)
		goto free_class;
	err = raw_add_cdev(&raw_ctl_cdev, &raw_ctl_fops, RAW_CTL_MINOR, 1);
	if (err)
		goto free_raw;
	dev = device_create(&raw_class, NULL, ctl, NULL, "rawctl");
	if (IS_ERR(dev)) {
		err = PTR_ERR(dev);
		goto free_ctl;
	}
	return 0;

free_ctl:
	cdev_del(&raw_ctl_cdev);
free_raw:
	cdev_del(&raw_cdev);
free_class:
	class_unregister(&raw_class);
free_region:
	unregister_chrdev_region(ctl, max_raw_minors);
free_devices:
	kvfree(raw_devices);
	return err;
}
module_init(raw_init);

/* Nothing is bound by now: a binding holds a module reference. */
static void __exit raw_exit(void)
{
	const dev_t ctl = MKDEV(RAW_MAJOR, RAW_CTL_MINOR);

	device_destroy(&raw_class, ctl);
	cdev_del(&raw_ctl_cdev);
	cdev_del(&raw_cdev);
	class_unregister(&raw_class);
	unregister_chrdev_region(ctl, max_raw_minors);
	kvfree(raw_devices);
}
module_exit(raw_exit);

MODULE_DESCRIPTION("Raw character devices for block devices");
MODULE_LICENSE("GPL");
MODULE_ALIAS_CHARDEV_MAJOR(RAW_MAJOR);
MODULE_ALIAS_CHARDEV(RAW_MAJOR, RAW_CTL_MINOR);
MODULE_ALIAS("devname:raw/rawctl");
