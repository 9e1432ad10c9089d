// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kofi/cm.c: what the core checks before a provider is called. */
#include <linux/in.h>

#include <linux/kofi/compat.h>

#include "../limit.h"
#include "objects.h"

unsigned int test_slow __weak = 1;
module_param_named(slow, test_slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default 1)");

/* Everything a connection needs, of a nul provider */
struct cm {
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_pep		*pep;
};

static struct fi_fid cm_request = { .fclass = FI_CLASS_CONNREQ };
static u8 cm_data[KOFI_CM_DATA_MAX + 1];

static struct nul_ep *cm_nul(struct cm *cm)
{
	return container_of(cm->ep, struct nul_ep, base.ep);
}

static void cm_bind(struct kunit *test, struct cm *cm)
{
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(cm->ep, &cm->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(cm->ep, &cm->cq->fid,
					    FI_TRANSMIT | FI_RECV));
}

static struct cm *cm_open(struct kunit *test, struct fi_fid *handle)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_NONE };
	struct cm *cm = kunit_kzalloc(test, sizeof(*cm), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cm);
	cm->fabric = nul_fabric(test, 0);
	cm->domain = nul_domain(test, cm->fabric);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(cm->fabric, &eq_attr, &cm->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(cm->domain, &cq_attr, &cm->cq,
					    NULL));
	cm->ep = nul_ep(test, cm->domain, handle);
	cm->pep = nul_pep(test, cm->fabric);
	return cm;
}

static void cm_close(struct kunit *test, struct cm *cm)
{
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cm->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cm->pep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cm->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cm->eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cm->domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cm->fabric->fid));
}

static int cm_init(struct kunit *test)
{
	return nul_register(0, 0);
}

