// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct I/O for everything that maps its blocks with a get_block.
 *
 * A request goes through four steps:
 *  - map: ask the filesystem where the next bytes are on disk, as a range;
 *  - build: pin user pages a batch at a time and gather them into a BIO, until
 *    the range breaks off, the BIO is full or the filesystem marked a boundary;
 *  - submit, and reap what has completed, so that a synchronous request keeps
 *    only so much memory pinned, however large it is;
 *  - complete: in process context if something is left to do that may sleep,
 *    else right where the last BIO ended.
 * Most requests are one range and one BIO, and take a short path of their own.
 */
#include <linux/bio-integrity.h>
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/fserror.h>
#include <linux/llist.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/workqueue.h>

#define DIO_INLINE_VECS	4	/* pages of a BIO that needs no allocation */
/* What a synchronous request may have pinned; a BIO's share lets it stream. */
#define DIO_MAX_PINNED	SZ_16M
#define DIO_MAX_BIO	SZ_4M

/* Private flags, above those that the caller of generic_direct_IO() passes. */
#define DIO_WRITE		BIT(16)	/* data goes to the disk */
#define DIO_USER		BIT(17)	/* pages are the user's: pinned */
#define DIO_ASYNC		BIT(18)	/* ends in ->ki_complete() */
#define DIO_MAPPED		BIT(19)	/* blocks come from a get_block */
#define DIO_COUNTED		BIT(20)	/* holds inode->i_dio_count */
#define DIO_DEFER		BIT(21)	/* completion may have to sleep */
#define DIO_SYNC		BIT(22)	/* O_DSYNC: flush when done */
#define DIO_WAIT		BIT(23)	/* async that turned out synchronous */

/* A request in flight, from its first BIO to its completion. */
struct dio {
	struct kiocb		*iocb;	/* its ki_pos stays put until the end */
	struct inode		*inode;
	dio_iodone_t		*end_io;
	void			*private;	/* get_block's b_private */
	size_t			size;	/* bytes submitted, or zeroed for a hole */
	size_t			limit;	/* no more than that: EOF in a block */
	unsigned int		flags;
	int			error;	/* the first one of any BIO */
	atomic_t		ref;	/* async stream: BIOs, and submitter */
	void			*waiter;	/* the task that submits */
	union {
		struct {		/* sync stream */
			struct llist_head	done;	/* BIOs to reap */
			size_t			pinned;	/* bytes not reaped */
			unsigned int		nr_bios;
		};
		struct work_struct		work;	/* async completion */
	};
};

/* A BIO of our pool, and what goes in its front pad. */
struct dio_bio {
	union {
		struct dio			dio;	/* its only BIO */
		struct {			/* one of a sync stream */
			struct llist_node	node;
			size_t			size;	/* bi_size is eaten up */
		};
	};
	struct bio		bio ____cacheline_aligned_in_smp;
};

/* A request while it is being submitted, on the stack. */
struct dio_submit {
	struct kiocb		*iocb;
	struct iov_iter		*iter;	/* memory for @pos to @end */
	struct inode		*inode;
	get_block_t		*get_block;	/* NULL: the disk itself */
	dio_iodone_t		*end_io;
	loff_t			pos;	/* next byte to map and submit */
	loff_t			end;	/* a whole logical block */
	size_t			limit;	/* of the result */
	unsigned int		flags;
	blk_opf_t		opf;
	struct block_device	*bdev;	/* the current range: its disk, */
	sector_t		sector;	/* where @pos is on it, */
	size_t			len;	/* bytes left, 0: map the next */
	struct bio		*bio;	/* being built, or NULL */
	struct buffer_head	map_bh;	/* the last mapping */
};

static struct bio_set dio_pool;

/* Reads into user memory dirty the pages that they fill. */
static inline bool dio_dirties(unsigned int flags)
{
	return (flags & (DIO_WRITE | DIO_USER)) == DIO_USER;
}

static inline unsigned int dio_block_mask(struct block_device *bdev)
{
	return bdev_logical_block_size(bdev) - 1;
}

/*
 * Ask the filesystem for the range at s->pos.  A hole comes back unmapped, and is
 * taken a block at a time: not every get_block says how long it is.
 */
static int dio_map_blocks(struct dio_submit *s)
{
	struct buffer_head *bh = &s->map_bh;
	unsigned int blkbits = s->inode->i_blkbits;
	unsigned int skip = s->pos & (i_blocksize(s->inode) - 1);
	sector_t first = s->pos >> blkbits;
	u64 blocks = ((s->end - 1) >> blkbits) - first + 1;
	bool create;
	int ret;

	/* inside i_size only if the filesystem can fill a hole */
	create = s->flags & DIO_WRITE && (s->flags & DIO_FILL_HOLES ||
		 s->pos >= round_up(i_size_read(s->inode), i_blocksize(s->inode)));
	bh->b_state = 0;
	bh->b_size = blocks << blkbits;
	ret = s->get_block(s->inode, first, bh, create);
	if (unlikely(ret))
		return ret;
	if (!buffer_mapped(bh)) {
		bh->b_size = i_blocksize(s->inode);
	} else {
		if (WARN_ON_ONCE(!bh->b_size))
			return -EIO;
		s->bdev = bh->b_bdev;
		s->sector = (bh->b_blocknr << (blkbits - SECTOR_SHIFT)) +
			    (skip >> SECTOR_SHIFT);
	}
	s->len = min_t(u64, bh->b_size - skip, s->end - s->pos);
	return 0;
}

