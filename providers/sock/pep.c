// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Passive endpoints: listeners that report requests as FI_CONNREQ events.
 *
 * The event carries the fi_info for opening an endpoint, with the request as its handle.
 * It also has a copy of the private data, as the event outlives a request that is taken
 * early. If there is no room in the event queue, the request is dropped and counted.
 */
#include <linux/slab.h>
#include <net/inet_sock.h>
#include <net/l3mdev.h>

#include "listener.h"
#include "sock.h"
#include "tls.h"

/**
 * struct ksk_pep - passive endpoint
 * @base: the core's part
 * @listener: listener of the endpoint; accepted connections inherit its options
 */
struct ksk_pep {
	struct kofi_pep		base;
	struct ksk_listener	listener;
};

static struct ksk_pep *ksk_pep(struct fi_fid *fid)
{
	return container_of(fid, struct ksk_pep, base.pep.fid);
}

/* ---------------------------------------------------- connection requests */

/* Make the info that the consumer opens the endpoint with. */
static struct fi_info *ksk_pep_info(struct ksk_pep *pep, struct ksk_req *req)
{
	struct net *net = pep->base.fabric->net;
	struct sockaddr_storage local = {}, peer = {};
	/* 0 if it is bound to a device, which is none's */
	int vrf = l3mdev_master_ifindex_by_index
			(net, READ_ONCE(req->sock->sk->sk_bound_dev_if));
	struct fi_info *info;
	struct kofi_netif i;
	char *fabric, *dev;
	void *src, *dst;
	size_t len;

	if (kernel_getsockname(req->sock, (struct sockaddr *)&local) < 0 ||
	    kernel_getpeername(req->sock, (struct sockaddr *)&peer) < 0)
		return NULL;
	if (ksk_if_find(net, (struct sockaddr *)&local, vrf, &i))
		return NULL;
	info = fi_dupinfo(pep->base.info);
	if (!info)
		return NULL;
	len = kofi_ip_len((struct sockaddr *)&local);
	src = kmemdup(&local, len, GFP_KERNEL);
	dst = kmemdup(&peer, len, GFP_KERNEL);
	dev = kstrdup(i.dev, GFP_KERNEL);
	fabric = kstrdup(pep->base.fabric->name, GFP_KERNEL);
	if (!src || !dst || !dev || !fabric) {
		kfree(src);
		kfree(dst);
		kfree(dev);
		kfree(fabric);
		fi_freeinfo(info);
		return NULL;
	}
	kfree(info->src_addr);
	kfree(info->dest_addr);
	kfree(info->domain_attr->name);
	kfree(info->fabric_attr->name);
	info->src_addr = src;
	info->dest_addr = dst;
	info->src_addrlen = len;
	info->dest_addrlen = len;
	info->addr_format = local.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 :
							  FI_SOCKADDR_IN;
	info->domain_attr->name = dev;
	info->fabric_attr->name = fabric;
	info->handle = &req->fid;
	return info;
}

static struct ksk_pep *ksk_req_pep(struct ksk_req *req)
{
	return container_of(req->listener, struct ksk_pep, listener);
}

static void *ksk_pep_prepare(struct ksk_req *req)
{
	struct ksk_pep *pep = ksk_req_pep(req);

	return kofi_pep_request(&pep->base, ksk_pep_info(pep, req),
				req->cm.buf + sizeof(req->cm.hdr),
				ksk_cm_data_len(&req->cm));
}

static bool ksk_pep_deliver(struct ksk_req *req, void *prepared)
{
	struct ksk_pep *pep = ksk_req_pep(req);

	if (!kofi_eq_room(pep->base.eq))
		return false;
	kofi_eq_queue(pep->base.eq, prepared);
	return true;
}

static void ksk_pep_discard(void *prepared)
{
	kofi_pep_request_free(prepared);
}

static const struct ksk_listener_ops ksk_pep_listener_ops = {
	.prepare	= ksk_pep_prepare,
	.deliver	= ksk_pep_deliver,
	.discard	= ksk_pep_discard,
};

/*
 * The device that has the address to listen on. All addresses are those outside
 * of VRFs, or all, as the system's administrator wants it.
 */
static int ksk_pep_ifindex(const struct ksk_pep *pep, int *ifindex)
{
	const struct fi_domain_attr *dom = pep->base.info->domain_attr;
	const struct sockaddr *addr = &pep->listener.src.sa;
	struct kofi_netif_list l;
	int err;

	*ifindex = 0;
	if (!addr->sa_family || kofi_ip_any(addr))
		return 0;
	err = kofi_netif_collect(pep->listener.net, true, &l);
	if (err)
		return err;
	*ifindex = kofi_netif_find(&l, addr, dom ? dom->name : NULL);
	kvfree(l.ifs);
	return 0;
}

