// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_sock.ko: connected endpoints over the kernel's TCP, on the wire the
 * userspace "tcp" provider of libfabric.
 *
 * Here: the module, its parameters, and the options derived from them.
 */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <kunit/visibility.h>
#include <linux/kofi/backport.h>

#include "rdm.h"
#include "sock.h"

/*
 * Two queues, so that what may wait for memory never has the workers, nor the
 * rescuer, that reclaim-safe endpoints need.
 */
struct workqueue_struct *ksk_wq;
EXPORT_SYMBOL_IF_KUNIT(ksk_wq);
struct workqueue_struct *ksk_wq_reclaim;

/* ------------------------------------------------------------- parameters */

unsigned int ksk_inline_max = 262144;
static struct kofi_param ksk_param_inline_max = { &ksk_inline_max, 1, 1048576 };
module_param_cb(inline_max, &kofi_param_ops, &ksk_param_inline_max, 0644);
MODULE_PARM_DESC(inline_max,
		 "Bytes one run of the sender sends, a frame counting as 512 more (1 to 1048576, default 262144)");

unsigned int ksk_rx_budget = 262144;
EXPORT_SYMBOL_IF_KUNIT(ksk_rx_budget);
static struct kofi_param ksk_param_rx_budget = { &ksk_rx_budget, 4096, 16777216 };
module_param_cb(rx_budget, &kofi_param_ops, &ksk_param_rx_budget, 0644);
MODULE_PARM_DESC(rx_budget,
		 "Bytes one run of the receiver reads, a frame counting as 512 more (4096 to 16777216, default 262144)");

unsigned int ksk_connect_timeout = 30000;
static struct kofi_param ksk_param_connect_timeout = { &ksk_connect_timeout, 10, 86400000 };
module_param_cb(connect_timeout, &kofi_param_ops, &ksk_param_connect_timeout, 0644);
MODULE_PARM_DESC(connect_timeout,
		 "Milliseconds for connecting, until the peer has accepted (10 to 86400000, default 30000)");

unsigned int ksk_handshake_timeout = 10000;
static struct kofi_param ksk_param_handshake_timeout = { &ksk_handshake_timeout, 10, 86400000 };
module_param_cb(handshake_timeout, &kofi_param_ops, &ksk_param_handshake_timeout, 0644);
MODULE_PARM_DESC(handshake_timeout,
		 "Milliseconds for an incoming connection to send its request (10 to 86400000, default 10000)");

unsigned int ksk_silence_timeout = 30000;
static struct kofi_param ksk_param_silence_timeout = { &ksk_silence_timeout, 1000, 86400000 };
module_param_cb(silence_timeout, &kofi_param_ops, &ksk_param_silence_timeout, 0644);
MODULE_PARM_DESC(silence_timeout,
		 "Milliseconds without an acknowledgment while data is out after which a peer is dead (1000 to 86400000, default 30000)");

unsigned int ksk_frame_timeout;
EXPORT_SYMBOL_IF_KUNIT(ksk_frame_timeout);
static struct kofi_param ksk_param_frame_timeout = { &ksk_frame_timeout, 0, 86400000 };
module_param_cb(frame_timeout, &kofi_param_ops, &ksk_param_frame_timeout, 0644);
MODULE_PARM_DESC(frame_timeout,
		 "Milliseconds a peer may take for the next byte of a frame, 0: no limit (0 to 86400000, default 0)");

unsigned int ksk_keepalive_idle = 15000;
static struct kofi_param ksk_param_keepalive_idle = { &ksk_keepalive_idle, 0, 32767000 };
module_param_cb(keepalive_idle, &kofi_param_ops, &ksk_param_keepalive_idle, 0644);
MODULE_PARM_DESC(keepalive_idle,
		 "Milliseconds until an idle peer is asked whether it is there, 0: never (0 to 32767000, default 15000)");

unsigned int ksk_keepalive_intvl = 5;
static struct kofi_param ksk_param_keepalive_intvl = { &ksk_keepalive_intvl, 1, 32767 };
module_param_cb(keepalive_intvl, &kofi_param_ops, &ksk_param_keepalive_intvl, 0644);
MODULE_PARM_DESC(keepalive_intvl,
		 "Seconds between these questions (1 to 32767, default 5)");

unsigned int ksk_keepalive_cnt = 3;
static struct kofi_param ksk_param_keepalive_cnt = { &ksk_keepalive_cnt, 1, 127 };
module_param_cb(keepalive_cnt, &kofi_param_ops, &ksk_param_keepalive_cnt, 0644);
MODULE_PARM_DESC(keepalive_cnt,
		 "Unanswered questions after which an idle peer is dead (1 to 127, default 3)");

