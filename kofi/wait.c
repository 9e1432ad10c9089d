// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the reader of an event queue, completion queue or counter can wait on.
 *
 * There is one kind of wait object, the kernel's wait queue; FI_WAIT_UNSPEC
 * leaves the choice to us, KOFI_WAIT_QUEUE asks to be handed it, FI_WAIT_SET
 * names one that is shared (poll.c). FI_WAIT_YIELD does without: the reader
 * looks again and again, and gives way to other tasks in between. The objects
 * of a user process (file descriptors, condition variables) have no meaning
 * here.
 *
 * A queue wakes its readers with its lock held. A wake function that a
 * consumer puts on the wait queue itself must therefore only wake.
 */
#include <linux/jiffies.h>
#include <linux/processor.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * kofi_wait_check - is this kind of waiting offered
 * @wait_obj: wait_obj of the attributes of an object
 *
 * Return: 0, -ENOSYS for what only user space has, -EINVAL for no wait object
 * at all.
 */
int kofi_wait_check(enum fi_wait_obj wait_obj)
{
	switch ((int)wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_SET:
	case FI_WAIT_YIELD:
	case KOFI_WAIT_QUEUE:
		return 0;
	case FI_WAIT_FD:
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return -ENOSYS;
	default:
		return -EINVAL;
	}
}

/**
 * kofi_wait_control - the control commands about an object's wait queue
 * @wait_obj: what the object was opened with
 * @wait: its wait queue
 * @command: FI_GETWAIT or FI_GETWAITOBJ
 * @arg: wait_queue_head_t ** or enum fi_wait_obj *
 *
 * Return: 0, -ENODATA if KOFI_WAIT_QUEUE was not asked for, -EINVAL without
 * @arg, -ENOSYS for another command.
 */
int kofi_wait_control(enum fi_wait_obj wait_obj, wait_queue_head_t *wait,
		      int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (!arg)
			return -EINVAL;
		if ((int)wait_obj != KOFI_WAIT_QUEUE)
			return -ENODATA;
		*(wait_queue_head_t **)arg = wait;
		return 0;
	case FI_GETWAITOBJ:
		if (!arg)
			return -EINVAL;
		*(enum fi_wait_obj *)arg = wait_obj;
		return 0;
	default:
		return -ENOSYS;
	}
}

/**
 * kofi_wait_timeout - timeout of a libfabric call in jiffies
 * @timeout: milliseconds, negative for no end
 *
 * Return: jiffies, at least 1 unless @timeout is 0.
 */
long kofi_wait_timeout(int timeout)
{
	return timeout < 0 ? MAX_SCHEDULE_TIMEOUT : msecs_to_jiffies(timeout);
}

/**
 * kofi_wait_step - let time pass, as the consumer has chosen
 * @wait_obj: what the object was opened with
 * @time: since when and until when one waits
 * @left: jiffies that are left, not 0
 *
 * The task is on the wait queue already. One that yields stays runnable.
 *
 * Context: process.
 * Return: jiffies that are left, 0 for none.
 */
long kofi_wait_step(enum fi_wait_obj wait_obj,
		    const struct kofi_wait_time *time, long left)
{
	unsigned long passed;

	if (wait_obj != FI_WAIT_YIELD)
		return schedule_timeout(left);

	__set_current_state(TASK_RUNNING);
	cond_resched();
	cpu_relax();
	if (time->timeout == MAX_SCHEDULE_TIMEOUT)
		return left;
	passed = jiffies - time->start;
	return passed < time->timeout ? time->timeout - passed : 0;
}
