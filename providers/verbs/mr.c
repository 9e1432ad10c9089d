// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: fast registration, on the queue pairs of our endpoints.
 *
 * Regions and keys
 *
 * A region has one of the device's (struct ib_mr). That belongs to the protection
 * domain, so any queue pair of the domain can register it, and the peers of all
 * of them can name it. Memory is described to the device, a new key is made (its
 * low 8 bits change each time, from a random number on), and a work request makes
 * the key valid. The address of the first byte, as the peer is to name it, is
 * random but for the offset in the page; it is never a kernel address. Both
 * together are hard to guess for a peer that was not told.
 *
 * Regions of a pool
 *
 * They are the domain's. Such a region is registered on the queue pair of the
 * endpoint that has it, ahead of all that is posted there later, without waiting
 * and mostly without a report: the peer cannot invalidate it before, and a work
 * request that does comes later. It is fenced when that has been reported, or the
 * peer's message. If the connection ends first, it is not touched before the queue
 * pair has been drained; then the work item deregisters the device's part, and
 * the core replaces the region. A work request the device does not take for now
 * is posted again by the endpoint's work item.
 *
 * Each registration takes a place in the send queue until something behind it has
 * been reported. So every so many are, and no more are posted than leave a place
 * for the end of each region.
 *
 * Other regions
 *
 * They are registered on the endpoint they are bound to, or else on any that is
 * connected; one at a time on each endpoint. While there is none they are pending,
 * with a key that will be valid before the first FI_CONNECTED. The registration
 * of a region that is bound to no endpoint is waited for, because messages of
 * other queue pairs are not ordered behind it. What was posted before it is done
 * first, and the peer may hold that up. So it goes to an endpoint with nothing
 * outstanding; if none is found, to one that makes progress; and if none does for
 * long, nowhere. The end of such a region deregisters the device's. If it is
 * bound, and its registration is held up for long, the connection ends.
 *
 * Locks
 *
 * dom->mr_mutex guards the lists of regions and of connected endpoints, and the
 * device's regions that are not of an open pool. It is outside an endpoint's
 * tx_lock. It is not held while waiting for a completion, but for
 * vrb_mr_connected(), on a queue pair that has nothing else to do.
 */
#include <linux/dma-mapping.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>
#include <linux/kofi/backport.h>

#include "verbs.h"

/* How long peers may make no progress while a registration has to wait */
#define VRB_MR_STALL_MS	10000
/* How long an endpoint with nothing outstanding is looked for */
#define VRB_MR_IDLE_MS	100

/* Regions of a pool */
enum vrb_mr_state {
	VRB_MR_OPEN,		/* registered, as far as the endpoint knows */
	VRB_MR_ENDING,		/* to be invalidated */
	VRB_MR_INVALIDATING,	/* the device has been asked to */
	VRB_MR_INVALID,
};

/**
 * struct vrb_mr - a region
 * @base: the core's
 * @dom: its domain
 * @ib: the device's part; NULL once it has been deregistered
 * @room: pages @ib has room for
 * @key: the last one it had
 * @node: on the domain's list of those that have @ib
 * @pending: on the domain's list of those to be registered
 * @sg: the memory, in segments that can be mapped
 * @max_sg: entries there is room for
 * @nr_sg: entries in use
 * @nents: entries that are mapped for the device, 0 if none is
 * @dir: which way the bytes go
 * @reg: the registration has ended
 * @inv: the invalidation has
 * @posted: of a pool: vrb_ep.mr_posted, from the registration until it is fenced
 * @state: of a pool; with all up to @inv_room under the endpoint's tx_lock
 * @reg_out: of a pool: the end of the registration will be reported
 * @reg_room: places in the send queue that come free with that
 * @inv_room: the same with that of the invalidation
 * @ep: registers it, for a region of no pool
 * @status: of the registration, for a region of no pool
 * @registered: the device has reported it
 * @work: deregisters the device's region
 */
