// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: opening and closing, slots (fi_cq(3), kofi.h).
 *
 * Normal operation
 *
 * The core owns the queue: a ring of completions under one irqsave lock. An
 * operation is accepted only with a slot reserved, so the ring cannot overrun
 * and completing needs no memory. Entries are read (cq_read.c), or each entry's
 * kofi_cqe is called, in the context the queue was opened with (cq_call.c).
 *
 * Slots
 *
 * Two counters manage the slots. Posts increment the number of reserved slots, without
 * the lock. Completions increment the number of released slots: the head of the ring,
 * slots released unused, and slots of completions that bypassed the ring. If the
 * difference has reached the limit, an operation takes the lock, joins a list, and tries
 * again. Receives may not use the last slots: otherwise, with all receives posted, no
 * transmit could be.
 *
 * Locks
 *
 * Completing, kicking and waking happen under the lock, and closing takes it:
 * when a consumer that has seen a completion has closed the endpoint, the
 * context that delivered it no longer uses the queue. A device's report takes
 * no lock: closing an endpoint first waits for the provider's drain, which returns after
 * the last report. The locks of two queues are never held together, and
 * locks of receive queues are outside.
 *
 * "Completion queues" in Documentation/internals.rst describes write space,
 * streams that wait for slots, devices, and the closing of an endpoint.
 */
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/kofi/backport.h>
#include <linux/kofi/debug.h>

#include "cq.h"
#include "kofi_trace.h"

#define KOFI_CQ_SIZE		1024	/* attr->size 0 */
#define KOFI_CQ_SIZE_MAX	SZ_4M

/* Start of free-running counters: they wrap early in tests, not after a year */
#define KOFI_CQ_FIRST		(-64U)

static struct workqueue_struct *kofi_cq_wq;

/* -------------------------------------------------------- call-back context */

static void kofi_cq_sched_remote(void *info)
{
	irq_poll_sched(info);
}

/* Schedule the work item that owns the queue. */
void kofi_cq_queue_work(struct kofi_cq *cq)
{
	if (cq->cpu >= 0 && cpu_online(cq->cpu))
		queue_work_on(cq->cpu, kofi_cq_wq, &cq->run.work);
	else
		queue_work(kofi_cq_wq, &cq->run.work);
}

/**
 * kofi_cq_start_owner - schedule the context that calls the consumer
 * @cq: the queue; does nothing for a queue that its consumer polls
 *
 * Context: any, with interrupts off.
 */
void kofi_cq_start_owner(struct kofi_cq *cq)
{
	if (cq->poll == KOFI_POLL_DIRECT ||
	    test_and_set_bit(KOFI_CQ_ACTIVE, &cq->active))
		return;
	if (cq->poll == KOFI_POLL_WORKQUEUE)
		kofi_cq_queue_work(cq);
	else if (cq->cpu < 0 || cq->cpu == smp_processor_id())
		irq_poll_sched(&cq->run.iop);
	else if (IS_ENABLED(CONFIG_PREEMPT_RT))
		/* such a kernel warns of softirqs that a call from another CPU raises */
		kofi_cq_queue_work(cq);
	else if (smp_call_function_single_async(cq->cpu, &cq->run.csd))
		irq_poll_sched(&cq->run.iop);
}

/**
 * kofi_cq_space - list an endpoint for its write-space callback
 * @ep: the endpoint
 *
 * Uses the transmit queue, or the receive queue if the endpoint does not transmit. The
 * caller holds the lock of a queue of the endpoint, which keeps the endpoint.
 *
 * Return: the queue; NULL if the endpoint has no callback, or will get no further one.
 */
struct kofi_cq *kofi_cq_space(struct kofi_ep *ep)
{
	struct kofi_cq *cq = ep->tx_cq ?: ep->rx_cq;

	if (!ep->space.fn || test_bit(KOFI_EP_DRAINED, &ep->space.blocked))
		return NULL;
	if (!test_and_set_bit(KOFI_EP_SPACE, &ep->space.blocked)) {
		llist_add(&ep->space.node, &cq->space.list);
		kofi_cq_kick(cq);
	}
	return cq;
}

