// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kofi/errno.c. */
#include <linux/limits.h>

#include "objects.h"

static const int errno_codes[] = {
	0, FI_EPERM, FI_ENOENT, FI_EINTR, FI_EIO, FI_E2BIG, FI_EBADF,
	FI_EAGAIN, FI_ENOMEM, FI_EACCES, FI_EFAULT, FI_EBUSY, FI_EEXIST,
	FI_ENODEV, FI_EINVAL, FI_EMFILE, FI_ENOSPC, FI_ENOSYS, FI_ENOMSG,
	FI_ENODATA, FI_EOVERFLOW, FI_EMSGSIZE, FI_ENOPROTOOPT, FI_EOPNOTSUPP,
	FI_EADDRINUSE, FI_EADDRNOTAVAIL, FI_ENETDOWN, FI_ENETUNREACH,
	FI_ECONNABORTED, FI_ECONNRESET, FI_ENOBUFS, FI_EISCONN, FI_ENOTCONN,
	FI_ESHUTDOWN, FI_ETIMEDOUT, FI_ECONNREFUSED, FI_EHOSTDOWN,
	FI_EHOSTUNREACH, FI_EALREADY, FI_EINPROGRESS, FI_EREMOTEIO,
	FI_ECANCELED, FI_EKEYREJECTED, FI_EOTHER, FI_ETOOSMALL, FI_EOPBADSTATE,
	FI_EAVAIL, FI_EBADFLAGS, FI_ENOEQ, FI_EDOMAIN, FI_ENOCQ, FI_ECRC,
	FI_ETRUNC, FI_ENOKEY, FI_ENOAV, FI_EOVERRUN, FI_ENORX, FI_ENOMR,
	FI_EFIREWALLADDR,
	/* which calls and completions report, too */
	ENOTTY, EPIPE, ERANGE, EDEADLK, ENAMETOOLONG, ENOLINK, EPROTO, EBADMSG, ENOTUNIQ,
	EUSERS, EPROTONOSUPPORT, EAFNOSUPPORT, ESTALE,
};

static void errno_every_code(struct kunit *test)
{
	const char *unknown = fi_strerror(INT_MAX);
	const char *text;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(errno_codes); i++) {
		text = fi_strerror(errno_codes[i]);
		KUNIT_ASSERT_NOT_NULL(test, text);
		KUNIT_EXPECT_STRNEQ_MSG(test, text, unknown, "code %d",
					errno_codes[i]);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ_MSG(test, text,
						fi_strerror(errno_codes[j]),
						"codes %d and %d",
						errno_codes[i], errno_codes[j]);
	}
}

static void errno_both_signs(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(errno_codes); i++)
		KUNIT_EXPECT_PTR_EQ(test, fi_strerror(errno_codes[i]),
				    fi_strerror(-errno_codes[i]));
}

static void errno_unknown(struct kunit *test)
{
	static const int codes[] = {
		255, 200, FI_ERRNO_MAX, 512, 100000, INT_MAX, INT_MIN,
		-FI_ERRNO_MAX, -255,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(codes); i++)
		KUNIT_EXPECT_STREQ(test, fi_strerror(codes[i]),
				   "unknown error");
}

static struct kunit_case errno_cases[] = {
	KUNIT_CASE(errno_every_code),
	KUNIT_CASE(errno_both_signs),
	KUNIT_CASE(errno_unknown),
	{}
};

struct kunit_suite kofi_errno_suite = {
	.name		= "kofi_errno",
	.test_cases	= errno_cases,
};
