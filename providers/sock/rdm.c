// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints of type FI_EP_RDM: one endpoint, and a connection to each of many peers.
 *
 * Addresses
 *
 * An endpoint is known by the address and port at which it listens. A connecting peer
 * is identified by the address from which it connects, and the port in its request.
 *
 * Connections
 *
 * The first post to a peer makes a connection, which both sides then use. A hash table
 * contains the connection for posts to each peer. Posts search it under RCU; once a
 * post has used a connection, later posts find it by the peer's number. Operations
 * that are posted before the connection is established wait there, in order. When another
 * connection replaces it, they move to that one before a post can find it.
 *
 * If our request is rejected (rdm_accept.c), it is repeated for as long as a connect may
 * take. Then a connection that the peer is about to make, or believes to have, is used.
 *
 * Termination
 *
 * When a connection is terminated, its incomplete operations fail with the reason. The next
 * post connects again. If the peer has closed the connection in order, operations that have
 * not been sent move to a new one (idle.c). A peer that connects with another number has
 * restarted, and its old connection is terminated. A terminated connection is removed
 * from the table, and a work item frees it after a grace period.
 *
 * Locks
 *
 * ksk_rdm.lock is inside the socket's lock, and ksk_posts.lock is inside ksk_rdm.lock.
 */
#include <linux/slab.h>
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <net/tcp.h>

#include "rdm.h"

/* ----------------------------------------------------------------- the table */

/* Needs an RCU reader or the lock; may return a terminated connection. */
struct ksk_peer *ksk_rdm_find(struct ksk_rdm *rdm, const union kofi_ip *addr)
{
	return ksk_peer_of(kofi_peers_find(&rdm->peers, addr));
}

/* Find the connection for posts to an address, unless it has been terminated. */
struct ksk_peer *ksk_rdm_current(struct ksk_rdm *rdm,
				 const union kofi_ip *addr)
{
	struct ksk_peer *peer;

	KUNIT_STATIC_STUB_REDIRECT(ksk_rdm_current, rdm, addr);

	lockdep_assert_held(&rdm->lock);

	/* under the lock, no connection in the table is freed */
	peer = ksk_rdm_find(rdm, addr);
	return peer && !READ_ONCE(peer->conn.dead) ? peer : NULL;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_current);

static void ksk_rdm_settle(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	lockdep_assert_held(&rdm->lock);

	kofi_peers_unwait(&rdm->peers, peer->early);
	peer->early = 0;
}

/* Posts use the connection no longer. */
void ksk_rdm_unlink(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	lockdep_assert_held(&rdm->lock);

	ksk_rdm_settle(rdm, peer);
	/* stored messages that it leaves count for the next connection */
	ksk_unexpected_leave(rdm, peer);
	if (!peer->in_use)
		return;
	kofi_peers_del(&rdm->peers, &peer->base);
	ksk_peers_past(rdm, peer);
	peer->in_use = false;
}

/* Let posts use a connection. */
int ksk_rdm_link(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	struct ksk_peer *old;
	int err;

	lockdep_assert_held(&rdm->lock);

	/* a terminated connection may still be in the table */
	old = ksk_rdm_find(rdm, &peer->base.addr);
	if (old)
		ksk_rdm_unlink(rdm, old);
	err = kofi_peers_add(&rdm->peers, &peer->base, ksk_gfp_atomic(&rdm->ep));
	if (err)
		return err;
	ksk_peers_follow(rdm, peer);
	peer->in_use = true;
	list_add_tail(&peer->node, &rdm->conns);
	ksk_unexpected_join(rdm, peer);
	return 0;
}

/**
 * ksk_tx_move - move posted operations to another connection
 * @from: a connection without begun operations; posts to it are refused afterwards
 * @to: the connection that replaces it, without posted operations
 *
 * Context: any; the caller prevents concurrent posts to either.
 */
void ksk_tx_move(struct ksk_conn *from, struct ksk_conn *to)
{
	struct ksk_txop *op;
	unsigned long irq;
	unsigned int n;
	LIST_HEAD(list);

	spin_lock_irqsave(&from->posts.lock, irq);
	from->posts.closed = true;
	list_splice_init(&from->posts.list, &list);
	n = from->posts.n;
	from->posts.n = 0;
	spin_unlock_irqrestore(&from->posts.lock, irq);
	list_for_each_entry(op, &list, node)
		op->conn = to;
	spin_lock_irqsave(&to->posts.lock, irq);
	list_splice(&list, &to->posts.list);
	to->posts.n += n;
	spin_unlock_irqrestore(&to->posts.lock, irq);
}

