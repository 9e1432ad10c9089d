/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of kofi_rma.ko share: a run, which is one process inside a
 * write to the device, with one connection at a time.
 */
#ifndef _KOFI_RMA_H
#define _KOFI_RMA_H

#include <linux/bvec.h>
#include <linux/in.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/seq_buf.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/wait.h>

#include <linux/kofi/kofi.h>

#include "proto.h"

#define RMA_TIMEOUT	(120 * HZ)	/* nothing that works takes this long */

/**
 * struct rma_opts - what a run was asked to do
 * @server: wait for connections and do what they say
 * @node: numeric address to listen on or to connect to; empty: any
 * @port: of the server
 * @only: client: only this group of tests; empty: all
 * @poll: where callbacks run
 * @verbs: over an RDMA device
 * @rdm: with an endpoint that does not connect
 * @rxm: over kofi_rxm, if there is another provider of such
 * @srx: receive from a shared context
 * @client_keys: choose keys instead of being given them
 * @brief: client: less of what takes long
 * @last: client: the server may end when this run is over
 * @leave: client: end in the middle of a command instead
 * @held: and have the server not receive it before there is another client
 * @zerocopy: bytes from which on pages are not copied; -1: the provider's choice
 */
struct rma_opts {
	bool		server;
	char		node[64];
	char		port[6];
	char		only[16];
	enum kofi_poll	poll;
	bool		verbs;
	bool		rdm;
	bool		rxm;
	bool		srx;
	bool		client_keys;
	bool		brief;
	bool		last;
	bool		leave;
	bool		held;
	int		zerocopy;
};

/* A struct krma_msg, member by member, in this machine's byte order */
struct rma_cmd {
	enum krma_op	op;
	u16		flags;
	int		status;
	u32		seed;
	u32		count;
	u32		segs;
	enum krma_level	level;
	enum krma_kind	kind;
	u64		off;
	u64		len;
	u64		data;
	u64		key;
	u64		addr;
	u64		size;
};

/**
 * struct rma_mem - memory that can be described in any way
 * @pages: the pages, in runs as long as the allocator had them
 * @npages: their number
 * @virt: the same memory, mapped in one piece
 */
struct rma_mem {
	struct page	**pages;
	unsigned int	npages;
	u8		*virt;
};

/**
 * struct rma_vec - a piece of memory, described
 * @vec: which of these it is
 * @count: segments, entries or pages
 * @kvec: for %KOFI_KVEC
 * @bvec: for %KOFI_BVEC
 * @iter: for %KOFI_ITER, over @array
 * @pages: for %KOFI_PAGES
 * @page_offset: first byte in the first page
 * @len: bytes in all
 * @table: for %KOFI_SGL
 * @array: one segment per page
 */
struct rma_vec {
	enum kofi_vec	vec;
	size_t		count;
	struct kvec	kvec[KOFI_IOV_MAX];
	struct bio_vec	bvec[KOFI_IOV_MAX];
	struct iov_iter	iter;
	struct page	**pages;
	size_t		page_offset;
	size_t		len;
	struct sg_table	table;
	struct bio_vec	*array;
};

/* Puts the memory that @_v describes into any of the three message structures. */
#define RMA_VEC_SET(_msg, _v) do {					\
	typeof(_msg) rma_msg = (_msg);					\
	struct rma_vec *rma_vec = (_v);					\
									\
	rma_msg->vec = rma_vec->vec;					\
	rma_msg->iov_count = rma_vec->count;				\
	if (rma_vec->vec == KOFI_KVEC)					\
		rma_msg->msg_iov = rma_vec->kvec;			\
	else if (rma_vec->vec == KOFI_BVEC)				\
		rma_msg->msg_bvec = rma_vec->bvec;			\
	else if (rma_vec->vec == KOFI_SGL)				\
		rma_msg->msg_sgl = rma_vec->table.sgl;			\
	else								\
		rma_msg->msg_iter = &rma_vec->iter;			\
} while (0)

