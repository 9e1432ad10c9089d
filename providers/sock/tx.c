// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send side of a stream.
 *
 * A post puts its operation on the endpoint's list and then tries to send it
 * right there (sock_tx_kick). Who may talk to TCP is decided by the socket's
 * lock, which can be had in two ways: owned, in process context, or by its
 * spinlock while nobody owns it. A post only tries the spinlock. If somebody
 * else has it, the endpoint's softirq item sends; if the socket is owned, the
 * work item does.
 *
 * The lock alone does not make one sender, because TCP may process the backlog
 * in the middle of a send, and that runs our own callbacks: tx_state does. The
 * sender clears it only with the lists empty, or with somebody certain to
 * come back: TCP's write_space, the retry timer, the work item.
 *
 * A frame, once begun, is finished before the next one; the position in it is
 * kept in the endpoint. Acknowledgments go ahead of frames not begun. They
 * are only counted, since they have no identity.
 *
 * An operation completes when its last byte has been copied into the socket,
 * or, if it asked for more than that, when the peer has acknowledged it. What
 * has not completed when the stream ends is flushed in the order it was
 * posted.
 */
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <net/tcp.h>

#include "sock.h"
#include "sock_trace.h"

#define SOCK_TX_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define SOCK_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_MORE | \
			 FI_REMOTE_CQ_DATA | KOFI_NO_COMPLETION | \
			 SOCK_TX_LEVELS)

/* Segments of a vector that are sent in one call with their header */
#define SOCK_TX_GATHER	4

int sock_tx_init(struct sock_ep *ep, size_t size)
{
	size_t i;

	ep->tx_ops = kvmalloc_node(array_size(size, sizeof(*ep->tx_ops)),
				   GFP_KERNEL | __GFP_ZERO,
				   ep->base.domain->node);
	if (!ep->tx_ops)
		return -ENOMEM;
	for (i = 0; i < size; i++)
		list_add_tail(&ep->tx_ops[i].node, &ep->tx_free);
	return 0;
}

void sock_tx_exit(struct sock_ep *ep)
{
	kvfree(ep->tx_ops);
}

/* Header of an operation. Returns its length. */
VISIBLE_IF_KUNIT
unsigned int sock_tx_format_msg(void *buf, const struct sock_txop *op, u8 id,
				bool be)
{
	bool data = op->flags & FI_REMOTE_CQ_DATA;
	unsigned int len = sizeof(struct sock_hdr) + (data ? 8 : 0);
	struct sock_hdr *hdr = buf;

	*hdr = (struct sock_hdr) {
		.version = SOCK_PROTO_VERSION,
		.op = SOCK_OP_MSG,
		.hdr_size = len,
		.id = id,
	};
	sock_put16((data ? SOCK_F_CQ_DATA : 0) |
		   (op->ack ? SOCK_F_DELIVERY : 0), hdr->flags, be);
	sock_put64(len + (u64)op->cur.len, hdr->size, be);
	if (data)
		sock_put64(op->data, hdr + 1, be);
	return len;
}
EXPORT_SYMBOL_IF_KUNIT(sock_tx_format_msg);

VISIBLE_IF_KUNIT
unsigned int sock_tx_format_ack(void *buf, u8 id, bool be)
{
	struct sock_hdr *hdr = buf;

	*hdr = (struct sock_hdr) {
		.version = SOCK_PROTO_VERSION,
		.op = SOCK_OP_MSG,
		.op_data = SOCK_OP_DATA_ACK,
		.hdr_size = sizeof(*hdr),
		.id = id,
	};
	sock_put64(sizeof(*hdr), hdr->size, be);
	return sizeof(*hdr);
}
EXPORT_SYMBOL_IF_KUNIT(sock_tx_format_ack);

/* ------------------------------------------------------------- completing */

static void sock_tx_complete(struct sock_ep *ep, struct sock_txop *op, int err)
{
	struct kofi_wc wc = {
		.op_context = op->context,
		.err = err,
		.prov_errno = err ? READ_ONCE(ep->dead) : 0,
		.flags = FI_SEND | FI_MSG,
		.len = op->cur.len,
		.src = FI_ADDR_NOTAVAIL,
	};
	u64 op_flags = op->flags;
	unsigned long irq;

	/* free before the consumer knows, who may post again at once */
	spin_lock_irqsave(&ep->tx_lock, irq);
	list_add(&op->node, &ep->tx_free);
	spin_unlock_irqrestore(&ep->tx_lock, irq);

	kofi_ep_tx_complete(&ep->base, &wc, op_flags);
}

/**
 * sock_tx_acked - an acknowledgment has arrived
 * @ep: the endpoint
 *
 * It belongs to the oldest frame that waits for one.
 *
 * Context: locked.
 * Return: false if none does.
 */
