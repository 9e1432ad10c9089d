// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pools of memory regions, for registration in any context (kofi.h).
 *
 * Pools and shares
 *
 * A pool belongs to a domain. There is one pool for each number of segments that
 * endpoints request. Its regions hold all their resources, so that mapping a region
 * allocates nothing. An endpoint with KOFI_OPT_MR_POOL has a share in the pool: the number
 * of regions that it may have at a time, of which a few are reserved. A region is bound to
 * the endpoint that got it.
 *
 * Size of a pool
 *
 * A pool has regions for all reservations and for the largest share. If the endpoints
 * together need more at a time, a work item creates more, up to the sum of the shares.
 * Then the refused endpoints get their write-space callbacks. An endpoint is refused only
 * while it has at least its reserved regions. If no region can be created, the endpoint
 * continues when it puts one of its own.
 *
 * Closing an endpoint
 *
 * Draining an endpoint invalidates its mapped regions and waits for them. Closing the endpoint
 * returns all its regions.
 *
 * Locks
 *
 * The domain's mr_pool_mutex is held while regions are created and freed, and guards
 * the lists of pools and shares. The pool's lock guards the assignment of regions; all
 * endpoints of a domain share it. The lock of a share guards the step of its regions
 * to KOFI_MR_OPEN. Neither spinlock is held while the provider is called.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "mr.h"

#define KOFI_MR_GROWTH		16	/* regions that are created at a time */
#define KOFI_MR_RETRY		(HZ / 10)

/**
 * struct kofi_mr_pool - a domain's regions for any context
 * @node: entry in kofi_domain.mr_pools, under mr_pool_mutex
 * @shares: list of struct kofi_mr_share, under mr_pool_mutex
 * @domain: the domain
 * @segs: number of segments of each region
 * @nr: number of regions, under mr_pool_mutex
 * @work: work item that creates and frees regions
 * @lock: irqsave, guards the members that follow and the assignment of regions
 * @free: regions without an endpoint
 * @nr_free: number of regions on @free
 * @reserved: number of free regions for endpoints below their reservations
 * @broken: regions to be freed
 * @waiting: shares that were refused because there was no region
 */
struct kofi_mr_pool {
	struct list_head	node;
	struct list_head	shares;
	struct kofi_domain	*domain;
	size_t			segs;
	size_t			nr;
	struct delayed_work	work;
	spinlock_t		lock;	/* guards the members that follow */
	struct list_head	free;
	size_t			nr_free;
	size_t			reserved;
	struct list_head	broken;
	struct list_head	waiting;
};

/**
 * struct kofi_mr_share - share of an endpoint in a pool
 * @node: entry in kofi_mr_pool.shares, under mr_pool_mutex
 * @pool: the pool
 * @ep: the endpoint
 * @quota: most regions at a time
 * @reserve: reserved regions, included in @quota
 * @waiting: entry in kofi_mr_pool.waiting; the pool's lock guards this and the
 *	members up to @total
 * @has: list of regions assigned to the endpoint
 * @nr: number of regions on @has
 * @empty: statistics: number of refusals
 * @total: statistics of the regions that the endpoint has returned
 * @lock: irqsave, guards the members that follow, and a region's step to KOFI_MR_OPEN
 * @opening: number of regions that the provider is opening
 * @mapped: number of regions mapped and not yet fenced and reported
 * @closed: the endpoint is being drained; written under @lock, read without it by
 *	kofi_mr_get(), whose regions kofi_mr_map() then refuses
 * @wait: wait queue of the task that drains the endpoint
 * @maps: statistics: number of mappings
 */
struct kofi_mr_share {
	struct list_head	node;
	struct kofi_mr_pool	*pool;
	struct kofi_ep		*ep;
	size_t			quota;
	size_t			reserve;
	struct list_head	waiting;
	struct list_head	has;
	size_t			nr;
	u64			empty;
	struct kofi_mr_stats	total;
	spinlock_t		lock ____cacheline_aligned_in_smp;
	size_t			opening;
	size_t			mapped;
	bool			closed;
	wait_queue_head_t	wait;
	u64			maps;
};

/* A region of a pool belongs to its endpoint and is not closed by itself. */
static const struct fi_ops kofi_mr_pool_fid_ops = {
	.size	= sizeof(struct fi_ops),
};

