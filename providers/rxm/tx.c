// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transmits: the order in which packets and accesses are posted below.
 *
 * Normal operation
 *
 * A post takes a slot of the completion queue and a record, and adds the record to its
 * peer's queue. If the connection is up and no other context sends, the posting
 * context sends the queue. That keeps the order, and no lock is held during a
 * post below. If a post below is refused, it is repeated when an outstanding
 * operation completes, or when the provider reports write space. Answers to the peer
 * are sent first.
 *
 * Kinds of messages
 *
 * Up to 16 KiB are sent in one packet, behind the header, and up to 128 KiB in segments.
 * Longer messages use rendezvous: a packet names regions below, and the peer fetches
 * the payload from them. A peer that is configured to fetch nothing names its own memory
 * instead, which we write. Segments are also used if the memory has too many pieces for
 * one packet or four regions. Payload is copied only if it is as short as an inject.
 *
 * Locks
 *
 * c->lock protects the lists. A record belongs to the sending context until it is off the
 * queue. The last reference to the record completes it.
 */
#include <linux/mm.h>
#include <linux/uio.h>

#include "rxm.h"
#include "rxm_trace.h"

#define RXM_PAGES	5	/* of a payload, in one packet */
#define RXM_PUSH_BUDGET	128	/* operations one caller sends in a row */

/* ----------------------------------------------------------------- records */

static struct rxm_pkt *rxm_pkt_get(struct rxm_ep *ep)
{
	struct llist_node *node = kofi_freelist_get(&ep->tx.free_pkts,
						    &ep->tx.free_lock);

	return node ? llist_entry(node, struct rxm_pkt, free) : NULL;
}

/* ------------------------------------------------------------------- vectors */

/* A header, followed by payload */
struct rxm_vec {
	union {
		struct kvec	kv[RXM_IOV_MAX + 1];
		struct bio_vec	bv[RXM_IOV_MAX + 1];
	};
	unsigned int		n;
	enum kofi_vec		kind;
};

static_assert(RXM_PAGES <= RXM_IOV_MAX);

/* For iterators without an array of segments, such as xarrays */
static size_t rxm_gather_pages(struct rxm_vec *v, const struct iov_iter *from,
			       size_t len, unsigned int max)
{
	struct page *pages[RXM_PAGES] = {}, **p = pages;
	struct iov_iter iter = *from;
	size_t offset, done, n;
	ssize_t got;

	max = min_t(unsigned int, max - v->n, RXM_PAGES);
	got = iov_iter_extract_pages(&iter, &p, len, max, 0, &offset);
	for (done = 0; got > 0 && done < got; done += n, offset = 0) {
		n = min_t(size_t, PAGE_SIZE - offset, got - done);
		bvec_set_page(&v->bv[v->n++], *p++, n, offset);
	}
	return done;
}

/*
 * Collect a header, followed by up to @len bytes of payload. Returns the bytes of payload,
 * which are fewer if they are in too many pieces.
 */
static size_t rxm_gather(struct rxm_op *op, struct rxm_hdr *hdr, size_t len,
			 struct rxm_vec *v)
{
	unsigned int max = min_t(size_t, RXM_IOV_MAX + 1,
				 op->ep->info->tx_attr->iov_limit);
	const struct iov_iter *iter = kofi_cursor_iter(&op->cur);

	len = min(len, iov_iter_count(iter));
	v->n = 1;
	if (!len || iov_iter_is_kvec(iter)) {
		v->kind = KOFI_KVEC;
		v->kv[0].iov_base = hdr;
		v->kv[0].iov_len = sizeof(*hdr);
		return len ? kofi_gather_kvec(iter, len, v->kv, &v->n, max,
					      true) : 0;
	}
	v->kind = KOFI_BVEC;
	bvec_set_virt(&v->bv[0], hdr, sizeof(*hdr));
	if (iov_iter_is_bvec(iter))
		return kofi_gather_bvec(iter, len, v->bv, &v->n, max);
	return rxm_gather_pages(v, iter, len, max);
}

