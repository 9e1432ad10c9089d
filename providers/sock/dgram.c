// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints of type FI_EP_DGRAM: a message is the whole payload of a UDP datagram.
 *
 * Sending
 *
 * A post puts its operation on a list. If no other context is sending, the post sends the
 * list, with bottom halves off; UDP copies the payload, and the operation completes. With
 * interrupts off, the softirq item sends instead. If a control group's program examines
 * UDP messages, which takes the socket's lock, the work item sends. Both also continue
 * after a full run. If the socket has enough queued, the list stops until there is room.
 *
 * Receiving
 *
 * Datagrams wait in the socket's queue, up to its size. UDP drops and counts
 * datagrams that do not fit. A softirq takes one after the other, finds its receive and
 * copies it. A datagram without a receive is kept, and those behind it stay in the queue,
 * until a receive is posted.
 *
 * Locks
 *
 * tx_lock, irqsave, guards the list; rx_lock, _bh, the datagram at hand. Locks of the
 * queue of receives are taken inside rx_lock. Once an operation is on the list, it can
 * complete, and the endpoint be closed. So the sender is decided, or an item scheduled,
 * before tx_lock is released; closing waits for both.
 */
#include <linux/bpf-cgroup.h>
#include <linux/irq_poll.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/udp.h>

#include <linux/kofi/backport.h>

#include "sock.h"

#define KSK_DGRAM_RUN	64	/* datagrams one context sends, or receives */

/* Above the cost of any run: an item that returns its weight may not schedule itself */
#define KSK_DGRAM_WEIGHT	(2 * KSK_DGRAM_RUN + 1)

/**
 * struct ksk_dgram - a datagram endpoint
 * @ep: common part of all types
 * @mutex: serialises enabling and draining
 * @stopped: the endpoint has been drained; under @mutex
 * @sock: the socket, from enabling until the endpoint is closed. Set once under @mutex;
 *	@poll and statistics read it without, senders after posts, which need an enabled
 *	endpoint
 * @saved: original callbacks of the socket
 * @poll: softirq item that receives, and sends operations that a post has left
 * @in_poll: number of running calls of @poll
 * @work: work item that sends in process context
 * @tx_lock: guards @closed, @posted, @sending and @again
 * @closed: no operation is accepted; under @tx_lock
 * @posted: operations, oldest first; under @tx_lock. A callback of the socket tests without
 *	it whether the list is empty
 * @sending: a context sends; under @tx_lock
 * @again: the sender must check @posted once more; under @tx_lock
 * @frag: page fragment for UDP instead of the task's; owned by the sender
 * @rx_lock: guards @skb, @rxmsg, @from and @waits
 * @skb: datagram that looks for its receive
 * @rxmsg: record of @skb in the queue of receives
 * @from: source address of @skb, for endpoints with FI_SOURCE
 * @waits: @rxmsg waits for a receive
 * @tx_datagrams: statistics: datagrams sent. The sender writes it; read without a lock
 * @tx_full: statistics: sends that the socket had no room for. The sender writes it; read
 *	without a lock
 * @rx_datagrams: statistics: datagrams received; written under @rx_lock, read without it
 * @rx_truncated: statistics: datagrams that were longer than their receive; written under
 *	@rx_lock, read without it
 * @rx_bad: statistics: datagrams dropped for their checksum; written under @rx_lock, read
 *	without it
 */
struct ksk_dgram {
	struct ksk_ep		ep;
	struct mutex		mutex;	/* enabling, draining */
	bool			stopped;
	struct socket		*sock;
	struct ksk_cbs		saved;
	struct irq_poll		poll;
	atomic_t		in_poll;
	struct work_struct	work;
	spinlock_t		tx_lock;	/* the list */
	bool			closed;
	struct list_head	posted;
	bool			sending;
	bool			again;
	struct page_frag	frag;
	spinlock_t		rx_lock;	/* the datagram */
	struct sk_buff		*skb;
	struct kofi_rxmsg	rxmsg;
	union kofi_ip		from;
	bool			waits;
	unsigned long		tx_datagrams;
	unsigned long		tx_full;
	unsigned long		rx_datagrams;
	unsigned long		rx_truncated;
	unsigned long		rx_bad;
};

