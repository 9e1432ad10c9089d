// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send side of a stream.
 *
 * If possible, a post sends its operation at once. While a softirq calls back for one
 * completion after the other, it sends after the last callback (kofi_ep_defer()). The
 * socket's lock decides which context may call TCP. The lock can be had in two ways:
 * owned, in process context, or by its spinlock while it is not owned. A post only tries
 * the spinlock. If that fails, the post leaves the operation on a list under posts.lock,
 * and the endpoint's softirq item sends; if that finds the socket owned, the work item
 * does. A context with the socket locked collects the list; all other state of the
 * sender needs no other lock.
 *
 * The lock alone does not make one sender, because TCP may process the backlog
 * in the middle of a send, and that runs our own callbacks: tx.state does. The
 * sender clears it only with the lists empty, or if something is certain to resume
 * sending: TCP's write_space, the retry timer, the work item. It checks the
 * list of posts once more after that, and a post checks tx.state after it has
 * put its operation there, so one of the two sees the other.
 *
 * A frame, once begun, is finished before the next one; the position in it is
 * kept in the connection. Frames that the peer waits for go ahead of operations that have
 * not begun: acknowledgments, which are only counted, since they have no identity,
 * and responses to its reads (rma.c). Both are in the order of the peer's requests.
 *
 * Operations begin in the order they were posted. One with FI_FENCE does not
 * begin while an earlier one waits for the peer, nor does a read while too
 * many others do. The sender then becomes idle. The context that reads the peer's
 * answer sees to it that the sender runs again.
 *
 * An operation completes when its last byte has been copied into the socket,
 * or, if it asked for more than that, when the peer has acknowledged it; a
 * read when the response is in its memory. An operation that hands its pages to TCP
 * instead of having them copied also waits for the pages (zerocopy.c). When the stream is
 * closed, all other operations are flushed in the order they were posted.
 *
 * Small frames go to TCP several at a time (frame.c), and share segments when the
 * sender knows that another follows, or FI_MORE promises it. If that promise is
 * not kept, the retry timer has the work item push out the bytes that TCP holds back.
 */
#include <linux/bvec.h>
#include <linux/list_sort.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <kunit/visibility.h>
#include <net/tcp.h>

#include "sock.h"
#include "sock_trace.h"
#include "tls.h"

/* ------------------------------------------------------------- completing */

/* The stream has done with an operation. */
static __always_inline void ksk_tx_done(struct ksk_conn *c,
					struct ksk_txop *op, int err)
{
	if (!op->zc) {
		ksk_tx_complete(c, op, err);
		return;
	}
	op->err = err;
	ksk_zc_done(op);
}

/**
 * ksk_tx_acked - take an acknowledgment
 * @c: the connection
 *
 * It belongs to the oldest frame that waits for one.
 *
 * Context: locked.
 * Return: false if no frame waits for one.
 */
bool ksk_tx_acked(struct ksk_conn *c)
{
	struct ksk_txop *op;

	op = list_first_entry_or_null(&c->tx.wait, struct ksk_txop, node);
	if (!op)
		return false;
	list_del(&op->node);
	ksk_tx_done(c, op, 0);
	return true;
}

/**
 * ksk_tx_reading - get the read that the next response answers
 * @c: the connection
 *
 * Context: locked.
 * Return: the oldest read; NULL if none waits.
 */
struct ksk_txop *ksk_tx_reading(struct ksk_conn *c)
{
	return list_first_entry_or_null(&c->tx.reads, struct ksk_txop, node);
}

/**
 * ksk_tx_read_done - complete the oldest read after its response
 * @c: the connection
 *
 * Context: locked.
 */
void ksk_tx_read_done(struct ksk_conn *c)
{
	struct ksk_txop *op = ksk_tx_reading(c);

	list_del(&op->node);
	c->tx.nreads--;
	ksk_stat_inc(&c->stats.rx_responses);
	ksk_tx_done(c, op, 0);
}

/* Posts read the state without the socket's lock. */
static void ksk_tx_state(struct ksk_conn *c, enum ksk_tx_state state)
{
	WRITE_ONCE(c->tx.state, state);
}

