// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 1 (any context), 9 (exact completion flags), and what a message
 * can be made of: sizes, memory, data, levels.
 */

#include <linux/bvec.h>
#include <linux/dma-mapping.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>
#include <linux/kofi/backport.h>
#include <linux/kofi/provider.h>

#include "contract.h"

#define MSG_LEN	256

/* ------------------------------------------- 1: posts from every context */

struct ctx_work {
	struct ct_pair	*p;
	struct ct_op	*recv[2];
	struct ct_op	*send;
	struct ct_op	*cancelled;
	u8		*in[2];
	u8		*out;
	struct hrtimer	hrtimer;
	struct timer_list timer;
	bool		ran;
	bool		right;
	bool		cancels;
	ssize_t		ret[6];
};

/* Each call of the data path once; never asserts, may be in hard interrupt. */
static void ctx_post(struct ctx_work *w)
{
	struct ct_pair *p = w->p;
	struct fi_cq_tagged_entry entry;

	w->ret[0] = ct_recv(p, 1, w->recv[0], w->in[0], MSG_LEN);
	w->ret[1] = ct_recv(p, 1, w->recv[1], w->in[1], MSG_LEN);
	w->ret[2] = ct_send(p, 0, w->send, w->out, MSG_LEN);
	w->ret[3] = ct_inject(p, 0, w->out, 64);
	if (w->cancels) {
		w->ret[4] = ct_recv(p, 0, w->cancelled, w->in[0], MSG_LEN);
		w->ret[5] = fi_cancel(&p->side[0].ep->fid, w->cancelled);
	}
	/* nothing can have been sent to side 0 */
	if (p->opts.mode == CT_READ &&
	    fi_cq_read(p->side[1].tx.cq, &entry, 1) != -EAGAIN)
		w->right = false;
	WRITE_ONCE(w->ran, true);
	wake_up(&p->wq);
}

static void ctx_task(struct ctx_work *w)
{
	w->right = in_task();
	ctx_post(w);
}

static void ctx_bh(struct ctx_work *w)
{
	local_bh_disable();
	w->right = in_softirq();
	ctx_post(w);
	local_bh_enable();
}

static DEFINE_SPINLOCK(ctx_lock);

static void ctx_spinlock_irq(struct ctx_work *w)
{
	unsigned long flags;

	spin_lock_irqsave(&ctx_lock, flags);
	w->right = irqs_disabled();
	ctx_post(w);
	spin_unlock_irqrestore(&ctx_lock, flags);
}

static void ctx_timer_fn(struct timer_list *t)
{
	struct ctx_work *w = container_of(t, struct ctx_work, timer);

	w->right = in_serving_softirq();
	ctx_post(w);
}

static void ctx_softirq(struct ctx_work *w)
{
	timer_setup_on_stack(&w->timer, ctx_timer_fn, 0);
	mod_timer(&w->timer, jiffies + 1);
	wait_event_timeout(w->p->wq, READ_ONCE(w->ran), TEST_LIMIT(10 * HZ));
	timer_delete_sync(&w->timer);
	timer_destroy_on_stack(&w->timer);
}

static enum hrtimer_restart ctx_hrtimer_fn(struct hrtimer *t)
{
	struct ctx_work *w = container_of(t, struct ctx_work, hrtimer);

	w->right = in_hardirq();
	ctx_post(w);
	return HRTIMER_NORESTART;
}

static void ctx_hardirq(struct ctx_work *w)
{
	hrtimer_setup_on_stack(&w->hrtimer, ctx_hrtimer_fn, CLOCK_MONOTONIC,
			       HRTIMER_MODE_REL_HARD);
	hrtimer_start(&w->hrtimer, ns_to_ktime(100 * NSEC_PER_USEC), HRTIMER_MODE_REL_HARD);
	wait_event_timeout(w->p->wq, READ_ONCE(w->ran), TEST_LIMIT(10 * HZ));
	hrtimer_cancel(&w->hrtimer);
	destroy_hrtimer_on_stack(&w->hrtimer);
}

struct ctx_param {
	const char	*name;
	void		(*run)(struct ctx_work *w);
};

