/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A listener of the netlink group "events", as a program has it. */
#ifndef _KOFI_TESTS_EVENTS_H
#define _KOFI_TESTS_EVENTS_H

#include <kunit/test.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include <linux/kofi/provider.h>
#include <uapi/linux/kofi.h>

#include "../../kofi/internal.h"
#include "../../kofi/netlink.h"
#include "kunit.h"
#include "limit.h"

#define EVENTS_MS	TEST_LIMIT(10000)

struct events {
	struct socket	*sock;
	struct nlattr	*tb[KOFI_A_EVENT_MAX + 1];	/* of the last one */
	u8		buf[1024];
};

static inline void events_release(void *arg)
{
	struct events *ev = arg;

	sock_release(ev->sock);
}

static inline struct events *events_listen(struct kunit *test)
{
	struct events *ev = kunit_kzalloc(test, sizeof(*ev), GFP_KERNEL);
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	u32 group = kofi_nl_event_group();
	int err;

	KUNIT_ASSERT_NOT_NULL(test, ev);
	KUNIT_ASSERT_EQ(test, 0, sock_create_kern(&init_net, AF_NETLINK, SOCK_RAW,
						  NETLINK_GENERIC, &ev->sock));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, events_release, ev));
	KUNIT_ASSERT_EQ(test, 0, kernel_bind(ev->sock, (void *)&addr, sizeof(addr)));
	err = ev->sock->ops->setsockopt(ev->sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
					KERNEL_SOCKPTR(&group), sizeof(group));
	KUNIT_ASSERT_EQ(test, 0, err);
	return ev;
}

static inline void events_ignore(struct kunit *test, struct events *ev)
{
	kunit_release_action(test, events_release, ev);
}

/* The next event of an object, or -1 if there is none after @ms */
static inline int events_next(struct kunit *test, struct events *ev, u32 obj,
			      unsigned int ms)
{
	const struct nlmsghdr *nlh = (void *)ev->buf;
	struct kvec vec = { .iov_base = ev->buf, .iov_len = sizeof(ev->buf) };
	struct msghdr msg = {};
	int len, err;

	ev->sock->sk->sk_rcvtimeo = msecs_to_jiffies(ms);
	do {
		len = kernel_recvmsg(ev->sock, &msg, &vec, 1, vec.iov_len,
				     ms ? 0 : MSG_DONTWAIT);
		if (len == -EAGAIN)
			return -1;
		KUNIT_ASSERT_GT(test, len, 0);
		KUNIT_ASSERT_TRUE(test, nlmsg_ok(nlh, len));
		err = nlmsg_parse_deprecated(nlh, GENL_HDRLEN, ev->tb, KOFI_A_EVENT_MAX,
					     NULL, NULL);
		KUNIT_ASSERT_EQ(test, 0, err);
		KUNIT_ASSERT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_OBJ]);
	} while (nla_get_uint(ev->tb[KOFI_A_EVENT_OBJ]) != obj);
	return nla_get_uint(ev->tb[KOFI_A_EVENT_KIND]);
}

static inline u64 events_uint(const struct events *ev, int attr)
{
	return ev->tb[attr] ? nla_get_uint(ev->tb[attr]) : 0;
}

static inline const char *events_str(const struct events *ev, int attr)
{
	return ev->tb[attr] ? nla_data(ev->tb[attr]) : "";
}

/* The next event of an object has this kind and this error code. */
static inline void events_expect(struct kunit *test, struct events *ev, u32 obj,
				 enum kofi_event_kind kind, int err)
{
	KUNIT_EXPECT_EQ(test, events_next(test, ev, obj, EVENTS_MS), kind);
	KUNIT_EXPECT_EQ(test, events_uint(ev, KOFI_A_EVENT_ERR), err);
}

#endif /* _KOFI_TESTS_EVENTS_H */
