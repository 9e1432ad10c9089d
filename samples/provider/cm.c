// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections.
 *
 * Connecting
 *
 * A listener has the address 127.0.0.1 and a port of this provider, not of a
 * socket. fi_connect() queues a request at the listener. It is answered by an
 * endpoint opened with the request, by fi_reject(), or by closing either side.
 *
 * Termination
 *
 * Both endpoints of a connection are terminated together: posts are refused,
 * outstanding operations complete with ECANCELED, and each gets one
 * FI_SHUTDOWN.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "loop.h"

static LIST_HEAD(loop_peps);		/* listeners; protected by loop_mutex */
static u16 loop_port = 1024;		/* last port assigned */

/* ------------------------------------------------------------- termination */

static void loop_disconnect(struct loop_ep *ep)
{
	struct loop_ep *both[] = { ep, ep->peer };
	int i;

	lockdep_assert_held(&loop_mutex);

	if (!ep->peer)
		return;
	for (i = 0; i < 2; i++) {
		struct loop_ep *to = both[!i];

		kofi_rxq_forget(kofi_ep_rxq(&to->base, &to->rxq),
				&both[i]->msg);
		both[i]->peer = NULL;
	}
	for (i = 0; i < 2; i++) {
		loop_flush(both[i]);
		kofi_ep_disconnected(&both[i]->base, ESHUTDOWN);
	}
}

/* Refuse a request; a listener that rejects passes @param. */
static void loop_req_refuse(struct loop_req *req, const void *param, size_t len)
{
	struct loop_ep *from = req->from;

	lockdep_assert_held(&loop_mutex);

	if (from) {
		from->req = NULL;
		loop_flush(from);
		kofi_ep_connect_failed(&from->base, ECONNREFUSED, ECONNREFUSED,
				       param, len);
	}
	if (req->pep) {
		list_del(&req->node);
		req->pep->nr_reqs--;
	}
	kfree(req);
}

static void loop_ep_drain(struct fid_ep *fid)
{
	struct loop_ep *ep = loop_ep(fid);

	mutex_lock(&loop_mutex);
	if (ep->req && ep->req->from == ep)
		ep->req->from = NULL;
	else if (ep->req)
		loop_req_refuse(ep->req, NULL, 0);
	ep->req = NULL;
	loop_disconnect(ep);
	loop_flush(ep);
	mutex_unlock(&loop_mutex);
	cancel_work_sync(&ep->work);
}

static int loop_ep_close(struct fi_fid *fid)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, base.ep.fid);

	kofi_ep_exit(&ep->base);
	kofi_rxq_exit(&ep->rxq);
	kvfree(ep->ops);
	free_page((unsigned long)ep->page);
	kfree(ep);
	return 0;
}

/* -------------------------------------------------------------- connecting */

struct sockaddr_in loop_addr(u16 port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
}

static int loop_addr_copy(const struct sockaddr_in *from, void *to, size_t *len)
{
	size_t room = *len;

	if (!from->sin_family)
		return -EADDRNOTAVAIL;
	*len = sizeof(*from);
	memcpy(to, from, min(room, sizeof(*from)));
	return room < sizeof(*from) ? -FI_ETOOSMALL : 0;
}

int loop_addr_set(void **addr, size_t *len, const struct sockaddr_in *from)
{
	kfree(*addr);
	*addr = kmemdup(from, sizeof(*from), GFP_KERNEL);
	*len = *addr ? sizeof(*from) : 0;
	return *addr ? 0 : -ENOMEM;
}

static struct loop_pep *loop_listener(struct net *net, __be16 port)
{
	struct loop_pep *pep;

	lockdep_assert_held(&loop_mutex);

	list_for_each_entry(pep, &loop_peps, node)
		if (pep->name.sin_port == port &&
		    net_eq(pep->base.fabric->net, net))
			return pep;
	return NULL;
}

static u16 loop_new_port(struct net *net)
{
	do {
		loop_port = max_t(u16, loop_port + 1, 1024);
	} while (loop_listener(net, htons(loop_port)));
	return loop_port;
}

static int loop_request(struct loop_ep *ep, struct loop_pep *pep,
			const void *param, size_t len)
{
	struct fi_info *info = fi_dupinfo(pep->base.info);
	struct loop_req *req = kzalloc(sizeof(*req), GFP_KERNEL);
	struct kofi_event *ev;

	if (!info || !req ||
	    loop_addr_set(&info->src_addr, &info->src_addrlen, &pep->name) ||
	    loop_addr_set(&info->dest_addr, &info->dest_addrlen, &ep->name)) {
		fi_freeinfo(info);
		kfree(req);
		return -ENOMEM;
	}
	info->handle = &req->fid;
	ev = kofi_pep_request(&pep->base, info, param, len);
	if (!ev) {
		kfree(req);
		return -ENOMEM;
	}
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = pep;
	req->from = ep;
	ep->req = req;
	list_add_tail(&req->node, &pep->reqs);
	pep->nr_reqs++;

	kofi_eq_queue(pep->base.eq, ev);
	return 0;
}

