// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pools of memory regions, single-use regions, hard interrupts. */
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/kofi/backport.h>

#include "mr_test.h"

/* ------------------------------------------------------------------ pools */

static void mr_option_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	static const struct {
		const char	*name;
		int		opt;
		size_t		value;
		size_t		len;
		int		ret;
	} options[] = {
		{ "pool", KOFI_OPT_MR_POOL, 3, sizeof(size_t), 0 },
		{ "segments", KOFI_OPT_MR_SEGS, 5, sizeof(size_t), 0 },
		{ "no segments", KOFI_OPT_MR_SEGS, 0, sizeof(size_t),
		  -EINVAL },
		{ "short", KOFI_OPT_MR_POOL, 3, sizeof(u32), -FI_ETOOSMALL },
		{ "too many", KOFI_OPT_MR_POOL, 65537, sizeof(size_t), -EINVAL },
		{ "no pool", KOFI_OPT_MR_POOL, 0, sizeof(size_t), 0 },
	};
	size_t value, len = sizeof(value);
	struct fid_ep *ep;
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_POOL, &value, &len));
	KUNIT_EXPECT_EQ(test, (size_t)0, value);
	KUNIT_EXPECT_EQ(test, 0, fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_SEGS, &value, &len));
	KUNIT_EXPECT_EQ(test, (size_t)KOFI_IOV_MAX, value);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		KUNIT_EXPECT_EQ_MSG(test, options[i].ret,
				    fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					      options[i].opt, &options[i].value,
					      options[i].len), "%s",
				    options[i].name);
		if (options[i].ret)
			continue;
		KUNIT_EXPECT_EQ(test, 0, fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
						   options[i].opt, &value,
						   &len));
		KUNIT_EXPECT_EQ(test, options[i].value, value);
	}
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->cq->fid, FI_TRANSMIT |
					    FI_RECV));
	KUNIT_EXPECT_NULL(test, kofi_mr_get(ep));

	/* Too much is refused; so is a pool for an endpoint that fails. */
	value = 2;
	KUNIT_EXPECT_EQ(test, 0, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_POOL, &value, len));
	value = SIZE_MAX / 2;
	KUNIT_EXPECT_EQ(test, 0, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_SEGS, &value, len));
	KUNIT_EXPECT_EQ(test, -ENOMEM, fi_enable(ep));
	value = 2;
	KUNIT_EXPECT_EQ(test, 0, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_SEGS, &value, len));
	fake_fail_next(-ENETDOWN);
	KUNIT_EXPECT_EQ(test, -ENETDOWN, fi_enable(ep));
	KUNIT_EXPECT_NULL(test, kofi_mr_get(ep));
	KUNIT_EXPECT_EQ(test, 0, fi_enable(ep));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			fi_setopt(&ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
				  &value, len));
	KUNIT_EXPECT_NOT_NULL(test, kofi_mr_get(ep));
	KUNIT_EXPECT_EQ(test, 1ULL, mr_stat_of(&fake_of(ep)->base.obj,
					       "mr_free"));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));	/* one is still out */
	KUNIT_EXPECT_NULL(test, kofi_mr_get(NULL));
	KUNIT_EXPECT_NULL(test, kofi_mr_get(t->other));
}

