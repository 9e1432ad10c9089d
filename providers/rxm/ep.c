// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: creation, options, statistics, and posts of receives.
 *
 * Enabling an endpoint creates everything that needs no peer: the passive endpoint
 * below, which provides the address, the records of transmits, and the queue of receives.
 * Connections follow when there is something to send (conn.c).
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rxm.h"

/* --------------------------------------------------------------- listening */

/* Listen for peers. The address of the endpoint is final then, with its port. */
static int rxm_ep_listen(struct rxm_ep *ep)
{
	struct rxm_fabric *fabric = container_of(ep->base.domain->fabric,
						 struct rxm_fabric, base);
	struct fi_eq_attr attr = {};
	size_t len = sizeof(ep->name);
	int err;

	err = kofi_eq_open(fabric->msg, &attr, rxm_conn_event, &ep->eq, ep);
	if (err)
		return err;
	err = fi_passive_ep(fabric->msg, ep->info, &ep->pep, ep);
	if (err)
		goto close_eq;
	err = fi_pep_bind(ep->pep, &ep->eq->fid, 0);
	if (!err)
		err = fi_listen(ep->pep);
	if (!err)
		err = fi_getname(&ep->pep->fid, &ep->name, &len);
	if (!err)
		return 0;
	fi_close(&ep->pep->fid);
	ep->pep = NULL;
close_eq:
	fi_close(&ep->eq->fid);
	ep->eq = NULL;
	return err;
}

static void rxm_ep_unlisten(struct rxm_ep *ep)
{
	if (ep->pep)
		fi_close(&ep->pep->fid);
	ep->pep = NULL;
}

/* ---------------------------------------------------------------- lifetime */

static int rxm_ep_enable(struct fid_ep *fid)
{
	struct rxm_ep *ep = rxm_ep(fid);
	int err;

	err = rxm_tx_init(ep);
	if (err)
		return err;
	if (!ep->base.srx)
		err = kofi_rxq_init(&ep->rxq, &ep->base,
				    ep->base.info->rx_attr->size);
	if (err)
		goto exit_tx;
	mutex_lock(&ep->mutex);
	err = ep->closed ? -ESHUTDOWN : rxm_ep_listen(ep);
	mutex_unlock(&ep->mutex);
	if (err)
		goto exit_rxq;
	return 0;

exit_rxq:
	kofi_rxq_exit(&ep->rxq);
exit_tx:
	rxm_tx_exit(ep);
	return err;
}

static void rxm_ep_stop(struct fid_ep *fid, bool abort)
{
	struct rxm_ep *ep = rxm_ep(fid);

	/* a current holder of the mutex sees it, and stops early */
	spin_lock_irq(&ep->lock);
	WRITE_ONCE(ep->closed, true);
	spin_unlock_irq(&ep->lock);
	mutex_lock(&ep->mutex);
	rxm_ep_unlisten(ep);
	rxm_conn_drain(ep, abort);
	if (ep->rxq.ops)
		kofi_rxq_flush(&ep->rxq);
	mutex_unlock(&ep->mutex);
}

static void rxm_ep_drain(struct fid_ep *fid)
{
	rxm_ep_stop(fid, false);
}

static void rxm_ep_abort(struct fid_ep *fid)
{
	rxm_ep_stop(fid, true);
}

static int rxm_ep_close(struct fi_fid *fid)
{
	struct rxm_ep *ep = container_of(fid, struct rxm_ep, base.ep.fid);

	/* the handler of the queue starts the work item */
	if (ep->eq)
		fi_close(&ep->eq->fid);
	/*
	 * A transmit may complete before its post returns, and the consumer may then close
	 * the endpoint. That post still uses the connection, and may start the work item.
	 */
	disable_delayed_work_sync(&ep->timer);
	disable_work_sync(&ep->work);
	kofi_ep_exit(&ep->base);
	synchronize_rcu();
	rxm_conn_exit(ep);
	kofi_rxq_exit(&ep->rxq);
	rxm_tx_exit(ep);
	fi_freeinfo(ep->info);
	mutex_destroy(&ep->mutex);
	kfree(ep);
	return 0;
}

