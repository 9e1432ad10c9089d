// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-porting: the client of Documentation/porting.rst in user space, with kofi_testporting
 * as its server.
 */
#include "page_user_porting.c"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const char text[] = "the length of this sentence";
	char reply[sizeof(text)] = "";
	struct client c;
	ssize_t ret;

	if (argc != 3) {
		fprintf(stderr, "usage: kofi-porting ADDRESS PORT\n");
		return 2;
	}
	ret = client_open(&c, argv[1], argv[2]);
	if (!ret) {
		ret = ask(&c, text, sizeof(text), reply, sizeof(reply));
		client_close(&c);
	}
	if (ret < 0) {
		fprintf(stderr, "kofi-porting: %s\n", fi_strerror(-ret));
		return 1;
	}
	return ret != sizeof(text) || memcmp(text, reply, sizeof(text));
}
