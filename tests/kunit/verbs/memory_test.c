// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of kofi_verbs: registrations behind a peer that takes nothing, keys that
 * were, and memory that is not there.
 */

#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"
#include "link.h"

#define VM_MODE		(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define VM_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define VM_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | \
			 FI_WRITE | VM_ALL)
#define VM_LEN		64
#define VM_SOON_MS	TEST_LIMIT(2000)	/* what does not wait for the peer takes less */
#define VM_STALL_MS	TEST_LIMIT(20000)	/* what waits for it, without an end of that */

static struct ct_pair *vm_open(struct kunit *test, int mode, size_t pool)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .caps = VM_CAPS, .mr_mode = VM_MODE | mode,
		.mr_pool = pool,
	};

	return ct_pair_open(test, &opts);
}

/* Something that waits for a receive of the other side */
static struct ct_op *vm_stall(struct ct_pair *p, int side)
{
	struct ct_op *op = ct_op(p);

	ct_need_stalls(p);
	KUNIT_ASSERT_EQ(p->test, ct_send(p, side, op, ct_buf(p, VM_LEN),
					 VM_LEN), 0);
	return op;
}

static const int vm_sides[] = { 0, 1 };

static void vm_side_desc(const int *side, char *desc)
{
	strscpy(desc, *side ? "passive" : "active", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vm_side, vm_sides, vm_side_desc);

/* A region of the domain is registered where nothing is in the way. */
static void vm_expect_region(struct ct_pair *p)
{
	unsigned long began = jiffies;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(p->test, fi_mr_reg(p->domain, ct_buf(p, VM_LEN),
					   VM_LEN, VM_ALL, 0, 0, 0, &mr, NULL),
			0);
	KUNIT_EXPECT_LT(p->test, jiffies_to_msecs(jiffies - began),
			VM_SOON_MS);
	KUNIT_EXPECT_EQ(p->test, fi_close(&mr->fid), 0);
}

static void memory_one_stalled(struct kunit *test)
{
	const int side = *(const int *)test->param_value;
	struct ct_pair *p = vm_open(test, 0, 0);
	struct ct_op *tx = vm_stall(p, side), *rx = ct_op(p);

	vm_expect_region(p);
	KUNIT_EXPECT_FALSE(test, ct_is_done(tx));
	KUNIT_EXPECT_EQ(test, ct_recv(p, !side, rx, ct_buf(p, VM_LEN), VM_LEN),
			0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, tx->wc.err, 0);
	ct_pair_close(p);
}

static void memory_one_closing(struct kunit *test)
{
	const int side = *(const int *)test->param_value;
	struct ct_pair *p = vm_open(test, 0, 0);
	struct ct_op *tx = vm_stall(p, side);

	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[side].ep, 0), 0);
	vm_expect_region(p);
	KUNIT_EXPECT_FALSE(test, ct_is_done(tx));
	ct_pair_close(p);
}

/* A region behind a stalled send: its close ends the connection, in the end. */
static void memory_bound_stalled(struct kunit *test)
{
	struct ct_pair *p = vm_open(test, FI_MR_ENDPOINT, 0);
	struct ct_op *tx = vm_stall(p, 0);
	unsigned long began;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, ct_buf(p, VM_LEN), VM_LEN,
					VM_ALL, 0, 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_bind(mr, &p->side[0].ep->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_enable(mr), 0);
	began = jiffies;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began), VM_STALL_MS);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, tx));
	KUNIT_EXPECT_EQ(test, tx->wc.err, ECANCELED);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

