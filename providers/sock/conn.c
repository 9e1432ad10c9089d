// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections: the socket, both directions of its stream, and its termination.
 *
 * Lifetime
 *
 * A connected endpoint has one connection. An FI_EP_RDM endpoint has one for each peer
 * (rdm.c). A connection gets its socket once, by connecting or by taking over a
 * connection request, and keeps it until ksk_conn_close(). So a post may use the
 * socket at any time.
 *
 * The socket's callbacks and the softirq item read and send. The work item and posts
 * only send. All of them run the stream with the socket locked. With TLS only process
 * context runs the stream, see tls.c.
 *
 * Termination
 *
 * All streams terminate in the same way. The first reason is stored in c->dead, once,
 * and the work item is queued. It locks the socket, completes all operations and
 * notifies the connection's owner. After that it resets the connection or shuts it
 * down. ksk_conn_down() does the same in its caller's context. Nothing waits for the
 * network.
 *
 * Dead peers
 *
 * TCP's keepalive detects them while the connection is idle. While data is unanswered,
 * ksk_conn_watch() detects them. TCP_USER_TIMEOUT is not used: it would abort the
 * connection to a peer that answers with a closed window.
 */
#include <linux/slab.h>
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <net/tcp.h>
#include <trace/events/sock.h>

#include <linux/kofi/backport.h>

#include "sock.h"
#include "sock_trace.h"
#include "tls.h"

/*
 * Cost of a full run of the softirq item. irq_poll yields to other softirqs after a
 * cost of 256 for all items. The cost is below the item's weight, because an item that
 * uses up its weight must not reschedule itself.
 */
#define KSK_CONN_RUN	64
#define KSK_CONN_WEIGHT	(2 * KSK_CONN_RUN)

/* Bytes per call of the sender in the work item */
#define KSK_CONN_CHUNK	SZ_64K

/* Time for the sender in one run of the work item, in nanoseconds */
#define KSK_CONN_SLICE	NSEC_PER_MSEC

/* A peer is alive if its last segment arrived within this time, in jiffies */
#define KSK_CONN_ALIVE	(HZ / 10)

/*
 * Limit for doublings of the time between probes of a closed window. The first interval
 * is the retransmission timeout, at least 0.2 s.
 */
#define KSK_CONN_BACKOFF	4

/* ------------------------------------------------------- socket callbacks */

/*
 * TCP calls all four with the socket locked. ksk_conn_detach() removes them with the
 * socket locked, too, so sk_user_data is valid.
 *
 * Bytes are read only under the socket's spinlock, never while a process owns the
 * socket. While it does, TCP counts the backlog as used memory. It acknowledges the
 * bytes with a small window or none, and never opens the window again: the peer would
 * wait for its probe timer. Callbacks that TCP calls for the backlog must not read for
 * this reason. Neither must the owner, as packets enter the backlog concurrently.
 */

/*
 * Handle an event of a socket without a stream. The work item connects. A request that
 * is not accepted needs no work item, and its work queue may still change.
 */
static void ksk_conn_event(struct ksk_conn *c)
{
	if (c->phase != KSK_CONN_REQUESTED)
		ksk_conn_queue(c);
}

/* A process owns the socket: run the stream afterwards. */
static void ksk_conn_after_owner(struct ksk_conn *c)
{
	/* the work item schedules the softirq item itself, after it has unlocked */
	if (!READ_ONCE(c->in_work))
		ksk_conn_queue(c);
}

static void ksk_conn_data_ready(struct sock *sk)
{
	struct ksk_conn *c = sk->sk_user_data;

	trace_sk_data_ready(sk);
	if (c->phase != KSK_CONN_ESTABLISHED) {
		ksk_conn_event(c);
		return;
	}
	if (sock_owned_by_user(sk)) {
		ksk_conn_after_owner(c);
		return;
	}
	if (ksk_rx_run(c))
		ksk_conn_softirq(c);
	if (ksk_tx_ready(c)) {
		ksk_stat_inc(&c->stats.tx_inline);
		if (ksk_tx_run(c, ksk_inline_max))
			ksk_conn_go_on(c);
	}
}

