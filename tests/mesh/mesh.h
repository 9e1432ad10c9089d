/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mesh of endpoints that do not connect, in one machine or several.
 *
 * Each member sends messages, tagged ones too, to all others and itself, and writes
 * and reads their memory, and adds to it where there are atomic operations, as chance
 * has it. A message says who has sent it and which of its sender's it is, and all of
 * its bytes follow from that. The last member is closed and opened again at its
 * address now and then, and its machine may be switched off and on; of the others
 * nothing may be lost or doubled, nor out of order but where a receive was given back,
 * and each operation completes once, in any case.
 *
 * mesh.c has the life of a mesh and what members tell each other of themselves;
 * member.c what they post and what completes; main.c the module. The unit test
 * rdm_mesh has all members in its machine.
 */
#ifndef _KOFI_TESTS_MESH_H
#define _KOFI_TESTS_MESH_H

#include <linux/in.h>
#include <linux/prandom.h>

#include <linux/kofi/kofi.h>

#define MESH_ENDS	8
#define MESH_MORTAL	(MESH_ENDS - 1)	/* is closed and opened again */
#define MESH_SENDS	16		/* at a time, of each */
#define MESH_RECVS	8		/* of a kind, of each */
#define MESH_LEN	140000		/* rxm's longest way to send begins below it */
#define MESH_SLOT	4096		/* of a region, for one operation */
#define MESH_WORDS	(MESH_ENDS * MESH_SENDS * MESH_SLOT)	/* behind all slots */
#define MESH_MEM	(MESH_WORDS + MESH_ENDS * sizeof(u64))
#define MESH_PORT	7480		/* of the first member */
#define MESH_MACHINES	MESH_ENDS	/* at most */
#define MESH_WHY	256

enum mesh_kind {
	MESH_MSG,
	MESH_TAGGED,
	MESH_RMA,	/* a write, and a read of the same */
	MESH_ATOMIC,	/* added to the sender's word of the peer's memory */
	MESH_KINDS,
	MESH_TELL = MESH_KINDS	/* a message about the sender itself */
};

/**
 * struct mesh_opts - what is asked for
 * @prov: provider
 * @device: its device
 * @hosts: numeric addresses of the machines; member i is in machine i modulo
 *	their number
 * @machines: how many there are
 * @here: which this one is
 * @posts: operations of this machine's members, at least
 * @ms: time they post for, at least
 * @close_ms: between closes of the mortal member; 0: @close_posts
 * @close_posts: operations between them
 * @deaths: how often the mortal member's machine is switched off, and on again with
 *	other members
 * @life: how often this machine has been
 * @stop: once this is set they post no more; or NULL
 * @limit_ms: without progress of the whole after this time it has failed
 * @seed: what chance begins with
 * @room: KiB of memory that may be in use in addition to what was when all had met; 0:
 *	any number
 */
struct mesh_opts {
	const char	*prov;
	const char	*device;
	const char	*hosts[MESH_MACHINES];
	unsigned int	machines;
	unsigned int	here;
	unsigned int	posts;
	unsigned int	ms;
	unsigned int	close_ms;
	unsigned int	close_posts;
	unsigned int	deaths;
	unsigned int	life;
	const bool	*stop;
	unsigned int	limit_ms;
	unsigned int	seed;
	unsigned int	room;
};

/* What a message begins with */
struct mesh_hdr {
	u32	kind;
	u32	from;
	u32	life;	/* of the sender's machine */
	u32	seq;
	u32	len;
};

/**
 * struct mesh_told - what a member says of itself to another one
 * @hdr: kind MESH_TELL
 * @base: address of its region's first byte
 * @key: of the region
 * @hears: it knows the other one's
 * @last: it sends no more; then the rest is
 * @sent: how many messages it has sent to the other one, of each kind
 * @added: what it has added to the other one's word
 */
struct mesh_told {
	struct mesh_hdr	hdr;
	u64		base;
	u64		key;
	u32		hears;
	u32		last;
	u32		sent[MESH_RMA];
	u64		added;
};

struct mesh_op {
	bool		used;
	enum mesh_kind	kind;
	int		peer;
	int		left;	/* completions to come */
	int		err;
	size_t		len;
	u32		seed;
	u8		*buf;
};

