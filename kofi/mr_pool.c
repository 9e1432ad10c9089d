// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pools of memory regions, for registration in any context (kofi.h).
 *
 * Pools and shares
 *
 * A pool belongs to a domain, and there is one for each number of segments that
 * endpoints ask for. Its regions have all they need, so that mapping one allocates
 * nothing. An endpoint with KOFI_OPT_MR_POOL has a share in it: how many regions
 * it may have at a time, of which a few are reserved for it. A region is bound to
 * the endpoint that has it.
 *
 * How many there are
 *
 * Enough for what is reserved and for all that any one endpoint may have. If the
 * endpoints together want more at a time, a work item makes more, up to the sum
 * of their shares, and the write-space callbacks of those that were refused
 * follow. An endpoint is refused only while it has what is reserved for it, so if
 * no more can be made, it goes on when it puts one of its own.
 *
 * The end of an endpoint
 *
 * Draining it ends the regions it has mapped, and waits for them. Closing it puts
 * back all it has.
 *
 * Locks
 *
 * The domain's mr_pool_mutex is held while regions are made and freed, and guards
 * what pools and shares there are. The pool's lock guards who has a region, and
 * is what all endpoints of a domain share; that of a share guards its regions'
 * step to KOFI_MR_OPEN. Neither is held when the provider is called.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "mr.h"

#define KOFI_MR_GROWTH		16	/* regions that are made at a time */
#define KOFI_MR_RETRY		(HZ / 10)

/**
 * struct kofi_mr_pool - a domain's regions for any context
 * @node: kofi_domain.mr_pools
 * @shares: struct kofi_mr_share; with @node and @nr under mr_pool_mutex
 * @domain: the domain
 * @segs: segments each region can have
 * @nr: regions there are
 * @work: makes more of them
 * @lock: irqsave, guards what follows, and who has a region
 * @free: regions no endpoint has
 * @nr_free: number of them
 * @reserved: of them, for endpoints that have less than is reserved for them
 * @broken: regions that are to be freed
 * @waiting: shares that were refused for want of a region
 */
struct kofi_mr_pool {
	struct list_head	node;
	struct list_head	shares;
	struct kofi_domain	*domain;
	size_t			segs;
	size_t			nr;
	struct delayed_work	work;
	spinlock_t		lock;	/* guards what follows */
	struct list_head	free;
	size_t			nr_free;
	size_t			reserved;
	struct list_head	broken;
	struct list_head	waiting;
};

/**
 * struct kofi_mr_share - what an endpoint may have of a pool
 * @node: kofi_mr_pool.shares
 * @pool: the pool
 * @ep: the endpoint
 * @quota: regions it may have at a time
 * @reserve: of them, reserved for it
 * @waiting: kofi_mr_pool.waiting; with all up to @total under the pool's lock
 * @has: regions it has
 * @nr: number of them
 * @empty: statistics: how often there was none for it
 * @total: statistics of the regions it has put back
 * @lock: irqsave, guards what follows, and a region's step to KOFI_MR_OPEN
 * @opening: regions the provider is opening
 * @mapped: regions mapped and not yet fenced and reported
 * @closed: the endpoint is being drained
 * @wait: the context that drains it sleeps here
 * @maps: statistics: how often a region was mapped
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

/* ------------------------------------------------- making and freeing them */

static void kofi_mr_pool_free(struct kofi_mr_pool *pool, struct kofi_mr *mr)
{
	pool->domain->mr_ops->exit(mr);
	kvfree_rcu(mr, rcu);
}

/* Make one more region. */
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

/* All that endpoints may ever have at a time, and what there is to begin with */
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

/* Free what no endpoint will have any more, and what is of no use. */
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
	/* those that are not free are less than there may be */
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

/* There may be one for those that were refused. With the pool's lock held */
static void kofi_mr_pool_wake(struct kofi_mr_pool *pool)
{
	struct kofi_mr_share *share, *next;

	list_for_each_entry_safe(share, next, &pool->waiting, waiting) {
		list_del_init(&share->waiting);
		kofi_ep_unblock(share->ep);
	}
}

