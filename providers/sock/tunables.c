// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Module parameters, and options of objects that begin with their values.
 */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <kunit/visibility.h>

#include "rdm.h"
#include "sock.h"

KOFI_PARAM(inline_max, ksk, 262144, 1, 1048576, 0644,
	   "Bytes one run of the sender sends, a frame counting as 512 more");

KOFI_PARAM(rx_budget, ksk, 262144, 4096, 16777216, 0644,
	   "Bytes one run of the receiver reads, a frame counting as 512 more");
EXPORT_SYMBOL_IF_KUNIT(ksk_rx_budget);

KOFI_PARAM(connect_timeout, ksk, 30000, 10, 86400000, 0644,
	   "Milliseconds for connecting, until the peer has accepted");

KOFI_PARAM(handshake_timeout, ksk, 10000, 10, 86400000, 0644,
	   "Milliseconds for an incoming connection to send its request");

KOFI_PARAM(silence_timeout, ksk, 30000, 1000, 86400000, 0644,
	   "Milliseconds without an acknowledgment while data is out after which a peer is dead");

KOFI_PARAM(frame_timeout, ksk, 0, 0, 86400000, 0644,
	   "Milliseconds a peer may take for the next byte of a frame, 0: no limit");
EXPORT_SYMBOL_IF_KUNIT(ksk_frame_timeout);

KOFI_PARAM(keepalive_idle, ksk, 15000, 0, 32767000, 0644,
	   "Milliseconds until an idle peer is asked whether it is there, 0: never");

KOFI_PARAM(keepalive_intvl, ksk, 5, 1, 32767, 0644,
	   "Seconds between these questions");

KOFI_PARAM(keepalive_cnt, ksk, 3, 1, 127, 0644,
	   "Unanswered questions after which an idle peer is dead");

KOFI_PARAM(max_pending, ksk, 128, 1, 65536, 0644,
	   "Incoming connections per passive endpoint that have not sent their request yet");
EXPORT_SYMBOL_IF_KUNIT(ksk_max_pending);

KOFI_PARAM(max_unknown, ksk, 1024, 0, 65536, 0644,
	   "Connections of peers that are not in the address vector of a reliable datagram endpoint");
EXPORT_SYMBOL_IF_KUNIT(ksk_max_unknown);

KOFI_PARAM(max_unknown_host, ksk, 25, 1, 100, 0644,
	   "Percentage of max_unknown for one address");
EXPORT_SYMBOL_IF_KUNIT(ksk_max_unknown_host);

KOFI_PARAM(max_unknown_net, ksk, 50, 1, 100, 0644,
	   "Percentage of max_unknown for one IPv6 network of 64 bits");
EXPORT_SYMBOL_IF_KUNIT(ksk_max_unknown_net);

KOFI_PARAM(rdm_idle_timeout, ksk, 0, 0, 86400000, 0644,
	   "Milliseconds after which an unused connection of a reliable datagram endpoint is closed, 0: never");
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_idle_timeout);

KOFI_PARAM(rdm_max_conns, ksk, 0, 0, 1048576, 0644,
	   "Connections of a reliable datagram endpoint above which unused ones are closed, 0: no limit");
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_max_conns);

KOFI_PARAM(rendezvous_min, ksk, 0, 0, 1073741824, 0644,
	   "Bytes from which on a tagged message of a reliable datagram endpoint is announced before it is sent, 0: never");
EXPORT_SYMBOL_IF_KUNIT(ksk_rendezvous_min);

KOFI_PARAM(port_min, ksk, 0, 0, 65535, 0444,
	   "First port for listeners without one, 0: the system's choice");
EXPORT_SYMBOL_IF_KUNIT(ksk_port_min);

KOFI_PARAM(port_max, ksk, 65535, 1, 65535, 0444,
	   "Last port for listeners without one");
EXPORT_SYMBOL_IF_KUNIT(ksk_port_max);

KOFI_PARAM(tx_size, ksk, 256, 1, 65536, 0644,
	   "Transmits an endpoint may have outstanding, where its consumer does not say");

KOFI_PARAM(rx_size, ksk, 256, 1, 65536, 0644,
	   "Receives an endpoint may have posted, where its consumer does not say");

KOFI_PARAM(zerocopy_min, ksk, 16384, 0, 1073741824, 0644,
	   "Bytes from which on an operation's pages are sent without copying them, 0: never");

