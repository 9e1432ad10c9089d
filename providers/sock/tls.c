// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Streams with TLS: kTLS encrypts and decrypts their frames, which do not differ from others.
 *
 * Lock
 *
 * kTLS sends under a mutex, and then takes the socket's lock. So a context that sends can
 * neither be a softirq nor own the socket, and ksk_tls.mutex protects the stream: "locked"
 * means that it is held. Only process context runs such a stream, mostly the work item of
 * the connection. Callbacks of the socket, posts and the softirq item queue it.
 *
 * Receiving
 *
 * kTLS decrypts a record when it is read. The actor of the receiver gets records in packets
 * of their own, with the socket owned. A record of another type than data stops the reader,
 * and is fetched alone. The work item is queued for each segment of TCP: kTLS keeps records
 * that are not read, and reports them once.
 *
 * Closing
 *
 * The peer's close_notify terminates the stream. A FIN without it may come from an attacker,
 * and counts as a reset. A FIN of ours would overtake records that TCP has not taken, so the
 * limits of the send buffer are lifted for them and for the last record.
 */
#include <net/tcp.h>
#include <net/tls.h>
#include <net/tls_prot.h>
#include <trace/events/sock.h>

#include "sock.h"
#include "tls.h"

/* ---------------------------------------------------------------- sending */

/* Short payloads are copied, to have one record for all of their segments. */
#define KSK_TLS_COPY	SZ_4K
#define KSK_TLS_SEGS	8

/*
 * Prepare pages for kTLS. It takes references to them, which not all pages may have; those
 * are copied from their addresses. Cuts @iter where such pages begin or end, or behind
 * KSK_TLS_SEGS segments. @kv has KSK_TLS_SEGS entries.
 */
static void ksk_tls_pages(struct iov_iter *iter, struct kvec *kv)
{
	size_t left = iov_iter_count(iter), run = 0, skip;
	bool small = left <= KSK_TLS_COPY, take = false;
	const struct bio_vec *bv;
	unsigned int n = 0;

	/* to the next byte; a segment without bytes would stop kTLS */
	iov_iter_advance(iter, 0);
	bv = iter->bvec;
	skip = iter->iov_offset;
	for (; left; bv++, skip = 0) {
		size_t bytes = min(bv->bv_len - skip, left);
		size_t offset = bv->bv_offset + skip;
		bool able;

		if (!bytes)
			break;
		able = !small && ksk_zc_able(bv, offset, bytes);
		if (run && (able != take || (!able && n == KSK_TLS_SEGS)))
			break;
		take = able;
		if (!able)
			kv[n++] = (struct kvec) {
				.iov_base = page_address(bv->bv_page) + offset,
				.iov_len = bytes,
			};
		run += bytes;
		left -= bytes;
	}
	if (take)
		iov_iter_truncate(iter, run);
	else
		iov_iter_kvec(iter, ITER_SOURCE, kv, n, run);
}

/*
 * Call kTLS. Its mutex is interruptible, and while its work item has it, a signal of the
 * consumer's thread fails the call before it has any effect. The work item does not wait.
 */
static int ksk_tls_call(struct socket *sock, struct msghdr *msg)
{
	int ret, i;

	for (i = 0; i < 100; i++) {
		ret = sock_sendmsg(sock, msg);
		if (ret != -ERESTARTSYS && ret != -EINTR)
			return ret;
		usleep_range(50, 100);
	}
	return -EAGAIN;
}

/**
 * ksk_tls_sendmsg - send bytes
 * @sock: the socket
 * @msg: the bytes, with flags for TCP
 *
 * No byte is held back for others to follow: kTLS would not send it before the next call.
 *
 * Context: process, may sleep; locked.
 * Return: number of bytes that were taken, perhaps less than fits, or a negative error:
 * -EAGAIN for no room.
 */
int ksk_tls_sendmsg(struct socket *sock, struct msghdr *msg)
{
	struct kvec kv[KSK_TLS_SEGS];

	msg->msg_flags &= ~MSG_MORE;
	if (iov_iter_is_bvec(&msg->msg_iter))
		ksk_tls_pages(&msg->msg_iter, kv);
	return ksk_tls_call(sock, msg);
}

/* Send a record of the alert protocol. Returns 0 or a negative error. */
static int ksk_tls_alert(struct socket *sock, u8 level, u8 description)
{
	u8 control[CMSG_SPACE(sizeof(u8))] __aligned(sizeof(long)) = {};
	u8 alert[2] = { level, description };
	struct kvec kv = { .iov_base = alert, .iov_len = sizeof(alert) };
	struct msghdr msg = {
		.msg_control = control,
		.msg_controllen = sizeof(control),
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int ret;

	cmsg->cmsg_level = SOL_TLS;
	cmsg->cmsg_type = TLS_SET_RECORD_TYPE;
	cmsg->cmsg_len = CMSG_LEN(sizeof(u8));
	*(u8 *)CMSG_DATA(cmsg) = TLS_RECORD_TYPE_ALERT;
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &kv, 1, sizeof(alert));
	ret = ksk_tls_call(sock, &msg);
	return ret < 0 ? ret : 0;
}

