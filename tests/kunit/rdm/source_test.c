// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages whose sender is not in the address vector, over each provider of endpoints
 * that do not connect: what FI_SOURCE_ERR makes of their completions.
 */
#include <linux/completion.h>
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/sizes.h>
#include <linux/wait.h>

#include "../kunit.h"
#include "pair.h"

#define SR_CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_MULTI_RECV)
#define SR_TAG		0x1234
#define SR_PART		1000	/* bytes of a message for a multi-receive */
#define SR_PARTS	4
#define SR_CLOSES	5
#define SR_OTHERS	1000

/* A pair of which only one end knows the other */
static struct rdm_pair *sr_alloc(struct kunit *test, u64 caps)
{
	return rdm_pair_alloc(test, SR_CAPS | caps, RDM_KEYS);
}

static void sr_enable(struct rdm_pair *t)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(t->test, fi_enable(t->from.ep), 0);
	KUNIT_ASSERT_EQ(t->test, fi_enable(t->to.ep), 0);
	KUNIT_ASSERT_EQ(t->test, fi_getname(&t->to.ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(t->test, fi_av_insert(t->from.av, &name, 1,
					      &t->from.peer, 0, NULL), 1);
}

static struct rdm_pair *sr_open(struct kunit *test, u64 caps)
{
	struct rdm_pair *t = sr_alloc(test, caps);

	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	sr_enable(t);
	return t;
}

/* Bytes from the one to the other, which has posted a receive of @room */
static void sr_send(struct rdm_pair *t, bool tagged, size_t len, size_t room)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	memset(t->in, 0, RDM_LONG);
	ret = tagged ? fi_trecv(t->to.ep, t->in, room, NULL, FI_ADDR_UNSPEC,
				SR_TAG, 0, t->in) :
		       fi_recv(t->to.ep, t->in, room, NULL, FI_ADDR_UNSPEC,
			       t->in);
	KUNIT_ASSERT_EQ(t->test, ret, 0);
	ret = tagged ? fi_tsend(t->from.ep, t->out, len, NULL, t->from.peer,
				SR_TAG, t->out) :
		       fi_send(t->from.ep, t->out, len, NULL, t->from.peer,
			       t->out);
	KUNIT_ASSERT_EQ(t->test, ret, 0);
	KUNIT_ASSERT_EQ(t->test, rdm_comp(&t->from, &e), 0);
}

/* The next completion of the other end is an error. */
static void sr_error(struct rdm_pair *t, struct fi_cq_err_entry *e)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_ASSERT_EQ(t->test, fi_cq_sread(t->to.cq, &entry, 1, NULL,
					     RDM_TIMEOUT), -FI_EAVAIL);
	KUNIT_ASSERT_EQ(t->test, fi_cq_readerr(t->to.cq, e, 0), 1);
}

