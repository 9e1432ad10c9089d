// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 8 and 13: reads and writes of a peer's memory, in all sizes and from
 * all kinds of vectors, several pieces at a time on both sides; and what is
 * refused, here or by the peer.
 */

#include <linux/bvec.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "contract.h"

#define RT_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define RT_BOTH		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define RT_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | \
			 FI_WRITE | RT_BOTH)
#define RT_REGIONS	16
#define RT_REGION	SZ_1M	/* what every device takes in one */
#define RT_SEGS		12
#define RT_FILL		0xa5		/* what has not been written to */

/* Side 0 reads and writes regions of side 1. */
struct rt_test {
	struct ct_pair		*p;
	u8			*mem;		/* the regions, in a row */
	u8			*local;		/* as much of side 0 */
	struct fid_mr		*mr[RT_REGIONS];
	unsigned int		nr;
	struct rnd_state	rnd;
};

/* One operation, as ct_post_fn() is given it */
struct rt_op {
	struct fi_msg_rma	msg;
	bool			read;
	u64			flags;
};

/* What a test that was ended early has left; nothing could be closed otherwise. */
static void rt_close_regions(void *arg)
{
	struct rt_test *t = arg;
	int i;

	for (i = 0; i < t->nr; i++) {
		if (t->mr[i])
			KUNIT_EXPECT_EQ(t->p->test, fi_close(&t->mr[i]->fid),
					0);
		t->mr[i] = NULL;
	}
}

static struct rt_test *rt_open_opts(struct kunit *test,
				    const struct ct_opts *opts,
				    unsigned int regions, u64 access)
{
	struct rt_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->p = ct_pair_open(test, opts);
	t->mem = ct_buf(t->p, regions * RT_REGION);
	t->local = ct_buf(t->p, regions * RT_REGION + PAGE_SIZE);
	t->nr = regions;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rt_close_regions,
							t), 0);
	prandom_seed_state(&t->rnd, 4711);
	for (i = 0; i < regions; i++)
		KUNIT_ASSERT_EQ(test, fi_mr_reg(t->p->domain,
						t->mem + i * RT_REGION,
						RT_REGION, access, 0, 0, 0,
						&t->mr[i], NULL), 0);
	return t;
}

static struct rt_test *rt_open_as(struct kunit *test, enum ct_mode mode,
				  unsigned int regions, u64 access)
{
	const struct ct_opts opts = {
		.mode = mode, .mr_mode = RT_MR_MODE,
		.caps = RT_CAPS,
	};

	return rt_open_opts(test, &opts, regions, access);
}

static struct rt_test *rt_open(struct kunit *test, unsigned int regions)
{
	return rt_open_as(test, ct_mode_of(test), regions, RT_BOTH);
}

static void rt_close(struct kunit *test, struct rt_test *t)
{
	rt_close_regions(t);
	ct_pair_close(t->p);
}

/* A piece of the peer's memory */
static struct fi_rma_iov rt_peer(struct rt_test *t, int region, size_t off,
				 size_t len)
{
	return (struct fi_rma_iov) {
		.addr = kofi_mr_base(t->mr[region]) + off, .len = len,
		.key = fi_mr_key(t->mr[region]),
	};
}

static ssize_t rt_post_fn(struct fid_ep *ep, void *context, void *arg)
{
	struct rt_op *o = arg;

	o->msg.context = context;
	return o->read ? fi_readmsg(ep, &o->msg, o->flags) :
			 fi_writemsg(ep, &o->msg, o->flags);
}

/* Post, as soon as there is room. */
static noinline_for_stack void rt_post_on(struct rt_test *t, int side,
					  struct ct_op *op, struct rt_op *o)
{
	ssize_t ret;

	ct_wait(t->p, (ret = ct_post_fn(t->p, side, op, rt_post_fn, o)) !=
		      -EAGAIN, CT_TIMEOUT_MS);
	KUNIT_ASSERT_EQ(t->p->test, ret, 0);
}

static struct ct_op *rt_post(struct kunit *test, struct rt_test *t,
			     struct rt_op *o)
{
	struct ct_op *op = ct_op(t->p);

	o->flags |= FI_COMPLETION;
	rt_post_on(t, 0, op, o);
	return op;
}

/* Post and wait for an end with an error, or 0. */
static noinline_for_stack void rt_do_err(struct kunit *test, struct rt_test *t,
					 struct rt_op *o, int err)
{
	struct ct_op *op = rt_post(test, t, o);

	KUNIT_ASSERT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, err);
	KUNIT_EXPECT_EQ(test, op->wc.flags,
			FI_RMA | (o->read ? FI_READ : FI_WRITE));
}

static void rt_do(struct kunit *test, struct rt_test *t, struct rt_op *o)
{
	rt_do_err(test, t, o, 0);
}

static void rt_simple(struct kunit *test, struct rt_test *t, bool read,
		      void *buf, struct fi_rma_iov rma, u64 flags)
{
	const struct kvec kv = { buf, rma.len };
	struct rt_op o = {
		.msg = {
			.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
			.rma_iov_count = 1,
		},
		.read = read, .flags = flags,
	};

	rt_do(test, t, &o);
}

