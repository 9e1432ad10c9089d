/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_rxm: endpoints with many peers, each over a connection of another provider.
 *
 * main.c	the module, discovery, fabrics, domains, memory regions
 * ep.c		endpoints: creation, options, statistics, posts of receives
 * conn.c	connections: requests, events, retries, termination
 * peer.c	records of peers
 * post.c	posts of transmits
 * tx.c		the order in which packets are sent
 * tx_op.c	records of transmits: completion, headers, answers of the peer
 * rndv.c	messages that the peer fetches (rendezvous)
 * rndv_region.c	regions of these messages
 * atomic.c	atomic operations: requests, and their execution for peers
 * atomic_post.c	posts of atomic operations
 * rx.c		received packets, messages, rendezvous
 * access.c	reports of the peers' accesses to memory
 * credit.c	flow control by credits, over devices that need it
 * proto.c	the wire format
 *
 * "Below" refers to the provider of the connected endpoints. This provider is a consumer
 * of it like any other, and knows nothing of it but the public headers.
 *
 * Locks
 *
 * ep->mutex	connections are opened and closed, by the work item and by control calls
 * c->rx_lock	_bh: received packets of a connection
 * ep->lock	irqsave, inside c->rx_lock: ep->todo, ep->pending, changes of ep->peers.dests
 * c->lock	irqsave, inside c->rx_lock and ep->lock: packets to send
 *
 * Packets are posted below without c->lock: c->tx.sender marks the context that sends.
 */
#ifndef _KOFI_RXM_H
#define _KOFI_RXM_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/kofi/peer.h>

#include "proto.h"

#define RXM_IOV_LIMIT	4	/* segments of a message, unless hints ask otherwise */
#define RXM_IOV_MAX	8	/* most segments of a message; below, the header takes one more */
#define RXM_INJECT	128
#define RXM_SIZE	256	/* operations per direction, unless hints ask otherwise */
#define RXM_SIZE_MAX	65536
#define RXM_SRX_MAX	65536	/* shared receive contexts: memory is the real limit */
#define RXM_RMA_IOV	4
#define RXM_CQ_DATA	sizeof_field(struct rxm_hdr, data)
#define RXM_MSG_TX	64	/* most outstanding transmits of a connection below */
#define RXM_MSG_CQ	256	/* slots of its completion queue, plus one for each receive */
#define RXM_REGIONS	8	/* regions of a connection, for rendezvous */
#define RXM_REGION_SEGS	257	/* segments of a region: 1 MiB of single pages at any offset */
#define RXM_VALS	16	/* provider-specific names of fi_set_val() */
#define RXM_REFILL	(HZ / 10)	/* jiffies until a failed post of receives is repeated */
#define RXM_BUDGET	32	/* events, connections or messages in one run of the work item */
#define RXM_TRIES	8	/* connections in a row that may fail before anything is sent */

#define RXM_ATOMICS	8	/* outstanding atomic requests of a connection */
#define RXM_REQUESTS	(RXM_REGIONS + RXM_ATOMICS)	/* of a peer, in addition to its receives */

#define RXM_RC_BUFS	4	/* times rx_bufs over InfiniBand and RoCE: RXM_MSG_TX by default */
#define RXM_CREDIT_BUFS	16	/* least receives of a connection with credits */
#define RXM_KEPT	4	/* most credits that messages may not use */
#define RXM_TX_HOLD	HZ	/* jiffies until the accepting side may send first */

#define RXM_TX_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)
#define RXM_RMA_LEVELS	(RXM_TX_LEVELS | FI_DELIVERY_COMPLETE)
#define RXM_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_MORE | FI_FENCE | \
			 KOFI_NO_COMPLETION | RXM_TX_LEVELS)
#define RXM_FETCH_FLAGS	(RXM_TX_FLAGS & ~FI_INJECT)

/*
 * Completion levels of accesses that the provider below supports; messages have no
 * FI_DELIVERY_COMPLETE. iWARP reports no arrival.
 */
