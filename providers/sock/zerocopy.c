// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sending pages without copying them.
 *
 * An operation of zerocopy_min bytes or more, in page vectors, hands its pages
 * to TCP (MSG_ZEROCOPY) together with its own struct ubuf_info, op->ubuf. Its
 * references keep the operation from completing: one is ours, until
 * the stream has done with the operation (the frame is out and, where that was
 * asked for, acknowledged; or the stream has been closed), and TCP takes one for
 * each packet that holds pages. The last reference completes the operation.
 * Nothing less proves that the memory may be written to again. TCP may send bytes
 * again that it has taken. Even if they are acknowledged, a copy of the packet may still be
 * in a queue of the device. No list is needed: a packet leads back to its operation.
 *
 * The last reference may go in any context: in process context with the socket
 * owned, when a connection is aborted; in softirq with the socket's lock held,
 * for an acknowledgment; in softirq without it, when a device has sent; with
 * interrupts off, from netpoll; in the middle of our own call of TCP. So
 * completing only takes irqsave locks, and TCP is never called with one of
 * them held.
 *
 * An endpoint waits for its pages before its close or drain returns (zc.users).
 * TCP's queue may hold them for long, if the peer does not read. So a stream that is
 * closed with pages out is aborted, never closed in order: that empties the queue. The
 * device gives the remaining pages back in bounded time. Operations that are flushed with
 * pages out keep their error until then. Nothing here ever waits for the peer.
 *
 * If packets never leave the machine (loopback, veth, tap), the receiving side copies the
 * pages in softirq, into fresh memory. This is more expensive than our own copy. The
 * receiving side reports the copy when it drops its reference. After such an operation the
 * next KSK_ZC_SKIP are copied. Then one is sent without a copy again, as routes change. A
 * device that cannot gather pages or make checksums
 * makes the kernel copy them as well. That is checked beforehand: TCP accepts the
 * pages, and a software segmentation does not report the copy. If a consumer has set
 * zerocopy_min for the endpoint, both tests are skipped.
 *
 * kvec memory is always copied: most of it comes from slab, and pages of slab must not
 * get into packets. In page vectors, pages that must not get there are copied piece
 * by piece. While TCP may send probes for a larger MTU, everything is copied.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bvec.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/wait_bit.h>
#include <net/dst.h>
#include <net/inet_connection_sock.h>

#include "sock.h"
#include "sock_trace.h"

/* Operations that are copied after the network has copied one */
#define KSK_ZC_SKIP	255

/* Time that a device may keep pages without a warning in the log */
#define KSK_ZC_PATIENCE	(10 * HZ)

/*
 * Result of an operation after its last page is back. TCP notes an error, then
 * empties its queue, which brings us here, and only then reports that the
 * connection is broken. If the error has been fetched from the socket by then, the
 * stream is dead.
 */
static int ksk_zc_result(struct ksk_conn *c, const struct ksk_txop *op)
{
	int err;

	/* an acknowledged operation has arrived, even if the stream failed later */
	if (op->err || op->ack)
		return op->err;
	/*
	 * Before dead; pairs with the xchg() in sock_error(). The last page may be released
	 * with the socket's lock held or not, so it cannot be taken.
	 */
	err = smp_load_acquire(&c->sock->sk->sk_err);
	if (err)
		ksk_conn_abort(c, err);
	return READ_ONCE(c->dead) ? ksk_tx_flush_err(c) : 0;
}

/* Drop a reference. The last one completes the operation. */
static void ksk_zc_put(struct ksk_txop *op)
{
	struct ksk_conn *c = op->conn;
	unsigned long irq;
	bool last;
	int err;

	if (!refcount_dec_and_test(&op->ubuf.refcnt))
		return;

	err = ksk_zc_result(c, op);
	trace_kofi_sock_zc(c, op, err);
	if (op->zc_copied) {
		spin_lock_irqsave(&c->posts.lock, irq);
		c->zc.skip = KSK_ZC_SKIP;
		ksk_stat_inc(&c->stats.tx_zc_copied);
		spin_unlock_irqrestore(&c->posts.lock, irq);
	}
	/* before the completion, after which the consumer may close: then no reset is needed */
	last = atomic_dec_and_test(&c->zc.out);
	ksk_tx_complete(c, op, err);
	/* closing may have waited for it: ksk_rx_last() */
	if (last && READ_ONCE(c->retired))
		irq_poll_sched(&c->poll);
	/* from here on the endpoint may be freed: a wait by its address only */
	if (atomic_dec_and_test(&c->zc.users))
		wake_up_var(&c->zc.users);
}

/* A packet has released the pages of an operation. */
static void ksk_zc_complete(struct sk_buff *skb, struct ubuf_info *ubuf,
			    bool success)
{
	struct ksk_txop *op = container_of(ubuf, struct ksk_txop, ubuf);

	if (!success)
		WRITE_ONCE(op->zc_copied, true);
	/*
	 * With the last reference no object of this provider is left to keep its module.
	 * Its memory is not freed before readers are through.
	 */
	rcu_read_lock();
	ksk_zc_put(op);
	rcu_read_unlock();
}

