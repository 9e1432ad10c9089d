/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A model of the queue of receives (rxq_model.c), for the test that has both (rxq_test.c). */
#ifndef _KOFI_TESTS_RXQ_MODEL_H
#define _KOFI_TESTS_RXQ_MODEL_H

#include <linux/prandom.h>

#include <kunit/test.h>
#include <linux/kofi/lib.h>

#define RXQ_STREAMS	4
#define RXQ_WAITING	4	/* records of a stream */
#define RXQ_MSGS	(RXQ_STREAMS * RXQ_WAITING)
#define RXQ_RECVS	10	/* records of the queue */
#define RXQ_MANY	1000	/* of a queue that hashes; the rest are in use */
#define RXQ_ORDER	1	/* pages of a receive's memory */
#define RXQ_MEM		(PAGE_SIZE << RXQ_ORDER)
#define RXQ_CONTEXTS	12
#define RXQ_CQ_MAX	32

/* What the model knows of an accepted receive */
struct rxq_recv {
	bool		used;
	bool		posted;
	u64		seq;
	void		*context;
	bool		tagged;
	bool		claim;
	u64		tag;
	u64		ignore;
	fi_addr_t	src;
	bool		multi;
	bool		bvec;
	struct page	*mem;
	size_t		first;		/* byte of the memory */
	size_t		size;
	size_t		off;
	unsigned int	parts;
	bool		canceled;
};

enum rxq_state {
	RXQ_IDLE,
	RXQ_WAIT,		/* for a receive */
	RXQ_SLOT,		/* for a slot */
	RXQ_GIVEN,		/* a receive waits to be fetched */
	RXQ_DROP,		/* it is to be thrown away, */
	RXQ_EXPIRED,		/* or its connection ended */
	RXQ_PLACING,
};

struct rxq_stream {
	struct fid_ep		*ep;
	struct fid_ep		*to;	/* where messages come to: that, or the owner */
	fi_addr_t		source;
};

/* A record for messages of a stream */
struct rxq_msg {
	struct rxq_stream	*from;
	struct kofi_rxmsg	msg;
	fi_addr_t		source;
	bool			woken;
	enum rxq_state		state;
	bool			claimed;
	void			*claim;
	struct rxq_recv		*recv;
	size_t			off;	/* its part of a multi-receive */
	size_t			len;
	u64			given;	/* which of the gives it was */
	struct kofi_rxop	*op;
};

struct rxq_model {
	struct kunit		*test;
	u32			seed;
	unsigned int		step;
	struct rnd_state	rnd;
	struct fid_ep		*owner;
	struct kofi_rxq		*q;
	struct kofi_rxq		own;
	struct fid_cq		*cq;
	struct fid_eq		*eq;
	u32			limit[2];	/* slots: receives, all */
	u32			reserved;
	struct rxq_recv		recvs[RXQ_RECVS];
	struct rxq_stream	streams[RXQ_STREAMS];
	int			nstreams;
	struct rxq_msg		msgs[RXQ_MSGS];
	int			nmsgs;
	struct rxq_msg		*order[RXQ_MSGS];	/* waiting, oldest first */
	int			norder;
	size_t			min_multi;
	bool			directed;
	bool			source;
	u64			seq;
	u64			posts;
	u64			gives;
	struct kofi_wc		expected[RXQ_CQ_MAX];
	u32			head;
	u32			tail;
	bool			wrong;
};

u32 rxq_random(struct rxq_model *m, u32 below);
u32 rxq_slots(const struct rxq_model *m);
void rxq_expect(struct rxq_model *m, const struct kofi_wc *wc);
void rxq_expect_canceled(struct rxq_model *m, struct rxq_recv *r);
bool rxq_fits(const struct rxq_recv *r, const struct rxq_msg *s);
struct rxq_recv *rxq_oldest(struct rxq_model *m, struct rxq_msg *s);
void rxq_order_remove(struct rxq_model *m, struct rxq_msg *s);
struct rxq_msg *rxq_starved(struct rxq_model *m);
void rxq_wakes(struct rxq_model *m, struct rxq_msg *s, enum rxq_state state);
void rxq_offer(struct rxq_model *m, struct rxq_recv *r);
void rxq_feed(struct rxq_model *m);
int rxq_look(struct rxq_model *m, struct rxq_msg *s);
void rxq_cancel_recv(struct rxq_model *m, struct rxq_recv *r);
void rxq_cancel_given(struct rxq_model *m, const void *context);

#endif /* _KOFI_TESTS_RXQ_MODEL_H */
