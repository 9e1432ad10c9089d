// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is offered can be opened, and works; what is beyond is refused, by
 * fi_getinfo() with -ENODATA and by who opens with -EINVAL. The devices in
 * software have limits an endpoint can reach: rxe's completion queues, siw's
 * work queues.
 */

#include <linux/inet.h>
#include <linux/kofi/provider.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#include "../../../providers/verbs/verbs.h"
#include "../contract/contract.h"
#include "link.h"
#include "raw.h"

#define LIM_FAR		SZ_1M	/* more than any queue can have */
#define LIM_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define LIM_CAPS	(FI_MSG | FI_RMA)

/* ------------------------------------------------------------- attributes */

enum lim_where { LIM_TX, LIM_RX, LIM_EP, LIM_DOMAIN };

/**
 * struct lim_attr - an attribute of an info that is a limit
 * @name: of the attribute
 * @where: structure it is in
 * @offset: where there
 * @queue: the default is less than the most there is
 */
struct lim_attr {
	const char	*name;
	enum lim_where	where;
	size_t		offset;
	bool		queue;
};

#define LIM_IN(where, type, field) \
	{ #type "-" #field, where, offsetof(struct fi_##type##_attr, field) }
#define LIM_QUEUE(where, type) \
	{ #type "-size", where, offsetof(struct fi_##type##_attr, size), true }

static const struct lim_attr lim_attrs[] = {
	LIM_QUEUE(LIM_TX, tx),
	LIM_IN(LIM_TX, tx, inject_size),
	LIM_IN(LIM_TX, tx, iov_limit),
	LIM_IN(LIM_TX, tx, rma_iov_limit),
	LIM_QUEUE(LIM_RX, rx),
	LIM_IN(LIM_RX, rx, total_buffered_recv),
	LIM_IN(LIM_RX, rx, iov_limit),
	LIM_IN(LIM_EP, ep, max_msg_size),
	LIM_IN(LIM_EP, ep, max_order_raw_size),
	LIM_IN(LIM_EP, ep, max_order_war_size),
	LIM_IN(LIM_EP, ep, max_order_waw_size),
	LIM_IN(LIM_EP, ep, tx_ctx_cnt),
	LIM_IN(LIM_EP, ep, rx_ctx_cnt),
	LIM_IN(LIM_DOMAIN, domain, mr_key_size),
	LIM_IN(LIM_DOMAIN, domain, cq_data_size),
	LIM_IN(LIM_DOMAIN, domain, cq_cnt),
	LIM_IN(LIM_DOMAIN, domain, ep_cnt),
	LIM_IN(LIM_DOMAIN, domain, tx_ctx_cnt),
	LIM_IN(LIM_DOMAIN, domain, rx_ctx_cnt),
	LIM_IN(LIM_DOMAIN, domain, max_ep_tx_ctx),
	LIM_IN(LIM_DOMAIN, domain, max_ep_rx_ctx),
	LIM_IN(LIM_DOMAIN, domain, max_ep_stx_ctx),
	LIM_IN(LIM_DOMAIN, domain, max_ep_srx_ctx),
	LIM_IN(LIM_DOMAIN, domain, cntr_cnt),
	LIM_IN(LIM_DOMAIN, domain, mr_iov_limit),
	LIM_IN(LIM_DOMAIN, domain, max_err_data),
	LIM_IN(LIM_DOMAIN, domain, mr_cnt),
	LIM_IN(LIM_DOMAIN, domain, max_ep_auth_key),
};

static void lim_attr_desc(const struct lim_attr *attr, char *desc)
{
	strscpy(desc, attr->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lim_attr, lim_attrs, lim_attr_desc);

static size_t *lim_field(struct fi_info *info, const struct lim_attr *attr)
{
	void *const in[] = {
		[LIM_TX] = info->tx_attr, [LIM_RX] = info->rx_attr,
		[LIM_EP] = info->ep_attr, [LIM_DOMAIN] = info->domain_attr,
	};

	return in[attr->where] + attr->offset;
}

/* Is so much offered, and then at least that? */
static int lim_ask(struct kunit *test, const struct lim_attr *attr,
		   size_t value)
{
	struct fi_info *hints = ct_hints(), *info = NULL;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = LIM_CAPS;
	hints->domain_attr->mr_mode = LIM_MR_MODE;
	*lim_field(hints, attr) = value;
	ret = ct_getinfo(0, hints, &info);
	if (!ret)
		KUNIT_EXPECT_GE(test, *lim_field(info, attr), value);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return ret;
}

/* The most that is offered: the info says so, but of the depth of a queue. */
static size_t lim_most(struct kunit *test, const struct fi_info *info,
		       const struct lim_attr *attr)
{
	size_t good = *lim_field((struct fi_info *)info, attr), bad = LIM_FAR;

	while (attr->queue && good + 1 < bad) {
		size_t mid = good + (bad - good) / 2;

		if (lim_ask(test, attr, mid))
			bad = mid;
		else
			good = mid;
	}
	return good;
}

/* Open what the info describes, and close it again. */
static int lim_open(struct ct_pair *p, struct fi_info *info,
		    const struct lim_attr *attr)
{
	struct fid_domain *domain;
	struct fid_ep *ep;
	int ret;

	if (attr->where == LIM_DOMAIN) {
		ret = fi_domain(p->fabric, info, &domain, NULL);
		return ret ?: fi_close(&domain->fid);
	}
	ret = fi_endpoint(p->domain, info, &ep, NULL);
	return ret ?: fi_close(&ep->fid);
}

static struct ct_pair *lim_unconnected(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .caps = LIM_CAPS, .mr_mode = LIM_MR_MODE,
		.unconnected = true,
	};

	return ct_pair_open(test, &opts);
}

static void limits_attribute(struct kunit *test)
{
	const struct lim_attr *attr = test->param_value;
	struct ct_pair *p = lim_unconnected(test);
	size_t most = lim_most(test, p->info, attr);
	struct fi_info *info = fi_dupinfo(p->info);
	size_t *field = lim_field(info, attr);

	KUNIT_EXPECT_EQ(test, lim_ask(test, attr, most), 0);
	KUNIT_EXPECT_EQ(test, lim_ask(test, attr, most + 1), -ENODATA);
	/* the highest value has another meaning */
	KUNIT_EXPECT_EQ(test, lim_ask(test, attr, SIZE_MAX - 1), -ENODATA);
	*field = most;
	KUNIT_EXPECT_EQ(test, lim_open(p, info, attr), 0);
	*field = most + 1;
	KUNIT_EXPECT_EQ(test, lim_open(p, info, attr), -EINVAL);
	*field = SIZE_MAX - 1;
	KUNIT_EXPECT_EQ(test, lim_open(p, info, attr), -EINVAL);
	fi_freeinfo(info);
	ct_pair_close(p);
}

/* What no endpoint can be; NULL if that is all */
static const char *lim_spoil(struct fi_info *info, int how)
{
	switch (how) {
	case 0:
		info->caps |= FI_TAGGED;
		return "tagged messages";
	case 1:
		info->caps |= FI_MULTI_RECV;
		return "multi-receive";
	case 2:
		info->tx_attr->caps |= FI_TAGGED;
		return "tagged transmits";
	case 3:
		info->rx_attr->caps |= FI_DIRECTED_RECV;
		return "directed receives";
	case 4:
		info->tx_attr->msg_order |= FI_ORDER_WAR;
		return "order of transmits";
	case 5:
		info->rx_attr->msg_order |= FI_ORDER_WAR;
		return "order of receives";
	case 6:
		info->tx_attr->op_flags = FI_COMMIT_COMPLETE;
		return "flags of transmits";
	case 7:
		info->rx_attr->op_flags = FI_MULTI_RECV;
		return "flags of receives";
	case 8:
		info->tx_attr->size = 0;
		return "no transmits";
	case 9:
		info->rx_attr->size = 0;
		return "no receives";
	case 10:
		info->ep_attr->type = FI_EP_RDM;
		return "type";
	case 11:
		info->ep_attr->protocol = FI_PROTO_SOCK_TCP;
		return "protocol";
	case 12:
		info->ep_attr->protocol_version = 99;
		return "version of the protocol";
	default:
		return NULL;
	}
}

static void limits_kind(struct kunit *test)
{
	struct ct_pair *p = lim_unconnected(test);
	struct fi_info *info;
	const char *what;
	struct fid_ep *ep;
	int i = 0;

	do {
		info = fi_dupinfo(p->info);
		what = lim_spoil(info, i++);
		if (what)
			KUNIT_EXPECT_EQ_MSG(test, fi_endpoint(p->domain, info,
							      &ep, NULL),
					    -EINVAL, "%s", what);
		fi_freeinfo(info);
	} while (what);
	ct_pair_close(p);
}

/* ------------------------------------------------------ queues, at the most */

enum lim_deep { DEEP_TX = 1, DEEP_RX = 2, DEEP_SAME_CQ = 4 };

struct lim_queue {
	const char	*name;
	unsigned int	deep;
};

static const struct lim_queue lim_queues[] = {
	{ "tx", DEEP_TX },
	{ "rx", DEEP_RX },
	{ "both", DEEP_TX | DEEP_RX },
	{ "both-in-one", DEEP_TX | DEEP_RX | DEEP_SAME_CQ },
};

static void lim_queue_desc(const struct lim_queue *queue, char *desc)
{
	strscpy(desc, queue->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lim_queue, lim_queues, lim_queue_desc);

/* A message each way, in as many pieces as there may be */
static void lim_exchange(struct ct_pair *p)
{
	size_t in_pieces = p->info->rx_attr->iov_limit;
	size_t out_pieces = p->info->tx_attr->iov_limit;
	struct kvec in[KOFI_IOV_MAX], out[KOFI_IOV_MAX];
	size_t len = 64 * in_pieces * out_pieces;
	u8 *to = ct_buf(p, len), *from = ct_buf(p, len);
	struct fi_msg recv = { .msg_iov = in, .iov_count = in_pieces };
	struct fi_msg send = { .msg_iov = out, .iov_count = out_pieces };
	int i, side;

	for (i = 0; i < in_pieces; i++)
		in[i] = (struct kvec) { to + i * 64 * out_pieces,
					64 * out_pieces };
	for (i = 0; i < out_pieces; i++)
		out[i] = (struct kvec) { from + i * 64 * in_pieces,
					 64 * in_pieces };
	for (side = 0; side < 2; side++) {
		struct ct_op *r = ct_op(p);

		ct_pattern(from, len, side);
		KUNIT_EXPECT_EQ(p->test, ct_post_recv(p, !side, r, &recv, 0),
				0);
		KUNIT_EXPECT_EQ(p->test, ct_post_send(p, side, ct_op(p), &send,
						      0), 0);
		KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(p->test, r->wc.len, len);
		KUNIT_EXPECT_TRUE(p->test, ct_pattern_ok(to, len, side));
	}
}

/* An endpoint of side 0 that reports all to one queue, instead of its own */
static void lim_same_cq(struct ct_pair *p)
{
	struct ct_side *s = &p->side[0];

	KUNIT_ASSERT_EQ(p->test, ct_ep_close(p, 0), 0);
	s->tx.closed = false;
	KUNIT_ASSERT_EQ(p->test, fi_endpoint(p->domain, p->info, &s->ep, s), 0);
	KUNIT_EXPECT_EQ(p->test, fi_ep_bind(s->ep, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(p->test, fi_ep_bind(s->ep, &s->tx.cq->fid,
					    FI_TRANSMIT | FI_RECV), 0);
}

static void limits_queues(struct kunit *test)
{
	const struct lim_queue *queue = test->param_value;
	struct ct_pair *p = lim_unconnected(test);
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .caps = LIM_CAPS, .mr_mode = LIM_MR_MODE,
		.tx_size = queue->deep & DEEP_TX ?
			   lim_most(test, p->info, &lim_attrs[0]) : 0,
		.rx_size = queue->deep & DEEP_RX ?
			   lim_most(test, p->info, &lim_attrs[4]) : 0,
		.unconnected = true,
	};

	ct_pair_close(p);
	p = ct_pair_open(test, &opts);
	if (queue->deep & DEEP_SAME_CQ)
		lim_same_cq(p);
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	lim_exchange(p);
	ct_pair_close(p);
}

/* The same by an option */
static void limits_options(struct kunit *test)
{
	static const struct {
		int	name;
		int	attr;
	} options[] = {
		{ FI_OPT_TX_SIZE, 0 },
		{ FI_OPT_INJECT_MSG_SIZE, 1 },
		{ FI_OPT_RX_SIZE, 4 },
		{ FI_OPT_MAX_MSG_SIZE, 7 },
	};
	struct ct_pair *p = lim_unconnected(test);
	fid_t fid = &p->side[0].ep->fid;
	size_t value;
	int i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct lim_attr *attr = &lim_attrs[options[i].attr];

		value = lim_most(test, p->info, attr) + 1;
		KUNIT_EXPECT_EQ_MSG(test, fi_setopt(fid, FI_OPT_ENDPOINT,
						    options[i].name, &value,
						    sizeof(value)),
				    -EINVAL, "%s %zu", attr->name, value);
		value--;
		KUNIT_EXPECT_EQ_MSG(test, fi_setopt(fid, FI_OPT_ENDPOINT,
						    options[i].name, &value,
						    sizeof(value)),
				    0, "%s %zu", attr->name, value);
	}
	/* a pool takes work requests, too: not with the longest of queues */
	value = 1;
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
					&value, sizeof(value)), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(p->side[0].ep), -EINVAL);
	value = 0;
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
					&value, sizeof(value)), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(p->side[0].ep), 0);
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	lim_exchange(p);
	ct_pair_close(p);
}