/* Replace a connection by another one, which takes over the waiting operations. */
void ksk_rdm_replace(struct ksk_rdm *rdm, struct ksk_peer *old,
		     struct ksk_peer *peer)
{
	lockdep_assert_held(&rdm->lock);

	if (!ksk_peer_connected(old))
		ksk_tx_move(&old->conn, &peer->conn);
	kofi_peers_replace(&rdm->peers, &old->base, &peer->base);
	ksk_peers_follow(rdm, peer);
	ksk_peers_past(rdm, old);
	peer->in_use = true;
	old->in_use = false;
	swap(peer->early, old->early);
	list_add_tail(&peer->node, &rdm->conns);
	ksk_unexpected_leave(rdm, old);
	ksk_unexpected_join(rdm, peer);
}

/* ----------------------------------------------------- lifetime of connections */

static const struct ksk_conn_ops ksk_peer_ops;

struct ksk_peer *ksk_peer_new(struct ksk_rdm *rdm,
			      const union kofi_ip *addr, gfp_t gfp)
{
	struct ksk_peer *peer;

	peer = kmem_cache_alloc_node(ksk_peers, gfp | __GFP_NOWARN | __GFP_ZERO,
				     rdm->ep.base.domain->node);
	if (!peer)
		return NULL;
	ksk_conn_init(&peer->conn, &rdm->ep, &ksk_peer_ops);
	peer->base.addr = *addr;
	peer->disowned = true;
	kofi_rxmsg_from(&peer->conn.rxmsg, &peer->base.addr.sa);
	peer->retry.deadline = jiffies +
			       msecs_to_jiffies(rdm->ep.tun.connect_timeout);
	INIT_LIST_HEAD(&peer->node);
	INIT_LIST_HEAD(&peer->deferred);
	INIT_LIST_HEAD(&peer->held);
	ksk_rndv_init(&peer->rndv);
	peer->conn.rndv.min = rdm->ep.tun.rendezvous_min;
	return peer;
}

void ksk_peer_free(struct ksk_peer *peer)
{
	ksk_conn_exit(&peer->conn);
	kmem_cache_free(ksk_peers, peer);
}

static void ksk_rdm_cm_fill(const struct ksk_rdm *rdm, struct ksk_rdm_cm *cm)
{
	union kofi_ip name = rdm->name;

	*cm = (struct ksk_rdm_cm) {
		.version = KSK_RDM_VERSION,
		.port = *kofi_ip_port(&name.sa),
		.pid = cpu_to_be32(rdm->pid),
	};
}

/* ksk_conn_ops.start: the peer knows us by the address that we connect from. */
static int ksk_peer_start(struct ksk_conn *c)
{
	const struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *peer = ksk_peer(c);
	union kofi_ip src = rdm->name;
	struct ksk_rdm_cm cm;

	if (peer->accepted)
		return 0;
	*kofi_ip_port(&src.sa) = 0;
	ksk_rdm_cm_fill(rdm, &cm);
	return ksk_cm_start(c, &peer->base.addr, &src, 0, &cm, sizeof(cm));
}

/*
 * ksk_conn_ops.request: from here on, a request of the peer crosses ours. False if one has
 * been accepted before, or if the address has been removed.
 */
static bool ksk_peer_request(struct ksk_conn *c)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *peer = ksk_peer(c);
	unsigned long irq;
	bool send;

	spin_lock_irqsave(&rdm->lock, irq);
	send = peer->in_use;
	if (send && peer->base.phase == KOFI_PEER_CONNECTING)
		kofi_peer_step(&peer->base, KOFI_PEER_REQUESTING);
	spin_unlock_irqrestore(&rdm->lock, irq);
	return send;
}

