// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kofi/info.c and lib/addr.c: copies, matching, addresses, discovery. */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include <linux/kofi/lib.h>

#include "objects.h"

/* ------------------------------------------------------------------ copies */

static void info_free(void *info)
{
	fi_freeinfo(info);
}

/* An empty info that goes with the test */
static struct fi_info *info_alloc(struct kunit *test)
{
	struct fi_info *info = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, info_free,
							   info));
	return info;
}

static void info_empty(struct kunit *test)
{
	struct fi_info *info = info_alloc(test);

	KUNIT_EXPECT_NOT_NULL(test, info->tx_attr);
	KUNIT_EXPECT_NOT_NULL(test, info->rx_attr);
	KUNIT_EXPECT_NOT_NULL(test, info->ep_attr);
	KUNIT_EXPECT_NOT_NULL(test, info->domain_attr);
	KUNIT_EXPECT_NOT_NULL(test, info->fabric_attr);
	KUNIT_EXPECT_NULL(test, info->nic);
	KUNIT_EXPECT_NULL(test, info->next);
	KUNIT_EXPECT_EQ(test, 0, info->caps);
	KUNIT_EXPECT_NULL(test, info->fabric_attr->net);
	fi_freeinfo(NULL);
}

static void info_full_nic(struct kunit *test, struct fi_info *info)
{
	struct fid_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, nic);
	info->nic = nic;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->prov_attr = test;
	nic->device_attr = kzalloc(sizeof(*nic->device_attr), GFP_KERNEL);
	nic->bus_attr = kzalloc(sizeof(*nic->bus_attr), GFP_KERNEL);
	nic->link_attr = kzalloc(sizeof(*nic->link_attr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, nic->device_attr);
	KUNIT_ASSERT_NOT_NULL(test, nic->bus_attr);
	KUNIT_ASSERT_NOT_NULL(test, nic->link_attr);
	nic->device_attr->name = kstrdup("dev", GFP_KERNEL);
	nic->device_attr->driver = kstrdup("drv", GFP_KERNEL);
	nic->bus_attr->bus_type = FI_BUS_PCI;
	nic->bus_attr->attr.pci.bus_id = 3;
	nic->link_attr->address = kstrdup("00:11", GFP_KERNEL);
	nic->link_attr->network_type = kstrdup("Ethernet", GFP_KERNEL);
	nic->link_attr->mtu = 1500;
}

static struct fi_info *info_full(struct kunit *test)
{
	struct fi_info *info = nul_info(test, 0);

	info->caps = 1;
	info->mode = 2;
	info->handle = (struct fi_fid *)test;
	info->src_addr = kmemdup("src", 3, GFP_KERNEL);
	info->src_addrlen = 3;
	info->tx_attr->size = 4;
	info->rx_attr->size = 5;
	info->ep_attr->auth_key = kmemdup("key", 3, GFP_KERNEL);
	info->ep_attr->auth_key_size = 3;
	info->domain_attr->auth_key = kmemdup("domainkey", 9, GFP_KERNEL);
	info->domain_attr->auth_key_size = 9;
	info->domain_attr->mr_cnt = 6;
	info_full_nic(test, info);
	return info;
}

static void info_dup(struct kunit *test)
{
	struct fi_info *a = info_full(test);
	struct fi_info *next = info_alloc(test);
	struct fi_info *b;

	a->next = next;
	b = fi_dupinfo(a);
	a->next = NULL;
	KUNIT_ASSERT_NOT_NULL(test, b);

	KUNIT_EXPECT_NULL(test, b->next);
	KUNIT_EXPECT_EQ(test, a->caps, b->caps);
	KUNIT_EXPECT_EQ(test, a->mode, b->mode);
	KUNIT_EXPECT_EQ(test, a->addr_format, b->addr_format);
	KUNIT_EXPECT_PTR_EQ(test, a->handle, b->handle);
	KUNIT_EXPECT_PTR_NE(test, a->src_addr, b->src_addr);
	KUNIT_EXPECT_MEMEQ(test, "src", b->src_addr, 3);
	KUNIT_EXPECT_EQ(test, a->dest_addrlen, b->dest_addrlen);
	KUNIT_EXPECT_PTR_NE(test, a->dest_addr, b->dest_addr);
	KUNIT_EXPECT_MEMEQ(test, a->dest_addr, b->dest_addr, a->dest_addrlen);

	KUNIT_EXPECT_PTR_NE(test, a->tx_attr, b->tx_attr);
	KUNIT_EXPECT_EQ(test, 4, b->tx_attr->size);
	KUNIT_EXPECT_PTR_NE(test, a->rx_attr, b->rx_attr);
	KUNIT_EXPECT_EQ(test, 5, b->rx_attr->size);
	KUNIT_EXPECT_PTR_NE(test, a->ep_attr->auth_key, b->ep_attr->auth_key);
	KUNIT_EXPECT_MEMEQ(test, "key", b->ep_attr->auth_key, 3);
	KUNIT_EXPECT_PTR_NE(test, a->domain_attr->name, b->domain_attr->name);
	KUNIT_EXPECT_STREQ(test, a->domain_attr->name, b->domain_attr->name);
	KUNIT_EXPECT_MEMEQ(test, "domainkey", b->domain_attr->auth_key, 9);
	KUNIT_EXPECT_EQ(test, 6, b->domain_attr->mr_cnt);
	KUNIT_EXPECT_PTR_NE(test, a->fabric_attr->name, b->fabric_attr->name);
	KUNIT_EXPECT_STREQ(test, NUL_FABRIC, b->fabric_attr->name);
	KUNIT_EXPECT_STREQ(test, "nul0", b->fabric_attr->prov_name);

	KUNIT_ASSERT_NOT_NULL(test, b->nic);
	KUNIT_EXPECT_PTR_NE(test, a->nic, b->nic);
	KUNIT_EXPECT_EQ(test, FI_CLASS_NIC, b->nic->fid.fclass);
	KUNIT_EXPECT_NULL(test, b->nic->prov_attr);
	KUNIT_EXPECT_STREQ(test, "dev", b->nic->device_attr->name);
	KUNIT_EXPECT_STREQ(test, "drv", b->nic->device_attr->driver);
	KUNIT_EXPECT_NULL(test, b->nic->device_attr->firmware);
	KUNIT_EXPECT_EQ(test, 3, b->nic->bus_attr->attr.pci.bus_id);
	KUNIT_EXPECT_STREQ(test, "00:11", b->nic->link_attr->address);
	KUNIT_EXPECT_STREQ(test, "Ethernet", b->nic->link_attr->network_type);
	KUNIT_EXPECT_EQ(test, 1500, b->nic->link_attr->mtu);
	fi_freeinfo(b);
}

/* A sparse one stays sparse. */
static void info_dup_sparse(struct kunit *test)
{
	struct fi_info hints = { .caps = FI_MSG };
	struct fi_info *dup = fi_dupinfo(&hints);

	KUNIT_ASSERT_NOT_NULL(test, dup);
	KUNIT_EXPECT_EQ(test, FI_MSG, dup->caps);
	KUNIT_EXPECT_NULL(test, dup->tx_attr);
	KUNIT_EXPECT_NULL(test, dup->domain_attr);
	KUNIT_EXPECT_NULL(test, dup->src_addr);
	fi_freeinfo(dup);
}

