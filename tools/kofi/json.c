// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * JSON as the commands print it: two spaces per level, a member per line, or a
 * document per line. A document is kept until it is complete, so that after a
 * failure there is another one, which states it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kofi.h"

#define EXACT_MAX	((1ULL << 53) - 1)	/* of parsers that take a double */

static enum {
	JSON_OFF,
	JSON_PART,		/* of a document, or nothing yet */
	JSON_WHOLE,
} json_state;

static bool json_one_line;
static unsigned int json_depth;
static bool json_comma;
static FILE *json_to;		/* memory */
static char *json_buf;
static size_t json_size;

static void json_reset(void)
{
	if (json_to)
		fclose(json_to);
	free(json_buf);
	json_buf = NULL;
	json_to = open_memstream(&json_buf, &json_size);
	if (!json_to) {
		error("out of memory");
		exit(EXIT_FAILED);
	}
	json_depth = 0;
	json_comma = false;
}

void json_start(void)
{
	if (json_state == JSON_OFF)
		json_reset();
	json_state = JSON_PART;
}

void json_lines(void)
{
	json_one_line = true;
}

/* Names are bytes to the kernel; those beyond ASCII stay visible as such. */
static void json_text(const char *s)
{
	putc('"', json_to);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(json_to, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(json_to, "\\u%04x", c);
		else
			putc(c, json_to);
	}
	putc('"', json_to);
}

static void json_line(void)
{
	if (!json_one_line)
		fprintf(json_to, "\n%*s", (int)json_depth * 2, "");
}

/* Everything before a value: the comma of the one before, the line, the key. */
static void json_begin(const char *key)
{
	json_start();
	if (json_comma)
		putc(',', json_to);
	if (json_depth)
		json_line();
	if (key) {
		json_text(key);
		fputs(": ", json_to);
	}
	json_comma = true;
}

void json_open(const char *key, char bracket)
{
	json_begin(key);
	putc(bracket, json_to);
	json_depth++;
	json_comma = false;
}

void json_close(char bracket)
{
	json_depth--;
	if (json_comma)
		json_line();
	putc(bracket, json_to);
	json_comma = true;
}

void json_string(const char *key, const char *value)
{
	json_begin(key);
	if (value)
		json_text(value);
	else
		fputs("null", json_to);
}

void json_number(const char *key, uint64_t value)
{
	json_begin(key);
	fprintf(json_to, value > EXACT_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}

void json_real(const char *key, double value)
{
	json_begin(key);
	fprintf(json_to, "%.3f", value);
}

void json_hex(const char *key, uint64_t value)
{
	json_begin(key);
	fprintf(json_to, "\"0x%" PRIx64 "\"", value);
}

void json_failure(void)
{
	json_string("error", last_error());
	json_number("exit_code", EXIT_FAILED);
}

void json_end(void)
{
	putc('\n', json_to);
	fflush(json_to);
	fwrite(json_buf, 1, json_size, stdout);
	fflush(stdout);
	json_reset();
	json_state = JSON_WHOLE;
}

void json_finish(int ret)
{
	if (json_state != JSON_PART || ret != EXIT_FAILED)
		return;
	json_reset();
	json_open(NULL, '{');
	json_failure();
	json_close('}');
	json_end();
}