/* ksk_conn_ops.established: the caller then sends the posted operations. */
static void ksk_peer_established(struct ksk_conn *c, const void *data,
				 size_t len)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	const struct ksk_rdm_cm *cm = data;
	struct ksk_peer *peer = ksk_peer(c);
	unsigned long irq;

	if (!peer->accepted && (len != sizeof(*cm) || !cm->pid ||
				(cm->version & ~KSK_RDM_AGREED) > KSK_RDM_VERSION)) {
		ksk_conn_violated(c, "bad answer");
		ksk_conn_abort(c, EPROTO);
		return;
	}
	/* we offered no extensions */
	c->ext = 0;
	spin_lock_irqsave(&rdm->lock, irq);
	if (!peer->accepted) {
		peer->base.life = be32_to_cpu(cm->pid);
		/* a peer of version 0 repeats the version of the request */
		if (cm->version > KSK_RDM_AGREED)
			c->rndv.state = &peer->rndv;
		ksk_stat_inc(&rdm->stats.connects);
	}
	ksk_rdm_settle(rdm, peer);
	/* the socket is visible to posts and removals, which look without the lock */
	kofi_peer_step(&peer->base, KOFI_PEER_CONNECTED);
	ksk_idle_watch(rdm);
	spin_unlock_irqrestore(&rdm->lock, irq);
	kofi_ep_unblock(&c->ep->base);
}

/**
 * ksk_peer_again - make a connection for another attempt after a failed one
 * @rdm: the endpoint
 * @peer: the failed connection; its operations have waited since before its deadline
 *
 * Context: process; does not wait for memory to be written back.
 * Return: a connection for ksk_peer_begin(); NULL without memory.
 */
struct ksk_peer *ksk_peer_again(struct ksk_rdm *rdm, const struct ksk_peer *peer)
{
	struct ksk_peer *again = ksk_peer_new(rdm, &peer->base.addr, GFP_NOIO);

	if (!again)
		return NULL;
	again->retry = peer->retry;
	kofi_retry_next(&again->retry);
	again->successor = peer->successor;
	return again;
}

/**
 * ksk_peer_repeat - connect again for operations that wait for a failed connection
 * @rdm: the endpoint
 * @peer: the connection, which the caller aborts. Without memory, and after the deadline of
 *	its attempts, the operations stay there
 *
 * Context: process; does not wait for memory to be written back.
 */
void ksk_peer_repeat(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	struct ksk_peer *again;
	unsigned long irq;
	bool start;

	if (time_after(jiffies, peer->retry.deadline))
		return;
	again = ksk_peer_again(rdm, peer);
	if (!again)
		return;
	spin_lock_irqsave(&rdm->lock, irq);
	start = peer->in_use && peer->early && rdm->state != KSK_RDM_CLOSING &&
		!READ_ONCE(peer->conn.dead);
	if (start) {
		ksk_rdm_replace(rdm, peer, again);
		ksk_peer_begin(again);
	}
	spin_unlock_irqrestore(&rdm->lock, irq);
	if (!start)
		ksk_peer_free(again);
}

/*
 * The peer has rejected our request, because it has sent a request itself, or has not
 * noticed yet that an earlier connection was terminated.
 */
static void ksk_peer_rejected(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	if (time_after(jiffies, peer->retry.deadline))
		ksk_conn_abort(&peer->conn, ETIMEDOUT);
	else
		ksk_peer_repeat(rdm, peer);
}

/* All operations of a connection have completed: leave it to the reaper. */
static void ksk_peer_over(struct ksk_conn *c)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *peer = ksk_peer(c);
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	ksk_rdm_unlink(rdm, peer);
	ksk_restart_over(rdm, peer);
	list_del_init(&peer->deferred);
	list_del_init(&peer->held);
	kofi_peer_step(&peer->base, KOFI_PEER_DEAD);
	kofi_peers_dismiss(&rdm->peers, &peer->base);
	if (rdm->state != KSK_RDM_CLOSING) {
		list_move_tail(&peer->node, &rdm->ended);
		queue_work(c->wq, &rdm->reap);
	}
	spin_unlock_irqrestore(&rdm->lock, irq);
	kofi_ep_unblock(&c->ep->base);
}

/*
 * ksk_conn_ops.ended: the connection was lost, or the peer has closed it, which it may do
 * if the connection is idle.
 */
static void ksk_peer_ended(struct ksk_conn *c)
{
	int err = READ_ONCE(c->dead);

	if (err != ESHUTDOWN && err != ECANCELED)
		kofi_ep_peer_lost(&c->ep->base, &ksk_peer(c)->base.addr.sa, err);
	ksk_peer_over(c);
}

