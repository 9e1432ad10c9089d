// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi/netlink.c and netlink_info.c: what messages say and what requests may
 * ask. The operations as such are tried from user space, by the scenario "tool".
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include <linux/kofi/provider.h>
#include <uapi/linux/kofi.h>

#include "../../../kofi/av.h"
#include "../../../kofi/netlink.h"
#include "../kunit.h"

/* ----------------------------------------------------------------- helpers */

/* Stands for the real one, whose id is not needed here. */
static const struct genl_family netlink_family = { .version = 1 };

static struct sk_buff *netlink_skb(struct kunit *test, size_t size)
{
	struct sk_buff *skb = alloc_skb(size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	/* allocations are rounded up: leave exactly what was asked for */
	skb_reserve(skb, skb_tailroom(skb) - size);
	return skb;
}

/* Attributes of the first message of a buffer */
static void netlink_parse(struct kunit *test, const struct sk_buff *skb,
			  struct nlattr **tb, int max)
{
	const struct nlmsghdr *nlh = (struct nlmsghdr *)skb->data;

	KUNIT_ASSERT_EQ(test, nlmsg_parse_deprecated(nlh, GENL_HDRLEN, tb, max,
						     NULL, NULL), 0);
}

static void netlink_nested(struct kunit *test, const struct nlattr *nest,
			   struct nlattr **tb, int max)
{
	KUNIT_ASSERT_NOT_NULL(test, nest);
	KUNIT_ASSERT_EQ(test, nla_parse_nested_deprecated(tb, max, nest, NULL,
							  NULL), 0);
}

/* ------------------------------------------------------------------- hints */

static const struct sockaddr_in netlink_in = {
	.sin_family	= AF_INET,
	.sin_addr.s_addr = cpu_to_be32(INADDR_LOOPBACK),
};

static const struct sockaddr_in6 netlink_in6 = {
	.sin6_family	= AF_INET6,
};

static const struct sockaddr netlink_unix = { .sa_family = AF_UNIX };

struct netlink_hint {
	const char	*name;
	int		type;
	const void	*data;
	size_t		len;
	int		ret;
};

static const u32 netlink_one = 1, netlink_large = 1000;
static const u64 netlink_caps = FI_MSG | FI_HMEM;
static const char netlink_long[65] = { [0 ... 63] = 'x' };

static const struct netlink_hint netlink_hints[] = {
	{ "no hint", 0, NULL, 0, 0 },
	{ "capabilities of 64 bits", KOFI_A_HINTS_CAPS, &netlink_caps, 8, 0 },
	{ "capabilities of 32 bits", KOFI_A_HINTS_CAPS, &netlink_one, 4, 0 },
	{ "capabilities of 16 bits", KOFI_A_HINTS_CAPS, &netlink_one, 2,
	  -EINVAL },
	{ "no capabilities", KOFI_A_HINTS_CAPS, NULL, 0, -EINVAL },
	{ "endpoint type", KOFI_A_HINTS_EP_TYPE, &netlink_one, 4, 0 },
	{ "endpoint type out of range", KOFI_A_HINTS_EP_TYPE, &netlink_large, 4,
	  -ERANGE },
	{ "address format out of range", KOFI_A_HINTS_ADDR_FORMAT,
	  &netlink_large, 4, -ERANGE },
	{ "provider", KOFI_A_HINTS_PROV_NAME, "sock", 5, 0 },
	{ "provider without its end", KOFI_A_HINTS_PROV_NAME, "sock", 4,
	  -EINVAL },
	{ "empty provider attribute", KOFI_A_HINTS_PROV_NAME, NULL, 0,
	  -EINVAL },
	{ "provider too long", KOFI_A_HINTS_PROV_NAME, netlink_long, 65,
	  -EINVAL },
	{ "domain", KOFI_A_HINTS_DOMAIN_NAME, "eth0", 5, 0 },
	{ "fabric", KOFI_A_HINTS_FABRIC_NAME, "10.0.0.0/24", 12, 0 },
	{ "IPv4 source", KOFI_A_HINTS_SRC_ADDR, &netlink_in,
	  sizeof(netlink_in), 0 },
	{ "IPv6 source", KOFI_A_HINTS_SRC_ADDR, &netlink_in6,
	  sizeof(netlink_in6), 0 },
	{ "source of IPv4 length and IPv6 family", KOFI_A_HINTS_SRC_ADDR,
	  &netlink_in6, sizeof(netlink_in), -EINVAL },
	{ "source cut after its family", KOFI_A_HINTS_SRC_ADDR, &netlink_in, 2,
	  -EINVAL },
	{ "source of one byte", KOFI_A_HINTS_SRC_ADDR, &netlink_in, 1,
	  -EINVAL },
	{ "empty source", KOFI_A_HINTS_SRC_ADDR, NULL, 0, -EINVAL },
	{ "source of another family", KOFI_A_HINTS_SRC_ADDR, &netlink_unix,
	  sizeof(netlink_unix), -EINVAL },
	{ "unknown attribute", KOFI_A_HINTS_MAX + 1, &netlink_one, 4, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(netlink_hints, netlink_hints, name);

static void netlink_hints_parsed(struct kunit *test)
{
	const struct netlink_hint *h = test->param_value;
	struct netlink_ext_ack extack = { };
	struct sk_buff *skb = netlink_skb(test, 256);
	struct nlattr *nest = nla_nest_start(skb, KOFI_A_INFO_HINTS);
	struct fi_info *hints;
	u64 number = 0;

	if (h->type)
		KUNIT_ASSERT_EQ(test, nla_put(skb, h->type, h->len, h->data), 0);
	nla_nest_end(skb, nest);
	hints = kofi_nl_hints(nest, &extack);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(hints), h->ret);
	if (IS_ERR(hints))
		goto free;

	KUNIT_EXPECT_EQ(test, hints->mode, ~0ULL);
	KUNIT_EXPECT_EQ(test, hints->domain_attr->mode, ~0ULL);
	memcpy(&number, h->data ?: "", min(h->len, sizeof(number)));
	switch (h->type) {
	case KOFI_A_HINTS_CAPS:
		KUNIT_EXPECT_EQ(test, hints->caps, number);
		break;
	case KOFI_A_HINTS_EP_TYPE:
		KUNIT_EXPECT_EQ(test, (u64)hints->ep_attr->type, number);
		break;
	case KOFI_A_HINTS_PROV_NAME:
		KUNIT_EXPECT_STREQ(test, hints->fabric_attr->prov_name,
				   (const char *)h->data);
		break;
	case KOFI_A_HINTS_DOMAIN_NAME:
		KUNIT_EXPECT_STREQ(test, hints->domain_attr->name,
				   (const char *)h->data);
		break;
	case KOFI_A_HINTS_FABRIC_NAME:
		KUNIT_EXPECT_STREQ(test, hints->fabric_attr->name,
				   (const char *)h->data);
		break;
	case KOFI_A_HINTS_SRC_ADDR:
		KUNIT_EXPECT_EQ(test, hints->src_addrlen, h->len);
		KUNIT_EXPECT_MEMEQ(test, hints->src_addr, h->data, h->len);
		KUNIT_EXPECT_EQ(test, hints->addr_format,
				h->len == sizeof(netlink_in) ?
				FI_SOCKADDR_IN : FI_SOCKADDR_IN6);
		break;
	}
	fi_freeinfo(hints);
free:
	kfree_skb(skb);
}

/* ------------------------------------------------------------------- infos */

static const char netlink_name[] = "a name";

static struct fi_device_attr netlink_device = {
	.name		= (char *)netlink_name,
	.driver		= (char *)netlink_name,
};

static struct fi_bus_attr netlink_bus = {
	.bus_type	= FI_BUS_PCI,
	.attr.pci	= { .domain_id = 1, .bus_id = 2, .device_id = 3,
			    .function_id = 4 },
};

static struct fi_link_attr netlink_link = {
	.mtu		= 1500,
	.speed		= 100000000000ULL,
	.state		= FI_LINK_UP,
};

static struct fid_nic netlink_nic = {
	.fid.fclass	= FI_CLASS_NIC,
	.device_attr	= &netlink_device,
	.bus_attr	= &netlink_bus,
	.link_attr	= &netlink_link,
};

/* Different numbers in all members that are easily mistaken for others */
static struct fi_info *netlink_info(struct kunit *test)
{
	struct fi_info *info = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, info);
	info->caps = FI_MSG | FI_HMEM;
	info->mode = FI_CONTEXT;
	info->addr_format = FI_SOCKADDR_IN;
	info->src_addr = kmemdup(&netlink_in, sizeof(netlink_in), GFP_KERNEL);
	info->src_addrlen = info->src_addr ? sizeof(netlink_in) : 0;
	info->tx_attr->size = 11;
	info->tx_attr->iov_limit = 12;
	info->tx_attr->rma_iov_limit = 13;
	info->tx_attr->inject_size = SIZE_MAX;
	info->rx_attr->size = 21;
	info->rx_attr->iov_limit = 22;
	info->rx_attr->total_buffered_recv = 23;
	info->ep_attr->type = FI_EP_MSG;
	info->ep_attr->protocol = FI_PROTO_SOCK_TCP;
	info->ep_attr->max_order_raw_size = 31;
	info->ep_attr->max_order_war_size = 32;
	info->ep_attr->max_order_waw_size = 33;
	info->ep_attr->tx_ctx_cnt = 34;
	info->ep_attr->rx_ctx_cnt = 35;
	info->domain_attr->name = kstrdup(netlink_name, GFP_KERNEL);
	info->domain_attr->mr_mode = ~0;
	info->domain_attr->max_ep_tx_ctx = 41;
	info->domain_attr->max_ep_rx_ctx = 42;
	info->domain_attr->max_ep_stx_ctx = 43;
	info->domain_attr->max_ep_srx_ctx = 44;
	info->domain_attr->max_cntr_value = U64_MAX;
	info->fabric_attr->prov_name = kstrdup("fake", GFP_KERNEL);
	info->fabric_attr->prov_version = FI_VERSION(3, 4);
	info->fabric_attr->api_version = FI_VERSION(2, 1);
	return info;
}

#define EXPECT_ATTR(set, attr, value)					\
	KUNIT_EXPECT_EQ(test, nla_get_uint(tb[KOFI_A_##set##_##attr]),	\
			(u64)(value))

static void netlink_info_put(struct kunit *test)
{
	struct nlattr *top[KOFI_A_INFO_MAX + 1];
	struct nlattr *tb[KOFI_A_DOMAIN_ATTR_MAX + 1];
	struct nlattr *nic[KOFI_A_NIC_MAX + 1];
	struct sk_buff *skb = netlink_skb(test, KOFI_NL_MSG_SIZE);
	struct fi_info *info = netlink_info(test);
	struct genl_info from;

	info->nic = &netlink_nic;
	genl_info_init_ntf(&from, &netlink_family, KOFI_CMD_INFO_GET);
	KUNIT_ASSERT_EQ(test, kofi_nl_put_info(skb, &from, info), 0);
	netlink_parse(test, skb, top, KOFI_A_INFO_MAX);

	KUNIT_EXPECT_EQ(test, nla_get_uint(top[KOFI_A_INFO_CAPS]), info->caps);
	KUNIT_EXPECT_EQ(test, nla_get_uint(top[KOFI_A_INFO_MODE]), info->mode);
	KUNIT_EXPECT_EQ(test, nla_len(top[KOFI_A_INFO_SRC_ADDR]),
			(int)sizeof(netlink_in));
	KUNIT_EXPECT_NULL(test, top[KOFI_A_INFO_DEST_ADDR]);

	netlink_nested(test, top[KOFI_A_INFO_TX_ATTR], tb, KOFI_A_TX_ATTR_MAX);
	EXPECT_ATTR(TX_ATTR, SIZE, 11);
	EXPECT_ATTR(TX_ATTR, IOV_LIMIT, 12);
	EXPECT_ATTR(TX_ATTR, RMA_IOV_LIMIT, 13);
	EXPECT_ATTR(TX_ATTR, INJECT_SIZE, SIZE_MAX);

	netlink_nested(test, top[KOFI_A_INFO_RX_ATTR], tb, KOFI_A_RX_ATTR_MAX);
	EXPECT_ATTR(RX_ATTR, SIZE, 21);
	EXPECT_ATTR(RX_ATTR, IOV_LIMIT, 22);
	EXPECT_ATTR(RX_ATTR, TOTAL_BUFFERED_RECV, 23);

	netlink_nested(test, top[KOFI_A_INFO_EP_ATTR], tb, KOFI_A_EP_ATTR_MAX);
	EXPECT_ATTR(EP_ATTR, TYPE, FI_EP_MSG);
	EXPECT_ATTR(EP_ATTR, PROTOCOL, FI_PROTO_SOCK_TCP);
	EXPECT_ATTR(EP_ATTR, MAX_ORDER_RAW_SIZE, 31);
	EXPECT_ATTR(EP_ATTR, MAX_ORDER_WAR_SIZE, 32);
	EXPECT_ATTR(EP_ATTR, MAX_ORDER_WAW_SIZE, 33);
	EXPECT_ATTR(EP_ATTR, TX_CTX_CNT, 34);
	EXPECT_ATTR(EP_ATTR, RX_CTX_CNT, 35);

	netlink_nested(test, top[KOFI_A_INFO_DOMAIN_ATTR], tb,
		       KOFI_A_DOMAIN_ATTR_MAX);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[KOFI_A_DOMAIN_ATTR_NAME]),
			   netlink_name);
	EXPECT_ATTR(DOMAIN_ATTR, MR_MODE, U32_MAX);
	EXPECT_ATTR(DOMAIN_ATTR, MAX_EP_TX_CTX, 41);
	EXPECT_ATTR(DOMAIN_ATTR, MAX_EP_RX_CTX, 42);
	EXPECT_ATTR(DOMAIN_ATTR, MAX_EP_STX_CTX, 43);
	EXPECT_ATTR(DOMAIN_ATTR, MAX_EP_SRX_CTX, 44);
	EXPECT_ATTR(DOMAIN_ATTR, MAX_CNTR_VALUE, U64_MAX);

	netlink_nested(test, top[KOFI_A_INFO_FABRIC_ATTR], tb,
		       KOFI_A_FABRIC_ATTR_MAX);
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_FABRIC_ATTR_NAME]);
	EXPECT_ATTR(FABRIC_ATTR, PROV_VERSION, FI_VERSION(3, 4));
	EXPECT_ATTR(FABRIC_ATTR, API_VERSION, FI_VERSION(2, 1));

	netlink_nested(test, top[KOFI_A_INFO_NIC], nic, KOFI_A_NIC_MAX);
	netlink_nested(test, nic[KOFI_A_NIC_BUS_ATTR], tb, KOFI_A_BUS_ATTR_MAX);
	EXPECT_ATTR(BUS_ATTR, TYPE, FI_BUS_PCI);
	netlink_nested(test, tb[KOFI_A_BUS_ATTR_PCI], tb, KOFI_A_PCI_ATTR_MAX);
	EXPECT_ATTR(PCI_ATTR, DOMAIN_ID, 1);
	EXPECT_ATTR(PCI_ATTR, FUNCTION_ID, 4);
	netlink_nested(test, nic[KOFI_A_NIC_LINK_ATTR], tb,
		       KOFI_A_LINK_ATTR_MAX);
	EXPECT_ATTR(LINK_ATTR, SPEED, 100000000000ULL);
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_LINK_ATTR_ADDRESS]);

	info->nic = NULL;	/* static */
	fi_freeinfo(info);
	kfree_skb(skb);
}

