// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two endpoints that do not connect, of one domain, with their queues, addresses and
 * memory: given back when the test ends, wherever that is.
 */
#include <linux/in.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <linux/kofi/provider.h>

#include "pair.h"

static void rdm_close_fid(struct kunit *test, struct fi_fid *fid)
{
	if (fid)
		KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
}

void rdm_close_end(struct kunit *test, struct rdm_end *e)
{
	rdm_close_fid(test, e->ep ? &e->ep->fid : NULL);
	rdm_close_fid(test, e->cq ? &e->cq->fid : NULL);
	rdm_close_fid(test, e->av ? &e->av->fid : NULL);
	rdm_close_fid(test, e->eq ? &e->eq->fid : NULL);
	*e = (struct rdm_end) {};
}

static void rdm_pair_close(void *arg)
{
	struct rdm_pair *t = arg;

	rdm_close_end(t->test, &t->from);
	rdm_close_end(t->test, &t->to);
	rdm_close_fid(t->test, t->domain ? &t->domain->fid : NULL);
	rdm_close_fid(t->test, t->fabric ? &t->fabric->fid : NULL);
	fi_freeinfo(t->info);
	kvfree(t->out);
	kvfree(t->in);
	kfree(t);
}

/* A domain at the case's place, and memory */
struct rdm_pair *rdm_pair_alloc(struct kunit *test, u64 caps, int mr_mode)
{
	struct rdm_pair *t = kzalloc(sizeof(*t), GFP_KERNEL);
	struct fi_info *hints;
	int i, err;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdm_pair_close,
							t), 0);
	t->out = kvmalloc(RDM_LONG, GFP_KERNEL);
	t->in = kvmalloc(RDM_LONG, GFP_KERNEL);
	hints = fi_allocinfo();
	KUNIT_ASSERT_TRUE(test, t->out && t->in && hints);
	for (i = 0; i < RDM_LONG; i++)
		t->out[i] = i * 7 + i / 256;
	hints->caps = caps;
	hints->domain_attr->mr_mode = mr_mode;
	err = rdm_place_getinfo(test, hints, &t->info);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, fi_fabric(t->info->fabric_attr, &t->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(t->fabric, t->info, &t->domain, NULL),
			0);
	return t;
}

/*
 * One of the endpoints, with room for so many events and completions, 0 for the default;
 * or with a queue of the caller's, which becomes the end's. Not enabled.
 */
void rdm_pair_end(struct rdm_pair *t, struct rdm_end *e, size_t events,
		  size_t slots, struct fid_cq *cq)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC,
		.size = slots,
	};
	struct fi_eq_attr eq = { .size = events, .wait_obj = FI_WAIT_UNSPEC };
	struct kunit *test = t->test;

	e->cq = cq;
	KUNIT_ASSERT_EQ(test, fi_eq_open(t->fabric, &eq, &e->eq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_av_open(t->domain, &(struct fi_av_attr) {},
					 &e->av, NULL), 0);
	if (!cq)
		KUNIT_ASSERT_EQ(test, fi_cq_open(t->domain, &attr, &e->cq,
						 NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, t->info, &e->ep, e), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(e->ep, &e->cq->fid,
					 FI_TRANSMIT | FI_RECV), 0);
}

static void rdm_name(struct rdm_pair *t, struct rdm_end *of, struct rdm_end *at)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(t->test, fi_getname(&of->ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(t->test, fi_av_insert(at->av, &name, 1, &at->peer, 0,
					      NULL), 1);
}

/* Both, and each knows the other. */
void rdm_pair_enable(struct rdm_pair *t)
{
	KUNIT_ASSERT_EQ(t->test, fi_enable(t->from.ep), 0);
	KUNIT_ASSERT_EQ(t->test, fi_enable(t->to.ep), 0);
	rdm_name(t, &t->from, &t->to);
	rdm_name(t, &t->to, &t->from);
}

/* The next completion of a queue: 0 or its error */
int rdm_comp(struct rdm_end *e, struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry bad = {};
	ssize_t n = fi_cq_sread(e->cq, entry, 1, NULL, RDM_TIMEOUT);

	if (n != -FI_EAVAIL)
		return n == 1 ? 0 : n ?: -EIO;
	if (fi_cq_readerr(e->cq, &bad, 0) < 0)
		return -EIO;
	entry->op_context = bad.op_context;
	entry->tag = bad.tag;
	return bad.err;
}

/* The next event is that the connection to the other end was lost: the reason */
int rdm_lost(struct rdm_pair *t, struct rdm_end *e)
{
	struct fi_eq_err_entry bad = {};
	struct kofi_eq_unexpected ev;
	u32 event;

	KUNIT_ASSERT_EQ(t->test, fi_eq_sread(e->eq, &event, &ev, sizeof(ev),
					     RDM_TIMEOUT, 0), -FI_EAVAIL);
	KUNIT_ASSERT_EQ(t->test, fi_eq_readerr(e->eq, &bad, 0), sizeof(bad));
	KUNIT_EXPECT_PTR_EQ(t->test, bad.fid, &e->ep->fid);
	KUNIT_EXPECT_PTR_EQ(t->test, bad.context, (void *)e);
	KUNIT_EXPECT_EQ(t->test, bad.data, e->peer);
	return bad.err;
}

struct rdm_fid_stat {
	const char	*name;
	u64		value;
};

static void rdm_take_stat(void *arg, const char *name, u64 value)
{
	struct rdm_fid_stat *s = arg;

	if (!strcmp(name, s->name))
		s->value = value;
}

/* What "kofi stat" shows of an object; 0 for what there is not */
u64 rdm_fid_stat(const struct fi_fid *fid, const char *name)
{
	struct rdm_fid_stat s = { .name = name };

	fid->obj->ops->stats(fid->obj, rdm_take_stat, &s);
	return s.value;
}
