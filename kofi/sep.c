// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Scalable endpoints: several contexts behind one address (fi_endpoint(3)).
 *
 * Contexts
 *
 * Context i is an endpoint of the provider, of type FI_EP_RDM, at the port of
 * context 0 plus i. So peers can name it without a change of any wire format: by
 * fi_rx_addr(), or by its own address. A peer identifies the sender by its port.
 * Hence transmit context i and receive context i are one endpoint, opened twice
 * and closed twice; its consumer chooses its queues and processor, and it
 * shares nothing with the other contexts.
 *
 * Closing
 *
 * The first fi_close() of the two drains the endpoint, in both directions, so that
 * all posted memory belongs to the consumer again when it returns; the second
 * one waits for that, and frees the endpoint. From the first one on the scalable endpoint
 * does not use the endpoint, and its index is free after the second.
 *
 * Addresses
 *
 * Without a port in the source address, the provider chooses the port of the first context
 * that is enabled, and the ports of the others follow from it.
 *
 * Locks
 *
 * kofi_sep.mutex guards the open contexts; the config mutex of a context
 * nests inside it, and kofi_sep.name_mutex inside that. No holder of
 * the first or the last allocates memory that waits for writeback, as a context may be
 * closed, or opened again, for writeback to make progress.
 */
#include <linux/completion.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include <linux/kofi/lib.h>

#include "internal.h"

/**
 * struct kofi_sep - a scalable endpoint
 * @ep: handle of the consumer
 * @obj: the core's part; contexts are its users
 * @domain: parent
 * @info: copy of the info it was opened with
 * @mutex: guards @av and @ctx; see kofi_sep_lock()
 * @noio: former allocation flags of the mutex's holder
 * @av: address vector of all contexts, or NULL
 * @name_mutex: guards @name
 * @name: address of context 0; without family until it is known
 * @count: number of contexts
 * @ctx: the contexts
 */
struct kofi_sep {
	struct fid_ep		ep;
	struct kofi_obj		obj;
	struct fid_domain	*domain;
	struct fi_info		*info;
	struct mutex		mutex;		/* contexts */
	unsigned int		noio;
	struct fi_fid		*av;
	struct mutex		name_mutex;	/* the address */
	union kofi_ip		name;
	unsigned int		count;
	struct kofi_sep_ctx	ctx[] __counted_by(count);
};

static struct kofi_sep *kofi_sep(const struct fid_ep *fid)
{
	return container_of(fid, struct kofi_sep, ep);
}

static bool kofi_sep_valid(const struct fid_ep *fid)
{
	return kofi_fid_class(&fid->fid) == FI_CLASS_SEP;
}

static void kofi_sep_lock(struct kofi_sep *sep)
{
	mutex_lock(&sep->mutex);
	sep->noio = memalloc_noio_save();
}

static void kofi_sep_unlock(struct kofi_sep *sep)
{
	memalloc_noio_restore(sep->noio);
	mutex_unlock(&sep->mutex);
}

/* ---------------------------------------------------------------- addresses */

/* Compute the port of a context; fails if it is out of range. */
static int kofi_sep_port(const union kofi_ip *name, int ctx, __be16 *port)
{
	int n = be16_to_cpu(*kofi_ip_port((struct sockaddr *)&name->sa)) + ctx;

	if (n < 1 || n > U16_MAX)
		return -EADDRNOTAVAIL;
	*port = cpu_to_be16(n);
	return 0;
}

static int kofi_sep_index(const struct kofi_ep *ep)
{
	return ep->ctx - ep->ctx->sep->ctx;
}

/* Set the address of a context before it is enabled, if the address is known. */
static int kofi_sep_set_name(struct kofi_sep *sep, struct kofi_ep *ep)
{
	union kofi_ip name = sep->name;
	int err;

	if (!name.sa.sa_family)
		return 0;
	err = kofi_sep_port(&sep->name, kofi_sep_index(ep),
			    kofi_ip_port(&name.sa));
	return err ?: kofi_cm_setname(&ep->ep.fid, &name,
				      kofi_ip_len(&name.sa));
}

/* Learn the address of context 0 after the first context has been enabled. */
static void kofi_sep_learn_name(struct kofi_sep *sep, struct kofi_ep *ep)
{
	union kofi_ip name = {};
	size_t len = sizeof(name);

	if (sep->name.sa.sa_family ||
	    kofi_cm_getname(&ep->ep.fid, &name, &len) ||
	    kofi_sep_port(&name, -kofi_sep_index(ep), kofi_ip_port(&name.sa)))
		return;
	sep->name = name;
}

/*
 * Have the provider enable a context: -EADDRNOTAVAIL if there is no such port, or the
 * provider's result, which is -EADDRINUSE if the port is taken.
 */
