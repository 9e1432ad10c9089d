/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of kofi_verbs.ko share. */
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
#define VRB_QUIRK_NO_TCLASS	BIT(9)	/* ignores the type of service */

u32 vrb_quirks(const struct ib_device *ib);
bool vrb_dev_access(const struct ib_device *ib, const struct net *net);

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
 * @needs_map: mapping is more than taking the address, or is counted
 * @lkey: key of all local memory
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
	bool			needs_map;
	u32			lkey;
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
 * @nr: segments
 * @room: of them, in @segs; at least one
 * @dir: which way it goes, enum dma_data_direction
 * @sgl: mapped by the consumer: its list, instead of the segments that follow
 * @blocks: those for which @segs has no room
 * @last: of @blocks
 * @segs: the first of them
 */
struct vrb_map {
	unsigned int		nr;
	u8			room;
	u8			dir;
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

/* Take over what vrb_map_seg() has mapped, or need not. */
static __always_inline void vrb_map_set(struct vrb_map *map, u64 addr, u32 len,
					enum dma_data_direction dir)
{
	map->dir = dir;
	map->nr = 1;
	map->segs[0].addr = addr;
	map->segs[0].len = len;
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
static __always_inline bool vrb_kvec_is_one(const struct kvec *kv, size_t count,
					    enum kofi_vec vec, size_t max)
{
	return vec == KOFI_KVEC && count == 1 && kv &&
	       kv->iov_len - 1 < max &&		/* nor is it empty */
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
	if (vrb_map_is_one(map) && !dom->needs_map)
		map->nr = 0;
	else
		vrb_unmap_any(map, dom, blocks);
}

unsigned int vrb_walk_sges(struct vrb_walk *w, struct ib_sge *sge,
			   unsigned int max, u32 lkey, size_t want, u32 *len);

/* ----------------------------------------------------------------- recs.c */

/**
 * struct vrb_recs - records of operations
 * @free: to be used next, under the owner's lock: the last one that was given
 *	back first
 * @mem: all of them
 * @size: bytes of one
 * @nr: how many there are
 * @used: of them, have been used: no more than were in use at a time
 *
 * What completes gives a record back to another list, without a lock: of that all
 * are taken at once when there is none in @free, and only then a new one.
 */
struct vrb_recs {
	struct llist_node	*free;
	void			*mem;
	unsigned int		size;
	unsigned int		nr;
	unsigned int		used;
};

#define VRB_RECS_RUN	64	/* records looked at with interrupts off */

static inline void *vrb_recs_at(const struct vrb_recs *r, unsigned int i)
{
	return r->mem + (size_t)i * r->size;
}

static inline size_t vrb_recs_bytes(const struct vrb_recs *r)
{
	return (size_t)r->nr * r->size;
}

/* A walk over all records: other contexts get the lock, and interrupts, now and then. */
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
 * struct vrb_rxop - a receive
 * @cqe: of its work request
 * @q: whose it is
 * @context: comes back in the completion
 * @flags: it was posted with
 * @seq: vrb_rxq.posts when it was posted
 * @posted: the device has it
 * @next: of those that are free
 * @deferred: of those the device could not take yet, or that are flushed
 * @map: its memory
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
 * struct vrb_rxq - receives of an endpoint or a shared context
 * @base: whose they are, and who reports them
 * @ep: the endpoint; NULL for a shared context
 * @srq: the device's queue; NULL for the endpoint's queue pair
 * @dom: their domain
 * @cq: what the device reports them to
 * @retry: the owner's timer for vrb_retry()
 * @sge: segments of a work request
 * @one_max: see vrb_one_max()
 * @deferred: posted after all others, but the device could not take them yet
 * @lock: irqsave, guards @deferred and what follows, but for @ended
 * @closed: no more posts
 * @posts: how many there have been
 * @nr_held: of @deferred, those that FI_MORE holds back
 * @ops: records
 * @ended: records of receives that have ended
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

