// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the tests of the contract suite stand on: pairs of connected
 * endpoints, and the checker that knows every operation posted.
 *
 * A pair owns all objects, operations and buffers of its test and gives them
 * back in ct_pair_teardown(), also when an assertion ends the test early. The
 * checker runs in the consumer's callbacks, so it only counts; the books are
 * read at the end by ct_check_books().
 */

#include <linux/inet.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "contract.h"

unsigned int test_slow __weak = 1;
module_param_named(slow, test_slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default 1)");

char *ct_provider = "sock";
module_param_named(provider, ct_provider, charp, 0444);
MODULE_PARM_DESC(provider, "Provider to judge (default sock)");

char *ct_device = "lo";
module_param_named(device, ct_device, charp, 0644);
MODULE_PARM_DESC(device, "Its device (default lo)");

char *ct_address = "127.0.0.1";
module_param_named(address, ct_address, charp, 0644);
MODULE_PARM_DESC(address, "Numeric address on the device (default 127.0.0.1)");

static char *ct_type = "msg";
module_param_named(type, ct_type, charp, 0444);
MODULE_PARM_DESC(type, "Type of its endpoints: msg (default), rdm or dgram");

/**
 * ct_rdm - do endpoints not connect
 *
 * What is about connections is left out then.
 *
 * Return: true if so.
 */
bool ct_rdm(void)
{
	return strcmp(ct_type, "msg");
}

/**
 * ct_connected_init - init of a suite that is about connections
 * @test: skipped if there are none
 *
 * Return: 0.
 */
int ct_connected_init(struct kunit *test)
{
	if (ct_rdm())
		kunit_skip(test, "endpoints of this type do not connect");
	return 0;
}

/**
 * ct_unconnected_init - init of a suite that is about endpoints with many peers
 * @test: skipped if they connect
 *
 * Return: 0.
 */
int ct_unconnected_init(struct kunit *test)
{
	if (!ct_rdm())
		kunit_skip(test, "endpoints of this type connect");
	return 0;
}

static const enum ct_mode ct_mode_values[CT_MODES] = {
	CT_READ, CT_DIRECT, CT_SOFTIRQ, CT_WORKQUEUE,
};

static const char *const ct_mode_names[CT_MODES] = {
	[CT_READ]	= "read",
	[CT_DIRECT]	= "direct",
	[CT_SOFTIRQ]	= "softirq",
	[CT_WORKQUEUE]	= "workqueue",
};

static void ct_mode_desc(const enum ct_mode *mode, char *desc)
{
	strscpy(desc, ct_mode_names[*mode], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(ct_mode_param, ct_mode_values, ct_mode_desc);

GEN_PARAMS(ct_mode_gen_params)
{
	return GEN_PARAMS_OF(ct_mode_param_gen_params);
}

/* ------------------------------------------------------------- the checker */

static void ct_count_context(struct ct_pair *p)
{
	bool right = true;

	switch (p->opts.mode) {
	case CT_SOFTIRQ:
		right = in_serving_softirq();
		break;
	case CT_WORKQUEUE:
		right = in_task() && current->flags & PF_WQ_WORKER;
		break;
	default:
		right = in_task() && !(current->flags & PF_WQ_WORKER);
		break;
	}
	if (!right)
		atomic_inc(&p->context);
}

static void ct_complete(struct ct_cq *cq, struct ct_op *op,
			const struct kofi_wc *wc)
{
	struct ct_pair *p = cq->pair;

	if (!op && wc->err) {
		atomic_inc(&p->anonymous);
		wake_up(&p->wq);
		return;
	}
	if (op < p->ops || op >= p->ops + CT_OPS ||
	    atomic_read(&op->done) >= atomic_read(&op->posted) ||
	    (op->silent && !wc->err)) {
		atomic_inc(&p->strays);
		return;
	}
	op->wc = *wc;
	op->ended = ktime_get();
	op->seq = atomic_inc_return(&p->seq);
	if (op->hook)
		op->hook(op);
	if (!op->multi || wc->flags & FI_MULTI_RECV)
		atomic_inc(&op->done);
	wake_up(&p->wq);
}

static void ct_done(struct fid_cq *fid, const struct kofi_wc *wc)
{
	struct ct_cq *cq = fid->fid.context;
	struct ct_pair *p = cq->pair;
	struct ct_op *op = container_of(wc->cqe, struct ct_op, cqe);
	int i;

	if (atomic_inc_return(&cq->running) != 1)
		atomic_inc(&p->overlaps);
	if (READ_ONCE(cq->closed))
		atomic_inc(&p->late);
	ct_count_context(p);
	/* A softirq may interrupt a post; then the post has not called us. */
	for (i = 0; !in_serving_softirq() && i < CT_POSTERS; i++)
		if (READ_ONCE(p->posters[i]) == current)
			atomic_inc(&p->inside);
	if (p->opts.locked) {
		spin_lock_bh(&p->lock);
		spin_unlock_bh(&p->lock);
	}
	ct_complete(cq, op, wc);
	atomic_dec(&cq->running);
}

static void ct_read_errors(struct ct_cq *cq)
{
	struct fi_cq_err_entry e = {};
	struct kofi_wc wc;

	if (fi_cq_readerr(cq->cq, &e, 0) != 1)
		return;
	wc = (struct kofi_wc){
		.op_context = e.op_context, .err = e.err,
		.prov_errno = e.prov_errno, .flags = e.flags, .len = e.len,
		.olen = e.olen, .buf = e.buf, .data = e.data, .tag = e.tag,
	};
	ct_complete(cq, e.op_context, &wc);
}

static void ct_read(struct ct_cq *cq)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t n, i;

	while ((n = fi_cq_read(cq->cq, e, ARRAY_SIZE(e))) != -EAGAIN) {
		if (n == -FI_EAVAIL) {
			ct_read_errors(cq);
			continue;
		}
		if (n <= 0) {
			atomic_inc(&cq->pair->strays);
			return;
		}
		for (i = 0; i < n; i++) {
			struct kofi_wc wc = {
				.op_context = e[i].op_context,
				.flags = e[i].flags, .len = e[i].len,
				.buf = e[i].buf, .data = e[i].data,
				.tag = e[i].tag,
			};

			ct_complete(cq, e[i].op_context, &wc);
		}
	}
}

/**
 * ct_progress - take what has completed, where that is the consumer's work
 * @p: the pair
 */
void ct_progress(struct ct_pair *p)
{
	struct ct_cq *cq[] = {
		&p->side[0].tx, &p->side[0].rx, &p->side[1].tx, &p->side[1].rx,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cq); i++) {
		if (!cq[i]->cq)
			continue;
		if (p->opts.mode == CT_READ)
			ct_read(cq[i]);
		else if (p->opts.mode == CT_DIRECT)
			kofi_cq_poll(cq[i]->cq, 64);
	}
}

