// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions (fi_mr(3), kofi.h): what they are made of, their life, and the
 * pools endpoints have of them.
 *
 * A region is an array of bio_vecs, whatever it was registered as, with the
 * offset of each one's first byte beside it. The consumer owns the memory, the
 * region the two arrays. How peers get to the memory is the provider's: struct
 * kofi_mr_ops opens a region to them and ends it. Software providers share one
 * (lib/target.c).
 *
 * Life: idle, open (peers may access it), ending, and for a region of a pool
 * idle again. Whoever moves it from open to ending says why it ends and
 * withdraws the key; the provider then says when the region is fenced: nobody
 * can touch the memory any more. fi_close() waits for that; a region of a pool
 * reports it.
 *
 * Pools: an endpoint's regions for registration in any context, with all they
 * need, made when it is enabled. Mapping one allocates nothing. Such a region
 * is bound to its endpoint. Draining the endpoint ends those that are mapped
 * and waits for them; they are freed with the endpoint.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "internal.h"
#include "kofi_trace.h"

#define KOFI_MR_ACCESS		(FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
				 FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KOFI_MR_FLAGS		(FI_MR_SINGLE_USE | FI_RMA_EVENT)

#define KOFI_MR_PIECE_MAX	SZ_1G	/* bytes of a bio_vec, an unsigned int */
/* Sizes are the consumer's: too much of it is an error, not a splat. */
#define KOFI_MR_GFP		(GFP_KERNEL | __GFP_NOWARN)

#define KOFI_MR_BATCH		16	/* pages of an iterator at a time */

/* States of a region */
enum {
	KOFI_MR_FREE,		/* in its pool */
	KOFI_MR_IDLE,		/* has no key */
	KOFI_MR_MAPPING,	/* kofi_mr_map() is at work */
	KOFI_MR_OPEN,		/* has a key */
	KOFI_MR_ENDING,		/* for a region of no pool the last state */
};

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

static struct kofi_mr *kofi_mr(struct fid_mr *mr)
{
	return container_of(mr, struct kofi_mr, mr);
}

static bool kofi_mr_valid(const struct fid_mr *mr)
{
	return mr && mr->fid.fclass == FI_CLASS_MR;
}

/* -------------------------------------------------------- kinds of memory */

/**
 * struct kofi_mr_fill - a region's segments in the making
 * @bv: where they go, NULL to only count them
 * @start: where their offsets go
 * @max: most segments
 * @nr: segments so far
 * @len: bytes so far
 */
struct kofi_mr_fill {
	struct bio_vec	*bv;
	u64		*start;
	size_t		max;
	size_t		nr;
	size_t		len;
};

static int kofi_mr_add(struct kofi_mr_fill *fill, struct page *page, size_t len,
		       size_t offset)
{
	if (!len)
		return 0;
	if (!page || fill->nr == fill->max)
		return -EINVAL;
	if (fill->bv) {
		bvec_set_page(&fill->bv[fill->nr], page, len, offset);
		fill->start[fill->nr] = fill->len;
	}
	fill->nr++;
	return check_add_overflow(fill->len, len, &fill->len) ? -EINVAL : 0;
}

/* Contiguous memory is one segment, vmalloc goes page by page. */
static int kofi_mr_add_kvec(struct kofi_mr_fill *fill, void *base, size_t len)
{
	bool vmalloc = is_vmalloc_or_module_addr(base);
	unsigned long last;
	int err = 0;
	size_t n;

	if (!len)
		return 0;
	if (check_add_overflow((unsigned long)base, len - 1, &last))
		return -EINVAL;
	if (vmalloc ? !is_vmalloc_or_module_addr((void *)last) :
		      !virt_addr_valid(base) || !virt_addr_valid((void *)last))
		return -EINVAL;

	for (; len && !err; base += n, len -= n) {
		size_t offset = offset_in_page(base);

		if (vmalloc) {
			n = min(len, PAGE_SIZE - offset);
			err = kofi_mr_add(fill, vmalloc_to_page(base), n,
					  offset);
		} else {
			n = min_t(size_t, len, KOFI_MR_PIECE_MAX);
			err = kofi_mr_add(fill, virt_to_page(base), n, offset);
		}
	}
	return err;
}

