/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations shared by the files of kofi_verbs.ko */
#ifndef _KOFI_VERBS_H
#define _KOFI_VERBS_H

#include <linux/in6.h>
#include <linux/kofi/lib.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "dma.h"
#include "mr.h"

#define VRB_CM_DATA_MAX		55	/* bytes of a request's private data */
#define VRB_CM_DATA_AREA	(VRB_CM_DATA_MAX + 1)
#define VRB_PORT_TRIES		16	/* chosen ports, each of which may be in use */
#define VRB_INJECT_MAX		128	/* bytes of the longest inject */
#define VRB_RMA_MAX		4	/* remote segments of one operation */
#define VRB_SIZE_MAX		65536	/* outstanding operations of one direction */
#define VRB_CHAIN_MAX		256	/* work requests of one operation */
#define VRB_OWN_WRS		4	/* send work requests of no operation */
#define VRB_LINKS		8	/* work requests posted in one list */
#define VRB_MAP_COUNTED		IS_ENABLED(CONFIG_PROVE_LOCKING) /* see dma.c */

#define VRB_TX_LEVELS		(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
				 FI_DELIVERY_COMPLETE)
#define VRB_TX_FLAGS		(FI_COMPLETION | FI_MORE | FI_FENCE | \
				 FI_INJECT | FI_REMOTE_CQ_DATA | \
				 KOFI_NO_COMPLETION | VRB_TX_LEVELS)
#define VRB_FETCH_FLAGS		(FI_COMPLETION | FI_MORE | FI_FENCE)

/* ------------------------------------------------------------------ main.c */

extern struct kofi_provider vrb_provider;
extern struct workqueue_struct *vrb_wq;

/* ------------------------------------------------------------- tunables.c */

extern unsigned int vrb_tx_size;
extern unsigned int vrb_rx_size;
extern unsigned int vrb_connect_timeout;

/* Attributes of a connection, in the order of their options, from KOFI_OPT_RETRY_COUNT */
enum vrb_conn {
	VRB_CONN_RETRY,
	VRB_CONN_RNR_RETRY,
	VRB_CONN_RNR_TIMER,
	VRB_CONN_ACK_TIMEOUT,
	VRB_CONN_READ_DEPTH,
	VRB_CONN_READ_RESOURCES,
	VRB_CONN_NR
};

/**
 * struct vrb_tunables - options of an endpoint
 * @connect_timeout: time limit for connecting, in milliseconds
 * @silence_timeout: milliseconds without an answer after which the peer counts
 *	as dead; 0: the value of the path
 * @keepalive_idle: milliseconds without outstanding work requests after which a
 *	probe is sent; 0: never
 * @conn: attributes of the connection, by enum vrb_conn
 * @conn_most: largest values of @conn; 0 also where the device lacks the attribute
 */
struct vrb_tunables {
	unsigned int	connect_timeout;
	unsigned int	silence_timeout;
	unsigned int	keepalive_idle;
	size_t		conn[VRB_CONN_NR];
	size_t		conn_most[VRB_CONN_NR];
};

void vrb_tunables_init(struct vrb_tunables *tun);
void vrb_tunables_device(struct vrb_tunables *tun, struct ib_device *ib);
size_t *vrb_tunables_conn(struct vrb_tunables *tun, int name, size_t *most);
int vrb_tunables_set(struct vrb_tunables *tun, int name, const void *val);
int vrb_tunables_get(const struct vrb_tunables *tun, int name, void *val);

/* ------------------------------------------------------------------ info.c */

struct rdma_cm_id *vrb_if_bind(struct net *net, const union kofi_ip *at);
int vrb_if_find_dev(struct net *net, struct ib_device *ib, int family,
		    union kofi_ip *addr);
int vrb_info_queue(const struct ib_device *ib);
size_t vrb_info_max_wr(const struct ib_device *ib);
bool vrb_info_atomic(const struct ib_device *ib);
bool vrb_info_regions(const struct ib_device *ib);
int vrb_info_check_domain(const struct fi_info *info, struct ib_device *ib);
int vrb_info_check_ep(const struct fi_info *info, struct ib_device *ib,
		      u32 port, size_t *max_msg);
int vrb_info_check_srx(const struct fi_rx_attr *attr, struct ib_device *ib,
		       size_t size, size_t iov_limit);
struct fi_info *vrb_info_request(const struct fi_info *from,
				 struct rdma_cm_id *id, const char *fabric);
int vrb_getinfo(u32 version, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **info);

/* --------------------------------------------------------------- quirks.c */

#define VRB_QUIRK_INIT_NET	BIT(0)	/* works in the initial network namespace only */
#define VRB_QUIRK_DEREG_RCU	BIT(1)	/* call synchronize_rcu() after ib_dereg_mr() */
#define VRB_QUIRK_STALE_KEY	BIT(2)	/* remote invalidation accepts an old key */
#define VRB_QUIRK_SEND_IN_PLACE	BIT(3)	/* signal operations of a page or more */
#define VRB_QUIRK_SHORT_READ	BIT(4)	/* short reads must not cross a page */
#define VRB_QUIRK_ZERO_READ	BIT(5)	/* zero-length reads are broken */
#define VRB_QUIRK_READ_ORDER	BIT(6)	/* reads complete after later operations */
#define VRB_QUIRK_RETRY_EVER	BIT(7)	/* a retry count of 7 means forever */
#define VRB_QUIRK_SQ_BYTES	BIT(8)	/* depth and length share one limit */
#define VRB_QUIRK_NO_TCLASS	BIT(9)	/* ignores the type of service */

