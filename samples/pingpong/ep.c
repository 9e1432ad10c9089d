// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The endpoint of a run, from discovery to the established connection, and
 * closing all objects.
 *
 * The order is the same as in any libfabric program. A server discovers an info
 * for the address its client has used, listens, and opens domain, queue and
 * endpoint for the request that arrives. A client discovers an info for the
 * server's address. Both post the first receive before the connection exists,
 * so that every message finds a receive. With endpoints that do not connect,
 * both sides exchange addresses instead.
 *
 * All open objects are in the run. pp_ep_close() closes them, children before
 * parents; the other functions here do not unwind.
 */
#include <linux/in6.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pingpong.h"

static size_t pp_ep_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

static u32 pp_ep_addr_format(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

/*
 * Discover an info by hints alone. fi_freeinfo() frees the memory that an info
 * points to, so all pointers in the hints are copies.
 */
static int pp_ep_getinfo(struct pp_run *run,
			 const struct sockaddr_storage *src,
			 const struct sockaddr_storage *dest)
{
	const struct pp_opts *opts = &run->opts;
	struct fi_info *hints;
	int ret = -ENOMEM;

	run->stage = "fi_getinfo";
	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = opts->tagged ? FI_TAGGED : FI_MSG;
	hints->ep_attr->type = opts->type;
	if (opts->prov[0]) {
		hints->fabric_attr->prov_name = kstrdup(opts->prov, GFP_KERNEL);
		if (!hints->fabric_attr->prov_name)
			goto free_hints;
	}
	if (opts->domain[0]) {
		hints->domain_attr->name = kstrdup(opts->domain, GFP_KERNEL);
		if (!hints->domain_attr->name)
			goto free_hints;
	}
	if (src) {
		hints->addr_format = pp_ep_addr_format(src);
		hints->src_addrlen = pp_ep_addr_len(src);
		hints->src_addr = kmemdup(src, hints->src_addrlen, GFP_KERNEL);
		if (!hints->src_addr)
			goto free_hints;
	}
	if (dest) {
		hints->addr_format = pp_ep_addr_format(dest);
		hints->dest_addrlen = pp_ep_addr_len(dest);
		hints->dest_addr = kmemdup(dest, hints->dest_addrlen,
					   GFP_KERNEL);
		if (!hints->dest_addr)
			goto free_hints;
	}
	ret = kofi_getinfo(run->net, FI_VERSION(2, 1), NULL, NULL, 0, hints,
			   &run->info, GFP_KERNEL);
free_hints:
	fi_freeinfo(hints);
	return ret;
}

/* Open fabric and event queue, which a connection needs before it has a domain. */
static int pp_ep_fabric(struct pp_run *run)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	int ret;

	run->stage = "fi_fabric";
	ret = fi_fabric(run->info->fabric_attr, &run->fabric, run);
	if (ret)
		return ret;
	run->stage = "fi_eq_open";
	return fi_eq_open(run->fabric, &attr, &run->eq, run);
}

/*
 * Enable keepalive: a dead peer that must send next is detected only by probes.
 * Nothing is needed where the provider probes by default, or cannot probe.
 */
static int pp_ep_keepalive(struct fid_ep *ep)
{
	unsigned int idle = 0;
	int ret;

	ret = fi_get_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE, &idle);
	if (ret || idle)
		return ret;
	idle = PP_KEEP_IDLE * MSEC_PER_SEC;
	ret = fi_set_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE, &idle);
	return ret == -EOPNOTSUPP ? 0 : ret;
}

