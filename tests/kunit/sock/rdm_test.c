// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints of type FI_EP_RDM over the loopback device: connections that are made
 * by posting, by both sides at once, to oneself, to a peer that is not there or has
 * restarted; what ends with them; and requests that are none.
 */
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include <kunit/static_stub.h>

#include "../param.h"
#include "rdm.h"

#define PART_LEN	64	/* bytes of a message that does not come at once */

static char *rdm_unreachable;
module_param_named(unreachable, rdm_unreachable, charp, 0444);
MODULE_PARM_DESC(unreachable, "Address with a route that says it is unreachable (default: none)");

/* The first post connects, and what follows waits for it in order. */
static void rdm_first_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	fi_addr_t peer[2];

	rdm_pair(test, FI_MSG, peer);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, peer[0] + 1,
				      NULL), -EINVAL);
	rdm_recvs(test, b, 0, 8, 1000);
	rdm_sends(test, a, peer[0], 0, 8, 1000);
	rdm_received(test, b, 0, 8, 1000);
	rdm_sent(test, a, 8, 0);

	/* the way back, and more than the socket takes, use it, too */
	rdm_recvs(test, a, 0, 1, RDM_BIG);
	rdm_sends(test, b, peer[1], 0, 1, RDM_BIG);
	rdm_received(test, a, 0, 1, RDM_BIG);
	rdm_sent(test, b, 1, 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "connections"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connects"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "accepted"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "connects"), 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), 0);
}

/* Tags, values and sources */
static void rdm_tagged_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry e;
	fi_addr_t peer[2], src;
	ssize_t n;

	rdm_pair(test, FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
		 peer);
	/* one that is in the vector, but not the sender */
	src = rdm_insert(test, b, &b->addr);
	KUNIT_EXPECT_NE(test, src, peer[1]);
	KUNIT_EXPECT_EQ(test, fi_trecv(b->ep, t->in, 100, NULL, src, 7, 0,
				       NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(b->ep, t->in, 100, NULL, src + 1, 7, 0,
				       NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_trecv(b->ep, t->in + 100, 100, NULL, peer[1],
				       7, 0, &t->in), 0);
	KUNIT_EXPECT_EQ(test, fi_tsenddata(a->ep, t->out, 100, NULL, 99,
					   peer[0], 7, NULL), 0);
	n = fi_cq_sreadfrom(b->rx, &entry, 1, &src, NULL, LIVE_TIMEOUT);
	KUNIT_ASSERT_EQ(test, n, 1);
	KUNIT_EXPECT_EQ(test, src, peer[1]);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, &t->in);
	KUNIT_EXPECT_EQ(test, entry.data, 99);
	KUNIT_EXPECT_EQ(test, entry.tag, 7);
	KUNIT_EXPECT_MEMEQ(test, t->in + 100, t->out, 100);
	rdm_sent(test, a, 1, 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&b->ep->fid, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), -ECANCELED);
}

static bool rdm_stores(struct rdm_node *n, int count)
{
	unsigned long limit = jiffies + LIVE_JIFFIES;

	while (rdm_stored(n) < count && time_before(jiffies, limit))
		schedule_timeout_uninterruptible(1);
	return rdm_stored(n) == count;
}

/* Messages that are stored are acknowledged, and hold up nothing behind them. */
static void rdm_unexpected_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct fi_cq_err_entry e;
	fi_addr_t peer[2];
	int i;

	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	for (i = 0; i < 16; i++)
		rdm_tsend(test, a, peer[0], i, 1000, FI_DELIVERY_COMPLETE);
	rdm_sent(test, a, 16, 0);
	KUNIT_EXPECT_GT(test, rdm_stat(b, "rx_unexpected_bytes"), 16000);
	rdm_recvs(test, b, 20, 21, 1000);
	rdm_sends(test, a, peer[0], 20, 21, 1000);
	rdm_received(test, b, 20, 21, 1000);
	rdm_sent(test, a, 1, 0);
	for (i = 15; i >= 8; i--)
		rdm_trecv(test, b, i, 1000);

	/* too long, then longer than what is posted for it */
	KUNIT_EXPECT_EQ(test, fi_trecv(b->ep, t->in, 10, NULL, FI_ADDR_UNSPEC,
				       7, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), -FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, e.len, 10);
	KUNIT_EXPECT_EQ(test, e.olen, 990);

	/* the sender is gone: what it has sent is not */
	rdm_close(test, a);
	rdm_alone(test, b);
	for (i = 0; i < 6; i++)
		rdm_trecv(test, b, i, 1000);
	KUNIT_EXPECT_GT(test, rdm_stat(b, "rx_unexpected_bytes"), 1000);
}

/* So many are stored, and that many streams wait. */
static void rdm_waits(struct kunit *test, struct rdm_node *n, int stored,
		      unsigned long stalls)
{
	unsigned long limit = jiffies + LIVE_JIFFIES;

	while (rdm_stalls(n) < stalls && rdm_stored(n) <= stored &&
	       time_before(jiffies, limit))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stored(n), stored);
	KUNIT_EXPECT_GE(test, rdm_stalls(n), stalls);
}

/* Beyond the limits the stream waits, and goes on when there is room. */
static void rdm_unexpected_limit_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	fi_addr_t peer[2];
	int i;

	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	for (i = 0; i < 100; i++) {
		rdm_tsend(test, a, peer[0], i, 100, 0);
		rdm_sent(test, a, 1, 0);
	}
	rdm_sends(test, a, peer[0], 100, 101, 100);
	rdm_sent(test, a, 1, 0);
	rdm_waits(test, b, 64, 1);
	for (i = 0; i < 100; i++)
		rdm_trecv(test, b, i, 100);
	rdm_recvs(test, b, 100, 101, 100);
	rdm_received(test, b, 100, 101, 100);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "rx_unexpected_bytes"), 0);
	/* longer than what is stored */
	rdm_tsend(test, a, peer[0], 1, 20000, 0);
	rdm_trecv(test, b, 1, 20000);
	rdm_sent(test, a, 1, 0);
}

