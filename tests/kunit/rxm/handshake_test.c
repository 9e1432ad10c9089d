// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The handshake of kofi_rxm: requests, responses and refusals with each byte at the
 * ends and in the middle of what it can hold, and of other lengths, from a plain
 * endpoint of kofi_sock. What has to come of each follows from the description of the
 * wire: refused and counted; or the connection can be used, in both directions.
 */
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <net/tcp.h>

#include "../../../providers/rxm/rxm.h"
#include "../../../providers/sock/sock.h"

#include "../full.h"
#include "../param.h"
#include "raw.h"

#define RXH_HOSTS	65536	/* strangers; those of one host are a quarter of them */

static const u8 rxh_values[] = { 0, 1, 2, 3, 0x7f, 0x80, 0xff };

/* A message from the peer, which the endpoint calls @id, and one of two others */
static void rxh_use(struct kunit *test, struct rxt_raw *r, struct rxt_end *b, u64 id,
		    const char *what)
{
	struct rxt *t = test->priv;
	struct rxm_hdr *h = (struct rxm_hdr *)(t->out + SZ_1M);
	struct fi_cq_err_entry e;

	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC, t->in), 0);
	rxm_hdr_format(h, RXM_EAGER_MSG, (u32)id, 0);
	h->size = 8;
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, h, sizeof(*h) + 8, NULL, 0, NULL), 0);
	KUNIT_ASSERT_EQ_MSG(test, rxt_comp(b->rx, &e, NULL), 0, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, e.len, 8, "%s", what);
	KUNIT_EXPECT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
}

/* ------------------------------------------------------------------- requests */

static bool rxh_request_right(const u8 *req, size_t len)
{
	static const u8 versions[] = { 1, RXM_ENDIAN, 4, 3 };

	return len == 24 && !memcmp(req, versions, 4) && get_unaligned((u16 *)(req + 4)) &&
	       get_unaligned((u32 *)(req + 8)) == 16384;
}

static void rxh_request(struct kunit *test, struct rxt_raw *r, const void *req, size_t len,
			const char *what)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	const bool right = rxh_request_right(req, len);
	u64 refused = rxt_stat(b->ep, "refused");

	rxt_raw_ep(test, r, r->info);
	KUNIT_EXPECT_EQ_MSG(test, rxt_raw_connect(test, r, b, req, len),
			    right ? 0 : ECONNREFUSED, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, rxt_stat(b->ep, "refused"), refused + !right, "%s", what);
	if (right)
		rxh_use(test, r, b, r->rsp.id, what);
	rxt_raw_close_ep(test, r);
}

static void rxh_requests(struct kunit *test)
{
	struct {
		struct rxm_cm_req	req;
		u8			more[8];
	} msg = {};
	struct rxt_raw *r = rxt_raw_alloc(test);
	u8 *bytes = (u8 *)&msg.req;
	unsigned int at, i;
	u16 port = 4000;
	char what[32];

	rxt_raw_open(test, r);
	rxt_raw_close_ep(test, r);
	for (at = 0; at < sizeof(msg.req); at++) {
		for (i = 0; i < ARRAY_SIZE(rxh_values); i++) {
			rxt_raw_req(&msg.req, port++);
			bytes[at] = rxh_values[i];
			snprintf(what, sizeof(what), "byte %u: %u", at, bytes[at]);
			rxh_request(test, r, &msg.req, sizeof(msg.req), what);
		}
	}
	rxt_raw_req(&msg.req, 0);
	rxh_request(test, r, &msg.req, sizeof(msg.req), "no port");
	for (i = 0; i < sizeof(msg); i++) {
		rxt_raw_req(&msg.req, port++);
		snprintf(what, sizeof(what), "%u bytes", i);
		rxh_request(test, r, &msg.req, i, what);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(((struct rxt *)test->priv)->end[1].ep, "violations"),
			0);
	rxt_exchange(test, 100, false, false);
	rxt_exchange(test, RXM_SAR + 1, true, false);
}

/* -------------------------------------------------------------------- answers */

static fi_addr_t rxh_peer(struct kunit *test, struct rxt_raw *r)
{
	struct rxt *t = test->priv;
	fi_addr_t peer;

	KUNIT_ASSERT_EQ(test, fi_av_insert(t->end[0].av, &r->name, 1, &peer, 0, NULL), 1);
	KUNIT_ASSERT_EQ(test, fi_send(t->end[0].ep, t->out, 8, NULL, peer, t->out), 0);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	return peer;
}

