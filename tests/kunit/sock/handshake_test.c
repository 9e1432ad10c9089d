// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The handshake of endpoints of type FI_EP_RDM: each field of requests, acceptances
 * and rejections at the values where something changes, and many requests at once.
 *
 * What has to come of each message is said here from the description of the wire:
 * accepted, and the connection can be used in the byte order of the sender; rejected;
 * or closed, as no peer may send it, and counted as a violation.
 */
#include <linux/slab.h>
#include <net/tcp.h>

#include "../full.h"
#include "../param.h"
#include "rdm.h"
#include "walk.h"

#define HS_LEN		40	/* of a message with private data */
#define HS_MAX		(32 + 256)
#define HS_FIRST	2000	/* ports that peers say they listen on */
#define HS_BYTES	16	/* of a message over the connection */

static const struct hs_field {
	const char	*name;
	u8		at;
	u8		width;
	u64		limit;
} hs_fields[] = {
	{ "version", 0, 1 },
	{ "type", 1, 1, 6 },
	{ "data_len", 2, 2, 256 },
	{ "zero", 4, 4 },
	{ "zero", 8, 8 },
	{ "magic", 16, 4 },
	{ "extensions", 20, 4 },
	{ "probe", 24, 8 },
	{ "RDM version", 32, 1, 1 },
	{ "features", 33, 1 },
	{ "port", 34, 2 },
	{ "pid", 36, 4 },
};

enum { HS_REQUEST = 0, HS_ACCEPT = 1, HS_REJECT = 6 };

/* All is big-endian here but the probe of a little-endian host. */
static void hs_format(u8 *b, u8 type, u8 version, u16 port, u32 pid)
{
	memset(b, 0, HS_MAX);
	b[0] = 3;
	b[1] = type;
	put_unaligned_be16(8, b + 2);
	if (type != HS_REJECT)
		put_unaligned_le64(1, b + 24);
	b[32] = version;
	put_unaligned_be16(port, b + 34);
	put_unaligned_be32(pid, b + 36);
}

static u64 hs_get(const u8 *p, unsigned int width)
{
	u64 value = 0;

	while (width--)
		value = value << 8 | *p++;
	return value;
}

static void hs_put(u64 value, u8 *p, unsigned int width)
{
	for (; width--; value >>= 8)
		p[width] = value;
}

static bool hs_big_endian(const u8 *b)
{
	return get_unaligned_le64(b + 24) != 1;
}

/* No message at all: its sender has violated the protocol. */
static bool hs_none(const u8 *b)
{
	return b[0] != 3 || (b[1] != HS_REQUEST && b[1] != HS_ACCEPT && b[1] != HS_REJECT) ||
	       get_unaligned_be16(b + 2) > 256;
}

/* Both orders of a frame's header: its length, its size */
static void hs_frame_put(u8 *b, bool be)
{
	memset(b, 0, 16);
	b[0] = 3;
	b[6] = 16;
	if (be)
		put_unaligned_be64(16 + HS_BYTES, b + 8);
	else
		put_unaligned_le64(16 + HS_BYTES, b + 8);
}

/* ------------------------------------------------------------------- requests */

enum hs_answer { HS_ACCEPTED, HS_REJECTED, HS_REFUSED, HS_CLOSED };

static enum hs_answer hs_judge(const struct rdm_node *n, const u8 *b)
{
	u16 port = get_unaligned_be16(b + 34);

	if (hs_none(b) || b[1] != HS_REQUEST)
		return HS_CLOSED;
	if (get_unaligned_be16(b + 2) != 8 || !port || !get_unaligned_be32(b + 36))
		return HS_REFUSED;
	/* who says it is the endpoint itself is not */
	return port == ntohs(n->addr.sin_port) ? HS_REJECTED : HS_ACCEPTED;
}

/* The connection can be used. */
static void hs_use(struct kunit *test, struct rdm_node *n, struct socket *sock, bool be,
		   const char *what)
{
	struct rdm_test *t = test->priv;
	struct fi_cq_err_entry e;
	u8 frame[16 + HS_BYTES];

	hs_frame_put(frame, be);
	memcpy(frame + 16, t->out, HS_BYTES);
	memset(t->in, 0, HS_BYTES);
	KUNIT_ASSERT_EQ(test, fi_recv(n->ep, t->in, HS_BYTES, NULL, FI_ADDR_UNSPEC, t), 0);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, frame, sizeof(frame)), (int)sizeof(frame));
	KUNIT_ASSERT_EQ_MSG(test, live_comp(n->rx, &e), 0, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, e.len, HS_BYTES, "%s", what);
	KUNIT_EXPECT_MEMEQ_MSG(test, t->in, t->out, HS_BYTES, "%s", what);
}