#define LIMIT_BYTES	SZ_8K	/* that are stored of all peers */
#define LIMIT_LEN	1000	/* bytes of a message */
#define LIMIT_COUNT	16	/* more of one peer than these take */

/*
 * The bytes of all peers are limited: a message that would be too many is not
 * acknowledged before it is received, be it of the same peer or of another one.
 */
static void rdm_unexpected_bytes_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	unsigned long end = jiffies + LIVE_JIFFIES;
	fi_addr_t peer[2], self;
	int i, fit;

	b->buffered = LIMIT_BYTES;
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	self = rdm_insert(test, b, &b->addr);
	KUNIT_ASSERT_EQ(test, b->info->rx_attr->total_buffered_recv, LIMIT_BYTES);
	rdm_tsend(test, a, peer[0], 0, LIMIT_LEN, FI_DELIVERY_COMPLETE);
	rdm_sent(test, a, 1, 0);
	fit = LIMIT_BYTES / (int)rdm_stat(b, "rx_unexpected_bytes");
	KUNIT_ASSERT_GT(test, fit, 1);
	KUNIT_ASSERT_LT(test, fit, LIMIT_COUNT);

	for (i = 1; i < LIMIT_COUNT; i++)
		rdm_tsend(test, a, peer[0], i, LIMIT_LEN, FI_DELIVERY_COMPLETE);
	rdm_sent(test, a, fit - 1, 0);
	rdm_waits(test, b, fit, 1);
	rdm_tsend(test, b, self, LIMIT_COUNT, LIMIT_LEN, FI_DELIVERY_COMPLETE);
	rdm_waits(test, b, fit, 2);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->tx, &(struct fi_cq_tagged_entry) {},
					 1), -EAGAIN);
	for (i = 0; i <= LIMIT_COUNT; i++) {
		KUNIT_EXPECT_LE(test, rdm_stat(b, "rx_unexpected_bytes"),
				LIMIT_BYTES);
		rdm_trecv(test, b, i, LIMIT_LEN);
	}
	rdm_sent(test, a, LIMIT_COUNT - fit, 0);
	rdm_sent(test, b, 1, 0);
	/* the last one goes when it has completed */
	while (rdm_stat(b, "rx_unexpected_bytes") && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stat(b, "rx_unexpected_bytes"), 0);
}

/* A message that is kept for a claim stays so when it is stored. */
static void rdm_claim_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	const struct kvec kv = { t->in + 64 * 100, 100 };
	struct fi_msg_tagged msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.tag = 64, .context = t,
	};
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct fi_cq_err_entry e;
	fi_addr_t peer[2];
	int i, err;

	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	for (i = 0; i < 65; i++) {
		rdm_tsend(test, a, peer[0], i, 100, 0);
		rdm_sent(test, a, 1, 0);
	}
	/* the last one is stalled, and found as soon as it is there */
	do {
		KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &msg, FI_PEEK |
						  FI_CLAIM), 0);
		err = live_comp(b->rx, &e);
	} while (err == -FI_ENOMSG && time_before(jiffies, end));
	KUNIT_ASSERT_EQ(test, err, 0);
	/* there is room now: it is stored, and no other receive's */
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->out + RDM_BIG / 2, 100, NULL,
				       FI_ADDR_UNSPEC, 64, 0, t), 0);
	for (i = 0; i < 64; i++)
		rdm_trecv(test, b, i, 100);
	KUNIT_EXPECT_EQ(test, fi_cancel(&b->ep->fid, t), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), -ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(b->ep, &msg, FI_CLAIM), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_MEMEQ(test, t->in + 64 * 100, t->out + 64 * 100, 100);
}

/* A peer that is only a socket, and in the vector */
static struct socket *rdm_raw_known(struct kunit *test, struct rdm_node *n,
				    u16 port)
{
	const struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct socket *sock = rdm_raw(test, n);
	struct rdm_cm cm;

	rdm_insert(test, n, &addr);
	KUNIT_ASSERT_EQ(test, rdm_ask(test, sock, &cm, port, 9), KSK_CM_ACCEPT);
	return sock;
}

/* A tagged message to an endpoint, but for its last bytes */
static void rdm_raw_tagged(struct kunit *test, struct socket *sock, u64 tag,
			   u16 flags, const u8 *data, size_t len, size_t without)
{
	u8 buf[sizeof(struct ksk_hdr) + sizeof(tag) + PART_LEN] = {};
	struct ksk_hdr *hdr = (struct ksk_hdr *)buf;
	size_t size = sizeof(*hdr) + sizeof(tag);

	hdr->version = KSK_PROTO_VERSION;
	hdr->op = KSK_OP_TAGGED;
	put_unaligned_le16(flags, hdr->flags);
	hdr->hdr_size = size;
	put_unaligned_le64(tag, buf + sizeof(*hdr));
	memcpy(buf + size, data, len);
	size += len;
	put_unaligned_le64(size, hdr->size);
	size -= without;
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, buf, size), (int)size);
}

/*
 * A message that is stored, and not complete, is woken twice: for a slot of the completion
 * queue, and for its part of a buffer. It is received when all of it has come.
 */
