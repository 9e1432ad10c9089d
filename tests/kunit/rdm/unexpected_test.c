// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that no receive is posted for, at an endpoint with
 * KOFI_OPT_UNEXPECTED_TIMEOUT, over each provider of endpoints that do not connect.
 */
#include <linux/in.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <linux/kofi/provider.h>

#include "../kunit.h"
#include "../limit.h"
#include "place.h"

#define UX_LEN		64
#define UX_LONG		SZ_256K		/* a rendezvous over kofi_rxm, not stored by kofi_sock */
#define UX_EXPIRE		TEST_LIMIT(30)	/* milliseconds */
#define UX_EVENTS		40		/* of an event queue */
#define UX_TIMEOUT	TEST_LIMIT(20000)	/* nothing that works takes it */

struct ux_end {
	struct fid_ep	*ep;
	struct fid_av	*av;
	struct fid_cq	*cq;
	struct fid_eq	*eq;
	fi_addr_t	peer;
};

struct ux_test {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct ux_end		from;
	struct ux_end		to;
	u8			*out;	/* UX_LONG each */
	u8			*in;
};

/* ----------------------------------------------------------------- objects */

static void ux_close_fid(struct kunit *test, struct fi_fid *fid)
{
	if (fid)
		KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
}

static void ux_close_end(struct kunit *test, struct ux_end *e)
{
	ux_close_fid(test, e->ep ? &e->ep->fid : NULL);
	ux_close_fid(test, e->cq ? &e->cq->fid : NULL);
	ux_close_fid(test, e->av ? &e->av->fid : NULL);
	ux_close_fid(test, e->eq ? &e->eq->fid : NULL);
}

static void ux_close(void *arg)
{
	struct ux_test *t = arg;

	ux_close_end(t->test, &t->from);
	ux_close_end(t->test, &t->to);
	ux_close_fid(t->test, t->domain ? &t->domain->fid : NULL);
	ux_close_fid(t->test, t->fabric ? &t->fabric->fid : NULL);
	fi_freeinfo(t->info);
	kvfree(t->out);
	kvfree(t->in);
	kfree(t);
}

static void ux_open_end(struct ux_test *t, struct ux_end *e)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct fi_eq_attr eq = {
		.size = UX_EVENTS, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct kunit *test = t->test;

	KUNIT_ASSERT_EQ(test, fi_eq_open(t->fabric, &eq, &e->eq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_av_open(t->domain, &(struct fi_av_attr) {},
					 &e->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(t->domain, &cq, &e->cq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, t->info, &e->ep, e), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->cq->fid,
					 FI_TRANSMIT | FI_RECV), 0);
}

static struct ux_test *ux_alloc(struct kunit *test)
{
	struct ux_test *t = kzalloc(sizeof(*t), GFP_KERNEL);
	struct fi_info *hints;
	int i, err;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, ux_close, t), 0);
	t->out = kvmalloc(UX_LONG, GFP_KERNEL);
	t->in = kvmalloc(UX_LONG, GFP_KERNEL);
	hints = fi_allocinfo();
	KUNIT_ASSERT_TRUE(test, t->out && t->in && hints);
	for (i = 0; i < UX_LONG; i++)
		t->out[i] = i * 7 + i / 256;
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	err = rdm_place_getinfo(test, hints, &t->info);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, fi_fabric(t->info->fabric_attr, &t->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(t->fabric, t->info, &t->domain, NULL),
			0);
	return t;
}

