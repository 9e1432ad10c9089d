/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions: of a domain, and for reads on iWARP */
#ifndef _KOFI_VERBS_MR_H
#define _KOFI_VERBS_MR_H

#include <linux/completion.h>
#include <linux/kofi/provider.h>
#include <linux/random.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define VRB_MR_PAGES		256	/* pages of a region by default */
#define VRB_READ_MRS		32	/* most regions for reads of an endpoint */

struct vrb_domain;
struct vrb_ep;
struct vrb_txop;
struct vrb_walk;

/* -------------------------------------------------------------- read_mr.c */

struct vrb_read_mr {
	struct vrb_read_mr	*next;
	struct ib_mr		*mr;
};

/**
 * struct vrb_read_mrs - regions that reads of an endpoint on iWARP place data
 * into
 * @free: unused regions; protected by vrb_ep_tx.lock
 * @nr_free: number of unused regions; protected by vrb_ep_tx.lock
 * @nr: number of regions; grows under vrb_ep_cm.mutex and vrb_ep_tx.lock. After
 *	enabling only vrb_read_mrs_grow() changes it, and reads it without the locks;
 *	statistics do so, too
 * @want: number of regions that vrb_read_mrs_grow() is to reach; written under
 *	vrb_ep_tx.lock, read without it: each change queues the work item again
 * @err: negative error that kept @nr below @want, or 0; protected by
 *	vrb_ep_tx.lock
 * @short_read: longest read that must not cross a page of the peer, in bytes;
 *	0: none, see VRB_QUIRK_SHORT_READ
 * @pages: pages of a region; 0 if the endpoint needs no regions
 * @sg: @pages entries that describe memory to the device; protected by
 *	vrb_ep_tx.lock
 * @mem: VRB_READ_MRS elements, of which the first @nr have a region of the
 *	device. Fixed from enabling on; statistics read it without a lock at any
 *	time
 */
struct vrb_read_mrs {
	struct vrb_read_mr	*free;
	unsigned int		nr_free;
	unsigned int		nr;
	unsigned int		want;
	int			err;
	unsigned int		short_read;
	unsigned int		pages;
	struct scatterlist	*sg;
	struct vrb_read_mr	*mem;
};

int vrb_read_mrs_init(struct vrb_ep *ep);
int vrb_read_mrs_need(struct vrb_ep *ep, unsigned int n);
void vrb_read_mrs_grow(struct work_struct *work);
void vrb_read_mrs_end(struct vrb_ep *ep);
void vrb_read_mrs_exit(struct vrb_ep *ep);
unsigned int vrb_read_mr_segs(const struct vrb_read_mrs *s, struct vrb_walk *w,
			      struct scatterlist *sg, u64 from, size_t want,
			      u32 *len);
int vrb_read_mr_prepare(struct vrb_ep *ep, struct vrb_txop *op, unsigned int n,
			u32 len, int send_flags, struct ib_reg_wr *wr,
			struct ib_sge *sge);
void vrb_read_mrs_put(struct vrb_ep *ep, struct vrb_txop *op);

/* ------------------------------------------------------------------- mr.c */

extern const struct kofi_mr_ops vrb_mr_ops;

/*
 * Set the address of the region's first byte, as peers use it. The device needs
 * the offset in the page; the other bits are arbitrary. ib_map_mr_sg() sets them
 * to the bits of the DMA address, which on software devices is a kernel address.
 */
static inline void vrb_mr_set_iova(struct ib_mr *mr)
{
	const u64 in_page = mr->page_size - 1;

	mr->iova = (get_random_u64() & GENMASK_ULL(55, 0) & ~in_page) |
		   (mr->iova & in_page);
}

void vrb_mr_connected(struct vrb_ep *ep);
void vrb_mr_ended(struct vrb_ep *ep);
void vrb_mr_ep_init(struct vrb_ep *ep);
void vrb_mr_ep_exit(struct vrb_ep *ep);
void vrb_mr_domain_init(struct vrb_domain *dom);
void vrb_mr_domain_exit(struct vrb_domain *dom);
void vrb_mr_lost(struct vrb_domain *dom);

