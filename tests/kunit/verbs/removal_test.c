// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device is removed, and made again: at each step of a connection's life, a
 * number of rounds, idle and under load in all ways to take completions; and at
 * any moment, while endpoints come and go. What holds each time: every accepted
 * operation completes once, each attempt to connect and each connection ends in
 * one event, the domain reports one, what is left refuses work and closes with
 * 0, and the new device serves as the old one did.
 */

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "link.h"

#define RM_LEN		4096	/* bytes of a message */
#define RM_BALLS	4	/* that fly between the sides */
#define RM_RECVS	16	/* posted on each side */
#define RM_FLIGHTS	64	/* under load: messages before the removal */
#define RM_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_WRITE | \
			 FI_REMOTE_WRITE)
#define RM_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)

/* What has been done when the device goes; each includes the ones before. */
enum rm_step {
	RM_OPEN,	/* an endpoint, a listener, a region */
	RM_ENABLED,	/* and receives posted */
	RM_CONNECTING,
	RM_ASKED,	/* the request is in the queue */
	RM_TAKEN,	/* an endpoint has it */
	RM_ACCEPTING,
	RM_CONNECTED,	/* receives on both sides, and a region of a pool */
	RM_LOADED,	/* messages both ways, and writes */
	RM_SHUT,	/* one side has ended the connection */
	RM_STEPS
};

static const char *const rm_names[RM_STEPS] = {
	[RM_OPEN]	= "open",
	[RM_ENABLED]	= "enabled",
	[RM_CONNECTING]	= "connecting",
	[RM_ASKED]	= "asked",
	[RM_TAKEN]	= "taken",
	[RM_ACCEPTING]	= "accepting",
	[RM_CONNECTED]	= "connected",
	[RM_LOADED]	= "loaded",
	[RM_SHUT]	= "shut",
};

/**
 * struct rm - a life that is cut short
 * @p: its pair
 * @ev: room for an event
 * @request: info of the connection request, or NULL
 * @tried: the side's call to connect or accept has succeeded
 * @connected: FI_CONNECTED has been read
 * @mr: region of the domain, of side 1's memory
 * @pooled: region of side 1's pool, or NULL
 * @mem: what both are of
 * @send: operations for the messages of each side
 * @write: operation for side 0's writes
 * @flights: messages received
 * @stop: no more posts
 */
struct rm {
	struct ct_pair		*p;
	struct ct_event		*ev;
	struct fi_info		*request;
	bool			tried[2];
	unsigned int		connected[2];
	struct fid_mr		*mr;
	struct fid_mr		*pooled;
	u8			*mem;
	struct ct_op		*send[2][RM_BALLS];
	struct ct_op		*write;
	atomic_t		flights;
	bool			stop;
};

/* ---------------------------------------------------------------- the load */

static void rm_write(struct rm *r)
{
	struct ct_op *op = r->write;

	if (!ct_is_done(op))
		return;
	op->side = 0;
	atomic_inc(&op->posted);
	if (fi_write(r->p->side[0].ep, op->buf, RM_LEN, NULL, 0,
		     kofi_mr_base(r->mr), fi_mr_key(r->mr), op))
		atomic_dec(&op->posted);
}

/* A message by the first operation that is free; there is one for each ball. */
static void rm_send(struct rm *r, int side)
{
	int i;

	for (i = 0; i < RM_BALLS; i++) {
		struct ct_op *op = r->send[side][i];

		if (ct_is_done(op)) {
			ct_send(r->p, side, op, op->buf, RM_LEN);
			return;
		}
	}
	/* all have arrived, and are only not yet reported */
	ct_inject(r->p, side, r->send[side][0]->buf, 64);
}

static void rm_received(struct ct_op *op)
{
	struct rm *r = op->pair->priv;

	if (op->wc.err || READ_ONCE(r->stop))
		return;
	atomic_inc(&r->flights);
	if (ct_recv(r->p, op->side, op, op->buf, RM_LEN))
		return;
	if (op->side)
		rm_write(r);
	rm_send(r, op->side);
}

static void rm_receives(struct rm *r, int side)
{
	int i;

	for (i = 0; i < RM_RECVS; i++) {
		struct ct_op *op = ct_op(r->p);

		op->buf = ct_buf(r->p, RM_LEN);
		op->hook = rm_received;
		KUNIT_ASSERT_EQ(r->p->test,
				ct_recv(r->p, side, op, op->buf, RM_LEN), 0);
	}
}

