// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generic netlink: events of objects, for the multicast group "events".
 *
 * Normal operation
 *
 * Events occur in any context and under spinlocks. kofi_notify() makes the message,
 * and a work item sends it, so the messages about an object have the order
 * of its events. A message holds a reference to its network namespace. While no
 * socket has joined the group, kofi_notify() only tests for listeners.
 *
 * Limits
 *
 * A peer can cause events at will. An object sends at most KOFI_EVENT_RATE events per
 * second, and at most KOFI_EVENTS_MAX messages wait for the work item. Further events are
 * counted, and the next message about the object contains their number. The limits take
 * one atomic word per object.
 */
#include <linux/bitfield.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include <kunit/visibility.h>

#include <linux/kofi/debug.h>
#include <linux/kofi/lib.h>

#include "internal.h"
#include "names.h"
#include "netlink-gen.h"
#include "netlink.h"

#define KOFI_EVENT_RATE		64
#define KOFI_EVENTS_MAX		1024

/* Room for the largest message */
#define KOFI_EVENT_SIZE		512

/* struct kofi_obj.events */
#define KOFI_EVENTS_SENT	GENMASK(7, 0)	/* in @SECOND */
#define KOFI_EVENTS_SECOND	GENMASK(15, 8)
#define KOFI_EVENTS_LOST	GENMASK(31, 16)	/* since the last one sent */

static struct sk_buff_head kofi_events;

/* Namespace of a waiting message */
static struct net **kofi_event_net(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct net *) > sizeof(skb->cb));

	return (struct net **)skb->cb;
}

static void kofi_events_send(struct work_struct *work)
{
	struct sk_buff *skb;
	struct net *net;

	while ((skb = skb_dequeue(&kofi_events))) {
		net = *kofi_event_net(skb);
		/* a reader that is too slow sees ENOBUFS in its socket */
		genlmsg_multicast_netns(&kofi_nl_family, net, skb, 0,
					KOFI_NLGRP_EVENTS, GFP_KERNEL);
		put_net(net);
		cond_resched();
	}
}

static DECLARE_WORK(kofi_events_work, kofi_events_send);

static int kofi_nl_put_addr(struct sk_buff *skb, int attr,
			    const struct sockaddr *addr)
{
	size_t len = addr ? kofi_ip_len(addr) : 0;

	return len ? nla_put(skb, attr, len, addr) : 0;
}

/**
 * kofi_nl_put_event - put an event into a message
 * @skb: buffer for the message; unchanged if the event does not fit
 * @obj: the object
 * @notice: the event
 * @lost: number of the object's lost events since its last message
 *
 * Context: any.
 * Return: 0, -EMSGSIZE if @skb has too little room.
 */
VISIBLE_IF_KUNIT int kofi_nl_put_event(struct sk_buff *skb,
				       const struct kofi_obj *obj,
				       const struct kofi_notice *notice,
				       unsigned int lost)
{
	const struct kofi_fabric *fabric = kofi_obj_fabric(obj);
	const struct sockaddr *addr = NULL, *peer = notice->peer;
	const size_t fclass = obj->fid->fclass;
	const char *name = kofi_obj_name(obj);
	void *hdr;

	if (fclass == FI_CLASS_EP) {
		const struct fi_info *info =
			container_of(obj, struct kofi_ep, obj)->info;

		addr = info->src_addr;
		peer = peer ?: info->dest_addr;
	}
	hdr = genlmsg_put(skb, 0, 0, &kofi_nl_family, 0, KOFI_CMD_EVENT);
	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_uint(skb, KOFI_A_EVENT_KIND, notice->kind) ||
	    nla_put_uint(skb, KOFI_A_EVENT_OBJ, obj->id) ||
	    nla_put_uint(skb, KOFI_A_EVENT_CLASS, fclass) ||
	    (obj->prov &&
	     nla_put_string(skb, KOFI_A_EVENT_PROV_NAME, obj->prov->name)) ||
	    nla_put_string(skb, KOFI_A_EVENT_OWNER, fabric->owner) ||
	    nla_put_uint(skb, KOFI_A_EVENT_NETNS, fabric->net->ns.inum) ||
	    (name && nla_put_string(skb, KOFI_A_EVENT_NAME, name)) ||
	    kofi_nl_put_addr(skb, KOFI_A_EVENT_ADDR, addr) ||
	    kofi_nl_put_addr(skb, KOFI_A_EVENT_PEER_ADDR, peer) ||
	    (notice->err &&
	     nla_put_uint(skb, KOFI_A_EVENT_ERR, notice->err)) ||
	    (notice->prov_errno &&
	     nla_put_sint(skb, KOFI_A_EVENT_PROV_ERRNO, notice->prov_errno)) ||
	    (notice->reason &&
	     nla_put_string(skb, KOFI_A_EVENT_REASON, notice->reason)) ||
	    (lost && nla_put_uint(skb, KOFI_A_EVENT_LOST, lost))) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_put_event);

