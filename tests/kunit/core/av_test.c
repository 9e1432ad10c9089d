// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address vectors: formats, numbers, what becomes of duplicates, events, ids,
 * look-up while others insert and remove, and many of them.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include <linux/kofi/peer.h>

#include "fake.h"
#include "queues.h"

struct av_test {
	struct fake_world	*world;
	struct fid_domain	*domain;	/* of the format that is tried */
	struct fid_av		*av;
};

static int av_init(struct kunit *test)
{
	struct av_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->world = fake_open(test);
	test->priv = t;
	return 0;
}

static void av_close(struct kunit *test)
{
	struct av_test *t = test->priv;

	if (t->av)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->av->fid));
	if (t->domain)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->domain->fid));
	t->av = NULL;
	t->domain = NULL;
}

static void av_exit(struct kunit *test)
{
	struct av_test *t = test->priv;

	av_close(test);
	fake_close(test, t->world);
}

static struct fid_av *av_open(struct kunit *test, u32 format,
			      const struct fi_av_attr *attr)
{
	struct av_test *t = test->priv;

	av_close(test);
	t->world->info->addr_format = format;
	KUNIT_ASSERT_EQ(test, 0, fi_domain(t->world->fabric, t->world->info,
					   &t->domain, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_av_open(t->domain, attr, &t->av, t));
	return t->av;
}

static struct kofi_av *av_base(struct fid_av *av)
{
	/* the consumer's part is the first member, as in each object */
	return (struct kofi_av *)av;
}

static struct sockaddr_in av_in(u32 host, u16 port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(host),
	};
}

static struct sockaddr_in6 av_in6(u32 last, u16 port)
{
	return (struct sockaddr_in6) {
		.sin6_family = AF_INET6, .sin6_port = htons(port),
		.sin6_addr.s6_addr32 = { htonl(0x20010db8), 0, 0, htonl(last) },
	};
}

#define AV_NET	0x0a000000	/* 10.0.0.0 */

/* ---------------------------------------------------------------- attributes */

static const struct {
	const char		*name;
	u32			format;
	struct fi_av_attr	attr;
	int			ret;
} av_attrs[] = {
	{ "defaults", FI_SOCKADDR_IN, {}, 0 },
	{ "map", FI_SOCKADDR_IN6, { .type = FI_AV_MAP, .count = SIZE_MAX }, 0 },
	{ "contexts", FI_SOCKADDR, { .rx_ctx_bits = 16 }, 0 },
	{ "flags", FI_ADDR_STR,
	  { .flags = FI_EVENT | FI_SYMMETRIC | FI_AV_USER_ID }, 0 },
	{ "unknown type", FI_SOCKADDR_IN, { .type = 3 }, -EINVAL },
	{ "negative bits", FI_SOCKADDR_IN, { .rx_ctx_bits = -1 }, -EINVAL },
	{ "many bits", FI_SOCKADDR_IN, { .rx_ctx_bits = 17 }, -EINVAL },
	{ "shared to read", FI_SOCKADDR_IN, { .flags = FI_READ },
	  -FI_EBADFLAGS },
	{ "name", FI_SOCKADDR_IN, { .name = "mine" }, -ENOSYS },
	{ "InfiniBand", FI_SOCKADDR_IB, {}, -ENOSYS },
};

static void av_open_test(struct kunit *test)
{
	struct av_test *t = test->priv;
	struct fid_domain *domain;
	struct fid_av *av;
	int i;

	for (i = 0; i < ARRAY_SIZE(av_attrs); i++) {
		t->world->info->addr_format = av_attrs[i].format;
		KUNIT_ASSERT_EQ(test, 0,
				fi_domain(t->world->fabric, t->world->info,
					  &domain, NULL));
		KUNIT_EXPECT_EQ_MSG(test, av_attrs[i].ret,
				    fi_av_open(domain, &av_attrs[i].attr, &av,
					       test),
				    "%s", av_attrs[i].name);
		if (!av_attrs[i].ret) {
			KUNIT_EXPECT_PTR_EQ(test, test, av->fid.context);
			KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&domain->fid));
			KUNIT_EXPECT_EQ(test, 0, fi_close(&av->fid));
		}
		KUNIT_EXPECT_EQ(test, 0, fi_close(&domain->fid));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_open(NULL, NULL, &av, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_av_open(t->world->domain, NULL, NULL, NULL));
}

/* -------------------------------------------------------------- insertions */

