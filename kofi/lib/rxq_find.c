// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Finding posted receives: the oldest that a message fits, and by context.
 *
 * A receive for one tag, or for one sender, is on the list that both are hashed to. A
 * receive that ignores bits of the tag is on a list of all of its kind. An untagged receive
 * for any sender, the most frequent kind, is on another list. Each list is in the order of
 * posts, so the first receive that fits is the oldest on its list. The number of the
 * post decides between two lists. All but the untagged receives for any sender are also
 * on a list by age, to find the oldest of any kind. Even if many receives are posted, a
 * message is compared with few, except for wildcards that it does not fit.
 *
 * A cancel knows only the context, by which receives are also hashed. A short queue is
 * searched instead.
 *
 * All of it under the lock of the queue.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "rxq.h"

#define KOFI_RXQ_FEW	256	/* receives that are searched */
#define KOFI_RXQ_CHAIN	4	/* receives to a list if all are posted */

static struct list_head *kofi_rxq_alloc_lists(struct kofi_rxq *q, int node)
{
	size_t i, n = 1UL << q->bits;
	struct list_head *lists;

	lists = kvcalloc_node(n, sizeof(*lists), GFP_KERNEL, node);
	for (i = 0; lists && i < n; i++)
		INIT_LIST_HEAD(&lists[i]);
	return lists;
}

/**
 * kofi_rxq_init_lists - make the lists of a queue
 * @q: the queue
 * @size: receives that can be posted at a time
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM, after which the caller must still call kofi_rxq_exit_lists().
 */
int kofi_rxq_init_lists(struct kofi_rxq *q, size_t size)
{
	int node = q->ep->domain->node;

	INIT_LIST_HEAD(&q->posted);
	INIT_LIST_HEAD(&q->plain);
	INIT_LIST_HEAD(&q->wild);
	q->bits = size > KOFI_RXQ_FEW ? order_base_2(size / KOFI_RXQ_CHAIN) : 0;
	q->directed = q->ep->info->caps & FI_DIRECTED_RECV;
	q->contexts = NULL;
	q->exact = kofi_rxq_alloc_lists(q, node);
	if (q->bits)
		q->contexts = kofi_rxq_alloc_lists(q, node);
	return q->exact && (q->contexts || !q->bits) ? 0 : -ENOMEM;
}

void kofi_rxq_exit_lists(struct kofi_rxq *q)
{
	kvfree(q->exact);
	kvfree(q->contexts);
	q->exact = NULL;
	q->contexts = NULL;
}

/* hash_64() of no bits shifts by too many */
static u32 kofi_rxq_hash(const struct kofi_rxq *q, u64 key)
{
	return q->bits ? hash_64(key, q->bits) : 0;
}

static struct list_head *kofi_rxq_exact(struct kofi_rxq *q, u64 tag,
					fi_addr_t src)
{
	return &q->exact[kofi_rxq_hash(q, tag ^ hash_64(src, 64))];
}

static struct list_head *kofi_rxq_context(struct kofi_rxq *q,
					  const void *context)
{
	return &q->contexts[kofi_rxq_hash(q, (uintptr_t)context)];
}

/* Insert behind all older receives; the newest goes to the tail at once. */
static __always_inline void kofi_rxop_link(struct list_head *list,
					   struct kofi_rxop *op, size_t member)
{
	struct list_head *before = list->prev;

	while (before != list &&
	       ((struct kofi_rxop *)((void *)before - member))->seq > op->seq)
		before = before->prev;
	list_add((void *)op + member, before);
}

/**
 * kofi_rxq_link - make a receive one that is posted
 * @q: the queue
 * @op: the receive, on no list
 *
 * Context: any, with the queue's lock.
 */
void kofi_rxq_link(struct kofi_rxq *q, struct kofi_rxop *op)
{
	struct list_head *list;

	lockdep_assert_held(&q->lock);

	if (q->contexts)
		kofi_rxop_link(kofi_rxq_context(q, op->context), op,
			       offsetof(struct kofi_rxop, same));
	if (kofi_rxop_plain(op)) {
		kofi_rxop_link(&q->plain, op, offsetof(struct kofi_rxop, node));
		return;
	}
	if (op->tagged && op->ignore)
		list = &q->wild;
	else
		list = kofi_rxq_exact(q, op->tagged ? op->tag : 0, op->src);
	kofi_rxop_link(list, op, offsetof(struct kofi_rxop, node));
	kofi_rxop_link(&q->posted, op, offsetof(struct kofi_rxop, age));
}

static struct kofi_rxop *kofi_rxq_older_one(struct kofi_rxop *a,
					    struct kofi_rxop *b)
{
	return !a || (b && b->seq < a->seq) ? b : a;
}

/* The first on a list that the message fits, if it is older than another. */
static struct kofi_rxop *kofi_rxq_older(const struct list_head *list,
					const struct kofi_rxmsg *rxmsg,
					struct kofi_rxop *than)
{
	struct kofi_rxop *op;

	list_for_each_entry(op, list, node) {
		if (than && op->seq > than->seq)
			break;
		if (kofi_rxop_fits(op, rxmsg))
			return op;
	}
	return than;
}

/**
 * kofi_rxq_oldest_of - kofi_rxq_oldest() where there are several kinds
 * @q: the queue
 * @rxmsg: the message
 *
 * Context: any, with the queue's lock.
 * Return: as there.
 */
struct kofi_rxop *kofi_rxq_oldest_of(struct kofi_rxq *q,
				     const struct kofi_rxmsg *rxmsg)
{
	u64 tag = rxmsg->tagged ? rxmsg->tag : 0;
	struct kofi_rxop *op = NULL;

	lockdep_assert_held(&q->lock);

	if (rxmsg->tagged)
		op = kofi_rxq_older(kofi_rxq_exact(q, tag, FI_ADDR_UNSPEC),
				    rxmsg, op);
	else
		op = kofi_rxq_older(&q->plain, rxmsg, op);
	if (q->directed)
		op = kofi_rxq_older(kofi_rxq_exact(q, tag, rxmsg->src), rxmsg,
				    op);
	/* last: the others bound how far it looks */
	if (rxmsg->tagged)
		op = kofi_rxq_older(&q->wild, rxmsg, op);
	return op;
}

/**
 * kofi_rxq_oldest_any - find the oldest posted receive
 * @q: the queue
 *
 * Context: any, with the queue's lock.
 * Return: the receive, or NULL.
 */
struct kofi_rxop *kofi_rxq_oldest_any(struct kofi_rxq *q)
{
	lockdep_assert_held(&q->lock);

	return kofi_rxq_older_one(list_first_entry_or_null(&q->plain,
							   struct kofi_rxop,
							   node),
				  list_first_entry_or_null(&q->posted,
							   struct kofi_rxop,
							   age));
}

/**
 * kofi_rxq_search - find a posted receive by its context
 * @q: the queue
 * @context: context of the post
 *
 * Context: any, with the queue's lock.
 * Return: the oldest, or NULL.
 */
struct kofi_rxop *kofi_rxq_search(struct kofi_rxq *q, const void *context)
{
	struct kofi_rxop *op, *plain = NULL;

	lockdep_assert_held(&q->lock);

	if (q->contexts) {
		list_for_each_entry(op, kofi_rxq_context(q, context), same)
			if (op->context == context)
				return op;
		return NULL;
	}
	list_for_each_entry(op, &q->plain, node) {
		if (op->context == context) {
			plain = op;
			break;
		}
	}
	list_for_each_entry(op, &q->posted, age)
		if (op->context == context)
			return kofi_rxq_older_one(op, plain);
	return plain;
}
