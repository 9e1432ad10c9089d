/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TLS of a connection. tls.c has the stream, tls_auth.c the handshake.
 */
#ifndef _KOFI_SOCK_TLS_H
#define _KOFI_SOCK_TLS_H

#include <linux/completion.h>
#include <linux/key.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <net/sock.h>

#include <linux/kofi/kofi.h>

#include "conn.h"

/**
 * struct ksk_tls - TLS of a connection
 * @mutex: protects the stream, in place of the socket's lock; kTLS takes that lock itself
 * @opts: option of the endpoint, or of the listener
 * @server: this side has accepted the connection
 * @asked: the handshake has been requested; the owner writes it
 * @busy: requests for the handshake that were refused because of too many handshakes; the
 *	owner writes it
 * @finished: @status and @peerid are valid; set with release semantics by ksk_tls_done(), or
 *	by ksk_tls_stop() in its place
 * @status: result of the handshake, a negative error or 0
 * @peerid: serial number of the key of the handshake
 * @done: completes after the last access of ksk_tls_done(); for all waiters
 * @wake: has the owner look at @finished; any context
 * @arg: argument of @wake
 * @key: key of the peer, with a reference, once it is authorised; the owner writes it
 * @closed: the peer has closed its direction in order; under @mutex
 * @tickets: session tickets that the peer has sent; under @mutex
 * @saved: callbacks of kTLS while a request has replaced them
 */
struct ksk_tls {
	struct mutex		mutex;	/* the stream */
	struct kofi_tls		opts;
	bool			server;
	bool			asked;
	unsigned int		busy;
	bool			finished;
	int			status;
	key_serial_t		peerid;
	struct completion	done;
	void			(*wake)(void *arg);
	void			*arg;
	struct key		*key;
	bool			closed;
	unsigned int		tickets;
	struct ksk_cbs		saved;
};

/**
 * struct ksk_tls_agent - agent for handshakes
 * @hello: start a handshake; ksk_tls_done() reports its result, in any process, unless this
 *	returns an error: -EAGAIN for too many handshakes at the same time, -ESRCH without
 *	an agent in the namespace
 * @cancel: give up a handshake; returns false if ksk_tls_done() has been called, or is
 */
struct ksk_tls_agent {
	int	(*hello)(struct ksk_tls *t, struct socket *sock);
	bool	(*cancel)(struct sock *sk);
};

#define KSK_TLS_RETRY	20	/* ms until a handshake is requested again, at first */
#define KSK_TLS_DOUBLED	4U	/* that time is doubled so often at most */
#define KSK_TLS_TICKETS	32	/* session tickets of a peer at most; tlshd sends none */

/* ------------------------------------------------------------------ tls.c */

int ksk_tls_sendmsg(struct socket *sock, struct msghdr *msg);
int ksk_tls_read(struct ksk_tls *t, struct socket *sock, read_descriptor_t *desc,
		 sk_read_actor_t actor);
bool ksk_tls_idle(struct sock *sk);
int ksk_tls_fin(const struct ksk_tls *t);
void ksk_tls_shutdown(struct ksk_tls *t, struct socket *sock);
void ksk_tls_attach(struct ksk_conn *c, struct sock *sk);
int ksk_tls_poll(struct irq_poll *iop, int weight);

/* ------------------------------------------------------------- tls_auth.c */

extern const struct ksk_tls_agent *ksk_tls_agent;

int ksk_tls_option(struct kofi_tls *to, const void *val, size_t len, bool passive);
bool ksk_tls_supported(void);
int ksk_tls_file(struct socket *sock);
struct ksk_tls *ksk_tls_new(const struct kofi_tls *opts, bool server);
int ksk_tls_hello(struct ksk_tls *t, struct socket *sock);
unsigned long ksk_tls_pause(const struct ksk_tls *t);
void ksk_tls_done(void *data, int status, key_serial_t peerid);
int ksk_tls_result(struct ksk_tls *t, struct socket *sock);
void ksk_tls_stop(struct ksk_tls *t, struct socket *sock);
void ksk_tls_free(struct ksk_tls *t);
int ksk_tls_check(const struct ksk_tls *t);
int ksk_tls_peer(const struct ksk_tls *t, void *val, size_t *len);

#endif /* _KOFI_SOCK_TLS_H */
