// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi/lib/vec.c: every kind of vector, read and written through a cursor in
 * pieces of every size, is the same bytes in the same order.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <linux/kofi/lib.h>

#include "../kunit.h"

#define VEC_PAGES	4
#define VEC_BYTES	(VEC_PAGES * PAGE_SIZE)
#define VEC_SEGS	40	/* more than a cursor's window */

/* How memory is cut into segments */
struct vec_case {
	const char	*name;
	enum kofi_vec	vec;
	unsigned int	segs;
	unsigned int	first;		/* bytes left out at the start */
	unsigned int	size;		/* of a segment */
	unsigned int	gap;		/* between segments */
	unsigned int	empty;		/* every so many segments is empty */
	enum kofi_vec	inner;		/* of an iterator */
};

static const struct vec_case vec_cases_table[] = {
	{ "kvec, none", KOFI_KVEC, 0 },
	{ "kvec, one", KOFI_KVEC, 1, 0, 1000 },
	{ "kvec, one empty", KOFI_KVEC, 1, 0, 0 },
	{ "kvec, 16 odd ones", KOFI_KVEC, 16, 3, 37, 5 },
	{ "kvec, 16 with empty ones", KOFI_KVEC, 16, 1, 101, 0, 3 },
	{ "bvec, one", KOFI_BVEC, 1, 10, 1000 },
	{ "bvec, over pages", KOFI_BVEC, 3, 100, 5000 },
	{ "bvec, 16 odd ones", KOFI_BVEC, 16, 7, 61, 11 },
	{ "sgl, none", KOFI_SGL, 0 },
	{ "sgl, one", KOFI_SGL, 1, 5, 700 },
	{ "sgl, over pages", KOFI_SGL, 3, 100, 5000 },
	{ "sgl, one window", KOFI_SGL, 16, 0, 64 },
	{ "sgl, one more than a window", KOFI_SGL, 17, 0, 64 },
	{ "sgl, 40 odd ones", KOFI_SGL, VEC_SEGS, 3, 97, 4 },
	{ "sgl, 40 with empty ones", KOFI_SGL, VEC_SEGS, 3, 97, 0, 2 },
	{ "iter of kvec", KOFI_ITER, 16, 3, 37, 5, 0, KOFI_KVEC },
	{ "iter of bvec", KOFI_ITER, 16, 7, 61, 11, 0, KOFI_BVEC },
	{ "iter of more than 16", KOFI_ITER, VEC_SEGS, 7, 61, 3, 0, KOFI_KVEC },
};

static void vec_case_desc(const struct vec_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vec_case, vec_cases_table, vec_case_desc);

struct vec {
	u8			*mem;		/* VEC_BYTES, whole pages */
	u8			*flat;		/* its segments, one after the other */
	size_t			len;
	struct kvec		kv[VEC_SEGS];
	struct bio_vec		bv[VEC_SEGS];
	struct scatterlist	sg[VEC_SEGS];
	struct iov_iter		iter;
	struct fi_msg		msg;
	struct kofi_cursor	cur;
};

static u8 vec_byte(size_t i)
{
	return i * 7 + (i >> 8);
}

static int vec_init(struct kunit *test)
{
	struct vec *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	test->priv = v;
	v->flat = kunit_kzalloc(test, VEC_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, v->flat);
	v->mem = alloc_pages_exact(VEC_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, v->mem);
	for (i = 0; i < VEC_BYTES; i++)
		v->mem[i] = vec_byte(i);
	return 0;
}

static void vec_exit(struct kunit *test)
{
	struct vec *v = test->priv;

	if (v && v->mem)
		free_pages_exact(v->mem, VEC_BYTES);
}

/* Describe the memory as the case says. */
static void vec_build(struct vec *v, const struct vec_case *c, unsigned int dir)
{
	size_t off = c->first;
	unsigned int i;

	v->len = 0;
	sg_init_table(v->sg, VEC_SEGS);
	for (i = 0; i < c->segs; i++) {
		size_t n = c->empty && i % c->empty == 0 ? 0 : c->size;
		u8 *p = v->mem + off;

		v->kv[i] = (struct kvec) { .iov_base = p, .iov_len = n };
		bvec_set_virt(&v->bv[i], p, n);
		sg_set_buf(&v->sg[i], p, n);
		memcpy(v->flat + v->len, p, n);
		v->len += n;
		off += n + c->gap;
	}

	memset(&v->msg, 0, sizeof(v->msg));
	v->msg.vec = c->vec;
	v->msg.iov_count = c->segs;
	switch (c->vec) {
	case KOFI_KVEC:
		v->msg.msg_iov = v->kv;
		break;
	case KOFI_BVEC:
		v->msg.msg_bvec = v->bv;
		break;
	case KOFI_SGL:
		v->msg.msg_sgl = v->sg;
		break;
	default:
		if (c->inner == KOFI_KVEC)
			iov_iter_kvec(&v->iter, dir, v->kv, c->segs, v->len);
		else
			iov_iter_bvec(&v->iter, dir, v->bv, c->segs, v->len);
		v->msg.msg_iter = &v->iter;
		break;
	}
}

