// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The receive side of a stream.
 *
 * TCP's data_ready, in softirq or from the socket's backlog, reads what has
 * arrived straight into the memory of the posted receive. Nothing is queued
 * here: a message that finds no receive posted stays in the socket with
 * everything behind it, until the window closes. The post that ends the stall
 * gives the receive to the message, but does not read either: it schedules the
 * endpoint's softirq item.
 *
 * A run reads no more than its budget; the work item goes on. Reading happens
 * with the socket locked and never nests. Acknowledgments are owed while
 * reading and sent by the caller afterwards.
 *
 * Whatever a peer sends that the protocol does not know ends its connection:
 * the error is kept until TCP's reader has returned, the endpoint is marked
 * dead, and the work item does the rest.
 */
#include <linux/overflow.h>
#include <kunit/visibility.h>
#include <net/tcp.h>

#include "sock.h"
#include "sock_trace.h"

void sock_rx_init(struct sock_rx *rx)
{
	rx->have = 0;
	rx->want = sizeof(struct sock_hdr);
	rx->in_frame = false;
}
EXPORT_SYMBOL_IF_KUNIT(sock_rx_init);

/* --------------------------------------------------------------- decoding */

/* What each operation may carry */
static const struct {
	u16	flags;
	bool	tag;
	bool	rma;
	bool	payload;
} sock_rx_ops[] = {
	[SOCK_OP_MSG]		= { .flags = SOCK_F_CQ_DATA | SOCK_F_ACK_MASK,
				    .payload = true },
	[SOCK_OP_TAGGED]	= { .flags = SOCK_F_CQ_DATA | SOCK_F_ACK_MASK,
				    .tag = true, .payload = true },
	[SOCK_OP_READ_REQ]	= { .rma = true },
	[SOCK_OP_READ_RSP]	= { .payload = true },
	[SOCK_OP_WRITE]		= { .flags = SOCK_F_CQ_DATA | SOCK_F_ACK_MASK,
				    .rma = true, .payload = true },
};

/* The first 16 bytes. What they imply about the rest is checked here. */
static int sock_rx_decode_base(struct sock_rx *rx, bool be)
{
	const struct sock_hdr *hdr = (const struct sock_hdr *)rx->hdr;
	struct sock_frame *f = &rx->frame;
	unsigned int len = sizeof(*hdr);
	u64 size;

	if (hdr->op >= ARRAY_SIZE(sock_rx_ops))
		return -EPROTO;
	f->op = hdr->op;
	f->flags = sock_get16(hdr->flags, be);
	f->ack = hdr->op == SOCK_OP_MSG && hdr->op_data == SOCK_OP_DATA_ACK;
	f->rma_count = sock_rx_ops[f->op].rma ? hdr->rma_count : 0;
	f->hdr_size = hdr->hdr_size;
	f->data = 0;
	f->tag = 0;

	if (f->flags & ~sock_rx_ops[f->op].flags)
		return -EPROTO;
	if (hdr->op_data && !f->ack)
		return -EPROTO;
	if (f->ack && f->flags)
		return -EPROTO;
	if (sock_rx_ops[f->op].rma &&
	    (!f->rma_count || f->rma_count > SOCK_RMA_MAX))
		return -EPROTO;

	len += f->flags & SOCK_F_CQ_DATA ? 8 : 0;
	len += sock_rx_ops[f->op].tag ? 8 : 0;
	len += f->rma_count * sizeof(struct sock_rma);
	if (f->hdr_size != len)
		return -EPROTO;

	size = sock_get64(hdr->size, be);
	if (size < len)
		return -EPROTO;
	f->payload = size - len;
	if (f->payload > SOCK_MSG_MAX)
		return -EPROTO;
	if (f->payload && (f->ack || !sock_rx_ops[f->op].payload))
		return -EPROTO;
	return 0;
}

/* The words behind them */
static int sock_rx_decode_words(struct sock_rx *rx, bool be)
{
	const u8 *p = rx->hdr + sizeof(struct sock_hdr);
	struct sock_frame *f = &rx->frame;
	u64 sum = 0, end;
	unsigned int i;

	if (f->flags & SOCK_F_CQ_DATA) {
		f->data = sock_get64(p, be);
		p += 8;
	}
	if (sock_rx_ops[f->op].tag) {
		f->tag = sock_get64(p, be);
		p += 8;
	}
	for (i = 0; i < f->rma_count; i++) {
		const struct sock_rma *rma = (const struct sock_rma *)p + i;

		f->rma[i].addr = sock_get64(rma->addr, be);
		f->rma[i].len = sock_get64(rma->len, be);
		f->rma[i].key = sock_get64(rma->key, be);
		if (check_add_overflow(f->rma[i].addr, f->rma[i].len, &end) ||
		    check_add_overflow(sum, f->rma[i].len, &sum))
			return -EPROTO;
	}
	if (f->op == SOCK_OP_WRITE && sum != f->payload)
		return -EPROTO;
	if (f->op == SOCK_OP_READ_REQ && sum > SOCK_MSG_MAX)
		return -EPROTO;
	return 0;
}