/* It may answer a read of no bytes with some, so that is refused. */
static bool rt_siw(void)
{
	return !strcmp(ct_device, "siw");
}

static bool rt_filled(const u8 *mem, size_t len)
{
	return !len || (*mem == RT_FILL && !memcmp(mem, mem + 1, len - 1));
}

/* ------------------------------------------------------------------- sizes */

/* Written, read back, and nothing beside it touched on either side */
static void rma_sizes(struct kunit *test)
{
	static const size_t sizes[] = {
		0, 1, 3, 8, 63, 128, 129, 511, 4095, 4096, 4097, 9000, 65535,
		65537, RT_REGION - 8192,
	};
	static const size_t offs[] = { 0, 1, 509, 4095 };
	struct rt_test *t = rt_open(test, 1);
	int i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (j = 0; j < ARRAY_SIZE(offs); j++) {
			size_t len = sizes[i], off = offs[j];
			size_t own = offs[(i + j) % ARRAY_SIZE(offs)];
			size_t most = min_t(size_t, RT_REGION, len + 8192);
			u8 *mem = t->mem + off, *buf = t->local + own;

			memset(t->mem, RT_FILL, most);
			ct_pattern(buf, len, i);
			rt_simple(test, t, false, buf, rt_peer(t, 0, off, len),
				  0);
			memset(t->local, RT_FILL, most);
			if (len || !rt_siw())
				rt_simple(test, t, true, buf,
					  rt_peer(t, 0, off, len), 0);
			KUNIT_EXPECT_TRUE(test, ct_pattern_ok(buf, len, i));
			KUNIT_EXPECT_TRUE(test, ct_pattern_ok(mem, len, i));
			KUNIT_EXPECT_TRUE(test, rt_filled(t->mem, off));
			KUNIT_EXPECT_TRUE(test, rt_filled(mem + len, most - off -
							  len));
			KUNIT_EXPECT_TRUE(test, rt_filled(t->local, own));
			KUNIT_EXPECT_TRUE(test, rt_filled(buf + len, most - own -
							  len));
		}
	}
	rt_close(test, t);
}

/* 16 MiB, as many regions at a time as one operation takes, all under way */
static void rma_large(struct kunit *test)
{
	struct rt_test *t = rt_open(test, RT_REGIONS);
	size_t limit = t->p->info->tx_attr->rma_iov_limit;
	u8 *buf = t->local + 77;
	int read, i, j;

	KUNIT_ASSERT_GE(test, limit, 1UL);
	limit = min_t(size_t, limit, 4);
	ct_pattern(buf, RT_REGIONS * RT_REGION, 3);
	for (read = 0; read < 2; read++) {
		for (i = 0; i < RT_REGIONS; i += limit) {
			const struct kvec kv = {
				buf + i * RT_REGION, limit * RT_REGION
			};
			struct fi_rma_iov rma[4];
			struct rt_op o = {
				.msg = {
					.msg_iov = &kv, .iov_count = 1,
					.rma_iov = rma, .rma_iov_count = limit,
				},
				.read = read,
			};

			for (j = 0; j < limit; j++)
				rma[j] = rt_peer(t, i + j, 0, RT_REGION);
			rt_post(test, t, &o);
		}
		KUNIT_ASSERT_TRUE(test, ct_wait(t->p, ct_all_done(t->p),
						3 * CT_TIMEOUT_MS));
		if (!read)
			memset(buf, 0, RT_REGIONS * RT_REGION);
	}
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(t->mem, RT_REGIONS * RT_REGION,
					      3));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(buf, RT_REGIONS * RT_REGION, 3));
	rt_close(test, t);
}

/* ----------------------------------------------------------------- vectors */

/* The same segments as each kind of vector */
struct rt_vec {
	struct kvec		kv[RT_SEGS];
	struct bio_vec		bv[RT_SEGS];
	struct scatterlist	sg[RT_SEGS];
	struct iov_iter		iter;
	size_t			len;
};

static struct page *rt_page(const void *buf)
{
	return is_vmalloc_addr(buf) ? vmalloc_to_page(buf) : virt_to_page(buf);
}

/* Segments inside of pages, in a row in memory with holes between them */
static void rt_vec(struct rt_test *t, struct rt_vec *v, u8 *buf)
{
	int i;

	v->len = 0;
	sg_init_table(v->sg, RT_SEGS);
	for (i = 0; i < RT_SEGS; i++, buf += PAGE_SIZE) {
		size_t off = prandom_u32_state(&t->rnd) % 100;
		size_t len = prandom_u32_state(&t->rnd) % (PAGE_SIZE - off);

		/* some without holes, some without bytes */
		if (!(i % 4))
			off = 0;
		if (i % 4 == 1)
			len = PAGE_SIZE - off;
		if (i == 6)
			len = 0;
		v->kv[i] = (struct kvec) { buf + off, len };
		bvec_set_page(&v->bv[i], rt_page(buf), len, off);
		sg_set_page(&v->sg[i], rt_page(buf), len, off);
		v->len += len;
	}
}