static void rm_load(struct rm *r)
{
	int i, side;

	for (i = 0; i < RM_BALLS; i++)
		for (side = 0; side < 2; side++)
			rm_send(r, side);
	KUNIT_EXPECT_TRUE(r->p->test,
			  ct_wait(r->p, atomic_read(&r->flights) >= RM_FLIGHTS,
				  CT_TIMEOUT_MS));
}

/* ------------------------------------------------------------------- steps */

static void rm_connect(struct rm *r)
{
	KUNIT_ASSERT_EQ(r->p->test,
			fi_connect(r->p->side[0].ep, &r->p->addr, NULL, 0), 0);
	r->tried[0] = true;
}

static void rm_ask(struct rm *r)
{
	u32 event;

	KUNIT_ASSERT_TRUE(r->p->test,
			  ct_wait(r->p, fi_eq_read(r->p->side[1].eq, &event,
						   r->ev->bytes,
						   sizeof(r->ev->bytes),
						   FI_PEEK) > 0,
				  CT_TIMEOUT_MS));
}

static void rm_take(struct rm *r)
{
	struct kunit *test = r->p->test;

	KUNIT_ASSERT_EQ(test, ct_next_event(r->p->side[1].eq, r->ev,
					    CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, r->ev->event, FI_CONNREQ);
	r->request = r->ev->cm.info;
	KUNIT_ASSERT_EQ(test, ct_ep_open(r->p, 1, r->request), 0);
}

static void rm_accept(struct rm *r)
{
	KUNIT_ASSERT_EQ(r->p->test, fi_accept(r->p->side[1].ep, NULL, 0), 0);
	r->tried[1] = true;
}

static void rm_connected(struct rm *r)
{
	const struct kvec kv = { r->mem, RM_LEN };
	const struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };
	struct kunit *test = r->p->test;
	int side;

	rm_receives(r, 1);
	for (side = 0; side < 2; side++) {
		ct_expect_event(test, r->p->side[side].eq, FI_CONNECTED);
		r->connected[side]++;
	}
	r->pooled = kofi_mr_get(r->p->side[1].ep);
	KUNIT_ASSERT_NOT_NULL(test, r->pooled);
	KUNIT_ASSERT_EQ(test, kofi_mr_map(r->pooled, &vec, FI_REMOTE_WRITE, 0),
			0);
}

static void rm_go(struct rm *r, enum rm_step to)
{
	struct kunit *test = r->p->test;
	enum rm_step step;

	for (step = RM_ENABLED; step <= to; step++) {
		switch (step) {
		case RM_ENABLED:
			KUNIT_ASSERT_EQ(test, fi_enable(r->p->side[0].ep), 0);
			rm_receives(r, 0);
			break;
		case RM_CONNECTING:
			rm_connect(r);
			break;
		case RM_ASKED:
			rm_ask(r);
			break;
		case RM_TAKEN:
			rm_take(r);
			break;
		case RM_ACCEPTING:
			rm_accept(r);
			break;
		case RM_CONNECTED:
			rm_connected(r);
			break;
		case RM_LOADED:
			rm_load(r);
			break;
		case RM_SHUT:
			KUNIT_EXPECT_EQ(test, fi_shutdown(r->p->side[0].ep, 0),
					0);
			break;
		default:
			break;
		}
	}
}

/* ----------------------------------------------------------------- a round */

static struct rm *rm_open(struct kunit *test, enum ct_mode mode)
{
	const struct ct_opts opts = {
		.mode = mode, .caps = RM_CAPS, .mr_mode = RM_MR_MODE,
		.mr_pool = 1, .unconnected = true,
	};
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct rm *r = ct_buf(p, sizeof(*r));
	int i, side;

	r->p = p;
	p->priv = r;
	r->ev = ct_buf(p, sizeof(*r->ev));
	r->mem = ct_buf(p, RM_LEN);
	r->write = ct_op(p);
	r->write->buf = ct_buf(p, RM_LEN);
	for (side = 0; side < 2; side++) {
		for (i = 0; i < RM_BALLS; i++) {
			r->send[side][i] = ct_op(p);
			r->send[side][i]->buf = ct_buf(p, RM_LEN);
		}
	}
	KUNIT_ASSERT_EQ(test, fi_eq_open(p->fabric, &attr, &p->eq, p), 0);
	KUNIT_ASSERT_EQ(test, fi_domain_bind(p->domain, &p->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, r->mem, RM_LEN,
					FI_REMOTE_WRITE, 0, 0, 0, &r->mr,
					NULL), 0);
	return r;
}

