/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <string.h>

#include "sr.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* SplitMix64: a number that looks random for each number. */
static uint64_t mix(uint64_t x)
{
	x += GOLDEN;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

void sr_record_make(uint8_t *record, uint64_t seed, uint64_t number)
{
	uint64_t first = mix(seed ^ mix(number)), second = mix(first), word;
	size_t at;

	memcpy(record, &first, sizeof(first));
	memcpy(record + sizeof(first), &second, SR_KEY - sizeof(first));
	for (at = SR_KEY, word = number; at + sizeof(word) <= SR_RECORD; at += sizeof(word)) {
		memcpy(record + at, &word, sizeof(word));
		word += first;
	}
	memcpy(record + at, &word, SR_RECORD - at);
}

uint64_t sr_record_prefix(const uint8_t *record)
{
	uint64_t prefix;

	memcpy(&prefix, record, sizeof(prefix));
	return be64toh(prefix);
}

unsigned int sr_record_reducer(const uint8_t *record, unsigned int reducers)
{
	return (unsigned int)(((sr_record_prefix(record) >> 32) * reducers) >> 32);
}

void sr_sum_add(struct sr_sum *sum, const uint8_t *record)
{
	uint64_t hash = 0, word = 0;
	size_t at;

	for (at = 0; at + sizeof(word) <= SR_RECORD; at += sizeof(word)) {
		memcpy(&word, record + at, sizeof(word));
		hash = (hash ^ word) * GOLDEN;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, record + at, SR_RECORD - at);
	sum->sum += mix(hash ^ word);
	sum->records++;
}
