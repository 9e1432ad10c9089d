// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many connections at a time, each doing at random whatever an endpoint can
 * do, until it is ended at random and set up anew. A worker per way of taking
 * completions owns its share of the connections, both ends of each, with one
 * event queue, two completion queues and, for some, a shared receive context,
 * so that whatever happens to one connection happens beside the others.
 *
 * The books: each post takes a record, which is the operation's context. A
 * record is free, posted or done; only a completion takes it from posted to
 * done, and the worker then looks at flags, length and contents and frees it,
 * behind all others that are free. A completion that finds anything but a
 * posted record is a stray, and what is posted when everything has been closed
 * is lost. An error is in order only after the worker has begun to end that
 * connection, or for a receive that was cancelled or too short.
 *
 * Mistakes are counted with a sentence about the first ones, since callbacks
 * and workers cannot fail a test. stress_seed makes the choices of a worker
 * the same again (their timing is the machine's).
 */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sched/task.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "contract.h"

#define MANY_WORKERS	CT_MODES
#define MANY_CONNS_MAX	1024
#define MANY_OPS	1152		/* of a worker, more than its queues hold */
#define MANY_BUF	8192		/* memory of an operation */
#define MANY_SLOT	512		/* of the window peers write to */
#define MANY_SLOTS	256		/* of an end: more than can be unjudged */
#define MANY_SOURCE	SZ_64K		/* window that is read */
#define MANY_DEPTH	32		/* operations of an endpoint, each way */
#define MANY_CQ		512		/* too small for all of them */
#define MANY_WHY	512
#define MANY_SOURCE_SEED	77
#define MANY_DEAF_MS	30000		/* an end is noticed by then */
#define MANY_ENOUGH_MS	30000		/* everything has happened by then */

static unsigned int stress_seed;
module_param(stress_seed, uint, 0444);
MODULE_PARM_DESC(stress_seed, "What the choices of the stress suites begin with (default 0, a random one)");

static unsigned int stress_conns = 64;
module_param(stress_conns, uint, 0444);
MODULE_PARM_DESC(stress_conns, "Connections at a time (default 64)");

static bool stress_faulty;
module_param(stress_faulty, bool, 0444);
MODULE_PARM_DESC(stress_faulty, "Connections may break by themselves: faults are injected (default no)");

/* For the scenario that injects faults: read it to know when. */
static atomic_t stress_connected;
module_param_named(stress_connected, stress_connected.counter, int, 0444);
MODULE_PARM_DESC(stress_connected, "Connections the suite of many has had (read only)");

enum many_kind {
	MANY_SEND,
	MANY_TSEND,
	MANY_WRITE,
	MANY_READ,
	MANY_RECV,
	MANY_TRECV,
	MANY_MULTI,
	MANY_KINDS
};

static const char *const many_names[MANY_KINDS] = {
	"send", "tagged send", "write", "read", "receive", "tagged receive",
	"multi-receive",
};

static const u64 many_flags[MANY_KINDS] = {
	[MANY_SEND]	= FI_MSG | FI_SEND,
	[MANY_TSEND]	= FI_TAGGED | FI_SEND,
	[MANY_WRITE]	= FI_RMA | FI_WRITE,
	[MANY_READ]	= FI_RMA | FI_READ,
	[MANY_RECV]	= FI_MSG | FI_RECV,
	[MANY_TRECV]	= FI_TAGGED | FI_RECV,
	[MANY_MULTI]	= FI_MSG | FI_RECV,
};

enum { MANY_FREE, MANY_POSTED, MANY_DONE };

struct many_worker;
struct many_conn;

/* One end of a connection, or the worker's shared context (conn NULL) */
struct many_end {
	struct many_worker	*w;
	struct many_conn	*conn;
	struct fid_ep		*ep;
	struct kofi_cqe		remote;
	atomic_t		outstanding;
	bool			closed;
	int			ends;	/* of the connection attempt */
	int			downs;
	unsigned int		writes;
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

struct many_op {
	struct kofi_cqe		cqe;
	struct llist_node	done;
	struct list_head	node;
	atomic_t		state;
	struct many_end		*end;
	enum many_kind		kind;
	size_t			len;
	size_t			off;	/* read, write: where in the window */
	u64			flags;
	bool			cancelled;
	bool			excused;	/* an error may happen */
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
	struct llist_head	done;
	/* the books */
	u64			accepted;
	u64			completed;
	u64			again;
	u64			kinds[MANY_KINDS];
	u64			errors;
	u64			ups;
	u64			injects;
	u64			values_sent;	/* at most that many arrive */
	u64			values_sure;	/* at least that many */
	atomic64_t		values;
	atomic_t		parts;
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
	ktime_t			until;
	struct completion	ended;
	atomic_t		left;
};

/* A mistake; any context. */
static __printf(2, 3) void many_wrong(struct many_worker *w, const char *fmt,
				      ...)
{
	va_list args;

	if (atomic_inc_return(&w->wrong) != 1)
		return;
	va_start(args, fmt);
	vsnprintf(w->why, sizeof(w->why), fmt, args);
	va_end(args);
}

static u32 many_below(struct many_worker *w, u32 n)
{
	return prandom_u32_state(&w->rnd) % n;
}

/* ------------------------------------------------------------ completions */

static bool many_is_recv(enum many_kind kind)
{
	return kind >= MANY_RECV;
}

/* What a sender wrote begins with the seed of the rest. */
static void many_fill(u8 *buf, size_t len, u32 seed)
{
	size_t head = min(len, sizeof(seed));

	memcpy(buf, &seed, head);
	ct_pattern(buf + head, len - head, seed);
}

static bool many_filled(const u8 *buf, size_t len)
{
	u32 seed;

	if (len <= sizeof(seed))
		return true;
	memcpy(&seed, buf, sizeof(seed));
	return ct_pattern_ok(buf + sizeof(seed), len - sizeof(seed), seed);
}

static void many_part(struct many_worker *w, struct many_op *op,
		      const struct kofi_wc *wc)
{
	const u8 *buf = wc->buf;

	atomic_inc(&w->parts);
	if (!buf || buf < op->buf || buf + wc->len > op->buf + op->len)
		many_wrong(w, "a part of %zu bytes lies outside its buffer",
			   wc->len);
	else if (!many_filled(buf, wc->len))
		many_wrong(w, "a part of %zu bytes is wrong", wc->len);
}

static void many_complete(struct many_worker *w, struct many_op *op,
			  const struct kofi_wc *wc)
{
	bool multi;

	if (op < w->ops || op >= w->ops + MANY_OPS) {
		many_wrong(w, "a completion of nothing: error %d, flags %#llx",
			   wc->err, wc->flags);
		return;
	}
	multi = op->kind == MANY_MULTI && atomic_read(&op->state) == MANY_POSTED;
	if (multi && (wc->len || !wc->err))
		many_part(w, op, wc);
	if (multi && !(wc->flags & FI_MULTI_RECV))
		return;
	op->wc = *wc;
	/* Those of a shared context are not of one connection. */
	op->excused = !op->end->conn || READ_ONCE(op->end->conn->ending);
	if (op->end->closed)
		many_wrong(w, "%s completed after its endpoint was closed",
			   many_names[op->kind]);
	if (atomic_cmpxchg(&op->state, MANY_POSTED, MANY_DONE) != MANY_POSTED) {
		many_wrong(w, "%s completed twice or unasked: error %d",
			   many_names[op->kind], wc->err);
		return;
	}
	atomic_dec(&op->end->outstanding);
	llist_add(&op->done, &w->done);
}

/* A value of the peer's; its upper half is the number of the connection. */
static void many_value(struct many_worker *w, const struct kofi_wc *wc,
		       const struct many_end *end)
{
	u32 nr = wc->data >> 32;

	atomic64_inc(&w->values);
	if (wc->err || wc->flags != (FI_RMA | FI_REMOTE_WRITE |
				     FI_REMOTE_CQ_DATA))
		many_wrong(w, "a value with error %d, flags %#llx", wc->err,
			   wc->flags);
	if (nr >= w->nr_conns || (end && end->conn->nr != nr))
		many_wrong(w, "value %#llx came to the wrong end", wc->data);
}

static struct many_worker *many_enter(struct fid_cq *cq)
{
	struct many_worker *w = cq->fid.context;

	if (atomic_inc_return(&w->running[cq == w->cq[1]]) != 1)
		many_wrong(w, "two callbacks of a queue at a time");
	return w;
}

static void many_leave(struct many_worker *w, struct fid_cq *cq)
{
	atomic_dec(&w->running[cq == w->cq[1]]);
}

static void many_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct many_worker *w = many_enter(cq);

	many_complete(w, container_of(wc->cqe, struct many_op, cqe), wc);
	many_leave(w, cq);
}

static void many_remote_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct many_end *end = container_of(wc->cqe, struct many_end, remote);
	struct many_worker *w = many_enter(cq);

	if (end->closed)
		many_wrong(w, "a value after its endpoint was closed");
	many_value(w, wc, end);
	many_leave(w, cq);
}

