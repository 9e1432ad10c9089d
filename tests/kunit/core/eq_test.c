// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event queues: reading, errors, user events, overrun, purge, handler. */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "fake.h"
#include "queues.h"

/* An event that is not part of its object; counts those that exist. */
struct eq_event {
	struct kofi_event	ev;
	atomic_t		*alive;
};

static void eq_event_release(struct kofi_event *ev)
{
	struct eq_event *event = container_of(ev, struct eq_event, ev);

	atomic_dec(event->alive);
	kfree(event);
}

struct eq_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct kofi_eq		*keq;	/* as providers see it */
	struct fid_ep		*ep;	/* bound to it */
	atomic_t		alive;
};

static void eq_open(struct kunit *test, struct fi_eq_attr *attr)
{
	struct eq_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, attr, &t->eq,
					    t));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, "ep context"));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	t->keq = fake_of(t->ep)->base.eq;
}

static void eq_close(struct kunit *test)
{
	struct eq_test *t = test->priv;

	if (t->ep)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->alive));
}

static void eq_queue(struct kunit *test, const struct kofi_event *ev)
{
	struct eq_test *t = test->priv;
	struct eq_event *event = kzalloc(sizeof(*event), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, event);
	event->ev = *ev;
	event->ev.release = eq_event_release;
	event->alive = &t->alive;
	atomic_inc(&t->alive);
	kofi_eq_queue(t->keq, &event->ev);
}

static int eq_init(struct kunit *test)
{
	struct eq_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	return 0;
}

static void eq_exit(struct kunit *test)
{
	struct eq_test *t = test->priv;

	fake_close(test, t->world);
}

/* ----------------------------------------------------------------- opening */

static const struct {
	const char		*name;
	struct fi_eq_attr	attr;
	int			ret;
} eq_attrs[] = {
	{ "defaults", {}, 0 },
	{ "write", { .flags = FI_WRITE }, 0 },
	{ "unspecified wait", { .wait_obj = FI_WAIT_UNSPEC }, 0 },
	{ "wait queue", { .wait_obj = (enum fi_wait_obj)KOFI_WAIT_QUEUE }, 0 },
	{ "affinity", { .flags = FI_AFFINITY }, 0 },
	{ "affinity to no CPU",
	  { .flags = FI_AFFINITY, .signaling_vector = -1 }, -EINVAL },
	{ "affinity beyond the last CPU",
	  { .flags = FI_AFFINITY, .signaling_vector = INT_MAX }, -EINVAL },
	{ "vector without affinity", { .signaling_vector = -1 }, 0 },
	{ "unknown flag", { .flags = FI_READ }, -FI_EBADFLAGS },
	{ "file descriptor", { .wait_obj = FI_WAIT_FD }, -ENOSYS },
	{ "no wait set", { .wait_obj = FI_WAIT_SET }, -EINVAL },
	{ "mutex and condition", { .wait_obj = FI_WAIT_MUTEX_COND }, -ENOSYS },
	{ "yield", { .wait_obj = FI_WAIT_YIELD }, 0 },
	{ "poll descriptor", { .wait_obj = FI_WAIT_POLLFD }, -ENOSYS },
	{ "no wait object at all", { .wait_obj = (enum fi_wait_obj)99 },
	  -EINVAL },
};

static void eq_open_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	struct fi_eq_attr attr;
	struct fid_eq *eq;
	int i;

	for (i = 0; i < ARRAY_SIZE(eq_attrs); i++) {
		attr = eq_attrs[i].attr;
		KUNIT_EXPECT_EQ_MSG(test, eq_attrs[i].ret,
				    fi_eq_open(t->world->fabric, &attr, &eq, t),
				    "%s", eq_attrs[i].name);
		if (eq_attrs[i].ret)
			continue;
		KUNIT_EXPECT_EQ(test, (size_t)FI_CLASS_EQ, eq->fid.fclass);
		KUNIT_EXPECT_PTR_EQ(test, (void *)t, eq->fid.context);
		KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_open(NULL, NULL, &eq, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_eq_open(t->world->fabric, NULL, NULL, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &eq, NULL));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->world->fabric->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
}

