/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lines for dynamic debug: refusals, changes of state, and lost connections, with the
 * number of the object. "module kofi_sock +p" prints the lines of kofi_sock. A line that is
 * off costs a static key; paths of data have none.
 */
#ifndef _LINUX_KOFI_DEBUG_H
#define _LINUX_KOFI_DEBUG_H

#include <linux/printk.h>

#include <linux/kofi/provider.h>

/**
 * kofi_dbg() - print a line about an object, if dynamic debug has it on
 * @obj: the struct kofi_obj
 * @fmt: format of the line, with a newline; its arguments follow
 *
 * Context: any.
 */
#define kofi_dbg(obj, fmt, ...)						\
	pr_debug("%s: object %u: " fmt, KBUILD_MODNAME, (obj)->id, ##__VA_ARGS__)

/**
 * kofi_refused() - print a line about a call, if it has failed
 * @obj: the struct kofi_obj of the call
 * @call: name of the call
 * @err: result of the call, evaluated once
 *
 * A provider that is busy has refused nothing: -EAGAIN prints no line.
 *
 * Context: as @err.
 * Return: @err.
 */
#define kofi_refused(obj, call, err)					\
({									\
	int __kofi_err = (err);						\
									\
	if (__kofi_err && __kofi_err != -EAGAIN)			\
		kofi_dbg(obj, "%s: %s\n", call, fi_strerror(__kofi_err));	\
	__kofi_err;							\
})

#endif /* _LINUX_KOFI_DEBUG_H */