/* What has no effect here is refused. */
static void limits_refused(struct kunit *test)
{
	struct ct_pair *p = lim_unconnected(test);
	struct ib_device *ib = link_device(ct_device);
	bool iwarp = rdma_protocol_iwarp(ib, rdma_start_port(ib));
	struct fi_info *info = fi_dupinfo(p->info);
	fid_t fid = &p->side[0].ep->fid;
	struct kofi_cqe cqe;
	unsigned int ms = 5000;
	struct fid_ep *ep;
	size_t value = 1;
	u64 flags;

	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_EQ(test, kofi_ep_remote_cqe(p->side[0].ep, &cqe),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &value,
					sizeof(value)), -ENOPROTOOPT);
	flags = FI_RECV | FI_MULTI_RECV;
	KUNIT_EXPECT_EQ(test, fi_control(fid, FI_SETOPSFLAG, &flags),
			-FI_EBADFLAGS);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	KUNIT_EXPECT_EQ(test, fi_control(fid, FI_SETOPSFLAG, &flags),
			iwarp ? -FI_EBADFLAGS : 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(fid, KOFI_VAL_SILENCE_TIMEOUT, &ms),
			iwarp ? -EOPNOTSUPP : 0);
	info->tx_attr->tclass = FI_TC_DSCP + 64;
	KUNIT_EXPECT_EQ(test, fi_endpoint(p->domain, info, &ep, NULL), -EINVAL);
	KUNIT_EXPECT_NOT_NULL(test, kofi_domain_vector_cpus(p->domain,
							    ib->num_comp_vectors - 1));
	KUNIT_EXPECT_NULL(test, kofi_domain_vector_cpus(p->domain,
							ib->num_comp_vectors));
	fi_freeinfo(info);
	ib_device_put(ib);
	ct_pair_close(p);
}

