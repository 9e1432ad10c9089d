// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/kofi.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink-gen.h"

#include <uapi/linux/kofi.h>

/* Integer value ranges */
static const struct netlink_range_validation kofi_a_info_api_version_range = {
	.max	= U32_MAX,
};

static const struct netlink_range_validation kofi_a_obj_id_range = {
	.max	= U32_MAX,
};

static const struct netlink_range_validation kofi_a_peer_ep_range = {
	.max	= U32_MAX,
};

/* Common nested types */
const struct nla_policy kofi_hints_nl_policy[KOFI_A_HINTS_SRC_ADDR + 1] = {
	[KOFI_A_HINTS_CAPS] = { .type = NLA_UINT, },
	[KOFI_A_HINTS_MODE] = { .type = NLA_UINT, },
	[KOFI_A_HINTS_ADDR_FORMAT] = NLA_POLICY_MAX(NLA_UINT, 17),
	[KOFI_A_HINTS_EP_TYPE] = NLA_POLICY_MAX(NLA_UINT, 3),
	[KOFI_A_HINTS_PROV_NAME] = { .type = NLA_NUL_STRING, .len = 63, },
	[KOFI_A_HINTS_DOMAIN_NAME] = { .type = NLA_NUL_STRING, .len = 63, },
	[KOFI_A_HINTS_FABRIC_NAME] = { .type = NLA_NUL_STRING, .len = 63, },
	[KOFI_A_HINTS_SRC_ADDR] = { .type = NLA_BINARY, },
};

/* KOFI_CMD_INFO_GET - dump */
static const struct nla_policy kofi_info_get_nl_policy[KOFI_A_INFO_HINTS + 1] = {
	[KOFI_A_INFO_NODE] = { .type = NLA_NUL_STRING, .len = 63, },
	[KOFI_A_INFO_SERVICE] = { .type = NLA_NUL_STRING, .len = 31, },
	[KOFI_A_INFO_FLAGS] = { .type = NLA_UINT, },
	[KOFI_A_INFO_API_VERSION] = NLA_POLICY_FULL_RANGE(NLA_UINT, &kofi_a_info_api_version_range),
	[KOFI_A_INFO_HINTS] = NLA_POLICY_NESTED(kofi_hints_nl_policy),
};

/* KOFI_CMD_OBJ_GET - do */
static const struct nla_policy kofi_obj_get_do_nl_policy[KOFI_A_OBJ_ID + 1] = {
	[KOFI_A_OBJ_ID] = NLA_POLICY_FULL_RANGE(NLA_UINT, &kofi_a_obj_id_range),
};

/* KOFI_CMD_OBJ_GET - dump */
static const struct nla_policy kofi_obj_get_dump_nl_policy[KOFI_A_OBJ_CLASS + 1] = {
	[KOFI_A_OBJ_CLASS] = NLA_POLICY_MAX(NLA_UINT, 21),
};

/* KOFI_CMD_PEER_GET - dump */
static const struct nla_policy kofi_peer_get_nl_policy[KOFI_A_PEER_EP + 1] = {
	[KOFI_A_PEER_EP] = NLA_POLICY_FULL_RANGE(NLA_UINT, &kofi_a_peer_ep_range),
};

/* KOFI_CMD_OBJ_SET - do */
static const struct nla_policy kofi_obj_set_nl_policy[KOFI_A_OBJ_MEASURE + 1] = {
	[KOFI_A_OBJ_ID] = NLA_POLICY_FULL_RANGE(NLA_UINT, &kofi_a_obj_id_range),
	[KOFI_A_OBJ_MEASURE] = NLA_POLICY_MAX(NLA_U8, 1),
};

/* Ops table for kofi */
static const struct genl_split_ops kofi_nl_ops[] = {
	{
		.cmd	= KOFI_CMD_PROVIDER_GET,
		.start	= kofi_nl_provider_start,
		.dumpit	= kofi_nl_provider_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= KOFI_CMD_INFO_GET,
		.start		= kofi_nl_info_start,
		.dumpit		= kofi_nl_info_get_dumpit,
		.policy		= kofi_info_get_nl_policy,
		.maxattr	= KOFI_A_INFO_HINTS,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= KOFI_CMD_OBJ_GET,
		.doit		= kofi_nl_obj_get_doit,
		.policy		= kofi_obj_get_do_nl_policy,
		.maxattr	= KOFI_A_OBJ_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= KOFI_CMD_OBJ_GET,
		.start		= kofi_nl_obj_start,
		.dumpit		= kofi_nl_obj_get_dumpit,
		.policy		= kofi_obj_get_dump_nl_policy,
		.maxattr	= KOFI_A_OBJ_CLASS,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= KOFI_CMD_PEER_GET,
		.start		= kofi_nl_peer_start,
		.dumpit		= kofi_nl_peer_get_dumpit,
		.policy		= kofi_peer_get_nl_policy,
		.maxattr	= KOFI_A_PEER_EP,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= KOFI_CMD_OBJ_SET,
		.doit		= kofi_nl_obj_set_doit,
		.policy		= kofi_obj_set_nl_policy,
		.maxattr	= KOFI_A_OBJ_MEASURE,
		.flags		= GENL_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
};

static const struct genl_multicast_group kofi_nl_mcgrps[] = {
	[KOFI_NLGRP_EVENTS] = { "events", },
};

struct genl_family kofi_nl_family __ro_after_init = {
	.name		= KOFI_FAMILY_NAME,
	.version	= KOFI_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= kofi_nl_ops,
	.n_split_ops	= ARRAY_SIZE(kofi_nl_ops),
	.mcgrps		= kofi_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(kofi_nl_mcgrps),
};