static void cm_names(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct sockaddr_in sin = { .sin_family = AF_INET };
	size_t len = sizeof(sin);
	size_t none = 0;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_setname(NULL, &sin, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setname(&cm->eq->fid, &sin, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setname(&cm->ep->fid, NULL, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_setname(&cm->ep->fid, &sin, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_setname(&cm->ep->fid, cm_data, 129));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setname(&cm->ep->fid, &sin, sizeof(sin) - 1));
	sin.sin_family = AF_UNIX;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setname(&cm->ep->fid, &sin, sizeof(sin)));
	sin.sin_family = AF_INET;
	KUNIT_EXPECT_EQ(test, 0, fi_setname(&cm->ep->fid, &sin, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, 0, fi_setname(&cm->pep->fid, &sin, sizeof(sin)));

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getname(NULL, &sin, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getname(&cm->eq->fid, &sin, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getname(&cm->ep->fid, &sin, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getname(&cm->ep->fid, NULL, &len));
	KUNIT_EXPECT_EQ(test, 0, fi_getname(&cm->ep->fid, NULL, &none));
	KUNIT_EXPECT_EQ(test, 0, fi_getname(&cm->pep->fid, &sin, &len));

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getpeer(NULL, &sin, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getpeer(cm->ep, NULL, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_getpeer(cm->ep, &sin, NULL));
	KUNIT_EXPECT_EQ(test, -ENOTCONN, fi_getpeer(cm->ep, &sin, &len));
	cm_close(test, cm);
}

/* The spellings of compat.h are the calls that they stand for. */
static void cm_compat(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct fi_eq_err_entry err;

	KUNIT_EXPECT_EQ(test, 0, fi_bind(cm->ep, &sin, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_bind(cm->ep, &sin, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_pep_setname(cm->pep, &sin, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_pep_setname(cm->pep, NULL, sizeof(sin)));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_error(cm->eq, &err, 0));
	cm_close(test, cm);
}

static void cm_setname_late(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct sockaddr_in sin = { .sin_family = AF_INET };

	cm_bind(test, cm);
	KUNIT_ASSERT_EQ(test, 0, fi_enable(cm->ep));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			fi_setname(&cm->ep->fid, &sin, sizeof(sin)));
	cm_close(test, cm);
}

static void cm_listen(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_listen(NULL));
	KUNIT_EXPECT_EQ(test, -FI_ENOEQ, fi_listen(cm->pep));
	KUNIT_ASSERT_EQ(test, 0, fi_pep_bind(cm->pep, &cm->eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_listen(cm->pep));
	cm_close(test, cm);
}

static const struct data_case {
	const char	*name;
	const void	*param;
	size_t		len;
	int		want;
} data_cases[] = {
	{ "none", NULL, 0, 0 },
	{ "pointer without length", cm_data, 0, 0 },
	{ "length without pointer", NULL, 1, -EINVAL },
	{ "one byte", cm_data, 1, 0 },
	{ "as much as it carries", cm_data, NUL_CM_DATA, 0 },
	{ "one more than it carries", cm_data, NUL_CM_DATA + 1, -EINVAL },
	{ "as much as any may carry", cm_data, KOFI_CM_DATA_MAX, -EINVAL },
	{ "one more than any may carry", cm_data, KOFI_CM_DATA_MAX + 1,
	  -EINVAL },
	{ "absurd", cm_data, SIZE_MAX, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(data, data_cases, name);

static void cm_data_connect(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct cm *cm = cm_open(test, NULL);

	cm_bind(test, cm);
	KUNIT_EXPECT_EQ(test, c->want,
			fi_connect(cm->ep, NULL, c->param, c->len));
	KUNIT_EXPECT_EQ(test, !c->want, cm_nul(cm)->calls);
	cm_close(test, cm);
}

static void cm_data_accept(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct cm *cm = cm_open(test, &cm_request);

	cm_bind(test, cm);
	KUNIT_EXPECT_EQ(test, c->want, fi_accept(cm->ep, c->param, c->len));
	KUNIT_EXPECT_EQ(test, !c->want, cm_nul(cm)->calls);
	cm_close(test, cm);
}

static void cm_data_reject(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct cm *cm = cm_open(test, NULL);

	KUNIT_EXPECT_EQ(test, c->want,
			fi_reject(cm->pep, &cm_request, c->param, c->len));
	cm_close(test, cm);
}

static void cm_connect_args(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct kofi_ep *kep = &cm_nul(cm)->base;
	void *dest = kep->info->dest_addr;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_connect(NULL, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, -FI_ENOEQ, fi_connect(cm->ep, NULL, NULL, 0));
	kep->info->dest_addr = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_connect(cm->ep, NULL, NULL, 0));
	kep->info->dest_addr = dest;
	/* Opened by oneself, not for a request */
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_accept(cm->ep, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_accept(NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_reject(NULL, &cm_request, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_reject(cm->pep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, cm_nul(cm)->calls);
	cm_close(test, cm);
}

static void cm_accept_args(struct kunit *test)
{
	struct cm *cm = cm_open(test, &cm_request);

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, -FI_ENOEQ, fi_accept(cm->ep, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, cm_nul(cm)->calls);
	cm_close(test, cm);
}

/* Connecting enables; what cannot be enabled cannot connect. */
static void cm_implicit_enable(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);

	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(cm->ep, &cm->eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, KOFI_EP_IDLE, cm_nul(cm)->base.state);
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(cm->ep, &cm->cq->fid,
					    FI_TRANSMIT | FI_RECV));
	KUNIT_EXPECT_EQ(test, 0, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, 1, cm_nul(cm)->enabled);
	KUNIT_EXPECT_EQ(test, KOFI_EP_CONNECTING, cm_nul(cm)->base.state);
	cm_close(test, cm);
}

static void cm_states(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct kofi_ep *kep = &cm_nul(cm)->base;
	struct sockaddr_in sin;
	size_t len = sizeof(sin);

	cm_bind(test, cm);
	KUNIT_EXPECT_EQ(test, -ENOTCONN, fi_shutdown(cm->ep, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EALREADY, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, -ENOTCONN, fi_getpeer(cm->ep, &sin, &len));
	KUNIT_ASSERT_TRUE(test, kofi_ep_connected(kep, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EISCONN, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_getpeer(cm->ep, &sin, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_shutdown(NULL, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_shutdown(cm->ep, 1));
	KUNIT_EXPECT_EQ(test, 1, cm_nul(cm)->calls);
	KUNIT_EXPECT_EQ(test, 0, fi_shutdown(cm->ep, 0));
	KUNIT_EXPECT_EQ(test, 2, cm_nul(cm)->calls);
	KUNIT_EXPECT_EQ(test, 0, fi_shutdown(cm->ep, 0));
	KUNIT_EXPECT_EQ(test, 2, cm_nul(cm)->calls);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_getpeer(cm->ep, &sin, &len));
	cm_close(test, cm);
}

/* What the provider refuses at once may be tried again, and has no event. */
static void cm_refused(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct fi_eq_cm_entry entry;
	u32 event;

	cm_bind(test, cm);
	cm_nul(cm)->ret = -ENETUNREACH;
	KUNIT_EXPECT_EQ(test, -ENETUNREACH, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, KOFI_EP_ENABLED, cm_nul(cm)->base.state);
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_read(cm->eq, &event, &entry, sizeof(entry), 0));
	cm_nul(cm)->ret = 0;
	KUNIT_EXPECT_EQ(test, 0, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, 1, cm_nul(cm)->enabled);
	cm_close(test, cm);
}

/* An attempt that has had its end, with an event, has not failed as well. */
static int cm_late_connect(struct fid_ep *ep, const void *addr,
			   const void *param, size_t paramlen)
{
	struct kofi_ep *kep = container_of(ep, struct kofi_ep, ep);

	return kofi_ep_connect_failed(kep, ENODEV, 0, NULL, 0) ? -ENODEV : 0;
}

static void cm_refused_late(struct kunit *test)
{
	struct cm *cm = cm_open(test, NULL);
	struct fi_eq_err_entry error = {};
	struct fi_eq_cm_entry entry;
	struct fi_ops_cm ops = *cm->ep->cm;
	u32 event;

	cm_bind(test, cm);
	ops.connect = cm_late_connect;
	cm->ep->cm = &ops;
	KUNIT_EXPECT_EQ(test, 0, fi_connect(cm->ep, NULL, NULL, 0));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL,
			fi_eq_read(cm->eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, sizeof(error), fi_eq_readerr(cm->eq, &error, 0));
	KUNIT_EXPECT_EQ(test, ENODEV, error.err);
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_read(cm->eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fi_connect(cm->ep, NULL, NULL, 0));
	cm_close(test, cm);
}

/* How an attempt to accept ends, while a transmit has been refused */
static void cm_accepts(struct fid_ep *ep)
{
	kofi_ep_connected(container_of(ep, struct kofi_ep, ep), NULL, 0);
}

static void cm_fails(struct fid_ep *ep)
{
	kofi_ep_connect_failed(container_of(ep, struct kofi_ep, ep), ENODEV, 0,
			       NULL, 0);
}

static int cm_seen;	/* what a transmit was told while the attempt went on */

static int cm_refusing_accept(struct fid_ep *ep, const void *param,
			      size_t paramlen)
{
	cm_seen = kofi_ep_tx_state(container_of(ep, struct kofi_ep, ep));
	return -ENETUNREACH;
}

static struct completion cm_spaced;

static void cm_space(struct fid_ep *ep, void *context)
{
	complete(&cm_spaced);
}

static const struct cm_end {
	const char	*name;
	void		(*end)(struct fid_ep *ep);	/* NULL: refused at once */
	int		after;
} cm_ends[] = {
	{ "connected", cm_accepts, 0 },
	{ "failed", cm_fails, -ESHUTDOWN },
	{ "refused", NULL, -ENOTCONN },
};

KUNIT_ARRAY_PARAM_DESC(cm_end, cm_ends, name);

/*
 * The peer of who accepts may send first: what answers it is told to wait, and that
 * the wait is over.
 */
static void cm_accepting(struct kunit *test)
{
	const struct cm_end *e = test->param_value;
	struct cm *cm = cm_open(test, &cm_request);
	struct kofi_ep *kep = &cm_nul(cm)->base;
	struct fi_ops_cm ops = *cm->ep->cm;

	init_completion(&cm_spaced);
	cm_bind(test, cm);
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(cm->ep, cm_space));
	KUNIT_ASSERT_EQ(test, 0, fi_enable(cm->ep));
	KUNIT_EXPECT_EQ(test, -ENOTCONN, kofi_ep_tx_state(kep));
	if (e->end) {
		KUNIT_EXPECT_EQ(test, 0, fi_accept(cm->ep, NULL, 0));
		KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_state(kep));
		KUNIT_EXPECT_FALSE(test, completion_done(&cm_spaced));
		e->end(cm->ep);
	} else {
		ops.accept = cm_refusing_accept;
		cm->ep->cm = &ops;
		KUNIT_EXPECT_EQ(test, -ENETUNREACH,
				fi_accept(cm->ep, NULL, 0));
		KUNIT_EXPECT_EQ(test, -EAGAIN, cm_seen);
	}
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&cm_spaced,
							    TEST_LIMIT(10 * HZ)));
	KUNIT_EXPECT_EQ(test, e->after, kofi_ep_tx_state(kep));
	cm_close(test, cm);
}

static struct kunit_case cm_cases[] = {
	KUNIT_CASE(cm_names),
	KUNIT_CASE(cm_compat),
	KUNIT_CASE(cm_setname_late),
	KUNIT_CASE(cm_listen),
	KUNIT_CASE_PARAM(cm_data_connect, data_gen_params),
	KUNIT_CASE_PARAM(cm_data_accept, data_gen_params),
	KUNIT_CASE_PARAM(cm_data_reject, data_gen_params),
	KUNIT_CASE(cm_connect_args),
	KUNIT_CASE(cm_accept_args),
	KUNIT_CASE(cm_implicit_enable),
	KUNIT_CASE(cm_states),
	KUNIT_CASE(cm_refused),
	KUNIT_CASE(cm_refused_late),
	KUNIT_CASE_PARAM(cm_accepting, cm_end_gen_params),
	{}
};

struct kunit_suite kofi_cm_suite = {
	.name		= "kofi_cm",
	.init		= cm_init,
	.exit		= nul_exit,
	.test_cases	= cm_cases,
};
