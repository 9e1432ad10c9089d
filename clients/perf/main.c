// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_perf.ko: endpoints that measure transfers, for kofi bw, kofi lat and
 * kofi check.
 *
 * This file implements the device /dev/kofi_perf. An open file is a session:
 * one endpoint, which transfers data in one size. Programs on both sides
 * exchange the parameters of their sessions over a connection between the
 * programs; the module does not use it. Each call of the file runs in the
 * calling task and returns at the latest after its timeout; the transfers run
 * in the callbacks of completion queues. Closing the file, which the kernel
 * does for a killed program, closes all objects.
 *
 *	ep.c	discovery, endpoint, connection, memory regions
 *	xfer.c	the transfers
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <linux/kofi/version.h>

#include "perf.h"

#define PERF_WAIT_MAX	1000	/* milliseconds */

static int perf_open(struct inode *inode, struct file *file)
{
	struct net *net = current->nsproxy->net_ns;
	struct perf *perf;

	if (!ns_capable(net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	perf = kzalloc(sizeof(*perf), GFP_KERNEL_ACCOUNT);
	if (!perf)
		return -ENOMEM;
	mutex_init(&perf->mutex);
	perf_xfer_init(perf);
	perf->net = get_net(net);
	perf->stage = "";
	file->private_data = perf;
	return nonseekable_open(inode, file);
}

static int perf_release(struct inode *inode, struct file *file)
{
	struct perf *perf = file->private_data;

	perf_ep_close(perf);
	perf_xfer_free(perf);
	put_net(perf->net);
	kfree(perf);
	return 0;
}

static bool perf_addr_ok(const struct kofi_perf_addr *addr)
{
	return addr->len <= sizeof(addr->addr);
}

static int perf_check(const struct kofi_perf_open *o)
{
	bool latency = o->flags & KOFI_PERF_LATENCY;
	bool verify = o->flags & KOFI_PERF_VERIFY;
	bool pingpong = o->flags & KOFI_PERF_PINGPONG;

	if (o->version != KOFI_PERF_VERSION)
		return -EPROTONOSUPPORT;
	if (o->type > KOFI_PERF_DGRAM || o->op > KOFI_PERF_OP_WRITEDATA ||
	    o->poll > KOFI_PERF_WORKQUEUE ||
	    o->flags & ~(KOFI_PERF_INITIATOR | KOFI_PERF_PINGPONG |
			 KOFI_PERF_LATENCY | KOFI_PERF_VERIFY))
		return -EINVAL;
	if (!perf_addr_ok(&o->src) || !perf_addr_ok(&o->dest))
		return -EINVAL;
	/* one-sided transfers have no answer, and datagrams no remote memory */
	if (pingpong && (o->op == KOFI_PERF_OP_READ ||
			 o->op == KOFI_PERF_OP_WRITE))
		return -EINVAL;
	if (o->type == KOFI_PERF_DGRAM && o->op != KOFI_PERF_OP_MSG)
		return -EOPNOTSUPP;
	if (!o->window || o->window > KOFI_PERF_WINDOW_MAX || !o->size ||
	    o->size > KOFI_PERF_SIZE_MAX ||
	    o->size * o->window > KOFI_PERF_SIZE_MAX)
		return -ERANGE;
	if ((latency && o->window != 1) || (o->corrupt && !verify))
		return -EINVAL;
	if (o->iterations > S64_MAX || o->warmup > S64_MAX)
		return -ERANGE;
	if (o->cpu < -1 || o->cpu >= (int)nr_cpu_ids ||
	    (o->cpu >= 0 && !cpu_online(o->cpu)))
		return -ENODEV;
	return 0;
}

static int perf_ioctl_open(struct perf *perf, void __user *arg)
{
	struct kofi_perf_open *o;
	int ret;

	if (perf->state != PERF_NEW)
		return -EBUSY;
	o = memdup_user(arg, sizeof(*o));
	if (IS_ERR(o))
		return PTR_ERR(o);
	o->prov[KOFI_PERF_NAME_MAX] = 0;
	o->domain[KOFI_PERF_NAME_MAX] = 0;
	ret = perf_check(o);
	if (ret)
		goto free_o;
	perf->opts = *o;
	perf->stage = "memory";
	ret = perf_xfer_alloc(perf);
	if (!ret)
		ret = perf_ep_open(perf, o);
	perf->state = ret ? PERF_FAILED : PERF_OPENED;
	strscpy_pad(o->stage, perf->stage, sizeof(o->stage));
	if (copy_to_user(arg, o, sizeof(*o)))
		ret = -EFAULT;

free_o:
	kfree(o);
	return ret;
}

static int perf_ioctl_join(struct perf *perf, void __user *arg)
{
	struct kofi_perf_join *join;
	int ret;

	if (perf->state < PERF_OPENED || perf->state >= PERF_JOINED)
		return -EBUSY;
	join = memdup_user(arg, sizeof(*join));
	if (IS_ERR(join))
		return PTR_ERR(join);
	ret = -EINVAL;
	if (join->timeout > PERF_WAIT_MAX || !perf_addr_ok(&join->peer))
		goto free_join;
	ret = perf_ep_join(perf, join);
	if (!ret)
		perf->state = PERF_JOINED;
	else if (ret != -ETIMEDOUT && ret != -EINTR)
		perf->state = PERF_FAILED;
	if (!ret && copy_to_user(arg, join, sizeof(*join)))
		ret = -EFAULT;

free_join:
	kfree(join);
	return ret;
}

static int perf_ioctl_start(struct perf *perf, void __user *arg)
{
	struct kofi_perf_start start;
	u64 len = 0;
	u32 i;

	if (perf->state != PERF_JOINED)
		return -EBUSY;
	if (copy_from_user(&start, arg, sizeof(start)))
		return -EFAULT;
	if (start.count > KOFI_PERF_REGIONS || start.pad)
		return -EINVAL;
	for (i = 0; i < start.count; i++) {
		if (start.region[i].len > KOFI_PERF_SIZE_MAX)
			return -EINVAL;
		len += start.region[i].len;
		perf->region[i] = (struct fi_rma_iov) {
			.addr = start.region[i].addr,
			.len = start.region[i].len,
			.key = start.region[i].key,
		};
	}
	perf->n_region = start.count;
	if (perf_initiates(perf) && !perf_is_message(perf) &&
	    len != perf->opts.size)
		return -EINVAL;
	perf->state = PERF_STARTED;
	return perf_xfer_start(perf);
}

static int perf_ioctl_wait(struct perf *perf, void __user *arg)
{
	struct kofi_perf_wait wait;
	long left;

	if (perf->state != PERF_STARTED)
		return -EBUSY;
	if (copy_from_user(&wait, arg, sizeof(wait)))
		return -EFAULT;
	if (wait.timeout > PERF_WAIT_MAX)
		return -EINVAL;
	if (wait.stop)
		perf_xfer_stop(perf);
	left = wait_event_interruptible_timeout(perf->x.wait,
						perf_xfer_over(perf),
						msecs_to_jiffies(wait.timeout));
	if (left < 0)
		return -EINTR;
	perf_xfer_tell(perf, &wait);
	return copy_to_user(arg, &wait, sizeof(wait)) ? -EFAULT : 0;
}

static int perf_ioctl_hist(struct perf *perf, void __user *arg)
{
	if (perf->state != PERF_STARTED || !perf->x.hist ||
	    !perf_xfer_over(perf))
		return -EBUSY;
	return copy_to_user(arg, perf->x.hist, sizeof(*perf->x.hist)) ?
	       -EFAULT : 0;
}

static long perf_ioctl(struct file *file, unsigned int cmd, unsigned long data)
{
	static int (*const calls[])(struct perf *perf, void __user *arg) = {
		[_IOC_NR(KOFI_PERF_OPEN)] = perf_ioctl_open,
		[_IOC_NR(KOFI_PERF_JOIN)] = perf_ioctl_join,
		[_IOC_NR(KOFI_PERF_START)] = perf_ioctl_start,
		[_IOC_NR(KOFI_PERF_WAIT)] = perf_ioctl_wait,
		[_IOC_NR(KOFI_PERF_HIST)] = perf_ioctl_hist,
	};
	struct perf *perf = file->private_data;
	int ret;

	switch (cmd) {
	case KOFI_PERF_OPEN:
	case KOFI_PERF_JOIN:
	case KOFI_PERF_START:
	case KOFI_PERF_WAIT:
	case KOFI_PERF_HIST:
		break;
	default:
		return -ENOTTY;
	}
	if (mutex_lock_interruptible(&perf->mutex))
		return -EINTR;
	ret = calls[_IOC_NR(cmd)](perf, (void __user *)data);
	mutex_unlock(&perf->mutex);
	return ret;
}

static __poll_t perf_poll(struct file *file, poll_table *table)
{
	struct perf *perf = file->private_data;

	poll_wait(file, &perf->x.wait, table);
	return perf_xfer_over(perf) ? EPOLLIN : 0;
}

static const struct file_operations perf_fops = {
	.owner		= THIS_MODULE,
	.open		= perf_open,
	.release	= perf_release,
	.unlocked_ioctl	= perf_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.poll		= perf_poll,
};

/* perf_open() checks the capability in the network namespace. */
static struct miscdevice perf_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= KOFI_PERF_DEVICE,
	.fops	= &perf_fops,
	.mode	= 0600,
};
module_misc_device(perf_device);

MODULE_DESCRIPTION("Measurements of transfers over kOFI");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
