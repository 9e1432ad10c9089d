// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues (fi_eq(3)).
 *
 * An event queue is a list of struct kofi_event under one lock. Events that
 * must not be lost (results of connection attempts, disconnects) are part
 * of their endpoint, so that queuing them takes no memory and cannot fail. All
 * others (connection requests, notices, the consumer's own) are allocated, and
 * attr->size limits their number. An
 * FI_EOVERRUN error entry takes the place of rejected events in
 * the order, and the queue continues to work.
 *
 * Readers copy an event under the lock. Therefore kofi_eq_purge() suffices
 * before an object is freed: afterwards no event points to it
 * and no reader copies one.
 *
 * A handler (kofi_eq_open()) is called in a work item after an event has
 * been queued since its last call. The work queue is WQ_MEM_RECLAIM
 * because connections to storage are re-established from there.
 */
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/kofi/backport.h>

#include "internal.h"
#include "kofi_trace.h"

#define KOFI_EQ_SIZE		256		/* attr->size 0 */
#define KOFI_EQ_WRITE_MAX	PAGE_SIZE	/* bytes of a consumer's event */

static struct workqueue_struct *kofi_eq_wq;

/* An event that is not part of its object, or the consumer's own */
struct kofi_eq_copied {
	struct kofi_event	ev;
	u8			data[];
};

static struct kofi_eq *kofi_eq(struct fid_eq *eq)
{
	return container_of(eq, struct kofi_eq, eq);
}

static bool kofi_eq_valid(const struct fid_eq *eq)
{
	return kofi_fid_class(&eq->fid) == FI_CLASS_EQ;
}

static void kofi_eq_copied_release(struct kofi_event *ev)
{
	kfree(container_of(ev, struct kofi_eq_copied, ev));
}

/* Release an event of the consumer, and mark it as such: it is read as it was written. */
static void kofi_eq_user_release(struct kofi_event *ev)
{
	kofi_eq_copied_release(ev);
}

static bool kofi_eq_is_user(const struct kofi_event *ev)
{
	return ev->release == kofi_eq_user_release;
}

/* ------------------------------------------------------------------ queuing */

static void kofi_eq_add(struct kofi_eq *eq, struct kofi_event *ev)
{
	lockdep_assert_held(&eq->lock);

	list_add_tail(&ev->node, &eq->events);
	if (ev->release)
		eq->used++;
	eq->queued++;
	if (ev->err)
		eq->errors++;
	trace_kofi_eq_queue(eq, ev);
	wake_up(&eq->wait);
	kofi_wait_wake(&eq->link);
	if (!eq->handler)
		return;
	if (eq->cpu >= 0 && cpu_online(eq->cpu))
		queue_work_on(eq->cpu, kofi_eq_wq, &eq->work);
	else
		queue_work(kofi_eq_wq, &eq->work);
}

static void kofi_eq_lose(struct kofi_eq *eq)
{
	lockdep_assert_held(&eq->lock);

	eq->lost++;
	if (list_empty(&eq->overrun.node))
		kofi_eq_add(eq, &eq->overrun);
}

/* Take one of so many places. Without a free one the event is lost. */
static bool kofi_eq_place(struct kofi_eq *eq, size_t size)
{
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&eq->lock, flags);
	room = eq->used < size;
	if (!room)
		kofi_eq_lose(eq);
	spin_unlock_irqrestore(&eq->lock, flags);
	return room;
}

/**
 * kofi_eq_queue - queue an event
 * @eq: the queue; NULL does nothing, and then @ev must be part of its object
 * @ev: the event, not queued yet. It belongs to the queue until it has
 *	been read or purged, and then to its release function.
 *
 * Wakes readers and schedules the handler; calls no consumer.
 *
 * Context: any.
 */
void kofi_eq_queue(struct kofi_eq *eq, struct kofi_event *ev)
{
	unsigned long flags;

	if (!eq)
		return;
	if (WARN_ON_ONCE(ev->data_len > KOFI_CM_DATA_MAX))
		ev->data_len = KOFI_CM_DATA_MAX;
	spin_lock_irqsave(&eq->lock, flags);
	kofi_eq_add(eq, ev);
	spin_unlock_irqrestore(&eq->lock, flags);
}
EXPORT_SYMBOL_GPL(kofi_eq_queue);