struct rma_run;
struct rma_ops;

/**
 * struct rma_op - one operation under way
 * @cqe: its context
 * @ops: the group it belongs to
 * @vec: its memory
 * @spoil: overwritten by the callback, for it is ours again; NULL: nothing is
 * @len: bytes at @spoil
 * @flags: what the completion has to say
 */
struct rma_op {
	struct kofi_cqe	cqe;
	struct rma_ops	*ops;
	struct rma_vec	vec;
	u8		*spoil;
	size_t		len;
	u64		flags;
};

/**
 * struct rma_ops - operations that are posted and waited for together
 * @run: whose
 * @op: the operations
 * @pending: posted, and not completed yet
 * @err: the first error, negative
 */
struct rma_ops {
	struct rma_run	*run;
	struct rma_op	op[KRMA_COUNT_MAX];
	atomic_t	pending;
	int		err;
};

enum rma_answer {
	RMA_ANSWER_NONE,
	RMA_ANSWER_POSTED,
	RMA_ANSWER_HERE,		/* and not read yet */
};

/**
 * struct rma_run - one run
 * @opts: what was asked for
 * @report: what the reader of the device gets
 * @detail: sentence about an error
 * @wq: woken by every callback
 * @lock: @data_next and @data_bad
 * @events: held while events are taken: @request, @connected, @down, @cm_err
 * @pattern: content of a region, see proto.h
 * @region: what the peer may access
 * @local: where our own accesses take from and put to
 * @info: what discovery found
 * @iwarp: there are no values with writes and no FI_DELIVERY_COMPLETE, and a
 *	message that finds no receive ends the connection
 * @levels: levels of completion that there are
 * @size: bytes of @region that are registered
 * @fabric: opened from @info
 * @eq: calls rma_ep_event()
 * @pep: server: where clients come
 * @domain: opened for the first connection
 * @cq: all completions
 * @srx: where receives are posted, with opts.srx
 * @ep: the connection; one for all with opts.rdm
 * @av: its peers then
 * @to: the peer
 * @mr: @region, registered
 * @keys: regions registered so far
 * @request: server: a client that waits to be accepted
 * @connected: the connection is there
 * @down: the connection is over
 * @cm_err: why there is no connection
 * @space: counts callbacks that say it is worth posting again
 * @tx: transmits
 * @rx: receives of content
 * @cmd: the one command or answer being sent
 * @cmd_buf: its bytes
 * @cmd_busy: it has not completed
 * @cmd_err: its error
 * @answer: the receive for the next command or answer
 * @answer_buf: its bytes
 * @answer_state: how far it is
 * @answer_err: its error
 * @answer_len: bytes that came
 * @name: server, with opts.rdm: the receive for the address of the next client
 * @name_buf: the address
 * @name_len: bytes that came
 * @name_here: it has come, and is not read yet
 * @remote: called for values that came with writes
 * @data_next: the value to come next
 * @data_bad: values that were others
 * @peer: the peer's region, and what the peer can do
 * @tally: client: what was done, by this side and by the peer
 */
struct rma_run {
	struct rma_opts		opts;
	struct seq_buf		*report;
	char			detail[160];
	wait_queue_head_t	wq;
	spinlock_t		lock;	/* see above */
	struct mutex		events;	/* see above */
	u8			*pattern;
	struct rma_mem		region;
	struct rma_mem		local;

	struct fi_info		*info;
	bool			iwarp;
	enum krma_level		levels;
	size_t			size;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*srx;
	struct fid_ep		*ep;
	struct fid_av		*av;
	fi_addr_t		to;
	struct fid_mr		*mr;
	u64			keys;

	struct fi_info		*request;
	bool			connected;
	bool			down;
	int			cm_err;
	unsigned int		space;

	struct rma_ops		tx;
	struct rma_ops		rx;

	struct kofi_cqe		cmd;
	struct krma_msg		cmd_buf;
	bool			cmd_busy;
	int			cmd_err;

