// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connecting: the exchange of CM messages behind TCP's handshake.
 *
 * Active side
 *
 * fi_connect() starts TCP and returns; the socket's callbacks queue the
 * connection's work item, which sends the request and reads the answer. With TLS its
 * handshake comes first. One timer, the connection's watch, bounds all of it.
 *
 * Passive side
 *
 * listener.c has read the request; fi_accept() answers it.
 *
 * CM messages are sent in one piece, which stock peers need, and read in any
 * segmentation, never a byte too far: frames may be right behind.
 */
#include <linux/slab.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "sock.h"
#include "sock_trace.h"
#include "tls.h"

/* --------------------------------------------------------------- messages */

static int ksk_cm_actor(read_descriptor_t *desc, struct sk_buff *skb,
			unsigned int offset, size_t len)
{
	struct ksk_cm *cm = desc->arg.data;
	size_t used = 0;

	while (used < len) {
		unsigned int want;

		desc->error = ksk_cm_want(cm, &want);
		if (desc->error || !want)
			break;
		want = min_t(size_t, want, len - used);
		desc->error = skb_copy_bits(skb, offset + used,
					    cm->buf + cm->len, want);
		if (desc->error)
			break;
		cm->len += want;
		used += want;
	}
	/* the rest belongs to frames */
	if (used < len)
		desc->count = 0;
	return used;
}

/* Test whether a CM message is complete. Returns 1, 0 for more to come, or -EPROTO. */
static int ksk_cm_complete(const struct ksk_cm *cm)
{
	unsigned int want;
	int err = ksk_cm_want(cm, &want);

	return err ? : !want;
}

/*
 * Read the bytes of a CM message that have arrived. Returns 1 when it is complete,
 * -EAGAIN for more to come, -EPROTO, or the error of a broken connection,
 * -ECONNRESET if it just closed. Locked.
 */
int ksk_cm_read(struct sock *sk, struct ksk_cm *cm)
{
	read_descriptor_t desc = { .arg.data = cm, .count = 1 };
	int err;

	tcp_read_sock(sk, &desc, ksk_cm_actor);
	err = desc.error ? : ksk_cm_complete(cm);
	if (err)
		return err;
	if (sk->sk_err)
		return -sk->sk_err;
	if ((sk->sk_shutdown & RCV_SHUTDOWN) || sk->sk_state == TCP_CLOSE)
		return -ECONNRESET;
	return -EAGAIN;
}

/* Read the bytes of a CM message from a stream with TLS. As ksk_cm_read(). */
int ksk_cm_read_tls(struct ksk_tls *t, struct socket *sock, struct ksk_cm *cm)
{
	read_descriptor_t desc = { .arg.data = cm };
	int err, broken;

	broken = ksk_tls_read(t, sock, &desc, ksk_cm_actor);
	err = desc.error ? : ksk_cm_complete(cm);
	if (err)
		return err;
	if (broken)
		return broken;
	return t->closed ? -ECONNRESET : -EAGAIN;
}

/* Send a CM message, or the rest of it. Locked. Returns 0 when it is sent. */
int ksk_cm_send(struct socket *sock, struct ksk_cm *cm, bool tls)
{
	while (cm->off < cm->len) {
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		struct kvec kv = {
			.iov_base = cm->buf + cm->off,
			.iov_len = cm->len - cm->off,
		};
		int n;

		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &kv, 1, kv.iov_len);
		n = tls ? ksk_tls_sendmsg(sock, &msg) :
			  ksk_sendmsg_shared(sock->sk, &msg, kv.iov_len);
		if (n <= 0)
			return n ? : -EPIPE;
		cm->off += n;
	}
	return 0;
}

/* ------------------------------------------------------------ active side */

/**
 * ksk_cm_fail - report that connecting has failed, and abort the connection
 * @c: the connection
 * @err: error code for the consumer, positive
 * @prov_errno: reason, a positive error code
 * @data: private data of a reject
 * @len: bytes of @data
 *
 * Context: locked, process.
 */
void ksk_cm_fail(struct ksk_conn *c, int err, int prov_errno,
		 const void *data, size_t len)
{
	ksk_cm_step(&c->ep->base.obj, "failed", prov_errno);
	c->ops->failed(c, err, prov_errno, data, len);
	ksk_conn_abort(c, err);
}

/* Send the request. */
static void ksk_cm_ask(struct ksk_conn *c)
{
	int err = ksk_cm_send(c->sock, c->cm, c->tls);

	if (err == -EAGAIN) {
		/* out of memory; the buffer of a new socket is empty */
		mod_timer(&c->retry, jiffies + msecs_to_jiffies(5));
		return;
	}
	if (err) {
		ksk_cm_fail(c, -err, -err, NULL, 0);
		return;
	}
	ksk_cm_step(&c->ep->base.obj, "requested", 0);
	WRITE_ONCE(c->phase, KSK_CONN_REQUESTING);
	c->cm->len = 0;
}

