// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A run: a thread that performs a ping-pong from the first connection to the
 * last. The netlink socket that started the run bounds its life.
 *
 * main.c's list owns the run. When the socket is closed, pp_run_release() hands
 * the run to a work item. That signals the thread, which interrupts its waits,
 * stops the thread, and frees the run. The thread itself closes all objects
 * before it reports the result, and then only waits to be stopped.
 *
 * The module cannot be unloaded while a run is active: a run holds a reference
 * until just before its final report, so that a reader of the report can unload
 * the module at once. The module's exit waits for the work items, and so for
 * threads that have reported but have not been stopped.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pingpong.h"

static struct workqueue_struct *pp_run_wq;

/* Drop the run's reference to the module. */
static void pp_run_unpin(struct pp_run *run)
{
	if (test_and_clear_bit(0, &run->pinned))
		module_put(THIS_MODULE);
}

/* Connect the client. Its endpoint must exist before the server learns its name. */
static int pp_run_connect_client(struct pp_run *run)
{
	struct sockaddr_storage addr, peer;
	int ret;

	ret = pp_ctrl_connect(run, &addr);
	if (!ret)
		ret = pp_ctrl_recv_addr(run, &peer);
	if (!ret)
		ret = pp_ep_connect(run, &peer);
	if (ret || pp_connects(&run->opts))
		return ret;
	ret = pp_ep_name(run, &addr);
	if (!ret)
		ret = pp_ctrl_send_addr(run, &addr);
	if (ret)
		return ret;
	return pp_ep_insert(run, &peer);
}

static int pp_run_connect_server(struct pp_run *run)
{
	struct sockaddr_storage addr;
	int ret;

	ret = pp_ctrl_listen(run, &addr);
	if (!ret)
		ret = pp_ep_listen(run, &addr);
	if (!ret)
		ret = pp_ep_name(run, &addr);
	if (!ret)
		ret = pp_ctrl_send_addr(run, &addr);
	if (ret)
		return ret;
	if (pp_connects(&run->opts))
		return pp_ep_accept(run);
	ret = pp_ctrl_recv_addr(run, &addr);
	if (ret)
		return ret;
	return pp_ep_insert(run, &addr);
}

static int pp_run_connect(struct pp_run *run)
{
	return pp_is_client(run) ? pp_run_connect_client(run) :
				   pp_run_connect_server(run);
}

/* Wait until both sides are ready for a size, and start its messages. */
static int pp_run_begin(struct pp_run *run, size_t size)
{
	int ret;

	ret = pp_ctrl_sync(run);
	if (ret)
		return ret;
	pp_data_begin(run, size);
	return pp_is_client(run) ? 0 : pp_ctrl_answer(run);
}

static int pp_run_size(struct pp_run *run, size_t size)
{
	struct pp_result res;
	int ret;

	ret = pp_run_begin(run, size);
	if (ret)
		return pp_data_blame(run, ret);
	ret = pp_data_end(run, &res);
	if (ret)
		return ret;
	ret = pp_ctrl_count(run, &res.acked);
	if (ret)
		return pp_data_blame(run, ret);
	/* the peer's count includes the warm-up */
	res.acked -= min_t(u64, res.acked, run->opts.warmup);
	run->stage = "report";
	return pp_report_result(run, &res);
}

/*
 * Longest message from the lists: limited by the provider and, for datagrams,
 * by one packet over Ethernet on any device. fi_pingpong stops there, too, as
 * the userspace provider udp has no other limit; neither side learns the limit
 * of the other.
 */
static size_t pp_run_most(const struct pp_run *run)
{
	size_t most = run->info->ep_attr->max_msg_size;

	return run->opts.type == FI_EP_DGRAM ?
	       min_t(size_t, most, PP_DGRAM_MAX) : most;
}

static int pp_run_all(struct pp_run *run)
{
	const struct pp_opts *opts = &run->opts;
	size_t sizes[PP_SIZES_MAX];
	int i, n, ret;

	run->stage = "memory";
	n = pp_sizes(opts->all_sizes, PP_DATA_MAX, sizes);
	if (opts->one_size) {
		sizes[0] = opts->size;
		n = 1;
	}
	ret = pp_data_alloc(run, sizes[n - 1]);
	if (ret)
		return ret;

	ret = pp_run_connect(run);
	if (ret)
		return ret;
	run->stage = "report";
	ret = pp_report_progress(run, 0);
	if (ret)
		return ret;

	for (i = 0; i < n; i++) {
		/* a size given by the user is always run */
		if (!opts->one_size && sizes[i] > pp_run_most(run))
			break;
		ret = pp_run_size(run, sizes[i]);
		if (ret)
			return ret;
	}
	ret = pp_data_fin(run);
	/* the peer might wait forever for a lost datagram */
	if (!ret && opts->type != FI_EP_DGRAM)
		pp_ctrl_finish(run);
	return ret;
}

static int pp_run_thread(void *arg)
{
	struct pp_run *run = arg;
	int ret;

	allow_kernel_signal(SIGKILL);
	ret = pp_run_all(run);
	pp_ep_close(run);
	pp_ctrl_close(run);
	pp_data_free(run);
	pp_run_unpin(run);
	pp_report_end(run, ret);

	set_current_state(TASK_IDLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_IDLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void pp_run_release_work(struct work_struct *work)
{
	struct pp_run *run = container_of(work, struct pp_run, release);

	send_sig(SIGKILL, run->task, 1);
	kthread_stop_put(run->task);
	/* the thread may have been stopped before its first instruction */
	pp_run_unpin(run);
	put_net_track(run->net, &run->ns_tracker);
	kfree(run);
}

/**
 * pp_run_release - abort a run unless it has finished, and free it
 * @run: the run
 *
 * Context: process; does not wait.
 */
void pp_run_release(struct pp_run *run)
{
	queue_work(pp_run_wq, &run->release);
}

/**
 * pp_run_start - start a run
 * @opts: options of the run
 * @net: network namespace
 * @id: number of the run
 * @portid: netlink socket for reports
 *
 * Context: process; sleeps.
 * Return: the run, to be freed by pp_run_release(), or an error pointer.
 */
struct pp_run *pp_run_start(const struct pp_opts *opts, struct net *net,
			    u32 id, u32 portid)
{
	struct task_struct *task;
	struct pp_run *run;

	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return ERR_PTR(-ENOMEM);
	run->opts = *opts;
	run->id = id;
	run->portid = portid;
	run->stage = "start";
	INIT_WORK(&run->release, pp_run_release_work);

	task = kthread_create(pp_run_thread, run, "kofi_pp/%u", id);
	if (IS_ERR(task)) {
		kfree(run);
		return ERR_CAST(task);
	}
	run->task = get_task_struct(task);
	run->net = get_net_track(net, &run->ns_tracker, GFP_KERNEL);
	/* the caller holds a reference through a call of this module */
	__module_get(THIS_MODULE);
	set_bit(0, &run->pinned);
	wake_up_process(task);
	return run;
}

int pp_runs_init(void)
{
	pp_run_wq = alloc_workqueue("kofi_pingpong",
				    WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return pp_run_wq ? 0 : -ENOMEM;
}

void pp_runs_exit(void)
{
	destroy_workqueue(pp_run_wq);
}
