/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of kofi_verbs.ko share. */
#ifndef _KOFI_VERBS_H
#define _KOFI_VERBS_H

#include <linux/in6.h>
#include <linux/kofi/lib.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "mr.h"

#define VRB_CM_DATA_MAX		55	/* private data of a request, without its length */
#define VRB_CM_DATA_AREA	(VRB_CM_DATA_MAX + 1)
#define VRB_INJECT_MAX		128	/* bytes an inject may have */
#define VRB_RMA_MAX		4	/* segments of remote memory of one operation */
#define VRB_SIZE_MAX		65536	/* operations of one direction */
#define VRB_BLOCK_SEGS		64	/* segments of a block, for longer vectors */
#define VRB_BLOCKS		16	/* blocks of an endpoint */
#define VRB_CHAIN_MAX		256	/* work requests of one operation */
#define VRB_OWN_WRS		4	/* for sending that are of no operation */
#define VRB_LINKS		8	/* work requests that are posted together */

#define VRB_TX_LEVELS		(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
				 FI_DELIVERY_COMPLETE)
#define VRB_TX_FLAGS		(FI_COMPLETION | FI_MORE | FI_FENCE | \
				 FI_INJECT | FI_REMOTE_CQ_DATA | \
				 KOFI_NO_COMPLETION | VRB_TX_LEVELS)
#define VRB_FETCH_FLAGS		(FI_COMPLETION | FI_MORE | FI_FENCE)

/* ------------------------------------------------------------------ main.c */

extern struct kofi_provider vrb_provider;
extern struct workqueue_struct *vrb_wq;
extern unsigned int vrb_tx_size;
extern unsigned int vrb_rx_size;
extern unsigned int vrb_connect_timeout;

/**
 * struct vrb_tunables - options of an endpoint
 * @connect_timeout: milliseconds for connecting
 * @silence_timeout: milliseconds without an answer after which a peer is dead;
 *	0 is what the path says
 * @keepalive_idle: milliseconds with nothing outstanding after which something
 *	is sent; 0: never
 */
struct vrb_tunables {
	unsigned int	connect_timeout;
	unsigned int	silence_timeout;
	unsigned int	keepalive_idle;
};

void vrb_tunables_init(struct vrb_tunables *tun);
int vrb_tunables_set(struct vrb_tunables *tun, int name, const void *val);
int vrb_tunables_get(const struct vrb_tunables *tun, int name, void *val);

/* ------------------------------------------------------------------ info.c */

int vrb_if_find_dev(struct net *net, struct ib_device *ib, int family,
		    union kofi_ip *addr);
int vrb_info_queue(const struct ib_device *ib);
size_t vrb_info_max_wr(const struct ib_device *ib);
bool vrb_info_atomic(const struct ib_device *ib);
bool vrb_info_regions(const struct ib_device *ib);
int vrb_info_check_domain(const struct fi_info *info, struct ib_device *ib);
int vrb_info_check_ep(const struct fi_info *info, struct ib_device *ib,
		      u32 port, size_t *max_msg);
struct fi_info *vrb_info_request(const struct fi_info *from,
				 struct rdma_cm_id *id, const char *fabric);
int vrb_getinfo(u32 version, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **info);

/* --------------------------------------------------------------- quirks.c */

#define VRB_QUIRK_INIT_NET	BIT(0)	/* works in the initial namespace only */
#define VRB_QUIRK_DEREG_RCU	BIT(1)	/* after ib_dereg_mr(), synchronize_rcu() */
#define VRB_QUIRK_STALE_KEY	BIT(2)	/* remote invalidation by an old key */
#define VRB_QUIRK_SEND_IN_PLACE	BIT(3)	/* signal all that is a page or more */
#define VRB_QUIRK_SHORT_READ	BIT(4)	/* short reads must not cross a page */
#define VRB_QUIRK_ZERO_READ	BIT(5)	/* no reads of no bytes */
#define VRB_QUIRK_READ_ORDER	BIT(6)	/* reads complete after younger ones */
#define VRB_QUIRK_RETRY_EVER	BIT(7)	/* 7 retries are without end */
#define VRB_QUIRK_SQ_BYTES	BIT(8)	/* depth and length share the queue */

