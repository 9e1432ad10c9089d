/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every test module of kOFI includes, last. */
#ifndef _KOFI_TESTS_KUNIT_H
#define _KOFI_TESTS_KUNIT_H

#include <linux/module.h>

#include <kunit/test.h>
#include <kunit/visibility.h>

#include "backport.h"

/* Functions that are visible to tests only */
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

#endif /* _KOFI_TESTS_KUNIT_H */
