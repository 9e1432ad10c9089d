// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of operations, mapped for the device.
 *
 * Vectors
 *
 * Any kind of vector is cut into segments that are contiguous for the device, and
 * each is mapped. A list that the consumer has mapped itself (KOFI_SGL_MAPPED) is
 * used as it is.
 *
 * Room
 *
 * The addresses are kept with the operation, because they are needed to unmap,
 * and the consumer's arrays may be gone by then or be used for another operation.
 * An operation has room for as many as the iov_limit that was asked for; for a
 * long vector a read or write takes blocks of more from its endpoint. Nothing
 * here allocates or sleeps on the data path.
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
 * vrb_blocks_init - make the blocks of an endpoint
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

/* Give a chain back. */
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
 * vrb_walk_sges - the next segments of a work request
 * @w: position, moved on
 * @sge: filled in, unless NULL
 * @max: most segments
 * @lkey: their key
 * @want: most bytes
 * @len: set to how many bytes they have
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
 * Software devices bypass the DMA API, and with it the kernel's check that what
 * is unmapped has been mapped so, and that in the end nothing is. So in kernels
 * that check locks, too, every domain has one of its own.
 */
#if VRB_MAP_COUNTED
static void vrb_map_count(struct vrb_domain *dom, u64 addr, u64 len, int n)
{
	atomic_add(n, &dom->maps);
	/* neither may stand in for the other */
	atomic64_add(n * (s64)(addr + ror64(len, 16)), &dom->map_sum);
}

/**
 * vrb_map_check - nothing may be mapped
 * @dom: a domain whose endpoints and regions have been closed
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
 * vrb_map_sg - map a list
 * @dom: whose memory it is
 * @ib: the device
 * @sg: the list
 * @nents: its entries
 * @dir: which way the bytes go
 *
 * Context: any.
 * Return: entries that are mapped, 0 if none could be.
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
 * @dom: whose memory it is
 * @ib: the device
 * @sg: the list
 * @nents: its entries
 * @mapped: what vrb_map_sg() has returned
 * @dir: which way the bytes went
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
 * struct vrb_mapper - a vector that is being mapped
 * @map: what becomes of it
 * @dom: for its device
 * @blocks: where more room is, or NULL
 * @page: first page of a segment that may still grow
 * @off: of its first byte in @page
 * @len: its length, 0 if there is none
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
 * vrb_map_max - how long a segment may be
 * @ib: the device
 *
 * Return: bytes, of whole pages; where memory bounces, that is not much.
 */
size_t vrb_map_max(struct ib_device *ib)
{
	size_t max = min_t(size_t, ib_dma_max_seg_size(ib), SZ_1G);

	if (!ib_uses_virt_dma(ib))
		max = min(max, dma_max_mapping_size(ib->dma_device));
	return max_t(size_t, round_down(max, PAGE_SIZE), PAGE_SIZE);
}

/* Map the segment that has grown until now. */
static int vrb_mapper_flush(struct vrb_mapper *m)
{
	struct ib_device *ib = m->dom->ib;

	while (m->len) {
		size_t len = min(m->len, m->dom->map_max);
		struct vrb_seg *seg = vrb_map_next(m->map, m->blocks);

		/* more than all blocks hold never fits */
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
 * vrb_map_seg - map an operation's memory that is one segment
 * @dom: the domain, with its device
 * @kv: the memory, which is known to be so from vrb_kvec_is_one()
 * @dir: which way the bytes go
 *
 * Context: any.
 * Return: where the device sees it, or DMA_MAPPING_ERROR if the system cannot
 * map more for now.
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
 * @dom: the domain, with its device
 * @addr: where the device sees it
 * @len: its length
 * @dir: which way the bytes went
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
 * vrb_unmap_any - vrb_unmap() where there may be something to undo
 * @map: as there
 * @dom: as there
 * @blocks: as there
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
 * vrb_map_msg - map an operation's memory
 * @map: holds nothing, and after an error as well
 * @dom: the domain, with its device
 * @blocks: of the endpoint, or NULL for an operation that must not be longer
 * @msg: the operation, checked by vrb_msg_len()
 * @dir: which way the bytes go
 *
 * Context: any.
 * Return: 0; -EAGAIN if other operations have the blocks; -ENOBUFS if the
 * system cannot map more for now; -EMSGSIZE if there are more segments than
 * there ever is room for; -EFAULT; -EINVAL for a mapped list where there is no device to map
 * for.
 */
int vrb_map_msg(struct vrb_map *map, struct vrb_domain *dom,
		struct vrb_blocks *blocks, const struct fi_msg *msg,
		enum dma_data_direction dir)
{
	struct vrb_mapper m = { .map = map, .dom = dom, .blocks = blocks };
	int err;

	map->dir = dir;
	if (msg->vec == KOFI_SGL_MAPPED) {
		/* there is no device it could have been mapped for */
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
