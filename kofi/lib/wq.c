// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work queues of the data path, for the core and for providers.
 */
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/workqueue.h>

#include <linux/kofi/backport.h>
#include <linux/kofi/lib.h>

static bool kofi_wq_unbound;
module_param_named(wq_unbound, kofi_wq_unbound, bool, 0444);
MODULE_PARM_DESC(wq_unbound, "Work items run on any CPU that is not isolated (default N: on the CPU that queues them)");

/**
 * kofi_wq_alloc - make a work queue for the data path
 * @name: name of the queue and of its folder in /sys/devices/virtual/workqueue
 *
 * Context: process, may sleep.
 * Return: the queue, for destroy_workqueue(), or NULL.
 */
struct workqueue_struct *kofi_wq_alloc(const char *name)
{
	unsigned int bound = kofi_wq_unbound ? WQ_UNBOUND : WQ_PERCPU;

	return alloc_workqueue("%s", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_SYSFS | bound,
			       0, name);
}
EXPORT_SYMBOL_GPL(kofi_wq_alloc);
