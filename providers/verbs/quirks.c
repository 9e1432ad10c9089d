// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Quirks: behaviour of single drivers that differs from the others.
 *
 * vrb_quirk_table is the only place that identifies drivers. A quirk cannot be
 * detected by the device's attributes, by its protocol or by a refused call.
 * Each entry names the kernel function that shows it. A domain has a copy of
 * its device's quirks, so that the data path tests one bit.
 *
 * Behaviour that several drivers share, or that does no harm elsewhere, is no
 * quirk and is handled for all devices: a work request without segments has no
 * list of them; a work request of length 0 is never inline; a failed work
 * request may complete twice (siw_sq_flush()); a receive may be refused with
 * -ENOTCONN while its queue pair is being connected (siw_post_receive()); a
 * queue pair may fail without a report (rxe_completer(), out of memory);
 * receives of a shared queue that a queue pair has taken may never complete
 * (flush_recv_queue()).
 */
#include <rdma/ib_user_ioctl_verbs.h>

#include "verbs.h"

static const struct {
	enum rdma_driver_id	driver;
	u32			quirk;
} vrb_quirk_table[] = {
	/* Sends and receives through sockets of init_net: rxe_net_init(). */
	{ RDMA_DRIVER_RXE, VRB_QUIRK_INIT_NET },

	/*
	 * Retries forever with a retry count of 7, as for a receiver that is
	 * not ready: rxe_completer().
	 */
	{ RDMA_DRIVER_RXE, VRB_QUIRK_RETRY_EVER },

	/*
	 * The send queue has a size in bytes, and short work requests take
	 * fewer than long ones: mlx5_ib_calc_max_qp_wr() counts the shortest,
	 * calc_sq_size() the requested ones.
	 */
	{ RDMA_DRIVER_MLX5, VRB_QUIRK_SQ_BYTES },

	/*
	 * Connects from the namespace of the calling task, which is a kernel
	 * thread of the connection manager: sock_create() in siw_connect().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_INIT_NET },

	/*
	 * Frees a region while the receive path, in softirq context, may still
	 * be placing bytes into its memory: siw_mr_drop_mem().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_DEREG_RCU },

	/*
	 * Invalidates by the index of a key and ignores its low 8 bits, so a
	 * peer may invalidate a region with an old key: siw_invalidate_stag().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_STALE_KEY },

	/*
	 * Sends an unsignaled work request of a page or more directly from the
	 * memory (use_sendpage in siw_qp_prepare_tx()). TCP may still need that
	 * memory when later work requests have completed.
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_SEND_IN_PLACE },

	/*
	 * Sends wrong bytes in a short read response that crosses a page, as
	 * the offset in the second page is wrong: siw_try_1seg().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_SHORT_READ },

	/*
	 * Takes a read response of length 0 for one that is too long to be
	 * copied, and sends the data of the previous one: siw_try_1seg().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_ZERO_READ },

	/*
	 * Completes a read when the response has arrived, but operations posted
	 * after it when TCP has their data: siw_rdmap_complete(),
	 * siw_qp_sq_proc_tx().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_READ_ORDER },

	/*
	 * Connects without the type of service of the connection's identifier:
	 * siw_connect().
	 */
	{ RDMA_DRIVER_SIW, VRB_QUIRK_NO_TCLASS },
};

/**
 * vrb_quirks - look up the quirks of a device
 * @ib: the device
 *
 * Context: any.
 * Return: VRB_QUIRK_* bits.
 */
u32 vrb_quirks(const struct ib_device *ib)
{
	u32 quirks = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(vrb_quirk_table); i++)
		if (vrb_quirk_table[i].driver == ib->ops.driver_id)
			quirks |= vrb_quirk_table[i].quirk;
	return quirks;
}

/**
 * vrb_dev_access - test whether a network namespace may use a device
 * @ib: the device
 * @net: the namespace; NULL for any
 *
 * Context: any.
 * Return: true if it may.
 */
bool vrb_dev_access(const struct ib_device *ib, const struct net *net)
{
	if (vrb_quirks(ib) & VRB_QUIRK_INIT_NET)
		return net == &init_net;
	return rdma_dev_access_netns(ib, net);
}