/* Read through the cursor in steps of every size. */
static void vec_read(struct kunit *test)
{
	static const size_t steps[] = { 1, 2, 3, 7, 64, 100, 4096, 1 << 20 };
	const struct vec_case *c = test->param_value;
	struct vec *v = test->priv;
	u8 *out = kunit_kzalloc(test, VEC_BYTES, GFP_KERNEL);
	int s;

	KUNIT_ASSERT_NOT_NULL(test, out);
	for (s = 0; s < ARRAY_SIZE(steps); s++) {
		size_t done = 0;

		vec_build(v, c, ITER_SOURCE);
		memset(out, 0, VEC_BYTES);
		KUNIT_ASSERT_EQ(test, kofi_cursor_init(&v->cur, &v->msg,
						       ITER_SOURCE, 16), 0);
		KUNIT_EXPECT_EQ(test, v->cur.len, v->len);
		/* the arrays were the caller's, for the time of the call */
		memset(&v->msg, 0xff, sizeof(v->msg));
		if (c->vec == KOFI_KVEC)
			memset(v->kv, 0xff, sizeof(v->kv));
		if (c->vec == KOFI_BVEC)
			memset(v->bv, 0xff, sizeof(v->bv));
		if (c->vec == KOFI_ITER)
			memset(&v->iter, 0xff, sizeof(v->iter));

		while (v->cur.left) {
			struct iov_iter iter = *kofi_cursor_iter(&v->cur);
			size_t n = min(iov_iter_count(&iter), steps[s]);

			KUNIT_ASSERT_NE(test, n, 0);
			KUNIT_ASSERT_EQ(test, copy_from_iter(out + done, n,
							     &iter), n);
			kofi_cursor_used(&v->cur, n);
			done += n;
		}
		KUNIT_EXPECT_EQ(test, done, v->len);
		KUNIT_EXPECT_EQ(test, iov_iter_count(kofi_cursor_iter(&v->cur)),
				0);
		KUNIT_EXPECT_EQ(test, memcmp(out, v->flat, v->len), 0);
	}
}

/* Read into a buffer in steps of every size, and again from the buffer. */
static void vec_read_buffer(struct kunit *test)
{
	static const size_t steps[] = { 1, 7, 100, 4096, 1 << 20 };
	const struct vec_case *c = test->param_value;
	struct vec *v = test->priv;
	u8 *out = kunit_kzalloc(test, 2 * VEC_BYTES, GFP_KERNEL);
	u8 *again = out + VEC_BYTES;
	size_t n, done;
	int s;

	KUNIT_ASSERT_NOT_NULL(test, out);
	for (s = 0; s < ARRAY_SIZE(steps); s++) {
		vec_build(v, c, ITER_SOURCE);
		memset(out, 0, 2 * VEC_BYTES);
		KUNIT_ASSERT_EQ(test, kofi_cursor_init(&v->cur, &v->msg,
						       ITER_SOURCE, 16), 0);
		for (done = 0; v->cur.left; done += n) {
			n = min(v->cur.left, steps[s]);
			KUNIT_ASSERT_EQ(test, kofi_cursor_read(&v->cur, out + done,
							       n), 0);
		}
		KUNIT_EXPECT_EQ(test, done, v->len);
		KUNIT_EXPECT_EQ(test, memcmp(out, v->flat, v->len), 0);
		KUNIT_EXPECT_EQ(test, kofi_cursor_read(&v->cur, again, 1), -EFAULT);

		kofi_cursor_replace(&v->cur, out);
		KUNIT_EXPECT_EQ(test, v->cur.left, v->len);
		KUNIT_EXPECT_EQ(test, kofi_cursor_read(&v->cur, again, v->len), 0);
		KUNIT_EXPECT_EQ(test, memcmp(again, v->flat, v->len), 0);
		KUNIT_EXPECT_EQ(test, v->cur.left, 0);
	}
}

#define VEC_GATHER	5	/* elements, of which the first is the header's */

