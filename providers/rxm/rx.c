// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Received packets, and the messages they make up.
 *
 * Normal operation
 *
 * Each connection has receives posted below, of the size of a packet. A packet
 * that contains or begins a message searches for the receive of the message. The payload
 * is copied there, and the packet's buffer is posted again. The payload of a rendezvous is
 * fetched directly to the receive, and then the sender is notified.
 *
 * Messages without a receive
 *
 * These messages stay in their buffers, and other buffers are posted in their place. The
 * limit is held_bufs buffers of the endpoint, and half of that for one peer. At the limit a
 * connection has fewer receives, and the provider below or credits (credit.c) stall
 * its peer. Both limits are twice as high for a peer that owes us an answer, since
 * the answer arrives behind its messages. When the consumer posts a receive, the queue
 * of receives wakes the message, and the work item copies it.
 *
 * A message that is fetched to its receive, and an atomic operation, hold their buffer
 * until the answer has been sent. If two peers had no receive left but for each other's
 * requests, neither answer would arrive. So other receives are posted in their place, for
 * as many requests as a kernel peer sends, within the limits.
 *
 * A connection always has some buffers of its own, posted or not, in addition to these
 * limits. Buffers that hold messages of earlier connections to the same peer count as
 * its own, so a peer cannot use more memory by connecting again.
 *
 * Trust
 *
 * A packet is checked before anything in it is used. It must carry the number of
 * the connection on which it arrived. An invalid packet terminates its connection.
 *
 * Locks
 *
 * All of this runs under c->rx_lock, in softirq context or with bottom halves off. A
 * completion callback below reports its completions after it has released the lock.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "rxm.h"
#include "rxm_trace.h"

static void rxm_buf_done(struct fid_cq *cq, const struct kofi_wc *wc);
static void rxm_fetch_go(struct rxm_buf *buf);

/* ----------------------------------------------------------------- buffers */

/* Called with locks of queues, perhaps more than once for a message. */
static void rxm_buf_wake(struct kofi_rxmsg *msg)
{
	struct rxm_buf *buf = container_of(msg, struct rxm_buf, msg);
	struct rxm_ep *ep = buf->conn->ep;
	unsigned long irq;

	spin_lock_irqsave(&ep->woken_lock, irq);
	if (list_empty(&buf->woken))
		list_add_tail(&buf->woken, &ep->woken);
	spin_unlock_irqrestore(&ep->woken_lock, irq);
	queue_work(rxm_wq, &ep->work);
}

static void rxm_buf_unwake(struct rxm_buf *buf)
{
	struct rxm_ep *ep = buf->conn->ep;

	spin_lock_irq(&ep->woken_lock);
	list_del_init(&buf->woken);
	spin_unlock_irq(&ep->woken_lock);
}

static struct rxm_buf *rxm_buf_alloc(struct rxm_conn *c)
{
	struct rxm_buf *buf = alloc_pages_exact(sizeof(*buf),
						GFP_KERNEL | __GFP_NOWARN);

	if (!buf)
		return NULL;
	memset(buf, 0, offsetof(struct rxm_buf, hdr));
	INIT_LIST_HEAD(&buf->node);
	INIT_LIST_HEAD(&buf->more);
	INIT_LIST_HEAD(&buf->woken);
	buf->cqe.done = rxm_buf_done;
	buf->conn = c;
	kofi_rxmsg_init(&buf->msg, &c->ep->base, rxm_buf_wake);
	kofi_rxmsg_from(&buf->msg, &c->base.addr.sa);
	return buf;
}

static void rxm_buf_free(struct rxm_buf *buf)
{
	free_pages_exact(buf, sizeof(*buf));
}

static int rxm_buf_post(struct rxm_buf *buf)
{
	struct rxm_conn *c = buf->conn;
	const struct kvec kv = {
		.iov_base = &buf->hdr, .iov_len = RXM_PACKET,
	};
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = &buf->cqe,
	};
	int err;

	err = fi_recvmsg(c->msg, &msg, 0);
	if (err)
		return err;
	c->rx.posted++;
	rxm_credit_posted(c, buf->credits);
	buf->credits = false;
	return 0;
}