u32 vrb_quirks(const struct ib_device *ib);
bool vrb_dev_access(const struct ib_device *ib, const struct net *net);

/* ------------------------------------------------------------------ nic.c */

char *vrb_nic_name(const struct ib_device *ib);
int vrb_nic_fill(struct fi_info *info, struct ib_device *ib, u32 port);

/* ---------------------------------------------------------------- domain.c */

/**
 * struct vrb_dev - usable RDMA device
 * @node: entry of vrb_devs; protected by vrb_mutex
 * @ib: the RDMA device
 * @name: device name under which it was announced to clients
 * @net: network namespace in which the device can be opened; NULL: all
 * @refs: references: one while the device is present, one for each domain
 * @mutex: protects @gone and @doms, and for each domain the lists of endpoints
 *	and of shared receive contexts
 * @gone: the device has been removed; protected by @mutex
 * @doms: domains opened on the device; protected by @mutex
 * @events: handler of the device's asynchronous events
 */
struct vrb_dev {
	struct list_head	node;
	struct ib_device	*ib;
	char			name[IB_DEVICE_NAME_MAX];
	struct net		*net;
	refcount_t		refs;
	struct mutex		mutex;	/* see above */
	bool			gone;
	struct list_head	doms;
	struct ib_event_handler	events;
};

/**
 * struct vrb_domain - domain
 * @base: domain of the core
 * @dev: device of the domain
 * @node: entry of vrb_dev.doms, while the device is present; protected by
 *	vrb_dev.mutex
 * @eps: endpoints of the domain; protected by vrb_dev.mutex
 * @srxs: shared receive contexts of the domain; protected by vrb_dev.mutex
 * @ib: the RDMA device. After its removal it is no longer used: all endpoints
 *	have failed, and new ones are refused. The reference is kept until the
 *	domain is closed, because work items of some drivers outlive their
 *	connection
 * @pd: protection domain of all objects in the domain
 * @quirks: VRB_QUIRK_* of the device
 * @max_wr: outstanding operations that one direction of an endpoint can have
 * @map_max: bytes of the longest mapped segment
 * @needs_map: mappings must be undone, or are counted
 * @lkey: key of all local memory
 * @max_inline: bytes of the longest inline work request, as far as known; read
 *	and written without a lock, because endpoints that are enabled concurrently
 *	share no lock. An old value costs an attempt that the device refuses
 * @atomic: the device has atomic operations
 * @mr_atomic: regions are opened to atomic operations, as the consumer asked;
 *	cleared by xchg() when the device refuses that right. Posts of all endpoints
 *	read it without a lock: an old value costs a registration that the device
 *	refuses
 * @regions: the device has memory registration work requests, and messages that
 *	invalidate a region
 * @gone: the device has been removed, or is being removed; written under
 *	vrb_dev.mutex. Read also under vrb_ep_cm.mutex or @mr_mutex alone: the
 *	removal takes these later, and finds the objects made with the old value
 * @lingering: iWARP: queue pairs of closed endpoints that wait for an attempt
 *	to connect to finish; atomic, because the endpoints share no lock
 * @mr_mutex: protects the members from @mrs to @mr_pending, and changes of
 *	@mr_keys; see mr.c
 * @mrs: regions that have a region of the device; protected by @mr_mutex
 * @mr_eps: endpoints on which regions can be registered; protected by @mr_mutex
 * @mr_pending: regions that wait to be registered; protected by @mr_mutex
 * @mr_keys: regions by key, without the 8 bits that change; changed under
 *	@mr_mutex. Read under RCU, because handlers of completions cannot sleep
 * @maps: number of mapped segments, for vrb_map_check()
 * @map_sum: checksum of the addresses and lengths of mapped segments, for
 *	vrb_map_check()
 */
struct vrb_domain {
	struct kofi_domain	base;
	struct vrb_dev		*dev;
	struct list_head	node;
	struct list_head	eps;
	struct list_head	srxs;
	struct ib_device	*ib;
	struct ib_pd		*pd;
	u32			quirks;
	size_t			max_wr;
	size_t			map_max;
	bool			needs_map;
	u32			lkey;
	unsigned int		max_inline;
	bool			atomic;
	bool			mr_atomic;
	bool			regions;
	bool			gone;
	atomic_t		lingering;
	struct mutex		mr_mutex;	/* mrs, mr_eps, mr_pending, mr_keys */
	struct list_head	mrs;
	struct list_head	mr_eps;
	struct list_head	mr_pending;
	struct xarray		mr_keys;
#if VRB_MAP_COUNTED
	atomic_t		maps;
	atomic64_t		map_sum;
#endif
};