static void rt_vec_use(struct rt_vec *v, enum kofi_vec kind, unsigned int dir,
		       struct fi_msg_rma *msg)
{
	msg->vec = kind;
	msg->iov_count = RT_SEGS;
	switch (kind) {
	case KOFI_KVEC:
		msg->msg_iov = v->kv;
		break;
	case KOFI_BVEC:
		msg->msg_bvec = v->bv;
		break;
	case KOFI_SGL:
		msg->msg_sgl = v->sg;
		break;
	default:
		iov_iter_bvec(&v->iter, dir, v->bv, RT_SEGS, v->len);
		msg->msg_iter = &v->iter;
	}
}

static void rt_vec_fill(struct rt_vec *v, u32 seed)
{
	int i;

	for (i = 0; i < RT_SEGS; i++)
		ct_pattern(v->kv[i].iov_base, v->kv[i].iov_len, seed + i);
}

/* Is what the peer's pieces have, one after the other, what the vector has? */
static bool rt_vec_same(const struct rt_vec *v, const u8 *mem)
{
	int i;

	for (i = 0; i < RT_SEGS; mem += v->kv[i].iov_len, i++)
		if (memcmp(mem, v->kv[i].iov_base, v->kv[i].iov_len))
			return false;
	return true;
}

/*
 * The peer's memory in pieces of several regions, one of them without bytes.
 * They are in a row there, so that a test can look at all of them at once.
 */
static size_t rt_pieces(struct rt_test *t, size_t len, struct fi_rma_iov *rma,
			size_t *count)
{
	size_t limit = min_t(size_t, t->p->info->tx_attr->rma_iov_limit, 4);
	size_t first = prandom_u32_state(&t->rnd) % len;

	if (limit < 4) {
		rma[0] = rt_peer(t, 0, 33, len);
		*count = 1;
		return 33;
	}
	rma[0] = rt_peer(t, 0, RT_REGION - first, first);
	rma[1] = rt_peer(t, 1, 5, 0);
	rma[2] = rt_peer(t, 1, 0, (len - first) / 2);
	rma[3] = rt_peer(t, 1, rma[2].len, len - first - rma[2].len);
	*count = 4;
	return RT_REGION - first;
}

static void rma_vectors(struct kunit *test)
{
	static const enum kofi_vec kinds[] = {
		KOFI_KVEC, KOFI_BVEC, KOFI_SGL, KOFI_ITER,
	};
	struct rt_test *t = rt_open(test, 2);
	struct rt_vec *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	u8 *far = vzalloc(RT_SEGS * PAGE_SIZE);
	size_t limit = t->p->info->tx_attr->iov_limit;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	KUNIT_ASSERT_NOT_NULL(test, far);
	for (i = 0; i < 8 * ARRAY_SIZE(kinds); i++) {
		struct fi_rma_iov rma[4];
		struct rt_op o = { .msg = { .rma_iov = rma } };
		enum kofi_vec kind = kinds[i % ARRAY_SIZE(kinds)];
		size_t off;

		/* an array no longer than the provider takes */
		if (limit < RT_SEGS && (kind == KOFI_KVEC || kind == KOFI_BVEC))
			continue;
		rt_vec(t, v, i & 8 ? far : t->local);
		off = rt_pieces(t, v->len, rma, &o.msg.rma_iov_count);
		rt_vec_fill(v, i);
		rt_vec_use(v, kind, ITER_SOURCE, &o.msg);
		rt_do(test, t, &o);

		/* another vector of as many bytes gets what the first one had */
		o.read = true;
		rt_vec_use(v, kind, ITER_DEST, &o.msg);
		memset(i & 8 ? far : t->local, 0, RT_SEGS * PAGE_SIZE);
		rt_do(test, t, &o);
		KUNIT_EXPECT_TRUE(test, rt_vec_same(v, t->mem + off));
		rt_vec_fill(v, i);
		KUNIT_EXPECT_TRUE(test, rt_vec_same(v, t->mem + off));
	}
	vfree(far);
	rt_close(test, t);
}

/* ------------------------------------------------------------ long vectors */

#define RT_MANY		1100	/* pieces, more than any device is asked for */

/* A vector of any length in vmalloc memory, every other page of it */
struct rt_long {
	u8			*mem;
	struct bio_vec		bv[RT_MANY];
	struct scatterlist	sg[RT_MANY];
	struct iov_iter		iter;
	unsigned int		nr;
	size_t			len;
};

static void rt_long_free(void *arg)
{
	struct rt_long *l = arg;

	vfree(l->mem);
	kvfree(l);
}

static struct rt_long *rt_long_alloc(struct kunit *test)
{
	struct rt_long *l = kvzalloc(sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->mem = vzalloc(2 * RT_MANY * PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rt_long_free, l),
			0);
	KUNIT_ASSERT_NOT_NULL(test, l->mem);
	return l;
}

/* Pieces of so many bytes, and every seventh without any */
static void rt_long_set(struct rt_long *l, unsigned int nr, size_t off,
			size_t len)
{
	unsigned int i;

	l->nr = nr;
	l->len = 0;
	sg_init_table(l->sg, nr);
	for (i = 0; i < nr; i++) {
		struct page *page = vmalloc_to_page(l->mem + 2 * i * PAGE_SIZE);
		size_t n = i % 7 == 3 ? 0 : len;

		bvec_set_page(&l->bv[i], page, n, off);
		sg_set_page(&l->sg[i], page, n, off);
		l->len += n;
	}
}

