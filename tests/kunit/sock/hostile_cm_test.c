// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A peer that violates the protocol while it connects or is connected to (hostile.c) */
#include <linux/net.h>
#include <linux/slab.h>

#include <linux/kofi/provider.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../../../providers/sock/sock.h"
#include "../events.h"
#include "hostile.h"
#include "raw.h"
#include "stuck.h"

/* --- connection requests --- */

struct cm_param {
	const char	*name;
	const char	*stat;
	u8		version;
	u8		type;
	u16		data_len;
	unsigned int	sent;		/* bytes, private data included */
	bool		end;		/* then the stream ends */
	bool		garbage;
};

static const struct cm_param bad_cms[] = {
	{ "version 0", "violations", 0, 0, 0, 32 },
	{ "version 2", "violations", 2, 0, 0, 32 },
	{ "version 4", "violations", 4, 0, 0, 32 },
	{ "an answer", "violations", 3, 1, 0, 32 },
	{ "a refusal", "violations", 3, 6, 0, 32 },
	{ "type 2", "violations", 3, 2, 0, 32 },
	{ "type 255", "violations", 3, 255, 0, 32 },
	{ "257 bytes of private data", "violations", 3, 0, 257, 289 },
	{ "65535 bytes of private data", "violations", 3, 0, 65535, 1024 },
	{ "garbage", "violations", .sent = 200, .garbage = true },
	{ "half a header, end", NULL, 3, 0, 0, 16, true },
	{ "private data missing, end", NULL, 3, 0, 100, 32, true },
	{ "nothing, end", NULL, 3, 0, 0, 0, true },
	{ "private data never sent", "timeouts", 3, 0, 100, 32 },
	{ "private data half sent", "timeouts", 3, 0, 100, 80 },
	{ "half a header", "timeouts", 3, 0, 0, 16 },
	{ "nothing at all", "timeouts", 3, 0, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(bad_cm, bad_cms, name);

static void hostile_request(struct kunit *test)
{
	const struct ct_opts opts = {
		.unconnected = true, .handshake_ms = TEST_LIMIT(400),
	};
	const struct cm_param *c = test->param_value;
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	u32 x = 12345;
	int i;

	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(h->buf, c->version, c->type, c->data_len);
	for (i = 0; c->garbage && i < c->sent; i++) {
		x = x * 1664525 + 1013904223;
		h->buf[i] = x >> 24;
	}
	raw_send(h->raw, h->buf, c->sent);
	if (c->end)
		kernel_sock_shutdown(h->raw, SHUT_WR);
	hostile_expect_closed(test, h->raw);
	if (c->stat)
		KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, c->stat), 1);
	ct_expect_no_event(test, p->side[1].eq);
	hostile_close(h);
}

/* A request may arrive in pieces, with a frame right behind it. */
static void hostile_request_in_pieces(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 *b = h->buf;
	struct ct_op *r;
	int i, len;

	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(b, 3, 0, 5);
	memcpy(b + RAW_CM_LEN, "hello", 5);
	raw_frame(b + RAW_CM_LEN + 5, 0, 0, 0, 0, 16, 16 + 4);
	memcpy(b + RAW_CM_LEN + 5 + 16, "data", 4);
	len = RAW_CM_LEN + 5 + 16 + 4;
	for (i = 0; i < len; i++)
		KUNIT_ASSERT_EQ(test, raw_send(h->raw, b + i, 1), 1);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	KUNIT_EXPECT_EQ(test, ev->len, sizeof(ev->cm) + 5);
	KUNIT_EXPECT_MEMEQ(test, ev->cm.data, "hello", 5);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	r = ct_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, b + 200, 64), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
	KUNIT_EXPECT_EQ(test, r->wc.len, 4);
	KUNIT_EXPECT_MEMEQ(test, b + 200, "data", 4);
	hostile_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	hostile_close(h);
}

/*
 * More unfinished handshakes than there may be: the others wait, and the oldest
 * give way, so that a client that does send its request gets in.
 */