static void ksk_conn_write_space(struct sock *sk)
{
	struct ksk_conn *c = sk->sk_user_data;

	if (!sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	if (!ksk_tx_space(c))
		return;
	if (sock_owned_by_user(sk))
		ksk_conn_after_owner(c);
	else
		ksk_conn_softirq(c);
}

/*
 * Test whether the connection has been reset. If both directions were closed in order,
 * ours first, the state is TCP_CLOSE, too, but received bytes are still read. A tail is
 * read even after a reset: its peer has sent all bytes before the reset.
 */
static bool ksk_conn_reset(const struct ksk_conn *c, const struct sock *sk)
{
	return sk->sk_state == TCP_CLOSE && !test_bit(KSK_CONN_TAIL, &c->flags) &&
	       (!c->retired || sk->sk_err);
}

static void ksk_conn_state_change(struct sock *sk)
{
	struct ksk_conn *c = sk->sk_user_data;

	if (c->phase != KSK_CONN_ESTABLISHED) {
		ksk_conn_event(c);
		return;
	}
	if (ksk_conn_reset(c, sk))
		ksk_conn_abort(c, sk->sk_err ? : ECONNRESET);
	else if (sock_owned_by_user(sk))
		ksk_conn_after_owner(c);
	else if (ksk_rx_run(c))
		ksk_conn_softirq(c);
}

static void ksk_conn_error_report(struct sock *sk)
{
	struct ksk_conn *c = sk->sk_user_data;

	if (c->phase == KSK_CONN_ESTABLISHED && sk->sk_err &&
	    !test_bit(KSK_CONN_TAIL, &c->flags))
		ksk_conn_abort(c, sk->sk_err);
	else
		ksk_conn_event(c);
}

/* ------------------------------------------------------- the softirq item */

static int ksk_conn_poll(struct irq_poll *iop, int weight)
{
	struct ksk_conn *c = container_of(iop, struct ksk_conn, poll);
	struct sock *sk = c->sock->sk;
	bool more = false;

	/*
	 * Complete first: an item that is scheduled from now on runs again, so nothing
	 * is lost. in_poll makes ksk_conn_close() wait for this call.
	 */
	atomic_inc(&c->in_poll);
	irq_poll_complete(iop);
	/* irq_poll has no lock: order the completion before the check of posts */
	smp_mb();	/* pairs with irq_poll_sched() in ksk_tx_leave() */

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		ksk_conn_after_owner(c);
	} else {
		more = ksk_rx_run(c);
		if (more)
			irq_poll_sched(iop);
		/* no callback reports a reset that preceded KSK_CONN_ESTABLISHED */
		else if (c->phase == KSK_CONN_ESTABLISHED &&
			 ksk_conn_reset(c, sk))
			ksk_conn_abort(c, sk->sk_err ? : ECONNRESET);
		ksk_stat_inc(&c->stats.tx_inline);
		if (ksk_tx_run(c, ksk_inline_max)) {
			ksk_conn_go_on(c);
			more = true;
		}
	}
	bh_unlock_sock(sk);

	if (atomic_dec_and_test(&c->in_poll))
		wake_up_var(&c->in_poll);
	/* after a few full runs, irq_poll yields to other softirqs, above all to packets */
	return more ? KSK_CONN_RUN : 0;
}

/* ---------------------------------------------------------- the work item */

/* Lock a stream with a socket in process context. */
void ksk_conn_lock(struct ksk_conn *c)
{
	if (c->tls)
		mutex_lock(&c->tls->mutex);
	else
		lock_sock(c->sock->sk);
}

void ksk_conn_unlock(struct ksk_conn *c)
{
	if (c->tls)
		mutex_unlock(&c->tls->mutex);
	else
		release_sock(c->sock->sk);
}

