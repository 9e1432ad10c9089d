// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of a provider that has operations of its own for them, as one with a
 * device has: what the core asks of it, and what it makes of the answers.
 */
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fake.h"
#include "queues.h"

#define OWN_POOL	3UL
#define OWN_SEGS	2UL
#define OWN_MARK	0x6b6f6669
#define OWN_BASE	40U	/* of the first byte: not the consumer's choice */
#define OWN_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define OWN_WAIT	TEST_LIMIT(10 * HZ)

/* What the provider counts, and is told to do */
static struct {
	int			inits;
	int			exits;
	int			opens;
	int			ends;
	size_t			segs;		/* of the last init */
	int			init_err;	/* of the next call each */
	int			open_err;
	int			grow_err;	/* of all that make more */
	int			locked;		/* opened with interrupts off */
	bool			later;		/* fence when the test says so */
	struct kofi_mr		*quick;		/* open: a peer ends it at once */
	bool			quick_ended;
	struct kofi_mr		*ending;
	struct completion	told;		/* of that one */
} own;

/* A region of the provider; larger than the core's, so that steps show. */
struct own_mr {
	struct kofi_mr	base;
	u32		mark;
	u32		key;
};

static struct own_mr *own_of(struct kofi_mr *mr)
{
	return container_of(mr, struct own_mr, base);
}

static int own_init(struct kofi_mr *mr, size_t segs, u64 key)
{
	int err = own.init_err ?: own.grow_err;

	own.init_err = 0;
	if (err)
		return err;
	if (mr->base)
		return -EINVAL;
	own.segs = segs;
	own_of(mr)->mark = OWN_MARK;
	own_of(mr)->key = 0x100 * ++own.inits;
	return 0;
}

static void own_exit(struct kofi_mr *mr)
{
	if (own_of(mr)->mark == OWN_MARK)
		own.exits++;
	own_of(mr)->mark = 0;
}

static int own_open(struct kofi_mr *mr)
{
	int err = own.open_err;

	own.open_err = 0;
	if (err)
		return err;
	own.opens++;
	own.locked += irqs_disabled();
	mr->base = OWN_BASE;
	WRITE_ONCE(mr->mr.key, ++own_of(mr)->key);
	if (mr == own.quick)
		own.quick_ended = kofi_mr_end(mr, own_of(mr)->key, 0,
					      KOFI_REMOTE_INV);
	return 0;
}

static void own_end(struct kofi_mr *mr)
{
	own.ends++;
	if (!own.later) {
		kofi_mr_fenced(mr);
		return;
	}
	own.ending = mr;
	complete(&own.told);
}

static const struct kofi_mr_ops own_ops = {
	.size	= sizeof(struct own_mr),
	.init	= own_init,
	.exit	= own_exit,
	.open	= own_open,
	.end	= own_end,
};

struct own_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;	/* DIRECT, calls back */
	struct fid_ep		*ep;	/* with a pool */
	u8			*mem;
};

/* Where a region's end is reported to */
struct own_end {
	struct kofi_cqe	cqe;
	struct kofi_wc	wc;
	int		calls;
};

static void own_end_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct own_end *end = container_of(wc->cqe, struct own_end, cqe);

	end->wc = *wc;
	end->calls++;
}

static int own_start(struct kunit *test, int mr_mode)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_attr attr = { .size = 4 };
	struct own_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	size_t nr = OWN_POOL, segs = OWN_SEGS;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	memset(&own, 0, sizeof(own));
	init_completion(&own.told);
	t->mem = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->mem);
	t->world = fake_open_mr(test, FI_MR_PROV_KEY | mr_mode);
	container_of(t->world->domain, struct kofi_domain, domain)->mr_ops =
		&own_ops;
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, &attr, &kattr,
					      &t->cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, t));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->cq->fid, FI_TRANSMIT |
					    FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_POOL, &nr, sizeof(nr)));
	KUNIT_ASSERT_EQ(test, 0, fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_SEGS, &segs,
					   sizeof(segs)));
	return 0;
}

static int own_init_test(struct kunit *test)
{
	return own_start(test, 0);
}

static void own_exit_test(struct kunit *test)
{
	struct own_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
	/* all that has been set up, and nothing twice */
	KUNIT_EXPECT_EQ(test, own.inits, own.exits);
	KUNIT_EXPECT_EQ(test, own.opens, own.ends);
}