/**
 * kofi_mr_pooled - test whether the core implements the pools of a domain
 * @domain: the domain
 *
 * Context: any.
 * Return: false if its provider implements registration.
 */
bool kofi_mr_pooled(const struct kofi_domain *domain)
{
	return domain->domain.ops->mr_regattr == kofi_mr_regattr;
}

/* ------------------------------------------------ creating and freeing regions */

static void kofi_mr_pool_free(struct kofi_mr_pool *pool, struct kofi_mr *mr)
{
	pool->domain->mr_ops->exit(mr);
	kvfree_rcu(mr, rcu);
}

/* Create one region. */
static int kofi_mr_pool_add(struct kofi_mr_pool *pool)
{
	const struct kofi_mr_ops *ops = pool->domain->mr_ops;
	const size_t base = ALIGN(ops->size, sizeof(u64));
	struct kofi_mr *mr;
	int err;

	lockdep_assert_held(&pool->domain->mr_pool_mutex);

	mr = kvzalloc_node(size_add(base, size_mul(pool->segs,
						   sizeof(*mr->bv) +
						   sizeof(*mr->start))),
			   KOFI_MR_GFP | __GFP_RETRY_MAYFAIL,
			   pool->domain->node);
	if (!mr)
		return -ENOMEM;
	kofi_mr_setup(mr, pool->domain);
	mr->mr.fid.ops = &kofi_mr_pool_fid_ops;
	mr->state = KOFI_MR_FREE;
	mr->pool = pool;
	mr->bv = (void *)mr + base;
	mr->start = (void *)(mr->bv + pool->segs);
	err = ops->init(mr, pool->segs, 0);
	if (err) {
		kvfree(mr);
		return err;
	}
	pool->nr++;
	spin_lock_irq(&pool->lock);
	list_add_tail(&mr->node, &pool->free);
	pool->nr_free++;
	spin_unlock_irq(&pool->lock);
	return 0;
}

/* Most regions that all endpoints may have, and the number to begin with */
static size_t kofi_mr_pool_most(const struct kofi_mr_pool *pool, size_t *begin)
{
	const struct kofi_mr_share *share;
	size_t sum = 0, own = 0, most = 0;

	lockdep_assert_held(&pool->domain->mr_pool_mutex);

	list_for_each_entry(share, &pool->shares, node) {
		sum = size_add(sum, share->quota);
		own += share->reserve;
		most = max(most, share->quota - share->reserve);
	}
	*begin = own + most;
	return sum;
}

static int kofi_mr_pool_grow(struct kofi_mr_pool *pool, size_t nr)
{
	int err = 0;

	while (pool->nr < nr && !err)
		err = kofi_mr_pool_add(pool);
	return err;
}

/* Free broken regions, and free regions beyond the largest possible use. */
static void kofi_mr_pool_shrink(struct kofi_mr_pool *pool)
{
	struct kofi_mr *mr, *next;
	size_t most, begin;
	LIST_HEAD(out);

	most = kofi_mr_pool_most(pool, &begin);
	spin_lock_irq(&pool->lock);
	list_splice_init(&pool->broken, &out);
	list_for_each_entry(mr, &out, node)
		pool->nr--;
	/* the regions in use are fewer than permitted */
	while (pool->nr > most) {
		mr = list_first_entry(&pool->free, struct kofi_mr, node);
		list_move(&mr->node, &out);
		pool->nr_free--;
		pool->nr--;
	}
	spin_unlock_irq(&pool->lock);
	list_for_each_entry_safe(mr, next, &out, node)
		kofi_mr_pool_free(pool, mr);
}

/* Wake the refused shares. With the pool's lock held */
static void kofi_mr_pool_wake(struct kofi_mr_pool *pool)
{
	struct kofi_mr_share *share, *next;

	list_for_each_entry_safe(share, next, &pool->waiting, waiting) {
		list_del_init(&share->waiting);
		kofi_ep_unblock(share->ep);
	}
}

/* Freeing memory may depend on an endpoint that waits for the mutex. */
static unsigned int kofi_mr_pool_lock(struct kofi_domain *domain)
{
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&domain->mr_pool_mutex);
	return noio;
}

