// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The endpoint of a session, from discovery to the first message, its memory
 * regions, and closing all objects.
 *
 * Receives are posted when the endpoint is enabled, so that every message finds
 * one. A connected initiator sends a greeting, and the target answers. After
 * that, endpoints of reliable datagrams have a connection, too, and devices can
 * register memory.
 *
 * All open objects are in the session. perf_ep_close() closes them, children
 * before parents; the other functions here do not unwind.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/string.h>

#include "perf.h"

/* Requirements of each operation */
static const struct {
	u64	caps;
	u64	op_flags;	/* added if each operation is timed */
	size_t	data;
} perf_needs[] = {
	[KOFI_PERF_OP_MSG]	= { FI_MSG },
	[KOFI_PERF_OP_TAGGED]	= { FI_TAGGED },
	[KOFI_PERF_OP_READ]	= { FI_MSG | FI_RMA },
	[KOFI_PERF_OP_WRITE]	= { FI_MSG | FI_RMA | FI_FENCE,
				    FI_DELIVERY_COMPLETE },
	[KOFI_PERF_OP_WRITEDATA] = { FI_MSG | FI_RMA, 0, 4 },
};

static int perf_addr_hint(const struct kofi_perf_addr *from, u32 *format,
			  void **addr, size_t *len)
{
	sa_family_t family;

	if (!from->len)
		return 0;
	memcpy(&family, from->addr, sizeof(family));
	if (family == AF_INET && from->len == sizeof(struct sockaddr_in))
		*format = FI_SOCKADDR_IN;
	else if (family == AF_INET6 && from->len == sizeof(struct sockaddr_in6))
		*format = FI_SOCKADDR_IN6;
	else
		return -EAFNOSUPPORT;
	*len = from->len;
	*addr = kmemdup(from->addr, from->len, GFP_KERNEL);
	return *addr ? 0 : -ENOMEM;
}

static int perf_name_hint(const char *from, char **name)
{
	if (!from[0])
		return 0;
	*name = kstrdup(from, GFP_KERNEL);
	return *name ? 0 : -ENOMEM;
}

static int perf_getinfo(struct perf *perf)
{
	static const enum fi_ep_type types[] = {
		[KOFI_PERF_MSG]		= FI_EP_MSG,
		[KOFI_PERF_RDM]		= FI_EP_RDM,
		[KOFI_PERF_DGRAM]	= FI_EP_DGRAM,
	};
	const struct kofi_perf_open *o = &perf->opts;
	struct fi_info *hints;
	int ret;

	perf->stage = "fi_getinfo";
	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = perf_needs[o->op].caps;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = types[o->type];
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	hints->domain_attr->cq_data_size = perf_needs[o->op].data;
	if (o->flags & KOFI_PERF_LATENCY)
		hints->tx_attr->op_flags = perf_needs[o->op].op_flags;
	/* kofi_rxm allocates buffers for packets, not for rx_attr->size receives */
	if (perf_connects(perf)) {
		hints->tx_attr->size = perf->x.n_tx + 1;
		hints->rx_attr->size = perf->x.n_rx;
	}
	ret = perf_name_hint(o->prov, &hints->fabric_attr->prov_name);
	if (!ret)
		ret = perf_name_hint(o->domain, &hints->domain_attr->name);
	if (!ret)
		ret = perf_addr_hint(&o->src, &hints->addr_format,
				     &hints->src_addr, &hints->src_addrlen);
	if (!ret)
		ret = perf_addr_hint(&o->dest, &hints->addr_format,
				     &hints->dest_addr, &hints->dest_addrlen);
	if (!ret)
		ret = kofi_getinfo(perf->net, FI_VERSION(2, 1), NULL, NULL, 0,
				   hints, &perf->info, GFP_KERNEL);
	fi_freeinfo(hints);
	if (!ret && o->size > perf->info->ep_attr->max_msg_size)
		ret = -EMSGSIZE;
	return ret;
}

static int perf_cq_open(struct perf *perf)
{
	const struct kofi_perf_open *o = &perf->opts;
	struct kofi_cq_attr kattr = {
		.poll = o->poll == KOFI_PERF_WORKQUEUE ? KOFI_POLL_WORKQUEUE :
							 KOFI_POLL_SOFTIRQ,
		.done = true,
	};
	struct fi_cq_attr attr = {
		.size = 2 * (perf->x.n_tx + perf->x.n_rx + 1),
	};

	if (o->cpu >= 0) {
		kattr.flags = FI_AFFINITY;
		kattr.cpu = o->cpu;
	}
	return kofi_cq_open(perf->domain, &attr, &kattr, &perf->cq, perf);
}

