// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting receives, and looking for messages that wait for one (FI_PEEK, FI_CLAIM).
 *
 * A post takes a slot of the completion queue and a record. If a waiting message matches,
 * the oldest one gets the receive; otherwise the receive is posted. So no message waits
 * while a matching receive is posted. FI_PEEK completes at once.
 *
 * See rxq.c for the rules, and for the locks.
 */
#include <linux/export.h>
#include <linux/mm.h>

#include <linux/kofi/lib.h>

#include "../cq.h"
#include "rxq.h"

#define KOFI_RXQ_FLAGS		(FI_COMPLETION | FI_MORE | FI_MULTI_RECV)
#define KOFI_RXQ_TFLAGS		(KOFI_RXQ_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD)

/*
 * Sender a receive is for, as messages call theirs; without the capability, any.
 * Returns false for one that is not known.
 */
static __always_inline bool kofi_rxq_src(const struct kofi_rxq *q,
					 fi_addr_t addr, fi_addr_t *src)
{
	const struct kofi_ep *ep = q->ep;

	*src = FI_ADDR_UNSPEC;
	if (!(ep->info->caps & FI_DIRECTED_RECV) || addr == FI_ADDR_UNSPEC)
		return true;
	*src = ep->av ? kofi_av_id(ep->av, addr) : addr;
	return *src != FI_ADDR_NOTAVAIL;
}

static __always_inline struct kofi_rxop *kofi_rxq_get(struct kofi_rxq *q)
{
	struct llist_node *node = kofi_freelist_get(&q->free, &q->lock);

	return node ? llist_entry(node, struct kofi_rxop, free) : NULL;
}

/**
 * kofi_rxq_offer - give a receive to the oldest matching message, or post it
 * @q: the queue
 * @op: the receive, on no list
 *
 * Context: any, with the queue's lock.
 */
void kofi_rxq_offer(struct kofi_rxq *q, struct kofi_rxop *op)
{
	bool multi = kofi_rxop_multi(op);
	struct kofi_rxmsg *rxmsg, *next;

	lockdep_assert_held(&q->lock);

	if (multi)
		kofi_rxq_link(q, op);
	list_for_each_entry_safe(rxmsg, next, &q->waiting, node) {
		if (!kofi_rxmsg_open(rxmsg) || !kofi_rxop_fits(op, rxmsg))
			continue;
		if (!multi) {
			kofi_rxmsg_give(q, rxmsg, op);
			return;
		}
		if (kofi_rxq_part(q, rxmsg, op, !q->starved))
			continue;
		kofi_rxmsg_give(q, rxmsg, kofi_rxmsg_part(rxmsg));
		if (op->gone)
			return;
	}
	if (!multi)
		kofi_rxq_link(q, op);
}

static struct kofi_rxmsg *kofi_rxq_claimed(struct kofi_rxq *q, void *context)
{
	struct kofi_rxmsg *rxmsg;

	list_for_each_entry(rxmsg, &q->waiting, node)
		if (rxmsg->claimed && rxmsg->claim == context)
			return rxmsg;
	return NULL;
}

static int kofi_rxq_claim(struct kofi_rxq *q, struct kofi_rxop *op)
{
	struct kofi_rxmsg *rxmsg = kofi_rxq_claimed(q, op->context);

	if (!rxmsg)
		return -EINVAL;
	kofi_rxmsg_give(q, rxmsg, op);
	return 0;
}

/* Make it available to messages. */
static __always_inline int kofi_rxq_add(struct kofi_rxq *q,
					struct kofi_rxop *op)
{
	unsigned long irq;
	int err = 0;
	bool bh;

	bh = kofi_rxq_lock(q, &irq);
	op->seq = q->seq++;
	if (q->closed)
		err = -ESHUTDOWN;
	else if (op->flags & FI_CLAIM)
		err = kofi_rxq_claim(q, op);
	else if (list_empty(&q->waiting))
		kofi_rxq_link_newest(q, op);
	else
		kofi_rxq_offer(q, op);
	kofi_rxq_unlock(q, irq, bh);
	return err;
}

/* Memory for many messages must be one segment: received parts are reported by address. */
static int kofi_rxop_init_multi(struct kofi_rxop *op, const struct fi_msg *msg)
{
	const struct bio_vec *bv;

	op->used = 0;
	op->parts = 0;
	op->gone = false;
	op->canceled = false;
	if (msg->iov_count != 1)
		return -EINVAL;
	switch (msg->vec) {
	case KOFI_KVEC:
		op->buf = msg->msg_iov->iov_base;
		return 0;
	case KOFI_BVEC:
		bv = msg->msg_bvec;
		op->buf = PageHighMem(bv->bv_page) ? NULL :
			  page_address(bv->bv_page) + bv->bv_offset;
		return 0;
	default:
		return -EINVAL;
	}
}

static __always_inline int kofi_rxop_init(struct kofi_rxop *op,
					  const struct kofi_rxq *q,
					  const struct fi_msg *msg, u64 flags)
{
	const struct fi_info *info = q->ep->info;
	int err;

	op->context = msg->context;
	op->flags = flags;
	op->tagged = false;
	if (!kofi_rxq_src(q, msg->addr, &op->src))
		return -EINVAL;
	err = kofi_cursor_init(&op->cur, msg, ITER_DEST,
			       info->rx_attr->iov_limit);
	if (!err && kofi_rxop_multi(op))
		err = kofi_rxop_init_multi(op, msg);
	return err;
}

