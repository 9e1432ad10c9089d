// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * State of the peers of an FI_EP_RDM endpoint, reported for one peer after the other.
 *
 * A peer has a number while posts to it have a connection. A connection that replaces
 * another one gets its number. So a walk over the numbers misses no peer, and visits
 * none twice.
 *
 * Terminated connections are freed. If the peer is in the address vector, a record of
 * the peer counts them. The endpoint's statistics include all connections.
 */
#include <linux/slab.h>
#include <kunit/visibility.h>

#include "rdm.h"

/**
 * struct ksk_former - connections to a peer that posts no longer use
 * @addr: the peer's address
 * @hash: entry in ksk_rdm.formers
 * @count: number of connections that were established
 * @tail: connection that is only read (idle.c), or NULL
 */
struct ksk_former {
	union kofi_ip		addr;
	struct rhash_head	hash;
	u32			count;
	struct ksk_peer		*tail;
};

static const struct rhashtable_params ksk_formers = {
	.key_len		= sizeof_field(struct ksk_former, addr),
	.key_offset		= offsetof(struct ksk_former, addr),
	.head_offset		= offsetof(struct ksk_former, hash),
	.automatic_shrinking	= true,
};

/* No record is freed while the endpoint's lock is held. */
static struct ksk_former *ksk_former_find(struct ksk_rdm *rdm,
					  const union kofi_ip *addr)
{
	lockdep_assert_held(&rdm->lock);

	return rhashtable_lookup_fast(&rdm->formers, addr, ksk_formers);
}

/* Find or make the record of an address. Returns NULL without memory. */
static struct ksk_former *ksk_former_get(struct ksk_rdm *rdm,
					 const union kofi_ip *addr)
{
	struct ksk_former *f = ksk_former_find(rdm, addr);

	if (f)
		return f;
	f = kzalloc(sizeof(*f), ksk_gfp_atomic(&rdm->ep));
	if (!f)
		return NULL;
	f->addr = *addr;
	if (!rhashtable_insert_fast(&rdm->formers, &f->hash, ksk_formers))
		return f;
	kfree(f);
	return NULL;
}

static void ksk_former_del(struct ksk_rdm *rdm, struct ksk_former *f)
{
	rhashtable_remove_fast(&rdm->formers, &f->hash, ksk_formers);
	/* all look-ups hold the lock */
	kfree(f);
}

/**
 * ksk_peers_follow - order a new connection behind a tail
 * @rdm: the endpoint, with its lock held
 * @peer: the connection for posts from now on
 *
 * If the peer has a tail, the connection transmits, but is not read before the tail.
 *
 * Context: any.
 */
void ksk_peers_follow(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	const struct ksk_former *f = ksk_former_find(rdm, &peer->base.addr);

	if (f && f->tail)
		set_bit(KSK_CONN_BEHIND, &peer->conn.flags);
}

/**
 * ksk_peers_past - count a connection that posts no longer use
 * @rdm: the endpoint, with its lock held
 * @peer: the connection that posts used until now
 *
 * Without memory it is not counted.
 *
 * Context: any.
 */
void ksk_peers_past(struct ksk_rdm *rdm, const struct ksk_peer *peer)
{
	struct ksk_former *f;

	lockdep_assert_held(&rdm->lock);

	if (!ksk_peer_connected(peer) || rdm->state == KSK_RDM_CLOSING ||
	    kofi_peer_is_unknown(&rdm->peers, &peer->base.addr))
		return;
	f = ksk_former_get(rdm, &peer->base.addr);
	if (f)
		f->count++;
}

/**
 * ksk_peers_forget - free the record of a removed address
 * @rdm: the endpoint, with its lock held
 * @addr: the address
 *
 * If the peer has a tail, abort it. ksk_peers_left() then frees the record.
 *
 * Context: any.
 */
void ksk_peers_forget(struct ksk_rdm *rdm, const union kofi_ip *addr)
{
	struct ksk_former *f = ksk_former_find(rdm, addr);

	if (!f)
		return;
	if (!f->tail) {
		ksk_former_del(rdm, f);
		return;
	}
	f->count = 0;
	ksk_conn_abort(&f->tail->conn, ECANCELED);
}

/**
 * ksk_peers_leave - make a connection the tail of its peer
 * @rdm: the endpoint, with its lock held
 * @peer: the connection that posts use
 *
 * A peer has one tail: an older one is aborted.
 *
 * Context: any.
 * Return: true; false until the older tail has terminated, or without memory.
 */
bool ksk_peers_leave(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	struct ksk_former *f = ksk_former_get(rdm, &peer->base.addr);

	if (!f)
		return false;
	if (f->tail) {
		ksk_conn_abort(&f->tail->conn, ECONNRESET);
		return false;
	}
	f->tail = peer;
	return true;
}

