/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_rxm: endpoints with many peers, each over a connection of another provider.
 *
 * main.c	the module, discovery, fabrics, domains, memory regions
 * ep.c		endpoints: life, options, receives
 * conn.c	connections: how they are made and end
 * record.c	records of peers
 * post.c	posts of transmits
 * op.c		records of transmits
 * tx.c		what is sent when
 * rndv.c	messages the peer is to fetch
 * region.c	their regions
 * atomic.c	atomic operations, both ends
 * atomic_post.c	posts of them
 * rx.c		what arrives: packets, messages, rendezvous
 * access.c	what peers do to memory, and is told of
 * credit.c	packets, and receives the peer may use, where that has to be counted
 * proto.c	the wire
 *
 * "Below" is the provider whose connected endpoints are used; this one is a
 * consumer of it like any other, and knows nothing of it but the public headers.
 *
 * Locks
 *
 * ep->mutex	connections come and go, from the work item and from control calls
 * c->rx_lock	_bh: what arrives on a connection
 * c->lock	irqsave: what is to be sent on it. Inside the one above
 * ep->lock	irqsave: lists of connections and of posts without one. It is
 *		outside c->lock
 *
 * What is below is called without c->lock: who sends has set c->pushing.
 */
#ifndef _KOFI_RXM_H
#define _KOFI_RXM_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/kofi/lib.h>

#include "proto.h"

#define RXM_IOV_LIMIT	4	/* segments, unless hints ask for more */
#define RXM_IOV_MAX	8	/* leaves one for the header below */
#define RXM_INJECT	128
#define RXM_SIZE	256	/* operations per direction, likewise */
#define RXM_SIZE_MAX	65536
#define RXM_SRX_MAX	65536	/* shared receive contexts of a domain: memory's limit */
#define RXM_RMA_IOV	4
#define RXM_CQ_DATA	sizeof_field(struct rxm_hdr, data)
#define RXM_MSG_MAX	SZ_1G
#define RXM_MSG_TX	64	/* transmits of a connection below */
#define RXM_MSG_CQ	256	/* completions of it */
#define RXM_REGIONS	8	/* of a connection, for rendezvous */
#define RXM_REGION_SEGS	257	/* 1 MiB of single pages */
#define RXM_VALS	16	/* numbers of fi_set_val() below this */
#define RXM_REFILL	(HZ / 10)	/* until receives are posted again */
#define RXM_DELAY_MIN	2	/* milliseconds until a connect is tried again, */
#define RXM_DELAY_MAX	200	/* doubled each time */
#define RXM_BUDGET	32	/* events, connections or messages in one run of the work item */
#define RXM_HOSTS	4	/* one has this part of max_unknown */
#define RXM_TRIES	8	/* connections in a row that end before anything is sent */

#define RXM_ATOMICS	8	/* requests a peer is to answer at a time */
#define RXM_REQUESTS	(RXM_REGIONS + RXM_ATOMICS)	/* of a peer's, beside its receives */

#define RXM_RC_BUFS	4	/* times rx_bufs over InfiniBand and RoCE: RXM_MSG_TX by default */
#define RXM_CREDIT_BUFS	16	/* receives of a connection with credits, at least */
#define RXM_KEPT	4	/* credits that are not for messages, at most */
#define RXM_TX_HOLD	HZ	/* until who was connected sends first */

#define RXM_TX_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)
#define RXM_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_MORE | FI_FENCE | \
			 KOFI_NO_COMPLETION | RXM_TX_LEVELS)
#define RXM_FETCH_FLAGS	(RXM_TX_FLAGS & ~FI_INJECT)

/* Levels of completion over the provider below; iWARP reports no arrival. */
static inline u64 rxm_levels(const struct fi_info *msg)
{
	return msg->ep_attr->protocol == FI_PROTO_IWARP ? FI_INJECT_COMPLETE :
							  RXM_TX_LEVELS;
}

/**
 * struct rxm_provider - the provider over another one
 * @base: what the core knows
 * @below: name of the other one
 */