static int own_map(struct own_test *t, struct fid_mr *mr, void *context,
		   u64 flags)
{
	const struct kvec kv = { t->mem, 100 };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = context,
	};

	return kofi_mr_map(mr, &msg, OWN_ALL, flags);
}

/* Each region of a pool is one of the provider's, set up before it is used. */
static void own_pool_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct fid_mr *mr[OWN_POOL];
	int i;

	fake_connected(test, t->ep);
	KUNIT_EXPECT_EQ(test, (int)OWN_POOL, own.inits);
	KUNIT_EXPECT_EQ(test, OWN_SEGS, own.segs);
	for (i = 0; i < OWN_POOL; i++) {
		struct own_mr *o;

		mr[i] = kofi_mr_get(t->ep);
		KUNIT_ASSERT_NOT_NULL(test, mr[i]);
		o = container_of(mr[i], struct own_mr, base.mr);
		KUNIT_EXPECT_EQ(test, (u32)OWN_MARK, o->mark);
		KUNIT_EXPECT_EQ(test, 0, own_map(t, mr[i], NULL, 0));
		KUNIT_EXPECT_EQ(test, (u64)o->key, fi_mr_key(mr[i]));
		KUNIT_EXPECT_EQ(test, (u64)OWN_BASE, kofi_mr_base(mr[i]));
		KUNIT_EXPECT_EQ(test, 100UL, o->base.len);
		KUNIT_EXPECT_EQ(test, 1U, o->base.nr_segs);
	}
	KUNIT_EXPECT_EQ(test, (int)OWN_POOL, own.opens);
	/* which may take the device a while */
	KUNIT_EXPECT_EQ(test, 0, own.locked);

	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr[0], &end.cqe));
	KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr[0]));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	KUNIT_EXPECT_EQ(test, 0, end.wc.err);
	kofi_mr_put(mr[0]);
	/* the end of the endpoint ends the others */
}

/* Accesses that a device does not tell of complete to nothing. */
static void own_untold_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, kofi_ep_remote_cqe(t->ep, &end.cqe));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_remote_cqe(t->ep, NULL));
}

/* A pool that cannot be made leaves nothing behind, and can be tried again. */
static void own_pool_refused_test(struct kunit *test)
{
	struct own_test *t = test->priv;

	own.init_err = -EINVAL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_enable(t->ep));
	KUNIT_EXPECT_EQ(test, own.inits, own.exits);
	KUNIT_EXPECT_NULL(test, kofi_mr_get(t->ep));
	KUNIT_EXPECT_EQ(test, 0, fi_enable(t->ep));
	KUNIT_EXPECT_EQ(test, own.exits + (int)OWN_POOL, own.inits);
}

/* ------------------------------------- endpoints that share a domain's regions */

#define OWN_MANY	20UL	/* regions an endpoint may have */
#define OWN_KEPT	4	/* of them, reserved for it */

/**
 * struct own_share - endpoints of one domain
 * @ep: these
 * @spaces: write-space callbacks of each
 * @mr: regions each has
 * @nr: number of them
 */
struct own_share {
	struct fid_ep	*ep[2];
	int		spaces[2];
	struct fid_mr	*mr[2][OWN_MANY];
	size_t		nr[2];
};

static void own_space(struct fid_ep *ep, void *context)
{
	(*(int *)context)++;
}

static void own_share_open(struct kunit *test, struct own_share *s)
{
	struct own_test *t = test->priv;
	size_t nr = OWN_MANY;
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain,
						     t->world->info, &s->ep[i],
						     &s->spaces[i]));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep[i], &t->eq->fid, 0));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep[i], &t->cq->fid,
						    FI_TRANSMIT | FI_RECV));
		KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(s->ep[i],
							     own_space));
		KUNIT_ASSERT_EQ(test, 0, fi_setopt(&s->ep[i]->fid,
						   FI_OPT_ENDPOINT,
						   KOFI_OPT_MR_POOL, &nr,
						   sizeof(nr)));
		fake_connected(test, s->ep[i]);
	}
}

/* Take as many as there are. */
static size_t own_share_get(struct own_share *s, int i)
{
	struct fid_mr *mr;

	while ((mr = kofi_mr_get(s->ep[i])))
		s->mr[i][s->nr[i]++] = mr;
	return s->nr[i];
}

