// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Module parameters of providers: numbers with a range.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include <linux/kofi/lib.h>

static int kofi_param_set(const char *val, const struct kernel_param *kp)
{
	const struct kofi_param *p = kp->arg;
	unsigned int n;
	int err;

	err = kstrtouint(val, 0, &n);
	if (!err && n >= p->min && n <= p->max) {
		WRITE_ONCE(*p->value, n);
		return 0;
	}
	/* the name of one that is built in begins with the module's */
	pr_err("%s%s%s=%s: must be a number from %u to %u\n",
	       kp->mod ? module_name(kp->mod) : "", kp->mod ? ": " : "",
	       kp->name, val, p->min, p->max);
	return err ? : -ERANGE;
}

static int kofi_param_get(char *buf, const struct kernel_param *kp)
{
	const struct kofi_param *p = kp->arg;

	return sysfs_emit(buf, "%u\n", READ_ONCE(*p->value));
}

/* operations of KOFI_PARAM() */
const struct kernel_param_ops kofi_param_ops = {
	.set = kofi_param_set,
	.get = kofi_param_get,
};
EXPORT_SYMBOL_GPL(kofi_param_ops);

/**
 * kofi_param_store - set an object's own value in place of a module parameter
 * @range: range of the parameter
 * @to: the value
 * @val: unsigned int
 *
 * Context: any.
 * Return: 0; -EINVAL out of range.
 */
int kofi_param_store(const struct kofi_param *range, unsigned int *to,
		     const void *val)
{
	unsigned int n = *(const unsigned int *)val;

	if (n < range->min || n > range->max)
		return -EINVAL;
	*to = n;
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_param_store);