static void ux_name(struct ux_test *t, struct ux_end *of, struct ux_end *at)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(t->test, fi_getname(&of->ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(t->test, fi_av_insert(at->av, &name, 1, &at->peer, 0,
					      NULL), 1);
}

/* Two endpoints; messages to the second one wait for EXPIRE milliseconds. */
static struct ux_test *ux_open(struct kunit *test, size_t expire)
{
	struct ux_test *t = ux_alloc(test);

	ux_open_end(t, &t->from);
	ux_open_end(t, &t->to);
	KUNIT_ASSERT_EQ(test, fi_setopt(&t->to.ep->fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &expire,
					sizeof(expire)), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(t->from.ep), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(t->to.ep), 0);
	ux_name(t, &t->from, &t->to);
	ux_name(t, &t->to, &t->from);
	return t;
}

/* --------------------------------------------------------------- operations */

/* The next completion of a queue: 0 or its error */
static int ux_comp(struct ux_end *e, struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry bad = {};
	ssize_t n = fi_cq_sread(e->cq, entry, 1, NULL, UX_TIMEOUT);

	if (n != -FI_EAVAIL)
		return n == 1 ? 0 : n ?: -EIO;
	if (fi_cq_readerr(e->cq, &bad, 0) < 0)
		return -EIO;
	entry->op_context = bad.op_context;
	entry->tag = bad.tag;
	return bad.err;
}

static void ux_post(struct ux_test *t, u64 tag, size_t len, u64 flags)
{
	struct kvec kv = { .iov_base = t->out, .iov_len = len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = t->from.peer,
		.tag = tag, .context = t->out,
	};

	KUNIT_ASSERT_EQ(t->test, fi_tsendmsg(t->from.ep, &msg, flags), 0);
}

static void ux_send(struct ux_test *t, u64 tag, size_t len)
{
	struct fi_cq_tagged_entry entry;

	ux_post(t, tag, len, FI_COMPLETION);
	KUNIT_ASSERT_EQ(t->test, ux_comp(&t->from, &entry), 0);
}

static void ux_recv_post(struct ux_test *t, u64 tag, size_t len)
{
	memset(t->in, 0, len);
	KUNIT_ASSERT_EQ(t->test, fi_trecv(t->to.ep, t->in, len, NULL,
					  FI_ADDR_UNSPEC, tag, 0, t->in), 0);
}

/* What has been posted for gets a message. */
static void ux_received(struct ux_test *t, u64 tag, size_t len)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_ASSERT_EQ(t->test, ux_comp(&t->to, &entry), 0);
	KUNIT_EXPECT_PTR_EQ(t->test, entry.op_context, (void *)t->in);
	KUNIT_EXPECT_EQ(t->test, entry.len, len);
	KUNIT_EXPECT_EQ(t->test, entry.tag, tag);
	KUNIT_EXPECT_MEMEQ(t->test, t->in, t->out, len);
}

/* Is a message with this tag there? */
static bool ux_peek(struct ux_test *t, u64 tag, u64 flags)
{
	const struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC, .tag = tag, .context = t->in,
	};
	struct fi_cq_tagged_entry entry;
	int err;

	KUNIT_ASSERT_EQ(t->test, fi_trecvmsg(t->to.ep, &msg, FI_PEEK | flags),
			0);
	err = ux_comp(&t->to, &entry);
	KUNIT_EXPECT_TRUE(t->test, !err || err == FI_ENOMSG);
	return !err;
}

/* The next event is that a message has expired. */
static void ux_expired(struct ux_test *t, u64 flags, u64 tag, u64 len)
{
	struct kofi_eq_unexpected ev = {};
	struct kunit *test = t->test;
	u32 event;

	KUNIT_ASSERT_EQ(test, fi_eq_sread(t->to.eq, &event, &ev, sizeof(ev),
					  UX_TIMEOUT, 0), sizeof(ev));
	KUNIT_EXPECT_EQ(test, event, KOFI_UNEXPECTED);
	KUNIT_EXPECT_PTR_EQ(test, ev.entry.fid, &t->to.ep->fid);
	KUNIT_EXPECT_PTR_EQ(test, ev.entry.context, (void *)&t->to);
	KUNIT_EXPECT_EQ(test, ev.entry.data, t->to.peer);
	KUNIT_EXPECT_EQ(test, ev.flags, flags);
	KUNIT_EXPECT_EQ(test, ev.tag, tag);
	KUNIT_EXPECT_EQ(test, ev.len, len);
}

/* The next event is that the connection to the other end was lost. */
static void ux_lost(struct ux_test *t, struct ux_end *e)
{
	struct fi_eq_err_entry bad = {};
	struct kofi_eq_unexpected ev;
	u32 event;

	KUNIT_ASSERT_EQ(t->test, fi_eq_sread(e->eq, &event, &ev, sizeof(ev),
					     UX_TIMEOUT, 0), -FI_EAVAIL);
	KUNIT_ASSERT_EQ(t->test, fi_eq_readerr(e->eq, &bad, 0), sizeof(bad));
	KUNIT_EXPECT_PTR_EQ(t->test, bad.fid, &e->ep->fid);
	KUNIT_EXPECT_PTR_EQ(t->test, bad.context, (void *)e);
	KUNIT_EXPECT_EQ(t->test, bad.data, e->peer);
	KUNIT_EXPECT_GT(t->test, bad.err, 0);
}