static void kofi_mr_pool_unlock(struct kofi_domain *domain, unsigned int noio)
{
	mutex_unlock(&domain->mr_pool_mutex);
	memalloc_noio_restore(noio);
}

static void kofi_mr_pool_kick(struct kofi_mr_pool *pool, unsigned long delay)
{
	/* nothing waits for this work item, so any queue will do */
	queue_delayed_work(system_unbound_wq, &pool->work, delay);
}

/* Endpoints have been refused, or a region is broken. */
static void kofi_mr_pool_work(struct work_struct *work)
{
	struct kofi_mr_pool *pool = container_of(to_delayed_work(work),
						 struct kofi_mr_pool, work);
	unsigned int noio = kofi_mr_pool_lock(pool->domain);
	size_t most, begin;
	int err;

	kofi_mr_pool_shrink(pool);
	most = kofi_mr_pool_most(pool, &begin);
	err = kofi_mr_pool_grow(pool, min(most, max(begin, pool->nr +
						    KOFI_MR_GROWTH)));
	/* an endpoint may have less than its reserved regions */
	if (err && err != -ENODEV && pool->nr < begin)
		kofi_mr_pool_kick(pool, KOFI_MR_RETRY);
	kofi_mr_pool_unlock(pool->domain, noio);

	spin_lock_irq(&pool->lock);
	if (!err || pool->nr_free > pool->reserved)
		kofi_mr_pool_wake(pool);
	spin_unlock_irq(&pool->lock);
}

/* ------------------------------------------------------ shares of endpoints */

static struct kofi_mr_pool *kofi_mr_pool_find(struct kofi_domain *domain,
					      size_t segs)
{
	struct kofi_mr_pool *pool;

	lockdep_assert_held(&domain->mr_pool_mutex);

	list_for_each_entry(pool, &domain->mr_pools, node)
		if (pool->segs == segs)
			return pool;
	pool = kzalloc_node(sizeof(*pool), GFP_KERNEL, domain->node);
	if (!pool)
		return NULL;
	pool->domain = domain;
	pool->segs = segs;
	INIT_LIST_HEAD(&pool->shares);
	INIT_DELAYED_WORK(&pool->work, kofi_mr_pool_work);
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->broken);
	INIT_LIST_HEAD(&pool->waiting);
	list_add_tail(&pool->node, &domain->mr_pools);
	return pool;
}

/* The last share takes the pool with it. */
static void kofi_mr_share_free(struct kofi_mr_share *share)
{
	struct kofi_mr_pool *pool = share->pool;
	struct kofi_domain *domain = pool->domain;
	unsigned int noio = kofi_mr_pool_lock(domain);
	bool last;

	list_del(&share->node);
	kofi_mr_pool_shrink(pool);
	last = list_empty(&pool->shares);
	if (last)
		list_del(&pool->node);
	kofi_mr_pool_unlock(domain, noio);
	kfree(share);
	if (last) {
		cancel_delayed_work_sync(&pool->work);
		kfree(pool);
	}
}

/**
 * kofi_mr_pool_open - set up the share that an endpoint requested
 * @ep: an endpoint about to be enabled
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ENOMR without free keys; -EINVAL for more segments than the
 * device supports; -ENOMEM.
 */
int kofi_mr_pool_open(struct kofi_ep *ep)
{
	struct kofi_domain *domain = ep->domain;
	struct kofi_mr_share *share;
	unsigned int noio;
	size_t begin;
	int err;

	if (!ep->mr.pool_size)
		return 0;
	share = kzalloc_node(sizeof(*share), GFP_KERNEL, domain->node);
	if (!share)
		return -ENOMEM;
	share->ep = ep;
	share->quota = ep->mr.pool_size;
	share->reserve = min(share->quota, KOFI_MR_RESERVED);
	INIT_LIST_HEAD(&share->waiting);
	INIT_LIST_HEAD(&share->has);
	spin_lock_init(&share->lock);
	init_waitqueue_head(&share->wait);

	noio = kofi_mr_pool_lock(domain);
	share->pool = kofi_mr_pool_find(domain, ep->mr.pool_segs);
	if (!share->pool) {
		kofi_mr_pool_unlock(domain, noio);
		kfree(share);
		return -ENOMEM;
	}
	list_add_tail(&share->node, &share->pool->shares);
	kofi_mr_pool_most(share->pool, &begin);
	err = kofi_mr_pool_grow(share->pool, begin);
	kofi_mr_pool_unlock(domain, noio);
	if (err) {
		kofi_mr_share_free(share);
		return err;
	}
	spin_lock_irq(&share->pool->lock);
	share->pool->reserved += share->reserve;
	spin_unlock_irq(&share->pool->lock);
	ep->mr.share = share;
	return 0;
}

