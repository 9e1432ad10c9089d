/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations for the netlink files and their tests. */
#ifndef _KOFI_NETLINK_H
#define _KOFI_NETLINK_H

#include <linux/sizes.h>

struct fi_info;
struct genl_info;
struct kofi_ep;
struct kofi_notice;
struct kofi_obj;
struct kofi_peer_state;
struct netlink_ext_ack;
struct nlattr;
struct sk_buff;

/*
 * Room for the largest message: an fi_info with all its names takes about 2
 * KiB, an object as much as its statistics need, about 50 bytes each.
 */
#define KOFI_NL_MSG_SIZE	SZ_8K

bool kofi_nl_may_load(const struct sk_buff *request);
void kofi_nl_event_start(void);
void kofi_nl_event_stop(void);

#if IS_ENABLED(CONFIG_KUNIT)
struct fi_info *kofi_nl_hints(const struct nlattr *nest,
			      struct netlink_ext_ack *extack);
int kofi_nl_put_info(struct sk_buff *skb, const struct genl_info *from,
		     const struct fi_info *info);
int kofi_nl_put_obj(struct sk_buff *skb, const struct genl_info *from,
		    struct kofi_obj *obj);
int kofi_nl_put_peer(struct sk_buff *skb, const struct genl_info *from,
		     const struct kofi_ep *ep,
		     const struct kofi_peer_state *peer);
int kofi_nl_put_event(struct sk_buff *skb, const struct kofi_obj *obj,
		      const struct kofi_notice *notice, unsigned int lost);
u32 kofi_nl_event_group(void);
bool kofi_nl_event_admit(struct kofi_obj *obj, u32 now, unsigned int *lost);
#endif

#endif /* _KOFI_NETLINK_H */
