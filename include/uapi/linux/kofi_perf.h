/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Measurements of transfers: the calls of /dev/kofi_perf, for kofi bw, kofi lat and
 * kofi check.
 *
 * An open file is one endpoint, which moves messages of one size to or from one peer:
 *
 *	OPEN	discovers, opens everything, begins to listen or to connect
 *	JOIN	waits for the connection and says where the endpoint's memory is
 *	START	posts; the initiator begins
 *	WAIT	waits until the run is over, or tells how far it is
 *	HIST	how long operations have taken
 *
 * Closing the file stops the run and frees everything. Tool and module are of one
 * version: this file is no interface for others, and KOFI_PERF_VERSION changes with it.
 */
#ifndef _UAPI_LINUX_KOFI_PERF_H
#define _UAPI_LINUX_KOFI_PERF_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KOFI_PERF_VERSION	1
#define KOFI_PERF_DEVICE	"kofi_perf"
#define KOFI_PERF_NAME_MAX	63
#define KOFI_PERF_STAGE_MAX	32
#define KOFI_PERF_SIZE_MAX	0x40000000
#define KOFI_PERF_WINDOW_MAX	4096
#define KOFI_PERF_REGIONS	8

enum kofi_perf_type {
	KOFI_PERF_MSG,
	KOFI_PERF_RDM,
	KOFI_PERF_DGRAM,
};

enum kofi_perf_op {
	KOFI_PERF_OP_MSG,
	KOFI_PERF_OP_TAGGED,
	KOFI_PERF_OP_READ,
	KOFI_PERF_OP_WRITE,
	KOFI_PERF_OP_WRITEDATA,
};

enum kofi_perf_poll {
	KOFI_PERF_SOFTIRQ,
	KOFI_PERF_WORKQUEUE,
};

/* kofi_perf_open.flags */
#define KOFI_PERF_INITIATOR	0x1	/* connects, and transfers first */
#define KOFI_PERF_PINGPONG	0x2	/* each transfer is answered by another */
#define KOFI_PERF_LATENCY	0x4	/* each operation is timed */
#define KOFI_PERF_VERIFY	0x8	/* contents are checked */

/**
 * struct kofi_perf_addr - a socket address
 * @len: bytes of @addr; 0: none
 * @addr: struct sockaddr_in or sockaddr_in6
 */
struct kofi_perf_addr {
	__u32	len;
	__u8	addr[28];
};

/**
 * struct kofi_perf_region - a piece of memory that the peer may access
 * @addr: remote address of its first byte
 * @len: bytes
 * @key: key of the region
 */
struct kofi_perf_region {
	__u64	addr;
	__u64	len;
	__u64	key;
};

/**
 * struct kofi_perf_open - KOFI_PERF_OPEN
 * @version: KOFI_PERF_VERSION
 * @type: enum kofi_perf_type
 * @op: enum kofi_perf_op
 * @flags: KOFI_PERF_INITIATOR and so on
 * @poll: enum kofi_perf_poll, where completions are handled
 * @cpu: which CPU handles them, -1: any
 * @window: operations that are outstanding at a time
 * @segs: out: regions of memory, valid after JOIN
 * @size: bytes of a transfer, at least 1
 * @iterations: transfers that are timed; 0: until WAIT stops them
 * @warmup: transfers before them
 * @corrupt: with VERIFY, number of a transfer that has wrong contents, from 1; 0: none
 * @prov: provider, or empty; out: the one that was found
 * @domain: domain, or empty; out: the one that was found
 * @stage: out: the step that has failed
 * @src: local address; the target's without a port
 * @dest: initiator, and endpoint that connects: address of the target
 * @name: out: where the target listens, or the address of an endpoint that does not
 *	connect
 */
struct kofi_perf_open {
	__u32	version;
	__u32	type;
	__u32	op;
	__u32	flags;
	__u32	poll;
	__s32	cpu;
	__u32	window;
	__u32	segs;
	__u64	size;
	__u64	iterations;
	__u64	warmup;
	__u64	corrupt;
	char	prov[KOFI_PERF_NAME_MAX + 1];
	char	domain[KOFI_PERF_NAME_MAX + 1];
	char	stage[KOFI_PERF_STAGE_MAX];
	struct kofi_perf_addr	src;
	struct kofi_perf_addr	dest;
	struct kofi_perf_addr	name;
};

/**
 * struct kofi_perf_join - KOFI_PERF_JOIN
 * @timeout: milliseconds; if it is over, ETIMEDOUT, and JOIN may be called again
 * @count: out: number of @region
 * @peer: address of the peer of an endpoint that does not connect
 * @region: out: memory that the peer may access
 */
struct kofi_perf_join {
	__u32	timeout;
	__u32	count;
	struct kofi_perf_addr	peer;
	struct kofi_perf_region	region[KOFI_PERF_REGIONS];
};

/**
 * struct kofi_perf_start - KOFI_PERF_START
 * @count: number of @region
 * @pad: 0
 * @region: the peer's memory
 */
struct kofi_perf_start {
	__u32	count;
	__u32	pad;
	struct kofi_perf_region	region[KOFI_PERF_REGIONS];
};

/**
 * struct kofi_perf_wait - KOFI_PERF_WAIT
 * @timeout: milliseconds at most
 * @stop: finish the run: behind a window, or a target at once
 * @over: out: nothing is left to do, or it has failed
 * @error: out: 0 or a negative error code
 * @done: out: timed transfers so far
 * @warm: out: transfers before them so far
 * @start: out: when the clock has started, nanoseconds of CLOCK_MONOTONIC
 * @end: out: when the clock has stopped
 * @bad_seq: out: which transfer was wrong, from 1
 * @bad_len: out: its length
 * @bad_off: out: its first wrong byte
 */
struct kofi_perf_wait {
	__u32	timeout;
	__u32	stop;
	__u32	over;
	__s32	error;
	__u64	done;
	__u64	warm;
	__u64	start;
	__u64	end;
	__u64	bad_seq;
	__u64	bad_len;
	__u64	bad_off;
};

/*
 * Times are counted in buckets: one per nanosecond below 64, then 32 to each power of
 * two. Bucket b from 64 on begins at (32 + b % 32) << (b / 32 - 1).
 */
#define KOFI_PERF_SUB		32
#define KOFI_PERF_BUCKETS	(36 * KOFI_PERF_SUB)

/**
 * struct kofi_perf_hist - KOFI_PERF_HIST
 * @min: shortest time, nanoseconds
 * @max: longest time
 * @count: operations by the time they have taken
 */
struct kofi_perf_hist {
	__u64	min;
	__u64	max;
	__u64	count[KOFI_PERF_BUCKETS];
};

#define KOFI_PERF_OPEN	_IOWR(0xf1, 0, struct kofi_perf_open)
#define KOFI_PERF_JOIN	_IOWR(0xf1, 1, struct kofi_perf_join)
#define KOFI_PERF_START	_IOW(0xf1, 2, struct kofi_perf_start)
#define KOFI_PERF_WAIT	_IOWR(0xf1, 3, struct kofi_perf_wait)
#define KOFI_PERF_HIST	_IOR(0xf1, 4, struct kofi_perf_hist)

#endif /* _UAPI_LINUX_KOFI_PERF_H */
