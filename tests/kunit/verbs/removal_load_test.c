// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device is removed while threads keep something under way: messages to a
 * shared receive context, regions being registered and invalidated, connections
 * being made; and, all the time, discovery, domains and clients that open them.
 * What holds each time: every accepted operation completes once, each connection
 * ends in one event, all who wait are woken, and everything closes with 0.
 */

#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "link.h"

#define RL_LEN		4096	/* bytes of a message or region */
#define RL_RING		8	/* messages and receives of a thread at a time */
#define RL_HANDS	4	/* threads at most */
#define RL_TURNS	8	/* of each before the removal */
#define RL_MORE		24	/* and at random so many more */
#define RL_ACCESS	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define RL_RMA		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | \
			 FI_WRITE | RL_ACCESS)
#define RL_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)

/**
 * struct rl_hand - a thread that does something again and again
 * @p: the pair it does it with
 * @turn: does it once; false when there is no point in more
 * @turns: how often it has
 * @task: the thread
 * @ep: ends of its own connection
 * @rx: of messages: its receives
 * @tx: its sends, or other operations
 * @mem: RL_LEN bytes
 * @ev: room for an event
 */
struct rl_hand {
	struct ct_pair		*p;
	bool			(*turn)(struct rl_hand *hand);
	unsigned int		turns;
	struct task_struct	*task;
	struct fid_ep		*ep[2];
	struct ct_op		*rx[RL_RING];
	struct ct_op		*tx[RL_RING];
	u8			*mem;
	struct ct_event		*ev;
};

static int rl_hand(void *arg)
{
	struct rl_hand *hand = arg;

	while (!kthread_should_stop() && hand->turn(hand)) {
		WRITE_ONCE(hand->turns, hand->turns + 1);
		wake_up(&hand->p->wq);
		cond_resched();
	}
	return 0;
}

static void rl_hand_init(struct rl_hand *hand, struct ct_pair *p,
			 bool (*turn)(struct rl_hand *hand))
{
	int i;

	hand->p = p;
	hand->turn = turn;
	hand->mem = ct_buf(p, RL_LEN);
	hand->ev = ct_buf(p, sizeof(*hand->ev));
	for (i = 0; i < RL_RING; i++) {
		hand->rx[i] = ct_op(p);
		hand->tx[i] = ct_op(p);
	}
}

static void rl_hand_start(struct rl_hand *hand)
{
	struct task_struct *task = kthread_create(rl_hand, hand, "rl_hand");

	KUNIT_ASSERT_FALSE(hand->p->test, IS_ERR(task));
	/* it may be over before it is told to stop */
	hand->task = get_task_struct(task);
	wake_up_process(task);
}

/* ---------------------------------------- messages to a shared receive context */

static ssize_t rl_post_send(struct fid_ep *ep, void *context, void *arg)
{
	struct rl_hand *hand = arg;

	return fi_send(hand->ep[0], hand->mem, RL_LEN, NULL, 0, context);
}

/* A receive for the first that comes, and a message: there are enough for all. */
static bool rl_message(struct rl_hand *hand)
{
	struct ct_op *rx = hand->rx[hand->turns % RL_RING];
	struct ct_op *tx = hand->tx[hand->turns % RL_RING];
	struct ct_pair *p = hand->p;

	return ct_wait_done(p, rx) && ct_wait_done(p, tx) &&
	       !ct_recv(p, 1, rx, p->priv, RL_LEN) &&
	       !ct_post_fn(p, 0, tx, rl_post_send, hand);
}

/* A connection of its own, which is not the pair's any more */
static bool rl_connect_hand(struct rl_hand *hand)
{
	struct ct_pair *p = hand->p;
	int side;

	if (!p->side[0].ep && ct_ep_open(p, 0, p->info))
		return false;
	if (ct_pair_connect(p))
		return false;
	for (side = 0; side < 2; side++) {
		hand->ep[side] = p->side[side].ep;
		p->side[side].ep = NULL;
	}
	return true;
}

static void rl_close_hand(struct rl_hand *hand)
{
	struct ct_pair *p = hand->p;
	int side;

	for (side = 0; side < 2 && hand->ep[side]; side++) {
		p->side[side].ep = hand->ep[side];
		KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, side), 0);
		hand->ep[side] = NULL;
	}
}

/* ----------------------------------------------------------------- regions */

static int rl_map(struct rl_hand *hand, struct fid_mr *mr, struct ct_op *op,
		  u64 flags)
{
	const struct kvec kv = { hand->mem, RL_LEN };
	const struct fi_msg vec = {
		.msg_iov = &kv, .iov_count = 1, .context = op,
	};
	int err;

	if (op)
		atomic_inc(&op->posted);
	err = kofi_mr_map(mr, &vec, RL_ACCESS, flags);
	if (err && op)
		atomic_dec(&op->posted);
	return err;
}

