// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer that streams without a pause, to a consumer that posts its next receive in the
 * callback of the last one: other peers and calls of the consumer have their turn.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/sched.h>

#include "live.h"

#define RXS_OUT		64	/* messages the peer has outstanding */
#define RXS_LEN		64
#define RXS_HELD	128	/* half of the module parameter held_bufs */
#define RXS_RECEIVED	2000
#define RXS_INSERTS	10
#define RXS_SOON	TEST_LIMIT(1000)	/* milliseconds; the stream would last for ever */

static struct rxs {
	struct kofi_cqe		tx[RXS_OUT];
	struct kofi_cqe		rx;
	struct rxt		*t;
	bool			stop;
	bool			pause;	/* post no further receive */
	struct completion	paused;
	unsigned long		refused[BITS_TO_LONGS(RXS_OUT)];
	unsigned int		received;
} rxs;

static void rxs_send(unsigned int i)
{
	struct rxt_end *a = &rxs.t->end[0];

	if (!READ_ONCE(rxs.stop) &&
	    fi_send(a->ep, rxs.t->out, RXS_LEN, NULL, a->peer[1], &rxs.tx[i]))
		set_bit(i, rxs.refused);
}

static void rxs_sent(struct fid_cq *cq, const struct kofi_wc *wc)
{
	if (!wc->err)
		rxs_send(wc->cqe - rxs.tx);
}

static void rxs_space(struct fid_ep *ep, void *context)
{
	unsigned int i;

	for (i = 0; ep == rxs.t->end[0].ep && i < RXS_OUT; i++)
		if (test_and_clear_bit(i, rxs.refused))
			rxs_send(i);
}

static ssize_t rxs_receive(void)
{
	return fi_recv(rxs.t->end[1].ep, rxs.t->in, RXS_LEN, NULL,
		       FI_ADDR_UNSPEC, &rxs.rx);
}

static void rxs_received(struct fid_cq *cq, const struct kofi_wc *wc)
{
	if (wc->err)
		return;
	WRITE_ONCE(rxs.received, rxs.received + 1);
	if (READ_ONCE(rxs.pause))
		complete(&rxs.paused);
	else if (!READ_ONCE(rxs.stop))
		rxs_receive();
}

/* Wait until the stream has brought so many more messages. */
static void rxs_wait(struct kunit *test, unsigned int more)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	unsigned int from = READ_ONCE(rxs.received);

	while (READ_ONCE(rxs.received) - from < more &&
	       time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_GE(test, READ_ONCE(rxs.received) - from, more);
}

/* Wait until so many messages are held; the buffer in flight may be one more. */
static void rxs_held(struct kunit *test, unsigned int n)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);

	while (rxt_stat(rxs.t->end[1].ep, "rx_held") < n &&
	       time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_GE(test, rxt_stat(rxs.t->end[1].ep, "rx_held"), n);
}

/* The consumer may overtake the stream: it waits until messages wait for it again. */
static void rxs_fall_behind(struct kunit *test)
{
	unsigned long limit = msecs_to_jiffies(RXT_TIMEOUT);

	WRITE_ONCE(rxs.pause, true);
	KUNIT_ASSERT_GT(test, wait_for_completion_timeout(&rxs.paused, limit), 0);
	rxs_held(test, RXS_HELD);
	WRITE_ONCE(rxs.pause, false);
	KUNIT_ASSERT_EQ(test, rxs_receive(), 0);
}

/* Both ends of the stream call back; the third does not. */
static void rxs_open(struct kunit *test)
{
	struct rxt *t = test->priv;
	unsigned int i;

	for (i = 0; i < RXT_ENDS; i++)
		rxt_close_end(test, &t->end[i]);
	memset(&rxs, 0, sizeof(rxs));
	init_completion(&rxs.paused);
	rxs.t = t;
	rxs.rx.done = rxs_received;
	for (i = 0; i < RXS_OUT; i++)
		rxs.tx[i].done = rxs_sent;
	t->info->tx_attr->size = RXS_OUT;
	rxt_open_end(test, t, &t->end[2]);
	t->calls = true;
	t->space = rxs_space;
	rxt_open_end(test, t, &t->end[0]);
	rxt_open_end(test, t, &t->end[1]);
	rxt_introduce(test, t);
}

static unsigned int rxs_insert(struct kunit *test, struct sockaddr_in *addr)
{
	unsigned long begin = jiffies;
	fi_addr_t peer;

	be16_add_cpu(&addr->sin_port, 1);
	KUNIT_EXPECT_EQ(test, fi_av_insert(rxs.t->end[1].av, addr, 1, &peer, 0,
					   NULL), 1);
	return jiffies_to_msecs(jiffies - begin);
}

static void rxs_stream(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1], *c = &t->end[2];
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(999),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	unsigned long begin;
	unsigned int i;

	rxs_open(test);
	/* measure waits for locks, not for the work items' higher priority */
	set_user_nice(current, MIN_NICE);
	for (i = 0; i < RXS_OUT; i++)
		rxs_send(i);
	/* from now on each receive finds a message that waits */
	rxs_held(test, RXS_HELD);
	KUNIT_ASSERT_EQ(test, rxs_receive(), 0);
	rxs_wait(test, RXS_RECEIVED);
	rxs_fall_behind(test);

	for (i = 0; i < RXS_INSERTS; i++) {
		KUNIT_EXPECT_LE(test, rxs_insert(test, &addr), RXS_SOON);
		rxs_wait(test, 1);
	}
	/* another peer connects */
	KUNIT_ASSERT_EQ(test, fi_tsend(c->ep, t->out, 8, NULL, c->peer[1], 9,
				       t->out), 0);
	rxt_expect(test, c->tx, t->out, 0);

	rxs_wait(test, RXS_RECEIVED);
	begin = jiffies;
	KUNIT_EXPECT_EQ(test, fi_close(&b->ep->fid), 0);
	b->ep = NULL;
	KUNIT_EXPECT_LE(test, jiffies_to_msecs(jiffies - begin), RXS_SOON);
	WRITE_ONCE(rxs.stop, true);
}

static void rxs_exit(struct kunit *test)
{
	WRITE_ONCE(rxs.stop, true);
	rxt_exit(test);
}

static struct kunit_case rxs_cases[] = {
	KUNIT_CASE(rxs_stream),
	{}
};

static struct kunit_suite rxs_suite = {
	.name = "rxm_stream",
	.suite_init = lo_suite_init,
	.init = rxt_init,
	.exit = rxs_exit,
	.test_cases = rxs_cases,
};

kunit_test_suite(rxs_suite);
