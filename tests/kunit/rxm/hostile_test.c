// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers of kofi_rxm that misbehave: a plain endpoint of kofi_sock says it is one.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include <kunit/static_stub.h>

#include "../../../providers/rxm/rxm.h"
#include "../param.h"
#include "raw.h"

#define RXT_BUFS	16	/* the module parameter rx_bufs */
#define RXT_FLOOD	200
#define RXT_ROUNDS	20

/* ------------------------------------------------------ what is not allowed */

/* Requests that are none are refused, and counted. */
static void rxt_bad_request(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_cm_req req;
	struct rxt_raw *r = rxt_raw_alloc(test);
	int i;

	for (i = 0; i < 5; i++) {
		rxt_raw_open(test, r);
		rxt_raw_req(&req, 4000);
		switch (i) {
		case 0:
			req.version++;
			break;
		case 1:
			req.endian ^= 3;
			break;
		case 2:
			req.eager = 4096;
			break;
		case 3:
			req.port = 0;
			break;
		}
		KUNIT_EXPECT_EQ(test, rxt_raw_connect(test, r, a, &req,
						      i == 4 ? 23 :
						      sizeof(req)),
				ECONNREFUSED);
		rxt_raw_close(test, r);
		KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "refused"), i + 1);
	}
	rxt_exchange(test, 100, false, false);
}

/* Packets no peer may send end its connection, and nothing else. */
static const struct rxt_forged {
	const char	*name;
	struct rxm_hdr	hdr;
	struct rxm_hdr	then;
	size_t		payload;
	bool		other_id;
	unsigned int	times;
} rxt_forged[] = {
	{ "too short", {}, .payload = -8 },
	{ "another connection's number", { .type = RXM_EAGER_MSG },
	  .other_id = true },
	{ "unknown type", { .type = 77 } },
	{ "length", { .type = RXM_EAGER_MSG, .size = 9 }, .payload = 8 },
	{ "segment of nothing", { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_MIDDLE, .seg_no = 1, .seg_size = 8, .size = 100 },
	  .payload = 8 },
	{ "first segment twice", { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_FIRST, .seg_size = 8, .size = 100 },
	  { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_FIRST, .seg_size = 8, .size = 100 }, .payload = 8,
	  .times = 2 },
	{ "segment left out", { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_FIRST, .seg_size = 8, .size = 100 },
	  { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_MIDDLE, .seg_no = 2, .seg_size = 8, .size = 100 },
	  .payload = 8, .times = 2 },
	{ "segment of another length", { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_FIRST, .seg_size = 8, .size = 100 },
	  { .type = RXM_SEGMENT, .ctrl_data =
	  RXM_SEG_MIDDLE, .seg_no = 1, .seg_size = 8, .size = 99 },
	  .payload = 8, .times = 2 },
	{ "done that was not asked for", { .type = RXM_READ_DONE } },
	{ "done with a wild number", { .type = RXM_READ_DONE,
	  .msg_id = 0xffffffffffffffff } },
	{ "write that was not asked for", { .type = RXM_WRITE_DATA },
	  .payload = sizeof(struct rxm_rndv) },
	{ "written that was not asked for", { .type = RXM_WRITE_DONE } },
	{ "atomic answer", { .type = RXM_ATOMIC_RSP }, .payload = 8 },
	{ "rendezvous without memory", { .type = RXM_RNDV_REQ, .size = 100 },
	  .payload = sizeof(struct rxm_rndv) },
	{ "credits where there are none", { .type = RXM_CREDITS,
	  .ctrl_data = 1 } },
	{ "packet too long", { .type = RXM_EAGER_MSG, .size = RXM_EAGER + 1 },
	  .payload = RXM_EAGER + 1 },
};

static void rxt_forged_desc(const struct rxt_forged *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rxt_forged, rxt_forged, rxt_forged_desc);

static void rxt_forge(struct kunit *test)
{
	const struct rxt_forged *f = test->param_value;
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxm_hdr *h = (struct rxm_hdr *)t->out;
	struct fi_cq_err_entry e;
	struct rxm_cm_req req;
	struct rxt_raw *r = rxt_raw_alloc(test);
	unsigned int i;

	rxt_exchange(test, 100, false, false);
	rxt_raw_open(test, r);
	rxt_raw_req(&req, 4000);
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, b, &req, sizeof(req)),
			0);
	memset(t->out, 0, RXM_PACKET + 64);
	for (i = 0; i < (f->times ?: 1); i++) {
		const struct rxm_hdr *hdr = i ? &f->then : &f->hdr;

		if (i)
			KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
		rxm_hdr_format(h, hdr->type, (u32)r->rsp.id + f->other_id,
			       hdr->msg_id);
		h->ctrl_data = hdr->ctrl_data;
		h->size = hdr->size;
		h->seg_size = hdr->seg_size;
		h->seg_no = hdr->seg_no;
		KUNIT_ASSERT_EQ(test, fi_send(r->ep, h, sizeof(*h) + f->payload,
					      NULL, 0, NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), 1);
	rxt_raw_close(test, r);
	rxt_exchange(test, 100, false, false);
	rxt_exchange(test, RXM_SAR + 1, true, false);
}

