// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wait sets and poll sets (fi_poll(3)): one place to sleep for many queues and
 * counters, and one call to check them.
 *
 * Pending state
 *
 * Both kinds rest on kofi_obj_ops.pending, which tests for data that the consumer has not
 * read. That is an entry of an event queue or a completion queue, or a counter that
 * differs from its last read value. It is also a wait set with such a member. The result
 * is a level, not an edge. So a task that tests again after it has been woken, or before
 * it sleeps, misses nothing. Any number of tasks may test: entries that one task does not
 * read stay there for the others.
 *
 * Members
 *
 * A set of either kind is a list of members under a lock. A queue joins a wait
 * set when it is opened with FI_WAIT_SET and leaves when it is closed; in
 * between it is one of the set's users. It wakes the set with its own lock
 * held, after the new entry is visible. Member and poll set are users of
 * each other. Members that fi_poll() has reported move to the tail of the list, so
 * that a short array does not favour the first ones.
 *
 * Locks
 *
 * The lock of a set is held while its members are tested, each under its own lock.
 * A set's lock is never taken with a queue's lock held; waking takes only the lock
 * of the wait queue head.
 */
#include <linux/slab.h>

#include "cq.h"

/**
 * struct kofi_set - a wait set or a poll set
 * @wait_set: handle of the consumer of a wait set
 * @poll_set: handle of the consumer of a poll set
 * @fid: common beginning of @wait_set and @poll_set
 * @obj: the core's part; members, and tasks that sleep on the set, are its users. Its
 *	parent is the fabric, or for a poll set the domain, of the members.
 * @wait_obj: wait set: FI_WAIT_UNSPEC, FI_WAIT_YIELD or KOFI_WAIT_QUEUE
 * @wait: wait set: wait queue of sleeping tasks
 * @lock: irqsave, guards @members
 * @members: struct kofi_member, in the order of tests
 */
struct kofi_set {
	union {
		struct fid_wait	wait_set;
		struct fid_poll	poll_set;
		struct fi_fid	fid;
	};
	struct kofi_obj		obj;
	enum fi_wait_obj	wait_obj;
	wait_queue_head_t	wait;
	spinlock_t		lock;	/* the list */
	struct list_head	members;
};

static_assert(offsetof(struct fid_wait, fid) == 0);
static_assert(offsetof(struct fid_poll, fid) == 0);

static struct kofi_set *kofi_set(struct fi_fid *fid)
{
	return container_of(fid, struct kofi_set, fid);
}

/* ---------------------------------------------------------------- both kinds */

/* Check for an object with pending(), which is @in or was opened in it. */
static int kofi_fid_check(const struct fi_fid *fid, const struct kofi_obj *in)
{
	const struct kofi_obj *obj;

	if (kofi_fid_class(fid) == FI_CLASS_UNSPEC || !fid->obj ||
	    !fid->obj->ops || !fid->obj->ops->pending)
		return -EINVAL;
	for (obj = fid->obj; obj; obj = obj->parent)
		if (obj == in)
			return 0;
	return -FI_EDOMAIN;
}

/* Test an object for data that the consumer has not read. */
static bool kofi_fid_pending(const struct fi_fid *fid)
{
	return fid->obj->ops->pending(fid->obj);
}

static bool kofi_set_pending(struct kofi_obj *obj)
{
	struct kofi_set *set = container_of(obj, struct kofi_set, obj);
	struct kofi_member *member;
	unsigned long flags;
	bool pending = false;

	spin_lock_irqsave(&set->lock, flags);
	list_for_each_entry(member, &set->members, node) {
		pending = kofi_fid_pending(member->fid);
		if (pending)
			break;
	}
	spin_unlock_irqrestore(&set->lock, flags);
	return pending;
}

static int kofi_set_close(struct fi_fid *fid)
{
	struct kofi_set *set = kofi_set(fid);

	kofi_obj_exit(&set->obj);
	kfree(set);
	return 0;
}

