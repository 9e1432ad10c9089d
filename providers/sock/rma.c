// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Remote memory: reads and writes, both sides.
 *
 * The initiator posts operations like any other; tx.c sends them. A write completes
 * as a message does. A read waits, in the order of requests, for the response,
 * which rx.c copies into its memory.
 *
 * The target checks every segment of a request before a byte moves. The payload
 * of a write goes from the packets straight into the region. A read is put into a
 * ring, which is allocated for the first one. The sender answers from the ring; each
 * response follows the acknowledgments of earlier frames. When the ring is full, the
 * stream is not read until a response has left. A peer never sees that if it limits its
 * outstanding reads to the size of the ring, as we do.
 *
 * Nothing is held from one run of the receiver, or call of TCP, to the next:
 * struct kofi_target names a region by its key, and each step looks it up again.
 * If a region has been closed by then, the connection is closed, because the frame can
 * neither be finished nor taken back. Data that moves at once needs one lookup.
 *
 * All of the target's side belongs to the holder of the socket's lock.
 */
#include <linux/slab.h>
#include <net/sock.h>

#include "sock.h"
#include "sock_trace.h"

/* ---------------------------------------------------------------- posting */

static ssize_t ksk_rma_post(struct ksk_ep *ep, const struct fi_msg_rma *rmsg,
			    u8 op, u64 flags)
{
	const struct ksk_post post = {
		.op = op,
		.rma = rmsg->rma_iov,
		.rma_count = rmsg->rma_iov_count,
	};
	const struct fi_msg msg = kofi_rma_msg(rmsg);

	return ksk_tx_submit(ep, &msg, &post, flags);
}

/* fi_readmsg() and its family */
static ssize_t ksk_rma_readmsg(struct fid_ep *fid,
			       const struct fi_msg_rma *msg, u64 flags)
{
	struct ksk_ep *ep = ksk_ep(fid);

	if (flags & ~KSK_TX_FLAGS)
		return -FI_EBADFLAGS;
	if (!kofi_ep_may(&ep->base, FI_RMA | FI_READ))
		return -ENOSYS;
	return ksk_rma_post(ep, msg, KSK_OP_READ_REQ, flags);
}

/* fi_writemsg() and its family */
static ssize_t ksk_rma_writemsg(struct fid_ep *fid,
				const struct fi_msg_rma *msg, u64 flags)
{
	struct ksk_ep *ep = ksk_ep(fid);

	if (flags & ~KSK_TX_OUT_FLAGS)
		return -FI_EBADFLAGS;
	if (!kofi_ep_may(&ep->base, FI_RMA | FI_WRITE))
		return -ENOSYS;
	return ksk_rma_post(ep, msg, KSK_OP_WRITE, flags);
}

const struct fi_ops_rma ksk_rma_ops = {
	.size		= sizeof(struct fi_ops_rma),
	.readmsg	= ksk_rma_readmsg,
	.writemsg	= ksk_rma_writemsg,
};

/* -------------------------------------------------------- access by peers */

/**
 * ksk_rma_prepare - allocate the ring for reads of the peer's
 * @c: connection with a receiver that waits with its first request to read
 *
 * Most connections never need it.
 *
 * Context: locked, process.
 */
void ksk_rma_prepare(struct ksk_conn *c)
{
	if (!c->rsps.ring)
		c->rsps.ring = kcalloc_node(KSK_READS_MAX,
					    sizeof(*c->rsps.ring),
					    GFP_NOIO | __GFP_NORETRY |
					    __GFP_NOWARN,
					    c->ep->base.domain->node);
	if (c->rsps.ring)
		clear_bit(KSK_CONN_RSPS, &c->flags);
	else
		mod_timer(&c->retry, jiffies + msecs_to_jiffies(5));
}

/**
 * ksk_rma_exit - undo ksk_rma_prepare()
 * @c: the connection
 */
void ksk_rma_exit(struct ksk_conn *c)
{
	kfree(c->rsps.ring);
}

static void ksk_rma_drop(struct kofi_target *seg, unsigned int count)
{
	while (count--)
		kofi_target_drop(&seg[count]);
}

/*
 * Hold all segments of the current frame, or none. If the access must be reported, because
 * it brings a value or a region asks for reports, a completion slot is reserved.
 */
