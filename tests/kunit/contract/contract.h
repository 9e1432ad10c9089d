/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The contract suite: what every provider promises, asked through the public
 * API alone. Module parameters name the provider and the device, so one suite
 * judges all of them.
 *
 * A test opens a struct ct_pair, two connected endpoints of one domain with
 * their queues, posts with ct_send() and its kin, waits with ct_wait() and
 * ends with ct_pair_close(), which closes everything and then checks the
 * books: each accepted operation completed exactly once (or not at all, where
 * it was to be silent), a refused one never, no callback overlapped another,
 * came too late, in the wrong context or from inside a post.
 */
#ifndef _KOFI_TESTS_CONTRACT_H
#define _KOFI_TESTS_CONTRACT_H

#include <linux/kofi/kofi.h>

#include <kunit/test.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "../backport.h"
#include "../limit.h"
#include "../lo.h"

#define CT_ANSWER_MS	100	/* for an answer over verbs, after the disconnect */
#define CT_TIMEOUT_MS	TEST_LIMIT(10000)	/* nothing that works takes this long */
#define CT_POLL_US	500	/* between looks at a queue that says nothing */
#define CT_OPS		2048	/* operations of one pair */
#define CT_POSTERS	8

extern char *ct_provider;
extern char *ct_device;
extern char *ct_address;
extern unsigned int stress_ms;

/* How the completions of a pair are taken */
enum ct_mode {
	CT_READ,
	CT_DIRECT,
	CT_SOFTIRQ,
	CT_WORKQUEUE,
	CT_MODES
};

struct ct_pair;

/**
 * struct ct_op - an operation the checker knows
 * @cqe: its context in done mode; the operation itself is the one read mode
 *	gives
 * @pair: where it belongs
 * @hook: called in the completion's context, may post; NULL for none
 * @posted: posts that were accepted, or are under way
 * @side: the end it was posted on
 * @silent: not reported if it succeeds
 * @multi: completions without FI_MULTI_RECV are parts of it, and not counted
 * @done: completions that came
 * @seq: its place among the completions of the pair
 * @began: time of the last post
 * @ended: time of the last completion
 * @wc: the last one
 * @buf: memory that belongs to it, for the test's use
 */
struct ct_op {
	struct kofi_cqe	cqe;
	struct ct_pair	*pair;
	void		(*hook)(struct ct_op *op);
	atomic_t	posted;
	int		side;
	bool		silent;
	bool		multi;
	atomic_t	done;
	unsigned int	seq;
	ktime_t		began;
	ktime_t		ended;
	struct kofi_wc	wc;
	void		*buf;
};

/* One completion queue */
struct ct_cq {
	struct ct_pair	*pair;
	struct fid_cq	*cq;
	atomic_t	running;
	bool		closed;
};

/* One end: 0 connects, 1 accepts */
struct ct_side {
	struct ct_pair	*pair;
	struct fid_ep	*ep;
	struct fid_eq	*eq;
	struct fid_av	*av;		/* of endpoints that do not connect */
	struct ct_cq	tx;
	struct ct_cq	rx;
	atomic_t	space;		/* write-space callbacks */
};

/* An event and all that may come with it */
struct ct_event {
	u32			event;
	ssize_t			len;
	struct fi_eq_err_entry	error;
	u8			error_data[256];
	union {
		struct fi_eq_cm_entry	cm;
		struct fi_eq_entry	entry;
		u8			bytes[sizeof(struct fi_eq_cm_entry) + 256];
	};
};

/**
 * struct ct_opts - how a pair is to be
 * @mode: how completions are taken
 * @tx_size: operations the transmit side holds, 0 for the default
 * @rx_size: the same for receives
 * @caps: capabilities, 0 for messages alone
 * @mr_mode: what the consumer lives with in registration
 * @cq_size: of every queue, 0 for one that is large enough for all tests
 * @one_cq: each end has one queue for both directions
 * @selective: bind with FI_SELECTIVE_COMPLETION
 * @locked: done() and posts share a lock, as consumers do
 * @write_space: install the callback on both ends
 * @silence_ms: time-out for silent peers, 0 for the default
 * @handshake_ms: time-out for requests to be complete, 0 for the default
 * @tclass: traffic class of both ends
 * @reclaim_safe: both ends are
 * @mr_pool: regions in the pool of each end
 * @srx_size: side 1 has its receives of a shared context, which has as many
 * @zerocopy_min: bytes from which on pages are not copied; 0 for the default
 * @early: side 0 has an endpoint, bound and not enabled, and ct_pair_connect() does the
 *	rest; of any type
 * @unconnected: nothing is connected; side 0 has an endpoint, bound and not
 *	enabled, and the passive endpoint listens
 */
struct ct_opts {
	enum ct_mode	mode;
	u64		caps;
	int		mr_mode;
	size_t		tx_size;
	size_t		rx_size;
	size_t		cq_size;
	bool		one_cq;
	bool		selective;
	bool		locked;
	bool		write_space;
	unsigned int	silence_ms;
	unsigned int	handshake_ms;
	u32		tclass;
	bool		reclaim_safe;
	size_t		mr_pool;
	size_t		srx_size;
	unsigned int	zerocopy_min;
	bool		early;
	bool		unconnected;
};

