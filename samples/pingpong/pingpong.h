/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Declarations shared by the files of kofi_pingpong.ko. A run is one thread,
 * one control connection, one endpoint, and the netlink socket that started it.
 */
#ifndef _KOFI_PINGPONG_H
#define _KOFI_PINGPONG_H

#include <linux/list.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <uapi/linux/kofi_test.h>

#include <linux/kofi/kofi.h>

#include "proto.h"

/* Seconds of silence after which the peer is probed */
#define PP_KEEP_IDLE	10

struct genl_info;
struct task_struct;

/**
 * struct pp_opts - options of a run
 * @node: address of the server; empty: this side is the server
 * @source: local address, or empty
 * @prov: provider, or empty for any
 * @domain: domain, or empty for any
 * @src_port: local control port in host order; 0: the default of a server, any
 *	for a client
 * @dst_port: control port of the server in host order; 0: the default
 * @type: type of the endpoint
 * @tagged: messages have a tag
 * @ipv6: a server listens on IPv6
 * @check: fill messages, and check their contents
 * @one_size: only messages of @size bytes
 * @all_sizes: use the long list of sizes
 * @read: the thread reads completions; no callbacks
 * @poll: context of callbacks
 * @size: message size in bytes, with @one_size
 * @iterations: timed round trips per size
 * @warmup: round trips before the timed ones
 * @timeout: milliseconds without progress after which the run fails; 0: none
 */
struct pp_opts {
	char		node[KOFI_TEST_NAME_MAX + 1];
	char		source[KOFI_TEST_NAME_MAX + 1];
	char		prov[KOFI_TEST_NAME_MAX + 1];
	char		domain[KOFI_TEST_NAME_MAX + 1];
	u16		src_port;
	u16		dst_port;
	enum fi_ep_type	type;
	bool		tagged;
	bool		ipv6;
	bool		check;
	bool		one_size;
	bool		all_sizes;
	bool		read;
	enum kofi_poll	poll;
	size_t		size;
	u32		iterations;
	u32		warmup;
	unsigned int	timeout;
};

/* Test for a connected endpoint. Other endpoints exchange addresses instead. */
static inline bool pp_connects(const struct pp_opts *opts)
{
	return opts->type == FI_EP_MSG;
}

/**
 * struct pp_result - figures of one message size
 * @size: bytes of a message
 * @sent: timed round trips
 * @acked: messages the other side has confirmed
 * @elapsed: nanoseconds for the timed round trips
 */
struct pp_result {
	size_t	size;
	u32	sent;
	u64	acked;
	u64	elapsed;
};

enum pp_fin {
	PP_FIN_NO,		/* messages are outstanding */
	PP_FIN_DUE,		/* the last message must be posted */
	PP_FIN_SENT,		/* posted */
};

/**
 * struct pp_data - messages of a run, and their state
 * @ep: endpoint
 * @peer: address of the peer, for an endpoint that is not connected
 * @cq: completion queue for all completions
 * @tx: context of sends
 * @rx: context of the posted receive
 * @lock: protects the members that follow, which thread and callbacks share
 * @client: this side sends first
 * @tagged: messages have a tag
 * @check: compare received messages with the pattern
 * @inject_size: messages below this size in bytes are injected
 * @size: message size in bytes
 * @warmup: messages to receive before the clock starts
 * @tx_left: messages left to send
 * @rx_left: messages left to receive
 * @tx_busy: a send is outstanding
 * @fin: state of this side's last message
 * @fin_seen: the peer's last message has arrived
 * @err: first error, a negative error code, or 0
 * @bad_len: length of the wrong message, with -EMSGSIZE and -EPROTO
 * @bad_off: offset of the first wrong byte, with -EBADMSG
 * @tx_seq: messages sent in this run
 * @rx_seq: messages received in this run
 * @start: time at which the clock started, in nanoseconds
 * @end: time at which the clock stopped, in nanoseconds, or 0
 * @wait: woken when a phase has finished or failed. This is the wait queue of
 *	the control connection's socket, which is also woken when that is closed
 * @buf: memory of the receive
 * @buf_size: size of @buf in bytes
 * @pattern: memory of sends; message n starts at byte pp_pattern_start(n)
 * @goodbye: the last message
 */