static inline u64 rxm_levels(const struct fi_info *msg)
{
	return msg->ep_attr->protocol == FI_PROTO_IWARP ? FI_INJECT_COMPLETE :
							  RXM_RMA_LEVELS;
}

/**
 * struct rxm_provider - a provider over another one
 * @base: the core's part
 * @below: name of the provider below
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
	struct fid_eq		*eq;	/* events of @msg */
	struct fid_domain	*msg;
};

struct rxm_mr {
	struct kofi_mr		base;
	struct fid_mr		*msg;
	u64			key;	/* requested by the consumer */
};

/**
 * struct rxm_stats - statistics of an endpoint
 * @connects: established connections
 * @refused: connect requests that were refused
 * @violations: connections closed because the peer violated the protocol
 * @evicted: records of disconnected unknown peers that were freed for other peers
 * @eager: messages sent in one packet
 * @segmented: messages sent in several packets
 * @rendezvous: messages sent by rendezvous
 * @unexpected: received messages that found no receive
 */
struct rxm_stats {
	atomic64_t	connects;
	atomic64_t	refused;
	atomic64_t	violations;
	atomic64_t	evicted;
	atomic64_t	eager;
	atomic64_t	segmented;
	atomic64_t	rendezvous;
	atomic64_t	unexpected;
};

/**
 * struct rxm_vals - values for fi_set_val() on each connection; under rxm_ep.mutex
 * @set: bitmap of the entries of @val that have been set
 * @val: values; the name of a value is its index plus FI_PROV_SPECIFIC
 */
struct rxm_vals {
	unsigned long		set;
	unsigned int		val[RXM_VALS];
};

/**
 * struct rxm_ep_tx - records of an endpoint's transmits
 * @ops: records; the index is part of the message number. Fixed while the endpoint is
 *	enabled
 * @nr_ops: length of @ops
 * @free: unused records of @ops
 * @free_lock: irqsave, innermost; serialises removal from @free and @free_pkts
 * @pkts: additional headers for segments, shared by all transmits. Fixed while the
 *	endpoint is enabled
 * @free_pkts: unused entries of @pkts
 */
struct rxm_ep_tx {
	struct rxm_op		**ops;
	size_t			nr_ops;
	struct kofi_freelist	free;
	spinlock_t		free_lock;	/* removal from @free, @free_pkts */
	struct rxm_pkt		*pkts;
	struct kofi_freelist	free_pkts;
};

/**
 * struct rxm_ep - an endpoint
 * @base: the core's part
 * @dom: domain of the endpoint
 * @rxq: posted receives, unless a shared context has them: rxm_rxq()
 * @info: attributes of the endpoints below
 * @flow: connections use credits
 * @saw: messages are ordered behind earlier writes (FI_ORDER_SAW)
 * @vals: values for fi_set_val() on each connection
 * @pep: passive endpoint below, to which peers connect
 * @eq: connection events
 * @name: address of @pep; under @mutex
 * @process: kofi_peer_new_life()
 * @mutex: serialises changes of connections and of their records
 * @closed: the endpoint is being closed; set under @lock, before @mutex is taken, so that
 *	a holder of @mutex sees it by READ_ONCE() and stops early
 * @peers: records of peers by address, number and fi_addr_t, the number of transmits that
 *	wait for a connection, and the number of unknown peers. Changes under @mutex, but
 *	of fi_addr_t under @lock
 * @conns: list of all struct rxm_conn; under @mutex
 * @departed: list of struct rxm_conn of unknown peers, in the order in which their
 *	connections were closed; under @mutex
 * @lock: protects @pending, @todo and changes of @peers.dests
 * @pending: transmits to peers without a record
 * @todo: connections for the work item
 * @woken_lock: protects @woken; irqsave, innermost
 * @woken: list of struct rxm_buf that may find their receive or their slot now
 * @work: does the work that needs process context
 * @timer: repeats connect attempts, and starts @work
 * @idle: wait queue of rxm_conn_quiesce(), until no context sends
 * @tx: records of transmits
 * @held: number of struct rxm_buf that hold a packet
 * @starved: a connection has fewer receives than it should; without a lock, as each
 *	released buffer reads it: rxm_rx_room() orders it with @held
 * @stats: statistics
 */