/* Whatever room there is: all of it or nothing. */
static void netlink_info_room(struct kunit *test)
{
	struct fi_info *info = netlink_info(test);
	struct genl_info from;
	struct sk_buff *skb;
	size_t room, need;

	info->nic = &netlink_nic;
	genl_info_init_ntf(&from, &netlink_family, KOFI_CMD_INFO_GET);
	skb = netlink_skb(test, KOFI_NL_MSG_SIZE);
	KUNIT_ASSERT_EQ(test, kofi_nl_put_info(skb, &from, info), 0);
	need = skb->len;
	kfree_skb(skb);

	for (room = 0; room < need; room += 4) {
		skb = netlink_skb(test, room);
		KUNIT_EXPECT_EQ(test, kofi_nl_put_info(skb, &from, info),
				-EMSGSIZE);
		KUNIT_EXPECT_EQ(test, skb->len, 0);
		kfree_skb(skb);
	}
	skb = netlink_skb(test, need);
	KUNIT_EXPECT_EQ(test, kofi_nl_put_info(skb, &from, info), 0);
	KUNIT_EXPECT_EQ(test, skb->len, need);
	kfree_skb(skb);
	info->nic = NULL;
	fi_freeinfo(info);
}

/* ----------------------------------------------------------------- objects */

static void netlink_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	fn(arg, "first", 1);
	fn(arg, "second", U64_MAX);
}

