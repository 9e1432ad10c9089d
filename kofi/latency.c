// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Latency of transmits: a histogram of the times from post to completion.
 *
 * Normal operation
 *
 * A user enables the histogram of an endpoint by netlink. Only one transmit of the
 * endpoint is timed at any moment: the post stores its context and the time, and the
 * completion with this context completes the sample. Other transmits are ignored. So an
 * operation needs no time stamp, and posts and completions share one word.
 *
 * A histogram is found by the number of its endpoint, under RCU.
 * While no endpoint has one, a static branch skips all of this.
 *
 * Limits
 *
 * A transmit without a context is not timed. If two outstanding transmits have equal
 * contexts, which consumers of read queues may use, the completion of the first one
 * completes the sample.
 */
#include <linux/bitops.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/xarray.h>

#include <kunit/visibility.h>

#include "cq.h"
#include "latency.h"

/**
 * struct kofi_latency - histogram of an endpoint
 * @context: context of the timed transmit; NULL for none; the structure
 *	itself while a post fills in @start
 * @start: time of the post in nanoseconds
 * @counts: number of samples by the number of bits of their nanoseconds
 * @rcu: posts and completions may still use the histogram
 */
struct kofi_latency {
	void		*context;
	u64		start;
	atomic64_t	counts[KOFI_LATENCY_BUCKETS];
	struct rcu_head	rcu;
};

DEFINE_STATIC_KEY_FALSE(kofi_latency_on);
EXPORT_SYMBOL_IF_KUNIT(kofi_latency_on);

static DEFINE_XARRAY(kofi_latencies);		/* by the number of the endpoint */
static DEFINE_MUTEX(kofi_latency_mutex);	/* turning on and off */

/**
 * kofi_latency_posted - begin a sample unless one is active
 * @ep: the endpoint
 * @context: context of a transmit that is about to be posted
 *
 * Context: any.
 */
void kofi_latency_posted(struct kofi_ep *ep, void *context)
{
	struct kofi_latency *l;

	if (!context)
		return;
	rcu_read_lock();
	l = xa_load(&kofi_latencies, ep->obj.id);
	if (l && !READ_ONCE(l->context) && !cmpxchg(&l->context, NULL, l)) {
		l->start = ktime_get_ns();
		/* after its start; no lock, since each post and completion comes here */
		smp_store_release(&l->context, context);
	}
	rcu_read_unlock();
}

/**
 * kofi_latency_refused - discard the active sample after a refused transmit
 * @ep: the endpoint
 *
 * The sample may belong to another transmit; losing it does no harm.
 *
 * Context: any.
 */
void kofi_latency_refused(struct kofi_ep *ep)
{
	struct kofi_latency *l;

	rcu_read_lock();
	l = xa_load(&kofi_latencies, ep->obj.id);
	if (l)
		xchg(&l->context, NULL);
	rcu_read_unlock();
}

/**
 * kofi_latency_completed - complete the active sample if it has this context
 * @ep: the endpoint
 * @context: context of the completed transmit
 *
 * Context: any.
 */
void kofi_latency_completed(struct kofi_ep *ep, void *context)
{
	struct kofi_latency *l;
	u64 start;

	if (!context)
		return;
	rcu_read_lock();
	l = xa_load(&kofi_latencies, ep->obj.id);
	/* before its start, see kofi_latency_posted() */
	if (l && smp_load_acquire(&l->context) == context) {
		start = READ_ONCE(l->start);
		if (cmpxchg(&l->context, context, NULL) == context)
			atomic64_inc(&l->counts[min(fls64(ktime_get_ns() - start),
						    KOFI_LATENCY_BUCKETS - 1)]);
	}
	rcu_read_unlock();
}

static int kofi_latency_start(struct kofi_ep *ep)
{
	struct kofi_latency *l;
	int err;

	lockdep_assert_held(&kofi_latency_mutex);
	if (xa_load(&kofi_latencies, ep->obj.id))
		return 0;
	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	err = xa_insert(&kofi_latencies, ep->obj.id, l, GFP_KERNEL);
	if (err)
		kfree(l);
	else
		static_branch_inc(&kofi_latency_on);
	return err;
}

static void kofi_latency_stop(struct kofi_ep *ep)
{
	struct kofi_latency *l;

	lockdep_assert_held(&kofi_latency_mutex);
	l = xa_erase(&kofi_latencies, ep->obj.id);
	if (!l)
		return;
	static_branch_dec(&kofi_latency_on);
	kfree_rcu(l, rcu);
}

/**
 * kofi_latency_set - enable or disable the histogram of an endpoint
 * @ep: an open endpoint
 * @on: enable it, with empty buckets unless it is enabled already
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kofi_latency_set(struct kofi_ep *ep, bool on)
{
	/* closing an endpoint takes the mutex, too, perhaps for writeback */
	unsigned int noio = memalloc_noio_save();
	int err = 0;

	mutex_lock(&kofi_latency_mutex);
	if (on)
		err = kofi_latency_start(ep);
	else
		kofi_latency_stop(ep);
	mutex_unlock(&kofi_latency_mutex);
	memalloc_noio_restore(noio);
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_latency_set);

/**
 * kofi_latency_get - read the histogram of an endpoint
 * @ep: an open endpoint
 * @counts: receives the number of samples by the number of bits of their nanoseconds
 *
 * Context: any.
 * Return: false if it is disabled.
 */
bool kofi_latency_get(struct kofi_ep *ep, u64 counts[KOFI_LATENCY_BUCKETS])
{
	struct kofi_latency *l;
	int i;

	rcu_read_lock();
	l = xa_load(&kofi_latencies, ep->obj.id);
	for (i = 0; l && i < KOFI_LATENCY_BUCKETS; i++)
		counts[i] = atomic64_read(&l->counts[i]);
	rcu_read_unlock();
	return l;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_latency_get);
