/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Declarations shared by the files of kofi_sock.ko.
 *
 * Locks, outermost first:
 *
 *   ksk_conn.mutex	control calls of one connection
 *   ksk_dom_mutex	domains and their endpoints; the notifier of devices takes
 *			it inside the RTNL
 *   the socket's lock	"locked" below means: owned by the caller
 *			(lock_sock), or its slock held while no context owns it
 *			(softirq and inline senders). It protects the stream.
 *   ksk_rdm.lock	connections of an unconnected endpoint; irqsave
 *   ksk_conn.tx_lock	operations posted without the socket's lock; irqsave
 *   kofi_rxq.lock, then locks of the core's queues
 *
 *   ksk_req_mutex	connection requests that have not been taken; innermost
 *			of the mutexes, never held while waiting for work
 */
#ifndef _KOFI_SOCK_H
#define _KOFI_SOCK_H

#include <linux/types.h>
#include <linux/irq_poll.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include <linux/kofi/lib.h>

#include "proto.h"

#define KSK_INJECT_MAX		128
#define KSK_TX_RX_MAX		65536
#define KSK_MSG_MAX		((size_t)MAX_RW_COUNT)
#define KSK_READS_MAX		64	/* outstanding reads of each side */
#define KSK_FRAME_COST		512	/* budget of a frame, in addition to its bytes */

/* ------------------------------------------------------ module parameters */

extern unsigned int ksk_inline_max;
extern unsigned int ksk_rx_budget;
extern unsigned int ksk_connect_timeout;
extern unsigned int ksk_handshake_timeout;
extern unsigned int ksk_silence_timeout;
extern unsigned int ksk_frame_timeout;
extern unsigned int ksk_keepalive_idle;
extern unsigned int ksk_keepalive_intvl;
extern unsigned int ksk_keepalive_cnt;
extern unsigned int ksk_max_pending;
extern unsigned int ksk_max_unknown;
extern unsigned int ksk_port_min;
extern unsigned int ksk_port_max;
extern unsigned int ksk_tx_size;
extern unsigned int ksk_rx_size;
extern unsigned int ksk_zerocopy_min;
extern unsigned int ksk_rendezvous_min;

extern struct workqueue_struct *ksk_wq;
extern struct workqueue_struct *ksk_wq_reclaim;
extern struct kofi_provider ksk_provider;

/**
 * struct ksk_tunables - options for fi_set_val() and fi_setopt()
 * @connect_timeout: milliseconds until the peer must have answered
 * @handshake_timeout: milliseconds until an incoming request must be complete
 * @silence_timeout: milliseconds without a sign of life while data is outstanding
 * @frame_timeout: milliseconds without another byte of an incomplete frame, 0 for never
 * @keepalive_idle: milliseconds until an idle peer is probed, 0 for never
 * @keepalive_intvl: seconds between probes
 * @keepalive_cnt: unanswered probes after which the peer is dead
 * @reclaim_safe: memory may be written back through it, so it may use the emergency
 *	reserves
 * @cpu: CPU of its work item, -1 for the CPU on which its packets arrive
 * @zerocopy_min: least bytes for which pages are sent without a copy, 0 for never
 * @rendezvous_min: least bytes for which tagged messages are announced, 0 for never
 * @zerocopy_always: send pages even if the network is expected to copy them
 * @sndbuf: bytes of the socket's send buffer, 0 for TCP's choice
 * @rcvbuf: bytes of the socket's receive buffer, 0 for TCP's choice
 */
struct ksk_tunables {
	unsigned int	connect_timeout;
	unsigned int	handshake_timeout;
	unsigned int	silence_timeout;
	unsigned int	frame_timeout;
	unsigned int	keepalive_idle;
	unsigned int	keepalive_intvl;
	unsigned int	keepalive_cnt;
	unsigned int	reclaim_safe;
	int		cpu;
	unsigned int	zerocopy_min;
	unsigned int	rendezvous_min;
	bool		zerocopy_always;
	int		sndbuf;
	int		rcvbuf;
};

void ksk_tunables_init(struct ksk_tunables *tun);
int ksk_tunables_set(struct ksk_tunables *tun, int name, const void *val);
int ksk_tunables_get(const struct ksk_tunables *tun, int name, void *val);