/* Everything is held up: nothing is registered, and nothing ends. */
static void memory_all_stalled(struct kunit *test)
{
	struct ct_pair *p = vm_open(test, 0, 0);
	struct ct_op *tx[2], *rx[2];
	struct fid_mr *mr;
	int side;

	for (side = 0; side < 2; side++)
		tx[side] = vm_stall(p, side);
	KUNIT_EXPECT_EQ(test, fi_mr_reg(p->domain, ct_buf(p, VM_LEN), VM_LEN,
					VM_ALL, 0, 0, 0, &mr, NULL),
			-ETIMEDOUT);
	for (side = 0; side < 2; side++) {
		KUNIT_EXPECT_FALSE(test, ct_is_done(tx[side]));
		ct_expect_no_event(test, p->side[side].eq);
		rx[side] = ct_op(p);
		KUNIT_EXPECT_EQ(test, ct_recv(p, side, rx[side],
					      ct_buf(p, VM_LEN), VM_LEN), 0);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (side = 0; side < 2; side++) {
		KUNIT_EXPECT_EQ(test, tx[side]->wc.err, 0);
		KUNIT_EXPECT_EQ(test, rx[side]->wc.err, 0);
	}
	vm_expect_region(p);
	ct_pair_close(p);
}

static const int vm_modes[] = { CT_SOFTIRQ, CT_DIRECT };

static void vm_mode_desc(const int *mode, char *desc)
{
	strscpy(desc, *mode == CT_DIRECT ? "direct" : "softirq",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vm_mode, vm_modes, vm_mode_desc);

/* What the device does not report the end of is no reason to wait for long. */
static void memory_unreported(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = *(const int *)test->param_value, .caps = VM_CAPS,
		.mr_mode = VM_MODE,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	int side;

	for (side = 0; side < 2; side++) {
		KUNIT_EXPECT_EQ(test, ct_recv(p, !side, ct_op(p),
					      ct_buf(p, VM_LEN), VM_LEN), 0);
		KUNIT_EXPECT_EQ(test, ct_inject(p, side, ct_buf(p, VM_LEN), 8),
				0);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	vm_expect_region(p);
	ct_pair_close(p);
}

#define VM_WRITES	4	/* outstanding at a time, on each side */

/**
 * struct vm_busy - endpoints that have something outstanding all the time
 * @mr: a region of each side
 * @stop: no more
 */
struct vm_busy {
	struct fid_mr	*mr[2];
	bool		stop;
};

static int vm_write(struct ct_op *op)
{
	struct ct_pair *p = op->pair;
	struct vm_busy *busy = p->priv;
	struct fid_mr *mr = busy->mr[!op->side];
	int err;

	atomic_inc(&op->posted);
	err = fi_write(p->side[op->side].ep, op->buf, VM_LEN, NULL, 0,
		       kofi_mr_base(mr), fi_mr_key(mr), op);
	if (err)
		atomic_dec(&op->posted);
	return err;
}

static void vm_again(struct ct_op *op)
{
	struct vm_busy *busy = op->pair->priv;

	if (!READ_ONCE(busy->stop) && !op->wc.err)
		vm_write(op);
}

/* A region can be had where no queue is ever empty, but all move. */
static void memory_busy(struct kunit *test)
{
	struct ct_pair *p = vm_open(test, 0, 0);
	struct vm_busy busy = {};
	struct ct_op *op;
	int i, side;

	if (p->info->ep_attr->protocol == FI_PROTO_IWARP)
		kunit_skip(test, "siw's sender has the CPU while there is work");
	p->priv = &busy;
	for (side = 0; side < 2; side++)
		KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, ct_buf(p, VM_LEN),
						VM_LEN, VM_ALL, 0, 0, 0,
						&busy.mr[side], NULL), 0);
	for (i = 0; i < 2 * VM_WRITES; i++) {
		op = ct_op(p);
		op->side = i % 2;
		op->buf = ct_buf(p, VM_LEN);
		op->hook = vm_again;
		KUNIT_EXPECT_EQ(test, vm_write(op), 0);
	}
	vm_expect_region(p);
	WRITE_ONCE(busy.stop, true);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (side = 0; side < 2; side++)
		KUNIT_EXPECT_EQ(test, fi_close(&busy.mr[side]->fid), 0);
	ct_pair_close(p);
}

static void vm_map(struct ct_pair *p, struct fid_mr *mr, struct ct_op *op)
{
	const struct kvec kv = { ct_buf(p, VM_LEN), VM_LEN };
	const struct fi_msg vec = {
		.msg_iov = &kv, .iov_count = 1, .context = op,
	};

	op->side = 1;
	atomic_inc(&op->posted);
	KUNIT_ASSERT_EQ(p->test, kofi_mr_map(mr, &vec, VM_ALL,
					     FI_MR_SINGLE_USE), 0);
}

/* A peer that invalidates with a key that was, whatever the device does */
static void memory_old_key(struct kunit *test)
{
	struct ct_pair *p = vm_open(test, 0, 1);
	struct fid_mr *mr = kofi_mr_get(p->side[1].ep);
	struct ct_op *first = ct_op(p), *second = ct_op(p), *tx = ct_op(p);
	struct ct_op *rx[2] = { ct_op(p), ct_op(p) };
	u8 *in = ct_buf(p, VM_LEN), *out = ct_buf(p, VM_LEN);
	const struct kvec kv = { out, 8 };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };

	KUNIT_ASSERT_NOT_NULL(test, mr);
	vm_map(p, mr, first);
	msg.inv_key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, kofi_mr_unmap(mr, NULL), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, first));
	vm_map(p, mr, second);
	KUNIT_EXPECT_NE(test, fi_mr_key(mr), msg.inv_key);
	/* the registration has been done when this message comes */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 0, rx[0], in, 8), 0);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, rx[1], in, 8), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, ct_op(p), out, 8), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, rx[0]));
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, tx, &msg, FI_COMPLETION |
					   KOFI_REMOTE_INV), 0);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_ep_drain(p, 1);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, second));
	KUNIT_EXPECT_EQ(test, second->wc.err, ECANCELED);
	ct_pair_close(p);
}