static void rdm_woken_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	const struct kvec kv = { t->in, RDM_BIG };
	struct fi_msg_tagged multi = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.tag = 1,
	};
	struct fi_cq_err_entry e;
	struct socket *sock[2];
	int i;

	a->slots = 8;
	rdm_open(test, a, FI_MSG | FI_TAGGED | FI_TAGGED_MULTI_RECV, 0);
	for (i = 0; i < 2; i++)
		sock[i] = rdm_raw_known(test, a, 7 + i);
	rdm_raw_tagged(test, sock[0], 1, 0, t->out, PART_LEN, 0);
	KUNIT_ASSERT_TRUE(test, rdm_stores(a, 1));
	rdm_raw_tagged(test, sock[1], 1, 0, t->out + PART_LEN, PART_LEN, 8);
	KUNIT_ASSERT_TRUE(test, rdm_stores(a, 2));

	/* with all slots of receives taken, one more is there for a part */
	multi.tag = 2;
	multi.context = sock;
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(a->ep, &multi, FI_MULTI_RECV), 0);
	for (i = 0; i < 6; i++)
		KUNIT_ASSERT_EQ(test, fi_trecv(a->ep, t->in, 8, NULL,
					       FI_ADDR_UNSPEC, 2, 0, t), 0);
	multi.tag = 1;
	multi.context = t->in;
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(a->ep, &multi, FI_MULTI_RECV), 0);
	KUNIT_ASSERT_EQ(test, live_comp(a->rx, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.buf, (void *)t->in);
	/* now there is a slot; and now those who wait for one are looked at */
	KUNIT_ASSERT_EQ(test, fi_cancel(&a->ep->fid, sock), 0);
	KUNIT_ASSERT_EQ(test, live_comp(a->rx, &e), -ECANCELED);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)sock);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->rx, &e, 1), -EAGAIN);

	KUNIT_EXPECT_EQ(test, live_raw_send(sock[1], t->out + 2 * PART_LEN - 8,
					    8), 8);
	KUNIT_ASSERT_EQ(test, live_comp(a->rx, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.buf, (void *)t->in + PART_LEN);
	KUNIT_EXPECT_EQ(test, e.len, PART_LEN);
	KUNIT_EXPECT_MEMEQ(test, t->in, t->out, 2 * PART_LEN);
	for (i = 0; i < 2; i++)
		sock_release(sock[i]);
}

static void rdm_expires(struct kunit *test, struct rdm_node *n, u64 count)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (rdm_stat(n, "rx_expired") < count && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_EQ(test, rdm_stat(n, "rx_expired"), count);
}

/*
 * A message that is stored has waited too long before all of it has come. Its sender is
 * not told that it was received: the connection ends. One that tells nothing goes.
 */
static void rdm_expired_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	u8 ack[sizeof(struct ksk_hdr)];
	struct socket *sock;

	a->expire = TEST_LIMIT(30);
	rdm_open(test, a, FI_MSG | FI_TAGGED, 0);
	sock = rdm_raw_known(test, a, 7);
	rdm_raw_tagged(test, sock, 1, 0, t->out, PART_LEN, 8);
	rdm_expires(test, a, 1);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, t->out, 8), 8);
	/* one that was acknowledged goes, too */
	rdm_raw_tagged(test, sock, 2, KSK_F_DELIVERY, t->out, PART_LEN, 0);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, ack, sizeof(ack)),
			(int)sizeof(ack));
	rdm_expires(test, a, 2);
	rdm_raw_tagged(test, sock, 3, KSK_F_DELIVERY, t->out, PART_LEN, 8);
	rdm_expires(test, a, 3);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, t->out, 8), 8);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock, ack, 1), 0);
	sock_release(sock);
	rdm_alone(test, a);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "rx_unexpected_bytes"), 0);
}

/* Memory of a peer */
static void rdm_rma_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct fid_mr *mr;
	fi_addr_t peer[2];

	rdm_pair(test, FI_MSG | FI_RMA, peer);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(b->domain, t->in, RDM_BIG,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5,
					0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_write(a->ep, t->out, RDM_BIG, NULL, peer[0], 0,
				       fi_mr_key(mr), NULL), 0);
	rdm_sent(test, a, 1, 0);
	memset(t->out, 0, 1000);
	KUNIT_EXPECT_EQ(test, fi_read(a->ep, t->out, 1000, NULL, peer[0], 0,
				      fi_mr_key(mr), NULL), 0);
	rdm_sent(test, a, 1, 0);
	KUNIT_EXPECT_MEMEQ(test, t->in, t->out, RDM_BIG);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Both sides connect at once: one connection is left, and nothing is lost. */
static void rdm_both_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *n = t->node;
	fi_addr_t peer[2];
	int round, i;

	for (round = 0; round < 10; round++) {
		rdm_pair(test, FI_MSG, peer);
		for (i = 0; i < 2; i++)
			rdm_recvs(test, &n[i], 8 * i, 8 * i + 8, 100);
		for (i = 0; i < 8; i++) {
			rdm_sends(test, &n[round & 1], peer[round & 1],
				  i + 8 * !(round & 1),
				  i + 8 * !(round & 1) + 1, 100);
			rdm_sends(test, &n[!(round & 1)], peer[!(round & 1)],
				  i + 8 * (round & 1),
				  i + 8 * (round & 1) + 1, 100);
		}
		for (i = 0; i < 2; i++) {
			rdm_received(test, &n[i], 8 * i, 8 * i + 8, 100);
			rdm_sent(test, &n[i], 8, 0);
		}
		KUNIT_EXPECT_EQ(test, rdm_stat(&n[0], "connects") +
				rdm_stat(&n[1], "connects"), 1);
		KUNIT_EXPECT_EQ(test, rdm_stat(&n[0], "accepted") +
				rdm_stat(&n[1], "accepted"), 1);
		for (i = 0; i < 2; i++)
			rdm_close(test, &n[i]);
	}
}

