// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A provider without a network, see fake.h.
 *
 * An endpoint's operations are on its pending list until one context takes them
 * XX
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched/task.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <net/net_namespace.h>
#include <linux/kofi/backport.h>

#include "fake.h"

static int fake_error;

void fake_fail_next(int err)
{
	WRITE_ONCE(fake_error, err);
}

static int fake_take_error(void)
{
	return xchg(&fake_error, 0);
}

struct fake_ep *fake_of(struct fid_ep *ep)
{
	return container_of(ep, struct fake_ep, base.ep);
}

/* ------------------------------------------------------------- completing */

/* The operation is on its list, and is off it with the lock that has kept it. */
static void fake_report(struct fake_ep *ep, int dir, struct fake_op *op,
			int err)
{
	struct kofi_wc wc = {
		.op_context = op->context, .err = err, .prov_errno = -err,
		.flags = FI_MSG | (dir == FAKE_TX ? FI_SEND : FI_RECV),
		.len = err ? 0 : op->len, .src = 7,
	};
	u64 flags = op->flags;

	lockdep_assert_held(&ep->lock);

	if (ep->report)
		ep->report(op->context, err);
	/* As every provider must: first give back, then report. */
	list_move(&op->node, &ep->free[dir]);
	if (dir == FAKE_TX)
		kofi_ep_tx_complete(&ep->base, &wc, flags);
	else
		kofi_ep_rx_complete(&ep->base, &ep->base, &wc, flags);
}

/* Complete the oldest operation; false if there is none. */
bool fake_complete(struct fid_ep *ep, int dir, int err)
{
	struct fake_ep *fake = fake_of(ep);
	struct fake_op *op;
	unsigned long irq;

	spin_lock_irqsave(&fake->lock, irq);
	op = list_first_entry_or_null(&fake->pending[dir], struct fake_op,
				      node);
	if (op)
		fake_report(fake, dir, op, err);
	spin_unlock_irqrestore(&fake->lock, irq);
	return op;
}

/* ----------------------------------------------------------------- engine */

static u32 fake_random(struct fake_ep *ep)
{
	unsigned long irq;
	u32 value;

	spin_lock_irqsave(&ep->lock, irq);
	value = prandom_u32_state(&ep->rnd);
	spin_unlock_irqrestore(&ep->lock, irq);
	return value;
}

/* Pick what completes next; nothing once drain has begun. */
static void fake_kick(struct fake_ep *ep)
{
	unsigned long irq;
	ktime_t delay;
	u32 random;

	spin_lock_irqsave(&ep->lock, irq);
	random = prandom_u32_state(&ep->rnd);
	delay = ns_to_ktime(random >> 16);
	if (ep->closed)
		goto unlock;
	switch (random % 3) {
	case 0:
		hrtimer_start(&ep->soft, delay, HRTIMER_MODE_REL_SOFT);
		break;
	case 1:
		hrtimer_start(&ep->hard, delay, HRTIMER_MODE_REL_HARD);
		break;
	default:
		queue_work(system_unbound_wq, &ep->work);
	}
unlock:
	spin_unlock_irqrestore(&ep->lock, irq);
}

/* Complete some operations, and have it done again if there may be more. */
static void fake_run(struct fake_ep *ep)
{
	u32 random = fake_random(ep);
	int n = 1 + random % 8, dir = (random >> 8) & 1, err;
	bool more = false;

	while (n--) {
		dir ^= 1;
		random = fake_random(ep);
		err = random % 10 ? 0 : 1 + random / 10 % 100;
		more = fake_complete(&ep->base.ep, dir, err) ||
		       fake_complete(&ep->base.ep, dir ^ 1, err);
		if (!more)
			break;
	}
	if (more)
		fake_kick(ep);
}

static enum hrtimer_restart fake_soft(struct hrtimer *timer)
{
	fake_run(container_of(timer, struct fake_ep, soft));
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart fake_hard(struct hrtimer *timer)
{
	fake_run(container_of(timer, struct fake_ep, hard));
	return HRTIMER_NORESTART;
}

static void fake_work(struct work_struct *work)
{
	fake_run(container_of(work, struct fake_ep, work));
}

/* Let an endpoint complete by itself. */
void fake_engine(struct fid_ep *ep, u64 seed)
{
	prandom_seed_state(&fake_of(ep)->rnd, seed);
	fake_of(ep)->engine = true;
}

/* --------------------------------------------------------------- posting */

static struct fake_op *fake_get(struct fake_ep *ep, int dir)
{
	struct fake_op *op;