/**
 * struct vm_device - a device whose work requests are looked at
 * @ib: the device
 * @post_send: what it did before
 * @refuse: invalidations that are still to be refused
 * @refused: those that were
 * @reads: reads
 * @sges: their segments
 */
struct vm_device {
	struct ib_device	*ib;
	int			(*post_send)(struct ib_qp *qp,
					     const struct ib_send_wr *wr,
					     const struct ib_send_wr **bad);
	atomic_t		refuse;
	atomic_t		refused;
	atomic_t		reads;
	atomic_t		sges;
};

static struct vm_device vm_device;

static int vm_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad)
{
	if (wr->opcode == IB_WR_LOCAL_INV &&
	    atomic_dec_if_positive(&vm_device.refuse) >= 0) {
		atomic_inc(&vm_device.refused);
		*bad = wr;
		return -ENOMEM;
	}
	if (wr->opcode == IB_WR_RDMA_READ) {
		atomic_inc(&vm_device.reads);
		atomic_add(wr->num_sge, &vm_device.sges);
	}
	return vm_device.post_send(qp, wr, bad);
}

static void vm_restore(void *arg)
{
	vm_device.ib->ops.post_send = vm_device.post_send;
	ib_device_put(vm_device.ib);
}

static void vm_watch(struct kunit *test, int refuse)
{
	vm_device = (struct vm_device) {
		.ib = link_device(ct_device),
		.refuse = ATOMIC_INIT(refuse),
	};
	KUNIT_ASSERT_NOT_NULL(test, vm_device.ib);
	vm_device.post_send = vm_device.ib->ops.post_send;
	vm_device.ib->ops.post_send = vm_post_send;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, vm_restore,
							NULL), 0);
}

static ssize_t vm_read_nothing(struct fid_ep *ep, void *context, void *arg)
{
	struct fid_mr *mr = arg;
	const struct fi_rma_iov rma = {
		.addr = kofi_mr_base(mr), .key = fi_mr_key(mr),
	};
	const struct fi_msg_rma msg = {
		.rma_iov = &rma, .rma_iov_count = 1, .context = context,
	};

	return fi_readmsg(ep, &msg, 0);
}

