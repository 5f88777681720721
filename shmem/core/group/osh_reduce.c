/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions and scans.
 *
 *   flat		few bytes, in the messages: each member tells all others
 *   rounds		in messages, too, which are exchanged in log2(n) rounds
 *   shared		of near members: each member combines its part of the vector from the sources of all, which are
 *			mapped, and stores it to all
 *   ring		parts go round the members, once to be combined and once to be told
 *
 * In each the members combine a part in one order, so all have results that are equal to the bit.
 */
#include <string.h>

#include "osh_barrier.h"
#include "osh_check.h"
#include "osh_coll.h"
#include "osh_reduce.h"
#include "osh_target.h"

#define FLAT_MAX 4			/* members */
#define ROUNDS_MAX 48u			/* bytes; docs/openshmem.md has the figures */
#define ROUNDS_MAX_PAIR 128u		/* of two members */
#define ROUNDS_MAX_FAR 256u		/* of more, not all of them near */
#define ROUNDS_AHEAD (4 * OSH_MSG_DATA) /* bytes that are sent before some are taken */
#define BLOCK 8192u /* bytes combined at a time: they stay in the nearest cache */

/* Room for BLOCK bytes of any type. */
union block {
	uint8_t bytes[BLOCK];
	long double align;
};

/* ---- few bytes ------------------------------------------------------------------------------- */

/*
 * Combines the vectors of all members, each of which sends its own to all others. acc: that of this member, at most
 * OSH_MSG_DATA bytes, then the result.
 */
static void reduce_flat(const char *fn, struct osh_team *team, uint8_t *acc, size_t bytes,
			size_t elem, osh_combine combine)
{
	_Alignas(16) uint8_t value[OSH_MSG_DATA], mine[OSH_MSG_DATA];
	size_t n = bytes / elem;

	memcpy(mine, acc, bytes);
	for (int i = 1; i < team->n; i++)
		osh_msg_send(fn, team, (team->me + i) % team->n, mine, bytes);
	for (int i = 0; i < team->n; i++) {
		const uint8_t *next = mine;

		if (i != team->me) {
			osh_msg_recv(fn, team, i, value, bytes);
			next = value;
		}
		if (i == 0)
			memcpy(acc, next, bytes);
		else
			combine(acc, next, n);
	}
}

/* Combines what a member sends with what is there; that of the lower number comes first. */
static void take_value(const char *fn, struct osh_team *team, int from, uint8_t *acc, size_t bytes,
		       size_t elem, osh_combine combine)
{
	_Alignas(16) uint8_t value[OSH_MSG_DATA];

	osh_msg_recv(fn, team, from, value, bytes);
	if (team->me < from) {
		combine(acc, value, bytes / elem);
	} else {
		combine(value, acc, bytes / elem);
		memcpy(acc, value, bytes);
	}
}

/* What is to be done with the messages of a vector: send them, take and combine them, or take them as they are. */
enum { SEND = 1, COMBINE = 2, COPY = 4 };

/*
 * Exchanges a vector with a member, as `what` says. Messages of both directions in turn, so that neither side waits
 * for room while the other does.
 */
static void pass(const char *fn, struct osh_team *team, int with, int what, uint8_t *acc,
		 size_t bytes, size_t elem, osh_combine combine)
{
	size_t sent = what & SEND ? 0 : bytes, taken = what & (COMBINE | COPY) ? 0 : bytes, n;

	while (sent < bytes || taken < bytes) {
		if (sent < bytes && (taken == bytes || sent - taken < ROUNDS_AHEAD)) {
			n = osh_min(bytes - sent, OSH_MSG_DATA);
			osh_msg_send(fn, team, with, acc + sent, n);
			sent += n;
			continue;
		}
		n = osh_min(bytes - taken, OSH_MSG_DATA);
		if (what & COPY)
			osh_msg_recv(fn, team, with, acc + taken, n);
		else
			take_value(fn, team, with, acc + taken, n, elem, combine);
		taken += n;
	}
}