/* As many segments as are promised make a region, and one more makes none. */
static void limits_region(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .caps = LIM_CAPS, .mr_mode = LIM_MR_MODE,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct ib_device *ib = link_device(ct_device);
	size_t n = p->info->domain_attr->mr_iov_limit;
	struct kvec *kv = ct_buf(p, (n + 1) * sizeof(*kv));
	u8 *pages = ct_buf(p, 2 * PAGE_SIZE);
	struct fid_mr *mr;
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, ib);
	if (ib->attrs.max_fast_reg_page_list_len > KOFI_IOV_MAX)
		KUNIT_EXPECT_GT(test, n, KOFI_IOV_MAX);
	ib_device_put(ib);
	/* whole pages, as most devices take no gaps, and none behind the last one */
	for (i = 0; i <= n; i++)
		kv[i] = (struct kvec) { pages + !(i % 2) * PAGE_SIZE, PAGE_SIZE };
	kv[n].iov_len = 64;
	KUNIT_EXPECT_EQ(test, fi_mr_regv(p->domain, kv, n + 1, FI_REMOTE_WRITE,
					 0, 0, 0, &mr, NULL), -EINVAL);
	KUNIT_ASSERT_EQ(test, fi_mr_regv(p->domain, kv, n, FI_REMOTE_WRITE, 0,
					 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(p);
}

/* A traffic class is the type of service of the queue pair's packets. */
static int lim_getinfo_tclass(struct kunit *test, u32 tclass, u32 domain_tclass)
{
	struct fi_info *hints = ct_hints(), *info = NULL;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->tx_attr->tclass = tclass;
	hints->domain_attr->tclass = domain_tclass;
	err = ct_getinfo(0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return err;
}

/* A class that a device has is on the wire; one that it has not is not granted. */
static void limits_tclass(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .tclass = FI_TC_LOW_LATENCY,
	};
	struct ct_pair *p = lim_unconnected(test);
	bool none = container_of(p->domain, struct vrb_domain,
				 base.domain)->quirks & VRB_QUIRK_NO_TCLASS;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	struct vrb_ep *ep;
	int side;

	ct_pair_close(p);
	KUNIT_EXPECT_EQ(test, lim_getinfo_tclass(test, 12345, 0), -ENODATA);
	KUNIT_EXPECT_EQ(test, lim_getinfo_tclass(test, 0, 12345), -ENODATA);
	KUNIT_EXPECT_EQ(test, lim_getinfo_tclass(test, FI_TC_BULK_DATA, 0),
			none ? -ENODATA : 0);
	KUNIT_EXPECT_EQ(test, lim_getinfo_tclass(test, 0, fi_tc_dscp_set(8)),
			none ? -ENODATA : 0);
	if (none)
		return;
	p = ct_pair_open(test, &opts);
	for (side = 0; side < 2; side++) {
		ep = container_of(p->side[side].ep, struct vrb_ep, base.ep);
		KUNIT_EXPECT_EQ(test, ib_query_qp(ep->qp, &attr, IB_QP_AV,
						  &init), 0);
		KUNIT_EXPECT_EQ(test, attr.ah_attr.grh.traffic_class, 18 << 2);
	}
	ct_pair_close(p);
}

/* --------------------------------------------------------- small endpoints */

static void lim_memory(void *arg, const char *name, u64 value)
{
	if (!strcmp(name, "memory"))
		*(size_t *)arg = value;
}

/* Bytes the provider has for an endpoint */
static size_t lim_ep_memory(struct fid_ep *fid)
{
	struct kofi_ep *ep = container_of(fid, struct kofi_ep, ep);
	size_t bytes = 0;

	ep->obj.ops->stats(&ep->obj, lim_memory, &bytes);
	return bytes;
}

static ssize_t lim_send_segs(struct fid_ep *ep, void *context, void *arg)
{
	struct fi_msg *msg = arg;

	msg->context = context;
	return fi_sendmsg(ep, msg, 0);
}

/* An endpoint for short vectors is a small one, and does what it should. */
static void limits_small(struct kunit *test)
{
	struct ct_pair *p = lim_unconnected(test);
	const size_t most = p->info->tx_attr->iov_limit;
	struct kvec kv[2] = { { ct_buf(p, 64), 1 }, { ct_buf(p, 64), 1 } };
	struct fi_msg msg = { .msg_iov = kv, .iov_count = 2 };
	struct fi_info *hints, *info = NULL;
	size_t idle, small, large, records, segs;

	if (most < 2)
		kunit_skip(test, "the device has one segment");
	hints = ct_hints();
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->tx_attr->iov_limit = 1;
	hints->rx_attr->iov_limit = 2;
	KUNIT_ASSERT_EQ(test, ct_getinfo(0, hints, &info), 0);
	KUNIT_EXPECT_EQ(test, info->tx_attr->iov_limit, 1);
	KUNIT_EXPECT_EQ(test, info->rx_attr->iov_limit, 2);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	idle = lim_ep_memory(p->side[0].ep);
	KUNIT_EXPECT_EQ(test, fi_enable(p->side[0].ep), 0);
	large = lim_ep_memory(p->side[0].ep);
	p->info->tx_attr->iov_limit = 1;
	p->info->rx_attr->iov_limit = 1;
	lim_same_cq(p);
	KUNIT_EXPECT_EQ(test, fi_enable(p->side[0].ep), 0);
	small = lim_ep_memory(p->side[0].ep);
	kunit_info(test, "bytes: %zu idle, %zu with 1 segment, %zu with %zu\n",
		   idle, small, large, most);
	/* 16 bytes of each record for each segment, in whole lines of the cache */
	records = p->info->tx_attr->size + p->info->rx_attr->size;
	segs = 16 * (most - 1) * records;
	KUNIT_EXPECT_LT(test, large - small, segs + SMP_CACHE_BYTES * records);
	KUNIT_EXPECT_GT(test, large - small + SMP_CACHE_BYTES * records, segs);
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	KUNIT_EXPECT_EQ(test, lim_ep_memory(p->side[0].ep), small);
	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 0, ct_op(p), lim_send_segs, &msg),
			-EINVAL);
	lim_exchange(p);
	ct_pair_close(p);
}

