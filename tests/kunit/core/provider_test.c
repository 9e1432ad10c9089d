// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kofi/provider.c. */
#include <linux/console.h>

#include "objects.h"
#include "../../../kofi/internal.h"

/* ------------------------------------------------------------- registration */

static int bad_getinfo(u32 version, const char *node, const char *service,
		       u64 flags, const struct fi_info *hints,
		       struct fi_info **info)
{
	return -ENODATA;
}

static int bad_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context)
{
	return -ENODEV;
}

static const struct bad_case {
	const char		*name;
	struct kofi_provider	prov;
} bad_cases[] = {
	{ "no name", { .getinfo = bad_getinfo, .fabric = bad_fabric } },
	{ "empty name",
	  { .name = "", .getinfo = bad_getinfo, .fabric = bad_fabric } },
	{ "comma in the name",
	  { .name = "a,b", .getinfo = bad_getinfo, .fabric = bad_fabric } },
	{ "name too long",
	  { .name = "0123456789012345678901234567890123456789012345678901234567890123",
	    .getinfo = bad_getinfo, .fabric = bad_fabric } },
	{ "no getinfo", { .name = "bad", .fabric = bad_fabric } },
	{ "no fabric", { .name = "bad", .getinfo = bad_getinfo } },
};

KUNIT_ARRAY_PARAM_DESC(bad, bad_cases, name);

static void provider_bad(struct kunit *test)
{
	const struct bad_case *c = test->param_value;
	struct kofi_provider prov = c->prov;

	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_provider_register(fi_version(), &prov));
}

static void provider_null(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_provider_register(fi_version(), NULL));
}

static const struct version_case {
	const char	*name;
	u32		version;
	int		want;
} version_cases[] = {
	{ "our own", FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), 0 },
	{ "older minor", FI_VERSION(FI_MAJOR_VERSION, 0), 0 },
	{ "newer minor", FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION + 1),
	  -ENOSYS },
	{ "older major", FI_VERSION(FI_MAJOR_VERSION - 1, 20), -ENOSYS },
	{ "newer major", FI_VERSION(FI_MAJOR_VERSION + 1, 0), -ENOSYS },
	{ "none", 0, -ENOSYS },
};

KUNIT_ARRAY_PARAM_DESC(version, version_cases, name);

static void provider_version(struct kunit *test)
{
	const struct version_case *c = test->param_value;
	struct kofi_provider prov = {
		.name = "versioned", .getinfo = bad_getinfo,
		.fabric = bad_fabric, .owner = THIS_MODULE,
	};
	int ret = kofi_provider_register(c->version, &prov);

	KUNIT_EXPECT_EQ(test, c->want, ret);
	if (!ret)
		kofi_provider_deregister(&prov);
}

static void provider_twice(struct kunit *test)
{
	struct kofi_provider prov = {
		.name = "nul0", .getinfo = bad_getinfo, .fabric = bad_fabric,
	};

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	KUNIT_EXPECT_EQ(test, -EEXIST,
			kofi_provider_register(fi_version(), &prov));
	KUNIT_EXPECT_EQ(test, 0, nul_register(1, 0));
	nul_exit(test);
	KUNIT_EXPECT_EQ(test, 0, nul_register(0, 0));
}

static void provider_unknown(struct kunit *test)
{
	struct fi_fabric_attr attr = {
		.name = NUL_FABRIC, .prov_name = "none-of-that-name",
	};
	struct fid_fabric *fabric;

	KUNIT_EXPECT_EQ(test, -ENODEV, fi_fabric(&attr, &fabric, NULL));
}

/* The module cannot go while a fabric is open, and can afterwards. */
static void provider_holds_module(struct kunit *test)
{
#ifdef MODULE
	struct fid_fabric *fabric;
	int before;

	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	before = module_refcount(THIS_MODULE);
	fabric = nul_fabric(test, 0);
	KUNIT_EXPECT_EQ(test, before + 1, module_refcount(THIS_MODULE));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
	KUNIT_EXPECT_EQ(test, before, module_refcount(THIS_MODULE));
#else
	kunit_skip(test, "built in, there is no module to hold");
#endif
}

static atomic_t provider_warnings;

static void provider_console_write(struct console *con, const char *text,
				   unsigned int len)
{
	if (strnstr(text, "provider nul0 deregisters with 2 open objects", len))
		atomic_inc(&provider_warnings);
}

/* A provider that deregisters before its objects are closed is named in the log. */
static void provider_leaves_objects(struct kunit *test)
{
	static struct console console = {
		.name = "kunit", .write = provider_console_write,
		.flags = CON_ENABLED, .index = -1,
	};
	struct fid_domain *domain;
	struct fid_fabric *fabric;

	atomic_set(&provider_warnings, 0);
	register_console(&console);
	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	fabric = nul_fabric(test, 0);
	domain = nul_domain(test, fabric);
	nul_exit(test);
	console_lock();
	console_unlock();
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&provider_warnings));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
	/* and one without objects is not */
	KUNIT_ASSERT_EQ(test, 0, nul_register(0, 0));
	nul_exit(test);
	unregister_console(&console);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&provider_warnings));
}

/* ------------------------------------------------------------------- filter */

static const struct filter_case {
	const char	*name;
	const char	*filter;
	const char	*prov;
	bool		want;
} filter_cases[] = {
	{ "no filter", NULL, "sock", true },
	{ "empty filter", "", "sock", true },
	{ "the only one", "sock", "sock", true },
	{ "another", "verbs", "sock", false },
	{ "first of two", "sock,verbs", "sock", true },
	{ "second of two", "verbs,sock", "sock", true },
	{ "none of two", "verbs,rxm", "sock", false },
	{ "begins alike", "sockets", "sock", false },
	{ "shorter", "soc", "sock", false },
	{ "excluded", "^sock", "sock", false },
	{ "another excluded", "^verbs", "sock", true },
	{ "excluded as second", "^verbs,sock", "sock", false },
	{ "none excluded", "^", "sock", true },
	{ "empty entries", ",,sock,", "sock", true },
	{ "only commas", ",,", "sock", false },
	{ "layered name", "sock;ofi_rxm", "sock", false },
};

KUNIT_ARRAY_PARAM_DESC(filter, filter_cases, name);

static void provider_filter(struct kunit *test)
{
	const struct filter_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->want,
			kofi_provider_allows(c->filter, c->prov));
}

static struct kunit_case provider_cases[] = {
	KUNIT_CASE_PARAM(provider_bad, bad_gen_params),
	KUNIT_CASE(provider_null),
	KUNIT_CASE_PARAM(provider_version, version_gen_params),
	KUNIT_CASE(provider_twice),
	KUNIT_CASE(provider_unknown),
	KUNIT_CASE(provider_holds_module),
	KUNIT_CASE(provider_leaves_objects),
	KUNIT_CASE_PARAM(provider_filter, filter_gen_params),
	{}
};

struct kunit_suite kofi_provider_suite = {
	.name		= "kofi_provider",
	.exit		= nul_exit,
	.test_cases	= provider_cases,
};
