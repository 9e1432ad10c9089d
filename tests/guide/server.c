// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Send back each message: a server for the clients of Documentation/porting.rst. */
#include <linux/container_of.h>
#include <linux/kofi/kofi.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "server.h"

#define MESSAGE	64

/**
 * struct conn - one connection
 * @node: in the list of connections
 * @domain: of the device
 * @cq: calls received() and sent()
 * @ep: the endpoint
 * @recv: completion entry of the receive
 * @send: completion entry of the send
 * @in: buffer of the receive
 * @out: buffer of the send
 * @len: bytes of @out that wait to be sent
 */
struct conn {
	struct list_head	node;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct kofi_cqe		recv;
	struct kofi_cqe		send;
	char			in[MESSAGE];
	char			out[MESSAGE];
	size_t			len;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_eq *eq;
static struct fid_pep *pep;
static DEFINE_MUTEX(lock);		/* protects conns, held while events are read */
static LIST_HEAD(conns);

static ssize_t listen(struct conn *c)
{
	return fi_recv(c->ep, c->in, sizeof(c->in), NULL, 0, &c->recv);
}

static void sent(struct fid_cq *cq, const struct kofi_wc *wc)
{
}

/* The write-space callback, too: a client may be quicker than FI_CONNECTED. */
static void answer(struct fid_ep *ep, void *context)
{
	struct conn *c = context;

	if (c->len && fi_send(ep, c->out, c->len, NULL, 0, &c->send) != -EAGAIN)
		c->len = 0;
}

/* A client has one request outstanding: @out is free. */
static void received(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct conn *c = container_of(wc->cqe, struct conn, recv);

	if (wc->err)
		return;
	c->len = wc->len;
	memcpy(c->out, c->in, c->len);
	if (!listen(c))
		answer(c->ep, c);
}

static void conn_free(struct conn *c)
{
	if (c->ep)
		fi_close(&c->ep->fid);
	if (c->cq)
		fi_close(&c->cq->fid);
	if (c->domain)
		fi_close(&c->domain->fid);
	list_del(&c->node);
	kfree(c);
}

static void conn_new(struct fi_info *from)
{
	static const struct kofi_cq_attr calls = { .poll = KOFI_POLL_SOFTIRQ, .done = true };
	struct conn *c = kzalloc(sizeof(*c), GFP_KERNEL);
	struct fi_cq_attr attr = {};
	int ret;

	if (!c) {
		fi_reject(pep, from->handle, NULL, 0);
		return;
	}
	list_add(&c->node, &conns);
	c->recv.done = received;
	c->send.done = sent;
	ret = fi_domain(fabric, from, &c->domain, c);
	if (ret)
		goto reject;
	ret = kofi_cq_open(c->domain, &attr, &calls, &c->cq, c);
	if (ret)
		goto reject;
	ret = fi_endpoint(c->domain, from, &c->ep, c);
	if (ret)
		goto reject;
	ret = fi_ep_bind(c->ep, &eq->fid, 0);
	if (ret)
		goto free;
	ret = fi_ep_bind(c->ep, &c->cq->fid, FI_TRANSMIT | FI_RECV);
	if (ret)
		goto free;
	ret = kofi_ep_write_space(c->ep, answer);
	if (ret)
		goto free;
	ret = fi_enable(c->ep);
	if (ret)
		goto free;
	ret = listen(c);
	if (ret)
		goto free;
	ret = fi_accept(c->ep, NULL, 0);
	if (ret)
		goto free;
	return;
reject:
	fi_reject(pep, from->handle, NULL, 0);
free:
	conn_free(c);
}

static void event(struct fid_eq *from, void *context)
{
	struct fi_eq_err_entry err = {};
	struct fi_eq_cm_entry cm;
	u32 number;
	ssize_t n;

	guard(mutex)(&lock);
	for (;;) {
		n = fi_eq_read(from, &number, &cm, sizeof(cm), 0);
		if (n == -FI_EAVAIL && fi_eq_readerr(from, &err, 0) > 0) {
			if (err.fid->fclass == FI_CLASS_EP)
				conn_free(err.context);
		} else if (n < 0) {
			return;
		} else if (number == FI_CONNREQ) {
			conn_new(cm.info);
			fi_freeinfo(cm.info);
		} else if (number == FI_SHUTDOWN) {
			conn_free(cm.fid->context);
		}
	}
}

void server_stop(void)
{
	struct conn *c, *next;

	scoped_guard(mutex, &lock) {
		if (pep)
			fi_close(&pep->fid);
		list_for_each_entry_safe(c, next, &conns, node)
			conn_free(c);
	}
	if (eq)
		fi_close(&eq->fid);
	if (fabric)
		fi_close(&fabric->fid);
	fi_freeinfo(info);
	pep = NULL;
	eq = NULL;
	fabric = NULL;
	info = NULL;
}

int server_start(const char *node, const char *port)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr attr = {};
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	ret = fi_getinfo(FI_VERSION(2, 1), node, port, FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	if (ret)
		goto stop;
	ret = fi_fabric(info->fabric_attr, &fabric, NULL);
	if (ret)
		goto stop;
	ret = kofi_eq_open(fabric, &attr, event, &eq, NULL);
	if (ret)
		goto stop;
	ret = fi_passive_ep(fabric, info, &pep, NULL);
	if (ret)
		goto stop;
	ret = fi_pep_bind(pep, &eq->fid, 0);
	if (ret)
		goto stop;
	ret = fi_listen(pep);
	if (ret)
		goto stop;
	return 0;
stop:
	server_stop();
	return ret;
}
