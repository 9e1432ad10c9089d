// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tagged messages that are announced before they are sent: between two endpoints,
 * from a peer that breaks the rules, and from one that goes away.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <kunit/static_stub.h>

#include "../param.h"
#include "rdm.h"

/* Long tagged messages are announced; nothing behind them waits. */
static void rdm_rendezvous_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	const struct kvec kv = { t->out + 30 * 100, 100 };
	struct fi_msg fenced = { .msg_iov = &kv, .iov_count = 1 };
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 1 };
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct fi_cq_err_entry e;
	fi_addr_t peer[2];
	int i, err;

	test_param_set(test, &ksk_rendezvous_min, 2000);
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	for (i = 0; i < 8; i++)
		rdm_tsend(test, a, peer[0], i, 4000,
			  i & 1 ? FI_DELIVERY_COMPLETE : 0);
	rdm_tsend(test, a, peer[0], 8, 1999, 0);
	rdm_recvs(test, b, 20, 21, 100);
	rdm_sends(test, a, peer[0], 20, 21, 100);
	rdm_received(test, b, 20, 21, 100);
	rdm_sent(test, a, 2, 0);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->tx, &e, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, rdm_announced(a), 8UL);

	/* in any order, one with too little room, one with none */
	rdm_trecv(test, b, 8, 1999);
	for (i = 7; i >= 2; i--) {
		rdm_trecv(test, b, i, 4000);
		rdm_sent(test, a, 1, 0);
	}
	KUNIT_EXPECT_EQ(test, fi_trecv(b->ep, t->in, 10, NULL, FI_ADDR_UNSPEC,
				       0, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), -FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, e.len, 10);
	KUNIT_EXPECT_EQ(test, e.olen, 3990);
	rdm_sent(test, a, 1, 0);
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK | FI_DISCARD),
			0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.len, 4000);
	rdm_sent(test, a, 1, 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "rx_unexpected_bytes"), 0);

	/* what is fenced waits for the payload */
	rdm_recvs(test, b, 30, 31, 100);
	rdm_tsend(test, a, peer[0], 3, 4000, 0);
	fenced.addr = peer[0];
	KUNIT_EXPECT_EQ(test, fi_sendmsg(a->ep, &fenced, FI_FENCE), 0);
	/* announced, but not received */
	peek.tag = 3;
	do {
		KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK), 0);
		err = live_comp(b->rx, &e);
	} while (err == -FI_ENOMSG && time_before(jiffies, end));
	KUNIT_EXPECT_EQ(test, err, 0);
	rdm_trecv(test, b, 3, 4000);
	rdm_received(test, b, 30, 31, 100);
	rdm_sent(test, a, 2, 0);
}

/* Parts of one buffer for messages that are announced, kept and fetched */
static void rdm_rendezvous_multi_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	const struct kvec kv = { t->in, 3 * 4000 };
	const struct fi_msg_tagged multi = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.ignore = ~0ULL, .context = t,
	};
	struct fi_cq_err_entry e;
	fi_addr_t peer[2];
	int i;

	test_param_set(test, &ksk_rendezvous_min, 2000);
	rdm_pair(test, FI_MSG | FI_TAGGED | FI_TAGGED_MULTI_RECV, peer);
	rdm_tsend(test, a, peer[0], 0, 4000, 0);
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &multi, FI_MULTI_RECV |
					  FI_COMPLETION), 0);
	for (i = 1; i < 3; i++)
		rdm_tsend(test, a, peer[0], i, 4000, 0);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
		KUNIT_EXPECT_EQ(test, e.len, 4000);
		KUNIT_ASSERT_LT(test, e.tag, 3ULL);
		KUNIT_EXPECT_PTR_EQ(test, e.buf, (void *)t->in + e.tag * 4000);
		KUNIT_EXPECT_EQ(test, !!(e.flags & FI_MULTI_RECV), i == 2);
		KUNIT_EXPECT_MEMEQ(test, (u8 *)e.buf, t->out + e.tag * 4000,
				   4000);
	}
	rdm_sent(test, a, 3, 0);
	KUNIT_EXPECT_EQ(test, rdm_announced(a), 3UL);
}