static int rxm_send_vec(struct rxm_conn *c, const struct rxm_vec *v,
			struct kofi_cqe *cqe, u64 flags, unsigned int keep)
{
	const struct fi_msg msg = {
		.msg_iov = v->kv,	/* of a union of arrays */
		.iov_count = v->n,
		.context = cqe,
		.vec = v->kind,
	};

	/* with credits, the following packet may wait for one */
	flags &= FI_TRANSMIT_COMPLETE | (c->flow.on ? 0 : FI_MORE);
	return rxm_send_packet(c, &msg, flags, keep);
}

/* ---------------------------------------------------------------- messages */

/*
 * Copy a short payload behind the header; an inject has done so already. The
 * provider below handles one piece of the linear mapping faster than two.
 */
static bool rxm_op_pack(struct rxm_op *op, struct rxm_vec *v)
{
	const size_t len = op->cur.len;
	const void *flat = kofi_cursor_flat(&op->cur, len);
	struct iov_iter iter;

	if (len > sizeof(op->inject))
		return false;
	if (flat && !(op->flags & FI_INJECT)) {
		memcpy(op->inject, flat, len);
	} else if (len && !(op->flags & FI_INJECT)) {
		iter = *kofi_cursor_iter(&op->cur);
		if (iov_iter_count(&iter) < len ||
		    copy_from_iter(op->inject, len, &iter) != len)
			return false;
	}
	v->kv[0].iov_base = &op->hdr;
	v->kv[0].iov_len = sizeof(op->hdr) + len;
	v->n = 1;
	v->kind = KOFI_KVEC;
	return true;
}

static_assert(offsetof(struct rxm_op, inject) - offsetof(struct rxm_op, hdr) ==
	      sizeof(struct rxm_hdr));

static int rxm_send_eager(struct rxm_conn *c, struct rxm_op *op)
{
	struct rxm_vec v;
	int err;

	rxm_op_hdr(op, &op->hdr, RXM_EAGER_MSG);
	if (!rxm_op_pack(op, &v) &&
	    rxm_gather(op, &op->hdr, op->cur.len, &v) < op->cur.len) {
		op->how = RXM_HOW_SEGMENTS;
		return -EAGAIN;
	}
	refcount_inc(&op->refs);
	err = rxm_send_vec(c, &v, &op->cqe, op->flags, c->flow.reserve);
	if (err)
		refcount_dec(&op->refs);
	return err;
}

/* Send the next segment, with the transmit's own header or one that all transmits share. */
static int rxm_send_segment(struct rxm_conn *c, struct rxm_op *op)
{
	struct rxm_pkt *pkt = NULL;
	struct rxm_hdr *hdr = &op->hdr;
	struct kofi_cqe *cqe = &op->cqe;
	u64 flags = op->flags;
	struct rxm_vec v;
	size_t n;
	int err;

	if (xchg(&op->busy, true)) {
		pkt = rxm_pkt_get(op->ep);
		if (!pkt)
			return -EAGAIN;	/* until a packet completes */
		pkt->op = op;
		hdr = &pkt->hdr;
		cqe = &pkt->cqe;
	}
	rxm_op_hdr(op, hdr, RXM_SEGMENT);
	n = rxm_gather(op, hdr, RXM_EAGER, &v);
	hdr->seg_size = n;
	hdr->seg_no = op->seg_no;
	hdr->ctrl_data = !op->seg_no ? RXM_SEG_FIRST :
			 n == op->cur.left ? RXM_SEG_LAST : RXM_SEG_MIDDLE;
	/* the provider below may send segments of a message together */
	if (n < op->cur.left)
		flags |= FI_MORE;
	refcount_inc(&op->refs);
	err = n ? rxm_send_vec(c, &v, cqe, flags, c->flow.reserve) : -EFAULT;
	if (!err) {
		op->seg_no++;
		kofi_cursor_used(&op->cur, n);
		return 0;
	}
	refcount_dec(&op->refs);
	if (pkt)
		kofi_freelist_put(&op->ep->tx.free_pkts, &pkt->free);
	else
		WRITE_ONCE(op->busy, false);
	return err;
}