static void hostile_flood(struct kunit *test)
{
	const struct ct_opts opts = {
		.unconnected = true, .handshake_ms = TEST_LIMIT(4000),
	};
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	enum { FLOOD = 200, LIMIT = 128 };
	struct socket **raw = ct_buf(p, FLOOD * sizeof(*raw));
	int i;

	for (i = 0; i < FLOOD; i++)
		raw[i] = raw_connect(test, p);
	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(h->buf, 3, 0, 0);
	raw_send(h->raw, h->buf, RAW_CM_LEN);
	KUNIT_EXPECT_LE(test, hostile_stat(test, &p->pep->fid, "pending"), LIMIT);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	/* on a slow machine they are out of time before they are the oldest */
	KUNIT_EXPECT_GT(test, hostile_stat(test, &p->pep->fid, "evicted") +
			hostile_stat(test, &p->pep->fid, "timeouts"), FLOOD - LIMIT);
	KUNIT_EXPECT_LE(test, hostile_stat(test, &p->pep->fid, "pending"), LIMIT);
	hostile_innocent(h);
	KUNIT_EXPECT_EQ(test, fi_reject(p->pep, ev->cm.info->handle, NULL, 0), 0);
	fi_freeinfo(ev->cm.info);
	hostile_release(h);
	/* The rest time out, and all is as before. */
	for (i = 0; i < TEST_LIMIT(200) && hostile_stat(test, &p->pep->fid, "pending"); i++)
		ct_wait(p, false, 50);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "pending"), 0);
	KUNIT_EXPECT_GT(test, hostile_stat(test, &p->pep->fid, "timeouts"), 0);
	for (i = 0; i < FLOOD; i++) {
		if (!raw[i])
			continue;
		hostile_expect_closed(test, raw[i]);
		sock_release(raw[i]);
	}
	ct_expect_no_event(test, p->side[1].eq);
	hostile_close(h);
}

/* Wait until a statistic of a listener has a value. */
static bool backlog_is(struct ct_pair *p, struct fid_pep *pep, const char *name, u64 value)
{
	const unsigned long end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);

	while (hostile_stat(p->test, &pep->fid, name) != value) {
		if (time_after(jiffies, end))
			return false;
		ct_wait(p, false, 1);
	}
	return true;
}

/*
 * Five connections are accepted before the first sends its request. The program sees
 * no more at a time than the backlog allows. The rest are closed with the listener.
 */
static void hostile_backlog(struct kunit *test)
{
	const struct ct_opts opts = {
		.unconnected = true, .handshake_ms = 8 * CT_TIMEOUT_MS,
	};
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	const struct sockaddr_storage listener = p->addr;
	size_t len = sizeof(p->addr);
	int i, backlog = 2;
	enum { CLIENTS = 5 };
	struct socket *raw[CLIENTS];
	struct fid_pep *pep;

	KUNIT_ASSERT_EQ(test, fi_passive_ep(p->fabric, p->info, &pep, p), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(pep, &p->side[1].eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
	KUNIT_ASSERT_EQ(test, fi_listen(pep), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&pep->fid, &p->addr, &len), 0);
	for (i = 0; i < CLIENTS; i++) {
		raw[i] = raw_connect(test, p);
		KUNIT_ASSERT_NOT_NULL(test, raw[i]);
		KUNIT_ASSERT_TRUE(test, backlog_is(p, pep, "pending", i + 1));
	}
	raw_cm(h->buf, 3, 0, 0);
	for (i = 0; i < CLIENTS; i++)
		KUNIT_EXPECT_EQ(test, raw_send(raw[i], h->buf, RAW_CM_LEN), RAW_CM_LEN);
	KUNIT_EXPECT_TRUE(test, backlog_is(p, pep, "pending", 0));
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &pep->fid, "delivered"), backlog);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &pep->fid, "waiting"), CLIENTS - backlog);
	/* each answer makes room for one request */
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
		KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
		KUNIT_EXPECT_EQ(test, fi_reject(pep, ev->cm.info->handle, NULL, 0), 0);
		fi_freeinfo(ev->cm.info);
		KUNIT_EXPECT_TRUE(test, backlog_is(p, pep, "delivered", backlog));
		KUNIT_EXPECT_EQ(test, hostile_stat(test, &pep->fid, "waiting"),
				CLIENTS - backlog - i - 1);
	}
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &pep->fid, "evicted"), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&pep->fid), 0);
	for (i = 0; i < CLIENTS; i++) {
		hostile_expect_closed(test, raw[i]);
		sock_release(raw[i]);
	}
	p->addr = listener;
	hostile_close(h);
}

#define CROWD		300

/* Clients that all connect before the first has sent its request */
struct crowd {
	struct ct_pair	*pair;
	struct socket	*raw[CROWD];
	bool		sent[CROWD];
	struct fid_ep	*ep[CROWD];
	int		accepted, connected;
};

