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

#include <linux/kofi/lib.h>

#include "../kunit.h"
#include "live.h"

unsigned int test_slow __weak = 1;
module_param_named(slow, test_slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default 1)");

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

/* A listener; registration as @mr_mode says */
void live_listen_mode(struct kunit *test, struct live *l, int family,
		      int mr_mode)
{
	struct fi_info *hints = live_hints(test, family);

	hints->domain_attr->mr_mode = mr_mode;
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

void live_listen(struct kunit *test, struct live *l, int family)
{
	live_listen_mode(test, l, family, FI_MR_PROV_KEY);
}

void live_start(struct kunit *test, struct live *l)
{
	KUNIT_ASSERT_EQ(test, fi_listen(l->pep), 0);
	l->addrlen = sizeof(l->addr);
	KUNIT_ASSERT_EQ(test, fi_getname(&l->pep->fid, &l->addr, &l->addrlen),
			0);
}

/* Open one end from an info; sizes of queues as given, 0 for the default. */
void live_open(struct kunit *test, struct live *l, struct live_end *e,
	       struct fi_info *info, size_t cq_size)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .size = cq_size,
		.wait_obj = FI_WAIT_UNSPEC,
	};

	e->info = info;
	if (!e->domain)
		KUNIT_ASSERT_EQ(test, fi_domain(l->fabric, info, &e->domain,
						NULL), 0);
	KUNIT_ASSERT_EQ(test, live_eq_open(l, &e->eq), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(e->domain, &attr, &e->tx, NULL), 0);
	if (!e->rx)
		KUNIT_ASSERT_EQ(test, fi_cq_open(e->domain, &attr, &e->rx,
						 NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(e->domain, info, &e->ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV), 0);
	if (e->srx)
		KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->srx->fid, 0), 0);
}

void live_close_end(struct kunit *test, struct live_end *e)
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
ssize_t live_event(struct fid_eq *eq, u32 event, struct fi_info **info,
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
int live_comp(struct fid_cq *cq, struct fi_cq_err_entry *e)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n;

	memset(e, 0, sizeof(*e));
	n = fi_cq_sread(cq, &entry, 1, NULL, LIVE_TIMEOUT);
	if (n == 1) {
		e->op_context = entry.op_context;
		e->flags = entry.flags;
		e->len = entry.len;
		e->buf = entry.buf;
		e->data = entry.data;
		e->tag = entry.tag;
		return 0;
	}
	if (n != -FI_EAVAIL)
		return n ? n : -EIO;
	n = fi_cq_readerr(cq, e, 0);
	return n == 1 ? -e->err : -EIO;
}

/* Connect end 0 to end 1, private data both ways. */
void live_connect(struct kunit *test, struct live *l, size_t cq_size)
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

void live_pattern(u8 *buf, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i + (i >> 8) * 3;
}

int live_init(struct kunit *test)
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

void live_exit(struct kunit *test)
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

	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "there is no IPv6");
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

/* Both ends from the same kind of memory, several messages of it. */
static void live_memory(struct kunit *test)
{
	static const char *const names[] = {
		[KOFI_KVEC] = "kvec", [KOFI_BVEC] = "bvec", [KOFI_SGL] = "sgl",
		[KOFI_ITER] = "iter",
	};
	static const enum kofi_vec kinds[] = {
		KOFI_KVEC, KOFI_BVEC, KOFI_SGL, KOFI_ITER,
	};
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	int k, dir;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_connect(test, l, 0);
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		enum kofi_vec vec = kinds[k];
		unsigned int segs = vec == KOFI_SGL ? 40 : 16, i;
		size_t seg = 3001, len = segs * seg;
		struct fi_msg msg[2] = {};
		struct iov_iter iter[2];
		struct live_vec {
			struct kvec		kv[16];
			struct bio_vec		bv[40];
			struct scatterlist	sg[40];
		} *v[2];
		u8 *mem[2];

		for (dir = 0; dir < 2; dir++) {
			v[dir] = kunit_kzalloc(test, sizeof(*v[0]), GFP_KERNEL);
			mem[dir] = kunit_kzalloc(test, len, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, v[dir]);
			KUNIT_ASSERT_NOT_NULL(test, mem[dir]);
			sg_init_table(v[dir]->sg, segs);
			for (i = 0; i < segs; i++) {
				u8 *p = mem[dir] + i * seg;

				if (i < 16) {
					v[dir]->kv[i].iov_base = p;
					v[dir]->kv[i].iov_len = seg;
				}
				bvec_set_virt(&v[dir]->bv[i], p, seg);
				sg_set_buf(&v[dir]->sg[i], p, seg);
			}
			iov_iter_bvec(&iter[dir], dir ? ITER_DEST : ITER_SOURCE,
				      v[dir]->bv, segs, len);
			msg[dir].vec = vec;
			msg[dir].iov_count = segs;
			msg[dir].context = mem[dir];
			if (vec == KOFI_KVEC)
				msg[dir].msg_iov = v[dir]->kv;
			else if (vec == KOFI_BVEC)
				msg[dir].msg_bvec = v[dir]->bv;
			else if (vec == KOFI_SGL)
				msg[dir].msg_sgl = v[dir]->sg;
			else
				msg[dir].msg_iter = &iter[dir];
		}
		live_pattern(mem[0], len, k);
		KUNIT_ASSERT_EQ(test, fi_recvmsg(l->end[1].ep, &msg[1], 0), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &msg[0],
						 FI_DELIVERY_COMPLETE), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
		KUNIT_EXPECT_EQ_MSG(test, e.len, len, "%s", names[vec]);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(mem[0], mem[1], len), 0, "%s",
				    names[vec]);
	}
}

