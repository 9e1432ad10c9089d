// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading completion queues (fi_cq(3)).
 *
 * Entries stay in the queue until they are read, even after
 * their endpoint was closed. Any number of tasks may read, in any context; each
 * removes entries under the lock.
 *
 * Notify handlers
 *
 * The read that finds the queue empty arms the queue's notify handler,
 * under the lock: the next completion calls it, and none is missed.
 *
 * Sleeping
 *
 * A blocking read sleeps on the queue's wait queue head. fi_cq_signal() wakes
 * every reader; if there is none, the next reader that would sleep
 * returns instead.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "cq.h"

static size_t kofi_cq_format_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/* Each format begins with the one before it, so one copy serves all. */
static_assert(offsetof(struct fi_cq_tagged_entry, op_context) ==
	      offsetof(struct fi_cq_entry, op_context));
static_assert(offsetof(struct fi_cq_tagged_entry, len) ==
	      offsetof(struct fi_cq_msg_entry, len));
static_assert(offsetof(struct fi_cq_tagged_entry, data) ==
	      offsetof(struct fi_cq_data_entry, data));

/*
 * Test whether a task may sleep without reading, by fi_wait(). For such a task a signal
 * lasts until a read has found the queue empty.
 */
static bool kofi_cq_asked(const struct kofi_cq *cq)
{
	return cq->sleep.link.set || (int)cq->wait_obj == KOFI_WAIT_QUEUE;
}

/**
 * kofi_cq_pending - test for work of the consumer
 * @obj: a queue that is read, or that its consumer polls
 *
 * Context: any.
 * Return: true if there is a completion or an error to be read, a callback
 * for kofi_cq_poll(), or a signal.
 */
bool kofi_cq_pending(struct kofi_obj *obj)
{
	struct kofi_cq *cq = container_of(obj, struct kofi_cq, obj);
	unsigned long flags;
	bool pending;

	spin_lock_irqsave(&cq->lock, flags);
	pending = cq->own.head != cq->tail ||
		  (cq->sleep.signaled && kofi_cq_asked(cq)) ||
		  (cq->poll == KOFI_POLL_DIRECT &&
		   (cq->space.todo || !llist_empty(&cq->space.list)));
	spin_unlock_irqrestore(&cq->lock, flags);
	return pending;
}

/*
 * Try to read. Only the last attempt before -EAGAIN is returned arms the notify handler.
 */
static ssize_t kofi_cq_try_read(struct kofi_cq *cq, void *buf, size_t count,
				fi_addr_t *src_addr, bool arm)
{
	size_t size = kofi_cq_format_size(cq->format);
	u32 place, filled, n;
	unsigned long flags;
	ssize_t ret;
	bool bh;

	bh = kofi_cq_lock(cq, &flags);
	filled = cq->tail - cq->own.head;
	place = cq->own.first;
	for (n = 0; n < count && n < filled; n++) {
		const struct kofi_wc *wc = &cq->ring[place].wc;
		const struct fi_cq_tagged_entry entry = {
			.op_context = wc->op_context, .flags = wc->flags,
			.len = wc->len, .buf = wc->buf, .data = wc->data,
			.tag = wc->tag,
		};

		if (wc->err)
			break;
		memcpy(buf + n * size, &entry, size);
		if (src_addr)
			src_addr[n] = wc->src;
		if (++place == cq->slots)
			place = 0;
	}
	if (n) {
		kofi_cq_pop(cq, n);
		kofi_cq_rewind(cq);
		kofi_cq_freed(cq);
		ret = n;
	} else if (!filled) {
		cq->armed = cq->notify && (arm || cq->armed);
		if (kofi_cq_asked(cq))
			cq->sleep.signaled = false;
		ret = -EAGAIN;
	} else if (cq->ring[cq->own.first].wc.err) {
		ret = -FI_EAVAIL;
	} else {
		ret = 0;
	}
	kofi_cq_unlock(cq, flags, bh);
	return ret;
}

/**
 * fi_cq_readfrom - read completions and their sources
 * @cq: a queue that is read
 * @buf: array of @count entries in the queue's format
 * @count: most completions to read. With 0 nothing is read, and the return value
 *	reports whether there is a completion.
 * @src_addr: array of @count addresses, FI_ADDR_NOTAVAIL where the endpoint
 *	reports no sources; may be NULL
 *
 * fi_cq(3). Any number of tasks may read. An error is read with
 * fi_cq_readerr() in its turn: successes behind it wait. A return of -EAGAIN
 * arms the notify handler.
 *
 * Context: any. Interrupts are off while up to @count entries are copied.
 * Return: number of completions; -EAGAIN if there is none; -FI_EAVAIL if the
 * next is an error; -EINVAL, also for a queue with callbacks.
 */
ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
		       fi_addr_t *src_addr)
{
	if (!kofi_cq_reads(cq) || (count && !buf))
		return -EINVAL;
	return kofi_cq_try_read(kofi_cq(cq), buf, count, src_addr, true);
}
EXPORT_SYMBOL_GPL(fi_cq_readfrom);