/**
 * ct_all_done - has every operation completed that was accepted
 * @p: the pair
 *
 * Return: true if so; silent ones do not count.
 */
bool ct_all_done(struct ct_pair *p)
{
	int i, n = atomic_read(&p->used);

	for (i = 0; i < n; i++)
		if (!p->ops[i].silent && !ct_is_done(&p->ops[i]))
			return false;
	return true;
}

/**
 * ct_wait_done - wait for an operation
 * @p: the pair
 * @op: its operation
 *
 * Return: whether all its posts have completed.
 */
bool ct_wait_done(struct ct_pair *p, const struct ct_op *op)
{
	return ct_wait(p, ct_is_done(op), CT_TIMEOUT_MS);
}

/**
 * ct_unanswered - test whether an operation completed without the peer's answer
 * @op: an operation that has completed
 *
 * Over verbs, the manager's message may overtake the device's answer.
 *
 * Return: true if it may have, and the answer had the time that it is given.
 */
bool ct_unanswered(const struct ct_op *op)
{
	return op->pair->info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_RC &&
	       op->wc.err == ECANCELED &&
	       ktime_ms_delta(op->ended, op->began) >= CT_ANSWER_MS;
}

/**
 * ct_wait_all - wait for all operations that report
 * @p: the pair
 *
 * Return: whether they have completed.
 */
bool ct_wait_all(struct ct_pair *p)
{
	return ct_wait(p, ct_all_done(p), CT_TIMEOUT_MS);
}

/**
 * ct_check_books - what must hold at the end of any test
 * @p: the pair, all endpoints closed and everything read
 */
void ct_check_books(struct ct_pair *p)
{
	int i, n = atomic_read(&p->used);

	for (i = 0; i < n; i++) {
		struct ct_op *op = &p->ops[i];
		int posted = atomic_read(&op->posted);
		int done = atomic_read(&op->done);

		if (op->silent && done <= posted)
			continue;
		if (done != posted)
			KUNIT_FAIL(p->test,
				   "operation %d: %d posts, %d completions, the last err %d flags %#llx",
				   i, posted, done, op->wc.err, op->wc.flags);
	}
	KUNIT_EXPECT_EQ_MSG(p->test, atomic_read(&p->strays), 0,
			    "unrequested completions");
	KUNIT_EXPECT_EQ_MSG(p->test, atomic_read(&p->overlaps), 0,
			    "two callbacks of a queue at a time");
	KUNIT_EXPECT_EQ_MSG(p->test, atomic_read(&p->late), 0,
			    "callbacks after close or drain");
	KUNIT_EXPECT_EQ_MSG(p->test, atomic_read(&p->inside), 0,
			    "callbacks from inside a post");
	KUNIT_EXPECT_EQ_MSG(p->test, atomic_read(&p->context), 0,
			    "callbacks in the wrong context");
}

/* -------------------------------------------------------------- operations */

/**
 * ct_op - the next operation of the pair
 * @p: the pair
 *
 * Any context. Running out of them is a mistake of the test.
 *
 * Return: an operation not used before.
 */
struct ct_op *ct_op(struct ct_pair *p)
{
	int i = atomic_inc_return(&p->used) - 1;
	struct ct_op *op;

	if (WARN_ON_ONCE(i >= CT_OPS))
		i = CT_OPS - 1;
	op = &p->ops[i];
	op->cqe.done = ct_done;
	op->pair = p;
	return op;
}

