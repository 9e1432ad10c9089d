// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue of receives against a model of it, in random sequences.
 *
 * Each run draws from its seed a queue, an endpoint's own or a shared context's,
 * and streams, one to each endpoint of the context or several to the endpoint,
 * with one record for a message each or several. It goes through some hundred
 * steps: posts of all kinds, cancels, peeks, claims, messages that begin, are
 * looked at again, end or are forgotten, alone or with their stream, streams whose
 * address is removed and inserted again, time that passes until messages have waited
 * too long, and reads of the completion queue, which is so small that slots are
 * scarce. The model does the same with arrays and says what each call returns,
 * which receive each message gets, what is reported of those without, and what must
 * be in the completion queue, entry by entry, with senders, and addresses and contents
 * of multi-receive slices.
 *
 * After every step: no message waits beside a receive that is posted and that
 * it matches, and the stream of each message the queue has something for has
 * been woken.
 *
 * A failure names its seed; the module parameter rxq_seed repeats it.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uio.h>

#include "../core/fake.h"
#include "../core/queues.h"
#include "rxq_model.h"

static unsigned int rxq_seed;
module_param(rxq_seed, uint, 0444);
MODULE_PARM_DESC(rxq_seed, "run only this seed of the receive queue model (0: all)");

static unsigned int rxq_runs = 60;
module_param(rxq_runs, uint, 0444);
MODULE_PARM_DESC(rxq_runs, "seeds per case of the receive queue model");

#define RXQ_STEPS	400

static void rxq_check(struct rxq_model *m, bool right, const char *what)
{
	if (right || m->wrong)
		return;
	m->wrong = true;
	KUNIT_FAIL(m->test, "seed %u, step %u: %s", m->seed, m->step, what);
}

static void rxq_check_ret(struct rxq_model *m, int want, int got,
			  const char *what)
{
	if (want == got || m->wrong)
		return;
	m->wrong = true;
	KUNIT_FAIL(m->test, "seed %u, step %u: %s returns %d, not %d", m->seed,
		   m->step, what, got, want);
}

static void rxq_wake(struct kofi_rxmsg *msg)
{
	container_of(msg, struct rxq_msg, msg)->woken = true;
}

/* ---------------------------------------------------------------- the steps */

static struct rxq_recv *rxq_unused(struct rxq_model *m)
{
	struct rxq_recv *r;

	for (r = m->recvs; r < m->recvs + RXQ_RECVS; r++)
		if (!r->used)
			return r;
	return NULL;
}

static void *rxq_context(struct rxq_model *m)
{
	return (void *)(1UL + rxq_random(m, RXQ_CONTEXTS));
}

static fi_addr_t rxq_src(struct rxq_model *m)
{
	return rxq_random(m, 3) ? FI_ADDR_UNSPEC : 100 + rxq_random(m, 2);
}

static u64 rxq_tag(struct rxq_model *m)
{
	return 0xf0 + rxq_random(m, 4);
}

/* Is it refused before the kind of post matters? */
static int rxq_refused(struct rxq_model *m, bool record)
{
	if (rxq_slots(m) >= m->limit[0] || (record && !rxq_unused(m)))
		return -EAGAIN;
	return 0;
}

static void rxq_post(struct rxq_model *m, bool multi)
{
	struct rxq_recv *r = rxq_unused(m), none = { .mem = m->recvs[0].mem };
	int want = rxq_refused(m, true), ret;
	struct fi_msg msg = { .iov_count = 1 };
	struct bio_vec bv;
	struct kvec kv;

	if (!r)
		r = &none;
	*r = (struct rxq_recv) { .mem = r->mem };
	r->context = rxq_context(m);
	r->multi = multi;
	r->bvec = rxq_random(m, 2);
	r->size = multi ? rxq_random(m, 4000) : rxq_random(m, 500);
	r->first = rxq_random(m, RXQ_MEM - r->size);
	r->src = rxq_src(m);
	kv.iov_base = page_address(r->mem) + r->first;
	kv.iov_len = r->size;
	bvec_set_page(&bv, r->mem, r->size, r->first);
	msg.addr = r->src;
	msg.context = r->context;
	if (r->bvec) {
		msg.vec = KOFI_BVEC;
		msg.msg_bvec = &bv;
	} else {
		msg.msg_iov = &kv;
	}
	if (!m->directed)
		r->src = FI_ADDR_UNSPEC;

	ret = fi_recvmsg(m->owner, &msg, multi ? FI_MULTI_RECV : FI_MORE);
	rxq_check_ret(m, want, ret, "post");
	if (want)
		return;
	r->used = true;
	r->seq = m->seq++;
	m->reserved++;
	m->posts++;
	rxq_offer(m, r);
}

