// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client over kOFI: what any client in the kernel does, in several variants.
 * There are three providers, and endpoints that are connected or that send reliable
 * datagrams, tagged or not. Completions are called back in softirq context, or
 * read by a thread that sleeps on the queue as a libfabric program in userspace
 * does. What is sent is given by address, or as pages, which are then
 * copied into the socket or not.
 *
 * Each side has an endpoint and a completion queue; fabric, domain and event
 * queue are shared, unless the sides are in two network namespaces. To a side in
 * another kernel the connection's private data say where the memory is.
 */
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <linux/kofi/backport.h>

#include "bench.h"

#define BENCH_WAIT_MS	60000
#define BENCH_BATCH	16

/**
 * struct bench_kofi_way - a variant
 * @provider: whose endpoints they are
 * @write_flags: of writes, which are to end when the bytes are where they belong,
 *	as a read does, where the provider knows
 * @reads: threads read the queues
 * @pages: what is sent is a list of pages
 * @zerocopy: which are not copied
 * @rdm: the endpoints do not connect, they send reliable datagrams
 * @tagged: and messages with tags
 */
struct bench_kofi_way {
	const char	*provider;
	u64		write_flags;
	bool		reads;
	bool		pages;
	bool		zerocopy;
	bool		rdm;
	bool		tagged;
};

/**
 * struct bench_kofi_memory - what a side says of its memory to one elsewhere
 * @addr: address of the first byte
 * @key: its key
 */
struct bench_kofi_memory {
	__be64	addr;
	__be64	key;
};

/* An event of the connection manager with its private data */
#define BENCH_EVENT	(sizeof(struct fi_eq_cm_entry) + \
			 sizeof(struct bench_kofi_memory))

/**
 * struct bench_kofi_net - what is opened once in each network namespace
 * @net: the namespace
 * @info: what discovery has found
 * @fabric: opened with it
 * @domain: opened with it
 * @eq: events of connections
 */
struct bench_kofi_net {
	struct net		*net;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
};

/**
 * struct bench_kofi_side - a side's endpoint
 * @side: the side
 * @way: the variant
 * @net: where it is
 * @cq: its completions
 * @ep: the endpoint
 * @av: of one that does not connect
 * @dest: what it calls its peer
 * @mr: what the peer's xmit access; all of it by the first one, if the peer is
 *	elsewhere
 * @remote: where that of this side's xmit is, as a peer would have said
 * @peer: the other one's
 * @given: what is sent is given as pages, not by its address
 * @pages: the pages, of each of the side's xmit
 * @unmatched: context of receives that nothing matches
 * @nothing: their memory
 * @reader: thread that reads @cq
 * @stop: it shall end
 */
struct bench_kofi_side {
	struct bench_side	*side;
	const struct bench_kofi_way *way;
	struct bench_kofi_net	*net;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_av		*av;
	fi_addr_t		dest;
	struct fid_mr		*mr[BENCH_WINDOW_MAX];
	struct fi_rma_iov	remote[BENCH_WINDOW_MAX];
	struct bench_kofi_side	*peer;
	bool			given;
	struct sg_table		pages[BENCH_WINDOW_MAX];
	struct kofi_cqe		unmatched;
	u64			nothing;
	struct task_struct	*reader;
	bool			stop;
};

struct bench_kofi {
	const struct bench_kofi_way *way;
	struct bench_run	*run;
	struct bench_kofi_net	net[2];
	struct fid_pep		*pep;
	struct bench_kofi_side	side[2];
};

/* ------------------------------------------------------------- completions */

static void bench_kofi_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	bench_done(container_of(wc->cqe, struct bench_op, cqe), -wc->err,
		   wc->len);
}

static int bench_kofi_read_err(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = {};
	ssize_t n = fi_cq_readerr(cq, &err, 0);

	if (n > 0)
		bench_done(container_of(err.op_context, struct bench_op, cqe),
			   -err.err, 0);
	return n < 0 ? n : 0;
}

