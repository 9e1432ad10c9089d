/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Free records of operations: freed in any context without a lock, allocated under a
 * lock.
 */
#ifndef _LINUX_KOFI_FREELIST_H
#define _LINUX_KOFI_FREELIST_H

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/spinlock.h>

/**
 * struct kofi_freelist - free records
 * @one: a free record, or NULL; changed by cmpxchg() and xchg(), so that freeing and
 *	allocating one record in turn needs no lock
 * @list: freed records, added without a lock
 * @taken: records removed from @list, under the lock of kofi_freelist_get()
 * @fresh: records that were never allocated, under the lock of kofi_freelist_get(). They
 *	are allocated only if no other is free, so that no more records are in use, and
 *	in the cache, than operations are outstanding.
 */
struct kofi_freelist {
	struct llist_node	*one;
	struct llist_head	list;
	struct llist_node	*taken;
	struct llist_node	*fresh;
};

/**
 * kofi_freelist_add - add a new record
 * @f: free records; all zero if there are none
 * @node: entry of the record
 *
 * Context: any, before @f is used.
 */
static inline void kofi_freelist_add(struct kofi_freelist *f,
				     struct llist_node *node)
{
	node->next = f->fresh;
	f->fresh = node;
}

/**
 * kofi_freelist_put - free a record
 * @f: free records; all zero if there are none
 * @node: entry of the record
 *
 * Context: any; before the operation of the record is completed.
 */
static __always_inline void kofi_freelist_put(struct kofi_freelist *f,
					      struct llist_node *node)
{
	if (READ_ONCE(f->one) || cmpxchg(&f->one, NULL, node))
		llist_add(node, &f->list);
}

static inline struct llist_node *
kofi_freelist_get_listed(struct kofi_freelist *f, spinlock_t *lock)
{
	struct llist_node *node;
	unsigned long irq;

	spin_lock_irqsave(lock, irq);
	/* all at once: one access to a contended cache line for many records */
	if (!f->taken)
		f->taken = llist_del_all(&f->list);
	node = f->taken;
	if (node) {
		f->taken = node->next;
	} else if (f->fresh) {
		node = f->fresh;
		f->fresh = node->next;
	}
	spin_unlock_irqrestore(lock, irq);
	return node;
}

/**
 * kofi_freelist_get - allocate a record
 * @f: free records
 * @lock: lock of the list, equal in all calls
 *
 * Context: any.
 * Return: its node, or NULL.
 */
static __always_inline struct llist_node *
kofi_freelist_get(struct kofi_freelist *f, spinlock_t *lock)
{
	struct llist_node *node = NULL;

	if (READ_ONCE(f->one))
		node = xchg(&f->one, NULL);
	return likely(node) ? node : kofi_freelist_get_listed(f, lock);
}

#endif /* _LINUX_KOFI_FREELIST_H */
