// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints of type FI_EP_DGRAM over the loopback device, and plain sockets as
 * their peers: a message is a datagram, whole or not at all.
 */
#include <linux/bvec.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/interrupt.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include <linux/kofi/lib.h>

#include "../kunit.h"
#include "../limit.h"

#define DG_TIMEOUT	TEST_LIMIT(20000)	/* milliseconds; nothing that works takes it */
#define DG_MAX		65507	/* bytes of a datagram of IPv4 */
#define DG_MANY		64
#define DG_SMALL	100
#define DG_FLOOD	1024	/* datagrams that wait for their receives */
#define DG_TURN		256	/* datagrams in a row: the budget of irq_poll */

struct dg_end {
	struct fid_ep	*ep;
	struct fid_cq	*tx;
	struct fid_cq	*rx;
	struct fid_av	*av;
	union kofi_ip	name;
	fi_addr_t	peer;
};

struct dg {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct dg_end		end[2];
	u8			*out;
	u8			*in;
	size_t			sndbuf;
	size_t			rcvbuf;
	size_t			depth;	/* of receives, if not the default */
	u64			caps;	/* beside those of all cases */
	atomic_t		spaces;
	struct net_device	*dev;
};

static void dg_pattern(u8 *buf, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = i * 7 + (i >> 8) * 13 + seed;
}

static int dg_ask(struct kunit *test, const char *dev, const char *addr,
		  struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	const struct dg *d = test->priv;
	int err;

	*info = NULL;
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | FI_SOURCE | FI_MULTI_RECV | d->caps;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	hints->domain_attr->name = kstrdup(dev, GFP_KERNEL);
	err = kofi_getinfo(&init_net, FI_VERSION(2, 1), addr, addr ? "0" : NULL,
			   addr ? FI_SOURCE | FI_NUMERICHOST : 0, hints, info,
			   GFP_KERNEL);
	fi_freeinfo(hints);
	return err;
}

static struct fi_info *dg_getinfo(struct kunit *test, bool ipv6)
{
	struct fi_info *info;

	KUNIT_ASSERT_EQ(test, dg_ask(test, "lo", ipv6 ? "::1" : "127.0.0.1",
				     &info), 0);
	return info;
}

static void dg_space(struct fid_ep *ep, void *context)
{
	struct dg *d = context;

	atomic_inc(&d->spaces);
}

static void dg_open_end(struct kunit *test, struct dg *d, struct dg_end *e)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC,
		.size = d->depth,
	};
	size_t len = sizeof(e->name);

	KUNIT_ASSERT_EQ(test, fi_cq_open(d->domain, &attr, &e->tx, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(d->domain, &attr, &e->rx, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_av_open(d->domain, NULL, &e->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(d->domain, d->info, &e->ep, d), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, kofi_ep_write_space(e->ep, dg_space), 0);
	if (d->sndbuf)
		KUNIT_ASSERT_EQ(test, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_SEND_BUF_SIZE,
						&d->sndbuf, sizeof(d->sndbuf)),
				0);
	if (d->rcvbuf)
		KUNIT_ASSERT_EQ(test, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_RECV_BUF_SIZE,
						&d->rcvbuf, sizeof(d->rcvbuf)),
				0);
	KUNIT_ASSERT_EQ(test, fi_enable(e->ep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&e->ep->fid, &e->name, &len), 0);
}

static void dg_close_end(struct kunit *test, struct dg_end *e)
{
	if (e->ep)
		KUNIT_EXPECT_EQ(test, fi_close(&e->ep->fid), 0);
	if (e->av)
		KUNIT_EXPECT_EQ(test, fi_close(&e->av->fid), 0);
	if (e->tx)
		KUNIT_EXPECT_EQ(test, fi_close(&e->tx->fid), 0);
	if (e->rx)
		KUNIT_EXPECT_EQ(test, fi_close(&e->rx->fid), 0);
	memset(e, 0, sizeof(*e));
}