u32 vrb_quirks(const struct ib_device *ib);

/* ------------------------------------------------------------------ nic.c */

char *vrb_nic_name(const struct ib_device *ib);
int vrb_nic_fill(struct fi_info *info, struct ib_device *ib, u32 port);

/* ---------------------------------------------------------------- domain.c */

/**
 * struct vrb_dev - a device that can be used
 * @node: on the list of them, under vrb_mutex
 * @ib: the device
 * @name: its name, as clients know it
 * @net: network namespace it can be opened in; NULL: all
 * @refs: one while it is there, and one of each domain
 * @mutex: guards @gone and @doms, and of each domain its endpoints and shared
 *	contexts
 * @gone: the device has been removed
 * @doms: domains opened on it
 * @events: its handler of the device's events
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
 * struct vrb_domain - a domain
 * @base: the core's
 * @dev: its device
 * @node: on the device's list, while there is a device
 * @eps: its endpoints; with @node under the device's mutex
 * @srxs: its shared receive contexts; the same
 * @ib: the device. Once it has gone this is not followed any more: endpoints
 *	have ended, and new ones are refused. Its memory stays all the same: work
 *	items of some drivers for a connection outlive the connection
 * @pd: protection domain of all that is in the domain
 * @quirks: VRB_QUIRK_* of the device
 * @max_wr: operations a direction of an endpoint can have
 * @map_max: bytes a segment can have
 * @max_inline: bytes a work request can take along, as far as is known
 * @atomic: the device has atomic operations
 * @mr_atomic: and the consumer wants regions to be open to them; cleared once the
 *	device has refused that
 * @regions: it has regions, and messages that invalidate them
 * @gone: the device has been, or is being, removed
 * @lingering: iWARP: queue pairs of closed endpoints whose attempt to connect
 *	has not ended
 * @mr_mutex: mr.c's
 * @mrs: regions that have something of the device
 * @mr_eps: endpoints on which regions can be registered
 * @mr_pending: regions to be registered
 * @mr_keys: all regions, by their keys without the part that changes
 * @maps: dma.c's, for its check: segments that are mapped
 * @map_sum: the sum of their addresses and lengths
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
	unsigned int		max_inline;
	bool			atomic;
	bool			mr_atomic;
	bool			regions;
	bool			gone;
	atomic_t		lingering;
	struct mutex		mr_mutex;	/* all that follows */
	struct list_head	mrs;
	struct list_head	mr_eps;
	struct list_head	mr_pending;
	struct xarray		mr_keys;
#if IS_ENABLED(CONFIG_KUNIT)
	atomic_t		maps;
	atomic64_t		map_sum;
#endif
};

extern struct mutex vrb_mutex;
extern struct list_head vrb_devs;

int vrb_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fid,
	       void *context);
void vrb_domain_wait(struct vrb_domain *dom);
bool vrb_dev_there(const struct ib_device *ib);
bool vrb_dev_access(const struct ib_device *ib, const struct net *net);
int vrb_domain_init(void);
void vrb_domain_exit(void);

/* -------------------------------------------------------------------- cq.c */

/**
 * struct vrb_cq - the provider's part of a completion queue
 * @poll: where it calls back
 * @done: it does
 * @cpu: wanted, or -1
 * @direct: struct vrb_epcq that are to be polled; changed with the queue claimed
 */
struct vrb_cq {
	enum kofi_poll		poll;
	bool			done;
	int			cpu;
	struct list_head	direct;
};

/**
 * struct vrb_epcq - a device's queue behind one direction of an endpoint
 * @node: vrb_cq.direct
 * @kcq: the core's queue its completions go to; NULL if they are only counted
 * @ib: the device's queue
 * @nr: entries we have of it
 * @direct: it is polled
 *
 * A device's queue has room for every work request of its endpoint, as each of
 * them may fail. So the number of endpoints that report to one of the core's
 * queues has no bound, and no device's queue overruns.
 */