static u8 *rt_long_at(struct rt_long *l, unsigned int i)
{
	return l->mem + 2 * i * PAGE_SIZE + l->bv[i].bv_offset;
}

static void rt_long_use(struct rt_long *l, bool iter, bool read,
			struct fi_msg_rma *msg)
{
	msg->iov_count = l->nr;
	msg->vec = iter ? KOFI_ITER : KOFI_SGL;
	msg->msg_sgl = l->sg;
	iov_iter_bvec(&l->iter, read ? ITER_DEST : ITER_SOURCE, l->bv, l->nr,
		      l->len);
	if (iter)
		msg->msg_iter = &l->iter;
}

/*
 * How many pieces an access of kofi_rxm has on a device: 9 in each of 64 work requests,
 * or of what iWARP has instead, and is less, 9 and 16 blocks of 64.
 */
static unsigned int rt_layered(const struct rt_test *t)
{
	if (!ct_streams(t->p) || !ct_on_device(t->p))
		return UINT_MAX;
	return rt_siw() ? 9 + 16 * 64 : 9 * 64;
}

struct rt_shape {
	const char	*name;
	unsigned int	nr;
	size_t		off;
	size_t		len;
	bool		iter;
};

static const struct rt_shape rt_shapes[] = {
	{ "two pieces", 2, 100, 1000, false },
	{ "33 pieces", 33, 0, 512, true },
	{ "whole pages", 250, 0, PAGE_SIZE, false },
	{ "pages of an iterator", 250, 0, PAGE_SIZE, true },
	{ "1000 small ones", 1000, 4000, 64, false },
	{ "1000 single bytes", 1000, 4095, 1, true },
};

static void rt_shape_desc(const struct rt_shape *shape, char *desc)
{
	strscpy(desc, shape->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rt_shape, rt_shapes, rt_shape_desc);

/*
 * More pieces than a work request has segments: written, and read back. Where
 * who reads shows the memory to the peer, pieces with holes between them are
 * regions of their own, of which there are 32.
 */
static void rma_long(struct kunit *test)
{
	const struct rt_shape *shape = test->param_value;
	struct rt_test *t = rt_open_as(test, CT_SOFTIRQ, 1, RT_BOTH);
	struct rt_long *l = rt_long_alloc(test);
	struct rt_op o = { .msg = { .rma_iov_count = 1 } };
	struct fi_rma_iov rma;
	unsigned int i;
	u8 *at;

	rt_long_set(l, shape->nr, shape->off, shape->len);
	rma = rt_peer(t, 0, 5, l->len);
	o.msg.rma_iov = &rma;
	memset(t->mem, RT_FILL, RT_REGION);
	for (i = 0; i < l->nr; i++)
		ct_pattern(rt_long_at(l, i), l->bv[i].bv_len, i);
	rt_long_use(l, shape->iter, false, &o.msg);
	if (l->nr > rt_layered(t)) {
		rt_do_err(test, t, &o, EMSGSIZE);
		KUNIT_EXPECT_TRUE(test, rt_filled(t->mem, RT_REGION));
		rt_close(test, t);
		return;
	}
	rt_do(test, t, &o);
	/* a read behind it: then it has been placed, whatever the device says */
	rt_simple(test, t, true, t->local, rt_peer(t, 0, 0, 1), FI_FENCE);
	at = t->mem + 5;
	for (i = 0; i < l->nr; at += l->bv[i++].bv_len)
		if (!ct_pattern_ok(at, l->bv[i].bv_len, i))
			break;
	KUNIT_EXPECT_EQ(test, i, l->nr);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->mem, 5));
	KUNIT_EXPECT_TRUE(test, rt_filled(at, t->mem + RT_REGION - at));

	memset(l->mem, RT_FILL, 2 * RT_MANY * PAGE_SIZE);
	o.read = true;
	rt_long_use(l, shape->iter, true, &o.msg);
	if ((rt_siw() || t->p->info->ep_attr->protocol == FI_PROTO_IWARP) &&
	    shape->len < PAGE_SIZE && l->len / shape->len > 32) {
		if (ct_streams(t->p)) {
			rt_do_err(test, t, &o, EMSGSIZE);
			rt_close(test, t);
			return;
		}
		o.flags = FI_COMPLETION;
		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, ct_op(t->p),
						 rt_post_fn, &o), -EMSGSIZE);
		rt_close(test, t);
		return;
	}
	rt_do(test, t, &o);
	for (i = 0; i < l->nr; i++) {
		at = l->mem + 2 * i * PAGE_SIZE;
		if (!rt_filled(at, shape->off) ||
		    !ct_pattern_ok(rt_long_at(l, i), l->bv[i].bv_len, i) ||
		    !rt_filled(rt_long_at(l, i) + l->bv[i].bv_len,
			       2 * PAGE_SIZE - shape->off - l->bv[i].bv_len))
			break;
	}
	KUNIT_EXPECT_EQ(test, i, l->nr);
	rt_close(test, t);
}