/* Take a buffer off all lists, and out of all counts, after its packet has been used. */
static void rxm_buf_idle(struct rxm_buf *buf)
{
	struct rxm_conn *c = buf->conn;
	struct rxm_ep *ep = c->ep;

	if (!list_empty(&buf->node))
		list_del_init(&buf->node);
	if (!list_empty_careful(&buf->woken))
		rxm_buf_unwake(buf);
	buf->op = NULL;
	buf->waits = false;
	buf->access = RXM_ACCESS_NONE;
	buf->fault = false;
	buf->got = 0;
	c->rx.requests -= buf->request;
	buf->request = false;
	c->rx.nr_held--;
	/* pairs with rxm_rx_room() */
	if (atomic_dec_return(&ep->held) < 2 * READ_ONCE(rxm_held_bufs) &&
	    READ_ONCE(ep->starved))
		queue_work(rxm_wq, &ep->work);
}

/**
 * rxm_buf_release - post a buffer again after its packet has been used, or free it
 * @buf: the buffer
 *
 * Context: in a callback, or with the mutex; with rx_lock.
 */
void rxm_buf_release(struct rxm_buf *buf)
{
	struct rxm_conn *c = buf->conn;
	bool post = c->msg && !c->rx.flushed && !READ_ONCE(c->err) &&
		    kofi_peer_get_phase(&c->base) != KOFI_PEER_CLOSING &&
		    c->rx.posted < c->ep->info->rx_attr->size;

	rxm_buf_idle(buf);
	if (post && !rxm_buf_post(buf))
		return;
	rxm_buf_free(buf);
	if (post)
		rxm_conn_todo(c);
}

/*
 * A connection with credits begins with some receives, even if messages of earlier
 * connections hold many buffers; but a peer that connects repeatedly must be limited.
 */
static bool rxm_rx_first(const struct rxm_conn *c)
{
	return c->flow.on && c->rx.posted < RXM_KEPT &&
	       kofi_peer_get_phase(&c->base) != KOFI_PEER_CONNECTED &&
	       c->rx.nr_held < READ_ONCE(rxm_held_bufs) +
			    2 * c->ep->info->rx_attr->size;
}

/*
 * May a connection have another buffer? It has some of its own, posted or not, to which
 * buffers of requests do not count; and it may hold half of the endpoint's limit. If an
 * answer may be behind the peer's messages, both limits are twice as high.
 */
static bool rxm_rx_room(struct rxm_conn *c)
{
	unsigned int own = c->rx.nr_held - min_t(unsigned int, c->rx.requests,
					      RXM_REQUESTS);
	unsigned int max = READ_ONCE(rxm_held_bufs);
	struct rxm_ep *ep = c->ep;

	lockdep_assert_held(&c->rx_lock);

	if (c->rx.flushed)
		return false;
	if (c->rx.posted + own < ep->info->rx_attr->size || rxm_rx_first(c))
		return true;
	if (!list_empty_careful(&c->tx.rndv))
		max *= 2;
	if (c->rx.nr_held >= max / 2)
		return false;
	if (atomic_read(&ep->held) < max)
		return true;
	/*
	 * Pairs with rxm_buf_idle(), which releases buffers of all connections: they have no
	 * lock in common.
	 */
	smp_store_mb(ep->starved, true);
	return atomic_read(&ep->held) < max;
}

/**
 * rxm_rx_fill - post the missing receives of a connection
 * @c: a connection with an endpoint below
 *
 * Without memory the timer repeats it.
 *
 * Context: process, may sleep, with the mutex.
 * Return: 0; if no receive is posted, -ENOMEM or the error of the post.
 */
int rxm_rx_fill(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	struct rxm_buf *buf;
	bool none;
	int err = 0;

	spin_lock_bh(&c->rx_lock);
	while (!err && c->rx.posted < ep->info->rx_attr->size &&
	       rxm_rx_room(c)) {
		spin_unlock_bh(&c->rx_lock);
		buf = rxm_buf_alloc(c);
		spin_lock_bh(&c->rx_lock);
		err = buf ? rxm_buf_post(buf) : -ENOMEM;
		if (buf && err)
			rxm_buf_free(buf);
	}
	none = !c->rx.posted;
	spin_unlock_bh(&c->rx_lock);
	if (err == -ENOMEM || err == -EAGAIN) {
		WRITE_ONCE(ep->starved, true);
		rxm_conn_timer_set(ep, jiffies + RXM_REFILL);
	}
	return none ? err : 0;
}

