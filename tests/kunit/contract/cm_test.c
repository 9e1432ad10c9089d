// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 6 (a peer that answers is alive, one FI_SHUTDOWN) and 7 (setting up
 * a connection ends in exactly one event).
 */

#include <linux/inet.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../events.h"
#include "contract.h"

#define DATA_MAX	256

/* The request that waits at side 1; the caller frees its info. */
static void cm_request(struct ct_pair *p, struct ct_event *ev)
{
	KUNIT_ASSERT_EQ(p->test, ct_next_event(p->side[1].eq, ev,
					       CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(p->test, ev->event, FI_CONNREQ);
	KUNIT_ASSERT_NOT_NULL(p->test, ev->cm.info);
	KUNIT_EXPECT_PTR_EQ(p->test, ev->cm.fid, &p->pep->fid);
	KUNIT_EXPECT_NOT_NULL(p->test, ev->cm.info->handle);
}

static struct ct_pair *cm_unconnected(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .unconnected = true };

	return ct_pair_open(test, &opts);
}

static const size_t data_lens[] = { 0, 1, 17, 255, DATA_MAX };

static void cm_private_data(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(data_lens); i++) {
		struct ct_pair *p = cm_unconnected(test);
		size_t len = min(data_lens[i], ct_cm_data_max(p));
		struct ct_event *ev = ct_buf(p, sizeof(*ev));
		u8 *data = ct_buf(p, DATA_MAX);

		ct_pattern(data, len, 1);
		KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, data,
						 len), 0);
		cm_request(p, ev);
		KUNIT_EXPECT_EQ(test, ev->len, sizeof(ev->cm) + len);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(ev->cm.data, len, 1));
		KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
		fi_freeinfo(ev->cm.info);
		ct_pattern(data, len, 2);
		KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, data, len), 0);
		ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
		KUNIT_ASSERT_EQ(test, ct_next_event(p->side[0].eq, ev,
						    CT_TIMEOUT_MS), 0);
		KUNIT_EXPECT_EQ(test, ev->event, FI_CONNECTED);
		KUNIT_EXPECT_PTR_EQ(test, ev->cm.fid, &p->side[0].ep->fid);
		KUNIT_EXPECT_EQ(test, ev->len, sizeof(ev->cm) + len);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(ev->cm.data, len, 2));
		ct_pair_close(p);
	}
}

static void cm_rejected(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(data_lens); i++) {
		struct ct_pair *p = cm_unconnected(test);
		size_t len = min(data_lens[i], ct_cm_data_max(p));
		struct ct_event *ev = ct_buf(p, sizeof(*ev));
		u8 *data = ct_buf(p, DATA_MAX);

		ct_pattern(data, len, 3);
		KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL,
						 0), 0);
		cm_request(p, ev);
		KUNIT_EXPECT_EQ(test, fi_reject(p->pep, ev->cm.info->handle,
						data, len), 0);
		fi_freeinfo(ev->cm.info);
		KUNIT_ASSERT_EQ(test, ct_next_event(p->side[0].eq, ev,
						    CT_TIMEOUT_MS), 1);
		KUNIT_EXPECT_EQ(test, ev->error.err, ECONNREFUSED);
		KUNIT_EXPECT_PTR_EQ(test, ev->error.fid, &p->side[0].ep->fid);
		KUNIT_EXPECT_EQ(test, ev->error.err_data_size, len);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(ev->error.err_data, len, 3));
		ct_expect_no_event(test, p->side[0].eq);
		ct_expect_no_event(test, p->side[1].eq);
		ct_pair_close(p);
	}
}

static void cm_nobody_listens(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 *buf = ct_buf(p, 64);
	struct ct_op *r = ct_op(p);

	KUNIT_ASSERT_EQ(test, fi_enable(p->side[0].ep), 0);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 0, r, buf, 64), 0);
	KUNIT_ASSERT_EQ(test, fi_close(&p->pep->fid), 0);
	p->pep = NULL;
	/* An error of the call, or an entry; not both. */
	if (!fi_connect(p->side[0].ep, &p->addr, NULL, 0)) {
		KUNIT_ASSERT_EQ(test, ct_next_event(p->side[0].eq, ev,
						    CT_TIMEOUT_MS), 1);
		KUNIT_EXPECT_EQ(test, ev->error.err, ECONNREFUSED);
	}
	ct_expect_no_event(test, p->side[0].eq);
	/* posted ahead of the connection, it completes with it */
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, r));
	KUNIT_EXPECT_EQ(test, r->wc.err, ECANCELED);
	ct_pair_close(p);
}