static void dg_open_domain(struct kunit *test, struct dg *d)
{
	KUNIT_ASSERT_EQ(test, fi_fabric(d->info->fabric_attr, &d->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(d->fabric, d->info, &d->domain, NULL),
			0);
}

static void dg_open(struct kunit *test, struct dg *d, bool ipv6)
{
	int i;

	d->info = dg_getinfo(test, ipv6);
	if (d->depth)
		d->info->rx_attr->size = d->depth;
	dg_open_domain(test, d);
	for (i = 0; i < 2; i++)
		dg_open_end(test, d, &d->end[i]);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, fi_av_insert(d->end[i].av,
						   &d->end[!i].name, 1,
						   &d->end[i].peer, 0, NULL),
				1);
}

static void dg_close(struct kunit *test, struct dg *d)
{
	int i;

	for (i = 0; i < 2; i++)
		dg_close_end(test, &d->end[i]);
	if (d->domain)
		KUNIT_EXPECT_EQ(test, fi_close(&d->domain->fid), 0);
	if (d->fabric)
		KUNIT_EXPECT_EQ(test, fi_close(&d->fabric->fid), 0);
	fi_freeinfo(d->info);
	d->domain = NULL;
	d->fabric = NULL;
	d->info = NULL;
}

/* -------------------------------------------------- a device that holds all */

static struct sk_buff_head dg_held;	/* what has been sent, until it is freed */

static netdev_tx_t dg_dev_xmit(struct sk_buff *skb, struct net_device *dev)
{
	skb_queue_tail(&dg_held, skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops dg_dev_ops = { .ndo_start_xmit = dg_dev_xmit };

static void dg_dev_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &dg_dev_ops;
	dev->flags |= IFF_NOARP;
	eth_hw_addr_random(dev);
}

/* A domain on it, at the address IPv6 gives it, and a peer that never answers */
static void dg_open_dev(struct kunit *test, struct dg *d,
			struct sockaddr_in6 *peer)
{
	unsigned long end = jiffies + msecs_to_jiffies(DG_TIMEOUT);
	int err;

	d->dev = alloc_netdev(0, "kofidgram0", NET_NAME_USER, dg_dev_setup);
	KUNIT_ASSERT_NOT_NULL(test, d->dev);
	err = register_netdev(d->dev);
	if (err) {
		free_netdev(d->dev);
		d->dev = NULL;
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	rtnl_lock();
	err = dev_change_flags(d->dev, d->dev->flags | IFF_UP, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, err, 0);
	/* a work item of IPv6 adds the address */
	while (dg_ask(test, d->dev->name, NULL, &d->info) &&
	       time_before(jiffies, end))
		msleep(20);
	KUNIT_ASSERT_NOT_NULL(test, d->info);
	dg_open_domain(test, d);
	*peer = (struct sockaddr_in6) {
		.sin6_family = AF_INET6, .sin6_port = htons(9),
		.sin6_scope_id = d->dev->ifindex,
		.sin6_addr = { { { 0xfe, 0x80, [15] = 1 } } },
	};
}

static int dg_init(struct kunit *test)
{
	struct dg *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	if (!d)
		return -ENOMEM;
	test->priv = d;
	skb_queue_head_init(&dg_held);
	d->out = vmalloc(2 * DG_MAX);
	d->in = vmalloc(2 * DG_MAX);
	return d->out && d->in ? 0 : -ENOMEM;
}

static void dg_remove(struct dg *d)
{
	if (!d->dev)
		return;
	unregister_netdev(d->dev);
	skb_queue_purge(&dg_held);
	free_netdev(d->dev);
	d->dev = NULL;
}

static void dg_exit(struct kunit *test)
{
	struct dg *d = test->priv;

	dg_close(test, d);
	dg_remove(d);
	vfree(d->out);
	vfree(d->in);
}

/* The next completion of a queue; its error, or 0. -EAGAIN if none comes */
static int dg_comp(struct fid_cq *cq, struct fi_cq_err_entry *e, fi_addr_t *src)
{
	struct fi_cq_data_entry entry;
	fi_addr_t from;
	ssize_t n;

	*e = (struct fi_cq_err_entry) {};
	n = fi_cq_sreadfrom(cq, &entry, 1, src ?: &from, NULL, DG_TIMEOUT);
	if (n == -FI_EAVAIL)
		return fi_cq_readerr(cq, e, 0) < 0 ? -EIO : e->err;
	if (n != 1)
		return n < 0 ? n : -EIO;
	e->op_context = entry.op_context;
	e->flags = entry.flags;
	e->len = entry.len;
	return 0;
}

static void dg_expect(struct kunit *test, struct fid_cq *cq, void *context,
		      int err)
{
	struct fi_cq_err_entry e;

	KUNIT_ASSERT_EQ(test, dg_comp(cq, &e, NULL), err);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, context);
}

struct dg_stat {
	const char	*name;
	u64		value;
};

static void dg_stat_one(void *arg, const char *name, u64 value)
{
	struct dg_stat *s = arg;

	if (!strcmp(name, s->name))
		s->value = value;
}

static u64 dg_stat(struct fid_ep *ep, const char *name)
{
	struct kofi_obj *obj = ep->fid.obj;
	struct dg_stat s = { .name = name, .value = ~0ULL };

	obj->ops->stats(obj, dg_stat_one, &s);
	return s.value;
}

/* From the first to the second; with or without its receive there before */
static void dg_exchange(struct kunit *test, struct dg *d, size_t len, bool late)
{
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct fi_cq_err_entry e;
	fi_addr_t src;

	dg_pattern(d->out, len, len);
	memset(d->in, 0, len + 1);
	if (!late)
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, len + 1, NULL,
					      FI_ADDR_UNSPEC, d->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, d->out, len, NULL, a->peer,
				      d->out), 0);
	KUNIT_ASSERT_EQ(test, dg_comp(a->tx, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_SEND | FI_MSG);
	if (late)
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, len + 1, NULL,
					      FI_ADDR_UNSPEC, d->in), 0);
	KUNIT_ASSERT_EQ(test, dg_comp(b->rx, &e, &src), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)d->in);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG);
	KUNIT_EXPECT_EQ(test, e.len, len);
	KUNIT_EXPECT_EQ(test, src, b->peer);
	KUNIT_EXPECT_EQ(test, memcmp(d->in, d->out, len), 0);
	KUNIT_EXPECT_EQ(test, d->in[len], 0);
}

