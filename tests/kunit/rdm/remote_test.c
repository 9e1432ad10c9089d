// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an endpoint is told of its peers' accesses to memory, over each provider of
 * endpoints that do not connect: remote CQ data, events of regions, counters.
 */
#include <linux/sizes.h>
#include <linux/wait.h>

#include "../kunit.h"
#include "pair.h"

#define RM_CAPS		(FI_MSG | FI_RMA | FI_SOURCE)
#define RM_VALUE	0x0123456789abcdefULL
#define RM_SLOTS	4	/* of a queue that is too short */
#define RM_FLOOD	200	/* more writes than kofi_rxm has buffers for */

static void rm_close_mr(void *arg)
{
	struct fid_mr *mr = arg;

	fi_close(&mr->fid);
}

/* Is the provider told of accesses, and so of the region? */
static bool rm_told(const struct rdm_pair *t)
{
	return t->info->caps & FI_RMA_EVENT;
}

static u64 rm_data(const struct rdm_pair *t, u64 value)
{
	return t->info->domain_attr->cq_data_size < sizeof(value) ?
	       (u32)value : value;
}

#define RM_RIGHTS	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fid_mr *rm_reg(struct rdm_pair *t, u64 key, u64 flags)
{
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(t->test, fi_mr_reg(t->domain, t->in, RDM_LONG,
					   RM_RIGHTS, 0, key, flags, &mr, t->in),
			0);
	KUNIT_ASSERT_EQ(t->test, kunit_add_action_or_reset(t->test, rm_close_mr,
							   mr), 0);
	return mr;
}

static bool rm_native(struct kunit *test)
{
	return !strcmp(test->param_value, "sock");
}

/* A pair, one end with so many slots; to be enabled */
static struct rdm_pair *rm_alloc_as(struct kunit *test, size_t slots, int keys)
{
	struct rdm_pair *t;

	t = rdm_pair_alloc(test, RM_CAPS | (rm_native(test) ? 0 : FI_ATOMIC), keys);

	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, slots, NULL);
	return t;
}

static struct rdm_pair *rm_alloc(struct kunit *test, size_t slots)
{
	return rm_alloc_as(test, slots, RDM_KEYS);
}

static void rm_need_data(const struct rdm_pair *t)
{
	if (!t->info->domain_attr->cq_data_size)
		kunit_skip(t->test, "the device has no remote CQ data");
}

static int rm_write(struct rdm_pair *t, struct fid_mr *mr, size_t len, u64 data)
{
	return fi_writedata(t->from.ep, t->out, len, NULL, data, t->from.peer,
			    kofi_mr_base(mr), fi_mr_key(mr), t->out);
}

/* The next completion of the end that writes */
static void rm_written(struct rdm_pair *t)
{
	struct fi_cq_tagged_entry e;

	KUNIT_ASSERT_EQ(t->test, rdm_comp(&t->from, &e), 0);
	KUNIT_EXPECT_EQ(t->test, e.flags, FI_RMA | FI_WRITE);
	KUNIT_EXPECT_PTR_EQ(t->test, e.op_context, (void *)t->out);
}

/* The next one of the other end */
static void rm_told_data(struct rdm_pair *t, struct fid_mr *mr, size_t len, u64 data)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	KUNIT_ASSERT_EQ(t->test, fi_cq_sreadfrom(t->to.cq, &e, 1, &src, NULL,
						 RDM_TIMEOUT), 1);
	KUNIT_EXPECT_EQ(t->test, e.flags, FI_RMA | FI_REMOTE_WRITE |
			FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(t->test, e.len, len);
	KUNIT_EXPECT_EQ(t->test, e.data, rm_data(t, data));
	KUNIT_EXPECT_EQ(t->test, src, t->to.peer);
	KUNIT_EXPECT_PTR_EQ(t->test, e.op_context,
			    rm_told(t) ? (void *)t->in : NULL);
	KUNIT_EXPECT_EQ(t->test, e.tag, rm_told(t) ? fi_mr_key(mr) : 0);
}