/* Atomic operations, which every region is then open to, only if asked for */
static void limits_atomic(struct kunit *test)
{
	struct fi_info *hints = ct_hints(), *info = NULL;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->domain_attr->mr_mode = LIM_MR_MODE;
	hints->caps = FI_MSG | FI_ATOMIC;
	if (ct_getinfo(0, hints, &info)) {
		fi_freeinfo(hints);
		kunit_skip(test, "the device has no atomic operations");
	}
	KUNIT_EXPECT_TRUE(test, info->caps & FI_ATOMIC);
	fi_freeinfo(info);
	info = NULL;
	hints->caps = 0;
	KUNIT_EXPECT_EQ(test, ct_getinfo(0, hints, &info), 0);
	KUNIT_EXPECT_TRUE(test, info->caps & FI_RMA);
	KUNIT_EXPECT_FALSE(test, (info->caps | info->tx_attr->caps |
				  info->rx_attr->caps) & FI_ATOMIC);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ------------------------------------------------------------ other openings */

/* A request whose info asks for too much remains to be taken. */
static void limits_request(struct kunit *test)
{
	struct ct_pair *p = lim_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	int i;

	KUNIT_EXPECT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS),
			0);
	KUNIT_EXPECT_EQ(test, ev->event, FI_CONNREQ);
	for (i = 0; lim_attrs[i].where != LIM_DOMAIN; i++) {
		size_t *field = lim_field(ev->cm.info, &lim_attrs[i]);
		size_t before = *field;

		*field = lim_most(test, p->info, &lim_attrs[i]) + 1;
		KUNIT_EXPECT_EQ_MSG(test, ct_ep_open(p, 1, ev->cm.info),
				    -EINVAL, "%s", lim_attrs[i].name);
		*field = before;
	}
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_EXPECT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[0].eq, FI_CONNECTED);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	lim_exchange(p);
	ct_pair_close(p);
}

