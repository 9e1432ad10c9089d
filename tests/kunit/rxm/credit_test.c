// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits of kofi_rxm: over kofi_sock, which does not need them, so that a peer can
 * be one that does not keep to them.
 */
#include <linux/slab.h>

#include <kunit/static_stub.h>

#include "../../../providers/rxm/rxm.h"
#include "../param.h"
#include "raw.h"

#define RXC_BUFS	16	/* the module parameter rx_bufs */
#define RXC_KEPT	4	/* credits of so many that are not for messages */
#define RXC_ROUNDS	20
#define RXC_STRIDE	SZ_32K	/* of what the other end receives */

static bool rxc_used(const struct fi_info *msg)
{
	return true;
}

static int rxc_init(struct kunit *test)
{
	kunit_activate_static_stub(test, rxm_credits_used, rxc_used);
	return rxt_init(test);
}

/* ----------------------------------------------------------- between kernels */

/* However a message goes, and often enough to need credits again and again */
static void rxc_exchange(struct kunit *test)
{
	static const size_t lens[] = {
		0, 8, RXM_EAGER, RXM_EAGER + 1, RXM_SAR, RXM_SAR + 1, SZ_1M,
	};
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (n = 0; n < RXC_ROUNDS; n++)
			rxt_exchange(test, lens[i], n & 1, n & 2);
	}
}

/* The peer's messages find no receive: it is held back, and answers all the same. */
static void rxc_held(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	const unsigned int fit = RXC_BUFS - RXC_KEPT;
	struct fi_cq_tagged_entry entry;
	unsigned int i;

	test_param_set(test, &rxm_held_bufs, 0);
	rxt_pattern(t->out, SZ_1M, 5);
	for (i = 0; i < RXT_TX; i++) {
		KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out + i, 8, NULL,
					       a->peer[1], i, t->out + i), 0);
		/* there are half as many before there is a connection */
		if (!i)
			rxt_expect(test, a->tx, t->out, 0);
	}
	/* the peer had one for its credits, too, which is granted again later */
	for (i = 1; i < fit - 1; i++)
		rxt_expect(test, a->tx, t->out + i, 0);
	for (i = 0; i < RXC_ROUNDS; i++) {
		memset(t->in, 0, SZ_1M);
		KUNIT_ASSERT_EQ(test, fi_recv(a->ep, t->in, SZ_1M, NULL,
					      a->peer[1], t->in), 0);
		KUNIT_ASSERT_EQ(test, fi_send(b->ep, t->out, SZ_1M, NULL,
					      b->peer[0], t->out), 0);
		rxt_expect(test, a->rx, t->in, 0);
		KUNIT_EXPECT_EQ(test, rxt_differs(t->in, SZ_1M, 5), SZ_1M);
		/* when it has been answered */
		rxt_expect(test, b->tx, t->out, 0);
	}
	rxt_expect(test, a->tx, t->out + fit - 1, 0);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->tx, &entry, 1), -EAGAIN);
	rxt_held(test, b, fit);

	for (i = 0; i < RXT_TX; i++) {
		KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL,
					       b->peer[0], i, 0, t->in + i), 0);
		rxt_expect(test, b->rx, t->in + i, 0);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out + i, 8);
	}
	for (i = fit; i < RXT_TX; i++)
		rxt_expect(test, a->tx, t->out + i, 0);
}

/* Each receive that becomes free lets a message of a peer that is held back come. */
static void rxc_one_by_one(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	const unsigned int fit = RXC_BUFS - RXC_KEPT;
	unsigned int i;

	test_param_set(test, &rxm_held_bufs, 0);
	for (i = 0; i < RXT_TX; i++) {
		KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out + i, 8, NULL,
					       a->peer[1], i, t->out + i), 0);
		if (!i)
			rxt_expect(test, a->tx, t->out, 0);
	}
	/* and one of the peer's packets had credits */
	for (i = 1; i < fit - 1; i++)
		rxt_expect(test, a->tx, t->out + i, 0);
	for (i = 0; i < RXT_TX; i++) {
		KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL,
					       b->peer[0], i, 0, t->in + i), 0);
		rxt_expect(test, b->rx, t->in + i, 0);
		if (!i)
			rxt_expect(test, a->tx, t->out + fit - 1, 0);
		if (i < RXT_TX - fit)
			rxt_expect(test, a->tx, t->out + fit + i, 0);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "violations"), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), 0);
}

