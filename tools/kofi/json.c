// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * JSON as the commands print it: two spaces per level, a member per line. The
 * only state is how deep it is and whether a comma is due.
 */
#include <inttypes.h>
#include <stdio.h>

#include "kofi.h"

static unsigned int json_depth;
static bool json_comma;

/* Names are bytes to the kernel; those beyond ASCII stay visible as such. */
static void json_text(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

/* Everything before a value: the comma of the one before, the line, the key. */
static void json_begin(const char *key)
{
	if (json_comma)
		putchar(',');
	if (json_depth)
		printf("\n%*s", (int)json_depth * 2, "");
	if (key) {
		json_text(key);
		fputs(": ", stdout);
	}
	json_comma = true;
}

void json_open(const char *key, char bracket)
{
	json_begin(key);
	putchar(bracket);
	json_depth++;
	json_comma = false;
}

void json_close(char bracket)
{
	json_depth--;
	if (json_comma)
		printf("\n%*s", (int)json_depth * 2, "");
	putchar(bracket);
	json_comma = true;
}

void json_string(const char *key, const char *value)
{
	json_begin(key);
	if (value)
		json_text(value);
	else
		fputs("null", stdout);
}

void json_number(const char *key, uint64_t value)
{
	json_begin(key);
	printf("%" PRIu64, value);
}

void json_hex(const char *key, uint64_t value)
{
	json_begin(key);
	printf("\"0x%" PRIx64 "\"", value);
}

void json_end(void)
{
	putchar('\n');
	json_comma = false;
}

void json_nothing(void)
{
	json_open(NULL, '[');
	json_close(']');
	json_end();
}
