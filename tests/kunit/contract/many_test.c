// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many connections at a time, each doing at random whatever an endpoint can
 * do, until it is ended at random and set up again. A worker per way of taking
 * completions owns its share of the connections, both ends of each, with one
 * event queue, two completion queues and, for some, a shared receive context,
 * so that whatever happens to one connection happens beside the others. On some
 * of them transmits complete selectively, some send pages without copying them.
 *
 * Here is the life of the connections and of all other objects; what they do is
 * in many_ops.c, and many_books.c holds it against them. stress_seed makes the
 * choices of a worker the same again (their timing is the machine's).
 */
#include <linux/kofi/provider.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "many.h"

static unsigned int stress_seed;
module_param(stress_seed, uint, 0444);
MODULE_PARM_DESC(stress_seed, "What the choices of the stress suites begin with (default 0, a random one)");

static unsigned int stress_conns = 64;
module_param(stress_conns, uint, 0444);
MODULE_PARM_DESC(stress_conns, "Connections at a time (default 64)");

bool stress_faulty;
module_param(stress_faulty, bool, 0444);
MODULE_PARM_DESC(stress_faulty, "Connections may break by themselves: faults are injected (default no)");

/* For the scenario that injects faults: read it to know when. */
static atomic_t stress_connected;
module_param_named(stress_connected, stress_connected.counter, int, 0444);
MODULE_PARM_DESC(stress_connected, "Connections the suite of many has had (read only)");

/* -------------------------------------------------------------- connections */

static void many_state(struct many_conn *c, enum many_state state)
{
	c->state = state;
	c->since = jiffies;
}

static int many_set_options(struct many_end *end)
{
	static const size_t pool = MANY_POOL, segs = MANY_SEGS;
	static unsigned int zerocopy = MANY_ZC;
	struct fi_fid *fid = &end->ep->fid;
	int err = 0;

	if (end->conn->nr & 1)
		err = fi_set_val(fid, KOFI_VAL_ZEROCOPY_MIN, &zerocopy);
	err = err ?: fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL, &pool,
			       sizeof(pool));
	err = err ?: fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_SEGS, &segs,
			       sizeof(segs));
	kofi_ep_set_source(end->ep, many_who(many_peer(end)));
	err = err ?: kofi_ep_remote_cqe(end->ep, &end->remote);
	return err == -EOPNOTSUPP ? 0 : err;
}

static void many_end_reset(struct many_end *end)
{
	int i;

	for (i = 0; i < MANY_POOL; i++)
		if (end->regions[i].aimed)
			many_wrong(end->w, "accesses outlive their connection");
	end->closed = false;
	end->ends = 0;
	end->downs = 0;
	end->sent = 0;
	end->acked = 0;
	end->expect = 0;
	end->pardons = 0;
	end->selective = end->conn->nr & 2;
	end->remote.done = many_remote_done;
}

static int many_end_open(struct many_end *end, struct fi_info *info)
{
	struct many_worker *w = end->w;
	u64 sel;
	int err;

	many_end_reset(end);
	sel = end->selective ? FI_SELECTIVE_COMPLETION : 0;
	err = fi_endpoint(w->m->domain, info, &end->ep, end);
	if (err)
		return err;
	err = fi_ep_bind(end->ep, &w->eq->fid, 0);
	err = err ?: fi_ep_bind(end->ep, &w->cq[0]->fid, FI_TRANSMIT | sel);
	err = err ?: fi_ep_bind(end->ep, &w->cq[1]->fid, FI_RECV | sel);
	if (!err && many_receiver(end) != end)
		err = fi_ep_bind(end->ep, &w->shared.ep->fid, 0);
	err = err ?: many_set_options(end);
	return err ?: kofi_ep_write_space(end->ep, many_space);
}

static void many_take_stat(void *arg, const char *name, u64 value)
{
	struct many_worker *w = arg;

	if (!strcmp(name, "tx_zc_bytes"))
		w->zerocopy += value;
}