static void eq_control_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	static const int objs[] = {
		FI_WAIT_NONE, FI_WAIT_UNSPEC, KOFI_WAIT_QUEUE,
	};
	wait_queue_head_t *wait;
	enum fi_wait_obj obj;
	int i;

	for (i = 0; i < ARRAY_SIZE(objs); i++) {
		struct fi_eq_attr attr = {
			.wait_obj = (enum fi_wait_obj)objs[i],
		};

		eq_open(test, &attr);
		wait = NULL;
		KUNIT_EXPECT_EQ(test, objs[i] == KOFI_WAIT_QUEUE ? 0 : -ENODATA,
				fi_control(&t->eq->fid, FI_GETWAIT, &wait));
		KUNIT_EXPECT_EQ(test, objs[i] == KOFI_WAIT_QUEUE, !!wait);
		KUNIT_EXPECT_EQ(test, 0, fi_control(&t->eq->fid, FI_GETWAITOBJ,
						    &obj));
		KUNIT_EXPECT_EQ(test, objs[i], (int)obj);
		KUNIT_EXPECT_EQ(test, -EINVAL,
				fi_control(&t->eq->fid, FI_GETWAITOBJ, NULL));
		KUNIT_EXPECT_EQ(test, -ENOSYS,
				fi_control(&t->eq->fid, FI_BACKLOG, &i));
		eq_close(test);
	}
}

/* ----------------------------------------------------------------- reading */

static const struct {
	const char	*name;
	u32		event;
	size_t		data_len;
	size_t		space;
	ssize_t		ret;
} eq_reads[] = {
	{ "notice", FI_NOTIFY, 0, 64, sizeof(struct fi_eq_entry) },
	{ "notice, just enough", FI_NOTIFY, 0, sizeof(struct fi_eq_entry),
	  sizeof(struct fi_eq_entry) },
	{ "notice, one byte short", FI_NOTIFY, 0,
	  sizeof(struct fi_eq_entry) - 1, -FI_ETOOSMALL },
	{ "notice, no space", FI_NOTIFY, 0, 0, -FI_ETOOSMALL },
	{ "registration", FI_MR_COMPLETE, 0, 64, sizeof(struct fi_eq_entry) },
	{ "shutdown", FI_SHUTDOWN, 0, 64, sizeof(struct fi_eq_cm_entry) },
	{ "connected, with data", FI_CONNECTED, 20, 64,
	  sizeof(struct fi_eq_cm_entry) + 20 },
	{ "connected, most data", FI_CONNECTED, 256, 300,
	  sizeof(struct fi_eq_cm_entry) + 256 },
	{ "connected, data cut", FI_CONNECTED, 20,
	  sizeof(struct fi_eq_cm_entry) + 5,
	  sizeof(struct fi_eq_cm_entry) + 5 },
	{ "connected, no space for data", FI_CONNECTED, 20,
	  sizeof(struct fi_eq_cm_entry), sizeof(struct fi_eq_cm_entry) },
	{ "connected, one byte short", FI_CONNECTED, 20,
	  sizeof(struct fi_eq_cm_entry) - 1, -FI_ETOOSMALL },
	{ "request, one byte short", FI_CONNREQ, 20,
	  sizeof(struct fi_eq_cm_entry) - 1, -FI_ETOOSMALL },
};

#define EQ_BUF	300

