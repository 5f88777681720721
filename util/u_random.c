/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_random.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "u_base.h"
#include "u_time.h"

#define ODD UINT64_C(0x9e3779b97f4a7c15) /* spreads the last bits of a number over all of a word */

/* Fills the bytes with words that follow from the time, which others may guess. */
static void from_clock(unsigned char *out, size_t n)
{
	uint64_t word = (uint64_t)u_now_ns();

	while (n > 0) {
		size_t part = (size_t)u_min64(n, sizeof(word));

		word = (word + 1) * ODD;
		word ^= word >> 32;
		memcpy(out, &word, part);
		out += part;
		n -= part;
	}
}

void u_random(void *out, size_t n)
{
	if (getrandom(out, n, GRND_NONBLOCK) != (ssize_t)n)
		from_clock(out, n);
}
