// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The receive side of a stream.
 *
 * TCP's data_ready, in softirq, reads arrived bytes straight into their memory: of the
 * receive that the core has matched with the message, of a region (rma.c), or of our own
 * read. Nothing is queued here: if a frame lacks something, as a message its receive, the
 * frame stays in the socket with everything behind it, until the window closes. A
 * context that supplies the missing thing does not read either: it schedules the
 * endpoint's softirq item, which tries the same frame again.
 *
 * A run reads at most its budget, in which small frames count for more than
 * their bytes; another run goes on. Reading happens under the socket's spinlock, never
 * while a process owns the socket (conn.c), and never nests. Acknowledgments and
 * responses are pending while reading, and the caller sends them afterwards.
 *
 * A frame that violates the protocol closes its connection: the error is kept until TCP's
 * reader has returned, the endpoint is marked dead, and the work item does the rest.
 */
#include <linux/overflow.h>
#include <kunit/visibility.h>
#include <net/tcp.h>

#include "sock.h"
#include "sock_trace.h"
#include "tls.h"

void ksk_rx_init(struct ksk_rx *rx)
{
	rx->have = 0;
	rx->want = sizeof(struct ksk_hdr);
	rx->in_frame = false;
	rx->stalled = false;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_rx_init);

/* --------------------------------------------------------------- decoding */

/* Parts that each operation may have */
static const struct ksk_rx_op {
	u16	flags;
	bool	tag;
	bool	rma;
	bool	payload;
	bool	ctx;
	bool	announces;
	bool	bare;
} ksk_rx_ops[] = {
	[KSK_OP_MSG]		= { .flags = KSK_F_CQ_DATA | KSK_F_DELIVERY |
					     KSK_F_REMOTE_INV,
				    .payload = true },
	[KSK_OP_TAGGED]	= { .flags = KSK_F_CQ_DATA | KSK_F_DELIVERY,
				    .tag = true, .payload = true },
	[KSK_OP_READ_REQ]	= { .rma = true },
	[KSK_OP_READ_RSP]	= { .payload = true },
	[KSK_OP_WRITE]		= { .flags = KSK_F_CQ_DATA | KSK_F_DELIVERY,
				    .rma = true, .payload = true },
	[KSK_OP_RTS]		= { .flags = KSK_F_CQ_DATA | KSK_F_DELIVERY,
				    .tag = true, .ctx = true,
				    .announces = true },
	[KSK_OP_CTS]		= { .ctx = true },
	/* the words of its flags were in the announcement */
	[KSK_OP_DATA]		= { .flags = KSK_F_CQ_DATA | KSK_F_DELIVERY,
				    .ctx = true, .payload = true,
				    .bare = true },
};

/* Decode the first 16 bytes, and check the lengths that they imply. */
static int ksk_rx_decode_base(struct ksk_frame *f, const struct ksk_hdr *hdr,
			      bool be)
{
	unsigned int len = sizeof(*hdr);
	const struct ksk_rx_op *op;
	u64 size;

	if (hdr->op >= ARRAY_SIZE(ksk_rx_ops))
		return -EPROTO;
	op = &ksk_rx_ops[hdr->op];
	f->op = hdr->op;
	f->flags = ksk_get16(hdr->flags, be);
	f->ack = false;
	f->ctx = 0;
	f->rma_count = 0;
	f->hdr_size = hdr->hdr_size;
	f->data = 0;
	f->inv_key = 0;
	f->tag = 0;

	if (f->flags) {
		if (f->flags & ~op->flags)
			return -EPROTO;
		len += f->flags & KSK_F_CQ_DATA && !op->bare ? 8 : 0;
		len += f->flags & KSK_F_REMOTE_INV ? 8 : 0;
	}
	if (op->ctx) {
		f->ctx = hdr->op_data;
		if (!f->ctx || f->ctx > KSK_CTX_MAX)
			return -EPROTO;
	} else if (hdr->op_data) {
		f->ack = hdr->op == KSK_OP_MSG &&
			 hdr->op_data == KSK_OP_DATA_ACK;
		if (!f->ack || f->flags)
			return -EPROTO;
	}
	if (op->tag)
		len += 8;
	if (op->announces)
		len += 8;
	if (op->rma) {
		f->rma_count = hdr->rma_count;
		if (!f->rma_count || f->rma_count > KSK_RMA_MAX)
			return -EPROTO;
		len += f->rma_count * sizeof(struct ksk_rma);
	}
	if (f->hdr_size != len)
		return -EPROTO;

	size = ksk_get64(hdr->size, be);
	if (size < len)
		return -EPROTO;
	f->payload = size - len;
	if (f->payload > KSK_MSG_MAX)
		return -EPROTO;
	if (f->payload && (f->ack || !op->payload))
		return -EPROTO;
	return 0;
}

