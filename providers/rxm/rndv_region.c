// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of a message that the peer fetches: up to as many as a packet can name.
 *
 * Each region covers as much of the memory as its number of segments below allows. A
 * device maps pages, and only the first and the last page may be partial. So if a region
 * is refused, it is tried again within this limit. A message that needs more regions is
 * sent in segments. As far as possible that is determined before a region is mapped.
 *
 * A transmit that has some of its regions, and waits for the next one, is the first in
 * the queue of its connection: regions of earlier transmits return with answers.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include "rxm.h"

/* One transmit can always have its regions, independent of other connections. */
static_assert(RXM_RNDV_IOV <= RXM_REGIONS && RXM_RNDV_IOV <= KOFI_MR_RESERVED);

/**
 * struct rxm_cut - part of a message's memory for one region
 * @pages: the region counts pages, and may have no gaps
 * @left: remaining segments, or pages, of the region
 * @gap: the memory so far stops within a page
 * @len: length in bytes
 * @nr: entries of a scatterlist
 */
struct rxm_cut {
	bool		pages;
	unsigned int	left;
	bool		gap;
	size_t		len;
	size_t		nr;
};

/* Add contiguous memory as far as there is room; returns false if the region is full. */
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
	/* each page needs a segment */
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
		/* the iterator has pages, and may begin within one */
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

/* Returns the first entry of the region. An entry is not split between regions. */
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

/* Can the remaining regions of the packet cover the remaining memory? */
static bool rxm_regions_fit(const struct rxm_conn *c, struct rxm_op *op,
			    size_t done, bool pages)
{
	struct rxm_cut cut;
	int i;

	for (i = op->regions.nr; i < RXM_RNDV_IOV && done < op->cur.len; i++) {
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
	/* FI_MORE: the packet that names the region follows */
	err = kofi_mr_map(mr, &mem, FI_REMOTE_READ, FI_MORE);
	if (err)
		return err;
	op->rndv.mem[op->regions.nr] = (struct rxm_mem) {
		.addr = kofi_mr_base(mr), .len = cut.len, .key = fi_mr_key(mr),
	};
	op->regions.mr[op->regions.nr++] = mr;
	op->regions.mapped = op->regions.nr;
	return 0;
}

/**
 * rxm_regions_map - map the regions of a message
 * @c: the connection
 * @op: the transmit, in which @op->rndv then describes the regions
 *
 * Context: any, in the context that pushes.
 * Return: 0; -EAGAIN; -ESHUTDOWN or -ENOTCONN without a connection. After another error
 * the message cannot have regions, but some of them may be mapped.
 */
int rxm_regions_map(struct rxm_conn *c, struct rxm_op *op)
{
	struct fid_mr *mr;
	size_t done = 0;
	int i, err;

	if (!c->region_segs)
		return -EOPNOTSUPP;
	/* unused entries are sent, too, and must not contain old payload */
	if (!op->regions.nr)
		op->rndv = (struct rxm_rndv) {};
	for (i = 0; i < op->regions.nr; i++)
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
		done += op->rndv.mem[op->regions.nr - 1].len;
	}
	return 0;
}

/**
 * rxm_regions_end - invalidate one of a transmit's regions
 * @op: the transmit
 *
 * Context: any.
 * Return: 0, and @op->ctrl completes; -EALREADY if no region is left, or draining the
 * endpoint below has invalidated all of them; -EAGAIN.
 */
int rxm_regions_end(struct rxm_op *op)
{
	int err = -EALREADY;

	while (err == -EALREADY && op->regions.mapped) {
		/* the completion may run before the call returns */
		op->regions.mapped--;
		err = kofi_mr_unmap(op->regions.mr[op->regions.mapped],
				    &op->ctrl.cqe);
	}
	if (err && err != -EALREADY)
		op->regions.mapped++;
	return err;
}

/**
 * rxm_regions_put - return the invalidated regions of a transmit to their pool
 * @op: the transmit
 *
 * Context: any.
 */
void rxm_regions_put(struct rxm_op *op)
{
	int i;

	/* closing the endpoint below has freed its regions */
	for (i = 0; i < op->regions.nr && op->conn->msg; i++)
		kofi_mr_put(op->regions.mr[i]);
}
