// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rendezvous: long tagged messages of reliable datagrams, which are announced
 * before they are sent, where both peers know that (version 1 of the protocol).
 *
 * Normal operation
 *
 * The sender announces the message with its tag and length (RTS) and keeps the
 * operation. When the receiver has a receive for it, it asks for the payload (CTS), and
 * the payload follows (DATA). A context, a number from 1 to 254 that the sender
 * chooses, joins the three. An announcement without receive is kept within the
 * limits of stored messages (unexpected.c). It is short for any length of the message, so
 * the stream goes on behind it.
 *
 * Receiving
 *
 * An announcement waits in the queue of posted receives with a record of its own.
 * Everything else happens with the socket locked: a post that gives the announcement a
 * receive marks it, and schedules the softirq item of its connection.
 *
 * The receives that announcements have been given are held until the payload
 * comes, as by a message that has begun, for at most frame_timeout.
 *
 * Sending
 *
 * With all contexts in use a message is sent without announcement. CTS frames go
 * ahead of everything else. Payloads go ahead of operations that have not begun: one
 * of those may wait for payloads with FI_FENCE.
 *
 * Recovery
 *
 * No frame takes an announcement back. When the connection closes, announced operations
 * complete with the error of all others. Announcements without receive are forgotten, and
 * receives that were given to an announcement complete with ENOTCONN.
 */
#include <linux/slab.h>

#include "rdm.h"

/**
 * struct ksk_rts - a received announcement of a message
 * @node: entry in the list of the connection's announcements, oldest first
 * @cts: entry in the list of announcements with an unsent CTS
 * @c: the connection
 * @rxmsg: record that looks for the receive
 * @op: the receive, once it is granted; NULL to discard the message
 * @flags: KSK_F_* of the announcement
 * @ctx: context of the rendezvous
 * @charged: the announcement counts as a stored message
 * @woken: there may be a receive. Set with kofi_rxq.lock held; read and cleared with the
 *	socket locked
 * @granted: the CTS has been sent, or is on the list of @cts
 */
struct ksk_rts {
	struct list_head	node;
	struct list_head	cts;
	struct ksk_conn		*c;
	struct kofi_rxmsg	rxmsg;
	struct kofi_rxop	*op;
	u16			flags;
	u8			ctx;
	bool			charged;
	bool			woken;
	bool			granted;
};

static struct kofi_rxq *ksk_rndv_rxq(struct ksk_conn *c)
{
	return kofi_ep_rxq(&c->ep->base, &c->ep->rxq);
}

/* -------------------------------------------------------------------- sending */

/**
 * ksk_rndv_begin - announce an operation that is about to be sent
 * @c: a connection that knows announcements
 * @op: a tagged message that is long enough; becomes its announcement if a context
 *	is free
 *
 * Context: locked, the sender.
 */
void ksk_rndv_begin(struct ksk_conn *c, struct ksk_txop *op)
{
	struct ksk_rndv *r = c->rndv.state;
	unsigned long ctx = find_next_zero_bit(r->used, KSK_CTX_MAX + 1, 1);

	if (ctx > KSK_CTX_MAX)
		return;
	__set_bit(ctx, r->used);
	c->rndv.out++;
	op->ctx = ctx;
	op->op = KSK_OP_RTS;
	ksk_stat_inc(&c->stats.tx_rendezvous);
}

/**
 * ksk_rndv_sent - account for a sent announcement, or a sent payload
 * @c: the connection
 * @op: operation of the announced message, on no list
 *
 * Context: locked, the sender.
 * Return: true for the announcement: the operation waits for the CTS.
 */
bool ksk_rndv_sent(struct ksk_conn *c, struct ksk_txop *op)
{
	struct ksk_rndv *r = c->rndv.state;

	if (op->op == KSK_OP_RTS) {
		/* the peer's answer is not read before the socket is unlocked */
		list_add_tail(&op->node, &r->sent);
		return true;
	}
	__clear_bit(op->ctx, r->used);
	c->rndv.out--;
	return false;
}

/**
 * ksk_rndv_cts - queue the payload of an announced message that the peer asks for
 * @c: the connection, with the frame
 *
 * Context: locked; the caller runs the sender afterwards.
 * Return: 0, or -EPROTO.
 */
int ksk_rndv_cts(struct ksk_conn *c)
{
	struct ksk_rndv *r = c->rndv.state;
	struct ksk_txop *op;

	list_for_each_entry(op, &r->sent, node) {
		if (op->ctx != c->rx.frame.ctx)
			continue;
		op->op = KSK_OP_DATA;
		/* the operation's followers have followed the announcement */
		op->flags &= ~FI_MORE;
		list_move_tail(&op->node, &r->data);
		c->rndv.todo++;
		return 0;
	}
	ksk_rx_violation(c, "answer to no announcement");
	return -EPROTO;
}