static const struct ctx_param ctx_params[] = {
	{ "process", ctx_task },
	{ "bottom halves off", ctx_bh },
	{ "spinlock, interrupts off", ctx_spinlock_irq },
	{ "softirq", ctx_softirq },
	{ "hard interrupt", ctx_hardirq },
};

KUNIT_ARRAY_PARAM_DESC(ctx, ctx_params, name);

static void ctx_take_connects(void *arg, const char *name, u64 value)
{
	if (!strcmp(name, "connects"))
		*(u64 *)arg = value;
}

/* Connections that side 0 has made by posting */
static u64 ctx_connects(const struct ct_pair *p)
{
	struct kofi_obj *obj = p->side[0].ep->fid.obj;
	u64 n = 0;

	if (p->info->ep_attr->type == FI_EP_RDM)
		obj->ops->stats(obj, ctx_take_connects, &n);
	return n;
}

/* With endpoints that do not connect, it is the post that makes the connection. */
static void post_in_context(struct kunit *test)
{
	const struct ctx_param *param = test->param_value;
	enum ct_mode mode;

	for (mode = 0; mode < CT_MODES; mode++) {
		struct ct_pair *p = ct_pair_mode(test, mode);
		struct ctx_work w = {
			.p = p, .recv = { ct_op(p), ct_op(p) },
			.send = ct_op(p), .cancelled = ct_op(p),
			.in = { ct_buf(p, MSG_LEN), ct_buf(p, MSG_LEN) },
			.out = ct_buf(p, MSG_LEN),
			.cancels = ct_cancels(p),
		};
		int i;

		ct_pattern(w.out, MSG_LEN, mode);
		KUNIT_EXPECT_EQ(test, ctx_connects(p), 0);
		param->run(&w);
		KUNIT_EXPECT_TRUE(test, w.ran);
		KUNIT_EXPECT_TRUE_MSG(test, w.right, "not in the context meant");
		for (i = 0; i < ARRAY_SIZE(w.ret); i++)
			KUNIT_EXPECT_EQ_MSG(test, w.ret[i], 0, "call %d", i);
		KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
		if (w.cancels)
			KUNIT_EXPECT_EQ(test, w.cancelled->wc.err, ECANCELED);
		KUNIT_EXPECT_EQ(test, w.send->wc.err, 0);
		KUNIT_EXPECT_EQ(test, w.recv[0]->wc.len, MSG_LEN);
		KUNIT_EXPECT_EQ(test, w.recv[1]->wc.len, 64);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(w.in[0], MSG_LEN, mode));
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(w.in[1], 64, mode));
		KUNIT_EXPECT_EQ(test, ctx_connects(p),
				p->info->ep_attr->type == FI_EP_RDM);
		ct_pair_close(p);
	}
}

/* ------------------------------------------------------- sizes and content */

static const size_t sizes[] = {
	0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1447, 1448,
	1449, 4095, 4096, 4097, 16383, 16384, 16385, 65535, 65536, 65537,
	262143, 262145, 1048575, 1048577, 3 << 20, 6 << 20,
};

static void post_sizes(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	/* a device wants it in one piece, of which there are no larger ones */
	const size_t max = min(ct_streams(p) ? sizes[ARRAY_SIZE(sizes) - 1] :
					       KMALLOC_MAX_SIZE / 4,
			       p->info->ep_attr->max_msg_size);
	u8 *out = ct_buf(p, max), *in = ct_buf(p, max + 1);
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes) && sizes[i] <= max; i++) {
		struct ct_op *r = ct_op(p), *s = ct_op(p);
		size_t len = sizes[i];

		ct_pattern(out, len, i);
		in[len] = 0xa5;
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, max), 0);
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, s, out, len), 0);
		KUNIT_ASSERT_TRUE_MSG(test, ct_wait_all(p), "%zu bytes", len);
		KUNIT_EXPECT_EQ(test, s->wc.err, 0);
		KUNIT_EXPECT_EQ(test, r->wc.err, 0);
		KUNIT_EXPECT_EQ(test, r->wc.len, len);
		KUNIT_EXPECT_TRUE_MSG(test, ct_pattern_ok(in, len, i),
				      "content of %zu bytes", len);
		KUNIT_EXPECT_EQ(test, in[len], 0xa5);
	}
	ct_pair_close(p);
}