/*
 * Complete all operations, and refuse further ones. A repeated call does nothing, unless
 * the endpoint was enabled after its connection had terminated.
 */
static void ksk_conn_flush(struct ksk_conn *c)
{
	ksk_tx_flush(c);
	ksk_rx_flush(c);
}

/*
 * Complete all operations, and report the termination. Returns true if the connection
 * must be reset. The caller unlocks the socket, and then resets it or shuts it down.
 */
static bool ksk_conn_end(struct ksk_conn *c)
{
	int phase = c->phase, err = READ_ONCE(c->dead);

	ksk_cm_step(&c->ep->base.obj, "end", err);
	trace_kofi_sock_peer(c, "end", err);
	c->phase = KSK_CONN_DEAD;
	if (phase == KSK_CONN_ESTABLISHED && err == ESHUTDOWN &&
	    c->ops->hand_over)
		c->ops->hand_over(c);
	ksk_conn_flush(c);

	/* for the only connection of an endpoint, fi_accept() returns the error itself */
	if (phase == KSK_CONN_ESTABLISHED)
		c->ops->ended(c);
	else if (phase != KSK_CONN_REQUESTED || c->ops->many)
		c->ops->failed(c, err, err, NULL, 0);

	/* only a reset empties TCP's queue, and so gives back pages that are in it */
	return (err != ESHUTDOWN && err != ECANCELED) ||
	       atomic_read(&c->zc.out) ||
	       test_bit(KSK_CONN_HALF_SENT, &c->flags);
}

static void ksk_conn_disconnect(struct ksk_conn *c, bool reset)
{
	/* a handshake that nobody waits for would keep its place in the namespace */
	if (c->tls)
		ksk_tls_stop(c->tls, c->sock);
	if (reset)
		ksk_socket_abort(c->sock);
	else if (c->tls)
		ksk_tls_shutdown(c->tls, c->sock);
	else
		ksk_socket_shutdown(c->sock);
}

/* Send until the time slice is over. Returns true if there is more to send. */
static bool ksk_conn_send(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;
	bool more;
	u64 end;

	/*
	 * In process context the sender may wait for memory, but not for writeback,
	 * which may depend on this stream. The wait must be short, as there are few
	 * workers when memory is scarce. The retry timer repeats the attempt.
	 */
	ksk_socket_gfp(sk, GFP_NOIO | __GFP_NORETRY);
	ksk_tx_space(c);
	ksk_stat_inc(&c->stats.tx_work);
	end = ktime_get_ns() + KSK_CONN_SLICE;
	do {
		more = ksk_tx_run(c, KSK_CONN_CHUNK);
	} while (more && ktime_get_ns() < end);
	ksk_socket_gfp(sk, GFP_ATOMIC);
	return more;
}

/*
 * Run the work item of a connection without a socket. If its owner connects, rather than
 * the consumer, begin to connect. If c->dead is set, perhaps because the device has
 * disappeared, terminate. The mutex keeps a drain from returning while this is half done.
 */
static void ksk_conn_start(struct ksk_conn *c)
{
	int err = READ_ONCE(c->dead);
	unsigned int noio;

	mutex_lock(&c->mutex);
	noio = ksk_memalloc_save(&c->ep->tun);
	if (c->sock || c->phase == KSK_CONN_DEAD)
		goto unlock;
	if (!err && c->ops->start) {
		err = -c->ops->start(c);
		if (err)
			ksk_conn_abort(c, err);
		goto unlock;
	}
	ksk_conn_flush(c);
	if (err && c->ops->start) {
		c->phase = KSK_CONN_DEAD;
		c->ops->failed(c, err, err, NULL, 0);
	}
unlock:
	ksk_memalloc_restore(noio);
	mutex_unlock(&c->mutex);
}

/*
 * Begin to close an idle connection: stop sending, and read until the peer has closed,
 * too. Returns false if the connection is in use.
 */
