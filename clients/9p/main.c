// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transports for mount(8): one for each provider of kOFI, because newer kernels
 * do not pass unknown options to a transport. Loaded on demand, by the aliases.
 */
#include <linux/array_size.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/kofi/version.h>

#include "backport.h"
#include "kofi_9p.h"

#define K9_NAME		"kofi-"

static int k9_create(struct p9_client *client, struct fs_context *fc)
{
	const struct v9fs_context *ctx = fc->fs_private;

	return k9_conn_open(client, client->trans_mod->name + strlen(K9_NAME),
			    fc->source, ctx->rdma_opts.port,
			    ctx->rdma_opts.rq_depth);
}

static int k9_show_options(struct seq_file *m, struct p9_client *client)
{
	struct k9_conn *c = client->trans;

	if (c->port != P9_RDMA_PORT)
		seq_printf(m, ",port=%u", c->port);
	if (c->rq != P9_RDMA_RQ_DEPTH)
		seq_printf(m, ",rq=%u", c->rq);
	return 0;
}

static char *k9_names[] = { K9_NAME "sock", K9_NAME "verbs" };
static struct p9_trans_module k9_transports[ARRAY_SIZE(k9_names)];

static const struct p9_trans_module k9_transport = {
	.maxsize	= K9_MSIZE_MAX,
	.owner		= THIS_MODULE,
	.create		= k9_create_mount,
	.close		= k9_conn_close,
	.request	= k9_request,
	.zc_request	= k9_zc_request,
	.cancel		= k9_cancel,
	.show_options	= k9_show_options,
};

static int __init k9_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(k9_transports); i++) {
		k9_transports[i] = k9_transport;
		k9_transports[i].name = k9_names[i];
		v9fs_register_trans(&k9_transports[i]);
	}
	return 0;
}

/* Every mount holds a reference to this module, so none uses the transports. */
static void __exit k9_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(k9_transports); i++)
		v9fs_unregister_trans(&k9_transports[i]);
}

module_init(k9_init);
module_exit(k9_exit);
MODULE_ALIAS_9P("kofi-sock");
MODULE_ALIAS_9P("kofi-verbs");
MODULE_DESCRIPTION("9P over kernel libfabric");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);
