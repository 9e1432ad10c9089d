// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: the core's, and the device's behind them.
 *
 * Queues of the device
 *
 * The consumer has a queue of the core. Behind it, each direction of an
 * endpoint has a queue of the device, sized for all of the endpoint's work
 * requests. These are entries of a queue that ib_core shares between its users
 * or, if the consumer polls, a separate queue.
 *
 * Contexts
 *
 * Completions are delivered in softirq context. So a callback that may run
 * there is called directly from the completion of the work request
 * (kofi_cq_begin()). A callback that needs a work item runs in one of the
 * core's, because it may sleep: in ib_core's it would delay all other users.
 *
 * Polled queues
 *
 * A polled queue delivers only to the context that polls it: usually the
 * consumer, through vrb_cq_poll(). Code of this module that waits for a
 * completion of the device must poll as well, with the core's queue claimed:
 * vrb_epcq_wait().
 */
#include <kunit/visibility.h>
#include <linux/slab.h>

#include "verbs.h"

/* Most completions of an endpoint that one poll takes */
#define VRB_POLL_BUDGET	64

static int vrb_cq_init(struct kofi_cq *cq, const struct fi_cq_attr *attr,
		       const struct kofi_cq_attr *kattr)
{
	struct vrb_cq *vcq = kofi_cq_priv(cq);

	vcq->poll = kattr->poll;
	vcq->done = kattr->done;
	vcq->cpu = kattr->cpu;
	INIT_LIST_HEAD(&vcq->direct);
	return 0;
}

static void vrb_cq_poll(struct kofi_cq *cq)
{
	struct vrb_cq *vcq = kofi_cq_priv(cq);
	struct vrb_epcq *q;

	list_for_each_entry(q, &vcq->direct, node)
		ib_process_cq_direct(q->ib, VRB_POLL_BUDGET);
}

/**
 * vrb_cq_strerror - describe an error of a completion
 * @prov_errno: enum ib_wc_status
 *
 * Context: any.
 * Return: a constant string.
 */
const char *vrb_cq_strerror(int prov_errno)
{
	return ib_wc_status_msg(prov_errno);
}
EXPORT_SYMBOL_IF_KUNIT(vrb_cq_strerror);

static const struct kofi_cq_ops vrb_cq_ops = {
	.priv_size	= sizeof(struct vrb_cq),
	.open		= vrb_cq_init,
	.poll		= vrb_cq_poll,
	.strerror	= vrb_cq_strerror,
};

static const struct kofi_cq_ops vrb_cq_read_ops = {
	.priv_size	= sizeof(struct vrb_cq),
	.open		= vrb_cq_init,
	.strerror	= vrb_cq_strerror,
};

/* fi_cq_open() and kofi_cq_open() */
int vrb_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		const struct kofi_cq_attr *kattr, struct fid_cq **cq,
		void *context)
{
	return kofi_cq_make(domain, attr, kattr,
			    kattr->done ? &vrb_cq_ops : &vrb_cq_read_ops, cq,
			    context);
}

/* ------------------------------------------------------ an endpoint's part */

/* Choose a vector for completions on @cpu, by ib_core's rule. */
static int vrb_cq_vector(struct ib_device *ib, int cpu)
{
	return cpu < 0 ? -1 : cpu % ib->num_comp_vectors;
}

/**
 * vrb_epcq_open - get entries of a completion queue of the device
 * @q: queue of an endpoint
 * @dom: domain of the endpoint
 * @kcq: the core's queue that gets the completions; NULL: they are only counted
 * @counted: counters are bound. They count without a poll, so the queue is not
 *	polled.
 * @nr: number of entries
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int vrb_epcq_open(struct vrb_epcq *q, struct vrb_domain *dom,
		  struct kofi_cq *kcq, bool counted, unsigned int nr)
{
	struct vrb_cq *vcq = kcq ? kofi_cq_priv(kcq) : NULL;

	*q = (struct vrb_epcq) { .kcq = kcq, .nr = nr };
	q->direct = vcq && vcq->done && vcq->poll == KOFI_POLL_DIRECT &&
		    !counted;
	if (q->direct)
		q->ib = ib_alloc_cq(dom->ib, NULL, nr, 0, IB_POLL_DIRECT);
	else
		q->ib = ib_cq_pool_get(dom->ib, nr,
				       vrb_cq_vector(dom->ib,
						     vcq ? vcq->cpu : -1),
				       IB_POLL_SOFTIRQ);
	if (IS_ERR(q->ib)) {
		int err = PTR_ERR(q->ib);

		q->ib = NULL;
		return err;
	}
	if (q->direct) {
		kofi_cq_claim(kcq);
		list_add_tail(&q->node, &vcq->direct);
		kofi_cq_release(kcq);
	}
	return 0;
}

/**
 * vrb_epcq_move - detach entries of a queue from the core's queue
 * @q: queue of an endpoint, after its last completion. Nothing happens if it
 *	is not open.
 * @to: set to the entries, to be closed
 *
 * Context: process, may sleep.
 */
void vrb_epcq_move(struct vrb_epcq *q, struct vrb_epcq *to)
{
	*to = *q;
	if (!q->ib)
		return;
	if (q->direct && q->kcq) {
		kofi_cq_claim(q->kcq);
		list_del(&q->node);
		q->ib = NULL;
		kofi_cq_release(q->kcq);
	}
	q->ib = NULL;
	to->kcq = NULL;
}

/**
 * vrb_epcq_close - free the entries of a queue
 * @q: queue of an endpoint that no queue pair uses. Nothing happens if it is
 *	not open.
 *
 * Context: process, may sleep.
 */
