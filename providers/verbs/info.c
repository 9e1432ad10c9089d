// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fi_info of kofi_verbs: one for each address of a port of an RDMA device.
 *
 * Addresses and devices
 *
 * For IPoIB, RoCE on VLANs and bonds, and iWARP, the connection manager knows
 * which device has an address. So each address of the namespace is bound for a
 * moment, and the manager reports device and port. Their attributes limit the
 * fi_info.
 *
 * Names
 *
 * A fabric is named after the IP network ("10.0.0.0/24"). Link-local networks
 * are equal on all interfaces, so their names include the interface
 * ("fe80::%eth0/64"). On InfiniBand the prefix of the port's subnet precedes
 * the network, because IP alone does not decide which peers can be reached. On
 * iWARP that word precedes the network, because the two protocols do not
 * interoperate. A domain is named after the device.
 */
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "verbs.h"

#define VRB_MSG_ORDER	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | \
			 FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAW | \
			 FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | \
			 FI_ORDER_RMA_WAW)
#define VRB_ATOMIC_ORDER (FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | \
			  FI_ORDER_ATOMIC_WAW)
/* Sizes of a send queue's work request, in bytes; see VRB_QUIRK_SQ_BYTES */
#define VRB_WQE_HEAD	132	/* all but segments and payload */
#define VRB_WQE_SEGMENT	16
#define VRB_WQE_INLINE	4	/* header of an inline payload */
#define VRB_WQE_ALIGN	64
#define VRB_WQE_SHORT	256	/* work request that max_qp_wr counts */

#define VRB_DOM_CAPS	(FI_LOCAL_COMM | FI_REMOTE_COMM)
#define VRB_TX_CAPS	(FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE | \
			 FI_FENCE)
#define VRB_RX_CAPS	(FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | \
			 FI_REMOTE_WRITE | FI_SOURCE)

/* ------------------------------------------------------------- interfaces */

static int vrb_if_no_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	return 0;
}

/**
 * vrb_if_bind - find the device that has an address
 * @net: network namespace
 * @at: the address; with port 0, a free port is taken
 *
 * Context: process, may sleep.
 * Return: an identifier of the connection manager, bound to the device, which
 * stays present until rdma_destroy_id(); -EADDRNOTAVAIL if the address belongs
 * to no device that can be used in @net; errors of rdma_create_id() and
 * rdma_bind_addr().
 */
struct rdma_cm_id *vrb_if_bind(struct net *net, const union kofi_ip *at)
{
	struct rdma_cm_id *id;
	union kofi_ip addr = *at;
	int err;

	id = rdma_create_id(net, vrb_if_no_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	err = rdma_bind_addr(id, &addr.sa);
	if (!err && (!id->device || !vrb_dev_access(id->device, net)))
		err = -EADDRNOTAVAIL;
	if (err) {
		rdma_destroy_id(id);
		return ERR_PTR(err);
	}
	return id;
}

/**
 * vrb_if_find_dev - find an address of a device
 * @net: network namespace
 * @ib: the device
 * @family: address family, or AF_UNSPEC
 * @addr: set to the address
 *
 * Context: process, may sleep.
 * Return: 0, -EADDRNOTAVAIL or -ENOMEM.
 */
int vrb_if_find_dev(struct net *net, struct ib_device *ib, int family,
		    union kofi_ip *addr)
{
	struct rdma_cm_id *id;
	struct kofi_netif_list l;
	int err;
	size_t i;

