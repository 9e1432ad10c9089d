// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Values that no output shows on every machine; json.sh compares their form. */
#include <stdio.h>

#include "../kofi.h"

void error(const char *fmt, ...)
{
	fprintf(stderr, "%s\n", fmt);
}

const char *last_error(void)
{
	return "said";
}

int main(void)
{
	json_start();
	json_lines();
	json_open(NULL, '{');
	json_number("exact", (1ULL << 53) - 1);
	json_number("large", 1ULL << 53);
	json_number("largest", UINT64_MAX);
	json_real("real", -1.5);
	json_hex("hex", 255);
	json_string("text", "\"\\\n\xc3");
	json_string("null", NULL);
	json_close('}');
	json_end();
	/* the failure replaces an incomplete document */
	json_open(NULL, '[');
	json_number(NULL, 1);
	json_finish(EXIT_FAILED);
	return 0;
}