struct mesh_recv {
	bool		done;
	int		err;
	size_t		len;
	fi_addr_t	src;
	u8		*buf;
};

/**
 * struct mesh_peer - what a member knows of another one
 * @known: it has told us of itself
 * @due: it is to be told of us
 * @telling: that is under way
 * @again: when it is told again if it has not told us
 * @base: of its region
 * @key: of its region
 * @sent: messages to it, of each kind
 * @seen: number of the last one from it behind which none is missing
 * @ahead: those that came before one with a lower number: bit 1 for @seen + 2 and so on
 * @added: to our word of its memory, as far as that has completed
 * @life: of its machine
 * @there: what has been done there in this life
 * @here: messages from there in this life
 * @over: it has been told what was sent
 * @last: it has told, too
 */
struct mesh_peer {
	bool			known;
	bool			due;
	bool			telling;
	unsigned long		again;
	u64			base;
	u64			key;
	u32			sent[MESH_RMA];
	u32			seen[MESH_RMA];
	u32			ahead[MESH_RMA];
	u64			added;
	u32			life;
	unsigned int		there;
	unsigned int		here;
	bool			over;
	struct mesh_told	last;
};

/* A member; without endpoint it is in another machine, or closed. */
struct mesh_end {
	bool			here;
	struct fid_ep		*ep;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fid_eq		*eq;
	struct fid_av		*av;
	struct fid_mr		*mr;
	u8			*mem;	/* of @mr */
	struct mesh_op		ops[MESH_SENDS];
	struct mesh_recv	recvs[MESH_RMA][MESH_RECVS];
	unsigned int		first[MESH_RMA];	/* receive posted longest ago */
	struct mesh_peer	peer[MESH_ENDS];
};

/**
 * struct mesh - a mesh, as far as it is in this machine
 * @ending: members post nothing more but what they tell
 * @early: messages that came before one of the same peer with a lower number
 * @lost: connections that were
 * @wrong: mistakes
 * @why: the first one
 * @low: free memory was never less, in bytes
 */
struct mesh {
	struct mesh_opts	opts;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct sockaddr_in	name[MESH_ENDS];
	struct mesh_end		end[MESH_ENDS];
	struct rnd_state	rnd;
	bool			ending;
	unsigned long		deadline;
	unsigned int		messages;
	unsigned int		accesses;
	unsigned int		atomics;
	unsigned int		errors;
	unsigned int		closes;
	unsigned int		early;
	unsigned int		lost;
	unsigned int		wrong;
	char			why[MESH_WHY];
	u64			start;
	u64			low;
};

/* Is it in the machine that is switched off? */
static inline bool mesh_dies(const struct mesh *m, int at)
{
	return m->opts.deaths && (MESH_MORTAL - at) % m->opts.machines == 0;
}

/* One of them is in that machine and the other one is not. */
static inline bool mesh_parted(const struct mesh *m, int a, int b)
{
	return mesh_dies(m, a) != mesh_dies(m, b);
}

/* Neither of them is closed or switched off before the other one. */
static inline bool mesh_live(const struct mesh *m, int a, int b)
{
	return a != MESH_MORTAL && b != MESH_MORTAL && !mesh_parted(m, a, b);
}

/* mesh.c */
struct mesh *mesh_open(const struct mesh_opts *opts, int *err);
int mesh_run(struct mesh *m);
s64 mesh_used(const struct mesh *m);
void mesh_close(struct mesh *m);
__printf(2, 3) void mesh_wrong(struct mesh *m, const char *fmt, ...);
void mesh_heard(struct mesh *m, int at, const struct mesh_told *told);

/* member.c */
int mesh_recvs_post(struct mesh *m, int at);
bool mesh_post(struct mesh *m, int at);
bool mesh_tell(struct mesh *m, int at, int to, bool last);
void mesh_progress_one(struct mesh *m, int at);
bool mesh_idle(const struct mesh_end *e);
bool mesh_idle_to(const struct mesh_end *e, int to);

#endif /* _KOFI_TESTS_MESH_H */