static void many_end_close(struct many_end *end)
{
	struct many_worker *w = end->w;
	struct kofi_obj *obj;
	int err;

	if (!end->ep)
		return;
	obj = end->ep->fid.obj;
	if (obj->ops && obj->ops->stats)
		obj->ops->stats(obj, many_take_stat, w);
	err = fi_close(&end->ep->fid);
	if (err) {
		many_wrong(w, "closing an endpoint gave %d", err);
		return;
	}
	many_release_regions(end);
	many_settle(end, "their endpoint");
	WRITE_ONCE(end->closed, true);
	end->ep = NULL;
}

/* What was acknowledged has arrived, or was thrown away there. */
static void many_check_acked(struct many_end *end)
{
	struct many_end *to = many_peer(end);

	if (many_receiver(to) == to && end->acked > end->expect + end->pardons)
		many_wrong(end->w, "%u messages were acknowledged, %u arrived",
			   end->acked, end->expect + end->pardons);
}

static void many_conn_close(struct many_conn *c)
{
	WRITE_ONCE(c->ending, true);
	many_end_close(&c->end[0]);
	many_end_close(&c->end[1]);
	many_progress(c->w);
	many_claims(c->w);	/* those of this connection hold nothing now */
	many_check_acked(&c->end[0]);
	many_check_acked(&c->end[1]);
	if (c->w->shared.ep)
		many_cancel_for(c->w, many_who(&c->end[0]));
	many_state(c, MANY_CLOSED);
}

static void many_connect(struct many_conn *c)
{
	struct many_worker *w = c->w;
	struct many_request req = { .nr = c->nr };
	int err;

	req.generation = c->generation + 1;
	WRITE_ONCE(c->generation, req.generation);
	WRITE_ONCE(c->ending, false);
	err = many_end_open(&c->end[0], w->m->info);
	err = err ?: fi_connect(c->end[0].ep, &w->addr, &req, sizeof(req));
	if (!err) {
		many_state(c, MANY_CONNECTING);
		return;
	}
	if (!stress_faulty)
		many_wrong(w, "connecting gave %d", err);
	many_conn_close(c);
}

static void many_request(struct many_worker *w, struct fi_info *info,
			 const struct many_request *req, size_t len)
{
	struct many_conn *c;
	int err;

	if (len < sizeof(*req) || req->nr >= w->nr_conns) {
		many_wrong(w, "a request with %zu bytes of data", len);
		return;
	}
	c = &w->conns[req->nr];
	/*
	 * One of before, whose sender has gone, or one by chance. A sender that has
	 * gone may be the latest: accepting it would leave an end to the next attempt.
	 */
	if (c->generation != req->generation || c->state != MANY_CONNECTING ||
	    c->end[1].ep || !many_below(w, 16)) {
		if (c->generation == req->generation)
			WRITE_ONCE(c->ending, true);
		fi_reject(w->pep, info->handle, NULL, 0);
		return;
	}
	info->tx_attr->size = MANY_DEPTH;
	info->rx_attr->size = MANY_DEPTH;
	err = many_end_open(&c->end[1], info);
	err = err ?: fi_accept(c->end[1].ep, NULL, 0);
	if (!err)
		return;
	if (!c->ending && !stress_faulty)
		many_wrong(w, "accepting gave %d", err);
	many_conn_close(c);
}

/* An end that is no more is heard of once. */
static void many_ended(struct many_end *end, int err)
{
	struct many_conn *c = end->conn;

	if (!c->ending && !stress_faulty)
		many_wrong(end->w, "a connection ended by itself, error %d",
			   err);
	WRITE_ONCE(c->ending, true);
	if (c->state != MANY_HALF)
		many_state(c, MANY_HALF);
}