/* Freeing memory may depend on an endpoint that has to wait for the mutex. */
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
	/* not needed for anything to go on, so any queue will do */
	queue_delayed_work(system_unbound_wq, &pool->work, delay);
}

/* Endpoints have been refused, or a region is of no use any more. */
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
	/* an endpoint may lack what is reserved for it */
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
 * kofi_mr_pool_open - give an endpoint the share it was asked to have
 * @ep: an endpoint about to be enabled
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ENOMR without free keys; -EINVAL for more segments than the
 * device can; -ENOMEM.
 */
int kofi_mr_pool_open(struct kofi_ep *ep)
{
	struct kofi_domain *domain = ep->domain;
	struct kofi_mr_share *share;
	unsigned int noio;
	size_t begin;
	int err;

	if (!ep->mr_pool_size)
		return 0;
	share = kzalloc_node(sizeof(*share), GFP_KERNEL, domain->node);
	if (!share)
		return -ENOMEM;
	share->ep = ep;
	share->quota = ep->mr_pool_size;
	share->reserve = min(share->quota, KOFI_MR_RESERVED);
	INIT_LIST_HEAD(&share->waiting);
	INIT_LIST_HEAD(&share->has);
	spin_lock_init(&share->lock);
	init_waitqueue_head(&share->wait);

	noio = kofi_mr_pool_lock(domain);
	share->pool = kofi_mr_pool_find(domain, ep->mr_pool_segs);
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
	ep->mr_share = share;
	return 0;
}

/**
 * kofi_mr_pool_stop - let nothing be mapped any more
 * @ep: an endpoint that is about to be drained
 *
 * On return no call of the provider's that opens a region for the endpoint runs
 * or will run. May be called more than once.
 *
 * Context: process, may sleep.
 */
void kofi_mr_pool_stop(struct kofi_ep *ep)
{
	struct kofi_mr_share *share = ep->mr_share;

	if (!share)
		return;
	spin_lock_irq(&share->lock);
	WRITE_ONCE(share->closed, true);
	wait_event_lock_irq(share->wait, !share->opening, share->lock);
	spin_unlock_irq(&share->lock);
}

/**
 * kofi_mr_pool_drain - end an endpoint's mapped regions
 * @ep: an endpoint whose share has been stopped and whose provider has been
 *	drained
 *
 * May be called more than once.
 *
 * Context: process, sleeps; never waits for the network.
 */
