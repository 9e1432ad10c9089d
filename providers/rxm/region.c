// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The regions of a message that the peer is to fetch: up to as many as a packet names.
 *
 * Each is as much of the memory as a region below can be, by the number of its
 * segments. A device sees pages, which must lie behind each other without gaps but at
 * the ends; where a region is refused it is tried with what that leaves. A message
 * whose memory takes more regions is sent eagerly instead, in segments, which is found
 * before there is a region, as far as that can be known.
 *
 * A transmit that has some of its regions, and waits for the next one, is the first
 * one of its connection: those that are away come back by answers.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include "rxm.h"

/* A transmit can have all it may need, whatever other connections do. */
static_assert(RXM_RNDV_IOV <= RXM_REGIONS && RXM_RNDV_IOV <= KOFI_MR_RESERVED);

/**
 * struct rxm_cut - memory for a region
 * @pages: it counts by pages, and has no gaps
 * @left: segments, or pages, there is room for
 * @gap: the last one ends within a page
 * @len: bytes
 * @nr: entries of a scatterlist
 */
struct rxm_cut {
	bool		pages;
	unsigned int	left;
	bool		gap;
	size_t		len;
	size_t		nr;
};

/* What lies side by side goes on, as far as there is room; false if that is the end. */
static bool rxm_cut_add(struct rxm_cut *cut, size_t offset, size_t len,
			bool whole)
{
	size_t room = cut->pages ? cut->left * PAGE_SIZE - offset : len;
	size_t n = min(len, room);

	if (!len)
		return true;
	if (!cut->left || (n < len && whole) ||
	    (cut->pages && cut->len && (cut->gap || offset)))
		return false;
	cut->left -= cut->pages ? DIV_ROUND_UP(offset + n, PAGE_SIZE) : 1;
	cut->gap = offset_in_page(offset + n);
	cut->len += n;
	return n == len;
}

static bool rxm_cut_kvec(struct rxm_cut *cut, void *base, size_t len)
{
	size_t n;

	if (cut->pages || !is_vmalloc_or_module_addr(base))
		return rxm_cut_add(cut, offset_in_page(base), len, false);
	/* a segment for each page */
	for (; len; base += n, len -= n) {
		n = min(len, PAGE_SIZE - offset_in_page(base));
		if (!rxm_cut_add(cut, offset_in_page(base), n, false))
			return false;
	}
	return true;
}

static void rxm_cut_iter(struct rxm_cut *cut, const struct iov_iter *iter,
			 size_t skip)
{
	size_t left = iov_iter_count(iter), n, seg;
	unsigned long i;
	bool kvec = iov_iter_is_kvec(iter), more = true;

	if (!kvec && !iov_iter_is_bvec(iter)) {
		/* pages, and it may begin in one */
		n = (cut->left - cut->pages) * PAGE_SIZE;
		cut->len = min(n, left - skip);
		return;
	}
	skip += iter->iov_offset;
	left += iter->iov_offset;
	for (i = 0; i < iter->nr_segs && left && more; i++) {
		seg = min(kvec ? iter->kvec[i].iov_len : iter->bvec[i].bv_len,
			  left);
		left -= seg;
		n = min(skip, seg);
		skip -= n;
		more = kvec ? rxm_cut_kvec(cut, iter->kvec[i].iov_base + n,
					   seg - n) :
			      rxm_cut_add(cut, offset_in_page(iter->bvec[i].bv_offset + n),
					  seg - n, false);
	}
}

/* Returns the entry it begins with; each is in one region. */
static struct scatterlist *rxm_cut_sgl(struct rxm_cut *cut,
				       struct scatterlist *sg, size_t nr,
				       size_t skip)
{
	struct scatterlist *first;

	for (; nr && skip; sg = sg_next(sg), nr--)
		skip -= sg->length;
	first = sg;
	for (; nr; sg = sg_next(sg), nr--, cut->nr++)
		if (!rxm_cut_add(cut, offset_in_page(sg->offset), sg->length,
				 true))
			break;
	return first;
}

static struct scatterlist *rxm_cut_at(struct rxm_cut *cut,
				      const struct rxm_conn *c,
				      struct rxm_op *op, size_t done,
				      bool pages)
{
	*cut = (struct rxm_cut) { .pages = pages, .left = c->region_segs };
	if (op->sgl)
		return rxm_cut_sgl(cut, op->sgl, op->nr_sgl, done);
	rxm_cut_iter(cut, &op->cur.iter, done);
	return NULL;
}