/* Combines the vectors of all members by messages in log2(n) rounds. acc: that of this member, then the result. */
static void reduce_rounds(const char *fn, struct osh_team *team, uint8_t *acc, size_t bytes,
			  size_t elem, osh_combine combine)
{
	int full = 1, me = team->me;

	while (full * 2 <= team->n)
		full *= 2;
	/* Members beyond the power of two give their values to one below it, and get the result. */
	if (me >= full) {
		pass(fn, team, me - full, SEND, acc, bytes, elem, combine);
		pass(fn, team, me - full, COPY, acc, bytes, elem, combine);
		return;
	}
	if (me + full < team->n)
		pass(fn, team, me + full, COMBINE, acc, bytes, elem, combine);
	for (int bit = 1; bit < full; bit *= 2)
		pass(fn, team, me ^ bit, SEND | COMBINE, acc, bytes, elem, combine);
	if (me + full < team->n)
		pass(fn, team, me + full, SEND, acc, bytes, elem, combine);
}

/*
 * Combines by messages, with reduce_flat() or reduce_rounds(), a vector of at most BLOCK bytes, which is copied, since
 * dest may be the source.
 */
static void reduce_short(const char *fn, struct osh_team *team, int algorithm, void *dest,
			 const void *source, size_t elem, size_t bytes, osh_combine combine)
{
	union block acc;

	memcpy(&acc, source, bytes);
	if (algorithm == OSH_REDUCE_FLAT)
		reduce_flat(fn, team, acc.bytes, bytes, elem, combine);
	else
		reduce_rounds(fn, team, acc.bytes, bytes, elem, combine);
	memcpy(dest, &acc, bytes);
}

/* ---- shared -------------------------------------------------------------------------------- */

/* Where the n bytes of member i, a near one, are mapped, after mapping them; an address not symmetric ends the job. */
static uint8_t *mapped(const char *fn, struct osh_team *team, int i, const void *addr, size_t n)
{
	struct osh_target t;

	return osh_target(fn, &osh_ctx_internal, addr, n, team->pes[i], &t);
}

/*
 * Combines a part of the vectors of all, and stores it into the dest of each. All members are near, and `source` is
 * symmetric; waits for all before and after.
 */
static void reduce_shared(const char *fn, struct osh_team *team, void *dest, const void *source,
			  size_t elem, size_t n, osh_combine combine)
{
	size_t first = n / (size_t)team->n * (size_t)team->me;
	size_t last = team->me + 1 == team->n ? n : n / (size_t)team->n * (size_t)(team->me + 1);
	uint8_t **sources = team->places, **dests = team->places + team->n;
	size_t per = BLOCK / elem;
	union block acc;

	for (int i = 0; i < team->n; i++) {
		sources[i] = mapped(fn, team, i, source, n * elem);
		dests[i] = mapped(fn, team, i, dest, n * elem);
	}
	osh_sync(fn, team);
	for (size_t at = first; at < last; at += per) {
		size_t count = osh_min(per, last - at), bytes = count * elem;

		memcpy(&acc, sources[0] + at * elem, bytes);
		for (int i = 1; i < team->n; i++)
			combine(&acc, sources[i] + at * elem, count);
		for (int i = 0; i < team->n; i++)
			memcpy(dests[i] + at * elem, &acc, bytes);
	}
	osh_sync(fn, team);
}

/* ---- neighbour to neighbour ------------------------------------------------------------------ */

enum { DATA = 1, FREE = 2 };

/* A stream of chunks to the next member's scratch buffers, and one from the last's to this one's. */
struct stream {
	const char *fn;
	struct osh_team *team;
	int next, last;
	uint64_t put, freed;	  /* chunks put; of these, taken by the next member */
	uint64_t announced, used; /* messages about data that have come; that were used */
	uint64_t taken;		  /* chunks that were taken */
};

/* Waits for a message of a member and counts it: data have come, or a buffer is free. */
static void await_message(struct stream *s, int from)
{
	uint8_t kind;

	osh_msg_recv(s->fn, s->team, from, &kind, 1);
	if (kind == FREE)
		s->freed++;
	else
		s->announced++;
}