/* The words behind them */
static int ksk_rx_decode_words(struct ksk_rx *rx, bool be)
{
	const u8 *p = rx->hdr + sizeof(struct ksk_hdr);
	struct ksk_frame *f = &rx->frame;
	u64 sum = 0, end;
	unsigned int i;

	if (f->flags & KSK_F_CQ_DATA && !ksk_rx_ops[f->op].bare) {
		f->data = ksk_get64(p, be);
		p += 8;
	}
	if (f->flags & KSK_F_REMOTE_INV) {
		f->inv_key = ksk_get64(p, be);
		p += 8;
	}
	if (ksk_rx_ops[f->op].tag) {
		f->tag = ksk_get64(p, be);
		p += 8;
	}
	if (ksk_rx_ops[f->op].announces) {
		f->announced = ksk_get64(p, be);
		p += 8;
		if (f->announced > KSK_MSG_MAX)
			return -EPROTO;
	}
	for (i = 0; i < f->rma_count; i++) {
		const struct ksk_rma *rma = (const struct ksk_rma *)p + i;

		f->rma[i].addr = ksk_get64(rma->addr, be);
		f->rma[i].len = ksk_get64(rma->len, be);
		f->rma[i].key = ksk_get64(rma->key, be);
		if (check_add_overflow(f->rma[i].addr, f->rma[i].len, &end) ||
		    check_add_overflow(sum, f->rma[i].len, &sum))
			return -EPROTO;
	}
	if (f->op == KSK_OP_WRITE && sum != f->payload)
		return -EPROTO;
	if (f->op == KSK_OP_READ_REQ && sum > KSK_MSG_MAX)
		return -EPROTO;
	return 0;
}

/*
 * Decode a header of which @rx->want bytes have been collected. Returns 0
 * when it is complete and @rx->frame valid, 1 when @rx->want has grown and
 * more bytes are needed, -EPROTO if the peer violates the protocol.
 */
VISIBLE_IF_KUNIT
int ksk_rx_decode(struct ksk_rx *rx, bool be)
{
	int err;

	if (rx->have == sizeof(struct ksk_hdr)) {
		err = ksk_rx_decode_base(&rx->frame,
					 (const struct ksk_hdr *)rx->hdr, be);
		if (err)
			return err;
		rx->want = rx->frame.hdr_size;
		return rx->want > rx->have;
	}
	return ksk_rx_decode_words(rx, be);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_rx_decode);

/* ----------------------------------------------------------------- frames */

/* A receive has got the message of c->rxmsg. */
static __always_inline void ksk_rx_report(struct ksk_conn *c,
					  struct kofi_rxop *op)
{
	if (unlikely(c->rxmsg.len > op->cur.len))
		ksk_stat_inc(&c->stats.rx_truncated);
	kofi_rxq_received(kofi_ep_rxq(&c->ep->base, &c->ep->rxq), &c->rxmsg,
			  op);
}

/*
 * Invalidate a key with the message, before the consumer gets the completion. If the key is
 * invalid already, by an access or by its owner, the peer has made no mistake, as it
 * cannot know. A key that must not be invalidated this way is a violation. Returns an
 * error, or 0 if the key has been invalidated now.
 */
static int ksk_rx_invalidate(struct ksk_conn *c)
{
	int err = kofi_mr_invalidate(&c->ep->base, c->rx.frame.inv_key);

	if (err == -EACCES)
		ksk_rx_violation(c, "invalidation denied");
	return err;
}