/* Each sends to the other what it expects, at once. */
static void rdm_exchange(struct kunit *test, const fi_addr_t peer[2])
{
	struct rdm_test *t = test->priv;
	struct rdm_node *n = t->node;
	int i;

	for (i = 0; i < 2; i++)
		rdm_recvs(test, &n[i], 8 * i, 8 * i + 8, 100);
	for (i = 0; i < 2; i++)
		rdm_sends(test, &n[i], peer[i], 8 * !i, 8 * !i + 8, 100);
	for (i = 0; i < 2; i++) {
		rdm_received(test, &n[i], 8 * i, 8 * i + 8, 100);
		rdm_sent(test, &n[i], 8, 0);
	}
}

/* Peers that listen at all addresses are known by the one they connect from. */
static void rdm_any_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *n = t->node;
	fi_addr_t peer[2];

	n[0].any = true;
	n[1].any = true;
	rdm_pair(test, FI_MSG | FI_SOURCE, peer);
	rdm_exchange(test, peer);
	rdm_exchange(test, peer);
	KUNIT_EXPECT_EQ(test, rdm_stat(&n[0], "connects") +
			rdm_stat(&n[1], "connects"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(&n[0], "accepted") +
			rdm_stat(&n[1], "accepted"), 1);
}

static void rdm_self_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	fi_addr_t self;

	rdm_open(test, a, FI_MSG, 0);
	self = rdm_insert(test, a, &a->addr);
	rdm_recvs(test, a, 0, 4, 1000);
	rdm_sends(test, a, self, 0, 4, 1000);
	rdm_received(test, a, 0, 4, 1000);
	rdm_sent(test, a, 4, 0);
}

/* A peer that is not there, and then is */
static void rdm_refused_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct sockaddr_in addr;
	fi_addr_t peer;

	rdm_open(test, a, FI_MSG, 0);
	rdm_open(test, b, FI_MSG, 0);
	addr = b->addr;
	rdm_close(test, b);
	peer = rdm_insert(test, a, &addr);
	rdm_sends(test, a, peer, 0, 4, 100);
	rdm_sent(test, a, 4, ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), 0);

	rdm_open(test, b, FI_MSG, ntohs(addr.sin_port));
	rdm_recvs(test, b, 0, 4, 100);
	rdm_sends(test, a, peer, 0, 4, 100);
	rdm_received(test, b, 0, 4, 100);
	rdm_sent(test, a, 4, 0);
}

/* What the network says of the way is the reason, for each that waited. */
static void rdm_unreachable_test(struct kunit *test)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	fi_addr_t peer;

	if (!rdm_unreachable)
		kunit_skip(test, "the parameter unreachable names no address");
	addr.sin_addr.s_addr = in_aton(rdm_unreachable);
	rdm_open(test, a, FI_MSG, 0);
	peer = rdm_insert(test, a, &addr);
	rdm_sends(test, a, peer, 0, 4, 100);
	rdm_sent(test, a, 4, EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), 0);
	rdm_alone(test, a);
}

/* A peer that has been closed and is there again, and then speaks first */
static void rdm_restart_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	fi_addr_t peer[2];
	u16 port;
	int round;

	rdm_pair(test, FI_MSG, peer);
	port = ntohs(b->addr.sin_port);
	for (round = 0; round < 5; round++) {
		rdm_recvs(test, b, 0, 1, 100);
		rdm_sends(test, a, peer[0], 0, 1, 100);
		rdm_received(test, b, 0, 1, 100);
		rdm_sent(test, a, 1, 0);

		rdm_close(test, b);
		rdm_open(test, b, FI_MSG, port);
		peer[1] = rdm_insert(test, b, &a->addr);
		rdm_recvs(test, a, 0, 1, 100);
		rdm_sends(test, b, peer[1], 0, 1, 100);
		rdm_received(test, a, 0, 1, 100);
		rdm_sent(test, b, 1, 0);
	}
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), 1);
}

/* A peer that does not answer takes half of the records, until it is removed. */
static void rdm_deaf_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct sockaddr_in addr;
	fi_addr_t peer[2], deaf;
	struct socket *sock;

	rdm_pair(test, FI_MSG, peer);
	sock = rdm_deaf(test, &addr);
	deaf = rdm_insert(test, a, &addr);
	rdm_sends(test, a, deaf, 0, RDM_SIZE / 2, 100);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, deaf, NULL),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), RDM_SIZE / 2);
	/* which a refusal does not change, nor the next one, of another thread */
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&a->space));
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, deaf, NULL),
			-EAGAIN);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&a->space));

	/* another peer is reached all the same, as it connects itself */
	rdm_recvs(test, a, 0, 1, 100);
	rdm_sends(test, b, peer[1], 0, 1, 100);
	rdm_received(test, a, 0, 1, 100);
	rdm_sent(test, b, 1, 0);
	rdm_recvs(test, b, 0, 4, 100);
	rdm_sends(test, a, peer[0], 0, 4, 100);
	rdm_received(test, b, 0, 4, 100);
	rdm_sent(test, a, 4, 0);

	KUNIT_EXPECT_EQ(test, fi_av_remove(a->av, &deaf, 1, 0), 0);
	rdm_sent(test, a, RDM_SIZE / 2, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), 0);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, deaf, NULL),
			-EINVAL);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&a->space,
							  LIVE_JIFFIES), 0UL);

	/* what waits is given back by the close */
	deaf = rdm_insert(test, a, &addr);
	rdm_sends(test, a, deaf, 0, 3, 100);
	KUNIT_EXPECT_EQ(test, kofi_ep_drain(a->ep), 0);
	rdm_sent(test, a, 3, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, peer[0], NULL),
			-ESHUTDOWN);
	sock_release(sock);
}

