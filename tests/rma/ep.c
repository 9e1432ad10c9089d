// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The endpoint of a run: discovery, connections, and the region that a peer
 * may access.
 *
 * One that does not connect stays for the whole run. A client begins with a message
 * that has its address, with a tag of its own; it does so again after each access that
 * was refused, as a connection below has ended then, and the endpoint has an event of
 * it. The server expects that message at any time: a client that ends in the middle of
 * a command does not keep out the next one. Receives are for the client of the moment:
 * a command of the one before that is still stored is not the next one's.
 *
 * Events are taken by a handler, which keeps what it has seen in the run and
 * wakes the process that waits for it. A server keeps its domain, its queue and
 * its region from one connection to the next, as a storage target would.
 *
 * Everything opened is in the run, and rma_ep_close() closes what there is,
 * children before parents; the other functions here do not unwind.
 */
#include <linux/slab.h>

#include "rma.h"

/* Segments of a piece of memory, the most kofi_rxm takes, over TCP and over any device */
#define RMA_RXM_SEGS	8
#define RMA_DEVICE_SEGS	5

static void rma_ep_cm_event(struct rma_run *run, u32 event,
			    struct fi_eq_cm_entry *entry)
{
	switch (event) {
	case FI_CONNREQ:
		/* one client at a time, and one that waits */
		if (!run->request) {
			run->request = entry->info;
			break;
		}
		fi_reject(run->pep, entry->info->handle, NULL, 0);
		fi_freeinfo(entry->info);
		break;
	case FI_CONNECTED:
		run->connected = true;
		break;
	case FI_SHUTDOWN:
		run->down = true;
		break;
	}
}

/* The event queue's handler, in a work item */
static void rma_ep_event(struct fid_eq *eq, void *context)
{
	struct fi_eq_err_entry err;
	struct fi_eq_cm_entry entry;
	struct rma_run *run = context;
	u32 event;
	ssize_t n;

	mutex_lock(&run->events);
	for (;;) {
		n = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (n == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			if (fi_eq_readerr(eq, &err, 0) < 0)
				continue;
			if (run->opts.rdm)
				run->down = true;
			else
				run->cm_err = err.err ? -err.err : -EIO;
			continue;
		}
		if (n < 0)
			break;
		rma_ep_cm_event(run, event, &entry);
	}
	mutex_unlock(&run->events);
	wake_up_all(&run->wq);
}

/* NULL: whichever there is */
static const char *rma_ep_provider(const struct rma_opts *opts)
{
	if (opts->verbs)
		return opts->rdm ? "verbs;ofi_rxm" : "verbs";
	return opts->rxm ? "sock;ofi_rxm" : NULL;
}

/* What the run needs of a provider; node and port are a listener's or not. */
static int rma_ep_getinfo(struct rma_run *run, u64 flags)
{
	const char *name = rma_ep_provider(&run->opts);
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = run->opts.rdm ? FI_EP_RDM : FI_EP_MSG;
	/* without the bits, keys are ours to choose */
	if (!run->opts.client_keys)
		hints->domain_attr->mr_mode = FI_MR_PROV_KEY |
					      FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	if (name)
		hints->fabric_attr->prov_name = kstrdup(name, GFP_KERNEL);
	/* what a client sends is not for receives of another one */
	if (run->opts.rdm)
		hints->caps |= FI_DIRECTED_RECV;
	/* it has few segments unless asked; the memory is in few pieces */
	if (run->opts.rdm && run->opts.verbs)
		hints->tx_attr->iov_limit = RMA_DEVICE_SEGS;
	else if (run->opts.rxm)
		hints->tx_attr->iov_limit = RMA_RXM_SEGS;
	/* devices know no tags */
	if (!run->opts.verbs || run->opts.rdm)
		hints->caps |= FI_TAGGED;
	ret = fi_getinfo(FI_VERSION(2, 1),
			 run->opts.node[0] ? run->opts.node : NULL,
			 run->opts.port, flags, hints, &run->info);
	fi_freeinfo(hints);
	if (ret)
		return rma_error(run, ret,
				 "no provider can do this at %s, port %s",
				 run->opts.node[0] ? run->opts.node :
						     "any address",
				 run->opts.port);
	/* also below kofi_rxm */
	run->iwarp = run->opts.verbs && !run->info->domain_attr->cq_data_size;
	if (run->iwarp)
		run->levels = KRMA_TRANSMIT;
	else if (run->info->ep_attr->protocol == FI_PROTO_RXM)
		run->levels = KRMA_DELIVERY;
	else
		run->levels = KRMA_LEVELS;
	run->size = run->opts.verbs ? KRMA_REGION_DEVICE : KRMA_REGION;
	return 0;
}

static int rma_ep_fabric(struct rma_run *run)
{
	struct fi_eq_attr attr = {};
	int ret;

	ret = fi_fabric(run->info->fabric_attr, &run->fabric, run);
	if (ret)
		return rma_error(run, ret, "fi_fabric");
	ret = kofi_eq_open(run->fabric, &attr, rma_ep_event, &run->eq, run);
	return rma_error(run, ret, "kofi_eq_open");
}