/**
 * ksk_peers_left - forget the tail of a peer
 * @rdm: the endpoint, with its lock held
 * @peer: a connection that has terminated
 *
 * Context: any.
 * Return: true if the connection was a tail.
 */
bool ksk_peers_left(struct ksk_rdm *rdm, const struct ksk_peer *peer)
{
	struct ksk_former *f;

	if (!test_bit(KSK_CONN_TAIL, &peer->conn.flags))
		return false;
	f = ksk_former_find(rdm, &peer->base.addr);
	f->tail = NULL;
	if (kofi_peer_is_unknown(&rdm->peers, &peer->base.addr))
		ksk_former_del(rdm, f);
	return true;
}

static void ksk_peer_tell(struct ksk_rdm *rdm, const struct ksk_peer *peer,
			  struct kofi_peer_state *state)
{
	const struct ksk_former *f = ksk_former_find(rdm, &peer->base.addr);
	u32 connects = (f ? f->count : 0) + ksk_peer_connected(peer);

	memcpy(&state->addr, &peer->base.addr, sizeof(peer->base.addr));
	state->state = READ_ONCE(peer->conn.dead) ? KOFI_EP_SHUTDOWN :
		       kofi_peer_ep_state(&peer->base);
	state->reconnects = connects ? connects - 1 : 0;
	/* operations that are being posted may be missing */
	state->tx_waiting = READ_ONCE(peer->conn.posts.n) +
			    READ_ONCE(peer->conn.tx.nqueued);
	state->rx_stored = peer->unexpected;
	state->rx_stored_bytes = peer->unexpected_bytes;
}

/* kofi_ep_ops.peer_next */
bool ksk_peers_next(struct fid_ep *fid, u32 *number,
		    struct kofi_peer_state *state)
{
	struct ksk_rdm *rdm = ksk_rdm(ksk_ep(fid));
	struct ksk_peer *peer;

	spin_lock_irq(&rdm->lock);
	peer = ksk_peer_of(kofi_peers_next(&rdm->peers, number));
	if (peer)
		ksk_peer_tell(rdm, peer, state);
	spin_unlock_irq(&rdm->lock);
	return peer;
}

int ksk_peers_init(struct ksk_rdm *rdm)
{
	return rhashtable_init(&rdm->formers, &ksk_formers);
}

static void ksk_former_free(void *former, void *arg)
{
	kfree(former);
}

/* Free the records, when no connection is left. */
void ksk_peers_exit(struct ksk_rdm *rdm)
{
	rhashtable_free_and_destroy(&rdm->formers, ksk_former_free, NULL);
}

/**
 * ksk_rdm_stats - statistics of an endpoint and its connections
 * @ep: the endpoint, of type FI_EP_RDM
 * @sum: statistics, to which all current and earlier connections are added
 * @fn: function called with each statistic of the endpoint
 * @arg: first argument of @fn
 *
 * Context: process.
 */
void ksk_rdm_stats(struct ksk_ep *ep, struct ksk_conn_stats *sum,
		   kofi_stat_fn fn, void *arg)
{
	struct ksk_rdm *rdm = ksk_rdm(ep);
	size_t conns = 0, early, unexpected;
	struct ksk_peer *peer;

	spin_lock_irq(&rdm->lock);
	ksk_conn_stats_add(sum, &rdm->stats.conns);
	list_for_each_entry(peer, &rdm->conns, node) {
		ksk_conn_stats_add(sum, &peer->conn.stats);
		conns++;
	}
	list_for_each_entry(peer, &rdm->ended, node)
		ksk_conn_stats_add(sum, &peer->conn.stats);
	list_for_each_entry(peer, &rdm->reaped, node)
		ksk_conn_stats_add(sum, &peer->conn.stats);
	early = atomic_read(&rdm->peers.waiting);
	unexpected = rdm->stored.bytes;
	spin_unlock_irq(&rdm->lock);

	fn(arg, "connections", conns);
	fn(arg, "tx_early", early);
	fn(arg, "rx_unexpected_bytes", unexpected);
	fn(arg, "connects", READ_ONCE(rdm->stats.connects));
	fn(arg, "accepted", READ_ONCE(rdm->stats.accepted));
	fn(arg, "rejected", READ_ONCE(rdm->stats.rejected));
	fn(arg, "refused", READ_ONCE(rdm->stats.refused));
	fn(arg, "restarts", READ_ONCE(rdm->stats.restarts));
	fn(arg, "idle_closed", READ_ONCE(rdm->stats.idle_closed));
	sum->violations += ksk_listener_stats(&rdm->listener, fn, arg);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_stats);