static int bench_kofi_reader(void *arg)
{
	struct bench_kofi_side *ks = arg;
	struct fi_cq_msg_entry entries[BENCH_BATCH];

	while (!READ_ONCE(ks->stop)) {
		ssize_t n, i;

		n = fi_cq_sread(ks->cq, entries, BENCH_BATCH, NULL,
				BENCH_WAIT_MS);
		for (i = 0; i < n; i++)
			bench_done(container_of(entries[i].op_context,
						struct bench_op, cqe), 0,
				   entries[i].len);
		if (n == -FI_EAVAIL)
			n = bench_kofi_read_err(ks->cq);
		if (n < 0 && n != -EAGAIN)
			bench_fail(ks->side->run, n);
	}
	return 0;
}

/* What an operation accesses: the device's regions are no longer than that. */
static const struct fi_rma_iov *
bench_kofi_remote(const struct bench_kofi_side *ks, const struct bench_op *op)
{
	return &ks->remote[op - ks->side->xmit];
}

/* Of what is measured: the word at the end of writes is not. */
static struct sg_table *bench_kofi_pages(struct bench_kofi_side *ks,
					 const struct bench_op *op)
{
	return ks->given && op->kind == ks->side->run->kind ?
	       &ks->pages[op - ks->side->xmit] : NULL;
}

static noinline int bench_kofi_send_pages(struct bench_kofi_side *ks,
					  struct bench_op *op,
					  const struct sg_table *table)
{
	const struct fi_msg msg = {
		.msg_sgl = table->sgl, .iov_count = table->nents,
		.addr = ks->dest, .context = &op->cqe, .vec = KOFI_SGL,
	};

	return fi_sendmsg(ks->ep, &msg, FI_COMPLETION);
}

static noinline int bench_kofi_send_more(struct bench_kofi_side *ks,
					 struct bench_op *op)
{
	const struct kvec iov = { .iov_base = op->buf, .iov_len = op->len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = ks->dest,
		.context = &op->cqe,
	};

	return fi_sendmsg(ks->ep, &msg, FI_COMPLETION | FI_MORE);
}

/*
 * Each place of the window has a tag of its own: messages that were stored may
 * complete after later ones, and what has arrived is compared by its place.
 */
static u64 bench_kofi_tag(const struct bench_op *op)
{
	const struct bench_side *side = op->side;

	return op - (op->kind == BENCH_RECV ? side->recv : side->xmit);
}

static noinline int bench_kofi_tsend(struct bench_kofi_side *ks,
				     struct bench_op *op)
{
	const struct kvec iov = { .iov_base = op->buf, .iov_len = op->len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = ks->dest,
		.tag = bench_kofi_tag(op), .context = &op->cqe,
	};

	return fi_tsendmsg(ks->ep, &msg, FI_COMPLETION |
					 (bench_more(op) ? FI_MORE : 0));
}

static int bench_kofi_send(struct bench_kofi_side *ks, struct bench_op *op)
{
	const struct sg_table *table = bench_kofi_pages(ks, op);

	if (ks->way->tagged)
		return bench_kofi_tsend(ks, op);
	if (table)
		return bench_kofi_send_pages(ks, op, table);
	if (bench_more(op))
		return bench_kofi_send_more(ks, op);
	return fi_send(ks->ep, op->buf, op->len, NULL, ks->dest, &op->cqe);
}

static int bench_kofi_recv(struct bench_kofi_side *ks, struct bench_op *op)
{
	if (ks->way->tagged)
		return fi_trecv(ks->ep, op->buf, op->len, NULL, FI_ADDR_UNSPEC,
				bench_kofi_tag(op), 0, &op->cqe);
	return fi_recv(ks->ep, op->buf, op->len, NULL, FI_ADDR_UNSPEC,
		       &op->cqe);
}

