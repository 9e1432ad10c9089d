// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The plan: each datatype, call and operation, on elements that chance picks from a
 * small area, so that most of them are changed many times. The seed decides all of
 * it, for both sides.
 */
#include "atomic.h"
#include "../kunit/lib/atomic_model.h"

#define AT_ROUNDS	6	/* of each operation */
#define AT_SPREAD	32	/* elements, of most steps */
#define AT_FEW		9	/* elements of one, of most steps */

/* Numbers that follow from each other, the same on each side (xorshift) */
static u32 at_random(struct at_plan *p)
{
	p->rnd ^= p->rnd << 13;
	p->rnd ^= p->rnd >> 17;
	p->rnd ^= p->rnd << 5;
	return p->rnd;
}

static void at_values(struct at_plan *p, u8 *to, size_t size, size_t count)
{
	u64 other;
	u32 pick;

	for (; count; count--, to += size) {
		pick = at_random(p);
		other = at_random(p);
		other = other << 32 | at_random(p);
		am_value(to, size, pick, other);
	}
}

/**
 * at_call - the flag of a call, as fi_query_atomic() has it
 * @call: its number, 0 for fi_atomic()
 *
 * Return: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC.
 */
u64 at_call(unsigned int call)
{
	return am_calls[call];
}

/**
 * at_plan_init - begin again
 * @p: the plan
 * @seed: of both sides, not 0
 */
void at_plan_init(struct at_plan *p, u32 seed)
{
	p->rnd = seed;
	at_values(p, p->mem, 8, AT_REGION / 8);
}

/**
 * at_plan_type - go on with the steps of a datatype
 * @p: the plan, behind those of the one before
 * @type: the datatype
 */
void at_plan_type(struct at_plan *p, enum fi_datatype type)
{
	p->type = type;
	p->call = 0;
	p->op = 0;
	p->round = 0;
}

/* Does the operation go with the call? */
static bool at_fits(u32 call, u32 op)
{
	if (at_call(call) == FI_COMPARE_ATOMIC)
		return op >= FI_CSWAP && op <= FI_MSWAP;
	return op <= FI_ATOMIC_WRITE && (op != FI_ATOMIC_READ || call);
}

/* The next that goes; false behind the last */
static bool at_next(struct at_plan *p)
{
	if (p->round++ < AT_ROUNDS && at_fits(p->call, p->op))
		return true;
	p->round = 1;
	do {
		if (++p->op > FI_MSWAP) {
			p->op = 0;
			if (++p->call == AM_CALLS)
				return false;
		}
	} while (!at_fits(p->call, p->op));
	return true;
}

/**
 * at_plan_step - what comes next
 * @p: the plan
 * @s: where it goes
 *
 * Return: whether there is a step of the datatype left.
 */
bool at_plan_step(struct at_plan *p, struct at_step *s)
{
	u32 size = 1U << p->type / 2;

	if (!at_next(p))
		return false;
	s->type = p->type;
	s->call = p->call;
	s->op = p->op;
	s->form = at_random(p) % AT_FORMS;
	s->count = at_random(p) % AT_FEW + 1;
	s->off = at_random(p) % AT_SPREAD;
	/* the most that goes into a packet, once for each call */
	if (p->round == 1 && (p->op == FI_MIN || p->op == FI_CSWAP)) {
		s->form = AT_PLAIN;
		s->count = AT_VALUES / size;
		if (at_call(p->call) == FI_COMPARE_ATOMIC)
			s->count /= 2;
	}
	if (s->form == AT_INJECTED && (s->call || s->count * size > AT_INJECT))
		s->form = AT_PLAIN;
	if (s->count == 1)
		s->form = s->form == AT_INJECTED ? AT_INJECTED : AT_PLAIN;
	s->turn = s->form == AT_MESSAGE ? s->count / 2 : 0;
	at_values(p, s->in, size, s->count);
	at_values(p, s->cmp, size, s->count);
	return true;
}

/**
 * at_plan_do - do a step to the plan's own memory
 * @p: the plan
 * @s: the step
 * @old: where the old values go
 */
void at_plan_do(struct at_plan *p, const struct at_step *s, u8 *old)
{
	u32 size = 1U << s->type / 2, i;
	u8 *mem;

	for (i = 0; i < s->count; i++) {
		mem = p->mem + AT_GUARD +
		      (s->off + (i + s->turn) % s->count) * size;
		memcpy(old + i * size, mem, size);
		am_do[s->type](s->op, mem, s->in + i * size, s->cmp + i * size);
	}
}
