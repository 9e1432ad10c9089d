// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network interface of an fi_info: names and versions of the device, its
 * bus address, and the link of the port
 */
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "verbs.h"

static size_t vrb_nic_speed(const struct ib_port_attr *attr)
{
	static const struct {
		u16	speed;
		u32	mbits;	/* Mbit/s of one lane */
	} lanes[] = {
		{ IB_SPEED_SDR, 2500 }, { IB_SPEED_DDR, 5000 },
		{ IB_SPEED_QDR, 10000 }, { IB_SPEED_FDR10, 10000 },
		{ IB_SPEED_FDR, 14000 }, { IB_SPEED_EDR, 25000 },
		{ IB_SPEED_HDR, 50000 }, { IB_SPEED_NDR, 100000 },
		{ IB_SPEED_XDR, 200000 },
	};
	int width = ib_width_enum_to_int(attr->active_width);
	int i;

	for (i = 0; i < ARRAY_SIZE(lanes); i++)
		if (lanes[i].speed == attr->active_speed && width > 0)
			return (size_t)lanes[i].mbits * width * 1000000;
	return 0;
}

static void vrb_nic_bus(struct fi_bus_attr *bus, struct ib_device *ib)
{
	struct device *dev = ib->dev.parent;
	struct pci_dev *pci;

	if (!dev || !dev_is_pci(dev))
		return;
	pci = to_pci_dev(dev);
	bus->bus_type = FI_BUS_PCI;
	bus->attr.pci = (struct fi_pci_attr) {
		.domain_id = pci_domain_nr(pci->bus),
		.bus_id = pci->bus->number,
		.device_id = PCI_SLOT(pci->devfn),
		.function_id = PCI_FUNC(pci->devfn),
	};
}

/**
 * vrb_nic_name - copy a device's name
 * @ib: the device
 *
 * A rename of the device may free dev_name() at any time.
 *
 * Context: process, may sleep.
 * Return: the name, to be freed, or NULL.
 */
char *vrb_nic_name(const struct ib_device *ib)
{
	return kstrndup(ib->name, sizeof(ib->name) - 1, GFP_KERNEL);
}

static int vrb_nic_device(struct fi_device_attr *attr, struct ib_device *ib)
{
	struct device_driver *driver = ib->dev.parent ? ib->dev.parent->driver :
							NULL;
	char *fw;

	attr->name = vrb_nic_name(ib);
	attr->device_id = kasprintf(GFP_KERNEL, "0x%04x",
				    ib->attrs.vendor_part_id);
	attr->device_version = kasprintf(GFP_KERNEL, "%u", ib->attrs.hw_ver);
	attr->vendor_id = kasprintf(GFP_KERNEL, "0x%04x", ib->attrs.vendor_id);
	/* software devices have only a module, no device driver */
	if (driver)
		attr->driver = kstrdup(driver->name, GFP_KERNEL);
	else if (ib->ops.owner)
		attr->driver = kstrdup(module_name(ib->ops.owner), GFP_KERNEL);
	fw = kzalloc(IB_FW_VERSION_NAME_MAX, GFP_KERNEL);
	if (!fw)
		return -ENOMEM;
	attr->firmware = fw;
	ib_get_device_fw_str(ib, fw);
	return attr->name && attr->device_id && attr->device_version &&
	       attr->vendor_id ? 0 : -ENOMEM;
}

static int vrb_nic_link(struct fi_link_attr *link, struct ib_device *ib,
			u32 port)
{
	struct ib_port_attr attr;
	union ib_gid gid;
	int err;

	err = ib_query_port(ib, port, &attr);
	if (err)
		return err;
	link->mtu = ib_mtu_enum_to_int(attr.active_mtu);
	link->speed = vrb_nic_speed(&attr);
	link->state = attr.state == IB_PORT_ACTIVE ? FI_LINK_UP : FI_LINK_DOWN;
	link->network_type =
		kstrdup(rdma_port_get_link_layer(ib, port) ==
			IB_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet",
			GFP_KERNEL);
	if (!link->network_type)
		return -ENOMEM;
	if (rdma_query_gid(ib, port, 0, &gid))
		return 0;
	link->address = kasprintf(GFP_KERNEL, "%pI6", &gid);
	return link->address ? 0 : -ENOMEM;
}

/**
 * vrb_nic_fill - describe device and port in an info
 * @info: the info, which frees everything allocated here, also after an error
 * @ib: the device
 * @port: port of the device
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or the error of querying the port.
 */
int vrb_nic_fill(struct fi_info *info, struct ib_device *ib, u32 port)
{
	struct fid_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	if (!nic)
		return -ENOMEM;
	nic->fid.fclass = FI_CLASS_NIC;
	info->nic = nic;
	nic->device_attr = kzalloc(sizeof(*nic->device_attr), GFP_KERNEL);
	nic->bus_attr = kzalloc(sizeof(*nic->bus_attr), GFP_KERNEL);
	nic->link_attr = kzalloc(sizeof(*nic->link_attr), GFP_KERNEL);
	if (!nic->device_attr || !nic->bus_attr || !nic->link_attr)
		return -ENOMEM;
	vrb_nic_bus(nic->bus_attr, ib);
	return vrb_nic_device(nic->device_attr, ib) ? :
	       vrb_nic_link(nic->link_attr, ib, port);
}
