/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams: which PEs they have, and the cells by which their members exchange short messages. */
#ifndef OSH_TEAM_H
#define OSH_TEAM_H

#include <assert.h>

#include "osh_ctx.h"

/*
 * What a message is about.  A member that gets a message of another kind than it waits for is in another routine
 * than the sender.  None is 0, so a word of zeros is no message, and not what a cell has before the first either.
 */
enum osh_kind {
	OSH_KIND_EMPTY = 1, /* before the first */
	OSH_KIND_TAKEN,	    /* a count of messages that were taken */
	OSH_KIND_END,	    /* the barrier at the end of a PE */
	OSH_KIND_SYNC,
	OSH_KIND_BROADCAST,
	OSH_KIND_COLLECT,
	OSH_KIND_ALLTOALL,
	OSH_KIND_REDUCE,
	OSH_KIND_SCAN,
	OSH_KIND_TEAM,
	OSH_KIND_SET,
	OSH_KIND_CHECK, /* what SHMEM_DEBUG adds to each routine */
	OSH_KINDS
};

/* A count of messages, with a kind in the upper byte. */
#define OSH_COUNT_MASK (UINT64_MAX >> 8)
static inline uint64_t osh_counted(enum osh_kind kind, uint64_t count)
{
	return (uint64_t)kind << 56 | count;
}

/*
 * A message of a collective: one line, of which the last word is stored last.  `seq` has its kind, and the number of
 * the message, counted from 1 between two members in one direction; `taken` is how many messages of the other
 * direction its sender has taken.
 */
#define OSH_CELL_DATA 48u
struct osh_cell {
	uint8_t data[OSH_CELL_DATA];
	_Atomic uint64_t taken;
	_Atomic uint64_t seq;
};
static_assert(sizeof(struct osh_cell) == OSH_LINE, "osh_cell");

#define OSH_CELLS 8u /* messages of one member that wait at another */

/* What each member has for each other member, in its memory: written by that member only. */
struct osh_mailbox {
	struct osh_cell cells[OSH_CELLS];
	struct { /* what that member has taken of this one's, where no message told it; has a kind */
		_Atomic uint64_t taken;
		uint8_t pad[OSH_LINE - 8];
	} ack;
};

#define OSH_PIECE 8192u /* bytes of a scratch buffer */
#define OSH_PIECES 2u

/* This member's account with another. */
struct osh_line {
	uint64_t sent, taken;	    /* messages to it; of it */
	uint64_t told;		    /* of the taken ones, it has been told */
	uint64_t free;		    /* of the sent ones, it has taken so many */
	struct osh_mailbox *theirs; /* at the other member where it is mapped here, or NULL */
	uint64_t remote;	    /* else: symmetric address in terms of this PE */
};

struct osh_team {
	int me, n;
	int *pes; /* numbers in the world */
	int num_contexts;
	enum osh_kind kind;	  /* of the collective under way */
	bool near;		  /* all members are near each other */
	bool ends;		  /* being destroyed: nothing more is told of what was taken */
	size_t offset;		  /* of this member's block in the heap */
	struct osh_mailbox *mine; /* one for each member */
	uint8_t *scratch;	  /* OSH_PIECES buffers of OSH_PIECE bytes, behind the mailboxes */
	size_t *offsets;	  /* of the blocks of all members */
	struct osh_line *lines;	  /* one for each member */
	uint8_t **places;	  /* room for two addresses of each member, used within a call */
	struct osh_ctx *contexts; /* shareable ones, which end with the team */
	struct osh_team *next;	  /* of the teams of active sets, or of those of the program */
	int start, log_stride;	  /* of an active set */
};

/* Of the block of a member of a team of n: where the scratch buffers begin in it, and its length. */
static inline size_t osh_scratch_at(int n)
{
	return (size_t)n * sizeof(struct osh_mailbox);
}

static inline size_t osh_block_bytes(int n)
{
	return osh_scratch_at(n) + OSH_PIECES * OSH_PIECE;
}

extern struct osh_team *osh_world, *osh_shared;

/* The first teams.  0, or -1: out of memory. */
int osh_teams_open(void);
void osh_teams_close(void);

/* By its cells members of active sets meet. */
extern struct osh_team *osh_introducing;

/*
 * A team of these PEs, of which this one is number `me`; its offset is not known to the others yet.  NULL: no
 * memory.
 */
struct osh_team *osh_team_alloc(const int *pes, int n, int me);
/* Notes where the block of a member is; one that cannot be is not used. */
void osh_team_note_block(const char *fn, struct osh_team *team, int member, uint64_t offset);
/* Ends the teams of a list, with their contexts. */
void osh_teams_end(struct osh_team **list);

/* What the program calls the team. */
void *osh_team_handle(struct osh_team *team);

/* A symmetric address of this PE that stands for `offset` in the heap of any. */
static inline void *osh_heap_at(size_t offset)
{
	return osh_pe.seg[OSH_HEAP].base + offset;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Sends n bytes, at most OSH_CELL_DATA, to a member; puts by osh_inner that came before arrive before. */
void osh_cell_send(const char *fn, struct osh_team *team, int to, const void *data, size_t n);
/* Whether a member has sent one that was not taken. */
bool osh_cell_is_there(const char *fn, const struct osh_team *team, int from);
/* Takes the next message of a member; one of another kind than that of the team ends the job. */
void osh_cell_recv(const char *fn, struct osh_team *team, int from, void *data, size_t n);

#endif
