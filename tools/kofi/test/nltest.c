// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests the kofi tool never makes, for the scenario "tool". Each line of the table
 * is a request that the kernel must refuse, with the expected code. Abandoned dumps
 * and randomly damaged requests follow. Apart from the codes, the kernel must survive,
 * which the scenario's console shows.
 *
 *   kofi-nltest [ROUNDS [SEED]]
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../../../include/uapi/linux/kofi.h"
#include "kofi.h"
#include "nl.h"

static unsigned int failures;

void error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

static int count(struct nl *nl, const struct nlmsghdr *nlh,
		 const struct nlattr **tb, void *arg)
{
	(void)nl;
	(void)nlh;
	(void)tb;
	++*(unsigned int *)arg;
	return 0;
}

/* ------------------------------------------------------- refused requests */

static void nothing(struct nlmsghdr *nlh)
{
	(void)nlh;
}

static void no_genl_header(struct nlmsghdr *nlh)
{
	nlh->nlmsg_len = NLMSG_HDRLEN;
}

static void half_genl_header(struct nlmsghdr *nlh)
{
	nlh->nlmsg_len = NLMSG_HDRLEN + 2;
}

static void unknown_attr(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, 200, 1);
}

static void reply_attr(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, KOFI_A_INFO_CAPS, 1);
}

static void node_without_end(struct nlmsghdr *nlh)
{
	mnl_attr_put(nlh, KOFI_A_INFO_NODE, 4, "1.1.");
}

static void node_too_long(struct nlmsghdr *nlh)
{
	char text[300];

	memset(text, '1', sizeof(text));
	mnl_attr_put(nlh, KOFI_A_INFO_NODE, sizeof(text), text);
}

static void node_no_address(struct nlmsghdr *nlh)
{
	mnl_attr_put_strz(nlh, KOFI_A_INFO_NODE, "no address");
}

static void service_no_port(struct nlmsghdr *nlh)
{
	mnl_attr_put_strz(nlh, KOFI_A_INFO_NODE, "127.0.0.1");
	mnl_attr_put_strz(nlh, KOFI_A_INFO_SERVICE, "65536");
}

static void flags_unknown(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, KOFI_A_INFO_FLAGS, 1);
}

static void flags_short(struct nlmsghdr *nlh)
{
	mnl_attr_put_u16(nlh, KOFI_A_INFO_FLAGS, 0);
}

static void version_newer(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, KOFI_A_INFO_API_VERSION, 99 << 16);
}

static void version_large(struct nlmsghdr *nlh)
{
	mnl_attr_put_u64(nlh, KOFI_A_INFO_API_VERSION, 1ULL << 32);
}

static void hints_not_nested(struct nlmsghdr *nlh)
{
	mnl_attr_put(nlh, KOFI_A_INFO_HINTS, 0, NULL);
}

static void hints_unknown(struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);

	mnl_attr_put_u32(nlh, 77, 1);
	mnl_attr_nest_end(nlh, nest);
}

static void hints_cut(struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);
	struct nlattr *attr = mnl_nlmsg_get_payload_tail(nlh);

	mnl_attr_put_u32(nlh, KOFI_A_HINTS_CAPS, 2);
	attr->nla_len = 100;
	mnl_attr_nest_end(nlh, nest);
}

static void hints_ep_type(struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);

	mnl_attr_put_u32(nlh, KOFI_A_HINTS_EP_TYPE, 4);
	mnl_attr_nest_end(nlh, nest);
}

static void hints_addr(struct nlmsghdr *nlh)
{
	const struct sockaddr_in addr = { .sin_family = AF_INET6 };
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);

	mnl_attr_put(nlh, KOFI_A_HINTS_SRC_ADDR, sizeof(addr), &addr);
	mnl_attr_nest_end(nlh, nest);
}

/* A capability that cannot be there, as it has no name. */
static void hints_nobody(struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);

	mnl_attr_put_u64(nlh, KOFI_A_HINTS_CAPS, 1ULL << 63);
	mnl_attr_nest_end(nlh, nest);
}

static void attr_cut(struct nlmsghdr *nlh)
{
	struct nlattr *attr = mnl_nlmsg_get_payload_tail(nlh);

	mnl_attr_put_u32(nlh, KOFI_A_INFO_FLAGS, 0);
	attr->nla_len = 100;
}

static void attr_shorter_than_itself(struct nlmsghdr *nlh)
{
	struct nlattr *attr = mnl_nlmsg_get_payload_tail(nlh);

	mnl_attr_put_u32(nlh, KOFI_A_INFO_FLAGS, 0);
	attr->nla_len = 3;
}

static void id_none(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, KOFI_A_OBJ_ID, 0);
}

static void id_last(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, KOFI_A_OBJ_ID, UINT32_MAX);
}