/* A post that another post makes, between the two */
static struct {
	struct fid_ep	*ep;
	const void	*buf;
	fi_addr_t	peer;
	ssize_t		ret;
} rdm_between;

static struct ksk_peer *rdm_post_between(struct ksk_rdm *rdm,
					 const union kofi_ip *addr)
{
	rdm_between.ret = fi_send(rdm_between.ep, rdm_between.buf, 1, NULL,
				  rdm_between.peer, NULL);
	return NULL;
}

/*
 * A post to a connected peer lacks the record of a post to a peer that does not answer. It
 * is woken when the other post is refused, but posts to that peer do not wake each other.
 */
static void rdm_record_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct llist_node *taken[RDM_SIZE / 2 - 1];
	struct sockaddr_in addr;
	fi_addr_t peer[2], deaf;
	struct socket *sock;
	struct ksk_ep *ep;
	int i;

	rdm_pair(test, FI_MSG, peer);
	rdm_recvs(test, b, 0, 1, 100);
	rdm_sends(test, a, peer[0], 0, 1, 100);
	rdm_received(test, b, 0, 1, 100);
	rdm_sent(test, a, 1, 0);
	sock = rdm_deaf(test, &addr);
	deaf = rdm_insert(test, a, &addr);
	rdm_sends(test, a, deaf, 0, RDM_SIZE / 2, 100);
	/* all records but one */
	ep = ksk_ep(a->ep);
	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		taken[i] = kofi_freelist_get(&ep->tx_free, &ep->tx_free_lock);
		KUNIT_ASSERT_NOT_NULL(test, taken[i]);
	}
	reinit_completion(&a->space);
	rdm_between.ep = a->ep;
	rdm_between.buf = t->out;
	rdm_between.peer = peer[0];
	rdm_between.ret = 0;
	kunit_activate_static_stub(test, ksk_rdm_current, rdm_post_between);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, deaf, NULL),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, rdm_between.ret, -EAGAIN);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&a->space,
							  LIVE_JIFFIES), 0UL);
	/* further posts are refused before they take a record and search the peer */
	rdm_between.ret = 0;
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, deaf,
					      NULL), -EAGAIN);
	KUNIT_EXPECT_EQ(test, rdm_between.ret, 0);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&a->space));
	kunit_deactivate_static_stub(test, ksk_rdm_current);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 1, NULL, deaf + 1, NULL),
			-EINVAL);
	rdm_recvs(test, b, 0, 1, 100);
	rdm_sends(test, a, peer[0], 0, 1, 100);
	rdm_received(test, b, 0, 1, 100);
	rdm_sent(test, a, 1, 0);

	for (i = 0; i < ARRAY_SIZE(taken); i++)
		kofi_freelist_put(&ep->tx_free, taken[i]);
	KUNIT_EXPECT_EQ(test, fi_av_remove(a->av, &deaf, 1, 0), 0);
	rdm_sent(test, a, RDM_SIZE / 2, ECANCELED);
	sock_release(sock);
	/* fewer wait: posts to peers without a connection are accepted */
	sock = rdm_deaf(test, &addr);
	deaf = rdm_insert(test, a, &addr);
	rdm_sends(test, a, deaf, 0, RDM_SIZE / 2, 100);
	KUNIT_EXPECT_EQ(test, fi_av_remove(a->av, &deaf, 1, 0), 0);
	rdm_sent(test, a, RDM_SIZE / 2, ECANCELED);
	sock_release(sock);
}

/* Numbers of the consumer's for its peers are a matter of address vectors. */
static void rdm_user_id_test(struct kunit *test)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct rdm_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	rdm_open(test, &t->node[0], FI_MSG | FI_AV_USER_ID, 0);
	KUNIT_EXPECT_TRUE(test, t->node[0].info->caps & FI_AV_USER_ID);
	KUNIT_EXPECT_TRUE(test, t->node[0].info->domain_attr->caps &
				FI_AV_USER_ID);
	hints->caps = FI_MSG | FI_AV_USER_ID;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0,
					 hints, &info), -ENODATA);
	hints->caps = FI_MSG;
	KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0,
					 hints, &info), 0);
	if (info)
		KUNIT_EXPECT_FALSE(test, info->domain_attr->caps &
					 FI_AV_USER_ID);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Requests of others, byte by byte */
static void rdm_foreign_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock[3];
	struct rdm_cm cm;
	u8 byte;
	int i;

	rdm_open(test, a, FI_MSG, 0);

	/* another protocol's request, of another length */
	sock[0] = rdm_raw(test, a);
	cm.hdr = (struct ksk_cm_hdr) {
		.version = KSK_PROTO_VERSION,
		.type = KSK_CM_REQUEST,
		.data_len = htons(4),
	};
	live_raw_send(sock[0], &cm, sizeof(cm.hdr) + 4);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock[0], &cm, sizeof(cm.hdr)),
			(int)sizeof(cm.hdr));
	KUNIT_EXPECT_EQ(test, cm.hdr.type, KSK_CM_REJECT);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "refused"), 1);
	sock_release(sock[0]);

	/* one without port */
	sock[0] = rdm_raw(test, a);
	KUNIT_EXPECT_NE(test, rdm_ask(test, sock[0], &cm, 0, 9), KSK_CM_ACCEPT);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "refused"), 2);
	sock_release(sock[0]);

	/* the answer agrees to the version and repeats the port */
	for (i = 0; i < 3; i++)
		sock[i] = rdm_raw(test, a);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[0], &cm, 7, 9), KSK_CM_ACCEPT);
	KUNIT_EXPECT_EQ(test, cm.cm.version, 0x81);
	KUNIT_EXPECT_EQ(test, ntohs(cm.cm.port), 7);
	KUNIT_EXPECT_NE(test, ntohl(cm.cm.pid), 0);
	KUNIT_EXPECT_NE(test, ntohl(cm.cm.pid), 9);

	/* again: there is a connection */
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[1], &cm, 7, 9), KSK_CM_REJECT);
	KUNIT_EXPECT_EQ(test, ntohl(cm.cm.pid), 9);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "rejected"), 1);

	/* after a restart: the old one goes */
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[2], &cm, 7, 10),
			KSK_CM_ACCEPT);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock[0], &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "restarts"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "accepted"), 2);
	for (i = 0; i < 3; i++)
		sock_release(sock[i]);
	rdm_alone(test, a);
}

