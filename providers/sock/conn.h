/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Structures of a connection and its stream; sock.h has the functions. */
#ifndef _KOFI_SOCK_CONN_H
#define _KOFI_SOCK_CONN_H

#include <linux/bvec.h>
#include <linux/irq_poll.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include <linux/kofi/lib.h>

#include "proto.h"

struct ksk_cm;
struct ksk_conn;
struct ksk_ep;
struct ksk_rndv;
struct ksk_tls;
struct ksk_unexpected;
struct sock;
struct socket;

/* -------------------------------------------------------------------- socket */

/**
 * struct ksk_cbs - callbacks of a socket before they were replaced
 * @data_ready: original sk_data_ready
 * @write_space: original sk_write_space
 * @state_change: original sk_state_change
 * @error_report: original sk_error_report
 */
struct ksk_cbs {
	void	(*data_ready)(struct sock *sk);
	void	(*write_space)(struct sock *sk);
	void	(*state_change)(struct sock *sk);
	void	(*error_report)(struct sock *sk);
};

/* ------------------------------------------------------------------ transmit */

/**
 * struct ksk_txop - a posted transmit
 * @ubuf: reference from packets that hold the pages of the operation
 * @tag: tag of a tagged message
 * @inv_key: key of the peer that the message invalidates
 * @peer: destination of a datagram
 * @rma: memory of the peer
 * @context: context for the completion. The members from here on are used by every
 *	operation, and share as few cache lines as possible.
 * @data: word for the peer's completion
 * @flags: flags of the post
 * @seq: number in the order of frames; wraps
 * @err: result of the operation on the stream, a positive error code or 0
 * @op: KSK_OP_MSG, _TAGGED, _READ_REQ or _WRITE; an announced tagged message
 *	becomes _RTS, and _DATA when the peer asks for it
 * @ctx: context of an announced message, 0 for other operations
 * @rma_count: entries of @rma
 * @ack: the operation completes when the peer has acknowledged it
 * @zc: pages are sent without a copy, and @ubuf counts their references
 * @zc_copied: the network has copied some of the pages. Written by each release of pages
 *	in any context; read after the last one, ordered by @ubuf
 * @conn: connection of the operation
 * @node: entry of a list of posted operations, or of those that wait for an answer
 * @free: entry of ksk_ep.tx_free while unused
 * @cur: position in the payload, or in the memory that the response to a read
 *	fills. Injected payload is copied over segments of @cur that it does not
 *	need, see ksk_tx_inject().
 *
 * The endpoint's iov_limit and inject_size determine the size of a record.
 */
struct ksk_txop {
	struct ubuf_info	ubuf;
	union {
		struct {
			u64	tag;
			u64	inv_key;
		};
		union kofi_ip	peer;
		struct fi_rma_iov rma[KSK_RMA_MAX];
	};
	void			*context ____cacheline_aligned_in_smp;
	u64			data;
	u64			flags;
	u32			seq;
	int			err;
	u8			op;
	u8			ctx;
	u8			rma_count;
	bool			ack;
	bool			zc;
	bool			zc_copied;
	struct ksk_conn		*conn;
	union {
		struct list_head	node;
		struct llist_node	free;
	};
	struct kofi_cursor	cur;
};

/* Bytes of payload behind an operation's header */
static __always_inline u64 ksk_txop_payload(const struct ksk_txop *op)
{
	return op->op == KSK_OP_READ_REQ || op->op == KSK_OP_RTS ?
	       0 : op->cur.len;
}

/**
 * struct ksk_rsp - a read of the peer that waits for our response
 * @acks: acknowledgments that are sent before it
 * @payload: bytes of the response
 * @count: entries of @seg
 * @cur: entry of @seg that is being sent
 * @reserved: a slot of the completion queue is reserved: the read will be reported
 * @seg: memory that is read; its remaining length shrinks as it is sent
 */
struct ksk_rsp {
	u64			acks;
	u64			payload;
	u8			count;
	u8			cur;
	bool			reserved;
	struct kofi_target	seg[KSK_RMA_MAX];
};

/* Segments of a vector that are sent in one call with their header */
#define KSK_TX_GATHER	4

/* Header and the first segments of a payload, as one array */
union ksk_tx_vec {
	struct kvec	kv[1 + KSK_TX_GATHER];
	struct bio_vec	bv[1 + KSK_TX_GATHER];
};