struct rxm_ep {
	struct kofi_ep		base;
	struct rxm_domain	*dom;
	struct kofi_rxq		rxq;
	struct fi_info		*info;
	bool			flow;
	bool			saw;
	struct rxm_vals		vals;
	struct fid_pep		*pep;
	struct fid_eq		*eq;
	union kofi_ip		name;
	u32			process;
	struct mutex		mutex;	/* connections and records */
	bool			closed;
	struct kofi_peers	peers;
	struct list_head	conns;
	struct list_head	departed;
	spinlock_t		lock;	/* @pending, @todo, changes of @peers.dests */
	struct list_head	pending;
	struct list_head	todo;
	spinlock_t		woken_lock;	/* @woken; innermost */
	struct list_head	woken;
	struct work_struct	work;
	struct delayed_work	timer;
	wait_queue_head_t	idle;
	struct rxm_ep_tx	tx;
	atomic_t		held;
	bool			starved;
	struct rxm_stats	stats;
};

/**
 * enum rxm_origin - reason for which a record is made
 * @RXM_ORIGIN_POST: a post to the peer
 * @RXM_ORIGIN_REQUEST: a connect request of the peer, which may be unknown
 * @RXM_ORIGIN_SELF: a connect request of the endpoint itself
 */
enum rxm_origin {
	RXM_ORIGIN_POST,
	RXM_ORIGIN_REQUEST,
	RXM_ORIGIN_SELF,
};

/**
 * enum rxm_sender - the one context that posts the packets of a connection below
 * @RXM_SENDER_NONE: no context sends
 * @RXM_SENDER_ACTIVE: a context sends
 * @RXM_SENDER_AGAIN: a context sends, and must check the lists once more
 *
 * Legal transitions, under rxm_conn.lock in rxm_push_unlock():
 *
 * * RXM_SENDER_NONE to RXM_SENDER_ACTIVE: the connection is in KOFI_PEER_CONNECTED, and the
 *   caller becomes the sender
 * * RXM_SENDER_ACTIVE to RXM_SENDER_AGAIN: another context calls rxm_push_unlock()
 * * RXM_SENDER_AGAIN to RXM_SENDER_ACTIVE: the sender checks the lists once more
 * * RXM_SENDER_ACTIVE to RXM_SENDER_NONE: the sender has checked the lists
 * * RXM_SENDER_AGAIN to RXM_SENDER_NONE: the sender has used up its budget, and the work
 *   item continues
 */
enum rxm_sender {
	RXM_SENDER_NONE,
	RXM_SENDER_ACTIVE,
	RXM_SENDER_AGAIN,
};

/**
 * struct rxm_retry - connect attempts to a peer; under rxm_ep.mutex
 * @base: deadline of rejected attempts, once @trying is set, and the current delay. The
 *	completion of a packet resets the delay and @tries by WRITE_ONCE(), as it cannot
 *	sleep for the mutex
 * @when: time in jiffies of the next attempt, or at which rxm_flow.hold expires
 * @tries: failed connections in a row, since a packet was sent; see @base
 * @trying: the deadline in @base is set
 */
struct rxm_retry {
	struct kofi_retry	base;
	unsigned long		when;
	unsigned int		tries;
	bool			trying;
};

/**
 * struct rxm_conn_tx - packets to send to a peer; under rxm_conn.lock
 * @queue: list of struct rxm_op that are not sent yet, in the order of their posts
 * @queued: length of @queue
 * @atomics: number of atomic operations on @rndv. The sender, which alone adds to it, reads it
 *	by READ_ONCE() without the lock: an answer that subtracts from it pushes
 * @ctrl: list of struct rxm_ctrl to send before @queue
 * @rndv: list of rxm_op.ctrl: transmits that wait for an answer of the peer
 * @unfinished: number of transmits off @queue that are not complete; the sender counts
 *	up, and the last reference to a transmit counts down without the lock
 * @sender: enum rxm_sender
 */
