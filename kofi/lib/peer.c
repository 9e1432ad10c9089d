// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers of an unconnected endpoint.
 *
 * Tables
 *
 * A peer is found by its address, by its number and by its fi_addr_t. Statistics use the
 * numbers, and a protocol may. Posts use the fi_addr_t, since a look-up by address takes
 * some hundred instructions: the address vector, then a hash table.
 *
 * An entry by fi_addr_t is valid for one state of the vector: after a change, posts look
 * the address up again. So a number that is removed, and perhaps reused for another
 * address, finds no state of the earlier peer.
 *
 * Locks
 *
 * Readers are RCU readers, and peers are freed after a grace period. The provider
 * serialises changes.
 */
#include <linux/bitops.h>

#include <linux/kofi/peer.h>

#include "../av.h"

static const struct rhashtable_params kofi_peers_hash = {
	.key_len		= sizeof_field(struct kofi_peer, addr),
	.key_offset		= offsetof(struct kofi_peer, addr),
	.head_offset		= offsetof(struct kofi_peer, node),
	.automatic_shrinking	= true,
};

/* ------------------------------------------------------------------ tables */

/**
 * kofi_peers_init - initialise tables without peers
 * @peers: peers of an endpoint that is being opened
 * @ep: the endpoint, perhaps before kofi_ep_init()
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kofi_peers_init(struct kofi_peers *peers, struct kofi_ep *ep)
{
	peers->ep = ep;
	peers->last = 0;
	atomic_set(&peers->waiting, 0);
	/* changes happen with interrupts off */
	xa_init_flags(&peers->numbers, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&peers->dests, XA_FLAGS_LOCK_IRQ);
	return rhashtable_init(&peers->hash, &kofi_peers_hash);
}
EXPORT_SYMBOL_GPL(kofi_peers_init);

static void kofi_peers_left(void *peer, void *arg)
{
}

/**
 * kofi_peers_exit - free the tables
 * @peers: peers of an endpoint that is being freed; the provider frees the peers
 *
 * Context: process, may sleep.
 */
void kofi_peers_exit(struct kofi_peers *peers)
{
	rhashtable_free_and_destroy(&peers->hash, kofi_peers_left, NULL);
	xa_destroy(&peers->numbers);
	xa_destroy(&peers->dests);
}
EXPORT_SYMBOL_GPL(kofi_peers_exit);

/**
 * kofi_peers_find - look up a peer by its address
 * @peers: peers of the endpoint
 * @addr: address in the form of kofi_ip_peer()
 *
 * Context: any, as an RCU reader or with the provider's lock.
 * Return: the peer, or NULL.
 */
struct kofi_peer *kofi_peers_find(struct kofi_peers *peers,
				  const union kofi_ip *addr)
{
	return rhashtable_lookup_fast(&peers->hash, addr, kofi_peers_hash);
}
EXPORT_SYMBOL_GPL(kofi_peers_find);

/**
 * kofi_peers_next - look up the peer with the lowest number in a range
 * @peers: peers of the endpoint
 * @number: in: first number of the range; out: number of the peer
 *
 * Context: any, as an RCU reader or with the provider's lock.
 * Return: the peer, or NULL.
 */
struct kofi_peer *kofi_peers_next(struct kofi_peers *peers, u32 *number)
{
	unsigned long index = *number;
	struct kofi_peer *peer;

	peer = xa_find(&peers->numbers, &index, ULONG_MAX, XA_PRESENT);
	*number = index;
	return peer;
}
EXPORT_SYMBOL_GPL(kofi_peers_next);

/**
 * kofi_peers_add_hidden - assign a number to a peer that posts do not use
 * @peers: peers of the endpoint
 * @peer: the peer, with its address
 * @gfp: flags for allocations. If interrupts are off, these must not sleep
 *
 * Context: the provider's lock.
 * Return: 0, -ENOMEM, or -EBUSY if no number is free.
 */
int kofi_peers_add_hidden(struct kofi_peers *peers, struct kofi_peer *peer,
			  gfp_t gfp)
{
	unsigned long irq;
	int err;

	xa_lock_irqsave(&peers->numbers, irq);
	err = __xa_alloc_cyclic(&peers->numbers, &peer->number, peer,
				XA_LIMIT(1, INT_MAX), &peers->last, gfp);
	xa_unlock_irqrestore(&peers->numbers, irq);
	return min(err, 0);
}
EXPORT_SYMBOL_GPL(kofi_peers_add_hidden);

/**
 * kofi_peers_del_hidden - free the number of a peer that posts do not use
 * @peers: peers of the endpoint
 * @peer: the peer
 *
 * Context: the provider's lock.
 */
