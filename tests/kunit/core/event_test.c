// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi/netlink_event.c: what a listener receives, in which contexts, and how much. */
#include <linux/in.h>
#include <linux/irqflags.h>

#include "../../../kofi/netlink.h"
#include "../events.h"
#include "fake.h"
#include "queues.h"

#define EVENT_RATE	64	/* of an object in a second */

static const struct sockaddr_in event_peer = {
	.sin_family	= AF_INET,
	.sin_port	= cpu_to_be16(4711),
	.sin_addr.s_addr = cpu_to_be32(INADDR_LOOPBACK),
};

struct event_test {
	struct fake_conn	*conn;
	struct kofi_ep		*kep;
};

/* An endpoint that connects */
static struct event_test *event_open(struct kunit *test)
{
	struct event_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->conn = fake_conn_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_enable(t->conn->ep));
	t->kep = &fake_of(t->conn->ep)->base;
	t->kep->state = KOFI_EP_CONNECTING;
	return t;
}

static void event_close(struct kunit *test, struct event_test *t)
{
	fake_conn_close(test, t->conn);
}

/* Each kind, in the order in which they happen, also with interrupts off */
static void event_kinds(struct kunit *test)
{
	struct event_test *t = event_open(test);
	struct events *ev = events_listen(test), *dom = events_listen(test);
	struct kofi_domain *domain = t->kep->domain;
	u32 id = t->kep->obj.id;
	unsigned long flags;

	local_irq_save(flags);
	kofi_ep_connected(t->kep, NULL, 0);
	kofi_violation(&t->kep->obj, (const struct sockaddr *)&event_peer, "bad header");
	kofi_ep_disconnected(t->kep, ETIMEDOUT);
	local_irq_restore(flags);
	kofi_domain_notify(domain, ENODEV);

	events_expect(test, ev, id, KOFI_EVENT_CONNECTED, 0);
	KUNIT_EXPECT_EQ(test, events_uint(ev, KOFI_A_EVENT_CLASS), FI_CLASS_EP);
	KUNIT_EXPECT_EQ(test, events_uint(ev, KOFI_A_EVENT_NETNS), init_net.ns.inum);
	KUNIT_EXPECT_STREQ(test, events_str(ev, KOFI_A_EVENT_OWNER),
			   domain->fabric->owner);
	KUNIT_EXPECT_STREQ(test, events_str(ev, KOFI_A_EVENT_PROV_NAME),
			   t->kep->obj.prov->name);
	events_expect(test, ev, id, KOFI_EVENT_VIOLATION, EPROTO);
	KUNIT_EXPECT_STREQ(test, events_str(ev, KOFI_A_EVENT_REASON), "bad header");
	KUNIT_ASSERT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_PEER_ADDR]);
	KUNIT_EXPECT_MEMEQ(test, nla_data(ev->tb[KOFI_A_EVENT_PEER_ADDR]), &event_peer,
			   sizeof(event_peer));
	events_expect(test, ev, id, KOFI_EVENT_LOST, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, events_uint(ev, KOFI_A_EVENT_LOST), 0);
	events_expect(test, dom, domain->obj.id, KOFI_EVENT_PATH_LOST, ENODEV);
	KUNIT_EXPECT_STREQ(test, events_str(dom, KOFI_A_EVENT_NAME), domain->name);
	event_close(test, t);
	KUNIT_EXPECT_EQ(test, events_next(test, ev, id, 0), -1);
}

