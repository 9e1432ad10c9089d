// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every kind of post there is, one after the other, on one connection; and what
 * may happen in between. The connection ends behind the first post, behind the
 * second, and so on, in each of the ways there are, and the other posts are made
 * all the same; or it ends when the first operation has completed, the second,
 * and so on. Or it does not end, but the kernel has no memory: one allocation
 * fails, of each post one after the other, of each post from inside a callback,
 * and of everything that is opened before.
 *
 * The checker knows all operations that were accepted: each completes once.
 */

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../contract/contract.h"

#define POST_LEN	100
#define POST_BIG	SZ_64K
#define POST_REGIONS	4

enum post_end {
	POST_SHUTDOWN,
	POST_DRAIN,
	POST_CLOSE,
	POST_ENDS
};

static const char *const post_end_names[POST_ENDS] = {
	"shutdown", "drain", "close",
};

/**
 * struct post_run - all posts on one connection
 * @p: the pair
 * @mem: region of side 1
 * @window: memory of it
 * @out: bytes to send
 * @pages: the same, as one page vector
 * @in: where messages arrive, POST_LEN each
 * @multi: where more of them do
 * @mr: regions of side 1's pool
 * @map: memory of these
 * @recvs: receives posted
 * @done: completions that have come
 * @accepted: operations that report
 */
struct post_run {
	struct ct_pair	*p;
	struct fid_mr	*mem;
	u8		*window;
	u8		*out;
	struct bio_vec	pages;
	u8		*in;
	u8		*multi;
	struct fid_mr	*mr[POST_REGIONS];
	u8		*map;
	unsigned int	recvs;
	atomic_t	done;
	unsigned int	accepted;
};

static void post_count(struct ct_op *op)
{
	struct post_run *r = op->buf;

	if (!op->multi || op->wc.flags & FI_MULTI_RECV)
		atomic_inc(&r->done);
}

/**
 * struct post_step - one post
 * @name: what
 * @fn: makes it
 * @side: on which side
 * @flags: for @fn
 * @nr: for @fn
 * @silent: there is no context
 * @multi: it is a multi-receive
 * @err: how it ends if all goes well
 */
struct post_step {
	const char	*name;
	ssize_t		(*fn)(struct fid_ep *ep, void *context, void *arg);
	int		side;
	u64		flags;
	unsigned int	nr;
	bool		silent;
	bool		multi;
	int		err;
};

struct post_arg {
	struct post_run		*r;
	const struct post_step	*s;
};

static ssize_t post_send(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	const struct kvec iov[] = {
		{ a->r->out, 10 }, { a->r->out + 10, POST_LEN - 10 },
	};
	const struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 2, .context = context, .data = 7,
	};

	return fi_sendmsg(ep, &msg, a->s->flags);
}

static ssize_t post_pages(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	const struct fi_msg msg = {
		.msg_bvec = &a->r->pages, .iov_count = 1, .context = context,
		.vec = KOFI_BVEC,
	};

	return fi_sendmsg(ep, &msg, a->s->flags);
}

static ssize_t post_inject(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;

	return fi_inject(ep, a->r->out, POST_LEN, 0);
}

static ssize_t post_tsend(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	const struct kvec iov = { a->r->out, POST_LEN };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context, .tag = 9,
	};

	return fi_tsendmsg(ep, &msg, a->s->flags);
}

static ssize_t post_recv(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	struct post_run *r = a->r;

	return fi_recv(ep, r->in + POST_LEN * r->recvs++, POST_LEN, NULL,
		       FI_ADDR_UNSPEC, context);
}

static ssize_t post_multi(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	const struct kvec iov = { a->r->multi, POST_BIG + POST_LEN };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
		.addr = FI_ADDR_UNSPEC,
	};

	return fi_recvmsg(ep, &msg, FI_MULTI_RECV);
}

static ssize_t post_trecv(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	struct post_run *r = a->r;

	return fi_trecv(ep, r->in + POST_LEN * r->recvs++, POST_LEN, NULL,
			FI_ADDR_UNSPEC, 9, 0, context);
}

static ssize_t post_peek(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	const struct fi_msg_tagged msg = {
		.context = context, .tag = 1, .addr = FI_ADDR_UNSPEC,
	};

	return fi_trecvmsg(ep, &msg, a->s->flags);
}

