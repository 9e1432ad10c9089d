// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion of transmits, headers of their packets, and the answers of the peer for
 * which they wait.
 *
 * The number of a transmit consists of the index of its record and the number of uses of
 * the record. If a peer sends an invalid number, or one number twice, its connection is
 * closed.
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
 * Drop a reference. Returns true if it was the last one: then the record is free, and the
 * caller must report @wc with @flags.
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
	if (op->phase == RXM_PHASE_WAITING)
		kofi_peers_unwait(&ep->peers, 1);
	else if (op->phase == RXM_PHASE_SENT)
		atomic_dec(&op->conn->tx.unfinished);
	*wc = (struct kofi_wc) {
		.op_context = op->context,
		.err = op->err,
		.flags = rxm_op_wc_flags(op),
		.len = op->cur.len,
		.src = FI_ADDR_NOTAVAIL,
	};
	*flags = op->flags;
	kofi_freelist_put(&ep->tx.free, &op->free);
	return true;
}

/**
 * rxm_op_put - drop a reference to a transmit, and complete it with the last one
 * @op: the transmit
 * @err: positive error code of the completed operation, or 0; the first error counts
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
 * rxm_op_report - rxm_op_put() in a callback of the completion queue below
 * @op: the transmit
 * @err: positive error code of the operation below, or 0
 *
 * The consumer's handler may run here, as closing the connection waits for the callback.
 *
 * Context: callback of the completion queue below, without locks.
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
 * rxm_op_id - number of a transmit, which the peer repeats in its answer
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
 * rxm_ctrl_queue - queue an operation that is sent before transmits
 * @ctrl: the operation; rxm_push() must follow
 *
 * Context: any.
 */
void rxm_ctrl_queue(struct rxm_ctrl *ctrl)
{
	struct rxm_conn *c = ctrl->conn;
	unsigned long irq;

	spin_lock_irqsave(&c->lock, irq);
	list_add_tail(&ctrl->node, &c->tx.ctrl);
	spin_unlock_irqrestore(&c->lock, irq);
}

/* ----------------------------------------------------------------- answers */

static bool rxm_is_atomic_op(const struct rxm_op *op)
{
	return op->how == RXM_HOW_ATOMIC;
}

/**
 * rxm_op_await - begin to wait for the peer's answer to a transmit
 * @op: the transmit, which is about to be sent: the answer may arrive before the
 *	send returns
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
	list_add_tail(&op->ctrl.node, &c->tx.rndv);
	c->tx.atomics += rxm_is_atomic_op(op);
	spin_unlock_irqrestore(&c->lock, irq);
}

static void __rxm_op_unawait(struct rxm_op *op)
{
	op->awaited = false;
	list_del_init(&op->ctrl.node);
	op->conn->tx.atomics -= rxm_is_atomic_op(op);
}

/**
 * rxm_op_unawait - stop waiting for the answer to a transmit
 * @op: the transmit
 *
 * Context: any, while the record cannot be reused.
 * Return: false if the answer has arrived.
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
 * rxm_op_claim - find the transmit to which an answer belongs, once
 * @c: the connection
 * @id: number that the peer has sent
 * @atomic: the answer is for an atomic operation; otherwise for a message
 *
 * Context: any.
 * Return: the transmit, or NULL.
 */
struct rxm_op *rxm_op_claim(struct rxm_conn *c, u64 id, bool atomic)
{
	struct rxm_ep *ep = c->ep;
	unsigned long irq;
	struct rxm_op *op;

	if ((u32)id >= ep->tx.nr_ops)
		return NULL;
	op = ep->tx.ops[array_index_nospec((u32)id, ep->tx.nr_ops)];
	spin_lock_irqsave(&c->lock, irq);
	if (READ_ONCE(op->conn) != c || op->gen != id >> 32 || !op->awaited ||
	    rxm_is_atomic_op(op) != atomic)
		op = NULL;
	if (op)
		__rxm_op_unawait(op);
	spin_unlock_irqrestore(&c->lock, irq);
	return op;
}
