// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handshakes of TLS: the daemon tlshd does them, by net/handshake. This file authorises
 * the keys.
 *
 * tlshd gets the socket before this side sends a byte, and installs kTLS on it. Until the
 * handshake is over, the socket has its original callbacks. The result is the serial number
 * of a key. The daemon accepts every key that it finds; the option of the endpoint decides
 * here which key a connection may use. A missing or unexpected result refuses the peer.
 *
 * The kernel does not limit the time of a handshake. It refuses a handshake if too many wait
 * in the namespace. Time limits and repetitions are the owner's.
 */
#include <linux/file.h>
#include <linux/key-type.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include <net/tcp.h>
#include <net/tls.h>
/* it declares none of its types */
#include <net/handshake.h>

#include "sock.h"
#include "tls.h"

/* ------------------------------------------------------------------ tlshd */

#if IS_ENABLED(CONFIG_NET_HANDSHAKE) && IS_ENABLED(CONFIG_KEYS)

static int ksk_tlshd_hello(struct ksk_tls *t, struct socket *sock)
{
	/*
	 * tlshd would look up the peer's address in the DNS, for its log, if it had no name. An
	 * accept of tlshd may read the name after a cancel, so it must outlive this module.
	 */
	const struct tls_handshake_args args = {
		.ta_sock	= sock,
		.ta_done	= ksk_tls_done,
		.ta_data	= t,
		.ta_peername	= sock->sk->sk_prot->name,
		.ta_keyring	= t->opts.keyring,
		.ta_num_peerids	= 1,
		.ta_my_peerids	= { t->opts.key },
	};

	return t->server ? tls_server_hello_psk(&args, GFP_KERNEL) :
			   tls_client_hello_psk(&args, GFP_KERNEL);
}

static const struct ksk_tls_agent ksk_tlshd = {
	.hello		= ksk_tlshd_hello,
	.cancel		= tls_handshake_cancel,
};

const struct ksk_tls_agent *ksk_tls_agent = &ksk_tlshd;
#else
const struct ksk_tls_agent *ksk_tls_agent;
#endif
EXPORT_SYMBOL_IF_KUNIT(ksk_tls_agent);

/**
 * ksk_tls_supported - test whether this kernel can do handshakes
 *
 * Return: true if it can.
 */
bool ksk_tls_supported(void)
{
	return ksk_tls_agent;
}

/* ---------------------------------------------------------------- options */

/**
 * ksk_tls_option - check KOFI_OPT_TLS
 * @to: receives the option
 * @val: value from the consumer
 * @len: bytes at @val
 * @passive: the endpoint listens
 *
 * Context: any.
 * Return: 0; -FI_ETOOSMALL; -EINVAL; -EOPNOTSUPP for a kernel without handshakes.
 */
int ksk_tls_option(struct kofi_tls *to, const void *val, size_t len, bool passive)
{
	struct kofi_tls opts;

	if (len < sizeof(opts))
		return -FI_ETOOSMALL;
	memcpy(&opts, val, sizeof(opts));
	switch (opts.mode) {
	case KOFI_TLS_OFF:
		memset(&opts, 0, sizeof(opts));
		break;
	case KOFI_TLS_PSK:
		if (opts.key < 0 || opts.keyring < 0 ||
		    (!opts.key && !(passive && opts.keyring)) ||
		    strnlen(opts.peer, sizeof(opts.peer)) == sizeof(opts.peer))
			return -EINVAL;
		if (!ksk_tls_supported())
			return -EOPNOTSUPP;
		break;
	default:
		return -EINVAL;
	}
	*to = opts;
	return 0;
}

/* -------------------------------------------------------------- handshake */

/**
 * ksk_tls_file - prepare a new socket for handshakes
 * @sock: the socket; ksk_socket_release() frees it later
 *
 * Context: process, may sleep.
 * Return: 0, or a negative error, and the socket has been freed.
 */
