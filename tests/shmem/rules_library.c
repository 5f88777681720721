/* SPDX-License-Identifier: BSD-2-Clause */
#include "rules_library.h"

static long data = 5, bss;

long *library_data(void)
{
	return &data;
}

long *library_bss(void)
{
	return &bss;
}
