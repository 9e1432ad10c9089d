// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers of endpoints that do not connect: over the loopback device, unless the
 * module is told of a provider of connected endpoints and its device. Then there is
 * that one's, layered.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "../limit.h"
#include "place.h"

unsigned int test_slow __weak = 1;
module_param_named(slow, test_slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default 1)");

static char *rdm_provider;
module_param_named(provider, rdm_provider, charp, 0444);
MODULE_PARM_DESC(provider, "Provider below kofi_rxm (default: sock, alone and below)");

static char *rdm_device = "lo";
module_param_named(device, rdm_device, charp, 0444);
MODULE_PARM_DESC(device, "Its device (default lo)");

static char *rdm_address = "127.0.0.1";
module_param_named(address, rdm_address, charp, 0444);
MODULE_PARM_DESC(address, "Numeric address on the device (default 127.0.0.1)");

static const char *const rdm_places[] = { "sock", "sock;ofi_rxm" };
static char rdm_layered[32];

/* The parameters of a case, as KUNIT_ARRAY_PARAM() has them; each is a name. */
GEN_PARAMS(rdm_place_gen_params)
{
	const char *next = NULL;

	if (rdm_provider) {
		snprintf(rdm_layered, sizeof(rdm_layered), "%s;ofi_rxm",
			 rdm_provider);
		next = prev ? NULL : rdm_layered;
	} else if (!prev) {
		next = rdm_places[0];
	} else if (prev == rdm_places[0]) {
		next = rdm_places[1];
	}
	if (next)
		strscpy(desc, next, KUNIT_PARAM_DESC_SIZE);
	return next;
}

/* Discovery at the case's place; the rest of @hints is the caller's. */
int rdm_place_getinfo(struct kunit *test, struct fi_info *hints,
		      struct fi_info **info)
{
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = kstrdup(test->param_value, GFP_KERNEL);
	hints->domain_attr->name = kstrdup(rdm_device, GFP_KERNEL);
	return fi_getinfo(FI_VERSION(2, 1), rdm_address, "0",
			  FI_SOURCE | FI_NUMERICHOST, hints, info);
}

const char *rdm_place_device(void)
{
	return rdm_device;
}

const char *rdm_place_address(void)
{
	return rdm_address;
}

MODULE_DESCRIPTION("Unit tests of endpoints that do not connect");
MODULE_LICENSE("Dual BSD/GPL");
