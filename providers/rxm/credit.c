// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits: over devices where a message without a receive ends the connection.
 *
 * What they count
 *
 * A credit is a receive that the peer has posted and told us of; each packet takes
 * one, reads and writes take none. Both ends begin with one, and tell the other of
 * the rest by packets (RXM_CREDITS) as soon as they are connected. Requests say
 * whether credits are used. Over a provider that waits with a message for its
 * receive they are not; over one that does not, a peer that has none is refused.
 *
 * The last ones
 *
 * The last credit is for a packet with credits, which a peer that has run out of
 * them gets so. Above it, where the peer has enough receives, some are kept for
 * answers: a peer whose messages find no receive has answers read all the same.
 *
 * The first packet
 *
 * On iWARP it has to come from who has connected: what the other end sends before that
 * may arrive with the end of the handshake, and is an error there.
 * There is one, with credits, unless the peer is a program that only reads and writes:
 * after a second it is the other end's turn.
 *
 * When they are granted
 *
 * As soon as at least half of the receives that are posted are not the peer's. A
 * connection that may have fewer, as its messages hold the buffers, grants in
 * smaller steps, and one that may have no others in their place grants none: that
 * is how its peer is held back. With few receives, packets with credits, which take
 * one each, would be all that is sent: so there are at least RXM_CREDIT_BUFS.
 *
 * A peer that has no more than it keeps for answers sends no message that would bring
 * the half about. So it is told of any receive at once, but of one that a packet with
 * credits had: two such peers would tell each other of that for ever.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>

#include "rxm.h"

#define RXM_CREDITS_MAX	65536	/* no receive queue is longer */

bool rxm_credits_used(const struct fi_info *msg)
{
	KUNIT_STATIC_STUB_REDIRECT(rxm_credits_used, msg);
	return msg->domain_attr->resource_mgmt == FI_RM_DISABLED;
}
EXPORT_SYMBOL_IF_KUNIT(rxm_credits_used);

/**
 * rxm_credits_begin - a connection is about to be made
 * @c: the connection, which has no receive posted
 *
 * Context: process, with the mutex.
 */
void rxm_credits_begin(struct rxm_conn *c)
{
	c->flow = c->ep->flow;
	c->reserve = 1;
	c->tx_hold = c->flow;
	c->granting = false;
	c->grant_now = false;
	atomic_set(&c->credits, 1);
	atomic_set(&c->granted, 1);
	atomic_set(&c->ungranted, -1);
}

/**
 * rxm_credits_agree - the peer has said what it does
 * @c: a connection that sends nothing yet
 * @flow: RXM_FLOW_ON, ...
 * @rx_size: receives it has
 *
 * Context: process, with the mutex.
 * Return: 0, or -EPROTO if there can be no connection.
 */
int rxm_credits_agree(struct rxm_conn *c, u8 flow, u32 rx_size)
{
	if (!c->flow)
		return 0;
	c->reserve = clamp(rx_size / 4, 1, RXM_KEPT);
	return flow == RXM_FLOW_ON ? 0 : -EPROTO;
}

/**
 * rxm_credit_take - may a packet be sent?
 * @c: the connection
 * @keep: credits that are not for it
 *
 * If not, the packet of the peer that grants some pushes.
 *
 * Context: any, in the context that pushes.
 * Return: true, and the packet has its credit.
 */
bool rxm_credit_take(struct rxm_conn *c, unsigned int keep)
{
	if (likely(!c->flow))
		return true;
	/* the only one that takes them */
	if (atomic_read(&c->credits) <= (int)keep)
		return false;
	atomic_dec(&c->credits);
	return true;
}

/**
 * rxm_credit_back - return the credit of a packet that was not sent
 * @c: the connection
 *
 * Context: any, in the context that pushes.
 */
void rxm_credit_back(struct rxm_conn *c)
{
	if (c->flow)
		atomic_inc(&c->credits);
}

/**
 * rxm_send_packet - send a packet below
 * @c: the connection
 * @msg: the packet
 * @flags: of the post
 * @keep: credits that are not for it
 *
 * Context: any, in the context that pushes.
 * Return: 0; -EAGAIN, also without a credit; or what below returns.
 */