static noinline void ksk_tx_collect_posted(struct ksk_conn *c)
{
	unsigned long irq;

	spin_lock_irqsave(&c->posts.lock, irq);
	list_splice_tail_init(&c->posts.list, &c->tx.queue);
	c->tx.nqueued += c->posts.n;
	c->posts.n = 0;
	spin_unlock_irqrestore(&c->posts.lock, irq);
}

/* Append the operations that were posted without the socket's lock to the queue. */
static void ksk_tx_collect(struct ksk_conn *c)
{
	if (!list_empty(&c->posts.list))
		ksk_tx_collect_posted(c);
}

static int ksk_tx_compare(void *priv, const struct list_head *a,
			  const struct list_head *b)
{
	const struct ksk_txop *x = list_entry(a, struct ksk_txop, node);
	const struct ksk_txop *y = list_entry(b, struct ksk_txop, node);

	return (s32)(x->seq - y->seq);
}

/* Collect the operations that have begun, in the order they were posted. */
static void ksk_tx_begun(struct ksk_conn *c, struct list_head *list)
{
	if (c->frame.op)
		list_add(&c->frame.op->node, list);
	list_splice_tail_init(&c->tx.wait, list);
	list_splice_tail_init(&c->tx.reads, list);
	if (c->rndv.state)
		ksk_rndv_flush_tx(c, list);
	list_sort(NULL, list, ksk_tx_compare);
}

/**
 * ksk_tx_flush - complete every transmit with an error, and refuse further ones
 * @c: the connection
 *
 * An operation with pages in the network completes when they are back.
 *
 * Context: process; locked, if there is a socket.
 */
void ksk_tx_flush(struct ksk_conn *c)
{
	int err = ksk_tx_flush_err(c);
	struct ksk_txop *op, *next;
	unsigned long irq;
	LIST_HEAD(list);

	spin_lock_irqsave(&c->posts.lock, irq);
	c->posts.closed = true;
	spin_unlock_irqrestore(&c->posts.lock, irq);

	c->tx.acks = 0;
	ksk_tx_state(c, KSK_TX_IDLE);
	ksk_tx_begun(c, &list);
	c->tx.nreads = 0;
	ksk_tx_collect(c);
	list_splice_tail_init(&c->tx.queue, &list);
	c->tx.nqueued = 0;

	if (c->frame.hdr_off)
		set_bit(KSK_CONN_HALF_SENT, &c->flags);
	c->frame.op = NULL;
	c->tx.held = false;
	c->frame.hdr_len = 0;
	c->frame.hdr_off = 0;
	c->frame.left = 0;
	ksk_rma_flush(c);

	list_for_each_entry_safe(op, next, &list, node)
		ksk_tx_done(c, op, err);
}

/* ---------------------------------------------------------------- sending */

/*
 * Must the oldest operation wait for answers to earlier ones? The one that is
 * being sent counts as sent.
 */
static __always_inline bool ksk_tx_blocked(const struct ksk_conn *c,
					   const struct ksk_txop *op)
{
	if (op->op == KSK_OP_READ_REQ && c->tx.nreads >= KSK_READS_MAX)
		return true;
	return (op->flags & FI_FENCE) &&
	       (c->tx.nreads || c->rndv.out || !list_empty(&c->tx.wait) ||
		(c->frame.op && c->frame.op->ack));
}

/* The operation, on no list, is the next to be sent. */
static __always_inline void ksk_tx_begin(struct ksk_conn *c, struct ksk_txop *op)
{
	op->seq = c->tx.seq++;
	if (op->op == KSK_OP_READ_REQ)
		c->tx.nreads++;
	else if (ksk_rndv_wanted(c, op))
		ksk_rndv_begin(c, op);
	c->frame.rsp = NULL;
	c->frame.op = op;
}

/* Take the oldest operation, if it may begin. */
static __always_inline bool ksk_tx_take(struct ksk_conn *c)
{
	struct ksk_txop *op;
	bool held;

	ksk_tx_collect(c);
	op = list_first_entry_or_null(&c->tx.queue, struct ksk_txop, node);
	held = op && ksk_tx_blocked(c, op);
	if (held && !c->tx.held)
		ksk_stat_inc(&c->stats.tx_held);
	c->tx.held = held;
	if (!op || held)
		return false;
	list_del(&op->node);
	c->tx.nqueued--;
	ksk_tx_begin(c, op);
	return true;
}

