// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Failure of endpoints, from any context. These functions record the reason;
 * the work item of ep.c terminates the endpoint.
 */
#include "verbs.h"
#include "verbs_trace.h"

/* Record why an endpoint fails. Returns true for the first reason. */
static bool vrb_ep_dies(struct vrb_ep *ep, int err)
{
	bool first = !cmpxchg(&ep->end.err, 0, err);

	if (first)
		mod_delayed_work(vrb_wq, &ep->work, 0);
	return first;
}

/**
 * vrb_ep_abort - fail an endpoint; its work item terminates it
 * @ep: the endpoint
 * @err: reason, a positive error code; ESHUTDOWN if the peer has disconnected
 *
 * Context: any.
 */
void vrb_ep_abort(struct vrb_ep *ep, int err)
{
	vrb_ep_dies(ep, err);
}

/**
 * vrb_ep_failed - fail an endpoint after a work request has failed
 * @ep: the endpoint
 * @wc: completion of the work request
 * @err: error for the consumer, a positive error code
 *
 * A flushed work request fails a connected endpoint, too, because a queue pair
 * that stops by itself need not report it.
 *
 * Context: any.
 */
void vrb_ep_failed(struct vrb_ep *ep, const struct ib_wc *wc, int err)
{
	if (wc->status != IB_WC_WR_FLUSH_ERR) {
		trace_kofi_verbs_error(ep, wc);
		vrb_ep_abort(ep, err);
	} else if (READ_ONCE(ep->base.state) == KOFI_EP_CONNECTED &&
		   vrb_ep_dies(ep, ESHUTDOWN)) {
		/* nothing else reports the reason, as with rxe without memory */
		trace_kofi_verbs_error(ep, wc);
	}
}