static struct ksk_dgram *ksk_dgram(struct ksk_ep *ep)
{
	return container_of(ep, struct ksk_dgram, ep);
}

static void ksk_dgram_softirq(struct ksk_dgram *d)
{
	if (in_hardirq() || irqs_disabled()) {
		irq_poll_sched(&d->poll);
		return;
	}
	/* otherwise raising it wakes ksoftirqd */
	local_bh_disable();
	irq_poll_sched(&d->poll);
	local_bh_enable();
}

/* ----------------------------------------------------------------- sending */

static void ksk_dgram_complete(struct ksk_dgram *d, struct ksk_txop *op,
			       int err)
{
	const struct kofi_wc wc = {
		.op_context = op->context,
		.err = err,
		.flags = FI_SEND | FI_MSG,
		.len = op->cur.len,
		.src = FI_ADDR_NOTAVAIL,
	};
	u64 flags = op->flags;

	kofi_freelist_put(&d->ep.tx_free, &op->free);
	kofi_ep_tx_complete(&d->ep.base, &wc, flags);
}

/*
 * Call the protocol directly: security modules should not check messages of the kernel,
 * and would check them against the task that happens to run.
 *
 * UDP puts the bytes of long datagrams into the page fragment of the current task,
 * even for sockets with sk_use_task_frag clear. That task may have been interrupted in
 * the middle of filling it.
 */
static int ksk_dgram_xmit(struct ksk_dgram *d, struct ksk_txop *op)
{
	union kofi_ip to = op->peer;	/* programs of control groups may change it */
	struct msghdr msg = {
		.msg_name = &to,
		.msg_namelen = kofi_ip_len(&to.sa),
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
		.msg_iter = *kofi_cursor_iter(&op->cur),
	};
	const struct proto_ops *ops = READ_ONCE(d->sock->ops);
	int err;

	if (!READ_ONCE(d->ep.domain->ifindex))
		return -ENETDOWN;
	swap(current->task_frag, d->frag);
	err = ops->sendmsg(d->sock, &msg, op->cur.len);
	swap(current->task_frag, d->frag);
	return min(err, 0);
}

/* Send the first operation; false if there is none, or it must wait. */
static bool ksk_dgram_send_one(struct ksk_dgram *d)
{
	struct ksk_txop *op;
	unsigned long irq;
	int err;

	spin_lock_irqsave(&d->tx_lock, irq);
	op = list_first_entry_or_null(&d->posted, struct ksk_txop, node);
	spin_unlock_irqrestore(&d->tx_lock, irq);
	if (!op)
		return false;
	err = ksk_dgram_xmit(d, op);
		/* for other reasons of the same error nothing would wake us */
	if (err == -EAGAIN &&
	    test_and_clear_bit(SOCK_NOSPACE, &d->sock->flags)) {
		ksk_stat_inc(&d->tx_full);
		return false;
	}
	spin_lock_irqsave(&d->tx_lock, irq);
	list_del(&op->node);
	spin_unlock_irqrestore(&d->tx_lock, irq);
	if (!err)
		ksk_stat_inc(&d->tx_datagrams);
	ksk_dgram_complete(d, op, -err);
	return true;
}

/* Must messages be sent in process context? */
static bool ksk_dgram_sleeps(void)
{
	return cgroup_bpf_enabled(CGROUP_UDP4_SENDMSG) ||
	       cgroup_bpf_enabled(CGROUP_UDP6_SENDMSG);
}

/* Schedule another context that sends. */
static void ksk_dgram_defer(struct ksk_dgram *d)
{
	lockdep_assert_held(&d->tx_lock);

	if (ksk_dgram_sleeps())
		queue_work(ksk_wq, &d->work);
	else
		irq_poll_sched(&d->poll);
}