	op = list_first_entry_or_null(&ep->free[dir], struct fake_op, node);
	if (op)
		list_del(&op->node);
	return op;
}

static ssize_t fake_queue(struct fake_ep *ep, const struct fi_msg *msg,
			  u64 flags, int dir)
{
	struct fake_op *op;
	unsigned long irq;
	ssize_t ret = 0;

	spin_lock_irqsave(&ep->lock, irq);
	if (ep->closed) {
		ret = -ESHUTDOWN;
		goto unlock;
	}
	op = fake_get(ep, dir);
	if (!op) {
		ret = -EAGAIN;
		goto unlock;
	}
	op->context = msg->context;
	op->flags = flags;
	op->len = msg->iov_count ? msg->msg_iov->iov_len : 0;
	list_add_tail(&op->node, &ep->pending[dir]);
unlock:
	spin_unlock_irqrestore(&ep->lock, irq);
	return ret;
}

static ssize_t fake_post(struct fake_ep *ep, const struct fi_msg *msg,
			 u64 flags, int dir)
{
	ssize_t ret;

	ret = dir == FAKE_TX ? kofi_ep_tx_reserve(&ep->base, msg->context) :
			       kofi_ep_rx_reserve(&ep->base);
	if (ret)
		return ret;
	ret = fake_queue(ep, msg, flags, dir);
	if (ret == -EAGAIN)
		ret = kofi_ep_retry(&ep->base, fake_queue(ep, msg, flags, dir));
	if (ret)
		return dir == FAKE_TX ? kofi_ep_tx_refuse(&ep->base, ret) :
					kofi_ep_rx_refuse(&ep->base, ret);
	if (ep->asks && kofi_ep_defer(&ep->base))
		ep->deferred++;
	if (ep->engine)
		fake_kick(ep);
	return 0;
}

static ssize_t fake_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	struct fake_ep *fake = fake_of(ep);
	int ret = kofi_ep_tx_state(&fake->base);

	return ret ?: fake_post(fake, msg, flags, FAKE_TX);
}

static ssize_t fake_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	struct fake_ep *fake = fake_of(ep);
	int ret = kofi_ep_rx_state(&fake->base);

	return ret ?: fake_post(fake, msg, flags, FAKE_RX);
}

static ssize_t fake_cancel(struct fid_ep *ep, void *context)
{
	struct fake_ep *fake = fake_of(ep);
	ssize_t ret = -ENOENT;
	struct fake_op *op;
	unsigned long irq;

	spin_lock_irqsave(&fake->lock, irq);
	list_for_each_entry(op, &fake->pending[FAKE_RX], node) {
		if (op->context == context) {
			fake_report(fake, FAKE_RX, op, ECANCELED);
			ret = 0;
			break;
		}
	}
	spin_unlock_irqrestore(&fake->lock, irq);
	return ret;
}

/* ------------------------------------------------------ atomic operations */

/* It is remembered, and completes as a message would. */
static ssize_t fake_atomic_post(struct fid_ep *ep,
				const struct fi_msg_atomic *msg, u64 call,
				u64 flags)
{
	struct fake_atomic *atomic = &fake_of(ep)->atomic;
	const struct fi_msg as_msg = { .context = msg->context };

	if (msg->iov_count > FAKE_PIECES || msg->rma_iov_count > FAKE_PIECES)
		return -EINVAL;
	atomic->call = call;
	atomic->msg = *msg;
	atomic->flags = flags;
	memcpy(atomic->iov, msg->msg_iov, msg->iov_count * sizeof(*msg->msg_iov));
	memcpy(atomic->rma, msg->rma_iov,
	       msg->rma_iov_count * sizeof(*msg->rma_iov));
	return fake_post(fake_of(ep), &as_msg, flags, FAKE_TX);
}

