// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: their memory and their states (fi_mr(3), kofi.h).
 *
 * Memory
 *
 * A region is an array of bio_vecs, for each kind of memory, and an
 * array with the offset of the first byte of each. The consumer owns the memory, the
 * region owns the two arrays. The provider implements the access by peers: struct
 * kofi_mr_ops opens and closes a region. Software providers share one implementation
 * (lib/target.c).
 *
 * States
 *
 * Idle, open (peers may access it), ending, and for a region of a pool
 * (mr_pool.c) idle again. The caller that moves a region from open to ending sets the
 * reason and revokes the key. The provider then reports that the region is
 * fenced: the memory is not accessed any longer. fi_close() waits for that;
 * a region of a pool reports it.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include <linux/kofi/backport.h>
#include <linux/kofi/debug.h>
#include <linux/kofi/lib.h>

#include "mr.h"
#include "kofi_trace.h"

#define KOFI_MR_PIECE_MAX	SZ_1G	/* bytes of a bio_vec, an unsigned int */

/* -------------------------------------------------------- kinds of memory */

static int kofi_mr_add(void *arg, struct page *page, size_t offset, size_t len)
{
	struct kofi_mr_fill *fill = arg;
	size_t n;

	for (;;) {
		n = min_t(size_t, len, KOFI_MR_PIECE_MAX);
		if (fill->nr == fill->max)
			return -EINVAL;
		if (fill->bv) {
			bvec_set_page(&fill->bv[fill->nr], page, n, offset);
			fill->start[fill->nr] = fill->len;
		}
		fill->nr++;
		if (check_add_overflow(fill->len, n, &fill->len))
			return -EINVAL;
		len -= n;
		if (!len)
			return 0;
		page = nth_page(page, (offset + n) >> PAGE_SHIFT);
		offset = offset_in_page(offset + n);
	}
}

/**
 * kofi_mr_fill - fill in the segments of a memory vector
 * @fill: destination of the segments, in the order of the caller's arrays
 * @attr: the memory
 *
 * Context: any.
 * Return: 0; -EINVAL for invalid memory, or too many segments.
 */
int kofi_mr_fill(struct kofi_mr_fill *fill, const struct fi_mr_attr *attr)
{
	const struct fi_msg mem = {
		.msg_iov = attr->mr_iov,	/* any member of the union */
		.iov_count = attr->iov_count,
		.vec = attr->vec,
	};
	size_t room, need;
	int err;

	fill->nr = 0;
	fill->len = 0;
	/* the members of the union are all pointers */
	if ((attr->vec == KOFI_ITER || attr->iov_count) && !attr->mr_iov)
		return -EINVAL;
	if (attr->vec == KOFI_ITER && (user_backed_iter(mem.msg_iter) ||
				       iov_iter_is_discard(mem.msg_iter)))
		return -EINVAL;
	if (attr->vec == KOFI_PAGES) {
		if (attr->page_offset >= PAGE_SIZE ||
		    check_mul_overflow(attr->iov_count, PAGE_SIZE, &room) ||
		    check_add_overflow(attr->page_offset, attr->page_len,
				       &need) || need > room)
			return -EINVAL;
		err = kofi_walk_pages(kofi_mr_add, fill, attr->mr_pages,
				      attr->page_offset, attr->page_len);
	} else {
		err = kofi_vec_walk(&mem, kofi_mr_add, fill);
	}
	return err == -EFAULT ? -EINVAL : err;
}

/* -------------------------------------------------------------- invalidation */

/**
 * kofi_mr_revoke - revoke the key of a region that is being invalidated
 * @mr: the region; the caller's kofi_mr_end_begin() has returned true
 * @err: reason, a positive error code, or 0
 * @flags: as kofi_mr_end()
 *
 * Context: any.
 */
void kofi_mr_revoke(struct kofi_mr *mr, int err, u64 flags)
{
	mr->wc.err = err;
	mr->wc.flags = flags;
	mr->wc.inv_key = flags & KOFI_REMOTE_INV ? mr->mr.key : 0;
	trace_kofi_mr_end(mr, err, flags);
	WRITE_ONCE(mr->mr.key, FI_KEY_NOTAVAIL);
	mr->domain->mr_ops->end(mr);
}