static int lim_srx(struct ct_pair *p, size_t size, size_t iov_limit)
{
	struct fi_rx_attr attr = { .size = size, .iov_limit = iov_limit };
	struct fid_ep *srx;
	int ret = fi_srx_context(p->domain, &attr, &srx, NULL);

	return ret ?: fi_close(&srx->fid);
}

/* Shared receives */
static void limits_srx(struct kunit *test)
{
	struct ct_pair *p = lim_unconnected(test);
	struct ct_opts opts = { .mode = CT_SOFTIRQ };
	size_t good = 1, bad = LIM_FAR, iovs = 1;

	while (good + 1 < bad) {
		size_t mid = good + (bad - good) / 2;
		int ret = lim_srx(p, mid, 0);

		if (ret)
			bad = mid;
		else
			good = mid;
		if (ret)
			KUNIT_EXPECT_EQ(test, ret, -EINVAL);
	}
	while (!lim_srx(p, 1, iovs + 1))
		iovs++;
	KUNIT_EXPECT_EQ(test, lim_srx(p, 1, iovs + 1), -EINVAL);
	KUNIT_EXPECT_GE(test, iovs, p->info->rx_attr->iov_limit);
	ct_pair_close(p);
	opts.srx_size = good;
	p = ct_pair_open(test, &opts);
	lim_exchange(p);
	ct_pair_close(p);
}

