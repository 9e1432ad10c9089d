// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts of a scalable endpoint on two CPUs: each has its queue, its sender and its
 * receiver on a CPU of its own. What is right does not depend on how fast the host is; how
 * much more two contexts move than one is told and not judged. Beside it is told how
 * much more both CPUs compute than one, as those of a machine may have to share what the
 * host has.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hash.h>
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "../kunit.h"
#include "../limit.h"
#include "place.h"

#define SCALE_CTX	2
#define SCALE_BITS	1
#define SCALE_COUNT	256	/* messages to a context */
#define SCALE_SENDS	16	/* of them on their way */
#define SCALE_RECVS	64	/* receives that are posted */
#define SCALE_COMPUTE	(64 << 16)	/* steps of a CPU that computes */
#define SCALE_TRIES	16	/* for ports side by side */
#define SCALE_TIMEOUT	msecs_to_jiffies(TEST_LIMIT(60000))

struct scale_ctx;

/* A transmit or a receive */
struct scale_op {
	struct kofi_cqe		cqe;
	struct scale_ctx	*ctx;
	struct completion	idle;	/* of a transmit */
	u64			number;	/* a receive's, in the order of posts */
	u64			value;
};

/* One context of both endpoints, and who sends from the one to the other */
struct scale_ctx {
	struct scale		*s;
	int			i;
	int			cpu;
	struct scale_op		send[SCALE_SENDS];
	struct scale_op		recv[SCALE_RECVS];
	u64			first;	/* number of the run's first message */
	u64			next;	/* messages that have come */
	u64			posted;	/* receives */
	unsigned int		wrong;	/* messages in another's receive */
	unsigned int		late;	/* completions after a later message's */
	unsigned int		elsewhere;	/* callbacks on another CPU */
	int			recv_err;
	int			send_err;
	u64			result;	/* of computing */
	struct completion	all;
	struct task_struct	*task;
};

struct scale_end {
	struct fid_ep	*sep;
	struct fid_av	*av;
	struct fid_cq	*cq[SCALE_CTX];
	struct fid_ep	*tx[SCALE_CTX];
	struct fid_ep	*rx[SCALE_CTX];
};

struct scale {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct scale_end	from;
	struct scale_end	to;
	fi_addr_t		peer;
	struct completion	go;
	bool			computes;	/* who would send does */
	struct scale_ctx	ctx[SCALE_CTX];
};

/* ----------------------------------------------------------------- objects */

static void scale_close_fid(struct kunit *test, struct fi_fid *fid)
{
	if (fid)
		KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
}

static void scale_close_end(struct scale *s, struct scale_end *e)
{
	int i;

	for (i = 0; i < SCALE_CTX; i++) {
		scale_close_fid(s->test, e->tx[i] ? &e->tx[i]->fid : NULL);
		scale_close_fid(s->test, e->rx[i] ? &e->rx[i]->fid : NULL);
	}
	scale_close_fid(s->test, e->sep ? &e->sep->fid : NULL);
	for (i = 0; i < SCALE_CTX; i++)
		scale_close_fid(s->test, e->cq[i] ? &e->cq[i]->fid : NULL);
	scale_close_fid(s->test, e->av ? &e->av->fid : NULL);
	memset(e, 0, sizeof(*e));
}

/* A sender that waits for its transmits goes on when they end. */
static void scale_stop(struct scale *s)
{
	int i;

	for (i = 0; i < SCALE_CTX; i++)
		if (s->from.tx[i])
			kofi_ep_drain(s->from.tx[i]);
	complete_all(&s->go);
	for (i = 0; i < SCALE_CTX; i++)
		if (s->ctx[i].task)
			kthread_stop_put(s->ctx[i].task);
}

static void scale_close(void *arg)
{
	struct scale *s = arg;

	scale_stop(s);
	scale_close_end(s, &s->from);
	scale_close_end(s, &s->to);
	scale_close_fid(s->test, s->domain ? &s->domain->fid : NULL);
	scale_close_fid(s->test, s->fabric ? &s->fabric->fid : NULL);
	fi_freeinfo(s->info);
	kfree(s);
}