static int rxm_send_segments(struct rxm_conn *c, struct rxm_op *op)
{
	int err = 0;

	while (!err && op->cur.left)
		err = rxm_send_segment(c, op);
	return err;
}

/* Describe local memory to the provider below. */
static void rxm_op_mem(struct rxm_op *op, struct fi_msg *mem)
{
	if (op->sgl) {
		mem->vec = KOFI_SGL;
		mem->msg_sgl = op->sgl;
		mem->iov_count = op->nr_sgl;
	} else {
		mem->vec = KOFI_ITER;
		mem->msg_iter = &op->cur.iter;
	}
}

/* ------------------------------------------------------------ remote memory */

static int rxm_send_rma(struct rxm_conn *c, struct rxm_op *op)
{
	const u64 pass = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
			 FI_REMOTE_CQ_DATA;
	struct fi_msg mem = {};
	struct fi_msg_rma msg;
	bool takes;
	int err;

	/* it uses a receive of the peer */
	takes = op->flags & FI_REMOTE_CQ_DATA && c->ep->info->mode & FI_RX_CQ_DATA;
	if (takes && !rxm_credit_take(c, c->flow.reserve))
		return -EAGAIN;

	rxm_op_mem(op, &mem);
	msg = (struct fi_msg_rma) {
		.msg_iov = mem.msg_iov,	/* of a union of pointers */
		.iov_count = mem.iov_count,
		.vec = mem.vec,
		.rma_iov = op->rma.iov,
		.rma_iov_count = op->rma.nr,
		.context = &op->cqe,
		.data = op->data,
	};
	refcount_inc(&op->refs);
	if (op->how == RXM_HOW_READ)
		err = fi_readmsg(c->msg, &msg, 0);
	else
		err = fi_writemsg(c->msg, &msg, op->flags & pass);
	if (!err)
		return 0;
	refcount_dec(&op->refs);
	if (takes)
		rxm_credit_back(c);
	return err;
}

/* ----------------------------------------------------------------- sending */

static void rxm_op_choose(struct rxm_op *op)
{
	if (op->how != RXM_HOW_NEW)
		return;
	if (op->cur.len <= RXM_EAGER)
		op->how = RXM_HOW_EAGER;
	else if (op->cur.len <= RXM_SAR)
		op->how = RXM_HOW_SEGMENTS;
	else
		op->how = RXM_HOW_RNDV;
}

static void rxm_op_count(struct rxm_stats *stats, const struct rxm_op *op)
{
	if (op->how == RXM_HOW_EAGER)
		atomic64_inc(&stats->eager);
	else if (op->how == RXM_HOW_SEGMENTS)
		atomic64_inc(&stats->segmented);
	else if (op->how == RXM_HOW_RNDV)
		atomic64_inc(&stats->rendezvous);
}

/* Send the rest of a transmit; returns -EAGAIN if a part must wait. */
static int rxm_op_send(struct rxm_conn *c, struct rxm_op *op)
{
	int err = -EAGAIN, how;

	rxm_op_choose(op);
	do {
		how = op->how;
		switch (how) {
		case RXM_HOW_EAGER:
			err = rxm_send_eager(c, op);
			break;
		case RXM_HOW_SEGMENTS:
			err = rxm_send_segments(c, op);
			break;
		case RXM_HOW_RNDV:
			err = rxm_rndv_send(c, op);
			break;
		case RXM_HOW_ATOMIC:
			err = rxm_atomic_send(c, op);
			break;
		default:
			err = rxm_send_rma(c, op);
		}
	} while (err == -EAGAIN && op->how != how);
	/* the connection is closed: its event decides if the next one sends this transmit */
	if (err == -ESHUTDOWN || err == -ENOTCONN)
		err = -EAGAIN;
	/* the peer waits for the other segments */
	if (err && err != -EAGAIN && op->seg_no)
		rxm_conn_fail(c, -err);
	return err;
}

