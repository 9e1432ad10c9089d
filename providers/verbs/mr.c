// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: fast registration, on the queue pairs of endpoints.
 *
 * Regions and keys
 *
 * A region has a region of the device (struct ib_mr). That belongs to the
 * protection domain: any queue pair of the domain can register it, and the
 * peers of all of them can address it. Registration describes the memory to the
 * device, makes a new key, and posts a work request that makes the key valid.
 * The low 8 bits of the key change each time, from a random number on. The
 * address of the first byte, as peers use it, is random except for the offset
 * in the page; it is never a kernel address. Both together are hard to guess
 * for an unauthorised peer.
 *
 * Place of registration
 *
 * A region of a pool is registered on the queue pair of its endpoint
 * (mr_pool.c). Any other region is registered on the endpoint it is bound to
 * or, if it is not bound, on any connected endpoint; one at a time on each
 * endpoint. While no endpoint is connected, the region is pending, with a key
 * that becomes valid before the first FI_CONNECTED.
 *
 * The registration of an unbound region is waited for, because messages of
 * other queue pairs are not ordered behind it. Earlier work requests complete
 * first, and the peer may delay them. So the region goes to an endpoint with
 * nothing outstanding; if none is found, to one that makes progress. If none
 * makes progress for VRB_MR_STALL_MS, the registration fails. Closing such a
 * region deregisters the device's region. If it is bound and its registration
 * stalls, the connection is terminated.
 *
 * Locks
 *
 * dom->mr_mutex protects the lists of regions and of connected endpoints, and
 * the device's regions outside open pools. It is taken outside an endpoint's
 * tx.lock. It is not held while waiting for a completion. The exception is
 * vrb_mr_connected(), on a queue pair that has no other work requests.
 */
#include <linux/dma-mapping.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>
#include <linux/kofi/backport.h>

#include "tx.h"

/* How long peers may make no progress while a registration waits */
#define VRB_MR_STALL_MS	10000
/* How long to look for an endpoint with nothing outstanding */
#define VRB_MR_IDLE_MS	100

/* -------------------------------------------------------- the device's part */

static int vrb_mr_access(const struct vrb_mr *mr)
{
	const u64 both = FI_REMOTE_READ | FI_REMOTE_WRITE;
	u64 access = mr->base.access;
	int ret = 0;

	if (access & (FI_REMOTE_WRITE | FI_READ | FI_RECV))
		ret |= IB_ACCESS_LOCAL_WRITE;
	if (access & FI_REMOTE_WRITE)
		ret |= IB_ACCESS_REMOTE_WRITE;
	if (access & FI_REMOTE_READ)
		ret |= IB_ACCESS_REMOTE_READ;
	/* only if requested: some devices refuse the right */
	if ((access & both) == both && READ_ONCE(mr->dom->mr_atomic))
		ret |= IB_ACCESS_REMOTE_ATOMIC;
	return ret;
}

/* The device refuses the right: register regions of the domain without it. */
static void vrb_mr_no_atomic(struct vrb_domain *dom)
{
	if (xchg(&dom->mr_atomic, false))
		pr_warn("%s: regions are not open to atomic operations\n",
			dev_name(&dom->ib->dev));
}

/**
 * vrb_mr_unmap - unmap the memory of a region
 * @mr: the region; nothing happens if it is not mapped
 * @dev: device of the region
 *
 * Context: any.
 */
void vrb_mr_unmap(struct vrb_mr *mr, struct ib_device *dev)
{
	if (!mr->nents)
		return;
	vrb_unmap_sg(mr->dom, dev, mr->sg, mr->nr_sg, mr->nents, mr->dir);
	mr->nents = 0;
}