/* Let the work item send the bytes that the socket holds back. */
static void ksk_tx_push(struct ksk_conn *c)
{
	set_bit(KSK_CONN_PUSH, &c->flags);
	ksk_conn_queue(c);
}

/*
 * Nothing follows, although FI_MORE promised it: the last segment waits in
 * the socket. Without us, TCP's timer for closed windows would send it, after 200 ms or
 * more. One tick is enough for a post of the same burst. If the next operation is there
 * but must wait for answers, perhaps to the held segment, push without a tick.
 */
static noinline void ksk_tx_cork_wait(struct ksk_conn *c)
{
	if (c->tx.held)
		ksk_tx_push(c);
	else if (!timer_pending(&c->retry))
		mod_timer(&c->retry, jiffies + 1);
}

static __always_inline void ksk_tx_corked(struct ksk_conn *c)
{
	if (unlikely(c->tx.corked))
		ksk_tx_cork_wait(c);
}

/* Choose the next frame. False: nothing may begin. */
static __always_inline bool ksk_tx_choose(struct ksk_conn *c)
{
	u64 *acks = &c->tx.acks;

	c->frame.rsp = NULL;
	if (unlikely(c->retired))
		return false;
	if (unlikely(c->rndv.todo) && ksk_rndv_next(c, false))
		return true;
	if (c->rsps.n) {
		struct ksk_rsp *rsp = &c->rsps.ring[c->rsps.first];

		/* acknowledgments of frames that arrived before the request */
		acks = &rsp->acks;
		if (!*acks) {
			c->frame.rsp = rsp;
			return true;
		}
	}
	if (*acks) {
		--*acks;
		return true;
	}
	if (unlikely(c->rndv.todo))
		return ksk_rndv_next(c, true);
	return ksk_tx_take(c);
}

/* Become the sender, with a frame that has begun or has been chosen. */
static bool ksk_tx_start(struct ksk_conn *c)
{
	if (c->tx.state != KSK_TX_IDLE ||
	    (!c->frame.hdr_len && !ksk_tx_choose(c)))
		return false;
	ksk_tx_state(c, KSK_TX_ACTIVE);
	return true;
}

/* Test whether there is more to send than the current frame. */
static __always_inline bool ksk_tx_others(const struct ksk_conn *c)
{
	return (c->tx.acks | c->rsps.n | c->rndv.todo) ||
	       !list_empty(&c->tx.queue) || !list_empty(&c->posts.list);
}

/*
 * Go on to the next frame. With nothing to send the caller is no longer the
 * sender when this returns.
 */
static __always_inline bool ksk_tx_next(struct ksk_conn *c)
{
	if (unlikely(ksk_tx_others(c)) && ksk_tx_choose(c))
		return true;
	ksk_tx_state(c, KSK_TX_IDLE);
	/* for each send cheaper than posts.lock: the state, before the check of posts */
	smp_mb();	/* pairs with ksk_tx_leave() */
	if (unlikely(!list_empty(&c->posts.list)) && ksk_tx_start(c))
		return true;
	ksk_tx_corked(c);
	return false;
}

/* Begin a frame that is no operation's. */
static noinline void ksk_tx_format_answer(struct ksk_conn *c)
{
	struct ksk_rsp *rsp = c->frame.rsp;
	void *hdr = c->frame.hdr;

	c->frame.left = rsp ? rsp->payload : 0;
	if (rsp)
		c->frame.hdr_len = ksk_tx_format_rsp(hdr, rsp->payload,
						     c->frame.id, c->be);
	else if (c->frame.cts)
		c->frame.hdr_len = ksk_tx_format_cts(hdr, c->frame.cts,
						     c->frame.id, c->be);
	else
		c->frame.hdr_len = ksk_tx_format_ack(hdr, c->frame.id, c->be);
}

/* Begin the frame that has been chosen. */
static __always_inline void ksk_tx_format(struct ksk_conn *c)
{
	struct ksk_txop *op = c->frame.op;

	if (likely(op)) {
		/* most are too short */
		if (op->cur.len >= c->zc.min)
			ksk_zc_begin(c, op);
		c->frame.left = ksk_txop_payload(op);
		c->frame.hdr_len = ksk_tx_format_op(c->frame.hdr, op,
						    c->frame.id, c->be);
	} else {
		ksk_tx_format_answer(c);
	}
	c->frame.id++;
}

