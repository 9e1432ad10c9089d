/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_testrdma: an RDMA device that has addresses of its own. See main.c.
 */
#ifndef _KOFI_TESTRDMA_H
#define _KOFI_TESTRDMA_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#define TRD_SGES	6		/* segments of a work request */
#define TRD_INLINE	32		/* bytes it can take along */
#define TRD_WRS		8192		/* work requests of a queue */
#define TRD_PAGES	256		/* pages, or segments, of a region */
#define TRD_KEY		0xdead00	/* of all memory, for who sends or receives */

/**
 * struct trd_dev - the device
 * @ib: the core's
 * @lock: irqsave; what all queues, regions and connections are doing
 * @qps: queue pairs, by number
 * @mrs: regions, by key without the part that changes
 * @listeners: connection identifiers that listen
 */
struct trd_dev {
	struct ib_device	ib;
	spinlock_t		lock;	/* see above */
	struct xarray		qps;
	struct xarray		mrs;
	struct list_head	listeners;
};

/**
 * struct trd_seg - memory, as the device sees it
 * @addr: for DMA
 * @len: bytes
 */
struct trd_seg {
	u64	addr;
	u64	len;
};

/**
 * struct trd_mr - a region
 * @ib: the core's
 * @type: may it have gaps
 * @valid: it has been registered
 * @key: that of then
 * @access: the same
 * @iova: the same
 * @skip: bytes of the first segment ahead of @iova
 * @max: segments there is room for
 * @nr: segments
 * @segs: these
 */
struct trd_mr {
	struct ib_mr		ib;
	enum ib_mr_type		type;
	bool			valid;
	u32			key;
	int			access;
	u64			iova;
	u32			skip;
	unsigned int		max;
	unsigned int		nr;
	struct trd_seg		*segs;
};

struct trd_qp;

/**
 * struct trd_cqe - a completion
 * @wc: what is said
 * @qp: whose send queue has more room once it has been read, or NULL
 * @room: for so many
 */
struct trd_cqe {
	struct ib_wc		wc;
	struct trd_qp		*qp;
	unsigned int		room;
};

struct trd_cq {
	struct ib_cq		ib;
	struct trd_cqe		*ring;
	unsigned int		size;
	unsigned int		head;
	unsigned int		nr;
	bool			armed;
};

/* A work request */
struct trd_wqe {
	u64			wr_id;
	enum ib_wr_opcode	opcode;
	int			flags;
	unsigned int		num_sge;
	struct ib_sge		sge[TRD_SGES];
	u8			data[TRD_INLINE];
	u64			remote;
	u32			rkey;
	u32			inv;
	struct trd_mr		*mr;
	int			access;
};

struct trd_queue {
	struct trd_wqe		*ring;
	unsigned int		size;
	unsigned int		head;
	unsigned int		nr;
};

struct trd_srq {
	struct ib_srq		ib;
	struct trd_queue	q;
};

struct trd_conn;

/**
 * struct trd_qp - a queue pair
 * @ib: the core's
 * @state: IB_QPS_INIT, RTS or ERR
 * @sq: what is to be sent
 * @rq: receives, unless they are a shared queue's
 * @used: places of @sq the consumer does not know to be free
 * @silent: of them, those that are done
 * @conn: what it is part of, or NULL
 * @work: does what is in @sq
 * @refs: who may look at it
 * @gone: no longer
 */
struct trd_qp {
	struct ib_qp		ib;
	enum ib_qp_state	state;
	struct trd_queue	sq;
	struct trd_queue	rq;
	unsigned int		used;
	unsigned int		silent;
	struct trd_conn		*conn;
	struct work_struct	work;
	refcount_t		refs;
	struct completion	gone;
};

/**
 * struct trd_conn - a connection, or an attempt
 * @id: identifiers of who has asked, and of who has accepted
 * @qp: their queue pairs
 * @refs: one for each of the two that may still name it
 * @ended: nothing comes of it any more
 */
struct trd_conn {
	struct iw_cm_id		*id[2];
	struct trd_qp		*qp[2];
	unsigned int		refs;
	bool			ended;
};

static inline struct trd_dev *trd_dev(struct ib_device *ib)
{
	return container_of(ib, struct trd_dev, ib);
}

static inline struct trd_mr *trd_mr(struct ib_mr *ib)
{
	return container_of(ib, struct trd_mr, ib);
}

static inline struct trd_cq *trd_cq(struct ib_cq *ib)
{
	return container_of(ib, struct trd_cq, ib);
}

static inline struct trd_srq *trd_srq(struct ib_srq *ib)
{
	return container_of(ib, struct trd_srq, ib);
}

static inline struct trd_qp *trd_qp(struct ib_qp *ib)
{
	return container_of(ib, struct trd_qp, ib);
}

/* conn.c */
extern const struct ib_device_ops trd_conn_ops;

struct trd_qp *trd_peer(const struct trd_qp *qp);
void trd_conn_end(struct trd_conn *conn, struct iw_cm_event *reply);

/* queue.c */
extern const struct ib_device_ops trd_queue_ops;

void trd_qp_end(struct trd_qp *qp);
void trd_qp_put(struct trd_qp *qp);

/* region.c */
extern const struct ib_device_ops trd_region_ops;

struct trd_mr *trd_mr_find(struct trd_dev *dev, u32 key);
bool trd_may(struct trd_dev *dev, const struct ib_pd *pd,
	     const struct ib_sge *sge, int access);
void *trd_at(struct trd_dev *dev, const struct ib_sge *sge, u32 off,
	     size_t *len);

#endif /* _KOFI_TESTRDMA_H */
