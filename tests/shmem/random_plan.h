/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of one round: a list of the operations of all PEs that each PE derives from the number
 * of the round alone, so that each knows what must be in its memory afterwards.
 */
#ifndef RANDOM_PLAN_H
#define RANDOM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_OPS 600
#define PLAN_TEAMS 3  /* the world; the even and the odd PEs; the upper and the lower half */
#define PLAN_ARENAS 2 /* arenas of destinations: in the heap, and a variable */
#define PLAN_LARGEST (8u << 20)
#define PLAN_SOURCE (PLAN_LARGEST + 4096u)
#define PLAN_HEAP (24u << 20)
#define PLAN_VARIABLE (4u << 20)
#define PLAN_COLLECTIVE (32u << 20)

enum plan_kind {
	PLAN_PUT,
	PLAN_GET,
	PLAN_SIGNAL, /* a put with a signal */
	PLAN_ADD,
	PLAN_XOR,
	PLAN_SWAP,
	PLAN_TICKET,
	PLAN_COLLECTIVE_CALL,
	PLAN_KINDS
};

enum plan_call {
	PLAN_BROADCAST,
	PLAN_FCOLLECT,
	PLAN_COLLECT,
	PLAN_ALLTOALL,
	PLAN_SUM,
	PLAN_XORS,
	PLAN_MAX,
	PLAN_INSCAN,
	PLAN_EXSCAN,
	PLAN_SYNC,
	PLAN_CALLS
};

/* `blocks` of `block` bytes go from one PE's source to another's arena. */
struct plan_op {
	enum plan_kind kind;
	enum plan_call call;
	int pe, other; /* who does it, to whom; of a collective `other` is the root */
	int team;
	unsigned int element; /* bytes: 1, 2, 4, 8, 16 */
	unsigned int choice;  /* random, for variants */
	int arena;
	size_t to, from; /* offsets */
	size_t block, blocks, to_stride, from_stride;
	uint64_t value;
};

struct plan {
	struct plan_op ops[PLAN_OPS];
	int n;
};

void plan_make(struct plan *p, uint64_t seed, long round, int npes);

/*
 * The number in the world of member `i` of a team, and the number of members; all members compute
 * the same.
 */
int plan_member(int team, int pe, int i, int npes);
int plan_members(int team, int pe, int npes);

/* Bytes of the pattern of `tag`, from `offset` on. */
void plan_fill(void *at, uint64_t tag, size_t offset, size_t n);

uint64_t plan_random(uint64_t *state);

static inline uint64_t plan_tag(long round, int pe)
{
	return ((uint64_t)round << 16) + (uint64_t)pe + 1;
}

#endif
