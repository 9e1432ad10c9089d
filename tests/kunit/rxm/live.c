// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints over kofi_sock on the loopback device: what the suites of kofi_rxm share.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "live.h"

unsigned int test_slow __weak = 1;
module_param_named(slow, test_slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default 1)");

static u8 rxt_byte(size_t i, unsigned int seed)
{
	return i * 7 + (i >> 8) * 13 + seed;
}

void rxt_pattern(u8 *buf, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = rxt_byte(i, seed);
}

/* The first byte that is not as rxt_pattern() has made it, or len */
size_t rxt_differs(const u8 *buf, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len && buf[i] == rxt_byte(i, seed); i++)
		;
	return i;
}

static struct fi_info *rxt_getinfo(struct kunit *test)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE |
		      FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = kstrdup("sock;ofi_rxm", GFP_KERNEL);
	hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
	KUNIT_ASSERT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
					 FI_SOURCE | FI_NUMERICHOST, hints,
					 &info), 0);
	fi_freeinfo(hints);
	return info;
}

void rxt_open_end(struct kunit *test, struct rxt *t, struct rxt_end *e)
{
	static const struct kofi_cq_attr calls = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	const struct kofi_cq_attr *kattr = t->calls ? &calls : NULL;
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = t->calls ? FI_WAIT_NONE : FI_WAIT_UNSPEC,
	};
	size_t len = sizeof(e->name);

	KUNIT_ASSERT_EQ(test, kofi_cq_open(t->domain, &attr, kattr, &e->tx,
					   NULL), 0);
	attr.size = t->rx_slots;
	KUNIT_ASSERT_EQ(test, kofi_cq_open(t->domain, &attr, kattr, &e->rx,
					   NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_av_open(t->domain, &(struct fi_av_attr) {},
					 &e->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, t->info, &e->ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV), 0);
	if (t->timeout)
		KUNIT_ASSERT_EQ(test, fi_set_val(&e->ep->fid,
						 KOFI_VAL_CONNECT_TIMEOUT,
						 &t->timeout), 0);
	if (t->space)
		KUNIT_ASSERT_EQ(test, kofi_ep_write_space(e->ep, t->space), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(e->ep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&e->ep->fid, &e->name, &len), 0);
}

void rxt_close_end(struct kunit *test, struct rxt_end *e)
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

/* Each knows all, itself too. */
void rxt_introduce(struct kunit *test, struct rxt *t)
{
	int i, j;

	for (i = 0; i < RXT_ENDS; i++)
		for (j = 0; j < RXT_ENDS; j++)
			KUNIT_ASSERT_EQ(test,
					fi_av_insert(t->end[i].av,
						     &t->end[j].name, 1,
						     &t->end[i].peer[j], 0,
						     NULL), 1);
}

int rxt_init(struct kunit *test)
{
	struct rxt *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->out = vmalloc(RXT_BIG);
	t->in = vmalloc(RXT_BIG);
	if (!t->out || !t->in)
		return -ENOMEM;
	t->info = rxt_getinfo(test);
	t->info->tx_attr->size = RXT_TX;
	KUNIT_ASSERT_EQ(test, fi_fabric(t->info->fabric_attr, &t->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(t->fabric, t->info, &t->domain, NULL),
			0);
	for (i = 0; i < RXT_ENDS; i++)
		rxt_open_end(test, t, &t->end[i]);
	rxt_introduce(test, t);
	return 0;
}

void rxt_exit(struct kunit *test)
{
	struct rxt *t = test->priv;
	int i;

	for (i = 0; i < RXT_ENDS; i++)
		rxt_close_end(test, &t->end[i]);
	if (t->domain)
		KUNIT_EXPECT_EQ(test, fi_close(&t->domain->fid), 0);
	if (t->fabric)
		KUNIT_EXPECT_EQ(test, fi_close(&t->fabric->fid), 0);
	fi_freeinfo(t->info);
	vfree(t->out);
	vfree(t->in);
}

/* ------------------------------------------------------------- completions */

/* The next completion of a queue; its error, or 0. -EAGAIN if none comes */
int rxt_comp(struct fid_cq *cq, struct fi_cq_err_entry *e, fi_addr_t *src)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n;

	*e = (struct fi_cq_err_entry) {};
	n = fi_cq_sreadfrom(cq, &entry, 1, src, NULL, RXT_TIMEOUT);
	if (n == -FI_EAVAIL) {
		if (fi_cq_readerr(cq, e, 0) < 0)
			return -EIO;
		return e->err;
	}
	if (n != 1)
		return n < 0 ? n : -EIO;
	e->op_context = entry.op_context;
	e->flags = entry.flags;
	e->len = entry.len;
	e->buf = entry.buf;
	e->data = entry.data;
	e->tag = entry.tag;
	return 0;
}

