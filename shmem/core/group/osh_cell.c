/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a team send each other lines.  A member may have OSH_CELLS messages under way to
 * another, and learns how many of them were taken from the messages of the other direction; where there
 * are none the receiver tells it after every OSH_CELLS / 2.
 */
#include <string.h>

#include "osh_cell.h"
#include "osh_far.h"
#include "osh_link.h"
#include "osh_wait.h"

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

static inline struct osh_wait cell_wait(const char *fn, const struct osh_team *team, int member)
{
	struct osh_wait w = OSH_WAIT_PE(fn, NULL, team->pes[member]);

	w.at_end = team->kind == OSH_KIND_END;
	return w;
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

static _Noreturn OSH_COLD void overwritten(const char *fn, const struct osh_team *team, int from)
{
	osh_fatal("%s: a message of PE %d was overwritten: some PE stores into the "
		  "library's part of the symmetric heap",
		  fn, team->pes[from]);
}

static OSH_COLD void read_ack(const char *fn, struct osh_team *team, int to)
{
	uint64_t taken = atomic_load_explicit(&team->mine[to].ack.taken, memory_order_acquire);

	if (taken >> 56 != OSH_KIND_TAKEN && taken != osh_counted(OSH_KIND_EMPTY, 0))
		overwritten(fn, team, to);
	note_taken(&team->lines[to], taken & OSH_COUNT_MASK);
}

static inline bool has_room(const char *fn, struct osh_team *team, int to)
{
	struct osh_line *line = &team->lines[to];

	if (osh_unlikely(line->sent - line->free >= OSH_CELLS))
		read_ack(fn, team, to);
	return line->sent - line->free < OSH_CELLS;
}

void osh_cell_send(const char *fn, struct osh_team *team, int to, const void *data, size_t n)
{
	struct osh_line *line = &team->lines[to];
	struct osh_wait w = cell_wait(fn, team, to);
	uint32_t i = (uint32_t)(line->sent % OSH_CELLS);
	uint64_t seq;

	if (osh_unlikely(line->remote == 0))
		open_line(fn, team, to);
	while (osh_unlikely(!has_room(fn, team, to)))
		osh_wait(&w);
	osh_wait_end(&w);
	line->sent++;
	line->told = line->taken;
	seq = osh_counted(team->kind, line->sent);
	if (osh_likely(line->theirs != NULL)) {
		struct osh_cell *cell = &line->theirs->cells[i];

		copy(cell->data, data, n);
		atomic_store_explicit(&cell->taken, line->taken, memory_order_relaxed);
		atomic_store_explicit(&cell->seq, seq, memory_order_release);
	} else {
		struct osh_cell cell = { .taken = line->taken, .seq = seq };

		copy(cell.data, data, n);
		put_far(fn, team, to, i * sizeof(cell), &cell, sizeof(cell));
	}
}

static void tell_taken(const char *fn, struct osh_team *team, int from)
{
	struct osh_line *line = &team->lines[from];
	uint64_t taken = osh_counted(OSH_KIND_TAKEN, line->taken);

	line->told = line->taken;
	if (osh_unlikely(line->remote == 0))
		open_line(fn, team, from);
	if (line->theirs != NULL)
		atomic_store_explicit(&line->theirs->ack.taken, taken, memory_order_release);
	else
		put_far(fn, team, from, offsetof(struct osh_mailbox, ack), &taken, sizeof(taken));
}

/* The next message of a member is of another kind. */
static _Noreturn OSH_COLD void unexpected(const char *fn, const struct osh_team *team, int from,
					  unsigned int kind)
{
	static const char *const names[OSH_KINDS] = {
		[OSH_KIND_SYNC] = "a barrier or sync",
		[OSH_KIND_BROADCAST] = "a broadcast",
		[OSH_KIND_COLLECT] = "a collect or fcollect",
		[OSH_KIND_ALLTOALL] = "an alltoall or alltoalls",
		[OSH_KIND_REDUCE] = "a reduction",
		[OSH_KIND_SCAN] = "a scan",
		[OSH_KIND_TEAM] = "a split of a team",
		[OSH_KIND_SET] = "a collective of another active set",
		[OSH_KIND_CHECK] = "a collective, with SHMEM_DEBUG,",
	};
	int pe = team->pes[from];

	if (kind == OSH_KIND_END)
		osh_wait_in_vain(fn, pe);
	if (kind >= OSH_KINDS || names[kind] == NULL)
		overwritten(fn, team, from);
	if (team->kind == OSH_KIND_END)
		osh_fatal("%s is called while PE %d is in %s", fn, pe, names[kind]);
	osh_fatal("%s: PE %d is in %s meanwhile", fn, pe, names[kind]);
}

/*
 * Whether `seq` is that of the next message, and not of the one that the cell had before: its place is used again
 * after OSH_CELLS.
 */
static inline bool is_next(const char *fn, const struct osh_team *team, int from, uint64_t seq)
{
	uint64_t next = team->lines[from].taken + 1, count = seq & OSH_COUNT_MASK;
	unsigned int kind = (unsigned int)(seq >> 56);

	if (osh_likely(seq == osh_counted(team->kind, next)))
		return true;
	if (osh_unlikely(count == next))
		unexpected(fn, team, from, kind);
	if (osh_unlikely(count != (next > OSH_CELLS ? next - OSH_CELLS : 0) || kind == 0))
		overwritten(fn, team, from);
	return false;
}

bool osh_cell_is_there(const char *fn, const struct osh_team *team, int from)
{
	const struct osh_cell *cell = &team->mine[from].cells[team->lines[from].taken % OSH_CELLS];

	return is_next(fn, team, from, atomic_load_explicit(&cell->seq, memory_order_acquire));
}

void osh_cell_recv(const char *fn, struct osh_team *team, int from, void *data, size_t n)
{
	struct osh_line *line = &team->lines[from];
	struct osh_cell *cell = &team->mine[from].cells[line->taken % OSH_CELLS];
	struct osh_wait w = cell_wait(fn, team, from);

	while (!is_next(fn, team, from, atomic_load_explicit(&cell->seq, memory_order_acquire)))
		osh_wait(&w);
	osh_wait_end(&w);
	copy(data, cell->data, n);
	note_taken(line, atomic_load_explicit(&cell->taken, memory_order_relaxed));
	line->taken++;
	if (osh_unlikely(line->taken - line->told >= OSH_CELLS / 2 && !team->ends))
		tell_taken(fn, team, from);
}