void ksk_tunables_init(struct ksk_tunables *tun)
{
	*tun = (struct ksk_tunables) {
		.connect_timeout = READ_ONCE(ksk_connect_timeout),
		.handshake_timeout = READ_ONCE(ksk_handshake_timeout),
		.silence_timeout = READ_ONCE(ksk_silence_timeout),
		.frame_timeout = READ_ONCE(ksk_frame_timeout),
		.keepalive_idle = READ_ONCE(ksk_keepalive_idle),
		.keepalive_intvl = READ_ONCE(ksk_keepalive_intvl),
		.keepalive_cnt = READ_ONCE(ksk_keepalive_cnt),
		.zerocopy_min = READ_ONCE(ksk_zerocopy_min),
		.rendezvous_min = READ_ONCE(ksk_rendezvous_min),
		.cpu = -1,
	};
}

/* Range of an option without a parameter */
static const struct kofi_param ksk_range_bool = { .max = 1 };

/* Find an option and its range. */
static unsigned int *ksk_tunable(struct ksk_tunables *tun, int name,
				 const struct kofi_param **p)
{
	switch ((unsigned int)name) {
	case KOFI_VAL_CONNECT_TIMEOUT:
		*p = &ksk_connect_timeout_range;
		return &tun->connect_timeout;
	case KOFI_VAL_HANDSHAKE_TIMEOUT:
		*p = &ksk_handshake_timeout_range;
		return &tun->handshake_timeout;
	case KOFI_VAL_SILENCE_TIMEOUT:
		*p = &ksk_silence_timeout_range;
		return &tun->silence_timeout;
	case KOFI_VAL_FRAME_TIMEOUT:
		*p = &ksk_frame_timeout_range;
		return &tun->frame_timeout;
	case KOFI_VAL_KEEPALIVE_IDLE:
		*p = &ksk_keepalive_idle_range;
		return &tun->keepalive_idle;
	case KOFI_VAL_KEEPALIVE_INTVL:
		*p = &ksk_keepalive_intvl_range;
		return &tun->keepalive_intvl;
	case KOFI_VAL_KEEPALIVE_CNT:
		*p = &ksk_keepalive_cnt_range;
		return &tun->keepalive_cnt;
	case KOFI_VAL_ZEROCOPY_MIN:
		*p = &ksk_zerocopy_min_range;
		return &tun->zerocopy_min;
	case KOFI_VAL_RECLAIM_SAFE:
		*p = &ksk_range_bool;
		return &tun->reclaim_safe;
	default:
		return NULL;
	}
}

static int ksk_tunables_set_cpu(struct ksk_tunables *tun, int cpu)
{
	if (cpu < -1 || cpu >= (int)nr_cpu_ids ||
	    (cpu >= 0 && !cpu_possible(cpu)))
		return -EINVAL;
	tun->cpu = cpu;
	return 0;
}

/**
 * ksk_tunables_set - set an option for fi_set_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int; int for KOFI_VAL_CPU
 *
 * Return: 0; -EINVAL out of range; -ENOSYS for a name that is unknown.
 */
int ksk_tunables_set(struct ksk_tunables *tun, int name, const void *val)
{
	const struct kofi_param *p;
	unsigned int *to = ksk_tunable(tun, name, &p);
	int err;

	if (name == (int)KOFI_VAL_CPU)
		return ksk_tunables_set_cpu(tun, *(const int *)val);
	if (!to)
		return -ENOSYS;
	err = kofi_param_store(p, to, val);
	/* the consumer knows the network, see zerocopy.c */
	if (!err && to == &tun->zerocopy_min)
		tun->zerocopy_always = true;
	return err;
}

/**
 * ksk_tunables_get - get an option for fi_get_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int; int for KOFI_VAL_CPU
 *
 * Return: 0, or -ENOSYS for a name that is unknown.
 */
int ksk_tunables_get(const struct ksk_tunables *tun, int name, void *val)
{
	const struct kofi_param *p;
	unsigned int *from = ksk_tunable((struct ksk_tunables *)tun, name,
					 &p);

	if (name == (int)KOFI_VAL_CPU) {
		*(int *)val = tun->cpu;
		return 0;
	}
	if (!from)
		return -ENOSYS;
	*(unsigned int *)val = *from;
	return 0;
}
