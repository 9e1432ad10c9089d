// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: life, options, statistics. The stream is the connection's (conn.c).
 */
#include <linux/slab.h>

#include "sock.h"
#include "sock_trace.h"

/* ------------------------------------------------------------------- life */

static void ksk_ep_drain(struct fid_ep *fid)
{
	ksk_conn_down(&ksk_ep(fid)->conn, false);
}

static int ksk_ep_enable(struct fid_ep *fid)
{
	struct ksk_ep *ep = ksk_ep(fid);
	const struct fi_info *info = ep->base.info;
	int err = -READ_ONCE(ep->conn.dead);

	if (err)
		return err;
	err = ksk_tx_init(ep, info->tx_attr->size);
	if (err)
		return err;
	if (!ep->base.srx)
		err = kofi_rxq_init(&ep->rxq, &ep->base, info->rx_attr->size);
	if (err) {
		ksk_tx_exit(ep);
		return err;
	}
	/*
	 * Aborted meanwhile: what ended it found no queue to close, which the
	 * work item does. Pairs with the cmpxchg in ksk_conn_abort().
	 */
	smp_mb();
	if (READ_ONCE(ep->conn.dead))
		ksk_conn_queue(&ep->conn);
	return 0;
}

static int ksk_ep_close(struct fi_fid *fid)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);

	mutex_lock(&ksk_dom_mutex);
	list_del(&ep->domain_node);
	mutex_unlock(&ksk_dom_mutex);

	ksk_conn_close(&ep->conn);
	if (ep->reserves)
		static_branch_dec(&memalloc_socks_key);

	kofi_ep_exit(&ep->base);
	kofi_rxq_exit(&ep->rxq);
	ksk_tx_exit(ep);
	if (ep->req)
		ksk_req_free(ep->req);
	ksk_conn_exit(&ep->conn);
	kfree(ep);
	return 0;
}

/* ---------------------------------------------------------------- options */

/*
 * A reclaim-safe endpoint's work is done in a queue of its own. Before the
 * endpoint connects only the notifier has work done, under its mutex, and once.
 */
static int ksk_ep_set_val(struct ksk_ep *ep, const struct fi_fid_var *var)
{
	struct ksk_conn *c = &ep->conn;
	int err = -EBUSY;

	mutex_lock(&c->mutex);
	mutex_lock(&ksk_dom_mutex);
	if (READ_ONCE(ep->base.state) <= KOFI_EP_ENABLED)
		err = ksk_tunables_set(&ep->tun, var->name, var->val);
	if (!err && !READ_ONCE(c->dead))
		c->wq = ep->tun.reclaim_safe ? ksk_wq_reclaim : ksk_wq;
	mutex_unlock(&ksk_dom_mutex);
	mutex_unlock(&c->mutex);
	return err;
}

static int ksk_ep_control(struct fi_fid *fid, int command, void *arg)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct fi_fid_var *var = arg;

	if (command != FI_SET_VAL && command != FI_GET_VAL)
		return -ENOSYS;
	if (!var || !var->val)
		return -EINVAL;
	/* a listener's: requests have been read when there is an endpoint */
	if (var->name == (int)KOFI_VAL_HANDSHAKE_TIMEOUT)
		return -ENOSYS;
	if (command == FI_GET_VAL)
		return ksk_tunables_get(&ep->tun, var->name, var->val);
	return ksk_ep_set_val(ep, var);
}

static size_t *ksk_ep_opt(struct ksk_ep *ep, int name)
{
	switch (name) {
	case FI_OPT_TX_SIZE:
		return &ep->base.info->tx_attr->size;
	case FI_OPT_RX_SIZE:
		return &ep->base.info->rx_attr->size;
	case FI_OPT_MAX_MSG_SIZE:
		return &ep->base.info->ep_attr->max_msg_size;
	case FI_OPT_INJECT_MSG_SIZE:
		return &ep->base.info->tx_attr->inject_size;
	default:
		return NULL;
	}
}