static void many_space(struct fid_ep *ep, void *context)
{
	struct many_end *end = context;

	atomic_inc(&end->w->space);
	if (end->closed)
		many_wrong(end->w, "write space after its endpoint was closed");
}

static void many_read_error(struct many_worker *w, struct fid_cq *cq)
{
	struct fi_cq_err_entry e = {};
	struct kofi_wc wc;

	if (fi_cq_readerr(cq, &e, 0) != 1) {
		many_wrong(w, "an error that cannot be read");
		return;
	}
	wc = (struct kofi_wc){
		.op_context = e.op_context, .err = e.err, .flags = e.flags,
		.len = e.len, .olen = e.olen, .buf = e.buf, .data = e.data,
		.tag = e.tag,
	};
	if (e.op_context)
		many_complete(w, e.op_context, &wc);
	else if (!w->injects)
		many_wrong(w, "error %d of an inject nobody posted", e.err);
}

static void many_read(struct many_worker *w, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t n, i;

	while ((n = fi_cq_read(cq, e, ARRAY_SIZE(e))) != -EAGAIN) {
		if (n == -FI_EAVAIL) {
			many_read_error(w, cq);
			continue;
		}
		for (i = 0; i < n; i++) {
			const struct kofi_wc wc = {
				.op_context = e[i].op_context,
				.flags = e[i].flags, .len = e[i].len,
				.buf = e[i].buf, .data = e[i].data,
				.tag = e[i].tag,
			};

			if (e[i].op_context)
				many_complete(w, e[i].op_context, &wc);
			else
				many_value(w, &wc, NULL);
		}
	}
}

