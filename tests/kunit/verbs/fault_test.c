// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices that do what those in software never do: functions of the one under
 * test are replaced by some that refuse, count and look, and call the device's.
 */

#include <linux/delay.h>
#include <linux/kofi/provider.h>
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "../../../providers/verbs/verbs.h"
#include "../contract/contract.h"
#include "link.h"

#define VF_LEN		64
#define VF_POOL		16
#define VF_INLINE	24	/* bytes a queue pair may ask for, at most */
#define VF_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define VF_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define VF_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | \
			 FI_WRITE | VF_ALL)

/**
 * struct vf - the device, and what is asked of it
 * @ops: the device's own functions
 * @ib: the device
 * @attrs: its own attributes
 * @refuse_error: queue pairs do not go into their error state
 * @refuse_inline: work requests that take their bytes along are refused
 * @refuse_inv: so many invalidations are
 * @refuse_reg: and so many registrations
 * @atomic_refused: registrations with the atomic right that were refused
 * @refuse_atomic: refuse those that follow
 * @sq_bytes: bytes of a send queue, as mlx5 counts them; 0: as many as one likes
 * @max_inline: bytes a queue pair may ask for
 * @hide_last: the last work request is not reported
 * @hold: queue pairs go into their error state not before that
 * @held: one waits for it
 * @hold_alloc: regions are allocated not before that
 * @created: queue pairs that were asked for
 * @destroyed: queue pairs
 * @allocated: regions
 * @full: no work request is taken
 * @regs: registrations
 * @regs_signaled: of them, those whose end is reported
 * @read_sges: most segments of a read
 * @retries: of the last queue pair that has learned how many
 * @watch_memory: count those that follow
 * @greedy: calls that may have memory written back to get some
 * @masked: regions described with interrupts off
 * @drains: times the driver has drained a send queue, and a receive queue
 * @writes: writes the provider has posted
 */
static struct vf {
	typeof_member(struct ib_device, ops)	ops;
	struct ib_device	*ib;
	struct ib_device_attr	attrs;
	bool			refuse_error;
	bool			refuse_inline;
	atomic_t		refuse_inv;
	atomic_t		refuse_reg;
	atomic_t		atomic_refused;
	bool			refuse_atomic;
	size_t			sq_bytes;
	unsigned int		max_inline;
	bool			hide_last;
	struct completion	*hold;
	struct completion	held;
	struct completion	*hold_alloc;
	atomic_t		created;
	atomic_t		destroyed;
	atomic_t		allocated;
	bool			full;
	atomic_t		regs;
	atomic_t		regs_signaled;
	int			read_sges;
	int			retries;
	bool			watch_memory;
	atomic_t		greedy;
	atomic_t		masked;
	atomic_t		drains[2];
	atomic_t		writes;
} *vf;

/* A call that is on the way of memory that is written back */
static void vf_look(void)
{
	if (vf->watch_memory && !(current->flags & PF_MEMALLOC_NOIO))
		atomic_inc(&vf->greedy);
}

/* As mlx5's calc_sq_size() */
static bool vf_sq_fits(const struct ib_qp_cap *cap)
{
	size_t wqe = ALIGN(132 + max(cap->max_send_sge * 16,
				     cap->max_inline_data + 4), 64);

	return roundup_pow_of_two(cap->max_send_wr * wqe) <= vf->sq_bytes;
}

static void vf_event(struct ib_event *event, void *context)
{
	struct ib_qp *qp = event->element.qp;

	if (event->event != IB_EVENT_QP_LAST_WQE_REACHED &&
	    qp->registered_event_handler)
		qp->registered_event_handler(event, qp->qp_context);
}

static int vf_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			struct ib_udata *udata)
{
	int err;

	atomic_inc(&vf->created);
	if (attr->cap.max_inline_data > vf->max_inline)
		return -EINVAL;
	if (vf->sq_bytes && !vf_sq_fits(&attr->cap))
		return -ENOMEM;
	err = vf->ops.create_qp(qp, attr, udata);
	if (!err && vf->hide_last && qp->event_handler)
		qp->event_handler = vf_event;
	return err;
}

static int vf_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_udata *udata)
{
	vf_look();
	if (mask & IB_QP_RETRY_CNT)
		vf->retries = attr->retry_cnt;
	if (vf->refuse_error && mask & IB_QP_STATE &&
	    attr->qp_state == IB_QPS_ERR)
		return -EIO;
	if (vf->hold && mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR) {
		complete_all(&vf->held);
		wait_for_completion(vf->hold);
	}
	return vf->ops.modify_qp(qp, attr, mask, udata);
}

static int vf_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	int err;

	vf_look();
	err = vf->ops.destroy_qp(qp, udata);
	atomic_inc(&vf->destroyed);
	return err;
}