/* Too many for a device, which refuses them again and again, and loses nothing */
static void rma_too_long(struct kunit *test)
{
	struct rt_test *t = rt_open(test, 1);
	struct rt_long *l = rt_long_alloc(test);
	struct rt_op o = {
		.msg = { .rma_iov_count = 1 }, .flags = FI_COMPLETION,
	};
	struct fi_rma_iov rma;
	int i;

	for (i = 0; i < 2 * RT_MANY; i++)
		l->mem[i * PAGE_SIZE] = i;
	/* and none of them empty */
	rt_long_set(l, RT_MANY, 0, 1);
	for (i = 0; i < RT_MANY; i++) {
		l->bv[i].bv_len = 1;
		l->sg[i].length = 1;
	}
	l->len = RT_MANY;
	rma = rt_peer(t, 0, 0, l->len);
	o.msg.rma_iov = &rma;
	for (i = 0; i < 40; i++) {
		struct ct_op *op = ct_op(t->p);

		rt_long_use(l, i & 1, false, &o.msg);
		if (ct_streams(t->p)) {
			rt_do_err(test, t, &o, RT_MANY > rt_layered(t) ?
				  EMSGSIZE : 0);
			continue;
		}
		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, op, rt_post_fn, &o),
				-EMSGSIZE);
	}
	rt_long_set(l, min(rt_layered(t), 1000U), 0, 1);
	rma.len = l->len;
	rt_long_use(l, false, false, &o.msg);
	rt_do(test, t, &o);
	rt_close(test, t);
}

/* --------------------------------------------------------------- silent ones */

/*
 * Writes without completions fill all there is, again and again: who is refused
 * is always woken, and all of them have been done when the last one, which is
 * reported, has.
 */
static void rma_silent(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = RT_MR_MODE,
		.caps = RT_CAPS, .selective = true, .tx_size = 40,
		.write_space = true,
	};
	struct rt_test *t = rt_open_opts(test, &opts, 1, RT_BOTH);
	const struct fi_msg_rma plain = { .rma_iov_count = 1, .iov_count = 1 };
	int i, refused = 0;
	ssize_t ret;

	ct_pattern(t->local, 900 * 16, 8);
	for (i = 0; i < 900; i++) {
		const struct kvec kv = { t->local + i * 16, 16 };
		const struct fi_rma_iov rma = rt_peer(t, 0, i * 16, 16);
		struct rt_op o = { .msg = plain };
		struct ct_op *op = ct_op(t->p);

		/* some the device takes along, some it fetches */
		o.flags = i % 3 ? 0 : FI_INJECT;
		o.msg.msg_iov = &kv;
		o.msg.rma_iov = &rma;
		op->silent = true;
		for (;;) {
			int space = atomic_read(&t->p->side[0].space);

			ret = ct_post_fn(t->p, 0, op, rt_post_fn, &o);
			if (ret != -EAGAIN)
				break;
			refused++;
			KUNIT_ASSERT_TRUE_MSG(test,
					      ct_wait(t->p,
						      atomic_read(&t->p->side[0].space) != space,
						      CT_TIMEOUT_MS),
					      "no wake-up at %d", i);
		}
		KUNIT_ASSERT_EQ(test, ret, 0);
	}
	rt_simple(test, t, true, t->local, rt_peer(t, 0, 0, 900 * 16),
		  FI_COMPLETION | FI_FENCE);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(t->mem, 900 * 16, 8));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(t->local, 900 * 16, 8));
	kunit_info(test, "refused %d times", refused);
	rt_close(test, t);
}

/* ----------------------------------------------------------------- counters */

/* Each kind counts its own, once: reported, silent and injected ones. */
static void rma_counted(struct kunit *test)
{
	static const u64 kinds[] = { FI_SEND, FI_READ, FI_WRITE, FI_RECV };
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = RT_MR_MODE,
		.caps = RT_CAPS, .selective = true, .early = true,
	};
	struct rt_test *t = rt_open_opts(test, &opts, 1, RT_BOTH);
	struct fid_cntr *cntr[ARRAY_SIZE(kinds)];
	struct fi_cntr_attr attr = {};
	struct ct_pair *p = t->p;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &cntr[i],
						   NULL), 0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(p->side[0].ep, &cntr[i]->fid,
						 kinds[i]), 0);
	}
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	for (i = 0; i < 40; i++) {
		const struct kvec kv = { t->local + i, 1 };
		const struct fi_rma_iov rma = rt_peer(t, 0, i, 1);
		struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
		struct rt_op o = {
			.msg = {
				.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
				.rma_iov_count = 1,
			},
			.read = i & 1, .flags = i & 2 ? FI_COMPLETION : 0,
		};
		struct ct_op *op = ct_op(p), *rx = ct_op(p), *tx = ct_op(p);

		op->silent = !(i & 2);
		rt_post_on(t, 0, op, &o);
		/* to and fro; the other end has none, and is not selective there */
		rx->silent = true;
		tx->silent = true;
		KUNIT_ASSERT_EQ(test, ct_post_recv(p, i & 1, rx, &msg, 0), 0);
		if (i % 3)
			KUNIT_ASSERT_EQ(test, ct_post_send(p, !(i & 1), tx,
							   &msg, 0), 0);
		else
			KUNIT_ASSERT_EQ(test, ct_inject(p, !(i & 1), t->local,
							1), 0);
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_EXPECT_TRUE_MSG(test, ct_wait(p, fi_cntr_read(cntr[i]) ==
						    20, CT_TIMEOUT_MS),
				      "kind %d: %llu", i,
				      fi_cntr_read(cntr[i]));
		KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[i]), 0);
	}
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[i]), 20);
		KUNIT_EXPECT_EQ(test, fi_close(&cntr[i]->fid), 0);
	}
	rt_close(test, t);
}