/**
 * rxm_rx_starved - post receives that could not be posted before
 * @ep: the endpoint
 *
 * Context: process, may sleep, with the mutex.
 */
void rxm_rx_starved(struct rxm_ep *ep)
{
	struct rxm_conn *c;

	/* pairs with rxm_rx_room() */
	if (!xchg(&ep->starved, false))
		return;
	list_for_each_entry(c, &ep->conns, list) {
		if (READ_ONCE(ep->closed))
			return;
		if (c->msg && !READ_ONCE(c->err)) {
			rxm_rx_fill(c);
			/* credits */
			rxm_push(c);
		}
		cond_resched();
	}
}

/* Send packets after a received one may have made this possible. Called without rx_lock. */
static void rxm_rx_push(struct rxm_conn *c)
{
	unsigned long irq;
	bool lacks;

	/* a context that has used up the last receive checks under c->lock: see rxm_rx_lacks() */
	if (rxm_push_idle(c) && READ_ONCE(c->rx.posted))
		return;
	spin_lock_irqsave(&c->lock, irq);
	lacks = rxm_rx_lacks(c);
	rxm_push_unlock(c, irq);
	if (unlikely(lacks))
		rxm_conn_todo(c);
}

/* Mark a buffer as held by a request until our answer has been sent. */
static void rxm_buf_asks(struct rxm_buf *buf)
{
	buf->request = true;
	buf->conn->rx.requests++;
}

static void rxm_violation(struct rxm_conn *c, struct rxm_buf *buf)
{
	trace_kofi_rxm_violation(c, &buf->hdr, buf->len);
	rxm_conn_violated(c, "bad packet");
	rxm_conn_fail(c, EPROTO);
	rxm_buf_release(buf);
}

/* ---------------------------------------------------------------- messages */

static void rxm_message_copy(struct rxm_buf *head, const void *data, size_t len)
{
	if (head->op && !head->fault)
		head->fault = kofi_cursor_write(&head->op->cur, data, len);
}

/* Copy a whole message. The cursor does not advance, as nothing follows. */
static void rxm_eager_copy(struct rxm_buf *buf)
{
	struct kofi_rxop *op = buf->op;
	size_t len = buf->hdr.size;
	void *flat;

	if (!op)
		return;
	len = min(len, op->cur.left);
	flat = kofi_cursor_flat(&op->cur, len);
	if (likely(flat))
		memcpy(flat, buf->data, len);
	else
		buf->fault = kofi_cursor_write(&op->cur, buf->data, len);
}

/* Complete the receive of a message, unless the message is discarded. */
static void rxm_message_done(struct rxm_buf *buf, int err)
{
	struct kofi_rxmsg *msg = &buf->msg;
	struct kofi_rxop *op = buf->op;
	struct kofi_wc wc = {
		.flags = FI_RECV | msg->flags |
			 (msg->tagged ? FI_TAGGED : FI_MSG),
		.err = err ?: buf->fault ? EFAULT : 0,
		.tag = msg->tag,
		.data = msg->data,
		.src = msg->src,
	};

	if (!op)
		return;
	buf->op = NULL;
	if (wc.err)
		kofi_rxq_done(rxm_rxq(buf->conn->ep), op, &wc);
	else
		kofi_rxq_received(rxm_rxq(buf->conn->ep), msg, op);
}

static void rxm_segment_copy(struct rxm_buf *head, struct rxm_buf *buf)
{
	rxm_message_copy(head, buf->data, buf->hdr.seg_size);
}

static void rxm_segments_end(struct rxm_buf *head)
{
	if (head->got < head->msg.len)
		return;
	rxm_message_done(head, 0);
	rxm_buf_release(head);
}