static int kofi_sep_enable_ctx(struct kofi_ep *ep)
{
	struct kofi_sep *sep = ep->ctx->sep;
	unsigned int noio;
	int err;

	lockdep_assert_held(&ep->config);
	mutex_lock(&sep->name_mutex);
	noio = memalloc_noio_save();
	err = kofi_sep_set_name(sep, ep);
	if (!err && ep->ops->enable)
		err = ep->ops->enable(&ep->ep);
	if (!err)
		kofi_sep_learn_name(sep, ep);
	memalloc_noio_restore(noio);
	mutex_unlock(&sep->name_mutex);
	return err;
}

static int kofi_sep_getname(fid_t fid, void *addr, size_t *len)
{
	struct kofi_sep *sep = container_of(fid, struct kofi_sep, ep.fid);
	bool text = kofi_domain_text(container_of(sep->domain,
						  struct kofi_domain, domain));
	int err = -FI_EOPBADSTATE;

	mutex_lock(&sep->name_mutex);
	if (sep->name.sa.sa_family)
		err = text ? kofi_ip_copy_text(&sep->name.sa, addr, len) :
			     kofi_ip_copy(&sep->name.sa, addr, len);
	mutex_unlock(&sep->name_mutex);
	return err;
}

/* ----------------------------------------------------------------- contexts */

static int kofi_sep_open_ep(struct kofi_sep *sep, struct fid_ep **ep,
			    void *context)
{
	struct fi_info *info = fi_dupinfo(sep->info);
	int err;

	if (!info)
		return -ENOMEM;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	err = fi_endpoint(sep->domain, info, ep, context);
	fi_freeinfo(info);
	if (err || !sep->av)
		return err;
	err = fi_ep_bind(*ep, sep->av, 0);
	if (err)
		fi_close(&(*ep)->fid);
	return err;
}

static int kofi_sep_open_first(struct kofi_sep_ctx *ctx, void *context)
{
	struct kofi_sep *sep = ctx->sep;
	struct fid_ep *ep;
	int err;

	if (!kofi_obj_get(&sep->obj))
		return -EBUSY;
	err = kofi_sep_open_ep(sep, &ep, context);
	if (err) {
		kofi_obj_put(&sep->obj);
		return err;
	}
	ctx->ep = kofi_ep(ep);
	ctx->ep->ctx = ctx;
	init_completion(&ctx->drained);
	return 0;
}

static int kofi_sep_open(struct fid_ep *fid, int idx, enum kofi_dir dir,
			 struct fid_ep **ep, void *context)
{
	struct kofi_sep *sep = kofi_sep(fid);
	struct kofi_sep_ctx *ctx;
	int err = 0;

	if (!ep || idx < 0 || idx >= sep->count)
		return -EINVAL;
	ctx = &sep->ctx[idx];
	kofi_sep_lock(sep);
	if (!ctx->dirs)
		err = kofi_sep_open_first(ctx, context);
	else if (!ctx->ep || ctx->dirs & BIT(dir))
		err = -EBUSY;
	if (!err) {
		ctx->dirs |= BIT(dir);
		ctx->opens++;
		*ep = &ctx->ep->ep;
	}
	kofi_sep_unlock(sep);
	return err;
}

/**
 * fi_tx_context - open a transmit context of a scalable endpoint
 * @sep: the scalable endpoint
 * @idx: index of the context, below tx_ctx_cnt
 * @attr: NULL, or equal to the tx_attr of the fi_info of @sep
 * @tx_ep: receives the context: an endpoint, which fi_rx_context() also
 *	returns for @idx
 * @context: stored in fid.context by the call that opens the endpoint
 *	first
 *
 * fi_endpoint(3). Queues and counters are bound to it as to any endpoint, each
 * direction once, and for both directions before it is enabled. Each of the two
 * calls needs its fi_close(), the first of which drains both directions.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL, also for another @attr; -EBUSY if the transmit context is
 * open, or one of the two has been closed, until both are; or the error of fi_endpoint()
 * or of the binding of the address vector.
 */
int fi_tx_context(struct fid_ep *sep, int idx, struct fi_tx_attr *attr,
		  struct fid_ep **tx_ep, void *context)
{
	might_sleep();
	if (!kofi_sep_valid(sep) ||
	    (attr && memcmp(attr, kofi_sep(sep)->info->tx_attr,
			    offsetofend(struct fi_tx_attr, tclass))))
		return -EINVAL;
	return kofi_sep_open(sep, idx, KOFI_TX, tx_ep, context);
}
EXPORT_SYMBOL_GPL(fi_tx_context);