struct rxm_provider {
	struct kofi_provider	base;
	const char		*below;
};

struct rxm_fabric {
	struct kofi_fabric	base;
	struct fid_fabric	*msg;
};

struct rxm_domain {
	struct kofi_domain	base;
	struct rxm_provider	*prov;
	struct fid_eq		*eq;	/* what happens to @msg */
	struct fid_domain	*msg;
};

struct rxm_mr {
	struct kofi_mr		base;
	struct fid_mr		*msg;
	u64			key;	/* asked for */
};

/**
 * struct rxm_stats - what an endpoint counts
 * @connects: connections that were made
 * @refused: requests of peers that were refused
 * @violations: connections closed for what the peer has sent
 * @eager: messages sent in one packet
 * @segmented: in several
 * @rendezvous: fetched by the peer
 * @unexpected: messages that found no receive
 */
struct rxm_stats {
	atomic64_t	connects;
	atomic64_t	refused;
	atomic64_t	violations;
	atomic64_t	eager;
	atomic64_t	segmented;
	atomic64_t	rendezvous;
	atomic64_t	unexpected;
};

/**
 * struct rxm_ep - an endpoint
 * @base: the core's
 * @dom: its domain
 * @rxq: posted receives, unless a shared context has them: rxm_rxq()
 * @info: what its connections are opened with
 * @flow: connections use credits
 * @vals_set: which of @vals have been set
 * @vals: what each connection is told by fi_set_val()
 * @pep: where peers connect
 * @eq: events of connections
 * @name: address of @pep
 * @process: what distinguishes it from an endpoint at the same address before
 * @mutex: connections come and go
 * @closed: the endpoint is being closed; set with @lock, before @mutex is waited for
 * @hash: struct rxm_conn by address
 * @conns: all of them
 * @dests: of them, those that have been posted to, by fi_addr_t; changed with @lock
 * @numbers: the same as @hash, by their ids
 * @last_id: of a connection
 * @lock: what follows
 * @pending: transmits to peers without a connection
 * @todo: connections the work item is to look at
 * @woken_lock: irqsave
 * @woken: struct rxm_buf: messages that may find their receive now
 * @work: does what needs process context
 * @timer: the same, later
 * @idle: waits for the end of a push
 * @ops: records of transmits; their place is the number a message has
 * @nr_ops: how many they are
 * @free: those not in use
 * @free_lock: for taking one
 * @pkts: headers of segments
 * @free_pkts: those not in use
 * @waiting: transmits that wait for a connection
 * @held: struct rxm_buf that hold messages
 * @starved: a connection has fewer receives than it should
 * @unknown: records of peers that were not in the address vector
 * @stats: counters
 */
struct rxm_ep {
	struct kofi_ep		base;
	struct rxm_domain	*dom;
	struct kofi_rxq		rxq;
	struct fi_info		*info;
	bool			flow;
	unsigned long		vals_set;
	unsigned int		vals[RXM_VALS];
	struct fid_pep		*pep;
	struct fid_eq		*eq;
	union kofi_ip		name;
	u32			process;
	struct mutex		mutex;	/* connections */
	bool			closed;
	struct rhashtable	hash;
	struct xarray		dests;
	struct list_head	conns;
	struct xarray		numbers;
	u32			last_id;
	spinlock_t		lock;	/* lists */
	struct list_head	pending;
	struct list_head	todo;
	spinlock_t		woken_lock;	/* @woken; inside all others */
	struct list_head	woken;
	struct work_struct	work;
	struct delayed_work	timer;
	wait_queue_head_t	idle;
	struct rxm_op		**ops;
	size_t			nr_ops;
	struct kofi_freelist	free;
	spinlock_t		free_lock;	/* taking from @free */
	struct rxm_pkt		*pkts;
	struct kofi_freelist	free_pkts;
	atomic_t		waiting;
	atomic_t		held;
	bool			starved;
	unsigned int		unknown;
	struct rxm_stats	stats;
};