	err = kofi_netif_collect(net, false, &l);
	if (err)
		return err;
	err = -EADDRNOTAVAIL;
	for (i = 0; i < l.n && err; i++) {
		if (family && family != l.ifs[i].addr.sa.sa_family)
			continue;
		id = vrb_if_bind(net, &l.ifs[i].addr);
		if (IS_ERR(id))
			continue;
		if (id->device == ib) {
			*addr = l.ifs[i].addr;
			err = 0;
		}
		rdma_destroy_id(id);
	}
	kvfree(l.ifs);
	return err;
}

/* Name the fabric of a port that has the address @i. */
static char *vrb_if_fabric(const struct kofi_netif *i, struct ib_device *ib,
			   u32 port)
{
	char *network, *name;
	union ib_gid gid;

	network = kofi_netif_network(i);
	if (!network)
		return NULL;
	if (rdma_protocol_iwarp(ib, port)) {
		name = kasprintf(GFP_KERNEL, "iWARP-%s", network);
	} else if (rdma_protocol_ib(ib, port) &&
		   !rdma_query_gid(ib, port, 0, &gid)) {
		name = kasprintf(GFP_KERNEL, "IB-%016llx-%s",
				 be64_to_cpu(gid.global.subnet_prefix),
				 network);
	} else {
		return network;
	}
	kfree(network);
	return name;
}

/* Interface on the route to @dest, or the one that has @dest as a local address */
static int vrb_if_out(const struct kofi_netif_list *l,
		      const struct kofi_netif *out, const struct sockaddr *dest)
{
	size_t i;

	if (out->loopback)
		for (i = 0; i < l->n; i++)
			if (kofi_ip_same(dest, &l->ifs[i].addr.sa))
				return l->ifs[i].ifindex;
	return out->ifindex;
}

/* ------------------------------------------------------------- attributes */

/* Attributes of devices are signed. */
static size_t vrb_limit(int value)
{
	return max(value, 0);
}

/* Number of the longest work requests that a send queue limited by bytes can hold */
static int vrb_info_queue_bytes(const struct ib_device *ib)
{
	int sges = clamp(ib->attrs.max_send_sge, 1, KOFI_IOV_MAX);
	int wqe = ALIGN(VRB_WQE_HEAD + max(sges * VRB_WQE_SEGMENT,
					   VRB_INJECT_MAX + VRB_WQE_INLINE),
			VRB_WQE_ALIGN);

	/* the device rounds up */
	return rounddown_pow_of_two(max(ib->attrs.max_qp_wr, 1)) *
	       VRB_WQE_SHORT / wqe;
}

/**
 * vrb_info_queue - number of work requests for one direction of an endpoint
 * @ib: the device
 *
 * Return: the number that fits into the device's queue and into its completion
 * queue.
 */
int vrb_info_queue(const struct ib_device *ib)
{
	return min(vrb_quirks(ib) & VRB_QUIRK_SQ_BYTES ?
		   vrb_info_queue_bytes(ib) : ib->attrs.max_qp_wr,
		   ib->attrs.max_cqe);
}

/**
 * vrb_info_max_wr - number of outstanding operations for one direction of an
 * endpoint
 * @ib: the device
 *
 * Return: vrb_info_queue() without the work requests that kofi_verbs needs
 * itself.
 */
size_t vrb_info_max_wr(const struct ib_device *ib)
{
	return clamp(vrb_info_queue(ib) - VRB_OWN_WRS, 1, VRB_SIZE_MAX);
}

/**
 * vrb_info_atomic - test whether a device has atomic operations
 * @ib: the device
 *
 * Return: true if it has 64-bit operations.
 */
bool vrb_info_atomic(const struct ib_device *ib)
{
	return ib->attrs.atomic_cap != IB_ATOMIC_NONE;
}

/**
 * vrb_info_regions - test whether a device has memory registration work
 * requests
 * @ib: the device
 *
 * Return: true if work requests can register and invalidate regions.
 */
bool vrb_info_regions(const struct ib_device *ib)
{
	return ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
}

/* Fill in an info with the limits of device and port. */
static int vrb_info_fill(struct fi_info *info, struct ib_device *ib, u32 port)
{
	const struct ib_device_attr *dev = &ib->attrs;
	bool iwarp = rdma_protocol_iwarp(ib, port);
	u64 atomic = vrb_info_atomic(ib) ? FI_ATOMIC : 0;
	u64 tx_caps = VRB_TX_CAPS | atomic;
	u64 rx_caps = VRB_RX_CAPS | atomic;
	u64 order = VRB_MSG_ORDER | (atomic ? VRB_ATOMIC_ORDER : 0);
	size_t max_wr = vrb_info_max_wr(ib);
	struct ib_port_attr attr;
	size_t max_msg;
	int err;

	err = ib_query_port(ib, port, &attr);
	if (err)
		return err;
	if (!vrb_info_regions(ib)) {
		rx_caps &= ~(FI_RMA | FI_ATOMIC | FI_REMOTE_READ |
			     FI_REMOTE_WRITE);
		/* on iWARP a read needs a region, too */
		tx_caps &= ~(iwarp ? FI_READ : 0);
	}
	max_msg = min_t(size_t, attr.max_msg_sz, SZ_1G);
	info->caps = tx_caps | rx_caps | VRB_DOM_CAPS;

	*info->tx_attr = (struct fi_tx_attr) {
		.caps		= tx_caps,
		.op_flags	= FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
				  /* on iWARP a send completes when TCP has the data */
				  (iwarp ? 0 : FI_TRANSMIT_COMPLETE |
					       FI_DELIVERY_COMPLETE),
		.msg_order	= order,
		.comp_order	= vrb_quirks(ib) & VRB_QUIRK_READ_ORDER ?
				  FI_ORDER_NONE : FI_ORDER_STRICT,
		.inject_size	= VRB_INJECT_MAX,
		.size		= max_wr,
		.iov_limit	= min_t(size_t, vrb_limit(dev->max_send_sge),
					KOFI_IOV_MAX),
		.rma_iov_limit	= VRB_RMA_MAX,
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps		= rx_caps,
		.op_flags	= FI_COMPLETION,
		.msg_order	= order,
		.comp_order	= FI_ORDER_STRICT,
		.size		= max_wr,
		.iov_limit	= min_t(size_t, vrb_limit(dev->max_recv_sge),
					KOFI_IOV_MAX),
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.type		= FI_EP_MSG,
		.protocol	= iwarp ? FI_PROTO_IWARP :
					  FI_PROTO_RDMA_CM_IB_RC,
		.protocol_version = 1,
		.max_msg_size	= max_msg,
		.max_order_raw_size = max_msg,
		.max_order_waw_size = max_msg,
		.tx_ctx_cnt	= 1,
		.rx_ctx_cnt	= 1,
	};
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->control_progress = FI_PROGRESS_AUTO;
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	/* without a posted receive, iWARP terminates the connection */
	info->domain_attr->resource_mgmt = iwarp ? FI_RM_DISABLED :
						   FI_RM_ENABLED;
	info->domain_attr->av_type = FI_AV_UNSPEC;
	info->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				     FI_MR_ALLOCATED;
	info->domain_attr->mr_key_size = sizeof(u32);
	/* immediate data; iWARP has none */
	info->domain_attr->cq_data_size = iwarp ? 0 : sizeof(__be32);
	info->domain_attr->cq_cnt = vrb_limit(dev->max_cq);
	info->domain_attr->ep_cnt = vrb_limit(dev->max_qp);
	info->domain_attr->tx_ctx_cnt = vrb_limit(dev->max_qp);
	info->domain_attr->rx_ctx_cnt = vrb_limit(dev->max_qp);
	info->domain_attr->max_ep_tx_ctx = 1;
	info->domain_attr->max_ep_rx_ctx = 1;
	info->domain_attr->max_ep_srx_ctx = dev->max_srq;
	info->domain_attr->cntr_cnt = 65536;
	info->domain_attr->max_cntr_value = U64_MAX;
	info->domain_attr->max_err_cntr_value = U64_MAX;
	/* a segment needs a page of its own, unless whole pages follow each other */
	info->domain_attr->mr_iov_limit =
		vrb_limit(dev->max_fast_reg_page_list_len);
	info->domain_attr->mr_cnt = vrb_info_regions(ib) ?
				    vrb_limit(dev->max_mr) : 0;
	info->domain_attr->caps = VRB_DOM_CAPS;
	info->domain_attr->max_err_data = VRB_CM_DATA_MAX;
	return 0;
}

/* ------------------------------------------------------------------ infos */

static int vrb_info_addrs(struct fi_info *info, const struct sockaddr *src,
			  const struct sockaddr *dest)
{
	size_t len = kofi_ip_len(src);

	info->addr_format = src->sa_family == AF_INET6 ? FI_SOCKADDR_IN6 :
							 FI_SOCKADDR_IN;
	info->src_addr = kmemdup(src, len, GFP_KERNEL);
	if (!info->src_addr)
		return -ENOMEM;
	info->src_addrlen = len;
	if (!dest)
		return 0;
	info->dest_addr = kmemdup(dest, len, GFP_KERNEL);
	if (!info->dest_addr)
		return -ENOMEM;
	info->dest_addrlen = len;
	return 0;
}

/* Make the info of an address, for the given source and destination. */
static struct fi_info *vrb_info_new(const struct kofi_netif *i,
				    struct ib_device *ib, u32 port,
				    const struct sockaddr *src,
				    const struct sockaddr *dest)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	if (vrb_info_fill(info, ib, port) || vrb_info_addrs(info, src, dest) ||
	    vrb_nic_fill(info, ib, port) ||
	    kofi_info_set_names(info, vrb_nic_name(ib),
				vrb_if_fabric(i, ib, port)))
		goto free;
	return info;

free:
	fi_freeinfo(info);
	return NULL;
}