static int kofi_mr_add_pages(struct kofi_mr_fill *fill, struct page **pages,
			     size_t offset, size_t len)
{
	int err = 0;
	size_t n;

	for (; len && !err; pages++, len -= n, offset = 0) {
		n = min(len, PAGE_SIZE - offset);
		err = kofi_mr_add(fill, *pages, n, offset);
	}
	return err;
}

static int kofi_mr_add_sgl(struct kofi_mr_fill *fill, struct scatterlist *sg,
			   size_t count)
{
	int err = 0;

	for (; count && !err; count--, sg = sg_next(sg)) {
		if (!sg)
			return -EINVAL;
		err = kofi_mr_add(fill, sg_page(sg), sg->length, sg->offset);
	}
	return err;
}

static int kofi_mr_add_iter_kvec(struct kofi_mr_fill *fill,
				 const struct iov_iter *iter)
{
	size_t skip = iter->iov_offset, left = iov_iter_count(iter), n;
	const struct kvec *kv = iter->kvec;
	unsigned long i;
	int err = 0;

	for (i = 0; i < iter->nr_segs && left && !err; i++, kv++, skip = 0) {
		n = min(kv->iov_len - skip, left);
		err = kofi_mr_add_kvec(fill, kv->iov_base + skip, n);
		left -= n;
	}
	return err ?: left ? -EINVAL : 0;
}

static int kofi_mr_add_iter_bvec(struct kofi_mr_fill *fill,
				 const struct iov_iter *iter)
{
	size_t skip = iter->iov_offset, left = iov_iter_count(iter), n;
	const struct bio_vec *bv = iter->bvec;
	unsigned long i;
	int err = 0;

	for (i = 0; i < iter->nr_segs && left && !err; i++, bv++, skip = 0) {
		n = min(bv->bv_len - skip, left);
		err = kofi_mr_add(fill, bv->bv_page, n, bv->bv_offset + skip);
		left -= n;
	}
	return err ?: left ? -EINVAL : 0;
}

/* Page caches and the like: the pages are those of the iterator's owner. */
static int kofi_mr_add_iter_pages(struct kofi_mr_fill *fill,
				  const struct iov_iter *from)
{
	struct iov_iter iter = *from;
	size_t offset;
	ssize_t n;
	int err;

	while (iov_iter_count(&iter)) {
		/* a hole in an xarray leaves the first one as it was */
		struct page *pages[KOFI_MR_BATCH] = {}, **p = pages;

		n = iov_iter_extract_pages(&iter, &p, iov_iter_count(&iter),
					   ARRAY_SIZE(pages), 0, &offset);
		if (n <= 0)
			return -EINVAL;
		err = kofi_mr_add_pages(fill, pages, offset, n);
		if (err)
			return err;
	}
	return 0;
}

static int kofi_mr_add_iter(struct kofi_mr_fill *fill,
			    const struct iov_iter *iter)
{
	if (!iter || user_backed_iter(iter) || iov_iter_is_discard(iter))
		return -EINVAL;
	if (iov_iter_is_kvec(iter))
		return kofi_mr_add_iter_kvec(fill, iter);
	if (iov_iter_is_bvec(iter))
		return kofi_mr_add_iter_bvec(fill, iter);
	return kofi_mr_add_iter_pages(fill, iter);
}