/* The last byte of a frame has been taken by the socket. */
static __always_inline void ksk_tx_sent(struct ksk_conn *c, const void *buf)
{
	const struct ksk_hdr *hdr = buf;
	struct ksk_txop *op = c->frame.op;

	trace_kofi_sock_tx(c, hdr, ksk_get64(hdr->size, c->be) -
			   hdr->hdr_size);
	ksk_stat_inc(&c->stats.tx_frames);
	c->frame.op = NULL;
	c->frame.hdr_len = 0;
	c->frame.hdr_off = 0;

	if (c->frame.rsp) {
		ksk_rma_answered(c);
	} else if (c->frame.cts) {
		c->frame.cts = 0;
	} else if (!op) {
		ksk_stat_inc(&c->stats.tx_acks);
	} else if (op->ctx && ksk_rndv_sent(c, op)) {
		/* an announced payload is sent later */
	} else if (op->ack || op->op == KSK_OP_READ_REQ) {
		/* the peer's answer is not read before the socket is unlocked */
		list_add_tail(&op->node, op->ack ? &c->tx.wait :
						   &c->tx.reads);
	} else {
		ksk_tx_done(c, op, 0);
	}
}

/*
 * Check that a frame is certain to follow the current one. FI_MORE counts until the
 * operation that it has promised is there to be checked.
 */
static __always_inline bool ksk_tx_more(struct ksk_conn *c)
{
	bool more = c->frame.op && (c->frame.op->flags & FI_MORE);
	struct ksk_txop *op;

	if (likely(!ksk_tx_others(c)))
		return more;
	if (c->tx.acks || c->rndv.todo || c->rsps.n > !!c->frame.rsp)
		return true;
	ksk_tx_collect(c);
	op = list_first_entry_or_null(&c->tx.queue, struct ksk_txop, node);
	return op ? !ksk_tx_blocked(c, op) : more;
}

/* A page for each stream is cheaper as long as there are few streams. */
static __always_inline bool ksk_tx_shares(const struct ksk_conn *c)
{
	return c->ops->many && ksk_rdm_crowded(c->ep);
}

/*
 * Set the source of the next call of TCP for the current frame, as for ksk_tx_send().
 * Returns false if the region of a response has been closed; it is held otherwise.
 */
static noinline bool ksk_tx_source(struct ksk_conn *c, size_t budget)
{
	const struct iov_iter *from = NULL;
	struct msghdr *msg = &c->frame.msg;

	if (c->frame.left && c->frame.rsp) {
		if (!ksk_rma_source(c, &msg->msg_iter))
			return false;
		from = &msg->msg_iter;
	} else if (c->frame.left) {
		from = kofi_cursor_iter(&c->frame.op->cur);
	}
	if (c->frame.hdr_off < c->frame.hdr_len) {
		ksk_tx_gather(c, from, budget, &msg->msg_iter);
		return true;
	}
	msg->msg_iter = *from;
	iov_iter_truncate(&msg->msg_iter, budget);
	if (c->frame.op && c->frame.op->zc)
		ksk_zc_msg(c->sock->sk, c->frame.op, msg);
	return true;
}

/*
 * The same, without checking the kind of memory, for a whole frame with its payload side
 * by side, as most have. Returns false for any other frame.
 */
static __always_inline bool ksk_tx_source_flat(struct ksk_conn *c, size_t budget)
{
	struct kvec *kv = c->frame.vec.kv;
	void *flat;

	if (!c->frame.op || c->frame.hdr_off || c->frame.left > budget ||
	    c->frame.op->zc)
		return false;
	flat = kofi_cursor_flat(&c->frame.op->cur, c->frame.left);
	if (!flat)
		return false;
	kv[0].iov_base = c->frame.hdr;
	kv[0].iov_len = c->frame.hdr_len;
	kv[1].iov_base = flat;
	kv[1].iov_len = c->frame.left;
	kofi_iter_kvec(&c->frame.msg.msg_iter, ITER_SOURCE, kv, 2,
		       c->frame.hdr_len + c->frame.left);
	return true;
}