static struct rxq_msg *rxq_claimed(struct rxq_model *m, void *context)
{
	int i;

	for (i = 0; i < m->norder; i++)
		if (m->order[i]->claimed && m->order[i]->claim == context)
			return m->order[i];
	return NULL;
}

static void rxq_post_tagged(struct rxq_model *m, bool claim)
{
	struct rxq_recv *r = rxq_unused(m), none = { .mem = m->recvs[0].mem };
	struct fi_msg_tagged msg = { .iov_count = 1 };
	int want = rxq_refused(m, true), ret;
	struct rxq_msg *s;
	struct kvec kv;

	if (!r)
		r = &none;
	*r = (struct rxq_recv) { .mem = r->mem, .tagged = true,
				 .claim = claim };
	r->context = rxq_context(m);
	r->size = rxq_random(m, 500);
	r->tag = rxq_tag(m);
	r->ignore = rxq_random(m, 2) ? rxq_random(m, 4) : 0;
	r->src = rxq_src(m);
	kv.iov_base = page_address(r->mem);
	kv.iov_len = r->size;
	msg.msg_iov = &kv;
	msg.addr = r->src;
	msg.tag = r->tag;
	msg.ignore = r->ignore;
	msg.context = r->context;
	if (!m->directed)
		r->src = FI_ADDR_UNSPEC;

	s = rxq_claimed(m, r->context);
	if (!want && claim && !s)
		want = -EINVAL;
	ret = fi_trecvmsg(m->owner, &msg, claim ? FI_CLAIM : 0);
	rxq_check_ret(m, want, ret, "tagged post");
	if (want)
		return;
	r->used = true;
	r->seq = m->seq++;
	m->reserved++;
	m->posts++;
	if (claim) {
		s->recv = r;
		rxq_wakes(m, s, RXQ_GIVEN);
	} else {
		rxq_offer(m, r);
	}
}

static struct rxq_msg *rxq_seen(struct rxq_model *m,
				const struct rxq_recv *like)
{
	int i;

	for (i = 0; i < m->norder; i++)
		if (m->order[i]->state == RXQ_WAIT && !m->order[i]->claimed &&
		    rxq_fits(like, m->order[i]))
			return m->order[i];
	return NULL;
}

static void rxq_peek(struct rxq_model *m)
{
	static const u64 hows[] = { FI_PEEK, FI_PEEK | FI_CLAIM,
				    FI_PEEK | FI_DISCARD,
				    FI_CLAIM | FI_DISCARD };
	u64 how = hows[rxq_random(m, ARRAY_SIZE(hows))];
	const struct rxq_recv like = {
		.tagged = true, .tag = rxq_tag(m), .ignore = rxq_random(m, 4),
		.src = m->directed ? rxq_src(m) : FI_ADDR_UNSPEC,
	};
	const struct fi_msg_tagged msg = {
		.tag = like.tag, .ignore = like.ignore, .addr = like.src,
		.context = rxq_context(m),
	};
	struct kofi_wc wc = {
		.op_context = msg.context, .err = FI_ENOMSG,
		.flags = FI_RECV | FI_TAGGED, .tag = like.tag,
		.src = FI_ADDR_NOTAVAIL,
	};
	int want = rxq_refused(m, false), ret;
	struct rxq_msg *s;

	if (how & FI_PEEK)
		s = rxq_seen(m, &like);
	else
		s = rxq_claimed(m, msg.context);
	if (!want && !s && !(how & FI_PEEK))
		want = -EINVAL;
	ret = fi_trecvmsg(m->owner, &msg, how);
	rxq_check_ret(m, want, ret, "peek");
	if (want)
		return;
	m->posts++;
	m->reserved++;
	if (s) {
		wc.err = 0;
		wc.flags |= s->msg.flags;
		wc.len = s->msg.len;
		wc.tag = s->msg.tag;
		wc.data = s->msg.data;
		wc.src = m->source ? s->source : FI_ADDR_NOTAVAIL;
	}
	rxq_expect(m, &wc);
	if (s && how & FI_DISCARD) {
		rxq_wakes(m, s, RXQ_DROP);
	} else if (s && how & FI_CLAIM) {
		s->claimed = true;
		s->claim = msg.context;
	}
}

