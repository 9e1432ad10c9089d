// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Scalable endpoints over each provider of endpoints that do not connect: contexts
 * that send to each other, to ordinary endpoints, from several threads; and what is
 * refused.
 */
#include <linux/kthread.h>
#include <linux/slab.h>

#include <linux/kofi/lib.h>

#include "../kunit.h"
#include "../limit.h"
#include "place.h"

#define SEP_ENDS	2
#define SEP_CTX		4
#define SEP_BITS	3	/* more contexts than there are could be named */
#define SEP_ROUNDS	200	/* messages of a thread */
#define SEP_TRIES	16	/* for ports side by side */
#define SEP_TIMEOUT	TEST_LIMIT(20000)	/* milliseconds; nothing that works takes it */

struct sep_end {
	struct fid_ep		*sep;
	struct fid_av		*av;
	struct fid_cq		*tx_cq[SEP_CTX];
	struct fid_cq		*rx_cq[SEP_CTX];
	struct fid_ep		*tx[SEP_CTX];
	struct fid_ep		*rx[SEP_CTX];
	struct sockaddr_in	name;
	fi_addr_t		peer;
};

struct sep_test {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct sep_end		end[SEP_ENDS];
	u64			out[SEP_CTX];	/* open longer than a test that fails */
	u64			in[SEP_CTX];
};

/* ----------------------------------------------------------------- objects */

static void sep_close_fid(struct kunit *test, struct fi_fid *fid)
{
	if (fid)
		KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
}

static void sep_close_end(struct sep_test *t, struct sep_end *e)
{
	int i;

	for (i = 0; i < SEP_CTX; i++) {
		sep_close_fid(t->test, e->tx[i] ? &e->tx[i]->fid : NULL);
		sep_close_fid(t->test, e->rx[i] ? &e->rx[i]->fid : NULL);
	}
	sep_close_fid(t->test, e->sep ? &e->sep->fid : NULL);
	for (i = 0; i < SEP_CTX; i++) {
		sep_close_fid(t->test, e->tx_cq[i] ? &e->tx_cq[i]->fid : NULL);
		sep_close_fid(t->test, e->rx_cq[i] ? &e->rx_cq[i]->fid : NULL);
	}
	sep_close_fid(t->test, e->av ? &e->av->fid : NULL);
	memset(e, 0, sizeof(*e));
}

static void sep_close(void *arg)
{
	struct sep_test *t = arg;
	int i;

	for (i = 0; i < SEP_ENDS; i++)
		sep_close_end(t, &t->end[i]);
	sep_close_fid(t->test, t->domain ? &t->domain->fid : NULL);
	sep_close_fid(t->test, t->fabric ? &t->fabric->fid : NULL);
	fi_freeinfo(t->info);
	kfree(t);
}

static int sep_getinfo(struct kunit *test, size_t tx, size_t rx,
		       struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int err;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV |
		      FI_NAMED_RX_CTX;
	hints->ep_attr->tx_ctx_cnt = tx;
	hints->ep_attr->rx_ctx_cnt = rx;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	err = rdm_place_getinfo(test, hints, info);
	fi_freeinfo(hints);
	return err;
}

static struct sep_test *sep_open(struct kunit *test)
{
	struct sep_test *t = kzalloc(sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, sep_close, t),
			0);
	KUNIT_ASSERT_EQ(test, sep_getinfo(test, SEP_CTX, SEP_CTX, &t->info), 0);
	KUNIT_EXPECT_EQ(test, t->info->ep_attr->tx_ctx_cnt, SEP_CTX);
	KUNIT_EXPECT_EQ(test, t->info->ep_attr->rx_ctx_cnt, SEP_CTX);
	KUNIT_ASSERT_EQ(test, fi_fabric(t->info->fabric_attr, &t->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(t->fabric, t->info, &t->domain, NULL),
			0);
	return t;
}

