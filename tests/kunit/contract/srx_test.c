// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive contexts: receives for whichever connection a message comes
 * to, and contract 2 (each accepted receive completes once) for them, also if
 * connections die in the middle of a message.
 */

#include <linux/slab.h>

#include "contract.h"

#define CONNS	4
#define SMALL	64

/*
 * Several connections of one pair. They report to the same queues; the pair
 * knows the endpoints of one of them at a time.
 */
struct conns {
	struct ct_pair	*p;
	struct fid_ep	*ep[CONNS][2];
};

static void conns_close(struct conns *c, int nr)
{
	int side;

	for (side = 0; side < 2; side++) {
		if (c->ep[nr][side])
			KUNIT_EXPECT_EQ(c->p->test, 0,
					fi_close(&c->ep[nr][side]->fid));
		c->ep[nr][side] = NULL;
		c->p->side[side].ep = NULL;
	}
}

static void conns_close_all(void *arg)
{
	struct conns *c = arg;
	int i;

	for (i = 0; i < CONNS; i++)
		conns_close(c, i);
}

static void conns_use(struct conns *c, int nr)
{
	int side;

	for (side = 0; side < 2; side++)
		c->p->side[side].ep = c->ep[nr][side];
}

/* What the pair has now becomes a connection of its own. */
static void conns_keep(struct conns *c, int nr)
{
	int side;

	for (side = 0; side < 2; side++)
		c->ep[nr][side] = c->p->side[side].ep;
}

static void conns_connect(struct conns *c, int nr)
{
	struct ct_pair *p = c->p;

	p->side[0].ep = NULL;
	p->side[1].ep = NULL;
	KUNIT_ASSERT_EQ(p->test, ct_ep_open(p, 0, p->info), 0);
	KUNIT_EXPECT_EQ(p->test, ct_pair_connect(p), 0);
	conns_keep(c, nr);
}

static struct conns *conns_open(struct kunit *test, const struct ct_opts *opts,
				int nr)
{
	struct conns *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct fi_info *hints = ct_hints(), *info;
	size_t max;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	i = ct_getinfo(0, hints, &info);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, i, 0);
	max = info->domain_attr->max_ep_srx_ctx;
	fi_freeinfo(info);
	if (!max)
		kunit_skip(test, "the device has no shared receive queues");
	c->p = ct_pair_open(test, opts);
	conns_keep(c, 0);
	i = kunit_add_action_or_reset(test, conns_close_all, c);
	KUNIT_ASSERT_EQ(test, i, 0);
	for (i = 1; i < nr; i++)
		conns_connect(c, i);
	return c;
}

static void conns_end(struct conns *c)
{
	struct ct_pair *p = c->p;

	kunit_release_action(p->test, conns_close_all, c);
	ct_pair_close(p);
}

/* Receives that have got a message of this length */
static int srx_received(struct ct_pair *p, size_t len)
{
	int i, n = 0;

	for (i = 0; i < atomic_read(&p->used); i++)
		if (p->ops[i].side && ct_is_done(&p->ops[i]) &&
		    !p->ops[i].wc.err && p->ops[i].wc.len == len)
			n++;
	return n;
}

/* ------------------------------------------------- messages of all peers */

enum { EACH = 48, ROOM = 4096 };

static size_t srx_len(int conn, int i)
{
	return 8 + (i * 131 + conn * 977) % (ROOM - 8);
}

static void srx_check(struct conns *c, struct ct_op **recv)
{
	struct kunit *test = c->p->test;
	u32 next[CONNS] = {};
	unsigned int seq;
	int i, k;

	/* in the order of the completions */
	for (seq = 0; seq < CONNS * EACH; seq++) {
		struct ct_op *op = NULL;
		u32 *head;

		for (i = 0; i < CONNS * EACH; i++)
			if (recv[i] && (!op || recv[i]->seq < op->seq)) {
				op = recv[i];
				k = i;
			}
		recv[k] = NULL;
		head = op->buf;
		KUNIT_EXPECT_EQ(test, op->wc.err, 0);
		KUNIT_ASSERT_LT(test, head[0], CONNS);
		KUNIT_EXPECT_EQ_MSG(test, head[1], next[head[0]],
				    "order of connection %u", head[0]);
		KUNIT_EXPECT_EQ(test, op->wc.len, srx_len(head[0], head[1]));
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(head + 2, op->wc.len - 8,
						      head[0]));
		next[head[0]]++;
	}
}