/* --------------------------------------------------------- kinds of memory */

#define VEC_LEN		(3 * PAGE_SIZE - 100)
#define VEC_PAGES	4

enum vec_kind {
	VEC_KVEC1, VEC_KVEC4, VEC_BVEC, VEC_SGL, VEC_SGL_CHAINED, VEC_ITER_KVEC,
	VEC_ITER_BVEC, VEC_KINDS
};

static const char *const vec_names[VEC_KINDS] = {
	"one buffer", "four buffers", "pages", "scatterlist",
	"chained scatterlist", "iterator of buffers", "iterator of pages",
};

/* Memory of VEC_PAGES pages, described in one of the ways. */
struct vec {
	u8			*mem;
	size_t			start;		/* of the message in mem */
	struct kvec		kv[4];
	struct bio_vec		bv[VEC_PAGES];
	struct scatterlist	sg[2][3];
	struct iov_iter		iter;
	struct fi_msg		msg;
};

static void vec_bv(struct vec *v)
{
	size_t left = VEC_LEN, off = v->start;
	int i;

	for (i = 0; left; i++) {
		size_t n = min(left, PAGE_SIZE - off);

		bvec_set_page(&v->bv[i], virt_to_page(v->mem + i * PAGE_SIZE),
			      n, off);
		left -= n;
		off = 0;
	}
	v->msg.iov_count = i;
}

static void vec_sg(struct vec *v, bool chained)
{
	int per = chained ? 2 : 3, i;

	vec_bv(v);
	sg_init_table(v->sg[0], 3);
	sg_init_table(v->sg[1], 3);
	for (i = 0; i < v->msg.iov_count; i++) {
		struct scatterlist *sg = &v->sg[i / per][i % per];

		sg_set_page(sg, v->bv[i].bv_page, v->bv[i].bv_len,
			    v->bv[i].bv_offset);
	}
	if (chained)
		sg_chain(v->sg[0], 3, v->sg[1]);
	v->msg.msg_sgl = v->sg[0];
	v->msg.vec = KOFI_SGL;
}

static struct vec *vec_make(struct ct_pair *p, enum vec_kind kind,
			    unsigned int dir)
{
	static const size_t parts[4] = { 1, 4096, 33, VEC_LEN - 4130 };
	struct vec *v = ct_buf(p, sizeof(*v));
	size_t at = 0;
	int i;

	v->mem = ct_buf(p, VEC_PAGES * PAGE_SIZE);
	KUNIT_ASSERT_TRUE(p->test, PAGE_ALIGNED(v->mem));
	v->start = 61;
	for (i = 0; i < 4; i++) {
		v->kv[i].iov_base = v->mem + v->start + at;
		v->kv[i].iov_len = parts[i];
		at += parts[i];
	}
	switch (kind) {
	case VEC_KVEC1:
		v->kv[0].iov_len = VEC_LEN;
		v->msg.msg_iov = v->kv;
		v->msg.iov_count = 1;
		break;
	case VEC_KVEC4:
		v->msg.msg_iov = v->kv;
		v->msg.iov_count = 4;
		break;
	case VEC_BVEC:
		vec_bv(v);
		v->msg.msg_bvec = v->bv;
		v->msg.vec = KOFI_BVEC;
		break;
	case VEC_SGL:
		vec_sg(v, false);
		break;
	case VEC_SGL_CHAINED:
		vec_sg(v, true);
		break;
	case VEC_ITER_KVEC:
		iov_iter_kvec(&v->iter, dir, v->kv, 4, VEC_LEN);
		v->msg.msg_iter = &v->iter;
		v->msg.vec = KOFI_ITER;
		break;
	default:
		vec_bv(v);
		iov_iter_bvec(&v->iter, dir, v->bv, v->msg.iov_count, VEC_LEN);
		v->msg.msg_iter = &v->iter;
		v->msg.vec = KOFI_ITER;
		break;
	}
	return v;
}

