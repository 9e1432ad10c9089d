// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What kofi_verbs makes of every status a work completion can have.
 */
#include <linux/kofi/kofi.h>
#include <linux/module.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>

#include "../../../providers/verbs/verbs.h"
#include "../kunit.h"

static const struct {
	int	status;
	int	err;
	int	rx_err;		/* of a receive */
} wc_cases[] = {
	{ IB_WC_SUCCESS,		0,		0 },
	{ IB_WC_LOC_LEN_ERR,		FI_ETRUNC,	FI_ETRUNC },
	{ IB_WC_LOC_QP_OP_ERR,		EIO,		FI_ETRUNC },
	{ IB_WC_LOC_EEC_OP_ERR,		EIO,		EIO },
	{ IB_WC_LOC_PROT_ERR,		EFAULT,		EFAULT },
	{ IB_WC_WR_FLUSH_ERR,		ECANCELED,	ECANCELED },
	{ IB_WC_MW_BIND_ERR,		EIO,		EIO },
	{ IB_WC_BAD_RESP_ERR,		EIO,		EIO },
	{ IB_WC_LOC_ACCESS_ERR,		EACCES,		EACCES },
	{ IB_WC_REM_INV_REQ_ERR,	EREMOTEIO,	FI_ETRUNC },
	{ IB_WC_REM_ACCESS_ERR,		EACCES,		EACCES },
	{ IB_WC_REM_OP_ERR,		EREMOTEIO,	EREMOTEIO },
	{ IB_WC_RETRY_EXC_ERR,		ETIMEDOUT,	ETIMEDOUT },
	{ IB_WC_RNR_RETRY_EXC_ERR,	FI_ENORX,	FI_ENORX },
	{ IB_WC_LOC_RDD_VIOL_ERR,	EIO,		EIO },
	{ IB_WC_REM_INV_RD_REQ_ERR,	EIO,		EIO },
	{ IB_WC_REM_ABORT_ERR,		ECONNABORTED,	ECONNABORTED },
	{ IB_WC_INV_EECN_ERR,		EIO,		EIO },
	{ IB_WC_INV_EEC_STATE_ERR,	EIO,		EIO },
	{ IB_WC_FATAL_ERR,		EIO,		EIO },
	{ IB_WC_RESP_TIMEOUT_ERR,	ETIMEDOUT,	ETIMEDOUT },
	{ IB_WC_GENERAL_ERR,		EIO,		EIO },
	/* what there is not */
	{ IB_WC_GENERAL_ERR + 1,	EIO,		EIO },
	{ -1,				EIO,		EIO },
	{ INT_MAX,			EIO,		EIO },
};

static void wc_errors_test(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(wc_cases); i++) {
		int status = wc_cases[i].status;

		/* none has been left out */
		if (i <= IB_WC_GENERAL_ERR)
			KUNIT_EXPECT_EQ(test, status, i);
		KUNIT_EXPECT_EQ_MSG(test, vrb_wc_error(status),
				    wc_cases[i].err, "status %d", status);
		KUNIT_EXPECT_EQ_MSG(test, vrb_rx_error(status),
				    wc_cases[i].rx_err, "status %d", status);
	}
}

/* Every status has a text of its own. */
static void wc_strerror_test(struct kunit *test)
{
	int i, k;

	for (i = 0; i <= IB_WC_GENERAL_ERR; i++)
		for (k = 0; k < i; k++)
			KUNIT_EXPECT_STRNEQ(test, vrb_cq_strerror(i),
					    vrb_cq_strerror(k));
	KUNIT_EXPECT_NOT_NULL(test, vrb_cq_strerror(-1));
	KUNIT_EXPECT_NOT_NULL(test, vrb_cq_strerror(INT_MAX));
}

/* Reasons of a rejection are no error codes, and are not called by their names. */
static void wc_event_strerror_test(struct kunit *test)
{
	KUNIT_EXPECT_STREQ(test, vrb_event_strerror(IB_CM_REJ_CONSUMER_DEFINED),
			   ibcm_reject_msg(IB_CM_REJ_CONSUMER_DEFINED));
	KUNIT_EXPECT_STREQ(test, vrb_event_strerror(-ECONNREFUSED),
			   fi_strerror(ECONNREFUSED));
	KUNIT_EXPECT_NOT_NULL(test, vrb_event_strerror(INT_MAX));
	KUNIT_EXPECT_NOT_NULL(test, vrb_event_strerror(INT_MIN));
	KUNIT_EXPECT_NOT_NULL(test, vrb_event_strerror(0));
}

static struct kunit_case verbs_wc_cases[] = {
	KUNIT_CASE(wc_errors_test),
	KUNIT_CASE(wc_strerror_test),
	KUNIT_CASE(wc_event_strerror_test),
	{}
};

static struct kunit_suite verbs_wc_suite = {
	.name		= "verbs_wc",
	.test_cases	= verbs_wc_cases,
};

kunit_test_suite(verbs_wc_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_verbs");
MODULE_LICENSE("Dual BSD/GPL");