static int bench_kofi_write(struct bench_kofi_side *ks, struct bench_op *op)
{
	struct sg_table *table = bench_kofi_pages(ks, op);
	const struct kvec iov = { .iov_base = op->buf, .iov_len = op->len };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1,
		.rma_iov = bench_kofi_remote(ks, op), .rma_iov_count = 1,
		.addr = ks->dest, .context = &op->cqe,
	};

	if (table) {
		msg.vec = KOFI_SGL;
		msg.msg_sgl = table->sgl;
		msg.iov_count = table->nents;
	}
	return fi_writemsg(ks->ep, &msg, ks->way->write_flags |
					 (bench_more(op) ? FI_MORE : 0));
}

static noinline int bench_kofi_read_more(struct bench_kofi_side *ks,
					 struct bench_op *op)
{
	const struct kvec iov = { .iov_base = op->buf, .iov_len = op->len };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1,
		.rma_iov = bench_kofi_remote(ks, op), .rma_iov_count = 1,
		.addr = ks->dest, .context = &op->cqe,
	};

	return fi_readmsg(ks->ep, &msg, FI_COMPLETION | FI_MORE);
}

static int bench_kofi_read(struct bench_kofi_side *ks, struct bench_op *op)
{
	const struct fi_rma_iov *remote = bench_kofi_remote(ks, op);

	if (bench_more(op))
		return bench_kofi_read_more(ks, op);
	return fi_read(ks->ep, op->buf, op->len, NULL, ks->dest, remote->addr,
		       remote->key, &op->cqe);
}

static int bench_kofi_post(struct bench_op *op)
{
	struct bench_kofi_side *ks = op->side->priv;

	switch (op->kind) {
	case BENCH_SEND:
		return bench_kofi_send(ks, op);
	case BENCH_RECV:
		return bench_kofi_recv(ks, op);
	case BENCH_WRITE:
		return bench_kofi_write(ks, op);
	case BENCH_READ:
		return bench_kofi_read(ks, op);
	default:
		return -EINVAL;
	}
}

/* -------------------------------------------------------------- connections */

static int bench_kofi_event(struct fid_eq *eq, u32 want, fid_t fid,
			    struct fi_eq_cm_entry *entry)
{
	ssize_t n;
	u32 event;

	n = fi_eq_sread(eq, &event, entry, BENCH_EVENT, BENCH_WAIT_MS, 0);
	if (n < 0)
		return n;
	return event == want && (!fid || entry->fid == fid) ? 0 : -EPROTO;
}

static int bench_kofi_discover(const struct bench_kofi_way *way,
			       struct bench_kofi_net *kn,
			       const struct sockaddr_in *addr, u64 caps,
			       const struct bench_run *run)
{
	struct fi_info *hints;
	int err = -ENOMEM;

	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = caps;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	hints->ep_attr->type = way->rdm ? FI_EP_RDM : FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addrlen = sizeof(*addr);
	hints->src_addr = kmemdup(addr, sizeof(*addr), GFP_KERNEL);
	hints->fabric_attr->prov_name = kstrdup(way->provider, GFP_KERNEL);
	/* receives of kofi_rxm are buffers for packets, which may be many of a message */
	if (!way->rdm) {
		hints->tx_attr->size = bench_queue_size(run);
		hints->rx_attr->size = bench_queue_size(run);
	}
	if (run->posted)
		hints->rx_attr->size = run->posted + 2 * BENCH_WINDOW_MAX;
	if (hints->src_addr && hints->fabric_attr->prov_name)
		err = kofi_getinfo(kn->net, FI_VERSION(2, 1), NULL, NULL, 0,
				   hints, &kn->info, GFP_KERNEL);
	fi_freeinfo(hints);
	return err;
}

static int bench_kofi_net(const struct bench_kofi_way *way,
			  struct bench_kofi_net *kn,
			  const struct sockaddr_in *addr, u64 caps,
			  const struct bench_run *run)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	int err;

	err = bench_kofi_discover(way, kn, addr, caps, run);
	if (err)
		return err;
	err = fi_fabric(kn->info->fabric_attr, &kn->fabric, NULL);
	if (err)
		return err;
	err = fi_eq_open(kn->fabric, &attr, &kn->eq, NULL);
	if (err)
		return err;
	return fi_domain(kn->fabric, kn->info, &kn->domain, NULL);
}

