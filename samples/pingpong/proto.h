/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol of two fi_pingpong programs: items of the control connection,
 * message sizes, message contents. No state, no calls into other parts.
 */
#ifndef _KOFI_PINGPONG_PROTO_H
#define _KOFI_PINGPONG_PROTO_H

#include <linux/socket.h>
#include <linux/types.h>

/*
 * An address is sent as three items: the length in network order, the
 * FI_SOCKADDR_* format in the sender's byte order, and the address.
 */
struct pp_addr_head {
	__be32	len;
	u32	format;
};

#define PP_SYNC_ASK	"q"		/* sent with the NUL byte */
#define PP_SYNC_ANSWER	"a"
#define PP_COUNT_OK	"cnt ok"
#define PP_TAG		1234	/* tag of all messages, with -m tagged */
#define PP_FIN		"fin"

#define PP_COUNT_LEN	10		/* decimal digits, padded with NUL */
#define PP_RECV_MIN	64		/* minimum size of a receive */
#define PP_DATA_MAX	(6 << 20)	/* longest message of the lists */
#define PP_DGRAM_MAX	1472		/* longest datagram: a packet over Ethernet */
#define PP_SIZES_MAX	46		/* entries of the longest list */
#define PP_PATTERN_LEN	62		/* period of the pattern in bytes */

int pp_addr_head_make(struct pp_addr_head *head,
		      const struct sockaddr_storage *addr);
int pp_addr_head_check(const struct pp_addr_head *head);
int pp_addr_check(const struct pp_addr_head *head,
		  const struct sockaddr_storage *addr);
void pp_count_make(char item[PP_COUNT_LEN], u64 count);
int pp_count_parse(const char item[PP_COUNT_LEN], u64 *count);
int pp_sizes(bool all, size_t max, size_t sizes[PP_SIZES_MAX]);
unsigned int pp_pattern_start(u64 seq);
void pp_pattern_fill(char *buf, size_t len);
size_t pp_pattern_differs(const char *buf, const char *pattern, size_t len);

#endif /* _KOFI_PINGPONG_PROTO_H */