/**
 * kofi_cq_wake_waiting - wake waiters after slots were released
 * @cq: the queue, with its lock held
 *
 * Wakes all streams, which are first in the list, and as many endpoints as there are free
 * slots. An endpoint that is woken need not post; the slots are checked again
 * after its callback, and when it is closed before that. So only endpoints count
 * that this queue calls back: the callback of another queue may take long.
 */
void kofi_cq_wake_waiting(struct kofi_cq *cq)
{
	struct kofi_cq_wait *wait, *next;
	enum kofi_dir dir;
	int n;

	lockdep_assert_held(&cq->lock);

	for (dir = KOFI_TX; dir <= KOFI_RX; dir++) {
		n = cq->limit[dir] - kofi_cq_used(cq);
		list_for_each_entry_safe(wait, next, &cq->space.waiting[dir], node) {
			if (n <= 0)
				break;
			list_del_init(&wait->node);
			if (wait->wake)
				wait->wake(wait);
			else
				n -= kofi_cq_space(wait->ep) == cq;
		}
	}
}

/* ------------------------------------------------------------------ slots */

/*
 * Wait for a slot, unless one is free: the owner releases slots
 * without the lock and checks the list afterwards.
 */
static bool kofi_cq_wait_slot(struct kofi_cq *cq, struct kofi_cq_wait *wait,
			      enum kofi_dir dir)
{
	bool added = list_empty(&wait->node);

	lockdep_assert_held(&cq->lock);

	if (added && wait->wake)
		list_add(&wait->node, &cq->space.waiting[dir]);
	else if (added)
		list_add_tail(&wait->node, &cq->space.waiting[dir]);
	/* the list, before the number; the owner releases slots without this lock */
	smp_mb();
	if (!kofi_cq_take_slot(cq, dir)) {
		cq->stats.again++;
		return true;
	}
	/* a free slot must not go to another post of the endpoint */
	if (added)
		list_del_init(&wait->node);
	return false;
}

/**
 * kofi_cq_reserve - reserve a slot for an operation, with the slow path
 * @cq: the queue
 * @ep: the endpoint; its write-space callback follows -EAGAIN
 * @dir: direction of the operation
 *
 * Context: any.
 * Return: 0, -EAGAIN, or -ESHUTDOWN when @ep has been drained.
 */
int kofi_cq_reserve(struct kofi_cq *cq, struct kofi_ep *ep, enum kofi_dir dir)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if (test_bit(KOFI_EP_DRAINED, &ep->space.blocked)) {
		ret = -ESHUTDOWN;
	} else if (ep->space.fn) {
		if (kofi_cq_wait_slot(cq, &ep->space.wait[dir], dir))
			ret = -EAGAIN;
	} else {
		cq->stats.again++;
		ret = -EAGAIN;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/**
 * kofi_cq_reserve_wait - reserve a slot for an incoming message or access
 * @cq: the queue
 * @wait: called once after -EAGAIN, when a slot may be free
 *
 * May use the slots that posted receives must leave free: it is short-lived, and
 * the receives may be behind it in the same stream.
 *
 * Context: any.
 * Return: 0 or -EAGAIN.
 */
int kofi_cq_reserve_wait(struct kofi_cq *cq, struct kofi_cq_wait *wait)
{
	unsigned long flags;
	int ret = 0;

	if (kofi_cq_take_slot(cq, KOFI_TX))
		return 0;
	spin_lock_irqsave(&cq->lock, flags);
	if (kofi_cq_wait_slot(cq, wait, KOFI_TX))
		ret = -EAGAIN;
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/* The queue may be NULL. */
void kofi_cq_unwait(struct kofi_cq *cq, struct kofi_cq_wait *wait)
{
	unsigned long flags;

	if (!cq)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	list_del_init(&wait->node);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/**
 * kofi_cq_unreserve - release a reserved slot
 * @cq: the queue
 *
 * Context: any.
 */
void kofi_cq_unreserve(struct kofi_cq *cq)
{
	unsigned long flags;
	bool bh;

	bh = kofi_cq_lock(cq, &flags);
	WRITE_ONCE(cq->freed, cq->freed + 1);
	kofi_cq_freed(cq);
	kofi_cq_unlock(cq, flags, bh);
}

/* --------------------------------------------------------- opening, closing */

static void kofi_cq_free(struct kofi_cq *cq)
{
	lockdep_unregister_key(&cq->run.key);
	kvfree(cq->sources);
	kvfree(cq->ring);
	kfree(cq->priv);
	kfree(cq);
}

static int kofi_cq_close(struct fi_fid *fid)
{
	struct kofi_cq *cq = container_of(fid, struct kofi_cq, cq.fid);

	kofi_cq_will_wait(cq);
	/* No endpoint is left, but a notify handler may be running. */
	spin_lock_irq(&cq->lock);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait,
			    !test_bit(KOFI_CQ_ACTIVE, &cq->active), cq->lock);
	spin_unlock_irq(&cq->lock);
	kofi_wait_leave(&cq->sleep.link);
	if (cq->ops && cq->ops->close)
		cq->ops->close(cq);
	kofi_obj_exit(&cq->obj);
	kofi_cq_free(cq);
	return 0;
}

static int kofi_cq_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_cq *cq = container_of(fid, struct kofi_cq, cq.fid);

	return kofi_wait_control(cq->wait_obj, &cq->sleep.wait, command, arg);
}

static const struct fi_ops kofi_cq_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_cq_close,
	.control	= kofi_cq_control,
};