/* ----------------------------------------------------------------- info.c */

int ksk_info_check_srx(const struct fi_rx_attr *attr);
int ksk_getinfo(u32 version, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **info);
int ksk_if_find(struct net *net, const struct sockaddr *addr, int vrf,
		struct kofi_netif *found);

/* --------------------------------------------------------------- domain.c */

/**
 * struct ksk_domain - one network device
 * @base: the core's part
 * @node: entry of the list of domains; under ksk_dom_mutex
 * @ifindex: index of the device, 0 after its removal; under ksk_dom_mutex
 * @carrier: the device has a link, as last reported; under ksk_dom_mutex
 * @eps: endpoints of the domain; under ksk_dom_mutex
 */
struct ksk_domain {
	struct kofi_domain	base;
	struct list_head	node;
	int			ifindex;
	bool			carrier;
	struct list_head	eps;
};

extern struct mutex ksk_dom_mutex;

int ksk_domain(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **domain, void *context);
int ksk_domain_init(void);
void ksk_domain_exit(void);

struct ksk_conn;
struct ksk_ep;
struct ksk_listener;
struct ksk_req;
struct ksk_unexpected;

/* --------------------------------------------------------------- socket.c */

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

int ksk_socket_create(struct net *net, int family, int type, int ifindex,
		      struct socket **sockp);
int ksk_socket_bind(struct socket *sock, const union kofi_ip *src);
void ksk_socket_accepted(struct socket *sock);
int ksk_sendmsg_shared(struct sock *sk, struct msghdr *msg, size_t len);
void ksk_socket_exit(void);
void ksk_socket_tune(struct socket *sock, const struct ksk_tunables *tun,
		     const struct fi_info *info);
void ksk_ep_reserve(struct ksk_ep *ep);
void ksk_socket_abort(struct socket *sock);
void ksk_socket_fin(struct socket *sock, int how);
void ksk_socket_shutdown(struct socket *sock);
void ksk_socket_release(struct socket *sock);
bool ksk_tclass_known(u32 tclass);

/* ------------------------------------------------------------------- cm.c */

/**
 * struct ksk_cm - a CM message that is being sent or received
 * @len: bytes in @buf; the whole message when it is sent
 * @off: bytes that have been sent
 * @hdr: header of the message
 * @buf: the message
 */
struct ksk_cm {
	unsigned int	len;
	unsigned int	off;
	union {
		struct ksk_cm_hdr	hdr;
		u8			buf[KSK_CM_MAX];
	};
};

bool ksk_cm_big_endian(const struct ksk_cm *cm);
u32 ksk_cm_ext(const struct ksk_cm *cm);
static inline size_t ksk_cm_data_len(const struct ksk_cm *cm)
{
	return cm->len - sizeof(cm->hdr);
}

extern const struct fi_ops_cm ksk_ep_cm_ops;

void ksk_cm_format(struct ksk_cm *cm, u8 type, u32 ext, const void *data,
		   size_t len);
int ksk_cm_want(const struct ksk_cm *cm, unsigned int *want);
int ksk_cm_read(struct sock *sk, struct ksk_cm *cm);
int ksk_cm_send(struct sock *sk, struct ksk_cm *cm);
int ksk_cm_name(struct socket *sock, const union kofi_ip *src, void *addr,
		size_t *len);
void ksk_cm_work(struct ksk_conn *c);
int ksk_cm_start(struct ksk_conn *c, const union kofi_ip *to,
		 const union kofi_ip *src, u32 ext, const void *data,
		 size_t len);
void ksk_cm_step(struct kofi_obj *obj, const char *step, int err);
void ksk_cm_fail(struct ksk_conn *c, int err, int prov_errno,
		 const void *data, size_t len);

/* ------------------------------------------------------------------ pep.c */

int ksk_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_pep **pep, void *context);

/* ------------------------------------------------------------------- tx.c */

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
 * @zc_copied: the network has copied some of the pages
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

/* Segments of a vector that are sent in one call with their header */
#define KSK_TX_GATHER	4