/* Process a message that has its receive, or that is discarded. */
static void rxm_message_place(struct rxm_buf *buf)
{
	struct rxm_buf *part, *next;

	switch (buf->hdr.type) {
	case RXM_EAGER_MSG:
		rxm_eager_copy(buf);
		rxm_message_done(buf, 0);
		rxm_buf_release(buf);
		break;
	case RXM_SEGMENT:
		rxm_segment_copy(buf, buf);
		list_for_each_entry_safe(part, next, &buf->more, node) {
			rxm_segment_copy(buf, part);
			rxm_buf_release(part);
		}
		rxm_segments_end(buf);
		break;
	case RXM_RNDV_REQ:
		rxm_buf_asks(buf);
		buf->mem_no = 0;
		buf->mem_off = 0;
		buf->chunk_max = rxm_chunk_most(buf->conn->ep);
		buf->left = buf->op ? min_t(u64, buf->msg.len,
					    buf->op->cur.len) : 0;
		rxm_fetch_go(buf);
		break;
	}
}

/* Uncount a stored message, with all of its segments that have arrived. */
static void rxm_message_unstored(struct rxm_buf *buf)
{
	buf->conn->rx.stored--;
	buf->conn->rx.stored_bufs -= buf->next_no;
}

/* Search for the receive of a message. Without one, the message and its segments wait. */
static void rxm_message_match(struct rxm_buf *buf)
{
	struct rxm_conn *c = buf->conn;
	bool waited = buf->waits;

	buf->waits = kofi_rxq_match(rxm_rxq(c->ep), &buf->msg, &buf->op);
	/* a message that is copied at once needs no place on the list */
	if (list_empty(&buf->node) &&
	    (buf->waits || buf->hdr.type != RXM_EAGER_MSG))
		list_add_tail(&buf->node, &c->rx.held);
	if (!buf->waits) {
		if (waited)
			rxm_message_unstored(buf);
		rxm_message_place(buf);
	} else if (!waited) {
		c->rx.unnamed |= buf->msg.src == FI_ADDR_NOTAVAIL;
		c->rx.stored++;
		c->rx.stored_bufs++;
		atomic64_inc(&c->ep->stats.unexpected);
		/* post another receive in its place */
		rxm_conn_todo(c);
	}
}

/* The sender has become known: give the address to its stored messages, in their order. */
static void rxm_rename(struct rxm_conn *c, fi_addr_t src)
{
	struct rxm_buf *buf;

	list_for_each_entry(buf, &c->rx.held, node)
		if (buf->waits && buf->msg.src == FI_ADDR_NOTAVAIL)
			kofi_rxq_rename(rxm_rxq(c->ep), &buf->msg, src);
	c->rx.unnamed = false;
}

static void rxm_message_begin(struct rxm_buf *buf)
{
	const struct rxm_hdr *h = &buf->hdr;
	struct rxm_conn *c = buf->conn;
	struct kofi_rxmsg *msg = &buf->msg;

	/* no receive would ever match it */
	if (unlikely(h->op == RXM_OP_TAGGED &&
		     !(c->ep->base.info->caps & FI_TAGGED))) {
		rxm_violation(c, buf);
		return;
	}
	msg->src = rxm_source(c->ep, c, &c->rx.known);
	/* a stored message must not be overtaken */
	if (unlikely(c->rx.unnamed) && msg->src != FI_ADDR_NOTAVAIL)
		rxm_rename(c, msg->src);
	msg->len = h->size;
	msg->tagged = h->op == RXM_OP_TAGGED;
	msg->tag = msg->tagged ? h->tag : 0;
	msg->data = h->flags & RXM_F_CQ_DATA ? h->data : 0;
	msg->flags = h->flags & RXM_F_CQ_DATA ? FI_REMOTE_CQ_DATA : 0;
	buf->got = h->type == RXM_SEGMENT ? h->seg_size : h->size;
	buf->next_no = 1;
	rxm_message_match(buf);
}

static struct rxm_buf *rxm_segment_head(struct rxm_conn *c, u64 msg_id)
{
	struct rxm_buf *buf;

