// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Discovery of kofi_sock: one fi_info per address of each interface that is up
 * in the namespace, loopback last.
 *
 * The addresses are collected under RCU into an array that is big enough; the
 * infos are made from it afterwards. As in libfabric, a fabric is named after the network
 * ("10.0.0.0/24") and a domain after the interface. The loopback addresses stand for
 * networks of their own ("127.0.0.1/32"). The network of link-local addresses has the
 * interface in its name, as they look alike on all of them ("fe80::%eth0/64").
 */
#include <linux/in6.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>

#include "sock.h"
#include "tls.h"

#define KSK_IOV_LIMIT		16	/* segments without a hint */
#define KSK_IOV_MAX		256	/* most segments that a hint can ask for */

#define KSK_MSG_ORDER	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | \
			 FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAW | \
			 FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | \
			 FI_ORDER_RMA_WAW)
#define KSK_DOM_CAPS	(FI_LOCAL_COMM | FI_REMOTE_COMM | FI_AV_USER_ID)
#define KSK_TX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_READ | \
			 FI_WRITE | FI_FENCE | FI_NAMED_RX_CTX)
#define KSK_RX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_RECV | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | \
			 FI_TAGGED_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | \
			 FI_SOURCE_ERR | FI_RMA_EVENT)

/* Bytes of messages that wait for their receive, without one being posted */
#define KSK_BUFFERED	SZ_4M

#define KSK_DGRAM_TX_CAPS (FI_MSG | FI_SEND)
#define KSK_DGRAM_RX_CAPS (FI_MSG | FI_RECV | FI_MULTI_RECV | FI_SOURCE | \
			   FI_SOURCE_ERR)

/* A tag of 64 bits, all of one field (FI_TAG_GENERIC) */
#define KSK_TAG_FORMAT	0xaaaaaaaaaaaaaaaaULL

/* ------------------------------------------------------------- interfaces */

/**
 * ksk_if_find - find the interface that has an address
 * @net: network namespace
 * @addr: the address
 * @vrf: index of the VRF the interface is in; 0 is any, or none
 * @found: receives the interface
 *
 * Context: process, may sleep.
 * Return: 0, -EADDRNOTAVAIL or -ENOMEM.
 */
int ksk_if_find(struct net *net, const struct sockaddr *addr, int vrf,
		struct kofi_netif *found)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	struct sockaddr_in mapped = { .sin_family = AF_INET };
	struct kofi_netif_list l;
	int err;
	size_t i;

	if (addr->sa_family == AF_INET6 &&
	    ipv6_addr_v4mapped(&in6->sin6_addr)) {
		mapped.sin_addr.s_addr = in6->sin6_addr.s6_addr32[3];
		addr = (const struct sockaddr *)&mapped;
	}
	err = kofi_netif_collect(net, true, &l);
	if (err)
		return err;
	err = -EADDRNOTAVAIL;
	for (i = 0; i < l.n && err; i++) {
		if (!kofi_ip_same(addr, &l.ifs[i].addr.sa) ||
		    (vrf && vrf != l3mdev_master_ifindex_by_index
					(net, l.ifs[i].ifindex)))
			continue;
		*found = l.ifs[i];
		err = 0;
	}
	/* all of 127.0.0.0/8 is the loopback device's */
	for (i = 0; i < l.n && err; i++) {
		if (addr->sa_family != AF_INET || !l.ifs[i].loopback ||
		    l.ifs[i].addr.sa.sa_family != AF_INET ||
		    !ipv4_is_loopback(((struct sockaddr_in *)addr)
				      ->sin_addr.s_addr))
			continue;
		*found = l.ifs[i];
		err = 0;
	}
	kvfree(l.ifs);
	return err;
}

/* ------------------------------------------------------------------ infos */

/* Longest message in a datagram that fits in one packet of the device */
static size_t ksk_info_dgram_max(struct net *net, const struct kofi_netif *i)
{
	size_t headers = sizeof(struct udphdr) +
			 (i->addr.sa.sa_family == AF_INET6 ?
			  sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	struct net_device *dev;
	size_t mtu = 0;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, i->ifindex);
	if (dev)
		mtu = min_t(size_t, READ_ONCE(dev->mtu), IP_MAX_MTU);
	rcu_read_unlock();
	return mtu > headers ? mtu - headers : 0;
}