static void eq_read_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	u8 *data, *buf;
	int i, j;

	data = kunit_kmalloc(test, KOFI_CM_DATA_MAX, GFP_KERNEL);
	buf = kunit_kmalloc(test, EQ_BUF, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, data && buf);
	for (j = 0; j < KOFI_CM_DATA_MAX; j++)
		data[j] = j;
	eq_open(test, NULL);
	for (i = 0; i < ARRAY_SIZE(eq_reads); i++) {
		const struct kofi_event ev = {
			.fid = &t->ep->fid, .context = "context",
			.event = eq_reads[i].event, .data_val = 77,
			.data = data, .data_len = eq_reads[i].data_len,
		};
		struct fi_eq_cm_entry *cm = (void *)buf;
		struct fi_eq_entry *entry = (void *)buf;
		u32 event = 99;
		ssize_t ret;

		eq_queue(test, &ev);
		memset(buf, 0xee, EQ_BUF);
		/* Peeking twice changes nothing. */
		for (j = 0; j < 3; j++) {
			ret = fi_eq_read(t->eq, &event, buf, eq_reads[i].space,
					 j < 2 ? FI_PEEK : 0);
			KUNIT_EXPECT_EQ_MSG(test, eq_reads[i].ret, ret, "%s",
					    eq_reads[i].name);
		}
		if (ret < 0) {
			KUNIT_EXPECT_EQ(test, buf[0], 0xee);
			KUNIT_EXPECT_EQ(test, 1, atomic_read(&t->alive));
			KUNIT_EXPECT_GT(test, fi_eq_read(t->eq, &event, buf,
							 EQ_BUF, 0), 0);
		} else {
			KUNIT_EXPECT_EQ(test, eq_reads[i].event, event);
			KUNIT_EXPECT_PTR_EQ(test, &t->ep->fid, entry->fid);
			for (j = ret; j < EQ_BUF; j++)
				if (buf[j] != 0xee)
					break;
			KUNIT_EXPECT_EQ_MSG(test, EQ_BUF, j,
					    "%s: written too far",
					    eq_reads[i].name);
			if (event == FI_NOTIFY)
				KUNIT_EXPECT_EQ(test, 77ULL, entry->data);
			else if (event == FI_CONNECTED)
				KUNIT_EXPECT_MEMEQ(test, data, cm->data,
						   ret - sizeof(*cm));
		}
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->alive));
		KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_read(t->eq, &event, buf,
							  EQ_BUF, 0));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_read(NULL, NULL, NULL, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_read(t->eq, NULL, buf, 64, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_eq_read(t->eq, (u32 *)data, buf, 64, FI_MORE));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_eq_sread(t->eq, (u32 *)data, buf, 64, 0, 0));
	eq_close(test);
}

/* A connection request's info goes to who reads it alone. */
static void eq_connreq_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	struct fi_eq_cm_entry cm;
	struct kofi_event ev = {
		.event = FI_CONNREQ, .fid = &t->world->domain->fid,
	};
	struct fi_info *info;
	u32 event;
	int i;

	eq_open(test, NULL);
	ev.fid = &t->ep->fid;
	for (i = 0; i < 4; i++) {
		info = fi_dupinfo(t->world->info);
		KUNIT_ASSERT_NOT_NULL(test, info);
		ev.info = info;
		eq_queue(test, &ev);
	}
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(cm),
			fi_eq_read(t->eq, &event, &cm, sizeof(cm), FI_PEEK));
	info = cm.info;
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(cm),
			fi_eq_read(t->eq, &event, &cm, sizeof(cm), 0));
	KUNIT_EXPECT_PTR_EQ(test, info, cm.info);
	fi_freeinfo(info);

	/* Two go with the endpoint, one that is about no endpoint with the queue. */
	ev.fid = NULL;
	ev.info = fi_dupinfo(t->world->info);
	eq_queue(test, &ev);
	KUNIT_EXPECT_EQ(test, 4, atomic_read(&t->alive));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	t->ep = NULL;
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&t->alive));
	eq_close(test);	/* kmemleak sees the rest */
}

/* ------------------------------------------------------------------- errors */