/* A scalable endpoint with its addresses, and one half of its contexts bound */
static void sep_open_end(struct sep_test *t, struct sep_end *e, int contexts)
{
	struct fi_av_attr av = { .rx_ctx_bits = SEP_BITS };
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct kunit *test = t->test;
	int i;

	KUNIT_ASSERT_EQ(test, fi_av_open(t->domain, &av, &e->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_scalable_ep(t->domain, t->info, &e->sep, e),
			0);
	KUNIT_EXPECT_PTR_EQ(test, e->sep->fid.context, (void *)e);
	for (i = 0; i < contexts; i++) {
		/* contexts that are open get the addresses, too */
		if (i == contexts / 2)
			KUNIT_ASSERT_EQ(test,
					fi_scalable_ep_bind(e->sep,
							    &e->av->fid, 0), 0);
		KUNIT_ASSERT_EQ(test, fi_cq_open(t->domain, &cq, &e->tx_cq[i],
						 NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_cq_open(t->domain, &cq, &e->rx_cq[i],
						 NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_tx_context(e->sep, i, NULL, &e->tx[i],
						    e), 0);
		KUNIT_ASSERT_EQ(test, fi_rx_context(e->sep, i, NULL, &e->rx[i],
						    NULL), 0);
		KUNIT_EXPECT_PTR_EQ(test, e->tx[i], e->rx[i]);
		KUNIT_EXPECT_PTR_EQ(test, e->tx[i]->fid.context, (void *)e);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(e->tx[i], &e->tx_cq[i]->fid,
						 FI_TRANSMIT), 0);
	}
}

static int sep_enable_end(struct sep_test *t, struct sep_end *e)
{
	size_t len = sizeof(e->name);
	int i, err;

	for (i = 0; i < SEP_CTX; i++)
		KUNIT_ASSERT_EQ(t->test, fi_ep_bind(e->rx[i], &e->rx_cq[i]->fid,
						    FI_RECV), 0);
	err = fi_enable(e->sep);
	if (err)
		return err;
	KUNIT_ASSERT_EQ(t->test, fi_getname(&e->sep->fid, &e->name, &len), 0);
	KUNIT_EXPECT_EQ(t->test, len, sizeof(e->name));
	return 0;
}

/* The ports beside the one that is free may be taken by others. */
static void sep_open_whole(struct sep_test *t, struct sep_end *e)
{
	int tries = SEP_TRIES, err;

	do {
		sep_close_end(t, e);
		sep_open_end(t, e, SEP_CTX);
		err = sep_enable_end(t, e);
	} while ((err == -EADDRINUSE || err == -EADDRNOTAVAIL) && --tries);
	KUNIT_ASSERT_EQ(t->test, err, 0);
}

static struct sep_test *sep_open_both(struct kunit *test)
{
	struct sep_test *t = sep_open(test);
	int i;

	for (i = 0; i < SEP_ENDS; i++)
		sep_open_whole(t, &t->end[i]);
	for (i = 0; i < SEP_ENDS; i++)
		KUNIT_ASSERT_EQ(test, fi_av_insert(t->end[i].av,
						   &t->end[!i].name, 1,
						   &t->end[i].peer, 0, NULL),
				1);
	return t;
}

/* ---------------------------------------------------------------- messages */

static int sep_comp(struct fid_cq *cq, struct fi_cq_tagged_entry *entry,
		    fi_addr_t *src)
{
	struct fi_cq_err_entry e = {};
	ssize_t n;

	n = fi_cq_sreadfrom(cq, entry, 1, src, NULL, SEP_TIMEOUT);
	if (n == -FI_EAVAIL)
		return fi_cq_readerr(cq, &e, 0) < 0 ? -EIO : e.err;
	return n == 1 ? 0 : n ?: -EIO;
}

static void sep_send(struct sep_test *t, struct sep_end *from, int i,
		     struct fid_ep *to, struct fid_cq *to_cq, fi_addr_t dest,
		     fi_addr_t src)
{
	struct fi_cq_tagged_entry entry;
	struct kunit *test = t->test;
	u64 *out = &t->out[0], *in = &t->in[0];
	fi_addr_t got;

	*out = 0x1000 + i;
	KUNIT_ASSERT_EQ(test, fi_recv(to, in, sizeof(*in), NULL,
				      FI_ADDR_UNSPEC, in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(from->tx[i], out, sizeof(*out), NULL,
				      dest, out), 0);
	KUNIT_ASSERT_EQ(test, sep_comp(to_cq, &entry, &got), 0);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)in);
	KUNIT_EXPECT_EQ(test, *in, *out);
	KUNIT_EXPECT_EQ(test, got, src);
	KUNIT_ASSERT_EQ(test, sep_comp(from->tx_cq[i], &entry, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)out);
}

/* From each context to each, whose queue alone hears of it */
static void sep_contexts(struct kunit *test)
{
	struct sep_test *t = sep_open_both(test);
	struct sep_end *a = &t->end[0], *b = &t->end[1];
	struct sockaddr_in name;
	size_t len;
	int i, j;

	for (i = 0; i < SEP_CTX; i++) {
		len = sizeof(name);
		KUNIT_ASSERT_EQ(test, fi_getname(&a->tx[i]->fid, &name, &len),
				0);
		KUNIT_EXPECT_EQ(test, ntohs(name.sin_port),
				ntohs(a->name.sin_port) + i);
		for (j = 0; j < SEP_CTX; j++)
			sep_send(t, a, i, b->rx[j], b->rx_cq[j],
				 fi_rx_addr(a->peer, j, SEP_BITS),
				 fi_rx_addr(b->peer, i, SEP_BITS));
	}
}

/* A receive for one context of a peer does not take another one's message. */
static void sep_directed(struct kunit *test)
{
	struct sep_test *t = sep_open_both(test);
	struct sep_end *a = &t->end[0], *b = &t->end[1];
	struct fi_cq_tagged_entry entry;
	u64 *out = t->out, *in = t->in;
	fi_addr_t src;
	int i;

	for (i = 0; i < SEP_CTX; i++)
		KUNIT_ASSERT_EQ(test, fi_trecv(b->rx[1], &in[i], sizeof(*in),
					       NULL, fi_rx_addr(b->peer, i,
								SEP_BITS),
					       5, 0, &in[i]), 0);
	for (i = SEP_CTX - 1; i >= 0; i--) {
		out[i] = 0x2000 + i;
		KUNIT_ASSERT_EQ(test, fi_tsend(a->tx[i], &out[i], sizeof(*out),
					       NULL, fi_rx_addr(a->peer, 1,
								SEP_BITS),
					       5, &out[i]), 0);
		KUNIT_ASSERT_EQ(test, sep_comp(b->rx_cq[1], &entry, &src), 0);
		KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)&in[i]);
		KUNIT_EXPECT_EQ(test, in[i], out[i]);
		KUNIT_EXPECT_EQ(test, src, fi_rx_addr(b->peer, i, SEP_BITS));
		KUNIT_ASSERT_EQ(test, sep_comp(a->tx_cq[i], &entry, NULL), 0);
	}
}

