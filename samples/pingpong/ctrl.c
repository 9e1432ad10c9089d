// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The control connection of a run: a TCP connection in addition to the
 * endpoint's. On it the two sides exchange addresses and synchronise.
 *
 * Only the run's thread uses the socket. A wait returns with data, after the
 * run's timeout (-ETIMEDOUT), when the peer has gone (-ECONNRESET), or on the
 * signal that aborts a run (-EINTR); only a server waits for its client without
 * limit. A dead peer is detected by keepalive while the connection is idle, and
 * by the user timeout otherwise. A thread that waits for messages takes a
 * closed control connection for a closed peer: an endpoint that does not
 * connect need not notice it.
 *
 * Every item has a length known in advance. It is read into a buffer of that
 * length and then checked (proto.c).
 */
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/net.h>
#include <linux/sched/signal.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "pingpong.h"

/* Seconds between probes, and probes without an answer until the peer counts as dead */
#define PP_KEEP_INTVL	5
#define PP_KEEP_CNT	4

static int pp_ctrl_new(struct pp_run *run, sa_family_t family,
		       struct socket **sockp)
{
	struct socket *sock;
	int ret;

	ret = sock_create_kern(run->net, family, SOCK_STREAM, IPPROTO_TCP,
			       &sock);
	if (ret)
		return ret;
	/* TCP outlives the run, and needs the namespace */
	sk_net_refcnt_upgrade(sock->sk);
	*sockp = sock;
	return 0;
}

/* Set the options of a socket that is connected, or is about to connect. */
static void pp_ctrl_tune(struct pp_run *run, struct socket *sock)
{
	tcp_sock_set_nodelay(sock->sk);
	sock_set_keepalive(sock->sk);
	tcp_sock_set_keepidle(sock->sk, PP_KEEP_IDLE);
	tcp_sock_set_keepintvl(sock->sk, PP_KEEP_INTVL);
	tcp_sock_set_keepcnt(sock->sk, PP_KEEP_CNT);
	if (run->opts.timeout)
		tcp_sock_set_user_timeout(sock->sk, run->opts.timeout);
	sock->sk->sk_rcvtimeo = pp_timeout(run);
	sock->sk->sk_sndtimeo = pp_timeout(run);
	run->data.wait = sk_sleep(sock->sk);
}

/* Translate an error of a socket call, see the head of this file. */
static int pp_ctrl_err(int err)
{
	switch (err) {
	case -EAGAIN:
	case -EINPROGRESS:
		return -ETIMEDOUT;
	case -EPIPE:
		return -ECONNRESET;
	case -ERESTARTSYS:
		return -EINTR;
	default:
		return err;
	}
}

static int pp_ctrl_text_addr(struct pp_run *run, sa_family_t family,
			     const char *text, u16 port,
			     struct sockaddr_storage *addr)
{
	char digits[6];
	int ret;

	snprintf(digits, sizeof(digits), "%u", port);
	memset(addr, 0, sizeof(*addr));
	ret = inet_pton_with_scope(run->net, family, text, digits, addr);
	if (ret)
		snprintf(run->detail, sizeof(run->detail),
			 "%s is no numeric address", text);
	return ret;
}

static int pp_ctrl_bind(struct pp_run *run, struct socket *sock,
			sa_family_t family, u16 port)
{
	struct sockaddr_storage addr;
	int ret;

	if (run->opts.source[0]) {
		ret = pp_ctrl_text_addr(run, family, run->opts.source, port,
					&addr);
		if (ret)
			return ret;
	} else {
		/* both address formats have the port at the same offset, the rest is 0 */
		memset(&addr, 0, sizeof(addr));
		addr.ss_family = family;
		((struct sockaddr_in *)&addr)->sin_port = htons(port);
	}
	sock_set_reuseaddr(sock->sk);
	return kernel_bind(sock, (void *)&addr, sizeof(addr));
}

/* An IPv4 connection of an IPv6 socket is an IPv4 connection to the fabric. */
static void pp_ctrl_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6 = *(struct sockaddr_in6 *)addr;
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	if (in6.sin6_family != AF_INET6 ||
	    !ipv6_addr_v4mapped(&in6.sin6_addr))
		return;
	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	in->sin_port = in6.sin6_port;
	in->sin_addr.s_addr = in6.sin6_addr.s6_addr32[3];
}

/**
 * pp_ctrl_name - get the local address of the control connection
 * @run: the run, with a control connection
 * @addr: set to the address
 *
 * Return: 0 or a negative error code.
 */
int pp_ctrl_name(struct pp_run *run, struct sockaddr_storage *addr)
{
	int ret;

	memset(addr, 0, sizeof(*addr));
	ret = kernel_getsockname(run->ctrl, (struct sockaddr *)addr);
	if (ret < 0)
		return ret;
	pp_ctrl_unmap(addr);
	return 0;
}

