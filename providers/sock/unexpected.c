// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tagged messages that no posted receive matches: stored, so that the rest of the stream
 * can be read.
 *
 * Storing
 *
 * A message is stored if it is short, its sender is in the address vector, and
 * neither the sender nor all of them together have too many; otherwise the stream
 * waits, as it does without tags. The message is acknowledged when it is complete. If it
 * has waited too long by then, the connection is closed.
 *
 * Storing costs a second copy, and does not hold the sender back as a stream that
 * waits does. A consumer that posts a receive in each callback never has any posted
 * when many messages arrive in one packet. So if it has posted since the stream last
 * waited, the stream waits for the callbacks of earlier completions, and tries once more.
 *
 * Delivering
 *
 * A stored message waits in the queue of posted receives with a record of its own,
 * as a stream's does, and so is found by FI_PEEK. When the message is complete and has
 * been woken, it is put on a list. A work item in softirq context takes it from there,
 * asks for its receive, and copies. The connection is no longer needed: bytes that a
 * peer sent before it went count as received. The message may be woken more than once, for
 * a slot of the completion queue and for its receive. That may also be before it is
 * complete, and while the work item has it.
 *
 * Memory
 *
 * When a stored message is freed, streams that were refused try again.
 */
#include <linux/slab.h>
#include <net/tcp.h>

#include "rdm.h"

#define KSK_UNEXPECTED_LEN	(15 * SZ_1K)	/* longest message that is stored */
#define KSK_UNEXPECTED_COUNT	64	/* most stored messages of one peer */

/**
 * struct ksk_unexpected - a stored message
 * @node: entry in the list of the endpoint's stored messages
 * @rdm: the endpoint
 * @peer: the connection, while there is one
 * @addr: address of the sender
 * @rxmsg: record that looks for the receive
 * @cur: position of the next bytes in @buf
 * @whole: the last byte has arrived; under ksk_rdm_ready.lock
 * @woken: @rxmsg has been woken; under ksk_rdm_ready.lock
 * @ready: entry in the list of messages that are whole and woken, until the work item
 *	takes it; under ksk_rdm_ready.lock
 * @buf: the bytes
 */
struct ksk_unexpected {
	struct list_head	node;
	struct ksk_rdm		*rdm;
	struct ksk_peer		*peer;
	union kofi_ip		addr;
	struct kofi_rxmsg	rxmsg;
	struct kofi_cursor	cur;
	bool			whole;
	bool			woken;
	struct list_head	ready;
	u8			buf[];
};

static_assert(sizeof(struct ksk_unexpected) + KSK_UNEXPECTED_LEN <= SZ_16K);

static struct kofi_rxq *ksk_unexpected_rxq(struct ksk_rdm *rdm)
{
	return kofi_ep_rxq(&rdm->ep.base, &rdm->ep.rxq);
}

static size_t ksk_unexpected_size(const struct ksk_unexpected *u)
{
	return struct_size(u, buf, u->rxmsg.len);
}

/* Set @u->whole or @u->woken, and queue the work item if both are set. */
static void ksk_unexpected_step(struct ksk_unexpected *u, bool *what)
{
	struct ksk_rdm *rdm = u->rdm;
	unsigned long irq;

	spin_lock_irqsave(&rdm->ready.lock, irq);
	*what = true;
	if (u->whole && u->woken && list_empty(&u->ready)) {
		list_add_tail(&u->ready, &rdm->ready.list);
		queue_work(system_bh_wq, &rdm->ready.deliver);
	}
	spin_unlock_irqrestore(&rdm->ready.lock, irq);
}

/* kofi_rxmsg.wake */
static void ksk_unexpected_wake(struct kofi_rxmsg *rxmsg)
{
	struct ksk_unexpected *u = container_of(rxmsg, struct ksk_unexpected,
						rxmsg);

	ksk_unexpected_step(u, &u->woken);
}

/* -------------------------------------------------------------------- storing */