static void post_vectors(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_SOFTIRQ);
	enum vec_kind from, to;

	for (from = 0; from < VEC_KINDS; from++) {
		for (to = 0; to < VEC_KINDS; to++) {
			struct ct_op *r = ct_op(p), *s = ct_op(p);
			struct vec *in = vec_make(p, to, ITER_DEST);
			struct vec *out = vec_make(p, from, ITER_SOURCE);
			u8 *got = in->mem + in->start;

			ct_pattern(out->mem + out->start, VEC_LEN, from + to);
			KUNIT_ASSERT_EQ(test, ct_post_recv(p, 1, r, &in->msg, 0), 0);
			KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, s, &out->msg, 0), 0);
			/* The message was copied, and so was a vector of pages. */
			memset(&in->msg, 0xff, sizeof(in->msg));
			memset(&out->msg, 0xff, sizeof(out->msg));
			if (to == VEC_BVEC)
				memset(in->bv, 0xff, sizeof(in->bv));
			if (from == VEC_KVEC4)
				memset(out->kv, 0xff, sizeof(out->kv));
			KUNIT_ASSERT_TRUE_MSG(test, ct_wait_all(p), "%s to %s",
					      vec_names[from], vec_names[to]);
			KUNIT_EXPECT_EQ(test, r->wc.len, VEC_LEN);
			KUNIT_EXPECT_TRUE_MSG(test,
					      ct_pattern_ok(got, VEC_LEN, from + to),
					      "%s to %s", vec_names[from],
					      vec_names[to]);
			/* and nothing beside it was touched */
			KUNIT_EXPECT_NULL(test, memchr_inv(in->mem, 0, in->start));
			KUNIT_EXPECT_NULL(test,
					  memchr_inv(got + VEC_LEN, 0,
						     VEC_PAGES * PAGE_SIZE -
						     in->start - VEC_LEN));
		}
	}
	ct_pair_close(p);
}

/* ------------------------------------------------- pieces, folios, mappings */

#define PIECES	33	/* one more than any device is asked for */

/* Every other page of vmalloc memory, as a list; the message is at offset 9 */
struct pieces {
	struct scatterlist	sg[PIECES];
	u8			*mem;
};

static void pieces_free(void *arg)
{
	vfree(arg);
}

static struct pieces *pieces_make(struct ct_pair *p, size_t len)
{
	struct pieces *v = ct_buf(p, sizeof(*v));
	int i;

	v->mem = vzalloc(2 * PIECES * PAGE_SIZE);
	KUNIT_ASSERT_NOT_NULL(p->test, v->mem);
	KUNIT_ASSERT_EQ(p->test, kunit_add_action_or_reset(p->test, pieces_free,
							   v->mem), 0);
	sg_init_table(v->sg, PIECES);
	for (i = 0; i < PIECES; i++)
		sg_set_page(&v->sg[i],
			    vmalloc_to_page(v->mem + 2 * i * PAGE_SIZE), len,
			    9);
	return v;
}

static u8 *pieces_at(const struct pieces *v, int i)
{
	return v->mem + 2 * i * PAGE_SIZE + 9;
}

/* All of them become single bytes of the last one, in a row. */
static void pieces_join(struct pieces *v)
{
	struct page *page = sg_page(&v->sg[PIECES - 1]);
	int i;

	for (i = 0; i < PIECES; i++)
		sg_set_page(&v->sg[i], page, 1, 9 + i);
}

