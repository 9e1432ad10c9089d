// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kofi/object.c, domain.c and pep.c. */
#include <net/net_namespace.h>

#include "objects.h"

#define FID_CONTEXT	((void *)0x5eed)

static int fid_init(struct kunit *test)
{
	int ret = nul_register(0, 0);

	return ret ?: nul_register(1, 0);
}

static struct fid_eq *fid_eq(struct kunit *test, struct fid_fabric *fabric)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(fabric, &attr, &eq, NULL));
	return eq;
}

/* ------------------------------------------------------------------ closing */

static void fid_children(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fid_domain *domain = nul_domain(test, fabric);
	struct fid_pep *pep = nul_pep(test, fabric);
	struct fid_ep *ep = nul_ep(test, domain, NULL);

	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&fabric->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&fabric->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&fabric->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&pep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

static void fid_bindings(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fid_domain *domain = nul_domain(test, fabric);
	struct fid_pep *pep = nul_pep(test, fabric);
	struct fid_eq *eq = fid_eq(test, fabric);

	KUNIT_EXPECT_EQ(test, 0, fi_domain_bind(domain, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_pep_bind(pep, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&pep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

static void fid_close_odd(struct kunit *test)
{
	struct fid_nic nic = { .fid.fclass = FI_CLASS_NIC };

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_close(NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_close(&nic.fid));
}

static int fid_loose_close(struct fi_fid *fid)
{
	return 21;
}

/* A provider's own handle, which the core has no part of, cannot be closed. */
static void fid_close_loose(struct kunit *test)
{
	static const struct fi_ops ops = {
		.size = sizeof(ops), .close = fid_loose_close,
	};
	struct fi_fid fid = { .fclass = FI_CLASS_CONNREQ, .ops = &ops };

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_close(&fid));
}

static void fid_users(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct kofi_obj *obj = fabric->fid.obj;

	KUNIT_EXPECT_TRUE(test, kofi_obj_get(obj));
	KUNIT_EXPECT_TRUE(test, kofi_obj_get(obj));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&fabric->fid));
	kofi_obj_put(obj);
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&fabric->fid));
	kofi_obj_put(obj);

	/* As while somebody else closes it: no new users, no second close. */
	KUNIT_ASSERT_EQ(test, 0, atomic_cmpxchg(&obj->users, 0, -1));
	KUNIT_EXPECT_FALSE(test, kofi_obj_get(obj));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&fabric->fid));
	atomic_set(&obj->users, 0);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

static void fid_numbers(struct kunit *test)
{
	struct fid_fabric *a = nul_fabric(test, 0);
	struct fid_fabric *b = nul_fabric(test, 0);
	u32 id = a->fid.obj->id;

	KUNIT_EXPECT_NE(test, 0, id);
	KUNIT_EXPECT_NE(test, id, b->fid.obj->id);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&a->fid));
	a = nul_fabric(test, 0);
	KUNIT_EXPECT_NE(test, id, a->fid.obj->id);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&a->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&b->fid));
}

/* -------------------------------------------------------- generic operations */