enum rxm_state {
	RXM_NEW,		/* or gone: transmits are those of ep->pending */
	RXM_IDLE,
	RXM_WANTED,		/* the work item is to connect */
	RXM_CONNECTING,
	RXM_WAITING,		/* until @retry, or for the peer's attempt */
	RXM_ACCEPTING,
	RXM_CONNECTED,
	RXM_CLOSING,
	RXM_DEAD,		/* for good */
};

/**
 * struct rxm_conn - a peer, and the connection to it if there is one
 * @node: in rxm_ep.hash
 * @addr: where the peer listens
 * @ep: the endpoint
 * @list: rxm_ep.conns
 * @todo: rxm_ep.todo
 * @dest: where posts find it, once one has been made
 * @hashed: it is in rxm_ep.hash: not the other end of one to ourselves
 * @unknown: it counts in rxm_ep.unknown
 * @state: enum rxm_state; changes under the mutex and @lock
 * @err: what ended it, a positive error code; the work item closes it
 * @reason: what its transmits and receives end with that are still below
 * @id: what the peer puts into its packets
 * @peer_id: what we put into ours
 * @process: the peer's
 * @retry: when it is tried again to connect
 * @trying: @deadline is set
 * @deadline: from when on it is not, if the peer rejects it
 * @delay: milliseconds it waits; 0 since something was sent
 * @tries: connections that have ended since then
 * @connects: connections that there have been
 * @region_segs: segments of a region below; 0: the peer can fetch no messages
 * @msg: the endpoint below
 * @cq: its queue
 * @lock: what is to be sent
 * @queue: transmits
 * @queued: how many
 * @ctrl: what is sent before them
 * @rndv: transmits the peer is to fetch, or to answer
 * @atomics: of these, atomic operations
 * @unfinished: transmits that are off @queue
 * @pushing: somebody sends
 * @again: and is to look once more
 * @flow: credits are used
 * @tx_hold: nothing is sent before the peer has
 * @reserve: credits that are not for messages
 * @credits: receives of the peer's
 * @granted: receives the peer knows of
 * @ungranted: those it does not
 * @grant_now: one of those is to be told of at once, if the peer is held back
 * @granting: @grant is on its way
 * @grant: tells it
 * @grant_cqe: completion of that
 * @rx_lock: what arrives
 * @known: what completions call the peer
 * @target_known: the same, of accesses that the provider below tells of
 * @held: messages that wait for a receive, or for the rest of it
 * @unnamed: the sender of some of them was not in the address vector
 * @stored: those that wait for a receive
 * @stored_bufs: buffers of theirs
 * @accesses: what waits for a slot of the queue to report it
 * @flushed: receives below have come back, and are not posted again
 * @posted: receives below
 * @nr_held: buffers that are not posted, as they hold something
 * @requests: of these, those the peer is to get an answer for
 * @rcu: posts may still see it
 */
struct rxm_conn {
	struct rhash_head	node;
	union kofi_ip		addr;
	struct rxm_ep		*ep;
	struct list_head	list;
	struct list_head	todo;
	struct kofi_dest	dest;
	bool			hashed;
	bool			unknown;
	int			state;
	int			err;
	int			reason;
	u32			id;
	u64			peer_id;
	u32			process;
	unsigned long		retry;
	bool			trying;
	unsigned long		deadline;
	unsigned int		delay;
	unsigned int		tries;
	unsigned int		connects;
	unsigned int		region_segs;
	struct fid_ep		*msg;
	struct fid_cq		*cq;
	spinlock_t		lock;	/* what is to be sent */
	struct list_head	queue;
	unsigned int		queued;
	struct list_head	ctrl;
	struct list_head	rndv;
	unsigned int		atomics;
	atomic_t		unfinished;
	bool			pushing;
	bool			again;
	bool			flow;
	bool			tx_hold;
	unsigned int		reserve;
	atomic_t		credits;
	atomic_t		granted;
	atomic_t		ungranted;
	bool			grant_now;
	bool			granting;
	struct rxm_hdr		grant;
	struct kofi_cqe		grant_cqe;
	spinlock_t		rx_lock;	/* what arrives */
	struct kofi_av_known	known;
	struct kofi_av_known	target_known;
	struct list_head	held;
	bool			unnamed;
	unsigned int		stored;
	unsigned int		stored_bufs;
	struct list_head	accesses;
	bool			flushed;
	unsigned int		posted;
	unsigned int		nr_held;
	unsigned int		requests;
	struct rcu_head		rcu;
};