static void rxq_cancel(struct rxq_model *m)
{
	void *context = rxq_context(m);
	struct rxq_recv *r, *found = NULL;

	for (r = m->recvs; r < m->recvs + RXQ_RECVS; r++)
		if (r->used && r->posted && r->context == context &&
		    (!found || r->seq < found->seq))
			found = r;
	rxq_check_ret(m, found ? 0 : -ENOENT,
		      fi_cancel(&m->owner->fid, context), "cancel");
	if (found)
		rxq_cancel_recv(m, found);
	else
		rxq_cancel_given(m, context);
}

/* The stream reads: its message has begun, or it comes back for it. */
static void rxq_kill_stream(struct rxq_model *m, struct rxq_stream *from);

static void rxq_run(struct rxq_model *m, struct rxq_msg *s)
{
	struct kofi_rxop *op;
	int want, ret;

	if (s->state == RXQ_IDLE) {
		s->source = s->from->source;
		s->msg.src = s->source;
		s->msg.confirmed = !rxq_random(m, 3);
		s->msg.tagged = rxq_random(m, 2);
		s->msg.len = rxq_random(m, 4) ? rxq_random(m, 600) : 0;
		s->msg.tag = s->msg.tagged ? rxq_tag(m) : 0;
		s->msg.flags = rxq_random(m, 2) ? FI_REMOTE_CQ_DATA : 0;
		s->msg.data = s->msg.flags ? rxq_random(m, 1000) : 0;
	}
	s->woken = false;
	want = rxq_look(m, s);
	ret = kofi_rxq_match(m->q, &s->msg, &op);
	rxq_check_ret(m, want, ret, "match");
	if (!m->wrong && ret == -ECONNABORTED)
		rxq_kill_stream(m, s->from);
	if (m->wrong || ret)
		return;
	rxq_check(m, !op == (s->state == RXQ_IDLE), "a message is dropped");
	s->op = op;
	if (!op)
		return;
	rxq_check(m, op->context == s->recv->context, "not the oldest receive");
	rxq_check(m, op->cur.len == s->len, "memory of another length");
}

/* A message has got its receive, and ends. */
static void rxq_ended(struct rxq_model *m, struct rxq_msg *s,
		      struct kofi_wc *wc)
{
	struct rxq_recv *r = s->recv;

	wc->op_context = r->context;
	wc->src = m->source ? s->source : FI_ADDR_NOTAVAIL;
	wc->buf = NULL;
	wc->flags &= ~FI_MULTI_RECV;
	s->state = RXQ_IDLE;
	if (!r->multi) {
		r->used = false;
		rxq_expect(m, wc);
		return;
	}
	wc->buf = page_address(r->mem) + r->first + s->off;
	r->parts--;
	if (!r->parts && !r->posted && !r->canceled) {
		wc->flags |= FI_MULTI_RECV;
		r->used = false;
	}
	rxq_expect(m, wc);
	if (!r->parts && r->canceled)
		rxq_expect_canceled(m, r);
}

