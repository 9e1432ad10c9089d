// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the queue of receives does, with arrays: which receive a message gets, what
 * waits for what, and what must be in the completion queue.
 */
#include "rxq_model.h"

u32 rxq_random(struct rxq_model *m, u32 below)
{
	return prandom_u32_state(&m->rnd) % below;
}

u32 rxq_slots(const struct rxq_model *m)
{
	return m->reserved + (m->tail - m->head);
}

void rxq_expect(struct rxq_model *m, const struct kofi_wc *wc)
{
	m->expected[m->tail++ % RXQ_CQ_MAX] = *wc;
	m->reserved--;
}

void rxq_expect_canceled(struct rxq_model *m, struct rxq_recv *r)
{
	const struct kofi_wc wc = {
		.op_context = r->context, .err = ECANCELED,
		.flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG) |
			 (r->multi ? FI_MULTI_RECV : 0),
		.tag = r->tag, .src = FI_ADDR_NOTAVAIL,
	};

	rxq_expect(m, &wc);
	r->used = false;
}

bool rxq_fits(const struct rxq_recv *r, const struct rxq_msg *s)
{
	if (r->tagged != s->msg.tagged)
		return false;
	if (r->src != FI_ADDR_UNSPEC && r->src != s->source)
		return false;
	return !r->tagged || (r->tag | r->ignore) == (s->msg.tag | r->ignore);
}

struct rxq_recv *rxq_oldest(struct rxq_model *m, struct rxq_msg *s)
{
	struct rxq_recv *r, *found = NULL;

	for (r = m->recvs; r < m->recvs + RXQ_RECVS; r++)
		if (r->used && r->posted && rxq_fits(r, s) &&
		    (!found || r->seq < found->seq))
			found = r;
	return found;
}

void rxq_order_remove(struct rxq_model *m, struct rxq_msg *s)
{
	int i, n = 0;

	for (i = 0; i < m->norder; i++)
		if (m->order[i] != s)
			m->order[n++] = m->order[i];
	m->norder = n;
}

/* The first message that waits for a slot */
struct rxq_msg *rxq_starved(struct rxq_model *m)
{
	int i;

	for (i = 0; i < m->norder; i++)
		if (m->order[i]->state == RXQ_SLOT)
			return m->order[i];
	return NULL;
}

void rxq_wakes(struct rxq_model *m, struct rxq_msg *s, enum rxq_state state)
{
	if (state == RXQ_GIVEN) {
		s->given = m->gives++;
		s->recv->canceled = false;
	}
	rxq_order_remove(m, s);
	s->claimed = false;
	s->state = state;
}

/* A message takes a receive, or a part of it if there is a slot. */
static bool rxq_take(struct rxq_model *m, struct rxq_msg *s,
		     struct rxq_recv *r)
{
	bool last;

	s->recv = r;
	s->off = r->off;
	s->len = r->size - r->off;
	if (!r->multi) {
		r->posted = false;
		return true;
	}
	s->len = min(s->msg.len, s->len);
	last = r->size - r->off - s->len < m->min_multi;
	if (rxq_starved(m) || (!last && rxq_slots(m) >= m->limit[1]))
		return false;
	m->reserved += !last;
	r->parts++;
	r->off += s->len;
	r->posted = !last;
	return true;
}

void rxq_offer(struct rxq_model *m, struct rxq_recv *r)
{
	struct rxq_msg *waiting[RXQ_MSGS];
	int i, n = m->norder;

	r->posted = true;
	memcpy(waiting, m->order, sizeof(waiting));
	for (i = 0; i < n && r->posted; i++) {
		struct rxq_msg *s = waiting[i];

		if (s->state != RXQ_WAIT || s->claimed || !rxq_fits(r, s))
			continue;
		if (rxq_take(m, s, r))
			rxq_wakes(m, s, RXQ_GIVEN);
		else
			s->state = RXQ_SLOT;
	}
}

/* Those that wait for slots look again, in their order. */
void rxq_feed(struct rxq_model *m)
{
	struct rxq_msg *s, *behind[RXQ_MSGS];
	int i, n = 0;

	for (i = 0; i < m->norder; i++) {
		if (m->order[i]->state != RXQ_SLOT)
			continue;
		behind[n++] = m->order[i];
		m->order[i]->state = RXQ_WAIT;
	}
	for (i = 0; i < n; i++) {
		struct rxq_recv *r;

		s = behind[i];
		r = rxq_starved(m) ? NULL : rxq_oldest(m, s);
		if (r && rxq_take(m, s, r))
			rxq_wakes(m, s, RXQ_GIVEN);
		else if (r || rxq_starved(m))
			s->state = RXQ_SLOT;
	}
}

/* Look for a receive: what kofi_rxq_match() must return */
int rxq_look(struct rxq_model *m, struct rxq_msg *s)
{
	struct rxq_recv *r;

	if (s->state == RXQ_SLOT)
		rxq_feed(m);
	switch (s->state) {
	case RXQ_GIVEN:
		s->state = RXQ_PLACING;
		return 0;
	case RXQ_DROP:
		s->state = RXQ_IDLE;
		return 0;
	case RXQ_EXPIRED:
		s->state = RXQ_IDLE;
		return -ECONNABORTED;
	case RXQ_WAIT:
	case RXQ_SLOT:
		return -EAGAIN;
	default:
		break;
	}
	r = rxq_oldest(m, s);
	if (r && rxq_take(m, s, r)) {
		s->state = RXQ_PLACING;
		return 0;
	}
	s->state = r ? RXQ_SLOT : RXQ_WAIT;
	m->order[m->norder++] = s;
	return -EAGAIN;
}

void rxq_cancel_recv(struct rxq_model *m, struct rxq_recv *r)
{
	r->canceled = true;
	r->posted = false;
	if (!r->parts)
		rxq_expect_canceled(m, r);
	if (r->multi)
		rxq_feed(m);
}

/* The first of those that messages have been given and have not fetched */
void rxq_cancel_given(struct rxq_model *m, const void *context)
{
	struct rxq_msg *s, *first = NULL;

	for (s = m->msgs; s < m->msgs + m->nmsgs; s++)
		if (s->state == RXQ_GIVEN && !s->recv->multi &&
		    s->recv->context == context && !s->recv->canceled &&
		    (!first || s->given < first->given))
			first = s;
	if (first)
		first->recv->canceled = true;
}