static const struct ubuf_info_ops ksk_zc_ops = {
	.complete	= ksk_zc_complete,
};

/*
 * A probe for a larger MTU is a packet that TCP makes of others which wait to
 * be sent. It takes over their pages, but not our references to those: they
 * would seem to be back with the probe still on its way.
 */
static bool ksk_zc_probes(const struct sock *sk)
{
	return inet_csk(sk)->icsk_mtup.enabled ||
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_mtu_probing);
}

/* Test whether the device sends pages without a copy. Locked. */
static bool ksk_zc_device(struct sock *sk)
{
	netdev_features_t features = 0;
	struct dst_entry *dst;

	rcu_read_lock();
	dst = __sk_dst_get(sk);
	if (dst)
		features = READ_ONCE(dst->dev)->features;
	rcu_read_unlock();
	return (features & NETIF_F_SG) &&
	       can_checksum_protocol(features, sk->sk_family == AF_INET6 ?
					       htons(ETH_P_IPV6) :
					       htons(ETH_P_IP));
}

/* Test whether sending pages is expected to save a copy. */
static bool ksk_zc_saves(struct ksk_conn *c)
{
	unsigned int skip = READ_ONCE(c->zc.skip);

	if (skip) {
		WRITE_ONCE(c->zc.skip, skip - 1);
		return false;
	}
	return ksk_zc_device(c->sock->sk);
}

/**
 * ksk_zc_begin - decide whether an operation hands out its pages
 * @c: the connection
 * @op: operation of the frame that begins
 *
 * Context: locked, the sender.
 */
void ksk_zc_begin(struct ksk_conn *c, struct ksk_txop *op)
{
	unsigned int min = c->zc.min;

	/* a read sends nothing of its memory */
	if (!min || ksk_txop_payload(op) < min ||
	    !iov_iter_is_bvec(kofi_cursor_iter(&op->cur)) ||
	    ksk_zc_probes(c->sock->sk))
		return;
	if (!c->ep->tun.zerocopy_always && !ksk_zc_saves(c))
		return;
	op->ubuf.ops = &ksk_zc_ops;
	op->ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	refcount_set(&op->ubuf.refcnt, 1);
	op->zc_copied = false;
	op->zc = true;
	atomic_inc(&c->zc.out);
	atomic_inc(&c->zc.users);
}

/**
 * ksk_zc_msg - send pages without copying, as far as that is possible
 * @sk: the socket
 * @op: an operation that hands out its pages
 * @msg: next part of the payload, for a call of TCP. It is cut where pages that may get
 *	into packets change to pages that must be copied, or back, and before an empty
 *	segment
 *
 * Context: locked, the sender.
 */
void ksk_zc_msg(const struct sock *sk, struct ksk_txop *op,
		struct msghdr *msg)
{
	struct iov_iter *iter = &msg->msg_iter;
	size_t left = iov_iter_count(iter), run = 0, skip;
	const struct bio_vec *bv;
	bool zc = false;

	/* to the next byte; TCP cannot take pages from an empty segment */
	iov_iter_advance(iter, 0);
	bv = iter->bvec;
	skip = iter->iov_offset;

	for (; left; bv++, skip = 0) {
		size_t bytes = min(bv->bv_len - skip, left);
		bool able;

		if (!bytes)
			break;
		able = ksk_zc_able(bv, bv->bv_offset + skip, bytes);
		if (run && able != zc)
			break;
		zc = able;
		run += bytes;
		left -= bytes;
	}
	iov_iter_truncate(iter, run);
	/* without it TCP copies */
	if (zc && (sk->sk_route_caps & NETIF_F_SG)) {
		msg->msg_flags |= MSG_ZEROCOPY;
		msg->msg_ubuf = &op->ubuf;
	}
}

/**
 * ksk_zc_done - drop the stream's reference to an operation that handed out pages
 * @op: the operation, its result in @op->err
 *
 * The operation completes as soon as the pages are back.
 *
 * Context: any.
 */
void ksk_zc_done(struct ksk_txop *op)
{
	ksk_zc_put(op);
}

/**
 * ksk_zc_wait - wait until all pages are back
 * @c: connection of a closed stream, which has been aborted if pages were out
 *
 * Context: process, sleeps; not locked. The wait is for the device, not for
 * the peer.
 */
void ksk_zc_wait(struct ksk_conn *c)
{
	while (!wait_var_event_timeout(&c->zc.users,
				       !atomic_read(&c->zc.users),
				       KSK_ZC_PATIENCE))
		pr_warn("endpoint %u: a network device still has pages of %d operations\n",
			c->ep->base.obj.id, atomic_read(&c->zc.users));
}