/* ----------------------------------------------------- a device with little */

#define LIM_POOR_WR	64
#define LIM_POOR_CQE	100	/* less than both directions need */
#define LIM_POOR_MOST	(LIM_POOR_WR - 4)	/* the provider has four itself */

/**
 * struct lim_poor - a device that is made out to be less than it is
 * @ib: the device
 * @rich: what it says of itself
 * @create_qp: how it makes queue pairs
 * @refused: number of them it has not made
 */
struct lim_poor {
	struct ib_device	*ib;
	struct ib_device_attr	rich;
	int			(*create_qp)(struct ib_qp *qp,
					     struct ib_qp_init_attr *attr,
					     struct ib_udata *udata);
	int			refused;
};

static void lim_restore(void *arg)
{
	struct lim_poor *poor = arg;

	poor->ib->attrs = poor->rich;
	poor->ib->ops.create_qp = poor->create_qp;
	ib_device_put(poor->ib);
}

/* It is as it was when the test ends. */
static struct lim_poor *lim_device(struct kunit *test)
{
	struct lim_poor *poor = kunit_kzalloc(test, sizeof(*poor), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, poor);
	poor->ib = link_device(ct_device);
	KUNIT_ASSERT_NOT_NULL(test, poor->ib);
	poor->rich = poor->ib->attrs;
	poor->create_qp = poor->ib->ops.create_qp;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, lim_restore,
							poor), 0);
	return poor;
}

