/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device under test, removed and made again, and its addresses. */
#ifndef _KOFI_TESTS_VERBS_LINK_H
#define _KOFI_TESTS_VERBS_LINK_H

#include "../contract/contract.h"

extern unsigned int link_rounds;

struct ib_device;

struct ib_device *link_device(const char *name);
int link_add(void);
int link_add_second(const char *name, const char *under);
int link_remove(void);
int link_remove_second(const char *name);
int link_open(const char *name);
int link_set_up(bool up);
enum ct_mode link_mode(unsigned int round);
struct net_device *link_netdev(void);
int link_address(bool there, int family, const void *addr, int len, int prefix);
int link_test_init(struct kunit *test);
void link_suite_exit(struct kunit_suite *suite);

#endif /* _KOFI_TESTS_VERBS_LINK_H */
