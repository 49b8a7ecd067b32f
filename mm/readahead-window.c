// SPDX-License-Identifier: GPL-2.0
/*
 * The readahead window: which pages a read brings in beyond its own.
 */

/**
 * DOC: The readahead window
 *
 * Locality earns readahead, whatever the order of the reads.
 *
 * The policy is asked on two occasions only: when a page that is read is not
 * cached (a miss), and when a page is read that carries the readahead mark. A
 * read of cached pages without the mark costs nothing, and what the policy
 * remembers is not changed by it: no read inside the current window can
 * destroy that window. What is known of such reads is where the last of them
 * ended, file_ra_state.prev_pos.
 *
 * A miss is tried against the patterns in this order:
 *
 * - It ends where a backward window begins, or it is where the stride leads:
 *   the pattern goes on although its mark was lost.
 * - It is at the beginning of the file or where the last read ended:
 *   *sequential*. The window begins at up to four times the read and doubles or
 *   quadruples each time its mark is met, or is passed by a reader that leaves
 *   pages out, up to the largest window. The mark is on the window's first
 *   page, so that one window is read by the program while the next one is read
 *   from the device.
 * - More pages are cached right below it than it asks for: a *stream*, one of
 *   several readers of the file that each go through a part of it. The state
 *   holds one window; the others are known by the traces they leave in the page
 *   cache. The same happens when a mark is met that is not the current
 *   window's: the pages that are cached from there on were the window of the
 *   reader that met it.
 * - For the second time in a row it ends where the miss before it began:
 *   *backward*. The windows grow as sequential ones do, downwards, with the
 *   mark on the highest page.
 * - For the second time in a row it is as far from the run of reads before it
 *   as that was from its predecessor: a *stride*. As many pieces are read ahead
 *   as fit in a window, and none of the holes between them, except that holes
 *   smaller than a piece are not worth a request of their own. Distances are
 *   bytes, between the ends of runs: pieces need not begin at pages.
 * - It is near the misses before it, and those went up and down: *local*. The
 *   hole between the read and the pages cached near it is filled, as far as the
 *   number of misses there justifies, and a bit is read beyond. Once such
 *   places have followed each other, the second miss in a place is enough.
 * - Otherwise a new *run* begins. How many pages beyond its first read the last
 *   run took is folded into a running average, avg = (avg + seen) / 2, rounded
 *   towards what was seen. When two runs in a row took about that, the next one
 *   is read whole with its first read, and without a mark: the window ends
 *   where runs end.
 *
 * Of anything else, *random* reads, just the pages asked for are read.
 *
 * A miss inside a window that has been read, or inside the one before it for the
 * reader that comes from there, means that pages were thrown out before anybody
 * used them. Windows are then capped at half that size, and the cap goes up by an
 * eighth with each window that is used and came near it.
 *
 * All counters start again from 0 at the first miss that does not fit. But a
 * read elsewhere leaves the current window as it is, and a stride is given up
 * only at the third.
 *
 * The functions here neither look at the page cache nor change it;
 * mm/readahead.c tells them what they have to know of it and does what they
 * plan.
 */

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "readahead-window.h"

/* Misses in a row that have to agree before they are a pattern */
#define RA_SURE		2
/* Pieces of a stride that are read at a time, at first and at most */
#define RA_FEW_PIECES	4
#define RA_MAX_PIECES	32
/* Misses near each other: with few, order tells; with many, a place is dense */
#define RA_NEAR_FEW	3
#define RA_NEAR_MANY	5
#define RA_NEAR_MAX	8
/* Holes of so many pages, time and again, do not end a sequential stream */
#define RA_SMALL_HOLES	2
/* Pages cached below a mark, for each page read there, that are a trace */
#define RA_LONG_TRACE	8
/* No window is capped below this many pages */
#define RA_MIN_CAP	4

/* What a read that begins a stream reads: up to four times itself */
static unsigned long first_size(unsigned long count, unsigned long max)
{
	unsigned long size = roundup_pow_of_two(count);

	if (size <= max / 32)
		return size * 4;
	if (size <= max / 4)
		return size * 2;
	return max;
}

/* Grows fast while small */
static unsigned long next_size(unsigned long size, unsigned long max)
{
	if (size < max / 16)
		return size * 4;
	if (size <= max / 2)
		return size * 2;
	return max;
}

/* The largest window, unless memory has been short */
static unsigned long capped(const struct file_ra_state *ra, unsigned long max)
{
	return ra->win.cap ? min_t(unsigned long, max, ra->win.cap) : max;
}

