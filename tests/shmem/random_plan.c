/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "random_plan.h"

#define STRIDED_BLOCKS 2000u

/* The generator «splitmix64». */
uint64_t plan_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t word_of(uint64_t tag, uint64_t number)
{
	uint64_t x = (tag * UINT64_C(0x9e3779b97f4a7c15)) ^ (number * UINT64_C(0xd6e8feb86659fd93));

	return x ^ (x >> 29);
}

void plan_fill(void *at, uint64_t tag, size_t offset, size_t n)
{
	unsigned char *to = at;

	while (n > 0) {
		uint64_t word = word_of(tag, offset / 8);
		size_t skip = offset % 8, part = 8 - skip < n ? 8 - skip : n;

		memcpy(to, (const char *)&word + skip, part);
		to += part;
		offset += part;
		n -= part;
	}
}

/* Many small, few large: each power of two is as likely. */
static size_t length(uint64_t *state, size_t most)
{
	unsigned int bits = (unsigned int)(plan_random(state) % 24);
	size_t n = ((size_t)1 << bits) + plan_random(state) % ((size_t)1 << bits);

	if (plan_random(state) % 4 == 0)
		n = (size_t)1 << bits;
	return n > most ? most : n;
}

static size_t span(const struct plan_op *o, size_t stride)
{
	return (o->blocks - 1) * stride + o->block;
}

static void shape(struct plan_op *o, uint64_t *state)
{
	size_t elements;

	o->element = 1u << plan_random(state) % 5;
	if (plan_random(state) % 4 != 0 || o->kind == PLAN_SIGNAL) {
		o->blocks = 1;
		o->block = length(state, PLAN_LARGEST);
		o->block = (o->block + o->element - 1) / o->element * o->element;
	} else {
		elements = 1 + plan_random(state) % 4;
		o->block = elements * o->element;
		o->blocks = 1 + length(state, STRIDED_BLOCKS) % STRIDED_BLOCKS;
		o->to_stride = o->block + plan_random(state) % 5 * o->element;
		o->from_stride = o->block + plan_random(state) % 5 * o->element;
	}
}

/* Takes room in an arena, `used` bytes of which are taken.  False: there is none left. */
static bool take_room(size_t *used, size_t all, size_t bytes, size_t align, uint64_t *state,
		      size_t *at)
{
	size_t start = *used + (plan_random(state) % 3 == 0 ? plan_random(state) % 300 : 0);

	start = (start + align - 1) / align * align;
	if (bytes > all || start > all - bytes)
		return false;
	*at = start;
	*used = start + bytes;
	return true;
}

static bool transfer(struct plan_op *o, size_t used[][PLAN_ARENAS], uint64_t *state)
{
	static const size_t sizes[PLAN_ARENAS] = { PLAN_HEAP, PLAN_VARIABLE };
	int to = o->kind == PLAN_GET ? o->pe : o->other;
	size_t bytes;

	shape(o, state);
	o->arena = (int)(plan_random(state) % PLAN_ARENAS);
	if (!take_room(&used[to][o->arena], sizes[o->arena], span(o, o->to_stride), o->element,
		       state, &o->to))
		return false;
	bytes = span(o, o->from_stride);
	o->from = plan_random(state) % (PLAN_SOURCE - bytes + 1) / o->element * o->element;
	return true;
}

static bool collective(struct plan_op *o, size_t *used, uint64_t *state, int npes)
{
	bool many;

	o->call = (enum plan_call)(plan_random(state) % PLAN_CALLS);
	o->team = (int)(plan_random(state) % PLAN_TEAMS);
	o->other = (int)(plan_random(state) % (unsigned int)npes);
	o->block = length(state, PLAN_LARGEST / 8 / (size_t)npes) / 8 * 8 + 8;
	many = o->call == PLAN_FCOLLECT || o->call == PLAN_COLLECT || o->call == PLAN_ALLTOALL;
	o->from = plan_random(state) % (PLAN_SOURCE - (size_t)npes * o->block) / 8 * 8;
	return take_room(used, PLAN_COLLECTIVE, many ? (size_t)npes * o->block : o->block, 8, state,
			 &o->to);
}

void plan_make(struct plan *p, uint64_t seed, long round, int npes)
{
	size_t used[64][PLAN_ARENAS] = { { 0 } }, collective_used = 0;
	uint64_t state = seed * 1000003 + (uint64_t)round;
	int wanted = 20 + (int)(plan_random(&state) % 60) * npes;
	struct plan_op *o;

	p->n = 0;
	for (int i = 0; i < wanted && p->n < PLAN_OPS; i++) {
		bool fits = true;

		o = &p->ops[p->n];
		memset(o, 0, sizeof(*o));
		o->kind = (enum plan_kind)(plan_random(&state) % (PLAN_KINDS + 2));
		if (o->kind >= PLAN_KINDS)
			o->kind = o->kind == PLAN_KINDS ? PLAN_PUT : PLAN_GET;
		o->pe = (int)(plan_random(&state) % (unsigned int)npes);
		o->other = (int)(plan_random(&state) % (unsigned int)npes);
		o->choice = (unsigned int)plan_random(&state);
		o->value = plan_random(&state);
		if (o->kind <= PLAN_SIGNAL)
			fits = transfer(o, used, &state);
		else if (o->kind == PLAN_COLLECTIVE_CALL)
			fits = collective(o, &collective_used, &state, npes);
		p->n += fits;
	}
}

/* The members are every `step`-th PE from `first` on. */
static void members(int team, int pe, int npes, int *first, int *step, int *n)
{
	int half = (npes + 1) / 2;

	*first = 0;
	*step = 1;
	*n = npes;
	if (team == 1) {
		*first = pe % 2;
		*step = 2;
		*n = (npes - *first + 1) / 2;
	} else if (team == 2) {
		*first = pe < half ? 0 : half;
		*n = pe < half ? half : npes - half;
	}
}

int plan_member(int team, int pe, int i, int npes)
{
	int first, step, n;

	members(team, pe, npes, &first, &step, &n);
	return first + i * step;
}

int plan_members(int team, int pe, int npes)
{
	int first, step, n;

	members(team, pe, npes, &first, &step, &n);
	return n;
}