/* Give back the last @nbytes that a BIO was given, pins and all. */
static void dio_bio_trim(struct bio *bio, struct iov_iter *iter, size_t nbytes)
{
	iov_iter_revert(iter, nbytes);
	bio->bi_iter.bi_size -= nbytes;

	while (nbytes) {
		struct bio_vec *bv = &bio->bi_io_vec[bio->bi_vcnt - 1];
		unsigned int end = bv->bv_offset + bv->bv_len, keep;
		unsigned int len = min_t(size_t, nbytes, bv->bv_len);

		nbytes -= len;
		bv->bv_len -= len;
		keep = bv->bv_len ? DIV_ROUND_UP(end - len, PAGE_SIZE) : 0;
		end = DIV_ROUND_UP(end, PAGE_SIZE);
		if (bio_flagged(bio, BIO_PAGE_PINNED))
			unpin_user_page_range_dirty_lock(bv->bv_page + keep, end - keep, false);
		bio->bi_vcnt -= !bv->bv_len;
	}
}

/* Memory that goes on in the same folio is one vec, however it was pinned. */
static void dio_bio_join(struct bio *bio, unsigned int at)
{
	struct bio_vec *next = &bio->bi_io_vec[at], *prev = next - 1;
	unsigned int end = prev->bv_offset + prev->bv_len;

	/* inside a page, both have it pinned */
	if (!PAGE_ALIGNED(end) || next->bv_offset ||
	    prev->bv_page + (end >> PAGE_SHIFT) != next->bv_page ||
	    page_folio(prev->bv_page) != page_folio(next->bv_page))
		return;
	prev->bv_len += next->bv_len;
	memmove(next, next + 1, (--bio->bi_vcnt - at) * sizeof(*next));
}

/*
 * Pin a batch of pages, as many as the BIO's table has room for, and add them.
 * Returns bytes added or an errno.
 */
static ssize_t dio_bio_add_batch(struct bio *bio, struct iov_iter *iter, size_t want)
{
	bool p2p = blk_queue_pci_p2pdma(bdev_get_queue(bio->bi_bdev));
	unsigned short at = bio->bi_vcnt;
	ssize_t size;

	size = iov_iter_extract_bvecs(iter, bio->bi_io_vec, want,
				      &bio->bi_vcnt, bio->bi_max_vecs, 0,
				      p2p ? ITER_ALLOW_P2PDMA : 0);
	if (unlikely(size <= 0))
		return size;
	bio->bi_iter.bi_size += size;
	if (unlikely(p2p && is_pci_p2pdma_page(bio->bi_io_vec->bv_page)))
		bio->bi_opf |= REQ_NOMERGE;
	if (at)
		dio_bio_join(bio, at);
	return size;
}

/*
 * Move up to @want bytes from the iterator into a BIO.  Returns bytes added, in
 * whole logical blocks; less than @want if the BIO is full or memory ends early;
 * 0 if the BIO was full before; or an errno.
 */
static ssize_t dio_bio_add(struct bio *bio, struct iov_iter *iter, size_t want)
{
	size_t done = 0, rest;
	ssize_t ret = 0;

	if (iov_iter_is_bvec(iter)) {
		/* it brings its own table: the BIO borrows a window of it */
		if (!bio->bi_iter.bi_size) {
			bio_iov_iter_set(bio, iter);
			bio->bi_iter.bi_size = 0;
		}
		bio->bi_iter.bi_size += want;
		iov_iter_advance(iter, want);
		return want;
	}

	if (user_backed_iter(iter))
		bio_set_flag(bio, BIO_PAGE_PINNED);
	while (done < want && bio->bi_vcnt < bio->bi_max_vecs) {
		ret = dio_bio_add_batch(bio, iter, want - done);
		if (unlikely(ret <= 0))
			break;
		done += ret;
	}
	if (likely(done == want))
		return done;
	rest = done & dio_block_mask(bio->bi_bdev);
	dio_bio_trim(bio, iter, rest);
	done -= rest;
	if (bio->bi_opf & REQ_ATOMIC) {
		bio_release_pages(bio, false);	/* whole or not at all */
		return -EFAULT;
	}
	if (done || ret < 0)
		return done ? done : ret;
	/* segments so small that the BIO can't hold one block of them */
	return bio->bi_vcnt ? 0 : -EINVAL;
}

/* Wait until somebody calls dio_wake() on *@waiter, which is us till then. */
static void dio_wait(void **waiter)
{
	/* pairs with dio_wake(): what the BIO brought is seen after it */
	while (smp_load_acquire(waiter)) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (READ_ONCE(*waiter))
			blk_io_schedule();
		__set_current_state(TASK_RUNNING);
	}
}