	list_for_each_entry(buf, &c->rx.held, node)
		if (buf->hdr.type == RXM_SEGMENT &&
		    buf->hdr.msg_id == msg_id && buf->got < buf->msg.len)
			return buf;
	return NULL;
}

static void rxm_segment(struct rxm_buf *buf)
{
	const struct rxm_hdr *h = &buf->hdr;
	u64 place = h->ctrl_data & 3;
	struct rxm_buf *head = rxm_segment_head(buf->conn, h->msg_id);
	bool last = place == RXM_SEG_LAST;

	if (place == RXM_SEG_FIRST && !head) {
		rxm_message_begin(buf);
		return;
	}
	if (place == RXM_SEG_FIRST || !head ||
	    h->seg_no != head->next_no || h->size != head->msg.len ||
	    h->seg_size > head->msg.len - head->got ||
	    last != (h->seg_size == head->msg.len - head->got)) {
		rxm_violation(buf->conn, buf);
		return;
	}
	head->got += h->seg_size;
	head->next_no++;
	if (head->waits) {
		list_add_tail(&buf->node, &head->more);
		head->conn->rx.stored_bufs++;
		rxm_conn_todo(buf->conn);
		return;
	}
	rxm_segment_copy(head, buf);
	rxm_buf_release(buf);
	rxm_segments_end(head);
}

/* -------------------------------------------------------------- rendezvous */

static struct rxm_buf *rxm_ctrl_buf(struct rxm_ctrl *ctrl)
{
	return container_of(ctrl, struct rxm_buf, ctrl);
}

static void rxm_ctrl_init(struct rxm_buf *buf, int (*send)(struct rxm_ctrl *),
			  void (*done)(struct rxm_ctrl *, int))
{
	buf->ctrl.conn = buf->conn;
	buf->ctrl.send = send;
	buf->ctrl.done = done;
	rxm_ctrl_queue(&buf->ctrl);
}

/* An answer has been sent, or flushed: release its buffer. */
static void rxm_answer_done(struct rxm_ctrl *ctrl, int err)
{
	struct rxm_buf *buf = rxm_ctrl_buf(ctrl);
	struct rxm_conn *c = buf->conn;

	spin_lock_bh(&c->rx_lock);
	rxm_buf_release(buf);
	spin_unlock_bh(&c->rx_lock);
}

static int rxm_answer_send(struct rxm_ctrl *ctrl)
{
	struct rxm_buf *buf = rxm_ctrl_buf(ctrl);
	const struct kvec kv[] = { {
		.iov_base = &buf->answer,
		.iov_len = sizeof(buf->answer) +
			   (buf->answer.type == RXM_ATOMIC_RSP ?
			    sizeof(buf->rsp) : 0),
	}, {
		.iov_base = buf->data + RXM_ATOMIC_MEM,
		.iov_len = buf->result,
	} };
	const struct fi_msg msg = {
		.msg_iov = kv, .iov_count = buf->result ? 2 : 1,
		.context = &ctrl->cqe,
	};

	buf->answer.conn_id = (u32)ctrl->conn->peer_id;
	return rxm_send_packet(ctrl->conn, &msg, 0, 1);
}

static void rxm_answer_format(struct rxm_buf *buf, u8 type)
{
	buf->result = 0;
	/* the peer's number may become known only when the answer is sent */
	rxm_hdr_format(&buf->answer, type, 0, buf->hdr.msg_id);
}

/* Describe the next fetch: as much of one entry of the sender's memory as possible. */
static size_t rxm_fetch_chunk(struct rxm_buf *buf, struct iov_iter *iter,
			      struct fi_rma_iov *rma)
{
	const struct rxm_rndv *r = (const void *)buf->data;
	const struct rxm_mem *mem;
	u64 n;

	while (buf->mem_off == r->mem[buf->mem_no].len) {
		buf->mem_no++;
		buf->mem_off = 0;
	}
	mem = &r->mem[buf->mem_no];
	*iter = *kofi_cursor_iter(&buf->op->cur);
	n = min3(buf->left, mem->len - buf->mem_off, (u64)buf->chunk_max);
	iov_iter_truncate(iter, n);
	*rma = (struct fi_rma_iov) {
		.addr = mem->addr + buf->mem_off,
		.len = iov_iter_count(iter),
		.key = mem->key,
	};
	return rma->len;
}