static struct ib_mr *vf_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max)
{
	atomic_inc(&vf->allocated);
	if (vf->hold_alloc) {
		complete_all(&vf->held);
		wait_for_completion(vf->hold_alloc);
	}
	return vf->ops.alloc_mr(pd, type, max);
}

static int vf_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	vf_look();
	return vf->ops.dereg_mr(mr, udata);
}

static int vf_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			unsigned int *offset)
{
	if (irqs_disabled())
		atomic_inc(&vf->masked);
	return vf->ops.map_mr_sg(mr, sg, nents, offset);
}

static int vf_reg_look(const struct ib_send_wr *wr)
{
	if (!vf->refuse_atomic ||
	    !(reg_wr(wr)->access & IB_ACCESS_REMOTE_ATOMIC))
		return 0;
	atomic_inc(&vf->atomic_refused);
	return -EINVAL;
}

static int vf_send_look(const struct ib_send_wr *wr)
{
	if (wr->opcode == IB_WR_RDMA_WRITE)
		atomic_inc(&vf->writes);
	switch (wr->opcode) {
	case IB_WR_LOCAL_INV:
		return atomic_dec_if_positive(&vf->refuse_inv) >= 0 ? -ENOMEM :
								      0;
	case IB_WR_REG_MR:
		if (atomic_dec_if_positive(&vf->refuse_reg) >= 0)
			return -ENOMEM;
		atomic_inc(&vf->regs);
		if (wr->send_flags & IB_SEND_SIGNALED)
			atomic_inc(&vf->regs_signaled);
		return vf_reg_look(wr);
	case IB_WR_RDMA_READ:
		vf->read_sges = max(vf->read_sges, wr->num_sge);
		return 0;
	default:
		return vf->refuse_inline && wr->send_flags & IB_SEND_INLINE ?
		       -EINVAL : 0;
	}
}

static int vf_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad)
{
	const struct ib_send_wr *one;
	int err = vf->full && qp->qp_type == IB_QPT_RC ? -ENOMEM : 0;

	for (one = wr; one && !err; one = one->next)
		err = vf_send_look(one);
	*bad = wr;
	return err ?: vf->ops.post_send(qp, wr, bad);
}

static void vf_restore(void *arg)
{
	vf->ib->ops = vf->ops;
	vf->ib->attrs = vf->attrs;
	ib_device_put(vf->ib);
}

static int vf_init(struct kunit *test)
{
	link_test_init(test);
	vf = kunit_kzalloc(test, sizeof(*vf), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, vf);
	vf->ib = link_device(ct_device);
	KUNIT_ASSERT_NOT_NULL(test, vf->ib);
	vf->ops = vf->ib->ops;
	vf->attrs = vf->ib->attrs;
	vf->max_inline = UINT_MAX;
	vf->ib->ops.create_qp = vf_create_qp;
	vf->ib->ops.modify_qp = vf_modify_qp;
	vf->ib->ops.destroy_qp = vf_destroy_qp;
	vf->ib->ops.alloc_mr = vf_alloc_mr;
	vf->ib->ops.dereg_mr = vf_dereg_mr;
	vf->ib->ops.map_mr_sg = vf_map_mr_sg;
	vf->ib->ops.post_send = vf_post_send;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, vf_restore, NULL),
			0);
	return 0;
}

static bool vf_is(enum rdma_driver_id driver)
{
	return vf->ops.driver_id == driver;
}

static struct ct_pair *vf_open(struct kunit *test, enum ct_mode mode,
			       size_t pool)
{
	const struct ct_opts opts = {
		.mode = mode, .caps = VF_CAPS, .mr_mode = VF_MR_MODE,
		.mr_pool = pool,
	};

	return ct_pair_open(test, &opts);
}

/* A message each way */
static void vf_exchange(struct ct_pair *p)
{
	u8 *to = ct_buf(p, VF_LEN), *from = ct_buf(p, VF_LEN);
	int side;

	for (side = 0; side < 2; side++) {
		struct ct_op *rx = ct_op(p);

		ct_pattern(from, VF_LEN, side);
		KUNIT_EXPECT_EQ(p->test, ct_recv(p, !side, rx, to, VF_LEN), 0);
		KUNIT_EXPECT_EQ(p->test, ct_send(p, side, ct_op(p), from,
						 VF_LEN), 0);
		KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(p->test, rx->wc.err, 0);
		KUNIT_EXPECT_TRUE(p->test, ct_pattern_ok(to, VF_LEN, side));
	}
}

/* ---------------------------------------------- queue pairs that go on */

/**
 * struct vf_given - memory that has been given back
 * @before: queue pairs destroyed before
 * @early: operations that ended while the device had the queue pair
 */
struct vf_given {
	int		before;
	atomic_t	early;
};