/* A post, whichever call makes it */
struct ct_post {
	enum {
		CT_SENDMSG, CT_RECVMSG, CT_SEND, CT_RECV, CT_INJECT, CT_OTHER
	} call;
	ssize_t			(*fn)(struct fid_ep *ep, void *context,
				      void *arg);
	void			*arg;
	struct fid_ep		*ep;
	struct ct_op		*op;
	const struct fi_msg	*msg;
	u64			flags;
	const void		*buf;
	size_t			len;
};

static ssize_t ct_post_call(const struct ct_post *post)
{
	switch (post->call) {
	case CT_SENDMSG:
		return fi_sendmsg(post->ep, post->msg, post->flags);
	case CT_RECVMSG:
		return fi_recvmsg(post->ep, post->msg, post->flags);
	case CT_SEND:
		return fi_send(post->ep, post->buf, post->len, NULL, 0,
			       post->op);
	case CT_RECV:
		return fi_recv(post->ep, (void *)post->buf, post->len, NULL, 0,
			       post->op);
	case CT_OTHER:
		return post->fn(post->ep, post->op, post->arg);
	default:
		return fi_inject(post->ep, post->buf, post->len, 0);
	}
}

/* Where this task says that it is in a post, if it is one and there is room. */
static struct task_struct **ct_mark(struct ct_pair *p)
{
	int i;

	for (i = 0; in_task() && i < CT_POSTERS; i++)
		if (!cmpxchg(&p->posters[i], NULL, current))
			return &p->posters[i];
	return NULL;
}

/* Enter the post in the books and make it. */
static ssize_t ct_post(struct ct_pair *p, int side, struct ct_post *post)
{
	struct ct_op *op = post->op;
	struct task_struct **mark;
	ssize_t ret;

	post->ep = p->side[side].ep;
	if (side && p->srx && (post->call == CT_RECV ||
			       post->call == CT_RECVMSG))
		post->ep = p->srx;
	if (op) {
		op->side = side;
		op->began = ktime_get();
		atomic_inc(&op->posted);
	}
	mark = ct_mark(p);
	if (p->opts.locked) {
		spin_lock_bh(&p->lock);
		ret = ct_post_call(post);
		spin_unlock_bh(&p->lock);
	} else {
		ret = ct_post_call(post);
	}
	if (mark)
		WRITE_ONCE(*mark, NULL);
	if (op && ret)
		atomic_dec(&op->posted);
	return ret;
}

/**
 * ct_post_send - post a transmit and enter it in the books
 * @p: the pair
 * @side: 0 or 1
 * @op: becomes the context
 * @msg: as for fi_sendmsg(); its context is filled in
 * @flags: as for fi_sendmsg()
 *
 * Return: what fi_sendmsg() returns.
 */
ssize_t ct_post_send(struct ct_pair *p, int side, struct ct_op *op,
		     struct fi_msg *msg, u64 flags)
{
	struct ct_post post = {
		.call = CT_SENDMSG, .op = op, .msg = msg, .flags = flags,
	};

	msg->context = op;
	return ct_post(p, side, &post);
}

/**
 * ct_post_recv - post a receive and enter it in the books
 * @p: the pair
 * @side: 0 or 1
 * @op: becomes the context
 * @msg: as for fi_recvmsg(); its context is filled in
 * @flags: as for fi_recvmsg()
 *
 * Return: what fi_recvmsg() returns.
 */
ssize_t ct_post_recv(struct ct_pair *p, int side, struct ct_op *op,
		     struct fi_msg *msg, u64 flags)
{
	struct ct_post post = {
		.call = CT_RECVMSG, .op = op, .msg = msg, .flags = flags,
	};

	msg->context = op;
	return ct_post(p, side, &post);
}

/* The simple forms, through the inlines consumers use most. */

ssize_t ct_send(struct ct_pair *p, int side, struct ct_op *op, const void *buf,
		size_t len)
{
	struct ct_post post = {
		.call = CT_SEND, .op = op, .buf = buf, .len = len,
	};

	return ct_post(p, side, &post);
}

ssize_t ct_recv(struct ct_pair *p, int side, struct ct_op *op, void *buf,
		size_t len)
{
	struct ct_post post = {
		.call = CT_RECV, .op = op, .buf = buf, .len = len,
	};

	return ct_post(p, side, &post);
}

ssize_t ct_inject(struct ct_pair *p, int side, const void *buf, size_t len)
{
	struct ct_post post = { .call = CT_INJECT, .buf = buf, .len = len };

	return ct_post(p, side, &post);
}

/**
 * ct_post_fn - make any other post and enter it in the books
 * @p: the pair
 * @side: 0 or 1
 * @op: the context; NULL for an inject
 * @fn: makes it, with the endpoint, the context and @arg
 * @arg: for @fn
 *
 * Return: what @fn returns.
 */
ssize_t ct_post_fn(struct ct_pair *p, int side, struct ct_op *op,
		   ssize_t (*fn)(struct fid_ep *ep, void *context, void *arg),
		   void *arg)
{
	struct ct_post post = {
		.call = CT_OTHER, .op = op, .fn = fn, .arg = arg,
	};

	return ct_post(p, side, &post);
}

/* ---------------------------------------------- what not every provider can */

/**
 * ct_streams - does software place the messages
 * @p: the pair
 *
 * Then a message may be longer than its receive, and vectors may have any number
 * of segments.
 *
 * Return: true if so; on a device, such a message ends the connection.
 */