static int rxm_fetch_send(struct rxm_ctrl *ctrl)
{
	struct rxm_buf *buf = rxm_ctrl_buf(ctrl);
	struct fi_rma_iov rma;
	struct iov_iter iter;
	const struct fi_msg_rma msg = {
		.msg_iter = &iter, .vec = KOFI_ITER, .rma_iov = &rma,
		.rma_iov_count = 1, .context = &ctrl->cqe,
	};
	int err;

	do {
		buf->chunk = rxm_fetch_chunk(buf, &iter, &rma);
		err = fi_readmsg(ctrl->conn->msg, &msg, 0);
	} while (err == -EMSGSIZE &&
		 rxm_chunk_less(&buf->chunk_max, buf->chunk));
	return err;
}

static void rxm_fetch_done(struct rxm_ctrl *ctrl, int err)
{
	struct rxm_buf *buf = rxm_ctrl_buf(ctrl);
	struct rxm_conn *c = buf->conn;

	spin_lock_bh(&c->rx_lock);
	if (err) {
		rxm_message_done(buf, err);
		rxm_conn_fail(c, err);
		rxm_buf_release(buf);
	} else {
		kofi_cursor_used(&buf->op->cur, buf->chunk);
		buf->mem_off += buf->chunk;
		buf->left -= buf->chunk;
		rxm_fetch_go(buf);
	}
	spin_unlock_bh(&c->rx_lock);
}

static void rxm_fetch_go(struct rxm_buf *buf)
{
	if (buf->left) {
		rxm_ctrl_init(buf, rxm_fetch_send, rxm_fetch_done);
		return;
	}
	rxm_message_done(buf, 0);
	rxm_answer_format(buf, RXM_READ_DONE);
	rxm_ctrl_init(buf, rxm_answer_send, rxm_answer_done);
}

/* ----------------------------------------------------------------- packets */

/**
 * rxm_atomic_serve - execute an atomic request, and queue the answer
 * @buf: the request, on rxm_conn_rx.accesses; the answer is sent from this buffer, so
 *	nothing is allocated
 *
 * rxm_push() must follow.
 *
 * Context: softirq, or with bottom halves off; with rx_lock.
 * Return: 0; -EAGAIN without a slot to report it, and the buffer will be woken.
 */
int rxm_atomic_serve(struct rxm_buf *buf)
{
	const struct rxm_hdr *h = &buf->hdr;
	size_t result;
	int err;

	err = rxm_atomic_do(buf, &result);
	if (err == -EAGAIN)
		return err;
	list_move_tail(&buf->node, &buf->conn->rx.held);
	buf->access = RXM_ACCESS_NONE;
	rxm_buf_asks(buf);
	rxm_answer_format(buf, RXM_ATOMIC_RSP);
	buf->result = result;
	buf->rsp = (struct rxm_atomic_rsp) {
		.status = cpu_to_be32(err),
		.len = cpu_to_be32(result),
	};
	buf->answer.op = h->op;
	buf->answer.datatype = h->datatype;
	buf->answer.atomic_op = h->atomic_op;
	buf->answer.size = sizeof(buf->rsp) + result;
	rxm_ctrl_init(buf, rxm_answer_send, rxm_answer_done);
	return 0;
}

static void rxm_packet(struct rxm_conn *c, struct rxm_buf *buf)
{
	const struct rxm_hdr *h = &buf->hdr;

	if (rxm_packet_check(h, buf->len, RXM_EAGER) ||
	    (u32)h->conn_id != c->base.number) {
		rxm_violation(c, buf);
		return;
	}
	trace_kofi_rxm_rx(c, h, buf->len);
	switch (h->type) {
	case RXM_EAGER_MSG:
	case RXM_RNDV_REQ:
		rxm_message_begin(buf);
		return;
	case RXM_SEGMENT:
		rxm_segment(buf);
		return;
	case RXM_ATOMIC:
		rxm_access(buf, RXM_ACCESS_ATOMIC);
		return;
	case RXM_ATOMIC_RSP:
		if (rxm_atomic_answered(c, h))
			break;
		rxm_buf_release(buf);
		return;
	case RXM_READ_DONE:
	case RXM_WRITE_DATA:
		if (rxm_rndv_answered(c, h))
			break;
		rxm_buf_release(buf);
		return;
	case RXM_CREDITS:
		if (rxm_credits_come(c, h->ctrl_data))
			break;
		buf->credits = true;
		rxm_buf_release(buf);
		return;
	}
	rxm_violation(c, buf);
}

