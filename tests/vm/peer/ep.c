// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Discovery, connections, the region, and taking completions and events.
 * Progress is made, and everything that happens is seen, in ep_progress().
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer.h"

/* Says what went wrong; without an error nothing. */
int fault(int err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return 0;
	fprintf(stderr, "kofi-peer: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, ": %s (%d)\n", fi_strerror(-err), err);
	return err;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static const char *ep_provider(const struct peer *p)
{
	if (p->verbs)
		return p->rdm ? "verbs;ofi_rxm" : "verbs";
	if (p->rxm)
		return "tcp;ofi_rxm";
	/* tcp has had datagrams of its own since 2.0 */
	return p->rdm && FI_VERSION_LT(fi_version(), FI_VERSION(2, 0)) ? "net" :
									 "tcp";
}

static int ep_getinfo(struct peer *p, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = p->rdm ? FI_EP_RDM : FI_EP_MSG;
	if (p->rdm || p->srx_wanted)
		hints->caps |= FI_TAGGED;
	if (p->srx_wanted)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->fabric_attr->prov_name = strdup(ep_provider(p));
	hints->mode = FI_RX_CQ_DATA;
	/* no bit: keys are ours, addresses are offsets */
	hints->domain_attr->mr_mode = p->verbs ? FI_MR_LOCAL | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR | FI_MR_ALLOCATED : 0;
	ret = fi_getinfo(FI_VERSION(1, 17), p->node, p->port, flags, hints,
			 &p->info);
	fi_freeinfo(hints);
	if (!ret)
		/* also below ofi_rxm */
		p->iwarp = p->verbs && !p->info->domain_attr->cq_data_size;
	return fault(ret, "fi_getinfo");
}

static int ep_fabric(struct peer *p)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	int ret;

	ret = fi_fabric(p->info->fabric_attr, &p->fabric, p);
	return fault(ret ? ret : fi_eq_open(p->fabric, &attr, &p->eq, p),
		     "fabric and event queue");
}

/* What operations take from and put to; the peer cannot reach it. */
static int ep_local(struct peer *p)
{
	uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	int ret;

	if (!(p->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	ret = fi_mr_reg(p->domain, p->local, KRMA_REGION, access, 0, 0, 0,
			&p->local_mr, p);
	if (!ret)
		ret = fi_mr_reg(p->domain, &p->msgs, sizeof(p->msgs), access, 0,
				0, 0, &p->msg_mr, p);
	return fault(ret, "registering local memory");
}

static int ep_domain(struct peer *p, struct fi_info *info)
{
	struct fi_cq_attr attr = {
		.size = 1024, .format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_UNSPEC,
	};
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	int ret;

	if (p->domain)
		return 0;
	ret = fi_domain(p->fabric, info, &p->domain, p);
	if (!ret)
		ret = fi_cq_open(p->domain, &attr, &p->cq, p);
	if (!ret && p->rdm)
		ret = fi_av_open(p->domain, &av_attr, &p->av, p);
	if (!ret && p->srx_wanted)
		ret = fi_srx_context(p->domain, info->rx_attr, &p->srx, p);
	return fault(ret, "domain, completion queue, shared context") ?:
	       ep_local(p);
}

static int ep_open(struct peer *p, struct fi_info *info)
{
	int ret;

	if (p->rdm && p->ep)
		return 0;
	ret = ep_domain(p, info);
	if (ret)
		return ret;
	p->connected = false;
	p->down = false;
	ret = fi_endpoint(p->domain, info, &p->ep, p);
	if (!ret)
		ret = fi_ep_bind(p->ep, p->rdm ? &p->av->fid : &p->eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret && p->srx)
		ret = fi_ep_bind(p->ep, &p->srx->fid, 0);
	if (!ret)
		ret = fi_enable(p->ep);
	return fault(ret, "opening an endpoint") ?: cmd_expect(p);
}

/* What the completion of an operation says. */
static void ep_complete(struct op *op, int err, uint64_t flags, size_t len)
{
	if (!err && flags != op->flags)
		err = fault(-EPROTO, "completion with flags %#llx, not %#llx",
			    (unsigned long long)flags,
			    (unsigned long long)op->flags);
	if (!err && (flags & FI_RECV) && len != op->len)
		err = fault(-EMSGSIZE, "%zu bytes, not %zu", len, op->len);
	op->err = err;
	if (op->spoil)
		memset(op->spoil, 0x5a, op->len);
	op->busy = false;
}

static int ep_completions(struct peer *p, int timeout)
{
	struct fi_cq_err_entry err = {};
	struct fi_cq_data_entry e;
	ssize_t n;

	n = fi_cq_sread(p->cq, &e, 1, NULL, timeout);
	if (n == -FI_EAGAIN || n == -EINTR || n == -FI_ETIMEDOUT)
		return 0;
	if (n == -FI_EAVAIL) {
		if (fi_cq_readerr(p->cq, &err, 0) != 1)
			return 0;
		if (err.op_context)
			ep_complete(err.op_context, -err.err, err.flags,
				    err.len);
		return 0;
	}
	if (n < 0)
		return fault(n, "reading the completion queue");
	if (e.flags & FI_REMOTE_WRITE) {
		if (e.data == p->data_next)
			p->data_next++;
		else
			p->data_bad++;
	} else {
		/* how much of them is said differs between versions */
		ep_complete(e.op_context, 0,
			    e.flags & (FI_SEND | FI_RECV | FI_READ | FI_WRITE |
				       FI_RMA | FI_MSG | FI_TAGGED), e.len);
	}
	return 1;
}

static int ep_events(struct peer *p, int timeout)
{
	struct fi_eq_err_entry err = {};
	struct fi_eq_cm_entry e;
	uint32_t event;
	ssize_t n;

	n = fi_eq_sread(p->eq, &event, &e, sizeof(e), timeout, 0);
	if (n == -FI_EAGAIN || n == -EINTR || n == -FI_ETIMEDOUT)
		return 0;
	if (n == -FI_EAVAIL) {
		fi_eq_readerr(p->eq, &err, 0);
		return fault(-err.err, "connecting");
	}
	if (n < 0)
		return fault(n, "reading the event queue");
	if (event == FI_CONNREQ)
		p->request = e.info;
	else if (event == FI_CONNECTED && p->ep && e.fid == &p->ep->fid)
		p->connected = true;
	else if (event == FI_SHUTDOWN && p->ep && e.fid == &p->ep->fid)
		p->down = true;
	return 0;
}

/* A bit of progress; waits a moment if there is nothing to do. */
int ep_progress(struct peer *p)
{
	int n = p->cq ? ep_completions(p, p->ep ? 20 : 0) : 0;

	if (n)
		return n < 0 ? n : 0;
	return p->rdm ? 0 : ep_events(p, p->ep ? 0 : 100);
}

static int ep_await(struct peer *p)
{
	double end = now() + TIMEOUT;
	int ret = 0;

	while (!ret && !p->connected && !p->down && now() < end)
		ret = ep_progress(p);
	if (!ret && !p->connected)
		ret = fault(-ETIMEDOUT, "no connection");
	return ret;
}

/* An endpoint that does not connect is not told. */
int ep_wait_down(struct peer *p)
{
	double end = now() + TIMEOUT;
	int ret = 0;

	if (p->rdm)
		return 0;
	while (!ret && !p->down && now() < end)
		ret = ep_progress(p);
	if (!ret && !p->down)
		ret = fault(-ETIMEDOUT, "the connection does not end");
	return ret;
}

int ep_listen(struct peer *p)
{
	int ret = ep_getinfo(p, FI_SOURCE);

	if (!ret)
		ret = ep_fabric(p);
	if (ret)
		return ret;
	if (p->rdm)
		return ep_open(p, p->info) ?: name_expect(p);
	ret = fi_passive_ep(p->fabric, p->info, &p->pep, p);
	if (!ret)
		ret = fi_pep_bind(p->pep, &p->eq->fid, 0);
	return fault(ret ? ret : fi_listen(p->pep), "listening");
}

static int ep_insert(struct peer *p, const void *addr)
{
	int n = fi_av_insert(p->av, addr, 1, &p->to, 0, NULL);

	return fault(n == 1 ? 0 : -EINVAL, "fi_av_insert");
}

int ep_accept(struct peer *p)
{
	struct fi_info *info;
	int ret = 0;

	while (!ret && !p->request && !name_here(p))
		ret = ep_progress(p);
	if (ret)
		return ret;
	if (p->rdm)
		return ep_insert(p, p->msgs.name) ?: name_expect(p);
	info = p->request;
	p->request = NULL;
	ret = ep_open(p, info);
	if (!ret)
		ret = fault(fi_accept(p->ep, NULL, 0), "fi_accept");
	fi_freeinfo(info);
	return ret ? ret : ep_await(p);
}

int ep_find(struct peer *p)
{
	int ret = ep_getinfo(p, 0);

	return ret ? ret : ep_fabric(p);
}

int ep_connect(struct peer *p)
{
	int ret = ep_open(p, p->info);

	if (!ret && p->rdm)
		return ep_insert(p, p->info->dest_addr) ?: name_send(p);
	if (!ret)
		ret = fault(fi_connect(p->ep, p->info->dest_addr, NULL, 0),
			    "fi_connect");
	return ret ? ret : ep_await(p);
}

/* Our region again, with these rights, and another key than before. */
int ep_region(struct peer *p, uint64_t access)
{
	if (p->mr)
		fi_close(&p->mr->fid);
	p->mr = NULL;
	return fault(fi_mr_reg(p->domain, p->region, KRMA_REGION, access, 0,
			       0x70656572ULL << 16 | p->keys++, 0, &p->mr, p),
		     "fi_mr_reg");
}

/* What a peer names as the address of the region's first byte. */
uint64_t ep_base(struct peer *p)
{
	return p->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
	       (uintptr_t)p->region : 0;
}

/*
 * What siw has flushed by then stays in the queue when the endpoint is closed. The
 * receive for the next connection has the same context.
 */
static void ep_forget(struct peer *p)
{
	struct fi_cq_err_entry err = {};
	struct fi_cq_data_entry e;
	ssize_t n;

	do {
		n = fi_cq_read(p->cq, &e, 1);
		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(p->cq, &err, 0);
	} while (n > 0);
}

void ep_hangup(struct peer *p)
{
	if (p->rdm)
		return;
	if (p->ep) {
		fi_close(&p->ep->fid);
		if (p->iwarp && !p->srx)
			ep_forget(p);
	}
	p->ep = NULL;
	/* a shared context keeps its receives */
	if (!p->srx)
		p->expecting = false;
}

void ep_close(struct peer *p)
{
	struct fid *fids[] = {
		/* that of a connection has been closed by then */
		p->rdm && p->ep ? &p->ep->fid : NULL,
		p->av ? &p->av->fid : NULL,
		p->srx ? &p->srx->fid : NULL, p->mr ? &p->mr->fid : NULL,
		p->local_mr ? &p->local_mr->fid : NULL,
		p->msg_mr ? &p->msg_mr->fid : NULL,
		p->cq ? &p->cq->fid : NULL, p->domain ? &p->domain->fid : NULL,
		p->pep ? &p->pep->fid : NULL, p->eq ? &p->eq->fid : NULL,
		p->fabric ? &p->fabric->fid : NULL,
	};
	size_t i;

	ep_hangup(p);
	for (i = 0; i < sizeof(fids) / sizeof(fids[0]); i++) {
		if (fids[i])
			fault(fi_close(fids[i]), "fi_close of object %zu", i);
	}
	fi_freeinfo(p->info);
}