/* It is that of a message of the first end, all of which has been received. */
static void sr_check(struct rdm_pair *t, const struct fi_cq_err_entry *e,
		     u64 flags, size_t len)
{
	struct sockaddr_in name = {};
	size_t size = sizeof(name);

	KUNIT_ASSERT_EQ(t->test, fi_getname(&t->from.ep->fid, &name, &size), 0);
	KUNIT_EXPECT_EQ(t->test, e->err, FI_EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(t->test, e->flags, flags);
	KUNIT_EXPECT_EQ(t->test, e->len, len);
	KUNIT_EXPECT_EQ(t->test, e->olen, 0);
	KUNIT_EXPECT_EQ(t->test, e->src_addr, FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_EQ(t->test, e->tag, flags & FI_TAGGED ? SR_TAG : 0);
	KUNIT_ASSERT_EQ(t->test, e->err_data_size, size);
	KUNIT_EXPECT_MEMEQ(t->test, e->err_data, (void *)&name, size);
	KUNIT_EXPECT_MEMEQ(t->test, t->in, t->out, len);
}

static void sr_success(struct rdm_pair *t, fi_addr_t want)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	KUNIT_ASSERT_EQ(t->test, fi_cq_sreadfrom(t->to.cq, &e, 1, &src, NULL,
						 RDM_TIMEOUT), 1);
	KUNIT_EXPECT_EQ(t->test, src, want);
}

static struct fid_cntr *sr_count(struct rdm_pair *t)
{
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(t->test, fi_cntr_open(t->domain, NULL, &cntr, NULL), 0);
	KUNIT_ASSERT_EQ(t->test, fi_ep_bind(t->to.ep, &cntr->fid, FI_RECV), 0);
	return cntr;
}

/*
 * The receive is consumed and the message counted as any other; what is in the entry
 * can be inserted, and then the sender has a name.
 */
static void sr_messages(struct kunit *test)
{
	static const size_t lens[] = { 0, 64, SZ_16K, RDM_LONG };
	struct rdm_pair *t = sr_alloc(test, FI_SOURCE_ERR);
	struct fi_cq_err_entry e = {};
	struct fid_cntr *cntr;
	struct sockaddr_in at;
	fi_addr_t peer;
	int i, n = 0;

	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	cntr = sr_count(t);
	sr_enable(t);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++, n++) {
		sr_send(t, i & 1, lens[i / 2], RDM_LONG);
		/* in turn a copy of the queue's, and the caller's memory */
		e = (struct fi_cq_err_entry) {
			.err_data = &at, .err_data_size = i & 2 ? sizeof(at) : 0,
		};
		sr_error(t, &e);
		KUNIT_EXPECT_EQ(test, e.err_data == &at, !!(i & 2));
		sr_check(t, &e, FI_RECV | (i & 1 ? FI_TAGGED : FI_MSG),
			 lens[i / 2]);
	}
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), (u64)n);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr), 0);

	/* no more than there is room for */
	sr_send(t, false, 64, 64);
	memset(&at, 0xee, sizeof(at));
	e = (struct fi_cq_err_entry) { .err_data = &at, .err_data_size = 4 };
	sr_error(t, &e);
	KUNIT_EXPECT_EQ(test, e.err, FI_EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(test, e.err_data_size, 4);
	KUNIT_EXPECT_EQ(test, ((u8 *)&at)[4], 0xee);
	/* another error is more than that */
	sr_send(t, false, 64, 10);
	e = (struct fi_cq_err_entry) {};
	sr_error(t, &e);
	KUNIT_EXPECT_EQ(test, e.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, e.err_data_size, 0);

	sr_send(t, true, 64, 64);
	sr_error(t, &e);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->to.av, e.err_data, 1, &peer, 0,
					   NULL), 1);
	sr_send(t, false, 64, 64);
	sr_success(t, peer);
	KUNIT_ASSERT_EQ(test, fi_av_remove(t->to.av, &peer, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&t->to.ep->fid), 0);
	t->to.ep = NULL;
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), 0);
}

/* Until the message that has been sent waits for a receive */
static void sr_waits(struct rdm_pair *t)
{
	unsigned long end = jiffies + msecs_to_jiffies(RDM_TIMEOUT);

	while (!rdm_fid_stat(&t->to.ep->fid, "rx_stalls") &&
	       !rdm_fid_stat(&t->to.ep->fid, "rx_unexpected") &&
	       time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
}

/*
 * A sender that is inserted while its message waits has a name from then on: for
 * completions, and for receives that are meant for it.
 */
static void sr_inserted_with(struct kunit *test, u64 caps, bool tagged)
{
	struct rdm_pair *t = sr_open(test, caps);
	struct fi_cq_tagged_entry done;
	struct sockaddr_in name;
	size_t len = sizeof(name);
	fi_addr_t peer;
	ssize_t ret;

	ret = tagged ? fi_tsend(t->from.ep, t->out, RDM_LONG, NULL,
				t->from.peer, SR_TAG, t->out) :
		       fi_send(t->from.ep, t->out, 64, NULL, t->from.peer,
			       t->out);
	KUNIT_ASSERT_EQ(test, ret, 0);
	sr_waits(t);
	KUNIT_ASSERT_EQ(test, fi_getname(&t->from.ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->to.av, &name, 1, &peer, 0, NULL),
			1);
	ret = tagged ? fi_trecv(t->to.ep, t->in, RDM_LONG, NULL, peer, SR_TAG,
				0, t->in) :
		       fi_recv(t->to.ep, t->in, 64, NULL, peer, t->in);
	KUNIT_ASSERT_EQ(test, ret, 0);
	sr_success(t, peer);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &done), 0);
	KUNIT_EXPECT_MEMEQ(test, t->in, t->out, tagged ? RDM_LONG : 64);
}

static void sr_inserted(struct kunit *test)
{
	sr_inserted_with(test, FI_SOURCE_ERR, false);
}

static void sr_inserted_directed(struct kunit *test)
{
	sr_inserted_with(test, FI_DIRECTED_RECV, false);
}

