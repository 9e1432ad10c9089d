// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_rxm as a provider: discovery, fabrics, domains, memory regions.
 *
 * Each provider below has one provider here, "NAME;ofi_rxm", as in libfabric. It offers
 * the features of the connected endpoints below, in one endpoint for all peers. A
 * domain here has a domain below, and each region has a region there: the provider
 * below defines keys and addresses.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include <kunit/visibility.h>
#include <linux/kofi/version.h>

#include "rxm.h"

#define RXM_MR_MODES	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define RXM_ORDER	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | \
			 FI_ORDER_WAW)
#define RXM_ORDER_BELOW	FI_ORDER_SAW	/* if the provider below keeps it */
#define RXM_DOM_CAPS	(FI_LOCAL_COMM | FI_REMOTE_COMM | FI_AV_USER_ID)
#define RXM_TX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | \
			 FI_READ | FI_WRITE | FI_FENCE | FI_NAMED_RX_CTX)
#define RXM_RX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | \
			 FI_TAGGED_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | \
			 FI_SOURCE_ERR | FI_RMA_EVENT)

/* A tag of 64 bits, all of one field (FI_TAG_GENERIC) */
#define RXM_TAG_FORMAT	0xaaaaaaaaaaaaaaaaULL

struct workqueue_struct *rxm_wq;

KOFI_PARAM(rx_bufs, rxm, 16, 2, 128, 0644,
	   "Receives posted for each connection, of 20 KiB each; over InfiniBand and RoCE four times as many");
EXPORT_SYMBOL_IF_KUNIT(rxm_rx_bufs);

KOFI_PARAM(held_bufs, rxm, 256, 0, 65536, 0644,
	   "Buffers an endpoint may hold before its connections get no others in their place");
EXPORT_SYMBOL_IF_KUNIT(rxm_held_bufs);

KOFI_PARAM(max_unknown, rxm, 1024, 0, 65536, 0644,
	   "Peers that are not in the address vector of an endpoint");
EXPORT_SYMBOL_IF_KUNIT(rxm_max_unknown);

KOFI_PARAM(max_unknown_host, rxm, 25, 1, 100, 0644,
	   "Percentage of max_unknown for one address");

KOFI_PARAM(max_unknown_net, rxm, 50, 1, 100, 0644,
	   "Percentage of max_unknown for one IPv6 network of 64 bits");

static int rxm_getinfo_sock(u32 version, const char *node, const char *service,
			    u64 flags, const struct fi_info *hints,
			    struct fi_info **info);
static int rxm_getinfo_verbs(u32 version, const char *node,
			     const char *service, u64 flags,
			     const struct fi_info *hints,
			     struct fi_info **info);
static int rxm_fabric_sock(struct fi_fabric_attr *attr,
			   struct fid_fabric **fabric, void *context);
static int rxm_fabric_verbs(struct fi_fabric_attr *attr,
			    struct fid_fabric **fabric, void *context);

static struct rxm_provider rxm_sock = {
	.base = {
		.name		= "sock;ofi_rxm",
		.version	= FI_VERSION(1, 0),
		.getinfo	= rxm_getinfo_sock,
		.fabric		= rxm_fabric_sock,
		.owner		= THIS_MODULE,
		.priority	= 30,
	},
	.below = "sock",
};

static struct rxm_provider rxm_verbs = {
	.base = {
		.name		= "verbs;ofi_rxm",
		.version	= FI_VERSION(1, 0),
		.getinfo	= rxm_getinfo_verbs,
		.fabric		= rxm_fabric_verbs,
		.owner		= THIS_MODULE,
		.priority	= 20,
	},
	.below = "verbs",
};

/* --------------------------------------------------------------- discovery */

static bool rxm_wants_rma(const struct fi_info *hints)
{
	return !hints->caps || hints->caps & (FI_RMA | FI_ATOMIC);
}

/* Levels for all transmits: without messages, these are accesses. */
static u64 rxm_info_levels(const struct fi_info *msg, const struct fi_info *hints)
{
	u64 sends = FI_MSG | FI_TAGGED | FI_ATOMIC;

	return rxm_levels(msg) & (hints->caps && !(hints->caps & sends) ?
				  RXM_RMA_LEVELS : RXM_TX_LEVELS);
}