static void crowd_accept(struct kunit *test, struct crowd *c,
			 struct fi_info *info)
{
	struct ct_side *s = &c->pair->side[1];
	struct fid_ep *ep;

	info->tx_attr->size = 8;
	info->rx_attr->size = 8;
	KUNIT_ASSERT_LT(test, c->accepted, CROWD);
	KUNIT_ASSERT_EQ(test, fi_endpoint(c->pair->domain, info, &ep, s), 0);
	c->ep[c->accepted++] = ep;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->tx.cq->fid, FI_TRANSMIT), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->rx.cq->fid, FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), 0);
	fi_freeinfo(info);
}

/* Who is connected now sends its request, and what has come is accepted. */
static void crowd_step(struct kunit *test, struct crowd *c, struct ct_event *ev)
{
	u8 req[RAW_CM_LEN];
	int i;

	raw_cm(req, 3, 0, 0);
	for (i = 0; i < CROWD; i++) {
		if (c->sent[i] ||
		    READ_ONCE(c->raw[i]->sk->sk_state) != TCP_ESTABLISHED)
			continue;
		KUNIT_EXPECT_EQ(test, raw_send(c->raw[i], req, RAW_CM_LEN), RAW_CM_LEN);
		c->sent[i] = true;
	}
	while (!ct_next_event(c->pair->side[1].eq, ev, 10)) {
		if (ev->event == FI_CONNREQ)
			crowd_accept(test, c, ev->cm.info);
		else if (ev->event == FI_CONNECTED)
			c->connected++;
		else
			KUNIT_FAIL(test, "event %u", ev->event);
	}
}

/*
 * More clients at once than may be without their request, and than TCP keeps for
 * the listener: all of them get in.
 */
static void hostile_crowd(struct kunit *test)
{
	const struct ct_opts opts = {
		/* the oldest, who would give way after an eighth, is in time */
		.unconnected = true, .handshake_ms = 8 * CT_TIMEOUT_MS,
	};
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct crowd *c = ct_buf(p, sizeof(*c));
	unsigned long end;
	int i, err;

	c->pair = p;
	for (i = 0; i < CROWD; i++) {
		c->raw[i] = raw_socket(test, p);
		err = kernel_connect(c->raw[i], (void *)&p->addr,
				     sizeof(struct sockaddr_in), O_NONBLOCK);
		KUNIT_EXPECT_TRUE(test, !err || err == -EINPROGRESS);
	}
	end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);
	while (hostile_stat(test, &p->pep->fid, "pending") < 128 && time_before(jiffies, end))
		ct_wait(p, false, 1);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "pending"), 128);
	/* TCP repeats what a full queue has refused later and later */
	end = jiffies + msecs_to_jiffies(4 * CT_TIMEOUT_MS);
	while (c->connected < CROWD && time_before(jiffies, end))
		crowd_step(test, c, ev);
	KUNIT_EXPECT_EQ(test, c->connected, CROWD);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "evicted"), 0);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "timeouts"), 0);
	for (i = 0; i < CROWD && c->connected == CROWD; i++) {
		KUNIT_EXPECT_EQ(test, raw_recv(c->raw[i], h->buf, RAW_CM_LEN), RAW_CM_LEN);
		KUNIT_EXPECT_EQ(test, h->buf[1], 1);
	}
	hostile_innocent(h);
	for (i = 0; i < CROWD; i++) {
		if (c->ep[i])
			KUNIT_EXPECT_EQ(test, fi_close(&c->ep[i]->fid), 0);
		sock_release(c->raw[i]);
	}
	hostile_close(h);
}

/* --- what one run of a listener does --- */

