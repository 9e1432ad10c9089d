// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_sock alive: two endpoints of the public API over the loopback device,
 * and a plain TCP socket where a peer must misbehave.
 *
 * The contract suite asks what every provider promises; here is what this one
 * has of its own: the byte stream in all sizes and memory kinds, the bounds of
 * the passive side, timers, counters.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inetdevice.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/tcp.h>

#include <linux/kofi/provider.h>

#include "../../providers/sock/sock.h"

#include "kunit.h"

#define LIVE_TIMEOUT	10000	/* milliseconds; nothing that works takes it */
#define LIVE_BIG	SZ_1M

/* One end of a connection */
struct live_end {
	struct fid_domain	*domain;
	struct fid_ep		*ep;
	struct fid_eq		*eq;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fi_info		*info;
};

struct live {
	struct fid_fabric	*fabric;
	struct fid_pep		*pep;
	struct fid_eq		*pep_eq;
	struct live_end		end[2];		/* who connects, who accepts */
	struct fi_info		*info;
	struct sockaddr_storage	addr;
	size_t			addrlen;
	u8			*out;
	u8			*in;
};

static int live_eq_open(struct live *l, struct fid_eq **eq)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	return fi_eq_open(l->fabric, &attr, eq, NULL);
}

static struct fi_info *live_hints(struct kunit *test, int family)
{
	struct fi_info *hints = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
	hints->addr_format = family == AF_INET6 ? FI_SOCKADDR_IN6 :
						  FI_SOCKADDR_IN;
	return hints;
}

static void live_listen(struct kunit *test, struct live *l, int family)
{
	struct fi_info *hints = live_hints(test, family);

	KUNIT_ASSERT_EQ(test, fi_getinfo(FI_VERSION(2, 1),
					 family == AF_INET6 ? "::1" :
							      "127.0.0.1",
					 "0", FI_SOURCE | FI_NUMERICHOST,
					 hints, &l->info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, fi_fabric(l->info->fabric_attr, &l->fabric,
					NULL), 0);
	KUNIT_ASSERT_EQ(test, live_eq_open(l, &l->pep_eq), 0);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(l->fabric, l->info, &l->pep, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_pep_bind(l->pep, &l->pep_eq->fid, 0), 0);
}

static void live_start(struct kunit *test, struct live *l)
{
	KUNIT_ASSERT_EQ(test, fi_listen(l->pep), 0);
	l->addrlen = sizeof(l->addr);
	KUNIT_ASSERT_EQ(test, fi_getname(&l->pep->fid, &l->addr, &l->addrlen),
			0);
}

/* Open one end from an info; sizes of queues as given, 0 for the default. */
static void live_open(struct kunit *test, struct live *l, struct live_end *e,
		      struct fi_info *info, size_t cq_size)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_DATA, .size = cq_size,
		.wait_obj = FI_WAIT_UNSPEC,
	};

	e->info = info;
	KUNIT_ASSERT_EQ(test, fi_domain(l->fabric, info, &e->domain, NULL), 0);
	KUNIT_ASSERT_EQ(test, live_eq_open(l, &e->eq), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(e->domain, &attr, &e->tx, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(e->domain, &attr, &e->rx, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(e->domain, info, &e->ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV), 0);
}

static void live_close_end(struct kunit *test, struct live_end *e)
{
	if (e->ep)
		KUNIT_EXPECT_EQ(test, fi_close(&e->ep->fid), 0);
	if (e->tx)
		KUNIT_EXPECT_EQ(test, fi_close(&e->tx->fid), 0);
	if (e->rx)
		KUNIT_EXPECT_EQ(test, fi_close(&e->rx->fid), 0);
	if (e->eq)
		KUNIT_EXPECT_EQ(test, fi_close(&e->eq->fid), 0);
	if (e->domain)
		KUNIT_EXPECT_EQ(test, fi_close(&e->domain->fid), 0);
	fi_freeinfo(e->info);
	memset(e, 0, sizeof(*e));
}

/* Wait for one event; private data goes to @data. */
static ssize_t live_event(struct fid_eq *eq, u32 event, struct fi_info **info,
			  void *data)
{
	u8 buf[sizeof(struct fi_eq_cm_entry) + 256];
	struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)buf;
	u32 got = ~0;
	ssize_t n;

	n = fi_eq_sread(eq, &got, buf, sizeof(buf), LIVE_TIMEOUT, 0);
	if (n < 0)
		return n;
	if (got != event)
		return -ENOMSG;
	if (info)
		*info = entry->info;
	n -= sizeof(*entry);
	if (data)
		memcpy(data, entry->data, n);
	return n;
}

/* The error entry that comes next, as a negative number; data to @data. */
static int live_event_err(struct fid_eq *eq, void *data, size_t *len)
{
	struct fi_eq_err_entry err = { .err_data = data,
				       .err_data_size = len ? *len : 0 };
	u8 buf[64];
	u32 event;
	ssize_t n;

	n = fi_eq_sread(eq, &event, buf, sizeof(buf), LIVE_TIMEOUT, 0);
	if (n != -FI_EAVAIL)
		return n;
	n = fi_eq_readerr(eq, &err, 0);
	if (n < 0)
		return n;
	if (len)
		*len = err.err_data_size;
	return -err.err;
}