void vrb_epcq_close(struct vrb_epcq *q)
{
	struct vrb_epcq own;

	vrb_epcq_move(q, &own);
	if (!own.ib)
		return;
	if (own.direct)
		ib_free_cq(own.ib);
	else
		ib_cq_pool_put(own.ib, own.nr);
}

/**
 * vrb_epcq_wait_for - wait for a completion of the queue, with a time limit
 * @q: an open queue
 * @done: completed by the handler of a work request
 * @timeout: jiffies
 *
 * Context: process, may sleep.
 * Return: true if @done was completed.
 */
bool vrb_epcq_wait_for(struct vrb_epcq *q, struct completion *done,
		       unsigned long timeout)
{
	const unsigned long end = jiffies + timeout;

	if (!q->direct)
		return wait_for_completion_timeout(done, timeout);
	do {
		kofi_cq_claim(q->kcq);
		/* if the queue has been closed since, everything was delivered */
		if (q->ib)
			ib_process_cq_direct(q->ib, VRB_POLL_BUDGET);
		kofi_cq_release(q->kcq);
		if (wait_for_completion_timeout(done, 1))
			return true;
	} while (time_before(jiffies, end));
	return false;
}

/**
 * vrb_epcq_wait - wait for a completion of the queue
 * @q: an open queue
 * @done: completed by the handler of a work request
 *
 * Context: process, may sleep.
 */
void vrb_epcq_wait(struct vrb_epcq *q, struct completion *done)
{
	while (!vrb_epcq_wait_for(q, done, HZ))
		;
}

/* The last work request of a queue pair */
struct vrb_drain {
	struct ib_cqe		cqe;
	struct completion	done;
};

static void vrb_drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct vrb_drain, cqe)->done);
}

static void vrb_drain_init(struct vrb_drain *drain)
{
	drain->cqe.done = vrb_drain_done;
	init_completion(&drain->done);
}

/*
 * Drain by the driver's own function. A polled queue is claimed, because the
 * driver polls.
 */
static void vrb_drain_by_driver(struct vrb_epcq *q, struct ib_qp *qp,
				void (*drain)(struct ib_qp *qp))
{
	if (q->direct)
		kofi_cq_claim(q->kcq);
	drain(qp);
	if (q->direct)
		kofi_cq_release(q->kcq);
}

/**
 * vrb_drain_sq - wait until all transmits of a queue pair have been delivered
 * @q: completion queue of the transmits
 * @qp: queue pair in its error state
 *
 * Like ib_drain_sq(), which does not report whether it succeeded, and polls a
 * polled queue only ten times a second.
 *
 * Context: process, may sleep.
 * Return: 0, or the device's error if they have not been delivered.
 */
int vrb_drain_sq(struct vrb_epcq *q, struct ib_qp *qp)
{
	struct vrb_drain drain;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &drain.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int err;

	if (qp->device->ops.drain_sq) {
		vrb_drain_by_driver(q, qp, ib_drain_sq);
		return 0;
	}
	vrb_drain_init(&drain);
	err = ib_post_send(qp, &wr.wr, NULL);
	if (!err)
		vrb_epcq_wait(q, &drain.done);
	return err;
}

/**
 * vrb_drain_rq - wait until all receives of a queue pair have been delivered
 * @q: completion queue of the receives
 * @qp: queue pair in its error state, without a shared receive queue
 *
 * Context: process, may sleep.
 * Return: as vrb_drain_sq().
 */
int vrb_drain_rq(struct vrb_epcq *q, struct ib_qp *qp)
{
	struct vrb_drain drain;
	struct ib_recv_wr wr = { .wr_cqe = &drain.cqe };
	int err;

	if (qp->device->ops.drain_rq) {
		vrb_drain_by_driver(q, qp, ib_drain_rq);
		return 0;
	}
	vrb_drain_init(&drain);
	err = ib_post_recv(qp, &wr, NULL);
	if (!err)
		vrb_epcq_wait(q, &drain.done);
	return err;
}

/* ----------------------------------------------------------------- errors */

/* Errors for consumers; statuses that are not listed are EIO. */
static const int vrb_wc_errors[] = {
	[IB_WC_WR_FLUSH_ERR]		= ECANCELED,
	/* a message was longer than the receive that it matched */
	[IB_WC_LOC_LEN_ERR]		= FI_ETRUNC,
	[IB_WC_LOC_PROT_ERR]		= EFAULT,
	[IB_WC_LOC_ACCESS_ERR]		= EACCES,
	[IB_WC_REM_ACCESS_ERR]		= EACCES,
	/* such as a message for which the peer's receive is too short */
	[IB_WC_REM_INV_REQ_ERR]		= EREMOTEIO,
	[IB_WC_REM_OP_ERR]		= EREMOTEIO,
	[IB_WC_RETRY_EXC_ERR]		= ETIMEDOUT,
	[IB_WC_RESP_TIMEOUT_ERR]	= ETIMEDOUT,
	[IB_WC_RNR_RETRY_EXC_ERR]	= FI_ENORX,
	[IB_WC_REM_ABORT_ERR]		= ECONNABORTED,
};

/**
 * vrb_wc_error - translate the status of a work completion
 * @status: enum ib_wc_status
 *
 * Return: 0 or a positive error code.
 */
int vrb_wc_error(int status)
{
	int err = 0;

	if (status == IB_WC_SUCCESS)
		return 0;
	if (status > 0 && status < ARRAY_SIZE(vrb_wc_errors))
		err = vrb_wc_errors[status];
	return err ? : EIO;
}
EXPORT_SYMBOL_IF_KUNIT(vrb_wc_error);