struct vrb_mr {
	struct kofi_mr		base;
	struct vrb_domain	*dom;
	struct ib_mr		*ib;
	size_t			room;
	u32			key;
	struct list_head	node;
	struct list_head	pending;
	struct scatterlist	*sg;
	unsigned int		max_sg;
	unsigned int		nr_sg;
	int			nents;
	enum dma_data_direction	dir;
	struct ib_cqe		reg;
	struct ib_cqe		inv;
	struct list_head	posted;
	enum vrb_mr_state	state;
	bool			reg_out;
	unsigned int		reg_room;
	unsigned int		inv_room;
	struct vrb_ep		*ep;
	int			status;
	struct completion	registered;
	struct work_struct	work;
};

static struct vrb_mr *vrb_mr(struct kofi_mr *base)
{
	return container_of(base, struct vrb_mr, base);
}

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
	/* only if asked for: some devices refuse the right */
	if ((access & both) == both && mr->dom->mr_atomic)
		ret |= IB_ACCESS_REMOTE_ATOMIC;
	return ret;
}

static void vrb_mr_unmap(struct vrb_mr *mr, struct ib_device *dev)
{
	if (!mr->nents)
		return;
	vrb_unmap_sg(mr->dom, dev, mr->sg, mr->nr_sg, mr->nents, mr->dir);
	mr->nents = 0;
}

/* Cut the memory where it is too long to be mapped, at the ends of pages. */
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

			/* these are more pages than it has room for */
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

/* Describe the memory to the device, and make the key. Any context */
static int vrb_mr_map(struct vrb_mr *mr)
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
	/* gaps, or too many pages, show in what is left over */
	n = ib_map_mr_sg(ib, mr->sg, mr->nents, NULL, PAGE_SIZE);
	if (n != mr->nents || ib->length != base->len) {
		vrb_mr_unmap(mr, ib->device);
		return -EINVAL;
	}
	vrb_mr_set_iova(ib);
	ib_update_fast_reg_key(ib, ib_inc_rkey(ib->rkey));
	return 0;
}

static void vrb_mr_show(struct vrb_mr *mr)
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

/* How long a list of pages the region needs; 0 if the device has none so long */
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

/* Deregister the device's region: the memory cannot be accessed afterwards. */
static void vrb_mr_dereg(struct vrb_mr *mr)
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

/* Give a region one of the device's. */
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

/* ---------------------------------------------------------------- of a pool */

/* The connection has ended, and the state of the device's region is not known. */
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

/* Nothing is to come of it any more. */
static void vrb_mr_fence(struct vrb_mr *mr)
{
	vrb_mr_unmap(mr, mr->ib->device);
	kofi_mr_fenced(&mr->base);
}

/* With tx_lock held: has the device done with it? */
static bool vrb_mr_is_done(struct vrb_mr *mr)
{
	if (mr->state != VRB_MR_INVALID || mr->reg_out)
		return false;
	list_del_init(&mr->posted);
	return true;
}

/*
 * A work request of a pool's region has ended. On an error the region waits for
 * the end of the connection, see vrb_mr_flush().
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
	spin_lock_irqsave(&ep->tx_lock, irq);
	if (reg) {
		mr->reg_out = false;
		ep->mr_free += mr->reg_room;
	} else {
		mr->state = VRB_MR_INVALID;
		ep->mr_free += mr->inv_room;
	}
	done = vrb_mr_is_done(mr);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
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

/* May the queue pair be given work? With tx_lock held */
static int vrb_mr_may_post(struct vrb_ep *ep)
{
	lockdep_assert_held(&ep->tx_lock);

	if (ep->tx_closed)
		return -ESHUTDOWN;
	return kofi_ep_tx_state(&ep->base);
}

static int vrb_mr_post_reg(struct vrb_mr *mr, struct vrb_ep *ep, bool signaled)
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

	vrb_links_flush(ep);
	return ib_post_send(ep->qp, &wr.wr, NULL);
}

/* With tx_lock held. What cannot be posted now is later, or needs not be. */
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
	mr->inv_room = ep->mr_unreported + 1;
	mr->state = VRB_MR_INVALIDATING;
	vrb_links_flush(ep);
	if (ib_post_send(ep->qp, &wr, NULL)) {
		mr->state = VRB_MR_ENDING;
		mod_delayed_work(vrb_wq, &ep->work, 1);
		return;
	}
	ep->mr_unreported = 0;
	ep->mr_free--;
	ep->mr_open--;
}