/* Mark that there is something to send; returns true if the caller must send it. */
static bool ksk_dgram_claim(struct ksk_dgram *d, bool can)
{
	lockdep_assert_held(&d->tx_lock);

	d->again = true;
	if (d->closed || d->sending)
		return false;
	d->sending = can;
	if (!can)
		ksk_dgram_defer(d);
	return can;
}

/*
 * Send the list, after ksk_dgram_claim(), with bottom halves off, or in process context.
 * A run is limited, as others may post as fast as we send. Returns the number of
 * datagrams sent.
 */
static int ksk_dgram_send(struct ksk_dgram *d)
{
	bool closed, more = true;
	unsigned long irq;
	int n = 0;

	spin_lock_irqsave(&d->tx_lock, irq);
	while (d->again && more && !d->closed) {
		d->again = false;
		spin_unlock_irqrestore(&d->tx_lock, irq);
		while (n < KSK_DGRAM_RUN && ksk_dgram_send_one(d))
			n++;
		more = n < KSK_DGRAM_RUN;
		spin_lock_irqsave(&d->tx_lock, irq);
	}
	closed = d->closed;
	if (!more && !closed)
		ksk_dgram_defer(d);
	d->sending = false;
	spin_unlock_irqrestore(&d->tx_lock, irq);
	if (closed)
		wake_up_var(&d->sending);
	return n;
}

static void ksk_dgram_work(struct work_struct *work)
{
	struct ksk_dgram *d = container_of(work, struct ksk_dgram, work);
	unsigned int flags = ksk_memalloc_save(&d->ep.tun);
	bool mine;

	spin_lock_irq(&d->tx_lock);
	mine = ksk_dgram_claim(d, true);
	spin_unlock_irq(&d->tx_lock);
	if (mine)
		ksk_dgram_send(d);
	ksk_memalloc_restore(flags);
}

/* ksk_ep_type.add */
static int ksk_dgram_add(struct ksk_ep *ep, fi_addr_t dest,
			 struct ksk_txop *op)
{
	struct ksk_dgram *d = ksk_dgram(ep);
	bool can = !in_hardirq() && !irqs_disabled() && !ksk_dgram_sleeps();
	unsigned long irq;
	bool mine = false;
	int err;

		/* one call can send the window of the cursor, which must be all */
	if (iov_iter_count(kofi_cursor_iter(&op->cur)) != op->cur.len)
		return -EINVAL;
	if (!READ_ONCE(ep->domain->ifindex))
		return -ENETDOWN;
	rcu_read_lock();
	err = kofi_av_get(ep->base.av, dest, &op->peer);
	rcu_read_unlock();
	if (err)
		return err;
	if (can)
		local_bh_disable();
	spin_lock_irqsave(&d->tx_lock, irq);
	if (d->closed) {
		err = -ESHUTDOWN;
	} else {
		list_add_tail(&op->node, &d->posted);
		mine = ksk_dgram_claim(d, can);
	}
	spin_unlock_irqrestore(&d->tx_lock, irq);
	if (mine)
		ksk_dgram_send(d);
	if (can)
		local_bh_enable();
	return err;
}

/* fi_sendmsg() and its family */
static ssize_t ksk_dgram_post(struct fid_ep *fid, const struct fi_msg *msg,
			      u64 flags)
{
	static const struct ksk_post post = { .op = KSK_OP_MSG };

	if (flags & ~(FI_COMPLETION | FI_MORE | FI_INJECT | KOFI_NO_COMPLETION |
		      FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE))
		return -FI_EBADFLAGS;
	return ksk_tx_submit(ksk_ep(fid), msg, &post, flags);
}

/* --------------------------------------------------------------- receiving */