/* What was announced ends with the connection, at both sides. */
static void rdm_rendezvous_end_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct fi_cq_err_entry e;
	fi_addr_t peer[2];
	int i;

	test_param_set(test, &ksk_rendezvous_min, 2000);
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	for (i = 0; i < 3; i++) {
		rdm_tsend(test, a, peer[0], i, 4000, 0);
		rdm_tsend(test, b, peer[1], i, 4000, 0);
	}
	/* what is behind them shows that they have arrived */
	rdm_recvs(test, b, 20, 21, 100);
	rdm_recvs(test, a, 21, 22, 100);
	rdm_sends(test, a, peer[0], 20, 21, 100);
	rdm_sends(test, b, peer[1], 21, 22, 100);
	rdm_received(test, b, 20, 21, 100);
	rdm_received(test, a, 21, 22, 100);
	rdm_sent(test, a, 1, 0);
	rdm_sent(test, b, 1, 0);
	rdm_close(test, a);
	rdm_sent(test, b, 3, ECONNRESET);
	rdm_alone(test, b);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "rx_unexpected_bytes"), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(b->ep, t->in, 4000, NULL, FI_ADDR_UNSPEC,
				       1, 0, t), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&b->ep->fid, t), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), -ECANCELED);
}

/* A frame of a rendezvous: header, up to two words, and payload */
static void rdm_frame(struct kunit *test, struct socket *sock, u8 op, u8 ctx,
		      u64 announced, size_t payload)
{
	u8 frame[256] = {};
	struct ksk_hdr *hdr = (struct ksk_hdr *)frame;
	size_t len = sizeof(*hdr) + (op == KSK_OP_RTS ? 16 : 0);

	hdr->version = KSK_PROTO_VERSION;
	hdr->op = op;
	hdr->op_data = ctx;
	hdr->hdr_size = len;
	put_unaligned_le64(len + payload, hdr->size);
	put_unaligned_le64(5, frame + 16);
	if (op == KSK_OP_RTS)
		put_unaligned_le64(announced, frame + 24);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, frame, len + payload),
			(int)(len + payload));
}

/* Steps of a peer that breaks the rules of a rendezvous */
static const struct rdm_rule {
	const char *name;
	u8 version;	/* that it asks for */
	bool posted;	/* there is a receive, and the answer is waited for */
	struct {
		u8 op;
		u8 ctx;
		u64 announced;
		size_t payload;
	} frame[2];
} rdm_rules[] = {
	{ "answer to nothing", 1, false, { { KSK_OP_CTS, 1 } } },
	{ "payload of nothing", 1, false, { { KSK_OP_DATA, 1, 0, 9 } } },
	{ "context 0", 1, false, { { KSK_OP_RTS, 0, 9 } } },
	{ "context 255", 1, false, { { KSK_OP_RTS, 255, 9 } } },
	{ "longer than any message", 1, false,
	  { { KSK_OP_RTS, 1, KSK_MSG_MAX + 1ULL } } },
	{ "twice", 1, false, { { KSK_OP_RTS, 1, 9 }, { KSK_OP_RTS, 1, 9 } } },
	{ "payload not asked for", 1, false,
	  { { KSK_OP_RTS, 1, 9 }, { KSK_OP_DATA, 1, 0, 9 } } },
	{ "payload too short", 1, true,
	  { { KSK_OP_RTS, 1, 9 }, { KSK_OP_DATA, 1, 0, 8 } } },
	{ "payload too long", 1, true,
	  { { KSK_OP_RTS, 1, 9 }, { KSK_OP_DATA, 1, 0, 10 } } },
	{ "payload of another", 1, true,
	  { { KSK_OP_RTS, 1, 9 }, { KSK_OP_DATA, 2, 0, 9 } } },
	{ "none agreed", 0, false, { { KSK_OP_RTS, 1, 9 } } },
	{ "none agreed, with the bit", 0x80, false, { { KSK_OP_RTS, 1, 9 } } },
};