void rxt_expect(struct kunit *test, struct fid_cq *cq, void *context, int err)
{
	struct fi_cq_err_entry e;

	KUNIT_ASSERT_EQ(test, rxt_comp(cq, &e, NULL), err);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, context);
}

struct rxt_stat {
	const char	*name;
	u64		value;
};

static void rxt_stat_one(void *arg, const char *name, u64 value)
{
	struct rxt_stat *s = arg;

	if (!strcmp(name, s->name))
		s->value = value;
}

u64 rxt_stat(struct fid_ep *ep, const char *name)
{
	struct kofi_obj *obj = ep->fid.obj;
	struct rxt_stat s = { .name = name, .value = ~0ULL };

	obj->ops->stats(obj, rxt_stat_one, &s);
	return s.value;
}

/* So many buffers of packets are held, or will be soon. */
void rxt_held(struct kunit *test, struct rxt_end *e, u64 n)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);

	while (rxt_stat(e->ep, "rx_held") != n && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rxt_stat(e->ep, "rx_held"), n);
}

/* ---------------------------------------------------------------- messages */

void rxt_exchange(struct kunit *test, size_t len, bool tagged, bool late)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	struct fi_cq_err_entry e;
	fi_addr_t src;

	rxt_pattern(t->out, len, len);
	memset(t->in, 0, len);
	if (!late)
		KUNIT_ASSERT_EQ(test, tagged ?
				fi_trecv(b->ep, t->in, len, NULL,
					 FI_ADDR_UNSPEC, 7, 0, t->in) :
				fi_recv(b->ep, t->in, len, NULL, FI_ADDR_UNSPEC,
					t->in), 0);
	KUNIT_ASSERT_EQ(test, tagged ?
			fi_tsenddata(a->ep, t->out, len, NULL, 0x1234567890,
				     a->peer[1], 7, t->out) :
			fi_senddata(a->ep, t->out, len, NULL, 0x1234567890,
				    a->peer[1], t->out), 0);
	/* what goes in packets is there without a receive, the rest begins */
	if (late && len <= RXM_SAR)
		rxt_expect(test, a->tx, t->out, 0);
	if (late)
		KUNIT_ASSERT_EQ(test, tagged ?
				fi_trecv(b->ep, t->in, len, NULL,
					 FI_ADDR_UNSPEC, 7, 0, t->in) :
				fi_recv(b->ep, t->in, len, NULL, FI_ADDR_UNSPEC,
					t->in), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, &src), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, t->in);
	KUNIT_EXPECT_EQ(test, e.len, len);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_REMOTE_CQ_DATA |
			(tagged ? FI_TAGGED : FI_MSG));
	KUNIT_EXPECT_EQ(test, e.data, 0x1234567890);
	KUNIT_EXPECT_EQ(test, e.tag, tagged ? 7 : 0);
	KUNIT_EXPECT_EQ(test, src, b->peer[0]);
	KUNIT_EXPECT_EQ(test, rxt_differs(t->in, len, len), len);
	if (!late || len > RXM_SAR)
		rxt_expect(test, a->tx, t->out, 0);
}
