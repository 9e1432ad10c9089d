/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of kofi_sock.ko share.
 *
 * Locks, outermost first:
 *
 *   sock_dom_mutex	domains and their endpoints, for the device notifier
 *   sock_ep.cm_mutex	control calls of one endpoint
 *   the socket's lock	"locked" below means: owned by the caller
 *			(lock_sock), or its slock held while nobody owns it
 *			(softirq and inline senders). Everything about the
 *			stream, both ways, belongs to who has it locked.
 *   sock_ep.tx_lock	what is posted without the socket's lock; irqsave
 *   kofi_rxq.lock, then locks of the core's queues
 *
 *   sock_req_mutex	connection requests nobody has taken yet; innermost
 *			of the mutexes, never held while waiting for work
 */
#ifndef _KOFI_SOCK_H
#define _KOFI_SOCK_H

#include <linux/irq_poll.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include <linux/kofi/provider.h>

#include "proto.h"

#define SOCK_INJECT_MAX		128
#define SOCK_IOV_LIMIT		16
#define SOCK_TX_RX_MAX		65536
#define SOCK_MSG_MAX		((size_t)MAX_RW_COUNT)
#define SOCK_READS_MAX		64	/* reads unanswered, each way */

/* ------------------------------------------------------ module parameters */

extern unsigned int sock_inline_max;
extern unsigned int sock_rx_budget;
extern unsigned int sock_connect_timeout;
extern unsigned int sock_handshake_timeout;
extern unsigned int sock_silence_timeout;
extern unsigned int sock_keepalive_idle;
extern unsigned int sock_keepalive_intvl;
extern unsigned int sock_keepalive_cnt;
extern unsigned int sock_max_pending;
extern unsigned int sock_port_min;
extern unsigned int sock_port_max;
extern unsigned int sock_tx_size;
extern unsigned int sock_rx_size;
extern unsigned int sock_zerocopy_min;

extern struct workqueue_struct *sock_wq;
extern struct kofi_provider sock_provider;

/**
 * struct sock_tunables - what fi_set_val() and fi_setopt() choose
 * @connect_timeout: milliseconds until the peer has answered
 * @handshake_timeout: milliseconds for an incoming request to be complete
 * @silence_timeout: milliseconds without a sign of life while data is out
 * @keepalive_idle: milliseconds until an idle peer is asked, 0 for never
 * @keepalive_intvl: seconds between these questions
 * @keepalive_cnt: unanswered ones after which it is dead
 * @reclaim_safe: memory may be written back through it: the emergency
 *	reserves are its
 * @cpu: where its work item runs, -1 for the CPU its packets arrive on
 * @zerocopy_min: bytes from which on pages are sent without copying them, 0
 *	for never
 * @zerocopy_always: also where the network copies them all the same
 * @sndbuf: bytes of the socket's send buffer, 0 for TCP's choice
 * @rcvbuf: bytes of the socket's receive buffer, 0 for TCP's choice
 */
struct sock_tunables {
	unsigned int	connect_timeout;
	unsigned int	handshake_timeout;
	unsigned int	silence_timeout;
	unsigned int	keepalive_idle;
	unsigned int	keepalive_intvl;
	unsigned int	keepalive_cnt;
	unsigned int	reclaim_safe;
	int		cpu;
	unsigned int	zerocopy_min;
	bool		zerocopy_always;
	int		sndbuf;
	int		rcvbuf;
};

void sock_tunables_init(struct sock_tunables *tun);
int sock_tunables_set(struct sock_tunables *tun, int name, const void *val);
int sock_tunables_get(const struct sock_tunables *tun, int name, void *val);

/* ----------------------------------------------------------------- info.c */

/* An address of either family; there is always one of them in it, or zero */
union sock_addr {
	struct sockaddr		sa;
	struct sockaddr_in	in4;
	struct sockaddr_in6	in6;
};

/**
 * struct sock_if - an address of an interface
 * @addr: the address, port 0
 * @prefix: its network's length in bits
 * @loopback: it belongs to the loopback device
 * @dev: name of the interface
 */
struct sock_if {
	union sock_addr	addr;
	u8		prefix;
	bool		loopback;
	char		dev[IFNAMSIZ];
};

int sock_getinfo(u32 version, const char *node, const char *service, u64 flags,
		 const struct fi_info *hints, struct fi_info **info);
int sock_if_find(struct net *net, const struct sockaddr *addr,
		 struct sock_if *found);
