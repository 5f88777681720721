/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pt.h"

static void say(const char *fmt, va_list ap, const char *end)
{
	fputs("vi_port: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputs(end, stderr);
}

int pt_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, "\n");
	va_end(ap);
	return EXIT_FAIL;
}

int pt_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, "; see --help\n");
	va_end(ap);
	return EXIT_USAGE;
}

const char *pt_error(int err)
{
	return strerror(-err);
}

int pt_number(const char *text, uint64_t max, uint64_t *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	char *end;
	unsigned long long v;

	if (hex ? !isxdigit((unsigned char)digits[0]) : !isdigit((unsigned char)digits[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(digits, &end, hex ? 16 : 10);
	if (errno != 0 || *end != '\0' || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}
