// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions that reads place data into, for endpoints on iWARP.
 *
 * Purpose
 *
 * On iWARP the read request tells the peer where to put the data. So the local
 * memory needs a region that the peer, and all other peers of the domain, can
 * write to until the read completes. As with other regions, the peer sees only
 * the offset in the page of the real address.
 *
 * Normal operation
 *
 * Each read work request gets a region. A work request ahead of it registers
 * the memory, and the device invalidates the region when all data has arrived.
 * An endpoint starts with VRB_READ_STEP regions. If a read finds too few unused
 * regions, it is refused with -EAGAIN. If fewer than VRB_READ_MRS exist, a work
 * item allocates more and wakes the consumer. Since that work item may wait for
 * memory, it is neither the endpoint's usual work item nor in the same queue.
 *
 * Failure
 *
 * A failed read may leave its region valid. So it completes only after the
 * endpoint has ended and the device's regions have been deregistered.
 *
 * Locks
 *
 * tx.lock protects all of it. Regions are added and freed under cm.mutex, and
 * none is added after the endpoint has ended.
 */
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "tx.h"

/* Longest copied response in bytes (MAX_HDR_INLINE), see VRB_QUIRK_SHORT_READ */
#define VRB_SHORT_READ	32

/* Number of regions at first, and of those added at a time */
#define VRB_READ_STEP	4

/* Allocate a region while the device is present. No lock is held: it may take long. */
static struct ib_mr *vrb_read_mrs_make(struct vrb_ep *ep)
{
	struct ib_mr *mr = ib_alloc_mr(ep->dom->pd, IB_MR_TYPE_MEM_REG,
				       ep->read_mrs.pages);

	if (!IS_ERR(mr))
		ib_update_fast_reg_key(mr, get_random_u8());
	return mr;
}

