/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Module parameters that a test changes. */
#ifndef _KOFI_TESTS_PARAM_H
#define _KOFI_TESTS_PARAM_H

#include <kunit/resource.h>
#include <kunit/test.h>

/**
 * struct test_param - a changed parameter
 * @at: the variable
 * @value: its value before the change
 */
struct test_param {
	unsigned int	*at;
	unsigned int	value;
};

static inline void test_param_restore(void *context)
{
	const struct test_param *p = context;

	WRITE_ONCE(*p->at, p->value);
}

/**
 * test_param_set - change a parameter for the rest of a test case
 * @test: the test
 * @at: the variable; gets its value back after the case, which may fail by an assertion
 * @value: the value
 */
static inline void test_param_set(struct kunit *test, unsigned int *at, unsigned int value)
{
	struct test_param *p = kunit_kmalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	*p = (struct test_param){ .at = at, .value = READ_ONCE(*at) };
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, test_param_restore, p), 0);
	WRITE_ONCE(*at, value);
}

#endif /* _KOFI_TESTS_PARAM_H */