/*
 * Records with room for one segment: more are refused, unless they are in a
 * list, which is looked at one by one then; and injected bytes, from whatever
 * memory, are behind it.
 */
static void live_few_segments(struct kunit *test)
{
	struct live *l = test->priv;
	struct kvec kv[2] = { { l->out, 8 }, { l->out + 8, 8 } };
	struct fi_msg many = { .msg_iov = kv, .iov_count = 2 };
	struct scatterlist out[5], in[7];
	struct fi_msg send = { .vec = KOFI_SGL, .msg_sgl = out,
			       .iov_count = ARRAY_SIZE(out) };
	struct fi_msg recv = { .vec = KOFI_SGL, .msg_sgl = in,
			       .iov_count = ARRAY_SIZE(in) };
	struct fi_cq_err_entry e;
	u8 *mem;
	int i;

	mem = kunit_kzalloc(test, 1000, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	sg_init_table(out, ARRAY_SIZE(out));
	sg_init_table(in, ARRAY_SIZE(in));
	for (i = 0; i < ARRAY_SIZE(out); i++)
		sg_set_buf(&out[i], mem + i * 25, 25);
	for (i = 0; i < ARRAY_SIZE(in); i++)
		sg_set_buf(&in[i], mem + 500 + i * 20, 20);
	live_pattern(mem, 125, 1);

	live_listen(test, l, AF_INET);
	live_start(test, l);
	l->info->tx_attr->iov_limit = 1;
	l->info->rx_attr->iov_limit = 1;
	live_connect(test, l, 0);
	KUNIT_EXPECT_LE(test, ksk_ep(l->end[0].ep)->tx_op_size,
			sizeof(struct ksk_txop) - 3 * sizeof(struct kvec));
	KUNIT_EXPECT_EQ(test, fi_sendmsg(l->end[0].ep, &many, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(l->end[0].ep, &many, 0), -EINVAL);

	/* from here to there copied at once, piece by piece, and back */
	for (i = 0; i < 3; i++) {
		u64 flags = i == 0 ? FI_INJECT : 0;

		memset(mem + 500, 0, 140);
		memset(l->in, 0, 140);
		KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, 140, NULL, 0,
					      NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_recvmsg(l->end[0].ep, &recv, 0), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &send, flags),
				0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
		KUNIT_EXPECT_EQ(test, e.len, 125);
		KUNIT_EXPECT_MEMEQ(test, l->in, mem, 125);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
		if (i == 1)
			KUNIT_ASSERT_EQ(test, fi_inject(l->end[1].ep, l->in,
							125, 0), 0);
		else
			KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[1].ep, &send,
							 FI_INJECT), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].rx, &e), 0);
		KUNIT_EXPECT_EQ(test, e.len, 125);
		KUNIT_EXPECT_MEMEQ(test, mem + 500, mem, 125);
		if (i != 1)
			KUNIT_ASSERT_EQ(test, live_comp(l->end[1].tx, &e), 0);
	}
}

static bool live_iov_offered(struct kunit *test, size_t tx, size_t rx)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	bool offered;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->ep_attr->type = FI_EP_MSG;
	hints->tx_attr->iov_limit = tx;
	hints->rx_attr->iov_limit = rx;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	offered = !fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
			      FI_SOURCE | FI_NUMERICHOST, hints, &info);
	if (offered) {
		KUNIT_EXPECT_EQ(test, info->tx_attr->iov_limit, tx ?: 16);
		KUNIT_EXPECT_EQ(test, info->rx_attr->iov_limit, rx ?: 16);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return offered;
}