extern struct mutex vrb_mutex;
extern struct list_head vrb_devs;

static inline struct vrb_domain *vrb_dom(struct fid_domain *domain)
{
	return container_of(domain, struct vrb_domain, base.domain);
}

int vrb_domain(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **domain, void *context);
bool vrb_dev_there(const struct ib_device *ib);
int vrb_domain_init(void);
void vrb_domain_exit(void);

/* -------------------------------------------------------------------- cq.c */

/**
 * struct vrb_cq - provider's part of a completion queue
 * @poll: context of callbacks
 * @done: the consumer has set a callback
 * @cpu: CPU on which completions are wanted, or -1
 * @direct: struct vrb_epcq of device queues that the consumer polls; changed
 *	while the core's queue is claimed
 */
struct vrb_cq {
	enum kofi_poll		poll;
	bool			done;
	int			cpu;
	struct list_head	direct;
};

/**
 * struct vrb_epcq - device's completion queue for one direction of an endpoint
 * @node: entry of vrb_cq.direct
 * @kcq: the core's queue that gets the completions; NULL: completions are only
 *	counted
 * @ib: completion queue of the device; NULL while closed
 * @nr: entries of @ib that belong to the endpoint
 * @direct: @ib is polled
 *
 * A device's queue has room for every work request of its endpoint, because
 * each of them may fail. So no device queue overruns, however many endpoints
 * report to one of the core's queues.
 */
struct vrb_epcq {
	struct list_head	node;
	struct kofi_cq		*kcq;
	struct ib_cq		*ib;
	unsigned int		nr;
	bool			direct;
};

/*
 * Describe a completed operation; the caller adds the rest. Assign member by
 * member, because the compiler would clear the whole structure first.
 */
static __always_inline void vrb_wc_set(struct kofi_wc *wc, void *context,
				       int err, int status, u64 flags,
				       size_t len)
{
	wc->op_context = context;
	wc->err = err;
	wc->prov_errno = status;
	wc->flags = flags;
	wc->len = len;
	wc->olen = 0;
	wc->buf = NULL;
	wc->data = 0;
	wc->tag = 0;
	wc->src = FI_ADDR_NOTAVAIL;
	wc->inv_key = 0;
}

int vrb_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		const struct kofi_cq_attr *kattr, struct fid_cq **cq,
		void *context);
int vrb_epcq_open(struct vrb_epcq *q, struct vrb_domain *dom,
		  struct kofi_cq *kcq, bool counted, unsigned int nr);
void vrb_epcq_move(struct vrb_epcq *q, struct vrb_epcq *to);
void vrb_epcq_close(struct vrb_epcq *q);
bool vrb_epcq_wait_for(struct vrb_epcq *q, struct completion *done,
		       unsigned long timeout);
void vrb_epcq_wait(struct vrb_epcq *q, struct completion *done);
int vrb_drain_sq(struct vrb_epcq *q, struct ib_qp *qp);
int vrb_drain_rq(struct vrb_epcq *q, struct ib_qp *qp);
const char *vrb_cq_strerror(int prov_errno);
int vrb_wc_error(int status);

/* ------------------------------------------------------------------- dma.c */

/* Longest vrb_kvec_is_one() segment; 0 if arrays may have no segments */
static inline size_t vrb_one_max(const struct vrb_domain *dom, size_t iov_limit,
				 size_t msg_max)
{
	return iov_limit ? min(dom->map_max, msg_max) : 0;
}

/**
 * vrb_unmap - undo vrb_map_msg() or vrb_map_set()
 * @map: the mapping; empty afterwards
 * @dom: the domain, with its device present
 * @blocks: blocks of the endpoint
 *
 * Context: any.
 */
static inline void vrb_unmap(struct vrb_map *map, struct vrb_domain *dom,
			     struct vrb_blocks *blocks)
{
	if (vrb_map_is_one(map) && !dom->needs_map)
		map->nr = 0;
	else
		vrb_unmap_any(map, dom, blocks);
}

/* --------------------------------------------------------------- record.c */

/**
 * struct vrb_recs - records of operations
 * @free: unused records, the most recently freed first; protected by the
 *	owner's lock
 * @mem: array of all records
 * @size: bytes of a record
 * @nr: number of records
 * @used: number of records that have ever been used; equals the highest number
 *	in use at a time
 *
 * Completions put their records on another list of the owner, without a lock.
 * When @free is empty, a post takes over that whole list; only if that is
 * empty, too, it takes a record that has never been used.
 */
struct vrb_recs {
	struct llist_node	*free;
	void			*mem;
	unsigned int		size;
	unsigned int		nr;
	unsigned int		used;
};

#define VRB_RECS_RUN	64	/* records visited with interrupts disabled */

static inline void *vrb_recs_at(const struct vrb_recs *r, unsigned int i)
{
	return r->mem + (size_t)i * r->size;
}

static inline size_t vrb_recs_bytes(const struct vrb_recs *r)
{
	return (size_t)r->nr * r->size;
}