	struct kofi_cqe		answer;
	struct krma_msg		answer_buf;
	enum rma_answer		answer_state;
	int			answer_err;
	size_t			answer_len;

	struct kofi_cqe		name;
	struct sockaddr_storage	name_buf;
	size_t			name_len;
	bool			name_here;

	struct kofi_cqe		remote;
	u64			data_next;
	u64			data_bad;

	struct rma_cmd		peer;
	struct krma_tally	tally[KRMA_ROWS][2];
};

/*
 * Until @cond is true, which a callback makes so before it wakes; 0, or
 * -ETIMEDOUT or -EINTR.
 */
#define rma_wait(run, cond) ({						\
	long rma_left = wait_event_killable_timeout((run)->wq, cond,	\
						    RMA_TIMEOUT);	\
									\
	rma_left < 0 ? -EINTR : rma_left ? 0 : -ETIMEDOUT;		\
})

/*
 * Server, with an endpoint that does not connect: another client is there, and the
 * one before has ended. Nothing else tells that it has, if it closed in order.
 */
static inline bool rma_next(const struct rma_run *run)
{
	/* pairs with rma_name_done() */
	return smp_load_acquire(&run->name_here);
}

/* main.c */
__printf(2, 3) void rma_report(struct rma_run *run, const char *fmt, ...);
__printf(3, 4) int rma_error(struct rma_run *run, int err, const char *fmt, ...);

/* mem.c */
int rma_mem_alloc(struct rma_mem *mem, size_t size);
void rma_mem_free(struct rma_mem *mem);
void rma_mem_fill(struct rma_run *run, struct rma_mem *mem, size_t at,
		  size_t len, u32 seed, u64 off);
bool rma_mem_check(struct rma_run *run, struct rma_mem *mem, size_t at,
		   size_t len, u32 seed, u64 off, u64 *where);
int rma_vec_make(struct rma_vec *v, struct rma_mem *mem, size_t at, size_t len,
		 enum krma_kind kind, bool source);
void rma_vec_free(struct rma_vec *v);
const char *rma_kind_name(enum krma_kind kind);
const char *rma_level_name(enum krma_level level);

/* ep.c */
int rma_ep_listen(struct rma_run *run);
int rma_ep_accept(struct rma_run *run);
int rma_ep_find(struct rma_run *run);
int rma_ep_connect(struct rma_run *run);
int rma_ep_region(struct rma_run *run, enum krma_kind kind, u64 access);
void rma_ep_hangup(struct rma_run *run);
void rma_ep_close(struct rma_run *run);

/* xfer.c */
void rma_xfer_init(struct rma_run *run);
void rma_xfer_space(struct fid_ep *ep, void *context);
int rma_xfer_access(struct rma_run *run, const struct rma_cmd *cmd, bool write);
int rma_xfer_send(struct rma_run *run, const struct rma_cmd *cmd);
int rma_xfer_recv_begin(struct rma_run *run, const struct rma_cmd *cmd);
int rma_xfer_recv_end(struct rma_run *run, const struct rma_cmd *cmd);
int rma_xfer_forms(struct rma_run *run, u32 seed, u64 off);
int rma_xfer_fence(struct rma_run *run, const struct rma_cmd *cmd);
int rma_name_send(struct rma_run *run);
int rma_name_expect(struct rma_run *run);
int rma_name_recv(struct rma_run *run);
int rma_cmd_send(struct rma_run *run, const struct rma_cmd *cmd);
int rma_cmd_expect(struct rma_run *run);
int rma_cmd_recv(struct rma_run *run, struct rma_cmd *cmd);
int rma_region_fill(struct rma_run *run, const struct rma_cmd *cmd);
int rma_region_check(struct rma_run *run, const struct rma_cmd *cmd,
		     u64 *where);

/* serve.c */
int rma_serve(struct rma_run *run);

/* client.c */
int rma_lead(struct rma_run *run);
int rma_bad_access(struct rma_run *run, const struct rma_cmd *cmd, bool write);

#endif /* _KOFI_RMA_H */
