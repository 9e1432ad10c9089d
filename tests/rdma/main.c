// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testrdma: an RDMA device that has addresses of its own.
 *
 * The kernel's devices in software, rxe and siw, are given the CPU's addresses:
 * with them, what a consumer maps and unmaps for DMA has no effect. This one
 * stands for hardware. Its memory is what the DMA API has mapped for a platform
 * device, at addresses that are neither virtual nor physical ones, in pieces of
 * at most 256 KiB; where the kernel bounces (swiotlb=force), what has not been
 * mapped, or not yet unmapped, or in the wrong direction, is not there.
 *
 * It speaks iWARP, with itself only, and is as small as a device can be: "rdma
 * link add NAME type dma netdev DEVICE" makes one, which has the addresses of
 * that network device and ignores all else of it. One lock, no wire. Regions may
 * have gaps, unless the module parameter says otherwise. Others give it a second
 * port, and a place on a PCI bus.
 *
 * The network device must not go before the link does.
 */
#include <linux/bits.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/rdma_netlink.h>

#include "testrdma.h"

#define TRD_WINDOW	BIT_ULL(46)	/* where its addresses begin */

static bool gaps = true;
module_param(gaps, bool, 0444);
MODULE_PARM_DESC(gaps, "Regions may have gaps (default Y)");

static unsigned int pages = TRD_PAGES;
module_param(pages, uint, 0444);
MODULE_PARM_DESC(pages, "Pages of a region at most (default "
		 __stringify(TRD_PAGES) ", and not more)");

static char *second;
module_param(second, charp, 0444);
MODULE_PARM_DESC(second, "Network device of a second port (default: none)");

static char *pci;
module_param(pci, charp, 0444);
MODULE_PARM_DESC(pci, "PCI device that has the RDMA device, such as 0000:00:02.0 (default: none)");

static struct platform_device *trd_platform;
static struct device *trd_pci;

static int trd_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	*attr = (struct ib_device_attr) {
		.device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS,
		.kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG |
				    (gaps ? IBK_SG_GAPS_REG : 0),
		.max_mr_size = ~0ULL,
		.page_size_cap = PAGE_SIZE,
		.max_qp = 65536,
		.max_qp_wr = TRD_WRS,
		.max_send_sge = TRD_SGES,
		.max_recv_sge = TRD_SGES,
		.max_sge_rd = 1,
		.max_cq = 65536,
		.max_cqe = 4 * TRD_WRS,
		.max_mr = 65536,
		.max_pd = 65536,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_srq = 65536,
		.max_srq_wr = TRD_WRS,
		.max_srq_sge = TRD_SGES,
		.max_fast_reg_page_list_len = min(pages, TRD_PAGES),
	};
	return 0;
}

static int trd_query_port(struct ib_device *ib, u32 port,
			  struct ib_port_attr *attr)
{
	*attr = (struct ib_port_attr) {
		.state = IB_PORT_ACTIVE,
		.phys_state = IB_PORT_PHYS_STATE_LINK_UP,
		.max_mtu = IB_MTU_4096,
		.active_mtu = IB_MTU_4096,
		.active_width = IB_WIDTH_4X,
		.active_speed = IB_SPEED_EDR,
		.gid_tbl_len = 1,
		.max_msg_sz = SZ_1G,
	};
	return 0;
}

