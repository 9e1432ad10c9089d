// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counters (fi_cntr(3)): numbers of successful operations, or of their bytes, and of
 * failed operations.
 *
 * The lock of the wait queue, on which fi_cntr_wait() sleeps, guards both numbers. So
 * counting and waking are one step, and a waiter that has seen its value may close the
 * counter.
 */
#include <linux/slab.h>

#include "internal.h"

static struct kofi_cntr *kofi_cntr(struct fid_cntr *cntr)
{
	return container_of(cntr, struct kofi_cntr, cntr);
}

static bool kofi_cntr_valid(const struct fid_cntr *cntr)
{
	return kofi_fid_class(&cntr->fid) == FI_CLASS_CNTR;
}

/* Change one of the two numbers. */
static int kofi_cntr_update(struct fid_cntr *cntr, bool error, bool set,
			    u64 value)
{
	struct kofi_cntr *c = kofi_cntr(cntr);
	unsigned long flags;
	u64 *number, *read;

	if (!kofi_cntr_valid(cntr))
		return -EINVAL;
	number = error ? &c->errors : &c->value;
	read = error ? &c->errors_read : &c->value_read;
	spin_lock_irqsave(&c->wait.lock, flags);
	*number = set ? value : *number + value;
	if (set)
		*read = value;
	wake_up_locked(&c->wait);
	kofi_wait_wake(&c->link);
	spin_unlock_irqrestore(&c->wait.lock, flags);
	return 0;
}

/**
 * kofi_cntr_done - count a completion
 * @cntr: the counter, or NULL
 * @failed: it is an error
 * @bytes: length of the message
 *
 * Context: any.
 */
void kofi_cntr_done(struct kofi_cntr *cntr, bool failed, u64 bytes)
{
	if (cntr)
		kofi_cntr_update(&cntr->cntr, failed, false,
				 !failed && cntr->bytes ? bytes : 1);
}

/* Read one of the two numbers without recording the read. */
static u64 kofi_cntr_get(struct kofi_cntr *c, bool error)
{
	unsigned long flags;
	u64 value;

	spin_lock_irqsave(&c->wait.lock, flags);
	value = error ? c->errors : c->value;
	spin_unlock_irqrestore(&c->wait.lock, flags);
	return value;
}

/* Read one of the two numbers and record the read. */
static u64 kofi_cntr_read(struct fid_cntr *cntr, bool error)
{
	struct kofi_cntr *c = kofi_cntr(cntr);
	unsigned long flags;
	u64 value;

	if (!kofi_cntr_valid(cntr))
		return 0;
	spin_lock_irqsave(&c->wait.lock, flags);
	if (error)
		c->errors_read = c->errors;
	else
		c->value_read = c->value;
	value = error ? c->errors : c->value;
	spin_unlock_irqrestore(&c->wait.lock, flags);
	return value;
}

/* Test for a value that differs from the last one read or set. */
static bool kofi_cntr_pending(struct kofi_obj *obj)
{
	struct kofi_cntr *c = container_of(obj, struct kofi_cntr, obj);
	unsigned long flags;
	bool changed;

	spin_lock_irqsave(&c->wait.lock, flags);
	changed = c->value != c->value_read || c->errors != c->errors_read;
	spin_unlock_irqrestore(&c->wait.lock, flags);
	return changed;
}

/**
 * fi_cntr_read - read the number of successful operations, or of their bytes
 * @cntr: the counter
 *
 * fi_cntr(3).
 *
 * Context: any.
 * Return: the value.
 */
u64 fi_cntr_read(struct fid_cntr *cntr)
{
	return kofi_cntr_read(cntr, false);
}
EXPORT_SYMBOL_GPL(fi_cntr_read);

/**
 * fi_cntr_readerr - read the number of failed operations
 * @cntr: the counter
 *
 * fi_cntr(3).
 *
 * Context: any.
 * Return: the error value.
 */
u64 fi_cntr_readerr(struct fid_cntr *cntr)
{
	return kofi_cntr_read(cntr, true);
}
EXPORT_SYMBOL_GPL(fi_cntr_readerr);

/**
 * fi_cntr_add - add to the value
 * @cntr: the counter
 * @value: summand, modulo 2^64
 *
 * fi_cntr(3).
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int fi_cntr_add(struct fid_cntr *cntr, u64 value)
{
	return kofi_cntr_update(cntr, false, false, value);
}
EXPORT_SYMBOL_GPL(fi_cntr_add);

/**
 * fi_cntr_adderr - add to the error value
 * @cntr: the counter
 * @value: summand, modulo 2^64
 *
 * fi_cntr(3).
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int fi_cntr_adderr(struct fid_cntr *cntr, u64 value)
{
	return kofi_cntr_update(cntr, true, false, value);
}
EXPORT_SYMBOL_GPL(fi_cntr_adderr);

/**
 * fi_cntr_set - set the value
 * @cntr: the counter
 * @value: new value
 *
 * fi_cntr(3).
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int fi_cntr_set(struct fid_cntr *cntr, u64 value)
{
	return kofi_cntr_update(cntr, false, true, value);
}
EXPORT_SYMBOL_GPL(fi_cntr_set);

/**
 * fi_cntr_seterr - set the error value
 * @cntr: the counter
 * @value: new value
 *
 * fi_cntr(3).
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int fi_cntr_seterr(struct fid_cntr *cntr, u64 value)
{
	return kofi_cntr_update(cntr, true, true, value);
}
EXPORT_SYMBOL_GPL(fi_cntr_seterr);

/* 0, -FI_EAVAIL, or -EAGAIN if neither has come to be */
static int kofi_cntr_reached(struct kofi_cntr *c, u64 threshold)
{
	unsigned long flags;
	int ret = -EAGAIN;

	spin_lock_irqsave(&c->wait.lock, flags);
	if (c->value >= threshold)
		ret = 0;
	else if (c->errors != c->errors_read)
		ret = -FI_EAVAIL;
	spin_unlock_irqrestore(&c->wait.lock, flags);
	return ret;
}

