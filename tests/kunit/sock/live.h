/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two endpoints of kofi_sock over the loopback device, or one and a plain TCP
 * socket: what the suites sock_live and ksk_rma share.
 */
#ifndef _KOFI_TESTS_SOCK_LIVE_H
#define _KOFI_TESTS_SOCK_LIVE_H

#include <kunit/test.h>

#include "../limit.h"
#include "../lo.h"

#include "../../../providers/sock/sock.h"

#define LIVE_TIMEOUT	TEST_LIMIT(10000)	/* milliseconds; nothing that works takes it */
#define LIVE_BIG	SZ_1M

/*
 * One end of a connection. A domain, a queue for receives and a shared context
 * that are there already are used.
 */
struct live_end {
	struct fid_domain	*domain;
	struct fid_ep		*ep;
	struct fid_eq		*eq;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fid_ep		*srx;
	struct fi_info		*info;
};

struct live {
	struct fid_fabric	*fabric;
	struct fid_pep		*pep;
	struct fid_eq		*pep_eq;
	struct live_end		end[2];		/* who connects, who accepts */
	struct fi_info		*info;
	struct sockaddr_storage	addr;
	size_t			addrlen;
	u8			*out;
	u8			*in;
	void			*priv;		/* the test's */
};

int live_init(struct kunit *test);
void live_exit(struct kunit *test);

void live_listen(struct kunit *test, struct live *l, int family);
void live_listen_mode(struct kunit *test, struct live *l, int family,
		      int mr_mode);
void live_start(struct kunit *test, struct live *l);
void live_open(struct kunit *test, struct live *l, struct live_end *e,
	       struct fi_info *info, size_t cq_size);
void live_close_end(struct kunit *test, struct live_end *e);
void live_connect(struct kunit *test, struct live *l, size_t cq_size);

ssize_t live_event(struct fid_eq *eq, u32 event, struct fi_info **info,
		   void *data);
int live_comp(struct fid_cq *cq, struct fi_cq_err_entry *e);
void live_pattern(u8 *buf, size_t len, unsigned int seed);

struct socket *live_raw_connect(struct kunit *test, struct live *l, bool be,
				u32 ext);
int live_raw_send(struct socket *sock, const void *buf, size_t len);
int live_raw_recv(struct socket *sock, void *buf, size_t len);

#endif /* _KOFI_TESTS_SOCK_LIVE_H */