/* Put the message where it belongs and report it. */
static void rxq_place(struct rxq_model *m, struct rxq_msg *s, int err)
{
	struct kofi_wc wc = {
		.err = err,
		.flags = FI_RECV | (s->msg.tagged ? FI_TAGGED : FI_MSG) |
			 s->msg.flags,
		.data = s->msg.data, .tag = s->msg.tag, .src = s->msg.src,
	};
	struct rxq_recv *r = s->recv;
	u8 *mem = page_address(r->mem) + r->first + s->off;
	u8 byte = 1 + m->step % 255, pattern[64];
	size_t done, n;

	wc.len = min(s->msg.len, s->op->cur.len);
	if (!err && s->msg.len > wc.len) {
		wc.err = FI_ETRUNC;
		wc.olen = s->msg.len - wc.len;
	}
	memset(pattern, byte, sizeof(pattern));
	for (done = 0; done < wc.len; done += n) {
		n = min(wc.len - done, sizeof(pattern));
		rxq_check(m, !kofi_cursor_write(&s->op->cur, pattern, n),
			  "memory that takes no bytes");
	}
	rxq_check(m, !memchr_inv(mem, byte, wc.len), "bytes in another place");
	kofi_rxq_done(m->q, s->op, &wc);
	rxq_ended(m, s, &wc);
}

/* The message ends with its stream, or for a reason of that one's. */
static void rxq_kill(struct rxq_model *m, struct rxq_msg *s)
{
	struct rxq_recv *r = s->recv;
	enum rxq_state state = s->state;

	struct kofi_wc wc = {
		.err = ENOTCONN, .flags = FI_RECV | FI_MSG, .tag = s->msg.tag,
	};

	if (state == RXQ_PLACING)
		rxq_place(m, s, ENOTCONN);
	rxq_order_remove(m, s);
	s->claimed = false;
	s->state = RXQ_IDLE;
	kofi_rxq_forget(m->q, &s->msg);
	if (state == RXQ_GIVEN && r->multi)
		rxq_ended(m, s, &wc);
	else if (state == RXQ_GIVEN &&
		 (r->claim || r->canceled || m->q->closed))
		rxq_expect_canceled(m, r);
	else if (state == RXQ_GIVEN)
		rxq_offer(m, r);
	if (state == RXQ_SLOT)
		rxq_feed(m);
	s->woken = false;
}

static void rxq_kill_stream(struct rxq_model *m, struct rxq_stream *from)
{
	struct rxq_msg *s;

	for (s = m->msgs; s < m->msgs + m->nmsgs; s++)
		if (s->from == from)
			rxq_kill(m, s);
}

/* A provider needs the memory: only a message that nobody has asked for may go. */
static void rxq_discard(struct rxq_model *m, struct rxq_msg *s)
{
	bool open = s->state == RXQ_WAIT && !s->claimed;

	rxq_check(m, kofi_rxq_unclaimed(m->q, &s->msg) == open, "another message is unclaimed");
	rxq_check(m, kofi_rxq_discard(m->q, &s->msg) == open, "another message is discarded");
	if (open)
		rxq_kill(m, s);
}

static void rxq_compare(struct rxq_model *m, const struct kofi_wc *want,
			const struct kofi_wc *got)
{
	rxq_check(m, want->op_context == got->op_context, "another context");
	rxq_check(m, want->err == got->err, "another error");
	rxq_check(m, want->flags == got->flags, "other flags");
	rxq_check(m, want->len == got->len, "another length");
	rxq_check(m, want->olen == got->olen, "another lost length");
	rxq_check(m, want->data == got->data, "another value");
	rxq_check(m, want->tag == got->tag, "another tag");
	rxq_check(m, want->buf == got->buf, "another slice");
	rxq_check(m, want->src == got->src, "another source");
}

static bool rxq_read(struct rxq_model *m)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {};
	struct kofi_wc wc = {};
	ssize_t ret;

	ret = fi_cq_readfrom(m->cq, &e, 1, &wc.src);
	if (ret == -EAGAIN) {
		rxq_check(m, m->head == m->tail, "a completion is missing");
		return false;
	}
	if (ret == 1) {
		wc.op_context = e.op_context;
		wc.flags = e.flags;
		wc.len = e.len;
		wc.buf = e.buf;
		wc.data = e.data;
		wc.tag = e.tag;
	} else {
		rxq_check_ret(m, 1, fi_cq_readerr(m->cq, &err, 0), "readerr");
		wc.op_context = err.op_context;
		wc.err = err.err;
		wc.flags = err.flags;
		wc.len = err.len;
		wc.olen = err.olen;
		wc.buf = err.buf;
		wc.data = err.data;
		wc.tag = err.tag;
		wc.src = err.src_addr;
	}
	rxq_check(m, m->head != m->tail, "a completion too many");
	if (m->head != m->tail)
		rxq_compare(m, &m->expected[m->head++ % RXQ_CQ_MAX], &wc);
	return true;
}