/* Tags to an endpoint that has none: nothing would ever take the message. */
static void rxt_untagged(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxt_raw *r = rxt_raw_alloc(test);
	struct rxm_hdr *h = (struct rxm_hdr *)t->out;
	static const u8 types[] = { RXM_EAGER_MSG, RXM_SEGMENT, RXM_RNDV_REQ };
	struct rxm_rndv *rndv = (void *)(h + 1);
	struct rxm_cm_req req;
	int i;

	rxt_close_end(test, b);
	t->info->caps &= ~FI_TAGGED;
	rxt_open_end(test, t, b);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		rxt_raw_open(test, r);
		rxt_raw_req(&req, 4000 + i);
		KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, b, &req,
						      sizeof(req)), 0);
		rxm_hdr_format(h, types[i], (u32)r->rsp.id, i);
		h->op = RXM_OP_TAGGED;
		h->size = RXM_SAR;
		h->seg_size = sizeof(*rndv);
		h->ctrl_data = types[i] == RXM_SEGMENT ? RXM_SEG_FIRST : 0;
		if (types[i] == RXM_EAGER_MSG)
			h->size = sizeof(*rndv);
		*rndv = (struct rxm_rndv) {
			.mem[0] = { .len = RXM_SAR }, .count = 1,
		};
		KUNIT_ASSERT_EQ(test, fi_send(r->ep, h, sizeof(*h) +
					      sizeof(*rndv), NULL, 0, NULL), 0);
		KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
		KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), i + 1);
		KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "rx_unexpected"), 0);
		rxt_raw_close(test, r);
	}
}

/* A rendezvous whose memory is not there: the receive ends, once. */
static void rxt_bad_memory(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct {
		struct rxm_hdr	hdr;
		struct rxm_rndv	rndv;
	} *p = (void *)t->out;
	struct fi_cq_err_entry e;
	struct rxm_cm_req req;
	struct rxt_raw *r = rxt_raw_alloc(test);

	rxt_raw_open(test, r);
	rxt_raw_req(&req, 4000);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, SZ_1M, NULL, FI_ADDR_UNSPEC,
				      t->in), 0);
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, b, &req, sizeof(req)),
			0);
	rxm_hdr_format(&p->hdr, RXM_RNDV_REQ, (u32)r->rsp.id, 1);
	p->hdr.size = SZ_1M;
	p->rndv = (struct rxm_rndv) {
		.mem[0] = { .len = SZ_1M, .key = 4711 }, .count = 1,
	};
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, p, sizeof(*p), NULL, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, rxt_comp(b->rx, &e, NULL), ECONNRESET);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t->in);
	rxt_raw_close(test, r);
	rxt_exchange(test, 100, false, false);
}

/* As if the peer had answered in the middle of a post below that is refused */
static int rxt_send_answered(struct rxm_conn *c, void *buf, size_t len,
			     struct kofi_cqe *cqe, unsigned int keep)
{
	const struct rxm_hdr *h = buf;
	struct rxm_hdr done;

	if (h->type == RXM_RNDV_REQ) {
		rxm_hdr_format(&done, RXM_READ_DONE, 0, h->msg_id);
		spin_lock_bh(&c->rx_lock);
		rxm_rndv_answered(c, &done);
		spin_unlock_bh(&c->rx_lock);
	}
	return -EAGAIN;
}

/* Throw away what waits at an end, so that its senders are not held back. */
static void rxt_discard(struct kunit *test, struct rxt_end *e, u64 tag)
{
	const struct fi_msg_tagged what = {
		.addr = FI_ADDR_UNSPEC, .tag = tag, .context = e,
	};
	struct fi_cq_err_entry entry;

	do {
		KUNIT_ASSERT_EQ(test, fi_trecvmsg(e->ep, &what, FI_PEEK |
						  FI_DISCARD), 0);
	} while (!rxt_comp(e->rx, &entry, NULL));
	KUNIT_EXPECT_EQ(test, entry.err, FI_ENOMSG);
}

/* An answer to what has not been sent yet: the transmit ends, once. */
static void rxt_answered_early(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct fi_cq_err_entry e;
	unsigned int tries = 0;
	u64 connects;

	rxt_exchange(test, 100, false, false);
	connects = rxt_stat(a->ep, "connects");
	kunit_activate_static_stub(test, rxm_send_bytes, rxt_send_answered);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, SZ_1M, NULL, a->peer[1],
				      t->out), 0);
	kunit_deactivate_static_stub(test, rxm_send_bytes);
	rxt_comp(a->tx, &e, NULL);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t->out);
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "violations"), 1);
	/* by another connection, however long that takes on a busy host */
	do {
		KUNIT_ASSERT_LT(test, tries++, RXT_ROUNDS);
		KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out, 8, NULL,
					       a->peer[1], 9, t->out), 0);
	} while (rxt_comp(a->tx, &e, NULL));
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "connects"), connects + 1);
	rxt_discard(test, &t->end[1], 9);
	rxt_exchange(test, RXM_SAR + 1, false, false);
}

/* ------------------------------------------------------------------ limits */