/**
 * kofi_eq_room - check for room for an event that is not part of its object
 * @eq: the queue
 *
 * Call it before allocating such an event, so that a queue that is not read does
 * not grow without bound. On false, the consumer will read an
 * FI_EOVERRUN error entry. Concurrent callers may together
 * exceed the queue's size by one each.
 *
 * Context: any.
 * Return: true if there is room.
 */
bool kofi_eq_room(struct kofi_eq *eq)
{
	return kofi_eq_place(eq, eq->size);
}
EXPORT_SYMBOL_GPL(kofi_eq_room);

static void kofi_eq_copy_in(struct kofi_eq *eq, const struct kofi_event *from,
			    gfp_t gfp)
{
	struct kofi_eq_copied *to;
	unsigned long flags;

	to = kmalloc(struct_size(to, data, from->data_len), gfp);
	if (!to) {
		spin_lock_irqsave(&eq->lock, flags);
		kofi_eq_lose(eq);
		spin_unlock_irqrestore(&eq->lock, flags);
		return;
	}
	to->ev = *from;
	to->ev.release = kofi_eq_copied_release;
	if (from->data_len)
		to->ev.data = memcpy(to->data, from->data, from->data_len);
	kofi_eq_queue(eq, &to->ev);
}

/**
 * kofi_eq_report - report an event that is not part of its object
 * @eq: the queue; NULL does nothing
 * @from: the event, copied with its data; its node and release function are
 *	ignored
 * @gfp: flags for memory
 *
 * For events that may happen any number of times. If the queue is full, or there is no
 * memory, the consumer reads an FI_EOVERRUN error entry instead.
 *
 * Context: any that @gfp permits.
 */
void kofi_eq_report(struct kofi_eq *eq, const struct kofi_event *from, gfp_t gfp)
{
	if (eq && kofi_eq_room(eq))
		kofi_eq_copy_in(eq, from, gfp);
}
EXPORT_SYMBOL_GPL(kofi_eq_report);

/**
 * kofi_eq_report_peer - report an event that a peer can cause
 * @eq: the queue; NULL does nothing
 * @from: as for kofi_eq_report()
 *
 * Such events take at most half of the places, so that they do not displace events that
 * the consumer waits for.
 *
 * Context: any.
 */
void kofi_eq_report_peer(struct kofi_eq *eq, const struct kofi_event *from)
{
	if (eq && kofi_eq_place(eq, DIV_ROUND_UP(eq->size, 2)))
		kofi_eq_copy_in(eq, from, GFP_ATOMIC | __GFP_NOWARN);
}
EXPORT_SYMBOL_GPL(kofi_eq_report_peer);

/* Remove an event that has been read or purged. */
static void kofi_eq_drop(struct kofi_eq *eq, struct kofi_event *ev)
{
	lockdep_assert_held(&eq->lock);

	list_del_init(&ev->node);
	if (!ev->release)
		return;
	eq->used--;
	ev->release(ev);
}

/**
 * kofi_eq_purge - remove all events of an object
 * @eq: the queue, or NULL
 * @fid: the object, about to be freed
 *
 * Connection requests among them are freed with their fi_info. Afterwards no
 * reader is copying an event of @fid.
 *
 * Context: process, may sleep.
 */
void kofi_eq_purge(struct kofi_eq *eq, struct fi_fid *fid)
{
	struct kofi_event *ev, *next;
	struct fi_info *infos = NULL, *info;

	might_sleep();
	if (!eq)
		return;
	spin_lock_irq(&eq->lock);
	list_for_each_entry_safe(ev, next, &eq->events, node) {
		if (ev->fid != fid || kofi_eq_is_user(ev))
			continue;
		for (info = ev->info; info; info = ev->info) {
			ev->info = info->next;
			info->next = infos;
			infos = info;
		}
		kofi_eq_drop(eq, ev);
	}
	spin_unlock_irq(&eq->lock);
	fi_freeinfo(infos);
}
EXPORT_SYMBOL_GPL(kofi_eq_purge);

/* ------------------------------------------------------------------ reading */