static void dio_wake(void **waiter)
{
	struct task_struct *task = *waiter;

	/* *waiter is on the task's stack; RCU keeps the task itself */
	rcu_read_lock();
	smp_store_release(waiter, NULL);	/* pairs with dio_wait() */
	blk_wake_io_task(task);
	rcu_read_unlock();
}

static __always_inline void dio_init(struct dio_submit *s, struct dio *dio)
{
	dio->iocb = s->iocb;
	dio->inode = s->inode;
	dio->end_io = s->end_io;
	s->end_io = NULL;	/* from here on it is for dio_complete() to call */
	dio->private = s->map_bh.b_private;
	dio->size = 0;
	dio->limit = s->limit;
	dio->flags = s->flags;
	dio->error = 0;
	if (s->flags & DIO_COUNTED)
		inode_dio_begin(s->inode);
}

/* The request's result, once all of its BIOs are through.  Drops i_dio_count. */
static __always_inline ssize_t dio_complete(struct dio *dio)
{
	struct kiocb *iocb = dio->iocb;
	ssize_t ret = dio->error;

	if (likely(!ret))
		ret = min(dio->size, dio->limit);
	else if (dio->flags & DIO_MAPPED && ret != -EAGAIN)
		fserror_report_io(dio->inode, dio->flags & DIO_WRITE ?
				  FSERR_DIRECTIO_WRITE : FSERR_DIRECTIO_READ,
				  iocb->ki_pos, dio->size, ret, GFP_NOFS);
	if (dio->end_io)
		ret = dio->end_io(iocb, iocb->ki_pos, ret, dio->private) ?: ret;
	/* before i_dio_count, which is what keeps truncate from the range */
	if (ret > 0 && (dio->flags & (DIO_WRITE | DIO_ASYNC | DIO_DEFER)) ==
	    (DIO_WRITE | DIO_ASYNC | DIO_DEFER))
		kiocb_invalidate_post_direct_write(iocb, ret);
	if (dio->flags & DIO_COUNTED)
		inode_dio_end(dio->inode);
	return ret;
}

/* Tell whoever queued the request.  @iocb is gone afterwards. */
static __always_inline void dio_complete_async(struct dio *dio)
{
	struct kiocb *iocb = dio->iocb;
	unsigned int flags = dio->flags;
	ssize_t ret = dio_complete(dio);

	if (ret > 0) {
		iocb->ki_pos += ret;
		if (flags & DIO_SYNC)
			ret = generic_write_sync(iocb, ret);
	}
	WRITE_ONCE(iocb->private, NULL);
	iocb->ki_complete(iocb, ret);
}

/*
 * Have the request completed in process context, if it needs that.  Apart from
 * what was known at submission: a filesystem's error is reported to its
 * watchers, and pages that were cached meanwhile over a write have to go.
 */
static __always_inline bool dio_defer(struct dio *dio, work_func_t fn)
{
	struct address_space *mapping = dio->iocb->ki_filp->f_mapping;
	loff_t pos = dio->iocb->ki_pos;

	if (!(dio->flags & DIO_DEFER) && !(dio->error && dio->flags & DIO_MAPPED) &&
	    !(dio->flags & DIO_WRITE && mapping->nrpages && dio->size &&
	      filemap_range_has_page(mapping, pos, pos + dio->size - 1)))
		return false;
	if (dio->error == -EAGAIN && !dio->end_io)
		return false;	/* io_uring tries again if it hears of it in its task */
	dio->flags |= DIO_DEFER;
	INIT_WORK(&dio->work, fn);
	queue_work(dio->inode->i_sb->s_dio_done_wq, &dio->work);
	return true;
}

/* Done with a BIO and its pages, in the submitting task or where it ended. */
static __always_inline void dio_bio_put(struct bio *bio, unsigned int flags, bool in_task)
{
	if (bio_integrity(bio))
		bio_integrity_unmap_user(bio);
	if (dio_dirties(flags) && !in_task) {
		bio_check_pages_dirty(bio);
	} else {
		bio_release_pages(bio, dio_dirties(flags));
		bio_put(bio);
	}
}

/* The last touch before submission. */
static __always_inline void dio_bio_ready(struct dio_submit *s, struct bio *bio)
{
	struct kiocb *iocb = s->iocb;

	bio->bi_write_hint = file_inode(iocb->ki_filp)->i_write_hint;
	bio->bi_write_stream = iocb->ki_write_stream;
	bio->bi_ioprio = iocb->ki_ioprio;
	if (s->flags & DIO_WRITE)
		task_io_account_write(bio->bi_iter.bi_size);
}

/* One range, one BIO, synchronous: nothing is allocated, nothing shared. */
static void dio_one_sync_end_io(struct bio *bio)
{
	dio_wake(&bio->bi_private);
}

