/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records of operations that are not in use: given back in any context without a
 * lock, taken by one at a time.
 */
#ifndef _LINUX_KOFI_FREELIST_H
#define _LINUX_KOFI_FREELIST_H

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/spinlock.h>

/**
 * struct kofi_freelist - records that are not in use
 * @one: one of them: who gives one back and takes one in turn needs no lock
 * @list: others
 * @taken: those that are no longer on @list, under the lock of who takes one
 * @fresh: those that have never been in use, under the same lock. One of these is
 *	taken only when there is no other, so that as few records are used, and stay in
 *	the cache, as operations are under way at a time.
 */
struct kofi_freelist {
	struct llist_node	*one;
	struct llist_head	list;
	struct llist_node	*taken;
	struct llist_node	*fresh;
};

/**
 * kofi_freelist_add - put a new record
 * @f: records that are not in use; all zero if there are none
 * @node: in the record
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
 * kofi_freelist_put - give a record back
 * @f: records that are not in use; all zero if there are none
 * @node: in the record
 *
 * Context: any; an operation's is put before the operation is completed.
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
	/* all at once: that is one access to what others write for many takes */
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
 * kofi_freelist_get - take a record
 * @f: records that are not in use
 * @lock: the same one in all calls
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
