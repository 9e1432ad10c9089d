// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions (fi_mr(3), kofi.h), and how software providers reach them.
 *
 * A region is an array of bio_vecs, whatever it was registered as, with the
 * offset of each one's first byte beside it. It lives in the table of its
 * domain, where peers find it by key. The consumer owns the memory, the region
 * the two arrays.
 *
 * A key of ours is a slot of the table below a generation that grows with each
 * registration of the domain; a lookup compares all of it, so a key that has
 * been used never fits again. Slots go round and are used again late. A key the
 * consumer has chosen is the place in the table itself.
 *
 * Life: idle, open (peers may access it), ending, and for a region of a pool
 * idle again. Whoever moves it from open to ending says why it ends, withdraws
 * the key and gives back the reference that being open is. An access holds one
 * for as long as it copies, never for longer: between two steps of an access
 * there is only the key and the number of the registration, and each step looks
 * both up. So the references go away by themselves, soon, and the last one
 * makes the region fenced: nobody can touch the memory any more. fi_close()
 * waits for that; a region of a pool reports it.
 *
 * A lookup is lockless: RCU keeps the region from being freed, a reference
 * taken from a count that is not 0 keeps it open, and then the key is compared
 * once more, because the region may have been mapped anew in between.
 *
 * Pools: an endpoint's regions for registration in any context, with their
 * slots and arrays, made when it is enabled. Mapping one changes its generation
 * and allocates nothing. Such a region is bound to its endpoint. Draining the
 * endpoint ends those that are mapped and waits for them; they are freed with
 * the endpoint.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "internal.h"
#include "kofi_trace.h"

/* Slots stay below, so that no key of ours is FI_KEY_NOTAVAIL. */
#define KOFI_MR_SLOTS		XA_LIMIT(0, INT_MAX)

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
 * @mrs: the regions
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
	struct kofi_mr		mrs[];
};

static atomic64_t kofi_mr_serial;

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

/* -------------------------------------------------------------- the table */

/**
 * kofi_mr_table_init - a domain without regions
 * @table: the domain's
 * @mr_mode: domain_attr->mr_mode it was opened with
 *
 * Context: process.
 */
void kofi_mr_table_init(struct kofi_mr_table *table, int mr_mode)
{
	xa_init_flags(&table->regions, XA_FLAGS_ALLOC);
	table->client = !(mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC));
	table->endpoint = mr_mode & FI_MR_ENDPOINT;
	table->next = 0;
	/* What was a key before the domain was opened shall not fit now. */
	atomic_set(&table->generation, get_random_u32());
}

/**
 * kofi_mr_table_exit - undo kofi_mr_table_init()
 * @table: the domain's; the regions have been closed
 *
 * Context: process.
 */
void kofi_mr_table_exit(struct kofi_mr_table *table)
{
	WARN_ON_ONCE(!xa_empty(&table->regions));
	xa_destroy(&table->regions);
}