static void many_check_contents(struct many_worker *w, struct many_op *op)
{
	const char *name = many_names[op->kind];

	switch (op->kind) {
	case MANY_RECV:
	case MANY_TRECV:
		if (op->wc.len > op->len)
			many_wrong(w, "%s of %zu bytes got %zu", name, op->len,
				   op->wc.len);
		else if (!many_filled(op->buf, op->wc.len))
			many_wrong(w, "%s of %zu bytes is wrong", name,
				   op->wc.len);
		break;
	case MANY_READ:
		if (memcmp(op->buf, w->source_mem + op->off, op->len))
			many_wrong(w, "read of %zu bytes is wrong", op->len);
		break;
	case MANY_WRITE:
		if (op->flags & FI_DELIVERY_COMPLETE &&
		    memcmp(op->buf, w->slot_mem + op->off, op->len))
			many_wrong(w, "write of %zu bytes did not arrive",
				   op->len);
		break;
	default:
		break;
	}
}

/* May it have failed like this */
static bool many_excused(const struct many_op *op)
{
	if (op->wc.err == FI_ETRUNC)
		return many_is_recv(op->kind) && op->len < MANY_BUF;
	if (op->cancelled && op->wc.err == FI_ECANCELED)
		return true;
	return op->excused || stress_faulty;
}

/* A record that is done is the worker's: judge it and free it. */
static void many_judge(struct many_worker *w, struct many_op *op)
{
	const u64 extra = many_is_recv(op->kind) ?
			  FI_REMOTE_CQ_DATA | FI_MULTI_RECV : 0;
	const char *name = many_names[op->kind];
	const struct kofi_wc *wc = &op->wc;

	w->completed++;
	if (!wc->err) {
		w->kinds[op->kind]++;
		if ((wc->flags & ~extra) != many_flags[op->kind])
			many_wrong(w, "%s has flags %#llx", name, wc->flags);
		many_check_contents(w, op);
		if (op->kind == MANY_WRITE && op->flags & FI_REMOTE_CQ_DATA &&
		    op->flags & FI_DELIVERY_COMPLETE)
			w->values_sure++;
	} else {
		w->errors++;
		if (!many_excused(op))
			many_wrong(w, "%s of %zu bytes failed with %d", name,
				   op->len, wc->err);
	}
	atomic_set(&op->state, MANY_FREE);
	list_add_tail(&op->node, &w->free);
}

static void many_progress(struct many_worker *w)
{
	struct many_op *op, *next;
	struct llist_node *done;
	int i;

	for (i = 0; i < ARRAY_SIZE(w->cq); i++) {
		if (w->mode == CT_READ)
			many_read(w, w->cq[i]);
		else if (w->mode == CT_DIRECT)
			kofi_cq_poll(w->cq[i], 64);
	}
	done = llist_reverse_order(llist_del_all(&w->done));
	llist_for_each_entry_safe(op, next, done, done)
		many_judge(w, op);
}

/* ------------------------------------------------------------------ posting */

static struct many_op *many_op(struct many_worker *w, struct many_end *end,
			       enum many_kind kind)
{
	struct many_op *op;

	op = list_first_entry_or_null(&w->free, struct many_op, node);
	if (!op)
		return NULL;
	list_del(&op->node);
	op->end = end;
	op->kind = kind;
	op->len = MANY_BUF;
	op->flags = 0;
	op->cancelled = false;
	atomic_inc(&end->outstanding);
	atomic_set_release(&op->state, MANY_POSTED);
	return op;
}

/* What the post has returned */
static void many_posted(struct many_worker *w, struct many_op *op, ssize_t ret)
{
	const char *name = many_names[op->kind];

	if (!ret) {
		w->accepted++;
		return;
	}
	if (atomic_cmpxchg(&op->state, MANY_POSTED, MANY_FREE) != MANY_POSTED) {
		many_wrong(w, "%s was refused with %zd and completed", name,
			   ret);
		return;
	}
	atomic_dec(&op->end->outstanding);
	list_add_tail(&op->node, &w->free);
	if (ret == -EAGAIN)
		w->again++;
	else if (ret != -ESHUTDOWN && ret != -ENOTCONN)
		many_wrong(w, "%s of %zu bytes was refused with %zd", name,
			   op->len, ret);
}

static size_t many_len(struct many_worker *w, size_t max)
{
	return many_below(w, 4) ? many_below(w, 200) : many_below(w, max + 1);
}

static u64 many_level(struct many_worker *w)
{
	static const u64 levels[] = {
		0, 0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
		FI_DELIVERY_COMPLETE,
	};
	u64 more = many_below(w, 4) ? 0 : FI_MORE;

	return levels[many_below(w, ARRAY_SIZE(levels))] | more |
	       FI_COMPLETION;
}

static u64 many_data(struct many_worker *w, const struct many_end *end)
{
	return (u64)end->conn->nr << 32 | prandom_u32_state(&w->rnd);
}

static void many_send(struct many_worker *w, struct many_end *end, bool tagged)
{
	struct many_op *op = many_op(w, end, tagged ? MANY_TSEND : MANY_SEND);
	struct fi_msg_tagged tmsg;
	struct fi_msg msg;
	struct kvec iov;

	if (!op)
		return;
	op->len = many_len(w, MANY_BUF);
	op->flags = many_level(w);
	if (!many_below(w, 4))
		op->flags |= FI_REMOTE_CQ_DATA;
	many_fill(op->buf, op->len, prandom_u32_state(&w->rnd));
	iov = (struct kvec){ .iov_base = op->buf, .iov_len = op->len };
	if (tagged) {
		tmsg = (struct fi_msg_tagged){
			.msg_iov = &iov, .iov_count = 1, .context = op,
			.tag = many_below(w, 3), .data = many_data(w, end),
		};
		many_posted(w, op, fi_tsendmsg(end->ep, &tmsg, op->flags));
	} else {
		msg = (struct fi_msg){
			.msg_iov = &iov, .iov_count = 1, .context = op,
			.data = many_data(w, end),
		};
		many_posted(w, op, fi_sendmsg(end->ep, &msg, op->flags));
	}
}