static void eq_error_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	const struct kofi_event bad = {
		.fid = &t->world->domain->fid, .context = "context",
		.err = ECONNREFUSED, .prov_errno = 5, .data_val = 3,
		.data = "no thanks", .data_len = 9,
	};
	const struct kofi_event good = { .event = FI_NOTIFY };
	struct fi_eq_err_entry err;
	struct fi_eq_entry entry;
	void *provided;
	char buf[16];
	u32 event;

	eq_open(test, NULL);
	memset(&err, 0, sizeof(err));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_readerr(t->eq, &err, 0));
	eq_queue(test, &good);
	eq_queue(test, &bad);
	eq_queue(test, &bad);
	eq_queue(test, &bad);
	eq_queue(test, &good);

	/* In its turn, and only by readerr */
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_readerr(t->eq, &err, 0));
	KUNIT_EXPECT_GT(test, fi_eq_read(t->eq, &event, &entry, sizeof(entry),
					 0), 0);
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_eq_read(t->eq, &event, &entry,
						     sizeof(entry), 0));

	/* The queue's own buffer */
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(err),
			fi_eq_readerr(t->eq, &err, FI_PEEK));
	KUNIT_EXPECT_EQ(test, ECONNREFUSED, err.err);
	KUNIT_EXPECT_EQ(test, 5, err.prov_errno);
	KUNIT_EXPECT_EQ(test, 3ULL, err.data);
	KUNIT_EXPECT_PTR_EQ(test, bad.fid, err.fid);
	KUNIT_EXPECT_PTR_EQ(test, bad.context, err.context);
	KUNIT_ASSERT_EQ(test, (size_t)9, err.err_data_size);
	KUNIT_EXPECT_MEMEQ(test, "no thanks", err.err_data, 9);
	provided = err.err_data;
	KUNIT_EXPECT_PTR_NE(test, (void *)bad.data, provided);
	err.err_data_size = 0;
	KUNIT_EXPECT_GT(test, fi_eq_readerr(t->eq, &err, 0), 0);
	KUNIT_EXPECT_MEMEQ(test, "no thanks", provided, 9);

	/* The caller's, large and small */
	memset(buf, 0xee, sizeof(buf));
	err.err_data = buf;
	err.err_data_size = sizeof(buf);
	KUNIT_EXPECT_GT(test, fi_eq_readerr(t->eq, &err, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, (void *)buf, err.err_data);
	KUNIT_EXPECT_EQ(test, (size_t)9, err.err_data_size);
	KUNIT_EXPECT_MEMEQ(test, "no thanks\xee", buf, 10);
	memset(buf, 0xee, sizeof(buf));
	err.err_data_size = 2;
	KUNIT_EXPECT_GT(test, fi_eq_readerr(t->eq, &err, 0), 0);
	KUNIT_EXPECT_EQ(test, (size_t)2, err.err_data_size);
	KUNIT_EXPECT_MEMEQ(test, "no\xee", buf, 3);

	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_readerr(t->eq, &err, 0));
	KUNIT_EXPECT_GT(test, fi_eq_read(t->eq, &event, &entry, sizeof(entry),
					 0), 0);
	err.err_data = NULL;
	err.err_data_size = 4;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_readerr(t->eq, &err, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_readerr(t->eq, NULL, 0));
	err.err_data_size = 0;
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_eq_readerr(t->eq, &err, FI_MORE));
	KUNIT_EXPECT_STREQ(test, fi_strerror(5),
			   fi_eq_strerror(t->eq, 5, NULL, buf, sizeof(buf)));
	KUNIT_EXPECT_EQ(test, strlen(buf) + 1, sizeof(buf));	/* cut */
	KUNIT_EXPECT_NOT_NULL(test, fi_eq_strerror(t->eq, 5, NULL, NULL, 0));
	eq_close(test);
}

/* ------------------------------------------------------------- user events */