/* fi_connect(): the answer to the request queues the event. */
static int loop_connect(struct fid_ep *fid, const void *addr, const void *param,
			size_t len)
{
	struct loop_ep *ep = loop_ep(fid);
	struct net *net = ep->base.domain->fabric->net;
	struct loop_pep *pep;
	unsigned int noio;
	int err = 0;

	if (((const struct sockaddr *)addr)->sa_family != AF_INET)
		return -EINVAL;
	memcpy(&ep->peer_name, addr, sizeof(ep->peer_name));
	/* writeback may depend on tasks that wait for the mutex */
	noio = memalloc_noio_save();
	mutex_lock(&loop_mutex);
	ep->name = loop_addr(loop_new_port(net));
	pep = loop_listener(net, ep->peer_name.sin_port);
	if (pep && pep->nr_reqs < LOOP_BACKLOG && kofi_eq_room(pep->base.eq)) {
		err = loop_request(ep, pep, param, len);
	} else {
		loop_flush(ep);
		kofi_ep_connect_failed(&ep->base, ECONNREFUSED, ECONNREFUSED,
				       NULL, 0);
	}
	mutex_unlock(&loop_mutex);
	memalloc_noio_restore(noio);
	return err;
}

/* Look up a request. A handle is never dereferenced: it may be stale. */
static struct loop_req *loop_req_find(const struct fi_fid *handle)
{
	struct loop_pep *pep;
	struct loop_req *req;

	list_for_each_entry(pep, &loop_peps, node)
		list_for_each_entry(req, &pep->reqs, node)
			if (&req->fid == handle)
				return req;
	return NULL;
}

/* Give a request to the endpoint that is being opened for it. */
static int loop_req_take(struct loop_ep *ep, const struct fi_fid *handle)
{
	struct loop_req *req;

	mutex_lock(&loop_mutex);
	req = loop_req_find(handle);
	if (req) {
		list_del(&req->node);
		req->pep->nr_reqs--;
		ep->name = req->pep->name;
		req->pep = NULL;
		ep->req = req;
	}
	mutex_unlock(&loop_mutex);
	return req ? 0 : -EINVAL;
}

static int loop_accept(struct fid_ep *fid, const void *param, size_t len)
{
	struct loop_ep *ep = loop_ep(fid), *from;
	int err = -ECONNRESET;

	mutex_lock(&loop_mutex);
	from = ep->req ? ep->req->from : NULL;
	if (from) {
		kfree(ep->req);
		ep->req = NULL;
		from->req = NULL;
		ep->peer_name = from->name;
		ep->peer = from;
		from->peer = ep;
		kofi_rxmsg_init(&ep->msg, &from->base, loop_wake);
		kofi_rxmsg_init(&from->msg, &ep->base, loop_wake);
		kofi_ep_connected(&ep->base, NULL, 0);
		kofi_ep_connected(&from->base, param, len);
		err = 0;
	}
	mutex_unlock(&loop_mutex);
	return err;
}

/* fi_shutdown(): first deliver messages for which the peer has receives. */
static int loop_shutdown(struct fid_ep *fid, u64 flags)
{
	struct loop_ep *ep = loop_ep(fid);
	int err = 0;

	mutex_lock(&loop_mutex);
	while (loop_deliver(ep))
		;
	if (READ_ONCE(ep->base.state) == KOFI_EP_CONNECTING)
		err = -ENOTCONN;
	loop_disconnect(ep);
	mutex_unlock(&loop_mutex);
	return err;
}

static int loop_ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, base.ep.fid);

	return loop_addr_copy(&ep->name, addr, len);
}

static int loop_ep_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	return loop_addr_copy(&loop_ep(fid)->peer_name, addr, len);
}

static const struct fi_ops_cm loop_ep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.getname	= loop_ep_getname,
	.getpeer	= loop_ep_getpeer,
	.connect	= loop_connect,
	.accept		= loop_accept,
	.shutdown	= loop_shutdown,
};

static int loop_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	size_t room = *len;

	if (name != FI_OPT_CM_DATA_SIZE)
		return -ENOPROTOOPT;
	*len = sizeof(size_t);
	if (room < *len)
		return -FI_ETOOSMALL;
	*(size_t *)val = KOFI_CM_DATA_MAX;
	return 0;
}

static const struct fi_ops_ep loop_opt_ops = {
	.size	= sizeof(struct fi_ops_ep),
	.getopt	= loop_getopt,
};

static const struct fi_ops loop_ep_fid_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= loop_ep_close,
};

static const struct kofi_ep_ops loop_ep_ops = {
	.fid	= &loop_ep_fid_ops,
	.ep	= &loop_opt_ops,
	.cm	= &loop_ep_cm_ops,
	.msg	= &loop_msg_ops,
	.drain	= loop_ep_drain,
};