static ssize_t fake_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			     u64 flags)
{
	return fake_atomic_post(ep, msg, 0, flags);
}

static void fake_atomic_result(struct fake_atomic *atomic,
			       const struct fi_ioc *resultv, size_t count)
{
	atomic->result_count = count;
	memcpy(atomic->result, resultv, count * sizeof(*resultv));
}

static ssize_t fake_readwritemsg(struct fid_ep *ep,
				 const struct fi_msg_atomic *msg,
				 struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, u64 flags)
{
	if (result_count > FAKE_PIECES)
		return -EINVAL;
	fake_atomic_result(&fake_of(ep)->atomic, resultv, result_count);
	return fake_atomic_post(ep, msg, FI_FETCH_ATOMIC, flags);
}

static ssize_t fake_compwritemsg(struct fid_ep *ep,
				 const struct fi_msg_atomic *msg,
				 const struct fi_ioc *comparev,
				 void **compare_desc, size_t compare_count,
				 struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, u64 flags)
{
	struct fake_atomic *atomic = &fake_of(ep)->atomic;

	if (result_count > FAKE_PIECES || compare_count > FAKE_PIECES)
		return -EINVAL;
	fake_atomic_result(atomic, resultv, result_count);
	atomic->compare_count = compare_count;
	memcpy(atomic->compare, comparev, compare_count * sizeof(*comparev));
	return fake_atomic_post(ep, msg, FI_COMPARE_ATOMIC, flags);
}

/* 64 bits: write one, add two, compare and swap three. */
static int fake_query_atomic(struct fid_domain *domain,
			     enum fi_datatype datatype, enum fi_op op,
			     struct fi_atomic_attr *attr, u64 flags)
{
	static const struct {
		enum fi_op	op;
		u64		flags;
	} known[] = {
		{ FI_ATOMIC_WRITE, 0 },
		{ FI_SUM, FI_FETCH_ATOMIC },
		{ FI_CSWAP, FI_COMPARE_ATOMIC },
	};
	int i;

	if (kofi_datatype_size(datatype) != sizeof(u64))
		return -EOPNOTSUPP;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (op == known[i].op && flags == known[i].flags) {
			attr->count = i + 1;
			return 0;
		}
	}
	return -EOPNOTSUPP;
}

/* ------------------------------------------------------------- connecting */

static void fake_connect_work(struct work_struct *work)
{
	struct fake_ep *ep = container_of(work, struct fake_ep, connect);

	if (ep->param_len >= 2 && !memcmp(ep->param, "no", 2))
		kofi_ep_connect_failed(&ep->base, ECONNREFUSED, 5, ep->param,
				       ep->param_len);
	else
		kofi_ep_connected(&ep->base, ep->param, ep->param_len);
}

static int fake_connect(struct fid_ep *ep, const void *addr, const void *param,
			size_t len)
{
	struct fake_ep *fake = fake_of(ep);

	if (len)
		memcpy(fake->param, param, len);
	fake->param_len = len;
	queue_work(system_unbound_wq, &fake->connect);
	return 0;
}

static int fake_shutdown(struct fid_ep *ep, u64 flags)
{
	kofi_ep_disconnected(&fake_of(ep)->base, ESHUTDOWN);
	return 0;
}

/* -------------------------------------------------------------- endpoints */

static int fake_ep_bind(struct fi_fid *fid, struct fi_fid *bfid, u64 flags)
{
	return fake_take_error();
}

static int fake_ep_enable(struct fid_ep *ep)
{
	return fake_take_error();
}

static void fake_ep_drain(struct fid_ep *ep)
{
	struct fake_ep *fake = fake_of(ep);
	int dir;

	fake->drains++;
	spin_lock_irq(&fake->lock);
	fake->closed = true;
	spin_unlock_irq(&fake->lock);
	cancel_work_sync(&fake->connect);
	/* What has seen it open may still be running, but starts nothing. */
	hrtimer_cancel(&fake->soft);
	hrtimer_cancel(&fake->hard);
	cancel_work_sync(&fake->work);
	for (dir = FAKE_TX; dir <= FAKE_RX; dir++)
		while (fake_complete(ep, dir, ECANCELED))
			;
}