static void mr_pool_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct fid_mr *mr[MR_POOL], *first;
	struct kvec iov[MR_SEGS + 1];
	struct fi_msg vec = { .msg_iov = iov, .iov_count = 1 };
	struct mr_end end;
	u8 byte = 0;
	u64 key;
	int i;

	mr_end_init(&end);
	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct kvec) { t->mem + 8 * i, 4 };

	for (i = 0; i < MR_POOL; i++) {
		mr[i] = kofi_mr_get(t->ep);
		KUNIT_ASSERT_NOT_NULL(test, mr[i]);
		KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr[i]));
	}
	/* Empty: write space follows when one comes back. */
	KUNIT_EXPECT_NULL(test, kofi_mr_get(t->ep));
	kofi_cq_poll(t->cq, 10);
	KUNIT_EXPECT_EQ(test, 0, t->spaces);
	kofi_mr_put(mr[2]);
	kofi_mr_put(mr[0]);
	kofi_cq_poll(t->cq, 10);
	KUNIT_EXPECT_EQ(test, 1, t->spaces);
	/* The one that has been back for longest comes first. */
	KUNIT_EXPECT_PTR_EQ(test, mr[2], kofi_mr_get(t->ep));
	KUNIT_EXPECT_PTR_EQ(test, mr[0], kofi_mr_get(t->ep));

	first = mr[0];
	KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(first, &end.cqe));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_map(first, NULL, MR_ALL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_map(NULL, &vec, MR_ALL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_map(first, &vec, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_map(first, &vec, FI_ATOMIC, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			kofi_mr_map(first, &vec, MR_ALL, FI_FENCE));
	vec.iov_count = MR_SEGS + 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_map(first, &vec, MR_ALL, 0));
	vec.iov_count = MR_SEGS;
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_map(first, &vec, MR_ALL, 0));
	key = fi_mr_key(first);
	KUNIT_EXPECT_EQ(test, -EBUSY, kofi_mr_map(first, &vec, MR_ALL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_close(&first->fid));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_bind(first, &t->ep->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_enable(first));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->ep, key, MR_SEGS * 4 - 1,
						 &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, -EACCES, fake_peer_write(t->ep, key, MR_SEGS * 4,
						       &byte, 1, 1));
	/* It is this endpoint's alone. */
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(t->other, key, 0, &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_unmap(first, NULL));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(first, &end.cqe));
	KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(first));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(t->ep, key, 0, &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(first, &end.cqe));
	KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 10));
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	KUNIT_EXPECT_EQ(test, 0, end.wc.err);
	KUNIT_EXPECT_EQ(test, 0ULL, end.wc.flags);

	/* A new key each time, in the same slot */
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_map(first, &vec, MR_ALL, 0));
	KUNIT_EXPECT_NE(test, key, fi_mr_key(first));
	KUNIT_EXPECT_EQ(test, (u32)key, (u32)fi_mr_key(first));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(t->ep, key, 0, &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->ep, fi_mr_key(first), 0,
						 &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, 1ULL, mr_stat_of(&fake_of(t->ep)->base.obj,
					       "mr_mapped"));
	KUNIT_EXPECT_EQ(test, 2ULL, mr_stat_of(&fake_of(t->ep)->base.obj,
					       "mr_maps"));
	KUNIT_EXPECT_EQ(test, 2ULL, mr_stat_of(&fake_of(t->ep)->base.obj,
					       "mr_writes"));
	KUNIT_EXPECT_EQ(test, 1ULL, mr_stat_of(&fake_of(t->ep)->base.obj,
					       "mr_refused"));

	/* The end of the endpoint ends it, without a completion: none was asked for. */
	kofi_ep_drain(t->ep);
	KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(t->cq, 10));
	KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(first, &end.cqe));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, kofi_mr_map(first, &vec, MR_ALL, 0));
	kofi_mr_put(first);
	KUNIT_EXPECT_NULL(test, kofi_mr_get(t->ep));
	KUNIT_EXPECT_EQ(test, 1, end.calls);
}

/* Without a slot of the queue nothing is accepted; write space follows. */
static void mr_slots_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kvec iov = { t->mem, MR_SIZE };
	struct fi_msg vec = { .msg_iov = &iov, .iov_count = 1 };
	struct kofi_ep *base = &fake_of(t->ep)->base;
	struct fid_mr *mr = kofi_mr_get(t->ep);
	struct fid_ep *ep;
	struct mr_end end;
	size_t pool = 1;
	int n = 0;

	mr_end_init(&end);
	vec.context = &end.cqe;
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_map(mr, &vec, MR_ALL, 0));
	while (!kofi_ep_tx_reserve(base, NULL))
		n++;
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_mr_unmap(mr, &end.cqe));
	KUNIT_EXPECT_NE(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	kofi_ep_tx_unreserve(base);
	kofi_cq_poll(t->cq, 10);
	KUNIT_EXPECT_EQ(test, 1, t->spaces);
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, &end.cqe));

	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_mr_map(mr, &vec, MR_ALL,
						   FI_MR_SINGLE_USE));
	KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	kofi_cq_poll(t->cq, 10);	/* frees the slot of the unmapping */
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	KUNIT_EXPECT_EQ(test, 2, t->spaces);
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_map(mr, &vec, MR_ALL,
					     FI_MR_SINGLE_USE));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, NULL));
	kofi_cq_poll(t->cq, 10);
	KUNIT_EXPECT_EQ(test, 2, end.calls);
	kofi_mr_put(mr);
	while (--n)
		kofi_ep_tx_unreserve(base);

	/* No queue to report to at all */
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_POOL, &pool,
					   sizeof(pool)));
	fake_of(ep)->base.info->caps = FI_MSG | FI_RECV;
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->cq->fid, FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, fi_enable(ep));
	mr = kofi_mr_get(ep);
	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, kofi_mr_map(mr, &vec, MR_ALL,
						     FI_MR_SINGLE_USE));
	KUNIT_EXPECT_EQ(test, 0, kofi_mr_map(mr, &vec, MR_ALL, 0));
	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, kofi_mr_unmap(mr, &end.cqe));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
}