/* The segments of a memory vector; those of the caller's arrays in order. */
static int kofi_mr_fill(struct kofi_mr_fill *fill,
			const struct fi_mr_attr *attr)
{
	size_t i, room, need;
	int err = 0;

	fill->nr = 0;
	fill->len = 0;
	/* the members of the union are all pointers */
	if (attr->vec != KOFI_ITER && attr->iov_count && !attr->mr_iov)
		return -EINVAL;

	switch (attr->vec) {
	case KOFI_KVEC:
		for (i = 0; i < attr->iov_count && !err; i++)
			err = kofi_mr_add_kvec(fill, attr->mr_iov[i].iov_base,
					       attr->mr_iov[i].iov_len);
		return err;
	case KOFI_BVEC:
		for (i = 0; i < attr->iov_count && !err; i++)
			err = kofi_mr_add(fill, attr->mr_bvec[i].bv_page,
					  attr->mr_bvec[i].bv_len,
					  attr->mr_bvec[i].bv_offset);
		return err;
	case KOFI_SGL:
		return kofi_mr_add_sgl(fill, attr->mr_sgl, attr->iov_count);
	case KOFI_ITER:
		return kofi_mr_add_iter(fill, attr->mr_iter);
	case KOFI_PAGES:
		if (attr->page_offset >= PAGE_SIZE ||
		    check_mul_overflow(attr->iov_count, PAGE_SIZE, &room) ||
		    check_add_overflow(attr->page_offset, attr->page_len,
				       &need) || need > room)
			return -EINVAL;
		return kofi_mr_add_pages(fill, attr->mr_pages,
					 attr->page_offset, attr->page_len);
	default:
		/* a list mapped for a device says nothing to a CPU */
		return -EINVAL;
	}
}

/* --------------------------------------------------------------- the end */

/* Step from open to ending. The one who makes it calls kofi_mr_revoke(). */
static bool kofi_mr_end_begin(struct kofi_mr *mr)
{
	return cmpxchg(&mr->state, KOFI_MR_OPEN, KOFI_MR_ENDING) ==
	       KOFI_MR_OPEN;
}

static void kofi_mr_revoke(struct kofi_mr *mr, int err, u64 flags)
{
	mr->wc.err = err;
	mr->wc.flags = flags;
	mr->wc.inv_key = flags & KOFI_REMOTE_INV ? mr->mr.key : 0;
	trace_kofi_mr_end(mr, err, flags);
	WRITE_ONCE(mr->mr.key, FI_KEY_NOTAVAIL);
	mr->domain->mr_ops->end(mr);
}

/**
 * kofi_mr_end - a peer, or the loss of it, ends a region
 * @mr: a region that has been open
 * @err: why, a positive error code, or 0
 * @flags: what the peer did, for the completion: FI_RMA and FI_REMOTE_READ or
 *	FI_REMOTE_WRITE, or KOFI_REMOTE_INV
 *
 * Context: any. No consumer is called from inside.
 * Return: true for the one caller that ended it, false if it was not open (any
 * more).
 */
bool kofi_mr_end(struct kofi_mr *mr, int err, u64 flags)
{
	if (!kofi_mr_end_begin(mr))
		return false;
	kofi_mr_revoke(mr, err, flags);
	return true;
}
EXPORT_SYMBOL_GPL(kofi_mr_end);

static void kofi_mr_pool_fenced(struct kofi_mr *mr)
{
	struct kofi_mr_pool *pool = mr->pool;
	const struct kofi_wc wc = mr->wc;
	bool report = mr->report;
	unsigned long flags;

	/* First give back, then report: the callback may map it again. */
	smp_store_release(&mr->state, KOFI_MR_IDLE);
	if (report)
		kofi_ep_tx_complete(pool->ep, &wc, FI_COMPLETION);

	spin_lock_irqsave(&pool->lock, flags);
	if (!--pool->mapped)
		wake_up(&pool->wait);
	spin_unlock_irqrestore(&pool->lock, flags);
}

/**
 * kofi_mr_fenced - nobody can touch the memory of a region any more
 * @mr: a region whose end the provider has been told, and which it has done
 *	with: it may be opened again or freed at once
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_mr_fenced(struct kofi_mr *mr)
{
	if (mr->pool)
		kofi_mr_pool_fenced(mr);
	else
		complete(&mr->fenced);
}
EXPORT_SYMBOL_GPL(kofi_mr_fenced);

/* ------------------------------------------------------------ registration */