static void hs_request(struct kunit *test, struct rdm_node *n, const u8 *req,
		       const char *what)
{
	static const char * const counts[] = { "accepted", "rejected", "refused", "violations" };
	const enum hs_answer want = hs_judge(n, req);
	size_t len = hs_none(req) ? HS_LEN : 32 + get_unaligned_be16(req + 2);
	struct socket *sock = rdm_raw(test, n);
	u8 answer[HS_LEN], expected[HS_MAX];
	u64 before[ARRAY_SIZE(counts)];
	int i, got;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		before[i] = rdm_stat(n, counts[i]);
	/* also the shortest is all that is sent, which one that is being closed may not take */
	live_raw_send(sock, req, len);
	memset(answer, 0, sizeof(answer));
	got = live_raw_recv(sock, answer, want == HS_REFUSED && len != HS_LEN ? 32 : HS_LEN);
	hs_format(expected, HS_REJECT, req[32], get_unaligned_be16(req + 34),
		  get_unaligned_be32(req + 36));
	expected[33] = req[33];
	switch (want) {
	case HS_ACCEPTED:
		KUNIT_ASSERT_EQ_MSG(test, got, HS_LEN, "%s", what);
		expected[1] = HS_ACCEPT;
		put_unaligned_le64(1, expected + 24);
		if (req[32] & 0x7f)
			expected[32] = 0x81;
		expected[33] = 0;
		KUNIT_EXPECT_NE(test, get_unaligned_be32(answer + 36), 0);
		put_unaligned_be32(get_unaligned_be32(answer + 36), expected + 36);
		break;
	case HS_REJECTED:
		KUNIT_EXPECT_EQ_MSG(test, got, HS_LEN, "%s", what);
		break;
	case HS_REFUSED:
		if (len == HS_LEN)
			break;
		put_unaligned_be16(0, expected + 2);
		memset(expected + 32, 0, 8);
		break;
	case HS_CLOSED:
		KUNIT_EXPECT_LE_MSG(test, got, 0, "%s", what);
		KUNIT_EXPECT_NE_MSG(test, got, -EAGAIN, "%s: it goes on", what);
		memset(expected, 0, HS_LEN);
		break;
	}
	KUNIT_EXPECT_MEMEQ_MSG(test, answer, expected, HS_LEN, "%s", what);
	if (want == HS_ACCEPTED)
		hs_use(test, n, sock, hs_big_endian(req), what);
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		KUNIT_EXPECT_EQ_MSG(test, rdm_stat(n, counts[i]), before[i] + (i == want),
				    "%s: %s", what, counts[i]);
	sock_release(sock);
}

/* A message of the other peer */
static void hs_honest(struct kunit *test, fi_addr_t peer)
{
	struct rdm_test *t = test->priv;

	rdm_tsend(test, &t->node[1], peer, 3, 100, 0);
	rdm_trecv(test, &t->node[0], 3, 100);
	rdm_sent(test, &t->node[1], 1, 0);
}

/* What has connected has gone again, but for the other peer. */
static void hs_all_gone(struct kunit *test, const struct rdm_node *n)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while ((rdm_stat(n, "connections") > 1 || rdm_stat(n, "pending")) &&
	       time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stat(n, "connections"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(n, "pending"), 0);
}

static void hs_requests(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	u64 value[WALK_VALUES];
	u16 port = HS_FIRST;
	fi_addr_t peer[2];
	unsigned int i, k;
	u8 req[HS_MAX];
	char what[48];

	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	hs_honest(test, peer[1]);
	for (i = 0; i < ARRAY_SIZE(hs_fields); i++) {
		const struct hs_field *f = &hs_fields[i];
		unsigned int n;

		hs_format(req, HS_REQUEST, 1, port, 9);
		n = walk_values(f->width, hs_get(req + f->at, f->width), f->limit, value);
		for (k = 0; k < n; k++) {
			hs_format(req, HS_REQUEST, 1, port++, 9);
			hs_put(value[k], req + f->at, f->width);
			/* that would end the connection of the other peer */
			if (get_unaligned_be16(req + 34) == ntohs(b->addr.sin_port))
				continue;
			snprintf(what, sizeof(what), "%s at %u: %#llx", f->name, f->at,
				 value[k]);
			hs_request(test, a, req, what);
		}
		hs_honest(test, peer[1]);
	}
	hs_format(req, HS_REQUEST, 1, ntohs(a->addr.sin_port), 9);
	hs_request(test, a, req, "the endpoint's own port");
	hs_all_gone(test, a);
	hs_honest(test, peer[1]);
}