/*
 * Request the handshake of TLS. The retry timer requests it again if too many handshakes
 * run; callbacks are not needed then.
 */
static void ksk_cm_secure(struct ksk_conn *c)
{
	int err;

	ksk_conn_detach(c);
	WRITE_ONCE(c->phase, KSK_CONN_SECURING);
	err = ksk_tls_hello(c->tls, c->sock);
	if (!err) {
		ksk_cm_step(&c->ep->base.obj, "hello", 0);
	} else if (err == -EAGAIN) {
		WRITE_ONCE(c->phase, KSK_CONN_CONNECTING);
		mod_timer(&c->retry, jiffies + ksk_tls_pause(c->tls));
	} else {
		ksk_cm_fail(c, EACCES, -err, NULL, 0);
	}
}

/* The handshake of TLS may be over: send the request. */
static void ksk_cm_secured(struct ksk_conn *c)
{
	int err = ksk_tls_result(c->tls, c->sock);

	if (err == -EINPROGRESS)
		return;
	if (err) {
		ksk_cm_fail(c, EACCES, -err, NULL, 0);
		return;
	}
	ksk_cm_step(&c->ep->base.obj, "secured", 0);
	if (c->sock->sk->sk_user_data != c)
		ksk_conn_attach(c, c->sock, KSK_CONN_SECURING);
	ksk_cm_ask(c);
}

/* TCP has connected: send the request. */
static void ksk_cm_tcp_connected(struct ksk_conn *c)
{
	struct sock *sk = c->sock->sk;
	int err;

	switch (inet_sk_state_load(sk)) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return;
	case TCP_ESTABLISHED:
		break;
	default:
		err = sk->sk_err ? : ECONNREFUSED;
		ksk_cm_fail(c, err, err, NULL, 0);
		return;
	}

	/* another connection has replaced this one, which is about to terminate */
	if (c->ops->request && !c->ops->request(c))
		return;
	if (c->tls)
		ksk_cm_secure(c);
	else
		ksk_cm_ask(c);
}

/* The request is out: read the answer. */
static void ksk_cm_answered(struct ksk_conn *c)
{
	struct ksk_cm *cm = c->cm;
	const void *data = cm->buf + sizeof(cm->hdr);
	int err;

	err = c->tls ? ksk_cm_read_tls(c->tls, c->sock, cm) :
		       ksk_cm_read(c->sock->sk, cm);
	if (err == -EAGAIN)
		return;
	if (err == -EPROTO || (err == 1 && cm->hdr.type == KSK_CM_REQUEST)) {
		trace_kofi_sock_violation(c, "bad answer", cm->buf, cm->len);
		ksk_conn_violated(c, "bad answer");
		ksk_cm_fail(c, EIO, EPROTO, NULL, 0);
	} else if (err < 0) {
		/* the listener has gone, or thrown us out */
		ksk_cm_fail(c, err == -ECONNRESET ? ECONNREFUSED : -err,
			    -err, NULL, 0);
	} else if (cm->hdr.type == KSK_CM_REJECT) {
		ksk_cm_fail(c, ECONNREFUSED, ECONNREFUSED, data,
			    ksk_cm_data_len(cm));
	} else {
		c->be = ksk_cm_big_endian(cm);
		c->ext = ksk_cm_ext(cm);
		ksk_conn_established(c, data, ksk_cm_data_len(cm));
		kfree(cm);
		c->cm = NULL;
	}
}

/**
 * ksk_cm_work - go on connecting
 * @c: the connection
 *
 * Context: locked, process.
 */
void ksk_cm_work(struct ksk_conn *c)
{
	if (c->phase == KSK_CONN_CONNECTING)
		ksk_cm_tcp_connected(c);
	if (c->phase == KSK_CONN_SECURING && !READ_ONCE(c->dead))
		ksk_cm_secured(c);
	if (c->phase == KSK_CONN_REQUESTING && !READ_ONCE(c->dead))
		ksk_cm_answered(c);
}

static int ksk_cm_bind(struct socket *sock, const union kofi_ip *src)
{
	union kofi_ip from = *src;

	if (!*kofi_ip_port(&from.sa)) {
		if (kofi_ip_any(&from.sa))
			return 0;
		/* the port is found when the peer is known */
		inet_set_bit(BIND_ADDRESS_NO_PORT, sock->sk);
	}
	return kernel_bind(sock, (void *)&from, kofi_ip_len(&from.sa));
}