bool sock_tx_acked(struct sock_ep *ep)
{
	struct sock_txop *op;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	op = list_first_entry_or_null(&ep->tx_wait, struct sock_txop, node);
	if (op)
		list_del(&op->node);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (!op)
		return false;
	sock_tx_complete(ep, op, 0);
	return true;
}

/**
 * sock_tx_ack - owe the peer an acknowledgment
 * @ep: the endpoint
 *
 * Whoever runs the receiver runs the sender next.
 *
 * Context: locked.
 */
void sock_tx_ack(struct sock_ep *ep)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	ep->tx_owed++;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

/**
 * sock_tx_flush - complete every transmit with an error, accept no more
 * @ep: the endpoint
 *
 * A consumer that may fail over is told of a silent peer and of a lost device;
 * in all other cases the error is ECANCELED.
 *
 * Context: process; locked, if there is a socket.
 */
void sock_tx_flush(struct sock_ep *ep)
{
	int err = READ_ONCE(ep->dead);
	struct sock_txop *op, *next;
	unsigned long irq;
	LIST_HEAD(list);

	if (err != ETIMEDOUT && err != ENETDOWN)
		err = ECANCELED;

	spin_lock_irqsave(&ep->tx_lock, irq);
	ep->tx_closed = true;
	ep->tx_owed = 0;
	ep->tx_state = SOCK_TX_IDLE;
	list_splice_init(&ep->tx_wait, &list);
	if (ep->tx_op)
		list_add_tail(&ep->tx_op->node, &list);
	list_splice_tail_init(&ep->tx_queue, &list);
	spin_unlock_irqrestore(&ep->tx_lock, irq);

	if (ep->tx_hdr_off)
		set_bit(SOCK_EP_HALF_SENT, &ep->flags);
	ep->tx_op = NULL;
	ep->tx_hdr_len = 0;
	ep->tx_hdr_off = 0;

	list_for_each_entry_safe(op, next, &list, node)
		sock_tx_complete(ep, op, err);
}

/* ---------------------------------------------------------------- sending */

/*
 * Begin the next frame. With nothing to send the caller is no longer the
 * sender when this returns.
 */
static bool sock_tx_next(struct sock_ep *ep)
{
	struct sock_txop *op = NULL;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (ep->tx_owed) {
		ep->tx_owed--;
	} else {
		op = list_first_entry_or_null(&ep->tx_queue, struct sock_txop,
					      node);
		if (!op) {
			ep->tx_state = SOCK_TX_IDLE;
			spin_unlock_irqrestore(&ep->tx_lock, irq);
			return false;
		}
		list_del(&op->node);
	}
	spin_unlock_irqrestore(&ep->tx_lock, irq);

	ep->tx_op = op;
	ep->tx_hdr_off = 0;
	if (op)
		ep->tx_hdr_len = sock_tx_format_msg(ep->tx_hdr, op, ep->tx_id,
						    ep->be);
	else
		ep->tx_hdr_len = sock_tx_format_ack(ep->tx_hdr, ep->tx_id,
						    ep->be);
	ep->tx_id++;
	return true;
}

/* The last byte of a frame has been taken by the socket. */
static void sock_tx_sent(struct sock_ep *ep)
{
	struct sock_txop *op = ep->tx_op;
	unsigned long irq;

	trace_kofi_sock_tx(ep, (struct sock_hdr *)ep->tx_hdr,
			   op ? op->cur.len : 0);
	sock_stat_inc(&ep->stats.tx_frames);
	ep->tx_op = NULL;
	ep->tx_hdr_len = 0;
	ep->tx_hdr_off = 0;

	if (!op) {
		sock_stat_inc(&ep->stats.tx_acks);
	} else if (op->ack) {
		/* the peer's answer cannot be looked at before we unlock */
		spin_lock_irqsave(&ep->tx_lock, irq);
		list_add_tail(&op->node, &ep->tx_wait);
		spin_unlock_irqrestore(&ep->tx_lock, irq);
	} else {
		sock_tx_complete(ep, op, 0);
	}
}

/* Something is certain to follow what is being sent now. */
static bool sock_tx_more(struct sock_ep *ep)
{
	return (ep->tx_op && (ep->tx_op->flags & FI_MORE)) ||
	       !list_empty_careful(&ep->tx_queue) || READ_ONCE(ep->tx_owed);
}