/* fi_endpoint(): allocate all memory of posts, which themselves allocate nothing. */
int loop_endpoint(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **fid, void *context)
{
	size_t tx_size = info->tx_attr->size, rx_size = info->rx_attr->size, i;
	struct loop_ep *ep;
	int err;

	if (!tx_size || tx_size > LOOP_SIZE || !rx_size || rx_size > LOOP_SIZE)
		return -EINVAL;
	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep)
		return -ENOMEM;
	spin_lock_init(&ep->lock);
	INIT_LIST_HEAD(&ep->posted);
	INIT_WORK(&ep->work, loop_work);
	err = kofi_ep_init(&ep->base, domain, info, &loop_ep_ops, context);
	if (err)
		goto free;

	err = -ENOMEM;
	ep->page = (void *)__get_free_page(GFP_KERNEL);
	ep->ops = kvcalloc(tx_size, sizeof(*ep->ops), GFP_KERNEL);
	if (!ep->page || !ep->ops)
		goto exit;
	for (i = tx_size; i--; )
		kofi_freelist_add(&ep->free, &ep->ops[i].free);
	err = kofi_rxq_init(&ep->rxq, &ep->base, rx_size);
	if (!err && info->handle)
		err = loop_req_take(ep, info->handle);
	if (err)
		goto exit;
	*fid = &ep->base.ep;
	return 0;

exit:
	kofi_rxq_exit(&ep->rxq);
	kvfree(ep->ops);
	free_page((unsigned long)ep->page);
	kofi_ep_exit(&ep->base);
free:
	kfree(ep);
	return err;
}

/* --------------------------------------------------------------- listening */

static struct loop_pep *loop_pep(struct fid_pep *pep)
{
	return container_of(pep, struct loop_pep, base.pep);
}

static int loop_listen(struct fid_pep *fid)
{
	struct loop_pep *pep = loop_pep(fid);
	struct net *net = pep->base.fabric->net;
	int err = 0;

	mutex_lock(&loop_mutex);
	if (!list_empty(&pep->node))
		err = -FI_EOPBADSTATE;
	else if (!pep->name.sin_port)
		pep->name.sin_port = htons(loop_new_port(net));
	else if (loop_listener(net, pep->name.sin_port))
		err = -EADDRINUSE;
	if (!err)
		list_add_tail(&pep->node, &loop_peps);
	mutex_unlock(&loop_mutex);
	return err;
}

static int loop_reject(struct fid_pep *fid, fid_t handle, const void *param,
		       size_t len)
{
	struct loop_req *req;

	mutex_lock(&loop_mutex);
	req = loop_req_find(handle);
	if (req && req->pep != loop_pep(fid))
		req = NULL;
	if (req)
		loop_req_refuse(req, param, len);
	mutex_unlock(&loop_mutex);
	return req ? 0 : -EINVAL;
}

static int loop_pep_getname(fid_t fid, void *addr, size_t *len)
{
	struct loop_pep *pep = container_of(fid, struct loop_pep, base.pep.fid);

	return loop_addr_copy(&pep->name, addr, len);
}

static int loop_pep_close(struct fi_fid *fid)
{
	struct loop_pep *pep = container_of(fid, struct loop_pep, base.pep.fid);
	struct loop_req *req, *next;

	mutex_lock(&loop_mutex);
	list_del_init(&pep->node);
	list_for_each_entry_safe(req, next, &pep->reqs, node)
		loop_req_refuse(req, NULL, 0);
	mutex_unlock(&loop_mutex);
	kofi_pep_exit(&pep->base);	/* removes its events from the queue */
	kfree(pep);
	return 0;
}

static const struct fi_ops_cm loop_pep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.getname	= loop_pep_getname,
	.listen		= loop_listen,
	.reject		= loop_reject,
};

static const struct fi_ops loop_pep_fid_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= loop_pep_close,
};

int loop_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_pep **fid, void *context)
{
	struct sockaddr_in *src = info->src_addr;
	struct loop_pep *pep;
	int err;

	if (src && (info->src_addrlen < sizeof(*src) ||
		    src->sin_family != AF_INET))
		return -EINVAL;
	pep = kzalloc(sizeof(*pep), GFP_KERNEL);
	if (!pep)
		return -ENOMEM;
	INIT_LIST_HEAD(&pep->node);
	INIT_LIST_HEAD(&pep->reqs);
	pep->name = loop_addr(src ? ntohs(src->sin_port) : 0);
	err = kofi_pep_init(&pep->base, fabric, info, &loop_pep_fid_ops,
			    &loop_opt_ops, &loop_pep_cm_ops, NULL, context);
	if (err) {
		kfree(pep);
		return err;
	}
	*fid = &pep->base.pep;
	return 0;
}