/**
 * pp_ctrl_listen - server: wait for the control connection of a client
 * @run: the run
 * @local: set to the local address that the client has used
 *
 * Context: the run's thread; sleeps until a client connects or the run is
 * aborted.
 * Return: 0 or a negative error code.
 */
int pp_ctrl_listen(struct pp_run *run, struct sockaddr_storage *local)
{
	u16 port = run->opts.src_port ?: KOFI_TEST_CONTROL_PORT;
	sa_family_t family = run->opts.ipv6 ? AF_INET6 : AF_INET;
	struct sockaddr_storage addr;
	struct socket *sock;
	int ret;

	run->stage = "control listen";
	if (run->opts.source[0]) {
		ret = pp_ctrl_text_addr(run, AF_UNSPEC, run->opts.source, port,
					&addr);
		if (ret)
			return ret;
		family = addr.ss_family;
	}
	ret = pp_ctrl_new(run, family, &sock);
	if (ret)
		return ret;
	ret = pp_ctrl_bind(run, sock, family, port);
	if (ret)
		goto release_sock;
	ret = kernel_listen(sock, 1);
	if (ret)
		goto release_sock;
	ret = pp_report_progress(run, port);
	if (ret)
		goto release_sock;

	run->stage = "control accept";
	ret = pp_ctrl_err(kernel_accept(sock, &run->ctrl, 0));
	if (ret)
		goto release_sock;
	pp_ctrl_tune(run, run->ctrl);
	ret = pp_ctrl_name(run, local);

release_sock:
	sock_release(sock);
	return ret;
}

/**
 * pp_ctrl_connect - client: open the control connection
 * @run: the run
 * @peer: set to the address of the server
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code; -ECONNREFUSED if there is no server.
 */
int pp_ctrl_connect(struct pp_run *run, struct sockaddr_storage *peer)
{
	u16 port = run->opts.dst_port ?: KOFI_TEST_CONTROL_PORT;
	int ret;

	run->stage = "control connect";
	ret = pp_ctrl_text_addr(run, AF_UNSPEC, run->opts.node, port, peer);
	if (ret)
		return ret;
	ret = pp_ctrl_new(run, peer->ss_family, &run->ctrl);
	if (ret)
		return ret;
	pp_ctrl_tune(run, run->ctrl);
	if (run->opts.source[0] || run->opts.src_port) {
		ret = pp_ctrl_bind(run, run->ctrl, peer->ss_family,
				   run->opts.src_port);
		if (ret)
			return ret;
	}
	return pp_ctrl_err(kernel_connect(run->ctrl, (void *)peer,
					  sizeof(*peer), 0));
}

/**
 * pp_ctrl_open - test whether the control connection is open
 * @run: the run, with a control connection
 *
 * The queue run->data.wait is woken when that changes.
 *
 * Context: the run's thread.
 * Return: false if the peer has closed its side, or the connection has failed.
 */
bool pp_ctrl_open(const struct pp_run *run)
{
	return READ_ONCE(run->ctrl->sk->sk_state) == TCP_ESTABLISHED;
}

/**
 * pp_ctrl_close - close the control connection
 * @run: the run; nothing happens if it has no control connection
 *
 * Context: the run's thread.
 */
void pp_ctrl_close(struct pp_run *run)
{
	if (!run->ctrl)
		return;
	sock_release(run->ctrl);
	run->ctrl = NULL;
}

/* Send in one piece: fi_pingpong takes a short read for an error. */
static int pp_ctrl_send(struct pp_run *run, struct kvec *vec, size_t count,
			size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	int ret;

	ret = kernel_sendmsg(run->ctrl, &msg, vec, count, len);
	if (ret < 0)
		return pp_ctrl_err(ret);
	return ret == len ? 0 : -ETIMEDOUT;
}

static int pp_ctrl_send_item(struct pp_run *run, const void *item, size_t len)
{
	struct kvec vec = { .iov_base = (void *)item, .iov_len = len };

	return pp_ctrl_send(run, &vec, 1, len);
}

static int pp_ctrl_recv_item(struct pp_run *run, void *item, size_t len)
{
	struct msghdr msg = {};
	struct kvec vec;
	size_t got = 0;
	int ret;

	while (got < len) {
		vec.iov_base = item + got;
		vec.iov_len = len - got;
		ret = kernel_recvmsg(run->ctrl, &msg, &vec, 1, len - got,
				     MSG_WAITALL);
		if (!ret)
			return -ECONNRESET;
		if (ret < 0)
			return pp_ctrl_err(ret);
		if (signal_pending(current))
			return -EINTR;
		got += ret;
	}
	return 0;
}

