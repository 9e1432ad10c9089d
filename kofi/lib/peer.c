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
 * Unknown peers
 *
 * Peers that the address vector lacks may connect, too. Their number is limited, and so is
 * the part that one address has, or one IPv6 network of 64 bits: a host has all
 * addresses of its network. Link-local addresses, and their network, count for each link.
 *
 * Locks
 *
 * Readers are RCU readers, and peers are freed after a grace period. The provider
 * serialises changes.
 */
#include <linux/bitops.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include <linux/kofi/peer.h>

#include "../av.h"

static const struct rhashtable_params kofi_peers_hash = {
	.key_len		= sizeof_field(struct kofi_peer, addr),
	.key_offset		= offsetof(struct kofi_peer, addr),
	.head_offset		= offsetof(struct kofi_peer, node),
	.automatic_shrinking	= true,
};

/**
 * struct kofi_share_key - address or network of unknown peers; no padding
 * @addr: address or prefix; IPv4 addresses are mapped
 * @scope: interface of an address that is valid on one link
 * @bits: length of the prefix, 128 for an address
 */
struct kofi_share_key {
	struct in6_addr		addr;
	u32			scope;
	u32			bits;
};

/**
 * struct kofi_share - number of unknown peers at one address, or in one network
 * @key: the address or network
 * @node: entry of kofi_peers.shares
 * @n: number of peers; the share is freed at 0
 */
struct kofi_share {
	struct kofi_share_key	key;
	struct rhash_head	node;
	unsigned int		n;
};

static const struct rhashtable_params kofi_shares_hash = {
	.key_len		= sizeof_field(struct kofi_share, key),
	.key_offset		= offsetof(struct kofi_share, key),
	.head_offset		= offsetof(struct kofi_share, node),
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
	int err;

	peers->ep = ep;
	peers->last = 0;
	peers->unknown = 0;
	atomic_set(&peers->waiting, 0);
	/* changes happen with interrupts off */
	xa_init_flags(&peers->numbers, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&peers->dests, XA_FLAGS_LOCK_IRQ);
	err = rhashtable_init(&peers->hash, &kofi_peers_hash);
	if (err)
		return err;
	err = rhashtable_init(&peers->shares, &kofi_shares_hash);
	if (err)
		rhashtable_destroy(&peers->hash);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_peers_init);

static void kofi_peers_left(void *peer, void *arg)
{
}

static void kofi_share_free(void *share, void *arg)
{
	kfree(share);
}

/**
 * kofi_peers_exit - free the tables
 * @peers: peers of an endpoint that is being freed
 *
 * The provider removes peers before, or frees them afterwards. Peers may still be counted,
 * but kofi_peers_dismiss() must not follow.
 *
 * Context: process, may sleep.
 */