static void kofi_set_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_set *set = container_of(obj, struct kofi_set, obj);
	size_t members;

	spin_lock_irq(&set->lock);
	members = list_count_nodes(&set->members);
	spin_unlock_irq(&set->lock);
	fn(arg, "members", members);
}

static const struct kofi_obj_ops kofi_wait_set_obj_ops = {
	.stats		= kofi_set_stats,
	.pending	= kofi_set_pending,
};

static const struct kofi_obj_ops kofi_poll_set_obj_ops = {
	.stats	= kofi_set_stats,
};

static struct kofi_set *kofi_set_open(size_t fclass, const struct fi_ops *ops,
				      const struct kofi_obj_ops *obj_ops,
				      struct kofi_obj *parent,
				      enum fi_wait_obj wait_obj)
{
	struct kofi_set *set = kzalloc(sizeof(*set), GFP_KERNEL);
	int ret;

	if (!set)
		return ERR_PTR(-ENOMEM);
	set->wait_obj = wait_obj;
	init_waitqueue_head(&set->wait);
	spin_lock_init(&set->lock);
	INIT_LIST_HEAD(&set->members);
	ret = kofi_obj_init(&set->obj, &set->fid, fclass, ops, parent,
			    parent->prov, NULL);
	if (ret) {
		kfree(set);
		return ERR_PTR(ret);
	}
	set->obj.ops = obj_ops;
	kofi_obj_publish(&set->obj);
	return set;
}

/* ------------------------------------------------------------------ wait sets */

/**
 * kofi_wait_join - make a queue a member of the wait set of its attributes
 * @link: membership of the queue
 * @fid: the queue, which may be tested from now on
 * @wait_obj: wait_obj of its attributes; only with FI_WAIT_SET it joins a set
 * @wait_set: wait_set of its attributes
 * @fabric: fabric of the queue
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for another object; -FI_EDOMAIN for a set of another
 * fabric; -EBUSY if the set is being closed.
 */
int kofi_wait_join(struct kofi_wait_link *link, struct fi_fid *fid,
		   enum fi_wait_obj wait_obj, struct fid_wait *wait_set,
		   struct kofi_fabric *fabric)
{
	struct kofi_set *set;

	if (wait_obj != FI_WAIT_SET)
		return 0;
	if (kofi_fid_class(&wait_set->fid) != FI_CLASS_WAIT)
		return -EINVAL;
	set = kofi_set(&wait_set->fid);
	if (set->obj.parent != &fabric->obj)
		return -FI_EDOMAIN;
	if (!kofi_obj_get(&set->obj))
		return -EBUSY;

	link->member.fid = fid;
	link->wait = &set->wait;
	link->set = set;
	spin_lock_irq(&set->lock);
	list_add_tail(&link->member.node, &set->members);
	spin_unlock_irq(&set->lock);
	return 0;
}

/**
 * kofi_wait_leave - leave the wait set
 * @link: membership of a queue that gets no further entries; may be unused
 *
 * Context: process, may sleep.
 */
void kofi_wait_leave(struct kofi_wait_link *link)
{
	struct kofi_set *set = link->set;

	if (!set)
		return;
	spin_lock_irq(&set->lock);
	list_del(&link->member.node);
	spin_unlock_irq(&set->lock);
	kofi_obj_put(&set->obj);
}

static int kofi_wait_set_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_set *set = kofi_set(fid);

	return kofi_wait_control(set->wait_obj, &set->wait, command, arg);
}

static const struct fi_ops kofi_wait_set_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_set_close,
	.control	= kofi_wait_set_control,
};

/**
 * fi_wait_open - open a wait set
 * @fabric: fabric of the queues and counters that will join
 * @attr: wait_obj FI_WAIT_UNSPEC, FI_WAIT_YIELD or KOFI_WAIT_QUEUE; flags 0.
 *	NULL, or FI_WAIT_NONE, means FI_WAIT_UNSPEC.
 * @waitset: receives the set
 *
 * fi_poll(3). A queue or counter joins when it is opened with wait_obj
 * FI_WAIT_SET and this set in wait_set, and leaves when it is closed. The set
 * cannot be closed before its members. The number of members is not limited.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL, also for FI_WAIT_SET; -FI_EBADFLAGS;
 * -ENOSYS for a wait object that exists only in user space; -EBUSY if @fabric is being
 * closed; -ENOMEM.
 */