/* State of the sender. Changes with the socket locked. */
enum ksk_tx_state {
	KSK_TX_IDLE,		/* no sender; the next post sends */
	KSK_TX_ACTIVE,		/* one sender, which checks for new operations before it stops */
	KSK_TX_SPACE,		/* the socket is full, and will call sk_write_space */
};

/* ------------------------------------------------------------------- receive */

/**
 * struct ksk_frame - a decoded header
 * @op: KSK_OP_*
 * @flags: KSK_F_*
 * @ack: the frame is an acknowledgment
 * @ctx: context of a rendezvous
 * @rma_count: entries of @rma
 * @hdr_size: bytes of the header
 * @payload: bytes of the payload
 * @announced: bytes of the message that KSK_OP_RTS announces
 * @data: word of KSK_F_CQ_DATA
 * @inv_key: word of KSK_F_REMOTE_INV
 * @tag: tag of a tagged message
 * @rma: segments of a read request or write
 */
struct ksk_frame {
	u8	op;
	u16	flags;
	bool	ack;
	u8	ctx;
	u8	rma_count;
	u8	hdr_size;
	u64	payload;
	u64	announced;
	u64	data;
	u64	inv_key;
	u64	tag;
	struct {
		u64	addr;
		u64	len;
		u64	key;
	} rma[KSK_RMA_MAX];
};

/**
 * struct ksk_rx - receive side of a stream; used with the socket locked
 * @have: bytes of the header in @hdr
 * @want: bytes of the header that @have must reach
 * @hdr: header of the current frame
 * @frame: decoded header, once it is complete
 * @in_frame: the header is complete, the payload is not
 * @stalled: the header is complete, but the frame needs a receive, a slot of the
 *	completion queue, or room for another response
 * @reserved: the write will be reported, and its slot is reserved
 * @cur: next entry of @seg
 * @err: reason why the stream must be terminated, a positive error code
 * @op: receive that takes the payload, NULL to discard it
 * @unexpected: message without a receive that is stored
 * @read: our read that the payload answers
 * @left: bytes of payload that have not arrived
 * @lost: bytes of payload that did not fit
 * @budget: bytes that may still be read in this run; a frame costs
 *	KSK_FRAME_COST more
 * @seg: our memory to which the payload is written
 * @slot: waiter for a slot of the completion queue
 */
struct ksk_rx {
	unsigned int		have;
	unsigned int		want;
	u8			hdr[KSK_HDR_MAX];
	struct ksk_frame	frame;
	bool			in_frame;
	bool			stalled;
	bool			reserved;
	u8			cur;
	int			err;
	struct kofi_rxop	*op;
	struct ksk_unexpected	*unexpected;
	struct ksk_txop	*read;
	u64			left;
	u64			lost;
	long			budget;
	struct kofi_target	seg[KSK_RMA_MAX];
	struct kofi_cq_wait	slot;
};

/* ---------------------------------------------------------------- connection */

/* Phase of a connection; changes with its stream locked */
enum ksk_conn_phase {
	KSK_CONN_UNUSED,	/* no socket */
	KSK_CONN_CONNECTING,	/* TCP connects */
	KSK_CONN_SECURING,	/* the handshake of TLS runs, and others use the socket */
	KSK_CONN_REQUESTING,	/* request sent, no answer yet */
	KSK_CONN_REQUESTED,	/* request received, not accepted yet */
	KSK_CONN_ESTABLISHED,
	KSK_CONN_DEAD,		/* everything has been completed */
};

/* ksk_conn.flags */
enum {
	KSK_CONN_HALF_SENT,	/* flushed in the middle of a frame */
	KSK_CONN_PUSH,		/* data that FI_MORE holds back has waited long enough */
	KSK_CONN_RSPS,		/* the receiver waits for ksk_rma_prepare() */
	KSK_CONN_MEMORY,	/* the receiver waits for memory */
	KSK_CONN_WOKEN,		/* announced messages may have their receives */
	KSK_CONN_IDLE,		/* it will be closed, unless it is used again */
	KSK_CONN_ASKED,		/* the peer has requested another connection */
	KSK_CONN_TAIL,		/* replaced, and only read (idle.c) */
	KSK_CONN_BEHIND,	/* not read before the tail of its peer */
};

