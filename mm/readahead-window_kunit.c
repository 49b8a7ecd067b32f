// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the readahead window: reads go in, windows come out. The page
 * cache is a string of bytes here, and a read from the device takes no time.
 */

#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/prandom.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "readahead-window.h"

#define PAGES		65536UL
#define MAX_PAGES	32UL
#define MAX_READERS	16

#define CACHED		BIT(0)
#define MARK		BIT(1)
#define USED		BIT(2)

/**
 * struct model - a file, its page cache and what was planned for it
 * @ra: what the policy remembers
 * @page: CACHED, MARK and USED of each page
 * @plan: the last plan
 * @plans: number of plans
 * @misses: number of reads that had to wait for the device
 * @brought: number of pages that were brought in
 */
struct model {
	struct file_ra_state ra;
	u8 *page;
	struct ra_plan plan;
	unsigned int plans;
	unsigned int misses;
	unsigned long brought;
};

static int model_init(struct kunit *test)
{
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->page = vzalloc(PAGES);
	KUNIT_ASSERT_NOT_NULL(test, m->page);
	m->ra.ra_pages = MAX_PAGES;
	m->ra.prev_pos = -1;
	test->priv = m;
	return 0;
}

static void model_exit(struct kunit *test)
{
	struct model *m = test->priv;

	if (m)
		vfree(m->page);
}

static void model_reset(struct model *m)
{
	u8 *page = m->page;

	memset(page, 0, PAGES);
	memset(m, 0, sizeof(*m));
	m->page = page;
	m->ra.ra_pages = MAX_PAGES;
	m->ra.prev_pos = -1;
}

static bool cached(struct model *m, pgoff_t index)
{
	return index < PAGES && (m->page[index] & CACHED);
}

static void bring(struct model *m, pgoff_t start, unsigned long size,
		  pgoff_t mark)
{
	for (; size && start < PAGES; start++, size--) {
		if (m->page[start] & CACHED)
			continue;
		m->page[start] = CACHED | (start == mark ? MARK : 0);
		m->brought++;
	}
}

static void carry_out(struct kunit *test, unsigned long count)
{
	struct model *m = test->priv;
	struct ra_plan *plan = &m->plan;
	unsigned int i;
	pgoff_t start;

	m->plans++;
	KUNIT_EXPECT_LE(test, plan->size * max(plan->pieces, 1U),
			2 * ra_window_reach(MAX_PAGES) + count);
	if (!plan->pieces)
		bring(m, plan->start, plan->size,
		      plan->start + plan->size - plan->async_size);
	for (i = 0; i < plan->pieces; i++)
		if (ra_window_piece(plan, i, &start))
			bring(m, start, plan->size,
			      i == plan->mark ? start : ULONG_MAX);
}

static void look(struct model *m, pgoff_t index, int step, unsigned long *gap,
		 unsigned long *run)
{
	unsigned long reach = ra_window_reach(MAX_PAGES);

	*gap = 0;
	*run = 0;
	for (; reach-- && index < PAGES; index += step) {
		if (cached(m, index))
			++*run;
		else if (!*run)
			++*gap;
		else
			break;
	}
}

static void miss(struct kunit *test, pgoff_t index, unsigned long count)
{
	struct model *m = test->priv;
	struct ra_read read = { index, count, MAX_PAGES };
	struct ra_place place;

	m->misses++;
	if (!ra_window_next(&m->ra, &read, &m->plan)) {
		while (read.below < MAX_PAGES && read.below < index &&
		       cached(m, index - 1 - read.below))
			read.below++;
		ra_window_elsewhere(&m->ra, &read, &m->plan);
	}
	if (m->plan.pattern == RA_LOCAL) {
		look(m, index - 1, -1, &place.gap_below, &place.run_below);
		look(m, index + count, 1, &place.gap_above, &place.run_above);
		ra_window_local(&m->ra, &read, &place, &m->plan);
	}
	carry_out(test, count);
}

static void marked(struct kunit *test, pgoff_t index, unsigned long count)
{
	struct model *m = test->priv;
	struct ra_read read = { index, count, MAX_PAGES };
	unsigned long ahead = 0;

	m->page[index] &= ~MARK;
	if (!ra_window_marked(&m->ra, &read, 1, &m->plan)) {
		while (cached(m, index + ahead) && ahead <= MAX_PAGES)
			ahead++;
		if (ahead > MAX_PAGES)
			return;
		ra_window_stream(&m->ra, &read, ahead, &m->plan);
	}
	if (m->plan.size)
		carry_out(test, count);
}