/* Outside a VRF a listener of the wildcard address takes no connection into it. */
static bool cm_in_vrf(const struct ct_pair *p)
{
	const struct sockaddr_in *addr = (const struct sockaddr_in *)&p->addr;
	struct net_device *dev = ip_dev_find(&init_net, addr->sin_addr.s_addr);
	bool vrf = dev && netif_is_l3_slave(dev);

	dev_put(dev);
	return vrf;
}

/*
 * A listener of the wildcard address takes connections at each address of the machine;
 * the request says at which.
 */
static void cm_wildcard(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct fi_info *info = fi_dupinfo(p->info);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct sockaddr_in *to, name;
	size_t len = sizeof(name);

	KUNIT_ASSERT_NOT_NULL(test, info);
	if (info->addr_format != FI_SOCKADDR_IN || cm_in_vrf(p)) {
		fi_freeinfo(info);
		ct_pair_close(p);
		kunit_skip(test, "not over IPv4, or in a VRF");
	}
	to = (struct sockaddr_in *)&p->addr;
	memcpy(info->src_addr, &any, sizeof(any));
	KUNIT_ASSERT_EQ(test, fi_close(&p->pep->fid), 0);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(p->fabric, info, &p->pep, p), 0);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(p->pep, &p->side[1].eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_listen(p->pep), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&p->pep->fid, &name, &len), 0);
	KUNIT_EXPECT_TRUE(test, name.sin_addr.s_addr == htonl(INADDR_ANY));
	to->sin_port = name.sin_port;
	KUNIT_EXPECT_EQ(test, fi_connect(p->side[0].ep, to, NULL, 0), 0);
	cm_request(p, ev);
	KUNIT_EXPECT_TRUE(test, ((struct sockaddr_in *)ev->cm.info->src_addr)->sin_addr.s_addr ==
				to->sin_addr.s_addr);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[0].eq, FI_CONNECTED);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	ct_pair_close(p);
}

/* Overwrite the attributes of an info, but for its addresses and names. */
static void cm_scribble(struct fi_info *info)
{
	info->caps = 0;
	memset(info->tx_attr, 0xff, sizeof(*info->tx_attr));
	memset(info->rx_attr, 0xff, sizeof(*info->rx_attr));
	info->ep_attr->type = FI_EP_UNSPEC;
	info->ep_attr->max_msg_size = 0;
	memset(info->src_addr, 0xff, info->src_addrlen);
}

/* Objects keep nothing of the info that they were opened with. */
static void cm_info_scribbled(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct fi_info *info = fi_dupinfo(p->info);
	struct ct_op *send = ct_op(p), *recv = ct_op(p);
	u8 *buf = ct_buf(p, 128);

	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 0, info), 0);
	cm_scribble(info);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv, buf, 64), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, send, buf + 64, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, send->wc.err, 0);
	KUNIT_EXPECT_EQ(test, recv->wc.err, 0);
	ct_pair_close(p);
}

/* The listener goes with a request that has not been answered. */
static void cm_listener_closes(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));

	KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	cm_request(p, ev);
	fi_freeinfo(ev->cm.info);
	KUNIT_EXPECT_EQ(test, fi_close(&p->pep->fid), 0);
	p->pep = NULL;
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS), 1);
	ct_expect_no_event(test, p->side[0].eq);
	ct_pair_close(p);
}

/* As above, with the request still in the queue: its info is not leaked. */
static void cm_listener_closes_unread(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u32 event;

	KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, fi_eq_read(p->side[1].eq, &event,
						      ev->bytes,
						      sizeof(ev->bytes),
						      FI_PEEK) > 0,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, event, FI_CONNREQ);
	KUNIT_EXPECT_EQ(test, fi_close(&p->pep->fid), 0);
	p->pep = NULL;
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS), 1);
	ct_pair_close(p);
}

