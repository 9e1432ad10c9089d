// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of operations, mapped for the device.
 *
 * Vectors
 *
 * Any kind of vector is cut into segments that are contiguous for the device,
 * and each segment is mapped. A list that the consumer has mapped itself
 * (KOFI_SGL_MAPPED) is used unchanged.
 *
 * Room
 *
 * The record of the operation keeps the device addresses, because they are
 * needed to unmap: the consumer may have freed or reused its arrays by then. A
 * record has room for as many segments as the requested iov_limit. A read or
 * write with a longer vector takes blocks of segments from its endpoint.
 * Nothing here allocates or sleeps on the data path.
 */
#include <linux/bvec.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/kofi/backport.h>

#include "verbs.h"

/**
 * vrb_blocks_init - allocate the blocks of an endpoint
 * @b: zeroed
 * @node: NUMA node
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_blocks_init(struct vrb_blocks *b, int node)
{
	unsigned int i;

	spin_lock_init(&b->lock);
	b->mem = kvcalloc_node(VRB_BLOCKS, sizeof(*b->mem), GFP_KERNEL, node);
	if (!b->mem)
		return -ENOMEM;
	for (i = 0; i < VRB_BLOCKS; i++) {
		b->mem[i].next = b->free;
		b->free = &b->mem[i];
	}
	return 0;
}

void vrb_blocks_exit(struct vrb_blocks *b)
{
	kvfree(b->mem);
	b->mem = NULL;
	b->free = NULL;
}

static struct vrb_block *vrb_block_get(struct vrb_blocks *b)
{
	struct vrb_block *block;
	unsigned long irq;

	spin_lock_irqsave(&b->lock, irq);
	block = b->free;
	if (block)
		b->free = block->next;
	spin_unlock_irqrestore(&b->lock, irq);
	return block;
}

/* Free a chain of blocks. */
static void vrb_blocks_put(struct vrb_blocks *b, struct vrb_block *first,
			   struct vrb_block *last)
{
	unsigned long irq;

	spin_lock_irqsave(&b->lock, irq);
	last->next = b->free;
	b->free = first;
	spin_unlock_irqrestore(&b->lock, irq);
}

/* ---------------------------------------------------------------- lengths */

static int vrb_len_sgl(const struct fi_msg *msg, size_t *len)
{
	bool mapped = msg->vec == KOFI_SGL_MAPPED;
	struct scatterlist *sg = msg->msg_sgl;
	size_t i;

	for (i = 0; i < msg->iov_count; i++, sg = sg_next(sg)) {
		if (!sg || check_add_overflow(*len, (size_t)(mapped ?
					      sg_dma_len(sg) : sg->length),
					      len))
			return -EINVAL;
	}
	return 0;
}

/**
 * vrb_msg_len - check a vector, and count its bytes
 * @msg: the operation
 * @dir: ITER_SOURCE for memory that is sent, ITER_DEST for memory that is
 *	written to
 * @iov_limit: most segments an array may have
 * @len: set to the number of bytes
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int vrb_msg_len(const struct fi_msg *msg, unsigned int dir, size_t iov_limit,
		size_t *len)
{
	size_t i;

	*len = 0;
	switch (msg->vec) {
	case KOFI_KVEC:
	case KOFI_BVEC:
		if (msg->iov_count > min_t(size_t, iov_limit, KOFI_IOV_MAX))
			return -EINVAL;
		fallthrough;
	case KOFI_SGL:
	case KOFI_SGL_MAPPED:
		/* the members of the union are all pointers */
		if (msg->iov_count && !msg->msg_iov)
			return -EINVAL;
		break;
	case KOFI_ITER:
		if (!msg->msg_iter || user_backed_iter(msg->msg_iter) ||
		    iov_iter_rw(msg->msg_iter) != dir ||
		    iov_iter_is_discard(msg->msg_iter))
			return -EINVAL;
		*len = iov_iter_count(msg->msg_iter);
		return 0;
	default:
		return -EINVAL;
	}
	if (msg->vec == KOFI_SGL || msg->vec == KOFI_SGL_MAPPED)
		return vrb_len_sgl(msg, len);
	for (i = 0; i < msg->iov_count; i++) {
		size_t n = msg->vec == KOFI_KVEC ? msg->msg_iov[i].iov_len :
						   msg->msg_bvec[i].bv_len;

		if (check_add_overflow(*len, n, len))
			return -EINVAL;
	}
	return 0;
}

