// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pools of memory regions, for registration in any context (kofi.h).
 *
 * A pool is an endpoint's regions, with all they need, made when the endpoint
 * is enabled. Mapping one allocates nothing. Such a region is bound to its
 * endpoint. Draining the endpoint ends those that are mapped and waits for
 * them; they are freed with the endpoint.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "mr.h"

/**
 * struct kofi_mr_pool - an endpoint's regions for any context
 * @ep: the endpoint
 * @segs: segments each region can have
 * @nr: regions
 * @lock: irqsave, guards what follows, and a region's step to KOFI_MR_OPEN
 * @free: regions not handed out
 * @nr_free: number of them
 * @mapped: regions mapped and not yet fenced and reported
 * @closed: the endpoint has been drained
 * @wait: who drains sleeps here until nothing is mapped
 * @maps: statistics: how often a region was mapped
 * @empty: how often there was none to hand out
 * @rcu: lookups may still see the regions
 * @bv: segments of all regions
 * @start: offsets of them
 * @stride: bytes from one region to the next
 * @mrs: the regions, which are the provider's
 */
struct kofi_mr_pool {
	struct kofi_ep		*ep;
	size_t			segs;
	size_t			nr;
	spinlock_t		lock;	/* guards what follows */
	struct list_head	free;
	size_t			nr_free;
	size_t			mapped;
	bool			closed;
	wait_queue_head_t	wait;
	u64			maps;
	u64			empty;
	struct rcu_head		rcu;
	struct bio_vec		*bv;
	u64			*start;
	size_t			stride;
	u8			mrs[] __aligned(__alignof__(struct kofi_mr));
};

static struct kofi_mr *kofi_mr_pool_nth(struct kofi_mr_pool *pool, size_t i)
{
	return (struct kofi_mr *)(pool->mrs + i * pool->stride);
}

/* A region of a pool belongs to its endpoint and is not closed by itself. */
static const struct fi_ops kofi_mr_pool_fid_ops = {
	.size	= sizeof(struct fi_ops),
};

/**
 * kofi_mr_pooled - does the core make the pools of a domain
 * @domain: the domain
 *
 * Context: any.
 * Return: false if its provider has registration of its own.
 */
bool kofi_mr_pooled(const struct kofi_domain *domain)
{
	return domain->domain.ops->mr_regattr == kofi_mr_regattr;
}

static void kofi_mr_pool_free(struct kofi_mr_pool *pool, size_t made)
{
	const struct kofi_mr_ops *ops = pool->ep->domain->mr_ops;

	while (made--)
		ops->exit(kofi_mr_pool_nth(pool, made));
	kvfree(pool->bv);
	kvfree(pool->start);
	kvfree_rcu(pool, rcu);
}

/**
 * kofi_mr_pool_open - make the pool an endpoint was asked to have
 * @ep: an endpoint about to be enabled
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ENOMR without free keys; -EINVAL for more segments than the
 * device can; -ENOMEM.
 */