/**
 * kofi_mr_pool_stop - refuse further mappings
 * @ep: an endpoint that is about to be drained
 *
 * On return no call of the provider that opens a region for the endpoint is running,
 * and none will follow. May be called more than once.
 *
 * Context: process, may sleep.
 */
void kofi_mr_pool_stop(struct kofi_ep *ep)
{
	struct kofi_mr_share *share = ep->mr.share;

	if (!share)
		return;
	spin_lock_irq(&share->lock);
	WRITE_ONCE(share->closed, true);
	wait_event_lock_irq(share->wait, !share->opening, share->lock);
	spin_unlock_irq(&share->lock);
}

/**
 * kofi_mr_pool_drain - invalidate an endpoint's mapped regions
 * @ep: an endpoint with a stopped share, drained by its provider
 *
 * May be called more than once.
 *
 * Context: process, sleeps; never waits for the network.
 */
void kofi_mr_pool_drain(struct kofi_ep *ep)
{
	struct kofi_mr_share *share = ep->mr.share;
	struct kofi_mr *mr;
	size_t n;
	bool end;

	might_sleep();
	if (!share)
		return;
	spin_lock_irq(&share->pool->lock);
	n = share->nr;
	spin_unlock_irq(&share->pool->lock);
	/* one pass over the list, since the consumer may put regions concurrently */
	for (; n; n--) {
		spin_lock_irq(&share->pool->lock);
		mr = list_first_entry_or_null(&share->has, struct kofi_mr,
					      node);
		if (mr)
			list_move_tail(&mr->node, &share->has);
		end = mr && kofi_mr_end_begin(mr);
		spin_unlock_irq(&share->pool->lock);
		if (end)
			kofi_mr_revoke(mr, ECANCELED, 0);
	}

	spin_lock_irq(&share->lock);
	wait_event_lock_irq(share->wait, !share->mapped, share->lock);
	spin_unlock_irq(&share->lock);
}

/**
 * kofi_mr_pool_fenced - report that the memory of a pool's region is no longer accessed
 * @mr: the region, as for kofi_mr_fenced()
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_mr_pool_fenced(struct kofi_mr *mr)
{
	struct kofi_mr_share *share = mr->ep->mr.share;
	const struct kofi_wc wc = mr->wc;
	bool report = mr->report;
	unsigned long flags;

	/* Return the region before the report: the callback may map it again. */
	kofi_mr_step(mr, KOFI_MR_ENDING, KOFI_MR_IDLE);
	if (report)
		kofi_ep_tx_complete(share->ep, &wc, FI_COMPLETION);

	spin_lock_irqsave(&share->lock, flags);
	if (!--share->mapped)
		wake_up(&share->wait);
	spin_unlock_irqrestore(&share->lock, flags);
}

/* Add the counters of a region to the share of the endpoint that puts it. */
static void kofi_mr_count(struct kofi_mr_stats *total,
			  struct kofi_mr_stats *stats)
{
	atomic64_add(atomic64_xchg(&stats->reads, 0), &total->reads);
	atomic64_add(atomic64_xchg(&stats->writes, 0), &total->writes);
	atomic64_add(atomic64_xchg(&stats->bytes, 0), &total->bytes);
	atomic64_add(atomic64_xchg(&stats->refused, 0), &total->refused);
}

/* With the pool's lock held */
static void kofi_mr_share_put(struct kofi_mr_share *share, struct kofi_mr *mr)
{
	struct kofi_mr_pool *pool = share->pool;

	if (pool->domain->mr_ops->counted)
		kofi_mr_count(&share->total, &mr->stats);
	if (--share->nr < share->reserve)
		pool->reserved++;
	if (unlikely(mr->broken)) {
		list_move_tail(&mr->node, &pool->broken);
		kofi_mr_pool_kick(pool, 0);
		return;
	}
	list_move_tail(&mr->node, &pool->free);
	pool->nr_free++;
	if (unlikely(!list_empty(&pool->waiting)) &&
	    pool->nr_free > pool->reserved)
		kofi_mr_pool_wake(pool);
}