static void many_inject(struct many_worker *w, struct many_end *end)
{
	u64 key = fi_mr_key(w->slots);
	u8 buf[128];
	size_t len = many_below(w, sizeof(buf) + 1);
	ssize_t ret;

	many_fill(buf, len, prandom_u32_state(&w->rnd));
	switch (many_below(w, 5)) {
	case 0:
		ret = fi_inject(end->ep, buf, len, 0);
		break;
	case 1:
		ret = fi_injectdata(end->ep, buf, len, many_data(w, end), 0);
		break;
	case 2:
		ret = fi_tinject(end->ep, buf, len, 0, many_below(w, 3));
		break;
	case 3:
		ret = fi_inject_write(end->ep, buf, len, 0,
				      kofi_mr_base(w->slots) + w->slot_len,
				      key);
		break;
	default:
		ret = fi_inject_writedata(end->ep, buf, len, many_data(w, end),
					  0, kofi_mr_base(w->slots) +
					  w->slot_len, key);
		w->values_sent += !ret;
		break;
	}
	w->injects += !ret;
	if (ret && ret != -EAGAIN && ret != -ESHUTDOWN && ret != -ENOTCONN)
		many_wrong(w, "inject of %zu bytes was refused with %zd", len,
			   ret);
}

/* In one to three remote pieces, one behind the other */
static int many_pieces(struct many_worker *w, struct fi_rma_iov *rma, u64 addr,
		       u64 key, size_t len)
{
	int i, n = 1 + many_below(w, 3);
	size_t piece;

	for (i = 0; i < n; i++) {
		piece = i == n - 1 ? len : many_below(w, len + 1);
		rma[i] = (struct fi_rma_iov){
			.addr = addr, .len = piece, .key = key,
		};
		addr += piece;
		len -= piece;
	}
	return n;
}

/*
 * Where the next write of an end goes. Its writes arrive in order, and nothing
 * arrives after both ends have been closed, so that what is there when one
 * completes can only be its own.
 */
static size_t many_slot(struct many_end *end)
{
	size_t nr = end->conn->nr * 2 + (end == &end->conn->end[1]);

	return (nr * MANY_SLOTS + end->writes++ % MANY_SLOTS) * MANY_SLOT;
}

static void many_write(struct many_worker *w, struct many_end *end)
{
	struct many_op *op = many_op(w, end, MANY_WRITE);
	struct fi_msg_rma msg = { .iov_count = 1, .context = op };
	struct fi_rma_iov rma[3];
	struct kvec iov;
	ssize_t ret;

	if (!op)
		return;
	op->len = many_len(w, MANY_SLOT);
	op->off = many_slot(end);
	op->flags = many_level(w);
	if (!many_below(w, 3))
		op->flags |= FI_REMOTE_CQ_DATA;
	many_fill(op->buf, op->len, prandom_u32_state(&w->rnd));
	iov = (struct kvec){ .iov_base = op->buf, .iov_len = op->len };
	msg.msg_iov = &iov;
	msg.data = many_data(w, end);
	msg.rma_iov = rma;
	msg.rma_iov_count = many_pieces(w, rma, kofi_mr_base(w->slots) +
					op->off, fi_mr_key(w->slots), op->len);
	ret = fi_writemsg(end->ep, &msg, op->flags);
	if (!ret && op->flags & FI_REMOTE_CQ_DATA)
		w->values_sent++;
	many_posted(w, op, ret);
}

static void many_rma_read(struct many_worker *w, struct many_end *end)
{
	struct many_op *op = many_op(w, end, MANY_READ);
	struct fi_msg_rma msg = { .iov_count = 1, .context = op };
	struct fi_rma_iov rma[3];
	struct kvec iov;

	if (!op)
		return;
	op->len = many_len(w, MANY_BUF);
	op->off = many_below(w, MANY_SOURCE - MANY_BUF);
	memset(op->buf, 0, op->len);
	iov = (struct kvec){ .iov_base = op->buf, .iov_len = op->len };
	msg.msg_iov = &iov;
	msg.rma_iov = rma;
	msg.rma_iov_count = many_pieces(w, rma, kofi_mr_base(w->source) +
					op->off, fi_mr_key(w->source),
					op->len);
	many_posted(w, op, fi_readmsg(end->ep, &msg, FI_COMPLETION |
				      (many_below(w, 8) ? 0 : FI_FENCE)));
}

/* Where receives of an end are posted */
static struct many_end *many_receiver(struct many_end *end)
{
	struct many_end *shared = &end->w->shared;

	return shared->ep && end == &end->conn->end[1] ? shared : end;
}

static void many_recv(struct many_worker *w, struct many_end *end,
		      enum many_kind kind)
{
	struct many_end *to = many_receiver(end);
	struct many_op *op = many_op(w, to, kind);
	struct fi_msg msg = { .iov_count = 1, .context = op };
	struct kvec iov;

