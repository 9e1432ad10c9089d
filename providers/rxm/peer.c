// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Records of peers, and the queue of connections for the work item (conn.c).
 *
 * Posts find records under RCU; records are made and freed under the mutex. A record is
 * freed when the address of the peer is removed, or when the endpoint is closed. The
 * record of an unknown peer, which is not in the address vector, is freed as soon as
 * nothing is left of its connection; an endpoint has at most max_unknown of these. A post
 * may still have a record that is about to be freed, which is in phase KOFI_PEER_NEW or
 * KOFI_PEER_DEAD.
 */
#include <linux/slab.h>

#include <linux/kofi/debug.h>

#include "rxm.h"
#include "rxm_trace.h"

/**
 * rxm_conn_find - find the record of a peer
 * @ep: the endpoint
 * @addr: address in the form of kofi_ip_peer()
 *
 * Context: any, in an RCU read section or with the mutex.
 * Return: the record, or NULL.
 */
struct rxm_conn *rxm_conn_find(struct rxm_ep *ep, const union kofi_ip *addr)
{
	return rxm_conn(kofi_peers_find(&ep->peers, addr));
}

/**
 * rxm_conn_todo - queue a connection for the work item
 * @c: the connection
 *
 * Context: any, in an RCU read section, with rx_lock, or with the mutex.
 */
void rxm_conn_todo(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	enum kofi_peer_phase phase;
	unsigned long irq;

	spin_lock_irqsave(&ep->lock, irq);
	/* a post may still have a record that is about to be freed, in one of these phases */
	phase = kofi_peer_get_phase(&c->base);
	if (!ep->closed && phase != KOFI_PEER_NEW && phase != KOFI_PEER_DEAD &&
	    list_empty(&c->todo))
		list_add_tail(&c->todo, &ep->todo);
	spin_unlock_irqrestore(&ep->lock, irq);
	queue_work(rxm_wq, &ep->work);
}

/**
 * rxm_conn_fail - terminate a connection
 * @c: the connection
 * @err: the reason, a positive error code; the first one counts
 *
 * The work item closes the connection.
 *
 * Context: any, as rxm_conn_todo().
 */
void rxm_conn_fail(struct rxm_conn *c, int err)
{
	if (!cmpxchg(&c->err, 0, err))
		rxm_conn_todo(c);
}

/**
 * rxm_conn_step - trace a step of a connection
 * @c: the connection
 * @step: name of the step, a constant string
 * @err: error of the step, or 0
 *
 * Context: any.
 */
void rxm_conn_step(struct rxm_conn *c, const char *step, int err)
{
	trace_kofi_rxm_peer(c, step, err);
	kofi_dbg(&c->ep->base.obj, "%pISpc: %s: %d\n", &c->base.addr.sa, step, err);
}

/**
 * rxm_conn_violated - count and report a violation of the protocol
 * @c: the connection to the peer
 * @what: the violation in words, a constant string
 *
 * Context: any.
 */
void rxm_conn_violated(struct rxm_conn *c, const char *what)
{
	atomic64_inc(&c->ep->stats.violations);
	kofi_violation(&c->ep->base.obj, &c->base.addr.sa, what);
}

/**
 * rxm_conn_timer_set - set the timer, unless it expires earlier
 * @ep: the endpoint
 * @when: latest time, in jiffies
 *
 * Context: process, with the mutex.
 */
void rxm_conn_timer_set(struct rxm_ep *ep, unsigned long when)
{
	long left = when - jiffies;

	lockdep_assert_held(&ep->mutex);

	if (READ_ONCE(ep->closed) ||
	    (delayed_work_pending(&ep->timer) &&
	     time_after_eq(when, ep->timer.timer.expires)))
		return;
	mod_delayed_work(rxm_wq, &ep->timer, max(left, 1L));
}

/**
 * rxm_source - find the source address of the peer for completions
 * @ep: the endpoint
 * @c: the connection
 * @known: one of the two caches of the connection; the caller serialises its use
 *
 * Context: any.
 * Return: the address; FI_ADDR_NOTAVAIL for an unknown peer, and for an endpoint with
 * neither FI_SOURCE nor FI_DIRECTED_RECV.
 */
fi_addr_t rxm_source(struct rxm_ep *ep, struct rxm_conn *c,
		     struct kofi_av_known *known)
{
	if (!(ep->base.info->caps & (FI_SOURCE | FI_DIRECTED_RECV)))
		return FI_ADDR_NOTAVAIL;
	return kofi_av_recall(ep->base.av, &c->base.addr.sa, known);
}

/**
 * rxm_conn_adopt - let posts use a record in KOFI_PEER_NEW
 * @c: the record; transmits that have waited for it at the endpoint come first
 *
 * Context: process, with the mutex.
 */
void rxm_conn_adopt(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	struct rxm_op *op, *next;
	bool wanted;

	spin_lock_irq(&ep->lock);
	spin_lock(&c->lock);
	list_for_each_entry_safe(op, next, &ep->pending, node) {
		if (memcmp(&op->peer, &c->base.addr, sizeof(c->base.addr)))
			continue;
		op->conn = c;
		list_move_tail(&op->node, &c->tx.queue);
		c->tx.queued++;
	}
	wanted = !list_empty(&c->tx.queue);
	kofi_peer_step(&c->base, wanted ? KOFI_PEER_WANTED : KOFI_PEER_IDLE);
	spin_unlock(&c->lock);
	spin_unlock_irq(&ep->lock);
	if (wanted)
		rxm_conn_todo(c);
}