struct vrb_epcq {
	struct list_head	node;
	struct kofi_cq		*kcq;
	struct ib_cq		*ib;
	unsigned int		nr;
	bool			direct;
};

/*
 * How an operation has ended; callers add what else they know. Member by member,
 * as the compiler would clear everything first.
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

struct vrb_seg {
	u64	addr;
	u32	len;
};

struct vrb_block {
	struct vrb_block	*next;
	struct vrb_seg		segs[VRB_BLOCK_SEGS];
};

/**
 * struct vrb_blocks - segments for long vectors, shared by an endpoint's
 * operations
 * @lock: irqsave, guards @free
 * @free: unused ones
 * @mem: all of them; NULL where no vector may be that long
 */
struct vrb_blocks {
	spinlock_t		lock;	/* free */
	struct vrb_block	*free;
	struct vrb_block	*mem;
};

/**
 * struct vrb_map - memory of an operation as the device sees it
 * @dir: which way it goes
 * @nr: segments
 * @room: of them, in @segs; at least one
 * @sgl: mapped by the consumer: its list, instead of the segments that follow
 * @blocks: those for which @segs has no room
 * @last: of @blocks
 * @segs: the first of them
 */
struct vrb_map {
	enum dma_data_direction	dir;
	unsigned int		nr;
	unsigned int		room;
	struct scatterlist	*sgl;
	struct vrb_block	*blocks;
	struct vrb_block	*last;
	struct vrb_seg		segs[];
};

/* Position in a vrb_map */
struct vrb_walk {
	const struct vrb_map	*map;
	const struct vrb_block	*block;
	struct scatterlist	*sg;
	unsigned int		i;	/* segment */
	u32			off;	/* in it */
};

/* Is it one segment, not of a list the consumer has mapped? Most are. */
static inline bool vrb_map_is_one(const struct vrb_map *map)
{
	return likely(map->nr == 1 && !map->sgl);
}

/* Segments an operation has room for itself: also a list needs one. */
static inline unsigned int vrb_map_room(size_t iov_limit)
{
	return clamp_t(size_t, iov_limit, 1, KOFI_IOV_MAX);
}

/* Take over what vrb_map_one() has mapped. */
static inline void vrb_map_set(struct vrb_map *map, u64 addr, u32 len,
			       enum dma_data_direction dir)
{
	map->dir = dir;
	map->nr = 1;
	map->segs[0].addr = addr;
	map->segs[0].len = len;
}

/* Otherwise there is nothing to undo, but that is checked in kernels for tests. */
static inline bool vrb_map_matters(const struct vrb_domain *dom)
{
	return IS_ENABLED(CONFIG_KUNIT) || !ib_uses_virt_dma(dom->ib);
}

int vrb_blocks_init(struct vrb_blocks *b, int node);
void vrb_blocks_exit(struct vrb_blocks *b);
int vrb_msg_len(const struct fi_msg *msg, unsigned int dir, size_t iov_limit,
		size_t *len);
int vrb_map_msg(struct vrb_map *map, struct vrb_domain *dom,
		struct vrb_blocks *blocks, const struct fi_msg *msg,
		enum dma_data_direction dir);
dma_addr_t vrb_map_seg(struct vrb_domain *dom, const struct kvec *kv,
		       enum dma_data_direction dir);
void vrb_unmap_seg(struct vrb_domain *dom, u64 addr, u32 len,
		   enum dma_data_direction dir);
void vrb_unmap_any(struct vrb_map *map, struct vrb_domain *dom,
		   struct vrb_blocks *blocks);
int vrb_map_sg(struct vrb_domain *dom, struct ib_device *ib,
	       struct scatterlist *sg, int nents, enum dma_data_direction dir);
