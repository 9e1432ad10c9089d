// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bad input: every call refuses what makes no sense with the error its page
 * names, changes nothing, and reports no completion.
 */

#include <linux/slab.h>
#include <linux/uio.h>
#include <net/net_namespace.h>

#include "contract.h"

#define BAD_FLAG	BIT_ULL(63)	/* no call knows it */

#define refused(call, want) \
	KUNIT_EXPECT_EQ_MSG(test, (long long)(call), (long long)(want), #call)

static void input_getinfo(struct kunit *test)
{
	struct fi_info *hints = ct_hints(), *info = NULL;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	refused(fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, NULL, NULL), -EINVAL);
	refused(ct_getinfo(BAD_FLAG, hints, &info), -FI_EBADFLAGS);
	/* counters have 64 bits */
	hints->domain_attr->max_cntr_value = U64_MAX;
	hints->domain_attr->max_err_cntr_value = U64_MAX;
	KUNIT_EXPECT_EQ(test, ct_getinfo(0, hints, &info), 0);
	fi_freeinfo(info);
	info = NULL;
	refused(fi_getinfo(FI_VERSION(99, 0), NULL, NULL, 0, NULL, &info),
		-ENOSYS);
	refused(fi_getinfo(FI_VERSION(2, 1), "not a number", "1", FI_NUMERICHOST,
			   NULL, &info), -ENODATA);
	hints->caps |= BIT_ULL(49) | FI_COLLECTIVE;
	refused(ct_getinfo(0, hints, &info), -ENODATA);
	hints->caps = FI_MSG;
	kfree(hints->domain_attr->name);
	hints->domain_attr->name = kstrdup("no-such-device", GFP_KERNEL);
	refused(ct_getinfo(0, hints, &info), -ENODATA);
	kfree(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = kstrdup("no-such-provider", GFP_KERNEL);
	refused(ct_getinfo(0, hints, &info), -ENODATA);
	KUNIT_EXPECT_NULL(test, info);
	fi_freeinfo(hints);
	fi_freeinfo(NULL);
}

/* An attribute that is a limit, in one of the structures of an fi_info */
struct input_limit {
	const char	*name;
	size_t		attr;
	size_t		member;
};

#define INPUT_LIMIT(attr, member) \
	{ #attr "->" #member, offsetof(struct fi_info, attr), \
	  offsetof(struct fi_##attr, member) }

static const struct input_limit input_limits_table[] = {
	INPUT_LIMIT(tx_attr, inject_size),
	INPUT_LIMIT(tx_attr, size),
	INPUT_LIMIT(tx_attr, iov_limit),
	INPUT_LIMIT(tx_attr, rma_iov_limit),
	INPUT_LIMIT(rx_attr, total_buffered_recv),
	INPUT_LIMIT(rx_attr, size),
	INPUT_LIMIT(rx_attr, iov_limit),
	INPUT_LIMIT(ep_attr, max_msg_size),
	INPUT_LIMIT(ep_attr, max_order_raw_size),
	INPUT_LIMIT(ep_attr, max_order_war_size),
	INPUT_LIMIT(ep_attr, max_order_waw_size),
	INPUT_LIMIT(domain_attr, mr_key_size),
	INPUT_LIMIT(domain_attr, cq_data_size),
	INPUT_LIMIT(domain_attr, cq_cnt),
	INPUT_LIMIT(domain_attr, ep_cnt),
	INPUT_LIMIT(domain_attr, tx_ctx_cnt),
	INPUT_LIMIT(domain_attr, rx_ctx_cnt),
	INPUT_LIMIT(domain_attr, max_ep_tx_ctx),
	INPUT_LIMIT(domain_attr, max_ep_rx_ctx),
	INPUT_LIMIT(domain_attr, max_ep_stx_ctx),
	INPUT_LIMIT(domain_attr, max_ep_srx_ctx),
	INPUT_LIMIT(domain_attr, cntr_cnt),
	INPUT_LIMIT(domain_attr, mr_iov_limit),
	INPUT_LIMIT(domain_attr, max_err_data),
	INPUT_LIMIT(domain_attr, mr_cnt),
	INPUT_LIMIT(domain_attr, max_ep_auth_key),
};

static size_t *input_limit(const struct fi_info *info, const struct input_limit *l)
{
	return *(void **)((void *)info + l->attr) + l->member;
}

/* Hint a value. The answer grants at least as much, or there is none if it is @above. */
static void input_hint(struct kunit *test, u64 caps, const struct input_limit *l,
		       size_t hint, bool above)
{
	struct fi_info *hints = ct_hints(), *info = NULL, *i;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = caps;
	*input_limit(hints, l) = hint;
	err = ct_getinfo(0, hints, &info);
	KUNIT_EXPECT_TRUE_MSG(test, !err || (above && err == -ENODATA), "%s %zu: %d",
			      l->name, hint, err);
	for (i = info; i; i = i->next)
		KUNIT_EXPECT_TRUE_MSG(test, *input_limit(i, l) >= hint,
				      "%s: hint %zu, granted %zu", l->name, hint,
				      *input_limit(i, l));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* A hint above a limit is refused, and never granted in part. */
static void input_limits(struct kunit *test)
{
	static const u64 caps[] = { FI_MSG, FI_MSG | FI_RMA, FI_TAGGED | FI_ATOMIC };
	struct fi_info *hints, *info;
	const struct input_limit *l;
	size_t value;
	int c, i;

	for (c = 0; c < ARRAY_SIZE(caps); c++) {
		hints = ct_hints();
		KUNIT_ASSERT_NOT_NULL(test, hints);
		hints->caps = caps[c];
		if (ct_getinfo(0, hints, &info)) {
			fi_freeinfo(hints);
			continue;
		}
		for (i = 0; i < ARRAY_SIZE(input_limits_table); i++) {
			l = &input_limits_table[i];
			value = *input_limit(info, l);
			input_hint(test, caps[c], l, value, false);
			if (value == SIZE_MAX)
				continue;
			input_hint(test, caps[c], l, value + 1, true);
			if (value <= SIZE_MAX / 2)
				input_hint(test, caps[c], l, 2 * value, true);
			input_hint(test, caps[c], l, SIZE_MAX - 1, true);
		}
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

static void input_open(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_cq_attr cq_attr = {};
	struct fi_eq_attr eq_attr = {};
	struct fi_cntr_attr cntr_attr = {};
	struct kofi_cq_attr kattr = { .done = true };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_pep *pep;
	struct fid_cq *cq;
	struct fid_eq *eq;

	refused(fi_fabric(NULL, &fabric, NULL), -EINVAL);
	refused(fi_fabric(p->info->fabric_attr, NULL, NULL), -EINVAL);
	refused(fi_domain(NULL, p->info, &domain, NULL), -EINVAL);
	refused(fi_domain(p->fabric, NULL, &domain, NULL), -EINVAL);
	refused(fi_domain(p->fabric, p->info, NULL, NULL), -EINVAL);
	refused(fi_domain2(p->fabric, p->info, &domain, BAD_FLAG, NULL),
		-FI_EBADFLAGS);
	refused(fi_endpoint(NULL, p->info, &ep, NULL), -EINVAL);
	refused(fi_endpoint(p->domain, NULL, &ep, NULL), -EINVAL);
	refused(fi_endpoint(p->domain, p->info, NULL, NULL), -EINVAL);
	refused(fi_passive_ep(NULL, p->info, &pep, NULL), -EINVAL);
	refused(fi_passive_ep(p->fabric, NULL, &pep, NULL), -EINVAL);
	refused(fi_passive_ep(p->fabric, p->info, NULL, NULL), -EINVAL);
	refused(fi_eq_open(NULL, &eq_attr, &eq, NULL), -EINVAL);
	refused(fi_eq_open(p->fabric, &eq_attr, NULL, NULL), -EINVAL);
	eq_attr.flags = BAD_FLAG;
	refused(fi_eq_open(p->fabric, &eq_attr, &eq, NULL), -FI_EBADFLAGS);
	refused(fi_cq_open(NULL, &cq_attr, &cq, NULL), -EINVAL);
	refused(fi_cq_open(p->domain, &cq_attr, NULL, NULL), -EINVAL);
	cq_attr.flags = BAD_FLAG;
	refused(fi_cq_open(p->domain, &cq_attr, &cq, NULL), -FI_EBADFLAGS);
	cq_attr = (struct fi_cq_attr){ .format = 99 };
	refused(fi_cq_open(p->domain, &cq_attr, &cq, NULL), -EINVAL);
	cq_attr = (struct fi_cq_attr){};
	kattr.poll = 99;
	refused(kofi_cq_open(p->domain, &cq_attr, &kattr, &cq, NULL), -EINVAL);
	kattr.poll = KOFI_POLL_SOFTIRQ;
	kattr.flags = FI_AFFINITY;
	kattr.cpu = nr_cpu_ids;
	refused(kofi_cq_open(p->domain, &cq_attr, &kattr, &cq, NULL), -EINVAL);
	refused(fi_cntr_open(NULL, &cntr_attr, &cntr, NULL), -EINVAL);
	refused(fi_cntr_open(p->domain, &cntr_attr, NULL, NULL), -EINVAL);
	cntr_attr.flags = BAD_FLAG;
	refused(fi_cntr_open(p->domain, &cntr_attr, &cntr, NULL), -FI_EBADFLAGS);
	refused(kofi_eq_open(p->fabric, &eq_attr, NULL, NULL, NULL), -EINVAL);
	ct_pair_close(p);
}

/* Parts of an fi_info that may be missing; nothing opens without its structures */
static const struct input_part {
	const char	*name;
	size_t		offset;		/* in the fi_info, or the structure */
	int		of;		/* -1, or offset of the structure */
	bool		needed;
} input_parts[] = {
	{ "tx_attr", offsetof(struct fi_info, tx_attr), -1, true },
	{ "rx_attr", offsetof(struct fi_info, rx_attr), -1, true },
	{ "ep_attr", offsetof(struct fi_info, ep_attr), -1, true },
	{ "domain_attr", offsetof(struct fi_info, domain_attr), -1, true },
	{ "fabric_attr", offsetof(struct fi_info, fabric_attr), -1, true },
	{ "src_addr", offsetof(struct fi_info, src_addr), -1 },
	{ "domain name", offsetof(struct fi_domain_attr, name),
	  offsetof(struct fi_info, domain_attr) },
	{ "fabric name", offsetof(struct fi_fabric_attr, name),
	  offsetof(struct fi_info, fabric_attr) },
	{ "prov_name", offsetof(struct fi_fabric_attr, prov_name),
	  offsetof(struct fi_info, fabric_attr) },
};

KUNIT_ARRAY_PARAM_DESC(input_part, input_parts, name);

/* What is opened all the same is closed; a connection request is made of it. */
static void input_opened(struct kunit *test, int ret, void *fid)
{
	const struct input_part *part = test->param_value;

	KUNIT_EXPECT_TRUE_MSG(test, (!ret && !part->needed) || ret == -EINVAL,
			      "%d", ret);
	if (!ret)
		KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
}

static void input_info_parts(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	const struct input_part *part = test->param_value;
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_info *info = fi_dupinfo(p->info), *list = NULL;
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_ep *ep;
	void *at = info, *cut;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, info);
	if (part->of >= 0)
		at = *(void **)(at + part->of);
	at += part->offset;
	cut = *(void **)at;
	*(void **)at = NULL;

	err = fi_domain(p->fabric, info, &domain, NULL);
	input_opened(test, err, err ? NULL : &domain->fid);
	err = fi_endpoint(p->domain, info, &ep, NULL);
	input_opened(test, err, err ? NULL : &ep->fid);
	err = fi_passive_ep(p->fabric, info, &pep, NULL);
	input_opened(test, err, err ? NULL : &pep->fid);
	err = ct_getinfo(0, info, &list);
	KUNIT_EXPECT_TRUE_MSG(test, !err || err == -EINVAL || err == -ENODATA,
			      "%d", err);
	fi_freeinfo(list);

	*(void **)at = cut;
	fi_freeinfo(info);
	ct_pair_close(p);
}

/* Pointers to what is not, or no longer, open */
static void input_stale(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_info *info = fi_dupinfo(p->info), *list = NULL;
	struct fid_ep *ep;

	KUNIT_ASSERT_NOT_NULL(test, info);
	info->fabric_attr->fabric = (struct fid_fabric *)0x1234;
	refused(ct_getinfo(0, info, &list), -EINVAL);
	info->fabric_attr->fabric = p->fabric;
	info->domain_attr->domain = (struct fid_domain *)p->fabric;
	refused(ct_getinfo(0, info, &list), -EINVAL);
	info->domain_attr->domain = p->domain;
	KUNIT_EXPECT_EQ(test, ct_getinfo(0, info, &list), 0);
	fi_freeinfo(list);
	info->handle = (fid_t)0x1234;
	refused(fi_endpoint(p->domain, info, &ep, NULL), -EINVAL);
	refused(fi_reject(p->pep, (fid_t)0x1234, NULL, 0), -EINVAL);
	info->handle = NULL;
	fi_freeinfo(info);
	ct_pair_close(p);
}

static void input_bind(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct ct_side *s = &p->side[0];
	struct fid_ep *bare;

	refused(fi_ep_bind(NULL, &s->eq->fid, 0), -EINVAL);
	refused(fi_ep_bind(s->ep, NULL, 0), -EINVAL);
	refused(fi_ep_bind(s->ep, &p->domain->fid, 0), -EINVAL);
	refused(fi_pep_bind(p->pep, NULL, 0), -EINVAL);
	refused(fi_pep_bind(p->pep, &s->tx.cq->fid, 0), -EINVAL);
	KUNIT_ASSERT_EQ(test, fi_endpoint(p->domain, p->info, &bare, NULL), 0);
	refused(fi_ep_bind(bare, &s->tx.cq->fid, 0), -FI_EBADFLAGS);
	refused(fi_ep_bind(bare, &s->tx.cq->fid, FI_TRANSMIT | BAD_FLAG),
		-FI_EBADFLAGS);
	/* an endpoint without queues has nowhere to report to */
	refused(fi_enable(bare), -FI_ENOEQ);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(bare, &s->eq->fid, 0), 0);
	refused(fi_enable(bare), -FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_close(&bare->fid), 0);
	refused(fi_enable(NULL), -EINVAL);
	refused(fi_close(NULL), -EINVAL);
	ct_pair_close(p);
}

/* A parent, and what is bound, stays as long as it is needed. */
static void input_close_busy(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_SOFTIRQ);
	u8 *buf = ct_buf(p, 64);
	struct ct_op *r = ct_op(p);
	int i;

	refused(fi_close(&p->fabric->fid), -EBUSY);
	refused(fi_close(&p->domain->fid), -EBUSY);
	for (i = 0; i < 2; i++) {
		refused(fi_close(&p->side[i].tx.cq->fid), -EBUSY);
		refused(fi_close(&p->side[i].rx.cq->fid), -EBUSY);
		refused(fi_close(&p->side[i].eq->fid), -EBUSY);
	}
	/* and all of it still works */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, r, buf, 64), 0);
	KUNIT_EXPECT_EQ(test, ct_inject(p, 0, buf, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, r));
	ct_pair_close(p);
}

static void input_cm(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fid_ep *ep = p->side[0].ep;
	struct sockaddr_storage addr;
	size_t len = sizeof(addr);
	size_t max = ct_cm_data_max(p);
	u8 *data = ct_buf(p, max + 1);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));

	refused(fi_setname(&ep->fid, NULL, sizeof(addr)), -EINVAL);
	refused(fi_setname(&ep->fid, &addr, 3), -EINVAL);
	refused(fi_connect(NULL, &p->addr, NULL, 0), -EINVAL);
	refused(fi_connect(ep, &p->addr, data, max + 1), -EINVAL);
	refused(fi_connect(ep, &p->addr, NULL, 8), -EINVAL);
	addr = p->addr;
	addr.ss_family = AF_UNIX;
	refused(fi_connect(ep, &addr, NULL, 0), -EINVAL);
	refused(fi_accept(NULL, NULL, 0), -EINVAL);
	/* only who was asked can accept */
	refused(fi_accept(ep, NULL, 0), -EINVAL);
	refused(fi_listen(NULL), -EINVAL);
	refused(fi_getname(NULL, &addr, &len), -EINVAL);
	refused(fi_getname(&p->pep->fid, &addr, NULL), -EINVAL);
	refused(fi_getpeer(ep, &addr, &len), -ENOTCONN);
	refused(fi_shutdown(NULL, 0), -EINVAL);
	refused(fi_shutdown(ep, BAD_FLAG), -FI_EBADFLAGS);
	refused(fi_reject(p->pep, NULL, NULL, 0), -EINVAL);
	refused(fi_reject(p->pep, &ep->fid, NULL, 0), -EINVAL);
	/* none of it has spoilt the endpoint */
	KUNIT_ASSERT_EQ(test, fi_connect(ep, &p->addr, data, max), 0);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	refused(fi_reject(p->pep, ev->cm.info->handle, data, max + 1), -EINVAL);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	refused(fi_accept(p->side[1].ep, data, max + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_accept(p->side[1].ep, data, max), 0);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	ct_expect_event(test, p->side[0].eq, FI_CONNECTED);
	ct_pair_close(p);
}