/* Peers that are not in the vector are limited, others are not. */
static void rdm_unknown_test(struct kunit *test)
{
	struct sockaddr_in known = {
		.sin_family = AF_INET,
		.sin_port = htons(7),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock[4];
	struct rdm_cm cm;
	int i;

	rdm_open(test, a, FI_MSG, 0);
	rdm_insert(test, a, &known);
	for (i = 0; i < 4; i++)
		sock[i] = rdm_raw(test, a);
	test_param_set(test, &ksk_max_unknown, 2);
	test_param_set(test, &ksk_max_unknown_host, 100);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[i], &cm, 8 + i, 9),
				i < 2 ? KSK_CM_ACCEPT : KSK_CM_REJECT);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[3], &cm, 7, 9), KSK_CM_ACCEPT);
	/* one of them is inserted: there is room for another */
	sock_release(sock[2]);
	sock[2] = rdm_raw(test, a);
	known.sin_port = htons(8);
	rdm_insert(test, a, &known);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[2], &cm, 10, 9), KSK_CM_ACCEPT);
	for (i = 0; i < 4; i++)
		sock_release(sock[i]);
	rdm_alone(test, a);

	sock[0] = rdm_raw(test, a);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[0], &cm, 11, 9),
			KSK_CM_ACCEPT);
	sock_release(sock[0]);
}

#define IDLE_LEN	16	/* bytes of a message */

/* Endpoints that are opened from now on close their connections early. */
static void rdm_idle_limits(struct kunit *test, unsigned int timeout, unsigned int max)
{
	test_param_set(test, &ksk_rdm_idle_timeout, timeout);
	test_param_set(test, &ksk_rdm_max_conns, max);
}

/* A connection that is not used is closed, and the next post makes another. */
static void rdm_idle_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	fi_addr_t peer[2];
	int round;

	rdm_idle_limits(test, 20, 0);
	rdm_pair(test, FI_MSG, peer);
	for (round = 0; round < 4; round++) {
		rdm_recvs(test, b, 0, 4, 1000);
		rdm_sends(test, a, peer[0], 0, 4, 1000);
		rdm_received(test, b, 0, 4, 1000);
		rdm_sent(test, a, 4, 0);
		if (round & 1)
			rdm_alone(test, b);
		else
			rdm_alone(test, a);
	}
	KUNIT_EXPECT_GE(test, rdm_stat(a, "idle_closed") +
			rdm_stat(b, "idle_closed"), 4);
	KUNIT_EXPECT_GE(test, rdm_stat(a, "connects"), 4);
}

/* Both go quiet for about as long as it takes, again and again: nothing is lost. */
static void rdm_idle_race_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *n = t->node;
	unsigned long closed;
	fi_addr_t peer[2];
	int round, i;

	rdm_idle_limits(test, 1, 0);
	rdm_pair(test, FI_MSG, peer);
	for (round = 0; round < 64; round++) {
		for (i = 0; i < 2; i++)
			rdm_recvs(test, &n[i], 8 * i, 8 * i + 4, 100);
		for (i = 0; i < 4; i++) {
			rdm_sends(test, &n[0], peer[0], 8 + i, 9 + i, 100);
			rdm_sends(test, &n[1], peer[1], i, i + 1, 100);
		}
		for (i = 0; i < 2; i++) {
			rdm_received(test, &n[i], 8 * i, 8 * i + 4, 100);
			rdm_sent(test, &n[i], 4, 0);
		}
		/* not to wait for anything: to hit each moment of the close */
		usleep_range(400 * round, 400 * round + 50);
	}
	rdm_alone(test, &n[0]);
	closed = rdm_stat(&n[0], "idle_closed") + rdm_stat(&n[1], "idle_closed");
	kunit_info(test, "%lu closed in %d rounds\n", closed, round);
	KUNIT_EXPECT_GT(test, closed, 0);
}

/* A frame to an endpoint, and nothing else of a message */
static void rdm_raw_frame(struct kunit *test, struct socket *sock, u8 op,
			  const void *data, size_t len)
{
	u8 buf[sizeof(struct ksk_hdr) + sizeof(struct ksk_rma) + IDLE_LEN] = {};
	struct ksk_hdr *hdr = (struct ksk_hdr *)buf;
	size_t size = sizeof(*hdr);

	hdr->version = KSK_PROTO_VERSION;
	hdr->op = op;
	if (op == KSK_OP_READ_REQ) {
		hdr->rma_count = 1;
		size += sizeof(struct ksk_rma);
	}
	hdr->hdr_size = size;
	memcpy(buf + size, data, len);
	size += len;
	put_unaligned_le64(size, &hdr->size);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, buf, size), (int)size);
}

