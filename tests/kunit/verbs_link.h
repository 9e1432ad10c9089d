/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device under test, removed and made again. */
#ifndef _KOFI_TESTS_VERBS_LINK_H
#define _KOFI_TESTS_VERBS_LINK_H

#include "contract.h"

extern unsigned int link_rounds;

int link_add(void);
int link_remove(void);
int link_set_up(bool up);
enum ct_mode link_mode(unsigned int round);
int link_test_init(struct kunit *test);
void link_suite_exit(struct kunit_suite *suite);

#endif /* _KOFI_TESTS_VERBS_LINK_H */