/* Cut segments that are too long to be mapped, at page boundaries. */
static int vrb_mr_cut(struct vrb_mr *mr)
{
	const struct kofi_mr *base = &mr->base;
	const size_t max = mr->dom->map_max;
	struct scatterlist *sg = mr->sg;
	unsigned int i;

	mr->nr_sg = 0;
	for (i = 0; i < base->nr_segs; i++) {
		size_t off = base->bv[i].bv_offset, len = base->bv[i].bv_len;

		while (len) {
			size_t n = min(len, max - offset_in_page(off));

			/* these are more pages than the region can hold */
			if (mr->nr_sg == mr->max_sg)
				return -EINVAL;
			sg = &mr->sg[mr->nr_sg++];
			*sg = (struct scatterlist) {};
			sg_set_page(sg, nth_page(base->bv[i].bv_page,
						 off >> PAGE_SHIFT),
				    n, offset_in_page(off));
			off += n;
			len -= n;
		}
	}
	if (!mr->nr_sg)
		return -EOPNOTSUPP;
	sg_mark_end(sg);
	return 0;
}

/**
 * vrb_mr_map - map a region's memory, describe it to the device, and make the
 * key
 * @mr: the region
 *
 * Context: any.
 * Return: 0; -EINVAL for memory with gaps or too much memory; -EOPNOTSUPP for
 * none; -ENOMEM.
 */
int vrb_mr_map(struct vrb_mr *mr)
{
	const struct kofi_mr *base = &mr->base;
	struct ib_mr *ib = mr->ib;
	int n;

	n = vrb_mr_cut(mr);
	if (n)
		return n;
	switch (base->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) {
	case FI_REMOTE_READ:
		mr->dir = DMA_TO_DEVICE;
		break;
	case FI_REMOTE_WRITE:
		mr->dir = DMA_FROM_DEVICE;
		break;
	default:
		mr->dir = DMA_BIDIRECTIONAL;
	}

	mr->nents = vrb_map_sg(mr->dom, ib->device, mr->sg, mr->nr_sg, mr->dir);
	if (!mr->nents)
		return -ENOMEM;
	/* gaps, or too many pages, leave some memory out */
	n = ib_map_mr_sg(ib, mr->sg, mr->nents, NULL, PAGE_SIZE);
	if (n != mr->nents || ib->length != base->len) {
		vrb_mr_unmap(mr, ib->device);
		return -EINVAL;
	}
	vrb_mr_set_iova(ib);
	ib_update_fast_reg_key(ib, ib_inc_rkey(ib->rkey));
	return 0;
}

/**
 * vrb_mr_show - publish address and key of a region
 * @mr: the region
 *
 * Context: any.
 */
void vrb_mr_show(struct vrb_mr *mr)
{
	mr->base.base = mr->ib->iova;
	WRITE_ONCE(mr->key, mr->ib->rkey);
	WRITE_ONCE(mr->base.mr.key, mr->ib->rkey);
}

static size_t vrb_mr_pages(const struct kofi_mr *mr)
{
	size_t pages = 0;
	unsigned int i;

	for (i = 0; i < mr->nr_segs; i++)
		pages += DIV_ROUND_UP(offset_in_page(mr->bv[i].bv_offset) +
				      mr->bv[i].bv_len, PAGE_SIZE);
	return pages;
}

static struct ib_mr *vrb_mr_alloc_ib(struct ib_pd *pd, size_t pages)
{
	const struct ib_device_attr *attrs = &pd->device->attrs;
	enum ib_mr_type type = IB_MR_TYPE_MEM_REG;

	if (attrs->kernel_cap_flags & IBK_SG_GAPS_REG)
		type = IB_MR_TYPE_SG_GAPS;
	return ib_alloc_mr(pd, type, pages);
}

/* Number of pages that the device's region must hold; 0 if that exceeds the limit */
static size_t vrb_mr_room(const struct vrb_mr *mr, size_t segs)
{
	size_t max = mr->dom->ib->attrs.max_fast_reg_page_list_len;
	size_t pages;

	if (mr->base.pool)
		pages = max(segs, min_t(size_t, max, VRB_MR_PAGES));
	else
		pages = max_t(size_t, vrb_mr_pages(&mr->base), 1);
	return pages <= max ? pages : 0;
}