/* Mapped and unmapped, which the device is asked to do */
static bool rl_pool(struct rl_hand *hand)
{
	struct fid_mr *mr = kofi_mr_get(hand->p->side[1].ep);
	struct ct_op *op = hand->tx[0];
	bool mapped;

	if (!mr)
		return false;
	mapped = !rl_map(hand, mr, NULL, 0);
	if (mapped) {
		atomic_inc(&op->posted);
		KUNIT_EXPECT_EQ(hand->p->test, kofi_mr_unmap(mr, &op->cqe), 0);
		KUNIT_EXPECT_TRUE(hand->p->test, ct_wait_done(hand->p, op));
	}
	kofi_mr_put(mr);
	return mapped;
}

/* A message that way, which may invalidate a key */
static bool rl_tell(struct rl_hand *hand, int to, u64 key)
{
	const struct kvec kv = { hand->mem, 8 };
	struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .inv_key = key,
	};
	struct ct_op *rx = hand->rx[to], *tx = hand->tx[to];
	struct ct_pair *p = hand->p;

	return !ct_recv(p, to, rx, p->priv, 8) &&
	       !ct_post_send(p, !to, tx, &msg, FI_COMPLETION |
			     (to ? KOFI_REMOTE_INV : 0)) &&
	       ct_wait_done(p, rx) && ct_wait_done(p, tx) &&
	       !rx->wc.err && !tx->wc.err;
}

/* A single-use region, which the peer ends */
static bool rl_once(struct rl_hand *hand)
{
	struct fid_mr *mr = kofi_mr_get(hand->p->side[1].ep);
	struct ct_op *op = hand->tx[RL_RING - 1];
	bool all = false;

	if (!mr)
		return false;
	if (!rl_map(hand, mr, op, FI_MR_SINGLE_USE)) {
		/* the device has registered it before this is sent */
		all = rl_tell(hand, 0, 0) && rl_tell(hand, 1, fi_mr_key(mr));
		if (!all)
			kofi_mr_unmap(mr, NULL);
		KUNIT_EXPECT_TRUE(hand->p->test, ct_wait_done(hand->p, op));
	}
	kofi_mr_put(mr);
	return all;
}

static bool rl_register(struct rl_hand *hand, struct fid_ep *ep)
{
	struct fid_mr *mr;
	int err;

	if (fi_mr_reg(hand->p->domain, hand->mem, RL_LEN, RL_ACCESS, 0, 0, 0,
		      &mr, NULL))
		return false;
	err = ep ? fi_mr_bind(mr, &ep->fid, 0) : 0;
	if (ep && !err)
		err = fi_mr_enable(mr);
	KUNIT_EXPECT_EQ(hand->p->test, fi_close(&mr->fid), 0);
	return !err;
}

static bool rl_unbound(struct rl_hand *hand)
{
	return rl_register(hand, NULL);
}

static bool rl_bound(struct rl_hand *hand)
{
	return rl_register(hand, hand->p->side[hand->turns & 1].ep);
}

/* ------------------------------------------------------------- connections */

/* What earlier connections have left */
static void rl_forget(struct rl_hand *hand, int side)
{
	struct ct_event *ev = hand->ev;
	int ret;

	while ((ret = ct_next_event(hand->p->side[side].eq, ev, 0)) >= 0)
		if (!ret && ev->event == FI_CONNREQ)
			fi_freeinfo(ev->cm.info);
}

static bool rl_connect(struct rl_hand *hand)
{
	struct ct_pair *p = hand->p;
	int err, side;

	for (side = 0; side < 2; side++)
		KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, side), 0);
	KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
	for (side = 0; side < 2; side++)
		rl_forget(hand, side);
	err = ct_ep_open(p, 0, p->info) ?: fi_enable(p->side[0].ep);
	if (err)
		return false;
	return !ct_recv(p, 0, hand->rx[0], hand->mem, RL_LEN) &&
	       !ct_pair_connect(p) &&
	       !ct_recv(p, 1, hand->rx[1], p->priv, RL_LEN) &&
	       !ct_send(p, 0, hand->tx[0], hand->mem, RL_LEN) &&
	       !ct_send(p, 1, hand->tx[1], hand->mem, RL_LEN);
}

/* -------------------------------------------------------------------- loads */

/**
 * struct rl_load - what is under way
 * @turns: of each thread; NULL ends them if there are fewer
 * @name: of it
 * @opts: of the pair, but for the mode
 * @connects: each thread has a connection of its own
 */