static noinline ssize_t dio_one_sync(struct dio_submit *s, unsigned int nr_vecs)
{
	struct bio_vec inline_vecs[DIO_INLINE_VECS] __uninitialized;
	struct bio_vec *vecs = inline_vecs;
	struct dio dio __uninitialized;
	struct bio bio __uninitialized;
	ssize_t ret;

	if (nr_vecs > DIO_INLINE_VECS) {
		vecs = kmalloc_array(nr_vecs, sizeof(*vecs), GFP_KERNEL);
		if (!vecs)
			return -ENOMEM;
	}
	dio_init(s, &dio);
	bio_init(&bio, s->bdev, vecs, nr_vecs, s->opf);
	bio.bi_iter.bi_sector = s->sector;
	ret = dio_bio_add(&bio, s->iter, s->end - s->pos);
	if (likely(ret > 0)) {
		dio.size = ret;
		dio_bio_ready(s, &bio);
		bio.bi_private = current;
		bio.bi_end_io = dio_one_sync_end_io;
		submit_bio(&bio);
		dio_wait(&bio.bi_private);
		bio_release_pages(&bio, dio_dirties(s->flags));
		ret = blk_status_to_errno(bio.bi_status);
	}
	dio.error = ret;
	bio_uninit(&bio);
	if (vecs != inline_vecs)
		kfree(vecs);
	return dio_complete(&dio);
}

/* One range, one BIO, asynchronous: our state is in the BIO's front pad. */
static __always_inline void dio_one_async_work(struct work_struct *work)
{
	struct dio *dio = container_of(work, struct dio, work);
	struct bio *bio = &container_of(dio, struct dio_bio, dio)->bio;
	unsigned int flags = dio->flags;

	dio_complete_async(dio);
	dio_bio_put(bio, flags, false);
}

static void dio_one_async_end_io(struct bio *bio)
{
	struct dio *dio = &container_of(bio, struct dio_bio, bio)->dio;
	struct kiocb *iocb = dio->iocb;
	unsigned int flags = dio->flags;

	if (unlikely(bio->bi_status))
		dio->error = blk_status_to_errno(bio->bi_status);
	if (likely(!(flags & (DIO_WRITE | DIO_MAPPED)) && !dio->error)) {
		/* a read of the disk itself: the same as below, cut short */
		iocb->ki_pos += dio->size;
		WRITE_ONCE(iocb->private, NULL);
		iocb->ki_complete(iocb, dio->size);
		dio_bio_put(bio, flags, false);
	} else if (!dio_defer(dio, dio_one_async_work)) {
		dio_one_async_work(&dio->work);
	}
}

static __always_inline ssize_t dio_one_async(struct dio_submit *s, unsigned int nr_vecs)
{
	struct kiocb *iocb = s->iocb;
	struct bio *bio;
	struct dio *dio;
	ssize_t size = s->end - s->pos;

	bio = bio_alloc_bioset(s->bdev, nr_vecs, s->opf,
			       iocb->ki_flags & IOCB_NOWAIT ? GFP_NOWAIT :
			       GFP_KERNEL, &dio_pool);
	if (unlikely(!bio))
		return -EAGAIN;
	bio->bi_iter.bi_sector = s->sector;
	/* nobody looks at the iterator of a request that was queued */
	if (iov_iter_is_bvec(s->iter)) {
		bio_iov_iter_set(bio, s->iter);
	} else {
		size = dio_bio_add(bio, s->iter, size);
		if (unlikely(size <= 0)) {
			bio_put(bio);
			return size;
		}
	}

	dio = &container_of(bio, struct dio_bio, bio)->dio;
	dio_init(s, dio);
	dio->size = size;
	if (dio_dirties(s->flags))
		bio_set_pages_dirty(bio);
	dio_bio_ready(s, bio);
	bio->bi_end_io = dio_one_async_end_io;
	if (iocb->ki_flags & IOCB_HIPRI) {
		bio->bi_opf |= REQ_POLLED;
		WRITE_ONCE(iocb->private, bio);
	}
	submit_bio(bio);
	return -EIOCBQUEUED;
}

/*
 * All else is a stream of BIOs: more than one range or BIO, holes, new blocks,
 * integrity metadata.  What has ended of a synchronous one is left to be reaped.
 */
static void dio_stream_sync_end_io(struct bio *bio)
{
	struct dio_bio *db = container_of(bio, struct dio_bio, bio);
	struct dio *dio = bio->bi_private;
	struct task_struct *waiter = dio->waiter;

	/* once it is listed, the submitter may be done with it all */
	rcu_read_lock();
	llist_add(&db->node, &dio->done);
	blk_wake_io_task(waiter);
	rcu_read_unlock();
}

/* Take in every BIO that has completed; wait until there is one. */
static void dio_reap(struct dio *dio)
{
	struct dio_bio *db, *next;

	while (llist_empty(&dio->done)) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (llist_empty(&dio->done))
			blk_io_schedule();
		__set_current_state(TASK_RUNNING);
	}
	llist_for_each_entry_safe(db, next, llist_del_all(&dio->done), node) {
		if (unlikely(db->bio.bi_status && !dio->error))
			dio->error = blk_status_to_errno(db->bio.bi_status);
		dio->pinned -= db->size;
		dio->nr_bios--;
		dio_bio_put(&db->bio, dio->flags, true);
	}
}

