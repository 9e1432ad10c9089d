// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Scheduling of a stream, from any context: the work item, and the softirq item.
 */
#include <linux/cpu.h>
#include <linux/irq_poll.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>
#include <net/sock.h>

#include "sock.h"

/**
 * ksk_conn_queue - queue the work item of a connection
 * @c: the connection
 *
 * The item runs on the CPU that the consumer has chosen, otherwise on the CPU that
 * receives the connection's packets, which has the socket in its cache and runs the
 * other completions. If that CPU is offline, or goes offline, the item runs on another
 * CPU.
 *
 * Context: any.
 */
void ksk_conn_queue(struct ksk_conn *c)
{
	struct socket *sock = READ_ONCE(c->sock);
	int cpu = c->ep->tun.cpu;

	if (cpu < 0 && sock)
		cpu = READ_ONCE(sock->sk->sk_incoming_cpu);
	if (cpu < 0 || cpu >= (int)nr_cpu_ids || !cpu_online(cpu))
		cpu = WORK_CPU_UNBOUND;
	queue_work_on(cpu, c->wq, &c->work);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_conn_queue);

/**
 * ksk_conn_abort - terminate a stream by its work item
 * @c: the connection
 * @err: the reason, a positive error code; ESHUTDOWN if the peer has closed
 *
 * Context: any.
 */
void ksk_conn_abort(struct ksk_conn *c, int err)
{
	if (!cmpxchg(&c->dead, 0, err))
		ksk_conn_queue(c);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_conn_abort);

/**
 * ksk_conn_ask - schedule a check whether the peer still has the connection
 * @c: the connection
 *
 * Context: any.
 */
void ksk_conn_ask(struct ksk_conn *c)
{
	set_bit(KSK_CONN_ASKED, &c->flags);
	ksk_conn_queue(c);
}

/**
 * ksk_conn_go_on - schedule the sender again after it has used up its budget
 * @c: the connection
 *
 * The sender runs in softirq context, unless the consumer has chosen another CPU.
 *
 * Context: locked, bottom halves off.
 */
void ksk_conn_go_on(struct ksk_conn *c)
{
	int cpu = c->ep->tun.cpu;

	if (cpu >= 0 && cpu != raw_smp_processor_id())
		ksk_conn_queue(c);
	else
		irq_poll_sched(&c->poll);
}

/**
 * ksk_conn_softirq - schedule the stream in softirq context
 * @c: a connection that is established
 *
 * Context: any.
 */
void ksk_conn_softirq(struct ksk_conn *c)
{
	if (in_hardirq() || irqs_disabled()) {
		irq_poll_sched(&c->poll);
		return;
	}
	/* with bottom halves enabled, raising the softirq would wake ksoftirqd */
	local_bh_disable();
	irq_poll_sched(&c->poll);
	local_bh_enable();
}