#define KSK_BURST		8	/* frames sent in one call */
#define KSK_BURST_HDR		56	/* bytes of a header with one rma segment */
static_assert(sizeof(struct ksk_hdr) + 8 + 8 + sizeof(struct ksk_rma) <=
	      KSK_BURST_HDR);
#define KSK_BURST_PAYLOAD	SZ_8K

/* Header and the first segments of a payload, as one array */
union ksk_tx_vec {
	struct kvec	kv[1 + KSK_TX_GATHER];
	struct bio_vec	bv[1 + KSK_TX_GATHER];
};

/**
 * struct ksk_burst - short frames that are sent in one call
 * @n: number of frames
 * @segs: entries of @kv
 * @more: other frames follow
 * @total: total length in bytes
 * @op: operation of each frame, NULL for an acknowledgment
 * @len: length of each frame in bytes
 * @kv: headers and payloads in turn
 * @hdr: header of each frame
 */
struct ksk_burst {
	unsigned int	n;
	unsigned int	segs;
	bool		more;
	size_t		total;
	struct ksk_txop	*op[KSK_BURST];
	u32		len[KSK_BURST];
	struct kvec	kv[2 * KSK_BURST];
	u8		hdr[KSK_BURST][KSK_BURST_HDR];
};

/* Bytes of payload behind an operation's header */
static __always_inline u64 ksk_txop_payload(const struct ksk_txop *op)
{
	return op->op == KSK_OP_READ_REQ || op->op == KSK_OP_RTS ?
	       0 : op->cur.len;
}

/**
 * struct ksk_post - parameters of a post that struct fi_msg lacks
 * @op: KSK_OP_*
 * @tag: tag of a tagged message
 * @rma: memory of the peer
 * @rma_count: entries of @rma
 */
struct ksk_post {
	u8			op;
	u64			tag;
	const struct fi_rma_iov	*rma;
	size_t			rma_count;
};

/* Flags of every transmit, and flags of some transmits */
#define KSK_TX_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define KSK_TX_FLAGS	(FI_COMPLETION | FI_MORE | FI_FENCE)
#define KSK_TX_OUT_FLAGS (KSK_TX_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA | \
			 KOFI_NO_COMPLETION | KSK_TX_LEVELS)

/* State of the sender. Changes with the socket locked. */
enum ksk_tx_state {
	KSK_TX_IDLE,		/* no sender; the next post sends */
	KSK_TX_ACTIVE,		/* one sender, which checks for new operations before it stops */
	KSK_TX_SPACE,		/* the socket is full, and will call sk_write_space */
};

void ksk_tx_gather(struct ksk_conn *c, const struct iov_iter *from,
		   size_t budget, struct iov_iter *to);
void ksk_burst_collect(const struct ksk_conn *c, struct ksk_burst *b,
		       size_t budget);

int ksk_tx_init(struct ksk_ep *ep, size_t size);
void ksk_tx_exit(struct ksk_ep *ep);
ssize_t ksk_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);
ssize_t ksk_tx_tpost(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		     u64 flags);
ssize_t ksk_tx_submit(struct ksk_ep *ep, const struct fi_msg *msg,
		      const struct ksk_post *post, u64 flags);
int ksk_tx_add(struct ksk_conn *c, struct ksk_txop *op);
bool ksk_tx_run(struct ksk_conn *c, size_t budget);
bool ksk_tx_acked(struct ksk_conn *c);
struct ksk_txop *ksk_tx_reading(struct ksk_conn *c);
void ksk_tx_read_done(struct ksk_conn *c);
bool ksk_tx_space(struct ksk_conn *c);
void ksk_tx_flush(struct ksk_conn *c);
void ksk_tx_retry(struct timer_list *t);
bool ksk_tx_pushes(struct ksk_conn *c);
int ksk_tx_leave(struct ksk_conn *c, struct ksk_txop *op, bool deferred);
void ksk_tx_send_deferred(struct ksk_conn *c);
bool ksk_tx_quiet(struct ksk_conn *c);
bool ksk_tx_waiting(struct ksk_conn *c);
unsigned int ksk_tx_format_op(void *hdr, const struct ksk_txop *op, u8 id,
			      bool be);
unsigned int ksk_tx_format_rsp(void *hdr, u64 payload, u8 id, bool be);
unsigned int ksk_tx_format_ack(void *hdr, u8 id, bool be);
unsigned int ksk_tx_format_cts(void *hdr, u8 ctx, u8 id, bool be);

