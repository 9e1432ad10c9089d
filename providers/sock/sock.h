/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Declarations shared by the files of kofi_sock.ko.
 *
 * Locks, outermost first:
 *
 *   ksk_conn.mutex	control calls of one connection
 *   ksk_dom_mutex	domains and their endpoints; the notifier of devices takes
 *			it inside the RTNL
 *   ksk_tls.mutex	the stream of a connection with TLS, for which "locked" below
 *			means that it is held
 *   the socket's lock	"locked" below means: owned by the caller
 *			(lock_sock), or its slock held while no context owns it
 *			(softirq and inline senders). It protects the stream.
 *   ksk_rdm.lock	connections of an unconnected endpoint; irqsave
 *   ksk_posts.lock	operations posted without the socket's lock; irqsave
 *   kofi_rxq.lock, then locks of the core's queues
 *
 *   ksk_req_mutex	connection requests that have not been taken; innermost
 *			of the mutexes, never held while waiting for work
 */
#ifndef _KOFI_SOCK_H
#define _KOFI_SOCK_H

#include <linux/types.h>
#include <linux/irq_poll.h>
#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include <linux/kofi/lib.h>

#include "conn.h"
#include "proto.h"

#define KSK_INJECT_MAX		128
#define KSK_TX_RX_MAX		65536
#define KSK_MSG_MAX		((size_t)MAX_RW_COUNT)
#define KSK_READS_MAX		64	/* outstanding reads of each side */
#define KSK_FRAME_COST		512	/* budget of a frame, in addition to its bytes */

/* ------------------------------------------------------ module parameters */

/* Written through sysfs at any time, without a lock of ours: read with READ_ONCE() */
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
extern unsigned int ksk_max_unknown_host;
extern unsigned int ksk_max_unknown_net;
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
 * @ifindex: index of the device, 0 after its removal. Written under ksk_dom_mutex; read
 *	without it by posts and control calls. The removal aborts the connections of all
 *	endpoints afterwards, so a call that still reads the index fails then
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

struct ksk_listener;
struct ksk_req;

/* --------------------------------------------------------------- socket.c */

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
int ksk_cm_read_tls(struct ksk_tls *t, struct socket *sock, struct ksk_cm *cm);
int ksk_cm_send(struct socket *sock, struct ksk_cm *cm, bool tls);
int ksk_cm_name(struct socket *sock, const union kofi_ip *src, void *addr,
		size_t *len);
void ksk_msg_secure(struct ksk_ep *ep, struct ksk_tls *t);
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

#define KSK_BURST		8	/* frames sent in one call */
#define KSK_BURST_HDR		56	/* bytes of a header with one rma segment */
static_assert(sizeof(struct ksk_hdr) + 8 + 8 + sizeof(struct ksk_rma) <=
	      KSK_BURST_HDR);
#define KSK_BURST_PAYLOAD	SZ_8K

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
bool ksk_tx_run_tls(struct ksk_conn *c, size_t budget);
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

/**
 * ksk_zc_able - test whether others may take references to pages
 * @bv: segment with the pages
 * @offset: offset of the first byte from the first page of @bv
 * @len: number of bytes
 *
 * Return: true if these bytes may get into a packet without a copy.
 */
static inline bool ksk_zc_able(const struct bio_vec *bv, size_t offset, size_t len)
{
	/* sendpages_ok() checks whole pages from the first one on */
	return sendpages_ok(bv->bv_page, len + offset_in_page(offset), offset) &&
	       !is_pci_p2pdma_page(bv->bv_page);
}

void ksk_zc_begin(struct ksk_conn *c, struct ksk_txop *op);
void ksk_zc_msg(const struct sock *sk, struct ksk_txop *op,
		struct msghdr *msg);
void ksk_zc_done(struct ksk_txop *op);
void ksk_zc_wait(struct ksk_conn *c);

/* ------------------------------------------------------------------ rma.c */

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

void ksk_rx_init(struct ksk_rx *rx);
void ksk_rx_setup(struct ksk_conn *c);
bool ksk_rx_run(struct ksk_conn *c);
bool ksk_rx_run_tls(struct ksk_conn *c);
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

void ksk_conn_init(struct ksk_conn *c, struct ksk_ep *ep,
		   const struct ksk_conn_ops *ops);
void ksk_conn_attach(struct ksk_conn *c, struct socket *sock, int phase);
void ksk_conn_detach(struct ksk_conn *c);
void ksk_conn_lock(struct ksk_conn *c);
void ksk_conn_unlock(struct ksk_conn *c);
void ksk_conn_established(struct ksk_conn *c, const void *data, size_t len);
int ksk_conn_down(struct ksk_conn *c, enum ksk_down how);
void ksk_conn_close(struct ksk_conn *c);
void ksk_conn_exit(struct ksk_conn *c);

/* ------------------------------------------------------------------- ep.c */

/**
 * struct ksk_ep_type - functions of an endpoint without a connection for direct posts
 * @add: send an operation to a peer, or leave it to another context; any context.
 *	Returns 0, and the operation may have completed; or an error, and the caller
 *	owns the operation
 * @crowded: test whether @add would return -EAGAIN for this peer; any context. Only called
 *	if ksk_ep.crowded is set
 * @refused: a post has put its record back, and is about to be refused because @add has
 *	returned -EAGAIN; NULL for a type with an @add that never returns -EAGAIN
 * @abort: terminate outstanding operations with a positive error code; any context
 */
struct ksk_ep_type {
	int	(*add)(struct ksk_ep *ep, fi_addr_t dest, struct ksk_txop *op);
	bool	(*crowded)(struct ksk_ep *ep, fi_addr_t dest);
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
 * @crowded: a post has been refused because too many operations wait for connections;
 *	perhaps fewer wait by now. Set and cleared without a lock
 * @src: address to bind to; family 0 for none
 * @conn: the only connection; NULL for a type that has many, or none
 * @direct: the only connection, if posts send on it; NULL for a connection with TLS, too
 * @type: functions of an endpoint without @direct
 * @tx_ops: array of all operations
 * @tx_op_size: bytes of an operation in @tx_ops
 * @tx_free_lock: serialises removal from @tx_free
 * @tx_free: unused operations; returned to it without a lock
 * @rxq: posted receives, unless a shared context has them
 * @tls: KOFI_OPT_TLS; fixed once the endpoint connects
 */
struct ksk_ep {
	struct kofi_ep		base;
	struct ksk_domain	*domain;
	struct list_head	domain_node;
	struct ksk_tunables	tun;
	bool			reserves;
	bool			crowded;
	union kofi_ip		src;
	struct ksk_conn		*conn;
	struct ksk_conn		*direct;
	const struct ksk_ep_type *type;
	void			*tx_ops;
	size_t			tx_op_size;
	spinlock_t		tx_free_lock ____cacheline_aligned_in_smp;
	struct kofi_freelist	tx_free;
	struct kofi_rxq		rxq ____cacheline_aligned_in_smp;
	struct kofi_tls		tls;
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
	return c->rndv.state && op->op == KSK_OP_TAGGED && c->rndv.min &&
	       op->cur.len >= c->rndv.min && !(op->flags & FI_INJECT);
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