/* Addresses that each fail for themselves */
static void av_errors_test(struct kunit *test)
{
	struct sockaddr_in in[] = {
		av_in(AV_NET + 1, 7), av_in(0, 7), av_in(AV_NET + 2, 0),
		av_in(AV_NET + 3, 7), av_in(AV_NET + 1, 7),
	};
	static const int wanted[] = { 0, EADDRNOTAVAIL, EADDRNOTAVAIL, EINVAL, 0 };
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, NULL);
	fi_addr_t got[ARRAY_SIZE(in)];
	int errs[ARRAY_SIZE(in)], i;

	in[3].sin_family = AF_UNIX;
	KUNIT_EXPECT_EQ(test, 2, fi_av_insert(av, in, ARRAY_SIZE(in), got,
					      FI_SYNC_ERR | FI_MORE, errs));
	for (i = 0; i < ARRAY_SIZE(in); i++) {
		KUNIT_EXPECT_EQ_MSG(test, wanted[i], errs[i], "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, wanted[i] ? FI_ADDR_NOTAVAIL : 0,
				    got[i], "%d", i);
	}
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in[0], 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_insert(av, in, 0, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_av_insert(av, in, 1, got, FI_PEEK, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_av_insert(av, in, 1, got, FI_AV_USER_ID, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_insert(av, NULL, 1, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_insert(NULL, in, 1, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_av_insert(av, in, 1, got, FI_SYNC_ERR, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_insert(av, &in[3], 1, got, 0,
						    NULL));

	/* numbers that are not reported: not with this type */
	av = av_open(test, FI_SOCKADDR_IN, &(struct fi_av_attr) {
			.type = FI_AV_MAP });
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_insert(av, in, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, in, 1, got, 0, NULL));
}

/* The family must be one of the format's. */
static void av_family_test(struct kunit *test)
{
	struct sockaddr_in6 in6[] = { av_in6(1, 7), av_in6(2, 7), av_in6(2, 8) };
	struct sockaddr_in in = av_in(AV_NET + 1, 7);
	struct fid_av *av;
	fi_addr_t got[3];
	int err = 0;

	av = av_open(test, FI_SOCKADDR_IN, NULL);
	KUNIT_EXPECT_EQ(test, 0, fi_av_insert(av, in6, 1, got, FI_SYNC_ERR, &err));
	KUNIT_EXPECT_EQ(test, EINVAL, err);
	av = av_open(test, FI_SOCKADDR_IN6, NULL);
	KUNIT_EXPECT_EQ(test, 0, fi_av_insert(av, &in, 1, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 3, fi_av_insert(av, in6, 3, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 2ULL, got[2]);

	/* both, each in a call of its own */
	av = av_open(test, FI_SOCKADDR_IP, NULL);
	KUNIT_EXPECT_EQ(test, 3, fi_av_insert(av, in6, 3, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 3ULL, got[0]);

	/* what is of no meaning to a peer makes no other address */
	in6[0].sin6_flowinfo = htonl(5);
	in6[0].sin6_scope_id = 3;
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, in6, 1, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0ULL, got[0]);
	/* but the interface of a link-local one does */
	in6[1].sin6_addr.s6_addr32[0] = htonl(0xfe800000);
	in6[2] = in6[1];
	in6[1].sin6_scope_id = 1;
	in6[2].sin6_scope_id = 2;
	KUNIT_EXPECT_EQ(test, 2, fi_av_insert(av, &in6[1], 2, got, 0, NULL));
	KUNIT_EXPECT_NE(test, got[0], got[1]);
}

/* Numbers: in order, the lowest free one next, twice in is twice out. */
static void av_number_test(struct kunit *test)
{
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, NULL);
	fi_addr_t got, twice[] = { 4, 4 }, some[] = { 1, 2, 99 };
	struct sockaddr_in in, out;
	size_t len = sizeof(out);
	int i;

	for (i = 0; i < 8; i++) {
		in = av_in(AV_NET + i, 7);
		KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, 0, NULL));
		KUNIT_EXPECT_EQ(test, (fi_addr_t)i, got);
	}
	/* one of them unknown: none goes */
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_remove(av, some, 3, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_remove(av, twice, 2, 0));
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, 0, fi_av_lookup(av, i, &out, &len));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, some, 2, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_lookup(av, 1, &out, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_remove(av, some, 1, 0));

	in = av_in(AV_NET + 4, 7);
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 4ULL, got);
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, twice, 1, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_av_lookup(av, 4, &out, &len));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, twice, 2, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_lookup(av, 4, &out, &len));

	for (i = 0; i < 3; i++) {
		in = av_in(AV_NET + 100 + i, 7);
		KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, 0, NULL));
		KUNIT_EXPECT_EQ(test, i < 2 ? 1ULL + i : 4ULL, got);
	}
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_av_remove(av, some, 1, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_remove(av, NULL, 1, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, NULL, 0, 0));
	got = FI_ADDR_UNSPEC;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_remove(av, &got, 1, 0));
}

/* ------------------------------------------------------- other ways to name */

/* Longer than any address */
static const char av_long[] = {
	"fi_sockaddr_in://000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000010.0.0.1:7"
};

static const struct {
	const char	*text;
	const char	*printed;	/* NULL: refused */
} av_texts[] = {
	{ "fi_sockaddr_in://10.0.0.1:7471", "fi_sockaddr_in://10.0.0.1:7471" },
	{ "fi_sockaddr_in6://[2001:db8:0::1]:9",
	  "fi_sockaddr_in6://[2001:db8::1]:9" },
	{ "fi_sockaddr_in6://[fe80::1%1]:9", "fi_sockaddr_in6://[fe80::1%1]:9" },
	{ "fi_sockaddr_in://10.0.0.1:0" },
	{ "fi_sockaddr_in://10.0.0.1" },
	{ "fi_sockaddr_in://10.0.0.1:65536" },
	{ "fi_sockaddr_in://10.0.0.256:7" },
	{ "fi_sockaddr_in://:7" },
	{ "fi_sockaddr_in://[::1]:7" },
	{ "fi_sockaddr_in6://::1:7" },
	{ "fi_sockaddr_in6://[::1:7" },
	{ "fi_sockaddr_in6://10.0.0.1:7" },
	{ "fi_sockaddr_ib://[fe80::1]:7" },
	{ "10.0.0.1:7471" },
	{ av_long },
	{ "" },
};

