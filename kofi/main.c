// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Loading and unloading kofi.ko.
 *
 * The module holds no objects of its own: providers and consumers use its
 * symbols, so it goes only after the last of them.
 */
#include <linux/init.h>
#include <linux/module.h>

#include <linux/kofi/version.h>

#include "internal.h"

static int __init kofi_init(void)
{
	int ret;

	ret = kofi_eq_start();
	if (ret)
		return ret;
	ret = kofi_cq_start();
	if (ret)
		goto stop_eq;
	ret = kofi_client_start();
	if (ret)
		goto stop_cq;
	ret = kofi_tostr_start();
	if (ret)
		goto stop_client;
	ret = kofi_netlink_start();
	if (ret)
		goto stop_tostr;
	return 0;

stop_tostr:
	kofi_tostr_stop();
stop_client:
	kofi_client_stop();
stop_cq:
	kofi_cq_stop();
stop_eq:
	kofi_eq_stop();
	return ret;
}

static void __exit kofi_exit(void)
{
	kofi_netlink_stop();
	kofi_tostr_stop();
	kofi_client_stop();
	kofi_cq_stop();
	kofi_eq_stop();
}

module_init(kofi_init);
module_exit(kofi_exit);

MODULE_DESCRIPTION("Kernel fabric interface: libfabric's model for kernel clients");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
