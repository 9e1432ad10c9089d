// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testclient.ko: a client that is built outside of this tree, with the
 * installed headers and symbol versions alone. As it is loaded, it asks for what
 * there is over kofi_sock, and says how much that is.
 */
#include <linux/kofi/kofi.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

static int __init client_init(void)
{
	struct fi_info *hints, *info, *i;
	int ret, found = 0;

	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	ret = fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "4420", 0, hints, &info);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	for (i = info; i; i = i->next)
		found++;
	fi_freeinfo(info);
	pr_info("%s: %d found\n", KBUILD_MODNAME, found);
	return 0;
}
module_init(client_init);

static void __exit client_exit(void)
{
}
module_exit(client_exit);

MODULE_DESCRIPTION("Test of kOFI: a client that is built elsewhere");
MODULE_LICENSE("Dual BSD/GPL");