static int kofi_mr_bind(struct fi_fid *fid, struct fi_fid *bfid, u64 flags)
{
	struct kofi_mr *mr = container_of(fid, struct kofi_mr, mr.fid);
	struct kofi_ep *ep;

	if (bfid->fclass == FI_CLASS_CNTR)
		return -ENOSYS;
	if (bfid->fclass != FI_CLASS_EP)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	ep = container_of(bfid, struct kofi_ep, ep.fid);
	if (ep->domain != mr->domain)
		return -FI_EDOMAIN;
	if (READ_ONCE(mr->state) != KOFI_MR_IDLE)
		return -FI_EOPBADSTATE;
	if (!kofi_obj_get(&ep->obj))
		return -EINVAL;
	if (cmpxchg(&mr->ep, NULL, ep)) {
		kofi_obj_put(&ep->obj);
		return -EBUSY;
	}
	return 0;
}

/* Whoever ends the region may come as soon as the provider knows the key. */
static int kofi_mr_open(struct kofi_mr *mr)
{
	int err;

	if (cmpxchg(&mr->state, KOFI_MR_IDLE, KOFI_MR_OPEN) != KOFI_MR_IDLE)
		return 0;
	err = mr->domain->mr_ops->open(mr);
	if (err)
		smp_store_release(&mr->state, KOFI_MR_IDLE); /* as it was */
	return err;
}

static int kofi_mr_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_mr *mr = container_of(fid, struct kofi_mr, mr.fid);

	if (command != FI_ENABLE)
		return -ENOSYS;
	if (!READ_ONCE(mr->ep) && READ_ONCE(mr->state) == KOFI_MR_IDLE)
		return -FI_EOPBADSTATE;
	return kofi_mr_open(mr);
}

static void kofi_mr_free(struct kofi_mr *mr)
{
	kvfree(mr->bv);
	kvfree(mr->start);
	kfree_rcu(mr, rcu);
}

static int kofi_mr_close(struct fi_fid *fid)
{
	struct kofi_mr *mr = container_of(fid, struct kofi_mr, mr.fid);

	if (mr->state != KOFI_MR_IDLE) {
		kofi_mr_end(mr, 0, 0);
		wait_for_completion(&mr->fenced);
	}
	mr->domain->mr_ops->exit(mr);
	if (mr->ep)
		kofi_obj_put(&mr->ep->obj);
	kofi_obj_exit(&mr->obj);
	kofi_mr_free(mr);
	return 0;
}

static const struct fi_ops kofi_mr_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_mr_close,
	.bind		= kofi_mr_bind,
	.control	= kofi_mr_control,
};

static void kofi_mr_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_mr *mr = container_of(obj, struct kofi_mr, obj);

	fn(arg, "len", mr->len);
	fn(arg, "segments", mr->nr_segs);
	if (!mr->domain->mr_ops->counted)
		return;
	fn(arg, "reads", atomic64_read(&mr->stats.reads));
	fn(arg, "writes", atomic64_read(&mr->stats.writes));
	fn(arg, "bytes", atomic64_read(&mr->stats.bytes));
	fn(arg, "refused", atomic64_read(&mr->stats.refused));
}

static const struct kofi_obj_ops kofi_mr_obj_ops = {
	.stats	= kofi_mr_stats,
};

static void kofi_mr_setup(struct kofi_mr *mr, struct kofi_domain *domain)
{
	mr->domain = domain;
	mr->mr.fid.fclass = FI_CLASS_MR;
	mr->mr.key = FI_KEY_NOTAVAIL;
	mr->mr.mem_desc = mr;
	mr->state = KOFI_MR_IDLE;
	init_completion(&mr->fenced);
}

static int kofi_mr_alloc_segs(struct kofi_mr *mr,
			      const struct fi_mr_attr *attr)
{
	struct kofi_mr_fill fill = { .max = UINT_MAX };
	int node = mr->domain->node;
	int err;

	err = kofi_mr_fill(&fill, attr);
	if (err || !fill.nr)
		return err;

	mr->bv = kvmalloc_node(array_size(fill.nr, sizeof(*mr->bv)),
			       KOFI_MR_GFP, node);
	mr->start = kvmalloc_node(array_size(fill.nr, sizeof(*mr->start)),
				  KOFI_MR_GFP, node);
	if (!mr->bv || !mr->start)
		return -ENOMEM;
	fill.bv = mr->bv;
	fill.start = mr->start;
	fill.max = fill.nr;
	err = kofi_mr_fill(&fill, attr);
	mr->nr_segs = fill.nr;
	mr->len = fill.len;
	return err;
}