/* Accesses of peers can be counted only if the provider below reports them. */
static int rxm_ep_bind(struct fi_fid *fid, struct fi_fid *bfid, u64 flags)
{
	struct rxm_ep *ep = container_of(fid, struct rxm_ep, base.ep.fid);

	return bfid->fclass == FI_CLASS_CNTR &&
	       flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) &&
	       !(ep->info->caps & FI_RMA_EVENT) ? -EOPNOTSUPP : 0;
}

/*
 * Pass fi_set_val() or fi_get_val() to a temporary endpoint below: the provider there
 * knows its valid values and its defaults.
 */
static int rxm_ep_ask(struct rxm_ep *ep, int command, struct fi_fid_var *var)
{
	struct fi_info *info = rxm_conn_info(ep, NULL);
	struct fid_ep *msg;
	int err = -ENOMEM;

	if (!info)
		return err;
	err = fi_endpoint(ep->dom->msg, info, &msg, ep);
	fi_freeinfo(info);
	if (err)
		return err;
	err = fi_control(&msg->fid, command, var);
	fi_close(&msg->fid);
	return err;
}

static int rxm_ep_control(struct fi_fid *fid, int command, void *arg)
{
	struct rxm_ep *ep = container_of(fid, struct rxm_ep, base.ep.fid);
	struct fi_fid_var *var = arg;
	unsigned int i, noio;
	int err = 0;

	i = (unsigned int)var->name - FI_PROV_SPECIFIC;
	/* connections allocate memory, and its reclaim may depend on them */
	if (i >= RXM_VALS || var->name == KOFI_VAL_RECLAIM_SAFE)
		return -ENOSYS;
	mutex_lock(&ep->mutex);
	/* the work item takes the mutex, too, and reclaim may wait for it */
	noio = memalloc_noio_save();
	/* without kofi_ep.config: only connections use the values, which need the mutex */
	if (command == FI_SET_VAL &&
	    READ_ONCE(ep->base.state) != KOFI_EP_IDLE) {
		err = -EBUSY;
	} else if (command == FI_GET_VAL && test_bit(i, &ep->vals.set)) {
		*(unsigned int *)var->val = ep->vals.val[i];
	} else {
		err = rxm_ep_ask(ep, command, var);
		if (!err && command == FI_SET_VAL) {
			ep->vals.val[i] = *(const unsigned int *)var->val;
			__set_bit(i, &ep->vals.set);
		}
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&ep->mutex);
	return err;
}

static int rxm_ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct rxm_ep *ep = container_of(fid, struct rxm_ep, base.ep.fid);
	int err = -FI_EOPBADSTATE;

	mutex_lock(&ep->mutex);
	if (ep->name.sa.sa_family)
		err = kofi_ip_copy(&ep->name.sa, addr, len);
	mutex_unlock(&ep->mutex);
	return err;
}

static int rxm_ep_setname(fid_t fid, void *addr, size_t len)
{
	struct rxm_ep *ep = container_of(fid, struct rxm_ep, base.ep.fid);
	int err = kofi_ip_check(addr, len);

	mutex_lock(&ep->mutex);
	if (!err && ep->pep)
		err = -FI_EOPBADSTATE;
	if (!err)
		err = rxm_info_set(&ep->info->src_addr, &ep->info->src_addrlen,
				   addr, true);
	mutex_unlock(&ep->mutex);
	return err;
}

static u64 rxm_bufs_bytes(u64 bufs)
{
	return bufs * PAGE_ALIGN(sizeof(struct rxm_buf));
}

/* Bytes of all stored messages; each peer counts its own under its own lock */
static u64 rxm_unexpected_bytes(struct rxm_ep *ep)
{
	struct rxm_conn *c;
	u32 number = 1;
	u64 bufs = 0;

	rcu_read_lock();
	for (; (c = rxm_conn(kofi_peers_next(&ep->peers, &number))); number++) {
		spin_lock_bh(&c->rx_lock);
		bufs += c->rx.stored_bufs;
		spin_unlock_bh(&c->rx_lock);
	}
	rcu_read_unlock();
	return rxm_bufs_bytes(bufs);
}