/* Release the lock of a walk over all records from time to time, with interrupts on. */
static inline void vrb_recs_pause(unsigned int i, spinlock_t *lock,
				  unsigned long *irq)
	__must_hold(lock)
{
	if (i % VRB_RECS_RUN != VRB_RECS_RUN - 1)
		return;
	spin_unlock_irqrestore(lock, *irq);
	cond_resched();
	spin_lock_irqsave(lock, *irq);
}

int vrb_recs_init(struct vrb_recs *r, unsigned int nr, size_t size, int node);
void vrb_recs_exit(struct vrb_recs *r);

/* ------------------------------------------------------------------- ep.c */

struct vrb_txop;
struct vrb_rxq;

/**
 * struct vrb_rxop - receive
 * @cqe: completion handler of the work request
 * @q: queue that owns the receive
 * @context: context of the consumer, returned in the completion
 * @flags: flags of the post
 * @seq: value of vrb_rxq.posts at the post
 * @posted: the device owns the receive; set under vrb_rxq.lock. A completion,
 *	which takes no lock, clears it. vrb_rxq_flush() clears it under the lock
 *	after the last completion
 * @next: entry of a list of unused records
 * @deferred: entry of vrb_rxq.deferred, or of the list of receives to be
 *	flushed
 * @map: memory of the receive
 */
struct vrb_rxop {
	struct ib_cqe		cqe;
	struct vrb_rxq		*q;
	void			*context;
	u64			flags;
	u32			seq;
	bool			posted;
	union {
		struct llist_node	next;
		struct list_head	deferred;
	};
	struct vrb_map		map;
};

/**
 * struct vrb_rxq - receives of an endpoint or a shared receive context
 * @base: the core's endpoint that owns the queue and reports its completions
 * @ep: endpoint that owns the queue; NULL for a shared receive context
 * @srq: shared receive queue of the device; NULL if the receives go to a queue
 *	pair
 * @dom: domain of the queue
 * @cq: device's completion queue for the receives
 * @retry: timer of the owner, for vrb_retry()
 * @sge: segments of a work request
 * @one_max: longest segment for the fast path, see vrb_one_max()
 * @deferred: receives that follow all posted ones, and that the device has not
 *	taken yet; protected by @lock. Transmits test without the lock whether it is
 *	empty: they follow only receives with a post that has returned
 * @lock: protects @deferred and the members from @closed to @waited; taken with
 *	interrupts disabled
 * @closed: receives are refused; written under @lock. Posts read it without the
 *	lock before they map memory, and again under the lock
 * @posts: free-running counter of posts; protected by @lock
 * @nr_held: receives on @deferred that wait because of FI_MORE; protected by
 *	@lock
 * @ops: records; protected by @lock
 * @waited: number of receives that waited for the queue pair; written under
 *	@lock. Statistics read it without the lock: any recent value will do
 * @ended: records of completed receives; lockless list, so that completions do
 *	not contend with posts for @lock
 */
struct vrb_rxq {
	struct kofi_ep		*base;
	struct vrb_ep		*ep;
	struct ib_srq		*srq;
	struct vrb_domain	*dom;
	struct vrb_epcq		*cq;
	struct timer_list	*retry;
	unsigned int		sge;
	size_t			one_max;
	struct list_head	deferred;

	spinlock_t		lock ____cacheline_aligned_in_smp; /* posts */
	bool			closed;
	u32			posts;
	unsigned int		nr_held;
	struct vrb_recs		ops;
	unsigned long		waited;

	struct llist_head	ended ____cacheline_aligned_in_smp;
};

/**
 * struct vrb_ep_limits - limits of an endpoint, which posts read
 * @tx_usual: flags that the fast path of transmits accepts; fixed from enabling on
 * @tx_one_max: bytes of the longest segment that the fast path of transmits
 *	accepts, see vrb_one_max(); fixed from enabling on
 * @sq_size: work requests in the send queue that are available to operations;
 *	fixed from enabling on
 * @send_sge: segments of a send or write work request; fixed from enabling on
 * @read_sge: segments of a read work request; fixed from enabling on
 * @max_inline: bytes of the longest inline work request. Posts read and write it
 *	without a lock, because they fill records before they take vrb_ep_tx.lock.
 *	If the device refuses a post with an old value, the post retries with a copy
 * @initiator_depth: outstanding reads the peer allows; fixed once connected
 * @responder_resources: incoming reads the device can serve at a time; fixed
 *	once connected
 * @max_msg: bytes of the longest message that the device can send; fixed from
 *	opening on
 */
struct vrb_ep_limits {
	u64			tx_usual;
	size_t			tx_one_max;
	unsigned int		sq_size;
	unsigned int		send_sge;
	unsigned int		read_sge;
	unsigned int		max_inline;
	u8			initiator_depth;
	u8			responder_resources;
	size_t			max_msg;
};