static const struct kofi_obj_ops netlink_obj_ops = { .stats = netlink_stats };

static void netlink_obj_put(struct kunit *test)
{
	struct kofi_provider prov = { .name = "fake" };
	struct kofi_fabric fabric = {
		.fabric.fid.fclass = FI_CLASS_FABRIC,
		.obj = { .fid = &fabric.fabric.fid, .prov = &prov, .id = 7,
			 .ops = &netlink_obj_ops },
		.net = &init_net,
		.name = (char *)netlink_name,
		.owner = "kofi_owner",
	};
	struct fi_fid cq = { .fclass = FI_CLASS_CQ };
	struct kofi_obj child = {
		.fid = &cq, .parent = &fabric.obj, .id = 8,
	};
	struct nlattr *tb[KOFI_A_OBJ_MAX + 1];
	struct sk_buff *skb = netlink_skb(test, KOFI_NL_MSG_SIZE);
	struct genl_info from;
	size_t room, need;

	genl_info_init_ntf(&from, &netlink_family, KOFI_CMD_OBJ_GET);
	KUNIT_ASSERT_EQ(test, kofi_nl_put_obj(skb, &from, &fabric.obj), 0);
	need = skb->len;
	netlink_parse(test, skb, tb, KOFI_A_OBJ_MAX);
	EXPECT_ATTR(OBJ, ID, 7);
	EXPECT_ATTR(OBJ, CLASS, FI_CLASS_FABRIC);
	EXPECT_ATTR(OBJ, NETNS, init_net.ns.inum);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[KOFI_A_OBJ_NAME]), netlink_name);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[KOFI_A_OBJ_PROV_NAME]), "fake");
	KUNIT_EXPECT_STREQ(test, nla_data(tb[KOFI_A_OBJ_OWNER]), "kofi_owner");
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_OBJ_PARENT]);
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_OBJ_STATE]);
	/* the last of its statistics */
	netlink_nested(test, tb[KOFI_A_OBJ_STAT], tb, KOFI_A_STAT_MAX);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[KOFI_A_STAT_NAME]), "second");
	EXPECT_ATTR(STAT, VALUE, U64_MAX);
	kfree_skb(skb);

	skb = netlink_skb(test, KOFI_NL_MSG_SIZE);
	KUNIT_ASSERT_EQ(test, kofi_nl_put_obj(skb, &from, &child), 0);
	netlink_parse(test, skb, tb, KOFI_A_OBJ_MAX);
	EXPECT_ATTR(OBJ, ID, 8);
	EXPECT_ATTR(OBJ, PARENT, 7);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[KOFI_A_OBJ_OWNER]), "kofi_owner");
	EXPECT_ATTR(OBJ, NETNS, init_net.ns.inum);
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_OBJ_NAME]);
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_OBJ_PROV_NAME]);
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_OBJ_STAT]);
	kfree_skb(skb);

	for (room = 0; room < need; room += 4) {
		skb = netlink_skb(test, room);
		KUNIT_EXPECT_EQ(test, kofi_nl_put_obj(skb, &from, &fabric.obj),
				-EMSGSIZE);
		KUNIT_EXPECT_EQ(test, skb->len, 0);
		kfree_skb(skb);
	}
}