static void info_dup_net(struct kunit *test)
{
	struct net *net = nul_net(test);
	struct fi_fabric_attr attr = { .net = net };
	struct fi_info hints = { .fabric_attr = &attr };
	struct fi_info *a, *b;

	a = fi_dupinfo(&hints);
	KUNIT_ASSERT_NOT_NULL(test, a);
	b = fi_dupinfo(a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_EXPECT_EQ(test, 3, ns_ref_read(net));
	/* What the owner writes there does not mislead fi_freeinfo(). */
	b->fabric_attr->net = NULL;
	fi_freeinfo(b);
	KUNIT_EXPECT_EQ(test, 2, ns_ref_read(net));
	a->next = fi_dupinfo(a);
	KUNIT_EXPECT_NOT_NULL(test, a->next);
	fi_freeinfo(a);
	KUNIT_EXPECT_EQ(test, 1, ns_ref_read(net));
}

/* ---------------------------------------------------------------- matching */

enum info_part { INFO_NONE, INFO_TOP, INFO_TX, INFO_RX, INFO_EP, INFO_DOM,
		 INFO_FAB };

/* A member of the provider's info or of the hints, and its value */
struct info_set {
	enum info_part	part;
	bool		hints;
	size_t		offset;
	size_t		size;
	u64		value;
};

/* Members of 64 and of 32 bits */
#define SET(hints, part, type, member, value) \
	{ part, hints, offsetof(struct type, member), 8, value }
#define SET32(hints, part, type, member, value) \
	{ part, hints, offsetof(struct type, member), 4, value }
#define H_TOP(member, value) \
	SET(true, INFO_TOP, fi_info, member, value)
#define H_TOP32(member, value) \
	SET32(true, INFO_TOP, fi_info, member, value)
#define H_TX(member, value) \
	SET(true, INFO_TX, fi_tx_attr, member, value)
#define H_TX32(member, value) \
	SET32(true, INFO_TX, fi_tx_attr, member, value)
#define H_RX(member, value) \
	SET(true, INFO_RX, fi_rx_attr, member, value)
#define H_EP(member, value) \
	SET(true, INFO_EP, fi_ep_attr, member, value)
#define H_EP32(member, value) \
	SET32(true, INFO_EP, fi_ep_attr, member, value)
#define H_DOM(member, value) \
	SET(true, INFO_DOM, fi_domain_attr, member, value)
#define H_DOM32(member, value) \
	SET32(true, INFO_DOM, fi_domain_attr, member, value)
#define H_FAB32(member, value) \
	SET32(true, INFO_FAB, fi_fabric_attr, member, value)
#define P_TOP(member, value) \
	SET(false, INFO_TOP, fi_info, member, value)
#define P_TOP32(member, value) \
	SET32(false, INFO_TOP, fi_info, member, value)
#define P_TX(member, value) \
	SET(false, INFO_TX, fi_tx_attr, member, value)
#define P_TX32(member, value) \
	SET32(false, INFO_TX, fi_tx_attr, member, value)
#define P_EP(member, value) \
	SET(false, INFO_EP, fi_ep_attr, member, value)
#define P_DOM(member, value) \
	SET(false, INFO_DOM, fi_domain_attr, member, value)
#define P_DOM32(member, value) \
	SET32(false, INFO_DOM, fi_domain_attr, member, value)

static void info_apply(struct fi_info *info, const struct info_set *set)
{
	void *to[] = {
		[INFO_TOP] = info, [INFO_TX] = info->tx_attr,
		[INFO_RX] = info->rx_attr, [INFO_EP] = info->ep_attr,
		[INFO_DOM] = info->domain_attr, [INFO_FAB] = info->fabric_attr,
	};

	if (set->size == 8)
		*(u64 *)(to[set->part] + set->offset) = set->value;
	else
		*(u32 *)(to[set->part] + set->offset) = set->value;
}

/* What the provider of these tests has */
static struct fi_info *info_prov(struct kunit *test)
{
	struct fi_info *p = info_alloc(test);

	p->caps = FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM |
		  FI_MULTI_RECV | FI_TAGGED;
	p->addr_format = FI_SOCKADDR_IN;
	p->tx_attr->caps = FI_MSG | FI_SEND | FI_TAGGED;
	p->tx_attr->op_flags = FI_COMPLETION | FI_INJECT;
	p->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_WAW;
	p->tx_attr->comp_order = FI_ORDER_STRICT;
	p->tx_attr->inject_size = 128;
	p->tx_attr->size = 256;
	p->tx_attr->iov_limit = 16;
	p->tx_attr->rma_iov_limit = 4;
	p->rx_attr->caps = FI_MSG | FI_RECV | FI_MULTI_RECV | FI_TAGGED;
	p->rx_attr->op_flags = FI_COMPLETION;
	p->rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_WAW;
	p->rx_attr->size = 256;
	p->rx_attr->iov_limit = 16;
	p->ep_attr->type = FI_EP_MSG;
	p->ep_attr->protocol = FI_PROTO_SOCK_TCP;
	p->ep_attr->protocol_version = 3;
	p->ep_attr->max_msg_size = SZ_1G;
	p->ep_attr->max_order_waw_size = SZ_1M;
	p->ep_attr->mem_tag_format = 0xffff;
	p->ep_attr->tx_ctx_cnt = 1;
	p->ep_attr->rx_ctx_cnt = 1;
	p->domain_attr->name = kstrdup("eth0", GFP_KERNEL);
	p->domain_attr->threading = FI_THREAD_SAFE;
	p->domain_attr->control_progress = FI_PROGRESS_AUTO;
	p->domain_attr->data_progress = FI_PROGRESS_AUTO;
	p->domain_attr->resource_mgmt = FI_RM_ENABLED;
	p->domain_attr->mr_key_size = 8;
	p->domain_attr->cq_data_size = 8;
	p->domain_attr->cq_cnt = 1000;
	p->domain_attr->ep_cnt = 1000;
	p->domain_attr->tx_ctx_cnt = 1000;
	p->domain_attr->rx_ctx_cnt = 1000;
	p->domain_attr->max_ep_tx_ctx = 1;
	p->domain_attr->max_ep_rx_ctx = 1;
	p->domain_attr->cntr_cnt = 10;
	p->domain_attr->mr_iov_limit = 1;
	p->domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	p->domain_attr->max_err_data = 256;
	p->domain_attr->max_cntr_value = U32_MAX;
	p->fabric_attr->name = kstrdup("10.0.0.0/8", GFP_KERNEL);
	p->fabric_attr->prov_version = FI_VERSION(1, 2);
	KUNIT_ASSERT_NOT_NULL(test, p->domain_attr->name);
	KUNIT_ASSERT_NOT_NULL(test, p->fabric_attr->name);
	return p;
}

#define NO	(-ENODATA)

static const struct match_case {
	const char	*name;
	int		want;
	struct info_set	set[3];
} match_cases[] = {
	{ "nothing asked for", 0 },

	{ "a capability", 0, { H_TOP(caps, FI_MSG) } },
	{ "all capabilities", 0,
	  { H_TOP(caps, FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM) } },
	{ "a missing primary capability", NO, { H_TOP(caps, FI_RMA) } },
	{ "one of two missing", NO, { H_TOP(caps, FI_MSG | FI_ATOMIC) } },
	{ "a secondary capability", 0, { H_TOP(caps, FI_MSG | FI_MULTI_RECV) } },
	{ "a missing secondary capability", NO,
	  { H_TOP(caps, FI_MSG | FI_RMA_EVENT) } },
	{ "one direction of a provider with both", 0,
	  { H_TOP(caps, FI_MSG | FI_SEND) } },
	{ "no direction means both", NO,
	  { H_TOP(caps, FI_MSG), P_TOP(caps, FI_MSG | FI_SEND) } },
	{ "the one direction there is", 0,
	  { H_TOP(caps, FI_MSG | FI_SEND), P_TOP(caps, FI_MSG | FI_SEND) } },

	{ "a mode offered, not needed", 0, { H_TOP(mode, FI_CONTEXT) } },
	{ "a mode needed, offered", 0,
	  { H_TOP(mode, FI_CONTEXT | FI_CONTEXT2), P_TOP(mode, FI_CONTEXT) } },
	{ "a mode needed, not offered", NO, { P_TOP(mode, FI_CONTEXT) } },
	{ "another mode offered", NO,
	  { H_TOP(mode, FI_CONTEXT2), P_TOP(mode, FI_CONTEXT) } },
	{ "a transmit mode needed, offered for all", 0,
	  { H_TOP(mode, FI_CONTEXT), P_TX(mode, FI_CONTEXT) } },
	{ "a transmit mode needed, offered there", 0,
	  { H_TX(mode, FI_CONTEXT), P_TX(mode, FI_CONTEXT) } },
	{ "a transmit mode needed, not offered", NO,
	  { P_TX(mode, FI_CONTEXT) } },
	{ "a domain mode needed, not offered", NO,
	  { P_DOM(mode, FI_CONTEXT) } },

	{ "same address format", 0, { H_TOP32(addr_format, FI_SOCKADDR_IN) } },
	{ "any sockaddr", 0, { H_TOP32(addr_format, FI_SOCKADDR) } },
	{ "any IP", 0, { H_TOP32(addr_format, FI_SOCKADDR_IP) } },
	{ "another family", NO, { H_TOP32(addr_format, FI_SOCKADDR_IN6) } },
	{ "any sockaddr matches IPv6", 0,
	  { H_TOP32(addr_format, FI_SOCKADDR),
	    P_TOP32(addr_format, FI_SOCKADDR_IN6) } },
	{ "any IP does not match IB", NO,
	  { H_TOP32(addr_format, FI_SOCKADDR_IP),
	    P_TOP32(addr_format, FI_SOCKADDR_IB) } },
	{ "any sockaddr matches IB", 0,
	  { H_TOP32(addr_format, FI_SOCKADDR),
	    P_TOP32(addr_format, FI_SOCKADDR_IB) } },
	{ "a provider of any sockaddr", 0,
	  { H_TOP32(addr_format, FI_SOCKADDR_IN6),
	    P_TOP32(addr_format, FI_SOCKADDR) } },
	{ "a string", NO, { H_TOP32(addr_format, FI_ADDR_STR) } },

	{ "transmit caps", 0, { H_TX(caps, FI_MSG | FI_SEND) } },
	{ "missing transmit caps", NO, { H_TX(caps, FI_MSG | FI_RMA) } },
	{ "transmit caps with all that was asked for", 0,
	  { H_TOP(caps, FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM),
	    H_TX(caps, FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM) } },
	{ "transmit op flags", 0, { H_TX(op_flags, FI_INJECT) } },
	{ "unknown transmit op flags", NO, { H_TX(op_flags, FI_FENCE) } },
	{ "transmit order", 0, { H_TX(msg_order, FI_ORDER_SAS) } },
	{ "missing transmit order", NO, { H_TX(msg_order, FI_ORDER_RAW) } },
	{ "completion order", 0, { H_TX(comp_order, FI_ORDER_STRICT) } },
	{ "missing completion order", NO, { H_TX(comp_order, FI_ORDER_DATA) } },
	{ "inject size at the limit", 0, { H_TX(inject_size, 128) } },
	{ "inject size beyond", NO, { H_TX(inject_size, 129) } },
	{ "transmit queue at the limit", 0, { H_TX(size, 256) } },
	{ "transmit queue beyond", NO, { H_TX(size, 257) } },
	{ "transmit segments beyond", NO, { H_TX(iov_limit, 17) } },
	{ "remote segments beyond", NO, { H_TX(rma_iov_limit, 5) } },
	{ "traffic class, provider has any", 0,
	  { H_TX32(tclass, FI_TC_LOW_LATENCY) } },
	{ "traffic class, provider has another", NO,
	  { H_TX32(tclass, FI_TC_LOW_LATENCY), P_TX32(tclass, FI_TC_BULK_DATA) } },

	{ "receive caps", 0, { H_RX(caps, FI_MSG | FI_MULTI_RECV) } },
	{ "missing receive caps", NO, { H_RX(caps, FI_SOURCE) } },
	{ "unknown sources", 0,
	  { P_TOP(caps, FI_MSG | FI_SEND | FI_RECV | FI_SOURCE | FI_SOURCE_ERR),
	    H_TOP(caps, FI_MSG | FI_SOURCE | FI_SOURCE_ERR) } },
	{ "unknown sources without sources", NO,
	  { P_TOP(caps, FI_MSG | FI_SEND | FI_RECV | FI_SOURCE | FI_SOURCE_ERR),
	    H_TOP(caps, FI_MSG | FI_SOURCE_ERR) } },
	{ "receive caps with those of transmits", 0,
	  { H_RX(caps, FI_MSG | FI_SEND | FI_RECV | FI_REMOTE_COMM) } },
	{ "unknown receive op flags", NO, { H_RX(op_flags, FI_INJECT) } },
	{ "missing receive order", NO, { H_RX(msg_order, FI_ORDER_RAS) } },
	{ "receive queue at the limit", 0, { H_RX(size, 256) } },
	{ "receive queue beyond", NO, { H_RX(size, 257) } },
	{ "receive segments beyond", NO, { H_RX(iov_limit, 17) } },
	{ "receive buffering beyond", NO, { H_RX(total_buffered_recv, 1) } },

	{ "endpoint type", 0, { H_EP32(type, FI_EP_MSG) } },
	{ "another endpoint type", NO, { H_EP32(type, FI_EP_RDM) } },
	{ "protocol", 0, { H_EP32(protocol, FI_PROTO_SOCK_TCP) } },
	{ "another protocol", NO, { H_EP32(protocol, FI_PROTO_RXM) } },
	{ "older protocol version", 0, { H_EP32(protocol_version, 2) } },
	{ "newer protocol version", NO, { H_EP32(protocol_version, 4) } },
	{ "message size at the limit", 0, { H_EP(max_msg_size, SZ_1G) } },
	{ "message size beyond", NO, { H_EP(max_msg_size, SZ_1G + 1) } },
	{ "less room than the prefix needs", NO,
	  { H_EP(msg_prefix_size, 39), P_EP(msg_prefix_size, 40) } },
	{ "room for the prefix", 0,
	  { H_EP(msg_prefix_size, 40), P_EP(msg_prefix_size, 40) } },
	{ "ordered writes at the limit", 0, { H_EP(max_order_waw_size, SZ_1M) } },
	{ "ordered writes beyond", NO, { H_EP(max_order_waw_size, SZ_1M + 1) } },
	{ "ordered reads beyond", NO, { H_EP(max_order_raw_size, 1) } },
	{ "tag format", 0,
	  { H_TOP(caps, FI_TAGGED), H_EP(mem_tag_format, 0x8001) } },
	{ "tag format too wide", NO,
	  { H_TOP(caps, FI_TAGGED), H_EP(mem_tag_format, 0x10000) } },
	{ "tag format without tags", 0, { H_EP(mem_tag_format, 0x10000) } },
	{ "tags of MPI, too wide", NO,
	  { H_TOP(caps, FI_TAGGED), H_EP(mem_tag_format, FI_TAG_MPI) } },
	{ "tags of MPI", 0,
	  { H_TOP(caps, FI_TAGGED), H_EP(mem_tag_format, FI_TAG_MPI),
	    P_EP(mem_tag_format, 0xaaaaaaaaaaULL) } },
	{ "tags of collectives", 0,
	  { H_TOP(caps, FI_TAGGED), H_EP(mem_tag_format, FI_TAG_CCL) } },
	{ "one context", 0, { H_EP(tx_ctx_cnt, 1), H_EP(rx_ctx_cnt, 1) } },
	{ "two contexts", NO, { H_EP(tx_ctx_cnt, 2) } },
	{ "domain of a class", 0, { H_DOM32(tclass, FI_TC_BULK_DATA) } },
	{ "domain of no class", NO, { H_DOM32(tclass, 12345) } },
	{ "domain of another class", NO,
	  { H_DOM32(tclass, FI_TC_BULK_DATA), P_DOM32(tclass, FI_TC_LOW_LATENCY) } },
	{ "shared context, none to be had", NO,
	  { H_EP(rx_ctx_cnt, FI_SHARED_CONTEXT) } },
	{ "shared context", 0,
	  { H_EP(rx_ctx_cnt, FI_SHARED_CONTEXT), P_DOM(max_ep_srx_ctx, 1) } },
	{ "endpoint key", NO, { H_EP(auth_key_size, 4) } },

	{ "safest threading", 0, { H_DOM32(threading, FI_THREAD_SAFE) } },
	{ "laxer threading", 0, { H_DOM32(threading, FI_THREAD_DOMAIN) } },
	{ "provider asks for laxer threading", NO,
	  { H_DOM32(threading, FI_THREAD_SAFE),
	    P_DOM32(threading, FI_THREAD_COMPLETION) } },
	{ "provider asks for less than offered", 0,
	  { H_DOM32(threading, FI_THREAD_DOMAIN),
	    P_DOM32(threading, FI_THREAD_COMPLETION) } },
	{ "manual progress, provider does it", 0,
	  { H_DOM32(data_progress, FI_PROGRESS_MANUAL) } },
	{ "automatic progress, provider does not", NO,
	  { H_DOM32(data_progress, FI_PROGRESS_AUTO),
	    P_DOM32(data_progress, FI_PROGRESS_MANUAL) } },
	{ "automatic control progress, provider does not", NO,
	  { H_DOM32(control_progress, FI_PROGRESS_AUTO),
	    P_DOM32(control_progress, FI_PROGRESS_MANUAL) } },
	{ "unified progress, provider does it", 0,
	  { H_DOM32(control_progress, FI_PROGRESS_CONTROL_UNIFIED) } },
	{ "resource management", 0, { H_DOM32(resource_mgmt, FI_RM_ENABLED) } },
	{ "resource management off", 0, { H_DOM32(resource_mgmt, FI_RM_DISABLED) } },
	{ "resource management, provider has none", NO,
	  { H_DOM32(resource_mgmt, FI_RM_ENABLED),
	    P_DOM32(resource_mgmt, FI_RM_DISABLED) } },
	{ "AV type, provider has any", 0, { H_DOM32(av_type, FI_AV_TABLE) } },
	{ "AV type, provider has another", NO,
	  { H_DOM32(av_type, FI_AV_TABLE), P_DOM32(av_type, FI_AV_MAP) } },
	{ "domain caps", 0, { H_DOM(caps, FI_LOCAL_COMM) } },
	{ "missing domain caps", NO, { H_DOM(caps, FI_SHARED_AV) } },
	{ "key size beyond", NO, { H_DOM(mr_key_size, 9) } },
	{ "CQ data at the limit", 0, { H_DOM(cq_data_size, 8) } },
	{ "CQ data beyond", NO, { H_DOM(cq_data_size, 9) } },
	{ "queues beyond", NO, { H_DOM(cq_cnt, 1001) } },
	{ "endpoints beyond", NO, { H_DOM(ep_cnt, 1001) } },
	{ "transmit contexts beyond", NO, { H_DOM(tx_ctx_cnt, 1001) } },
	{ "receive contexts beyond", NO, { H_DOM(rx_ctx_cnt, 1001) } },
	{ "contexts per endpoint beyond", NO, { H_DOM(max_ep_tx_ctx, 2) } },
	{ "shared contexts per endpoint beyond", NO,
	  { H_DOM(max_ep_stx_ctx, 1) } },
	{ "counters at the limit", 0, { H_DOM(cntr_cnt, 10) } },
	{ "counters beyond", NO, { H_DOM(cntr_cnt, 11) } },
	{ "region segments beyond", NO, { H_DOM(mr_iov_limit, 2) } },
	{ "error data beyond", NO, { H_DOM(max_err_data, 257) } },
	{ "counter values beyond", NO,
	  { H_DOM(max_cntr_value, 1ULL << 32) } },
	{ "groups beyond", NO, { H_DOM32(max_group_id, 1) } },
	{ "domain key", NO, { H_DOM(auth_key_size, 4) } },

	{ "older provider version", 0, { H_FAB32(prov_version, FI_VERSION(1, 1)) } },
	{ "newer provider version", NO,
	  { H_FAB32(prov_version, FI_VERSION(1, 3)) } },

	{ "registration needs without remote access", 0,
	  { H_TOP(caps, FI_MSG), P_DOM32(mr_mode, FI_MR_PROV_KEY) } },
	{ "registration needs not met", NO,
	  { H_TOP(caps, FI_RMA), P_TOP(caps, FI_RMA | FI_READ | FI_WRITE |
				       FI_REMOTE_READ | FI_REMOTE_WRITE),
	    P_DOM32(mr_mode, FI_MR_PROV_KEY) } },
	{ "registration needs of an initiator", 0,
	  { H_TOP(caps, FI_RMA | FI_READ),
	    P_TOP(caps, FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
		  FI_REMOTE_WRITE),
	    P_DOM32(mr_mode, FI_MR_PROV_KEY) } },
	{ "local registration not met", NO,
	  { H_TOP(caps, FI_MSG), P_DOM32(mr_mode, FI_MR_LOCAL) } },
	{ "local registration met", 0,
	  { H_DOM32(mr_mode, FI_MR_LOCAL), P_DOM32(mr_mode, FI_MR_LOCAL) } },
	{ "local registration met by the old mode", 0,
	  { H_TOP(mode, FI_LOCAL_MR), P_DOM32(mr_mode, FI_MR_LOCAL) } },
	{ "registration offered, not needed", 0,
	  { H_DOM32(mr_mode, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR) } },
};

KUNIT_ARRAY_PARAM_DESC(match, match_cases, name);

static void info_match(struct kunit *test)
{
	const struct match_case *c = test->param_value;
	struct fi_info *prov = info_prov(test);
	struct fi_info *hints = info_alloc(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(c->set) && c->set[i].part; i++)
		info_apply(c->set[i].hints ? hints : prov, &c->set[i]);
	KUNIT_EXPECT_EQ(test, c->want, kofi_info_match(prov, hints));
}

/* The registration rules when remote memory is in play */
static const struct mr_case {
	const char	*name;
	int		prov, hints, want;
} mr_cases[] = {
	{ "nothing needed", 0, 0, 0 },
	{ "all needed, all offered", FI_MR_PROV_KEY | FI_MR_VIRT_ADDR,
	  FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT, 0 },
	{ "one not offered", FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, FI_MR_PROV_KEY,
	  NO },
	{ "basic offers three", FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
	  FI_MR_ALLOCATED, FI_MR_BASIC, 0 },
	{ "basic offers no more", FI_MR_ENDPOINT, FI_MR_BASIC, NO },
	{ "scalable offers nothing", FI_MR_PROV_KEY, FI_MR_SCALABLE, NO },
	{ "scalable where nothing is needed", 0, FI_MR_SCALABLE, 0 },
	{ "device memory is not in play", FI_MR_HMEM, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(mr, mr_cases, name);

static void info_match_mr(struct kunit *test)
{
	const struct mr_case *c = test->param_value;
	struct fi_info *prov = info_prov(test);
	struct fi_info *hints = info_alloc(test);

	prov->caps |= FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
		      FI_REMOTE_WRITE;
	hints->caps = FI_RMA;
	prov->domain_attr->mr_mode = c->prov;
	hints->domain_attr->mr_mode = c->hints;
	KUNIT_EXPECT_EQ(test, c->want, kofi_info_match(prov, hints));
}

static void info_match_names(struct kunit *test)
{
	struct fi_info *prov = info_prov(test);
	struct fi_domain_attr dom = { .name = "eth0" };
	struct fi_fabric_attr fab = { .name = "10.0.0.0/8" };
	struct fi_info hints = { .domain_attr = &dom, .fabric_attr = &fab };

	KUNIT_EXPECT_EQ(test, 0, kofi_info_match(prov, NULL));
	KUNIT_EXPECT_EQ(test, 0, kofi_info_match(prov, &hints));
	dom.name = "eth1";
	KUNIT_EXPECT_EQ(test, NO, kofi_info_match(prov, &hints));
	dom.name = "eth";
	KUNIT_EXPECT_EQ(test, NO, kofi_info_match(prov, &hints));
	dom.name = NULL;
	fab.name = "10.0.0.0/16";
	KUNIT_EXPECT_EQ(test, NO, kofi_info_match(prov, &hints));
	fab.name = NULL;
	fab.prov_name = "sock";
	KUNIT_EXPECT_EQ(test, 0, kofi_info_match(prov, &hints));
	prov->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, NO, kofi_info_match(prov, &hints));
}

static int info_ask(const struct fi_info *hints)
{
	struct fi_info *list;
	int ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &list);

	fi_freeinfo(list);
	return ret;
}

/* Hints that name open objects ask for what these are; they are not followed. */
static void info_open(struct kunit *test)
{
	struct fi_info *prov = nul_info(test, 0);
	struct fi_info *hints = info_alloc(test);
	struct fid_domain *domain;
	struct fid_fabric *fabric;

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	KUNIT_ASSERT_EQ(test, 0, nul_register(1, 0));
	fabric = nul_fabric(test, 0);
	domain = nul_domain(test, fabric);
	hints->fabric_attr->fabric = fabric;
	hints->domain_attr->domain = domain;
	KUNIT_EXPECT_EQ(test, 0, info_ask(hints));
	KUNIT_EXPECT_EQ(test, 1, nul[0].asked);
	KUNIT_EXPECT_EQ(test, 0, nul[1].asked);	/* not its fabric */
	KUNIT_EXPECT_STREQ(test, prov->fabric_attr->name, nul[0].fabric);
	KUNIT_EXPECT_STREQ(test, prov->domain_attr->name, nul[0].domain);
	hints->fabric_attr->fabric = NULL;
	KUNIT_EXPECT_EQ(test, 0, info_ask(hints));
	KUNIT_EXPECT_EQ(test, 0, nul[1].asked);
	hints->domain_attr->name = kstrdup("another", GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, NO, info_ask(hints));
	hints->domain_attr->domain = NULL;
	hints->fabric_attr->fabric = fabric;
	hints->fabric_attr->name = kstrdup("another", GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, NO, info_ask(hints));
	KUNIT_EXPECT_EQ(test, 2, nul[0].asked);

	/* no object, or none of that class, or none any more */
	hints->fabric_attr->fabric = (struct fid_fabric *)domain;
	KUNIT_EXPECT_EQ(test, -EINVAL, info_ask(hints));
	hints->fabric_attr->fabric = (struct fid_fabric *)0x10;
	KUNIT_EXPECT_EQ(test, -EINVAL, info_ask(hints));
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = (struct fid_domain *)fabric;
	KUNIT_EXPECT_EQ(test, -EINVAL, info_ask(hints));
	hints->domain_attr->domain = (struct fid_domain *)ERR_PTR(-ENODEV);
	KUNIT_EXPECT_EQ(test, -EINVAL, info_ask(hints));
	hints->domain_attr->domain = domain;
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, -EINVAL, info_ask(hints));
	KUNIT_EXPECT_EQ(test, 2, nul[0].asked);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

/* ---------------------------------------------------------------- granting */

static const struct caps_case {
	const char	*name;
	u64		hints, want, tx, rx;
} caps_cases[] = {
	{ "none asked for", 0,
	  FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM |
	  FI_MULTI_RECV | FI_TAGGED,
	  FI_MSG | FI_SEND | FI_TAGGED,
	  FI_MSG | FI_RECV | FI_MULTI_RECV | FI_TAGGED },
	{ "one primary", FI_MSG,
	  FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM |
	  FI_MULTI_RECV, FI_MSG | FI_SEND, FI_MSG | FI_RECV | FI_MULTI_RECV },
	{ "one direction", FI_MSG | FI_SEND,
	  FI_MSG | FI_SEND | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_MULTI_RECV,
	  FI_MSG | FI_SEND, FI_MSG | FI_MULTI_RECV },
	{ "a secondary too", FI_TAGGED | FI_MULTI_RECV,
	  FI_TAGGED | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM |
	  FI_MULTI_RECV,
	  FI_TAGGED | FI_SEND, FI_TAGGED | FI_RECV | FI_MULTI_RECV },
};

KUNIT_ARRAY_PARAM_DESC(caps, caps_cases, name);

static void info_grant_caps(struct kunit *test)
{
	const struct caps_case *c = test->param_value;
	struct fi_info *hints = info_alloc(test);
	struct fi_info *got;

	hints->caps = c->hints;
	got = kofi_info_grant(info_prov(test), hints);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, c->want, got->caps);
	KUNIT_EXPECT_EQ(test, c->tx, got->tx_attr->caps);
	KUNIT_EXPECT_EQ(test, c->rx, got->rx_attr->caps);
	fi_freeinfo(got);
}