/* ------------------------------------------------------------- zerocopy.c */

void ksk_zc_begin(struct ksk_conn *c, struct ksk_txop *op);
void ksk_zc_msg(const struct sock *sk, struct ksk_txop *op,
		struct msghdr *msg);
void ksk_zc_done(struct ksk_txop *op);
void ksk_zc_wait(struct ksk_conn *c);

/* ------------------------------------------------------------------ rma.c */

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

extern const struct fi_ops_rma ksk_rma_ops;

void ksk_rma_prepare(struct ksk_conn *c);
void ksk_rma_exit(struct ksk_conn *c);
int ksk_rma_read(struct ksk_conn *c);
bool ksk_rma_source(struct ksk_conn *c, struct iov_iter *iter);
void ksk_rma_sent(struct ksk_conn *c, size_t bytes);
void ksk_rma_answered(struct ksk_conn *c);
int ksk_rma_write(struct ksk_conn *c);
int ksk_rma_place(struct ksk_conn *c, struct kofi_skb_part from, size_t len);
void ksk_rma_pause(struct ksk_conn *c);
void ksk_rma_written(struct ksk_conn *c);
void ksk_rma_flush(struct ksk_conn *c);

/* ------------------------------------------------------------------- rx.c */

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

void ksk_rx_init(struct ksk_rx *rx);
void ksk_rx_setup(struct ksk_conn *c);
bool ksk_rx_run(struct ksk_conn *c);
void ksk_rx_flush(struct ksk_conn *c);
ssize_t ksk_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);
ssize_t ksk_rx_tpost(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		     u64 flags);

/* ----------------------------------------------------------------- conn.c */

/* How ksk_conn_down() terminates a stream */
enum ksk_down {
	KSK_DOWN_SHUTDOWN,	/* in order; fails without a connection */
	KSK_DOWN_DRAIN,		/* in order, if there is a connection */
	KSK_DOWN_ABORT,		/* by a reset; TCP discards its data */
};

