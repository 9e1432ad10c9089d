/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Peers of an unconnected endpoint, for providers that connect to each of them.
 *
 * A provider embeds struct kofi_peers in its endpoint, and struct kofi_peer in its record
 * of a peer or of a connection.
 */
#ifndef _LINUX_KOFI_PEER_H
#define _LINUX_KOFI_PEER_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/rhashtable.h>
#include <linux/xarray.h>

#include <linux/kofi/lib.h>

#define KOFI_RETRY_MIN	2	/* milliseconds until the next connect attempt, */
#define KOFI_RETRY_MAX	200	/* doubled each time */

#define KOFI_SHARES	2	/* of a peer: address, and network */

struct kofi_share;

/**
 * struct kofi_unknown_max - limits of peers that the address vector lacks
 * @all: number of peers
 * @host: percentage of @all at one address, rounded up
 * @net: percentage of @all in one IPv6 network of 64 bits, rounded up
 */
struct kofi_unknown_max {
	unsigned int		all;
	unsigned int		host;
	unsigned int		net;
};

/**
 * struct kofi_peers - peers of an endpoint
 * @ep: the endpoint
 * @hash: struct kofi_peer by address. Read under RCU, changed under the provider's lock.
 *	kofi_peers_del() needs the lock of @dests, too
 * @numbers: struct kofi_peer by number. Read under RCU, changed under the provider's lock
 * @last: last number that was assigned; under the provider's lock
 * @dests: struct kofi_peer by fi_addr_t, once posted to. Read under RCU, changed under a
 *	second lock of the provider, or the same lock
 * @shares: struct kofi_share by address or network; under the provider's lock
 * @unknown: number of peers that count as unknown; under the provider's lock
 * @waiting: number of operations that wait for a connection
 */
struct kofi_peers {
	struct kofi_ep		*ep;
	struct rhashtable	hash;
	struct xarray		numbers;
	u32			last;
	struct xarray		dests;
	struct rhashtable	shares;
	unsigned int		unknown;
	atomic_t		waiting;
};

/**
 * enum kofi_peer_phase - phase of a peer, or of a connection to it
 * @KOFI_PEER_NEW: the record is being made, or is about to be freed
 * @KOFI_PEER_IDLE: the peer has no connection, and no operation waits for one
 * @KOFI_PEER_WANTED: the provider will connect
 * @KOFI_PEER_WAITING: the provider waits before it connects again, or for a request of the
 *	peer
 * @KOFI_PEER_CONNECTING: the peer cannot have received our request yet
 * @KOFI_PEER_REQUESTING: our request may have been sent, and is not answered
 * @KOFI_PEER_ACCEPTING: a request of the peer is being answered
 * @KOFI_PEER_CONNECTED: both sides have agreed
 * @KOFI_PEER_CLOSING: the connection is being closed
 * @KOFI_PEER_DEAD: the peer has been removed, or the connection has terminated; final
 *
 * kofi_peer_step() has the table of legal transitions.
 */
enum kofi_peer_phase {
	KOFI_PEER_NEW,
	KOFI_PEER_IDLE,
	KOFI_PEER_WANTED,
	KOFI_PEER_WAITING,
	KOFI_PEER_CONNECTING,
	KOFI_PEER_REQUESTING,
	KOFI_PEER_ACCEPTING,
	KOFI_PEER_CONNECTED,
	KOFI_PEER_CLOSING,
	KOFI_PEER_DEAD,
};

/**
 * enum kofi_peer_verdict - decision about a connect request of a peer
 * @KOFI_PEER_ACCEPT: accept; the peer has no connection or attempt
 * @KOFI_PEER_REPLACE: abandon our own attempt, and accept
 * @KOFI_PEER_RESTARTED: terminate the connection to the peer's earlier life, and accept
 * @KOFI_PEER_CROSSED: reject, as the peer accepts our own request if it arrives. Accept if
 *	the provider can still cancel that request
 * @KOFI_PEER_PRESENT: reject, as the peer has a connection, and check that connection: the
 *	peer may be another program with an equal life, and repeats its request
 */