static void model_read(struct kunit *test, loff_t pos, size_t bytes)
{
	struct model *m = test->priv;
	pgoff_t end = DIV_ROUND_UP((unsigned long)pos + bytes, PAGE_SIZE);
	pgoff_t index;

	for (index = pos >> PAGE_SHIFT; index < end; index++) {
		if (!cached(m, index))
			miss(test, index, end - index);
		if (m->page[index] & MARK)
			marked(test, index, end - index);
		KUNIT_ASSERT_TRUE(test, cached(m, index));
		m->page[index] |= USED;
	}
	m->ra.prev_pos = pos + bytes;
}

static unsigned long pages_used(struct model *m)
{
	unsigned long i, n = 0;

	for (i = 0; i < PAGES; i++)
		n += !!(m->page[i] & USED);
	return n;
}

/* Reads in pages, how many windows each of them is to cause, and the last one */
struct step {
	pgoff_t index;
	unsigned int count;
	unsigned int plans;
	enum ra_pattern pattern;
	pgoff_t start;
	unsigned long size;
	unsigned int pieces;
};

struct trace {
	const char *name;
	struct step steps[12];
};

static const struct trace traces[] = {
	{ "sequential from the beginning of the file", {
		{ 0, 1, 1, RA_SEQUENTIAL, 0, 4 },
		{ 1, 1, 1, RA_SEQUENTIAL, 4, 8 },
		{ 2, 1 },
		{ 3, 1 },
		{ 4, 1, 1, RA_SEQUENTIAL, 12, 16 },
		{ 12, 1, 1, RA_SEQUENTIAL, 28, 32 },
		{ 28, 1, 1, RA_SEQUENTIAL, 60, 32 },
	} },
	{ "sequential from anywhere", {
		{ 1000, 1, 1, RA_RANDOM, 1000, 1 },
		{ 1001, 1, 1, RA_SEQUENTIAL, 1001, 4 },
		{ 1002, 1, 1, RA_SEQUENTIAL, 1005, 8 },
		{ 1003, 1 },
	} },
	{ "a seek inside the window does not destroy it", {
		{ 0, 1, 1, RA_SEQUENTIAL, 0, 4 },
		{ 1, 1, 1, RA_SEQUENTIAL, 4, 8 },
		{ 3, 1 },
		{ 9, 1 },
		{ 2, 1 },
		{ 4, 1, 1, RA_SEQUENTIAL, 12, 16 },
	} },
	{ "pages left out, the mark's and those above the window", {
		{ 0, 1, 1, RA_SEQUENTIAL, 0, 4 },
		{ 2, 1 },
		{ 3, 1 },
		{ 5, 1, 2, RA_SEQUENTIAL, 13, 16 },
		{ 13, 1, 1, RA_SEQUENTIAL, 29, 32 },
	} },
	{ "a read elsewhere does not destroy it either", {
		{ 0, 1, 1, RA_SEQUENTIAL, 0, 4 },
		{ 1, 1, 1, RA_SEQUENTIAL, 4, 8 },
		{ 9000, 1, 1, RA_RANDOM, 9000, 1 },
		{ 2, 1 },
		{ 4, 1, 1, RA_SEQUENTIAL, 12, 16 },
	} },
	{ "two readers", {
		{ 1000, 2, 1, RA_RANDOM, 1000, 2 },
		{ 5000, 2, 1, RA_RANDOM, 5000, 2 },
		{ 1002, 1, 1, RA_STREAM, 1002, 3 },
		{ 5002, 1, 1, RA_STREAM, 5002, 3 },
		{ 1003, 2, 1, RA_STREAM, 1005, 4 },
	} },
	{ "backward, a page at a time", {
		{ 1003, 1, 1, RA_RANDOM, 1003, 1 },
		{ 1002, 1, 1, RA_RANDOM, 1002, 1 },
		{ 1001, 1, 1, RA_BACKWARD, 997, 5 },
		{ 1000, 1, 1, RA_BACKWARD, 987, 10 },
		{ 999, 1 },
		{ 998, 1 },
		{ 997, 1 },
		{ 996, 1, 1, RA_BACKWARD, 967, 20 },
	} },
	{ "backward to the beginning of the file", {
		{ 5, 1, 1, RA_RANDOM, 5, 1 },
		{ 4, 1, 1, RA_RANDOM, 4, 1 },
		{ 3, 1, 1, RA_BACKWARD, 0, 4 },
		{ 2, 1 },
		{ 1, 1 },
		{ 0, 1 },
	} },
	{ "a stride", {
		{ 1000, 1, 1, RA_RANDOM, 1000, 1 },
		{ 1010, 1, 1, RA_RANDOM, 1010, 1 },
		{ 1020, 1, 1, RA_RANDOM, 1020, 1 },
		{ 1030, 1, 1, RA_STRIDE, 1030, 1, 4 },
		{ 1040, 1, 1, RA_STRIDE, 1070, 1, 6 },
		{ 1050, 1 },
		{ 1060, 1 },
		{ 1070, 1, 1, RA_STRIDE, 1130, 1, 12 },
	} },
	{ "a stride downwards", {
		{ 2000, 2, 1, RA_RANDOM, 2000, 2 },
		{ 1990, 2, 1, RA_RANDOM, 1990, 2 },
		{ 1980, 2, 1, RA_RANDOM, 1980, 2 },
		{ 1970, 2, 1, RA_STRIDE, 1970, 2, 4 },
		{ 1960, 2, 1, RA_STRIDE, 1930, 2, 6 },
		{ 1950, 2 },
	} },
	{ "a stride with small holes is read whole", {
		{ 1000, 3, 1, RA_RANDOM, 1000, 3 },
		{ 1004, 3, 1, RA_RANDOM, 1004, 3 },
		{ 1008, 3, 1, RA_RANDOM, 1008, 3 },
		{ 1012, 3, 1, RA_STRIDE, 1012, 16 },
		{ 1016, 3, 1, RA_STRIDE, 1028, 32 },
		{ 1020, 3 },
	} },
	{ "a stride that ends", {
		{ 1000, 1, 1, RA_RANDOM, 1000, 1 },
		{ 1010, 1, 1, RA_RANDOM, 1010, 1 },
		{ 1020, 1, 1, RA_RANDOM, 1020, 1 },
		{ 1030, 1, 1, RA_STRIDE, 1030, 1, 4 },
		{ 9000, 1, 1, RA_RANDOM, 9000, 1 },
		{ 3000, 1, 1, RA_RANDOM, 3000, 1 },
	} },
	{ "runs of three pages", {
		{ 1000, 1, 1, RA_RANDOM, 1000, 1 },
		{ 1001, 1, 1, RA_SEQUENTIAL, 1001, 4 },
		{ 1002, 1, 1, RA_SEQUENTIAL, 1005, 8 },
		{ 7000, 1, 1, RA_RANDOM, 7000, 1 },
		{ 7001, 1, 1, RA_SEQUENTIAL, 7001, 4 },
		{ 7002, 1, 1, RA_SEQUENTIAL, 7005, 8 },
		{ 3000, 1, 1, RA_RUN, 3000, 3 },
		{ 3001, 1 },
		{ 3002, 1 },
		{ 9000, 1, 1, RA_RUN, 9000, 3 },
	} },
	{ "runs that are none any more", {
		{ 1000, 1, 1, RA_RANDOM, 1000, 1 },
		{ 1001, 1, 1, RA_SEQUENTIAL, 1001, 4 },
		{ 7000, 1, 1, RA_RANDOM, 7000, 1 },
		{ 7001, 1, 1, RA_SEQUENTIAL, 7001, 4 },
		{ 3000, 1, 1, RA_RUN, 3000, 2 },
		{ 9000, 1, 1, RA_RANDOM, 9000, 1 },
		{ 4000, 1, 1, RA_RANDOM, 4000, 1 },
	} },
	{ "no order, in one place", {
		{ 1020, 1, 1, RA_RANDOM, 1020, 1 },
		{ 1005, 1, 1, RA_RANDOM, 1005, 1 },
		{ 1030, 1, 1, RA_RANDOM, 1030, 1 },
		{ 1010, 1, 1, RA_LOCAL, 1006, 14 },
		{ 1007, 1 },
		{ 1025, 1, 1, RA_LOCAL, 1021, 9 },
	} },
	{ "a stride with a stray read", {
		{ 1000, 1, 1, RA_RANDOM, 1000, 1 },
		{ 1010, 1, 1, RA_RANDOM, 1010, 1 },
		{ 1020, 1, 1, RA_RANDOM, 1020, 1 },
		{ 1030, 1, 1, RA_STRIDE, 1030, 1, 4 },
		{ 9000, 1, 1, RA_RANDOM, 9000, 1 },
		{ 1040, 1, 1, RA_STRIDE, 1070, 1, 6 },
		{ 9900, 1, 1, RA_RANDOM, 9900, 1 },
		{ 1050, 1 },
	} },
};