static int fake_ep_close(struct fi_fid *fid)
{
	struct fake_ep *ep = container_of(fid, struct fake_ep, base.ep.fid);

	kofi_ep_exit(&ep->base);
	kfree(ep->ops);
	kfree(ep);
	return 0;
}

static int fake_getopt(fid_t fid, int level, int optname, void *optval,
		       size_t *optlen)
{
	if (optname != FI_OPT_CM_DATA_SIZE)
		return -ENOPROTOOPT;
	if (*optlen < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)optval = KOFI_CM_DATA_MAX;
	*optlen = sizeof(size_t);
	return 0;
}

static const struct fi_ops fake_ep_fid_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= fake_ep_close,
	.bind	= fake_ep_bind,
};

static const struct fi_ops_ep fake_ep_ep_ops = {
	.size	= sizeof(struct fi_ops_ep),
	.getopt	= fake_getopt,
};

static const struct fi_ops_cm fake_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.connect	= fake_connect,
	.shutdown	= fake_shutdown,
};

static const struct fi_ops_msg fake_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= fake_sendmsg,
	.recvmsg	= fake_recvmsg,
	.cancel		= fake_cancel,
};

static const struct fi_ops_atomic fake_atomic_ops = {
	.size		= sizeof(struct fi_ops_atomic),
	.writemsg	= fake_writemsg,
	.readwritemsg	= fake_readwritemsg,
	.compwritemsg	= fake_compwritemsg,
};

static void fake_send_deferred(struct fid_ep *ep)
{
	fake_of(ep)->sends++;
}

static void fake_peer_removed(struct fid_ep *ep, const struct sockaddr *addr)
{
	struct fake_ep *fake = fake_of(ep);

	fake->removed++;
	memcpy(&fake->peer, addr, kofi_ip_len(addr));
}

static const struct kofi_ep_ops fake_ep_ops = {
	.fid	= &fake_ep_fid_ops,
	.ep	= &fake_ep_ep_ops,
	.cm	= &fake_cm_ops,
	.msg	= &fake_msg_ops,
	.atomic	= &fake_atomic_ops,
	.enable	= fake_ep_enable,
	.drain	= fake_ep_drain,
	.send_deferred	= fake_send_deferred,
	.peer_removed	= fake_peer_removed,
};

static int fake_endpoint(struct fid_domain *domain, struct fi_info *info,
			 struct fid_ep **ep, void *context)
{
	size_t size[2] = {
		info->tx_attr->size ?: FAKE_SIZE,
		info->rx_attr->size ?: FAKE_SIZE,
	};
	struct fake_ep *fake;
	int dir, ret = -ENOMEM;
	size_t i, n = 0;

	fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	if (!fake)
		return -ENOMEM;
	fake->ops = kcalloc(size_add(size[0], size[1]), sizeof(*fake->ops),
			    GFP_KERNEL);
	if (!fake->ops)
		goto free;
	spin_lock_init(&fake->lock);
	for (dir = FAKE_TX; dir <= FAKE_RX; dir++) {
		INIT_LIST_HEAD(&fake->free[dir]);
		INIT_LIST_HEAD(&fake->pending[dir]);
		for (i = 0; i < size[dir]; i++)
			list_add(&fake->ops[n++].node, &fake->free[dir]);
	}
	hrtimer_setup(&fake->soft, fake_soft, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	hrtimer_setup(&fake->hard, fake_hard, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	INIT_WORK(&fake->work, fake_work);
	INIT_WORK(&fake->connect, fake_connect_work);

	ret = kofi_ep_init(&fake->base, domain, info, &fake_ep_ops, context);
	if (ret)
		goto free;
	*ep = &fake->base.ep;
	return 0;

free:
	kfree(fake->ops);
	kfree(fake);
	return ret;
}

/* --------------------------------------------------- domain, fabric, provider */

static const struct fi_ops_domain fake_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= fake_endpoint,
	.mr_regattr	= kofi_mr_regattr,
	.srx_context	= kofi_srx_open,
	.query_atomic	= fake_query_atomic,
};

static int fake_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **fid, void *context)
{
	struct kofi_domain *domain;
	int ret;

	domain = kzalloc(sizeof(*domain), GFP_KERNEL);
	if (!domain)
		return -ENOMEM;
	ret = kofi_domain_init(domain, fabric, info, &fake_domain_ops, NULL,
			       context);
	if (ret) {
		kfree(domain);
		return ret;
	}
	*fid = &domain->domain;
	return 0;
}

