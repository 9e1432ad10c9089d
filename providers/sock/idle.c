// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Idle connections of FI_EP_RDM endpoints: closing them without loss of messages that
 * the peer sends concurrently.
 *
 * A work item of the endpoint finds idle connections and marks them. The work item of
 * the connection tests with the socket locked that no operation is outstanding. Then it
 * closes the direction in which we send, and continues to read. The peer reads our FIN
 * behind all our bytes, and closes the connection, too. Bytes that it has sent before
 * are received as usual.
 *
 * Until then the connection stays in the table, and posts wait on it. A connection
 * request of the peer would overtake unread bytes, so it is rejected, and the peer
 * repeats it.
 *
 * When the connection has terminated, another connection takes over the waiting
 * operations. If the peer has closed the connection, the next one likewise sends the
 * operations that have not begun.
 *
 * TCP stores the times of the last data in both directions. So no time is stored here.
 */
#include <net/tcp.h>

#include "rdm.h"

static unsigned int ksk_idle_excess(struct ksk_rdm *rdm)
{
	unsigned int max = rdm->idle.max_conns;
	unsigned int n = kofi_peers_count(&rdm->peers);

	return max && n > max ? n - max : 0;
}

/**
 * ksk_idle_watch - schedule the search for idle connections
 * @rdm: the endpoint, with its lock held
 *
 * Context: any.
 */
void ksk_idle_watch(struct ksk_rdm *rdm)
{
	unsigned int ms = rdm->idle.timeout;

	lockdep_assert_held(&rdm->lock);

	if (rdm->state == KSK_RDM_CLOSING)
		return;
	if (ksk_idle_excess(rdm))
		mod_delayed_work(ksk_wq_for(&rdm->ep.tun), &rdm->idle.work, 0);
	else if (ms)
		queue_delayed_work(ksk_wq_for(&rdm->ep.tun), &rdm->idle.work,
				   max(msecs_to_jiffies(ms) / 4, 1UL));
}

/* Time since the last data in either direction, in jiffies */
static u32 ksk_idle_time(const struct ksk_conn *c)
{
	const struct sock *sk = c->sock->sk;
	u32 sent = READ_ONCE(tcp_sk(sk)->lsndtime);
	u32 received = READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime);
	u32 now = tcp_jiffies32;

	return min(now - sent, now - received);
}

/* Is nothing outstanding in both directions? Without the socket's lock this is a guess. */
static bool ksk_idle_quiet(struct ksk_conn *c)
{
	return ksk_tx_quiet(c) && c->tx.state == KSK_TX_IDLE &&
	       list_empty(&c->tx.queue) && list_empty(&c->posts.list) &&
	       !c->tx.acks && !c->rsps.n && !c->rndv.todo &&
	       !c->rndv.granted && !c->rx.have && !c->rx.unexpected &&
	       (!c->rndv.state || list_empty(&c->rndv.state->rts));
}

static bool ksk_idle_expired(const struct ksk_conn *c)
{
	unsigned int ms = ksk_rdm(c->ep)->idle.timeout;

	return ms && ksk_idle_time(c) >= msecs_to_jiffies(ms);
}

/* Test without the socket's lock whether a connection can probably be closed. */
static bool ksk_idle_candidate(struct ksk_peer *peer)
{
	return peer->in_use && ksk_peer_connected(peer) &&
	       !READ_ONCE(peer->conn.dead) && !READ_ONCE(peer->conn.retired) &&
	       !test_bit(KSK_CONN_IDLE, &peer->conn.flags) &&
	       /* ksk_idle_unused() tests this again, with the socket locked */
	       data_race(ksk_idle_quiet(&peer->conn));
}

static void ksk_idle_mark(struct ksk_peer *peer)
{
	set_bit(KSK_CONN_IDLE, &peer->conn.flags);
	ksk_conn_queue(&peer->conn);
}

/* Find the candidate with the longest idle time, or NULL. */
static struct ksk_peer *ksk_idle_oldest(struct ksk_rdm *rdm)
{
	struct ksk_peer *peer, *oldest = NULL;
	u32 time, longest = 0;

	list_for_each_entry(peer, &rdm->conns, node) {
		if (!ksk_idle_candidate(peer))
			continue;
		time = ksk_idle_time(&peer->conn);
		if (oldest && time <= longest)
			continue;
		oldest = peer;
		longest = time;
	}
	return oldest;
}