void kofi_peers_del_hidden(struct kofi_peers *peers, struct kofi_peer *peer)
{
	unsigned long irq;

	xa_lock_irqsave(&peers->numbers, irq);
	__xa_erase(&peers->numbers, peer->number);
	xa_unlock_irqrestore(&peers->numbers, irq);
}
EXPORT_SYMBOL_GPL(kofi_peers_del_hidden);

/**
 * kofi_peers_add - add a peer for posts
 * @peers: peers of the endpoint
 * @peer: the peer, with an address that no other one has
 * @gfp: flags for allocations, as for kofi_peers_add_hidden()
 *
 * Context: the provider's lock.
 * Return: 0, -ENOMEM, or -EBUSY if no number is free. After an error an RCU reader may
 * still have the peer by its number.
 */
int kofi_peers_add(struct kofi_peers *peers, struct kofi_peer *peer, gfp_t gfp)
{
	int err;

	err = kofi_peers_add_hidden(peers, peer, gfp);
	if (err)
		return err;
	err = rhashtable_insert_fast(&peers->hash, &peer->node, kofi_peers_hash);
	if (err)
		kofi_peers_del_hidden(peers, peer);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_peers_add);

/**
 * kofi_peers_replace - pass address and number of a peer to another record
 * @peers: peers of the endpoint
 * @old: the current record
 * @peer: the record for posts from now on, with an equal address
 *
 * Allocates nothing, so it cannot fail.
 *
 * Context: the provider's lock.
 */
void kofi_peers_replace(struct kofi_peers *peers, struct kofi_peer *old,
			struct kofi_peer *peer)
{
	unsigned long irq;

	kofi_peers_del_dest(peers, old);
	rhashtable_replace_fast(&peers->hash, &old->node, &peer->node,
				kofi_peers_hash);
	peer->number = old->number;
	xa_lock_irqsave(&peers->numbers, irq);
	__xa_store(&peers->numbers, peer->number, peer, GFP_ATOMIC);
	xa_unlock_irqrestore(&peers->numbers, irq);
}
EXPORT_SYMBOL_GPL(kofi_peers_replace);

/**
 * kofi_peers_del - remove a peer
 * @peers: peers of the endpoint
 * @peer: the peer; posts that have found it continue as RCU readers
 *
 * Context: the provider's lock.
 */
void kofi_peers_del(struct kofi_peers *peers, struct kofi_peer *peer)
{
	kofi_peers_del_dest(peers, peer);
	rhashtable_remove_fast(&peers->hash, &peer->node, kofi_peers_hash);
	kofi_peers_del_hidden(peers, peer);
}
EXPORT_SYMBOL_GPL(kofi_peers_del);

/* --------------------------------------------------------------- fi_addr_t */

/* The bits that name a receive context come last, so that numbers stay dense. */
static unsigned long kofi_peers_index(const struct kofi_av *av,
				      fi_addr_t fi_addr)
{
	return rol64(fi_addr, av->ctx_bits);
}

/**
 * kofi_peers_dest - look up a peer by its fi_addr_t
 * @peers: peers of the endpoint, which has an address vector
 * @fi_addr: the number in the vector, perhaps with the index of a receive context
 *
 * Context: any, as an RCU reader, which keeps the result.
 * Return: the peer, if a post has set it since the last change of the vector, or NULL.
 */
struct kofi_peer *kofi_peers_dest(struct kofi_peers *peers, fi_addr_t fi_addr)
{
	struct kofi_av *av = peers->ep->av;
	struct kofi_peer *peer;

	peer = xa_load(&peers->dests, kofi_peers_index(av, fi_addr));
	/* pairs with kofi_av_changed(); posts cannot take the vector's mutex */
	return peer && READ_ONCE(peer->changes) == smp_load_acquire(&av->changes) ?
	       peer : NULL;
}
EXPORT_SYMBOL_GPL(kofi_peers_dest);

/**
 * kofi_peers_changes - read the state of the address vector
 * @peers: peers of the endpoint
 *
 * Context: any, before kofi_av_get().
 * Return: argument @changes of kofi_peers_renew() and kofi_peers_set_dest().
 */
unsigned long kofi_peers_changes(const struct kofi_peers *peers)
{
	/* pairs with kofi_av_changed(): the look-up is not older; no mutex, as above */
	return smp_load_acquire(&peers->ep->av->changes);
}
EXPORT_SYMBOL_GPL(kofi_peers_changes);

