// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations in software, on memory of a region.
 *
 * Each element is changed by a compare-and-exchange of the CPU. So the operation is atomic
 * to all others, from any peer or endpoint, and to the atomic operations of local code.
 * These are atomic_t and atomic64_t for elements of 32 and 64 bits, cmpxchg() for smaller
 * ones. There is no lock. An operation on several elements is atomic for each, not as a
 * whole.
 *
 * Elements must be aligned in memory, and so lie within one page; others are refused
 * before anything is changed. Memory of a device, which the CPU should not write to, is
 * refused, too.
 *
 * All arithmetic is done with 64 bits. The low bits of a sum, a difference or a product
 * do not depend on the high bits. Operands of comparisons are extended according to
 * their datatype.
 */
#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/export.h>
#include <linux/memremap.h>
#include <linux/overflow.h>
#include <linux/unaligned.h>

#include <linux/kofi/lib.h>

#include "../mr.h"

/* An operation on one element */
struct kofi_step {
	enum fi_op	op;
	bool		is_signed;
	u64		operand;
	u64		compare;
};

static bool kofi_step_less(const struct kofi_step *s, u64 a, u64 b)
{
	return s->is_signed ? (s64)a < (s64)b : a < b;
}

/* The value to be written; the same one if nothing is */
static u64 kofi_step_value(const struct kofi_step *s, u64 old)
{
	u64 operand = s->operand, compare = s->compare;
	bool swap;

	switch (s->op) {
	case FI_MIN:
		return kofi_step_less(s, operand, old) ? operand : old;
	case FI_MAX:
		return kofi_step_less(s, old, operand) ? operand : old;
	case FI_SUM:
		return old + operand;
	case FI_DIFF:
		return old - operand;
	case FI_PROD:
		return old * operand;
	case FI_LOR:
		return old || operand;
	case FI_LAND:
		return old && operand;
	case FI_BOR:
		return old | operand;
	case FI_BAND:
		return old & operand;
	case FI_LXOR:
		return !old != !operand;
	case FI_BXOR:
		return old ^ operand;
	case FI_ATOMIC_WRITE:
		return operand;
	case FI_CSWAP:
		swap = compare == old;
		break;
	case FI_CSWAP_NE:
		swap = compare != old;
		break;
	case FI_CSWAP_LE:
		swap = !kofi_step_less(s, old, compare);
		break;
	case FI_CSWAP_LT:
		swap = kofi_step_less(s, compare, old);
		break;
	case FI_CSWAP_GE:
		swap = !kofi_step_less(s, compare, old);
		break;
	case FI_CSWAP_GT:
		swap = kofi_step_less(s, old, compare);
		break;
	case FI_MSWAP:
		return (operand & compare) | (old & ~compare);
	default:
		return old;
	}
	return swap ? operand : old;
}

/* By bits: type and operations of a word */
#define kofi_word_8		s8
#define kofi_word_16		s16
#define kofi_word_32		atomic_t
#define kofi_word_64		atomic64_t
#define kofi_read_8(word)	READ_ONCE(*(word))
#define kofi_read_16(word)	READ_ONCE(*(word))
#define kofi_read_32		atomic_read
#define kofi_read_64		atomic64_read
#define kofi_swap_8		try_cmpxchg
#define kofi_swap_16		try_cmpxchg
#define kofi_swap_32		atomic_try_cmpxchg
#define kofi_swap_64		atomic64_try_cmpxchg

/*
 * Take the step in memory; returns the old value. A value that does not change is not
 * written.
 */
