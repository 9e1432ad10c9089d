/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of operations: messages with one description of memory, checks of a peer's
 * segments, cursors, and functions that collect or walk segments.
 *
 * Part of lib.h.
 */
#ifndef _LINUX_KOFI_VEC_H
#define _LINUX_KOFI_VEC_H

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/skbuff.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include <linux/kofi/kofi.h>

/**
 * kofi_tagged_msg - members that a tagged message shares with other messages
 * @from: the tagged message
 *
 * Return: all members but tag and ignored bits.
 */
static inline struct fi_msg kofi_tagged_msg(const struct fi_msg_tagged *from)
{
	return (struct fi_msg) {
		.msg_iov = from->msg_iov,	/* of a union of pointers */
		.desc = from->desc,
		.iov_count = from->iov_count,
		.addr = from->addr,
		.context = from->context,
		.data = from->data,
		.vec = from->vec,
	};
}

/**
 * kofi_rma_msg - members that a remote access shares with messages
 * @from: the access
 *
 * Return: all members but the peer's segments.
 */
static __always_inline struct fi_msg kofi_rma_msg(const struct fi_msg_rma *from)
{
	return (struct fi_msg) {
		.msg_iov = from->msg_iov,	/* of a union of pointers */
		.desc = from->desc,
		.iov_count = from->iov_count,
		.addr = from->addr,
		.context = from->context,
		.data = from->data,
		.vec = from->vec,
	};
}

/**
 * kofi_rma_check - check the peer's segments of a remote access
 * @rma: the segments, or NULL
 * @count: number of segments
 * @limit: most segments
 * @len: length of the local memory in bytes
 * @copy: receives the segments, has room for @limit; or NULL
 *
 * Context: any.
 * Return: 0; -EINVAL without a segment, for too many segments, or if the sum of their
 * lengths overflows or is not @len.
 */
static __always_inline int kofi_rma_check(const struct fi_rma_iov *rma,
					  size_t count, size_t limit, size_t len,
					  struct fi_rma_iov *copy)
{
	size_t i, sum = 0;

	if (!count || !rma || count > limit)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (copy)
			copy[i] = rma[i];
		if (check_add_overflow(sum, rma[i].len, &sum))
			return -EINVAL;
	}
	return sum == len ? 0 : -EINVAL;
}

/**
 * struct kofi_cursor - position in the memory of an operation
 * @iter: rest of the current window
 * @sg: next scatterlist entry behind the window
 * @sg_left: bytes from @sg on
 * @left: bytes from the position to the end
 * @len: length of the memory in bytes
 * @dir: ITER_SOURCE or ITER_DEST
 * @segs: capacity in segments
 * @kv: copied segments
 * @bv: copied segments, or the window of a scatterlist
 *
 * As the last member of a record a cursor may be truncated, see
 * kofi_cursor_size().
 */
struct kofi_cursor {
	struct iov_iter		iter;
	struct scatterlist	*sg;
	size_t			sg_left;
	size_t			left;
	size_t			len;
	unsigned int		dir;
	unsigned int		segs;
	union {
		struct kvec	kv[KOFI_IOV_MAX];
		struct bio_vec	bv[KOFI_IOV_MAX];
	};
};

/* Cursor of one segment, a kvec or a bvec */
#define KOFI_CURSOR_SEG		sizeof_field(struct kofi_cursor, bv[0])
static_assert(sizeof(struct kvec) <= KOFI_CURSOR_SEG);

/**
 * kofi_cursor_size - bytes of a truncated cursor
 * @iov_limit: the iov_limit of each kofi_cursor_init() of this cursor
 *
 * Return: the number of bytes.
 */
static inline size_t kofi_cursor_size(size_t iov_limit)
{
	return offsetof(struct kofi_cursor, bv) +
	       clamp_t(size_t, iov_limit, 1, KOFI_IOV_MAX) * KOFI_CURSOR_SEG;
}

/**
 * struct kofi_skb_part - received bytes that are being copied from a packet
 * @skb: the packet
 * @offset: offset of the next byte
 * @end: offset behind the last byte
 * @flat: address of offset 0 for bytes that are virtually contiguous; most are, in the
 *	packet's linear part or in its first fragment
 * @flat_end: offset behind the last contiguous byte
 */
struct kofi_skb_part {
	const struct sk_buff	*skb;
	size_t			offset;
	size_t			end;
	const void		*flat;
	size_t			flat_end;
};

/**
 * kofi_skb_part_init - prepare to copy bytes from a packet
 * @part: the bytes
 * @skb: packet that contains @part
 * @offset: offset of the first byte
 * @len: number of bytes; the packet contains as many
 */