/* --------------------------------------------------------- against a bare peer */

static struct rxm_hdr *rxc_packet(struct rxt *t, unsigned int i)
{
	return (struct rxm_hdr *)(t->in + i * RXC_STRIDE);
}

static void rxc_recvs(struct kunit *test, struct rxt_raw *r, unsigned int first,
		      unsigned int n)
{
	struct rxt *t = test->priv;

	for (; n--; first++)
		KUNIT_ASSERT_EQ(test, fi_recv(r->ep, rxc_packet(t, first),
					      RXM_PACKET, NULL, 0,
					      rxc_packet(t, first)), 0);
}

/* A packet without payload; it has no completion */
static void rxc_send(struct kunit *test, struct rxt_raw *r, u64 id, u8 type,
		     u64 ctrl_data)
{
	struct rxm_hdr hdr;

	rxm_hdr_format(&hdr, type, (u32)id, 0);
	hdr.ctrl_data = ctrl_data;
	KUNIT_ASSERT_EQ(test, fi_inject(r->ep, &hdr, sizeof(hdr), 0), 0);
}

/* What has to be answered: the answer, and the packet that asks have come and gone. */
static void rxc_ask(struct kunit *test, struct rxt_raw *r, unsigned int n)
{
	struct rxt *t = test->priv;
	struct rxm_hdr *h = (struct rxm_hdr *)t->out;
	struct fi_cq_err_entry e;
	bool asked = false, answered = false;

	memset(t->out, 0, RXM_PACKET);
	rxm_hdr_format(h, RXM_ATOMIC, (u32)r->req.id, 0);
	h->op = RXM_OP_ATOMIC;
	h->atomic_count = 1;
	h->size = RXM_ATOMIC_MEM;
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, h, sizeof(*h) + h->size, NULL, 0,
				      h), 0);
	while (!asked || !answered) {
		KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
		asked |= e.op_context == h;
		answered |= e.op_context == rxc_packet(t, n);
	}
	KUNIT_EXPECT_EQ(test, rxc_packet(t, n)->type, RXM_ATOMIC_RSP);
}

static void rxc_connect(struct kunit *test, struct rxt_raw *r, u8 flow, int err)
{
	struct rxt *t = test->priv;
	struct rxm_cm_req req;

	rxt_raw_open(test, r);
	rxt_raw_req(&req, 4000);
	req.flow = flow;
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, &t->end[1], &req,
					      sizeof(req)), err);
}

/* What the endpoint tells of @n receives, one of which may not be back yet */
static unsigned int rxc_told(struct kunit *test, struct rxt_raw *r,
			     unsigned int n)
{
	struct rxt *t = test->priv;
	const struct rxm_hdr *h = rxc_packet(t, 0);

	rxt_expect(test, r->cq, (void *)h, 0);
	KUNIT_EXPECT_EQ(test, h->type, RXM_CREDITS);
	KUNIT_EXPECT_GE(test, h->ctrl_data, n - 1);
	KUNIT_EXPECT_LE(test, h->ctrl_data, n);
	return h->ctrl_data;
}

/* Connected, with a first packet, and told of @n receives of the endpoint */
static struct rxt_raw *rxc_peer(struct kunit *test, u8 type, u64 ctrl_data,
				unsigned int *n)
{
	struct rxt_raw *r = rxt_raw_alloc(test);

	rxc_connect(test, r, RXM_FLOW_ON, 0);
	KUNIT_EXPECT_EQ(test, r->rsp.flow, RXM_FLOW_ON);
	KUNIT_EXPECT_EQ(test, r->rsp.rx_size, RXC_BUFS);
	rxc_recvs(test, r, 0, 1);
	rxc_send(test, r, r->rsp.id, type, ctrl_data);
	*n = rxc_told(test, r, RXC_BUFS);
	return r;
}

static fi_addr_t rxc_known(struct kunit *test, struct rxt_raw *r)
{
	struct rxt *t = test->priv;
	fi_addr_t addr;

	rxt_raw_listen(test, r);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->end[0].av, &r->name, 1, &addr, 0,
					   NULL), 1);
	return addr;
}

