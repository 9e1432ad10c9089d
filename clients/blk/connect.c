// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of a disk, one for each queue, and recovery of its requests
 * after their loss.
 *
 * One work item does all of it, so nothing here needs a lock. Any context that notices
 * the loss of a connection, or a request without an answer in time, calls
 * kblk_lost(). The work then stops the queues, drains and closes all
 * endpoints, and returns the unanswered requests to the block layer's
 * list: they have not completed, and after the drain no completion can come. It tries
 * to connect again, with growing delays. After that the requests are sent
 * again, in any order, as the block layer guarantees none. If connecting takes longer than
 * the time-out, waiting and new requests fail, while the attempts continue. A request
 * that is repeatedly not answered fails alone, however well the target
 * answers others.
 *
 * A repeated write must not meet its first copy: the target may still execute the command
 * of the old connection. Each attempt has a number, and the
 * target accepts one when all commands of earlier attempts have completed.
 * Numbers grow over all mappings, so a volume that is mapped again waits, too.
 *
 * The work runs while memory is written back through the disk, so it allocates with
 * GFP_NOIO only, on a work queue with a rescuer.
 */
#include <linux/math64.h>
#include <linux/sched/mm.h>
#include <linux/timekeeping.h>

#include "blk.h"

#define KBLK_CONNECT_MS	10000	/* an attempt at most */
#define KBLK_BACKOFF	8	/* most seconds between two attempts */
#define KBLK_TICK	(NSEC_PER_SEC / 16)	/* unit of the clock that numbers attempts */

struct workqueue_struct *kblk_wq;

/* ----------------------------------------------------------------- connecting */

/*
 * Numbers grow, also over a reload of the module and a reboot: they come from the
 * clock, which runs faster than a disk can try to connect. They wrap in eight years,
 * and are compared as sequence numbers.
 */
static u32 kblk_attempt(void)
{
	static DEFINE_SPINLOCK(lock);
	static u32 last;
	u32 now = div_u64(ktime_get_real_ns(), KBLK_TICK);
	u32 ret;

	spin_lock(&lock);
	/* strictly growing, also if the clock is set back */
	if (!last || (s32)(now - last) > 0)
		last = now;
	else
		last++;
	ret = last;
	spin_unlock(&lock);
	return ret;
}

/* Time when requests begin to fail, in jiffies */
static unsigned long kblk_end(const struct kblk_disk *d)
{
	return d->since + d->opt.path_timeout * HZ;
}

/* Time when requests with another path begin to fail, in jiffies */
static unsigned long kblk_fast(const struct kblk_disk *d)
{
	return d->since + d->opt.fast_fail * HZ;
}

/**
 * kblk_late - test whether connecting has taken too long
 * @d: not connected
 */
bool kblk_late(const struct kblk_disk *d)
{
	return READ_ONCE(d->removing) || time_after_eq(jiffies, kblk_end(d));
}

/**
 * kblk_left_ms - time left for an attempt to connect
 * @d: not connected
 *
 * Return: milliseconds.
 */
unsigned int kblk_left_ms(const struct kblk_disk *d)
{
	long left = d->deadline - jiffies;

	return left > 0 ? jiffies_to_msecs(left) : 0;
}

/* A CPU that submits requests to the queue, or -1 if none is online */
static int kblk_queue_cpu(const struct kblk_queue *q)
{
	const struct blk_mq_queue_map *map = q->disk->set.map;
	int cpu;

	for_each_online_cpu(cpu)
		if (map[HCTX_TYPE_DEFAULT].mq_map[cpu] == q->nr)
			return cpu;
	return -1;
}

static int kblk_queue_options(struct kblk_queue *q)
{
	/* a region for each tag, and one for notes */
	size_t regions = KBLK_TAGS + 1, segs = kblk_segs(q->disk);
	unsigned int ms = max(kblk_left_ms(q->disk), 1u);
	int err;

	kblk_ep_options(q->ep);
	/* the provider's own time-out serves as well */
	fi_set_val(&q->ep->fid, KOFI_VAL_CONNECT_TIMEOUT, &ms);
	err = fi_setopt(&q->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
			&regions, sizeof(regions));
	if (err)
		return err;
	return fi_setopt(&q->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_SEGS, &segs,
			 sizeof(segs));
}

