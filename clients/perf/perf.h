/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations shared by the files of kofi_perf.ko. A session is an open file. */
#ifndef _KOFI_PERF_H
#define _KOFI_PERF_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/kofi_perf.h>

#include <linux/kofi/kofi.h>

#define PERF_TAG	0x6b6f6669ULL
#define PERF_WORD	8	/* bytes of a word: a question, an answer, or a greeting */

struct perf;

/**
 * struct perf_req - operation
 * @cqe: context of the operation
 * @perf: session of the operation
 * @buf: memory of a receive or a read
 * @seq: number of the transfer, from 0
 * @posted: time of the post, in nanoseconds
 */
struct perf_req {
	struct kofi_cqe	cqe;
	struct perf	*perf;
	void		*buf;
	u64		seq;
	u64		posted;
};

/**
 * enum perf_ask - state of the target's answer to a window
 * @PERF_ASK_NONE: no answer is expected
 * @PERF_ASK_SENT: an answer is expected
 * @PERF_ASK_ANSWERED: the target has received the whole window
 */
enum perf_ask {
	PERF_ASK_NONE,
	PERF_ASK_SENT,
	PERF_ASK_ANSWERED,
};

/**
 * struct perf_xfer - transfers of a session
 * @lock: protects the members from @greeted on that change while transfers run
 * @wait: woken when the run has finished or failed
 * @tx: transfers; number n uses element n modulo @n_tx
 * @rx: receives
 * @word: context of the outstanding word
 * @remote: context of completions of remote CQ data that take no receive
 * @later: work item that continues after other tasks have had the CPU
 * @greeted: the peer's first message has arrived
 * @n_tx: number of elements of @tx
 * @n_rx: number of elements of @rx
 * @mem: memory that the peer reads or writes
 * @slot: size of each receive in bytes
 * @pattern: contents of transfers; the number of a transfer determines its
 *	offset
 * @out: contents of @word
 * @hist: histogram of times, with KOFI_PERF_LATENCY
 * @sent: number of posted transfers
 * @done: number of completed transfers of this side
 * @got: number of received transfers
 * @edge: number of the first transfer after the current window
 * @ask: initiator: state of the target's answer
 * @owed: number of words that wait to be sent
 * @word_busy: @word is outstanding
 * @stop: finish after the current window
 * @over: the run has finished or failed
 * @err: first error, a negative error code, or 0
 * @start: time at which the clock started, in nanoseconds
 * @end: time at which the clock stopped, in nanoseconds
 * @bad_seq: number of the wrong transfer, from 0
 * @bad_len: length of the wrong transfer in bytes
 * @bad_off: offset of its first wrong byte
 */
struct perf_xfer {
	spinlock_t		lock;	/* members that change while transfers run */
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
	PERF_ACCEPTED,	/* target: the connection request has arrived */
	PERF_GREETING,	/* connected; the first message has not arrived */
	PERF_JOINED,
	PERF_STARTED,
};

/**
 * struct perf - session
 * @mutex: serialises the calls of the file; protects the members from @state to
 *	@n_region
 * @state: state of the session; read without @mutex by callbacks, which cannot sleep
 * @net: network namespace of the task that opened the file
 * @opts: options of the program
 * @stage: current step, for an error report
 * @info: result of discovery
 * @fabric: fabric of @info
 * @eq: event queue for connections
 * @pep: target: listener
 * @domain: domain of @info
 * @av: address vector of an endpoint that does not connect
 * @cq: completion queue for all completions
 * @ep: endpoint
 * @peer: address of the peer, for an endpoint that does not connect
 * @mr: regions of this side's memory
 * @n_mr: number of elements of @mr in use
 * @region: regions of the peer's memory
 * @n_region: number of elements of @region in use
 * @x: transfers; protected by @x.lock
 */
struct perf {
	struct mutex		mutex;	/* calls of the file */
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

/* Test whether each transfer consumes a receive of the target. */
static inline bool perf_is_message(const struct perf *perf)
{
	return perf->opts.op == KOFI_PERF_OP_MSG ||
	       perf->opts.op == KOFI_PERF_OP_TAGGED;
}

/* Test whether the target is notified of each transfer. */
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
