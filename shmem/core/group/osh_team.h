/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams: which PEs they have, and where the members have memory for messages. */
#ifndef OSH_TEAM_H
#define OSH_TEAM_H

#include "osh_ctx.h"
#include "osh_inbox.h"

#define OSH_SCRATCH_BYTES 8192u /* bytes of a scratch buffer */
#define OSH_SCRATCH_BUFFERS 2u

/* This member's account with another.  Writer: the thread that is in a collective of the team; one is at a time. */
struct osh_flow {
	uint64_t sent, taken;	  /* messages to it; of it */
	uint64_t told;		  /* of the taken ones, acknowledged to it */
	uint64_t free;		  /* of the sent ones, it has taken so many */
	struct osh_inbox *theirs; /* at the other member where it is mapped here, or NULL */
	uint64_t remote;	  /* else: symmetric address in terms of this PE */
};

/*
 * Writer: the thread that makes the team, and while it exists the one that is in a collective of it: the specification
 * allows one at a time.  For osh_setup_team it is the one that has the lock of osh_set.c.  `contexts` is under the lock
 * of osh_team_ctx.c, `next` under that of the list that has the team.
 */
struct osh_team {
	int me, n;
	int *pes; /* numbers in the world */
	int num_contexts;
	enum osh_kind kind;	   /* of the collective under way */
	bool near;		   /* all members are near each other */
	bool ends;		   /* being destroyed: no acknowledgement is sent any more */
	size_t offset;		   /* of this member's block in the heap */
	struct osh_inbox *inboxes; /* one for each member */
	uint8_t *scratch; /* OSH_SCRATCH_BUFFERS buffers of OSH_SCRATCH_BYTES bytes, after the inboxes */
	size_t *offsets;	  /* of the blocks of all members */
	struct osh_flow *flows;	  /* one for each member */
	uint8_t **places;	  /* room for two addresses of each member, used within a call */
	struct osh_ctx *contexts; /* shareable ones, which end with the team */
	struct osh_team *next;	  /* of the teams of active sets, or of those of the program */
	int start, log_stride;	  /* of an active set */
};

/* Where the scratch buffers begin in the block of a member of a team of n. */
static inline size_t osh_scratch_at(int n)
{
	return (size_t)n * sizeof(struct osh_inbox);
}

/* The length of the block of a member of a team of n. */
static inline size_t osh_block_bytes(int n)
{
	return osh_scratch_at(n) + OSH_SCRATCH_BUFFERS * OSH_SCRATCH_BYTES;
}

extern struct osh_team *osh_world, *osh_shared;

/* Makes the first teams: osh_world, osh_shared and osh_setup_team. 0, or -1: out of memory; what was made stays. */
int osh_teams_open(void);
/* Ends all teams but those of active sets, with their contexts: the first ones and what the program has left. */
void osh_teams_close(void);

/* Its messages are those by which active sets are set up, and no others. */
extern struct osh_team *osh_setup_team;

/*
 * A team of these PEs, of which this one is number `me`, for osh_team_free(); `pes` is copied. It is on no list. Its
 * `offset` is not known to the others, and `offsets` are not set: osh_team_note_block() has to follow for each member,
 * this one too.  NULL: no memory.
 */
struct osh_team *osh_team_alloc(const int *pes, int n, int me);
/* Notes where the block of a member is; an offset at which it cannot be ends the job. */
void osh_team_note_block(const char *fn, struct osh_team *team, int member, uint64_t offset);
/* Frees the teams of a list, with their contexts, and leaves it empty; with nobody told. */
void osh_teams_end(struct osh_team **list);

/* Frees a team that has no contexts and is on no list; NULL is none. */
void osh_team_free(struct osh_team *team);
/* Frees the contexts of a team, after completing their operations. */
void osh_team_end_contexts(struct osh_team *team);

/* Puts a team on the list of those that the program made; shmem_finalize ends what it leaves there. */
void osh_team_remember(struct osh_team *team);
/* Ends what osh_team_remember() did, and does not free the team; does nothing for other teams. */
void osh_team_forget(struct osh_team *team);
/* Is it a team that the program made, and has not destroyed? Any address may be given. */
bool osh_team_is_remembered(const struct osh_team *team);

/*
 * The team of a handle of the program's: NULL for SHMEM_TEAM_INVALID, and outside of a job for the predefined ones. Any
 * other value is taken for a team unchecked. In a child of fork() it ends the process.
 */
struct osh_team *osh_team(const void *handle);
/* What the program calls the team. */
void *osh_team_handle(struct osh_team *team);

/* As in the specification; -1 where the team is NULL. */
int osh_team_my_pe(struct osh_team *team);
/* -1 where the team is NULL. */
int osh_team_n_pes(struct osh_team *team);
/* -1 where the team is NULL. */
int osh_team_get_num_contexts(struct osh_team *team);
/* The number in `to` of a PE of `from`, or -1: it has none, or a team is NULL. */
int osh_team_translate_pe(struct osh_team *from, int pe, struct osh_team *to);

/* May some members reach each other over other hosts only?  In a ring of three all are neighbours. */
static inline bool osh_team_has_relays(const struct osh_team *team)
{
	return !team->near && team->n > 3;
}

/* A symmetric address of this PE that stands for `offset` in the heap of any. */
static inline void *osh_heap_at(size_t offset)
{
	return osh_pe.seg[OSH_HEAP].base + offset;
}

#endif