/* Collect the next segments of a cursor. Returns their bytes, compared with @flat. */
static size_t vec_gather(struct kunit *test, size_t most, const u8 *flat)
{
	struct vec *v = test->priv;
	const struct iov_iter *from = kofi_cursor_iter(&v->cur);
	size_t len = min(iov_iter_count(from), most), got, done = 0, bad = 0;
	struct kvec kv[VEC_GATHER + 1] = {};
	struct bio_vec bv[VEC_GATHER + 1] = {};
	bool pages = iov_iter_is_bvec(from);
	unsigned int n = 1, i;

	got = pages ? kofi_gather_bvec(from, len, bv, &n, VEC_GATHER) :
		      kofi_gather_kvec(from, len, kv, &n, VEC_GATHER, false);
	KUNIT_EXPECT_TRUE(test, n <= VEC_GATHER && (got == len || n == VEC_GATHER));
	for (i = 1; i < n; done += pages ? bv[i].bv_len : kv[i].iov_len, i++) {
		const void *base = pages ? bvec_virt(&bv[i]) : kv[i].iov_base;
		size_t bytes = pages ? bv[i].bv_len : kv[i].iov_len;

		bad += !bytes || memcmp(base, flat + done, bytes);
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	KUNIT_EXPECT_EQ(test, done, got);
	return got;
}

/* Collect all segments, a few at a time. */
static void vec_gather_all(struct kunit *test)
{
	static const size_t steps[] = { 1, 30, 1000, 1 << 20 };
	const struct vec_case *c = test->param_value;
	struct vec *v = test->priv;
	size_t n, done;
	int s;

	for (s = 0; s < ARRAY_SIZE(steps); s++) {
		vec_build(v, c, ITER_SOURCE);
		KUNIT_ASSERT_EQ(test, kofi_cursor_init(&v->cur, &v->msg,
						       ITER_SOURCE, 16), 0);
		for (done = 0; v->cur.left; done += n) {
			n = vec_gather(test, steps[s], v->flat + done);
			KUNIT_ASSERT_NE(test, n, 0);
			kofi_cursor_used(&v->cur, n);
		}
		KUNIT_EXPECT_EQ(test, done, v->len);
	}
}

/* Each page of vmalloc memory counts for a device. */
static void vec_gather_vmalloc(struct kunit *test)
{
	u8 *mem = vmalloc(VEC_PAGES * PAGE_SIZE);
	struct kvec from = { .iov_base = mem + 100, .iov_len = VEC_BYTES - 100 };
	struct kvec kv[VEC_PAGES] = {};
	struct iov_iter iter;
	unsigned int n = 1;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	iov_iter_kvec(&iter, ITER_SOURCE, &from, 1, from.iov_len);
	KUNIT_EXPECT_EQ(test, kofi_gather_kvec(&iter, from.iov_len, kv, &n,
					       VEC_PAGES, true),
			(VEC_PAGES - 1) * PAGE_SIZE - 100);
	KUNIT_EXPECT_EQ(test, n, 2);
	n = 1;
	KUNIT_EXPECT_EQ(test, kofi_gather_kvec(&iter, from.iov_len, kv, &n,
					       VEC_PAGES, false), from.iov_len);
	KUNIT_EXPECT_EQ(test, n, 2);
	vfree(mem);
}

/* A packet with a linear part, page fragments and a fragment list */
static struct sk_buff *vec_skb(struct kunit *test, size_t len)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL), *frag;
	size_t done = 0, n;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	n = min_t(size_t, len, 200);
	for (i = 0; i < n; i++)
		((u8 *)skb_put(skb, 1))[0] = vec_byte(done++) ^ 0x5a;
	for (i = 0; i < 4 && done < len; i++) {
		struct page *page = alloc_page(GFP_KERNEL);
		u8 *p;
		size_t j;

		KUNIT_ASSERT_NOT_NULL(test, page);
		n = min_t(size_t, len - done, 1500);
		p = page_address(page) + 33;
		for (j = 0; j < n; j++)
			p[j] = vec_byte(done++) ^ 0x5a;
		skb_add_rx_frag(skb, i, page, 33, n, PAGE_SIZE);
	}
	if (done == len)
		return skb;
	n = len - done;
	frag = alloc_skb(n, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, frag);
	for (i = 0; i < n; i++)
		((u8 *)skb_put(frag, 1))[0] = vec_byte(done++) ^ 0x5a;
	skb_shinfo(skb)->frag_list = frag;
	skb->len += n;
	skb->data_len += n;
	return skb;
}