int kofi_mr_pool_open(struct kofi_ep *ep)
{
	const struct kofi_mr_ops *ops = ep->domain->mr_ops;
	size_t nr = ep->mr_pool_size, segs = ep->mr_pool_segs, i, size;
	int node = ep->domain->node, err = -ENOMEM;
	struct kofi_mr_pool *pool;
	struct kofi_mr *mr;

	if (!nr)
		return 0;
	size = size_add(sizeof(*pool), size_mul(nr, ops->size));
	pool = kvmalloc_node(size, KOFI_MR_GFP | __GFP_ZERO, node);
	if (!pool)
		return -ENOMEM;
	pool->ep = ep;
	pool->stride = ops->size;
	pool->nr = nr;
	pool->segs = segs;
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	init_waitqueue_head(&pool->wait);
	pool->bv = kvmalloc_node(array3_size(nr, segs, sizeof(*pool->bv)),
				 KOFI_MR_GFP, node);
	pool->start = kvmalloc_node(array3_size(nr, segs, sizeof(*pool->start)),
				    KOFI_MR_GFP, node);
	if (!pool->bv || !pool->start) {
		i = 0;
		goto free;
	}

	for (i = 0; i < nr; i++) {
		mr = kofi_mr_pool_nth(pool, i);
		kofi_mr_setup(mr, ep->domain);
		mr->mr.fid.ops = &kofi_mr_pool_fid_ops;
		mr->state = KOFI_MR_FREE;
		mr->pool = pool;
		mr->ep = ep;
		mr->bv = pool->bv + i * segs;
		mr->start = pool->start + i * segs;
		err = ops->init(mr, segs, 0);
		if (err)
			goto free;
		list_add_tail(&mr->node, &pool->free);
	}
	pool->nr_free = nr;
	ep->mr_pool = pool;
	return 0;

free:
	kofi_mr_pool_free(pool, i);
	return err;
}

/**
 * kofi_mr_pool_stop - let nothing be mapped any more
 * @ep: an endpoint that is about to be drained
 *
 * On return no call of the provider's that opens a region of the pool runs or
 * will run. May be called more than once.
 *
 * Context: process.
 */
void kofi_mr_pool_stop(struct kofi_ep *ep)
{
	struct kofi_mr_pool *pool = ep->mr_pool;

	if (!pool)
		return;
	spin_lock_irq(&pool->lock);
	pool->closed = true;
	spin_unlock_irq(&pool->lock);
}

/**
 * kofi_mr_pool_drain - end an endpoint's mapped regions
 * @ep: an endpoint whose pool has been stopped and whose provider has been
 *	drained
 *
 * May be called more than once.
 *
 * Context: process, sleeps; never waits for the network.
 */
void kofi_mr_pool_drain(struct kofi_ep *ep)
{
	struct kofi_mr_pool *pool = ep->mr_pool;
	size_t i;

	might_sleep();
	if (!pool)
		return;
	for (i = 0; i < pool->nr; i++) {
		struct kofi_mr *mr = kofi_mr_pool_nth(pool, i);

		if (kofi_mr_end_begin(mr))
			kofi_mr_revoke(mr, ECANCELED, 0);
	}

	spin_lock_irq(&pool->lock);
	wait_event_lock_irq(pool->wait, !pool->mapped, pool->lock);
	spin_unlock_irq(&pool->lock);
}

/**
 * kofi_mr_pool_fenced - a region of a pool has been fenced
 * @mr: as kofi_mr_fenced()
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_mr_pool_fenced(struct kofi_mr *mr)
{
	struct kofi_mr_pool *pool = mr->pool;
	const struct kofi_wc wc = mr->wc;
	bool report = mr->report;
	unsigned long flags;

	/* First give back, then report: the callback may map it again. */
	kofi_mr_step(mr, KOFI_MR_ENDING, KOFI_MR_IDLE);
	if (report)
		kofi_ep_tx_complete(pool->ep, &wc, FI_COMPLETION);

	spin_lock_irqsave(&pool->lock, flags);
	if (!--pool->mapped)
		wake_up(&pool->wait);
	spin_unlock_irqrestore(&pool->lock, flags);
}

/**
 * kofi_mr_pool_close - undo kofi_mr_pool_open()
 * @ep: an endpoint that was never enabled or has been drained
 *
 * Context: process, may sleep.
 */
void kofi_mr_pool_close(struct kofi_ep *ep)
{
	struct kofi_mr_pool *pool = ep->mr_pool;

	if (!pool)
		return;
	kofi_mr_pool_stop(ep);
	kofi_mr_pool_drain(ep);
	ep->mr_pool = NULL;
	kofi_mr_pool_free(pool, pool->nr);
}

/**
 * kofi_mr_pool_stats - statistics of an endpoint's pool
 * @ep: the endpoint
 * @fn: takes them
 * @arg: for @fn
 *
 * Context: process.
 */
