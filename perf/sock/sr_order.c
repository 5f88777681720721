/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "sb.h"
#include "sr.h"

struct entry {
	uint64_t prefix;
	const uint8_t *record;
};

struct sr_chunk *sr_chunk_add(struct sr_chunk **list)
{
	struct sr_chunk *chunk = malloc(sizeof(*chunk) + SR_CHUNK);

	if (!chunk)
		sb_fail("memory for records");
	chunk->next = *list;
	chunk->have = 0;
	*list = chunk;
	return chunk;
}

void sr_chunks_free(struct sr_chunk *list)
{
	while (list) {
		struct sr_chunk *next = list->next;

		free(list);
		list = next;
	}
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->prefix != y->prefix)
		return x->prefix < y->prefix ? -1 : 1;
	return memcmp(x->record, y->record, SR_KEY);
}

static size_t count_records(const struct sr_chunk *list)
{
	size_t records = 0;

	for (; list; list = list->next) {
		if (list->have % SR_RECORD)
			sb_refuse("a record that is not whole");
		records += list->have / SR_RECORD;
	}
	return records;
}

static struct entry *entries_of(const struct sr_chunk *list, size_t records)
{
	struct entry *all = malloc(records * sizeof(*all) + 1);
	size_t at, n = 0;

	if (!all)
		sb_fail("memory for the order of records");
	for (; list; list = list->next)
		for (at = 0; at < list->have; at += SR_RECORD)
			all[n++] = (struct entry){ sr_record_prefix(list->bytes + at),
						   list->bytes + at };
	return all;
}

struct sr_sum sr_sort(const struct sr_chunk *list)
{
	size_t i, records = count_records(list);
	struct entry *all = entries_of(list, records);
	uint8_t *sorted = malloc(records * SR_RECORD + 1);
	struct sr_sum sum = { 0 };

	if (!sorted)
		sb_fail("memory for sorted records");
	qsort(all, records, sizeof(*all), compare);
	for (i = 0; i < records; i++)
		memcpy(sorted + i * SR_RECORD, all[i].record, SR_RECORD);
	free(all);
	for (i = 0; i < records; i++) {
		const uint8_t *record = sorted + i * SR_RECORD;

		if (i > 0 && memcmp(record - SR_RECORD, record, SR_KEY) > 0)
			sb_refuse("records that are not in order");
		sr_sum_add(&sum, record);
	}
	free(sorted);
	return sum;
}
