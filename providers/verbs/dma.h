/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory of operations: segments for the device, see dma.c */
#ifndef _KOFI_VERBS_DMA_H
#define _KOFI_VERBS_DMA_H

#include <linux/dma-direction.h>
#include <linux/kofi/lib.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#define VRB_BLOCK_SEGS		64	/* segments of a block, for long vectors */
#define VRB_BLOCKS		16	/* blocks of an endpoint */

struct vrb_domain;

struct vrb_seg {
	u64	addr;
	u32	len;
};

struct vrb_block {
	struct vrb_block	*next;
	struct vrb_seg		segs[VRB_BLOCK_SEGS];
};

/**
 * struct vrb_blocks - segments for long vectors, shared by the operations of an
 * endpoint
 * @lock: protects @free; taken with interrupts disabled
 * @free: unused blocks; protected by @lock
 * @mem: array of all blocks; NULL if the endpoint has no operations with long
 *	vectors. Fixed from enabling on; statistics read it without a lock at any
 *	time
 */
struct vrb_blocks {
	spinlock_t		lock;	/* free */
	struct vrb_block	*free;
	struct vrb_block	*mem;
};

/**
 * struct vrb_map - memory of an operation, as mapped for the device
 * @nr: number of segments
 * @room: number of elements of @segs, at least one
 * @dir: direction of the transfer, enum dma_data_direction
 * @sgl: scatterlist mapped by the consumer, used instead of @segs and @blocks;
 *	NULL: none
 * @blocks: blocks with the segments that do not fit into @segs
 * @last: last block of @blocks
 * @segs: the first @room segments
 */
struct vrb_map {
	unsigned int		nr;
	u8			room;
	u8			dir;
	struct scatterlist	*sgl;
	struct vrb_block	*blocks;
	struct vrb_block	*last;
	struct vrb_seg		segs[];
};

/* Position in a vrb_map */
struct vrb_walk {
	const struct vrb_map	*map;
	const struct vrb_block	*block;
	struct scatterlist	*sg;
	unsigned int		i;	/* index of the segment */
	u32			off;	/* bytes into the segment */
};

/*
 * Test for one segment that does not come from a mapped list. Most operations
 * have one.
 */
static inline bool vrb_map_is_one(const struct vrb_map *map)
{
	return likely(map->nr == 1 && !map->sgl);
}

/* Number of segments in an operation's own record. A mapped list needs one, too. */
static inline unsigned int vrb_map_room(size_t iov_limit)
{
	return clamp_t(size_t, iov_limit, 1, KOFI_IOV_MAX);
}

/* Fill in one segment: mapped by vrb_map_seg(), or used without mapping. */
static __always_inline void vrb_map_set(struct vrb_map *map, u64 addr, u32 len,
					enum dma_data_direction dir)
{
	map->dir = dir;
	map->nr = 1;
	map->segs[0].addr = addr;
	map->segs[0].len = len;
}

int vrb_blocks_init(struct vrb_blocks *b, int node);
void vrb_blocks_exit(struct vrb_blocks *b);
int vrb_msg_len(const struct fi_msg *msg, unsigned int dir, size_t iov_limit,
		size_t *len);
int vrb_map_msg(struct vrb_map *map, struct vrb_domain *dom,
		struct vrb_blocks *blocks, const struct fi_msg *msg,
		enum dma_data_direction dir);
dma_addr_t vrb_map_seg(struct vrb_domain *dom, const struct kvec *kv,
		       enum dma_data_direction dir);
void vrb_unmap_seg(struct vrb_domain *dom, u64 addr, u32 len,
		   enum dma_data_direction dir);
void vrb_unmap_any(struct vrb_map *map, struct vrb_domain *dom,
		   struct vrb_blocks *blocks);
int vrb_map_sg(struct vrb_domain *dom, struct ib_device *ib,
	       struct scatterlist *sg, int nents, enum dma_data_direction dir);
void vrb_unmap_sg(struct vrb_domain *dom, struct ib_device *ib,
		  struct scatterlist *sg, int nents, int mapped,
		  enum dma_data_direction dir);
size_t vrb_map_max(struct ib_device *ib);
void vrb_map_check(struct vrb_domain *dom);
void vrb_walk_init(struct vrb_walk *w, const struct vrb_map *map);

/*
 * Test whether the memory of an operation is certainly one segment, of at most
 * @max bytes. Memory in the kernel's linear mapping is; other addresses may
 * come from vmalloc().
 */
static __always_inline bool vrb_kvec_is_one(const struct kvec *kv, size_t count,
					    enum kofi_vec vec, size_t max)
{
	return vec == KOFI_KVEC && count == 1 && kv &&
	       kv->iov_len - 1 < max &&		/* refuses length 0, too */
	       (unsigned long)kv->iov_base >= PAGE_OFFSET &&
	       kv->iov_base < high_memory;
}

unsigned int vrb_walk_sges(struct vrb_walk *w, struct ib_sge *sge,
			   unsigned int max, u32 lkey, size_t want, u32 *len);

#endif /* _KOFI_VERBS_DMA_H */