void kofi_peers_exit(struct kofi_peers *peers)
{
	rhashtable_free_and_destroy(&peers->hash, kofi_peers_left, NULL);
	rhashtable_free_and_destroy(&peers->shares, kofi_share_free, NULL);
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

/**
 * kofi_peer_judge - decide on a connect request of a peer
 * @old: the peer's current record or connection, or NULL
 * @diff: kofi_peer_compare() of the peer's address with our address
 * @life: number of the peer's life in the request
 *
 * If both peers connect to each other, the request of the higher address is accepted, and
 * the other one is rejected. Before our request has been sent, the peer cannot accept it,
 * so the peer's request is accepted: packets of our attempt may be dropped on the way.
 *
 * Context: the lock under which the phase of @old changes, but to KOFI_PEER_WANTED.
 * Return: the decision.
 */
enum kofi_peer_verdict kofi_peer_judge(const struct kofi_peer *old, int diff,
				       u32 life)
{
	/* a post may move an idle peer to KOFI_PEER_WANTED concurrently */
	switch (old ? kofi_peer_get_phase(old) : KOFI_PEER_IDLE) {
	case KOFI_PEER_CONNECTING:
		return KOFI_PEER_REPLACE;
	case KOFI_PEER_REQUESTING:
		return diff < 0 ? KOFI_PEER_CROSSED : KOFI_PEER_REPLACE;
	case KOFI_PEER_ACCEPTING:
	case KOFI_PEER_CONNECTED:
		return old->life == life ? KOFI_PEER_PRESENT :
					   KOFI_PEER_RESTARTED;
	default:
		return KOFI_PEER_ACCEPT;
	}
}
EXPORT_SYMBOL_GPL(kofi_peer_judge);

/**
 * kofi_peer_new_life - number for the life of an endpoint
 *
 * Peers tell an endpoint by it from earlier ones at its address.
 *
 * Context: any.
 * Return: a random number, not 0.
 */
u32 kofi_peer_new_life(void)
{
	u32 life;

	do {
		life = get_random_u32();
	} while (!life);
	return life;
}
EXPORT_SYMBOL_GPL(kofi_peer_new_life);

/* ------------------------------------------------------------------ phases */

#define KOFI_PEER_BIT(phase)	BIT(KOFI_PEER_##phase)

/* Legal transitions of either provider: from each phase, the phases that may follow */
static const u16 kofi_peer_steps[] = {
	[KOFI_PEER_NEW]		= KOFI_PEER_BIT(IDLE) | KOFI_PEER_BIT(WANTED) |
				  KOFI_PEER_BIT(CONNECTING) |
				  KOFI_PEER_BIT(ACCEPTING),
	[KOFI_PEER_IDLE]	= KOFI_PEER_BIT(NEW) | KOFI_PEER_BIT(WANTED) |
				  KOFI_PEER_BIT(ACCEPTING) |
				  KOFI_PEER_BIT(CLOSING),
	[KOFI_PEER_WANTED]	= KOFI_PEER_BIT(REQUESTING) |
				  KOFI_PEER_BIT(ACCEPTING) |
				  KOFI_PEER_BIT(CLOSING),
	[KOFI_PEER_WAITING]	= KOFI_PEER_BIT(WANTED) |
				  KOFI_PEER_BIT(ACCEPTING) |
				  KOFI_PEER_BIT(CLOSING),
	[KOFI_PEER_CONNECTING]	= KOFI_PEER_BIT(REQUESTING) |
				  KOFI_PEER_BIT(DEAD),
	[KOFI_PEER_REQUESTING]	= KOFI_PEER_BIT(CONNECTED) |
				  KOFI_PEER_BIT(CLOSING) |
				  KOFI_PEER_BIT(DEAD),
	[KOFI_PEER_ACCEPTING]	= KOFI_PEER_BIT(CONNECTED) |
				  KOFI_PEER_BIT(CLOSING) |
				  KOFI_PEER_BIT(DEAD),
	[KOFI_PEER_CONNECTED]	= KOFI_PEER_BIT(CLOSING) | KOFI_PEER_BIT(DEAD),
	[KOFI_PEER_CLOSING]	= KOFI_PEER_BIT(IDLE) | KOFI_PEER_BIT(WAITING) |
				  KOFI_PEER_BIT(ACCEPTING) |
				  KOFI_PEER_BIT(CLOSING) | KOFI_PEER_BIT(DEAD),
	[KOFI_PEER_DEAD]	= 0,
};

/**
 * kofi_peer_step - change the phase of a peer
 * @peer: the peer
 * @to: the new phase
 *
 * Warns about a transition that is not legal.
 *
 * Context: any, with the provider's lock for phases.
 */
void kofi_peer_step(struct kofi_peer *peer, enum kofi_peer_phase to)
{
	WARN_ONCE(!(kofi_peer_steps[peer->phase] & BIT(to)),
		  "peer: illegal step from %d to %d\n", peer->phase, to);
	/* pairs with kofi_peer_get_phase() */
	smp_store_release(&peer->phase, to);
}
EXPORT_SYMBOL_GPL(kofi_peer_step);

/**
 * kofi_peer_ep_state - phase of a peer, as statistics show it
 * @peer: the peer
 *
 * Context: any.
 * Return: the state.
 */
enum kofi_ep_state kofi_peer_ep_state(const struct kofi_peer *peer)
{
	switch (kofi_peer_get_phase(peer)) {
	case KOFI_PEER_NEW:
	case KOFI_PEER_IDLE:
		return KOFI_EP_IDLE;
	case KOFI_PEER_CONNECTED:
		return KOFI_EP_CONNECTED;
	case KOFI_PEER_CLOSING:
	case KOFI_PEER_DEAD:
		return KOFI_EP_SHUTDOWN;
	default:
		return KOFI_EP_CONNECTING;
	}
}
EXPORT_SYMBOL_GPL(kofi_peer_ep_state);

/* ----------------------------------------------------------- unknown peers */

/* Fill in the address and the network of a peer. Returns the number of keys. */
static int kofi_share_keys(const union kofi_ip *addr,
			   struct kofi_share_key key[KOFI_SHARES])
{
	const struct in6_addr *in6 = &addr->in6.sin6_addr;
	int type;

	memset(key, 0, KOFI_SHARES * sizeof(*key));
	key[0].bits = 128;
	if (addr->sa.sa_family == AF_INET) {
		ipv6_addr_set_v4mapped(addr->in4.sin_addr.s_addr, &key[0].addr);
		return 1;
	}
	key[0].addr = *in6;
	/* kofi_ip_peer() sets it for addresses that are valid on one link */
	key[0].scope = addr->in6.sin6_scope_id;
	type = ipv6_addr_type(in6);
	if (!(type & IPV6_ADDR_UNICAST) ||
	    type & (IPV6_ADDR_LOOPBACK | IPV6_ADDR_MAPPED))
		return 1;
	ipv6_addr_prefix(&key[1].addr, in6, 64);
	key[1].scope = key[0].scope;
	key[1].bits = 64;
	return 2;
}

static struct kofi_share *kofi_share_get(struct kofi_peers *peers,
					 const struct kofi_share_key *key,
					 gfp_t gfp)
{
	struct kofi_share *share;

	share = rhashtable_lookup_fast(&peers->shares, key, kofi_shares_hash);
	if (share) {
		share->n++;
		return share;
	}
	share = kzalloc(sizeof(*share), gfp | __GFP_NOWARN);
	if (!share)
		return NULL;
	share->key = *key;
	share->n = 1;
	if (!rhashtable_insert_fast(&peers->shares, &share->node,
				    kofi_shares_hash))
		return share;
	kfree(share);
	return NULL;
}

static void kofi_share_put(struct kofi_peers *peers, struct kofi_share *share)
{
	if (--share->n)
		return;
	rhashtable_remove_fast(&peers->shares, &share->node, kofi_shares_hash);
	/* all look-ups hold the provider's lock */
	kfree(share);
}

static unsigned int kofi_share_max(const struct kofi_share *share,
				   const struct kofi_unknown_max *max)
{
	unsigned int part = share->key.bits == 64 ? max->net : max->host;

	return DIV_ROUND_UP(max->all * part, 100);
}

/**
 * kofi_peers_admit - test whether a peer may connect, and count an unknown one
 * @peers: peers of the endpoint
 * @peer: the peer, with its address, and not counted. kofi_peers_dismiss() must follow if it
 *	is not added, and when it is removed
 * @max: limits of unknown peers
 * @gfp: flags for allocations. If interrupts are off, these must not sleep
 *
 * Context: the provider's lock, which kofi_peers_recount() needs, too: an insertion of
 * addresses recounts only peers that are counted before.
 * Return: 0; -EUSERS if an unknown peer exceeds a limit; -ENOMEM.
 */
int kofi_peers_admit(struct kofi_peers *peers, struct kofi_peer *peer,
		     const struct kofi_unknown_max *max, gfp_t gfp)
{
	struct kofi_share_key key[KOFI_SHARES];
	int i, n, err = 0;

	if (!kofi_peer_is_unknown(peers, &peer->addr))
		return 0;
	if (peers->unknown >= max->all)
		return -EUSERS;
	peers->unknown++;
	n = kofi_share_keys(&peer->addr, key);
	for (i = 0; i < n && !err; i++) {
		peer->shares[i] = kofi_share_get(peers, &key[i], gfp);
		if (!peer->shares[i])
			err = -ENOMEM;
		else if (peer->shares[i]->n > kofi_share_max(peer->shares[i], max))
			err = -EUSERS;
	}
	if (!err)
		return 0;
	/* without a share, the peer does not count */
	if (!peer->shares[0])
		peers->unknown--;
	kofi_peers_dismiss(peers, peer);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_peers_admit);

/**
 * kofi_peers_blocks - test whether the removal of a peer would help another one
 * @peers: peers of the endpoint
 * @old: a peer, counted or not
 * @addr: address of an unknown peer, which is not counted
 * @max: limits of unknown peers
 *
 * The other peer may exceed several limits: each of these includes the peers of the ones
 * before.
 *
 * Context: the provider's lock.
 * Return: 0 if the other peer exceeds no limit, or @old does not count for it. Otherwise
 * the part of the places that the address of @old has, or its network, in 1/10000 of their
 * limit, but at least 1. The peer with the highest value should make room.
 */
unsigned int kofi_peers_blocks(struct kofi_peers *peers,
			       const struct kofi_peer *old,
			       const union kofi_ip *addr,
			       const struct kofi_unknown_max *max)
{
	const struct kofi_share *share, *full = NULL;
	struct kofi_share_key key[KOFI_SHARES];
	unsigned int part = 1;
	int i, n;

	/* without any place, no peer is admitted */
	if (!old->shares[0] || !max->all)
		return 0;
	n = kofi_share_keys(addr, key);
	for (i = 0; i < n && !full; i++) {
		share = rhashtable_lookup_fast(&peers->shares, &key[i],
					       kofi_shares_hash);
		if (share && share->n >= kofi_share_max(share, max))
			full = share;
	}
	if (full ? old->shares[i - 1] != full : peers->unknown < max->all)
		return 0;
	for (i = 0; i < KOFI_SHARES && old->shares[i]; i++)
		part = max(part, old->shares[i]->n * 10000 /
				 kofi_share_max(old->shares[i], max));
	return part;
}
EXPORT_SYMBOL_GPL(kofi_peers_blocks);

/**
 * kofi_peers_dismiss - uncount a peer
 * @peers: peers of the endpoint
 * @peer: the peer, counted or not
 *
 * Context: the provider's lock.
 */
void kofi_peers_dismiss(struct kofi_peers *peers, struct kofi_peer *peer)
{
	int i;

	if (!peer->shares[0])
		return;
	for (i = 0; i < KOFI_SHARES && peer->shares[i]; i++) {
		kofi_share_put(peers, peer->shares[i]);
		peer->shares[i] = NULL;
	}
	peers->unknown--;
}
EXPORT_SYMBOL_GPL(kofi_peers_dismiss);

/**
 * kofi_peers_recount - uncount a peer that an insertion of addresses has made known
 * @peers: peers of the endpoint
 * @peer: a peer, counted or not
 *
 * Context: the provider's lock.
 */
void kofi_peers_recount(struct kofi_peers *peers, struct kofi_peer *peer)
{
	if (peer->shares[0] && !kofi_peer_is_unknown(peers, &peer->addr))
		kofi_peers_dismiss(peers, peer);
}
EXPORT_SYMBOL_GPL(kofi_peers_recount);