/* The last BIO of an asynchronous stream, or its submitter, is through. */
static void dio_stream_work(struct work_struct *work)
{
	struct dio *dio = container_of(work, struct dio, work);

	dio_complete_async(dio);
	kfree(dio);
}

static void dio_stream_async_end_io(struct bio *bio)
{
	struct dio *dio = bio->bi_private;

	if (unlikely(bio->bi_status))
		cmpxchg(&dio->error, 0, blk_status_to_errno(bio->bi_status));
	dio_bio_put(bio, dio->flags, false);
	if (!atomic_dec_and_test(&dio->ref))
		return;
	if (dio->flags & DIO_WAIT)
		dio_wake(&dio->waiter);
	else if (!dio_defer(dio, dio_stream_work))
		dio_stream_work(&dio->work);
}

/* Send off the BIO that was built. */
static void dio_stream_submit(struct dio_submit *s, struct dio *dio)
{
	struct bio *bio = s->bio;
	struct dio_bio *db = container_of(bio, struct dio_bio, bio);

	s->bio = NULL;
	bio->bi_private = dio;
	dio_bio_ready(s, bio);
	if (dio->flags & DIO_ASYNC) {
		bio->bi_end_io = dio_stream_async_end_io;
		if (dio_dirties(s->flags))
			bio_set_pages_dirty(bio);
		atomic_inc(&dio->ref);
	} else {
		bio->bi_end_io = dio_stream_sync_end_io;
		db->size = bio->bi_iter.bi_size;
		dio->pinned += db->size;
		dio->nr_bios++;
	}
	submit_bio(bio);
}

/*
 * A new BIO.  The pool guarantees one at a time, and those of a synchronous request
 * come back only by our reaping them: never sleep for memory while there are any.
 */
static struct bio *dio_stream_alloc(struct dio_submit *s, struct dio *dio, unsigned int nr_vecs)
{
	struct bio *bio;

	if (!(dio->flags & DIO_ASYNC)) {
		while (!llist_empty(&dio->done) || dio->pinned > DIO_MAX_PINNED - DIO_MAX_BIO)
			dio_reap(dio);
		while (dio->nr_bios) {
			bio = bio_alloc_bioset(s->bdev, nr_vecs, s->opf,
					       GFP_NOWAIT, &dio_pool);
			if (likely(bio))
				return bio;
			dio_reap(dio);
		}
	}
	return bio_alloc_bioset(s->bdev, nr_vecs, s->opf, GFP_KERNEL, &dio_pool);
}

/* Zero @len bytes of disk at @sector: the unwritten part of new blocks. */
static void dio_zero_disk(struct dio_submit *s, struct dio *dio, sector_t sector, size_t len)
{
	unsigned int n, pages;

	while (len) {
		if (s->bio)
			dio_stream_submit(s, dio);
		pages = bio_max_segs(DIV_ROUND_UP(len, PAGE_SIZE));
		s->bio = dio_stream_alloc(s, dio, pages);
		s->bio->bi_iter.bi_sector = sector;
		for (; pages; pages--, len -= n, sector += n >> SECTOR_SHIFT) {
			n = min_t(size_t, len, PAGE_SIZE);
			__bio_add_page(s->bio, ZERO_PAGE(0), n, 0);
		}
		dio_stream_submit(s, dio);
	}
}

/* Were the blocks of the current range just allocated? */
static bool dio_is_new(struct dio_submit *s)
{
	return s->get_block && s->flags & DIO_WRITE &&
		buffer_mapped(&s->map_bh) && buffer_new(&s->map_bh);
}

/* What a fresh mapping asks for; stale copies of new blocks are forgotten. */
static void dio_stream_mapped(struct dio_submit *s, struct dio *dio)
{
	struct buffer_head *bh = &s->map_bh;
	unsigned int skip = s->pos & (i_blocksize(s->inode) - 1);

	if (buffer_defer_completion(bh))
		dio->flags |= DIO_DEFER;
	if (!dio_is_new(s))
		return;
	if (IS_ENABLED(CONFIG_BUFFER_HEAD))
		clean_bdev_aliases(bh->b_bdev, bh->b_blocknr,
				   bh->b_size >> s->inode->i_blkbits);
	dio_zero_disk(s, dio, s->sector - (skip >> SECTOR_SHIFT), skip);
}

static void dio_stream_advance(struct dio_submit *s, struct dio *dio, size_t n)
{
	s->pos += n;
	s->len -= n;
	s->sector += n >> SECTOR_SHIFT;
	dio->size += n;
}

/* A hole reads as zeroes; writing into one is for the page cache to do. */
static int dio_stream_hole(struct dio_submit *s, struct dio *dio)
{
	size_t n, rest;

	if (s->flags & DIO_WRITE)
		return -ENOTBLK;
	if (s->bio)
		dio_stream_submit(s, dio);
	n = iov_iter_zero(s->len, s->iter);
	rest = n & dio_block_mask(s->bdev);
	iov_iter_revert(s->iter, rest);
	dio_stream_advance(s, dio, n - rest);
	return s->len ? -EFAULT : 0;
}