/* Set the attributes that differ for datagrams. */
static void ksk_info_fill_dgram(struct fi_info *info, size_t max)
{
	info->caps = KSK_DGRAM_TX_CAPS | KSK_DGRAM_RX_CAPS | KSK_DOM_CAPS;
	info->tx_attr->caps = KSK_DGRAM_TX_CAPS;
	info->tx_attr->op_flags &= ~FI_DELIVERY_COMPLETE;
	info->tx_attr->msg_order = 0;
	info->tx_attr->inject_size = min_t(size_t, max, KSK_INJECT_MAX);
	info->tx_attr->iov_limit = KSK_IOV_LIMIT;
	info->tx_attr->rma_iov_limit = 0;
	info->rx_attr->caps = KSK_DGRAM_RX_CAPS;
	info->rx_attr->iov_limit = KSK_IOV_LIMIT;
	info->rx_attr->msg_order = 0;
	info->rx_attr->comp_order = FI_ORDER_STRICT;
	info->rx_attr->total_buffered_recv = 0;
	*info->ep_attr = (struct fi_ep_attr) {
		.type		= FI_EP_DGRAM,
		.protocol	= FI_PROTO_UDP,
		.max_msg_size	= max,
		.tx_ctx_cnt	= 1,
		.rx_ctx_cnt	= 1,
	};
	info->domain_attr->cq_data_size = 0;
	info->domain_attr->max_ep_srx_ctx = 0;
}

/**
 * ksk_info_check_srx - check the attributes of a shared receive context
 * @attr: attributes from the consumer
 *
 * Context: any.
 * Return: as kofi_srx_check().
 */
int ksk_info_check_srx(const struct fi_rx_attr *attr)
{
	/* maximum for all endpoint types, as the bound endpoints are not known yet */
	static const struct fi_rx_attr most = {
		.caps		= KSK_RX_CAPS,
		.op_flags	= FI_COMPLETION | FI_MULTI_RECV,
		.msg_order	= KSK_MSG_ORDER,
		.comp_order	= FI_ORDER_STRICT,
		.size		= SIZE_MAX,	/* up to the core */
		.iov_limit	= KSK_IOV_MAX,
		.total_buffered_recv = KSK_BUFFERED,
	};

	return kofi_srx_check(attr, &most);
}

static void ksk_info_fill(struct fi_info *info, enum fi_ep_type type)
{
	info->caps = KSK_TX_CAPS | KSK_RX_CAPS | KSK_DOM_CAPS;
	if (type == FI_EP_MSG && ksk_tls_supported())
		info->caps |= KOFI_TLS;

	*info->tx_attr = (struct fi_tx_attr) {
		.caps		= KSK_TX_CAPS,
		.op_flags	= FI_COMPLETION | FI_INJECT | KSK_TX_LEVELS,
		.msg_order	= KSK_MSG_ORDER,
		/* an operation that waits for the peer is overtaken by others */
		.comp_order	= FI_ORDER_NONE,
		.inject_size	= KSK_INJECT_MAX,
		.size		= READ_ONCE(ksk_tx_size),
		.iov_limit	= KSK_IOV_MAX,
		.rma_iov_limit	= KSK_RMA_MAX,
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps		= KSK_RX_CAPS,
		.op_flags	= FI_COMPLETION | FI_MULTI_RECV,
		.msg_order	= KSK_MSG_ORDER,
		/* an announced message is overtaken by others */
		.comp_order	= type == FI_EP_MSG ? FI_ORDER_STRICT :
						      FI_ORDER_NONE,
		.size		= READ_ONCE(ksk_rx_size),
		.iov_limit	= KSK_IOV_MAX,
		.total_buffered_recv = type == FI_EP_MSG ? 0 : KSK_BUFFERED,
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.type		= type,
		.protocol	= type == FI_EP_MSG ? FI_PROTO_SOCK_TCP :
						      FI_PROTO_XNET,
		.protocol_version = type == FI_EP_MSG ? 0 : KSK_RDM_VERSION,
		.max_msg_size	= KSK_MSG_MAX,
		.max_order_raw_size = KSK_MSG_MAX,
		.max_order_waw_size = KSK_MSG_MAX,
		.mem_tag_format	= KSK_TAG_FORMAT,
		.tx_ctx_cnt	= 1,
		.rx_ctx_cnt	= 1,
	};
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->control_progress = FI_PROGRESS_AUTO;
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->av_type = FI_AV_UNSPEC;
	info->domain_attr->mr_key_size = 8;
	info->domain_attr->cq_data_size = 8;
	info->domain_attr->cq_cnt = 65536;
	info->domain_attr->ep_cnt = 65536;
	info->domain_attr->tx_ctx_cnt = 65536;
	info->domain_attr->rx_ctx_cnt = 65536;
	info->domain_attr->max_ep_tx_ctx = type == FI_EP_RDM ?
					   KOFI_EP_CTX_MAX : 1;
	info->domain_attr->max_ep_rx_ctx = info->domain_attr->max_ep_tx_ctx;
	info->domain_attr->max_ep_srx_ctx = 65536;
	info->domain_attr->cntr_cnt = 65536;
	info->domain_attr->max_cntr_value = U64_MAX;
	info->domain_attr->max_err_cntr_value = U64_MAX;
	info->domain_attr->mr_iov_limit = UINT_MAX;
	info->domain_attr->mr_cnt = U32_MAX;
	info->domain_attr->caps = KSK_DOM_CAPS;
	info->domain_attr->max_err_data = KSK_CM_DATA_MAX;
}

