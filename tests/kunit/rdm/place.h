/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the suites about endpoints that do not connect have theirs (place.c). */
#ifndef _KOFI_TESTS_RDM_PLACE_H
#define _KOFI_TESTS_RDM_PLACE_H

#include <kunit/test.h>

#include <linux/kofi/kofi.h>

#include "../backport.h"
#include "../lo.h"

GEN_PARAMS(rdm_place_gen_params);
int rdm_place_getinfo(struct kunit *test, struct fi_info *hints,
		      struct fi_info **info);
const char *rdm_place_device(void);
const char *rdm_place_address(void);

#endif /* _KOFI_TESTS_RDM_PLACE_H */