/* Account for the memory of a message; false if it must not be stored. */
static bool ksk_unexpected_charge(struct ksk_rdm *rdm, struct ksk_peer *peer,
				  size_t bytes)
{
	size_t limit = rdm->ep.base.info->rx_attr->total_buffered_recv;
	unsigned long irq;
	bool room;

	spin_lock_irqsave(&rdm->lock, irq);
	room = rdm->stored.bytes + bytes <= limit;
	rdm->stored.full |= !room;
	room = room && peer->unexpected < KSK_UNEXPECTED_COUNT;
	peer->refused = !room;
	if (room) {
		rdm->stored.bytes += bytes;
		peer->unexpected++;
		peer->unexpected_bytes += bytes;
	} else {
		peer->before = peer->unexpected;
	}
	spin_unlock_irqrestore(&rdm->lock, irq);
	return room;
}

/* There is more room: streams that were refused try again. */
static void ksk_unexpected_uncharge(struct ksk_rdm *rdm, struct ksk_peer *peer,
				    size_t bytes)
{
	lockdep_assert_held(&rdm->lock);

	rdm->stored.bytes -= bytes;
	if (peer) {
		peer->unexpected--;
		peer->unexpected_bytes -= bytes;
		if (peer->refused)
			irq_poll_sched(&peer->conn.poll);
		peer->refused = false;
	}
	if (!rdm->stored.full)
		return;
	rdm->stored.full = false;
	list_for_each_entry(peer, &rdm->conns, node) {
		if (peer->refused)
			irq_poll_sched(&peer->conn.poll);
		peer->refused = false;
	}
}

/* Off the lists of the endpoint's, and freed: it waits for nothing, and is not woken. */
static void ksk_unexpected_free(struct ksk_unexpected *u)
{
	struct ksk_rdm *rdm = u->rdm;
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	spin_lock(&rdm->ready.lock);
	list_del(&u->ready);
	spin_unlock(&rdm->ready.lock);
	list_del(&u->node);
	ksk_unexpected_uncharge(rdm, u->peer, ksk_unexpected_size(u));
	spin_unlock_irqrestore(&rdm->lock, irq);
	kfree(u);
}

/**
 * ksk_unexpected_admit - account for storing a message without receive
 * @c: the connection
 * @bytes: bytes of memory; counted until ksk_unexpected_release()
 *
 * Context: locked.
 * Return: false at a limit, and if the address vector does not have the sender; the
 * softirq item runs when the sender is inserted, or as soon as there is room.
 */
bool ksk_unexpected_admit(struct ksk_conn *c, size_t bytes)
{
	struct ksk_peer *peer = ksk_peer(c);

	return ksk_peer_name(peer) != FI_ADDR_NOTAVAIL &&
	       ksk_unexpected_charge(ksk_rdm(c->ep), peer, bytes);
}

/**
 * ksk_unexpected_release - undo ksk_unexpected_admit()
 * @c: the connection
 * @bytes: bytes that were admitted
 *
 * Context: locked.
 */
void ksk_unexpected_release(struct ksk_conn *c, size_t bytes)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	ksk_unexpected_uncharge(rdm, ksk_peer(c), bytes);
	spin_unlock_irqrestore(&rdm->lock, irq);
}

/*
 * Decide whether the stream waits for a consumer that keeps up: its next receives may be
 * for the message. It waits once, as receives for other messages must not hold up the rest
 * of the stream. Earlier stored messages of the peer get the first receives; while they
 * become fewer, the stream waits on. Storing one message for each that is delivered would
 * keep their number forever, and copy all that comes.
 */
static bool ksk_unexpected_hold(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	u64 posts = kofi_rxq_posts(ksk_unexpected_rxq(rdm));
	unsigned long irq;

	/* packets that arrive before the look also come here */
	if (!list_empty_careful(&peer->held))
		return true;
	if (!peer->conn.rx.stalled) {
		if ((s64)(posts - peer->posts) <= 0)
			return false;
	} else if (READ_ONCE(peer->unexpected) >= peer->before) {
		/* the wait was useless: do not repeat it for each such message */
		peer->posts = posts + KSK_UNEXPECTED_COUNT;
		return false;
	}
	peer->posts = posts;
	spin_lock_irqsave(&rdm->lock, irq);
	peer->before = peer->unexpected;
	list_add_tail(&peer->held, &rdm->stored.held);
	spin_unlock_irqrestore(&rdm->lock, irq);
	queue_work(system_bh_wq, &rdm->ready.deliver);
	return true;
}

