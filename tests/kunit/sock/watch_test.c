// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a peer that is there, and answers, may not do: hold a receive with a
 * frame that it does not finish, close behind a message that is not received and
 * leave an operation without an end, or keep a softirq busy with small frames.
 * And that a slow path is not taken for a dead peer.
 *
 * The peer is a plain TCP socket. Time is not waited for: the tests set the
 * watch's clocks back and have it run.
 */
#include <linux/completion.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <linux/unaligned.h>
#include <linux/workqueue.h>
#include <net/tcp.h>

#include "../param.h"
#include "live.h"

#define WATCH_LIMIT	100000	/* milliseconds, not those that pass here */

static struct ksk_conn *watch_conn(struct live *l)
{
	return ksk_ep(l->end[1].ep)->conn;
}

static void watch_run(struct ksk_conn *c)
{
	mod_delayed_work(system_wq, &c->watch.work, 0);
	flush_delayed_work(&c->watch.work);
}

/* Have it see what there is, let the time pass, and have it look again. */
static void watch_late(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;

	watch_run(c);
	lock_sock(sk);
	c->watch.rx_base -= msecs_to_jiffies(2 * WATCH_LIMIT);
	release_sock(sk);
	watch_run(c);
}

/* The header of a message, in little-endian order */
static void watch_hdr(u8 *hdr, size_t payload, u16 flags)
{
	memset(hdr, 0, 16);
	hdr[0] = 3;
	put_unaligned_le16(flags, hdr + 2);
	hdr[6] = 16;
	put_unaligned_le64(16 + payload, hdr + 8);
}

/* Wait for bytes to arrive, or for the end of what arrives. */
static bool watch_until(struct ksk_conn *c, unsigned long bytes, bool fin)
{
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);
	struct sock *sk = c->sock->sk;

	while (READ_ONCE(c->stats.rx_bytes) != bytes ||
	       (fin && !(READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN))) {
		if (time_after(jiffies, end))
			return false;
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/*
 * Wait until so many segments are unacknowledged. The peer acknowledges the answer of the
 * connection request late, and the watch may own the socket for a moment.
 */
static bool watch_unacked(struct ksk_conn *c, unsigned int segs)
{
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);

	while (READ_ONCE(tcp_sk(c->sock->sk)->packets_out) != segs) {
		if (time_after(jiffies, end))
			return false;
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/* ----------------------------------------------------- frames that stand still */

struct watch_frame {
	const char	*name;
	unsigned int	limit;
	size_t		bytes;		/* of the frame */
	bool		more;		/* comes just in time */
	bool		dies;
};

static const struct watch_frame watch_frames[] = {
	{ "a payload", WATCH_LIMIT, 17, false, true },
	{ "a header", WATCH_LIMIT, 7, false, true },
	{ "no limit", 0, 17, false, false },
	{ "it goes on", WATCH_LIMIT, 17, true, false },
	{ "nothing has begun", WATCH_LIMIT, 0, false, false },
	{ "all is there", WATCH_LIMIT, 16 + 64, false, false },
};

static void watch_frame_desc(const struct watch_frame *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(watch_frame, watch_frames, watch_frame_desc);

static void watch_frame(struct kunit *test)
{
	const struct watch_frame *f = test->param_value;
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = watch_conn(l);
	struct fi_cq_err_entry e;
	u8 frame[16 + 64] = {};

	c->ep->tun.frame_timeout = f->limit;
	watch_hdr(frame, 64, 0);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0, NULL),
			0);
	if (f->bytes)
		live_raw_send(sock, frame, f->bytes);
	KUNIT_EXPECT_TRUE(test, watch_until(c, f->bytes, false));
	if (f->more) {
		watch_run(c);
		live_raw_send(sock, frame + f->bytes, 1);
		KUNIT_EXPECT_TRUE(test, watch_until(c, f->bytes + 1, false));
		c->watch.rx_base -= msecs_to_jiffies(2 * WATCH_LIMIT);
		watch_run(c);
	} else {
		watch_late(c);
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(c->dead), f->dies ? ETIMEDOUT : 0);
	if (f->dies) {
		KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e),
				f->bytes > 16 ? -ENOTCONN : -ECANCELED);
		KUNIT_EXPECT_EQ(test, live_event(l->end[1].eq, FI_SHUTDOWN,
						 NULL, NULL), 0);
	}
	sock_release(sock);
}

/* ------------------------------------------- the peer has closed behind a message */

struct watch_fin {
	const char	*name;
	bool		send;		/* an operation waits for the peer */
};

static const struct watch_fin watch_fins[] = {
	{ "a send waits", true },
	{ "nothing waits", false },
};

