/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "boot.h"
#include "osh_base.h"

static char who[24];

void osh_say_pe(int pe)
{
	snprintf(who, sizeof(who), "PE %d: ", pe);
}

/* Writes the text up to its first '\n', cut to what fits, without a '\n'. */
static void format(char line[BOOT_TEXT_MAX], const char *fmt, va_list args)
{
	vsnprintf(line, BOOT_TEXT_MAX, fmt, args);
	line[strcspn(line, "\n")] = '\0';
}

void osh_warn(const char *fmt, ...)
{
	char line[BOOT_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	format(line, fmt, args);
	va_end(args);
	fprintf(stderr, "shmem: %s%s\n", who, line);
}

void osh_end(bool lost, const char *fmt, ...)
{
	char line[BOOT_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	format(line, fmt, args);
	va_end(args);
	if (lost)
		boot_abort_lost(1, line);
	boot_abort(1, line);
}

void osh_check_local(const char *fn, const void *local)
{
	if (osh_unlikely(local == NULL))
		osh_fatal("%s: the memory here that it reads or writes is NULL", fn);
}