/* Size of the structure that a reader must provide */
static size_t kofi_eq_fixed(const struct kofi_event *ev)
{
	if (kofi_eq_is_user(ev))
		return ev->data_len;
	switch (ev->event) {
	case FI_CONNREQ:
	case FI_CONNECTED:
	case FI_SHUTDOWN:
		return sizeof(struct fi_eq_cm_entry);
	default:
		return sizeof(struct fi_eq_entry);
	}
}

static size_t kofi_eq_copy(const struct kofi_event *ev, void *buf, size_t len)
{
	size_t fixed = kofi_eq_fixed(ev), data_len;

	if (kofi_eq_is_user(ev)) {
		memcpy(buf, ev->data, fixed);
		return fixed;
	}
	if (fixed == sizeof(struct fi_eq_cm_entry)) {
		const struct fi_eq_cm_entry cm = {
			.fid = ev->fid, .info = ev->info,
		};

		memcpy(buf, &cm, fixed);
	} else {
		const struct fi_eq_entry entry = {
			.fid = ev->fid, .context = ev->context,
			.data = ev->data_val,
		};

		memcpy(buf, &entry, fixed);
	}
	data_len = min(len - fixed, ev->data_len);
	if (data_len)
		memcpy(buf + fixed, ev->data, data_len);
	return fixed + data_len;
}

/**
 * fi_eq_read - read one event
 * @eq: the queue
 * @event: receives the number of the event, FI_CONNREQ and so on
 * @buf: receives the event: struct fi_eq_cm_entry and the peer's private data for
 *	connection events, struct fi_eq_entry for others, and the written bytes for
 *	events of the consumer
 * @len: bytes at @buf; longer private data is truncated
 * @flags: FI_PEEK leaves the event in the queue, or 0. The info of an
 *	FI_CONNREQ belongs to the reader only when it was read without FI_PEEK.
 *
 * fi_eq(3). Any number of tasks may read.
 *
 * Context: any.
 * Return: bytes written to @buf; -EAGAIN if there is nothing; -FI_EAVAIL if
 * the next is an error, for fi_eq_readerr(); -FI_ETOOSMALL if @len is less
 * than the event's structure, the event stays; -FI_EBADFLAGS; -EINVAL.
 */
ssize_t fi_eq_read(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		   u64 flags)
{
	struct kofi_eq *keq = kofi_eq(eq);
	struct kofi_event *ev;
	unsigned long irq;
	ssize_t ret;

	if (!kofi_eq_valid(eq) || !event || !buf)
		return -EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;

	spin_lock_irqsave(&keq->lock, irq);
	ev = list_first_entry_or_null(&keq->events, struct kofi_event, node);
	if (!ev) {
		ret = -EAGAIN;
	} else if (ev->err) {
		ret = -FI_EAVAIL;
	} else if (len < kofi_eq_fixed(ev)) {
		ret = -FI_ETOOSMALL;
	} else {
		*event = ev->event;
		ret = kofi_eq_copy(ev, buf, len);
		if (!(flags & FI_PEEK)) {
			trace_kofi_eq_read(keq, ev);
			ev->info = NULL;
			kofi_eq_drop(keq, ev);
		}
	}
	spin_unlock_irqrestore(&keq->lock, irq);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_eq_read);

/**
 * fi_eq_readerr - read one error
 * @eq: the queue
 * @buf: receives the error. With err_data_size 0, err_data is set to a copy that
 *	belongs to the queue and is valid until the next call of this function;
 *	otherwise err_data must point to err_data_size bytes of the caller, which
 *	receive the data, truncated if necessary. err_data_size becomes the number of bytes.
 * @flags: FI_PEEK leaves the error in the queue, or 0
 *
 * fi_eq(3). The data is, for instance, the private data of the peer's fi_reject(). An entry
 * of the queue itself with FI_EOVERRUN means that events were lost.
 *
 * Context: any.
 * Return: bytes written to @buf; -EAGAIN if the next in the queue is no error;
 * -FI_EBADFLAGS; -EINVAL.
 */
ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
		      u64 flags)
{
	struct kofi_eq *keq = kofi_eq(eq);
	struct kofi_event *ev;
	unsigned long irq;
	size_t space;
	void *data;

	if (!kofi_eq_valid(eq) || !buf || (buf->err_data_size && !buf->err_data))
		return -EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;

	spin_lock_irqsave(&keq->lock, irq);
	ev = list_first_entry_or_null(&keq->events, struct kofi_event, node);
	if (!ev || !ev->err) {
		spin_unlock_irqrestore(&keq->lock, irq);
		return -EAGAIN;
	}
	if (buf->err_data_size) {
		data = buf->err_data;
		space = buf->err_data_size;
	} else {
		data = keq->err_data;
		space = sizeof(keq->err_data);
	}
	*buf = (struct fi_eq_err_entry) {
		.fid = ev->fid, .context = ev->context, .data = ev->data_val,
		.err = ev->err, .prov_errno = ev->prov_errno,
		.err_data = data, .err_data_size = min(space, ev->data_len),
	};
	if (ev->data_len)
		memcpy(data, ev->data, buf->err_data_size);
	if (!(flags & FI_PEEK)) {
		trace_kofi_eq_read(keq, ev);
		kofi_eq_drop(keq, ev);
	}
	spin_unlock_irqrestore(&keq->lock, irq);
	return sizeof(*buf);
}
EXPORT_SYMBOL_GPL(fi_eq_readerr);