int fi_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		 struct fid_wait **waitset)
{
	enum fi_wait_obj wait_obj = attr && attr->wait_obj ? attr->wait_obj :
							     FI_WAIT_UNSPEC;
	struct kofi_set *set;
	int ret;

	might_sleep();
	if (kofi_fid_class(&fabric->fid) != FI_CLASS_FABRIC || !waitset ||
	    wait_obj == FI_WAIT_SET)
		return -EINVAL;
	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	ret = kofi_wait_check(wait_obj);
	if (ret)
		return ret;
	set = kofi_set_open(FI_CLASS_WAIT, &kofi_wait_set_ops,
			    &kofi_wait_set_obj_ops, fabric->fid.obj, wait_obj);
	if (IS_ERR(set))
		return PTR_ERR(set);
	*waitset = &set->wait_set;
	return 0;
}
EXPORT_SYMBOL_GPL(fi_wait_open);

/**
 * fi_wait - wait until a member has something to be read
 * @waitset: the set
 * @timeout: milliseconds; 0 does not wait, negative waits without limit
 *
 * fi_poll(3). Returns while a member has an unread completion or event, or a counter
 * with a value or error value that differs from the last one read or set. It also returns
 * for an fi_cq_signal() since the queue was last found empty. So nothing is missed between
 * reading and waiting, and fi_trywait() is not needed before. Any number of tasks may
 * wait; all of them are woken. Only a fatal signal interrupts the sleep.
 *
 * The set cannot be closed while a task waits.
 *
 * Context: process, sleeps.
 * Return: 0; -ETIMEDOUT; -EINTR if the task is being killed; -EBUSY if the set
 * is being closed; -EINVAL.
 */
int fi_wait(struct fid_wait *waitset, int timeout)
{
	struct kofi_set *set;
	long left;

	might_sleep();
	if (kofi_fid_class(&waitset->fid) != FI_CLASS_WAIT)
		return -EINVAL;
	set = kofi_set(&waitset->fid);
	if (!kofi_obj_get(&set->obj))
		return -EBUSY;
	left = kofi_wait_event(set->wait_obj, set->wait,
			       kofi_set_pending(&set->obj),
			       kofi_wait_timeout(timeout));
	kofi_obj_put(&set->obj);
	if (left > 0)
		return 0;
	return left < 0 ? -EINTR : -ETIMEDOUT;
}
EXPORT_SYMBOL_GPL(fi_wait);

/**
 * fi_trywait - check before a sleep on wait queues of FI_GETWAIT
 * @fabric: the fabric of all of @fids
 * @fids: event queues, completion queues, counters and wait sets, each opened
 *	with a wait object
 * @count: number of @fids
 *
 * fi_poll(3). For a task that sleeps on the wait queues of FI_GETWAIT
 * by prepare_to_wait(), this call, schedule() and finish_wait(): entries that arrive
 * after the call wake it. The call changes nothing, so the
 * result stays -EAGAIN until all has been read.
 *
 * Context: any.
 * Return: 0 if there is nothing to be read; -EAGAIN if there is; -EINVAL, also
 * for an object without wait object; -FI_EDOMAIN for an object of another fabric.
 */
int fi_trywait(struct fid_fabric *fabric, struct fi_fid **fids, int count)
{
	enum fi_wait_obj wait_obj;
	int i, ret;

	if (kofi_fid_class(&fabric->fid) != FI_CLASS_FABRIC || count < 0 ||
	    (count && !fids))
		return -EINVAL;
	for (i = 0; i < count; i++) {
		ret = kofi_fid_check(fids[i], fabric->fid.obj);
		if (ret)
			return ret;
		if (fi_control(fids[i], FI_GETWAITOBJ, &wait_obj) ||
		    wait_obj == FI_WAIT_NONE)
			return -EINVAL;
	}
	for (i = 0; i < count; i++)
		if (kofi_fid_pending(fids[i]))
			return -EAGAIN;
	return 0;
}
EXPORT_SYMBOL_GPL(fi_trywait);

