/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of Layout.java have the values that the C compiler finds in the headers.  Needs no JDK.
 *
 * usage: java_layout_test Layout.java
 */
#include "jn_layout.h"
#include <stdio.h>
#include <string.h>

static char table[8192];

/* Is "NAME value" a line of the table? */
static int known(const char *name, long value)
{
	char line[128];

	snprintf(line, sizeof(line), "%s %ld\n", name, value);
	for (const char *at = strstr(table, line); at != NULL; at = strstr(at + 1, line))
		if (at == table || at[-1] == '\n')
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	int wrong = 0, constants = 0, lines = 0;
	char line[256], name[64];
	FILE *java;
	long value;

	if (argc != 2 || jn_layout_print(table, sizeof(table)) != 0)
		return 2;
	java = fopen(argv[1], "r");
	if (java == NULL)
		return 2;
	while (fgets(line, sizeof(line), java) != NULL) {
		if (sscanf(line, " public static final int %63[A-Z0-9_] = %ld;", name, &value) != 2)
			continue;
		constants++;
		if (!known(name, value)) {
			printf("%s is %ld in Layout.java, and not in C\n", name, value);
			wrong++;
		}
	}
	fclose(java);
	for (const char *at = table; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	if (constants != lines)
		printf("%d constants in Layout.java, %d in C\n", constants, lines);
	return wrong != 0 || constants == 0 || constants != lines;
}