char *sock_if_fabric(const struct sock_if *i);
size_t sock_addr_len(const struct sockaddr *addr);
int sock_addr_check(const void *addr, size_t len);
int sock_addr_copy(const struct sockaddr *from, void *to, size_t *len);

/* --------------------------------------------------------------- domain.c */

/**
 * struct sock_domain - one network device
 * @base: the core's
 * @node: on the list of domains
 * @ifindex: the device, 0 once it is gone; under sock_dom_mutex
 * @eps: endpoints of the domain, under sock_dom_mutex
 */
struct sock_domain {
	struct kofi_domain	base;
	struct list_head	node;
	int			ifindex;
	struct list_head	eps;
};

extern struct mutex sock_dom_mutex;

int sock_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		void *context);
int sock_domain_init(void);
void sock_domain_exit(void);

/* ------------------------------------------------------------------- cm.c */

/**
 * struct sock_cbs - a socket's callbacks before they were ours
 * @data_ready: of the socket
 * @write_space: of the socket
 * @state_change: of the socket
 * @error_report: of the socket
 */
struct sock_cbs {
	void	(*data_ready)(struct sock *sk);
	void	(*write_space)(struct sock *sk);
	void	(*state_change)(struct sock *sk);
	void	(*error_report)(struct sock *sk);
};

/**
 * struct sock_cm - a CM message on its way in or out
 * @len: bytes in @buf, of a message that is sent: all of them
 * @off: bytes already sent
 * @hdr: the message's start
 * @buf: the message
 */
struct sock_cm {
	unsigned int	len;
	unsigned int	off;
	union {
		struct sock_cm_hdr	hdr;
		u8			buf[SOCK_CM_MAX];
	};
};

bool sock_cm_big_endian(const struct sock_cm *cm);
u32 sock_cm_ext(const struct sock_cm *cm);
static inline size_t sock_cm_data_len(const struct sock_cm *cm)
{
	return cm->len - sizeof(cm->hdr);
}

struct sock_ep;
struct sock_req;

int sock_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_pep **pep, void *context);
int sock_req_take(struct net *net, fid_t handle, struct sock_req **req);
void sock_req_free(struct sock_req *req);
struct socket *sock_req_adopt(struct sock_req *req, bool *big_endian,
			      u32 *ext);

extern const struct fi_ops_cm sock_ep_cm_ops;
void sock_cm_work(struct sock_ep *ep);
void sock_cm_fail(struct sock_ep *ep, int err, int prov_errno,
		  const void *data, size_t len);
bool sock_tclass_known(u32 tclass);
void sock_socket_abort(struct socket *sock);
void sock_socket_shutdown(struct socket *sock);
void sock_socket_release(struct socket *sock);

/* ------------------------------------------------------------------- tx.c */

/**
 * struct sock_txop - a posted transmit
 * @node: queued, or waiting for an answer
 * @free: the same, while it is not in use
 * @context: comes back in the completion
 * @data: word for the peer's completion
 * @tag: of a tagged message
 * @inv_key: key of the peer's that ends with the message
 * @flags: what it was posted with
 * @seq: its place in the order of frames
 * @op: SOCK_OP_MSG, _TAGGED, _READ_REQ or _WRITE
 * @rma_count: entries of @rma
 * @ack: completes when the peer has acknowledged it
 * @zc: it hands out its pages; @ubuf and what follows count
 * @zc_copied: the network has copied some of them
 * @err: how it ended for the stream, a positive error code
 * @ep: the endpoint
 * @ubuf: what packets refer to that hold its pages
 * @rma: the peer's memory
 * @cur: position in the payload, or in what the response to a read fills
 * @inject: copied payload
 */
struct sock_txop {
	union {
		struct list_head	node;
		struct llist_node	free;
	};
	void			*context;
	u64			data;
	u64			tag;
	u64			inv_key;
	u64			flags;
	u64			seq;
	u8			op;
	u8			rma_count;
	bool			ack;
	bool			zc;
	bool			zc_copied;
	int			err;
	struct sock_ep		*ep;
	struct ubuf_info	ubuf;
	struct fi_rma_iov	rma[SOCK_RMA_MAX];
	struct kofi_cursor	cur;
	u8			inject[SOCK_INJECT_MAX];
};

/* Segments of a vector that are sent in one call with their header */
#define SOCK_TX_GATHER	4