static void eq_write_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	struct fi_eq_attr attr = { .size = 3, .flags = FI_WRITE };
	char buf[8];
	u32 event;
	int i;

	eq_open(test, &attr);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, (ssize_t)i + 1,
				fi_eq_write(t->eq, 100 + i, "abc", i + 1, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_write(t->eq, 9, "a", 1, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_eq_write(t->eq, 9, "a", 1, FI_MORE));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_write(t->eq, 9, NULL, 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_write(t->eq, 9, "", 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_eq_write(t->eq, 9, buf, PAGE_SIZE + 1, 0));

	KUNIT_EXPECT_EQ(test, 1L, fi_eq_read(t->eq, &event, buf, 8, 0));
	KUNIT_EXPECT_EQ(test, 100U, event);
	KUNIT_EXPECT_EQ(test, 'a', buf[0]);
	/* There is room again, and all or nothing is read. */
	KUNIT_EXPECT_EQ(test, 1L, fi_eq_write(t->eq, 103, "d", 1, 0));
	KUNIT_EXPECT_EQ(test, -FI_ETOOSMALL, fi_eq_read(t->eq, &event, buf, 1,
							0));
	KUNIT_EXPECT_EQ(test, 2L, fi_eq_read(t->eq, &event, buf, 8, 0));
	KUNIT_EXPECT_EQ(test, 101U, event);
	KUNIT_EXPECT_MEMEQ(test, "ab", buf, 2);
	eq_close(test);	/* two are lost with the queue */

	eq_open(test, NULL);
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_eq_write(t->eq, 9, "a", 1, 0));
	eq_close(test);
}

static void eq_overrun_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	struct fi_eq_attr attr = { .size = 2 };
	const struct kofi_event ev = { .event = FI_NOTIFY };
	struct fi_eq_err_entry err = {};
	struct fi_eq_entry entry;
	u32 event;
	int i;

	eq_open(test, &attr);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, kofi_eq_room(t->keq));
		eq_queue(test, &ev);
	}
	KUNIT_EXPECT_FALSE(test, kofi_eq_room(t->keq));
	KUNIT_EXPECT_FALSE(test, kofi_eq_room(t->keq));
	/* What is part of its object still gets in. */
	fake_of(t->ep)->base.state = KOFI_EP_CONNECTED;
	KUNIT_EXPECT_TRUE(test, kofi_ep_disconnected(&fake_of(t->ep)->base, ESHUTDOWN));

	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_GT(test, fi_eq_read(t->eq, &event, &entry,
						 sizeof(entry), 0), 0);
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_eq_read(t->eq, &event, &entry,
						     sizeof(entry), 0));
	KUNIT_EXPECT_GT(test, fi_eq_readerr(t->eq, &err, 0), 0);
	KUNIT_EXPECT_EQ(test, (int)FI_EOVERRUN, err.err);
	KUNIT_EXPECT_PTR_EQ(test, &t->eq->fid, err.fid);
	KUNIT_EXPECT_PTR_EQ(test, (void *)t, err.context);
	KUNIT_EXPECT_GT(test, fi_eq_read(t->eq, &event, &entry, sizeof(entry),
					 0), 0);
	KUNIT_EXPECT_EQ(test, (u32)FI_SHUTDOWN, event);
	/* It goes on working, and tells of the next loss. */
	KUNIT_EXPECT_TRUE(test, kofi_eq_room(t->keq));
	for (i = 0; i < 2; i++)
		eq_queue(test, &ev);
	KUNIT_EXPECT_FALSE(test, kofi_eq_room(t->keq));
	eq_close(test);
}

/* ----------------------------------------------------------------- waiting */

static int eq_write_later(void *arg)
{
	struct eq_test *t = arg;

	fake_starter_asleep();
	fi_eq_write(t->eq, 5, "five", 4, 0);
	return 0;
}

