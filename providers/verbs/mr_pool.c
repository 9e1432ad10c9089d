// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of a pool (kofi_mr_get()), registered on the queue pair of their
 * endpoint.
 *
 * Normal operation
 *
 * The registration is posted ahead of later work requests, without waiting and
 * mostly unsignaled: the peer cannot invalidate the region before, and the
 * local invalidation comes later. With FI_MORE the registration is posted in
 * one list with later work requests (tx_wr.c). The region is fenced when the
 * invalidation has completed, or when the peer's message has invalidated it.
 *
 * Each registration takes a slot in the send queue until a later work request
 * of a region completes. So one in so many registrations is signaled, and slots
 * are reserved for the invalidation of each region.
 *
 * Recovery
 *
 * If the device does not accept an invalidation for now, the endpoint's work
 * item posts it again. If the connection fails first, the region is left alone
 * until the queue pair has been drained. Then a work item deregisters the
 * device's region, and the core replaces the region.
 */
#include <linux/sched/mm.h>

#include "tx.h"

/* Deregister a region in an unknown state, after the connection has failed. */
static void vrb_mr_work(struct work_struct *work)
{
	struct vrb_mr *mr = container_of(work, struct vrb_mr, work);
	unsigned int noio;

	/* freeing memory may depend on this endpoint */
	noio = memalloc_noio_save();
	mutex_lock(&mr->dom->mr_mutex);
	vrb_mr_dereg(mr);
	mutex_unlock(&mr->dom->mr_mutex);
	memalloc_noio_restore(noio);
	mr->base.broken = true;
	kofi_mr_fenced(&mr->base);
}

static struct vrb_ep *vrb_mr_ep(const struct vrb_mr *mr)
{
	return container_of(mr->base.ep, struct vrb_ep, base);
}

/* Report that the device no longer accesses the region's memory. */
static void vrb_mr_fence(struct vrb_mr *mr)
{
	vrb_mr_unmap(mr, mr->ib->device);
	kofi_mr_fenced(&mr->base);
}

/* Test whether the device has finished with the region. With tx.lock held. */
static bool vrb_mr_is_done(struct vrb_mr *mr)
{
	if (mr->state != VRB_MR_INVALID || mr->reg_out)
		return false;
	list_del_init(&mr->posted);
	return true;
}

/*
 * Handle a completed work request of a pool's region. After an error, the
 * region waits until the connection has been terminated, see vrb_mr_flush().
 */
static void vrb_mr_wr_done(struct vrb_mr *mr, const struct ib_wc *wc, bool reg)
{
	struct vrb_ep *ep = vrb_mr_ep(mr);
	unsigned long irq;
	bool run, done;

	if (wc->status) {
		vrb_ep_failed(ep, wc, vrb_wc_error(wc->status));
		return;
	}
	spin_lock_irqsave(&ep->tx.lock, irq);
	if (reg) {
		mr->reg_out = false;
		ep->mr.free += mr->reg_room;
	} else {
		mr->state = VRB_MR_INVALID;
		ep->mr.free += mr->inv_room;
	}
	done = vrb_mr_is_done(mr);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	kofi_ep_unblock(&ep->base);
	if (!done)
		return;
	run = kofi_cq_begin(ep->tx_cq.kcq);
	vrb_mr_fence(mr);
	if (run)
		kofi_cq_end(ep->tx_cq.kcq);
}

static void vrb_mr_pool_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	vrb_mr_wr_done(container_of(wc->wr_cqe, struct vrb_mr, reg), wc, true);
}

static void vrb_mr_pool_inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	vrb_mr_wr_done(container_of(wc->wr_cqe, struct vrb_mr, inv), wc, false);
}

/* Test whether the queue pair takes work requests. With tx.lock held. */
static int vrb_mr_may_post(struct vrb_ep *ep)
{
	lockdep_assert_held(&ep->tx.lock);

	if (!vrb_tx_is_open(ep))
		return -ESHUTDOWN;
	return kofi_ep_tx_state(&ep->base);
}