static void dg_sizes(struct kunit *test, bool ipv6)
{
	struct dg *d = test->priv;
	size_t sizes[] = { 0, 1, 128, 129, 1472, 4096, 9000, 40000, 0 };
	int i;

	dg_open(test, d, ipv6);
	sizes[ARRAY_SIZE(sizes) - 1] = d->info->ep_attr->max_msg_size;
	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++)
		dg_exchange(test, d, sizes[i / 2], i & 1);
	KUNIT_EXPECT_EQ(test, fi_send(d->end[0].ep, d->out,
				      d->info->ep_attr->max_msg_size + 1, NULL,
				      d->end[0].peer, NULL), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, dg_stat(d->end[1].ep, "rx_datagrams"),
			2 * ARRAY_SIZE(sizes));
	KUNIT_EXPECT_EQ(test, dg_stat(d->end[1].ep, "rx_dropped"), 0);
}

static void dg_sizes_ipv4(struct kunit *test)
{
	struct dg *d = test->priv;

	dg_sizes(test, false);
	KUNIT_EXPECT_EQ(test, d->info->ep_attr->max_msg_size, DG_MAX);
}

static void dg_sizes_ipv6(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "there is no IPv6");
	dg_sizes(test, true);
}

/* ------------------------------------------------------------------ offers */

static void dg_info(struct kunit *test)
{
	struct fi_info *info = dg_getinfo(test, false);

	KUNIT_EXPECT_EQ(test, info->ep_attr->protocol, FI_PROTO_UDP);
	KUNIT_EXPECT_EQ(test, info->tx_attr->msg_order, 0);
	KUNIT_EXPECT_EQ(test, info->caps & (FI_RMA | FI_TAGGED | FI_ATOMIC), 0);
	fi_freeinfo(info);
}