/* What holds between any two steps */
static void rxq_invariants(struct rxq_model *m)
{
	struct rxq_msg *s;

	for (s = m->msgs; s < m->msgs + m->nmsgs; s++) {
		switch (s->state) {
		case RXQ_WAIT:
			rxq_check(m, s->claimed || !rxq_oldest(m, s),
				  "a message waits beside its receive");
			break;
		case RXQ_SLOT:
			rxq_check(m, s->woken || s != rxq_starved(m) ||
				  rxq_slots(m) >= m->limit[1],
				  "the first was not told of a free slot");
			break;
		case RXQ_GIVEN:
		case RXQ_DROP:
		case RXQ_EXPIRED:
			rxq_check(m, s->woken, "a message was not woken");
			break;
		default:
			break;
		}
	}
}

/* The address of a stream is removed, or inserted again, as kofi_sock does it. */
static void rxq_disown(struct rxq_model *m, struct rxq_stream *from)
{
	struct rxq_msg *s;

	if (from->source == FI_ADDR_NOTAVAIL) {
		from->source = 100 + rxq_random(m, 2);
		return;
	}
	from->source = FI_ADDR_NOTAVAIL;
	for (s = m->msgs; s < m->msgs + m->nmsgs; s++) {
		if (s->from != from || s->state == RXQ_IDLE)
			continue;
		s->source = FI_ADDR_NOTAVAIL;
		spin_lock_irq(&m->q->lock);
		s->msg.src = FI_ADDR_NOTAVAIL;
		spin_unlock_irq(&m->q->lock);
	}
}

/* What the consumer is told of a message that has waited too long */
static void rxq_report(struct rxq_model *m, const struct rxq_msg *s)
{
	struct kofi_eq_unexpected got = {};
	u64 flags = s->msg.tagged ? FI_TAGGED : FI_MSG;
	u32 event = 0;

	rxq_check_ret(m, sizeof(got), fi_eq_read(m->eq, &event, &got, sizeof(got), 0),
		      "fi_eq_read");
	rxq_check(m, event == KOFI_UNEXPECTED, "another event");
	rxq_check(m, got.entry.fid == &s->from->to->fid, "an event of another endpoint");
	rxq_check(m, got.entry.data == s->source, "an event with another source");
	rxq_check(m, got.flags == (flags | (s->msg.confirmed ? 0 : FI_DISCARD)),
		  "an event with other flags");
	rxq_check(m, got.tag == s->msg.tag && got.len == s->msg.len,
		  "an event of another message");
}

/* The oldest messages have waited too long, all at once. */
static void rxq_expire(struct rxq_model *m)
{
	struct rxq_msg *waiting[RXQ_MSGS];
	int i, n = m->norder, old = rxq_random(m, n + 1);
	struct kofi_rxq *q = m->q;
	struct fi_eq_entry none;
	u32 event;

	memcpy(waiting, m->order, sizeof(waiting));
	spin_lock_irq(&q->lock);
	for (i = 0; i < n; i++)
		waiting[i]->msg.expires = jiffies + (i < old ? -1 : 1000 * HZ);
	spin_unlock_irq(&q->lock);
	local_bh_disable();
	q->expire.function(&q->expire);
	local_bh_enable();
	for (i = 0; i < old; i++) {
		struct rxq_msg *s = waiting[i];

		/* one that is claimed, or has its receive, is not unexpected */
		if (s->state != RXQ_WAIT || s->claimed ||
		    !fake_of(s->from->to)->base.unexpected_timeout)
			continue;
		rxq_wakes(m, s, s->msg.confirmed ? RXQ_EXPIRED : RXQ_DROP);
		rxq_report(m, s);
	}
	rxq_check_ret(m, -EAGAIN, fi_eq_read(m->eq, &event, &none, sizeof(none), 0),
		      "fi_eq_read of nothing");
}