static void av_text_test(struct kunit *test)
{
	struct fid_av *av = av_open(test, FI_ADDR_STR, NULL);
	const char *null = NULL;
	fi_addr_t got = 0;
	char buf[96];
	size_t len;
	int i;

	for (i = 0; i < ARRAY_SIZE(av_texts); i++) {
		KUNIT_EXPECT_EQ_MSG(test, av_texts[i].printed ? 1 : 0,
				    fi_av_insert(av, &av_texts[i].text, 1, &got,
						 0, NULL),
				    "%s", av_texts[i].text);
		if (!av_texts[i].printed)
			continue;
		len = sizeof(buf);
		KUNIT_EXPECT_EQ(test, 0, fi_av_lookup(av, got, buf, &len));
		KUNIT_EXPECT_STREQ(test, av_texts[i].printed, buf);
		KUNIT_EXPECT_EQ(test, strlen(buf) + 1, len);
		KUNIT_EXPECT_PTR_EQ(test, (const char *)buf,
				    fi_av_straddr(av, av_texts[i].printed, buf,
						  &len));
		KUNIT_EXPECT_STREQ(test, av_texts[i].printed, buf);
	}
	KUNIT_EXPECT_EQ(test, 0, fi_av_insert(av, &null, 1, &got, 0, NULL));
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL, got);
}

static const struct {
	const char	*node;
	size_t		nodes;
	const char	*service;
	size_t		services;
	int		ret;
	const char	*last;
} av_ranges[] = {
	{ "10.0.0.1", 1, "7", 1, 1, "fi_sockaddr_in://10.0.0.1:7" },
	{ "10.0.0.255", 2, "7", 3, 6, "fi_sockaddr_in://10.0.1.0:9" },
	{ "255.255.255.254", 2, "65535", 1, 2,
	  "fi_sockaddr_in://255.255.255.255:65535" },
	{ "fd00::ffff", 2, "7", 1, 2, "fi_sockaddr_in6://[fd00::1:0]:7" },
	{ "255.255.255.254", 3, "7", 1, -EINVAL },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 2, "7", 1, -EINVAL },
	{ "10.0.0.1", 1, "65535", 2, -EINVAL },
	{ "10.0.0.1", SIZE_MAX, "7", 2, -EINVAL },
	{ "10.0.0.1", 0, "7", 1, -EINVAL },
	{ "10.0.0.1", 1, "7", 0, -EINVAL },
	{ "10.0.0.1", 1, "echo", 1, -EINVAL },
	{ "10.0.0.1", 1, "65536", 1, -EINVAL },
	{ "somewhere", 1, "7", 1, -ENODATA },
	{ NULL, 1, "7", 1, -EINVAL },
	{ "10.0.0.1", 1, NULL, 1, -EINVAL },
};

static void av_range_test(struct kunit *test)
{
	struct sockaddr_storage ss;
	struct fid_av *av;
	fi_addr_t got[6];
	char buf[96];
	size_t len;
	int i;

	for (i = 0; i < ARRAY_SIZE(av_ranges); i++) {
		av = av_open(test, FI_SOCKADDR, NULL);
		KUNIT_EXPECT_EQ_MSG(test, av_ranges[i].ret,
				    fi_av_insertsym(av, av_ranges[i].node,
						    av_ranges[i].nodes,
						    av_ranges[i].service,
						    av_ranges[i].services, got,
						    0, NULL), "case %d", i);
		if (av_ranges[i].ret < 0)
			continue;
		len = sizeof(ss);
		KUNIT_EXPECT_EQ(test, 0,
				fi_av_lookup(av, got[av_ranges[i].ret - 1], &ss,
					     &len));
		len = sizeof(buf);
		KUNIT_EXPECT_PTR_EQ(test, (const char *)buf,
				    fi_av_straddr(av, &ss, buf, &len));
		KUNIT_EXPECT_STREQ(test, av_ranges[i].last, buf);
	}
	av = av_open(test, FI_SOCKADDR_IN, NULL);
	KUNIT_EXPECT_EQ(test, 1,
			fi_av_insertsvc(av, "10.0.0.1", "7", got, 0, NULL));
	KUNIT_EXPECT_EQ(test, -ENODATA,
			fi_av_insertsvc(av, "::1", "7", got, 0, NULL));
	/* the wildcard address is nowhere */
	KUNIT_EXPECT_EQ(test, 0,
			fi_av_insertsvc(av, "0.0.0.0", "7", got, 0, NULL));
}

