// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: life, options, statistics. The stream is the connection's (conn.c).
 */
#include <linux/slab.h>

#include "rdm.h"
#include "sock_trace.h"
#include "tls.h"

/**
 * struct ksk_msg - a connected endpoint
 * @ep: common part of all types
 * @req: request that the endpoint was opened for, named by its info's handle; or NULL
 * @conn: connection of the endpoint
 */
struct ksk_msg {
	struct ksk_ep		ep;
	struct ksk_req		*req;
	struct ksk_conn		conn;
};

/* ------------------------------------------------------------------- life */

/**
 * ksk_ep_abort - abort the connections of an endpoint
 * @ep: the endpoint
 * @err: reason, a positive error code
 *
 * Context: any; ksk_dom_mutex held, or the endpoint cannot go away otherwise.
 */
void ksk_ep_abort(struct ksk_ep *ep, int err)
{
	if (ep->conn)
		ksk_conn_abort(ep->conn, err);
	else
		ep->type->abort(ep, err);
}

/**
 * ksk_ep_alloc - allocate the records of an endpoint that is being enabled
 * @ep: the endpoint
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM.
 */
int ksk_ep_alloc(struct ksk_ep *ep)
{
	const struct fi_info *info = ep->base.info;
	int err;

	err = ksk_tx_init(ep, info->tx_attr->size);
	if (err)
		return err;
	if (!ep->base.srx)
		err = kofi_rxq_init(&ep->rxq, &ep->base, info->rx_attr->size);
	if (err)
		ksk_tx_exit(ep);
	return err;
}

/**
 * ksk_ep_exit - undo ksk_ep_init() and ksk_ep_alloc()
 * @ep: an endpoint without connections
 *
 * Context: process, may sleep.
 */
void ksk_ep_exit(struct ksk_ep *ep)
{
	if (ep->reserves)
		static_branch_dec(&memalloc_socks_key);
	kofi_ep_exit(&ep->base);
	kofi_rxq_exit(&ep->rxq);
	ksk_tx_exit(ep);
}

/* Remove the endpoint from the list of the domain's notifier. */
void ksk_ep_unlist(struct ksk_ep *ep)
{
	mutex_lock(&ksk_dom_mutex);
	list_del(&ep->domain_node);
	mutex_unlock(&ksk_dom_mutex);
}

/* ---------------------------------------------------------------- options */

/*
 * A reclaim-safe endpoint has work queues of its own. Before the endpoint connects, only
 * the notifier queues work, under its mutex, and once.
 */
static int ksk_msg_set_val(struct ksk_ep *ep, const struct fi_fid_var *var)
{
	struct ksk_conn *c = ep->conn;
	int err = -EBUSY;

	mutex_lock(&c->mutex);
	mutex_lock(&ksk_dom_mutex);
	if ((ep->tls.mode || c->tls) && var->name == (int)KOFI_VAL_RECLAIM_SAFE &&
	    *(const unsigned int *)var->val)
		err = -EOPNOTSUPP;
	else if (READ_ONCE(ep->base.state) <= KOFI_EP_ENABLED)
		err = ksk_tunables_set(&ep->tun, var->name, var->val);
	if (!err && !READ_ONCE(c->dead))
		c->wq = ksk_wq_for(&ep->tun);
	mutex_unlock(&ksk_dom_mutex);
	mutex_unlock(&c->mutex);
	return err;
}

/* Connections are made after the endpoint is enabled, with the values set before. */
static int ksk_ep_set_val(struct ksk_ep *ep, const struct fi_fid_var *var)
{
	int err = -EBUSY;

	if (ep->conn)
		return ksk_msg_set_val(ep, var);
	mutex_lock(&ksk_dom_mutex);
	if (READ_ONCE(ep->base.state) == KOFI_EP_IDLE)
		err = ksk_tunables_set(&ep->tun, var->name, var->val);
	mutex_unlock(&ksk_dom_mutex);
	return err;
}

int ksk_ep_control(struct fi_fid *fid, int command, void *arg)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct fi_fid_var *var = arg;

	/* it is a listener's value: requests have been read when there is a connection */
	if (ep->conn && var->name == (int)KOFI_VAL_HANDSHAKE_TIMEOUT)
		return -ENOSYS;
	if (command == FI_GET_VAL)
		return ksk_tunables_get(&ep->tun, var->name, var->val);
	return ksk_ep_set_val(ep, var);
}

/*
 * The reserves would not help a connection with TLS: others allocate for it, and a
 * handshake needs a process.
 */