/**
 * struct rxm_ctrl - something to be done below on behalf of a message
 * @node: rxm_conn.ctrl
 * @cqe: its completion
 * @conn: the connection
 * @send: do it, in any context; -EAGAIN for later, other errors end the
 *	connection
 * @done: it has ended, with a positive error code or 0; softirq or process context
 */
struct rxm_ctrl {
	struct list_head	node;
	struct kofi_cqe		cqe;
	struct rxm_conn		*conn;
	int			(*send)(struct rxm_ctrl *ctrl);
	void			(*done)(struct rxm_ctrl *ctrl, int err);
};

/* Header of a segment beside the one the transmit has */
struct rxm_pkt {
	struct llist_node	free;
	struct kofi_cqe		cqe;
	struct rxm_op		*op;
	struct rxm_hdr		hdr;
};

enum rxm_how {
	RXM_HOW_NEW,
	RXM_HOW_EAGER,
	RXM_HOW_SEGMENTS,
	RXM_HOW_RNDV,
	RXM_HOW_READ,
	RXM_HOW_WRITE,
	RXM_HOW_ATOMIC,
};

/**
 * struct rxm_atomic - what the record of an atomic operation has beside
 * @call: RXM_OP_ATOMIC, ...
 * @datatype: enum fi_datatype
 * @op: enum fi_op
 * @count: entries of the peer's memory
 * @nr_out: entries of @out; 0: @inject is used
 * @len: bytes of operands, and of what they are compared with
 * @out: where these are
 * @inject: or a copy
 */
struct rxm_atomic {
	u8		call;
	u8		datatype;
	u8		op;
	u8		count;
	unsigned int	nr_out;
	size_t		len;
	union {
		struct kvec	out[RXM_IOV_MAX];
		u8		inject[RXM_INJECT];
	};
};

/**
 * struct rxm_op - a transmit
 * @node: on a list of its connection, or rxm_ep.pending
 * @free: while it is not in use
 * @cqe: completion of a read or write, or of the packet with @hdr
 * @ctrl: what is done about it when the peer has answered
 * @ep: the endpoint
 * @conn: where it goes, once that is known
 * @peer: the address
 * @index: its place in rxm_ep.ops
 * @gen: how often it has been used
 * @refs: what it waits for
 * @err: positive error code
 * @how: how it is sent
 * @tagged: it has a tag
 * @waiting: it counts in rxm_ep.waiting
 * @sent: it counts in rxm_conn.unfinished
 * @awaited: the peer is to answer
 * @busy: @hdr is on its way
 * @seg_no: of the next segment
 * @context: the consumer's
 * @flags: of the post
 * @data: for the peer's completion
 * @tag: its tag
 * @mr: regions the peer reads
 * @nr_mr: how many there are
 * @mapped: of these, not ended yet
 * @sgl: memory that is a scatterlist
 * @nr_sgl: entries of it
 * @atomic: of atomic operations; NULL on an endpoint without them
 * @rma: the peer's memory, of reads and writes
 * @nr_rma: entries of it
 * @hdr: of its packet
 * @rndv: behind that
 * @inject: payload that was copied
 * @done: tells the peer that its memory has been written
 * @target: memory of the peer that is to be written
 * @mem_no: of @target that is being written
 * @mem_off: bytes of it that have been
 * @chunk_max: most bytes of a write
 * @cur: where the bytes are; of an atomic operation, where the result goes
 */