/* As many pieces as are promised arrive; more than any device has are refused. */
static void post_pieces(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	size_t limit = min(p->info->tx_attr->iov_limit,
			   p->info->rx_attr->iov_limit);
	struct pieces *out = pieces_make(p, 500), *in = pieces_make(p, 500);
	struct fi_msg send = {
		.msg_sgl = out->sg, .iov_count = limit, .vec = KOFI_SGL,
	};
	struct fi_msg recv = {
		.msg_sgl = in->sg, .iov_count = limit, .vec = KOFI_SGL,
	};
	struct ct_op *r = ct_op(p), *s = ct_op(p);
	int i;

	KUNIT_ASSERT_LT(test, limit, PIECES);
	for (i = 0; i < PIECES; i++)
		ct_pattern(pieces_at(out, i), 500, i);
	KUNIT_ASSERT_EQ(test, ct_post_recv(p, 1, r, &recv, 0), 0);
	KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, s, &send, 0), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, r->wc.len, limit * 500);

	r = ct_op(p);
	send.iov_count = PIECES;
	recv.iov_count = PIECES;
	if (p->info->ep_attr->type == FI_EP_DGRAM) {
		/* a datagram goes in one call, with so many at most */
		KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, s, &send, 0), -EINVAL);
		ct_pair_close(p);
		return;
	}
	if (ct_streams(p)) {
		limit = PIECES;
		KUNIT_EXPECT_EQ(test, ct_post_recv(p, 1, r, &recv, 0), 0);
		KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, s, &send, 0), 0);
	} else {
		KUNIT_EXPECT_EQ(test, ct_post_recv(p, 1, r, &recv, 0), -EINVAL);
		KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, s, &send, 0), -EINVAL);
		/* those that follow each other are one */
		pieces_join(out);
		pieces_join(in);
		KUNIT_EXPECT_EQ(test, ct_post_recv(p, 1, r, &recv, 0), 0);
		KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, s, &send, 0), 0);
	}
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < limit; i++)
		KUNIT_EXPECT_TRUE_MSG(test,
				      ct_pattern_ok(pieces_at(in, i), 500, i),
				      "piece %d", i);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(pieces_at(in, PIECES - 1), PIECES,
					      PIECES - 1));
	ct_pair_close(p);
}

#define FOLIO_ORDER	3

/* A segment that begins in a later page of its folio, and crosses some */
static void post_folio(struct kunit *test)
{
	static const enum kofi_vec kinds[] = { KOFI_BVEC, KOFI_SGL, KOFI_ITER };
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	const size_t off = 2 * PAGE_SIZE + 77, len = 4 * PAGE_SIZE + 5;
	struct page *page[2];
	int i, side;

	for (side = 0; side < 2; side++) {
		page[side] = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO,
					 FOLIO_ORDER);
		KUNIT_ASSERT_NOT_NULL(test, page[side]);
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ct_op *op[2] = { ct_op(p), ct_op(p) };
		struct scatterlist sg[2][1];
		struct iov_iter iter[2];
		struct bio_vec bv[2];
		struct fi_msg msg[2];

		ct_pattern(page_address(page[0]) + off, len, i);
		for (side = 0; side < 2; side++) {
			bvec_set_page(&bv[side], page[side], len, off);
			sg_init_table(sg[side], 1);
			sg_set_page(sg[side], page[side], len, off);
			iov_iter_bvec(&iter[side], side ? ITER_DEST :
							  ITER_SOURCE,
				      &bv[side], 1, len);
			msg[side] = (struct fi_msg) {
				.msg_bvec = &bv[side], .iov_count = 1,
				.vec = kinds[i],
			};
			if (kinds[i] == KOFI_SGL)
				msg[side].msg_sgl = sg[side];
			if (kinds[i] == KOFI_ITER)
				msg[side].msg_iter = &iter[side];
		}
		KUNIT_EXPECT_EQ(test, ct_post_recv(p, 1, op[1], &msg[1], 0), 0);
		KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, op[0], &msg[0], 0), 0);
		KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(test, op[1]->wc.len, len);
		KUNIT_EXPECT_TRUE(test,
				  ct_pattern_ok(page_address(page[1]) + off,
						len, i));
		KUNIT_EXPECT_NULL(test, memchr_inv(page_address(page[1]), 0,
						   off));
		KUNIT_EXPECT_NULL(test,
				  memchr_inv(page_address(page[1]) + off + len,
					     0, (PAGE_SIZE << FOLIO_ORDER) -
					     off - len));
	}
	ct_pair_close(p);
	for (side = 0; side < 2; side++)
		__free_pages(page[side], FOLIO_ORDER);
}