/* What peers do is counted, or nothing that would count it can be bound. */
static void rma_counted_remote(struct kunit *test)
{
	static const u64 kinds[] = { FI_REMOTE_READ, FI_REMOTE_WRITE };
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = RT_MR_MODE,
		.caps = RT_CAPS, .early = true,
	};
	struct rt_test *t = rt_open_opts(test, &opts, 1, RT_BOTH);
	struct fid_cntr *cntr[ARRAY_SIZE(kinds)];
	struct fi_cntr_attr attr = {};
	struct ct_pair *p = t->p;
	bool can = !ct_on_device(p);
	struct ct_op *op;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &cntr[i],
						   NULL), 0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(p->side[0].ep, &cntr[i]->fid,
						 kinds[i]),
				can ? 0 : -EOPNOTSUPP);
	}
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	for (i = 0; i < 10; i++) {
		const struct kvec kv = { t->local, 8 };
		const struct fi_rma_iov rma = rt_peer(t, 0, 0, 8);
		struct rt_op o = {
			.msg = {
				.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
				.rma_iov_count = 1,
			},
			.read = i & 1, .flags = FI_COMPLETION,
		};

		op = ct_op(p);
		rt_post_on(t, 1, op, &o);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		KUNIT_EXPECT_TRUE(test, ct_wait(p, fi_cntr_read(cntr[i]) ==
						(can ? 5 : 0), CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&cntr[i]->fid), 0);
	rt_close(test, t);
}

/* -------------------------------------------------------------------- gaps */

/* A region with a hole in it, which cannot be seen from outside */
static void rma_gaps(struct kunit *test)
{
	struct rt_test *t = rt_open(test, 1);
	const struct kvec kv[] = {
		{ t->local + 100, 1000 }, { t->local + 5000, 3 },
		{ t->local + 3 * PAGE_SIZE, 5000 },
	};
	const struct fi_mr_attr attr = {
		.mr_iov = kv, .iov_count = ARRAY_SIZE(kv), .access = RT_BOTH,
	};
	u8 *out = t->mem, *in = t->mem + PAGE_SIZE * 4;
	struct fi_rma_iov rma = { .len = 6003 };
	/* neither of the kernel's devices in software can, the tests' own does */
	bool can = !ct_on_device(t->p) || kofi_domain_device(t->p->domain);
	struct fid_mr *mr;
	int err;

	err = fi_mr_regattr(t->p->domain, &attr, 0, &mr);
	KUNIT_ASSERT_EQ(test, err, can ? 0 : -EINVAL);
	if (!can) {
		rt_close(test, t);
		return;
	}
	memset(t->local, RT_FILL, 5 * PAGE_SIZE);
	rma.addr = kofi_mr_base(mr);
	rma.key = fi_mr_key(mr);
	ct_pattern(out, 6003, 3);
	rt_simple(test, t, false, out, rma, 0);
	rt_simple(test, t, true, in, rma, FI_FENCE);
	KUNIT_EXPECT_MEMEQ(test, in, out, 6003);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->local, 100));
	KUNIT_EXPECT_MEMEQ(test, kv[0].iov_base, out, 1000);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->local + 1100, 3900));
	KUNIT_EXPECT_MEMEQ(test, kv[1].iov_base, out + 1000, 3);
	KUNIT_EXPECT_MEMEQ(test, kv[2].iov_base, out + 1003, 5000);
	rt_close(test, t);
}

/* ------------------------------------------------------------- many, fences */

/* More reads than a device or a provider has under way */
static void rma_many_reads(struct kunit *test)
{
	struct rt_test *t = rt_open(test, 1);
	int i;

	ct_pattern(t->mem, 400 * 64, 9);
	for (i = 0; i < 400; i++) {
		const struct kvec kv = { t->local + i * 64, 64 };
		const struct fi_rma_iov rma = rt_peer(t, 0, i * 64, 64);
		struct rt_op o = {
			.msg = {
				.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
				.rma_iov_count = 1,
			},
			.read = true,
		};

		rt_post(test, t, &o);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(t->p));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(t->local, 400 * 64, 9));
	rt_close(test, t);
}