/* As ksk_rx_report(), with the key that has been invalidated */
static noinline void ksk_rx_report_key(struct ksk_conn *c, struct kofi_rxop *op)
{
	struct ksk_rx *rx = &c->rx;
	struct kofi_wc wc = {
		.err = rx->lost ? FI_ETRUNC : 0,
		.flags = FI_RECV | FI_MSG | KOFI_REMOTE_INV | c->rxmsg.flags,
		.len = op->cur.len - op->cur.left,
		.olen = rx->lost,
		.data = c->rxmsg.data,
		.src = c->rxmsg.src,
		.inv_key = rx->frame.inv_key,
	};

	if (rx->lost)
		ksk_stat_inc(&c->stats.rx_truncated);
	kofi_rxq_done(kofi_ep_rxq(&c->ep->base, &c->ep->rxq), op, &wc);
}

/* The last byte of a message has been placed. Returns false to stop reading. */
static bool ksk_rx_received(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;
	u16 flags = rx->frame.flags;
	struct kofi_rxop *op = rx->op;
	int err = -ENOENT;

	if (unlikely(flags & KSK_F_REMOTE_INV)) {
		err = ksk_rx_invalidate(c);
		if (err == -EACCES)
			return false;
	}
	if (rx->unexpected && ksk_unexpected_whole(rx->unexpected)) {
		rx->err = ECONNABORTED;
		return false;
	}
	rx->unexpected = NULL;
	if (flags & KSK_F_DELIVERY)
		ksk_tx_ack(c);
	rx->op = NULL;
	if (!op)
		return true;	/* stored, or discarded */
	if (unlikely(!err))
		ksk_rx_report_key(c, op);
	else
		ksk_rx_report(c, op);
	return true;
}

/* The last byte of a frame has been placed. Returns false to stop reading. */
static noinline bool ksk_rx_end(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;

	trace_kofi_sock_rx(c, (struct ksk_hdr *)rx->hdr, rx->frame.payload);
	switch (rx->frame.op) {
	case KSK_OP_WRITE:
		ksk_rma_written(c);
		break;
	case KSK_OP_READ_RSP:
		rx->read = NULL;
		ksk_tx_read_done(c);
		break;
	case KSK_OP_READ_REQ:
	case KSK_OP_RTS:
	case KSK_OP_CTS:
		break;
	default:
		if (!rx->frame.ack && !ksk_rx_received(c))
			return false;
		break;
	}
	ksk_rx_init(rx);
	return true;
}

/* The receive of the message is known: count the bytes that do not fit. */
static void ksk_rx_matched(struct ksk_rx *rx)
{
	rx->lost = rx->unexpected ? 0 :
		   rx->frame.payload - min_t(u64, rx->frame.payload,
					     rx->op ? rx->op->cur.len : 0);
}

static bool ksk_rx_tags(struct ksk_conn *c)
{
	if (c->ep->base.info->caps & FI_TAGGED)
		return true;
	ksk_rx_violation(c, "tag for an endpoint without");
	return false;
}

/* Set up the record of a message without flags, to look for its receive and report it. */
static __always_inline void ksk_rx_message(struct ksk_conn *c, bool tagged,
					   u64 tag, size_t len)
{
	c->rxmsg.src = ksk_conn_source(c);
	c->rxmsg.len = len;
	c->rxmsg.tagged = tagged;
	c->rxmsg.tag = tag;
	c->rxmsg.data = 0;
	c->rxmsg.flags = 0;
	c->rxmsg.confirmed = false;
}

/* Store a message without receive, if possible. @err is the result of matching. */
static int ksk_rx_found(struct ksk_conn *c, int err)
{
	if (err == -EAGAIN && c->ops->many)
		err = ksk_unexpected_store(c, &c->rx.op);
	if (!err)
		ksk_rx_matched(&c->rx);
	return err;
}

