// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits: flow control over devices where a message without a receive terminates the
 * connection.
 *
 * Unit
 *
 * A credit is a posted receive of the peer that the peer has granted to us. Each packet
 * takes one. Reads and writes take none, but for a write with remote CQ data that uses
 * a receive. Both sides begin with one credit, and grant the others by packets
 * (RXM_CREDITS) as soon as they are connected. Connect requests and answers state
 * whether the sender uses credits. Credits are not used over a provider that stalls a
 * message until it has a receive. Over other providers a peer without credits is refused.
 *
 * Reserved credits
 *
 * The last credit is for a packet that grants credits, so a peer that has run out of
 * credits gets new ones. If the peer has enough receives, a few more are reserved for
 * answers. So answers arrive even at a peer that holds our messages in its buffers.
 *
 * The first packet
 *
 * On iWARP the connecting side must send first: a packet of the accepting side may
 * arrive together with the last message of the handshake, which is an error there. The
 * first packet grants credits, unless the peer is a program that only reads and writes:
 * after a second the accepting side may send.
 *
 * Time of a grant
 *
 * Receives are granted as soon as at least half of the posted ones are not granted yet. If
 * held messages occupy buffers, the connection has fewer receives and grants in
 * smaller steps. If it may have no other buffers, it grants none: that stalls its peer.
 * With few receives, packets with credits would take most of the credits themselves: so
 * there are at least RXM_CREDIT_BUFS.
 *
 * A peer that has only reserved credits sends no message, and so half of the receives may
 * never become ungranted. Therefore any receive is granted to such a peer at once, except
 * one that held a packet with credits: two such peers would exchange grants forever.
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
 * rxm_credits_begin - reset the credits of a new connection
 * @c: the connection, which has no receive posted
 *
 * Context: process, with the mutex.
 */
void rxm_credits_begin(struct rxm_conn *c)
{
	c->flow.on = c->ep->flow;
	c->flow.reserve = 1;
	c->flow.hold = c->flow.on;
	c->flow.granting = false;
	c->flow.grant_now = false;
	atomic_set(&c->flow.credits, 1);
	atomic_set(&c->flow.granted, 1);
	atomic_set(&c->flow.ungranted, -1);
}

/**
 * rxm_credits_agree - check that the peer uses credits if we do
 * @c: a connection that sends nothing yet
 * @flow: RXM_FLOW_ON, ...
 * @rx_size: number of receives of the peer
 *
 * Context: process, with the mutex.
 * Return: 0, or -EPROTO if there can be no connection.
 */
int rxm_credits_agree(struct rxm_conn *c, u8 flow, u32 rx_size)
{
	if (!c->flow.on)
		return 0;
	c->flow.reserve = clamp(rx_size / 4, 1, RXM_KEPT);
	return flow == RXM_FLOW_ON ? 0 : -EPROTO;
}

/**
 * rxm_credit_take - take a credit for a packet
 * @c: the connection
 * @keep: number of credits that the packet may not use
 *
 * After a failure, the next grant of the peer pushes.
 *
 * Context: any, in the context that pushes.
 * Return: true if the packet has its credit.
 */
bool rxm_credit_take(struct rxm_conn *c, unsigned int keep)
{
	if (likely(!c->flow.on))
		return true;
	/* only the context that pushes takes credits */
	if (atomic_read(&c->flow.credits) <= (int)keep)
		return false;
	atomic_dec(&c->flow.credits);
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
	if (c->flow.on)
		atomic_inc(&c->flow.credits);
}

/**
 * rxm_send_packet - send a packet below
 * @c: the connection
 * @msg: the packet
 * @flags: flags of the post below
 * @keep: number of credits that the packet may not use
 *
 * Context: any, in the context that pushes.
 * Return: 0; -EAGAIN, also without a credit; or as fi_sendmsg() below.
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
 * @len: length in bytes
 * @cqe: completion of the packet
 * @keep: number of credits that the packet may not use
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
 * rxm_credits_come - add the credits of a received packet
 * @c: the connection
 * @n: number of credits
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO for an invalid number.
 */
int rxm_credits_come(struct rxm_conn *c, u64 n)
{
	if (!c->flow.on || !n || n > RXM_CREDITS_MAX ||
	    atomic_read(&c->flow.credits) > (int)(RXM_CREDITS_MAX - n))
		return -EPROTO;
	atomic_add(n, &c->flow.credits);
	return 0;
}

/**
 * rxm_credit_used - account for a received packet
 * @c: the connection
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO if the peer had no credit.
 */
int rxm_credit_used(struct rxm_conn *c)
{
	if (likely(!c->flow.on))
		return 0;
	WRITE_ONCE(c->flow.hold, false);
	return atomic_dec_if_positive(&c->flow.granted) < 0 ? -EPROTO : 0;
}

/**
 * rxm_credit_posted - account for a posted receive, which must be granted to the peer
 * @c: the connection
 * @again: the receive held a packet with credits before
 *
 * Context: with rx_lock.
 */
void rxm_credit_posted(struct rxm_conn *c, bool again)
{
	if (!c->flow.on)
		return;
	atomic_inc(&c->flow.ungranted);
	if (!again)
		/*
		 * The receive must count first: pairs with rxm_grant_wanted(). Each
		 * received message gets here, and avoids c->lock, which the posts
		 * contend for.
		 */
		smp_store_release(&c->flow.grant_now, true);
}

/**
 * rxm_grant_wanted - test whether receives must be granted now
 * @c: a connection with credits
 *
 * Context: any, with @c->lock.
 * Return: true if a grant must be sent.
 */
bool rxm_grant_wanted(struct rxm_conn *c)
{
	bool now;
	int n, has;

	lockdep_assert_held(&c->lock);

	if (c->flow.granting || !atomic_read(&c->flow.credits))
		return false;
	/* pairs with rxm_credit_posted(), which has another lock */
	now = smp_load_acquire(&c->flow.grant_now);
	has = atomic_read(&c->flow.granted);
	n = atomic_read(&c->flow.ungranted);
	return n > 0 && (n >= has || (now && has <= RXM_KEPT));
}

/**
 * rxm_grant_send - grant the ungranted receives to the peer
 * @c: a connection with rxm_grant_due(), for which the caller has set @c->flow.granting
 *
 * Context: any, in the context that pushes.
 * Return: 0, or as rxm_send_packet().
 */
int rxm_grant_send(struct rxm_conn *c)
{
	const struct kvec kv = {
		.iov_base = &c->flow.grant, .iov_len = sizeof(c->flow.grant),
	};
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = &c->flow.grant_cqe,
	};
	int err, n;

	/* receives that are posted from now on are granted by another packet */
	WRITE_ONCE(c->flow.grant_now, false);
	n = atomic_xchg(&c->flow.ungranted, 0);
	rxm_hdr_format(&c->flow.grant, RXM_CREDITS, (u32)c->peer_id, 0);
	c->flow.grant.ctrl_data = n;
	/* the peer may use the credits before the send returns */
	atomic_add(n, &c->flow.granted);
	err = rxm_send_packet(c, &msg, 0, 0);
	if (!err)
		return 0;
	atomic_sub(n, &c->flow.granted);
	atomic_add(n, &c->flow.ungranted);
	WRITE_ONCE(c->flow.grant_now, true);
	return err;
}