static void vf_given_back(struct ct_op *op)
{
	struct vf_given *given = op->pair->priv;

	if (atomic_read(&vf->destroyed) == given->before)
		atomic_inc(&given->early);
}

static struct ct_op *vf_given_op(struct ct_pair *p)
{
	struct ct_op *op = ct_op(p);

	op->hook = vf_given_back;
	return op;
}

/*
 * The queue pair does not go into its error state: memory is given back when the
 * device does not have the queue pair any more, and all of it is.
 */
static void fault_error(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, ct_mode_of(test), VF_POOL);
	const struct kvec kv = { ct_buf(p, VF_LEN), VF_LEN };
	struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };
	struct vf_given given = {};
	struct ct_op *rx, *tx, *end;
	struct fid_mr *mr;

	/* it does not take back what it has said of such a queue pair */
	if (vf_is(RDMA_DRIVER_SIW))
		kunit_skip(test, "leaves completions behind");
	p->priv = &given;
	rx = vf_given_op(p);
	tx = vf_given_op(p);
	end = vf_given_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 0, rx, ct_buf(p, VF_LEN), VF_LEN), 0);
	if (p->info->domain_attr->resource_mgmt == FI_RM_ENABLED)
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, tx, ct_buf(p, VF_LEN),
					      VF_LEN), 0);
	mr = kofi_mr_get(p->side[0].ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	vec.context = end;
	atomic_inc(&end->posted);
	KUNIT_ASSERT_EQ(test, kofi_mr_map(mr, &vec, VF_ALL, FI_MR_SINGLE_USE),
			0);

	given.before = atomic_read(&vf->destroyed);
	vf->refuse_error = true;
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	vf->refuse_error = false;
	KUNIT_EXPECT_GT(test, atomic_read(&vf->destroyed), given.before);
	KUNIT_EXPECT_EQ(test, atomic_read(&given.early), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, rx->wc.err, ECANCELED);
	KUNIT_EXPECT_EQ(test, end->wc.err, ECANCELED);
	if (atomic_read(&tx->posted))
		KUNIT_EXPECT_EQ(test, tx->wc.err, ECANCELED);
	/* the peer is told all the same */
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

/* ------------------------------------------------------ refused requests */

static void vf_inject(struct ct_pair *p, size_t len)
{
	struct ct_op *rx = ct_op(p);
	u8 *to = ct_buf(p, len), *from = ct_buf(p, len);

	ct_pattern(from, len, len);
	KUNIT_EXPECT_EQ(p->test, ct_recv(p, 1, rx, to, len), 0);
	KUNIT_EXPECT_EQ(p->test, ct_inject(p, 0, from, len), 0);
	memset(from, 0, len);
	KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(p->test, rx->wc.err, 0);
	KUNIT_EXPECT_TRUE(p->test, ct_pattern_ok(to, len, len));
}

/* A device that takes less along than it has granted */
static void fault_inline(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, ct_mode_of(test), 0);
	size_t len;

	vf->refuse_inline = true;
	for (len = 128; len; len /= 2)
		vf_inject(p, len);
	vf->refuse_inline = false;
	vf_inject(p, 128);
	ct_pair_close(p);
}

/* One that has less is asked once. */
static void fault_inline_asked(struct kunit *test)
{
	struct ct_pair *p;
	int first;

	vf->max_inline = VF_INLINE;
	p = vf_open(test, CT_SOFTIRQ, 0);
	vf_inject(p, 128);
	first = atomic_read(&vf->created);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 0, p->info), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->created), first + 2);
	vf_inject(p, 128);
	vf_inject(p, 16);
	ct_pair_close(p);
}

/* ------------------------------------------------------------------ probes */

static ssize_t vf_send_silent(struct ct_pair *p, struct ct_op *op, u8 *buf,
			      u64 flags)
{
	const struct kvec kv = { buf, VF_LEN };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };

	op->silent = true;
	return ct_post_send(p, 0, op, &msg, flags);
}

static void vf_receive(struct ct_pair *p, struct ct_op *op, u8 *buf)
{
	const struct kvec kv = { buf, VF_LEN };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };

	KUNIT_EXPECT_EQ(p->test, ct_post_recv(p, 1, op, &msg, FI_COMPLETION), 0);
}

