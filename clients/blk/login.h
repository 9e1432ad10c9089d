/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fields of login messages, for client and target. No field of a message is used before
 * its length has been checked.
 */
#ifndef _KOFI_BLK_LOGIN_H
#define _KOFI_BLK_LOGIN_H

#include <linux/align.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>

#include "proto.h"

/**
 * struct kblk_rule - a field that a message may have
 * @id: enum kblk_field_id
 * @min: least bytes of the value
 * @max: most bytes of the value; the reader copies at most these
 * @grows: a longer value is valid; bytes beyond @max are ignored
 * @optional: the field may be missing
 * @at: offset of the value in the reader's structure; bytes that a shorter value
 *	lacks are 0
 */
struct kblk_rule {
	u16	id;
	u16	min;
	u16	max;
	bool	grows;
	bool	optional;
	u16	at;
};

/**
 * kblk_message - begin a login message
 * @head: the message, with room for KBLK_LOGIN_LEN bytes
 * @type: enum kblk_login_type
 */
static inline void kblk_message(struct kblk_login_head *head,
				enum kblk_login_type type)
{
	*head = (struct kblk_login_head) {
		.type = cpu_to_le16(type), .len = cpu_to_le16(sizeof(*head)),
	};
}

/**
 * kblk_add_field - append a field to a login message
 * @head: the message
 * @id: enum kblk_field_id, perhaps with KBLK_FIELD_MUST
 * @value: the value
 * @len: bytes of @value; the caller knows that there is room
 */
static inline void kblk_add_field(struct kblk_login_head *head, unsigned int id,
				  const void *value, size_t len)
{
	size_t at = le16_to_cpu(head->len);
	const struct kblk_field field = {
		.id = cpu_to_le16(id), .len = cpu_to_le16(len),
	};
	u8 *to = (u8 *)head + at;

	memset(to, 0, sizeof(field) + ALIGN(len, 4));
	memcpy(to, &field, sizeof(field));
	memcpy(to + sizeof(field), value, len);
	head->len = cpu_to_le16(at + sizeof(field) + ALIGN(len, 4));
}

static inline int kblk_take_field(const struct kblk_rule *rules, unsigned int nr,
				  unsigned int id, const u8 *value, size_t len,
				  void *to, unsigned long *seen)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (rules[i].id == (id & ~KBLK_FIELD_MUST))
			break;
	if (i == nr)
		return id & KBLK_FIELD_MUST ? -EOPNOTSUPP : 0;
	if (*seen & BIT(i) || len < rules[i].min ||
	    (len > rules[i].max && !rules[i].grows))
		return -EPROTO;
	*seen |= BIT(i);
	memcpy((u8 *)to + rules[i].at, value, min_t(size_t, len, rules[i].max));
	return 0;
}

/**
 * kblk_read_fields - read a login message
 * @head: the message
 * @len: bytes that have arrived
 * @rules: fields that it may have, 32 at most
 * @nr: how many there are
 * @to: structure for the values, which is 0
 *
 * Return: 0; -EPROTO for a message that is malformed or lacks a field; -EOPNOTSUPP for
 * a mandatory field without a rule.
 */
static inline int kblk_read_fields(const struct kblk_login_head *head, size_t len,
				   const struct kblk_rule *rules, unsigned int nr,
				   void *to)
{
	const u8 *at = (const u8 *)(head + 1), *end = (const u8 *)head + len;
	unsigned long seen = 0;
	struct kblk_field field;
	unsigned int i;
	size_t bytes;
	int err;

	if (len < sizeof(*head) || le16_to_cpu(head->len) != len)
		return -EPROTO;
	while (at < end) {
		if ((size_t)(end - at) < sizeof(field))
			return -EPROTO;
		memcpy(&field, at, sizeof(field));
		at += sizeof(field);
		bytes = le16_to_cpu(field.len);
		if (ALIGN(bytes, 4) > (size_t)(end - at))
			return -EPROTO;
		err = kblk_take_field(rules, nr, le16_to_cpu(field.id), at,
				      bytes, to, &seen);
		if (err)
			return err;
		at += ALIGN(bytes, 4);
	}
	for (i = 0; i < nr; i++)
		if (!rules[i].optional && !(seen & BIT(i)))
			return -EPROTO;
	return 0;
}

#endif /* _KOFI_BLK_LOGIN_H */