/* What one peer may pin: its own buffers, and half of the others */
static const struct rxt_limit {
	unsigned int	held_bufs;
	unsigned int	least;
	unsigned int	most;
} rxt_limits[] = {
	{ 0, RXT_BUFS, RXT_BUFS },
	{ 8, RXT_BUFS, 4 + RXT_BUFS },
	{ 64, 32, 32 + RXT_BUFS },
};

static void rxt_limit_desc(const struct rxt_limit *l, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "held_bufs %u", l->held_bufs);
}

KUNIT_ARRAY_PARAM(rxt_limits, rxt_limits, rxt_limit_desc);

/* One message each, of its number */
static void rxt_flood_send(struct kunit *test, struct rxt_raw *r, u8 *mem)
{
	struct rxm_hdr *h = (struct rxm_hdr *)mem;
	struct fi_cq_err_entry e;
	ssize_t err;
	int i;

	for (i = 0; i < RXT_FLOOD; i++) {
		rxm_hdr_format(h, RXM_EAGER_MSG, (u32)r->rsp.id, 0);
		h->size = sizeof(i);
		memcpy(h + 1, &i, sizeof(i));
		while ((err = fi_send(r->ep, h, sizeof(*h) + sizeof(i), NULL, 0,
				      NULL)) == -EAGAIN)
			KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
		KUNIT_ASSERT_EQ(test, err, 0);
		h += 2;
	}
}

static void rxt_flooded(struct kunit *test)
{
	const struct rxt_limit *l = test->param_value;
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct fi_cq_err_entry e;
	struct rxm_cm_req req;
	struct rxt_raw *r = rxt_raw_alloc(test);
	int i, n, more;

	test_param_set(test, &rxm_held_bufs, l->held_bufs);
	rxt_raw_open(test, r);
	rxt_raw_req(&req, 4000);
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, b, &req, sizeof(req)),
			0);
	/* rxt_exchange() uses the beginning */
	rxt_flood_send(test, r, t->out + SZ_1M);
	/* others are not held up, and each message of theirs is another chance */
	for (i = 0, more = 0; more < RXT_ROUNDS; i++) {
		rxt_exchange(test, 100, true, false);
		more += rxt_stat(b->ep, "rx_held") >= l->least;
		KUNIT_ASSERT_LT(test, i, 100000);
	}
	/* and what has just been received */
	KUNIT_EXPECT_LE(test, rxt_stat(b->ep, "rx_held"), l->most + 1);

	for (i = 0; i < RXT_FLOOD; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, &n, sizeof(n), NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_ASSERT_EQ(test, n, i);
	}
	rxt_raw_close(test, r);
}

/* The peer answers behind messages that find no receive, more than it may have. */
static void rxt_flooded_answer(struct kunit *test)
{
	const unsigned int held = 4 * RXT_BUFS, n = held - RXT_BUFS;
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	unsigned int i;

	test_param_set(test, &rxm_held_bufs, held);
	rxt_pattern(t->out, SZ_1M, 5);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out, 8, NULL,
					       a->peer[1], i, t->out), 0);
		rxt_expect(test, a->tx, t->out, 0);
	}
	KUNIT_ASSERT_EQ(test, fi_recv(a->ep, t->in, SZ_1M, NULL, a->peer[1],
				      t->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(b->ep, t->out, SZ_1M, NULL, b->peer[0],
				      t->out), 0);
	rxt_expect(test, a->rx, t->in, 0);
	KUNIT_EXPECT_EQ(test, rxt_differs(t->in, SZ_1M, 5), SZ_1M);
	rxt_expect(test, b->tx, t->out, 0);
	rxt_held(test, b, n);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL,
					       b->peer[0], i, 0, t->in), 0);
		rxt_expect(test, b->rx, t->in, 0);
	}
}

/* Each has more requests of the other's than receives, and waits for its answers. */
static void rxt_requests(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *e = t->end;
	const size_t len = RXM_SAR + 1;
	const int n = RXT_TX / 2;
	int i, k;

	test_param_set(test, &rxm_rx_bufs, 2);
	test_param_set(test, &rxm_held_bufs, 0);
	for (i = 0; i < 2; i++) {
		rxt_close_end(test, &e[i]);
		rxt_open_end(test, t, &e[i]);
	}
	rxt_introduce(test, t);
	rxt_pattern(t->out, len, 7);
	for (k = 0; k < RXT_ROUNDS; k++) {
		memset(t->in, 0, 2 * n * len);
		for (i = 0; i < 2 * n; i++)
			KUNIT_ASSERT_EQ(test, fi_recv(e[i & 1].ep,
						      t->in + i * len, len,
						      NULL, FI_ADDR_UNSPEC,
						      t->in), 0);
		for (i = 0; i < 2 * n; i++)
			KUNIT_ASSERT_EQ(test, fi_send(e[i & 1].ep, t->out, len,
						      NULL, e[i & 1].peer[~i & 1],
						      t->out), 0);
		for (i = 0; i < 2 * n; i++) {
			rxt_expect(test, e[i & 1].rx, t->in, 0);
			rxt_expect(test, e[i & 1].tx, t->out, 0);
		}
		for (i = 0; i < 2 * n; i++)
			KUNIT_EXPECT_EQ(test, rxt_differs(t->in + i * len, len,
							  7), len);
	}
}

