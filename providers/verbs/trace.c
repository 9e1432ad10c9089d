// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tx.h"

#define CREATE_TRACE_POINTS
#include "verbs_trace.h"
