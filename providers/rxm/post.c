// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts of transmits. A post takes a slot of the completion queue and a record, and copies
 * its arguments to the record. It adds the record to the queue of its peer, or to
 * rxm_ep.pending if the peer has no record. A post that returns an error has no effect.
 *
 * Posts find the peer by its number or address, under RCU. They make no records of
 * peers, so the first transmit to a peer waits for the work item (conn.c). A pending
 * connection must not stall other peers: half of the transmits are reserved for
 * connected peers.
 */
#include <linux/slab.h>
#include <linux/uio.h>

#include <kunit/static_stub.h>
#include <kunit/visibility.h>

#include "rxm.h"

#define RXM_PKTS	64	/* outstanding segments in addition to one per transmit */

/* ----------------------------------------------------------------- records */

int rxm_tx_init(struct rxm_ep *ep)
{
	const struct fi_tx_attr *attr = ep->base.info->tx_attr;
	size_t bytes = offsetof(struct rxm_op, cur) +
		       kofi_cursor_size(attr->iov_limit);
	int node = ep->base.domain->node;
	struct rxm_op *op;
	size_t i;

	ep->tx.ops = kvcalloc_node(attr->size, sizeof(*ep->tx.ops), GFP_KERNEL,
				   node);
	ep->tx.pkts = kcalloc_node(RXM_PKTS, sizeof(*ep->tx.pkts), GFP_KERNEL,
				   node);
	if (!ep->tx.ops || !ep->tx.pkts)
		goto exit;
	ep->tx.nr_ops = attr->size;
	for (i = 0; i < RXM_PKTS; i++) {
		ep->tx.pkts[i].cqe.done = rxm_pkt_done;
		kofi_freelist_add(&ep->tx.free_pkts, &ep->tx.pkts[i].free);
	}
	for (i = 0; i < attr->size; i++) {
		/* headers are sent from the record: no vmalloc memory */
		op = kzalloc_node(bytes, GFP_KERNEL, node);
		if (!op)
			goto exit;
		op->ep = ep;
		op->index = i;
		op->cqe.done = rxm_op_done;
		ep->tx.ops[i] = op;
		kofi_freelist_add(&ep->tx.free, &op->free);
		if (!(ep->base.info->caps & FI_ATOMIC))
			continue;
		op->atomic = kzalloc_node(sizeof(*op->atomic), GFP_KERNEL,
					  node);
		if (!op->atomic)
			goto exit;
	}
	return 0;

exit:
	rxm_tx_exit(ep);
	return -ENOMEM;
}

void rxm_tx_exit(struct rxm_ep *ep)
{
	size_t i;

	for (i = 0; ep->tx.ops && i < ep->tx.nr_ops && ep->tx.ops[i]; i++) {
		kfree(ep->tx.ops[i]->atomic);
		kfree(ep->tx.ops[i]);
	}
	kvfree(ep->tx.ops);
	kfree(ep->tx.pkts);
	ep->tx.ops = NULL;
	ep->tx.pkts = NULL;
	ep->tx.free = (struct kofi_freelist) {};
	ep->tx.free_pkts = (struct kofi_freelist) {};
}

/* ----------------------------------------------------------------- posting */

/* Copy the payload, so that the consumer may reuse its memory at once. */
static int rxm_op_inject(struct rxm_op *op)
{
	size_t len = op->cur.len;

	if (len > op->ep->base.info->tx_attr->inject_size ||
	    kofi_cursor_read(&op->cur, op->inject, len))
		return -EINVAL;
	op->sgl = NULL;
	kofi_cursor_replace(&op->cur, op->inject);
	return 0;
}

static int rxm_op_fill(struct rxm_op *op, const struct fi_msg *msg, u64 flags,
		       enum rxm_how how)
{
	const struct fi_info *info = op->ep->base.info;
	int err;