/* Connects until it is accepted: what ended before is freed some time later. */
static int rxt_stranger_again(struct kunit *test, struct rxt_raw *r,
			      struct rxt_end *e, u16 port)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxm_cm_req req;
	int err;

	rxt_raw_req(&req, port);
	do {
		rxt_raw_open(test, r);
		err = rxt_raw_connect(test, r, e, &req, sizeof(req));
		if (err)
			rxt_raw_close(test, r);
	} while (err == ECONNREFUSED && time_before(jiffies, end));
	return err;
}

#define RXT_HOSTS	4	/* parts of max_unknown, of which one host has one */

/* Peers of a host that are not in the vector are limited, others are not. */
static void rxt_strangers(struct kunit *test)
{
	struct sockaddr_in known = {
		.sin_family = AF_INET,
		.sin_port = htons(4003),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxt_raw *r[4];
	struct rxm_cm_req req;
	fi_addr_t addr;
	int i;

	test_param_set(test, &rxm_max_unknown, 2 * RXT_HOSTS);
	KUNIT_ASSERT_EQ(test, fi_av_insert(b->av, &known, 1, &addr, 0, NULL),
			1);
	for (i = 0; i < 4; i++) {
		r[i] = rxt_raw_alloc(test);
		rxt_raw_open(test, r[i]);
		rxt_raw_req(&req, 4000 + i);
		KUNIT_EXPECT_EQ(test, rxt_raw_connect(test, r[i], b, &req,
						      sizeof(req)),
				i == 2 ? ECONNREFUSED : 0);
	}
	/* one of them is none any more: there is room for another */
	known.sin_port = htons(4000);
	KUNIT_ASSERT_EQ(test, fi_av_insert(b->av, &known, 1, &addr, 0, NULL),
			1);
	rxt_raw_close(test, r[2]);
	rxt_raw_open(test, r[2]);
	rxt_raw_req(&req, 4002);
	KUNIT_EXPECT_EQ(test, rxt_raw_connect(test, r[2], b, &req, sizeof(req)),
			0);
	for (i = 0; i < 4; i++)
		rxt_raw_close(test, r[i]);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, rxt_stranger_again(test, r[i], b,
							 5000 + i), 0);
	for (i = 0; i < 2; i++)
		rxt_raw_close(test, r[i]);
	rxt_exchange(test, 100, false, false);
}

/* Records of peers an endpoint has; those with a connection are counted, too. */
static unsigned int rxt_records(struct rxt_end *e, unsigned int *connections)
{
	struct rxm_ep *ep = rxm_ep(e->ep);
	unsigned int n = 0;
	struct rxm_conn *c;

	*connections = 0;
	mutex_lock(&ep->mutex);
	list_for_each_entry(c, &ep->conns, list) {
		*connections += !!c->msg;
		n++;
	}
	mutex_unlock(&ep->mutex);
	return n;
}

#define RXT_LEFT	2	/* unknown peers that one host may have */

/* A peer connects, and sends a message with a tag that finds no receive. */
static void rxt_comes(struct kunit *test, struct rxt_raw *r, struct rxt_end *b, int i)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxt *t = test->priv;
	struct rxm_hdr *h = (struct rxm_hdr *)(t->out + SZ_1M);
	u64 before = rxt_stat(b->ep, "rx_unexpected");
	struct fi_cq_err_entry e;
	struct rxm_cm_req req;

	rxt_raw_open(test, r);
	rxt_raw_req(&req, 4000 + i);
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, b, &req, sizeof(req)), 0);
	rxm_hdr_format(h, RXM_EAGER_MSG, (u32)r->rsp.id, 0);
	h->op = RXM_OP_TAGGED;
	h->tag = i;
	h->size = sizeof(i);
	memcpy(h + 1, &i, sizeof(i));
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, h, sizeof(*h) + sizeof(i), NULL, 0, NULL), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
	while (rxt_stat(b->ep, "rx_unexpected") == before && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_EQ(test, rxt_stat(b->ep, "rx_unexpected"), before + 1);
}

/* A peer leaves: @left connections remain. */
static void rxt_goes(struct kunit *test, struct rxt_raw *r, struct rxt_end *b, unsigned int left)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	unsigned int connections;

	rxt_raw_close(test, r);
	do {
		schedule_timeout_uninterruptible(1);
		rxt_records(b, &connections);
	} while (connections > left && time_before(jiffies, end));
	KUNIT_ASSERT_EQ(test, connections, left);
}

/* Test whether the message of a peer is stored, and receive it. */
static void rxt_has(struct kunit *test, struct rxt_end *b, int i, bool there)
{
	struct rxt *t = test->priv;
	const struct fi_msg_tagged peek = {
		.tag = i, .addr = FI_ADDR_UNSPEC, .context = t->in,
	};
	struct fi_cq_err_entry e;

	KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK), 0);
	KUNIT_EXPECT_EQ_MSG(test, rxt_comp(b->rx, &e, NULL), there ? 0 : FI_ENOMSG, "%d", i);
	if (!there)
		return;
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC, i, 0, t->in), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
	KUNIT_EXPECT_MEMEQ(test, t->in, &i, sizeof(i));
}

/*
 * Messages of peers that have left keep their places until another peer of the host
 * needs one. The peers that have left first make room, however early the others came.
 */