/* A read of no bytes has no segments: on some devices 0 is 2 GiB in one. */
static void memory_read_nothing(struct kunit *test)
{
	struct ct_pair *p = vm_open(test, 0, 0);
	struct ct_op *op = ct_op(p);
	struct fid_mr *mr;
	ssize_t ret;

	vm_watch(test, 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, ct_buf(p, VM_LEN), VM_LEN,
					VM_ALL, 0, 0, 0, &mr, NULL), 0);
	ret = ct_post_fn(p, 0, op, vm_read_nothing, mr);
	KUNIT_EXPECT_TRUE(test, !ret || ret == -EOPNOTSUPP);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&vm_device.reads), !ret);
	KUNIT_EXPECT_EQ(test, atomic_read(&vm_device.sges), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(p);
}

/* A region whose invalidation the device could not take is of use again. */
static void memory_inv_refused(struct kunit *test)
{
	struct ct_pair *p = vm_open(test, 0, 1);
	struct fid_mr *mr = kofi_mr_get(p->side[1].ep);
	struct ct_op *rx[2] = { ct_op(p), ct_op(p) };
	struct ct_op *ended[2] = { ct_op(p), ct_op(p) };
	u8 *in = ct_buf(p, VM_LEN), *out = ct_buf(p, VM_LEN);
	const struct kvec kv = { out, 8 };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	u64 key;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	vm_watch(test, 1);
	vm_map(p, mr, ended[0]);
	key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, kofi_mr_unmap(mr, NULL), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, ended[0]));
	KUNIT_EXPECT_EQ(test, atomic_read(&vm_device.refused), 1);
	KUNIT_EXPECT_EQ(test, ended[0]->wc.err, 0);
	vm_map(p, mr, ended[1]);
	KUNIT_EXPECT_NE(test, fi_mr_key(mr), key);
	/* the registration has been done when this message comes */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 0, rx[0], in, 8), 0);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, rx[1], in, 8), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, ct_op(p), out, 8), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, rx[0]));
	/* the peer can name the new key, and nothing ends but the region */
	msg.inv_key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, ct_op(p), &msg, FI_COMPLETION |
					   KOFI_REMOTE_INV), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, ended[1]->wc.err, 0);
	KUNIT_EXPECT_TRUE(test, ended[1]->wc.flags & KOFI_REMOTE_INV);
	ct_pair_close(p);
}

#define VM_GUESSES	64

/* A region of its own, or one of the pool */
static struct fid_mr *vm_guess_open(struct ct_pair *p, u8 *buf, bool pool)
{
	const struct kvec kv = { buf, VM_LEN };
	const struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };
	struct fid_mr *mr = NULL;

	if (!pool) {
		KUNIT_ASSERT_EQ(p->test, fi_mr_reg(p->domain, buf, VM_LEN,
						   VM_ALL, 0, 0, 0, &mr, NULL),
				0);
		return mr;
	}
	ct_wait(p, (mr = kofi_mr_get(p->side[0].ep)), CT_TIMEOUT_MS);
	KUNIT_ASSERT_NOT_NULL(p->test, mr);
	KUNIT_ASSERT_EQ(p->test, kofi_mr_map(mr, &vec, VM_ALL, 0), 0);
	return mr;
}

static void vm_guess_close(struct ct_pair *p, struct fid_mr *mr, bool pool)
{
	struct ct_op *end;

	if (!pool) {
		KUNIT_EXPECT_EQ(p->test, fi_close(&mr->fid), 0);
		return;
	}
	end = ct_op(p);
	atomic_inc(&end->posted);
	KUNIT_EXPECT_EQ(p->test, kofi_mr_unmap(mr, &end->cqe), 0);
	KUNIT_EXPECT_TRUE(p->test, ct_wait_done(p, end));
	kofi_mr_put(mr);
}

static const char *const vm_guesses[] = { "registered", "pool" };