/* ksk_conn_ops.failed: called for an answer, and after all operations have completed. */
static void ksk_peer_failed(struct ksk_conn *c, int err, int prov_errno,
			    const void *data, size_t len)
{
	if (c->phase == KSK_CONN_DEAD)
		ksk_peer_over(c);
	else if (len == sizeof(struct ksk_rdm_cm))
		ksk_peer_rejected(ksk_rdm(c->ep), ksk_peer(c));
}

static const struct ksk_conn_ops ksk_peer_ops = {
	.start		= ksk_peer_start,
	.request	= ksk_peer_request,
	.established	= ksk_peer_established,
	.failed		= ksk_peer_failed,
	.ended		= ksk_peer_ended,
	.hand_over	= ksk_idle_hand_over,
	.unused		= ksk_idle_unused,
	.retired	= ksk_idle_retired,
	.closing	= ksk_idle_look,
	.closed		= ksk_restart_closed,
	.many		= true,
};

static void ksk_rdm_reap(struct work_struct *work)
{
	struct ksk_rdm *rdm = container_of(work, struct ksk_rdm, reap);
	struct ksk_peer *peer, *next;

	spin_lock_irq(&rdm->lock);
	list_splice_init(&rdm->ended, &rdm->reaped);
	spin_unlock_irq(&rdm->lock);
	if (list_empty(&rdm->reaped))
		return;
	/* wait for posts that have found one of these connections */
	synchronize_rcu();
	list_for_each_entry_safe(peer, next, &rdm->reaped, node) {
		/* the work item that accepts it may still use the socket, with the mutex */
		mutex_lock(&peer->conn.mutex);
		mutex_unlock(&peer->conn.mutex);
		/* the release of pages uses the socket */
		ksk_zc_wait(&peer->conn);
		ksk_conn_close(&peer->conn);
		spin_lock_irq(&rdm->lock);
		list_del(&peer->node);
		ksk_conn_stats_add(&rdm->stats.conns, &peer->conn.stats);
		spin_unlock_irq(&rdm->lock);
		ksk_peer_free(peer);
	}
}

/* -------------------------------------------------------------------- posting */

/* Begin to connect to a peer. */
static struct ksk_peer *ksk_rdm_connect(struct ksk_rdm *rdm,
					const union kofi_ip *addr)
{
	struct ksk_peer *peer;

	lockdep_assert_held(&rdm->lock);

	peer = ksk_peer_new(rdm, addr, ksk_gfp_atomic(&rdm->ep));
	if (!peer)
		return NULL;
	if (ksk_rdm_link(rdm, peer)) {
		/* no ksk_peer_free(): nothing is in use, and this may be any context */
		kmem_cache_free(ksk_peers, peer);
		return NULL;
	}
	ksk_peer_begin(peer);
	return peer;
}

/*
 * Leave an operation to a connection that is not established yet. Returns 1 if the
 * connection is established, or has just been terminated.
 */
static int ksk_rdm_add_early(struct ksk_rdm *rdm, const union kofi_ip *addr,
			     struct ksk_txop *op)
{
	struct ksk_peer *peer;

	lockdep_assert_held(&rdm->lock);

	if (rdm->state == KSK_RDM_CLOSING)
		return -ESHUTDOWN;
	if (!READ_ONCE(rdm->ep.domain->ifindex))
		return -ENETDOWN;
	peer = ksk_rdm_current(rdm, addr);
	if (peer && ksk_peer_connected(peer))
		return 1;
	if (kofi_peers_full(&rdm->peers))
		return -EAGAIN;
	if (!peer)
		peer = ksk_rdm_connect(rdm, addr);
	if (!peer)
		return -ENOMEM;
	op->conn = &peer->conn;
	/* it may be terminated without this lock, and then is no longer current */
	if (ksk_tx_leave(&peer->conn, op, true))
		return 1;
	peer->early++;
	kofi_peers_add_waiting(&rdm->peers, 1);
	return 0;
}