	if (!op)
		return;
	if (kind != MANY_MULTI && !many_below(w, 16))
		op->len = many_below(w, MANY_BUF);	/* too short, perhaps */
	if (kind == MANY_MULTI)
		op->len = MANY_BUF - 1;			/* anything is */
	memset(op->buf, 0, op->len);
	iov = (struct kvec){ .iov_base = op->buf, .iov_len = op->len };
	msg.msg_iov = &iov;
	if (kind == MANY_TRECV)
		many_posted(w, op, fi_trecv(to->ep, op->buf, op->len, NULL,
					    FI_ADDR_UNSPEC, many_below(w, 3),
					    many_below(w, 3) ? ~0ULL : 0, op));
	else
		many_posted(w, op, fi_recvmsg(to->ep, &msg, FI_COMPLETION |
					      (kind == MANY_MULTI ?
					       FI_MULTI_RECV : 0)));
}

static void many_cancel(struct many_worker *w)
{
	struct many_op *op = &w->ops[many_below(w, MANY_OPS)];
	int ret;

	if (!many_is_recv(op->kind) || atomic_read(&op->state) != MANY_POSTED)
		return;
	op->cancelled = true;
	ret = fi_cancel(&op->end->ep->fid, op);
	if (ret && ret != -ENOENT)
		many_wrong(w, "cancelling gave %d", ret);
}

/* -------------------------------------------------------------- connections */

static void many_state(struct many_conn *c, enum many_state state)
{
	c->state = state;
	c->since = jiffies;
}

static int many_end_open(struct many_end *end, struct fi_info *info)
{
	struct many_worker *w = end->w;
	int err;

	end->closed = false;
	end->ends = 0;
	end->downs = 0;
	end->remote.done = many_remote_done;
	err = fi_endpoint(w->m->domain, info, &end->ep, end);
	if (err)
		return err;
	err = fi_ep_bind(end->ep, &w->eq->fid, 0);
	err = err ?: fi_ep_bind(end->ep, &w->cq[0]->fid, FI_TRANSMIT);
	err = err ?: fi_ep_bind(end->ep, &w->cq[1]->fid, FI_RECV);
	if (!err && many_receiver(end) != end)
		err = fi_ep_bind(end->ep, &w->shared.ep->fid, 0);
	err = err ?: kofi_ep_remote_cqe(end->ep, &end->remote);
	return err ?: kofi_ep_write_space(end->ep, many_space);
}

static void many_end_close(struct many_end *end)
{
	struct many_worker *w = end->w;
	int err;

	if (!end->ep)
		return;
	err = fi_close(&end->ep->fid);
	if (err) {
		many_wrong(w, "closing an endpoint gave %d", err);
		return;
	}
	/* What is read survives the endpoint, callbacks do not. */
	if (w->mode == CT_READ)
		many_progress(w);
	if (atomic_read(&end->outstanding))
		many_wrong(w, "%d operations outlive their endpoint",
			   atomic_read(&end->outstanding));
	WRITE_ONCE(end->closed, true);
	end->ep = NULL;
}

static void many_conn_close(struct many_conn *c)
{
	WRITE_ONCE(c->ending, true);
	many_end_close(&c->end[0]);
	many_end_close(&c->end[1]);
	many_progress(c->w);
	many_state(c, MANY_CLOSED);
}

static void many_connect(struct many_conn *c)
{
	struct many_worker *w = c->w;
	struct many_request req = {
		.nr = c->nr, .generation = ++c->generation,
	};
	int err;

	WRITE_ONCE(c->ending, false);
	err = many_end_open(&c->end[0], w->m->info);
	err = err ?: fi_connect(c->end[0].ep, &w->addr, &req, sizeof(req));
	if (!err) {
		many_state(c, MANY_CONNECTING);
		return;
	}
	if (!stress_faulty)
		many_wrong(w, "connecting gave %d", err);
	many_conn_close(c);
}

static void many_request(struct many_worker *w, struct fi_info *info,
			 const struct many_request *req, size_t len)
{
	struct many_conn *c;
	int err;

	if (len < sizeof(*req) || req->nr >= w->nr_conns) {
		many_wrong(w, "a request with %zu bytes of data", len);
		return;
	}
	c = &w->conns[req->nr];
	if (c->generation != req->generation || c->end[1].ep ||
	    !many_below(w, 16)) {
		/* one of before, whose sender has gone, or one by chance */
		if (c->generation == req->generation)
			WRITE_ONCE(c->ending, true);
		fi_reject(w->pep, info->handle, NULL, 0);
		return;
	}
	info->tx_attr->size = MANY_DEPTH;
	info->rx_attr->size = MANY_DEPTH;
	err = many_end_open(&c->end[1], info);
	err = err ?: fi_accept(c->end[1].ep, NULL, 0);
	if (!err)
		return;
	if (!c->ending && !stress_faulty)
		many_wrong(w, "accepting gave %d", err);
	many_conn_close(c);
}

/* An end that is no more is heard of once. */
static void many_ended(struct many_end *end, int err)
{
	struct many_conn *c = end->conn;

	if (!c->ending && !stress_faulty)
		many_wrong(end->w, "a connection ended by itself, error %d",
			   err);
	WRITE_ONCE(c->ending, true);
	if (c->state != MANY_HALF)
		many_state(c, MANY_HALF);
}