static void rm_empty(struct rdm_pair *t, struct rdm_end *e)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_EXPECT_EQ(t->test, fi_cq_read(e->cq, &entry, 1), -EAGAIN);
}

/* ----------------------------------------------------------- remote CQ data */

/* It takes no receive, and comes when the bytes are there. */
static void rm_data_sizes(struct kunit *test)
{
	static const size_t lens[] = { 0, 8, 1000, SZ_16K + 1, RDM_LONG };
	struct rdm_pair *t = rm_alloc(test, 0);
	struct fid_mr *mr = rm_reg(t, 0, 0);
	struct fi_cq_tagged_entry e;
	int i;

	rm_need_data(t);
	rdm_pair_enable(t);
	KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in, 8, NULL, FI_ADDR_UNSPEC,
				      t), 0);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(t->in, 0, RDM_LONG);
		KUNIT_ASSERT_EQ(test, rm_write(t, mr, lens[i], RM_VALUE + i),
				0);
		rm_told_data(t, mr, lens[i], RM_VALUE + i);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out, lens[i]);
		rm_written(t);
	}
	/* one that reports no success, and one without data in front of it */
	KUNIT_ASSERT_EQ(test, fi_inject_write(t->from.ep, t->out, 8,
					      t->from.peer, kofi_mr_base(mr),
					      fi_mr_key(mr)), 0);
	KUNIT_ASSERT_EQ(test, fi_inject_writedata(t->from.ep, t->out, 64, 77,
						  t->from.peer,
						  kofi_mr_base(mr),
						  fi_mr_key(mr)), 0);
	rm_told_data(t, mr, 64, 77);
	KUNIT_EXPECT_EQ(test, fi_readmsg(t->from.ep, &(struct fi_msg_rma) {},
					 FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, 8, NULL, t->from.peer,
				      t), 0);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t);
	rm_empty(t, &t->from);
	rm_empty(t, &t->to);
}

/* How much there is the fi_info says; where there is none, posts are refused. */
static void rm_data_info(struct kunit *test)
{
	struct rdm_pair *t = rm_alloc(test, 0), *msg;
	struct kofi_cqe cqe = {};
	struct fid_mr *mr;

	KUNIT_EXPECT_EQ(test, t->info->mode & FI_RX_CQ_DATA, 0);
	msg = rdm_pair_alloc(test, FI_MSG, RDM_KEYS);
	KUNIT_EXPECT_EQ(test, msg->info->domain_attr->cq_data_size, 8);
	if (t->info->domain_attr->cq_data_size) {
		KUNIT_EXPECT_EQ(test, kofi_ep_remote_cqe(t->to.ep, &cqe), 0);
		return;
	}
	KUNIT_EXPECT_EQ(test, kofi_ep_remote_cqe(t->to.ep, &cqe), -EOPNOTSUPP);
	mr = rm_reg(t, 0, 0);
	rdm_pair_enable(t);
	KUNIT_EXPECT_EQ(test, rm_write(t, mr, 8, 1), -EOPNOTSUPP);
}

/* More of them than the queue, and the endpoint below it, has room for */
static struct fid_mr *rm_flood(struct rdm_pair *t)
{
	const unsigned long end = jiffies + msecs_to_jiffies(RDM_TIMEOUT);
	struct fid_mr *mr = rm_reg(t, 0, 0);
	struct kunit *test = t->test;
	int i;