/* -------------------------------------------------------------------- answers */

/* What has become of the endpoint's request: an error, 0 to be used, or once more */
#define HS_AGAIN	1

static int hs_outcome(const u8 *b)
{
	u16 len = get_unaligned_be16(b + 2);

	if (hs_none(b) || b[1] == HS_REQUEST)
		return -EIO;
	if (b[1] == HS_REJECT)
		return len == 8 ? HS_AGAIN : -ECONNREFUSED;
	if (len != 8 || !get_unaligned_be32(b + 36) || (b[32] & 0x7f) > 1)
		return -EPROTO;
	return 0;
}

/* The next request of the endpoint */
static struct socket *hs_asked(struct kunit *test, struct socket *listener,
			       const struct rdm_node *n)
{
	u8 req[HS_LEN], expected[HS_MAX];
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &sock, 0), 0);
	sock->sk->sk_rcvtimeo = TEST_LIMIT(10 * HZ);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, req, HS_LEN), HS_LEN);
	hs_format(expected, HS_REQUEST, 1, ntohs(n->addr.sin_port),
		  get_unaligned_be32(req + 36));
	KUNIT_EXPECT_MEMEQ(test, req, expected, HS_LEN);
	KUNIT_EXPECT_NE(test, get_unaligned_be32(req + 36), 0);
	return sock;
}

static void hs_answer(struct kunit *test, struct rdm_node *n, struct socket *listener,
		      fi_addr_t peer, const u8 *answer, const char *what)
{
	u8 frame[16 + HS_BYTES], header[16], right[HS_MAX];
	size_t len = hs_none(answer) ? HS_LEN : 32 + get_unaligned_be16(answer + 2);
	u64 violations = rdm_stat(n, "violations");
	int outcome = hs_outcome(answer), got;
	struct rdm_test *t = test->priv;
	struct fi_cq_err_entry e;
	struct socket *sock;

	rdm_sends(test, n, peer, 0, 1, HS_BYTES);
	sock = hs_asked(test, listener, n);
	live_raw_send(sock, answer, len);
	if (outcome == HS_AGAIN) {
		KUNIT_EXPECT_LE(test, live_raw_recv(sock, frame, 1), 0);
		sock_release(sock);
		sock = hs_asked(test, listener, n);
		hs_format(right, HS_ACCEPT, 0x81, HS_FIRST, 9);
		answer = right;
		live_raw_send(sock, answer, HS_LEN);
		outcome = 0;
	}
	got = live_raw_recv(sock, frame, sizeof(frame));
	if (outcome) {
		KUNIT_EXPECT_LE_MSG(test, got, 0, "%s", what);
		KUNIT_EXPECT_NE_MSG(test, got, -EAGAIN, "%s: it goes on", what);
	} else {
		KUNIT_EXPECT_EQ_MSG(test, got, (int)sizeof(frame), "%s", what);
		hs_frame_put(header, hs_big_endian(answer));
		KUNIT_EXPECT_MEMEQ_MSG(test, frame, header, 16, "%s", what);
		KUNIT_EXPECT_MEMEQ_MSG(test, frame + 16, t->out, HS_BYTES, "%s", what);
	}
	KUNIT_EXPECT_EQ_MSG(test, live_comp(n->tx, &e), outcome, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, rdm_stat(n, "violations"),
			    violations + (outcome == -EIO || outcome == -EPROTO), "%s", what);
	sock_release(sock);
	rdm_alone(test, n);
}

