// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The bodies of kofi_verbs.ko's tracepoints. */
#define CREATE_TRACE_POINTS
#include "verbs_trace.h"