	struct llist_head	ended ____cacheline_aligned_in_smp;
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
 * @left: jiffies when the peer has left it, as the manager says, or 0
 * @dead: why the endpoint must end, a positive error code; set once
 * @ended: it has; under cm_mutex
 * @failed: jiffies when the queue pair has been told to go into its error state;
 *	the same
 * @refused: jiffies when the device has said that it refuses something of the
 *	peer's, or 0
 * @work: ends it, or posts deferred receives
 * @watch: bounds the time for connecting, and for sending what is left
 * @grow: makes regions to read into, on iWARP
 * @retry: see vrb_retry()
 * @idle: sees to it that something is sent now and then
 * @overdue: and that unsignaled operations complete
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
 * @mr_moves: @sq_done when it was looked at last for a registration
 * @mr_wrs: work requests the send queue has room for, of the regions of a pool
 * @tx_usual: flags of an operation that need no look
 * @tx_one_max: see vrb_one_max()
 * @sq_size: work requests the send queue has room for, of operations
 * @send_sge: segments of a work request that sends or writes
 * @read_sge: the same, that reads
 * @max_inline: bytes a work request can take along
 * @srx: shared context it has its receives of, from enabling on, or NULL
 * @tx_lock: irqsave; the order of posts is that of the device; guards what
 *	follows, but for @tx_ended and @sq_done
 * @tx_closed: no more posts
 * @tx_ending: @tx_last is to be posted, once the device has room
 * @tx_probing: @tx_probe is with the device
 * @nr_links: of @links, in use; 0: none waits
 * @first_link: of these, the first that waits
 * @sq_posted: work requests of operations that have been accepted, counted without
 *	end
 * @sq_limit: what that may become, as far as is known: @sq_done and @sq_size
 * @tx_unreported: operations since the last one whose end will be reported
 * @tx_unsignaled: these, the last one first
 * @tx_ops: records
 * @stats: statistics
 * @links: VRB_LINKS work requests, to be posted together
 * @tx_blocks: for long vectors
 * @tx_probed: unsignaled operations before the probe, the last one first
 * @tx_left: @sq_done as @watch has seen it last, of an endpoint that shuts down
 * @tx_last: of the work request after all others, when the consumer shuts down
 * @tx_probe: of the one that asks whether all before it has ended
 * @mr_posted: regions of a pool the device has, or is to invalidate
 * @mr_free: of @mr_wrs, free
 * @mr_open: regions that may still need one for their end
 * @mr_unreported: registrations since the last work request of a region whose
 *	end is reported
 * @mr_flushed: the device has nothing of the regions any more
 * @read_mrs: what it reads into, on iWARP
 * @tx_ended: records of operations that have ended. This and @sq_done are
 *	written by the context that takes the device's completions; see
 *	vrb_tx_give_back()
 * @sq_done: work requests of operations that have ended, as @sq_posted
 * @rxq: receives; unused with @srx
 *
 * What is posted and what has completed, of either direction, are in lines of the
 * cache of their own: they may be two processors' work.
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
	unsigned long		left;
	int			dead;
	bool			ended;
	unsigned long		failed;
	unsigned long		refused;
	struct delayed_work	work;
	struct delayed_work	watch;
	struct work_struct	grow;
	struct timer_list	retry;
	struct timer_list	idle;
	struct timer_list	overdue;
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
	u32			mr_moves;
	unsigned int		mr_wrs;
	u64			tx_usual;
	size_t			tx_one_max;
	unsigned int		sq_size;
	unsigned int		send_sge;
	unsigned int		read_sge;
	unsigned int		max_inline;
	struct vrb_srx		*srx;

	spinlock_t		tx_lock ____cacheline_aligned_in_smp; /* posts */
	bool			tx_closed;
	bool			tx_ending;
	bool			tx_probing;
	unsigned int		nr_links;
	unsigned int		first_link;
	u32			sq_posted;
	u32			sq_limit;
	unsigned int		tx_unreported;
	struct llist_node	*tx_unsignaled;
	struct vrb_recs		tx_ops;
	struct vrb_stats	stats;
	void			*links;
	struct vrb_blocks	tx_blocks;
	struct llist_node	*tx_probed;
	u32			tx_left;
	struct ib_cqe		tx_last;
	struct ib_cqe		tx_probe;
	struct list_head	mr_posted;
	unsigned int		mr_free;
	unsigned int		mr_open;
	unsigned int		mr_unreported;
	bool			mr_flushed;
	struct vrb_read_mrs	read_mrs;

	struct llist_head	tx_ended ____cacheline_aligned_in_smp;
	u32			sq_done;

	struct vrb_rxq		rxq;
};

static inline struct vrb_ep *vrb_ep(struct fid_ep *fid)
{
	return container_of(fid, struct vrb_ep, base.ep);
}

int vrb_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context);
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
/* Has the device work requests of operations, as far as is known? Any context */
static inline bool vrb_tx_outstanding(const struct vrb_ep *ep)
{
	return READ_ONCE(ep->sq_posted) != READ_ONCE(ep->sq_done);
}

ssize_t vrb_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags);

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
