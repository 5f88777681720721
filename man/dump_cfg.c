/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the table of VIADUCT_* variables for the manual page, one per line:
 * name, kind, default, help, separated by tabs.
 */
#include <inttypes.h>
#include <stdio.h>

#include "u_cfg.h"

static void print_kind(const struct u_cfg_entry *e)
{
	switch (e->type) {
	case U_CFG_STRING:
		fputs("text", stdout);
		break;
	case U_CFG_BOOL:
		fputs("yes or no", stdout);
		break;
	case U_CFG_ENUM:
		for (const char *const *word = e->words; *word; word++)
			printf("%s%s", word == e->words ? "" : ", ", *word);
		break;
	case U_CFG_UINT:
	case U_CFG_BYTES:
		printf("%s%" PRIu64 " to %" PRIu64 "%s", e->type == U_CFG_BYTES ? "bytes, " : "",
		       e->min, e->max, e->power_of_two ? ", a power of two" : "");
		break;
	}
}

int main(void)
{
	for (int i = 0; i < U_CFG_COUNT; i++) {
		const struct u_cfg_entry *e = &u_cfg_table[i];

		printf("%s\t", e->name);
		print_kind(e);
		printf("\t%s\t%s\n", e->fallback ? e->fallback : "", e->help);
	}
	return ferror(stdout) ? 1 : 0;
}