/**
 * vrb_mr_dereg - deregister the device's region
 * @mr: the region; nothing happens if it has none
 *
 * Afterwards the memory cannot be accessed.
 *
 * Context: process, may sleep; the domain's mr_mutex held.
 */
void vrb_mr_dereg(struct vrb_mr *mr)
{
	struct ib_device *dev;

	lockdep_assert_held(&mr->dom->mr_mutex);

	if (!mr->ib)
		return;
	dev = mr->ib->device;
	list_del(&mr->node);
	list_del_init(&mr->pending);
	xa_erase(&mr->dom->mr_keys, mr->ib->rkey >> 8);
	WARN_ON_ONCE(ib_dereg_mr(mr->ib));
	mr->ib = NULL;
	if (mr->dom->quirks & VRB_QUIRK_DEREG_RCU)
		synchronize_rcu();
	vrb_mr_unmap(mr, dev);
}

/* Allocate a region of the device for a region. */
static int vrb_mr_make(struct vrb_mr *mr)
{
	struct vrb_domain *dom = mr->dom;
	struct ib_mr *ib;
	int err;

	lockdep_assert_held(&dom->mr_mutex);

	if (dom->gone)
		return -ENODEV;
	ib = vrb_mr_alloc_ib(dom->pd, mr->room);
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	ib_update_fast_reg_key(ib, get_random_u8());
	err = xa_insert(&dom->mr_keys, ib->rkey >> 8, mr, GFP_KERNEL);
	if (err) {
		ib_dereg_mr(ib);
		return err;
	}
	mr->ib = ib;
	list_add_tail(&mr->node, &dom->mrs);
	return 0;
}

/* --------------------------------------------------------- outside a pool */

/**
 * vrb_mr_post_reg - post a registration
 * @mr: region that has been described to the device
 * @ep: endpoint that registers it, with tx.lock held
 * @signaled: signal the completion
 * @more: the work request may wait for later posts
 *
 * If the device refuses the work request because of the right to atomic
 * operations, it is posted without that right.
 *
 * Context: any.
 * Return: 0 or the device's error.
 */
int vrb_mr_post_reg(struct vrb_mr *mr, struct vrb_ep *ep, bool signaled,
		    bool more)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe		= &mr->reg,
			.opcode		= IB_WR_REG_MR,
			.send_flags	= signaled ? IB_SEND_SIGNALED : 0,
		},
		.mr	= mr->ib,
		.key	= mr->ib->rkey,
		.access	= vrb_mr_access(mr),
	};
	int err;

	/* a work request that waits must not be refused later */
	if (more && !(wr.access & IB_ACCESS_REMOTE_ATOMIC))
		return vrb_links_reg(ep, &wr);
	err = vrb_links_flush(ep);
	if (err)
		return err;
	err = ib_post_send(ep->qp, &wr.wr, NULL);
	if (!(wr.access & IB_ACCESS_REMOTE_ATOMIC) ||
	    (err != -EINVAL && err != -EOPNOTSUPP))
		return err;
	wr.access &= ~IB_ACCESS_REMOTE_ATOMIC;
	err = ib_post_send(ep->qp, &wr.wr, NULL);
	if (!err)
		vrb_mr_no_atomic(mr->dom);
	return err;
}

/**
 * vrb_mr_reg_end - complete the registration of a region outside a pool
 * @mr: the region
 * @status: enum ib_wc_status of the registration
 *
 * Context: any.
 */
void vrb_mr_reg_end(struct vrb_mr *mr, int status)
{
	struct vrb_ep *ep = mr->ep;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	ep->mr.reg = NULL;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	mr->status = status;
	complete_all(&mr->registered);
	complete(&ep->mr.reg_done);
}

static void vrb_mr_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_mr *mr = container_of(wc->wr_cqe, struct vrb_mr, reg);

	if (wc->status)
		vrb_ep_failed(mr->ep, wc, vrb_wc_error(wc->status));
	vrb_mr_reg_end(mr, wc->status);
}