/* What is fenced off from a read does not overtake it; nor does a read. */
static void rma_fenced(struct kunit *test)
{
	struct rt_test *t = rt_open(test, 1);
	const size_t len = 32768;
	u8 *in = t->local, *out = t->local + len;
	int i;

	if (!(t->p->info->caps & FI_FENCE)) {
		rt_close(test, t);
		kunit_skip(test, "the provider has no FI_FENCE");
	}
	ct_pattern(t->mem, len, 0);
	for (i = 0; i < 20; i++) {
		const struct kvec from = { in, len }, to = { out, len };
		const struct fi_rma_iov rma = rt_peer(t, 0, 0, len);
		struct rt_op o = {
			.msg = {
				.msg_iov = &from, .iov_count = 1,
				.rma_iov = &rma, .rma_iov_count = 1,
			},
			.read = true, .flags = i & 1 ? FI_FENCE : 0,
		};

		ct_pattern(out, len, i + 1);
		rt_post(test, t, &o);
		o.read = false;
		o.flags = FI_FENCE;
		o.msg.msg_iov = &to;
		rt_post(test, t, &o);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(t->p));
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, len, i));
		/* where a write ends when TCP has it, it comes later */
		KUNIT_EXPECT_TRUE(test, ct_wait(t->p,
						ct_pattern_ok(t->mem, len, i + 1),
						CT_TIMEOUT_MS));
	}
	/* one without bytes, too */
	if (!rt_siw())
		rt_simple(test, t, true, in, rt_peer(t, 0, 0, 0), FI_FENCE);
	rt_close(test, t);
}

/* An inject takes its bytes along, to each of the peer's pieces their own. */
static void rma_inject_pieces(struct kunit *test)
{
	struct rt_test *t = rt_open(test, 2);
	const struct fi_rma_iov rma[] = {
		rt_peer(t, 0, 3, 20), rt_peer(t, 1, 64, 12),
	};
	const struct kvec kv = { t->local, 32 };
	struct rt_op o = {
		.msg = {
			.msg_iov = &kv, .iov_count = 1, .rma_iov = rma,
			.rma_iov_count = ARRAY_SIZE(rma),
		},
		.flags = FI_INJECT | FI_DELIVERY_COMPLETE,
	};
	struct ct_op *op;
	u8 sent[32];

	if (!ct_has_flags(t->p, FI_DELIVERY_COMPLETE))
		o.flags &= ~FI_DELIVERY_COMPLETE;
	memset(t->mem, RT_FILL, 2 * RT_REGION);
	ct_pattern(sent, sizeof(sent), 5);
	memcpy(t->local, sent, sizeof(sent));
	op = rt_post(test, t, &o);
	memset(t->local, 0, sizeof(sent));
	KUNIT_ASSERT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	/* read behind it: then it has been placed, whatever the device says */
	rt_simple(test, t, true, t->local, rt_peer(t, 0, 0, 32), FI_FENCE);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->mem, 3));
	KUNIT_EXPECT_MEMEQ(test, t->mem + 3, sent, 20);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->mem + 23, RT_REGION - 23));
	KUNIT_EXPECT_TRUE(test, rt_filled(t->mem + RT_REGION, 64));
	KUNIT_EXPECT_MEMEQ(test, t->mem + RT_REGION + 64, sent + 20, 12);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->mem + RT_REGION + 76,
					  RT_REGION - 76));
	rt_close(test, t);
}

/* ---------------------------------------------------------------- refusals */

static void rma_arguments(struct kunit *test)
{
	struct rt_test *t = rt_open(test, 1);
	const struct kvec kv = { t->local, 64 };
	struct fi_rma_iov rma[17];
	struct rt_op o = {
		.msg = {
			.msg_iov = &kv, .iov_count = 1, .rma_iov = rma,
			.rma_iov_count = 1,
		},
		.flags = FI_COMPLETION,
	};
	int i, read;

	for (i = 0; i < ARRAY_SIZE(rma); i++)
		rma[i] = rt_peer(t, 0, 0, i ? 0 : 64);
	for (read = 0; read < 2; read++) {
		struct ct_op *op = ct_op(t->p);

		o.read = read;
		rma[0].len = 65;
		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, op, rt_post_fn, &o),
				-EINVAL);
		rma[0].len = 64;
		o.msg.rma_iov_count = 17;
		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, op, rt_post_fn, &o),
				-EINVAL);
		o.msg.rma_iov_count = 0;
		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, op, rt_post_fn, &o),
				-EINVAL);
		o.msg.rma_iov_count = 1;
		rt_do(test, t, &o);
	}
	o.msg.iov_count = 0;
	rma[0].len = 0;
	/* what is below kofi_rxm refuses it later */
	if (rt_siw() && ct_streams(t->p))
		rt_do_err(test, t, &o, EOPNOTSUPP);
	else if (rt_siw())
		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, ct_op(t->p),
						 rt_post_fn, &o), -EOPNOTSUPP);
	rt_close(test, t);
}

/* An endpoint that was opened for one direction refuses operations of the other one. */
static void rma_direction(struct kunit *test)
{
	int read;

	for (read = 0; read < 2; read++) {
		const struct ct_opts opts = {
			.mode = ct_mode_of(test), .mr_mode = RT_MR_MODE,
			.caps = FI_MSG | FI_RMA | (read ? FI_READ : FI_WRITE) |
				FI_REMOTE_READ | FI_REMOTE_WRITE,
		};
		struct rt_test *t = rt_open_opts(test, &opts, 1, RT_BOTH);
		const struct kvec kv = { t->local, 64 };
		const struct fi_rma_iov rma = rt_peer(t, 0, 0, 64);
		struct rt_op o = {
			.msg = {
				.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
				.rma_iov_count = 1,
			},
			.flags = FI_COMPLETION,
			.read = !read,
		};

		KUNIT_EXPECT_EQ(test, ct_post_fn(t->p, 0, ct_op(t->p), rt_post_fn, &o),
				-ENOSYS);
		o.read = read;
		rt_do(test, t, &o);
		rt_close(test, t);
	}
}