static int bench_kofi_cq(struct bench_kofi_side *ks)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ,
		.done = true,
	};
	const struct bench_run *run = ks->side->run;
	struct fi_cq_attr attr = {
		.size = 2 * bench_queue_size(run) + run->posted,
	};

	if (!ks->way->reads)
		return kofi_cq_open(ks->net->domain, &attr, &kattr, &ks->cq,
				    NULL);
	attr.format = FI_CQ_FORMAT_MSG;
	attr.wait_obj = FI_WAIT_UNSPEC;
	return fi_cq_open(ks->net->domain, &attr, &ks->cq, NULL);
}

static int bench_kofi_reg(struct bench_kofi_side *ks, u32 i, u64 off,
			  size_t len)
{
	return fi_mr_reg(ks->net->domain, ks->side->mem + off, len,
			 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &ks->mr[i],
			 NULL);
}

static int bench_kofi_mr(struct bench_kofi_side *ks)
{
	struct bench_side *side = ks->side;
	u32 i;

	if (!ks->peer->side->here)
		return bench_kofi_reg(ks, 0, 0, 2 * side->half);
	for (i = 0; i < side->run->window; i++) {
		/* the sides are alike, so this is what the peer's has */
		const struct bench_op *op = &side->xmit[i];
		int err = bench_kofi_reg(ks, i, op->off, op->len);

		if (err)
			return err;
	}
	return 0;
}

/* Keys may change until the regions are there, with the connection. */
static void bench_kofi_tell(struct bench_kofi_side *ks)
{
	u32 i;

	for (i = 0; i < ks->side->run->window && ks->peer->mr[i]; i++)
		ks->remote[i] = (struct fi_rma_iov) {
			.addr = kofi_mr_base(ks->peer->mr[i]),
			.len = ks->side->xmit[i].len,
			.key = fi_mr_key(ks->peer->mr[i]),
		};
}

static bool bench_kofi_tells(const struct bench_kofi_side *ks)
{
	return !ks->peer->side->here;
}

/* What a peer elsewhere is told, and what it has told */
static struct bench_kofi_memory
bench_kofi_memory(const struct bench_kofi_side *ks)
{
	struct bench_kofi_memory m = {};

	if (ks->mr[0]) {
		m.addr = cpu_to_be64(kofi_mr_base(ks->mr[0]));
		m.key = cpu_to_be64(fi_mr_key(ks->mr[0]));
	}
	return m;
}

static void bench_kofi_told(struct bench_kofi_side *ks, const void *data)
{
	struct bench_kofi_memory m;
	u32 i;

	if (!bench_kofi_tells(ks))
		return;
	memcpy(&m, data, sizeof(m));
	for (i = 0; i < ks->side->run->window; i++)
		ks->remote[i] = (struct fi_rma_iov) {
			.addr = be64_to_cpu(m.addr) + ks->side->xmit[i].off,
			.len = ks->side->xmit[i].len,
			.key = be64_to_cpu(m.key),
		};
}

static int bench_kofi_table(struct sg_table *table, const struct bench_op *op)
{
	unsigned int n = DIV_ROUND_UP(offset_in_page(op->buf) + op->len,
				      PAGE_SIZE);
	const void *at = op->buf - offset_in_page(op->buf);
	struct page **pages;
	unsigned int i;
	int err;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < n; i++, at += PAGE_SIZE)
		pages[i] = is_vmalloc_addr(at) ? vmalloc_to_page(at) :
						 virt_to_page(at);
	err = sg_alloc_table_from_pages(table, pages, n, offset_in_page(op->buf),
					op->len, GFP_KERNEL);
	kvfree(pages);
	return err;
}

static int bench_kofi_tables(struct bench_kofi_side *ks)
{
	u32 i;

	ks->given = true;
	for (i = 0; i < ks->side->run->window; i++) {
		int err = bench_kofi_table(&ks->pages[i], &ks->side->xmit[i]);

		if (err)
			return err;
	}
	return 0;
}