bool ct_streams(const struct ct_pair *p)
{
	return p->info->ep_attr->protocol != FI_PROTO_RDMA_CM_IB_RC &&
	       p->info->ep_attr->protocol != FI_PROTO_IWARP;
}

/**
 * ct_on_device - is there a device, be it below endpoints whose messages software places
 * @p: the pair
 *
 * Return: true if so; then it does reads and writes, which no software of the peer's
 * sees, and their memory is in so many pieces at most.
 */
bool ct_on_device(const struct ct_pair *p)
{
	return !ct_streams(p) ||
	       !strcmp(p->info->fabric_attr->prov_name, "verbs;ofi_rxm");
}

/**
 * ct_buffers - may a transmit complete before its receive is posted
 * @p: the pair
 *
 * Return: true if so; then what was sent is read in spite of the end.
 */
bool ct_buffers(const struct ct_pair *p)
{
	return p->info->ep_attr->protocol == FI_PROTO_SOCK_TCP;
}

/**
 * ct_cancels - can a receive be withdrawn
 * @p: the pair, of enabled endpoints
 *
 * Return: true if so; a device's queues cannot.
 */
bool ct_cancels(const struct ct_pair *p)
{
	/* a context that has not been used */
	return fi_cancel(&p->side[0].ep->fid, (void *)p) != -ENOSYS;
}

/**
 * ct_need_stalls - the test sends what finds no receive yet
 * @p: the pair
 *
 * Skips the test where that is not held back but ends the connection, or is lost.
 */
void ct_need_stalls(const struct ct_pair *p)
{
	if (p->info->domain_attr->resource_mgmt != FI_RM_ENABLED ||
	    p->info->ep_attr->type == FI_EP_DGRAM)
		kunit_skip(p->test, "a message without a receive is an error, or lost");
}

/**
 * ct_cm_data_max - private data a connection request can have
 * @p: the pair
 *
 * Return: bytes.
 */
size_t ct_cm_data_max(const struct ct_pair *p)
{
	size_t max = 0, len = sizeof(max);

	fi_getopt(&p->pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &max,
		  &len);
	return max;
}

/**
 * ct_cq_data - what arrives of a value
 * @p: the pair
 * @data: the value
 *
 * Return: as many bytes of it as the provider carries.
 */
u64 ct_cq_data(const struct ct_pair *p, u64 data)
{
	size_t size = p->info->domain_attr->cq_data_size;

	return size >= sizeof(data) ? data : data & (BIT_ULL(8 * size) - 1);
}

/**
 * ct_has_flags - does the provider know flags of a transmit
 * @p: the pair
 * @flags: for fi_sendmsg()
 *
 * Return: false if it has no values or not this level of completion.
 */