#define LONG_MAX_SEGS	256
#define LONG_SEG	20

/* More pieces than are copied by the post */
static void live_long_arrays(struct kunit *test)
{
	const size_t len = LONG_MAX_SEGS * LONG_SEG;
	struct live *l = test->priv;
	struct bio_vec *out = kunit_kcalloc(test, LONG_MAX_SEGS + 1,
					    sizeof(*out), GFP_KERNEL);
	struct bio_vec *in = kunit_kcalloc(test, LONG_MAX_SEGS + 1,
					   sizeof(*in), GFP_KERNEL);
	u8 *mem = kunit_kzalloc(test, 2 * (len + LONG_SEG), GFP_KERNEL);
	struct fi_msg send = { .msg_bvec = out, .vec = KOFI_BVEC };
	struct fi_msg recv = { .msg_bvec = in, .vec = KOFI_BVEC };
	struct kvec kv[17] = { { mem, 1 } };
	const struct fi_msg many = { .msg_iov = kv, .iov_count = 17 };
	struct fi_cq_err_entry e;
	int i;

	KUNIT_EXPECT_TRUE(test, live_iov_offered(test, 0, 0));
	KUNIT_EXPECT_TRUE(test, live_iov_offered(test, LONG_MAX_SEGS, 3));
	KUNIT_EXPECT_FALSE(test, live_iov_offered(test, LONG_MAX_SEGS + 1, 0));
	KUNIT_EXPECT_FALSE(test, live_iov_offered(test, 0, LONG_MAX_SEGS + 1));

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_NOT_NULL(test, in);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	/* there from the last piece to the first one */
	for (i = 0; i <= LONG_MAX_SEGS; i++) {
		bvec_set_virt(&out[i], mem + (LONG_MAX_SEGS - i) * LONG_SEG,
			      LONG_SEG);
		bvec_set_virt(&in[i], mem + len + (i + 1) * LONG_SEG, LONG_SEG);
	}
	live_pattern(mem, len + LONG_SEG, 1);
	live_listen(test, l, AF_INET);
	live_start(test, l);
	l->info->tx_attr->iov_limit = LONG_MAX_SEGS;
	l->info->rx_attr->iov_limit = LONG_MAX_SEGS;
	live_connect(test, l, 0);

	send.iov_count = LONG_MAX_SEGS;
	recv.iov_count = LONG_MAX_SEGS;
	while (send.iov_count) {
		size_t bytes = send.iov_count * LONG_SEG;

		memset(mem + len + LONG_SEG, 0, len);
		KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, len, NULL, 0,
					      NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &send, 0), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
		KUNIT_EXPECT_EQ(test, e.len, bytes);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
		/* and back */
		KUNIT_ASSERT_EQ(test, fi_recvmsg(l->end[0].ep, &recv, 0), 0);
		KUNIT_ASSERT_EQ(test, fi_send(l->end[1].ep, l->in, bytes, NULL,
					      0, NULL), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].rx, &e), 0);
		KUNIT_EXPECT_EQ(test, e.len, bytes);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].tx, &e), 0);
		for (i = 0; i < send.iov_count; i++)
			KUNIT_EXPECT_MEMEQ(test, bvec_virt(&in[i]),
					   bvec_virt(&out[i]), LONG_SEG);
		send.iov_count -= LONG_MAX_SEGS / 16;
	}

	/* as many pieces of few bytes, copied at once */
	for (i = 0; i < 40; i++)
		out[i].bv_len = 3;
	send.iov_count = 40;
	KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, 120, NULL, 0, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &send, FI_INJECT), 0);
	KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	for (i = 0; i < 40; i++)
		KUNIT_EXPECT_MEMEQ(test, l->in + 3 * i, bvec_virt(&out[i]), 3);

	send.iov_count = LONG_MAX_SEGS + 1;
	recv.iov_count = LONG_MAX_SEGS + 1;
	KUNIT_EXPECT_EQ(test, fi_sendmsg(l->end[0].ep, &send, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(l->end[0].ep, &recv, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(l->end[0].ep, &many, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(l->end[0].ep, &many, 0), -EINVAL);
}

/* A receive that is too small is told so; sender and stream do not mind. */
static void live_truncation(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct kvec iov = { .iov_base = l->out, .iov_len = 100000 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_connect(test, l, 0);
	memset(l->in, 0xee, LIVE_BIG);
	KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, 10, NULL, 0, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in + 100, 8, NULL, 0,
				      NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &msg,
					 FI_TRANSMIT_COMPLETE), 0);
	KUNIT_ASSERT_EQ(test, fi_send(l->end[0].ep, l->out, 8, NULL, 0, NULL),
			0);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), -FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, e.len, 10);
	KUNIT_EXPECT_EQ(test, e.olen, 100000 - 10);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.len, 8);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, 10), 0);
	KUNIT_EXPECT_EQ(test, l->in[10], 0xee);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + 100, l->out, 8), 0);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[0].tx, &e), 0);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[0].tx, &e), 0);
}