/* Ended by either side, and an attempt that failed */
static void event_ends(struct kunit *test)
{
	struct event_test *t = event_open(test);
	struct events *ev = events_listen(test);
	u32 id = t->kep->obj.id;

	kofi_ep_connected(t->kep, NULL, 0);
	kofi_ep_disconnected(t->kep, ESHUTDOWN);
	events_expect(test, ev, id, KOFI_EVENT_CONNECTED, 0);
	events_expect(test, ev, id, KOFI_EVENT_SHUTDOWN, 0);
	KUNIT_EXPECT_STREQ(test, events_str(ev, KOFI_A_EVENT_REASON), "closed by the peer");
	event_close(test, t);

	t = event_open(test);
	id = t->kep->obj.id;
	kofi_ep_connected(t->kep, NULL, 0);
	event_close(test, t);
	events_expect(test, ev, id, KOFI_EVENT_CONNECTED, 0);
	events_expect(test, ev, id, KOFI_EVENT_SHUTDOWN, 0);
	KUNIT_EXPECT_NULL(test, ev->tb[KOFI_A_EVENT_REASON]);

	t = event_open(test);
	id = t->kep->obj.id;
	kofi_ep_connect_failed(t->kep, ECONNREFUSED, -7, NULL, 0);
	events_expect(test, ev, id, KOFI_EVENT_CONNECT_FAILED, ECONNREFUSED);
	KUNIT_ASSERT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_PROV_ERRNO]);
	KUNIT_EXPECT_EQ(test, nla_get_sint(ev->tb[KOFI_A_EVENT_PROV_ERRNO]), -7);
	event_close(test, t);
}

/* Without a listener not even the limit is touched. */
static void event_unheard(struct kunit *test)
{
	struct event_test *t = event_open(test);
	struct events *ev = events_listen(test);
	int i;

	events_ignore(test, ev);
	kofi_ep_connected(t->kep, NULL, 0);
	for (i = 0; i < 2 * EVENT_RATE; i++)
		kofi_violation(&t->kep->obj, NULL, "bad header");
	KUNIT_EXPECT_EQ(test, atomic_read(&t->kep->obj.events), 0);
	event_close(test, t);
}

/* An object that has too many is limited, others are not; losses are counted. */
static void event_limit(struct kunit *test)
{
	struct event_test *t = event_open(test);
	struct events *ev = events_listen(test), *dom = events_listen(test);
	const int sent = 10 * EVENT_RATE;
	u32 id = t->kep->obj.id;
	u64 got = 0, lost = 0;
	int i;

	for (i = 0; i < sent; i++)
		kofi_violation(&t->kep->obj, NULL, "bad header");
	kofi_domain_notify(t->kep->domain, ENETDOWN);
	events_expect(test, dom, t->kep->domain->obj.id, KOFI_EVENT_PATH_LOST, ENETDOWN);
	/* the messages have the order of the events: this one's are all there */
	while (events_next(test, ev, id, 0) == KOFI_EVENT_VIOLATION) {
		got++;
		lost += events_uint(ev, KOFI_A_EVENT_LOST);
	}
	KUNIT_EXPECT_GE(test, got, EVENT_RATE);
	KUNIT_EXPECT_LT(test, got, sent);
	KUNIT_EXPECT_EQ(test, got + lost + kofi_events_lost(&t->kep->obj), sent);
	event_close(test, t);
}

/* The limit by itself, with a clock of its own */
static void event_admit(struct kunit *test)
{
	struct kofi_obj obj = {};
	unsigned int lost, i;

	for (i = 0; i < EVENT_RATE; i++) {
		KUNIT_EXPECT_TRUE(test, kofi_nl_event_admit(&obj, 1000, &lost));
		KUNIT_EXPECT_EQ(test, lost, 0);
	}
	for (i = 0; i < 70000; i++)
		if (kofi_nl_event_admit(&obj, 1000, &lost))
			break;
	KUNIT_EXPECT_EQ(test, i, 70000);
	KUNIT_EXPECT_EQ(test, kofi_events_lost(&obj), U16_MAX);
	KUNIT_EXPECT_TRUE(test, kofi_nl_event_admit(&obj, 1001, &lost));
	KUNIT_EXPECT_EQ(test, lost, U16_MAX);
	KUNIT_EXPECT_TRUE(test, kofi_nl_event_admit(&obj, 1001, &lost));
	KUNIT_EXPECT_EQ(test, lost, 0);
}

static struct kunit_case event_cases[] = {
	KUNIT_CASE(event_kinds),
	KUNIT_CASE(event_ends),
	KUNIT_CASE(event_unheard),
	KUNIT_CASE(event_limit),
	KUNIT_CASE(event_admit),
	{}
};

struct kunit_suite kofi_event_suite = {
	.name		= "kofi_event",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.test_cases	= event_cases,
};
