/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * backport.h - differences of the kernels that kOFI is built for
 *
 * The sources are written for the newest of these kernels. A name that older
 * ones lack, or that newer ones dropped, is defined here; no other file depends
 * on the kernel's version. Where one spelling works in all of them, as
 * container_of() does for timers and void * for addresses of sockets, the
 * sources use it and need nothing here. A copy of kOFI inside a kernel tree does
 * not need this file.
 */
#ifndef _LINUX_KOFI_BACKPORT_H
#define _LINUX_KOFI_BACKPORT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>

/* Without IPv6 as a module there are no stubs to call it by. */
#ifdef __CHECKER__	/* sparse has no __has_include, and is run on 6.12 */
#define KOFI_IPV6_STUBS
#elif __has_include("net/ipv6_stubs.h")
#define KOFI_IPV6_STUBS
#endif

#ifdef KOFI_IPV6_STUBS
#include <net/ipv6_stubs.h>
#define ip6_dst_lookup_flow(...) \
	(ipv6_stub->ipv6_dst_lookup_flow(__VA_ARGS__))
#endif

/* Since 6.13 a timer gets its function together with its clock. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

static inline void
hrtimer_setup_on_stack(struct hrtimer *timer,
		       enum hrtimer_restart (*function)(struct hrtimer *),
		       clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init_on_stack(timer, clock, mode);
	timer->function = function;
}
#endif

/* Since 6.14 the block layer merges requests unless a driver forbids it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define BLK_MQ_F_SHOULD_MERGE	0
#endif

/* Since 6.18 each NUMA node counts the packets that a socket dropped. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define sk_drops_read(sk)	atomic_read(&(sk)->sk_drops)
#endif

/* Since 6.17 a per-CPU queue has a flag of its own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define WQ_PERCPU	0
#endif

/* Since 6.18 a network namespace is enough to find a connection. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define inet_lookup_established(ns, ...) ({				\
	struct net *ns__ = (ns);					\
									\
	inet_lookup_established(ns__, ns__->ipv4.tcp_death_row.hashinfo, \
				__VA_ARGS__);				\
})
#endif

/* Since 6.18 the pages of one range are adjacent in the memory map. */
#ifndef nth_page
#define nth_page(page, n)	((page) + (n))
#endif

/* Late releases of 6.12, and others since, have flags for an acknowledgment. */
#define tcp_ack_now(sk) ({						\
	void (*plain)(struct sock *, u32) = (void *)__tcp_send_ack;	\
	void (*flags)(struct sock *, u32, u16) = (void *)__tcp_send_ack; \
	struct sock *sk__ = (sk);					\
									\
	if (__same_type(*plain, __tcp_send_ack))			\
		plain(sk__, tcp_sk(sk__)->rcv_nxt);			\
	else								\
		flags(sk__, tcp_sk(sk__)->rcv_nxt, 0);			\
})

#endif /* _LINUX_KOFI_BACKPORT_H */