/* What no datagram can is refused, before anything has happened. */
static void dg_refused(struct kunit *test)
{
	struct dg *d = test->priv;
	struct fi_rx_attr attr = { .size = 4 };
	struct kvec kv = { d->out, 8 };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct fid_ep *ep, *srx;
	unsigned int val = 1;
	size_t size = 0, len = sizeof(size);

	dg_open(test, d, false);
	ep = d->end[0].ep;
	msg.addr = d->end[0].peer;
	KUNIT_EXPECT_EQ(test, fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(ep, &msg, FI_DELIVERY_COMPLETE),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(ep, &msg, FI_FENCE), -FI_EBADFLAGS);
	msg.addr = 99;
	KUNIT_EXPECT_EQ(test, fi_sendmsg(ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, d->out, 129, d->end[0].peer),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_tsend(ep, d->out, 8, NULL, d->end[0].peer, 1,
				       NULL), -ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_write(ep, d->out, 8, NULL, d->end[0].peer, 0,
				       0, NULL), -ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE,
					 &val), -ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_CM_DATA_SIZE, &size, &len),
			-FI_ENOPROTOOPT);
	KUNIT_ASSERT_EQ(test, fi_endpoint(d->domain, d->info, &ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_srx_context(d->domain, &attr, &srx, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &srx->fid, 0), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_setname(&ep->fid, &in6, sizeof(in6)), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -FI_ENOAV);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&srx->fid), 0);
	dg_exchange(test, d, 8, false);
}

/* ---------------------------------------------------------------- receiving */

static void dg_truncated(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct fi_cq_err_entry e;

	dg_open(test, d, false);
	dg_pattern(d->out, 1000, 1);
	d->in[DG_SMALL] = 77;
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, DG_SMALL, NULL,
				      FI_ADDR_UNSPEC, d->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, d->out, 1000, NULL, a->peer, NULL),
			0);
	KUNIT_EXPECT_EQ(test, dg_comp(b->rx, &e, NULL), FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, e.len, DG_SMALL);
	KUNIT_EXPECT_EQ(test, e.olen, 1000 - DG_SMALL);
	KUNIT_EXPECT_EQ(test, memcmp(d->in, d->out, DG_SMALL), 0);
	KUNIT_EXPECT_EQ(test, d->in[DG_SMALL], 77);
	dg_expect(test, a->tx, NULL, 0);
	KUNIT_EXPECT_EQ(test, dg_stat(b->ep, "rx_truncated"), 1);
	dg_exchange(test, d, 1000, true);
}

/* Those without a receive wait in order. */
static void dg_late(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	int i;

	dg_open(test, d, false);
	for (i = 0; i < DG_MANY; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, &i, sizeof(i), a->peer),
				0);
	for (i = 0; i < DG_MANY; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in + i * sizeof(i),
					      sizeof(i), NULL, FI_ADDR_UNSPEC,
					      d->in + i), 0);
	for (i = 0; i < DG_MANY; i++) {
		dg_expect(test, b->rx, d->in + i, 0);
		KUNIT_EXPECT_EQ(test, ((int *)d->in)[i], i);
	}
}

/* What does not fit into the socket's queue is dropped, and counted. */
static void dg_dropped(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct fi_cq_err_entry e;
	struct fi_cq_data_entry entry;
	unsigned long end = jiffies + msecs_to_jiffies(DG_TIMEOUT);
	u64 dropped, got = 0;
	int i, n = 256;

	d->rcvbuf = 16384;
	dg_open(test, d, false);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, d->out, 1000, NULL,
					      a->peer, NULL), 0);
		KUNIT_ASSERT_EQ(test, dg_comp(a->tx, &e, NULL), 0);
	}
	/* receives for all of them; the last one is sure to come */
	for (i = 0; i < n - 1; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, 1000, NULL,
					      FI_ADDR_UNSPEC, d->in), 0);
	while (dg_stat(b->ep, "rx_datagrams") +
	       dg_stat(b->ep, "rx_dropped") < n && time_before(jiffies, end))
		cond_resched();
	dropped = dg_stat(b->ep, "rx_dropped");
	KUNIT_EXPECT_GT(test, dropped, 0);
	while (got < n - dropped) {
		KUNIT_ASSERT_EQ(test, dg_comp(b->rx, &e, NULL), 0);
		got++;
	}
	KUNIT_EXPECT_EQ(test, fi_cq_read(b->rx, &entry, 1), -EAGAIN);
}

