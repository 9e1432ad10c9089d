/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints of type FI_EP_RDM; sock.h has the functions that streams call. */
#ifndef _KOFI_SOCK_RDM_H
#define _KOFI_SOCK_RDM_H

#include <linux/rhashtable.h>
#include <linux/xarray.h>

#include "listener.h"
#include "sock.h"

/**
 * struct ksk_rdm - an endpoint of type FI_EP_RDM
 * @ep: what all types have
 * @listener: where peers connect to
 * @name: the address it listens on
 * @pid: number of this life of the endpoint, never 0
 * @accept: answers requests
 * @reap: frees connections
 * @idle: looks for connections that are not used
 * @idle_timeout: milliseconds after which such are closed, 0 for never
 * @max_conns: connections above which that is done at once, 0 for no limit
 * @ready_lock: irqsave, innermost: for @ready, and what makes messages ready
 * @ready: stored messages that are complete and may have found their receive
 * @deliver: gives them to it
 * @mutex: enabling and draining
 * @removal: an address is being removed; nothing is waited for with it but readers
 * @gone: with @removal: the endpoint is being closed
 * @listening: peers can connect, @name is known
 * @stopped: the listener has been
 * @lock: irqsave; for what follows
 * @closing: no more connections
 * @peers: connections posts use, by address
 * @dests: of them, those that have been posted to, by fi_addr_t
 * @numbers: the same as @peers, by the number they are told of by (peers.c)
 * @last_number: the last one given
 * @formers: how many each peer has had before
 * @conns: all that have not ended
 * @ended: those @reap is to free
 * @reaped: those it is freeing, which still count in statistics
 * @unknown: connections that peers have made that are not in the address vector
 * @deferred: of them, those with deferred posts
 * @early: operations that wait for their connection to be established
 * @unexpected: stored messages
 * @unexpected_bytes: memory they take
 * @unexpected_full: a stream waits for it to become less
 * @held: connections whose message is not stored before another look
 * @total: statistics of connections that have been freed
 * @accepted: statistics: requests accepted
 * @rejected: requests rejected because there was a connection, or a better request
 * @refused: requests that were none
 * @connects: connections that were established to peers
 * @restarts: peers that have connected with another number
 * @idle_closed: connections closed as they were not used
 */
struct ksk_rdm {
	struct ksk_ep		ep;
	struct ksk_listener	listener;
	union kofi_ip		name;
	u32			pid;
	struct work_struct	accept;
	struct work_struct	reap;
	struct delayed_work	idle;
	unsigned int		idle_timeout;
	unsigned int		max_conns;
	spinlock_t		ready_lock;	/* what is ready */
	struct list_head	ready;
	struct work_struct	deliver;
	struct mutex		mutex;	/* enabling, draining */
	struct mutex		removal;	/* of addresses */
	bool			gone;
	bool			listening;
	bool			stopped;

	spinlock_t		lock;	/* all that follows */
	bool			closing;
	struct rhashtable	peers;
	struct xarray		dests;
	struct xarray		numbers;
	u32			last_number;
	struct rhashtable	formers;
	struct list_head	conns;
	struct list_head	ended;
	struct list_head	reaped;
	struct list_head	deferred;
	unsigned int		unknown;
	size_t			early;
	struct list_head	unexpected;
	size_t			unexpected_bytes;
	bool			unexpected_full;
	struct list_head	held;
	struct ksk_conn_stats	total;
	unsigned long		accepted;
	unsigned long		rejected;
	unsigned long		refused;
	unsigned long		connects;
	unsigned long		restarts;
	unsigned long		idle_closed;
};

/**
 * struct ksk_rndv - announced messages of a connection; with its socket locked
 * @used: contexts of those that are being sent
 * @sent: operations whose payload the peer has not asked for yet
 * @data: those whose payload is to be sent
 * @rts: messages to be received
 * @cts: of them, those whose payload is to be asked for
 * @stalled: of them, the one that the stream waits with
 */
struct ksk_rndv {
	DECLARE_BITMAP(used, KSK_CTX_MAX + 1);
	struct list_head	sent;
	struct list_head	data;
	struct list_head	rts;
	struct list_head	cts;
	struct ksk_rts		*stalled;
};

/**
 * struct ksk_peer - a connection to a peer
 * @conn: the connection
 * @rndv: its announced messages, if it has them
 * @addr: address of the peer
 * @known: what completions call it; locked as the receiver is
 * @accepted: the peer has made it
 * @unknown: and is not in the address vector, under the endpoint's lock
 * @successor: it has taken over what an earlier one had not sent
 * @disowned: stored messages from its address may have no source, as it was removed
 * @pid: number of the peer's life, 0 until it is known
 * @waits_since: an operation was first seen to wait for its end, in tcp_jiffies32
 * @deadline: attempts that come to nothing are not repeated after it, in jiffies
 * @delay: milliseconds between such
 * @node: on a list of the endpoint's; from here on under its lock
 * @deferred: on another, if posts are deferred
 * @hash: in its table, if @in_use is set
 * @in_use: posts to the peer use it
 * @dest: where posts find it, once one has been made
 * @number: among those that posts use
 * @established: they go to its stream, and wait no longer
 * @over: everything of it has been completed
 * @early: how many wait
 * @unexpected: messages of it that are stored
 * @unexpected_bytes: memory they take
 * @refused: one was not, and waits
 * @held: on a list of the endpoint's, if it looks for a receive once more first
 * @posts: receives after which it may do so again
 * @before: messages of it that were stored when its stream stopped for them
 * @unnamed: it was not in the address vector when a message of it was looked at
 */