/* States of a pool's region */
enum vrb_mr_state {
	VRB_MR_OPEN,		/* registered, as far as the endpoint knows */
	VRB_MR_ENDING,		/* the invalidation must be posted */
	VRB_MR_INVALIDATING,	/* the invalidation is outstanding */
	VRB_MR_INVALID,
};

/**
 * struct vrb_mr - memory region
 * @base: region of the core
 * @dom: domain of the region
 * @ib: region of the device; NULL after deregistration; protected by
 *	vrb_domain.mr_mutex outside an open pool
 * @room: pages that @ib can hold
 * @key: current or last key; written under vrb_ep_tx.lock for a region of a pool,
 *	otherwise under vrb_domain.mr_mutex. vrb_mr_invalidated() reads it under RCU
 *	without them, and kofi_mr_end() compares the key again
 * @node: entry of vrb_domain.mrs; protected by vrb_domain.mr_mutex
 * @pending: entry of vrb_domain.mr_pending; protected by vrb_domain.mr_mutex
 * @sg: the memory, cut into segments that can be mapped
 * @max_sg: allocated entries of @sg
 * @nr_sg: used entries of @sg
 * @nents: entries mapped for the device; 0: not mapped
 * @dir: direction of the transfer
 * @reg: completion handler of the registration
 * @inv: completion handler of the invalidation
 * @posted: pool: entry of vrb_ep_mr.posted, from the registration until the
 *	region is fenced; protected by vrb_ep_tx.lock
 * @state: pool: state of the region; protected by vrb_ep_tx.lock
 * @reg_out: pool: a signaled registration is outstanding; protected by
 *	vrb_ep_tx.lock
 * @reg_room: pool: work requests that its completion frees; protected by
 *	vrb_ep_tx.lock
 * @inv_room: pool: work requests that the completed invalidation frees;
 *	protected by vrb_ep_tx.lock
 * @ep: outside a pool: endpoint that registers the region
 * @status: outside a pool: enum ib_wc_status of the registration
 * @registered: outside a pool: completed with the registration
 * @work: pool: deregisters @ib
 */
struct vrb_mr {
	struct kofi_mr		base;
	struct vrb_domain	*dom;
	struct ib_mr		*ib;
	size_t			room;
	u32			key;
	struct list_head	node;
	struct list_head	pending;
	struct scatterlist	*sg;
	unsigned int		max_sg;
	unsigned int		nr_sg;
	int			nents;
	enum dma_data_direction	dir;
	struct ib_cqe		reg;
	struct ib_cqe		inv;
	struct list_head	posted;
	enum vrb_mr_state	state;
	bool			reg_out;
	unsigned int		reg_room;
	unsigned int		inv_room;
	struct vrb_ep		*ep;
	int			status;
	struct completion	registered;
	struct work_struct	work;
};

static inline struct vrb_mr *vrb_mr(struct kofi_mr *base)
{
	return container_of(base, struct vrb_mr, base);
}

int vrb_mr_map(struct vrb_mr *mr);
void vrb_mr_unmap(struct vrb_mr *mr, struct ib_device *dev);
void vrb_mr_show(struct vrb_mr *mr);
void vrb_mr_dereg(struct vrb_mr *mr);
int vrb_mr_post_reg(struct vrb_mr *mr, struct vrb_ep *ep, bool signaled,
		    bool more);
void vrb_mr_reg_end(struct vrb_mr *mr, int status);

/* -------------------------------------------------------------- mr_pool.c */

void vrb_mr_pool_init(struct vrb_mr *mr);
int vrb_mr_pool_open(struct vrb_mr *mr);
void vrb_mr_pool_end(struct vrb_mr *mr);
void vrb_mr_invalidated(struct vrb_ep *ep, u32 key);
void vrb_mr_repost(struct vrb_ep *ep);
void vrb_mr_flush(struct vrb_ep *ep, bool drained);
size_t vrb_mr_ep_wrs(const struct vrb_ep *ep);

#endif /* _KOFI_VERBS_MR_H */
