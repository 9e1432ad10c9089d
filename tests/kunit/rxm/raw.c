// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A peer of kofi_rxm that sends what the test tells it to. */
#include <linux/slab.h>

#include "raw.h"

static void rxt_raw_domain(struct kunit *test, struct rxt_raw *r)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
	KUNIT_ASSERT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
					 FI_SOURCE | FI_NUMERICHOST, hints,
					 &r->info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, fi_fabric(r->info->fabric_attr, &r->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(r->fabric, r->info, &r->domain, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_eq_open(r->fabric, &eq, &r->eq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(r->domain, &cq, &r->cq, NULL), 0);
}

void rxt_raw_ep(struct kunit *test, struct rxt_raw *r, struct fi_info *info)
{
	KUNIT_ASSERT_EQ(test, fi_endpoint(r->domain, info, &r->ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(r->ep, &r->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT |
					 FI_RECV), 0);
}

void rxt_raw_open(struct kunit *test, struct rxt_raw *r)
{
	rxt_raw_domain(test, r);
	rxt_raw_ep(test, r, r->info);
}

void rxt_raw_listen(struct kunit *test, struct rxt_raw *r)
{
	size_t len = sizeof(r->name);

	rxt_raw_domain(test, r);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(r->fabric, r->info, &r->pep, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_pep_bind(r->pep, &r->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_listen(r->pep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&r->pep->fid, &r->name, &len), 0);
}

void rxt_raw_close_ep(struct kunit *test, struct rxt_raw *r)
{
	if (r->ep)
		KUNIT_EXPECT_EQ(test, fi_close(&r->ep->fid), 0);
	r->ep = NULL;
}

void rxt_raw_close(struct kunit *test, struct rxt_raw *r)
{
	rxt_raw_close_ep(test, r);
	if (r->pep)
		KUNIT_EXPECT_EQ(test, fi_close(&r->pep->fid), 0);
	if (r->cq)
		KUNIT_EXPECT_EQ(test, fi_close(&r->cq->fid), 0);
	if (r->eq)
		KUNIT_EXPECT_EQ(test, fi_close(&r->eq->fid), 0);
	if (r->domain)
		KUNIT_EXPECT_EQ(test, fi_close(&r->domain->fid), 0);
	if (r->fabric)
		KUNIT_EXPECT_EQ(test, fi_close(&r->fabric->fid), 0);
	fi_freeinfo(r->info);
	*r = (struct rxt_raw) { .test = test };
}

static void rxt_raw_end(void *arg)
{
	struct rxt_raw *r = arg;

	rxt_raw_close(r->test, r);
}

/* Closed at the end of the test, wherever that is */
struct rxt_raw *rxt_raw_alloc(struct kunit *test)
{
	struct rxt_raw *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->test = test;
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, rxt_raw_end, r), 0);
	return r;
}

/* The event that comes within a time; 0, or the error it is */
int rxt_raw_wait(struct rxt_raw *r, u32 want, int timeout)
{
	struct {
		struct fi_eq_cm_entry	entry;
		u8			data[64];
	} buf;
	struct fi_eq_err_entry err = {};
	u32 event = 0;
	ssize_t n;

	n = fi_eq_sread(r->eq, &event, &buf, sizeof(buf), timeout, 0);
	if (n == -FI_EAVAIL)
		return fi_eq_readerr(r->eq, &err, 0) < 0 ? -EIO : err.err;
	if (n < 0)
		return n;
	n -= sizeof(buf.entry);
	if (event == FI_CONNREQ) {
		r->asked = buf.entry.info;
		memcpy(&r->req, buf.data, min_t(size_t, n, sizeof(r->req)));
	}
	if (event == FI_CONNECTED && n == sizeof(r->rsp))
		memcpy(&r->rsp, buf.data, n);
	return event == want ? 0 : -ENOMSG;
}

/* The event that comes next */
int rxt_raw_event(struct rxt_raw *r, u32 want)
{
	return rxt_raw_wait(r, want, RXT_TIMEOUT);
}

int rxt_raw_connect(struct kunit *test, struct rxt_raw *r, struct rxt_end *e,
		    const void *req, size_t len)
{
	KUNIT_ASSERT_EQ(test, fi_connect(r->ep, &e->name, req, len), 0);
	return rxt_raw_event(r, FI_CONNECTED);
}

/* The request that has come is refused, */
void rxt_raw_reject(struct kunit *test, struct rxt_raw *r, u8 reason)
{
	const struct rxm_cm_rej rej = {
		.version = RXM_CM_VERSION, .reason = reason,
	};

	KUNIT_EXPECT_EQ(test, fi_reject(r->pep, r->asked->handle, &rej,
					sizeof(rej)), 0);
	fi_freeinfo(r->asked);
}

/* or accepted, by a peer that calls the connection so. */
void rxt_raw_accept(struct kunit *test, struct rxt_raw *r, u64 id)
{
	const struct rxm_cm_rsp rsp = {
		.id = id, .rx_size = 16, .flow = r->flow ?: RXM_FLOW_OFF,
	};

	rxt_raw_ep(test, r, r->asked);
	fi_freeinfo(r->asked);
	KUNIT_ASSERT_EQ(test, fi_accept(r->ep, &rsp, sizeof(rsp)), 0);
}

void rxt_raw_req(struct rxm_cm_req *req, u16 port)
{
	rxm_cm_req_format(req, port, RXM_EAGER, 16, 0x1234500000007,
			  RXM_FLOW_OFF);
}