/* Closing an endpoint that is connecting takes its events along. */
static void cm_closed_while_connecting(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));

	KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	cm_request(p, ev);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	ct_expect_no_event(test, p->side[0].eq);
	/*
	 * Side 1 may find out when it accepts or just after; its connection
	 * ends in one event all the same, and then one FI_SHUTDOWN at most.
	 */
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	if (!fi_accept(p->side[1].ep, NULL, 0)) {
		int ret = ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS);

		KUNIT_EXPECT_GE(test, ret, 0);
		if (!ret) {
			KUNIT_EXPECT_EQ(test, ev->event, FI_CONNECTED);
			ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
		}
	}
	ct_expect_no_event(test, p->side[1].eq);
	ct_pair_close(p);
}

static void cm_addresses(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct sockaddr_storage a = {}, b = {};
	size_t len = sizeof(a);

	KUNIT_EXPECT_EQ(test, fi_getpeer(p->side[0].ep, &a, &len), 0);
	KUNIT_EXPECT_TRUE(test, inet_addr_is_any((void *)&a) == 0);
	KUNIT_EXPECT_MEMEQ(test, &a, &p->addr, sizeof(struct sockaddr_in));
	len = sizeof(a);
	KUNIT_EXPECT_EQ(test, fi_getname(&p->side[0].ep->fid, &a, &len), 0);
	len = sizeof(b);
	KUNIT_EXPECT_EQ(test, fi_getpeer(p->side[1].ep, &b, &len), 0);
	KUNIT_EXPECT_MEMEQ(test, &a, &b, sizeof(struct sockaddr_in));
	/* A buffer too small says how much it takes. */
	len = 4;
	KUNIT_EXPECT_EQ(test, fi_getname(&p->side[0].ep->fid, &a, &len),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_GE(test, len, sizeof(struct sockaddr_in));
	ct_pair_close(p);
}

/* Again and again with the same queues; leaks show when the machine ends. */
static void cm_many_connections(struct kunit *test)
{
	struct ct_pair *p = cm_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 *buf = ct_buf(p, 64);
	int i, side;

	for (i = 0; i < 200; i++) {
		struct ct_op *r = ct_op(p), *s = ct_op(p);

		KUNIT_ASSERT_EQ_MSG(test, ct_pair_connect(p), 0,
				    "connection %d", i);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, buf, 64), 0);
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, s, buf, 64), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
		/* what has been left undone goes with its endpoint */
		KUNIT_ASSERT_EQ(test, ct_recv(p, i & 1, ct_op(p), buf, 64), 0);
		KUNIT_ASSERT_EQ(test, ct_ep_close(p, i & 1), 0);
		KUNIT_ASSERT_EQ(test, ct_ep_close(p, !(i & 1)), 0);
		ct_progress(p);
		/* and so do its events */
		for (side = 0; side < 2; side++)
			KUNIT_ASSERT_EQ(test, ct_next_event(p->side[side].eq, ev,
							    0), -EAGAIN);
		KUNIT_ASSERT_EQ(test, ct_ep_open(p, 0, p->info), 0);
	}
	ct_pair_close(p);
}

/* --------------------------------------------------------- 6: the other end */

static void cm_one_shutdown(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);

	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	/* more reasons for another one */
	fi_shutdown(p->side[1].ep, 0);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	ct_expect_no_event(test, p->side[1].eq);
	ct_pair_close(p);
}

static void cm_shutdown_hook(struct ct_op *op)
{
	int *err = op->pair->priv;

	*err = fi_shutdown(op->pair->side[op->side].ep, 0);
}

/* A callback that may sleep ends the connection it was called for. */
static void cm_shutdown_in_callback(struct kunit *test)
{
	static const enum ct_mode modes[] = { CT_DIRECT, CT_WORKQUEUE };
	struct ct_op *r;
	int i, j, err;
	u8 *buf;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		struct ct_pair *p = ct_pair_mode(test, modes[i]);

		err = 1;
		p->priv = &err;
		buf = ct_buf(p, 64);
		r = ct_op(p);
		r->hook = cm_shutdown_hook;
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, buf, 64), 0);
		for (j = 0; j < 4; j++)
			KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), buf, 64),
					0);
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, ct_op(p), buf, 64), 0);
		KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(test, err, 0);
		ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
		ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
		ct_pair_close(p);
	}
}

