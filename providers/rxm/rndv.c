// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rendezvous: messages that the peer fetches.
 *
 * A packet names the message and its regions (rndv_region.c). When the peer has a receive, it
 * reads the payload, and answers with the number of the message. A peer that is
 * configured to fetch nothing answers with memory of its own instead. We write the
 * payload there, and then notify the peer. The message completes when its
 * regions are invalidated.
 */
#include <linux/uio.h>

#include <kunit/visibility.h>

#include "rxm.h"

/* A region is invalidated: continue with the next one, or drop the reference. */
static void rxm_rndv_done(struct rxm_ctrl *ctrl, int err)
{
	struct rxm_op *op = container_of(ctrl, struct rxm_op, ctrl);

	if (!err && op->regions.mapped)
		rxm_ctrl_queue(ctrl);
	else
		rxm_op_put(op, err);
}

/* Invalidate a region. It returns to its pool when the transmit completes. */
static int rxm_rndv_unmap(struct rxm_ctrl *ctrl)
{
	struct rxm_op *op = container_of(ctrl, struct rxm_op, ctrl);
	int err = rxm_regions_end(op);

	if (err != -EALREADY)
		return err;
	rxm_op_put(op, 0);
	return 0;
}

static void rxm_rndv_end(struct rxm_op *op)
{
	op->ctrl.conn = op->conn;
	op->ctrl.send = rxm_rndv_unmap;
	op->ctrl.done = rxm_rndv_done;
	rxm_ctrl_queue(&op->ctrl);
}

/**
 * rxm_rndv_send - send the request to fetch a message
 * @c: the connection
 * @op: the transmit, which is sent in segments if it cannot have regions
 *
 * Context: any, in the context that pushes.
 * Return: 0; -EAGAIN; or as fi_sendmsg() below.
 */
int rxm_rndv_send(struct rxm_conn *c, struct rxm_op *op)
{
	int err = rxm_regions_map(c, op);

	if (err == -EAGAIN || err == -ESHUTDOWN || err == -ENOTCONN)
		return err;
	if (err) {
		op->how = RXM_HOW_SEGMENTS;
		if (op->regions.mapped) {
			refcount_inc(&op->refs);
			rxm_rndv_end(op);
		}
		return -EAGAIN;
	}
	rxm_op_hdr(op, &op->hdr, RXM_RNDV_REQ);
	op->rndv.count = op->regions.nr;
	refcount_add(2, &op->refs);
	rxm_op_await(op);
	err = rxm_send_bytes(c, &op->hdr, sizeof(op->hdr) + sizeof(op->rndv),
			     &op->cqe, c->flow.reserve);
	if (!err)
		return 0;
	refcount_dec(&op->refs);
	if (!rxm_op_unawait(op)) {
		/* the peer answered an unsent request: the answer completes the transmit */
		rxm_conn_violated(c, "answer to no request");
		rxm_conn_fail(c, EPROTO);
		return 0;
	}
	if (err == -EAGAIN || err == -ESHUTDOWN || err == -ENOTCONN)
		refcount_dec(&op->refs);
	else
		rxm_rndv_end(op);
	return err;
}

/* Rendezvous by write: the payload is written, and the peer has been notified. */
static void rxm_write_told(struct rxm_ctrl *ctrl, int err)
{
	struct rxm_op *op = container_of(ctrl, struct rxm_op, ctrl);

	if (err)
		cmpxchg(&op->err, 0, err);
	rxm_rndv_end(op);
}

static int rxm_write_tell(struct rxm_ctrl *ctrl)
{
	struct rxm_op *op = container_of(ctrl, struct rxm_op, ctrl);
	struct rxm_hdr *done = &op->write.done;

	rxm_hdr_format(done, RXM_WRITE_DONE, (u32)ctrl->conn->peer_id,
		       done->msg_id);
	return rxm_send_bytes(ctrl->conn, done, sizeof(*done), &ctrl->cqe, 1);
}

/* Returns how many bytes the next write to the peer's memory can have. */
static size_t rxm_write_chunk(struct rxm_op *op, struct iov_iter *iter)
{
	struct rxm_op_write *w = &op->write;
	const struct rxm_rndv *r = &w->target;
	u64 left;

	while (w->mem_no < r->count && w->mem_off == r->mem[w->mem_no].len) {
		w->mem_no++;
		w->mem_off = 0;
	}
	if (w->mem_no == r->count)
		return 0;
	left = r->mem[w->mem_no].len - w->mem_off;
	*iter = *kofi_cursor_iter(&op->cur);
	iov_iter_truncate(iter, min_t(u64, left, w->chunk_max));
	return iov_iter_count(iter);
}

static int rxm_write_next(struct rxm_ctrl *ctrl)
{
	struct rxm_op *op = container_of(ctrl, struct rxm_op, ctrl);
	struct rxm_op_write *w = &op->write;
	struct iov_iter iter;
	struct fi_rma_iov rma;
	const struct fi_msg_rma msg = {
		.msg_iter = &iter, .vec = KOFI_ITER, .rma_iov = &rma,
		.rma_iov_count = 1, .context = &ctrl->cqe,
	};
	int err;

	do {
		rma.len = rxm_write_chunk(op, &iter);
		rma.addr = w->target.mem[w->mem_no].addr + w->mem_off;
		rma.key = w->target.mem[w->mem_no].key;
		err = fi_writemsg(ctrl->conn->msg, &msg, 0);
	} while (err == -EMSGSIZE && rxm_chunk_less(&w->chunk_max, rma.len));
	return err;
}

static void rxm_write_go(struct rxm_op *op);

static void rxm_write_done(struct rxm_ctrl *ctrl, int err)
{
	struct rxm_op *op = container_of(ctrl, struct rxm_op, ctrl);
	struct iov_iter iter;
	size_t n = rxm_write_chunk(op, &iter);

	if (err) {
		cmpxchg(&op->err, 0, err);
		rxm_rndv_end(op);
		return;
	}
	op->write.mem_off += n;
	kofi_cursor_used(&op->cur, n);
	rxm_write_go(op);
}

static void rxm_write_go(struct rxm_op *op)
{
	struct iov_iter iter;

	if (rxm_write_chunk(op, &iter)) {
		op->ctrl.send = rxm_write_next;
		op->ctrl.done = rxm_write_done;
	} else {
		op->ctrl.send = rxm_write_tell;
		op->ctrl.done = rxm_write_told;
	}
	rxm_ctrl_queue(&op->ctrl);
}

/**
 * rxm_rndv_answered - process an answer to a rendezvous
 * @c: the connection
 * @h: RXM_READ_DONE: the peer has the payload; RXM_WRITE_DATA: we must write it
 *
 * rxm_push() must follow.
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO if no such message waits for an answer.
 */
int rxm_rndv_answered(struct rxm_conn *c, const struct rxm_hdr *h)
{
	struct rxm_op *op = rxm_op_claim(c, h->msg_id, false);

	if (!op)
		return -EPROTO;
	if (h->type == RXM_READ_DONE) {
		rxm_rndv_end(op);
		return 0;
	}
	memcpy(&op->write.target, h + 1, sizeof(op->write.target));
	op->write.done.msg_id = h->msg_id;
	op->write.mem_no = 0;
	op->write.mem_off = 0;
	op->write.chunk_max = rxm_chunk_most(c->ep);
	rxm_write_go(op);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rxm_rndv_answered);
