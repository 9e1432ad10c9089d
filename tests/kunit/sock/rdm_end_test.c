// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of connections of FI_EP_RDM endpoints that are still used: while they are being
 * accepted, while a frame of ours is not completely sent, or read, and while the same
 * peer, which has restarted, asks for another one.
 */
#include <linux/bvec.h>
#include <linux/gfp.h>
#include <linux/sched.h>
#include <kunit/static_stub.h>
#include <net/tcp.h>

#include "../param.h"
#include "rdm.h"

#define END_PORT	7
#define MUTEX_WAITERS	1	/* kernel/locking/mutex.h */

/* Wait for somebody to wait for a mutex. */
static bool end_contended(struct mutex *lock)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (!(atomic_long_read(&lock->owner) & MUTEX_WAITERS)) {
		if (time_after(jiffies, end))
			return false;
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/* The connection fails when it has its socket, and all but its acceptor let go of it. */
static void end_attach(struct ksk_conn *c, struct socket *sock, int phase)
{
	struct kunit *test = kunit_get_current_test();
	struct sock *sk = sock->sk;

	kunit_deactivate_static_stub(test, ksk_conn_attach);
	sock_hold(sk);
	ksk_conn_attach(c, sock, phase);
	ksk_conn_abort(c, ECANCELED);
	KUNIT_EXPECT_TRUE(test, end_contended(&c->mutex));
	KUNIT_EXPECT_PTR_EQ(test, sk->sk_user_data, (void *)c);
	sock_put(sk);
}

/*
 * A connection that fails while it is being accepted keeps its socket until the work
 * item that accepts it has done with that. The test runs the work item itself.
 */
static void end_accepted(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct ksk_rdm *rdm;
	struct socket *sock;
	struct rdm_cm cm;
	u8 byte;

	rdm_open(test, a, FI_MSG, 0);
	rdm = ksk_rdm(ksk_ep(a->ep));
	disable_work_sync(&rdm->accept);
	sock = rdm_raw(test, a);
	rdm_request(test, sock, KSK_RDM_VERSION, END_PORT, 9);
	while (!READ_ONCE(rdm->listener.delivered) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(rdm->listener.delivered), 1);

	kunit_activate_static_stub(test, ksk_conn_attach, end_attach);
	rdm->accept.func(&rdm->accept);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, &cm, sizeof(cm)), (int)sizeof(cm));
	KUNIT_EXPECT_EQ(test, cm.hdr.type, KSK_CM_ACCEPT);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock, &byte, 1), 0);
	rdm_alone(test, a);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "accepted"), 1);
	sock_release(sock);
	enable_work(&rdm->accept);
}

/* ------------------------------------------------ the peer closes its direction */

#define END_TIMEOUT	200	/* milliseconds the end may take */
#define END_RUNS	10	/* of the work item, from the peer's close to the end */
#define END_SNDBUF	SZ_8K	/* with the peer's window less than a message */

enum end_peer {
	END_PEER_WAITS,		/* does not read */
	END_PEER_READS,
	END_PEER_BREAKS,	/* closes within its own frame */
};

struct end_last {
	const char	*name;
	bool		pages;	/* all has been sent but the last page is out */
	enum end_peer	peer;
	int		err;	/* of our message */
};

static const struct end_last end_lasts[] = {
	{ "a frame", false, END_PEER_WAITS, ETIMEDOUT },
	{ "pages", true, END_PEER_WAITS, ETIMEDOUT },
	{ "a frame that is read", false, END_PEER_READS, 0 },
	{ "pages that are read", true, END_PEER_READS, 0 },
	{ "a frame for a broken peer", false, END_PEER_BREAKS, ECONNRESET },
};

static void end_last_desc(const struct end_last *l, char *desc)
{
	strscpy(desc, l->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(end_last, end_lasts, end_last_desc);

/* A peer that is only a socket, with a small window, and in the vector */
static struct socket *end_peer(struct kunit *test, struct rdm_node *n,
			       fi_addr_t *peer)
{
	const struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(END_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct socket *sock = rdm_raw(test, n);
	struct sock *sk = sock->sk;
	struct rdm_cm cm;

	*peer = rdm_insert(test, n, &addr);
	lock_sock(sk);
	sk->sk_userlocks |= SOCK_RCVBUF_LOCK;
	WRITE_ONCE(sk->sk_rcvbuf, SOCK_MIN_RCVBUF);
	release_sock(sk);
	KUNIT_ASSERT_EQ(test, rdm_ask(test, sock, &cm, END_PORT, 9), KSK_CM_ACCEPT);
	return sock;
}

static void end_pages_free(void *pages)
{
	__free_pages(pages, get_order(RDM_BIG));
}

static void end_post(struct kunit *test, struct rdm_node *n, fi_addr_t peer,
		     bool pages)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO,
					get_order(RDM_BIG));
	const struct kvec kv = { page_address(page), RDM_BIG };
	struct fi_msg msg = { .addr = peer, .iov_count = 1, .msg_iov = &kv };
	struct bio_vec bv;

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, end_pages_free, page), 0);
	bvec_set_page(&bv, page, RDM_BIG, 0);
	if (pages) {
		msg.vec = KOFI_BVEC;
		msg.msg_bvec = &bv;
	}
	KUNIT_ASSERT_EQ(test, fi_sendmsg(n->ep, &msg, FI_COMPLETION), 0);
}