/* Of an endpoint, or a passive one for those of its connections */
static int bench_kofi_buffers(fid_t fid, const struct bench_run *run)
{
	size_t sndbuf = run->sndbuf, rcvbuf = run->rcvbuf;
	int err = 0;

	if (sndbuf)
		err = fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_SEND_BUF_SIZE,
				&sndbuf, sizeof(sndbuf));
	if (!err && rcvbuf)
		err = fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_RECV_BUF_SIZE,
				&rcvbuf, sizeof(rcvbuf));
	return err;
}

static int bench_kofi_ep(struct bench_kofi_side *ks, struct fi_info *info)
{
	/* what an endpoint was told holds over loopback, too; 0 is never */
	unsigned int min = ks->way->zerocopy ? 1 : 0;
	int err;

	err = fi_endpoint(ks->net->domain, info, &ks->ep, NULL);
	if (err)
		return err;
	err = bench_kofi_buffers(&ks->ep->fid, ks->side->run);
	if (err)
		return err;
	if (ks->way->pages)
		err = fi_set_val(&ks->ep->fid, KOFI_VAL_ZEROCOPY_MIN, &min);
	if (err)
		return err;
	if (ks->way->rdm)
		err = fi_ep_bind(ks->ep, &ks->av->fid, 0);
	else
		err = fi_ep_bind(ks->ep, &ks->net->eq->fid, 0);
	if (err)
		return err;
	err = fi_ep_bind(ks->ep, &ks->cq->fid, FI_TRANSMIT | FI_RECV);
	if (err)
		return err;
	return fi_enable(ks->ep);
}

static int bench_kofi_listen(struct bench_kofi *k)
{
	struct bench_kofi_net *kn = k->side[1].net;
	struct sockaddr_in *addr = &k->run->side[1].addr;
	size_t len = sizeof(*addr);
	int err;

	err = fi_passive_ep(kn->fabric, kn->info, &k->pep, NULL);
	if (err)
		return err;
	err = fi_pep_bind(k->pep, &kn->eq->fid, 0);
	if (err)
		return err;
	err = bench_kofi_buffers(&k->pep->fid, k->run);
	if (err)
		return err;
	err = fi_listen(k->pep);
	if (err)
		return err;
	return fi_getname(&k->pep->fid, addr, &len);
}

static int bench_kofi_begin(struct bench_kofi_side *ks)
{
	const struct bench_kofi_memory m = bench_kofi_memory(ks);
	int err;

	err = bench_kofi_ep(ks, ks->net->info);
	return err ?: fi_connect(ks->ep, &ks->peer->side->addr, &m,
				 bench_kofi_tells(ks) ? sizeof(m) : 0);
}

static int bench_kofi_accept(struct bench_kofi *k, struct fi_eq_cm_entry *entry)
{
	struct bench_kofi_side *ks = &k->side[1];
	const struct bench_kofi_memory m = bench_kofi_memory(ks);
	int err;

	err = bench_kofi_event(ks->net->eq, FI_CONNREQ, &k->pep->fid, entry);
	if (err)
		return err;
	bench_kofi_told(ks, entry->data);
	err = bench_kofi_ep(ks, entry->info);
	if (!err)
		err = fi_accept(ks->ep, &m,
				bench_kofi_tells(ks) ? sizeof(m) : 0);
	fi_freeinfo(entry->info);
	return err;
}