/* One completion of a queue; returns its error as a negative number. */
static int live_comp(struct fid_cq *cq, struct fi_cq_err_entry *e)
{
	struct fi_cq_data_entry entry;
	ssize_t n;

	memset(e, 0, sizeof(*e));
	n = fi_cq_sread(cq, &entry, 1, NULL, LIVE_TIMEOUT);
	if (n == 1) {
		e->op_context = entry.op_context;
		e->flags = entry.flags;
		e->len = entry.len;
		e->data = entry.data;
		return 0;
	}
	if (n != -FI_EAVAIL)
		return n ? n : -EIO;
	n = fi_cq_readerr(cq, e, 0);
	return n == 1 ? -e->err : -EIO;
}

/* Connect end 0 to end 1, private data both ways. */
static void live_connect(struct kunit *test, struct live *l, size_t cq_size)
{
	struct fi_info *req = NULL;
	char data[256];

	live_open(test, l, &l->end[0], fi_dupinfo(l->info), cq_size);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, "hello", 5),
			0);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, data), 5);
	KUNIT_EXPECT_MEMEQ(test, data, "hello", 5);
	KUNIT_ASSERT_NOT_NULL(test, req);
	live_open(test, l, &l->end[1], req, cq_size);
	KUNIT_ASSERT_EQ(test, fi_accept(l->end[1].ep, "welcome", 7), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->end[1].eq, FI_CONNECTED, NULL,
					 NULL), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->end[0].eq, FI_CONNECTED, NULL,
					 data), 7);
	KUNIT_EXPECT_MEMEQ(test, data, "welcome", 7);
}

static void live_pattern(u8 *buf, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i + (i >> 8) * 3;
}

static int live_init(struct kunit *test)
{
	struct live *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	test->priv = l;
	l->out = vmalloc(LIVE_BIG);
	l->in = vmalloc(LIVE_BIG);
	if (!l->out || !l->in) {
		vfree(l->out);
		vfree(l->in);
		KUNIT_FAIL_AND_ABORT(test, "no memory");
	}
	live_pattern(l->out, LIVE_BIG, 7);
	return 0;
}

static void live_exit(struct kunit *test)
{
	struct live *l = test->priv;

	if (!l)
		return;
	live_close_end(test, &l->end[0]);
	live_close_end(test, &l->end[1]);
	if (l->pep)
		KUNIT_EXPECT_EQ(test, fi_close(&l->pep->fid), 0);
	if (l->pep_eq)
		KUNIT_EXPECT_EQ(test, fi_close(&l->pep_eq->fid), 0);
	if (l->fabric)
		KUNIT_EXPECT_EQ(test, fi_close(&l->fabric->fid), 0);
	fi_freeinfo(l->info);
	vfree(l->out);
	vfree(l->in);
}

static int live_suite_init(struct kunit_suite *suite)
{
	struct net_device *lo = init_net.loopback_dev;
	int err;

	rtnl_lock();
	err = dev_change_flags(lo, lo->flags | IFF_UP, NULL);
	rtnl_unlock();
	return err;
}

/* ------------------------------------------------------------------- cases */

static void live_connect_ipv4(struct kunit *test)
{
	struct live *l = test->priv;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_connect(test, l, 0);
}

static void live_connect_ipv6(struct kunit *test)
{
	struct live *l = test->priv;

	live_listen(test, l, AF_INET6);
	live_start(test, l);
	live_connect(test, l, 0);
}

/* Every size around a boundary, one at a time, with the content checked. */
static void live_sizes(struct kunit *test)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 16, 63, 64, 127, 128, 129, 1000, 1460, 4095, 4096,
		4097, 16367, 16368, 16369, 16384, 16385, 65519, 65535, 65536,
		65537, 100000, 262144, 262145, 524288, 1048575, LIVE_BIG,
	};
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	int i, dir;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_connect(test, l, 0);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (dir = 0; dir < 2; dir++) {
			struct live_end *from = &l->end[dir];
			struct live_end *to = &l->end[!dir];
			size_t n = sizes[i];

			memset(l->in, 0xee, LIVE_BIG);
			KUNIT_ASSERT_EQ(test, fi_recv(to->ep, l->in, n, NULL, 0,
						      l->in), 0);
			KUNIT_ASSERT_EQ(test, fi_senddata(from->ep, l->out, n,
							  NULL, n, 0, l->out),
					0);
			KUNIT_ASSERT_EQ(test, live_comp(to->rx, &e), 0);
			KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)l->in);
			KUNIT_EXPECT_EQ(test, e.len, n);
			KUNIT_EXPECT_EQ(test, e.data, n);
			KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG |
					FI_REMOTE_CQ_DATA);
			KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, n), 0);
			KUNIT_ASSERT_EQ(test, live_comp(from->tx, &e), 0);
			KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)l->out);
			KUNIT_EXPECT_EQ(test, e.flags, FI_SEND | FI_MSG);
		}
	}
}

static struct kunit_case live_cases[] = {
	KUNIT_CASE(live_connect_ipv4),
	KUNIT_CASE(live_connect_ipv6),
	KUNIT_CASE(live_sizes),
	{}
};

static struct kunit_suite live_suite = {
	.name = "sock_live",
	.suite_init = live_suite_init,
	.init = live_init,
	.exit = live_exit,
	.test_cases = live_cases,
};
kunit_test_suite(live_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_sock");
MODULE_LICENSE("Dual BSD/GPL");