/**
 * enum vrb_cm_state - state of a connection, as the connection manager reports it
 * @VRB_CM_IDLE: no answer of the peer is awaited, and the connection has never
 *	been established
 * @VRB_CM_ASKED: the connection manager waits for the peer's answer, or iWARP's
 *	work item is about to send the request
 * @VRB_CM_ESTABLISHED: the connection has been established; it may have been
 *	terminated since, see vrb_ep_cm.left and vrb_ep_end.err
 *
 * Each step is taken with the handler mutex of the identifier held:
 *
 * ==================  ==================  ===========================================
 * from                to                  step
 * ==================  ==================  ===========================================
 * VRB_CM_IDLE         VRB_CM_ASKED        vrb_cm_request(), vrb_linger_connect()
 * VRB_CM_ASKED        VRB_CM_IDLE         the peer's answer or its absence; a request
 *                                         that was not sent: vrb_cm_answered()
 * VRB_CM_IDLE         VRB_CM_ESTABLISHED  vrb_cm_established(); never for an endpoint
 *                                         that has failed
 * ==================  ==================  ===========================================
 *
 * The passive side never asks. A connection that has been established stays so,
 * because an endpoint connects only once.
 */
enum vrb_cm_state {
	VRB_CM_IDLE,
	VRB_CM_ASKED,
	VRB_CM_ESTABLISHED,
};

/**
 * struct vrb_ep_cm - connection of an endpoint
 * @mutex: serialises control calls and vrb_ep_end(); never taken by event
 *	handlers of the connection manager
 * @id: identifier of the connection manager, from enabling or the connection
 *	request until vrb_linger_leave(); written under @mutex. The handler of the
 *	queue pair's events cannot sleep, so it reads @id without @mutex; before
 *	@id is destroyed, the handler has returned
 * @port: TCP socket that reserves the local port until the device has connected from
 *	it, or NULL; set under @mutex, taken by xchg(). It has no reference to its
 *	network namespace, so it is released before @id, which has one
 * @linger: takes over @id if that must outlive the endpoint; from enabling
 *	until vrb_linger_leave(); protected by @mutex
 * @state: enum vrb_cm_state; written under the handler mutex of @id. Control
 *	calls compare it with VRB_CM_ESTABLISHED without that mutex, for which
 *	they would wait while a handler runs. They see an old value only if the
 *	call might as well have come earlier
 * @left: jiffies when the connection manager reported that the peer had left,
 *	or 0; written under the handler mutex of @id. vrb_ep_work() reads it without
 *	that mutex: if the endpoint fails for that report, the work item is queued
 *	after the change
 * @watch: timeout for connecting; after a shutdown, for progress of outstanding
 *	transmits
 * @local: local address; protected by @mutex
 * @peer: address of the peer; protected by @mutex
 * @data_len: bytes used in @data; protected by @mutex until @data is sent
 * @data: private data to be sent; protected by @mutex until it is sent
 */
struct vrb_ep_cm {
	struct mutex		mutex;	/* see above */
	struct rdma_cm_id	*id;
	struct socket		*port;
	struct vrb_linger	*linger;
	enum vrb_cm_state	state;
	unsigned long		left;
	struct delayed_work	watch;
	union kofi_ip		local;
	union kofi_ip		peer;
	u8			data_len;
	u8			data[VRB_CM_DATA_AREA];
};

/**
 * struct vrb_ep_end - termination of an endpoint
 * @err: positive error code of the failure, or 0; set once, by cmpxchg(). Any
 *	context may fail an endpoint, also with locks held, so no lock protects it.
 *	A control call that misses it holds vrb_ep_cm.mutex: so vrb_ep_end()
 *	terminates the connection after the call
 * @done: vrb_ep_end() has begun; written under vrb_ep_cm.mutex. Work items read
 *	it without the mutex, because vrb_ep_end() may hold that and wait for memory
 * @stopped: jiffies when the queue pair was moved to IB_QPS_ERR, or 0;
 *	protected by vrb_ep_cm.mutex
 * @refused: jiffies when the device reported that it refuses a request of the
 *	peer, or 0; set once, by cmpxchg(), because the handler of the device's events
 *	cannot sleep. vrb_ep_work() reads it without a lock: if the endpoint fails
 *	for that report, the work item is queued after the change
 */
struct vrb_ep_end {
	int			err;
	bool			done;
	unsigned long		stopped;
	unsigned long		refused;
};

/**
 * struct vrb_tx_stats - statistics of transmits in addition to the core's
 * @wrs: operations' work requests in the send queue; written under
 *	vrb_ep_tx.lock
 * @unsignaled: unsignaled operations; written under vrb_ep_tx.lock
 * @inlined: inline work requests; written under vrb_ep_tx.lock
 * @full: posts that found no unused record, or a full send queue; counted
 *	without a lock, because two concurrent posts may count as one
 *
 * All are read without a lock, since any recent value will do.
 */
struct vrb_tx_stats {
	unsigned long		wrs;
	unsigned long		unsignaled;
	unsigned long		inlined;
	unsigned long		full;
};

