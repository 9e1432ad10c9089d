// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that no receive is posted for, at an endpoint with
 * KOFI_OPT_UNEXPECTED_TIMEOUT, over each provider of endpoints that do not connect.
 */
#include <linux/sizes.h>

#include "../kunit.h"
#include "pair.h"

#define UX_LEN		64
#define UX_EXPIRE		TEST_LIMIT(30)	/* milliseconds */
#define UX_EVENTS		40		/* of an event queue */

static struct rdm_pair *ux_alloc(struct kunit *test)
{
	return rdm_pair_alloc(test, FI_MSG | FI_TAGGED | FI_SOURCE, RDM_KEYS);
}

/* Two endpoints; messages to the second one wait for EXPIRE milliseconds. */
static struct rdm_pair *ux_open(struct kunit *test, size_t expire)
{
	struct rdm_pair *t = ux_alloc(test);

	rdm_pair_end(t, &t->from, UX_EVENTS, 0, NULL);
	rdm_pair_end(t, &t->to, UX_EVENTS, 0, NULL);
	KUNIT_ASSERT_EQ(test, fi_setopt(&t->to.ep->fid, FI_OPT_ENDPOINT,
					KOFI_OPT_UNEXPECTED_TIMEOUT, &expire,
					sizeof(expire)), 0);
	rdm_pair_enable(t);
	return t;
}

/* --------------------------------------------------------------- operations */

static void ux_post(struct rdm_pair *t, u64 tag, size_t len, u64 flags)
{
	struct kvec kv = { .iov_base = t->out, .iov_len = len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = t->from.peer,
		.tag = tag, .context = t->out,
	};

	KUNIT_ASSERT_EQ(t->test, fi_tsendmsg(t->from.ep, &msg, flags), 0);
}

static void ux_send(struct rdm_pair *t, u64 tag, size_t len)
{
	struct fi_cq_tagged_entry entry;

	ux_post(t, tag, len, FI_COMPLETION);
	KUNIT_ASSERT_EQ(t->test, rdm_comp(&t->from, &entry), 0);
}

static void ux_recv_post(struct rdm_pair *t, u64 tag, size_t len)
{
	memset(t->in, 0, len);
	KUNIT_ASSERT_EQ(t->test, fi_trecv(t->to.ep, t->in, len, NULL,
					  FI_ADDR_UNSPEC, tag, 0, t->in), 0);
}

/* What has been posted for gets a message. */
static void ux_received(struct rdm_pair *t, u64 tag, size_t len)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_ASSERT_EQ(t->test, rdm_comp(&t->to, &entry), 0);
	KUNIT_EXPECT_PTR_EQ(t->test, entry.op_context, (void *)t->in);
	KUNIT_EXPECT_EQ(t->test, entry.len, len);
	KUNIT_EXPECT_EQ(t->test, entry.tag, tag);
	KUNIT_EXPECT_MEMEQ(t->test, t->in, t->out, len);
}

/* Is a message with this tag there? */
static bool ux_peek(struct rdm_pair *t, u64 tag, u64 flags)
{
	const struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC, .tag = tag, .context = t->in,
	};
	struct fi_cq_tagged_entry entry;
	int err;

	KUNIT_ASSERT_EQ(t->test, fi_trecvmsg(t->to.ep, &msg, FI_PEEK | flags),
			0);
	err = rdm_comp(&t->to, &entry);
	KUNIT_EXPECT_TRUE(t->test, !err || err == FI_ENOMSG);
	return !err;
}

/* The next event is that a message has expired. */
static void ux_expired(struct rdm_pair *t, u64 flags, u64 tag, u64 len)
{
	struct kofi_eq_unexpected ev = {};
	struct kunit *test = t->test;
	u32 event;

	KUNIT_ASSERT_EQ(test, fi_eq_sread(t->to.eq, &event, &ev, sizeof(ev),
					  RDM_TIMEOUT, 0), sizeof(ev));
	KUNIT_EXPECT_EQ(test, event, KOFI_UNEXPECTED);
	KUNIT_EXPECT_PTR_EQ(test, ev.entry.fid, &t->to.ep->fid);
	KUNIT_EXPECT_PTR_EQ(test, ev.entry.context, (void *)&t->to);
	KUNIT_EXPECT_EQ(test, ev.entry.data, t->to.peer);
	KUNIT_EXPECT_EQ(test, ev.flags, flags);
	KUNIT_EXPECT_EQ(test, ev.tag, tag);
	KUNIT_EXPECT_EQ(test, ev.len, len);
}

