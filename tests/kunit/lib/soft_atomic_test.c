// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations in software: each one against a plain model, on memory in
 * several pieces, and against others at the same time.
 */
#include <linux/gfp.h>
#include <linux/slab.h>

#include "atomic_model.h"
#include "../core/fake.h"
#include "../core/queues.h"

#define ST_COUNT	7	/* elements of one operation */
#define ST_ROUNDS	20
#define ST_PAGES	3
#define ST_THREADS	4
#define ST_SUMS		20000	/* of each */
#define ST_FILL		0xa5

/*
 * A region made by hand: the end of a page, two pages in one, and 64 bytes; the
 * first of them is at an offset of its pages.
 */
struct st_region {
	struct kofi_mr	mr;
	struct bio_vec	bv[ST_PAGES];
	u64		start[ST_PAGES];
	struct page	*pages[ST_PAGES];
};

static void st_region_free(void *arg)
{
	struct st_region *r = arg;
	int i;

	for (i = 0; i < ST_PAGES; i++)
		if (r->pages[i])
			__free_pages(r->pages[i], i == 1);
}

static struct st_region *st_region(struct kunit *test)
{
	static const struct { unsigned int offset, len; } parts[ST_PAGES] = {
		{ PAGE_SIZE - 64, 64 }, { 8, 2 * PAGE_SIZE - 8 }, { 16, 64 },
	};
	struct st_region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, st_region_free,
							r), 0);
	for (i = 0; i < ST_PAGES; i++) {
		r->pages[i] = alloc_pages(GFP_KERNEL, i == 1);
		KUNIT_ASSERT_NOT_NULL(test, r->pages[i]);
		memset(page_address(r->pages[i]), ST_FILL, PAGE_SIZE << (i == 1));
		bvec_set_page(&r->bv[i], r->pages[i], parts[i].len,
			      parts[i].offset);
		r->start[i] = r->mr.len;
		r->mr.len += parts[i].len;
	}
	r->mr.bv = r->bv;
	r->mr.start = r->start;
	r->mr.nr_segs = ST_PAGES;
	return r;
}

static void *st_at(struct st_region *r, u64 off)
{
	int i = ST_PAGES - 1;

	while (r->start[i] > off)
		i--;
	return page_address(r->pages[i]) + r->bv[i].bv_offset +
	       (off - r->start[i]);
}

static void st_copy(struct st_region *r, u64 off, u8 *to, const u8 *from,
		    size_t len)
{
	for (; len; len--, off++) {
		if (to)
			*to++ = *(u8 *)st_at(r, off);
		else
			*(u8 *)st_at(r, off) = *from++;
	}
}

static void st_do(struct st_region *r, u64 off, size_t len,
		  struct kofi_atomic a)
{
	struct kofi_target t = { .mr = &r->mr, .off = off, .left = len };

	kofi_target_atomic(&t, &a);
}

/* Elements of one operation */
struct st_values {
	u8	in[8 * ST_COUNT];
	u8	cmp[8 * ST_COUNT];
	u8	before[8 * ST_COUNT];
	u8	model[8 * ST_COUNT];
	u8	after[8 * ST_COUNT + 2];
	u8	operands[8 * ST_COUNT];	/* not aligned, as in packets */
	u8	guard[2];
} __aligned(8);

/* One operation on elements that begin there */
static void st_check(struct kunit *test, struct st_region *r,
		     struct rnd_state *rnd, const struct kofi_atomic *what,
		     u64 off)
{
	size_t size = kofi_datatype_size(what->datatype);
	size_t len = ST_COUNT * size, i;
	struct kofi_atomic a = *what;
	struct st_values v;

	am_values(rnd, v.before, size, ST_COUNT);
	am_values(rnd, v.in, size, ST_COUNT);
	am_values(rnd, v.cmp, size, ST_COUNT);
	memcpy(v.operands, v.in, len);
	memcpy(v.model, v.before, len);
	st_copy(r, off, NULL, v.before, len);
	st_copy(r, off - 1, v.guard, NULL, 1);
	st_copy(r, off + len, v.guard + 1, NULL, 1);
	for (i = 0; i < len; i += size)
		am_do[a.datatype](a.op, v.model + i, v.in + i, v.cmp + i);

	a.operands = a.op == FI_ATOMIC_READ ? NULL : v.operands;
	a.compare = a.call == FI_COMPARE_ATOMIC ? v.cmp : NULL;
	a.results = a.call ? v.operands : NULL;
	st_do(r, off, len, a);
	st_copy(r, off - 1, v.after, NULL, len + 2);
	KUNIT_EXPECT_MEMEQ(test, v.after + 1, v.model, len);
	KUNIT_EXPECT_EQ(test, v.after[0], v.guard[0]);
	KUNIT_EXPECT_EQ(test, v.after[len + 1], v.guard[1]);
	KUNIT_EXPECT_MEMEQ(test, v.operands, a.call ? v.before : v.in, len);
}