/* Send the packets that may have waited for a completion below. */
static void rxm_push_next(struct rxm_conn *c)
{
	if (!rxm_push_idle(c))
		rxm_push(c);
}

static void rxm_grant_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rxm_conn *c = container_of(wc->cqe, struct rxm_conn,
					  flow.grant_cqe);
	unsigned long irq;

	spin_lock_irqsave(&c->lock, irq);
	/* @flow.grant may be used again */
	c->flow.granting = false;
	rxm_push_unlock(c, irq);
}

static void rxm_ctrl_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rxm_ctrl *ctrl = container_of(wc->cqe, struct rxm_ctrl, cqe);
	struct rxm_conn *c = ctrl->conn;

	ctrl->done(ctrl, rxm_wc_err(c, wc));
	rxm_push_next(c);
}

/*
 * Handle a refused grant or struct rxm_ctrl. An error terminates the connection, which
 * then flushes the operation in process context: its @done must not run in a post.
 */
static int rxm_push_refused(struct rxm_conn *c, int err)
{
	/* an event follows if the connection is closed */
	if (err != -EAGAIN && err != -ESHUTDOWN && err != -ENOTCONN)
		rxm_conn_fail(c, -err);
	return -EAGAIN;
}

/* Called with c->lock, as the next functions are; it is dropped during a post below. */
static int rxm_push_grant(struct rxm_conn *c, unsigned long *irq)
	__must_hold(&c->lock)
{
	int err;

	c->flow.granting = true;
	spin_unlock_irqrestore(&c->lock, *irq);
	c->flow.grant_cqe.done = rxm_grant_done;
	err = rxm_grant_send(c);
	if (err)
		err = rxm_push_refused(c, err);
	spin_lock_irqsave(&c->lock, *irq);
	if (err)
		c->flow.granting = false;
	return err;
}

static int rxm_push_ctrl(struct rxm_conn *c, struct rxm_ctrl *ctrl,
			 unsigned long *irq)
	__must_hold(&c->lock)
{
	int err;

	list_del_init(&ctrl->node);
	spin_unlock_irqrestore(&c->lock, *irq);
	ctrl->cqe.done = rxm_ctrl_done;
	err = ctrl->send(ctrl);
	if (err)
		err = rxm_push_refused(c, err);
	spin_lock_irqsave(&c->lock, *irq);
	if (err)
		list_add(&ctrl->node, &c->tx.ctrl);
	return err;
}

static void rxm_push_ended(struct rxm_conn *c, struct rxm_op *op, int err,
			   bool starved, unsigned long *irq)
	__must_hold(&c->lock)
{
	spin_unlock_irqrestore(&c->lock, *irq);
	if (starved)
		rxm_conn_todo(c);
	rxm_op_put(op, err);
	spin_lock_irqsave(&c->lock, *irq);
}

static int rxm_push_op(struct rxm_conn *c, struct rxm_op *op,
		       unsigned long *irq)
	__must_hold(&c->lock)
{
	bool starved;
	int err;

	spin_unlock_irqrestore(&c->lock, *irq);
	err = rxm_op_send(c, op);
	if (err != -EAGAIN)
		trace_kofi_rxm_tx(c, op);
	if (!err)
		rxm_op_count(&c->ep->stats, op);
	spin_lock_irqsave(&c->lock, *irq);
	if (err == -EAGAIN)
		return err;
	list_del_init(&op->node);
	c->tx.queued--;
	op->phase = RXM_PHASE_SENT;
	atomic_inc(&c->tx.unfinished);
	/* an answer will follow: see rxm_rx_room() */
	starved = rxm_rx_lacks(c);
	/* most times, its completion below follows and completes it */
	if (unlikely(err || starved || !refcount_dec_not_one(&op->refs)))
		rxm_push_ended(c, op, -err, starved, irq);
	return 0;
}

