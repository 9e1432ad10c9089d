// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generic netlink: discovery.
 *
 * KOFI_CMD_INFO_GET is kofi_getinfo() in the network namespace of the caller's
 * socket. Each message carries one fi_info, whole; one that does not fit what
 * is left of a buffer goes into the next. The list is made anew for each
 * buffer: kept by the dump, it would be memory that anybody can hold for as
 * long and as often as he has sockets. It comes in the same order each time,
 * and is no snapshot.
 *
 * Nothing of a request is trusted further than the policy has checked it:
 * addresses are checked here, everything else by discovery, which sees the
 * hints of an unprivileged user as it sees those of a consumer.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kunit/visibility.h>

#include "internal.h"
#include "netlink-gen.h"
#include "netlink.h"

/**
 * struct kofi_nl_info_dump - an info dump under way
 * @sent: number of infos sent
 */
struct kofi_nl_info_dump {
	unsigned int	sent;
};

/* ------------------------------------------------------------------ request */

static int kofi_nl_hints_string(char **to, const struct nlattr *attr)
{
	if (!attr)
		return 0;
	*to = nla_strdup(attr, GFP_KERNEL);
	return *to ? 0 : -ENOMEM;
}

static int kofi_nl_hints_src_addr(struct fi_info *hints,
				  const struct nlattr *attr,
				  struct netlink_ext_ack *extack)
{
	const struct sockaddr *sa = nla_data(attr);
	size_t len = 0;

	if (nla_len(attr) >= sizeof(sa->sa_family)) {
		switch (sa->sa_family) {
		case AF_INET:
			len = sizeof(struct sockaddr_in);
			break;
		case AF_INET6:
			len = sizeof(struct sockaddr_in6);
			break;
		}
	}
	if (!len || nla_len(attr) != len) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "src-addr is no IPv4 or IPv6 address");
		return -EINVAL;
	}
	hints->src_addr = kmemdup(sa, len, GFP_KERNEL);
	if (!hints->src_addr)
		return -ENOMEM;
	hints->src_addrlen = len;
	if (hints->addr_format == FI_FORMAT_UNSPEC)
		hints->addr_format = len == sizeof(struct sockaddr_in) ?
				     FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	return 0;
}

/**
 * kofi_nl_hints - hints of a request
 * @nest: KOFI_A_INFO_HINTS, checked by the policy
 * @extack: where an error is explained
 *
 * The caller is a person who looks around, not a program with limits: modes
 * that are not named in @nest are all acceptable.
 *
 * Context: process, may sleep.
 * Return: hints to be freed with fi_freeinfo(); ERR_PTR(-EINVAL) if @nest is
 * malformed, ERR_PTR(-ENOMEM).
 */
VISIBLE_IF_KUNIT struct fi_info *
kofi_nl_hints(const struct nlattr *nest, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(kofi_hints_nl_policy)];
	struct fi_info *hints;
	int ret;

	ret = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nest,
			       kofi_hints_nl_policy, extack);
	if (ret)
		return ERR_PTR(ret);
	hints = fi_allocinfo();
	if (!hints)
		return ERR_PTR(-ENOMEM);

	hints->mode = ~0ULL;
	hints->domain_attr->mode = ~0ULL;
	hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
	if (tb[KOFI_A_HINTS_CAPS])
		hints->caps = nla_get_uint(tb[KOFI_A_HINTS_CAPS]);
	if (tb[KOFI_A_HINTS_MODE])
		hints->mode = nla_get_uint(tb[KOFI_A_HINTS_MODE]);
	if (tb[KOFI_A_HINTS_ADDR_FORMAT])
		hints->addr_format = nla_get_uint(tb[KOFI_A_HINTS_ADDR_FORMAT]);
	if (tb[KOFI_A_HINTS_EP_TYPE])
		hints->ep_attr->type = nla_get_uint(tb[KOFI_A_HINTS_EP_TYPE]);
	if (tb[KOFI_A_HINTS_SRC_ADDR])
		ret = kofi_nl_hints_src_addr(hints, tb[KOFI_A_HINTS_SRC_ADDR],
					     extack);
	if (!ret)
		ret = kofi_nl_hints_string(&hints->fabric_attr->prov_name,
					   tb[KOFI_A_HINTS_PROV_NAME]);
	if (!ret)
		ret = kofi_nl_hints_string(&hints->domain_attr->name,
					   tb[KOFI_A_HINTS_DOMAIN_NAME]);
	if (!ret)
		ret = kofi_nl_hints_string(&hints->fabric_attr->name,
					   tb[KOFI_A_HINTS_FABRIC_NAME]);
	if (ret) {
		fi_freeinfo(hints);
		return ERR_PTR(ret);
	}
	return hints;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_hints);

