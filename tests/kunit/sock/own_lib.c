// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The contract's checker once more: an object belongs to one module. */
#include "../contract/lib.c"