#define KOFI_STEP(bits)							\
static u64 kofi_step_##bits(void *mem, const struct kofi_step *s)	\
{									\
	typeof(kofi_word_##bits) *word = mem;				\
	u##bits old, new;						\
	s##bits seen;							\
									\
	seen = kofi_read_##bits(word);					\
	do {								\
		old = seen;						\
		new = kofi_step_value(s, s->is_signed ? (u64)seen :	\
						       (u64)old);	\
	} while (new != old && !kofi_swap_##bits(word, &seen, new)); \
	return old;							\
}

KOFI_STEP(8)
KOFI_STEP(16)
KOFI_STEP(32)
KOFI_STEP(64)

static u64 kofi_step_take(void *mem, size_t size, const struct kofi_step *s)
{
	switch (size) {
	case 1:
		return kofi_step_8(mem, s);
	case 2:
		return kofi_step_16(mem, s);
	case 4:
		return kofi_step_32(mem, s);
	default:
		return kofi_step_64(mem, s);
	}
}

/* An element that need not be aligned, extended */
static u64 kofi_element_get(const void *p, size_t size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? *(const s8 *)p : *(const u8 *)p;
	case 2:
		return is_signed ? get_unaligned((const s16 *)p) :
				   get_unaligned((const u16 *)p);
	case 4:
		return is_signed ? (u64)get_unaligned((const s32 *)p) :
				   get_unaligned((const u32 *)p);
	default:
		return get_unaligned((const u64 *)p);
	}
}

static void kofi_element_put(void *p, size_t size, u64 value)
{
	switch (size) {
	case 1:
		*(u8 *)p = value;
		break;
	case 2:
		put_unaligned(value, (u16 *)p);
		break;
	case 4:
		put_unaligned(value, (u32 *)p);
		break;
	default:
		put_unaligned(value, (u64 *)p);
	}
}

/* The region's pages from where the access begins */
static struct bvec_iter kofi_target_bvec(const struct kofi_target *t)
{
	unsigned int seg = kofi_mr_seg(t->mr, t->off);
	unsigned int skip = t->off - t->mr->start[seg];
	struct bvec_iter iter = { .bi_idx = seg, .bi_size = skip + t->left };

	if (skip)
		bvec_iter_advance_single(t->mr->bv, &iter, skip);
	return iter;
}

/* Test whether the CPU can change all of it, element by element. */
static int kofi_target_elements(const struct kofi_target *t, size_t size)
{
	struct bvec_iter iter;
	struct bio_vec bv;

	if (!t->left)
		return 0;
	for_each_bvec(bv, t->mr->bv, iter, kofi_target_bvec(t)) {
		if (is_pci_p2pdma_page(bv.bv_page))
			return -EOPNOTSUPP;
		if (!IS_ALIGNED(bv.bv_offset | bv.bv_len, size))
			return -EINVAL;
	}
	return 0;
}

static u64 kofi_atomic_access(const struct kofi_atomic *a)
{
	if (a->op == FI_ATOMIC_READ)
		return FI_REMOTE_READ;
	return a->call ? FI_REMOTE_READ | FI_REMOTE_WRITE : FI_REMOTE_WRITE;
}

/**
 * kofi_target_atomic_init - begin a peer's atomic operation on our memory
 * @t: the access
 * @ep: endpoint that received the operation
 * @a: the operation: @a->call, @a->datatype and @a->op, of any value
 * @key: key from the peer
 * @addr: remote address from the peer
 * @count: elements
 *
 * Checks everything that can be wrong with it, and holds the region until
 * kofi_target_drop(). A fetching operation needs both rights, FI_ATOMIC_READ only the
 * right to read. All segments are checked before the first one is changed.
 *
 * Context: any.
 * Return: 0; an error of kofi_target_init(); -EOPNOTSUPP for a datatype and an
 * operation that do not go together in that call, or for memory of a device;
 * -EINVAL for memory that is not aligned to an element.
 */
int kofi_target_atomic_init(struct kofi_target *t, struct kofi_ep *ep,
			    const struct kofi_atomic *a, u64 key, u64 addr,
			    u64 count)
{
	size_t size = kofi_datatype_size(a->datatype);
	u64 len;
	int err;

	t->mr = NULL;
	if (!size || !kofi_atomic_op_fits(a->op, a->call))
		return -EOPNOTSUPP;
	if (check_mul_overflow(count, (u64)size, &len) || len > UINT_MAX)
		return -EACCES;
	err = kofi_target_init(t, ep, key, addr, len, kofi_atomic_access(a));
	if (err)
		return err;
	err = kofi_target_elements(t, size);
	if (err)
		kofi_target_drop(t);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_target_atomic_init);

/**
 * kofi_target_atomic - perform a peer's atomic operation
 * @t: access that kofi_target_atomic_init() has begun
 * @a: the operation; its pointers move behind the elements
 *
 * Context: any. Fully ordered, as the kernel's atomic operations with a result.
 */
void kofi_target_atomic(struct kofi_target *t, struct kofi_atomic *a)
{
	const size_t size = kofi_datatype_size(a->datatype);
	struct kofi_step s = {
		.op = a->op,
		.is_signed = !(a->datatype & 1),	/* signed and unsigned types alternate */
	};
	struct bvec_iter iter;
	struct bio_vec bv;
	unsigned int off;
	void *mem;
	u64 old;

	static_assert(!(FI_INT8 & 1) && !(FI_INT16 & 1) &&
		      !(FI_INT32 & 1) && !(FI_INT64 & 1));
	if (!t->left)
		return;
	/*
	 * Order earlier accesses before the operation. The memory belongs to the consumer, which
	 * shares no lock with its peers.
	 */
	smp_mb();
	for_each_bvec(bv, t->mr->bv, iter, kofi_target_bvec(t)) {
		mem = bvec_kmap_local(&bv);
		for (off = 0; off < bv.bv_len; off += size) {
			if (a->operands) {
				s.operand = kofi_element_get(a->operands, size,
							     s.is_signed);
				a->operands += size;
			}
			if (a->compare) {
				s.compare = kofi_element_get(a->compare, size,
							     s.is_signed);
				a->compare += size;
			}
			old = kofi_step_take(mem + off, size, &s);
			if (a->results) {
				kofi_element_put(a->results, size, old);
				a->results += size;
			}
		}
		kunmap_local(mem);
	}
	smp_mb();	/* order the operation before later accesses, as above */
	kofi_target_used(t, t->left);
}
EXPORT_SYMBOL_GPL(kofi_target_atomic);