static void info_grant_defaults(struct kunit *test)
{
	struct fi_info *prov = info_prov(test);
	struct fi_info *hints = info_alloc(test);
	struct fi_info *got = kofi_info_grant(prov, NULL);

	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, prov->caps, got->caps);
	KUNIT_EXPECT_EQ(test, 0, got->tx_attr->op_flags);
	KUNIT_EXPECT_EQ(test, 256, got->tx_attr->size);
	fi_freeinfo(got);

	got = kofi_info_grant(prov, hints);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, prov->caps, got->caps);
	KUNIT_EXPECT_EQ(test, 0, got->tx_attr->op_flags);
	KUNIT_EXPECT_EQ(test, 256, got->tx_attr->size);
	KUNIT_EXPECT_EQ(test, 256, got->rx_attr->size);
	KUNIT_EXPECT_EQ(test, 128, got->tx_attr->inject_size);
	KUNIT_EXPECT_EQ(test, FI_THREAD_SAFE, got->domain_attr->threading);
	KUNIT_EXPECT_EQ(test, 1, got->ep_attr->tx_ctx_cnt);
	KUNIT_EXPECT_STREQ(test, "eth0", got->domain_attr->name);
	fi_freeinfo(got);
}

static void info_reduce(struct kunit *test)
{
	struct fi_info *most = info_prov(test), *info = fi_dupinfo(most);

	KUNIT_ASSERT_NOT_NULL(test, info);
	info->caps |= FI_RMA;
	info->tx_attr->op_flags |= FI_COMMIT_COMPLETE;
	info->rx_attr->msg_order = FI_ORDER_WAR;
	info->tx_attr->size = 10;
	info->rx_attr->size = SIZE_MAX;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->domain_attr->cq_data_size = 4;
	info->domain_attr->cntr_cnt = 11;
	KUNIT_EXPECT_EQ(test, NO, kofi_info_match(most, info));
	kofi_info_reduce(info, most);
	KUNIT_EXPECT_EQ(test, 0, kofi_info_match(most, info));
	KUNIT_EXPECT_EQ(test, most->caps, info->caps);
	KUNIT_EXPECT_EQ(test, most->tx_attr->op_flags, info->tx_attr->op_flags);
	KUNIT_EXPECT_EQ(test, 0, info->rx_attr->msg_order);
	KUNIT_EXPECT_EQ(test, 10, info->tx_attr->size);
	KUNIT_EXPECT_EQ(test, 256, info->rx_attr->size);
	KUNIT_EXPECT_EQ(test, most->ep_attr->max_msg_size,
			info->ep_attr->max_msg_size);
	KUNIT_EXPECT_EQ(test, 4, info->domain_attr->cq_data_size);
	KUNIT_EXPECT_EQ(test, 10, info->domain_attr->cntr_cnt);
	fi_freeinfo(info);
}