/*
 * Hand bytes to TCP, or to kTLS, which clears MSG_MORE. @tls is a constant here and in the
 * callers: there are two senders of one source.
 */
static __always_inline int ksk_tx_sendmsg(struct ksk_conn *c, struct msghdr *msg,
					  size_t len, const bool tls)
{
	if (tls)
		return ksk_tls_sendmsg(c->sock, msg);
	return ksk_tx_shares(c) ? ksk_sendmsg_shared(c->sock->sk, msg, len) :
				  tcp_sendmsg_locked(c->sock->sk, msg, len);
}

/*
 * Hand the socket more of the frame that has begun: its header, and @budget
 * bytes of its payload at most. Returns how many it took, or a negative error.
 * The memory of a response is held only for as long as this takes.
 */
static __always_inline ssize_t ksk_tx_send(struct ksk_conn *c, size_t budget,
					   const bool tls)
{
	size_t hdr = c->frame.hdr_len - c->frame.hdr_off, len, took = 0;
	bool rsp = c->frame.left && c->frame.rsp;
	struct msghdr *msg = &c->frame.msg;
	ssize_t sent;

	msg->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	msg->msg_ubuf = NULL;
	if (unlikely(!ksk_tx_source_flat(c, budget)) &&
	    !ksk_tx_source(c, budget))
		return -ECONNABORTED;
	len = iov_iter_count(&msg->msg_iter);
	if (len < hdr + c->frame.left || ksk_tx_more(c))
		msg->msg_flags |= MSG_MORE;

	sent = ksk_tx_sendmsg(c, msg, len, tls);
	if (sent <= 0)
		goto out;

	/* with less than all, TCP is out of room and has pushed it itself */
	WRITE_ONCE(c->tx.corked, sent == len && (msg->msg_flags & MSG_MORE));
	hdr = min_t(size_t, hdr, sent);
	c->frame.hdr_off += hdr;
	took = sent - hdr;
	c->frame.left -= took;
	if (unlikely(msg->msg_ubuf))
		ksk_stat_add(&c->stats.tx_zc_bytes, took);
	else
		ksk_stat_add(&c->stats.tx_copy_bytes, took);
	if (unlikely(c->frame.left) && took && !rsp)
		kofi_cursor_used(&c->frame.op->cur, took);
out:
	if (rsp)
		ksk_rma_sent(c, took);
	return sent;
}

/* The socket took nothing, or is broken. The caller stops being the sender. */
static void ksk_tx_stop(struct ksk_conn *c, int err)
{
	struct sock *sk = c->sock->sk;
	bool full = err == -EAGAIN;

	ksk_tx_state(c, full ? KSK_TX_SPACE : KSK_TX_IDLE);
	if (!full) {
		ksk_conn_abort(c, -err);
		return;
	}
	ksk_stat_inc(&c->stats.tx_full);
	/* an acknowledgment will make room, and sends the bytes that are held back */
	if (tcp_sk(sk)->packets_out)
		return;
	/* bytes that wait for more to follow may take all the room */
	if (c->tx.corked)
		ksk_tx_push(c);
	if (sk_stream_memory_free(sk)) {
		/* out of memory */
		ksk_stat_inc(&c->stats.tx_retries);
		mod_timer(&c->retry, jiffies + msecs_to_jiffies(5));
	}
}

/* ----------------------------------------------------------------- bursts */

/*
 * TCP has taken @left bytes of the burst: its frames are the connection's, one
 * after the other, and the one it has taken a part of is the current frame.
 */
static noinline void ksk_burst_sent(struct ksk_conn *c,
				    const struct ksk_burst *b, size_t left)
{
	struct ksk_txop *op;
	unsigned int i;

	for (i = 0; i < b->n && left; i++) {
		op = b->op[i];
		if (i && op) {
			list_del(&op->node);
			c->tx.nqueued--;
			ksk_tx_begin(c, op);
			/* it may have been; the next operation sets this again */
			c->tx.held = false;
		} else if (i) {
			c->tx.acks--;
		}
		if (left < b->len[i]) {
			ksk_tx_format(c);
			c->frame.hdr_off = min_t(size_t, left, c->frame.hdr_len);
			left -= c->frame.hdr_off;
			c->frame.left -= left;
			ksk_stat_add(&c->stats.tx_copy_bytes, left);
			if (left)
				kofi_cursor_used(&op->cur, left);
			return;
		}
		left -= b->len[i];
		if (op)
			ksk_stat_add(&c->stats.tx_copy_bytes,
				     ksk_txop_payload(op));
		c->frame.id++;
		ksk_tx_sent(c, b->hdr[i]);
	}
}