static void id_large(struct nlmsghdr *nlh)
{
	mnl_attr_put_u64(nlh, KOFI_A_OBJ_ID, 1ULL << 32);
}

static void id_odd(struct nlmsghdr *nlh)
{
	mnl_attr_put(nlh, KOFI_A_OBJ_ID, 3, "abc");
}

static void class_unknown(struct nlmsghdr *nlh)
{
	mnl_attr_put_u32(nlh, KOFI_A_OBJ_CLASS, 22);
}

static const struct bad {
	const char	*name;
	uint8_t		cmd;
	uint16_t	flags;
	void		(*fill)(struct nlmsghdr *nlh);
	int		err;
} bads[] = {
	{ "no header", KOFI_CMD_INFO_GET, NLM_F_DUMP, no_genl_header, EINVAL },
	{ "half a header", KOFI_CMD_OBJ_GET, 0, half_genl_header, EINVAL },
	{ "command 0", 0, 0, nothing, EOPNOTSUPP },
	{ "unknown command", 200, 0, nothing, EOPNOTSUPP },
	{ "unknown dump", 200, NLM_F_DUMP, nothing, EOPNOTSUPP },
	{ "one provider", KOFI_CMD_PROVIDER_GET, 0, nothing, EOPNOTSUPP },
	{ "one info", KOFI_CMD_INFO_GET, 0, nothing, EOPNOTSUPP },
	{ "providers, attribute", KOFI_CMD_PROVIDER_GET, NLM_F_DUMP,
	  unknown_attr, EINVAL },
	{ "info, attribute", KOFI_CMD_INFO_GET, NLM_F_DUMP, unknown_attr,
	  EINVAL },
	{ "info, attribute of replies", KOFI_CMD_INFO_GET, NLM_F_DUMP,
	  reply_attr, EINVAL },
	{ "node without end", KOFI_CMD_INFO_GET, NLM_F_DUMP, node_without_end,
	  EINVAL },
	{ "node too long", KOFI_CMD_INFO_GET, NLM_F_DUMP, node_too_long,
	  EINVAL },
	{ "node no address", KOFI_CMD_INFO_GET, NLM_F_DUMP, node_no_address,
	  ENODATA },
	{ "service no port", KOFI_CMD_INFO_GET, NLM_F_DUMP, service_no_port,
	  ENODATA },
	{ "unknown flag", KOFI_CMD_INFO_GET, NLM_F_DUMP, flags_unknown,
	  FI_EBADFLAGS },
	{ "flags of 16 bits", KOFI_CMD_INFO_GET, NLM_F_DUMP, flags_short,
	  EINVAL },
	{ "version to come", KOFI_CMD_INFO_GET, NLM_F_DUMP, version_newer,
	  ENOSYS },
	{ "version of 64 bits", KOFI_CMD_INFO_GET, NLM_F_DUMP, version_large,
	  ERANGE },
	{ "hints without flag", KOFI_CMD_INFO_GET, NLM_F_DUMP,
	  hints_not_nested, EINVAL },
	{ "hints, attribute", KOFI_CMD_INFO_GET, NLM_F_DUMP, hints_unknown,
	  EINVAL },
	{ "hints cut", KOFI_CMD_INFO_GET, NLM_F_DUMP, hints_cut, EINVAL },
	{ "endpoint type", KOFI_CMD_INFO_GET, NLM_F_DUMP, hints_ep_type,
	  ERANGE },
	{ "source address", KOFI_CMD_INFO_GET, NLM_F_DUMP, hints_addr, EINVAL },
	{ "capability", KOFI_CMD_INFO_GET, NLM_F_DUMP, hints_nobody, ENODATA },
	{ "attribute cut", KOFI_CMD_INFO_GET, NLM_F_DUMP, attr_cut, EINVAL },
	{ "attribute too short", KOFI_CMD_INFO_GET, NLM_F_DUMP,
	  attr_shorter_than_itself, EINVAL },
	{ "object without number", KOFI_CMD_OBJ_GET, 0, nothing, EINVAL },
	{ "object 0", KOFI_CMD_OBJ_GET, 0, id_none, ENOENT },
	{ "last object", KOFI_CMD_OBJ_GET, 0, id_last, ENOENT },
	{ "object of 64 bits", KOFI_CMD_OBJ_GET, 0, id_large, ERANGE },
	{ "object of 24 bits", KOFI_CMD_OBJ_GET, 0, id_odd, EINVAL },
	{ "object, attribute", KOFI_CMD_OBJ_GET, 0, unknown_attr, EINVAL },
	{ "objects, attribute", KOFI_CMD_OBJ_GET, NLM_F_DUMP, unknown_attr,
	  EINVAL },
	{ "objects of a class", KOFI_CMD_OBJ_GET, NLM_F_DUMP, class_unknown,
	  ERANGE },
};