/* Must a transmit wait for earlier ones? The last of these to complete pushes. */
static bool rxm_op_is_behind(struct rxm_conn *c, const struct rxm_op *op)
{
	bool rma = op->how == RXM_HOW_READ || op->how == RXM_HOW_WRITE;

	lockdep_assert_held(&c->lock);

	/*
	 * The peer executes atomic operations later than the provider below accesses memory,
	 * and perhaps later than it receives messages.
	 */
	if (c->tx.atomics && (rma || (c->ep->saw && op->how != RXM_HOW_ATOMIC)))
		return true;
	if (likely(!(op->flags & FI_FENCE)))
		return false;
	/*
	 * The queue before @tx.unfinished: pairs with rxm_push_idle(). A transmit
	 * completes without c->lock, which its completion and the posts would contend for.
	 */
	smp_mb();
	return atomic_read(&c->tx.unfinished);
}

/* Send the first entry; returns -EAGAIN also without one. Called by the sender. */
static int rxm_push_one(struct rxm_conn *c, unsigned long *irq)
	__must_hold(&c->lock)
{
	struct rxm_ctrl *ctrl;
	struct rxm_op *op;

	/* transmits that a failing connection has not taken are for the next one */
	if (c->base.phase != KOFI_PEER_CONNECTED || READ_ONCE(c->err) ||
	    READ_ONCE(c->flow.hold))
		return -EAGAIN;
	if (rxm_grant_due(c))
		return rxm_push_grant(c, irq);
	ctrl = list_first_entry_or_null(&c->tx.ctrl, struct rxm_ctrl, node);
	if (ctrl)
		return rxm_push_ctrl(c, ctrl, irq);
	op = list_first_entry_or_null(&c->tx.queue, struct rxm_op, node);
	return op && !rxm_op_is_behind(c, op) ? rxm_push_op(c, op, irq) :
						-EAGAIN;
}

/**
 * rxm_push_unlock - send the queues of a connection, and release the lock
 * @c: the connection, with its lock
 * @irq: flags of the lock
 *
 * Context: as rxm_push().
 */
void rxm_push_unlock(struct rxm_conn *c, unsigned long irq)
	__releases(&c->lock)
{
	struct rxm_ep *ep = c->ep;
	int budget = RXM_PUSH_BUDGET;
	bool closing;

	if (c->tx.sender != RXM_SENDER_NONE) {
		c->tx.sender = RXM_SENDER_AGAIN;
		spin_unlock_irqrestore(&c->lock, irq);
		return;
	}
	if (c->base.phase != KOFI_PEER_CONNECTED) {
		spin_unlock_irqrestore(&c->lock, irq);
		return;
	}
	do {
		c->tx.sender = RXM_SENDER_ACTIVE;
		while (budget > 0 && !rxm_push_one(c, &irq))
			budget--;
	} while (c->tx.sender == RXM_SENDER_AGAIN && budget > 0);
	closing = c->base.phase != KOFI_PEER_CONNECTED;
	c->tx.sender = RXM_SENDER_NONE;
	spin_unlock_irqrestore(&c->lock, irq);
	if (closing)
		wake_up_all(&ep->idle);
	else if (!budget)
		rxm_conn_todo(c);
}

/**
 * rxm_push - send the queues of a connection, unless another context does
 * @c: the connection
 *
 * Entries that other processors queue concurrently are sent here, too. After
 * RXM_PUSH_BUDGET entries the work item continues, so that no caller is kept forever.
 *
 * Context: any, in an RCU read section, in a callback of the connection, or with
 * the mutex; without rx_lock.
 */
