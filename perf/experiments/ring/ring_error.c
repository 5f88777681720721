/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void ring_print_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}