/* Put as much of the current range into a BIO as it takes. */
static int dio_stream_fill(struct dio_submit *s, struct dio *dio)
{
	size_t want;
	ssize_t n;
	int err;

	if (s->bio && (bio_end_sector(s->bio) != s->sector || s->bio->bi_bdev != s->bdev))
		dio_stream_submit(s, dio);
	if (!s->bio) {
		s->bio = dio_stream_alloc(s, dio, bio_iov_vecs_to_alloc(s->iter, BIO_MAX_VECS));
		s->bio->bi_iter.bi_sector = s->sector;
	}

	want = min_t(size_t, s->len, DIO_MAX_BIO - s->bio->bi_iter.bi_size);
	n = dio_bio_add(s->bio, s->iter, want);
	if (n <= 0) {
		if (!s->bio->bi_iter.bi_size) {
			bio_put(s->bio);
			s->bio = NULL;
		} else {
			dio_stream_submit(s, dio);
		}
		return n;
	}
	if (s->iocb->ki_flags & IOCB_HAS_METADATA) {
		err = bio_integrity_map_iter(s->bio, s->iocb->private);
		if (err) {
			dio_bio_put(s->bio, 0, true);
			s->bio = NULL;
			return err;
		}
	}
	dio_stream_advance(s, dio, n);
	/* at a boundary, the filesystem says, a metadata read comes next */
	if (n < want || s->bio->bi_iter.bi_size == DIO_MAX_BIO ||
	    (!s->len && s->get_block && buffer_boundary(&s->map_bh)) ||
	    s->iocb->ki_flags & IOCB_HAS_METADATA)
		dio_stream_submit(s, dio);
	return 0;
}

/* Submit the whole request.  Returns what stopped it short, or 0. */
static int dio_stream_run(struct dio_submit *s, struct dio *dio)
{
	struct blk_plug plug;
	int ret = 0;
	loff_t new;

	blk_start_plug(&plug);
	if (s->get_block)
		dio_stream_mapped(s, dio);	/* it was to choose the path */
	while (!ret && s->pos < s->end && !READ_ONCE(dio->error)) {
		if (!s->len) {
			ret = dio_map_blocks(s);
			dio->private = s->map_bh.b_private;
			if (ret)
				break;
			dio_stream_mapped(s, dio);
		}
		if (fatal_signal_pending(current))
			ret = -EINTR;
		else if (s->get_block && !buffer_mapped(&s->map_bh))
			ret = dio_stream_hole(s, dio);
		else
			ret = dio_stream_fill(s, dio);
	}
	if (s->bio)
		dio_stream_submit(s, dio);
	/* the rest of the last new block, or of all: only beyond i_size they are freed */
	new = s->pos + (s->flags & DIO_FILL_HOLES ? s->len : 0);
	if (dio_is_new(s))
		dio_zero_disk(s, dio, s->sector, round_up(new, i_blocksize(s->inode)) - s->pos);
	blk_finish_plug(&plug);
	return ret;
}

/*
 * Once our reference to an asynchronous @dio is dropped it is gone: completed by
 * us or the last BIO.  Unless it came out short: the caller has to know by what.
 */
static ssize_t dio_stream(struct dio_submit *s)
{
	bool async = s->flags & DIO_ASYNC;
	struct dio *dio = kzalloc_obj(*dio);
	ssize_t ret;

	if (!dio)
		return -ENOMEM;
	dio_init(s, dio);
	dio->waiter = current;
	atomic_set(&dio->ref, 1);
	ret = dio_stream_run(s, dio);
	if (async && !ret) {
		if (atomic_dec_and_test(&dio->ref)) {
			dio->flags |= DIO_DEFER;	/* here we may sleep */
			dio_stream_work(&dio->work);
		}
		return -EIOCBQUEUED;
	}

	dio->flags |= DIO_WAIT;
	if (async && !atomic_dec_and_test(&dio->ref))
		dio_wait(&dio->waiter);
	while (!async && dio->nr_bios)
		dio_reap(dio);
	/* what stopped us counts only if nothing was transferred */
	if (ret != -ENOTBLK && (!dio->size || ret == -EINTR))
		cmpxchg(&dio->error, 0, ret);
	ret = dio_complete(dio);
	kfree(dio);
	return ret;
}

/*
 * Position and length are held to the logical block size, memory to what the
 * device can address.  A bvec iterator comes from the kernel, or is a buffer
 * that io_uring registered: only its first segment can be off.
 */
static __always_inline bool dio_aligned(const struct kiocb *iocb, const struct iov_iter *iter,
					struct block_device *bdev)
{
	unsigned long mem;

	if (iter_is_ubuf(iter))
		mem = ((unsigned long)iter->ubuf + iter->iov_offset) | iov_iter_count(iter);
	else if (iov_iter_is_bvec(iter))
		mem = iter->bvec->bv_offset + iter->iov_offset;
	else
		mem = iov_iter_alignment(iter);
	return !((iocb->ki_pos | iov_iter_count(iter)) & dio_block_mask(bdev)) &&
		!(mem & bdev_dma_alignment(bdev));
}