/* A probe says nothing of what the device has not been given. */
static void fault_probe(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .caps = VF_CAPS, .mr_mode = VF_MR_MODE,
		.selective = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	/* a message that waits for its receive holds up the probe behind it */
	bool waits = p->info->domain_attr->resource_mgmt == FI_RM_ENABLED;
	struct vrb_ep *ep = vrb_ep(p->side[0].ep);
	struct ct_op *tx[3], *rx[3];
	u8 *to[3], *from[3];
	int i, used;

	for (i = 0; i < 3; i++) {
		from[i] = ct_buf(p, VF_LEN);
		ct_pattern(from[i], VF_LEN, i);
		tx[i] = ct_op(p);
		rx[i] = ct_op(p);
		to[i] = ct_buf(p, VF_LEN);
		if (!waits)
			vf_receive(p, rx[i], to[i]);
	}
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, vf_send_silent(p, tx[0], from[0], 0), 0);
	/* behind the first one */
	ep->tx.idle.function(&ep->tx.idle);
	KUNIT_EXPECT_EQ(test, vf_send_silent(p, tx[1], from[1], FI_MORE), 0);
	if (waits)
		KUNIT_EXPECT_TRUE(test, ep->tx.probing);
	/* the second waits until the third comes */
	timer_delete(&ep->retry);
	timer_delete(&ep->tx.idle);
	timer_delete(&ep->tx.overdue);
	local_bh_enable();
	for (i = 0; waits && i < 3; i++)
		vf_receive(p, rx[i], to[i]);
	KUNIT_EXPECT_EQ(test, ep->tx.stats.unsignaled, 2);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, !READ_ONCE(ep->tx.probing),
					CT_TIMEOUT_MS));
	used = READ_ONCE(ep->tx.posted) - READ_ONCE(ep->tx_done.wrs);
	KUNIT_EXPECT_EQ(test, used, 1);
	KUNIT_EXPECT_EQ(test, vf_send_silent(p, tx[2], from[2], 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, rx[i]->wc.err, 0);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(to[i], VF_LEN, i));
	}
	ct_pair_close(p);
}

/* ----------------------------------------------------------------- regions */

static void vf_map(struct ct_pair *p, struct fid_mr *mr)
{
	const struct kvec kv = { ct_buf(p, VF_LEN), VF_LEN };
	const struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };

	KUNIT_ASSERT_EQ(p->test, kofi_mr_map(mr, &vec, VF_ALL, 0), 0);
}

static struct ct_op *vf_unmap(struct ct_pair *p, struct fid_mr *mr)
{
	struct ct_op *end = ct_op(p);

	atomic_inc(&end->posted);
	KUNIT_EXPECT_EQ(p->test, kofi_mr_unmap(mr, &end->cqe), 0);
	return end;
}

/* What the device refuses to invalidate for now is in the end, and goes on. */
static void fault_invalidate(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, ct_mode_of(test), VF_POOL);
	struct fid_mr *mr = kofi_mr_get(p->side[0].ep);
	struct ct_op *end;
	int had, i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	had = atomic_read(&vf->allocated);
	for (i = 0; i < 4; i++) {
		vf_map(p, mr);
		atomic_set(&vf->refuse_inv, 3);
		end = vf_unmap(p, mr);
		KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(test, end->wc.err, 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&vf->refuse_inv), 0);
	}
	/* the same region of the device */
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->allocated), had);
	kofi_mr_put(mr);
	vf_exchange(p);
	ct_pair_close(p);
}

/* What has to be tried again does not put off the end of the connection. */
static void fault_put_off(struct kunit *test)
{
	struct ib_event event = {
		.device = vf->ib, .event = IB_EVENT_QP_FATAL,
	};
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, VF_POOL);
	struct fid_mr *mr = kofi_mr_get(p->side[0].ep);
	struct vrb_ep *ep = vrb_ep(p->side[0].ep);
	struct ct_op *end = ct_op(p);
	bool late;

	if (num_online_cpus() > 1)
		kunit_skip(test, "another processor ends it meanwhile");
	KUNIT_ASSERT_NOT_NULL(test, mr);
	vf_map(p, mr);
	atomic_set(&vf->refuse_inv, 1);
	atomic_inc(&end->posted);
	event.element.qp = ep->qp;
	preempt_disable();
	ep->qp->event_handler(&event, ep->qp->qp_context);
	KUNIT_EXPECT_EQ(test, kofi_mr_unmap(mr, &end->cqe), 0);
	late = timer_pending(&ep->work.timer);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->refuse_inv), 0);
	KUNIT_EXPECT_FALSE(test, late);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	kofi_mr_put(mr);
	ct_pair_close(p);
}

/* Nor does one post that is refused put off the next try of another. */
static void fault_again(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, 0);
	struct vrb_ep *ep = vrb_ep(p->side[0].ep);
	struct ct_op *op = ct_op(p);
	u8 *buf = ct_buf(p, VF_LEN);
	unsigned long due;

	vf->full = true;
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, op, buf, VF_LEN), -EAGAIN);
	due = ep->retry.expires;
	mdelay(2 * MSEC_PER_SEC / HZ);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, op, buf, VF_LEN), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, timer_pending(&ep->retry));
	KUNIT_EXPECT_EQ(test, ep->retry.expires, due);
	local_bh_enable();
	vf->full = false;
	vf_exchange(p);
	ct_pair_close(p);
}

