/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints of type FI_EP_RDM over the loopback device, for the suites about them */
#ifndef _KOFI_TESTS_SOCK_RDM_H
#define _KOFI_TESTS_SOCK_RDM_H

#include <linux/in.h>

#include "../../../providers/sock/rdm.h"

#include "../kunit.h"
#include "live.h"

#define RDM_MAX		64	/* messages under way */
#define RDM_SIZE	32	/* transmits an endpoint may have outstanding */
#define RDM_BIG		SZ_128K
#define LIVE_JIFFIES	msecs_to_jiffies(LIVE_TIMEOUT)

/* An endpoint with a domain, a vector and a queue of its own */
struct rdm_node {
	struct fi_info		*info;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fid_ep		*ep;
	struct sockaddr_in	addr;
	struct completion	space;	/* posts may be tried again */
	bool			calls;	/* the receive queue calls back */
	size_t			slots;	/* of the receive queue, if not enough for all */
	bool			any;	/* listens at all addresses */
	bool			reclaim; /* is reclaim-safe */
	size_t			buffered; /* bytes it stores, if not the default */
	size_t			expire;	/* milliseconds a message may wait, */
	unsigned int		handshake;	/* and a request may take, */
	unsigned int		connect;	/* and connecting */
	unsigned int		silence;	/* and a dead peer */
};

struct rdm_test {
	struct fid_fabric	*fabric;
	struct rdm_node		node[2];
	u8			*out;
	u8			*in;
};

/* A message of the handshake, from or to a socket */
struct rdm_cm {
	struct ksk_cm_hdr	hdr;
	struct ksk_rdm_cm	cm;
} __packed;

int rdm_init(struct kunit *test);
void rdm_open(struct kunit *test, struct rdm_node *n, u64 caps, u16 port);
void rdm_close(struct kunit *test, struct rdm_node *n);
void rdm_exit(struct kunit *test);
fi_addr_t rdm_insert(struct kunit *test, struct rdm_node *n,
		     const struct sockaddr_in *addr);
void rdm_pair(struct kunit *test, u64 caps, fi_addr_t peer[2]);
unsigned long rdm_announced(const struct rdm_node *n);
unsigned long rdm_stored(const struct rdm_node *n);
unsigned long rdm_stalls(const struct rdm_node *n);
u64 rdm_stat(const struct rdm_node *n, const char *name);
void rdm_recvs(struct kunit *test, struct rdm_node *n, int from, int to,
	       size_t len);
void rdm_sends(struct kunit *test, struct rdm_node *n, fi_addr_t peer,
	       int from, int to, size_t len);
void rdm_received(struct kunit *test, struct rdm_node *n, int from,
		  int to, size_t len);
void rdm_sent(struct kunit *test, struct rdm_node *n, int count, int err);
void rdm_alone(struct kunit *test, const struct rdm_node *n);
void rdm_tsend(struct kunit *test, struct rdm_node *n, fi_addr_t peer,
	       int i, size_t len, u64 flags);
void rdm_tpost(struct kunit *test, struct rdm_node *n, int i, size_t len);
void rdm_treceived(struct kunit *test, struct rdm_node *n, int i, size_t len);
void rdm_trecv(struct kunit *test, struct rdm_node *n, int i, size_t len);
struct socket *rdm_deaf(struct kunit *test, struct sockaddr_in *addr);
struct socket *rdm_raw(struct kunit *test, const struct rdm_node *n);
struct socket *rdm_raw_from(struct kunit *test, const struct rdm_node *n, u32 host);
void rdm_request(struct kunit *test, struct socket *sock, u8 version, u16 port,
		 u32 pid);
int rdm_ask_version(struct kunit *test, struct socket *sock,
		    struct rdm_cm *cm, u8 version, u16 port, u32 pid);
int rdm_ask(struct kunit *test, struct socket *sock, struct rdm_cm *cm,
	    u16 port, u32 pid);

#endif /* _KOFI_TESTS_SOCK_RDM_H */
