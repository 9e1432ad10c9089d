// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/kofi_test.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink-gen.h"

#include <uapi/linux/kofi_test.h>

/* Integer value ranges */
static const struct netlink_range_validation kofi_test_a_pingpong_size_range = {
	.max	= KOFI_TEST_SIZE_MAX,
};

/* KOFI_TEST_CMD_PINGPONG_START - do */
static const struct nla_policy kofi_test_pingpong_start_nl_policy[KOFI_TEST_A_PINGPONG_TAGGED + 1] = {
	[KOFI_TEST_A_PINGPONG_NODE] = { .type = NLA_NUL_STRING, .len = KOFI_TEST_NAME_MAX, },
	[KOFI_TEST_A_PINGPONG_SOURCE] = { .type = NLA_NUL_STRING, .len = KOFI_TEST_NAME_MAX, },
	[KOFI_TEST_A_PINGPONG_SRC_PORT] = { .type = NLA_U16, },
	[KOFI_TEST_A_PINGPONG_DST_PORT] = { .type = NLA_U16, },
	[KOFI_TEST_A_PINGPONG_IPV6] = { .type = NLA_FLAG, },
	[KOFI_TEST_A_PINGPONG_PROVIDER] = { .type = NLA_NUL_STRING, .len = KOFI_TEST_NAME_MAX, },
	[KOFI_TEST_A_PINGPONG_DOMAIN] = { .type = NLA_NUL_STRING, .len = KOFI_TEST_NAME_MAX, },
	[KOFI_TEST_A_PINGPONG_SIZE] = NLA_POLICY_FULL_RANGE(NLA_UINT, &kofi_test_a_pingpong_size_range),
	[KOFI_TEST_A_PINGPONG_ALL_SIZES] = { .type = NLA_FLAG, },
	[KOFI_TEST_A_PINGPONG_ITERATIONS] = { .type = NLA_U32, },
	[KOFI_TEST_A_PINGPONG_WARMUP] = { .type = NLA_U32, },
	[KOFI_TEST_A_PINGPONG_CHECK] = { .type = NLA_FLAG, },
	[KOFI_TEST_A_PINGPONG_MODE] = NLA_POLICY_MAX(NLA_U32, 1),
	[KOFI_TEST_A_PINGPONG_POLL] = NLA_POLICY_MAX(NLA_U32, 2),
	[KOFI_TEST_A_PINGPONG_TIMEOUT] = { .type = NLA_U32, },
	[KOFI_TEST_A_PINGPONG_ENDPOINT] = NLA_POLICY_MAX(NLA_U32, 2),
	[KOFI_TEST_A_PINGPONG_TAGGED] = { .type = NLA_FLAG, },
};

/* Ops table for kofi_test */
static const struct genl_split_ops kofi_test_nl_ops[] = {
	{
		.cmd		= KOFI_TEST_CMD_PINGPONG_START,
		.doit		= kofi_test_nl_pingpong_start_doit,
		.policy		= kofi_test_pingpong_start_nl_policy,
		.maxattr	= KOFI_TEST_A_PINGPONG_TAGGED,
		.flags		= GENL_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
};

struct genl_family kofi_test_nl_family __ro_after_init = {
	.name		= KOFI_TEST_FAMILY_NAME,
	.version	= KOFI_TEST_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= kofi_test_nl_ops,
	.n_split_ops	= ARRAY_SIZE(kofi_test_nl_ops),
};