/* A registration that the device has no room for is tried again. */
static void fault_register(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, ct_mode_of(test), 0);
	struct fid_mr *mr;

	atomic_set(&vf->refuse_reg, 3);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, ct_buf(p, VF_LEN), VF_LEN,
					VF_ALL, 0, 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->refuse_reg), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->regs), 1);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	vf_exchange(p);
	ct_pair_close(p);
}

/* The key of a region that a peer can write to, and no more than that */
static void vf_region_works(struct ct_pair *p, int side, struct fid_mr *mr,
			    u8 *buf)
{
	u8 *from = ct_buf(p, VF_LEN);
	struct ct_op *op = ct_op(p);

	ct_pattern(from, VF_LEN, 9);
	memset(buf, 0, VF_LEN);
	atomic_inc(&op->posted);
	KUNIT_ASSERT_EQ(p->test, fi_write(p->side[side].ep, from, VF_LEN, NULL,
					  0, kofi_mr_base(mr), fi_mr_key(mr),
					  op), 0);
	KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(p->test, op->wc.err, 0);
	vf_exchange(p);
	KUNIT_EXPECT_TRUE(p->test, ct_pattern_ok(buf, VF_LEN, 9));
}

static struct ct_pair *vf_open_atomic(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .caps = VF_CAPS | FI_ATOMIC,
		.mr_mode = VF_MR_MODE, .mr_pool = VF_POOL,
	};

	if (vf->ib->attrs.atomic_cap == IB_ATOMIC_NONE)
		kunit_skip(test, "the device has no atomic operations");
	return ct_pair_open(test, &opts);
}

/*
 * A device that does not take registrations with the atomic right: regions are
 * registered without, and only the first is tried with it.
 */
static void fault_atomic(struct kunit *test)
{
	struct ct_pair *p = vf_open_atomic(test);
	u8 *buf = ct_buf(p, VF_LEN);
	const struct kvec kv = { buf, VF_LEN };
	const struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };
	struct fid_mr *mr;

	vf->refuse_atomic = true;
	mr = kofi_mr_get(p->side[0].ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_EQ(test, kofi_mr_map(mr, &vec, VF_ALL, 0), 0);
	vf_region_works(p, 1, mr, buf);
	vf_unmap(p, mr);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	kofi_mr_put(mr);
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->atomic_refused), 1);

	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, buf, VF_LEN, VF_ALL, 0, 0, 0,
					&mr, NULL), 0);
	vf_region_works(p, 1, mr, buf);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->atomic_refused), 1);
	ct_pair_close(p);
}

/* Memory is described with interrupts on. */
static void fault_map(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, VF_POOL);
	struct fid_mr *mr = kofi_mr_get(p->side[0].ep);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	vf_map(p, mr);
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->masked), 0);
	vf_unmap(p, mr);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	kofi_mr_put(mr);
	ct_pair_close(p);
}

/*
 * Few registrations are reported, and their places in the queue come free all the
 * same, however the regions end.
 */
static void fault_reported(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, ct_mode_of(test), VF_POOL);
	struct fid_mr *mr[VF_POOL];
	int i, round;

	for (i = 0; i < VF_POOL; i++) {
		mr[i] = kofi_mr_get(p->side[0].ep);
		KUNIT_ASSERT_NOT_NULL(test, mr[i]);
	}
	for (round = 0; round < 8; round++) {
		for (i = 0; i < VF_POOL; i++)
			vf_map(p, mr[i]);
		for (i = 0; i < VF_POOL; i++)
			vf_unmap(p, mr[i]);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->regs), 8 * VF_POOL);
	KUNIT_EXPECT_LE(test, atomic_read(&vf->regs_signaled), 8 * 2);
	for (i = 0; i < VF_POOL; i++)
		kofi_mr_put(mr[i]);
	vf_exchange(p);
	ct_pair_close(p);
}

/* The end of an endpoint may be what memory waits for. */
static void fault_memory(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, VF_POOL);
	struct fid_mr *mr = kofi_mr_get(p->side[0].ep);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	vf_map(p, mr);
	vf->watch_memory = true;
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	vf->watch_memory = false;
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->greedy), 0);
	ct_pair_close(p);
}

/* --------------------------------------------------------------- attributes */

/* A send queue of so many bytes: what is offered can be enabled. */
static void fault_depth(struct kunit *test)
{
	const size_t bytes = 1024 * 256;
	struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .caps = VF_CAPS, .mr_mode = VF_MR_MODE,
	};
	struct fi_info *hints = ct_hints(), *info = NULL;
	size_t size;
	struct ct_pair *p;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	vf->ib->ops.driver_id = RDMA_DRIVER_MLX5;
	vf->ib->attrs.max_qp_wr = bytes / 256;
	vf->sq_bytes = bytes;
	hints->caps = VF_CAPS;
	hints->domain_attr->mr_mode = VF_MR_MODE;
	for (size = bytes / 256; size; size--) {
		hints->tx_attr->size = size;
		if (!ct_getinfo(0, hints, &info))
			break;
	}
	fi_freeinfo(hints);
	fi_freeinfo(info);
	kunit_info(test, "%zu operations\n", size);
	KUNIT_EXPECT_GT(test, size, bytes / 1024);
	opts.tx_size = size;
	p = ct_pair_open(test, &opts);
	vf_exchange(p);
	ct_pair_close(p);
}