/**
 * kofi_mr_regattr - register memory
 * @domain: as fi_mr_regattr()
 * @attr: the same, checked by it
 * @flags: the same
 * @mr: the same
 *
 * For the mr_regattr slot of a provider's struct fi_ops_domain; the provider
 * then has struct kofi_mr_ops in its domain, or is a software one.
 *
 * Context: process, may sleep.
 * Return: as fi_mr_regattr().
 */
int kofi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr)
{
	struct kofi_domain *kdomain =
		container_of(domain, struct kofi_domain, domain);
	const struct kofi_mr_ops *ops = kdomain->mr_ops;
	struct kofi_mr *kmr;
	u64 end;
	int err;

	if (flags & ~KOFI_MR_FLAGS)
		return -FI_EBADFLAGS;
	kmr = kzalloc_node(ops->size, GFP_KERNEL, kdomain->node);
	if (!kmr)
		return -ENOMEM;
	kofi_mr_setup(kmr, kdomain);
	kmr->access = attr->access;
	kmr->flags = flags;
	kmr->base = attr->base;
	err = kofi_mr_alloc_segs(kmr, attr);
	if (!err && check_add_overflow(kmr->base, (u64)kmr->len, &end))
		err = -EINVAL;
	if (err)
		goto free;

	err = kofi_obj_init(&kmr->obj, &kmr->mr.fid, FI_CLASS_MR,
			    &kofi_mr_fid_ops, &kdomain->obj, kdomain->obj.prov,
			    attr->context);
	if (err)
		goto free;
	kmr->obj.ops = &kofi_mr_obj_ops;
	err = ops->init(kmr, kmr->nr_segs, attr->requested_key);
	if (err)
		goto exit_obj;
	if (!kdomain->mrs.endpoint) {
		err = kofi_mr_open(kmr);
		if (err)
			goto exit_mr;
	}
	*mr = &kmr->mr;
	return 0;

exit_mr:
	ops->exit(kmr);
exit_obj:
	kofi_obj_exit(&kmr->obj);
free:
	kofi_mr_free(kmr);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_mr_regattr);

/**
 * fi_mr_regattr - register memory of any kind
 * @domain: an open domain
 * @attr: what and how
 * @flags: FI_MR_SINGLE_USE for a region that ends with the first complete
 *	access of a peer; it is closed as any other. FI_RMA_EVENT for one whose
 *	accesses are reported on the receive queue of the endpoint they come to.
 * @mr: where the region goes
 *
 * fi_mr(3). Peers may access the region when the call returns, in a domain
 * with FI_MR_ENDPOINT once it has been bound and enabled. fi_close() takes it
 * out of use: when that returns nobody touches the memory any more, also if a
 * peer was just writing to it.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for arguments that cannot be, memory the provider cannot
 * reach, or an attr->access without a right; -FI_EBADFLAGS; -FI_ENOKEY if
 * attr->requested_key is in use; -FI_EKEYREJECTED if it is out of range;
 * -FI_ENOMR without a free key; -EOPNOTSUPP for a flag the device cannot do;
 * -ENOSYS; -ENOMEM; -EBUSY if @domain is being closed; what the provider
 * returns.
 */
int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		  u64 flags, struct fid_mr **mr)
{
	int err;

	might_sleep();
	if (!domain || domain->fid.fclass != FI_CLASS_DOMAIN || !attr || !mr)
		return -EINVAL;
	if (attr->offset || attr->auth_key_size || !attr->access ||
	    attr->access & ~KOFI_MR_ACCESS)
		return -EINVAL;
	err = domain->ops->mr_regattr(domain, attr, flags, mr);
	if (err)
		return err;
	kofi_obj_publish((*mr)->fid.obj);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_mr_regattr);

/**
 * fi_mr_regv - register kernel buffers as one region
 * @domain: an open domain
 * @iov: the buffers; the array is the caller's again when the call returns
 * @count: their number
 * @access: as in struct fi_mr_attr
 * @offset: must be 0
 * @requested_key: as in struct fi_mr_attr
 * @flags: as fi_mr_regattr()
 * @mr: where the region goes
 * @context: in fid.context
 *
 * fi_mr(3).
 *
 * Context: process, may sleep.
 * Return: as fi_mr_regattr().
 */
