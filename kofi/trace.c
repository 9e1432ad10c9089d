// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The one place where the trace points of the core are made. */
#define CREATE_TRACE_POINTS
#include "kofi_trace.h"