/* ----------------------------------------------------------------- single-use */

enum {
	MR_END_READ, MR_END_WRITE, MR_END_INV, MR_END_UNMAP, MR_END_DRAIN,
	MR_END_NR
};

static const struct {
	const char	*name;
	int		err;
	u64		flags;
} mr_ends[MR_END_NR] = {
	[MR_END_READ] = { "read", 0, FI_RMA | FI_REMOTE_READ },
	[MR_END_WRITE] = { "write", 0, FI_RMA | FI_REMOTE_WRITE },
	[MR_END_INV] = { "invalidated", 0, KOFI_REMOTE_INV },
	[MR_END_UNMAP] = { "unmapped", 0, 0 },
	[MR_END_DRAIN] = { "drained", ECANCELED, 0 },
};

/* Do it; 0 if that ended the region. */
static int mr_end_try(struct fid_ep *ep, struct fid_mr *mr, u64 key, int how)
{
	u8 buf[8] = {};

	switch (how) {
	case MR_END_READ:
		return fake_peer_read(ep, key, 0, buf, sizeof(buf), 3);
	case MR_END_WRITE:
		return fake_peer_write(ep, key, 0, buf, sizeof(buf), 3);
	case MR_END_INV:
		return kofi_mr_invalidate(&fake_of(ep)->base, key);
	case MR_END_UNMAP:
		return kofi_mr_unmap(mr, NULL);
	default:
		kofi_ep_drain(ep);
		return 0;
	}
}

static void mr_oneshot_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kvec iov = { t->mem, MR_SIZE };
	struct mr_end end;
	struct fi_msg vec = {
		.msg_iov = &iov, .iov_count = 1, .context = &end.cqe,
	};
	struct kofi_target begun;
	struct fid_ep *ep;
	struct fid_mr *mr;
	int how, then, ret;
	u64 key;

	for (how = 0; how < MR_END_NR; how++) {
		const char *name = mr_ends[how].name;

		ep = mr_endpoint(test, 1, 1);
		mr = kofi_mr_get(ep);
		mr_end_init(&end);
		KUNIT_ASSERT_EQ(test, 0, kofi_mr_map(mr, &vec, MR_ALL,
						     FI_MR_SINGLE_USE));
		key = fi_mr_key(mr);
		/* What has only begun, or is refused, does not end it. */
		KUNIT_EXPECT_EQ(test, 0,
				fake_peer_begin(ep, &begun, key, 0, 8,
						FI_REMOTE_WRITE));
		KUNIT_EXPECT_EQ(test, -EACCES,
				fake_peer_read(ep, key, MR_SIZE, t->mem, 1, 1));
		KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
				kofi_mr_invalidate(&fake_of(t->ep)->base, key));
		KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_unmap(mr, &end.cqe));
		KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(t->cq, 10));
		KUNIT_EXPECT_EQ(test, key, fi_mr_key(mr));

		ret = mr_end_try(ep, mr, key, how);
		KUNIT_EXPECT_EQ_MSG(test, 0, ret, "%s", name);
		KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
		KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
				fake_peer_place(ep, &begun, t->mem, 1));
		for (then = 0; then < MR_END_DRAIN; then++)
			KUNIT_EXPECT_NE_MSG(test, 0,
					    mr_end_try(ep, mr, key, then),
					    "%s, then %s", name,
					    mr_ends[then].name);
		kofi_cq_poll(t->cq, 10);
		KUNIT_EXPECT_EQ_MSG(test, 1, end.calls, "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, mr_ends[how].err, end.wc.err, "%s",
				    name);
		KUNIT_EXPECT_EQ_MSG(test, mr_ends[how].flags, end.wc.flags,
				    "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, how == MR_END_INV ? key : 0,
				    end.wc.inv_key, "%s", name);
		kofi_mr_put(mr);
		KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
		kofi_cq_poll(t->cq, 10);
		KUNIT_EXPECT_EQ_MSG(test, 1, end.calls, "%s", name);
	}

	/* Nothing at all, but complete */
	mr = kofi_mr_get(t->ep);
	mr_end_init(&end);
	vec.iov_count = 0;
	KUNIT_ASSERT_EQ(test, 0, kofi_mr_map(mr, &vec, FI_REMOTE_WRITE,
					     FI_MR_SINGLE_USE));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->ep, fi_mr_key(mr), 0, NULL,
						 0, 1));
	kofi_cq_poll(t->cq, 10);
	KUNIT_EXPECT_EQ(test, 1, end.calls);
	kofi_mr_put(mr);

	/* Registered: it ends in the same way, and is closed. */
	mr = mr_reg(test, MR_ALL, FI_MR_SINGLE_USE);
	key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, 0, mr_end_try(t->ep, mr, key, MR_END_READ));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED, mr_end_try(t->ep, mr, key,
							MR_END_READ));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	mr = mr_reg(test, MR_ALL, FI_MR_SINGLE_USE);
	KUNIT_EXPECT_EQ(test, 0, mr_end_try(t->ep, mr, fi_mr_key(mr),
					    MR_END_INV));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	mr = mr_reg(test, MR_ALL, FI_MR_SINGLE_USE);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(t->cq, 10));
}

