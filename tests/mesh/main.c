// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testmesh.ko: the members of a mesh that are in this machine. Loading the module
 * is their whole run, if addresses are given; it stays loaded if that was as it should
 * be, with the endpoints open until it is removed. Without any it is for the unit test.
 */
#include <linux/module.h>

#include "mesh.h"

static char *prov = "sock";
module_param(prov, charp, 0444);
MODULE_PARM_DESC(prov, "Provider (default: sock)");

static char *device = "eth0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "Its device (default: eth0)");

static char *hosts[MESH_MACHINES];
static unsigned int machines;
module_param_array(hosts, charp, &machines, 0444);
MODULE_PARM_DESC(hosts, "Addresses of the machines; without any nothing is done");

static unsigned int here;
module_param(here, uint, 0444);
MODULE_PARM_DESC(here, "Which of them this one is (default: 0)");

static unsigned int posts = 400;
module_param(posts, uint, 0444);
MODULE_PARM_DESC(posts, "Operations of this machine's members, at least (default: 400)");

static unsigned int ms = 4000;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "How long they post, at least, in milliseconds (default: 4000)");

static unsigned int close_ms = 1000;
module_param(close_ms, uint, 0444);
MODULE_PARM_DESC(close_ms, "Between closes of the last member, in milliseconds (default: 1000)");

static unsigned int deaths;
module_param(deaths, uint, 0444);
MODULE_PARM_DESC(deaths, "How often the last member's machine is switched off and on (default: 0)");

static unsigned int life;
module_param(life, uint, 0444);
MODULE_PARM_DESC(life, "How often this one has been (default: 0)");

static bool stop;
module_param(stop, bool, 0644);
MODULE_PARM_DESC(stop, "Set it while they post, and they post no more");

static unsigned int slow = 1;
module_param(slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default: 1)");

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "What chance begins with (default: another each time, which is printed)");

static unsigned int room;
module_param(room, uint, 0444);
MODULE_PARM_DESC(room, "KiB of memory that may be in use in addition (default: any)");

static struct mesh *mesh;

static int __init mesh_init(void)
{
	struct mesh_opts opts = {
		.prov = prov, .device = device, .machines = machines,
		.here = here, .posts = posts, .ms = ms,
		.close_ms = max(close_ms, 1U), .limit_ms = 60000 * slow,
		.deaths = deaths, .life = life, .stop = &stop,
		.seed = seed ?: get_random_u32(), .room = room,
	};
	int err;

	if (!machines)
		return 0;
	if (here >= machines)
		return -EINVAL;
	memcpy(opts.hosts, hosts, sizeof(opts.hosts));
	mesh = mesh_open(&opts, &err);
	if (!mesh) {
		pr_err("kofi_testmesh: opening: error %d\n", err);
		return err;
	}
	err = mesh_run(mesh);
	pr_info("kofi_testmesh: seed=%u: %u messages (%u early), %u accesses, %u added, %u errors, %u closes; %lld KiB more in use at most\n",
		opts.seed, mesh->messages, mesh->early, mesh->accesses, mesh->atomics,
		mesh->errors, mesh->closes, mesh_used(mesh));
	if (err) {
		pr_err("kofi_testmesh: %s\n", mesh->why);
		mesh_close(mesh);
	}
	return err;
}
module_init(mesh_init);

static void __exit mesh_exit(void)
{
	if (mesh)
		mesh_close(mesh);
}
module_exit(mesh_exit);

MODULE_DESCRIPTION("A mesh of endpoints in several machines, for tests");
MODULE_LICENSE("Dual BSD/GPL");
