/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_pattern.h"

#include <string.h>

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t word_of(uint64_t seed, uint64_t i)
{
	return seed + i * UINT64_C(0x9e3779b97f4a7c15);
}

void pf_fill(uint8_t *buf, uint32_t size, uint32_t vi, uint64_t message)
{
	uint64_t seed = mix(message << 8 ^ vi), w;
	uint32_t at, part;

	for (at = 0; at < size; at += part) {
		part = size - at < 8 ? size - at : 8;
		w = word_of(seed, at / 8);
		memcpy(buf + at, &w, part);
	}
}

uint32_t pf_first_wrong(const uint8_t *buf, uint32_t size, uint32_t vi, uint64_t message)
{
	uint64_t seed = mix(message << 8 ^ vi), w;
	uint32_t at, part;

	for (at = 0; at < size; at += part) {
		part = size - at < 8 ? size - at : 8;
		w = word_of(seed, at / 8);
		if (memcmp(buf + at, &w, part))
			return at;
	}
	return size;
}