/*
 * What holds for the whole request.  A write that moves i_size is synchronous, so
 * that nobody can read what was on the disk before.
 */
static __always_inline void dio_resolve(struct dio_submit *s)
{
	struct kiocb *iocb = s->iocb;

	/* who would hear of -EAGAIN in a worker can't try again: see dio_defer() */
	s->opf = REQ_OP_READ | (iocb->ki_flags & IOCB_NOWAIT && !s->end_io ? REQ_NOWAIT : 0);
	if (user_backed_iter(s->iter))
		s->flags |= DIO_USER;
	if (iocb->ki_complete && !(s->flags & DIO_FORCE_WAIT))
		s->flags |= DIO_ASYNC;
	if (iov_iter_rw(s->iter) == READ)
		return;

	s->flags |= DIO_WRITE;
	s->opf |= REQ_OP_WRITE | REQ_SYNC | REQ_IDLE;
	if (iocb->ki_flags & IOCB_ATOMIC)
		s->opf |= REQ_ATOMIC;
	if (s->get_block && s->end > i_size_read(s->inode))
		s->flags &= ~DIO_ASYNC;
	if (!iocb_is_dsync(iocb))
		return;
	if (s->flags & DIO_WRITE_THROUGH)
		s->opf |= REQ_FUA;
	else if (s->flags & DIO_ASYNC)
		s->flags |= DIO_SYNC | DIO_DEFER;
}

/* Fill in *@s.  Returns 1 to go on, 0 or an errno to end here. */
static __always_inline int
dio_begin(struct dio_submit *s, struct kiocb *iocb, struct iov_iter *iter,
	  struct inode *inode, struct block_device *bdev, get_block_t *get_block,
	  dio_iodone_t *end_io, unsigned int flags)
{
	if (unlikely(!iov_iter_count(iter)))
		return 0;
	if (unlikely(!dio_aligned(iocb, iter, bdev)))
		return -EINVAL;

	s->iocb = iocb;
	s->iter = iter;
	s->inode = inode;
	s->get_block = get_block;
	s->end_io = end_io;
	s->pos = iocb->ki_pos;
	s->limit = iov_iter_count(iter);
	s->end = s->pos + s->limit;
	s->flags = flags;
	s->bdev = bdev;
	s->sector = s->pos >> SECTOR_SHIFT;
	s->len = s->limit;
	s->bio = NULL;
	s->map_bh.b_private = NULL;
	dio_resolve(s);
	if (s->flags & DIO_ASYNC && (get_block || s->flags & DIO_WRITE) &&
	    unlikely(!inode->i_sb->s_dio_done_wq))
		return sb_init_dio_done_wq(inode->i_sb) ?: 1;
	return 1;
}

/* How many vecs a request needs that is one range and one BIO; -1: it is not. */
static __always_inline int dio_one_vecs(const struct dio_submit *s)
{
	int nr_vecs;

	if (s->len < s->end - s->pos || s->iocb->ki_flags & IOCB_HAS_METADATA)
		return -1;
	nr_vecs = bio_iov_vecs_to_alloc(s->iter, BIO_MAX_VECS + 1);
	return likely(nr_vecs <= BIO_MAX_VECS) ? nr_vecs : -1;
}

/* One range and one BIO, or a stream of them? */
static __always_inline ssize_t dio_submit(struct dio_submit *s)
{
	struct kiocb *iocb = s->iocb;
	int nr_vecs = -1;

	if (!s->get_block || (buffer_mapped(&s->map_bh) && !buffer_new(&s->map_bh) &&
			      !buffer_defer_completion(&s->map_bh)))
		nr_vecs = dio_one_vecs(s);
	if (likely(nr_vecs >= 0))
		return s->flags & DIO_ASYNC ? dio_one_async(s, nr_vecs) :
					      dio_one_sync(s, nr_vecs);
	if (iocb->ki_flags & IOCB_ATOMIC)
		return -EINVAL;
	/* polling needs ->private for the BIO, metadata has something there */
	if ((iocb->ki_flags & IOCB_HIPRI) && (iocb->ki_flags & IOCB_HAS_METADATA))
		return -EOPNOTSUPP;
	/* one of several BIOs that would block fails them all: start over */
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	return dio_stream(s);
}

/*
 * On a file, reads end at EOF, though its last block is read whole.  The first
 * range decides how to go on.  Returns 1 to do so, 0 or an errno to end here.
 */
static int dio_file(struct dio_submit *s)
{
	loff_t i_size = i_size_read(s->inode);
	int ret;

	if (!(s->flags & DIO_WRITE) && s->end > i_size) {
		if (s->pos >= i_size)
			return 0;
		s->limit = i_size - s->pos;
		s->end = s->pos + ALIGN(s->limit, dio_block_mask(s->bdev) + 1);
		iov_iter_truncate(s->iter, s->end - s->pos);
	}
	if (s->end_io)
		s->flags |= DIO_DEFER;
	if (s->flags & DIO_ASYNC)
		s->flags |= DIO_COUNTED;
	ret = dio_map_blocks(s);
	return ret == -ENOTBLK ? 0 : ret ?: 1;
}