/**
 * fi_rx_context - open a receive context of a scalable endpoint
 * @sep: the scalable endpoint
 * @idx: index of the context, below rx_ctx_cnt
 * @attr: NULL, or equal to the rx_attr of the fi_info of @sep
 * @rx_ep: receives the context: an endpoint, which fi_tx_context() also
 *	returns for @idx
 * @context: as with fi_tx_context()
 *
 * fi_endpoint(3), and fi_tx_context().
 *
 * Context: process, may sleep.
 * Return: as fi_tx_context().
 */
int fi_rx_context(struct fid_ep *sep, int idx, struct fi_rx_attr *attr,
		  struct fid_ep **rx_ep, void *context)
{
	might_sleep();
	if (!kofi_sep_valid(sep) ||
	    (attr && memcmp(attr, kofi_sep(sep)->info->rx_attr,
			    sizeof(*attr))))
		return -EINVAL;
	return kofi_sep_open(sep, idx, KOFI_RX, rx_ep, context);
}
EXPORT_SYMBOL_GPL(fi_rx_context);

/*
 * Close one of the two contexts of an endpoint: 0 if the endpoint can be
 * closed; 1 if the other one is open, and all operations have completed; -EBUSY.
 */
static int kofi_sep_end_ctx(struct kofi_ep *ep)
{
	struct kofi_sep_ctx *ctx = ep->ctx;
	struct kofi_sep *sep = ctx->sep;
	bool half, other;
	int err = 0;

	kofi_sep_lock(sep);
	half = ctx->opens == 2;
	other = !ctx->ep;
	if (!half)
		err = kofi_obj_end(&ep->obj);
	if (!err) {
		ctx->opens--;
		ctx->ep = NULL;
	}
	kofi_sep_unlock(sep);
	if (err)
		return err;
	if (half) {
		kofi_ep_drain(&ep->ep);
		/* now the endpoint can be closed, and the scalable endpoint with it */
		complete(&ctx->drained);
	} else if (other) {
		wait_for_completion(&ctx->drained);
	}
	return half;
}

static void kofi_sep_closed(struct kofi_ep *ep)
{
	struct kofi_sep *sep = ep->ctx->sep;

	kofi_sep_lock(sep);
	ep->ctx->dirs = 0;
	kofi_sep_unlock(sep);
	kofi_obj_put(&sep->obj);
}

static const struct kofi_sep_ops kofi_sep_ops = {
	.enable	= kofi_sep_enable_ctx,
	.end	= kofi_sep_end_ctx,
	.closed	= kofi_sep_closed,
};

/* Enable all contexts that are open, up to the first that fails. */
static int kofi_sep_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_sep *sep = container_of(fid, struct kofi_sep, ep.fid);
	unsigned int i;
	int err = 0;

	if (command != FI_ENABLE)
		return -ENOSYS;
	kofi_sep_lock(sep);
	for (i = 0; i < sep->count && !err; i++)
		if (sep->ctx[i].ep)
			err = kofi_ep_enable(sep->ctx[i].ep);
	kofi_sep_unlock(sep);
	return err;
}

/**
 * fi_scalable_ep_bind - bind an address vector to a scalable endpoint
 * @fid: the scalable endpoint, without enabled contexts
 * @bfid: an address vector, for all contexts, also open ones
 * @flags: must be 0
 *
 * fi_endpoint(3). All other objects are bound to contexts.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EDOMAIN for a vector of another domain; -EBUSY if a vector is
 * bound already; -FI_EBADFLAGS; -FI_EOPBADSTATE if a context has been enabled; the
 * error of fi_ep_bind() for a context, after which the endpoint can only be closed.
 */
int fi_scalable_ep_bind(struct fid_ep *fid, struct fi_fid *bfid, u64 flags)
{
	struct kofi_sep *sep = kofi_sep(fid);
	unsigned int i;
	int err = 0;

	might_sleep();
	if (!kofi_sep_valid(fid) || kofi_fid_class(bfid) != FI_CLASS_AV)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if (bfid->obj->parent != sep->obj.parent)
		return -FI_EDOMAIN;
	kofi_sep_lock(sep);
	if (sep->av)
		err = -EBUSY;
	else if (!kofi_obj_get(bfid->obj))
		err = -EINVAL;
	else
		sep->av = bfid;
	for (i = 0; i < sep->count && !err; i++)
		if (sep->ctx[i].ep)
			err = fi_ep_bind(&sep->ctx[i].ep->ep, bfid, 0);
	kofi_sep_unlock(sep);
	return err;
}
EXPORT_SYMBOL_GPL(fi_scalable_ep_bind);

/* --------------------------------------------------------- opening, closing */

