// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_verbs.ko: connected endpoints over RDMA devices, through the kernel's
 * ib_core and rdma_cm; wire-compatible with the userspace "verbs" provider of
 * libfabric.
 *
 * This file loads and unloads the module.
 */
#include <linux/module.h>
#include <linux/kofi/version.h>

#include "verbs.h"

struct workqueue_struct *vrb_wq;

static const struct fi_ops_fabric vrb_fabric_ops = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= vrb_domain,
	.passive_ep	= vrb_passive_ep,
};

struct kofi_provider vrb_provider = {
	.name		= "verbs",
	.version	= FI_VERSION(1, 0),
	.getinfo	= vrb_getinfo,
	.fabric_ops	= &vrb_fabric_ops,
	.owner		= THIS_MODULE,
	.event_strerror	= vrb_event_strerror,
	.priority	= 5,
};

static int __init vrb_init(void)
{
	int err;

	vrb_wq = kofi_wq_alloc("kofi_verbs");
	if (!vrb_wq)
		return -ENOMEM;
	err = vrb_linger_init();
	if (err)
		goto destroy_wq;
	err = vrb_domain_init();
	if (err)
		goto exit_linger;
	err = kofi_provider_register(FI_VERSION(FI_MAJOR_VERSION,
						FI_MINOR_VERSION),
				     &vrb_provider);
	if (err)
		goto unregister_client;
	return 0;

unregister_client:
	vrb_domain_exit();
exit_linger:
	vrb_linger_exit();
destroy_wq:
	destroy_workqueue(vrb_wq);
	return err;
}

static void __exit vrb_exit(void)
{
	kofi_provider_deregister(&vrb_provider);
	vrb_domain_exit();
	vrb_linger_exit();
	destroy_workqueue(vrb_wq);
}

module_init(vrb_init);
module_exit(vrb_exit);

MODULE_DESCRIPTION("kOFI provider for RDMA devices");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
MODULE_ALIAS("kofi-prov-verbs");