void kofi_mr_pool_stats(struct kofi_ep *ep, kofi_stat_fn fn, void *arg)
{
	struct kofi_mr_pool *pool;
	struct kofi_mr_stats *stats;
	size_t nr_free, mapped, i;
	u64 maps, empty;
	u64 reads = 0, writes = 0, bytes = 0, refused = 0;

	mutex_lock(&ep->config);	/* against enabling */
	pool = ep->mr_pool;
	if (!pool)
		goto unlock;
	spin_lock_irq(&pool->lock);
	nr_free = pool->nr_free;
	mapped = pool->mapped;
	maps = pool->maps;
	empty = pool->empty;
	spin_unlock_irq(&pool->lock);
	for (i = 0; i < pool->nr; i++) {
		stats = &kofi_mr_pool_nth(pool, i)->stats;
		reads += atomic64_read(&stats->reads);
		writes += atomic64_read(&stats->writes);
		bytes += atomic64_read(&stats->bytes);
		refused += atomic64_read(&stats->refused);
	}

	fn(arg, "mr_pool", pool->nr);
	fn(arg, "mr_free", nr_free);
	fn(arg, "mr_mapped", mapped);
	fn(arg, "mr_maps", maps);
	fn(arg, "mr_empty", empty);
	if (!ep->domain->mr_ops->counted)
		goto unlock;
	fn(arg, "mr_reads", reads);
	fn(arg, "mr_writes", writes);
	fn(arg, "mr_bytes", bytes);
	fn(arg, "mr_refused", refused);
unlock:
	mutex_unlock(&ep->config);
}

static struct kofi_mr *kofi_mr_pool_take(struct kofi_mr_pool *pool, bool *closed)
{
	struct kofi_mr *mr = NULL;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	*closed = pool->closed;
	if (!pool->closed)
		mr = list_first_entry_or_null(&pool->free, struct kofi_mr,
					      node);
	if (mr) {
		list_del(&mr->node);
		pool->nr_free--;
		kofi_mr_step(mr, KOFI_MR_FREE, KOFI_MR_IDLE);
	} else if (!pool->closed) {
		pool->empty++;
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return mr;
}

/**
 * kofi_mr_get - take a region from an endpoint's pool
 * @ep: an enabled endpoint that was given KOFI_OPT_MR_POOL
 *
 * Its peer is the only one that can access the region. Free regions are handed
 * out least recently used first.
 *
 * Context: any.
 * Return: a region for kofi_mr_map(), to be given back with kofi_mr_put(); NULL
 * if none is free, and the write-space callback follows; NULL also if the
 * endpoint has no pool or has been drained, then nothing follows.
 */
struct fid_mr *kofi_mr_get(struct fid_ep *ep)
{
	struct kofi_mr_pool *pool;
	struct kofi_mr *mr;
	bool closed;