static void rxh_accept(struct kunit *test, struct rxt_raw *r, const void *rsp, size_t len)
{
	rxt_raw_ep(test, r, r->asked);
	fi_freeinfo(r->asked);
	KUNIT_ASSERT_EQ(test, fi_accept(r->ep, rsp, len), 0);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
}

static void rxh_response(struct kunit *test, struct rxt_raw *r, const void *rsp, size_t len,
			 const char *what)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_hdr *h = (struct rxm_hdr *)(t->in + SZ_1M);
	u64 violations = rxt_stat(a->ep, "violations");
	const bool right = len == 16;
	struct fi_cq_err_entry e;
	fi_addr_t peer;
	ssize_t posted;

	peer = rxh_peer(test, r);
	rxh_accept(test, r, rsp, len);
	/* what is no answer may have ended the connection by now */
	posted = fi_recv(r->ep, h, RXM_PACKET, NULL, 0, NULL);
	if (right || posted != -ESHUTDOWN)
		KUNIT_ASSERT_EQ(test, posted, 0);
	KUNIT_EXPECT_EQ_MSG(test, rxt_comp(a->tx, &e, NULL), right ? 0 : EPROTO, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, rxt_stat(a->ep, "violations"), violations + !right, "%s",
			    what);
	if (!posted)
		KUNIT_EXPECT_EQ_MSG(test, !rxt_comp(r->cq, &e, NULL), right, "%s",
				    what);
	if (right) {
		KUNIT_EXPECT_EQ_MSG(test, (u32)h->conn_id, get_unaligned((u32 *)rsp), "%s",
				    what);
		rxh_use(test, r, a, r->req.id, what);
	}
	KUNIT_ASSERT_EQ(test, fi_av_remove(a->av, &peer, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	rxt_raw_close_ep(test, r);
}

static void rxh_responses(struct kunit *test)
{
	struct {
		struct rxm_cm_rsp	rsp;
		u8			more[8];
	} msg = {};
	struct rxt_raw *r = rxt_raw_alloc(test);
	u8 *bytes = (u8 *)&msg.rsp;
	unsigned int at, i;
	char what[32];

	rxt_raw_listen(test, r);
	for (at = 0; at < sizeof(msg.rsp); at++) {
		for (i = 0; i < ARRAY_SIZE(rxh_values); i++) {
			msg.rsp = (struct rxm_cm_rsp) {
				.id = 5, .rx_size = 16, .flow = RXM_FLOW_OFF,
			};
			bytes[at] = rxh_values[i];
			snprintf(what, sizeof(what), "byte %u: %u", at, bytes[at]);
			rxh_response(test, r, &msg.rsp, sizeof(msg.rsp), what);
		}
	}
	for (i = 0; i < sizeof(msg); i++) {
		snprintf(what, sizeof(what), "%u bytes", i);
		rxh_response(test, r, &msg.rsp, i, what);
	}
	rxt_exchange(test, 100, false, false);
}

/* What says that there is another connection is tried again, anything else is final. */
static void rxh_rejection(struct kunit *test, struct rxt_raw *r, const u8 *rej, size_t len,
			  const char *what)
{
	const struct rxm_cm_rsp rsp = { .id = 5, .rx_size = 16, .flow = RXM_FLOW_OFF };
	const bool again = len >= 2 && rej[0] == 1 && rej[1] == 2;
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct fi_cq_err_entry e;
	fi_addr_t peer;

	peer = rxh_peer(test, r);
	KUNIT_EXPECT_EQ(test, fi_reject(r->pep, r->asked->handle, rej, len), 0);
	fi_freeinfo(r->asked);
	if (again) {
		KUNIT_ASSERT_EQ_MSG(test, rxt_raw_event(r, FI_CONNREQ), 0, "%s", what);
		rxh_accept(test, r, &rsp, sizeof(rsp));
		KUNIT_ASSERT_EQ(test, fi_recv(r->ep, t->in + SZ_1M, RXM_PACKET, NULL, 0,
					      NULL), 0);
	}
	KUNIT_EXPECT_EQ_MSG(test, rxt_comp(a->tx, &e, NULL), again ? 0 : ECONNREFUSED, "%s",
			    what);
	KUNIT_ASSERT_EQ(test, fi_av_remove(a->av, &peer, 1, 0), 0);
	if (!again)
		return;
	KUNIT_EXPECT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	rxt_raw_close_ep(test, r);
}

static void rxh_rejections(struct kunit *test)
{
	static const u8 right[] = { 1, 2 };
	struct rxt_raw *r = rxt_raw_alloc(test);
	unsigned int at, i;
	char what[32];
	u8 rej[8];

	rxt_raw_listen(test, r);
	for (at = 0; at < 2; at++) {
		for (i = 0; i < ARRAY_SIZE(rxh_values); i++) {
			memcpy(rej, right, sizeof(right));
			rej[at] = rxh_values[i];
			snprintf(what, sizeof(what), "byte %u: %u", at, rej[at]);
			rxh_rejection(test, r, rej, 2, what);
		}
	}
	memset(rej, 0, sizeof(rej));
	memcpy(rej, right, sizeof(right));
	for (i = 0; i < sizeof(rej); i++) {
		snprintf(what, sizeof(what), "%u bytes", i);
		rxh_rejection(test, r, rej, i, what);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(((struct rxt *)test->priv)->end[0].ep, "violations"),
			0);
	rxt_exchange(test, 100, false, false);
}

static int rxh_init(struct kunit *test)
{
	test_param_set(test, &rxm_max_unknown, RXH_HOSTS);
	return rxt_init(test);
}

/* An attempt that waits for TCP: the endpoint below has not sent its request. */
static void rxh_requesting(struct kunit *test, struct rxt_end *e)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxm_ep *ep = rxm_ep(e->ep);
	enum kofi_peer_phase phase = KOFI_PEER_NEW;
	struct rxm_conn *c;

	while (phase != KOFI_PEER_REQUESTING && time_before(jiffies, end)) {
		schedule_timeout_uninterruptible(1);
		mutex_lock(&ep->mutex);
		c = list_first_entry_or_null(&ep->conns, struct rxm_conn, list);
		if (c)
			phase = c->base.phase;
		mutex_unlock(&ep->mutex);
	}
	KUNIT_ASSERT_EQ(test, phase, KOFI_PEER_REQUESTING);
}