static void hs_answers(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	u64 value[WALK_VALUES];
	struct sockaddr_in addr;
	struct socket *listener;
	u8 answer[HS_MAX];
	unsigned int i, k;
	fi_addr_t peer;
	char what[48];
	u8 type;

	rdm_open(test, a, FI_MSG, 0);
	listener = rdm_deaf(test, &addr);
	listener->sk->sk_rcvtimeo = TEST_LIMIT(10 * HZ);
	peer = rdm_insert(test, a, &addr);
	for (i = 0; i < 2 * ARRAY_SIZE(hs_fields); i++) {
		const struct hs_field *f = &hs_fields[i / 2];
		unsigned int n;

		type = i & 1 ? HS_REJECT : HS_ACCEPT;
		hs_format(answer, type, 0x81, HS_FIRST, 9);
		n = walk_values(f->width, hs_get(answer + f->at, f->width), f->limit, value);
		for (k = 0; k < n; k++) {
			hs_format(answer, type, 0x81, HS_FIRST, 9);
			hs_put(value[k], answer + f->at, f->width);
			snprintf(what, sizeof(what), "%s, %s at %u: %#llx",
				 type == HS_ACCEPT ? "accept" : "reject", f->name, f->at,
				 value[k]);
			hs_answer(test, a, listener, peer, answer, what);
		}
	}
	sock_release(listener);
}

/* ---------------------------------------------------------------------- floods */

#define HS_FLOOD	2000	/* connections of one host, every other one silent */
#define HS_UNKNOWN	256	/* of them, accepted at most */

/*
 * There is room for two more that the endpoint has not accepted: the ACK that completes
 * the last handshake may still wait for another CPU. No earlier one does, as that CPU
 * takes a connection's first packet after it.
 */
static bool hs_flood_full(const struct sock *sk)
{
	return READ_ONCE(sk->sk_ack_backlog) >= READ_ONCE(sk->sk_max_ack_backlog);
}

static void hs_flood_room(struct kunit *test, const struct sock *sk)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (hs_flood_full(sk) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_FALSE(test, hs_flood_full(sk));
}

/* What the answers to those say that have sent a request */
static void hs_flood_answers(struct kunit *test, struct socket **sock, unsigned int *count)
{
	u8 answer[HS_LEN];
	int i, got;

	for (i = 1; i < HS_FLOOD; i += 2) {
		got = live_raw_recv(sock[i], answer, HS_LEN);
		KUNIT_ASSERT_NE(test, got, -EAGAIN);
		if (got != HS_LEN)
			count[2]++;	/* it was too slow, and gave way */
		else
			count[answer[1] == HS_REJECT]++;
	}
}

/*
 * 2,000 connections from one host: what the endpoint keeps of them is limited, and a
 * peer that connects in the middle is served.
 */
static void hs_flood(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket **sock = kunit_kcalloc(test, HS_FLOOD, sizeof(*sock), GFP_KERNEL);
	unsigned int count[3] = {};
	u8 req[HS_MAX];
	fi_addr_t peer[2];
	struct sock *sk;
	u64 gone;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, sock);
	a->handshake = TEST_LIMIT(2000);
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	sk = ksk_rdm(ksk_ep(a->ep))->listener.sock->sk;
	test_param_set(test, &ksk_max_unknown, HS_UNKNOWN);
	test_param_set(test, &ksk_max_unknown_host, 100);
	for (i = 0; i < HS_FLOOD; i++) {
		hs_flood_room(test, sk);
		sock[i] = rdm_raw(test, a);
		hs_format(req, HS_REQUEST, 1, HS_FIRST + i, 9);
		if (i & 1)
			KUNIT_EXPECT_EQ(test, live_raw_send(sock[i], req, HS_LEN), HS_LEN);
		if (i % 100)
			continue;
		if (i >= HS_FLOOD / 2)
			hs_honest(test, peer[1]);
		KUNIT_EXPECT_LE(test, rdm_stat(a, "connections"), HS_UNKNOWN + 1);
		KUNIT_EXPECT_LE(test, rdm_stat(a, "pending"), ksk_max_pending);
	}
	hs_flood_answers(test, sock, count);
	hs_honest(test, peer[1]);
	KUNIT_EXPECT_EQ(test, count[0], HS_UNKNOWN);
	KUNIT_EXPECT_EQ(test, count[0] + count[1] + count[2], HS_FLOOD / 2);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), HS_UNKNOWN + 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "rejected"), count[1]);
	/* in this order: what goes meanwhile counts twice */
	gone = rdm_stat(a, "pending");
	gone += rdm_stat(a, "timeouts") + rdm_stat(a, "evicted");
	KUNIT_EXPECT_GE(test, gone, HS_FLOOD / 2 + count[2]);
	KUNIT_EXPECT_GT(test, rdm_stat(a, "evicted"), 0);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "violations"), 0);
	for (i = 0; i < HS_FLOOD; i++)
		sock_release(sock[i]);
	hs_all_gone(test, a);
	hs_honest(test, peer[1]);
	kunit_info(test, "%u accepted, %u rejected, %u gave way, %llu in all", count[0],
		   count[1], count[2], gone);
}

