/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_RA_WINDOW_H
#define _LINUX_RA_WINDOW_H

#include <linux/types.h>

/**
 * enum ra_pattern - what the reads of a file looked like
 * @RA_RANDOM: nothing that readahead could use
 * @RA_SEQUENTIAL: one page after the other, upwards
 * @RA_STREAM: the same, by one of several readers of the file
 * @RA_RUN: short runs of reads at unrelated places
 * @RA_BACKWARD: each read ends where the one before began
 * @RA_STRIDE: pieces at a constant distance
 * @RA_LOCAL: in no order, but in one place
 * @RA_AROUND: a fault of a mapping; the pages around it are read
 */
enum ra_pattern {
	RA_RANDOM,
	RA_SEQUENTIAL,
	RA_STREAM,
	RA_RUN,
	RA_BACKWARD,
	RA_STRIDE,
	RA_LOCAL,
	RA_AROUND,
};

/**
 * struct ra_window - what the readahead window's policy remembers of a file
 * @pos: where the run before the last one ended, in bytes; in a stride, where
 *	the last piece ends that was read ahead
 * @run: first page of the last run of reads
 * @step: bytes from the end of a run to the end of the next
 * @len: pages that the run's first read had; in a stride, pages of a piece
 * @extra: how many more pages a run takes, a running average
 * @cap: largest window in pages since pages were thrown out unread, or 0
 * @pattern: enum ra_pattern of the current window
 * @near: misses in a row that were near the one before
 * @moves: which way they went, a bit each, the last one lowest, 1 for up
 * @runs: runs in a row that took more than their first read
 * @same: runs in a row with the same step
 * @back: reads in a row that ended where the one before began
 * @dense: places in a row that were read in no order
 *
 * Nothing locks it: what it holds may be wrong when several threads read the
 * file at a time, and must be no more than a hint.
 */
struct ra_window {
	loff_t pos;
	pgoff_t run;
	s32 step;
	u16 len;
	u16 extra;
	u16 cap;
	u8 pattern;
	u8 near;
	u8 moves;
	u8 runs : 2;
	u8 same : 2;
	u8 back : 2;
	u8 dense : 2;
};

#endif /* _LINUX_RA_WINDOW_H */