static void input_queues(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct fid_cq *cq = p->side[0].tx.cq;
	struct fid_eq *eq = p->side[0].eq;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = {};
	struct fi_eq_err_entry eq_err = {};
	struct fi_eq_entry ev;
	u32 event;

	refused(fi_cq_read(NULL, &entry, 1), -EINVAL);
	refused(fi_cq_read(cq, NULL, 1), -EINVAL);
	refused(fi_cq_read(cq, &entry, 1), -EAGAIN);
	refused(fi_cq_readerr(cq, NULL, 0), -EINVAL);
	refused(fi_cq_readerr(cq, &err, BAD_FLAG), -FI_EBADFLAGS);
	refused(fi_cq_readerr(cq, &err, 0), -EAGAIN);
	refused(fi_cq_sread(cq, &entry, 1, NULL, 20), -EAGAIN);
	refused(fi_eq_read(NULL, &event, &ev, sizeof(ev), 0), -EINVAL);
	refused(fi_eq_read(eq, NULL, &ev, sizeof(ev), 0), -EINVAL);
	refused(fi_eq_read(eq, &event, NULL, sizeof(ev), 0), -EINVAL);
	refused(fi_eq_read(eq, &event, &ev, sizeof(ev), BAD_FLAG),
		-FI_EBADFLAGS);
	refused(fi_eq_read(eq, &event, &ev, sizeof(ev), 0), -EAGAIN);
	refused(fi_eq_readerr(eq, NULL, 0), -EINVAL);
	refused(fi_eq_readerr(eq, &eq_err, 0), -EAGAIN);
	ct_pair_close(p);
}