/* What the peer refuses */
struct rt_wrong {
	const char	*name;
	u64		access;
	bool		read;
	s64		off;
	u64		key;	/* changed bits */
};

static const struct rt_wrong rt_wrongs[] = {
	{ "write right", FI_REMOTE_READ, false },
	{ "read right", FI_REMOTE_WRITE, true },
	{ "write behind", RT_BOTH, false, RT_REGION - 63 },
	{ "read behind", RT_BOTH, true, RT_REGION - 63 },
	{ "write before", RT_BOTH, false, -1 },
	{ "read before", RT_BOTH, true, -1 },
	{ "write key", RT_BOTH, false, 0, 0x5a },
	{ "read key", RT_BOTH, true, 0, 0x5a },
	{ "write other key", RT_BOTH, false, 0, 0x5a00 },
	{ "read other key", RT_BOTH, true, 0, 0x5a00 },
};

static void rt_desc(const struct rt_wrong *w, char *desc)
{
	strscpy(desc, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rt_wrong, rt_wrongs, rt_desc);

/*
 * Both ends hear of the end, once, and no memory changes. A read cannot succeed,
 * and where the peer answers, a write neither.
 */
static void rma_wrong(struct kunit *test)
{
	const struct rt_wrong *w = test->param_value;
	struct rt_test *t = rt_open_as(test, CT_SOFTIRQ, 1, w->access);
	struct fi_rma_iov rma = rt_peer(t, 0, w->off, 64);
	const struct kvec kv = { t->local, 64 };
	struct rt_op o = {
		.msg = {
			.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
			.rma_iov_count = 1,
		},
		.read = w->read,
	};
	struct ct_op *op;
	int side;

	if (w->read && !(w->access & FI_REMOTE_READ) &&
	    (rt_siw() || t->p->info->ep_attr->protocol == FI_PROTO_IWARP)) {
		rt_close(test, t);
		kunit_skip(test, "siw does not look at the right to read");
	}
	rma.key ^= w->key;
	memset(t->mem, RT_FILL, RT_REGION);
	memset(t->local, RT_FILL, RT_REGION);
	if (!w->read)
		memset(t->local, 0, 64);
	op = rt_post(test, t, &o);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	if (t->p->info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_RC)
		KUNIT_EXPECT_EQ(test, op->wc.err,
				ct_unanswered(op) ? ECANCELED : EACCES);
	else if (w->read)
		KUNIT_EXPECT_NE(test, op->wc.err, 0);
	for (side = 0; side < 2; side++)
		ct_expect_event(test, t->p->side[side].eq, FI_SHUTDOWN);
	for (side = 0; side < 2; side++)
		ct_expect_no_event(test, t->p->side[side].eq);
	KUNIT_EXPECT_TRUE(test, rt_filled(t->mem, RT_REGION));
	KUNIT_EXPECT_TRUE(test, rt_filled(t->local + 64, RT_REGION - 64));
	if (w->read)
		KUNIT_EXPECT_TRUE(test, rt_filled(t->local, 64));
	rt_close(test, t);
}

/* The end with reads under way: each completes once, whole or cancelled. */
static void rma_shutdown(struct kunit *test)
{
	struct ct_op *ops[12];
	struct rt_test *t;
	int i;

	ct_connected_init(test);
	t = rt_open(test, 1);
	ct_pattern(t->mem, RT_REGION, 1);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		const struct kvec kv = { t->local + i * 65536, 65536 };
		const struct fi_rma_iov rma = rt_peer(t, 0, i * 65536, 65536);
		struct rt_op o = {
			.msg = {
				.msg_iov = &kv, .iov_count = 1, .rma_iov = &rma,
				.rma_iov_count = 1,
			},
			.read = true,
		};

		ops[i] = rt_post(test, t, &o);
	}
	KUNIT_EXPECT_EQ(test, fi_shutdown(t->p->side[0].ep, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(t->p));
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		if (ops[i]->wc.err)
			KUNIT_EXPECT_EQ(test, ops[i]->wc.err, ECANCELED);
		else
			KUNIT_EXPECT_EQ(test, memcmp(t->local + i * 65536,
						     t->mem + i * 65536,
						     65536), 0);
	}
	rt_close(test, t);
}

static struct kunit_case contract_rma_cases[] = {
	KUNIT_CASE_PARAM(rma_sizes, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_large, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_vectors, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_long, rt_shape_gen_params),
	KUNIT_CASE_PARAM(rma_too_long, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_silent, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_counted, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_counted_remote, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_gaps, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_many_reads, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_fenced, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_inject_pieces, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_arguments, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_direction, ct_mode_gen_params),
	KUNIT_CASE_PARAM(rma_wrong, rt_wrong_gen_params),
	KUNIT_CASE_PARAM(rma_shutdown, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_rma_suite = {
	.name = "contract_rma",
	.suite_init = lo_suite_init,
	.test_cases = contract_rma_cases,
	.attr.speed = KUNIT_SPEED_SLOW,
};

kunit_test_suite(contract_rma_suite);