/* Tells a member that data have come, or that a buffer is free (kind). */
static void send_message(struct stream *s, int to, uint8_t kind)
{
	osh_msg_send(s->fn, s->team, to, &kind, 1);
}

/* Waits until the last member has announced data that were not used yet, and counts them as used. */
static void wait_data(struct stream *s)
{
	while (s->announced == s->used)
		await_message(s, s->last);
	s->used++;
}

/* Waits for a free buffer of the next member, puts a chunk into it and announces it. */
static void put_chunk(struct stream *s, const void *data, size_t n)
{
	size_t scratch = s->team->offsets[s->next] + osh_scratch_at(s->team->n);
	void *buffer = osh_heap_at(scratch + s->put % OSH_SCRATCH_BUFFERS * OSH_SCRATCH_BYTES);

	while (s->put - s->freed >= OSH_SCRATCH_BUFFERS)
		await_message(s, s->next);
	osh_coll_put(s->fn, s->team, s->next, buffer, data, n);
	send_message(s, s->next, DATA);
	s->put++;
}

/* Waits for a chunk of the last member and returns the buffer that has it, up to give_chunk_back(). */
static const void *take_chunk(struct stream *s)
{
	wait_data(s);
	return s->team->scratch + s->taken % OSH_SCRATCH_BUFFERS * OSH_SCRATCH_BYTES;
}

/* Tells the last member that the buffer of the chunk is free. */
static void give_chunk_back(struct stream *s)
{
	s->taken++;
	send_message(s, s->last, FREE);
}

/* Receives all messages about chunks, so that none is left for the next collective. */
static void end_stream(struct stream *s)
{
	while (s->freed != s->put)
		await_message(s, s->next);
}

/* One round of parts of up to `per` elements, a part for each member, of the vector's next elements. */
struct round {
	size_t elem, per,
		count; /* bytes of an element; elements of a part, at most; of all parts */
	uint8_t *dest;
	const uint8_t *source;
	osh_combine combine;
};

/* The first element of a part. */
static size_t part_at(const struct round *r, int part)
{
	return osh_min((size_t)part * r->per, r->count);
}

/* The elements of a part: 0 where there are fewer parts than members. */
static size_t part_count(const struct round *r, int part)
{
	return osh_min((size_t)(part + 1) * r->per, r->count) - part_at(r, part);
}

/* Sends the parts round once to be combined, and once more, so that each member has all results in its dest. */
static void combine_round(struct stream *s, const struct round *r)
{
	int n = s->team->n, part = s->team->me;
	union block acc;

	memcpy(&acc, r->source + part_at(r, part) * r->elem, part_count(r, part) * r->elem);
	for (int step = 1; step < n; step++) {
		const void *chunk;

		put_chunk(s, &acc, part_count(r, part) * r->elem);
		part = (part + n - 1) % n;
		chunk = take_chunk(s);
		memcpy(&acc, chunk, part_count(r, part) * r->elem);
		give_chunk_back(s);
		r->combine(&acc, r->source + part_at(r, part) * r->elem, part_count(r, part));
	}
	memcpy(r->dest + part_at(r, part) * r->elem, &acc, part_count(r, part) * r->elem);
	for (int step = 1; step < n; step++) {
		uint8_t *at = r->dest + part_at(r, part) * r->elem;

		osh_coll_put(s->fn, s->team, s->next, at, at, part_count(r, part) * r->elem);
		send_message(s, s->next, DATA);
		part = (part + n - 1) % n;
		wait_data(s);
	}
}