static void many_event(struct many_worker *w, u32 event,
		       const struct fi_eq_cm_entry *cm, size_t len)
{
	struct many_end *end = cm->fid->context;

	switch (event) {
	case FI_CONNREQ:
		many_request(w, cm->info, (const void *)cm->data,
			     len - sizeof(*cm));
		fi_freeinfo(cm->info);
		break;
	case FI_CONNECTED:
		if (end->ends++)
			many_wrong(w, "a second end of an attempt");
		if (end->conn->end[0].ends && end->conn->end[1].ends &&
		    end->conn->state == MANY_CONNECTING) {
			many_state(end->conn, MANY_UP);
			w->ups++;
			atomic_inc(&stress_connected);
		}
		break;
	case FI_SHUTDOWN:
		if (!end->ends || end->downs++)
			many_wrong(w, "an end of connection out of turn");
		many_ended(end, 0);
		break;
	default:
		many_wrong(w, "event %u", event);
	}
}

static void many_events(struct many_worker *w)
{
	union {
		struct fi_eq_cm_entry	cm;
		u8			bytes[sizeof(struct fi_eq_cm_entry) +
					      sizeof(struct many_request)];
	} ev;
	struct fi_eq_err_entry error;
	struct many_end *end;
	u32 event;
	ssize_t n;

	while ((n = fi_eq_read(w->eq, &event, &ev, sizeof(ev), 0)) != -EAGAIN) {
		if (n > 0) {
			many_event(w, event, &ev.cm, n);
			continue;
		}
		error = (struct fi_eq_err_entry){};
		if (n != -FI_EAVAIL || fi_eq_readerr(w->eq, &error, 0) < 0) {
			many_wrong(w, "reading events gave %zd", n);
			return;
		}
		if (error.fid == &w->pep->fid || error.fid == &w->eq->fid) {
			if (!stress_faulty)
				many_wrong(w, "error %d of the listener",
					   error.err);
			continue;
		}
		end = error.fid->context;
		if (end->ends++)
			many_wrong(w, "a second end of an attempt");
		end->downs++;
		many_ended(end, error.err);
	}
}

/* End a connection in one of the ways there are. */
static void many_break(struct many_worker *w, struct many_conn *c)
{
	struct many_end *end = &c->end[many_below(w, 2)];
	u8 byte = 0;
	ssize_t ret = 0;

	WRITE_ONCE(c->ending, true);
	switch (many_below(w, 6)) {
	case 0:
		many_end_close(end);
		break;
	case 1:
		fi_shutdown(end->ep, 0);
		break;
	case 2:
		kofi_ep_drain(end->ep);
		if (w->mode == CT_READ)
			many_progress(w);
		if (atomic_read(&end->outstanding))
			many_wrong(w, "%d operations outlive a drain",
				   atomic_read(&end->outstanding));
		break;
	case 3:
		/* a key nobody has: the other side closes */
		ret = fi_inject_write(end->ep, &byte, 1, 0, 0,
				      fi_mr_key(w->slots) ^ BIT_ULL(40));
		break;
	case 4:
		/* beyond the end of the region */
		ret = fi_inject_write(end->ep, &byte, 1, 0,
				      kofi_mr_base(w->source) + MANY_SOURCE,
				      fi_mr_key(w->source));
		break;
	default:
		many_conn_close(c);
		return;
	}
	if (ret)
		fi_shutdown(end->ep, 0);	/* there was no room for it */
	many_state(c, MANY_HALF);
}

static void many_traffic(struct many_worker *w, struct many_conn *c)
{
	struct many_end *end = &c->end[many_below(w, 2)];

	switch (many_below(w, 16)) {
	case 0 ... 2:
		many_recv(w, end, MANY_RECV);
		break;
	case 3 ... 5:
		many_recv(w, end, MANY_TRECV);
		break;
	case 6:
		many_recv(w, end, MANY_MULTI);
		break;
	case 7 ... 8:
		many_send(w, end, false);
		break;
	case 9 ... 10:
		many_send(w, end, true);
		break;
	case 11:
		many_inject(w, end);
		break;
	case 12 ... 13:
		many_write(w, end);
		break;
	case 14:
		many_rma_read(w, end);
		break;
	default:
		many_cancel(w);
		break;
	}
}

/* Is one end gone, and the other has heard of it or need not */
static bool many_both_over(const struct many_conn *c)
{
	int i;

	for (i = 0; i < 2; i++)
		if (c->end[i].ep && c->end[i].ends && !c->end[i].downs)
			return false;
	return true;
}

/* What is left of a connection takes all messages, and then hears the end. */
static void many_half(struct many_worker *w, struct many_conn *c)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!c->end[i].ep)
			continue;
		many_recv(w, &c->end[i], MANY_RECV);
		many_recv(w, &c->end[i], MANY_TRECV);
	}
	if (many_both_over(c) || !many_below(w, 400)) {
		many_conn_close(c);
	} else if (time_after(jiffies, c->since +
			      msecs_to_jiffies(MANY_DEAF_MS))) {
		many_wrong(w, "the end of a connection was not noticed");
		many_conn_close(c);
	}
}

static void many_step(struct many_worker *w)
{
	struct many_conn *c = &w->conns[many_below(w, w->nr_conns)];
	int i;

	switch (c->state) {
	case MANY_CLOSED:
		many_connect(c);
		break;
	case MANY_CONNECTING:
		if (!many_below(w, 2000)) {
			many_conn_close(c);
		} else if (time_after(jiffies, c->since +
				      msecs_to_jiffies(MANY_DEAF_MS))) {
			many_wrong(w, "an attempt to connect has no end");
			many_conn_close(c);
		}
		break;
	case MANY_UP:
		for (i = 0; i < 8; i++)
			many_traffic(w, c);
		if (!many_below(w, 150))
			many_break(w, c);
		break;
	case MANY_HALF:
		many_half(w, c);
		break;
	}
}

