// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Bodies of trace points, and messages of dynamic debug for the same steps. */
#include <linux/kofi/debug.h>

#include "rdm.h"

#define CREATE_TRACE_POINTS
#include "sock_trace.h"

/**
 * ksk_cm_step - trace a step of a connection
 * @obj: the endpoint, active or passive
 * @step: name of the step, a constant string
 * @err: error of the step, or 0
 *
 * Context: any.
 */
void ksk_cm_step(struct kofi_obj *obj, const char *step, int err)
{
	trace_kofi_sock_cm(obj->id, step, err);
	kofi_dbg(obj, "%s: %d\n", step, err);
}