struct ksk_peer {
	struct ksk_conn		conn;
	struct ksk_rndv		rndv;
	union kofi_ip		addr;
	struct kofi_av_known	known;
	bool			accepted;
	bool			unknown;
	bool			successor;
	bool			disowned;
	u32			pid;
	u32			waits_since;
	unsigned long		deadline;
	unsigned int		delay;
	struct list_head	node;
	struct list_head	deferred;
	struct rhash_head	hash;
	bool			in_use;
	struct kofi_dest	dest;
	u32			number;
	bool			established;
	bool			over;
	size_t			early;
	unsigned int		unexpected;
	size_t			unexpected_bytes;
	bool			refused;
	struct list_head	held;
	u64			posts;
	unsigned int		before;
	bool			unnamed;
};

static inline struct ksk_rdm *ksk_rdm(struct ksk_ep *ep)
{
	return container_of(ep, struct ksk_rdm, ep);
}

static inline struct ksk_peer *ksk_peer(struct ksk_conn *c)
{
	return container_of(c, struct ksk_peer, conn);
}

/* ------------------------------------------------------------- tunables.c */

extern unsigned int ksk_rdm_idle_timeout;
extern unsigned int ksk_rdm_max_conns;

/* ------------------------------------------------------------------ rdm.c */

extern struct kmem_cache *ksk_peers;

struct ksk_peer *ksk_peer_again(struct ksk_rdm *rdm, const struct ksk_peer *peer);
struct ksk_peer *ksk_peer_new(struct ksk_rdm *rdm,
			      const union kofi_ip *addr, gfp_t gfp);
void ksk_peer_free(struct ksk_peer *peer);

/* Connect, after the delay. With the endpoint's lock: without, it may be gone. */
static inline void ksk_peer_begin(struct ksk_peer *peer)
{
	if (peer->delay)
		mod_timer(&peer->conn.retry,
			  jiffies + msecs_to_jiffies(peer->delay));
	else
		ksk_conn_queue(&peer->conn);
}

struct ksk_peer *ksk_rdm_find(struct ksk_rdm *rdm, const union kofi_ip *addr);
struct ksk_peer *ksk_rdm_current(struct ksk_rdm *rdm,
				 const union kofi_ip *addr);
int ksk_rdm_link(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_tx_move(struct ksk_conn *from, struct ksk_conn *to);
void ksk_rdm_replace(struct ksk_rdm *rdm, struct ksk_peer *old,
		     struct ksk_peer *peer);

/* ---------------------------------------------------------------- peers.c */

int ksk_peers_init(struct ksk_rdm *rdm);
void ksk_peers_exit(struct ksk_rdm *rdm);
int ksk_peers_add(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_peers_replace(struct ksk_rdm *rdm, struct ksk_peer *old,
		       struct ksk_peer *peer);
void ksk_peers_del(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_peers_forget(struct ksk_rdm *rdm, const union kofi_ip *addr);
bool ksk_peers_next(struct fid_ep *fid, u32 *number,
		    struct kofi_peer_state *state);
void ksk_rdm_stats(struct ksk_ep *ep, struct ksk_conn_stats *sum,
		   kofi_stat_fn fn, void *arg);

/* --------------------------------------------------------------- stream.c */

fi_addr_t ksk_peer_name(struct ksk_peer *peer);

/* ----------------------------------------------------------- rdm_accept.c */

extern const struct ksk_listener_ops ksk_rdm_listener_ops;
void ksk_rdm_recount(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_rdm_accept_work(struct work_struct *work);

/* ----------------------------------------------------------------- idle.c */

void ksk_idle_watch(struct ksk_rdm *rdm);
void ksk_idle_init(struct ksk_rdm *rdm);
void ksk_idle_look(struct ksk_conn *c);
bool ksk_idle_unused(struct ksk_conn *c);
void ksk_idle_retired(struct ksk_conn *c);
void ksk_idle_hand_over(struct ksk_conn *c);

/* ----------------------------------------------------------- unexpected.c */

void ksk_unexpected_init(struct ksk_rdm *rdm);
void ksk_unexpected_drain(struct ksk_rdm *rdm);
void ksk_unexpected_leave(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_unexpected_join(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_unexpected_disown(struct ksk_rdm *rdm, const union kofi_ip *addr);
void ksk_unexpected_own(struct ksk_rdm *rdm);

/* ----------------------------------------------------------------- rndv.c */

void ksk_rndv_init(struct ksk_rndv *r);

#endif /* _KOFI_SOCK_RDM_H */