/* ------------------------------------------------------------------ poll sets */

static const struct fi_ops kofi_poll_set_ops = {
	.size	= sizeof(struct fi_ops),
	.close	= kofi_set_close,
};

static bool kofi_poll_valid(const struct fid_poll *pollset)
{
	return kofi_fid_class(&pollset->fid) == FI_CLASS_POLL;
}

/**
 * fi_poll_open - open a poll set
 * @domain: domain of the completion queues and counters that will be members
 * @attr: flags 0; may be NULL
 * @pollset: receives the set
 *
 * fi_poll(3). The set cannot be closed while it has members.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -EBUSY if @domain is being closed;
 * -ENOMEM.
 */
int fi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		 struct fid_poll **pollset)
{
	struct kofi_set *set;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !pollset)
		return -EINVAL;
	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	set = kofi_set_open(FI_CLASS_POLL, &kofi_poll_set_ops,
			    &kofi_poll_set_obj_ops, domain->fid.obj,
			    FI_WAIT_NONE);
	if (IS_ERR(set))
		return PTR_ERR(set);
	*pollset = &set->poll_set;
	return 0;
}
EXPORT_SYMBOL_GPL(fi_poll_open);

/* Check for an event queue of the fabric, or another pollable object of the domain. */
static int kofi_poll_check(const struct kofi_obj *domain,
			   const struct fi_fid *fid)
{
	const struct kofi_cq *cq;

	if (kofi_fid_class(fid) == FI_CLASS_WAIT)
		return -EINVAL;
	if (kofi_fid_class(fid) == FI_CLASS_CQ) {
		cq = container_of(fid, struct kofi_cq, cq.fid);
		/* Other queues call back without being polled. */
		if (cq->done && cq->poll != KOFI_POLL_DIRECT)
			return -EINVAL;
	}
	return kofi_fid_check(fid, kofi_fid_class(fid) == FI_CLASS_EQ ?
				   domain->parent : domain);
}

static struct kofi_member *kofi_poll_find(struct kofi_set *set,
					  const struct fi_fid *fid)
{
	struct kofi_member *member;

	lockdep_assert_held(&set->lock);

	list_for_each_entry(member, &set->members, node)
		if (member->fid == fid)
			return member;
	return NULL;
}

/**
 * fi_poll_add - add a member
 * @pollset: the set
 * @event_fid: a completion queue, counter or event queue of the set's domain
 *	or its fabric. A completion queue with callbacks can be added if it is
 *	a DIRECT queue; it is reported when kofi_cq_poll() has something to do.
 * @flags: 0
 *
 * fi_poll(3). The member cannot be closed while it is in the set, nor before an fi_poll()
 * that has found it in the set has returned. It may be in
 * several sets, and be opened with any wait object or none.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -FI_EDOMAIN for an object of another
 * domain or fabric; -EALREADY if it is a member; -EBUSY if it is being closed;
 * -ENOMEM.
 */
int fi_poll_add(struct fid_poll *pollset, struct fi_fid *event_fid, u64 flags)
{
	struct kofi_member *member;
	struct kofi_set *set;
	int ret;

	might_sleep();
	if (!kofi_poll_valid(pollset))
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	set = kofi_set(&pollset->fid);
	ret = kofi_poll_check(set->obj.parent, event_fid);
	if (ret)
		return ret;
	member = kzalloc(sizeof(*member), GFP_KERNEL);
	if (!member)
		return -ENOMEM;
	member->fid = event_fid;
	ret = -EBUSY;
	if (!kofi_obj_get(&set->obj))
		goto free;
	if (!kofi_obj_get(event_fid->obj))
		goto put_set;

	spin_lock_irq(&set->lock);
	ret = kofi_poll_find(set, event_fid) ? -EALREADY : 0;
	if (!ret)
		list_add_tail(&member->node, &set->members);
	spin_unlock_irq(&set->lock);
	if (!ret)
		return 0;

	kofi_obj_put(event_fid->obj);
put_set:
	kofi_obj_put(&set->obj);
free:
	kfree(member);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_poll_add);