/* Callbacks are queued as softirqs; items scheduled behind them try again. */
static void ksk_unexpected_look(struct ksk_rdm *rdm)
{
	struct ksk_peer *peer, *next;
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	list_for_each_entry_safe(peer, next, &rdm->stored.held, held) {
		list_del_init(&peer->held);
		irq_poll_sched(&peer->conn.poll);
	}
	spin_unlock_irqrestore(&rdm->lock, irq);
}

static struct ksk_unexpected *ksk_unexpected_new(struct ksk_rdm *rdm,
						 struct ksk_peer *peer,
						 const struct kofi_rxmsg *rxmsg)
{
	struct ksk_unexpected *u;
	struct kvec kv;
	const struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };

	u = kmalloc(struct_size(u, buf, rxmsg->len), ksk_gfp_atomic(&rdm->ep));
	if (!u)
		return NULL;
	u->rdm = rdm;
	u->peer = peer;
	u->addr = peer->base.addr;
	u->whole = false;
	u->woken = false;
	INIT_LIST_HEAD(&u->ready);
	kofi_rxmsg_init(&u->rxmsg, &rdm->ep.base, ksk_unexpected_wake);
	kofi_rxmsg_from(&u->rxmsg, &u->addr.sa);
	u->rxmsg.src = rxmsg->src;
	u->rxmsg.len = rxmsg->len;
	u->rxmsg.tagged = true;
	u->rxmsg.tag = rxmsg->tag;
	u->rxmsg.data = rxmsg->data;
	u->rxmsg.flags = rxmsg->flags;
	u->rxmsg.confirmed = rxmsg->confirmed;
	kv = (struct kvec) { .iov_base = u->buf, .iov_len = rxmsg->len };
	kofi_cursor_init(&u->cur, &msg, ITER_DEST, 1);
	return u;
}

/**
 * ksk_unexpected_store - store the message that has begun
 * @c: the connection, with a message that waits for a receive
 * @op: the receive, if there is one after all
 *
 * Context: locked.
 * Return: 0 if the stream can go on: with @op, or if that is NULL with
 * c->rx.unexpected, or with neither; otherwise as kofi_rxq_match().
 */
int ksk_unexpected_store(struct ksk_conn *c, struct kofi_rxop **op)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *peer = ksk_peer(c);
	struct kofi_rxmsg *rxmsg = &c->rxmsg;
	struct ksk_unexpected *u;
	size_t bytes = struct_size(u, buf, rxmsg->len);
	bool named = false;
	unsigned long irq;

	if (!rxmsg->tagged || rxmsg->len > KSK_UNEXPECTED_LEN ||
	    ksk_unexpected_hold(rdm, peer) || !ksk_unexpected_admit(c, bytes))
		return -EAGAIN;
	u = ksk_unexpected_new(rdm, peer, rxmsg);
	spin_lock_irqsave(&rdm->lock, irq);
	if (u) {
		/* from now on, the removal of an address finds the message in the list */
		if (rxmsg->src != FI_ADDR_NOTAVAIL)
			u->rxmsg.src = ksk_peer_name(peer);
		named = u->rxmsg.src != FI_ADDR_NOTAVAIL;
		list_add_tail(&u->node, &rdm->stored.list);
	} else {
		ksk_unexpected_uncharge(rdm, peer, bytes);
	}
	spin_unlock_irqrestore(&rdm->lock, irq);
	if (!u) {
		set_bit(KSK_CONN_MEMORY, &c->flags);
		mod_timer(&c->retry, jiffies + msecs_to_jiffies(5));
		return -EAGAIN;
	}
	if (!kofi_rxq_hand(ksk_unexpected_rxq(rdm), rxmsg, &u->rxmsg)) {
		/* its receive was posted concurrently, or it has waited too long */
		ksk_unexpected_free(u);
		return kofi_rxq_match(ksk_unexpected_rxq(rdm), rxmsg, op);
	}
	/*
	 * The sender may have been inserted since it was looked up. If that named the record
	 * before the record waited, it has not looked for a receive.
	 */
	if (!named)
		ksk_rdm_rename(c, &u->rxmsg);
	c->rx.unexpected = u;
	ksk_stat_inc(&c->stats.rx_unexpected);
	return 0;
}