static void rxm_ep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *base = container_of(obj, struct kofi_ep, obj);
	struct rxm_ep *ep = container_of(base, struct rxm_ep, base);

	fn(arg, "peers", kofi_peers_count(&ep->peers));
	fn(arg, "connects", atomic64_read(&ep->stats.connects));
	fn(arg, "refused", atomic64_read(&ep->stats.refused));
	fn(arg, "violations", atomic64_read(&ep->stats.violations));
	fn(arg, "evicted", atomic64_read(&ep->stats.evicted));
	fn(arg, "tx_early", atomic_read(&ep->peers.waiting));
	fn(arg, "tx_eager", atomic64_read(&ep->stats.eager));
	fn(arg, "tx_segmented", atomic64_read(&ep->stats.segmented));
	fn(arg, "tx_rendezvous", atomic64_read(&ep->stats.rendezvous));
	fn(arg, "rx_unexpected", atomic64_read(&ep->stats.unexpected));
	fn(arg, "rx_unexpected_bytes", rxm_unexpected_bytes(ep));
	fn(arg, "rx_held", atomic_read(&ep->held));
}

static void rxm_peer_tell(struct rxm_conn *c, struct kofi_peer_state *state)
{
	memcpy(&state->addr, &c->base.addr, sizeof(c->base.addr));
	state->reconnects = max(READ_ONCE(c->connects), 1u) - 1;
	spin_lock_irq(&c->lock);
	state->state = kofi_peer_ep_state(&c->base);
	state->tx_waiting = c->tx.queued;
	spin_unlock_irq(&c->lock);
	spin_lock_bh(&c->rx_lock);
	state->rx_stored = c->rx.stored;
	state->rx_stored_bytes = rxm_bufs_bytes(c->rx.stored_bufs);
	spin_unlock_bh(&c->rx_lock);
}

/* kofi_ep_ops.peer_next: skips the accepted side of a connection to ourselves */
static bool rxm_peer_next(struct fid_ep *fid, u32 *number,
			  struct kofi_peer_state *state)
{
	struct rxm_ep *ep = rxm_ep(fid);
	struct rxm_conn *c;

	rcu_read_lock();
	c = rxm_conn(kofi_peers_next(&ep->peers, number));
	while (c && c->self) {
		++*number;
		c = rxm_conn(kofi_peers_next(&ep->peers, number));
	}
	if (c)
		rxm_peer_tell(c, state);
	rcu_read_unlock();
	return c;
}

/* ---------------------------------------------------------------- receives */

static ssize_t rxm_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   u64 flags)
{
	struct rxm_ep *ep = rxm_ep(fid);
	int err = kofi_ep_rx_state(&ep->base);

	return err ?: kofi_rxq_post(&ep->rxq, msg, flags);
}

static ssize_t rxm_trecvmsg(struct fid_ep *fid,
			    const struct fi_msg_tagged *msg, u64 flags)
{
	struct rxm_ep *ep = rxm_ep(fid);
	int err = kofi_ep_rx_state(&ep->base);

	if (!err && !(ep->base.info->caps & FI_TAGGED))
		err = -ENOSYS;
	return err ?: kofi_rxq_tpost(&ep->rxq, msg, flags);
}

static ssize_t rxm_cancel(struct fid_ep *fid, void *context)
{
	struct rxm_ep *ep = rxm_ep(fid);

	return kofi_ep_rx_cancel(&ep->base, &ep->rxq, context);
}

/* ----------------------------------------------------------------- opening */

static const struct fi_ops rxm_ep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= rxm_ep_close,
	.bind		= rxm_ep_bind,
	.control	= rxm_ep_control,
};

static const struct fi_ops_cm rxm_ep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= rxm_ep_setname,
	.getname	= rxm_ep_getname,
};

