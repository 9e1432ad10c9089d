/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints of type FI_EP_RDM; sock.h has the functions that streams call. */
#ifndef _KOFI_SOCK_RDM_H
#define _KOFI_SOCK_RDM_H

#include <linux/rhashtable.h>

#include <linux/kofi/peer.h>

#include "listener.h"
#include "sock.h"

/**
 * enum ksk_rdm_state - life of an endpoint of type FI_EP_RDM
 * @KSK_RDM_NEW: the endpoint has no address yet
 * @KSK_RDM_LISTENING: peers can connect, and ksk_rdm.name is known
 * @KSK_RDM_CLOSING: no connection may be added; final
 *
 * ==========  ==========  =================
 * From        To          Step
 * ==========  ==========  =================
 * NEW         LISTENING   ksk_rdm_enable()
 * NEW         CLOSING     ksk_rdm_stop()
 * LISTENING   CLOSING     ksk_rdm_stop()
 * ==========  ==========  =================
 */
enum ksk_rdm_state {
	KSK_RDM_NEW,
	KSK_RDM_LISTENING,
	KSK_RDM_CLOSING,
};

/**
 * struct ksk_rdm_idle - closing of idle connections
 * @work: checks for idle connections
 * @timeout: milliseconds after which an idle connection is closed, 0 for never; fixed
 * @max_conns: connections above which idle ones are closed at once, 0 for no limit; fixed
 */
struct ksk_rdm_idle {
	struct delayed_work	work;
	unsigned int		timeout;
	unsigned int		max_conns;
};

/**
 * struct ksk_rdm_ready - stored messages that may be delivered
 * @lock: protects @list, and the readiness of each message; irqsave, innermost
 * @list: complete messages that may have found their receive; under @lock
 * @deliver: delivers the messages on @list, and schedules the connections on
 *	ksk_rdm_stored.held
 */
struct ksk_rdm_ready {
	spinlock_t		lock;	/* the list */
	struct list_head	list;
	struct work_struct	deliver;
};

/**
 * struct ksk_rdm_stored - memory of stored messages; under ksk_rdm.lock
 * @list: stored messages
 * @bytes: bytes of memory that stored messages occupy
 * @full: a stream waits until @bytes shrinks
 * @held: connections that wait for another search before their message is stored
 */
struct ksk_rdm_stored {
	struct list_head	list;
	size_t			bytes;
	bool			full;
	struct list_head	held;
};

/**
 * struct ksk_rdm_counters - statistics of an endpoint. They change under ksk_rdm.lock, and
 *	are read without it, except @conns.
 * @conns: statistics of freed connections; under ksk_rdm.lock
 * @accepted: accepted requests
 * @rejected: requests rejected due to a connection or a better request
 * @refused: invalid requests
 * @connects: connections established to peers
 * @restarts: peers that have connected with another number
 * @idle_closed: idle connections that were closed
 */
struct ksk_rdm_counters {
	struct ksk_conn_stats	conns;
	unsigned long		accepted;
	unsigned long		rejected;
	unsigned long		refused;
	unsigned long		connects;
	unsigned long		restarts;
	unsigned long		idle_closed;
};

/**
 * struct ksk_rdm - an endpoint of type FI_EP_RDM
 * @ep: common part of all types
 * @listener: listener to which peers connect
 * @name: address of @listener; fixed from KSK_RDM_LISTENING on
 * @pid: kofi_peer_new_life()
 * @accept: answers requests
 * @reap: frees connections
 * @idle: closing of idle connections
 * @ready: stored messages that may be delivered
 * @mutex: serialises enabling and draining
 * @removal: an address is being removed; its holder waits for nothing but readers
 * @gone: the endpoint is being freed; under @removal
 * @lock: protects the members below; irqsave
 * @state: enum ksk_rdm_state. Written under @lock and @mutex, read under either
 * @peers: connections for posts, the number of operations that wait for their connection to
 *	be established, and the number of unknown peers with a connection. Change under
 *	@lock; posts read the tables under RCU
 * @formers: number of earlier connections of each peer; under @lock
 * @conns: connections that have not been terminated; under @lock
 * @ended: terminated connections for @reap; under @lock
 * @reaped: connections that @reap is freeing; they still count in statistics. @reap owns
 *	it, and changes it under @lock
 * @deferred: connections with deferred posts; under @lock
 * @stored: memory of stored messages; under @lock
 * @stats: statistics
 */
struct ksk_rdm {
	struct ksk_ep		ep;
	struct ksk_listener	listener;
	union kofi_ip		name;
	u32			pid;
	struct work_struct	accept;
	struct work_struct	reap;
	struct ksk_rdm_idle	idle;
	struct ksk_rdm_ready	ready;
	struct mutex		mutex;	/* enabling, draining */
	struct mutex		removal;	/* of addresses */
	bool			gone;

	spinlock_t		lock;	/* the following members */
	enum ksk_rdm_state	state;
	struct kofi_peers	peers;
	struct rhashtable	formers;
	struct list_head	conns;
	struct list_head	ended;
	struct list_head	reaped;
	struct list_head	deferred;
	struct ksk_rdm_stored	stored;
	struct ksk_rdm_counters	stats;
};