/* The end is reported once the access under way is over. */
static void mr_fence_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kvec iov = { t->mem, MR_SIZE };
	struct mr_end end;
	struct fi_msg vec = {
		.msg_iov = &iov, .iov_count = 1, .context = &end.cqe,
	};
	struct kofi_ep *base = &fake_of(t->ep)->base;
	struct fid_mr *mr = kofi_mr_get(t->ep);
	struct kofi_target target;
	struct iov_iter iter;
	int once;

	for (once = 0; once <= 1; once++) {
		mr_end_init(&end);
		KUNIT_ASSERT_EQ(test, 0,
				kofi_mr_map(mr, &vec, MR_ALL,
					    once ? FI_MR_SINGLE_USE : 0));
		KUNIT_EXPECT_EQ(test, 0, kofi_target_init(&target, base,
							  fi_mr_key(mr), 0, 9,
							  FI_REMOTE_READ));
		KUNIT_ASSERT_TRUE(test, kofi_target_get(&target, base, &iter));
		KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, once ? NULL :
						       &end.cqe));
		kofi_cq_poll(t->cq, 10);
		KUNIT_EXPECT_EQ(test, 0, end.calls);
		KUNIT_EXPECT_EQ(test, -EBUSY, kofi_mr_map(mr, &vec, MR_ALL, 0));
		KUNIT_EXPECT_EQ(test, -EALREADY, kofi_mr_unmap(mr, &end.cqe));
		kofi_target_drop(&target);
		kofi_cq_poll(t->cq, 10);
		KUNIT_EXPECT_EQ(test, 1, end.calls);
	}
	kofi_mr_put(mr);
}

struct mr_race {
	struct fid_ep	*ep;
	struct fid_mr	*mr;
	u64		key;
	atomic_t	gate;
	int		how;
	atomic_t	won;
};

static int mr_race(void *arg)
{
	struct mr_race *race = arg;

	atomic_dec(&race->gate);
	while (atomic_read(&race->gate))
		cond_resched();
	if (!mr_end_try(race->ep, race->mr, race->key, race->how))
		atomic_inc(&race->won);
	return 0;
}

/* In either order: one end, one completion, and it says which. */
static void mr_oneshot_race_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kvec iov = { t->mem, MR_SIZE };
	struct mr_end end;
	struct fi_msg vec = {
		.msg_iov = &iov, .iov_count = 1, .context = &end.cqe,
	};
	struct fid_mr *mr = kofi_mr_get(t->ep);
	struct task_struct *task;
	struct mr_race race;
	int i, mine;

	for (i = 0; i < MR_RACES; i++) {
		mr_end_init(&end);
		KUNIT_ASSERT_EQ(test, 0, kofi_mr_map(mr, &vec, MR_ALL,
						     FI_MR_SINGLE_USE));
		race = (struct mr_race) {
			.ep = t->ep, .mr = mr, .key = fi_mr_key(mr),
			.gate = ATOMIC_INIT(2),
			.how = i % MR_END_DRAIN,
		};
		mine = i / MR_END_DRAIN % MR_END_DRAIN;
		task = fake_thread(test, mr_race, &race);
		atomic_dec(&race.gate);
		while (atomic_read(&race.gate))
			cond_resched();
		if (!mr_end_try(t->ep, mr, race.key, mine))
			atomic_inc(&race.won);
		fake_join(task);
		/* Both may have got to the end of an access. */
		KUNIT_EXPECT_GE(test, atomic_read(&race.won), 1);
		kofi_cq_poll(t->cq, 10);
		KUNIT_EXPECT_EQ(test, 1, end.calls);
		KUNIT_EXPECT_EQ(test, 0, end.wc.err);
		KUNIT_EXPECT_TRUE(test,
				  end.wc.flags == mr_ends[mine].flags ||
				  end.wc.flags == mr_ends[race.how].flags);
	}
	kofi_mr_put(mr);
}

/* ---------------------------------------------------------- hard interrupts */