/* Phase of a connection; changes with its socket locked */
enum ksk_conn_phase {
	KSK_CONN_UNUSED,	/* no socket */
	KSK_CONN_CONNECTING,	/* TCP connects */
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
 * struct ksk_conn_stats - statistics; change with the socket locked
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
 * struct ksk_conn - a connection and its stream
 * @ep: endpoint of the connection
 * @ops: functions of its owner
 * @sock: socket, from connect or adoption until it is freed
 * @flags: KSK_CONN_HALF_SENT and the following bits
 * @phase: enum ksk_conn_phase
 * @dead: reason why the stream must be terminated, a positive error code; set once
 * @ext: KSK_EXT_* that both peers know
 * @in_poll: number of running calls of @poll
 * @be: words on the wire are big-endian
 * @in_work: @work owns the socket, or did and has not scheduled @poll yet
 * @poll: runs the receiver and the sender in softirq context
 * @work: runs the sender in process context, and everything that must sleep
 * @wq: work queue of @work and @watch; may change until it connects
 * @retry: wakes the sender when no acknowledgment will, and pushes out data that
 *	%FI_MORE holds back
 * @mutex: serialises control calls
 * @saved: original callbacks of the socket
 * @watch: connect timeout, then supervision of a peer that does not answer
 * @watch_base: last time at which nothing was unanswered, in tcp_jiffies32
 * @watch_rx_base: last time at which bytes arrived or none were awaited, in tcp_jiffies32
 * @watch_rx: number of received bytes at @watch_rx_base
 * @cm: request being sent or answer being received, NULL afterwards
 * @tx_lock: protects @tx_closed, @tx_posted and @tx_nposted
 * @tx_closed: posts are refused; changes with the socket locked, too
 * @tx_posted: operations posted without the socket's lock, oldest first; newer
 *	than those in @tx_queue
 * @tx_nposted: length of @tx_posted
 * @tx_queue: operations not begun, oldest first. The members from here on are used
 *	with the socket locked.
 * @tx_nqueued: length of @tx_queue
 * @tx_wait: sent operations that wait for an acknowledgment, oldest first
 * @tx_reads: sent reads that wait for the response, oldest first
 * @tx_state: enum ksk_tx_state
 * @tx_nreads: length of @tx_reads, plus one for a read that is being sent
 * @tx_seq: number of the next operation
 * @tx_acks: number of acknowledgments to send behind all responses
 * @zc_min: least bytes for which pages are sent without a copy, 0 for never
 * @retired: no frame may begin, as one of the two directions is closed
 * @rndv: state of announced messages, NULL unless both peers support them
 * @rndv_min: least bytes for which tagged messages are announced
 * @rndv_out: announced operations with a payload that has not been sent
 * @rndv_granted: announced messages with a receive, for which no payload has begun
 * @rndv_todo: frames to send that ask for payloads, and payloads to send
 * @tx_op: operation of the current frame. The sender owns the members from here on.
 * @tx_rsp: response of the current frame
 * @tx_cts: context of the current frame, a KSK_OP_CTS, or 0
 * @tx_held: the oldest operation must wait for answers to earlier ones
 * @tx_hdr: header of the current frame
 * @tx_hdr_len: length of @tx_hdr, 0 without a current frame
 * @tx_hdr_off: bytes of @tx_hdr that have been sent
 * @tx_left: bytes of the current payload that have not been sent
 * @tx_id: number of the next frame
 * @tx_corked: the socket may hold back the last bytes until more follow
 * @zc_out: operations with pages that the network may hold
 * @zc_users: operations counted by @zc_out, and those that are being completed
 * @zc_skip: operations to copy before pages are sent again without a copy
 * @tx_msg: argument for TCP; kept here, as a local one must be cleared each time
 * @tx_vec: vector of @tx_msg
 * @rsps: ring of %KSK_READS_MAX responses, NULL before the peer's first read; with
 *	the socket locked
 * @rsp_first: index of the oldest response
 * @rsp_count: number of responses, including the one that is being sent
 * @rxmsg: message of the stream, during the search for its receive
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
	struct delayed_work	watch;
	u32			watch_base;
	u32			watch_rx_base;
	unsigned long		watch_rx;
	struct ksk_cm		*cm;

	/* operations posted without the socket's lock */
	spinlock_t		tx_lock ____cacheline_aligned_in_smp;
	bool			tx_closed;
	unsigned int		tx_nposted;
	struct list_head	tx_posted;

	struct list_head	tx_queue;
	struct list_head	tx_wait;
	struct list_head	tx_reads;
	int			tx_state;
	unsigned int		tx_nqueued;
	unsigned int		tx_nreads;
	unsigned int		zc_min;
	u32			tx_seq;
	u64			tx_acks;
	bool			retired;
	struct ksk_rndv		*rndv;
	unsigned int		rndv_min;
	unsigned int		rndv_out;
	unsigned int		rndv_granted;
	unsigned int		rndv_todo;

	struct ksk_txop		*tx_op;
	struct ksk_rsp		*tx_rsp;
	bool			tx_held;
	u8			tx_cts;
	u8			tx_hdr[KSK_HDR_MAX];
	u8			tx_hdr_len;
	u8			tx_hdr_off;
	u8			tx_id;
	bool			tx_corked;
	atomic_t		zc_out;
	atomic_t		zc_users;
	unsigned int		zc_skip;
	u64			tx_left;
	struct msghdr		tx_msg;
	union ksk_tx_vec	tx_vec;

	struct ksk_rsp		*rsps;
	unsigned int		rsp_first;
	unsigned int		rsp_count;

	struct kofi_rxmsg	rxmsg ____cacheline_aligned_in_smp;
	struct ksk_rx		rx;
	struct ksk_conn_stats	stats;
};

void ksk_conn_init(struct ksk_conn *c, struct ksk_ep *ep,
		   const struct ksk_conn_ops *ops);
void ksk_conn_attach(struct ksk_conn *c, struct socket *sock, int phase);
void ksk_conn_established(struct ksk_conn *c, const void *data, size_t len);
int ksk_conn_down(struct ksk_conn *c, enum ksk_down how);
void ksk_conn_close(struct ksk_conn *c);
void ksk_conn_exit(struct ksk_conn *c);