static void many_event(struct many_worker *w, u32 event,
		       const struct fi_eq_cm_entry *cm, size_t len)
{
	struct many_end *end = cm->fid->context;

	switch (event) {
	case FI_CONNREQ:
		many_request(w, cm->info, (const void *)cm->data,
			     len - sizeof(*cm));
		fi_freeinfo(cm->info);
		break;
	case FI_CONNECTED:
		if (end->ends++)
			many_wrong(w, "a second end of an attempt");
		if (end->conn->end[0].ends && end->conn->end[1].ends &&
		    end->conn->state == MANY_CONNECTING) {
			many_state(end->conn, MANY_UP);
			w->ups++;
			atomic_inc(&stress_connected);
		}
		break;
	case FI_SHUTDOWN:
		if (!end->ends || end->downs++)
			many_wrong(w, "an end of connection out of turn");
		many_ended(end, 0);
		break;
	default:
		many_wrong(w, "event %u", event);
	}
}

/*
 * Attempts to connect take work items, which get no turn on a processor that is
 * busy looking at them: if there is nothing else to do, wait for an event.
 */
static int many_events_wait(const struct many_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_conns; i++)
		if (w->conns[i].state == MANY_UP)
			return 0;
	return MANY_WAIT_MS;
}

static void many_events(struct many_worker *w)
{
	int wait = many_events_wait(w);
	union {
		struct fi_eq_cm_entry	cm;
		u8			bytes[sizeof(struct fi_eq_cm_entry) +
					      sizeof(struct many_request)];
	} ev;
	struct fi_eq_err_entry error;
	struct many_end *end;
	u32 event;
	ssize_t n;

	while ((n = fi_eq_sread(w->eq, &event, &ev, sizeof(ev), wait, 0)) !=
	       -EAGAIN) {
		wait = 0;
		if (n > 0) {
			many_event(w, event, &ev.cm, n);
			continue;
		}
		error = (struct fi_eq_err_entry){};
		if (n != -FI_EAVAIL || fi_eq_readerr(w->eq, &error, 0) < 0) {
			many_wrong(w, "reading events gave %zd", n);
			return;
		}
		if (error.fid == &w->pep->fid || error.fid == &w->eq->fid) {
			if (!stress_faulty)
				many_wrong(w, "error %d of the listener",
					   error.err);
			continue;
		}
		end = error.fid->context;
		if (end->ends++)
			many_wrong(w, "a second end of an attempt");
		end->downs++;
		many_ended(end, error.err);
	}
}

/* End a connection in one of the ways there are. */
static void many_break(struct many_worker *w, struct many_conn *c)
{
	struct many_end *end = &c->end[many_below(w, 2)];
	u8 byte = 0;
	ssize_t ret = 0;

	WRITE_ONCE(c->ending, true);
	switch (many_below(w, 7)) {
	case 0:
		many_end_close(end);
		break;
	case 1:
		fi_shutdown(end->ep, 0);
		break;
	case 2:
		kofi_ep_drain(end->ep);
		many_settle(end, "a drain");
		break;
	case 3:
		/* an unknown key: the other side closes */
		ret = fi_inject_write(end->ep, &byte, 1, 0, 0,
				      fi_mr_key(w->slots) ^ BIT_ULL(40));
		break;
	case 4:
		/* beyond the end of the region */
		ret = fi_inject_write(end->ep, &byte, 1, 0,
				      kofi_mr_base(w->source) + MANY_SOURCE,
				      fi_mr_key(w->source));
		break;
	case 5:
		/* under the peer's hands; what it has sent is too late then */
		many_unmap_aimed(w, end);
		fi_shutdown(many_peer(end)->ep, 0);
		break;
	default:
		many_conn_close(c);
		return;
	}
	if (ret)
		fi_shutdown(end->ep, 0);	/* there was no room for it */
	many_state(c, MANY_HALF);
}

