/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The suites of kofi_objects_kunit.ko, and the providers they share.
 *
 * A nul provider is one of a few static ones that have nothing behind them: it
 * lists what the test says, its objects do nothing, and its calls return what
 * the test says.
 */
#ifndef _KOFI_TESTS_OBJECTS_H
#define _KOFI_TESTS_OBJECTS_H

#include <linux/kofi/provider.h>

#include <kunit/test.h>

#include "../backport.h"

extern struct kunit_suite kofi_provider_suite;
extern struct kunit_suite kofi_info_suite;
extern struct kunit_suite kofi_fid_suite;
extern struct kunit_suite kofi_cm_suite;
extern struct kunit_suite kofi_tostr_suite;
extern struct kunit_suite kofi_errno_suite;

#define NUL_PROVIDERS	3
#define NUL_FABRIC	"nul-net"
#define NUL_CM_DATA	16	/* private data its endpoints carry */

/**
 * struct nul - a nul provider
 * @prov: what is registered
 * @registered: it is
 * @list: how many fi_info it lists
 * @ret: what getinfo returns; the list is made all the same
 * @asked: how often getinfo was called
 * @version: version it was asked for
 * @net: namespace it was asked for
 * @fabric: fabric it was asked for, or ""
 * @domain: domain it was asked for, or ""
 * @noio: it was asked in a scope that forbids I/O
 */
struct nul {
	struct kofi_provider	prov;
	bool			registered;
	int			list;
	int			ret;
	int			asked;
	u32			version;
	struct net		*net;
	char			fabric[16];
	char			domain[16];
	bool			noio;
};

/**
 * struct nul_ep - an endpoint
 * @base: the core's
 * @ret: what connect, accept and shutdown return
 * @calls: how often they were called
 * @enabled: how often enable was called
 */
struct nul_ep {
	struct kofi_ep		base;
	int			ret;
	int			calls;
	int			enabled;
};

extern struct nul nul[NUL_PROVIDERS];

int nul_register(int i, int priority);
void nul_exit(struct kunit *test);	/* of every suite that registers one */

struct net *nul_net(struct kunit *test);
struct fi_info *nul_info(struct kunit *test, int i);
struct fid_fabric *nul_fabric(struct kunit *test, int i);
struct fid_domain *nul_domain(struct kunit *test, struct fid_fabric *fabric);
struct fid_ep *nul_ep(struct kunit *test, struct fid_domain *domain,
		      struct fi_fid *handle);
struct fid_pep *nul_pep(struct kunit *test, struct fid_fabric *fabric);

#endif /* _KOFI_TESTS_OBJECTS_H */