static __always_inline void kofi_skb_part_init(struct kofi_skb_part *part,
					       const struct sk_buff *skb,
					       unsigned int offset, size_t len)
{
	const skb_frag_t *frag = &skb_shinfo(skb)->frags[0];
	unsigned int head = skb_headlen(skb);
	struct page *page;

	*part = (struct kofi_skb_part) {
		.skb = skb,
		.offset = offset,
		.end = offset + len,
		.flat = skb->data,
		.flat_end = head,
	};
	if (offset < head || !skb_shinfo(skb)->nr_frags)
		return;
	page = skb_frag_page(frag);
	if (!page || PageHighMem(page))
		return;
	part->flat = page_address(page) + skb_frag_off(frag) - head;
	part->flat_end = head + skb_frag_size(frag);
}

/**
 * kofi_skb_part_flat - address of the next bytes
 * @part: the bytes
 * @len: number of bytes; the packet may contain less
 *
 * Return: the address, or NULL if @len bytes are not contiguous: then
 * skb_copy_bits() copies the bytes.
 */
static __always_inline const void *
kofi_skb_part_flat(const struct kofi_skb_part *part, size_t len)
{
	size_t end = part->offset + len;

	return end <= part->flat_end && end <= part->end ?
	       part->flat + part->offset : NULL;
}

int kofi_cursor_init_any(struct kofi_cursor *cur, const struct fi_msg *msg,
			 unsigned int dir, size_t iov_limit);
void kofi_cursor_refill(struct kofi_cursor *cur);

/* iov_iter_kvec() as an inline function */
static __always_inline void kofi_iter_kvec(struct iov_iter *iter,
					   unsigned int dir,
					   const struct kvec *kv,
					   unsigned int count, size_t len)
{
	/* by member: an initialiser may clear all of it first */
	iter->iter_type = ITER_KVEC;
	iter->nofault = false;
	iter->data_source = dir;
	iter->iov_offset = 0;
	iter->kvec = kv;
	iter->count = len;
	iter->nr_segs = count;
}

/**
 * kofi_cursor_init - start at the first byte of an operation's memory
 * @cur: the cursor; its former contents are overwritten
 * @msg: the operation. Its segment array, if it has one, is copied, unless it is a
 *	bvec array of more than KOFI_IOV_MAX
 * @dir: ITER_SOURCE for memory to send from, ITER_DEST for memory to write to
 * @iov_limit: most segments of a kvec or bvec array; a kvec array also has at
 *	most KOFI_IOV_MAX
 *
 * Memory mapped for DMA (%KOFI_SGL_MAPPED) is refused: it is for providers
 * with a device, which need no cursor.
 *
 * Context: any.
 * Return: 0 with @cur->len set; -EINVAL for too many segments, lengths that
 * overflow, a missing array, a scatterlist shorter than it claims, an
 * iterator of the wrong direction or over user memory, or an unknown kind.
 */
static __always_inline int kofi_cursor_init(struct kofi_cursor *cur,
					    const struct fi_msg *msg,
					    unsigned int dir, size_t iov_limit)
{
	size_t len;

	/* the common case of one kernel buffer needs few checks */
	if (msg->vec != KOFI_KVEC || msg->iov_count != 1 || !msg->msg_iov ||
	    !iov_limit)
		return kofi_cursor_init_any(cur, msg, dir, iov_limit);
	len = msg->msg_iov->iov_len;
	cur->kv[0].iov_base = msg->msg_iov->iov_base;
	cur->kv[0].iov_len = len;
	cur->sg_left = 0;	/* then there is no window to be moved, either */
	cur->len = len;
	cur->left = len;
	kofi_iter_kvec(&cur->iter, dir, cur->kv, 1, len);
	return 0;
}

/**
 * kofi_cursor_replace - replace the memory of an operation by a buffer of the provider
 * @cur: the cursor, made with ITER_SOURCE
 * @buf: the buffer, which contains all @cur->len bytes of the operation; may lie behind
 *	kv[0] inside a truncated cursor
 *
 * The cursor no longer refers to the consumer's memory. It starts at the first byte.
 *
 * Context: any.
 */
static __always_inline void kofi_cursor_replace(struct kofi_cursor *cur,
						void *buf)
{
	cur->kv[0].iov_base = buf;
	cur->kv[0].iov_len = cur->len;
	cur->sg_left = 0;
	cur->left = cur->len;
	kofi_iter_kvec(&cur->iter, ITER_SOURCE, cur->kv, 1, cur->len);
}

/**
 * kofi_cursor_iter - memory from the position on
 * @cur: the cursor
 *
 * The iterator covers at least one byte unless the cursor is at its end, but perhaps
 * less than @cur->left: a long scatterlist comes in windows. A caller that advances the
 * iterator uses a copy, and then passes the number of bytes to kofi_cursor_used().
 *
 * Context: any.
 * Return: iterator over the bytes that follow, valid until @cur is moved.
 */