/*
 * Send several short frames in one call. Returns how many bytes TCP took, 0 if
 * there are not several, or a negative error: then the frame that was chosen has
 * begun.
 */
static __always_inline ssize_t ksk_tx_burst_any(struct ksk_conn *c, size_t *budget,
						const bool tls)
{
	struct msghdr *msg = &c->frame.msg;
	struct ksk_burst b __uninitialized;
	ssize_t sent;

	ksk_tx_collect(c);
	ksk_burst_collect(c, &b, *budget);
	if (b.n < 2)
		return 0;
	msg->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	if (b.more)
		msg->msg_flags |= MSG_MORE;
	msg->msg_ubuf = NULL;
	kofi_iter_kvec(&msg->msg_iter, ITER_SOURCE, b.kv, b.segs, b.total);
	sent = ksk_tx_sendmsg(c, msg, b.total, tls);
	if (sent <= 0) {
		ksk_tx_format(c);
		return sent ? : -EPIPE;
	}
	WRITE_ONCE(c->tx.corked, !tls && sent == b.total && b.more);
	ksk_stat_inc(&c->stats.tx_bursts);
	ksk_stat_add(&c->stats.tx_bytes, sent);
	ksk_burst_sent(c, &b, sent);
	*budget -= min_t(size_t, *budget, sent + b.n * KSK_FRAME_COST);
	return sent;
}

static noinline ssize_t ksk_tx_burst(struct ksk_conn *c, size_t *budget)
{
	return ksk_tx_burst_any(c, budget, false);
}

static noinline ssize_t ksk_tx_burst_tls(struct ksk_conn *c, size_t *budget)
{
	return ksk_tx_burst_any(c, budget, true);
}

/* Test whether several frames may be sent in one call. */
static __always_inline bool ksk_tx_bursts(const struct ksk_conn *c)
{
	return (c->tx.acks || !list_empty(&c->tx.queue)) && !c->frame.hdr_len &&
	       !c->rsps.n && !c->rndv.todo && !c->retired && !c->frame.cts;
}

/* Send one frame after the other, as the sender. As ksk_tx_run(). */
static __always_inline bool ksk_tx_frames_any(struct ksk_conn *c, size_t budget,
					      const bool tls)
{
	ssize_t sent;

	do {
		if (budget && ksk_tx_bursts(c)) {
			sent = tls ? ksk_tx_burst_tls(c, &budget) :
				     ksk_tx_burst(c, &budget);
			if (sent > 0)
				continue;
			if (sent) {
				ksk_tx_stop(c, sent);
				return false;
			}
		}
		if (!c->frame.hdr_len)
			ksk_tx_format(c);
		if (!budget) {
			ksk_tx_state(c, KSK_TX_IDLE);
			return true;
		}
		sent = ksk_tx_send(c, budget, tls);
		if (sent <= 0) {
			ksk_tx_stop(c, sent ? : -EPIPE);
			return false;
		}
		ksk_stat_add(&c->stats.tx_bytes, sent);
		budget -= min_t(size_t, budget, sent);
		if (c->frame.hdr_off == c->frame.hdr_len && !c->frame.left) {
			ksk_tx_sent(c, c->frame.hdr);
			budget -= min(budget, KSK_FRAME_COST);
		}
	} while (c->frame.hdr_len || ksk_tx_next(c));
	/* closing may have waited for this last frame: ksk_rx_last() */
	if (unlikely(c->retired))
		irq_poll_sched(&c->poll);
	return false;
}

static bool ksk_tx_frames(struct ksk_conn *c, size_t budget)
{
	return ksk_tx_frames_any(c, budget, false);
}

/* Test whether there is a stream to send on. Locked. */
static bool ksk_tx_alive(const struct ksk_conn *c)
{
	return c->phase == KSK_CONN_ESTABLISHED && !READ_ONCE(c->dead);
}