/* -------------------------------------------------------------------- reply */

/*
 * Each of these returns true if there was no room. What it has left behind
 * then goes with the whole message. A name a provider has not set is not sent.
 */

static bool kofi_nl_put_string(struct sk_buff *skb, int type, const char *s)
{
	return s ? nla_put_string(skb, type, s) : 0;
}

static bool kofi_nl_put_addr(struct sk_buff *skb, int type, const void *addr,
			     size_t len)
{
	return addr && len ? nla_put(skb, type, len, addr) : 0;
}

static bool kofi_nl_put_nest(struct sk_buff *skb, int type, const void *from,
			     bool (*put)(struct sk_buff *skb, const void *from))
{
	struct nlattr *nest;

	if (!from)
		return false;
	nest = nla_nest_start(skb, type);
	if (!nest || put(skb, from))
		return true;
	nla_nest_end(skb, nest);
	return false;
}

static bool kofi_nl_put_tx_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_tx_attr *attr = from;

	return nla_put_uint(skb, KOFI_A_TX_ATTR_CAPS, attr->caps) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_MODE, attr->mode) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_OP_FLAGS, attr->op_flags) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_MSG_ORDER, attr->msg_order) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_COMP_ORDER, attr->comp_order) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_INJECT_SIZE,
			    attr->inject_size) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_SIZE, attr->size) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_IOV_LIMIT, attr->iov_limit) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_RMA_IOV_LIMIT,
			    attr->rma_iov_limit) ||
	       nla_put_uint(skb, KOFI_A_TX_ATTR_TCLASS, attr->tclass);
}

static bool kofi_nl_put_rx_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_rx_attr *attr = from;

	return nla_put_uint(skb, KOFI_A_RX_ATTR_CAPS, attr->caps) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_MODE, attr->mode) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_OP_FLAGS, attr->op_flags) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_MSG_ORDER, attr->msg_order) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_COMP_ORDER, attr->comp_order) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_TOTAL_BUFFERED_RECV,
			    attr->total_buffered_recv) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_SIZE, attr->size) ||
	       nla_put_uint(skb, KOFI_A_RX_ATTR_IOV_LIMIT, attr->iov_limit);
}

/* The key itself is nobody's business. */
static bool kofi_nl_put_ep_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_ep_attr *attr = from;

	return nla_put_uint(skb, KOFI_A_EP_ATTR_TYPE, attr->type) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_PROTOCOL, attr->protocol) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_PROTOCOL_VERSION,
			    attr->protocol_version) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_MAX_MSG_SIZE,
			    attr->max_msg_size) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_MSG_PREFIX_SIZE,
			    attr->msg_prefix_size) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_MAX_ORDER_RAW_SIZE,
			    attr->max_order_raw_size) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_MAX_ORDER_WAR_SIZE,
			    attr->max_order_war_size) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_MAX_ORDER_WAW_SIZE,
			    attr->max_order_waw_size) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_MEM_TAG_FORMAT,
			    attr->mem_tag_format) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_TX_CTX_CNT, attr->tx_ctx_cnt) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_RX_CTX_CNT, attr->rx_ctx_cnt) ||
	       nla_put_uint(skb, KOFI_A_EP_ATTR_AUTH_KEY_SIZE,
			    attr->auth_key_size);
}

static bool kofi_nl_put_domain_limits(struct sk_buff *skb,
				      const struct fi_domain_attr *attr)
{
	return nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MR_KEY_SIZE,
			    attr->mr_key_size) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_CQ_DATA_SIZE,
			    attr->cq_data_size) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_CQ_CNT, attr->cq_cnt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_EP_CNT, attr->ep_cnt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_TX_CTX_CNT,
			    attr->tx_ctx_cnt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_RX_CTX_CNT,
			    attr->rx_ctx_cnt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_EP_TX_CTX,
			    attr->max_ep_tx_ctx) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_EP_RX_CTX,
			    attr->max_ep_rx_ctx) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_EP_STX_CTX,
			    attr->max_ep_stx_ctx) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_EP_SRX_CTX,
			    attr->max_ep_srx_ctx) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_CNTR_CNT, attr->cntr_cnt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MR_IOV_LIMIT,
			    attr->mr_iov_limit) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_AUTH_KEY_SIZE,
			    attr->auth_key_size) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_ERR_DATA,
			    attr->max_err_data) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MR_CNT, attr->mr_cnt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_EP_AUTH_KEY,
			    attr->max_ep_auth_key) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_GROUP_ID,
			    attr->max_group_id) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_CNTR_VALUE,
			    attr->max_cntr_value) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MAX_ERR_CNTR_VALUE,
			    attr->max_err_cntr_value);
}

