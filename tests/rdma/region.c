// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions, and from an address to memory.
 *
 * A region is a list of what the device sees: pages of one size, or, if it may
 * have gaps, segments as they come. A work request copies key and rights, and
 * makes it valid; another, or a message of the peer's, makes it invalid.
 *
 * What the device is given of memory it looks up as hardware would. So an
 * address that is none for DMA is seen at once, and complained about.
 */
#include <linux/dma-direct.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../kunit/backport.h"
#include "testrdma.h"

/* ----------------------------------------------------------------- lookups */

/* With the device's lock held */
struct trd_mr *trd_mr_find(struct trd_dev *dev, u32 key)
{
	struct trd_mr *mr = xa_load(&dev->mrs, key >> 8);

	return mr && mr->valid && mr->key == key ? mr : NULL;
}

/* Does a key open a segment? All of memory only to who owns it */
bool trd_may(struct trd_dev *dev, const struct ib_pd *pd,
	     const struct ib_sge *sge, int access)
{
	const int remote = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	struct trd_mr *mr;

	if (!sge->length || (sge->lkey == TRD_KEY && !(access & remote)))
		return true;
	mr = trd_mr_find(dev, sge->lkey);
	return mr && mr->ib.pd == pd && (mr->access & access) == access &&
	       sge->addr >= mr->iova &&
	       sge->addr - mr->iova <= mr->ib.length &&
	       sge->length <= mr->ib.length - (sge->addr - mr->iova);
}

/* Where a segment of a region is, and for how long */
static u64 trd_mr_addr(const struct trd_mr *mr, u64 addr, size_t *len)
{
	u64 off = addr - mr->iova + mr->skip;
	unsigned int i;

	for (i = 0; i < mr->nr; i++) {
		const struct trd_seg *seg = &mr->segs[i];

		if (off < seg->len) {
			*len = min_t(u64, *len, seg->len - off);
			return seg->addr + off;
		}
		off -= seg->len;
	}
	return 0;
}

/**
 * trd_at - the memory of a segment
 * @dev: the device, with its lock held
 * @sge: allowed by trd_may()
 * @off: bytes to skip
 * @len: how many are wanted; set to how many are in a row
 *
 * Return: where the CPU sees them; NULL for an address that is none.
 */
void *trd_at(struct trd_dev *dev, const struct ib_sge *sge, u32 off,
	     size_t *len)
{
	u64 addr = sge->addr + off;
	phys_addr_t phys;

	if (sge->lkey != TRD_KEY)
		addr = trd_mr_addr(trd_mr_find(dev, sge->lkey), addr, len);
	phys = dma_to_phys(dev->ib.dma_device, addr);
	if (WARN(phys == (phys_addr_t)-1 || !pfn_valid(PHYS_PFN(phys)),
		 "kofi_testrdma: %#llx is no address for DMA\n", addr))
		return NULL;
	*len = min_t(size_t, *len, PAGE_SIZE - offset_in_page(phys));
	return phys_to_virt(phys);
}

/* ------------------------------------------------------------------- verbs */

static struct ib_mr *trd_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				  u32 max)
{
	struct trd_dev *dev = trd_dev(pd->device);
	struct trd_mr *mr;
	u32 index;
	int err;

	if (type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max || max > TRD_PAGES)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->segs = kvcalloc(max, sizeof(*mr->segs), GFP_KERNEL);
	err = mr->segs ? xa_alloc(&dev->mrs, &index, mr,
				  XA_LIMIT(0x10000, 0xfffff), GFP_KERNEL) :
			 -ENOMEM;
	if (err) {
		kvfree(mr->segs);
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->type = type;
	mr->max = max;
	mr->ib.lkey = index << 8;
	mr->ib.rkey = mr->ib.lkey;
	return &mr->ib;
}

static int trd_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_mr *mr = trd_mr(ib);
	unsigned long irq;

	xa_erase(&dev->mrs, ib->rkey >> 8);
	/* who has found it has it no longer than the lock */
	spin_lock_irqsave(&dev->lock, irq);
	mr->valid = false;
	spin_unlock_irqrestore(&dev->lock, irq);
	kvfree(mr->segs);
	kfree(mr);
	return 0;
}

static int trd_set_page(struct ib_mr *ib, u64 addr)
{
	struct trd_mr *mr = trd_mr(ib);

	if (mr->nr == mr->max)
		return -ENOMEM;
	mr->segs[mr->nr++] = (struct trd_seg) { addr, ib->page_size };
	return 0;
}

static int trd_map_gaps(struct trd_mr *mr, struct scatterlist *sgl, int nents)
{
	struct scatterlist *sg;
	int i;

	mr->ib.iova = sg_dma_address(sgl);
	mr->ib.length = 0;
	mr->skip = 0;
	for_each_sg(sgl, sg, min_t(int, nents, mr->max), i) {
		mr->segs[i] = (struct trd_seg) {
			sg_dma_address(sg), sg_dma_len(sg)
		};
		mr->ib.length += sg_dma_len(sg);
	}
	mr->nr = i;
	return i;
}

/* Only who has a region that is not valid may do this. */
static int trd_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents,
			 unsigned int *offset)
{
	struct trd_mr *mr = trd_mr(ib);
	int n;

	if (WARN_ON_ONCE(mr->valid) || (offset && *offset))
		return -EINVAL;
	mr->nr = 0;
	if (mr->type == IB_MR_TYPE_SG_GAPS)
		return trd_map_gaps(mr, sg, nents);
	n = ib_sg_to_pages(ib, sg, nents, NULL, trd_set_page);
	mr->skip = ib->iova & (ib->page_size - 1);
	return n;
}

/* Nothing in the kernel needs these two, which ib_core wants a device to have. */
static struct ib_mr *trd_get_dma_mr(struct ib_pd *pd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static REG_USER_MR(trd_reg_user_mr)
{
	return ERR_PTR(-EOPNOTSUPP);
}

const struct ib_device_ops trd_region_ops = {
	.alloc_mr	= trd_alloc_mr,
	.dereg_mr	= trd_dereg_mr,
	.get_dma_mr	= trd_get_dma_mr,
	.map_mr_sg	= trd_map_mr_sg,
	.reg_user_mr	= trd_reg_user_mr,
};
