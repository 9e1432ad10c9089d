// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-atomic-peer listen|connect ADDRESS [port=NUMBER] [contexts=NUMBER] [prov=NAME]
 *
 * The program's side of tests/atomic, over libfabric's tcp;ofi_rxm unless told
 * otherwise.
 */
#include <stdarg.h>
#include <stdio.h>

#include "../../atomic/atomic.h"

void at_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

int at_fault(int err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return 0;
	fprintf(stderr, "kofi-atomic-peer: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, ": %s (%d)\n", fi_strerror(-err), err);
	return err;
}

int main(int argc, char **argv)
{
	struct at_opts opts = { .port = AT_PORT, .prov = "tcp;ofi_rxm" };
	int i;

	if (argc < 3 || (strcmp(argv[1], "listen") &&
			 strcmp(argv[1], "connect"))) {
		fprintf(stderr,
			"usage: %s listen|connect ADDRESS [port=NUMBER] [contexts=NUMBER] [prov=NAME]\n",
			argv[0]);
		return 2;
	}
	opts.server = !strcmp(argv[1], "listen");
	opts.node = argv[2];
	for (i = 3; i < argc; i++) {
		if (!strncmp(argv[i], "prov=", 5)) {
			opts.prov = argv[i] + 5;
			continue;
		}
		if (sscanf(argv[i], "port=%u", &opts.port) != 1 &&
		    sscanf(argv[i], "contexts=%u", &opts.contexts) != 1) {
			fprintf(stderr, "unknown: %s\n", argv[i]);
			return 2;
		}
	}
	if (opts.contexts > AT_MAX_CONTEXTS)
		return 2;
	return at_run(&opts) ? 1 : 0;
}
