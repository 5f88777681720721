/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "fab_say.h"

int U_PRINTF(1, 2) fab_fail(const char *fmt, ...)
{
	va_list ap;

	fputs("vi_fabric: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FAIL;
}

int U_PRINTF(1, 2) fab_usage(const char *fmt, ...)
{
	va_list ap;

	fputs("vi_fabric: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("; try vi_fabric --help\n", stderr);
	return EXIT_USAGE;
}