static void info_grant_asked(struct kunit *test)
{
	struct fi_info *prov = info_prov(test);
	struct fi_info *hints = info_alloc(test);
	struct fi_info *got;

	prov->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_LOCAL;
	prov->domain_attr->mr_cnt = 1000;
	prov->domain_attr->caps |= FI_AV_USER_ID;
	prov->caps |= FI_AV_USER_ID;
	hints->caps = FI_MSG;
	hints->domain_attr->mr_cnt = 10;
	hints->tx_attr->op_flags = FI_INJECT;
	hints->tx_attr->size = 10;
	hints->tx_attr->inject_size = 5;
	hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->rx_attr->size = 11;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->mem_tag_format = FI_TAG_CCL;
	hints->ep_attr->auth_key = kmemdup("key", 3, GFP_KERNEL);
	hints->ep_attr->auth_key_size = 3;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY;

	got = kofi_info_grant(prov, hints);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, FI_INJECT, got->tx_attr->op_flags);
	KUNIT_EXPECT_EQ(test, FI_COMPLETION, got->rx_attr->op_flags);
	KUNIT_EXPECT_EQ(test, 10, got->tx_attr->size);
	KUNIT_EXPECT_EQ(test, 11, got->rx_attr->size);
	/* A limit stays what it is. */
	KUNIT_EXPECT_EQ(test, 128, got->tx_attr->inject_size);
	KUNIT_EXPECT_EQ(test, FI_TC_LOW_LATENCY, got->tx_attr->tclass);
	KUNIT_EXPECT_EQ(test, FI_SHARED_CONTEXT, got->ep_attr->rx_ctx_cnt);
	KUNIT_EXPECT_EQ(test, FI_TAG_CCL, got->ep_attr->mem_tag_format);
	KUNIT_EXPECT_MEMEQ(test, "key", got->ep_attr->auth_key, 3);
	KUNIT_EXPECT_EQ(test, FI_THREAD_DOMAIN, got->domain_attr->threading);
	KUNIT_EXPECT_EQ(test, FI_PROGRESS_MANUAL,
			got->domain_attr->data_progress);
	KUNIT_EXPECT_EQ(test, FI_PROGRESS_AUTO,
			got->domain_attr->control_progress);
	KUNIT_EXPECT_EQ(test, FI_AV_TABLE, got->domain_attr->av_type);
	KUNIT_EXPECT_EQ(test, FI_MR_LOCAL, got->domain_attr->mr_mode);
	KUNIT_EXPECT_EQ(test, 1000, got->domain_attr->mr_cnt);
	KUNIT_EXPECT_EQ(test, 0, got->domain_attr->caps & ~got->caps);
	KUNIT_EXPECT_EQ(test, 0, got->caps & FI_AV_USER_ID);
	fi_freeinfo(got);

	hints->domain_attr->caps = FI_AV_USER_ID;
	got = kofi_info_grant(prov, hints);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, FI_AV_USER_ID, got->domain_attr->caps & FI_AV_USER_ID);
	KUNIT_EXPECT_EQ(test, FI_AV_USER_ID, got->caps & FI_AV_USER_ID);
	fi_freeinfo(got);
}

