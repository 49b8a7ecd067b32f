/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MM_READAHEAD_WINDOW_H
#define MM_READAHEAD_WINDOW_H

#include <linux/fs.h>

/**
 * struct ra_read - a read that the page cache could not serve
 * @index: its first page that is not cached, or is marked
 * @count: number of pages from there to the end of the read, at least one
 * @max: largest window in pages, at least one
 * @below: number of pages in a row that are cached right below @index, up to
 *	@max; only ra_window_elsewhere() and ra_window_stream() look at it
 */
struct ra_read {
	pgoff_t index;
	unsigned long count;
	unsigned long max;
	unsigned long below;
};

/**
 * struct ra_place - what is cached near a read
 * @gap_below: number of pages right below the read that are not cached
 * @run_below: number of pages in a row that are cached below those, 0 for none
 *	within reach
 * @gap_above: number of pages right above the read that are not cached
 * @run_above: number of pages in a row that are cached above those
 */
struct ra_place {
	unsigned long gap_below;
	unsigned long run_below;
	unsigned long gap_above;
	unsigned long run_above;
};

/**
 * struct ra_plan - which pages to read
 * @pattern: what the reads look like
 * @start: first page
 * @size: number of pages, of each piece when there are @pieces; 0 for none
 * @async_size: the page that many before the end carries the readahead mark,
 *	which makes whoever reads it ask for the next window; 0 for no mark
 * @pieces: number of pieces a stride apart, 0 for one range
 * @mark: which piece, from 0, carries the mark, on its first page
 * @step: bytes from the end of a piece to the end of the next
 * @end: where the first piece ends, in bytes
 */
struct ra_plan {
	enum ra_pattern pattern;
	pgoff_t start;
	unsigned long size;
	unsigned long async_size;
	unsigned int pieces;
	unsigned int mark;
	s32 step;
	loff_t end;
};

/* How far around a read ra_window_local() wants to know what is cached */
static inline unsigned long ra_window_reach(unsigned long max)
{
	return 2 * max;
}

bool ra_window_next(struct file_ra_state *ra, const struct ra_read *read,
		    struct ra_plan *plan);
void ra_window_elsewhere(struct file_ra_state *ra, const struct ra_read *read,
			 struct ra_plan *plan);
void ra_window_local(struct file_ra_state *ra, const struct ra_read *read,
		     const struct ra_place *place, struct ra_plan *plan);
bool ra_window_marked(struct file_ra_state *ra, const struct ra_read *read,
		      unsigned long nr_pages, struct ra_plan *plan);
void ra_window_stream(struct file_ra_state *ra, const struct ra_read *read,
		      unsigned long ahead, struct ra_plan *plan);
bool ra_window_piece(const struct ra_plan *plan, unsigned int nth,
		     pgoff_t *start);

#endif /* MM_READAHEAD_WINDOW_H */