/* Now and then a message goes before its stream has seen the claim. */
static void rxq_kill_claimed(struct rxq_model *m)
{
	struct rxq_msg *s;

	for (s = m->msgs; s < m->msgs + m->nmsgs; s++)
		if (s->state == RXQ_GIVEN && s->recv->claim && rxq_random(m, 2))
			rxq_kill(m, s);
}

static void rxq_step(struct rxq_model *m)
{
	struct rxq_msg *s = &m->msgs[rxq_random(m, m->nmsgs)];
	int n;

	switch (rxq_random(m, 20)) {
	case 0 ... 1:
		rxq_post(m, false);
		break;
	case 2:
		rxq_post(m, true);
		break;
	case 3 ... 4:
		rxq_post_tagged(m, false);
		break;
	case 5:
		rxq_post_tagged(m, true);
		rxq_kill_claimed(m);
		break;
	case 6:
		rxq_peek(m);
		break;
	case 7:
		rxq_cancel(m);
		break;
	case 8 ... 10:
		if (s->state != RXQ_PLACING)
			rxq_run(m, s);
		break;
	case 11 ... 13:
		if (s->state == RXQ_PLACING)
			rxq_place(m, s, 0);
		break;
	case 14 ... 16:
		for (n = rxq_random(m, 8); n && rxq_read(m); n--)
			;
		break;
	case 17:
		rxq_expire(m);
		break;
	case 18:
		rxq_disown(m, s->from);
		break;
	default:
		if (!rxq_random(m, 4))
			rxq_kill(m, s);
		else if (!rxq_random(m, 4))
			rxq_discard(m, s);
		else if (!rxq_random(m, 8))
			rxq_kill_stream(m, s->from);
		break;
	}
	rxq_invariants(m);
}

/* Flush, end the streams, and see that nothing is left. */
static void rxq_finish(struct rxq_model *m)
{
	struct rxq_msg *s;
	struct rxq_recv *r;
	u64 seq;

	for (s = m->msgs; s < m->msgs + m->nmsgs; s++)
		if (rxq_random(m, 2))
			rxq_kill(m, s);
	if (m->q == &m->own)
		kofi_rxq_flush(m->q);
	else
		kofi_ep_drain(m->owner);
	for (seq = 0; seq < m->seq; seq++)
		for (r = m->recvs; r < m->recvs + RXQ_RECVS; r++)
			if (r->used && r->posted && r->seq == seq)
				rxq_cancel_recv(m, r);
	rxq_invariants(m);
	for (s = m->msgs; s < m->msgs + m->nmsgs; s++)
		rxq_kill(m, s);
	while (rxq_read(m))
		;
	rxq_check(m, !m->reserved, "the model has lost an operation");
	for (r = m->recvs; r < m->recvs + RXQ_RECVS; r++)
		rxq_check(m, !r->used, "a receive has not ended");
	rxq_check(m, (u64)atomic64_read(&container_of(m->owner, struct kofi_ep,
						      ep)->posts[1].posts) ==
		  m->posts, "the statistics have lost an operation");
}

/* ------------------------------------------------------------------- set-up */

/* An endpoint with a queue of its own: fi_recvmsg() and so on, by hand */
static ssize_t rxq_own_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			       u64 flags)
{
	struct rxq_model *m = ep->fid.context;

	return kofi_rxq_post(&m->own, msg, flags);
}

static ssize_t rxq_own_cancel(struct fid_ep *ep, void *context)
{
	struct rxq_model *m = ep->fid.context;

	return kofi_rxq_cancel(&m->own, context);
}

static ssize_t rxq_own_trecvmsg(struct fid_ep *ep,
				const struct fi_msg_tagged *msg, u64 flags)
{
	struct rxq_model *m = ep->fid.context;

	return kofi_rxq_tpost(&m->own, msg, flags);
}