/* Wait for a registration, and so for all work requests before it. */
static void vrb_mr_wait(struct vrb_ep *ep, struct completion *done)
{
	const unsigned long stall = msecs_to_jiffies(VRB_MR_STALL_MS);
	u32 moved;

	do {
		moved = READ_ONCE(ep->tx_done.wrs);
		if (vrb_epcq_wait_for(&ep->tx_cq, done, stall))
			return;
	} while (moved != READ_ONCE(ep->tx_done.wrs));
	vrb_ep_abort(ep, ETIMEDOUT);
	vrb_epcq_wait(&ep->tx_cq, done);
}

/* Wait for a tick while an endpoint has work requests outstanding. */
static void vrb_mr_tick(struct vrb_ep *ep)
{
	struct completion never;

	init_completion(&never);
	vrb_tx_probe(ep);
	vrb_epcq_wait_for(&ep->tx_cq, &never, 1);
}

/*
 * Post a registration, after the previous one has completed. @behind: also if
 * work requests are outstanding. If the device lacks a resource now, retry.
 */
static int vrb_mr_register(struct vrb_mr *mr, struct vrb_ep *ep, bool behind)
{
	const unsigned long stall = msecs_to_jiffies(VRB_MR_STALL_MS);
	unsigned long irq, begin;
	int err;

	if (!vrb_epcq_wait_for(&ep->tx_cq, &ep->mr.reg_done, stall))
		return -ETIMEDOUT;
	mr->ep = ep;
	reinit_completion(&mr->registered);
	begin = jiffies;
	for (;;) {
		spin_lock_irqsave(&ep->tx.lock, irq);
		err = !vrb_tx_is_open(ep) ? -ESHUTDOWN :
		      !behind && vrb_tx_outstanding(ep) ? -EAGAIN :
		      vrb_mr_post_reg(mr, ep, true, false);
		if (!err)
			ep->mr.reg = mr;
		spin_unlock_irqrestore(&ep->tx.lock, irq);
		if (err != -ENOMEM && err != -ENOBUFS)
			break;
		err = -ETIMEDOUT;
		if (time_after(jiffies, begin + stall))
			break;
		vrb_mr_tick(ep);
	}
	if (err) {
		complete_all(&mr->registered);
		complete(&ep->mr.reg_done);
	}
	/* the queue pair has failed, and the event is outstanding */
	if (err == -ENOTCONN) {
		vrb_ep_abort(ep, ESHUTDOWN);
		err = -ESHUTDOWN;
	}
	return err;
}

/* Test whether an operation has completed since the last check. */
static bool vrb_mr_moves(struct vrb_ep *ep)
{
	u32 now = READ_ONCE(ep->tx_done.wrs);
	bool moves = now != ep->mr.moves;

	ep->mr.moves = now;
	return moves;
}

/*
 * Find an endpoint that can register the region, and keep it until
 * vrb_mr_unuse(). @ready is set if the region is bound to that endpoint or
 * nothing is outstanding there. Otherwise it is an endpoint that makes
 * progress, or any. An endpoint that is ended is skipped: it may stay on the
 * list for long, and retries would keep the context that removes it from
 * running.
 */
static struct vrb_ep *vrb_mr_use(struct vrb_mr *mr, bool *ready, bool *moves)
{
	struct vrb_domain *dom = mr->dom;
	struct vrb_ep *ep, *found = NULL;

	lockdep_assert_held(&dom->mr_mutex);

	*ready = false;
	*moves = false;
	list_for_each_entry(ep, &dom->mr_eps, mr.node) {
		bool moved;

		if ((mr->base.ep && mr->base.ep != &ep->base) ||
		    !vrb_tx_is_open(ep) || READ_ONCE(ep->end.err))
			continue;
		*ready = mr->base.ep || (!vrb_tx_outstanding(ep) &&
					 completion_done(&ep->mr.reg_done));
		if (*ready) {
			found = ep;
			break;
		}
		moved = vrb_mr_moves(ep);
		if (!found || (moved && !*moves))
			found = ep;
		*moves |= moved;
	}
	if (!found)
		return NULL;
	/* rotate: probing each endpoint in turn also polls its queue */
	list_move_tail(&found->mr.node, &dom->mr_eps);
	atomic_inc(&found->mr.users);
	return found;
}

