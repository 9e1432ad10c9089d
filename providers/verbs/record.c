// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for records of operations: one array for a queue.
 */
#include <linux/align.h>
#include <linux/cache.h>
#include <linux/slab.h>

#include "verbs.h"

/**
 * vrb_recs_init - allocate records of operations
 * @r: zeroed
 * @nr: number of records
 * @size: bytes of a record
 * @node: NUMA node
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_recs_init(struct vrb_recs *r, unsigned int nr, size_t size, int node)
{
	size = ALIGN(size, SMP_CACHE_BYTES);
	r->mem = kvcalloc_node(nr, size, GFP_KERNEL, node);
	if (!r->mem)
		return -ENOMEM;
	r->nr = nr;
	r->size = size;
	return 0;
}

void vrb_recs_exit(struct vrb_recs *r)
{
	kvfree(r->mem);
	*r = (struct vrb_recs) {};
}