void vrb_unmap_sg(struct vrb_domain *dom, struct ib_device *ib,
		  struct scatterlist *sg, int nents, int mapped,
		  enum dma_data_direction dir);
size_t vrb_map_max(struct ib_device *ib);
void vrb_map_check(struct vrb_domain *dom);
void vrb_walk_init(struct vrb_walk *w, const struct vrb_map *map);

/*
 * Is the memory of an operation one segment for sure, of at most MAX bytes? In
 * the kernel's linear mapping it is, and all that is elsewhere may be vmalloc's.
 */
static inline bool vrb_msg_is_one(const struct fi_msg *msg, size_t max)
{
	const struct kvec *kv = msg->msg_iov;

	return msg->vec == KOFI_KVEC && msg->iov_count == 1 && kv &&
	       kv->iov_len && kv->iov_len <= max &&
	       (unsigned long)kv->iov_base >= PAGE_OFFSET &&
	       kv->iov_base < high_memory;
}

/* The longest for which that can be, where an array may have IOV_LIMIT segments */
static inline size_t vrb_one_max(const struct vrb_domain *dom, size_t iov_limit,
				 size_t msg_max)
{
	return iov_limit ? min(dom->map_max, msg_max) : 0;
}

/**
 * vrb_map_one - map an operation's memory that is one segment
 * @dom: the domain, with its device
 * @msg: the operation, which is known to be so from vrb_msg_is_one()
 * @dir: which way the bytes go
 *
 * Context: any.
 * Return: where the device sees it, or DMA_MAPPING_ERROR if the system cannot
 * map more for now.
 */
static inline dma_addr_t vrb_map_one(struct vrb_domain *dom,
				     const struct fi_msg *msg,
				     enum dma_data_direction dir)
{
	const struct kvec *kv = msg->msg_iov;

	return vrb_map_matters(dom) ? vrb_map_seg(dom, kv, dir) :
				      (uintptr_t)kv->iov_base;
}

/**
 * vrb_unmap - undo vrb_map_msg(), or vrb_map_set()
 * @map: the mapping; holds nothing afterwards
 * @dom: the domain, with its device
 * @blocks: of the endpoint
 *
 * Context: any.
 */
static inline void vrb_unmap(struct vrb_map *map, struct vrb_domain *dom,
			     struct vrb_blocks *blocks)
{
	if (vrb_map_is_one(map) && !vrb_map_matters(dom))
		map->nr = 0;
	else
		vrb_unmap_any(map, dom, blocks);
}

unsigned int vrb_walk_sges(struct vrb_walk *w, struct ib_sge *sge,
			   unsigned int max, u32 lkey, size_t want, u32 *len);

/* ------------------------------------------------------------------- ep.c */

enum vrb_op {
	VRB_SEND,
	VRB_WRITE,
	VRB_READ,
	VRB_STORE,	/* an atomic write */
	VRB_ADD,	/* fetch and add */
	VRB_SWAP,	/* compare and swap */
};

/* Does something come back that is written to local memory? */
static inline bool vrb_op_fetches(enum vrb_op op)
{
	return op == VRB_READ || op == VRB_ADD || op == VRB_SWAP;
}

/**
 * struct vrb_post - what one kind of post has beyond struct fi_msg
 * @op: what it is
 * @rma: segments of the peer's memory
 * @rma_count: number of them
 * @operand: of VRB_ADD and VRB_SWAP
 * @compare: of VRB_SWAP
 */
struct vrb_post {
	enum vrb_op			op;
	const struct fi_rma_iov		*rma;
	size_t				rma_count;
	u64				operand;
	u64				compare;
};

/**
 * struct vrb_txop - a transmit
 * @cqe: of its last work request
 * @part: of the ones before
 * @next: of those that are posted, or free
 * @ep: whose it is
 * @context: comes back in the completion
 * @flags: it was posted with
 * @len: bytes
 * @op: what it is
 * @posted: the device has it, or has had it and it has not completed
 * @signaled: the device reports its end
 * @inlined: its work request takes its bytes along
 * @single: it is one work request with one segment
 * @parts: work requests it is cut into
 * @wrs: work requests, with those that register what it reads into
 * @read_mrs: what it reads into, on iWARP
 * @status: why it has failed: enum ib_wc_status of the first that did
 * @map: its memory; behind its segments is room for the payload of an inject
 */