/* A list the consumer has mapped, where there is a device to map it for */
static void post_mapped(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	static const enum dma_data_direction dirs[] = {
		DMA_TO_DEVICE, DMA_FROM_DEVICE,
	};
	struct device *dev = kofi_domain_device(p->domain);
	struct ct_op *op[2] = { ct_op(p), ct_op(p) };
	struct pieces *v[2];
	struct fi_msg msg[2];
	int side, i;

	for (side = 0; side < 2; side++) {
		v[side] = pieces_make(p, 1000);
		msg[side] = (struct fi_msg) {
			.msg_sgl = v[side]->sg, .iov_count = 4,
			.vec = KOFI_SGL_MAPPED,
		};
	}
	/* kofi_rxm names the device for limits of memory, and maps itself */
	if (!dev || ct_rdm()) {
		KUNIT_EXPECT_EQ(test, ct_post_recv(p, 1, op[1], &msg[1], 0),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, op[0], &msg[0], 0),
				-EINVAL);
		ct_pair_close(p);
		return;
	}
	for (i = 0; i < 4; i++)
		ct_pattern(pieces_at(v[0], i), 1000, i);
	for (side = 0; side < 2; side++)
		KUNIT_ASSERT_EQ(test, dma_map_sg(dev, v[side]->sg, 4,
						 dirs[side]), 4);
	KUNIT_EXPECT_EQ(test, ct_post_recv(p, 1, op[1], &msg[1], 0), 0);
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, op[0], &msg[0], 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (side = 0; side < 2; side++)
		dma_unmap_sg(dev, v[side]->sg, 4, dirs[side]);
	KUNIT_EXPECT_EQ(test, op[1]->wc.len, 4000);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(pieces_at(v[1], i), 1000,
						      i));
	ct_pair_close(p);
}

/* -------------------------- 9: completion flags, data, and nothing more */

struct flags_param {
	const char	*name;
	u64		flags;		/* of fi_sendmsg() */
	u64		recv_flags;	/* beyond FI_RECV | FI_MSG */
};

static const struct flags_param flags_params[] = {
	{ "plain", 0, 0 },
	{ "completion", FI_COMPLETION, 0 },
	{ "inject", FI_INJECT, 0 },
	{ "data", FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA },
	{ "inject data", FI_INJECT | FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA },
	{ "inject complete", FI_INJECT_COMPLETE, 0 },
	{ "transmit complete", FI_TRANSMIT_COMPLETE, 0 },
	{ "delivery complete", FI_DELIVERY_COMPLETE, 0 },
	{ "data, delivery complete", FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE,
	  FI_REMOTE_CQ_DATA },
	{ "more", FI_MORE, 0 },
};

static void post_flags(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	const u64 data = 0x0123456789abcdefULL;
	u8 *out = ct_buf(p, 100), *in = ct_buf(p, 100);
	int i;

	for (i = 0; i < ARRAY_SIZE(flags_params); i++) {
		const struct flags_param *f = &flags_params[i];
		struct ct_op *r = ct_op(p), *s = ct_op(p);
		struct kvec iov = { .iov_base = out, .iov_len = 100 };
		struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .data = data,
		};

		if (!ct_has_flags(p, f->flags))
			continue;
		ct_pattern(out, 100, i);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, 100), 0);
		KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, s, &msg, f->flags), 0);
		if (f->flags & FI_INJECT)
			memset(out, 0, 100);
		/* a hint without a successor must not hold the message back */
		KUNIT_ASSERT_TRUE_MSG(test, ct_wait_all(p), "%s", f->name);
		KUNIT_EXPECT_EQ_MSG(test, s->wc.flags, FI_SEND | FI_MSG, "%s",
				    f->name);
		KUNIT_EXPECT_EQ_MSG(test, r->wc.flags,
				    FI_RECV | FI_MSG | f->recv_flags, "%s",
				    f->name);
		KUNIT_EXPECT_EQ_MSG(test, r->wc.data,
				    f->recv_flags ? ct_cq_data(p, data) : 0,
				    "%s", f->name);
		KUNIT_EXPECT_EQ(test, r->wc.len, 100);
		KUNIT_EXPECT_EQ(test, s->wc.len, 0);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, 100, i));
	}
	ct_pair_close(p);
}