/* Header and the first segments of a payload, as one array */
union sock_tx_vec {
	struct kvec	kv[1 + SOCK_TX_GATHER];
	struct bio_vec	bv[1 + SOCK_TX_GATHER];
};

/* Bytes of payload behind an operation's header */
static inline u64 sock_txop_payload(const struct sock_txop *op)
{
	return op->op == SOCK_OP_READ_REQ ? 0 : op->cur.len;
}

/**
 * struct sock_post - what a post has beyond its struct fi_msg
 * @op: SOCK_OP_*
 * @tag: of a tagged message
 * @rma: the peer's memory
 * @rma_count: entries of @rma
 */
struct sock_post {
	u8			op;
	u64			tag;
	const struct fi_rma_iov	*rma;
	size_t			rma_count;
};

/* Flags every transmit knows, and those that only some do */
#define SOCK_TX_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define SOCK_TX_FLAGS	(FI_COMPLETION | FI_MORE | FI_FENCE)
#define SOCK_TX_OUT_FLAGS (SOCK_TX_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA | \
			 KOFI_NO_COMPLETION | SOCK_TX_LEVELS)

/* Who sends. Changes with the socket locked. */
enum sock_tx_state {
	SOCK_TX_IDLE,		/* nobody; who posts, sends */
	SOCK_TX_ACTIVE,		/* one sender, who looks again before it ends */
	SOCK_TX_SPACE,		/* the socket took no more; it will call */
};

int sock_tx_init(struct sock_ep *ep, size_t size);
void sock_tx_exit(struct sock_ep *ep);
ssize_t sock_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);
ssize_t sock_tx_tpost(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		      u64 flags);
ssize_t sock_tx_submit(struct sock_ep *ep, const struct fi_msg *msg,
		       const struct sock_post *post, u64 flags);
bool sock_tx_run(struct sock_ep *ep, size_t budget);
void sock_tx_ack(struct sock_ep *ep);
bool sock_tx_acked(struct sock_ep *ep);
struct sock_txop *sock_tx_reading(struct sock_ep *ep);
void sock_tx_read_done(struct sock_ep *ep);
bool sock_tx_space(struct sock_ep *ep);
void sock_tx_flush(struct sock_ep *ep);
void sock_tx_retry(struct timer_list *t);
bool sock_tx_pushes(struct sock_ep *ep);
int sock_tx_flush_err(const struct sock_ep *ep);
void sock_tx_complete(struct sock_ep *ep, struct sock_txop *op, int err);

/* ------------------------------------------------------------- zerocopy.c */

void sock_zc_begin(struct sock_ep *ep, struct sock_txop *op);
void sock_zc_msg(const struct sock *sk, struct sock_txop *op,
		 struct msghdr *msg);
void sock_zc_done(struct sock_txop *op);
void sock_zc_wait(struct sock_ep *ep);

/* ------------------------------------------------------------------ rma.c */

/**
 * struct sock_rsp - a read of the peer's that is to be answered
 * @payload: bytes of the answer
 * @count: entries of @seg
 * @cur: the one that is being sent
 * @reserved: a completion slot is held, the read will be reported
 * @seg: what it reads; left goes down as it is sent
 */
struct sock_rsp {
	u64			payload;
	u8			count;
	u8			cur;
	bool			reserved;
	struct kofi_target	seg[SOCK_RMA_MAX];
};

extern const struct fi_ops_rma sock_rma_ops;

int sock_rma_init(struct sock_ep *ep);
void sock_rma_exit(struct sock_ep *ep);
int sock_rma_read(struct sock_ep *ep);
bool sock_rma_source(struct sock_ep *ep, struct iov_iter *iter);
void sock_rma_sent(struct sock_ep *ep, size_t bytes);
void sock_rma_answered(struct sock_ep *ep);
int sock_rma_write(struct sock_ep *ep);
int sock_rma_place(struct sock_ep *ep, struct kofi_skb_part from, size_t len);
void sock_rma_pause(struct sock_ep *ep);
void sock_rma_written(struct sock_ep *ep);
void sock_rma_flush(struct sock_ep *ep);

/* ------------------------------------------------------------------- rx.c */