static void rxt_departed(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxt_raw *r = rxt_raw_alloc(test), *first = rxt_raw_alloc(test);
	int i;

	test_param_set(test, &rxm_max_unknown, RXT_LEFT * RXT_HOSTS);
	rxt_comes(test, first, b, 0);
	for (i = 1; i < 2 * RXT_LEFT; i++) {
		rxt_comes(test, r, b, i);
		rxt_goes(test, r, b, i < 3);
		if (i == 2)
			rxt_goes(test, first, b, 0);
		KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "peers"), RXT_LEFT);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "evicted"), RXT_LEFT);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "refused"), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "rx_held"), RXT_LEFT);
	for (i = 0; i < 2 * RXT_LEFT; i++)
		rxt_has(test, b, i, i == 0 || i == 3);
	rxt_exchange(test, 100, false, false);
}

/* A message that is kept for a claim stays, as FI_PEEK has reported it. */
static void rxt_departed_claimed(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxt_raw *r = rxt_raw_alloc(test);
	struct kvec kv = { .iov_base = t->in, .iov_len = 8 };
	const struct fi_msg_tagged msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = t->out,
	};
	const struct fi_msg_tagged keep = { .addr = FI_ADDR_UNSPEC, .context = t->out };
	struct fi_cq_err_entry e;
	int i = 0;

	test_param_set(test, &rxm_max_unknown, RXT_LEFT * RXT_HOSTS);
	rxt_comes(test, r, b, 0);
	rxt_goes(test, r, b, 0);
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &keep, FI_PEEK | FI_CLAIM), 0);
	rxt_expect(test, b->rx, t->out, 0);
	for (i = 1; i <= RXT_LEFT; i++) {
		rxt_comes(test, r, b, i);
		rxt_goes(test, r, b, 0);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "evicted"), 1);
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &msg, FI_CLAIM), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, t->out);
	i = 0;
	KUNIT_EXPECT_MEMEQ(test, t->in, &i, sizeof(i));
	rxt_has(test, b, 1, false);
	rxt_has(test, b, 2, true);
	rxt_exchange(test, 100, false, false);
}

#define RXT_CROWD	400	/* peers of one host that ask for connections */
#define RXT_PART	16	/* that it may have */

/*
 * Hundreds of one host: it has its part of max_unknown, the others leave nothing, and a
 * peer of the vector is served all the time. When they have gone there is room again.
 */
static void rxt_crowd(struct kunit *test)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct rxt_raw *r[RXT_PART + 1];
	unsigned int i, n = 0, connections;
	struct rxm_cm_req req;
	int err;

	test_param_set(test, &rxm_max_unknown, RXT_PART * RXT_HOSTS);
	for (i = 0; i <= RXT_PART; i++) {
		r[i] = rxt_raw_alloc(test);
		rxt_raw_open(test, r[i]);
	}
	for (i = 0; i < RXT_CROWD; i++) {
		if (i % (RXT_CROWD / RXT_ROUNDS) == 0)
			rxt_exchange(test, 100, true, false);
		rxt_raw_req(&req, 4000 + i);
		err = rxt_raw_connect(test, r[n], b, &req, sizeof(req));
		if (!err)
			KUNIT_ASSERT_LE(test, ++n, RXT_PART);
		if (!err)
			continue;
		KUNIT_ASSERT_EQ(test, err, ECONNREFUSED);
		rxt_raw_close_ep(test, r[n]);
		rxt_raw_ep(test, r[n], r[n]->info);
	}
	KUNIT_EXPECT_EQ(test, n, RXT_PART);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "refused"), RXT_CROWD - RXT_PART);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "peers"), RXT_PART + 1);
	KUNIT_EXPECT_EQ(test, rxt_records(b, &connections), RXT_PART + 1);
	KUNIT_EXPECT_EQ(test, connections, RXT_PART + 1);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), 0);
	for (i = 0; i < RXT_PART; i++)
		rxt_raw_close(test, r[i]);
	while (rxt_records(b, &connections) > 1 && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, connections, 1);
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "peers"), 1);
	KUNIT_EXPECT_EQ(test, rxt_raw_connect(test, r[n], b, &req, sizeof(req)),
			0);
	rxt_exchange(test, 100, false, false);
}

/* Who says it is the endpoint itself is not believed. */
static void rxt_imposter(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct fi_cq_err_entry e;
	struct rxm_cm_req req;
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t src;

	rxt_raw_open(test, r);
	rxt_raw_req(&req, ntohs(b->name.sin_port));
	KUNIT_EXPECT_EQ(test, rxt_raw_connect(test, r, b, &req, sizeof(req)),
			ECONNREFUSED);
	rxt_raw_close(test, r);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC,
				      t->in), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(b->ep, t->out, 8, b->peer[1]), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, &src), 0);
	KUNIT_EXPECT_EQ(test, src, b->peer[1]);
}

/* -------------------------------------------------------------- connecting */

static fi_addr_t rxt_raw_known(struct kunit *test, struct rxt_raw *r,
			       struct rxt_end *e)
{
	fi_addr_t addr;

	KUNIT_ASSERT_EQ(test, fi_av_insert(e->av, &r->name, 1, &addr, 0, NULL),
			1);
	return addr;
}

