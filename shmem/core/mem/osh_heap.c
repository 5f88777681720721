/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLSF (two-level segregated fit, Masmano and others), with its records outside of the region.
 *
 * Blocks are entries of an array, linked in the order of their addresses.  Free ones are also in a
 * list of their class: classes halve each power of two SUBS times, and two levels of bit masks find
 * the lowest class that is not empty and long enough, so both calls take constant time.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "osh_base.h"
#include "osh_heap.h"

#define SUB_BITS 4
#define SUBS (1u << SUB_BITS)
#define CLASSES 64u
#define NIL 0u /* the index of no block */

struct block {
	size_t unit, units;	/* where it begins, and its length, in units */
	uint32_t before, after; /* neighbours by address, in its region */
	uint32_t prev, next;	/* of a free block, in its class; `next` also of unused entries */
	bool used;
};

struct osh_heap {
	size_t units;	      /* from the start of the first region to the end of the last */
	size_t total, used;   /* units of the regions, and of blocks in use */
	size_t mapped;	      /* units that `begins` has room for */
	struct block *blocks; /* entry 0 is NIL */
	uint32_t count, room, spare;
	uint32_t *begins; /* for each unit: the block in use that begins there, or NIL */
	uint64_t mask;
	uint32_t submask[CLASSES];
	uint32_t heads[CLASSES][SUBS];
};

/* The class of a block of so many units, not 0. */
static void class_of(size_t units, unsigned int *level, unsigned int *sub)
{
	unsigned int top = 63u - (unsigned int)__builtin_clzll(units);

	if (top < SUB_BITS) {
		*level = 0;
		*sub = (unsigned int)units;
	} else {
		*level = top - SUB_BITS + 1;
		*sub = (unsigned int)(units >> (top - SUB_BITS)) & (SUBS - 1);
	}
}

/* Puts free block i into the list of its class. */
static void list_add(struct osh_heap *h, uint32_t i)
{
	struct block *p = &h->blocks[i];
	unsigned int level, sub;

	class_of(p->units, &level, &sub);
	p->prev = NIL;
	p->next = h->heads[level][sub];
	if (p->next != NIL)
		h->blocks[p->next].prev = i;
	h->heads[level][sub] = i;
	h->submask[level] |= 1u << sub;
	h->mask |= 1ull << level;
}

/* Takes block i out of the list of its class. */
static void list_remove(struct osh_heap *h, uint32_t i)
{
	struct block *p = &h->blocks[i];
	unsigned int level, sub;

	class_of(p->units, &level, &sub);
	if (p->next != NIL)
		h->blocks[p->next].prev = p->prev;
	if (p->prev != NIL) {
		h->blocks[p->prev].next = p->next;
		return;
	}
	h->heads[level][sub] = p->next;
	if (p->next == NIL) {
		h->submask[level] &= ~(1u << sub);
		if (h->submask[level] == 0)
			h->mask &= ~(1ull << level);
	}
}

/* An entry for a new block, for the caller to fill, or NIL: no memory. May move all entries, and voids pointers. */
static uint32_t entry_get(struct osh_heap *h)
{
	uint32_t i = h->spare;

	if (i != NIL) {
		h->spare = h->blocks[i].next;
		return i;
	}
	if (h->count == h->room) {
		struct block *more = realloc(h->blocks, 2 * (size_t)h->room * sizeof(*more));

		if (more == NULL || h->room > UINT32_MAX / 2) {
			h->blocks = more == NULL ? h->blocks : more;
			return NIL;
		}
		h->blocks = more;
		h->room *= 2;
	}
	return h->count++;
}

/* Gives back an entry that is in no list. */
static void entry_put(struct osh_heap *h, uint32_t i)
{
	h->blocks[i].next = h->spare;
	h->spare = i;
}

struct osh_heap *osh_heap_create(size_t bytes)
{
	struct osh_heap *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->units = h->mapped = bytes / OSH_HEAP_UNIT;
	h->room = 64;
	h->count = 1;
	h->blocks = calloc(h->room, sizeof(*h->blocks));
	h->begins = mmap(NULL, (h->units + 1) * sizeof(*h->begins), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->begins == MAP_FAILED)
		h->begins = NULL;
	if (h->blocks == NULL || h->begins == NULL) {
		osh_heap_destroy(h);
		return NULL;
	}
	if (h->units > 0)
		osh_heap_add(h, 0, bytes);
	return h;
}

