/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Atomic operations between a kernel and a program: either side, in either. What
 * both do is one source, run.c and plan.c, in calls that kOFI and libfabric have in
 * common; what differs is here, in main.c, the module, and in tests/vm/peer/atomic.[ch],
 * the program.
 *
 * The two sides meet by messages, and then lead in turn. The side that leads goes
 * through a plan of operations on the other one's region, and compares what it
 * fetches with a model. The other side knows the plan, and compares what its region
 * has become. After that both add to the other's region at the same time.
 */
#ifndef _KOFI_TESTS_ATOMIC_H
#define _KOFI_TESTS_ATOMIC_H

#ifdef __KERNEL__

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/kofi/kofi.h>

#define AT_KERNEL	1

static inline void *at_alloc(size_t size)
{
	return kvzalloc(size, GFP_KERNEL);
}

static inline void at_free(void *p)
{
	kvfree(p);
}

/* As part of an fi_info, which frees it */
static inline char *at_strdup(const char *s)
{
	return kstrdup(s, GFP_KERNEL);
}

/* The remote address of the first byte */
static inline u64 at_base(const struct fi_info *info, struct fid_mr *mr,
			  const void *mem)
{
	return kofi_mr_base(mr);
}

#else

#include "../vm/peer/atomic.h"

#endif

#define AT_PORT		7475
#define AT_MAGIC	0x6d6f7461U
#define AT_VALUES	16288		/* bytes of one operation's, at most */
#define AT_AREA		16896		/* bytes that operations change */
#define AT_GUARD	64		/* before and behind them */
#define AT_REGION	(AT_GUARD + AT_AREA + AT_GUARD)
#define AT_INJECT	64
#define AT_OPS		32		/* under way */
#define AT_MAX_CONTEXTS	8

/* How an operation is posted */
enum at_form {
	AT_PLAIN,
	AT_VECTOR,	/* two pieces of local memory */
	AT_MESSAGE,	/* and two of the peer's, the second part of it first */
	AT_INJECTED,	/* without a completion */
	AT_FORMS
};

/**
 * struct at_step - one operation of the plan
 * @type: what an element is
 * @call: which of the three calls, see at_call()
 * @op: what is done
 * @form: how it is posted
 * @count: elements
 * @off: of the first one in the area, in elements
 * @turn: element of these that is the first in the peer's memory
 * @in: operands
 * @cmp: what they are compared with
 */
struct at_step {
	enum fi_datatype	type;
	unsigned int		call;
	enum fi_op		op;
	enum at_form		form;
	u32			count;
	u32			off;
	u32			turn;
	u8			in[AT_VALUES] __aligned(8);
	u8			cmp[AT_VALUES] __aligned(8);
};

/**
 * struct at_plan - the steps on one region, and what they make of it
 * @rnd: state of the generator of numbers
 * @type: the next step's datatype
 * @call: its call
 * @op: its operation
 * @round: how often that has been taken
 * @mem: the region, with its guards
 */
struct at_plan {
	u32	rnd;
	u32	type;
	u32	call;
	u32	op;
	u32	round;
	u8	mem[AT_REGION] __aligned(8);
};

u64 at_call(unsigned int call);
void at_plan_init(struct at_plan *p, u32 seed);
void at_plan_type(struct at_plan *p, enum fi_datatype type);
bool at_plan_step(struct at_plan *p, struct at_step *s);
void at_plan_do(struct at_plan *p, const struct at_step *s, u8 *old);

/* What either side says; a peer of another byte order is refused by ofi_rxm. */
enum at_kind {
	AT_HELLO = 1,		/* this is my region */
	AT_BEGIN,		/* make it the plan's first content */
	AT_CHECK,		/* is it what the steps of a datatype make of it? */
	AT_SAME,		/* is it still? */
	AT_TURN,		/* you lead */
	AT_DONE,
};

struct at_msg {
	u32	magic;
	u32	kind;
	u32	status;		/* of answers */
	u32	value;		/* the plan's seed or a datatype */
	u64	addr;		/* of the region */
	u64	key;
	/* a second region of the same memory, which this one lets read */
	u64	addr_read;
	u64	key_read;
	u32	kernel;
	u32	name_len;
	u8	name[sizeof(struct sockaddr_in6)];
	u32	pad;
};

/* Something posted, the context of its completion */
struct at_post {
	bool	busy;
	int	err;
};

struct at_op {
	struct at_post	post;
	struct at_step	step;
	u8		old[AT_VALUES] __aligned(8);
	u8		want[AT_VALUES] __aligned(8);
};

/**
 * struct at_opts - what was asked for
 * @node: address to listen at or to connect to
 * @port: of the server; context i of a scalable endpoint is at the port i higher
 * @server: wait for a client
 * @prov: name of the provider
 * @contexts: serve with a scalable endpoint that has so many, each in turn; or
 *	talk to each of such an endpoint
 */
struct at_opts {
	const char	*node;
	unsigned int	port;
	bool		server;
	const char	*prov;
	unsigned int	contexts;
};

/* At most one of the two is there. */
struct at_own {
	struct fid_ep	*sep;
	struct fid_ep	*ctx[AT_MAX_CONTEXTS];
};

struct at_run {
	struct at_opts		opts;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_av		*av;
	struct fid_ep		*ep;
	struct at_own		own;
	struct fid_mr		*mr;
	struct fid_mr		*mr_read;
	u8			*region;
	struct at_plan		*plan;		/* of what is done at the peer */
	struct at_plan		*mine;		/* and of what is done here */
	struct at_op		*ops;
	unsigned int		done;		/* operations, as they had to be */
	unsigned int		refused;	/* others, as they had to be, too */
	fi_addr_t		peer;
	struct at_post		tx;
	struct at_post		rx;
	struct at_msg		said;
	struct at_msg		heard;
	struct at_msg		remote;		/* its hello */
};

/* In main.c and in the program: a line for the reader, and for errors */
__printf(1, 2) void at_say(const char *fmt, ...);
__printf(2, 3) int at_fault(int err, const char *fmt, ...);

int at_run(const struct at_opts *opts);

#endif /* _KOFI_TESTS_ATOMIC_H */