/* The sender waits for room, or for its pages alone. */
static bool end_waits(struct ksk_conn *c, bool pages)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (pages ? !atomic_read(&c->zc.out) || READ_ONCE(c->frame.hdr_len) :
		       READ_ONCE(c->tx.state) != KSK_TX_SPACE) {
		if (time_after(jiffies, end))
			return false;
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/* All the peer gets; returns how it ends. */
static int end_read(struct kunit *test, struct socket *sock)
{
	struct rdm_test *t = test->priv;
	int n;

	do {
		n = live_raw_recv(sock, t->in, SZ_4K);
	} while (n > 0);
	return n;
}

/*
 * A peer that closes its direction gets the rest of the frame that has begun. One that
 * does not read it costs no time, and has as long as it may take for accepting.
 */
static void end_last(struct kunit *test)
{
	const struct end_last *l = test->param_value;
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock;
	struct ksk_rdm *rdm;
	struct ksk_conn *c;
	fi_addr_t peer;
	u64 runs;

	if (l->peer == END_PEER_WAITS)
		a->connect = END_TIMEOUT;
	rdm_open(test, a, FI_MSG, 0);
	rdm = ksk_rdm(ksk_ep(a->ep));
	rdm->ep.tun.sndbuf = l->pages ? 0 : END_SNDBUF;
	sock = end_peer(test, a, &peer);
	end_post(test, a, peer, l->pages);
	c = &list_first_entry(&rdm->conns, struct ksk_peer, node)->conn;
	KUNIT_EXPECT_TRUE(test, end_waits(c, l->pages));
	runs = rdm_stat(a, "tx_work") + rdm_stat(a, "tx_inline");

	if (l->peer == END_PEER_BREAKS)
		KUNIT_EXPECT_EQ(test, live_raw_send(sock, t->out, 1), 1);
	kernel_sock_shutdown(sock, SHUT_WR);
	if (l->peer == END_PEER_READS)
		KUNIT_EXPECT_EQ(test, end_read(test, sock), 0);
	rdm_sent(test, a, 1, l->err);
	rdm_alone(test, a);
	if (l->peer == END_PEER_WAITS)
		KUNIT_EXPECT_LE(test, rdm_stat(a, "tx_work") +
				rdm_stat(a, "tx_inline"), runs + END_RUNS);
	sock_release(sock);
}

/* ------------------------------------- the peer is there again, with its number */

#define AGAIN_NUMBER	1	/* the process of a container */
#define AGAIN_LEN	64
#define AGAIN_MS	1000	/* within which a restarted peer has its connection */

/* How a life of the peer ends */
enum again_end {
	AGAIN_CLOSES,		/* what it has sent has not been read */
	AGAIN_RESETS,		/* behind its close, when the next one has begun */
	AGAIN_VANISHES,		/* with its host */
};

struct again {
	const char	*name;
	enum again_end	end;
	bool		known;	/* is in the vector */
	bool		full;	/* the endpoint has no room for another unknown sender */
};

static const struct again agains[] = {
	{ "closed", AGAIN_CLOSES, true },
	{ "closed, stranger", AGAIN_CLOSES, false },
	{ "closed and reset", AGAIN_RESETS, true },
	{ "vanished", AGAIN_VANISHES, true },
	{ "vanished, stranger", AGAIN_VANISHES, false },
	{ "vanished, stranger, no room", AGAIN_VANISHES, false, true },
};

static void again_desc(const struct again *a, char *desc)
{
	strscpy(desc, a->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(again, agains, again_desc);

/* Connects until it is accepted, or a time is over; NULL then */
static struct socket *again_life(struct kunit *test, struct rdm_node *n, u16 port,
				 unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	struct socket *sock;
	struct rdm_cm cm;

	do {
		sock = rdm_raw(test, n);
		if (rdm_ask(test, sock, &cm, port, AGAIN_NUMBER) == KSK_CM_ACCEPT)
			return sock;
		sock_release(sock);
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	return NULL;
}

static struct socket *again_lives(struct kunit *test, struct rdm_node *n, u16 port)
{
	struct socket *sock = again_life(test, n, port, TEST_LIMIT(AGAIN_MS));

	KUNIT_ASSERT_NOT_NULL(test, sock);
	return sock;
}

/* Messages @from to @to - 1 */
static void again_sends(struct kunit *test, struct socket *sock, int from, int to)
{
	struct rdm_test *t = test->priv;
	struct {
		struct ksk_hdr	hdr;
		u8		payload[AGAIN_LEN];
	} frame = {
		.hdr = {
			.version = KSK_PROTO_VERSION,
			.op = KSK_OP_MSG,
			.hdr_size = sizeof(frame.hdr),
		},
	};
	int i;

	put_unaligned_le64(sizeof(frame), frame.hdr.size);
	for (i = from; i < to; i++) {
		memcpy(frame.payload, t->out + i * AGAIN_LEN, AGAIN_LEN);
		KUNIT_ASSERT_EQ(test, live_raw_send(sock, &frame, sizeof(frame)),
				(int)sizeof(frame));
	}
}

/* Returns the socket that is left. */
static struct socket *again_ends(struct socket *sock, enum again_end how)
{
	struct sock *sk = sock->sk;

	if (how == AGAIN_RESETS) {
		kernel_sock_shutdown(sock, SHUT_WR);
		return sock;
	}
	if (how == AGAIN_VANISHES) {
		/* TCP says nothing then */
		lock_sock(sk);
		tcp_sk(sk)->repair = 1;
		release_sock(sk);
	}
	sock_release(sock);
	return NULL;
}

static struct sockaddr_in again_addr(u16 port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

/* The message that waits in a stream has come. */
static void again_stalled(struct kunit *test, struct rdm_node *n, unsigned long stalls)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (rdm_stalls(n) < stalls && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stalls(n), stalls);
}

/* Open an endpoint that knows the peer */
static fi_addr_t again_open(struct kunit *test, struct rdm_node *n)
{
	const struct sockaddr_in addr = again_addr(END_PORT);

	rdm_open(test, n, FI_MSG, 0);
	return rdm_insert(test, n, &addr);
}

/* A life that has sent messages 0 to @to - 1, which have no receive */
static struct socket *again_unread(struct kunit *test, struct rdm_node *n, int to)
{
	struct socket *sock = again_lives(test, n, END_PORT);

	again_sends(test, sock, 0, to);
	again_stalled(test, n, 1);
	return sock;
}

/* Messages @from to @to - 1 are received in order. */
static void again_receives(struct kunit *test, struct rdm_node *n, int from, int to)
{
	rdm_recvs(test, n, from, to, AGAIN_LEN);
	rdm_received(test, n, from, to, AGAIN_LEN);
}

/*
 * A peer that has restarted is accepted, although a message of its former life has no
 * receive. If it had closed, all that it has sent is received, before what it sends now.
 */
static void end_again(struct kunit *test)
{
	const struct again *p = test->param_value;
	const struct sockaddr_in addr = again_addr(END_PORT);
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	bool lost = p->end == AGAIN_VANISHES;
	struct socket *sock, *old;
	u8 byte;

	if (p->full)
		test_param_set(test, &ksk_max_unknown, 1);
	rdm_open(test, a, FI_MSG, 0);
	if (p->known)
		rdm_insert(test, a, &addr);
	sock = again_unread(test, a, 2);
	old = again_ends(sock, p->end);

	sock = again_lives(test, a, END_PORT);
	if (old) {
		sock_no_linger(old->sk);
		sock_release(old);
	}
	again_sends(test, sock, 2, 4);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "restarts"), !lost);
	if (p->known) {
		rdm_sends(test, a, 0, 0, 1, AGAIN_LEN);
		rdm_sent(test, a, 1, 0);
		KUNIT_EXPECT_EQ(test, live_raw_recv(sock, &byte, 1), 1);
	}
	again_receives(test, a, lost ? 2 : 0, 4);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), 1);
	sock_release(sock);
	rdm_alone(test, a);
}