/* Everything there is, on each side of the seams and across them */
static void st_model_test(struct kunit *test)
{
	struct st_region *r = st_region(test);
	const u64 offs[] = {
		8, 64 - 8, 64 - 24, 64 + PAGE_SIZE - 8 - 24,
		64 + 2 * PAGE_SIZE - 8 - 16, r->mr.len - 8 * ST_COUNT - 8,
	};
	struct kofi_atomic a = {};
	struct rnd_state rnd;
	int i, n, done = 0;

	prandom_seed_state(&rnd, 815);
	for (i = 0; i < AM_CALLS; i++) {
		a.call = am_calls[i];
		for (a.datatype = FI_INT8; a.datatype <= FI_UINT64; a.datatype++) {
			for (a.op = FI_MIN; a.op <= FI_DIFF; a.op++) {
				if (!kofi_atomic_op_fits(a.op, a.call))
					continue;
				for (n = 0; n < ST_ROUNDS; n++)
					st_check(test, r, &rnd, &a,
						 offs[n % ARRAY_SIZE(offs)]);
				done++;
			}
		}
	}
	/* twelve, with a read thirteen, seven that compare */
	KUNIT_EXPECT_EQ(test, done, 8 * (12 + 13 + 7));
}

/* -------------------------------------------------------- at the same time */

struct st_thread {
	struct st_region	*r;
	enum fi_datatype	datatype;
	bool			local;	/* as other code of the kernel does it */
	struct completion	*go;
	struct completion	done;
};

static void st_add_local(void *mem, enum fi_datatype datatype)
{
	u16 seen = READ_ONCE(*(u16 *)mem);
	u8 byte = READ_ONCE(*(u8 *)mem);

	switch (datatype) {
	case FI_UINT8:
		while (!try_cmpxchg((u8 *)mem, &byte, byte + 1))
			;
		break;
	case FI_UINT16:
		while (!try_cmpxchg((u16 *)mem, &seen, seen + 1))
			;
		break;
	case FI_UINT32:
		atomic_inc(mem);
		break;
	default:
		atomic64_inc(mem);
	}
}

static int st_thread(void *arg)
{
	static const u64 one = 1;
	const u8 *low = (const u8 *)&one;
	struct st_thread *w = arg;
	size_t size = kofi_datatype_size(w->datatype);
	struct kofi_atomic a = { .datatype = w->datatype, .op = FI_SUM };
	int i;

	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		low += sizeof(one) - size;
	wait_for_completion(w->go);
	for (i = 0; i < ST_SUMS; i++) {
		a.operands = low;
		if (w->local)
			st_add_local(st_at(w->r, 8), w->datatype);
		else
			st_do(w->r, 8, size, a);
		if (!(i % 512))
			cond_resched();
	}
	complete(&w->done);
	return 0;
}

/* Peers and local code add to one word: none of it is lost. */
static void st_contended(struct kunit *test, enum fi_datatype datatype)
{
	struct st_thread *w = kunit_kcalloc(test, ST_THREADS, sizeof(*w),
					    GFP_KERNEL);
	u64 sum = (u64)ST_THREADS * ST_SUMS;
	struct st_region *r = st_region(test);
	DECLARE_COMPLETION_ONSTACK(go);
	u64 is = 0, none = 0;
	size_t size = kofi_datatype_size(datatype);
	struct task_struct *task[ST_THREADS];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	st_copy(r, 8, NULL, (u8 *)&none, 8);
	for (i = 0; i < ST_THREADS; i++) {
		w[i] = (struct st_thread) {
			.r = r, .datatype = datatype, .local = i & 1, .go = &go,
		};
		init_completion(&w[i].done);
		task[i] = fake_thread(test, st_thread, &w[i]);
	}
	complete_all(&go);
	while (i--) {
		wait_for_completion(&w[i].done);
		fake_join(task[i]);
	}
	st_copy(r, 8, (u8 *)&is + (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ?
				   8 - size : 0), NULL, size);
	if (size < 8)
		sum &= BIT_ULL(8 * size) - 1;
	KUNIT_EXPECT_EQ(test, is, sum);
}

static void st_contended_test(struct kunit *test)
{
	st_contended(test, FI_UINT8);
	st_contended(test, FI_UINT16);
	st_contended(test, FI_UINT32);
	st_contended(test, FI_UINT64);
}

static struct kunit_case st_cases[] = {
	KUNIT_CASE(st_model_test),
	KUNIT_CASE_SLOW(st_contended_test),
	{}
};

struct kunit_suite kofi_soft_atomic_suite = {
	.name		= "lib_soft_atomic",
	.test_cases	= st_cases,
};
