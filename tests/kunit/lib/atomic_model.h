/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What atomic operations do, in C's own types: the model that tests compare them
 * with. One element at a time, without concurrency. Also for programs.
 */
#ifndef _KOFI_TESTS_ATOMIC_MODEL_H
#define _KOFI_TESTS_ATOMIC_MODEL_H

#ifdef __KERNEL__
#include <linux/prandom.h>

#include <linux/kofi/lib.h>
#endif

#define AM_CALLS	3

static const u64 am_calls[AM_CALLS] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };

static inline bool am_is_diff(enum fi_op op)
{
#ifdef __KERNEL__
	return op == FI_DIFF;
#else
	/* libfabric 1.17, whose header a peer is built with, does not have it */
	(void)op;
	return false;
#endif
}

#define AM_TYPE(type)							\
static inline void am_do_##type(enum fi_op op, void *mem,		\
				const void *operand, const void *compare) \
{									\
	type dst = *(type *)mem, src = *(const type *)operand;		\
	type cmp = *(const type *)compare;				\
									\
	if ((op == FI_MIN && src < dst) || (op == FI_MAX && src > dst) || \
	    op == FI_ATOMIC_WRITE ||					\
	    (op == FI_CSWAP && cmp == dst) ||				\
	    (op == FI_CSWAP_NE && cmp != dst) ||			\
	    (op == FI_CSWAP_LE && cmp <= dst) ||			\
	    (op == FI_CSWAP_LT && cmp < dst) ||				\
	    (op == FI_CSWAP_GE && cmp >= dst) ||			\
	    (op == FI_CSWAP_GT && cmp > dst))				\
		dst = src;						\
	if (op == FI_SUM)						\
		dst = (type)(dst + (u64)src);				\
	if (am_is_diff(op))						\
		dst = (type)(dst - (u64)src);				\
	if (op == FI_PROD)						\
		dst = (type)(dst * (u64)src);				\
	if (op == FI_LOR)						\
		dst = dst || src;					\
	if (op == FI_LAND)						\
		dst = dst && src;					\
	if (op == FI_LXOR)						\
		dst = (dst && !src) || (!dst && src);			\
	if (op == FI_BOR)						\
		dst |= src;						\
	if (op == FI_BAND)						\
		dst &= src;						\
	if (op == FI_BXOR)						\
		dst ^= src;						\
	if (op == FI_MSWAP)						\
		dst = (src & cmp) | (dst & ~cmp);			\
	*(type *)mem = dst;						\
}

AM_TYPE(s8)
AM_TYPE(u8)
AM_TYPE(s16)
AM_TYPE(u16)
AM_TYPE(s32)
AM_TYPE(u32)
AM_TYPE(s64)
AM_TYPE(u64)

/* By enum fi_datatype */
static void (*const am_do[])(enum fi_op op, void *mem, const void *operand,
			     const void *compare) = {
	am_do_s8, am_do_u8, am_do_s16, am_do_u16, am_do_s32, am_do_u32,
	am_do_s64, am_do_u64,
};

/* A value, as @pick says: one that is often equal, and at the edges, or another */
static inline void am_value(void *to, size_t size, u32 pick, u64 other)
{
	static const u64 edges[] = {
		0, 1, 2, ~0ULL, 0x7f, 0x80, 0x7fff, 0x8000, 0x7fffffff,
		0x80000000, ~0ULL >> 1, 1ULL << 63,
	};
	u64 value = pick >> 16 & 3 ? edges[(pick & 0xffff) % ARRAY_SIZE(edges)] :
				     other;

	/* the low bytes, wherever these are */
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		value <<= 64 - 8 * size;
	memcpy(to, &value, size);
}

#ifdef __KERNEL__
static inline void am_values(struct rnd_state *rnd, void *to, size_t size,
			     size_t count)
{
	u64 other;

	for (; count; count--, to += size) {
		other = (u64)prandom_u32_state(rnd) << 32 |
			prandom_u32_state(rnd);
		am_value(to, size, prandom_u32_state(rnd), other);
	}
}
#endif

#endif /* _KOFI_TESTS_ATOMIC_MODEL_H */