static bool ksk_conn_retire(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;

	if (c->phase != KSK_CONN_ESTABLISHED || READ_ONCE(c->dead) ||
	    c->retired || sk->sk_state != TCP_ESTABLISHED ||
	    !c->ops->unused(c))
		return false;
	WRITE_ONCE(c->retired, true);
	c->ops->retired(c);
	return true;
}

/*
 * Check whether a peer that requests another connection still has this one: it may have
 * closed it behind unread bytes. A host that does not know the connection answers an
 * acknowledgment with a reset; a peer that is alive does not answer.
 */
static void ksk_conn_asked(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;

	if (c->phase != KSK_CONN_ESTABLISHED || READ_ONCE(c->dead))
		return;
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		c->ops->closed(c);
	else if (sk->sk_state != TCP_CLOSE &&
		 keepalive_time_elapsed(tcp_sk(sk)) >= KSK_CONN_ALIVE)
		tcp_ack_now(sk);
}

/* Receive and send until the time slice is over. Returns true if there is more to do. */
static bool ksk_conn_stream_tls(struct ksk_conn *c)
{
	u64 end = ktime_get_ns() + KSK_CONN_SLICE;
	bool more;

	if (test_bit(KSK_CONN_RSPS, &c->flags))
		ksk_rma_prepare(c);
	ksk_tx_space(c);
	ksk_stat_inc(&c->stats.tx_work);
	do {
		more = ksk_rx_run_tls(c);
		more |= ksk_tx_run_tls(c, KSK_CONN_CHUNK);
	} while (more && ktime_get_ns() < end);
	return more;
}

/* The work item of a connection with TLS */
static void ksk_conn_work_tls(struct ksk_conn *c)
{
	unsigned int noio = ksk_memalloc_save(&c->ep->tun);
	bool more = false, end = false, reset = false;

	mutex_lock(&c->tls->mutex);
	if (c->phase == KSK_CONN_ESTABLISHED && !READ_ONCE(c->dead))
		more = ksk_conn_stream_tls(c);
	else if (c->phase != KSK_CONN_DEAD && !READ_ONCE(c->dead))
		ksk_cm_work(c);
	if (test_and_clear_bit(KSK_CONN_ASKED, &c->flags)) {
		lock_sock(c->sock->sk);
		ksk_conn_asked(c);
		release_sock(c->sock->sk);
	}
	if (c->phase != KSK_CONN_DEAD && READ_ONCE(c->dead)) {
		reset = ksk_conn_end(c);
		end = true;
	} else if (c->phase == KSK_CONN_DEAD) {
		ksk_conn_flush(c);
	}
	mutex_unlock(&c->tls->mutex);

	if (end)
		ksk_conn_disconnect(c, reset);
	else if (more)
		ksk_conn_queue(c);
	ksk_memalloc_restore(noio);
}