/* Check that the segments have the bytes of a packet from offset 10, and gaps none. */
static void vec_check_placed(struct kunit *test)
{
	const struct vec_case *c = test->param_value;
	struct vec *v = test->priv;
	size_t i, bad = 0;

	vec_build(v, c, ITER_DEST);
	for (i = 0; i < v->len; i++)
		bad += v->flat[i] != (u8)(vec_byte(10 + i) ^ 0x5a);
	KUNIT_EXPECT_EQ(test, bad, 0);
	for (i = 0; i < c->first; i++)
		bad += v->mem[i] != 0;
	for (i = 0; c->gap && !c->empty && i + 1 < c->segs; i++)
		bad += v->mem[c->first + (i + 1) * (c->size + c->gap) - 1] != 0;
	KUNIT_EXPECT_EQ(test, bad, 0);
}

/* Place packets through the cursor, in steps, from odd offsets. */
static void vec_write(struct kunit *test)
{
	static const size_t steps[] = { 1, 3, 64, 1499, 1 << 20 };
	const struct vec_case *c = test->param_value;
	struct vec *v = test->priv;
	struct sk_buff *skb;
	int s;

	vec_build(v, c, ITER_DEST);
	skb = vec_skb(test, v->len + 10);
	for (s = 0; s < ARRAY_SIZE(steps); s++) {
		struct kofi_skb_part from;
		size_t done = 0;

		kofi_skb_part_init(&from, skb, 10, v->len);
		memset(v->mem, 0, VEC_BYTES);
		vec_build(v, c, ITER_DEST);
		KUNIT_ASSERT_EQ(test, kofi_cursor_init(&v->cur, &v->msg,
						       ITER_DEST, 16), 0);
		while (v->cur.left) {
			size_t n = min(v->cur.left, steps[s]);

			if (kofi_cursor_copy_from_skb(&v->cur, &from, n))
				break;
			from.offset += n;
			done += n;
		}
		KUNIT_EXPECT_EQ(test, done, v->len);
		vec_check_placed(test);
	}
	kfree_skb(skb);
}

/* Write a buffer in steps. The last step has more bytes than the memory takes. */
static void vec_write_buffer(struct kunit *test)
{
	static const size_t steps[] = { 1, 3, 64, 1499, 1 << 20 };
	const struct vec_case *c = test->param_value;
	struct vec *v = test->priv;
	u8 *from = kunit_kzalloc(test, VEC_BYTES, GFP_KERNEL);
	size_t i, n, done;
	int s;

	KUNIT_ASSERT_NOT_NULL(test, from);
	for (i = 0; i < VEC_BYTES; i++)
		from[i] = vec_byte(10 + i) ^ 0x5a;
	for (s = 0; s < ARRAY_SIZE(steps); s++) {
		memset(v->mem, 0, VEC_BYTES);
		vec_build(v, c, ITER_DEST);
		KUNIT_ASSERT_EQ(test, kofi_cursor_init(&v->cur, &v->msg,
						       ITER_DEST, 16), 0);
		for (done = 0; done < v->len; done += n) {
			n = min(VEC_BYTES - done, steps[s]);
			KUNIT_ASSERT_EQ(test, kofi_cursor_write(&v->cur, from + done,
								n), 0);
		}
		KUNIT_EXPECT_EQ(test, v->cur.left, 0);
		KUNIT_EXPECT_EQ(test, kofi_cursor_write(&v->cur, from, 1), 0);
		vec_check_placed(test);
	}
}

/* An iterator that is used up points behind its segments, or nowhere. */
static void vec_write_nothing(struct kunit *test)
{
	struct vec *v = test->priv;
	struct fi_msg msg = { .vec = KOFI_ITER, .msg_iter = &v->iter };
	struct sk_buff *skb = vec_skb(test, 10);
	struct kofi_skb_part from;

	kofi_skb_part_init(&from, skb, 0, 10);
	iov_iter_kvec(&v->iter, ITER_DEST, NULL, 0, 0);
	KUNIT_ASSERT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_DEST, 16),
			0);
	KUNIT_EXPECT_EQ(test, kofi_cursor_copy_from_skb(&v->cur, &from, 0), 0);
	KUNIT_EXPECT_EQ(test, kofi_cursor_copy_from_skb(&v->cur, &from, 1),
			-EFAULT);
	kfree_skb(skb);
}