enum kofi_peer_verdict {
	KOFI_PEER_ACCEPT,
	KOFI_PEER_REPLACE,
	KOFI_PEER_RESTARTED,
	KOFI_PEER_CROSSED,
	KOFI_PEER_PRESENT,
};

/**
 * struct kofi_peer - a peer of an endpoint
 * @addr: address at which the peer listens; fixed
 * @phase: enum kofi_peer_phase. kofi_peer_step() changes it under a lock of the provider, and
 *	kofi_peer_get_phase() reads it without
 * @life: number of the peer's life, 0 until it is known; under the provider's lock
 * @node: entry of kofi_peers.hash
 * @number: index in kofi_peers.numbers; changes under the provider's lock
 * @index: index in kofi_peers.dests, which @changes publishes
 * @changes: kofi_av.changes at the time of the look-up, 0 if the peer is not in
 *	kofi_peers.dests. Posts read and renew it as RCU readers, without a lock
 * @shares: counts of unknown peers that include this one; all NULL if it does not count.
 *	Under the provider's lock
 */
struct kofi_peer {
	union kofi_ip		addr;
	enum kofi_peer_phase	phase;
	u32			life;
	struct rhash_head	node;
	u32			number;
	unsigned long		index;
	unsigned long		changes;
	struct kofi_share	*shares[KOFI_SHARES];
};

/**
 * struct kofi_retry - connect attempts to a peer
 * @deadline: time in jiffies after which an attempt is not repeated
 * @delay: milliseconds before the current attempt, 0 for the first one
 */
struct kofi_retry {
	unsigned long		deadline;
	unsigned int		delay;
};

int kofi_peers_init(struct kofi_peers *peers, struct kofi_ep *ep);
void kofi_peers_exit(struct kofi_peers *peers);
struct kofi_peer *kofi_peers_find(struct kofi_peers *peers,
				  const union kofi_ip *addr);
struct kofi_peer *kofi_peers_next(struct kofi_peers *peers, u32 *number);
int kofi_peers_add(struct kofi_peers *peers, struct kofi_peer *peer, gfp_t gfp);
int kofi_peers_add_hidden(struct kofi_peers *peers, struct kofi_peer *peer,
			  gfp_t gfp);
void kofi_peers_replace(struct kofi_peers *peers, struct kofi_peer *old,
			struct kofi_peer *peer);
void kofi_peers_del(struct kofi_peers *peers, struct kofi_peer *peer);
void kofi_peers_del_hidden(struct kofi_peers *peers, struct kofi_peer *peer);

struct kofi_peer *kofi_peers_dest(struct kofi_peers *peers, fi_addr_t fi_addr);
unsigned long kofi_peers_changes(const struct kofi_peers *peers);
bool kofi_peers_renew(struct kofi_peers *peers, struct kofi_peer *peer,
		      fi_addr_t fi_addr, unsigned long changes);
void kofi_peers_set_dest(struct kofi_peers *peers, struct kofi_peer *peer,
			 fi_addr_t fi_addr, unsigned long changes);
void kofi_peers_del_dest(struct kofi_peers *peers, struct kofi_peer *peer);

int kofi_peer_addr(const struct sockaddr_storage *from, __be16 port,
		   union kofi_ip *addr);
int kofi_peer_compare(const union kofi_ip *a, const union kofi_ip *b);
void kofi_peer_step(struct kofi_peer *peer, enum kofi_peer_phase to);
enum kofi_peer_verdict kofi_peer_judge(const struct kofi_peer *old, int diff,
				       u32 life);
enum kofi_ep_state kofi_peer_ep_state(const struct kofi_peer *peer);
u32 kofi_peer_new_life(void);

/**
 * kofi_peer_get_phase - read the phase of a peer
 * @peer: the peer
 *
 * Members that the provider has written before kofi_peer_step() are visible afterwards.
 *
 * Context: any, without a lock.
 * Return: the phase.
 */