struct rxm_conn_tx {
	struct list_head	queue;
	unsigned int		queued;
	unsigned int		atomics;
	struct list_head	ctrl;
	struct list_head	rndv;
	atomic_t		unfinished;
	enum rxm_sender		sender;
};

/**
 * struct rxm_flow - credits of a connection, see credit.c
 * @on: the connection uses credits; fixed while the connection exists
 * @hold: nothing may be sent before the peer has sent a packet. The first received
 *	packet clears it under rxm_conn.rx_lock, or the timer under rxm_ep.mutex. Both
 *	use WRITE_ONCE(), as they have no lock in common, and push after that
 * @grant_now: a receive must be granted at once if the peer is short of credits. Posts of
 *	receives set it under rxm_conn.rx_lock, and the sender clears it. Both use
 *	WRITE_ONCE(), as they have no lock in common
 * @granting: @grant is being sent; under rxm_conn.lock, or while the connection sends
 *	nothing yet
 * @reserve: number of credits that messages may not use; fixed before a packet is sent
 * @credits: number of the peer's receives that our packets may use; the sender takes
 *	them, and received grants add to them
 * @granted: number of our receives that packets of the peer may use; the sender adds to
 *	them, and received packets take them
 * @ungranted: number of our receives that the peer does not know of; posts of receives
 *	add to them, and the sender takes them
 * @grant: header of the packet that grants credits; owned by the sender, and by the
 *	provider below while @granting is set
 * @grant_cqe: completion of @grant
 */
struct rxm_flow {
	bool			on;
	bool			hold;
	bool			grant_now;
	bool			granting;
	unsigned int		reserve;
	atomic_t		credits;
	atomic_t		granted;
	atomic_t		ungranted;
	struct rxm_hdr		grant;
	struct kofi_cqe		grant_cqe;
};

/**
 * struct rxm_conn_rx - received packets of a peer; under rxm_conn.rx_lock
 * @known: remembered address of the peer, for completions
 * @held: list of struct rxm_buf: messages that are stored, incomplete or being
 *	fetched, and atomic requests that are being answered
 * @accesses: list of struct rxm_buf that wait for a slot of the completion queue
 * @posted: number of outstanding receives below. rxm_rx_lacks() reads @posted and @requests
 *	by READ_ONCE() under rxm_conn.lock, as it must not take rxm_conn.rx_lock inside
 * @nr_held: number of buffers that hold a packet, and so are not posted
 * @requests: number of held buffers with a request that waits for our answer; see @posted
 * @stored: number of messages that wait for a receive
 * @stored_bufs: number of buffers of the stored messages
 * @flushed: receives below have been flushed, and none is posted again
 * @unnamed: a message on @held has an unknown sender
 */
struct rxm_conn_rx {
	struct kofi_av_known	known;
	struct list_head	held;
	struct list_head	accesses;
	unsigned int		posted;
	unsigned int		nr_held;
	unsigned int		requests;
	unsigned int		stored;
	unsigned int		stored_bufs;
	bool			flushed;
	bool			unnamed;
};

