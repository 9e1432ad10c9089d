// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testporting.ko: the clients of Documentation/porting.rst that run in the kernel, and
 * the exchange of README.md. Writing an address to parameter kofi or ib runs a client, whose
 * error is that of the write. Parameter serve starts a server at an address, or stops it if
 * that is empty.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "server.h"
#include "page_readme_0.c"
#include "page_porting.c"
#if IS_ENABLED(CONFIG_INFINIBAND_ADDR_TRANS)
#include "page_porting_ib.c"
#endif

#define PORT	"7474"
#define TIMES	10

static bool serving;

static int compared(ssize_t got, const char *request, size_t len, const char *reply)
{
	if (got < 0)
		return got;
	return got == len && !memcmp(request, reply, len) ? 0 : -EPROTO;
}

static int over_kofi(const char *node, char *request, char *reply, size_t len)
{
	struct client c;
	int ret, i;

	ret = client_open(&c, node, PORT);
	if (ret)
		return ret;
	for (i = 0; i < TIMES && !ret; i++) {
		memset(reply, 0, len);
		ret = compared(ask(c.ep, request, len, reply, len), request, len, reply);
	}
	client_close(&c);
	return ret;
}

static int over_ib(const char *node, char *request, char *reply, size_t len)
{
#if IS_ENABLED(CONFIG_INFINIBAND_ADDR_TRANS)
	struct ib_client_conn c;
	int ret, i;

	ret = conn_open(&c, node, PORT);
	if (ret)
		return ret;
	for (i = 0; i < TIMES && !ret; i++) {
		memset(reply, 0, len);
		ret = compared(ib_ask(&c, request, len, reply, len), request, len, reply);
	}
	conn_close(&c);
	return ret;
#else
	return -EOPNOTSUPP;
#endif
}

static int run(const char *val, int (*client)(const char *, char *, char *, size_t))
{
	static const char text[] = "the length of this sentence";
	char *request = kmemdup(text, sizeof(text), GFP_KERNEL);
	char *reply = kzalloc(sizeof(text), GFP_KERNEL);
	char *node = kstrdup(val, GFP_KERNEL);
	int ret = -ENOMEM;

	if (request && reply && node)
		ret = client(strim(node), request, reply, sizeof(text));
	kfree(request);
	kfree(reply);
	kfree(node);
	return ret;
}

static int kofi_set(const char *val, const struct kernel_param *kp)
{
	return run(val, over_kofi);
}

static const struct kernel_param_ops kofi_ops = { .set = kofi_set };
module_param_cb(kofi, &kofi_ops, NULL, 0200);
MODULE_PARM_DESC(kofi, "Run the client over kOFI, to this address");

static int ib_set(const char *val, const struct kernel_param *kp)
{
	return run(val, over_ib);
}

static const struct kernel_param_ops ib_ops = { .set = ib_set };
module_param_cb(ib, &ib_ops, NULL, 0200);
MODULE_PARM_DESC(ib, "Run the client over ib_core, to this address");

static void stop(void)
{
	if (serving)
		server_stop();
	serving = false;
}

static int serve_set(const char *val, const struct kernel_param *kp)
{
	char *node = kstrdup(val, GFP_KERNEL);
	int ret = node ? 0 : -ENOMEM;

	stop();
	if (!ret && *strim(node)) {
		ret = server_start(strim(node), PORT);
		serving = !ret;
	}
	kfree(node);
	return ret;
}

static const struct kernel_param_ops serve_ops = { .set = serve_set };
module_param_cb(serve, &serve_ops, NULL, 0200);
MODULE_PARM_DESC(serve, "Serve at this address");

static int __init porting_init(void)
{
	return 0;
}
module_init(porting_init);

static void __exit porting_exit(void)
{
	stop();
}
module_exit(porting_exit);

MODULE_DESCRIPTION("Test of kOFI: the clients of the page on porting");
MODULE_LICENSE("Dual BSD/GPL");