/**
 * enum vrb_tx_state - state of the transmit side of an endpoint
 * @VRB_TX_OPEN: transmits are accepted, if the state of the core's endpoint allows
 *	them
 * @VRB_TX_ENDING: transmits are refused, and vrb_ep_tx.last must be posted when
 *	the device has room
 * @VRB_TX_CLOSED: transmits are refused
 *
 * Each step is taken with vrb_ep_tx.lock held:
 *
 * =============  =============  ==================================================
 * from           to             step
 * =============  =============  ==================================================
 * VRB_TX_OPEN    VRB_TX_ENDING  vrb_tx_finish(), if the device has no room
 * VRB_TX_OPEN    VRB_TX_CLOSED  vrb_tx_finish(), if the device has accepted the work
 *                               request or will never accept it; vrb_tx_close(), or
 *                               a failed work request
 * VRB_TX_ENDING  VRB_TX_CLOSED  vrb_tx_push(), if the device has accepted the work
 *                               request or will never accept it; vrb_tx_close()
 * =============  =============  ==================================================
 */
enum vrb_tx_state {
	VRB_TX_OPEN,
	VRB_TX_ENDING,
	VRB_TX_CLOSED,
};

/**
 * struct vrb_ep_tx - transmit side of an endpoint, written by posts
 * @lock: makes the order of posts equal to the order of the device; protects
 *	the other members, struct vrb_ep_mr as described there, and
 *	vrb_ep.read_mrs; taken with interrupts disabled
 * @state: enum vrb_tx_state, in one byte; written under @lock. Posts compare it
 *	with VRB_TX_OPEN without the lock before they map memory, and again under
 *	the lock
 * @probing: @probe is outstanding
 * @nr_links: number of elements of @links in use; 0: none is waiting
 * @first_link: index of the first waiting element of @links
 * @posted: free-running counter of posted work requests of operations; written
 *	under @lock. vrb_tx_outstanding() reads it without the lock where a later post
 *	does not matter
 * @limit: highest value that @posted may reach, as last computed from
 *	vrb_ep_tx_done.wrs and vrb_ep_limits.sq_size
 * @unreported: number of unsignaled operations since the last signaled one
 * @unsignaled: unsignaled operations since the last signaled one, the last
 *	one first
 * @ops: records of transmits
 * @stats: statistics; see there for their locks
 * @links: VRB_LINKS work requests that are posted together
 * @blocks: segments for long vectors; has a lock of its own
 * @probed: unsignaled operations before the probe, the last one first
 * @seen: value of vrb_ep_tx_done.wrs at the last check after a shutdown; written
 *	under @lock when the shutdown begins, later by vrb_ep_cm.watch only
 * @last: completion handler of the final work request of a shutdown
 * @probe: completion handler of the probe
 * @idle: keepalive timer; has a lock of its own
 * @overdue: timer that completes unsignaled operations; has a lock of its own
 */
struct vrb_ep_tx {
	spinlock_t		lock;	/* posts */
	u8			state;
	bool			probing;
	unsigned int		nr_links;
	unsigned int		first_link;
	u32			posted;
	u32			limit;
	unsigned int		unreported;
	struct llist_node	*unsignaled;
	struct vrb_recs		ops;
	struct vrb_tx_stats	stats;
	void			*links;
	struct vrb_blocks	blocks;
	struct llist_node	*probed;
	u32			seen;
	struct ib_cqe		last;
	struct ib_cqe		probe;
	struct timer_list	idle;
	struct timer_list	overdue;
};

/**
 * struct vrb_ep_mr - regions registered on the queue pair of an endpoint
 * @posted: regions of the pool that the device uses or must invalidate;
 *	protected by vrb_ep_tx.lock
 * @wrs: work requests in the send queue that are reserved for regions of the
 *	pool; fixed from enabling on
 * @free: unused work requests of @wrs; protected by vrb_ep_tx.lock
 * @open: regions of the pool that may still need a work request for their
 *	invalidation; protected by vrb_ep_tx.lock
 * @unreported: unsignaled registrations since the last signaled work request
 *	of a region; protected by vrb_ep_tx.lock
 * @flushed: the device no longer uses any region of the endpoint; protected by
 *	vrb_ep_tx.lock
 * @moves: value of vrb_ep_tx_done.wrs at the last check for progress; protected by
 *	vrb_domain.mr_mutex
 * @reg: region of the outstanding registration outside a pool, or NULL;
 *	protected by vrb_ep_tx.lock
 * @reg_done: completed unless a registration outside a pool is outstanding
 * @node: entry of vrb_domain.mr_eps; protected by vrb_domain.mr_mutex
 * @users: number of regions that are being registered on the endpoint; atomic,
 *	because the last of these users must not touch the endpoint after its
 *	decrement
 */
struct vrb_ep_mr {
	struct list_head	posted;
	unsigned int		wrs;
	unsigned int		free;
	unsigned int		open;
	unsigned int		unreported;
	bool			flushed;
	u32			moves;
	struct vrb_mr		*reg;
	struct completion	reg_done;
	struct list_head	node;
	atomic_t		users;
};