/**
 * struct rxm_conn - a peer, and the connection to it if there is one
 * @base: the core's part. Its number is the number of the connection in packets of the peer.
 *	Its phase changes under rxm_ep.mutex and @lock, but to KOFI_PEER_WANTED from
 *	KOFI_PEER_IDLE under @lock alone; from and to KOFI_PEER_NEW under rxm_ep.lock, too.
 *	Received packets and refused posts read it without a lock: if they miss a change,
 *	closing flushes the receives, and connecting repeats the posts
 * @ep: endpoint of the record
 * @list: entry of rxm_ep.conns; under rxm_ep.mutex
 * @departed: entry of rxm_ep.departed; under rxm_ep.mutex
 * @todo: entry of rxm_ep.todo; under rxm_ep.lock
 * @self: the peer is the endpoint itself, and the record has the accepted side of the
 *	connection. Posts do not find it by address; fixed
 * @err: positive error code that terminates the connection; the work item closes it. Any
 *	context sets it by cmpxchg(), with any lock; the others use READ_ONCE()
 * @reason: positive error code for operations that closing flushes; changes under
 *	rxm_ep.mutex. Completions read it by READ_ONCE(), as they cannot sleep
 * @peer_id: number of the connection in our packets, and the peer's process above it
 * @retry: connect attempts
 * @connects: number of established connections to the peer; changes under rxm_ep.mutex.
 *	rxm_peer_next() reads it by READ_ONCE() under RCU, and cannot sleep
 * @region_segs: segments of a region below; 0 if the peer cannot fetch messages
 * @msg: endpoint below
 * @cq: completion queue of @msg
 * @lock: protects @tx
 * @tx: packets to send
 * @flow: credits
 * @rx_lock: protects @rx
 * @rx: received packets
 * @target_known: remembered address of the peer, for accesses reported from below, which
 *	serialises them
 * @rcu: delays the release, as posts may still use the record
 */
struct rxm_conn {
	struct kofi_peer	base;
	struct rxm_ep		*ep;
	struct list_head	list;
	struct list_head	departed;
	struct list_head	todo;
	bool			self;
	int			err;
	int			reason;
	u64			peer_id;
	struct rxm_retry	retry;
	unsigned int		connects;
	unsigned int		region_segs;
	struct fid_ep		*msg;
	struct fid_cq		*cq;
	spinlock_t		lock;	/* packets to send */
	struct rxm_conn_tx	tx;
	struct rxm_flow		flow;
	spinlock_t		rx_lock;	/* received packets */
	struct rxm_conn_rx	rx;
	struct kofi_av_known	target_known;
	struct rcu_head		rcu;
};

/**
 * struct rxm_ctrl - a packet or access to post below, on behalf of a message
 * @node: entry of rxm_conn_tx.ctrl
 * @cqe: completion of the operation below
 * @conn: connection of the operation
 * @send: posts it, in any context; returns -EAGAIN to be called later, another error
 *	terminates the connection
 * @done: called at its completion, with a positive error code or 0; softirq or
 *	process context
 */
struct rxm_ctrl {
	struct list_head	node;
	struct kofi_cqe		cqe;
	struct rxm_conn		*conn;
	int			(*send)(struct rxm_ctrl *ctrl);
	void			(*done)(struct rxm_ctrl *ctrl, int err);
};

/* Additional header for a segment, while the header in the transmit's record is in use */
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
 * struct rxm_atomic - additional part of a transmit's record for an atomic operation
 * @call: RXM_OP_ATOMIC, ...
 * @datatype: enum fi_datatype
 * @op: enum fi_op
 * @count: entries of the peer's memory
 * @nr_out: entries of @out; 0 if @inject is used
 * @len: bytes of operands and of comparison values
 * @out: operands and comparison values in the consumer's memory
 * @inject: copy of operands and comparison values
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
 * enum rxm_phase - phase of a transmit, as its endpoint and its connection count it
 * @RXM_PHASE_QUEUED: the transmit counts nowhere: it is being accepted, or on the queue of
 *	a connected peer
 * @RXM_PHASE_WAITING: the transmit waits for a connection, and counts in
 *	kofi_peers.waiting
 * @RXM_PHASE_SENT: the transmit is off the queue, and counts in rxm_conn_tx.unfinished
 *
 * Legal transitions, under rxm_conn.lock, or under rxm_ep.lock for a peer without a record:
 *
 * * RXM_PHASE_QUEUED to RXM_PHASE_WAITING: the post finds no connection, or the
 *   connection of a queued transmit is closed
 * * RXM_PHASE_WAITING to RXM_PHASE_QUEUED: the peer is connected
 * * RXM_PHASE_QUEUED to RXM_PHASE_SENT: all packets are posted below, or such a post has
 *   failed
 */