int fi_mr_regv(struct fid_domain *domain, const struct kvec *iov, size_t count,
	       u64 access, u64 offset, u64 requested_key, u64 flags,
	       struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = count, .access = access,
		.offset = offset, .requested_key = requested_key,
		.context = context,
	};

	return fi_mr_regattr(domain, &attr, flags, mr);
}
EXPORT_SYMBOL_GPL(fi_mr_regv);

/**
 * fi_mr_reg - register a kernel buffer
 * @domain: an open domain
 * @buf: the buffer, also of vmalloc
 * @len: bytes; may be 0
 * @access: as in struct fi_mr_attr
 * @offset: must be 0
 * @requested_key: as in struct fi_mr_attr
 * @flags: as fi_mr_regattr()
 * @mr: where the region goes
 * @context: in fid.context
 *
 * fi_mr(3).
 *
 * Context: process, may sleep.
 * Return: as fi_mr_regattr().
 */
int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len,
	      u64 access, u64 offset, u64 requested_key, u64 flags,
	      struct fid_mr **mr, void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };

	return fi_mr_regv(domain, &iov, 1, access, offset, requested_key, flags,
			  mr, context);
}
EXPORT_SYMBOL_GPL(fi_mr_reg);

/**
 * fi_mr_bind - let only one endpoint's peer access a region
 * @mr: a region of a domain with FI_MR_ENDPOINT, not yet enabled
 * @bfid: an endpoint of the same domain. It cannot be closed before the
 *	region.
 * @flags: 0
 *
 * fi_mr(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL, also for an endpoint that is being closed; -FI_EDOMAIN
 * for one of another domain; -FI_EBADFLAGS; -EBUSY for a region that is bound
 * already; -FI_EOPBADSTATE for one that is enabled; -ENOSYS for a counter; what
 * the provider returns.
 */
int fi_mr_bind(struct fid_mr *mr, struct fi_fid *bfid, u64 flags)
{
	might_sleep();
	if (!kofi_mr_valid(mr) || !bfid || !mr->fid.ops->bind)
		return -EINVAL;
	return mr->fid.ops->bind(&mr->fid, bfid, flags);
}
EXPORT_SYMBOL_GPL(fi_mr_bind);

/**
 * fi_mr_enable - give a region its key
 * @mr: a region; without FI_MR_ENDPOINT it has one already
 *
 * fi_mr(3). fi_control() with FI_ENABLE is the same. Enabling again does
 * nothing.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EOPBADSTATE for a region that has not been bound;
 * what the provider returns.
 */
int fi_mr_enable(struct fid_mr *mr)
{
	might_sleep();
	if (!kofi_mr_valid(mr) || !mr->fid.ops->control)
		return -EINVAL;
	return mr->fid.ops->control(&mr->fid, FI_ENABLE, NULL);
}
EXPORT_SYMBOL_GPL(fi_mr_enable);

/**
 * kofi_mr_base - remote address of a region's first byte
 * @mr: a region
 *
 * Software providers count from 0, unless fi_mr_attr.base says otherwise. With
 * devices it is the offset of the first byte in its page. It may be another one
 * each time a region of a pool is mapped.
 *
 * Context: any.
 * Return: the address a peer names to reach the first byte.
 */
u64 kofi_mr_base(const struct fid_mr *mr)
{
	return container_of(mr, struct kofi_mr, mr)->base;
}
EXPORT_SYMBOL_GPL(kofi_mr_base);

/* -------------------------------------------------------------- the pools */

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
	for (i = 0; i < pool->nr; i++)
		kofi_mr_end(kofi_mr_pool_nth(pool, i), ECANCELED, 0);

	spin_lock_irq(&pool->lock);
	wait_event_lock_irq(pool->wait, !pool->mapped, pool->lock);
	spin_unlock_irq(&pool->lock);
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
		mr->state = KOFI_MR_IDLE;
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
		/* one given back before the mark was seen wakes nobody */
		kofi_ep_blocked(pool->ep);
		mr = kofi_mr_pool_take(pool, &closed);
	}
	return mr ? &mr->mr : NULL;
}
EXPORT_SYMBOL_GPL(kofi_mr_get);