static int ksk_msg_set_tls(struct ksk_ep *ep, const void *val, size_t len)
{
	struct kofi_tls tls;
	int err = ksk_tls_option(&tls, val, len, false);

	if (err)
		return err;
	mutex_lock(&ep->conn->mutex);
	if (ep->conn->sock || ep->conn->tls)
		err = -FI_EOPBADSTATE;
	else if (tls.mode && ep->tun.reclaim_safe)
		err = -EOPNOTSUPP;
	else
		ep->tls = tls;
	mutex_unlock(&ep->conn->mutex);
	return err;
}

static int ksk_msg_get_tls(struct ksk_ep *ep, int name, void *val, size_t *len)
{
	int err;

	mutex_lock(&ep->conn->mutex);
	if (name == KOFI_OPT_TLS)
		err = kofi_opt_get(&ep->tls, sizeof(ep->tls), val, len);
	else
		err = ksk_tls_peer(ep->conn->tls, val, len);
	mutex_unlock(&ep->conn->mutex);
	return err;
}

static int ksk_ep_getopt(fid_t fid, int level, int name, void *val,
			 size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);

	switch (name) {
	case KOFI_OPT_TLS:
	case KOFI_OPT_TLS_PEER:
		if (!ep->conn)
			return -FI_ENOPROTOOPT;
		return ksk_msg_get_tls(ep, name, val, len);
	case FI_OPT_CM_DATA_SIZE:
		if (ep->base.info->ep_attr->type != FI_EP_MSG)
			return -FI_ENOPROTOOPT;
		return kofi_opt_get_size(KSK_CM_DATA_MAX, val, len);
	case FI_OPT_SEND_BUF_SIZE:
		return kofi_opt_get_size(ep->tun.sndbuf, val, len);
	case FI_OPT_RECV_BUF_SIZE:
		return kofi_opt_get_size(ep->tun.rcvbuf, val, len);
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int ksk_ep_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	const struct fi_ep_attr *attr = ep->base.info->ep_attr;
	const struct kofi_ep_limits limits = {
		.size = KSK_TX_RX_MAX,
		/* a datagram is limited by the device, and its limit cannot grow */
		.msg = attr->type == FI_EP_DGRAM ? attr->max_msg_size : KSK_MSG_MAX,
		.inject = KSK_INJECT_MAX,
	};
	size_t in;
	int err;

	if (name == KOFI_OPT_TLS)
		return ep->conn ? ksk_msg_set_tls(ep, val, len) :
				  -FI_ENOPROTOOPT;
	if (name != FI_OPT_SEND_BUF_SIZE && name != FI_OPT_RECV_BUF_SIZE)
		return kofi_ep_set_limit(&ep->base, name, val, len, &limits);
	err = kofi_ep_set_size(&ep->base, &in, val, len, 1, INT_MAX / 2);
	if (err)
		return err;
	if (name == FI_OPT_SEND_BUF_SIZE)
		ep->tun.sndbuf = in;
	else
		ep->tun.rcvbuf = in;
	return 0;
}

static void ksk_ep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *base = container_of(obj, struct kofi_ep, obj);
	struct ksk_ep *ep = container_of(base, struct ksk_ep, base);
	struct ksk_conn_stats stats = {};

	if (ep->conn)
		ksk_conn_stats_add(&stats, &ep->conn->stats);
	else
		ksk_rdm_stats(ep, &stats, fn, arg);
#define KSK_STAT(name) fn(arg, #name, stats.name)
	KSK_STAT(tx_frames);
	fn(arg, "tx_wire_bytes", stats.tx_bytes);
	KSK_STAT(tx_acks);
	KSK_STAT(tx_responses);
	KSK_STAT(tx_held);
	KSK_STAT(tx_inline);
	KSK_STAT(tx_work);
	KSK_STAT(tx_full);
	KSK_STAT(tx_retries);
	KSK_STAT(tx_bursts);
	KSK_STAT(tx_rendezvous);
	KSK_STAT(tx_pushes);
	KSK_STAT(tx_zc_bytes);
	KSK_STAT(tx_copy_bytes);
	KSK_STAT(tx_zc_copied);
	KSK_STAT(rx_frames);
	fn(arg, "rx_wire_bytes", stats.rx_bytes);
	KSK_STAT(rx_acks);
	KSK_STAT(rx_responses);
	KSK_STAT(rx_stalls);
	KSK_STAT(rx_unexpected);
	KSK_STAT(rx_full);
	KSK_STAT(rx_truncated);
	KSK_STAT(rx_budget);
	KSK_STAT(violations);
#undef KSK_STAT
}

