// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generic netlink (nl.h).
 *
 * The socket has one buffer for requests and one for answers. A request has its own
 * sequence number, an event has 0. A message with another number belongs to a list that
 * was abandoned. The module may be newer than the tool: unknown attributes are skipped,
 * lengths are checked.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kofi.h"
#include "nl.h"

#define NL_REQUEST_SIZE	8192
#define NL_ANSWER_SIZE	65536	/* the kernel's dumps use up to 32 KiB */

#define ALIGNED		__attribute__((aligned(NLMSG_ALIGNTO)))

struct nl_sink {
	nl_fn	fn;
	void	*arg;
	int	max;
};

struct nl {
	struct mnl_socket	*sock;
	uint16_t		family;
	uint8_t			version;
	const char		*group;		/* to find */
	uint32_t		group_id;	/* number of @group, 0 if there is none */
	uint32_t		seq;
	struct nl_sink		event;
	char			said[256];	/* by the kernel, about the last error */
	char			request[NL_REQUEST_SIZE] ALIGNED;
	char			answer[NL_ANSWER_SIZE] ALIGNED;
};

int nl_fd(const struct nl *nl)
{
	return mnl_socket_get_fd(nl->sock);
}

uint32_t nl_port(const struct nl *nl)
{
	return mnl_socket_get_portid(nl->sock);
}

struct nlmsghdr *nl_new(struct nl *nl, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl->request);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = nl->family;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	nlh->nlmsg_seq = ++nl->seq;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = nl->version;
	return nlh;
}

void nl_put_uint(struct nlmsghdr *nlh, uint16_t type, uint64_t value)
{
	if (value > UINT32_MAX)
		mnl_attr_put_u64(nlh, type, value);
	else
		mnl_attr_put_u32(nlh, type, value);
}

uint64_t nl_uint(const struct nlattr *attr)
{
	if (!attr)
		return 0;
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		return mnl_attr_get_u64(attr);
	default:
		return 0;
	}
}

int64_t nl_sint(const struct nlattr *attr)
{
	if (attr && mnl_attr_get_payload_len(attr) == 4)
		return (int32_t)mnl_attr_get_u32(attr);
	return (int64_t)nl_uint(attr);
}

const char *nl_str(const struct nlattr *attr)
{
	const char *s;

	if (!attr)
		return NULL;
	s = mnl_attr_get_payload(attr);
	return memchr(s, 0, mnl_attr_get_payload_len(attr)) ? s : NULL;
}

static void nl_take_attr(const struct nlattr *attr, const struct nlattr **tb,
			 int max)
{
	int type = mnl_attr_get_type(attr);

	if (type <= max)
		tb[type] = attr;
}

void nl_nested(const struct nlattr *nest, const struct nlattr **tb, int max)
{
	const struct nlattr *attr;

	memset(tb, 0, (max + 1) * sizeof(*tb));
	if (nest)
		mnl_attr_for_each_nested(attr, nest)
			nl_take_attr(attr, tb, max);
}

static int nl_give(struct nl *nl, const struct nl_sink *to,
		   const struct nlmsghdr *nlh)
{
	const struct nlattr **tb;
	const struct nlattr *attr;
	int ret;

	if (!to->fn)
		return 0;
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct genlmsghdr))
		return -EBADMSG;
	tb = calloc(to->max + 1, sizeof(*tb));
	if (!tb)
		return -ENOMEM;
	nl_for_each(attr, nlh)
		nl_take_attr(attr, tb, to->max);
	ret = to->fn(nl, nlh, tb, to->arg);
	free(tb);
	return ret;
}

/*
 * The result of a request: an nlmsgerr, or the int of NLMSG_DONE. Attributes with the
 * kernel's explanation follow it.
 */
static int nl_verdict(struct nl *nl, const struct nlmsghdr *nlh)
{
	size_t skip = sizeof(int), len = mnl_nlmsg_get_payload_len(nlh);
	const struct nlattr *attr;
	const char *said;
	int err;

	if (len < sizeof(int))
		return nlh->nlmsg_type == NLMSG_DONE ? 0 : -EBADMSG;
	memcpy(&err, mnl_nlmsg_get_payload(nlh), sizeof(err));
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

		if (len < sizeof(*e))
			return -EBADMSG;
		skip = sizeof(*e);
		if (!(nlh->nlmsg_flags & NLM_F_CAPPED) &&
		    e->msg.nlmsg_len > sizeof(e->msg))
			skip += MNL_ALIGN(e->msg.nlmsg_len - sizeof(e->msg));
	}
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || skip > len)
		return err;
	mnl_attr_for_each(attr, nlh, skip) {
		if (mnl_attr_get_type(attr) != NLMSGERR_ATTR_MSG)
			continue;
		said = nl_str(attr);
		if (said)
			snprintf(nl->said, sizeof(nl->said), "%s", said);
	}
	return err;
}

/*
 * Receives one datagram. Returns 1 if it completed request @seq, and stores the result;
 * returns 0 otherwise. With NULL for @to no request is outstanding.
 */