/* Is one end gone, and the other has heard of it or need not */
static bool many_both_over(const struct many_conn *c)
{
	int i;

	for (i = 0; i < 2; i++)
		if (c->end[i].ep && c->end[i].ends && !c->end[i].downs)
			return false;
	return true;
}

/* What is left of a connection takes all messages, and then hears the end. */
static void many_half(struct many_worker *w, struct many_conn *c)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!c->end[i].ep)
			continue;
		many_recv(w, &c->end[i], MANY_RECV);
		many_recv(w, &c->end[i], MANY_TRECV);
	}
	if (many_both_over(c) || !many_below(w, 400)) {
		many_conn_close(c);
	} else if (time_after(jiffies, c->since +
			      msecs_to_jiffies(MANY_DEAF_MS))) {
		many_wrong(w, "the end of a connection was not noticed");
		many_conn_close(c);
	}
}

static void many_step(struct many_worker *w)
{
	struct many_conn *c = &w->conns[many_below(w, w->nr_conns)];
	int i;

	switch (c->state) {
	case MANY_CLOSED:
		many_connect(c);
		break;
	case MANY_CONNECTING:
		if (!many_below(w, 2000)) {
			many_conn_close(c);
		} else if (time_after(jiffies, c->since +
				      msecs_to_jiffies(MANY_DEAF_MS))) {
			many_wrong(w, "an attempt to connect has no end");
			many_conn_close(c);
		}
		break;
	case MANY_UP:
		for (i = 0; i < 8; i++)
			many_traffic(w, c);
		if (!many_below(w, 150))
			many_break(w, c);
		break;
	case MANY_HALF:
		many_half(w, c);
		break;
	}
}

/* Until time is up, and a machine, however slow, has made a connection. */
static bool many_goes_on(const struct many_worker *w)
{
	ktime_t until = ktime_add_ms(w->m->start, READ_ONCE(stress_ms));

	if (atomic_read(&w->wrong))
		return false;
	if (!w->ups && !stress_faulty)
		until = ktime_add_ms(until, MANY_SLOW_MS);
	return ktime_before(ktime_get(), until);
}

static int many_work(void *arg)
{
	struct many_worker *w = arg;
	unsigned int i;

	while (many_goes_on(w)) {
		for (i = 0; i < 16; i++)
			many_step(w);
		many_events(w);
		many_progress(w);
		many_claims(w);
		cond_resched();
	}
	WRITE_ONCE(w->ending, true);
	for (i = 0; i < w->nr_conns; i++)
		many_conn_close(&w->conns[i]);
	if (w->shared.ep)
		many_end_close(&w->shared);
	many_progress(w);
	many_claims(w);		/* which have lost their messages */
	if (atomic_dec_and_test(&w->m->left))
		complete(&w->m->ended);
	return 0;
}

/* ------------------------------------------------------------------ objects */

static int many_open_cqs(struct many_worker *w)
{
	static const enum kofi_poll polls[CT_MODES] = {
		[CT_DIRECT]	= KOFI_POLL_DIRECT,
		[CT_SOFTIRQ]	= KOFI_POLL_SOFTIRQ,
		[CT_WORKQUEUE]	= KOFI_POLL_WORKQUEUE,
	};
	const struct kofi_cq_attr done = {
		.poll = polls[w->mode], .done = true,
	};
	struct fi_cq_attr attr = {
		.size = MANY_CQ, .format = FI_CQ_FORMAT_TAGGED,
	};
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(w->cq) && !err; i++)
		err = kofi_cq_open(w->m->domain, &attr,
				   w->mode == CT_READ ? NULL : &done, &w->cq[i],
				   w);
	return err;
}

