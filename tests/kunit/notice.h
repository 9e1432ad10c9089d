/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* FI_NOTIFY of a domain, for suites of several modules. */
#ifndef _KOFI_TESTS_NOTICE_H
#define _KOFI_TESTS_NOTICE_H

#include <kunit/test.h>

#include <linux/kofi/fi_eq.h>

#include "limit.h"

/* Wait for FI_NOTIFY with this error code; others may precede it. */
static inline void notice_expect(struct kunit *test, struct fid_eq *eq, int err)
{
	struct fi_eq_entry entry = {};
	u32 event = 0;
	ssize_t ret;

	do {
		ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), TEST_LIMIT(10000), 0);
	} while (ret == sizeof(entry) && entry.data != err);
	KUNIT_EXPECT_EQ_MSG(test, ret, sizeof(entry), "error %d", err);
	KUNIT_EXPECT_EQ(test, event, FI_NOTIFY);
}

#endif /* _KOFI_TESTS_NOTICE_H */