/**
 * kofi_peers_renew - renew the fi_addr_t of a peer after a change of the vector
 * @peers: peers of the endpoint
 * @peer: the peer
 * @fi_addr: fi_addr_t of the look-up
 * @changes: state of the vector at the look-up
 *
 * Context: any.
 * Return: false if the peer has none, and kofi_peers_set_dest() must follow.
 */
bool kofi_peers_renew(struct kofi_peers *peers, struct kofi_peer *peer,
		      fi_addr_t fi_addr, unsigned long changes)
{
	/* pairs with kofi_peers_set_dest(); posts share no lock with the connection */
	if (!smp_load_acquire(&peer->changes))
		return false;
	/* another fi_addr_t of the peer takes a look-up each time */
	if (peer->index == kofi_peers_index(peers->ep->av, fi_addr))
		WRITE_ONCE(peer->changes, changes);
	return true;
}
EXPORT_SYMBOL_GPL(kofi_peers_renew);

/**
 * kofi_peers_set_dest - let posts find a peer by its fi_addr_t
 * @peers: peers of the endpoint
 * @peer: the peer
 * @fi_addr: fi_addr_t of the look-up
 * @changes: state of the vector at the look-up
 *
 * Without memory, posts continue to look the peer up by address.
 *
 * Context: any, never concurrently, and not after kofi_peers_del_dest().
 */
void kofi_peers_set_dest(struct kofi_peers *peers, struct kofi_peer *peer,
			 fi_addr_t fi_addr, unsigned long changes)
{
	unsigned long index = kofi_peers_index(peers->ep->av, fi_addr);
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN | __GFP_NOMEMALLOC;
	unsigned long irq;
	int err;

	if (peer->changes)
		return;
	/* the entry of an earlier peer with this fi_addr_t counts as empty */
	xa_lock_irqsave(&peers->dests, irq);
	err = xa_err(__xa_store(&peers->dests, index, peer, gfp));
	xa_unlock_irqrestore(&peers->dests, irq);
	if (err)
		return;
	peer->index = index;
	/* @index, before a post reads it in kofi_peers_renew(), without a lock */
	smp_store_release(&peer->changes, changes);
}
EXPORT_SYMBOL_GPL(kofi_peers_set_dest);

/**
 * kofi_peers_del_dest - remove the fi_addr_t of a peer
 * @peers: peers of the endpoint
 * @peer: the peer; posts that have found it continue as RCU readers
 *
 * Context: as kofi_peers_set_dest().
 */
void kofi_peers_del_dest(struct kofi_peers *peers, struct kofi_peer *peer)
{
	unsigned long irq;

	if (!peer->changes)
		return;
	xa_lock_irqsave(&peers->dests, irq);
	__xa_cmpxchg(&peers->dests, peer->index, peer, NULL, GFP_ATOMIC);
	xa_unlock_irqrestore(&peers->dests, irq);
}
EXPORT_SYMBOL_GPL(kofi_peers_del_dest);

/* ---------------------------------------------------------------- requests */

/**
 * kofi_peer_addr - address of a peer that states its port
 * @from: address from which the peer connects, with any port
 * @port: port at which the peer listens
 * @addr: receives the address, in the form of kofi_ip_peer()
 *
 * Context: any.
 * Return: 0, or an error of kofi_ip_peer().
 */
int kofi_peer_addr(const struct sockaddr_storage *from, __be16 port,
		   union kofi_ip *addr)
{
	struct sockaddr_storage ss = *from;

	*kofi_ip_port((struct sockaddr *)&ss) = port;
	return kofi_ip_peer(&ss, sizeof(ss), addr);
}
EXPORT_SYMBOL_GPL(kofi_peer_addr);

/**
 * kofi_peer_compare - compare the addresses of two endpoints that connect to each other
 * @a: an address
 * @b: another address
 *
 * Compares the host in network order, then the port. The request of the higher address is
 * accepted.
 *
 * Context: any.
 * Return: less than, equal to or greater than 0.
 */
int kofi_peer_compare(const union kofi_ip *a, const union kofi_ip *b)
{
	int diff = a->sa.sa_family - b->sa.sa_family;

	if (diff)
		return diff;
	if (a->sa.sa_family == AF_INET6)
		diff = memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
			      sizeof(a->in6.sin6_addr));
	else
		diff = memcmp(&a->in4.sin_addr, &b->in4.sin_addr,
			      sizeof(a->in4.sin_addr));
	/* both families have the port at the same place */
	return diff ?: memcmp(&a->in4.sin_port, &b->in4.sin_port,
			      sizeof(a->in4.sin_port));
}
EXPORT_SYMBOL_GPL(kofi_peer_compare);
