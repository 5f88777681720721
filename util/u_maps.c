/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "u_base.h"

#define LINE_BYTES 128 /* enough for addresses and rights; the file's name comes behind them */

/* The next mapping; the rest of its line is passed over. */
static bool next_mapping(FILE *maps, uint64_t *from_out, uint64_t *to_out, char rights[5])
{
	char line[LINE_BYTES];
	int c;

	if (fscanf(maps, "%127[^\n]", line) != 1)
		return false;
	while ((c = getc(maps)) != '\n' && c != EOF)
		;
	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", from_out, to_out, rights) == 3;
}

int u_maps_check(const void *start, uint64_t len, bool *writable_out)
{
	uint64_t at = (uintptr_t)start, end = at + len, from, to;
	FILE *maps = fopen("/proc/self/maps", "re");
	bool writable = true, readable = true;
	char rights[5];

	if (maps == NULL)
		return -errno;
	/* They come in order of their addresses. */
	while (at < end && readable && next_mapping(maps, &from, &to, rights) && from <= at) {
		if (to <= at)
			continue;
		readable = rights[0] == 'r';
		writable = writable && rights[1] == 'w';
		at = u_min64(to, end);
	}
	fclose(maps);
	if (at < end || !readable)
		return -EFAULT;
	*writable_out = writable;
	return 0;
}
