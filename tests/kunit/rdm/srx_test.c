// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A shared receive context of endpoints that do not connect, over each provider of
 * them: messages to any of the endpoints take its receives.
 */
#include <linux/in.h>
#include <linux/sizes.h>

#include "../kunit.h"
#include "pair.h"

#define SRX_LEN		64
#define SRX_EXPIRE	TEST_LIMIT(30)	/* milliseconds */

/* t->from sends; t->to and this one have the same receives. */
struct srx_shared {
	struct rdm_pair	*t;
	struct fid_ep	*srx;
	struct rdm_end	to;
	fi_addr_t	peer[2];	/* what t->from calls the two */
};

static void srx_close(void *arg)
{
	struct srx_shared *s = arg;

	rdm_close_end(s->t->test, &s->to);
	if (s->t->to.ep)
		KUNIT_EXPECT_EQ(s->t->test, fi_close(&s->t->to.ep->fid), 0);
	s->t->to.ep = NULL;
	if (s->srx)
		KUNIT_EXPECT_EQ(s->t->test, fi_close(&s->srx->fid), 0);
}

static void srx_expire(struct rdm_pair *t, struct rdm_end *e, size_t ms)
{
	KUNIT_ASSERT_EQ(t->test, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_UNEXPECTED_TIMEOUT, &ms,
					   sizeof(ms)), 0);
}

/* With one completion queue for all that is received, and times of their own */
static struct srx_shared *srx_open(struct kunit *test, size_t size,
				   size_t first_ms, size_t second_ms)
{
	struct srx_shared *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct fi_rx_attr attr = { .size = size };
	struct sockaddr_in name;
	size_t len = sizeof(name);
	struct rdm_pair *t;

	KUNIT_ASSERT_NOT_NULL(test, s);
	t = rdm_pair_alloc(test, FI_MSG | FI_TAGGED | FI_SOURCE, RDM_KEYS);
	s->t = t;
	KUNIT_EXPECT_GT(test, t->info->domain_attr->max_ep_srx_ctx, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, srx_close, s), 0);
	KUNIT_ASSERT_EQ(test, fi_srx_context(t->domain, &attr, &s->srx, s), 0);
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	rdm_pair_end(t, &s->to, 0, 0, t->to.cq);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(t->to.ep, &s->srx->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(s->to.ep, &s->srx->fid, 0), 0);
	s->to.cq = NULL;
	srx_expire(t, &t->to, first_ms);
	srx_expire(t, &s->to, second_ms);
	rdm_pair_enable(t);
	s->peer[0] = t->from.peer;
	KUNIT_ASSERT_EQ(test, fi_enable(s->to.ep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&s->to.ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->from.av, &name, 1, &s->peer[1], 0,
					   NULL), 1);
	return s;
}

static void srx_send(struct srx_shared *s, int to, u64 tag, size_t len)
{
	struct rdm_pair *t = s->t;

	KUNIT_ASSERT_EQ(t->test, fi_tsend(t->from.ep, t->out, len, NULL,
					  s->peer[to], tag, t->out), 0);
}

static void srx_sent(struct srx_shared *s)
{
	struct fi_cq_tagged_entry e;

	KUNIT_ASSERT_EQ(s->t->test, rdm_comp(&s->t->from, &e), 0);
}

static void srx_post(struct srx_shared *s, u64 tag, size_t len)
{
	struct rdm_pair *t = s->t;

	memset(t->in, 0, len);
	KUNIT_ASSERT_EQ(t->test, fi_trecv(s->srx, t->in, len, NULL,
					  FI_ADDR_UNSPEC, tag, 0, t->in), 0);
}

static void srx_received(struct srx_shared *s, u64 tag, size_t len)
{
	struct fi_cq_tagged_entry e;

	KUNIT_ASSERT_EQ(s->t->test, rdm_comp(&s->t->to, &e), 0);
	KUNIT_EXPECT_PTR_EQ(s->t->test, e.op_context, (void *)s->t->in);
	KUNIT_EXPECT_EQ(s->t->test, e.tag, tag);
	KUNIT_EXPECT_EQ(s->t->test, e.len, len);
	KUNIT_EXPECT_MEMEQ(s->t->test, s->t->in, s->t->out, len);
}