/* ksk_rdm_idle.work */
static void ksk_idle_work(struct work_struct *work)
{
	struct ksk_rdm *rdm = container_of(to_delayed_work(work),
					   struct ksk_rdm, idle.work);
	unsigned int ms = rdm->idle.timeout, excess, going = 0;
	unsigned long delay = ms ? msecs_to_jiffies(ms) / 4 : HZ;
	struct ksk_peer *peer;

	spin_lock_irq(&rdm->lock);
	list_for_each_entry(peer, &rdm->conns, node) {
		if (ksk_idle_candidate(peer) && ksk_idle_expired(&peer->conn))
			ksk_idle_mark(peer);
		going += peer->in_use &&
			 (READ_ONCE(peer->conn.retired) ||
			  READ_ONCE(peer->conn.dead) ||
			  test_bit(KSK_CONN_IDLE, &peer->conn.flags));
	}
	excess = ksk_idle_excess(rdm);
	/* one that was busy may have become idle */
	if (excess)
		delay = min_t(unsigned long, delay, HZ / 10);
	/* one at a time: the search visits all connections with interrupts off */
	peer = excess > going ? ksk_idle_oldest(rdm) : NULL;
	if (peer) {
		ksk_idle_mark(peer);
		if (excess > going + 1)
			delay = 1;
	}
	if (rdm->state != KSK_RDM_CLOSING &&
	    (excess || (ms && !list_empty(&rdm->conns))))
		queue_delayed_work(ksk_wq_for(&rdm->ep.tun), &rdm->idle.work,
				   max(delay, 1UL));
	spin_unlock_irq(&rdm->lock);
}

/**
 * ksk_idle_unused - test whether a marked connection can be closed
 * @c: the connection, which is established
 *
 * Context: locked, process.
 * Return: true if nothing is outstanding in both directions, as far as this side knows.
 */
bool ksk_idle_unused(struct ksk_conn *c)
{
	struct tcp_sock *tp = tcp_sk(c->sock->sk);

	return ksk_idle_quiet(c) &&
	       skb_queue_empty(&c->sock->sk->sk_receive_queue) &&
	       RB_EMPTY_ROOT(&tp->out_of_order_queue) &&
	       tp->snd_una == tp->write_seq &&
	       (ksk_idle_expired(c) || ksk_idle_excess(ksk_rdm(c->ep)));
}

/**
 * ksk_idle_retired - count an idle connection that is being closed
 * @c: the connection
 *
 * Context: locked, process.
 */
void ksk_idle_retired(struct ksk_conn *c)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);

	spin_lock_irq(&rdm->lock);
	ksk_stat_inc(&rdm->stats.idle_closed);
	spin_unlock_irq(&rdm->lock);
}

/* Does one of our operations wait until the peer reads, or closes the connection? */
static bool ksk_idle_waits(struct ksk_conn *c)
{
	return ksk_tx_waiting(c) || c->frame.hdr_len || atomic_read(&c->zc.out);
}

/**
 * ksk_idle_look - limit the time for closing a connection
 * @c: the connection, which begins no frame
 *
 * While one of our operations waits, the peer must close the connection, or read more of
 * the last frame, within the connect timeout. While the receiver is stalled, the time begins again.
 *
 * Context: locked, process.
 */
void ksk_idle_look(struct ksk_conn *c)
{
	struct ksk_peer *peer = ksk_peer(c);
	u32 now = tcp_jiffies32, sent = tcp_sk(c->sock->sk)->lsndtime;

	if (c->rx.stalled || !ksk_idle_waits(c) || !peer->waits_since)
		peer->waits_since = now | 1;
	else if (min((s32)(now - peer->waits_since), (s32)(now - sent)) >
		 (s32)msecs_to_jiffies(c->ep->tun.connect_timeout))
		ksk_conn_abort(c, ETIMEDOUT);
}

/*
 * Test whether all posted operations have begun. If so, posts are refused from here on,
 * and find the next connection: they would fail with this one.
 */
static bool ksk_idle_empty(struct ksk_conn *c)
{
	unsigned long irq;
	bool empty;

	spin_lock_irqsave(&c->posts.lock, irq);
	empty = list_empty(&c->posts.list) && list_empty(&c->tx.queue);
	c->posts.closed |= empty;
	spin_unlock_irqrestore(&c->posts.lock, irq);
	return empty;
}

/*
 * Replace a connection, under the endpoint's lock, and move operations that have not
 * begun. Posts are refused from now on. Without such an operation @again is not used.
 */
static bool ksk_idle_move(struct ksk_rdm *rdm, struct ksk_conn *c,
			  struct ksk_peer *again)
{
	unsigned int n;

	lockdep_assert_held(&rdm->lock);

	/* both lists in one; posts are refused from the move on */
	spin_lock(&c->posts.lock);
	list_splice_init(&c->tx.queue, &c->posts.list);
	c->posts.n += c->tx.nqueued;
	c->tx.nqueued = 0;
	spin_unlock(&c->posts.lock);
	ksk_tx_move(c, &again->conn);
	n = again->conn.posts.n;
	if (!n)
		return false;
	ksk_rdm_replace(rdm, ksk_peer(c), again);
	again->early += n;
	kofi_peers_add_waiting(&rdm->peers, n);
	ksk_peer_begin(again);
	return true;
}

/**
 * ksk_idle_hand_over - move operations from a connection that the peer has closed
 * @c: the connection, which is about to terminate
 *
 * If an operation has begun and is not answered, it and all later operations fail.
 * Otherwise the next connection sends the operations. That one may terminate before it
 * has sent a frame, as the peer may close idle connections before the first frame
 * arrives. Then others follow until the deadline of the connect timeout.
 *
 * Context: locked, process.
 */