ssize_t ksk_ep_cancel(struct fid_ep *fid, void *context)
{
	struct ksk_ep *ep = ksk_ep(fid);

	return kofi_ep_rx_cancel(&ep->base, &ep->rxq, context);
}

/* ---------------------------------------------------------------- opening */

const struct fi_ops_ep ksk_ep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= ksk_ep_getopt,
	.setopt		= ksk_ep_setopt,
};

const struct fi_ops_msg ksk_ep_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= ksk_tx_post,
	.recvmsg	= ksk_rx_post,
	.cancel		= ksk_ep_cancel,
};

const struct fi_ops_tagged ksk_ep_tagged_ops = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= ksk_tx_tpost,
	.recvmsg	= ksk_rx_tpost,
};

const struct kofi_obj_ops ksk_ep_obj_ops = {
	.stats		= ksk_ep_stats,
};

static int ksk_ep_check(const struct fi_info *info)
{
	if (!ksk_tclass_known(info->tx_attr->tclass) ||
	    !ksk_tclass_known(info->domain_attr->tclass) ||
	    !info->tx_attr->size || info->tx_attr->size > KSK_TX_RX_MAX ||
	    !info->rx_attr->size || info->rx_attr->size > KSK_TX_RX_MAX)
		return -EINVAL;
	return info->src_addr ?
	       kofi_ip_check(info->src_addr, info->src_addrlen) : 0;
}

/**
 * ksk_ep_init - set up the common part of an endpoint
 * @ep: the endpoint, zeroed
 * @domain: domain of the endpoint
 * @info: attributes of the endpoint
 * @ops: operations of its type
 * @context: the consumer's
 *
 * Context: process, may sleep.
 * Return: 0, then ksk_ep_exit() undoes it; -EINVAL, or an error of kofi_ep_init().
 */
int ksk_ep_init(struct ksk_ep *ep, struct fid_domain *domain,
		const struct fi_info *info, const struct kofi_ep_ops *ops,
		void *context)
{
	int err = ksk_ep_check(info);

	if (err)
		return err;
	ep->domain = container_of(domain, struct ksk_domain, base.domain);
	ksk_tunables_init(&ep->tun);
	spin_lock_init(&ep->tx_free_lock);
	if (info->src_addr)
		memcpy(&ep->src, info->src_addr,
		       kofi_ip_len(info->src_addr));
	return kofi_ep_init(&ep->base, domain, info, ops, context);
}

/* Add the endpoint to the list of the domain's notifier. */
void ksk_ep_list(struct ksk_ep *ep)
{
	mutex_lock(&ksk_dom_mutex);
	list_add_tail(&ep->domain_node, &ep->domain->eps);
	if (!ep->domain->ifindex)
		ksk_ep_abort(ep, ENETDOWN);
	mutex_unlock(&ksk_dom_mutex);
}

/* -------------------------------------------------------- connected endpoints */

static struct ksk_msg *ksk_msg(struct ksk_ep *ep)
{
	return container_of(ep, struct ksk_msg, ep);
}

static void ksk_msg_drain(struct fid_ep *fid)
{
	ksk_conn_down(ksk_ep(fid)->conn, KSK_DOWN_DRAIN);
}

static void ksk_msg_abort(struct fid_ep *fid)
{
	ksk_conn_down(ksk_ep(fid)->conn, KSK_DOWN_ABORT);
}

static int ksk_msg_enable(struct fid_ep *fid)
{
	struct ksk_ep *ep = ksk_ep(fid);
	int err = -READ_ONCE(ep->conn->dead);

	if (err)
		return err;
	err = ksk_ep_alloc(ep);
	if (err)
		return err;
	/*
	 * An abort before this found no queue of receives to close, which the work item
	 * now does. Pairs with the cmpxchg in ksk_conn_abort(), which any context may call:
	 * there is no common lock.
	 */
	smp_mb();
	if (READ_ONCE(ep->conn->dead))
		ksk_conn_queue(ep->conn);
	return 0;
}

static int ksk_msg_close(struct fi_fid *fid)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct ksk_msg *msg = ksk_msg(ep);

	ksk_ep_unlist(ep);
	ksk_conn_close(&msg->conn);
	ksk_ep_exit(ep);
	if (msg->req)
		ksk_req_free(msg->req);
	ksk_conn_exit(&msg->conn);
	kfree(msg);
	return 0;
}

static void ksk_msg_established(struct ksk_conn *c, const void *data,
				size_t len)
{
	kofi_ep_connected(&c->ep->base, data, len);
}