static void eq_sread_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	struct fi_eq_attr attr = {
		.flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct task_struct *task;
	unsigned long start;
	char buf[8];
	u32 event;

	eq_open(test, &attr);
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_sread(t->eq, &event, buf, sizeof(buf), 0, 0));
	start = jiffies;
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_sread(t->eq, &event, buf, sizeof(buf), 30, 0));
	KUNIT_EXPECT_GE(test, jiffies - start, msecs_to_jiffies(30));

	task = fake_thread(test, eq_write_later, t);
	KUNIT_EXPECT_EQ(test, 4L, fi_eq_sread(t->eq, &event, buf, sizeof(buf),
					      -1, 0));
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 5U, event);

	fi_eq_write(t->eq, 6, "six", 3, 0);
	KUNIT_EXPECT_EQ(test, 3L, fi_eq_sread(t->eq, &event, buf, sizeof(buf),
					      -1, FI_PEEK));
	KUNIT_EXPECT_EQ(test, 3L, fi_eq_sread(t->eq, &event, buf, sizeof(buf),
					      0, 0));
	eq_close(test);
}

/* ------------------------------------------------------------- concurrency */

#define EQ_TASKS	3
#define EQ_EACH		200

struct eq_crowd {
	struct fid_eq		*eq;
	atomic_t		seen;
	atomic_t		writing;
	unsigned long		got[BITS_TO_LONGS(EQ_TASKS * EQ_EACH)];
	bool			twice;
	struct completion	all;
	atomic_t		running;
	bool			overlap;
};

static void eq_crowd_take(struct eq_crowd *crowd, u32 event)
{
	if (test_and_set_bit(event, crowd->got))
		crowd->twice = true;
	if (atomic_inc_return(&crowd->seen) == EQ_TASKS * EQ_EACH)
		complete_all(&crowd->all);
}

static int eq_crowd_write(void *arg)
{
	struct eq_crowd *crowd = arg;
	int first = (atomic_inc_return(&crowd->writing) - 1) * EQ_EACH, i;

	for (i = 0; i < EQ_EACH; i++)
		while (fi_eq_write(crowd->eq, first + i, "x", 1, 0) < 0)
			schedule_timeout_idle(1);
	return 0;
}

static int eq_crowd_read(void *arg)
{
	struct eq_crowd *crowd = arg;
	u32 event;
	char c;

	while (!completion_done(&crowd->all))
		if (fi_eq_sread(crowd->eq, &event, &c, 1, 10, 0) == 1)
			eq_crowd_take(crowd, event);
	return 0;
}

static void eq_crowd_handle(struct fid_eq *eq, void *context)
{
	struct eq_crowd *crowd = context;
	u32 event;
	char c;

	if (atomic_inc_return(&crowd->running) != 1)
		crowd->overlap = true;
	while (fi_eq_read(eq, &event, &c, 1, 0) == 1)
		eq_crowd_take(crowd, event);
	atomic_dec(&crowd->running);
}

static void eq_crowd_run(struct kunit *test, bool handler)
{
	struct eq_test *t = test->priv;
	struct fi_eq_attr attr = {
		.size = 50, .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct task_struct *tasks[2 * EQ_TASKS];
	struct eq_crowd *crowd;
	int i, n = handler ? EQ_TASKS : 2 * EQ_TASKS;

	crowd = kunit_kzalloc(test, sizeof(*crowd), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, crowd);
	init_completion(&crowd->all);
	KUNIT_ASSERT_EQ(test, 0,
			kofi_eq_open(t->world->fabric, &attr,
				     handler ? eq_crowd_handle : NULL,
				     &crowd->eq, crowd));
	for (i = 0; i < n; i++)
		tasks[i] = fake_thread(test, i < EQ_TASKS ? eq_crowd_write :
				       eq_crowd_read, crowd);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&crowd->all,
							  TEST_LIMIT(30 * HZ)), 0UL);
	complete_all(&crowd->all);
	for (i = 0; i < n; i++)
		fake_join(tasks[i]);
	KUNIT_EXPECT_EQ(test, EQ_TASKS * EQ_EACH, atomic_read(&crowd->seen));
	KUNIT_EXPECT_FALSE(test, crowd->twice);
	KUNIT_EXPECT_FALSE(test, crowd->overlap);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&crowd->eq->fid));
}