int rxm_send_packet(struct rxm_conn *c, const struct fi_msg *msg, u64 flags,
		    unsigned int keep)
{
	int err;

	if (!rxm_credit_take(c, keep))
		return -EAGAIN;
	err = fi_sendmsg(c->msg, msg, flags);
	if (err)
		rxm_credit_back(c);
	return err;
}

/**
 * rxm_send_bytes - send a packet of one piece below
 * @c: the connection
 * @buf: the packet, in the linear mapping
 * @len: bytes
 * @cqe: called when it has been sent
 * @keep: credits that are not for it
 *
 * Context: any, in the context that pushes.
 * Return: as rxm_send_packet().
 */
int rxm_send_bytes(struct rxm_conn *c, void *buf, size_t len,
		   struct kofi_cqe *cqe, unsigned int keep)
{
	const struct kvec kv = { .iov_base = buf, .iov_len = len };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = cqe,
	};

	KUNIT_STATIC_STUB_REDIRECT(rxm_send_bytes, c, buf, len, cqe, keep);
	return rxm_send_packet(c, &msg, 0, keep);
}
EXPORT_SYMBOL_IF_KUNIT(rxm_send_bytes);

/**
 * rxm_credits_come - a packet with credits
 * @c: the connection
 * @n: how many
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO if that cannot be.
 */
int rxm_credits_come(struct rxm_conn *c, u64 n)
{
	if (!c->flow || !n || n > RXM_CREDITS_MAX ||
	    atomic_read(&c->credits) > (int)(RXM_CREDITS_MAX - n))
		return -EPROTO;
	atomic_add(n, &c->credits);
	return 0;
}

/**
 * rxm_credit_used - a packet has come
 * @c: the connection
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO if the peer had no credit.
 */
int rxm_credit_used(struct rxm_conn *c)
{
	if (likely(!c->flow))
		return 0;
	WRITE_ONCE(c->tx_hold, false);
	return atomic_dec_if_positive(&c->granted) < 0 ? -EPROTO : 0;
}

/**
 * rxm_credit_posted - a receive was posted that the peer is to be told of
 * @c: the connection
 * @again: a packet with credits had it before
 *
 * Context: with rx_lock.
 */
void rxm_credit_posted(struct rxm_conn *c, bool again)
{
	if (!c->flow)
		return;
	atomic_inc(&c->ungranted);
	if (!again)
		/* pairs with rxm_grant_wanted(): not before the receive counts */
		smp_store_release(&c->grant_now, true);
}

/**
 * rxm_grant_wanted - is the peer to be told of receives now?
 * @c: a connection with credits
 *
 * Context: any.
 * Return: whether it is.
 */
bool rxm_grant_wanted(struct rxm_conn *c)
{
	bool now;
	int n, has;

	if (READ_ONCE(c->granting) || !atomic_read(&c->credits))
		return false;
	/* pairs with rxm_credit_posted() */
	now = smp_load_acquire(&c->grant_now);
	has = atomic_read(&c->granted);
	n = atomic_read(&c->ungranted);
	return n > 0 && (n >= has || (now && has <= RXM_KEPT));
}

/**
 * rxm_grant_send - tell the peer of its credits
 * @c: a connection with rxm_grant_due()
 *
 * Context: any, in the context that pushes.
 * Return: 0, or what rxm_send_packet() returns.
 */
int rxm_grant_send(struct rxm_conn *c)
{
	const struct kvec kv = {
		.iov_base = &c->grant, .iov_len = sizeof(c->grant),
	};
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = &c->grant_cqe,
	};
	int err, n;

	/* pairs with rxm_grant_done() */
	if (smp_load_acquire(&c->granting))
		return -EAGAIN;
	/* one that is posted from now on is told of by another packet */
	WRITE_ONCE(c->grant_now, false);
	n = atomic_xchg(&c->ungranted, 0);
	rxm_hdr_format(&c->grant, RXM_CREDITS, (u32)c->peer_id, 0);
	c->grant.ctrl_data = n;
	WRITE_ONCE(c->granting, true);
	/* the peer may use them before this returns */
	atomic_add(n, &c->granted);
	err = rxm_send_packet(c, &msg, 0, 0);
	if (!err)
		return 0;
	atomic_sub(n, &c->granted);
	atomic_add(n, &c->ungranted);
	WRITE_ONCE(c->grant_now, true);
	WRITE_ONCE(c->granting, false);
	return err;
}