static void netlink_peer_put(struct kunit *test)
{
	struct kofi_peer_state peer = {
		.state = KOFI_EP_CONNECTED, .reconnects = 2, .tx_waiting = 3,
		.rx_stored = 4, .rx_stored_bytes = 1UL << 31,
	};
	struct nlattr *tb[KOFI_A_PEER_MAX + 1];
	struct sk_buff *skb = netlink_skb(test, KOFI_NL_MSG_SIZE);
	struct kofi_av *av = kunit_kzalloc(test, sizeof(*av), GFP_KERNEL);
	struct kofi_ep *ep = kunit_kzalloc(test, sizeof(*ep), GFP_KERNEL);
	struct genl_info from;
	size_t room, need;

	KUNIT_ASSERT_TRUE(test, ep && av);
	/* a vector without addresses */
	ep->av = av;
	KUNIT_ASSERT_EQ(test, rhashtable_init(&av->hash, &kofi_av_hash), 0);
	memcpy(&peer.addr, &netlink_in6, sizeof(netlink_in6));
	genl_info_init_ntf(&from, &netlink_family, KOFI_CMD_PEER_GET);
	KUNIT_ASSERT_EQ(test, kofi_nl_put_peer(skb, &from, ep, &peer), 0);
	need = skb->len;
	netlink_parse(test, skb, tb, KOFI_A_PEER_MAX);
	KUNIT_ASSERT_NOT_NULL(test, tb[KOFI_A_PEER_ADDR]);
	KUNIT_ASSERT_EQ(test, nla_len(tb[KOFI_A_PEER_ADDR]),
			(int)sizeof(netlink_in6));
	KUNIT_EXPECT_MEMEQ(test, nla_data(tb[KOFI_A_PEER_ADDR]), &netlink_in6,
			   sizeof(netlink_in6));
	KUNIT_EXPECT_NULL(test, tb[KOFI_A_PEER_FI_ADDR]);
	EXPECT_ATTR(PEER, STATE, KOFI_EP_CONNECTED);
	EXPECT_ATTR(PEER, RECONNECTS, 2);
	EXPECT_ATTR(PEER, TX_WAITING, 3);
	EXPECT_ATTR(PEER, RX_STORED, 4);
	EXPECT_ATTR(PEER, RX_STORED_BYTES, 1UL << 31);
	kfree_skb(skb);
	for (room = 0; room < need; room += 4) {
		skb = netlink_skb(test, room);
		KUNIT_EXPECT_EQ(test, kofi_nl_put_peer(skb, &from, ep, &peer),
				-EMSGSIZE);
		KUNIT_EXPECT_EQ(test, skb->len, 0);
		kfree_skb(skb);
	}
	rhashtable_destroy(&av->hash);
}

static struct kunit_case netlink_cases[] = {
	KUNIT_CASE_PARAM(netlink_hints_parsed, netlink_hints_gen_params),
	KUNIT_CASE(netlink_info_put),
	KUNIT_CASE(netlink_info_room),
	KUNIT_CASE(netlink_obj_put),
	KUNIT_CASE(netlink_peer_put),
	{}
};

static struct kunit_suite netlink_suite = {
	.name		= "kofi_netlink",
	.test_cases	= netlink_cases,
};

kunit_test_suite(netlink_suite);

MODULE_DESCRIPTION("Tests of kOFI's netlink messages");
MODULE_LICENSE("Dual BSD/GPL");