/*
 * We need nothing for registration. If the hints accept keys of the provider, we choose
 * them, because ours are never reused; otherwise the consumer chooses. Absent hints
 * accept everything, but ask for no regions of endpoints.
 */
static int ksk_info_mr_mode(const struct fi_info *hints)
{
	int mode = hints->domain_attr->mr_mode, granted = 0;

	if (mode & (FI_MR_PROV_KEY | FI_MR_BASIC))
		granted |= FI_MR_PROV_KEY;
	if ((mode & FI_MR_ENDPOINT) && !(mode & FI_MR_COLLECTIVE))
		granted |= FI_MR_ENDPOINT;
	return granted;
}

/*
 * Capabilities that are granted only on request: they give the peer named by a receive a
 * meaning, with many peers require a lookup for each message, or require a key.
 */
static u64 ksk_info_optional(const struct fi_info *hints,
			     enum fi_ep_type type)
{
	u64 caps = FI_DIRECTED_RECV | FI_NAMED_RX_CTX | FI_TAGGED_MULTI_RECV |
		   KOFI_TLS;

	if (type == FI_EP_MSG)
		return (caps & ~hints->caps) | FI_NAMED_RX_CTX |
		       FI_AV_USER_ID | FI_SOURCE_ERR;
	return (caps | FI_SOURCE | FI_SOURCE_ERR) & ~hints->caps;
}

/* The info of an address, to the given source and destination. */
static struct fi_info *ksk_info_new(const struct kofi_netif *i,
				    const struct fi_info *hints,
				    enum fi_ep_type type, size_t dgram_max,
				    const struct sockaddr *src,
				    const struct sockaddr *dest)
{
	struct fi_info *info = fi_allocinfo();
	size_t len = kofi_ip_len(&i->addr.sa);

	if (!info)
		return NULL;
	ksk_info_fill(info, type);
	if (type == FI_EP_DGRAM)
		ksk_info_fill_dgram(info, dgram_max);
	info->caps &= ~ksk_info_optional(hints, type);
	info->tx_attr->caps &= info->caps;
	info->rx_attr->caps &= info->caps;
	info->domain_attr->caps &= info->caps;
	info->domain_attr->mr_mode = ksk_info_mr_mode(hints);
	info->addr_format = i->addr.sa.sa_family == AF_INET6 ? FI_SOCKADDR_IN6 :
							       FI_SOCKADDR_IN;
	info->src_addr = kmemdup(src, len, GFP_KERNEL);
	if (!info->src_addr)
		goto free;
	info->src_addrlen = len;
	if (dest) {
		info->dest_addr = kmemdup(dest, len, GFP_KERNEL);
		if (!info->dest_addr)
			goto free;
		info->dest_addrlen = len;
	}
	if (kofi_info_set_names(info, kstrdup(i->dev, GFP_KERNEL),
				kofi_netif_network(i)))
		goto free;
	return info;

free:
	fi_freeinfo(info);
	return NULL;
}

/**
 * struct ksk_info_query - a query for infos
 * @hints: the caller's
 * @src: address and port of the source; family 0 if there is none
 * @dest: address and port of the destination; family 0 if there is none
 * @from: address the source must have, if there is a source or a destination
 * @named: the source is an address
 * @wildcard: the source is any address, and stays so
 */
struct ksk_info_query {
	const struct fi_info	*hints;
	struct sockaddr_storage	src;
	struct sockaddr_storage	dest;
	struct kofi_netif	from;
	bool			named;
	bool			wildcard;
};