/* ---------------------------------------------------------------- walking */

void vrb_walk_init(struct vrb_walk *w, const struct vrb_map *map)
{
	*w = (struct vrb_walk) { .map = map, .sg = map->sgl };
}

static void vrb_walk_get(const struct vrb_walk *w, u64 *addr, u32 *len)
{
	const struct vrb_seg *seg;

	if (w->sg) {
		*addr = sg_dma_address(w->sg);
		*len = sg_dma_len(w->sg);
		return;
	}
	seg = w->i < w->map->room ? &w->map->segs[w->i] :
	      &w->block->segs[(w->i - w->map->room) % VRB_BLOCK_SEGS];
	*addr = seg->addr;
	*len = seg->len;
}

static void vrb_walk_next(struct vrb_walk *w)
{
	w->i++;
	w->off = 0;
	if (w->sg)
		w->sg = w->i < w->map->nr ? sg_next(w->sg) : NULL;
	else if (w->i == w->map->room)
		w->block = w->map->blocks;
	else if (w->i > w->map->room &&
		 !((w->i - w->map->room) % VRB_BLOCK_SEGS))
		w->block = w->block->next;
}

/**
 * vrb_walk_sges - fill in the segments of the next work request
 * @w: position in the memory, advanced
 * @sge: filled in, unless NULL
 * @max: most segments
 * @lkey: key of the segments
 * @want: most bytes
 * @len: set to the number of bytes
 *
 * Return: number of segments.
 */
unsigned int vrb_walk_sges(struct vrb_walk *w, struct ib_sge *sge,
			   unsigned int max, u32 lkey, size_t want, u32 *len)
{
	unsigned int n = 0;

	*len = 0;
	while (n < max && want && w->i < w->map->nr) {
		u64 addr;
		u32 have;

		vrb_walk_get(w, &addr, &have);
		addr += w->off;
		have = min_t(size_t, have - w->off, want);
		if (have) {
			if (sge)
				sge[n] = (struct ib_sge) {
					.addr = addr, .length = have,
					.lkey = lkey,
				};
			n++;
			*len += have;
			want -= have;
			w->off += have;
		}
		vrb_walk_get(w, &addr, &have);
		if (w->off == have)
			vrb_walk_next(w);
	}
	return n;
}

/* --------------------------------------------------------------- counting */

/*
 * Software devices bypass the DMA API, and so the kernel's check that every
 * unmap matches a map, and that nothing stays mapped. Kernels that check locks
 * have such a check for each domain here.
 */
#if VRB_MAP_COUNTED
static void vrb_map_count(struct vrb_domain *dom, u64 addr, u64 len, int n)
{
	atomic_add(n, &dom->maps);
	/* neither address nor length may compensate for the other */
	atomic64_add(n * (s64)(addr + ror64(len, 16)), &dom->map_sum);
}

/**
 * vrb_map_check - warn if anything is still mapped
 * @dom: a domain without endpoints and regions
 */
void vrb_map_check(struct vrb_domain *dom)
{
	WARN(atomic_read(&dom->maps) || atomic64_read(&dom->map_sum),
	     "kofi_verbs: maps and unmaps do not balance: %d segments, %#llx\n",
	     atomic_read(&dom->maps), atomic64_read(&dom->map_sum));
}
#else
static void vrb_map_count(struct vrb_domain *dom, u64 addr, u64 len, int n)
{
}

void vrb_map_check(struct vrb_domain *dom)
{
}
#endif

static void vrb_map_count_sg(struct vrb_domain *dom, struct scatterlist *sgl,
			     int nents, int n)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		vrb_map_count(dom, sg_dma_address(sg), sg_dma_len(sg), n);
}

/**
 * vrb_map_sg - map a scatterlist
 * @dom: domain of the memory
 * @ib: the device
 * @sg: the list
 * @nents: number of entries
 * @dir: direction of the transfer
 *
 * Context: any.
 * Return: number of mapped entries; 0 on failure.
 */
