/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/kofi.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_KOFI_GEN_H
#define _LINUX_KOFI_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/kofi.h>

/* Common nested types */
extern const struct nla_policy kofi_hints_nl_policy[KOFI_A_HINTS_SRC_ADDR + 1];

int kofi_nl_provider_start(struct netlink_callback *cb);
int kofi_nl_info_start(struct netlink_callback *cb);
int kofi_nl_obj_start(struct netlink_callback *cb);
int kofi_nl_peer_start(struct netlink_callback *cb);

int kofi_nl_provider_get_dumpit(struct sk_buff *skb,
				struct netlink_callback *cb);
int kofi_nl_info_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int kofi_nl_obj_get_doit(struct sk_buff *skb, struct genl_info *info);
int kofi_nl_obj_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int kofi_nl_peer_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int kofi_nl_obj_set_doit(struct sk_buff *skb, struct genl_info *info);

enum {
	KOFI_NLGRP_EVENTS,
};

extern struct genl_family kofi_nl_family;

#endif /* _LINUX_KOFI_GEN_H */