struct vrb_txop {
	struct ib_cqe		cqe;
	struct ib_cqe		part;
	struct vrb_txop		*next;
	struct vrb_ep		*ep;
	void			*context;
	u64			flags;
	size_t			len;
	enum vrb_op		op;
	bool			posted;
	bool			signaled;
	bool			inlined;
	bool			single;
	unsigned int		parts;
	unsigned int		wrs;
	struct vrb_read_mr	*read_mrs;
	int			status;
	struct vrb_map		map;
};

static inline u8 *vrb_txop_inject(struct vrb_txop *op)
{
	return (u8 *)&op->map.segs[op->map.room];
}

struct vrb_rxq;

/**
 * struct vrb_rxop - a receive
 * @cqe: of its work request
 * @node: on the list of those that are free or posted
 * @deferred: or on the list of those the device could not take yet
 * @q: whose it is
 * @context: comes back in the completion
 * @flags: it was posted with
 * @map: its memory
 */
struct vrb_rxop {
	struct ib_cqe		cqe;
	struct hlist_node	node;
	struct list_head	deferred;
	struct vrb_rxq		*q;
	void			*context;
	u64			flags;
	struct vrb_map		map;
};

/**
 * struct vrb_rxq - receives of an endpoint or a shared context
 * @lock: irqsave, guards the lists
 * @base: whose they are, and who reports them
 * @ep: the endpoint; NULL for a shared context
 * @srq: the device's queue; NULL for the endpoint's queue pair
 * @dom: their domain
 * @cq: what the device reports them to
 * @retry: the owner's timer for vrb_retry()
 * @free: not in use
 * @posted: with the device, the last one first
 * @deferred: posted after these, but the device could not take them yet
 * @nr_held: of them, those that FI_MORE holds back
 * @ops: all of them
 * @bytes: their memory
 * @sge: segments of a work request
 * @one_max: see vrb_one_max()
 * @closed: no more posts
 */
struct vrb_rxq {
	spinlock_t		lock;	/* the lists */
	struct kofi_ep		*base;
	struct vrb_ep		*ep;
	struct ib_srq		*srq;
	struct vrb_domain	*dom;
	struct vrb_epcq		*cq;
	struct timer_list	*retry;
	struct hlist_head	free;
	struct hlist_head	posted;
	struct list_head	deferred;
	unsigned int		nr_held;
	void			*ops;
	size_t			bytes;
	unsigned int		sge;
	size_t			one_max;
	bool			closed;
};

/**
 * struct vrb_stats - statistics of an endpoint beyond the core's
 * @tx_wrs: work requests posted for sending
 * @tx_unsignaled: operations whose end the device does not report
 * @tx_inline: work requests that took their bytes along
 * @tx_full: posts that found no operation free, or the send queue full
 * @rx_deferred: receives that had to wait for the queue pair
 */
struct vrb_stats {
	unsigned long	tx_wrs;
	unsigned long	tx_unsignaled;
	unsigned long	tx_inline;
	unsigned long	tx_full;
	unsigned long	rx_deferred;
};