/* Check that a device supports the attributes @asked. */
static int vrb_info_within(const struct fi_info *asked, struct ib_device *ib,
			   u32 port, size_t *max_msg)
{
	struct fi_info *most = fi_allocinfo();
	int err;

	if (!most)
		return -ENOMEM;
	err = vrb_info_fill(most, ib, port);
	if (!err && kofi_info_match(most, asked))
		err = -EINVAL;
	*max_msg = most->ep_attr->max_msg_size;
	fi_freeinfo(most);
	return err;
}

/* Test whether the device supports the traffic class, if one is requested. */
static bool vrb_info_tclass(const struct fi_info *info, const struct ib_device *ib)
{
	u32 tclass = kofi_info_tclass(info);

	return !tclass || (!(vrb_quirks(ib) & VRB_QUIRK_NO_TCLASS) &&
			   kofi_tclass_dscp(tclass) >= 0);
}

/**
 * vrb_info_check_domain - check that a domain can have the attributes of an
 * info
 * @info: info of the consumer, perhaps modified
 * @ib: the device
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if it asks for more than the device has; -ENOMEM.
 */
int vrb_info_check_domain(const struct fi_info *info, struct ib_device *ib)
{
	const struct fi_info asked = {
		.caps = info->caps, .mode = info->mode,
		.domain_attr = info->domain_attr,
	};
	size_t max_msg;

	return vrb_info_within(&asked, ib, rdma_start_port(ib), &max_msg);
}

