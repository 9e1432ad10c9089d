// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_pingpong.ko: the in-kernel counterpart of fi_pingpong, and the example
 * of a kOFI client. It uses only public headers.
 *
 * This file implements the generic netlink family kofi_test, which starts runs
 * and carries their reports. A run belongs to the netlink socket that started
 * it, and is aborted when that is closed. Its results are sent to that socket
 * only, as numbers; nothing is written to the kernel log. If the socket has no
 * room for a report, the run fails.
 *
 *	run.c	thread and life of a run
 *	ctrl.c	the control connection
 *	ep.c	discovery, endpoint, connection
 *	data.c	the messages
 *	proto.c	the protocol of fi_pingpong
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <net/genetlink.h>
#include <linux/kofi/version.h>

#include "netlink-gen.h"
#include "pingpong.h"

static DEFINE_MUTEX(kofi_test_mutex);	/* kofi_test_runs, kofi_test_id */
static LIST_HEAD(kofi_test_runs);	/* runs with an open socket */
static u32 kofi_test_id;

/* ---------------------------------------------------------------- reports */

static struct sk_buff *kofi_test_new(const struct pp_run *run, u8 cmd,
				     void **hdr)
{
	struct sk_buff *skb;

	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return NULL;
	/* sequence number 0: a report answers no request */
	*hdr = genlmsg_put(skb, run->portid, 0, &kofi_test_nl_family, 0, cmd);
	if (*hdr &&
	    !nla_put_u32(skb, KOFI_TEST_A_PINGPONG_REPORT_ID, run->id))
		return skb;
	nlmsg_free(skb);
	return NULL;
}

static int kofi_test_send(const struct pp_run *run, struct sk_buff *skb,
			  void *hdr)
{
	genlmsg_end(skb, hdr);
	return genlmsg_unicast(run->net, skb, run->portid);
}

/**
 * pp_report_progress - report that a server listens, or that a run is connected
 * @run: the run
 * @port: control port of the server; 0: connected
 *
 * Return: 0 or a negative error code.
 */
