/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of kofi_bench.ko share.
 *
 * A run moves messages between two sides: in this kernel, over the loopback
 * device, a pair of devices or an RDMA device that talks to itself, or in two.
 * What is moved and how it is counted is main.c's, whether it keeps moving
 * watch.c's; how the two sides talk is a client's, and there are some with the
 * same three calls:
 *
 *   raw	TCP sockets and nothing between them and the run
 *   kofi	kOFI's endpoints, completions by call-back
 *   sread	kOFI's endpoints, a thread per side that sleeps in fi_cq_sread()
 *   pages	as kofi, what is sent is given as pages
 *   zerocopy	the same, and they are not copied
 *   rdm	as kofi, reliable datagrams
 *   tagged	the same with tags
 *   rdmsread	reliable datagrams, as sread
 *   rxm	as rdm, layered on connected endpoints
 *   rxmsread	the same, as sread
 *   verbs	as kofi, over an RDMA device
 *   rxmverbs	as rxm, over an RDMA device
 *   rawverbs	the RDMA device, and nothing between it and the run
 *   raweager	the same, messages with headers and through buffers
 *
 * An operation belongs to the run until it is posted, then to the client until
 * the client calls bench_done().
 */
#ifndef _KOFI_BENCH_H
#define _KOFI_BENCH_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/in.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include <linux/kofi/kofi.h>
#include <rdma/ib_verbs.h>

#define BENCH_WINDOW_MAX	128

/* How many TCP counters watch.c knows */
#define BENCH_COUNTERS		23

enum bench_kind {
	BENCH_SEND,
	BENCH_WRITE,
	BENCH_READ,
	BENCH_RECV,
	BENCH_ANSWER,		/* raw: what a BENCH_READ of the peer gets */
};

/* Which of the two sides are in this kernel */
enum bench_role {
	BENCH_BOTH,
	BENCH_CONNECT,		/* the first; the other one's kernel listens */
	BENCH_LISTEN,		/* the second */
};

struct bench_side;
struct net;

/**
 * struct bench_op - one operation
 * @cqe: kofi: context of the operation
 * @node: raw: on one of its lists; on the side's list of late ones
 * @wr: rawverbs: context of the work request
 * @dma: rawverbs: @buf for the device
 * @side: whose it is
 * @kind: what it is
 * @busy: the client has it
 * @left: a receive: how often it is still to be posted. The client may give the
 *	places of a window tags of their own, so each has its share of the whole.
 * @buf: local memory
 * @len: bytes
 * @err: raw: how it ended
 * @off: BENCH_WRITE, BENCH_READ: offset in the peer's memory
 */
struct bench_op {
	struct kofi_cqe		cqe;
	struct list_head	node;
	struct ib_cqe		wr;
	u64			dma;
	struct bench_side	*side;
	enum bench_kind		kind;
	bool			busy;
	u32			left;
	void			*buf;
	size_t			len;
	int			err;
	u64			off;
};

/**
 * struct bench_side - one of the two ends
 * @run: the run
 * @priv: the client's
 * @here: it is in this kernel; nothing of the other one is ever used
 * @net: its network namespace
 * @addr: its address
 * @sk: its TCP socket; NULL if the client has none
 * @mem: what is sent from, then what is received to, @half bytes each; the
 *	peer may read and write all of it
 * @half: bytes of each half
 * @counts: kind of the operations that are counted here; -1 for none
 * @lock: for the members that follow, and the run's counts
 * @xmit: operations that send, write or read
 * @recv: receives
 * @to_xmit: how many of @xmit are still to be posted
 * @busy: how many have not ended
 * @ended: how many have
 * @expected: of this part, those that are counted here; 0: the other side counts
 * @finished: how many of them have arrived, or ended
 * @late: receives that are posted when @timer expires
 * @timer: about a millisecond after the first of them
 * @due: ping-pong: a message is to be sent when its operation is free
 * @awaits: the first receive has been posted for what follows the run,
 * @last: and this is where it goes
 * @draining: when nothing is @busy,
 * @idle: that is to be said
 */
struct bench_side {
	struct bench_run	*run;
	void			*priv;
	bool			here;
	struct net		*net;
	struct sockaddr_in	addr;
	struct sock		*sk;
	u8			*mem;
	size_t			half;
	int			counts;

	/* callbacks of a side and the run's beginning */
	spinlock_t		lock;
	struct bench_op		xmit[BENCH_WINDOW_MAX];
	struct bench_op		recv[BENCH_WINDOW_MAX];
	u32			to_xmit;
	u32			busy;
	u32			ended;
	u32			expected;
	u32			finished;
	struct list_head	late;
	struct hrtimer		timer;
	bool			due;
	bool			awaits;
	u8			last;
	bool			draining;
	struct completion	idle;
};