static bool kofi_nl_put_domain_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_domain_attr *attr = from;

	return kofi_nl_put_string(skb, KOFI_A_DOMAIN_ATTR_NAME, attr->name) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_THREADING,
			    attr->threading) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_CONTROL_PROGRESS,
			    attr->control_progress) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_DATA_PROGRESS,
			    attr->data_progress) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_RESOURCE_MGMT,
			    attr->resource_mgmt) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_AV_TYPE, attr->av_type) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MR_MODE,
			    (u32)attr->mr_mode) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_CAPS, attr->caps) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_MODE, attr->mode) ||
	       nla_put_uint(skb, KOFI_A_DOMAIN_ATTR_TCLASS, attr->tclass) ||
	       kofi_nl_put_domain_limits(skb, attr);
}

static bool kofi_nl_put_fabric_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_fabric_attr *attr = from;

	return kofi_nl_put_string(skb, KOFI_A_FABRIC_ATTR_NAME, attr->name) ||
	       kofi_nl_put_string(skb, KOFI_A_FABRIC_ATTR_PROV_NAME,
				  attr->prov_name) ||
	       nla_put_uint(skb, KOFI_A_FABRIC_ATTR_PROV_VERSION,
			    attr->prov_version) ||
	       nla_put_uint(skb, KOFI_A_FABRIC_ATTR_API_VERSION,
			    attr->api_version);
}

static bool kofi_nl_put_device_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_device_attr *attr = from;

	return kofi_nl_put_string(skb, KOFI_A_DEVICE_ATTR_NAME, attr->name) ||
	       kofi_nl_put_string(skb, KOFI_A_DEVICE_ATTR_DEVICE_ID,
				  attr->device_id) ||
	       kofi_nl_put_string(skb, KOFI_A_DEVICE_ATTR_DEVICE_VERSION,
				  attr->device_version) ||
	       kofi_nl_put_string(skb, KOFI_A_DEVICE_ATTR_VENDOR_ID,
				  attr->vendor_id) ||
	       kofi_nl_put_string(skb, KOFI_A_DEVICE_ATTR_DRIVER,
				  attr->driver) ||
	       kofi_nl_put_string(skb, KOFI_A_DEVICE_ATTR_FIRMWARE,
				  attr->firmware);
}

static bool kofi_nl_put_pci_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_pci_attr *pci = from;

	return nla_put_uint(skb, KOFI_A_PCI_ATTR_DOMAIN_ID, pci->domain_id) ||
	       nla_put_uint(skb, KOFI_A_PCI_ATTR_BUS_ID, pci->bus_id) ||
	       nla_put_uint(skb, KOFI_A_PCI_ATTR_DEVICE_ID, pci->device_id) ||
	       nla_put_uint(skb, KOFI_A_PCI_ATTR_FUNCTION_ID, pci->function_id);
}

static bool kofi_nl_put_bus_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_bus_attr *attr = from;
	const bool pci = attr->bus_type == FI_BUS_PCI;

	return nla_put_uint(skb, KOFI_A_BUS_ATTR_TYPE, attr->bus_type) ||
	       kofi_nl_put_nest(skb, KOFI_A_BUS_ATTR_PCI,
				pci ? &attr->attr.pci : NULL,
				kofi_nl_put_pci_attr);
}

static bool kofi_nl_put_link_attr(struct sk_buff *skb, const void *from)
{
	const struct fi_link_attr *attr = from;

	return kofi_nl_put_string(skb, KOFI_A_LINK_ATTR_ADDRESS,
				  attr->address) ||
	       nla_put_uint(skb, KOFI_A_LINK_ATTR_MTU, attr->mtu) ||
	       nla_put_uint(skb, KOFI_A_LINK_ATTR_SPEED, attr->speed) ||
	       nla_put_uint(skb, KOFI_A_LINK_ATTR_STATE, attr->state) ||
	       kofi_nl_put_string(skb, KOFI_A_LINK_ATTR_NETWORK_TYPE,
				  attr->network_type);
}

static bool kofi_nl_put_nic(struct sk_buff *skb, const void *from)
{
	const struct fid_nic *nic = from;

	return kofi_nl_put_nest(skb, KOFI_A_NIC_DEVICE_ATTR, nic->device_attr,
				kofi_nl_put_device_attr) ||
	       kofi_nl_put_nest(skb, KOFI_A_NIC_BUS_ATTR, nic->bus_attr,
				kofi_nl_put_bus_attr) ||
	       kofi_nl_put_nest(skb, KOFI_A_NIC_LINK_ATTR, nic->link_attr,
				kofi_nl_put_link_attr);
}

/**
 * kofi_nl_put_info - one fi_info as a message
 * @skb: where it goes; unchanged if it does not fit
 * @from: what the message answers
 * @info: the fi_info
 *
 * Context: any.
 * Return: 0, -EMSGSIZE if @skb has no room for it.
 */