/**
 * vrb_info_check_ep - check that an endpoint can have the attributes of an info
 * @info: info of the consumer, perhaps modified
 * @ib: the device
 * @port: port of the device
 * @max_msg: set to the length of the longest message
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if it asks for more than the device has, or for an unknown
 * traffic class; -ENOMEM.
 */
int vrb_info_check_ep(const struct fi_info *info, struct ib_device *ib,
		      u32 port, size_t *max_msg)
{
	struct fi_info asked = *info;

	if (!info->tx_attr->size || !info->rx_attr->size ||
	    !vrb_info_tclass(info, ib))
		return -EINVAL;
	/* domain and fabric are open already */
	asked.domain_attr = NULL;
	asked.fabric_attr = NULL;
	return vrb_info_within(&asked, ib, port, max_msg);
}

/**
 * vrb_info_check_srx - can a shared receive context be as its attributes ask for
 * @attr: from the consumer
 * @ib: the device
 * @size: receives that a queue of the device holds at most
 * @iov_limit: segments of each
 *
 * Context: process, may sleep.
 * Return: as kofi_srx_check(); -ENOMEM.
 */
int vrb_info_check_srx(const struct fi_rx_attr *attr, struct ib_device *ib,
		       size_t size, size_t iov_limit)
{
	struct fi_info *most = fi_allocinfo();
	int err;

	if (!most)
		return -ENOMEM;
	err = vrb_info_fill(most, ib, rdma_start_port(ib));
	most->rx_attr->mode = most->mode;
	most->rx_attr->size = size;
	most->rx_attr->iov_limit = iov_limit;
	err = err ?: kofi_srx_check(attr, most->rx_attr);
	fi_freeinfo(most);
	return err;
}

