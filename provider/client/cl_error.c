/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "cl_priv.h"

void cl_error(char *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, CL_ERROR_MAX, fmt, ap);
	va_end(ap);
}