void kofi_mr_pool_drain(struct kofi_ep *ep)
{
	struct kofi_mr_share *share = ep->mr_share;
	struct kofi_mr *mr;
	size_t n;
	bool end;

	might_sleep();
	if (!share)
		return;
	/* once around, while its consumer may put some of them */
	for (n = READ_ONCE(share->nr); n; n--) {
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
 * kofi_mr_pool_fenced - a region of a pool has been fenced
 * @mr: as kofi_mr_fenced()
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_mr_pool_fenced(struct kofi_mr *mr)
{
	struct kofi_mr_share *share = mr->ep->mr_share;
	const struct kofi_wc wc = mr->wc;
	bool report = mr->report;
	unsigned long flags;

	/* First give back, then report: the callback may map it again. */
	kofi_mr_step(mr, KOFI_MR_ENDING, KOFI_MR_IDLE);
	if (report)
		kofi_ep_tx_complete(share->ep, &wc, FI_COMPLETION);

	spin_lock_irqsave(&share->lock, flags);
	if (!--share->mapped)
		wake_up(&share->wait);
	spin_unlock_irqrestore(&share->lock, flags);
}

/* Keep what has been counted for the endpoint that puts a region. */
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
	struct kofi_mr_share *share = ep->mr_share;
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
	ep->mr_share = NULL;
	kofi_mr_share_free(share);
}

/**
 * kofi_mr_pool_stats - statistics of an endpoint's share
 * @ep: the endpoint
 * @fn: takes them
 * @arg: for @fn
 *
 * Context: process.
 */
void kofi_mr_pool_stats(struct kofi_ep *ep, kofi_stat_fn fn, void *arg)
{
	struct kofi_mr_share *share;
	struct kofi_mr_stats total;
	struct kofi_mr *mr;
	size_t nr;

	mutex_lock(&ep->config);	/* against enabling */
	share = ep->mr_share;
	if (!share)
		goto unlock;
	spin_lock_irq(&share->pool->lock);
	nr = share->nr;
	list_for_each_entry(mr, &share->has, node)
		kofi_mr_count(&share->total, &mr->stats);
	total = share->total;
	spin_unlock_irq(&share->pool->lock);

	fn(arg, "mr_pool", share->quota);
	fn(arg, "mr_free", share->quota - nr);
	fn(arg, "mr_mapped", READ_ONCE(share->mapped));
	fn(arg, "mr_maps", READ_ONCE(share->maps));
	fn(arg, "mr_empty", READ_ONCE(share->empty));
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
 * @fn: takes them
 * @arg: for @fn
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
		nr_free += READ_ONCE(pool->nr_free);
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
 * kofi_mr_get - take a region for an endpoint from its domain
 * @ep: an enabled endpoint that was given KOFI_OPT_MR_POOL
 *
 * Its peer is the only one that can access the region. Free regions are handed
 * out least recently used first.
 *
 * Context: any.
 * Return: a region for kofi_mr_map(), to be given back with kofi_mr_put(); NULL
 * if the endpoint has as many as it may have, or the domain's endpoints have all
 * there are for now, and the write-space callback follows; NULL also if the
 * endpoint may have none or has been drained, then nothing follows.
 */
struct fid_mr *kofi_mr_get(struct fid_ep *ep)
{
	struct kofi_mr_share *share;
	struct kofi_mr *mr;

	if (kofi_fid_class(&ep->fid) != FI_CLASS_EP)
		return NULL;
	share = container_of(ep, struct kofi_ep, ep)->mr_share;
	if (!share || READ_ONCE(share->closed))
		return NULL;
	mr = kofi_mr_share_take(share);
	if (!mr) {
		/* one given back before the mark was seen wakes no consumer */
		kofi_ep_blocked(share->ep);
		mr = kofi_mr_share_take(share);
	}
	return mr ? &mr->mr : NULL;
}
EXPORT_SYMBOL_GPL(kofi_mr_get);

/**
 * kofi_mr_put - give a region back
 * @mr: from kofi_mr_get(), not mapped or ended: of a single-use region, or one
 *	unmapped, the completion has come; or the endpoint has been drained.
 *	NULL is fine
 *
 * Closing an endpoint gives back those it still has.
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
	share = kmr->ep->mr_share;
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
 * Open it, unless the endpoint is being drained. The end may come as soon as
 * there is a key, and finds all of it.
 */
static int kofi_mr_pool_open_mr(struct kofi_mr *mr)
{
	struct kofi_mr_share *share = mr->ep->mr_share;
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
 * @vec: the memory, in the members that name it; KOFI_OPT_MR_SEGS segments at
 *	most, of which vmalloc memory takes one for each page. msg->context is
 *	what a single-use region completes to.
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @flags: FI_MR_SINGLE_USE for a single-use region, FI_RMA_EVENT as in
 *	fi_mr_regattr(); FI_MORE if a transmit of the endpoint follows, with which a
 *	device may be told of the region
 *
 * The region has a key, a new one, when the call returns. A peer may use it once
 * it has got a message that the endpoint has posted later, as one with the key is. The
 * arrays @vec points to are the caller's again, the memory stays the region's
 * until it is unmapped. So does its mapping, of memory named by kernel addresses: of
 * vmalloc memory it is not to be taken down, nor made read-only if @access has
 * FI_REMOTE_WRITE.
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
 * map, -ENOTCONN or -ESHUTDOWN for an endpoint that is not connected, -EAGAIN for
 * one that accepts, and the write-space callback follows, and what else it returns.
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
	ep = kmr->ep;
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
