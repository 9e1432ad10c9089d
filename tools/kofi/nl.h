/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Generic netlink for the kofi tool: one socket that talks to one family.
 *
 * nl_new() begins a request, mnl_attr_put*() and nl_put*() fill it, and nl_call() sends it.
 * nl_call() hands every answer to a callback, and returns when the kernel has sent the
 * result. Unsolicited messages of the kernel (progress
 * of a run; their sequence number is 0) go to the callback of nl_on_event(). That runs
 * inside nl_wait(), or inside nl_call() if they arrive during a request. Callbacks make
 * no calls of the same socket.
 */
#ifndef KOFI_TOOL_NL_H
#define KOFI_TOOL_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

struct nl;

/*
 * Takes one message of the family. @tb: its attributes by type, NULL where one
 * is absent. Attributes above the max of the caller are missing. If an attribute is
 * repeated, @tb has the last one (nl_for_each() finds all).
 * Returns 0 to go on. A negative error code terminates the call or wait that received the
 * message, which returns the code. The kernel goes on with a list that was abandoned
 * that way, and begins no other for this socket.
 */
typedef int (*nl_fn)(struct nl *nl, const struct nlmsghdr *nlh,
		     const struct nlattr **tb, void *arg);

static inline uint8_t nl_cmd(const struct nlmsghdr *nlh)
{
	return ((struct genlmsghdr *)mnl_nlmsg_get_payload(nlh))->cmd;
}

#define nl_for_each(attr, nlh) \
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))

/*
 * Opens a socket and finds the family. NULL after a sentence on stderr; where
 * the family is not there, it says to load @module.
 */
struct nl *nl_open(const char *family, const char *module);
void nl_close(struct nl *nl);

/* The socket, for poll() together with other files; nl_wait() takes the messages. */
int nl_fd(const struct nl *nl);

/* The socket's own port, to which the kernel sends its events. */
uint32_t nl_port(const struct nl *nl);

/*
 * An empty request. @flags: 0, or NLM_F_DUMP for a list. It lives in the
 * socket's buffer and holds until the next nl_new().
 */
struct nlmsghdr *nl_new(struct nl *nl, uint8_t cmd, uint16_t flags);

/* Attributes of the spec's type uint: 4 or 8 bytes as needed. */
void nl_put_uint(struct nlmsghdr *nlh, uint16_t type, uint64_t value);
uint64_t nl_uint(const struct nlattr *attr);	/* NULL: 0 */
int64_t nl_sint(const struct nlattr *attr);	/* of type sint; NULL: 0 */

/* A string; NULL if there is none, or one without NUL. */
const char *nl_str(const struct nlattr *attr);

/* Puts the attributes of a nest into @tb, which has @max + 1 members. */
void nl_nested(const struct nlattr *nest, const struct nlattr **tb, int max);

/*
 * Sends a request and takes its answers. @fn may be NULL for a request that is
 * only acknowledged. @max: highest attribute type of an answer.
 *
 * Returns 0, the result of @fn, or a negative error code; nl_error() then has words.
 */
int nl_call(struct nl *nl, struct nlmsghdr *nlh, int max, nl_fn fn, void *arg);

/* Set the callback for messages that answer no request; with @fn NULL they are dropped. */
void nl_on_event(struct nl *nl, int max, nl_fn fn, void *arg);

/*
 * Joins a multicast group of the family, so that its messages are events.
 * 0, or a negative error code; nl_error() then has words.
 */
int nl_join(struct nl *nl, const char *family, const char *group);

/*
 * Waits up to @timeout milliseconds (-1: for ever) for events and takes those
 * of one datagram. 1: some came; 0: none in time; -EINTR: a signal came;
 * otherwise the callback's or another negative error code.
 */
int nl_wait(struct nl *nl, int timeout);

/*
 * One clause about @err, the result of nl_call() or nl_wait(): the kernel's explanation
 * if it sent one, otherwise the meaning of the code.
 */
const char *nl_error(const struct nl *nl, int err);

#endif /* KOFI_TOOL_NL_H */
