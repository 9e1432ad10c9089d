// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive contexts (fi_endpoint(3)): receives for whichever of several
 * endpoints a message comes to.
 *
 * A context is an endpoint that only receives, of a class of its own: the
 * core's struct kofi_ep with a queue of receives (rxq.c), without anything of
 * the provider's, unless its devices have a queue for that. Endpoints are bound
 * to it, each holds it as one of its users, so it cannot be closed before them,
 * and their streams take their receives from its queue.
 *
 * It reports to one completion queue: its own, or the queue of the first endpoint
 * bound to it that has one (../ep.c). As soon as it has one, it can
 * be used: its state goes from IDLE to ENABLED by itself then, at the first
 * post.
 *
 * Closing or draining a context completes posted receives. A receive that a message has
 * begun to fill belongs to the message's stream; a close comes after all streams.
 */
#include <linux/sizes.h>
#include <linux/slab.h>

#include <linux/kofi/lib.h>

#include "../internal.h"

#define KOFI_SRX_SIZE		256	/* attr->size 0 */
#define KOFI_SRX_SIZE_MAX	SZ_64K

static struct kofi_srx *kofi_srx(struct fid_ep *ep)
{
	return container_of(ep, struct kofi_srx, base.ep);
}

/**
 * kofi_srx_state - check that a receive may be posted
 * @srx: a shared context
 *
 * Context: any.
 * Return: 0, -FI_ENOCQ or -ESHUTDOWN.
 */
int kofi_srx_state(struct kofi_ep *srx)
{
	int err = kofi_ep_rx_state(srx);

	if (likely(err != -FI_EOPBADSTATE))
		return err;
	/* pairs with kofi_ep_share_cq(); posts cannot take its mutex */
	if (!smp_load_acquire(&srx->rx_cq))
		return -FI_ENOCQ;
	kofi_ep_step(srx, KOFI_EP_IDLE, KOFI_EP_ENABLED);
	return kofi_ep_rx_state(srx);
}
EXPORT_SYMBOL_GPL(kofi_srx_state);

static ssize_t kofi_srx_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
				u64 flags)
{
	struct kofi_srx *srx = kofi_srx(fid);
	int err = kofi_srx_state(&srx->base);

	return err ?: kofi_rxq_post(&srx->rxq, msg, flags);
}

static ssize_t kofi_srx_trecvmsg(struct fid_ep *fid,
				 const struct fi_msg_tagged *msg, u64 flags)
{
	struct kofi_srx *srx = kofi_srx(fid);
	int err = kofi_srx_state(&srx->base);

	return err ?: kofi_rxq_tpost(&srx->rxq, msg, flags);
}

static ssize_t kofi_srx_cancel(struct fid_ep *fid, void *context)
{
	return kofi_rxq_cancel(&kofi_srx(fid)->rxq, context);
}

static void kofi_srx_drain(struct fid_ep *fid)
{
	kofi_rxq_flush(&kofi_srx(fid)->rxq);
}

static int kofi_srx_close(struct fi_fid *fid)
{
	struct kofi_srx *srx = container_of(fid, struct kofi_srx, base.ep.fid);

	kofi_ep_exit(&srx->base);
	kofi_rxq_exit(&srx->rxq);
	kfree(srx);
	return 0;
}

static const struct fi_ops kofi_srx_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_srx_close,
};

static const struct fi_ops_msg kofi_srx_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= kofi_no_msg,
	.recvmsg	= kofi_srx_recvmsg,
	.cancel		= kofi_srx_cancel,
};

static const struct fi_ops_tagged kofi_srx_tagged_ops = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= kofi_no_tagged,
	.recvmsg	= kofi_srx_trecvmsg,
};

static const struct kofi_ep_ops kofi_srx_ops = {
	.fid		= &kofi_srx_fid_ops,
	.msg		= &kofi_srx_msg_ops,
	.tagged		= &kofi_srx_tagged_ops,
	.drain		= kofi_srx_drain,
};

/**
 * kofi_srx_init - set up the base of a shared receive context
 * @srx: zeroed
 * @domain: the domain
 * @attr: checked by fi_srx_context()
 * @ops: the provider's, or the core's own
 * @context: the consumer's
 *
 * Context: process, may sleep.
 * Return: 0, then kofi_ep_exit() undoes it; -ENOMEM; -EBUSY if @domain is being
 * closed.
 */
int kofi_srx_init(struct kofi_ep *srx, struct fid_domain *domain,
		  const struct fi_rx_attr *attr, const struct kofi_ep_ops *ops,
		  void *context)
{
	struct fi_info *info = fi_allocinfo();
	int ret;

	if (!info)
		return -ENOMEM;
	info->caps = attr->caps;
	*info->rx_attr = *attr;
	ret = kofi_ep_setup(srx, domain, info, ops, FI_CLASS_SRX_CTX, context);
	fi_freeinfo(info);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_srx_init);

/**
 * kofi_srx_open - open the core's shared receive context
 * @domain: the domain
 * @attr: attributes with a size, checked by fi_srx_context()
 * @srx: receives the context
 * @context: the consumer's
 *
 * For the srx_context operation of a software provider, after kofi_srx_check().
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM; -EBUSY if @domain is being closed.
 */
int kofi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		  struct fid_ep **srx, void *context)
{
	struct kofi_domain *kdomain =
		container_of(domain, struct kofi_domain, domain);
	struct kofi_srx *s;
	int ret;

	s = kzalloc_node(sizeof(*s), GFP_KERNEL, kdomain->node);
	if (!s)
		return -ENOMEM;
	if (!attr->iov_limit)
		attr->iov_limit = KOFI_IOV_MAX;
	ret = kofi_srx_init(&s->base, domain, attr, &kofi_srx_ops, context);
	if (ret)
		goto free;
	ret = kofi_rxq_init(&s->rxq, &s->base, attr->size);
	if (ret)
		goto exit;
	*srx = &s->base.ep;
	return 0;

exit:
	kofi_ep_exit(&s->base);
free:
	kfree(s);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_srx_open);

/**
 * fi_srx_context - open a shared receive context
 * @domain: an open domain
 * @attr: the rx_attr of an fi_info, or some of it: caps, of which FI_DIRECTED_RECV and
 *	FI_SOURCE make a difference; op_flags; orders, which the endpoints must share;
 *	size, 0 for 256; iov_limit, 0 for the provider's. NULL for all defaults.
 * @srx: where the context goes
 * @context: the consumer's, in fid.context
 *
 * fi_endpoint(3). Endpoints are bound to it with fi_ep_bind(). Receives can be
 * posted once it has a completion queue, its own or an endpoint's.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL, also for attributes that the provider does not act on;
 * -FI_EBADFLAGS for such op_flags; -ENOSYS if the provider has no shared contexts;
 * -ENOMEM; -EBUSY if @domain is being closed; or an error of the provider.
 */
int fi_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
		   struct fid_ep **srx, void *context)
{
	struct fi_rx_attr rx = {};
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !srx)
		return -EINVAL;
	if (attr)
		rx = *attr;
	if (!rx.size)
		rx.size = KOFI_SRX_SIZE;
	if (rx.size > KOFI_SRX_SIZE_MAX || rx.iov_limit > KOFI_IOV_MAX)
		return -EINVAL;
	if (rx.op_flags & ~KOFI_EP_RX_OP_FLAGS)
		return -FI_EBADFLAGS;

	if (!domain->ops->srx_context)
		return -ENOSYS;
	ret = domain->ops->srx_context(domain, &rx, srx, context);
	if (!ret)
		kofi_obj_publish((*srx)->fid.obj);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_srx_context);
