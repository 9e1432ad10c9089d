// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Identifiers of the connection manager that outlive their endpoints.
 *
 * Reasons
 *
 * The message that announces a disconnect may be lost, and the manager repeats
 * it only while the identifier exists. So the identifier outlives its endpoint
 * until the peer has answered or enough time has passed. On iWARP, TCP repeats
 * lost messages. There an attempt to connect cannot be cancelled, so identifier
 * and queue pair stay until it has finished.
 *
 * Connecting in a work item on iWARP
 *
 * On some devices, rdma_connect() returns only after TCP has connected or given
 * up. All handlers of the manager run in one ordered queue, so there an
 * unresponsive peer would stall all connections of the system. Therefore each
 * attempt has a work item.
 *
 * Destruction
 *
 * InfiniBand and RoCE: vrb_lingering lists the identifiers by age, and a work
 * item destroys those that are due. Beyond a limit, the oldest is destroyed at
 * once. The queue pair is destroyed when the endpoint is closed.
 *
 * iWARP: each identifier has a work item. It destroys the queue pair, which
 * waits for the attempt to finish, and then the identifier. The domain counts
 * these identifiers, and its close waits for them.
 *
 * Locks
 *
 * vrb_linger_lock is taken in the manager's handlers, that is, inside the
 * identifier's handler mutex; it is not held while an identifier is destroyed.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "verbs.h"

#define VRB_LINGER_MAX	128	/* identifiers on the list */
#define VRB_LINGER_MS	90000	/* longer than the manager repeats a message */

/**
 * struct vrb_linger - identifier that outlives its endpoint
 * @node: entry of vrb_lingering; empty on iWARP; protected by vrb_linger_lock
 * @id: identifier of the connection manager
 * @until: jiffies at which @id is destroyed even without an answer; protected
 *	by vrb_linger_lock
 * @dom: iWARP: domain; its close waits for the identifier
 * @tx_cq: iWARP: completion queue for transmits of the queue pair
 * @rx_cq: iWARP: completion queue for receives of the queue pair
 * @work: iWARP: destroys queue pair, completion queues and identifier
 * @connect: iWARP: sends the connection request; has finished or is disabled
 *	when @work starts
 */
struct vrb_linger {
	struct list_head	node;
	struct rdma_cm_id	*id;
	unsigned long		until;
	struct vrb_domain	*dom;
	struct vrb_epcq		tx_cq;
	struct vrb_epcq		rx_cq;
	struct work_struct	work;
	struct work_struct	connect;
};

static void vrb_linger_reap(struct work_struct *work);

/* not WQ_MEM_RECLAIM: waits for queues of the manager, which may allocate */
struct workqueue_struct *vrb_linger_wq;
static struct workqueue_struct *vrb_connect_wq;
static DECLARE_DELAYED_WORK(vrb_linger_reaper, vrb_linger_reap);
static DEFINE_SPINLOCK(vrb_linger_lock);	/* vrb_lingering, vrb_linger_count */
static LIST_HEAD(vrb_lingering);		/* oldest first */
static unsigned int vrb_linger_count;

static void vrb_linger_due(struct vrb_linger *l)
{
	lockdep_assert_held(&vrb_linger_lock);

	l->until = jiffies;
	list_move(&l->node, &vrb_lingering);
	mod_delayed_work(vrb_linger_wq, &vrb_linger_reaper, 0);
}

/*
 * Take the first identifier off the list if it is due; otherwise schedule the
 * work item.
 */
static struct vrb_linger *vrb_linger_next(void)
{
	struct vrb_linger *l;

	spin_lock(&vrb_linger_lock);
	l = list_first_entry_or_null(&vrb_lingering, struct vrb_linger, node);
	if (l && time_before(jiffies, l->until)) {
		mod_delayed_work(vrb_linger_wq, &vrb_linger_reaper,
				 l->until - jiffies);
		l = NULL;
	}
	if (l) {
		list_del_init(&l->node);
		vrb_linger_count--;
	}
	spin_unlock(&vrb_linger_lock);
	return l;
}

static void vrb_linger_reap(struct work_struct *work)
{
	struct vrb_linger *l;

	while ((l = vrb_linger_next())) {
		rdma_destroy_id(l->id);
		kfree(l);
	}
}