/* A peer that does without cannot be had, who ever connects. */
static void rxc_refused(struct kunit *test)
{
	static const u8 flows[] = { RXM_FLOW_UNKNOWN, RXM_FLOW_OFF, 3 };
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	struct rxt_raw *r = rxt_raw_alloc(test);
	unsigned int i;
	fi_addr_t peer;

	for (i = 0; i < ARRAY_SIZE(flows); i++) {
		rxc_connect(test, r, flows[i], ECONNREFUSED);
		rxt_raw_close(test, r);
		KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "refused"), i + 1);
	}
	peer = rxc_known(test, r);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer, t->out), 0);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	KUNIT_EXPECT_EQ(test, r->req.flow, RXM_FLOW_ON);
	rxt_raw_accept(test, r, 5);
	rxt_expect(test, a->tx, t->out, EPROTO);
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "violations"), 1);
	rxt_raw_close(test, r);
	rxt_exchange(test, 100, false, false);
}

/* Numbers of credits that cannot be */
static const struct rxc_forged {
	const char	*name;
	u64		credits[2];
} rxc_forged[] = {
	{ "none", { 0 } },
	{ "too many", { 65537 } },
	{ "wild", { ~0ULL } },
	{ "too many in all", { 65535, 1000 } },
	{ "wild in all", { 1, 1ULL << 63 } },
};

static void rxc_forged_desc(const struct rxc_forged *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rxc_forged, rxc_forged, rxc_forged_desc);

static void rxc_forge(struct kunit *test)
{
	const struct rxc_forged *f = test->param_value;
	struct rxt *t = test->priv;
	struct rxt_raw *r;
	unsigned int n;

	r = rxc_peer(test, RXM_CREDITS, 1, &n);
	rxc_send(test, r, r->rsp.id, RXM_CREDITS, f->credits[0]);
	if (f->credits[1])
		rxc_send(test, r, r->rsp.id, RXM_CREDITS, f->credits[1]);
	KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(t->end[1].ep, "violations"), 1);
	rxt_raw_close(test, r);
	rxt_exchange(test, 100, false, false);
}

/* One packet more than there are credits; what came before it has arrived. */
static void rxc_overdrawn(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxt_raw *r;
	unsigned int i, n;

	/* and one for the first packet */
	for (i = 0; i < RXC_BUFS + 2; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in + i, 0, NULL,
					      FI_ADDR_UNSPEC, t->in + i), 0);
	r = rxc_peer(test, RXM_EAGER_MSG, 0, &n);
	rxt_expect(test, b->rx, t->in, 0);
	for (i = 1; i <= n; i++) {
		rxc_send(test, r, r->rsp.id, RXM_EAGER_MSG, 0);
		rxt_expect(test, b->rx, t->in + i, 0);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), 0);
	rxc_send(test, r, r->rsp.id, RXM_EAGER_MSG, 0);
	KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), 1);
	rxt_raw_close(test, r);
	for (; i < RXC_BUFS + 2; i++) {
		KUNIT_EXPECT_EQ(test, fi_cancel(&b->ep->fid, t->in + i), 0);
		rxt_expect(test, b->rx, t->in + i, ECANCELED);
	}
	rxt_exchange(test, 100, false, false);
}

static void rxc_sends(struct kunit *test, struct rxt_end *a, fi_addr_t peer,
		      unsigned int first, unsigned int end)
{
	struct rxt *t = test->priv;
	unsigned int i;

	for (i = first; i < end; i++)
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out + RXM_PACKET, 0,
					      NULL, peer, t->out + i), 0);
}

