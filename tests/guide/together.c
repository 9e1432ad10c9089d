// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testtogether.ko: the block store of Documentation/guide/together.rst. A write to
 * parameter refuse runs another client, whose connection breaks between the two posts of a
 * request: the receive, which has been accepted, fails before the send is refused. The error
 * of the request is that of the write. In a client that parameter early runs, the first reply
 * of the server is refused with -EAGAIN.
 */
#include <linux/kofi/kofi.h>
#include <linux/kofi/provider.h>
#include <linux/module.h>
#include <linux/workqueue.h>

static bool refuse;		/* the client's sends, after their receives */
static bool early;		/* the server's next reply */
static struct fid_ep *early_ep;

static ssize_t broken_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	return refuse ? 0 : fi_recvmsg(ep, msg, flags);
}

static ssize_t broken_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags);

static void early_space(struct work_struct *work);
static DECLARE_WORK(early_work, early_space);

static ssize_t early_sendv(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			   fi_addr_t to, void *context)
{
	if (!early)
		return fi_sendv(ep, iov, desc, count, to, context);
	early = false;
	early_ep = ep;
	schedule_work(&early_work);
	return -EAGAIN;
}

#define fi_recvmsg	broken_recvmsg
#define fi_sendmsg	broken_sendmsg
#define fi_sendv	early_sendv
#include "page_together.c"
#undef fi_sendmsg
#undef fi_sendv

/* Nothing else is outstanding at the server's connection: no callback runs. */
static void early_space(struct work_struct *work)
{
	struct kofi_ep *ep = container_of(early_ep, struct kofi_ep, ep);

	local_bh_disable();
	ep->space.fn(early_ep, early_ep->fid.context);
	local_bh_enable();
}

static ssize_t broken_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	struct rbs_request *rq;
	struct kofi_wc wc = { .err = FI_ECANCELED };

	if (!refuse)
		return fi_sendmsg(ep, msg, flags);
	rq = container_of((struct kofi_cqe *)msg->context, struct rbs_request, send);
	wc.cqe = &rq->recv;
	rq->recv.done(rq->client->cq, &wc);
	return -ENOTCONN;
}

static int run(bool *how)
{
	struct rbs_client *client;
	int ret;

	ret = rbs_client_open(&init_net, "127.0.0.1", "7471", &client);
	if (ret)
		return ret;
	*how = true;
	ret = rbs_try(client);
	*how = false;
	rbs_client_close(client);
	flush_work(&early_work);
	return ret;
}

static int refuse_set(const char *val, const struct kernel_param *kp)
{
	return run(&refuse);
}

static const struct kernel_param_ops refuse_ops = { .set = refuse_set };
module_param_cb(refuse, &refuse_ops, NULL, 0200);
MODULE_PARM_DESC(refuse, "Run a client whose sends are refused");

static int early_set(const char *val, const struct kernel_param *kp)
{
	return run(&early);
}

static const struct kernel_param_ops early_ops = { .set = early_set };
module_param_cb(early, &early_ops, NULL, 0200);
MODULE_PARM_DESC(early, "Run a client whose first reply is refused at first");
