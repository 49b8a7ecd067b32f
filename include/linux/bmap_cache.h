/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _LINUX_BMAP_CACHE_H
#define _LINUX_BMAP_CACHE_H

#include <linux/atomic.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

/**
 * struct bmap_cache - where blocks of a file are on disk, as far as we know
 * @table:	the ranges; NULL until there is one to remember
 *
 * See the DOC comment in fs/bmap-cache.c.
 */
struct bmap_cache {
	struct bmap_table __rcu *table;
};

/*
 * One range for each window of 1 << @shift blocks, packed so that it is read and
 * written at once: where it starts in the window, how long it is, where its
 * first block is on disk.
 */
struct bmap_table {
	struct rcu_head	rcu;
	unsigned int	shift;
	unsigned int	nr;
	unsigned int	misses;
	atomic64_t	ranges[] __counted_by(nr);
};

#define BMAP_CACHE_MAX_SHIFT	15	/* a start and a length are 16 bits */

static inline u64 bmap_range(u32 disk, unsigned int start, unsigned int len)
{
	return (u64)disk << 32 | start << 16 | len;
}

static inline u32 bmap_range_disk(u64 range)
{
	return range >> 32;
}

static inline unsigned int bmap_range_start(u64 range)
{
	return (range >> 16) & 0xffff;
}

static inline unsigned int bmap_range_len(u64 range)
{
	return range & 0xffff;
}

/**
 * bmap_cache_init - nothing is known of a new inode's blocks
 * @cache:	the inode's
 */
static inline void bmap_cache_init(struct bmap_cache *cache)
{
	RCU_INIT_POINTER(cache->table, NULL);
}

/**
 * bmap_cache_lookup - where on disk is a block, if we know?
 * @cache:	the inode's
 * @block:	number of the block in the file
 * @disk:	receives its number on the disk
 *
 * Context: what keeps the file's blocks from being freed or moved is held.
 * Return: how many blocks, from @block on, are contiguous on disk; 0 if this is
 * not known, which does not make it a hole.
 */
static inline unsigned int bmap_cache_lookup(struct bmap_cache *cache, u64 block,
					     u32 *disk)
{
	unsigned int at, len = 0;
	struct bmap_table *table;
	u64 range;

	rcu_read_lock();
	table = rcu_dereference(cache->table);
	if (table && block >> table->shift < table->nr) {
		range = atomic64_read(&table->ranges[block >> table->shift]);
		at = (block & ((1U << table->shift) - 1)) - bmap_range_start(range);
		if (at < bmap_range_len(range)) {
			len = bmap_range_len(range) - at;
			*disk = bmap_range_disk(range) + at;
		}
	}
	rcu_read_unlock();
	return len;
}

bool bmap_cache_go_on(struct bmap_cache *cache);
void bmap_cache_insert(struct bmap_cache *cache, unsigned int shift, u64 nr_blocks,
		       u64 block, u32 disk, unsigned int len, gfp_t gfp);
void bmap_cache_drop(struct bmap_cache *cache);

#endif /* _LINUX_BMAP_CACHE_H */