/*
 * Step to ending, if the region has the given key. A key is valid from after the step
 * to open until after the step to ending: a state between two reads of an equal key
 * belongs to the key's registration. The state also counts the registrations.
 * No lock: a peer's request ends the region in any context, also while the provider, which
 * must not be called under a lock, is opening it.
 */
static bool kofi_mr_end_key(struct kofi_mr *mr, u64 key)
{
	unsigned int state;

	/* value between the step to open and the key */
	if (key == FI_KEY_NOTAVAIL || READ_ONCE(mr->mr.key) != key)
		return false;
	smp_rmb();	/* pairs with the full barriers of the steps */
	state = READ_ONCE(mr->state);
	smp_rmb();	/* pairs with the full barriers of the steps */
	if (READ_ONCE(mr->mr.key) != key ||
	    (state & KOFI_MR_STATE) != KOFI_MR_OPEN)
		return false;
	return cmpxchg(&mr->state, state, state - KOFI_MR_OPEN +
					  KOFI_MR_ENDING) == state;
}

/**
 * kofi_mr_end - invalidate a region on behalf of a peer
 * @mr: a region that has been open
 * @key: the key that the peer named; a region mapped again has another
 * @err: reason, a positive error code, or 0
 * @flags: flags of the completion: FI_RMA and FI_REMOTE_READ or
 *	FI_REMOTE_WRITE, or KOFI_REMOTE_INV
 *
 * Context: any. The consumer is not called from inside.
 * Return: true for the one caller that invalidated it, false if it was not open with
 * that key.
 */
bool kofi_mr_end(struct kofi_mr *mr, u64 key, int err, u64 flags)
{
	if (!kofi_mr_end_key(mr, key))
		return false;
	kofi_mr_revoke(mr, err, flags);
	return true;
}
EXPORT_SYMBOL_GPL(kofi_mr_end);

/**
 * kofi_mr_fenced - report that the memory of a region is no longer accessed
 * @mr: a region for which kofi_mr_ops.end has returned. The provider must not use it
 *	after the call: it may be opened again or freed at once
 *
 * Context: any. The consumer is not called from inside.
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
	if (kofi_mr_state(mr) != KOFI_MR_IDLE)
		return -FI_EOPBADSTATE;
	if (!kofi_obj_get(&ep->obj))
		return -EINVAL;
	if (cmpxchg(&mr->ep, NULL, ep)) {
		kofi_obj_put(&ep->obj);
		return -EBUSY;
	}
	return 0;
}

/* A peer may invalidate the region as soon as the provider knows the key. */
static int kofi_mr_open(struct kofi_mr *mr)
{
	int err;

	if (!kofi_mr_step(mr, KOFI_MR_IDLE, KOFI_MR_OPEN))
		return 0;
	err = mr->domain->mr_ops->open(mr);
	if (err)
		kofi_mr_step(mr, KOFI_MR_OPEN, KOFI_MR_IDLE); /* restore the state */
	return err;
}

static int kofi_mr_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_mr *mr = container_of(fid, struct kofi_mr, mr.fid);

	if (command != FI_ENABLE)
		return -ENOSYS;
	if (!READ_ONCE(mr->ep) && kofi_mr_state(mr) == KOFI_MR_IDLE)
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

	if (kofi_mr_state(mr) != KOFI_MR_IDLE) {
		if (kofi_mr_end_begin(mr))
			kofi_mr_revoke(mr, 0, 0);
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

/**
 * kofi_mr_setup - set up the common part of all regions
 * @mr: the region, zeroed
 * @domain: domain of the region
 *
 * Context: any.
 */
void kofi_mr_setup(struct kofi_mr *mr, struct kofi_domain *domain)
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
	mr->addr = err ? NULL : kofi_mr_addr(attr);
	mr->nr_segs = fill.nr;
	mr->len = fill.len;
	return err;
}