static void ksk_msg_failed(struct ksk_conn *c, int err, int prov_errno,
			   const void *data, size_t len)
{
	kofi_ep_connect_failed(&c->ep->base, err, prov_errno, data, len);
}

static void ksk_msg_ended(struct ksk_conn *c)
{
	kofi_ep_disconnected(&c->ep->base, READ_ONCE(c->dead));
}

/* A receiver that is not stalled reads to the end, and the peer repeats its request. */
static void ksk_msg_closed(struct ksk_conn *c)
{
	if (c->rx.stalled)
		ksk_conn_abort(c, ksk_tls_fin(c->tls));
}

static const struct ksk_conn_ops ksk_msg_conn_ops = {
	.established	= ksk_msg_established,
	.failed		= ksk_msg_failed,
	.ended		= ksk_msg_ended,
	.closed		= ksk_msg_closed,
};

static const struct fi_ops ksk_msg_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_msg_close,
	.control	= ksk_ep_control,
};

static void ksk_msg_probe(struct fid_ep *fid)
{
	struct ksk_conn *c = ksk_ep(fid)->conn;

	if (READ_ONCE(c->phase) == KSK_CONN_ESTABLISHED)
		ksk_conn_ask(c);
}

/* kofi_ep_ops.cancel_connect */
static int ksk_msg_cancel_connect(struct fid_ep *fid)
{
	struct ksk_conn *c = ksk_ep(fid)->conn;
	int err = -EALREADY;

	mutex_lock(&c->mutex);
	if (!c->sock)
		goto unlock;
	/* the request is sent with the socket locked, and not on a dead connection */
	lock_sock(c->sock->sk);
	if (c->phase == KSK_CONN_CONNECTING && !c->cm->off) {
		ksk_conn_abort(c, ECANCELED);
		err = 0;
	}
	release_sock(c->sock->sk);
unlock:
	mutex_unlock(&c->mutex);
	return err;
}

static void ksk_msg_send_deferred(struct fid_ep *fid)
{
	struct ksk_conn *c = ksk_ep(fid)->direct;

	/* with TLS nothing is deferred */
	if (c)
		ksk_tx_send_deferred(c);
}

static const struct kofi_ep_ops ksk_msg_ops = {
	.fid		= &ksk_msg_fid_ops,
	.ep		= &ksk_ep_opt_ops,
	.cm		= &ksk_ep_cm_ops,
	.msg		= &ksk_ep_msg_ops,
	.tagged		= &ksk_ep_tagged_ops,
	.rma		= &ksk_rma_ops,
	.obj		= &ksk_ep_obj_ops,
	.enable		= ksk_msg_enable,
	.drain		= ksk_msg_drain,
	.abort		= ksk_msg_abort,
	.probe		= ksk_msg_probe,
	.cancel_connect	= ksk_msg_cancel_connect,
	.send_deferred	= ksk_msg_send_deferred,
};

/* Take the connection of the request that the info names. */
static int ksk_msg_adopt(struct ksk_msg *msg, fid_t handle)
{
	struct ksk_conn *c = &msg->conn;
	struct ksk_tls *t;
	struct socket *sock;
	int err;

	err = ksk_req_take(msg->ep.base.domain->fabric->net, NULL, handle,
			   &msg->req);
	if (err)
		return err;
	sock = ksk_req_adopt(msg->req, &c->be, &c->ext, &t);
	mutex_lock(&c->mutex);
	if (t)
		ksk_msg_secure(&msg->ep, t);
	ksk_conn_attach(c, sock, KSK_CONN_REQUESTED);
	mutex_unlock(&c->mutex);
	return 0;
}

int ksk_msg_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context)
{
	struct kofi_domain *kdomain = container_of(domain, struct kofi_domain,
						   domain);
	struct ksk_msg *msg;
	int err;

	msg = kzalloc_node(sizeof(*msg), GFP_KERNEL, kdomain->node);
	if (!msg)
		return -ENOMEM;
	msg->ep.conn = &msg->conn;
	msg->ep.direct = &msg->conn;
	ksk_conn_init(&msg->conn, &msg->ep, &ksk_msg_conn_ops);
	err = ksk_ep_init(&msg->ep, domain, info, &ksk_msg_ops, context);
	if (err)
		goto free;
	err = info->handle ? ksk_msg_adopt(msg, info->handle) : 0;
	if (err)
		goto exit;
	ksk_ep_list(&msg->ep);
	*fid = &msg->ep.base.ep;
	return 0;

exit:
	kofi_ep_exit(&msg->ep.base);
free:
	ksk_conn_exit(&msg->conn);
	kfree(msg);
	return err;
}