struct rxm_op {
	union {
		struct list_head	node;
		struct llist_node	free;
	};
	struct kofi_cqe		cqe;
	struct rxm_ctrl		ctrl;
	struct rxm_ep		*ep;
	struct rxm_conn		*conn;
	union kofi_ip		peer;
	u32			index;
	u32			gen;
	refcount_t		refs;
	int			err;
	u8			how;
	bool			tagged;
	bool			waiting;
	bool			sent;
	bool			awaited;
	bool			busy;
	u32			seg_no;
	void			*context;
	u64			flags;
	u64			data;
	u64			tag;
	struct fid_mr		*mr[RXM_RNDV_IOV];
	u8			nr_mr;
	u8			mapped;
	struct scatterlist	*sgl;
	size_t			nr_sgl;
	struct rxm_atomic	*atomic;
	struct fi_rma_iov	rma[RXM_RMA_IOV];
	unsigned int		nr_rma;
	struct rxm_hdr		hdr;
	union {
		struct rxm_rndv		rndv;
		u8			inject[RXM_INJECT];
	};
	struct rxm_hdr		done;
	struct rxm_rndv		target;
	unsigned int		mem_no;
	u64			mem_off;
	size_t			chunk_max;
	struct kofi_cursor	cur;	/* last: see kofi_cursor_size() */
};

enum rxm_access {
	RXM_ACCESS_NONE,
	RXM_ACCESS_DATA,	/* of a write that has been done */
	RXM_ACCESS_ATOMIC,	/* to be done, and answered */
};

/**
 * struct rxm_buf - a receive below, and what has arrived in it
 * @node: rxm_conn.held or rxm_conn.accesses, or @more of its first segment
 * @more: segments that arrived before the message found its receive
 * @woken: rxm_ep.woken
 * @cqe: of the receive below
 * @ctrl: of the fetch and the answer
 * @conn: the connection
 * @msg: the message, looking for its receive
 * @op: the receive
 * @waits: the message has no receive yet, or the access no slot
 * @credits: it had a packet with credits, and is to be posted again
 * @request: it counts in rxm_conn.requests
 * @access: enum rxm_access, of one on rxm_conn.accesses; remote CQ data is in @msg
 * @len: bytes of the packet
 * @got: bytes of the message that have arrived
 * @next_no: number of the segment that is to come
 * @fault: the receive's memory could not be written
 * @left: bytes to be fetched
 * @chunk: bytes of the fetch under way
 * @chunk_max: most bytes of one
 * @mem_no: of the sender's memory
 * @mem_off: bytes of it that have been fetched
 * @answer: sent back
 * @rsp: behind it
 * @result: bytes of @data behind that, of an atomic operation
 * @hdr: the packet
 * @data: its payload
 */
struct rxm_buf {
	struct list_head	node;
	struct list_head	more;
	struct list_head	woken;
	struct kofi_cqe		cqe;
	struct rxm_ctrl		ctrl;
	struct rxm_conn		*conn;
	struct kofi_rxmsg	msg;
	struct kofi_rxop	*op;
	bool			waits;
	bool			credits;
	bool			request;
	u8			access;
	size_t			len;
	u64			got;
	u32			next_no;
	bool			fault;
	u64			left;
	size_t			chunk;
	size_t			chunk_max;
	unsigned int		mem_no;
	u64			mem_off;
	struct rxm_hdr		answer;
	struct rxm_atomic_rsp	rsp;
	size_t			result;
	struct rxm_hdr		hdr;
	u8			data[RXM_EAGER];
};

extern struct workqueue_struct *rxm_wq;
extern unsigned int rxm_rx_bufs;
extern unsigned int rxm_held_bufs;
extern unsigned int rxm_max_unknown;

static inline struct rxm_ep *rxm_ep(struct fid_ep *fid)
{
	return container_of(fid, struct rxm_ep, base.ep);
}

/* What messages take their receives from */
static inline struct kofi_rxq *rxm_rxq(struct rxm_ep *ep)
{
	return kofi_ep_rxq(&ep->base, &ep->rxq);
}

/* Most bytes of a read or write below, as far as is known before it is posted */
static inline size_t rxm_chunk_most(const struct rxm_ep *ep)
{
	return min_t(size_t, RXM_MSG_MAX, ep->info->ep_attr->max_msg_size);
}