/* What is sent for so many credits, and in which order */
static void rxc_counted(struct kunit *test)
{
	const unsigned int data = RXC_BUFS - 1 - RXC_KEPT;
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxt_raw *r = rxt_raw_alloc(test);
	unsigned int i, n = 0;
	fi_addr_t peer;

	r->flow = RXM_FLOW_ON;
	peer = rxc_known(test, r);
	rxc_sends(test, a, peer, 0, RXT_TX / 2);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_accept(test, r, 5);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
	rxc_recvs(test, r, 0, 2 + RXT_TX);
	/* the one that both begin with is for that */
	rxt_expect(test, r->cq, rxc_packet(t, n), 0);
	KUNIT_EXPECT_EQ(test, rxc_packet(t, n++)->type, RXM_CREDITS);
	rxc_sends(test, a, peer, RXT_TX / 2, RXT_TX);
	rxc_send(test, r, r->req.id, RXM_CREDITS, RXC_BUFS - 1);
	for (i = 0; i < data; i++) {
		rxt_expect(test, r->cq, rxc_packet(t, n), 0);
		KUNIT_EXPECT_EQ(test, rxc_packet(t, n++)->type, RXM_EAGER_MSG);
	}
	/* not another message, as the others are for answers */
	rxc_ask(test, r, n++);
	for (i = 0; i < data; i++)
		rxt_expect(test, a->tx, t->out + i, 0);
	rxc_send(test, r, r->req.id, RXM_CREDITS, RXT_TX);
	for (; i < RXT_TX; i++) {
		rxt_expect(test, r->cq, rxc_packet(t, n), 0);
		KUNIT_EXPECT_EQ(test, rxc_packet(t, n++)->type, RXM_EAGER_MSG);
		rxt_expect(test, a->tx, t->out + i, 0);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "violations"), 0);
	rxt_raw_close(test, r);
}

/* What an earlier connection has left takes no receive from the next one. */
static void rxc_again(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxm_cm_req req;
	unsigned int i, n;
	struct rxt_raw *r;
	int err;

	test_param_set(test, &rxm_held_bufs, 0);
	r = rxc_peer(test, RXM_CREDITS, 1, &n);
	for (i = 0; i < n; i++)
		rxc_send(test, r, r->rsp.id, RXM_EAGER_MSG, 0);
	while (rxt_stat(b->ep, "rx_held") < n &&
	       time_before(jiffies, end))
		cond_resched();
	rxt_raw_close(test, r);
	rxt_raw_req(&req, 4000);
	req.flow = RXM_FLOW_ON;
	do {
		/* until the end of the first one has been noticed */
		rxt_raw_open(test, r);
		err = rxt_raw_connect(test, r, b, &req, sizeof(req));
		if (err)
			rxt_raw_close(test, r);
	} while (err == ECONNREFUSED && time_before(jiffies, end));
	KUNIT_ASSERT_EQ(test, err, 0);
	rxc_recvs(test, r, 0, 1);
	rxc_send(test, r, r->rsp.id, RXM_CREDITS, 1);
	rxc_told(test, r, RXC_KEPT);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 0, NULL,
					      FI_ADDR_UNSPEC, t->in), 0);
		rxt_expect(test, b->rx, t->in, 0);
	}
	rxt_raw_close(test, r);
}

/* A peer that has connected and does not send: it is told of receives some time later. */
static void rxc_quiet(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_raw *r = rxt_raw_alloc(test);

	rxc_connect(test, r, RXM_FLOW_ON, 0);
	rxc_recvs(test, r, 0, 1);
	rxt_expect(test, r->cq, rxc_packet(t, 0), 0);
	KUNIT_EXPECT_EQ(test, rxc_packet(t, 0)->type, RXM_CREDITS);
	KUNIT_EXPECT_EQ(test, rxc_packet(t, 0)->ctrl_data, RXC_BUFS - 1);
	rxt_raw_close(test, r);
}

static struct kunit_case rxc_cases[] = {
	KUNIT_CASE(rxc_exchange),
	KUNIT_CASE(rxc_held),
	KUNIT_CASE(rxc_one_by_one),
	KUNIT_CASE(rxc_refused),
	KUNIT_CASE_PARAM(rxc_forge, rxc_forged_gen_params),
	KUNIT_CASE(rxc_overdrawn),
	KUNIT_CASE(rxc_counted),
	KUNIT_CASE(rxc_again),
	KUNIT_CASE_SLOW(rxc_quiet),
	{}
};

static struct kunit_suite rxc_suite = {
	.name = "rxm_credit",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.init = rxc_init,
	.exit = rxt_exit,
	.test_cases = rxc_cases,
};

kunit_test_suite(rxc_suite);