static int trd_get_port_immutable(struct ib_device *ib, u32 port,
				  struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

static int trd_query_gid(struct ib_device *ib, u32 port, int index,
			 union ib_gid *gid)
{
	const u64 guid = be64_to_cpu(ib->node_guid) + port - 1;

	*gid = (union ib_gid) { .global.interface_id = cpu_to_be64(guid) };
	return 0;
}

static int trd_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int trd_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static void trd_dealloc_driver(struct ib_device *ib)
{
	struct trd_dev *dev = trd_dev(ib);

	WARN_ON(!xa_empty(&dev->qps) || !xa_empty(&dev->mrs) ||
		!list_empty(&dev->listeners));
	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
}

/* a protection domain is nothing but itself */
struct trd_pd {
	struct ib_pd	ib;
};

static const struct ib_device_ops trd_ops = {
	.owner			= THIS_MODULE,
	.driver_id		= RDMA_DRIVER_UNKNOWN,

	.alloc_pd		= trd_alloc_pd,
	.dealloc_driver		= trd_dealloc_driver,
	.dealloc_pd		= trd_dealloc_pd,
	.get_port_immutable	= trd_get_port_immutable,
	.query_device		= trd_query_device,
	.query_gid		= trd_query_gid,
	.query_port		= trd_query_port,

	INIT_RDMA_OBJ_SIZE(ib_pd, trd_pd, ib),
};

static int trd_second_port(struct ib_device *ib, struct net *net)
{
	struct net_device *netdev;
	int err;

	if (!second)
		return 0;
	netdev = dev_get_by_name(net, second);
	if (!netdev)
		return -ENODEV;
	err = ib_device_set_netdev(ib, netdev, 2);
	dev_put(netdev);
	return err;
}

static int trd_newlink(const char *name, struct net_device *netdev)
{
	struct trd_dev *dev = ib_alloc_device(trd_dev, ib);
	int err;

	if (!dev)
		return -ENOMEM;
	spin_lock_init(&dev->lock);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&dev->listeners);
	dev->ib.node_type = RDMA_NODE_RNIC;
	dev->ib.phys_port_cnt = second ? 2 : 1;
	dev->ib.dev.parent = trd_pci;
	dev->ib.num_comp_vectors = num_possible_cpus();
	dev->ib.local_dma_lkey = TRD_KEY;
	dev->ib.iw_driver_flags = IW_F_NO_PORT_MAP;
	addrconf_addr_eui48((u8 *)&dev->ib.node_guid, netdev->dev_addr);
	strscpy(dev->ib.iw_ifname, netdev->name);
	ib_set_device_ops(&dev->ib, &trd_ops);
	ib_set_device_ops(&dev->ib, &trd_queue_ops);
	ib_set_device_ops(&dev->ib, &trd_region_ops);
	ib_set_device_ops(&dev->ib, &trd_conn_ops);
	err = ib_device_set_netdev(&dev->ib, netdev, 1) ?:
	      trd_second_port(&dev->ib, dev_net(netdev));
	if (err)
		goto dealloc;
	ib_mark_name_assigned_by_user(&dev->ib);
	err = ib_register_device(&dev->ib, name, &trd_platform->dev);
	if (!err)
		return 0;

dealloc:
	ib_dealloc_device(&dev->ib);
	return err;
}

static struct rdma_link_ops trd_link_ops = {
	.type		= "dma",
	.newlink	= trd_newlink,
};

/* The device memory is mapped for. It frees the table itself. */
static int trd_make_platform(void)
{
	struct platform_device *pdev;
	struct bus_dma_region *map;
	int err;

	map = kcalloc(2, sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	map->dma_start = TRD_WINDOW;
	map->size = TRD_WINDOW;
	pdev = platform_device_register_simple("kofi_testrdma",
					       PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pdev)) {
		kfree(map);
		return PTR_ERR(pdev);
	}
	pdev->dev.dma_range_map = map;
	dma_set_max_seg_size(&pdev->dev, SZ_256K);
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err) {
		platform_device_unregister(pdev);
		return err;
	}
	trd_platform = pdev;
	return 0;
}

/* The device's place in the machine: its memory is the platform device's all the same. */
static int trd_find_pci(void)
{
#ifdef CONFIG_PCI
	if (pci)
		trd_pci = bus_find_device_by_name(&pci_bus_type, NULL, pci);
#endif
	return pci && !trd_pci ? -ENODEV : 0;
}

static int __init trd_init(void)
{
	int err = trd_find_pci();

	if (err)
		return err;
	err = trd_make_platform();
	if (err)
		put_device(trd_pci);
	else
		rdma_link_register(&trd_link_ops);
	return err;
}

static void __exit trd_exit(void)
{
	rdma_link_unregister(&trd_link_ops);
	ib_unregister_driver(RDMA_DRIVER_UNKNOWN);
	platform_device_unregister(trd_platform);
	put_device(trd_pci);
}

module_init(trd_init);
module_exit(trd_exit);

MODULE_DESCRIPTION("kOFI: an RDMA device for tests, with addresses of its own");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("dma");