/* An access to the window, or to a region of the pool */
static ssize_t post_access(struct fid_ep *ep, void *context,
			   const struct post_arg *a, struct fid_mr *mr,
			   bool read)
{
	const struct kvec iov = { a->r->out + POST_BIG, POST_LEN };
	const struct fi_rma_iov rma = {
		.addr = kofi_mr_base(mr), .len = POST_LEN, .key = fi_mr_key(mr),
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &rma,
		.rma_iov_count = 1, .context = context,
	};

	return read ? fi_readmsg(ep, &msg, a->s->flags) :
		      fi_writemsg(ep, &msg, a->s->flags);
}

static ssize_t post_write(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;

	return post_access(ep, context, a, a->r->mem, false);
}

static ssize_t post_read(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;

	return post_access(ep, context, a, a->r->mem, true);
}

static ssize_t post_inject_write(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;

	return fi_inject_write(ep, a->r->out, POST_LEN, 0,
			       kofi_mr_base(a->r->mem), fi_mr_key(a->r->mem));
}

/* Without its region, an access would be a violation: not posted at all. */
static ssize_t post_write_once(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	struct fid_mr *mr = a->r->mr[a->s->nr];

	return mr ? post_access(ep, context, a, mr, false) : -ESHUTDOWN;
}

static ssize_t post_read_once(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	struct fid_mr *mr = a->r->mr[a->s->nr];

	return mr ? post_access(ep, context, a, mr, true) : -ESHUTDOWN;
}

static ssize_t post_invalidate(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	const struct kvec iov = { a->r->out, POST_LEN };
	struct fid_mr *mr = a->r->mr[a->s->nr];
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
		.inv_key = mr ? fi_mr_key(mr) : 0,
	};

	return fi_sendmsg(ep, &msg, a->s->flags | KOFI_REMOTE_INV);
}

static ssize_t post_map(struct fid_ep *ep, void *context, void *arg)
{
	const struct post_arg *a = arg;
	struct fid_mr **mr = &a->r->mr[a->s->nr];
	const struct kvec iov = { a->r->map + a->s->nr * POST_LEN, POST_LEN };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
	};
	int err;

	*mr = kofi_mr_get(ep);
	if (!*mr)
		return -ESHUTDOWN;
	err = kofi_mr_map(*mr, &msg, FI_REMOTE_READ | FI_REMOTE_WRITE,
			  a->s->flags);
	if (err) {
		kofi_mr_put(*mr);
		*mr = NULL;
	}
	return err;
}

/* A region for more uses: mapped here as well, which reports nothing */
static ssize_t post_unmap(struct fid_ep *ep, void *context, void *arg)
{
	struct post_arg *a = arg;
	struct ct_op *op = context;
	ssize_t err = post_map(ep, NULL, arg);

	return err ?: kofi_mr_unmap(a->r->mr[a->s->nr], &op->cqe);
}

static const struct post_step post_steps[] = {
	{ "receive", post_recv, 1 },
	{ "receive", post_recv, 1 },
	{ "receive", post_recv, 1 },
	{ "tagged receive", post_trecv, 1 },
	{ "send", post_send, 0 },
	{ "peek", post_peek, 1, FI_PEEK, .err = FI_ENOMSG },
	{ "peek and claim", post_peek, 1, FI_PEEK | FI_CLAIM,
	  .err = FI_ENOMSG },
	{ "send with data, delivery complete", post_send, 0,
	  FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE },
	{ "inject", post_inject, 0, .silent = true },
	{ "tagged send", post_tsend, 0, FI_TRANSMIT_COMPLETE },
	{ "single-use region", post_map, 1, FI_MR_SINGLE_USE, 0 },
	{ "single-use region", post_map, 1, FI_MR_SINGLE_USE, 1 },
	{ "single-use region", post_map, 1, FI_MR_SINGLE_USE, 2 },
	{ "region and its unmapping", post_unmap, 1, 0, 3 },
	{ "write", post_write, 0 },
	{ "write, delivery complete", post_write, 0, FI_DELIVERY_COMPLETE },
	{ "inject write", post_inject_write, 0, .silent = true },
	{ "read", post_read, 0 },
	{ "write to a single-use region", post_write_once, 0, 0, 0 },
	{ "read of a single-use region", post_read_once, 0, 0, 1 },
	{ "receive", post_recv, 1 },
	{ "send, more to come", post_send, 0, FI_MORE },
	{ "receive", post_recv, 1 },
	{ "invalidation", post_invalidate, 0, FI_DELIVERY_COMPLETE, 2 },
	{ "send of pages", post_pages, 0 },
	{ "multi-receive", post_multi, 1, .multi = true },
	{ "send with FI_INJECT", post_send, 0, FI_INJECT | FI_FENCE },
	{ "fenced read", post_read, 0, FI_FENCE },
};