struct pp_data {
	struct fid_ep		*ep;
	fi_addr_t		peer;
	struct fid_cq		*cq;
	struct kofi_cqe		tx;
	struct kofi_cqe		rx;
	spinlock_t		lock;	/* the members that follow */
	bool			client;
	bool			tagged;
	bool			check;
	size_t			inject_size;
	size_t			size;
	u32			warmup;
	u32			tx_left;
	u32			rx_left;
	bool			tx_busy;
	enum pp_fin		fin;
	bool			fin_seen;
	int			err;
	size_t			bad_len;
	size_t			bad_off;
	u64			tx_seq;
	u64			rx_seq;
	u64			start;
	u64			end;
	wait_queue_head_t	*wait;
	char			*buf;
	size_t			buf_size;
	char			*pattern;
	char			goodbye[sizeof(PP_FIN)];
};

/**
 * struct pp_run - one ping-pong
 * @node: entry of the list of runs
 * @id: number of the run
 * @portid: netlink socket that started the run
 * @net: network namespace of the run
 * @ns_tracker: tracker of the reference to @net
 * @task: thread of the run
 * @release: work item that stops the thread and frees the run, when the socket
 *	is closed
 * @pinned: bit 0: the run holds a reference to the module
 * @opts: options of the run
 * @stage: current step, for an error report
 * @detail: explanation of the error, or empty
 * @ctrl: control connection
 * @info: result of discovery
 * @fabric: fabric of @info
 * @eq: event queue for connections
 * @pep: server: listener for the data connection
 * @domain: domain of @info
 * @av: address vector of an endpoint that is not connected
 * @data: endpoint, completion queue, messages
 */
struct pp_run {
	struct list_head	node;
	u32			id;
	u32			portid;
	struct net		*net;
	netns_tracker		ns_tracker;
	struct task_struct	*task;
	struct work_struct	release;
	unsigned long		pinned;
	struct pp_opts		opts;

	const char		*stage;
	char			detail[96];

	struct socket		*ctrl;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct pp_data		data;
};

static inline bool pp_is_client(const struct pp_run *run)
{
	return run->opts.node[0];
}

/* Timeout in milliseconds, for fi_*_sread() */
static inline int pp_timeout_ms(const struct pp_run *run)
{
	return run->opts.timeout ? run->opts.timeout : -1;
}

/* Timeout in jiffies, for waits of the kernel */
static inline long pp_timeout(const struct pp_run *run)
{
	return run->opts.timeout ? msecs_to_jiffies(run->opts.timeout) :
				   MAX_SCHEDULE_TIMEOUT;
}

/* main.c: reports to the socket */
int pp_report_progress(const struct pp_run *run, u16 port);
int pp_report_result(const struct pp_run *run, const struct pp_result *res);
void pp_report_end(const struct pp_run *run, int err);

/* run.c */
struct pp_run *pp_run_start(const struct pp_opts *opts, struct net *net,
			    u32 id, u32 portid);
void pp_run_release(struct pp_run *run);
int pp_runs_init(void);
void pp_runs_exit(void);

/* ctrl.c */
int pp_ctrl_listen(struct pp_run *run, struct sockaddr_storage *local);
int pp_ctrl_connect(struct pp_run *run, struct sockaddr_storage *peer);
int pp_ctrl_name(struct pp_run *run, struct sockaddr_storage *addr);
bool pp_ctrl_open(const struct pp_run *run);
void pp_ctrl_finish(struct pp_run *run);
void pp_ctrl_close(struct pp_run *run);
int pp_ctrl_send_addr(struct pp_run *run, const struct sockaddr_storage *addr);
int pp_ctrl_recv_addr(struct pp_run *run, struct sockaddr_storage *addr);
int pp_ctrl_sync(struct pp_run *run);
int pp_ctrl_answer(struct pp_run *run);
int pp_ctrl_count(struct pp_run *run, u64 *count);

/* ep.c */
int pp_ep_listen(struct pp_run *run, const struct sockaddr_storage *local);
int pp_ep_name(struct pp_run *run, struct sockaddr_storage *addr);
int pp_ep_insert(struct pp_run *run, const struct sockaddr_storage *peer);
int pp_ep_accept(struct pp_run *run);
int pp_ep_connect(struct pp_run *run, const struct sockaddr_storage *peer);
void pp_ep_close(struct pp_run *run);

/* data.c */
int pp_data_alloc(struct pp_run *run, size_t max);
void pp_data_free(struct pp_run *run);
int pp_data_cq_open(struct pp_run *run);
int pp_data_recv(struct pp_data *data);
void pp_data_write_space(struct fid_ep *ep, void *context);
void pp_data_begin(struct pp_run *run, size_t size);
int pp_data_end(struct pp_run *run, struct pp_result *res);
int pp_data_fin(struct pp_run *run);
int pp_data_blame(struct pp_run *run, int err);

#endif /* _KOFI_PINGPONG_H */