unsigned int ksk_max_pending = 128;
EXPORT_SYMBOL_IF_KUNIT(ksk_max_pending);
static struct kofi_param ksk_param_max_pending = { &ksk_max_pending, 1, 65536 };
module_param_cb(max_pending, &kofi_param_ops, &ksk_param_max_pending, 0644);
MODULE_PARM_DESC(max_pending,
		 "Incoming connections per passive endpoint that have not sent their request yet (1 to 65536, default 128)");

unsigned int ksk_max_unknown = 1024;
EXPORT_SYMBOL_IF_KUNIT(ksk_max_unknown);
static struct kofi_param ksk_param_max_unknown = { &ksk_max_unknown, 0, 65536 };
module_param_cb(max_unknown, &kofi_param_ops, &ksk_param_max_unknown, 0644);
MODULE_PARM_DESC(max_unknown,
		 "Connections of peers that are not in the address vector of a reliable datagram endpoint (0 to 65536, default 1024)");

unsigned int ksk_rdm_idle_timeout;
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_idle_timeout);
static struct kofi_param ksk_param_rdm_idle_timeout = { &ksk_rdm_idle_timeout, 0, 86400000 };
module_param_cb(rdm_idle_timeout, &kofi_param_ops, &ksk_param_rdm_idle_timeout, 0644);
MODULE_PARM_DESC(rdm_idle_timeout,
		 "Milliseconds after which an unused connection of a reliable datagram endpoint is closed, 0: never (0 to 86400000, default 0)");

unsigned int ksk_rdm_max_conns;
EXPORT_SYMBOL_IF_KUNIT(ksk_rdm_max_conns);
static struct kofi_param ksk_param_rdm_max_conns = { &ksk_rdm_max_conns, 0, 1048576 };
module_param_cb(rdm_max_conns, &kofi_param_ops, &ksk_param_rdm_max_conns, 0644);
MODULE_PARM_DESC(rdm_max_conns,
		 "Connections of a reliable datagram endpoint above which unused ones are closed, 0: no limit (0 to 1048576, default 0)");

unsigned int ksk_rendezvous_min;
EXPORT_SYMBOL_IF_KUNIT(ksk_rendezvous_min);
static struct kofi_param ksk_param_rendezvous_min = { &ksk_rendezvous_min, 0, 1073741824 };
module_param_cb(rendezvous_min, &kofi_param_ops, &ksk_param_rendezvous_min, 0644);
MODULE_PARM_DESC(rendezvous_min,
		 "Bytes from which on a tagged message of a reliable datagram endpoint is announced before it is sent, 0: never (0 to 1073741824, default 0)");

unsigned int ksk_port_min;
EXPORT_SYMBOL_IF_KUNIT(ksk_port_min);
static struct kofi_param ksk_param_port_min = { &ksk_port_min, 0, 65535 };
module_param_cb(port_min, &kofi_param_ops, &ksk_param_port_min, 0444);
MODULE_PARM_DESC(port_min,
		 "First port for listeners without one, 0: the system's choice (0 to 65535, default 0)");

unsigned int ksk_port_max = 65535;
EXPORT_SYMBOL_IF_KUNIT(ksk_port_max);
static struct kofi_param ksk_param_port_max = { &ksk_port_max, 1, 65535 };
module_param_cb(port_max, &kofi_param_ops, &ksk_param_port_max, 0444);
MODULE_PARM_DESC(port_max,
		 "Last port for listeners without one (1 to 65535, default 65535)");

unsigned int ksk_tx_size = 256;
static struct kofi_param ksk_param_tx_size = { &ksk_tx_size, 1, 65536 };
module_param_cb(tx_size, &kofi_param_ops, &ksk_param_tx_size, 0644);
MODULE_PARM_DESC(tx_size,
		 "Transmits an endpoint may have outstanding, where its consumer does not say (1 to 65536, default 256)");

unsigned int ksk_rx_size = 256;
static struct kofi_param ksk_param_rx_size = { &ksk_rx_size, 1, 65536 };
module_param_cb(rx_size, &kofi_param_ops, &ksk_param_rx_size, 0644);
MODULE_PARM_DESC(rx_size,
		 "Receives an endpoint may have posted, where its consumer does not say (1 to 65536, default 256)");

unsigned int ksk_zerocopy_min = 16384;
static struct kofi_param ksk_param_zerocopy_min = { &ksk_zerocopy_min, 0, 1073741824 };
module_param_cb(zerocopy_min, &kofi_param_ops, &ksk_param_zerocopy_min, 0644);
MODULE_PARM_DESC(zerocopy_min,
		 "Bytes from which on an operation's pages are sent without copying them, 0: never (0 to 1073741824, default 16384)");

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