static void ksk_conn_work(struct work_struct *work)
{
	struct ksk_conn *c = container_of(work, struct ksk_conn, work);
	struct socket *sock = smp_load_acquire(&c->sock);	/* pairs with ksk_conn_attach() */
	bool more = false, end = false, reset = false, fin = false, push;
	unsigned int noio;

	if (!sock) {
		ksk_conn_start(c);
		return;
	}
	if (c->tls) {
		ksk_conn_work_tls(c);
		return;
	}

	noio = ksk_memalloc_save(&c->ep->tun);
	lock_sock(sock->sk);
	WRITE_ONCE(c->in_work, true);
	if (c->phase == KSK_CONN_ESTABLISHED && !READ_ONCE(c->dead))
		more = ksk_conn_send(c);
	else if (c->phase != KSK_CONN_DEAD && !READ_ONCE(c->dead))
		ksk_cm_work(c);
	if (test_bit(KSK_CONN_RSPS, &c->flags))
		ksk_rma_prepare(c);
	if (test_and_clear_bit(KSK_CONN_IDLE, &c->flags))
		fin = ksk_conn_retire(c);
	if (test_and_clear_bit(KSK_CONN_ASKED, &c->flags))
		ksk_conn_asked(c);
	if (c->phase != KSK_CONN_DEAD && READ_ONCE(c->dead)) {
		reset = ksk_conn_end(c);
		end = true;
	} else if (c->phase == KSK_CONN_DEAD) {
		ksk_conn_flush(c);
	}
	push = test_and_clear_bit(KSK_CONN_PUSH, &c->flags) &&
	       ksk_tx_pushes(c);
	release_sock(sock->sk);
	/*
	 * Clear it before the softirq item runs. If that item finds another owner of
	 * the socket, it queues this work item, but only if in_work is false.
	 */
	WRITE_ONCE(c->in_work, false);

	if (end)
		ksk_conn_disconnect(c, reset);
	else if (fin)
		ksk_socket_fin(sock, SHUT_WR);
	else if (push)
		tcp_sock_set_cork(sock->sk, false);
	if (!end && READ_ONCE(c->phase) == KSK_CONN_ESTABLISHED)
		ksk_conn_softirq(c);
	if (!end && more)
		ksk_conn_queue(c);
	ksk_memalloc_restore(noio);
}

/* ------------------------------------------------------------ dead peers */

static unsigned long ksk_conn_watch_period(struct ksk_conn *c)
{
	const struct ksk_tunables *tun = &c->ep->tun;
	unsigned int ms = min_not_zero(tun->silence_timeout,
				       tun->frame_timeout);

	if (c->retired)
		ms = min(ms, tun->connect_timeout);
	return max(msecs_to_jiffies(ms) / 4, 1UL);
}

/* Convert a limit to jiffies. Increase it if two lost packets in a row would exceed it. */
static u32 ksk_conn_watch_limit(const struct sock *sk, unsigned int ms)
{
	return max_t(u32, msecs_to_jiffies(ms), 4 * __tcp_set_rto(tcp_sk(sk)));
}

/*
 * Test for data, or a probe of a closed window, that the peer has not answered. TCP
 * probes a closed window only while data waits. Without such data, icsk_probes_out
 * counts keepalive probes, which TCP itself judges. Data before the peer's last
 * acknowledgment does not count, even if it is not acknowledged: the peer is alive.
 */
static bool ksk_conn_unanswered(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return (tp->packets_out && (s32)(tp->lsndtime - tp->rcv_tstamp) > 0) ||
	       (inet_csk(sk)->icsk_probes_out && tcp_send_head(sk));
}

/* Does one of our operations wait for bytes that the peer may have sent? */
static bool ksk_conn_waits(const struct ksk_conn *c)
{
	const struct kofi_rxq *q = &c->ep->rxq;

	return !list_empty(&c->tx.wait) || c->tx.nreads || c->rndv.out ||
	       c->rndv.granted ||
	       (!c->ops->many && q->ops && !kofi_rxq_empty(q));
}

/*
 * Abort a stream that receives nothing and holds our operations, although the peer is
 * alive. The rest of a frame, and a requested payload, must arrive within frame_timeout.
 * If a frame has no receive and the peer has closed behind it, outstanding operations
 * wait for silence_timeout: nothing more arrives, and only a receive resumes the stream.
 * Operations also wait that long for answers that are not read before the peer's tail.
 */
