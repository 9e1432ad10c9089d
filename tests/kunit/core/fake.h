/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A provider without a network, for the tests of the core's queues.
 *
 * Its endpoints are connected ones. They accept operations and complete them
 * either when the test says so (fake_complete()) or by themselves, at random:
 * later, with success or an error, several at a time, in a process, a softirq
 * or a hard interrupt. Receives are cancelled by fi_cancel(). fi_connect()
 * works, or fails if the private data says "no", without a peer.
 */
#ifndef _KOFI_TESTS_FAKE_H
#define _KOFI_TESTS_FAKE_H

#include <linux/kofi/fi_atomic.h>
#include <linux/kofi/lib.h>

#include <kunit/test.h>
#include <linux/hrtimer.h>
#include <linux/prandom.h>
#include <linux/workqueue.h>

#define FAKE_SIZE	16	/* operations per direction, unless asked for */

enum { FAKE_TX, FAKE_RX };

/**
 * struct fake_op - an accepted operation
 * @node: on a list of struct fake_ep
 * @context: what it was posted with
 * @flags: the same
 * @len: the same
 */
struct fake_op {
	struct list_head	node;
	void			*context;
	u64			flags;
	size_t			len;
};

#define FAKE_PIECES	4	/* of an atomic operation */

/**
 * struct fake_atomic - an atomic operation as the provider has got it
 * @call: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC
 * @msg: it; the arrays are the copies that follow
 * @flags: its flags
 * @iov: operands
 * @rma: remote memory
 * @compare: what to compare with
 * @compare_count: pieces of that
 * @result: where the old values go
 * @result_count: pieces of that
 */
struct fake_atomic {
	u64			call;
	struct fi_msg_atomic	msg;
	u64			flags;
	struct fi_ioc		iov[FAKE_PIECES];
	struct fi_rma_ioc	rma[FAKE_PIECES];
	struct fi_ioc		compare[FAKE_PIECES];
	size_t			compare_count;
	struct fi_ioc		result[FAKE_PIECES];
	size_t			result_count;
};

/**
 * struct fake_ep - an endpoint
 * @base: the core's
 * @lock: irqsave, guards the rest
 * @free: records not in use [FAKE_TX, FAKE_RX]
 * @pending: accepted operations, oldest first
 * @ops: all records
 * @closed: refuse posts
 * @engine: complete operations at random
 * @rnd: for that
 * @soft: engine in softirq context
 * @hard: engine in hard interrupt context
 * @work: engine in process context
 * @param: private data of fi_connect()
 * @param_len: bytes of it
 * @connect: ends the connection attempt
 * @atomic: the last atomic operation posted
 * @report: hears of every completion before the core does, or NULL
 * @drains: how often the core has called drain
 * @asks: posts ask whether they may wait
 * @deferred: of these, how many may
 * @sends: how often the core has called send_deferred
 */
struct fake_ep {
	struct kofi_ep		base;
	spinlock_t		lock;	/* guards what follows */
	struct list_head	free[2];
	struct list_head	pending[2];
	struct fake_op		*ops;
	bool			closed;
	bool			engine;
	struct rnd_state	rnd;
	struct hrtimer		soft;
	struct hrtimer		hard;
	struct work_struct	work;
	u8			param[KOFI_CM_DATA_MAX];
	size_t			param_len;
	struct work_struct	connect;
	struct fake_atomic	atomic;
	void			(*report)(void *context, int err);
	int			drains;
	bool			asks;
	int			deferred;
	int			sends;
	int			removed;	/* peers, and the last one's address */
	struct sockaddr_storage	peer;
};

/* A fabric and a domain of the provider */
struct fake_world {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
};

/* suite_init and suite_exit of every suite that uses the provider */
int fake_suite_init(struct kunit_suite *suite);
void fake_suite_exit(struct kunit_suite *suite);

struct fake_world *fake_open(struct kunit *test);
struct fake_world *fake_open_mr(struct kunit *test, int mr_mode);
void fake_close(struct kunit *test, struct fake_world *world);

/* A connected type of endpoint, not enabled, that reports to one completion queue */
struct fake_conn {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
};

struct fake_conn *fake_conn_open(struct kunit *test);
void fake_conn_close(struct kunit *test, struct fake_conn *t);

struct fake_ep *fake_of(struct fid_ep *ep);
void fake_connected(struct kunit *test, struct fid_ep *ep);
bool fake_complete(struct fid_ep *ep, int dir, int err);
void fake_engine(struct fid_ep *ep, u64 seed);

/* what the peer of an endpoint does to our memory, at most step bytes a time */
int fake_peer_begin(struct fid_ep *ep, struct kofi_target *t, u64 key, u64 addr,
		    u64 len, u64 access);
int fake_peer_place(struct fid_ep *ep, struct kofi_target *t, const void *buf,
		    size_t len);
int fake_peer_write(struct fid_ep *ep, u64 key, u64 addr, const void *buf,
		    size_t len, size_t step);
int fake_peer_read(struct fid_ep *ep, u64 key, u64 addr, void *buf, size_t len,
		   size_t step);

struct task_struct *fake_thread(struct kunit *test, int (*fn)(void *arg),
				void *arg);
struct task_struct *fake_thread_on(struct kunit *test, unsigned int n,
				   int (*fn)(void *arg), void *arg);
void fake_asleep(struct task_struct *task);
void fake_starter_asleep(void);
void fake_join(struct task_struct *task);

/**
 * struct fake_gate - lets tasks on several CPUs begin at the same moment
 * @arrived: calls of fake_gate_pass()
 * @tasks: number of the tasks
 */
struct fake_gate {
	atomic_t	arrived ____cacheline_aligned_in_smp;
	u32		tasks;
};

void fake_gate_pass(struct fake_gate *gate);
void fake_spin(int cycles);

void fake_fail_next(int err);	/* the next bind or enable returns it */

#endif /* _KOFI_TESTS_FAKE_H */