/* The connection below is closed, and flushes its receives. */
static void rxm_buf_flushed(struct rxm_buf *buf)
{
	buf->conn->rx.flushed = true;
	rxm_buf_idle(buf);
	rxm_buf_free(buf);
}

static void rxm_buf_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rxm_buf *buf = container_of(wc->cqe, struct rxm_buf, cqe);
	struct rxm_conn *c = buf->conn;
	struct kofi_cq *own = rxm_rxq(c->ep)->ep->rx_cq;
	bool begun = kofi_cq_begin(own);

	spin_lock_bh(&c->rx_lock);
	c->rx.posted--;
	c->rx.nr_held++;
	atomic_inc(&c->ep->held);
	buf->len = wc->len;
	if (wc->err == FI_ETRUNC || (!wc->err && rxm_credit_used(c)))
		rxm_violation(c, buf);
	else if (wc->err)
		rxm_buf_flushed(buf);
	else if (READ_ONCE(c->err))
		rxm_buf_release(buf);
	else if (wc->flags & FI_RMA)
		rxm_remote_data(buf, wc);
	else
		rxm_packet(c, buf);
	spin_unlock_bh(&c->rx_lock);
	/* send an answer before the consumer's handler runs */
	rxm_rx_push(c);
	if (begun)
		kofi_cq_end(own);
}

/* ------------------------------------------------------ from process context */

/* The connection of the first woken message; the mutex keeps its record. */
static struct rxm_conn *rxm_woken_conn(struct rxm_ep *ep)
{
	struct rxm_buf *buf;
	struct rxm_conn *c;

	spin_lock_irq(&ep->woken_lock);
	buf = list_first_entry_or_null(&ep->woken, struct rxm_buf, woken);
	c = buf ? buf->conn : NULL;
	spin_unlock_irq(&ep->woken_lock);
	return c;
}

/* A released buffer leaves the list under rx_lock, so a listed one holds a packet. */
static struct rxm_buf *rxm_woken_next(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	struct rxm_buf *buf;

	lockdep_assert_held(&c->rx_lock);

	spin_lock_irq(&ep->woken_lock);
	buf = list_first_entry_or_null(&ep->woken, struct rxm_buf, woken);
	if (buf && buf->conn == c)
		list_del_init(&buf->woken);
	else
		buf = NULL;
	spin_unlock_irq(&ep->woken_lock);
	return buf;
}

/**
 * rxm_rx_woken - process messages that may have a receive now
 * @ep: the endpoint
 *
 * A callback that posts a receive wakes the next message, so a stream could occupy the
 * mutex: after RXM_BUDGET messages the work item runs again.
 *
 * Context: process, with the mutex.
 */
void rxm_rx_woken(struct rxm_ep *ep)
{
	struct rxm_buf *buf;
	struct rxm_conn *c;
	int i;

	for (i = 0; i < RXM_BUDGET && !READ_ONCE(ep->closed); i++) {
		c = rxm_woken_conn(ep);
		if (!c)
			return;
		spin_lock_bh(&c->rx_lock);
		buf = rxm_woken_next(c);
		/* a message that was woken twice may be matched by now */
		if (buf && buf->access)
			rxm_accesses(c);
		else if (buf && buf->waits)
			rxm_message_match(buf);
		spin_unlock_bh(&c->rx_lock);
		/* without messages the record may be freed */
		if (!c->msg)
			rxm_conn_todo(c);
		rxm_rx_push(c);
		cond_resched();
	}
	queue_work(rxm_wq, &ep->work);
}

