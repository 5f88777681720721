/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock_sort: a distributed sort over stream sockets, by POSIX calls alone, as MapReduce's TeraSort does it.  Mappers,
 * each a process, make records of 100 bytes with keys of 10, and send each to the reducer that has its range of keys;
 * reducers, each a process, sort what came, and answer with what they have.
 */
#ifndef SR_H
#define SR_H

#include <stddef.h>
#include <stdint.h>

#define SR_RECORD 100u
#define SR_KEY 10u
#define SR_MAX_PROCESSES 32 /* mappers, and reducers */

/* The first bytes of a connection.  Both ends are programs of one build. */
struct sr_hello {
	uint64_t magic;
	uint32_t mappers; /* of the sort: as many connections come to each reducer */
	uint32_t spare;
};
#define SR_MAGIC UINT64_C(0x74726f7320646956)

/* What some records are: equal for two lots if, but for chance, they have the same records, in any order. */
struct sr_sum {
	uint64_t records, sum;
};

/* The options of the command line. */
struct sr_options {
	const char *serve,
		*connect; /* one of them: an address; addresses with ports, separated by commas */
	int reducers, mappers;
	uint64_t records, seed;
};

/* ---- sr_record.c: records, and what is known of them ---- */

void sr_record_make(uint8_t *record, uint64_t seed, uint64_t number);
/* Which of so many reducers sorts it: ranges of keys in their order. */
unsigned int sr_record_reducer(const uint8_t *record, unsigned int reducers);
uint64_t sr_record_prefix(
	const uint8_t *record); /* the first 8 bytes of its key, as a number that sorts alike */
void sr_sum_add(struct sr_sum *sum, const uint8_t *record);

/* ---- sr_order.c: records in chunks of memory, and their order ---- */

struct sr_chunk {
	struct sr_chunk *next;
	size_t have; /* bytes */
	uint8_t bytes[];
};
#define SR_CHUNK (SR_RECORD * 10000)

/* Adds an empty chunk in front of the list, and returns it; ends the process without memory. */
struct sr_chunk *sr_chunk_add(struct sr_chunk **list);
void sr_chunks_free(struct sr_chunk *list);
/*
 * Sorts the records of the list, copies them in their order, and checks it.  Returns what the copy has; ends the
 * process if the order is wrong or records are not whole.
 */
struct sr_sum sr_sort(const struct sr_chunk *list);

/* ---- the two ends ---- */

int sr_serve(const char *address, int reducers);
int sr_map(const struct sr_options *options);

#endif