static int ksk_ep_getopt(fid_t fid, int level, int name, void *val,
			 size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	size_t out, *opt = ksk_ep_opt(ep, name);

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (opt)
		out = *opt;
	else if (name == FI_OPT_CM_DATA_SIZE)
		out = KSK_CM_DATA_MAX;
	else if (name == FI_OPT_SEND_BUF_SIZE)
		out = ep->tun.sndbuf;
	else if (name == FI_OPT_RECV_BUF_SIZE)
		out = ep->tun.rcvbuf;
	else
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(out)) {
		*len = sizeof(out);
		return -FI_ETOOSMALL;
	}
	*len = sizeof(out);
	*(size_t *)val = out;
	return 0;
}

static int ksk_ep_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	size_t in, limit, *opt = ksk_ep_opt(ep, name);

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (!opt && name != FI_OPT_SEND_BUF_SIZE &&
	    name != FI_OPT_RECV_BUF_SIZE)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(in))
		return -EINVAL;
	if (READ_ONCE(ep->base.state) != KOFI_EP_IDLE)
		return -FI_EOPBADSTATE;
	in = *(const size_t *)val;

	switch (name) {
	case FI_OPT_TX_SIZE:
	case FI_OPT_RX_SIZE:
		limit = KSK_TX_RX_MAX;
		break;
	case FI_OPT_MAX_MSG_SIZE:
		limit = KSK_MSG_MAX;
		break;
	case FI_OPT_INJECT_MSG_SIZE:
		limit = KSK_INJECT_MAX;
		break;
	default:
		limit = INT_MAX / 2;
		break;
	}
	if (!in || in > limit)
		return -EINVAL;
	if (opt)
		*opt = in;
	else if (name == FI_OPT_SEND_BUF_SIZE)
		ep->tun.sndbuf = in;
	else
		ep->tun.rcvbuf = in;
	return 0;
}

static void ksk_ep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *base = container_of(obj, struct kofi_ep, obj);
	struct ksk_ep *ep = container_of(base, struct ksk_ep, base);

#define KSK_STAT(name) fn(arg, #name, READ_ONCE(ep->conn.stats.name))
	KSK_STAT(tx_frames);
	fn(arg, "tx_wire_bytes", READ_ONCE(ep->conn.stats.tx_bytes));
	KSK_STAT(tx_acks);
	KSK_STAT(tx_responses);
	KSK_STAT(tx_held);
	KSK_STAT(tx_inline);
	KSK_STAT(tx_work);
	KSK_STAT(tx_full);
	KSK_STAT(tx_retries);
	KSK_STAT(tx_bursts);
	KSK_STAT(tx_pushes);
	KSK_STAT(tx_zc_bytes);
	KSK_STAT(tx_copy_bytes);
	KSK_STAT(tx_zc_copied);
	KSK_STAT(rx_frames);
	fn(arg, "rx_wire_bytes", READ_ONCE(ep->conn.stats.rx_bytes));
	KSK_STAT(rx_acks);
	KSK_STAT(rx_responses);
	KSK_STAT(rx_stalls);
	KSK_STAT(rx_full);
	KSK_STAT(rx_truncated);
	KSK_STAT(rx_budget);
	KSK_STAT(violations);
#undef KSK_STAT
}

static ssize_t ksk_ep_cancel(struct fid_ep *fid, void *context)
{
	struct ksk_ep *ep = ksk_ep(fid);
	int err = kofi_ep_rx_state(&ep->base);

	if (err && err != -ESHUTDOWN)
		return err;
	/* drained before it was enabled */
	if (!ep->rxq.ops)
		return -ENOENT;
	return kofi_rxq_cancel(&ep->rxq, context);
}

/* ---------------------------------------------------------------- opening */

static const struct fi_ops ksk_ep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_ep_close,
	.control	= ksk_ep_control,
};

static const struct fi_ops_ep ksk_ep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= ksk_ep_getopt,
	.setopt		= ksk_ep_setopt,
};

static const struct fi_ops_msg ksk_ep_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= ksk_tx_post,
	.recvmsg	= ksk_rx_post,
	.cancel		= ksk_ep_cancel,
};