/* A socket to connect with, for all but the connecting */
static int ksk_cm_socket(struct ksk_ep *ep, const union kofi_ip *src,
			 int family, struct socket **sock)
{
	int err;

	err = ksk_socket_create(ep->base.domain->fabric->net, family,
				SOCK_STREAM, READ_ONCE(ep->domain->ifindex), sock);
	if (err)
		return err;
	err = ep->tls.mode ? ksk_tls_file(*sock) : 0;
	if (err)
		return err;
	ksk_socket_tune(*sock, &ep->tun, ep->base.info);
	ksk_ep_reserve(ep);
	/* only our own timer limits the attempt */
	tcp_sock_set_syncnt((*sock)->sk, MAX_TCP_SYNCNT);
	err = src->sa.sa_family ? ksk_cm_bind(*sock, src) : 0;
	if (err)
		ksk_socket_release(*sock);
	return err;
}

/**
 * ksk_cm_start - connect
 * @c: a connection without a socket
 * @to: the peer
 * @src: address to bind to; family 0 for none
 * @ext: KSK_EXT_* to offer
 * @data: private data of the request
 * @len: bytes of @data
 *
 * Context: process, may sleep; the mutex held. Does not wait for the peer.
 * Return: 0, and the connection's owner is notified of the result; or an error, without
 * any effect.
 */
int ksk_cm_start(struct ksk_conn *c, const union kofi_ip *to,
		 const union kofi_ip *src, u32 ext, const void *data,
		 size_t len)
{
	union kofi_ip dest = *to;
	struct socket *sock;
	int err;

	err = -READ_ONCE(c->dead);
	if (err)
		return err;
	if (!c->cm)
		c->cm = kmalloc(sizeof(*c->cm), GFP_KERNEL);
	if (!c->cm)
		return -ENOMEM;
	err = ksk_cm_socket(c->ep, src, to->sa.sa_family, &sock);
	if (err)
		return err;

	ksk_cm_format(c->cm, KSK_CM_REQUEST, ext, data, len);
	ksk_cm_step(&c->ep->base.obj, "connect", 0);
	ksk_conn_attach(c, sock, KSK_CONN_CONNECTING);
	queue_delayed_work(c->wq, &c->watch.work,
			   msecs_to_jiffies(c->ep->tun.connect_timeout));
	err = kernel_connect(sock, (void *)&dest, kofi_ip_len(&dest.sa),
			     O_NONBLOCK);
	if (!err || err == -EINPROGRESS)
		return 0;

	/*
	 * No route and the like, known at once. The callbacks may have been
	 * quicker and told the owner already.
	 */
	ksk_conn_lock(c);
	if (!READ_ONCE(c->dead) && c->phase == KSK_CONN_CONNECTING)
		ksk_cm_fail(c, -err, -err, NULL, 0);
	ksk_conn_unlock(c);
	return 0;
}

/* With TLS a post leaves its operation to the work item. */
static int ksk_msg_add(struct ksk_ep *ep, fi_addr_t dest, struct ksk_txop *op)
{
	return ksk_tx_leave(ep->conn, op, false);
}

static const struct ksk_ep_type ksk_cm_tls_type = {
	.add		= ksk_msg_add,
};

static void ksk_msg_wake(void *arg)
{
	ksk_conn_queue(arg);
}

/**
 * ksk_msg_secure - give the connection of an endpoint TLS
 * @ep: an endpoint that is not connected
 * @t: TLS of the connection; the connection frees it
 *
 * Context: process; the connection's mutex held.
 */
void ksk_msg_secure(struct ksk_ep *ep, struct ksk_tls *t)
{
	t->wake = ksk_msg_wake;
	t->arg = ep->conn;
	ep->tls = t->opts;
	ep->type = &ksk_cm_tls_type;
	ep->direct = NULL;
	ep->conn->tls = t;
}

/* Prepare TLS for a connection that is about to be made. */
static int ksk_cm_tls(struct ksk_ep *ep)
{
	struct ksk_tls *t;

	if (!ep->tls.mode)
		return ep->base.info->caps & KOFI_TLS ? -ENOKEY : 0;
	if (ep->conn->tls)
		return 0;	/* an attempt that has failed at once */
	t = ksk_tls_new(&ep->tls, false);
	if (!t)
		return -ENOMEM;
	ksk_msg_secure(ep, t);
	return 0;
}