/* Combines the vectors in parts that go from each member to the next, through the scratch buffers. */
static void reduce_ring(const char *fn, struct osh_team *team, void *dest, const void *source,
			size_t elem, size_t n, osh_combine combine)
{
	struct stream s = { .fn = fn,
			    .team = team,
			    .next = (team->me + 1) % team->n,
			    .last = (team->me + team->n - 1) % team->n };
	size_t most = OSH_SCRATCH_BYTES / elem;

	for (size_t at = 0; at < n;) {
		size_t count = osh_min(n - at, most * (size_t)team->n);
		struct round r = { elem,
				   (count + (size_t)team->n - 1) / (size_t)team->n,
				   count,
				   (uint8_t *)dest + at * elem,
				   (const uint8_t *)source + at * elem,
				   combine };

		combine_round(&s, &r);
		at += count;
	}
	end_stream(&s);
}

/*
 * Returns the algorithm: the one that the environment names, where it can be used, or else the one for such a team
 * and length. `shared`: all members are near, and the source is symmetric.
 */
static int choose(const struct osh_team *team, size_t bytes, bool shared)
{
	int wanted = osh_env.reduce;
	size_t most;

	if (wanted == OSH_REDUCE_RING || (wanted == OSH_REDUCE_SHARED && shared) ||
	    (wanted == OSH_REDUCE_FLAT && bytes <= OSH_MSG_DATA) ||
	    (wanted == OSH_REDUCE_ROUNDS && bytes <= BLOCK))
		return wanted;
	if (bytes <= OSH_MSG_DATA && team->n <= FLAT_MAX)
		return OSH_REDUCE_FLAT;
	most = team->near ? ROUNDS_MAX : ROUNDS_MAX_FAR;
	if (bytes <= (team->n == 2 ? ROUNDS_MAX_PAIR : most))
		return OSH_REDUCE_ROUNDS;
	return shared ? OSH_REDUCE_SHARED : OSH_REDUCE_RING;
}

int osh_reduce(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	       size_t n, osh_combine combine)
{
	size_t bytes = osh_times(n, elem), offset;
	int algorithm;

	if (team == NULL)
		return -1;
	if (n == 0)
		return 0;
	osh_check(fn, team, dest, bytes, 0);
	osh_check_source(fn, team, source, bytes);
	osh_coll_room(fn, dest, bytes);
	if (team->n == 1) {
		osh_coll_copy(dest, source, bytes);
		return 0;
	}
	team->kind = OSH_KIND_REDUCE;
	algorithm = choose(team, bytes,
			   team->near && osh_segment_of(source, bytes, &offset) != OSH_SEGMENTS);
	if (algorithm == OSH_REDUCE_SHARED)
		reduce_shared(fn, team, dest, source, elem, n, combine);
	else if (algorithm == OSH_REDUCE_RING)
		reduce_ring(fn, team, dest, source, elem, n, combine);
	else
		reduce_short(fn, team, algorithm, dest, source, elem, bytes, combine);
	return 0;
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* Passes chunks from the first member to the last; each adds its own. */
int osh_scan(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	     size_t n, osh_combine combine, bool exclusive)
{
	size_t most = OSH_SCRATCH_BYTES / elem;
	union block before, acc;
	struct stream s;

	if (team == NULL)
		return -1;
	osh_check(fn, team, dest, osh_times(n, elem), 0);
	osh_coll_room(fn, dest, osh_times(n, elem));
	team->kind = OSH_KIND_SCAN;
	s = (struct stream){ .fn = fn, .team = team, .next = team->me + 1, .last = team->me - 1 };
	for (size_t at = 0; at < n; at += most) {
		size_t count = osh_min(n - at, most), bytes = count * elem;
		uint8_t *to = (uint8_t *)dest + at * elem;

		memset(&before, 0, bytes);
		memcpy(&acc, (const uint8_t *)source + at * elem, bytes);
		if (team->me > 0) {
			memcpy(&before, take_chunk(&s), bytes);
			give_chunk_back(&s);
			memcpy(&acc, &before, bytes);
			combine(&acc, (const uint8_t *)source + at * elem, count);
		}
		if (s.next < team->n)
			put_chunk(&s, &acc, bytes);
		memcpy(to, exclusive ? &before : &acc, bytes);
	}
	end_stream(&s);
	return 0;
}