	rm_need_data(t);
	rdm_pair_enable(t);
	/* until there is a connection, not all of them can be posted */
	KUNIT_ASSERT_EQ(test, rm_write(t, mr, 8, 0), 0);
	rm_told_data(t, mr, 8, 0);
	rm_written(t);
	for (i = 0; i < RM_FLOOD; i++)
		KUNIT_ASSERT_EQ(test, rm_write(t, mr, 8, i), 0);
	while (!rdm_fid_stat(&t->to.cq->fid, "again") && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_NE(test, rdm_fid_stat(&t->to.cq->fid, "again"), 0);
	return mr;
}

/* They wait for slots, in order, and none is lost. */
static void rm_flooded(struct kunit *test)
{
	const unsigned long end = jiffies + msecs_to_jiffies(RDM_TIMEOUT);
	struct rdm_pair *t = rm_alloc(test, RM_SLOTS);
	struct fid_mr *mr = rm_flood(t);
	int i;

	for (i = 0; i < RM_FLOOD; i++)
		rm_told_data(t, mr, 8, i);
	for (i = 0; i < RM_FLOOD; i++)
		rm_written(t);
	rm_empty(t, &t->to);
	while (rdm_fid_stat(&t->to.ep->fid, "rx_held") && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_fid_stat(&t->to.ep->fid, "rx_held"), 0);
}

/* What waits goes with its endpoint, and each write ends. */
static void rm_flooded_closed(struct kunit *test)
{
	struct rdm_pair *t = rm_alloc(test, RM_SLOTS);
	struct fi_cq_tagged_entry e;
	int i;

	rm_flood(t);
	rdm_close_end(test, &t->to);
	for (i = 0; i < RM_FLOOD; i++) {
		KUNIT_ASSERT_GE(test, rdm_comp(&t->from, &e), 0);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t->out);
	}
	rm_empty(t, &t->from);
}

/* What has come waits for its slot longer than its connection lasts. */
static void rm_flooded_lost(struct kunit *test)
{
	struct rdm_pair *t = rm_alloc(test, RM_SLOTS);
	struct fid_mr *mr = rm_reg(t, 0, 0);
	int i, n = 3 * RM_SLOTS;

	rm_need_data(t);
	rdm_pair_enable(t);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, rm_write(t, mr, 8, i), 0);
	for (i = 0; i < n; i++)
		rm_written(t);
	rdm_close_end(test, &t->from);
	for (i = 0; i < n; i++)
		rm_told_data(t, mr, 8, i);
	rm_empty(t, &t->to);
}

/* ------------------------------------------------------- delivery complete */

/* The next completion of the end that has the region */
static void rm_event(struct rdm_pair *t, u64 key, u64 flags, size_t len)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	KUNIT_ASSERT_EQ(t->test, fi_cq_sreadfrom(t->to.cq, &e, 1, &src, NULL,
						 RDM_TIMEOUT), 1);
	KUNIT_EXPECT_EQ(t->test, e.flags, flags);
	KUNIT_EXPECT_EQ(t->test, e.len, len);
	KUNIT_EXPECT_EQ(t->test, src, t->to.peer);
	KUNIT_EXPECT_PTR_EQ(t->test, e.op_context, (void *)t->in);
	KUNIT_EXPECT_EQ(t->test, e.tag, key);
}

/* Discovery with a level for all transmits */
static int rm_level_info(struct kunit *test, u64 caps)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = caps;
	hints->domain_attr->mr_mode = RDM_KEYS;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	err = rdm_place_getinfo(test, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return err;
}

static int rm_write_delivered(struct rdm_pair *t, struct rdm_end *from, size_t len,
			      u64 addr, u64 key)
{
	const struct kvec kv = { t->out, len };
	const struct fi_rma_iov rma = { .addr = addr, .len = len, .key = key };
	const struct fi_msg_rma msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = from->peer,
		.rma_iov = &rma, .rma_iov_count = 1, .context = t->out,
	};

	return fi_writemsg(from->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* A write is not delivered while it waits for a slot of the queue that reports it. */
static void rm_delivered(struct kunit *test)
{
	const unsigned long end = jiffies + msecs_to_jiffies(RDM_TIMEOUT);
	struct rdm_pair *t = rm_alloc(test, RM_SLOTS);
	struct fid_mr *mr = rm_reg(t, 0, rm_told(t) ? FI_RMA_EVENT : 0);
	struct fi_cq_tagged_entry e;
	u64 addr = kofi_mr_base(mr), key = fi_mr_key(mr);
	int i, n = 3 * RM_SLOTS, done = 0;

	rdm_pair_enable(t);
	KUNIT_EXPECT_EQ(test, rm_level_info(test, FI_MSG | FI_RMA),
			rm_native(test) ? 0 : -ENODATA);
	if (rm_level_info(test, FI_RMA)) {
		KUNIT_EXPECT_EQ(test, rm_write_delivered(t, &t->from, 64, addr, key),
				-EOPNOTSUPP);
		return;
	}
	memset(t->in, 0, 64);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, rm_write_delivered(t, &t->from, 64, addr, key),
				0);
	if (!rm_told(t)) {
		rm_written(t);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out, 64);
		for (i = 1; i < n; i++)
			rm_written(t);
		return;
	}
	while (!rdm_fid_stat(&t->to.cq->fid, "again") && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	while (fi_cq_read(t->from.cq, &e, 1) == 1)
		done++;
	KUNIT_EXPECT_LT(test, done, n);
	for (i = 0; i < n; i++)
		rm_event(t, key, FI_RMA | FI_REMOTE_WRITE, 64);
	for (; done < n; done++)
		rm_written(t);
	KUNIT_EXPECT_MEMEQ(test, t->in, t->out, 64);
}