/*
 * Look at a header of which @rx->want bytes have been collected. Returns 0
 * when it is complete and @rx->frame valid, 1 when @rx->want has grown and
 * more bytes are needed, -EPROTO for what no peer may send.
 */
VISIBLE_IF_KUNIT
int sock_rx_decode(struct sock_rx *rx, bool be)
{
	int err;

	if (rx->have == sizeof(struct sock_hdr)) {
		err = sock_rx_decode_base(rx, be);
		if (err)
			return err;
		rx->want = rx->frame.hdr_size;
		if (rx->want > rx->have)
			return 1;
	}
	return sock_rx_decode_words(rx, be);
}
EXPORT_SYMBOL_IF_KUNIT(sock_rx_decode);

/* ----------------------------------------------------------------- frames */

static void sock_rx_violation(struct sock_ep *ep, const char *what)
{
	trace_kofi_sock_violation(ep, what, ep->rx.hdr, ep->rx.have);
	sock_stat_inc(&ep->stats.violations);
	ep->rx.err = EPROTO;
}

/* The last byte of a frame has been placed. */
static void sock_rx_end(struct sock_ep *ep)
{
	struct sock_rx *rx = &ep->rx;
	struct sock_frame *f = &rx->frame;
	struct kofi_rxop *op = rx->op;
	struct kofi_wc wc = {
		.err = rx->lost ? FI_ETRUNC : 0,
		.flags = FI_RECV | FI_MSG |
			 (f->flags & SOCK_F_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
		.len = op->cur.len - op->cur.left,
		.olen = rx->lost,
		.data = f->data,
		.src = FI_ADDR_NOTAVAIL,
	};

	trace_kofi_sock_rx(ep, (struct sock_hdr *)rx->hdr, f->payload);
	rx->op = NULL;
	sock_rx_init(rx);
	if (rx->lost)
		sock_stat_inc(&ep->stats.rx_truncated);
	if (f->flags & SOCK_F_ACK_MASK)
		sock_tx_ack(ep);
	kofi_rxq_done(kofi_ep_rxq(&ep->base, &ep->rxq), op, &wc);
}

/* The queue of receives has something for a message that is stalled. */
void sock_rx_wake(struct kofi_rxmsg *msg)
{
	sock_ep_softirq(container_of(msg, struct sock_ep, rxmsg));
}

/* Find the receive for the message that has begun, or stall. */
static bool sock_rx_match(struct sock_ep *ep)
{
	struct sock_rx *rx = &ep->rx;

	if (!rx->stalled) {
		ep->rxmsg.len = rx->frame.payload;
		ep->rxmsg.data = rx->frame.data;
		ep->rxmsg.flags = rx->frame.flags & SOCK_F_CQ_DATA ?
				FI_REMOTE_CQ_DATA : 0;
	}
	if (kofi_rxq_match(kofi_ep_rxq(&ep->base, &ep->rxq), &ep->rxmsg,
			   &rx->op)) {
		if (!rx->stalled) {
			sock_stat_inc(&ep->stats.rx_stalls);
			trace_kofi_sock_stall(ep, rx->frame.payload);
		}
		rx->stalled = true;
		return false;
	}
	rx->stalled = false;
	rx->in_frame = true;
	rx->left = rx->frame.payload;
	rx->lost = rx->left > rx->op->cur.len ?
		   rx->left - rx->op->cur.len : 0;
	if (!rx->left)
		sock_rx_end(ep);
	return true;
}

/* A header is complete. Returns false if reading cannot go on. */
static bool sock_rx_begin(struct sock_ep *ep)
{
	struct sock_rx *rx = &ep->rx;

	sock_stat_inc(&ep->stats.rx_frames);
	if (rx->frame.op != SOCK_OP_MSG) {
		sock_rx_violation(ep, "unsupported operation");
		return false;
	}
	if (!rx->frame.ack)
		return sock_rx_match(ep);

	trace_kofi_sock_rx(ep, (struct sock_hdr *)rx->hdr, 0);
	if (!sock_tx_acked(ep)) {
		sock_rx_violation(ep, "acknowledgment nobody waits for");
		return false;
	}
	sock_stat_inc(&ep->stats.rx_acks);
	sock_rx_init(rx);
	return true;
}

/* Collect header bytes. Returns how many were taken. */
static size_t sock_rx_header(struct sock_ep *ep, struct sk_buff *skb,
			     unsigned int offset, size_t len, bool *go_on)
{
	struct sock_rx *rx = &ep->rx;
	size_t n = min_t(size_t, rx->want - rx->have, len);
	int err;

	if (skb_copy_bits(skb, offset, rx->hdr + rx->have, n)) {
		rx->err = EIO;
		*go_on = false;
		return 0;
	}
	rx->have += n;
	if (rx->have < rx->want)
		return n;
	err = sock_rx_decode(rx, ep->be);
	if (err < 0) {
		sock_rx_violation(ep, "bad header");
		*go_on = false;
	} else if (!err) {
		*go_on = sock_rx_begin(ep);
	}
	return n;
}

/* Place payload, drop what does not fit. Returns how many bytes were taken. */
static size_t sock_rx_payload(struct sock_ep *ep, struct sk_buff *skb,
			      unsigned int offset, size_t len, bool *go_on)
{
	struct sock_rx *rx = &ep->rx;
	size_t n = min_t(u64, rx->left, len);
	size_t fit = min(rx->op->cur.left, n);

	if (kofi_cursor_copy_from_skb(&rx->op->cur, skb, offset, fit)) {
		rx->err = EIO;
		*go_on = false;
		return 0;
	}
	rx->left -= n;
	if (!rx->left)
		sock_rx_end(ep);
	return n;
}

/* What tcp_read_sock() calls; taking nothing makes it stop. */
static int sock_rx_actor(read_descriptor_t *desc, struct sk_buff *skb,
			 unsigned int offset, size_t len)
{
	struct sock_ep *ep = desc->arg.data;
	struct sock_rx *rx = &ep->rx;
	bool go_on = !rx->err && rx->budget > 0 && !rx->stalled;
	size_t used = 0;

	while (go_on && used < len) {
		if (rx->in_frame)
			used += sock_rx_payload(ep, skb, offset + used,
						len - used, &go_on);
		else
			used += sock_rx_header(ep, skb, offset + used,
					       len - used, &go_on);
	}
	rx->budget -= used;
	sock_stat_add(&ep->stats.rx_bytes, used);
	return used;
}

/* The peer has sent its last byte, and we have read it. */
static bool sock_rx_eof(struct sock_ep *ep)
{
	struct sock *sk = ep->sock->sk;

	return (sk->sk_shutdown & RCV_SHUTDOWN) &&
	       skb_queue_empty(&sk->sk_receive_queue) &&
	       !(ep->rx.stalled && !ep->rx.frame.payload);
}

/**
 * sock_rx_run - read what has arrived
 * @ep: the endpoint
 *
 * The caller runs the sender afterwards.
 *
 * Context: locked.
 * Return: true if the budget ended before the bytes did; the caller sees to it
 * that somebody runs the receiver again.
 */
bool sock_rx_run(struct sock_ep *ep)
{
	read_descriptor_t desc = { .arg.data = ep, .count = 1 };
	struct sock *sk = ep->sock->sk;
	struct sock_rx *rx = &ep->rx;

	if (ep->phase != SOCK_EP_DATA || READ_ONCE(ep->dead))
		return false;

	if (!rx->stalled || sock_rx_match(ep)) {
		rx->budget = sock_rx_budget;
		tcp_read_sock(sk, &desc, sock_rx_actor);
		/* TCP's reader never goes beyond urgent data; we have none */
		if (tcp_sk(sk)->urg_data)
			sock_rx_violation(ep, "urgent data");
		if (rx->err) {
			sock_ep_kill(ep, rx->err);
			return false;
		}
		if (rx->budget <= 0) {
			sock_stat_inc(&ep->stats.rx_budget);
			return true;
		}
	}
	if (sock_rx_eof(ep))
		sock_ep_kill(ep, ESHUTDOWN);
	return false;
}

/**
 * sock_rx_flush - complete every receive, accept no more
 * @ep: the endpoint
 *
 * One that a message has begun to fill gets ENOTCONN, the others ECANCELED.
 *
 * Context: process; locked, if there is a socket.
 */
void sock_rx_flush(struct sock_ep *ep)
{
	struct kofi_rxq *q = kofi_ep_rxq(&ep->base, &ep->rxq);
	struct kofi_rxop *op = ep->rx.op;

	if (op) {
		struct kofi_wc wc = {
			.err = ENOTCONN,
			.prov_errno = READ_ONCE(ep->dead),
			.flags = FI_RECV | FI_MSG,
			.len = op->cur.len - op->cur.left,
			.src = FI_ADDR_NOTAVAIL,
		};

		ep->rx.op = NULL;
		kofi_rxq_done(q, op, &wc);
	}
	sock_rx_init(&ep->rx);
	ep->rx.stalled = false;
	if (q->ops)
		kofi_rxq_forget(q, &ep->rxmsg);
	if (ep->rxq.ops)
		kofi_rxq_flush(&ep->rxq);
}

/* fi_recvmsg() and its family */
ssize_t sock_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	struct sock_ep *ep = sock_ep(fid);
	int err;

	err = kofi_ep_rx_state(&ep->base);
	if (err)
		return err;
	return kofi_rxq_post(&ep->rxq, msg, flags);
}