/* Who is not in the address vector has no name. */
static void dg_source(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct fi_cq_err_entry e;
	fi_addr_t src = 5;

	dg_open(test, d, false);
	KUNIT_ASSERT_EQ(test, fi_av_remove(b->av, &b->peer, 1, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, 8, NULL, FI_ADDR_UNSPEC,
				      d->in), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(a->ep, d->out, 8, a->peer), 0);
	KUNIT_ASSERT_EQ(test, dg_comp(b->rx, &e, &src), 0);
	KUNIT_EXPECT_EQ(test, src, FI_ADDR_NOTAVAIL);
	KUNIT_ASSERT_EQ(test, fi_av_insert(b->av, &a->name, 1, &b->peer, 0,
					   NULL), 1);
	dg_exchange(test, d, 8, false);
}

static void dg_multi(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct kvec kv = { d->in, 4096 };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = d->in,
	};
	struct fi_cq_err_entry e;
	int i;

	dg_open(test, d, false);
	KUNIT_ASSERT_EQ(test, fi_recvmsg(b->ep, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < 8; i++) {
		dg_pattern(d->out, DG_SMALL, i);
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, d->out, DG_SMALL,
						a->peer), 0);
		KUNIT_ASSERT_EQ(test, dg_comp(b->rx, &e, NULL), 0);
		KUNIT_EXPECT_EQ(test, e.len, DG_SMALL);
		KUNIT_EXPECT_EQ(test, memcmp(d->in + i * DG_SMALL, d->out,
					     DG_SMALL), 0);
	}
	KUNIT_ASSERT_EQ(test, fi_cancel(&b->ep->fid, d->in), 0);
	dg_expect(test, b->rx, d->in, ECANCELED);
}

/* Receives end with the endpoint, and what has come without one is gone. */
static void dg_ends(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct fi_cq_data_entry entry;
	int i;

	dg_open(test, d, false);
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, d->out, 8, a->peer), 0);
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(a->ep, d->in, 8, NULL,
					      FI_ADDR_UNSPEC, d->in + i), 0);
	kofi_ep_drain(a->ep);
	for (i = 0; i < 4; i++)
		dg_expect(test, a->rx, d->in + i, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, d->out, 8, NULL, a->peer, NULL),
			-ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, fi_recv(a->ep, d->in, 8, NULL, FI_ADDR_UNSPEC,
				      NULL), -ESHUTDOWN);
	kofi_ep_drain(b->ep);
	KUNIT_EXPECT_EQ(test, fi_cq_read(b->rx, &entry, 1), -EAGAIN);
}

/* ------------------------------------------------------------------ sending */

static void dg_vectors(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	u8 *mem = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	struct scatterlist sgl[3];
	struct kvec kv[3];
	struct bio_vec bv[3];
	struct fi_msg msg = { .addr = 0, .iov_count = 3, .context = d->out };
	int kind, i;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	dg_open(test, d, false);
	msg.addr = a->peer;
	dg_pattern(mem, 3 * PAGE_SIZE, 5);
	sg_init_table(sgl, 3);
	for (i = 0; i < 3; i++) {
		u8 *at = mem + i * PAGE_SIZE + 8;

		kv[i] = (struct kvec) { at, 100 + i };
		bvec_set_virt(&bv[i], at, 100 + i);
		sg_set_buf(&sgl[i], at, 100 + i);
	}
	for (kind = KOFI_KVEC; kind <= KOFI_SGL; kind++) {
		msg.vec = kind;
		if (kind == KOFI_KVEC)
			msg.msg_iov = kv;
		else if (kind == KOFI_BVEC)
			msg.msg_bvec = bv;
		else
			msg.msg_sgl = sgl;
		memset(d->in, 0, 400);
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, 400, NULL,
					      FI_ADDR_UNSPEC, d->in), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(a->ep, &msg, FI_COMPLETION),
				0);
		dg_expect(test, a->tx, d->out, 0);
		dg_expect(test, b->rx, d->in, 0);
		KUNIT_EXPECT_EQ(test, memcmp(d->in, mem + 8, 100), 0);
		KUNIT_EXPECT_EQ(test, memcmp(d->in + 100, mem + PAGE_SIZE + 8,
					     101), 0);
		KUNIT_EXPECT_EQ(test, memcmp(d->in + 201,
					     mem + 2 * PAGE_SIZE + 8, 102), 0);
	}
}