void ksk_idle_hand_over(struct ksk_conn *c)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *again, *peer = ksk_peer(c);
	bool move, tried = peer->successor && !c->stats.tx_frames;
	unsigned long irq;

	if (!ksk_tx_quiet(c) || ksk_idle_empty(c) ||
	    (tried && time_after(jiffies, peer->retry.deadline)))
		return;
	again = tried ? ksk_peer_again(rdm, peer) :
			ksk_peer_new(rdm, &peer->base.addr, GFP_NOIO);
	if (!again)
		return;
	again->successor = true;
	spin_lock_irqsave(&rdm->lock, irq);
	/* the removal of an address has completed all operations for it */
	move = peer->in_use && rdm->state != KSK_RDM_CLOSING &&
	       !kofi_peer_is_unknown(&rdm->peers, &peer->base.addr) &&
	       ksk_idle_move(rdm, c, again);
	spin_unlock_irqrestore(&rdm->lock, irq);
	if (!move)
		ksk_peer_free(again);
}

void ksk_idle_init(struct ksk_rdm *rdm)
{
	INIT_DELAYED_WORK(&rdm->idle.work, ksk_idle_work);
	rdm->idle.timeout = READ_ONCE(ksk_rdm_idle_timeout);
	rdm->idle.max_conns = READ_ONCE(ksk_rdm_max_conns);
}

/* -------------------------------- peers that restart with an unchanged number */

/*
 * Userspace sends the number of its process, which a container repeats. If a connected
 * peer requests another connection with the same number, it may be another program. The
 * request is rejected, and the peer repeats it. The work item of the connection then
 * checks whether the peer still has it.
 *
 * If the peer has closed the connection behind unread bytes, the connection becomes a
 * tail: it transmits nothing, and all its bytes are read, even after a reset. A new
 * connection takes the operations that have not begun, and later posts. The receiver does
 * not read the new connection before it has read the tail. A peer has at most one tail: if
 * the peer has closed the new connection, too, the tail is aborted.
 *
 * If the peer has not closed the connection, an acknowledgment is sent. A host that does
 * not know the connection answers with a reset. A peer that is alive stays connected.
 */

/**
 * ksk_restart_ask - check a connection after another request with the same number
 * @peer: the connection, under the endpoint's lock
 *
 * Context: any.
 */
void ksk_restart_ask(struct ksk_peer *peer)
{
	if (ksk_peer_connected(peer))
		ksk_conn_ask(&peer->conn);
}

/* Make the connection a tail. Move operations that have not begun, if no other is left. */
static bool ksk_restart_leave(struct ksk_rdm *rdm, struct ksk_conn *c,
			      struct ksk_peer *again)
{
	struct ksk_peer *peer = ksk_peer(c);

	if (!peer->in_use || rdm->state == KSK_RDM_CLOSING ||
	    !ksk_peers_leave(rdm, peer))
		return false;
	ksk_stat_inc(&rdm->stats.restarts);
	set_bit(KSK_CONN_TAIL, &c->flags);
	WRITE_ONCE(c->retired, true);
	if (ksk_tx_quiet(c) && ksk_idle_move(rdm, c, again))
		return true;
	spin_lock(&c->posts.lock);
	c->posts.closed = true;
	spin_unlock(&c->posts.lock);
	ksk_rdm_unlink(rdm, peer);
	return false;
}

/**
 * ksk_restart_closed - replace a connection that the peer has closed
 * @c: the connection, with unread bytes before the close
 *
 * Context: locked, process.
 */
void ksk_restart_closed(struct ksk_conn *c)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *again;
	unsigned long irq;
	bool used;

	/* the receiver terminates a connection without unread bytes */
	if (!c->rx.stalled && !tcp_inq(c->sock->sk))
		return;
	/* announced messages would take receives, and their payload never arrives */
	if (c->rndv.state && (c->rndv.state->stalled ||
			      !list_empty(&c->rndv.state->rts))) {
		ksk_conn_abort(c, ECONNRESET);
		return;
	}
	again = ksk_peer_new(rdm, &ksk_peer(c)->base.addr, GFP_NOIO);
	if (!again)
		return;
	again->successor = true;
	spin_lock_irqsave(&rdm->lock, irq);
	used = ksk_restart_leave(rdm, c, again);
	spin_unlock_irqrestore(&rdm->lock, irq);
	if (!used)
		ksk_peer_free(again);
}

/**
 * ksk_restart_over - let the receiver read the connection behind a tail
 * @rdm: the endpoint, with its lock held
 * @peer: a connection that has terminated, perhaps a tail
 *
 * Context: any.
 */
void ksk_restart_over(struct ksk_rdm *rdm, const struct ksk_peer *peer)
{
	struct ksk_peer *next;

	if (!ksk_peers_left(rdm, peer))
		return;
	next = ksk_rdm_find(rdm, &peer->base.addr);
	if (!next)
		return;
	/* stored messages of the tail count as messages of the next connection */
	ksk_unexpected_join(rdm, next);
	clear_bit(KSK_CONN_BEHIND, &next->conn.flags);
	/* a connection that is not established is scheduled when it is */
	if (ksk_peer_connected(next))
		irq_poll_sched(&next->conn.poll);
}