/* What a post must be refused for */
static void vec_refused(struct kunit *test)
{
	struct vec *v = test->priv;
	static const struct vec_case seventeen = {
		"", KOFI_KVEC, 17, 0, 8,
	};
	struct fi_msg msg = {};

	vec_build(v, &seventeen, ITER_SOURCE);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &v->msg, ITER_SOURCE,
					       16), -EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &v->msg, ITER_SOURCE,
					       100), -EINVAL);
	v->msg.iov_count = 5;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &v->msg, ITER_SOURCE,
					       4), -EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &v->msg, ITER_SOURCE,
					       5), 0);
	v->kv[1].iov_len = SIZE_MAX;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &v->msg, ITER_SOURCE,
					       5), -EINVAL);
	KUNIT_EXPECT_EQ(test, v->cur.left, 0);

	msg.iov_count = 1;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
	msg.vec = KOFI_SGL;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
	/* a list that ends before the count does */
	msg.msg_sgl = v->sg;
	sg_mark_end(&v->sg[2]);
	msg.iov_count = 4;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
	msg.vec = KOFI_SGL_MAPPED;
	msg.iov_count = 1;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
	msg.vec = 77;
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
}

static void vec_iter_refused(struct kunit *test)
{
	struct vec *v = test->priv;
	struct fi_msg msg = { .vec = KOFI_ITER };

	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
	msg.msg_iter = &v->iter;
	v->kv[0] = (struct kvec) { .iov_base = v->mem, .iov_len = 8 };
	iov_iter_kvec(&v->iter, ITER_DEST, v->kv, 1, 8);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_SOURCE, 5),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_DEST, 5), 0);
	iov_iter_ubuf(&v->iter, ITER_DEST, NULL, 8);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_DEST, 5),
			-EINVAL);
	iov_iter_discard(&v->iter, ITER_DEST, 8);
	KUNIT_EXPECT_EQ(test, kofi_cursor_init(&v->cur, &msg, ITER_DEST, 5), 0);
	KUNIT_EXPECT_EQ(test, v->cur.left, 8);
}

/* Segments of a peer: their number, and the sum of their lengths */
static void vec_remote(struct kunit *test)
{
	static const struct {
		u64	len[5];
		size_t	count;
		size_t	local;
		int	err;
	} cases[] = {
		{ { 100 }, 1, 100, 0 },
		{ { 0 }, 1, 0, 0 },
		{ { 60, 0, 40 }, 3, 100, 0 },
		{ { 25, 25, 25, 25 }, 4, 100, 0 },
		{ { 20, 20, 20, 20, 20 }, 5, 100, -EINVAL },
		{ { 0 }, 0, 0, -EINVAL },
		{ { 99 }, 1, 100, -EINVAL },
		{ { 101 }, 1, 100, -EINVAL },
		{ { U64_MAX, 101 }, 2, 100, -EINVAL },
	};
	struct fi_rma_iov rma[5], copy[5];
	int i, k;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(copy, 0x77, sizeof(copy));
		for (k = 0; k < ARRAY_SIZE(rma); k++)
			rma[k] = (struct fi_rma_iov) {
				.addr = 1000 + k, .len = cases[i].len[k], .key = 10 + k,
			};
		KUNIT_EXPECT_EQ_MSG(test, kofi_rma_check(rma, cases[i].count, 4,
							 cases[i].local, NULL),
				    cases[i].err, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, kofi_rma_check(rma, cases[i].count, 4,
							 cases[i].local, copy),
				    cases[i].err, "case %d", i);
		if (!cases[i].err)
			KUNIT_EXPECT_EQ(test, memcmp(copy, rma, cases[i].count *
						     sizeof(rma[0])), 0);
		KUNIT_EXPECT_NULL(test, memchr_inv(&copy[4], 0x77, sizeof(copy[4])));
	}
	KUNIT_EXPECT_EQ(test, kofi_rma_check(NULL, 1, 4, 100, copy), -EINVAL);
}

static struct kunit_case vec_cases[] = {
	KUNIT_CASE_PARAM(vec_read, vec_case_gen_params),
	KUNIT_CASE_PARAM(vec_read_buffer, vec_case_gen_params),
	KUNIT_CASE_PARAM(vec_gather_all, vec_case_gen_params),
	KUNIT_CASE(vec_gather_vmalloc),
	KUNIT_CASE_PARAM(vec_write, vec_case_gen_params),
	KUNIT_CASE_PARAM(vec_write_buffer, vec_case_gen_params),
	KUNIT_CASE(vec_write_nothing),
	KUNIT_CASE(vec_refused),
	KUNIT_CASE(vec_iter_refused),
	KUNIT_CASE(vec_remote),
	{}
};

static struct kunit_suite vec_suite = {
	.name = "lib_vec",
	.init = vec_init,
	.exit = vec_exit,
	.test_cases = vec_cases,
};

kunit_test_suite(vec_suite);