static void watch_fin_desc(const struct watch_fin *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(watch_fin, watch_fins, watch_fin_desc);

static void watch_fin(struct kunit *test)
{
	const struct watch_fin *f = test->param_value;
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = watch_conn(l);
	struct kvec iov = { .iov_base = l->out, .iov_len = 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_err_entry e;
	u8 frame[16 + 64] = {};

	c->ep->tun.silence_timeout = WATCH_LIMIT;
	if (f->send)
		KUNIT_EXPECT_EQ(test, fi_sendmsg(l->end[1].ep, &msg,
						 FI_DELIVERY_COMPLETE), 0);
	watch_hdr(frame, 64, 0);
	live_raw_send(sock, frame, sizeof(frame));
	kernel_sock_shutdown(sock, SHUT_WR);
	KUNIT_EXPECT_TRUE(test, watch_until(c, 16, true));
	KUNIT_EXPECT_TRUE(test, c->rx.stalled);

	watch_late(c);
	KUNIT_EXPECT_EQ(test, READ_ONCE(c->dead), f->send ? ESHUTDOWN : 0);
	if (f->send) {
		KUNIT_EXPECT_EQ(test, live_comp(l->end[1].tx, &e), -ECANCELED);
	} else {
		/* however late the receive comes */
		KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0,
					      NULL), 0);
		KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	}
	KUNIT_EXPECT_EQ(test, live_event(l->end[1].eq, FI_SHUTDOWN, NULL, NULL),
			0);
	sock_release(sock);
}

/* --------------------------------------------------------------- slow paths */

/* Bytes are out, and the peer has been silent for longer than the limit. */
static void watch_silent(struct ksk_conn *c, unsigned int rtt_ms)
{
	struct sock *sk = c->sock->sk;
	u32 then = tcp_jiffies32 - msecs_to_jiffies(2 * WATCH_LIMIT);

	lock_sock(sk);
	c->watch.base = then;
	tcp_sk(sk)->rcv_tstamp = then;
	tcp_sk(sk)->srtt_us = 8 * rtt_ms * USEC_PER_MSEC;
	tcp_sk(sk)->rttvar_us = 200 * USEC_PER_MSEC;
	release_sock(sk);
	watch_run(c);
}

/* Somebody owns the peer's socket: what comes for it waits. */
struct watch_owner {
	struct work_struct	work;
	struct sock		*sk;
	struct completion	owns;
	struct completion	over;
};

static void watch_own(struct work_struct *work)
{
	struct watch_owner *o = container_of(work, struct watch_owner, work);

	lock_sock(o->sk);
	complete(&o->owns);
	wait_for_completion(&o->over);
	release_sock(o->sk);
}

/* Where an answer takes longer than the limit, the limit is not held to. */
static void watch_slow_path(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = watch_conn(l);
	struct watch_owner owner = { .sk = sock->sk };

	c->ep->tun.silence_timeout = WATCH_LIMIT;
	KUNIT_EXPECT_TRUE(test, watch_unacked(c, 0));
	init_completion(&owner.owns);
	init_completion(&owner.over);
	INIT_WORK_ONSTACK(&owner.work, watch_own);
	queue_work(system_unbound_wq, &owner.work);
	wait_for_completion(&owner.owns);
	KUNIT_EXPECT_EQ(test, fi_send(l->end[1].ep, l->out, 8, NULL, 0, NULL),
			0);
	KUNIT_EXPECT_TRUE(test, watch_unacked(c, 1));
	watch_silent(c, 2 * WATCH_LIMIT);
	KUNIT_EXPECT_EQ(test, READ_ONCE(c->dead), 0);
	watch_silent(c, 1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(c->dead), ETIMEDOUT);
	complete(&owner.over);
	flush_work(&owner.work);
	destroy_work_on_stack(&owner.work);
	sock_release(sock);
}

/* ------------------------------------------------------------------ budgets */

#define WATCH_FRAMES	200

/* A run ends after a number of frames, however few bytes they are. */
static void watch_rx_budget(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = watch_conn(l);
	unsigned int i;
	struct fi_cq_err_entry e;

	for (i = 0; i < WATCH_FRAMES; i++) {
		KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 0, NULL, 0,
					      NULL), 0);
		watch_hdr(l->out + i * 16, 0, 0);
	}
	test_param_set(test, &ksk_rx_budget, 20 * KSK_FRAME_COST);
	live_raw_send(sock, l->out, WATCH_FRAMES * 16);
	for (i = 0; i < WATCH_FRAMES; i++)
		if (live_comp(l->end[1].rx, &e))
			break;
	KUNIT_EXPECT_EQ(test, i, WATCH_FRAMES);
	KUNIT_EXPECT_GE(test, c->stats.rx_budget, WATCH_FRAMES / 20 - 1);
	sock_release(sock);
}

static void watch_tx_budget(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = watch_conn(l);
	struct sock *sk = c->sock->sk;
	bool more;

	lock_sock(sk);
	c->tx.acks = WATCH_FRAMES;
	more = ksk_tx_run(c, 20 * KSK_FRAME_COST);
	KUNIT_EXPECT_TRUE(test, more);
	KUNIT_EXPECT_GE(test, c->tx.acks, WATCH_FRAMES - 21ULL);
	KUNIT_EXPECT_LE(test, c->tx.acks, WATCH_FRAMES - 19ULL);
	c->tx.acks = 0;
	release_sock(sk);
	sock_release(sock);
}

static struct kunit_case watch_cases[] = {
	KUNIT_CASE_PARAM(watch_frame, watch_frame_gen_params),
	KUNIT_CASE_PARAM(watch_fin, watch_fin_gen_params),
	KUNIT_CASE(watch_slow_path),
	KUNIT_CASE(watch_rx_budget),
	KUNIT_CASE(watch_tx_budget),
	{}
};

static struct kunit_suite watch_suite = {
	.name = "sock_watch",
	.suite_init = lo_suite_init,
	.init = live_init,
	.exit = live_exit,
	.test_cases = watch_cases,
};

kunit_test_suite(watch_suite);