static void vrb_mr_unuse(struct vrb_ep *ep)
{
	/* a full barrier; after the last put, only the address is used */
	if (atomic_dec_and_test(&ep->mr.users))
		wake_up_var(&ep->mr.users);
}

/*
 * Translate the status of a registration; an ended endpoint says nothing about
 * a region.
 */
static int vrb_mr_outcome(const struct vrb_mr *mr)
{
	switch (mr->status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		return -ESHUTDOWN;
	default:
		return -EIO;
	}
}

/*
 * Post a registration, and wait for it if needed. If this returns -EAGAIN or
 * -ETIMEDOUT, nothing has been posted.
 */
static int vrb_mr_settle_on(struct vrb_mr *mr, struct vrb_ep *ep, bool behind)
{
	int err = vrb_mr_register(mr, ep, behind);

	/* messages of the region's own queue pair are ordered behind it */
	if (err || mr->base.ep)
		return err;
	vrb_epcq_wait(&ep->tx_cq, &mr->registered);
	return vrb_mr_outcome(mr);
}

/*
 * Register a pending region, unless that is done or no endpoint can. A bound
 * region counts as registered when its endpoint has ended.
 */
static int vrb_mr_settle(struct vrb_mr *mr)
{
	unsigned long begin = jiffies, moved = begin;
	struct vrb_domain *dom = mr->dom;
	bool ready, moves;
	struct vrb_ep *ep;
	int err;

	for (;;) {
		ep = NULL;
		err = 0;
		mutex_lock(&dom->mr_mutex);
		if (!mr->ib)
			err = -ENODEV;
		else if (list_empty(&mr->pending))
			err = vrb_mr_outcome(mr);
		else
			ep = vrb_mr_use(mr, &ready, &moves);
		/* the first check of an endpoint only records its counter */
		moves &= time_after(jiffies, begin +
				    msecs_to_jiffies(VRB_MR_IDLE_MS));
		if (ep && (ready || moves))
			list_del_init(&mr->pending);
		mutex_unlock(&dom->mr_mutex);
		if (!ep)
			return mr->base.ep && err == -ESHUTDOWN ? 0 : err;

		if (ready || moves) {
			moved = jiffies;
			err = vrb_mr_settle_on(mr, ep, mr->base.ep || moves);
		} else {
			err = -EAGAIN;
			vrb_mr_tick(ep);
		}
		vrb_mr_unuse(ep);
		if (err != -ESHUTDOWN && err != -EAGAIN)
			return err;
		if (mr->base.ep)
			return 0;
		if (time_after(jiffies, moved +
			       msecs_to_jiffies(VRB_MR_STALL_MS)))
			return -ETIMEDOUT;
		mutex_lock(&dom->mr_mutex);
		if (mr->ib && list_empty(&mr->pending) && (ready || moves))
			list_add_tail(&mr->pending, &dom->mr_pending);
		mutex_unlock(&dom->mr_mutex);
	}
}

static int vrb_mr_open_other(struct vrb_mr *mr)
{
	struct vrb_domain *dom = mr->dom;
	int err;

	mutex_lock(&dom->mr_mutex);
	err = mr->ib ? vrb_mr_map(mr) : -ENODEV;
	if (!err) {
		vrb_mr_show(mr);
		list_add_tail(&mr->pending, &dom->mr_pending);
	}
	mutex_unlock(&dom->mr_mutex);
	if (err)
		return err;

	err = vrb_mr_settle(mr);
	if (!err)
		return 0;
	mutex_lock(&dom->mr_mutex);
	WRITE_ONCE(mr->base.mr.key, FI_KEY_NOTAVAIL);
	if (err == -ETIMEDOUT && mr->ib) {
		/* nothing has been posted, so the caller may retry */
		list_del_init(&mr->pending);
		vrb_mr_unmap(mr, mr->ib->device);
	} else {
		vrb_mr_dereg(mr);
	}
	mutex_unlock(&dom->mr_mutex);
	return err;
}