/**
 * fi_poll_del - remove a member
 * @pollset: the set
 * @event_fid: a member
 * @flags: 0
 *
 * fi_poll(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -ENOENT if it is no member.
 */
int fi_poll_del(struct fid_poll *pollset, struct fi_fid *event_fid, u64 flags)
{
	struct kofi_member *member;
	struct kofi_set *set;

	might_sleep();
	if (!kofi_poll_valid(pollset) || !kofi_fid_may_be(event_fid))
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	set = kofi_set(&pollset->fid);
	spin_lock_irq(&set->lock);
	member = kofi_poll_find(set, event_fid);
	if (member)
		list_del(&member->node);
	spin_unlock_irq(&set->lock);
	if (!member)
		return -ENOENT;
	kfree(member);
	kofi_obj_put(event_fid->obj);
	kofi_obj_put(&set->obj);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_poll_del);

/* Queue of a member that has a device to poll; takes a reference */
static struct kofi_cq *kofi_poll_nth(struct kofi_set *set, int n)
{
	struct kofi_member *member;
	struct kofi_cq *cq = NULL;

	spin_lock_irq(&set->lock);
	list_for_each_entry(member, &set->members, node) {
		if (member->fid->fclass != FI_CLASS_CQ)
			continue;
		cq = container_of(member->fid, struct kofi_cq, cq.fid);
		if (kofi_cq_asks(cq) && !n--) {
			kofi_obj_get(&cq->obj);	/* the set is a user, too */
			break;
		}
		cq = NULL;
	}
	spin_unlock_irq(&set->lock);
	return cq;
}

/*
 * Move completions from devices to their queues. Without the
 * set's lock, since devices are polled with interrupts on.
 */
static void kofi_poll_ask(struct kofi_set *set)
{
	struct kofi_cq *cq;
	int n;

	for (n = 0; (cq = kofi_poll_nth(set, n)); n++) {
		if (!kofi_cq_pending(&cq->obj))
			kofi_cq_ask(cq);
		kofi_obj_put(&cq->obj);
	}
}

/**
 * fi_poll - find members that have something to be read
 * @pollset: the set
 * @context: array of @count; receives the contexts of these members
 * @count: most members to report
 *
 * fi_poll(3). A member is reported as long as it has something to be read, as with
 * fi_wait(). If more than @count have, the next call begins with the members
 * that were not reported. A DIRECT queue of a device is also reported when
 * a completion is still in the device, unless interrupts are off.
 *
 * Context: any. Interrupts are off while the members are tested.
 * Return: number of contexts, 0 if there is nothing to be read; -EINVAL.
 */
int fi_poll(struct fid_poll *pollset, void **context, int count)
{
	struct kofi_member *member, *next;
	struct kofi_set *set;
	unsigned long flags;
	LIST_HEAD(reported);
	int n = 0;

	if (!kofi_poll_valid(pollset) || count < 0 || (count && !context))
		return -EINVAL;
	set = kofi_set(&pollset->fid);
	if (!irqs_disabled())
		kofi_poll_ask(set);
	spin_lock_irqsave(&set->lock, flags);
	list_for_each_entry_safe(member, next, &set->members, node) {
		if (n == count)
			break;
		if (!kofi_fid_pending(member->fid))
			continue;
		context[n++] = member->fid->context;
		list_move_tail(&member->node, &reported);
	}
	list_splice_tail(&reported, &set->members);
	spin_unlock_irqrestore(&set->lock, flags);
	return n;
}
EXPORT_SYMBOL_GPL(fi_poll);