static void ksk_conn_watch_rx(struct ksk_conn *c)
{
	const struct ksk_tunables *tun = &c->ep->tun;
	const struct ksk_rx *rx = &c->rx;
	struct sock *sk = c->sock->sk;
	unsigned int ms = 0;
	int err = ETIMEDOUT;

	if (test_bit(KSK_CONN_BEHIND, &c->flags)) {
		if (ksk_conn_waits(c))
			ms = tun->silence_timeout;
	} else if (rx->stalled) {
		err = ksk_tls_fin(c->tls);
		if ((sk->sk_shutdown & RCV_SHUTDOWN) && ksk_conn_waits(c))
			ms = tun->silence_timeout;
	} else if ((rx->have || c->rndv.granted) &&
		   (c->tls ? ksk_tls_idle(sk) :
			     skb_queue_empty(&sk->sk_receive_queue))) {
		ms = tun->frame_timeout;
	}
	if (!ms || c->watch.rx_bytes != c->stats.rx_bytes) {
		c->watch.rx_bytes = c->stats.rx_bytes;
		c->watch.rx_base = tcp_jiffies32;
	} else if (tcp_jiffies32 - c->watch.rx_base >
		   ksk_conn_watch_limit(sk, ms)) {
		ksk_conn_abort(c, err);
	}
}

static void ksk_conn_watch_stream(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 now = tcp_jiffies32, limit;
	int err;

	limit = ksk_conn_watch_limit(sk, c->ep->tun.silence_timeout);
	/* peers answer out-of-window segments, such as probes, at most twice a second */
	if (!tcp_sk(sk)->packets_out)
		limit += HZ;
	if (!ksk_conn_unanswered(sk))
		c->watch.base = now;
	else if (now - c->watch.base > limit &&
		 now - tcp_sk(sk)->rcv_tstamp > limit)
		ksk_conn_abort(c, ETIMEDOUT);
	ksk_conn_watch_rx(c);
	err = c->tls ? ksk_tls_check(c->tls) : 0;
	if (err)
		ksk_conn_abort(c, -err);
	/* if kTLS has been out of memory, its own work item reads, and does not call us */
	if (c->tls && !c->rx.stalled && !ksk_tls_idle(sk))
		ksk_conn_queue(c);
	if (c->retired)
		c->ops->closing(c);

	/*
	 * TCP doubles the time between probes of a closed window, up to two minutes.
	 * Keep it at a few seconds, to detect a dead peer.
	 */
	if (!tcp_sk(sk)->packets_out && icsk->icsk_backoff > KSK_CONN_BACKOFF) {
		icsk->icsk_backoff = KSK_CONN_BACKOFF;
		/* this watch judges the peer, not TCP's limit of probes */
		icsk->icsk_probes_out = min_t(u8, icsk->icsk_probes_out, 1);
	}
	queue_delayed_work(c->wq, &c->watch.work, ksk_conn_watch_period(c));
}

static void ksk_conn_watch(struct work_struct *work)
{
	struct ksk_conn *c = container_of(to_delayed_work(work),
					  struct ksk_conn, watch.work);
	struct sock *sk = c->sock->sk;

	if (c->tls)
		mutex_lock(&c->tls->mutex);
	lock_sock(sk);
	switch (c->phase) {
	case KSK_CONN_CONNECTING:
	case KSK_CONN_SECURING:
	case KSK_CONN_REQUESTING:
		ksk_conn_abort(c, ETIMEDOUT);
		break;
	case KSK_CONN_ESTABLISHED:
		ksk_conn_watch_stream(c);
		break;
	default:
		break;
	}
	release_sock(sk);
	if (c->tls)
		mutex_unlock(&c->tls->mutex);
}

/**
 * ksk_conn_established - begin the stream when both peers have agreed
 * @c: the connection
 * @data: private data of the peer's answer
 * @len: length of @data in bytes
 *
 * Context: locked, process.
 */
void ksk_conn_established(struct ksk_conn *c, const void *data, size_t len)
{
	ksk_cm_step(&c->ep->base.obj, "connected", 0);
	trace_kofi_sock_peer(c, "connected", 0);
	ksk_rx_init(&c->rx);
	c->phase = KSK_CONN_ESTABLISHED;
	c->watch.base = tcp_jiffies32;
	mod_delayed_work(c->wq, &c->watch.work, ksk_conn_watch_period(c));
	/* kTLS encrypts pages where they are, and has no use for them afterwards */
	c->zc.min = c->tls ? 0 : c->ep->tun.zerocopy_min;
	c->ops->established(c, data, len);
	/* read the bytes that the peer has sent behind its CM message */
	ksk_conn_queue(c);
}