/* Find a place; peers do not see the region before it is open. */
static int kofi_mr_insert(struct kofi_mr *mr, u64 key)
{
	struct kofi_mr_table *table = &mr->domain->mrs;
	u32 slot;
	int err;

	if (!table->client) {
		err = xa_alloc_cyclic(&table->regions, &slot, mr, KOFI_MR_SLOTS,
				      &table->next, GFP_KERNEL);
		if (err < 0)
			return err == -EBUSY ? -FI_ENOMR : err;
		mr->index = slot;
		return 0;
	}
	if (key == FI_KEY_NOTAVAIL || key != (unsigned long)key)
		return -EKEYREJECTED;
	err = xa_insert(&table->regions, key, mr, GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -FI_ENOKEY : err;
	mr->index = key;
	return 0;
}

/* From here on peers find it. What it is has been written before. */
static void kofi_mr_open(struct kofi_mr *mr)
{
	struct kofi_mr_table *table = &mr->domain->mrs;
	u64 key = mr->index;

	if (!table->client)
		key |= (u64)(u32)atomic_inc_return(&table->generation) << 32;
	mr->serial = atomic64_inc_return(&kofi_mr_serial);
	WRITE_ONCE(mr->mr.key, key);
	smp_wmb();	/* all of it before a lookup gets a reference */
	refcount_set(&mr->users, 1);
}

/* --------------------------------------------------------------- the end */

/* Step from open to ending. The one who makes it calls kofi_mr_end(). */
static bool kofi_mr_end_begin(struct kofi_mr *mr)
{
	return cmpxchg(&mr->state, KOFI_MR_OPEN, KOFI_MR_ENDING) ==
	       KOFI_MR_OPEN;
}

/* Nobody touches the memory of a pool's region any more. */
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

static void kofi_mr_put_user(struct kofi_mr *mr)
{
	if (!refcount_dec_and_test(&mr->users))
		return;
	if (mr->pool)
		kofi_mr_pool_fenced(mr);
	else
		complete(&mr->fenced);
}

static void kofi_mr_end(struct kofi_mr *mr, int err, u64 flags)
{
	mr->wc.err = err;
	mr->wc.flags = flags;
	mr->wc.inv_key = flags & KOFI_REMOTE_INV ? mr->mr.key : 0;
	trace_kofi_mr_end(mr, err, flags);
	WRITE_ONCE(mr->mr.key, FI_KEY_NOTAVAIL);
	kofi_mr_put_user(mr);
}

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

static int kofi_mr_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_mr *mr = container_of(fid, struct kofi_mr, mr.fid);

	if (command != FI_ENABLE)
		return -ENOSYS;
	if (!READ_ONCE(mr->ep) && READ_ONCE(mr->state) == KOFI_MR_IDLE)
		return -FI_EOPBADSTATE;
	if (cmpxchg(&mr->state, KOFI_MR_IDLE, KOFI_MR_OPEN) == KOFI_MR_IDLE)
		kofi_mr_open(mr);
	return 0;
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

	xa_erase(&mr->domain->mrs.regions, mr->index);
	if (mr->state != KOFI_MR_IDLE) {
		if (kofi_mr_end_begin(mr))
			kofi_mr_end(mr, 0, 0);
		wait_for_completion(&mr->fenced);
	}
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
	refcount_set(&mr->users, 0);
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
 * kofi_mr_regattr - register memory with a software provider
 * @domain: as fi_mr_regattr()
 * @attr: the same, checked by it
 * @flags: the same
 * @mr: the same
 *
 * For the mr_regattr slot of such a provider's struct fi_ops_domain.
 *
 * Context: process, may sleep.
 * Return: as fi_mr_regattr().
 */
int kofi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr)
{
	struct kofi_domain *kdomain =
		container_of(domain, struct kofi_domain, domain);
	struct kofi_mr *kmr;
	u64 end;
	int err;

	if (flags & ~KOFI_MR_FLAGS)
		return -FI_EBADFLAGS;
	kmr = kzalloc_node(sizeof(*kmr), GFP_KERNEL, kdomain->node);
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
	err = kofi_mr_insert(kmr, attr->requested_key);
	if (err)
		goto exit_obj;
	if (!kdomain->mrs.endpoint) {
		kmr->state = KOFI_MR_OPEN;
		kofi_mr_open(kmr);
	}
	*mr = &kmr->mr;
	return 0;

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
 * -FI_ENOMR without a free key; -ENOSYS; -ENOMEM; -EBUSY if @domain is being
 * closed; what the provider returns.
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
 * Software providers count from 0, unless fi_mr_attr.base says otherwise.
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

static void kofi_mr_pool_free(struct kofi_mr_pool *pool, size_t inserted)
{
	struct xarray *regions = &pool->ep->domain->mrs.regions;

	while (inserted--)
		xa_erase(regions, pool->mrs[inserted].index);
	kvfree(pool->bv);
	kvfree(pool->start);
	kvfree_rcu(pool, rcu);
}

/**
 * kofi_mr_pool_open - make the pool an endpoint was asked to have
 * @ep: an endpoint about to be enabled
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ENOMR without free keys; -ENOMEM.
 */
int kofi_mr_pool_open(struct kofi_ep *ep)
{
	size_t nr = ep->mr_pool_size, segs = ep->mr_pool_segs, i;
	int node = ep->domain->node, err = -ENOMEM;
	struct kofi_mr_pool *pool;
	struct kofi_mr *mr;

	if (!nr)
		return 0;
	pool = kvmalloc_node(struct_size(pool, mrs, nr),
			     KOFI_MR_GFP | __GFP_ZERO, node);
	if (!pool)
		return -ENOMEM;
	pool->ep = ep;
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
		mr = &pool->mrs[i];
		kofi_mr_setup(mr, ep->domain);
		mr->mr.fid.ops = &kofi_mr_pool_fid_ops;
		mr->state = KOFI_MR_FREE;
		mr->pool = pool;
		mr->ep = ep;
		mr->bv = pool->bv + i * segs;
		mr->start = pool->start + i * segs;
		err = kofi_mr_insert(mr, 0);
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
 * kofi_mr_pool_drain - end an endpoint's mapped regions
 * @ep: an endpoint whose provider has been drained
 *
 * Nothing can be mapped any more. May be called more than once.
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
	spin_lock_irq(&pool->lock);
	pool->closed = true;
	spin_unlock_irq(&pool->lock);

	for (i = 0; i < pool->nr; i++)
		if (kofi_mr_end_begin(&pool->mrs[i]))
			kofi_mr_end(&pool->mrs[i], ECANCELED, 0);

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
		stats = &pool->mrs[i].stats;
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
	int err = 0;

	spin_lock_irqsave(&pool->lock, flags);
	if (pool->closed) {
		err = -ESHUTDOWN;
	} else {
		pool->mapped++;
		pool->maps++;
		kofi_mr_open(mr);
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
 * The region has a key, a new one, when the call returns. The arrays @vec
 * points to are the caller's again, the memory stays the region's until it is
 * unmapped.
 *
 * A one-shot region ends, and then completes on the endpoint's transmit queue,
 * in exactly one way: the peer's first complete access (flags FI_RMA and
 * FI_REMOTE_READ or FI_REMOTE_WRITE), a message of the peer's that invalidates
 * the key (KOFI_REMOTE_INV, the key in inv_key), kofi_mr_unmap() (no flags), or
 * the end of the endpoint (FI_ECANCELED). The memory is fenced when it
 * completes. Others end with kofi_mr_unmap() or the endpoint.
 *
 * Context: any. Nothing is allocated.
 * Return: 0; -EINVAL, also for too many segments or a region of no pool;
 * -FI_EBADFLAGS; -EBUSY if the region is mapped; one-shot: -EAGAIN without a
 * slot of the queue, and the write-space callback follows, -FI_ENOCQ without
 * transmit queue; -ESHUTDOWN once the endpoint has been drained.
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
	kofi_mr_end(kmr, 0, 0);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_mr_unmap);

/* ------------------------------------------------------- accesses of peers */

/* The open region a key stands for, with a reference; NULL if there is none. */
static struct kofi_mr *kofi_mr_find(struct kofi_ep *ep, u64 key)
{
	struct kofi_mr_table *table = &ep->domain->mrs;
	u64 index = table->client ? key : (u32)key;
	struct kofi_mr *mr;

	if (index != (unsigned long)index)
		return NULL;
	rcu_read_lock();
	mr = xa_load(&table->regions, index);
	if (mr && (READ_ONCE(mr->mr.key) != key ||
		   !refcount_inc_not_zero(&mr->users)))
		mr = NULL;
	rcu_read_unlock();
	if (!mr)
		return NULL;
	smp_mb__after_atomic();	/* the reference, before what it protects */
	if (READ_ONCE(mr->mr.key) == key && (!mr->ep || mr->ep == ep))
		return mr;
	kofi_mr_put_user(mr);
	return NULL;
}

/* The same for a later step: it must be the same registration. */
static struct kofi_mr *kofi_mr_find_again(struct kofi_ep *ep,
					  const struct kofi_target *t)
{
	struct kofi_mr *mr = kofi_mr_find(ep, t->key);

	if (!mr || mr->serial == t->serial)
		return mr;
	kofi_mr_put_user(mr);
	return NULL;
}

/* May a peer access that piece? */
static int kofi_mr_check(const struct kofi_mr *mr, u64 addr, u64 len,
			 u64 access)
{
	u64 end;

	if ((mr->access & access) != access)
		return -EACCES;
	if (check_add_overflow(addr, len, &end))
		return -EACCES;
	if (addr < mr->base || end - mr->base > mr->len)
		return -EACCES;
	return 0;
}

/**
 * kofi_target_init - begin a peer's access to our memory
 * @t: the access
 * @ep: endpoint it came to
 * @key: key the peer has named
 * @addr: remote address it has named
 * @len: bytes; the key is checked for none, too
 * @access: FI_REMOTE_READ or FI_REMOTE_WRITE
 *
 * Checks everything that can be wrong with the access, and keeps nothing: a
 * region closed afterwards shows in the steps that follow.
 *
 * Context: any.
 * Return: 0; -FI_EKEYREJECTED if no region that this endpoint's peer may name
 * has the key; -EACCES if the region does not grant @access, or not all of the
 * piece is inside it.
 */
int kofi_target_init(struct kofi_target *t, struct kofi_ep *ep, u64 key,
		     u64 addr, u64 len, u64 access)
{
	struct kofi_mr *mr = kofi_mr_find(ep, key);
	int err = -EKEYREJECTED;

	if (mr) {
		err = kofi_mr_check(mr, addr, len, access);
		if (err)
			atomic64_inc(&mr->stats.refused);
		t->key = key;
		t->off = addr - mr->base;
		t->left = len;
		t->len = len;
		t->serial = mr->serial;
		t->event = mr->flags & FI_RMA_EVENT;
		kofi_mr_put_user(mr);
	}
	if (err)
		trace_kofi_mr_refused(ep, key, addr, len, access, err);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_target_init);

/* The segment an offset inside the region is in */
static unsigned int kofi_mr_seg(const struct kofi_mr *mr, u64 off)
{
	unsigned int low = 0, high = mr->nr_segs;

	while (high - low > 1) {
		unsigned int mid = low + (high - low) / 2;

		if (mr->start[mid] <= off)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void kofi_target_iter(const struct kofi_target *t,
			     const struct kofi_mr *mr, unsigned int dir,
			     size_t len, struct iov_iter *iter)
{
	unsigned int seg;
	size_t skip;

	if (!len) {
		iov_iter_bvec(iter, dir, mr->bv, 0, 0);
		return;
	}
	seg = kofi_mr_seg(mr, t->off);
	skip = t->off - mr->start[seg];
	iov_iter_bvec(iter, dir, mr->bv + seg, mr->nr_segs - seg, skip + len);
	iov_iter_advance(iter, skip);
}

/**
 * kofi_target_copy_from_skb - a step of a peer's write
 * @t: the access
 * @ep: endpoint it came to
 * @skb: where the bytes are
 * @offset: of the first one in @skb
 * @len: how many; at most @t->left. @skb holds as many.
 *
 * Context: any.
 * Return: 0 with @t moved by @len; -FI_EKEYREJECTED if the region has ended
 * meanwhile: its memory has not been touched by this step; -EFAULT if the
 * packet's memory cannot be read by the CPU.
 */
int kofi_target_copy_from_skb(struct kofi_target *t, struct kofi_ep *ep,
			      const struct sk_buff *skb, int offset,
			      size_t len)
{
	struct kofi_mr *mr = kofi_mr_find_again(ep, t);
	struct iov_iter iter;
	int err = 0;

	if (!mr)
		return -EKEYREJECTED;
	kofi_target_iter(t, mr, ITER_DEST, len, &iter);
	if (skb_copy_datagram_iter(skb, offset, &iter, len))
		err = -EFAULT;
	else
		kofi_target_used(t, len);
	kofi_mr_put_user(mr);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_target_copy_from_skb);

/**
 * kofi_target_get - begin a step of a peer's read
 * @t: the access
 * @ep: endpoint it came to
 * @iter: becomes a source of all that is left; valid until kofi_target_put()
 *
 * To be held for one bounded copy and no longer: who closes the region waits
 * for it.
 *
 * Context: any.
 * Return: the region, to be given back with kofi_target_put(); NULL if it has
 * ended meanwhile.
 */
struct kofi_mr *kofi_target_get(struct kofi_target *t, struct kofi_ep *ep,
				struct iov_iter *iter)
{
	struct kofi_mr *mr = kofi_mr_find_again(ep, t);

	if (mr)
		kofi_target_iter(t, mr, ITER_SOURCE, t->left, iter);
	return mr;
}
EXPORT_SYMBOL_GPL(kofi_target_get);

/**
 * kofi_target_put - end a step of a peer's read
 * @mr: from kofi_target_get(); it may be freed at once
 *
 * Context: any.
 */
void kofi_target_put(struct kofi_mr *mr)
{
	kofi_mr_put_user(mr);
}
EXPORT_SYMBOL_GPL(kofi_target_put);

/**
 * kofi_target_used - go forward
 * @t: the access
 * @bytes: how far; at most @t->left
 *
 * Context: any.
 */
void kofi_target_used(struct kofi_target *t, size_t bytes)
{
	t->off += bytes;
	t->left -= bytes;
}
EXPORT_SYMBOL_GPL(kofi_target_used);

/**
 * kofi_target_done - a peer's access is complete
 * @t: the access
 * @ep: endpoint it came to
 * @access: FI_REMOTE_READ or FI_REMOTE_WRITE
 *
 * Counts it, and ends a one-shot region. For an operation on several pieces
 * it is called for each of them once all are complete. A region that has ended
 * meanwhile is no error.
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_target_done(struct kofi_target *t, struct kofi_ep *ep, u64 access)
{
	struct kofi_mr *mr = kofi_mr_find_again(ep, t);

	if (!mr)
		return;
	atomic64_inc(access & FI_REMOTE_READ ? &mr->stats.reads :
					       &mr->stats.writes);
	atomic64_add(t->len, &mr->stats.bytes);
	if (mr->flags & FI_MR_SINGLE_USE && kofi_mr_end_begin(mr))
		kofi_mr_end(mr, 0, FI_RMA | access);
	kofi_mr_put_user(mr);
}
EXPORT_SYMBOL_GPL(kofi_target_done);

/**
 * kofi_mr_invalidate - a peer's message ends a one-shot region
 * @ep: endpoint the message came to
 * @key: key the peer has named
 *
 * Context: any. No consumer is called from inside.
 * Return: 0; -FI_EKEYREJECTED if no region that this endpoint's peer may name
 * has the key (any more): also where the consumer has unmapped it while the
 * message was under way; -EACCES if the region is not a one-shot one.
 */
int kofi_mr_invalidate(struct kofi_ep *ep, u64 key)
{
	struct kofi_mr *mr = kofi_mr_find(ep, key);
	int err = 0;

	if (!mr)
		return -EKEYREJECTED;
	if (!(mr->flags & FI_MR_SINGLE_USE))
		err = -EACCES;
	else if (kofi_mr_end_begin(mr))
		kofi_mr_end(mr, 0, KOFI_REMOTE_INV);
	else
		err = -EKEYREJECTED;
	kofi_mr_put_user(mr);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_mr_invalidate);