/* Add a region. With cm.mutex held, before the endpoint has ended. */
static void vrb_read_mrs_add(struct vrb_ep *ep, struct ib_mr *mr)
{
	struct vrb_read_mrs *s = &ep->read_mrs;
	struct vrb_read_mr *read_mr = &s->mem[s->nr];
	unsigned long irq;

	read_mr->mr = mr;
	spin_lock_irqsave(&ep->tx.lock, irq);
	read_mr->next = s->free;
	s->free = read_mr;
	s->nr_free++;
	s->nr++;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

/**
 * vrb_read_mrs_init - allocate the first regions of an endpoint
 * @ep: an endpoint that is being enabled
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error, after which vrb_read_mrs_exit() frees the
 * rest.
 */
int vrb_read_mrs_init(struct vrb_ep *ep)
{
	const struct ib_device_attr *attrs = &ep->dom->ib->attrs;
	struct vrb_read_mrs *s = &ep->read_mrs;
	int node = ep->base.domain->node;
	struct ib_mr *mr;

	if (!ep->iwarp || !(ep->base.info->caps & FI_READ))
		return 0;
	if (ep->dom->quirks & VRB_QUIRK_SHORT_READ)
		s->short_read = VRB_SHORT_READ;
	s->pages = min(attrs->max_fast_reg_page_list_len, VRB_MR_PAGES);
	s->sg = kvcalloc_node(s->pages, sizeof(*s->sg), GFP_KERNEL, node);
	s->mem = kvcalloc_node(VRB_READ_MRS, sizeof(*s->mem), GFP_KERNEL, node);
	if (!s->sg || !s->mem)
		return -ENOMEM;
	s->want = VRB_READ_STEP;
	while (s->nr < s->want) {
		mr = vrb_read_mrs_make(ep);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		vrb_read_mrs_add(ep, mr);
	}
	return 0;
}

/**
 * vrb_read_mrs_need - check that a read can have regions
 * @ep: the endpoint, with tx.lock held
 * @n: number of regions, at most VRB_READ_MRS
 *
 * Context: any.
 * Return: 0; -EAGAIN if other reads use them or more are being allocated; the
 * error of the last allocation if the endpoint has less than @n.
 */
int vrb_read_mrs_need(struct vrb_ep *ep, unsigned int n)
{
	struct vrb_read_mrs *s = &ep->read_mrs;
	int err = 0;

	lockdep_assert_held(&ep->tx.lock);

	if (s->nr_free >= n)
		return 0;
	if (s->nr == VRB_READ_MRS)
		return -EAGAIN;
	if (s->nr < n)
		err = s->err;
	s->err = 0;
	n = max(n - s->nr_free, VRB_READ_STEP);
	WRITE_ONCE(s->want, min(s->nr + n, VRB_READ_MRS));
	queue_work(system_unbound_wq, &ep->grow);
	return err ? : -EAGAIN;
}

/* Allocate a region, unless the endpoint has ended since. */
static int vrb_read_mrs_grow_one(struct vrb_ep *ep)
{
	struct ib_mr *mr = vrb_read_mrs_make(ep);
	bool ended;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mutex_lock(&ep->cm.mutex);
	ended = ep->end.done;
	if (!ended)
		vrb_read_mrs_add(ep, mr);
	mutex_unlock(&ep->cm.mutex);
	return ended ? ib_dereg_mr(mr) : 0;
}

/**
 * vrb_read_mrs_grow - allocate regions up to the wanted number
 * @work: work item of the endpoint
 *
 * Context: process, may sleep.
 */
void vrb_read_mrs_grow(struct work_struct *work)
{
	struct vrb_ep *ep = container_of(work, struct vrb_ep, grow);
	struct vrb_read_mrs *s = &ep->read_mrs;
	unsigned int noio;
	unsigned long irq;
	int err = 0;

	/* freeing memory may depend on this endpoint */
	noio = memalloc_noio_save();
	while (!err && !READ_ONCE(ep->end.done) &&
	       READ_ONCE(s->nr) < READ_ONCE(s->want))
		err = vrb_read_mrs_grow_one(ep);
	memalloc_noio_restore(noio);
	if (!err) {
		kofi_ep_unblock(&ep->base);
		return;
	}
	spin_lock_irqsave(&ep->tx.lock, irq);
	s->err = err;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	vrb_retry(&ep->retry);
}

/**
 * vrb_read_mrs_end - deregister the device's regions
 * @ep: an endpoint with a drained queue pair, or without one
 *
 * Afterwards memory of reads cannot be accessed.
 *
 * Context: process, may sleep.
 */
void vrb_read_mrs_end(struct vrb_ep *ep)
{
	struct vrb_read_mrs *s = &ep->read_mrs;
	unsigned int i;

	for (i = 0; i < s->nr && s->mem[i].mr; i++) {
		WARN_ON_ONCE(ib_dereg_mr(s->mem[i].mr));
		s->mem[i].mr = NULL;
	}
	if (ep->dom->quirks & VRB_QUIRK_DEREG_RCU && s->nr_free < s->nr)
		synchronize_rcu();
}

void vrb_read_mrs_exit(struct vrb_ep *ep)
{
	vrb_read_mrs_end(ep);
	kvfree(ep->read_mrs.mem);
	kvfree(ep->read_mrs.sg);
	ep->read_mrs = (struct vrb_read_mrs) {};
}

/* Take as much memory as fits into a region: without gaps, and at most its pages. */
static unsigned int vrb_read_mr_fit(const struct vrb_read_mrs *s,
				    struct vrb_walk *w, struct scatterlist *sg,
				    size_t want, u32 *len)
{
	unsigned int n = 0;
	struct ib_sge sge;
	u64 end = 0;

	for (*len = 0; n < s->pages; n++) {
		struct vrb_walk next = *w;
		u32 have;

		if (!vrb_walk_sges(&next, &sge, 1, 0, want - *len, &have))
			break;
		if (!n)
			want = min_t(size_t, want, s->pages * PAGE_SIZE -
				     offset_in_page(sge.addr));
		else if (sge.addr != end && !PAGE_ALIGNED(sge.addr | end))
			break;
		if (have > want - *len) {
			next = *w;
			vrb_walk_sges(&next, &sge, 1, 0, want - *len, &have);
		}
		if (sg) {
			sg_dma_address(&sg[n]) = sge.addr;
			sg_dma_len(&sg[n]) = have;
		}
		end = sge.addr + have;
		*len += have;
		*w = next;
	}
	return n;
}

/**
 * vrb_read_mr_segs - describe the memory of the next read work request
 * @s: regions of the endpoint
 * @w: position in the memory, advanced
 * @sg: filled in for vrb_read_mr_prepare(), unless NULL
 * @from: address of the peer's data
 * @want: most bytes
 * @len: set to the number of bytes
 *
 * Return: number of segments.
 */
unsigned int vrb_read_mr_segs(const struct vrb_read_mrs *s, struct vrb_walk *w,
			      struct scatterlist *sg, u64 from, size_t want,
			      u32 *len)
{
	const u32 edge = SZ_4K - (from & (SZ_4K - 1));
	const struct vrb_walk begin = *w;
	unsigned int n = vrb_read_mr_fit(s, w, sg, want, len);

	if (*len <= s->short_read && *len > edge) {
		*w = begin;
		n = vrb_read_mr_fit(s, w, sg, edge, len);
	}
	return n;
}

/**
 * vrb_read_mr_prepare - prepare the registration for a read work request
 * @ep: the endpoint, with tx.lock held and an unused region
 * @op: the read, which gets the region
 * @n: used entries of the endpoint's read_mrs.sg
 * @len: bytes of these entries
 * @send_flags: flags of the registration work request
 * @wr: set to the registration work request
 * @sge: set to the segment of the read work request
 *
 * Context: any.
 * Return: 0 or a negative error.
 */
int vrb_read_mr_prepare(struct vrb_ep *ep, struct vrb_txop *op, unsigned int n,
			u32 len, int send_flags, struct ib_reg_wr *wr,
			struct ib_sge *sge)
{
	struct vrb_read_mrs *s = &ep->read_mrs;
	struct vrb_read_mr *read_mr = s->free;
	struct ib_mr *mr = read_mr->mr;
	int err;

	sg_mark_end(&s->sg[n - 1]);
	err = ib_map_mr_sg(mr, s->sg, n, NULL, PAGE_SIZE);
	sg_unmark_end(&s->sg[n - 1]);
	if (err != n || WARN_ON_ONCE(mr->length != len))
		return err < 0 ? err : -EIO;
	vrb_mr_set_iova(mr);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	*wr = (struct ib_reg_wr) {
		.wr = {
			.wr_cqe		= &op->part,
			.opcode		= IB_WR_REG_MR,
			.send_flags	= send_flags,
		},
		.mr	= mr,
		.key	= mr->rkey,
		.access	= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	s->free = read_mr->next;
	s->nr_free--;
	read_mr->next = op->read_mrs;
	op->read_mrs = read_mr;
	*sge = (struct ib_sge) {
		.addr = mr->iova, .length = len, .lkey = mr->lkey,
	};
	return 0;
}

/**
 * vrb_read_mrs_put - free the regions of a completed read
 * @ep: the endpoint, with tx.lock held
 * @op: the read
 *
 * Context: any.
 */
void vrb_read_mrs_put(struct vrb_ep *ep, struct vrb_txop *op)
{
	struct vrb_read_mr *read_mr;

	lockdep_assert_held(&ep->tx.lock);

	while ((read_mr = op->read_mrs)) {
		op->read_mrs = read_mr->next;
		read_mr->next = ep->read_mrs.free;
		ep->read_mrs.free = read_mr;
		ep->read_mrs.nr_free++;
	}
}
