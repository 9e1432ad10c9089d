// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers with nothing behind them, see objects.h.
 *
 * The callbacks of struct kofi_provider do not say whose they are, so each
 * provider has its own.
 */
#include <linux/in.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "objects.h"

static const char *const nul_names[NUL_PROVIDERS] = { "nul0", "nul1", "nul2" };

/* -------------------------------------------------------------- endpoints */

static struct nul_ep *nul_ep_of(struct fid_ep *ep)
{
	return container_of(ep, struct nul_ep, base.ep);
}

static int nul_ep_close(struct fi_fid *fid)
{
	struct nul_ep *ep = container_of(fid, struct nul_ep, base.ep.fid);

	kofi_ep_exit(&ep->base);
	kfree(ep);
	return 0;
}

static int nul_getopt(fid_t fid, int level, int optname, void *optval,
		      size_t *optlen)
{
	if (optname != FI_OPT_CM_DATA_SIZE || *optlen < sizeof(size_t))
		return -ENOPROTOOPT;
	*(size_t *)optval = NUL_CM_DATA;
	*optlen = sizeof(size_t);
	return 0;
}

static int nul_setname(fid_t fid, void *addr, size_t addrlen)
{
	return 0;
}

static int nul_getname(fid_t fid, void *addr, size_t *addrlen)
{
	*addrlen = sizeof(struct sockaddr_in);
	return 0;
}

static int nul_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return nul_getname(&ep->fid, addr, addrlen);
}

static int nul_connect(struct fid_ep *ep, const void *addr, const void *param,
		       size_t paramlen)
{
	nul_ep_of(ep)->calls++;
	return nul_ep_of(ep)->ret;
}

static int nul_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return nul_connect(ep, NULL, param, paramlen);
}

static int nul_shutdown(struct fid_ep *ep, u64 flags)
{
	if (!nul_ep_of(ep)->ret)
		kofi_ep_disconnected(&nul_ep_of(ep)->base, ESHUTDOWN);
	return nul_connect(ep, NULL, NULL, 0);
}

static int nul_listen(struct fid_pep *pep)
{
	return 0;
}

static int nul_reject(struct fid_pep *pep, fid_t handle, const void *param,
		      size_t paramlen)
{
	return 0;
}

static const struct fi_ops_ep nul_ops_ep = {
	.size	= sizeof(struct fi_ops_ep),
	.getopt	= nul_getopt,
};

static const struct fi_ops_cm nul_ops_cm = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= nul_setname,
	.getname	= nul_getname,
	.getpeer	= nul_getpeer,
	.connect	= nul_connect,
	.listen		= nul_listen,
	.accept		= nul_accept,
	.reject		= nul_reject,
	.shutdown	= nul_shutdown,
};

static const struct fi_ops nul_ep_fid_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= nul_ep_close,
};

static int nul_enable(struct fid_ep *ep)
{
	nul_ep_of(ep)->enabled++;
	return 0;
}

static void nul_drain(struct fid_ep *ep)
{
}

static const struct kofi_ep_ops nul_ep_ops = {
	.fid	= &nul_ep_fid_ops,
	.ep	= &nul_ops_ep,
	.cm	= &nul_ops_cm,
	.enable	= nul_enable,
	.drain	= nul_drain,
};

static int nul_open_ep(struct fid_domain *domain, struct fi_info *info,
		       struct fid_ep **fid, void *context)
{
	struct nul_ep *ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	int ret;

	if (!ep)
		return -ENOMEM;
	ret = kofi_ep_init(&ep->base, domain, info, &nul_ep_ops, context);
	if (ret) {
		kfree(ep);
		return ret;
	}
	*fid = &ep->base.ep;
	return 0;
}

static int nul_pep_close(struct fi_fid *fid)
{
	struct kofi_pep *pep = container_of(fid, struct kofi_pep, pep.fid);

	kofi_pep_exit(pep);
	kfree(pep);
	return 0;
}