static fi_addr_t ksk_dgram_source(struct ksk_dgram *d,
				  const struct sk_buff *skb)
{
	const struct kofi_ep *ep = &d->ep.base;
	struct sockaddr_storage from = {};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&from;
	struct sockaddr_in *in = (struct sockaddr_in *)&from;

	if (!(ep->info->caps & FI_SOURCE))
		return FI_ADDR_NOTAVAIL;
	if (skb->protocol == htons(ETH_P_IPV6)) {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = ipv6_hdr(skb)->saddr;
		in6->sin6_port = udp_hdr(skb)->source;
		in6->sin6_scope_id = ipv6_iface_scope_id(&in6->sin6_addr,
							 inet6_iif(skb));
	} else if (d->sock->sk->sk_family == AF_INET6) {
		in6->sin6_family = AF_INET6;
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &in6->sin6_addr);
		in6->sin6_port = udp_hdr(skb)->source;
	} else {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = ip_hdr(skb)->saddr;
		in->sin_port = udp_hdr(skb)->source;
	}
	if (kofi_ip_peer(&from, sizeof(from), &d->from))
		return FI_ADDR_NOTAVAIL;
	return kofi_av_source(ep->av, &d->from.sa);
}

/* Copy the datagram to its receive; there is none if it has been discarded. */
static void ksk_dgram_deliver(struct ksk_dgram *d, struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.err = EFAULT,
		.flags = FI_RECV | FI_MSG,
		.src = d->rxmsg.src,
	};
	struct kofi_skb_part part;

	if (op) {
		wc.len = min(d->rxmsg.len, op->cur.len);
		if (wc.len < d->rxmsg.len)
			ksk_stat_inc(&d->rx_truncated);
		kofi_skb_part_init(&part, d->skb, 0, wc.len);
		if (kofi_cursor_copy_from_skb(&op->cur, &part, wc.len))
			kofi_rxq_done(&d->ep.rxq, op, &wc);
		else
			kofi_rxq_received(&d->ep.rxq, &d->rxmsg, op);
	}
	consume_skb(d->skb);
	d->skb = NULL;
}

/*
 * Take the next datagram from the socket's queue; false if it is empty. After an error, or
 * for a datagram with a bad checksum, there is nothing to deliver.
 */
static bool ksk_dgram_take(struct ksk_dgram *d)
{
	struct sk_buff *skb;
	int err;

	skb = skb_recv_udp(d->sock->sk, MSG_DONTWAIT, &err);
	if (!skb)
		return err != -EAGAIN;
	if (skb_checksum_complete(skb)) {
		ksk_stat_inc(&d->rx_bad);
		kfree_skb(skb);
		return true;
	}
	ksk_stat_inc(&d->rx_datagrams);
	d->skb = skb;
	d->rxmsg.src = ksk_dgram_source(d, skb);
	d->rxmsg.len = skb->len;
	return true;
}

/* Returns the number of datagrams received: a full run if there may be more. */
static int ksk_dgram_receive(struct ksk_dgram *d)
{
	struct kofi_rxop *op;
	int n;

	lockdep_assert_held(&d->rx_lock);

	for (n = 0; n < KSK_DGRAM_RUN; n++) {
		if (!d->skb && !ksk_dgram_take(d))
			break;
		if (!d->skb)
			continue;
		d->waits = kofi_rxq_match(&d->ep.rxq, &d->rxmsg, &op);
		if (d->waits)
			break;
		ksk_dgram_deliver(d, op);
	}
	return n;
}

/* Each datagram counts in the budget, so that other softirqs have their turn. */
static int ksk_dgram_poll(struct irq_poll *iop, int weight)
{
	struct ksk_dgram *d = container_of(iop, struct ksk_dgram, poll);
	bool mine = false;
	int done = 0;

	/*
	 * Complete first: an item that is scheduled from now on runs again, so nothing
	 * is lost. in_poll makes ksk_dgram_drain() wait for this call.
	 */
	atomic_inc(&d->in_poll);
	irq_poll_complete(iop);
	/* irq_poll has no lock: order the completion before the checks of the queues */
	smp_mb();	/* pairs with irq_poll_sched() */

	/*
	 * A device can go before the endpoint has been enabled. No lock: the mutex cannot
	 * be taken here. Pairs with ksk_dgram_attach().
	 */
	if (!smp_load_acquire(&d->sock))
		goto out;
	if (!READ_ONCE(d->ep.domain->ifindex))
		kofi_rxq_flush(&d->ep.rxq);
	spin_lock(&d->rx_lock);
	done = ksk_dgram_receive(d);
	spin_unlock(&d->rx_lock);
	if (done == KSK_DGRAM_RUN)
		irq_poll_sched(iop);
	spin_lock_irq(&d->tx_lock);
	if (!list_empty(&d->posted))
		mine = ksk_dgram_claim(d, !ksk_dgram_sleeps());
	spin_unlock_irq(&d->tx_lock);
	if (mine)
		done += ksk_dgram_send(d);
out:
	if (atomic_dec_and_test(&d->in_poll))
		wake_up_var(&d->in_poll);
	return done;
}