static inline enum kofi_peer_phase kofi_peer_get_phase(const struct kofi_peer *peer)
{
	/* pairs with kofi_peer_step(); posts to connected peers share no lock */
	return smp_load_acquire(&peer->phase);
}

/**
 * kofi_peer_is_unknown - test whether the address vector lacks a peer
 * @peers: peers of the endpoint, which has an address vector
 * @addr: address of the peer
 *
 * Context: any.
 * Return: true if the vector lacks the address.
 */
static inline bool kofi_peer_is_unknown(const struct kofi_peers *peers,
					const union kofi_ip *addr)
{
	return kofi_av_source(peers->ep->av, &addr->sa) == FI_ADDR_NOTAVAIL;
}

int kofi_peers_admit(struct kofi_peers *peers, struct kofi_peer *peer,
		     const struct kofi_unknown_max *max, gfp_t gfp);
unsigned int kofi_peers_blocks(struct kofi_peers *peers,
			       const struct kofi_peer *old,
			       const union kofi_ip *addr,
			       const struct kofi_unknown_max *max);
void kofi_peers_dismiss(struct kofi_peers *peers, struct kofi_peer *peer);
void kofi_peers_recount(struct kofi_peers *peers, struct kofi_peer *peer);

/**
 * kofi_peers_count - number of peers that posts use
 * @peers: peers of the endpoint
 *
 * Context: any.
 * Return: the number.
 */
static inline unsigned int kofi_peers_count(const struct kofi_peers *peers)
{
	return atomic_read(&peers->hash.nelems);
}

/**
 * kofi_peers_limit - number of operations that may wait for connections
 * @peers: peers of the endpoint
 *
 * Half of the operations are reserved for connected peers.
 *
 * Context: any.
 * Return: the number.
 */
static inline int kofi_peers_limit(const struct kofi_peers *peers)
{
	return max_t(int, peers->ep->info->tx_attr->size / 2, 1);
}

/**
 * kofi_peers_wait - let an operation wait for a connection
 * @peers: peers of the endpoint
 *
 * Context: any.
 * Return: false if too many operations wait.
 */
static inline bool kofi_peers_wait(struct kofi_peers *peers)
{
	int n = atomic_read(&peers->waiting);

	do {
		if (n >= kofi_peers_limit(peers))
			return false;
	} while (!atomic_try_cmpxchg(&peers->waiting, &n, n + 1));
	return true;
}

/**
 * kofi_peers_add_waiting - count operations that wait for a connection
 * @peers: peers of the endpoint
 * @n: number of operations, for which the caller has room
 *
 * Context: any.
 */
static inline void kofi_peers_add_waiting(struct kofi_peers *peers, int n)
{
	atomic_add(n, &peers->waiting);
}

/**
 * kofi_peers_unwait - uncount operations that waited for a connection
 * @peers: peers of the endpoint
 * @n: number of operations
 *
 * kofi_ep_unblock() must follow, at the latest when the connection terminates.
 *
 * Context: any.
 */
static inline void kofi_peers_unwait(struct kofi_peers *peers, int n)
{
	atomic_sub(n, &peers->waiting);
}

/**
 * kofi_peers_full - test whether further operations may wait for a connection
 * @peers: peers of the endpoint
 *
 * Context: any.
 * Return: true if too many operations wait.
 */
static inline bool kofi_peers_full(const struct kofi_peers *peers)
{
	return atomic_read(&peers->waiting) >= kofi_peers_limit(peers);
}

/**
 * kofi_retry_next - double the delay before another connect attempt
 * @r: attempts
 *
 * Context: the caller serialises attempts.
 * Return: the delay in jiffies.
 */
static inline unsigned long kofi_retry_next(struct kofi_retry *r)
{
	r->delay = clamp(2 * r->delay, KOFI_RETRY_MIN, KOFI_RETRY_MAX);
	return msecs_to_jiffies(r->delay);
}

#endif /* _LINUX_KOFI_PEER_H */