/* Header and the first segments of a short vector, as one array. */
static unsigned int sock_tx_gather(struct sock_ep *ep, struct kvec *kv,
				   size_t *len, size_t budget)
{
	size_t hdr = ep->tx_hdr_len - ep->tx_hdr_off;
	struct sock_txop *op = ep->tx_op;
	const struct iov_iter *iter;
	const struct kvec *seg;
	size_t skip, left;
	unsigned int n = 0;

	kv[n++] = (struct kvec) {
		.iov_base = ep->tx_hdr + ep->tx_hdr_off,
		.iov_len = hdr,
	};
	*len = hdr;
	if (!op || !op->cur.left || budget <= hdr)
		return n;
	iter = kofi_cursor_iter(&op->cur);
	if (!iov_iter_is_kvec(iter))
		return n;

	left = min(iov_iter_count(iter), budget - hdr);
	seg = iter->kvec;
	skip = iter->iov_offset;
	while (left && n <= SOCK_TX_GATHER) {
		size_t bytes = min(seg->iov_len - skip, left);

		kv[n++] = (struct kvec) {
			.iov_base = seg->iov_base + skip,
			.iov_len = bytes,
		};
		*len += bytes;
		left -= bytes;
		skip = 0;
		seg++;
	}
	return n;
}

/*
 * Hand the socket more of the frame that has begun, @budget bytes or a header
 * at most. Returns how many it took, or a negative error.
 */
static ssize_t sock_tx_send(struct sock_ep *ep, size_t budget)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	size_t hdr = ep->tx_hdr_len - ep->tx_hdr_off;
	struct sock_txop *op = ep->tx_op;
	struct kvec kv[1 + SOCK_TX_GATHER];
	size_t len, left;
	ssize_t sent;

	left = hdr + (op ? op->cur.left : 0);
	if (hdr) {
		unsigned int n = sock_tx_gather(ep, kv, &len, budget);

		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, kv, n, len);
	} else {
		msg.msg_iter = *kofi_cursor_iter(&op->cur);
		iov_iter_truncate(&msg.msg_iter, budget);
		len = iov_iter_count(&msg.msg_iter);
	}
	if (len < left || sock_tx_more(ep))
		msg.msg_flags |= MSG_MORE;

	sent = tcp_sendmsg_locked(ep->sock->sk, &msg, len);
	if (sent <= 0)
		return sent;

	hdr = min_t(size_t, hdr, sent);
	ep->tx_hdr_off += hdr;
	if (sent > hdr)
		kofi_cursor_used(&op->cur, sent - hdr);
	return sent;
}

/* The socket took nothing, or is broken. The caller stops being the sender. */
static void sock_tx_stop(struct sock_ep *ep, int err)
{
	struct sock *sk = ep->sock->sk;
	bool full = err == -EAGAIN;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	ep->tx_state = full ? SOCK_TX_SPACE : SOCK_TX_IDLE;
	spin_unlock_irqrestore(&ep->tx_lock, irq);

	if (!full) {
		sock_ep_kill(ep, -err);
		return;
	}
	sock_stat_inc(&ep->stats.tx_full);
	if (sk_stream_memory_free(sk) && !tcp_sk(sk)->packets_out) {
		/* Out of memory, and no acknowledgment on its way to us. */
		sock_stat_inc(&ep->stats.tx_retries);
		mod_timer(&ep->retry, jiffies + msecs_to_jiffies(5));
	}
}

/**
 * sock_tx_run - send
 * @ep: the endpoint
 * @budget: how many bytes at most, give or take a header
 *
 * Context: locked.
 * Return: true if the budget is used up and something is left to do; the
 * caller sees to it that somebody runs the sender again.
 */
bool sock_tx_run(struct sock_ep *ep, size_t budget)
{
	bool sender = false;
	unsigned long irq;

	if (ep->phase != SOCK_EP_DATA || READ_ONCE(ep->dead))
		return false;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (ep->tx_state == SOCK_TX_IDLE) {
		ep->tx_state = SOCK_TX_ACTIVE;
		sender = true;
	}
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (!sender)
		return false;

	while (ep->tx_hdr_len || sock_tx_next(ep)) {
		ssize_t sent;

		if (!budget) {
			spin_lock_irqsave(&ep->tx_lock, irq);
			ep->tx_state = SOCK_TX_IDLE;
			spin_unlock_irqrestore(&ep->tx_lock, irq);
			return true;
		}
		sent = sock_tx_send(ep, budget);
		if (sent <= 0) {
			sock_tx_stop(ep, sent ? : -EPIPE);
			return false;
		}
		sock_stat_add(&ep->stats.tx_bytes, sent);
		budget -= min_t(size_t, budget, sent);
		if (ep->tx_hdr_off == ep->tx_hdr_len &&
		    (!ep->tx_op || !ep->tx_op->cur.left))
			sock_tx_sent(ep);
	}
	return false;
}

/**
 * sock_tx_space - the socket takes bytes again
 * @ep: the endpoint
 *
 * Context: any.
 */
void sock_tx_space(struct sock_ep *ep)
{
	bool wake = false;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (ep->tx_state == SOCK_TX_SPACE) {
		ep->tx_state = SOCK_TX_IDLE;
		wake = true;
	}
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (wake)
		sock_ep_queue(ep);
}