/**
 * vrb_mr_repost - the work item's part of that
 * @ep: the endpoint
 *
 * Context: process.
 */
void vrb_mr_repost(struct vrb_ep *ep)
{
	struct vrb_mr *mr;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	list_for_each_entry(mr, &ep->mr_posted, posted)
		if (mr->state == VRB_MR_ENDING)
			vrb_mr_post_inv(mr, ep);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

/* Register it, with tx_lock held. */
static int vrb_mr_post_pool(struct vrb_mr *mr, struct vrb_ep *ep)
{
	int err = vrb_mr_may_post(ep);

	if (err)
		return err;
	/* the end of each takes another place; as below, one will be reported */
	if (ep->mr_free < ep->mr_open + 2)
		return -EAGAIN;
	/* those behind the last that will be never take more than a quarter */
	mr->reg_out = ep->mr_unreported + 1 >= ep->mr_wrs / 4;
	mr->reg_room = ep->mr_unreported + 1;
	mr->state = VRB_MR_OPEN;
	err = vrb_mr_post_reg(mr, ep, mr->reg_out);
	if (err)
		return err;
	ep->mr_unreported = mr->reg_out ? 0 : mr->reg_room;
	ep->mr_free--;
	ep->mr_open++;
	list_add_tail(&mr->posted, &ep->mr_posted);
	vrb_mr_show(mr);
	return 0;
}

/* With RCU, which keeps the device: see vrb_domain_lost(). */
static int vrb_mr_open_pool_rcu(struct vrb_mr *mr, struct vrb_ep *ep)
{
	unsigned long irq;
	int err;

	/* without @ib the connection is ending */
	if (READ_ONCE(ep->tx_closed) || !mr->ib)
		return -ESHUTDOWN;
	err = kofi_ep_tx_state(&ep->base) ?: vrb_mr_map(mr);
	if (err)
		return err;
	spin_lock_irqsave(&ep->tx_lock, irq);
	err = vrb_mr_post_pool(mr, ep);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (err)
		vrb_mr_unmap(mr, mr->ib->device);
	return err;
}

static int vrb_mr_open_pool(struct vrb_mr *mr)
{
	struct vrb_ep *ep = vrb_mr_ep(mr);
	int err;

	if (mr->base.flags & FI_RMA_EVENT)
		return -EOPNOTSUPP;
	rcu_read_lock();
	err = vrb_mr_open_pool_rcu(mr, ep);
	if (err == -EAGAIN) {
		/* places may have come free before the mark was there to see */
		kofi_ep_blocked(&ep->base);
		err = vrb_mr_open_pool_rcu(mr, ep);
	}
	rcu_read_unlock();
	return vrb_tx_refused(ep, err);
}

static void vrb_mr_end_pool(struct vrb_mr *mr)
{
	struct vrb_ep *ep = vrb_mr_ep(mr);
	bool done = false, flushed;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	flushed = ep->mr_flushed;
	if (mr->base.wc.flags & KOFI_REMOTE_INV && !flushed) {
		/* the device has done it */
		mr->state = VRB_MR_INVALID;
		ep->mr_open--;
		done = vrb_mr_is_done(mr);
	} else {
		mr->state = VRB_MR_ENDING;
		vrb_mr_post_inv(mr, ep);
	}
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (done)
		vrb_mr_fence(mr);
	else if (flushed)
		queue_work(vrb_wq, &mr->work);
}

/* The registration of a region of no pool has ended: no more is known of that. */
static void vrb_mr_reg_end(struct vrb_mr *mr, int status)
{
	struct vrb_ep *ep = mr->ep;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	ep->reg_mr = NULL;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	mr->status = status;
	complete_all(&mr->registered);
	complete(&ep->reg_done);
}

/**
 * vrb_mr_flush - nothing comes of the device any more
 * @ep: an endpoint whose queue pair has been drained, or destroyed
 * @drained: which of these
 *
 * Regions of its pool that have ended are deregistered; others will be. Without
 * a drained queue pair, a registration that is waited for has failed.
 *
 * Context: process.
 */
void vrb_mr_flush(struct vrb_ep *ep, bool drained)
{
	struct vrb_mr *mr, *next;

	spin_lock_irq(&ep->tx_lock);
	ep->mr_flushed = true;
	list_for_each_entry_safe(mr, next, &ep->mr_posted, posted) {
		list_del_init(&mr->posted);
		if (mr->state != VRB_MR_OPEN)
			queue_work(vrb_wq, &mr->work);
	}
	mr = ep->reg_mr;
	spin_unlock_irq(&ep->tx_lock);
	if (!drained && mr)
		vrb_mr_reg_end(mr, IB_WC_WR_FLUSH_ERR);
}

/**
 * vrb_mr_invalidated - a peer's message has invalidated a key
 * @ep: endpoint it came to
 * @key: the key
 *
 * A device lets a peer invalidate any region of the domain. If it invalidates one
 * that is not offered for that, the connection ends; the region is of no more use,
 * but its owner ends it as ever.
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
	/* the consumer may just have ended it, and mapped it again */
	if (allowed)
		kofi_mr_end(&mr->base, key, 0, KOFI_REMOTE_INV);
	rcu_read_unlock();
	if (!allowed)
		vrb_ep_abort(ep, EACCES);
}