static void trace_name(const struct trace *trace, char *desc)
{
	strscpy(desc, trace->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(trace, traces, trace_name);

static void windows_of_a_trace(struct kunit *test)
{
	const struct trace *trace = test->param_value;
	const struct step *step;
	struct model *m = test->priv;

	for (step = trace->steps; step->count; step++) {
		unsigned int plans = m->plans;

		model_read(test, (loff_t)step->index << PAGE_SHIFT,
			   step->count * PAGE_SIZE);
		KUNIT_EXPECT_EQ_MSG(test, m->plans - plans, step->plans,
				    "read of page %lu", step->index);
		if (!step->plans)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, m->plan.pattern, step->pattern,
				    "read of page %lu", step->index);
		KUNIT_EXPECT_EQ_MSG(test, m->plan.start, step->start,
				    "read of page %lu", step->index);
		KUNIT_EXPECT_EQ_MSG(test, m->plan.size, step->size,
				    "read of page %lu", step->index);
		KUNIT_EXPECT_EQ_MSG(test, m->plan.pieces, step->pieces,
				    "read of page %lu", step->index);
	}
}

static u32 between(struct rnd_state *rnd, u32 least, u32 most)
{
	return least + prandom_u32_state(rnd) % (most - least + 1);
}

/* Readers that go up through places of their own, in any order of turns */
static void interleaved_readers(struct kunit *test)
{
	struct model *m = test->priv;
	struct rnd_state rnd;
	loff_t pos[MAX_READERS];
	int round, i, n, turns;
	size_t bytes;

	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 20; round++) {
		model_reset(m);
		n = between(&rnd, 2, MAX_READERS);
		bytes = between(&rnd, 1, 65536);
		for (i = 0; i < n; i++)
			pos[i] = (loff_t)i * (PAGES / n) * PAGE_SIZE +
				 between(&rnd, 0, 65536);
		for (turns = 0; turns < 16 * n * 24; turns++) {
			i = between(&rnd, 0, n - 1);
			model_read(test, pos[i], bytes);
			pos[i] += bytes;
			/* before one gets into the next one's place */
			if (pos[i] > (PAGES / n * (i + 1) - 200) * PAGE_SIZE)
				break;
		}
		KUNIT_EXPECT_LE(test, m->misses, 6 * n);
		KUNIT_EXPECT_LE(test, m->brought,
				pages_used(m) + 2 * MAX_PAGES * n);
	}
}