#define HS_HOSTS	16	/* unknown peers, of which one host has a quarter */

/* One host takes its part of the places, and another host gets its own. */
static void hs_hosts(struct kunit *test)
{
	struct socket *sock[HS_HOSTS];
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	u32 host = INADDR_LOOPBACK;
	unsigned int count = 0;
	struct rdm_cm cm;
	int i, err;

	rdm_open(test, a, FI_MSG, 0);
	test_param_set(test, &ksk_max_unknown, HS_HOSTS);
	for (i = 0; i < HS_HOSTS; i++) {
		if (i == HS_HOSTS / 2)
			host++;
		sock[i] = rdm_raw_from(test, a, host);
		err = rdm_ask(test, sock[i], &cm, HS_FIRST + i, 9);
		KUNIT_EXPECT_EQ_MSG(test, err, i % (HS_HOSTS / 2) < HS_HOSTS / 4 ?
				    KSK_CM_ACCEPT : KSK_CM_REJECT, "%d", i);
		count += err == KSK_CM_ACCEPT;
	}
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), count);
	KUNIT_EXPECT_EQ(test, ksk_rdm(ksk_ep(a->ep))->peers.unknown, count);
	for (i = 0; i < HS_HOSTS; i++)
		sock_release(sock[i]);
	rdm_alone(test, a);
	KUNIT_EXPECT_EQ(test, ksk_rdm(ksk_ep(a->ep))->peers.unknown, 0);
}

/*
 * One host has all of its places, and one of its peers restarts with another number: the
 * connection of its former life gives way, although its host does not close it.
 */
static void hs_restarted(struct kunit *test)
{
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock[3];
	struct rdm_cm cm;
	int i, err;

	rdm_open(test, a, FI_MSG, 0);
	test_param_set(test, &ksk_max_unknown, 8);
	for (i = 0; i < 3; i++) {
		sock[i] = rdm_raw(test, a);
		KUNIT_EXPECT_EQ_MSG(test, rdm_ask(test, sock[i], &cm, HS_FIRST + i, 9),
				    i < 2 ? KSK_CM_ACCEPT : KSK_CM_REJECT, "%d", i);
	}
	do {
		sock_release(sock[2]);
		sock[2] = rdm_raw(test, a);
		err = rdm_ask(test, sock[2], &cm, HS_FIRST, 10);
	} while (err == KSK_CM_REJECT && time_before(jiffies, end));
	KUNIT_EXPECT_EQ(test, err, KSK_CM_ACCEPT);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "restarts"), 1);
	KUNIT_EXPECT_EQ(test, ksk_rdm(ksk_ep(a->ep))->peers.unknown, 2);
	for (i = 0; i < 3; i++)
		sock_release(sock[i]);
	rdm_alone(test, a);
}

/*
 * The peer's firewall drops our attempt. The peer connects itself, and its request is
 * accepted at once, although its address is lower. Messages that wait use the connection.
 */
static void hs_one_way(struct kunit *test)
{
	struct socket *listener, *filler, *sock;
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct sockaddr_in addr;
	struct rdm_cm cm;
	fi_addr_t peer;
	u8 byte;

	listener = full_listen(test, &addr, &filler);
	rdm_open(test, a, FI_MSG, 0);
	KUNIT_ASSERT_GT(test, ntohs(a->addr.sin_port), FULL_PORT);
	peer = rdm_insert(test, a, &addr);
	rdm_sends(test, a, peer, 0, 2, 100);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "tx_early"), 2);

	sock = rdm_raw(test, a);
	KUNIT_EXPECT_EQ(test, rdm_ask(test, sock, &cm, FULL_PORT, 9), KSK_CM_ACCEPT);
	rdm_sent(test, a, 2, 0);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, &byte, 1), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "rejected"), 0);
	sock_release(sock);
	sock_release(filler);
	sock_release(listener);
	rdm_alone(test, a);
}

static struct kunit_case hs_cases[] = {
	KUNIT_CASE(hs_requests),
	KUNIT_CASE_SLOW(hs_answers),
	KUNIT_CASE_SLOW(hs_flood),
	KUNIT_CASE(hs_hosts),
	KUNIT_CASE(hs_restarted),
	KUNIT_CASE(hs_one_way),
	{}
};

static struct kunit_suite sock_handshake_suite = {
	.name		= "sock_handshake",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= hs_cases,
};

kunit_test_suite(sock_handshake_suite);