	err = kofi_cursor_init(&op->cur, msg, how == RXM_HOW_READ ||
			       how == RXM_HOW_ATOMIC ? ITER_DEST : ITER_SOURCE,
			       info->tx_attr->iov_limit);
	if (err)
		return err;
	/* atomic operations have their own limit */
	if (op->cur.len > info->ep_attr->max_msg_size && how != RXM_HOW_ATOMIC)
		return -EMSGSIZE;
	WRITE_ONCE(op->conn, NULL);
	op->gen++;
	refcount_set(&op->refs, 1);
	op->err = 0;
	op->how = how;
	op->phase = RXM_PHASE_QUEUED;
	op->awaited = false;
	op->busy = false;
	op->seg_no = 0;
	op->context = msg->context;
	op->flags = flags;
	op->data = msg->data;
	op->regions.nr = 0;
	op->regions.mapped = 0;
	op->sgl = msg->vec == KOFI_SGL ? msg->msg_sgl : NULL;
	op->nr_sgl = msg->iov_count;
	return flags & FI_INJECT && how != RXM_HOW_ATOMIC ?
	       rxm_op_inject(op) : 0;
}

/**
 * rxm_op_wait - let a transmit wait for a connection
 * @op: the transmit
 *
 * Context: any.
 * Return: false if too many transmits wait.
 */
bool rxm_op_wait(struct rxm_op *op)
{
	KUNIT_STATIC_STUB_REDIRECT(rxm_op_wait, op);

	if (!kofi_peers_wait(&op->ep->peers))
		return false;
	op->phase = RXM_PHASE_WAITING;
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(rxm_op_wait);

/**
 * rxm_ops_connected - set KOFI_PEER_CONNECTED, after which no transmit waits for a connection
 * @c: the connection
 *
 * Other transmits may then wait for other connections, however late the peer lets these
 * complete.
 *
 * Context: process, with the mutex.
 */
void rxm_ops_connected(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	struct rxm_op *op;

	spin_lock_irq(&c->lock);
	list_for_each_entry(op, &c->tx.queue, node) {
		op->phase = RXM_PHASE_QUEUED;
		kofi_peers_unwait(&ep->peers, 1);
	}
	kofi_peer_step(&c->base, KOFI_PEER_CONNECTED);
	spin_unlock_irq(&c->lock);
	/* posts may have been refused because of these transmits, or because of this peer */
	kofi_ep_unblock(&ep->base);
}

/* Queue a transmit to its peer. Returns 1 if the record is about to be freed. */
static int rxm_op_queue(struct rxm_conn *c, struct rxm_op *op)
{
	bool push, wanted = false;
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&c->lock, irq);
	push = c->base.phase == KOFI_PEER_CONNECTED;
	if (c->base.phase == KOFI_PEER_NEW)
		err = 1;
	else if (c->base.phase == KOFI_PEER_DEAD)
		err = -ESHUTDOWN;
	else if (!push && !rxm_op_wait(op))
		err = -EAGAIN;
	if (!err) {
		WRITE_ONCE(op->conn, c);
		list_add_tail(&op->node, &c->tx.queue);
		c->tx.queued++;
		wanted = c->base.phase == KOFI_PEER_IDLE;
		if (wanted)
			kofi_peer_step(&c->base, KOFI_PEER_WANTED);
	}
	if (push)
		rxm_push_unlock(c, irq);
	else
		spin_unlock_irqrestore(&c->lock, irq);
	if (wanted)
		rxm_conn_todo(c);
	return err;
}

/* Queue a transmit to a peer without a record, or with one that is being made or freed. */
static int rxm_op_pend(struct rxm_ep *ep, struct rxm_op *op)
{
	struct rxm_conn *c;
	unsigned long irq;
	int err;

	do {
		spin_lock_irqsave(&ep->lock, irq);
		c = rxm_conn_find(ep, &op->peer);
		/* the lock covers changes from and to KOFI_PEER_NEW */
		if (c && kofi_peer_get_phase(&c->base) == KOFI_PEER_NEW)
			c = NULL;
		if (!c) {
			err = ep->closed ? -ESHUTDOWN :
			      rxm_op_wait(op) ? 0 : -EAGAIN;
			if (!err)
				list_add_tail(&op->node, &ep->pending);
		}
		spin_unlock_irqrestore(&ep->lock, irq);
		if (c)
			err = rxm_op_queue(c, op);
	} while (err == 1);
	if (!c && !err)
		queue_work(rxm_wq, &ep->work);
	return err;
}