/**
 * struct sock_frame - what a header says
 * @op: SOCK_OP_*
 * @flags: SOCK_F_*
 * @ack: it is an acknowledgment
 * @rma_count: entries of @rma
 * @hdr_size: bytes of the header
 * @payload: bytes of the payload
 * @data: the word of SOCK_F_CQ_DATA
 * @inv_key: the word of SOCK_F_REMOTE_INV
 * @tag: of a tagged message
 * @rma: segments of a read request or write
 */
struct sock_frame {
	u8	op;
	u16	flags;
	bool	ack;
	u8	rma_count;
	u8	hdr_size;
	u64	payload;
	u64	data;
	u64	inv_key;
	u64	tag;
	struct {
		u64	addr;
		u64	len;
		u64	key;
	} rma[SOCK_RMA_MAX];
};

/**
 * struct sock_rx - the receive side of a stream; belongs to who has the
 * socket locked
 * @have: bytes of the header in @hdr
 * @want: bytes of the header that @have must reach
 * @hdr: header of the frame that has begun
 * @frame: the same, once it is complete
 * @in_frame: the header is complete, the payload is not
 * @stalled: the header is complete, and what the frame needs is not there: a
 *	receive, a completion slot, room for another response
 * @op: receive that takes the payload, NULL to drop it
 * @read: read of ours that the payload answers
 * @seg: memory of ours that the payload is written to
 * @cur: entry of @seg that comes next
 * @slot: the frame, when it waits for a completion slot
 * @reserved: the write will be reported, in a slot that is held
 * @left: bytes of payload still to come
 * @lost: bytes of payload that did not fit
 * @budget: bytes that may still be read in this run
 * @err: why the stream must end, a positive error code
 */
struct sock_rx {
	unsigned int		have;
	unsigned int		want;
	u8			hdr[SOCK_HDR_MAX];
	struct sock_frame	frame;
	bool			in_frame;
	bool			stalled;
	struct kofi_rxop	*op;
	struct sock_txop	*read;
	struct kofi_target	seg[SOCK_RMA_MAX];
	u8			cur;
	struct kofi_cq_wait	slot;
	bool			reserved;
	u64			left;
	u64			lost;
	long			budget;
	int			err;
};

void sock_rx_init(struct sock_rx *rx);
void sock_rx_setup(struct sock_ep *ep);
void sock_rx_violation(struct sock_ep *ep, const char *what);
bool sock_rx_run(struct sock_ep *ep);
void sock_rx_flush(struct sock_ep *ep);
ssize_t sock_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);
ssize_t sock_rx_tpost(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		      u64 flags);

/* ------------------------------------------------------------------- ep.c */

/* How far the socket of an endpoint has come; changes with it locked. */
enum sock_ep_phase {
	SOCK_EP_UNUSED,		/* no stream */
	SOCK_EP_DIALING,	/* TCP connects */
	SOCK_EP_ASKING,		/* request sent, no answer yet */
	SOCK_EP_ASKED,		/* request received, not accepted yet */
	SOCK_EP_DATA,
	SOCK_EP_DEAD,		/* everything has been completed */
};

/* sock_ep.flags */
enum {
	SOCK_EP_HALF_SENT,	/* flushed in the middle of a frame */
	SOCK_EP_PUSH,		/* what FI_MORE holds back has waited enough */
};

/**
 * struct sock_ep_stats - statistics; change with the socket locked
 * @tx_frames: frames sent, acknowledgments too
 * @tx_bytes: bytes sent, headers too
 * @tx_acks: acknowledgments sent
 * @tx_responses: reads of the peer's answered
 * @tx_held: operations that waited for earlier ones to be answered
 * @tx_inline: runs of the sender in a post, a callback or a softirq
 * @tx_work: runs of the sender in the work item
 * @tx_full: runs that ended because the socket took no more
 * @tx_retries: of them, those that a timer resumes
 * @tx_pushes: segments sent that %FI_MORE held back, and nothing followed
 * @tx_zc_bytes: bytes of payload sent without copying them
 * @tx_copy_bytes: bytes of payload copied into the socket
 * @tx_zc_copied: operations sent without copying that the network has copied
 * @rx_frames: frames received, acknowledgments too
 * @rx_bytes: bytes received, headers too
 * @rx_acks: acknowledgments received
 * @rx_responses: reads answered by the peer
 * @rx_stalls: frames that had to wait: for a receive, or for a slot
 * @rx_full: of them, reads that found too many others unanswered
 * @rx_truncated: messages longer than their receive
 * @rx_budget: runs of the receiver that used up their budget
 * @violations: protocol errors of the peer
 */