int pp_report_progress(const struct pp_run *run, u16 port)
{
	struct sk_buff *skb;
	void *hdr;

	skb = kofi_test_new(run, KOFI_TEST_CMD_PINGPONG_PROGRESS, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_string(skb, KOFI_TEST_A_PINGPONG_REPORT_STAGE,
			   port ? "listening" : "connected") ||
	    (port && nla_put_u16(skb, KOFI_TEST_A_PINGPONG_REPORT_PORT,
				 port))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return kofi_test_send(run, skb, hdr);
}

/**
 * pp_report_result - report the results of one message size
 * @run: the run
 * @res: the results
 *
 * Return: 0 or a negative error code.
 */
int pp_report_result(const struct pp_run *run, const struct pp_result *res)
{
	u64 total = 2ULL * res->sent * res->size;
	struct sk_buff *skb;
	void *hdr;

	skb = kofi_test_new(run, KOFI_TEST_CMD_PINGPONG_RESULT, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_uint(skb, KOFI_TEST_A_PINGPONG_REPORT_SIZE, res->size) ||
	    nla_put_u32(skb, KOFI_TEST_A_PINGPONG_REPORT_SENT, res->sent) ||
	    nla_put_uint(skb, KOFI_TEST_A_PINGPONG_REPORT_ACKED, res->acked) ||
	    nla_put_uint(skb, KOFI_TEST_A_PINGPONG_REPORT_TOTAL, total) ||
	    nla_put_uint(skb, KOFI_TEST_A_PINGPONG_REPORT_ELAPSED,
			 res->elapsed)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return kofi_test_send(run, skb, hdr);
}

/**
 * pp_report_end - report that a run has finished
 * @run: the run
 * @err: 0 or a negative error code
 */
void pp_report_end(const struct pp_run *run, int err)
{
	struct sk_buff *skb;
	void *hdr;

	skb = kofi_test_new(run, KOFI_TEST_CMD_PINGPONG_END, &hdr);
	if (!skb)
		return;
	if (nla_put_u32(skb, KOFI_TEST_A_PINGPONG_REPORT_ERROR, -err) ||
	    nla_put_string(skb, KOFI_TEST_A_PINGPONG_REPORT_STAGE,
			   run->stage) ||
	    (run->detail[0] &&
	     nla_put_string(skb, KOFI_TEST_A_PINGPONG_REPORT_DETAIL,
			    run->detail))) {
		nlmsg_free(skb);
		return;
	}
	kofi_test_send(run, skb, hdr);
}

/* --------------------------------------------------------------- requests */

static void kofi_test_opt_text(char *to, const struct nlattr *attr)
{
	if (attr)
		nla_strscpy(to, attr, KOFI_TEST_NAME_MAX + 1);
}

static int kofi_test_opts(struct pp_opts *opts, struct genl_info *info)
{
	static const enum fi_ep_type types[] = {
		[KOFI_TEST_ENDPOINT_MSG]	= FI_EP_MSG,
		[KOFI_TEST_ENDPOINT_RDM]	= FI_EP_RDM,
		[KOFI_TEST_ENDPOINT_DGRAM]	= FI_EP_DGRAM,
	};
	struct nlattr **tb = info->attrs;
	struct nlattr *attr;

	kofi_test_opt_text(opts->node, tb[KOFI_TEST_A_PINGPONG_NODE]);
	kofi_test_opt_text(opts->source, tb[KOFI_TEST_A_PINGPONG_SOURCE]);
	kofi_test_opt_text(opts->prov, tb[KOFI_TEST_A_PINGPONG_PROVIDER]);
	kofi_test_opt_text(opts->domain, tb[KOFI_TEST_A_PINGPONG_DOMAIN]);
	attr = tb[KOFI_TEST_A_PINGPONG_SRC_PORT];
	opts->src_port = attr ? nla_get_u16(attr) : 0;
	attr = tb[KOFI_TEST_A_PINGPONG_DST_PORT];
	opts->dst_port = attr ? nla_get_u16(attr) : 0;
	opts->ipv6 = nla_get_flag(tb[KOFI_TEST_A_PINGPONG_IPV6]);
	opts->check = nla_get_flag(tb[KOFI_TEST_A_PINGPONG_CHECK]);
	opts->all_sizes = nla_get_flag(tb[KOFI_TEST_A_PINGPONG_ALL_SIZES]);
	attr = tb[KOFI_TEST_A_PINGPONG_SIZE];
	opts->one_size = attr;
	opts->size = attr ? nla_get_uint(attr) : 0;
	attr = tb[KOFI_TEST_A_PINGPONG_WARMUP];
	opts->warmup = attr ? nla_get_u32(attr) : 0;
	attr = tb[KOFI_TEST_A_PINGPONG_MODE];
	opts->read = attr && nla_get_u32(attr) == KOFI_TEST_MODE_READ;
	attr = tb[KOFI_TEST_A_PINGPONG_POLL];
	opts->poll = attr ? nla_get_u32(attr) : KOFI_POLL_SOFTIRQ;
	attr = tb[KOFI_TEST_A_PINGPONG_ENDPOINT];
	opts->type = attr ? types[nla_get_u32(attr)] : FI_EP_MSG;
	opts->tagged = nla_get_flag(tb[KOFI_TEST_A_PINGPONG_TAGGED]);
	attr = tb[KOFI_TEST_A_PINGPONG_TIMEOUT];
	opts->timeout = attr ? nla_get_u32(attr) : 0;
	if (GENL_REQ_ATTR_CHECK(info, KOFI_TEST_A_PINGPONG_ITERATIONS))
		return -EINVAL;
	opts->iterations = nla_get_u32(tb[KOFI_TEST_A_PINGPONG_ITERATIONS]);

	if (opts->all_sizes && opts->one_size) {
		NL_SET_ERR_MSG(info->extack, "either one size or all of them");
		return -EINVAL;
	}
	if (opts->timeout > INT_MAX) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "timeout too long");
		return -ERANGE;
	}
	if ((u64)opts->iterations + opts->warmup >= U32_MAX) {
		NL_SET_ERR_MSG(info->extack, "too many round trips");
		return -ERANGE;
	}
	return 0;
}