bool osh_heap_make_room(struct osh_heap *h, size_t end)
{
	size_t units = end / OSH_HEAP_UNIT;
	uint32_t entry, *begins;

	if (units > h->mapped) {
		begins = mremap(h->begins, (h->mapped + 1) * sizeof(*begins),
				(units + 1) * sizeof(*begins), MREMAP_MAYMOVE);
		if (begins == MAP_FAILED)
			return false;
		h->begins = begins;
		h->mapped = units;
	}
	entry = entry_get(h);
	if (entry == NIL)
		return false;
	entry_put(h, entry);
	return true;
}

void osh_heap_add(struct osh_heap *h, size_t at, size_t bytes)
{
	uint32_t all = entry_get(h);

	h->blocks[all] =
		(struct block){ .unit = at / OSH_HEAP_UNIT, .units = bytes / OSH_HEAP_UNIT };
	h->units = h->blocks[all].unit + h->blocks[all].units;
	h->total += h->blocks[all].units;
	list_add(h, all);
}

void osh_heap_destroy(struct osh_heap *h)
{
	if (h == NULL)
		return;
	if (h->begins != NULL)
		munmap(h->begins, (h->mapped + 1) * sizeof(*h->begins));
	free(h->blocks);
	free(h);
}

/* A free block of at least so many units, which stays in its list, or NIL; may miss one that is hardly long enough. */
static uint32_t find(const struct osh_heap *h, size_t units)
{
	unsigned int level, sub;
	uint64_t levels;
	uint32_t subs;

	class_of(units, &level, &sub);
	/* The first block of its own class may be long enough; those of the next ones are. */
	for (uint32_t i = h->heads[level][sub], tries = 8; i != NIL && tries > 0; tries--) {
		if (h->blocks[i].units >= units)
			return i;
		i = h->blocks[i].next;
	}
	subs = sub + 1 < SUBS ? h->submask[level] & (~0u << (sub + 1)) : 0;
	if (subs == 0) {
		levels = h->mask & (~0ull << (level + 1));
		if (levels == 0)
			return NIL;
		level = (unsigned int)__builtin_ctzll(levels);
		subs = h->submask[level];
	}
	return h->heads[level][__builtin_ctz(subs)];
}

/*
 * Cuts block i, which is in no list, after `units`, at most its length; what follows becomes a free block, in its list.
 * False: no memory, and the block is whole.
 */
static bool split(struct osh_heap *h, uint32_t i, size_t units)
{
	struct block *p;
	uint32_t rest;

	if (h->blocks[i].units == units)
		return true;
	rest = entry_get(h);
	if (rest == NIL)
		return false;
	p = &h->blocks[i];
	h->blocks[rest] = (struct block){
		.unit = p->unit + units, .units = p->units - units, .before = i, .after = p->after
	};
	if (p->after != NIL)
		h->blocks[p->after].before = rest;
	p->after = rest;
	p->units = units;
	list_add(h, rest);
	return true;
}

/* Joins block i, which is in no list, with the block after it, which is in none either. */
static void join_next(struct osh_heap *h, uint32_t i)
{
	uint32_t next = h->blocks[i].after;

	h->blocks[i].units += h->blocks[next].units;
	h->blocks[i].after = h->blocks[next].after;
	if (h->blocks[i].after != NIL)
		h->blocks[h->blocks[i].after].before = i;
	entry_put(h, next);
}

/* Block i is in no list: makes it free, together with free neighbours. */
static void give_back(struct osh_heap *h, uint32_t i)
{
	uint32_t after = h->blocks[i].after, before = h->blocks[i].before;

	h->blocks[i].used = false;
	if (after != NIL && !h->blocks[after].used) {
		list_remove(h, after);
		join_next(h, i);
	}
	if (before != NIL && !h->blocks[before].used) {
		list_remove(h, before);
		join_next(h, before);
		i = before;
	}
	list_add(h, i);
}

/* Marks block i, which is in no list, as used, and counts its units. */
static void take(struct osh_heap *h, uint32_t i)
{
	struct block *p = &h->blocks[i];

	p->used = true;
	h->begins[p->unit] = i;
	h->used += p->units;
}

