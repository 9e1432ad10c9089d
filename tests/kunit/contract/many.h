/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suite of many connections is made of: its objects, its books
 * (many_books.c), what is posted (many_ops.c), and the connections
 * (many_test.c).
 */
#ifndef _KOFI_TESTS_MANY_H
#define _KOFI_TESTS_MANY_H

#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

#include "contract.h"

#define MANY_WORKERS	CT_MODES
#define MANY_CONNS_MAX	1024
#define MANY_OPS	1152		/* of a worker, more than its queues hold */
#define MANY_BUF	8192		/* memory of an operation, whole pages */
#define MANY_SLOT	512		/* of the window peers write to */
#define MANY_SLOTS	256		/* of an end: more than can be unjudged */
#define MANY_SOURCE	SZ_64K		/* window that is read */
#define MANY_DEPTH	32		/* operations of an endpoint, each way */
#define MANY_CQ		512		/* too small for all of them */
#define MANY_POOL	4		/* regions of an endpoint */
#define MANY_SEGS	4		/* of each: all pages, cut in two places */
#define MANY_SILENT	12		/* silent ones of an end, not known done */
#define MANY_ZC		256		/* not copied, on every other connection */
#define MANY_WHY	512
#define MANY_SOURCE_SEED	77
#define MANY_DEAF_MS	TEST_LIMIT(30000)	/* an end is noticed by then */
#define MANY_ENOUGH_MS	30000		/* everything has happened by then, */
#define MANY_ENOUGH	8000		/* if these are the operations */
#define MANY_WAIT_MS	10		/* for an event, with no connection */
#define MANY_SLOW_MS	TEST_LIMIT(60000)	/* a thread has had its turn by then */

enum many_kind {
	MANY_SEND,
	MANY_TSEND,
	MANY_WRITE,
	MANY_READ,
	MANY_ONESHOT,	/* a region for one use: completes when it ends */
	MANY_UNMAP,	/* the end of one for more */
	MANY_RECV,	/* from here on receives */
	MANY_TRECV,
	MANY_MULTI,
	MANY_PEEK,
	MANY_KINDS
};

/* How a region for one use is to end, unless its endpoint ends before */
enum many_fate {
	MANY_BY_READ,
	MANY_BY_WRITE,
	MANY_BY_PEER,	/* a message invalidates it; or we unmap it */
	MANY_BY_US,
	MANY_FATES
};

/* Life of a record. One that is held has memory in use and is not posted. */
enum {
	MANY_FREE,
	MANY_HELD,
	MANY_POSTED,
	MANY_DONE,
};

struct many;
struct many_op;
struct many_worker;
struct many_conn;

/**
 * struct many_head - what a message begins with that has room for it
 * @seed: of the bytes behind
 * @seq: number of the message among those of its sender that have a head
 * @who: its sender, as many_who()
 * @len: bytes of all of it
 */
struct many_head {
	u32	seed;
	u32	seq;
	u64	who;
	u64	len;
};

/**
 * struct many_region - a region of an endpoint's pool
 * @mr: NULL while it is in the pool
 * @op: whose memory it is; for one use, also what it completes to
 * @once: it is for one use
 * @fate: how that is to be
 * @over: for one use: somebody is about to end it
 * @unmapped: we have
 * @aimed: for more: the peer's operations that name it
 */
struct many_region {
	struct fid_mr	*mr;
	struct many_op	*op;
	bool		once;
	enum many_fate	fate;
	bool		over;
	bool		unmapped;
	unsigned int	aimed;
};

/**
 * struct many_end - one end of a connection
 * @w: its worker
 * @conn: the connection; NULL for the worker's shared receive context
 * @ep: the endpoint, NULL if it is closed
 * @remote: what values of the peer's complete to
 * @outstanding: operations posted that have not completed
 * @closed: nothing may complete any more
 * @selective: transmits without FI_COMPLETION are silent
 * @ends: ends of the connection attempt
 * @downs: ends of the connection
 * @writes: slots of the window it has used
 * @posts: transmits, for their order
 * @sent: messages with a head
 * @acked: those before this one have arrived, the provider said
 * @expect: the next to arrive, at the other end; see many_order()
 * @pardons: messages from there on that will not be seen
 * @silent: operations that complete without a word, oldest first
 * @nr_silent: number of them
 * @regions: of its pool
 */
struct many_end {
	struct many_worker	*w;
	struct many_conn	*conn;
	struct fid_ep		*ep;
	struct kofi_cqe		remote;
	atomic_t		outstanding;
	bool			closed;
	bool			selective;
	int			ends;
	int			downs;
	unsigned int		writes;
	u32			posts;
	u32			sent;
	u32			acked;
	u32			expect;
	u32			pardons;
	struct list_head	silent;
	unsigned int		nr_silent;
	struct many_region	regions[MANY_POOL];
};

enum many_state { MANY_CLOSED, MANY_CONNECTING, MANY_UP, MANY_HALF };

struct many_conn {
	struct many_worker	*w;
	u32			nr;
	u32			generation;
	enum many_state		state;
	bool			ending;	/* anything may fail from now on */
	unsigned long		since;	/* of the state, in jiffies */
	struct many_end		end[2];	/* 0 connects */
};

