// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that kofi_rxm posts below: when a message finds none, the sender's RDMA device
 * waits for a timer. The receiver's device says "not ready", and rdma_rxe counts that.
 */
#include <linux/fs.h>
#include <linux/slab.h>

#include "../kunit.h"
#include "pair.h"

#define RC_ROUNDS	20

/**
 * struct rc_case - messages of 32 packets in all
 * @size: bytes of each
 * @count: messages in a round
 */
struct rc_case {
	size_t	size;
	int	count;
};

static const struct rc_case rc_table[] = { { SZ_64K, 8 }, { 64, 32 } };

/* Messages for which the case's device had no receive; -ENOENT if it does not count them */
static long long rc_refused(void)
{
	char *path = kasprintf(GFP_KERNEL,
			       "/sys/class/infiniband/%s/ports/1/hw_counters/send_rnr_err",
			       rdm_place_device());
	char text[24] = "";
	struct file *file;
	loff_t pos = 0;
	long long n;
	int err;

	if (!path)
		return -ENOMEM;
	file = filp_open(path, O_RDONLY, 0);
	kfree(path);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = kernel_read(file, text, sizeof(text) - 1, &pos);
	filp_close(file, NULL);
	if (err >= 0)
		err = kstrtoll(text, 10, &n);
	return err ?: n;
}

static void rc_round(struct rdm_pair *t, size_t size, int count)
{
	const size_t places = RDM_LONG / size;
	struct kunit *test = t->test;
	struct fi_cq_tagged_entry e;
	int i;

	for (i = 0; i < count; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, t->in + i % places * size,
					      size, NULL, FI_ADDR_UNSPEC, t), 0);
	for (i = 0; i < count; i++)
		KUNIT_ASSERT_EQ(test, fi_send(t->from.ep, t->out + i % places * size,
					      size, NULL, t->from.peer, t), 0);
	for (i = 0; i < count; i++) {
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
		KUNIT_EXPECT_EQ(test, e.len, size);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	}
}

/* More packets than rx_bufs find their receives at once. */
static void receives_enough(struct kunit *test)
{
	struct rdm_pair *t;
	long long before;
	int i, j;

	if (rc_refused() == -ENOENT)
		kunit_skip(test, "no device that counts messages without a receive");
	t = rdm_pair_alloc(test, FI_MSG, RDM_KEYS);
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	rdm_pair_enable(t);
	/* connect */
	rc_round(t, RDM_LONG, 1);
	for (i = 0; i < ARRAY_SIZE(rc_table); i++) {
		before = rc_refused();
		KUNIT_ASSERT_GE(test, before, 0);
		for (j = 0; j < RC_ROUNDS; j++)
			rc_round(t, rc_table[i].size, rc_table[i].count);
		KUNIT_EXPECT_EQ_MSG(test, rc_refused(), before, "of %zu bytes",
				    rc_table[i].size);
	}
	KUNIT_EXPECT_EQ(test, memcmp(t->in, t->out, RDM_LONG), 0);
}

static struct kunit_case rc_cases[] = {
	KUNIT_CASE_PARAM(receives_enough, rdm_place_gen_params),
	{}
};

static struct kunit_suite rc_suite = {
	.name = "rdm_receives",
	.suite_init = lo_suite_init,
	.test_cases = rc_cases,
};

kunit_test_suite(rc_suite);