/* Later posts find the connection by the number of the peer. */
static void ksk_rdm_remember(struct ksk_rdm *rdm, struct ksk_peer *peer,
			     fi_addr_t fi_addr, unsigned long changes)
{
	unsigned long irq;

	if (kofi_peers_renew(&rdm->peers, &peer->base, fi_addr, changes))
		return;
	spin_lock_irqsave(&rdm->lock, irq);
	if (peer->in_use)
		kofi_peers_set_dest(&rdm->peers, &peer->base, fi_addr, changes);
	spin_unlock_irqrestore(&rdm->lock, irq);
}

/* Find the connection by address, and connect if there is none. */
static noinline int ksk_rdm_add_by_addr(struct ksk_rdm *rdm, fi_addr_t fi_addr,
					struct ksk_txop *op)
{
	unsigned long irq, changes = kofi_peers_changes(&rdm->peers);
	struct ksk_peer *peer;
	union kofi_ip addr;
	int err;

	err = kofi_av_get(rdm->ep.base.av, fi_addr, &addr);
	while (!err) {
		peer = ksk_rdm_find(rdm, &addr);
		/* posts to connected peers share no lock */
		if (peer && ksk_peer_connected(peer)) {
			ksk_rdm_remember(rdm, peer, fi_addr, changes);
			op->conn = &peer->conn;
			err = ksk_tx_add(&peer->conn, op);
			if (err != -ESHUTDOWN)
				break;
		}
		spin_lock_irqsave(&rdm->lock, irq);
		err = ksk_rdm_add_early(rdm, &addr, op);
		spin_unlock_irqrestore(&rdm->lock, irq);
		if (err <= 0)
			break;
		err = 0;	/* search again */
	}
	return err;
}

/*
 * ksk_ep_type.add: returns -EAGAIN while too many operations wait for connections, -ENOMEM
 * without memory for a connection, -ENETDOWN if the interface was removed.
 */
static int ksk_rdm_add(struct ksk_ep *ep, fi_addr_t fi_addr,
		       struct ksk_txop *op)
{
	struct ksk_rdm *rdm = ksk_rdm(ep);
	struct kofi_peer *peer;
	int err = -ESHUTDOWN;

	rcu_read_lock();
	peer = kofi_peers_dest(&rdm->peers, fi_addr);
	if (likely(peer)) {
		op->conn = &ksk_peer_of(peer)->conn;
		err = ksk_tx_add(op->conn, op);
	}
	if (unlikely(err == -ESHUTDOWN))
		err = ksk_rdm_add_by_addr(rdm, fi_addr, op);
	rcu_read_unlock();
	return err;
}

/* kofi_ep_ops.send_deferred */
static void ksk_rdm_send_deferred(struct fid_ep *fid)
{
	struct ksk_rdm *rdm = ksk_rdm(ksk_ep(fid));
	struct ksk_peer *peer;
	unsigned long irq;

	/* a connection is freed a grace period after its removal from the list */
	rcu_read_lock();
	do {
		spin_lock_irqsave(&rdm->lock, irq);
		peer = list_first_entry_or_null(&rdm->deferred, struct ksk_peer,
						deferred);
		if (peer)
			list_del_init(&peer->deferred);
		spin_unlock_irqrestore(&rdm->lock, irq);
		if (peer)
			ksk_tx_send_deferred(&peer->conn);
	} while (peer);
	rcu_read_unlock();
}

/* ksk_ep_type.crowded */
static bool ksk_rdm_is_crowded(struct ksk_ep *ep, fi_addr_t fi_addr)
{
	struct ksk_rdm *rdm = ksk_rdm(ep);
	struct ksk_peer *peer;
	union kofi_ip addr;
	bool crowded = false;

	if (!kofi_peers_full(&rdm->peers)) {
		WRITE_ONCE(ep->crowded, false);
		return false;
	}
	rcu_read_lock();
	/* a post to an address that the vector lacks gets its own error */
	if (!kofi_av_get(ep->base.av, fi_addr, &addr)) {
		peer = ksk_rdm_find(rdm, &addr);
		crowded = !peer || !ksk_peer_connected(peer) ||
			  READ_ONCE(peer->conn.dead);
	}
	rcu_read_unlock();
	return crowded;
}