static const struct fi_ops nul_pep_fid_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= nul_pep_close,
};

static int nul_open_pep(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_pep **fid, void *context)
{
	struct kofi_pep *pep = kzalloc(sizeof(*pep), GFP_KERNEL);
	int ret;

	if (!pep)
		return -ENOMEM;
	ret = kofi_pep_init(pep, fabric, info, &nul_pep_fid_ops, &nul_ops_ep,
			    &nul_ops_cm, NULL, context);
	if (ret) {
		kfree(pep);
		return ret;
	}
	*fid = &pep->pep;
	return 0;
}

/* ----------------------------------------------------- domains and fabrics */

static const struct fi_ops_domain nul_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= nul_open_ep,
};

static int nul_open_domain(struct fid_fabric *fabric, struct fi_info *info,
			   struct fid_domain **fid, void *context)
{
	struct kofi_domain *domain = kzalloc(sizeof(*domain), GFP_KERNEL);
	int ret;

	if (!domain)
		return -ENOMEM;
	ret = kofi_domain_init(domain, fabric, info, &nul_domain_ops, NULL,
			       context);
	if (ret) {
		kfree(domain);
		return ret;
	}
	*fid = &domain->domain;
	return 0;
}

static int nul_fabric_close(struct fi_fid *fid)
{
	struct kofi_fabric *fabric =
		container_of(fid, struct kofi_fabric, fabric.fid);

	kofi_fabric_exit(fabric);
	kfree(fabric);
	return 0;
}

static const struct fi_ops nul_fabric_fid_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= nul_fabric_close,
};

static const struct fi_ops_fabric nul_fabric_ops = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= nul_open_domain,
	.passive_ep	= nul_open_pep,
};

static int nul_open_fabric(struct kofi_provider *prov,
			   struct fi_fabric_attr *attr,
			   struct fid_fabric **fid, void *context)
{
	struct kofi_fabric *fabric = kzalloc(sizeof(*fabric), GFP_KERNEL);
	int ret;

	if (!fabric)
		return -ENOMEM;
	ret = kofi_fabric_init(fabric, prov, attr, &nul_fabric_fid_ops,
			       &nul_fabric_ops, context);
	if (ret) {
		kfree(fabric);
		return ret;
	}
	*fid = &fabric->fabric;
	return 0;
}

/* --------------------------------------------------------------- discovery */

static struct fi_info *nul_make_info(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	info->caps = FI_MSG | FI_SEND | FI_RECV;
	info->addr_format = FI_SOCKADDR_IN;
	info->tx_attr->caps = FI_MSG | FI_SEND;
	info->rx_attr->caps = FI_MSG | FI_RECV;
	info->tx_attr->size = 16;
	info->rx_attr->size = 16;
	info->ep_attr->type = FI_EP_MSG;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->name = kstrdup("nul-dom", GFP_KERNEL);
	info->fabric_attr->name = kstrdup(NUL_FABRIC, GFP_KERNEL);
	info->dest_addr = kmemdup(&sin, sizeof(sin), GFP_KERNEL);
	info->dest_addrlen = sizeof(sin);
	if (!info->domain_attr->name || !info->fabric_attr->name ||
	    !info->dest_addr) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

static int nul_getinfo(struct nul *nul, u32 version,
		       const struct fi_info *hints, struct fi_info **list)
{
	struct fi_info *info;
	int i;

	nul->asked++;
	nul->version = version;
	nul->net = hints->fabric_attr->net;
	strscpy(nul->fabric, hints->fabric_attr->name ?: "");
	strscpy(nul->domain, hints->domain_attr->name ?: "");
	nul->noio = current->flags & PF_MEMALLOC_NOIO;
	for (i = 0; i < nul->list; i++) {
		info = nul_make_info();
		if (!info)
			return -ENOMEM;
		info->next = *list;
		*list = info;
	}
	return nul->ret;
}

static int nul0_getinfo(u32 version, const char *node, const char *service,
			u64 flags, const struct fi_info *hints,
			struct fi_info **info)
{
	return nul_getinfo(&nul[0], version, hints, info);
}

static int nul0_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context)
{
	return nul_open_fabric(&nul[0].prov, attr, fabric, context);
}