#define POST_STEPS	ARRAY_SIZE(post_steps)

/* ---------------------------------------------------------------- one run */

static void post_pages_free(void *page)
{
	__free_pages(page, get_order(POST_BIG));
}

/* What all runs with a pair share */
static struct post_run *post_open(struct kunit *test, enum ct_mode mode)
{
	const struct ct_opts opts = {
		.mode = mode, .unconnected = true, .mr_pool = POST_REGIONS,
		.zerocopy_min = POST_BIG, .mr_mode = FI_MR_PROV_KEY,
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV,
	};
	struct post_run *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, r);
	page = alloc_pages(GFP_KERNEL | __GFP_COMP, get_order(POST_BIG));
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
							   post_pages_free,
							   page));
	bvec_set_page(&r->pages, page, POST_BIG, 0);
	ct_pattern(page_address(page), POST_BIG, 5);
	r->p = ct_pair_open(test, &opts);
	r->out = ct_buf(r->p, POST_BIG + POST_LEN);
	r->in = ct_buf(r->p, POST_STEPS * POST_LEN);
	r->multi = ct_buf(r->p, POST_BIG + POST_LEN);
	r->window = ct_buf(r->p, POST_LEN);
	r->map = ct_buf(r->p, POST_REGIONS * POST_LEN);
	ct_pattern(r->out, POST_LEN, 4);
	KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(r->p->domain, r->window, POST_LEN,
					   FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					   0, 0, &r->mem, r->p));
	return r;
}

static void post_close(struct kunit *test, struct post_run *r)
{
	KUNIT_EXPECT_EQ(test, 0, fi_close(&r->mem->fid));
	ct_pair_close(r->p);
}

/* A new connection between the same objects */
static void post_connect(struct kunit *test, struct post_run *r)
{
	struct ct_pair *p = r->p;

	if (!p->side[0].ep)
		KUNIT_ASSERT_EQ(test, 0, ct_ep_open(p, 0, p->info));
	KUNIT_ASSERT_EQ(test, 0, ct_pair_connect(p));
	memset(r->mr, 0, sizeof(r->mr));
	memset(r->in, 0, POST_STEPS * POST_LEN);
	memset(r->multi, 0, POST_BIG + POST_LEN);
	r->recvs = 0;
	r->accepted = 0;
	atomic_set(&r->done, 0);
}

/* Post it, if there is still an endpoint. */
static struct ct_op *post_step(struct post_run *r, const struct post_step *s,
			       ssize_t *ret)
{
	struct post_arg arg = { .r = r, .s = s };
	struct ct_op *op = NULL;

	*ret = -ESHUTDOWN;
	if (!r->p->side[s->side].ep)
		return NULL;
	if (!s->silent) {
		op = ct_op(r->p);
		op->buf = r;
		op->hook = post_count;
		op->multi = s->multi;
	}
	*ret = ct_post_fn(r->p, s->side, op, s->fn, &arg);
	r->accepted += op && !*ret;
	return op;
}

static void post_end(struct kunit *test, struct post_run *r, enum post_end end,
		     int side)
{
	switch (end) {
	case POST_SHUTDOWN:
		KUNIT_EXPECT_EQ(test, 0, fi_shutdown(r->p->side[side].ep, 0));
		break;
	case POST_DRAIN:
		ct_ep_drain(r->p, side);
		break;
	default:
		KUNIT_EXPECT_EQ(test, 0, ct_ep_close(r->p, side));
		break;
	}
}

/* All that was accepted has completed, now or when both ends are closed. */
static void post_finish(struct kunit *test, struct post_run *r, const char *what,
			unsigned int nr)
{
	int side;

	for (side = 0; side < 2; side++)
		KUNIT_EXPECT_EQ(test, 0, ct_ep_close(r->p, side));
	KUNIT_EXPECT_TRUE_MSG(test, ct_wait_all(r->p), "%s, %u", what, nr);
	KUNIT_EXPECT_EQ_MSG(test, r->accepted, atomic_read(&r->done),
			    "%s, %u", what, nr);
}

static void post_open_all(struct kunit *test, struct post_run *r[CT_MODES])
{
	enum ct_mode mode;

	for (mode = 0; mode < CT_MODES; mode++)
		r[mode] = post_open(test, mode);
}

static void post_close_all(struct kunit *test, struct post_run *r[CT_MODES])
{
	enum ct_mode mode;

	for (mode = 0; mode < CT_MODES; mode++)
		post_close(test, r[mode]);
}

/* ------------------------------------------------------------ undisturbed */