/* ------------------------------------------------------ setup and teardown */

/**
 * ksk_conn_init - initialise a connection without a socket
 * @c: the connection, all zero
 * @ep: endpoint of the connection
 * @ops: functions of its owner
 */
void ksk_conn_init(struct ksk_conn *c, struct ksk_ep *ep,
		   const struct ksk_conn_ops *ops)
{
	c->ep = ep;
	c->ops = ops;
	mutex_init(&c->mutex);
	c->wq = ksk_wq_for(&ep->tun);
	c->phase = KSK_CONN_UNUSED;
	irq_poll_init(&c->poll, KSK_CONN_WEIGHT, ksk_conn_poll);
	atomic_set(&c->in_poll, 0);
	INIT_WORK(&c->work, ksk_conn_work);
	timer_setup(&c->retry, ksk_tx_retry, 0);
	INIT_DELAYED_WORK(&c->watch.work, ksk_conn_watch);
	spin_lock_init(&c->posts.lock);
	c->tx.state = KSK_TX_IDLE;
	INIT_LIST_HEAD(&c->posts.list);
	INIT_LIST_HEAD(&c->tx.queue);
	INIT_LIST_HEAD(&c->tx.wait);
	INIT_LIST_HEAD(&c->tx.reads);
	ksk_rx_setup(c);
}

/**
 * ksk_conn_attach - give a connection its socket
 * @c: the connection, which has no socket
 * @sock: the socket
 * @phase: phase of the connection, enum ksk_conn_phase
 *
 * Events of the socket before the call may have been missed.
 *
 * Context: process, may sleep; the mutex held.
 */
void ksk_conn_attach(struct ksk_conn *c, struct socket *sock, int phase)
{
	struct sock *sk = sock->sk;

	KUNIT_STATIC_STUB_REDIRECT(ksk_conn_attach, c, sock, phase);
	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	c->saved = (struct ksk_cbs) {
		.data_ready = sk->sk_data_ready,
		.write_space = sk->sk_write_space,
		.state_change = sk->sk_state_change,
		.error_report = sk->sk_error_report,
	};
	sk->sk_user_data = c;
	if (c->tls) {
		/* nothing schedules it without a socket */
		c->poll.poll = ksk_tls_poll;
		ksk_tls_attach(c, sk);
	} else {
		sk->sk_data_ready = ksk_conn_data_ready;
		sk->sk_write_space = ksk_conn_write_space;
		sk->sk_state_change = ksk_conn_state_change;
		sk->sk_error_report = ksk_conn_error_report;
	}
	write_unlock_bh(&sk->sk_callback_lock);
	c->phase = phase;
	/* a stream must never be taken for one without TLS: @tls before @sock */
	smp_store_release(&c->sock, sock);	/* pairs with ksk_conn_work() */
	if (READ_ONCE(c->dead))
		ksk_conn_queue(c);
	release_sock(sk);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_conn_attach);

/*
 * Send the operations that fit into the socket, unless it is an abort, and complete all
 * others. Returns true if the connection must be reset, as ksk_conn_end().
 */
static bool ksk_conn_finish(struct ksk_conn *c, enum ksk_down how)
{
	struct sock *sk = c->sock->sk;
	unsigned long sent = c->stats.tx_bytes;

	/* copy from here on: pages in TCP's queue would turn the close into a reset */
	c->zc.min = 0;
	while (how != KSK_DOWN_ABORT &&
	       (c->tls ? ksk_tx_run_tls(c, KSK_CONN_CHUNK) :
			 ksk_tx_run(c, KSK_CONN_CHUNK)) &&
	       c->stats.tx_bytes - sent < sk->sk_sndbuf)
		;
	cmpxchg(&c->dead, 0, ECANCELED);
	return ksk_conn_end(c);
}