/**
 * ksk_rndv_next - choose the next frame
 * @c: the connection, with something to be sent
 * @data: payloads may be chosen, too
 *
 * Context: locked, the sender.
 * Return: true with c->frame.cts, or with c->frame.op, on no list.
 */
bool ksk_rndv_next(struct ksk_conn *c, bool data)
{
	struct ksk_rndv *r = c->rndv.state;
	struct ksk_rts *rts;

	rts = list_first_entry_or_null(&r->cts, struct ksk_rts, cts);
	if (rts) {
		list_del_init(&rts->cts);
		c->frame.cts = rts->ctx;
	} else if (data) {
		c->frame.op = list_first_entry(&r->data, struct ksk_txop, node);
		list_del(&c->frame.op->node);
	} else {
		return false;
	}
	c->rndv.todo--;
	return true;
}

/**
 * ksk_rndv_flush_tx - collect the announced operations of a closed stream
 * @c: the connection
 * @list: the operations are added to it
 *
 * Context: locked, if there is a socket.
 */
void ksk_rndv_flush_tx(struct ksk_conn *c, struct list_head *list)
{
	struct ksk_rndv *r = c->rndv.state;

	list_splice_tail_init(&r->sent, list);
	list_splice_tail_init(&r->data, list);
	bitmap_zero(r->used, KSK_CTX_MAX + 1);
	c->rndv.out = 0;
	c->frame.cts = 0;
}

/* ------------------------------------------------------------------ receiving */

/* kofi_rxmsg.wake */
static void ksk_rts_wake(struct kofi_rxmsg *rxmsg)
{
	struct ksk_rts *rts = container_of(rxmsg, struct ksk_rts, rxmsg);

	/*
	 * The caller holds kofi_rxq.lock, which is inside the socket's lock of the reader,
	 * ksk_rndv_woken(). So barriers order the steps.
	 */
	WRITE_ONCE(rts->woken, true);
	smp_mb__before_atomic();	/* order @woken before the bit */
	set_bit(KSK_CONN_WOKEN, &rts->c->flags);
	smp_mb__after_atomic();	/* order both before the check that the item is scheduled */
	irq_poll_sched(&rts->c->poll);
}

static struct ksk_rts *ksk_rts_find(const struct ksk_rndv *r, u8 ctx)
{
	struct ksk_rts *rts;

	list_for_each_entry(rts, &r->rts, node)
		if (rts->ctx == ctx)
			return rts;
	return NULL;
}

static struct ksk_rts *ksk_rts_new(struct ksk_conn *c)
{
	const struct ksk_frame *f = &c->rx.frame;
	struct ksk_rts *rts;

	rts = kzalloc(sizeof(*rts), ksk_gfp_atomic(c->ep));
	if (!rts)
		return NULL;
	rts->c = c;
	rts->flags = f->flags;
	rts->ctx = f->ctx;
	INIT_LIST_HEAD(&rts->cts);
	kofi_rxmsg_init(&rts->rxmsg, &c->ep->base, ksk_rts_wake);
	rts->rxmsg.src = ksk_conn_source(c);
	rts->rxmsg.from = c->rxmsg.from;
	rts->rxmsg.len = f->announced;
	rts->rxmsg.tagged = true;
	rts->rxmsg.tag = f->tag;
	rts->rxmsg.data = f->data;
	rts->rxmsg.flags = f->flags & KSK_F_CQ_DATA ? FI_REMOTE_CQ_DATA : 0;
	rts->rxmsg.confirmed = f->flags & KSK_F_DELIVERY;
	list_add_tail(&rts->node, &c->rndv.state->rts);
	return rts;
}

static void ksk_rts_rename(struct ksk_rts *rts)
{
	if (rts->rxmsg.src == FI_ADDR_NOTAVAIL)
		ksk_rdm_rename(rts->c, &rts->rxmsg);
}

/* Stop counting the announcement as a stored message. */
static void ksk_rts_uncharge(struct ksk_rts *rts)
{
	if (rts->charged)
		ksk_unexpected_release(rts->c, sizeof(*rts));
	rts->charged = false;
}

static void ksk_rts_free(struct ksk_rts *rts)
{
	ksk_rts_uncharge(rts);
	rts->c->rndv.granted -= rts->granted;
	list_del(&rts->node);
	kfree(rts);
}

/* Forget an announcement that looks for a receive. */
static void ksk_rts_forget(struct ksk_rts *rts)
{
	kofi_rxq_forget(ksk_rndv_rxq(rts->c), &rts->rxmsg);
	ksk_rts_free(rts);
}

/* The announcement has its receive: queue its CTS. The caller runs the sender. */
static void ksk_rts_grant(struct ksk_rts *rts)
{
	ksk_rts_uncharge(rts);
	rts->granted = true;
	rts->c->rndv.granted++;
	list_add_tail(&rts->cts, &rts->c->rndv.state->cts);
	rts->c->rndv.todo++;
}