static void backward_reader(struct kunit *test)
{
	struct model *m = test->priv;
	struct rnd_state rnd;
	int round, i;

	prandom_seed_state(&rnd, 2);
	for (round = 0; round < 30; round++) {
		size_t bytes = between(&rnd, 3000, 100000);
		loff_t pos = (loff_t)between(&rnd, 30000, 60000) * PAGE_SIZE +
			     between(&rnd, 0, 4095);

		model_reset(m);
		for (i = 0; i < 400; i++, pos -= bytes)
			model_read(test, pos, bytes);
		KUNIT_EXPECT_LE(test, m->misses, 8);
		KUNIT_EXPECT_LE(test, m->brought,
				pages_used(m) + 3 * MAX_PAGES);
	}
}

static void stride_reader(struct kunit *test)
{
	struct model *m = test->priv;
	struct rnd_state rnd;
	int round, i, hole;

	prandom_seed_state(&rnd, 3);
	for (round = 0; round < 50; round++) {
		unsigned int pages = between(&rnd, 1, 8);
		loff_t step, pos;

		hole = between(&rnd, pages, 60);
		step = (loff_t)(pages + hole) * PAGE_SIZE;
		pos = (loff_t)between(&rnd, 30000, 32000) * PAGE_SIZE;
		if (round & 1)
			step = -step;
		model_reset(m);
		for (i = 0; i < 300; i++, pos += step)
			model_read(test, pos, pages * PAGE_SIZE);
		KUNIT_EXPECT_LE(test, m->misses, 6);
		KUNIT_EXPECT_LE(test, m->brought,
				300 * pages + 2 * max(MAX_PAGES, 2UL * pages));
	}
}

/* Runs of one length: each is read whole, and no page too many */
static void reader_of_runs(struct kunit *test)
{
	struct model *m = test->priv;
	struct rnd_state rnd;
	int round, i, j;

	prandom_seed_state(&rnd, 4);
	for (round = 0; round < 30; round++) {
		unsigned int pages = between(&rnd, 2, MAX_PAGES);

		model_reset(m);
		for (i = 0; i < 200; i++) {
			/* a place of its own, at no constant distance */
			pgoff_t index = (i * 77UL % 200) * 300 +
					between(&rnd, 100, 150);

			for (j = 0; j < pages; j++, index++)
				model_read(test, index * PAGE_SIZE, PAGE_SIZE);
		}
		KUNIT_EXPECT_LE(test, m->misses, 200 + 8);
		KUNIT_EXPECT_LE(test, m->brought,
				pages_used(m) + 6 * MAX_PAGES);
	}
}