static u64 ux_count(const struct rdm_end *e)
{
	return rdm_fid_stat(&e->ep->fid, "rx_expired");
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
	struct rdm_pair *t = ux_open(test, UX_EXPIRE);
	struct fi_cq_tagged_entry entry;

	ux_post(t, 7, UX_LEN, FI_COMPLETION |
		(ux_native(test) ? FI_DELIVERY_COMPLETE : 0));
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &entry), 0);
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
	struct rdm_pair *t = ux_open(test, UX_EXPIRE);
	struct fi_cq_tagged_entry entry;
	size_t len = SZ_4K;
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, len - i, NULL,
					      t->from.peer, NULL), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &entry), 0);
	}
	for (i = 0; i < 2; i++)
		ux_expired(t, FI_MSG | FI_DISCARD, 0, len - i);
	KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in, len, NULL,
				      FI_ADDR_UNSPEC, t->in), 0);
	KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, UX_LEN, NULL,
				      t->from.peer, NULL), 0);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &entry), 0);
	ux_received(t, 0, UX_LEN);
}

/* Long ones, which are not stored: the stream goes on, or the rendezvous ends. */
static void ux_long(struct kunit *test)
{
	struct rdm_pair *t = ux_open(test, UX_EXPIRE);
	struct fi_cq_tagged_entry entry;
	int i;

	ux_recv_post(t, 8, UX_LEN);
	ux_post(t, 7, RDM_LONG, FI_COMPLETION);
	ux_post(t, 8, UX_LEN, FI_COMPLETION);
	ux_received(t, 8, UX_LEN);
	ux_expired(t, FI_TAGGED | FI_DISCARD, 7, RDM_LONG);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, rdm_comp(&t->from, &entry), 0);
	ux_recv_post(t, 7, RDM_LONG);
	ux_send(t, 7, RDM_LONG);
	ux_received(t, 7, RDM_LONG);
	KUNIT_EXPECT_EQ(test, ux_count(&t->to), 1ULL);
}

/* One that is kept for a claim stays, while others go that have come later. */
static void ux_claimed(struct kunit *test)
{
	struct rdm_pair *t = ux_open(test, UX_EXPIRE);
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
	struct rdm_pair *t;

	if (!ux_native(test))
		kunit_skip(test, "kofi_rxm has no delivery complete");
	t = ux_open(test, UX_EXPIRE);
	ux_post(t, 4, RDM_LONG, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	ux_expired(t, FI_TAGGED, 4, RDM_LONG);
	KUNIT_EXPECT_GT(test, rdm_comp(&t->from, &entry), 0);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)t->out);
	KUNIT_EXPECT_GT(test, rdm_lost(t, &t->from), 0);
	KUNIT_EXPECT_GT(test, rdm_lost(t, &t->to), 0);
	KUNIT_EXPECT_FALSE(test, ux_peek(t, 4, 0));

	ux_recv_post(t, 4, RDM_LONG);
	ux_post(t, 4, RDM_LONG, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	ux_received(t, 4, RDM_LONG);
	KUNIT_EXPECT_EQ(test, rdm_comp(&t->from, &entry), 0);
	KUNIT_EXPECT_EQ(test, ux_count(&t->to), 1ULL);
}

/* More than fit into the event queue: half of it are these, and then it overruns. */
static void ux_many(struct kunit *test)
{
	struct rdm_pair *t = ux_open(test, UX_EXPIRE);
	unsigned long end = jiffies + msecs_to_jiffies(RDM_TIMEOUT);
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
	struct rdm_pair *t = ux_open(test, 1);
	u64 tag;

	for (tag = 0; tag < 40; tag++)
		ux_send(t, tag, UX_LEN);
}

static void ux_options(struct kunit *test)
{
	struct rdm_pair *t = ux_alloc(test);
	struct fid_ep *ep;
	size_t value = 0, len = sizeof(value);
	fid_t fid;

	rdm_pair_end(t, &t->to, 0, 0, NULL);
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

	if (!ux_native(test))
		return;
	/* what does not connect has no private data */
	KUNIT_EXPECT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT,
					FI_OPT_CM_DATA_SIZE, &value, &len),
			-FI_ENOPROTOOPT);
	/* one peer needs no limit: its stream waits */
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
	.name = "rdm_unexpected",
	.suite_init = lo_suite_init,
	.test_cases = ux_cases,
};

kunit_test_suite(ux_suite);