/* kofi_rxmsg.wake */
static void ksk_dgram_wake(struct kofi_rxmsg *rxmsg)
{
	ksk_dgram_softirq(container_of(rxmsg, struct ksk_dgram, rxmsg));
}

/* --------------------------------------------------------------- the socket */

static void ksk_dgram_data_ready(struct sock *sk)
{
	struct ksk_dgram *d;

	read_lock_bh(&sk->sk_callback_lock);
	d = sk->sk_user_data;
	if (d)
		ksk_dgram_softirq(d);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* Called for each packet that has left */
static void ksk_dgram_write_space(struct sock *sk)
{
	struct ksk_dgram *d;

	read_lock_bh(&sk->sk_callback_lock);
	d = sk->sk_user_data;
	if (d && !list_empty_careful(&d->posted))
		ksk_dgram_softirq(d);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void ksk_dgram_attach(struct ksk_dgram *d, struct socket *sock)
{
	struct sock *sk = sock->sk;

	/* the queue of receives, before ksk_dgram_poll(), which may run at any time */
	smp_store_release(&d->sock, sock);
	write_lock_bh(&sk->sk_callback_lock);
	d->saved = (struct ksk_cbs) {
		.data_ready = sk->sk_data_ready,
		.write_space = sk->sk_write_space,
	};
	sk->sk_user_data = d;
	sk->sk_data_ready = ksk_dgram_data_ready;
	sk->sk_write_space = ksk_dgram_write_space;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void ksk_dgram_detach(struct ksk_dgram *d)
{
	struct sock *sk = d->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = d->saved.data_ready;
	sk->sk_write_space = d->saved.write_space;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
}

static int ksk_dgram_open_socket(struct ksk_dgram *d)
{
	const struct ksk_ep *ep = &d->ep;
	struct socket *sock;
	int err;

	err = ksk_socket_create(ep->base.domain->fabric->net,
				ep->src.sa.sa_family ?: AF_INET, SOCK_DGRAM,
				READ_ONCE(ep->domain->ifindex), &sock);
	if (err)
		return err;
	ksk_socket_tune(sock, &ep->tun, ep->base.info);
	err = ksk_socket_bind(sock, &ep->src);
	if (err) {
		ksk_socket_release(sock);
		return err;
	}
	/* if an administrator disconnected the socket, a send would bind it, and sleep */
	lock_sock(sock->sk);
	sock->sk->sk_userlocks |= SOCK_BINDPORT_LOCK;
	release_sock(sock->sk);
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* a softirq receives: it must not poll the device */
	WRITE_ONCE(sock->sk->sk_ll_usec, 0);
#endif
	ksk_dgram_attach(d, sock);
	/* receive datagrams that arrived before the callbacks were set */
	ksk_dgram_softirq(d);
	return 0;
}

/* --------------------------------------------------------------- the endpoint */

static int ksk_dgram_enable(struct fid_ep *fid)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct ksk_dgram *d = ksk_dgram(ep);
	unsigned int noio = memalloc_noio_save();
	int err = -ESHUTDOWN;

	mutex_lock(&d->mutex);
	if (d->stopped)
		goto unlock;
	err = -ENETDOWN;
	if (!READ_ONCE(ep->domain->ifindex))
		goto unlock;
	err = ksk_ep_alloc(ep);
	if (err)
		goto unlock;
	err = ksk_dgram_open_socket(d);
	if (err) {
		kofi_rxq_exit(&ep->rxq);
		ksk_tx_exit(ep);
	}
unlock:
	mutex_unlock(&d->mutex);
	memalloc_noio_restore(noio);
	return err;
}

/* Complete all unsent operations; posts may find the endpoint closed concurrently. */
static void ksk_dgram_flush(struct ksk_dgram *d, int err)
{
	struct ksk_txop *op;

	for (;;) {
		spin_lock_irq(&d->tx_lock);
		op = list_first_entry_or_null(&d->posted, struct ksk_txop,
					      node);
		if (op)
			list_del(&op->node);
		spin_unlock_irq(&d->tx_lock);
		if (!op)
			return;
		ksk_dgram_complete(d, op, err);
	}
}

static bool ksk_dgram_sends(struct ksk_dgram *d)
{
	bool sending;

	spin_lock_irq(&d->tx_lock);
	sending = d->sending;
	spin_unlock_irq(&d->tx_lock);
	return sending;
}

static void ksk_dgram_drain(struct fid_ep *fid)
{
	struct ksk_dgram *d = ksk_dgram(ksk_ep(fid));

	mutex_lock(&d->mutex);
	if (d->stopped)
		goto unlock;
	d->stopped = true;
	spin_lock_irq(&d->tx_lock);
	d->closed = true;
	spin_unlock_irq(&d->tx_lock);
	if (d->sock)
		ksk_dgram_detach(d);
	irq_poll_disable(&d->poll);
	wait_var_event(&d->in_poll, !atomic_read(&d->in_poll));
	cancel_work_sync(&d->work);
	/* a sender that this finds takes tx_lock again before it wakes: it sees the waiter */
	wait_var_event(&d->sending, !ksk_dgram_sends(d));
	ksk_dgram_flush(d, ECANCELED);
	if (d->waits)
		kofi_rxq_forget(&d->ep.rxq, &d->rxmsg);
	kfree_skb(d->skb);
	d->skb = NULL;
	if (d->ep.rxq.ops)
		kofi_rxq_flush(&d->ep.rxq);
unlock:
	mutex_unlock(&d->mutex);
}

static int ksk_dgram_close(struct fi_fid *fid)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct ksk_dgram *d = ksk_dgram(ep);

	ksk_ep_unlist(ep);
	if (d->sock)
		ksk_socket_release(d->sock);
	if (d->frag.page)
		put_page(d->frag.page);
	ksk_ep_exit(ep);
	mutex_destroy(&d->mutex);
	kfree(d);
	return 0;
}

static int ksk_dgram_getname(fid_t fid, void *addr, size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct ksk_dgram *d = ksk_dgram(ep);
	int err;

	mutex_lock(&d->mutex);
	err = ksk_cm_name(d->sock, &ep->src, addr, len);
	mutex_unlock(&d->mutex);
	return err;
}

static int ksk_dgram_setname(fid_t fid, void *addr, size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct ksk_dgram *d = ksk_dgram(ep);
	int err = kofi_ip_check(addr, len);
	int family;

	mutex_lock(&d->mutex);
	family = ep->src.sa.sa_family;
	/* the headers of the other family are longer, or shorter */
	if (!err && family && family != ((struct sockaddr *)addr)->sa_family)
		err = -EINVAL;
	if (!err && d->sock)
		err = -FI_EOPBADSTATE;
	if (!err)
		memcpy(&ep->src, addr, kofi_ip_len(addr));
	mutex_unlock(&d->mutex);
	return err;
}

/* Refuse a shared context: a datagram endpoint gains nothing from it. */
static int ksk_dgram_bind(struct fi_fid *fid, struct fi_fid *bfid, u64 flags)
{
	return bfid->fclass == FI_CLASS_SRX_CTX ? -EOPNOTSUPP : 0;
}

/* ksk_ep_type.abort: the softirq item checks the device. */
static void ksk_dgram_abort(struct ksk_ep *ep, int err)
{
	ksk_dgram_softirq(ksk_dgram(ep));
}

/* kofi_ep_ops.peers_added */
static void ksk_dgram_peers_added(struct fid_ep *fid)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct ksk_dgram *d = ksk_dgram(ep);
	fi_addr_t src;

	if (!(ep->base.info->caps & FI_SOURCE))
		return;
	spin_lock_bh(&d->rx_lock);
	if (d->waits && d->rxmsg.src == FI_ADDR_NOTAVAIL) {
		src = kofi_av_source(ep->base.av, &d->from.sa);
		if (src != FI_ADDR_NOTAVAIL)
			kofi_rxq_rename(&ep->rxq, &d->rxmsg, src);
	}
	spin_unlock_bh(&d->rx_lock);
}

