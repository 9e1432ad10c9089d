/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A session of kofi_perf.ko, which is an open file, for the files of the module. */
#ifndef _KOFI_PERF_H
#define _KOFI_PERF_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/kofi_perf.h>

#include <linux/kofi/kofi.h>

#define PERF_TAG	0x6b6f6669ULL
#define PERF_WORD	8	/* bytes of an answer, and of a question for one */

struct perf;

/**
 * struct perf_req - an operation
 * @cqe: context of the operation
 * @perf: the session
 * @buf: memory of a receive or a read
 * @seq: number of the transfer
 * @posted: when it was posted, nanoseconds
 */
struct perf_req {
	struct kofi_cqe	cqe;
	struct perf	*perf;
	void		*buf;
	u64		seq;
	u64		posted;
};

/**
 * enum perf_ask - answer of the target behind a window
 * @PERF_ASK_NONE: nothing
 * @PERF_ASK_SENT: the target is to answer
 * @PERF_ASK_ANSWERED: it has everything
 */
enum perf_ask {
	PERF_ASK_NONE,
	PERF_ASK_SENT,
	PERF_ASK_ANSWERED,
};

/**
 * struct perf_xfer - the transfers
 * @lock: everything below that changes while they run
 * @wait: woken when nothing is left to do, or it has failed
 * @tx: transfers; number n uses n modulo their count
 * @rx: receives
 * @word: the one answer or question that may be outstanding
 * @remote: context of remote CQ data that takes no receive
 * @greeted: the peer's first message has come
 * @later: goes on when other tasks have had the CPU
 * @n_tx: number of @tx
 * @n_rx: number of @rx
 * @mem: memory that the peer reads or writes
 * @slot: bytes of each receive
 * @pattern: contents of transfers; where they start depends on their number
 * @out: contents of @word
 * @hist: times, with KOFI_PERF_LATENCY
 * @sent: transfers posted so far
 * @done: transfers of this side that have completed
 * @got: transfers received so far
 * @edge: the initiator goes on behind this number when the window before is complete;
 *	the target answers at it
 * @ask: initiator, at the edge
 * @owed: words that wait to be sent
 * @word_busy: @word is posted
 * @stop: finish at the next edge
 * @over: nothing is left to do, or it has failed
 * @err: first error, negative
 * @start: when the clock has started, nanoseconds
 * @end: when the clock has stopped, nanoseconds
 * @bad_seq: which transfer was wrong, from 0
 * @bad_len: length of the wrong transfer
 * @bad_off: first wrong byte of it
 */
struct perf_xfer {
	spinlock_t		lock;	/* see above */
	wait_queue_head_t	wait;
	struct perf_req		*tx;
	struct perf_req		*rx;
	struct perf_req		word;
	struct kofi_cqe		remote;
	struct work_struct	later;
	bool			greeted;
	u32			n_tx;
	u32			n_rx;
	char			*mem;
	size_t			slot;
	char			*pattern;
	__le64			out;
	struct kofi_perf_hist	*hist;
	u64			sent;
	u64			done;
	u64			got;
	u64			edge;
	enum perf_ask		ask;
	u64			owed;
	bool			word_busy;
	bool			stop;
	bool			over;
	int			err;
	u64			start;
	u64			end;
	u64			bad_seq;
	u64			bad_len;
	u64			bad_off;
};

enum perf_state {
	PERF_NEW,
	PERF_FAILED,
	PERF_OPENED,	/* no peer yet */
	PERF_ACCEPTED,	/* target: the connection request has come */
	PERF_GREETING,	/* connected; the first message has not come */
	PERF_JOINED,
	PERF_STARTED,
};

/**
 * struct perf - a session
 * @mutex: the calls of the file, one at a time
 * @state: how far it is
 * @net: network namespace of the task that has opened the file
 * @opts: options of the program
 * @stage: the step, for the report of an error
 * @info: result of discovery
 * @fabric: opened from @info
 * @eq: connection events
 * @pep: target: listens
 * @domain: opened from @info
 * @av: of an endpoint that does not connect
 * @cq: all completions
 * @ep: the endpoint
 * @peer: number of the peer, of an endpoint that does not connect
 * @mr: regions of the memory
 * @n_mr: number of them
 * @region: memory of the peer
 * @n_region: number of its regions
 * @x: the transfers
 */
struct perf {
	struct mutex		mutex;	/* see above */
	enum perf_state		state;
	struct net		*net;
	struct kofi_perf_open	opts;
	const char		*stage;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	fi_addr_t		peer;
	struct fid_mr		*mr[KOFI_PERF_REGIONS];
	u32			n_mr;
	struct fi_rma_iov	region[KOFI_PERF_REGIONS];
	u32			n_region;
	struct perf_xfer	x;
};

static inline bool perf_initiates(const struct perf *perf)
{
	return perf->opts.flags & KOFI_PERF_INITIATOR;
}

static inline bool perf_pingpong(const struct perf *perf)
{
	return perf->opts.flags & KOFI_PERF_PINGPONG;
}

static inline bool perf_verifies(const struct perf *perf)
{
	return perf->opts.flags & KOFI_PERF_VERIFY;
}

static inline bool perf_connects(const struct perf *perf)
{
	return perf->opts.type == KOFI_PERF_MSG;
}

/* Does each transfer arrive in memory that the target has posted? */
static inline bool perf_is_message(const struct perf *perf)
{
	return perf->opts.op == KOFI_PERF_OP_MSG ||
	       perf->opts.op == KOFI_PERF_OP_TAGGED;
}

/* Does the target learn of each transfer? */
static inline bool perf_is_counted(const struct perf *perf)
{
	return perf_is_message(perf) ||
	       perf->opts.op == KOFI_PERF_OP_WRITEDATA;
}

/* ep.c */
int perf_ep_open(struct perf *perf, struct kofi_perf_open *opts);
int perf_ep_join(struct perf *perf, struct kofi_perf_join *join);
void perf_ep_close(struct perf *perf);

/* xfer.c */
void perf_xfer_init(struct perf *perf);
int perf_xfer_alloc(struct perf *perf);
void perf_xfer_free(struct perf *perf);
void perf_write_space(struct fid_ep *ep, void *context);
int perf_xfer_recv(struct perf *perf);
void perf_xfer_greet(struct perf *perf);
int perf_xfer_greeted(struct perf *perf, unsigned int timeout);
int perf_xfer_start(struct perf *perf);
void perf_xfer_stop(struct perf *perf);
void perf_xfer_end(struct perf *perf);
bool perf_xfer_over(struct perf *perf);
void perf_xfer_tell(struct perf *perf, struct kofi_perf_wait *wait);

#endif /* _KOFI_PERF_H */
