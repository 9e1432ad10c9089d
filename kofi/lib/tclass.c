// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Traffic classes: the labels of libfabric as code points of packets.
 *
 * Each label has the code point of the RFC 4594 service class with the same purpose; the
 * comments below name the classes. The scavenger is RFC 8622's lower effort, which
 * replaces the CS1 of RFC 4594.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>

#include <linux/kofi/lib.h>

static const u8 kofi_tclass_labels[] = {
	[FI_TC_BEST_EFFORT - FI_TC_LABEL]	= 0,	/* standard: DF */
	[FI_TC_LOW_LATENCY - FI_TC_LABEL]	= 18,	/* low-latency data: AF21 */
	[FI_TC_DEDICATED_ACCESS - FI_TC_LABEL]	= 46,	/* virtual line: EF */
	[FI_TC_BULK_DATA - FI_TC_LABEL]		= 10,	/* high throughput: AF11 */
	[FI_TC_SCAVENGER - FI_TC_LABEL]		= 1,	/* lower effort: LE */
	[FI_TC_NETWORK_CTRL - FI_TC_LABEL]	= 48,	/* network control: CS6 */
};

#define KOFI_DSCP_MAX	63

/**
 * kofi_tclass_dscp - differentiated services code point of a traffic class
 * @tclass: tclass of an attribute
 *
 * Context: any.
 * Return: the code point; -EINVAL if @tclass is no class, such as FI_TC_UNSPEC.
 */
int kofi_tclass_dscp(u32 tclass)
{
	u32 label = tclass - FI_TC_LABEL;

	if (label < ARRAY_SIZE(kofi_tclass_labels))
		return kofi_tclass_labels[label];
	if (tclass >= FI_TC_DSCP && tclass <= FI_TC_DSCP + KOFI_DSCP_MAX)
		return fi_tc_dscp_get(tclass);
	return -EINVAL;
}
EXPORT_SYMBOL_GPL(kofi_tclass_dscp);

/**
 * kofi_info_tclass - traffic class for an endpoint
 * @info: fi_info of the endpoint
 *
 * A class of the transmit context overrides the class of the domain.
 *
 * Context: any.
 * Return: the class; FI_TC_UNSPEC for none.
 */
u32 kofi_info_tclass(const struct fi_info *info)
{
	return info->tx_attr->tclass ?: info->domain_attr->tclass;
}
EXPORT_SYMBOL_GPL(kofi_info_tclass);