/* All events of a side: of its attempt, of its connection, and of the listener. */
static void rm_expect_events(struct rm *r, int side)
{
	unsigned int connected = r->connected[side], failed = 0, shutdown = 0, lost = 0;
	struct kunit *test = r->p->test;
	struct ct_event *ev = r->ev;
	int ret;

	/* with the removal, everything has been queued */
	while ((ret = ct_next_event(r->p->side[side].eq, ev, 0)) >= 0) {
		if (ret && ev->error.fid == &r->p->pep->fid) {
			KUNIT_EXPECT_EQ(test, ev->error.err, ENODEV);
			lost++;
			continue;
		}
		if (ret) {
			/* the side that is asked loses the device, and refuses */
			if (ev->error.err != ECONNREFUSED)
				KUNIT_EXPECT_EQ(test, ev->error.err, ENODEV);
			failed++;
			continue;
		}
		switch (ev->event) {
		case FI_CONNREQ:
			fi_freeinfo(ev->cm.info);
			break;
		case FI_CONNECTED:
			connected++;
			break;
		case FI_SHUTDOWN:
			KUNIT_EXPECT_EQ(test, connected, 1);
			shutdown++;
			break;
		default:
			KUNIT_FAIL(test, "event %u", ev->event);
			break;
		}
	}
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_EXPECT_EQ_MSG(test, connected + failed, r->tried[side],
			    "side %d", side);
	KUNIT_EXPECT_EQ_MSG(test, shutdown, connected, "side %d", side);
	/* the passive endpoint is bound to the queue of side 1 */
	KUNIT_EXPECT_EQ_MSG(test, lost, side, "side %d", side);
}

/* What is left of the domain is good for nothing. */
static void rm_expect_useless(struct rm *r)
{
	struct kunit *test = r->p->test;
	struct ct_pair *p = r->p;
	struct fid_ep *ep = NULL;
	struct fid_mr *mr = NULL;
	u8 byte = 0;
	int side;

	for (side = 0; side < 2; side++)
		if (p->side[side].ep) {
			KUNIT_EXPECT_LT(test, ct_recv(p, side, ct_op(p), r->mem,
						      64), 0);
			KUNIT_EXPECT_LT(test, ct_inject(p, side, &byte, 1), 0);
		}
	KUNIT_EXPECT_LT(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_endpoint(p->domain, p->info, &ep, NULL),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, fi_mr_reg(p->domain, r->mem, RM_LEN,
					FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, fi_listen(p->pep), -FI_EOPBADSTATE);
	if (!r->request)
		return;
	/* the handle of a request is stale, taken or not */
	KUNIT_EXPECT_EQ(test, fi_endpoint(p->domain, r->request, &ep, NULL),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, fi_reject(p->pep, r->request->handle, NULL, 0),
			-EINVAL);
}

static void rm_close(struct rm *r)
{
	KUNIT_EXPECT_EQ(r->p->test, fi_close(&r->mr->fid), 0);
	fi_freeinfo(r->request);
	ct_pair_close(r->p);
}

static void rm_round(struct kunit *test, enum rm_step step, unsigned int round)
{
	struct rm *r = rm_open(test, link_mode(round));
	struct ct_pair *p = r->p;

	rm_go(r, step);
	KUNIT_ASSERT_EQ(test, link_remove(), 0);
	WRITE_ONCE(r->stop, true);

	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, ct_next_event(p->eq, r->ev, 0), 0);
	KUNIT_EXPECT_EQ(test, r->ev->event, FI_NOTIFY);
	KUNIT_EXPECT_EQ(test, r->ev->entry.data, ENODEV);
	ct_expect_no_event(test, p->eq);
	rm_expect_events(r, 0);
	rm_expect_events(r, 1);
	rm_expect_useless(r);
	/* the consumer closes when it has time, before or after the next one */
	if (round & 1)
		rm_close(r);
	KUNIT_ASSERT_EQ(test, link_add(), 0);
	if (!(round & 1))
		rm_close(r);
}