static int many_work(void *arg)
{
	struct many_worker *w = arg;
	unsigned int i;

	while (ktime_before(ktime_get(), w->m->until) &&
	       !atomic_read(&w->wrong)) {
		for (i = 0; i < 16; i++)
			many_step(w);
		many_events(w);
		many_progress(w);
		cond_resched();
	}
	for (i = 0; i < w->nr_conns; i++)
		many_conn_close(&w->conns[i]);
	if (w->shared.ep)
		many_end_close(&w->shared);
	many_progress(w);
	if (atomic_dec_and_test(&w->m->left))
		complete(&w->m->ended);
	return 0;
}

/* ------------------------------------------------------------------ objects */

static int many_open_cqs(struct many_worker *w)
{
	static const enum kofi_poll polls[CT_MODES] = {
		[CT_DIRECT]	= KOFI_POLL_DIRECT,
		[CT_SOFTIRQ]	= KOFI_POLL_SOFTIRQ,
		[CT_WORKQUEUE]	= KOFI_POLL_WORKQUEUE,
	};
	const struct kofi_cq_attr done = {
		.poll = polls[w->mode], .cpu = -1, .done = true,
	};
	struct fi_cq_attr attr = {
		.size = MANY_CQ, .format = FI_CQ_FORMAT_TAGGED,
	};
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(w->cq) && !err; i++)
		err = kofi_cq_open(w->m->domain, &attr,
				   w->mode == CT_READ ? NULL : &done, &w->cq[i],
				   w);
	return err;
}

static int many_listen(struct many_worker *w)
{
	struct fi_info *hints = fi_dupinfo(w->m->info), *info = NULL;
	size_t len = sizeof(w->addr);
	int err = -ENOMEM;

	if (!hints)
		return err;
	kfree(hints->dest_addr);
	hints->dest_addr = NULL;
	hints->dest_addrlen = 0;
	err = ct_getinfo(FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	err = err ?: fi_passive_ep(w->m->fabric, info, &w->pep, w);
	err = err ?: fi_pep_bind(w->pep, &w->eq->fid, 0);
	err = err ?: fi_listen(w->pep);
	err = err ?: fi_getname(&w->pep->fid, &w->addr, &len);
	fi_freeinfo(info);
	return err;
}

static int many_register(struct many_worker *w)
{
	struct fid_domain *domain = w->m->domain;
	size_t slots;
	int err;

	w->slot_len = w->nr_conns * 2 * MANY_SLOTS * MANY_SLOT;
	slots = w->slot_len + MANY_SLOT;
	w->source_mem = kvmalloc(MANY_SOURCE, GFP_KERNEL);
	w->slot_mem = kvzalloc(slots, GFP_KERNEL);
	if (!w->source_mem || !w->slot_mem)
		return -ENOMEM;
	ct_pattern(w->source_mem, MANY_SOURCE, MANY_SOURCE_SEED);
	err = fi_mr_reg(domain, w->source_mem, MANY_SOURCE, FI_REMOTE_READ, 0,
			0, 0, &w->source, w);
	return err ?: fi_mr_reg(domain, w->slot_mem, slots, FI_REMOTE_WRITE, 0,
				0, 0, &w->slots, w);
}

static int many_open_worker(struct many_worker *w)
{
	struct fi_eq_attr eq_attr = { .size = 4 * stress_conns };
	struct fi_rx_attr rx_attr = { .size = 8 * MANY_DEPTH };
	unsigned int i;
	int err;

	INIT_LIST_HEAD(&w->free);
	init_llist_head(&w->done);
	w->ops = kvcalloc(MANY_OPS, sizeof(*w->ops), GFP_KERNEL);
	w->op_mem = kvmalloc_array(MANY_OPS, MANY_BUF, GFP_KERNEL);
	w->conns = kvcalloc(w->nr_conns, sizeof(*w->conns), GFP_KERNEL);
	if (!w->ops || !w->op_mem || !w->conns)
		return -ENOMEM;
	for (i = 0; i < MANY_OPS; i++) {
		w->ops[i].cqe.done = many_done;
		w->ops[i].buf = w->op_mem + i * MANY_BUF;
		list_add_tail(&w->ops[i].node, &w->free);
	}
	for (i = 0; i < w->nr_conns; i++) {
		struct many_conn *c = &w->conns[i];

		c->w = w;
		c->nr = i;
		c->end[0].w = w;
		c->end[0].conn = c;
		c->end[1].w = w;
		c->end[1].conn = c;
	}
	err = fi_eq_open(w->m->fabric, &eq_attr, &w->eq, w);
	err = err ?: many_open_cqs(w);
	err = err ?: many_register(w);
	err = err ?: many_listen(w);
	if (err || w->mode == CT_DIRECT || w->mode == CT_WORKQUEUE)
		return err;
	w->shared.w = w;
	err = fi_srx_context(w->m->domain, &rx_attr, &w->shared.ep, &w->shared);
	return err ?: fi_ep_bind(w->shared.ep, &w->cq[1]->fid, FI_RECV);
}

static void many_close(struct kunit *test, struct fi_fid *fid,
		       const char *what)
{
	KUNIT_EXPECT_EQ_MSG(test, 0, fi_close(fid), "%s", what);
}

static void many_close_worker(struct many_worker *w)
{
	struct kunit *test = w->m->test;
	int i;

	if (w->shared.ep)
		many_close(test, &w->shared.ep->fid, "shared context");
	if (w->pep)
		many_close(test, &w->pep->fid, "passive endpoint");
	if (w->source)
		many_close(test, &w->source->fid, "region");
	if (w->slots)
		many_close(test, &w->slots->fid, "region");
	for (i = 0; i < ARRAY_SIZE(w->cq); i++)
		if (w->cq[i])
			many_close(test, &w->cq[i]->fid, "queue");
	if (w->eq)
		many_close(test, &w->eq->fid, "event queue");
	kvfree(w->conns);
	kvfree(w->op_mem);
	kvfree(w->ops);
	kvfree(w->slot_mem);
	kvfree(w->source_mem);
}

/* What must hold when everything has been closed */
static void many_check_books(struct kunit *test, struct many_worker *w)
{
	unsigned int i, lost = 0;
	u64 values = atomic64_read(&w->values);

	for (i = 0; i < MANY_OPS; i++)
		lost += atomic_read(&w->ops[i].state) != MANY_FREE;
	KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&w->wrong), "%s", w->why);
	KUNIT_EXPECT_EQ_MSG(test, 0U, lost, "operations that never completed");
	KUNIT_EXPECT_EQ(test, w->accepted, w->completed);
	KUNIT_EXPECT_LE(test, values, w->values_sent);
	KUNIT_EXPECT_GE(test, values, w->values_sure);
	kunit_info(test,
		   "%llu operations, %llu failed, %llu refused; %llu injects, %llu values, %d parts; %llu connections, %d times space\n",
		   w->completed, w->errors, w->again, w->injects, values,
		   atomic_read(&w->parts), w->ups, atomic_read(&w->space));
	KUNIT_EXPECT_NE(test, 0ULL, w->ups);
	/* Nobody gets away with doing nothing, if there was time for all. */
	if (stress_faulty || stress_ms < MANY_ENOUGH_MS)
		return;
	for (i = 0; i < MANY_KINDS; i++)
		KUNIT_EXPECT_NE_MSG(test, 0ULL, w->kinds[i],
				    "no %s has succeeded", many_names[i]);
	KUNIT_EXPECT_GE(test, w->ups, (u64)w->nr_conns);
}

