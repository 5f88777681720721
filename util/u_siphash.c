/* SPDX-License-Identifier: BSD-2-Clause */
/* After Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). */
#include "u_siphash.h"

/* Returns `len` bytes, at most 8, as a word, the first byte lowest. */
static uint64_t word_of(const uint8_t *from, size_t len)
{
	uint64_t word = 0;

	while (len-- > 0)
		word = word << 8 | from[len];
	return word;
}

static uint64_t rotated(uint64_t x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

/* Makes `count` rounds of SipHash on the state. */
static void rounds(uint64_t v[4], unsigned int count)
{
	while (count-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotated(v[1], 13) ^ v[0];
		v[3] = rotated(v[3], 16) ^ v[2];
		v[0] = rotated(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotated(v[1], 17) ^ v[2];
		v[3] = rotated(v[3], 21) ^ v[0];
		v[2] = rotated(v[2], 32);
	}
}

/* Takes the next 8 bytes of the data into the state. */
static void take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t u_siphash(const uint8_t key[16], const void *data, size_t len)
{
	uint64_t k0 = word_of(key, 8), k1 = word_of(key + 8, 8);
	uint64_t v[4] = { k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
			  k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573) };
	const uint8_t *at = data;
	size_t left;

	for (left = len; left >= 8; left -= 8, at += 8)
		take(v, word_of(at, 8));
	take(v, (uint64_t)len << 56 | word_of(at, left));
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