/* --------------------------------------------------------------- callbacks */

struct rm_done {
	struct kofi_cqe		cqe;
	wait_queue_head_t	wq;
	struct kofi_wc		wc;
	int			calls;
};

static void rm_called(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rm_done *d = container_of(wc->cqe, struct rm_done, cqe);

	d->wc = *wc;
	WRITE_ONCE(d->calls, d->calls + 1);
	wake_up(&d->wq);
}

/* On a queue that calls back it calls what the endpoint names. */
static void rm_calls(struct kunit *test)
{
	struct rdm_pair *t = rdm_pair_alloc(test, RM_CAPS, RDM_KEYS);
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	struct rm_done *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct fi_cq_attr attr = {};
	struct fid_mr *mr = rm_reg(t, 0, 0);
	struct fid_cq *cq;
	int i;

	rm_need_data(t);
	KUNIT_ASSERT_NOT_NULL(test, d);
	d->cqe.done = rm_called;
	init_waitqueue_head(&d->wq);
	KUNIT_ASSERT_EQ(test, kofi_cq_open(t->domain, &attr, &kattr, &cq, NULL),
			0);
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, cq);
	KUNIT_ASSERT_EQ(test, kofi_ep_remote_cqe(t->to.ep, &d->cqe), 0);
	rdm_pair_enable(t);
	for (i = 1; i <= 10; i++) {
		KUNIT_ASSERT_EQ(test, rm_write(t, mr, 100 * i, i), 0);
		rm_written(t);
		KUNIT_ASSERT_GT(test, wait_event_timeout(d->wq,
							 READ_ONCE(d->calls) == i,
							 msecs_to_jiffies(RDM_TIMEOUT)),
				0);
		KUNIT_EXPECT_EQ(test, d->wc.flags, FI_RMA | FI_REMOTE_WRITE |
				FI_REMOTE_CQ_DATA);
		KUNIT_EXPECT_EQ(test, d->wc.data, (u64)i);
		KUNIT_EXPECT_EQ(test, d->wc.len, 100 * i);
		KUNIT_EXPECT_EQ(test, d->wc.src, t->to.peer);
		KUNIT_EXPECT_PTR_EQ(test, d->wc.mr_context,
				    rm_told(t) ? (void *)t->in : NULL);
		KUNIT_EXPECT_EQ(test, d->wc.mr_key,
				rm_told(t) ? fi_mr_key(mr) : 0);
	}
	/* its callbacks use what is freed before it is closed otherwise */
	rdm_close_end(test, &t->to);
}

/* -------------------------------------------------------- events of regions */

static bool rm_has_atomics(const struct rdm_pair *t)
{
	return t->info->caps & FI_ATOMIC;
}

/* What asks for events is refused where there are none. */
static struct rdm_pair *rm_events_alloc(struct kunit *test, size_t slots,
					int keys, u64 flags)
{
	struct rdm_pair *t = rm_alloc_as(test, slots, keys);
	struct fid_mr *mr = NULL;

	if (rm_told(t))
		return t;
	KUNIT_EXPECT_EQ(test, fi_mr_reg(t->domain, t->in, 64, RM_RIGHTS, 0, 0,
					flags, &mr, NULL), -EOPNOTSUPP);
	return NULL;
}