static void ksk_dgram_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *base = container_of(obj, struct kofi_ep, obj);
	struct ksk_dgram *d = container_of(base, struct ksk_dgram, ep.base);
	struct socket *sock = READ_ONCE(d->sock);

	fn(arg, "tx_datagrams", READ_ONCE(d->tx_datagrams));
	fn(arg, "tx_full", READ_ONCE(d->tx_full));
	fn(arg, "rx_datagrams", READ_ONCE(d->rx_datagrams));
	fn(arg, "rx_truncated", READ_ONCE(d->rx_truncated));
	fn(arg, "rx_bad", READ_ONCE(d->rx_bad));
	fn(arg, "rx_dropped", sock ? sk_drops_read(sock->sk) : 0);
}

static const struct ksk_ep_type ksk_dgram_type = {
	.add		= ksk_dgram_add,
	.abort		= ksk_dgram_abort,
};

static const struct kofi_obj_ops ksk_dgram_obj_ops = {
	.stats		= ksk_dgram_stats,
};

static const struct fi_ops_cm ksk_dgram_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= ksk_dgram_setname,
	.getname	= ksk_dgram_getname,
};

static const struct fi_ops_msg ksk_dgram_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= ksk_dgram_post,
	.recvmsg	= ksk_rx_post,
	.cancel		= ksk_ep_cancel,
};

