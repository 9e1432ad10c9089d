// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What both ends of a connection have in common: discovery, objects, options.
 * The queues have room for all that can be under way, so that a post is never
 * refused for want of it.
 */
#include <linux/sizes.h>
#include <linux/slab.h>

#include "testblk.h"

/**
 * tb_getinfo - discovery
 * @node: numeric address
 * @flags: FI_SOURCE if it is ours
 * @info: the first match, to be freed
 *
 * Return: 0 or a negative error code.
 */
int tb_getinfo(const char *node, u64 flags, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int err = -ENOMEM;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_ENDPOINT |
				      FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	hints->tx_attr->size = 2 * TB_DEPTH;
	hints->rx_attr->size = TB_DEPTH;
	hints->fabric_attr->prov_name = kstrdup(tb_provider, GFP_KERNEL);
	if (hints->fabric_attr->prov_name)
		err = fi_getinfo(FI_VERSION(2, 1), node, TB_PORT,
				 flags | FI_NUMERICHOST, hints, info);
	fi_freeinfo(hints);
	return err;
}

static int tb_end_options(struct tb_end *e, size_t regions)
{
	unsigned int safe = true;
	size_t segs = TB_SEGS;
	int err = 0;

	/* not every provider knows of it */
	if (tb_safe)
		err = fi_set_val(&e->ep->fid, KOFI_VAL_RECLAIM_SAFE, &safe);
	if (err || !regions)
		return err;
	err = fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
			&regions, sizeof(regions));
	return err ? : fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_SEGS,
				 &segs, sizeof(segs));
}

/**
 * tb_end_open - an enabled endpoint and its domain and queue
 * @e: zeroed; what has been opened is in it, also after a failure
 * @fabric: where
 * @eq: for its events
 * @info: from discovery, or of a request
 * @how: what this end is like
 *
 * Return: 0 or a negative error code.
 */
int tb_end_open(struct tb_end *e, struct fid_fabric *fabric,
		struct fid_eq *eq, struct fi_info *info,
		const struct tb_end_attr *how)
{
	const struct kofi_cq_attr kattr = {
		.poll = how->sleepy ? KOFI_POLL_WORKQUEUE : KOFI_POLL_SOFTIRQ,
		.done = true,
	};
	/* receives, sends, reads or writes, ends of regions */
	struct fi_cq_attr attr = { .size = 8 * TB_DEPTH };
	int err;

	err = fi_domain(fabric, info, &e->domain, NULL);
	err = err ? : kofi_cq_open(e->domain, &attr, &kattr, &e->cq, NULL);
	err = err ? : fi_endpoint(e->domain, info, &e->ep, how->context);
	err = err ? : fi_ep_bind(e->ep, &eq->fid, 0);
	err = err ? : fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	err = err ? : kofi_ep_write_space(e->ep, how->space);
	err = err ? : tb_end_options(e, how->regions);
	return err ? : fi_enable(e->ep);
}

/**
 * tb_end_close - undo tb_end_open(), however far it came
 * @e: the end
 */
void tb_end_close(struct tb_end *e)
{
	if (e->ep)
		fi_close(&e->ep->fid);
	if (e->cq)
		fi_close(&e->cq->fid);
	if (e->domain)
		fi_close(&e->domain->fid);
}

/**
 * tb_recv - post the receive of a message
 * @e: the end
 * @msg: the message
 * @cqe: where it completes to
 *
 * Context: any.
 * Return: 0 or a negative error code.
 */
int tb_recv(struct tb_end *e, struct tb_msg *msg, struct kofi_cqe *cqe)
{
	return fi_recv(e->ep, msg, sizeof(*msg), NULL, 0, cqe);
}
