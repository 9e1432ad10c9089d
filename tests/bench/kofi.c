// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client over kOFI: what any client in the kernel does, in five variants.
 * There are two providers. Completions are called back in softirq context, or
 * read by a thread that sleeps on the queue as a libfabric program in userspace
 * does. What is sent is given by address, or as pages, which are then
 * copied into the socket or not.
 *
 * Each side has an endpoint and a completion queue; fabric, domain and event
 * queue are shared, for both sides are here.
 */
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bench.h"

#define BENCH_CQ_SIZE	(4 * BENCH_WINDOW_MAX)
#define BENCH_WAIT_MS	10000
#define BENCH_BATCH	16

/**
 * struct bench_kofi_way - a variant
 * @provider: whose endpoints they are
 * @write_flags: of writes, which are to end when the bytes are where they belong,
 *	as a read does, where the provider knows
 * @reads: threads read the queues
 * @pages: what is sent is a list of pages
 * @zerocopy: which are not copied
 */
struct bench_kofi_way {
	const char	*provider;
	u64		write_flags;
	bool		reads;
	bool		pages;
	bool		zerocopy;
};

/**
 * struct bench_kofi_side - a side's endpoint
 * @side: the side
 * @way: the variant
 * @cq: its completions
 * @ep: the endpoint
 * @mr: what the peer's xmit access
 * @remote: where that of this side's xmit is, as a peer would have said
 * @peer: the other one's
 * @given: what is sent is given as pages, not by its address
 * @pages: the pages, of each of the side's xmit
 * @reader: thread that reads @cq
 * @stop: it shall end
 */
struct bench_kofi_side {
	struct bench_side	*side;
	const struct bench_kofi_way *way;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_mr		*mr[BENCH_WINDOW_MAX];
	struct fi_rma_iov	remote[BENCH_WINDOW_MAX];
	struct bench_kofi_side	*peer;
	bool			given;
	struct sg_table		pages[BENCH_WINDOW_MAX];
	struct task_struct	*reader;
	bool			stop;
};

struct bench_kofi {
	const struct bench_kofi_way *way;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
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
		.context = &op->cqe, .vec = KOFI_SGL,
	};

	return fi_sendmsg(ks->ep, &msg, FI_COMPLETION);
}

static int bench_kofi_send(struct bench_kofi_side *ks, struct bench_op *op)
{
	const struct sg_table *table = bench_kofi_pages(ks, op);

	if (table)
		return bench_kofi_send_pages(ks, op, table);
	return fi_send(ks->ep, op->buf, op->len, NULL, 0, &op->cqe);
}

static int bench_kofi_write(struct bench_kofi_side *ks, struct bench_op *op)
{
	struct sg_table *table = bench_kofi_pages(ks, op);
	const struct kvec iov = { .iov_base = op->buf, .iov_len = op->len };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1,
		.rma_iov = bench_kofi_remote(ks, op), .rma_iov_count = 1,
		.context = &op->cqe,
	};

	if (table) {
		msg.vec = KOFI_SGL;
		msg.msg_sgl = table->sgl;
		msg.iov_count = table->nents;
	}
	return fi_writemsg(ks->ep, &msg, ks->way->write_flags);
}

static int bench_kofi_read(struct bench_kofi_side *ks, struct bench_op *op)
{
	const struct fi_rma_iov *remote = bench_kofi_remote(ks, op);

	return fi_read(ks->ep, op->buf, op->len, NULL, 0, remote->addr,
		       remote->key, &op->cqe);
}

static int bench_kofi_post(struct bench_op *op)
{
	struct bench_kofi_side *ks = op->side->priv;

	switch (op->kind) {
	case BENCH_SEND:
		return bench_kofi_send(ks, op);
	case BENCH_RECV:
		return fi_recv(ks->ep, op->buf, op->len, NULL, 0, &op->cqe);
	case BENCH_WRITE:
		return bench_kofi_write(ks, op);
	case BENCH_READ:
		return bench_kofi_read(ks, op);
	default:
		return -EINVAL;
	}
}

/* -------------------------------------------------------------- connections */