/**
 * struct ksk_rndv - announced messages of a connection; used with the socket locked
 * @used: contexts of messages that are being sent
 * @sent: announced operations for which the peer has not asked yet
 * @data: operations with a payload to send
 * @rts: announced messages to receive
 * @cts: messages on @rts for which a KSK_OP_CTS must be sent
 * @stalled: message on @rts for which the stream waits
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
 * @rndv: announced messages, if both peers support them
 * @base: the core's part; a member of ksk_rdm.peers if @in_use is set. Its phase changes under
 *	the endpoint's lock. From KOFI_PEER_CONNECTED on, posts go to the stream, and wait no
 *	longer; in KOFI_PEER_DEAD all operations of the connection have completed
 * @known: remembered address of the peer, for completions; locked as the receiver is
 * @accepted: the peer has made the connection
 * @successor: it has taken over operations that an earlier connection had not sent
 * @disowned: stored messages of the peer may lack a source, as its address was removed.
 *	Written under the endpoint's lock; the receiver reads it without, for each message
 * @waits_since: first time at which an operation prevented closing, in tcp_jiffies32
 * @retry: attempts to connect
 * @node: entry of ksk_rdm.conns, .ended or .reaped. From here on the endpoint's lock
 *	protects the members.
 * @deferred: entry of ksk_rdm.deferred
 * @in_use: posts to the peer use the connection
 * @early: number of operations that wait for the connection
 * @unexpected: number of stored messages of the peer. The receiver reads it without the
 *	endpoint's lock, to compare it with @before
 * @unexpected_bytes: bytes of memory that its stored messages occupy
 * @refused: the stream waits, as its message was not stored
 * @held: entry of ksk_rdm_stored.held
 * @posts: number of posted receives above which the stream may wait again
 * @before: number of stored messages when the stream stopped
 * @unnamed: an unknown sender was found; the stream resumes when it is inserted. Set by the
 *	receiver without the endpoint's lock, and cleared under it: see ksk_peer_name()
 */
struct ksk_peer {
	struct ksk_conn		conn;
	struct ksk_rndv		rndv;
	struct kofi_peer	base;
	struct kofi_av_known	known;
	bool			accepted;
	bool			successor;
	bool			disowned;
	u32			waits_since;
	struct kofi_retry	retry;
	struct list_head	node;
	struct list_head	deferred;
	bool			in_use;
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

/* The connection of a peer, or NULL for NULL */
static inline struct ksk_peer *ksk_peer_of(struct kofi_peer *base)
{
	return base ? container_of(base, struct ksk_peer, base) : NULL;
}

/* ------------------------------------------------------------- tunables.c */

extern unsigned int ksk_rdm_idle_timeout;
extern unsigned int ksk_rdm_max_conns;

/* ------------------------------------------------------------------ rdm.c */

extern struct kmem_cache *ksk_peers;

struct ksk_peer *ksk_peer_again(struct ksk_rdm *rdm, const struct ksk_peer *peer);
struct ksk_peer *ksk_peer_new(struct ksk_rdm *rdm,
			      const union kofi_ip *addr, gfp_t gfp);
void ksk_peer_repeat(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_peer_free(struct ksk_peer *peer);

static inline bool ksk_peer_connected(const struct ksk_peer *peer)
{
	return kofi_peer_get_phase(&peer->base) == KOFI_PEER_CONNECTED;
}

/* Connect after the delay. Needs the endpoint's lock, without which it may be freed. */
static inline void ksk_peer_begin(struct ksk_peer *peer)
{
	kofi_peer_step(&peer->base, KOFI_PEER_CONNECTING);
	if (peer->retry.delay)
		mod_timer(&peer->conn.retry,
			  jiffies + msecs_to_jiffies(peer->retry.delay));
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
void ksk_rdm_unlink(struct ksk_rdm *rdm, struct ksk_peer *peer);

/* ---------------------------------------------------------------- peers.c */

int ksk_peers_init(struct ksk_rdm *rdm);
void ksk_peers_exit(struct ksk_rdm *rdm);
void ksk_peers_follow(struct ksk_rdm *rdm, struct ksk_peer *peer);
void ksk_peers_past(struct ksk_rdm *rdm, const struct ksk_peer *peer);
void ksk_peers_forget(struct ksk_rdm *rdm, const union kofi_ip *addr);
bool ksk_peers_leave(struct ksk_rdm *rdm, struct ksk_peer *peer);
bool ksk_peers_left(struct ksk_rdm *rdm, const struct ksk_peer *peer);
bool ksk_peers_next(struct fid_ep *fid, u32 *number,
		    struct kofi_peer_state *state);
void ksk_rdm_stats(struct ksk_ep *ep, struct ksk_conn_stats *sum,
		   kofi_stat_fn fn, void *arg);

/* --------------------------------------------------------------- stream.c */

fi_addr_t ksk_peer_name(struct ksk_peer *peer);

/* ----------------------------------------------------------- rdm_accept.c */

extern const struct ksk_listener_ops ksk_rdm_listener_ops;
void ksk_rdm_accept_work(struct work_struct *work);

/* ----------------------------------------------------------------- idle.c */

void ksk_idle_watch(struct ksk_rdm *rdm);
void ksk_idle_init(struct ksk_rdm *rdm);
void ksk_idle_look(struct ksk_conn *c);
bool ksk_idle_unused(struct ksk_conn *c);
void ksk_idle_retired(struct ksk_conn *c);
void ksk_idle_hand_over(struct ksk_conn *c);

void ksk_restart_ask(struct ksk_peer *peer);
void ksk_restart_closed(struct ksk_conn *c);
void ksk_restart_over(struct ksk_rdm *rdm, const struct ksk_peer *peer);

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