/* ksk_ep_type.refused */
static void ksk_rdm_refused(struct ksk_ep *ep)
{
	struct ksk_rdm *rdm = ksk_rdm(ep);
	unsigned long irq;
	bool full;

	/* posts that follow are refused before they take a record */
	WRITE_ONCE(ep->crowded, true);
	/* a post to a connected peer may have been refused, as it lacked this record */
	kofi_ep_unblock(&ep->base);
	/* a context that decreases the number needs the lock, too, and then finds the mark */
	spin_lock_irqsave(&rdm->lock, irq);
	full = kofi_ep_retry(&ep->base, kofi_peers_full(&rdm->peers));
	spin_unlock_irqrestore(&rdm->lock, irq);
	if (!full)
		kofi_ep_unblock(&ep->base);
}

/* kofi_ep_ops.peers_added */
static void ksk_rdm_peers_added(struct fid_ep *fid)
{
	struct ksk_rdm *rdm = ksk_rdm(ksk_ep(fid));
	struct ksk_peer *peer;

	spin_lock_irq(&rdm->lock);
	/* nothing is received after this */
	if (rdm->state == KSK_RDM_CLOSING)
		goto unlock;
	ksk_unexpected_own(rdm);
	list_for_each_entry(peer, &rdm->conns, node) {
		kofi_peers_recount(&rdm->peers, &peer->base);
		if (!READ_ONCE(peer->unnamed))
			continue;
		WRITE_ONCE(peer->unnamed, false);
		irq_poll_sched(&peer->conn.poll);
	}
unlock:
	spin_unlock_irq(&rdm->lock);
}

/*
 * Abort the connection to a removed address, if there is one, and take it from posts, even
 * if it has been terminated otherwise: the address may be inserted again. If it is
 * established, it must be @reading, with its socket locked. Returns false if @reading is
 * out of date.
 */
static bool ksk_rdm_cancel(struct ksk_rdm *rdm, const union kofi_ip *addr,
			   const struct ksk_peer *reading)
{
	struct ksk_peer *peer;
	bool same = true;

	spin_lock_irq(&rdm->lock);
	peer = ksk_rdm_find(rdm, addr);
	if (peer)
		same = reading == (ksk_peer_connected(peer) ? peer : NULL);
	if (same && peer) {
		ksk_conn_abort(&peer->conn, ECANCELED);
		ksk_rdm_unlink(rdm, peer);
	}
	if (same) {
		ksk_unexpected_disown(rdm, addr);
		ksk_peers_forget(rdm, addr);
	}
	spin_unlock_irq(&rdm->lock);
	return same;
}

/*
 * Cancel a peer while its connection is not being read: otherwise messages that its reader
 * still delivers would follow messages of a later connection. Called in an RCU read
 * section, which keeps connections of an endpoint that is not being closed.
 */
static bool ksk_rdm_remove(struct ksk_rdm *rdm, const union kofi_ip *addr)
{
	struct ksk_peer *peer = ksk_rdm_find(rdm, addr);
	struct sock *sk;
	bool done;

	/*
	 * Nothing is read before ksk_peer_established(). The socket's lock is outside
	 * ksk_rdm.lock; ksk_rdm_cancel() checks again under both.
	 */
	if (!peer || !ksk_peer_connected(peer))
		return ksk_rdm_cancel(rdm, addr, NULL);
	sk = peer->conn.sock->sk;
	spin_lock_bh(&sk->sk_lock.slock);
	done = ksk_rdm_cancel(rdm, addr, peer);
	spin_unlock_bh(&sk->sk_lock.slock);
	return done;
}

/* kofi_ep_ops.peer_removed */
static void ksk_rdm_peer_removed(struct fid_ep *fid,
				 const struct sockaddr *addr)
{
	struct ksk_rdm *rdm = ksk_rdm(ksk_ep(fid));
	union kofi_ip key;

	if (kofi_ip_peer(addr, kofi_ip_len(addr), &key))
		return;
	mutex_lock(&rdm->removal);
	rcu_read_lock();
	while (!rdm->gone && !ksk_rdm_remove(rdm, &key))
		;
	rcu_read_unlock();
	mutex_unlock(&rdm->removal);
}

/* --------------------------------------------------------------- the endpoint */

/* ksk_ep_type.abort: terminate all connections. */
static void ksk_rdm_abort(struct ksk_ep *ep, int err)
{
	struct ksk_rdm *rdm = ksk_rdm(ep);
	struct ksk_peer *peer;
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	list_for_each_entry(peer, &rdm->conns, node)
		ksk_conn_abort(&peer->conn, err);
	spin_unlock_irqrestore(&rdm->lock, irq);
}