/* What was sent before the end arrives before the end. */
static void cm_shutdown_after_data(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	u8 *out = ct_buf(p, 8192), *in = ct_buf(p, 8192);
	struct ct_op *r = ct_op(p), *s = ct_op(p);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));

	if (!ct_buffers(p))
		kunit_skip(test, "a send completes when its receive has it");
	ct_pattern(out, 8192, 4);
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, s, out, 8192), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, s));
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	/* The receive comes late: the event waits for the stream's end. */
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, 100), -EAGAIN);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, 8192), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
	KUNIT_EXPECT_EQ(test, r->wc.err, 0);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, 8192, 4));
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	ct_pair_close(p);
}

/* A peer that posts no receive for longer than the time-out is alive. */
static void cm_slow_peer_lives(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .tx_size = 8,
		.silence_ms = TEST_LIMIT(2000),
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *out = ct_buf(p, 1 << 20), *in = ct_buf(p, 1 << 20);
	int i, posted = 0;

	ct_need_stalls(p);
	for (i = 0; i < 100 && posted < 64; i++) {
		if (ct_send(p, 0, ct_op(p), out, 1 << 20))
			break;
		posted++;
		ct_wait(p, false, 20);
	}
	KUNIT_ASSERT_LT(test, posted, 64);
	ct_wait(p, false, 3 * opts.silence_ms + 500);
	ct_expect_no_event(test, p->side[0].eq);
	for (i = 0; i < posted; i++) {
		struct ct_op *r = ct_op(p);

		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, 1 << 20), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
		KUNIT_EXPECT_EQ(test, r->wc.err, 0);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* What monitors are told of a connection, from both ends */
static void cm_monitored(struct kunit *test)
{
	struct events *ev[2] = { events_listen(test), events_listen(test) };
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	u32 id[2] = { p->side[0].ep->fid.obj->id, p->side[1].ep->fid.obj->id };
	int i;

	for (i = 0; i < 2; i++) {
		events_expect(test, ev[i], id[i], KOFI_EVENT_CONNECTED, 0);
		KUNIT_EXPECT_NOT_NULL(test, ev[i]->tb[KOFI_A_EVENT_PEER_ADDR]);
		KUNIT_EXPECT_STREQ(test, events_str(ev[i], KOFI_A_EVENT_PROV_NAME),
				   p->info->fabric_attr->prov_name);
	}
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	for (i = 0; i < 2; i++)
		events_expect(test, ev[i], id[i], KOFI_EVENT_SHUTDOWN, 0);
	KUNIT_EXPECT_STREQ(test, events_str(ev[1], KOFI_A_EVENT_REASON),
			   "closed by the peer");
	ct_pair_close(p);
}

static void cm_monitored_refused(struct kunit *test)
{
	struct events *ev = events_listen(test);
	struct ct_pair *p = cm_unconnected(test);
	struct ct_event *event = ct_buf(p, sizeof(*event));
	u32 id = p->side[0].ep->fid.obj->id;

	KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	cm_request(p, event);
	KUNIT_EXPECT_EQ(test, fi_reject(p->pep, event->cm.info->handle, NULL, 0), 0);
	fi_freeinfo(event->cm.info);
	events_expect(test, ev, id, KOFI_EVENT_CONNECT_FAILED, ECONNREFUSED);
	ct_pair_close(p);
}

static struct kunit_case contract_cm_cases[] = {
	KUNIT_CASE(cm_private_data),
	KUNIT_CASE(cm_rejected),
	KUNIT_CASE(cm_nobody_listens),
	KUNIT_CASE(cm_listener_closes),
	KUNIT_CASE(cm_listener_closes_unread),
	KUNIT_CASE(cm_closed_while_connecting),
	KUNIT_CASE(cm_addresses),
	KUNIT_CASE(cm_wildcard),
	KUNIT_CASE(cm_info_scribbled),
	KUNIT_CASE(cm_many_connections),
	KUNIT_CASE(cm_one_shutdown),
	KUNIT_CASE(cm_shutdown_in_callback),
	KUNIT_CASE(cm_shutdown_after_data),
	KUNIT_CASE(cm_slow_peer_lives),
	KUNIT_CASE(cm_monitored),
	KUNIT_CASE(cm_monitored_refused),
	{}
};

static struct kunit_suite contract_cm_suite = {
	.name = "contract_cm",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.init = ct_connected_init,
	.test_cases = contract_cm_cases,
};

kunit_test_suite(contract_cm_suite);