static void srx_shared(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .srx_size = CONNS * EACH,
	};
	struct conns *c = conns_open(test, &opts, CONNS);
	struct ct_op **recv = ct_buf(c->p, CONNS * EACH * sizeof(*recv));
	u8 *out = ct_buf(c->p, CONNS * EACH * ROOM);
	u8 *in = ct_buf(c->p, CONNS * EACH * ROOM);
	struct fi_cntr_attr attr = {};
	struct ct_pair *p = c->p;
	struct fid_cntr *cntr;
	int i, k;

	/* nothing has been posted to it yet */
	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &cntr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->srx, &cntr->fid, FI_RECV), 0);
	for (i = 0; i < CONNS * EACH; i++) {
		recv[i] = ct_op(p);
		recv[i]->buf = in + i * ROOM;
		KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv[i], recv[i]->buf,
					      ROOM), 0);
	}
	/* no more than it has been opened for */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), in, ROOM), -EAGAIN);
	for (i = 0; i < EACH; i++) {
		for (k = 0; k < CONNS; k++) {
			u32 *head = (void *)(out + (i * CONNS + k) * ROOM);

			head[0] = k;
			head[1] = i;
			ct_pattern(head + 2, srx_len(k, i) - 8, k);
			conns_use(c, k);
			KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), head,
						      srx_len(k, i)), 0);
		}
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	srx_check(c, recv);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), (u64)CONNS * EACH);
	/* and there is room again */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), in, ROOM), 0);
	kunit_release_action(test, conns_close_all, c);
	ct_srx_close(p);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr), 1ULL);
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), 0);
	ct_pair_close(p);
}

/* ----------------------------------------------------- connections that die */

/*
 * A connection dies, its messages arriving, again and again; another one lives
 * on. At the end each receive has completed once.
 */
static void srx_dying(struct kunit *test)
{
	enum { ROUNDS = 16, BURST = 4, BIG = 256 << 10 };
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .srx_size = 2 * ROUNDS * BURST,
	};
	struct conns *c = conns_open(test, &opts, 1);
	struct ct_pair *p = c->p;
	u8 *out = ct_buf(p, BIG), *in = ct_buf(p, BIG);
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		int before;

		for (i = 0; i < BURST + 1; i++)
			KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), in, BIG),
					0);
		conns_connect(c, 1);
		before = srx_received(p, BIG);
		for (i = 0; i < BURST; i++)
			KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), out, BIG),
					0);
		/* after none of them, one, ... */
		KUNIT_EXPECT_TRUE(test, ct_wait(p, srx_received(p, BIG) >=
						before + round % BURST,
						CT_TIMEOUT_MS));
		conns_close(c, 1);
		conns_use(c, 0);
		before = srx_received(p, SMALL);
		KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), out, SMALL), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait(p, srx_received(p, SMALL) >
						before, CT_TIMEOUT_MS));
	}
	conns_end(c);
}

/* ------------------------------------------------------ the context's end */

static void srx_end(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test), .srx_size = 8 };
	struct conns *c = conns_open(test, &opts, 2);
	struct ct_pair *p = c->p;
	u8 *buf = ct_buf(p, SMALL);
	struct ct_op *recv[4], *late;
	int i;

	KUNIT_EXPECT_EQ(test, fi_recv(p->side[1].ep, buf, SMALL, NULL, 0, buf),
			-ENOSYS);
	for (i = 0; i < ARRAY_SIZE(recv); i++) {
		recv[i] = ct_op(p);
		KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv[i], buf, SMALL), 0);
	}
	KUNIT_EXPECT_EQ(test, ct_inject(p, 0, buf, SMALL), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, srx_received(p, SMALL) == 1,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, fi_close(&p->srx->fid), -EBUSY);
	/* the end of an endpoint is not that of receives it does not have */
	conns_close(c, 1);
	conns_use(c, 0);
	KUNIT_EXPECT_EQ(test, ct_inject(p, 0, buf, SMALL), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, srx_received(p, SMALL) == 2,
					CT_TIMEOUT_MS));
	conns_close(c, 0);
	KUNIT_EXPECT_FALSE(test, ct_all_done(p));
	kofi_ep_drain(p->srx);
	ct_progress(p);
	KUNIT_EXPECT_TRUE(test, ct_all_done(p));
	KUNIT_EXPECT_EQ(test, recv[3]->wc.err, ECANCELED);
	late = ct_op(p);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, late, buf, SMALL), -ESHUTDOWN);
	conns_end(c);
}

