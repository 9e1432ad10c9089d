// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of connections of FI_EP_RDM endpoints that are still used: while they are being
 * accepted, and while a frame of ours is not completely sent, or read.
 */
#include <linux/bvec.h>
#include <linux/gfp.h>
#include <linux/sched.h>
#include <kunit/static_stub.h>
#include <net/tcp.h>

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

	while (pages ? !atomic_read(&c->zc_out) || READ_ONCE(c->tx_hdr_len) :
		       READ_ONCE(c->tx_state) != KSK_TX_SPACE) {
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

static struct kunit_case end_cases[] = {
	KUNIT_CASE(end_accepted),
	KUNIT_CASE_PARAM(end_last, end_last_gen_params),
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