static int nul1_getinfo(u32 version, const char *node, const char *service,
			u64 flags, const struct fi_info *hints,
			struct fi_info **info)
{
	return nul_getinfo(&nul[1], version, hints, info);
}

static int nul1_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context)
{
	return nul_open_fabric(&nul[1].prov, attr, fabric, context);
}

static int nul2_getinfo(u32 version, const char *node, const char *service,
			u64 flags, const struct fi_info *hints,
			struct fi_info **info)
{
	return nul_getinfo(&nul[2], version, hints, info);
}

static int nul2_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context)
{
	return nul_open_fabric(&nul[2].prov, attr, fabric, context);
}

struct nul nul[NUL_PROVIDERS] = {
	{ .prov = { .getinfo = nul0_getinfo, .fabric = nul0_fabric } },
	{ .prov = { .getinfo = nul1_getinfo, .fabric = nul1_fabric } },
	{ .prov = { .getinfo = nul2_getinfo, .fabric = nul2_fabric } },
};

int nul_register(int i, int priority)
{
	int ret;

	nul[i].prov.name = nul_names[i];
	nul[i].prov.version = FI_VERSION(7, i);
	nul[i].prov.owner = THIS_MODULE;
	nul[i].prov.priority = priority;
	nul[i].list = 1;
	nul[i].ret = 0;
	nul[i].asked = 0;
	ret = kofi_provider_register(fi_version(), &nul[i].prov);
	nul[i].registered = !ret;
	return ret;
}

void nul_exit(struct kunit *test)
{
	int i;

	for (i = 0; i < NUL_PROVIDERS; i++) {
		if (nul[i].registered)
			kofi_provider_deregister(&nul[i].prov);
		nul[i].registered = false;
	}
}

/* ----------------------------------------------- opening, freed by the test */

static void nul_freeinfo(void *info)
{
	fi_freeinfo(info);
}

/* A namespace of the test alone: its references can be counted. */
struct net *nul_net(struct kunit *test)
{
	struct net *net = kunit_kzalloc(test, sizeof(*net), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, net);
	test_net_init(net);
	ref_tracker_dir_init(&net->refcnt_tracker, 0, "kofi_test");
	return net;
}

struct fi_info *nul_info(struct kunit *test, int i)
{
	struct fi_info *info = nul_make_info();

	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, nul_freeinfo,
							   info));
	info->fabric_attr->prov_name = kstrdup(nul_names[i], GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, info->fabric_attr->prov_name);
	return info;
}

struct fid_fabric *nul_fabric(struct kunit *test, int i)
{
	struct fi_info *info = nul_info(test, i);
	struct fid_fabric *fabric;

	KUNIT_ASSERT_EQ(test, 0, fi_fabric(info->fabric_attr, &fabric, NULL));
	return fabric;
}

struct fid_domain *nul_domain(struct kunit *test, struct fid_fabric *fabric)
{
	struct fid_domain *domain;

	KUNIT_ASSERT_EQ(test, 0, fi_domain(fabric, nul_info(test, 0), &domain,
					   NULL));
	return domain;
}

struct fid_ep *nul_ep(struct kunit *test, struct fid_domain *domain,
		      struct fi_fid *handle)
{
	struct fi_info *info = nul_info(test, 0);
	struct fid_ep *ep;

	info->handle = handle;
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(domain, info, &ep, NULL));
	return ep;
}

struct fid_pep *nul_pep(struct kunit *test, struct fid_fabric *fabric)
{
	struct fid_pep *pep;

	KUNIT_ASSERT_EQ(test, 0, fi_passive_ep(fabric, nul_info(test, 0), &pep,
					       NULL));
	return pep;
}
