// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Module parameters, and options of objects that start with their values. A write
 * to sysfs changes a parameter at any time, and each new object reads it once,
 * without a lock.
 */
#include <linux/module.h>

#include "verbs.h"

#define VRB_RETRIES	7	/* largest value */
#define VRB_RNR_TIMER	12	/* 0.64 ms */
#define VRB_TIMER_MAX	31

KOFI_PARAM(connect_timeout, vrb, 30000, 10, 86400000, 0644,
	   "Milliseconds for connecting, until the peer has accepted");

KOFI_PARAM(tx_size, vrb, 256, 1, 65536, 0644,
	   "Transmits an endpoint may have outstanding, where its consumer does not say");

KOFI_PARAM(rx_size, vrb, 256, 1, 65536, 0644,
	   "Receives an endpoint may have posted, where its consumer does not say");

void vrb_tunables_init(struct vrb_tunables *tun)
{
	*tun = (struct vrb_tunables) {
		.connect_timeout = READ_ONCE(vrb_connect_timeout),
	};
}

/**
 * vrb_tunables_device - take attributes of connections from a device
 * @tun: options of an endpoint
 * @ib: device of the endpoint
 *
 * The default of each attribute is its largest value, except for the timers. iWARP has
 * only the attributes of reads; TCP has the others.
 *
 * Context: any.
 */
void vrb_tunables_device(struct vrb_tunables *tun, struct ib_device *ib)
{
	bool iwarp = rdma_protocol_iwarp(ib, rdma_start_port(ib));
	bool ever = vrb_quirks(ib) & VRB_QUIRK_RETRY_EVER;
	size_t *most = tun->conn_most;

	most[VRB_CONN_RETRY] = ever ? VRB_RETRIES - 1 : VRB_RETRIES;
	most[VRB_CONN_RNR_RETRY] = KOFI_RNR_RETRY_FOREVER;
	most[VRB_CONN_RNR_TIMER] = VRB_TIMER_MAX;
	most[VRB_CONN_ACK_TIMEOUT] = VRB_TIMER_MAX;
	most[VRB_CONN_READ_DEPTH] = min(ib->attrs.max_qp_init_rd_atom, U8_MAX);
	most[VRB_CONN_READ_RESOURCES] = min(ib->attrs.max_qp_rd_atom, U8_MAX);
	memcpy(tun->conn, most, sizeof(tun->conn));
	tun->conn[VRB_CONN_RNR_TIMER] = VRB_RNR_TIMER;
	tun->conn[VRB_CONN_ACK_TIMEOUT] = 0;
	if (iwarp)
		memset(most, 0, VRB_CONN_READ_DEPTH * sizeof(*most));
}

/**
 * vrb_tunables_conn - find an attribute of a connection
 * @tun: options of an endpoint
 * @name: name of an option
 * @most: receives the largest value
 *
 * Context: any.
 * Return: the attribute; NULL for other options, and on iWARP for attributes of TCP.
 */
size_t *vrb_tunables_conn(struct vrb_tunables *tun, int name, size_t *most)
{
	int i = name - KOFI_OPT_RETRY_COUNT;

	if (i < 0 || i >= VRB_CONN_NR ||
	    (i < VRB_CONN_READ_DEPTH && !tun->conn_most[i]))
		return NULL;
	*most = tun->conn_most[i];
	return &tun->conn[i];
}

/* Ranges of options without a module parameter. Default 0: the device decides, or off. */
static const struct kofi_param vrb_range_silence = { .max = 86400000 };
static const struct kofi_param vrb_range_idle = { .max = 32767000 };

/* Find an option and its range. */
static unsigned int *vrb_tunable(struct vrb_tunables *tun, int name,
				 const struct kofi_param **p)
{
	switch ((unsigned int)name) {
	case KOFI_VAL_CONNECT_TIMEOUT:
		*p = &vrb_connect_timeout_range;
		return &tun->connect_timeout;
	case KOFI_VAL_SILENCE_TIMEOUT:
		*p = &vrb_range_silence;
		return &tun->silence_timeout;
	case KOFI_VAL_KEEPALIVE_IDLE:
		*p = &vrb_range_idle;
		return &tun->keepalive_idle;
	default:
		return NULL;
	}
}

/**
 * vrb_tunables_set - set an option for fi_set_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int
 *
 * Return: 0; -EINVAL out of range; -ENOSYS for an unknown name.
 */
int vrb_tunables_set(struct vrb_tunables *tun, int name, const void *val)
{
	const struct kofi_param *p;
	unsigned int *to = vrb_tunable(tun, name, &p);

	return to ? kofi_param_store(p, to, val) : -ENOSYS;
}

/**
 * vrb_tunables_get - get an option for fi_get_val()
 * @tun: options of an object
 * @name: KOFI_VAL_*
 * @val: unsigned int
 *
 * Return: 0, or -ENOSYS for an unknown name.
 */
int vrb_tunables_get(const struct vrb_tunables *tun, int name, void *val)
{
	const struct kofi_param *p;
	unsigned int *from = vrb_tunable((struct vrb_tunables *)tun, name, &p);

	if (from)
		*(unsigned int *)val = *from;
	return from ? 0 : -ENOSYS;
}
