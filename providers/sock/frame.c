// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Data for one call of TCP, as an array: the header of a frame with the first
 * segments of its payload, or several short frames, a burst.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/uio.h>

#include "sock.h"

/**
 * ksk_tx_gather - collect the next bytes of a frame with an unsent header
 * @c: the connection
 * @from: the payload
 * @budget: most bytes of @from
 * @to: the rest of the header, and behind it as much of the payload as a short
 *	array can hold; may be @from
 *
 * Context: locked.
 */
void ksk_tx_gather(struct ksk_conn *c, const struct iov_iter *from,
		   size_t budget, struct iov_iter *to)
{
	size_t len = c->frame.hdr_len - c->frame.hdr_off, left = 0;
	u8 *start = c->frame.hdr + c->frame.hdr_off;
	union ksk_tx_vec *v = &c->frame.vec;
	unsigned int n = 1;

	if (c->frame.left && !(c->frame.op && c->frame.op->zc))
		left = min(iov_iter_count(from), budget);
	if (left && iov_iter_is_bvec(from)) {
		bvec_set_virt(&v->bv[0], start, len);
		len += kofi_gather_bvec(from, left, v->bv, &n,
					ARRAY_SIZE(v->bv));
		iov_iter_bvec(to, ITER_SOURCE, v->bv, n, len);
		return;
	}
	v->kv[0] = (struct kvec) { .iov_base = start, .iov_len = len };
	if (left && iov_iter_is_kvec(from))
		len += kofi_gather_kvec(from, left, v->kv, &n,
					ARRAY_SIZE(v->kv), false);
	kofi_iter_kvec(to, ITER_SOURCE, v->kv, n, len);
}

/* ----------------------------------------------------------------- bursts */

/* Payload of an operation that has not begun, if it lies side by side; or NULL */
static const void *ksk_burst_flat(const struct ksk_txop *op, size_t len)
{
	const struct iov_iter *iter = &op->cur.iter;
	const struct bio_vec *bv = iter->bvec;

	if (iov_iter_is_kvec(iter))
		return kofi_cursor_flat(&op->cur, len);
	if (!iov_iter_is_bvec(iter) || !iter->nr_segs ||
	    PageHighMem(bv->bv_page) || len > bv->bv_len - iter->iov_offset)
		return NULL;
	return page_address(bv->bv_page) + bv->bv_offset + iter->iov_offset;
}

/* Add a frame: its header, of @len bytes, and its payload */
static void ksk_burst_add(struct ksk_burst *b, struct ksk_txop *op,
			  unsigned int len, const void *flat, size_t payload)
{
	struct kvec *kv = &b->kv[b->segs];

	kv[0].iov_base = b->hdr[b->n];
	kv[0].iov_len = len;
	kv[1].iov_base = (void *)flat;
	kv[1].iov_len = payload;
	b->segs += payload ? 2 : 1;
	b->len[b->n] = len + payload;
	b->total += len + payload;
	b->op[b->n++] = op;
}

static void ksk_burst_ack(const struct ksk_conn *c, struct ksk_burst *b)
{
	u8 id = c->frame.id + b->n;

	ksk_burst_add(b, NULL, ksk_tx_format_ack(b->hdr[b->n], id, c->be),
		      NULL, 0);
}

/* Add an operation; false if its frame is long, or its payload in pieces */
static bool ksk_burst_op(const struct ksk_conn *c, struct ksk_burst *b,
			 struct ksk_txop *op)
{
	size_t payload = ksk_txop_payload(op);
	u8 id = c->frame.id + b->n;
	const void *flat = NULL;

	if (op->rma_count > 1 || payload > KSK_BURST_PAYLOAD ||
	    ksk_rndv_wanted(c, op) || (c->zc.min && payload >= c->zc.min))
		return false;
	if (payload) {
		flat = ksk_burst_flat(op, payload);
		if (!flat)
			return false;
	}
	ksk_burst_add(b, op, ksk_tx_format_op(b->hdr[b->n], op, id, c->be),
		      flat, payload);
	return true;
}

/* Test whether the call and the budget have room for another frame. */
static bool ksk_burst_room(const struct ksk_burst *b, size_t budget)
{
	return b->n < KSK_BURST && b->total + b->n * KSK_FRAME_COST < budget;
}

/**
 * ksk_burst_collect - collect the chosen frame, and frames that may follow it
 * @c: the connection, with no response to be sent
 * @b: receives headers and lengths; with less than two frames it is no burst
 * @budget: most bytes, as ksk_tx_run() counts them
 *
 * Context: locked.
 */
void ksk_burst_collect(const struct ksk_conn *c, struct ksk_burst *b,
		       size_t budget)
{
	bool unanswered = c->tx.nreads || c->rndv.out ||
			  !list_empty(&c->tx.wait) ||
			  (c->frame.op && c->frame.op->ack);
	unsigned int reads = c->tx.nreads;
	u64 acks = c->tx.acks;
	struct ksk_txop *op;

	b->n = 0;
	b->segs = 0;
	b->total = 0;
	if (!c->frame.op)
		ksk_burst_ack(c, b);
	else if (!ksk_burst_op(c, b, c->frame.op))
		return;
	for (; acks && ksk_burst_room(b, budget); acks--)
		ksk_burst_ack(c, b);
	b->more = acks;
	if (acks)
		return;
	list_for_each_entry(op, &c->tx.queue, node) {
		/* as ksk_tx_blocked(), with the frames that are in the burst */
		reads += op->op == KSK_OP_READ_REQ;
		b->more = !(op->flags & FI_FENCE && unanswered) &&
			  reads <= KSK_READS_MAX;
		if (!b->more || !ksk_burst_room(b, budget) ||
		    !ksk_burst_op(c, b, op))
			return;
		b->more = op->flags & FI_MORE;
		unanswered |= op->ack || op->op == KSK_OP_READ_REQ;
	}
}