/**
 * ksk_unexpected_cursor - where the bytes of a stored message go
 * @u: the message
 *
 * Context: locked.
 * Return: the cursor.
 */
struct kofi_cursor *ksk_unexpected_cursor(struct ksk_unexpected *u)
{
	return &u->cur;
}

/**
 * ksk_unexpected_whole - note that the last byte of a stored message has arrived
 * @u: the message
 *
 * Context: locked.
 * Return: 0: the endpoint owns the message from now on, and it can be acknowledged; or
 * -ECONNABORTED: it cannot, and the stream must be closed within it.
 */
int ksk_unexpected_whole(struct ksk_unexpected *u)
{
	int err = kofi_rxq_confirm(ksk_unexpected_rxq(u->rdm), &u->rxmsg);

	if (!err)
		ksk_unexpected_step(u, &u->whole);
	return err;
}

/**
 * ksk_unexpected_cut - free a stored message that the closed stream left incomplete
 * @u: the message
 *
 * Context: process; locked.
 */
void ksk_unexpected_cut(struct ksk_unexpected *u)
{
	kofi_rxq_forget(ksk_unexpected_rxq(u->rdm), &u->rxmsg);
	ksk_unexpected_free(u);
}

/* ----------------------------------------------------------------- delivering */

static void ksk_unexpected_copy(const struct ksk_unexpected *u,
				struct kofi_rxop *op)
{
	kofi_cursor_write(&op->cur, u->buf, u->rxmsg.len);
	kofi_rxq_received(ksk_unexpected_rxq(u->rdm), &u->rxmsg, op);
}

/* Deliver a message that is complete and has been woken, if it gets its receive. */
static void ksk_unexpected_try(struct ksk_unexpected *u)
{
	struct kofi_rxop *op;

	/* if it waits again, the next wake-up queues it */
	if (kofi_rxq_match(ksk_unexpected_rxq(u->rdm), &u->rxmsg, &op))
		return;
	/* discarded otherwise */
	if (op)
		ksk_unexpected_copy(u, op);
	ksk_unexpected_free(u);
}

static void ksk_unexpected_deliver(struct work_struct *work)
{
	struct ksk_rdm *rdm = container_of(work, struct ksk_rdm, ready.deliver);
	struct ksk_unexpected *u;
	LIST_HEAD(list);
	bool closing;

	spin_lock_irq(&rdm->lock);
	closing = rdm->state == KSK_RDM_CLOSING;
	spin_unlock_irq(&rdm->lock);
	/* all are forgotten */
	if (closing)
		return;
	spin_lock_irq(&rdm->ready.lock);
	/* messages that are woken from now on queue this again */
	list_splice_init(&rdm->ready.list, &list);
	while (!list_empty(&list)) {
		u = list_first_entry(&list, struct ksk_unexpected, ready);
		list_del_init(&u->ready);
		spin_unlock_irq(&rdm->ready.lock);
		ksk_unexpected_try(u);
		spin_lock_irq(&rdm->ready.lock);
	}
	spin_unlock_irq(&rdm->ready.lock);
	ksk_unexpected_look(rdm);
}

/* ------------------------------------------------------------------------ life */

/**
 * ksk_unexpected_leave - detach stored messages from a closed connection
 * @rdm: the endpoint, with its lock held
 * @peer: the connection; its complete messages stay
 *
 * Context: any.
 */
void ksk_unexpected_leave(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	struct ksk_unexpected *u;

	lockdep_assert_held(&rdm->lock);

	if (!peer->unexpected)
		return;
	/* the rest of the count are announcements, which are freed with the connection */
	list_for_each_entry(u, &rdm->stored.list, node) {
		if (u->peer != peer)
			continue;
		u->peer = NULL;
		peer->unexpected--;
		peer->unexpected_bytes -= ksk_unexpected_size(u);
	}
}