static int bench_kofi_connect(struct bench_kofi *k)
{
	struct fi_eq_cm_entry *entry;
	fid_t first = NULL;
	int i, err = 0;

	entry = kzalloc(BENCH_EVENT, GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	if (k->run->side[1].here)
		err = bench_kofi_listen(k);
	if (!err && k->run->side[0].here)
		err = bench_kofi_begin(&k->side[0]);
	if (!err && k->run->side[1].here)
		err = bench_kofi_accept(k, entry);
	for (i = 0; i < 2 && !err; i++) {
		if (!k->run->side[i].here)
			continue;
		err = bench_kofi_event(k->side[i].net->eq, FI_CONNECTED, NULL,
				       entry);
		if (!err && entry->fid == first)
			err = -EPROTO;
		first = entry->fid;
		if (!err && i == 0)
			bench_kofi_told(&k->side[0], entry->data);
	}
	kfree(entry);
	return err;
}

static void bench_kofi_unmatched_done(struct fid_cq *cq,
				      const struct kofi_wc *wc)
{
	struct bench_kofi_side *ks = container_of(wc->cqe,
						  struct bench_kofi_side,
						  unmatched);

	if (wc->err != FI_ECANCELED)
		bench_fail(ks->side->run, wc->err ? -wc->err : -EPROTO);
}

/* Receives that nothing matches; they end with the endpoint. */
static int bench_kofi_unmatched(struct bench_kofi_side *ks)
{
	u32 i, posted = ks->side->run->posted;
	int err = 0;

	ks->unmatched.done = bench_kofi_unmatched_done;
	for (i = 0; i < posted && !err; i++)
		err = fi_trecv(ks->ep, &ks->nothing, sizeof(ks->nothing), NULL,
			       FI_ADDR_UNSPEC, BENCH_WINDOW_MAX + i, 0,
			       &ks->unmatched);
	return err;
}

/* Endpoints that do not connect are told each other's address. */
static int bench_kofi_address(struct bench_kofi *k)
{
	size_t len = sizeof(struct sockaddr_in);
	int i, err = 0;

	if (k->run->role != BENCH_BOTH)
		return -EOPNOTSUPP;
	for (i = 0; i < 2 && !err; i++) {
		struct bench_kofi_side *ks = &k->side[i];

		err = fi_av_open(ks->net->domain, NULL, &ks->av, NULL);
		if (!err)
			err = bench_kofi_ep(ks, ks->net->info);
		if (!err)
			err = bench_kofi_unmatched(ks);
		if (!err)
			err = fi_getname(&ks->ep->fid, &ks->side->addr, &len);
	}
	for (i = 0; i < 2 && !err; i++) {
		struct bench_kofi_side *ks = &k->side[i];

		err = fi_av_insert(ks->av, &ks->peer->side->addr, 1, &ks->dest,
				   0, NULL);
		err = err == 1 ? 0 : -EINVAL;
	}
	return err;
}

/* The endpoint's socket, for those who watch it */
static struct sock *bench_kofi_socket(const struct bench_kofi_side *ks)
{
	struct net *net = ks->net->net;
	struct sockaddr_in here, there;
	size_t len = sizeof(here);
	struct sock *sk;

	if (fi_getname(&ks->ep->fid, &here, &len))
		return NULL;
	len = sizeof(there);
	if (fi_getpeer(ks->ep, &there, &len))
		return NULL;
	local_bh_disable();
	sk = inet_lookup_established(net, there.sin_addr.s_addr,
				     there.sin_port, here.sin_addr.s_addr,
				     here.sin_port, 0);
	local_bh_enable();
	if (sk && !sk_fullsock(sk)) {
		sock_gen_put(sk);
		sk = NULL;
	}
	return sk;
}

static u64 bench_kofi_caps(const struct bench_kofi_way *way,
			   const struct bench_run *run)
{
	if (way->tagged)
		return FI_MSG | FI_TAGGED;
	switch (run->kind) {
	case BENCH_WRITE:
		return FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE |
		       FI_SEND | FI_RECV;
	case BENCH_READ:
		return FI_MSG | FI_RMA;
	default:
		return FI_MSG;
	}
}

/* Everything a side has before it is connected */
static int bench_kofi_side(struct bench_kofi_side *ks)
{
	const struct bench_run *run = ks->side->run;
	int err = 0;

	if (!ks->net->domain)
		err = bench_kofi_net(ks->way, ks->net, &ks->side->addr,
				     bench_kofi_caps(ks->way, run), run);
	if (!err)
		err = bench_kofi_cq(ks);
	if (!err && ks->way->pages && run->kind != BENCH_READ)
		err = bench_kofi_tables(ks);
	if (!err && run->kind != BENCH_SEND)
		err = bench_kofi_mr(ks);
	return err;
}

static bool bench_kofi_tcp(const struct bench_kofi_side *ks)
{
	return ks->side->run->client->tcp;
}

static int bench_kofi_reads(struct bench_kofi_side *ks, int i)
{
	struct task_struct *task;

	if (!ks->way->reads)
		return 0;
	task = kthread_run(bench_kofi_reader, ks, "kofi_bench/%d", i);
	if (IS_ERR(task))
		return PTR_ERR(task);
	ks->reader = get_task_struct(task);
	return 0;
}

static int bench_kofi_start(struct bench_run *run,
			    const struct bench_kofi_way *way)
{
	struct bench_kofi *k;
	int i, j, err;

	k = kzalloc(sizeof(*k), GFP_KERNEL);
	if (!k)
		return -ENOMEM;
	k->way = way;
	k->run = run;
	/* bench_kofi_close() finds all of it through a side's */
	for (i = 0; i < 2; i++) {
		k->side[i].side = &run->side[i];
		k->side[i].way = way;
		k->side[i].net = &k->net[i];
		k->side[i].peer = &k->side[!i];
		k->net[i].net = run->side[i].net;
		run->side[i].priv = &k->side[i];
		for (j = 0; j < run->window; j++) {
			run->side[i].xmit[j].cqe.done = bench_kofi_done;
			run->side[i].recv[j].cqe.done = bench_kofi_done;
		}
	}
	if (run->role == BENCH_BOTH && net_eq(k->net[0].net, k->net[1].net) &&
	    run->side[0].addr.sin_addr.s_addr ==
	    run->side[1].addr.sin_addr.s_addr)
		k->side[1].net = &k->net[0];
	for (i = 0; i < 2; i++) {
		if (!run->side[i].here)
			continue;
		err = bench_kofi_side(&k->side[i]);
		if (err)
			return err;
	}
	err = way->rdm ? bench_kofi_address(k) : bench_kofi_connect(k);
	if (err)
		return err;
	for (i = 0; i < 2; i++) {
		struct bench_kofi_side *ks = &k->side[i];

		if (!ks->side->here)
			continue;
		if (ks->peer->side->here)
			bench_kofi_tell(ks);
		if (bench_kofi_tcp(ks)) {
			ks->side->sk = bench_kofi_socket(ks);
			if (!ks->side->sk)
				return -ENOTSOCK;
		}
		err = bench_kofi_reads(ks, i);
		if (err)
			return err;
	}
	return 0;
}

/* Of the variants over TCP */
#define BENCH_KOFI_SOCK		.provider = "sock", \
	.write_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE

static int bench_kofi_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = { BENCH_KOFI_SOCK };

	return bench_kofi_start(run, &way);
}

