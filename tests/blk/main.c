// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module: its parameters say what this machine is, a server, a client, or
 * both.
 */
#include <linux/module.h>

#include "testblk.h"

#define TB_DISKS	4

static char *tb_listen = "";
module_param_named(listen, tb_listen, charp, 0444);
MODULE_PARM_DESC(listen, "Address to serve disks at (default: none, no server)");

static char *tb_connect = "";
module_param_named(connect, tb_connect, charp, 0444);
MODULE_PARM_DESC(connect, "Address of the server (default: none, no disks)");

static unsigned int tb_mib[TB_DISKS];
static unsigned int tb_disks;
module_param_array_named(mib, tb_mib, uint, &tb_disks, 0444);
MODULE_PARM_DESC(mib, "Sizes of the disks kofiblk0, kofiblk1, ... in MiB");

static unsigned int tb_lack[TB_DISKS];
module_param_array_named(lack, tb_lack, uint, NULL, 0444);
MODULE_PARM_DESC(lack, "MiB at the end of each that the server does not have");

static bool tb_sleepy[TB_DISKS];
module_param_array_named(sleepy, tb_sleepy, bool, NULL, 0444);
MODULE_PARM_DESC(sleepy, "Completions of each in work items, not softirqs");

char *tb_provider = "sock";
module_param_named(provider, tb_provider, charp, 0444);
MODULE_PARM_DESC(provider, "Whose endpoints (default: sock)");

bool tb_safe = true;
module_param_named(safe, tb_safe, bool, 0444);
MODULE_PARM_DESC(safe, "Reclaim-safe endpoints (default: yes)");

static int __init tb_init(void)
{
	unsigned int i;
	int err = 0;

	if (*tb_listen)
		err = tb_server_open(tb_listen);
	for (i = 0; *tb_connect && i < tb_disks && !err; i++) {
		const struct tb_spec spec = {
			.mib = tb_mib[i],
			.lack = tb_lack[i],
			.sleepy = tb_sleepy[i],
		};

		err = spec.lack < spec.mib ? tb_disk_open(tb_connect, &spec) :
					     -EINVAL;
	}
	if (err) {
		tb_disks_close();
		tb_server_close();
	}
	return err;
}

static void __exit tb_exit(void)
{
	tb_disks_close();
	tb_server_close();
}

module_init(tb_init);
module_exit(tb_exit);

MODULE_DESCRIPTION("kOFI: a block device for tests");
MODULE_LICENSE("Dual BSD/GPL");