/*
 * The peer's firewall drops our attempt. The peer connects itself, and its request is
 * accepted at once, although its address is lower.
 */
static void rxh_one_way(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct rxm_hdr *h = (struct rxm_hdr *)t->in;
	struct rxt_raw *r = rxt_raw_alloc(test);
	struct socket *listener, *filler;
	struct fi_cq_err_entry e;
	struct sockaddr_in addr;
	struct rxm_cm_req req;
	fi_addr_t peer;

	listener = full_listen(test, &addr, &filler);
	KUNIT_ASSERT_GT(test, ntohs(a->name.sin_port), FULL_PORT);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &addr, 1, &peer, 0, NULL), 1);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, peer, t->out), 0);
	rxh_requesting(test, a);

	rxt_raw_open(test, r);
	rxt_raw_req(&req, FULL_PORT);
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, a, &req, sizeof(req)), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(r->ep, h, RXM_PACKET, NULL, 0, NULL), 0);
	rxt_expect(test, a->tx, t->out, 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, e.len, sizeof(*h) + 8);
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "refused"), 0);
	rxt_raw_close(test, r);
	sock_release(filler);
	sock_release(listener);
}

/* ------------------------------------------ the same process, or another of its number */

#define RXH_AGAIN_PORT	4001
#define RXH_AGAIN_MS	1000	/* within which a restarted peer is connected */
#define RXH_AGAIN	3	/* messages of a former life */

static const struct rxh_again {
	const char	*name;
	bool		vanishes;	/* with its host, or it closes */
	unsigned int	bufs;		/* messages held beyond a connection's own buffers */
} rxh_agains[] = {
	{ "closed", false, 64 },
	{ "closed, unread", false, 0 },
	{ "vanished", true, 64 },
};