/* With interrupts off nothing is sent in the post; it is, and reported. */
static void dg_irqs_off(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	int err[8], i;

	dg_open(test, d, false);
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, 8, NULL,
					      FI_ADDR_UNSPEC, d->in + i), 0);
	local_irq_disable();
	for (i = 0; i < 8; i++)
		err[i] = fi_send(a->ep, d->out, 8, NULL, a->peer, d->out + i);
	local_irq_enable();
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, err[i], 0);
	for (i = 0; i < 8; i++) {
		dg_expect(test, a->tx, d->out + i, 0);
		dg_expect(test, b->rx, d->in + i, 0);
	}
}

/* Free what the device holds until so many operations have ended, and room is told of. */
static void dg_let_go(struct kunit *test, struct dg *d, struct dg_end *e, int n)
{
	unsigned long end = jiffies + msecs_to_jiffies(DG_TIMEOUT);
	struct fi_cq_data_entry entry;

	while ((n || !atomic_read(&d->spaces)) && time_before(jiffies, end)) {
		skb_queue_purge(&dg_held);
		if (fi_cq_read(e->tx, &entry, 1) == 1)
			n--;
		else
			cond_resched();
	}
	KUNIT_ASSERT_EQ(test, n, 0);
}

/*
 * When the socket is full, posts are accepted until there is no record left, and
 * go as the device frees what it holds.
 */
static void dg_full(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0];
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e;
	struct sockaddr_in6 to;
	int posted = 0, done = 0, total;
	fi_addr_t peer;

	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "there is no IPv6");
	dg_open_dev(test, d, &to);
	d->sndbuf = 4608;
	dg_open_end(test, d, a);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &to, 1, &peer, 0, NULL), 1);
	total = d->info->tx_attr->size;
	while (!fi_send(a->ep, d->out, 1400, NULL, peer, NULL)) {
		posted++;
		if (fi_cq_read(a->tx, &entry, 1) == 1)
			done++;
	}
	/* what has gone into the socket has ended, and all others have not */
	KUNIT_EXPECT_EQ(test, posted, total + done);
	KUNIT_EXPECT_GT(test, done, 0);
	KUNIT_EXPECT_LT(test, done, 20);
	KUNIT_EXPECT_GT(test, dg_stat(a->ep, "tx_full"), 0);
	KUNIT_EXPECT_EQ(test, dg_stat(a->ep, "tx_datagrams"), done);
	KUNIT_EXPECT_EQ(test, atomic_read(&d->spaces), 0);
	dg_let_go(test, d, a, posted - done);
	KUNIT_EXPECT_EQ(test, dg_stat(a->ep, "tx_datagrams"), posted);
	KUNIT_EXPECT_EQ(test, atomic_read(&d->spaces), 1);

	/* and those that wait end with the endpoint */
	while (!fi_send(a->ep, d->out, 1400, NULL, peer, d->out))
		;
	kofi_ep_drain(a->ep);
	for (done = 0; !dg_comp(a->tx, &e, NULL); done++)
		;
	KUNIT_EXPECT_EQ(test, e.err, ECANCELED);
	KUNIT_EXPECT_LT(test, done, 20);
	for (done = 1; fi_cq_read(a->tx, &entry, 1) == -FI_EAVAIL; done++) {
		e = (struct fi_cq_err_entry) {};
		KUNIT_EXPECT_EQ(test, fi_cq_readerr(a->tx, &e, 0), 1);
		KUNIT_EXPECT_EQ(test, e.err, ECANCELED);
	}
	KUNIT_EXPECT_EQ(test, done, total);
}

