/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pt.h"

void pt_pattern(void *buf, size_t len, uint32_t seed)
{
	unsigned char *to = buf;

	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t v = (at + 1 + ((uint64_t)seed << 32)) * UINT64_C(0x9e3779b97f4a7c15);

		v ^= v >> 31;
		memcpy(to + at, &v, u_min64(sizeof(v), len - at));
	}
}

int pt_verify(const void *buf, size_t len, uint32_t seed, size_t *wrong_out, size_t *first_out)
{
	const unsigned char *found = buf;
	unsigned char *wanted = malloc(len);
	size_t wrong = 0, first = 0;

	if (wanted == NULL)
		return -ENOMEM;
	pt_pattern(wanted, len, seed);
	for (size_t i = 0; i < len; i++) {
		if (found[i] == wanted[i])
			continue;
		if (wrong++ == 0)
			first = i;
	}
	free(wanted);
	*wrong_out = wrong;
	*first_out = first;
	return 0;
}
