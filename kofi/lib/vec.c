// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory vectors of operations.
 *
 * A cursor is a provider's position in the memory a struct fi_msg describes.
 * It hides the kinds of vectors behind an iov_iter. Segment arrays are copied
 * into the cursor, because they belong to the caller of the post; long arrays of
 * pages, and lists of any length (scatterlists, iterators), stay the consumer's
 * until the completion.
 * A scatterlist is seen through a window that moves when it is used up.
 *
 * Nothing here allocates, sleeps or locks: the provider ensures that a cursor has one
 * user at a time. kofi_cursor_init() finds all errors of a vector; afterwards only copies
 * may fail.
 */
#include <linux/bvec.h>
#include <linux/export.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include <linux/kofi/lib.h>

static int kofi_cursor_init_kvec(struct kofi_cursor *cur,
				 const struct fi_msg *msg)
{
	size_t i, len = 0;

	for (i = 0; i < msg->iov_count; i++) {
		cur->kv[i] = msg->msg_iov[i];
		if (check_add_overflow(len, cur->kv[i].iov_len, &len))
			return -EINVAL;
	}
	iov_iter_kvec(&cur->iter, cur->dir, cur->kv, msg->iov_count, len);
	cur->len = len;
	return 0;
}

static noinline int kofi_cursor_init_bvec(struct kofi_cursor *cur,
					  const struct fi_msg *msg)
{
	const struct bio_vec *bv = msg->msg_bvec;
	size_t i, len = 0;

	for (i = 0; i < msg->iov_count; i++) {
		if (check_add_overflow(len, (size_t)bv[i].bv_len, &len))
			return -EINVAL;
	}
	if (msg->iov_count <= cur->segs) {
		memcpy(cur->bv, bv, msg->iov_count * sizeof(*bv));
		bv = cur->bv;
	}
	iov_iter_bvec(&cur->iter, cur->dir, bv, msg->iov_count, len);
	cur->len = len;
	return 0;
}

static noinline int kofi_cursor_init_sgl(struct kofi_cursor *cur,
					 const struct fi_msg *msg)
{
	struct scatterlist *sg = msg->msg_sgl;
	size_t i, len = 0;

	for (i = 0; i < msg->iov_count; i++, sg = sg_next(sg)) {
		if (!sg || check_add_overflow(len, (size_t)sg->length, &len))
			return -EINVAL;
	}
	/* an empty window: its first use moves it to the start */
	iov_iter_bvec(&cur->iter, cur->dir, cur->bv, 0, 0);
	cur->sg = msg->msg_sgl;
	cur->sg_left = len;
	cur->len = len;
	return 0;
}

static noinline int kofi_cursor_init_iter(struct kofi_cursor *cur,
					  const struct fi_msg *msg)
{
	const struct iov_iter *iter = msg->msg_iter;

	if (!iter || user_backed_iter(iter) ||
	    iov_iter_rw(iter) != cur->dir ||
	    (cur->dir == ITER_SOURCE && iov_iter_is_discard(iter)))
		return -EINVAL;
	cur->iter = *iter;
	cur->len = iov_iter_count(iter);
	return 0;
}

/**
 * kofi_cursor_init_any - kofi_cursor_init() for memory of any kind
 * @cur: the cursor
 * @msg: the operation
 * @dir: as there
 * @iov_limit: as there
 *
 * Context: any.
 * Return: as there.
 */
int kofi_cursor_init_any(struct kofi_cursor *cur, const struct fi_msg *msg,
			 unsigned int dir, size_t iov_limit)
{
	int err;

	cur->sg = NULL;
	cur->sg_left = 0;
	cur->dir = dir;
	cur->segs = clamp_t(size_t, iov_limit, 1, KOFI_IOV_MAX);

	/* the members of the union are all pointers */
	if (msg->vec != KOFI_ITER && msg->iov_count && !msg->msg_iov)
		err = -EINVAL;
	else if (msg->vec != KOFI_SGL && msg->vec != KOFI_ITER &&
		 msg->iov_count > (msg->vec == KOFI_BVEC ? iov_limit :
				   min_t(size_t, iov_limit, KOFI_IOV_MAX)))
		err = -EINVAL;
	else if (msg->vec == KOFI_KVEC)
		err = kofi_cursor_init_kvec(cur, msg);
	else if (msg->vec == KOFI_BVEC)
		err = kofi_cursor_init_bvec(cur, msg);
	else if (msg->vec == KOFI_SGL)
		err = kofi_cursor_init_sgl(cur, msg);
	else if (msg->vec == KOFI_ITER)
		err = kofi_cursor_init_iter(cur, msg);
	else
		err = -EINVAL;
	cur->left = err ? 0 : cur->len;
	return err;
}
EXPORT_SYMBOL_GPL(kofi_cursor_init_any);

/**
 * kofi_cursor_refill - move the window over a scatterlist
 * @cur: a cursor with no byte left in its window
 *
 * For kofi_cursor_iter(). The window moves to the next entries that hold bytes.
 *
 * Context: any.
 */