static int nl_receive(struct nl *nl, uint32_t seq, const struct nl_sink *to,
		      int *end)
{
	const struct nlmsghdr *nlh;
	int len, ret;

	ret = mnl_socket_recvfrom(nl->sock, nl->answer, sizeof(nl->answer));
	if (ret < 0)
		return -errno;
	len = ret;
	for (nlh = (struct nlmsghdr *)nl->answer; mnl_nlmsg_ok(nlh, len);
	     nlh = mnl_nlmsg_next(nlh, &len)) {
		bool answer = to && nlh->nlmsg_seq == seq;

		switch (nlh->nlmsg_type) {
		case NLMSG_ERROR:
		case NLMSG_DONE:
			if (!answer)
				continue;
			*end = nl_verdict(nl, nlh);
			return 1;
		case NLMSG_NOOP:
		case NLMSG_OVERRUN:
			continue;
		}
		if (!answer && nlh->nlmsg_seq)
			continue;
		ret = nl_give(nl, answer ? to : &nl->event, nlh);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int nl_call(struct nl *nl, struct nlmsghdr *nlh, int max, nl_fn fn, void *arg)
{
	const struct nl_sink to = { .fn = fn, .arg = arg, .max = max };
	uint32_t seq = nlh->nlmsg_seq;
	int ret, end = 0;

	nl->said[0] = 0;
	if (mnl_socket_sendto(nl->sock, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		ret = nl_receive(nl, seq, &to, &end);
	} while (ret == 0);
	return ret < 0 ? ret : end;
}

void nl_on_event(struct nl *nl, int max, nl_fn fn, void *arg)
{
	nl->event = (struct nl_sink){ .fn = fn, .arg = arg, .max = max };
}

int nl_wait(struct nl *nl, int timeout)
{
	struct pollfd fd = { .fd = nl_fd(nl), .events = POLLIN };
	int ret, end;

	ret = poll(&fd, 1, timeout);
	if (ret < 0)
		return -errno;
	if (!ret)
		return 0;
	nl->said[0] = 0;
	ret = nl_receive(nl, 0, NULL, &end);
	return ret < 0 ? ret : 1;
}

const char *nl_error(const struct nl *nl, int err)
{
	return nl->said[0] ? nl->said : errno_text(err);
}

static void nl_take_groups(struct nl *nl, const struct nlattr *groups)
{
	const struct nlattr *tb[CTRL_ATTR_MCAST_GRP_MAX + 1], *attr;
	const char *name;

	mnl_attr_for_each_nested(attr, groups) {
		nl_nested(attr, tb, CTRL_ATTR_MCAST_GRP_MAX);
		name = nl_str(tb[CTRL_ATTR_MCAST_GRP_NAME]);
		if (name && !strcmp(name, nl->group))
			nl->group_id = nl_uint(tb[CTRL_ATTR_MCAST_GRP_ID]);
	}
}

static int nl_take_family(struct nl *nl, const struct nlmsghdr *nlh,
			  const struct nlattr **tb, void *arg)
{
	(void)nlh;
	(void)arg;
	if (!tb[CTRL_ATTR_FAMILY_ID])
		return -EBADMSG;
	nl->family = nl_uint(tb[CTRL_ATTR_FAMILY_ID]);
	nl->version = nl_uint(tb[CTRL_ATTR_VERSION]);
	if (nl->group && tb[CTRL_ATTR_MCAST_GROUPS])
		nl_take_groups(nl, tb[CTRL_ATTR_MCAST_GROUPS]);
	return 0;
}

static int nl_find_family(struct nl *nl, const char *family)
{
	struct nlmsghdr *nlh;

	nl->family = GENL_ID_CTRL;
	nl->version = 1;
	nlh = nl_new(nl, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, family);
	return nl_call(nl, nlh, CTRL_ATTR_MAX, nl_take_family, NULL);
}

int nl_join(struct nl *nl, const char *family, const char *group)
{
	int err;

	nl->group = group;
	err = nl_find_family(nl, family);
	if (err)
		return err;
	if (!nl->group_id) {
		snprintf(nl->said, sizeof(nl->said),
			 "the kernel module is older than this program");
		return -ENOENT;
	}
	if (mnl_socket_setsockopt(nl->sock, NETLINK_ADD_MEMBERSHIP,
				  &nl->group_id, sizeof(nl->group_id)) < 0)
		return -errno;
	return 0;
}

void load_module(const char *module)
{
	char *const argv[] = { "modprobe", "-q", (char *)module, NULL };
	int status;
	pid_t pid;

	if (!posix_spawnp(&pid, "modprobe", NULL, NULL, argv, environ))
		waitpid(pid, &status, 0);
}

struct nl *nl_open(const char *family, const char *module)
{
	struct nl *nl = calloc(1, sizeof(*nl));
	int on = 1, err;

	if (!nl) {
		error("out of memory");
		return NULL;
	}
	nl->sock = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!nl->sock || mnl_socket_bind(nl->sock, 0, MNL_SOCKET_AUTOPID) < 0) {
		error("no netlink socket: %s", strerror(errno));
		goto close;
	}
	/* without these the kernel only has less to say */
	mnl_socket_setsockopt(nl->sock, NETLINK_EXT_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(nl->sock, NETLINK_CAP_ACK, &on, sizeof(on));

	err = nl_find_family(nl, family);
	if (err == -ENOENT && !geteuid()) {
		load_module(module);
		err = nl_find_family(nl, family);
	}
	if (!err)
		return nl;
	if (err == -ENOENT)
		error("the kernel module %s is not loaded; modprobe %s does it, or says why not",
		      module, module);
	else
		error("netlink family %s: %s", family, nl_error(nl, err));
close:
	nl_close(nl);
	return NULL;
}

void nl_close(struct nl *nl)
{
	if (!nl)
		return;
	if (nl->sock)
		mnl_socket_close(nl->sock);
	free(nl);
}