/* Open domain, completion queue and endpoint, and post the first receive. */
static int pp_ep_open(struct pp_run *run, struct fi_info *info)
{
	struct pp_data *data = &run->data;
	int ret;

	run->stage = "fi_domain";
	ret = fi_domain(run->fabric, info, &run->domain, run);
	if (ret)
		return ret;
	run->stage = "fi_cq_open";
	ret = pp_data_cq_open(run);
	if (ret)
		return ret;
	if (!pp_connects(&run->opts)) {
		run->stage = "fi_av_open";
		ret = fi_av_open(run->domain, NULL, &run->av, run);
		if (ret)
			return ret;
	}
	run->stage = "fi_endpoint";
	ret = fi_endpoint(run->domain, info, &data->ep, run);
	if (ret)
		return ret;
	run->stage = "fi_ep_bind";
	ret = fi_ep_bind(data->ep, &run->eq->fid, 0);
	if (ret)
		return ret;
	if (!pp_connects(&run->opts))
		ret = fi_ep_bind(data->ep, &run->av->fid, 0);
	if (ret)
		return ret;
	ret = fi_ep_bind(data->ep, &data->cq->fid, FI_TRANSMIT | FI_RECV);
	if (ret)
		return ret;
	run->stage = "kofi_ep_write_space";
	ret = kofi_ep_write_space(data->ep, pp_data_write_space);
	if (ret)
		return ret;
	run->stage = "keepalive";
	if (run->opts.type != FI_EP_DGRAM)
		ret = pp_ep_keepalive(data->ep);
	if (ret)
		return ret;
	run->stage = "fi_enable";
	ret = fi_enable(data->ep);
	if (ret)
		return ret;
	data->inject_size = info->tx_attr->inject_size;
	run->stage = "fi_recv";
	return pp_data_recv(data);
}

/* Get the error behind -FI_EAVAIL. */
static int pp_ep_event_err(struct pp_run *run)
{
	struct fi_eq_err_entry err = {};
	ssize_t n;

	n = fi_eq_readerr(run->eq, &err, 0);
	if (n < 0)
		return n;
	return err.err ? -err.err : -EIO;
}

/*
 * Get the next event, which must be @want. Further requests may arrive at a
 * server's data port while it has a client; they are rejected.
 */
static int pp_ep_event(struct pp_run *run, u32 want,
		       struct fi_eq_cm_entry *entry)
{
	ssize_t n;
	u32 event;

	for (;;) {
		n = fi_eq_sread(run->eq, &event, entry, sizeof(*entry),
				pp_timeout_ms(run), 0);
		if (signal_pending(current)) {
			if (n > 0 && event == FI_CONNREQ)
				fi_freeinfo(entry->info);
			return -EINTR;
		}
		if (n == -EAGAIN)
			return -ETIMEDOUT;
		if (n == -FI_EAVAIL)
			return pp_ep_event_err(run);
		if (n < 0)
			return n;
		if (event == want)
			return 0;
		if (event != FI_CONNREQ)
			return event == FI_SHUTDOWN ? -ECONNRESET : -EPROTO;
		fi_reject(run->pep, entry->info->handle, NULL, 0);
		fi_freeinfo(entry->info);
	}
}

/**
 * pp_ep_listen - server: prepare for the client's data connection
 * @run: the run
 * @local: local address of the control connection
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code; -ENODATA if no provider offers it.
 */
int pp_ep_listen(struct pp_run *run, const struct sockaddr_storage *local)
{
	struct sockaddr_storage src = *local;
	bool named = run->opts.domain[0] && !run->opts.source[0];
	int ret;

	/* both address formats have the port at the same offset; any port will do */
	((struct sockaddr_in *)&src)->sin_port = 0;
	/* a domain chosen by the user has an address of its own */
	ret = pp_ep_getinfo(run, named ? NULL : &src, NULL);
	if (ret)
		return ret;
	ret = pp_ep_fabric(run);
	if (ret)
		return ret;
	if (!pp_connects(&run->opts))
		return pp_ep_open(run, run->info);
	run->stage = "fi_passive_ep";
	ret = fi_passive_ep(run->fabric, run->info, &run->pep, run);
	if (ret)
		return ret;
	run->stage = "fi_pep_bind";
	ret = fi_pep_bind(run->pep, &run->eq->fid, 0);
	if (ret)
		return ret;
	run->stage = "fi_listen";
	return fi_listen(run->pep);
}

/**
 * pp_ep_name - get the address of a server's listener or of an endpoint that
 * does not connect
 * @run: the run
 * @addr: set to the address
 *
 * Context: the run's thread.
 * Return: 0 or a negative error code.
 */