/**
 * ksk_conn_down - terminate the stream now
 * @c: the connection
 * @how: KSK_DOWN_SHUTDOWN requires a connection or an attempt; KSK_DOWN_ABORT resets
 *	the connection, also one that is being closed in order, and discards its data
 *
 * Without an abort, the data that fits into the socket is sent first. When this
 * returns, all operations have completed.
 *
 * Context: process, may sleep; never waits for the network. Waits for the device if it
 * still has pages that were sent without a copy.
 * Return: 0, or -ENOTCONN.
 */
int ksk_conn_down(struct ksk_conn *c, enum ksk_down how)
{
	bool end = how == KSK_DOWN_ABORT, reset = false;
	unsigned int noio;
	int ret = 0;

	mutex_lock(&c->mutex);
	noio = ksk_memalloc_save(&c->ep->tun);
	if (!c->sock) {
		if (how == KSK_DOWN_SHUTDOWN) {
			ret = -ENOTCONN;
		} else {
			cmpxchg(&c->dead, 0, ECANCELED);
			ksk_conn_flush(c);
		}
		goto unlock;
	}

	ksk_conn_lock(c);
	if (c->phase != KSK_CONN_DEAD) {
		reset = ksk_conn_finish(c, how);
		end = true;
	} else {
		ksk_conn_flush(c);
	}
	ksk_conn_unlock(c);
	if (end)
		ksk_conn_disconnect(c, reset || how == KSK_DOWN_ABORT);
	ksk_zc_wait(c);
unlock:
	ksk_memalloc_restore(noio);
	mutex_unlock(&c->mutex);
	return ret;
}

/**
 * ksk_conn_detach - give a socket its original callbacks back
 * @c: connection of the socket. While the handshake of TLS runs, the socket has them
 *
 * Context: process, may sleep.
 */
void ksk_conn_detach(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data == c) {
		sk->sk_data_ready = c->saved.data_ready;
		sk->sk_write_space = c->saved.write_space;
		sk->sk_state_change = c->saved.state_change;
		sk->sk_error_report = c->saved.error_report;
		sk->sk_user_data = NULL;
	}
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/*
 * Release the socket. TCP keeps it until all queued data has been sent. The socket stays
 * marked for the reserves, which is harmless. sk_clear_memalloc() is not: the backlog may
 * contain a packet from the reserves. When TCP processes it, an unmarked socket is a
 * BUG().
 */
static void ksk_conn_release(struct ksk_conn *c)
{
	unsigned int noio = ksk_memalloc_save(&c->ep->tun);

	ksk_socket_release(c->sock);
	ksk_memalloc_restore(noio);
}

/**
 * ksk_conn_close - stop callbacks, timers and work items, and release the socket
 * @c: the connection, to which nothing is posted from now on
 *
 * Afterwards the caller may free members of the endpoint, and then calls ksk_conn_exit().
 *
 * Context: process, may sleep.
 */
void ksk_conn_close(struct ksk_conn *c)
{
	if (c->sock)
		ksk_conn_detach(c);
	if (c->sock && c->tls)
		ksk_tls_stop(c->tls, c->sock);
	timer_shutdown_sync(&c->retry);
	cancel_delayed_work_sync(&c->watch.work);
	irq_poll_disable(&c->poll);
	wait_var_event(&c->in_poll, !atomic_read(&c->in_poll));
	cancel_work_sync(&c->work);
	if (c->sock)
		ksk_conn_release(c);
}

/**
 * ksk_conn_exit - free the resources of a connection
 * @c: the connection, closed, or not used since ksk_conn_init()
 */
void ksk_conn_exit(struct ksk_conn *c)
{
	timer_shutdown_sync(&c->retry);
	ksk_rma_exit(c);
	ksk_tls_free(c->tls);
	kfree(c->cm);
	mutex_destroy(&c->mutex);
}