/* The range of what has no parameter, as it is never right for all */
static const struct kofi_param ksk_range_bool = { .max = 1 };

/* Where an option is kept, and what has its range. */
static unsigned int *ksk_tunable(struct ksk_tunables *tun, int name,
				 const struct kofi_param **p)
{
	switch ((unsigned int)name) {
	case KOFI_VAL_CONNECT_TIMEOUT:
		*p = &ksk_param_connect_timeout;
		return &tun->connect_timeout;
	case KOFI_VAL_HANDSHAKE_TIMEOUT:
		*p = &ksk_param_handshake_timeout;
		return &tun->handshake_timeout;
	case KOFI_VAL_SILENCE_TIMEOUT:
		*p = &ksk_param_silence_timeout;
		return &tun->silence_timeout;
	case KOFI_VAL_FRAME_TIMEOUT:
		*p = &ksk_param_frame_timeout;
		return &tun->frame_timeout;
	case KOFI_VAL_KEEPALIVE_IDLE:
		*p = &ksk_param_keepalive_idle;
		return &tun->keepalive_idle;
	case KOFI_VAL_KEEPALIVE_INTVL:
		*p = &ksk_param_keepalive_intvl;
		return &tun->keepalive_intvl;
	case KOFI_VAL_KEEPALIVE_CNT:
		*p = &ksk_param_keepalive_cnt;
		return &tun->keepalive_cnt;
	case KOFI_VAL_ZEROCOPY_MIN:
		*p = &ksk_param_zerocopy_min;
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
 * ksk_tunables_set - fi_set_val()
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
	unsigned int n;

	if (name == (int)KOFI_VAL_CPU)
		return ksk_tunables_set_cpu(tun, *(const int *)val);
	if (!to)
		return -ENOSYS;
	n = *(const unsigned int *)val;
	if (n < p->min || n > p->max)
		return -EINVAL;
	*to = n;
	/* the consumer knows the network, see zerocopy.c */
	if (to == &tun->zerocopy_min)
		tun->zerocopy_always = true;
	return 0;
}

/**
 * ksk_tunables_get - fi_get_val()
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

/* ----------------------------------------------------------------- module */

struct kofi_provider ksk_provider = {
	.name		= "sock",
	.version	= FI_VERSION(1, 0),
	.getinfo	= ksk_getinfo,
	.fabric		= ksk_fabric,
	.owner		= THIS_MODULE,
	.priority	= 10,
};

/* A little more than 2 KiB each, of which there may be thousands */
struct kmem_cache *ksk_peers;

static struct workqueue_struct *ksk_wq_alloc(const char *name)
{
	return alloc_workqueue("%s", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0,
			       name);
}

static int __init ksk_init(void)
{
	int err = -ENOMEM;

	if (ksk_port_min > ksk_port_max) {
		pr_err("kofi_sock: port_min=%u: must be at most port_max=%u\n",
		       ksk_port_min, ksk_port_max);
		return -ERANGE;
	}
	ksk_wq = ksk_wq_alloc("kofi_sock");
	if (!ksk_wq)
		return err;
	ksk_wq_reclaim = ksk_wq_alloc("kofi_sock_reclaim");
	if (!ksk_wq_reclaim)
		goto destroy_wq;
	ksk_peers = KMEM_CACHE(ksk_peer, SLAB_HWCACHE_ALIGN);
	if (!ksk_peers)
		goto destroy_wq_reclaim;
	err = ksk_domain_init();
	if (err)
		goto destroy_peers;
	err = kofi_provider_register(FI_VERSION(FI_MAJOR_VERSION,
						FI_MINOR_VERSION),
				     &ksk_provider);
	if (err)
		goto unregister_notifier;
	return 0;

unregister_notifier:
	ksk_domain_exit();
destroy_peers:
	kmem_cache_destroy(ksk_peers);
destroy_wq_reclaim:
	destroy_workqueue(ksk_wq_reclaim);
destroy_wq:
	destroy_workqueue(ksk_wq);
	return err;
}

static void __exit ksk_exit(void)
{
	kofi_provider_deregister(&ksk_provider);
	ksk_domain_exit();
	kmem_cache_destroy(ksk_peers);
	ksk_socket_exit();
	destroy_workqueue(ksk_wq_reclaim);
	destroy_workqueue(ksk_wq);
}

module_init(ksk_init);
module_exit(ksk_exit);

MODULE_DESCRIPTION("kOFI provider for TCP");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS("kofi-prov-sock");