/* The peer sends while its connection is being closed, and does not close yet. */
static void rdm_idle_cross_test(struct kunit *test)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdm_test *t = test->priv;
	struct socket *sock[2], *deaf;
	struct rdm_node *a = &t->node[0];
	struct fi_cq_err_entry e;
	struct rdm_cm cm;
	fi_addr_t peer;
	u8 byte;
	int i;

	rdm_idle_limits(test, 20, 0);
	rdm_open(test, a, FI_MSG | FI_RMA, 0);
	/* a port that refuses connections */
	deaf = rdm_deaf(test, &addr);
	sock_release(deaf);
	peer = rdm_insert(test, a, &addr);
	rdm_recvs(test, a, 0, 4, IDLE_LEN);
	for (i = 0; i < 2; i++)
		sock[i] = rdm_raw(test, a);
	KUNIT_ASSERT_EQ(test, rdm_ask(test, sock[0], &cm, ntohs(addr.sin_port),
				      9), KSK_CM_ACCEPT);
	rdm_raw_frame(test, sock[0], KSK_OP_MSG, t->out, IDLE_LEN);
	rdm_received(test, a, 0, 1, IDLE_LEN);

	/* it has closed its direction */
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock[0], &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "idle_closed"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), 1);
	/* another must not overtake what may come on this one */
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[1], &cm, ntohs(addr.sin_port),
				      9), KSK_CM_REJECT);
	sock_release(sock[1]);
	rdm_sends(test, a, peer, 4, 6, IDLE_LEN);
	rdm_raw_frame(test, sock[0], KSK_OP_MSG, t->out + IDLE_LEN, IDLE_LEN);
	rdm_received(test, a, 1, 2, IDLE_LEN);
	/* it can be answered no more */
	rdm_raw_frame(test, sock[0], KSK_OP_READ_REQ, NULL, 0);
	rdm_raw_frame(test, sock[0], KSK_OP_MSG, t->out + 2 * IDLE_LEN,
		      IDLE_LEN);
	rdm_raw_frame(test, sock[0], KSK_OP_MSG, t->out + 3 * IDLE_LEN,
		      IDLE_LEN);
	sock_release(sock[0]);
	rdm_received(test, a, 2, 4, IDLE_LEN);
	/* what was posted meanwhile is for another connection, here: none */
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, live_comp(a->tx, &e), -ECONNREFUSED);
	rdm_alone(test, a);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), 0);
}

/* Answer a request, if there is one, and close in the same segment. */
static bool rdm_answer(struct kunit *test, struct socket *listener, u8 type)
{
	struct msghdr msg = { .msg_flags = MSG_MORE };
	struct rdm_cm cm;
	struct kvec kv = { &cm, sizeof(cm) };
	struct socket *sock;

	if (kernel_accept(listener, &sock, O_NONBLOCK))
		return false;
	sock->sk->sk_rcvtimeo = LIVE_JIFFIES;
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, &cm, sizeof(cm)),
			(int)sizeof(cm));
	cm.hdr.type = type;
	cm.cm.pid = htonl(9);
	KUNIT_EXPECT_EQ(test, kernel_sendmsg(sock, &msg, &kv, 1, sizeof(cm)),
			(int)sizeof(cm));
	kernel_sock_shutdown(sock, SHUT_WR);
	/* until the other end has closed, too: it has seen ours */
	while (live_raw_recv(sock, &cm, 1) == 1)
		;
	sock_release(sock);
	return true;
}

/*
 * A peer that closes each connection before anything was sent, or rejects requests, is
 * tried for as long as a connect may take.
 */
static void rdm_again_test(struct kunit *test)
{
	static const u8 answers[] = { KSK_CM_ACCEPT, KSK_CM_REJECT,
				      KSK_CM_ACCEPT, KSK_CM_ACCEPT };
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct fi_cq_err_entry e;
	struct sockaddr_in addr;
	struct socket *sock;
	fi_addr_t peer;
	int i = 0, err;

	a->connect = TEST_LIMIT(2000);
	rdm_open(test, a, FI_MSG, 0);
	sock = rdm_deaf(test, &addr);
	peer = rdm_insert(test, a, &addr);
	rdm_sends(test, a, peer, 0, 1, 100);
	while (fi_cq_read(a->tx, &e, 1) == -EAGAIN && time_before(jiffies, end)) {
		if (rdm_answer(test, sock, answers[i % ARRAY_SIZE(answers)]))
			i++;
		schedule_timeout_uninterruptible(1);
	}
	KUNIT_EXPECT_GT(test, i, (int)ARRAY_SIZE(answers));
	err = live_comp(a->tx, &e);
	KUNIT_EXPECT_TRUE(test, err == -ECONNRESET || err == -ETIMEDOUT);
	rdm_alone(test, a);

	end = jiffies + LIVE_JIFFIES;
	rdm_sends(test, a, peer, 0, 1, 100);
	while (fi_cq_read(a->tx, &e, 1) == -EAGAIN && time_before(jiffies, end)) {
		rdm_answer(test, sock, KSK_CM_REJECT);
		schedule_timeout_uninterruptible(1);
	}
	KUNIT_EXPECT_EQ(test, live_comp(a->tx, &e), -ETIMEDOUT);
	sock_release(sock);
}