static int rm_fetch_add(struct rdm_pair *t, struct fid_mr *mr, u64 *old)
{
	static const u64 one = 1;

	return fi_fetch_atomic(t->from.ep, &one, 1, NULL, old, NULL,
			       t->from.peer, kofi_mr_base(mr), fi_mr_key(mr),
			       FI_UINT64, FI_SUM, t->out);
}

/* Each access is reported, with its region. */
static void rm_events(struct kunit *test)
{
	struct rdm_pair *t = rm_events_alloc(test, 0, RDM_KEYS, FI_RMA_EVENT);
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	u64 key, old;
	int i;

	if (!t)
		return;
	rdm_pair_enable(t);
	mr = rm_reg(t, 0, FI_RMA_EVENT);
	key = fi_mr_key(mr);
	KUNIT_ASSERT_EQ(test, fi_write(t->from.ep, t->out, 100, NULL,
				       t->from.peer, kofi_mr_base(mr), key, t),
			0);
	rm_event(t, key, FI_RMA | FI_REMOTE_WRITE, 100);
	KUNIT_ASSERT_EQ(test, fi_read(t->from.ep, t->out, 90, NULL,
				      t->from.peer, kofi_mr_base(mr), key, t),
			0);
	rm_event(t, key, FI_RMA | FI_REMOTE_READ, 90);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	if (!rm_has_atomics(t))
		return;
	KUNIT_ASSERT_EQ(test, fi_atomic(t->from.ep, t->out, 2, NULL,
					t->from.peer, kofi_mr_base(mr), key,
					FI_UINT32, FI_SUM, t), 0);
	rm_event(t, key, FI_ATOMIC | FI_REMOTE_WRITE, 8);
	KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr, &old), 0);
	rm_event(t, key, FI_ATOMIC | FI_REMOTE_READ, 8);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
}

/* Atomic operations wait for slots, in order, and are done once each. */
static void rm_events_flooded(struct kunit *test)
{
	struct rdm_pair *t = rm_events_alloc(test, RM_SLOTS, RDM_KEYS,
					     FI_RMA_EVENT);
	u64 *old = kunit_kcalloc(test, RM_FLOOD, sizeof(*old), GFP_KERNEL);
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	u64 key;
	int i;

	if (!t)
		return;
	if (!rm_has_atomics(t))
		kunit_skip(test, "no atomic operations");
	KUNIT_ASSERT_NOT_NULL(test, old);
	rdm_pair_enable(t);
	mr = rm_reg(t, 0, FI_RMA_EVENT);
	key = fi_mr_key(mr);
	memset(t->in, 0, sizeof(*old));
	for (i = 0; i < RM_FLOOD / 2; i++)
		KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr, &old[i]), 0);
	/* those that have had a slot are answered */
	for (i = 0; i < RM_SLOTS; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	for (i = 0; i < RM_FLOOD / 2; i++)
		rm_event(t, key, FI_ATOMIC | FI_REMOTE_READ, 8);
	for (i = RM_SLOTS; i < RM_FLOOD / 2; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	for (i = 0; i < RM_FLOOD / 2; i++)
		KUNIT_EXPECT_EQ(test, old[i], (u64)i);
	rm_empty(t, &t->to);

	/* what waits when its endpoint is closed ends, too */
	for (i = 0; i < RM_FLOOD / 2; i++)
		KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr, &old[i]), 0);
	for (i = 0; i < RM_SLOTS; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	rdm_close_end(test, &t->to);
	for (i = RM_SLOTS; i < RM_FLOOD / 2; i++)
		KUNIT_ASSERT_GE(test, rdm_comp(&t->from, &e), 0);
}

/* Is a message ordered behind writes, if the hints ask for that or for nothing? */
static bool rm_saw(struct kunit *test, u64 caps, u64 order)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	bool saw;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = caps;
	hints->domain_attr->mr_mode = RDM_KEYS;
	hints->tx_attr->msg_order = order;
	hints->rx_attr->msg_order = order;
	KUNIT_EXPECT_EQ(test, rdm_place_getinfo(test, hints, &info), 0);
	saw = info && info->tx_attr->msg_order & FI_ORDER_SAW;
	KUNIT_EXPECT_EQ(test, saw, info && info->rx_attr->msg_order & FI_ORDER_SAW);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return saw;
}