static void rxm_info_fill(struct fi_info *info, const struct fi_info *msg,
			  const struct fi_info *hints)
{
	info->caps = RXM_TX_CAPS | RXM_RX_CAPS | RXM_DOM_CAPS;
	/* these change the use of addresses and receives: only on request */
	info->caps &= hints->caps | ~(FI_DIRECTED_RECV | FI_NAMED_RX_CTX |
				      FI_TAGGED_MULTI_RECV | FI_SOURCE_ERR);
	/* accesses are reported by the provider below, if by any */
	info->caps &= msg->caps | ~FI_RMA_EVENT;

	*info->tx_attr = (struct fi_tx_attr) {
		.caps		= info->caps & RXM_TX_CAPS,
		.op_flags	= FI_COMPLETION | FI_INJECT |
				  rxm_info_levels(msg, hints),
		.msg_order	= RXM_ORDER |
				  (msg->tx_attr->msg_order & RXM_ORDER_BELOW),
		.comp_order	= FI_ORDER_NONE,
		.inject_size	= RXM_INJECT,
		.size		= RXM_SIZE_MAX,
		.iov_limit	= min_t(size_t, RXM_IOV_MAX,
					msg->tx_attr->iov_limit - 1),
		.rma_iov_limit	= min_t(size_t, RXM_RMA_IOV,
					msg->tx_attr->rma_iov_limit),
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps		= info->caps & RXM_RX_CAPS,
		.op_flags	= FI_COMPLETION | FI_MULTI_RECV,
		.msg_order	= RXM_ORDER |
				  (msg->rx_attr->msg_order & RXM_ORDER_BELOW),
		.comp_order	= FI_ORDER_NONE,
		.size		= RXM_SIZE_MAX,
		.iov_limit	= RXM_IOV_MAX,
		.total_buffered_recv = READ_ONCE(rxm_held_bufs) * RXM_EAGER,
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.type		= FI_EP_RDM,
		.protocol	= FI_PROTO_RXM,
		.protocol_version = 1,
		.max_msg_size	= msg->ep_attr->max_msg_size,
		.mem_tag_format	= RXM_TAG_FORMAT,
		.tx_ctx_cnt	= 1,
		.rx_ctx_cnt	= 1,
	};
	info->mode &= ~FI_RX_CQ_DATA;
	info->domain_attr->av_type = FI_AV_UNSPEC;
	/* the provider below limits the data of writes, but not of messages */
	if (!rxm_wants_rma(hints))
		info->domain_attr->cq_data_size = RXM_CQ_DATA;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->caps = RXM_DOM_CAPS;
	info->domain_attr->max_ep_tx_ctx = KOFI_EP_CTX_MAX;
	info->domain_attr->max_ep_rx_ctx = KOFI_EP_CTX_MAX;
	info->domain_attr->max_ep_srx_ctx = RXM_SRX_MAX;
	info->domain_attr->mr_mode &= ~FI_MR_ENDPOINT;
}

/*
 * Make hints for the provider below. We may choose the mode of keys unless the consumer
 * has regions of its own: with keys that it requests, rendezvous is impossible.
 */