/**
 * kofi_nl_event_admit - count an event and apply the object's rate
 * @obj: the object
 * @now: time in seconds
 * @lost: receives the number of lost events for the message
 *
 * Context: any.
 * Return: false if the event is lost.
 */
VISIBLE_IF_KUNIT bool kofi_nl_event_admit(struct kofi_obj *obj, u32 now,
					  unsigned int *lost)
{
	const u32 second = now & FIELD_MAX(KOFI_EVENTS_SECOND);
	int old = atomic_read(&obj->events);
	unsigned int sent;
	bool admit;
	u32 new;

	do {
		sent = FIELD_GET(KOFI_EVENTS_SECOND, old) == second ?
		       FIELD_GET(KOFI_EVENTS_SENT, old) : 0;
		*lost = FIELD_GET(KOFI_EVENTS_LOST, old);
		admit = sent < KOFI_EVENT_RATE;
		new = FIELD_PREP(KOFI_EVENTS_SECOND, second) |
		      FIELD_PREP(KOFI_EVENTS_SENT, sent + admit) |
		      FIELD_PREP(KOFI_EVENTS_LOST,
				 admit ? 0 : min(*lost + 1, U16_MAX));
	} while (!atomic_try_cmpxchg(&obj->events, &old, new));
	return admit;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_event_admit);

/* Count an admitted event as lost, and restore @lost. */
static void kofi_event_lose(struct kofi_obj *obj, unsigned int lost)
{
	int old = atomic_read(&obj->events);
	u32 new;

	do {
		new = old & ~KOFI_EVENTS_LOST;
		new |= FIELD_PREP(KOFI_EVENTS_LOST,
				  min(FIELD_GET(KOFI_EVENTS_LOST, old) + lost + 1,
				      U16_MAX));
	} while (!atomic_try_cmpxchg(&obj->events, &old, new));
}

/**
 * kofi_events_lost - number of lost events that no message has reported yet
 * @obj: the object
 *
 * Context: any.
 * Return: the number, at most 65535.
 */
unsigned int kofi_events_lost(const struct kofi_obj *obj)
{
	return FIELD_GET(KOFI_EVENTS_LOST, atomic_read(&obj->events));
}
EXPORT_SYMBOL_IF_KUNIT(kofi_events_lost);

/**
 * kofi_notify - send an event of an object to monitors
 * @obj: an object that cannot be closed during the call
 * @notice: the event, copied
 *
 * Context: any.
 */
void kofi_notify(struct kofi_obj *obj, const struct kofi_notice *notice)
{
	struct net *net = kofi_obj_fabric(obj)->net;
	struct sk_buff *skb = NULL;
	unsigned int lost;

	kofi_dbg(obj, "%s: %s\n", kofi_name_of(kofi_names_event_kind, notice->kind),
		 notice->reason ?: fi_strerror(notice->err));
	if (!genl_has_listeners(&kofi_nl_family, net, KOFI_NLGRP_EVENTS) ||
	    !kofi_nl_event_admit(obj, ktime_get_seconds(), &lost))
		return;
	if (skb_queue_len_lockless(&kofi_events) < KOFI_EVENTS_MAX)
		skb = genlmsg_new(KOFI_EVENT_SIZE, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb || WARN_ON_ONCE(kofi_nl_put_event(skb, obj, notice, lost))) {
		nlmsg_free(skb);
		kofi_event_lose(obj, lost);
		return;
	}
	*kofi_event_net(skb) = get_net(net);
	skb_queue_tail(&kofi_events, skb);
	schedule_work(&kofi_events_work);
}

/**
 * kofi_violation - send an event after a violation of the protocol
 * @obj: endpoint of the provider, active or passive, that the peer has reached
 * @peer: address of the peer; NULL for the destination address of the endpoint's info
 * @reason: the violation in words, a constant string
 *
 * The provider counts the violation, and closes the connection.
 *
 * Context: any.
 */
void kofi_violation(struct kofi_obj *obj, const struct sockaddr *peer,
		    const char *reason)
{
	kofi_notify(obj, &(struct kofi_notice) {
		.kind = KOFI_EVENT_VIOLATION, .err = EPROTO, .peer = peer,
		.reason = reason,
	});
}
EXPORT_SYMBOL_GPL(kofi_violation);

#if IS_ENABLED(CONFIG_KUNIT)
/* The group, as sockets join it */
u32 kofi_nl_event_group(void)
{
	return kofi_nl_family.mcgrp_offset + KOFI_NLGRP_EVENTS;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_event_group);
#endif

/**
 * kofi_nl_event_start - set up the queue of messages
 *
 * Context: process, when kofi.ko is loaded.
 */
void kofi_nl_event_start(void)
{
	skb_queue_head_init(&kofi_events);
}

/**
 * kofi_nl_event_stop - send the remaining messages
 *
 * Context: process, when kofi.ko is unloaded: no object is open.
 */
void kofi_nl_event_stop(void)
{
	flush_work(&kofi_events_work);
}