/* Rejected as if there were another connection: it is tried again at once. */
static void rxt_rejected(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_hdr *h = (struct rxm_hdr *)t->in;
	struct fi_cq_err_entry e;
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t peer;
	int i;

	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer, t->out), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
		rxt_raw_reject(test, r, RXM_REJ_ALREADY);
	}
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_accept(test, r, 5);
	KUNIT_ASSERT_EQ(test, fi_recv(r->ep, h, RXM_PACKET, NULL, 0, NULL), 0);
	rxt_expect(test, a->tx, t->out, 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, e.len, sizeof(*h) + 8);
	KUNIT_EXPECT_EQ(test, h->conn_id, 5);
	rxt_raw_close(test, r);
}

/* Rejected so again and again: not longer than a connect may take */
static void rxt_rejected_always(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry e = {};
	struct rxt_raw *r = rxt_raw_alloc(test);
	unsigned int times = 0;
	fi_addr_t peer;
	ssize_t n;

	rxt_close_end(test, a);
	t->timeout = TEST_LIMIT(1000);
	rxt_open_end(test, t, a);
	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer, t->out), 0);
	do {
		if (!rxt_raw_wait(r, FI_CONNREQ, 10)) {
			rxt_raw_reject(test, r, RXM_REJ_ALREADY);
			times++;
		}
		n = fi_cq_read(a->tx, &entry, 1);
	} while (n == -EAGAIN && time_before(jiffies, end));
	KUNIT_ASSERT_EQ(test, n, -FI_EAVAIL);
	KUNIT_ASSERT_EQ(test, fi_cq_readerr(a->tx, &e, 0), 1);
	KUNIT_EXPECT_EQ(test, e.err, ETIMEDOUT);
	KUNIT_EXPECT_GT(test, times, 1);
	rxt_raw_close(test, r);
}

/* A peer that is configured for rendezvous by write, and the memory it offers */
static const struct rxt_write {
	const char	*name;
	u64		lens[RXM_RNDV_IOV];
	u8		count;
} rxt_writes[] = {
	{ "one piece", { 300000 }, 1 },
	{ "four pieces, one of them empty", { 100000, 0, 150000, 50000 }, 4 },
	{ "room for more", { 400000 }, 1 },
	{ "room for less", { 1000, 2000 }, 2 },
	{ "no room", { 0 }, 1 },
};

static void rxt_write_desc(const struct rxt_write *w, char *desc)
{
	strscpy(desc, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rxt_writes, rxt_writes, rxt_write_desc);

/* Its memory is written, as much as there is of it, and then it is told so. */
static void rxt_written(struct kunit *test)
{
	const struct rxt_write *w = test->param_value;
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_hdr *h = (struct rxm_hdr *)t->in;
	u8 *mem = t->in + SZ_1M;
	const size_t len = 300000;
	struct {
		struct rxm_hdr	hdr;
		struct rxm_rndv	rndv;
	} *p = (void *)(t->in + SZ_32K);
	struct fi_cq_err_entry e;
	struct rxt_raw *r = rxt_raw_alloc(test);
	struct fid_mr *mr;
	size_t room = 0;
	fi_addr_t peer;
	int i;

	rxt_pattern(t->out, len, 3);
	memset(mem, 0, SZ_1M);
	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(r->domain, mem, SZ_1M, FI_REMOTE_WRITE,
					0, 0, 0, &mr, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, len, NULL, peer, t->out),
			0);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_accept(test, r, 5);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(r->ep, h, RXM_PACKET, NULL, 0, h), 0);
	rxt_expect(test, r->cq, h, 0);
	KUNIT_ASSERT_EQ(test, h->type, RXM_RNDV_REQ);

	rxm_hdr_format(&p->hdr, RXM_WRITE_DATA, (u32)r->req.id, h->msg_id);
	p->rndv = (struct rxm_rndv) { .count = w->count };
	for (i = 0; i < w->count; i++) {
		p->rndv.mem[i] = (struct rxm_mem) {
			.addr = kofi_mr_base(mr) + room, .len = w->lens[i],
			.key = fi_mr_key(mr),
		};
		room += w->lens[i];
	}
	room = min(room, len);
	KUNIT_ASSERT_EQ(test, fi_recv(r->ep, h, RXM_PACKET, NULL, 0, h), 0);
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, p, sizeof(*p), NULL, 0, p), 0);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, h->type, RXM_WRITE_DONE);
	KUNIT_EXPECT_EQ(test, h->conn_id, 5);
	KUNIT_EXPECT_EQ(test, h->msg_id, p->hdr.msg_id);
	rxt_expect(test, a->tx, t->out, 0);
	KUNIT_EXPECT_EQ(test, rxt_differs(mem, room, 3), room);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem + room, 0, SZ_1M - room),
			    NULL);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rxt_raw_close(test, r);
}