/* Find the receive for the message that has begun. */
static int ksk_rx_match(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;
	struct ksk_frame *f = &rx->frame;

	if (f->op == KSK_OP_TAGGED && !ksk_rx_tags(c))
		return -EPROTO;
	if ((f->flags & KSK_F_REMOTE_INV) &&
	    !(c->ext & KSK_EXT_REMOTE_INV)) {
		ksk_rx_violation(c, "flag that was not agreed");
		return -EPROTO;
	}
	if (!rx->stalled) {
		ksk_rx_message(c, f->op == KSK_OP_TAGGED, f->tag, f->payload);
		c->rxmsg.data = f->data;
		if (f->flags & KSK_F_CQ_DATA)
			c->rxmsg.flags = FI_REMOTE_CQ_DATA;
		c->rxmsg.confirmed = f->flags & KSK_F_DELIVERY;
	} else if (c->rxmsg.src == FI_ADDR_NOTAVAIL && c->ops->many) {
		ksk_rdm_rename(c, &c->rxmsg);
	}
	return ksk_rx_found(c, kofi_rxq_match(kofi_ep_rxq(&c->ep->base,
							  &c->ep->rxq),
					      &c->rxmsg, &rx->op));
}

/* A frame of a rendezvous */
static noinline int ksk_rx_rndv(struct ksk_conn *c)
{
	int err;

	if (!c->rndv.state) {
		ksk_rx_violation(c, "rendezvous that was not agreed");
		return -EPROTO;
	}
	switch (c->rx.frame.op) {
	case KSK_OP_RTS:
		return ksk_rx_tags(c) ? ksk_rndv_rts(c) : -EPROTO;
	case KSK_OP_CTS:
		return ksk_rndv_cts(c);
	default:
		err = ksk_rndv_data(c);
		if (!err)
			ksk_rx_matched(&c->rx);
		return err;
	}
}

static int ksk_rx_acked(struct ksk_conn *c)
{
	if (!ksk_tx_acked(c)) {
		ksk_rx_violation(c, "acknowledgment of no operation");
		return -EPROTO;
	}
	ksk_stat_inc(&c->stats.rx_acks);
	return 0;
}

/* A response begins: it is for the oldest read. */
static int ksk_rx_response(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;
	struct ksk_txop *op = ksk_tx_reading(c);

	if (!op) {
		ksk_rx_violation(c, "response to no read");
		return -EPROTO;
	}
	if (op->cur.len != rx->frame.payload) {
		ksk_rx_violation(c, "response of the wrong length");
		return -EPROTO;
	}
	rx->read = op;
	return 0;
}

/* Get the resources that a frame needs before its payload can be taken. */
static int ksk_rx_prepare(struct ksk_conn *c)
{
	/* a request that cannot be answered fails at the peer, when it sees the close */
	if (unlikely(c->retired) && (c->rx.frame.op == KSK_OP_READ_REQ ||
				     c->rx.frame.op == KSK_OP_RTS))
		return 0;
	switch (c->rx.frame.op) {
	case KSK_OP_READ_REQ:
		return ksk_rma_read(c);
	case KSK_OP_READ_RSP:
		return ksk_rx_response(c);
	case KSK_OP_WRITE:
		return ksk_rma_write(c);
	case KSK_OP_RTS:
	case KSK_OP_CTS:
	case KSK_OP_DATA:
		return ksk_rx_rndv(c);
	default:
		return c->rx.frame.ack ? ksk_rx_acked(c) :
					  ksk_rx_match(c);
	}
}

/* A frame has begun. */
static __always_inline void ksk_rx_count(struct ksk_conn *c)
{
	ksk_stat_inc(&c->stats.rx_frames);
	c->rx.budget -= KSK_FRAME_COST;
}

/*
 * Begin a frame: its header is complete, or its resources may be there now. @err is the
 * result of looking for them. Returns false if reading cannot go on.
 */
static bool ksk_rx_begun(struct ksk_conn *c, int err)
{
	struct ksk_rx *rx = &c->rx;

	if (!rx->stalled)
		ksk_rx_count(c);
	if (err == -EAGAIN) {
		if (!rx->stalled) {
			ksk_stat_inc(&c->stats.rx_stalls);
			trace_kofi_sock_stall(c, rx->frame.op,
					      rx->frame.payload);
		}
		rx->stalled = true;
		return false;
	}
	if (err) {
		/* a violation, or the endpoint is being drained */
		if (!rx->err)
			rx->err = -err;
		return false;
	}
	rx->stalled = false;
	rx->in_frame = true;
	rx->left = rx->frame.payload;
	return true;
}