/**
 * ksk_rndv_rts - take an announcement
 * @c: the connection, with the frame; called again for a frame that waited
 *
 * Context: locked; the caller runs the sender afterwards.
 * Return: 0; -EAGAIN if it waits for a receive, for room or for memory; -ECONNABORTED if
 * it has waited too long; or -EPROTO.
 */
int ksk_rndv_rts(struct ksk_conn *c)
{
	struct ksk_rndv *r = c->rndv.state;
	struct ksk_rts *rts = r->stalled;
	int err;

	r->stalled = NULL;
	if (c->sock->sk->sk_shutdown & RCV_SHUTDOWN) {
		/* the payload can no longer come */
		if (rts)
			ksk_rts_forget(rts);
		return 0;
	}
	if (!rts) {
		if (ksk_rts_find(r, c->rx.frame.ctx)) {
			ksk_rx_violation(c, "announced twice");
			return -EPROTO;
		}
		rts = ksk_rts_new(c);
	} else {
		ksk_rts_rename(rts);
	}
	if (!rts) {
		set_bit(KSK_CONN_MEMORY, &c->flags);
		mod_timer(&c->retry, jiffies + msecs_to_jiffies(5));
		return -EAGAIN;
	}
	err = kofi_rxq_match(ksk_rndv_rxq(c), &rts->rxmsg, &rts->op);
	if (!err) {
		ksk_rts_grant(rts);
	} else if (err != -EAGAIN) {
		return err;
	} else if (ksk_unexpected_admit(c, sizeof(*rts))) {
		rts->charged = true;
		/* the sender may have been inserted since it was looked up */
		ksk_rts_rename(rts);
		ksk_stat_inc(&c->stats.rx_unexpected);
	} else {
		r->stalled = rts;
		return -EAGAIN;
	}
	return 0;
}

/**
 * ksk_rndv_woken - look for receives of woken announcements
 * @c: the connection
 *
 * Context: locked; the caller runs the sender afterwards.
 */
void ksk_rndv_woken(struct ksk_conn *c)
{
	struct ksk_rndv *r = c->rndv.state;
	struct ksk_rts *rts;
	int err;

	list_for_each_entry(rts, &r->rts, node) {
		/* the receiver tries the announcement again that it has stalled with */
		if (!READ_ONCE(rts->woken) || rts == r->stalled || rts->granted)
			continue;
		WRITE_ONCE(rts->woken, false);
		err = kofi_rxq_match(ksk_rndv_rxq(c), &rts->rxmsg, &rts->op);
		if (!err)
			ksk_rts_grant(rts);
		else if (err != -EAGAIN)
			c->rx.err = -err;
	}
}

/**
 * ksk_rndv_data - begin the payload of an announced message
 * @c: the connection, with the frame
 *
 * Context: locked.
 * Return: 0 with c->rxmsg, c->rx.frame and c->rx.op as for a message without
 * announcement; or -EPROTO.
 */
int ksk_rndv_data(struct ksk_conn *c)
{
	struct ksk_frame *f = &c->rx.frame;
	struct ksk_rts *rts = ksk_rts_find(c->rndv.state, f->ctx);

	if (!rts || !rts->granted || !list_empty(&rts->cts)) {
		ksk_rx_violation(c, "payload without being asked");
		return -EPROTO;
	}
	if (rts->rxmsg.len != f->payload) {
		ksk_rx_violation(c, "payload of another length than announced");
		return -EPROTO;
	}
	f->flags = rts->flags;
	c->rxmsg.src = rts->rxmsg.src;
	c->rxmsg.len = rts->rxmsg.len;
	c->rxmsg.tagged = true;
	c->rxmsg.tag = rts->rxmsg.tag;
	c->rxmsg.data = rts->rxmsg.data;
	c->rxmsg.flags = rts->rxmsg.flags;
	c->rx.op = kofi_rxmsg_adopt(&c->rxmsg, rts->op);
	ksk_rts_free(rts);
	return 0;
}

/**
 * ksk_rndv_flush - forget the announcements of a closed stream
 * @c: the connection
 *
 * Completes their receives with an error.
 *
 * Context: process; locked, if there is a socket.
 */
void ksk_rndv_flush(struct ksk_conn *c)
{
	struct ksk_rts *rts, *next;

	list_for_each_entry_safe(rts, next, &c->rndv.state->rts, node) {
		if (!rts->granted) {
			ksk_rts_forget(rts);
			continue;
		}
		if (rts->op)
			ksk_rx_cut(c, &rts->rxmsg, rts->op);
		ksk_rts_free(rts);
	}
	INIT_LIST_HEAD(&c->rndv.state->cts);
	c->rndv.state->stalled = NULL;
	c->rndv.todo = 0;
}

/**
 * ksk_rndv_init - initialise the state of announced messages
 * @r: state of the peer
 */
void ksk_rndv_init(struct ksk_rndv *r)
{
	INIT_LIST_HEAD(&r->sent);
	INIT_LIST_HEAD(&r->data);
	INIT_LIST_HEAD(&r->rts);
	INIT_LIST_HEAD(&r->cts);
}