static int bench_kofi_event(struct bench_kofi *k, u32 want, fid_t fid,
			    struct fi_eq_cm_entry *entry)
{
	ssize_t n;
	u32 event;

	n = fi_eq_sread(k->eq, &event, entry, sizeof(*entry), BENCH_WAIT_MS, 0);
	if (n < 0)
		return n;
	return event == want && (!fid || entry->fid == fid) ? 0 : -EPROTO;
}

static int bench_kofi_discover(struct bench_kofi *k,
			       const struct sockaddr_in *addr, u64 caps)
{
	struct fi_info *hints;
	int err = -ENOMEM;

	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = caps;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addrlen = sizeof(*addr);
	hints->src_addr = kmemdup(addr, sizeof(*addr), GFP_KERNEL);
	hints->fabric_attr->prov_name = kstrdup(k->way->provider, GFP_KERNEL);
	if (hints->src_addr && hints->fabric_attr->prov_name)
		err = fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints,
				 &k->info);
	fi_freeinfo(hints);
	return err;
}

static int bench_kofi_cq(struct bench_kofi *k, struct bench_kofi_side *ks,
			 bool reads)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ,
		.cpu = -1,
		.done = true,
	};
	struct fi_cq_attr attr = { .size = BENCH_CQ_SIZE };

	if (!reads)
		return kofi_cq_open(k->domain, &attr, &kattr, &ks->cq, NULL);
	attr.format = FI_CQ_FORMAT_MSG;
	attr.wait_obj = FI_WAIT_UNSPEC;
	return fi_cq_open(k->domain, &attr, &ks->cq, NULL);
}