/* Try a stalled frame again. */
static noinline bool ksk_rx_resume(struct ksk_conn *c)
{
	return ksk_rx_begun(c, ksk_rx_prepare(c)) &&
	       (c->rx.left || ksk_rx_end(c));
}

/* Collect header bytes. Returns how many were taken. */
static noinline size_t ksk_rx_header(struct ksk_conn *c,
				     const struct kofi_skb_part *from,
				     bool *go_on)
{
	struct ksk_rx *rx = &c->rx;
	size_t n = min_t(size_t, rx->want - rx->have, from->end - from->offset);
	const void *bytes = NULL;
	int err;

	if (n == sizeof(struct ksk_hdr))
		bytes = kofi_skb_part_flat(from, n);
	if (bytes) {
		memcpy(rx->hdr + rx->have, bytes, sizeof(struct ksk_hdr));
	} else if (skb_copy_bits(from->skb, from->offset, rx->hdr + rx->have,
				 n)) {
		rx->err = EIO;
		*go_on = false;
		return 0;
	}
	rx->have += n;
	if (rx->have < rx->want)
		return n;
	err = ksk_rx_decode(rx, c->be);
	if (err < 0) {
		ksk_rx_violation(c, "bad header");
		*go_on = false;
	} else if (!err) {
		*go_on = ksk_rx_begun(c, ksk_rx_prepare(c));
	}
	return n;
}

/* Copy bytes of a message; bytes that do not fit are dropped. */
static int ksk_rx_place(struct ksk_conn *c, const struct kofi_skb_part *from,
			size_t len)
{
	struct kofi_rxop *op = c->rx.op;
	struct kofi_cursor *cur;

	if (op)
		cur = &op->cur;
	else if (c->rx.unexpected)
		cur = ksk_unexpected_cursor(c->rx.unexpected);
	else
		return 0;
	return kofi_cursor_copy_from_skb(cur, from, min(cur->left, len));
}

/* Place payload. Returns how many bytes were taken. */
static noinline size_t ksk_rx_payload(struct ksk_conn *c,
				      const struct kofi_skb_part *from,
				      bool *go_on)
{
	struct ksk_rx *rx = &c->rx;
	size_t n = min_t(u64, rx->left, from->end - from->offset);
	int err;

	switch (rx->frame.op) {
	case KSK_OP_WRITE:
		err = ksk_rma_place(c, *from, n);
		break;
	case KSK_OP_READ_RSP:
		err = kofi_cursor_copy_from_skb(&rx->read->cur, from, n);
		break;
	default:
		err = ksk_rx_place(c, from, n);
		break;
	}
	if (err) {
		/* a region may be closed at any time; anything else is our fault */
		rx->err = rx->frame.op == KSK_OP_WRITE ? ECONNABORTED : EIO;
		*go_on = false;
		return 0;
	}
	rx->left -= n;
	return n;
}

/* A header without version, segments and number, which do not matter here */
#define KSK_PLAIN(op, hdr_size)	((u64)(op) << 8 | (u64)(hdr_size) << 48)
#define KSK_PLAIN_MASK		(KSK_PLAIN(0xff, 0xff) | 0xffULL << 32 | \
				 0xffffULL << 16)

/*
 * The header of a message that is all there has been collected, and no receive
 * found: the frame waits, or is stored. As ksk_rx_resume().
 */
static noinline bool ksk_rx_stalls(struct ksk_conn *c, unsigned int hdr_size,
				   int err)
{
	struct ksk_rx *rx = &c->rx;
	int bad;

	rx->have = sizeof(struct ksk_hdr);
	bad = ksk_rx_decode(rx, c->be);
	rx->have = hdr_size;
	if (bad > 0)
		bad = ksk_rx_decode(rx, c->be);
	if (bad) {
		ksk_rx_violation(c, "bad header");
		return false;
	}
	rx->op = NULL;
	return ksk_rx_begun(c, ksk_rx_found(c, err)) &&
	       (rx->left || ksk_rx_end(c));
}

/*
 * Place a message without flags that lies side by side in the packet, as most small
 * messages do, without recording progress. Returns false for any other frame.
 */