/* -------------------------------------------------------------- of no pool */

static void vrb_mr_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_mr *mr = container_of(wc->wr_cqe, struct vrb_mr, reg);

	if (wc->status)
		vrb_ep_failed(mr->ep, wc, vrb_wc_error(wc->status));
	vrb_mr_reg_end(mr, wc->status);
}

/*
 * Wait for a registration. While that has not been reported nothing posted
 * behind it can be the first, so the same record is the same operation.
 */
static void vrb_mr_wait(struct vrb_ep *ep, struct completion *done)
{
	const unsigned long stall = msecs_to_jiffies(VRB_MR_STALL_MS);
	struct vrb_txop *op;

	do {
		op = READ_ONCE(ep->tx_posted);
		if (vrb_epcq_wait_for(&ep->tx_cq, done, stall))
			return;
	} while (op != READ_ONCE(ep->tx_posted));
	vrb_ep_abort(ep, ETIMEDOUT);
	vrb_epcq_wait(&ep->tx_cq, done);
}

/*
 * Post it, once the one before has been reported; @behind: also if something is
 * outstanding.
 */
static int vrb_mr_register(struct vrb_mr *mr, struct vrb_ep *ep, bool behind)
{
	const unsigned long stall = msecs_to_jiffies(VRB_MR_STALL_MS);
	unsigned long irq;
	int err;

	if (!vrb_epcq_wait_for(&ep->tx_cq, &ep->reg_done, stall))
		return -ETIMEDOUT;
	mr->ep = ep;
	reinit_completion(&mr->registered);
	spin_lock_irqsave(&ep->tx_lock, irq);
	err = ep->tx_closed ? -ESHUTDOWN :
	      !behind && ep->tx_posted ? -EAGAIN :
	      vrb_mr_post_reg(mr, ep, true);
	if (!err)
		ep->reg_mr = mr;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (err) {
		complete_all(&mr->registered);
		complete(&ep->reg_done);
	}
	/* the queue pair has failed, and its event is on its way */
	if (err == -ENOTCONN) {
		vrb_ep_abort(ep, ESHUTDOWN);
		err = -ESHUTDOWN;
	}
	return err;
}

/* Has an operation ended since the last look? */
static bool vrb_mr_moves(struct vrb_ep *ep)
{
	unsigned long now = READ_ONCE(ep->tx_ended);
	bool moves = now != ep->mr_moves;

	ep->mr_moves = now;
	return moves;
}

/*
 * An endpoint that can register the region: it stays until vrb_mr_unuse(). @ready:
 * set to whether it is bound to that or nothing is outstanding there; if not, it is
 * one that makes progress, or any. One that ends is passed over: it may be on the
 * list for long, and trying it again and again would keep the context that takes
 * it off from running.
 */
static struct vrb_ep *vrb_mr_use(struct vrb_mr *mr, bool *ready, bool *moves)
{
	struct vrb_domain *dom = mr->dom;
	struct vrb_ep *ep, *found = NULL;