/* --------------------------------------------------------------- addresses */

static const struct resolve_case {
	const char	*name, *node, *service;
	u64		flags;
	u32		format;
	int		want;
	const char	*src, *dest;
} resolve_cases[] = {
	{ "nothing", NULL, NULL, 0, 0, 0, "", "" },
	{ "IPv4 peer", "192.0.2.1", "80", 0, 0, 0, "", "192.0.2.1:80" },
	{ "IPv4 peer without port", "192.0.2.1", NULL, 0, 0, 0, "",
	  "192.0.2.1:0" },
	{ "IPv4 source", "192.0.2.1", "80", FI_SOURCE, 0, 0, "192.0.2.1:80",
	  "" },
	{ "IPv6 peer", "fd00::1", "65535", 0, 0, 0, "", "[fd00::1]:65535" },
	{ "IPv6 source", "::", "0", FI_SOURCE, FI_SOCKADDR_IN6, 0, "[::]:0",
	  "" },
	{ "link local with an interface", "fe80::1%lo", "7", 0, 0, 0, "",
	  "[fe80::1]:7" },
	{ "link local with a wrong interface", "fe80::1%nosuchif", "7", 0, 0,
	  -ENODATA },
	{ "port of all addresses", NULL, "80", FI_SOURCE, 0, 0, "0.0.0.0:80",
	  "" },
	{ "port of all IPv6 addresses", NULL, "80", FI_SOURCE,
	  FI_SOCKADDR_IN6, 0, "[::]:80", "" },
	{ "port of this machine", NULL, "80", 0, 0, 0, "", "127.0.0.1:80" },
	{ "port of this machine by IPv6", NULL, "80", 0, FI_SOCKADDR_IN6, 0, "",
	  "[::1]:80" },
	{ "IPv4 as any IP", "192.0.2.1", "80", 0, FI_SOCKADDR_IP, 0, "",
	  "192.0.2.1:80" },
	{ "IPv4 where IPv6 is asked for", "192.0.2.1", "80", 0,
	  FI_SOCKADDR_IN6, -ENODATA },
	{ "IPv6 where IPv4 is asked for", "fd00::1", "80", 0, FI_SOCKADDR_IN,
	  -ENODATA },
	{ "a name", "localhost", "80", 0, 0, -ENODATA },
	{ "an empty name", "", "80", 0, 0, -ENODATA },
	{ "half an address", "192.0.2", "80", 0, 0, -ENODATA },
	{ "too much of an address", "192.0.2.1.5", "80", 0, 0, -ENODATA },
	{ "a very long name",
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  NULL, 0, 0, -ENODATA },
	{ "service by name", "192.0.2.1", "http", 0, 0, -EINVAL },
	{ "port too large", "192.0.2.1", "65536", 0, 0, -EINVAL },
	{ "negative port", "192.0.2.1", "-1", 0, 0, -EINVAL },
	{ "empty port", "192.0.2.1", "", 0, 0, -EINVAL },
	{ "leading zeros are no octal", "192.0.2.1", "010", 0, 0, 0, "",
	  "192.0.2.1:10" },
	{ "another kind of address", "192.0.2.1", "80", 0, FI_SOCKADDR_IB,
	  -ENODATA },
};