static __always_inline bool ksk_rx_whole(struct ksk_conn *c,
					 struct kofi_skb_part *from,
					 bool *go_on)
{
	const void *start = kofi_skb_part_flat(from, sizeof(struct ksk_hdr));
	unsigned int hdr_size = sizeof(struct ksk_hdr);
	struct ksk_rx *rx = &c->rx;
	struct kofi_rxop *op;
	u64 first, size, tag = 0;
	size_t len;
	bool tagged;
	void *to;
	int err;

	if (!start)
		return false;
	*(struct ksk_hdr *)rx->hdr = *(const struct ksk_hdr *)start;
	/* read once: a local peer may still write to the bytes that it has sent */
	barrier();
	first = get_unaligned_le64(rx->hdr) & KSK_PLAIN_MASK;
	tagged = first == KSK_PLAIN(KSK_OP_TAGGED, hdr_size + sizeof(tag));
	if (!tagged && first != KSK_PLAIN(KSK_OP_MSG, hdr_size))
		return false;
	if (tagged)
		hdr_size += sizeof(tag);
	size = ksk_get64(rx->hdr + offsetof(struct ksk_hdr, size), c->be);
	if (size < hdr_size || size > from->end - from->offset ||
	    !kofi_skb_part_flat(from, size))
		return false;
	if (tagged) {
		if (!(c->ep->base.info->caps & FI_TAGGED))
			return false;
		memcpy(rx->hdr + sizeof(struct ksk_hdr),
		       start + sizeof(struct ksk_hdr), sizeof(tag));
		barrier();	/* as above */
		tag = ksk_get64(rx->hdr + sizeof(struct ksk_hdr), c->be);
	}

	from->offset += hdr_size;
	ksk_rx_message(c, tagged, tag, size - hdr_size);
	err = kofi_rxq_match(kofi_ep_rxq(&c->ep->base, &c->ep->rxq), &c->rxmsg,
			     &op);
	if (unlikely(err)) {
		*go_on = ksk_rx_stalls(c, hdr_size, err);
		return true;
	}
	ksk_rx_count(c);
	/* no message is discarded before it has waited: there is a receive */
	len = min(c->rxmsg.len, op->cur.len);
	to = kofi_cursor_flat(&op->cur, len);
	if (likely(to)) {
		memcpy(to, start + hdr_size, len);
	} else if (kofi_cursor_copy_from_skb(&op->cur, from, len)) {
		rx->op = op;
		rx->err = EIO;
		*go_on = false;
		return true;
	}
	from->offset += c->rxmsg.len;
	trace_kofi_sock_rx(c, (struct ksk_hdr *)rx->hdr, c->rxmsg.len);
	ksk_rx_report(c, op);
	return true;
}

/* Actor of tcp_read_sock(), which stops when it takes nothing */
static int ksk_rx_actor(read_descriptor_t *desc, struct sk_buff *skb,
			unsigned int offset, size_t len)
{
	struct ksk_conn *c = desc->arg.data;
	struct ksk_rx *rx = &c->rx;
	bool go_on = !rx->err && !rx->stalled;
	struct kofi_skb_part from;
	size_t used;

	kofi_skb_part_init(&from, skb, offset, len);
	while (go_on && from.offset < from.end && rx->budget > 0) {
		if (!rx->in_frame && !rx->have &&
		    ksk_rx_whole(c, &from, &go_on))
			continue;
		used = rx->in_frame ? ksk_rx_payload(c, &from, &go_on) :
				      ksk_rx_header(c, &from, &go_on);
		from.offset += used;
		if (go_on && rx->in_frame && !rx->left)
			go_on = ksk_rx_end(c);
	}
	/* behind the last packet TCP need not look for another */
	desc->count = !skb_queue_is_last(&c->sock->sk->sk_receive_queue, skb);
	used = from.offset - offset;
	rx->budget -= used;
	ksk_stat_add(&c->stats.rx_bytes, used);
	return used;
}

/*
 * ksk_rx_actor() for kTLS, in process context. A record is a packet that is on no queue.
 * kTLS of 6.12 loses the rest of a record, unless the actor that takes a part stops the
 * reader.
 */