static void try_bads(struct nl *nl)
{
	const size_t n = sizeof(bads) / sizeof(bads[0]);
	unsigned int answers = 0;
	struct nlmsghdr *nlh;
	size_t i;
	int err;

	for (i = 0; i < n; i++) {
		nlh = nl_new(nl, bads[i].cmd, bads[i].flags);
		bads[i].fill(nlh);
		err = nl_call(nl, nlh, 0, count, &answers);
		if (err == -bads[i].err)
			continue;
		failures++;
		printf("%s: %d (%s), not %d\n", bads[i].name, err,
		       err ? nl_error(nl, err) : "success", -bads[i].err);
	}
	if (answers) {
		failures++;
		printf("%u answers to refused requests\n", answers);
	}
	printf("%zu bad requests\n", n);
}

/* -------------------------------------------------------- abandoned dumps */

static int stop(struct nl *nl, const struct nlmsghdr *nlh,
		const struct nlattr **tb, void *arg)
{
	(void)nl;
	(void)nlh;
	(void)tb;
	(void)arg;
	return -ECANCELED;
}

static void abandon(unsigned int times)
{
	static const uint8_t cmds[] = {
		KOFI_CMD_INFO_GET, KOFI_CMD_PROVIDER_GET, KOFI_CMD_OBJ_GET,
	};
	unsigned int i;
	struct nl *nl;

	for (i = 0; i < times; i++) {
		nl = nl_open(KOFI_FAMILY_NAME, "kofi");
		if (!nl) {
			failures++;
			return;
		}
		nl_call(nl, nl_new(nl, cmds[i % sizeof(cmds)], NLM_F_DUMP), 0,
			stop, NULL);
		nl_close(nl);
	}
	printf("%u abandoned dumps\n", times);
}

/* --------------------------------------------------------- damaged at random */

static void valid(struct nl *nl, struct nlmsghdr **nlh)
{
	struct nlattr *nest;

	if (random() % 3 == 0) {
		*nlh = nl_new(nl, KOFI_CMD_OBJ_GET, 0);
		mnl_attr_put_u32(*nlh, KOFI_A_OBJ_ID, random() % 64);
		return;
	}
	*nlh = nl_new(nl, KOFI_CMD_INFO_GET, NLM_F_DUMP);
	mnl_attr_put_strz(*nlh, KOFI_A_INFO_NODE, "127.0.0.1");
	mnl_attr_put_strz(*nlh, KOFI_A_INFO_SERVICE, "4711");
	mnl_attr_put_u64(*nlh, KOFI_A_INFO_FLAGS, 0);
	nest = mnl_attr_nest_start(*nlh, KOFI_A_INFO_HINTS);
	mnl_attr_put_u64(*nlh, KOFI_A_HINTS_CAPS, 2);
	mnl_attr_put_u32(*nlh, KOFI_A_HINTS_EP_TYPE, 1);
	mnl_attr_put_strz(*nlh, KOFI_A_HINTS_PROV_NAME, "sock");
	mnl_attr_put_strz(*nlh, KOFI_A_HINTS_DOMAIN_NAME, "lo");
	mnl_attr_nest_end(*nlh, nest);
}

/*
 * A request the kernel does not answer at all is possible, so each is
 * followed by one it must answer.
 */
static void damage(struct nl *nl, unsigned int rounds)
{
	struct nlmsghdr *nlh;
	unsigned char *bytes;
	unsigned int i, n, len;
	int err;

	for (i = 0; i < rounds; i++) {
		valid(nl, &nlh);
		bytes = (unsigned char *)nlh;
		len = nlh->nlmsg_len;
		for (n = 1 + random() % 4; n; n--)
			bytes[NLMSG_HDRLEN + random() % (len - NLMSG_HDRLEN)] =
				random();
		if (random() % 4 == 0)
			nlh->nlmsg_len = NLMSG_HDRLEN +
					 random() % (len - NLMSG_HDRLEN + 8);
		if (send(nl_fd(nl), nlh, len, 0) < 0)
			failures++;

		nlh = nl_new(nl, KOFI_CMD_OBJ_GET, 0);
		mnl_attr_put_u32(nlh, KOFI_A_OBJ_ID, 0);
		err = nl_call(nl, nlh, 0, NULL, NULL);
		if (err == -ENOENT)
			continue;
		failures++;
		printf("round %u: %d (%s)\n", i, err, nl_error(nl, err));
	}
	printf("%u damaged requests\n", rounds);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	struct nl *nl = nl_open(KOFI_FAMILY_NAME, "kofi");

	if (!nl)
		return EXIT_FAILED;
	srandom(argc > 2 ? atoi(argv[2]) : 1);
	try_bads(nl);
	abandon(rounds / 10);
	damage(nl, rounds);
	nl_close(nl);
	if (failures)
		printf("%u failures\n", failures);
	return failures ? EXIT_FAILED : EXIT_OK;
}