/* The device goes: before an endpoint is enabled, afterwards, and before one is. */
static void dg_removed(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0];
	struct fid_ep *early, *late;
	struct sockaddr_in6 to;
	fi_addr_t peer;

	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "there is no IPv6");
	dg_open_dev(test, d, &to);
	dg_open_end(test, d, a);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &to, 1, &peer, 0, NULL), 1);
	KUNIT_ASSERT_EQ(test, fi_endpoint(d->domain, d->info, &early, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(a->ep, d->in, 8, NULL, FI_ADDR_UNSPEC,
				      d->in), 0);
	dg_remove(d);
	KUNIT_ASSERT_EQ(test, fi_endpoint(d->domain, d->info, &late, NULL), 0);
	dg_expect(test, a->rx, d->in, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, d->out, 8, NULL, peer, NULL),
			-ENETDOWN);
	KUNIT_EXPECT_EQ(test, fi_recv(a->ep, d->in, 8, NULL, FI_ADDR_UNSPEC,
				      d->in), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(early, &a->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(early, &a->tx->fid,
					 FI_TRANSMIT | FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(early), -ENETDOWN);
	KUNIT_EXPECT_EQ(test, fi_close(&early->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&late->fid), 0);
}

/* What a plain socket gets is the payload and nothing else, and the reverse. */
static void dg_plain(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0];
	struct sockaddr_in own = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct kvec kv = { d->in, DG_MAX };
	struct msghdr msg = {};
	struct fi_cq_err_entry e;
	struct socket *sock;
	fi_addr_t peer, src;

	dg_open(test, d, false);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_DGRAM,
					       0, &sock), 0);
	KUNIT_EXPECT_EQ(test, kernel_bind(sock, (void *)&own, sizeof(own)), 0);
	KUNIT_EXPECT_GT(test, kernel_getsockname(sock, (void *)&own), 0);
	KUNIT_EXPECT_EQ(test, fi_av_insert(a->av, &own, 1, &peer, 0, NULL), 1);
	dg_pattern(d->out, 1000, 3);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, d->out, 1000, NULL, peer, NULL),
			0);
	KUNIT_EXPECT_EQ(test, kernel_recvmsg(sock, &msg, &kv, 1, DG_MAX, 0),
			1000);
	KUNIT_EXPECT_EQ(test, memcmp(d->in, d->out, 1000), 0);

	memset(d->in, 0, 1000);
	KUNIT_EXPECT_EQ(test, fi_recv(a->ep, d->in, 2000, NULL, FI_ADDR_UNSPEC,
				      d->in), 0);
	msg = (struct msghdr) {
		.msg_name = &a->name, .msg_namelen = sizeof(a->name.in4),
	};
	kv = (struct kvec) { d->out, 1000 };
	KUNIT_EXPECT_EQ(test, kernel_sendmsg(sock, &msg, &kv, 1, 1000), 1000);
	KUNIT_EXPECT_EQ(test, dg_comp(a->rx, &e, &src), 0);
	KUNIT_EXPECT_EQ(test, e.len, 1000);
	KUNIT_EXPECT_EQ(test, src, peer);
	KUNIT_EXPECT_EQ(test, memcmp(d->in, d->out, 1000), 0);
	sock_release(sock);
}

/* Whom the vector does not know is reported by its address, if that is asked for. */
static void dg_unknown(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct fi_cq_err_entry e;

	d->caps = FI_SOURCE_ERR;
	dg_open(test, d, false);
	dg_exchange(test, d, DG_SMALL, false);
	KUNIT_ASSERT_EQ(test, fi_av_remove(b->av, &b->peer, 1, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, DG_SMALL, NULL,
				      FI_ADDR_UNSPEC, d->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, d->out, DG_SMALL, NULL, a->peer,
				      d->out), 0);
	KUNIT_ASSERT_EQ(test, dg_comp(b->rx, &e, NULL), FI_EADDRNOTAVAIL);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)d->in);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG);
	KUNIT_EXPECT_EQ(test, e.len, DG_SMALL);
	KUNIT_ASSERT_EQ(test, e.err_data_size, sizeof(a->name.in4));
	KUNIT_EXPECT_MEMEQ(test, e.err_data, (void *)&a->name.in4,
			   sizeof(a->name.in4));
	KUNIT_ASSERT_EQ(test, fi_av_insert(b->av, e.err_data, 1, &b->peer, 0,
					   NULL), 1);
	dg_exchange(test, d, DG_SMALL, true);
	/* one that is too long has that error alone */
	KUNIT_ASSERT_EQ(test, fi_av_remove(b->av, &b->peer, 1, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, d->in, 10, NULL, FI_ADDR_UNSPEC,
				      d->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, d->out, DG_SMALL, NULL, a->peer,
				      d->out), 0);
	KUNIT_ASSERT_EQ(test, dg_comp(b->rx, &e, NULL), FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, e.err_data_size, 0);
}