static void removal_at(struct kunit *test)
{
	enum rm_step step = *(const enum rm_step *)test->param_value;
	unsigned int round;

	for (round = 0; round < link_rounds; round++)
		rm_round(test, step, round);
}

static const enum rm_step rm_steps[RM_STEPS] = {
	RM_OPEN, RM_ENABLED, RM_CONNECTING, RM_ASKED, RM_TAKEN, RM_ACCEPTING,
	RM_CONNECTED, RM_LOADED, RM_SHUT,
};

static void rm_desc(const enum rm_step *step, char *desc)
{
	strscpy(desc, rm_names[*step], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(removal, rm_steps, rm_desc);

/* ----------------------------------------------------------- at any moment */

struct rm_remover {
	struct task_struct	*task;
	unsigned int		times;
	int			err;
};

/* Removes the device, and makes it again, at any time. */
static int rm_remover(void *arg)
{
	struct rm_remover *rm = arg;

	while (!kthread_should_stop()) {
		schedule_timeout_interruptible(get_random_u32_below(HZ / 5));
		rm->err = rm->err ?: link_remove();
		rm->err = rm->err ?: link_add();
		rm->times++;
	}
	return 0;
}

/* A life; it may be cut short everywhere. Returns whether it was connected. */
static bool rm_live(struct kunit *test, enum ct_mode mode)
{
	struct ct_pair *p = kzalloc(sizeof(*p), GFP_KERNEL | __GFP_NOFAIL);
	bool connected = false;
	u8 *buf;
	int i;

	p->test = test;
	p->opts.mode = mode;
	if (!ct_pair_setup(p)) {
		connected = true;
		buf = ct_buf(p, RM_LEN);
		for (i = 0; i < 32; i++) {
			/* refused, when it has been connected once */
			if (ct_recv(p, i & 1, ct_op(p), buf, RM_LEN) ||
			    ct_send(p, !(i & 1), ct_op(p), buf, RM_LEN))
				break;
			ct_progress(p);
			cond_resched();
		}
	}
	ct_pair_close(p);
	kvfree(p->ops);
	kfree(p);
	return connected;
}

static void removal_any_time(struct kunit *test)
{
	const enum ct_mode mode = link_mode(ct_mode_of(test));
	struct rm_remover remover = {};
	unsigned int lives = 0, connected = 0;

	remover.task = kthread_run(rm_remover, &remover, "remover");
	KUNIT_ASSERT_FALSE(test, IS_ERR(remover.task));
	while (READ_ONCE(remover.times) < link_rounds &&
	       !READ_ONCE(remover.err)) {
		connected += rm_live(test, mode);
		lives++;
		cond_resched();
	}
	kthread_stop(remover.task);
	KUNIT_EXPECT_EQ(test, remover.err, 0);
	/* and then all is well */
	KUNIT_EXPECT_TRUE(test, rm_live(test, CT_READ));
	kunit_info(test, "%u lives, %u connected, %u removals\n", lives,
		   connected, remover.times);
}

/* ---------------------------------------- who listens while the device goes */

#define RM_LISTENERS	64	/* that are open at a time */

/**
 * struct rm_listeners - passive endpoints that come until the device has gone
 * @fabric: theirs
 * @eq: the same
 * @info: the same
 * @pep: the last ones that could listen
 * @n: how many could
 * @work: removes the device
 * @err: what it ended with
 * @gone: it has ended
 */
struct rm_listeners {
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fi_info		*info;
	struct fid_pep		*pep[RM_LISTENERS];
	unsigned int		n;
	struct work_struct	work;
	int			err;
	struct completion	gone;
};

static void rm_listen(struct rm_listeners *l)
{
	struct fid_pep **oldest = &l->pep[l->n % RM_LISTENERS], *pep;

	if (fi_passive_ep(l->fabric, l->info, &pep, NULL))
		return;
	if (fi_pep_bind(pep, &l->eq->fid, 0) || fi_listen(pep)) {
		fi_close(&pep->fid);
		return;
	}
	if (*oldest)
		fi_close(&(*oldest)->fid);
	*oldest = pep;
	l->n++;
}

static void rm_remove_work(struct work_struct *work)
{
	struct rm_listeners *l = container_of(work, struct rm_listeners, work);

	l->err = link_remove();
	complete(&l->gone);
}

/* The removal waits for no listener, not even for one that came during it. */
static void rm_listen_round(struct kunit *test, struct rm_listeners *l)
{
	unsigned long end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);
	int i;

	init_completion(&l->gone);
	INIT_WORK(&l->work, rm_remove_work);
	queue_work(system_unbound_wq, &l->work);
	while (!completion_done(&l->gone) && time_before(jiffies, end)) {
		rm_listen(l);
		cond_resched();
	}
	KUNIT_EXPECT_TRUE(test, completion_done(&l->gone));
	for (i = 0; i < RM_LISTENERS; i++) {
		if (l->pep[i])
			KUNIT_EXPECT_EQ(test, fi_close(&l->pep[i]->fid), 0);
		l->pep[i] = NULL;
	}
	flush_work(&l->work);
	KUNIT_EXPECT_EQ(test, l->err, 0);
	KUNIT_ASSERT_EQ(test, link_add(), 0);
}

static void listen_any_time(struct kunit *test)
{
	struct rm_listeners *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_info *hints = ct_hints();
	unsigned int round;

	KUNIT_ASSERT_NOT_NULL(test, l);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	KUNIT_ASSERT_EQ(test, ct_getinfo(FI_SOURCE, hints, &l->info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, fi_fabric(l->info->fabric_attr, &l->fabric,
					NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_eq_open(l->fabric, &attr, &l->eq, NULL), 0);
	for (round = 0; round < link_rounds; round++)
		rm_listen_round(test, l);
	KUNIT_EXPECT_GT(test, l->n, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&l->eq->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&l->fabric->fid), 0);
	fi_freeinfo(l->info);
}

/* --------------------------------------------------- the interface is down */

static bool rm_flies(struct rm *r)
{
	int seen = atomic_read(&r->flights);

	return ct_wait(r->p, atomic_read(&r->flights) >= seen + RM_FLIGHTS,
		       CT_TIMEOUT_MS);
}

static void rm_keepalive(struct rm *r, int side)
{
	unsigned int ms = 200;

	KUNIT_EXPECT_EQ(r->p->test, fi_set_val(&r->p->side[side].ep->fid,
					       KOFI_VAL_KEEPALIVE_IDLE, &ms),
			0);
}

/*
 * Messages of iWARP wait in TCP, and arrive when the interface is up again. Of
 * others rxe gives up at once: who has something to send is told, and who does
 * not finds out if it asks.
 */
static void interface_down(struct kunit *test)
{
	struct rm *r = rm_open(test, link_mode(CT_SOFTIRQ));
	struct ct_pair *p = r->p;
	bool iwarp = p->info->ep_attr->protocol == FI_PROTO_IWARP;
	int side;

	if (!iwarp)
		rm_keepalive(r, 0);
	rm_go(r, RM_TAKEN);
	if (!iwarp)
		rm_keepalive(r, 1);
	rm_accept(r);
	rm_connected(r);
	rm_load(r);
	KUNIT_EXPECT_EQ(test, link_set_up(false), 0);
	for (side = 0; side < 2; side++) {
		if (!iwarp)
			ct_expect_event(test, p->side[side].eq, FI_SHUTDOWN);
		ct_expect_no_event(test, p->side[side].eq);
	}
	if (!iwarp)
		KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, link_set_up(true), 0);
	if (iwarp)
		KUNIT_EXPECT_TRUE(test, rm_flies(r));
	WRITE_ONCE(r->stop, true);
	rm_close(r);
	/* rxe sends no message of the connection manager ever after */
	KUNIT_EXPECT_EQ(test, link_remove(), 0);
	KUNIT_ASSERT_EQ(test, link_add(), 0);
	KUNIT_EXPECT_TRUE(test, rm_live(test, CT_READ));
}

static struct kunit_case verbs_removal_cases[] = {
	KUNIT_CASE(interface_down),
	KUNIT_CASE_PARAM(removal_at, removal_gen_params),
	KUNIT_CASE_PARAM(removal_any_time, ct_mode_gen_params),
	KUNIT_CASE(listen_any_time),
	{}
};

static struct kunit_suite verbs_removal_suite = {
	.name = "verbs_removal",
	.suite_init = lo_suite_init,
	.suite_exit = link_suite_exit,
	.init = link_test_init,
	.test_cases = verbs_removal_cases,
};

kunit_test_suite(verbs_removal_suite);