/* fi_close(): wait until the device has finished the registration, then deregister. */
static void vrb_mr_end_other(struct vrb_mr *mr)
{
	struct vrb_domain *dom = mr->dom;
	unsigned int noio;
	bool posted;

	mutex_lock(&dom->mr_mutex);
	posted = mr->ep && list_empty(&mr->pending);
	list_del_init(&mr->pending);
	mutex_unlock(&dom->mr_mutex);
	/* the registration of an unbound region has been waited for */
	if (posted && mr->base.ep)
		vrb_mr_wait(mr->ep, &mr->registered);

	noio = memalloc_noio_save();
	mutex_lock(&dom->mr_mutex);
	vrb_mr_dereg(mr);
	mutex_unlock(&dom->mr_mutex);
	memalloc_noio_restore(noio);
	kofi_mr_fenced(&mr->base);
}

/* ------------------------------------------------------ calls of the core */

static int vrb_mr_init(struct kofi_mr *base, size_t segs, u64 key)
{
	struct vrb_domain *dom = container_of(base->domain, struct vrb_domain,
					      base);
	struct vrb_mr *mr = vrb_mr(base);
	unsigned int noio;
	int err;

	/* devices neither report accesses nor take an address of the consumer */
	if (base->base)
		return -EINVAL;
	if (base->flags || !dom->regions)
		return -EOPNOTSUPP;
	mr->dom = dom;
	INIT_LIST_HEAD(&mr->pending);
	init_completion(&mr->registered);
	mr->reg.done = vrb_mr_reg_done;
	if (base->pool)
		vrb_mr_pool_init(mr);
	mr->room = vrb_mr_room(mr, segs);
	if (!mr->room)
		return -EINVAL;
	mr->max_sg = segs + mr->room / (dom->map_max >> PAGE_SHIFT);
	mr->sg = kvmalloc_array(max(mr->max_sg, 1), sizeof(*mr->sg),
				GFP_KERNEL);
	if (!mr->sg)
		return -ENOMEM;

	/* freeing memory may depend on an endpoint that is being ended */
	noio = memalloc_noio_save();
	mutex_lock(&dom->mr_mutex);
	err = vrb_mr_make(mr);
	mutex_unlock(&dom->mr_mutex);
	memalloc_noio_restore(noio);
	if (err)
		kvfree(mr->sg);
	return err;
}

static void vrb_mr_exit(struct kofi_mr *base)
{
	struct vrb_mr *mr = vrb_mr(base);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&mr->dom->mr_mutex);
	vrb_mr_dereg(mr);
	mutex_unlock(&mr->dom->mr_mutex);
	memalloc_noio_restore(noio);
	kvfree(mr->sg);
}

static int vrb_mr_open(struct kofi_mr *base)
{
	struct vrb_mr *mr = vrb_mr(base);

	return base->pool ? vrb_mr_pool_open(mr) : vrb_mr_open_other(mr);
}

static void vrb_mr_end(struct kofi_mr *base)
{
	struct vrb_mr *mr = vrb_mr(base);

	if (base->pool)
		vrb_mr_pool_end(mr);
	else
		vrb_mr_end_other(mr);
}

const struct kofi_mr_ops vrb_mr_ops = {
	.size	= sizeof(struct vrb_mr),
	.init	= vrb_mr_init,
	.exit	= vrb_mr_exit,
	.open	= vrb_mr_open,
	.end	= vrb_mr_end,
};

/* ------------------------------------------------- endpoints, and the device */

/**
 * vrb_mr_connected - register pending regions on a new connection
 * @ep: an endpoint that can send, before FI_CONNECTED
 *
 * Registers all pending regions, so that peers can access them when the
 * consumer gets FI_CONNECTED.
 *
 * Context: process, may sleep.
 */
