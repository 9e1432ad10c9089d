/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How long tests wait for what has to happen. */
#ifndef _KOFI_TESTS_LIMIT_H
#define _KOFI_TESTS_LIMIT_H

/*
 * How many times as long as on a quiet host everything takes here; the runner
 * measures it. A module that has limits defines it, weakly, as several may be
 * built in, and has it as its parameter "slow".
 */
extern unsigned int test_slow;

#define TEST_LIMIT(time)	((time) * test_slow)

#endif /* _KOFI_TESTS_LIMIT_H */