/* Posts that cannot be, in any mode; the books show that none completes. */
static void input_posts(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	size_t inject = p->info->tx_attr->inject_size;
	u8 *buf = ct_buf(p, inject + 1);
	struct kvec iov[17];
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 1 };
	struct iov_iter iter;
	int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct kvec){ .iov_base = buf, .iov_len = 1 };
	refused(ct_post_send(p, 0, ct_op(p), &msg, BAD_FLAG), -FI_EBADFLAGS);
	refused(ct_post_recv(p, 0, ct_op(p), &msg, BAD_FLAG), -FI_EBADFLAGS);
	refused(ct_post_send(p, 0, ct_op(p), &msg, FI_MULTI_RECV),
		-FI_EBADFLAGS);
	refused(ct_post_recv(p, 0, ct_op(p), &msg, FI_INJECT), -FI_EBADFLAGS);
	iov[0].iov_len = inject + 1;
	refused(ct_post_send(p, 0, ct_op(p), &msg, FI_INJECT), -EINVAL);
	refused(ct_inject(p, 0, buf, inject + 1), -EINVAL);
	iov[0].iov_len = 1;
	msg.iov_count = p->info->tx_attr->iov_limit + 1;
	if (msg.iov_count <= ARRAY_SIZE(iov)) {
		refused(ct_post_send(p, 0, ct_op(p), &msg, 0), -EINVAL);
		msg.iov_count = p->info->rx_attr->iov_limit + 1;
		refused(ct_post_recv(p, 0, ct_op(p), &msg, 0), -EINVAL);
	}
	msg = (struct fi_msg){ .msg_iov = NULL, .iov_count = 1 };
	refused(ct_post_send(p, 0, ct_op(p), &msg, 0), -EINVAL);
	refused(ct_post_recv(p, 0, ct_op(p), &msg, 0), -EINVAL);
	msg.msg_iov = iov;
	msg.vec = 77;
	refused(ct_post_send(p, 0, ct_op(p), &msg, 0), -EINVAL);
	refused(ct_post_recv(p, 0, ct_op(p), &msg, 0), -EINVAL);
	/* memory of a process is none of a kernel's business */
	iov_iter_ubuf(&iter, ITER_SOURCE, NULL, 100);
	msg = (struct fi_msg){ .msg_iter = &iter, .vec = KOFI_ITER };
	refused(ct_post_send(p, 0, ct_op(p), &msg, 0), -EINVAL);
	if (p->info->ep_attr->max_msg_size < SIZE_MAX) {
		iov[0].iov_len = p->info->ep_attr->max_msg_size + 1;
		msg = (struct fi_msg){ .msg_iov = iov, .iov_count = 1 };
		refused(ct_post_send(p, 0, ct_op(p), &msg, 0), -EMSGSIZE);
	}
	/* and the endpoint is as good as before */
	iov[0].iov_len = inject;
	msg = (struct fi_msg){ .msg_iov = iov, .iov_count = 1 };
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), buf, inject), 0);
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 0, ct_op(p), &msg, FI_INJECT), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

