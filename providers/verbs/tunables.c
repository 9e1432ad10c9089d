// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Module parameters, and options of objects that start with their values */
#include <linux/module.h>

#include "verbs.h"

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