void kofi_cursor_refill(struct kofi_cursor *cur)
{
	unsigned int n = 0;
	size_t len = 0;

	while (cur->sg_left && n < cur->segs) {
		struct scatterlist *sg = cur->sg;

		if (sg->length) {
			bvec_set_page(&cur->bv[n++], sg_page(sg), sg->length,
				      sg->offset);
			len += sg->length;
			cur->sg_left -= sg->length;
		}
		cur->sg = sg_next(sg);
	}
	iov_iter_bvec(&cur->iter, cur->dir, cur->bv, n, len);
}
EXPORT_SYMBOL_GPL(kofi_cursor_refill);

/**
 * kofi_cursor_used - go forward
 * @cur: the cursor
 * @bytes: distance; at most the bytes that kofi_cursor_iter() covered
 *
 * Context: any.
 */
void kofi_cursor_used(struct kofi_cursor *cur, size_t bytes)
{
	iov_iter_advance(&cur->iter, bytes);
	cur->left -= bytes;
}
EXPORT_SYMBOL_GPL(kofi_cursor_used);

/**
 * kofi_cursor_read - copy bytes of an operation to a buffer
 * @cur: the cursor, made with ITER_SOURCE
 * @to: the buffer, outside of @cur
 * @len: number of bytes, at most @cur->left
 *
 * Context: any.
 * Return: 0 with the cursor moved by @len; -EFAULT if the memory cannot be read, or is
 * shorter than @len, with the cursor at an undefined position.
 */
int kofi_cursor_read(struct kofi_cursor *cur, void *to, size_t len)
{
	const void *flat = kofi_cursor_flat(cur, len);

	if (likely(flat)) {
		memcpy(to, flat, len);
		kofi_cursor_used(cur, len);
		return 0;
	}
	while (len) {
		struct iov_iter iter = *kofi_cursor_iter(cur);
		size_t n = min(len, iov_iter_count(&iter));

		if (!n || copy_from_iter(to, n, &iter) != n)
			return -EFAULT;
		kofi_cursor_used(cur, n);
		to += n;
		len -= n;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_cursor_read);

/**
 * kofi_cursor_write - copy a buffer to the memory of an operation
 * @cur: the cursor, made with ITER_DEST
 * @from: the buffer
 * @len: number of bytes; bytes beyond the end of the memory are not copied
 *
 * Unlike kofi_cursor_read() it may be called with more bytes than the memory takes, as for
 * a truncated message.
 *
 * Context: any.
 * Return: 0 with the cursor moved by the number of copied bytes; -EFAULT, after a warning,
 * if the memory cannot be written, with the cursor at an undefined position.
 */
int kofi_cursor_write(struct kofi_cursor *cur, const void *from, size_t len)
{
	void *flat;

	len = min(len, cur->left);
	flat = kofi_cursor_flat(cur, len);
	if (likely(flat)) {
		memcpy(flat, from, len);
		kofi_cursor_used(cur, len);
		return 0;
	}
	while (len) {
		struct iov_iter iter = *kofi_cursor_iter(cur);
		size_t n = min(len, iov_iter_count(&iter));

		if (WARN_ON_ONCE(!n || copy_to_iter(from, n, &iter) != n))
			return -EFAULT;
		kofi_cursor_used(cur, n);
		from += n;
		len -= n;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_cursor_write);

/*
 * Copy into one kernel buffer, as for most small messages, without the iterator's walk
 * and its checks for copies to user space.
 */
static bool kofi_cursor_copy_plain(struct kofi_cursor *cur,
				   const struct kofi_skb_part *from, size_t len)
{
	const void *bytes = kofi_skb_part_flat(from, len);
	struct iov_iter *iter = &cur->iter;
	const struct kvec *kv;
	void *to;
	size_t room;

	/* an iterator without bytes may have no segment */
	if (!len || !iov_iter_is_kvec(iter) || len > iov_iter_count(iter))
		return false;
	kv = iter->kvec;
	room = kv->iov_len - iter->iov_offset;
	/* if it stays within the segment, or completes the vector, it needs no walk */
	if (len > room || (len == room && len != iov_iter_count(iter)))
		return false;
	to = kv->iov_base + iter->iov_offset;
	if (bytes)
		memcpy(to, bytes, len);
	else if (skb_copy_bits(from->skb, from->offset, to, len))
		return false;
	iter->iov_offset += len;
	iter->count -= len;
	cur->left -= len;
	return true;
}

/**
 * kofi_cursor_copy_from_skb - place received bytes
 * @cur: the cursor, made with ITER_DEST
 * @from: the bytes
 * @len: how many of them; at most @cur->left
 *
 * Context: any.
 * Return: 0 with the cursor moved by @len, @from not; -EFAULT if the packet's
 * memory cannot be read by the CPU, or the memory did not take the bytes.
 */
int kofi_cursor_copy_from_skb(struct kofi_cursor *cur,
			      const struct kofi_skb_part *from, size_t len)
{
	int offset = from->offset;

	if (kofi_cursor_copy_plain(cur, from, len))
		return 0;
	while (len) {
		struct iov_iter *iter = kofi_cursor_iter(cur);
		size_t n = min(len, iov_iter_count(iter));

		if (!n || skb_copy_datagram_iter(from->skb, offset, iter, n))
			return -EFAULT;
		cur->left -= n;
		offset += n;
		len -= n;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_cursor_copy_from_skb);