static ssize_t input_read(struct fid_ep *ep, void *context, void *arg)
{
	struct fi_msg_rma *msg = arg;

	msg->context = context;
	return fi_readmsg(ep, msg, 0);
}

static ssize_t input_write(struct fid_ep *ep, void *context, void *arg)
{
	struct fi_msg_rma *msg = arg;

	msg->context = context;
	return fi_writemsg(ep, msg, 0);
}

/* Memory that is said to be there, here or at the peer, without a pointer to it */
static void input_rma(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test),
		.caps = FI_MSG | FI_RMA,
		.mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	const struct kvec kv = { ct_buf(p, 8), 8 };
	const struct fi_rma_iov rma = { .len = 8, .key = 1 };
	struct fi_msg_rma msg[] = {
		{ .iov_count = 1, .rma_iov = &rma, .rma_iov_count = 1 },
		{ .msg_iov = &kv, .iov_count = 1, .rma_iov_count = 1 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(msg); i++) {
		refused(ct_post_fn(p, 0, ct_op(p), input_read, &msg[i]), -EINVAL);
		refused(ct_post_fn(p, 0, ct_op(p), input_write, &msg[i]), -EINVAL);
	}
	ct_pair_close(p);
}

static void input_states(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .unconnected = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *buf = ct_buf(p, 64);
	struct ct_op *r = ct_op(p);

	/* before it is enabled */
	refused(ct_send(p, 0, ct_op(p), buf, 64), -FI_EOPBADSTATE);
	refused(ct_inject(p, 0, buf, 64), -FI_EOPBADSTATE);
	refused(ct_recv(p, 0, ct_op(p), buf, 64), -FI_EOPBADSTATE);
	/* never connected */
	KUNIT_ASSERT_EQ(test, fi_enable(p->side[0].ep), 0);
	refused(ct_send(p, 0, ct_op(p), buf, 64), -ENOTCONN);
	refused(ct_inject(p, 0, buf, 64), -ENOTCONN);
	refused(ct_recv(p, 0, r, buf, 64), 0);
	/* no more binding, and no second enabling */
	refused(fi_ep_bind(p->side[0].ep, &p->side[1].tx.cq->fid, FI_TRANSMIT),
		-FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	refused(fi_connect(p->side[0].ep, &p->addr, NULL, 0), -EISCONN);
	/* a receive from before the connection is good */
	KUNIT_EXPECT_EQ(test, ct_inject(p, 1, buf, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, r));
	/* afterwards, on both sides */
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	refused(ct_send(p, 0, ct_op(p), buf, 64), -ESHUTDOWN);
	refused(ct_inject(p, 0, buf, 64), -ESHUTDOWN);
	refused(ct_recv(p, 0, ct_op(p), buf, 64), -ESHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	refused(ct_send(p, 1, ct_op(p), buf, 64), -ESHUTDOWN);
	refused(ct_recv(p, 1, ct_op(p), buf, 64), -ESHUTDOWN);
	ct_pair_close(p);
}

static struct kunit_case contract_input_cases[] = {
	KUNIT_CASE(input_getinfo),
	KUNIT_CASE(input_limits),
	KUNIT_CASE(input_open),
	KUNIT_CASE_PARAM(input_info_parts, input_part_gen_params),
	KUNIT_CASE(input_stale),
	KUNIT_CASE(input_bind),
	KUNIT_CASE(input_close_busy),
	KUNIT_CASE(input_cm),
	KUNIT_CASE(input_queues),
	KUNIT_CASE_PARAM(input_posts, ct_mode_gen_params),
	KUNIT_CASE_PARAM(input_rma, ct_mode_gen_params),
	KUNIT_CASE_PARAM(input_states, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_input_suite = {
	.name = "contract_input",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.init = ct_connected_init,
	.test_cases = contract_input_cases,
};

kunit_test_suite(contract_input_suite);
