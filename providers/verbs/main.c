// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_verbs.ko: connected endpoints over RDMA devices, through the kernel's
 * ib_core and rdma_cm; on the wire the userspace "verbs" provider of libfabric.
 *
 * Here: the module, its parameters, and the options derived from them.
 */
#include <linux/module.h>
#include <linux/kofi/backport.h>
#include <linux/kofi/version.h>

#include "verbs.h"

struct workqueue_struct *vrb_wq;

/* ------------------------------------------------------------- parameters */

KOFI_PARAM(connect_timeout, vrb, 30000, 10, 86400000, 0644,
	   "Milliseconds for connecting, until the peer has accepted");

KOFI_PARAM(tx_size, vrb, 256, 1, 65536, 0644,
	   "Transmits an endpoint may have outstanding, where its consumer does not say");

KOFI_PARAM(rx_size, vrb, 256, 1, 65536, 0644,
	   "Receives an endpoint may have posted, where its consumer does not say");

void vrb_tunables_init(struct vrb_tunables *tun)
{
	*tun = (struct vrb_tunables) {
		.connect_timeout = READ_ONCE(vrb_connect_timeout),
	};
}

/* Ranges of what has no parameter: the device knows best, or it is off */
static const struct kofi_param vrb_range_silence = { .max = 86400000 };
static const struct kofi_param vrb_range_idle = { .max = 32767000 };

/* Where an option is kept, and what has its range. */
static unsigned int *vrb_tunable(struct vrb_tunables *tun, int name,
				 const struct kofi_param **p)
{
	switch ((unsigned int)name) {
	case KOFI_VAL_CONNECT_TIMEOUT:
		*p = &vrb_connect_timeout_range;
		return &tun->connect_timeout;
	case KOFI_VAL_SILENCE_TIMEOUT:
		*p = &vrb_range_silence;
		return &tun->silence_timeout;
	case KOFI_VAL_KEEPALIVE_IDLE:
		*p = &vrb_range_idle;
		return &tun->keepalive_idle;
	default:
		return NULL;
	}
}

/**
 * vrb_tunables_set - fi_set_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int
 *
 * Return: 0; -EINVAL out of range; -ENOSYS for a name that is unknown.
 */
int vrb_tunables_set(struct vrb_tunables *tun, int name, const void *val)
{
	const struct kofi_param *p;
	unsigned int *to = vrb_tunable(tun, name, &p);

	return to ? kofi_param_store(p, to, val) : -ENOSYS;
}

/**
 * vrb_tunables_get - fi_get_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int
 *
 * Return: 0, or -ENOSYS for a name that is unknown.
 */
int vrb_tunables_get(const struct vrb_tunables *tun, int name, void *val)
{
	const struct kofi_param *p;
	unsigned int *from = vrb_tunable((struct vrb_tunables *)tun, name, &p);

	if (from)
		*(unsigned int *)val = *from;
	return from ? 0 : -ENOSYS;
}

/* ----------------------------------------------------------------- module */

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