/* Accepted, and silent: all regions are in use, and one transmit waits for one. */
static fi_addr_t rxt_raw_full(struct kunit *test, struct rxt_raw *r, u64 id)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	fi_addr_t peer;
	int i;

	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	for (i = 0; i <= RXM_REGIONS; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, SZ_1M, NULL, peer,
					      t->out + i), 0);
		if (i)
			continue;
		KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
		rxt_raw_accept(test, r, id);
		KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
		/* from now on nothing waits for a connection */
		KUNIT_ASSERT_EQ(test, fi_recv(r->ep, t->in, RXM_PACKET, NULL, 0,
					      NULL), 0);
		rxt_expect(test, r->cq, NULL, 0);
	}
	return peer;
}

/*
 * A connection is lost with a transmit that has not begun, some time after it was
 * made: it is tried again, also if the peer rejects that once, and the transmit goes
 * to that peer, but not to another one in its place.
 */
static void rxt_lost(struct kunit *test, u32 process)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_hdr *h = (struct rxm_hdr *)t->in;
	struct rxt_raw *r = rxt_raw_alloc(test);
	unsigned long end;
	int i;

	rxt_close_end(test, a);
	t->timeout = TEST_LIMIT(1000);
	rxt_open_end(test, t, a);
	rxt_raw_full(test, r, 7ULL << 32 | 5);
	/* the first attempt would be over */
	end = jiffies + msecs_to_jiffies(t->timeout);
	while (time_before_eq(jiffies, end))
		msleep(20);
	rxt_raw_close_ep(test, r);
	for (i = 0; i < RXM_REGIONS; i++)
		rxt_expect(test, a->tx, t->out + i, ECONNRESET);

	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_reject(test, r, RXM_REJ_ALREADY);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_accept(test, r, (u64)process << 32 | 6);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(r->ep, h, RXM_PACKET, NULL, 0, NULL), 0);
	if (process == 7) {
		rxt_expect(test, r->cq, NULL, 0);
		KUNIT_EXPECT_EQ(test, h->type, RXM_RNDV_REQ);
		KUNIT_EXPECT_EQ(test, h->conn_id, 6);
		rxt_raw_close_ep(test, r);
	}
	rxt_expect(test, a->tx, t->out + RXM_REGIONS, ECONNRESET);
	rxt_raw_close(test, r);
}

static void rxt_lost_same(struct kunit *test)
{
	rxt_lost(test, 7);
}

static void rxt_lost_other(struct kunit *test)
{
	rxt_lost(test, 8);
}

static DECLARE_COMPLETION(rxt_woken);
static atomic_t rxt_spaces;

static void rxt_space(struct fid_ep *ep, void *context)
{
	atomic_inc(&rxt_spaces);
	complete(&rxt_woken);
}

/* Posts that are refused, as the peer does not answer, do not wake each other. */
static void rxt_deaf(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	unsigned long ticks = msecs_to_jiffies(RXT_TIMEOUT);
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t peer;
	int i;

	atomic_set(&rxt_spaces, 0);
	reinit_completion(&rxt_woken);
	rxt_close_end(test, a);
	t->space = rxt_space;
	rxt_open_end(test, t, a);
	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	for (i = 0; i < RXT_TX / 2; i++)
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer,
					      NULL), 0);
	for (i = 0; i < RXT_ROUNDS; i++) {
		KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer,
					      NULL), -EAGAIN);
		cond_resched();
	}
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&rxt_spaces), 0);
	/* others are not held up */
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, 1000, NULL),
			-EINVAL);
	rxt_raw_reject(test, r, RXM_REJ_REFUSED);
	for (i = 0; i < RXT_TX / 2; i++)
		rxt_expect(test, a->tx, NULL, ECONNREFUSED);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&rxt_woken, ticks),
			0);
	rxt_raw_close(test, r);
}

/* A post that another post makes, between the two */
static struct {
	struct rxt_end	*end;
	u8		*buf;
	ssize_t		ret;
} rxt_between;

/* Other operations have taken the last places to wait for a connection. */
static bool rxt_no_place(struct rxm_op *op)
{
	struct rxt_end *a = rxt_between.end;

	kofi_peers_add_waiting(&op->ep->peers, RXT_TX / 2);
	rxt_between.ret = fi_send(a->ep, rxt_between.buf, 8, NULL, a->peer[1],
				  NULL);
	return false;
}

/*
 * A post to a connected peer lacks the record of a post to a peer without a connection. It
 * is woken when the other post is refused, but posts to that peer do not wake each other.
 */
static void rxt_record(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	unsigned long ticks = msecs_to_jiffies(RXT_TIMEOUT);
	struct rxt_raw *r = rxt_raw_alloc(test);
	struct llist_node *taken[RXT_TX - 1];
	struct rxm_ep *ep;
	fi_addr_t peer;
	int i;

	rxt_close_end(test, a);
	t->space = rxt_space;
	rxt_open_end(test, t, a);
	rxt_introduce(test, t);
	rxt_exchange(test, 8, false, false);
	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	/* all records but one */
	ep = rxm_ep(a->ep);
	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		taken[i] = kofi_freelist_get(&ep->tx.free, &ep->tx.free_lock);
		KUNIT_ASSERT_NOT_NULL(test, taken[i]);
	}
	reinit_completion(&rxt_woken);
	rxt_between.end = a;
	rxt_between.buf = t->out;
	rxt_between.ret = 0;
	kunit_activate_static_stub(test, rxm_op_wait, rxt_no_place);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer, NULL),
			-EAGAIN);
	kunit_deactivate_static_stub(test, rxm_op_wait);
	KUNIT_EXPECT_EQ(test, rxt_between.ret, -EAGAIN);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&rxt_woken, ticks),
			0);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer,
					      NULL), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&rxt_woken));
	rxt_exchange(test, 8, false, false);

	for (i = 0; i < ARRAY_SIZE(taken); i++)
		kofi_freelist_put(&ep->tx.free, taken[i]);
	kofi_peers_unwait(&ep->peers, RXT_TX / 2);
	kofi_ep_unblock(&ep->base);
	rxt_raw_close(test, r);
}

