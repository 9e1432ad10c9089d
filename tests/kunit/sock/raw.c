// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A plain TCP socket as a peer of kofi_sock. It speaks bytes written down here,
 * from the description of the wire, not from the provider's headers.
 */

#include <linux/in.h>
#include <linux/net.h>
#include <linux/unaligned.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "raw.h"

struct socket *raw_socket(struct kunit *test, struct ct_pair *p)
{
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, p->addr.ss_family,
					       SOCK_STREAM, IPPROTO_TCP,
					       &sock), 0);
	sock->sk->sk_rcvtimeo = RAW_TIMEOUT;
	sock->sk->sk_sndtimeo = RAW_TIMEOUT;
	tcp_sock_set_nodelay(sock->sk);
	return sock;
}

struct socket *raw_connect(struct kunit *test, struct ct_pair *p)
{
	struct socket *sock = raw_socket(test, p);

	if (kernel_connect(sock, (void *)&p->addr,
			   sizeof(struct sockaddr_in), 0)) {
		sock_release(sock);
		return NULL;
	}
	return sock;
}

int raw_send(struct socket *sock, const void *buf, size_t len)
{
	struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };

	return len ? kernel_sendmsg(sock, &msg, &iov, 1, len) : 0;
}

int raw_recv(struct socket *sock, void *buf, size_t len)
{
	struct kvec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {};

	return kernel_recvmsg(sock, &msg, &iov, 1, len, MSG_WAITALL);
}

/* ------------------------------------------------------------------- bytes */

void raw_cm(u8 *b, u8 version, u8 type, u16 data_len)
{
	u64 probe = 1;

	memset(b, 0, RAW_CM_LEN);
	b[0] = version;
	b[1] = type;
	put_unaligned_be16(data_len, b + 2);
	memcpy(b + 24, &probe, sizeof(probe));
}

void raw_frame(u8 *b, u8 op, u16 flags, u8 op_data, u8 rma_count, u8 hdr_size,
	       u64 size)
{
	b[0] = 3;
	b[1] = op;
	memcpy(b + 2, &flags, sizeof(flags));	/* both ends are this host */
	b[4] = op_data;
	b[5] = rma_count;
	b[6] = hdr_size;
	b[7] = 0;
	memcpy(b + 8, &size, sizeof(size));
}