/**
 * struct ksk_conn_ops - functions of a connection's owner
 * @start: connect before there is a socket, with the mutex held; returns 0 or an error
 * @request: test whether the request may be sent, after TCP has connected. NULL if it always
 *	may
 * @established: both peers have agreed; @data is the peer's private data
 * @failed: they have not agreed; a positive error code, and the peer's private data
 * @ended: an established connection has been terminated
 * @hand_over: move operations that have not begun before the termination; others fail
 * @unused: test whether a connection that was marked as idle can be closed
 * @retired: an idle connection is being closed
 * @closing: limit the time for closing a connection that begins no frames
 * @closed: replace a connection that the peer has closed and requests again
 * @many: the owner may have other connections to the same endpoint: messages without a
 *	receive are stored, and operations fail with the reason of the termination
 *
 * All run in process context and, except @start, with the socket locked, if there is one.
 */
struct ksk_conn_ops {
	int	(*start)(struct ksk_conn *c);
	bool	(*request)(struct ksk_conn *c);
	void	(*established)(struct ksk_conn *c, const void *data, size_t len);
	void	(*failed)(struct ksk_conn *c, int err, int prov_errno,
			  const void *data, size_t len);
	void	(*ended)(struct ksk_conn *c);
	void	(*hand_over)(struct ksk_conn *c);
	bool	(*unused)(struct ksk_conn *c);
	void	(*retired)(struct ksk_conn *c);
	void	(*closing)(struct ksk_conn *c);
	void	(*closed)(struct ksk_conn *c);
	bool	many;
};

/**
 * struct ksk_conn_stats - statistics; change with the socket locked, and are read without
 * @tx_frames: frames sent, including acknowledgments
 * @tx_bytes: bytes sent, including headers
 * @tx_acks: acknowledgments sent
 * @tx_responses: responses to reads of the peer
 * @tx_held: operations that waited for answers to earlier ones
 * @tx_inline: runs of the sender in a post, a callback or a softirq
 * @tx_work: runs of the sender in the work item
 * @tx_full: runs of the sender that stopped because the socket was full
 * @tx_retries: runs counted by @tx_full that a timer repeats
 * @tx_bursts: calls of TCP with several frames
 * @tx_rendezvous: tagged messages announced before they were sent
 * @tx_pushes: segments that %FI_MORE held back, sent as nothing followed
 * @tx_zc_bytes: bytes of payload sent without a copy
 * @tx_copy_bytes: bytes of payload copied to the socket
 * @tx_zc_copied: operations sent without a copy that the network has copied
 * @rx_frames: frames received, including acknowledgments
 * @rx_bytes: bytes received, including headers
 * @rx_acks: acknowledgments received
 * @rx_responses: reads answered by the peer
 * @rx_stalls: frames that waited for a receive or for a slot
 * @rx_unexpected: messages without a receive that were stored
 * @rx_full: reads of the peer that waited, as too many others were unanswered
 * @rx_truncated: messages longer than their receive
 * @rx_budget: runs of the receiver that used up their budget
 * @violations: protocol errors of the peer
 */
struct ksk_conn_stats {
	unsigned long	tx_frames;
	unsigned long	tx_bytes;
	unsigned long	tx_acks;
	unsigned long	tx_responses;
	unsigned long	tx_held;
	unsigned long	tx_inline;
	unsigned long	tx_work;
	unsigned long	tx_full;
	unsigned long	tx_retries;
	unsigned long	tx_bursts;
	unsigned long	tx_rendezvous;
	unsigned long	tx_pushes;
	unsigned long	tx_zc_bytes;
	unsigned long	tx_copy_bytes;
	unsigned long	tx_zc_copied;
	unsigned long	rx_frames;
	unsigned long	rx_bytes;
	unsigned long	rx_acks;
	unsigned long	rx_responses;
	unsigned long	rx_stalls;
	unsigned long	rx_unexpected;
	unsigned long	rx_full;
	unsigned long	rx_truncated;
	unsigned long	rx_budget;
	unsigned long	violations;
};

static inline void ksk_stat_add(unsigned long *stat, unsigned long n)
{
	/* readers have no lock; a marked store would take three instructions, not one */
	data_race(*stat += n);
}

static inline void ksk_stat_inc(unsigned long *stat)
{
	ksk_stat_add(stat, 1);
}