/* Later posts find the record by the number of the peer. */
static void rxm_conn_remember(struct rxm_conn *c, fi_addr_t dest,
			      unsigned long changes)
{
	struct rxm_ep *ep = c->ep;
	enum kofi_peer_phase phase;
	unsigned long irq;

	if (kofi_peers_renew(&ep->peers, &c->base, dest, changes))
		return;
	spin_lock_irqsave(&ep->lock, irq);
	/* a record that is about to be freed had one of these phases before the lock was taken */
	phase = kofi_peer_get_phase(&c->base);
	if (phase != KOFI_PEER_NEW && phase != KOFI_PEER_DEAD)
		kofi_peers_set_dest(&ep->peers, &c->base, dest, changes);
	spin_unlock_irqrestore(&ep->lock, irq);
}

static noinline int rxm_op_submit_by_addr(struct rxm_op *op, fi_addr_t dest)
{
	struct rxm_ep *ep = op->ep;
	unsigned long changes = kofi_peers_changes(&ep->peers);
	struct rxm_conn *c;
	int err;

	err = kofi_av_get(ep->base.av, dest, &op->peer);
	if (err)
		return err;
	c = rxm_conn_find(ep, &op->peer);
	if (c)
		rxm_conn_remember(c, dest, changes);
	err = c ? rxm_op_queue(c, op) : 1;
	return err == 1 ? rxm_op_pend(ep, op) : err;
}

static int rxm_op_submit(struct rxm_op *op, fi_addr_t fi_addr)
{
	struct rxm_ep *ep = op->ep;
	struct kofi_peer *peer;
	int err = 1;

	rcu_read_lock();
	peer = kofi_peers_dest(&ep->peers, fi_addr);
	if (likely(peer))
		err = rxm_op_queue(rxm_conn(peer), op);
	if (unlikely(err == 1))
		err = rxm_op_submit_by_addr(op, fi_addr);
	rcu_read_unlock();
	return err;
}

static int rxm_op_fill_rma(struct rxm_op *op, const struct rxm_post *post)
{
	op->rma.nr = post->nr_rma;
	return kofi_rma_check(post->rma, post->nr_rma,
			      min_t(size_t, RXM_RMA_IOV,
				    op->ep->base.info->tx_attr->rma_iov_limit),
			      op->cur.len, op->rma.iov);
}

/* Test whether too many transmits wait for connections to accept another one to @dest. */
static bool rxm_is_crowded(struct rxm_ep *ep, fi_addr_t dest)
{
	union kofi_ip peer;
	struct rxm_conn *c;
	bool crowded = false;

	if (likely(!kofi_peers_full(&ep->peers)))
		return false;
	rcu_read_lock();
	/* a post to an address that the vector lacks gets its own error */
	if (!kofi_av_get(ep->base.av, dest, &peer)) {
		c = rxm_conn_find(ep, &peer);
		crowded = !c || kofi_peer_get_phase(&c->base) != KOFI_PEER_CONNECTED;
	}
	rcu_read_unlock();
	return crowded;
}

static int rxm_op_accept(struct rxm_op *op, const struct fi_msg *msg,
			 const struct rxm_post *post, u64 flags)
{
	int err = rxm_op_fill(op, msg, flags, post->how);

	op->tagged = post->tagged;
	op->tag = post->tag;
	if (!err && post->how == RXM_HOW_ATOMIC)
		err = rxm_atomic_fill(op, post->atomic);
	else if (!err && post->how != RXM_HOW_NEW)
		err = rxm_op_fill_rma(op, post);
	return err ?: rxm_op_submit(op, msg->addr);
}

/**
 * rxm_post - accept a transmit
 * @ep: the endpoint
 * @msg: memory, peer and context of the transmit
 * @post: other parameters
 * @flags: flags of the post; the caller has checked them except for levels
 *
 * Context: any.
 * Return: as described for posts in fi_endpoint.h.
 */