static void rm_order_info(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, rm_saw(test, FI_MSG | FI_RMA, 0));
	KUNIT_EXPECT_TRUE(test, rm_saw(test, FI_MSG | FI_RMA, FI_ORDER_SAW));
	if (rm_native(test))
		return;
	KUNIT_EXPECT_FALSE(test, rm_saw(test, FI_MSG | FI_RMA | FI_ATOMIC, 0));
	KUNIT_EXPECT_TRUE(test, rm_saw(test, FI_MSG | FI_RMA | FI_ATOMIC,
				       FI_ORDER_SAW));
}

/* A message is received when the bytes of all earlier writes are in memory. */
static void rm_behind_writes(struct kunit *test)
{
	static const size_t lens[] = { 8, SZ_16K + 1, RDM_LONG - 64 };
	struct rdm_pair *t = rdm_pair_alloc(test, RM_CAPS, RDM_KEYS);
	struct fid_mr *mr = rm_reg(t, 0, 0);
	struct fi_cq_tagged_entry e;
	size_t len;
	int i;

	KUNIT_ASSERT_TRUE(test, t->info->tx_attr->msg_order & FI_ORDER_SAW);
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	rdm_pair_enable(t);
	for (i = 0; i < 50; i++) {
		len = lens[i % ARRAY_SIZE(lens)];
		memset(t->in, 0, RDM_LONG);
		KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in + RDM_LONG - 8, 8,
					      NULL, FI_ADDR_UNSPEC, t), 0);
		KUNIT_ASSERT_EQ(test, fi_write(t->from.ep, t->out, len, NULL,
					       t->from.peer, kofi_mr_base(mr),
					       fi_mr_key(mr), t->out), 0);
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, 8, NULL,
					      t->from.peer, t), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out, len);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	}
}

/* Atomic operations count as writes, also if they wait for slots at the peer. */
static void rm_behind_atomics(struct kunit *test)
{
	struct rdm_pair *t = rdm_pair_alloc(test, RM_CAPS | (rm_native(test) ? 0 :
							     FI_ATOMIC), RDM_KEYS);
	struct fi_cq_tagged_entry e;
	int i, n = 3 * RM_SLOTS;
	struct fid_mr *mr;
	u64 *old;

	if (!rm_has_atomics(t) || !rm_told(t))
		kunit_skip(test, "no atomic operations, or no reports of them");
	old = kunit_kcalloc(test, n, sizeof(*old), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, old);
	t->info->tx_attr->msg_order |= FI_ORDER_SAW;
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, RM_SLOTS, NULL);
	rdm_pair_enable(t);
	mr = rm_reg(t, 0, FI_RMA_EVENT);
	KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in + 64, 8, NULL,
				      FI_ADDR_UNSPEC, t), 0);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr, &old[i]), 0);
	KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, 8, NULL, t->from.peer,
				      t), 0);
	for (i = 0; i < n; i++)
		rm_event(t, fi_mr_key(mr), FI_ATOMIC | FI_REMOTE_READ, 8);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG);
	for (i = 0; i <= n; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
}