/* More segments than are fast become several reads. */
static void fault_read(struct kunit *test)
{
	struct ct_pair *p;
	struct kvec kv[4];
	struct fid_mr *mr;
	struct fi_rma_iov rma;
	struct fi_msg_rma msg = {
		.msg_iov = kv, .iov_count = 4, .rma_iov = &rma,
		.rma_iov_count = 1,
	};
	struct ct_op *op;
	u8 *from, *to;
	int i;

	vf->ib->attrs.max_sgl_rd = 2;
	p = vf_open(test, CT_SOFTIRQ, 0);
	if (p->info->ep_attr->protocol == FI_PROTO_IWARP)
		kunit_skip(test, "reads into one segment at a time");
	from = ct_buf(p, PAGE_SIZE);
	to = ct_buf(p, 8 * VF_LEN);
	ct_pattern(from, 4 * VF_LEN, 7);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, from, PAGE_SIZE,
					FI_REMOTE_READ, 0, 0, 0, &mr, NULL), 0);
	rma = (struct fi_rma_iov) {
		kofi_mr_base(mr), 4 * VF_LEN, fi_mr_key(mr),
	};
	for (i = 0; i < 4; i++)
		kv[i] = (struct kvec) { to + 2 * i * VF_LEN, VF_LEN };
	op = ct_op(p);
	msg.context = op;
	atomic_inc(&op->posted);
	KUNIT_ASSERT_EQ(test, fi_readmsg(p->side[0].ep, &msg, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, vf->read_sges, 2);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, memcmp(to + 2 * i * VF_LEN,
					     from + i * VF_LEN, VF_LEN), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(p);
}

#define VF_LONG		SZ_64K

/* A read is over before what was posted behind it, where that is said. */
static void fault_order(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, 0);
	struct ct_op *read = ct_op(p), *tx = ct_op(p), *rx = ct_op(p);
	bool strict = p->info->tx_attr->comp_order == FI_ORDER_STRICT;
	u8 *buf = ct_buf(p, VF_LONG);
	struct fid_mr *mr;

	KUNIT_EXPECT_EQ(test, strict, !vf_is(RDMA_DRIVER_SIW));
	KUNIT_EXPECT_EQ(test, p->info->rx_attr->comp_order, FI_ORDER_STRICT);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, ct_buf(p, VF_LONG), VF_LONG,
					FI_REMOTE_READ, 0, 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, rx, ct_buf(p, VF_LEN), VF_LEN), 0);
	atomic_inc(&read->posted);
	KUNIT_EXPECT_EQ(test, fi_read(p->side[0].ep, buf, VF_LONG, NULL, 0,
				      kofi_mr_base(mr), fi_mr_key(mr), read),
			0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, tx, ct_buf(p, VF_LEN), VF_LEN), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, read->wc.err, 0);
	KUNIT_EXPECT_EQ(test, tx->wc.err, 0);
	if (strict)
		KUNIT_EXPECT_LT(test, read->seq, tx->seq);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(p);
}

/* As often as a device can; one takes the most for ever. */
static void fault_retries(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, 0);

	if (p->info->ep_attr->protocol == FI_PROTO_IWARP)
		kunit_skip(test, "TCP repeats");
	KUNIT_EXPECT_EQ(test, vf->retries, vf_is(RDMA_DRIVER_RXE) ? 6 : 7);
	ct_pair_close(p);
	vf->ib->ops.driver_id = RDMA_DRIVER_UNKNOWN;
	p = vf_open(test, CT_SOFTIRQ, 0);
	KUNIT_EXPECT_EQ(test, vf->retries, 7);
	vf_exchange(p);
	ct_pair_close(p);
}

/* -------------------------------------------------------------- connections */

static void vf_unreachable(struct ct_pair *p, int side)
{
	struct rdma_cm_event ev = {
		.event = RDMA_CM_EVENT_UNREACHABLE, .status = -ETIMEDOUT,
	};
	struct rdma_cm_id *id = vrb_ep(p->side[side].ep)->cm.id;

	rdma_lock_handler(id);
	KUNIT_EXPECT_EQ(p->test, id->event_handler(id, &ev), 0);
	rdma_unlock_handler(id);
}

/*
 * A connection that stands: a neighbour's hardware address has changed, of which
 * the manager tells who has asked; and who has accepted, that it has not got the
 * last message.
 */
