// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Records of operations: completion of transmits, their headers, and the answers of the
 * peer that they wait for.
 *
 * The number of a transmit is the index of its record with how often the record has been
 * used. A peer that sends another number, or one twice, has its connection closed.
 */
#include <linux/nospec.h>
#include <linux/uio.h>

#include "rxm.h"

/* -------------------------------------------------------------- completing */

static u64 rxm_op_wc_flags(const struct rxm_op *op)
{
	switch (op->how) {
	case RXM_HOW_READ:
		return FI_RMA | FI_READ;
	case RXM_HOW_WRITE:
		return FI_RMA | FI_WRITE;
	case RXM_HOW_ATOMIC:
		return FI_ATOMIC | (op->atomic->call == RXM_OP_ATOMIC ?
				    FI_WRITE : FI_READ);
	default:
		return FI_SEND | (op->tagged ? FI_TAGGED : FI_MSG);
	}
}

/*
 * Something the transmit waited for has come. Returns true if it was the last: the
 * record has been given back, and @wc and @flags are to be reported.
 */
static bool rxm_op_end(struct rxm_op *op, int err, struct kofi_wc *wc,
		       u64 *flags)
{
	struct rxm_ep *ep = op->ep;

	if (err)
		cmpxchg(&op->err, 0, err);
	if (!refcount_dec_and_test(&op->refs))
		return false;
	rxm_regions_put(op);
	if (op->waiting)
		atomic_dec(&ep->waiting);
	if (op->sent)
		atomic_dec(&op->conn->unfinished);
	*wc = (struct kofi_wc) {
		.op_context = op->context,
		.err = op->err,
		.flags = rxm_op_wc_flags(op),
		.len = op->cur.len,
		.src = FI_ADDR_NOTAVAIL,
	};
	*flags = op->flags;
	kofi_freelist_put(&ep->free, &op->free);
	return true;
}

/**
 * rxm_op_put - complete a transmit if it waits for nothing else
 * @op: the transmit
 * @err: positive error code of the operation that has ended, or 0
 *
 * Context: any.
 */
void rxm_op_put(struct rxm_op *op, int err)
{
	struct rxm_ep *ep = op->ep;
	struct kofi_wc wc;
	u64 flags;

	if (rxm_op_end(op, err, &wc, &flags))
		kofi_ep_tx_complete(&ep->base, &wc, flags);
}

/**
 * rxm_op_report - rxm_op_put() in a callback of the queue below
 * @op: the transmit
 * @err: positive error code of the operation below, or 0
 *
 * The consumer may be called from inside: closing the connection waits for the callback.
 *
 * Context: callback of the queue below, without locks.
 */
void rxm_op_report(struct rxm_op *op, int err)
{
	struct rxm_ep *ep = op->ep;
	struct kofi_wc wc;
	u64 flags;

	if (rxm_op_end(op, err, &wc, &flags))
		kofi_ep_tx_report(&ep->base, &wc, flags);
}

/* ----------------------------------------------------------------- packets */

/**
 * rxm_op_id - number of a transmit, which the answer of the peer repeats
 * @op: the transmit
 *
 * Context: any.
 * Return: the number.
 */
u64 rxm_op_id(const struct rxm_op *op)
{
	return (u64)op->gen << 32 | op->index;
}

/**
 * rxm_op_hdr - format the header of a message
 * @op: the transmit
 * @h: the header
 * @type: RXM_EAGER_MSG, ...
 *
 * Context: any, in the context that pushes.
 */
void rxm_op_hdr(const struct rxm_op *op, struct rxm_hdr *h, u8 type)
{
	u64 id = type == RXM_EAGER_MSG ? 0 : rxm_op_id(op);

	rxm_hdr_format(h, type, (u32)op->conn->peer_id, id);
	h->op = op->tagged ? RXM_OP_TAGGED : RXM_OP_MSG;
	h->size = op->cur.len;
	h->tag = op->tag;
	if (op->flags & FI_REMOTE_CQ_DATA) {
		h->flags = RXM_F_CQ_DATA;
		h->data = op->data;
	}
}