static void fid_generic(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fi_fid *fid = &fabric->fid;
	struct fi_fid *alias;
	void *ops;
	u64 val;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_control(NULL, FI_ENABLE, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_control(fid, FI_ENABLE, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_control(fid, 12345, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_alias(fid, &alias, 0));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_get_val(fid, 1, &val));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_set_val(fid, 1, &val));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_open_ops(NULL, "x", 0, &ops, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_open_ops(fid, NULL, 0, &ops, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_open_ops(fid, "x", 0, NULL, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_open_ops(fid, "x", 0, &ops, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_set_ops(NULL, "x", 0, &val, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_set_ops(fid, NULL, 0, &val, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_set_ops(fid, "x", 0, NULL, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_set_ops(fid, "x", 0, &val, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_close(fid));
}

/* ------------------------------------------------------------------ fabrics */

static void fid_fabric_args(struct kunit *test)
{
	struct fi_fabric_attr attr = { .name = NUL_FABRIC, .prov_name = "nul0" };
	struct fi_info *info = nul_info(test, 0);
	struct fid_fabric *fabric;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_fabric(NULL, &fabric, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_fabric(&attr, NULL, NULL));
	attr.name = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_fabric(&attr, &fabric, NULL));
	attr.name = NUL_FABRIC;
	attr.prov_name = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_fabric(&attr, &fabric, NULL));
	attr.prov_name = "nul0";
	attr.api_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION + 1);
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_fabric(&attr, &fabric, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_fabric2(NULL, &fabric, 0, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_fabric2(info, &fabric, 1, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_fabric2(info, &fabric, 0, FID_CONTEXT));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

static void fid_fabric_open(struct kunit *test)
{
	struct fi_fabric_attr attr = {
		.name = NUL_FABRIC, .prov_name = "nul1",
		.api_version = FI_VERSION(1, 9),
	};
	struct net *net = nul_net(test);
	struct kofi_fabric *fabric;
	struct fid_fabric *fid;

	KUNIT_ASSERT_EQ(test, 0, fi_fabric(&attr, &fid, FID_CONTEXT));
	fabric = container_of(fid, struct kofi_fabric, fabric);
	KUNIT_EXPECT_EQ(test, FI_CLASS_FABRIC, fid->fid.fclass);
	KUNIT_EXPECT_PTR_EQ(test, FID_CONTEXT, fid->fid.context);
	KUNIT_EXPECT_EQ(test, FI_VERSION(1, 9), fid->api_version);
	KUNIT_EXPECT_PTR_EQ(test, &init_net, fabric->net);
	KUNIT_EXPECT_STREQ(test, NUL_FABRIC, fabric->name);
	KUNIT_EXPECT_PTR_EQ(test, &nul[1].prov, fabric->obj.prov);
	/* The attributes were the caller's, and have not been changed. */
	KUNIT_EXPECT_NULL(test, attr.net);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fid->fid));

	attr.net = net;
	KUNIT_ASSERT_EQ(test, 0, fi_fabric(&attr, &fid, FID_CONTEXT));
	fabric = container_of(fid, struct kofi_fabric, fabric);
	KUNIT_EXPECT_PTR_EQ(test, net, fabric->net);
	KUNIT_EXPECT_EQ(test, 2, ns_ref_read(net));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fid->fid));
	KUNIT_EXPECT_EQ(test, 1, ns_ref_read(net));
}

/* ------------------------------------------------------------------ domains */

static void fid_domain_args(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fi_info *info = nul_info(test, 0);
	struct fi_info *other = nul_info(test, 1);
	struct fid_domain *domain;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain(NULL, info, &domain, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain(fabric, NULL, &domain, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain(fabric, info, NULL, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain(fabric, other, &domain, NULL));
	info->dest_addrlen--;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain(fabric, info, &domain, NULL));
	info->dest_addrlen++;
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_domain2(fabric, info, &domain, FI_PEER, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_domain2(fabric, info, &domain, 0,
					    FID_CONTEXT));
	KUNIT_EXPECT_EQ(test, FI_CLASS_DOMAIN, domain->fid.fclass);
	KUNIT_EXPECT_PTR_EQ(test, FID_CONTEXT, domain->fid.context);
	KUNIT_EXPECT_NULL(test, kofi_domain_device(domain));
	KUNIT_EXPECT_PTR_EQ(test, fabric, kofi_domain_fabric(domain));
	KUNIT_EXPECT_EQ(test, NUMA_NO_NODE, kofi_domain_node(domain));
	KUNIT_EXPECT_NULL(test, kofi_domain_vector_cpus(domain, -1));
	KUNIT_EXPECT_PTR_EQ(test, cpu_possible_mask,
			    kofi_domain_vector_cpus(domain, 0));
	/* a device has so many, and no more */
	container_of(domain, struct kofi_domain, domain)->vectors = 2;
	KUNIT_EXPECT_NOT_NULL(test, kofi_domain_vector_cpus(domain, 1));
	KUNIT_EXPECT_NULL(test, kofi_domain_vector_cpus(domain, 2));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

static void fid_domain_bind_args(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fid_fabric *other = nul_fabric(test, 0);
	struct fid_domain *domain = nul_domain(test, fabric);
	struct fid_eq *eq = fid_eq(test, fabric);
	struct fid_eq *far = fid_eq(test, other);

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain_bind(NULL, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain_bind(domain, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain_bind(domain, &domain->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_domain_bind(domain, &eq->fid, FI_WRITE));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_domain_bind(domain, &far->fid, 0));
	/* as while another thread closes it */
	KUNIT_ASSERT_EQ(test, 0, atomic_cmpxchg(&eq->fid.obj->users, 0, -1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_domain_bind(domain, &eq->fid, 0));
	atomic_set(&eq->fid.obj->users, 0);
	KUNIT_EXPECT_EQ(test, 0, fi_domain_bind(domain, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_domain_bind(domain, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&far->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&other->fid));
}

static void fid_domain_notify(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fid_domain *domain = nul_domain(test, fabric);
	struct kofi_domain *base =
		container_of(domain, struct kofi_domain, domain);
	struct fid_eq *eq = fid_eq(test, fabric);
	struct fi_eq_entry entry;
	u32 event;

	kofi_domain_notify(base, 1);	/* without a queue */
	KUNIT_ASSERT_EQ(test, 0, fi_domain_bind(domain, &eq->fid, 0));
	kofi_domain_notify(base, 7);
	kofi_domain_notify(base, 8);
	KUNIT_EXPECT_EQ(test, sizeof(entry),
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, FI_NOTIFY, event);
	KUNIT_EXPECT_PTR_EQ(test, &domain->fid, entry.fid);
	KUNIT_EXPECT_EQ(test, 7, entry.data);
	KUNIT_EXPECT_EQ(test, sizeof(entry),
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, 8, entry.data);
	/* Nothing follows the loss of the device. */
	kofi_domain_notify(base, ENODEV);
	kofi_domain_notify(base, ENETDOWN);
	kofi_domain_notify(base, 0);
	KUNIT_EXPECT_EQ(test, sizeof(entry),
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, ENODEV, entry.data);
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	/* An event that waits goes with its domain. */
	domain = nul_domain(test, fabric);
	base = container_of(domain, struct kofi_domain, domain);
	KUNIT_ASSERT_EQ(test, 0, fi_domain_bind(domain, &eq->fid, 0));
	kofi_domain_notify(base, 7);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

/* -------------------------------------------------------- passive endpoints */

static void fid_pep_args(struct kunit *test)
{
	struct fid_fabric *fabric = nul_fabric(test, 0);
	struct fi_info *info = nul_info(test, 0);
	struct fid_eq *eq = fid_eq(test, fabric);
	struct fid_pep *pep;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_passive_ep(NULL, info, &pep, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_passive_ep(fabric, NULL, &pep, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_passive_ep(fabric, info, NULL, NULL));
	info->ep_attr->type = FI_EP_RDM;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_passive_ep(fabric, info, &pep, NULL));
	info->ep_attr->type = FI_EP_MSG;
	info->src_addrlen = 16;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_passive_ep(fabric, info, &pep, NULL));
	info->src_addrlen = 0;
	KUNIT_ASSERT_EQ(test, 0, fi_passive_ep(fabric, info, &pep, FID_CONTEXT));
	KUNIT_EXPECT_EQ(test, FI_CLASS_PEP, pep->fid.fclass);
	KUNIT_EXPECT_PTR_EQ(test, FID_CONTEXT, pep->fid.context);
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_pep_bind(NULL, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_pep_bind(pep, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_pep_bind(pep, &pep->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_pep_bind(pep, &eq->fid, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_pep_bind(pep, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_pep_bind(pep, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&pep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fabric->fid));
}

static struct kunit_case fid_cases[] = {
	KUNIT_CASE(fid_children),
	KUNIT_CASE(fid_bindings),
	KUNIT_CASE(fid_close_odd),
	KUNIT_CASE(fid_close_loose),
	KUNIT_CASE(fid_users),
	KUNIT_CASE(fid_numbers),
	KUNIT_CASE(fid_generic),
	KUNIT_CASE(fid_fabric_args),
	KUNIT_CASE(fid_fabric_open),
	KUNIT_CASE(fid_domain_args),
	KUNIT_CASE(fid_domain_bind_args),
	KUNIT_CASE(fid_domain_notify),
	KUNIT_CASE(fid_pep_args),
	{}
};

struct kunit_suite kofi_fid_suite = {
	.name		= "kofi_fid",
	.init		= fid_init,
	.exit		= nul_exit,
	.test_cases	= fid_cases,
};