static const struct fi_ops ksk_dgram_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_dgram_close,
	.bind		= ksk_dgram_bind,
};

static const struct kofi_ep_ops ksk_dgram_ops = {
	.fid		= &ksk_dgram_fid_ops,
	.ep		= &ksk_ep_opt_ops,
	.cm		= &ksk_dgram_cm_ops,
	.msg		= &ksk_dgram_msg_ops,
	.obj		= &ksk_dgram_obj_ops,
	.enable		= ksk_dgram_enable,
	.drain		= ksk_dgram_drain,
	.peers_added	= ksk_dgram_peers_added,
};

/* fi_endpoint() of type FI_EP_DGRAM */
int ksk_dgram_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **fid, void *context)
{
	struct kofi_domain *kdomain = container_of(domain, struct kofi_domain,
						   domain);
	struct ksk_dgram *d;
	int err;

	if (info->handle)
		return -EINVAL;
	d = kzalloc_node(sizeof(*d), GFP_KERNEL, kdomain->node);
	if (!d)
		return -ENOMEM;
	mutex_init(&d->mutex);
	spin_lock_init(&d->tx_lock);
	spin_lock_init(&d->rx_lock);
	INIT_LIST_HEAD(&d->posted);
	INIT_WORK(&d->work, ksk_dgram_work);
	irq_poll_init(&d->poll, KSK_DGRAM_WEIGHT, ksk_dgram_poll);
	kofi_rxmsg_init(&d->rxmsg, &d->ep.base, ksk_dgram_wake);
	d->ep.type = &ksk_dgram_type;
	err = ksk_ep_init(&d->ep, domain, info, &ksk_dgram_ops, context);
	if (err)
		goto free;
	kofi_rxmsg_from(&d->rxmsg, &d->from.sa);
	ksk_ep_list(&d->ep);
	*fid = &d->ep.base.ep;
	return 0;

free:
	mutex_destroy(&d->mutex);
	kfree(d);
	return err;
}