/**
 * rxm_conn_free - free the record of a peer
 * @c: the record; its connection is closed, and it has no messages
 *
 * Context: process, with the mutex.
 */
void rxm_conn_free(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;

	list_del(&c->list);
	list_del(&c->departed);
	kofi_peers_dismiss(&ep->peers, &c->base);
	spin_lock_irq(&ep->lock);
	list_del_init(&c->todo);
	if (c->self)
		kofi_peers_del_hidden(&ep->peers, &c->base);
	else
		kofi_peers_del(&ep->peers, &c->base);
	spin_unlock_irq(&ep->lock);
	kfree_rcu(c, rcu);
}

/**
 * rxm_conn_hide - set KOFI_PEER_NEW, so that posts wait at the endpoint
 * @c: the record. rxm_conn_free() or rxm_conn_adopt() must follow
 *
 * Context: process, with the mutex.
 * Return: false if the record has a connection, transmits or remote CQ data.
 */
bool rxm_conn_hide(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	bool hidden;

	spin_lock_irq(&ep->lock);
	spin_lock(&c->lock);
	hidden = c->base.phase == KOFI_PEER_IDLE && list_empty(&c->tx.queue) &&
		 list_empty(&c->rx.accesses);
	if (hidden)
		kofi_peer_step(&c->base, KOFI_PEER_NEW);
	spin_unlock(&c->lock);
	spin_unlock_irq(&ep->lock);
	return hidden;
}

/**
 * rxm_conn_reap - free the idle record of an unknown peer
 * @c: the record, which remains if the peer is in the address vector
 *
 * The accepted side of a connection to ourselves is freed, too.
 *
 * Context: process, with the mutex.
 */
void rxm_conn_reap(struct rxm_conn *c)
{
	if (!c->self && !kofi_peer_is_unknown(&c->ep->peers, &c->base.addr))
		return;
	if (list_empty(&c->rx.held) && rxm_conn_hide(c))
		rxm_conn_free(c);
}

/**
 * rxm_unknown_max - limits of unknown peers
 *
 * Context: any.
 * Return: the present values of the parameters.
 */
struct kofi_unknown_max rxm_unknown_max(void)
{
	return (struct kofi_unknown_max) {
		.all = READ_ONCE(rxm_max_unknown),
		.host = READ_ONCE(rxm_max_unknown_host),
		.net = READ_ONCE(rxm_max_unknown_net),
	};
}

static int rxm_conn_admit(struct rxm_conn *c)
{
	const struct kofi_unknown_max max = rxm_unknown_max();

	return kofi_peers_admit(&c->ep->peers, &c->base, &max, GFP_KERNEL);
}

/**
 * rxm_conn_new - make the record of a peer
 * @ep: the endpoint
 * @addr: address of the peer
 * @origin: unless it is RXM_ORIGIN_SELF, posts find the record, and transmits that wait for
 *	it are moved to it
 *
 * Context: process, may sleep, with the mutex.
 * Return: the record; NULL without memory, or if an unknown peer exceeds a limit.
 */
struct rxm_conn *rxm_conn_new(struct rxm_ep *ep, const union kofi_ip *addr,
			      enum rxm_origin origin)
{
	bool self = origin == RXM_ORIGIN_SELF;
	struct rxm_conn *c;
	int err;

	lockdep_assert_held(&ep->mutex);

	c = kzalloc_node(sizeof(*c), GFP_KERNEL, ep->dom->base.node);
	if (!c)
		return NULL;
	c->ep = ep;
	c->base.addr = *addr;
	c->self = self;
	spin_lock_init(&c->lock);
	spin_lock_init(&c->rx_lock);
	INIT_LIST_HEAD(&c->departed);
	INIT_LIST_HEAD(&c->todo);
	INIT_LIST_HEAD(&c->tx.queue);
	INIT_LIST_HEAD(&c->tx.ctrl);
	INIT_LIST_HEAD(&c->tx.rndv);
	INIT_LIST_HEAD(&c->rx.held);
	INIT_LIST_HEAD(&c->rx.accesses);
	if (origin == RXM_ORIGIN_REQUEST && rxm_conn_admit(c)) {
		kfree(c);
		return NULL;
	}
	err = self ? kofi_peers_add_hidden(&ep->peers, &c->base, GFP_KERNEL) :
		     kofi_peers_add(&ep->peers, &c->base, GFP_KERNEL);
	if (err) {
		kofi_peers_dismiss(&ep->peers, &c->base);
		/* readers of the numbers may have it */
		kfree_rcu(c, rcu);
		return NULL;
	}
	list_add_tail(&c->list, &ep->conns);
	if (self)
		kofi_peer_step(&c->base, KOFI_PEER_IDLE);
	else
		rxm_conn_adopt(c);
	return c;
}

/**
 * rxm_conn_exit - free the records
 * @ep: an endpoint that has been drained
 *
 * Context: process, may sleep.
 */
void rxm_conn_exit(struct rxm_ep *ep)
{
	struct rxm_conn *c, *next;

	kofi_peers_exit(&ep->peers);
	list_for_each_entry_safe(c, next, &ep->conns, list)
		kfree(c);
}