static noinline ssize_t dio_any(struct kiocb *iocb, struct iov_iter *iter,
				struct inode *inode, struct block_device *bdev,
				get_block_t *get_block, dio_iodone_t *end_io, unsigned int flags)
{
	struct dio_submit s __uninitialized;
	size_t count = iov_iter_count(iter);
	ssize_t ret;

	ret = dio_begin(&s, iocb, iter, inode, bdev, get_block, end_io, flags);
	if (unlikely(ret <= 0))
		return ret;
	if (!get_block)
		return dio_submit(&s);

	s.flags |= DIO_MAPPED;
	memset(&s.map_bh, 0, offsetof(struct buffer_head, b_assoc_buffers));
	if (!(flags & DIO_HELD))
		inode_dio_begin(inode);	/* nothing else keeps truncate from what we map */
	ret = dio_file(&s);
	if (likely(ret > 0))
		ret = dio_submit(&s);
	if (!(flags & DIO_HELD))
		inode_dio_end(inode);
	/* nothing was started; only ->end_io() knows what get_block left */
	if (unlikely(s.end_io && s.map_bh.b_private))
		s.end_io(iocb, s.pos, ret, s.map_bh.b_private);
	/* give back what a read beyond EOF was cut by */
	if (unlikely(s.limit < count) && ret != -EIOCBQUEUED)
		iov_iter_reexpand(iter, iov_iter_count(iter) + count -
				  ALIGN(s.limit, dio_block_mask(bdev) + 1));
	return ret;
}

/* What a disk gets most.  No function sees @s: the compiler has it in registers. */
static noinline ssize_t dio_disk_async(struct kiocb *iocb, struct iov_iter *iter,
				       struct inode *inode, struct block_device *bdev,
				       unsigned int flags)
{
	struct dio_submit s __uninitialized;
	int ret = dio_begin(&s, iocb, iter, inode, bdev, NULL, NULL, flags & DIO_WRITE_THROUGH);

	if (unlikely(ret <= 0))
		return ret;
	ret = dio_one_vecs(&s);
	if (likely(ret >= 0))
		return dio_one_async(&s, ret);
	return dio_any(iocb, iter, inode, bdev, NULL, NULL, flags);
}

/**
 * generic_direct_IO - read or write between user memory and a disk
 * @iocb:	position, flags and, if asynchronous, whom to tell
 * @iter:	the memory, its length and the direction
 * @inode:	the file; or the block device's own inode
 * @bdev:	the disk, whose logical block size and DMA alignment hold
 * @get_block:	finds a file's blocks: asked for all bytes that are left (b_size),
 *		it maps as many as are contiguous, and they are used whole.
 *		Unmapped is a hole.  NULL: @inode is @bdev's
 * @end_io:	called in process context when all is on disk, or NULL: bytes
 *		done or errno in, 0 or the errno to return instead out.  If
 *		nothing was begun, only to free what @get_block put in b_private
 * @flags:	%DIO_HELD: the caller holds i_rwsem, at least shared, until we
 *		return.  %DIO_FILL_HOLES: @get_block may allocate inside i_size.
 *		%DIO_FORCE_WAIT: don't queue, return when done.
 *		%DIO_WRITE_THROUGH: O_DSYNC is about the data alone: use FUA
 *
 * Page cache over the range has been written back and, for a write, dropped: see
 * generic_file_direct_IO().  What keeps truncate away is the caller's lock, or
 * i_dio_count, which asynchronous requests hold until the end.  At most 16 MiB
 * (DIO_MAX_PINNED) of a synchronous request are pinned at a time.  A write beyond
 * i_size is synchronous; the caller moves i_size, and frees blocks not written.
 *
 * Context: process context, may sleep, unless %IOCB_NOWAIT.
 * Return: bytes transferred, for the caller to add to ki_pos (the iterator may
 * be ahead).  Less than asked: EOF, bad memory, no space, or a write into a hole
 * (0 if that comes first), the rest of which is for the page cache.  -EIOCBQUEUED:
 * ->ki_complete() tells.  -EINVAL: not aligned; -EFAULT: no such memory; -EAGAIN:
 * would sleep; -EINTR: killed; else what @get_block, @end_io or the disk says.
 */
ssize_t generic_direct_IO(struct kiocb *iocb, struct iov_iter *iter,
			  struct inode *inode, struct block_device *bdev,
			  get_block_t *get_block, dio_iodone_t *end_io, unsigned int flags)
{
	if (!get_block && iocb->ki_complete)
		return dio_disk_async(iocb, iter, inode, bdev, flags);
	return dio_any(iocb, iter, inode, bdev, get_block, end_io, flags);
}
EXPORT_SYMBOL_GPL(generic_direct_IO);

static int __init dio_pool_init(void)
{
	return bioset_init(&dio_pool, BIO_POOL_SIZE, offsetof(struct dio_bio, bio),
			   BIOSET_NEED_BVECS | BIOSET_PERCPU_CACHE);
}
fs_initcall(dio_pool_init);