static int ksk_rma_targets(struct ksk_conn *c, struct kofi_target *seg,
			   u64 access, bool *reserved)
{
	const struct ksk_frame *f = &c->rx.frame;
	bool report = f->flags & KSK_F_CQ_DATA;
	unsigned int i;
	int err = 0;

	for (i = 0; i < f->rma_count; i++) {
		if (kofi_target_init(&seg[i], &c->ep->base, f->rma[i].key,
				     f->rma[i].addr, f->rma[i].len, access)) {
			ksk_rma_drop(seg, i);
			ksk_rx_violation(c, "remote access denied");
			return -EPROTO;
		}
		report |= seg[i].event;
	}
	if (report)
		err = kofi_ep_remote_reserve(&c->ep->base, &c->rx.slot);
	if (err)
		ksk_rma_drop(seg, f->rma_count);
	*reserved = report && !err;
	return err;
}

/* Account for a finished read or write of the peer, and report it. */
static void ksk_rma_done(struct ksk_conn *c, struct kofi_target *seg,
			 unsigned int count, bool reserved,
			 struct kofi_wc *wc)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		kofi_target_done(&seg[i], &c->ep->base,
				 wc->flags & (FI_REMOTE_READ | FI_REMOTE_WRITE));
	if (reserved)
		wc->flags |= FI_RMA_EVENT;
	wc->src = ksk_conn_source(c);
	if (kofi_ep_unknown(&c->ep->base, wc->src))
		wc->from = c->rxmsg.from;
	wc->mr_context = count ? seg->context : NULL;
	wc->mr_key = count ? seg->key : 0;
	kofi_ep_remote_complete(&c->ep->base, wc);
}

/* ------------------------------------------------------- reads of the peer's */

/**
 * ksk_rma_read - take a request to read
 * @c: the connection, the request in rx.frame
 *
 * Context: locked.
 * Return: 0, and the response is pending; -EAGAIN if too many responses are pending, or
 * without a completion slot; -EPROTO after a violation.
 */
int ksk_rma_read(struct ksk_conn *c)
{
	const struct ksk_frame *f = &c->rx.frame;
	struct ksk_rsp *rsp;
	unsigned int i;
	int err;

	if (!kofi_ep_may(&c->ep->base, FI_RMA | FI_REMOTE_READ)) {
		ksk_rx_violation(c, "read from an endpoint without");
		return -EPROTO;
	}
	if (!c->rsps.ring) {
		set_bit(KSK_CONN_RSPS, &c->flags);
		ksk_conn_queue(c);
		return -EAGAIN;
	}
	if (c->rsps.n == KSK_READS_MAX) {
		if (!c->rx.stalled)
			ksk_stat_inc(&c->stats.rx_full);
		return -EAGAIN;
	}
	rsp = &c->rsps.ring[(c->rsps.first + c->rsps.n) % KSK_READS_MAX];
	err = ksk_rma_targets(c, rsp->seg, FI_REMOTE_READ, &rsp->reserved);
	if (err)
		return err;
	/* when it will be answered is not known */
	ksk_rma_drop(rsp->seg, f->rma_count);
	rsp->payload = 0;
	for (i = 0; i < f->rma_count; i++)
		rsp->payload += f->rma[i].len;
	rsp->count = f->rma_count;
	rsp->cur = 0;
	rsp->acks = c->tx.acks;
	c->tx.acks = 0;
	c->rsps.n++;
	return 0;
}

/**
 * ksk_rma_source - get the next bytes of the current response
 * @c: the connection, with bytes of the response left
 * @iter: over at least one byte
 *
 * The region is held until ksk_rma_sent().
 *
 * Context: locked.
 * Return: false if the region has been closed.
 */
bool ksk_rma_source(struct ksk_conn *c, struct iov_iter *iter)
{
	struct ksk_rsp *rsp = c->frame.rsp;

	while (!rsp->seg[rsp->cur].left)
		rsp->cur++;
	return kofi_target_get(&rsp->seg[rsp->cur], &c->ep->base, iter);
}

/**
 * ksk_rma_sent - account for bytes of a response that the socket has taken
 * @c: the connection
 * @bytes: number of bytes from ksk_rma_source() that were taken; may be 0
 *
 * After the last byte ksk_rma_answered() follows at once.
 *
 * Context: locked.
 */
void ksk_rma_sent(struct ksk_conn *c, size_t bytes)
{
	struct ksk_rsp *rsp = c->frame.rsp;

	kofi_target_used(&rsp->seg[rsp->cur], bytes);
	if (c->frame.left)
		kofi_target_drop(&rsp->seg[rsp->cur]);
}