/* An endpoint that knows nothing of contexts has addresses for them. */
static void sep_ordinary(struct kunit *test)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct sep_test *t = sep_open_both(test);
	struct sep_end *a = &t->end[0], plain = {};
	struct fi_cq_tagged_entry entry;
	struct sockaddr_in name = a->name;
	size_t len = sizeof(plain.name);
	struct fi_info *info;
	fi_addr_t addr, back;
	int i;

	KUNIT_ASSERT_EQ(test, sep_getinfo(test, 0, 0, &info), 0);
	KUNIT_EXPECT_EQ(test, info->ep_attr->rx_ctx_cnt, 1);
	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, info, &plain.tx[0], NULL),
			0);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, fi_cq_open(t->domain, &attr, &plain.tx_cq[0],
					 NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_av_open(t->domain, &(struct fi_av_attr) {},
					 &plain.av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(plain.tx[0], &plain.av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(plain.tx[0], &plain.tx_cq[0]->fid,
					 FI_TRANSMIT | FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(plain.tx[0]), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&plain.tx[0]->fid, &plain.name, &len),
			0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &plain.name, 1, &back, 0,
					   NULL), 1);
	for (i = 0; i < SEP_CTX; i++) {
		name.sin_port = htons(ntohs(a->name.sin_port) + i);
		KUNIT_ASSERT_EQ(test, fi_av_insert(plain.av, &name, 1, &addr,
						   0, NULL), 1);
		sep_send(t, &plain, 0, a->rx[i], a->rx_cq[i], addr, back);
		sep_send(t, a, i, plain.tx[0], plain.tx_cq[0], back, addr);
		KUNIT_EXPECT_EQ(test, fi_cq_read(plain.tx_cq[0], &entry, 1),
				-EAGAIN);
	}
	sep_close_end(t, &plain);
}