/**
 * fi_cq_read - read completions
 * @cq: as fi_cq_readfrom()
 * @buf: as fi_cq_readfrom()
 * @count: as fi_cq_readfrom()
 *
 * fi_cq(3).
 *
 * Context: any.
 * Return: as fi_cq_readfrom().
 */
ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return fi_cq_readfrom(cq, buf, count, NULL);
}
EXPORT_SYMBOL_GPL(fi_cq_read);

/* The sender's address as error data. With the lock */
static void kofi_cq_err_source(struct kofi_cq *cq, const struct kofi_wc *wc,
			       const struct fi_cq_err_entry *in,
			       struct fi_cq_err_entry *out)
{
	bool copy = in->err_data && in->err_data_size;
	size_t len = kofi_domain_text(cq->domain) ?
		     strlen(wc->from) + 1 : kofi_ip_len(wc->from);

	out->err_data = copy ? in->err_data : cq->source;
	out->err_data_size = copy ? min(in->err_data_size, len) : len;
	memcpy(out->err_data, wc->from, out->err_data_size);
}

/**
 * fi_cq_readerr - read the error that is next in the queue
 * @cq: a queue that is read
 * @buf: receives the error. Error data is the address of a sender that is not in the
 *	address vector (FI_EADDRNOTAVAIL, FI_SOURCE_ERR), in the addr_format of the
 *	domain. If err_data_size is 0, or err_data NULL, err_data is set to a copy
 *	that is valid until the next call; otherwise it must point to err_data_size
 *	bytes of the caller, which receive the data, truncated if necessary. err_data_size
 *	becomes the number of bytes, 0 for any other error.
 * @flags: 0
 *
 * fi_cq(3). FI_EADDRNOTAVAIL completes a message that has been received as
 * the other fields describe.
 *
 * Context: any.
 * Return: 1; -EAGAIN if the next in the queue is no error; -FI_EBADFLAGS;
 * -EINVAL, also for a queue with callbacks.
 */
ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, u64 flags)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	ssize_t ret = -EAGAIN;
	unsigned long irq;
	bool bh;

	if (!kofi_cq_reads(cq) || !buf)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;

	bh = kofi_cq_lock(kcq, &irq);
	if (kcq->own.head != kcq->tail) {
		const struct kofi_wc *wc = &kcq->ring[kcq->own.first].wc;

		if (wc->err) {
			const struct fi_cq_err_entry in = *buf;

			*buf = (struct fi_cq_err_entry) {
				.op_context = wc->op_context,
				.flags = wc->flags, .len = wc->len,
				.buf = wc->buf, .data = wc->data,
				.tag = wc->tag, .olen = wc->olen,
				.err = wc->err, .prov_errno = wc->prov_errno,
				.src_addr = wc->src,
				.err_data = in.err_data_size ?
					    in.err_data : NULL,
			};
			if (wc->err == FI_EADDRNOTAVAIL && wc->from)
				kofi_cq_err_source(kcq, wc, &in, buf);
			kcq->errors--;
			kofi_cq_pop(kcq, 1);
			kofi_cq_rewind(kcq);
			kofi_cq_freed(kcq);
			ret = 1;
		}
	}
	kofi_cq_unlock(kcq, irq, bh);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_cq_readerr);

static bool kofi_cq_enough(const struct kofi_cq *cq, u32 threshold)
{
	return kofi_cq_count(cq) >= threshold || cq->errors;
}

static bool kofi_cq_ready(struct kofi_cq *cq, u32 threshold, u32 signals)
{
	unsigned long flags;
	bool ready;

	spin_lock_irqsave(&cq->lock, flags);
	ready = kofi_cq_enough(cq, threshold) || cq->sleep.signals != signals;
	spin_unlock_irqrestore(&cq->lock, flags);
	return ready;
}

/*
 * Begin to wait. Returns false if there is not enough to read, but fi_cq_signal() was
 * called while no reader waited.
 */
static bool kofi_cq_wait_begin(struct kofi_cq *cq, u32 threshold, u32 *signals)
{
	unsigned long flags;
	bool wait;

	spin_lock_irqsave(&cq->lock, flags);
	*signals = cq->sleep.signals;
	wait = !cq->sleep.signaled || kofi_cq_enough(cq, threshold);
	if (wait)
		cq->sleep.readers++;
	else
		cq->sleep.signaled = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	return wait;
}

