/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of kofi_bench.ko share.
 *
 * A run moves messages between two sides in this kernel, over the loopback
 * device, or an RDMA device that talks to itself. What is moved and how it is
 * counted is main.c's; how the two sides talk is a client's, and there are some
 * with the same three calls:
 *
 *   raw	TCP sockets and nothing between them and the run
 *   kofi	kOFI's endpoints, completions by call-back
 *   sread	kOFI's endpoints, a thread per side that sleeps in fi_cq_sread()
 *   pages	as kofi, what is sent is given as pages
 *   zerocopy	the same, and they are not copied
 *   verbs	as kofi, over an RDMA device
 *   rawverbs	the RDMA device, and nothing between it and the run
 *
 * An operation belongs to the run until it is posted, then to the client until
 * the client calls bench_done().
 */
#ifndef _KOFI_BENCH_H
#define _KOFI_BENCH_H

#include <linux/completion.h>
#include <linux/in.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include <linux/kofi/kofi.h>
#include <rdma/ib_verbs.h>

#define BENCH_WINDOW_MAX	16

enum bench_kind {
	BENCH_SEND,
	BENCH_WRITE,
	BENCH_READ,
	BENCH_RECV,
	BENCH_ANSWER,		/* raw: what a BENCH_READ of the peer gets */
};

struct bench_side;

/**
 * struct bench_op - one operation
 * @cqe: kofi: context of the operation
 * @node: raw: on one of its lists
 * @wr: rawverbs: context of the work request
 * @dma: rawverbs: @buf for the device
 * @side: whose it is
 * @kind: what it is
 * @busy: the client has it
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
	void			*buf;
	size_t			len;
	int			err;
	u64			off;
};

/**
 * struct bench_side - one of the two ends
 * @run: the run
 * @priv: the client's
 * @mem: what is sent from, then what is received to, @half bytes each; the
 *	peer may read and write all of it
 * @half: bytes of each half
 * @lock: for the members that follow, and the run's counts
 * @xmit: operations that send, write or read
 * @recv: receives
 * @to_xmit: how many of these are still to be posted
 * @to_recv: how many of those
 * @busy: how many have not ended
 * @due: ping-pong: a message is to be sent when its operation is free
 * @draining: when nothing is @busy,
 * @idle: that is to be said
 */
struct bench_side {
	struct bench_run	*run;
	void			*priv;
	u8			*mem;
	size_t			half;

	/* callbacks of a side and the run's beginning */
	spinlock_t		lock;
	struct bench_op		xmit[BENCH_WINDOW_MAX];
	struct bench_op		recv[BENCH_WINDOW_MAX];
	u32			to_xmit;
	u32			to_recv;
	u32			busy;
	bool			due;
	bool			draining;
	struct completion	idle;
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
 * @total: how many there are in this part of the run
 * @addr: where both sides are
 * @side: [0] begins. The sender, or who reads and writes; [1] the other
 * @finished: how many have arrived, or ended, in this part
 * @closing: errors are no news
 * @start: when this part began, in ns
 * @end: when its last one had arrived
 * @err: the first error
 * @over: everything has arrived
 */
struct bench_run {
	const struct bench_client	*client;
	enum bench_kind			kind;
	u32				window;
	size_t				size;
	u32				warmup;
	u32				count;
	u32				total;
	struct sockaddr_in		addr;
	struct bench_side		side[2];
	u32				finished;
	bool				closing;
	u64				start;
	u64				end;
	int				err;
	struct completion		over;
};

/**
 * struct bench_client - a way to talk
 * @name: on the command line
 * @open: connect the two sides; may sleep
 * @close: the reverse, also of half an @open; nothing is called back when it
 *	has returned
 * @post: take an operation; any context with interrupts on
 */
struct bench_client {
	const char	*name;
	int		(*open)(struct bench_run *run);
	void		(*close)(struct bench_run *run);
	int		(*post)(struct bench_op *op);
};

extern const struct bench_client bench_raw;
extern const struct bench_client bench_kofi;
extern const struct bench_client bench_sread;
extern const struct bench_client bench_pages;
extern const struct bench_client bench_zerocopy;
extern const struct bench_client bench_verbs;
extern const struct bench_client bench_rawverbs;

void bench_done(struct bench_op *op, int err, size_t len);
void bench_fail(struct bench_run *run, int err);

int bench_raw_init(void);
void bench_raw_exit(void);

#endif /* _KOFI_BENCH_H */