/* -------------------------------------------------------------- receiving */

/* An error of kTLS. A record that cannot be decrypted has one errno for all faults. */
static int ksk_tls_error(int err)
{
	return err == -EINVAL || err == -EMSGSIZE ? -EBADMSG : err;
}

/* Type of a received record, 0 for data */
static u8 ksk_tls_type(struct msghdr *msg)
{
	struct cmsghdr *cmsg;

	for_each_cmsghdr(cmsg, msg)
		if (CMSG_OK(msg, cmsg) && cmsg->cmsg_level == SOL_TLS &&
		    cmsg->cmsg_type == TLS_GET_RECORD_TYPE)
			return *(u8 *)CMSG_DATA(cmsg);
	return 0;
}

/*
 * Take the record that has stopped the reader. A message of the handshake protocol is a
 * ticket for other connections, which is ignored, or announces new keys, which the kernel
 * cannot compute. Returns 0 or a negative error.
 */
static int ksk_tls_control(struct ksk_tls *t, struct socket *sock)
{
	u8 control[CMSG_SPACE(sizeof(u8))] __aligned(sizeof(long));
	u8 buf[64], first[2] = {}, type = 0;
	struct msghdr msg;
	size_t len = 0;
	int n;

	do {
		struct kvec kv = { .iov_base = buf, .iov_len = sizeof(buf) };

		msg = (struct msghdr) {
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		n = kernel_recvmsg(sock, &msg, &kv, 1, sizeof(buf), MSG_DONTWAIT);
		if (n <= 0)
			return n == -EAGAIN || !n ? -EBADMSG : ksk_tls_error(n);
		/* kernel_recvmsg() has moved both on */
		msg.msg_controllen = sizeof(control) - msg.msg_controllen;
		msg.msg_control = control;
		type = ksk_tls_type(&msg);
		if (!len)
			memcpy(first, buf, min_t(size_t, n, sizeof(first)));
		len += n;
	} while (!(msg.msg_flags & MSG_EOR));

	switch (type) {
	case TLS_RECORD_TYPE_ALERT:
		if (len != 2)
			return -EBADMSG;
		if (first[1] != TLS_ALERT_DESC_CLOSE_NOTIFY)
			return -ECONNRESET;
		t->closed = true;
		return 0;
	case TLS_RECORD_TYPE_HANDSHAKE:
		/* RFC 8446 4.6: 4 is a new session ticket, 24 a key update */
		if (first[0] == 4 && t->tickets++ < KSK_TLS_TICKETS)
			return 0;
		return first[0] == 24 ? -EKEYEXPIRED : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

/**
 * ksk_tls_read - read the records that have arrived
 * @t: TLS of the connection
 * @sock: the socket
 * @desc: descriptor for @actor
 * @actor: takes bytes, with the socket owned; clears the count of @desc if it takes less
 *	than it was given
 *
 * Reading stops when @actor takes less than all, without another record, and when the peer
 * has closed the stream, which sets @t->closed.
 *
 * Context: process, may sleep; locked.
 * Return: 0, or a negative error; ECONNRESET for a FIN of TCP without close_notify.
 */
int ksk_tls_read(struct ksk_tls *t, struct socket *sock, read_descriptor_t *desc,
		 sk_read_actor_t actor)
{
	struct sock *sk = sock->sk;
	bool ended, urgent;
	int n;

	while (!t->closed) {
		desc->count = 1;
		lock_sock(sk);
		n = sock->ops->read_sock(sk, desc, actor);
		/* kTLS waits forever at urgent data, which anybody on the path can announce */
		urgent = tcp_sk(sk)->urg_data;
		ended = (sk->sk_shutdown & RCV_SHUTDOWN) || sk->sk_state == TCP_CLOSE;
		release_sock(sk);
		if (urgent)
			return -EBADMSG;
		if (n > 0 && desc->count)
			continue;	/* up to a record of another type, or the last one */
		if (n >= 0 && !desc->count)
			return 0;
		if (!n || n == -EAGAIN)
			return ended ? -ECONNRESET : 0;
		if (n == -EINVAL)
			n = ksk_tls_control(t, sock);
		if (n)
			return ksk_tls_error(n);
	}
	return 0;
}

/**
 * ksk_tls_idle - test whether no complete record waits
 * @sk: the socket
 *
 * Context: any.
 * Return: true if none does. A part of one may.
 */
bool ksk_tls_idle(struct sock *sk)
{
	return !sk_is_readable(sk);
}

/**
 * ksk_tls_fin - get the reason of a termination because of a FIN
 * @t: TLS of the connection, or NULL
 *
 * Context: locked.
 * Return: a positive error code. With TLS a FIN alone is no orderly close.
 */
int ksk_tls_fin(const struct ksk_tls *t)
{
	return t && !t->closed ? ECONNRESET : ESHUTDOWN;
}

/* ---------------------------------------------------------------- closing */

static int ksk_tls_discard(read_descriptor_t *desc, struct sk_buff *skb,
			   unsigned int offset, size_t len)
{
	return len;
}

/* Have records been encrypted that TCP has not taken? The socket is owned. */
static bool ksk_tls_unsent(struct sock *sk)
{
	struct tls_context *ctx = tls_get_ctx(sk);

	return ctx->partially_sent_record || !list_empty(&tls_sw_ctx_tx(ctx)->tx_list);
}

/* Room for the rest of a record, and the last one */
#define KSK_TLS_LAST	(2 * SZ_64K)

/**
 * ksk_tls_shutdown - close a connection in order
 * @t: TLS of the connection
 * @sock: the socket; the caller keeps it
 *
 * As ksk_socket_shutdown(). If TCP does not take our close_notify, the connection is reset.
 *
 * Context: process, may sleep, but not for the network; not locked.
 */
void ksk_tls_shutdown(struct ksk_tls *t, struct socket *sock)
{
	struct sock *sk = sock->sk;
	read_descriptor_t desc = {};
	bool unsent = true;

	mutex_lock(&t->mutex);
	if (t->key) {
		lock_sock(sk);
		WRITE_ONCE(sk->sk_sndbuf, max_t(int, sk->sk_sndbuf,
						sk->sk_wmem_queued + KSK_TLS_LAST));
		WRITE_ONCE(tcp_sk(sk)->notsent_lowat, UINT_MAX);
		release_sock(sk);
		if (!ksk_tls_alert(sock, TLS_ALERT_LEVEL_WARNING,
				   TLS_ALERT_DESC_CLOSE_NOTIFY)) {
			lock_sock(sk);
			unsent = ksk_tls_unsent(sk);
			release_sock(sk);
		}
	}
	if (unsent) {
		ksk_socket_abort(sock);
	} else {
		ksk_socket_fin(sock, SHUT_RDWR);
		/* unread bytes would make TCP reset the connection */
		ksk_tls_read(t, sock, &desc, ksk_tls_discard);
	}
	mutex_unlock(&t->mutex);
}

/* -------------------------------------------------------------- callbacks */

/* A request that is not accepted needs no work item, and its work queue may still change. */
static void ksk_tls_event(struct ksk_conn *c)
{
	if (READ_ONCE(c->phase) != KSK_CONN_REQUESTED)
		ksk_conn_queue(c);
}

static void ksk_tls_data_ready(struct sock *sk)
{
	trace_sk_data_ready(sk);
	ksk_tls_event(sk->sk_user_data);
}

static void ksk_tls_write_space(struct sock *sk)
{
	struct ksk_conn *c = sk->sk_user_data;

	/* kTLS sends the rest of a record */
	c->saved.write_space(sk);
	/*
	 * The sender does not hold the socket's lock when it notes that there is no room. An
	 * active sender may be about to do so: its work item runs once more.
	 */
	if (sk_stream_is_writeable(sk) && READ_ONCE(c->tx.state) != KSK_TX_IDLE)
		ksk_tls_event(c);
}

static void ksk_tls_state_change(struct sock *sk)
{
	ksk_tls_event(sk->sk_user_data);
}

static void ksk_tls_error_report(struct sock *sk)
{
	struct ksk_conn *c = sk->sk_user_data;
	int err = READ_ONCE(sk->sk_err);

	if (READ_ONCE(c->phase) == KSK_CONN_ESTABLISHED && err)
		ksk_conn_abort(c, -ksk_tls_error(-err));
	else
		ksk_tls_event(c);
}

/**
 * ksk_tls_attach - set the callbacks of a connection with TLS
 * @c: the connection, with the original callbacks in saved
 * @sk: socket of @c
 *
 * Context: sk_callback_lock held.
 */
void ksk_tls_attach(struct ksk_conn *c, struct sock *sk)
{
	sk->sk_data_ready = ksk_tls_data_ready;
	sk->sk_write_space = ksk_tls_write_space;
	sk->sk_state_change = ksk_tls_state_change;
	sk->sk_error_report = ksk_tls_error_report;
}

/* The softirq item: posts and woken receivers schedule it. */
int ksk_tls_poll(struct irq_poll *iop, int weight)
{
	struct ksk_conn *c = container_of(iop, struct ksk_conn, poll);

	/* as ksk_conn_poll() */
	atomic_inc(&c->in_poll);
	irq_poll_complete(iop);
	ksk_conn_queue(c);
	if (atomic_dec_and_test(&c->in_poll))
		wake_up_var(&c->in_poll);
	return 0;
}