static inline struct iov_iter *kofi_cursor_iter(struct kofi_cursor *cur)
{
	if (!iov_iter_count(&cur->iter) && cur->sg_left)
		kofi_cursor_refill(cur);
	return &cur->iter;
}

/**
 * kofi_cursor_flat - address of the memory from the position on
 * @cur: the cursor
 * @len: number of bytes, at least 1
 *
 * Context: any.
 * Return: address of the next @len bytes, if they are virtually contiguous kernel
 * memory; otherwise NULL.
 */
static __always_inline void *kofi_cursor_flat(const struct kofi_cursor *cur,
					      size_t len)
{
	const struct iov_iter *iter = &cur->iter;

	return len && iov_iter_is_kvec(iter) && len <= iter->count &&
	       len <= iter->kvec->iov_len - iter->iov_offset ?
	       iter->kvec->iov_base + iter->iov_offset : NULL;
}

/**
 * kofi_gather_kvec - collect the segments of a payload behind a header
 * @iter: the payload, of ITER_KVEC
 * @len: most bytes; at most iov_iter_count(@iter)
 * @kv: array that begins with the header; may not be the array of @iter
 * @n: number of used elements of @kv, updated
 * @max: number of elements of @kv; with @pages at most that, the elements a device takes
 * @pages: each page of vmalloc memory counts as an element, as a device needs one for it;
 *	memory of modules does not
 *
 * @iter does not move. The elements refer to its memory.
 *
 * Context: any.
 * Return: number of collected bytes; less than @len if the segments are too many.
 */
static __always_inline size_t kofi_gather_kvec(const struct iov_iter *iter,
					       size_t len, struct kvec *kv,
					       unsigned int *n, unsigned int max,
					       bool pages)
{
	size_t skip = iter->iov_offset, left = len, bytes;
	const struct kvec *seg = iter->kvec;
	unsigned int more = 0;	/* pages of vmalloc memory but the first of a segment */
	void *base;

	for (; left && *n + more < max; seg++, skip = 0) {
		base = seg->iov_base + skip;
		bytes = min(seg->iov_len - skip, left);
		if (!bytes)
			continue;
		if (pages && is_vmalloc_addr(base)) {
			bytes = min(bytes, (max - *n - more) * PAGE_SIZE -
					   offset_in_page(base));
			more += DIV_ROUND_UP(offset_in_page(base) + bytes,
					     PAGE_SIZE) - 1;
		}
		kv[*n].iov_base = base;
		kv[(*n)++].iov_len = bytes;
		left -= bytes;
	}
	return len - left;
}

/**
 * kofi_gather_bvec - collect the segments of a payload behind a header
 * @iter: the payload, of ITER_BVEC
 * @len: most bytes; at most iov_iter_count(@iter)
 * @bv: array that begins with the header; may not be the array of @iter
 * @n: number of used elements of @bv, updated
 * @max: number of elements of @bv
 *
 * @iter does not move. The elements refer to its pages.
 *
 * Context: any.
 * Return: number of collected bytes; less than @len if the segments are too many.
 */
static __always_inline size_t kofi_gather_bvec(const struct iov_iter *iter,
					       size_t len, struct bio_vec *bv,
					       unsigned int *n, unsigned int max)
{
	size_t skip = iter->iov_offset, left = len, bytes;
	const struct bio_vec *seg = iter->bvec;

	for (; left && *n < max; seg++, skip = 0) {
		bytes = min(seg->bv_len - skip, left);
		if (!bytes)
			continue;
		bvec_set_page(&bv[(*n)++], seg->bv_page, bytes,
			      seg->bv_offset + skip);
		left -= bytes;
	}
	return len - left;
}

void kofi_cursor_used(struct kofi_cursor *cur, size_t bytes);
int kofi_cursor_read(struct kofi_cursor *cur, void *to, size_t len);
int kofi_cursor_write(struct kofi_cursor *cur, const void *from, size_t len);
int kofi_cursor_copy_from_skb(struct kofi_cursor *cur,
			      const struct kofi_skb_part *from, size_t len);

/**
 * typedef kofi_vec_fn - called for each part of a vector's memory
 * @arg: argument of kofi_vec_walk()
 * @page: first page of the part
 * @offset: offset of the first byte from @page
 * @len: bytes that are physically contiguous; not 0
 *
 * Return: 0 to continue, or the result of kofi_vec_walk().
 */
typedef int (*kofi_vec_fn)(void *arg, struct page *page, size_t offset,
			   size_t len);

static __always_inline int kofi_walk_part(kofi_vec_fn fn, void *arg,
					  struct page *page, size_t offset,
					  size_t len)
{
	return !len ? 0 : page ? fn(arg, page, offset, len) : -EFAULT;
}