int ksk_tls_file(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct file *file;

	/* without memory kTLS would break the connection; it allocates in process context */
	lock_sock(sk);
	ksk_socket_gfp(sk, GFP_NOIO);
	release_sock(sk);
	file = sock_alloc_file(sock, O_CLOEXEC, NULL);
	return PTR_ERR_OR_ZERO(file);
}

/**
 * ksk_tls_new - allocate the TLS of a connection
 * @opts: option of the endpoint or listener
 * @server: this side has accepted the connection
 *
 * Context: process, may sleep.
 * Return: the TLS, for ksk_tls_free(); or NULL. The caller sets wake and arg.
 */
struct ksk_tls *ksk_tls_new(const struct kofi_tls *opts, bool server)
{
	struct ksk_tls *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return NULL;
	mutex_init(&t->mutex);
	init_completion(&t->done);
	t->opts = *opts;
	t->server = server;
	return t;
}

/**
 * ksk_tls_hello - request the handshake
 * @t: TLS of the connection
 * @sock: the socket, connected, with its original callbacks
 *
 * Context: process, may sleep.
 * Return: 0, then ksk_tls_result() has the result after a wake; or an error of
 * ksk_tls_agent.hello.
 */
int ksk_tls_hello(struct ksk_tls *t, struct socket *sock)
{
	int err;

	/* the agent may be quicker */
	t->asked = true;
	err = ksk_tls_agent->hello(t, sock);
	if (err)
		t->asked = false;
	if (err == -EAGAIN)
		t->busy++;
	return err;
}

/**
 * ksk_tls_pause - get the time until the owner requests a refused handshake again
 * @t: TLS of the connection
 *
 * It grows, so that a thousand connections that wait need little time of the processor.
 *
 * Context: any.
 * Return: the time in jiffies.
 */
unsigned long ksk_tls_pause(const struct ksk_tls *t)
{
	unsigned int doubled = min(max(t->busy, 1u) - 1, KSK_TLS_DOUBLED);

	return msecs_to_jiffies(KSK_TLS_RETRY << doubled);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tls_pause);

/**
 * ksk_tls_done - take the result of a handshake
 * @data: TLS of the connection
 * @status: 0 or a negative error
 * @peerid: serial number of the key, 0 for none
 *
 * Context: process.
 */
void ksk_tls_done(void *data, int status, key_serial_t peerid)
{
	struct ksk_tls *t = data;

	t->status = status;
	t->peerid = peerid;
	smp_store_release(&t->finished, true);	/* pairs with ksk_tls_result() */
	t->wake(t->arg);
	complete_all(&t->done);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tls_done);

/* An error that tlshd has reported, which may be any number. Some have a meaning here. */
static int ksk_tls_failure(int status)
{
	if (status >= 0 || status < -MAX_ERRNO || status == -EINPROGRESS || status == -EAGAIN)
		return -EIO;
	return status;
}

/* Does kTLS 1.3 encrypt both directions in software? */
static bool ksk_tls_installed(struct sock *sk)
{
	const struct tcp_ulp_ops *ulp;
	struct tls_context *ctx;
	bool yes = false;

	lock_sock(sk);
	ulp = inet_csk(sk)->icsk_ulp_ops;
	if (ulp && !strcmp(ulp->name, "tls")) {
		ctx = tls_get_ctx(sk);
		yes = ctx && ctx->tx_conf == TLS_SW && ctx->rx_conf == TLS_SW &&
		      ctx->prot_info.version == TLS_1_3_VERSION;
	}
	release_sock(sk);
	return yes;
}

#if IS_ENABLED(CONFIG_KEYS)

/* Is a key linked in the keyring? */
static bool ksk_tls_linked(key_serial_t serial, struct key *key)
{
	struct key *ring = key_lookup(serial);
	key_ref_t found;
	bool yes = false;

	if (IS_ERR(ring))
		return false;
	if (!key_validate(ring) && !strcmp(ring->type->name, "keyring")) {
		found = keyring_search(make_key_ref(ring, true), key->type,
				       key->description, false);
		if (!IS_ERR(found)) {
			yes = key_ref_to_ptr(found) == key;
			key_ref_put(found);
		}
	}
	key_put(ring);
	return yes;
}