static int bench_sread_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		BENCH_KOFI_SOCK, .reads = true,
	};

	return bench_kofi_start(run, &way);
}

static int bench_pages_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		BENCH_KOFI_SOCK, .pages = true,
	};

	return bench_kofi_start(run, &way);
}

static int bench_zerocopy_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		BENCH_KOFI_SOCK, .pages = true, .zerocopy = true,
	};

	return bench_kofi_start(run, &way);
}

static int bench_rdm_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		BENCH_KOFI_SOCK, .rdm = true,
	};

	return bench_kofi_start(run, &way);
}

static int bench_tagged_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		BENCH_KOFI_SOCK, .rdm = true, .tagged = true,
	};

	return run->kind == BENCH_SEND ? bench_kofi_start(run, &way) :
					 -EOPNOTSUPP;
}

static int bench_rdmsread_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		BENCH_KOFI_SOCK, .rdm = true, .reads = true,
	};

	return bench_kofi_start(run, &way);
}

/* A packet has no answer: writes end when it has arrived. */
static int bench_rxm_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		.provider = "sock;ofi_rxm", .write_flags = FI_COMPLETION,
		.rdm = true,
	};

	return bench_kofi_start(run, &way);
}

static int bench_rxmsread_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		.provider = "sock;ofi_rxm", .write_flags = FI_COMPLETION,
		.rdm = true, .reads = true,
	};

	return bench_kofi_start(run, &way);
}