/**
 * kofi_mr_pool_close - undo kofi_mr_pool_open()
 * @ep: an endpoint that was never enabled or has been drained
 *
 * Context: process, may sleep.
 */
void kofi_mr_pool_close(struct kofi_ep *ep)
{
	struct kofi_mr_share *share = ep->mr.share;
	struct kofi_mr *mr, *next;

	if (!share)
		return;
	kofi_mr_pool_stop(ep);
	kofi_mr_pool_drain(ep);
	spin_lock_irq(&share->pool->lock);
	list_del_init(&share->waiting);
	list_for_each_entry_safe(mr, next, &share->has, node) {
		kofi_mr_step(mr, KOFI_MR_IDLE, KOFI_MR_FREE);
		kofi_mr_share_put(share, mr);
	}
	share->pool->reserved -= share->reserve;
	kofi_mr_pool_wake(share->pool);
	spin_unlock_irq(&share->pool->lock);
	ep->mr.share = NULL;
	kofi_mr_share_free(share);
}

/**
 * kofi_mr_pool_stats - statistics of an endpoint's share
 * @ep: the endpoint
 * @fn: called for each statistic
 * @arg: first argument of @fn
 *
 * Context: process.
 */
void kofi_mr_pool_stats(struct kofi_ep *ep, kofi_stat_fn fn, void *arg)
{
	struct kofi_mr_share *share;
	struct kofi_mr_stats total;
	u64 empty, mapped, maps;
	struct kofi_mr *mr;
	size_t nr;

	mutex_lock(&ep->config);	/* excludes enabling */
	share = ep->mr.share;
	if (!share)
		goto unlock;
	spin_lock_irq(&share->pool->lock);
	nr = share->nr;
	list_for_each_entry(mr, &share->has, node)
		kofi_mr_count(&share->total, &mr->stats);
	total = share->total;
	empty = share->empty;
	spin_unlock_irq(&share->pool->lock);
	spin_lock_irq(&share->lock);
	mapped = share->mapped;
	maps = share->maps;
	spin_unlock_irq(&share->lock);

	fn(arg, "mr_pool", share->quota);
	fn(arg, "mr_free", share->quota - nr);
	fn(arg, "mr_mapped", mapped);
	fn(arg, "mr_maps", maps);
	fn(arg, "mr_empty", empty);
	if (!ep->domain->mr_ops->counted)
		goto unlock;
	fn(arg, "mr_reads", atomic64_read(&total.reads));
	fn(arg, "mr_writes", atomic64_read(&total.writes));
	fn(arg, "mr_bytes", atomic64_read(&total.bytes));
	fn(arg, "mr_refused", atomic64_read(&total.refused));
unlock:
	mutex_unlock(&ep->config);
}

/**
 * kofi_mr_pool_domain_stats - statistics of a domain's pools
 * @domain: the domain
 * @fn: called for each statistic
 * @arg: first argument of @fn
 *
 * Context: process, may sleep.
 */
void kofi_mr_pool_domain_stats(struct kofi_domain *domain, kofi_stat_fn fn,
			       void *arg)
{
	struct kofi_mr_pool *pool;
	size_t nr = 0, nr_free = 0;

	mutex_lock(&domain->mr_pool_mutex);
	list_for_each_entry(pool, &domain->mr_pools, node) {
		nr += pool->nr;
		spin_lock_irq(&pool->lock);
		nr_free += pool->nr_free;
		spin_unlock_irq(&pool->lock);
	}
	mutex_unlock(&domain->mr_pool_mutex);
	fn(arg, "pool_regions", nr);
	fn(arg, "pool_free", nr_free);
}

/* -------------------------------------------------------- getting, mapping */