void sock_tx_retry(struct timer_list *t)
{
	struct sock_ep *ep = from_timer(ep, t, retry);

	sock_tx_space(ep);
	/* a connection request that could not be sent waits for this, too */
	sock_ep_queue(ep);
}

/* Send what has just been posted, here if that is possible. */
static void sock_tx_kick(struct sock_ep *ep)
{
	struct sock *sk = ep->sock->sk;

	/* TCP's output needs interrupts and bottom halves of its own. */
	if (in_hardirq() || irqs_disabled()) {
		sock_ep_queue(ep);
		return;
	}

	local_bh_disable();
	if (!spin_trylock(&sk->sk_lock.slock)) {
		irq_poll_sched(&ep->poll);
	} else {
		if (sock_owned_by_user(sk)) {
			sock_ep_queue(ep);
		} else {
			sock_stat_inc(&ep->stats.tx_inline);
			if (sock_tx_run(ep, sock_inline_max))
				sock_ep_queue(ep);
		}
		spin_unlock(&sk->sk_lock.slock);
	}
	local_bh_enable();
}

/* ---------------------------------------------------------------- posting */

/* Copy the payload of an inject into its operation. */
static int sock_tx_inject(struct sock_txop *op)
{
	struct kvec kv = { .iov_base = op->inject, .iov_len = op->cur.len };
	const struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	size_t off = 0;

	while (op->cur.left) {
		struct iov_iter iter = *kofi_cursor_iter(&op->cur);
		size_t n = iov_iter_count(&iter);

		if (copy_from_iter(op->inject + off, n, &iter) != n)
			return -EINVAL;
		kofi_cursor_used(&op->cur, n);
		off += n;
	}
	return kofi_cursor_init(&op->cur, &msg, ITER_SOURCE, 1);
}

static int sock_tx_fill(struct sock_ep *ep, struct sock_txop *op,
			const struct fi_msg *msg, u64 flags)
{
	const struct fi_info *info = ep->base.info;
	int err;

	err = kofi_cursor_init(&op->cur, msg, ITER_SOURCE,
			       info->tx_attr->iov_limit);
	if (err)
		return err;
	if (op->cur.len > info->ep_attr->max_msg_size)
		return -EMSGSIZE;
	op->context = msg->context;
	op->data = msg->data;
	op->flags = flags;
	op->ack = flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE);
	if (!(flags & FI_INJECT))
		return 0;
	if (op->cur.len > min_t(size_t, info->tx_attr->inject_size,
				SOCK_INJECT_MAX))
		return -EINVAL;
	return sock_tx_inject(op);
}

static int sock_tx_get(struct sock_ep *ep, struct sock_txop **op)
{
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&ep->tx_lock, irq);
	*op = list_first_entry_or_null(&ep->tx_free, struct sock_txop, node);
	if (ep->tx_closed)
		err = -ESHUTDOWN;
	else if (!*op)
		err = -EAGAIN;
	else
		list_del(&(*op)->node);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	return err;
}

/*
 * Queue an operation, or, if it is not to be, make it unused again. @kick is
 * set if there is no sender who would find it.
 */
static int sock_tx_add(struct sock_ep *ep, struct sock_txop *op, int err,
		       bool *kick)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (!err && ep->tx_closed)
		err = -ESHUTDOWN;
	if (err)
		list_add(&op->node, &ep->tx_free);
	else
		list_add_tail(&op->node, &ep->tx_queue);
	*kick = ep->tx_state == SOCK_TX_IDLE;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	return err;
}

/* fi_sendmsg() and its family */
ssize_t sock_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	struct sock_ep *ep = sock_ep(fid);
	struct sock_txop *op;
	bool kick;
	int err;

	if ((flags & ~SOCK_TX_FLAGS) || hweight64(flags & SOCK_TX_LEVELS) > 1)
		return -FI_EBADFLAGS;
	err = kofi_ep_tx_state(&ep->base);
	if (err)
		return err;
	err = kofi_ep_tx_reserve(&ep->base);
	if (err)
		return err;

	err = sock_tx_get(ep, &op);
	if (err == -EAGAIN) {
		/* one may have completed before the mark was there to see */
		kofi_ep_blocked(&ep->base);
		err = sock_tx_get(ep, &op);
	}
	if (err)
		goto unreserve;
	err = sock_tx_add(ep, op, sock_tx_fill(ep, op, msg, flags), &kick);
	if (err)
		goto unblock;
	if (kick)
		sock_tx_kick(ep);
	return 0;

unblock:
	/* somebody may have been refused for want of this operation */
	kofi_ep_unblock(&ep->base);
unreserve:
	kofi_ep_tx_unreserve(&ep->base);
	return err;
}