static int bench_verbs_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		.provider = "verbs", .write_flags = FI_COMPLETION,
	};

	return bench_kofi_start(run, &way);
}

static int bench_rxmverbs_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		.provider = "verbs;ofi_rxm", .write_flags = FI_COMPLETION,
		.rdm = true,
	};

	return bench_kofi_start(run, &way);
}

static void bench_kofi_close_fid(struct fi_fid *fid)
{
	int err = fi_close(fid);

	WARN_ONCE(err, "fi_close() of class %zu: %d\n", fid->fclass, err);
}

static void bench_kofi_stop(struct bench_kofi_side *ks)
{
	if (!ks->reader)
		return;
	/* a signal that is not waited for ends the next wait */
	WRITE_ONCE(ks->stop, true);
	fi_cq_signal(ks->cq);
	kthread_stop(ks->reader);
	put_task_struct(ks->reader);
}

static void bench_kofi_close(struct bench_run *run)
{
	struct bench_kofi_side *first = run->side[0].priv;
	struct bench_kofi *k;
	int i, j;

	if (!first)
		return;
	k = container_of(first, struct bench_kofi, side[0]);
	for (i = 0; i < 2; i++) {
		struct bench_kofi_side *ks = &k->side[i];

		if (ks->side->sk)
			sock_put(ks->side->sk);
		if (ks->ep)
			bench_kofi_close_fid(&ks->ep->fid);
		bench_kofi_stop(ks);
		if (ks->cq)
			bench_kofi_close_fid(&ks->cq->fid);
		if (ks->av)
			bench_kofi_close_fid(&ks->av->fid);
		for (j = 0; j < BENCH_WINDOW_MAX; j++) {
			if (ks->mr[j])
				bench_kofi_close_fid(&ks->mr[j]->fid);
			sg_free_table(&ks->pages[j]);
		}
	}
	if (k->pep)
		bench_kofi_close_fid(&k->pep->fid);
	for (i = 0; i < 2; i++) {
		struct bench_kofi_net *kn = &k->net[i];

		if (kn->domain)
			bench_kofi_close_fid(&kn->domain->fid);
		if (kn->eq)
			bench_kofi_close_fid(&kn->eq->fid);
		if (kn->fabric)
			bench_kofi_close_fid(&kn->fabric->fid);
		fi_freeinfo(kn->info);
	}
	kfree(k);
}

const struct bench_client bench_kofi = {
	.name	= "kofi",
	.tcp	= true,
	.more	= true,
	.open	= bench_kofi_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_sread = {
	.name	= "sread",
	.tcp	= true,
	.more	= true,
	.open	= bench_sread_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_pages = {
	.name	= "pages",
	.tcp	= true,
	.open	= bench_pages_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_zerocopy = {
	.name	= "zerocopy",
	.tcp	= true,
	.open	= bench_zerocopy_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_rdm = {
	.name	= "rdm",
	.more	= true,
	.open	= bench_rdm_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_rdmsread = {
	.name	= "rdmsread",
	.more	= true,
	.open	= bench_rdmsread_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_rxm = {
	.name	= "rxm",
	.open	= bench_rxm_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_rxmsread = {
	.name	= "rxmsread",
	.open	= bench_rxmsread_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_rxmverbs = {
	.name	= "rxmverbs",
	.open	= bench_rxmverbs_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_tagged = {
	.name	= "tagged",
	.more	= true,
	.tagged	= true,
	.open	= bench_tagged_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_verbs = {
	.name	= "verbs",
	.open	= bench_verbs_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};