static void ux_take_stat(void *arg, const char *name, u64 value)
{
	u64 *expired = arg;

	if (!strcmp(name, "rx_expired"))
		*expired = value;
}

static u64 ux_count(const struct ux_end *e)
{
	struct kofi_obj *obj = e->ep->fid.obj;
	u64 expired = 0;

	obj->ops->stats(obj, ux_take_stat, &expired);
	return expired;
}

static bool ux_native(const struct kunit *test)
{
	return !strcmp(test->param_value, "sock");
}

/* -------------------------------------------------------------------- cases */

/*
 * A tagged message goes, also one whose sender was told that it is there; those
 * behind it, and later ones like it, arrive.
 */
static void ux_discarded(struct kunit *test)
{
	struct ux_test *t = ux_open(test, UX_EXPIRE);
	struct fi_cq_tagged_entry entry;

	ux_post(t, 7, UX_LEN, FI_COMPLETION |
		(ux_native(test) ? FI_DELIVERY_COMPLETE : 0));
	KUNIT_ASSERT_EQ(test, ux_comp(&t->from, &entry), 0);
	ux_recv_post(t, 8, UX_LEN);
	ux_send(t, 8, UX_LEN);
	ux_received(t, 8, UX_LEN);
	ux_expired(t, FI_TAGGED | FI_DISCARD, 7, UX_LEN);
	KUNIT_EXPECT_EQ(test, ux_count(&t->to), 1ULL);
	KUNIT_EXPECT_FALSE(test, ux_peek(t, 7, 0));
	ux_recv_post(t, 7, UX_LEN);
	ux_send(t, 7, UX_LEN / 2);
	ux_received(t, 7, UX_LEN / 2);
}

/* Untagged ones, of which the first holds up the second over kofi_sock */
static void ux_untagged(struct kunit *test)
{
	struct ux_test *t = ux_open(test, UX_EXPIRE);
	struct fi_cq_tagged_entry entry;
	size_t len = SZ_4K;
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, len - i, NULL,
					      t->from.peer, NULL), 0);
		KUNIT_ASSERT_EQ(test, ux_comp(&t->from, &entry), 0);
	}
	for (i = 0; i < 2; i++)
		ux_expired(t, FI_MSG | FI_DISCARD, 0, len - i);
	KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in, len, NULL,
				      FI_ADDR_UNSPEC, t->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, UX_LEN, NULL,
				      t->from.peer, NULL), 0);
	KUNIT_ASSERT_EQ(test, ux_comp(&t->from, &entry), 0);
	ux_received(t, 0, UX_LEN);
}

/* Long ones, which are not stored: the stream goes on, or the rendezvous ends. */
static void ux_long(struct kunit *test)
{
	struct ux_test *t = ux_open(test, UX_EXPIRE);
	struct fi_cq_tagged_entry entry;
	int i;

	ux_recv_post(t, 8, UX_LEN);
	ux_post(t, 7, UX_LONG, FI_COMPLETION);
	ux_post(t, 8, UX_LEN, FI_COMPLETION);
	ux_received(t, 8, UX_LEN);
	ux_expired(t, FI_TAGGED | FI_DISCARD, 7, UX_LONG);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, ux_comp(&t->from, &entry), 0);
	ux_recv_post(t, 7, UX_LONG);
	ux_send(t, 7, UX_LONG);
	ux_received(t, 7, UX_LONG);
	KUNIT_EXPECT_EQ(test, ux_count(&t->to), 1ULL);
}

/* One that is kept for a claim stays, while others go that have come later. */
static void ux_claimed(struct kunit *test)
{
	struct ux_test *t = ux_open(test, UX_EXPIRE);
	struct kvec kv = { .iov_base = t->in, .iov_len = UX_LEN };
	const struct fi_msg_tagged claim = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.tag = 1, .context = t->in,
	};
	int tries = 100;

	ux_send(t, 1, UX_LEN);
	/* it may have gone before */
	while (!ux_peek(t, 1, FI_CLAIM) && tries--) {
		ux_expired(t, FI_TAGGED | FI_DISCARD, 1, UX_LEN);
		ux_send(t, 1, UX_LEN);
	}
	KUNIT_ASSERT_GT(test, tries, 0);
	ux_send(t, 2, UX_LEN);
	ux_expired(t, FI_TAGGED | FI_DISCARD, 2, UX_LEN);
	ux_send(t, 3, UX_LEN);
	ux_expired(t, FI_TAGGED | FI_DISCARD, 3, UX_LEN);
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(t->to.ep, &claim,
					  FI_CLAIM | FI_COMPLETION), 0);
	ux_received(t, 1, UX_LEN);
}