static struct fi_info *rxm_msg_hints(const struct rxm_provider *prov,
				     const struct fi_info *from)
{
	struct fi_info *hints = fi_dupinfo(from);

	if (!hints)
		return NULL;
	*hints->tx_attr = (struct fi_tx_attr) {
		.tclass = from->tx_attr->tclass,
	};
	*hints->rx_attr = (struct fi_rx_attr) {};
	*hints->ep_attr = (struct fi_ep_attr) { .type = FI_EP_MSG };
	if (!rxm_wants_rma(from))
		hints->domain_attr->mr_mode |= RXM_MR_MODES;
	hints->caps = FI_MSG | FI_RMA;
	hints->handle = NULL;
	/* remote CQ data of writes may use receives: this provider posts them */
	hints->mode = from->mode | FI_RX_CQ_DATA;
	hints->domain_attr->domain = NULL;
	hints->domain_attr->av_type = FI_AV_UNSPEC;
	hints->domain_attr->caps = 0;
	hints->domain_attr->resource_mgmt = FI_RM_UNSPEC;
	hints->domain_attr->max_ep_tx_ctx = 0;
	hints->domain_attr->max_ep_rx_ctx = 0;
	hints->domain_attr->max_ep_srx_ctx = 0;
	hints->domain_attr->cq_data_size = 0;
	hints->fabric_attr->fabric = NULL;
	hints->fabric_attr->prov_version = 0;
	kfree(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = kstrdup(prov->below, GFP_KERNEL);
	if (hints->fabric_attr->prov_name)
		return hints;
	fi_freeinfo(hints);
	return NULL;
}

static struct fi_info *rxm_info_new(const struct fi_info *msg,
				    const struct fi_info *hints)
{
	struct fi_info *info, *granted = NULL;

	if (msg->tx_attr->iov_limit < 2 ||
	    (rxm_credits_used(msg) && msg->rx_attr->size < RXM_CREDIT_BUFS))
		return NULL;
	info = fi_dupinfo(msg);
	if (!info)
		return NULL;
	kfree(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = NULL;
	info->fabric_attr->prov_version = 0;
	rxm_info_fill(info, msg, hints);
	if (!kofi_info_match(info, hints))
		granted = kofi_info_grant(info, hints);
	fi_freeinfo(info);
	if (!granted)
		return NULL;
	/* records need memory, also for each of their segments: few unless requested */
	granted->tx_attr->size = hints->tx_attr->size ?: RXM_SIZE;
	granted->rx_attr->size = hints->rx_attr->size ?: RXM_SIZE;
	granted->tx_attr->iov_limit = hints->tx_attr->iov_limit ?:
		min_t(size_t, RXM_IOV_LIMIT, granted->tx_attr->iov_limit);
	granted->rx_attr->iov_limit = hints->rx_attr->iov_limit ?:
		RXM_IOV_LIMIT;
	/* a message behind an atomic operation waits for its answer: only on request */
	if (granted->caps & FI_ATOMIC) {
		granted->tx_attr->msg_order &= ~RXM_ORDER_BELOW |
					       hints->tx_attr->msg_order;
		granted->rx_attr->msg_order &= ~RXM_ORDER_BELOW |
					       hints->rx_attr->msg_order;
	}
	return granted;
}

static int rxm_getinfo(const struct rxm_provider *prov, u32 version,
		       const char *node, const char *service, u64 flags,
		       const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *ask, *list, *msg, **tail = info;
	int err;

	*info = NULL;
	if (hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != FI_EP_RDM)
		return -ENODATA;
	ask = rxm_msg_hints(prov, hints);
	if (!ask)
		return -ENOMEM;
	err = kofi_getinfo(hints->fabric_attr->net, version, node, service,
			   flags, ask, &list, GFP_KERNEL);
	fi_freeinfo(ask);
	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	for (msg = list; msg; msg = msg->next) {
		*tail = rxm_info_new(msg, hints);
		if (*tail)
			tail = &(*tail)->next;
	}
	fi_freeinfo(list);
	return *info ? 0 : -ENODATA;
}

static int rxm_getinfo_sock(u32 version, const char *node, const char *service,
			    u64 flags, const struct fi_info *hints,
			    struct fi_info **info)
{
	return rxm_getinfo(&rxm_sock, version, node, service, flags, hints,
			   info);
}

static int rxm_getinfo_verbs(u32 version, const char *node,
			     const char *service, u64 flags,
			     const struct fi_info *hints,
			     struct fi_info **info)
{
	return rxm_getinfo(&rxm_verbs, version, node, service, flags, hints,
			   info);
}

/**
 * rxm_msg_info - find the attributes for objects below
 * @dom: the domain, perhaps while it is opened: its provider
 * @info: attributes of the object here
 * @msg: set to matching attributes, with the source address if there is one
 *
 * Context: process, may sleep.
 * Return: 0, or as kofi_getinfo().
 */
int rxm_msg_info(struct rxm_domain *dom, const struct fi_info *info,
		 struct fi_info **msg)
{
	struct fi_info *hints = rxm_msg_hints(dom->prov, info);
	unsigned int bufs;
	int err;

	if (!hints)
		return -ENOMEM;
	kfree(hints->dest_addr);
	hints->dest_addr = NULL;
	hints->dest_addrlen = 0;
	err = kofi_getinfo(info->fabric_attr->net,
			   FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
			   NULL, NULL, 0, hints, msg, GFP_KERNEL);
	fi_freeinfo(hints);
	if (err)
		return err;
	(*msg)->tx_attr->size = min_t(size_t, RXM_MSG_TX,
				      (*msg)->tx_attr->size);
	bufs = READ_ONCE(rxm_rx_bufs);
	if (rxm_credits_used(*msg))
		bufs = max(bufs, RXM_CREDIT_BUFS);
	else if ((*msg)->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_RC)
		/* if a message finds no receive, the peer's device retries after a timer */
		bufs *= RXM_RC_BUFS;
	(*msg)->rx_attr->size = min_t(size_t, bufs, (*msg)->rx_attr->size);
	(*msg)->tx_attr->iov_limit = min_t(size_t, RXM_IOV_MAX + 1,
					   (*msg)->tx_attr->iov_limit);
	(*msg)->rx_attr->iov_limit = 1;
	return 0;
}

/* ------------------------------------------------------------------ regions */

static struct rxm_mr *rxm_mr(struct kofi_mr *mr)
{
	return container_of(mr, struct rxm_mr, base);
}

static struct rxm_domain *rxm_mr_dom(const struct kofi_mr *mr)
{
	return container_of(mr->domain, struct rxm_domain, base);
}

/*
 * A region of a pool has no region below: over a device, that would belong to the connection
 * of one peer, and such regions are refused.
 */
static int rxm_mr_init(struct kofi_mr *mr, size_t segs, u64 key)
{
	rxm_mr(mr)->key = key;
	return mr->pool ? kofi_mr_layer_init(mr, rxm_mr_dom(mr)->msg) : 0;
}

static void rxm_mr_exit(struct kofi_mr *mr)
{
	if (mr->pool)
		kofi_mr_layer_exit(mr, rxm_mr_dom(mr)->msg);
}

static int rxm_mr_open(struct kofi_mr *mr)
{
	struct rxm_domain *dom = rxm_mr_dom(mr);
	const struct fi_mr_attr attr = {
		.mr_bvec = mr->bv, .iov_count = mr->nr_segs,
		.access = mr->access, .requested_key = rxm_mr(mr)->key,
		.vec = KOFI_BVEC, .base = mr->base,
		/* completions of accesses report it */
		.context = mr->mr.fid.context,
	};
	struct fid_mr *msg;
	int err;

	if (mr->pool)
		return kofi_mr_layer_open(mr);
	err = fi_mr_regattr(dom->msg, &attr, mr->flags, &msg);
	if (err)
		return err;
	rxm_mr(mr)->msg = msg;
	mr->base = kofi_mr_base(msg);
	/* atomic operations look the region up here, reads and writes below */
	err = kofi_mr_show(mr, fi_mr_key(msg));
	if (err)
		fi_close(&msg->fid);
	return err;
}

/* Closing the region below may sleep: only fi_close() ends a region of no pool. */
static void rxm_mr_end(struct kofi_mr *mr)
{
	if (mr->pool) {
		kofi_mr_layer_end(mr);
		return;
	}
	kofi_mr_hide(mr);
	fi_close(&rxm_mr(mr)->msg->fid);
}

static const struct kofi_mr_ops rxm_mr_ops = {
	.size	= sizeof(struct rxm_mr),
	.init	= rxm_mr_init,
	.exit	= rxm_mr_exit,
	.open	= rxm_mr_open,
	.end	= rxm_mr_end,
};

/* --------------------------------------------------------- fabrics, domains */

/* Pass notifications of the domain below to the consumer. */
static void rxm_domain_event(struct fid_eq *eq, void *context)
{
	struct rxm_domain *dom = context;
	struct fi_eq_entry entry;
	u32 event;

	while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) > 0)
		if (event == FI_NOTIFY)
			kofi_domain_notify(&dom->base, entry.data);
}