/* ----------------------------------------------------------------- threads */

struct sep_thread {
	struct sep_test		*t;
	int			i;
	int			err;
	struct completion	done;
};

/* Context i of one endpoint sends to context i of the other, and back. */
static int sep_thread_pingpong(struct sep_thread *th)
{
	struct fi_cq_tagged_entry entry;
	u64 *out = &th->t->out[th->i], *in = &th->t->in[th->i];
	int round, err, from;

	for (round = 0; round < 2 * SEP_ROUNDS; round++) {
		struct sep_end *a, *b;

		from = round & 1;
		a = &th->t->end[from];
		b = &th->t->end[!from];
		*out = (u64)th->i << 32 | round;
		err = fi_recv(b->rx[th->i], in, sizeof(*in), NULL,
			      FI_ADDR_UNSPEC, in) ?:
		      fi_send(a->tx[th->i], out, sizeof(*out), NULL,
			      fi_rx_addr(a->peer, th->i, SEP_BITS), out) ?:
		      sep_comp(b->rx_cq[th->i], &entry, NULL) ?:
		      sep_comp(a->tx_cq[th->i], &entry, NULL);
		if (err)
			return err;
		if (*in != *out)
			return -EBADMSG;
	}
	return 0;
}

static int sep_thread(void *arg)
{
	struct sep_thread *th = arg;

	th->err = sep_thread_pingpong(th);
	kthread_complete_and_exit(&th->done, 0);
}

static void sep_threads(struct kunit *test)
{
	struct sep_thread *th = kunit_kcalloc(test, SEP_CTX, sizeof(*th),
					      GFP_KERNEL);
	struct sep_test *t = sep_open_both(test);
	int cpu = cpumask_first(cpu_online_mask), i;
	struct task_struct *task;

	KUNIT_ASSERT_NOT_NULL(test, th);
	for (i = 0; i < SEP_CTX; i++) {
		th[i] = (struct sep_thread) { .t = t, .i = i };
		init_completion(&th[i].done);
		task = kthread_create(sep_thread, &th[i], "sep/%d", i);
		if (IS_ERR(task)) {
			th[i].err = PTR_ERR(task);
			complete(&th[i].done);
			continue;
		}
		kthread_bind(task, cpu);
		wake_up_process(task);
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
	}
	for (i = 0; i < SEP_CTX; i++)
		wait_for_completion(&th[i].done);
	for (i = 0; i < SEP_CTX; i++)
		KUNIT_EXPECT_EQ(test, th[i].err, 0);
}

/* ------------------------------------------------------- enabling, closing */

