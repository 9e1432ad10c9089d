/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi-peer: tests/rma as a program, over the libfabric of userspace. Tests
 * let it talk to kofi_rma.ko, in both roles; the protocol is that of
 * tests/rma/proto.h.
 */
#ifndef _KOFI_PEER_H
#define _KOFI_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../../../tests/rma/proto.h"

#define TIMEOUT		120	/* seconds; nothing that works takes this long */

/* A struct krma_msg in this machine's byte order */
struct cmd {
	enum krma_op	op;
	uint16_t	flags;
	int		status;
	uint32_t	seed;
	uint32_t	count;
	uint32_t	segs;
	enum krma_level	level;
	enum krma_kind	kind;
	uint64_t	off;
	uint64_t	len;
	uint64_t	data;
	uint64_t	key;
	uint64_t	addr;
	uint64_t	size;
};

/* An operation under way; overwritten memory shows a completion too early */
struct op {
	bool		busy;
	int		err;
	uint64_t	flags;
	size_t		len;
	uint8_t		*spoil;
};

struct peer {
	/* what was asked for */
	const char		*node;
	const char		*port;
	bool			server;
	bool			verbs;
	bool			rdm;		/* an endpoint that does not connect */
	bool			rxm;		/* over ofi_rxm */
	bool			srx_wanted;
	bool			brief;
	bool			last;
	/* the fabric */
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*srx;
	struct fid_ep		*ep;		/* with rdm one for all connections */
	struct fid_av		*av;		/* its peers */
	fi_addr_t		to;		/* the peer */
	struct fid_mr		*mr;
	struct fid_mr		*local_mr;	/* where the provider needs them */
	struct fid_mr		*msg_mr;
	struct fi_info		*request;
	bool			iwarp;		/* see struct rma_run of tests/rma */
	uint64_t		keys;
	bool			connected;
	bool			down;
	/* memory */
	uint8_t			pattern[KRMA_PATTERN_LEN];
	uint8_t			*region;
	uint8_t			*local;
	/* operations */
	struct op		tx[KRMA_COUNT_MAX];
	struct op		rx[KRMA_COUNT_MAX];
	struct op		cmd_op;
	struct op		answer_op;
	struct op		name_op;	/* server, with rdm: the next client */
	struct {
		struct krma_msg	cmd;
		struct krma_msg	answer;
		uint8_t		name[sizeof(struct sockaddr_storage)];
	} msgs;
	bool			expecting;
	uint64_t		data_next;
	uint64_t		data_bad;
	struct cmd		remote;		/* its region */
	struct krma_tally	tally[KRMA_ROWS][2];	/* done by us and by it */
};

/* All functions return 0 or a negative errno value, having said why. */
__attribute__((format(printf, 2, 3))) int fault(int err, const char *fmt, ...);

/* ep.c */
int ep_listen(struct peer *p);
int ep_accept(struct peer *p);
int ep_find(struct peer *p);
int ep_connect(struct peer *p);
int ep_region(struct peer *p, uint64_t access);
uint64_t ep_base(struct peer *p);
int ep_progress(struct peer *p);
int ep_wait_down(struct peer *p);
void ep_hangup(struct peer *p);
void ep_close(struct peer *p);
double now(void);

/* xfer.c */
int xfer_access(struct peer *p, const struct cmd *c, bool write);
int xfer_bad(struct peer *p, const struct cmd *c, bool write);
enum krma_level levels_end(struct peer *p);
int xfer_forms(struct peer *p, uint32_t seed, uint64_t off);
int xfer_send(struct peer *p, const struct cmd *c);
int xfer_recv_begin(struct peer *p, const struct cmd *c);
int xfer_recv_end(struct peer *p, const struct cmd *c);
uint32_t segs_max(struct peer *p, bool yours);
int name_send(struct peer *p);
int name_expect(struct peer *p);
bool name_here(struct peer *p);
int cmd_send(struct peer *p, const struct cmd *c);
int cmd_expect(struct peer *p);
int cmd_recv(struct peer *p, struct cmd *c);
int region_fill(struct peer *p, const struct cmd *c);
int region_check(struct peer *p, const struct cmd *c, uint64_t *where);

#endif /* _KOFI_PEER_H */