size_t osh_heap_alloc(struct osh_heap *h, size_t bytes, size_t alignment)
{
	size_t step = alignment <= OSH_HEAP_UNIT ? 1 : alignment / OSH_HEAP_UNIT, units, skip;
	uint32_t i, first;

	if (bytes == 0 || bytes > h->units * OSH_HEAP_UNIT || step > h->units)
		return OSH_HEAP_NONE;
	units = (bytes + OSH_HEAP_UNIT - 1) / OSH_HEAP_UNIT;
	i = find(h, units + step - 1);
	if (i == NIL)
		return OSH_HEAP_NONE;
	list_remove(h, i);
	skip = osh_align_up(h->blocks[i].unit, step) - h->blocks[i].unit;
	if (skip > 0) {
		if (!split(h, i, skip)) {
			list_add(h, i);
			return OSH_HEAP_NONE;
		}
		first = i;
		i = h->blocks[first].after;
		list_remove(h, i);
		list_add(h, first);
	}
	if (!split(h, i, units)) {
		give_back(h, i);
		return OSH_HEAP_NONE;
	}
	take(h, i);
	return h->blocks[i].unit * OSH_HEAP_UNIT;
}

/* The block in use that begins at this offset, or NIL. */
static uint32_t piece_at(const struct osh_heap *h, size_t offset)
{
	if (offset % OSH_HEAP_UNIT != 0 || offset / OSH_HEAP_UNIT >= h->units)
		return NIL;
	return h->begins[offset / OSH_HEAP_UNIT];
}

size_t osh_heap_length(const struct osh_heap *h, size_t offset)
{
	uint32_t i = piece_at(h, offset);

	return i == NIL ? 0 : h->blocks[i].units * OSH_HEAP_UNIT;
}

bool osh_heap_free(struct osh_heap *h, size_t offset)
{
	uint32_t i = piece_at(h, offset);

	if (i == NIL)
		return false;
	h->begins[offset / OSH_HEAP_UNIT] = NIL;
	h->used -= h->blocks[i].units;
	give_back(h, i);
	return true;
}

bool osh_heap_resize(struct osh_heap *h, size_t offset, size_t bytes)
{
	size_t units = (bytes + OSH_HEAP_UNIT - 1) / OSH_HEAP_UNIT, old;
	uint32_t i = piece_at(h, offset), after;

	if (i == NIL || bytes == 0 || bytes > h->units * OSH_HEAP_UNIT)
		return false;
	old = h->blocks[i].units;
	after = h->blocks[i].after;
	if (units > old) {
		if (after == NIL || h->blocks[after].used || h->blocks[after].units < units - old)
			return false;
		list_remove(h, after);
		join_next(h, i);
	}
	if (h->blocks[i].units > units && split(h, i, units)) {
		uint32_t rest = h->blocks[i].after;

		list_remove(h, rest);
		give_back(h, rest);
	}
	h->used += h->blocks[i].units - old;
	return true;
}

bool osh_heap_inside(const struct osh_heap *h, size_t offset, size_t bytes)
{
	size_t unit = offset / OSH_HEAP_UNIT;
	const struct block *p;

	if (unit >= h->units)
		return false;
	/* Blocks are long or few where this is slow, and only the checks of the debug mode ask. */
	while (h->begins[unit] == NIL) {
		if (unit-- == 0)
			return false;
	}
	p = &h->blocks[h->begins[unit]];
	offset -= p->unit * OSH_HEAP_UNIT;
	return offset < p->units * OSH_HEAP_UNIT && bytes <= p->units * OSH_HEAP_UNIT - offset;
}

size_t osh_heap_end(const struct osh_heap *h)
{
	return h->units * OSH_HEAP_UNIT;
}

size_t osh_heap_total(const struct osh_heap *h)
{
	return h->total * OSH_HEAP_UNIT;
}

size_t osh_heap_used(const struct osh_heap *h)
{
	return h->used * OSH_HEAP_UNIT;
}

size_t osh_heap_longest(const struct osh_heap *h)
{
	size_t longest = 0;

	for (unsigned int level = 0; level < CLASSES; level++) {
		for (unsigned int sub = 0; sub < SUBS; sub++) {
			for (uint32_t i = h->heads[level][sub]; i != NIL; i = h->blocks[i].next) {
				if (h->blocks[i].units > longest)
					longest = h->blocks[i].units;
			}
		}
	}
	return longest * OSH_HEAP_UNIT;
}