static struct kofi_mr *kofi_mr_share_take(struct kofi_mr_share *share)
{
	struct kofi_mr_pool *pool = share->pool;
	struct kofi_mr *mr = NULL;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	if (likely(share->nr < share->quota) &&
	    (share->nr < share->reserve || pool->nr_free > pool->reserved))
		mr = list_first_entry_or_null(&pool->free, struct kofi_mr,
					      node);
	if (likely(mr)) {
		list_move_tail(&mr->node, &share->has);
		pool->nr_free--;
		if (share->nr++ < share->reserve)
			pool->reserved--;
		WRITE_ONCE(mr->ep, share->ep);
		kofi_mr_step(mr, KOFI_MR_FREE, KOFI_MR_IDLE);
	} else {
		share->empty++;
		if (share->nr < share->quota) {
			if (list_empty(&share->waiting))
				list_add_tail(&share->waiting, &pool->waiting);
			kofi_mr_pool_kick(pool, 0);
		}
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return mr;
}

/**
 * kofi_mr_get - get a region for an endpoint from its domain
 * @ep: an enabled endpoint with KOFI_OPT_MR_POOL
 *
 * Only peers of the endpoint can access the region. The least recently used free
 * region is returned.
 *
 * Context: any.
 * Return: a region for kofi_mr_map(), to be returned by kofi_mr_put(). NULL
 * if the endpoint has all regions of its share, or the pool has no free region; then the
 * write-space callback follows. NULL also if the endpoint has no share or has been
 * drained; then no callback follows.
 */
struct fid_mr *kofi_mr_get(struct fid_ep *ep)
{
	struct kofi_mr_share *share;
	struct kofi_mr *mr;

	if (kofi_fid_class(&ep->fid) != FI_CLASS_EP)
		return NULL;
	share = container_of(ep, struct kofi_ep, ep)->mr.share;
	if (!share || READ_ONCE(share->closed))
		return NULL;
	mr = kofi_mr_share_take(share);
	if (!mr)
		mr = kofi_ep_retry(share->ep, kofi_mr_share_take(share));
	return mr ? &mr->mr : NULL;
}
EXPORT_SYMBOL_GPL(kofi_mr_get);

/**
 * kofi_mr_put - return a region
 * @mr: from kofi_mr_get(); not mapped, or invalidated: the completion of a single-use or
 *	unmapped region has been reported, or the endpoint has been drained.
 *	NULL is ignored
 *
 * Closing an endpoint returns its remaining regions.
 *
 * Context: any.
 */
void kofi_mr_put(struct fid_mr *mr)
{
	struct kofi_mr *kmr = kofi_mr(mr);
	struct kofi_mr_share *share;
	unsigned long flags;

	if (!mr)
		return;
	if (WARN_ON_ONCE(!kofi_mr_valid(mr) || !kmr->pool ||
			 !kofi_mr_step(kmr, KOFI_MR_IDLE, KOFI_MR_FREE)))
		return;
	share = kmr->ep->mr.share;
	spin_lock_irqsave(&share->pool->lock, flags);
	kofi_mr_share_put(share, kmr);
	spin_unlock_irqrestore(&share->pool->lock, flags);
	kofi_ep_unblock(share->ep);
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
	mr->addr = err ? NULL : kofi_mr_addr(&attr);
	mr->nr_segs = fill.nr;
	mr->len = fill.len;
	return err;
}

/*
 * Open a region, unless the endpoint is being drained. A peer may invalidate the region as
 * soon as it has a key, so it is complete before that.
 */
static int kofi_mr_pool_open_mr(struct kofi_mr *mr)
{
	struct kofi_mr_share *share = mr->ep->mr.share;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&share->lock, flags);
	if (share->closed) {
		err = -ESHUTDOWN;
	} else {
		share->opening++;
		share->mapped++;
	}
	spin_unlock_irqrestore(&share->lock, flags);
	if (err)
		return err;
	kofi_mr_step(mr, KOFI_MR_MAPPING, KOFI_MR_OPEN);
	err = mr->domain->mr_ops->open(mr);
	if (err)
		WARN_ON_ONCE(!kofi_mr_step(mr, KOFI_MR_OPEN,
					   KOFI_MR_MAPPING));
	spin_lock_irqsave(&share->lock, flags);
	if (err)
		share->mapped--;
	else
		share->maps++;
	if (!--share->opening && share->closed)
		wake_up(&share->wait);
	spin_unlock_irqrestore(&share->lock, flags);
	return err;
}