/**
 * ksk_unexpected_join - pass stored messages of closed connections to a new one
 * @rdm: the endpoint, with its lock held
 * @peer: the new connection; messages that earlier ones left count for it
 *
 * Context: any.
 */
void ksk_unexpected_join(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	struct ksk_unexpected *u;

	lockdep_assert_held(&rdm->lock);

	list_for_each_entry(u, &rdm->stored.list, node) {
		if (u->peer || memcmp(&u->addr, &peer->base.addr, sizeof(u->addr)))
			continue;
		u->peer = peer;
		peer->unexpected++;
		peer->unexpected_bytes += ksk_unexpected_size(u);
	}
}

/**
 * ksk_unexpected_disown - note that an address is no longer in the vector
 * @rdm: the endpoint, with its lock held
 * @addr: the address; messages from there have no source from now on
 *
 * Context: any.
 */
void ksk_unexpected_disown(struct ksk_rdm *rdm, const union kofi_ip *addr)
{
	struct kofi_rxq *q = ksk_unexpected_rxq(rdm);
	struct ksk_unexpected *u;
	struct ksk_peer *peer;
	unsigned long irq;

	lockdep_assert_held(&rdm->lock);

	/* a connection to ourselves goes on at its accepted side */
	list_for_each_entry(peer, &rdm->conns, node)
		if (!memcmp(&peer->base.addr, addr, sizeof(*addr)))
			WRITE_ONCE(peer->disowned, true);
	list_for_each_entry(u, &rdm->stored.list, node) {
		if (memcmp(&u->addr, addr, sizeof(u->addr)))
			continue;
		spin_lock_irqsave(&q->lock, irq);
		u->rxmsg.src = FI_ADDR_NOTAVAIL;
		spin_unlock_irqrestore(&q->lock, irq);
	}
}

/**
 * ksk_unexpected_own - name the senders of stored messages after addresses were inserted
 * @rdm: the endpoint, with its lock held
 *
 * Context: any.
 */
void ksk_unexpected_own(struct ksk_rdm *rdm)
{
	const struct kofi_ep *ep = &rdm->ep.base;
	const struct ksk_unexpected *last = NULL;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	struct ksk_unexpected *u;

	lockdep_assert_held(&rdm->lock);

	if (!(ep->info->caps & (FI_SOURCE | FI_DIRECTED_RECV)))
		return;
	list_for_each_entry(u, &rdm->stored.list, node) {
		if (u->rxmsg.src != FI_ADDR_NOTAVAIL)
			continue;
		/* one peer may have many messages: look its address up once */
		if (!last || memcmp(&u->addr, &last->addr, sizeof(u->addr)))
			src = kofi_av_source(ep->av, &u->addr.sa);
		last = u;
		if (src != FI_ADDR_NOTAVAIL)
			kofi_rxq_rename(ksk_unexpected_rxq(rdm), &u->rxmsg,
					src);
	}
}

/**
 * ksk_unexpected_drain - forget all stored messages
 * @rdm: an endpoint that is being closed, with all connections closed
 *
 * Context: process, may sleep.
 */
void ksk_unexpected_drain(struct ksk_rdm *rdm)
{
	struct ksk_unexpected *u, *next;

	/* a run from now on does nothing */
	cancel_work_sync(&rdm->ready.deliver);
	list_for_each_entry(u, &rdm->stored.list, node)
		kofi_rxq_forget(ksk_unexpected_rxq(rdm), &u->rxmsg);
	cancel_work_sync(&rdm->ready.deliver);
	list_for_each_entry_safe(u, next, &rdm->stored.list, node)
		ksk_unexpected_free(u);
}

void ksk_unexpected_init(struct ksk_rdm *rdm)
{
	INIT_LIST_HEAD(&rdm->stored.list);
	INIT_LIST_HEAD(&rdm->stored.held);
	INIT_LIST_HEAD(&rdm->ready.list);
	spin_lock_init(&rdm->ready.lock);
	INIT_WORK(&rdm->ready.deliver, ksk_unexpected_deliver);
}