/* Before and after the receive, in all sizes, to either of them */
static void srx_messages(struct kunit *test)
{
	static const size_t lens[] = { 0, SRX_LEN, SZ_16K + 1, RDM_LONG };
	struct srx_shared *s = srx_open(test, 8, 0, 0);
	int i, to, late;

	for (i = 0; i < 4 * ARRAY_SIZE(lens); i++) {
		size_t len = lens[i / 4];

		to = i & 1;
		late = i & 2;
		if (!late)
			srx_post(s, i, len);
		srx_send(s, to, i, len);
		if (late)
			srx_post(s, i, len);
		srx_received(s, i, len);
		srx_sent(s);
	}
	KUNIT_EXPECT_EQ(test, fi_recv(s->t->to.ep, s->t->in, 1, NULL,
				      FI_ADDR_UNSPEC, NULL), -ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_close(&s->srx->fid), -EBUSY);
}

/* As many receives as it has been opened for; one is not taken by what has another tag. */
static void srx_limits(struct kunit *test)
{
	struct srx_shared *s = srx_open(test, 2, 0, 0);
	struct rdm_pair *t = s->t;
	struct fi_cq_tagged_entry e;
	int i;

	for (i = 1; i <= 2; i++)
		KUNIT_ASSERT_EQ(test, fi_trecv(s->srx, t->in, SRX_LEN, NULL,
					       FI_ADDR_UNSPEC, i, 0, t->in), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(s->srx, t->in, SRX_LEN, NULL,
				       FI_ADDR_UNSPEC, 3, 0, t->in), -EAGAIN);
	/* the second one's before the first one's */
	srx_send(s, 1, 2, SRX_LEN);
	srx_received(s, 2, SRX_LEN);
	srx_send(s, 0, 1, SRX_LEN);
	srx_received(s, 1, SRX_LEN);
	for (i = 0; i < 2; i++)
		srx_sent(s);
	KUNIT_EXPECT_EQ(test, fi_cq_read(t->to.cq, &e, 1), -EAGAIN);
}

/* The messages of an endpoint go with it; receives and the other's stay. */
static void srx_one_closed(struct kunit *test)
{
	struct srx_shared *s = srx_open(test, 8, 0, 0);
	int i;

	srx_post(s, 99, SRX_LEN);
	for (i = 0; i < 8; i++)
		srx_send(s, i & 1, i & 1, SRX_LEN);
	for (i = 0; i < 8; i++)
		srx_sent(s);
	rdm_close_end(test, &s->to);
	srx_send(s, 0, 99, SRX_LEN);
	srx_received(s, 99, SRX_LEN);
	srx_sent(s);
	for (i = 0; i < 4; i++) {
		srx_post(s, 0, SRX_LEN);
		srx_received(s, 0, SRX_LEN);
	}
}

/* Each endpoint's messages wait as long as it says, whichever came first. */
static void srx_unequal(struct kunit *test)
{
	struct srx_shared *s = srx_open(test, 8, TEST_LIMIT(3600 * 1000),
					SRX_EXPIRE);
	struct kofi_eq_unexpected ev;
	u32 event;

	srx_send(s, 0, 1, SRX_LEN);
	srx_sent(s);
	srx_send(s, 1, 2, SRX_LEN);
	srx_sent(s);
	KUNIT_ASSERT_EQ(test, fi_eq_sread(s->to.eq, &event, &ev, sizeof(ev),
					  RDM_TIMEOUT, 0), sizeof(ev));
	KUNIT_EXPECT_EQ(test, event, KOFI_UNEXPECTED);
	KUNIT_EXPECT_EQ(test, ev.tag, 2);
	srx_post(s, 1, SRX_LEN);
	srx_received(s, 1, SRX_LEN);
}

static struct kunit_case srx_cases[] = {
	KUNIT_CASE_PARAM(srx_messages, rdm_place_gen_params),
	KUNIT_CASE_PARAM(srx_limits, rdm_place_gen_params),
	KUNIT_CASE_PARAM(srx_one_closed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(srx_unequal, rdm_place_gen_params),
	{}
};

static struct kunit_suite srx_suite = {
	.name = "rdm_srx",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.test_cases = srx_cases,
};

kunit_test_suite(srx_suite);