static noinline int kofi_rxq_accept(struct kofi_rxq *q,
				    const struct fi_msg *msg,
				    const struct fi_msg_tagged *tagged,
				    u64 flags)
{
	struct kofi_ep *ep = q->ep;
	struct kofi_rxop *op;
	int err;

	err = kofi_ep_reserve(ep, KOFI_RX);
	if (err)
		return err;

	op = kofi_rxq_get(q);
	if (unlikely(!op))
		op = kofi_ep_retry(ep, kofi_rxq_get(q));
	if (unlikely(!op))
		return kofi_ep_rx_refuse(ep, READ_ONCE(q->closed) ? -ESHUTDOWN :
								    -EAGAIN);

	err = kofi_rxop_init(op, q, msg, flags);
	if (tagged) {
		op->tagged = true;
		op->tag = tagged->tag;
		op->ignore = tagged->ignore;
	}
	if (!err)
		err = kofi_rxq_add(q, op);
	if (!err)
		return 0;
	kofi_freelist_put(&q->free, &op->free);
	return kofi_ep_rx_refuse(ep, err);
}

/**
 * kofi_rxq_post - accept a receive
 * @q: the queue
 * @msg: where the message goes
 * @flags: FI_COMPLETION, FI_MORE, FI_MULTI_RECV
 *
 * Context: any.
 * Return: 0, a completion will follow, or with FI_MULTI_RECV some of which the
 * last has this flag; -EAGAIN if no record or no slot of the completion queue
 * is free; -ESHUTDOWN after kofi_rxq_flush(); -FI_EBADFLAGS; -EINVAL as
 * kofi_cursor_init(), for a sender the address vector does not know, and for a
 * multi-receive that is not one kvec or bvec segment; or an error of kofi_ep_rx_reserve().
 */
int kofi_rxq_post(struct kofi_rxq *q, const struct fi_msg *msg, u64 flags)
{
	if (flags & ~KOFI_RXQ_FLAGS)
		return -FI_EBADFLAGS;
	return kofi_rxq_accept(q, msg, NULL, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_post);

static struct kofi_rxmsg *
kofi_rxq_find_waiting(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
		      fi_addr_t src)
{
	struct kofi_rxmsg *rxmsg;

	list_for_each_entry(rxmsg, &q->waiting, node)
		if (rxmsg->tagged && kofi_rxmsg_open(rxmsg) &&
		    kofi_rxmsg_fits(rxmsg, msg->tag, msg->ignore, src))
			return rxmsg;
	return NULL;
}

/*
 * FI_PEEK, or FI_CLAIM with FI_DISCARD: they need no memory, and complete at
 * once.
 */
static int kofi_rxq_peek(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
			 u64 flags)
{
	struct kofi_wc wc = {
		.op_context = msg->context, .err = FI_ENOMSG,
		.flags = FI_RECV | FI_TAGGED, .tag = msg->tag,
		.src = FI_ADDR_NOTAVAIL,
	};
	struct kofi_ep *from = q->ep;
	struct kofi_rxmsg *rxmsg;
	unsigned long irq;
	fi_addr_t src;
	int err;
	bool bh;

	if (!kofi_rxq_src(q, msg->addr, &src))
		return -EINVAL;
	err = kofi_ep_reserve(q->ep, KOFI_RX);
	if (err)
		return err;

	bh = kofi_rxq_lock(q, &irq);
	if (q->closed) {
		err = -ESHUTDOWN;
		goto unlock;
	}
	if (flags & FI_PEEK) {
		rxmsg = kofi_rxq_find_waiting(q, msg, src);
	} else {
		rxmsg = kofi_rxq_claimed(q, msg->context);
		if (!rxmsg) {
			err = -EINVAL;
			goto unlock;
		}
	}
	if (rxmsg) {
		from = rxmsg->ep;
		wc.err = 0;
		wc.flags |= rxmsg->flags & FI_REMOTE_CQ_DATA;
		wc.len = rxmsg->len;
		wc.tag = rxmsg->tag;
		wc.src = rxmsg->src;
		wc.data = rxmsg->data;
		if (flags & FI_DISCARD) {
			rxmsg->discard = true;
			kofi_rxmsg_wake(rxmsg);
		} else if (flags & FI_CLAIM) {
			rxmsg->claimed = true;
			rxmsg->claim = msg->context;
		}
	}
	/* under the lock, which keeps the message's endpoint */
	kofi_ep_rx_complete(q->ep, from, &wc, flags);
unlock:
	kofi_rxq_unlock(q, irq, bh);
	if (err)
		kofi_ep_rx_unreserve(q->ep);
	return err;
}

/**
 * kofi_rxq_tpost - accept a tagged receive, or look for a tagged message
 * @q: the queue
 * @msg: where the message goes, and which it is
 * @flags: FI_COMPLETION, FI_MORE, and FI_PEEK, FI_CLAIM and FI_DISCARD as
 *	fi_trecvmsg() has them
 *
 * Context: any.
 * Return: as kofi_rxq_post(); -EINVAL also for a claim that holds no message.
 */
int kofi_rxq_tpost(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
		   u64 flags)
{
	const struct fi_msg plain = {
		.msg_iov = msg->msg_iov, .desc = msg->desc,
		.iov_count = msg->iov_count, .addr = msg->addr,
		.context = msg->context, .vec = msg->vec,
	};
	u64 how = flags & (FI_PEEK | FI_CLAIM | FI_DISCARD);

	if (flags & ~KOFI_RXQ_TFLAGS || how == FI_DISCARD ||
	    how == (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_EBADFLAGS;
	if (flags & FI_MULTI_RECV &&
	    (how || !(q->ep->info->caps & FI_TAGGED_MULTI_RECV)))
		return -FI_EBADFLAGS;
	if (how & (FI_PEEK | FI_DISCARD))
		return kofi_rxq_peek(q, msg, flags);
	return kofi_rxq_accept(q, &plain, msg, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_tpost);
