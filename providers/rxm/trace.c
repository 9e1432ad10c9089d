// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The bodies of kofi_rxm.ko's tracepoints. */
#define CREATE_TRACE_POINTS
#include "rxm_trace.h"