	lockdep_assert_held(&dom->mr_mutex);

	*ready = false;
	*moves = false;
	list_for_each_entry(ep, &dom->mr_eps, mr_node) {
		bool moved;

		if ((mr->base.ep && mr->base.ep != &ep->base) ||
		    READ_ONCE(ep->tx_closed) || READ_ONCE(ep->dead))
			continue;
		*ready = mr->base.ep || (!READ_ONCE(ep->tx_posted) &&
					 completion_done(&ep->reg_done));
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
	/* each in its turn, as a queue that is polled has to be */
	list_move_tail(&found->mr_node, &dom->mr_eps);
	atomic_inc(&found->mr_users);
	return found;
}

static void vrb_mr_unuse(struct vrb_ep *ep)
{
	/* After the last one, only the address is used. */
	if (atomic_dec_and_test(&ep->mr_users))
		wake_up_var(&ep->mr_users);
}

/* An endpoint that has ended says nothing about a region. */
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

/* A tick of waiting for an endpoint to have nothing outstanding */
static void vrb_mr_tick(struct vrb_ep *ep)
{
	struct completion never;

	init_completion(&never);
	vrb_tx_probe(ep);
	vrb_epcq_wait_for(&ep->tx_cq, &never, 1);
}

/*
 * Post a registration, and wait for it if that is needed. Nothing has been posted
 * if that returns -EAGAIN or -ETIMEDOUT.
 */
static int vrb_mr_settle_on(struct vrb_mr *mr, struct vrb_ep *ep, bool behind)
{
	int err = vrb_mr_register(mr, ep, behind);

	/* messages of its own queue pair come later anyway */
	if (err || mr->base.ep)
		return err;
	vrb_epcq_wait(&ep->tx_cq, &mr->registered);
	return vrb_mr_outcome(mr);
}

/*
 * Get a pending region registered, unless that has been done or no endpoint can.
 * A bound region whose endpoint has ended counts as registered.
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
		/* the first look at an endpoint only begins to tell */
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
		/* nothing has been posted, so it can be tried again */
		list_del_init(&mr->pending);
		vrb_mr_unmap(mr, mr->ib->device);
	} else {
		vrb_mr_dereg(mr);
	}
	mutex_unlock(&dom->mr_mutex);
	return err;
}

/* fi_close(): the device must have done with the registration. */
static void vrb_mr_end_other(struct vrb_mr *mr)
{
	struct vrb_domain *dom = mr->dom;
	unsigned int noio;
	bool posted;

	mutex_lock(&dom->mr_mutex);
	posted = mr->ep && list_empty(&mr->pending);
	list_del_init(&mr->pending);
	mutex_unlock(&dom->mr_mutex);
	/* of a region that is not bound it has been reported */
	if (posted && mr->base.ep)
		vrb_mr_wait(mr->ep, &mr->registered);

	noio = memalloc_noio_save();
	mutex_lock(&dom->mr_mutex);
	vrb_mr_dereg(mr);
	mutex_unlock(&dom->mr_mutex);
	memalloc_noio_restore(noio);
	kofi_mr_fenced(&mr->base);
}

/* --------------------------------------------------------- what the core asks */

static int vrb_mr_init(struct kofi_mr *base, size_t segs, u64 key)
{
	struct vrb_domain *dom = container_of(base->domain, struct vrb_domain,
					      base);
	struct vrb_mr *mr = vrb_mr(base);
	unsigned int noio;
	int err;

	/* devices neither report accesses nor take a chosen address */
	if (base->base)
		return -EINVAL;
	if (base->flags || !dom->regions)
		return -EOPNOTSUPP;
	mr->dom = dom;
	INIT_LIST_HEAD(&mr->pending);
	INIT_LIST_HEAD(&mr->posted);
	INIT_WORK(&mr->work, vrb_mr_work);
	init_completion(&mr->registered);
	mr->reg.done = base->pool ? vrb_mr_pool_reg_done : vrb_mr_reg_done;
	mr->inv.done = vrb_mr_pool_inv_done;
	mr->room = vrb_mr_room(mr, segs);
	if (!mr->room)
		return -EINVAL;
	mr->max_sg = segs + mr->room / (dom->map_max >> PAGE_SHIFT);
	mr->sg = kvmalloc_array(max(mr->max_sg, 1), sizeof(*mr->sg),
				GFP_KERNEL);
	if (!mr->sg)
		return -ENOMEM;

	/* the end of an endpoint may be what memory is waiting for */
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

	return base->pool ? vrb_mr_open_pool(mr) : vrb_mr_open_other(mr);
}

