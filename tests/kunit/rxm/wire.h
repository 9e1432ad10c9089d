/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What was captured of kofi_rxm's wire, for suites with endpoints. */
#ifndef _KOFI_TESTS_RXM_WIRE_H
#define _KOFI_TESTS_RXM_WIRE_H

#include <linux/types.h>

/**
 * struct rxm_wire_exchange - an atomic operation of userspace
 * @name: of the capture
 * @ask: the request
 * @ask_len: its bytes
 * @answer: the answer to it
 * @answer_len: its bytes
 * @after: what is then in memory that was 0
 */
struct rxm_wire_exchange {
	const char	*name;
	const u8	*ask;
	size_t		ask_len;
	const u8	*answer;
	size_t		answer_len;
	u64		after[2];
};

#define RXM_WIRE_ATOMICS	3

extern const struct rxm_wire_exchange rxm_wire_atomics[RXM_WIRE_ATOMICS];

#endif /* _KOFI_TESTS_RXM_WIRE_H */
