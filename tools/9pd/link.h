/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Listening for kofi_9p.ko and exchanging messages with it, over the libfabric
 * of userspace.
 */
#ifndef _KOFI_9PD_LINK_H
#define _KOFI_9PD_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

struct listener {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
};

/* Room for a message, posted or in use */
struct slot {
	struct slot		*next;
	struct fi_context	context;
	bool			send;
	size_t			len;
	unsigned char		*bytes;
};

#define LINK_BATCH	8	/* messages at a time */
#define LINK_FIRST	10	/* seconds that a client has for its first request */

/*
 * A connection. One thread calls link_recv(), link_progress() and
 * link_release(), another one link_slot() and link_send(); link_down() may be
 * called by all. Each of both has a queue, of which it takes the completions.
 */
struct link {
	uint32_t		msize;		/* the lower limit of both sides */
	unsigned int		credits;	/* the client's requests */
	unsigned int		receives;	/* posted */
	struct listener		*listener;
	struct fi_info		*info;
	struct fid_domain	*domain;
	struct fid_cq		*rx_cq;
	struct fid_cq		*tx_cq;
	struct fid_ep		*ep;
	bool			mr_local;
	struct fid_mr		*mr;
	void			*desc;
	struct slot		*slots;
	unsigned char		*bytes;
	struct slot		*ready;		/* received, oldest first */
	struct slot		**ready_end;
	struct slot		*idle;		/* to be filled and sent */
	bool			begun;		/* a request has been received */
	bool			down;
};

int listener_open(struct listener *l, const char *prov, const char *node,
		  const char *port);
void listener_close(struct listener *l);

struct link *link_open(struct listener *l, struct fi_info *info,
		       const void *data, size_t len, unsigned int credits,
		       uint32_t msize, uint64_t room);
uint64_t link_bytes(const struct link *k);
void link_refuse(struct listener *l, struct fi_info *info);
int link_accept(struct link *k);
int link_recv(struct link *k, struct slot **slots);
int link_progress(struct link *k);
int link_release(struct link *k, struct slot *slot);
struct slot *link_slot(struct link *k);
int link_send(struct link *k, struct slot *slot, size_t len);
void link_down(struct link *k);
void link_close(struct link *k);

__attribute__((format(printf, 1, 2))) void complain(const char *fmt, ...);
/* The same of something that others can cause as often as they like */
__attribute__((format(printf, 1, 2))) void report(const char *fmt, ...);

#endif /* _KOFI_9PD_LINK_H */