/* FI_MORE promises something that need not come. */
static void live_more(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct kvec iov = { .iov_base = l->out, .iov_len = 100 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	int i;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_connect(test, l, 0);
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, 100, NULL, 0,
					      NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &msg, FI_MORE),
				0);
	}
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
}

/* ------------------------------------------- a peer that is a plain socket */

static struct socket *live_raw(struct kunit *test, struct live *l)
{
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	sock->sk->sk_rcvtimeo = TEST_LIMIT(10 * HZ);
	sock->sk->sk_sndtimeo = TEST_LIMIT(10 * HZ);
	KUNIT_ASSERT_EQ(test, kernel_connect(sock,
					     (void *)&l->addr,
					     l->addrlen, 0), 0);
	return sock;
}

int live_raw_send(struct socket *sock, const void *buf, size_t len)
{
	struct kvec kv = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = {};

	return kernel_sendmsg(sock, &msg, &kv, 1, len);
}

int live_raw_recv(struct socket *sock, void *buf, size_t len)
{
	struct kvec kv = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {};

	return kernel_recvmsg(sock, &msg, &kv, 1, len, MSG_WAITALL);
}

/*
 * Connect a raw socket to end 1, with a probe as big-endian hosts send it if
 * @be, and extensions @ext.
 */
struct socket *live_raw_connect(struct kunit *test, struct live *l, bool be,
				u32 ext)
{
	struct ksk_cm_hdr cm = { .version = 3, .type = KSK_CM_REQUEST };
	struct fi_info *req = NULL;
	struct socket *sock;

	if (!l->pep) {
		live_listen(test, l, AF_INET);
		live_start(test, l);
	}
	sock = live_raw(test, l);
	if (be)
		put_unaligned_be64(1, &cm.probe);
	else
		put_unaligned_le64(1, &cm.probe);
	if (ext) {
		cm.magic = cpu_to_be32(KSK_EXT_MAGIC);
		cm.ext = cpu_to_be32(ext);
	}
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, &cm, sizeof(cm)), 32);
	KUNIT_EXPECT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, NULL), 0);
	if (!req)
		goto fail;
	live_open(test, l, &l->end[1], req, 0);
	KUNIT_EXPECT_EQ(test, fi_accept(l->end[1].ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, live_event(l->end[1].eq, FI_CONNECTED, NULL,
					 NULL), 0);
	if (live_raw_recv(sock, &cm, sizeof(cm)) != sizeof(cm))
		goto fail;
	KUNIT_EXPECT_EQ(test, cm.version, 3);
	KUNIT_EXPECT_EQ(test, cm.type, KSK_CM_ACCEPT);
	KUNIT_EXPECT_EQ(test, cm.probe, 1);
	/* a peer that knows nothing of extensions hears nothing of them */
	KUNIT_EXPECT_EQ(test, be32_to_cpu(cm.magic), ext ? KSK_EXT_MAGIC : 0);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(cm.ext), ext & KSK_EXT_ALL);
	return sock;
fail:
	sock_release(sock);
	KUNIT_FAIL_AND_ABORT(test, "no connection");
	return NULL;
}

/*
 * Words are big-endian both ways, and the frames of a direction are numbered
 * in the order they are on the wire, acknowledgments too.
 */