/**
 * kofi_mr_regattr - register memory
 * @domain: as fi_mr_regattr()
 * @attr: as fi_mr_regattr(), which has checked it
 * @flags: as fi_mr_regattr()
 * @mr: as fi_mr_regattr()
 *
 * For the mr_regattr slot of a provider's struct fi_ops_domain. The provider has
 * struct kofi_mr_ops in its domain, or is a software provider.
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
 * @attr: memory and access
 * @flags: FI_MR_SINGLE_USE for a region that the first complete access of a peer
 *	invalidates; it must be closed, too. FI_RMA_EVENT to report
 *	accesses on the receive queue of the accessed endpoint.
 * @mr: receives the region
 *
 * fi_mr(3). Peers may access the region when the call returns; in a domain
 * with FI_MR_ENDPOINT after it has been bound and enabled. When fi_close() of the region
 * has returned, the memory is not accessed any longer, even if a peer
 * was writing to it at that time.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for invalid arguments, memory that the provider cannot
 * access, or an attr->access without a right; -FI_EBADFLAGS; -FI_ENOKEY if
 * attr->requested_key is in use; -FI_EKEYREJECTED if it is out of range;
 * -FI_ENOMR without a free key; -EOPNOTSUPP for an unsupported flag;
 * -ENOSYS; -ENOMEM; -EBUSY if @domain is being closed; the provider's error.
 */
int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		  u64 flags, struct fid_mr **mr)
{
	int err;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !attr || !mr)
		return -EINVAL;
	if (attr->offset || attr->auth_key_size || !attr->access ||
	    attr->access & ~KOFI_MR_ACCESS)
		return -EINVAL;
	if (!domain->ops->mr_regattr)
		return -ENOSYS;
	err = domain->ops->mr_regattr(domain, attr, flags, mr);
	if (err)
		return kofi_refused(domain->fid.obj, "fi_mr_regattr", err);
	kofi_obj_publish((*mr)->fid.obj);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_mr_regattr);

/**
 * fi_mr_regv - register kernel buffers as one region
 * @domain: an open domain
 * @iov: the buffers; the array may be freed when the call has returned
 * @count: number of buffers
 * @access: as in struct fi_mr_attr
 * @offset: must be 0
 * @requested_key: as in struct fi_mr_attr
 * @flags: as fi_mr_regattr()
 * @mr: receives the region
 * @context: stored in fid.context
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
 * @buf: the buffer, also of vmalloc. A software provider accesses it at this
 *	address: the mapping must live until the region is closed, and must be
 *	writable with FI_REMOTE_WRITE
 * @len: length in bytes; may be 0
 * @access: as in struct fi_mr_attr
 * @offset: must be 0
 * @requested_key: as in struct fi_mr_attr
 * @flags: as fi_mr_regattr()
 * @mr: receives the region
 * @context: stored in fid.context
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
 * fi_mr_bind - restrict a region to the peer of one endpoint
 * @mr: a region of a domain with FI_MR_ENDPOINT, not yet enabled
 * @bfid: an endpoint of the same domain. It cannot be closed before the
 *	region.
 * @flags: 0
 *
 * fi_mr(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL, also for an endpoint that is being closed; -FI_EDOMAIN
 * for an endpoint of another domain; -FI_EBADFLAGS; -EBUSY for a bound
 * region; -FI_EOPBADSTATE for an enabled region; -ENOSYS for a counter;
 * the provider's error.
 */
int fi_mr_bind(struct fid_mr *mr, struct fi_fid *bfid, u64 flags)
{
	might_sleep();
	if (!kofi_mr_valid(mr) || kofi_fid_class(bfid) == FI_CLASS_UNSPEC ||
	    !mr->fid.ops->bind)
		return -EINVAL;
	return mr->fid.ops->bind(&mr->fid, bfid, flags);
}
EXPORT_SYMBOL_GPL(fi_mr_bind);

/**
 * fi_mr_enable - enable a region, which gets its key
 * @mr: a region; without FI_MR_ENDPOINT it is enabled already
 *
 * fi_mr(3). Equals fi_control() with FI_ENABLE. Enabling again does
 * nothing.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EOPBADSTATE for a region that has not been bound;
 * the provider's error.
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
 * Software providers count from 0, or from fi_mr_attr.base if set. On
 * devices the base is random, with the offset of the first byte in its page in the
 * low bits. It may differ each time a region of a pool is mapped.
 *
 * Context: any.
 * Return: the remote address of the first byte; 0 for NULL.
 */
u64 kofi_mr_base(const struct fid_mr *mr)
{
	if (!kofi_mr_valid(mr))
		return 0;
	return container_of(mr, struct kofi_mr, mr)->base;
}
EXPORT_SYMBOL_GPL(kofi_mr_base);
