/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/kofi_test.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_KOFI_TEST_GEN_H
#define _LINUX_KOFI_TEST_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/kofi_test.h>

int kofi_test_nl_pingpong_start_doit(struct sk_buff *skb,
				     struct genl_info *info);

extern struct genl_family kofi_test_nl_family;

#endif /* _LINUX_KOFI_TEST_GEN_H */
