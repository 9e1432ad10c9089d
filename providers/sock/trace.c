// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The bodies of kofi_sock.ko's tracepoints. */
#include "rdm.h"

#define CREATE_TRACE_POINTS
#include "sock_trace.h"