/* Test whether a key may be used by the peer. */
static bool ksk_tls_allowed(const struct kofi_tls *opts, struct key *key)
{
	if (key_validate(key))
		return false;
	if (opts->key ? key_serial(key) != opts->key :
			!ksk_tls_linked(opts->keyring, key))
		return false;
	return !*opts->peer || !strcmp(opts->peer, key->description);
}

static int ksk_tls_authorise(struct ksk_tls *t)
{
	struct key *key = t->peerid > 0 ? key_lookup(t->peerid) : ERR_PTR(-ENOKEY);

	if (IS_ERR(key))
		return -EKEYREJECTED;
	if (!ksk_tls_allowed(&t->opts, key)) {
		key_put(key);
		return -EKEYREJECTED;
	}
	t->key = key;
	return 0;
}

/**
 * ksk_tls_check - test whether the key of a connection is still valid
 * @t: TLS of the connection, after the handshake
 *
 * Context: any.
 * Return: 0, or a negative error.
 */
int ksk_tls_check(const struct ksk_tls *t)
{
	return t->key ? key_validate(t->key) : 0;
}

static const char *ksk_tls_name(const struct ksk_tls *t)
{
	return t && t->key ? t->key->description : NULL;
}
#else
static int ksk_tls_authorise(struct ksk_tls *t)
{
	return -EKEYREJECTED;
}

int ksk_tls_check(const struct ksk_tls *t)
{
	return 0;
}

static const char *ksk_tls_name(const struct ksk_tls *t)
{
	return NULL;
}
#endif

/**
 * ksk_tls_result - get the result of the handshake
 * @t: TLS of the connection
 * @sock: the socket
 *
 * After a result, the agent does not access @t: the caller may hand @t to another owner.
 *
 * Context: process, may sleep.
 * Return: 0 for an authorised peer; -EINPROGRESS; or the reason of the failure, a
 * negative error.
 */
int ksk_tls_result(struct ksk_tls *t, struct socket *sock)
{
	if (!smp_load_acquire(&t->finished))	/* pairs with ksk_tls_done() */
		return -EINPROGRESS;
	/* ksk_tls_done() may be about to call @t->wake with the present owner */
	wait_for_completion(&t->done);
	if (t->key)
		return 0;
	if (t->status)
		return ksk_tls_failure(t->status);
	if (!ksk_tls_installed(sock->sk))
		return -EPROTO;
	return ksk_tls_authorise(t);
}

/**
 * ksk_tls_stop - give up a handshake
 * @t: TLS of the connection
 * @sock: the socket, which the agent may keep open
 *
 * Afterwards @t is not woken, and has a result.
 *
 * Context: process, may sleep.
 */
void ksk_tls_stop(struct ksk_tls *t, struct socket *sock)
{
	if (!t->asked || completion_done(&t->done))
		return;
	ksk_socket_abort(sock);
	if (!ksk_tls_agent->cancel(sock->sk)) {
		wait_for_completion(&t->done);
		return;
	}
	t->status = -ECANCELED;
	smp_store_release(&t->finished, true);	/* pairs with ksk_tls_result() */
	complete_all(&t->done);
}

/**
 * ksk_tls_free - free the TLS of a connection
 * @t: the TLS, or NULL; no handshake runs
 *
 * Context: process.
 */
void ksk_tls_free(struct ksk_tls *t)
{
	if (!t)
		return;
	key_put(t->key);
	mutex_destroy(&t->mutex);
	kfree(t);
}

/**
 * ksk_tls_peer - return the identity of the peer
 * @t: TLS of the connection, or NULL
 * @val: receives the string
 * @len: in: bytes at @val; out: size of the string with its NUL
 *
 * Context: any.
 * Return: 0; -ENOTCONN without an authenticated peer; -FI_ETOOSMALL.
 */
int ksk_tls_peer(const struct ksk_tls *t, void *val, size_t *len)
{
	const char *name = ksk_tls_name(t);

	return name ? kofi_opt_get(name, strlen(name) + 1, val, len) : -ENOTCONN;
}