/*
 * Of one that was not stored the sender is not told that it was received: the
 * connection ends, which both ends hear of, and the next message makes another.
 */
static void ux_confirmed(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct ux_test *t;

	if (!ux_native(test))
		kunit_skip(test, "kofi_rxm has no delivery complete");
	t = ux_open(test, UX_EXPIRE);
	ux_post(t, 4, UX_LONG, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	ux_expired(t, FI_TAGGED, 4, UX_LONG);
	KUNIT_EXPECT_GT(test, ux_comp(&t->from, &entry), 0);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)t->out);
	ux_lost(t, &t->from);
	ux_lost(t, &t->to);
	KUNIT_EXPECT_FALSE(test, ux_peek(t, 4, 0));

	ux_recv_post(t, 4, UX_LONG);
	ux_post(t, 4, UX_LONG, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	ux_received(t, 4, UX_LONG);
	KUNIT_EXPECT_EQ(test, ux_comp(&t->from, &entry), 0);
	KUNIT_EXPECT_EQ(test, ux_count(&t->to), 1ULL);
}

/* More than fit into the event queue: half of it are these, and then it overruns. */
static void ux_many(struct kunit *test)
{
	struct ux_test *t = ux_open(test, UX_EXPIRE);
	unsigned long end = jiffies + msecs_to_jiffies(UX_TIMEOUT);
	struct fi_eq_err_entry bad = {};
	struct kofi_eq_unexpected ev;
	u32 event, events = 0;
	u64 tag;

	for (tag = 0; tag < UX_EVENTS; tag++)
		ux_send(t, tag, UX_LEN);
	while (ux_count(&t->to) < UX_EVENTS && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_EQ(test, ux_count(&t->to), (u64)UX_EVENTS);
	while (fi_eq_read(t->to.eq, &event, &ev, sizeof(ev), 0) == sizeof(ev))
		KUNIT_EXPECT_EQ(test, ev.tag, (u64)events++);
	KUNIT_EXPECT_EQ(test, events, UX_EVENTS / 2);
	KUNIT_ASSERT_EQ(test, fi_eq_readerr(t->to.eq, &bad, 0), sizeof(bad));
	KUNIT_EXPECT_EQ(test, bad.err, FI_EOVERRUN);
}

/* An endpoint is closed while its messages are being thrown away. */
static void ux_closed(struct kunit *test)
{
	struct ux_test *t = ux_open(test, 1);
	u64 tag;

	for (tag = 0; tag < 40; tag++)
		ux_send(t, tag, UX_LEN);
}

static void ux_options(struct kunit *test)
{
	struct ux_test *t = ux_alloc(test);
	struct fid_ep *ep;
	size_t value = 0, len = sizeof(value);
	fid_t fid;

	ux_open_end(t, &t->to);
	fid = &t->to.ep->fid;
	KUNIT_ASSERT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					&len), 0);
	KUNIT_EXPECT_EQ(test, value, 0);
	value = (size_t)INT_MAX + 1;
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					len), -EINVAL);
	value = 1000;
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					sizeof(u32)), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					len), 0);
	value = 0;
	KUNIT_ASSERT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					&len), 0);
	KUNIT_EXPECT_EQ(test, value, 1000);
	KUNIT_ASSERT_EQ(test, fi_enable(t->to.ep), 0);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					len), -FI_EOPBADSTATE);

	/* one peer needs no limit: its stream waits */
	if (!ux_native(test))
		return;
	t->info->ep_attr->type = FI_EP_MSG;
	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, t->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &value,
					len), -ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

static struct kunit_case ux_cases[] = {
	KUNIT_CASE_PARAM(ux_discarded, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_untagged, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_long, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_claimed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_confirmed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_many, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_closed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ux_options, rdm_place_gen_params),
	{}
};

static struct kunit_suite ux_suite = {
	.name = "unexpected_timeout",
	.test_cases = ux_cases,
};

kunit_test_suite(ux_suite);