/* Open domain, queue and endpoint, and post all receives. */
static int perf_ep_make(struct perf *perf, struct fi_info *info)
{
	int ret;

	perf->stage = "fi_domain";
	ret = fi_domain(perf->fabric, info, &perf->domain, perf);
	if (ret)
		return ret;
	perf->stage = "fi_cq_open";
	ret = perf_cq_open(perf);
	if (ret)
		return ret;
	if (!perf_connects(perf)) {
		perf->stage = "fi_av_open";
		ret = fi_av_open(perf->domain, NULL, &perf->av, perf);
		if (ret)
			return ret;
	}
	perf->stage = "fi_endpoint";
	ret = fi_endpoint(perf->domain, info, &perf->ep, perf);
	if (ret)
		return ret;
	perf->stage = "fi_ep_bind";
	ret = fi_ep_bind(perf->ep, &perf->eq->fid, 0);
	if (!ret && perf->av)
		ret = fi_ep_bind(perf->ep, &perf->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(perf->ep, &perf->cq->fid,
				 FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = kofi_ep_write_space(perf->ep, perf_write_space);
	if (ret)
		return ret;
	if (perf->opts.op == KOFI_PERF_OP_WRITEDATA) {
		ret = kofi_ep_remote_cqe(perf->ep, &perf->x.remote);
		/* not supported: the data consumes receives */
		if (ret && ret != -EOPNOTSUPP)
			return ret;
	}
	perf->stage = "fi_enable";
	ret = fi_enable(perf->ep);
	if (ret)
		return ret;
	perf->stage = "fi_recv";
	return perf_xfer_recv(perf);
}

static int perf_listen(struct perf *perf)
{
	int ret;

	perf->stage = "fi_passive_ep";
	ret = fi_passive_ep(perf->fabric, perf->info, &perf->pep, perf);
	if (ret)
		return ret;
	perf->stage = "fi_pep_bind";
	ret = fi_pep_bind(perf->pep, &perf->eq->fid, 0);
	if (ret)
		return ret;
	perf->stage = "fi_listen";
	return fi_listen(perf->pep);
}

static int perf_name(struct perf *perf, struct kofi_perf_addr *name)
{
	struct sockaddr_storage addr = {};
	size_t len = sizeof(addr);
	int ret;

	perf->stage = "fi_getname";
	ret = fi_getname(perf->pep ? &perf->pep->fid : &perf->ep->fid, &addr,
			 &len);
	if (ret)
		return ret;
	if (len > sizeof(name->addr))
		return -EAFNOSUPPORT;
	memcpy(name->addr, &addr, len);
	name->len = len;
	return 0;
}

/**
 * perf_ep_open - open the objects of a session, and start to listen or to
 * connect
 * @perf: the session
 * @opts: in: options; out: provider, domain and address of the endpoint
 *
 * Context: process; sleeps, but not for the peer.
 * Return: 0 or a negative error code of the step perf->stage.
 */
int perf_ep_open(struct perf *perf, struct kofi_perf_open *opts)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	const struct fi_info *info;
	int ret;

	ret = perf_getinfo(perf);
	if (ret)
		return ret;
	info = perf->info;
	perf->stage = "fi_fabric";
	ret = fi_fabric(info->fabric_attr, &perf->fabric, perf);
	if (ret)
		return ret;
	perf->stage = "fi_eq_open";
	ret = fi_eq_open(perf->fabric, &attr, &perf->eq, perf);
	if (ret)
		return ret;
	if (perf_connects(perf) && !perf_initiates(perf))
		ret = perf_listen(perf);
	else
		ret = perf_ep_make(perf, perf->info);
	if (ret)
		return ret;
	strscpy_pad(opts->prov, info->fabric_attr->prov_name,
		    sizeof(opts->prov));
	strscpy_pad(opts->domain, info->domain_attr->name,
		    sizeof(opts->domain));
	if (!perf_connects(perf) || !perf_initiates(perf))
		return perf_name(perf, &opts->name);
	perf->stage = "fi_connect";
	return fi_connect(perf->ep, perf->opts.dest.addr, NULL, 0);
}

/*
 * Get the next event, which must be @want. Further requests may arrive at a
 * target's port while it has an initiator; they are rejected.
 */
static int perf_event(struct perf *perf, u32 want, unsigned int timeout,
		      struct fi_eq_cm_entry *entry)
{
	struct fi_eq_err_entry err = {};
	ssize_t n;
	u32 event;

	for (;;) {
		n = fi_eq_sread(perf->eq, &event, entry, sizeof(*entry),
				timeout, 0);
		if (n == -EAGAIN)
			return -ETIMEDOUT;
		if (n == -FI_EAVAIL) {
			n = fi_eq_readerr(perf->eq, &err, 0);
			return n < 0 ? n : err.err ? -err.err : -EIO;
		}
		if (n < 0)
			return n;
		if (event == want)
			return 0;
		if (event != FI_CONNREQ)
			return event == FI_SHUTDOWN ? -ECONNRESET : -EPROTO;
		fi_reject(perf->pep, entry->info->handle, NULL, 0);
		fi_freeinfo(entry->info);
	}
}

static int perf_accept(struct perf *perf, unsigned int timeout)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = perf_event(perf, FI_CONNREQ, timeout, &entry);
	if (ret)
		return ret;
	ret = perf_ep_make(perf, entry.info);
	if (!ret)
		ret = fi_accept(perf->ep, NULL, 0);
	else if (!perf->ep)
		fi_reject(perf->pep, entry.info->handle, NULL, 0);
	fi_freeinfo(entry.info);
	return ret;
}