static void live_other_order(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, true, 0);
	struct fi_cq_err_entry e;
	u8 frame[16 + 8 + 5] = {};
	int i;

	for (i = 0; i < 300; i++) {
		KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0,
					      NULL), 0);
		memset(frame, 0, sizeof(frame));
		frame[0] = 3;
		put_unaligned_be16(KSK_F_CQ_DATA | KSK_F_DELIVERY, frame + 2);
		frame[6] = 24;
		put_unaligned_be64(sizeof(frame), frame + 8);
		put_unaligned_be64(0x1122334455667788 + i, frame + 16);
		memcpy(frame + 24, "hello", 5);
		live_raw_send(sock, frame, sizeof(frame));
		if (live_comp(l->end[1].rx, &e))
			break;
		KUNIT_EXPECT_EQ(test, e.data, 0x1122334455667788 + i);
		KUNIT_EXPECT_EQ(test, e.len, 5);
		KUNIT_EXPECT_MEMEQ(test, l->in, "hello", 5);
		/* its acknowledgment */
		if (live_raw_recv(sock, frame, 16) != 16)
			break;
		KUNIT_EXPECT_EQ(test, frame[4], KSK_OP_DATA_ACK);
		KUNIT_EXPECT_EQ(test, frame[7], (u8)(2 * i));
		KUNIT_EXPECT_EQ(test, get_unaligned_be64(frame + 8), 16);

		KUNIT_EXPECT_EQ(test, fi_senddata(l->end[1].ep, "fine", 4, NULL,
						  ~0x1122334455667788, 0, NULL),
				0);
		if (live_raw_recv(sock, frame, 28) != 28)
			break;
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(frame + 2),
				KSK_F_CQ_DATA);
		KUNIT_EXPECT_EQ(test, frame[7], (u8)(2 * i + 1));
		KUNIT_EXPECT_EQ(test, get_unaligned_be64(frame + 8), 28);
		KUNIT_EXPECT_EQ(test, get_unaligned_be64(frame + 16),
				~0x1122334455667788);
		KUNIT_EXPECT_MEMEQ(test, frame + 24, "fine", 4);
	}
	KUNIT_EXPECT_EQ(test, i, 300);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, live_event(l->end[1].eq, FI_SHUTDOWN, NULL, NULL),
			0);
}

/* A reader that takes a little at a time: the sender waits and resumes. */
static void live_slow_reader(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, true, 0);
	size_t got = 0, total = 4 * (16 + (size_t)LIVE_BIG), bad = 0;
	struct fi_cq_err_entry e;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, fi_send(l->end[1].ep, l->out, LIVE_BIG,
					      NULL, 0, NULL), 0);
	while (got < total) {
		size_t frame = got % (16 + LIVE_BIG);
		size_t n = frame < 16 ? 16 - frame :
			   min_t(size_t, 16 + LIVE_BIG - frame, 10007);

		if (live_raw_recv(sock, l->in, n) != n)
			break;
		if (frame >= 16)
			bad += !!memcmp(l->in, l->out + frame - 16, n);
		got += n;
	}
	KUNIT_EXPECT_EQ(test, got, total);
	KUNIT_EXPECT_EQ(test, bad, 0);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, live_comp(l->end[1].tx, &e), 0);
	sock_release(sock);
}

/* -------------------------------------------------------------------- ports */

/* A source port of the consumer's choice, and one that is taken */
static void live_ports(struct kunit *test)
{
	struct sockaddr_in name, peer;
	struct live *l = test->priv;
	struct fid_pep *second;
	size_t len;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(l->fabric, l->info, &second, NULL),
			0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(second, &l->pep_eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&second->fid, &l->addr, l->addrlen),
			0);
	KUNIT_EXPECT_EQ(test, fi_listen(second), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, fi_close(&second->fid), 0);

	live_connect(test, l, 0);
	len = sizeof(name);
	KUNIT_EXPECT_EQ(test, fi_getname(&l->end[0].ep->fid, &name, &len), 0);
	len = sizeof(peer);
	KUNIT_EXPECT_EQ(test, fi_getpeer(l->end[1].ep, &peer, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(peer));
	KUNIT_EXPECT_NE(test, ntohs(name.sin_port), 0);
	KUNIT_EXPECT_EQ(test, ntohs(name.sin_port), ntohs(peer.sin_port));
	len = 4;
	KUNIT_EXPECT_EQ(test, fi_getpeer(l->end[1].ep, &peer, &len),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(peer));
}

/* A peer that says no, with data */
static void live_reject(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_info *req = NULL;
	size_t len = 256;
	u8 data[256];

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, l->out, 256),
			0);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, data),
			256);
	KUNIT_EXPECT_MEMEQ(test, data, l->out, 256);
	KUNIT_EXPECT_EQ(test, fi_reject(l->pep, req->handle, l->out + 1, 255),
			0);
	fi_freeinfo(req);
	KUNIT_EXPECT_EQ(test, live_event_err(l->end[0].eq, data, &len),
			-ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, len, 255);
	KUNIT_EXPECT_MEMEQ(test, data, l->out + 1, 255);
}