VISIBLE_IF_KUNIT int kofi_nl_put_info(struct sk_buff *skb,
				      const struct genl_info *from,
				      const struct fi_info *info)
{
	void *hdr = genlmsg_iput(skb, from);

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_uint(skb, KOFI_A_INFO_CAPS, info->caps) ||
	    nla_put_uint(skb, KOFI_A_INFO_MODE, info->mode) ||
	    nla_put_uint(skb, KOFI_A_INFO_ADDR_FORMAT, info->addr_format) ||
	    kofi_nl_put_addr(skb, KOFI_A_INFO_SRC_ADDR, info->src_addr,
			     info->src_addrlen) ||
	    kofi_nl_put_addr(skb, KOFI_A_INFO_DEST_ADDR, info->dest_addr,
			     info->dest_addrlen) ||
	    kofi_nl_put_nest(skb, KOFI_A_INFO_TX_ATTR, info->tx_attr,
			     kofi_nl_put_tx_attr) ||
	    kofi_nl_put_nest(skb, KOFI_A_INFO_RX_ATTR, info->rx_attr,
			     kofi_nl_put_rx_attr) ||
	    kofi_nl_put_nest(skb, KOFI_A_INFO_EP_ATTR, info->ep_attr,
			     kofi_nl_put_ep_attr) ||
	    kofi_nl_put_nest(skb, KOFI_A_INFO_DOMAIN_ATTR, info->domain_attr,
			     kofi_nl_put_domain_attr) ||
	    kofi_nl_put_nest(skb, KOFI_A_INFO_FABRIC_ATTR, info->fabric_attr,
			     kofi_nl_put_fabric_attr) ||
	    kofi_nl_put_nest(skb, KOFI_A_INFO_NIC, info->nic,
			     kofi_nl_put_nic)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_put_info);

/* --------------------------------------------------------------------- dump */

static const char *kofi_nl_text(const struct nlattr *attr)
{
	return attr ? nla_data(attr) : NULL;
}

/* Words for what a user may meet; the rest the code says well enough. */
static void kofi_nl_info_explain(const struct genl_info *from, int err)
{
	switch (-err) {
	case FI_EBADFLAGS:
		NL_SET_ERR_MSG_ATTR(from->extack,
				    from->attrs[KOFI_A_INFO_FLAGS],
				    "flags have an unknown bit");
		break;
	case ENOSYS:
		NL_SET_ERR_MSG_ATTR(from->extack,
				    from->attrs[KOFI_A_INFO_API_VERSION],
				    "this version of the interface is not known");
		break;
	}
}

static int kofi_nl_info_find(const struct genl_info *from,
			     struct fi_info **list)
{
	struct nlattr **tb = from->attrs;
	u32 version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	struct fi_info *hints = NULL;
	u64 flags = 0;
	int ret;

	if (tb[KOFI_A_INFO_FLAGS])
		flags = nla_get_uint(tb[KOFI_A_INFO_FLAGS]);
	if (tb[KOFI_A_INFO_API_VERSION])
		version = nla_get_uint(tb[KOFI_A_INFO_API_VERSION]);
	if (tb[KOFI_A_INFO_HINTS]) {
		hints = kofi_nl_hints(tb[KOFI_A_INFO_HINTS], from->extack);
		if (IS_ERR(hints))
			return PTR_ERR(hints);
	}
	ret = kofi_getinfo(genl_info_net(from), version,
			   kofi_nl_text(tb[KOFI_A_INFO_NODE]),
			   kofi_nl_text(tb[KOFI_A_INFO_SERVICE]), flags, hints,
			   list, GFP_KERNEL);
	fi_freeinfo(hints);
	if (ret)
		kofi_nl_info_explain(from, ret);
	return ret;
}

int kofi_nl_info_start(struct netlink_callback *cb)
{
	cb->min_dump_alloc = KOFI_NL_MSG_SIZE;
	return 0;
}

int kofi_nl_info_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct kofi_nl_info_dump *dump = (void *)cb->ctx;
	const struct genl_info *from = genl_info_dump(cb);
	struct fi_info *list, *info;
	unsigned int n = 0;
	int ret;

	NL_ASSERT_DUMP_CTX_FITS(struct kofi_nl_info_dump);
	ret = kofi_nl_info_find(from, &list);
	if (ret)
		return dump->sent && ret == -ENODATA ? 0 : ret;
	for (info = list; info; info = info->next) {
		if (n++ < dump->sent)
			continue;
		ret = kofi_nl_put_info(skb, from, info);
		if (ret)
			break;
		dump->sent++;
	}
	fi_freeinfo(list);
	return ret;
}