static void av_lookup_test(struct kunit *test)
{
	struct fi_av_attr attr = { .rx_ctx_bits = 4 };
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, &attr);
	struct sockaddr_in in = av_in(AV_NET + 1, 100), out = {};
	union kofi_ip ip;
	fi_addr_t got;
	char buf[8];
	size_t len;

	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, 0, NULL));
	len = 4;
	KUNIT_EXPECT_EQ(test, 0, fi_av_lookup(av, got, &out, &len));
	KUNIT_EXPECT_EQ(test, sizeof(out), len);
	KUNIT_EXPECT_EQ(test, ntohs(in.sin_port), ntohs(out.sin_port));
	KUNIT_EXPECT_EQ(test, 0U, (__force u32)out.sin_addr.s_addr);
	len = 0;
	KUNIT_EXPECT_EQ(test, 0, fi_av_lookup(av, got, NULL, &len));
	KUNIT_EXPECT_EQ(test, sizeof(out), len);
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_lookup(av, got, &out, NULL));

	len = sizeof(buf);
	KUNIT_EXPECT_NOT_NULL(test, fi_av_straddr(av, &in, buf, &len));
	KUNIT_EXPECT_STREQ(test, "fi_sock", buf);
	KUNIT_EXPECT_EQ(test, sizeof("fi_sockaddr_in://10.0.0.1:100"), len);
	out.sin_family = AF_UNIX;
	KUNIT_EXPECT_NULL(test, fi_av_straddr(av, &out, buf, &len));

	/* receive contexts have consecutive ports */
	KUNIT_EXPECT_EQ(test, 0, kofi_av_get(av_base(av), fi_rx_addr(got, 15, 4),
					     &ip));
	KUNIT_EXPECT_EQ(test, 115, ntohs(ip.in4.sin_port));
	KUNIT_EXPECT_EQ(test, got, fi_rx_addr(got, 0, 4));
	KUNIT_EXPECT_EQ(test, got, kofi_av_source(av_base(av),
						  (struct sockaddr *)&in));
	in.sin_port = htons(101);
	KUNIT_EXPECT_EQ(test, fi_rx_addr(got, 1, 4),
			kofi_av_source(av_base(av), (struct sockaddr *)&in));
	KUNIT_EXPECT_EQ(test, fi_rx_addr(got, 1, 4),
			kofi_av_id(av_base(av), fi_rx_addr(got, 1, 4)));
	in.sin_port = htons(116);
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL,
			kofi_av_source(av_base(av), (struct sockaddr *)&in));
	in.sin_port = htons(99);
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL,
			kofi_av_source(av_base(av), (struct sockaddr *)&in));
}

/* ------------------------------------------------------------ events and ids */

static void av_event_test(struct kunit *test)
{
	struct fi_av_attr attr = { .flags = FI_EVENT };
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, &attr);
	struct sockaddr_in in[] = {
		av_in(AV_NET + 1, 7), av_in(AV_NET + 2, 0), av_in(AV_NET + 3, 7),
	};
	struct av_test *t = test->priv;
	struct fi_eq_err_entry err = {};
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	fi_addr_t got[3];
	u32 event;
	int errs[3];

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &eq, NULL));
	KUNIT_EXPECT_EQ(test, -FI_ENOEQ, fi_av_insert(av, in, 3, got, 0, in));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_bind(av, &av->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_av_bind(av, &eq->fid, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_av_bind(av, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_av_bind(av, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_av_insert(av, in, 3, got, FI_SYNC_ERR, errs));

	KUNIT_EXPECT_EQ(test, 0, fi_av_insert(av, in, 3, got, 0, in));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL,
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(err), fi_eq_readerr(eq, &err, 0));
	KUNIT_EXPECT_EQ(test, EADDRNOTAVAIL, err.err);
	KUNIT_EXPECT_EQ(test, 1ULL, err.data);
	KUNIT_EXPECT_PTR_EQ(test, (void *)in, err.context);
	KUNIT_EXPECT_PTR_EQ(test, &av->fid, err.fid);
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(entry),
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	KUNIT_EXPECT_EQ(test, (u32)FI_AV_COMPLETE, event);
	KUNIT_EXPECT_EQ(test, 2ULL, entry.data);
	KUNIT_EXPECT_PTR_EQ(test, (void *)in, entry.context);
	KUNIT_EXPECT_PTR_EQ(test, &av->fid, entry.fid);
	KUNIT_EXPECT_EQ(test, 1ULL, got[2]);

	/* events of a vector that is closed are forgotten */
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_av_insert(av, in, 3, got, 0, in));
	av_close(test);
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			fi_eq_read(eq, &event, &entry, sizeof(entry), 0));

	av = av_open(test, FI_SOCKADDR_IN, NULL);
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_bind(av, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
}

static void av_user_id_test(struct kunit *test)
{
	struct fi_av_attr attr = { .flags = FI_AV_USER_ID };
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, &attr);
	struct sockaddr_in in[] = { av_in(AV_NET + 1, 7), av_in(AV_NET + 2, 7) };
	fi_addr_t ids[] = { 1000, 2000 };

	KUNIT_EXPECT_EQ(test, 2, fi_av_insert(av, in, 2, ids, FI_AV_USER_ID, NULL));
	KUNIT_EXPECT_EQ(test, 0ULL, ids[0]);
	KUNIT_EXPECT_EQ(test, 1ULL, ids[1]);
	KUNIT_EXPECT_EQ(test, 2000ULL, kofi_av_source(av_base(av),
						      (struct sockaddr *)&in[1]));
	KUNIT_EXPECT_EQ(test, 0, fi_av_set_user_id(av, 1, 3000, 0));
	KUNIT_EXPECT_EQ(test, 3000ULL, kofi_av_source(av_base(av),
						      (struct sockaddr *)&in[1]));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_set_user_id(av, 2, 1, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_av_set_user_id(av, 1, 1, 1));
	/* an id is something to read */
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_insert(av, in, 1, NULL, 0, NULL));

	av = av_open(test, FI_SOCKADDR_IN, NULL);
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, in, 1, ids, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_set_user_id(av, 0, 1, 0));
}

/* ---------------------------------------------------------- against a model */

#define AV_HOSTS	32
#define AV_STEPS	1000

static unsigned int av_seed;
module_param(av_seed, uint, 0444);
MODULE_PARM_DESC(av_seed, "run only this seed of the address vector model (0: all)");

