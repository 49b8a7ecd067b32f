// SPDX-License-Identifier: GPL-2.0-only
/*
 * Remembers where blocks of a file are on disk.
 */
#include <linux/bmap_cache.h>
#include <linux/export.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>

/**
 * DOC: Remembered block mappings
 *
 * To look a block up in an indirect block or a cluster chain takes hundreds of
 * instructions, as much as a good part of a small direct read, and comes out the
 * same again and again: blocks of a file stay where they are until they are
 * freed.  So whoever looked something up tells it to the inode's cache, and asks
 * there first.
 *
 * The file is cut into windows of a fixed size, for ext2 what one indirect block
 * maps.  Of each window the longest range that is known to be contiguous is
 * remembered, in eight bytes.  That is the whole window for a file that was laid
 * out well, and some of it for a fragmented one.  Only what is mapped is
 * remembered: a hole may be filled at any time.
 *
 * Reads at random, each of a few blocks, would take long to find out about a
 * window that way, and to go on through the whole window each time would be too
 * dear where it is fragmented and half the lookups come to nothing.  So one miss
 * in some goes on.
 *
 * Nothing in here waits for anybody.  Lookup and insertion are called with what
 * keeps the blocks from being freed, for ext2 i_rwsem, at least shared; whoever
 * frees blocks holds it exclusively and drops all that is known of the file.  A
 * table too small for a file that has grown is replaced; an insertion lost with
 * the old one is made again by the next lookup.
 */

/* Largest table: 1 MiB, for 512 GiB of an ext2 file with 4 KiB blocks. */
#define BMAP_CACHE_MAX_NR	131072

/* One miss out of so many, a power of 2, goes on beyond what is wanted. */
#define BMAP_CACHE_GO_ON	8

/* Both ranges as one if they touch and go on from each other on disk, else @b. */
static u64 bmap_range_join(u64 a, u64 b)
{
	unsigned int start = min(bmap_range_start(a), bmap_range_start(b));
	unsigned int a_end = bmap_range_start(a) + bmap_range_len(a);
	unsigned int b_end = bmap_range_start(b) + bmap_range_len(b);
	bool touch = bmap_range_start(a) <= b_end && bmap_range_start(b) <= a_end;

	if (!touch || bmap_range_disk(a) - bmap_range_start(a) !=
		      bmap_range_disk(b) - bmap_range_start(b))
		return b;
	return bmap_range(bmap_range_disk(a) - bmap_range_start(a) + start, start,
			  max(a_end, b_end) - start);
}

/* See to it that the table has room for @nr windows, if it can be had. */
static void bmap_cache_grow(struct bmap_cache *cache, unsigned int shift, u64 nr,
			    gfp_t gfp)
{
	struct bmap_table *old, *table;

	rcu_read_lock();
	old = rcu_dereference(cache->table);
	if (old && old->nr >= nr)
		nr = 0;
	rcu_read_unlock();
	if (!nr || nr > BMAP_CACHE_MAX_NR)
		return;

	/* files grow: do not start anew for each window */
	nr = roundup_pow_of_two(nr);
	table = kvzalloc(struct_size(table, ranges, nr), gfp | __GFP_NOWARN);
	if (!table)
		return;
	table->shift = shift;
	table->nr = nr;
	/* pairs with rcu_dereference(); somebody may have been faster */
	if (unrcu_pointer(cmpxchg(&cache->table, RCU_INITIALIZER(old),
				  RCU_INITIALIZER(table))) != old)
		kvfree(table);
	else if (old)
		kvfree_rcu(old, rcu);
}

/**
 * bmap_cache_go_on - is a lookup to go on beyond the blocks that are wanted?
 * @cache:	the inode's, which did not know them
 *
 * Return: true if as much of the window as is contiguous should be inserted.
 */
bool bmap_cache_go_on(struct bmap_cache *cache)
{
	struct bmap_table *table;
	unsigned int misses = 0;

	rcu_read_lock();
	table = rcu_dereference(cache->table);
	if (table) {
		/* that some are lost is no harm */
		misses = READ_ONCE(table->misses) + 1;
		WRITE_ONCE(table->misses, misses);
	}
	rcu_read_unlock();
	return !(misses & (BMAP_CACHE_GO_ON - 1));
}
EXPORT_SYMBOL_GPL(bmap_cache_go_on);

/**
 * bmap_cache_insert - remember where blocks are
 * @cache:	the inode's
 * @shift:	log2 of the window's size in blocks, the same for all calls, at
 *		most BMAP_CACHE_MAX_SHIFT
 * @nr_blocks:	blocks that the file has, so that the table gets its size
 * @block:	number of the first block in the file
 * @disk:	its number on the disk
 * @len:	how many are contiguous, in blocks; those beyond the window's end
 *		are left out
 * @gfp:	for the table; if there is no memory, nothing is remembered
 *
 * Context: what keeps the file's blocks from being freed or moved is held.  May
 * sleep if @gfp says so.
 */
void bmap_cache_insert(struct bmap_cache *cache, unsigned int shift, u64 nr_blocks,
		       u64 block, u32 disk, unsigned int len, gfp_t gfp)
{
	unsigned int start = block & ((1U << shift) - 1);
	u64 window = block >> shift, range, old;
	struct bmap_table *table;

	bmap_cache_grow(cache, shift, max(window, (nr_blocks - 1) >> shift) + 1, gfp);
	rcu_read_lock();
	table = rcu_dereference(cache->table);
	if (table && window < table->nr) {
		range = bmap_range(disk, start, min(len, (1U << shift) - start));
		old = atomic64_read(&table->ranges[window]);
		range = bmap_range_join(old, range);
		if (bmap_range_len(range) > bmap_range_len(old))
			atomic64_set(&table->ranges[window], range);
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(bmap_cache_insert);

/**
 * bmap_cache_drop - forget all that is known of a file
 * @cache:	the inode's
 *
 * To be called before blocks are freed or moved, and when the inode goes.
 *
 * Context: nobody looks anything up or inserts at the same time.
 */
void bmap_cache_drop(struct bmap_cache *cache)
{
	kvfree(rcu_replace_pointer(cache->table, NULL, true));
}
EXPORT_SYMBOL_GPL(bmap_cache_drop);