static const struct fi_ops_fabric fake_fabric_ops = {
	.size	= sizeof(struct fi_ops_fabric),
	.domain	= fake_domain,
};

/* Found by name only, so that no other discovery sees it. */
static int fake_getinfo(u32 version, const char *node, const char *service,
			u64 flags, const struct fi_info *hints,
			struct fi_info **info)
{
	return -ENODATA;
}

static struct kofi_provider fake_provider = {
	.name		= "model",
	.version	= FI_VERSION(1, 0),
	.getinfo	= fake_getinfo,
	.fabric_ops	= &fake_fabric_ops,
	.owner		= THIS_MODULE,
	.priority	= 1000,
};

int fake_suite_init(struct kunit_suite *suite)
{
	return kofi_provider_register(FI_VERSION(FI_MAJOR_VERSION,
						 FI_MINOR_VERSION),
				      &fake_provider);
}

void fake_suite_exit(struct kunit_suite *suite)
{
	kofi_provider_deregister(&fake_provider);
}

/* ------------------------------------------------------------ for the tests */

struct fake_world *fake_open_mr(struct kunit *test, int mr_mode)
{
	struct fake_world *world;
	struct fi_info *info;

	world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world);
	info = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, info);
	world->info = info;
	info->caps = FI_MSG | FI_SEND | FI_RECV;
	info->ep_attr->type = FI_EP_MSG;
	info->ep_attr->max_msg_size = 4096;
	info->tx_attr->inject_size = 64;
	info->fabric_attr->prov_name = kstrdup("model", GFP_KERNEL);
	info->fabric_attr->name = kstrdup("none", GFP_KERNEL);
	info->domain_attr->name = kstrdup("none", GFP_KERNEL);
	info->domain_attr->mr_mode = mr_mode;
	KUNIT_ASSERT_EQ(test, 0,
			fi_fabric(info->fabric_attr, &world->fabric, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_domain(world->fabric, info, &world->domain,
					   NULL));
	return world;
}

struct fake_world *fake_open(struct kunit *test)
{
	return fake_open_mr(test, 0);
}

void fake_close(struct kunit *test, struct fake_world *world)
{
	KUNIT_EXPECT_EQ(test, 0, fi_close(&world->domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&world->fabric->fid));
	fi_freeinfo(world->info);
}

struct fake_conn *fake_conn_open(struct kunit *test)
{
	struct fake_conn *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, NULL, &t->cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->cq->fid, FI_TRANSMIT | FI_RECV));
	return t;
}