bool ct_has_flags(const struct ct_pair *p, u64 flags)
{
	struct fi_info *hints, *info = NULL;
	int err;

	if (flags & FI_REMOTE_CQ_DATA && !p->info->domain_attr->cq_data_size)
		return false;
	flags &= FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
	if (!flags)
		return true;
	hints = ct_hints();
	KUNIT_ASSERT_NOT_NULL(p->test, hints);
	hints->tx_attr->op_flags = flags;
	err = ct_getinfo(0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return !err;
}

/* ----------------------------------------------------------------- content */

static u8 ct_byte(size_t i, u32 seed)
{
	return (i * 7 + (i >> 8) * 3 + (i >> 16) + seed * 31) & 0xff;
}

void ct_pattern(void *buf, size_t len, u32 seed)
{
	u8 *b = buf;
	size_t i;

	for (i = 0; i < len; i++)
		b[i] = ct_byte(i, seed);
}

bool ct_pattern_ok(const void *buf, size_t len, u32 seed)
{
	const u8 *b = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (b[i] != ct_byte(i, seed))
			return false;
	return true;
}

/* ------------------------------------------------------------------ events */

/**
 * ct_next_event - wait for an event
 * @eq: the queue
 * @ev: where it goes; an fi_info in it is the caller's
 * @timeout_ms: how long
 *
 * Return: 0 for an event, 1 for an error entry, or a negative error.
 */
int ct_next_event(struct fid_eq *eq, struct ct_event *ev, int timeout_ms)
{
	ssize_t n;

	memset(ev, 0, sizeof(*ev));
	n = fi_eq_sread(eq, &ev->event, ev->bytes, sizeof(ev->bytes),
			timeout_ms, 0);
	if (n == -FI_EAVAIL) {
		ev->error.err_data = ev->error_data;
		ev->error.err_data_size = sizeof(ev->error_data);
		n = fi_eq_readerr(eq, &ev->error, 0);
		return n > 0 ? 1 : n ?: -ENODATA;
	}
	ev->len = n;
	return n > 0 ? 0 : n ?: -ENODATA;
}

/**
 * ct_expect_event - the next event is this one
 * @test: fails otherwise
 * @eq: the queue
 * @event: FI_CONNECTED, FI_SHUTDOWN, ...
 */
void ct_expect_event(struct kunit *test, struct fid_eq *eq, u32 event)
{
	struct ct_event ev;
	int ret;

	ct_connected_init(test);
	ret = ct_next_event(eq, &ev, CT_TIMEOUT_MS);
	KUNIT_EXPECT_EQ_MSG(test, ret, 0, "waiting for event %u, error entry %d",
			    event, ev.error.err);
	if (!ret)
		KUNIT_EXPECT_EQ(test, ev.event, event);
}

/**
 * ct_expect_no_event - nothing more comes
 * @test: fails otherwise
 * @eq: the queue
 */
void ct_expect_no_event(struct kunit *test, struct fid_eq *eq)
{
	struct ct_event ev;

	KUNIT_EXPECT_EQ_MSG(test, ct_next_event(eq, &ev, 50), -EAGAIN,
			    "event %u, error entry %d", ev.event, ev.error.err);
}

/**
 * ct_expect_ended - both sides are told that the connection has ended, once
 * @p: the pair, whose test fails otherwise
 */
void ct_expect_ended(struct ct_pair *p)
{
	int side;

	for (side = 0; side < 2; side++) {
		ct_expect_event(p->test, p->side[side].eq, FI_SHUTDOWN);
		ct_expect_no_event(p->test, p->side[side].eq);
	}
}

/**
 * ct_expect_removed - expect the events of the removal of a device
 * @p: the pair, with the test that fails otherwise
 * @n: connections of the pair
 *
 * Each side gets FI_SHUTDOWN once for each connection. A passive endpoint on an address of
 * an RDMA device, bound to the queue of side 1, reports ENODEV once. No others arrive.
 */
void ct_expect_removed(struct ct_pair *p, int n)
{
	int shutdowns, lost, side, listeners;
	struct kunit *test = p->test;
	struct ct_event ev;

	for (side = 0; side < 2; side++) {
		listeners = side && !ct_streams(p);
		shutdowns = 0;
		lost = 0;
		while (shutdowns + lost < n + listeners) {
			int ret = ct_next_event(p->side[side].eq, &ev, CT_TIMEOUT_MS);

			KUNIT_ASSERT_GE_MSG(test, ret, 0, "%d shutdowns", shutdowns);
			if (ret) {
				KUNIT_EXPECT_PTR_EQ(test, ev.error.fid, &p->pep->fid);
				KUNIT_EXPECT_EQ(test, ev.error.err, ENODEV);
				lost++;
			} else {
				KUNIT_EXPECT_EQ(test, ev.event, FI_SHUTDOWN);
				shutdowns++;
			}
		}
		KUNIT_EXPECT_EQ(test, lost, listeners);
		ct_expect_no_event(test, p->side[side].eq);
	}
}

/* ----------------------------------------------------------------- objects */

/**
 * ct_hints - hints for the provider and device under test
 *
 * Return: hints to be freed by fi_freeinfo().
 */
struct fi_info *ct_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG;
	hints->ep_attr->type = !strcmp(ct_type, "dgram") ? FI_EP_DGRAM :
			       ct_rdm() ? FI_EP_RDM : FI_EP_MSG;
	hints->fabric_attr->prov_name = kstrdup(ct_provider, GFP_KERNEL);
	hints->domain_attr->name = kstrdup(ct_device, GFP_KERNEL);
	if (!hints->fabric_attr->prov_name || !hints->domain_attr->name) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

/**
 * ct_getinfo - discovery at the address under test
 * @flags: as for fi_getinfo()
 * @hints: as for fi_getinfo()
 * @info: where the list goes
 *
 * Return: what kofi_getinfo() returns.
 */
int ct_getinfo(u64 flags, const struct fi_info *hints, struct fi_info **info)
{
	return kofi_getinfo(&init_net, FI_VERSION(2, 1), ct_address, "0",
			    flags, hints, info, GFP_KERNEL);
}

struct ct_mem {
	struct list_head	node;
	void			*mem;
};

/**
 * ct_buf - memory that lives as long as the pair
 * @p: the pair
 * @len: how much; 0 gives a pointer all the same
 *
 * Return: zeroed memory.
 */
void *ct_buf(struct ct_pair *p, size_t len)
{
	struct ct_mem *m = kzalloc(sizeof(*m), GFP_KERNEL | __GFP_NOFAIL);

	/* for a device, better in one piece */
	m->mem = kzalloc(len ?: 1, GFP_KERNEL | __GFP_RETRY_MAYFAIL |
			 __GFP_NOWARN);
	if (!m->mem)
		m->mem = kvzalloc(len, GFP_KERNEL | __GFP_NOFAIL);
	list_add(&m->node, &p->bufs);
	return m->mem;
}

int ct_cq_open(struct ct_pair *p, struct ct_cq *cq)
{
	static const enum kofi_poll polls[CT_MODES] = {
		[CT_DIRECT]	= KOFI_POLL_DIRECT,
		[CT_SOFTIRQ]	= KOFI_POLL_SOFTIRQ,
		[CT_WORKQUEUE]	= KOFI_POLL_WORKQUEUE,
	};
	struct fi_cq_attr attr = {
		.size = p->opts.cq_size ?: CT_OPS,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_UNSPEC,
	};
	struct kofi_cq_attr kattr = {
		.poll = polls[p->opts.mode],
		.done = true,
	};

	cq->pair = p;
	if (p->opts.mode == CT_READ)
		return fi_cq_open(p->domain, &attr, &cq->cq, cq);
	attr.format = FI_CQ_FORMAT_UNSPEC;
	attr.wait_obj = FI_WAIT_NONE;
	return kofi_cq_open(p->domain, &attr, &kattr, &cq->cq, cq);
}

static void ct_write_space(struct fid_ep *ep, void *context)
{
	struct ct_side *s = context;
	struct ct_pair *p = s->pair;

	/* one of the transmit queue's callbacks */
	if (atomic_inc_return(&s->tx.running) != 1)
		atomic_inc(&p->overlaps);
	if (READ_ONCE(s->tx.closed))
		atomic_inc(&p->late);
	atomic_inc(&s->space);
	if (p->on_space)
		p->on_space(p, s - p->side);
	wake_up(&p->wq);
	atomic_dec(&s->tx.running);
}

/**
 * ct_ep_open - an endpoint, bound to the queues of its side, not enabled
 * @p: the pair
 * @side: 0 or 1
 * @info: from discovery, or of a connection request
 *
 * Return: 0 or a negative error.
 */
int ct_ep_open(struct ct_pair *p, int side, struct fi_info *info)
{
	u64 sel = p->opts.selective ? FI_SELECTIVE_COMPLETION : 0;
	struct ct_side *s = &p->side[side];
	struct fid_cq *rx;
	int err;

	s->tx.closed = false;
	s->rx.closed = false;
	err = fi_endpoint(p->domain, info, &s->ep, s);
	if (err)
		return err;
	err = fi_ep_bind(s->ep, &s->eq->fid, 0);
	err = err ?: fi_ep_bind(s->ep, &s->tx.cq->fid, FI_TRANSMIT | sel);
	rx = p->opts.one_cq ? s->tx.cq : s->rx.cq;
	err = err ?: fi_ep_bind(s->ep, &rx->fid, FI_RECV | sel);
	if (!err && ct_rdm())
		err = fi_ep_bind(s->ep, &s->av->fid, 0);
	if (!err && side && p->srx)
		err = fi_ep_bind(s->ep, &p->srx->fid, 0);
	if (!err && p->opts.write_space)
		err = kofi_ep_write_space(s->ep, ct_write_space);
	if (!err && p->opts.silence_ms)
		err = fi_set_val(&s->ep->fid, KOFI_VAL_SILENCE_TIMEOUT,
				 &p->opts.silence_ms);
	if ((err == -ENOSYS || err == -EOPNOTSUPP) && p->opts.silence_ms)
		kunit_skip(p->test, "no peer is ever given up");
	if (!err && p->opts.reclaim_safe)
		err = fi_set_val(&s->ep->fid, KOFI_VAL_RECLAIM_SAFE,
				 &(unsigned int){ 1 });
	if (!err && p->opts.zerocopy_min)
		err = fi_set_val(&s->ep->fid, KOFI_VAL_ZEROCOPY_MIN,
				 &p->opts.zerocopy_min);
	if (!err && p->opts.mr_pool)
		err = fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
				&p->opts.mr_pool, sizeof(p->opts.mr_pool));
	return err;
}