struct sock_ep_stats {
	unsigned long	tx_frames;
	unsigned long	tx_bytes;
	unsigned long	tx_acks;
	unsigned long	tx_responses;
	unsigned long	tx_held;
	unsigned long	tx_inline;
	unsigned long	tx_work;
	unsigned long	tx_full;
	unsigned long	tx_retries;
	unsigned long	tx_pushes;
	unsigned long	tx_zc_bytes;
	unsigned long	tx_copy_bytes;
	unsigned long	tx_zc_copied;
	unsigned long	rx_frames;
	unsigned long	rx_bytes;
	unsigned long	rx_acks;
	unsigned long	rx_responses;
	unsigned long	rx_stalls;
	unsigned long	rx_full;
	unsigned long	rx_truncated;
	unsigned long	rx_budget;
	unsigned long	violations;
};

static inline void sock_stat_add(unsigned long *stat, unsigned long n)
{
	WRITE_ONCE(*stat, *stat + n);
}

static inline void sock_stat_inc(unsigned long *stat)
{
	sock_stat_add(stat, 1);
}

/**
 * struct sock_ep - an endpoint and its stream
 * @base: the core's
 * @domain: its domain
 * @domain_node: on the domain's list
 * @cm_mutex: control calls one after the other
 * @tun: options
 * @reserves: it counts as a user of the emergency reserves
 * @src: address to bind to; family 0 for none
 * @req: the request it was opened for, whose handle its info names
 * @sock: from connect or adoption until the endpoint is freed
 * @saved: its callbacks
 * @phase: enum sock_ep_phase
 * @flags: SOCK_EP_HALF_SENT, SOCK_EP_PUSH
 * @dead: why the stream must end, a positive error code; set once
 * @be: words on the wire are big-endian
 * @ext: SOCK_EXT_* both sides know
 * @poll: resumes the receiver and the sender in softirq context
 * @in_poll: runs of @poll
 * @work: the same in process context, and everything that must sleep
 * @retry: wakes the sender when no acknowledgment will, and pushes out what
 *	%FI_MORE holds back
 * @watch: connect timeout, then the eye on a silent peer
 * @watch_base: when the peer had last answered everything, as far as seen
 * @cm: the request being sent, the answer being received
 * @tx_lock: for the members that follow
 * @tx_closed: no more posts; changes with the socket locked, too
 * @tx_free: unused operations; can be put to without the lock
 * @tx_posted: operations posted without the socket's lock, oldest first; newer
 *	than those in @tx_queue
 * @tx_state: enum sock_tx_state. From here on: with the socket locked.
 * @tx_queue: operations not begun, oldest first
 * @tx_wait: operations sent that wait for an acknowledgment, oldest first
 * @tx_reads: reads sent that wait for the response, oldest first
 * @tx_nreads: how many they are, with the one that is being sent
 * @tx_seq: of the next operation
 * @tx_owed: acknowledgments to be sent
 * @tx_ops: all operations
 * @tx_op: operation whose frame is being sent. From here on: the sender's.
 * @tx_rsp: response whose frame is being sent
 * @tx_held: the oldest operation must wait for answers to earlier ones
 * @tx_hdr: header of the frame being sent
 * @tx_hdr_len: its length, 0 if no frame is being sent
 * @tx_hdr_off: how much of it has been sent
 * @tx_left: bytes of its payload not sent yet
 * @tx_id: number of the next frame
 * @tx_corked: the socket may hold back the last bytes for more to follow
 * @tx_msg: what TCP is called with; kept, as a new one would have to be cleared
 * @tx_vec: what @tx_msg refers to, the same
 * @zc_out: operations whose pages are out, or may be
 * @zc_skip: operations to be copied before another one tries not to be
 * @rsps: ring of %SOCK_READS_MAX responses owed to the peer; with the socket
 *	locked
 * @rsp_first: the oldest
 * @rsp_count: how many, with the one that is being sent
 * @rxq: posted receives, unless they are those of a shared context
 * @rxmsg: message of the stream that looks for its receive
 * @rx: receive side of the stream
 * @stats: statistics
 */