/**
 * struct ksk_watch - supervision of a peer that does not answer
 * @work: connect timeout, then the periodic check
 * @base: last time at which nothing was unanswered, in tcp_jiffies32; with the socket
 *	locked
 * @rx_base: last time at which bytes arrived or none were awaited, in tcp_jiffies32; with
 *	the socket locked
 * @rx_bytes: number of received bytes at @rx_base; with the socket locked
 */
struct ksk_watch {
	struct delayed_work	work;
	u32			base;
	u32			rx_base;
	unsigned long		rx_bytes;
};

/**
 * struct ksk_posts - operations posted without the socket's lock
 * @lock: protects the list; irqsave
 * @closed: posts are refused. It is set under @lock. A post that has the socket's lock
 *	reads it without @lock: once there is a stream, the socket is locked, too, when it
 *	is set. A post without a record reads it without a lock, to choose its error
 * @n: length of @list; under @lock, statistics read it without
 * @list: operations, oldest first, newer than those in ksk_tx.queue; under @lock. The
 *	sender tests without @lock whether it is empty
 */
struct ksk_posts {
	spinlock_t		lock;	/* the list */
	bool			closed;
	unsigned int		n;
	struct list_head	list;
};

/**
 * struct ksk_tx - transmits of a stream; used with the socket locked
 * @queue: operations not begun, oldest first
 * @wait: sent operations that wait for an acknowledgment, oldest first
 * @reads: sent reads that wait for the response, oldest first
 * @state: enum ksk_tx_state. Written with the socket locked; posts and the retry timer
 *	read it without
 * @nqueued: length of @queue; statistics read it without the socket's lock
 * @nreads: length of @reads, plus one for a read that is being sent
 * @seq: number of the next operation; wraps
 * @acks: number of acknowledgments to send behind all responses
 * @held: the oldest operation must wait for answers to earlier ones
 * @corked: the socket may hold back the last bytes until more follow. Written with the
 *	socket locked; the retry timer reads it without
 */
struct ksk_tx {
	struct list_head	queue;
	struct list_head	wait;
	struct list_head	reads;
	int			state;
	unsigned int		nqueued;
	unsigned int		nreads;
	u32			seq;
	u64			acks;
	bool			held;
	bool			corked;
};

/**
 * struct ksk_tx_frame - the frame that is being sent; owned by the sender
 * @op: operation of the frame, or NULL
 * @rsp: response that the frame carries, or NULL
 * @cts: context if the frame is a KSK_OP_CTS, otherwise 0
 * @hdr: header in the order of the wire
 * @hdr_len: length of @hdr in bytes, 0 without a frame
 * @hdr_off: bytes of @hdr that have been sent
 * @id: number of the next frame; wraps
 * @left: bytes of the payload that have not been sent
 * @msg: argument for TCP; a member, as a local variable must be cleared each time
 * @vec: vector of @msg
 */
struct ksk_tx_frame {
	struct ksk_txop		*op;
	struct ksk_rsp		*rsp;
	u8			cts;
	u8			hdr[KSK_HDR_MAX];
	u8			hdr_len;
	u8			hdr_off;
	u8			id;
	u64			left;
	struct msghdr		msg;
	union ksk_tx_vec	vec;
};

/**
 * struct ksk_conn_rndv - announced messages of a stream; used with the socket locked
 * @state: lists of announced messages, NULL unless both peers support them
 * @min: least bytes for which tagged messages are announced, 0 for never
 * @out: announced operations with a payload that has not been sent
 * @granted: announced messages with a receive, for which no payload has begun
 * @todo: frames to send that ask for payloads, and payloads to send
 */
struct ksk_conn_rndv {
	struct ksk_rndv		*state;
	unsigned int		min;
	unsigned int		out;
	unsigned int		granted;
	unsigned int		todo;
};

/**
 * struct ksk_zc - operations of a stream with pages that are not copied
 * @min: least bytes for which pages are sent without a copy, 0 for never; with the socket
 *	locked
 * @skip: operations to copy before pages are sent again without a copy. The sender counts
 *	it down without ksk_posts.lock, under which a completion sets it: if a countdown is
 *	lost, one more operation is tried
 * @out: operations with pages that the network may hold
 * @users: operations counted by @out, and operations that are being completed
 */
struct ksk_zc {
	unsigned int		min;
	unsigned int		skip;
	atomic_t		out;
	atomic_t		users;
};