/* fi_setopt() */
static int rxm_ep_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	struct rxm_ep *ep = container_of(fid, struct rxm_ep, base.ep.fid);
	const struct kofi_ep_limits limits = {
		.size = RXM_SIZE_MAX,
		.msg = rxm_chunk_most(ep),
		.inject = RXM_INJECT,
	};

	return kofi_ep_set_limit(&ep->base, name, val, len, &limits);
}

static const struct fi_ops_ep rxm_ep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.setopt		= rxm_ep_setopt,
};

static const struct fi_ops_msg rxm_ep_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= rxm_sendmsg,
	.recvmsg	= rxm_recvmsg,
	.cancel		= rxm_cancel,
};

static const struct fi_ops_tagged rxm_ep_tagged_ops = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= rxm_tsendmsg,
	.recvmsg	= rxm_trecvmsg,
};

static const struct kofi_obj_ops rxm_ep_obj_ops = {
	.stats		= rxm_ep_stats,
};

static const struct kofi_ep_ops rxm_ep_ops = {
	.fid		= &rxm_ep_fid_ops,
	.ep		= &rxm_ep_opt_ops,
	.cm		= &rxm_ep_cm_ops,
	.msg		= &rxm_ep_msg_ops,
	.tagged		= &rxm_ep_tagged_ops,
	.rma		= &rxm_rma_ops,
	.atomic		= &rxm_atomic_ops,
	.obj		= &rxm_ep_obj_ops,
	.enable		= rxm_ep_enable,
	.drain		= rxm_ep_drain,
	.abort		= rxm_ep_abort,
	.peer_removed	= rxm_peer_removed,
	.peer_next	= rxm_peer_next,
	.peers_added	= rxm_peers_added,
};

/* fi_endpoint() */
int rxm_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context)
{
	struct rxm_domain *dom = container_of(domain, struct rxm_domain,
					      base.domain);
	struct rxm_ep *ep;
	int err;

	if (info->ep_attr->type != FI_EP_RDM || info->handle ||
	    !info->tx_attr->size || info->tx_attr->size > RXM_SIZE_MAX ||
	    !info->rx_attr->size || info->rx_attr->size > RXM_SIZE_MAX ||
	    info->tx_attr->iov_limit > RXM_IOV_MAX ||
	    info->tx_attr->inject_size > RXM_INJECT)
		return -EINVAL;
	ep = kzalloc_node(sizeof(*ep), GFP_KERNEL, dom->base.node);
	if (!ep)
		return -ENOMEM;
	ep->dom = dom;
	ep->process = kofi_peer_new_life();
	mutex_init(&ep->mutex);
	spin_lock_init(&ep->lock);
	spin_lock_init(&ep->tx.free_lock);
	INIT_LIST_HEAD(&ep->conns);
	INIT_LIST_HEAD(&ep->departed);
	INIT_LIST_HEAD(&ep->pending);
	INIT_LIST_HEAD(&ep->todo);
	spin_lock_init(&ep->woken_lock);
	INIT_LIST_HEAD(&ep->woken);
	init_waitqueue_head(&ep->idle);
	INIT_WORK(&ep->work, rxm_conn_work);
	INIT_DELAYED_WORK(&ep->timer, rxm_conn_timer);

	err = rxm_msg_info(dom, info, &ep->info);
	if (err)
		goto free;
	ep->flow = rxm_credits_used(ep->info);
	ep->saw = info->tx_attr->msg_order & FI_ORDER_SAW;
	err = kofi_peers_init(&ep->peers, &ep->base);
	if (err)
		goto free_info;
	err = kofi_ep_init(&ep->base, domain, info, &rxm_ep_ops, context);
	if (err)
		goto exit_conn;
	*fid = &ep->base.ep;
	return 0;

exit_conn:
	rxm_conn_exit(ep);
free_info:
	fi_freeinfo(ep->info);
free:
	mutex_destroy(&ep->mutex);
	kfree(ep);
	return err;
}