static struct fi_info *ct_pair_hints(const struct ct_pair *p)
{
	struct fi_info *hints = ct_hints();

	if (!hints)
		return NULL;
	if (p->opts.caps)
		hints->caps = p->opts.caps;
	hints->domain_attr->mr_mode = p->opts.mr_mode;
	return hints;
}

static int ct_listen(struct ct_pair *p)
{
	struct fi_info *hints = ct_pair_hints(p), *info = NULL;
	size_t len = sizeof(p->addr);
	int err = -ENOMEM;

	if (!hints)
		return err;
	hints->tx_attr->tclass = p->opts.tclass;
	err = ct_getinfo(FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	err = err ?: fi_passive_ep(p->fabric, info, &p->pep, p);
	err = err ?: fi_pep_bind(p->pep, &p->side[1].eq->fid, 0);
	if (!err && p->opts.handshake_ms)
		err = fi_set_val(&p->pep->fid, KOFI_VAL_HANDSHAKE_TIMEOUT,
				 &p->opts.handshake_ms);
	err = err ?: fi_listen(p->pep);
	err = err ?: fi_getname(&p->pep->fid, &p->addr, &len);
	fi_freeinfo(info);
	return err;
}

/**
 * ct_pair_setup - all objects of a pair, as its options say
 * @p: a zeroed pair with its options
 *
 * Memory that runs out is an error like any other here, as faults may be
 * injected. ct_pair_teardown() undoes also what a failure has left.
 *
 * Return: 0 or a negative error.
 */
int ct_pair_setup(struct ct_pair *p)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints;
	int err, i;

	init_waitqueue_head(&p->wq);
	spin_lock_init(&p->lock);
	INIT_LIST_HEAD(&p->bufs);
	p->ops = kvcalloc(CT_OPS, sizeof(*p->ops), GFP_KERNEL);
	hints = ct_pair_hints(p);
	if (!p->ops || !hints) {
		fi_freeinfo(hints);
		return -ENOMEM;
	}
	hints->tx_attr->size = p->opts.tx_size;
	hints->rx_attr->size = p->opts.rx_size;
	hints->tx_attr->tclass = p->opts.tclass;
	err = ct_getinfo(0, hints, &p->info);
	fi_freeinfo(hints);
	err = err ?: fi_fabric(p->info->fabric_attr, &p->fabric, p);
	err = err ?: fi_domain(p->fabric, p->info, &p->domain, p);
	for (i = 0; i < 2 && !err; i++) {
		struct ct_side *s = &p->side[i];

		s->pair = p;
		err = fi_eq_open(p->fabric, &eq_attr, &s->eq, p);
		err = err ?: ct_cq_open(p, &s->tx);
		err = err ?: ct_cq_open(p, &s->rx);
		if (!err && ct_rdm())
			err = fi_av_open(p->domain, NULL, &s->av, p);
	}
	if (!err && p->opts.srx_size) {
		struct fi_rx_attr attr = { .size = p->opts.srx_size };

		err = fi_srx_context(p->domain, &attr, &p->srx, p);
		err = err ?: fi_ep_bind(p->srx, &p->side[1].rx.cq->fid,
					FI_RECV);
	}
	if (!err && !ct_rdm())
		err = ct_listen(p);
	err = err ?: ct_ep_open(p, 0, p->info);
	if (err || p->opts.early || p->opts.unconnected)
		return err;
	return ct_pair_connect(p);
}

