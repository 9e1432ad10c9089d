// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_objects_kunit.ko: providers, discovery, objects, text. */
#include <linux/module.h>

#include "objects.h"
#include "../kunit.h"

kunit_test_suites(&kofi_errno_suite, &kofi_tostr_suite, &kofi_provider_suite,
		  &kofi_info_suite, &kofi_fid_suite, &kofi_cm_suite);

MODULE_DESCRIPTION("kOFI tests: providers, discovery, objects, text");
MODULE_LICENSE("Dual BSD/GPL");
