/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Values at which a field of the wire is tried, for suites that try each. */
#ifndef _KOFI_TESTS_WALK_H
#define _KOFI_TESTS_WALK_H

#include <linux/types.h>

#define WALK_VALUES	26	/* at most */

/**
 * walk_values - the values of a field
 * @width: its bytes
 * @good: what it has where all is right
 * @limit: the largest it may have, 0 if it has none
 * @to: where they go, WALK_VALUES at most, each once
 *
 * Ends and middle of what the field can hold, single bits of a field of flags (two
 * bytes), and what is next to @good and @limit.
 *
 * Return: how many there are.
 */
static inline unsigned int walk_values(unsigned int width, u64 good, u64 limit, u64 *to)
{
	const u64 ones = width == 8 ? ~0ULL : (1ULL << 8 * width) - 1;
	u64 all[WALK_VALUES] = {
		0, 1, ones ^ ones >> 1, ones >> 1, ones, good - 1, good, good + 1,
		limit - 1, limit, limit + 1,
	};
	unsigned int i, k, n = 0, count = 11;

	if (width == 2)
		for (i = 0; i < 15; i++)
			all[count++] = 1ULL << i;
	for (i = 0; i < count; i++) {
		all[i] &= ones;
		for (k = 0; k < n && to[k] != all[i]; k++)
			;
		if (k == n)
			to[n++] = all[i];
	}
	return n;
}

#endif /* _KOFI_TESTS_WALK_H */