/* Random reads of any size: nothing that was not asked for */
static void random_reader(struct kunit *test)
{
	struct model *m = test->priv;
	struct rnd_state rnd;
	int round, i;

	prandom_seed_state(&rnd, 5);
	for (round = 0; round < 30; round++) {
		model_reset(m);
		for (i = 0; i < 200; i++) {
			pgoff_t index = between(&rnd, 1, 650) * 100;

			/* A place that is known is another matter. */
			if (!cached(m, index))
				model_read(test, (loff_t)index << PAGE_SHIFT,
					   between(&rnd, 1, 16) * PAGE_SIZE);
		}
		KUNIT_EXPECT_EQ(test, m->brought, pages_used(m));
	}
}

/* A read of cached pages asks for nothing and changes nothing. */
static void cached_reader(struct kunit *test)
{
	struct model *m = test->priv;
	struct file_ra_state before;
	unsigned int plans;
	int i;

	for (i = 0; i < 100; i++)
		model_read(test, i * PAGE_SIZE, PAGE_SIZE);
	plans = m->plans;
	before = m->ra;
	for (i = 0; i < 100; i++)
		model_read(test, (i * 37 % 100) * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, m->plans, plans);
	before.prev_pos = m->ra.prev_pos;
	KUNIT_EXPECT_MEMEQ(test, &m->ra, &before, sizeof(before));
}

/* Pages that are thrown out unread make windows smaller; used ones, larger. */
static void thrashing(struct kunit *test)
{
	struct model *m = test->priv;
	pgoff_t index;
	int i;

	for (index = 0; index < 200; index++)
		model_read(test, index * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, m->ra.size, MAX_PAGES);
	for (i = 0; i < 3; i++) {
		index = m->ra.start + 1;
		model_read(test, m->ra.start * PAGE_SIZE, PAGE_SIZE);
		index = max(index, m->ra.start + 1);
		memset(m->page + index, 0, PAGES - index);
		model_read(test, index * PAGE_SIZE, PAGE_SIZE);
		KUNIT_EXPECT_LE(test, m->ra.size,
				max(MAX_PAGES >> (i + 1), 4UL));
		KUNIT_EXPECT_NE(test, m->ra.win.cap, 0);
	}
	for (i = 0; i < 2000; i++)
		model_read(test, ++index * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, m->ra.win.cap, 0);
	KUNIT_EXPECT_EQ(test, m->ra.size, MAX_PAGES);

	/* The reader is in the middle of one window; the next one is there. */
	while (index + MAX_PAGES / 2 < m->ra.start)
		model_read(test, ++index * PAGE_SIZE, PAGE_SIZE);
	memset(m->page + index + 1, 0, PAGES - index - 1);
	model_read(test, ++index * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, m->ra.win.cap, MAX_PAGES / 2);
}

/* Whatever another thread left behind, a plan holds the read and is finite. */
static void state_of_another(struct kunit *test)
{
	struct model *m = test->priv;
	struct ra_window *win = &m->ra.win;
	struct rnd_state rnd;
	int i;

	prandom_seed_state(&rnd, 6);
	for (i = 0; i < 5000; i++) {
		if (!(i % 5)) {
			prandom_bytes_state(&rnd, win, sizeof(*win));
			win->len = win->len % MAX_PAGES;
			m->ra.start = between(&rnd, 0, PAGES);
			m->ra.size = between(&rnd, 0, 64);
			m->ra.async_size = between(&rnd, 0, 64);
		}
		if (!(i % 100))
			memset(m->page, 0, PAGES);
		model_read(test, between(&rnd, 0, PAGES - 100) * PAGE_SIZE,
			   between(&rnd, 1, 50 * PAGE_SIZE));
	}
}

static struct kunit_case ra_window_cases[] = {
	KUNIT_CASE_PARAM(windows_of_a_trace, trace_gen_params),
	KUNIT_CASE(interleaved_readers),
	KUNIT_CASE(backward_reader),
	KUNIT_CASE(stride_reader),
	KUNIT_CASE(reader_of_runs),
	KUNIT_CASE(random_reader),
	KUNIT_CASE(cached_reader),
	KUNIT_CASE(thrashing),
	KUNIT_CASE(state_of_another),
	{}
};

static struct kunit_suite ra_window_suite = {
	.name = "readahead-window",
	.init = model_init,
	.exit = model_exit,
	.test_cases = ra_window_cases,
};

kunit_test_suite(ra_window_suite);

MODULE_DESCRIPTION("KUnit tests of the readahead window");
MODULE_LICENSE("GPL");