KUNIT_ARRAY_PARAM_DESC(resolve, resolve_cases, name);

static void info_expect_addr(struct kunit *test, const char *want,
			     const struct sockaddr_storage *ss)
{
	char text[64] = "";

	if (ss->ss_family)
		snprintf(text, sizeof(text), "%pISpc", ss);
	KUNIT_EXPECT_STREQ(test, want, text);
}

static void info_resolve(struct kunit *test)
{
	const struct resolve_case *c = test->param_value;
	struct fi_info *hints = info_alloc(test);
	struct sockaddr_storage src, dest;
	int ret;

	hints->fabric_attr->net = &init_net;
	hints->addr_format = c->format;
	ret = kofi_info_resolve(c->node, c->service, c->flags, hints, &src,
				&dest);
	KUNIT_EXPECT_EQ(test, c->want, ret);
	if (ret || c->want)
		return;
	info_expect_addr(test, c->src, &src);
	info_expect_addr(test, c->dest, &dest);
}

static void info_resolve_hints(struct kunit *test)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	struct fi_fabric_attr attr = { .net = &init_net };
	struct fi_info hints = {
		.fabric_attr = &attr,
		.src_addr = &sin, .src_addrlen = sizeof(sin),
		.dest_addr = &sin, .dest_addrlen = sizeof(sin),
	};
	struct sockaddr_storage src, dest;

	sin.sin_addr.s_addr = htonl(0xc0000203);
	KUNIT_EXPECT_EQ(test, 0, kofi_info_resolve(NULL, NULL, 0, &hints, &src,
						   &dest));
	info_expect_addr(test, "192.0.2.3:9", &src);
	info_expect_addr(test, "192.0.2.3:9", &dest);
	/* What is given goes before what is hinted at. */
	KUNIT_EXPECT_EQ(test, 0, kofi_info_resolve("192.0.2.4", "1", 0, &hints,
						   &src, &dest));
	info_expect_addr(test, "192.0.2.3:9", &src);
	info_expect_addr(test, "192.0.2.4:1", &dest);
	KUNIT_EXPECT_EQ(test, 0, kofi_info_resolve(NULL, "1", FI_SOURCE, &hints,
						   &src, &dest));
	info_expect_addr(test, "0.0.0.0:1", &src);
	info_expect_addr(test, "192.0.2.3:9", &dest);
	/* Both sides of one family */
	hints.src_addr = &sin6;
	hints.src_addrlen = sizeof(sin6);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_info_resolve("192.0.2.4", "1", 0, &hints, &src,
					  &dest));
	sin.sin_family = AF_UNIX;
	hints.src_addr = NULL;
	hints.src_addrlen = 0;
	KUNIT_EXPECT_EQ(test, -ENODATA, kofi_info_resolve(NULL, NULL, 0, &hints,
							  &src, &dest));
}