static void post_simple_forms(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_SOFTIRQ);
	struct fid_ep *ep = p->side[0].ep;
	u8 *out = ct_buf(p, 64), *in = ct_buf(p, 5 * 64);
	struct kvec iov[2] = {
		{ .iov_base = out, .iov_len = 10 },
		{ .iov_base = out + 10, .iov_len = 54 },
	};
	struct ct_op *r[5], *s[2];
	int i;

	if (!ct_has_flags(p, FI_REMOTE_CQ_DATA))
		kunit_skip(test, "no values with messages");
	ct_pattern(out, 64, 9);
	for (i = 0; i < 5; i++) {
		r[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r[i], in + 64 * i, 64), 0);
	}
	s[0] = ct_op(p);
	s[1] = ct_op(p);
	atomic_inc(&s[0]->posted);
	KUNIT_EXPECT_EQ(test, fi_sendv(ep, iov, NULL, 2, 0, s[0]), 0);
	atomic_inc(&s[1]->posted);
	KUNIT_EXPECT_EQ(test, fi_senddata(ep, out, 64, NULL, 77, 0, s[1]), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, out, 64, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_injectdata(ep, out, 64, 88, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, out, 0, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, r[1]->wc.data, 77);
	KUNIT_EXPECT_EQ(test, r[3]->wc.data, 88);
	KUNIT_EXPECT_EQ(test, r[2]->wc.flags, FI_RECV | FI_MSG);
	KUNIT_EXPECT_EQ(test, r[3]->wc.flags,
			FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, r[i]->wc.len, 64);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + 64 * i, 64, 9));
	}
	KUNIT_EXPECT_EQ(test, r[4]->wc.len, 0);
	ct_pair_close(p);
}

/* Injects of each size, taken along by the device or not, overwritten at once */
static void post_injects(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	size_t len, max = p->info->tx_attr->inject_size;
	u8 *out = ct_buf(p, max), *in = ct_buf(p, max + 1);

	for (len = 0; len <= max; len++) {
		struct ct_op *r = ct_op(p);

		memset(in, 0xa5, max + 1);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, max + 1), 0);
		ct_pattern(out, len, len);
		KUNIT_ASSERT_EQ_MSG(test, ct_inject(p, 0, out, len), 0,
				    "%zu bytes", len);
		memset(out, 0, len);
		KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
		KUNIT_EXPECT_EQ(test, r->wc.len, len);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, len, len));
		KUNIT_EXPECT_EQ(test, in[len], 0xa5);
	}
	ct_pair_close(p);
}

/* The order of messages and of each side's completions is that of the posts. */
static void post_order(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	enum { N = 100, LEN = 3000 };
	u8 *out = ct_buf(p, N * LEN), *in = ct_buf(p, N * LEN);
	struct ct_op **r = ct_buf(p, N * sizeof(*r));
	struct ct_op **s = ct_buf(p, N * sizeof(*s));
	int i;

	for (i = 0; i < N; i++) {
		r[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r[i], in + i * LEN, LEN), 0);
	}
	for (i = 0; i < N; i++) {
		struct kvec iov = { .iov_base = out + i * LEN, .iov_len = LEN };
		struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };

		ct_pattern(out + i * LEN, LEN, i);
		s[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, s[i], &msg,
						   i % 8 == 7 ? 0 : FI_MORE), 0);
	}
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < N; i++) {
		KUNIT_EXPECT_TRUE_MSG(test,
				      ct_pattern_ok(in + i * LEN, LEN, i),
				      "message %d", i);
		if (!i)
			continue;
		KUNIT_EXPECT_LT(test, r[i - 1]->seq, r[i]->seq);
		KUNIT_EXPECT_LT(test, s[i - 1]->seq, s[i]->seq);
	}
	ct_pair_close(p);
}

static struct kunit_case contract_post_cases[] = {
	KUNIT_CASE_PARAM(post_in_context, ctx_gen_params),
	KUNIT_CASE_PARAM(post_sizes, ct_mode_gen_params),
	KUNIT_CASE(post_vectors),
	KUNIT_CASE_PARAM(post_pieces, ct_mode_gen_params),
	KUNIT_CASE_PARAM(post_folio, ct_mode_gen_params),
	KUNIT_CASE_PARAM(post_mapped, ct_mode_gen_params),
	KUNIT_CASE_PARAM(post_injects, ct_mode_gen_params),
	KUNIT_CASE_PARAM(post_flags, ct_mode_gen_params),
	KUNIT_CASE(post_simple_forms),
	KUNIT_CASE_PARAM(post_order, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_post_suite = {
	.name = "contract_post",
	.suite_init = lo_suite_init,
	.test_cases = contract_post_cases,
	.attr.speed = KUNIT_SPEED_SLOW,
};

kunit_test_suite(contract_post_suite);