void fake_conn_close(struct kunit *test, struct fake_conn *t)
{
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

/* Begin an access whose next step comes later. */
int fake_peer_begin(struct fid_ep *ep, struct kofi_target *t, u64 key, u64 addr,
		    u64 len, u64 access)
{
	int ret = kofi_target_init(t, &fake_of(ep)->base, key, addr, len,
				   access);

	kofi_target_drop(t);
	return ret;
}

/* One step of a write. The packet begins with bytes that are not its own. */
int fake_peer_place(struct fid_ep *ep, struct kofi_target *t, const void *buf,
		    size_t len)
{
	const unsigned int skew = 7;
	struct kofi_skb_part from;
	struct sk_buff *skb;
	int ret;

	skb = alloc_skb(skew + len, GFP_ATOMIC);
	if (!skb)
		return -ENOMEM;
	memset(skb_put(skb, skew), 0xee, skew);
	skb_put_data(skb, buf, len);
	kofi_skb_part_init(&from, skb, skew, len);
	ret = kofi_target_copy_from_skb(t, &fake_of(ep)->base, &from, len);
	kofi_target_drop(t);
	kfree_skb(skb);
	return ret;
}

int fake_peer_write(struct fid_ep *ep, u64 key, u64 addr, const void *buf,
		    size_t len, size_t step)
{
	struct kofi_ep *base = &fake_of(ep)->base;
	struct kofi_target t;
	size_t n;
	int ret;

	ret = kofi_target_init(&t, base, key, addr, len, FI_REMOTE_WRITE);
	for (; !ret && t.left; buf += n) {
		n = min_t(u64, t.left, step);
		ret = fake_peer_place(ep, &t, buf, n);
	}
	if (!ret)
		kofi_target_done(&t, base, FI_REMOTE_WRITE);
	return ret;
}

int fake_peer_read(struct fid_ep *ep, u64 key, u64 addr, void *buf, size_t len,
		   size_t step)
{
	struct kofi_ep *base = &fake_of(ep)->base;
	struct kofi_target t;
	struct iov_iter iter;
	size_t n;
	int ret;

	ret = kofi_target_init(&t, base, key, addr, len, FI_REMOTE_READ);
	for (; !ret && t.left; buf += n) {
		n = min_t(u64, t.left, step);
		if (!kofi_target_get(&t, base, &iter))
			return -EKEYREJECTED;
		if (iov_iter_count(&iter) != t.left ||
		    copy_from_iter(buf, n, &iter) != n)
			ret = -EFAULT;
		kofi_target_drop(&t);
		kofi_target_used(&t, n);
	}
	if (!ret)
		kofi_target_done(&t, base, FI_REMOTE_READ);
	return ret;
}

static struct task_struct *fake_starter;	/* of the last fake_thread() */

static struct task_struct *fake_create(struct kunit *test,
				       int (*fn)(void *arg), void *arg)
{
	struct task_struct *task = kthread_create(fn, arg, "kofi_test");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	return task;
}

/* A task that may end by itself before fake_join(). */
struct task_struct *fake_thread(struct kunit *test, int (*fn)(void *arg),
				void *arg)
{
	struct task_struct *task = fake_create(test, fn, arg);

	fake_starter = current;
	wake_up_process(task);
	return task;
}

/* The same on the n-th CPU that is online; those beyond the last begin again. */
struct task_struct *fake_thread_on(struct kunit *test, unsigned int n,
				   int (*fn)(void *arg), void *arg)
{
	struct task_struct *task = fake_create(test, fn, arg);

	kthread_bind(task, cpumask_nth(n % num_online_cpus(),
				       cpu_online_mask));
	wake_up_process(task);
	return task;
}

#define FAKE_GATE_SPINS	100

/*
 * Wait, without sleep, until all tasks of the gate have called this as often. On
 * one CPU they cannot go on at the same moment, and nobody waits.
 */
void fake_gate_pass(struct fake_gate *gate)
{
	u32 arrived = atomic_inc_return(&gate->arrived);
	u32 all = roundup(arrived, gate->tasks);
	u32 spins = 0;

	cond_resched();
	if (num_online_cpus() == 1)
		return;
	while ((u32)atomic_read_acquire(&gate->arrived) < all) {
		cpu_relax();
		if (++spins % FAKE_GATE_SPINS == 0)
			cond_resched();
	}
}

/* Spend about as many cycles. */
void fake_spin(int cycles)
{
	while (cycles-- > 0)
		barrier();
}

/* Wait until a task sleeps in a call that can be killed: it does nowhere else. */
void fake_asleep(struct task_struct *task)
{
	while (!(READ_ONCE(task->__state) & TASK_WAKEKILL))
		schedule_timeout_idle(1);
}

/* For a thread: until the one that has started it does. */
void fake_starter_asleep(void)
{
	fake_asleep(fake_starter);
}

/* Wait until it is out of this module. */
void fake_join(struct task_struct *task)
{
	kthread_stop(task);
	put_task_struct(task);
}

/* Enable an endpoint and make it connected, without an event. */
void fake_connected(struct kunit *test, struct fid_ep *ep)
{
	struct fake_ep *fake = fake_of(ep);

	KUNIT_ASSERT_EQ(test, 0, fi_enable(ep));
	KUNIT_ASSERT_EQ(test, (int)KOFI_EP_ENABLED,
			cmpxchg(&fake->base.state, KOFI_EP_ENABLED,
				KOFI_EP_CONNECTED));
}