static void fault_unreachable(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_SOFTIRQ, 0);
	struct ct_op *rx;

	vf_unreachable(p, 0);
	vf_exchange(p);
	ct_expect_no_event(test, p->side[0].eq);
	rx = ct_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, rx, ct_buf(p, VF_LEN), VF_LEN), 0);
	vf_unreachable(p, 1);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

#define VF_SHARED	5	/* connections of one shared context */

/* How long it takes to drain a context that so many connections use */
static unsigned long vf_drain_shared(struct kunit *test, int nr)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ, .srx_size = 16 };
	struct fid_ep *ep[VF_SHARED][2];
	struct ct_pair *p = ct_pair_open(test, &opts);
	unsigned long began;
	int i, side;

	for (i = 0; i < nr; i++) {
		if (i) {
			KUNIT_ASSERT_EQ(test, ct_ep_open(p, 0, p->info), 0);
			KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
		}
		for (side = 0; side < 2; side++) {
			ep[i][side] = p->side[side].ep;
			p->side[side].ep = NULL;
		}
	}
	began = jiffies;
	kofi_ep_drain(p->srx);
	began = jiffies - began;
	for (i = 0; i < nr; i++)
		for (side = 0; side < 2; side++)
			KUNIT_EXPECT_EQ(test, fi_close(&ep[i][side]->fid), 0);
	ct_pair_close(p);
	return began;
}

/* A device that does not say when it is done: all are waited for together. */
static void fault_last(struct kunit *test)
{
	unsigned long one;

	if (!vf->attrs.max_srq ||
	    rdma_protocol_iwarp(vf->ib, rdma_start_port(vf->ib)))
		kunit_skip(test, "no device that is to say it");
	vf->hide_last = true;
	one = vf_drain_shared(test, 1);
	KUNIT_EXPECT_LT(test, vf_drain_shared(test, VF_SHARED), 3 * one);
}

/* -------------------------------------------------------- the driver's drain */

struct vf_barrier {
	struct ib_cqe		cqe;
	struct completion	done;
};

static void vf_barrier_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct vf_barrier, cqe)->done);
}

/* What such a driver does to its hardware is a work request of the device here. */
static void vf_drain_sq(struct ib_qp *qp)
{
	struct vf_barrier b = { .cqe.done = vf_barrier_done };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &b.cqe, .opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	const struct ib_send_wr *bad;

	atomic_inc(&vf->drains[0]);
	init_completion(&b.done);
	if (!vf->ops.post_send(qp, &wr.wr, &bad))
		wait_for_completion(&b.done);
}

static void vf_drain_rq(struct ib_qp *qp)
{
	struct vf_barrier b = { .cqe.done = vf_barrier_done };
	const struct ib_recv_wr wr = { .wr_cqe = &b.cqe }, *bad;

	atomic_inc(&vf->drains[1]);
	init_completion(&b.done);
	if (!vf->ops.post_recv(qp, &wr, &bad))
		wait_for_completion(&b.done);
}

/* A driver that drains its queues itself is asked to, and nothing is posted. */
static void fault_drain(struct kunit *test)
{
	struct ct_opts opts = { .mode = CT_SOFTIRQ };
	struct ct_pair *p;
	int shared;

	vf->ib->ops.drain_sq = vf_drain_sq;
	vf->ib->ops.drain_rq = vf_drain_rq;
	for (shared = 0; shared <= !!vf->attrs.max_srq; shared++) {
		opts.srx_size = shared ? 16 : 0;
		p = ct_pair_open(test, &opts);
		vf_exchange(p);
		atomic_set(&vf->drains[0], 0);
		atomic_set(&vf->drains[1], 0);
		ct_pair_close(p);
		/* of two endpoints; a shared context has no receives to drain */
		KUNIT_EXPECT_GE(test, atomic_read(&vf->drains[0]), 2 + shared);
		KUNIT_EXPECT_EQ(test, atomic_read(&vf->drains[1]), 2 - shared);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&vf->writes), 0);
}

/* ------------------------------------------------------------ two devices */

#define VF_SECOND	"second"

/* What is done to one device, or to the other */
struct vf_task {
	struct work_struct	work;
	struct completion	done;
	struct ct_pair		*p;
	int			err;
};

static void vf_drain_work(struct work_struct *work)
{
	struct vf_task *t = container_of(work, struct vf_task, work);

	t->err = kofi_ep_drain(t->p->side[0].ep);
	complete(&t->done);
}

/*
 * An endpoint that wants more regions to read into ends while the device, or
 * memory, has none.
 */
