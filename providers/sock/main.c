// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_sock.ko: connected endpoints over the kernel's TCP, on the wire the
 * userspace "tcp" provider of libfabric.
 *
 * Here: loading and unloading the module.
 */
#include <linux/module.h>
#include <kunit/visibility.h>
#include <linux/kofi/version.h>

#include "rdm.h"
#include "sock.h"

/*
 * Two queues: work that may wait for memory must not occupy the workers and the
 * rescuer that reclaim-safe endpoints need.
 */
struct workqueue_struct *ksk_wq;
EXPORT_SYMBOL_IF_KUNIT(ksk_wq);
struct workqueue_struct *ksk_wq_reclaim;

static const struct fi_ops_fabric ksk_fabric_ops = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= ksk_domain,
	.passive_ep	= ksk_passive_ep,
};

struct kofi_provider ksk_provider = {
	.name		= "sock",
	.version	= FI_VERSION(1, 0),
	.getinfo	= ksk_getinfo,
	.fabric_ops	= &ksk_fabric_ops,
	.owner		= THIS_MODULE,
	.priority	= 10,
};

/* A little more than 2 KiB each, of which there may be thousands */
struct kmem_cache *ksk_peers;

static int __init ksk_init(void)
{
	int err = -ENOMEM;

	if (ksk_port_min > ksk_port_max) {
		pr_err("kofi_sock: port_min=%u: must be at most port_max=%u\n",
		       ksk_port_min, ksk_port_max);
		return -ERANGE;
	}
	ksk_wq = kofi_wq_alloc("kofi_sock");
	if (!ksk_wq)
		return err;
	ksk_wq_reclaim = kofi_wq_alloc("kofi_sock_reclaim");
	if (!ksk_wq_reclaim)
		goto destroy_wq;
	ksk_peers = KMEM_CACHE(ksk_peer, SLAB_HWCACHE_ALIGN);
	if (!ksk_peers)
		goto destroy_wq_reclaim;
	err = ksk_domain_init();
	if (err)
		goto destroy_peers;
	err = kofi_provider_register(FI_VERSION(FI_MAJOR_VERSION,
						FI_MINOR_VERSION),
				     &ksk_provider);
	if (err)
		goto unregister_notifier;
	return 0;

unregister_notifier:
	ksk_domain_exit();
destroy_peers:
	kmem_cache_destroy(ksk_peers);
destroy_wq_reclaim:
	destroy_workqueue(ksk_wq_reclaim);
destroy_wq:
	destroy_workqueue(ksk_wq);
	return err;
}

static void __exit ksk_exit(void)
{
	kofi_provider_deregister(&ksk_provider);
	ksk_domain_exit();
	kmem_cache_destroy(ksk_peers);
	ksk_socket_exit();
	destroy_workqueue(ksk_wq_reclaim);
	destroy_workqueue(ksk_wq);
}

module_init(ksk_init);
module_exit(ksk_exit);

MODULE_DESCRIPTION("kOFI provider for TCP and UDP");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
MODULE_ALIAS("kofi-prov-sock");
