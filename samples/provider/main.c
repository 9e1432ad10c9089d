// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module, discovery, fabrics and domains, which every provider has */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/kofi/version.h>

#include "loop.h"

struct workqueue_struct *loop_wq;
DEFINE_MUTEX(loop_mutex);	/* see loop.h */

/* ------------------------------------------------------ domains and fabrics */

static const struct fi_ops_domain loop_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= loop_endpoint,
	.srx_context	= kofi_srx_open,
};

static int loop_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **fid, void *context)
{
	struct kofi_domain *domain = kzalloc(sizeof(*domain), GFP_KERNEL);
	int err;

	if (!domain)
		return -ENOMEM;
	err = kofi_domain_init(domain, fabric, info, &loop_domain_ops, NULL,
			       context);
	if (err) {
		kfree(domain);
		return err;
	}
	*fid = &domain->domain;
	return 0;
}

static const struct fi_ops_fabric loop_fabric_ops = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= loop_domain,
	.passive_ep	= loop_passive_ep,
};

/* --------------------------------------------------------------- discovery */

/* Make an info with everything the provider supports, before hints are applied. */
static struct fi_info *loop_info(void)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = LOOP_TX_CAPS | LOOP_RX_CAPS | FI_LOCAL_COMM;
	info->addr_format = FI_SOCKADDR_IN;
	info->tx_attr->caps = LOOP_TX_CAPS;
	info->tx_attr->op_flags = FI_COMPLETION | FI_INJECT | LOOP_LEVELS;
	info->tx_attr->msg_order = FI_ORDER_SAS;
	info->tx_attr->comp_order = FI_ORDER_STRICT;
	info->tx_attr->inject_size = LOOP_INJECT;
	info->tx_attr->size = LOOP_SIZE;
	info->tx_attr->iov_limit = KOFI_IOV_MAX;
	info->rx_attr->caps = LOOP_RX_CAPS;
	info->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	info->rx_attr->msg_order = FI_ORDER_SAS;
	info->rx_attr->comp_order = FI_ORDER_STRICT;
	info->rx_attr->size = LOOP_SIZE;
	info->rx_attr->iov_limit = KOFI_IOV_MAX;
	info->ep_attr->type = FI_EP_MSG;
	info->ep_attr->max_msg_size = LOOP_MSG_MAX;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->caps = FI_LOCAL_COMM;
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->control_progress = FI_PROGRESS_AUTO;
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->cq_data_size = 8;
	info->domain_attr->tx_ctx_cnt = 65536;
	info->domain_attr->rx_ctx_cnt = 65536;
	info->domain_attr->max_ep_tx_ctx = 1;
	info->domain_attr->max_ep_rx_ctx = 1;
	info->domain_attr->max_ep_srx_ctx = 65536;
	info->domain_attr->max_err_data = KOFI_CM_DATA_MAX;
	if (!kofi_info_set_names(info, kstrdup("loop", GFP_KERNEL),
				 kstrdup("loop", GFP_KERNEL)))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* Test for an address of this provider, or an unspecified one. */
static bool loop_addr_known(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	return !addr->ss_family ||
	       (addr->ss_family == AF_INET &&
		(in->sin_addr.s_addr == htonl(INADDR_LOOPBACK) ||
		 in->sin_addr.s_addr == htonl(INADDR_ANY)));
}

/* Offered only if the hints name the provider: nothing leaves the machine. */
static int loop_getinfo(u32 version, const char *node, const char *service,
			u64 flags, const struct fi_info *hints,
			struct fi_info **info)
{
	struct sockaddr_storage src = {}, dest = {};
	struct sockaddr_in addr;
	struct fi_info *all;
	int err;

	*info = NULL;
	if (!hints->fabric_attr->prov_name ||
	    kofi_info_resolve(node, service, flags, hints, &src, &dest) ||
	    !loop_addr_known(&src) || !loop_addr_known(&dest))
		return -ENODATA;
	all = loop_info();
	if (!all)
		return -ENODATA;
	addr = loop_addr(ntohs(((struct sockaddr_in *)&src)->sin_port));
	err = loop_addr_set(&all->src_addr, &all->src_addrlen, &addr);
	if (!err && dest.ss_family) {
		addr = loop_addr(ntohs(((struct sockaddr_in *)&dest)->sin_port));
		err = loop_addr_set(&all->dest_addr, &all->dest_addrlen, &addr);
	}
	if (!err && !kofi_info_match(all, hints))
		*info = kofi_info_grant(all, hints);
	fi_freeinfo(all);
	return *info ? 0 : -ENODATA;
}

static struct kofi_provider loop_provider = {
	.name		= "loop",
	.version	= FI_VERSION(1, 0),
	.getinfo	= loop_getinfo,
	.fabric_ops	= &loop_fabric_ops,
	.owner		= THIS_MODULE,
	.priority	= 1000,
};

static int __init loop_init(void)
{
	int err;

	loop_wq = alloc_workqueue("kofi_loop", WQ_MEM_RECLAIM, 0);
	if (!loop_wq)
		return -ENOMEM;
	err = kofi_provider_register(FI_VERSION(2, 1), &loop_provider);
	if (err)
		destroy_workqueue(loop_wq);
	return err;
}
module_init(loop_init);

static void __exit loop_exit(void)
{
	kofi_provider_deregister(&loop_provider);
	destroy_workqueue(loop_wq);
}
module_exit(loop_exit);

MODULE_ALIAS("kofi-prov-loop");
MODULE_DESCRIPTION("kOFI: a sample provider, within one machine");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