struct rl_load {
	bool		(*turns[RL_HANDS])(struct rl_hand *hand);
	const char	*name;
	struct ct_opts	opts;
	bool		connects;
};

static const struct rl_load rl_loads[] = {
	{
		.name = "shared", .connects = true,
		.opts = { .srx_size = RL_HANDS * RL_RING,
			  .unconnected = true },
		.turns = { rl_message, rl_message, rl_message },
	}, {
		.name = "regions",
		.opts = { .caps = RL_RMA, .mr_mode = RL_MR_MODE, .mr_pool = 4 },
		.turns = { rl_pool, rl_once, rl_unbound, rl_unbound },
	}, {
		.name = "bound",
		.opts = { .caps = RL_RMA, .mr_mode = RL_MR_MODE | FI_MR_ENDPOINT,
			  .mr_pool = 4 },
		.turns = { rl_pool, rl_pool, rl_bound, rl_bound },
	}, {
		.name = "connecting",
		.opts = { .unconnected = true },
		.turns = { rl_connect },
	},
};

static void rl_desc(const struct rl_load *load, char *desc)
{
	strscpy(desc, load->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rl, rl_loads, rl_desc);

static unsigned int rl_least(const struct rl_hand *hands, int n)
{
	unsigned int least = UINT_MAX;

	while (n--)
		least = min(least, READ_ONCE(hands[n].turns));
	return least;
}

static void rl_round(struct kunit *test, const struct rl_load *load,
		     unsigned int round)
{
	unsigned int turns = RL_TURNS + get_random_u32_below(RL_MORE);
	struct ct_opts opts = load->opts;
	struct rl_hand *hands;
	struct ct_pair *p;
	int i, n;

	opts.mode = link_mode(round);
	p = ct_pair_open(test, &opts);
	p->priv = ct_buf(p, RL_LEN);
	hands = ct_buf(p, sizeof(*hands) * RL_HANDS);
	for (n = 0; n < RL_HANDS && load->turns[n]; n++) {
		rl_hand_init(&hands[n], p, load->turns[n]);
		if (load->connects && !rl_connect_hand(&hands[n]))
			break;
	}
	KUNIT_EXPECT_TRUE(test, n == RL_HANDS || !load->turns[n]);
	for (i = 0; i < n; i++)
		rl_hand_start(&hands[i]);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, rl_least(hands, n) >= turns,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, link_remove(), 0);
	for (i = 0; i < n; i++)
		kthread_stop_put(hands[i].task);

	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	if (load->turns[0] != rl_connect)
		ct_expect_removed(p, load->connects ? n : 1);
	if (round & 1)
		KUNIT_EXPECT_EQ(test, link_add(), 0);
	for (i = 0; i < n; i++)
		rl_close_hand(&hands[i]);
	ct_pair_close(p);
	if (!(round & 1))
		KUNIT_EXPECT_EQ(test, link_add(), 0);
}

static void removal_under(struct kunit *test)
{
	const struct rl_load *load = test->param_value;
	unsigned int round;

	for (round = 0; round < link_rounds; round++)
		rl_round(test, load, round);
}

/* ------------------------------------- discovery, domains and their clients */

/**
 * struct rl_client - a client with a domain open as long as there is a device
 * @client: the core's
 * @info: of the domain
 * @fabric: the same
 * @domain: NULL if there is no device
 * @there: the client has been told of the device
 * @wrong: twice, or that it went without having come
 * @opened: domains so far
 */
struct rl_client {
	struct kofi_client	client;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	bool			there;
	bool			wrong;
	unsigned int		opened;
};

static void rl_client_close(struct rl_client *c)
{
	if (c->domain && fi_close(&c->domain->fid))
		c->wrong = true;
	if (c->fabric && fi_close(&c->fabric->fid))
		c->wrong = true;
	fi_freeinfo(c->info);
	c->info = NULL;
	c->fabric = NULL;
	c->domain = NULL;
}

/* Any of it may fail at any moment, for want of a device. */
static bool rl_client_open(struct rl_client *c)
{
	struct fi_info *hints = ct_hints();
	int err;

	if (!hints)
		return false;
	err = ct_getinfo(0, hints, &c->info);
	fi_freeinfo(hints);
	err = err ?: fi_fabric(c->info->fabric_attr, &c->fabric, NULL);
	err = err ?: fi_domain(c->fabric, c->info, &c->domain, NULL);
	if (err)
		rl_client_close(c);
	else
		c->opened++;
	return !err;
}

static bool rl_client_ours(const struct kofi_domain_id *id)
{
	return !strcmp(id->prov_name, ct_provider) &&
	       !strcmp(id->name, ct_device);
}