/**
 * struct vrb_ep_tx_done - transmit side of an endpoint, written by completions
 * @ended: records of completed transmits; lockless list
 * @wrs: free-running counter of completed work requests of operations; compared
 *	with vrb_ep_tx.posted, and read without a lock: an old value shows less
 *	room, or no progress, until the next check
 *
 * Completions take no lock, so that they do not contend with posts. Only the
 * context that handles the device's completions writes these members; see
 * vrb_tx_give_back().
 */
struct vrb_ep_tx_done {
	struct llist_head	ended;
	u32			wrs;
};

/**
 * struct vrb_ep - endpoint
 * @base: endpoint of the core
 * @dom: domain of the endpoint
 * @qp: queue pair, from enabling until it is handed over or destroyed; written
 *	under vrb_ep_cm.mutex
 * @iwarp: the port speaks iWARP; fixed from enabling on
 * @limits: limits that posts read
 * @srx: shared receive context that supplies the receives, from enabling on;
 *	NULL: none. Written under vrb_ep_cm.mutex. vrb_srx_drain() compares it without
 *	that mutex with a closed context, to which no endpoint can attach
 * @dom_node: entry of vrb_domain.eps; protected by vrb_dev.mutex
 * @cm: connection
 * @end: termination
 * @work: work item that calls vrb_ep_end(), or posts deferred receives and
 *	invalidations
 * @grow: iWARP: work item that allocates regions for @read_mrs
 * @retry: timer that retries posts, see vrb_retry()
 * @tun: options of the endpoint; fixed once it connects
 * @tx_cq: device's completion queue for transmits
 * @rx_cq: device's completion queue for receives; unused if they share @tx_cq
 *	or come from a shared receive context
 * @tx: transmit side, written by posts
 * @mr: regions registered on @qp
 * @read_mrs: iWARP: regions that reads place data into
 * @tx_done: transmit side, written by completions
 * @rxq: receives; unused with @srx
 *
 * Members written by posts and members written by completions, in each
 * direction, are on different cache lines, because two CPUs may write them. The
 * members that each post reads, from @dom to @limits without vrb_ep_limits.max_msg,
 * are on one cache line without members that each post or completion writes.
 */
struct vrb_ep {
	struct kofi_ep		base;
	struct vrb_domain	*dom;
	struct ib_qp		*qp;
	bool			iwarp;
	struct vrb_ep_limits	limits;
	struct vrb_srx		*srx;
	struct list_head	dom_node;
	struct vrb_ep_cm	cm;
	struct vrb_ep_end	end;
	struct delayed_work	work;
	struct work_struct	grow;
	struct timer_list	retry;
	struct vrb_tunables	tun;
	struct vrb_epcq		tx_cq;
	struct vrb_epcq		rx_cq;

	struct vrb_ep_tx	tx ____cacheline_aligned_in_smp;
	struct vrb_ep_mr	mr;
	struct vrb_read_mrs	read_mrs;

	struct vrb_ep_tx_done	tx_done ____cacheline_aligned_in_smp;

	struct vrb_rxq		rxq;
};

static inline struct vrb_ep *vrb_ep(struct fid_ep *fid)
{
	return container_of(fid, struct vrb_ep, base.ep);
}

/* Test whether the connection has ever been established. Any context; no lock. */
static inline bool vrb_cm_is_established(const struct vrb_ep *ep)
{
	return READ_ONCE(ep->cm.state) == VRB_CM_ESTABLISHED;
}

int vrb_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context);
void vrb_ep_fail_qp(struct vrb_ep *ep, int err);
void vrb_ep_end(struct vrb_ep *ep, int err);
void vrb_ep_linger(struct vrb_ep *ep);

/*
 * Let the consumer try again soon, after a post failed for lack of a resource
 * that no completion of this endpoint frees. A pending timer is not postponed.
 */
static inline void vrb_retry(struct timer_list *retry)
{
	timer_reduce(retry, jiffies + 1);
}

/* Refuse a post until the timer wakes the consumer. */
static inline int vrb_refuse_for_now(struct kofi_ep *base, struct timer_list *retry)
{
	kofi_ep_blocked(base);
	vrb_retry(retry);
	return -EAGAIN;
}

/* -------------------------------------------------------------- ep_fail.c */

void vrb_ep_abort(struct vrb_ep *ep, int err);
void vrb_ep_failed(struct vrb_ep *ep, const struct ib_wc *wc, int err);

/* ------------------------------------------------------------------- cm.c */

extern const struct fi_ops_cm vrb_ep_cm_ops;

u8 vrb_cm_pack(u8 *area, const void *data, size_t len);
bool vrb_cm_unpack(const void *area, size_t len, const void **data,
		   size_t *data_len);
int vrb_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev);
void vrb_cm_ask(struct vrb_ep *ep, struct rdma_cm_id *id);
const char *vrb_event_strerror(int prov_errno);
int vrb_addr_set(union kofi_ip *to, const void *addr);
int vrb_addr_get(const union kofi_ip *from, void *addr, size_t *len);
int vrb_cm_getopt(fid_t fid, int level, int name, void *val, size_t *len);
int vrb_cm_create(struct vrb_ep *ep);
void vrb_cm_free_port(struct vrb_ep *ep);
bool vrb_cm_given_up(struct vrb_ep *ep);
void vrb_cm_watch(struct work_struct *work);