/* Count an acknowledgment to send. The caller of the receiver runs the sender. */
static inline void ksk_tx_ack(struct ksk_conn *c)
{
	c->tx_acks++;
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
	return c->tx_acks || c->rsp_count || c->tx_held || c->rndv_todo;
}

/* ------------------------------------------------------------------- ep.c */

/**
 * struct ksk_ep_type - functions of an endpoint type that does not connect
 * @add: send an operation to a peer, or leave it to another context; any context.
 *	Returns 0, and the operation may have completed; or an error, and the caller
 *	owns the operation
 * @refused: a post is about to be refused, as @add has returned -EAGAIN; NULL for
 *	a type with an @add that never returns -EAGAIN
 * @abort: terminate outstanding operations with a positive error code; any context
 */
struct ksk_ep_type {
	int	(*add)(struct ksk_ep *ep, fi_addr_t dest, struct ksk_txop *op);
	void	(*refused)(struct ksk_ep *ep);
	void	(*abort)(struct ksk_ep *ep, int err);
};

/**
 * struct ksk_ep - common part of endpoints of all types
 * @base: the core's part
 * @domain: domain of the endpoint
 * @domain_node: entry of ksk_domain.eps; under ksk_dom_mutex
 * @tun: options
 * @reserves: counts as a user of the emergency reserves
 * @src: address to bind to; family 0 for none
 * @conn: the only connection; NULL for a type that has many, or none
 * @type: functions of a type without @conn
 * @tx_ops: array of all operations
 * @tx_op_size: bytes of an operation in @tx_ops
 * @tx_free_lock: serialises removal from @tx_free
 * @tx_free: unused operations; returned to it without a lock
 * @rxq: posted receives, unless a shared context has them
 */
struct ksk_ep {
	struct kofi_ep		base;
	struct ksk_domain	*domain;
	struct list_head	domain_node;
	struct ksk_tunables	tun;
	bool			reserves;
	union kofi_ip		src;
	struct ksk_conn		*conn;
	const struct ksk_ep_type *type;
	void			*tx_ops;
	size_t			tx_op_size;
	spinlock_t		tx_free_lock ____cacheline_aligned_in_smp;
	struct kofi_freelist	tx_free;
	struct kofi_rxq		rxq ____cacheline_aligned_in_smp;
};

static inline struct ksk_ep *ksk_ep(struct fid_ep *fid)
{
	return container_of(fid, struct ksk_ep, base.ep);
}

/*
 * Limit memory allocations of an endpoint's own threads: they start no I/O, as other I/O
 * may wait for them. The threads of a reclaim-safe endpoint use the reserves, and
 * reclaim nothing.
 */
static inline unsigned int ksk_memalloc_save(const struct ksk_tunables *tun)
{
	return memalloc_flags_save(PF_MEMALLOC_NOIO |
				   (tun->reclaim_safe ? PF_MEMALLOC : 0));
}

static inline void ksk_memalloc_restore(unsigned int flags)
{
	memalloc_flags_restore(flags);
}

/* The work queue of an endpoint or a listener with these options */
static inline struct workqueue_struct *ksk_wq_for(const struct ksk_tunables *tun)
{
	return tun->reclaim_safe ? ksk_wq_reclaim : ksk_wq;
}

/* Flags of allocations in atomic context */
static inline gfp_t ksk_gfp_atomic(const struct ksk_ep *ep)
{
	return GFP_ATOMIC | __GFP_NOWARN |
	       (ep->tun.reclaim_safe ? __GFP_MEMALLOC : 0);
}

/*
 * Set how the socket allocates; locked. The flag is tested, not the option: the flag
 * lets the socket receive packets that were allocated from the reserves.
 */
static inline void ksk_socket_gfp(struct sock *sk, gfp_t gfp)
{
	sk->sk_allocation = gfp | __GFP_NOWARN |
			    (sock_flag(sk, SOCK_MEMALLOC) ? __GFP_MEMALLOC : 0);
}

extern const struct fi_ops_ep ksk_ep_opt_ops;
extern const struct fi_ops_msg ksk_ep_msg_ops;
extern const struct fi_ops_tagged ksk_ep_tagged_ops;
extern const struct kofi_obj_ops ksk_ep_obj_ops;