static void sr_inserted_long(struct kunit *test)
{
	sr_inserted_with(test, FI_DIRECTED_RECV | FI_SOURCE_ERR, true);
}

struct sr_inserter {
	struct fid_av		*av;
	struct completion	begun;
	fi_addr_t		got[SR_OTHERS];
};

/* Others are inserted and removed, again and again; it takes them some time. */
static int sr_insert_thread(void *arg)
{
	struct sr_inserter *s = arg;
	int err = 0;

	while (!kthread_should_stop()) {
		complete(&s->begun);
		if (fi_av_insertsym(s->av, rdm_place_address(), 1, "1000",
				    SR_OTHERS, s->got, 0, NULL) != SR_OTHERS ||
		    fi_av_remove(s->av, s->got, SR_OTHERS, 0))
			err = -EIO;
		cond_resched();
	}
	return err;
}

/* Insertions while an endpoint is closed look at no connection that has gone. */
static void sr_inserted_closing(struct kunit *test)
{
	struct rdm_pair *t = sr_alloc(test, FI_SOURCE_ERR);
	struct sr_inserter *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct task_struct *task;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < SR_CLOSES; i++) {
		rdm_pair_end(t, &t->from, 0, 0, NULL);
		rdm_pair_end(t, &t->to, 0, 0, NULL);
		sr_enable(t);
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, 64, NULL,
					      t->from.peer, t->out), 0);
		sr_waits(t);
		s->av = t->to.av;
		init_completion(&s->begun);
		task = kthread_run(sr_insert_thread, s, "sr_insert");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		wait_for_completion(&s->begun);
		KUNIT_EXPECT_EQ(test, fi_close(&t->to.ep->fid), 0);
		KUNIT_EXPECT_EQ(test, kthread_stop(task), 0);
		t->to.ep = NULL;
		rdm_close_end(test, &t->to);
		rdm_close_end(test, &t->from);
	}
}

/* Without the capability they are successes without a source. */
static void sr_without(struct kunit *test)
{
	struct rdm_pair *t = sr_open(test, 0);
	int i;

	KUNIT_EXPECT_EQ(test, t->info->caps & FI_SOURCE_ERR, 0);
	for (i = 0; i < 2; i++) {
		sr_send(t, i, 64, 64);
		sr_success(t, FI_ADDR_NOTAVAIL);
	}
}

/* Parts of a multi-receive */
static void sr_multi(struct kunit *test)
{
	struct rdm_pair *t = sr_open(test, FI_SOURCE_ERR);
	const struct kvec kv = { t->in, SR_PARTS * SR_PART };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = t,
		.addr = FI_ADDR_UNSPEC,
	};
	struct fi_cq_tagged_entry done;
	struct fi_cq_err_entry e;
	int i;

	KUNIT_ASSERT_EQ(test, fi_recvmsg(t->to.ep, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < SR_PARTS; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, SR_PART, NULL,
					      t->from.peer, t), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &done), 0);
		e = (struct fi_cq_err_entry) {};
		sr_error(t, &e);
		sr_check(t, &e, FI_RECV | FI_MSG |
			 (i == SR_PARTS - 1 ? FI_MULTI_RECV : 0), SR_PART);
		KUNIT_EXPECT_PTR_EQ(test, e.buf, (void *)(t->in + i * SR_PART));
	}
}

/* Remote CQ data takes no receive, but has a sender as well. */
static void sr_data(struct kunit *test)
{
	struct rdm_pair *t = sr_open(test, FI_SOURCE_ERR);
	struct fi_cq_tagged_entry done;
	struct fi_cq_err_entry e = {};
	struct fid_mr *mr;

	if (!t->info->domain_attr->cq_data_size)
		kunit_skip(test, "the device has no remote CQ data");
	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, t->in, RDM_LONG,
					FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_writedata(t->from.ep, t->out, 100, NULL, 7,
					   t->from.peer, kofi_mr_base(mr),
					   fi_mr_key(mr), t), 0);
	KUNIT_EXPECT_EQ(test, rdm_comp(&t->from, &done), 0);
	sr_error(t, &e);
	/* where the key is known it is in the place of the tag */
	e.tag = 0;
	sr_check(t, &e, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, 100);
	KUNIT_EXPECT_EQ(test, e.data, 7);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* --------------------------------------------------------------- callbacks */