/* One of @len bytes was too long, or in too many segments, for the provider below. */
static inline bool rxm_chunk_less(size_t *max, size_t len)
{
	*max = max_t(size_t, len / 2, 1);
	return len > PAGE_SIZE;
}

/* What has ended with the connection: the reason, if it is known by now */
static inline int rxm_wc_err(const struct rxm_conn *c,
			     const struct kofi_wc *wc)
{
	if (likely(wc->err != ECANCELED))
		return wc->err;
	return READ_ONCE(c->reason) ?: ECONNRESET;
}

/*
 * Is there no receive for what the peer is to send us, behind its requests: answers, or
 * what we fetch? With c->lock: a request may be sent while the last receive is
 * used up, and the later of the two sees the other.
 */
static inline bool rxm_rx_lacks(const struct rxm_conn *c)
{
	return (!list_empty(&c->rndv) || READ_ONCE(c->requests)) &&
	       READ_ONCE(c->posted) <= (c->flow ? RXM_KEPT : 0);
}

/* main.c */
int rxm_msg_info(struct rxm_domain *dom, const struct fi_info *info,
		 struct fi_info **msg);

/* ep.c */
int rxm_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context);

/* record.c */
struct rxm_conn *rxm_conn_find(struct rxm_ep *ep, const union kofi_ip *addr);
void rxm_conn_todo(struct rxm_conn *c);
void rxm_conn_fail(struct rxm_conn *c, int err);
void rxm_conn_violated(struct rxm_conn *c, const char *what);
void rxm_conn_timer_set(struct rxm_ep *ep, unsigned long when);
fi_addr_t rxm_source(struct rxm_ep *ep, struct rxm_conn *c,
		     struct kofi_av_known *known);
bool rxm_is_unknown(struct rxm_ep *ep, const union kofi_ip *addr);
struct rxm_conn *rxm_conn_new(struct rxm_ep *ep, const union kofi_ip *addr,
			      bool hashed);
void rxm_conn_free(struct rxm_conn *c);
void rxm_conn_reap(struct rxm_conn *c);
int rxm_conn_init(struct rxm_ep *ep);
void rxm_conn_exit(struct rxm_ep *ep);

/* conn.c */
struct fi_info *rxm_conn_info(struct rxm_ep *ep, const union kofi_ip *src);
void rxm_conn_work(struct work_struct *work);
void rxm_conn_timer(struct work_struct *work);
void rxm_conn_event(struct fid_eq *eq, void *context);
void rxm_conn_drain(struct rxm_ep *ep, bool abort);
void rxm_peer_removed(struct fid_ep *fid, const struct sockaddr *addr);
void rxm_peers_added(struct fid_ep *fid);
int rxm_info_set(void **to, size_t *len, const union kofi_ip *addr, bool port);

/* op.c */
void rxm_op_put(struct rxm_op *op, int err);
void rxm_op_report(struct rxm_op *op, int err);
u64 rxm_op_id(const struct rxm_op *op);
void rxm_op_hdr(const struct rxm_op *op, struct rxm_hdr *h, u8 type);
void rxm_op_await(struct rxm_op *op);
bool rxm_op_unawait(struct rxm_op *op);
struct rxm_op *rxm_op_claim(struct rxm_conn *c, u64 id, bool atomic);
void rxm_ctrl_queue(struct rxm_ctrl *ctrl);
bool rxm_copy(struct kofi_cursor *cur, const void *data, size_t len);

/* tx.c */
void rxm_pkt_done(struct fid_cq *cq, const struct kofi_wc *wc);
void rxm_op_done(struct fid_cq *cq, const struct kofi_wc *wc);
void rxm_push_unlock(struct rxm_conn *c, unsigned long irq)
	__releases(&c->lock);
void rxm_push(struct rxm_conn *c);
bool rxm_push_idle(struct rxm_conn *c);
void rxm_tx_fail(struct rxm_conn *c, int err);
void rxm_tx_fail_list(struct list_head *ops, int err);