/* kofi_ep_ops.peers_added */
void rxm_peers_added(struct fid_ep *fid)
{
	struct rxm_ep *ep = rxm_ep(fid);
	struct rxm_conn *c;
	fi_addr_t src;

	mutex_lock(&ep->mutex);
	list_for_each_entry(c, &ep->conns, list) {
		kofi_peers_recount(&ep->peers, &c->base);
		if (!c->base.shares[0])
			list_del_init(&c->departed);
		/* later messages find the address themselves */
		spin_lock_bh(&c->rx_lock);
		if (c->rx.unnamed) {
			src = rxm_source(ep, c, &c->rx.known);
			if (src != FI_ADDR_NOTAVAIL)
				rxm_rename(c, src);
		}
		spin_unlock_bh(&c->rx_lock);
	}
	mutex_unlock(&ep->mutex);
}

/* Discard a message, with the segments that have arrived. */
static void rxm_message_drop(struct rxm_buf *buf)
{
	struct rxm_buf *part, *next;

	if (buf->waits) {
		kofi_rxq_forget(rxm_rxq(buf->conn->ep), &buf->msg);
		rxm_message_unstored(buf);
	}
	rxm_message_done(buf, ENOTCONN);
	list_for_each_entry_safe(part, next, &buf->more, node)
		rxm_buf_release(part);
	rxm_buf_release(buf);
}

/**
 * rxm_rx_disconnected - discard atomic requests, and messages that stay incomplete
 * @c: a connection without an endpoint below
 *
 * The receives of these messages fail. A rendezvous cannot be fetched and counts as
 * incomplete. Stored complete messages and remote CQ data remain.
 *
 * Context: process, with the mutex.
 */
void rxm_rx_disconnected(struct rxm_conn *c)
{
	struct rxm_buf *buf, *next;

	spin_lock_bh(&c->rx_lock);
	list_for_each_entry_safe(buf, next, &c->rx.held, node)
		if (!buf->waits || buf->hdr.type == RXM_RNDV_REQ ||
		    buf->got < buf->msg.len)
			rxm_message_drop(buf);
	rxm_access_drop(c, false);
	spin_unlock_bh(&c->rx_lock);
}

/**
 * rxm_rx_unclaimed - test whether no receive has a message of a connection
 * @c: a connection without an endpoint below
 *
 * Context: process, with the mutex.
 * Return: false if a message has its receive, is kept for a claim, or is being copied, or if
 * remote CQ data waits for a slot.
 */
bool rxm_rx_unclaimed(struct rxm_conn *c)
{
	struct rxm_buf *buf;
	bool unclaimed;

	spin_lock_bh(&c->rx_lock);
	unclaimed = list_empty(&c->rx.accesses);
	list_for_each_entry(buf, &c->rx.held, node)
		unclaimed = unclaimed && buf->waits &&
			    kofi_rxq_unclaimed(rxm_rxq(c->ep), &buf->msg);
	spin_unlock_bh(&c->rx_lock);
	return unclaimed;
}

/**
 * rxm_rx_discard - discard stored messages up to the first one that has a receive
 * @c: a connection without an endpoint below
 *
 * Context: process, with the mutex.
 * Return: true if no message is left.
 */
bool rxm_rx_discard(struct rxm_conn *c)
{
	struct rxm_buf *buf, *next;
	bool empty;

	spin_lock_bh(&c->rx_lock);
	list_for_each_entry_safe(buf, next, &c->rx.held, node) {
		if (!buf->waits ||
		    !kofi_rxq_discard(rxm_rxq(c->ep), &buf->msg))
			break;
		rxm_message_drop(buf);
	}
	empty = list_empty(&c->rx.held);
	spin_unlock_bh(&c->rx_lock);
	return empty;
}

/**
 * rxm_rx_forget - discard stored messages and remote CQ data
 * @c: a connection without an endpoint below
 *
 * Context: process, with the mutex.
 */
void rxm_rx_forget(struct rxm_conn *c)
{
	struct rxm_buf *buf, *next;

	spin_lock_bh(&c->rx_lock);
	list_for_each_entry_safe(buf, next, &c->rx.held, node)
		rxm_message_drop(buf);
	rxm_access_drop(c, true);
	spin_unlock_bh(&c->rx_lock);
}