/**
 * struct bench_stream - the bytes that go one way
 * @from: where they are sent; NULL if that is not in this kernel
 * @to: where they arrive; the same
 * @at: how far they had come at the last tick
 * @still: ticks since they have been there, with more behind them
 */
struct bench_stream {
	const struct tcp_sock	*from;
	const struct tcp_sock	*to;
	u64			at;
	u32			still;
};

/**
 * struct bench_watch - does the run keep moving? See watch.c
 * @timer: ticks
 * @started: something has moved
 * @stream: both directions
 * @ended: operations that had ended at the last tick
 * @still: ticks since anything has moved
 * @gap: the most of any of them
 * @before: TCP's counters when it began
 * @moved: how much they have risen
 */
struct bench_watch {
	struct hrtimer		timer;
	bool			started;
	struct bench_stream	stream[2];
	u32			ended;
	u32			still;
	u32			gap;
	u64			before[BENCH_COUNTERS];
	u64			moved[BENCH_COUNTERS];
};

/**
 * struct bench_run - one run
 * @client: how the sides talk
 * @kind: BENCH_SEND, BENCH_WRITE or BENCH_READ
 * @window: operations under way at a time; BENCH_SEND with a window of one is
 *	a ping-pong, and its unit is the round trip
 * @size: bytes of each
 * @warmup: how many come first
 * @count: how many are measured
 * @sndbuf: bytes of the sockets' send buffers; 0 is TCP's choice
 * @rcvbuf: bytes of the sockets' receive buffers; 0 is TCP's choice
 * @late: a used receive is posted again a millisecond later
 * @more: every other operation says that another follows
 * @twoway: both sides send, write or read
 * @posted: tagged: receives beside those of the run, for tags that do not come
 * @role: which side is in this kernel
 * @side: [0] connects, and begins: the sender, or who reads and writes; [1]
 *	the other, which listens
 * @total: how many there are in this part of the run, each way
 * @counting: sides that expect some of them
 * @ending: the peer may leave
 * @closing: errors are no news
 * @opening: when connecting began, in ns
 * @startup: how long it took until the first part was over
 * @start: when this part began, in ns
 * @end: when its last one had arrived
 * @err: the first error
 * @over: everything has arrived
 * @watch: of the measured part
 */
struct bench_run {
	const struct bench_client	*client;
	enum bench_kind			kind;
	u32				window;
	size_t				size;
	u32				warmup;
	u32				count;
	u32				sndbuf;
	u32				rcvbuf;
	bool				late;
	bool				more;
	bool				twoway;
	u32				posted;
	enum bench_role			role;
	struct bench_side		side[2];
	u32				total;
	atomic_t			counting;
	bool				ending;
	bool				closing;
	u64				opening;
	u64				startup;
	u64				start;
	u64				end;
	int				err;
	struct completion		over;
	struct bench_watch		watch;
};

/* Operations that a queue of either direction has room for */
static inline u32 bench_queue_size(const struct bench_run *run)
{
	return 2 * max(run->window, 16U);
}

/**
 * struct bench_client - a way to talk
 * @name: on the command line
 * @tcp: it knows the options of TCP, namespaces and roles
 * @more: and the one of that name
 * @tagged: and posted
 * @open: connect the two sides; may sleep
 * @close: the reverse, also of half an @open; nothing is called back when it
 *	has returned
 * @post: take an operation; any context with interrupts on
 */
struct bench_client {
	const char	*name;
	bool		tcp;
	bool		more;
	bool		tagged;
	int		(*open)(struct bench_run *run);
	void		(*close)(struct bench_run *run);
	int		(*post)(struct bench_op *op);
};

extern const struct bench_client bench_raw;
extern const struct bench_client bench_kofi;
extern const struct bench_client bench_sread;
extern const struct bench_client bench_pages;
extern const struct bench_client bench_zerocopy;
extern const struct bench_client bench_rdm;
extern const struct bench_client bench_tagged;
extern const struct bench_client bench_rdmsread;
extern const struct bench_client bench_rxm;
extern const struct bench_client bench_rxmsread;
extern const struct bench_client bench_rxmverbs;
extern const struct bench_client bench_verbs;
extern const struct bench_client bench_rawverbs;
extern const struct bench_client bench_raweager;

void bench_done(struct bench_op *op, int err, size_t len);
void bench_fail(struct bench_run *run, int err);
void bench_lost(struct bench_run *run, int err);
bool bench_more(const struct bench_op *op);

void bench_watch_start(struct bench_run *run);
void bench_watch_stop(struct bench_run *run);
int bench_watch_show(const struct bench_watch *watch, char *buf, size_t size);

int bench_raw_init(void);
void bench_raw_exit(void);

#endif /* _KOFI_BENCH_H */