struct sock_ep {
	struct kofi_ep		base;
	struct sock_domain	*domain;
	struct list_head	domain_node;
	struct mutex		cm_mutex;	/* control calls */
	struct sock_tunables	tun;
	bool			reserves;
	union sock_addr		src;
	struct sock_req		*req;
	struct socket		*sock;
	struct sock_cbs		saved;
	int			phase;
	unsigned long		flags;
	int			dead;
	bool			be;
	u32			ext;
	struct irq_poll		poll;
	atomic_t		in_poll;
	struct work_struct	work;
	struct timer_list	retry;
	struct delayed_work	watch;
	u32			watch_base;
	struct sock_cm		cm;

	/* what is posted without the socket's lock */
	spinlock_t		tx_lock ____cacheline_aligned_in_smp;
	bool			tx_closed;
	struct kofi_free	tx_free;
	struct list_head	tx_posted;

	int			tx_state;
	struct list_head	tx_queue;
	struct list_head	tx_wait;
	struct list_head	tx_reads;
	unsigned int		tx_nreads;
	u64			tx_seq;
	u64			tx_owed;
	struct sock_txop	*tx_ops;

	struct sock_txop	*tx_op;
	struct sock_rsp		*tx_rsp;
	bool			tx_held;
	u8			tx_hdr[SOCK_HDR_MAX];
	u8			tx_hdr_len;
	u8			tx_hdr_off;
	u8			tx_id;
	bool			tx_corked;
	atomic_t		zc_out;
	unsigned int		zc_skip;
	u64			tx_left;
	struct msghdr		tx_msg;
	union sock_tx_vec	tx_vec;

	struct sock_rsp		*rsps;
	unsigned int		rsp_first;
	unsigned int		rsp_count;

	struct kofi_rxq		rxq ____cacheline_aligned_in_smp;
	struct kofi_rxmsg	rxmsg;
	struct sock_rx		rx;
	struct sock_ep_stats	stats;
};

static inline struct sock_ep *sock_ep(struct fid_ep *fid)
{
	return container_of(fid, struct sock_ep, base.ep);
}

/**
 * sock_tx_ready - has reading made something to send
 * @ep: the endpoint
 *
 * Whoever has run the receiver asks, and runs the sender.
 *
 * Context: locked.
 * Return: true if so, or if an operation that had to wait may now begin.
 */
static inline bool sock_tx_ready(const struct sock_ep *ep)
{
	return ep->tx_owed || ep->rsp_count || ep->tx_held;
}

/*
 * What an endpoint's own threads of control may do for memory: no I/O, as they
 * may be what somebody's I/O waits for; with a reclaim-safe endpoint, take it
 * from the reserves and reclaim nothing.
 */
static inline unsigned int sock_memalloc_save(const struct sock_ep *ep)
{
	return memalloc_flags_save(PF_MEMALLOC_NOIO |
				   (ep->tun.reclaim_safe ? PF_MEMALLOC : 0));
}

static inline void sock_memalloc_restore(unsigned int flags)
{
	memalloc_flags_restore(flags);
}

/*
 * How the socket allocates from now on; locked. The flag, not the option: it
 * is what lets the socket take the packets it gets from the reserves.
 */
static inline void sock_socket_gfp(struct sock *sk, gfp_t gfp)
{
	sk->sk_allocation = gfp | __GFP_NOWARN |
			    (sock_flag(sk, SOCK_MEMALLOC) ? __GFP_MEMALLOC : 0);
}

int sock_endpoint(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **ep, void *context);
void sock_ep_attach(struct sock_ep *ep, struct socket *sock, int phase);
void sock_ep_detach(struct sock_ep *ep);
void sock_ep_kill(struct sock_ep *ep, int err);
void sock_ep_queue(struct sock_ep *ep);
void sock_ep_softirq(struct sock_ep *ep);
void sock_ep_live(struct sock_ep *ep, const void *data, size_t len);
int sock_ep_down(struct sock_ep *ep, bool connection);

/* Pure functions of the wire, static but for the tests */
#if IS_ENABLED(CONFIG_KUNIT)
void sock_cm_format(struct sock_cm *cm, u8 type, u32 ext, const void *data,
		    size_t len);
int sock_cm_want(const struct sock_cm *cm, unsigned int *want);
unsigned int sock_tx_format_op(void *hdr, const struct sock_txop *op, u8 id,
			       bool be);
unsigned int sock_tx_format_rsp(void *hdr, u64 payload, u8 id, bool be);
unsigned int sock_tx_format_ack(void *hdr, u8 id, bool be);
int sock_rx_decode(struct sock_rx *rx, bool be);
#endif

#endif /* _KOFI_SOCK_H */