/* Test for an event or an error to be read. */
static bool kofi_eq_ready(struct kofi_eq *eq)
{
	unsigned long flags;
	bool ready;

	spin_lock_irqsave(&eq->lock, flags);
	ready = !list_empty(&eq->events);
	spin_unlock_irqrestore(&eq->lock, flags);
	return ready;
}

/**
 * fi_eq_sread - wait for an event and read it
 * @eq: a queue opened with a wait object
 * @event: as fi_eq_read()
 * @buf: as fi_eq_read()
 * @len: as fi_eq_read()
 * @timeout: milliseconds; 0 does not wait, negative waits without limit
 * @flags: as fi_eq_read()
 *
 * fi_eq(3). Only a fatal signal interrupts the sleep.
 *
 * Context: process, sleeps.
 * Return: as fi_eq_read(), -EAGAIN after the time-out; -EINTR if
 * the task is being killed; -EINVAL also for a queue without wait object.
 */
ssize_t fi_eq_sread(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		    int timeout, u64 flags)
{
	struct kofi_eq *keq = kofi_eq(eq);
	long left = kofi_wait_timeout(timeout);
	ssize_t ret;

	might_sleep();
	if (!kofi_eq_valid(eq) || keq->wait_obj == FI_WAIT_NONE)
		return -EINVAL;

	for (;;) {
		ret = fi_eq_read(eq, event, buf, len, flags);
		if (ret != -EAGAIN || !left)
			return ret;
		left = kofi_wait_event(keq->wait_obj, keq->wait,
				       kofi_eq_ready(keq), left);
		if (left < 0)
			return -EINTR;
	}
}
EXPORT_SYMBOL_GPL(fi_eq_sread);

/**
 * fi_eq_write - queue an event of the consumer
 * @eq: a queue opened with FI_WRITE
 * @event: number of the event
 * @buf: bytes for the reader
 * @len: bytes at @buf, up to a page
 * @flags: 0
 *
 * fi_eq(3).
 *
 * Context: any.
 * Return: @len; -EAGAIN if attr->size events wait already; -ENOMEM;
 * -FI_EBADFLAGS; -EINVAL, also if the queue was opened without FI_WRITE.
 */
ssize_t fi_eq_write(struct fid_eq *eq, u32 event, const void *buf, size_t len,
		    u64 flags)
{
	struct kofi_eq *keq = kofi_eq(eq);
	struct kofi_eq_copied *user;
	unsigned long irq;
	ssize_t ret = len;

	if (!kofi_eq_valid(eq) || !keq->writable || !buf || !len ||
	    len > KOFI_EQ_WRITE_MAX)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;

	user = kmalloc(struct_size(user, data, len), GFP_ATOMIC | __GFP_NOWARN);
	if (!user)
		return -ENOMEM;
	memcpy(user->data, buf, len);
	user->ev = (struct kofi_event) {
		.event = event, .data = user->data, .data_len = len,
		.release = kofi_eq_user_release,
	};

	spin_lock_irqsave(&keq->lock, irq);
	if (keq->used < keq->size)
		kofi_eq_add(keq, &user->ev);
	else
		ret = -EAGAIN;
	spin_unlock_irqrestore(&keq->lock, irq);
	if (ret < 0)
		kfree(user);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_eq_write);