static void own_share_put(struct own_share *s, int i)
{
	kofi_mr_put(s->mr[i][--s->nr[i]]);
}

/* The callback that follows a refusal, perhaps from a work item */
static bool own_share_woken(struct own_test *t, struct own_share *s, int i)
{
	const unsigned long end = jiffies + OWN_WAIT;

	while (!s->spaces[i] && time_before(jiffies, end)) {
		kofi_cq_poll(t->cq, 8);
		schedule_timeout_idle(1);
	}
	return s->spaces[i]--;
}

/*
 * There are as many regions as one endpoint may have, and a few for each; more
 * are made when more are wanted at a time, and the endpoint that was refused
 * hears of it.
 */
static void own_share_test(struct kunit *test)
{
	struct own_test *t = test->priv;
	struct own_share s = {};
	int i;

	own_share_open(test, &s);
	KUNIT_EXPECT_EQ(test, (int)OWN_MANY + OWN_KEPT, own.inits);
	KUNIT_EXPECT_EQ(test, OWN_MANY, own_share_get(&s, 0));
	/* with another processor, the work item may have made more already */
	KUNIT_EXPECT_GE(test, own_share_get(&s, 1), (size_t)OWN_KEPT);
	while (s.nr[1] < OWN_MANY) {
		size_t had = s.nr[1];

		KUNIT_ASSERT_TRUE(test, own_share_woken(t, &s, 1));
		KUNIT_ASSERT_GT(test, own_share_get(&s, 1), had);
	}
	KUNIT_EXPECT_EQ(test, 2 * (int)OWN_MANY, own.inits);
	/* each its own: what the other puts is not for one that has all */
	own_share_put(&s, 0);
	KUNIT_EXPECT_EQ(test, OWN_MANY, own_share_get(&s, 1));

	/* those of a closed endpoint are too many now */
	KUNIT_EXPECT_EQ(test, 0, fi_close(&s.ep[0]->fid));
	KUNIT_EXPECT_EQ(test, (int)OWN_MANY, own.exits);
	for (i = 0; i < OWN_MANY; i++)
		KUNIT_EXPECT_EQ(test, 0, own_map(t, s.mr[1][i], NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&s.ep[1]->fid));
	KUNIT_EXPECT_EQ(test, own.inits, own.exits);
}

/* No more can be made: what one puts another gets, and each has its own few. */
static void own_share_full_test(struct kunit *test)
{
	struct own_test *t = test->priv;
	struct own_share s = {};

	own_share_open(test, &s);
	own.grow_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, OWN_MANY, own_share_get(&s, 0));
	own_share_put(&s, 0);
	KUNIT_EXPECT_TRUE(test, own_share_woken(t, &s, 0));
	KUNIT_EXPECT_EQ(test, (size_t)OWN_KEPT + 1, own_share_get(&s, 1));
	KUNIT_EXPECT_EQ(test, OWN_MANY - 1, own_share_get(&s, 0));

	/* one of its own few goes to no other endpoint */
	s.spaces[0] = 0;
	own_share_put(&s, 1);
	own_share_put(&s, 1);
	KUNIT_EXPECT_TRUE(test, own_share_woken(t, &s, 0));
	KUNIT_EXPECT_EQ(test, OWN_MANY, own_share_get(&s, 0));
	KUNIT_EXPECT_EQ(test, (size_t)OWN_KEPT, own_share_get(&s, 1));
	own_share_put(&s, 0);
	KUNIT_EXPECT_TRUE(test, own_share_woken(t, &s, 1));
	KUNIT_EXPECT_EQ(test, (size_t)OWN_KEPT + 1, own_share_get(&s, 1));

	/* and so do all that an endpoint has when it is closed */
	s.spaces[1] = 0;
	KUNIT_EXPECT_EQ(test, 0, fi_close(&s.ep[0]->fid));
	KUNIT_EXPECT_TRUE(test, own_share_woken(t, &s, 1));
	KUNIT_EXPECT_EQ(test, OWN_MANY, own_share_get(&s, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&s.ep[1]->fid));
}