/* A region for one access, by a key that the consumer has chosen */
static void rm_once(struct kunit *test)
{
	const u64 key = 0x1234567, flags = FI_MR_SINGLE_USE | FI_RMA_EVENT;
	int keys = strncmp(test->param_value, "sock", 4) ? RDM_KEYS : 0;
	struct rdm_pair *t = rm_events_alloc(test, 0, keys, flags);
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	u64 old;
	int i;

	if (!t)
		return;
	rdm_pair_enable(t);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, t->in, RDM_LONG,
						RM_RIGHTS, 0, key, flags, &mr,
						t->in), 0);
		KUNIT_EXPECT_EQ(test, fi_mr_key(mr), key);
		if (rm_has_atomics(t)) {
			KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr, &old), 0);
			KUNIT_EXPECT_EQ(test, rdm_comp(&t->from, &e),
					FI_EKEYREJECTED);
		}
		KUNIT_ASSERT_EQ(test, fi_write(t->from.ep, t->out, 64, NULL,
					       t->from.peer, 0, key, t), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
		rm_event(t, key, FI_RMA | FI_REMOTE_WRITE, 64);
		/* it has ended; who tries again loses the connection */
		KUNIT_ASSERT_EQ(test, fi_read(t->from.ep, t->out, 8, NULL,
					      t->from.peer, 0, key, t), 0);
		KUNIT_EXPECT_GT(test, rdm_comp(&t->from, &e), 0);
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	rm_empty(t, &t->to);
}

/* ------------------------------------------------------------ pools of regions */

static int rm_set_pool(struct fid_ep *ep, size_t size)
{
	return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL, &size,
			 sizeof(size));
}

static int rm_map(struct rdm_pair *t, struct fid_mr *mr, u64 flags)
{
	const struct kvec kv = { t->in, 4096 };
	const struct fi_msg vec = {
		.msg_iov = &kv, .iov_count = 1, .context = t->in,
	};

	return kofi_mr_map(mr, &vec, RM_RIGHTS, flags);
}

/* Write to memory of the other end; returns the error of the completion. */
static int rm_pool_write(struct rdm_pair *t, struct rdm_end *from, u64 addr, u64 key)
{
	struct fi_cq_tagged_entry e;

	KUNIT_ASSERT_EQ(t->test, rm_write_delivered(t, from, 4096, addr, key), 0);
	return rdm_comp(from, &e);
}

/* An end with a pool, or NULL without one over a device */
static struct rdm_pair *rm_pool_alloc(struct kunit *test)
{
	struct rdm_pair *t = rm_alloc(test, 0);

	KUNIT_ASSERT_EQ(test, rm_set_pool(t->to.ep, 2), 0);
	if (rm_told(t)) {
		rdm_pair_enable(t);
		return t;
	}
	KUNIT_EXPECT_EQ(test, fi_enable(t->to.ep), -EOPNOTSUPP);
	return NULL;
}

/* Regions are mapped, accessed and unmapped in turn. No earlier key is valid. */
static void rm_pool(struct kunit *test)
{
	struct rdm_pair *t = rm_pool_alloc(test);
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr[2];
	u64 key, addr, old;
	int i;

	if (!t)
		return;
	for (i = 0; i < 20; i++) {
		mr[0] = kofi_mr_get(t->to.ep);
		KUNIT_ASSERT_NOT_NULL(test, mr[0]);
		mr[1] = kofi_mr_get(t->to.ep);
		KUNIT_ASSERT_NOT_NULL(test, mr[1]);
		KUNIT_EXPECT_NULL(test, kofi_mr_get(t->to.ep));
		memset(t->in, 0, 4096);
		KUNIT_ASSERT_EQ(test, rm_map(t, mr[0], 0), 0);
		key = fi_mr_key(mr[0]);
		addr = kofi_mr_base(mr[0]);
		KUNIT_ASSERT_EQ(test, rm_pool_write(t, &t->from, addr, key), 0);
		if (rm_has_atomics(t)) {
			KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr[0], &old), 0);
			KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
			KUNIT_EXPECT_EQ(test, old, *(u64 *)t->out);
			--*(u64 *)t->in;
		}
		KUNIT_ASSERT_EQ(test, kofi_mr_unmap(mr[0], (void *)t->out), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t->out);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out, 4096);

		/* the first access unmaps it */
		KUNIT_ASSERT_EQ(test, rm_map(t, mr[1], FI_MR_SINGLE_USE), 0);
		KUNIT_ASSERT_EQ(test, rm_pool_write(t, &t->from,
						    kofi_mr_base(mr[1]),
						    fi_mr_key(mr[1])), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)t->in);
		KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_REMOTE_WRITE);
		kofi_mr_put(mr[1]);
		kofi_mr_put(mr[0]);
	}
	mr[0] = kofi_mr_get(t->to.ep);
	KUNIT_ASSERT_NOT_NULL(test, mr[0]);
	KUNIT_ASSERT_EQ(test, rm_map(t, mr[0], 0), 0);
	memset(t->in, 0, 4096);
	/* the refusal closes the connection, and the next access makes another */
	KUNIT_EXPECT_GT(test, rm_pool_write(t, &t->from, addr, key), 0);
	KUNIT_EXPECT_EQ(test, *(u64 *)t->in, 0);
	KUNIT_ASSERT_EQ(test, rm_pool_write(t, &t->from, kofi_mr_base(mr[0]),
					    fi_mr_key(mr[0])), 0);
	KUNIT_EXPECT_MEMEQ(test, t->in, t->out, 4096);
	/* closing the endpoint unmaps it */
}