/**
 * struct ksk_rsps - reads of the peer that wait for our response; used with the socket locked
 * @ring: ring of %KSK_READS_MAX responses, NULL before the peer's first read
 * @first: index of the oldest response
 * @n: number of responses, including the one that is being sent
 */
struct ksk_rsps {
	struct ksk_rsp		*ring;
	unsigned int		first;
	unsigned int		n;
};

/**
 * struct ksk_conn - a connection and its stream
 * @ep: endpoint of the connection
 * @ops: functions of its owner
 * @sock: socket, from connect or adoption until it is freed. Set once, with @mutex and the
 *	socket's lock; ksk_conn_queue() and @work read it without
 * @flags: KSK_CONN_HALF_SENT and the following bits; atomic
 * @phase: enum ksk_conn_phase. Written with the socket locked, without a socket under
 *	@mutex; the retry timer and @work read it without
 * @dead: reason why the stream must be terminated, a positive error code. Set once, by
 *	cmpxchg() in any context, and read without a lock
 * @ext: KSK_EXT_* that both peers know
 * @in_poll: number of running calls of @poll
 * @be: words on the wire are big-endian
 * @in_work: @work owns the socket, or did and has not scheduled @poll yet. Only @work
 *	writes it; callbacks of the socket read it
 * @poll: runs the receiver and the sender in softirq context
 * @work: runs the sender in process context, and everything that must sleep
 * @wq: work queue of @work and @watch; may change until it connects
 * @retry: wakes the sender when no acknowledgment will, and pushes out data that
 *	%FI_MORE holds back
 * @mutex: serialises control calls
 * @saved: original callbacks of the socket
 * @watch: supervision of the peer
 * @cm: request being sent or answer being received, NULL afterwards
 * @tls: TLS of the connection, NULL without; set before @sock, with @mutex held
 * @posts: operations posted without the socket's lock
 * @tx: transmits of the stream
 * @retired: no frame may begin, as one of the two directions is closed. Written with the
 *	socket locked. The search for idle connections reads it without, as a guess;
 *	ksk_zc_put() does after a barrier
 * @rndv: announced messages
 * @frame: the frame that is being sent
 * @zc: operations with pages that are not copied
 * @rsps: reads of the peer that wait for our response
 * @rxmsg: message of the stream, during the search for its receive. Posts of receives
 *	write it: it begins a cache line that the sender does not use
 * @rx: receive side of the stream
 * @stats: statistics
 */
struct ksk_conn {
	struct ksk_ep		*ep;
	const struct ksk_conn_ops *ops;
	struct socket		*sock;
	unsigned long		flags;
	int			phase;
	int			dead;
	u32			ext;
	atomic_t		in_poll;
	bool			be;
	bool			in_work;
	struct irq_poll		poll;
	struct work_struct	work;
	struct workqueue_struct	*wq;
	struct timer_list	retry;

	/* seldom used */
	struct mutex		mutex;	/* control calls */
	struct ksk_cbs		saved;
	struct ksk_watch	watch;
	struct ksk_cm		*cm;
	struct ksk_tls		*tls;

	/* posts and the sender */
	struct ksk_posts	posts ____cacheline_aligned_in_smp;
	struct ksk_tx		tx;
	bool			retired;
	struct ksk_conn_rndv	rndv;
	struct ksk_tx_frame	frame;
	struct ksk_zc		zc;
	struct ksk_rsps		rsps;

	/* the receiver */
	struct kofi_rxmsg	rxmsg ____cacheline_aligned_in_smp;
	struct ksk_rx		rx;
	struct ksk_conn_stats	stats;
};

/* Count an acknowledgment to send. The caller of the receiver runs the sender. */
static inline void ksk_tx_ack(struct ksk_conn *c)
{
	c->tx.acks++;
}

/**
 * ksk_tx_ready - test whether the receiver has made work for the sender
 * @c: the connection
 *
 * The caller of the receiver tests it, and then runs the sender.
 *
 * Context: locked.
 * Return: true if there is something to send, or if an operation that waited may
 * now begin.
 */
static inline bool ksk_tx_ready(const struct ksk_conn *c)
{
	return c->tx.acks || c->rsps.n || c->tx.held || c->rndv.todo;
}

#endif /* _KOFI_SOCK_CONN_H */