/* A peer that connects, and answers no more, keeps no post to others from waiting. */
static void rxt_silent(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	unsigned long ticks = msecs_to_jiffies(RXT_TIMEOUT);
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t peer;
	int i;

	rxt_close_end(test, a);
	t->space = rxt_space;
	rxt_open_end(test, t, a);
	rxt_introduce(test, t);
	rxt_raw_listen(test, r);
	peer = rxt_raw_known(test, r, a);
	for (i = 0; i < RXT_TX / 2; i++)
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, SZ_1M, NULL, peer,
					      t->out), 0);
	reinit_completion(&rxt_woken);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, a->peer[1],
				      NULL), -EAGAIN);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_accept(test, r, 5);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&rxt_woken, ticks),
			0);
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "tx_early"), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC,
				      t->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, a->peer[1],
				      NULL), 0);
	rxt_expect(test, b->rx, t->in, 0);
	rxt_expect(test, a->tx, NULL, 0);
	rxt_raw_close_ep(test, r);
	for (i = 0; i < RXT_TX / 2; i++)
		rxt_expect(test, a->tx, t->out, ECONNRESET);
	rxt_raw_close(test, r);
}

/* Answers carry the number the peer has just given, however early they are due. */
static void rxt_answered(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_hdr *ask = (struct rxm_hdr *)t->out;
	struct rxm_hdr *h[2] = {
		(struct rxm_hdr *)t->in, (struct rxm_hdr *)(t->in + SZ_32K),
	};
	struct fi_cq_err_entry e;
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t peer;
	int i, n;

	rxt_raw_listen(test, r);
	for (i = 1; i <= RXT_ROUNDS; i++) {
		peer = rxt_raw_known(test, r, a);
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, &i, sizeof(i), peer), 0);
		KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
		rxt_raw_accept(test, r, i);
		for (n = 0; n < 2; n++)
			KUNIT_ASSERT_EQ(test, fi_recv(r->ep, h[n], RXM_PACKET,
						      NULL, 0, h[n]), 0);
		KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
		memset(ask, 0, RXM_PACKET);
		rxm_hdr_format(ask, RXM_ATOMIC, (u32)r->req.id, i);
		ask->op = RXM_OP_ATOMIC;
		ask->atomic_count = 1;
		ask->size = 1024;
		KUNIT_ASSERT_EQ(test, fi_send(r->ep, ask, sizeof(*ask) + 1024,
					      NULL, 0, ask), 0);
		for (n = 0; n < 3; n++)
			KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
		for (n = 0; n < 2; n++)
			KUNIT_EXPECT_EQ(test, h[n]->conn_id, i);
		KUNIT_ASSERT_EQ(test, rxt_stat(a->ep, "violations"), 0);
		KUNIT_ASSERT_EQ(test, fi_av_remove(a->av, &peer, 1, 0), 0);
		KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
		rxt_raw_close_ep(test, r);
	}
	rxt_raw_close(test, r);
}

static struct kunit_case rxt_hostile_cases[] = {
	KUNIT_CASE(rxt_bad_request),
	KUNIT_CASE_PARAM(rxt_forge, rxt_forged_gen_params),
	KUNIT_CASE(rxt_untagged),
	KUNIT_CASE(rxt_bad_memory),
	KUNIT_CASE(rxt_answered_early),
	KUNIT_CASE_PARAM(rxt_flooded, rxt_limits_gen_params),
	KUNIT_CASE(rxt_flooded_answer),
	KUNIT_CASE(rxt_requests),
	KUNIT_CASE(rxt_strangers),
	KUNIT_CASE(rxt_departed),
	KUNIT_CASE(rxt_departed_claimed),
	KUNIT_CASE(rxt_crowd),
	KUNIT_CASE(rxt_imposter),
	KUNIT_CASE(rxt_rejected),
	KUNIT_CASE(rxt_rejected_always),
	KUNIT_CASE_PARAM(rxt_written, rxt_writes_gen_params),
	KUNIT_CASE_SLOW(rxt_lost_same),
	KUNIT_CASE_SLOW(rxt_lost_other),
	KUNIT_CASE(rxt_deaf),
	KUNIT_CASE(rxt_record),
	KUNIT_CASE(rxt_silent),
	KUNIT_CASE(rxt_answered),
	{}
};

static struct kunit_suite rxt_hostile_suite = {
	.name = "rxm_hostile",
	.suite_init = lo_suite_init,
	.attr.speed = KUNIT_SPEED_SLOW,
	.init = rxt_init,
	.exit = rxt_exit,
	.test_cases = rxt_hostile_cases,
};

kunit_test_suite(rxt_hostile_suite);