static const struct fi_ops_tagged ksk_ep_tagged_ops = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= ksk_tx_tpost,
	.recvmsg	= ksk_rx_tpost,
};

static void ksk_ep_established(struct ksk_conn *c, const void *data,
			       size_t len)
{
	kofi_ep_connected(&c->ep->base, data, len);
}

static void ksk_ep_failed(struct ksk_conn *c, int err, int prov_errno,
			  const void *data, size_t len)
{
	kofi_ep_connect_failed(&c->ep->base, err, prov_errno, data, len);
}

static void ksk_ep_ended(struct ksk_conn *c)
{
	kofi_ep_disconnected(&c->ep->base);
}

static const struct ksk_conn_ops ksk_ep_conn_ops = {
	.established	= ksk_ep_established,
	.failed		= ksk_ep_failed,
	.ended		= ksk_ep_ended,
};

static const struct kofi_obj_ops ksk_ep_obj_ops = {
	.stats		= ksk_ep_stats,
};

static const struct kofi_ep_ops ksk_ep_ops = {
	.fid		= &ksk_ep_fid_ops,
	.ep		= &ksk_ep_opt_ops,
	.cm		= &ksk_ep_cm_ops,
	.msg		= &ksk_ep_msg_ops,
	.tagged		= &ksk_ep_tagged_ops,
	.rma		= &ksk_rma_ops,
	.obj		= &ksk_ep_obj_ops,
	.enable		= ksk_ep_enable,
	.drain		= ksk_ep_drain,
	.send_deferred	= ksk_tx_send_deferred,
};

/* fi_endpoint() */
int ksk_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context)
{
	struct ksk_domain *dom = container_of(domain, struct ksk_domain,
					      base.domain);
	struct ksk_req *req = NULL;
	struct socket *sock;
	struct ksk_ep *ep;
	int err;

	if (info->ep_attr->type != FI_EP_MSG ||
	    !ksk_tclass_known(info->tx_attr->tclass) ||
	    !ksk_tclass_known(info->domain_attr->tclass))
		return -EINVAL;
	if (!info->tx_attr->size || info->tx_attr->size > KSK_TX_RX_MAX ||
	    !info->rx_attr->size || info->rx_attr->size > KSK_TX_RX_MAX)
		return -EINVAL;
	if (info->src_addr &&
	    kofi_ip_check(info->src_addr, info->src_addrlen))
		return -EINVAL;

	ep = kzalloc_node(sizeof(*ep), GFP_KERNEL, dom->base.node);
	if (!ep)
		return -ENOMEM;
	ep->domain = dom;
	ksk_tunables_init(&ep->tun);
	spin_lock_init(&ep->tx_free_lock);
	ksk_conn_init(&ep->conn, ep, &ksk_ep_conn_ops);
	if (info->src_addr)
		memcpy(&ep->src, info->src_addr,
		       kofi_ip_len(info->src_addr));

	err = kofi_ep_init(&ep->base, domain, info, &ksk_ep_ops, context);
	if (err)
		goto free;
	if (info->handle) {
		err = ksk_req_take(dom->base.fabric->net, NULL, info->handle,
				   &req);
		if (err)
			goto exit;
		sock = ksk_req_adopt(req, &ep->conn.be, &ep->conn.ext);
		mutex_lock(&ep->conn.mutex);
		ksk_conn_attach(&ep->conn, sock, KSK_CONN_REQUESTED);
		mutex_unlock(&ep->conn.mutex);
		ep->req = req;
	}

	mutex_lock(&ksk_dom_mutex);
	list_add_tail(&ep->domain_node, &dom->eps);
	if (!dom->ifindex)
		ksk_conn_abort(&ep->conn, ENETDOWN);
	mutex_unlock(&ksk_dom_mutex);
	*fid = &ep->base.ep;
	return 0;

exit:
	kofi_ep_exit(&ep->base);
free:
	ksk_conn_exit(&ep->conn);
	kfree(ep);
	return err;
}