/* Is what is left enough for what has none yet? */
static bool rxm_regions_fit(const struct rxm_conn *c, struct rxm_op *op,
			    size_t done, bool pages)
{
	struct rxm_cut cut;
	int i;

	for (i = op->nr_mr; i < RXM_RNDV_IOV && done < op->cur.len; i++) {
		rxm_cut_at(&cut, c, op, done, pages);
		if (!cut.len)
			return false;
		done += cut.len;
	}
	return done == op->cur.len;
}

static int rxm_region_map(struct rxm_conn *c, struct rxm_op *op,
			  struct fid_mr *mr, size_t done, bool pages)
{
	struct fi_msg mem = {};
	struct iov_iter iter;
	struct rxm_cut cut;
	int err;

	if (!rxm_regions_fit(c, op, done, pages))
		return -EINVAL;
	mem.msg_sgl = rxm_cut_at(&cut, c, op, done, pages);
	if (mem.msg_sgl) {
		mem.vec = KOFI_SGL;
		mem.iov_count = cut.nr;
	} else {
		iter = op->cur.iter;
		iov_iter_advance(&iter, done);
		iov_iter_truncate(&iter, cut.len);
		mem.vec = KOFI_ITER;
		mem.msg_iter = &iter;
	}
	/* the packet that names it */
	err = kofi_mr_map(mr, &mem, FI_REMOTE_READ, FI_MORE);
	if (err)
		return err;
	op->rndv.mem[op->nr_mr] = (struct rxm_mem) {
		.addr = kofi_mr_base(mr), .len = cut.len, .key = fi_mr_key(mr),
	};
	op->mr[op->nr_mr++] = mr;
	op->mapped = op->nr_mr;
	return 0;
}

/**
 * rxm_regions_map - have regions for a message
 * @c: the connection
 * @op: the transmit; its packet names them then
 *
 * Context: any, by who pushes.
 * Return: 0; -EAGAIN; -ESHUTDOWN or -ENOTCONN without a connection. Otherwise it can
 * have none, but may have some by now.
 */
int rxm_regions_map(struct rxm_conn *c, struct rxm_op *op)
{
	struct fid_mr *mr;
	size_t done = 0;
	int i, err;

	if (!c->region_segs)
		return -EOPNOTSUPP;
	/* what is not used goes out, too, and was payload before */
	if (!op->nr_mr)
		op->rndv = (struct rxm_rndv) {};
	for (i = 0; i < op->nr_mr; i++)
		done += op->rndv.mem[i].len;
	while (done < op->cur.len) {
		mr = kofi_mr_get(c->msg);
		if (!mr)
			return -EAGAIN;
		mr->fid.context = &rxm_own_region;
		err = rxm_region_map(c, op, mr, done, false);
		if (err == -EINVAL)
			err = rxm_region_map(c, op, mr, done, true);
		if (err) {
			kofi_mr_put(mr);
			return err;
		}
		done += op->rndv.mem[op->nr_mr - 1].len;
	}
	return 0;
}

/**
 * rxm_regions_end - end one of a transmit's regions
 * @op: the transmit
 *
 * Context: any.
 * Return: 0, and it completes to the transmit's @ctrl; -EALREADY if there is none, or
 * they have ended with the endpoint below; -EAGAIN.
 */
int rxm_regions_end(struct rxm_op *op)
{
	int err = -EALREADY;

	while (err == -EALREADY && op->mapped) {
		/* by the time it returns there may be more to do */
		op->mapped--;
		err = kofi_mr_unmap(op->mr[op->mapped], &op->ctrl.cqe);
	}
	if (err && err != -EALREADY)
		op->mapped++;
	return err;
}

/**
 * rxm_regions_put - give back the regions of a transmit, which have ended
 * @op: the transmit
 *
 * Context: any.
 */
void rxm_regions_put(struct rxm_op *op)
{
	int i;

	/* with the endpoint below they have gone */
	for (i = 0; i < op->nr_mr && op->conn->msg; i++)
		kofi_mr_put(op->mr[i]);
}