/* fi_connect() */
static int ksk_cm_connect(struct fid_ep *fid, const void *addr,
			  const void *param, size_t paramlen)
{
	struct ksk_ep *ep = ksk_ep(fid);
	const struct sockaddr *dest = addr ? : ep->base.info->dest_addr;
	struct ksk_conn *c = ep->conn;
	union kofi_ip to = {};
	unsigned int noio;
	int err = -EISCONN;

	if (!dest || !kofi_ip_len(dest) || paramlen > KSK_CM_DATA_MAX)
		return -EINVAL;
	if (ep->src.sa.sa_family && ep->src.sa.sa_family != dest->sa_family)
		return -EINVAL;
	memcpy(&to, dest, kofi_ip_len(dest));

	mutex_lock(&c->mutex);
	noio = ksk_memalloc_save(&ep->tun);
	if (!c->sock)
		err = ksk_cm_tls(ep) ? :
		      ksk_cm_start(c, &to, &ep->src, KSK_EXT_ALL, param,
				   paramlen);
	ksk_memalloc_restore(noio);
	mutex_unlock(&c->mutex);
	return err;
}

/* ----------------------------------------------------------- passive side */

/* fi_accept() */
static int ksk_cm_accept(struct fid_ep *fid, const void *param,
			 size_t paramlen)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct ksk_conn *c = ep->conn;
	unsigned int noio;
	struct ksk_cm cm;
	struct sock *sk;
	int err;

	if (paramlen > KSK_CM_DATA_MAX)
		return -EINVAL;
	mutex_lock(&c->mutex);
	noio = ksk_memalloc_save(&ep->tun);
	err = -FI_EOPBADSTATE;
	if (!c->sock)
		goto unlock;
	/* the request may be of another listener than the info */
	err = -ENOKEY;
	if ((ep->base.info->caps & KOFI_TLS) && !c->tls)
		goto unlock;

	err = -FI_EOPBADSTATE;
	sk = c->sock->sk;
	ksk_socket_tune(c->sock, &ep->tun, ep->base.info);
	ksk_ep_reserve(ep);
	ksk_conn_lock(c);
	if (c->phase != KSK_CONN_REQUESTED)
		goto release;
	err = -READ_ONCE(c->dead);
	if (err)
		goto release;
	ksk_cm_format(&cm, KSK_CM_ACCEPT, c->ext, param, paramlen);
	if (!c->tls)
		ksk_socket_gfp(sk, GFP_NOIO);
	err = ksk_cm_send(c->sock, &cm, c->tls);
	if (!c->tls)
		ksk_socket_gfp(sk, GFP_ATOMIC);
	if (err) {
		/* half an answer cannot be taken back */
		ksk_cm_fail(c, -err, -err, NULL, 0);
		err = 0;
	} else {
		ksk_conn_established(c, NULL, 0);
	}
release:
	ksk_conn_unlock(c);
unlock:
	ksk_memalloc_restore(noio);
	mutex_unlock(&c->mutex);
	return err;
}

/* -------------------------------------------------------------- addresses */

int ksk_cm_name(struct socket *sock, const union kofi_ip *src, void *addr,
		size_t *len)
{
	struct sockaddr_storage name = {};
	int err;

	if (!sock) {
		if (!src->sa.sa_family)
			return -EADDRNOTAVAIL;
		return kofi_ip_copy(&src->sa, addr, len);
	}
	err = kernel_getsockname(sock, (struct sockaddr *)&name);
	if (err < 0)
		return err;
	return kofi_ip_copy((struct sockaddr *)&name, addr, len);
}

/* fi_getname() and fi_setname() work on both kinds of endpoint */
static int ksk_ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	int err;

	mutex_lock(&ep->conn->mutex);
	err = ksk_cm_name(ep->conn->sock, &ep->src, addr, len);
	mutex_unlock(&ep->conn->mutex);
	return err;
}

static int ksk_ep_setname(fid_t fid, void *addr, size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	int err = kofi_ip_check(addr, len);

	if (err)
		return err;
	mutex_lock(&ep->conn->mutex);
	if (ep->conn->sock)
		err = -FI_EOPBADSTATE;
	else
		memcpy(&ep->src, addr, kofi_ip_len(addr));
	mutex_unlock(&ep->conn->mutex);
	return err;
}

static int ksk_ep_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct sockaddr_storage name = {};
	int err = -ENOTCONN;

	mutex_lock(&ep->conn->mutex);
	if (ep->conn->sock)
		err = kernel_getpeername(ep->conn->sock, (struct sockaddr *)&name);
	mutex_unlock(&ep->conn->mutex);
	if (err < 0)
		return err;
	return kofi_ip_copy((struct sockaddr *)&name, addr, len);
}

/* fi_shutdown() */
static int ksk_ep_shutdown(struct fid_ep *fid, u64 flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	return ksk_conn_down(ksk_ep(fid)->conn, KSK_DOWN_SHUTDOWN);
}

const struct fi_ops_cm ksk_ep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= ksk_ep_setname,
	.getname	= ksk_ep_getname,
	.getpeer	= ksk_ep_getpeer,
	.connect	= ksk_cm_connect,
	.accept		= ksk_cm_accept,
	.shutdown	= ksk_ep_shutdown,
};