/**
 * rxm_ctrl_queue - have something sent ahead of transmits
 * @ctrl: it; rxm_push() is to follow
 *
 * Context: any.
 */
void rxm_ctrl_queue(struct rxm_ctrl *ctrl)
{
	struct rxm_conn *c = ctrl->conn;
	unsigned long irq;

	spin_lock_irqsave(&c->lock, irq);
	list_add_tail(&ctrl->node, &c->ctrl);
	spin_unlock_irqrestore(&c->lock, irq);
}

/* ----------------------------------------------------------------- answers */

static bool rxm_is_atomic_op(const struct rxm_op *op)
{
	return op->how == RXM_HOW_ATOMIC;
}

/**
 * rxm_op_await - the peer is to answer a transmit
 * @op: the transmit, which is about to be sent: the answer may come before the
 *	call that sends it returns
 *
 * Context: any, in the context that pushes.
 */
void rxm_op_await(struct rxm_op *op)
{
	struct rxm_conn *c = op->conn;
	unsigned long irq;

	op->ctrl.conn = c;
	spin_lock_irqsave(&c->lock, irq);
	op->awaited = true;
	list_add_tail(&op->ctrl.node, &c->rndv);
	c->atomics += rxm_is_atomic_op(op);
	spin_unlock_irqrestore(&c->lock, irq);
}

static void __rxm_op_unawait(struct rxm_op *op)
{
	op->awaited = false;
	list_del_init(&op->ctrl.node);
	op->conn->atomics -= rxm_is_atomic_op(op);
}

/**
 * rxm_op_unawait - no answer is wanted any more
 * @op: the transmit
 *
 * Context: any, while the record cannot be used again.
 * Return: false if it has come.
 */
bool rxm_op_unawait(struct rxm_op *op)
{
	struct rxm_conn *c = op->conn;
	unsigned long irq;
	bool was;

	spin_lock_irqsave(&c->lock, irq);
	was = op->awaited;
	if (was)
		__rxm_op_unawait(op);
	spin_unlock_irqrestore(&c->lock, irq);
	return was;
}

/**
 * rxm_op_claim - the transmit whose number the peer has sent, which it may send once
 * @c: the connection
 * @id: the number
 * @atomic: it is to be an atomic operation; otherwise a message
 *
 * Context: any.
 * Return: the transmit, or NULL.
 */
struct rxm_op *rxm_op_claim(struct rxm_conn *c, u64 id, bool atomic)
{
	struct rxm_ep *ep = c->ep;
	unsigned long irq;
	struct rxm_op *op;

	if ((u32)id >= ep->nr_ops)
		return NULL;
	op = ep->ops[array_index_nospec((u32)id, ep->nr_ops)];
	spin_lock_irqsave(&c->lock, irq);
	if (READ_ONCE(op->conn) != c || op->gen != id >> 32 || !op->awaited ||
	    rxm_is_atomic_op(op) != atomic)
		op = NULL;
	if (op)
		__rxm_op_unawait(op);
	spin_unlock_irqrestore(&c->lock, irq);
	return op;
}

/**
 * rxm_copy - put bytes where they belong
 * @cur: the consumer's memory
 * @data: the bytes
 * @len: how many; what is too much is left out
 *
 * Context: softirq, or with bottom halves off.
 * Return: false if the memory cannot be written.
 */
bool rxm_copy(struct kofi_cursor *cur, const void *data, size_t len)
{
	void *flat;

	len = min(len, cur->left);
	flat = kofi_cursor_flat(cur, len);
	if (likely(flat)) {
		memcpy(flat, data, len);
		kofi_cursor_used(cur, len);
		return true;
	}
	while (len) {
		struct iov_iter iter = *kofi_cursor_iter(cur);
		size_t n = min(len, iov_iter_count(&iter));

		n = copy_to_iter(data, n, &iter);
		if (WARN_ON_ONCE(!n))
			return false;
		kofi_cursor_used(cur, n);
		data += n;
		len -= n;
	}
	return true;
}