/* The info of an address if it matches the query, or NULL. */
static struct fi_info *ksk_info_of(struct ksk_info_query *q,
				   const struct kofi_netif *i,
				   enum fi_ep_type type,
				   const struct fi_info *list)
{
	struct sockaddr *want = (struct sockaddr *)&q->src;
	struct fi_info *mine, *granted = NULL;
	const struct fi_info *hints = q->hints;
	union kofi_ip local = {};
	size_t max = 0;

	if (want->sa_family && want->sa_family != i->addr.sa.sa_family)
		return NULL;
	if ((q->named || q->dest.ss_family) &&
	    !kofi_ip_same(&q->from.addr.sa, &i->addr.sa))
		return NULL;

	memcpy(&local, q->wildcard ? want : &i->addr.sa,
	       kofi_ip_len(&i->addr.sa));
	if (want->sa_family)
		*kofi_ip_port(&local.sa) = *kofi_ip_port(want);
	if (type == FI_EP_DGRAM) {
		max = ksk_info_dgram_max(hints->fabric_attr->net, i);
		if (!max)
			return NULL;
	}
	mine = ksk_info_new(i, hints, type, max, &local.sa,
			    q->dest.ss_family ? (struct sockaddr *)&q->dest :
						NULL);
	if (!mine)
		return NULL;
	if (!kofi_info_match(mine, hints) && !kofi_info_listed(list, mine))
		granted = kofi_info_grant(mine, hints);
	fi_freeinfo(mine);
	if (!granted)
		return NULL;
	/* each record has memory for the granted segments */
	granted->tx_attr->iov_limit = hints->tx_attr->iov_limit ?:
				      KSK_IOV_LIMIT;
	granted->rx_attr->iov_limit = hints->rx_attr->iov_limit ?:
				      KSK_IOV_LIMIT;
	/* the bytes that may be stored are a limit, and no promise of memory */
	if (hints->rx_attr->total_buffered_recv)
		granted->rx_attr->total_buffered_recv =
			hints->rx_attr->total_buffered_recv;
	return granted;
}

/**
 * ksk_getinfo - kofi_provider.getinfo
 * @version: interface version of the caller
 * @node: host, or NULL
 * @service: port, or NULL
 * @flags: FI_SOURCE, FI_NUMERICHOST, ...
 * @hints: complete hints
 * @info: receives matching infos; connected endpoints first, datagrams last
 *
 * If no source is named, a destination selects the address that the routing table would
 * use. In a VRF it does so if a source or the device is named. A wildcard source in node
 * or hints stays a wildcard, so that a listener can be opened with it. A wildcard that
 * stems from a service without a node becomes each interface's own address.
 *
 * Return: 0, -ENODATA or -ENOMEM.
 */
int ksk_getinfo(u32 version, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **info)
{
	static const enum fi_ep_type types[] = {
		FI_EP_MSG, FI_EP_RDM, FI_EP_DGRAM,
	};
	struct net *net = hints->fabric_attr->net;
	struct ksk_info_query q = { .hints = hints };
	struct sockaddr *want = (struct sockaddr *)&q.src;
	struct fi_info **tail = info;
	struct kofi_netif_list l;
	size_t i, t;
	int err;

	*info = NULL;
	if (!ksk_tclass_known(hints->tx_attr->tclass) ||
	    !ksk_tclass_known(hints->domain_attr->tclass))
		return -ENODATA;
	if (kofi_info_resolve(node, service, flags, hints, &q.src, &q.dest))
		return -ENODATA;
	q.named = q.src.ss_family && !kofi_ip_any(want);
	if (q.named)
		memcpy(&q.from.addr, want, kofi_ip_len(want));
	err = kofi_netif_collect(net, true, &l);
	if (err)
		return err;
	q.from.ifindex = kofi_netif_find(&l, q.named ? want : NULL,
					 hints->domain_attr->name);
	if (q.dest.ss_family &&
	    kofi_netif_route(net, (struct sockaddr *)&q.dest, IPPROTO_TCP,
			     &q.from))
		goto free;
	q.wildcard = q.src.ss_family && !q.named && (node || hints->src_addr);

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		if (hints->ep_attr->type != FI_EP_UNSPEC &&
		    hints->ep_attr->type != types[t])
			continue;
		for (i = 0; i < l.n; i++) {
			*tail = ksk_info_of(&q, &l.ifs[i], types[t], *info);
			if (*tail)
				tail = &(*tail)->next;
		}
	}
free:
	kvfree(l.ifs);
	return *info ? 0 : -ENODATA;
}