static int ksk_rx_actor_tls(read_descriptor_t *desc, struct sk_buff *skb,
			    unsigned int offset, size_t len)
{
	int used;

	/* completions expect it, as in the callbacks of sockets without TLS */
	local_bh_disable();
	used = ksk_rx_actor(desc, skb, offset, len);
	local_bh_enable();
	desc->count = used == len;
	return used;
}

/* The peer has sent its last byte, and we have read it. */
static bool ksk_rx_eof(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;

	return (sk->sk_shutdown & RCV_SHUTDOWN) &&
	       skb_queue_empty(&sk->sk_receive_queue) &&
	       !(c->rx.stalled && !c->rx.frame.payload);
}

/*
 * The peer has closed. If it has done so because the connection was idle, it reads
 * the frame that we had begun to send before we saw that: finish it. The sender and the
 * last page have this called again, and the watch limits how long it takes.
 */
static bool ksk_rx_last(struct ksk_conn *c)
{
	bool first = !c->retired;

	if (!c->ops->many)
		return true;
	WRITE_ONCE(c->retired, true);
	/*
	 * Order @retired before the check of pages; pairs with ksk_zc_put(), which runs with
	 * or without the socket's lock.
	 */
	smp_mb();
	/* if the peer's last frame is incomplete, it has not been waiting for ours */
	if (c->rx.have || (!c->frame.hdr_len && !atomic_read(&c->zc.out)))
		return true;
	if (first)
		mod_delayed_work(c->wq, &c->watch.work, 0);
	return false;
}

/**
 * ksk_rx_run - read the bytes that have arrived
 * @c: the connection
 *
 * The caller runs the sender afterwards.
 *
 * Context: locked, and not owned.
 * Return: true if the budget was used up before the bytes were; the caller sees to it
 * that the receiver runs again.
 */
bool ksk_rx_run(struct ksk_conn *c)
{
	read_descriptor_t desc = {
		.written = 0, .count = 1, .arg.data = c, .error = 0,
	};
	struct sock *sk = c->sock->sk;
	struct ksk_rx *rx = &c->rx;

	if (c->phase != KSK_CONN_ESTABLISHED || READ_ONCE(c->dead))
		return false;
	/* the end of a stream without messages overtakes none */
	if (unlikely(test_bit(KSK_CONN_BEHIND, &c->flags)) && tcp_inq(sk))
		return false;

	rx->budget = ksk_rx_budget;
	if (c->rndv.state && test_and_clear_bit(KSK_CONN_WOKEN, &c->flags))
		ksk_rndv_woken(c);
	if (!rx->stalled || ksk_rx_resume(c)) {
		tcp_read_sock(sk, &desc, ksk_rx_actor);
		if (unlikely(rx->in_frame) && rx->frame.op == KSK_OP_WRITE)
			ksk_rma_pause(c);
		/* TCP's reader never goes beyond urgent data; we have none */
		if (tcp_sk(sk)->urg_data)
			ksk_rx_violation(c, "urgent data");
	}
	if (rx->err) {
		ksk_conn_abort(c, rx->err);
		return false;
	}
	if (rx->budget <= 0) {
		ksk_stat_inc(&c->stats.rx_budget);
		return true;
	}
	if (ksk_rx_eof(c) && ksk_rx_last(c))
		ksk_conn_abort(c, ESHUTDOWN);
	return false;
}

/* Try a stalled frame again, and read. Returns 0, or an error of the stream. */
static int ksk_rx_read_tls(struct ksk_conn *c)
{
	read_descriptor_t desc = { .arg.data = c };
	struct ksk_rx *rx = &c->rx;
	bool go_on;
	int err;

	local_bh_disable();
	if (c->rndv.state && test_and_clear_bit(KSK_CONN_WOKEN, &c->flags))
		ksk_rndv_woken(c);
	go_on = !rx->stalled || ksk_rx_resume(c);
	local_bh_enable();
	if (!go_on)
		return 0;
	err = ksk_tls_read(c->tls, c->sock, &desc, ksk_rx_actor_tls);
	if (rx->in_frame && rx->frame.op == KSK_OP_WRITE)
		ksk_rma_pause(c);
	return err;
}