/* However many connect at once, a listener accepts 64, and lets others run. */
static void hostile_run(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	enum { CLIENTS = 100, RUN = 64 };
	struct hostile *h;
	struct stuck *before, *behind;
	struct socket **raw, *last;
	struct ct_pair *p;
	bool told;
	int i;

	if (num_online_cpus() > 1)
		kunit_skip(test, "work items have an order on one CPU");
	h = hostile_open(test, &opts);
	p = h->bad;
	raw = ct_buf(p, CLIENTS * sizeof(*raw));
	workqueue_set_max_active(ksk_wq, 1);
	before = ct_buf(p, sizeof(*before));
	behind = ct_buf(p, sizeof(*behind));
	stuck_queue(before, WORK_CPU_UNBOUND);
	wait_for_completion(&before->runs);
	for (i = 0; i < CLIENTS; i++) {
		raw[i] = raw_connect(test, p);
		KUNIT_EXPECT_NOT_NULL(test, raw[i]);
	}
	/* the listener has been told of the last one when that is acknowledged */
	last = raw[CLIENTS - 1];
	raw_cm(h->buf, 3, 0, 0);
	if (last)
		KUNIT_EXPECT_EQ(test, raw_send(last, h->buf, 1), 1);
	told = last && ct_wait(p, !READ_ONCE(tcp_sk(last->sk)->packets_out),
			       CT_TIMEOUT_MS);
	KUNIT_EXPECT_TRUE(test, told);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "pending"), 0);
	stuck_queue(behind, WORK_CPU_UNBOUND);
	stuck_end(before);
	wait_for_completion(&behind->runs);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "pending"), RUN);
	stuck_end(behind);
	workqueue_set_max_active(ksk_wq, WQ_DFL_ACTIVE);
	flush_workqueue(ksk_wq);
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->pep->fid, "pending"), CLIENTS);
	for (i = 0; i < CLIENTS; i++)
		if (raw[i])
			sock_release(raw[i]);
	hostile_close(h);
}

/* --- answers to our own requests --- */

static const struct cm_param bad_answers[] = {
	{ "version 2", NULL, 2, 1, 0, 32 },
	{ "a request", NULL, 3, 0, 0, 32 },
	{ "type 9", NULL, 3, 9, 0, 32 },
	{ "257 bytes of private data", NULL, 3, 1, 257, 289 },
	{ "refusal with 257 bytes", NULL, 3, 6, 257, 289 },
	{ "garbage", NULL, .sent = 200, .garbage = true },
	{ "half a header, end", NULL, 3, 1, 0, 16, true },
	{ "private data missing, end", NULL, 3, 1, 100, 32, true },
	{ "nothing, end", NULL, 3, 1, 0, 0, true },
	{ "nothing at all", NULL, 3, 1, 0, 0 },
	{ "private data never sent", NULL, 3, 1, 100, 32 },
};

KUNIT_ARRAY_PARAM_DESC(bad_answer, bad_answers, name);

static void hostile_answer(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	const struct cm_param *c = test->param_value;
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr = ((struct sockaddr_in *)&p->addr)->sin_addr,
	};
	struct socket *listener;
	unsigned int ms = TEST_LIMIT(700);
	int err;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &listener), 0);
	err = kernel_bind(listener, (void *)&addr, sizeof(addr));
	err = err ?: kernel_listen(listener, 4);
	if (!err && kernel_getsockname(listener, (struct sockaddr *)&addr) < 0)
		err = -EINVAL;
	err = err ?: fi_set_val(&p->side[0].ep->fid, KOFI_VAL_CONNECT_TIMEOUT,
				&ms);
	err = err ?: fi_connect(p->side[0].ep, &addr, NULL, 0);
	err = err ?: kernel_accept(listener, &h->raw, 0);
	sock_release(listener);
	KUNIT_ASSERT_EQ(test, err, 0);
	h->raw->sk->sk_rcvtimeo = RAW_TIMEOUT;
	KUNIT_ASSERT_EQ(test, raw_recv(h->raw, h->buf, RAW_CM_LEN), RAW_CM_LEN);
	raw_cm(h->buf, c->version, c->type, c->data_len);
	if (c->garbage)
		memset(h->buf, 0xee, c->sent);
	raw_send(h->raw, h->buf, c->sent);
	if (c->end)
		kernel_sock_shutdown(h->raw, SHUT_WR);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS), 1);
	KUNIT_EXPECT_NE(test, ev->error.err, 0);
	ct_expect_no_event(test, p->side[0].eq);
	hostile_expect_closed(test, h->raw);
	/* a new endpoint connects as if nothing had been */
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 0, p->info), 0);
	hostile_close(h);
}

static struct kunit_case hostile_cm_cases[] = {
	KUNIT_CASE_PARAM(hostile_request, bad_cm_gen_params),
	KUNIT_CASE(hostile_request_in_pieces),
	KUNIT_CASE(hostile_flood),
	KUNIT_CASE(hostile_backlog),
	KUNIT_CASE_SLOW(hostile_crowd),
	KUNIT_CASE(hostile_run),
	KUNIT_CASE_PARAM(hostile_answer, bad_answer_gen_params),
	{}
};

static struct kunit_suite hostile_cm_suite = {
	.name = "sock_hostile_cm",
	.suite_init = lo_suite_init,
	.test_cases = hostile_cm_cases,
};

kunit_test_suite(hostile_cm_suite);