/**
 * struct vrb_ep - endpoint
 * @base: the core's
 * @dom: its domain
 * @dom_node: vrb_domain.eps
 * @cm_mutex: control calls, and the end, one after the other; not taken by
 *	events of the connection manager
 * @id: the connection manager's side; from enabling, or the request, until
 *	endpoint or device go
 * @qp: the queue pair; from enabling, as long
 * @linger: for the identifier, should it outlive the endpoint; as long
 * @asked: the manager waits for the peer's answer; with @established and @left
 *	written by the manager's events
 * @established: the connection stood
 * @left: the manager knows that it does no more
 * @dead: why the endpoint must end, a positive error code; set once
 * @ended: it has; under cm_mutex
 * @failed: jiffies when the queue pair has been told to go into its error state;
 *	the same
 * @work: ends it, or posts deferred receives
 * @watch: bounds the time for connecting, and for sending what is left
 * @retry: see vrb_retry()
 * @idle: sees to it that something is sent now and then
 * @tun: options
 * @local: own address
 * @peer: the other one's
 * @responder_resources: of the connection
 * @initiator_depth: the same
 * @iwarp: the device is one of iWARP
 * @max_msg: bytes a message can have
 * @cm_len: bytes at @cm_data
 * @cm_data: private data on its way out
 * @tx_cq: what the device reports transmits to
 * @rx_cq: the same for receives; unused if they report to the same queue, or
 *	are a shared context's
 * @mr_node: vrb_domain.mr_eps
 * @mr_users: regions that are just being registered on it
 * @reg_done: the last registration of a region of no pool has been reported
 * @reg_mr: the region that was
 * @mr_moves: @tx_ended when it was looked at last for a registration
 * @mr_wrs: work requests the send queue has room for, of the regions of a pool
 * @tx_lock: irqsave; the order of posts is that of the device; guards all of
 *	the transmit side
 * @tx_free: first of the operations not in use
 * @tx_posted: first of those that are with the device, in order
 * @tx_end: where the next one goes
 * @tx_ops: all of them
 * @tx_bytes: their memory
 * @tx_blocks: for long vectors
 * @links: VRB_LINKS work requests, to be posted together
 * @nr_links: of them, in use; 0: none waits
 * @first_link: of these, the first that waits
 * @tx_one_max: see vrb_one_max()
 * @tx_size: number of operations
 * @tx_used: of them, in use
 * @tx_ended: operations the device has had, and that have ended
 * @tx_unreported: operations since the last one whose end will be reported
 * @tx_closed: no more posts
 * @tx_ending: @tx_last is to be posted, once the device has room
 * @tx_left: @tx_used as @watch has seen it last, of an endpoint that shuts down
 * @tx_probing: @tx_probe is with the device
 * @tx_probed: stats.tx_wrs at that time
 * @tx_last: of the work request after all others, when the consumer shuts down
 * @tx_probe: of the one that asks whether the peer is alive
 * @sq_size: work requests the send queue has room for, of operations
 * @sq_free: of them, free
 * @mr_posted: regions of a pool the device has, or is to invalidate
 * @mr_free: of @mr_wrs, free
 * @mr_open: regions that may still need one for their end
 * @mr_unreported: registrations since the last work request of a region whose
 *	end is reported
 * @mr_flushed: the device has nothing of the regions any more
 * @send_sge: segments of a work request that sends or writes
 * @read_sge: the same, that reads
 * @max_inline: bytes a work request can take along
 * @read_mrs: what it reads into, on iWARP
 * @srx: shared context it has its receives of, from enabling on, or NULL
 * @rxq: receives; unused with @srx
 * @stats: statistics
 */
struct vrb_ep {
	struct kofi_ep		base;
	struct vrb_domain	*dom;
	struct list_head	dom_node;
	struct mutex		cm_mutex;	/* see above */
	struct rdma_cm_id	*id;
	struct ib_qp		*qp;
	struct vrb_linger	*linger;
	bool			asked;
	bool			established;
	bool			left;
	int			dead;
	bool			ended;
	unsigned long		failed;
	struct delayed_work	work;
	struct delayed_work	watch;
	struct timer_list	retry;
	struct timer_list	idle;
	struct vrb_tunables	tun;
	union kofi_ip		local;
	union kofi_ip		peer;
	u8			responder_resources;
	u8			initiator_depth;
	bool			iwarp;
	size_t			max_msg;
	u8			cm_len;
	u8			cm_data[VRB_CM_DATA_AREA];
	struct vrb_epcq		tx_cq;
	struct vrb_epcq		rx_cq;
	struct list_head	mr_node;
	atomic_t		mr_users;
	struct completion	reg_done;
	struct vrb_mr		*reg_mr;
	unsigned long		mr_moves;
	unsigned int		mr_wrs;