static void kofi_cq_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_cq *cq = container_of(obj, struct kofi_cq, obj);
	u64 completions, failed, again;
	u32 waiting, reserved;

	spin_lock_irq(&cq->lock);
	reserved = kofi_cq_used(cq);
	waiting = kofi_cq_count(cq);
	reserved -= min(reserved, waiting);	/* the owner may be between two steps */
	completions = cq->stats.completions + READ_ONCE(cq->own.reports);
	failed = cq->stats.failed;
	again = cq->stats.again;
	spin_unlock_irq(&cq->lock);

	fn(arg, "size", cq->limit[KOFI_RX]);
	fn(arg, "waiting", waiting);
	fn(arg, "reserved", reserved);
	fn(arg, "completions", completions);
	fn(arg, "errors", failed);
	fn(arg, "again", again);
}

static bool kofi_cq_waits_for_caller(struct kofi_obj *obj)
{
	return kofi_cq_calls_caller(container_of(obj, struct kofi_cq, obj));
}

static const struct kofi_obj_ops kofi_cq_obj_ops = {
	.stats			= kofi_cq_stats,
	.waits_for_caller	= kofi_cq_waits_for_caller,
	.pending		= kofi_cq_pending,
};

/* Check that the number with FI_AFFINITY is a CPU. */
static bool kofi_cq_check_cpu(u64 flags, int cpu)
{
	return !(flags & FI_AFFINITY) || (cpu >= 0 && cpu < (int)nr_cpu_ids);
}