int ksk_ep_init(struct ksk_ep *ep, struct fid_domain *domain,
		const struct fi_info *info, const struct kofi_ep_ops *ops,
		void *context);
void ksk_ep_exit(struct ksk_ep *ep);
int ksk_ep_alloc(struct ksk_ep *ep);
void ksk_ep_list(struct ksk_ep *ep);
void ksk_ep_unlist(struct ksk_ep *ep);
void ksk_ep_abort(struct ksk_ep *ep, int err);
int ksk_ep_control(struct fi_fid *fid, int command, void *arg);
ssize_t ksk_ep_cancel(struct fid_ep *fid, void *context);
int ksk_msg_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);

/* ---------------------------------------------------------------- sched.c */

void ksk_conn_queue(struct ksk_conn *c);
void ksk_conn_abort(struct ksk_conn *c, int err);
void ksk_conn_ask(struct ksk_conn *c);
void ksk_conn_go_on(struct ksk_conn *c);
void ksk_conn_softirq(struct ksk_conn *c);

/* --------------------------------------------------------------- report.c */

void ksk_tx_complete(struct ksk_conn *c, struct ksk_txop *op, int err);
int ksk_tx_flush_err(const struct ksk_conn *c);
void ksk_conn_violated(struct ksk_conn *c, const char *reason);
void ksk_rx_violation(struct ksk_conn *c, const char *what);
void ksk_rx_cut(struct ksk_conn *c, const struct kofi_rxmsg *rxmsg,
		struct kofi_rxop *op);
void ksk_conn_stats_add(struct ksk_conn_stats *sum,
			const struct ksk_conn_stats *stats);

/* --------------------------------------------------------------- stream.c */

bool ksk_rdm_crowded(struct ksk_ep *ep);
void ksk_rdm_deferred(struct ksk_conn *c);
fi_addr_t ksk_rdm_source(struct ksk_conn *c);
void ksk_rdm_rename(struct ksk_conn *c, struct kofi_rxmsg *rxmsg);

/* Source of messages */
static __always_inline fi_addr_t ksk_conn_source(struct ksk_conn *c)
{
	return c->ops->many ? ksk_rdm_source(c) : READ_ONCE(c->ep->base.source);
}

/* ----------------------------------------------------------- unexpected.c */

int ksk_unexpected_store(struct ksk_conn *c, struct kofi_rxop **op);
struct kofi_cursor *ksk_unexpected_cursor(struct ksk_unexpected *u);
int ksk_unexpected_whole(struct ksk_unexpected *u);
void ksk_unexpected_cut(struct ksk_unexpected *u);
bool ksk_unexpected_admit(struct ksk_conn *c, size_t bytes);
void ksk_unexpected_release(struct ksk_conn *c, size_t bytes);

/* ----------------------------------------------------------------- rndv.c */

/* Must an operation be announced? */
static __always_inline bool ksk_rndv_wanted(const struct ksk_conn *c,
					    const struct ksk_txop *op)
{
	return c->rndv && op->op == KSK_OP_TAGGED && c->rndv_min &&
	       op->cur.len >= c->rndv_min && !(op->flags & FI_INJECT);
}

void ksk_rndv_begin(struct ksk_conn *c, struct ksk_txop *op);
bool ksk_rndv_sent(struct ksk_conn *c, struct ksk_txop *op);
bool ksk_rndv_next(struct ksk_conn *c, bool data);
void ksk_rndv_flush_tx(struct ksk_conn *c, struct list_head *list);
int ksk_rndv_rts(struct ksk_conn *c);
int ksk_rndv_cts(struct ksk_conn *c);
int ksk_rndv_data(struct ksk_conn *c);
void ksk_rndv_woken(struct ksk_conn *c);
void ksk_rndv_flush(struct ksk_conn *c);

/* ------------------------------------------------------------------ rdm.c */

int ksk_rdm_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);

/* --------------------------------------------------------------- dgram.c */

int ksk_dgram_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **ep, void *context);

/* Pure functions of the wire format, which are static without tests */
#if IS_ENABLED(CONFIG_KUNIT)
int ksk_rx_decode(struct ksk_rx *rx, bool be);
#endif

#endif /* _KOFI_SOCK_H */