static void scale_open_end(struct scale *s, struct scale_end *e)
{
	struct fi_av_attr av = { .rx_ctx_bits = SCALE_BITS };
	struct kunit *test = s->test;
	int i;

	KUNIT_ASSERT_EQ(test, fi_av_open(s->domain, &av, &e->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_scalable_ep(s->domain, s->info, &e->sep, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_scalable_ep_bind(e->sep, &e->av->fid, 0), 0);
	for (i = 0; i < SCALE_CTX; i++) {
		const struct kofi_cq_attr kattr = {
			.flags = FI_AFFINITY, .cpu = s->ctx[i].cpu,
			.poll = KOFI_POLL_SOFTIRQ, .done = true,
		};

		KUNIT_ASSERT_EQ(test, kofi_cq_open(s->domain, NULL, &kattr,
						   &e->cq[i], NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_tx_context(e->sep, i, NULL, &e->tx[i],
						    NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_rx_context(e->sep, i, NULL, &e->rx[i],
						    NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(e->tx[i], &e->cq[i]->fid,
						 FI_TRANSMIT), 0);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(e->rx[i], &e->cq[i]->fid,
						 FI_RECV), 0);
	}
}

/* The port beside the one that is free may be taken by others. */
static void scale_enable_end(struct scale *s, struct scale_end *e)
{
	int tries = SCALE_TRIES, err;

	do {
		scale_close_end(s, e);
		scale_open_end(s, e);
		err = fi_enable(e->sep);
	} while ((err == -EADDRINUSE || err == -EADDRNOTAVAIL) && --tries);
	KUNIT_ASSERT_EQ(s->test, err, 0);
}

/* ---------------------------------------------------------------- messages */

static void scale_count(struct scale_op *op)
{
	if (smp_processor_id() != op->ctx->cpu)
		op->ctx->elsewhere++;
}

static void scale_sent(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct scale_op *op = container_of(wc->cqe, struct scale_op, cqe);

	scale_count(op);
	if (wc->err)
		cmpxchg(&op->ctx->send_err, 0, wc->err);
	complete(&op->idle);
}

static int scale_post(struct scale_op *op)
{
	struct scale_ctx *ctx = op->ctx;

	op->value = U64_MAX;
	op->number = ctx->posted++;
	return fi_recv(ctx->s->to.rx[ctx->i], &op->value, sizeof(op->value), NULL,
		       FI_ADDR_UNSPEC, &op->cqe);
}

/*
 * Messages of a context are matched with receives in the order of both; receives complete
 * in that order where the provider says so. The queue calls this on one CPU.
 */
static void scale_received(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct scale_op *op = container_of(wc->cqe, struct scale_op, cqe);
	struct scale_ctx *ctx = op->ctx;
	int err;

	scale_count(op);
	if (wc->err) {
		cmpxchg(&ctx->recv_err, 0, wc->err);
		return;
	}
	if (op->value != ((u64)ctx->i << 32 | op->number))
		ctx->wrong++;
	if (op->number != ctx->next)
		ctx->late++;
	ctx->next++;
	err = scale_post(op);
	if (err)
		cmpxchg(&ctx->recv_err, 0, -err);
	if (ctx->next == ctx->first + SCALE_COUNT)
		complete(&ctx->all);
}

static int scale_send_all(struct scale_ctx *ctx)
{
	struct scale *s = ctx->s;
	struct scale_op *op;
	unsigned int n;
	int err = 0;

	for (n = 0; n < SCALE_COUNT; n++) {
		op = &ctx->send[n % SCALE_SENDS];
		wait_for_completion(&op->idle);
		op->value = (u64)ctx->i << 32 | (ctx->first + n);
		err = fi_send(s->from.tx[ctx->i], &op->value, sizeof(op->value),
			      NULL, fi_rx_addr(s->peer, ctx->i, SCALE_BITS),
			      &op->cqe);
		if (err) {
			complete(&op->idle);
			break;
		}
	}
	return err;
}

static void scale_compute(struct scale_ctx *ctx)
{
	u64 value = ctx->i;
	unsigned int n;

	for (n = 0; n < SCALE_COMPUTE; n++) {
		value = hash_64(value + n, 64);
		if (!(n & 0xffff))
			cond_resched();
	}
	ctx->result = value;
	complete(&ctx->all);
}

static int scale_sender(void *arg)
{
	struct scale_ctx *ctx = arg;
	int err = 0;

	wait_for_completion(&ctx->s->go);
	if (ctx->s->computes)
		scale_compute(ctx);
	else
		err = scale_send_all(ctx);
	if (err)
		cmpxchg(&ctx->send_err, 0, -err);
	return 0;
}

/* How long the first so many contexts take for what each has to do, in nanoseconds */
static u64 scale_run(struct scale *s, int contexts)
{
	struct kunit *test = s->test;
	struct scale_ctx *ctx;
	u64 begin;
	int i;

	reinit_completion(&s->go);
	for (i = 0; i < contexts; i++) {
		ctx = &s->ctx[i];
		if (!s->computes)
			ctx->first = ctx->next;
		reinit_completion(&ctx->all);
		ctx->task = kthread_create(scale_sender, ctx, "scale/%d", i);
		if (IS_ERR(ctx->task))
			ctx->task = NULL;
		KUNIT_ASSERT_NOT_NULL(test, ctx->task);
		get_task_struct(ctx->task);
		kthread_bind(ctx->task, ctx->cpu);
		wake_up_process(ctx->task);
	}
	begin = ktime_get_ns();
	complete_all(&s->go);
	for (i = 0; i < contexts; i++)
		KUNIT_ASSERT_NE(test,
				wait_for_completion_timeout(&s->ctx[i].all,
							    SCALE_TIMEOUT), 0);
	begin = ktime_get_ns() - begin;
	for (i = 0; i < contexts; i++) {
		kthread_stop_put(s->ctx[i].task);
		s->ctx[i].task = NULL;
	}
	return begin;
}

static void scale_judge(struct scale *s)
{
	struct kunit *test = s->test;
	int i;

	for (i = 0; i < SCALE_CTX; i++) {
		KUNIT_EXPECT_EQ(test, s->ctx[i].wrong, 0);
		if (s->info->rx_attr->comp_order & FI_ORDER_STRICT)
			KUNIT_EXPECT_EQ(test, s->ctx[i].late, 0);
		KUNIT_EXPECT_EQ(test, s->ctx[i].elsewhere, 0);
		KUNIT_EXPECT_EQ(test, s->ctx[i].recv_err, 0);
		KUNIT_EXPECT_EQ(test, s->ctx[i].send_err, 0);
		/* no more than were sent, either */
		KUNIT_EXPECT_EQ(test, s->ctx[i].next,
				s->ctx[i].first + SCALE_COUNT);
	}
}

/* -------------------------------------------------------------------- cases */

static void scale_init_ctx(struct scale *s, int i, int cpu)
{
	struct scale_ctx *ctx = &s->ctx[i];
	int j;

	ctx->s = s;
	ctx->i = i;
	ctx->cpu = cpu;
	init_completion(&ctx->all);
	for (j = 0; j < SCALE_SENDS; j++) {
		ctx->send[j].cqe.done = scale_sent;
		ctx->send[j].ctx = ctx;
		init_completion(&ctx->send[j].idle);
		complete(&ctx->send[j].idle);
	}
	for (j = 0; j < SCALE_RECVS; j++) {
		ctx->recv[j].cqe.done = scale_received;
		ctx->recv[j].ctx = ctx;
	}
}

static struct scale *scale_open(struct kunit *test)
{
	struct scale *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct fi_info *hints;
	struct sockaddr_in name;
	size_t len = sizeof(name);
	int i, j, err, cpu = -1;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	init_completion(&s->go);
	for (i = 0; i < SCALE_CTX; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		scale_init_ctx(s, i, cpu);
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, scale_close, s),
			0);
	hints = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | FI_NAMED_RX_CTX;
	hints->ep_attr->tx_ctx_cnt = SCALE_CTX;
	hints->ep_attr->rx_ctx_cnt = SCALE_CTX;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	err = rdm_place_getinfo(test, hints, &s->info);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, fi_fabric(s->info->fabric_attr, &s->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(s->fabric, s->info, &s->domain, NULL),
			0);
	scale_enable_end(s, &s->from);
	scale_enable_end(s, &s->to);
	KUNIT_ASSERT_EQ(test, fi_getname(&s->to.sep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(s->from.av, &name, 1, &s->peer, 0,
					   NULL), 1);
	for (i = 0; i < SCALE_CTX; i++)
		for (j = 0; j < SCALE_RECVS; j++)
			KUNIT_ASSERT_EQ(test, scale_post(&s->ctx[i].recv[j]), 0);
	return s;
}

/* How many times as much two do in the same time as one */
static void scale_tell(struct scale *s, const char *what)
{
	u64 one = scale_run(s, 1);
	u64 two = scale_run(s, SCALE_CTX);
	u64 ratio = div64_u64(100 * SCALE_CTX * one, max_t(u64, two, 1));

	kunit_info(s->test, "%s: one %llu us, two at once %llu us, so %llu.%02llu times as much\n",
		   what, div_u64(one, NSEC_PER_USEC),
		   div_u64(two, NSEC_PER_USEC), ratio / 100, ratio % 100);
}

static void scale_contexts(struct kunit *test)
{
	struct scale *s;

	if (num_online_cpus() < SCALE_CTX)
		kunit_skip(test, "there is one CPU");
	s = scale_open(test);
	/* both connect, and get what they need, before it counts */
	scale_run(s, SCALE_CTX);
	scale_tell(s, "messages");
	scale_judge(s);
	s->computes = true;
	scale_tell(s, "computing");
}

static struct kunit_case scale_cases[] = {
	KUNIT_CASE_PARAM(scale_contexts, rdm_place_gen_params),
	{}
};

static struct kunit_suite scale_suite = {
	.name = "rdm_scale",
	.suite_init = lo_suite_init,
	.test_cases = scale_cases,
};

kunit_test_suite(scale_suite);