static void vm_guess_desc(const char *const *name, char *desc)
{
	strscpy(desc, *name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vm_guess, vm_guesses, vm_guess_desc);

/*
 * What a peer has to know cannot be guessed from the region before: neither address
 * nor key. A random bit is the same so often once in 2^63 runs.
 */
static void memory_guess(struct kunit *test)
{
	const bool pool = test->param_value == &vm_guesses[1];
	struct ct_pair *p = vm_open(test, 0, pool);
	u8 *buf = ct_buf(p, 2 * VM_LEN) + 3;
	u64 first_base = 0, first_key = 0, bases = 0, keys = 0;
	struct fid_mr *mr;
	int i;

	for (i = 0; i < VM_GUESSES; i++) {
		mr = vm_guess_open(p, buf, pool);
		KUNIT_EXPECT_EQ(test, offset_in_page(kofi_mr_base(mr)),
				offset_in_page(buf));
		if (!i) {
			first_base = kofi_mr_base(mr);
			first_key = fi_mr_key(mr);
		}
		bases |= kofi_mr_base(mr) ^ first_base;
		keys |= fi_mr_key(mr) ^ first_key;
		vm_guess_close(p, mr, pool);
	}
	/* each bit above the offset has changed, and of the key's last byte */
	KUNIT_EXPECT_EQ(test, bases, GENMASK_ULL(55, PAGE_SHIFT));
	/* one of a pool is the same again, and counts from a random key on */
	if (pool)
		KUNIT_EXPECT_NE(test, keys & 0xff, 0);
	else
		KUNIT_EXPECT_EQ(test, keys & 0xff, 0xff);
	ct_pair_close(p);
}

/* Pages an iterator says it has, and has not, from there on */
static const loff_t vm_holes[] = { 0, 100, PAGE_SIZE, PAGE_SIZE + 100 };

static void vm_hole_desc(const loff_t *from, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "from-%lld", *from);
}

KUNIT_ARRAY_PARAM(vm_hole, vm_holes, vm_hole_desc);

static void memory_hole(struct kunit *test)
{
	const loff_t from = *(const loff_t *)test->param_value;
	struct ct_pair *p = vm_open(test, 0, 0);
	struct page *page = alloc_page(GFP_KERNEL);
	struct fi_msg msg = { .vec = KOFI_ITER };
	struct ct_op *rx = ct_op(p);
	struct iov_iter iter;
	struct xarray xa;

	xa_init(&xa);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_FALSE(test, xa_is_err(xa_store(&xa, 0, page,
						    GFP_KERNEL)));
	iov_iter_xarray(&iter, ITER_SOURCE, &xa, from, 2 * PAGE_SIZE);
	msg.msg_iter = &iter;
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, ct_op(p), &msg, FI_COMPLETION),
			-EFAULT);
	/* nothing is left of it */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, rx, ct_buf(p, VM_LEN), VM_LEN), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), ct_buf(p, VM_LEN),
				      VM_LEN), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, rx->wc.err, 0);
	ct_pair_close(p);
	xa_destroy(&xa);
	__free_page(page);
}

static struct kunit_case verbs_memory_cases[] = {
	KUNIT_CASE_PARAM(memory_one_stalled, vm_side_gen_params),
	KUNIT_CASE_PARAM(memory_one_closing, vm_side_gen_params),
	KUNIT_CASE_SLOW(memory_bound_stalled),
	KUNIT_CASE_SLOW(memory_all_stalled),
	KUNIT_CASE_PARAM(memory_unreported, vm_mode_gen_params),
	KUNIT_CASE(memory_busy),
	KUNIT_CASE(memory_old_key),
	KUNIT_CASE_PARAM(memory_guess, vm_guess_gen_params),
	KUNIT_CASE(memory_inv_refused),
	KUNIT_CASE(memory_read_nothing),
	KUNIT_CASE_PARAM(memory_hole, vm_hole_gen_params),
	{}
};

static struct kunit_suite verbs_memory_suite = {
	.name = "verbs_memory",
	.suite_init = lo_suite_init,
	.init = link_test_init,
	.test_cases = verbs_memory_cases,
};

kunit_test_suite(verbs_memory_suite);