/* The order of userspace's examples: queues of one direction, then of the other */
static void sep_enabled(struct kunit *test)
{
	struct sep_test *t = sep_open(test);
	struct sep_end *e = &t->end[0];
	struct sockaddr_in name;
	size_t len = sizeof(name);
	u64 *in = &t->in[0];

	sep_open_end(t, e, 2);
	KUNIT_EXPECT_EQ(test, fi_enable(e->tx[1]), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(e->rx[1], in, sizeof(*in), NULL,
				      FI_ADDR_UNSPEC, in), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_getname(&e->sep->fid, &name, &len),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_enable(e->sep), -FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_control(&e->sep->fid, FI_ENABLE, NULL),
			-FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_control(&e->sep->fid, FI_GETOPSFLAG, NULL),
			-ENOSYS);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->rx[1], &e->rx_cq[1]->fid, FI_RECV),
			0);
	KUNIT_EXPECT_EQ(test, fi_enable(e->rx[1]), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(e->rx[1], in, sizeof(*in), NULL,
				      FI_ADDR_UNSPEC, in), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(e->tx[1]), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&e->tx[1]->fid, &name, &len), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&e->sep->fid, &e->name, &len), 0);
	KUNIT_EXPECT_EQ(test, ntohs(e->name.sin_port),
			ntohs(name.sin_port) - 1);
}

static void sep_ports(struct kunit *test)
{
	struct sep_test *t = sep_open_both(test);
	struct sockaddr_in *src = t->info->src_addr;
	struct fid_ep *sep;

	/* at the ports that were free just now */
	sep_close_end(t, &t->end[1]);
	src->sin_port = t->end[0].name.sin_port;
	sep_close_end(t, &t->end[0]);
	sep_open_whole(t, &t->end[0]);
	KUNIT_EXPECT_EQ(test, ntohs(t->end[0].name.sin_port),
			ntohs(src->sin_port));
	/* context 1 of this one is where context 0 of the other is */
	src->sin_port = htons(ntohs(t->end[0].name.sin_port) - 1);
	sep_open_end(t, &t->end[1], SEP_CTX);
	KUNIT_EXPECT_EQ(test, sep_enable_end(t, &t->end[1]), -EADDRINUSE);
	src->sin_port = htons(U16_MAX - SEP_CTX + 2);
	KUNIT_EXPECT_EQ(test, fi_scalable_ep(t->domain, t->info, &sep, NULL),
			-EINVAL);
	src->sin_port = 0;
}

static void sep_closed(struct kunit *test)
{
	struct sep_test *t = sep_open(test);
	struct sep_end *e = &t->end[0];
	struct fid_ep *again;
	int i;

	sep_open_end(t, e, SEP_CTX);
	KUNIT_EXPECT_EQ(test, fi_close(&e->sep->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&e->av->fid), -EBUSY);
	for (i = 0; i < SEP_CTX; i++) {
		KUNIT_EXPECT_EQ(test, fi_close(&e->tx[i]->fid), 0);
		e->tx[i] = NULL;
		/* the other half is there */
		KUNIT_EXPECT_EQ(test, fi_close(&e->tx_cq[i]->fid), -EBUSY);
		KUNIT_EXPECT_EQ(test, fi_tx_context(e->sep, i, NULL, &again,
						    NULL), -EBUSY);
		KUNIT_EXPECT_EQ(test, fi_close(&e->rx[i]->fid), 0);
		e->rx[i] = NULL;
		/* and is not any more */
		KUNIT_ASSERT_EQ(test, fi_rx_context(e->sep, i, NULL, &e->rx[i],
						    NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&e->sep->fid), -EBUSY);
}

/* The first one that is closed ends what is posted to both. */
static void sep_closed_posted(struct kunit *test)
{
	struct sep_test *t = sep_open_both(test);
	struct sep_end *a = &t->end[0], *b = &t->end[1];
	struct fi_cq_tagged_entry entry;
	fi_addr_t dest = fi_rx_addr(a->peer, 1, SEP_BITS);
	u64 *in = t->in;

	KUNIT_ASSERT_EQ(test, fi_recv(b->rx[1], in, sizeof(*in), NULL,
				      FI_ADDR_UNSPEC, in), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&b->tx[1]->fid), 0);
	b->tx[1] = NULL;
	KUNIT_EXPECT_EQ(test, sep_comp(b->rx_cq[1], &entry, NULL), FI_ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_recv(b->rx[1], in, sizeof(*in), NULL,
				      FI_ADDR_UNSPEC, in), -ESHUTDOWN);
	/* the others are what they were; this one is none of them any more */
	KUNIT_EXPECT_EQ(test, fi_enable(b->sep), 0);
	sep_send(t, a, 1, b->rx[0], b->rx_cq[0], a->peer,
		 fi_rx_addr(b->peer, 1, SEP_BITS));
	KUNIT_EXPECT_EQ(test, fi_close(&b->rx[1]->fid), 0);
	b->rx[1] = NULL;

	/* the same with the receives first, and something under way */
	KUNIT_ASSERT_EQ(test, fi_send(a->tx[2], &t->out[2], sizeof(*in), NULL,
				      dest, &t->out[2]), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&a->rx[2]->fid), 0);
	a->rx[2] = NULL;
	KUNIT_EXPECT_NE(test, sep_comp(a->tx_cq[2], &entry, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&a->tx[2]->fid), 0);
	a->tx[2] = NULL;
}