enum rxm_phase {
	RXM_PHASE_QUEUED,
	RXM_PHASE_WAITING,
	RXM_PHASE_SENT,
};

/**
 * struct rxm_op_regions - regions of a message that the peer fetches
 * @mr: regions that the peer reads
 * @nr: number of entries of @mr
 * @mapped: number of entries of @mr that are not invalidated yet
 *
 * The sender owns the members until the peer answers. Then the steps of rxm_op.ctrl own
 * them, one after the other.
 */
struct rxm_op_regions {
	struct fid_mr		*mr[RXM_RNDV_IOV];
	u8			nr;
	u8			mapped;
};

/**
 * struct rxm_op_rma - memory of the peer that a transmit reads or writes
 * @iov: entries of the memory; fixed once the transmit is posted
 * @nr: number of entries of @iov; fixed once the transmit is posted
 */
struct rxm_op_rma {
	struct fi_rma_iov	iov[RXM_RMA_IOV];
	unsigned int		nr;
};

/**
 * struct rxm_op_write - rendezvous by write
 * @done: header that notifies the peer that @target has been written
 * @target: memory of the peer
 * @mem_no: current entry of @target
 * @mem_off: number of bytes that are written in the current entry
 * @chunk_max: most bytes of a write below
 *
 * The answer of the peer sets the members. Then the steps of rxm_op.ctrl own them, one
 * after the other.
 */
struct rxm_op_write {
	struct rxm_hdr		done;
	struct rxm_rndv		target;
	unsigned int		mem_no;
	u64			mem_off;
	size_t			chunk_max;
};

/**
 * struct rxm_op - a transmit
 * @node: entry of rxm_conn_tx.queue or rxm_ep.pending
 * @free: entry of rxm_ep_tx.free while unused
 * @cqe: completion of a read or write, or of the packet with @hdr
 * @ctrl: next step after an answer of the peer; @ctrl.node is on rxm_conn_tx.rndv
 *	until the answer
 * @ep: endpoint of the transmit
 * @conn: connection of the transmit; NULL on rxm_ep.pending. Answers with an invalid
 *	number read it by READ_ONCE(), while the lock of another connection covers it
 * @peer: address of the peer, if the post did not find the record by number
 * @index: index in rxm_ep_tx.ops
 * @gen: number of uses of the record
 * @refs: the post, each packet or access below, and an answer of the peer
 * @err: first error, a positive error code; set by cmpxchg()
 * @how: enum rxm_how
 * @phase: enum rxm_phase; the last reference reads it without a lock
 * @tagged: the message has a tag
 * @awaited: the peer has not answered yet; under rxm_conn.lock
 * @busy: a packet that is being sent uses @hdr. The sender sets it by xchg(), and the
 *	completion clears it, so neither takes a lock
 * @seg_no: number of the next segment
 * @context: context of the consumer
 * @flags: flags of the post
 * @data: remote CQ data
 * @tag: tag of the message
 * @regions: regions of a rendezvous
 * @sgl: scatterlist of the post, or NULL
 * @nr_sgl: entries of @sgl
 * @atomic: part for atomic operations; NULL on an endpoint without them
 * @hdr: header of the packet
 * @rndv: list of memory that follows @hdr
 * @inject: copied payload that follows @hdr
 * @rma: memory of the peer, of RXM_HOW_READ and RXM_HOW_WRITE
 * @write: rendezvous by write, of RXM_HOW_RNDV
 * @cur: local memory; of an atomic operation, the memory for the result
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
	u8			phase;
	bool			tagged;
	bool			awaited;
	bool			busy;
	u32			seg_no;
	void			*context;
	u64			flags;
	u64			data;
	u64			tag;
	struct rxm_op_regions	regions;
	struct scatterlist	*sgl;
	size_t			nr_sgl;
	struct rxm_atomic	*atomic;
	struct rxm_hdr		hdr;
	union {
		struct rxm_rndv		rndv;
		u8			inject[RXM_INJECT];
	};
	union {
		struct rxm_op_rma	rma;
		struct rxm_op_write	write;
	};
	struct kofi_cursor	cur;	/* last: see kofi_cursor_size() */
};