/* Once: the domain, its completion queue, and the shared context. */
static int rma_ep_domain(struct rma_run *run, struct fi_info *info)
{
	const struct kofi_cq_attr kattr = {
		.poll = run->opts.poll, .done = true,
	};
	struct fi_cq_attr attr = { .size = 1024 };
	int ret;

	if (run->domain)
		return 0;
	ret = fi_domain(run->fabric, info, &run->domain, run);
	if (ret)
		return rma_error(run, ret, "fi_domain");
	ret = kofi_cq_open(run->domain, &attr, &kattr, &run->cq, run);
	if (ret)
		return rma_error(run, ret, "kofi_cq_open");
	if (run->opts.rdm) {
		ret = fi_av_open(run->domain, NULL, &run->av, run);
		if (ret)
			return rma_error(run, ret, "fi_av_open");
	}
	if (!run->opts.srx)
		return 0;
	ret = fi_srx_context(run->domain, info->rx_attr, &run->srx, run);
	if (ret)
		return rma_error(run, ret, "fi_srx_context");
	ret = fi_ep_bind(run->srx, &run->cq->fid, FI_RECV);
	return rma_error(run, ret, "fi_ep_bind of the shared context");
}

/* An endpoint, unless there is one, ready to connect or accept, its first receive posted. */
static int rma_ep_open(struct rma_run *run, struct fi_info *info)
{
	int ret;

	ret = rma_ep_domain(run, info);
	if (ret)
		return ret;
	/* the last event of the endpoint before this may be on its way here */
	mutex_lock(&run->events);
	run->connected = false;
	run->down = false;
	run->cm_err = 0;
	mutex_unlock(&run->events);
	if (run->ep)
		return 0;
	ret = fi_endpoint(run->domain, info, &run->ep, run);
	if (ret)
		return rma_error(run, ret, "fi_endpoint");
	ret = fi_ep_bind(run->ep, &run->eq->fid, 0);
	ret = ret ?: fi_ep_bind(run->ep, &run->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret && run->srx)
		ret = fi_ep_bind(run->ep, &run->srx->fid, 0);
	if (!ret && run->av)
		ret = fi_ep_bind(run->ep, &run->av->fid, 0);
	ret = ret ?: kofi_ep_write_space(run->ep, rma_xfer_space);
	/* values that come with writes belong to no operation of this side */
	ret = ret ?: kofi_ep_remote_cqe(run->ep, &run->remote);
	if (ret == -EOPNOTSUPP)
		ret = 0;	/* or they take receives */
	if (!ret && run->opts.zerocopy >= 0)
		ret = fi_set_val(&run->ep->fid, KOFI_VAL_ZEROCOPY_MIN,
				 &(unsigned int){ run->opts.zerocopy });
	if (ret)
		return rma_error(run, ret, "binding the endpoint");
	ret = fi_enable(run->ep);
	if (ret)
		return rma_error(run, ret, "fi_enable");
	/* whose commands they are has to be known first */
	if (!run->opts.rdm)
		return rma_cmd_expect(run);
	return run->opts.server ? rma_name_expect(run) : 0;
}

static bool rma_ep_decided(struct rma_run *run)
{
	return READ_ONCE(run->connected) || READ_ONCE(run->cm_err) ||
	       READ_ONCE(run->down);
}

static int rma_ep_connected(struct rma_run *run)
{
	int ret;

	ret = rma_wait(run, rma_ep_decided(run));
	if (!ret)
		ret = run->cm_err ?: run->connected ? 0 : -ECONNRESET;
	return rma_error(run, ret, "connecting");
}

/**
 * rma_ep_listen - server: be there for clients
 * @run: the run
 *
 * Return: 0 or a negative error code.
 */
int rma_ep_listen(struct rma_run *run)
{
	int ret;

	ret = rma_ep_getinfo(run, FI_SOURCE);
	ret = ret ?: rma_ep_fabric(run);
	if (ret)
		return ret;
	if (run->opts.rdm)
		return rma_ep_open(run, run->info);
	ret = fi_passive_ep(run->fabric, run->info, &run->pep, run);
	ret = ret ?: fi_pep_bind(run->pep, &run->eq->fid, 0);
	ret = ret ?: fi_listen(run->pep);
	return rma_error(run, ret, "listening on port %s", run->opts.port);
}

/**
 * rma_ep_accept - server: wait for a client, without limit, and take it
 * @run: the run, without a connection
 *
 * Return: 0 or a negative error code.
 */