/**
 * kofi_mr_map - let the peer access memory through a region of a pool
 * @mr: from kofi_mr_get(), not mapped
 * @vec: the memory, in the members that describe it; at most KOFI_OPT_MR_SEGS segments,
 *	of which vmalloc memory takes one for each page. msg->context is
 *	the context of a single-use region's completion.
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @flags: FI_MR_SINGLE_USE for a single-use region, FI_RMA_EVENT as in
 *	fi_mr_regattr(); FI_MORE if a transmit of the endpoint follows, which may carry
 *	the region's registration to a device
 *
 * The region has a new key when the call returns. A peer may use the key once
 * it has received a message that the endpoint posted after this call. The caller may free
 * the arrays of @vec after the call. The memory must live until the region is unmapped, and
 * so must the kernel mapping of memory that is described by kernel addresses. A mapping of
 * vmalloc memory must not be removed, nor made read-only if @access has
 * FI_REMOTE_WRITE.
 *
 * A single-use region is invalidated, and then completes on the endpoint's transmit queue,
 * in exactly one way:
 *
 * - by the peer's first complete access (FI_RMA and FI_REMOTE_READ or FI_REMOTE_WRITE);
 * - by a message of the peer that invalidates the key (KOFI_REMOTE_INV, the key in inv_key);
 * - by kofi_mr_unmap() (no flags);
 * - by draining the endpoint (FI_ECANCELED).
 *
 * The memory is fenced when the region completes. A device that moves the data itself does
 * not report accesses, so that only the last three apply there. Other regions are
 * invalidated by kofi_mr_unmap() or by draining the endpoint.
 *
 * Context: any. Nothing is allocated.
 * Return: 0; -EINVAL, also for too many segments or a region of no pool;
 * -FI_EBADFLAGS; -EBUSY if the region is mapped; single-use: -EAGAIN without a
 * slot of the queue, and the write-space callback follows, -FI_ENOCQ without
 * transmit queue; -ESHUTDOWN once the endpoint has been drained. A device also returns
 * -EAGAIN, and the write-space callback follows: while it cannot map more, and for
 * an endpoint that accepts; -EOPNOTSUPP for an unsupported flag; -EINVAL for memory with
 * gaps that it cannot map; -ENOTCONN or -ESHUTDOWN for an endpoint that is not connected;
 * and other errors.
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
	if (flags & ~(KOFI_MR_FLAGS | FI_MORE))
		return -FI_EBADFLAGS;
	if (!kofi_mr_step(kmr, KOFI_MR_IDLE, KOFI_MR_MAPPING))
		return -EBUSY;

	ep = kmr->ep;
	err = flags & FI_MR_SINGLE_USE && !ep->tx_cq ? -FI_ENOCQ :
	      kofi_mr_map_segs(kmr, vec);
	if (err)
		goto idle;
	kmr->access = access;
	kmr->flags = flags;
	kmr->report = flags & FI_MR_SINGLE_USE;
	kmr->wc = (struct kofi_wc) {
		.op_context = vec->context, .src = FI_ADDR_NOTAVAIL,
	};
	if (kmr->report) {
		err = kofi_ep_tx_reserve(ep, NULL);
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
 * kofi_mr_unmap - invalidate a mapped region
 * @mr: the region
 * @cqe: context of the completion on the endpoint's transmit queue, which follows when
 *	the memory is no longer accessed; any pointer for a queue that is read. NULL for a
 *	single-use region, which completes with the context of kofi_mr_map().
 *
 * The key is invalid when the call returns; an access of the peer that has begun
 * finishes before the completion.
 *
 * Context: any.
 * Return: 0, one completion will follow; -EALREADY if the region is not mapped:
 * a single-use region that was invalidated in another way, with its only completion
 * reported then, or a region of an endpoint that has been drained; -EAGAIN without a
 * slot of the queue, and the write-space callback follows; -FI_ENOCQ without
 * transmit queue; -EINVAL, also for @cqe with a single-use region, or NULL with
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

	/* A single-use region got its slot and context when it was mapped. */
	ep = kmr->ep;
	if (cqe) {
		err = ep->tx_cq ? kofi_ep_tx_reserve(ep, NULL) : -FI_ENOCQ;
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