static void post_check(struct kunit *test, struct post_run *r,
		       struct ct_op *const *op, ssize_t refused)
{
	int i;

	KUNIT_EXPECT_TRUE(test, ct_wait_all(r->p));
	for (i = 0; i < POST_STEPS; i++)
		if (op[i] && i != refused)
			KUNIT_EXPECT_EQ_MSG(test, post_steps[i].err,
					    op[i]->wc.err, "%s",
					    post_steps[i].name);
	if (refused >= 0)
		return;
	for (i = 0; i < r->recvs; i++)
		KUNIT_EXPECT_TRUE_MSG(test, ct_pattern_ok(r->in + i * POST_LEN,
							  POST_LEN, 4),
				      "receive %d", i);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(r->multi, POST_BIG, 5));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(r->multi + POST_BIG, POST_LEN,
					      4));
}

static void drop_never(struct kunit *test)
{
	struct post_run *r = post_open(test, ct_mode_of(test));
	struct ct_op *op[POST_STEPS];
	ssize_t ret;
	int i;

	post_connect(test, r);
	for (i = 0; i < POST_STEPS; i++) {
		op[i] = post_step(r, &post_steps[i], &ret);
		KUNIT_ASSERT_EQ_MSG(test, 0, ret, "%s", post_steps[i].name);
	}
	post_check(test, r, op, -1);
	post_finish(test, r, "all", i);
	post_close(test, r);
}

/* ------------------------------------------------------- the connection ends */

static void drop_at_post(struct kunit *test)
{
	struct post_run *runs[CT_MODES], *r;
	unsigned int at, end, i, n = 0;
	ssize_t ret;

	post_open_all(test, runs);
	for (end = 0; end < 2 * POST_ENDS; end++) {
		for (at = 0; at <= POST_STEPS; at++) {
			r = runs[n++ % CT_MODES];
			post_connect(test, r);
			for (i = 0; i < POST_STEPS; i++) {
				if (i == at)
					post_end(test, r, end / 2, end % 2);
				post_step(r, &post_steps[i], &ret);
			}
			if (i == at)
				post_end(test, r, end / 2, end % 2);
			post_finish(test, r, post_end_names[end / 2], at);
		}
	}
	post_close_all(test, runs);
}

static void drop_at_completion(struct kunit *test)
{
	struct post_run *runs[CT_MODES], *r;
	unsigned int at, end, i, n = 0;
	ssize_t ret;

	post_open_all(test, runs);
	for (end = 0; end < 2 * POST_ENDS; end++) {
		for (at = 1; at <= POST_STEPS; at++) {
			r = runs[n++ % CT_MODES];
			post_connect(test, r);
			for (i = 0; i < POST_STEPS; i++)
				post_step(r, &post_steps[i], &ret);
			/* two have nothing to report */
			i = min(at, r->accepted);
			KUNIT_EXPECT_TRUE(test, ct_wait(r->p,
							atomic_read(&r->done) >=
							i, CT_TIMEOUT_MS));
			post_end(test, r, end / 2, end % 2);
			post_finish(test, r, post_end_names[end / 2], at);
		}
	}
	post_close_all(test, runs);
}

/* ------------------------------------------------------------ memory runs out */

#ifdef CONFIG_FAULT_INJECTION

/* The next allocations of this task: the @nth fails, unless it is 0. */
static void fault_set(unsigned int nth)
{
	current->fail_nth = nth;
}

/* No more of them. Returns whether it has come to that. */
static bool fault_clear(void)
{
	bool hit = !current->fail_nth;

	current->fail_nth = 0;
	return hit;
}

/* All posts; in that of step @at, the @nth allocation fails. */
static bool fault_run(struct kunit *test, struct post_run *r, unsigned int at,
		      unsigned int nth)
{
	struct ct_op *op[POST_STEPS];
	ssize_t ret, refused = -1;
	bool hit = false;
	int i;

	post_connect(test, r);
	for (i = 0; i < POST_STEPS; i++) {
		if (i == at)
			fault_set(nth);
		op[i] = post_step(r, &post_steps[i], &ret);
		if (i == at)
			hit = fault_clear();
		if (i == at && ret == -EAGAIN)
			refused = i;
		else
			KUNIT_EXPECT_EQ_MSG(test, 0, ret, "%s",
					    post_steps[i].name);
	}
	/* a message that was refused leaves others waiting */
	if (refused < 0)
		post_check(test, r, op, refused);
	post_finish(test, r, post_steps[at].name, nth);
	return hit;
}