/**
 * fi_cntr_wait - wait until the value has reached a threshold
 * @cntr: a counter opened with a wait object
 * @threshold: the value to wait for
 * @timeout: milliseconds; 0 does not wait, negative waits without limit
 *
 * fi_cntr(3). Only a fatal signal interrupts the sleep. Errors terminate it
 * until fi_cntr_readerr() has read them, also errors counted before
 * the call: after an error the threshold may never be reached.
 *
 * Context: process, sleeps.
 * Return: 0; -FI_EAVAIL if the error value differs from the one last read or
 * set; -ETIMEDOUT; -EINTR if the task is being killed; -EINVAL also for a
 * counter without wait object.
 */
int fi_cntr_wait(struct fid_cntr *cntr, u64 threshold, int timeout)
{
	struct kofi_cntr *c = kofi_cntr(cntr);
	long left;
	int ret;

	might_sleep();
	if (!kofi_cntr_valid(cntr) || c->wait_obj == FI_WAIT_NONE)
		return -EINVAL;

	left = kofi_wait_event(c->wait_obj, c->wait,
			       kofi_cntr_reached(c, threshold) != -EAGAIN,
			       kofi_wait_timeout(timeout));
	ret = kofi_cntr_reached(c, threshold);
	if (ret != -EAGAIN)
		return ret;
	return left < 0 ? -EINTR : -ETIMEDOUT;
}
EXPORT_SYMBOL_GPL(fi_cntr_wait);

static int kofi_cntr_close(struct fi_fid *fid)
{
	struct kofi_cntr *c = container_of(fid, struct kofi_cntr, cntr.fid);

	/* The last one to count may still be waking. */
	spin_lock_irq(&c->wait.lock);
	spin_unlock_irq(&c->wait.lock);
	kofi_wait_leave(&c->link);
	kofi_obj_exit(&c->obj);
	kfree(c);
	return 0;
}

static int kofi_cntr_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_cntr *c = container_of(fid, struct kofi_cntr, cntr.fid);

	return kofi_wait_control(c->wait_obj, &c->wait, command, arg);
}

static const struct fi_ops kofi_cntr_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_cntr_close,
	.control	= kofi_cntr_control,
};

static void kofi_cntr_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_cntr *c = container_of(obj, struct kofi_cntr, obj);

	fn(arg, "value", kofi_cntr_get(c, false));
	fn(arg, "errors", kofi_cntr_get(c, true));
}

static const struct kofi_obj_ops kofi_cntr_obj_ops = {
	.stats		= kofi_cntr_stats,
	.pending	= kofi_cntr_pending,
};

/**
 * fi_cntr_open - open a counter
 * @domain: domain of the endpoints that will count with it
 * @attr: events FI_CNTR_EVENTS_COMP or FI_CNTR_EVENTS_BYTES; wait_obj
 *	FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD, KOFI_WAIT_QUEUE, or
 *	FI_WAIT_SET with a set in wait_set; flags 0. NULL counts operations,
 *	without a wait object.
 * @cntr: receives the counter
 * @context: stored in fid.context
 *
 * fi_cntr(3). Both kinds count errors in operations.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -ENOSYS for a wait object that exists only in user
 * space; -FI_EDOMAIN for a wait set of another fabric; -EBUSY if @domain or the
 * set is being closed; -ENOMEM.
 */
int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		 struct fid_cntr **cntr, void *context)
{
	static const struct fi_cntr_attr none;
	const struct fi_cntr_attr *a = attr ?: &none;
	struct kofi_domain *kdomain;
	struct kofi_cntr *c;
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !cntr ||
	    (a->events != FI_CNTR_EVENTS_COMP &&
	     a->events != FI_CNTR_EVENTS_BYTES))
		return -EINVAL;
	if (a->flags)
		return -FI_EBADFLAGS;
	ret = kofi_wait_check(a->wait_obj);
	if (ret)
		return ret;

	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	kdomain = container_of(domain, struct kofi_domain, domain);
	c->domain = kdomain;
	c->bytes = a->events == FI_CNTR_EVENTS_BYTES;
	c->wait_obj = a->wait_obj;
	init_waitqueue_head(&c->wait);

	ret = kofi_obj_init(&c->obj, &c->cntr.fid, FI_CLASS_CNTR,
			    &kofi_cntr_fid_ops, &kdomain->obj,
			    kdomain->obj.prov, context);
	if (ret)
		goto free;
	c->obj.ops = &kofi_cntr_obj_ops;
	ret = kofi_wait_join(&c->link, &c->cntr.fid, a->wait_obj, a->wait_set,
			     kdomain->fabric);
	if (ret)
		goto exit;
	kofi_obj_publish(&c->obj);
	*cntr = &c->cntr;
	return 0;

exit:
	kofi_obj_exit(&c->obj);
free:
	kfree(c);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_cntr_open);