static int kofi_sep_close(struct fi_fid *fid)
{
	struct kofi_sep *sep = container_of(fid, struct kofi_sep, ep.fid);

	if (sep->av)
		kofi_obj_put(sep->av->obj);
	kofi_obj_exit(&sep->obj);
	fi_freeinfo(sep->info);
	mutex_destroy(&sep->name_mutex);
	mutex_destroy(&sep->mutex);
	kfree(sep);
	return 0;
}

static const struct fi_ops kofi_sep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_sep_close,
	.control	= kofi_sep_control,
};

static const struct fi_ops_cm kofi_sep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.getname	= kofi_sep_getname,
};

/* Check for equal numbers of transmit and receive contexts with valid ports. */
static bool kofi_sep_usable(const struct fi_info *info)
{
	const size_t count = info->ep_attr->rx_ctx_cnt;
	const struct sockaddr *src = info->src_addr;

	if (info->ep_attr->type != FI_EP_RDM || info->handle || !count ||
	    count != info->ep_attr->tx_ctx_cnt || count > KOFI_EP_CTX_MAX ||
	    count > info->domain_attr->max_ep_rx_ctx ||
	    count > info->domain_attr->max_ep_tx_ctx)
		return false;
	return !src || (!kofi_ip_check(src, info->src_addrlen) &&
			be16_to_cpu(*kofi_ip_port((void *)src)) + count - 1 <=
			U16_MAX);
}

static struct kofi_sep *kofi_sep_alloc(const struct fi_info *info)
{
	const unsigned int count = info->ep_attr->rx_ctx_cnt;
	struct kofi_sep *sep = kzalloc(struct_size(sep, ctx, count),
				       GFP_KERNEL);
	unsigned int i;

	if (!sep)
		return NULL;
	sep->count = count;
	for (i = 0; i < count; i++) {
		sep->ctx[i].ops = &kofi_sep_ops;
		sep->ctx[i].sep = sep;
	}
	sep->info = fi_dupinfo(info);
	if (!sep->info) {
		kfree(sep);
		return NULL;
	}
	mutex_init(&sep->mutex);
	mutex_init(&sep->name_mutex);
	if (info->src_addr && *kofi_ip_port(info->src_addr))
		memcpy(&sep->name, info->src_addr, kofi_ip_len(info->src_addr));
	sep->ep.ops = &kofi_ep_nosys;
	sep->ep.cm = &kofi_sep_cm_ops;
	sep->ep.msg = &kofi_msg_nosys;
	sep->ep.tagged = &kofi_tagged_nosys;
	sep->ep.rma = &kofi_rma_nosys;
	sep->ep.atomic = &kofi_atomic_nosys;
	return sep;
}

/**
 * fi_scalable_ep - open an endpoint of several contexts
 * @domain: an open domain
 * @info: an info of fi_getinfo() with equal tx_ctx_cnt and rx_ctx_cnt in the hints.
 *	Its source address is the address of context 0; context i is at
 *	the port plus i, or without a port at a port computed from the port of the first
 *	context to be enabled.
 * @fid: receives the endpoint
 * @context: stored in fid.context
 *
 * fi_endpoint(3). It serves to open contexts, fi_tx_context() and
 * fi_rx_context(), to bind an address vector, fi_scalable_ep_bind(), to enable
 * the contexts together, fi_enable(), and to get its address, fi_getname(). Close it
 * after its contexts.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL, also for a type other than FI_EP_RDM, unequal counts of
 * contexts, none or too many; -ENOMEM; -EBUSY if @domain is being closed.
 */
int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **fid, void *context)
{
	struct kofi_domain *dom;
	struct fi_info *parsed;
	struct kofi_sep *sep;
	int err;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !info || !fid)
		return -EINVAL;
	dom = container_of(domain, struct kofi_domain, domain);
	if (!kofi_info_usable(info, dom->fabric))
		return -EINVAL;
	parsed = kofi_info_parsed(info, dom->fabric->net);
	if (IS_ERR(parsed))
		return PTR_ERR(parsed);
	sep = kofi_sep_usable(parsed) ? kofi_sep_alloc(parsed) :
					ERR_PTR(-EINVAL);
	kofi_info_unparse(info, parsed);
	if (IS_ERR_OR_NULL(sep))
		return sep ? PTR_ERR(sep) : -ENOMEM;
	sep->domain = domain;
	err = kofi_obj_init(&sep->obj, &sep->ep.fid, FI_CLASS_SEP,
			    &kofi_sep_fid_ops, &dom->obj, dom->obj.prov,
			    context);
	if (err)
		goto free;
	kofi_obj_publish(&sep->obj);
	*fid = &sep->ep;
	return 0;

free:
	fi_freeinfo(sep->info);
	mutex_destroy(&sep->name_mutex);
	mutex_destroy(&sep->mutex);
	kfree(sep);
	return err;
}
EXPORT_SYMBOL_GPL(fi_scalable_ep);