static int kblk_queue_open(struct kblk_queue *q)
{
	struct kblk_disk *d = q->disk;
	int cpu = kblk_queue_cpu(q);
	const struct kofi_cq_attr kattr = {
		.flags = cpu < 0 ? 0 : FI_AFFINITY,
		.cpu = max(cpu, 0),
		.poll = q->polled ? KOFI_POLL_DIRECT : KOFI_POLL_SOFTIRQ,
		.done = true,
	};
	/* for each tag: a send, an answer, an invalidated region, CQ data */
	struct fi_cq_attr attr = { .size = KBLK_QUEUED };
	int err;

	kblk_queue_init(q);
	err = kofi_cq_open(d->domain, &attr, &kattr, &q->cq, NULL);
	if (err)
		return err;
	err = fi_endpoint(d->domain, d->info, &q->ep, q);
	if (err)
		return err;
	err = fi_ep_bind(q->ep, &d->eq->fid, 0);
	if (err)
		return err;
	err = fi_ep_bind(q->ep, &q->cq->fid, FI_RECV);
	if (err)
		return err;
	err = fi_ep_bind(q->ep, &q->cq->fid,
			 FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (err)
		return err;
	err = kblk_queue_options(q);
	if (err)
		return err;
	if (!(d->info->mode & FI_RX_CQ_DATA) && kblk_has_data(d->info)) {
		err = kofi_ep_remote_cqe(q->ep, &q->data);
		if (err)
			return err;
	}
	return fi_enable(q->ep);
}

/* Wait for the event that reports the connection or a refusal. */
static int kblk_queue_wait(struct kblk_queue *q)
{
	struct kblk_disk *d = q->disk;
	struct fi_eq_err_entry error = {};
	union {
		struct fi_eq_cm_entry	cm;
		u8			room[sizeof(struct fi_eq_cm_entry) +
					     256];
	} ev;
	u32 event;
	ssize_t n;

	do {
		n = fi_eq_sread(d->eq, &event, &ev, sizeof(ev),
				min(kblk_left_ms(d), KBLK_LOOK_MS), 0);
	} while (n == -EAGAIN && kblk_left_ms(d) && !READ_ONCE(d->removing));
	if (n == -FI_EAVAIL && fi_eq_readerr(d->eq, &error, 0) > 0)
		return kblk_rejected(d, &error);
	if (n < 0)
		return -ETIMEDOUT;
	/* the connection of another queue has been lost */
	if (event != FI_CONNECTED || ev.cm.fid != &q->ep->fid)
		return -ECONNRESET;
	return kblk_accepted(q, ev.cm.data, n - sizeof(ev.cm));
}

static int kblk_queue_connect(struct kblk_queue *q)
{
	struct kblk_disk *d = q->disk;
	int err;

	q->hello = (struct kblk_hello) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version = cpu_to_le16(KBLK_VERSION),
		.oldest = cpu_to_le16(KBLK_OLDEST),
		.features = cpu_to_le32(kblk_features(d)),
		.depth = cpu_to_le16(KBLK_TAGS),
	};
	err = kblk_queue_open(q);
	if (err)
		return err;
	err = fi_connect(q->ep, d->info->dest_addr, &q->hello,
			 sizeof(q->hello));
	if (err)
		return err;
	err = kblk_queue_wait(q);
	if (err)
		return err;
	err = kblk_login(q);
	if (err)
		return err;
	return kblk_queue_ready(q);
}

/**
 * kblk_leave - release the fabric and the provider of the last connections
 * @d: not connected
 *
 * Context: process, may sleep.
 */
void kblk_leave(struct kblk_disk *d)
{
	if (d->fabric)
		fi_close(&d->fabric->fid);
	d->fabric = NULL;
}

/* Open the fabric to connect in, then close the fabric of the last connections. */
static int kblk_enter(struct kblk_disk *d)
{
	struct fid_fabric *fabric;
	int err;

	err = fi_fabric(d->info->fabric_attr, &fabric, NULL);
	if (err)
		return err;
	kblk_leave(d);
	d->fabric = fabric;
	return 0;
}

/**
 * kblk_connect - make all connections of a disk
 * @d: not connected
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY if the target has not finished an earlier attempt; or
 * another negative error code, without connections.
 */