int pp_ep_name(struct pp_run *run, struct sockaddr_storage *addr)
{
	size_t len = sizeof(*addr);

	run->stage = "fi_getname";
	memset(addr, 0, sizeof(*addr));
	return fi_getname(run->pep ? &run->pep->fid : &run->data.ep->fid, addr,
			  &len);
}

/**
 * pp_ep_insert - insert the peer of an endpoint that does not connect
 * @run: the run
 * @peer: address of the peer
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code.
 */
int pp_ep_insert(struct pp_run *run, const struct sockaddr_storage *peer)
{
	int err = 0;

	run->stage = "fi_av_insert";
	if (fi_av_insert(run->av, peer, 1, &run->data.peer, FI_SYNC_ERR,
			 &err) == 1)
		return 0;
	return err ? -err : -EINVAL;
}

/**
 * pp_ep_accept - server: accept the client's data connection
 * @run: the run
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code.
 */
int pp_ep_accept(struct pp_run *run)
{
	struct fi_eq_cm_entry entry;
	int ret;

	run->stage = "connection request";
	ret = pp_ep_event(run, FI_CONNREQ, &entry);
	if (ret)
		return ret;
	ret = pp_ep_open(run, entry.info);
	if (!ret) {
		run->stage = "fi_accept";
		ret = fi_accept(run->data.ep, NULL, 0);
	} else if (!run->data.ep) {
		fi_reject(run->pep, entry.info->handle, NULL, 0);
	}
	fi_freeinfo(entry.info);
	if (ret)
		return ret;
	run->stage = "connection";
	return pp_ep_event(run, FI_CONNECTED, &entry);
}

/**
 * pp_ep_connect - client: open the endpoint and, if it connects, the data
 * connection
 * @run: the run
 * @peer: address of the server's listener or endpoint
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code; -ENODATA if no provider reaches the
 * server.
 */
int pp_ep_connect(struct pp_run *run, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage src;
	struct fi_eq_cm_entry entry;
	bool bound = run->opts.source[0];
	int ret;

	if (bound) {
		/* the local address of the control connection, with any port */
		ret = pp_ctrl_name(run, &src);
		if (ret)
			return ret;
		((struct sockaddr_in *)&src)->sin_port = 0;
	}
	ret = pp_ep_getinfo(run, bound ? &src : NULL, peer);
	if (ret)
		return ret;
	ret = pp_ep_fabric(run);
	if (ret)
		return ret;
	ret = pp_ep_open(run, run->info);
	if (ret || !pp_connects(&run->opts))
		return ret;
	run->stage = "fi_connect";
	ret = fi_connect(run->data.ep, peer, NULL, 0);
	if (ret)
		return ret;
	run->stage = "connection";
	return pp_ep_event(run, FI_CONNECTED, &entry);
}

static void pp_ep_close_fid(struct fi_fid *fid)
{
	int ret = fi_close(fid);

	WARN_ONCE(ret, "fi_close() of class %zu: %d\n", fid->fclass, ret);
}

/**
 * pp_ep_close - close everything the run has opened
 * @run: the run
 *
 * Closing an endpoint terminates its connection, completes outstanding
 * operations and waits for the last callback. Afterwards all objects that
 * callbacks use can be freed.
 *
 * Context: the run's thread; sleeps, but not for the network.
 */
void pp_ep_close(struct pp_run *run)
{
	struct pp_data *data = &run->data;

	if (data->ep)
		pp_ep_close_fid(&data->ep->fid);
	if (data->cq)
		pp_ep_close_fid(&data->cq->fid);
	if (run->av)
		pp_ep_close_fid(&run->av->fid);
	if (run->domain)
		pp_ep_close_fid(&run->domain->fid);
	if (run->pep)
		pp_ep_close_fid(&run->pep->fid);
	if (run->eq)
		pp_ep_close_fid(&run->eq->fid);
	if (run->fabric)
		pp_ep_close_fid(&run->fabric->fid);
	fi_freeinfo(run->info);
}