static void rxh_again_desc(const struct rxh_again *a, char *desc)
{
	strscpy(desc, a->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rxh_again, rxh_agains, rxh_again_desc);

/* Asks until it is connected; whether it has been in time */
static bool rxh_again_lives(struct kunit *test, struct rxt_raw *r, struct rxt_end *b)
{
	unsigned long end = jiffies + msecs_to_jiffies(TEST_LIMIT(RXH_AGAIN_MS));
	struct rxm_cm_req req;

	rxt_raw_req(&req, RXH_AGAIN_PORT);
	do {
		rxt_raw_ep(test, r, r->info);
		if (!rxt_raw_connect(test, r, b, &req, sizeof(req)))
			return true;
		rxt_raw_close_ep(test, r);
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	return false;
}

static void rxh_again_send(struct kunit *test, struct rxt_raw *r, int i)
{
	struct rxt *t = test->priv;
	struct rxm_hdr *h = (struct rxm_hdr *)(t->out + SZ_1M);
	struct fi_cq_err_entry e;

	rxm_hdr_format(h, RXM_EAGER_MSG, (u32)r->rsp.id, 0);
	h->size = sizeof(i);
	memcpy(h + 1, &i, sizeof(i));
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, h, sizeof(*h) + sizeof(i), NULL, 0, NULL), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
}

/* Its TCP sends nothing more. */
static void rxh_again_cut(struct rxt_raw *r)
{
	struct sock *sk = ksk_ep(r->ep)->conn->sock->sk;

	lock_sock(sk);
	tcp_sk(sk)->repair = 1;
	tcp_sk(sk)->repair_queue = TCP_SEND_QUEUE;
	release_sock(sk);
}

/*
 * A peer that has restarted with the number of its process is connected, and messages of
 * its former life that had been held are received before those of the new one.
 */
static void rxh_again(struct kunit *test)
{
	const struct rxh_again *p = test->param_value;
	struct rxt_raw *r = rxt_raw_alloc(test);
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	int own = rxm_ep(b->ep)->info->rx_attr->size;
	int held = p->bufs ? RXH_AGAIN : own, sent = p->bufs ? held : own + 1;
	struct fi_cq_err_entry e;
	int i, n;

	test_param_set(test, &rxm_held_bufs, p->bufs);
	rxt_raw_open(test, r);
	rxt_raw_close_ep(test, r);
	KUNIT_ASSERT_TRUE(test, rxh_again_lives(test, r, b));
	for (i = 0; i < sent; i++)
		rxh_again_send(test, r, i);
	rxt_held(test, b, held);
	if (p->vanishes)
		rxh_again_cut(r);
	rxt_raw_close_ep(test, r);

	KUNIT_EXPECT_TRUE(test, rxh_again_lives(test, r, b));
	for (i = 0; i < held; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, &n, sizeof(n), NULL, FI_ADDR_UNSPEC,
					      NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_EXPECT_EQ(test, n, i);
	}
	if (r->ep)
		rxh_use(test, r, b, r->rsp.id, p->name);
}

/* A request in the name of a peer that is alive is refused, and changes nothing. */
static void rxh_again_alive(struct kunit *test)
{
	struct rxt_raw *r = rxt_raw_alloc(test), *other = rxt_raw_alloc(test);
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];

	rxt_raw_open(test, r);
	rxt_raw_close_ep(test, r);
	KUNIT_ASSERT_TRUE(test, rxh_again_lives(test, r, b));
	rxt_raw_open(test, other);
	rxt_raw_close_ep(test, other);
	KUNIT_EXPECT_FALSE(test, rxh_again_lives(test, other, b));
	rxh_use(test, r, b, r->rsp.id, "after others");
}

static struct kunit_case rxh_cases[] = {
	KUNIT_CASE(rxh_requests),
	KUNIT_CASE(rxh_responses),
	KUNIT_CASE(rxh_rejections),
	KUNIT_CASE_PARAM(rxh_again, rxh_again_gen_params),
	KUNIT_CASE(rxh_again_alive),
	KUNIT_CASE(rxh_one_way),
	{}
};

static struct kunit_suite rxh_suite = {
	.name = "rxm_handshake",
	.suite_init = lo_suite_init,
	.attr.speed = KUNIT_SPEED_SLOW,
	.init = rxh_init,
	.exit = rxt_exit,
	.test_cases = rxh_cases,
};

kunit_test_suite(rxh_suite);