/* Handle the manager's events of an identifier without an endpoint. */
static int vrb_linger_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vrb_linger *l = id->context;

	if (ev->event != RDMA_CM_EVENT_DISCONNECTED &&
	    ev->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	spin_lock(&vrb_linger_lock);
	if (!list_empty(&l->node))
		vrb_linger_due(l);
	spin_unlock(&vrb_linger_lock);
	return 0;
}

static void vrb_linger_keep(struct vrb_linger *l)
{
	l->until = jiffies + msecs_to_jiffies(VRB_LINGER_MS);
	spin_lock(&vrb_linger_lock);
	list_add_tail(&l->node, &vrb_lingering);
	/* beyond the limit, destroy the oldest, which has had most time */
	if (++vrb_linger_count > VRB_LINGER_MAX)
		vrb_linger_due(list_first_entry(&vrb_lingering, struct vrb_linger,
						node));
	else
		queue_delayed_work(vrb_linger_wq, &vrb_linger_reaper,
				   msecs_to_jiffies(VRB_LINGER_MS));
	spin_unlock(&vrb_linger_lock);
}

/**
 * vrb_linger_destroy_qp - destroy a queue pair, and close its completion queues
 * @id: identifier; its queue pair may have been destroyed already
 * @tx_cq: completion queue for transmits
 * @rx_cq: completion queue for receives
 *
 * Context: process, may sleep; on iWARP, until an attempt to connect has
 * finished.
 */
void vrb_linger_destroy_qp(struct rdma_cm_id *id, struct vrb_epcq *tx_cq,
			   struct vrb_epcq *rx_cq)
{
	if (id->qp)
		rdma_destroy_qp(id);
	vrb_epcq_close(tx_cq);
	vrb_epcq_close(rx_cq);
}

/* Destroying the queue pair waits for the attempt to connect. */
static void vrb_linger_work(struct work_struct *work)
{
	struct vrb_linger *l = container_of(work, struct vrb_linger, work);
	struct vrb_domain *dom = l->dom;

	vrb_linger_destroy_qp(l->id, &l->tx_cq, &l->rx_cq);
	rdma_destroy_id(l->id);
	kfree(l);
	if (atomic_dec_and_test(&dom->lingering))
		wake_up_var(&dom->lingering);
}

/**
 * vrb_linger_wait - wait until no queue pair of a closed endpoint is left
 * @dom: the domain
 *
 * Context: process, sleeps.
 */
void vrb_linger_wait(struct vrb_domain *dom)
{
	wait_var_event(&dom->lingering, !atomic_read(&dom->lingering));
}

/* The identifier's context is the endpoint, as vrb_linger_leave() waits for this work. */
static void vrb_linger_ask(struct work_struct *work)
{
	struct vrb_linger *l = container_of(work, struct vrb_linger, connect);
	/* freeing memory may depend on the connection that is being established */
	unsigned int noio = memalloc_noio_save();
	struct rdma_cm_id *id = l->id;

	rdma_lock_handler(id);
	vrb_cm_ask(id->context, id);
	rdma_unlock_handler(id);
	memalloc_noio_restore(noio);
}

/**
 * vrb_linger_connect - send the connection request of an iWARP endpoint from a
 * work item
 * @ep: the endpoint
 * @id: identifier of the connection manager
 *
 * Context: process, with the identifier's handler mutex held.
 */
void vrb_linger_connect(struct vrb_ep *ep, struct rdma_cm_id *id)
{
	struct vrb_linger *l = ep->cm.linger;

	l->id = id;
	if (queue_work(vrb_connect_wq, &l->connect))
		WRITE_ONCE(ep->cm.state, VRB_CM_ASKED);
}

/**
 * vrb_linger_prepare - allocate memory for vrb_linger_leave()
 * @ep: an endpoint that is being enabled
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_linger_prepare(struct vrb_ep *ep)
{
	ep->cm.linger = kzalloc(sizeof(*ep->cm.linger), GFP_KERNEL);
	if (!ep->cm.linger)
		return -ENOMEM;
	INIT_LIST_HEAD(&ep->cm.linger->node);
	INIT_WORK(&ep->cm.linger->work, vrb_linger_work);
	INIT_WORK(&ep->cm.linger->connect, vrb_linger_ask);
	return 0;
}

/*
 * Redirect the manager's events from the endpoint to @l. Returns true if the
 * identifier must outlive the endpoint.
 */