enum rxm_access {
	RXM_ACCESS_NONE,
	RXM_ACCESS_DATA,	/* remote CQ data of a completed write */
	RXM_ACCESS_ATOMIC,	/* a request to execute and to answer */
};

/**
 * struct rxm_buf - a receive below, and the packet it holds
 * @node: entry of rxm_conn_rx.held, rxm_conn_rx.accesses, or @more of the first segment
 * @more: later segments that arrived before the message found its receive
 * @woken: entry of rxm_ep.woken; under rxm_ep.woken_lock
 * @cqe: completion of the receive below
 * @ctrl: fetch of the payload, and the answer
 * @conn: connection of the buffer
 * @msg: the message, for the search of its receive
 * @op: receive of the message, or NULL
 * @waits: the message waits for a receive, or the access for a slot
 * @credits: it held a packet with credits, and is about to be posted again
 * @request: counts in rxm_conn_rx.requests
 * @access: enum rxm_access, while on rxm_conn_rx.accesses; remote CQ data is in @msg
 * @len: bytes of the packet
 * @got: bytes of the message that have arrived
 * @next_no: number of the next segment
 * @fault: memory of the receive could not be written
 * @left: bytes that remain to be fetched
 * @chunk: bytes of the current fetch
 * @chunk_max: most bytes of one fetch
 * @mem_no: current entry of the sender's memory
 * @mem_off: bytes that are fetched from the current entry
 * @answer: header of the answer
 * @rsp: status that follows @answer for an atomic request
 * @result: bytes of old values in @data that follow @rsp
 * @hdr: header of the packet
 * @data: payload of the packet
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

/* Parameters of the module, which sysfs changes at any time: read them by READ_ONCE() */
extern unsigned int rxm_rx_bufs;
extern unsigned int rxm_held_bufs;
extern unsigned int rxm_max_unknown;
extern unsigned int rxm_max_unknown_host;
extern unsigned int rxm_max_unknown_net;

/* The record of a peer, or NULL for NULL */
static inline struct rxm_conn *rxm_conn(struct kofi_peer *base)
{
	return base ? container_of(base, struct rxm_conn, base) : NULL;
}

static inline struct rxm_ep *rxm_ep(struct fid_ep *fid)
{
	return container_of(fid, struct rxm_ep, base.ep);
}

/* The queue of receives for messages of this endpoint */
static inline struct kofi_rxq *rxm_rxq(struct rxm_ep *ep)
{
	return kofi_ep_rxq(&ep->base, &ep->rxq);
}

/* Most bytes of a read or write below, as far as known before it is posted */
static inline size_t rxm_chunk_most(const struct rxm_ep *ep)
{
	return ep->info->ep_attr->max_msg_size;
}

/* Halve @max: the provider below refused @len bytes as too long or too fragmented. */
static inline bool rxm_chunk_less(size_t *max, size_t len)
{
	*max = max_t(size_t, len / 2, 1);
	return len > PAGE_SIZE;
}

/* Error of a completion below; a flushed operation gets the connection's reason if known. */
static inline int rxm_wc_err(const struct rxm_conn *c,
			     const struct kofi_wc *wc)
{
	if (likely(wc->err != ECANCELED))
		return wc->err;
	return READ_ONCE(c->reason) ?: ECONNRESET;
}

/*
 * Do requests of the peer use up the receives, while an answer or fetched bytes must
 * arrive behind them? Called with c->lock: a request may be sent while the last receive
 * is used up, and the later of the two contexts finds the other's change.
 */
static inline bool rxm_rx_lacks(const struct rxm_conn *c)
{
	return (!list_empty(&c->tx.rndv) || READ_ONCE(c->rx.requests)) &&
	       READ_ONCE(c->rx.posted) <= (c->flow.on ? RXM_KEPT : 0);
}

