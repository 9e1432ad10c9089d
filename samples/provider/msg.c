// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages.
 *
 * A post takes a record, stores the description of the memory in it, and queues
 * the endpoint's work item. The work item copies one message after the other
 * into receives of the peer, which the core manages. If the peer has no
 * receive, the message waits, and the core's wake-up queues the work item.
 *
 * A provider for a network replaces loop_deliver() and its callers.
 */
#include <linux/sched.h>
#include <linux/uio.h>

#include "loop.h"

/* -------------------------------------------------------------- delivering */

/* Free the record, then report: the consumer may post again. */
static void loop_complete(struct loop_ep *ep, struct loop_op *op, int err)
{
	const struct kofi_wc wc = {
		.op_context = op->context, .err = err, .prov_errno = err,
		.flags = FI_MSG | FI_SEND, .len = op->cur.len,
	};
	u64 flags = op->flags;

	kofi_freelist_put(&ep->free, &op->free);
	kofi_ep_tx_complete(&ep->base, &wc, flags);
}

/* Copy through a page, because both cursors may have any kind of memory. */
static int loop_copy(struct loop_ep *ep, struct kofi_cursor *from,
		     struct kofi_cursor *to)
{
	while (from->left && to->left) {
		size_t n = min3(from->left, to->left, PAGE_SIZE);
		int err = kofi_cursor_read(from, ep->page, n) ?:
			  kofi_cursor_write(to, ep->page, n);

		if (err)
			return err;
	}
	return 0;
}

static struct loop_op *loop_next(struct loop_ep *ep)
{
	struct loop_op *op;

	spin_lock_irq(&ep->lock);
	op = list_first_entry_or_null(&ep->posted, struct loop_op, node);
	spin_unlock_irq(&ep->lock);
	return op;
}

/* Deliver the oldest message. Returns false if there is none, or no receive for it. */
bool loop_deliver(struct loop_ep *ep)
{
	struct loop_ep *peer = ep->peer;
	struct loop_op *op = peer ? loop_next(ep) : NULL;
	struct kofi_wc wc = { .flags = FI_MSG | FI_RECV };
	struct kofi_rxop *rx;
	struct kofi_rxq *q;
	int err;

	lockdep_assert_held(&loop_mutex);

	if (!op)
		return false;
	q = kofi_ep_rxq(&peer->base, &peer->rxq);
	ep->msg.src = READ_ONCE(peer->base.source);
	ep->msg.len = op->cur.len;
	ep->msg.data = op->data;	/* 0 without FI_REMOTE_CQ_DATA */
	ep->msg.flags = op->flags & FI_REMOTE_CQ_DATA;
	if (kofi_rxq_match(q, &ep->msg, &rx))
		return false;	/* loop_wake() follows */

	spin_lock_irq(&ep->lock);
	list_del(&op->node);
	spin_unlock_irq(&ep->lock);

	err = -loop_copy(ep, &op->cur, &rx->cur);
	wc.err = err ?: op->cur.left ? FI_ETRUNC : 0;
	wc.flags |= ep->msg.flags;
	wc.len = rx->cur.len - rx->cur.left;
	wc.olen = op->cur.left;
	wc.data = op->data;
	wc.src = ep->msg.src;
	kofi_rxq_done(q, rx, &wc);
	loop_complete(ep, op, err);
	return true;
}

/* Take the mutex for one message at a time, so that other tasks do not wait long. */
void loop_work(struct work_struct *work)
{
	struct loop_ep *ep = container_of(work, struct loop_ep, work);
	bool more;

	do {
		mutex_lock(&loop_mutex);
		more = loop_deliver(ep);
		mutex_unlock(&loop_mutex);
		cond_resched();
	} while (more);
}

/* The peer has posted a receive. Called with spinlocks held; @msg is in the sender. */
void loop_wake(struct kofi_rxmsg *msg)
{
	queue_work(loop_wq, &container_of(msg, struct loop_ep, msg)->work);
}

/* ----------------------------------------------------------------- posting */

static int loop_fill(struct loop_ep *ep, struct loop_op *op,
		     const struct fi_msg *msg, u64 flags)
{
	int err;

	err = kofi_cursor_init(&op->cur, msg, ITER_SOURCE,
			       ep->base.info->tx_attr->iov_limit);
	if (err)
		return err;
	if (op->cur.len > ep->base.info->ep_attr->max_msg_size)
		return -EMSGSIZE;
	op->context = msg->context;
	op->flags = flags;
	op->data = flags & FI_REMOTE_CQ_DATA ? msg->data : 0;
	if (!(flags & FI_INJECT))
		return 0;

	if (op->cur.len > min_t(size_t, LOOP_INJECT,
				ep->base.info->tx_attr->inject_size))
		return -EINVAL;
	err = kofi_cursor_read(&op->cur, op->inject, op->cur.len);
	if (!err)
		kofi_cursor_replace(&op->cur, op->inject);
	return err;
}

/*
 * Queue a transmit. From then on the work item may complete it, and the
 * consumer close the endpoint. So the item is queued under the lock, which
 * loop_flush() takes.
 */
static int loop_queue(struct loop_ep *ep, struct loop_op *op)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->closed) {
		err = -ESHUTDOWN;
	} else {
		list_add_tail(&op->node, &ep->posted);
		queue_work(loop_wq, &ep->work);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	return err;
}

/* fi_sendmsg() and its family. Any context. */
static ssize_t loop_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			    u64 flags)
{
	struct loop_ep *ep = loop_ep(fid);
	struct llist_node *node;
	struct loop_op *op;
	int err;

	if (flags & ~LOOP_TX_FLAGS)
		return -FI_EBADFLAGS;
	err = kofi_ep_tx_check(&ep->base, flags & LOOP_LEVELS);
	if (err)
		return err;
	err = kofi_ep_tx_get(&ep->base, msg->context, &ep->free, &ep->lock,
			     &node);
	if (err)
		return err;
	op = llist_entry(node, struct loop_op, free);
	err = loop_fill(ep, op, msg, flags);
	if (!err)
		err = loop_queue(ep, op);
	if (!err)
		return 0;
	kofi_freelist_put(&ep->free, &op->free);
	return kofi_ep_tx_refuse(&ep->base, err);
}

static ssize_t loop_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			    u64 flags)
{
	struct loop_ep *ep = loop_ep(fid);
	int err = kofi_ep_rx_state(&ep->base);

	if (err)
		return err;
	return kofi_rxq_post(&ep->rxq, msg, flags);
}

static ssize_t loop_cancel(struct fid_ep *fid, void *context)
{
	return kofi_rxq_cancel(&loop_ep(fid)->rxq, context);
}

const struct fi_ops_msg loop_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= loop_sendmsg,
	.recvmsg	= loop_recvmsg,
	.cancel		= loop_cancel,
};

/* ------------------------------------------------------------- termination */

/* Refuse further posts, and flush outstanding operations. */
void loop_flush(struct loop_ep *ep)
{
	struct loop_op *op, *next;
	LIST_HEAD(posted);

	spin_lock_irq(&ep->lock);
	ep->closed = true;
	list_splice_init(&ep->posted, &posted);
	spin_unlock_irq(&ep->lock);
	list_for_each_entry_safe(op, next, &posted, node)
		loop_complete(ep, op, ECANCELED);
	kofi_rxq_flush(&ep->rxq);
}