static void vrb_mr_end(struct kofi_mr *base)
{
	struct vrb_mr *mr = vrb_mr(base);

	if (base->pool)
		vrb_mr_end_pool(mr);
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
 * vrb_mr_connected - an endpoint can register from now on
 * @ep: an endpoint whose queue pair can send, and whose consumer does not know
 *
 * Registers what is pending, so that it can be accessed before the consumer
 * hears of the connection.
 *
 * Context: process, may sleep.
 */
void vrb_mr_connected(struct vrb_ep *ep)
{
	struct vrb_domain *dom = ep->dom;
	struct vrb_mr *mr, *next;
	LIST_HEAD(again);

	mutex_lock(&dom->mr_mutex);
	if (READ_ONCE(ep->tx_closed))
		goto unlock;
	list_add_tail(&ep->mr_node, &dom->mr_eps);
	list_for_each_entry_safe(mr, next, &dom->mr_pending, pending) {
		if (mr->base.ep && mr->base.ep != &ep->base)
			continue;
		list_del_init(&mr->pending);
		if (!vrb_mr_register(mr, ep, true))
			vrb_epcq_wait(&ep->tx_cq, &mr->registered);
		else
			mr->status = IB_WC_WR_FLUSH_ERR;
		if (mr->status == IB_WC_WR_FLUSH_ERR && !mr->base.ep)
			list_add_tail(&mr->pending, &again);
	}
	list_splice_tail(&again, &dom->mr_pending);
unlock:
	mutex_unlock(&dom->mr_mutex);
}

/**
 * vrb_mr_ended - an endpoint registers no more
 * @ep: an endpoint that posts no more
 *
 * Context: process, may sleep.
 */
void vrb_mr_ended(struct vrb_ep *ep)
{
	mutex_lock(&ep->dom->mr_mutex);
	list_del_init(&ep->mr_node);
	mutex_unlock(&ep->dom->mr_mutex);
}

/**
 * vrb_mr_ep_init - an endpoint as regions know it
 * @ep: the endpoint
 */
void vrb_mr_ep_init(struct vrb_ep *ep)
{
	INIT_LIST_HEAD(&ep->mr_node);
	INIT_LIST_HEAD(&ep->mr_posted);
	atomic_set(&ep->mr_users, 0);
	init_completion(&ep->reg_done);
	complete(&ep->reg_done);
}

/**
 * vrb_mr_ep_exit - wait until no region is being registered on an endpoint
 * @ep: an endpoint whose queue pair has been drained
 *
 * Context: process, may sleep; what is waited for has been flushed.
 */
void vrb_mr_ep_exit(struct vrb_ep *ep)
{
	wait_var_event(&ep->mr_users, !atomic_read_acquire(&ep->mr_users));
}

/**
 * vrb_mr_ep_wrs - work requests the regions of an endpoint need room for
 * @ep: an endpoint about to be enabled
 *
 * Return: how many: two of each region of its pool; the one of all others is
 * among VRB_OWN_WRS.
 */
size_t vrb_mr_ep_wrs(const struct vrb_ep *ep)
{
	return size_mul(ep->base.mr_pool_size, 2);
}

/**
 * vrb_mr_domain_init - a domain without regions
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
 * @dom: the domain, whose regions have been closed
 */
void vrb_mr_domain_exit(struct vrb_domain *dom)
{
	WARN_ON_ONCE(!list_empty(&dom->mrs));
	xa_destroy(&dom->mr_keys);
	mutex_destroy(&dom->mr_mutex);
}

/**
 * vrb_mr_lost - the device goes
 * @dom: a domain whose endpoints have ended, and that is marked as gone
 *
 * Deregisters the device's part of all regions. The regions stay, without use,
 * until they are closed.
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