/* ------------------------------------------------- the queue of receives */

/* kofi/lib/rxq.c, on the queue of an endpoint that is not connected */
static void live_rxq(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	size_t depth = 4, i;
	struct kofi_rxop *op;
	struct kofi_wc wc = { .flags = FI_RECV | FI_MSG, .len = 3 };
	struct ksk_ep *ep;

	live_listen(test, l, AF_INET);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, fi_setopt(&l->end[0].ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_RX_SIZE, &depth, sizeof(depth)),
			0);
	KUNIT_ASSERT_EQ(test, fi_enable(l->end[0].ep), 0);
	ep = ksk_ep(l->end[0].ep);

	for (i = 0; i < depth; i++)
		KUNIT_EXPECT_EQ(test, fi_recv(l->end[0].ep, l->in, 64, NULL, 0,
					      (void *)(i + 1)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[0].ep, l->in, 64, NULL, 0, NULL),
			-EAGAIN);

	/* one is being filled: it is not to be cancelled */
	KUNIT_ASSERT_EQ(test, kofi_rxq_match(&ep->rxq, &ep->conn->rxmsg, &op),
			0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&l->end[0].ep->fid, (void *)1),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, fi_cancel(&l->end[0].ep->fid, (void *)3), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&l->end[0].ep->fid, (void *)3),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[0].rx, &e), -ECANCELED);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)3);

	kofi_rxq_done(&ep->rxq, op, &wc);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[0].rx, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)1);
	KUNIT_EXPECT_EQ(test, e.len, 3);

	/* two records are free again, and go to the end of the queue */
	for (i = 5; i < 7; i++)
		KUNIT_EXPECT_EQ(test, fi_recv(l->end[0].ep, l->in, 64, NULL, 0,
					      (void *)i), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[0].ep, l->in, 64, NULL, 0, NULL),
			-EAGAIN);
	kofi_rxq_flush(&ep->rxq);
	for (i = 0; i < depth; i++) {
		static const unsigned long order[] = { 2, 4, 5, 6 };

		KUNIT_EXPECT_EQ(test, live_comp(l->end[0].rx, &e), -ECANCELED);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)order[i]);
	}
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[0].ep, l->in, 64, NULL, 0, NULL),
			-ESHUTDOWN);
}

/*
 * The device of a request's endpoint goes away while the endpoint is being
 * enabled: what ends the connection finds no queue of receives yet. Those that
 * are posted end all the same.
 */
static void live_enabled_late(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_info *req = NULL;
	struct fi_cq_err_entry e;
	struct ksk_ep *ep;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, NULL), 0);
	live_open(test, l, &l->end[1], req, 0);
	ep = ksk_ep(l->end[1].ep);
	ksk_conn_abort(ep->conn, ENETDOWN);
	flush_work(&ep->conn->work);
	KUNIT_EXPECT_EQ(test, fi_enable(l->end[1].ep), -ENETDOWN);

	/* as if it had come behind the first look */
	WRITE_ONCE(ep->conn->dead, 0);
	KUNIT_ASSERT_EQ(test, fi_enable(l->end[1].ep), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0, NULL),
			0);
	WRITE_ONCE(ep->conn->dead, ENETDOWN);
	ksk_conn_queue(ep->conn);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), -ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0, NULL),
			-ESHUTDOWN);
}

static struct kunit_case live_cases[] = {
	KUNIT_CASE(live_connect_ipv4),
	KUNIT_CASE(live_connect_ipv6),
	KUNIT_CASE(live_reject),
	KUNIT_CASE(live_sizes),
	KUNIT_CASE(live_memory),
	KUNIT_CASE(live_few_segments),
	KUNIT_CASE(live_long_arrays),
	KUNIT_CASE(live_truncation),
	KUNIT_CASE(live_more),
	KUNIT_CASE(live_other_order),
	KUNIT_CASE(live_slow_reader),
	KUNIT_CASE(live_ports),
	KUNIT_CASE(live_rxq),
	KUNIT_CASE(live_enabled_late),
	{}
};

static struct kunit_suite live_suite = {
	.name = "sock_live",
	.suite_init = lo_suite_init,
	.init = live_init,
	.exit = live_exit,
	.test_cases = live_cases,
};

kunit_test_suite(live_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_sock");
MODULE_LICENSE("Dual BSD/GPL");