static int perf_insert(struct perf *perf, const struct kofi_perf_addr *peer)
{
	sa_family_t family;
	int err = 0;

	memcpy(&family, peer->addr, sizeof(family));
	if (peer->len != (family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					       sizeof(struct sockaddr_in)))
		return -EAFNOSUPPORT;
	if (fi_av_insert(perf->av, peer->addr, 1, &perf->peer, FI_SYNC_ERR,
			 &err) == 1)
		return 0;
	return err ? -err : -EINVAL;
}

/* Register the target's memory, in as many regions as the device needs. */
static int perf_register(struct perf *perf)
{
	const struct fi_info *info = perf->info;
	size_t len, off = 0, most = KOFI_PERF_SIZE_MAX;
	int ret;

	if (perf_initiates(perf) && !perf_pingpong(perf))
		return 0;
	if (info->domain_attr->mr_iov_limit < most / PAGE_SIZE)
		most = info->domain_attr->mr_iov_limit * PAGE_SIZE;
	for (; off < perf->opts.size; off += len) {
		len = min(most, perf->opts.size - off);
		if (!len || perf->n_mr == KOFI_PERF_REGIONS)
			return -EMSGSIZE;
		ret = fi_mr_reg(perf->domain, perf->x.mem + off, len,
				FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
				&perf->mr[perf->n_mr], perf);
		if (ret)
			return ret;
		perf->region[perf->n_mr].len = len;
		perf->n_mr++;
	}
	return 0;
}

static int perf_regions(struct perf *perf, struct kofi_perf_join *join)
{
	u32 i;
	int ret;

	if (!perf_is_message(perf)) {
		ret = perf_register(perf);
		if (ret)
			return ret;
	}
	join->count = perf->n_mr;
	for (i = 0; i < perf->n_mr; i++) {
		join->region[i].addr = kofi_mr_base(perf->mr[i]);
		join->region[i].len = perf->region[i].len;
		join->region[i].key = fi_mr_key(perf->mr[i]);
		if (join->region[i].key == FI_KEY_NOTAVAIL)
			return -ENOKEY;
	}
	return 0;
}

/**
 * perf_ep_join - wait for the peer
 * @perf: the session, open
 * @join: in: address of the peer, and a time limit; out: regions of the memory
 *
 * Context: process; sleeps.
 * Return: 0; -ETIMEDOUT if the caller must call again; or another negative
 * error code.
 */
int perf_ep_join(struct perf *perf, struct kofi_perf_join *join)
{
	bool initiates = perf_initiates(perf);
	struct fi_eq_cm_entry entry;
	int ret = 0;

	if (perf->state == PERF_OPENED && perf_connects(perf) && !initiates) {
		ret = perf_accept(perf, join->timeout);
		if (ret)
			return ret;
		perf->state = PERF_ACCEPTED;
	}
	if (perf->state < PERF_GREETING) {
		if (perf_connects(perf))
			ret = perf_event(perf, FI_CONNECTED, join->timeout,
					 &entry);
		else
			ret = perf_insert(perf, &join->peer);
		if (ret)
			return ret;
		WRITE_ONCE(perf->state, PERF_GREETING);
		perf_xfer_greet(perf);
	}
	ret = perf_xfer_greeted(perf, join->timeout);
	if (ret)
		return ret;
	return perf_regions(perf, join);
}

static void perf_close(struct fi_fid *fid)
{
	int ret = fi_close(fid);

	WARN_ONCE(ret, "fi_close() of class %zu: %d\n", fid->fclass, ret);
}

/**
 * perf_ep_close - close all objects of a session
 * @perf: the session
 *
 * The endpoint is closed first: that disconnects, completes outstanding
 * operations and waits for the last callback.
 *
 * Context: process; sleeps, but not for the network.
 */
void perf_ep_close(struct perf *perf)
{
	u32 i;

	/* the work item posts; after the transfers have finished, nothing queues it */
	perf_xfer_end(perf);
	cancel_work_sync(&perf->x.later);
	if (perf->ep)
		perf_close(&perf->ep->fid);
	for (i = 0; i < perf->n_mr; i++)
		perf_close(&perf->mr[i]->fid);
	if (perf->cq)
		perf_close(&perf->cq->fid);
	if (perf->av)
		perf_close(&perf->av->fid);
	if (perf->domain)
		perf_close(&perf->domain->fid);
	if (perf->pep)
		perf_close(&perf->pep->fid);
	if (perf->eq)
		perf_close(&perf->eq->fid);
	if (perf->fabric)
		perf_close(&perf->fabric->fid);
	fi_freeinfo(perf->info);
}