void vrb_mr_connected(struct vrb_ep *ep)
{
	struct vrb_domain *dom = ep->dom;
	struct vrb_mr *mr, *next;
	LIST_HEAD(again);
	int err;

	mutex_lock(&dom->mr_mutex);
	if (!vrb_tx_is_open(ep))
		goto unlock;
	list_add_tail(&ep->mr.node, &dom->mr_eps);
	list_for_each_entry_safe(mr, next, &dom->mr_pending, pending) {
		if (mr->base.ep && mr->base.ep != &ep->base)
			continue;
		list_del_init(&mr->pending);
		err = vrb_mr_register(mr, ep, true);
		if (!err)
			vrb_epcq_wait(&ep->tx_cq, &mr->registered);
		else
			mr->status = IB_WC_WR_FLUSH_ERR;
		if (mr->status == IB_WC_WR_FLUSH_ERR && !mr->base.ep)
			list_add_tail(&mr->pending, &again);
		if (err == -ETIMEDOUT) {
			/*
			 * The other regions would wait as long, and the domain
			 * with them.
			 */
			vrb_ep_abort(ep, ETIMEDOUT);
			break;
		}
	}
	list_splice_tail(&again, &dom->mr_pending);
unlock:
	mutex_unlock(&dom->mr_mutex);
}

/**
 * vrb_mr_ended - stop registering regions on an endpoint
 * @ep: an endpoint that refuses posts
 *
 * Context: process, may sleep.
 */
void vrb_mr_ended(struct vrb_ep *ep)
{
	mutex_lock(&ep->dom->mr_mutex);
	list_del_init(&ep->mr.node);
	mutex_unlock(&ep->dom->mr_mutex);
}

/**
 * vrb_mr_ep_init - initialise an endpoint's members for regions
 * @ep: the endpoint
 */
void vrb_mr_ep_init(struct vrb_ep *ep)
{
	INIT_LIST_HEAD(&ep->mr.node);
	INIT_LIST_HEAD(&ep->mr.posted);
	atomic_set(&ep->mr.users, 0);
	init_completion(&ep->mr.reg_done);
	complete(&ep->mr.reg_done);
}

/**
 * vrb_mr_ep_exit - wait until no region is being registered on an endpoint
 * @ep: an endpoint with a drained queue pair
 *
 * Context: process, may sleep; outstanding registrations have been flushed.
 */
void vrb_mr_ep_exit(struct vrb_ep *ep)
{
	/* pairs with vrb_mr_unuse(): all its accesses, before the endpoint is freed */
	wait_var_event(&ep->mr.users, !atomic_read_acquire(&ep->mr.users));
}

/**
 * vrb_mr_domain_init - initialise a domain's members for regions
 * @dom: the domain
 */
void vrb_mr_domain_init(struct vrb_domain *dom)
{
	mutex_init(&dom->mr_mutex);
	INIT_LIST_HEAD(&dom->mrs);
	INIT_LIST_HEAD(&dom->mr_eps);
	INIT_LIST_HEAD(&dom->mr_pending);
	xa_init(&dom->mr_keys);
}

/**
 * vrb_mr_domain_exit - undo vrb_mr_domain_init()
 * @dom: the domain, without regions
 */
void vrb_mr_domain_exit(struct vrb_domain *dom)
{
	WARN_ON_ONCE(!list_empty(&dom->mrs));
	xa_destroy(&dom->mr_keys);
	mutex_destroy(&dom->mr_mutex);
}

/**
 * vrb_mr_lost - deregister all regions when the device is removed
 * @dom: a domain that is marked as gone, after its endpoints have ended
 *
 * The regions stay, unusable, until they are closed.
 *
 * Context: process, may sleep.
 */
void vrb_mr_lost(struct vrb_domain *dom)
{
	struct vrb_mr *mr, *next;

	mutex_lock(&dom->mr_mutex);
	list_for_each_entry_safe(mr, next, &dom->mrs, node)
		vrb_mr_dereg(mr);
	mutex_unlock(&dom->mr_mutex);
}