static unsigned int av_runs = 20;
module_param(av_runs, uint, 0444);
MODULE_PARM_DESC(av_runs, "seeds of the address vector model");

static void av_model_run(struct kunit *test, u32 seed)
{
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, NULL);
	int inserted[AV_HOSTS] = {};
	fi_addr_t number[AV_HOSTS], got;
	struct sockaddr_in in, out;
	struct rnd_state rnd;
	size_t len;
	int i, h;

	prandom_seed_state(&rnd, seed);
	/* of neighbouring seeds the first numbers are much the same */
	for (i = 0; i < 32; i++)
		prandom_u32_state(&rnd);
	for (i = 0; i < AV_STEPS; i++) {
		h = prandom_u32_state(&rnd) % AV_HOSTS;
		in = av_in(AV_NET + h, 7);
		if (prandom_u32_state(&rnd) & 1) {
			KUNIT_ASSERT_EQ(test, 1, fi_av_insert(av, &in, 1, &got,
							      0, NULL));
			if (inserted[h]++)
				KUNIT_ASSERT_EQ(test, number[h], got);
			number[h] = got;
		} else if (inserted[h]) {
			KUNIT_ASSERT_EQ(test, 0, fi_av_remove(av, &number[h], 1,
							      0));
			inserted[h]--;
		}
		h = prandom_u32_state(&rnd) % AV_HOSTS;
		in = av_in(AV_NET + h, 7);
		KUNIT_ASSERT_EQ(test, inserted[h] ? number[h] : FI_ADDR_NOTAVAIL,
				kofi_av_source(av_base(av),
					       (struct sockaddr *)&in));
		if (!inserted[h])
			continue;
		len = sizeof(out);
		KUNIT_ASSERT_EQ(test, 0, fi_av_lookup(av, number[h], &out,
						      &len));
		KUNIT_ASSERT_EQ(test, ntohl(in.sin_addr.s_addr),
				ntohl(out.sin_addr.s_addr));
	}
}

static void av_model_test(struct kunit *test)
{
	u32 i, first = av_seed ?: 1, runs = av_seed ? 1 : av_runs;

	for (i = first; i < first + runs; i++) {
		kunit_info(test, "seed %u", i);
		av_model_run(test, i);
	}
}

/* ---------------------------------------------------- many, and all at once */

#define AV_MANY		100000
#define AV_TURNS	5	/* the best of them counts */
#define AV_BYTES	1024	/* of an address; with redzones and owners of a debug kernel */
#define AV_FLAT		10

/* The port tells whether an address is one piece. */
static struct sockaddr_in av_whole(u32 i)
{
	return av_in(AV_NET + i, i % 60000 + 1);
}

static bool av_is_whole(const struct sockaddr_in *in)
{
	return ntohs(in->sin_port) ==
	       (ntohl(in->sin_addr.s_addr) - AV_NET) % 60000 + 1;
}

static u64 av_time_gets(struct kunit *test, struct fid_av *av, u32 n)
{
	u64 start = ktime_get_ns();
	union kofi_ip ip;
	u32 i;

	for (i = 0; i < 1000; i++)
		if (kofi_av_get(av_base(av), i * 7919 % n, &ip) ||
		    !av_is_whole(&ip.in4))
			KUNIT_FAIL(test, "%u of %u", i * 7919 % n, n);
	return ktime_get_ns() - start;
}

static s64 av_free_memory(void)
{
	return (s64)global_zone_page_state(NR_FREE_PAGES) * PAGE_SIZE;
}

/* Memory per address, and look-ups that take no longer among many */
static void av_many_test(struct kunit *test)
{
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, NULL);
	u64 few = U64_MAX, many = U64_MAX;
	s64 before = av_free_memory(), each;
	struct sockaddr_in in;
	union kofi_ip ip;
	u32 i, turn;

	for (i = 0; i < AV_MANY; i++) {
		in = av_whole(i);
		if (fi_av_insert(av, &in, 1, NULL, 0, NULL) != 1)
			break;
		for (turn = 0; i == 100 && turn < AV_TURNS; turn++)
			few = min(few, av_time_gets(test, av, 100));
	}
	KUNIT_EXPECT_EQ(test, (u32)AV_MANY, i);
	each = div_s64(before - av_free_memory(), AV_MANY);
	for (turn = 0; turn < AV_TURNS; turn++)
		many = min(many, av_time_gets(test, av, AV_MANY));
	kunit_info(test, "%lld bytes an address; 1,000 look-ups take %llu ns among 100, %llu among 100,000\n",
		   each, few, many);
	KUNIT_EXPECT_LT(test, each, AV_BYTES);
	/* caches miss, and the tree has three levels instead of two */
	KUNIT_EXPECT_LT(test, many, AV_FLAT * few);
	for (i = 0; i < AV_MANY; i += 997) {
		in = av_whole(i);
		KUNIT_EXPECT_EQ(test, (fi_addr_t)i,
				kofi_av_source(av_base(av),
					       (struct sockaddr *)&in));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_av_get(av_base(av), AV_MANY, &ip));
}

struct av_readers {
	struct fid_av	*av;
	unsigned int	wrong;
	unsigned long	found;
	bool		stop;
};

#define AV_BUSY		64