/**
 * kofi_mr_put - give a region back to its pool
 * @mr: from kofi_mr_get(), not mapped or ended: of a one-shot region, or one
 *	unmapped, the completion has come; or the endpoint has been drained
 *
 * Regions not given back are freed with their endpoint.
 *
 * Context: any.
 */
void kofi_mr_put(struct fid_mr *mr)
{
	struct kofi_mr *kmr = kofi_mr(mr);
	struct kofi_mr_pool *pool = kmr->pool;
	unsigned long flags;

	if (WARN_ON_ONCE(!pool || cmpxchg(&kmr->state, KOFI_MR_IDLE,
					  KOFI_MR_FREE) != KOFI_MR_IDLE))
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

/* The step to open, unless the endpoint is being drained. */
static int kofi_mr_pool_open_mr(struct kofi_mr *mr)
{
	struct kofi_mr_pool *pool = mr->pool;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&pool->lock, flags);
	if (pool->closed)
		err = -ESHUTDOWN;
	else
		err = mr->domain->mr_ops->open(mr);
	if (!err) {
		pool->mapped++;
		pool->maps++;
		/* whoever ends it finds all of it */
		smp_store_release(&mr->state, KOFI_MR_OPEN);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return err;
}

/**
 * kofi_mr_map - let the peer access memory through a region of a pool
 * @mr: from kofi_mr_get(), not mapped
 * @vec: the memory, in the members that name it; KOFI_OPT_MR_SEGS segments at
 *	most, of which vmalloc memory takes one for each page. msg->context is
 *	what a one-shot region completes to.
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @flags: FI_MR_SINGLE_USE for a one-shot region, FI_RMA_EVENT as in
 *	fi_mr_regattr()
 *
 * The region has a key, a new one, when the call returns. A peer may use it once
 * it has got a message that was posted later, as a message with the key is. The
 * arrays @vec points to are the caller's again, the memory stays the region's
 * until it is unmapped.
 *
 * A one-shot region ends, and then completes on the endpoint's transmit queue,
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
 * -FI_EBADFLAGS; -EBUSY if the region is mapped; one-shot: -EAGAIN without a
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
	if (cmpxchg(&kmr->state, KOFI_MR_IDLE, KOFI_MR_MAPPING) != KOFI_MR_IDLE)
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
	/* pairs with the next one to map it */
	smp_store_release(&kmr->state, KOFI_MR_IDLE);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_mr_map);

/**
 * kofi_mr_unmap - end a mapped region
 * @mr: the region
 * @cqe: where it completes to, on the endpoint's transmit queue, once nobody
 *	can access the memory; for a queue that is read any pointer. A one-shot
 *	region completes to what kofi_mr_map() was given: NULL.
 *
 * The key is of no use when the call returns; a peer's access that is being
 * carried out ends before the completion.
 *
 * Context: any.
 * Return: 0, one completion will follow; -EALREADY if the region is not mapped:
 * a one-shot region that has ended in another way, whose only completion has
 * come or will come, or one whose endpoint has been drained; -EAGAIN without a
 * slot of the queue, and the write-space callback follows; -FI_ENOCQ without
 * transmit queue; -EINVAL, also for @cqe with a one-shot region or none with
 * another.
 */
int kofi_mr_unmap(struct fid_mr *mr, struct kofi_cqe *cqe)
{
	struct kofi_mr *kmr = kofi_mr(mr);
	struct kofi_ep *ep;
	int err;

	if (!kofi_mr_valid(mr) || !kmr->pool)
		return -EINVAL;
	if (READ_ONCE(kmr->state) != KOFI_MR_OPEN)
		return -EALREADY;
	if (!!cqe == !!(kmr->flags & FI_MR_SINGLE_USE))
		return -EINVAL;

	/* A one-shot region has its slot and context since it was mapped. */
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