void rxm_push(struct rxm_conn *c)
{
	unsigned long irq;

	spin_lock_irqsave(&c->lock, irq);
	rxm_push_unlock(c, irq);
}

/**
 * rxm_push_idle - test that no entry may have waited for a completion below
 * @c: the connection
 *
 * An entry that is queued concurrently is sent by the context that queues it, which finds
 * the completed operation. If the provider below refuses the entry, the callback of
 * kofi_ep_write_space() repeats the post. With credits the result is always false: a
 * context that found no credit may not find one that has just arrived.
 *
 * Context: any.
 * Return: true if nothing can be waiting.
 */
bool rxm_push_idle(struct rxm_conn *c)
{
	if (c->flow.on)
		return false;
	/*
	 * The completion before the queue: pairs with rxm_op_is_behind(). Each completion
	 * below gets here, and avoids c->lock, which the posts contend for.
	 */
	smp_mb();
	return list_empty_careful(&c->tx.queue) && list_empty_careful(&c->tx.ctrl);
}

/* --------------------------------------------------------------- completions */

/* Reset delay and failures of a connection once an operation below has succeeded. */
static void rxm_conn_sent(struct rxm_conn *c, int err)
{
	if (err || !READ_ONCE(c->retry.base.delay))
		return;
	WRITE_ONCE(c->retry.base.delay, 0);
	WRITE_ONCE(c->retry.tries, 0);
}

void rxm_op_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rxm_op *op = container_of(wc->cqe, struct rxm_op, cqe);
	struct rxm_conn *c = op->conn;

	WRITE_ONCE(op->busy, false);
	rxm_conn_sent(c, wc->err);
	rxm_op_report(op, rxm_wc_err(c, wc));
	rxm_push_next(c);
}

void rxm_pkt_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rxm_pkt *pkt = container_of(wc->cqe, struct rxm_pkt, cqe);
	struct rxm_op *op = pkt->op;
	struct rxm_conn *c = op->conn;

	kofi_freelist_put(&op->ep->tx.free_pkts, &pkt->free);
	rxm_conn_sent(c, wc->err);
	rxm_op_report(op, rxm_wc_err(c, wc));
	rxm_push_next(c);
}

/**
 * rxm_tx_fail_list - fail transmits that have not been sent
 * @ops: the list
 * @err: the reason, a positive error code
 *
 * Context: process.
 */
void rxm_tx_fail_list(struct list_head *ops, int err)
{
	struct rxm_op *op, *next;

	list_for_each_entry_safe(op, next, ops, node) {
		list_del_init(&op->node);
		rxm_op_put(op, err);
	}
}

/**
 * rxm_tx_fail - fail transmits that wait for an answer, and flush answers to the peer
 * @c: a connection without an endpoint below
 * @err: the reason, a positive error code
 *
 * Transmits in the queue remain.
 *
 * Context: process, with the mutex.
 */
void rxm_tx_fail(struct rxm_conn *c, int err)
{
	struct rxm_ctrl *ctrl;
	struct rxm_op *op;

	for (;;) {
		spin_lock_irq(&c->lock);
		ctrl = list_first_entry_or_null(&c->tx.rndv, struct rxm_ctrl,
						node);
		spin_unlock_irq(&c->lock);
		if (!ctrl)
			break;
		/* without an endpoint below, no answer can arrive */
		op = container_of(ctrl, struct rxm_op, ctrl);
		if (rxm_op_unawait(op))
			rxm_op_put(op, err);
	}
	for (;;) {
		spin_lock_irq(&c->lock);
		ctrl = list_first_entry_or_null(&c->tx.ctrl, struct rxm_ctrl,
						node);
		if (ctrl)
			list_del_init(&ctrl->node);
		spin_unlock_irq(&c->lock);
		if (!ctrl)
			return;
		ctrl->done(ctrl, err);
	}
}

