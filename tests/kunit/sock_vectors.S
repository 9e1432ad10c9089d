/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The captured bytes, from sock_vector_NAME to sock_vector_NAME_end. */
#include <linux/linkage.h>

#include "sock_vectors.h"

#define SOCK_VECTOR_BYTES(name, file, frames)				\
	.global sock_vector_##name;					\
	sock_vector_##name: .incbin file;				\
	.global sock_vector_##name##_end;				\
	sock_vector_##name##_end:;

	.section .rodata, "a"
SOCK_VECTORS(SOCK_VECTOR_BYTES)