static int kofi_cq_check(const struct fi_cq_attr *attr,
			 const struct kofi_cq_attr *kattr)
{
	if ((attr->flags | kattr->flags) & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (!kofi_cq_check_cpu(attr->flags, attr->signaling_vector) ||
	    !kofi_cq_check_cpu(kattr->flags, kattr->cpu))
		return -EINVAL;
	if (attr->size > KOFI_CQ_SIZE_MAX ||
	    (unsigned int)attr->format > FI_CQ_FORMAT_TAGGED ||
	    (unsigned int)attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -EINVAL;
	if ((unsigned int)kattr->poll > KOFI_POLL_WORKQUEUE)
		return -EINVAL;
	if (kattr->notify && (kattr->done || kattr->poll == KOFI_POLL_DIRECT))
		return -EINVAL;
	if (kattr->done && attr->wait_obj != FI_WAIT_NONE)
		return -EINVAL;
	return kofi_wait_check(attr->wait_obj);
}

/**
 * kofi_cq_add_sources - allocate room for the addresses of senders
 * @cq: queue of an endpoint with FI_SOURCE_ERR that receives
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kofi_cq_add_sources(struct kofi_cq *cq)
{
	void *sources;

	if (READ_ONCE(cq->sources))
		return 0;
	sources = kvmalloc_node(array_size(cq->slots, kofi_cq_source_size(cq)),
				GFP_KERNEL, cq->domain->node);
	if (!sources)
		return -ENOMEM;
	/* another endpoint may have added the room concurrently */
	if (cmpxchg(&cq->sources, NULL, sources))
		kvfree(sources);
	return 0;
}

/* The provider's part, if it has one */
static int kofi_cq_open_priv(struct kofi_cq *cq, const struct fi_cq_attr *attr,
			     const struct kofi_cq_attr *kattr)
{
	if (!cq->ops)
		return 0;
	cq->priv = kzalloc_node(cq->ops->priv_size, GFP_KERNEL,
				cq->domain->node);
	if (!cq->priv)
		return -ENOMEM;
	return cq->ops->open ? cq->ops->open(cq, attr, kattr) : 0;
}

/**
 * kofi_cq_make - open a completion queue of a device
 * @fid_domain: the domain
 * @attr: attributes, checked by kofi_cq_open()
 * @kattr: attributes of the kernel, checked by kofi_cq_open(); cpu is valid, or -1
 * @ops: operations of the provider, or NULL
 * @fid: receives the queue
 * @context: context of the consumer
 *
 * For a provider's fi_ops_domain.cq_open.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM; -EBUSY if the domain is being closed; -FI_EDOMAIN; the
 * error of kofi_cq_ops.open.
 */
int kofi_cq_make(struct fid_domain *fid_domain, const struct fi_cq_attr *attr,
		 const struct kofi_cq_attr *kattr,
		 const struct kofi_cq_ops *ops, struct fid_cq **fid,
		 void *context)
{
	struct kofi_domain *domain =
		container_of(fid_domain, struct kofi_domain, domain);
	u32 size = attr->size ?: KOFI_CQ_SIZE;
	struct kofi_cq *cq;
	int ret;

	cq = kzalloc_node(sizeof(*cq), GFP_KERNEL, domain->node);
	if (!cq)
		return -ENOMEM;
	lockdep_register_key(&cq->run.key);
	lockdep_init_map(&cq->run.map, "kofi_cq", &cq->run.key, 0);
	cq->domain = domain;
	cq->ops = ops;
	cq->poll = kattr->poll;
	cq->cpu = kattr->cpu;
	cq->done = kattr->done;
	cq->notify = kattr->notify;
	cq->armed = !!cq->notify;
	cq->format = attr->format;
	cq->wait_obj = attr->wait_obj;
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->limit[KOFI_RX] = size;
	cq->limit[KOFI_TX] = size + max(size / 8, 1U);
	cq->slots = cq->limit[KOFI_TX] + KOFI_CQ_BATCH;
	atomic_set(&cq->taken, KOFI_CQ_FIRST);
	cq->seen = KOFI_CQ_FIRST;
	cq->own.head = KOFI_CQ_FIRST;
	cq->tail = KOFI_CQ_FIRST;
	cq->own.returned = KOFI_CQ_FIRST;
	spin_lock_init(&cq->lock);
	init_waitqueue_head(&cq->flush_wait);
	INIT_LIST_HEAD(&cq->space.waiting[KOFI_TX]);
	INIT_LIST_HEAD(&cq->space.waiting[KOFI_RX]);
	init_llist_head(&cq->space.list);
	init_llist_head(&cq->own.posters);
	init_waitqueue_head(&cq->sleep.wait);
	irq_poll_init(&cq->run.iop, KOFI_CQ_BUDGET_IRQ, kofi_cq_irq_poll);
	INIT_CSD(&cq->run.csd, kofi_cq_sched_remote, &cq->run.iop);
	INIT_WORK(&cq->run.work, kofi_cq_work);

	ret = -ENOMEM;
	cq->ring = kvmalloc_node(array_size(cq->slots, sizeof(*cq->ring)),
				 GFP_KERNEL, domain->node);
	if (!cq->ring)
		goto free;
	ret = kofi_obj_init(&cq->obj, &cq->cq.fid, FI_CLASS_CQ,
			    &kofi_cq_fid_ops, &domain->obj, domain->obj.prov,
			    context);
	if (ret)
		goto free;
	cq->obj.ops = &kofi_cq_obj_ops;
	ret = kofi_wait_join(&cq->sleep.link, &cq->cq.fid, attr->wait_obj,
			     attr->wait_set, domain->fabric);
	if (ret)
		goto exit;
	ret = kofi_cq_open_priv(cq, attr, kattr);
	if (ret)
		goto leave;
	kofi_obj_publish(&cq->obj);
	*fid = &cq->cq;
	return 0;

leave:
	kofi_wait_leave(&cq->sleep.link);
exit:
	kofi_obj_exit(&cq->obj);
free:
	kofi_cq_free(cq);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_cq_make);

/**
 * kofi_cq_open - open a completion queue with a chosen call-back context
 * @domain: domain of the endpoints that will report to it
 * @attr: size, the number of operations that may be outstanding or unread, 0
 *	means 1024; format, UNSPEC means CONTEXT; wait_obj FI_WAIT_NONE,
 *	FI_WAIT_UNSPEC, FI_WAIT_YIELD, KOFI_WAIT_QUEUE, or FI_WAIT_SET with a
 *	set in wait_set; wait_cond; flags FI_AFFINITY for a CPU in
 *	signaling_vector, used if @kattr has none. NULL, or zero in all members,
 *	means all defaults.
 * @kattr: attributes of the kernel; NULL as for fi_cq_open()
 * @cq: receives the queue
 * @context: stored in fid.context and passed to notify
 *
 * fi_cq(3). Transmits may use an eighth more slots than receives, so that
 * receives that stay posted never exclude them.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -ENOSYS for a wait object that exists only in user
 * space; -FI_EDOMAIN for a wait set of another fabric; -EBUSY if @domain or the
 * set is being closed; -ENOMEM; the provider's error.
 */
int kofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 const struct kofi_cq_attr *kattr, struct fid_cq **cq,
		 void *context)
{
	struct kofi_cq_attr own = { .poll = KOFI_POLL_WORKQUEUE };
	struct fi_cq_attr defaults = {};
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !cq)
		return -EINVAL;
	if (!attr)
		attr = &defaults;
	if (kattr)
		own = *kattr;
	ret = kofi_cq_check(attr, &own);
	if (ret)
		return ret;
	if (!(own.flags & FI_AFFINITY))
		own.cpu = attr->flags & FI_AFFINITY ? attr->signaling_vector :
						      -1;

	ret = domain->ops->cq_open ?
	      domain->ops->cq_open(domain, attr, &own, cq, context) :
	      kofi_cq_make(domain, attr, &own, NULL, cq, context);
	return kofi_refused(domain->fid.obj, "fi_cq_open", ret);
}
EXPORT_SYMBOL_GPL(kofi_cq_open);

/**
 * fi_cq_open - open a completion queue that is read
 * @domain: as kofi_cq_open()
 * @attr: as kofi_cq_open()
 * @cq: as kofi_cq_open()
 * @context: the consumer's, in fid.context
 *
 * fi_cq(3). Write-space callbacks of its endpoints run in a work item.
 *
 * Context: process, may sleep.
 * Return: as kofi_cq_open().
 */
int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **cq, void *context)
{
	return kofi_cq_open(domain, attr, NULL, cq, context);
}
EXPORT_SYMBOL_GPL(fi_cq_open);

int kofi_cq_start(void)
{
	kofi_cq_wq = kofi_wq_alloc("kofi_cq");
	return kofi_cq_wq ? 0 : -ENOMEM;
}

void kofi_cq_stop(void)
{
	destroy_workqueue(kofi_cq_wq);
}