/* The device says that it can do next to nothing. */
static void lim_impoverish(struct kunit *test)
{
	struct ib_device_attr *attrs = &lim_device(test)->ib->attrs;

	attrs->device_cap_flags &= ~IB_DEVICE_MEM_MGT_EXTENSIONS;
	attrs->atomic_cap = IB_ATOMIC_NONE;
	attrs->max_srq = 0;
	attrs->max_qp_wr = LIM_POOR_WR;
	attrs->max_cqe = LIM_POOR_CQE;
	attrs->max_send_sge = 1;
	attrs->max_recv_sge = 1;
	attrs->max_sge_rd = 1;
}

static int lim_poor_ask(struct kunit *test, u64 caps, size_t tx, size_t rx)
{
	struct fi_info *hints = ct_hints(), *info = NULL;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = caps;
	hints->domain_attr->mr_mode = LIM_MR_MODE;
	hints->tx_attr->size = tx;
	hints->rx_attr->size = rx;
	ret = ct_getinfo(0, hints, &info);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return ret;
}

static ssize_t lim_invalidate(struct fid_ep *ep, void *context, void *buf)
{
	struct kvec kv = { buf, 1 };
	struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = context,
		.inv_key = 1,
	};

	return fi_sendmsg(ep, &msg, KOFI_REMOTE_INV);
}

static ssize_t lim_fetch(struct fid_ep *ep, void *context, void *buf)
{
	return fi_fetch_atomic(ep, buf, 1, NULL, buf + 8, NULL, 0, 0, 1,
			       FI_UINT64, FI_SUM, context);
}

static ssize_t lim_store(struct fid_ep *ep, void *context, void *buf)
{
	return fi_atomic(ep, buf, 1, NULL, 0, 0, 1, FI_UINT64,
			 FI_ATOMIC_WRITE, context);
}

static ssize_t lim_read(struct fid_ep *ep, void *context, void *buf)
{
	return fi_read(ep, buf, 8, NULL, 0, 0, 1, context);
}

static ssize_t lim_value(struct fid_ep *ep, void *context, void *buf)
{
	return fi_senddata(ep, buf, 8, NULL, 1, 0, context);
}

static ssize_t lim_delivered(struct fid_ep *ep, void *context, void *buf)
{
	struct kvec kv = { buf, 8 };
	struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = context,
	};

	return fi_sendmsg(ep, &msg, FI_DELIVERY_COMPLETE);
}

/* Operations that need what the device has not, or no device of iWARP has */
static const struct {
	const char	*name;
	bool		iwarp;
	ssize_t		(*fn)(struct fid_ep *ep, void *context, void *buf);
	int		err;
} lim_lacks[] = {
	{ "remote invalidate",	false,	lim_invalidate,	-EOPNOTSUPP },
	{ "fetching atomic",	false,	lim_fetch,	-EOPNOTSUPP },
	{ "atomic write",	false,	lim_store,	-EOPNOTSUPP },
	/* FI_READ was not asked for: iWARP would not have granted it */
	{ "read",		false,	lim_read,	-ENOSYS },
	{ "value",		true,	lim_value,	-EOPNOTSUPP },
	{ "delivery complete",	true,	lim_delivered,	-EOPNOTSUPP },
};