static void rxm_domain_close(struct kofi_domain *base)
{
	struct rxm_domain *dom = container_of(base, struct rxm_domain, base);

	fi_close(&dom->msg->fid);
	fi_close(&dom->eq->fid);
}

static int rxm_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
			   struct fid_ep **srx, void *context)
{
	const struct fi_rx_attr most = {
		.caps		= RXM_RX_CAPS,
		.op_flags	= FI_COMPLETION | FI_MULTI_RECV,
		.msg_order	= RXM_ORDER | RXM_ORDER_BELOW,
		.size		= SIZE_MAX,	/* the core limits it */
		.iov_limit	= RXM_IOV_MAX,
		.total_buffered_recv = READ_ONCE(rxm_held_bufs) * RXM_EAGER,
	};

	attr->iov_limit = attr->iov_limit ?: RXM_IOV_MAX;
	return kofi_srx_check(attr, &most) ?:
	       kofi_srx_open(domain, attr, srx, context);
}

static const struct fi_ops_domain rxm_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= rxm_endpoint,
	.srx_context	= rxm_srx_context,
	.mr_regattr	= kofi_mr_regattr,
	.query_atomic	= rxm_query_atomic,
};

/* fi_domain() */
static int rxm_domain(struct fid_fabric *fid, struct fi_info *info,
		      struct fid_domain **domain, void *context)
{
	struct rxm_fabric *fabric = container_of(fid, struct rxm_fabric,
						 base.fabric);
	struct fi_eq_attr attr = {};
	struct rxm_domain *dom;
	struct fi_info *msg;
	int err;