static int ksk_rdm_listen(struct ksk_rdm *rdm)
{
	struct ksk_listener *l = &rdm->listener;
	unsigned int noio = ksk_memalloc_save(&rdm->ep.tun);
	struct sockaddr_storage ss = {};
	int err;

	l->src = rdm->ep.src;
	l->tun = rdm->ep.tun;
	l->net = rdm->ep.base.domain->fabric->net;
	l->info = rdm->ep.base.info;
	l->ifindex = READ_ONCE(rdm->ep.domain->ifindex);
	err = ksk_listener_start(l);
	if (!err)
		err = kernel_getsockname(l->sock, (struct sockaddr *)&ss);
	if (err >= 0) {
		err = 0;
		memcpy(&rdm->name, &ss, kofi_ip_len((struct sockaddr *)&ss));
		spin_lock_irq(&rdm->lock);
		rdm->state = KSK_RDM_LISTENING;
		spin_unlock_irq(&rdm->lock);
		queue_work(ksk_wq_for(&rdm->ep.tun), &rdm->accept);
	}
	ksk_memalloc_restore(noio);
	return err;
}

static int ksk_rdm_enable(struct fid_ep *fid)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct ksk_rdm *rdm = ksk_rdm(ep);
	int err = -ESHUTDOWN;

	mutex_lock(&rdm->mutex);
	if (rdm->state == KSK_RDM_CLOSING)
		goto unlock;
	err = -ENETDOWN;
	if (!READ_ONCE(ep->domain->ifindex))
		goto unlock;
	err = ksk_ep_alloc(ep);
	if (err)
		goto unlock;
	/* once per endpoint, and not while memory is short */
	ksk_ep_reserve(ep);
	err = ksk_rdm_listen(rdm);
	if (err) {
		kofi_rxq_exit(&ep->rxq);
		ksk_tx_exit(ep);
	}
unlock:
	mutex_unlock(&rdm->mutex);
	return err;
}

static void ksk_rdm_stop(struct fid_ep *fid, enum ksk_down how)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct ksk_rdm *rdm = ksk_rdm(ep);
	struct ksk_peer *peer;
	bool first;

	mutex_lock(&rdm->mutex);
	spin_lock_irq(&rdm->lock);
	first = rdm->state != KSK_RDM_CLOSING;
	rdm->state = KSK_RDM_CLOSING;
	spin_unlock_irq(&rdm->lock);
	if (first)
		ksk_listener_stop(&rdm->listener);
	cancel_work_sync(&rdm->accept);
	cancel_work_sync(&rdm->reap);
	cancel_delayed_work_sync(&rdm->idle.work);
	/* the lists no longer change */
	list_for_each_entry(peer, &rdm->conns, node)
		ksk_conn_down(&peer->conn, how);
	list_for_each_entry(peer, &rdm->ended, node)
		ksk_conn_down(&peer->conn, how);
	if (kofi_ep_rxq(&ep->base, &ep->rxq)->ops)
		ksk_unexpected_drain(rdm);
	if (ep->rxq.ops)
		kofi_rxq_flush(&ep->rxq);
	mutex_unlock(&rdm->mutex);
}

static void ksk_rdm_drain(struct fid_ep *fid)
{
	ksk_rdm_stop(fid, KSK_DOWN_DRAIN);
}

static void ksk_rdm_ep_abort(struct fid_ep *fid)
{
	ksk_rdm_stop(fid, KSK_DOWN_ABORT);
}

static int ksk_rdm_close(struct fi_fid *fid)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct ksk_rdm *rdm = ksk_rdm(ep);
	struct ksk_peer *peer, *next;

	ksk_ep_unlist(ep);
	/* connections are freed below without a grace period */
	mutex_lock(&rdm->removal);
	rdm->gone = true;
	mutex_unlock(&rdm->removal);
	spin_lock_irq(&rdm->lock);
	list_splice_init(&rdm->ended, &rdm->conns);
	spin_unlock_irq(&rdm->lock);
	list_for_each_entry_safe(peer, next, &rdm->conns, node) {
		ksk_conn_close(&peer->conn);
		/* the address vector and statistics still use the list */
		spin_lock_irq(&rdm->lock);
		list_del(&peer->node);
		ksk_rdm_unlink(rdm, peer);
		spin_unlock_irq(&rdm->lock);
		ksk_peer_free(peer);
	}
	ksk_listener_exit(&rdm->listener);
	ksk_ep_exit(ep);
	ksk_peers_exit(rdm);
	kofi_peers_exit(&rdm->peers);
	mutex_destroy(&rdm->removal);
	mutex_destroy(&rdm->mutex);
	kfree(rdm);
	return 0;
}