/* fi_listen() */
static int ksk_pep_listen(struct fid_pep *fid)
{
	struct ksk_pep *pep = ksk_pep(&fid->fid);
	unsigned int noio;
	int err;

	mutex_lock(&pep->base.lock);
	noio = memalloc_noio_save();
	if (pep->listener.sock)
		err = -FI_EOPBADSTATE;
	else if (!pep->base.eq)
		err = -FI_ENOEQ;
	else if ((pep->base.info->caps & KOFI_TLS) && !pep->listener.tls.mode)
		err = -ENOKEY;
	else
		err = ksk_pep_ifindex(pep, &pep->listener.ifindex) ?:
		      ksk_listener_start(&pep->listener);
	memalloc_noio_restore(noio);
	mutex_unlock(&pep->base.lock);
	return err;
}

/* fi_reject() */
static int ksk_pep_reject(struct fid_pep *fid, fid_t handle,
			  const void *param, size_t paramlen)
{
	struct ksk_pep *pep = ksk_pep(&fid->fid);
	struct ksk_req *req;
	unsigned int noio;
	int err;

	if (paramlen > KSK_CM_DATA_MAX)
		return -EINVAL;
	err = ksk_req_take(pep->listener.net, &pep->listener, handle, &req);
	if (err)
		return err;

	noio = memalloc_noio_save();
	ksk_req_answer(req, KSK_CM_REJECT, 0, param, paramlen);
	ksk_req_free(req);
	memalloc_noio_restore(noio);
	return 0;
}

static int ksk_pep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ksk_pep *pep = ksk_pep(fid);
	int err;

	mutex_lock(&pep->base.lock);
	err = ksk_cm_name(pep->listener.sock, &pep->listener.src, addr, len);
	mutex_unlock(&pep->base.lock);
	return err;
}

static int ksk_pep_setname(fid_t fid, void *addr, size_t len)
{
	struct ksk_pep *pep = ksk_pep(fid);
	int err = kofi_ip_check(addr, len);

	if (err)
		return err;
	mutex_lock(&pep->base.lock);
	if (pep->listener.sock)
		err = -FI_EOPBADSTATE;
	else
		memcpy(&pep->listener.src, addr, kofi_ip_len(addr));
	mutex_unlock(&pep->base.lock);
	return err;
}

/* Buffers of the connections it accepts: their windows are announced first. */
static int *ksk_pep_buffer(struct ksk_pep *pep, int name)
{
	switch (name) {
	case FI_OPT_SEND_BUF_SIZE:
		return &pep->listener.tun.sndbuf;
	case FI_OPT_RECV_BUF_SIZE:
		return &pep->listener.tun.rcvbuf;
	default:
		return NULL;
	}
}