/* Number of pages from the beginning of the file to @pos */
static pgoff_t pages_up_to(loff_t pos)
{
	return ((u64)pos + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

static void plan_range(struct ra_plan *plan, enum ra_pattern pattern,
		       pgoff_t start, unsigned long size,
		       unsigned long async_size)
{
	*plan = (struct ra_plan) {
		.pattern = pattern,
		.start = start,
		.size = size,
		.async_size = async_size,
	};
}

/* What is planned becomes the current window. */
static void take(struct file_ra_state *ra, const struct ra_plan *plan)
{
	ra->start = plan->start;
	ra->size = plan->size;
	ra->async_size = plan->async_size;
	ra->win.pattern = plan->pattern;
}

static void begin_run(struct file_ra_state *ra, const struct ra_read *read)
{
	ra->win.run = read->index;
	ra->win.len = min(read->count, U16_MAX);
}

/* The first page beyond the read carries the mark. */
static void plan_sequential(struct file_ra_state *ra,
			    const struct ra_read *read, struct ra_plan *plan)
{
	unsigned long max = max(read->count, capped(ra, read->max));
	unsigned long size = first_size(read->count, max);

	plan_range(plan, RA_SEQUENTIAL, read->index, size,
		   size > read->count ? size - read->count : size / 2);
	take(ra, plan);
}

/*
 * The mark was left out. As if it had been met: the next window, and by the mark
 * on its first page the one after it at once.
 */
static void plan_passed(struct file_ra_state *ra, const struct ra_read *read,
			struct ra_plan *plan)
{
	unsigned long size = next_size(ra->size, capped(ra, read->max));

	size = max(size, read->count);
	plan_range(plan, RA_SEQUENTIAL, read->index, size, size);
	take(ra, plan);
}

/*
 * The read and @ahead pages below it, with the mark on the first of these. A
 * read meets the mark after its first page, so all of the next one has to fit.
 */
static void plan_backward(struct file_ra_state *ra, const struct ra_read *read,
			  unsigned long ahead, struct ra_plan *plan)
{
	unsigned long max = capped(ra, read->max);

	ahead = min3(max(ahead, read->count), max, read->index);
	plan_range(plan, RA_BACKWARD, read->index - ahead, read->count + ahead,
		   ahead ? read->count + 1 : 0);
	take(ra, plan);
}

/**
 * ra_window_piece - tell where a piece of a stride begins
 * @plan: a plan with pieces
 * @nth: which one, from 0
 * @start: returns its first page; it has @plan->size pages
 *
 * Context: any; looks at nothing but @plan.
 * Return: false if the piece would lie before the beginning of the file.
 */
bool ra_window_piece(const struct ra_plan *plan, unsigned int nth,
		     pgoff_t *start)
{
	loff_t end = plan->end + (loff_t)plan->step * nth;

	if (end <= 0 || pages_up_to(end) < plan->size)
		return false;
	*start = pages_up_to(end) - plan->size;
	return true;
}

/*
 * Pieces from the one that ends at @end on, twice as many as the last time. If
 * holes are smaller than pieces the plan is one range. Another thread may
 * change the step at any time, and it is divided by here.
 */
static bool plan_pieces(struct file_ra_state *ra, const struct ra_read *read,
			loff_t end, unsigned int mark, struct ra_plan *plan)
{
	struct ra_window *win = &ra->win;
	s32 step = READ_ONCE(win->step);
	unsigned long len = max_t(unsigned long, READ_ONCE(win->len), 1);
	unsigned long pieces = RA_FEW_PIECES, span = len;
	bool range = step > 0 && !(step % PAGE_SIZE) &&
		     step >> PAGE_SHIFT < 2 * len;

	if (range)
		span = step >> PAGE_SHIFT;
	if (win->pattern == RA_STRIDE)
		pieces = min(2 * ra->size / span, RA_MAX_PIECES);
	pieces = max(min(pieces, read->max / span), mark + 1);
	*plan = (struct ra_plan) {
		.pattern = RA_STRIDE,
		.size = len,
		.async_size = (pieces - mark) * span,
		.pieces = pieces,
		.mark = mark,
		.step = step,
		.end = end,
	};
	if (!ra_window_piece(plan, 0, &plan->start) ||
	    !ra_window_piece(plan, mark, &ra->start))
		return false;
	ra->size = plan->async_size;
	ra->async_size = plan->async_size;
	win->pattern = RA_STRIDE;
	win->same = RA_SURE;
	win->pos = end + (loff_t)step * (pieces - 1);
	if (range) {
		plan->size = pieces * span;
		plan->pieces = 0;
		take(ra, plan);
	}
	return true;
}

/* Whether the read begins or ends where the stride leads */
static bool on_stride(const struct file_ra_state *ra,
		      const struct ra_read *read)
{
	loff_t end = ra->prev_pos + ra->win.step;
	pgoff_t pages = pages_up_to(end);

	return end > 0 && (pages == read->index + read->count ||
			   pages == read->index + ra->win.len);
}

static bool continues_stride(struct file_ra_state *ra,
			     const struct ra_read *read, struct ra_plan *plan)
{
	if (ra->win.pattern != RA_STRIDE || !on_stride(ra, read))
		return false;
	if (ra->prev_pos == ra->win.pos &&
	    plan_pieces(ra, read, ra->prev_pos + ra->win.step, 1, plan))
		return true;
	/* Part of a piece was not read ahead: no reason to give up. */
	plan_range(plan, RA_STRIDE, read->index, read->count, 0);
	return true;
}

/* At the last read's end; a page that was skipped might be a stride's hole. */
static bool follows(const struct file_ra_state *ra, pgoff_t index)
{
	pgoff_t prev = (u64)ra->prev_pos >> PAGE_SHIFT;

	return index == prev || (index == prev + 1 && ra->prev_pos % PAGE_SIZE);
}

/*
 * Whether the page was read ahead and is gone again: it is in the window or, for
 * the reader that goes towards it, in the one before. The second read of a run
 * has no window behind it.
 */
static bool thrown_out(const struct file_ra_state *ra, pgoff_t index)
{
	if (ra->win.pattern != RA_SEQUENTIAL && ra->win.pattern != RA_STREAM)
		return false;
	if (index >= ra->start + ra->size)
		return false;
	if (!follows(ra, index))
		return index > ra->start;
	return index + ra->size >= ra->start &&
	       index != ra->win.run + ra->win.len;
}

/* From inside the window to right above it, past the mark */
static bool leaves(const struct file_ra_state *ra, const struct ra_read *read)
{
	pgoff_t prev = pages_up_to(ra->prev_pos), end = ra->start + ra->size;

	if (ra->win.pattern != RA_SEQUENTIAL && ra->win.pattern != RA_STREAM)
		return false;
	return prev > ra->start && prev <= end && read->index >= end &&
	       read->index - end <= RA_SMALL_HOLES;
}

/**
 * ra_window_next - plan for a miss that continues what was read before
 * @ra: state of the file, changed if it does
 * @read: the read that missed
 * @plan: returns what to read
 *
 * Context: any; nothing is locked, see struct ra_window.
 * Return: true if it does, else ra_window_elsewhere() has to be asked.
 */
bool ra_window_next(struct file_ra_state *ra, const struct ra_read *read,
		    struct ra_plan *plan)
{
	if (ra->win.pattern == RA_BACKWARD && read->index < ra->start &&
	    read->index + read->count - ra->start <= ra->size) {
		plan_backward(ra, read, next_size(ra->size, read->max), plan);
		return true;
	}
	if (continues_stride(ra, read, plan))
		return true;
	if (thrown_out(ra, read->index))
		ra->win.cap = clamp(ra->size / 2, RA_MIN_CAP, U16_MAX);
	if (!read->index)
		begin_run(ra, read);
	if (read->index && read->count <= read->max && leaves(ra, read)) {
		plan_passed(ra, read, plan);
		return true;
	}
	if (!read->index || read->count > read->max ||
	    follows(ra, read->index)) {
		plan_sequential(ra, read, plan);
		return true;
	}
	return false;
}

/* Halfway from @old to @seen, rounded towards @seen */
static unsigned int average(unsigned int old, unsigned int seen)
{
	return (old + seen + (seen > old)) / 2;
}

/*
 * A run is over: remember what was read beyond its first read. Where the last
 * read was elsewhere, of cached pages, or the run was longer than two windows,
 * there is nothing to learn but some doubt.
 */
static void learn_run(struct file_ra_state *ra, const struct ra_read *read)
{
	struct ra_window *win = &ra->win;
	pgoff_t extra = pages_up_to(ra->prev_pos) - (win->run + win->len);

	if (extra > 2 * read->max) {
		win->runs -= !!win->runs;
		return;
	}
	extra = min3(extra, read->max, U16_MAX);
	if (extra && 2 * extra >= win->extra)
		win->runs = min(win->runs + 1, RA_SURE + 1);
	else
		win->runs = 0;
	win->extra = win->extra ? average(win->extra, extra) : extra;
}

/*
 * Compares the run that is over with the read that missed. Steps of 2 GiB and
 * more are no pattern. Returns the number of pages of the run, or 0.
 */
static unsigned long watch_stride(struct file_ra_state *ra,
				  const struct ra_read *read)
{
	struct ra_window *win = &ra->win;
	loff_t step = ra->prev_pos - win->pos;
	loff_t end = ra->prev_pos + step;
	pgoff_t len = pages_up_to(ra->prev_pos) - win->run;
	bool known = win->pos > 0 && len && len <= min(read->max, U16_MAX) &&
		     abs(step) <= S32_MAX;

	if (known && end > 0 && abs(step) > (loff_t)len << PAGE_SHIFT &&
	    pages_up_to(end) - len == read->index)
		win->same = min(win->same + 1, RA_SURE);
	else
		win->same = 0;
	win->step = known ? step : 0;
	win->pos = ra->prev_pos;
	return known ? len : 0;
}

static void watch_backward(struct file_ra_state *ra, const struct ra_read *read)
{
	struct ra_window *win = &ra->win;

	if (read->index + read->count - win->run <= 1)
		win->back = min(win->back + 1, RA_SURE);
	else
		win->back = 0;
}

static void watch_place(struct file_ra_state *ra, const struct ra_read *read)
{
	struct ra_window *win = &ra->win;
	unsigned long reach = ra_window_reach(read->max);

	if (read->index + reach - win->run <= 2 * reach) {
		win->moves = win->moves << 1 | (read->index > win->run);
		win->near = min(win->near + 1, RA_NEAR_MAX);
		return;
	}
	if (win->near >= RA_NEAR_MANY)
		win->dense = min(win->dense + 1, RA_SURE);
	else if (!win->near)
		win->dense = 0;
	win->near = 0;
}

/* Near misses that all went up */
static bool upwards(const struct ra_window *win)
{
	return win->near >= RA_NEAR_FEW && (win->moves & 7) == 7;
}

/* Near misses that went up and down, or the second one after dense places */
static bool unordered(const struct ra_window *win)
{
	u8 moves = win->moves & 7;

	if (win->near < RA_NEAR_FEW)
		return win->near && win->dense == RA_SURE;
	return moves != 0 && moves != 7;
}

/* The reader left pages out. Once that may be a stride's beginning. */
static bool skips(const struct file_ra_state *ra, const struct ra_read *read)
{
	pgoff_t hole = read->index - ((u64)ra->prev_pos >> PAGE_SHIFT);

	if (upwards(&ra->win))
		return hole <= RA_SMALL_HOLES;
	return hole == 1 && ra->win.step && !ra->win.same;
}

/* A read or two elsewhere do not end a stride. */
static bool strays(struct file_ra_state *ra)
{
	if (ra->win.pattern != RA_STRIDE)
		return false;
	if (ra->win.same) {
		ra->win.same--;
		return true;
	}
	/* Its mark shall not be taken for that of a range. */
	ra->start += ra->size;
	ra->size = 0;
	ra->async_size = 0;
	ra->win.pattern = RA_RANDOM;
	return false;
}

static void plan_trace(struct file_ra_state *ra, const struct ra_read *read,
		       struct ra_plan *plan)
{
	unsigned long size = read->below;

	/* Cached from the beginning of the file: rather the whole of it. */
	if (read->below == read->index)
		size *= 2;
	size = min(size + read->count, capped(ra, read->max));
	plan_range(plan, RA_STREAM, read->index, max(size, read->count), 1);
	take(ra, plan);
}

static void plan_run(struct file_ra_state *ra, const struct ra_read *read,
		     struct ra_plan *plan)
{
	unsigned long size = min(read->count + ra->win.extra, read->max);

	if (ra->win.runs >= RA_SURE && size > read->count)
		plan_range(plan, RA_RUN, read->index, size, 0);
	else
		plan_range(plan, RA_RANDOM, read->index, read->count, 0);
}

/**
 * ra_window_elsewhere - plan for a miss that does not continue the last read
 * @ra: state of the file
 * @read: the read that missed
 * @plan: returns what to read; when its pattern is RA_LOCAL, ra_window_local()
 *	has to be asked
 *
 * Context: any; nothing is locked, see struct ra_window.
 */
void ra_window_elsewhere(struct file_ra_state *ra, const struct ra_read *read,
			 struct ra_plan *plan)
{
	struct ra_window *win = &ra->win;
	unsigned long len, size;

	if (read->below > read->count && !unordered(win)) {
		plan_trace(ra, read, plan);
		return;
	}
	if (strays(ra)) {
		plan_range(plan, RA_RANDOM, read->index, read->count, 0);
		return;
	}
	if (!unordered(win))
		learn_run(ra, read);
	len = watch_stride(ra, read);
	watch_backward(ra, read);
	watch_place(ra, read);
	begin_run(ra, read);
	if (win->back == RA_SURE) {
		size = first_size(read->count, read->max);
		plan_backward(ra, read, size, plan);
		return;
	}
	if (win->same == RA_SURE) {
		win->len = max_t(unsigned long, win->len, len);
		if (plan_pieces(ra, read, ra->prev_pos + win->step, 1, plan))
			return;
	}
	if (skips(ra, read))
		plan_sequential(ra, read, plan);
	else if (unordered(win))
		plan_range(plan, RA_LOCAL, read->index, read->count, 0);
	else
		plan_run(ra, read, plan);
}

/**
 * ra_window_local - plan for a miss among reads in no order
 * @ra: state of the file
 * @read: the read that missed
 * @place: what is cached near it, within ra_window_reach()
 * @plan: returns what to read
 *
 * Context: any; nothing is locked, see struct ra_window.
 */
void ra_window_local(struct file_ra_state *ra, const struct ra_read *read,
		     const struct ra_place *place, struct ra_plan *plan)
{
	unsigned long most = capped(ra, read->max);
	pgoff_t start = read->index, end = read->index + read->count;
	bool below, above;

	if (ra->win.dense < RA_SURE)
		most = min(most, 4UL << ra->win.near);
	below = place->run_below && place->gap_below <= most;
	above = place->run_above && place->gap_above <= most;
	if (below)
		start -= place->gap_below;
	if (above)
		end += place->gap_above;
	plan_range(plan, RA_LOCAL, start, end - start, 0);
	if (below && !place->run_above) {
		plan->size += min((plan->size + place->run_below) / 8, most);
		plan->async_size = 1;
		take(ra, plan);
	} else if (above && !place->run_below) {
		most = min3((plan->size + place->run_above) / 8, most, start);
		plan->start -= most;
		plan->size += most;
	}
}

/* A window was used: what stays small says nothing on how much memory there is. */
static void raise_cap(struct file_ra_state *ra, unsigned long max)
{
	unsigned long cap = ra->win.cap + ra->win.cap / 8 + 1;

	if (ra->win.cap && ra->size >= ra->win.cap / 2)
		ra->win.cap = cap < min(max, U16_MAX) ? cap : 0;
}

/**
 * ra_window_marked - plan for a read of a page with the readahead mark
 * @ra: state of the file, changed if the mark is that of the current window
 * @read: the read, from the marked page on
 * @nr_pages: number of pages of the folio that carries the mark
 * @plan: returns what to read
 *
 * Context: any; nothing is locked, see struct ra_window.
 * Return: true if the mark is that of the current window. Otherwise the reader
 * is another one and ra_window_stream() has to be asked.
 */
bool ra_window_marked(struct file_ra_state *ra, const struct ra_read *read,
		      unsigned long nr_pages, struct ra_plan *plan)
{
	pgoff_t mark = ra->start + ra->size - ra->async_size;
	unsigned long size;

	if (read->index != round_down(mark, nr_pages))
		return false;
	raise_cap(ra, read->max);
	size = next_size(ra->size, capped(ra, read->max));
	switch (ra->win.pattern) {
	case RA_STRIDE:
		if (!plan_pieces(ra, read, ra->win.pos + ra->win.step, 0, plan))
			plan_range(plan, RA_STRIDE, read->index, 0, 0);
		return true;
	case RA_BACKWARD:
		size = min(size, ra->start);
		plan_range(plan, RA_BACKWARD, ra->start - size, size, 1);
		break;
	default:
		/* A window of huge pages may be larger than the largest. */
		if (!ra->win.cap)
			size = max_t(unsigned long, size, ra->size);
		plan_range(plan, RA_SEQUENTIAL, ra->start + ra->size, size,
			   size);
	}
	take(ra, plan);
	return true;
}

/**
 * ra_window_stream - plan for a reader whose window is not the current one
 * @ra: state of the file
 * @read: the read, from the marked page on
 * @ahead: number of pages from there on that are cached
 * @plan: returns what to read
 *
 * Context: any; nothing is locked, see struct ra_window.
 */
void ra_window_stream(struct file_ra_state *ra, const struct ra_read *read,
		      unsigned long ahead, struct ra_plan *plan)
{
	unsigned long size = ahead + read->count;

	/* A long trace: its window was small only because it was its first. */
	if (read->below > RA_LONG_TRACE * read->count)
		size = max(size, read->below);
	size = next_size(size, capped(ra, read->max));
	plan_range(plan, RA_STREAM, read->index + ahead, size, size);
	take(ra, plan);
}
