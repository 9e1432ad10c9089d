/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Listening sockets, and incoming requests.
 */
#ifndef _KOFI_SOCK_LISTENER_H
#define _KOFI_SOCK_LISTENER_H

#include "sock.h"

/* Progress of a request that has not been taken */
enum ksk_req_state {
	KSK_REQ_PENDING,	/* it is being read, or delivered */
	KSK_REQ_EVICTED,	/* the same, after its time has been cut short */
	KSK_REQ_WAITING,	/* complete, until the backlog has room */
	KSK_REQ_DELIVERED,	/* ksk_req_take() finds it */
};

/**
 * struct ksk_req - connection request on the passive side
 * @fid: handle for the consumer
 * @listener: listener of the request, as long as it is on the listener's list
 * @node: entry in the listener's list; empty once the request has been taken
 * @state: progress of the request. Written under ksk_req_mutex. @work looks without it for
 *	KSK_REQ_DELIVERED, which only @work sets
 * @sock: the connection
 * @cm: the request message
 * @work: work item that reads @cm, and the timer of the request
 * @tls: TLS of the connection, NULL without, or after the connection has been adopted
 * @deadline: time by which @cm must be complete, in jiffies. Brought forward under
 *	ksk_req_mutex by the eviction, which then schedules @work; @work reads it without
 */
struct ksk_req {
	struct fi_fid		fid;
	struct ksk_listener	*listener;
	struct list_head	node;
	enum ksk_req_state	state;
	struct socket		*sock;
	struct ksk_cm		cm;
	struct delayed_work	work;
	struct ksk_tls		*tls;
	unsigned long		deadline;
};

/**
 * struct ksk_listener_ops - a listener's owner
 * @prepare: allocate for the announcement of a complete request; returns NULL to drop the
 *	request; process context, may sleep
 * @deliver: announce the request; from now on ksk_req_take() finds it. Returns false if
 *	there is no room; under a mutex, must not wait for the listener
 * @discard: free the result of @prepare if the request has not been delivered
 */
struct ksk_listener_ops {
	void	*(*prepare)(struct ksk_req *req);
	bool	(*deliver)(struct ksk_req *req, void *prepared);
	void	(*discard)(void *prepared);
};

/**
 * struct ksk_listener - a socket that accepts connections
 * @ops: owner of the listener
 * @net: network namespace of the listener
 * @info: attributes that the listener was opened with
 * @obj: object of the owner
 * @src: address to listen on
 * @ifindex: device in the VRF of which to listen, or 0
 * @tun: options; accepted sockets inherit the options of the socket
 * @tls: KOFI_OPT_TLS of the connections
 * @backlog: most requests that are delivered and not taken
 * @sock: the socket, or NULL before the start
 * @saved: original callbacks of @sock
 * @work: work item that accepts connections
 * @node: entry in the list of listeners, under ksk_req_mutex as all members below
 * @closing: no connection is accepted
 * @reqs: requests that have not been taken
 * @pending: number of @reqs that are not delivered
 * @delivered: number of @reqs that are delivered
 * @accepted: statistics: TCP connections. Statistics of this structure are read without
 *	the mutex
 * @evicted: statistics: connections closed early because too many were pending
 * @timeouts: statistics: connections closed because no request came in time
 * @violations: statistics: connections closed because of an invalid request
 * @lost: statistics: connections closed for lack of room to announce them
 * @unauthenticated: statistics: connections closed because the handshake of TLS failed
 */
struct ksk_listener {
	const struct ksk_listener_ops *ops;
	struct net		*net;
	const struct fi_info	*info;
	struct kofi_obj		*obj;
	union kofi_ip		src;
	int			ifindex;
	struct ksk_tunables	tun;
	struct kofi_tls		tls;
	int			backlog;
	struct socket		*sock;
	struct ksk_cbs		saved;
	struct delayed_work	work;
	struct list_head	node;
	bool			closing;
	struct list_head	reqs;
	unsigned int		pending;
	unsigned int		delivered;
	unsigned long		accepted;
	unsigned long		evicted;
	unsigned long		timeouts;
	unsigned long		violations;
	unsigned long		lost;
	unsigned long		unauthenticated;
};

void ksk_listener_init(struct ksk_listener *l);
int ksk_listener_start(struct ksk_listener *l);
void ksk_listener_stop(struct ksk_listener *l);
void ksk_listener_exit(struct ksk_listener *l);
unsigned long ksk_listener_stats(struct ksk_listener *l, kofi_stat_fn fn, void *arg);
int ksk_req_take(struct net *net, const struct ksk_listener *l, fid_t handle,
		 struct ksk_req **req);
void ksk_req_free(struct ksk_req *req);
struct ksk_req *ksk_req_next(struct ksk_listener *l);
int ksk_req_answer(struct ksk_req *req, u8 type, u32 ext, const void *data,
		   size_t len);
struct socket *ksk_req_adopt(struct ksk_req *req, bool *big_endian,
			     u32 *ext, struct ksk_tls **tls);

#endif /* _KOFI_SOCK_LISTENER_H */