struct sep_closer {
	struct fid_ep		*ep;
	int			err;
	struct completion	*go;
	struct completion	done;
};

static int sep_closer(void *arg)
{
	struct sep_closer *c = arg;

	wait_for_completion(c->go);
	c->err = fi_close(&c->ep->fid);
	kthread_complete_and_exit(&c->done, 0);
}

/* Two threads close the two halves, while a third one enables. */
static void sep_closed_at_once(struct kunit *test)
{
	struct sep_closer *c = kunit_kcalloc(test, 2, sizeof(*c), GFP_KERNEL);
	struct sep_test *t = sep_open_both(test);
	struct sep_end *e = &t->end[1];
	struct task_struct *task;
	DECLARE_COMPLETION_ONSTACK(go);
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < SEP_CTX; i++) {
		KUNIT_EXPECT_EQ(test, fi_recv(e->rx[i], &t->in[i], sizeof(u64),
					      NULL, FI_ADDR_UNSPEC, NULL), 0);
		reinit_completion(&go);
		c[0] = (struct sep_closer) { .ep = e->tx[i], .go = &go };
		c[1] = (struct sep_closer) { .ep = e->rx[i], .go = &go };
		for (j = 0; j < 2; j++) {
			init_completion(&c[j].done);
			task = kthread_run(sep_closer, &c[j], "sep/%d", j);
			if (IS_ERR(task)) {
				c[j].err = fi_close(&c[j].ep->fid);
				complete(&c[j].done);
			}
		}
		complete_all(&go);
		KUNIT_EXPECT_EQ(test, fi_enable(e->sep), 0);
		for (j = 0; j < 2; j++) {
			wait_for_completion(&c[j].done);
			KUNIT_EXPECT_EQ(test, c[j].err, 0);
		}
		e->tx[i] = NULL;
		e->rx[i] = NULL;
	}
	KUNIT_EXPECT_EQ(test, fi_close(&e->sep->fid), 0);
	e->sep = NULL;
}

/* ---------------------------------------------------------------- refusals */

static void sep_refused_contexts(struct kunit *test, struct sep_test *t,
				 struct sep_end *e)
{
	struct fi_tx_attr tx = *t->info->tx_attr;
	struct fi_rx_attr rx = *t->info->rx_attr;
	struct fid_ep *ep;