/* Above the number, the one that was not used for longest is closed. */
static void rdm_idle_max_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock[3];
	unsigned long now;
	struct rdm_cm cm;
	u8 byte;
	int i;

	rdm_idle_limits(test, 0, 2);
	rdm_open(test, a, FI_MSG, 0);
	for (i = 0; i < 3; i++)
		sock[i] = rdm_raw(test, a);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[i], &cm, 8 + i, 9),
				KSK_CM_ACCEPT);
	/* later than that, on the clock that use is measured by */
	now = jiffies;
	while (time_before(jiffies, now + 2))
		schedule_timeout_uninterruptible(1);
	rdm_recvs(test, a, 0, 1, IDLE_LEN);
	rdm_raw_frame(test, sock[0], KSK_OP_MSG, t->out, IDLE_LEN);
	rdm_received(test, a, 0, 1, IDLE_LEN);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock[2], &cm, 10, 9),
			KSK_CM_ACCEPT);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock[1], &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "idle_closed"), 1);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, sock[i]->sk->sk_state,
				i == 1 ? TCP_CLOSE_WAIT : TCP_ESTABLISHED);
	for (i = 0; i < 3; i++)
		sock_release(sock[i]);
	rdm_alone(test, a);
}

#define KEEP_SIZE	64	/* bytes of a message */
#define KEEP_POSTED	4	/* receives */
#define KEEP_BATCH	(RDM_SIZE / 2)	/* messages in a packet */
#define KEEP_COUNT	1024	/* messages */

struct rdm_keep {
	struct kofi_cqe		cqe;
	struct fid_ep		*ep;
	struct completion	all;
	u8			*in;
	int			posted;
	int			received;
	int			failed;
};

static void rdm_keep_post(struct rdm_keep *k)
{
	k->failed += !!fi_trecv(k->ep, k->in, KEEP_SIZE, NULL, FI_ADDR_UNSPEC,
				1, 0, &k->cqe);
	k->posted++;
}

static void rdm_keep_posts(struct rdm_keep *k)
{
	int i;

	for (i = 0; i < KEEP_POSTED; i++)
		rdm_keep_post(k);
}

static void rdm_keep_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rdm_keep *k = container_of(wc->cqe, struct rdm_keep, cqe);

	if (wc->err == ECANCELED)
		return;
	k->failed += wc->err || wc->len != KEEP_SIZE;
	if (k->posted < KEEP_COUNT)
		rdm_keep_post(k);
	if (++k->received == KEEP_COUNT)
		complete(&k->all);
}

/* So many messages are stored before the consumer posts anything */
static const int keep_late[] = { 0, 64 };	/* as many as one peer may have */

static void keep_describe(const int *late, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%d stored", *late);
}

KUNIT_ARRAY_PARAM(keep, keep_late, keep_describe);

/*
 * A consumer that posts in its callbacks keeps up with packets that hold more
 * messages than it has receives: (almost) none is stored. It catches up with
 * those that were stored when it began.
 */
static void rdm_keep_up_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct rdm_keep *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	const int late = *(const int *)test->param_value;
	fi_addr_t peer[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, k);
	b->calls = true;
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	k->cqe.done = rdm_keep_done;
	k->ep = b->ep;
	k->in = t->in;
	init_completion(&k->all);
	if (!late)
		rdm_keep_posts(k);
	for (i = 0; i < KEEP_COUNT; i++) {
		const struct kvec kv = { t->out, KEEP_SIZE };
		const struct fi_msg_tagged msg = {
			.msg_iov = &kv, .iov_count = 1, .addr = peer[0], .tag = 1,
		};
		bool last = i % KEEP_BATCH == KEEP_BATCH - 1;

		KUNIT_ASSERT_EQ(test, fi_tsendmsg(a->ep, &msg, last ? 0 : FI_MORE),
				0);
		if (last)
			rdm_sent(test, a, KEEP_BATCH, 0);
	}
	if (late) {
		KUNIT_EXPECT_TRUE(test, rdm_stores(b, late));
		rdm_keep_posts(k);
	}
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&k->all, LIVE_JIFFIES),
			0);
	KUNIT_EXPECT_EQ(test, k->failed, 0);
	KUNIT_EXPECT_LE(test, rdm_stored(b), late + KEEP_COUNT / 4);
	/* its callbacks use what goes with this function */
	rdm_close(test, b);
}

static struct kunit_case rdm_cases[] = {
	KUNIT_CASE(rdm_first_test),
	KUNIT_CASE(rdm_tagged_test),
	KUNIT_CASE(rdm_unexpected_test),
	KUNIT_CASE(rdm_unexpected_limit_test),
	KUNIT_CASE(rdm_unexpected_bytes_test),
	KUNIT_CASE_PARAM(rdm_keep_up_test, keep_gen_params),
	KUNIT_CASE(rdm_claim_test),
	KUNIT_CASE(rdm_woken_test),
	KUNIT_CASE(rdm_expired_test),
	KUNIT_CASE(rdm_rma_test),
	KUNIT_CASE(rdm_both_test),
	KUNIT_CASE(rdm_any_test),
	KUNIT_CASE(rdm_self_test),
	KUNIT_CASE(rdm_refused_test),
	KUNIT_CASE(rdm_unreachable_test),
	KUNIT_CASE(rdm_restart_test),
	KUNIT_CASE(rdm_deaf_test),
	KUNIT_CASE(rdm_record_test),
	KUNIT_CASE(rdm_user_id_test),
	KUNIT_CASE(rdm_foreign_test),
	KUNIT_CASE(rdm_unknown_test),
	KUNIT_CASE(rdm_idle_test),
	KUNIT_CASE(rdm_idle_race_test),
	KUNIT_CASE(rdm_idle_cross_test),
	KUNIT_CASE(rdm_idle_max_test),
	KUNIT_CASE(rdm_again_test),
	{}
};

static struct kunit_suite sock_rdm_suite = {
	.name		= "sock_rdm",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= rdm_cases,
};

kunit_test_suite(sock_rdm_suite);
