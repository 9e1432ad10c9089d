/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The captured bytes, from sock_vector_NAME to sock_vector_NAME_end. */
#define SOCK_VECTOR(name, file, frames)		\
	.global sock_vector_##name;		\
	sock_vector_##name: .incbin file;	\
	.global sock_vector_##name##_end;	\
	sock_vector_##name##_end:;

	.section .rodata, "a"
#include "sock_vectors.inc"