	spinlock_t		tx_lock ____cacheline_aligned_in_smp;
	struct vrb_txop		*tx_free;
	struct vrb_txop		*tx_posted;
	struct vrb_txop		**tx_end;
	void			*tx_ops;
	size_t			tx_bytes;
	struct vrb_blocks	tx_blocks;
	void			*links;
	unsigned int		nr_links;
	unsigned int		first_link;
	size_t			tx_one_max;
	unsigned int		tx_size;
	unsigned int		tx_used;
	unsigned long		tx_ended;
	unsigned int		tx_unreported;
	bool			tx_closed;
	bool			tx_ending;
	bool			tx_probing;
	unsigned long		tx_probed;
	unsigned int		tx_left;
	struct ib_cqe		tx_last;
	struct ib_cqe		tx_probe;
	unsigned int		sq_size;
	unsigned int		sq_free;
	struct list_head	mr_posted;
	unsigned int		mr_free;
	unsigned int		mr_open;
	unsigned int		mr_unreported;
	bool			mr_flushed;
	unsigned int		send_sge;
	unsigned int		read_sge;
	unsigned int		max_inline;
	struct vrb_read_mrs	read_mrs;
	struct vrb_srx		*srx;
	struct vrb_rxq		rxq;
	struct vrb_stats	stats;
};

static inline struct vrb_ep *vrb_ep(struct fid_ep *fid)
{
	return container_of(fid, struct vrb_ep, base.ep);
}

int vrb_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context);
void vrb_ep_abort(struct vrb_ep *ep, int err);
void vrb_ep_failed(struct vrb_ep *ep, const struct ib_wc *wc, int err);
void vrb_ep_fail_qp(struct vrb_ep *ep, int err);
void vrb_ep_end(struct vrb_ep *ep, int err);
void vrb_ep_linger(struct vrb_ep *ep);

/*
 * A post was refused for want of what no completion here brings back: the timer
 * lets the consumer try again. One that is due is not put off.
 */
static inline void vrb_retry(struct timer_list *retry)
{
	timer_reduce(retry, jiffies + 1);
}

/* ------------------------------------------------------------------- cm.c */

extern const struct fi_ops_cm vrb_ep_cm_ops;

u8 vrb_cm_pack(u8 *area, const void *data, size_t len);
bool vrb_cm_unpack(const void *area, size_t len, const void **data,
		   size_t *data_len);
int vrb_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev);
const char *vrb_event_strerror(int prov_errno);
int vrb_addr_set(union kofi_ip *to, const void *addr);
int vrb_addr_get(const union kofi_ip *from, void *addr, size_t *len);
int vrb_cm_getopt(fid_t fid, int level, int name, void *val, size_t *len);
int vrb_cm_create(struct vrb_ep *ep);
bool vrb_cm_given_up(struct vrb_ep *ep);
void vrb_cm_watch(struct work_struct *work);

/* ------------------------------------------------------------------ pep.c */

int vrb_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_pep **fid, void *context);
int vrb_req_take(struct vrb_ep *ep, fid_t handle);
void vrb_pep_remove(struct ib_device *ib);

/* --------------------------------------------------------------- linger.c */

int vrb_linger_prepare(struct vrb_ep *ep);
void vrb_linger_leave(struct vrb_ep *ep);
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
void vrb_tx_idle(struct timer_list *t);
void vrb_tx_flush(struct vrb_ep *ep, bool drained);
int vrb_tx_refused(struct vrb_ep *ep, int err);
ssize_t vrb_tx_accept(struct vrb_ep *ep, const struct fi_msg *msg,
		      const struct vrb_post *post, u64 flags);
ssize_t vrb_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);

/* ------------------------------------------------------------------- wr.c */