#define MR_TICKS	20

struct mr_atomic {
	struct hrtimer		timer;
	struct fid_ep		*ep;
	struct kvec		iov;
	struct sk_buff		*skb;
	struct kofi_cqe		cqe[2];	/* single-use, unmapped */
	struct fid_mr		*mr[2];
	atomic_t		left;
	struct completion	done;
	int			wrong;
};

/* In a softirq: give it back. */
static void mr_atomic_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct mr_atomic *a = container_of(cq->fid.context, struct mr_atomic,
					   ep);
	bool once = wc->cqe == &a->cqe[0];

	a->wrong += wc->err ||
		    wc->flags != (once ? FI_RMA | FI_REMOTE_WRITE : 0);
	kofi_mr_put(a->mr[once ? 0 : 1]);
	if (atomic_dec_and_test(&a->left))
		complete(&a->done);
}

/* A region's whole life but its end */
static enum hrtimer_restart mr_atomic_tick(struct hrtimer *timer)
{
	struct mr_atomic *a = container_of(timer, struct mr_atomic, timer);
	struct kofi_ep *base = &fake_of(a->ep)->base;
	struct fi_msg vec = {
		.msg_iov = &a->iov, .iov_count = 1, .context = &a->cqe[0],
	};
	struct kofi_skb_part from;
	struct kofi_target target;
	int i;

	for (i = 0; i < 2; i++) {
		a->mr[i] = kofi_mr_get(a->ep);
		if (!a->mr[i] || kofi_mr_map(a->mr[i], &vec, MR_ALL,
					     i ? 0 : FI_MR_SINGLE_USE)) {
			a->wrong++;
			complete(&a->done);
			return HRTIMER_NORESTART;
		}
	}
	a->wrong += !in_hardirq();
	a->wrong += !!kofi_target_init(&target, base, fi_mr_key(a->mr[0]), 1,
				       a->skb->len, FI_REMOTE_WRITE);
	kofi_skb_part_init(&from, a->skb, 0, a->skb->len);
	a->wrong += !!kofi_target_copy_from_skb(&target, base, &from,
						a->skb->len);
	kofi_target_done(&target, base, FI_REMOTE_WRITE);
	a->wrong += !!kofi_mr_unmap(a->mr[1], &a->cqe[1]);
	return HRTIMER_NORESTART;
}

static void mr_atomic_test(struct kunit *test)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	struct mr_test *t = test->priv;
	struct fid_cq *direct = t->cq;
	struct mr_atomic a = {
		.iov = { t->mem, MR_SIZE },
		.cqe = { { mr_atomic_done }, { mr_atomic_done } },
	};
	int i;

	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL, &kattr,
					      &t->cq, &a.ep));
	a.ep = mr_endpoint(test, 2, 1);
	a.skb = alloc_skb(100, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, a.skb);
	memset(skb_put(a.skb, 100), 0x77, 100);
	init_completion(&a.done);
	hrtimer_setup_on_stack(&a.timer, mr_atomic_tick, CLOCK_MONOTONIC,
			       HRTIMER_MODE_REL_HARD);

	for (i = 0; i < MR_TICKS && !a.wrong; i++) {
		memset(t->mem, 0, MR_SIZE);
		atomic_set(&a.left, 2);
		hrtimer_start(&a.timer, ns_to_ktime(10000), HRTIMER_MODE_REL_HARD);
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&a.done,
								    TEST_LIMIT(10 * HZ)));
		KUNIT_EXPECT_NULL(test, memchr_inv(t->mem + 1, 0x77, 100));
		KUNIT_EXPECT_EQ(test, 0, t->mem[0]);
		KUNIT_EXPECT_EQ(test, 0, t->mem[101]);
	}
	hrtimer_cancel(&a.timer);
	destroy_hrtimer_on_stack(&a.timer);
	KUNIT_EXPECT_EQ(test, 0, a.wrong);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&a.ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	t->cq = direct;
	kfree_skb(a.skb);
}

static struct kunit_case mr_pool_cases[] = {
	KUNIT_CASE(mr_option_test),
	KUNIT_CASE(mr_pool_test),
	KUNIT_CASE(mr_slots_test),
	KUNIT_CASE(mr_oneshot_test),
	KUNIT_CASE(mr_fence_test),
	KUNIT_CASE(mr_oneshot_race_test),
	KUNIT_CASE(mr_atomic_test),
	{}
};

struct kunit_suite kofi_mr_pool_suite = {
	.name		= "kofi_mr_pool",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= mr_test_init,
	.exit		= mr_test_exit,
	.test_cases	= mr_pool_cases,
};