/* A second life that has sent nothing does not cut off messages of the first one. */
static void end_again_brief(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock;

	again_open(test, a);
	sock = again_unread(test, a, 2);
	sock_release(sock);
	sock = again_lives(test, a, END_PORT);
	sock_release(sock);
	sock = again_lives(test, a, END_PORT);
	again_sends(test, sock, 2, 3);
	again_receives(test, a, 0, 3);
	sock_release(sock);
	rdm_alone(test, a);
}

/* An operation whose answer would be read behind the tail completes in time. */
static void end_again_answer(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct kvec kv = { t->out, AGAIN_LEN };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	struct socket *sock;

	a->silence = 1000;
	msg.addr = again_open(test, a);
	sock = again_unread(test, a, 2);
	sock_release(sock);
	sock = again_lives(test, a, END_PORT);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(a->ep, &msg, FI_DELIVERY_COMPLETE), 0);
	rdm_sent(test, a, 1, ETIMEDOUT);
	again_receives(test, a, 0, 2);
	sock_release(sock);
	rdm_alone(test, a);
}

/* Of two former lives the older one is given up. */
static void end_again_twice(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock;
	int i;

	again_open(test, a);
	for (i = 0; i < 3; i++) {
		sock = again_lives(test, a, END_PORT);
		again_sends(test, sock, i, i + 1);
		if (i == 2)
			break;
		again_stalled(test, a, 1);
		sock_release(sock);
	}
	again_receives(test, a, 1, 3);
	sock_release(sock);
	rdm_alone(test, a);
}