struct sr_done {
	struct kofi_cqe		cqe;
	wait_queue_head_t	wq;
	struct kofi_wc		wc;
	struct sockaddr_in	from;
	int			calls;
};

static void sr_called(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct sr_done *d = container_of(wc->cqe, struct sr_done, cqe);

	d->wc = *wc;
	if (wc->err == FI_EADDRNOTAVAIL && wc->from)
		memcpy(&d->from, wc->from, sizeof(d->from));
	WRITE_ONCE(d->calls, d->calls + 1);
	wake_up(&d->wq);
}

/* On a queue that calls back the address is there for as long as the call. */
static void sr_calls(struct kunit *test)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	struct rdm_pair *t = sr_alloc(test, FI_SOURCE_ERR);
	struct sr_done *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct sockaddr_in name = {};
	struct fi_cq_attr attr = {};
	size_t len = sizeof(name);
	struct fid_cq *cq;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->cqe.done = sr_called;
	init_waitqueue_head(&d->wq);
	KUNIT_ASSERT_EQ(test, kofi_cq_open(t->domain, &attr, &kattr, &cq, NULL),
			0);
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, cq);
	sr_enable(t);
	KUNIT_ASSERT_EQ(test, fi_getname(&t->from.ep->fid, &name, &len), 0);
	for (i = 1; i <= 5; i++) {
		memset(t->in, 0, RDM_LONG);
		memset(&d->from, 0, sizeof(d->from));
		KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in, RDM_LONG, NULL,
					      FI_ADDR_UNSPEC, &d->cqe), 0);
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out, 100 * i, NULL,
					      t->from.peer, t), 0);
		KUNIT_ASSERT_GT(test, wait_event_timeout(d->wq,
							 READ_ONCE(d->calls) == i,
							 msecs_to_jiffies(RDM_TIMEOUT)),
				0);
		KUNIT_EXPECT_EQ(test, d->wc.err, FI_EADDRNOTAVAIL);
		KUNIT_EXPECT_EQ(test, d->wc.flags, FI_RECV | FI_MSG);
		KUNIT_EXPECT_EQ(test, d->wc.len, 100 * i);
		KUNIT_EXPECT_EQ(test, d->wc.src, FI_ADDR_NOTAVAIL);
		KUNIT_EXPECT_MEMEQ(test, (void *)&d->from, (void *)&name, len);
		KUNIT_EXPECT_MEMEQ(test, t->in, t->out, 100 * i);
	}
	/* its callbacks use what is freed before it is closed otherwise */
	rdm_close_end(test, &t->to);
}

/* It comes with FI_SOURCE, and to who asks for it. */
static void sr_info(struct kunit *test)
{
	static const struct {
		u64	caps;
		int	err;
	} asks[] = {
		{ FI_MSG | FI_SOURCE_ERR, -ENODATA },
		{ FI_MSG | FI_SOURCE | FI_SOURCE_ERR, 0 },
		{ FI_MSG | FI_SOURCE, 0 },
	};
	struct fi_info *hints, *info;
	int i, err;

	for (i = 0; i < ARRAY_SIZE(asks); i++) {
		hints = fi_allocinfo();
		KUNIT_ASSERT_NOT_NULL(test, hints);
		hints->caps = asks[i].caps;
		hints->domain_attr->mr_mode = RDM_KEYS;
		err = rdm_place_getinfo(test, hints, &info);
		fi_freeinfo(hints);
		KUNIT_EXPECT_EQ_MSG(test, err, asks[i].err, "%d", i);
		if (err)
			continue;
		KUNIT_EXPECT_EQ(test, info->caps & FI_SOURCE_ERR,
				asks[i].caps & FI_SOURCE_ERR);
		KUNIT_EXPECT_EQ(test, info->rx_attr->caps & FI_SOURCE_ERR,
				asks[i].caps & FI_SOURCE_ERR);
		fi_freeinfo(info);
	}
}

static struct kunit_case sr_cases[] = {
	KUNIT_CASE_PARAM(sr_info, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_messages, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_inserted, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_inserted_directed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_inserted_long, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_inserted_closing, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_without, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_multi, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_data, rdm_place_gen_params),
	KUNIT_CASE_PARAM(sr_calls, rdm_place_gen_params),
	{}
};

static struct kunit_suite sr_suite = {
	.name = "rdm_source",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.test_cases = sr_cases,
};

kunit_test_suite(sr_suite);