/* --------------------------------------------------------------- discovery */

static struct sockaddr_in info_sin = { .sin_family = AF_INET };
static u8 info_odd_addr[sizeof(struct sockaddr_storage) + 1] = { 255, 255 };

static const struct arg_case {
	const char	*name;
	u32		version;
	const char	*node, *service;
	u64		flags;
	u32		format;
	void		*src;
	size_t		src_len;
	void		*dest;
	size_t		dest_len;
	int		want;
} arg_cases[] = {
	{ "nothing", FI_VERSION(2, 1) },
	{ "older version", FI_VERSION(1, 17) },
	{ "newest version", FI_VERSION(2, 6) },
	{ "newer minor version", FI_VERSION(2, 7), .want = -ENOSYS },
	{ "newer major version", FI_VERSION(3, 0), .want = -ENOSYS },
	{ "known flags", FI_VERSION(2, 1), "127.0.0.1", NULL,
	  FI_SOURCE | FI_NUMERICHOST | FI_RESCAN },
	{ "unknown flag", FI_VERSION(2, 1), NULL, NULL, FI_PEER,
	  .want = -FI_EBADFLAGS },
	{ "unknown flag among known ones", FI_VERSION(2, 1), "127.0.0.1", NULL,
	  FI_SOURCE | BIT_ULL(63), .want = -FI_EBADFLAGS },
	{ "source of nothing", FI_VERSION(2, 1), NULL, NULL, FI_SOURCE,
	  .want = -EINVAL },
	{ "source of a service", FI_VERSION(2, 1), NULL, "7", FI_SOURCE },
	{ "length without source", FI_VERSION(2, 1), .src_len = 16,
	  .want = -EINVAL },
	{ "source without length", FI_VERSION(2, 1), .src = &info_sin,
	  .want = -EINVAL },
	{ "length without destination", FI_VERSION(2, 1), .dest_len = 16,
	  .want = -EINVAL },
	{ "destination without length", FI_VERSION(2, 1), .dest = &info_sin,
	  .want = -EINVAL },
	{ "source", FI_VERSION(2, 1), .src = &info_sin,
	  .src_len = sizeof(info_sin) },
	{ "source cut", FI_VERSION(2, 1), .src = &info_sin,
	  .src_len = sizeof(info_sin) - 1, .want = -EINVAL },
	{ "source of one byte", FI_VERSION(2, 1), .src = &info_sin,
	  .src_len = 1, .want = -EINVAL },
	{ "source of another format", FI_VERSION(2, 1),
	  .format = FI_SOCKADDR_IN6, .src = &info_sin,
	  .src_len = sizeof(info_sin), .want = -EINVAL },
	{ "destination of another format", FI_VERSION(2, 1),
	  .format = FI_SOCKADDR_IB, .dest = &info_sin,
	  .dest_len = sizeof(info_sin), .want = -EINVAL },
	{ "unknown family", FI_VERSION(2, 1), .dest = info_odd_addr,
	  .dest_len = 16, .want = -EINVAL },
	{ "address too long", FI_VERSION(2, 1), .dest = info_odd_addr,
	  .dest_len = sizeof(info_odd_addr), .want = -EINVAL },
	{ "no sockaddr at all", FI_VERSION(2, 1), .format = FI_ADDR_EFA,
	  .dest = info_odd_addr, .dest_len = sizeof(info_odd_addr) },
	{ "no text either", FI_VERSION(2, 1), .format = FI_ADDR_STR,
	  .dest = info_odd_addr, .dest_len = sizeof(info_odd_addr),
	  .want = -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(arg, arg_cases, name);

/* A provider that takes anything: what fails, fails in the core. */
static void info_args(struct kunit *test)
{
	const struct arg_case *c = test->param_value;
	struct fi_fabric_attr attr = { .prov_name = "nul0" };
	struct fi_info hints = {
		.addr_format = c->format, .fabric_attr = &attr,
		.src_addr = c->src, .src_addrlen = c->src_len,
		.dest_addr = c->dest, .dest_addrlen = c->dest_len,
	};
	struct fi_info *list = (struct fi_info *)&hints;

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	KUNIT_EXPECT_EQ(test, c->want,
			fi_getinfo(c->version, c->node, c->service, c->flags,
				   &hints, &list));
	KUNIT_EXPECT_EQ(test, !c->want, nul[0].asked);
	if (c->want)
		KUNIT_EXPECT_NULL(test, list);
	else
		fi_freeinfo(list);
}

static void info_args_net(struct kunit *test)
{
	struct fi_fabric_attr attr = { .prov_name = "nul0" };
	struct fi_info hints = { .fabric_attr = &attr };
	struct fi_info *list;

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_getinfo(fi_version(), NULL, NULL, 0, &hints, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_getinfo(NULL, fi_version(), NULL, NULL, 0, &hints,
				     &list, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_getinfo(&init_net, fi_version(), NULL, NULL, 0,
				     &hints, &list, GFP_ATOMIC));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_getinfo(&init_net, fi_version(), NULL, NULL, 0,
				     &hints, &list, GFP_NOWAIT));
	KUNIT_EXPECT_EQ(test, 0, nul[0].asked);

	KUNIT_EXPECT_EQ(test, 0,
			kofi_getinfo(&init_net, fi_version(), NULL, NULL, 0,
				     &hints, &list, GFP_KERNEL));
	KUNIT_EXPECT_FALSE(test, nul[0].noio);
	fi_freeinfo(list);
	KUNIT_EXPECT_EQ(test, 0,
			kofi_getinfo(&init_net, fi_version(), NULL, NULL, 0,
				     &hints, &list, GFP_NOIO));
	KUNIT_EXPECT_TRUE(test, nul[0].noio);
	KUNIT_EXPECT_FALSE(test, current->flags & PF_MEMALLOC_NOIO);
	fi_freeinfo(list);
}

/* Names of the listed ones of ours, in order; others may be registered too. */
static void info_expect_list(struct kunit *test, struct fi_info *list,
			     const char *want)
{
	char got[64] = "";

	for (; list; list = list->next) {
		if (strncmp(list->fabric_attr->prov_name, "nul", 3))
			continue;
		strlcat(got, list->fabric_attr->prov_name + 3, sizeof(got));
	}
	KUNIT_EXPECT_STREQ(test, want, got);
}

static const struct merge_case {
	const char	*name;
	int		priority[NUL_PROVIDERS];
	int		list[NUL_PROVIDERS];
	int		ret[NUL_PROVIDERS];
	const char	*want;		/* NULL: an error */
	int		err;
} merge_cases[] = {
	{ "by age", { 5, 5, 5 }, { 1, 1, 1 }, {}, "012" },
	{ "by priority", { 30, 20, 10 }, { 1, 1, 1 }, {}, "210" },
	{ "negative priority", { 0, 1, -1 }, { 1, 1, 1 }, {}, "201" },
	{ "several of each", { 1, 2, 3 }, { 2, 3, 1 }, {}, "001112" },
	{ "nothing from the first", { 1, 2, 3 }, { 0, 1, 1 }, { -ENODATA },
	  "12" },
	{ "nothing from the last", { 1, 2, 3 }, { 1, 1, 0 },
	  { 0, 0, -ENODATA }, "01" },
	{ "an empty list", { 1, 2, 3 }, { 1, 0, 1 }, {}, "02" },
	{ "the first fails", { 1, 2, 3 }, { 1, 1, 1 }, { -ENOMEM }, "12" },
	{ "the middle fails", { 1, 2, 3 }, { 1, 2, 1 }, { 0, -EIO }, "02" },
	{ "the last fails", { 1, 2, 3 }, { 1, 1, 1 }, { 0, 0, -EIO }, "01" },
	{ "all but one fail", { 1, 2, 3 }, { 1, 1, 1 }, { -EIO, 0, -ENOMEM },
	  "1" },
};

KUNIT_ARRAY_PARAM_DESC(merge, merge_cases, name);

static void info_merge(struct kunit *test)
{
	const struct merge_case *c = test->param_value;
	struct fi_info *list = NULL;
	int i;

	for (i = 0; i < NUL_PROVIDERS; i++) {
		KUNIT_ASSERT_EQ(test, 0, nul_register(i, c->priority[i]));
		nul[i].list = c->list[i];
		nul[i].ret = c->ret[i];
	}
	KUNIT_EXPECT_EQ(test, 0, fi_getinfo(fi_version(), NULL, NULL, 0, NULL,
					    &list));
	info_expect_list(test, list, c->want);
	for (i = 0; i < NUL_PROVIDERS; i++)
		KUNIT_EXPECT_EQ(test, 1, nul[i].asked);
	fi_freeinfo(list);
}

/* Without an answer, the first real error counts. */
static void info_nobody(struct kunit *test)
{
	struct fi_fabric_attr attr = { .prov_name = "nul0" };
	struct fi_info hints = { .fabric_attr = &attr };
	struct fi_info *list = &hints;

	KUNIT_EXPECT_EQ(test, -ENODATA,
			fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &list));
	KUNIT_EXPECT_NULL(test, list);
	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	nul[0].ret = -ENODATA;
	KUNIT_EXPECT_EQ(test, -ENODATA,
			fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &list));
	nul[0].ret = -EIO;
	KUNIT_EXPECT_EQ(test, -EIO,
			fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &list));
	KUNIT_EXPECT_NULL(test, list);
	nul[0].list = 0;
	nul[0].ret = 0;
	KUNIT_EXPECT_EQ(test, -ENODATA,
			fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &list));
}

