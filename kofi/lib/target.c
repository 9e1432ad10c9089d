// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Access of peers to memory regions of software providers: the table of keys, and
 * accesses in steps.
 *
 * A region is in the table of its domain, where peers find it by key. The lower
 * half of a key that the core has chosen is a slot of the table. The upper half is a
 * random number: any peer of the domain may use the key, so other keys must not
 * reveal it. A lookup compares both halves. Slots are assigned in turn, so the next
 * region of a slot comes 2^31 registrations later.
 *
 * A region of a pool keeps its slot and is mapped often. Only the endpoint that it is
 * bound to accepts its key, and the endpoints below it. The upper half counts
 * registrations of the domain, so an earlier key of the slot differs. A key that a
 * consumer has chosen is the index in the table itself.
 *
 * An open region has one reference for being open. Each access holds one
 * while it copies, and between steps that follow immediately.
 * Otherwise an access keeps only the key and the number of the
 * registration, and each step looks them up. So references are
 * short-lived, and when the last one is dropped the region is fenced.
 *
 * A lookup is lockless. RCU keeps the region from being freed, and a reference taken from
 * a count that is not 0 keeps it open. Then the key is compared once more, because the
 * region may have been mapped again in between.
 */
#include <linux/bvec.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/uio.h>

#include <linux/kofi/lib.h>

#include "../mr.h"
#include "../kofi_trace.h"

/* Slots stay below, so that no key is FI_KEY_NOTAVAIL. */
#define KOFI_MR_SLOTS		XA_LIMIT(0, INT_MAX)

/* -------------------------------------------------------------- the table */

/**
 * kofi_mr_table_init - set up the table of a domain
 * @table: the table
 * @mr_mode: domain_attr->mr_mode of the domain
 *
 * Context: process.
 */
void kofi_mr_table_init(struct kofi_mr_table *table, int mr_mode)
{
	xa_init_flags(&table->regions, XA_FLAGS_ALLOC);
	table->client = !(mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC));
	table->endpoint = mr_mode & FI_MR_ENDPOINT;
	table->next = 0;
	/* Keys of an earlier domain must not match. */
	atomic64_set(&table->generation, get_random_u32());
}

/**
 * kofi_mr_table_exit - undo kofi_mr_table_init()
 * @table: the table; all regions have been closed
 *
 * Context: process.
 */
void kofi_mr_table_exit(struct kofi_mr_table *table)
{
	WARN_ON_ONCE(!xa_empty(&table->regions));
	xa_destroy(&table->regions);
}