/**
 * struct vrb_link - a work request that waits for others
 * @op: its operation
 * @reg: ahead of it, if there is a region: registers that
 * @wr: the work request
 * @sge: its segments
 */
struct vrb_link {
	struct vrb_txop		*op;
	struct ib_reg_wr	reg;
	struct ib_rdma_wr	wr;
	struct ib_sge		sge[];
};

static inline struct vrb_link *vrb_link(const struct vrb_ep *ep, unsigned int i)
{
	return ep->links + i * struct_size_t(struct vrb_link, sge, ep->send_sge);
}

int vrb_links_init(struct vrb_ep *ep, int node);
int vrb_links_post(struct vrb_ep *ep, unsigned int own);
int vrb_links_flush_all(struct vrb_ep *ep);
void vrb_links_drop(struct vrb_ep *ep);

/* What has been accepted before goes first. With tx_lock held */
static inline int vrb_links_flush(struct vrb_ep *ep)
{
	return unlikely(ep->nr_links) ? vrb_links_flush_all(ep) : 0;
}

int vrb_wr_count(struct vrb_ep *ep, struct vrb_txop *op,
		 const struct vrb_post *post);
int vrb_wr_post_atomic(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct vrb_post *post);
int vrb_wr_post_chain(struct vrb_ep *ep, struct vrb_txop *op,
		      const struct fi_msg *msg, const struct vrb_post *post);

/* @last: it is the last work request of its operation */
static __always_inline void vrb_wr_opcode(struct ib_rdma_wr *wr,
					  enum vrb_op op, u64 flags,
					  const struct fi_msg *msg, bool last)
{
	bool data = last && flags & FI_REMOTE_CQ_DATA;

	switch (op) {
	case VRB_SEND:
		wr->wr.opcode = data ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
		if (flags & KOFI_REMOTE_INV) {
			wr->wr.opcode = IB_WR_SEND_WITH_INV;
			wr->wr.ex.invalidate_rkey = msg->inv_key;
		}
		break;
	case VRB_READ:
		wr->wr.opcode = IB_WR_RDMA_READ;
		break;
	default:
		wr->wr.opcode = data ? IB_WR_RDMA_WRITE_WITH_IMM :
				       IB_WR_RDMA_WRITE;
		break;
	}
	if (data)
		wr->wr.ex.imm_data = cpu_to_be32(msg->data);
}

/* The device would need the memory for longer: to be signaled in any case */
static inline bool vrb_tx_in_place(const struct vrb_ep *ep,
				   const struct vrb_txop *op)
{
	return ep->dom->quirks & VRB_QUIRK_SEND_IN_PLACE &&
	       op->len >= PAGE_SIZE && !vrb_op_fetches(op->op);
}

/* ------------------------------------------------------------------ rma.c */

extern const struct fi_ops_rma vrb_rma_ops;

/* --------------------------------------------------------------- atomic.c */

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
 * struct vrb_srx - a shared receive context
 * @base: the core's
 * @dom_node: vrb_domain.srxs
 * @mutex: guards what follows to @drain, and makes one barrier at a time
 * @cq: what the device reports to; from the first endpoint's enabling to the end
 * @drain: queue pair that never was connected, for barriers of @cq
 * @rxq: its receives; its srq is NULL from the end on
 * @retry: see vrb_retry()
 */
struct vrb_srx {
	struct kofi_ep		base;
	struct list_head	dom_node;
	struct mutex		mutex;	/* see above */
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

/* What the device reports an endpoint's receives to */
static inline struct vrb_epcq *vrb_ep_rx_cq(struct vrb_ep *ep)
{
	return ep->srx ? &ep->srx->cq : ep->rxq.cq;
}

static inline void vrb_stat_add(unsigned long *stat, unsigned long n)
{
	WRITE_ONCE(*stat, *stat + n);
}

static inline void vrb_stat_inc(unsigned long *stat)
{
	vrb_stat_add(stat, 1);
}

#endif /* _KOFI_VERBS_H */