/* An accepted endpoint is sized like the one that connects. */
static int ct_accept(struct ct_pair *p, struct fi_info *info)
{
	int err;

	info->tx_attr->size = p->info->tx_attr->size;
	info->rx_attr->size = p->info->rx_attr->size;
	err = ct_ep_open(p, 1, info);
	return err ?: fi_accept(p->side[1].ep, NULL, 0);
}

/* The request at side 1; or the error of side 0, if that comes first. */
static int ct_await_request(struct ct_pair *p, struct ct_event *ev)
{
	int err, left;

	for (left = CT_TIMEOUT_MS; left > 0; left -= 50) {
		err = ct_next_event(p->side[1].eq, ev, 50);
		if (err == -EAGAIN)
			err = ct_next_event(p->side[0].eq, ev, 0);
		if (err != -EAGAIN)
			break;
	}
	return !err && ev->event != FI_CONNREQ ? -EPROTO : err;
}

/* Each side knows the other as 0, which those that connect name, too. */
static int ct_pair_insert(struct ct_pair *p)
{
	struct sockaddr_storage addr;
	int err, side, failed = 0;
	fi_addr_t peer;
	size_t len;

	err = ct_ep_open(p, 1, p->info);
	for (side = 0; side < 2 && !err; side++)
		err = fi_enable(p->side[side].ep);
	for (side = 0; side < 2 && !err; side++) {
		len = sizeof(addr);
		err = fi_getname(&p->side[!side].ep->fid, &addr, &len);
		if (!err && fi_av_insert(p->side[side].av, &addr, 1, &peer,
					 FI_SYNC_ERR, &failed) != 1)
			err = -failed;
	}
	return err;
}

/**
 * ct_pair_connect - connect side 0 to side 1
 * @p: the pair
 *
 * Return: 0, or a negative error; that of an error entry too.
 */
int ct_pair_connect(struct ct_pair *p)
{
	struct ct_event *ev;
	int err, side;

	if (ct_rdm())
		return ct_pair_insert(p);
	ev = kzalloc(sizeof(*ev), GFP_KERNEL | __GFP_NOFAIL);
	err = fi_connect(p->side[0].ep, &p->addr, NULL, 0);
	if (err)
		goto free_event;
	err = ct_await_request(p, ev);
	if (!err) {
		err = ct_accept(p, ev->cm.info);
		fi_freeinfo(ev->cm.info);
	}
	for (side = 0; side < 2 && !err; side++) {
		err = ct_next_event(p->side[side].eq, ev, CT_TIMEOUT_MS);
		if (!err && ev->event != FI_CONNECTED)
			err = -EPROTO;
	}
	if (err > 0)
		err = -ev->error.err;
free_event:
	kfree(ev);
	return err;
}

/**
 * ct_ep_close - close an endpoint; its completions are over then
 * @p: the pair
 * @side: 0 or 1
 *
 * Return: what fi_close() returns.
 */
int ct_ep_close(struct ct_pair *p, int side)
{
	struct ct_side *s = &p->side[side];
	int err;

	if (!s->ep)
		return 0;
	err = fi_close(&s->ep->fid);
	if (err)
		return err;
	s->ep = NULL;
	/* In done mode all callbacks have returned. */
	WRITE_ONCE(s->tx.closed, true);
	if (!side || !p->srx)
		WRITE_ONCE(s->rx.closed, true);
	return 0;
}

/**
 * ct_srx_close - close the shared context; its completions are over then
 * @p: the pair, whose side 1 has been closed
 */
void ct_srx_close(struct ct_pair *p)
{
	if (!p->srx)
		return;
	KUNIT_EXPECT_EQ(p->test, fi_close(&p->srx->fid), 0);
	p->srx = NULL;
	WRITE_ONCE(p->side[1].rx.closed, true);
}

/**
 * ct_ep_drain - drain an endpoint; its completions are over then
 * @p: the pair
 * @side: 0 or 1
 */