/* A softirq that comes behind those of the endpoints, again and again */
struct dg_turns {
	struct tasklet_struct	tasklet;
	u8			*in;	/* a byte for each receive, not 0 when it is complete */
	int			received;
	int			most;	/* datagrams between two of its turns */
};

static void dg_turn(struct tasklet_struct *tasklet)
{
	struct dg_turns *t = container_of(tasklet, struct dg_turns, tasklet);
	int before = t->received;

	while (t->received < DG_FLOOD && READ_ONCE(t->in[t->received]))
		t->received++;
	t->most = max(t->most, t->received - before);
	if (t->received < DG_FLOOD)
		tasklet_schedule(tasklet);
}

/* However many datagrams there are, other softirqs have their turn. */
static void dg_budget(struct kunit *test)
{
	struct dg *d = test->priv;
	struct dg_end *a = &d->end[0], *b = &d->end[1];
	struct dg_turns t = {};
	unsigned long tick;
	int i, err = 0;

	d->depth = DG_FLOOD;
	d->rcvbuf = SZ_4M;
	dg_open(test, d, false);
	d->out[0] = 1;
	for (i = 0; i < DG_FLOOD; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, d->out, 1, a->peer), 0);
	/* one has been looked at */
	KUNIT_EXPECT_EQ(test, dg_stat(b->ep, "rx_datagrams"), 1);
	KUNIT_EXPECT_EQ(test, dg_stat(b->ep, "rx_dropped"), 0);

	t.in = d->in;
	memset(t.in, 0, DG_FLOOD);
	tasklet_setup(&t.tasklet, dg_turn);
	local_bh_disable();
	for (i = 0; i < DG_FLOOD; i++)
		err |= fi_recv(b->ep, t.in + i, 1, NULL, FI_ADDR_UNSPEC, t.in + i);
	tasklet_schedule(&t.tasklet);
	/* a tick ends a run, too: be far from the next one */
	tick = jiffies;
	while (!time_after(jiffies, tick))
		cpu_relax();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, err, 0);
	for (i = 0; i < DG_FLOOD; i++)
		dg_expect(test, b->rx, t.in + i, 0);
	tasklet_kill(&t.tasklet);
	kunit_info(test, "at most %d in a row\n", t.most);
	KUNIT_EXPECT_LE(test, t.most, DG_TURN);
}

static struct kunit_case dg_cases[] = {
	KUNIT_CASE(dg_info),
	KUNIT_CASE(dg_sizes_ipv4),
	KUNIT_CASE(dg_sizes_ipv6),
	KUNIT_CASE(dg_refused),
	KUNIT_CASE(dg_truncated),
	KUNIT_CASE(dg_late),
	KUNIT_CASE(dg_dropped),
	KUNIT_CASE(dg_source),
	KUNIT_CASE(dg_unknown),
	KUNIT_CASE(dg_multi),
	KUNIT_CASE(dg_ends),
	KUNIT_CASE(dg_vectors),
	KUNIT_CASE(dg_irqs_off),
	KUNIT_CASE(dg_full),
	KUNIT_CASE(dg_removed),
	KUNIT_CASE(dg_plain),
	KUNIT_CASE(dg_budget),
	{}
};

static struct kunit_suite dg_suite = {
	.name = "sock_dgram",
	.init = dg_init,
	.exit = dg_exit,
	.test_cases = dg_cases,
};

kunit_test_suite(dg_suite);