/* ------------------------------------------------------------------ pep.c */

int vrb_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_pep **fid, void *context);
int vrb_req_take(struct vrb_ep *ep, fid_t handle);
void vrb_pep_gid_change(void);
void vrb_pep_remove(struct ib_device *ib);

/* --------------------------------------------------------------- linger.c */

extern struct workqueue_struct *vrb_linger_wq;

int vrb_linger_prepare(struct vrb_ep *ep);
void vrb_linger_connect(struct vrb_ep *ep, struct rdma_cm_id *id);
void vrb_linger_leave(struct vrb_ep *ep);
void vrb_linger_wait(struct vrb_domain *dom);
void vrb_linger_destroy_qp(struct rdma_cm_id *id, struct vrb_epcq *tx_cq,
			   struct vrb_epcq *rx_cq);
int vrb_linger_init(void);
void vrb_linger_exit(void);

/* ------------------------------------------------------------------- tx.c */

int vrb_tx_init(struct vrb_ep *ep);
void vrb_tx_exit(struct vrb_ep *ep);
void vrb_tx_close(struct vrb_ep *ep);
bool vrb_tx_finish(struct vrb_ep *ep);
void vrb_tx_probe(struct vrb_ep *ep);
void vrb_tx_push(struct vrb_ep *ep);
void vrb_tx_overdue(struct timer_list *t);
void vrb_tx_idle(struct timer_list *t);
void vrb_tx_flush(struct vrb_ep *ep, bool drained);

/*
 * Test whether transmits are accepted. Any context; no lock. Posts that must not
 * be lost test with tx.lock held.
 */
static inline bool vrb_tx_is_open(const struct vrb_ep *ep)
{
	return READ_ONCE(ep->tx.state) == VRB_TX_OPEN;
}

/* Test whether work requests of operations are outstanding. Any context; no lock. */
static inline bool vrb_tx_outstanding(const struct vrb_ep *ep)
{
	return READ_ONCE(ep->tx.posted) != READ_ONCE(ep->tx_done.wrs);
}

ssize_t vrb_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);

/* ------------------------------------------------------------- rma_post.c */

extern const struct fi_ops_rma vrb_rma_ops;

/* ---------------------------------------------------------- atomic_post.c */

extern const struct fi_ops_atomic vrb_atomic_ops;

int vrb_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		     enum fi_op op, struct fi_atomic_attr *attr, u64 flags);

/* ------------------------------------------------------------------- rx.c */

void vrb_rxq_prepare(struct vrb_rxq *q, struct kofi_ep *base,
		     struct vrb_domain *dom, struct timer_list *retry);
int vrb_rxq_init(struct vrb_rxq *q);
void vrb_rxq_exit(struct vrb_rxq *q);
void vrb_rxq_close(struct vrb_rxq *q);
void vrb_rxq_flush(struct vrb_rxq *q);
ssize_t vrb_rxq_post(struct vrb_rxq *q, const struct fi_msg *msg, u64 flags);
int vrb_rx_error(int status);
void vrb_rx_deferred(struct vrb_ep *ep);
void vrb_rx_push(struct vrb_ep *ep);
void vrb_rx_repost(struct vrb_ep *ep);
ssize_t vrb_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);

/* ------------------------------------------------------------------ srx.c */

/**
 * struct vrb_srx - shared receive context
 * @base: endpoint of the core
 * @dom_node: entry of vrb_domain.srxs; protected by vrb_dev.mutex
 * @mutex: protects @cq, @drain and @rxq.srq; serialises barriers on @cq
 * @cq: device's completion queue for the receives; from enabling the first
 *	endpoint until vrb_srx_end()
 * @drain: queue pair without a connection, for barriers on @cq
 * @rxq: receives; @rxq.srq is NULL after vrb_srx_end()
 * @retry: timer that retries posts, see vrb_retry()
 */
struct vrb_srx {
	struct kofi_ep		base;
	struct list_head	dom_node;
	struct mutex		mutex;	/* cq, drain, rxq.srq */
	struct vrb_epcq		cq;
	struct ib_qp		*drain;
	struct vrb_rxq		rxq;
	struct timer_list	retry;
};

int vrb_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
		    struct fid_ep **fid, void *context);
int vrb_srx_attach(struct vrb_ep *ep);
int vrb_srx_drain_ep(struct vrb_ep *ep);
void vrb_srx_end(struct vrb_srx *srx);

/* Return the device's completion queue for the receives of an endpoint. */
static inline struct vrb_epcq *vrb_ep_rx_cq(struct vrb_ep *ep)
{
	return ep->srx ? &ep->srx->cq : ep->rxq.cq;
}

void vrb_cm_step(struct kofi_obj *obj, const char *step, int err);

static inline void vrb_stat_add(unsigned long *stat, unsigned long n)
{
	WRITE_ONCE(*stat, *stat + n);
}

static inline void vrb_stat_inc(unsigned long *stat)
{
	vrb_stat_add(stat, 1);
}

#endif /* _KOFI_VERBS_H */