/**
 * struct many_op - a record
 * @cqe: context of the operation; in read mode that is the record itself
 * @done: on the worker's list of those to judge
 * @node: on the list of free ones, of claims, or of an end's silent ones
 * @state: MANY_FREE, ...
 * @end: where it was posted
 * @kind: what it is
 * @len: bytes
 * @off: read, write: where in the window
 * @flags: it was posted with
 * @src: receive: who it is for, or FI_ADDR_UNSPEC
 * @order: transmit: its place among those of the end
 * @numbered: message: it has a head
 * @seq: and this number
 * @aimed: read, write: it names a region of the peer's, and all of it
 * @silent: it completes only if it fails
 * @cancelled: somebody has tried that
 * @excused: an error may have happened
 * @region: of our own: what it maps or unmaps
 * @key: of it
 * @target: of the peer's, for more than one use: what it names
 * @wc: how it has completed
 * @buf: its memory
 */
struct many_op {
	struct kofi_cqe		cqe;
	struct llist_node	done;
	struct list_head	node;
	atomic_t		state;
	struct many_end		*end;
	enum many_kind		kind;
	size_t			len;
	size_t			off;
	u64			flags;
	fi_addr_t		src;
	u32			order;
	bool			numbered;
	u32			seq;
	bool			aimed;
	bool			silent;
	bool			cancelled;
	bool			excused;
	struct many_region	*region;
	u64			key;
	struct many_region	*target;
	struct kofi_wc		wc;
	u8			*buf;
};

struct many_request {
	u32	nr;
	u32	generation;
};

struct many_worker {
	struct many		*m;
	enum ct_mode		mode;
	struct rnd_state	rnd;
	struct task_struct	*task;
	struct fid_eq		*eq;
	struct fid_cq		*cq[2];
	atomic_t		running[2];
	struct fid_pep		*pep;
	struct sockaddr_storage	addr;
	struct many_end		shared;
	struct fid_mr		*source;
	struct fid_mr		*slots;
	u8			*source_mem;
	u8			*slot_mem;
	size_t			slot_len;	/* a place for anybody behind it */
	u8			*op_mem;
	struct many_conn	*conns;
	unsigned int		nr_conns;
	struct many_op		*ops;
	struct list_head	free;
	struct list_head	claims;
	struct llist_head	done;
	bool			ending;
	/* the books */
	u64			accepted;
	u64			completed;	/* of them, silent ones too */
	u64			again;
	u64			kinds[MANY_KINDS];
	u64			fates[MANY_FATES];
	u64			errors;
	u64			ups;
	u64			injects;
	u64			silent;
	u64			claimed;
	u64			discarded;
	u64			directed;
	u64			zerocopy;	/* bytes */
	u64			values_sent;	/* at most that many arrive */
	u64			values_sure;	/* at least that many */
	atomic64_t		values;
	atomic_t		parts;
	atomic_t		ordered;
	atomic_t		space;
	atomic_t		wrong;
	char			why[MANY_WHY];
};

struct many {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct many_worker	*workers;
	ktime_t			start;
	struct completion	ended;
	atomic_t		left;
};

extern bool stress_faulty;
extern const char *const many_names[MANY_KINDS];

static inline u32 many_below(struct many_worker *w, u32 n)
{
	return prandom_u32_state(&w->rnd) % n;
}

static inline bool many_is_recv(enum many_kind kind)
{
	return kind >= MANY_RECV;
}

static inline struct many_end *many_peer(struct many_end *end)
{
	return &end->conn->end[end == &end->conn->end[0]];
}

/* Where receives of an end are posted */
static inline struct many_end *many_receiver(struct many_end *end)
{
	struct many_end *shared = &end->w->shared;

	return shared->ep && end == &end->conn->end[1] ? shared : end;
}

/* An end as a source address; another one with each connection */
static inline u64 many_who(const struct many_end *end)
{
	const struct many_conn *c = end->conn;

	return (u64)READ_ONCE(c->generation) << 32 | (c->nr * 2) |
	       (end == &c->end[1]);
}

/* books */
__printf(2, 3) void many_wrong(struct many_worker *w, const char *fmt, ...);
void many_fill(u8 *buf, size_t len, u32 seed, const struct many_head *head);
void many_done(struct fid_cq *cq, const struct kofi_wc *wc);
void many_remote_done(struct fid_cq *cq, const struct kofi_wc *wc);
void many_space(struct fid_ep *ep, void *context);
void many_progress(struct many_worker *w);
void many_settle(struct many_end *end, const char *what);
struct many_op *many_hold(struct many_worker *w, struct many_end *end,
			  enum many_kind kind);
void many_post(struct many_op *op);
bool many_posted(struct many_worker *w, struct many_op *op, ssize_t ret);
void many_free(struct many_worker *w, struct many_op *op);
void many_check_books(struct kunit *test, struct many_worker *w);

/* operations */
void many_recv(struct many_worker *w, struct many_end *end,
	       enum many_kind kind);
void many_claims(struct many_worker *w);
void many_release_regions(struct many_end *end);
void many_cancel_for(struct many_worker *w, fi_addr_t src);
bool many_unmap_aimed(struct many_worker *w, struct many_end *end);
void many_traffic(struct many_worker *w, struct many_conn *c);

#endif /* _KOFI_TESTS_MANY_H */