/**
 * fi_eq_strerror - text for prov_errno of an error entry
 * @eq: the queue of the entry
 * @prov_errno: prov_errno of the entry
 * @err_data: err_data of the entry, or NULL
 * @buf: receives a copy of the text, truncated if necessary; may be NULL
 * @len: bytes at @buf
 *
 * fi_eq(3).
 *
 * Context: any.
 * Return: the text, a constant string.
 */
const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno,
			   const void *err_data, char *buf, size_t len)
{
	const struct kofi_provider *prov;
	const char *text;

	prov = kofi_eq_valid(eq) ? kofi_eq(eq)->obj.prov : NULL;
	if (prov && prov->event_strerror)
		text = prov->event_strerror(prov_errno);
	else
		text = fi_strerror(prov_errno);
	if (buf && len)
		strscpy(buf, text, len);
	return text;
}
EXPORT_SYMBOL_GPL(fi_eq_strerror);

/* --------------------------------------------------------- opening, closing */

static void kofi_eq_work(struct work_struct *work)
{
	struct kofi_eq *eq = container_of(work, struct kofi_eq, work);

	eq->handler(&eq->eq, eq->eq.fid.context);
}

static int kofi_eq_close(struct fi_fid *fid)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq.fid);
	struct kofi_event *ev, *next;

	cancel_work_sync(&eq->work);
	kofi_wait_leave(&eq->link);
	/* no object is bound: free the remaining events, no further event comes */
	list_for_each_entry_safe(ev, next, &eq->events, node) {
		fi_freeinfo(ev->info);
		spin_lock_irq(&eq->lock);
		kofi_eq_drop(eq, ev);
		spin_unlock_irq(&eq->lock);
	}
	kofi_obj_exit(&eq->obj);
	kfree(eq);
	return 0;
}

static int kofi_eq_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq.fid);

	return kofi_wait_control(eq->wait_obj, &eq->wait, command, arg);
}

static const struct fi_ops kofi_eq_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_eq_close,
	.control	= kofi_eq_control,
};

static void kofi_eq_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_eq *eq = container_of(obj, struct kofi_eq, obj);
	u64 queued, errors, lost;
	size_t waiting;

	spin_lock_irq(&eq->lock);
	waiting = list_count_nodes(&eq->events);
	queued = eq->queued;
	errors = eq->errors;
	lost = eq->lost;
	spin_unlock_irq(&eq->lock);

	fn(arg, "size", eq->size);
	fn(arg, "waiting", waiting);
	fn(arg, "events", queued);
	fn(arg, "errors", errors);
	fn(arg, "lost", lost);
}

static bool kofi_eq_pending(struct kofi_obj *obj)
{
	return kofi_eq_ready(container_of(obj, struct kofi_eq, obj));
}

static bool kofi_eq_waits_for_caller(struct kofi_obj *obj)
{
	return current_work() == &container_of(obj, struct kofi_eq, obj)->work;
}

static const struct kofi_obj_ops kofi_eq_obj_ops = {
	.stats			= kofi_eq_stats,
	.waits_for_caller	= kofi_eq_waits_for_caller,
	.pending		= kofi_eq_pending,
};

/**
 * kofi_eq_open - open an event queue that calls a handler
 * @fabric: fabric of the objects that will report to it
 * @attr: size 0 means 256 events; flags FI_WRITE, and FI_AFFINITY for a CPU
 *	in signaling_vector where the handler shall run; wait_obj FI_WAIT_NONE,
 *	FI_WAIT_UNSPEC, FI_WAIT_YIELD, KOFI_WAIT_QUEUE, or FI_WAIT_SET with a
 *	set in wait_set. NULL means all defaults.
 * @handler: called in process context after events have been queued. Reads
 *	with fi_eq_read() until it returns -EAGAIN. May sleep, connect, accept
 *	and close endpoints, but not close its own queue. One call at a time.
 *	NULL for none
 * @eq: where the queue goes
 * @context: the consumer's, in fid.context and @handler
 *
 * fi_eq(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -ENOSYS for a wait object only user space
 * has; -FI_EDOMAIN for a wait set of another fabric; -EBUSY if @fabric or the
 * set is being closed; -ENOMEM.
 */
int kofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		 void (*handler)(struct fid_eq *eq, void *context),
		 struct fid_eq **eq, void *context)
{
	static const struct fi_eq_attr none;
	const struct fi_eq_attr *a = attr ?: &none;
	struct kofi_fabric *kfabric;
	struct kofi_eq *keq;
	int ret;

	might_sleep();
	if (kofi_fid_class(&fabric->fid) != FI_CLASS_FABRIC || !eq)
		return -EINVAL;
	if (a->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	if (a->flags & FI_AFFINITY &&
	    (a->signaling_vector < 0 || a->signaling_vector >= nr_cpu_ids))
		return -EINVAL;
	ret = kofi_wait_check(a->wait_obj);
	if (ret)
		return ret;

	keq = kzalloc(sizeof(*keq), GFP_KERNEL);
	if (!keq)
		return -ENOMEM;
	kfabric = container_of(fabric, struct kofi_fabric, fabric);
	keq->fabric = kfabric;
	spin_lock_init(&keq->lock);
	INIT_LIST_HEAD(&keq->events);
	keq->size = a->size ?: KOFI_EQ_SIZE;
	keq->writable = a->flags & FI_WRITE;
	keq->wait_obj = a->wait_obj;
	init_waitqueue_head(&keq->wait);
	keq->handler = handler;
	INIT_WORK(&keq->work, kofi_eq_work);
	keq->cpu = a->flags & FI_AFFINITY ? a->signaling_vector : -1;
	INIT_LIST_HEAD(&keq->overrun.node);
	keq->overrun.fid = &keq->eq.fid;
	keq->overrun.context = context;
	keq->overrun.err = FI_EOVERRUN;

	ret = kofi_obj_init(&keq->obj, &keq->eq.fid, FI_CLASS_EQ,
			    &kofi_eq_fid_ops, &kfabric->obj, kfabric->obj.prov,
			    context);
	if (ret)
		goto free;
	keq->obj.ops = &kofi_eq_obj_ops;
	ret = kofi_wait_join(&keq->link, &keq->eq.fid, a->wait_obj,
			     a->wait_set, kfabric);
	if (ret)
		goto exit;
	kofi_obj_publish(&keq->obj);
	*eq = &keq->eq;
	return 0;

exit:
	kofi_obj_exit(&keq->obj);
free:
	kfree(keq);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_eq_open);

/**
 * fi_eq_open - open an event queue
 * @fabric: as kofi_eq_open()
 * @attr: as kofi_eq_open()
 * @eq: as kofi_eq_open()
 * @context: the consumer's, in fid.context
 *
 * fi_eq(3).
 *
 * Context: process, may sleep.
 * Return: as kofi_eq_open().
 */
int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
	       struct fid_eq **eq, void *context)
{
	return kofi_eq_open(fabric, attr, NULL, eq, context);
}
EXPORT_SYMBOL_GPL(fi_eq_open);

/**
 * kofi_eq_bind - bind an event queue to an object that has room for one
 * @slot: where the object keeps its queue, empty until then
 * @fabric: the object's
 * @bfid: the event queue; gets one more user
 * @flags: none is known
 *
 * Context: process.
 * Return: 0; -EINVAL for another object, or a queue that is being closed;
 * -FI_EBADFLAGS; -FI_EDOMAIN for a queue of another fabric; -EBUSY if there is
 * one already.
 */
int kofi_eq_bind(struct kofi_eq **slot, struct kofi_fabric *fabric,
		 struct fi_fid *bfid, u64 flags)
{
	struct kofi_eq *eq;

	if (kofi_fid_class(bfid) != FI_CLASS_EQ)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	eq = container_of(bfid, struct kofi_eq, eq.fid);
	if (eq->fabric != fabric)
		return -FI_EDOMAIN;
	if (!kofi_obj_get(&eq->obj))
		return -EINVAL;
	if (cmpxchg(slot, NULL, eq)) {
		kofi_obj_put(&eq->obj);
		return -EBUSY;
	}
	return 0;
}

int kofi_eq_start(void)
{
	kofi_eq_wq = kofi_wq_alloc("kofi_eq");
	return kofi_eq_wq ? 0 : -ENOMEM;
}

void kofi_eq_stop(void)
{
	destroy_workqueue(kofi_eq_wq);
}
