/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A provider to start from: messages between the endpoints of one machine.
 *
 * It has everything that a provider of connected endpoints needs, except for a
 * network. Documentation/internals.rst explains it, chapter "Writing a
 * provider"; the contract suite tests it ("make kunit DEVICE=loop").
 *
 * main.c	the module, discovery, fabrics, domains
 * cm.c		connections: listeners, requests, endpoints
 * msg.c	messages: posts, and delivery
 *
 * Locks
 *
 * loop_mutex protects connections. It is held while bytes are copied, so that
 * the peer stays. Only process context may take it, so posts do not. An
 * endpoint's lock protects the list of posted transmits.
 */
#ifndef _KOFI_LOOP_H
#define _KOFI_LOOP_H

#include <linux/in.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include <linux/kofi/lib.h>

#define LOOP_INJECT	128
#define LOOP_SIZE	256	/* most operations per direction */
#define LOOP_BACKLOG	128	/* most waiting requests of a listener */
#define LOOP_MSG_MAX	SZ_1G
#define LOOP_TX_CAPS	(FI_MSG | FI_SEND)
#define LOOP_RX_CAPS	(FI_MSG | FI_RECV | FI_MULTI_RECV)
#define LOOP_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define LOOP_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_MORE | \
			 FI_REMOTE_CQ_DATA | KOFI_NO_COMPLETION | LOOP_LEVELS)

/* A transmit; loop_ep.free holds unused ones. */
struct loop_op {
	union {
		struct list_head	node;
		struct llist_node	free;
	};
	void			*context;
	u64			flags;
	u64			data;
	struct kofi_cursor	cur;
	u8			inject[LOOP_INJECT];
};

struct loop_ep {
	struct kofi_ep		base;	/* first, as in all objects */
	struct kofi_rxq		rxq;
	struct sockaddr_in	name;
	struct sockaddr_in	peer_name;
	struct loop_ep		*peer;	/* NULL: not connected; under loop_mutex */
	struct loop_req		*req;	/* made by it, or opened with; under loop_mutex */
	struct kofi_rxmsg	msg;	/* its next message; under loop_mutex */
	void			*page;	/* copies go through it; under loop_mutex */
	spinlock_t		lock;	/* posted, closed, taking from free */
	struct list_head	posted;
	bool			closed;
	struct kofi_freelist	free;
	struct loop_op		*ops;
	struct work_struct	work;
};

struct loop_pep {
	struct kofi_pep		base;
	struct sockaddr_in	name;
	struct list_head	node;	/* in loop_peps, while listening */
	struct list_head	reqs;	/* not taken by an endpoint */
	unsigned int		nr_reqs;
};

struct loop_req {
	struct fi_fid		fid;	/* the handle */
	struct list_head	node;
	struct loop_pep		*pep;	/* NULL: taken by an endpoint */
	struct loop_ep		*from;	/* NULL: closed */
};

/* main.c */
extern struct mutex loop_mutex;
extern struct workqueue_struct *loop_wq;

/* cm.c */
struct sockaddr_in loop_addr(u16 port);
int loop_addr_set(void **addr, size_t *len, const struct sockaddr_in *from);
int loop_endpoint(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **fid, void *context);
int loop_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_pep **fid, void *context);

/* msg.c */
extern const struct fi_ops_msg loop_msg_ops;
bool loop_deliver(struct loop_ep *ep);
void loop_work(struct work_struct *work);
void loop_wake(struct kofi_rxmsg *msg);
void loop_flush(struct loop_ep *ep);

static inline struct loop_ep *loop_ep(struct fid_ep *ep)
{
	return container_of(ep, struct loop_ep, base.ep);
}

#endif /* _KOFI_LOOP_H */
