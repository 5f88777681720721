/* SPDX-License-Identifier: BSD-2-Clause */
/* The row that each side of the ring experiments prints, one JSON object, for perf/ring_experiments. */
#ifndef RING_ROW_H
#define RING_ROW_H

#include <json-c/json.h>
#include <stdint.h>

struct ring_row {
	const char *experiment, *kind; /* E1 ...; raw, baseline, ours, shmem */
	unsigned int hosts, threads, links;
	uint64_t bytes;
	double value;
	const char *unit;
	double rate; /* GB/s of one host, or 0: it is not known */
};

/* The row, to which a side may add what the others do not know. */
json_object *ring_row_new(const struct ring_row *r);
/* Prints it on a line and frees it. */
void ring_row_print(json_object *o);

#endif