/* Each allocation of each post fails once: TCP lacks memory, we do not. */
static void fault_at_post(struct kunit *test)
{
	unsigned int at, nth, hits = 0;
	struct post_run *runs[CT_MODES];

	post_open_all(test, runs);
	for (at = 0; at < POST_STEPS; at++)
		for (nth = 1; fault_run(test, runs[(at + nth) % CT_MODES], at,
					nth); nth++)
			hits++;
	post_close_all(test, runs);
	kunit_info(test, "%u allocations failed\n", hits);
	KUNIT_EXPECT_GT(test, hits, 0U);
}

/* The same for a post in a callback, where that may be asked */
struct fault_reply {
	struct post_run	*r;
	unsigned int	nth;
	bool		hit;
	ssize_t		ret;
};

static void fault_reply(struct ct_op *op)
{
	struct fault_reply *f = op->buf;
	struct ct_op *reply = ct_op(op->pair);

	fault_set(f->nth);
	f->ret = ct_send(op->pair, 1, reply, f->r->out, POST_LEN);
	f->hit = fault_clear();
}

static bool fault_done_run(struct kunit *test, struct post_run *r,
			   unsigned int nth)
{
	struct fault_reply f = { .r = r, .nth = nth };
	struct ct_op *op, *in;

	post_connect(test, r);
	op = ct_op(r->p);
	op->buf = &f;
	op->hook = fault_reply;
	in = ct_op(r->p);
	KUNIT_EXPECT_EQ(test, 0, ct_recv(r->p, 1, op, r->in, POST_LEN));
	KUNIT_EXPECT_EQ(test, 0, ct_recv(r->p, 0, in, r->in + POST_LEN,
					 POST_LEN));
	KUNIT_EXPECT_EQ(test, 0, ct_send(r->p, 0, ct_op(r->p), r->out,
					 POST_LEN));
	KUNIT_EXPECT_TRUE(test, ct_wait_all(r->p));
	KUNIT_EXPECT_EQ(test, 0, f.ret);
	KUNIT_EXPECT_EQ(test, 0, in->wc.err);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(r->in + POST_LEN, POST_LEN, 4));
	post_finish(test, r, "reply", nth);
	return f.hit;
}

static void fault_at_completion(struct kunit *test)
{
	struct post_run *direct = post_open(test, CT_DIRECT);
	struct post_run *work = post_open(test, CT_WORKQUEUE);
	unsigned int nth, hits = 0;

	for (nth = 1; fault_done_run(test, direct, nth); nth++)
		hits++;
	for (nth = 1; fault_done_run(test, work, nth); nth++)
		hits++;
	post_close(test, direct);
	post_close(test, work);
	KUNIT_EXPECT_GT(test, hits, 1U);
}

/*
 * Each allocation of opening all objects fails once. Those that may sleep count
 * only where the machine has been told so (ignore-gfp-wait).
 */
static void fault_at_open(struct kunit *test)
{
	unsigned int nth = 0, failed = 0;
	struct ct_pair *p;
	bool hit;
	int err;

	do {
		p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, p);
		p->test = test;
		p->opts = (struct ct_opts){
			.unconnected = true, .mr_pool = 2,
			.mr_mode = FI_MR_PROV_KEY,
			.caps = FI_MSG | FI_TAGGED | FI_RMA,
		};
		fault_set(++nth);
		err = ct_pair_setup(p);
		err = err ?: fi_enable(p->side[0].ep);
		hit = fault_clear();
		failed += !!err;
		if (err && err != -ENOMEM)
			KUNIT_EXPECT_TRUE_MSG(test, hit, "error %d", err);
		ct_pair_close(p);
		kvfree(p->ops);
		kunit_kfree(test, p);
	} while (hit);
	kunit_info(test, "%u allocations failed, %u times that was an error\n",
		   nth - 1, failed);
	KUNIT_EXPECT_LT(test, failed, nth);
}

#endif /* CONFIG_FAULT_INJECTION */

static struct kunit_case drop_post_cases[] = {
	KUNIT_CASE_PARAM(drop_never, ct_mode_gen_params),
	KUNIT_CASE_SLOW(drop_at_post),
	KUNIT_CASE_SLOW(drop_at_completion),
#ifdef CONFIG_FAULT_INJECTION
	KUNIT_CASE_SLOW(fault_at_post),
	KUNIT_CASE(fault_at_completion),
	KUNIT_CASE_SLOW(fault_at_open),
#endif
	{}
};

static struct kunit_suite drop_post_suite = {
	.name = "sock_drop_post",
	.suite_init = lo_suite_init,
	.test_cases = drop_post_cases,
};

kunit_test_suite(drop_post_suite);