static int many_listen(struct many_worker *w)
{
	struct fi_info *hints = fi_dupinfo(w->m->info), *info = NULL;
	size_t len = sizeof(w->addr);
	int err = -ENOMEM;

	if (!hints)
		return err;
	kfree(hints->dest_addr);
	hints->dest_addr = NULL;
	hints->dest_addrlen = 0;
	err = ct_getinfo(FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	err = err ?: fi_passive_ep(w->m->fabric, info, &w->pep, w);
	err = err ?: fi_pep_bind(w->pep, &w->eq->fid, 0);
	err = err ?: fi_listen(w->pep);
	err = err ?: fi_getname(&w->pep->fid, &w->addr, &len);
	fi_freeinfo(info);
	return err;
}

static int many_register(struct many_worker *w)
{
	struct fid_domain *domain = w->m->domain;
	size_t slots;
	int err;

	w->slot_len = w->nr_conns * 2 * MANY_SLOTS * MANY_SLOT;
	slots = w->slot_len + MANY_SLOT;
	w->source_mem = kvmalloc(MANY_SOURCE, GFP_KERNEL);
	w->slot_mem = kvzalloc(slots, GFP_KERNEL);
	if (!w->source_mem || !w->slot_mem)
		return -ENOMEM;
	ct_pattern(w->source_mem, MANY_SOURCE, MANY_SOURCE_SEED);
	err = fi_mr_reg(domain, w->source_mem, MANY_SOURCE, FI_REMOTE_READ, 0,
			0, 0, &w->source, w);
	return err ?: fi_mr_reg(domain, w->slot_mem, slots, FI_REMOTE_WRITE, 0,
				0, 0, &w->slots, w);
}

static int many_open_worker(struct many_worker *w)
{
	struct fi_eq_attr eq_attr = {
		.size = 4 * stress_conns, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct fi_rx_attr rx_attr = {
		.size = 8 * MANY_DEPTH,
		.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV |
			FI_SOURCE,
	};
	unsigned int i;
	int err;

	INIT_LIST_HEAD(&w->free);
	INIT_LIST_HEAD(&w->claims);
	INIT_LIST_HEAD(&w->shared.silent);
	init_llist_head(&w->done);
	w->ops = kvcalloc(MANY_OPS, sizeof(*w->ops), GFP_KERNEL);
	w->op_mem = vmalloc(MANY_OPS * MANY_BUF);	/* whole pages */
	w->conns = kvcalloc(w->nr_conns, sizeof(*w->conns), GFP_KERNEL);
	if (!w->ops || !w->op_mem || !w->conns)
		return -ENOMEM;
	for (i = 0; i < MANY_OPS; i++) {
		w->ops[i].cqe.done = many_done;
		w->ops[i].buf = w->op_mem + i * MANY_BUF;
		list_add_tail(&w->ops[i].node, &w->free);
	}
	for (i = 0; i < w->nr_conns; i++) {
		struct many_conn *c = &w->conns[i];
		int side;

		c->w = w;
		c->nr = i;
		for (side = 0; side < 2; side++) {
			c->end[side].w = w;
			c->end[side].conn = c;
			INIT_LIST_HEAD(&c->end[side].silent);
		}
	}
	err = fi_eq_open(w->m->fabric, &eq_attr, &w->eq, w);
	err = err ?: many_open_cqs(w);
	err = err ?: many_register(w);
	err = err ?: many_listen(w);
	if (err || w->mode == CT_DIRECT || w->mode == CT_WORKQUEUE)
		return err;
	w->shared.w = w;
	err = fi_srx_context(w->m->domain, &rx_attr, &w->shared.ep, &w->shared);
	return err ?: fi_ep_bind(w->shared.ep, &w->cq[1]->fid, FI_RECV);
}

static void many_close(struct kunit *test, struct fi_fid *fid,
		       const char *what)
{
	KUNIT_EXPECT_EQ_MSG(test, 0, fi_close(fid), "%s", what);
}

static void many_close_worker(struct many_worker *w)
{
	struct kunit *test = w->m->test;
	int i;

	if (w->shared.ep)
		many_close(test, &w->shared.ep->fid, "shared context");
	if (w->pep)
		many_close(test, &w->pep->fid, "passive endpoint");
	if (w->source)
		many_close(test, &w->source->fid, "region");
	if (w->slots)
		many_close(test, &w->slots->fid, "region");
	for (i = 0; i < ARRAY_SIZE(w->cq); i++)
		if (w->cq[i])
			many_close(test, &w->cq[i]->fid, "queue");
	if (w->eq)
		many_close(test, &w->eq->fid, "event queue");
	kvfree(w->conns);
	vfree(w->op_mem);
	kvfree(w->ops);
	kvfree(w->slot_mem);
	kvfree(w->source_mem);
}

static int many_open(struct many *m)
{
	struct fi_info *hints = ct_hints();
	int err;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV |
		      FI_DIRECTED_RECV | FI_SOURCE;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	hints->tx_attr->size = MANY_DEPTH;
	hints->rx_attr->size = MANY_DEPTH;
	err = ct_getinfo(0, hints, &m->info);
	fi_freeinfo(hints);
	err = err ?: fi_fabric(m->info->fabric_attr, &m->fabric, m);
	return err ?: fi_domain(m->fabric, m->info, &m->domain, m);
}

static void many_run(struct kunit *test, struct many *m, u32 seed)
{
	struct many_worker *w;
	int i;

	init_completion(&m->ended);
	atomic_set(&m->left, MANY_WORKERS);
	m->start = ktime_get();
	for (i = 0; i < MANY_WORKERS; i++) {
		w = &m->workers[i];
		prandom_seed_state(&w->rnd, (u64)seed << 8 | i);
		w->task = kthread_create(many_work, w, "kofi_many/%d", i);
		if (!IS_ERR(w->task)) {
			get_task_struct(w->task);
			wake_up_process(w->task);
			continue;
		}
		KUNIT_FAIL(test, "no thread");
		if (atomic_dec_and_test(&m->left))
			complete(&m->ended);
	}
	wait_for_completion(&m->ended);
	for (i = 0; i < MANY_WORKERS; i++) {
		w = &m->workers[i];
		if (IS_ERR(w->task))
			continue;
		/* until it is out of this module */
		kthread_stop(w->task);
		put_task_struct(w->task);
	}
}

static void many_random(struct kunit *test)
{
	u32 seed = stress_seed ?: get_random_u32();
	struct many m = { .test = test };
	int i, err;

	/* the only ones with tags and multi-receive */
	if (strcmp(ct_provider, "sock"))
		kunit_skip(test, "not all kinds of operations are there");
	kunit_info(test, "stress_seed=%u\n", seed);
	atomic_set(&stress_connected, 0);
	m.workers = kvcalloc(MANY_WORKERS, sizeof(*m.workers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.workers);
	err = many_open(&m);
	for (i = 0; i < MANY_WORKERS; i++) {
		m.workers[i].m = &m;
		m.workers[i].mode = i;
		m.workers[i].nr_conns =
			clamp(stress_conns, MANY_WORKERS, MANY_CONNS_MAX) /
			MANY_WORKERS;
		err = err ?: many_open_worker(&m.workers[i]);
	}
	KUNIT_EXPECT_EQ(test, 0, err);
	if (!err) {
		many_run(test, &m, seed);
		for (i = 0; i < MANY_WORKERS; i++)
			many_check_books(test, &m.workers[i]);
	}
	for (i = 0; i < MANY_WORKERS; i++)
		many_close_worker(&m.workers[i]);
	if (m.domain)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m.domain->fid));
	if (m.fabric)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m.fabric->fid));
	fi_freeinfo(m.info);
	kvfree(m.workers);
}

static struct kunit_case contract_many_cases[] = {
	KUNIT_CASE_SLOW(many_random),
	{}
};

static struct kunit_suite contract_many_suite = {
	.name = "contract_many",
	.suite_init = lo_suite_init,
	.init = ct_connected_init,
	.test_cases = contract_many_cases,
};

kunit_test_suite(contract_many_suite);