/* The linear mapping is contiguous; vmalloc memory is walked page by page. */
static __always_inline int kofi_walk_kvec(kofi_vec_fn fn, void *arg,
					  void *base, size_t len)
{
	bool vmalloc = is_vmalloc_or_module_addr(base);
	unsigned long last;
	int err = 0;
	size_t n;

	if (!len)
		return 0;
	if (check_add_overflow((unsigned long)base, len - 1, &last) ||
	    (vmalloc ? !is_vmalloc_or_module_addr((void *)last) :
		       !virt_addr_valid(base) || !virt_addr_valid((void *)last)))
		return -EFAULT;
	if (!vmalloc)
		return fn(arg, virt_to_page(base), offset_in_page(base), len);
	for (; len && !err; base += n, len -= n) {
		n = min_t(size_t, len, PAGE_SIZE - offset_in_page(base));
		err = kofi_walk_part(fn, arg, vmalloc_to_page(base),
				     offset_in_page(base), n);
	}
	return err;
}

static __always_inline int kofi_walk_pages(kofi_vec_fn fn, void *arg,
					   struct page **pages, size_t offset,
					   size_t len)
{
	int err = 0;
	size_t n;

	for (; len && !err; pages++, len -= n, offset = 0) {
		n = min_t(size_t, len, PAGE_SIZE - offset);
		err = kofi_walk_part(fn, arg, *pages, offset, n);
	}
	return err;
}

/* Xarrays such as page caches: the owner of the iterator keeps the pages. */
static __always_inline int kofi_walk_iter_pages(kofi_vec_fn fn, void *arg,
						const struct iov_iter *from)
{
	struct iov_iter iter = *from;
	size_t offset;
	int err = 0;
	ssize_t n;

	while (iov_iter_count(&iter) && !err) {
		/* a hole in an xarray keeps the first page */
		struct page *pages[KOFI_IOV_MAX] = {}, **p = pages;

		n = iov_iter_extract_pages(&iter, &p, iov_iter_count(&iter),
					   ARRAY_SIZE(pages), 0, &offset);
		if (n <= 0)
			return -EFAULT;
		err = kofi_walk_pages(fn, arg, pages, offset, n);
	}
	return err;
}

static __always_inline int kofi_walk_iter(kofi_vec_fn fn, void *arg,
					  const struct iov_iter *iter)
{
	size_t skip = iter->iov_offset, left = iov_iter_count(iter), n;
	const struct bio_vec *bv = iter->bvec;
	const struct kvec *kv = iter->kvec;
	unsigned long i;
	int err = 0;

	if (!iov_iter_is_kvec(iter) && !iov_iter_is_bvec(iter))
		return kofi_walk_iter_pages(fn, arg, iter);
	for (i = 0; i < iter->nr_segs && left && !err; i++, skip = 0) {
		if (iov_iter_is_kvec(iter)) {
			n = min(kv[i].iov_len - skip, left);
			err = kofi_walk_kvec(fn, arg, kv[i].iov_base + skip, n);
		} else {
			n = min_t(size_t, bv[i].bv_len - skip, left);
			err = kofi_walk_part(fn, arg, bv[i].bv_page,
					     bv[i].bv_offset + skip, n);
		}
		left -= n;
	}
	return err ?: left ? -EFAULT : 0;
}

/**
 * kofi_vec_walk - call a function for each physically contiguous part of a vector
 * @msg: the vector; not of user memory, nor mapped for a device
 * @fn: called for each part, in order
 * @arg: first argument of @fn
 *
 * Inline, so that the compiler can inline @fn, too.
 *
 * Context: any.
 * Return: 0; -EFAULT for memory without a page; -EINVAL for a scatterlist
 * shorter than it claims, or another kind; or the result of @fn.
 */
static __always_inline int kofi_vec_walk(const struct fi_msg *msg,
					 kofi_vec_fn fn, void *arg)
{
	const struct bio_vec *bv = msg->msg_bvec;
	struct scatterlist *sg = msg->msg_sgl;
	const struct kvec *kv = msg->msg_iov;
	int err = 0;
	size_t i;

	if (msg->vec == KOFI_ITER)
		return kofi_walk_iter(fn, arg, msg->msg_iter);
	for (i = 0; i < msg->iov_count && !err; i++) {
		switch (msg->vec) {
		case KOFI_KVEC:
			err = kofi_walk_kvec(fn, arg, kv[i].iov_base,
					     kv[i].iov_len);
			break;
		case KOFI_BVEC:
			err = kofi_walk_part(fn, arg, bv[i].bv_page,
					     bv[i].bv_offset, bv[i].bv_len);
			break;
		case KOFI_SGL:
			err = sg ? kofi_walk_part(fn, arg, sg_page(sg),
						  sg->offset, sg->length) :
				   -EINVAL;
			sg = sg ? sg_next(sg) : NULL;
			break;
		default:
			err = -EINVAL;
		}
	}
	return err;
}

#endif /* _LINUX_KOFI_VEC_H */