/* region.c */
int rxm_regions_map(struct rxm_conn *c, struct rxm_op *op);
int rxm_regions_end(struct rxm_op *op);
void rxm_regions_put(struct rxm_op *op);

/* rndv.c */
int rxm_rndv_send(struct rxm_conn *c, struct rxm_op *op);
int rxm_rndv_answered(struct rxm_conn *c, const struct rxm_hdr *h);

/* atomic_post.c */
struct rxm_atomic_args;

extern const struct fi_ops_atomic rxm_atomic_ops;
int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		     enum fi_op op, struct fi_atomic_attr *attr, u64 flags);
int rxm_atomic_fill(struct rxm_op *op, const struct rxm_atomic_args *args);

/* atomic.c */
int rxm_atomic_send(struct rxm_conn *c, struct rxm_op *op);
int rxm_atomic_answered(struct rxm_conn *c, const struct rxm_hdr *h);
int rxm_atomic_do(struct rxm_buf *buf, size_t *result);

/* credit.c */
bool rxm_credits_used(const struct fi_info *msg);
void rxm_credits_begin(struct rxm_conn *c);
int rxm_credits_agree(struct rxm_conn *c, u8 flow, u32 rx_size);
bool rxm_credit_take(struct rxm_conn *c, unsigned int keep);
void rxm_credit_back(struct rxm_conn *c);
int rxm_send_packet(struct rxm_conn *c, const struct fi_msg *msg, u64 flags,
		    unsigned int keep);
int rxm_send_bytes(struct rxm_conn *c, void *buf, size_t len,
		   struct kofi_cqe *cqe, unsigned int keep);
int rxm_credits_come(struct rxm_conn *c, u64 n);
int rxm_credit_used(struct rxm_conn *c);
void rxm_credit_posted(struct rxm_conn *c, bool again);
bool rxm_grant_wanted(struct rxm_conn *c);
int rxm_grant_send(struct rxm_conn *c);

/* Is the peer to be told of receives now? */
static inline bool rxm_grant_due(struct rxm_conn *c)
{
	return unlikely(c->flow) && rxm_grant_wanted(c);
}

/* post.c */

/**
 * struct rxm_post - what a post has beside a message
 * @how: RXM_HOW_NEW for a message
 * @tagged: it has a tag
 * @tag: the tag
 * @rma: the peer's memory, of reads and writes
 * @nr_rma: entries of it
 * @atomic: of an atomic operation
 */
struct rxm_post {
	enum rxm_how			how;
	bool				tagged;
	u64				tag;
	const struct fi_rma_iov		*rma;
	size_t				nr_rma;
	const struct rxm_atomic_args	*atomic;
};

extern const struct fi_ops_rma rxm_rma_ops;
ssize_t rxm_post(struct rxm_ep *ep, const struct fi_msg *msg,
		 const struct rxm_post *post, u64 flags);
ssize_t rxm_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);
ssize_t rxm_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		     u64 flags);
bool rxm_op_wait(struct rxm_op *op);
void rxm_ops_connected(struct rxm_conn *c);
int rxm_tx_init(struct rxm_ep *ep);
void rxm_tx_exit(struct rxm_ep *ep);

/* access.c */
extern char rxm_own_region;
int rxm_access_setup(struct rxm_conn *c);
void rxm_accesses(struct rxm_conn *c);
void rxm_access(struct rxm_buf *buf, enum rxm_access access);
void rxm_remote_data(struct rxm_buf *buf, const struct kofi_wc *wc);
void rxm_access_drop(struct rxm_conn *c, bool all);

/* rx.c */
void rxm_buf_release(struct rxm_buf *buf);
int rxm_atomic_serve(struct rxm_buf *buf);
int rxm_rx_fill(struct rxm_conn *c);
void rxm_rx_starved(struct rxm_ep *ep);
void rxm_rx_woken(struct rxm_ep *ep);
void rxm_rx_disconnected(struct rxm_conn *c);
void rxm_rx_forget(struct rxm_conn *c);

#endif /* _KOFI_RXM_H */
