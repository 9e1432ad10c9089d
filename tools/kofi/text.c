// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Numbers as fabtests and fi_pingpong write them, and error codes in words. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kofi.h"

const char *size_text(char *buf, size_t len, uint64_t size)
{
	static const char units[] = "kmg";
	uint64_t base = 1, tenths;
	char unit[2] = "";
	int i;

	for (i = 0; units[i] && size / base >= 1024; i++) {
		base *= 1024;
		unit[0] = units[i];
	}
	tenths = size / base < 10 ? size % base * 10 / base : 0;
	if (tenths)
		snprintf(buf, len, "%" PRIu64 ".%" PRIu64 "%s", size / base,
			 tenths, unit);
	else
		snprintf(buf, len, "%" PRIu64 "%s", size / base, unit);
	return buf;
}

const char *count_text(char *buf, size_t len, uint64_t count)
{
	static const char units[] = "kmb";
	char unit[2] = "";
	int i;

	for (i = 0; units[i] && count >= 1000; i++) {
		count /= 1000;
		unit[0] = units[i];
	}
	snprintf(buf, len, "%" PRIu64 "%s", count, unit);
	return buf;
}

void short_name(char *buf, size_t size, const struct kofi_name *names,
		const char *prefix, uint64_t value)
{
	const char *name = kofi_name_of(names, value);
	size_t i;

	if (!name) {
		snprintf(buf, size, "%" PRIu64, value);
		return;
	}
	snprintf(buf, size, "%s", name + strlen(prefix));
	for (i = 0; buf[i]; i++)
		buf[i] = tolower((unsigned char)buf[i]);
}

const char *errno_text(int err)
{
	unsigned int e = err < 0 ? -err : err;

	if (e >= FI_ERRNO_OFFSET && e < FI_ERRNO_MAX)
		return kofi_errno_fabric[e - FI_ERRNO_OFFSET];
	return strerror(e);
}