/* A region the device cannot open any more is replaced, at once or later. */
static void own_share_broken_test(struct kunit *test)
{
	struct own_test *t = test->priv;
	struct own_share s = {};
	int i;

	own_share_open(test, &s);
	KUNIT_EXPECT_EQ(test, OWN_MANY, own_share_get(&s, 0));
	KUNIT_EXPECT_GE(test, own_share_get(&s, 1), (size_t)OWN_KEPT);
	if (s.nr[1] < OWN_MANY)
		KUNIT_EXPECT_TRUE(test, own_share_woken(t, &s, 1));
	own.grow_err = -ENOMEM;
	while (s.nr[0]) {
		container_of(s.mr[0][s.nr[0] - 1], struct kofi_mr,
			     mr)->broken = true;
		own_share_put(&s, 0);
	}
	s.spaces[0] = 0;
	for (i = 0; i < 2; i++)
		kofi_cq_poll(t->cq, 8);
	WRITE_ONCE(own.grow_err, 0);
	while (own_share_get(&s, 0) < OWN_MANY)
		KUNIT_ASSERT_TRUE(test, own_share_woken(t, &s, 0));
	for (i = 0; i < OWN_MANY; i++)
		KUNIT_EXPECT_EQ(test, 0, own_map(t, s.mr[0][i], NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&s.ep[0]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&s.ep[1]->fid));
}

/* A region the device does not open is as before, and so is the queue. */
static void own_map_refused_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct fid_mr *mr;
	int i;

	fake_connected(test, t->ep);
	mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	/* oftener than the queue has slots */
	for (i = 0; i < 16; i++) {
		own.open_err = -EAGAIN;
		KUNIT_EXPECT_EQ(test, -EAGAIN, own_map(t, mr, &end.cqe,
						       FI_MR_SINGLE_USE));
		KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	}
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, NULL));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	kofi_mr_put(mr);
}

/* The completion waits for the device. */
static void own_later_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct fid_mr *mr;

	fake_connected(test, t->ep);
	mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	own.later = true;
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, &end.cqe));
	KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(mr, &end.cqe));
	KUNIT_EXPECT_EQ(test, -EBUSY, own_map(t, mr, NULL, 0));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 0, end.calls);

	kofi_mr_fenced(own.ending);
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	own.later = false;
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, NULL, 0));
}

/* The peer's invalidation is the provider's to report. */
static void own_remote_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct kofi_mr *base;
	struct fid_mr *mr;
	u64 key;

	fake_connected(test, t->ep);
	mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	base = container_of(mr, struct kofi_mr, mr);
	KUNIT_EXPECT_FALSE(test, kofi_mr_end(base, FI_KEY_NOTAVAIL, 0,
					     KOFI_REMOTE_INV));
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	key = fi_mr_key(mr);
	KUNIT_EXPECT_FALSE(test, kofi_mr_end(base, key - 1, 0,
					     KOFI_REMOTE_INV));
	KUNIT_EXPECT_TRUE(test, kofi_mr_end(base, key, 0, KOFI_REMOTE_INV));
	KUNIT_EXPECT_FALSE(test, kofi_mr_end(base, key, 0, KOFI_REMOTE_INV));
	KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(mr, NULL));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	KUNIT_EXPECT_EQ(test, KOFI_REMOTE_INV, end.wc.flags);
	KUNIT_EXPECT_EQ(test, key, end.wc.inv_key);
	KUNIT_EXPECT_EQ(test, 1, own.ends);
}

/* An invalidation that comes late does not end the mapping after it. */
static void own_stale_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct kofi_mr *base;
	struct fid_mr *mr;
	u64 key;

	fake_connected(test, t->ep);
	mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	base = container_of(mr, struct kofi_mr, mr);
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, NULL));
	KUNIT_EXPECT_FALSE(test, kofi_mr_end(base, key, 0, KOFI_REMOTE_INV));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	KUNIT_EXPECT_FALSE(test, kofi_mr_end(base, key, 0, KOFI_REMOTE_INV));
	KUNIT_EXPECT_EQ(test, key + 1, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, NULL));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 2, end.calls);
	KUNIT_EXPECT_EQ(test, 0ULL, end.wc.flags);
}

/* A peer that uses the key before kofi_mr_map() has returned ends the region. */
static void own_quick_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct fid_mr *mr;

	fake_connected(test, t->ep);
	mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	own.quick = container_of(mr, struct kofi_mr, mr);
	own.later = true;
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	KUNIT_EXPECT_TRUE(test, own.quick_ended);
	own.later = false;
	if (own.ending)
		kofi_mr_fenced(own.ending);
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	KUNIT_EXPECT_EQ(test, KOFI_REMOTE_INV, end.wc.flags);
	KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(mr, NULL));
	own.quick = NULL;
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, NULL));
	kofi_cq_poll(t->cq, 8);
	KUNIT_EXPECT_EQ(test, 2, end.calls);
}