/* Removing its address ends both lives of a peer. */
static void end_again_removed(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock;
	fi_addr_t peer;
	u8 byte;

	peer = again_open(test, a);
	sock = again_unread(test, a, 2);
	sock_release(sock);
	sock = again_lives(test, a, END_PORT);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "connections"), 2);
	KUNIT_EXPECT_EQ(test, fi_av_remove(a->av, &peer, 1, 0), 0);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock, &byte, 1), 0);
	sock_release(sock);
	rdm_alone(test, a);
}

/* Wait for the peer's FIN, which may arrive on another CPU. */
static bool again_closed(struct ksk_conn *c)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (!(READ_ONCE(c->sock->sk->sk_shutdown) & RCV_SHUTDOWN)) {
		if (time_after(jiffies, end))
			return false;
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/* An operation that has not begun goes to the next connection, which is made for it. */
static void end_again_posted(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock, *listener, *conn;
	struct sockaddr_in addr;
	struct ksk_conn *c;
	struct rdm_cm cm;
	fi_addr_t peer;
	u16 port;

	rdm_open(test, a, FI_MSG, 0);
	listener = rdm_deaf(test, &addr);
	port = ntohs(addr.sin_port);
	peer = rdm_insert(test, a, &addr);
	sock = again_lives(test, a, port);
	again_sends(test, sock, 0, 1);
	again_stalled(test, a, 1);
	c = &list_first_entry(&ksk_rdm(ksk_ep(a->ep))->conns, struct ksk_peer, node)->conn;
	kernel_sock_shutdown(sock, SHUT_WR);
	KUNIT_ASSERT_TRUE(test, again_closed(c));

	/* the owner of the socket sends the operation, and handles the request first */
	lock_sock(c->sock->sk);
	rdm_sends(test, a, peer, 0, 1, AGAIN_LEN);
	c->ops->closed(c);
	release_sock(c->sock->sk);
	sock_release(sock);

	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &conn, 0), 0);
	conn->sk->sk_rcvtimeo = TEST_LIMIT(10 * HZ);
	KUNIT_EXPECT_EQ(test, live_raw_recv(conn, &cm, sizeof(cm)), (int)sizeof(cm));
	KUNIT_EXPECT_EQ(test, cm.hdr.type, KSK_CM_REQUEST);
	cm.hdr.type = KSK_CM_ACCEPT;
	cm.cm.pid = htonl(AGAIN_NUMBER);
	KUNIT_EXPECT_EQ(test, live_raw_send(conn, &cm, sizeof(cm)), (int)sizeof(cm));
	rdm_sent(test, a, 1, 0);
	/* not ahead of the former life's */
	again_sends(test, conn, 1, 2);
	again_receives(test, a, 0, 2);
	sock_release(conn);
	sock_release(listener);
	rdm_alone(test, a);
}

/* Others that say they are the peer do not end the connection of one that is alive. */
static void end_again_alive(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	struct socket *sock;

	again_open(test, a);
	sock = again_unread(test, a, 1);
	KUNIT_EXPECT_NULL(test, again_life(test, a, END_PORT, AGAIN_MS));
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "restarts"), 0);
	again_sends(test, sock, 1, 2);
	again_receives(test, a, 0, 2);
	sock_release(sock);
	rdm_alone(test, a);
}

static struct kunit_case end_cases[] = {
	KUNIT_CASE(end_accepted),
	KUNIT_CASE_PARAM(end_last, end_last_gen_params),
	KUNIT_CASE_PARAM(end_again, again_gen_params),
	KUNIT_CASE(end_again_brief),
	KUNIT_CASE(end_again_answer),
	KUNIT_CASE(end_again_twice),
	KUNIT_CASE(end_again_removed),
	KUNIT_CASE(end_again_posted),
	KUNIT_CASE(end_again_alive),
	{}
};

static struct kunit_suite end_suite = {
	.name		= "sock_rdm_end",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= end_cases,
};

kunit_test_suite(end_suite);