static const struct fi_ops_msg rxq_own_msg = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= kofi_no_msg,
	.recvmsg	= rxq_own_recvmsg,
	.cancel		= rxq_own_cancel,
};

static const struct fi_ops_tagged rxq_own_tagged = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= kofi_no_tagged,
	.recvmsg	= rxq_own_trecvmsg,
};

static void rxq_open_stream(struct rxq_model *m, struct fake_world *world,
			    struct rxq_stream *s)
{
	/* longer than a run takes: rxq_expire() has the time pass */
	const size_t timeout = rxq_random(m, 2) ? 24 * 3600 * MSEC_PER_SEC : 0;
	struct kunit *test = m->test;
	struct fi_eq_entry entry;
	u32 event;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(world->domain, world->info, &s->ep,
					     m));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep, &m->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep, &m->cq->fid, FI_TRANSMIT));
	KUNIT_ASSERT_EQ(test, 0, m->owner ?
			fi_ep_bind(s->ep, &m->owner->fid, 0) :
			fi_ep_bind(s->ep, &m->cq->fid, FI_RECV));
	fake_connected(test, s->ep);
	while (fi_eq_read(m->eq, &event, &entry, sizeof(entry), 0) > 0)
		;
	/* fi_setopt() has it for reliable datagrams only */
	fake_of(s->ep)->base.unexpected_timeout = timeout;
}

/* Records for each stream; those of an endpoint's own queue share it. */
static void rxq_open_msgs(struct rxq_model *m, bool shared)
{
	int records = 1 + rxq_random(m, RXQ_WAITING), i;

	m->nmsgs = m->nstreams * records;
	for (i = 0; i < m->nmsgs; i++) {
		struct rxq_msg *s = &m->msgs[i];

		s->from = &m->streams[i / records];
		s->from->source = i / records < 2 ? 100 + i / records :
						    FI_ADDR_NOTAVAIL;
		s->from->to = shared ? s->from->ep : m->owner;
		kofi_rxmsg_init(&s->msg, &fake_of(s->from->to)->base, rxq_wake);
	}
}

static void rxq_model_run(struct kunit *test, struct fake_world *world,
			  bool shared, u32 seed)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_rx_attr rx = { .size = RXQ_RECVS };
	struct rxq_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	size_t size;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->seed = seed;
	prandom_seed_state(&m->rnd, seed);
	/* of neighbouring seeds the first numbers are much the same */
	for (i = 0; i < 32; i++)
		prandom_u32_state(&m->rnd);
	m->directed = rxq_random(m, 2);
	m->source = rxq_random(m, 2);
	m->nstreams = 1 + rxq_random(m, RXQ_STREAMS);
	attr.size = 2 + rxq_random(m, 10);
	m->limit[0] = attr.size;
	m->limit[1] = attr.size + max_t(size_t, attr.size / 8, 1);
	KUNIT_ASSERT_LT(test, m->limit[1], (u32)RXQ_CQ_MAX);
	for (i = 0; i < RXQ_RECVS; i++) {
		m->recvs[i].mem = alloc_pages(GFP_KERNEL, RXQ_ORDER);
		KUNIT_ASSERT_NOT_NULL(test, m->recvs[i].mem);
	}
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(world->fabric, NULL, &m->eq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(world->domain, &attr, &m->cq,
					    NULL));
	world->info->caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
			    (m->directed ? FI_DIRECTED_RECV : 0) |
			    (m->source ? FI_SOURCE : 0);
	world->info->rx_attr->iov_limit = KOFI_IOV_MAX;
	rx.caps = world->info->caps;
	if (shared)
		KUNIT_ASSERT_EQ(test, 0, fi_srx_context(world->domain, &rx,
							&m->owner, m));
	if (shared)
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(m->owner, &m->cq->fid,
						    FI_RECV));
	for (i = 0; i < (shared ? m->nstreams : 1); i++)
		rxq_open_stream(m, world, &m->streams[i]);
	if (shared) {
		m->q = &container_of(m->owner, struct kofi_srx,
				     base.ep)->rxq;
	} else {
		m->owner = m->streams[0].ep;
		m->owner->msg = &rxq_own_msg;
		m->owner->tagged = &rxq_own_tagged;
		m->q = &m->own;
		size = rxq_random(m, 2) ? RXQ_RECVS : RXQ_MANY;
		KUNIT_ASSERT_EQ(test, 0,
				kofi_rxq_init(m->q, &fake_of(m->owner)->base,
					      size));
		while (size-- > RXQ_RECVS)
			kofi_freelist_get(&m->q->free, &m->q->lock);
	}
	rxq_open_msgs(m, shared);
	m->min_multi = 64;
	if (rxq_random(m, 2)) {
		m->min_multi = rxq_random(m, 2) ? 1 : 700;
		KUNIT_ASSERT_EQ(test, 0,
				fi_setopt(&m->owner->fid, FI_OPT_ENDPOINT,
					  FI_OPT_MIN_MULTI_RECV, &m->min_multi,
					  sizeof(m->min_multi)));
	}

	for (m->step = 0; m->step < RXQ_STEPS && !m->wrong; m->step++)
		rxq_step(m);
	if (!m->wrong)
		rxq_finish(m);

	for (i = 0; i < m->nmsgs && m->wrong; i++)
		kofi_rxq_forget(m->q, &m->msgs[i].msg);
	for (i = 0; i < (shared ? m->nstreams : 1); i++)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m->streams[i].ep->fid));
	if (shared)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m->owner->fid));
	else
		kofi_rxq_exit(m->q);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->eq->fid));
	for (i = 0; i < RXQ_RECVS; i++)
		__free_pages(m->recvs[i].mem, RXQ_ORDER);
	kunit_kfree(test, m);
}