/* The same while threads map, unmap and invalidate: each ends what it names. */
struct own_race {
	struct fid_mr	*mr;
	bool		stop;
	atomic64_t	ended;		/* by the peer */
};

static int own_race_peer(void *arg)
{
	struct own_race *r = arg;
	struct kofi_mr *mr = container_of(r->mr, struct kofi_mr, mr);
	u64 key = 0;

	while (!READ_ONCE(r->stop)) {
		/* the key of now, or of the mapping before */
		if (kofi_mr_end(mr, key, 0, KOFI_REMOTE_INV))
			atomic64_inc(&r->ended);
		key = READ_ONCE(r->mr->key);
		cond_resched();
	}
	return 0;
}

static void own_race_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	int i, peer = 0, own_ends = 0;
	struct task_struct *task;
	struct own_race r = {};
	u64 key;

	fake_connected(test, t->ep);
	r.mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, r.mr);
	task = fake_thread(test, own_race_peer, &r);
	for (i = 0; i < 20000; i++) {
		if (own_map(t, r.mr, &end.cqe, FI_MR_SINGLE_USE))
			break;
		key = own_of(container_of(r.mr, struct kofi_mr, mr))->key;
		if (i % 16 == 0)
			cond_resched();
		own_ends += !kofi_mr_unmap(r.mr, NULL);
		/* the peer may be about to report what it has ended */
		while (end.calls == i) {
			kofi_cq_poll(t->cq, 8);
			cond_resched();
		}
		if (end.wc.flags != KOFI_REMOTE_INV)
			continue;
		peer++;
		if (end.wc.inv_key != key)
			break;
	}
	WRITE_ONCE(r.stop, true);
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 20000, i);
	KUNIT_EXPECT_EQ(test, i, end.calls);
	KUNIT_EXPECT_EQ(test, i, own_ends + peer);
	KUNIT_EXPECT_EQ(test, (s64)peer, atomic64_read(&r.ended));
}

static int own_drain_thread(void *arg)
{
	kofi_ep_drain(arg);
	return 0;
}

/* Draining maps nothing any more, and waits for what the device still has. */
static void own_drain_test(struct kunit *test)
{
	struct own_end end = { .cqe.done = own_end_done };
	struct own_test *t = test->priv;
	struct task_struct *task;
	struct fid_mr *mr, *idle;

	fake_connected(test, t->ep);
	mr = kofi_mr_get(t->ep);
	idle = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_NOT_NULL(test, idle);
	own.later = true;
	KUNIT_EXPECT_EQ(test, 0, own_map(t, mr, &end.cqe, FI_MR_SINGLE_USE));
	task = fake_thread(test, own_drain_thread, t->ep);
	KUNIT_ASSERT_NE(test, 0UL, wait_for_completion_timeout(&own.told,
							       OWN_WAIT));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, own_map(t, idle, NULL, 0));
	KUNIT_EXPECT_NULL(test, kofi_mr_get(t->ep));
	KUNIT_EXPECT_EQ(test, 0, READ_ONCE(end.calls));
	/* the provider's drain has come first */
	KUNIT_EXPECT_EQ(test, 1, fake_of(t->ep)->drains);

	kofi_mr_fenced(own.ending);
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	KUNIT_EXPECT_EQ(test, ECANCELED, end.wc.err);
}

static void own_stat(void *arg, const char *name, u64 value)
{
	if (!strcmp(name, "reads") || !strcmp(name, "len"))
		(*(int *)arg)++;
}

static int own_reg(struct own_test *t, u64 base, struct fid_mr **mr)
{
	const struct kvec kv = { t->mem, 100 };
	const struct fi_mr_attr attr = {
		.mr_iov = &kv, .iov_count = 1, .access = OWN_ALL, .base = base,
	};

	return fi_mr_regattr(t->world->domain, &attr, 0, mr);
}