static void rdm_rules_test(struct kunit *test)
{
	struct sockaddr_in known = {
		.sin_family = AF_INET,
		.sin_port = htons(7),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct fi_cq_err_entry e;
	struct socket *sock;
	struct rdm_cm cm;
	u8 buf[16];
	int i;

	rdm_open(test, a, FI_MSG | FI_TAGGED, 0);
	rdm_insert(test, a, &known);
	for (i = 0; i < ARRAY_SIZE(rdm_rules); i++) {
		const struct rdm_rule *r = &rdm_rules[i];

		kunit_info(test, "%s", r->name);
		sock = rdm_raw(test, a);
		KUNIT_EXPECT_EQ(test, rdm_ask_version(test, sock, &cm,
						      r->version, 7, 9 + i),
				KSK_CM_ACCEPT);
		if (r->posted)
			KUNIT_EXPECT_EQ(test, fi_trecv(a->ep, t->in, 100, NULL,
						       FI_ADDR_UNSPEC, 5, 0, t),
					0);
		rdm_frame(test, sock, r->frame[0].op, r->frame[0].ctx,
			  r->frame[0].announced, r->frame[0].payload);
		if (r->posted)
			KUNIT_EXPECT_EQ(test, live_raw_recv(sock, buf, 16), 16);
		if (r->frame[1].op)
			rdm_frame(test, sock, r->frame[1].op, r->frame[1].ctx,
				  r->frame[1].announced, r->frame[1].payload);
		KUNIT_EXPECT_LE(test, live_raw_recv(sock, buf, 1), 0);
		if (r->posted) {
			KUNIT_EXPECT_EQ(test, live_comp(a->rx, &e), -ENOTCONN);
			KUNIT_EXPECT_EQ(test, e.tag, 5);
		}
		sock_release(sock);
		rdm_alone(test, a);
	}
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "rx_unexpected_bytes"), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->rx, &e, 1), -EAGAIN);
}

/* A peer goes away in the middle of a rendezvous: nothing of it is left. */
static void rdm_rendezvous_gone_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct fi_cq_err_entry e;
	struct socket *sock;
	struct rdm_cm cm;
	u8 frame[16] = { KSK_PROTO_VERSION, KSK_OP_DATA, 0, 0, 1, 0, 16, 0,
			 16 + 9 };
	u8 buf[16];

	rdm_open(test, a, FI_MSG | FI_TAGGED, 0);
	/* an announcement that is not stored, as the peer is not known */
	sock = rdm_raw(test, a);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock, &cm, 7, 9), KSK_CM_ACCEPT);
	rdm_frame(test, sock, KSK_OP_RTS, 1, 9, 0);
	sock_release(sock);
	rdm_alone(test, a);
	KUNIT_EXPECT_EQ(test, fi_trecv(a->ep, t->in, 100, NULL, FI_ADDR_UNSPEC,
				       5, 0, t), 0);

	/* the receive is for the next one, which ends within the payload */
	sock = rdm_raw(test, a);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock, &cm, 7, 9), KSK_CM_ACCEPT);
	rdm_frame(test, sock, KSK_OP_RTS, 1, 9, 0);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, buf, 16), 16);
	KUNIT_EXPECT_EQ(test, buf[1], KSK_OP_CTS);
	KUNIT_EXPECT_EQ(test, buf[4], 1);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, frame, 16), 16);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, live_comp(a->rx, &e), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, e.tag, 5);
	KUNIT_EXPECT_EQ(test, e.len, 0);
	rdm_alone(test, a);
}

/* A payload that was asked for and does not come is a frame that does not go on. */
static void rdm_rendezvous_late_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct fi_cq_err_entry e;
	struct socket *sock;
	struct rdm_cm cm;
	u8 buf[16];

	test_param_set(test, &ksk_frame_timeout, 200);
	rdm_open(test, a, FI_MSG | FI_TAGGED, 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(a->ep, t->in, 100, NULL, FI_ADDR_UNSPEC,
				       5, 0, t), 0);
	sock = rdm_raw(test, a);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock, &cm, 7, 9), KSK_CM_ACCEPT);
	rdm_frame(test, sock, KSK_OP_RTS, 1, 9, 0);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, buf, 16), 16);
	KUNIT_EXPECT_EQ(test, live_comp(a->rx, &e), -ENOTCONN);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock, buf, 1), 0);
	sock_release(sock);
}