int kblk_connect(struct kblk_disk *d)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	unsigned int i;
	int err;

	WRITE_ONCE(d->lost, false);
	d->attempt = kblk_attempt();
	d->deadline = jiffies + msecs_to_jiffies(KBLK_CONNECT_MS);
	if (d->state < KBLK_LIVE && time_after(d->deadline, kblk_end(d)))
		d->deadline = kblk_end(d);
	/* before there is a disk, the provider's module may be loaded */
	err = kblk_getinfo(d->net, d->opt.provider, d->opt.addr, d->opt.port, 0,
			   KBLK_TAGS, d->gd ? GFP_NOIO : GFP_KERNEL, &d->info);
	if (err)
		goto disconnect;
	if (d->gd && kblk_segs(d) < queue_max_segments(d->gd->queue)) {
		pr_err("kofi_blk: %s: this device takes shorter requests\n",
		       d->gd->disk_name);
		err = -ESTALE;
		goto disconnect;
	}
	err = kblk_enter(d);
	if (err)
		goto disconnect;
	err = fi_eq_open(d->fabric, &attr, &d->eq, NULL);
	if (err)
		goto disconnect;
	err = fi_domain(d->fabric, d->info, &d->domain, NULL);
	if (err)
		goto disconnect;
	/* once; the queues of CPUs follow from it */
	if (!d->set.tags) {
		err = kblk_disk_tags(d);
		if (err)
			goto disconnect;
	}
	for (i = 0; i < d->nr_queues; i++) {
		err = kblk_queue_connect(d->queues[i]);
		if (err)
			goto disconnect;
	}
	d->inline_max = d->welcome.inline_max ? 1 << d->welcome.inline_max : 0;
	d->inline_segs = min_t(size_t, d->info->tx_attr->iov_limit, 8) - 1;
	return 0;
disconnect:
	kblk_disconnect(d);
	return err;
}

/**
 * kblk_disconnect - close all connections of a disk
 * @d: a disk without outstanding requests: they have been requeued or failed
 *
 * The fabric stays, so that connecting again loads no module: that takes memory which
 * may be available only after this disk has written.
 *
 * Context: process, may sleep.
 */
void kblk_disconnect(struct kblk_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nr_queues; i++) {
		struct kblk_queue *q = d->queues[i];

		if (q->ep)
			fi_close(&q->ep->fid);
		q->ep = NULL;
		if (q->cq)
			fi_close(&q->cq->fid);
		q->cq = NULL;
		kblk_login_free(q);
	}
	if (d->domain)
		fi_close(&d->domain->fid);
	d->domain = NULL;
	if (d->eq)
		fi_close(&d->eq->fid);
	d->eq = NULL;
	fi_freeinfo(d->info);
	d->info = NULL;
}

/* ------------------------------------------------------------------- recovery */

/**
 * kblk_lost - schedule recovery after the loss of a connection, or to close it
 * @d: the disk
 *
 * Context: any.
 */
void kblk_lost(struct kblk_disk *d)
{
	WRITE_ONCE(d->lost, true);
	/*
	 * Pairs with the barrier in kblk_live(): one of both sees the other's write. No lock: this
	 * is called in any context, and by callbacks that kblk_down() waits for.
	 */
	smp_mb();
	if (READ_ONCE(d->state) == KBLK_LIVE)
		mod_delayed_work(kblk_wq, &d->recover, 0);
}

/* On return queue_rq() does not run. */
static void kblk_quiesce(struct kblk_disk *d)
{
	if (!d->quiesced)
		blk_mq_quiesce_tagset(&d->set);
	d->quiesced = true;
}