/* main.c */
int rxm_msg_info(struct rxm_domain *dom, const struct fi_info *info,
		 struct fi_info **msg);

/* ep.c */
int rxm_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context);

/* peer.c */
struct rxm_conn *rxm_conn_find(struct rxm_ep *ep, const union kofi_ip *addr);
void rxm_conn_todo(struct rxm_conn *c);
void rxm_conn_fail(struct rxm_conn *c, int err);
void rxm_conn_step(struct rxm_conn *c, const char *step, int err);
void rxm_conn_violated(struct rxm_conn *c, const char *what);
void rxm_conn_timer_set(struct rxm_ep *ep, unsigned long when);
fi_addr_t rxm_source(struct rxm_ep *ep, struct rxm_conn *c,
		     struct kofi_av_known *known);
struct rxm_conn *rxm_conn_new(struct rxm_ep *ep, const union kofi_ip *addr,
			      enum rxm_origin origin);
void rxm_conn_free(struct rxm_conn *c);
bool rxm_conn_hide(struct rxm_conn *c);
void rxm_conn_adopt(struct rxm_conn *c);
void rxm_conn_reap(struct rxm_conn *c);
struct kofi_unknown_max rxm_unknown_max(void);
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

/* tx_op.c */
void rxm_op_put(struct rxm_op *op, int err);
void rxm_op_report(struct rxm_op *op, int err);
u64 rxm_op_id(const struct rxm_op *op);
void rxm_op_hdr(const struct rxm_op *op, struct rxm_hdr *h, u8 type);
void rxm_op_await(struct rxm_op *op);
bool rxm_op_unawait(struct rxm_op *op);
struct rxm_op *rxm_op_claim(struct rxm_conn *c, u64 id, bool atomic);
void rxm_ctrl_queue(struct rxm_ctrl *ctrl);

/* tx.c */
void rxm_pkt_done(struct fid_cq *cq, const struct kofi_wc *wc);
void rxm_op_done(struct fid_cq *cq, const struct kofi_wc *wc);
void rxm_push_unlock(struct rxm_conn *c, unsigned long irq)
	__releases(&c->lock);
void rxm_push(struct rxm_conn *c);
bool rxm_push_idle(struct rxm_conn *c);
void rxm_tx_fail(struct rxm_conn *c, int err);
void rxm_tx_fail_list(struct list_head *ops, int err);

/* rndv_region.c */
int rxm_regions_map(struct rxm_conn *c, struct rxm_op *op);
int rxm_regions_end(struct rxm_op *op);
void rxm_regions_put(struct rxm_op *op);

/* rndv.c */
int rxm_rndv_send(struct rxm_conn *c, struct rxm_op *op);
int rxm_rndv_answered(struct rxm_conn *c, const struct rxm_hdr *h);

/* atomic_post.c */

extern const struct fi_ops_atomic rxm_atomic_ops;
int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		     enum fi_op op, struct fi_atomic_attr *attr, u64 flags);
int rxm_atomic_fill(struct rxm_op *op, const struct kofi_atomic_post *args);

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

/* Must receives be granted to the peer now? */
static inline bool rxm_grant_due(struct rxm_conn *c)
{
	return unlikely(c->flow.on) && rxm_grant_wanted(c);
}

/* post.c */

/**
 * struct rxm_post - parameters of a post that struct fi_msg lacks
 * @how: RXM_HOW_NEW for a message
 * @tagged: the message has a tag
 * @tag: tag of the message
 * @rma: memory of the peer that is read or written
 * @nr_rma: entries of @rma
 * @atomic: parameters of an atomic operation
 */
struct rxm_post {
	enum rxm_how			how;
	bool				tagged;
	u64				tag;
	const struct fi_rma_iov		*rma;
	size_t				nr_rma;
	const struct kofi_atomic_post	*atomic;
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
bool rxm_rx_unclaimed(struct rxm_conn *c);
bool rxm_rx_discard(struct rxm_conn *c);
void rxm_rx_forget(struct rxm_conn *c);

#endif /* _KOFI_RXM_H */