int vrb_map_sg(struct vrb_domain *dom, struct ib_device *ib,
	       struct scatterlist *sg, int nents, enum dma_data_direction dir)
{
	int n = ib_dma_map_sg(ib, sg, nents, dir);

	vrb_map_count_sg(dom, sg, n, 1);
	return n;
}

/**
 * vrb_unmap_sg - undo vrb_map_sg()
 * @dom: domain of the memory
 * @ib: the device
 * @sg: the list
 * @nents: number of entries
 * @mapped: return value of vrb_map_sg()
 * @dir: direction of the transfer
 *
 * Context: any.
 */
void vrb_unmap_sg(struct vrb_domain *dom, struct ib_device *ib,
		  struct scatterlist *sg, int nents, int mapped,
		  enum dma_data_direction dir)
{
	vrb_map_count_sg(dom, sg, mapped, -1);
	ib_dma_unmap_sg(ib, sg, nents, dir);
}

/* ---------------------------------------------------------------- mapping */

/**
 * struct vrb_mapper - state of mapping a vector
 * @map: the resulting mapping
 * @dom: domain with the device for which the memory is mapped
 * @blocks: blocks for long vectors, or NULL
 * @page: first page of a segment that may still grow
 * @off: offset of the segment's first byte in @page
 * @len: length of the segment; 0: none
 */
struct vrb_mapper {
	struct vrb_map		*map;
	struct vrb_domain	*dom;
	struct vrb_blocks	*blocks;
	struct page		*page;
	size_t			off;
	size_t			len;
};

static struct vrb_seg *vrb_map_next(struct vrb_map *map,
				    struct vrb_blocks *blocks)
{
	struct vrb_block *block;
	unsigned int i;

	if (map->nr < map->room)
		return &map->segs[map->nr];
	if (!blocks)
		return NULL;
	i = (map->nr - map->room) % VRB_BLOCK_SEGS;
	if (!i) {
		block = vrb_block_get(blocks);
		if (!block)
			return NULL;
		block->next = NULL;
		if (map->last)
			map->last->next = block;
		else
			map->blocks = block;
		map->last = block;
	}
	return &map->last->segs[i];
}

/**
 * vrb_map_max - longest segment that can be mapped
 * @ib: the device
 *
 * Return: bytes, a multiple of the page size; small if a bounce buffer is used.
 */
size_t vrb_map_max(struct ib_device *ib)
{
	size_t max = min_t(size_t, ib_dma_max_seg_size(ib), SZ_1G);

	if (!ib_uses_virt_dma(ib))
		max = min(max, dma_max_mapping_size(ib->dma_device));
	return max_t(size_t, round_down(max, PAGE_SIZE), PAGE_SIZE);
}

/* Map the current segment, which does not grow further. */
static int vrb_mapper_flush(struct vrb_mapper *m)
{
	struct ib_device *ib = m->dom->ib;

	while (m->len) {
		size_t len = min(m->len, m->dom->map_max);
		struct vrb_seg *seg = vrb_map_next(m->map, m->blocks);

		/* a vector that exceeds all blocks never fits */
		if (!seg)
			return !m->blocks || m->map->nr >= m->map->room +
			       VRB_BLOCKS * VRB_BLOCK_SEGS ?
			       -EMSGSIZE : -EAGAIN;
		seg->addr = ib_dma_map_page(ib, m->page, m->off, len,
					    m->map->dir);
		if (ib_dma_mapping_error(ib, seg->addr))
			return -ENOBUFS;
		seg->len = len;
		vrb_map_count(m->dom, seg->addr, len, 1);
		m->map->nr++;
		m->off += len;
		m->len -= len;
		m->page = nth_page(m->page, m->off >> PAGE_SHIFT);
		m->off = offset_in_page(m->off);
	}
	return 0;
}

/* Add bytes that are contiguous in physical memory. */
static int vrb_mapper_add(void *arg, struct page *page, size_t off, size_t len)
{
	struct vrb_mapper *m = arg;
	int err;

	if (m->len && page_to_phys(m->page) + m->off + m->len ==
		      page_to_phys(page) + off) {
		m->len += len;
		return 0;
	}
	err = vrb_mapper_flush(m);
	if (err)
		return err;
	m->page = nth_page(page, off >> PAGE_SHIFT);
	m->off = offset_in_page(off);
	m->len = len;
	return 0;
}