/*
 * Post an invalidation. With tx.lock held. On failure it is posted later, or
 * not needed.
 */
static void vrb_mr_post_inv(struct vrb_mr *mr, struct vrb_ep *ep)
{
	struct ib_send_wr wr = {
		.wr_cqe			= &mr->inv,
		.opcode			= IB_WR_LOCAL_INV,
		.send_flags		= IB_SEND_SIGNALED,
	};

	if (vrb_mr_may_post(ep))
		return;
	wr.ex.invalidate_rkey = mr->ib->rkey;
	mr->inv_room = ep->mr.unreported + 1;
	mr->state = VRB_MR_INVALIDATING;
	if (vrb_links_flush(ep) || ib_post_send(ep->qp, &wr, NULL)) {
		mr->state = VRB_MR_ENDING;
		queue_delayed_work(vrb_wq, &ep->work, 1);
		return;
	}
	ep->mr.unreported = 0;
	ep->mr.free--;
	ep->mr.open--;
}

/**
 * vrb_mr_repost - post invalidations again from the work item
 * @ep: the endpoint
 *
 * Context: process.
 */
void vrb_mr_repost(struct vrb_ep *ep)
{
	struct vrb_mr *mr;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	list_for_each_entry(mr, &ep->mr.posted, posted)
		if (mr->state == VRB_MR_ENDING)
			vrb_mr_post_inv(mr, ep);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

/* Post the registration. With tx.lock held. */
static int vrb_mr_pool_post(struct vrb_mr *mr, struct vrb_ep *ep)
{
	int err = vrb_mr_may_post(ep);

	if (err)
		return err;
	/* each open region needs a slot for its invalidation, which is signaled */
	if (ep->mr.free < ep->mr.open + 2)
		return -EAGAIN;
	/* unsignaled registrations hold at most a quarter of the slots */
	mr->reg_out = ep->mr.unreported + 1 >= ep->mr.wrs / 4;
	mr->reg_room = ep->mr.unreported + 1;
	mr->state = VRB_MR_OPEN;
	err = vrb_mr_post_reg(mr, ep, mr->reg_out, mr->base.flags & FI_MORE);
	if (err)
		return err;
	ep->mr.unreported = mr->reg_out ? 0 : mr->reg_room;
	ep->mr.free--;
	ep->mr.open++;
	list_add_tail(&mr->posted, &ep->mr.posted);
	vrb_mr_show(mr);
	return 0;
}

/* Map and register under RCU, which keeps the device: see vrb_domain_lost(). */
static int vrb_mr_pool_open_rcu(struct vrb_mr *mr, struct vrb_ep *ep)
{
	unsigned long irq;
	int err;

	/* without @ib the connection is being terminated */
	if (!vrb_tx_is_open(ep) || !mr->ib)
		return -ESHUTDOWN;
	err = kofi_ep_tx_state(&ep->base) ?: vrb_mr_map(mr);
	if (err)
		return err;
	spin_lock_irqsave(&ep->tx.lock, irq);
	err = vrb_mr_pool_post(mr, ep);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (err)
		vrb_mr_unmap(mr, mr->ib->device);
	return err;
}

/**
 * vrb_mr_pool_open - kofi_mr_ops.open of a region of a pool
 * @mr: the region
 *
 * Context: any.
 * Return: as kofi_mr_map().
 */
int vrb_mr_pool_open(struct vrb_mr *mr)
{
	struct vrb_ep *ep = vrb_mr_ep(mr);
	int err;

	if (mr->base.flags & FI_RMA_EVENT)
		return -EOPNOTSUPP;
	rcu_read_lock();
	err = vrb_mr_pool_open_rcu(mr, ep);
	if (err == -EAGAIN)
		err = kofi_ep_retry(&ep->base, vrb_mr_pool_open_rcu(mr, ep));
	rcu_read_unlock();
	return vrb_tx_refused(ep, err);
}

/**
 * vrb_mr_pool_end - kofi_mr_ops.end of a region of a pool
 * @mr: the region
 *
 * Context: any.
 */
void vrb_mr_pool_end(struct vrb_mr *mr)
{
	struct vrb_ep *ep = vrb_mr_ep(mr);
	bool done = false, flushed;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	flushed = ep->mr.flushed;
	if (mr->base.wc.flags & KOFI_REMOTE_INV && !flushed) {
		/* the peer's message has invalidated the region */
		mr->state = VRB_MR_INVALID;
		ep->mr.open--;
		done = vrb_mr_is_done(mr);
	} else {
		mr->state = VRB_MR_ENDING;
		vrb_mr_post_inv(mr, ep);
	}
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (done)
		vrb_mr_fence(mr);
	else if (flushed)
		queue_work(vrb_wq, &mr->work);
}

/**
 * vrb_mr_flush - let a work item deregister regions that the device no longer
 * uses
 * @ep: an endpoint with a drained or destroyed queue pair
 * @drained: the queue pair has been drained
 *
 * Regions of the pool that are being ended are deregistered now, others when
 * they are ended. If the queue pair was destroyed, an outstanding registration
 * outside the pool has failed.
 *
 * Context: process.
 */
void vrb_mr_flush(struct vrb_ep *ep, bool drained)
{
	struct vrb_mr *mr, *next;

	spin_lock_irq(&ep->tx.lock);
	ep->mr.flushed = true;
	list_for_each_entry_safe(mr, next, &ep->mr.posted, posted) {
		list_del_init(&mr->posted);
		if (mr->state != VRB_MR_OPEN)
			queue_work(vrb_wq, &mr->work);
	}
	mr = ep->mr.reg;
	spin_unlock_irq(&ep->tx.lock);
	if (!drained && mr)
		vrb_mr_reg_end(mr, IB_WC_WR_FLUSH_ERR);
}

/**
 * vrb_mr_invalidated - handle a key that a peer's message has invalidated
 * @ep: endpoint of the message
 * @key: the key
 *
 * A device lets a peer invalidate any region of the domain. If the region is
 * not a single-use region of this endpoint, the connection fails. The region is
 * unusable then, but its owner still calls kofi_mr_end().
 *
 * Context: any.
 */
void vrb_mr_invalidated(struct vrb_ep *ep, u32 key)
{
	struct vrb_mr *mr;
	bool allowed;

	rcu_read_lock();
	mr = xa_load(&ep->dom->mr_keys, key >> 8);
	allowed = mr && READ_ONCE(mr->base.ep) == &ep->base &&
		  mr->base.flags & FI_MR_SINGLE_USE;
	if (allowed && ep->dom->quirks & VRB_QUIRK_STALE_KEY &&
	    READ_ONCE(mr->key) != key)
		allowed = false;
	/* the consumer may have ended the region and mapped it again */
	if (allowed)
		kofi_mr_end(&mr->base, key, 0, KOFI_REMOTE_INV);
	rcu_read_unlock();
	if (!allowed) {
		kofi_violation(&ep->base.obj, NULL, "invalidation denied");
		vrb_ep_abort(ep, EACCES);
	}
}

/**
 * vrb_mr_pool_init - prepare a region of a pool
 * @mr: the region
 *
 * Context: any.
 */
void vrb_mr_pool_init(struct vrb_mr *mr)
{
	INIT_LIST_HEAD(&mr->posted);
	INIT_WORK(&mr->work, vrb_mr_work);
	mr->reg.done = vrb_mr_pool_reg_done;
	mr->inv.done = vrb_mr_pool_inv_done;
}

/**
 * vrb_mr_ep_wrs - count the work requests that an endpoint's regions need
 * @ep: an endpoint that is being enabled
 *
 * Return: two for each region of the pool. VRB_OWN_WRS includes one for regions
 * outside the pool.
 */
size_t vrb_mr_ep_wrs(const struct vrb_ep *ep)
{
	return size_mul(ep->base.mr.pool_size, 2);
}