ssize_t rxm_post(struct rxm_ep *ep, const struct fi_msg *msg,
		 const struct rxm_post *post, u64 flags)
{
	struct llist_node *node;
	struct rxm_op *op;
	int err;

	err = kofi_ep_tx_check(&ep->base, flags & RXM_RMA_LEVELS);
	if (err)
		return err;
	if (flags & RXM_RMA_LEVELS & ~rxm_levels(ep->info))
		return -EOPNOTSUPP;
	/* take no record here: its return would wake refused posts for nothing */
	if (unlikely(rxm_is_crowded(ep, msg->addr)) &&
	    kofi_ep_retry(&ep->base, rxm_is_crowded(ep, msg->addr)))
		return -EAGAIN;
	err = kofi_ep_tx_get(&ep->base, msg->context, &ep->tx.free,
			     &ep->tx.free_lock, &node);
	if (err)
		return err;
	op = llist_entry(node, struct rxm_op, free);
	err = rxm_op_accept(op, msg, post, flags);
	if (!err)
		return 0;
	kofi_freelist_put(&ep->tx.free, &op->free);
	if (err == -EAGAIN) {
		/* a post to a connected peer may have been refused, as it lacked this record */
		kofi_ep_unblock(&ep->base);
		/* concurrent posts have taken the last places to wait for connections */
		if (!kofi_ep_retry(&ep->base, rxm_is_crowded(ep, msg->addr)))
			kofi_ep_unblock(&ep->base);
	}
	return kofi_ep_tx_refuse(&ep->base, err);
}

/* fi_sendmsg() and its family */
ssize_t rxm_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	static const struct rxm_post post = {};

	if (flags & ~(RXM_TX_FLAGS | FI_REMOTE_CQ_DATA))
		return -FI_EBADFLAGS;
	return rxm_post(rxm_ep(fid), msg, &post, flags);
}

/* fi_tsendmsg() and its family */
ssize_t rxm_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *tmsg,
		     u64 flags)
{
	const struct rxm_post post = { .tagged = true, .tag = tmsg->tag };
	const struct fi_msg msg = kofi_tagged_msg(tmsg);

	if (flags & ~(RXM_TX_FLAGS | FI_REMOTE_CQ_DATA))
		return -FI_EBADFLAGS;
	if (!(rxm_ep(fid)->base.info->caps & FI_TAGGED))
		return -ENOSYS;
	return rxm_post(rxm_ep(fid), &msg, &post, flags);
}

static ssize_t rxm_rma_post(struct fid_ep *fid, const struct fi_msg_rma *rmsg,
			    enum rxm_how how, u64 right, u64 flags)
{
	const struct rxm_post post = {
		.how = how,
		.rma = rmsg->rma_iov,
		.nr_rma = rmsg->rma_iov_count,
	};
	const struct fi_msg msg = kofi_rma_msg(rmsg);
	struct rxm_ep *ep = rxm_ep(fid);

	if (!kofi_ep_may(&ep->base, FI_RMA | right))
		return -ENOSYS;
	return rxm_post(ep, &msg, &post, flags);
}

/* fi_readmsg() and its family */
static ssize_t rxm_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   u64 flags)
{
	if (flags & ~(RXM_FETCH_FLAGS | FI_DELIVERY_COMPLETE))
		return -FI_EBADFLAGS;
	return rxm_rma_post(fid, msg, RXM_HOW_READ, FI_READ, flags);
}

/* fi_writemsg() and its family */
static ssize_t rxm_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			    u64 flags)
{
	if (flags & ~(RXM_TX_FLAGS | FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA))
		return -FI_EBADFLAGS;
	/* the provider below transfers the data */
	if (flags & FI_REMOTE_CQ_DATA &&
	    !rxm_ep(fid)->info->domain_attr->cq_data_size)
		return -EOPNOTSUPP;
	return rxm_rma_post(fid, msg, RXM_HOW_WRITE, FI_WRITE, flags);
}

const struct fi_ops_rma rxm_rma_ops = {
	.size		= sizeof(struct fi_ops_rma),
	.readmsg	= rxm_readmsg,
	.writemsg	= rxm_writemsg,
};