/**
 * ksk_tx_run - send pending frames
 * @c: the connection
 * @budget: most bytes, give or take a header; a frame counts as KSK_FRAME_COST more
 *
 * Context: locked.
 * Return: true if the budget is used up and something is left to do; the
 * caller ensures that the sender runs again.
 */
bool ksk_tx_run(struct ksk_conn *c, size_t budget)
{
	if (!ksk_tx_alive(c))
		return false;
	if (ksk_tx_start(c))
		return ksk_tx_frames(c, budget);
	if (c->tx.state == KSK_TX_IDLE)
		ksk_tx_corked(c);
	return false;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tx_run);

/**
 * ksk_tx_run_tls - send pending frames of a stream with TLS
 * @c: the connection
 * @budget: as for ksk_tx_run()
 *
 * Context: locked, process.
 * Return: as ksk_tx_run().
 */
bool ksk_tx_run_tls(struct ksk_conn *c, size_t budget)
{
	return ksk_tx_alive(c) && ksk_tx_start(c) &&
	       ksk_tx_frames_any(c, budget, true);
}

/**
 * ksk_tx_space - note that the socket takes bytes again
 * @c: the connection
 *
 * Context: locked.
 * Return: true if the sender has waited for that; the caller ensures that the sender runs.
 */
bool ksk_tx_space(struct ksk_conn *c)
{
	if (c->tx.state != KSK_TX_SPACE)
		return false;
	ksk_tx_state(c, KSK_TX_IDLE);
	return true;
}

/**
 * ksk_tx_pushes - test for bytes that the socket holds back although nothing follows
 * @c: the connection
 *
 * Context: locked.
 * Return: true if there are some; the caller pushes them out.
 */
bool ksk_tx_pushes(struct ksk_conn *c)
{
	if (!c->tx.corked)
		return false;
	WRITE_ONCE(c->tx.corked, false);
	ksk_stat_inc(&c->stats.tx_pushes);
	return true;
}

void ksk_tx_retry(struct timer_list *t)
{
	struct ksk_conn *c = container_of(t, struct ksk_conn, retry);

	if (READ_ONCE(c->tx.corked))
		set_bit(KSK_CONN_PUSH, &c->flags);
	else if (READ_ONCE(c->tx.state) != KSK_TX_SPACE &&
		 !test_bit(KSK_CONN_RSPS, &c->flags) &&
		 !test_and_clear_bit(KSK_CONN_MEMORY, &c->flags) &&
		 READ_ONCE(c->phase) == KSK_CONN_ESTABLISHED)
		return;
	/* a connection request that could not be sent waits for this, too */
	ksk_conn_queue(c);
}

/**
 * ksk_tx_quiet - test that no operation is outstanding
 * @c: the connection
 *
 * Context: locked.
 * Return: true if every operation that has begun has completed. Others may wait.
 */
bool ksk_tx_quiet(struct ksk_conn *c)
{
	return !c->frame.op && !c->frame.hdr_len && list_empty(&c->tx.wait) &&
	       list_empty(&c->tx.reads) && !c->rndv.out &&
	       !atomic_read(&c->zc.out);
}

/**
 * ksk_tx_waiting - test for operations that have not begun
 * @c: the connection
 *
 * Context: locked.
 * Return: true if there are some; all are in tx.queue then.
 */
bool ksk_tx_waiting(struct ksk_conn *c)
{
	ksk_tx_collect(c);
	return !list_empty(&c->tx.queue);
}

/* ---------------------------------------------------------------- posting */

/* Lock the socket, if it is free. Bottom halves are off. */
static bool ksk_tx_trylock(struct sock *sk)
{
	if (!spin_trylock(&sk->sk_lock.slock))
		return false;
	if (sock_owned_by_user(sk)) {
		spin_unlock(&sk->sk_lock.slock);
		return false;
	}
	/* sparse does not follow a lock that is held or not */
	__release(&sk->sk_lock.slock);
	return true;
}

static void ksk_tx_unlock(struct sock *sk)
{
	__acquire(&sk->sk_lock.slock);	/* see ksk_tx_trylock() */
	spin_unlock(&sk->sk_lock.slock);
}

