/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a team send each other lines.  A member may have OSH_CELLS messages under way to
 * another, and learns how many of them were taken from the messages of the other direction; where there
 * are none the receiver tells it after every OSH_CELLS / 2.
 */
#include <string.h>

#include "osh_far.h"
#include "osh_link.h"
#include "osh_team.h"

/* Finds out where the other member's mailbox for this one is. */
static OSH_COLD void open_line(const char *fn, struct osh_team *team, int to)
{
	size_t offset = team->offsets[to] + (size_t)team->me * sizeof(struct osh_mailbox);
	struct osh_line *line = &team->lines[to];
	int pe = team->pes[to];

	line->remote = osh_pe.peers[pe].seg[OSH_HEAP].base + offset;
	if (osh_link_map(fn, pe))
		line->theirs = (struct osh_mailbox *)(osh_pe.peers[pe].at[OSH_HEAP] + offset);
}

static void put_far(const char *fn, struct osh_team *team, int to, size_t at, const void *data,
		    size_t n)
{
	int pe = team->pes[to];
	struct osh_target t = { pe, team->lines[to].remote + at,
				osh_pe.peers[pe].seg[OSH_HEAP].handle };

	osh_far_put(fn, &osh_inner, &t, data, n, false);
}

/* Most messages have no data. */
static inline void copy(void *to, const void *from, size_t n)
{
	if (n > 0)
		memcpy(to, from, n);
}

static void note_taken(struct osh_line *line, uint64_t taken)
{
	/* A count of a peer: one that cannot be is not used. */
	if ((int64_t)(taken - line->free) > 0 && taken <= line->sent)
		line->free = taken;
}

static bool has_room(struct osh_team *team, int to)
{
	struct osh_line *line = &team->lines[to];

	if (line->sent - line->free < OSH_CELLS)
		return true;
	note_taken(line, atomic_load_explicit(&team->mine[to].ack.taken, memory_order_acquire));
	return line->sent - line->free < OSH_CELLS;
}

void osh_cell_send(const char *fn, struct osh_team *team, int to, const void *data, size_t n)
{
	struct osh_line *line = &team->lines[to];
	struct osh_wait w = OSH_WAIT_PE(fn, NULL, team->pes[to]);
	uint32_t i = (uint32_t)(line->sent % OSH_CELLS);

	if (osh_unlikely(line->remote == 0))
		open_line(fn, team, to);
	while (osh_unlikely(!has_room(team, to)))
		osh_wait(&w);
	osh_wait_end(&w);
	line->sent++;
	line->told = line->taken;
	if (osh_likely(line->theirs != NULL)) {
		struct osh_cell *cell = &line->theirs->cells[i];

		copy(cell->data, data, n);
		atomic_store_explicit(&cell->taken, line->taken, memory_order_relaxed);
		atomic_store_explicit(&cell->seq, line->sent, memory_order_release);
	} else {
		struct osh_cell cell = { .taken = line->taken, .seq = line->sent };

		copy(cell.data, data, n);
		put_far(fn, team, to, i * sizeof(cell), &cell, sizeof(cell));
	}
}

static void tell_taken(const char *fn, struct osh_team *team, int from)
{
	struct osh_line *line = &team->lines[from];

	line->told = line->taken;
	if (osh_unlikely(line->remote == 0))
		open_line(fn, team, from);
	if (line->theirs != NULL)
		atomic_store_explicit(&line->theirs->ack.taken, line->taken, memory_order_release);
	else
		put_far(fn, team, from, offsetof(struct osh_mailbox, ack), &line->taken,
			sizeof(line->taken));
}

bool osh_cell_is_there(const struct osh_team *team, int from)
{
	uint64_t taken = team->lines[from].taken;
	struct osh_cell *cell = &team->mine[from].cells[taken % OSH_CELLS];

	return atomic_load_explicit(&cell->seq, memory_order_acquire) == taken + 1;
}

void osh_cell_recv(const char *fn, struct osh_team *team, int from, void *data, size_t n)
{
	struct osh_line *line = &team->lines[from];
	struct osh_cell *cell = &team->mine[from].cells[line->taken % OSH_CELLS];
	struct osh_wait w = OSH_WAIT_PE(fn, NULL, team->pes[from]);
	uint64_t next = line->taken + 1, before = next > OSH_CELLS ? next - OSH_CELLS : 0, seq;

	while ((seq = atomic_load_explicit(&cell->seq, memory_order_acquire)) != next) {
		if (osh_unlikely(seq != before))
			osh_fatal("%s: a message of PE %d was overwritten: some PE stores into the "
				  "library's part of the symmetric heap",
				  fn, w.pe);
		osh_wait(&w);
	}
	osh_wait_end(&w);
	copy(data, cell->data, n);
	note_taken(line, atomic_load_explicit(&cell->taken, memory_order_relaxed));
	line->taken++;
	if (osh_unlikely(line->taken - line->told >= OSH_CELLS / 2 && !team->ends))
		tell_taken(fn, team, from);
}