	if (info->domain_attr->mr_mode & FI_MR_ENDPOINT)
		return -EINVAL;
	dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	if (!dom)
		return -ENOMEM;
	dom->prov = container_of(fabric->base.obj.prov, struct rxm_provider,
				 base);
	err = rxm_msg_info(dom, info, &msg);
	if (err)
		goto free;
	dom->base.remote = msg->caps & FI_RMA_EVENT ||
			   msg->domain_attr->cq_data_size;
	err = fi_domain(fabric->msg, msg, &dom->msg, NULL);
	fi_freeinfo(msg);
	if (err)
		goto free;
	err = kofi_domain_init(&dom->base, fid, info, &rxm_domain_ops,
			       rxm_domain_close, context);
	if (err)
		goto close;
	err = kofi_eq_open(fabric->msg, &attr, rxm_domain_event, &dom->eq, dom);
	if (err)
		goto exit;
	err = fi_domain_bind(dom->msg, &dom->eq->fid, 0);
	if (err)
		goto close_eq;
	dom->base.mr_ops = &rxm_mr_ops;
	dom->base.node = kofi_domain_node(dom->msg);
	/* the domain below keeps it */
	dom->base.dev = kofi_domain_device(dom->msg);
	*domain = &dom->base.domain;
	return 0;

close_eq:
	fi_close(&dom->eq->fid);
exit:
	kofi_domain_exit(&dom->base);
close:
	fi_close(&dom->msg->fid);
free:
	kfree(dom);
	return err;
}

static int rxm_fabric_close(struct fi_fid *fid)
{
	struct rxm_fabric *fabric = container_of(fid, struct rxm_fabric,
						 base.fabric.fid);

	fi_close(&fabric->msg->fid);
	kofi_fabric_exit(&fabric->base);
	kfree(fabric);
	return 0;
}

static const struct fi_ops rxm_fabric_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= rxm_fabric_close,
};

static const struct fi_ops_fabric rxm_fabric_ops = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= rxm_domain,
};

static int rxm_fabric(struct rxm_provider *prov, struct fi_fabric_attr *attr,
		      struct fid_fabric **fid, void *context)
{
	struct fi_fabric_attr below = *attr;
	struct rxm_fabric *fabric;
	int err;

	fabric = kzalloc(sizeof(*fabric), GFP_KERNEL);
	if (!fabric)
		return -ENOMEM;
	below.fabric = NULL;
	below.prov_name = (char *)prov->below;
	below.prov_version = 0;
	err = fi_fabric(&below, &fabric->msg, NULL);
	if (err)
		goto free;
	err = kofi_fabric_init(&fabric->base, &prov->base, attr,
			       &rxm_fabric_fid_ops, &rxm_fabric_ops, context);
	if (err)
		goto close;
	*fid = &fabric->base.fabric;
	return 0;

close:
	fi_close(&fabric->msg->fid);
free:
	kfree(fabric);
	return err;
}

static int rxm_fabric_sock(struct fi_fabric_attr *attr,
			   struct fid_fabric **fabric, void *context)
{
	return rxm_fabric(&rxm_sock, attr, fabric, context);
}

static int rxm_fabric_verbs(struct fi_fabric_attr *attr,
			    struct fid_fabric **fabric, void *context)
{
	return rxm_fabric(&rxm_verbs, attr, fabric, context);
}

/* ------------------------------------------------------------------- module */

static int __init rxm_init(void)
{
	const u32 version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	int err;

	rxm_wq = alloc_workqueue("kofi_rxm", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				 WQ_UNBOUND, 0);
	if (!rxm_wq)
		return -ENOMEM;
	err = kofi_provider_register(version, &rxm_verbs.base);
	if (err)
		goto destroy;
	err = kofi_provider_register(version, &rxm_sock.base);
	if (err)
		goto deregister;
	return 0;

deregister:
	kofi_provider_deregister(&rxm_verbs.base);
destroy:
	destroy_workqueue(rxm_wq);
	return err;
}

static void __exit rxm_exit(void)
{
	kofi_provider_deregister(&rxm_sock.base);
	kofi_provider_deregister(&rxm_verbs.base);
	destroy_workqueue(rxm_wq);
}

module_init(rxm_init);
module_exit(rxm_exit);

MODULE_DESCRIPTION("kOFI provider for reliable datagrams over connections");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
MODULE_ALIAS("kofi-prov-sock;ofi_rxm");
MODULE_ALIAS("kofi-prov-verbs;ofi_rxm");