static int av_reader(void *arg)
{
	struct av_readers *r = arg;
	struct sockaddr_in in;
	unsigned int i = 0;
	union kofi_ip ip;
	fi_addr_t got;

	while (!READ_ONCE(r->stop)) {
		if (!kofi_av_get(av_base(r->av), i++ % AV_BUSY, &ip)) {
			if (!av_is_whole(&ip.in4))
				r->wrong++;
			r->found++;
		}
		in = av_whole(i % (2 * AV_BUSY));
		got = kofi_av_source(av_base(r->av), (struct sockaddr *)&in);
		if (got != FI_ADDR_NOTAVAIL && got >= AV_BUSY)
			r->wrong++;
		if (!(i % 64))
			cond_resched();
	}
	return 0;
}

/* Look up while half of the addresses come and go. */
static void av_busy_test(struct kunit *test)
{
	struct av_readers r = { .av = av_open(test, FI_SOCKADDR_IN, NULL) };
	const unsigned long end = jiffies + TEST_LIMIT(10 * HZ);
	struct task_struct *readers[2];
	struct sockaddr_in in;
	fi_addr_t got[AV_BUSY];
	int round, i;

	for (i = 0; i < ARRAY_SIZE(readers); i++)
		readers[i] = fake_thread(test, av_reader, &r);
	/* and until they have had a turn, on one processor */
	for (round = 0; round < 30 || (!READ_ONCE(r.found) &&
				       time_before(jiffies, end)); round++) {
		for (i = 0; i < AV_BUSY; i++) {
			in = av_whole(i + (round & 1) * AV_BUSY);
			KUNIT_EXPECT_EQ(test, 1, fi_av_insert(r.av, &in, 1,
							      &got[i], 0, NULL));
		}
		schedule();
		KUNIT_EXPECT_EQ(test, 0, fi_av_remove(r.av, got, AV_BUSY, 0));
	}
	WRITE_ONCE(r.stop, true);
	for (i = 0; i < ARRAY_SIZE(readers); i++)
		fake_join(readers[i]);
	KUNIT_EXPECT_EQ(test, 0U, r.wrong);
	KUNIT_EXPECT_NE(test, 0UL, r.found);
}

/* ------------------------------------------------------------------ endpoints */

/* An endpoint of a type that does not connect, with queues, in the vector's domain */
static struct fid_ep *av_open_ep(struct kunit *test, struct fid_cq **cq)
{
	struct av_test *t = test->priv;
	struct fi_cq_attr attr = { .size = 8 };
	struct fid_ep *ep;

	t->world->info->ep_attr->type = FI_EP_RDM;
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->domain, t->world->info, &ep,
					     NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->domain, &attr, cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &(*cq)->fid,
					    FI_TRANSMIT | FI_RECV));
	return ep;
}

/* Binding a vector to endpoints, and what they hear of removals */
static void av_bind_test(struct kunit *test)
{
	const struct fi_av_attr attr = { .rx_ctx_bits = 1 };
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, &attr);
	struct av_test *t = test->priv;
	struct sockaddr_in in = av_in(AV_NET + 1, 7), next;
	struct fid_ep *ep, *other;
	struct fid_cq *cq, *cq2;
	fi_addr_t got[2];
	char byte = 0;

	t->world->info->ep_attr->type = FI_EP_MSG;
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->domain, t->world->info, &ep,
					     NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(ep, &av->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));

	ep = av_open_ep(test, &cq);
	KUNIT_EXPECT_EQ(test, -FI_ENOAV, fi_enable(ep));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_ep_bind(ep, &av->fid, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(ep, &av->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_ep_bind(ep, &av->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&av->fid));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			fi_send(ep, &byte, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_enable(ep));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_ep_bind(ep, &av->fid, 0));
	other = av_open_ep(test, &cq2);
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(other, &av->fid, 0));

	/* no connection: what is posted is the provider's from now on */
	KUNIT_EXPECT_EQ(test, 0, fi_send(ep, &byte, 1, NULL, 0, NULL));
	KUNIT_EXPECT_TRUE(test, fake_complete(ep, FAKE_TX, 0));

	/* each endpoint is told once, of the address and its second context */
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got[0], 0, NULL));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got[1], 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, got, 1, 0));
	KUNIT_EXPECT_EQ(test, 0, fake_of(ep)->removed);
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, got, 1, 0));
	KUNIT_EXPECT_EQ(test, 2, fake_of(ep)->removed);
	KUNIT_EXPECT_EQ(test, 2, fake_of(other)->removed);
	next = av_in(AV_NET + 1, 8);
	KUNIT_EXPECT_MEMEQ(test, &next, &fake_of(ep)->peer, sizeof(next));

	KUNIT_EXPECT_EQ(test, 0, fi_close(&other->fid));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, got, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, got, 1, 0));
	KUNIT_EXPECT_EQ(test, 4, fake_of(ep)->removed);

	/* the other one's address is a second context that stays */
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got[0], 0, NULL));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &next, 1, &got[1], 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, &got[0], 1, 0));
	KUNIT_EXPECT_EQ(test, 5, fake_of(ep)->removed);
	KUNIT_EXPECT_MEMEQ(test, &in, &fake_of(ep)->peer, sizeof(in));
	/* and this one's is removed itself, whatever else it could be */
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got[0], 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, &got[1], 1, 0));
	KUNIT_EXPECT_EQ(test, 7, fake_of(ep)->removed);
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, &got[0], 1, 0));
	KUNIT_EXPECT_EQ(test, 9, fake_of(ep)->removed);

	t->world->info->ep_attr->type = FI_EP_DGRAM;
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->domain, t->world->info, &other,
					     NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(other, &av->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&other->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq2->fid));
}