static void info_signed(struct kunit *test)
{
	struct fi_fabric_attr attr = { .prov_name = "nul1" };
	struct fi_info hints = { .fabric_attr = &attr };
	struct net *net = nul_net(test);
	struct fi_info *list;

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	KUNIT_ASSERT_EQ(test, 0, nul_register(1, 0));
	nul[1].list = 2;
	KUNIT_ASSERT_EQ(test, 0, fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0,
					    &hints, &list));
	KUNIT_EXPECT_EQ(test, 0, nul[0].asked);
	KUNIT_EXPECT_EQ(test, FI_VERSION(1, 9), nul[1].version);
	KUNIT_EXPECT_PTR_EQ(test, &init_net, nul[1].net);
	info_expect_list(test, list, "11");
	KUNIT_EXPECT_EQ(test, FI_VERSION(7, 1),
			list->fabric_attr->prov_version);
	KUNIT_EXPECT_EQ(test, FI_VERSION(1, 9), list->fabric_attr->api_version);
	KUNIT_EXPECT_PTR_EQ(test, &init_net, list->fabric_attr->net);
	fi_freeinfo(list);

	KUNIT_ASSERT_EQ(test, 0, kofi_getinfo(net, FI_VERSION(1, 9), NULL, NULL,
					      0, &hints, &list, GFP_KERNEL));
	info_expect_list(test, list, "11");
	KUNIT_EXPECT_EQ(test, 3, ns_ref_read(net));
	fi_freeinfo(list);
	KUNIT_EXPECT_EQ(test, 1, ns_ref_read(net));
}

static void info_prov_attr_only(struct kunit *test)
{
	struct fi_info *list;

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 2));
	KUNIT_ASSERT_EQ(test, 0, nul_register(1, 1));
	KUNIT_ASSERT_EQ(test, 0, fi_getinfo(fi_version(), NULL, NULL,
					    FI_PROV_ATTR_ONLY, NULL, &list));
	info_expect_list(test, list, "10");
	KUNIT_EXPECT_EQ(test, 0, nul[0].asked);
	KUNIT_EXPECT_EQ(test, 0, nul[1].asked);
	fi_freeinfo(list);
}

static struct kunit_case info_cases[] = {
	KUNIT_CASE(info_empty),
	KUNIT_CASE(info_dup),
	KUNIT_CASE(info_dup_sparse),
	KUNIT_CASE(info_dup_net),
	KUNIT_CASE_PARAM(info_match, match_gen_params),
	KUNIT_CASE_PARAM(info_match_mr, mr_gen_params),
	KUNIT_CASE(info_match_names),
	KUNIT_CASE(info_open),
	KUNIT_CASE_PARAM(info_grant_caps, caps_gen_params),
	KUNIT_CASE(info_grant_defaults),
	KUNIT_CASE(info_reduce),
	KUNIT_CASE(info_grant_asked),
	KUNIT_CASE_PARAM(info_resolve, resolve_gen_params),
	KUNIT_CASE(info_resolve_hints),
	KUNIT_CASE_PARAM(info_args, arg_gen_params),
	KUNIT_CASE(info_args_net),
	KUNIT_CASE_PARAM(info_merge, merge_gen_params),
	KUNIT_CASE(info_nobody),
	KUNIT_CASE(info_signed),
	KUNIT_CASE(info_prov_attr_only),
	{}
};

struct kunit_suite kofi_info_suite = {
	.name		= "kofi_info",
	.exit		= nul_exit,
	.test_cases	= info_cases,
};