static void limits_poor(struct kunit *test)
{
	const struct ct_opts opts = {
		/* on iWARP, a read needs a region, and a write does not */
		.caps = FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_WRITE,
		.mode = CT_SOFTIRQ, .mr_mode = LIM_MR_MODE,
		.tx_size = LIM_POOR_MOST, .rx_size = LIM_POOR_MOST,
		.unconnected = true,
	};
	struct fi_atomic_attr atomic = {};
	struct ct_pair *p;
	struct fid_mr *mr;
	u8 *buf;
	int i;

	lim_impoverish(test);
	KUNIT_EXPECT_EQ(test, lim_poor_ask(test, FI_RMA, 0, 0), -ENODATA);
	KUNIT_EXPECT_EQ(test, lim_poor_ask(test, FI_ATOMIC, 0, 0), -ENODATA);
	KUNIT_EXPECT_EQ(test, lim_poor_ask(test, FI_MSG, LIM_POOR_MOST + 1, 0),
			-ENODATA);
	KUNIT_EXPECT_EQ(test, lim_poor_ask(test, FI_MSG, 0, LIM_POOR_MOST + 1),
			-ENODATA);
	p = ct_pair_open(test, &opts);
	lim_same_cq(p);
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	KUNIT_EXPECT_EQ(test, p->info->tx_attr->iov_limit, 1);
	KUNIT_EXPECT_EQ(test, p->info->rx_attr->iov_limit, 1);
	lim_exchange(p);
	buf = ct_buf(p, 64);
	KUNIT_EXPECT_EQ(test, fi_mr_reg(p->domain, buf, 64, FI_REMOTE_WRITE, 0,
					0, 0, &mr, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, lim_srx(p, 1, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_query_atomic(p->domain, FI_UINT64, FI_SUM,
					      &atomic, FI_FETCH_ATOMIC),
			-EOPNOTSUPP);
	for (i = 0; i < ARRAY_SIZE(lim_lacks); i++)
		if (!lim_lacks[i].iwarp ||
		    p->info->ep_attr->protocol == FI_PROTO_IWARP)
			KUNIT_EXPECT_EQ_MSG(test,
					    ct_post_fn(p, 0, ct_op(p),
						       lim_lacks[i].fn, buf),
					    lim_lacks[i].err, "%s",
					    lim_lacks[i].name);
	/* and goes on */
	lim_exchange(p);
	ct_pair_close(p);
}

/* As many segments as are promised, whatever the device says */
static struct lim_poor *lim_shallow;

static int lim_shallow_create_qp(struct ib_qp *qp,
				 struct ib_qp_init_attr *attr,
				 struct ib_udata *udata)
{
	if (attr->cap.max_send_sge > KOFI_IOV_MAX ||
	    attr->cap.max_inline_data > 32) {
		lim_shallow->refused++;
		return -ENOMEM;
	}
	return lim_shallow->create_qp(qp, attr, udata);
}

/* A device with queues as deep as it says, but for short work requests only */
static void limits_shallow(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ };
	struct ct_pair *p;

	lim_shallow = lim_device(test);
	lim_shallow->ib->ops.create_qp = lim_shallow_create_qp;
	p = ct_pair_open(test, &opts);
	KUNIT_EXPECT_GT(test, lim_shallow->refused, 0);
	lim_exchange(p);
	ct_pair_close(p);
}

/* -------------------------------------------------------------- namespaces */

static int lim_nsid = -1;
module_param_named(nsid, lim_nsid, int, 0444);
MODULE_PARM_DESC(nsid, "Network namespace that the device and its address are in, as an identifier of the initial one");

/*
 * Why VRB_QUIRK_INIT_NET: the manager finds the device in the namespace, but siw
 * opens its sockets in the namespace of the calling task, a kernel thread here as in
 * kofi_verbs, where the address is not local.
 */
static void limits_namespace(struct kunit *test)
{
	const struct rdma_conn_param param = {};
	struct sockaddr_storage addr = {};
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct net *net;
	struct vraw raw;

	net = lim_nsid < 0 ? NULL : get_net_ns_by_id(&init_net, lim_nsid);
	if (!net)
		kunit_skip(test, "no namespace is given");
	in->sin_family = AF_INET;
	KUNIT_EXPECT_EQ(test, 1, in4_pton(ct_address, -1, (u8 *)&in->sin_addr, -1,
					  NULL));
	KUNIT_EXPECT_EQ(test, -EADDRNOTAVAIL, vraw_listen(&raw, net, &addr));
	KUNIT_EXPECT_NOT_NULL(test, raw.listener->device);
	vraw_close(&raw);
	in->sin_port = htons(7);
	KUNIT_EXPECT_EQ(test, -EADDRNOTAVAIL,
			vraw_connect(&raw, net, &addr, &param));
	vraw_close(&raw);
	put_net(net);
}

static struct kunit_case verbs_limits_cases[] = {
	KUNIT_CASE_PARAM(limits_attribute, lim_attr_gen_params),
	KUNIT_CASE(limits_kind),
	KUNIT_CASE_PARAM(limits_queues, lim_queue_gen_params),
	KUNIT_CASE(limits_options),
	KUNIT_CASE(limits_refused),
	KUNIT_CASE(limits_region),
	KUNIT_CASE(limits_tclass),
	KUNIT_CASE(limits_small),
	KUNIT_CASE(limits_atomic),
	KUNIT_CASE(limits_request),
	KUNIT_CASE(limits_srx),
	KUNIT_CASE(limits_poor),
	KUNIT_CASE(limits_shallow),
	KUNIT_CASE(limits_namespace),
	{}
};

static struct kunit_suite verbs_limits_suite = {
	.name = "verbs_limits",
	.suite_init = lo_suite_init,
	.init = link_test_init,
	.test_cases = verbs_limits_cases,
};

kunit_test_suite(verbs_limits_suite);