/**
 * ksk_tx_leave - queue an operation without the socket's lock
 * @c: the connection
 * @op: the operation
 * @deferred: something is certain to run the sender
 *
 * Leaves the operation to the holder of the socket's lock. Without a sender that will
 * find it, the softirq item is scheduled, unless the operation is deferred until callbacks
 * have returned. posts.lock keeps the endpoint: as soon as it is free, the operation may
 * have completed, and the consumer have closed the endpoint.
 *
 * Context: any.
 * Return: 0, or -ESHUTDOWN and the operation is the caller's.
 */
int ksk_tx_leave(struct ksk_conn *c, struct ksk_txop *op, bool deferred)
{
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&c->posts.lock, irq);
	if (c->posts.closed) {
		err = -ESHUTDOWN;
	} else {
		list_add_tail(&op->node, &c->posts.list);
		c->posts.n++;
		/* the sender becomes idle without the lock: the post, before the check */
		smp_mb();	/* pairs with ksk_tx_next() */
		if (!deferred && READ_ONCE(c->tx.state) == KSK_TX_IDLE)
			irq_poll_sched(&c->poll);
	}
	spin_unlock_irqrestore(&c->posts.lock, irq);
	return err;
}

/* Test whether the operation can be sent at once. */
static bool ksk_tx_first(const struct ksk_conn *c, const struct ksk_txop *op)
{
	return c->tx.state == KSK_TX_IDLE && !c->frame.hdr_len && !c->retired &&
	       !ksk_tx_others(c) && !ksk_tx_blocked(c, op);
}

/*
 * Begin an operation, with the socket locked, or queue it. Returns 1 if the caller has
 * become the sender, 0 or -ESHUTDOWN.
 */
static __always_inline int ksk_tx_enqueue(struct ksk_conn *c,
					  struct ksk_txop *op, bool deferred)
{
	if (c->posts.closed)
		return -ESHUTDOWN;
	if (!deferred && ksk_tx_alive(c) && likely(ksk_tx_first(c, op))) {
		ksk_tx_begin(c, op);
		ksk_tx_state(c, KSK_TX_ACTIVE);
		return 1;
	}
	ksk_tx_collect(c);
	list_add_tail(&op->node, &c->tx.queue);
	c->tx.nqueued++;
	if (deferred)
		return 0;
	if (ksk_tx_alive(c) && ksk_tx_start(c))
		return 1;
	if (c->tx.state == KSK_TX_IDLE)
		ksk_tx_corked(c);
	return 0;
}

/**
 * ksk_tx_add - send an operation, or leave it to another context
 * @c: the connection
 * @op: the operation; it may have completed when this returns
 *
 * Context: any.
 * Return: 0, or -ESHUTDOWN and the operation is the caller's.
 */
int ksk_tx_add(struct ksk_conn *c, struct ksk_txop *op)
{
	struct sock *sk = c->sock->sk;
	bool bh, deferred;
	int err;

	/* TCP's output needs interrupts and bottom halves of its own */
	if (in_hardirq() || irqs_disabled())
		return ksk_tx_leave(c, op, false);
	deferred = kofi_ep_defer(&c->ep->base);

	/* most posts are made by callbacks, in a softirq */
	bh = !in_softirq();
	if (bh)
		local_bh_disable();
	if (ksk_tx_trylock(sk)) {
		err = ksk_tx_enqueue(c, op, deferred);
		if (likely(err > 0)) {
			err = 0;
			ksk_stat_inc(&c->stats.tx_inline);
			if (ksk_tx_frames(c, ksk_inline_max))
				ksk_conn_go_on(c);
		}
		ksk_tx_unlock(sk);
	} else {
		err = ksk_tx_leave(c, op, deferred);
	}
	if (bh)
		local_bh_enable();
	if (unlikely(deferred && c->ops->many) && !err)
		ksk_rdm_deferred(c);
	return err;
}

/**
 * ksk_tx_send_deferred - send the operations that several callbacks have posted
 * @c: the connection
 *
 * Context: any but hard interrupts, with interrupts on.
 */
void ksk_tx_send_deferred(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;

	local_bh_disable();
	if (ksk_tx_trylock(sk)) {
		ksk_stat_inc(&c->stats.tx_inline);
		if (ksk_tx_run(c, ksk_inline_max))
			ksk_conn_go_on(c);
		ksk_tx_unlock(sk);
	} else {
		irq_poll_sched(&c->poll);
	}
	local_bh_enable();
}
