// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posted receives.
 *
 * A queue owns a fixed number of receive records, allocated when the endpoint
 * is enabled. A record goes round: free, posted by the consumer, matched by
 * the provider's receive path to the message that has begun (the provider owns
 * it then), done. Whoever takes a record off the posted list reports it, and
 * the lock makes that one: the receive path, a cancel, or the flush when the
 * connection has ended. So each accepted receive completes exactly once.
 *
 * The lock is innermost and never held while completions are reported.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <linux/kofi/provider.h>

/**
 * kofi_rxq_init - make a queue of posted receives
 * @q: the queue
 * @size: receives that can be posted at a time, at least 1
 * @node: NUMA node for the records, or NUMA_NO_NODE
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM.
 */
int kofi_rxq_init(struct kofi_rxq *q, size_t size, int node)
{
	size_t i;

	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->posted);
	INIT_LIST_HEAD(&q->free);
	q->closed = false;
	q->ops = kvmalloc_node(array_size(size, sizeof(*q->ops)),
			       GFP_KERNEL | __GFP_ZERO, node);
	if (!q->ops)
		return -ENOMEM;
	for (i = 0; i < size; i++)
		list_add_tail(&q->ops[i].node, &q->free);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_rxq_init);

/**
 * kofi_rxq_exit - give the records back
 * @q: the queue; nothing is posted or matched any more. One that was never
 *	made but is all zero is fine.
 *
 * Context: process, may sleep.
 */
void kofi_rxq_exit(struct kofi_rxq *q)
{
	kvfree(q->ops);
	q->ops = NULL;
}
EXPORT_SYMBOL_GPL(kofi_rxq_exit);

static int kofi_rxq_get(struct kofi_rxq *q, struct kofi_rxop **op)
{
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&q->lock, irq);
	*op = list_first_entry_or_null(&q->free, struct kofi_rxop, node);
	if (q->closed)
		err = -ESHUTDOWN;
	else if (!*op)
		err = -EAGAIN;
	else
		list_del(&(*op)->node);
	spin_unlock_irqrestore(&q->lock, irq);
	return err;
}

/* Make it available to messages, or, if it is not to be, unused again. */
static int kofi_rxq_add(struct kofi_rxq *q, struct kofi_rxop *op, int err)
{
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	if (!err && q->closed)
		err = -ESHUTDOWN;
	if (err)
		list_add(&op->node, &q->free);
	else
		list_add_tail(&op->node, &q->posted);
	spin_unlock_irqrestore(&q->lock, irq);
	return err;
}

/**
 * kofi_rxq_post - accept a receive
 * @q: the queue
 * @ep: its endpoint, whose receive queue gets the completion
 * @msg: where the message goes
 * @flags: operation flags, come back to kofi_ep_rx_complete()
 *
 * Context: any.
 * Return: 0, one completion will follow; -EAGAIN if no record or no slot of
 * the completion queue is free; -ESHUTDOWN after kofi_rxq_flush(); -EINVAL as
 * kofi_cursor_init(); or what kofi_ep_rx_reserve() returns.
 */
int kofi_rxq_post(struct kofi_rxq *q, struct kofi_ep *ep,
		  const struct fi_msg *msg, u64 flags)
{
	struct kofi_rxop *op;
	int err;

	err = kofi_ep_rx_reserve(ep);
	if (err)
		return err;

	err = kofi_rxq_get(q, &op);
	if (err == -EAGAIN) {
		/* what has been done before the mark was seen wakes nobody */
		kofi_ep_blocked(ep);
		err = kofi_rxq_get(q, &op);
	}
	if (err)
		goto unreserve;

	op->context = msg->context;
	op->flags = flags;
	err = kofi_cursor_init(&op->cur, msg, ITER_DEST,
			       ep->info->rx_attr->iov_limit);
	err = kofi_rxq_add(q, op, err);
	if (!err)
		return 0;
	/* somebody may have been refused for want of this record */
	kofi_ep_unblock(ep);
unreserve:
	kofi_ep_rx_unreserve(ep);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_rxq_post);

/**
 * kofi_rxq_match - take the receive for a message that has begun
 * @q: the queue
 *
 * Context: any.
 * Return: the oldest one, the caller's until kofi_rxq_done(); NULL if nothing
 * is posted.
 */
struct kofi_rxop *kofi_rxq_match(struct kofi_rxq *q)
{
	struct kofi_rxop *op;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	op = list_first_entry_or_null(&q->posted, struct kofi_rxop, node);
	if (op)
		list_del(&op->node);
	spin_unlock_irqrestore(&q->lock, irq);
	return op;
}
EXPORT_SYMBOL_GPL(kofi_rxq_match);

/**
 * kofi_rxq_done - report a receive
 * @q: the queue
 * @ep: its endpoint
 * @op: taken off the queue by the caller; not to be touched any more
 * @wc: the completion; its context is filled in here
 *
 * The record is free before the consumer can see the completion, so that one
 * that always posts again in its callback never gets -EAGAIN.
 *
 * Context: any.
 */
void kofi_rxq_done(struct kofi_rxq *q, struct kofi_ep *ep,
		   struct kofi_rxop *op, struct kofi_wc *wc)
{
	u64 flags = op->flags;
	unsigned long irq;

	wc->op_context = op->context;

	spin_lock_irqsave(&q->lock, irq);
	list_add(&op->node, &q->free);
	spin_unlock_irqrestore(&q->lock, irq);

	/* the endpoint last of all: the consumer may act on the completion */
	kofi_ep_unblock(ep);
	kofi_ep_rx_complete(ep, wc, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_done);

static void kofi_rxq_abort(struct kofi_rxq *q, struct kofi_ep *ep,
			   struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.err = ECANCELED,
		.flags = FI_RECV | FI_MSG,
		.src = FI_ADDR_NOTAVAIL,
	};

	kofi_rxq_done(q, ep, op, &wc);
}

/**
 * kofi_rxq_cancel - withdraw a posted receive
 * @q: the queue
 * @ep: its endpoint
 * @context: what it was posted with; the oldest one of several is taken
 *
 * Context: any.
 * Return: 0, it completes with ECANCELED; -ENOENT if none such waits for a
 * message, which includes one that a message has begun to fill.
 */
int kofi_rxq_cancel(struct kofi_rxq *q, struct kofi_ep *ep, void *context)
{
	struct kofi_rxop *op, *found = NULL;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	list_for_each_entry(op, &q->posted, node) {
		if (op->context == context) {
			list_del(&op->node);
			found = op;
			break;
		}
	}
	spin_unlock_irqrestore(&q->lock, irq);
	if (!found)
		return -ENOENT;
	kofi_rxq_abort(q, ep, found);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_rxq_cancel);

/**
 * kofi_rxq_flush - complete what is posted with ECANCELED, and accept no more
 * @q: the queue
 * @ep: its endpoint
 *
 * Receives that were matched stay the receive path's to report.
 *
 * Context: any.
 */
void kofi_rxq_flush(struct kofi_rxq *q, struct kofi_ep *ep)
{
	struct kofi_rxop *op;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	q->closed = true;
	spin_unlock_irqrestore(&q->lock, irq);

	while ((op = kofi_rxq_match(q)))
		kofi_rxq_abort(q, ep, op);
}
EXPORT_SYMBOL_GPL(kofi_rxq_flush);