static int ksk_rdm_getname(fid_t fid, void *addr, size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);

	return ksk_cm_name(ksk_rdm(ep)->listener.sock, &ep->src, addr, len);
}

static int ksk_rdm_setname(fid_t fid, void *addr, size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	int err = kofi_ip_check(addr, len);

	if (!err)
		memcpy(&ep->src, addr, kofi_ip_len(addr));
	return err;
}

static const struct ksk_ep_type ksk_rdm_type = {
	.add		= ksk_rdm_add,
	.crowded	= ksk_rdm_is_crowded,
	.refused	= ksk_rdm_refused,
	.abort		= ksk_rdm_abort,
};

static const struct fi_ops_cm ksk_rdm_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= ksk_rdm_setname,
	.getname	= ksk_rdm_getname,
};

static const struct fi_ops ksk_rdm_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_rdm_close,
	.control	= ksk_ep_control,
};

static const struct kofi_ep_ops ksk_rdm_ops = {
	.fid		= &ksk_rdm_fid_ops,
	.ep		= &ksk_ep_opt_ops,
	.cm		= &ksk_rdm_cm_ops,
	.msg		= &ksk_ep_msg_ops,
	.tagged		= &ksk_ep_tagged_ops,
	.rma		= &ksk_rma_ops,
	.obj		= &ksk_ep_obj_ops,
	.enable		= ksk_rdm_enable,
	.drain		= ksk_rdm_drain,
	.abort		= ksk_rdm_ep_abort,
	.send_deferred	= ksk_rdm_send_deferred,
	.peer_removed	= ksk_rdm_peer_removed,
	.peer_next	= ksk_peers_next,
	.peers_added	= ksk_rdm_peers_added,
};

/* fi_endpoint() of type FI_EP_RDM */
int ksk_rdm_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context)
{
	struct kofi_domain *kdomain = container_of(domain, struct kofi_domain,
						   domain);
	struct ksk_rdm *rdm;
	int err;

	if (info->handle)
		return -EINVAL;
	rdm = kzalloc_node(sizeof(*rdm), GFP_KERNEL, kdomain->node);
	if (!rdm)
		return -ENOMEM;
	mutex_init(&rdm->mutex);
	mutex_init(&rdm->removal);
	spin_lock_init(&rdm->lock);
	INIT_LIST_HEAD(&rdm->conns);
	INIT_LIST_HEAD(&rdm->ended);
	INIT_LIST_HEAD(&rdm->reaped);
	INIT_LIST_HEAD(&rdm->deferred);
	INIT_WORK(&rdm->accept, ksk_rdm_accept_work);
	INIT_WORK(&rdm->reap, ksk_rdm_reap);
	ksk_idle_init(rdm);
	ksk_unexpected_init(rdm);
	rdm->pid = kofi_peer_new_life();
	rdm->ep.type = &ksk_rdm_type;
	err = kofi_peers_init(&rdm->peers, &rdm->ep.base);
	if (err)
		goto free;
	err = ksk_peers_init(rdm);
	if (err)
		goto destroy_peers;
	err = ksk_ep_init(&rdm->ep, domain, info, &ksk_rdm_ops, context);
	if (err)
		goto exit_peers;
	rdm->listener.ops = &ksk_rdm_listener_ops;
	rdm->listener.obj = &rdm->ep.base.obj;
	rdm->listener.net = kdomain->fabric->net;
	ksk_listener_init(&rdm->listener);
	ksk_ep_list(&rdm->ep);
	*fid = &rdm->ep.base.ep;
	return 0;

exit_peers:
	ksk_peers_exit(rdm);
destroy_peers:
	kofi_peers_exit(&rdm->peers);
free:
	kfree(rdm);
	return err;
}