static void rl_client_add(struct kofi_client *client,
			  const struct kofi_domain_id *id)
{
	struct rl_client *c = container_of(client, struct rl_client, client);

	if (!rl_client_ours(id))
		return;
	if (c->there)
		c->wrong = true;
	c->there = true;
	/* the device cannot go now: its removal waits for this */
	if (!rl_client_open(c))
		c->wrong = true;
}

static void rl_client_remove(struct kofi_client *client,
			     const struct kofi_domain_id *id)
{
	struct rl_client *c = container_of(client, struct rl_client, client);

	if (!rl_client_ours(id))
		return;
	if (!c->there)
		c->wrong = true;
	c->there = false;
	rl_client_close(c);
}

static void rl_client_init(struct rl_client *c)
{
	*c = (struct rl_client) {
		.client = {
			.name	= "rl_client",
			.add	= rl_client_add,
			.remove	= rl_client_remove,
		},
	};
}

struct rl_thread {
	struct task_struct	*task;
	struct rl_client	client;
	unsigned int		turns;
	bool			wrong;
};

/*
 * One that opens without being told. Without a device there is nothing to wait
 * for: these threads must not keep who removes it from the processor.
 */
static int rl_opener(void *arg)
{
	struct rl_thread *t = arg;

	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		rl_client_open(&t->client);
		rl_client_close(&t->client);
		WRITE_ONCE(t->turns, t->turns + 1);
		cond_resched();
	}
	t->wrong = t->client.wrong;
	return 0;
}

/* Clients that come and go: they have closed everything when they have gone. */
static int rl_registrar(void *arg)
{
	struct rl_thread *t = arg;
	unsigned int opened = 0;

	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		rl_client_init(&t->client);
		if (kofi_client_register(&t->client.client)) {
			t->wrong = true;
			break;
		}
		cond_resched();
		kofi_client_unregister(&t->client.client);
		if (t->client.wrong || t->client.there || t->client.domain)
			t->wrong = true;
		opened += t->client.opened;
		WRITE_ONCE(t->turns, t->turns + 1);
		cond_resched();
	}
	t->client.opened = opened;
	return 0;
}

static unsigned int rl_least_turns(const struct rl_thread *threads, int n)
{
	unsigned int least = UINT_MAX;

	while (n--)
		least = min(least, READ_ONCE(threads[n].turns));
	return least;
}

static void removal_clients(struct kunit *test)
{
	static int (*const fns[])(void *arg) = {
		rl_opener, rl_opener, rl_registrar, rl_registrar,
	};
	struct rl_thread *threads;
	struct rl_client *stays;
	int i, err = 0;
	unsigned int n;

	threads = kunit_kcalloc(test, ARRAY_SIZE(fns), sizeof(*threads),
				GFP_KERNEL);
	stays = kunit_kzalloc(test, sizeof(*stays), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, threads);
	KUNIT_ASSERT_NOT_NULL(test, stays);
	rl_client_init(stays);
	KUNIT_ASSERT_EQ(test, kofi_client_register(&stays->client), 0);
	KUNIT_EXPECT_EQ(test, stays->opened, 1);
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		threads[i].task = kthread_run(fns[i], &threads[i], "rl_thread");
	for (n = 0; !err && (n < link_rounds ||
			     rl_least_turns(threads, ARRAY_SIZE(fns)) < 8); n++) {
		err = link_remove() ?: link_add();
		cond_resched();
	}
	for (i = 0; i < ARRAY_SIZE(fns); i++) {
		if (IS_ERR(threads[i].task)) {
			KUNIT_FAIL(test, "no thread");
			continue;
		}
		kthread_stop(threads[i].task);
		KUNIT_EXPECT_FALSE(test, threads[i].wrong);
		kunit_info(test, "thread %d: %u turns, %u domains\n", i,
			   threads[i].turns, threads[i].client.opened);
	}
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_FALSE(test, stays->wrong);
	KUNIT_EXPECT_TRUE(test, stays->there);
	KUNIT_EXPECT_EQ(test, stays->opened, n + 1);
	kofi_client_unregister(&stays->client);
	KUNIT_EXPECT_FALSE(test, stays->there);
}

static struct kunit_case verbs_removal_load_cases[] = {
	KUNIT_CASE_PARAM(removal_under, rl_gen_params),
	KUNIT_CASE(removal_clients),
	{}
};

static struct kunit_suite verbs_removal_load_suite = {
	.name = "verbs_removal_load",
	.suite_init = lo_suite_init,
	.suite_exit = link_suite_exit,
	.init = link_test_init,
	.test_cases = verbs_removal_load_cases,
};

kunit_test_suite(verbs_removal_load_suite);