void ct_ep_drain(struct ct_pair *p, int side)
{
	struct ct_side *s = &p->side[side];

	kofi_ep_drain(s->ep);
	WRITE_ONCE(s->tx.closed, true);
	WRITE_ONCE(s->rx.closed, true);
}

/**
 * ct_ep_abort - abort an endpoint; no completion follows
 * @p: the pair
 * @side: 0 or 1
 */
void ct_ep_abort(struct ct_pair *p, int side)
{
	struct ct_side *s = &p->side[side];

	KUNIT_EXPECT_EQ(p->test, kofi_ep_abort(s->ep), 0);
	WRITE_ONCE(s->tx.closed, true);
	WRITE_ONCE(s->rx.closed, true);
}

static void ct_close(struct ct_pair *p, struct fi_fid *fid, const char *what)
{
	int err = fid ? fi_close(fid) : 0;

	KUNIT_EXPECT_EQ_MSG(p->test, err, 0, "closing the %s", what);
}

/* Any object; the pointer to it is cleared. */
#define ct_close_obj(p, obj, what) do {					\
	typeof(obj) *ct_obj = &(obj);					\
									\
	ct_close(p, *ct_obj ? &(*ct_obj)->fid : NULL, what);		\
	*ct_obj = NULL;							\
} while (0)

/**
 * ct_pair_teardown - give everything back
 * @p: the pair; may be half made
 */
void ct_pair_teardown(struct ct_pair *p)
{
	struct ct_mem *m, *next;
	int i;

	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, i), 0);
	ct_srx_close(p);
	ct_progress(p);		/* entries survive the endpoint */
	ct_close_obj(p, p->pep, "passive endpoint");
	for (i = 0; i < 2; i++) {
		struct ct_side *s = &p->side[i];

		ct_close_obj(p, s->tx.cq, "transmit queue");
		ct_close_obj(p, s->rx.cq, "receive queue");
		ct_close_obj(p, s->eq, "event queue");
		ct_close_obj(p, s->av, "address vector");
	}
	ct_close_obj(p, p->domain, "domain");
	ct_close_obj(p, p->eq, "domain's event queue");
	ct_close_obj(p, p->fabric, "fabric");
	fi_freeinfo(p->info);
	p->info = NULL;
	if (!p->bufs.next)
		return;
	list_for_each_entry_safe(m, next, &p->bufs, node) {
		list_del(&m->node);
		kvfree(m->mem);
		kfree(m);
	}
}

static void ct_pair_release(void *arg)
{
	struct ct_pair *p = arg;

	ct_pair_teardown(p);
	kvfree(p->ops);
	kfree(p);
}

/* Skip the test of a family of operations that the provider does not offer. */
static void ct_need_family(struct ct_pair *p)
{
	u64 need = p->opts.caps & (FI_RMA | FI_TAGGED | FI_ATOMIC);
	struct fi_info *hints = ct_hints(), *info = NULL;
	int err = -ENOMEM;

	if (hints) {
		hints->caps = 0;
		hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
					      FI_MR_ALLOCATED;
		err = ct_getinfo(0, hints, &info);
	}
	need &= err ? 0 : ~info->caps;
	fi_freeinfo(info);
	info = NULL;
	/* some providers have these only for those that ask for them */
	if (need & FI_ATOMIC) {
		hints->caps = FI_ATOMIC;
		if (!ct_getinfo(0, hints, &info))
			need &= ~FI_ATOMIC;
	}
	fi_freeinfo(hints);
	fi_freeinfo(info);
	if (need)
		kunit_skip(p->test, "not all families of operations are there");
}

/**
 * ct_pair_open - a pair, connected unless its options say otherwise
 * @test: ends if that fails, and gives the pair back when it ends
 * @opts: copied; NULL for none
 *
 * Return: the pair.
 */
struct ct_pair *ct_pair_open(struct kunit *test, const struct ct_opts *opts)
{
	struct ct_pair *p = kzalloc(sizeof(*p), GFP_KERNEL | __GFP_NOFAIL);
	int err;

	p->test = test;
	if (opts)
		p->opts = *opts;
	err = kunit_add_action_or_reset(test, ct_pair_release, p);
	KUNIT_ASSERT_EQ(test, err, 0);
	ct_need_family(p);
	if (p->opts.unconnected)
		ct_connected_init(test);
	err = ct_pair_setup(p);
	if (err == -EOPNOTSUPP && p->opts.mr_pool)
		kunit_skip(test, "no region can be had in any context");
	KUNIT_ASSERT_EQ_MSG(test, err, 0,
			    "no pair of %s endpoints on %s at %s",
			    ct_provider, ct_device, ct_address);
	return p;
}

struct ct_pair *ct_pair_mode(struct kunit *test, enum ct_mode mode)
{
	const struct ct_opts opts = { .mode = mode };

	return ct_pair_open(test, &opts);
}

/**
 * ct_pair_close - the end of a test: close everything and check the books
 * @p: the pair; it lives until the test has ended
 */
void ct_pair_close(struct ct_pair *p)
{
	ct_pair_teardown(p);
	ct_check_books(p);
}

MODULE_DESCRIPTION("kOFI: the contract between providers and consumers, KUnit suites");
MODULE_LICENSE("Dual BSD/GPL");