/**
 * vrb_map_seg - map the memory of an operation with one segment
 * @dom: the domain, with its device present
 * @kv: the memory, checked by vrb_kvec_is_one()
 * @dir: direction of the transfer
 *
 * Context: any.
 * Return: the device address, or DMA_MAPPING_ERROR if the system cannot map
 * more for now.
 */
dma_addr_t vrb_map_seg(struct vrb_domain *dom, const struct kvec *kv,
		       enum dma_data_direction dir)
{
	dma_addr_t addr = ib_dma_map_single(dom->ib, kv->iov_base, kv->iov_len,
					    dir);

	if (unlikely(ib_dma_mapping_error(dom->ib, addr)))
		return DMA_MAPPING_ERROR;
	vrb_map_count(dom, addr, kv->iov_len, 1);
	return addr;
}

/**
 * vrb_unmap_seg - undo vrb_map_seg()
 * @dom: the domain, with its device present
 * @addr: the device address
 * @len: length of the segment
 * @dir: direction of the transfer
 *
 * Context: any.
 */
void vrb_unmap_seg(struct vrb_domain *dom, u64 addr, u32 len,
		   enum dma_data_direction dir)
{
	vrb_map_count(dom, addr, len, -1);
	ib_dma_unmap_single(dom->ib, addr, len, dir);
}

static void vrb_unmap_segs(struct vrb_map *map, struct vrb_domain *dom)
{
	struct vrb_walk w;

	vrb_walk_init(&w, map);
	while (w.i < map->nr) {
		u64 addr;
		u32 len;

		vrb_walk_get(&w, &addr, &len);
		vrb_unmap_seg(dom, addr, len, map->dir);
		vrb_walk_next(&w);
	}
}

/**
 * vrb_unmap_any - undo vrb_map_msg() or vrb_map_set() for any mapping
 * @map: the mapping; empty afterwards
 * @dom: the domain, with its device present
 * @blocks: blocks of the endpoint
 *
 * Context: any.
 */
void vrb_unmap_any(struct vrb_map *map, struct vrb_domain *dom,
		   struct vrb_blocks *blocks)
{
	if (vrb_map_is_one(map))
		vrb_unmap_seg(dom, map->segs[0].addr, map->segs[0].len,
			      map->dir);
	else if (!map->sgl && dom->needs_map)
		vrb_unmap_segs(map, dom);
	map->sgl = NULL;
	map->nr = 0;
	if (!map->blocks)
		return;
	vrb_blocks_put(blocks, map->blocks, map->last);
	map->blocks = NULL;
	map->last = NULL;
}

/**
 * vrb_map_msg - map the memory of an operation
 * @map: empty mapping; empty after an error, too
 * @dom: the domain, with its device present
 * @blocks: blocks of the endpoint, or NULL for an operation without long
 *	vectors
 * @msg: the operation, checked by vrb_msg_len()
 * @dir: direction of the transfer
 *
 * Context: any.
 * Return: 0; -EAGAIN if other operations hold the blocks; -ENOBUFS if the
 * system cannot map more for now; -EMSGSIZE if there are more segments than all
 * blocks hold; -EFAULT; -EINVAL for a mapped list if the domain's device does
 * not use DMA.
 */
int vrb_map_msg(struct vrb_map *map, struct vrb_domain *dom,
		struct vrb_blocks *blocks, const struct fi_msg *msg,
		enum dma_data_direction dir)
{
	struct vrb_mapper m = { .map = map, .dom = dom, .blocks = blocks };
	int err;

	map->dir = dir;
	if (msg->vec == KOFI_SGL_MAPPED) {
		/* a software device, for which no list can be mapped */
		if (ib_uses_virt_dma(dom->ib))
			return -EINVAL;
		map->sgl = msg->msg_sgl;
		map->nr = msg->iov_count;
		return 0;
	}
	err = kofi_vec_walk(msg, vrb_mapper_add, &m);
	if (!err)
		err = vrb_mapper_flush(&m);
	if (err)
		vrb_unmap(map, dom, blocks);
	return err;
}