/* What endpoints hear of a removal, where contexts of peers overlap */
static void av_neighbours_test(struct kunit *test)
{
	const struct fi_av_attr attr = { .rx_ctx_bits = 3 };
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, &attr);
	struct sockaddr_in a = av_in(AV_NET + 1, 100);
	struct sockaddr_in b = av_in(AV_NET + 1, 104);
	struct kofi_av_known known = {};
	fi_addr_t at_a, at_b;
	struct fid_ep *ep;
	struct fid_cq *cq;

	ep = av_open_ep(test, &cq);
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &av->fid, 0));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &a, 1, &at_a, 0, NULL));
	KUNIT_EXPECT_EQ(test, fi_rx_addr(at_a, 4, 3),
			kofi_av_recall(av_base(av), (struct sockaddr *)&b,
				       &known));
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &b, 1, &at_b, 0, NULL));
	KUNIT_EXPECT_EQ(test, at_b,
			kofi_av_recall(av_base(av), (struct sockaddr *)&b,
				       &known));
	/* a receive from that context is one from where its messages come from */
	KUNIT_EXPECT_EQ(test, at_b,
			kofi_av_id(av_base(av), fi_rx_addr(at_a, 4, 3)));
	KUNIT_EXPECT_EQ(test, fi_rx_addr(at_b, 3, 3),
			kofi_av_id(av_base(av), fi_rx_addr(at_a, 7, 3)));
	KUNIT_EXPECT_EQ(test, fi_rx_addr(at_a, 3, 3),
			kofi_av_id(av_base(av), fi_rx_addr(at_a, 3, 3)));

	/* 100 to 103; 104 to 107 are the other one's */
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, &at_a, 1, 0));
	KUNIT_EXPECT_EQ(test, 4, fake_of(ep)->removed);
	KUNIT_EXPECT_EQ(test, 103, ntohs(((struct sockaddr_in *)
					  &fake_of(ep)->peer)->sin_port));
	/* 104, and 108 to 111; 105 to 107 could be the first one's */
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &a, 1, &at_a, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, &at_b, 1, 0));
	KUNIT_EXPECT_EQ(test, 4 + 5, fake_of(ep)->removed);
	KUNIT_EXPECT_EQ(test, fi_rx_addr(at_a, 4, 3),
			kofi_av_recall(av_base(av), (struct sockaddr *)&b,
				       &known));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

/* Ports end, and so do the contexts that can be. */
static void av_context_limits_test(struct kunit *test)
{
	const struct fi_av_attr attr = {
		.rx_ctx_bits = 16, .flags = FI_AV_USER_ID,
	};
	struct fid_av *av = av_open(test, FI_SOCKADDR_IN, &attr);
	struct sockaddr_in in = av_in(AV_NET + 1, U16_MAX - 1);
	struct sockaddr_in low = av_in(AV_NET + 2, 1);
	fi_addr_t id = 1000, got;
	union kofi_ip ip;
	size_t len = 0;

	got = id;
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, FI_AV_USER_ID,
					      NULL));
	KUNIT_EXPECT_EQ(test, 0, kofi_av_get(av_base(av),
					     fi_rx_addr(got, 1, 16), &ip));
	KUNIT_EXPECT_EQ(test, U16_MAX, ntohs(ip.in4.sin_port));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_av_get(av_base(av),
						   fi_rx_addr(got, 2, 16),
						   &ip));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_av_lookup(av, fi_rx_addr(got, 2, 16),
						    NULL, &len));
	/* all contexts have the consumer's number */
	KUNIT_EXPECT_EQ(test, id, kofi_av_id(av_base(av),
					     fi_rx_addr(got, 1, 16)));
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL,
			kofi_av_id(av_base(av), fi_rx_addr(got, 2, 16)));

	got = id + 1;
	KUNIT_EXPECT_EQ(test, 1, fi_av_insert(av, &low, 1, &got, FI_AV_USER_ID,
					      NULL));
	KUNIT_EXPECT_EQ(test, 0,
			kofi_av_get(av_base(av),
				    fi_rx_addr(got, KOFI_EP_CTX_MAX - 1, 16),
				    &ip));
	KUNIT_EXPECT_EQ(test, id + 1, kofi_av_source(av_base(av), &ip.sa));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kofi_av_get(av_base(av),
				    fi_rx_addr(got, KOFI_EP_CTX_MAX, 16), &ip));
	ip.in4.sin_port = htons(1 + KOFI_EP_CTX_MAX);
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL,
			kofi_av_source(av_base(av), &ip.sa));
}

struct av_dest {
	struct kofi_ep		ep;
	struct kofi_peers	peers;
	struct kofi_peer	at[3];
};

static void av_dest_set(struct av_dest *d, int i, fi_addr_t addr)
{
	kofi_peers_set_dest(&d->peers, &d->at[i], addr, kofi_peers_changes(&d->peers));
}

