// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_sock.ko: connected endpoints over the kernel's TCP, on the wire the
 * userspace "tcp" provider of libfabric.
 *
 * Here: the module, its parameters, and the options derived from them.
 */
#include <linux/module.h>

#include "sock.h"

struct workqueue_struct *sock_wq;

/* ------------------------------------------------------------- parameters */

/* A parameter's value, its range, and what to say about it */
struct sock_param {
	unsigned int	*value;
	unsigned int	min;
	unsigned int	max;
};

static int sock_param_set(const char *val, const struct kernel_param *kp)
{
	const struct sock_param *p = kp->arg;
	unsigned int n;
	int err;

	err = kstrtouint(val, 0, &n);
	if (!err && n >= p->min && n <= p->max) {
		WRITE_ONCE(*p->value, n);
		return 0;
	}
	pr_err("kofi_sock: %s=%s: must be a number from %u to %u\n",
	       kp->name, val, p->min, p->max);
	return err ? : -ERANGE;
}

static int sock_param_get(char *buf, const struct kernel_param *kp)
{
	const struct sock_param *p = kp->arg;

	return sysfs_emit(buf, "%u\n", *p->value);
}

static const struct kernel_param_ops sock_param_ops = {
	.set = sock_param_set,
	.get = sock_param_get,
};

#define SOCK_PARAM(name, init, lo, hi, perm, desc)			\
	unsigned int sock_##name = (init);				\
	static struct sock_param sock_param_##name = {			\
		.value = &sock_##name, .min = (lo), .max = (hi),	\
	};								\
	module_param_cb(name, &sock_param_ops, &sock_param_##name, perm); \
	MODULE_PARM_DESC(name, desc " (" #lo " to " #hi ", default " #init ")")

SOCK_PARAM(inline_max, 16384, 1, 1048576, 0644,
	   "Bytes a post or a socket callback sends itself; the rest is the work item's");
SOCK_PARAM(rx_budget, 262144, 4096, 16777216, 0644,
	   "Bytes one run of the receiver reads before the work item goes on");
SOCK_PARAM(connect_timeout, 30000, 10, 86400000, 0644,
	   "Milliseconds for connecting, until the peer has accepted");
SOCK_PARAM(handshake_timeout, 10000, 10, 86400000, 0644,
	   "Milliseconds for an incoming connection to send its request");
SOCK_PARAM(silence_timeout, 30000, 100, 86400000, 0644,
	   "Milliseconds without an acknowledgement while data is out after which a peer is dead");
SOCK_PARAM(keepalive_idle, 15000, 0, 32767000, 0644,
	   "Milliseconds until an idle peer is asked whether it is there, 0: never");
SOCK_PARAM(keepalive_intvl, 5, 1, 32767, 0644,
	   "Seconds between these questions");
SOCK_PARAM(keepalive_cnt, 3, 1, 127, 0644,
	   "Unanswered questions after which an idle peer is dead");
SOCK_PARAM(max_pending, 128, 1, 65536, 0644,
	   "Incoming connections per passive endpoint that have not sent their request yet");
SOCK_PARAM(port_min, 0, 0, 65535, 0644,
	   "First port for listeners without one, 0: the system's choice");
SOCK_PARAM(port_max, 65535, 1, 65535, 0644,
	   "Last port for listeners without one");
SOCK_PARAM(tx_size, 256, 1, 65536, 0644,
	   "Transmits an endpoint may have outstanding, where its consumer does not say");
SOCK_PARAM(rx_size, 256, 1, 65536, 0644,
	   "Receives an endpoint may have posted, where its consumer does not say");

void sock_tunables_init(struct sock_tunables *tun)
{
	*tun = (struct sock_tunables) {
		.connect_timeout = READ_ONCE(sock_connect_timeout),
		.handshake_timeout = READ_ONCE(sock_handshake_timeout),
		.silence_timeout = READ_ONCE(sock_silence_timeout),
		.keepalive_idle = READ_ONCE(sock_keepalive_idle),
	};
}

/* Where an option is kept, and the parameter that has its range. */
static unsigned int *sock_tunable(struct sock_tunables *tun, int name,
				  const struct sock_param **p)
{
	switch ((unsigned int)name) {
	case KOFI_VAL_CONNECT_TIMEOUT:
		*p = &sock_param_connect_timeout;
		return &tun->connect_timeout;
	case KOFI_VAL_HANDSHAKE_TIMEOUT:
		*p = &sock_param_handshake_timeout;
		return &tun->handshake_timeout;
	case KOFI_VAL_SILENCE_TIMEOUT:
		*p = &sock_param_silence_timeout;
		return &tun->silence_timeout;
	case KOFI_VAL_KEEPALIVE_IDLE:
		*p = &sock_param_keepalive_idle;
		return &tun->keepalive_idle;
	default:
		return NULL;
	}
}

/**
 * sock_tunables_set - fi_set_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int, milliseconds
 *
 * Return: 0; -EINVAL out of range; -ENOSYS for a name that is unknown.
 */
int sock_tunables_set(struct sock_tunables *tun, int name, const void *val)
{
	const struct sock_param *p;
	unsigned int *to = sock_tunable(tun, name, &p);
	unsigned int n;

	if (!to)
		return -ENOSYS;
	n = *(const unsigned int *)val;
	if (n < p->min || n > p->max)
		return -EINVAL;
	*to = n;
	return 0;
}

/**
 * sock_tunables_get - fi_get_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int, milliseconds
 *
 * Return: 0, or -ENOSYS for a name that is unknown.
 */
int sock_tunables_get(const struct sock_tunables *tun, int name, void *val)
{
	const struct sock_param *p;
	unsigned int *from = sock_tunable((struct sock_tunables *)tun, name,
					  &p);

	if (!from)
		return -ENOSYS;
	*(unsigned int *)val = *from;
	return 0;
}

/* ----------------------------------------------------------------- module */

struct kofi_provider sock_provider = {
	.name		= "sock",
	.version	= FI_VERSION(1, 0),
	.getinfo	= sock_getinfo,
	.fabric		= sock_fabric,
	.owner		= THIS_MODULE,
	.priority	= 10,
};

static int __init sock_init(void)
{
	int err;

	if (sock_port_min > sock_port_max) {
		pr_err("kofi_sock: port_min=%u: must be at most port_max=%u\n",
		       sock_port_min, sock_port_max);
		return -ERANGE;
	}
	sock_wq = alloc_workqueue("kofi_sock", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!sock_wq)
		return -ENOMEM;
	err = sock_domain_init();
	if (err)
		goto destroy_wq;
	err = kofi_provider_register(FI_VERSION(FI_MAJOR_VERSION,
						FI_MINOR_VERSION),
				     &sock_provider);
	if (err)
		goto unregister_notifier;
	return 0;

unregister_notifier:
	sock_domain_exit();
destroy_wq:
	destroy_workqueue(sock_wq);
	return err;
}

static void __exit sock_exit(void)
{
	kofi_provider_deregister(&sock_provider);
	sock_domain_exit();
	destroy_workqueue(sock_wq);
}

module_init(sock_init);
module_exit(sock_exit);

MODULE_DESCRIPTION("kOFI provider for TCP");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS("kofi-prov-sock");