	KUNIT_EXPECT_EQ(test, fi_tx_context(e->sep, -1, NULL, &ep, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_tx_context(e->sep, SEP_CTX, NULL, &ep, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_rx_context(e->sep, 0, NULL, NULL, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_rx_context(e->tx[0], 0, NULL, &ep, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_tx_context(e->sep, 0, NULL, &ep, NULL),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, fi_rx_context(e->sep, 0, NULL, &ep, NULL),
			-EBUSY);
	tx.size++;
	rx.size++;
	KUNIT_EXPECT_EQ(test, fi_tx_context(e->sep, 1, &tx, &ep, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_rx_context(e->sep, 1, &rx, &ep, NULL),
			-EINVAL);
	KUNIT_ASSERT_EQ(test, fi_tx_context(e->sep, 1, t->info->tx_attr,
					    &e->tx[1], NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_rx_context(e->sep, 1, t->info->rx_attr,
					    &e->rx[1], NULL), 0);
}

static void sep_refused(struct kunit *test)
{
	struct sep_test *t = sep_open(test);
	struct sep_end *e = &t->end[0];
	struct fi_info *info = NULL;
	struct fid_ep *ep;
	u64 value = 0;

	KUNIT_EXPECT_EQ(test, sep_getinfo(test, KOFI_EP_CTX_MAX + 1,
					  KOFI_EP_CTX_MAX + 1, &info),
			-ENODATA);
	/* a transmit and a receive context are one endpoint */
	KUNIT_EXPECT_EQ(test, sep_getinfo(test, SEP_CTX, 1, &info), -ENODATA);
	KUNIT_EXPECT_EQ(test, sep_getinfo(test, SEP_CTX, SEP_CTX - 1, &info),
			-ENODATA);
	KUNIT_EXPECT_EQ(test, sep_getinfo(test, FI_SHARED_CONTEXT, SEP_CTX,
					  &info), -ENODATA);
	KUNIT_ASSERT_EQ(test, sep_getinfo(test, 0, SEP_CTX, &info), 0);
	KUNIT_EXPECT_EQ(test, info->ep_attr->tx_ctx_cnt, SEP_CTX);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, sep_getinfo(test, SEP_CTX, 0, &info), 0);
	KUNIT_EXPECT_EQ(test, info->ep_attr->rx_ctx_cnt, SEP_CTX);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, fi_endpoint(t->domain, t->info, &ep, NULL),
			-EINVAL);
	t->info->ep_attr->tx_ctx_cnt--;
	KUNIT_EXPECT_EQ(test, fi_scalable_ep(t->domain, t->info, &ep, NULL),
			-EINVAL);
	t->info->ep_attr->tx_ctx_cnt++;
	t->info->ep_attr->type = FI_EP_MSG;
	KUNIT_EXPECT_EQ(test, fi_scalable_ep(t->domain, t->info, &ep, NULL),
			-EINVAL);
	t->info->ep_attr->type = FI_EP_RDM;
	KUNIT_EXPECT_EQ(test, fi_scalable_ep(NULL, t->info, &ep, NULL),
			-EINVAL);

	sep_open_end(t, e, 1);
	sep_refused_contexts(test, t, e);
	KUNIT_EXPECT_EQ(test, fi_scalable_ep_bind(e->sep, &e->tx_cq[0]->fid, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_scalable_ep_bind(e->sep, &e->av->fid, 1),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_scalable_ep_bind(e->sep, &e->av->fid, 0),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, fi_scalable_ep_bind(e->tx[0], &e->av->fid, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(e->sep, &e->tx_cq[0]->fid,
					 FI_TRANSMIT), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_send(e->sep, &value, sizeof(value), NULL, 0,
				      NULL), -ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_cancel(&e->sep->fid, NULL), -EINVAL);
}

static struct kunit_case sep_cases[] = {
	KUNIT_CASE_PARAM(sep_contexts, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_directed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_ordinary, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_threads, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_enabled, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_ports, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_closed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_closed_posted, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_closed_at_once, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sep_refused, rdm_place_gen_params),
	{}
};

static struct kunit_suite sep_suite = {
	.name = "rdm_sep",
	.suite_init = lo_suite_init,
	.test_cases = sep_cases,
	.attr.speed = KUNIT_SPEED_SLOW,
};

kunit_test_suite(sep_suite);
