/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A listener that drops connect requests, as a firewall does. */
#ifndef _KOFI_TESTS_FULL_H
#define _KOFI_TESTS_FULL_H

#include <linux/in.h>
#include <linux/net.h>
#include <net/sock.h>

#include <kunit/test.h>

#define FULL_PORT	1999	/* below the ports that endpoints choose */

/**
 * full_listen - listen, and fill the queue of TCP, which drops further requests
 * @test: the test
 * @addr: receives the address, with the port FULL_PORT
 * @filler: receives the connection in the queue
 *
 * Return: the listener.
 */
static inline struct socket *full_listen(struct kunit *test, struct sockaddr_in *addr,
					 struct socket **filler)
{
	unsigned long end = jiffies + 10 * HZ;
	struct socket *sock;

	*addr = (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(FULL_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	sock->sk->sk_reuse = SK_CAN_REUSE;
	KUNIT_ASSERT_EQ(test, kernel_bind(sock, (void *)addr, sizeof(*addr)), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(sock, 0), 0);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, filler), 0);
	KUNIT_EXPECT_EQ(test, kernel_connect(*filler, (void *)addr, sizeof(*addr), 0), 0);
	while (!READ_ONCE(sock->sk->sk_ack_backlog) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(sock->sk->sk_ack_backlog), 1U);
	return sock;
}

#endif /* _KOFI_TESTS_FULL_H */