static int bench_kofi_mr(struct bench_kofi *k, struct bench_kofi_side *ks)
{
	u32 i;

	for (i = 0; i < ks->side->run->window; i++) {
		/* the sides are alike, so this is what the peer's has */
		const struct bench_op *op = &ks->side->xmit[i];
		int err = fi_mr_reg(k->domain, ks->side->mem + op->off, op->len,
				    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
				    &ks->mr[i], NULL);

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

static int bench_kofi_ep(struct bench_kofi *k, struct bench_kofi_side *ks,
			 struct fi_info *info)
{
	/* what an endpoint was told holds over loopback, too; 0 is never */
	unsigned int min = k->way->zerocopy ? 1 : 0;
	int err;

	err = fi_endpoint(k->domain, info, &ks->ep, NULL);
	if (err)
		return err;
	if (k->way->pages)
		err = fi_set_val(&ks->ep->fid, KOFI_VAL_ZEROCOPY_MIN, &min);
	if (err)
		return err;
	err = fi_ep_bind(ks->ep, &k->eq->fid, 0);
	if (err)
		return err;
	err = fi_ep_bind(ks->ep, &ks->cq->fid, FI_TRANSMIT | FI_RECV);
	if (err)
		return err;
	return fi_enable(ks->ep);
}

static int bench_kofi_connect(struct bench_kofi *k)
{
	struct fi_eq_cm_entry entry;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	fid_t first;
	int err;

	err = fi_passive_ep(k->fabric, k->info, &k->pep, NULL);
	if (err)
		return err;
	err = fi_pep_bind(k->pep, &k->eq->fid, 0);
	if (err)
		return err;
	err = fi_listen(k->pep);
	if (err)
		return err;
	err = fi_getname(&k->pep->fid, &addr, &len);
	if (err)
		return err;
	err = bench_kofi_ep(k, &k->side[0], k->info);
	if (err)
		return err;
	err = fi_connect(k->side[0].ep, &addr, NULL, 0);
	if (err)
		return err;

	err = bench_kofi_event(k, FI_CONNREQ, &k->pep->fid, &entry);
	if (err)
		return err;
	err = bench_kofi_ep(k, &k->side[1], entry.info);
	if (!err)
		err = fi_accept(k->side[1].ep, NULL, 0);
	fi_freeinfo(entry.info);
	if (err)
		return err;
	err = bench_kofi_event(k, FI_CONNECTED, NULL, &entry);
	if (err)
		return err;
	first = entry.fid;
	err = bench_kofi_event(k, FI_CONNECTED, NULL, &entry);
	return err ?: entry.fid == first ? -EPROTO : 0;
}

static u64 bench_kofi_caps(const struct bench_run *run)
{
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

static int bench_kofi_start(struct bench_run *run,
			    const struct bench_kofi_way *way)
{
	struct bench_kofi *k;
	int i, j, err;

	k = kzalloc(sizeof(*k), GFP_KERNEL);
	if (!k)
		return -ENOMEM;
	k->way = way;
	/* bench_kofi_close() finds all of it through a side's */
	for (i = 0; i < 2; i++) {
		k->side[i].side = &run->side[i];
		k->side[i].way = way;
		k->side[i].peer = &k->side[!i];
		run->side[i].priv = &k->side[i];
		for (j = 0; j < run->window; j++) {
			run->side[i].xmit[j].cqe.done = bench_kofi_done;
			run->side[i].recv[j].cqe.done = bench_kofi_done;
		}
	}
	err = bench_kofi_discover(k, &run->addr, bench_kofi_caps(run));
	if (err)
		return err;
	err = fi_fabric(k->info->fabric_attr, &k->fabric, NULL);
	if (err)
		return err;
	err = fi_eq_open(k->fabric, &(struct fi_eq_attr) {
				.wait_obj = FI_WAIT_UNSPEC }, &k->eq, NULL);
	if (err)
		return err;
	err = fi_domain(k->fabric, k->info, &k->domain, NULL);
	if (err)
		return err;
	for (i = 0; i < 2; i++) {
		err = bench_kofi_cq(k, &k->side[i], way->reads);
		if (!err && way->pages && run->kind != BENCH_READ)
			err = bench_kofi_tables(&k->side[i]);
		if (!err && run->kind != BENCH_SEND)
			err = bench_kofi_mr(k, &k->side[i]);
		if (err)
			return err;
	}
	err = bench_kofi_connect(k);
	if (err)
		return err;
	for (i = 0; i < 2; i++)
		bench_kofi_tell(&k->side[i]);
	for (i = 0; i < 2 && way->reads; i++) {
		struct task_struct *task;

		task = kthread_run(bench_kofi_reader, &k->side[i],
				   "kofi_bench/%d", i);
		if (IS_ERR(task))
			return PTR_ERR(task);
		k->side[i].reader = get_task_struct(task);
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

static int bench_verbs_open(struct bench_run *run)
{
	static const struct bench_kofi_way way = {
		.provider = "verbs", .write_flags = FI_COMPLETION,
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
	/* a signal that nobody waits for ends the next wait */
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
		if (k->side[i].ep)
			bench_kofi_close_fid(&k->side[i].ep->fid);
		bench_kofi_stop(&k->side[i]);
		if (k->side[i].cq)
			bench_kofi_close_fid(&k->side[i].cq->fid);
		for (j = 0; j < BENCH_WINDOW_MAX; j++) {
			if (k->side[i].mr[j])
				bench_kofi_close_fid(&k->side[i].mr[j]->fid);
			sg_free_table(&k->side[i].pages[j]);
		}
	}
	if (k->domain)
		bench_kofi_close_fid(&k->domain->fid);
	if (k->pep)
		bench_kofi_close_fid(&k->pep->fid);
	if (k->eq)
		bench_kofi_close_fid(&k->eq->fid);
	if (k->fabric)
		bench_kofi_close_fid(&k->fabric->fid);
	fi_freeinfo(k->info);
	kfree(k);
}

const struct bench_client bench_kofi = {
	.name	= "kofi",
	.open	= bench_kofi_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_sread = {
	.name	= "sread",
	.open	= bench_sread_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_pages = {
	.name	= "pages",
	.open	= bench_pages_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_zerocopy = {
	.name	= "zerocopy",
	.open	= bench_zerocopy_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};

const struct bench_client bench_verbs = {
	.name	= "verbs",
	.open	= bench_verbs_open,
	.close	= bench_kofi_close,
	.post	= bench_kofi_post,
};
