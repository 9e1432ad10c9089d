/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Listening sockets, and requests on their way in.
 */
#ifndef _KOFI_SOCK_LISTENER_H
#define _KOFI_SOCK_LISTENER_H

#include "sock.h"

/**
 * struct ksk_req - connection request on the passive side
 * @fid: handle for the consumer
 * @listener: where it came in, as long as it is on a list
 * @node: on the listener's list; empty once it has been taken
 * @delivered: it may be taken
 * @evicted: its time has been cut short
 * @sock: the connection
 * @cm: the request
 * @work: reads it, and is its timer
 * @deadline: when it must be complete, in jiffies
 */
struct ksk_req {
	struct fi_fid		fid;
	struct ksk_listener	*listener;
	struct list_head	node;
	bool			delivered;
	bool			evicted;
	struct socket		*sock;
	struct ksk_cm		cm;
	struct delayed_work	work;
	unsigned long		deadline;
};

/**
 * struct ksk_listener_ops - a listener's owner
 * @prepare: a request is complete: get what it takes to announce it, or NULL to
 *	have it dropped; process context, may sleep
 * @deliver: announce it; from now on ksk_req_take() finds it. Returns false if
 *	there is no room; under a mutex, must not wait for the listener
 * @discard: give back what @prepare has got, as it has not been delivered
 */
struct ksk_listener_ops {
	void	*(*prepare)(struct ksk_req *req);
	bool	(*deliver)(struct ksk_req *req, void *prepared);
	void	(*discard)(void *prepared);
};

/**
 * struct ksk_listener - a socket that accepts connections
 * @ops: its owner
 * @net: its namespace
 * @info: what it was opened with
 * @obj: the owner's object
 * @src: address to listen on
 * @ifindex: device in the VRF of which to listen, or 0
 * @tun: options; those of the socket are inherited by what it accepts
 * @backlog: requests that may wait to be taken
 * @sock: the socket, once there is one
 * @saved: its callbacks
 * @work: accepts
 * @node: on the list of listeners; from here on under ksk_req_mutex
 * @closing: no more
 * @reqs: requests that have not been taken
 * @pending: of them, with the handshake not complete
 * @delivered: of them, waiting to be taken
 * @accepted: statistics: TCP connections
 * @evicted: of them, closed early because too many were pending
 * @timeouts: of them, closed because the request did not come in all its time
 * @violations: of them, closed because it was none
 * @lost: of them, closed because there was no room to announce them
 */
struct ksk_listener {
	const struct ksk_listener_ops *ops;
	struct net		*net;
	const struct fi_info	*info;
	struct kofi_obj		*obj;
	union kofi_ip		src;
	int			ifindex;
	struct ksk_tunables	tun;
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
			     u32 *ext);

#endif /* _KOFI_SOCK_LISTENER_H */