static int ksk_pep_getopt(fid_t fid, int level, int name, void *val,
			  size_t *len)
{
	struct ksk_pep *pep = ksk_pep(fid);
	int *buffer = ksk_pep_buffer(pep, name), err;
	size_t bytes = KSK_CM_DATA_MAX;

	if (name == KOFI_OPT_TLS) {
		mutex_lock(&pep->base.lock);
		err = kofi_opt_get(&pep->listener.tls,
				   sizeof(pep->listener.tls), val, len);
		mutex_unlock(&pep->base.lock);
		return err;
	}
	if (!buffer && name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (buffer) {
		mutex_lock(&pep->base.lock);
		bytes = *buffer;
		mutex_unlock(&pep->base.lock);
	}
	return kofi_opt_get_size(bytes, val, len);
}

static int ksk_pep_set_tls(struct ksk_pep *pep, const void *val, size_t len)
{
	struct kofi_tls tls;
	int err = ksk_tls_option(&tls, val, len, true);

	if (err)
		return err;
	mutex_lock(&pep->base.lock);
	if (pep->listener.sock)
		err = -FI_EOPBADSTATE;
	else
		pep->listener.tls = tls;
	mutex_unlock(&pep->base.lock);
	return err;
}

static int ksk_pep_setopt(fid_t fid, int level, int name, const void *val,
			  size_t len)
{
	struct ksk_pep *pep = ksk_pep(fid);
	int *buffer = ksk_pep_buffer(pep, name);
	size_t in;
	int err;

	if (level == FI_OPT_ENDPOINT && name == KOFI_OPT_TLS)
		return ksk_pep_set_tls(pep, val, len);
	if (level != FI_OPT_ENDPOINT || !buffer)
		return -FI_ENOPROTOOPT;
	err = kofi_opt_set_size(&in, val, len);
	if (err)
		return err;
	if (!in || in > INT_MAX / 2)
		return -EINVAL;
	mutex_lock(&pep->base.lock);
	if (pep->listener.sock)
		err = -FI_EOPBADSTATE;
	else
		*buffer = in;
	mutex_unlock(&pep->base.lock);
	return err;
}

/* All else is for each connection's own endpoint to say. */
static bool ksk_pep_knows(int name)
{
	return name == (int)KOFI_VAL_HANDSHAKE_TIMEOUT ||
	       name == (int)KOFI_VAL_KEEPALIVE_IDLE ||
	       name == (int)KOFI_VAL_KEEPALIVE_INTVL ||
	       name == (int)KOFI_VAL_KEEPALIVE_CNT;
}

static int ksk_pep_control(struct fi_fid *fid, int command, void *arg)
{
	struct ksk_pep *pep = ksk_pep(fid);
	struct fi_fid_var *var = arg;
	int err = 0;

	mutex_lock(&pep->base.lock);
	switch (command) {
	case FI_BACKLOG:
		if (!arg || *(int *)arg <= 0)
			err = -EINVAL;
		else if (pep->listener.sock)
			err = -FI_EOPBADSTATE;
		else
			pep->listener.backlog = *(int *)arg;
		break;
	case FI_SET_VAL:
		if (!var || !var->val)
			err = -EINVAL;
		else if (pep->listener.sock)
			err = -EBUSY;
		else if (!ksk_pep_knows(var->name))
			err = -ENOSYS;
		else
			err = ksk_tunables_set(&pep->listener.tun, var->name, var->val);
		break;
	case FI_GET_VAL:
		if (!var || !var->val)
			err = -EINVAL;
		else if (!ksk_pep_knows(var->name))
			err = -ENOSYS;
		else
			err = ksk_tunables_get(&pep->listener.tun, var->name, var->val);
		break;
	default:
		err = -ENOSYS;
		break;
	}
	mutex_unlock(&pep->base.lock);
	return err;
}

static void ksk_pep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_pep *base = container_of(obj, struct kofi_pep, obj);
	struct ksk_pep *pep = container_of(base, struct ksk_pep, base);

	const struct ksk_listener *l = &pep->listener;

	fn(arg, "accepted", READ_ONCE(l->accepted));
	fn(arg, "delivered", READ_ONCE(l->delivered));
	fn(arg, "lost", READ_ONCE(l->lost));
	fn(arg, "unauthenticated", READ_ONCE(l->unauthenticated));
	fn(arg, "violations", ksk_listener_stats(&pep->listener, fn, arg));
}

static int ksk_pep_close(struct fi_fid *fid)
{
	struct ksk_pep *pep = ksk_pep(fid);

	ksk_listener_stop(&pep->listener);
	kofi_eq_purge(pep->base.eq, &pep->base.pep.fid);
	ksk_listener_exit(&pep->listener);
	kofi_pep_exit(&pep->base);
	kfree(pep);
	return 0;
}

static const struct fi_ops ksk_pep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_pep_close,
	.control	= ksk_pep_control,
};

static const struct fi_ops_ep ksk_pep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= ksk_pep_getopt,
	.setopt		= ksk_pep_setopt,
};

static const struct fi_ops_cm ksk_pep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= ksk_pep_setname,
	.getname	= ksk_pep_getname,
	.listen		= ksk_pep_listen,
	.reject		= ksk_pep_reject,
};

static const struct kofi_obj_ops ksk_pep_obj_ops = {
	.stats		= ksk_pep_stats,
};

/* fi_passive_ep() */
int ksk_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_pep **fid, void *context)
{
	struct ksk_pep *pep;
	int err;

	if (info->ep_attr->type != FI_EP_MSG ||
	    !ksk_tclass_known(kofi_info_tclass(info)))
		return -EINVAL;
	if (info->src_addr &&
	    kofi_ip_check(info->src_addr, info->src_addrlen))
		return -EINVAL;
	pep = kzalloc(sizeof(*pep), GFP_KERNEL);
	if (!pep)
		return -ENOMEM;
	if (info->src_addr)
		memcpy(&pep->listener.src, info->src_addr,
		       kofi_ip_len(info->src_addr));

	err = kofi_pep_init(&pep->base, fabric, info, &ksk_pep_fid_ops,
			    &ksk_pep_opt_ops, &ksk_pep_cm_ops, &ksk_pep_obj_ops, context);
	if (err) {
		kfree(pep);
		return err;
	}
	pep->listener.ops = &ksk_pep_listener_ops;
	pep->listener.net = pep->base.fabric->net;
	pep->listener.info = pep->base.info;
	pep->listener.obj = &pep->base.obj;
	ksk_listener_init(&pep->listener);
	*fid = &pep->base.pep;
	return 0;
}