/* Registration: each step can fail, and what was done is undone. */
static void own_reg_test(struct kunit *test)
{
	struct own_test *t = test->priv;
	struct kofi_mr *base;
	struct fid_mr *mr;
	int stats = 0;

	own.init_err = -EOPNOTSUPP;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, own_reg(t, 0, &mr));
	KUNIT_EXPECT_EQ(test, 0, own.inits);
	KUNIT_EXPECT_EQ(test, -EINVAL, own_reg(t, 1, &mr));
	own.open_err = -ENOTCONN;
	KUNIT_EXPECT_EQ(test, -ENOTCONN, own_reg(t, 0, &mr));
	KUNIT_EXPECT_EQ(test, 1, own.inits);
	KUNIT_EXPECT_EQ(test, 1, own.exits);
	KUNIT_EXPECT_EQ(test, 0, own.ends);

	KUNIT_ASSERT_EQ(test, 0, own_reg(t, 0, &mr));
	KUNIT_EXPECT_EQ(test, 1UL, own.segs);
	KUNIT_EXPECT_EQ(test, (u64)OWN_BASE, kofi_mr_base(mr));
	base = container_of(mr, struct kofi_mr, mr);
	base->obj.ops->stats(&base->obj, own_stat, &stats);
	/* len, and not what the provider does not see */
	KUNIT_EXPECT_EQ(test, 1, stats);
	KUNIT_EXPECT_EQ(test, 0, fi_mr_enable(mr));
	KUNIT_EXPECT_EQ(test, 1, own.opens);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	KUNIT_EXPECT_EQ(test, 1, own.ends);
}

static int own_close_thread(void *arg)
{
	struct fid_mr *mr = arg;

	return fi_close(&mr->fid);
}

/* fi_close() waits until the region is fenced. */
static void own_close_test(struct kunit *test)
{
	struct own_test *t = test->priv;
	struct task_struct *task;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, 0, own_reg(t, 0, &mr));
	own.later = true;
	task = fake_thread(test, own_close_thread, mr);
	KUNIT_ASSERT_NE(test, 0UL, wait_for_completion_timeout(&own.told,
							       OWN_WAIT));
	KUNIT_EXPECT_EQ(test, 0, own.exits);
	kofi_mr_fenced(own.ending);
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 1, own.exits);
}

static struct kunit_case own_cases[] = {
	KUNIT_CASE(own_pool_test),
	KUNIT_CASE(own_untold_test),
	KUNIT_CASE(own_pool_refused_test),
	KUNIT_CASE(own_share_test),
	KUNIT_CASE(own_share_full_test),
	KUNIT_CASE(own_share_broken_test),
	KUNIT_CASE(own_map_refused_test),
	KUNIT_CASE(own_later_test),
	KUNIT_CASE(own_remote_test),
	KUNIT_CASE(own_stale_test),
	KUNIT_CASE(own_quick_test),
	KUNIT_CASE(own_race_test),
	KUNIT_CASE(own_drain_test),
	KUNIT_CASE(own_reg_test),
	KUNIT_CASE(own_close_test),
	{}
};

struct kunit_suite kofi_mr_ops_suite = {
	.name		= "kofi_mr_ops",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= own_init_test,
	.exit		= own_exit_test,
	.test_cases	= own_cases,
};

/* -------------------------------------------- regions bound to an endpoint */

static int own_init_bound(struct kunit *test)
{
	return own_start(test, FI_MR_ENDPOINT);
}

/* Enabling may fail, and then be tried again; closing is possible always. */
static void own_enable_test(struct kunit *test)
{
	struct own_test *t = test->priv;
	struct fid_mr *mr, *never;

	fake_connected(test, t->ep);
	KUNIT_ASSERT_EQ(test, 0, own_reg(t, 0, &mr));
	KUNIT_ASSERT_EQ(test, 0, own_reg(t, 0, &never));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_mr_enable(mr));
	KUNIT_EXPECT_EQ(test, 0, fi_mr_bind(mr, &t->ep->fid, 0));
	own.open_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, -ENOMEM, fi_mr_enable(mr));
	KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, 0, fi_mr_enable(mr));
	KUNIT_EXPECT_NE(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, 1, own.opens);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&never->fid));
	KUNIT_EXPECT_EQ(test, 0, own.ends);
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
}

static struct kunit_case own_bound_cases[] = {
	KUNIT_CASE(own_enable_test),
	{}
};

struct kunit_suite kofi_mr_ops_bound_suite = {
	.name		= "kofi_mr_ops_bound",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= own_init_bound,
	.exit		= own_exit_test,
	.test_cases	= own_bound_cases,
};