static void kblk_down(struct kblk_disk *d)
{
	unsigned int i;

	WRITE_ONCE(d->state, KBLK_DOWN);
	kblk_quiesce(d);
	/* kblk_poll() may be called although no request is sent */
	if (d->nr_polled)
		synchronize_rcu();
	for (i = 0; i < d->nr_queues; i++) {
		/* no command may arrive after its request has failed */
		kofi_ep_abort(d->queues[i]->ep);
		d->queues[i]->held = NULL;
	}
	blk_mq_tagset_busy_iter(&d->set, kblk_requeue, d);
	blk_mq_tagset_wait_completed_request(&d->set);
	for (i = 0; i < d->nr_queues; i++) {
		__le64 stable = d->queues[i]->notes.stable;

		if (stable && stable == d->welcome.incarnation)
			kblk_cache_stable(d);
	}
	kblk_disconnect(d);
	/*
	 * A target that connects and does not answer twice in a row is as good as
	 * none, and so is one that loses each connection at once.
	 */
	d->brief = time_before(jiffies, d->live + HZ);
	if (!d->brief) {
		if (!d->timed_out)
			d->since = jiffies;
		else if (d->answered || !d->silent)
			d->since = jiffies - min(d->set.timeout,
						 d->opt.path_timeout * HZ / 2);
		d->backoff = 1;
	}
	d->backoff = max(d->backoff, 1U);
	d->silent = d->timed_out;
	d->answered = false;
	d->timed_out = false;
}

static void kblk_go(struct kblk_disk *d)
{
	if (d->quiesced)
		blk_mq_unquiesce_tagset(&d->set);
	d->quiesced = false;
	blk_mq_kick_requeue_list(d->gd->queue);
}

/**
 * kblk_live - start sending requests
 * @d: connected
 *
 * Context: process.
 */
void kblk_live(struct kblk_disk *d)
{
	d->live = jiffies;
	/*
	 * Publishes all changes; pairs with the acquire in queue_rq(), which runs for each request
	 * on all CPUs and so takes no lock.
	 */
	smp_store_release(&d->state, KBLK_LIVE);
	/* see kblk_lost() */
	smp_mb();
	if (READ_ONCE(d->lost))
		mod_delayed_work(kblk_wq, &d->recover, 0);
}

static void kblk_recover_noio(struct kblk_disk *d)
{
	int err = -ETIMEDOUT;
	bool pause = false;
	long delay;

	if (d->state == KBLK_LIVE) {
		if (!READ_ONCE(d->lost))
			return;
		if (!d->removing)
			pr_warn_ratelimited("kofi_blk: %s: connection lost\n",
					    d->gd->disk_name);
		kblk_down(d);
		pause = d->brief;
	}
	if (d->removing && d->state == KBLK_FAILED)
		return;
	if (!pause && (d->state == KBLK_FAILED || !kblk_late(d)))
		err = kblk_connect(d);
	if (!err) {
		pr_info("kofi_blk: %s: connected again\n", d->gd->disk_name);
		/* requests that it leaves on the block layer's list are kicked below */
		kblk_quiesce(d);
		kblk_live(d);
		kblk_go(d);
		/* last, as it notifies user space, which may wait for memory and so for I/O */
		kblk_disk_resize(d);
		return;
	}
	if (d->state < KBLK_LIVE && kblk_late(d)) {
		if (!d->removing)
			pr_err("kofi_blk: %s: no connection for %u s, requests fail\n",
			       d->gd->disk_name, d->opt.path_timeout);
		kblk_quiesce(d);
		WRITE_ONCE(d->state, KBLK_FAILED);
		kblk_go(d);
	} else if (d->state == KBLK_DOWN && d->opt.fast_fail &&
		   time_after_eq(jiffies, kblk_fast(d))) {
		pr_warn("kofi_blk: %s: no connection for %u s, requests with another path fail\n",
			d->gd->disk_name, d->opt.fast_fail);
		WRITE_ONCE(d->state, KBLK_FAST);
		kblk_go(d);
	}
	if (READ_ONCE(d->removing))
		return;
	delay = d->backoff * (err == -EBUSY ? HZ / 8 : HZ);
	d->backoff = min(2 * d->backoff, KBLK_BACKOFF);
	if (d->state < KBLK_LIVE)
		delay = clamp_t(long, kblk_end(d) - jiffies, 0, delay);
	if (d->state == KBLK_DOWN && d->opt.fast_fail)
		delay = clamp_t(long, kblk_fast(d) - jiffies, 0, delay);
	queue_delayed_work(kblk_wq, &d->recover, delay);
}

/**
 * kblk_recover - work item: close connections, and make new ones or give up
 * @work: work item of a disk
 */
void kblk_recover(struct work_struct *work)
{
	struct kblk_disk *d = container_of(to_delayed_work(work),
					   struct kblk_disk, recover);
	unsigned int noio = memalloc_noio_save();

	kblk_recover_noio(d);
	memalloc_noio_restore(noio);
}