/* Receive an item that can only be @text, with its NUL byte. */
static int pp_ctrl_recv_text(struct pp_run *run, const char *text)
{
	char item[8];
	size_t len = strlen(text) + 1;
	int ret;

	ret = pp_ctrl_recv_item(run, item, len);
	if (ret)
		return ret;
	return memcmp(item, text, len) ? -EPROTO : 0;
}

/**
 * pp_ctrl_finish - notify the peer that this side has finished, and wait for
 * the same from the peer
 * @run: the run, with all messages sent and received
 *
 * Call this before the endpoint is closed. Otherwise a peer that still waits
 * for a completion would see the connection close. libfabric 1.17 fails then:
 * with credits behind its last receive it posts to an endpoint that it has
 * freed. An unresponsive peer is waited for no longer than usual.
 *
 * Context: the run's thread; sleeps.
 */
void pp_ctrl_finish(struct pp_run *run)
{
	struct msghdr msg = {};
	u8 none;
	struct kvec vec = { .iov_base = &none, .iov_len = sizeof(none) };

	kernel_sock_shutdown(run->ctrl, SHUT_WR);
	kernel_recvmsg(run->ctrl, &msg, &vec, 1, sizeof(none), 0);
}

/**
 * pp_ctrl_send_addr - send the address of the endpoint or listener
 * @run: the run
 * @addr: the address
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code.
 */
int pp_ctrl_send_addr(struct pp_run *run, const struct sockaddr_storage *addr)
{
	struct pp_addr_head head;
	struct kvec vec[2];
	int len;

	run->stage = "address exchange";
	len = pp_addr_head_make(&head, addr);
	if (len < 0)
		return len;
	vec[0].iov_base = &head;
	vec[0].iov_len = sizeof(head);
	vec[1].iov_base = (void *)addr;
	vec[1].iov_len = len;
	return pp_ctrl_send(run, vec, ARRAY_SIZE(vec), sizeof(head) + len);
}

/**
 * pp_ctrl_recv_addr - receive the address of the peer's endpoint or listener
 * @run: the run
 * @addr: in: address of the peer's control connection; out: address of the
 *	peer's endpoint
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code; -EPROTO for an invalid address.
 */
int pp_ctrl_recv_addr(struct pp_run *run, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct pp_addr_head head;
	u32 scope = 0;
	int len, ret;

	run->stage = "address exchange";
	if (addr->ss_family == AF_INET6)
		scope = in6->sin6_scope_id;
	ret = pp_ctrl_recv_item(run, &head, sizeof(head));
	if (ret)
		return ret;
	len = pp_addr_head_check(&head);
	if (len < 0)
		return len;
	memset(addr, 0, sizeof(*addr));
	ret = pp_ctrl_recv_item(run, addr, len);
	if (ret)
		return ret;
	ret = pp_addr_check(&head, addr);
	if (ret)
		return ret;
	/* the index of an interface means nothing on another machine */
	if (addr->ss_family == AF_INET6)
		in6->sin6_scope_id =
			ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL ?
			scope : 0;
	return 0;
}

/**
 * pp_ctrl_sync - wait until the other side is ready for a size
 * @run: the run
 *
 * A client may send after this returns. A server has received the question; it
 * prepares for messages and then answers.
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code; -EPROTO for an unexpected item.
 */
int pp_ctrl_sync(struct pp_run *run)
{
	int ret;

	run->stage = "synchronisation";
	if (!pp_is_client(run))
		return pp_ctrl_recv_text(run, PP_SYNC_ASK);
	ret = pp_ctrl_send_item(run, PP_SYNC_ASK, sizeof(PP_SYNC_ASK));
	if (ret)
		return ret;
	return pp_ctrl_recv_text(run, PP_SYNC_ANSWER);
}

/**
 * pp_ctrl_answer - server: let the client begin
 * @run: the run, ready for messages
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code.
 */
int pp_ctrl_answer(struct pp_run *run)
{
	return pp_ctrl_send_item(run, PP_SYNC_ANSWER, sizeof(PP_SYNC_ANSWER));
}

/**
 * pp_ctrl_count - send the number of received messages from client to server
 * @run: the run
 * @count: client: in, the number; server: out, the number from the client
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or a negative error code; -EPROTO for an invalid item.
 */
int pp_ctrl_count(struct pp_run *run, u64 *count)
{
	char item[PP_COUNT_LEN];
	int ret;

	run->stage = "message count";
	if (pp_is_client(run)) {
		pp_count_make(item, *count);
		ret = pp_ctrl_send_item(run, item, sizeof(item));
		if (ret)
			return ret;
		return pp_ctrl_recv_text(run, PP_COUNT_OK);
	}
	ret = pp_ctrl_recv_item(run, item, sizeof(item));
	if (!ret)
		ret = pp_count_parse(item, count);
	if (ret)
		return ret;
	return pp_ctrl_send_item(run, PP_COUNT_OK, sizeof(PP_COUNT_OK));
}