static void eq_readers_test(struct kunit *test)
{
	eq_crowd_run(test, false);
}

static void eq_handler_test(struct kunit *test)
{
	eq_crowd_run(test, true);
}

struct eq_closer {
	int			ret;
	struct completion	done;
};

static void eq_close_own(struct fid_eq *eq, void *context)
{
	struct eq_closer *c = context;
	u32 event;
	char x;

	c->ret = fi_close(&eq->fid);
	while (fi_eq_read(eq, &event, &x, 1, 0) == 1)
		;
	complete(&c->done);
}

/* A handler that closes its own queue is refused, and called again as ever. */
static void eq_deadlock_test(struct kunit *test)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE };
	struct eq_test *t = test->priv;
	struct eq_closer c;
	struct fid_eq *eq;
	int i;

	KUNIT_ASSERT_EQ(test, 0, kofi_eq_open(t->world->fabric, &attr,
					      eq_close_own, &eq, &c));
	for (i = 0; i < 2; i++) {
		c.ret = 0;
		init_completion(&c.done);
		KUNIT_EXPECT_EQ(test, 1L, fi_eq_write(eq, 1, "x", 1, 0));
		KUNIT_ASSERT_NE(test, 0UL,
				wait_for_completion_timeout(&c.done,
							    TEST_LIMIT(10 * HZ)));
		KUNIT_EXPECT_EQ(test, -EDEADLK, c.ret);
	}
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
}

struct eq_place {
	struct completion	done;
	unsigned int		cpu;
};

static void eq_place_handle(struct fid_eq *eq, void *context)
{
	struct eq_place *place = context;
	u32 event;
	u8 byte;

	place->cpu = raw_smp_processor_id();
	while (fi_eq_read(eq, &event, &byte, 1, 0) > 0)
		complete(&place->done);
}

/* FI_AFFINITY: the handler runs on the CPU in signaling_vector. */
static void eq_place_test(struct kunit *test)
{
	struct eq_test *t = test->priv;
	struct eq_place place;
	struct fid_eq *eq;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		struct fi_eq_attr attr = {
			.flags = FI_WRITE | FI_AFFINITY, .signaling_vector = cpu,
		};

		init_completion(&place.done);
		KUNIT_ASSERT_EQ(test, 0, kofi_eq_open(t->world->fabric, &attr,
						      eq_place_handle, &eq, &place));
		KUNIT_EXPECT_EQ(test, 1L, fi_eq_write(eq, 1, "x", 1, 0));
		KUNIT_EXPECT_NE(test, 0UL,
				wait_for_completion_timeout(&place.done,
							    TEST_LIMIT(10 * HZ)));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
		KUNIT_EXPECT_EQ(test, cpu, place.cpu);
	}
}

static struct kunit_case eq_cases[] = {
	KUNIT_CASE(eq_open_test),
	KUNIT_CASE(eq_control_test),
	KUNIT_CASE(eq_read_test),
	KUNIT_CASE(eq_connreq_test),
	KUNIT_CASE(eq_error_test),
	KUNIT_CASE(eq_write_test),
	KUNIT_CASE(eq_overrun_test),
	KUNIT_CASE(eq_sread_test),
	KUNIT_CASE(eq_readers_test),
	KUNIT_CASE(eq_handler_test),
	KUNIT_CASE(eq_deadlock_test),
	KUNIT_CASE(eq_place_test),
	{}
};

struct kunit_suite kofi_eq_suite = {
	.name		= "kofi_eq",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= eq_init,
	.exit		= eq_exit,
	.test_cases	= eq_cases,
};