static void kofi_cq_wait_end(struct kofi_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->sleep.readers--;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/**
 * fi_cq_sreadfrom - wait for completions and read them with their sources
 * @cq: a queue that is read, opened with a wait object
 * @buf: as fi_cq_readfrom()
 * @count: as fi_cq_readfrom()
 * @src_addr: as fi_cq_readfrom()
 * @cond: with FI_CQ_COND_THRESHOLD a number of completions, cast to a
 *	pointer, to wait for before reading; at most @count and the size of the queue
 *	count. An error, the time-out or
 *	fi_cq_signal() terminates the wait early. Otherwise ignored.
 * @timeout: milliseconds; 0 does not wait, negative waits without limit
 *
 * fi_cq(3). Only a fatal signal interrupts the sleep.
 *
 * Context: process, sleeps.
 * Return: as fi_cq_readfrom(), -EAGAIN after the time-out or
 * fi_cq_signal(); -EINTR if the task is being killed; -EINVAL also
 * for a queue without wait object.
 */
ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
			fi_addr_t *src_addr, const void *cond, int timeout)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	long left = kofi_wait_timeout(timeout);
	size_t threshold = 1;
	ssize_t ret;
	u32 signals;

	might_sleep();
	if (!kofi_cq_reads(cq) || kcq->wait_obj == FI_WAIT_NONE ||
	    (count && !buf))
		return -EINVAL;
	if (kcq->threshold)
		threshold = clamp((size_t)cond, 1,
				  clamp(count, 1, (size_t)kcq->limit[KOFI_RX]));

	if (!kofi_cq_wait_begin(kcq, threshold, &signals))
		return kofi_cq_try_read(kcq, buf, count, src_addr, true);
	do {
		left = kofi_wait_event(kcq->wait_obj, kcq->sleep.wait,
				       kofi_cq_ready(kcq, threshold, signals),
				       left);
		/* Another reader may have taken the completions. */
		ret = kofi_cq_try_read(kcq, buf, count, src_addr, false);
	} while (ret == -EAGAIN && left > 0 &&
		 READ_ONCE(kcq->sleep.signals) == signals);
	kofi_cq_wait_end(kcq);

	if (ret == -EAGAIN)
		ret = left < 0 ? -EINTR :
		      kofi_cq_try_read(kcq, buf, count, src_addr, true);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_cq_sreadfrom);

/**
 * fi_cq_sread - wait for completions and read them
 * @cq: as fi_cq_sreadfrom()
 * @buf: as fi_cq_sreadfrom()
 * @count: as fi_cq_sreadfrom()
 * @cond: as fi_cq_sreadfrom()
 * @timeout: as fi_cq_sreadfrom()
 *
 * fi_cq(3).
 *
 * Context: process, sleeps.
 * Return: as fi_cq_sreadfrom().
 */
ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count,
		    const void *cond, int timeout)
{
	return fi_cq_sreadfrom(cq, buf, count, NULL, cond, timeout);
}
EXPORT_SYMBOL_GPL(fi_cq_sread);

/**
 * fi_cq_signal - wake every reader
 * @cq: a queue opened with a wait object
 *
 * fi_cq(3). If no reader waits, the next one that would wait returns at
 * once. For a queue in a wait set, or with a wait queue obtained by FI_GETWAIT,
 * fi_wait() and fi_trywait() see the signal until a read returns -EAGAIN.
 *
 * Context: any.
 * Return: 0; -EINVAL, also for a queue without wait object.
 */
int fi_cq_signal(struct fid_cq *cq)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	unsigned long flags;

	if (!kofi_cq_reads(cq) || kcq->wait_obj == FI_WAIT_NONE)
		return -EINVAL;
	spin_lock_irqsave(&kcq->lock, flags);
	WRITE_ONCE(kcq->sleep.signals, kcq->sleep.signals + 1);
	kcq->sleep.signaled = !kcq->sleep.readers;
	wake_up(&kcq->sleep.wait);
	kofi_wait_wake(&kcq->sleep.link);
	spin_unlock_irqrestore(&kcq->lock, flags);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_cq_signal);

/**
 * fi_cq_strerror - text for prov_errno of an error entry
 * @cq: the queue of the entry
 * @prov_errno: prov_errno of the entry
 * @err_data: err_data of the entry, or NULL
 * @buf: receives a copy of the text, truncated if necessary; may be NULL
 * @len: bytes at @buf
 *
 * fi_cq(3).
 *
 * Context: any.
 * Return: the text, a constant string.
 */
const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno,
			   const void *err_data, char *buf, size_t len)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	const char *text;

	if (kofi_cq_valid(cq) && kcq->ops && kcq->ops->strerror)
		text = kcq->ops->strerror(prov_errno);
	else
		text = fi_strerror(prov_errno);
	if (buf && len)
		strscpy(buf, text, len);
	return text;
}
EXPORT_SYMBOL_GPL(fi_cq_strerror);