int rma_ep_accept(struct rma_run *run)
{
	struct fi_info *info;
	int ret;

	if (run->opts.rdm)
		return rma_name_recv(run) ?: rma_ep_open(run, run->info);
	if (wait_event_killable(run->wq, READ_ONCE(run->request)))
		return rma_error(run, -EINTR, "waiting for a client");
	mutex_lock(&run->events);
	info = run->request;
	run->request = NULL;
	mutex_unlock(&run->events);

	ret = rma_ep_open(run, info);
	if (!ret)
		ret = rma_error(run, fi_accept(run->ep, NULL, 0), "fi_accept");
	fi_freeinfo(info);
	return ret ?: rma_ep_connected(run);
}

/**
 * rma_ep_find - client: find a way to the server
 * @run: the run
 *
 * Return: 0 or a negative error code.
 */
int rma_ep_find(struct rma_run *run)
{
	return rma_ep_getinfo(run, 0) ?: rma_ep_fabric(run);
}

/**
 * rma_ep_connect - client: a connection to the server
 * @run: the run, without a connection
 *
 * Return: 0 or a negative error code.
 */
int rma_ep_connect(struct rma_run *run)
{
	int ret;

	ret = rma_ep_open(run, run->info);
	if (ret)
		return ret;
	if (run->opts.rdm) {
		/* again and again, which is as good as once */
		if (fi_av_insert(run->av, run->info->dest_addr, 1, &run->to, 0,
				 NULL) != 1)
			return rma_error(run, -EINVAL, "fi_av_insert");
		return rma_name_send(run);
	}
	ret = fi_connect(run->ep, run->info->dest_addr, NULL, 0);
	return rma_error(run, ret, "fi_connect") ?: rma_ep_connected(run);
}

/**
 * rma_ep_region - register the region, in place of what it was before
 * @run: the run, with a domain
 * @kind: how to describe its memory
 * @access: what the peer may do
 *
 * The old registration is gone when this returns, and so is its key.
 *
 * Return: 0 or a negative error code.
 */
int rma_ep_region(struct rma_run *run, enum krma_kind kind, u64 access)
{
	struct fi_mr_attr attr = { .access = access, .context = run };
	struct rma_vec *v;
	int ret;

	if (run->mr) {
		ret = fi_close(&run->mr->fid);
		if (ret)
			return rma_error(run, ret, "closing the region");
		run->mr = NULL;
	}
	v = kzalloc(sizeof(*v), GFP_KERNEL);
	if (!v)
		return -ENOMEM;
	ret = rma_vec_make(v, &run->region, 0, run->size, kind, false);
	if (ret)
		goto free_vec;
	attr.vec = v->vec;
	attr.iov_count = v->count;
	attr.requested_key = 0x6b6f666900000000ULL + run->keys++;
	switch (v->vec) {
	case KOFI_KVEC:
		attr.mr_iov = v->kvec;
		break;
	case KOFI_BVEC:
		attr.mr_bvec = v->bvec;
		break;
	case KOFI_SGL:
		attr.mr_sgl = v->table.sgl;
		break;
	case KOFI_PAGES:
		attr.mr_pages = v->pages;
		attr.page_offset = v->page_offset;
		attr.page_len = v->len;
		break;
	default:
		attr.mr_iter = &v->iter;
	}
	ret = fi_mr_regattr(run->domain, &attr, 0, &run->mr);

free_vec:
	rma_vec_free(v);
	kfree(v);
	return rma_error(run, ret, "registering the region as %s",
			 rma_kind_name(kind));
}

static void rma_ep_close_fid(struct fi_fid *fid)
{
	int ret = fi_close(fid);

	WARN_ONCE(ret, "fi_close() of class %zu: %d\n", fid->fclass, ret);
}

/**
 * rma_ep_hangup - end the connection, if there is one
 * @run: the run
 */
void rma_ep_hangup(struct rma_run *run)
{
	if (run->opts.rdm)
		return;
	if (run->ep)
		rma_ep_close_fid(&run->ep->fid);
	run->ep = NULL;
	/* an answer that has not been read was of this connection */
	if (READ_ONCE(run->answer_state) == RMA_ANSWER_HERE)
		WRITE_ONCE(run->answer_state, RMA_ANSWER_NONE);
}

/**
 * rma_ep_close - close everything the run has opened
 * @run: the run
 */
void rma_ep_close(struct rma_run *run)
{
	rma_ep_hangup(run);
	if (run->ep)
		rma_ep_close_fid(&run->ep->fid);
	if (run->av)
		rma_ep_close_fid(&run->av->fid);
	if (run->srx)
		rma_ep_close_fid(&run->srx->fid);
	if (run->mr)
		rma_ep_close_fid(&run->mr->fid);
	if (run->cq)
		rma_ep_close_fid(&run->cq->fid);
	if (run->domain)
		rma_ep_close_fid(&run->domain->fid);
	if (run->pep)
		rma_ep_close_fid(&run->pep->fid);
	if (run->eq)
		rma_ep_close_fid(&run->eq->fid);
	if (run->fabric)
		rma_ep_close_fid(&run->fabric->fid);
	fi_freeinfo(run->request);
	fi_freeinfo(run->info);
}