	if (!ep || ep->fid.fclass != FI_CLASS_EP)
		return NULL;
	pool = container_of(ep, struct kofi_ep, ep)->mr_pool;
	if (!pool)
		return NULL;
	mr = kofi_mr_pool_take(pool, &closed);
	if (!mr && !closed) {
		/* one given back before the mark was seen wakes no consumer */
		kofi_ep_blocked(pool->ep);
		mr = kofi_mr_pool_take(pool, &closed);
	}
	return mr ? &mr->mr : NULL;
}
EXPORT_SYMBOL_GPL(kofi_mr_get);

/**
 * kofi_mr_put - give a region back to its pool
 * @mr: from kofi_mr_get(), not mapped or ended: of a single-use region, or one
 *	unmapped, the completion has come; or the endpoint has been drained.
 *	NULL is fine
 *
 * Regions not given back are freed with their endpoint.
 *
 * Context: any.
 */
void kofi_mr_put(struct fid_mr *mr)
{
	struct kofi_mr *kmr = kofi_mr(mr);
	struct kofi_mr_pool *pool;
	unsigned long flags;

	if (!mr)
		return;
	pool = kmr->pool;
	if (WARN_ON_ONCE(!kofi_mr_valid(mr) || !pool ||
			 !kofi_mr_step(kmr, KOFI_MR_IDLE, KOFI_MR_FREE)))
		return;
	spin_lock_irqsave(&pool->lock, flags);
	list_add_tail(&kmr->node, &pool->free);
	pool->nr_free++;
	spin_unlock_irqrestore(&pool->lock, flags);
	kofi_ep_unblock(pool->ep);
}
EXPORT_SYMBOL_GPL(kofi_mr_put);

static int kofi_mr_map_segs(struct kofi_mr *mr, const struct fi_msg *vec)
{
	const struct fi_mr_attr attr = {
		.mr_iov = vec->msg_iov,		/* any member of the union */
		.iov_count = vec->iov_count,
		.vec = vec->vec,
	};
	struct kofi_mr_fill fill = {
		.bv = mr->bv, .start = mr->start, .max = mr->pool->segs,
	};
	int err;

	if (vec->vec == KOFI_PAGES)
		return -EINVAL;
	err = kofi_mr_fill(&fill, &attr);
	mr->nr_segs = fill.nr;
	mr->len = fill.len;
	return err;
}

/*
 * Open it, unless the endpoint is being drained. The end may come as soon as
 * there is a key, and finds all of it; it waits for the lock to count.
 */
static int kofi_mr_pool_open_mr(struct kofi_mr *mr)
{
	struct kofi_mr_pool *pool = mr->pool;
	unsigned long flags;
	int err = -ESHUTDOWN;

	spin_lock_irqsave(&pool->lock, flags);
	if (pool->closed)
		goto unlock;
	kofi_mr_step(mr, KOFI_MR_MAPPING, KOFI_MR_OPEN);
	err = mr->domain->mr_ops->open(mr);
	if (err) {
		WARN_ON_ONCE(!kofi_mr_step(mr, KOFI_MR_OPEN,
					   KOFI_MR_MAPPING));
		goto unlock;
	}
	pool->mapped++;
	pool->maps++;
unlock:
	spin_unlock_irqrestore(&pool->lock, flags);
	return err;
}

/**
 * kofi_mr_map - let the peer access memory through a region of a pool
 * @mr: from kofi_mr_get(), not mapped
 * @vec: the memory, in the members that name it; KOFI_OPT_MR_SEGS segments at
 *	most, of which vmalloc memory takes one for each page. msg->context is
 *	what a single-use region completes to.
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @flags: FI_MR_SINGLE_USE for a single-use region, FI_RMA_EVENT as in
 *	fi_mr_regattr()
 *
 * The region has a key, a new one, when the call returns. A peer may use it once
 * it has got a message that was posted later, as a message with the key is. The
 * arrays @vec points to are the caller's again, the memory stays the region's
 * until it is unmapped.
 *
 * A single-use region ends, and then completes on the endpoint's transmit queue,
 * in exactly one way: the peer's first complete access (flags FI_RMA and
 * FI_REMOTE_READ or FI_REMOTE_WRITE), a message of the peer's that invalidates
 * the key (KOFI_REMOTE_INV, the key in inv_key), kofi_mr_unmap() (no flags), or
 * the end of the endpoint (FI_ECANCELED). The memory is fenced when it
 * completes. A device that moves the data by itself does not tell of accesses:
 * there only the last three are left. Other regions end with kofi_mr_unmap() or
 * the endpoint.
 *
 * Context: any. Nothing is allocated.
 * Return: 0; -EINVAL, also for too many segments or a region of no pool;
 * -FI_EBADFLAGS; -EBUSY if the region is mapped; single-use: -EAGAIN without a
 * slot of the queue, and the write-space callback follows, -FI_ENOCQ without
 * transmit queue; -ESHUTDOWN once the endpoint has been drained. Of a device
 * also -EAGAIN while it cannot map more, and the write-space callback follows,
 * -EOPNOTSUPP for a flag it cannot do, -EINVAL for memory with gaps it cannot
 * map, -ENOTCONN or -ESHUTDOWN for an endpoint that is not connected, and
 * what else it returns.
 */
int kofi_mr_map(struct fid_mr *mr, const struct fi_msg *vec, u64 access,
		u64 flags)
{
	struct kofi_mr *kmr = kofi_mr(mr);
	struct kofi_ep *ep;
	int err;

	if (!kofi_mr_valid(mr) || !kmr->pool || !vec ||
	    !access || access & ~KOFI_MR_ACCESS)
		return -EINVAL;
	if (flags & ~KOFI_MR_FLAGS)
		return -FI_EBADFLAGS;
	ep = kmr->pool->ep;
	if (flags & FI_MR_SINGLE_USE && !ep->tx_cq)
		return -FI_ENOCQ;
	if (!kofi_mr_step(kmr, KOFI_MR_IDLE, KOFI_MR_MAPPING))
		return -EBUSY;

	err = kofi_mr_map_segs(kmr, vec);
	if (err)
		goto idle;
	kmr->access = access;
	kmr->flags = flags;
	kmr->report = flags & FI_MR_SINGLE_USE;
	kmr->wc = (struct kofi_wc) {
		.op_context = vec->context, .src = FI_ADDR_NOTAVAIL,
	};
	if (kmr->report) {
		err = kofi_ep_tx_reserve(ep);
		if (err)
			goto idle;
	}
	err = kofi_mr_pool_open_mr(kmr);
	if (err)
		goto unreserve;
	return 0;

unreserve:
	if (kmr->report)
		kofi_ep_tx_unreserve(ep);
idle:
	kofi_mr_step(kmr, KOFI_MR_MAPPING, KOFI_MR_IDLE);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_mr_map);

/**
 * kofi_mr_unmap - end a mapped region
 * @mr: the region
 * @cqe: where it completes to, on the endpoint's transmit queue, once the
 *	memory is not accessed any more; for a queue that is read any pointer. A single-use
 *	region completes to what kofi_mr_map() was given: NULL.
 *
 * The key is of no use when the call returns; a peer's access that is being
 * carried out ends before the completion.
 *
 * Context: any.
 * Return: 0, one completion will follow; -EALREADY if the region is not mapped:
 * a single-use region that has ended in another way, whose only completion has
 * come or will come, or one whose endpoint has been drained; -EAGAIN without a
 * slot of the queue, and the write-space callback follows; -FI_ENOCQ without
 * transmit queue; -EINVAL, also for @cqe with a single-use region or none with
 * another.
 */
int kofi_mr_unmap(struct fid_mr *mr, struct kofi_cqe *cqe)
{
	struct kofi_mr *kmr = kofi_mr(mr);
	struct kofi_ep *ep;
	int err;

	if (!kofi_mr_valid(mr) || !kmr->pool)
		return -EINVAL;
	if (kofi_mr_state(kmr) != KOFI_MR_OPEN)
		return -EALREADY;
	if (!!cqe == !!(kmr->flags & FI_MR_SINGLE_USE))
		return -EINVAL;

	/* A single-use region has its slot and context since it was mapped. */
	ep = kmr->pool->ep;
	if (cqe) {
		err = ep->tx_cq ? kofi_ep_tx_reserve(ep) : -FI_ENOCQ;
		if (err)
			return err;
	}
	if (!kofi_mr_end_begin(kmr)) {
		if (cqe)
			kofi_ep_tx_unreserve(ep);
		return -EALREADY;
	}
	if (cqe) {
		kmr->report = true;
		kmr->wc.cqe = cqe;
	}
	kofi_mr_revoke(kmr, 0, 0);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_mr_unmap);