/**
 * ksk_rx_run_tls - read the records that have arrived on a stream with TLS
 * @c: the connection
 *
 * Context: locked, process.
 * Return: as ksk_rx_run().
 */
bool ksk_rx_run_tls(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;
	int err;

	if (c->phase != KSK_CONN_ESTABLISHED || READ_ONCE(c->dead))
		return false;
	rx->budget = ksk_rx_budget;
	err = ksk_rx_read_tls(c);
	if (rx->err) {
		ksk_conn_abort(c, rx->err);
		return false;
	}
	if (err) {
		ksk_conn_abort(c, -err);
		return false;
	}
	if (rx->budget <= 0) {
		ksk_stat_inc(&c->stats.rx_budget);
		return true;
	}
	if (c->tls->closed && !rx->stalled && ksk_rx_last(c))
		ksk_conn_abort(c, ESHUTDOWN);
	return false;
}

/**
 * ksk_rx_flush - complete every receive, and refuse further ones
 * @c: the connection
 *
 * A receive that a message has begun to fill gets ENOTCONN, the others ECANCELED.
 *
 * Context: process; locked, if there is a socket.
 */
void ksk_rx_flush(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;
	struct kofi_rxq *q = kofi_ep_rxq(&c->ep->base, &c->ep->rxq);
	struct kofi_rxop *op = rx->op;

	/*
	 * An endpoint that was never enabled has no queue. If it is being enabled, this is
	 * called again, see ksk_msg_enable(). No lock: enabling allocates memory, for which
	 * the work item must not wait. Pairs with kofi_rxq_init().
	 */
	if (smp_load_acquire(&q->ops))
		kofi_rxq_forget(q, &c->rxmsg);
	kofi_ep_remote_cancel(&c->ep->base, &rx->slot);
	rx->op = NULL;
	if (op)
		ksk_rx_cut(c, &c->rxmsg, op);
	if (c->rndv.state)
		ksk_rndv_flush(c);
	if (rx->unexpected)
		ksk_unexpected_cut(rx->unexpected);
	rx->unexpected = NULL;
	rx->read = NULL;
	ksk_rx_init(rx);
	/* receives of a shared context stay posted, and so do those for any peer; as above */
	if (!c->ops->many && smp_load_acquire(&c->ep->rxq.ops))
		kofi_rxq_flush(&c->ep->rxq);
}

/* --------------------------------------------------------------- receives */

/*
 * Try the stalled frame again. Called with locks of the core held, and with bottom halves
 * off where that matters.
 */

static void ksk_rx_wake_msg(struct kofi_rxmsg *msg)
{
	struct ksk_conn *c = container_of(msg, struct ksk_conn, rxmsg);

	irq_poll_sched(&c->poll);
}

static void ksk_rx_wake_slot(struct kofi_cq_wait *slot)
{
	struct ksk_conn *c = container_of(slot, struct ksk_conn, rx.slot);

	irq_poll_sched(&c->poll);
}

/**
 * ksk_rx_setup - make the receive side of a new endpoint
 * @c: the connection, with the core's part made
 */
void ksk_rx_setup(struct ksk_conn *c)
{
	ksk_rx_init(&c->rx);
	kofi_rxmsg_init(&c->rxmsg, &c->ep->base, ksk_rx_wake_msg);
	kofi_cq_wait_init(&c->rx.slot, &c->ep->base, ksk_rx_wake_slot);
}

/* fi_recvmsg() and its family */
ssize_t ksk_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	struct ksk_ep *ep = ksk_ep(fid);
	int err;

	err = kofi_ep_rx_state(&ep->base);
	if (err)
		return err;
	return kofi_rxq_post(&ep->rxq, msg, flags);
}

/* fi_trecvmsg() and its family */
ssize_t ksk_rx_tpost(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		     u64 flags)
{
	struct ksk_ep *ep = ksk_ep(fid);
	int err;

	if (!(ep->base.info->caps & FI_TAGGED))
		return -ENOSYS;
	err = kofi_ep_rx_state(&ep->base);
	if (err)
		return err;
	return kofi_rxq_tpost(&ep->rxq, msg, flags);
}