/* KOFI_TEST_CMD_PINGPONG_START */
int kofi_test_nl_pingpong_start_doit(struct sk_buff *skb,
				     struct genl_info *info)
{
	struct pp_opts opts = {};
	struct sk_buff *reply;
	struct pp_run *run;
	void *hdr;
	int ret;
	u32 id;

	BUILD_BUG_ON(KOFI_TEST_POLL_DIRECT != (int)KOFI_POLL_DIRECT ||
		     KOFI_TEST_POLL_SOFTIRQ != (int)KOFI_POLL_SOFTIRQ ||
		     KOFI_TEST_POLL_WORKQUEUE != (int)KOFI_POLL_WORKQUEUE);

	ret = kofi_test_opts(&opts, info);
	if (ret)
		return ret;
	reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	hdr = genlmsg_put_reply(reply, info, &kofi_test_nl_family, 0,
				KOFI_TEST_CMD_PINGPONG_START);
	if (!hdr) {
		ret = -EMSGSIZE;
		goto free_reply;
	}

	mutex_lock(&kofi_test_mutex);
	id = ++kofi_test_id;
	ret = nla_put_u32(reply, KOFI_TEST_A_PINGPONG_ID, id);
	if (ret)
		goto unlock;
	run = pp_run_start(&opts, genl_info_net(info), id, info->snd_portid);
	if (IS_ERR(run)) {
		ret = PTR_ERR(run);
		goto unlock;
	}
	/* from here on, closing the socket frees the run at the latest */
	list_add_tail(&run->node, &kofi_test_runs);
	mutex_unlock(&kofi_test_mutex);
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);

unlock:
	mutex_unlock(&kofi_test_mutex);

free_reply:
	nlmsg_free(reply);
	return ret;
}

/* Release the runs of one socket, or all runs. */
static void kofi_test_release(const struct netlink_notify *socket)
{
	struct pp_run *run, *next;

	mutex_lock(&kofi_test_mutex);
	list_for_each_entry_safe(run, next, &kofi_test_runs, node) {
		if (socket && (run->portid != socket->portid ||
			       !net_eq(run->net, socket->net)))
			continue;
		list_del(&run->node);
		pp_run_release(run);
	}
	mutex_unlock(&kofi_test_mutex);
}

static int kofi_test_notify(struct notifier_block *nb, unsigned long event,
			    void *arg)
{
	const struct netlink_notify *socket = arg;

	if (event == NETLINK_URELEASE && socket->protocol == NETLINK_GENERIC)
		kofi_test_release(socket);
	return NOTIFY_DONE;
}

static struct notifier_block kofi_test_notifier = {
	.notifier_call = kofi_test_notify,
};

static int __init kofi_pingpong_init(void)
{
	int ret;

	ret = pp_runs_init();
	if (ret)
		return ret;
	ret = netlink_register_notifier(&kofi_test_notifier);
	if (ret)
		goto exit_runs;
	ret = genl_register_family(&kofi_test_nl_family);
	if (ret)
		goto unregister_notifier;
	return 0;

unregister_notifier:
	netlink_unregister_notifier(&kofi_test_notifier);
exit_runs:
	pp_runs_exit();
	return ret;
}

static void __exit kofi_pingpong_exit(void)
{
	genl_unregister_family(&kofi_test_nl_family);
	netlink_unregister_notifier(&kofi_test_notifier);
	kofi_test_release(NULL);
	pp_runs_exit();
}

module_init(kofi_pingpong_init);
module_exit(kofi_pingpong_exit);

MODULE_DESCRIPTION("In-kernel fi_pingpong over kOFI");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