/* Reserve a slot of a table that chooses the keys. */
static int kofi_mr_alloc_slot(struct kofi_mr_table *table, struct kofi_mr *mr)
{
	u32 slot;
	int err;

	refcount_set(&mr->users, 0);
	err = xa_alloc_cyclic(&table->regions, &slot, mr, KOFI_MR_SLOTS,
			      &table->next, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -FI_ENOMR : err;
	mr->index = slot;
	return 0;
}

/* Reserve a slot; peers do not find the region before it is open. */
static int kofi_mr_insert(struct kofi_mr *mr, size_t segs, u64 key)
{
	struct kofi_mr_table *table = &mr->domain->mrs;
	int err;

	if (!table->client)
		return kofi_mr_alloc_slot(table, mr);
	refcount_set(&mr->users, 0);
	if (key == FI_KEY_NOTAVAIL || key != (unsigned long)key)
		return -EKEYREJECTED;
	err = xa_insert(&table->regions, key, mr, GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -FI_ENOKEY : err;
	mr->index = key;
	return 0;
}

static void kofi_mr_erase(struct kofi_mr *mr)
{
	xa_erase(&mr->domain->mrs.regions, mr->index);
}

/* From here on peers find the region, which is complete. */
static void kofi_mr_found(struct kofi_mr *mr, u64 key)
{
	WRITE_ONCE(mr->mr.key, key);
	/* all of it before a lookup gets a reference; lookups are RCU readers without a lock */
	smp_wmb();
	refcount_set(&mr->users, 1);
}

static int kofi_mr_open_soft(struct kofi_mr *mr)
{
	struct kofi_mr_table *table = &mr->domain->mrs;
	u64 key = mr->index;

	mr->serial = atomic64_inc_return(&table->generation);
	if (!table->client)
		key |= (mr->pool ? mr->serial : (u64)get_random_u32()) << 32;
	kofi_mr_found(mr, key);
	return 0;
}

static void kofi_mr_put_user(struct kofi_mr *mr)
{
	if (refcount_dec_and_test(&mr->users))
		kofi_mr_fenced(mr);
}

/* The place of a key in the table, without the upper half */
static u64 kofi_mr_index(const struct kofi_mr_table *table, u64 key)
{
	return table->client ? key : (u32)key;
}

/**
 * kofi_mr_show - publish a region under the key of another provider
 * @mr: a region that is being opened, of a provider above another one;
 *	its base is set
 * @key: the key, which no other region of the domain has
 *
 * For kofi_mr_ops.open of a provider that uses the keys of the provider below.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM; -FI_ENOKEY if the key is in use.
 */
int kofi_mr_show(struct kofi_mr *mr, u64 key)
{
	struct kofi_mr_table *table = &mr->domain->mrs;
	int err;

	mr->index = kofi_mr_index(table, key);
	mr->serial = atomic64_inc_return(&table->generation);
	err = xa_insert(&table->regions, mr->index, mr, GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -FI_ENOKEY : err;
	kofi_mr_found(mr, key);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_mr_show);

/**
 * kofi_mr_hide - undo kofi_mr_show()
 * @mr: the region
 *
 * For kofi_mr_ops.end, before the key can be assigned again. The region is fenced
 * (kofi_mr_fenced()) when the accesses that have found it are complete.
 *
 * Context: process.
 */
void kofi_mr_hide(struct kofi_mr *mr)
{
	kofi_mr_erase(mr);
	kofi_mr_put_user(mr);
}
EXPORT_SYMBOL_GPL(kofi_mr_hide);

/**
 * kofi_mr_layer_init - reserve a key of the domain below for a region of a pool
 * @mr: the region, of a provider above another one
 * @below: domain below
 *
 * For kofi_mr_ops.init. If the provider below is software, it finds the region in its own
 * table. So the region needs no region below, and opening it allocates nothing. Peers of all
 * endpoints below that report to the region's endpoint may use its key
 * (kofi_ep_remote_to()).
 *
 * Context: process, may sleep.
 * Return: 0; -EOPNOTSUPP if a device moves the data below, or the consumer chooses keys;
 * -FI_ENOMR without free keys; -ENOMEM.
 */
int kofi_mr_layer_init(struct kofi_mr *mr, struct fid_domain *below)
{
	struct kofi_domain *domain = container_of(below, struct kofi_domain,
						  domain);
	int err;

	if (domain->mr_ops != &kofi_mr_soft || domain->mrs.client)
		return -EOPNOTSUPP;
	err = kofi_mr_alloc_slot(&domain->mrs, mr);
	if (err)
		return err;
	/* the keys of all regions above are keys below, so the index is free */
	err = xa_insert(&mr->domain->mrs.regions, mr->index, mr, GFP_KERNEL);
	if (err)
		xa_erase(&domain->mrs.regions, mr->index);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_mr_layer_init);

/**
 * kofi_mr_layer_exit - undo kofi_mr_layer_init()
 * @mr: the region, fenced
 * @below: as kofi_mr_layer_init()
 *
 * Context: process, may sleep.
 */
void kofi_mr_layer_exit(struct kofi_mr *mr, struct fid_domain *below)
{
	struct kofi_domain *domain = container_of(below, struct kofi_domain,
						  domain);

	kofi_mr_erase(mr);
	xa_erase(&domain->mrs.regions, mr->index);
}
EXPORT_SYMBOL_GPL(kofi_mr_layer_exit);

/**
 * kofi_mr_layer_open - open a region of kofi_mr_layer_init()
 * @mr: the region
 *
 * For kofi_mr_ops.open.
 *
 * Context: any.
 * Return: 0.
 */
int kofi_mr_layer_open(struct kofi_mr *mr)
{
	return kofi_mr_open_soft(mr);
}
EXPORT_SYMBOL_GPL(kofi_mr_layer_open);

/**
 * kofi_mr_layer_end - revoke the key of a region of kofi_mr_layer_init()
 * @mr: the region
 *
 * For kofi_mr_ops.end. The region is fenced (kofi_mr_fenced()) when the accesses that have
 * found it are complete.
 *
 * Context: any.
 */
void kofi_mr_layer_end(struct kofi_mr *mr)
{
	kofi_mr_put_user(mr);
}
EXPORT_SYMBOL_GPL(kofi_mr_layer_end);

const struct kofi_mr_ops kofi_mr_soft = {
	.size		= sizeof(struct kofi_mr),
	.counted	= true,
	.init		= kofi_mr_insert,
	.exit		= kofi_mr_erase,
	.open		= kofi_mr_open_soft,
	.end		= kofi_mr_put_user,
};

/* ------------------------------------------------------- accesses of peers */

/* May peers of the endpoint, or of the endpoint above it, use the region? */
static bool kofi_mr_grants(const struct kofi_mr *mr, const struct kofi_ep *ep)
{
	return !mr->ep || mr->ep == ep || mr->ep == ep->above;
}

/* Look up the open region of a key and take a reference; NULL if there is none. */
static struct kofi_mr *kofi_mr_find(struct kofi_ep *ep, u64 key)
{
	struct kofi_mr_table *table = &ep->domain->mrs;
	u64 index = kofi_mr_index(table, key);
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
	/* the reference, which replaces a lock, before the members that it protects */
	smp_mb__after_atomic();
	if (READ_ONCE(mr->mr.key) == key && kofi_mr_grants(mr, ep))
		return mr;
	kofi_mr_put_user(mr);
	return NULL;
}

/**
 * kofi_target_drop - release the region of an access
 * @t: the access, with or without a reference to its region
 *
 * The next step looks the region up again.
 *
 * Context: any.
 */
void kofi_target_drop(struct kofi_target *t)
{
	struct kofi_mr *mr = t->mr;

	t->mr = NULL;
	if (mr)
		kofi_mr_put_user(mr);
}
EXPORT_SYMBOL_GPL(kofi_target_drop);

/* Take a reference for another step, if the registration is the same. */
static bool kofi_target_hold(struct kofi_target *t, struct kofi_ep *ep)
{
	if (t->mr)
		return true;
	t->mr = kofi_mr_find(ep, t->key);
	if (!t->mr || t->mr->serial == t->serial)
		return t->mr;
	kofi_target_drop(t);
	return false;
}

/* Check a peer's right to access a segment. */
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
 * kofi_target_init - begin a peer's access to local memory
 * @t: the access
 * @ep: accessed endpoint
 * @key: key that the peer named
 * @addr: remote address that the peer named
 * @len: length in bytes; the key is also checked for 0
 * @access: FI_REMOTE_READ or FI_REMOTE_WRITE
 *
 * Checks the access completely, and holds a reference to the region
 * until kofi_target_drop() or kofi_target_done(): call one of them at once, unless the next
 * step follows immediately. Following steps detect a region closed in between.
 *
 * Context: any.
 * Return: 0; -FI_EKEYREJECTED if the peer of this endpoint may use no region with
 * the key; -EACCES if the region does not permit @access, or does not contain the whole
 * segment.
 */
int kofi_target_init(struct kofi_target *t, struct kofi_ep *ep, u64 key,
		     u64 addr, u64 len, u64 access)
{
	struct kofi_mr *mr = kofi_mr_find(ep, key);
	int err = -EKEYREJECTED;

	t->mr = mr;
	if (mr) {
		err = kofi_mr_check(mr, addr, len, access);
		t->key = key;
		t->off = addr - mr->base;
		t->left = len;
		t->len = len;
		t->serial = mr->serial;
		t->event = mr->flags & FI_RMA_EVENT;
		t->context = mr->mr.fid.context;
	}
	if (unlikely(err)) {
		if (mr)
			atomic64_inc(&mr->stats.refused);
		kofi_target_drop(t);
		trace_kofi_mr_refused(ep, key, addr, len, access, err);
	}
	return err;
}
EXPORT_SYMBOL_GPL(kofi_target_init);

/**
 * kofi_mr_seg - find the segment of an offset
 * @mr: the region
 * @off: offset in the region in bytes
 *
 * Context: any.
 * Return: number of the segment.
 */
unsigned int kofi_mr_seg(const struct kofi_mr *mr, u64 off)
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

/*
 * Address of the next bytes, if they are virtually contiguous: then one copy suffices
 * instead of one per page. NULL otherwise.
 */
static void *kofi_target_addr(const struct kofi_target *t, size_t len)
{
	const struct kofi_mr *mr = t->mr;
	const struct bio_vec *bv;
	unsigned int seg;
	size_t skip;

	if (!len)
		return NULL;
	if (mr->addr)
		return mr->addr + t->off;
	seg = kofi_mr_seg(mr, t->off);
	bv = &mr->bv[seg];
	skip = t->off - mr->start[seg];
	if (skip + len > bv->bv_len || PageHighMem(bv->bv_page))
		return NULL;
	return page_address(bv->bv_page) + bv->bv_offset + skip;
}

static void kofi_target_iter(struct kofi_target *t, unsigned int dir,
			     size_t len, struct iov_iter *iter)
{
	const struct kofi_mr *mr = t->mr;
	void *addr = kofi_target_addr(t, len);
	unsigned int seg;
	size_t skip;

	if (addr) {
		t->kv = (struct kvec) { .iov_base = addr, .iov_len = len };
		kofi_iter_kvec(iter, dir, &t->kv, 1, len);
		return;
	}
	if (!len) {
		iov_iter_bvec(iter, dir, mr->bv, 0, 0);
		return;
	}
	seg = kofi_mr_seg(mr, t->off);
	skip = t->off - mr->start[seg];
	iov_iter_bvec(iter, dir, mr->bv + seg, mr->nr_segs - seg, skip + len);
	iov_iter_advance(iter, skip);
}

/* Copy between contiguous ranges, without a walk. */
static bool kofi_target_copy_plain(const struct kofi_target *t,
				   const void *bytes, size_t len)
{
	void *to = bytes ? kofi_target_addr(t, len) : NULL;

	if (to)
		memcpy(to, bytes, len);
	return to;
}

/**
 * kofi_target_copy_from_skb - execute a step of a peer's write
 * @t: the access
 * @ep: accessed endpoint
 * @from: the bytes
 * @len: number of bytes; at most @t->left
 *
 * Holds a reference to the region until kofi_target_drop() or kofi_target_done().
 *
 * Context: any.
 * Return: 0 with @t moved by @len, @from not; -FI_EKEYREJECTED if the region was
 * closed in between: this step has not written to its memory; -EFAULT if the
 * CPU cannot read the packet's memory.
 */
int kofi_target_copy_from_skb(struct kofi_target *t, struct kofi_ep *ep,
			      const struct kofi_skb_part *from, size_t len)
{
	struct iov_iter iter;

	if (!kofi_target_hold(t, ep))
		return -EKEYREJECTED;
	if (!kofi_target_copy_plain(t, kofi_skb_part_flat(from, len), len)) {
		kofi_target_iter(t, ITER_DEST, len, &iter);
		if (skb_copy_datagram_iter(from->skb, from->offset, &iter, len))
			return -EFAULT;
	}
	kofi_target_used(t, len);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_target_copy_from_skb);

/**
 * kofi_target_get - begin a step of a peer's read
 * @t: the access
 * @ep: accessed endpoint
 * @iter: becomes a source of the remaining bytes; valid until kofi_target_drop()
 *
 * Holds a reference to the region until then, or kofi_target_done(): for one bounded copy
 * only, since closing the region waits for it.
 *
 * Context: any.
 * Return: false if the region was closed in between.
 */
bool kofi_target_get(struct kofi_target *t, struct kofi_ep *ep,
		     struct iov_iter *iter)
{
	if (!kofi_target_hold(t, ep))
		return false;
	kofi_target_iter(t, ITER_SOURCE, t->left, iter);
	return true;
}
EXPORT_SYMBOL_GPL(kofi_target_get);

/**
 * kofi_target_used - advance an access
 * @t: the access
 * @bytes: number of bytes; at most @t->left
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
 * kofi_target_done - complete a peer's access
 * @t: the access
 * @ep: accessed endpoint
 * @access: FI_REMOTE_READ or FI_REMOTE_WRITE
 *
 * Counts the access, and invalidates a single-use region. For an operation on several
 * segments, call it for each of them once all are complete. A region that was closed
 * in between is no error.
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_target_done(struct kofi_target *t, struct kofi_ep *ep, u64 access)
{
	struct kofi_mr *mr;

	if (!kofi_target_hold(t, ep))
		return;
	mr = t->mr;
	atomic64_inc(access & FI_REMOTE_READ ? &mr->stats.reads :
					       &mr->stats.writes);
	atomic64_add(t->len, &mr->stats.bytes);
	if (mr->flags & FI_MR_SINGLE_USE)
		kofi_mr_end(mr, t->key, 0, FI_RMA | access);
	kofi_target_drop(t);
}
EXPORT_SYMBOL_GPL(kofi_target_done);

/**
 * kofi_mr_invalidate - invalidate a single-use region on behalf of a peer's message
 * @ep: endpoint that received the message
 * @key: key that the peer named
 *
 * Context: any. The consumer is not called from inside.
 * Return: 0; -FI_EKEYREJECTED if the peer of this endpoint may use no region with
 * the key, for instance because the consumer unmapped it before the
 * message arrived; -EACCES if the region is not a single-use one.
 */
int kofi_mr_invalidate(struct kofi_ep *ep, u64 key)
{
	struct kofi_mr *mr = kofi_mr_find(ep, key);
	int err = 0;

	if (!mr)
		return -EKEYREJECTED;
	if (!(mr->flags & FI_MR_SINGLE_USE))
		err = -EACCES;
	else if (!kofi_mr_end(mr, key, 0, KOFI_REMOTE_INV))
		err = -EKEYREJECTED;
	kofi_mr_put_user(mr);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_mr_invalidate);