static int many_open(struct many *m)
{
	struct fi_info *hints = ct_hints();
	int err;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	hints->tx_attr->size = MANY_DEPTH;
	hints->rx_attr->size = MANY_DEPTH;
	err = ct_getinfo(0, hints, &m->info);
	fi_freeinfo(hints);
	err = err ?: fi_fabric(m->info->fabric_attr, &m->fabric, m);
	return err ?: fi_domain(m->fabric, m->info, &m->domain, m);
}

static void many_run(struct kunit *test, struct many *m, u32 seed)
{
	struct many_worker *w;
	int i;

	init_completion(&m->ended);
	atomic_set(&m->left, MANY_WORKERS);
	m->until = ktime_add_ms(ktime_get(), stress_ms);
	for (i = 0; i < MANY_WORKERS; i++) {
		w = &m->workers[i];
		prandom_seed_state(&w->rnd, (u64)seed << 8 | i);
		w->task = kthread_create(many_work, w, "kofi_many/%d", i);
		if (!IS_ERR(w->task)) {
			get_task_struct(w->task);
			wake_up_process(w->task);
			continue;
		}
		KUNIT_FAIL(test, "no thread");
		if (atomic_dec_and_test(&m->left))
			complete(&m->ended);
	}
	wait_for_completion(&m->ended);
	for (i = 0; i < MANY_WORKERS; i++) {
		w = &m->workers[i];
		if (IS_ERR(w->task))
			continue;
		/* until it is out of this module */
		kthread_stop(w->task);
		put_task_struct(w->task);
	}
}

static void many_random(struct kunit *test)
{
	u32 seed = stress_seed ?: get_random_u32();
	struct many m = { .test = test };
	int i, err;

	kunit_info(test, "stress_seed=%u\n", seed);
	atomic_set(&stress_connected, 0);
	m.workers = kvcalloc(MANY_WORKERS, sizeof(*m.workers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.workers);
	err = many_open(&m);
	for (i = 0; i < MANY_WORKERS; i++) {
		m.workers[i].m = &m;
		m.workers[i].mode = i;
		m.workers[i].nr_conns =
			clamp(stress_conns, MANY_WORKERS, MANY_CONNS_MAX) /
			MANY_WORKERS;
		err = err ?: many_open_worker(&m.workers[i]);
	}
	KUNIT_EXPECT_EQ(test, 0, err);
	if (!err) {
		many_run(test, &m, seed);
		for (i = 0; i < MANY_WORKERS; i++)
			many_check_books(test, &m.workers[i]);
	}
	for (i = 0; i < MANY_WORKERS; i++)
		many_close_worker(&m.workers[i]);
	if (m.domain)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m.domain->fid));
	if (m.fabric)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m.fabric->fid));
	fi_freeinfo(m.info);
	kvfree(m.workers);
}

static struct kunit_case contract_many_cases[] = {
	KUNIT_CASE_SLOW(many_random),
	{}
};

static struct kunit_suite contract_many_suite = {
	.name = "kofi_contract_many",
	.suite_init = ct_suite_init,
	.test_cases = contract_many_cases,
};

kunit_test_suite(contract_many_suite);