/*
 * No receive comes for what was announced: the payload is thrown away, unless the sender
 * would be told that it has been received. Others go on.
 */
static void rdm_rendezvous_expired_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	fi_addr_t peer[2];
	int i;

	test_param_set(test, &ksk_rendezvous_min, 2000);
	b->expire = TEST_LIMIT(30);
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	rdm_tpost(test, b, 1, 4000);
	for (i = 0; i < 3; i++)
		rdm_tsend(test, a, peer[0], i, 4000, 0);
	rdm_treceived(test, b, 1, 4000);
	rdm_sent(test, a, 3, 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "rx_expired"), 2);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "connections"), 1);

	rdm_tsend(test, a, peer[0], 4, 4000, FI_DELIVERY_COMPLETE);
	rdm_sent(test, a, 1, ECONNRESET);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "rx_expired"), 3);
	rdm_tpost(test, b, 5, 4000);
	rdm_tsend(test, a, peer[0], 5, 4000, FI_DELIVERY_COMPLETE);
	rdm_treceived(test, b, 5, 4000);
	rdm_sent(test, a, 1, 0);
}

static int rdm_lookups;

/* The first look-up was made before the insertion that another one finds. */
static fi_addr_t rdm_source_late(struct ksk_conn *c)
{
	return rdm_lookups++ ? kofi_av_source(c->ep->base.av,
					      &ksk_peer(c)->base.addr.sa) :
			       FI_ADDR_NOTAVAIL;
}

/*
 * The sender is inserted between the look-up and the storing of its message, or of
 * an announcement: it has a name.
 */
static void rdm_named_late(struct kunit *test, size_t len)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct fi_cq_tagged_entry e;
	fi_addr_t peer[2], src;
	unsigned int cpu;
	int i, n;

	test_param_set(test, &ksk_rendezvous_min, 2000);
	rdm_pair(test, FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV, peer);
	/*
	 * One connects; another is read in this thread, which has the stub, unless
	 * ksoftirqd reads it, or another CPU that the connection's packets are passed to.
	 */
	rdm_lookups = 0;
	for (n = 0; !rdm_lookups && n < 10; n++) {
		cpu = cpumask_nth(n % num_online_cpus(), cpu_online_mask);
		KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
		rdm_tsend(test, a, peer[0], n, len, 0);
		while (rdm_stored(b) <= n && time_before(jiffies, end))
			schedule_timeout_uninterruptible(1);
		kunit_activate_static_stub(test, ksk_rdm_source,
					   rdm_source_late);
	}
	kunit_deactivate_static_stub(test, ksk_rdm_source);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpu_possible_mask), 0);
	KUNIT_ASSERT_GT(test, rdm_lookups, 0);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, len, NULL, peer[1],
					       i, 0, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_cq_sreadfrom(b->rx, &e, 1, &src, NULL,
						      LIVE_TIMEOUT), 1);
		KUNIT_EXPECT_EQ(test, e.tag, (u64)i);
		KUNIT_EXPECT_EQ(test, src, peer[1]);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out + i * len, len);
	}
	rdm_sent(test, a, n, 0);
	rdm_close(test, a);
	rdm_close(test, b);
}

static void rdm_named_late_test(struct kunit *test)
{
	rdm_named_late(test, 100);
	rdm_named_late(test, 4000);
}

static struct kunit_case rndv_cases[] = {
	KUNIT_CASE(rdm_rendezvous_test),
	KUNIT_CASE(rdm_rendezvous_multi_test),
	KUNIT_CASE(rdm_rendezvous_end_test),
	KUNIT_CASE(rdm_rules_test),
	KUNIT_CASE(rdm_rendezvous_gone_test),
	KUNIT_CASE(rdm_rendezvous_late_test),
	KUNIT_CASE(rdm_rendezvous_expired_test),
	KUNIT_CASE(rdm_named_late_test),
	{}
};

static struct kunit_suite sock_rndv_suite = {
	.name		= "sock_rndv",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= rndv_cases,
};

kunit_test_suite(sock_rndv_suite);