struct ct_pair {
	struct kunit		*test;
	struct ct_opts		opts;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;		/* of the domain; NULL for none */
	struct fid_pep		*pep;
	struct sockaddr_storage	addr;		/* of pep */
	struct ct_side		side[2];
	struct fid_ep		*srx;		/* of side 1; NULL for none */
	struct ct_op		*ops;
	atomic_t		used;
	atomic_t		seq;
	wait_queue_head_t	wq;
	struct task_struct	*posters[CT_POSTERS];	/* inside a post now */
	spinlock_t		lock;		/* a consumer's, shared with done() */
	struct list_head	bufs;
	void			(*on_space)(struct ct_pair *p, int side);
	void			*priv;		/* the test's */
	/* what must not happen */
	atomic_t		strays;
	atomic_t		overlaps;
	atomic_t		late;
	atomic_t		inside;
	atomic_t		context;
	/* error entries of operations without a context */
	atomic_t		anonymous;
};

/* objects; errors are returned by ct_pair_setup() and fatal with the others */
struct fi_info *ct_hints(void);
int ct_getinfo(u64 flags, const struct fi_info *hints, struct fi_info **info);
int ct_cq_open(struct ct_pair *p, struct ct_cq *cq);
int ct_ep_open(struct ct_pair *p, int side, struct fi_info *info);
bool ct_rdm(void);
int ct_connected_init(struct kunit *test);
int ct_unconnected_init(struct kunit *test);
int ct_pair_setup(struct ct_pair *p);
int ct_pair_connect(struct ct_pair *p);
void ct_pair_teardown(struct ct_pair *p);
struct ct_pair *ct_pair_open(struct kunit *test, const struct ct_opts *opts);
struct ct_pair *ct_pair_mode(struct kunit *test, enum ct_mode mode);
int ct_ep_close(struct ct_pair *p, int side);
void ct_ep_drain(struct ct_pair *p, int side);
void ct_ep_abort(struct ct_pair *p, int side);
void ct_srx_close(struct ct_pair *p);
void ct_pair_close(struct ct_pair *p);
void *ct_buf(struct ct_pair *p, size_t len);

/* what not every provider can */
bool ct_streams(const struct ct_pair *p);
bool ct_on_device(const struct ct_pair *p);
bool ct_buffers(const struct ct_pair *p);
bool ct_cancels(const struct ct_pair *p);
void ct_need_stalls(const struct ct_pair *p);
size_t ct_cm_data_max(const struct ct_pair *p);
u64 ct_cq_data(const struct ct_pair *p, u64 data);
bool ct_has_flags(const struct ct_pair *p, u64 flags);

/* events */
int ct_next_event(struct fid_eq *eq, struct ct_event *ev, int timeout_ms);
void ct_expect_event(struct kunit *test, struct fid_eq *eq, u32 event);
void ct_expect_no_event(struct kunit *test, struct fid_eq *eq);
void ct_expect_ended(struct ct_pair *p);
void ct_expect_removed(struct ct_pair *p, int n);

/* operations */
struct ct_op *ct_op(struct ct_pair *p);
ssize_t ct_post_send(struct ct_pair *p, int side, struct ct_op *op,
		     struct fi_msg *msg, u64 flags);
ssize_t ct_post_recv(struct ct_pair *p, int side, struct ct_op *op,
		     struct fi_msg *msg, u64 flags);
ssize_t ct_send(struct ct_pair *p, int side, struct ct_op *op, const void *buf,
		size_t len);
ssize_t ct_recv(struct ct_pair *p, int side, struct ct_op *op, void *buf,
		size_t len);
ssize_t ct_inject(struct ct_pair *p, int side, const void *buf, size_t len);
ssize_t ct_post_fn(struct ct_pair *p, int side, struct ct_op *op,
		   ssize_t (*fn)(struct fid_ep *ep, void *context, void *arg),
		   void *arg);

/* completions */
void ct_progress(struct ct_pair *p);
bool ct_wait_done(struct ct_pair *p, const struct ct_op *op);
bool ct_unanswered(const struct ct_op *op);
bool ct_wait_all(struct ct_pair *p);
bool ct_all_done(struct ct_pair *p);
void ct_check_books(struct ct_pair *p);

static inline bool ct_is_done(const struct ct_op *op)
{
	return atomic_read(&op->done) >= atomic_read(&op->posted);
}

static inline bool ct_polls(const struct ct_pair *p)
{
	return p->opts.mode == CT_READ || p->opts.mode == CT_DIRECT;
}

/* A condition that sleeps is reported also when it is true at once. */
#define ct_no_sleep(cond) ({						\
	bool ct_cond;							\
									\
	non_block_start();						\
	ct_cond = (cond);						\
	non_block_end();						\
	ct_cond;							\
})

/**
 * ct_wait - wait for a condition while taking completions
 * @p: the pair
 * @cond: evaluated many times; must not sleep, which the kernel reports
 * @ms: give up after
 *
 * Return: whether it came true.
 */
#define ct_wait(p, cond, ms) ({						\
	const unsigned long ct_end = jiffies + msecs_to_jiffies(ms);	\
	struct ct_pair *ct_p = (p);					\
	bool ct_true;							\
									\
	do {								\
		ct_progress(ct_p);					\
		ct_true = !wait_event_hrtimeout(ct_p->wq,		\
				ct_no_sleep(cond),			\
				(ct_polls(ct_p) ? CT_POLL_US :		\
				 USEC_PER_SEC / 10) * NSEC_PER_USEC);	\
	} while (!ct_true && time_before(jiffies, ct_end));		\
	ct_true;							\
})

/* content */
void ct_pattern(void *buf, size_t len, u32 seed);
bool ct_pattern_ok(const void *buf, size_t len, u32 seed);

/* parameters of suites: all ways to take completions */
GEN_PARAMS(ct_mode_gen_params);

#define ct_mode_of(test) (*(const enum ct_mode *)(test)->param_value)

#endif /* _KOFI_TESTS_CONTRACT_H */