/* What is found for a number holds for one state of the vector. */
static void av_dest_test(struct kunit *test)
{
	const struct fi_av_attr attr = { .rx_ctx_bits = 3 };
	struct av_dest *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct sockaddr_in in = av_in(AV_NET + 1, 100);
	struct kofi_peers *p;
	unsigned long changes;
	fi_addr_t got, ctx;
	struct fid_av *av;

	KUNIT_ASSERT_NOT_NULL(test, d);
	p = &d->peers;
	av = av_open(test, FI_SOCKADDR_IN, &attr);
	d->ep.av = av_base(av);
	KUNIT_ASSERT_EQ(test, kofi_peers_init(p, &d->ep), 0);
	KUNIT_ASSERT_EQ(test, 1, fi_av_insert(av, &in, 1, &got, 0, NULL));
	ctx = fi_rx_addr(got, 5, 3);
	changes = kofi_peers_changes(p);
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, got));
	KUNIT_EXPECT_FALSE(test, kofi_peers_renew(p, &d->at[0], got, changes));
	av_dest_set(d, 0, got);
	av_dest_set(d, 1, ctx);
	KUNIT_EXPECT_PTR_EQ(test, &d->at[0], kofi_peers_dest(p, got));
	KUNIT_EXPECT_PTR_EQ(test, &d->at[1], kofi_peers_dest(p, ctx));
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, fi_rx_addr(got, 4, 3)));

	/* after a change neither, until it has been looked up by address */
	KUNIT_EXPECT_EQ(test, 0, fi_av_remove(av, &got, 1, 0));
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, got));
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, ctx));
	KUNIT_EXPECT_TRUE(test, kofi_peers_renew(p, &d->at[0], got, changes));
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, got));
	changes = kofi_peers_changes(p);
	KUNIT_EXPECT_TRUE(test, kofi_peers_renew(p, &d->at[0], got, changes));
	KUNIT_EXPECT_PTR_EQ(test, &d->at[0], kofi_peers_dest(p, got));
	/* another number of the same peer changes nothing */
	KUNIT_EXPECT_TRUE(test, kofi_peers_renew(p, &d->at[0], ctx, changes));
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, ctx));

	/* the number is another peer's; the end of the first one is not its end */
	av_dest_set(d, 2, got);
	KUNIT_EXPECT_PTR_EQ(test, &d->at[2], kofi_peers_dest(p, got));
	kofi_peers_del_dest(p, &d->at[0]);
	KUNIT_EXPECT_PTR_EQ(test, &d->at[2], kofi_peers_dest(p, got));
	kofi_peers_del_dest(p, &d->at[2]);
	kofi_peers_del_dest(p, &d->at[1]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&p->dests));
	kofi_peers_exit(p);
}

#define AV_ROUNDS	20

struct av_holder {
	struct fid_av		*av;
	fi_addr_t		addr;
	struct completion	found;
	bool			removed;
	bool			gone;
	bool			late;
};

/*
 * Hold an address for 2 ms after others no longer find it, as a post does that has
 * found it before.
 */
static int av_holder(void *arg)
{
	unsigned long end = jiffies + msecs_to_jiffies(TEST_LIMIT(10000));
	struct av_holder *h = arg;
	union kofi_ip ip;
	ktime_t since;

	rcu_read_lock();
	complete(&h->found);
	while (!kofi_av_get(av_base(h->av), h->addr, &ip) && time_before(jiffies, end))
		cpu_relax();
	h->gone = kofi_av_get(av_base(h->av), h->addr, &ip);
	since = ktime_get();
	while (ktime_us_delta(ktime_get(), since) < 2000 && !h->late)
		h->late = READ_ONCE(h->removed);
	rcu_read_unlock();
	return 0;
}

/* fi_av_remove() returns when no post of another CPU uses the address. */
static void av_remove_wait_test(struct kunit *test)
{
	struct av_holder h = { .av = av_open(test, FI_SOCKADDR_IN, NULL) };
	struct sockaddr_in in = av_in(AV_NET + 1, 100);
	struct task_struct *task;
	int i;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	init_completion(&h.found);
	for (i = 0; i < AV_ROUNDS; i++) {
		h.removed = false;
		KUNIT_ASSERT_EQ(test, 1, fi_av_insert(h.av, &in, 1, &h.addr, 0, NULL));
		task = fake_thread(test, av_holder, &h);
		wait_for_completion(&h.found);
		KUNIT_EXPECT_EQ(test, 0, fi_av_remove(h.av, &h.addr, 1, 0));
		WRITE_ONCE(h.removed, true);
		fake_join(task);
		KUNIT_EXPECT_TRUE(test, h.gone);
	}
	KUNIT_EXPECT_FALSE(test, h.late);
}

static struct kunit_case av_cases[] = {
	KUNIT_CASE(av_dest_test),
	KUNIT_CASE(av_neighbours_test),
	KUNIT_CASE(av_context_limits_test),
	KUNIT_CASE(av_bind_test),
	KUNIT_CASE(av_open_test),
	KUNIT_CASE(av_errors_test),
	KUNIT_CASE(av_family_test),
	KUNIT_CASE(av_number_test),
	KUNIT_CASE(av_text_test),
	KUNIT_CASE(av_range_test),
	KUNIT_CASE(av_lookup_test),
	KUNIT_CASE(av_event_test),
	KUNIT_CASE(av_user_id_test),
	KUNIT_CASE_SLOW(av_model_test),
	KUNIT_CASE_SLOW(av_many_test),
	KUNIT_CASE(av_busy_test),
	KUNIT_CASE(av_remove_wait_test),
	{}
};

struct kunit_suite kofi_av_suite = {
	.name		= "kofi_av",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= av_init,
	.exit		= av_exit,
	.test_cases	= av_cases,
};
