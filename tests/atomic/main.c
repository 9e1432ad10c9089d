// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testatomic.ko: the kernel's side. Loading the module is the whole run; it
 * stays loaded if that was as it should be.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/stdarg.h>

#include "atomic.h"

static char *at_connect = "";
module_param_named(connect, at_connect, charp, 0444);
MODULE_PARM_DESC(connect, "Address of the server (default: none, no client)");

static char *at_serve = "";
module_param_named(listen, at_serve, charp, 0444);
MODULE_PARM_DESC(listen, "Address to serve one client at (default: none, no server)");

static unsigned int at_port = AT_PORT;
module_param_named(port, at_port, uint, 0444);
MODULE_PARM_DESC(port, "Port of the server (default: 7475)");

static unsigned int at_contexts;
module_param_named(contexts, at_contexts, uint, 0444);
MODULE_PARM_DESC(contexts, "Contexts of the server's endpoint (default: 0, not a scalable one)");

static char *at_prov = "sock;ofi_rxm";
module_param_named(prov, at_prov, charp, 0444);
MODULE_PARM_DESC(prov, "Provider (default: sock;ofi_rxm)");

void at_say(const char *fmt, ...)
{
	struct va_format line = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	line.va = &args;
	pr_info("kofi_testatomic: %pV\n", &line);
	va_end(args);
}

int at_fault(int err, const char *fmt, ...)
{
	struct va_format line = { .fmt = fmt };
	va_list args;

	if (!err)
		return 0;
	va_start(args, fmt);
	line.va = &args;
	pr_err("kofi_testatomic: %pV: error %d\n", &line, err);
	va_end(args);
	return err;
}

static int __init at_init(void)
{
	struct at_opts opts = {
		.node = at_connect, .port = at_port, .prov = at_prov,
		.contexts = at_contexts,
	};
	int ret = 0;

	if (at_contexts > AT_MAX_CONTEXTS)
		return -EINVAL;
	if (*at_connect)
		ret = at_run(&opts);
	opts.node = at_serve;
	opts.server = true;
	if (*at_serve && !ret)
		ret = at_run(&opts);
	return ret;
}
module_init(at_init);

static void __exit at_exit(void)
{
}
module_exit(at_exit);

MODULE_DESCRIPTION("Atomic operations with a program, for tests");
MODULE_LICENSE("Dual BSD/GPL");
