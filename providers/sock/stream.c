// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints of type FI_EP_RDM, as their streams see them: the source of messages,
 * deferred posts, and the number of streams.
 */
#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <kunit/static_stub.h>
#include <kunit/visibility.h>

#include "rdm.h"

/* Streams of an endpoint with more of them share the pages that they copy to. */
#define KSK_FEW_PEERS	64

/**
 * ksk_rdm_crowded - test whether an endpoint has many connections
 * @ep: the endpoint, of type FI_EP_RDM
 *
 * Context: any.
 * Return: true if it has.
 */
bool ksk_rdm_crowded(struct ksk_ep *ep)
{
	return kofi_peers_count(&ksk_rdm(ep)->peers) > KSK_FEW_PEERS;
}

/**
 * ksk_rdm_deferred - list a connection after a post on it has been deferred
 * @c: the connection, with an RCU reader that keeps it
 *
 * Context: softirq.
 */
void ksk_rdm_deferred(struct ksk_conn *c)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	struct ksk_peer *peer = ksk_peer(c);
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	/* a terminated peer has completed its deferred operations */
	if (list_empty(&peer->deferred) && peer->base.phase != KOFI_PEER_DEAD)
		list_add_tail(&peer->deferred, &rdm->deferred);
	spin_unlock_irqrestore(&rdm->lock, irq);
}

/**
 * ksk_peer_name - look up a peer in the address vector
 * @peer: the peer
 *
 * If the vector lacks the peer, its waiting messages are checked after an insertion.
 *
 * Context: any.
 * Return: as kofi_av_source().
 */
fi_addr_t ksk_peer_name(struct ksk_peer *peer)
{
	struct kofi_av *av = peer->conn.ep->base.av;
	fi_addr_t name = kofi_av_recall(av, &peer->base.addr.sa, &peer->known);

	if (likely(name != FI_ADDR_NOTAVAIL))
		return name;
	WRITE_ONCE(peer->unnamed, true);
	/*
	 * Order the mark before another look-up; pairs with kofi_av_added(). No lock: a
	 * caller may hold ksk_rdm.lock, or not.
	 */
	smp_mb();
	return kofi_av_recall(av, &peer->base.addr.sa, &peer->known);
}

/* Adopt the waiting messages of a peer that is in the address vector again. */
static noinline void ksk_rdm_own(struct ksk_peer *peer)
{
	struct ksk_rdm *rdm = ksk_rdm(peer->conn.ep);
	unsigned long irq;

	spin_lock_irqsave(&rdm->lock, irq);
	WRITE_ONCE(peer->disowned, false);
	if (rdm->state != KSK_RDM_CLOSING)
		ksk_unexpected_own(rdm);
	spin_unlock_irqrestore(&rdm->lock, irq);
}

/**
 * ksk_rdm_source - source of messages of a connection
 * @c: the connection, of an endpoint of type FI_EP_RDM
 *
 * Context: locked.
 * Return: as kofi_av_source().
 */
fi_addr_t ksk_rdm_source(struct ksk_conn *c)
{
	const struct kofi_ep *ep = &c->ep->base;
	struct ksk_peer *peer = ksk_peer(c);
	fi_addr_t name;

	KUNIT_STATIC_STUB_REDIRECT(ksk_rdm_source, c);
	if (!(ep->info->caps & (FI_SOURCE | FI_DIRECTED_RECV)))
		return FI_ADDR_NOTAVAIL;
	name = ksk_peer_name(peer);
	if (unlikely(READ_ONCE(peer->disowned)) && name != FI_ADDR_NOTAVAIL)
		ksk_rdm_own(peer);
	return name;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_source);

/**
 * ksk_rdm_rename - look up the sender of a message again
 * @c: connection of the message, of an endpoint of type FI_EP_RDM
 * @rxmsg: the message, which gets the source of its sender if the vector has it
 *
 * Context: locked.
 */
void ksk_rdm_rename(struct ksk_conn *c, struct kofi_rxmsg *rxmsg)
{
	struct ksk_rdm *rdm = ksk_rdm(c->ep);
	unsigned long irq;
	fi_addr_t src;

	if (ksk_rdm_source(c) == FI_ADDR_NOTAVAIL)
		return;
	/* a removal takes the lock afterwards: the message is not named too late */
	spin_lock_irqsave(&rdm->lock, irq);
	src = ksk_peer_name(ksk_peer(c));
	if (src != FI_ADDR_NOTAVAIL)
		kofi_rxq_rename(kofi_ep_rxq(&c->ep->base, &c->ep->rxq), rxmsg,
				src);
	spin_unlock_irqrestore(&rdm->lock, irq);
}