/* Only peers of the endpoint may use its regions, not peers of others in the domain. */
static void rm_pool_owner(struct kunit *test)
{
	struct rdm_pair *t = rm_pool_alloc(test);
	struct fid_mr *mr;

	if (!t)
		return;
	mr = kofi_mr_get(t->to.ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	memset(t->in, 0, 4096);
	KUNIT_ASSERT_EQ(test, rm_map(t, mr, 0), 0);
	KUNIT_EXPECT_GT(test, rm_pool_write(t, &t->to, kofi_mr_base(mr), fi_mr_key(mr)),
			0);
	KUNIT_EXPECT_EQ(test, *(u64 *)t->in, 0);
}

/* ----------------------------------------------------------------- counters */

/* Accesses are counted, and a message that its receiver reads is none. */
static void rm_counters(struct kunit *test)
{
	static const u64 kinds[] = { FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct rdm_pair *t = rm_alloc(test, 0);
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr[ARRAY_SIZE(kinds)];
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	u64 old, reads = 5, writes = 5;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_ASSERT_EQ(test, fi_cntr_open(t->domain, &attr, &cntr[i],
						   NULL), 0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(t->to.ep, &cntr[i]->fid,
						 kinds[i]),
				rm_told(t) ? 0 : -EOPNOTSUPP);
	}
	rdm_pair_enable(t);
	mr = rm_reg(t, 0, 0);
	KUNIT_ASSERT_EQ(test, fi_recv(t->from.ep, t->in, RDM_LONG, NULL,
				      FI_ADDR_UNSPEC, t), 0);
	KUNIT_ASSERT_EQ(test, fi_send(t->to.ep, t->out, RDM_LONG, NULL,
				      t->to.peer, t), 0);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, fi_write(t->from.ep, t->out, 8, NULL,
					       t->from.peer, kofi_mr_base(mr),
					       fi_mr_key(mr), t), 0);
		KUNIT_ASSERT_EQ(test, fi_read(t->from.ep, t->out, 8, NULL,
					      t->from.peer, kofi_mr_base(mr),
					      fi_mr_key(mr), t), 0);
	}
	for (i = 0; i < 10; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	if (rm_has_atomics(t)) {
		reads++;
		KUNIT_ASSERT_EQ(test, rm_fetch_add(t, mr, &old), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	}
	if (rm_told(t)) {
		KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr[0], reads, RDM_TIMEOUT),
				0);
		KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr[1], writes,
						   RDM_TIMEOUT), 0);
	} else {
		reads = 0;
		writes = 0;
	}
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[0]), reads);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[1]), writes);
	rdm_close_end(test, &t->to);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&cntr[i]->fid), 0);
}

static struct kunit_case rm_cases[] = {
	KUNIT_CASE_PARAM(rm_data_sizes, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_data_info, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_flooded, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_flooded_closed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_flooded_lost, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_delivered, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_calls, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_events, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_events_flooded, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_order_info, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_behind_writes, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_behind_atomics, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_once, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_pool, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_pool_owner, rdm_place_gen_params),
	KUNIT_CASE_PARAM(rm_counters, rdm_place_gen_params),
	{}
};

static struct kunit_suite rm_suite = {
	.name = "rdm_remote",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.test_cases = rm_cases,
};

kunit_test_suite(rm_suite);
