/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the offsets and sizes on which Java relies, for the jar.
 */
#include "jn_layout.h"
#include <stdio.h>

int main(void)
{
	char text[8192];

	if (jn_layout_print(text, sizeof(text)) != 0)
		return 1;
	return fputs(text, stdout) == EOF || fflush(stdout) == EOF;
}