/* Reduce an info to the device of a request: a wildcard listener accepts from all. */
static void vrb_info_reduce(struct fi_info *info, const struct fi_info *most)
{
	kofi_info_reduce(info, most);
	info->ep_attr->protocol = most->ep_attr->protocol;
	info->domain_attr->resource_mgmt = most->domain_attr->resource_mgmt;
}

/* rdma_cm leaves out the scope of a link-local address that it reads from a request. */
static void vrb_info_scope(const struct rdma_cm_id *id, void *addr)
{
	struct sockaddr_in6 *in6 = addr;

	if (in6->sin6_family == AF_INET6 && !in6->sin6_scope_id &&
	    ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		in6->sin6_scope_id = id->route.addr.dev_addr.bound_dev_if;
}

/**
 * vrb_info_request - make the info of a connection request
 * @from: info of the passive endpoint
 * @id: identifier of the request
 * @fabric: name of the passive endpoint's fabric
 *
 * Context: process, may sleep.
 * Return: the info without a handle, or NULL.
 */
struct fi_info *vrb_info_request(const struct fi_info *from,
				 struct rdma_cm_id *id, const char *fabric)
{
	struct sockaddr *src = (struct sockaddr *)&id->route.addr.src_addr;
	struct sockaddr *dest = (struct sockaddr *)&id->route.addr.dst_addr;
	struct fi_info *info, *most;

	if (!kofi_ip_len(src) || src->sa_family != dest->sa_family)
		return NULL;
	info = fi_dupinfo(from);
	most = fi_allocinfo();
	if (!info || !most || vrb_info_fill(most, id->device, id->port_num))
		goto free;
	vrb_info_reduce(info, most);
	kfree(info->src_addr);
	kfree(info->dest_addr);
	kfree(info->domain_attr->name);
	kfree(info->fabric_attr->name);
	info->src_addr = NULL;
	info->dest_addr = NULL;
	info->src_addrlen = 0;
	info->dest_addrlen = 0;
	info->domain_attr->name = vrb_nic_name(id->device);
	info->fabric_attr->name = kstrdup(fabric, GFP_KERNEL);
	if (!info->domain_attr->name || !info->fabric_attr->name ||
	    vrb_info_addrs(info, src, dest))
		goto free;
	vrb_info_scope(id, info->src_addr);
	vrb_info_scope(id, info->dest_addr);
	fi_freeinfo(most);
	return info;

free:
	fi_freeinfo(most);
	fi_freeinfo(info);
	return NULL;
}

/* Set defaults that differ from the device's limits. */
static void vrb_info_defaults(struct fi_info *info,
			      const struct fi_info *hints)
{
	/* with FI_RX_CQ_DATA, remote CQ data of a write takes a receive */
	if (hints->mode & FI_RX_CQ_DATA && info->domain_attr->cq_data_size) {
		info->mode |= FI_RX_CQ_DATA;
		info->rx_attr->mode |= FI_RX_CQ_DATA;
	}
	/* only if requested */
	if (hints->domain_attr->mr_mode & FI_MR_ENDPOINT &&
	    !(hints->domain_attr->mr_mode & FI_MR_COLLECTIVE))
		info->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	/* opens all regions of the domain to atomic operations */
	if (!((hints->caps | hints->tx_attr->caps | hints->rx_attr->caps) &
	      FI_ATOMIC)) {
		info->caps &= ~FI_ATOMIC;
		info->tx_attr->caps &= ~FI_ATOMIC;
		info->rx_attr->caps &= ~FI_ATOMIC;
	}
	/* unused segments and records take memory of each endpoint */
	if (hints->tx_attr->iov_limit)
		info->tx_attr->iov_limit = hints->tx_attr->iov_limit;
	if (hints->rx_attr->iov_limit)
		info->rx_attr->iov_limit = hints->rx_attr->iov_limit;
	if (!hints->tx_attr->size)
		info->tx_attr->size = min_t(size_t, info->tx_attr->size,
					    READ_ONCE(vrb_tx_size));
	if (!hints->rx_attr->size)
		info->rx_attr->size = min_t(size_t, info->rx_attr->size,
					    READ_ONCE(vrb_rx_size));
}

/* Make the info of an address if its port is up and supports the hints. */
static struct fi_info *vrb_info_offer(struct net *net, const struct kofi_netif *i,
				      const struct fi_info *hints,
				      const struct sockaddr *src,
				      const struct sockaddr *dest)
{
	struct fi_info *mine = NULL, *granted = NULL;
	struct rdma_cm_id *id;

	id = vrb_if_bind(net, &i->addr);
	if (IS_ERR(id))
		return NULL;
	if (vrb_info_tclass(hints, id->device))
		mine = vrb_info_new(i, id->device, id->port_num, src, dest);
	rdma_destroy_id(id);
	if (mine && mine->nic->link_attr->state == FI_LINK_UP &&
	    !kofi_info_match(mine, hints)) {
		vrb_info_defaults(mine, hints);
		granted = kofi_info_grant(mine, hints);
	}
	fi_freeinfo(mine);
	return granted;
}

/**
 * vrb_getinfo - kofi_provider.getinfo
 * @version: interface version of the caller
 * @node: host, or NULL
 * @service: port, or NULL
 * @flags: FI_SOURCE, FI_NUMERICHOST, ...
 * @hints: complete hints
 * @info: set to the list of matching infos
 *
 * A destination selects the interface on its route and, unless a source is
 * named, the source address. A wildcard source of @node or @hints stays a
 * wildcard, so that a listener can be opened with it.
 *
 * Return: 0, -ENODATA or -ENOMEM.
 */
int vrb_getinfo(u32 version, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **info)
{
	struct net *net = hints->fabric_attr->net;
	struct sockaddr_storage src = {}, dest = {};
	struct sockaddr *want = (struct sockaddr *)&src;
	struct fi_info **tail = info;
	struct kofi_netif from = {};
	struct kofi_netif_list l;
	bool wildcard, named;
	int ifindex, err;
	size_t i;

	*info = NULL;
	if (hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != FI_EP_MSG)
		return -ENODATA;
	if (kofi_info_resolve(node, service, flags, hints, &src, &dest))
		return -ENODATA;
	err = kofi_netif_collect(net, false, &l);
	if (err)
		return err;
	named = src.ss_family && !kofi_ip_any(want);
	wildcard = src.ss_family && !named && (node || hints->src_addr);
	if (named)
		memcpy(&from.addr, want, kofi_ip_len(want));
	from.ifindex = kofi_netif_find(&l, named ? want : NULL, NULL);
	if (dest.ss_family &&
	    kofi_netif_route(net, (struct sockaddr *)&dest, 0, &from))
		goto free;
	/*
	 * The manager keeps an identifier on the interface of the address it is
	 * bound to.
	 */
	ifindex = dest.ss_family ?
		  vrb_if_out(&l, &from, (struct sockaddr *)&dest) : 0;

	for (i = 0; i < l.n; i++) {
		union kofi_ip local = {};
		struct fi_info *offer;

		if (src.ss_family &&
		    src.ss_family != l.ifs[i].addr.sa.sa_family)
			continue;
		if ((named || dest.ss_family) &&
		    !kofi_ip_same(&from.addr.sa, &l.ifs[i].addr.sa))
			continue;
		if (ifindex && ifindex != l.ifs[i].ifindex)
			continue;

		memcpy(&local, wildcard ? want : &l.ifs[i].addr.sa,
		       kofi_ip_len(&l.ifs[i].addr.sa));
		if (src.ss_family)
			*kofi_ip_port(&local.sa) = *kofi_ip_port(want);
		offer = vrb_info_offer(net, &l.ifs[i], hints, &local.sa,
				       dest.ss_family ?
				       (struct sockaddr *)&dest : NULL);
		if (!offer)
			continue;
		if (kofi_info_listed(*info, offer)) {
			fi_freeinfo(offer);
			continue;
		}
		*tail = offer;
		tail = &offer->next;
	}
free:
	kvfree(l.ifs);
	return *info ? 0 : -ENODATA;
}