static void fault_grow(struct kunit *test)
{
	struct ct_pair *p = vf_open(test, CT_READ, 0);
	u8 *to = ct_buf(p, 16 * VF_LEN);
	struct kvec kv[5];
	struct fi_rma_iov rma = { .len = 5 * VF_LEN };
	struct fi_msg_rma msg = {
		.msg_iov = kv, .iov_count = 5, .rma_iov = &rma,
		.rma_iov_count = 1,
	};
	struct vf_task drain = { .p = p };
	struct completion hold;
	int i;

	if (p->info->ep_attr->protocol != FI_PROTO_IWARP)
		kunit_skip(test, "reads into all memory");
	for (i = 0; i < 5; i++)
		kv[i] = (struct kvec) { to + 2 * i * VF_LEN, VF_LEN };
	init_completion(&hold);
	init_completion(&vf->held);
	init_completion(&drain.done);
	INIT_WORK_ONSTACK(&drain.work, vf_drain_work);
	vf->hold_alloc = &hold;
	KUNIT_EXPECT_EQ(test, fi_readmsg(p->side[0].ep, &msg, 0), -EAGAIN);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&vf->held, TEST_LIMIT(10 * HZ)), 0);
	queue_work(system_unbound_wq, &drain.work);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&drain.done, TEST_LIMIT(10 * HZ)), 0);
	vf->hold_alloc = NULL;
	complete_all(&hold);
	flush_work(&drain.work);
	destroy_work_on_stack(&drain.work);
	KUNIT_EXPECT_EQ(test, drain.err, 0);
	ct_pair_close(p);
}

static void vf_open_work(struct work_struct *work)
{
	struct vf_task *t = container_of(work, struct vf_task, work);

	t->err = link_open(VF_SECOND);
	complete(&t->done);
}

/* While an endpoint of one device takes long to end, another device is opened. */
static void fault_second(struct kunit *test)
{
	struct vf_task drain = {}, open = {};
	struct completion hold;
	struct ct_pair *p;
	bool opened;

	KUNIT_ASSERT_EQ(test, link_add_second(VF_SECOND, "under1"), 0);
	p = vf_open(test, CT_READ, 0);
	vf_exchange(p);
	drain.p = p;
	init_completion(&hold);
	init_completion(&vf->held);
	init_completion(&drain.done);
	init_completion(&open.done);
	INIT_WORK_ONSTACK(&drain.work, vf_drain_work);
	INIT_WORK_ONSTACK(&open.work, vf_open_work);
	vf->hold = &hold;
	queue_work(system_unbound_wq, &drain.work);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&vf->held, TEST_LIMIT(10 * HZ)), 0);
	queue_work(system_unbound_wq, &open.work);
	opened = wait_for_completion_timeout(&open.done, TEST_LIMIT(10 * HZ));
	KUNIT_EXPECT_TRUE_MSG(test, opened, "the other device had to wait");
	KUNIT_EXPECT_FALSE(test, completion_done(&drain.done));
	vf->hold = NULL;
	complete_all(&hold);
	wait_for_completion(&drain.done);
	if (!opened)
		wait_for_completion(&open.done);
	destroy_work_on_stack(&drain.work);
	destroy_work_on_stack(&open.work);
	KUNIT_EXPECT_EQ(test, drain.err, 0);
	KUNIT_EXPECT_EQ(test, open.err, 0);
	ct_pair_close(p);
	KUNIT_EXPECT_EQ(test, link_remove_second(VF_SECOND), 0);
}

static struct kunit_case vf_cases[] = {
	KUNIT_CASE_PARAM(fault_error, ct_mode_gen_params),
	KUNIT_CASE_PARAM(fault_inline, ct_mode_gen_params),
	KUNIT_CASE(fault_inline_asked),
	KUNIT_CASE(fault_probe),
	KUNIT_CASE_PARAM(fault_invalidate, ct_mode_gen_params),
	KUNIT_CASE(fault_put_off),
	KUNIT_CASE(fault_again),
	KUNIT_CASE_PARAM(fault_register, ct_mode_gen_params),
	KUNIT_CASE_PARAM(fault_atomic, ct_mode_gen_params),
	KUNIT_CASE(fault_map),
	KUNIT_CASE_PARAM(fault_reported, ct_mode_gen_params),
	KUNIT_CASE(fault_memory),
	KUNIT_CASE(fault_depth),
	KUNIT_CASE(fault_read),
	KUNIT_CASE(fault_order),
	KUNIT_CASE(fault_retries),
	KUNIT_CASE(fault_unreachable),
	KUNIT_CASE_SLOW(fault_last),
	KUNIT_CASE(fault_grow),
	KUNIT_CASE(fault_drain),
	KUNIT_CASE(fault_second),
	{}
};

static struct kunit_suite vf_suite = {
	.name		= "verbs_fault",
	.suite_init	= lo_suite_init,
	.suite_exit	= link_suite_exit,
	.init		= vf_init,
	.test_cases	= vf_cases,
};

kunit_test_suite(vf_suite);