static void rxq_model_test(struct kunit *test)
{
	const bool *shared = test->param_value;
	struct fake_world *world = fake_open(test);
	u32 i;

	if (rxq_seed)
		rxq_model_run(test, world, *shared, rxq_seed);
	else
		for (i = 1; i <= rxq_runs; i++)
			rxq_model_run(test, world, *shared, i);
	fake_close(test, world);
}

/* Operations use as few records as are under way at a time, whatever their order. */
static void rxq_records_test(struct kunit *test)
{
	struct kofi_freelist free = {};
	struct llist_node nodes[16], *used[3];
	unsigned int seen = 0, i, j;
	spinlock_t lock;	/* takes from the list */

	spin_lock_init(&lock);
	for (i = ARRAY_SIZE(nodes); i--; )
		kofi_freelist_add(&free, &nodes[i]);
	for (i = 0; i < 100; i++) {
		for (j = 0; j < ARRAY_SIZE(used); j++) {
			used[j] = kofi_freelist_get(&free, &lock);
			KUNIT_ASSERT_NOT_NULL(test, used[j]);
			seen |= BIT(used[j] - nodes);
		}
		for (j = 0; j < ARRAY_SIZE(used); j++)
			kofi_freelist_put(&free, used[(i + j) % 3]);
	}
	KUNIT_EXPECT_EQ(test, seen, BIT(ARRAY_SIZE(used)) - 1);
	/* but all of them, if need be */
	for (i = 0; i < ARRAY_SIZE(nodes); i++)
		KUNIT_EXPECT_NOT_NULL(test, kofi_freelist_get(&free, &lock));
	KUNIT_EXPECT_NULL(test, kofi_freelist_get(&free, &lock));
}

static const bool rxq_shared[] = { false, true };

static void rxq_shared_name(const bool *shared, char *name)
{
	strscpy(name, *shared ? "shared context" : "endpoint",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rxq_shared, rxq_shared, rxq_shared_name);

static struct kunit_case rxq_cases[] = {
	KUNIT_CASE_PARAM(rxq_model_test, rxq_shared_gen_params),
	KUNIT_CASE(rxq_records_test),
	{}
};

struct kunit_suite kofi_rxq_suite = {
	.name		= "lib_rxq",
	.attr.speed	= KUNIT_SPEED_SLOW,
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.test_cases	= rxq_cases,
};