/**
 * ksk_rma_answered - finish a response when the socket has taken its last byte
 * @c: the connection
 *
 * Context: locked.
 */
void ksk_rma_answered(struct ksk_conn *c)
{
	struct ksk_rsp *rsp = c->frame.rsp;
	struct kofi_wc wc = {
		.flags = FI_RMA | FI_REMOTE_READ,
		.len = rsp->payload,
	};

	ksk_stat_inc(&c->stats.tx_responses);
	ksk_rma_done(c, rsp->seg, rsp->count, rsp->reserved, &wc);
	c->frame.rsp = NULL;
	/* the first one is in the cache, if one is under way at a time */
	if (--c->rsps.n)
		c->rsps.first = (c->rsps.first + 1) % KSK_READS_MAX;
	else
		c->rsps.first = 0;
	/* there is room for the request that has stopped the receiver */
	if (c->rx.stalled && c->rx.frame.op == KSK_OP_READ_REQ)
		ksk_conn_softirq(c);
}

/* ------------------------------------------------------ writes of the peer's */

/**
 * ksk_rma_write - begin a write of the peer
 * @c: the connection, its header in rx.frame
 *
 * Context: locked.
 * Return: 0, and all of it may be placed; -EAGAIN without a completion slot;
 * -EPROTO after a violation.
 */
int ksk_rma_write(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;

	if (!kofi_ep_may(&c->ep->base, FI_RMA | FI_REMOTE_WRITE)) {
		ksk_rx_violation(c, "write to an endpoint without");
		return -EPROTO;
	}
	rx->cur = 0;
	return ksk_rma_targets(c, rx->seg, FI_REMOTE_WRITE, &rx->reserved);
}

/**
 * ksk_rma_place - place received payload of a write
 * @c: the connection
 * @from: received bytes
 * @len: bytes to place; at most the rest of the frame
 *
 * Context: locked.
 * Return: 0, or a negative error if it cannot be placed: the region has been
 * closed.
 */
int ksk_rma_place(struct ksk_conn *c, struct kofi_skb_part from, size_t len)
{
	struct ksk_rx *rx = &c->rx;

	while (len) {
		struct kofi_target *seg = &rx->seg[rx->cur];
		size_t n = min_t(u64, seg->left, len);
		int err;

		if (!n) {
			rx->cur++;
			continue;
		}
		err = kofi_target_copy_from_skb(seg, &c->ep->base, &from, n);
		if (err)
			return err;
		from.offset += n;
		len -= n;
	}
	return 0;
}

/**
 * ksk_rma_pause - release the regions when the receiver stops within a write
 * @c: the connection, the write still in rx.frame
 *
 * Context: locked.
 */
void ksk_rma_pause(struct ksk_conn *c)
{
	ksk_rma_drop(c->rx.seg, c->rx.frame.rma_count);
}

/**
 * ksk_rma_written - finish a write when its last byte has been placed
 * @c: the connection, the write still in rx.frame
 *
 * Context: locked.
 */
void ksk_rma_written(struct ksk_conn *c)
{
	struct ksk_rx *rx = &c->rx;
	const struct ksk_frame *f = &rx->frame;
	struct kofi_wc wc = {
		.flags = FI_RMA | FI_REMOTE_WRITE |
			 (f->flags & KSK_F_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
		.len = f->payload,
		.data = f->data,
	};

	if (f->flags & KSK_F_DELIVERY)
		ksk_tx_ack(c);
	ksk_rma_done(c, rx->seg, f->rma_count, rx->reserved, &wc);
	rx->reserved = false;
}

/**
 * ksk_rma_flush - forget outstanding accesses of the peer
 * @c: the connection
 *
 * Context: process; locked, if there is a socket.
 */
void ksk_rma_flush(struct ksk_conn *c)
{
	for (; c->rsps.n; c->rsps.n--) {
		if (c->rsps.ring[c->rsps.first].reserved)
			kofi_ep_remote_unreserve(&c->ep->base);
		c->rsps.first = (c->rsps.first + 1) % KSK_READS_MAX;
	}
	c->frame.rsp = NULL;
	if (c->rx.reserved)
		kofi_ep_remote_unreserve(&c->ep->base);
	c->rx.reserved = false;
}
