// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Bodies of trace points, with the lines of dynamic debug at the same places. */
#include <linux/kofi/debug.h>

#include "tx.h"

#define CREATE_TRACE_POINTS
#include "verbs_trace.h"

/**
 * vrb_cm_step - trace a step of a connection
 * @obj: the endpoint, active or passive
 * @step: name of the step, a constant string
 * @err: error of the step, or 0
 *
 * Context: any.
 */
void vrb_cm_step(struct kofi_obj *obj, const char *step, int err)
{
	trace_kofi_verbs_cm(obj->id, step, err);
	kofi_dbg(obj, "%s: %d\n", step, err);
}
