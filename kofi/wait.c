// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wait objects of readers of event queues, completion queues and counters.
 *
 * There is one kind of wait object, the kernel's wait queue. FI_WAIT_UNSPEC
 * leaves the choice to the core, KOFI_WAIT_QUEUE makes the wait queue available to the
 * consumer, FI_WAIT_SET names a shared one (wait_sets.c). FI_WAIT_YIELD needs none: the reader
 * polls and yields to other tasks in between. The wait objects
 * of a user process (file descriptors, condition variables) have no meaning
 * here.
 *
 * A queue wakes its readers with its lock held. Therefore a wake function that a
 * consumer puts on the wait queue must only wake.
 */
#include <linux/jiffies.h>
#include <linux/processor.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * kofi_wait_check - check a kind of wait object
 * @wait_obj: wait_obj of the attributes of an object
 *
 * Return: 0, -ENOSYS for one that exists only in user space, -EINVAL for an invalid value.
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
 * kofi_wait_control - handle the commands for an object's wait queue
 * @wait_obj: wait_obj that the object was opened with
 * @wait: wait queue of the object
 * @command: FI_GETWAIT or FI_GETWAITOBJ
 * @arg: wait_queue_head_t ** or enum fi_wait_obj *
 *
 * Return: 0, -ENODATA without KOFI_WAIT_QUEUE, -EINVAL without
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
 * kofi_wait_timeout - convert a time-out of libfabric to jiffies
 * @timeout: milliseconds, negative for no limit
 *
 * Return: jiffies, at least 1 unless @timeout is 0.
 */
long kofi_wait_timeout(int timeout)
{
	return timeout < 0 ? MAX_SCHEDULE_TIMEOUT : msecs_to_jiffies(timeout);
}

/**
 * kofi_wait_step - sleep or yield once
 * @wait_obj: wait_obj that the object was opened with
 * @time: begin and limit of the wait
 * @left: remaining jiffies, not 0
 *
 * The task is on the wait queue already. A task that yields stays runnable.
 *
 * Context: process.
 * Return: remaining jiffies, 0 for none.
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
