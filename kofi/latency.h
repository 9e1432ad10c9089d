/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Histograms of the latency of transmits (latency.c). */
#ifndef _KOFI_LATENCY_H
#define _KOFI_LATENCY_H

#include <linux/jump_label.h>
#include <linux/types.h>

struct kofi_ep;

/* The last one has all that took more than 2^39 ns, nine minutes. */
#define KOFI_LATENCY_BUCKETS	41

DECLARE_STATIC_KEY_FALSE(kofi_latency_on);	/* for some endpoint */

void kofi_latency_posted(struct kofi_ep *ep, void *context);
void kofi_latency_refused(struct kofi_ep *ep);
void kofi_latency_completed(struct kofi_ep *ep, void *context);
int kofi_latency_set(struct kofi_ep *ep, bool on);
bool kofi_latency_get(struct kofi_ep *ep, u64 counts[KOFI_LATENCY_BUCKETS]);

static __always_inline bool kofi_latency_wanted(void)
{
	return static_branch_unlikely(&kofi_latency_on);
}

#endif /* _KOFI_LATENCY_H */