static bool vrb_linger_take(struct vrb_ep *ep, struct rdma_cm_id *id,
			    struct vrb_linger *l, bool lost)
{
	bool waits;

	l->id = id;
	rdma_lock_handler(id);
	id->context = l;
	id->event_handler = vrb_linger_event;
	if (ep->iwarp) {
		waits = ep->cm.state == VRB_CM_ASKED;
	} else {
		/* without a queue pair, destroying the identifier notifies the peer */
		waits = vrb_cm_is_established(ep) && !ep->cm.left &&
			!ep->dom->gone && !lost;
		if (waits)
			vrb_linger_keep(l);
	}
	rdma_unlock_handler(id);
	return waits;
}

/**
 * vrb_linger_leave - free the endpoint's objects of the device and the
 * connection manager
 * @ep: an endpoint that has ended, with an identifier
 *
 * On iWARP, an outstanding attempt to connect is left to a work item. This
 * function waits for it only while the device connects TCP.
 *
 * Context: process, may sleep; cm.mutex held.
 */
void vrb_linger_leave(struct vrb_ep *ep)
{
	struct vrb_linger *l = ep->cm.linger;
	struct rdma_cm_id *id = ep->cm.id;
	bool lost = !ep->qp, waits;

	/* the identifier holds the socket's network namespace */
	vrb_cm_free_port(ep);
	/* waits for the queue pair's events, which use ep->cm.id */
	if (ep->qp && !ep->iwarp)
		vrb_linger_destroy_qp(id, &ep->tx_cq, &ep->rx_cq);
	WRITE_ONCE(ep->cm.id, NULL);
	if (!l) {
		/* a request without an answer: this rejects it */
		rdma_destroy_id(id);
		return;
	}
	/* an attempt that has not started never will */
	disable_work_sync(&l->connect);
	/*
	 * The queue pair may outlive the endpoint. Its driver reads the context
	 * without a lock, and RCU keeps the endpoint for vrb_qp_event().
	 */
	if (ep->iwarp && ep->qp)
		WRITE_ONCE(ep->qp->qp_context, NULL);
	ep->qp = NULL;
	waits = vrb_linger_take(ep, id, l, lost);
	ep->cm.linger = NULL;
	if (ep->iwarp && waits) {
		l->dom = ep->dom;
		vrb_epcq_move(&ep->tx_cq, &l->tx_cq);
		vrb_epcq_move(&ep->rx_cq, &l->rx_cq);
		atomic_inc(&ep->dom->lingering);
		queue_work(vrb_linger_wq, &l->work);
	} else if (ep->iwarp) {
		vrb_linger_destroy_qp(id, &ep->tx_cq, &ep->rx_cq);
	}
	if (!waits) {
		rdma_destroy_id(id);
		kfree(l);
	}
}

int vrb_linger_init(void)
{
	/* an attempt may last as long as TCP tries */
	vrb_connect_wq = alloc_workqueue("kofi_verbs_connect",
					 WQ_MEM_RECLAIM | WQ_UNBOUND,
					 WQ_MAX_ACTIVE);
	if (!vrb_connect_wq)
		return -ENOMEM;
	vrb_linger_wq = alloc_workqueue("kofi_verbs_linger", WQ_UNBOUND, 0);
	if (vrb_linger_wq)
		return 0;
	destroy_workqueue(vrb_connect_wq);
	return -ENOMEM;
}

void vrb_linger_exit(void)
{
	struct vrb_linger *l;

	spin_lock(&vrb_linger_lock);
	list_for_each_entry(l, &vrb_lingering, node)
		l->until = jiffies;
	spin_unlock(&vrb_linger_lock);
	vrb_linger_reap(NULL);
	/* the list is empty, so nothing queues the work item again */
	cancel_delayed_work_sync(&vrb_linger_reaper);
	destroy_workqueue(vrb_linger_wq);
	destroy_workqueue(vrb_connect_wq);
}