/* Draining a context some use still is no way to lose a receive, either. */
static void srx_drain_used(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test), .srx_size = 8 };
	struct conns *c = conns_open(test, &opts, 2);
	struct ct_pair *p = c->p;
	u8 *buf = ct_buf(p, SMALL);
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), buf, SMALL), 0);
	kofi_ep_drain(p->srx);
	ct_progress(p);
	KUNIT_EXPECT_TRUE(test, ct_all_done(p));
	conns_end(c);
}

/* -------------------------------------------------------------- bad input */

/* An endpoint that was granted a shared context is not enabled without it. */
static void srx_demanded(struct kunit *test, struct ct_pair *p)
{
	struct fi_info *info = fi_dupinfo(p->info);
	struct fid_ep *ep;

	KUNIT_ASSERT_NOT_NULL(test, info);
	info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	KUNIT_ASSERT_EQ(test, fi_endpoint(p->domain, info, &ep, p), 0);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &p->side[0].eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &p->side[0].tx.cq->fid, FI_TRANSMIT), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &p->side[1].rx.cq->fid, FI_RECV), 0);
	if (ct_rdm())
		KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &p->side[0].av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &p->srx->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

/* Beyond the attributes of the provider's endpoints, nothing is accepted. */
static void srx_attributes(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .srx_size = 8 };
	struct conns *c = conns_open(test, &opts, 1);
	struct ct_pair *p = c->p;
	const struct fi_rx_attr *has = p->info->rx_attr;
	const struct {
		const char		*name;
		struct fi_rx_attr	attr;
		int			ret;
	} rows[] = {
		{ "granted", *has, 0 },
		{ "orders", { .msg_order = has->msg_order, .comp_order = has->comp_order }, 0 },
		{ "capability of a transmit", { .caps = FI_SEND }, -EINVAL },
		{ "unknown capability", { .caps = FI_COLLECTIVE }, -EINVAL },
		{ "mode", { .mode = FI_MSG_PREFIX }, -EINVAL },
		{ "flag", { .op_flags = FI_CLAIM }, -FI_EBADFLAGS },
		{ "order", { .msg_order = FI_ORDER_ATOMIC_WAR }, -EINVAL },
		{ "order of completions", { .comp_order = FI_ORDER_DATA }, -EINVAL },
		{ "buffered bytes", { .total_buffered_recv = SIZE_MAX }, -EINVAL },
		{ "receives", { .size = SIZE_MAX }, -EINVAL },
		{ "segments", { .iov_limit = SIZE_MAX }, -EINVAL },
	};
	struct fi_rx_attr attr;
	struct fid_ep *srx;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		attr = rows[i].attr;
		ret = fi_srx_context(p->domain, &attr, &srx, p);
		KUNIT_EXPECT_EQ_MSG(test, ret, rows[i].ret, "%s", rows[i].name);
		if (!ret)
			KUNIT_EXPECT_EQ(test, fi_close(&srx->fid), 0);
	}
	conns_end(c);
}

static void srx_refused(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .srx_size = 8 };
	struct conns *c = conns_open(test, &opts, 1);
	struct ct_pair *p = c->p;
	struct fi_rx_attr many = { .size = SIZE_MAX };
	struct fi_rx_attr long_iov = { .iov_limit = KOFI_IOV_MAX + 1 };
	struct fi_rx_attr flags = { .op_flags = FI_INJECT };
	struct fid_ep *srx;

	KUNIT_EXPECT_EQ(test, fi_srx_context(p->domain, &many, &srx, p),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_srx_context(p->domain, &long_iov, &srx, p),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_srx_context(p->domain, &flags, &srx, p),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_srx_context(p->domain, NULL, &srx, p), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(srx, p, 1, NULL, 0, p), -FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_send(srx, p, 1, NULL, 0, p), -ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_close(&srx->fid), 0);
	srx_demanded(test, p);
	conns_end(c);
}

static struct kunit_case contract_srx_cases[] = {
	KUNIT_CASE_PARAM(srx_shared, ct_mode_gen_params),
	KUNIT_CASE_PARAM(srx_dying, ct_mode_gen_params),
	KUNIT_CASE_PARAM(srx_end, ct_mode_gen_params),
	KUNIT_CASE_PARAM(srx_drain_used, ct_mode_gen_params),
	KUNIT_CASE(srx_attributes),
	KUNIT_CASE(srx_refused),
	{}
};

static struct kunit_suite contract_srx_suite = {
	.name = "contract_srx",
	.suite_init = lo_suite_init,
	.test_cases = contract_srx_cases,
	.attr.speed = KUNIT_SPEED_SLOW,
};

kunit_test_suite(contract_srx_suite);
