/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_idtab.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "u_lock.h"
#include "u_log.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define NONE UINT32_MAX
#define GENERATION_MASK 0xFFFFFFu
#define CHUNK 1024u
#define CHUNKS (U_IDTAB_SLOTS / CHUNK)

/*
 * The number of slots that stay free between the deletion of an id and the reuse of
 * its slot: generations repeat late, and a look-up that races with a deletion finds
 * the old object, not the next one.
 */
#define SPARE_SLOTS (CHUNK / 2)

/* The content, which is no id, of slot 0, which is never used, until the kernel empties the table. */
#define MARK 1u

/* The fields of some slots that only u_idtab_add() and u_idtab_del() use. */
struct chunk {
	uint32_t generation[CHUNK];
	uint32_t parents[CHUNK]; /* generations up to this one are of a parent process */
	uint32_t next_free[CHUNK];
};

/* Whole pages, so that the kernel can be told to empty them in children. */
_Alignas(4096) struct u_idtab_slot u_idtab_slots[U_IDTAB_SLOTS];

/* Children of fork() keep these. */
static struct chunk *_Atomic chunks[CHUNKS];

static bool in_child;		   /* of fork(); written while the process has one thread */
static _Atomic bool told_of_child; /* the line is written */

/* Guards everything below, and the fields of struct chunk that are not slots. */
static struct u_lock lock = U_LOCK_INIT;
static uint32_t chunk_count;
static uint32_t free_count;
static uint32_t free_first = NONE;
static uint32_t free_last = NONE;

static struct chunk *chunk_of(uint32_t index)
{
	return atomic_load_explicit(&chunks[index / CHUNK], memory_order_relaxed);
}

/* Makes a slot free, to be used after all that are free already. */
static void free_append_locked(uint32_t index)
{
	chunk_of(index)->next_free[index % CHUNK] = NONE;
	if (free_last == NONE)
		free_first = index;
	else
		chunk_of(free_last)->next_free[free_last % CHUNK] = index;
	free_last = index;
	free_count++;
}

/* Takes the slot that has been free for longest; NONE: none is free. */
static uint32_t free_take_locked(void)
{
	uint32_t index = free_first;

	if (index == NONE)
		return NONE;
	free_first = chunk_of(index)->next_free[index % CHUNK];
	if (free_first == NONE)
		free_last = NONE;
	free_count--;
	return index;
}

/* Makes the slots of the next chunk, which is in `chunks`, free, except slot 0, and counts it. */
static void give_slots_locked(void)
{
	for (uint32_t i = chunk_count == 0; i < CHUNK; i++)
		free_append_locked(chunk_count * CHUNK + i);
	chunk_count++;
}

/* Adds a chunk.  Without memory or room for it the table uses its remaining free slots. */
static void grow_locked(void)
{
	struct chunk *chunk;

	if (chunk_count == CHUNKS)
		return;
	chunk = calloc(1, sizeof(*chunk));
	if (chunk == NULL)
		return;
	if (chunk_count == 0) {
		/* If it fails, fork() is still detected; see u_idtab_orphaned(). */
		madvise(u_idtab_slots, sizeof(u_idtab_slots), MADV_WIPEONFORK);
		atomic_store_explicit(&u_idtab_slots[0].id, MARK, memory_order_relaxed);
	}
	atomic_store_explicit(&chunks[chunk_count], chunk, memory_order_release);
	give_slots_locked();
}

/* Enters the object into a free slot; returns its id, which the slot did not have before. */
static uint64_t fill_locked(uint32_t index, uint8_t type, void *object)
{
	struct chunk *chunk = chunk_of(index);
	uint32_t i = index % CHUNK;
	uint32_t generation = (chunk->generation[i] + 1) & GENERATION_MASK;
	uint64_t id = (uint64_t)type << 56 | (uint64_t)generation << 32 | index;

	chunk->generation[i] = generation;
	atomic_store_explicit(&u_idtab_slots[index].object, object, memory_order_relaxed);
	/* Pairs with the acquire in u_idtab_get(): a thread that sees the id sees the object. */
	atomic_store_explicit(&u_idtab_slots[index].id, id, memory_order_release);
	return id;
}

uint64_t u_idtab_add(uint8_t type, void *object)
{
	uint32_t index;
	uint64_t id = 0;

	if (type == 0 || object == NULL || u_idtab_orphaned())
		return 0;
	u_lock_take(&lock);
	if (free_count <= SPARE_SLOTS)
		grow_locked();
	index = free_take_locked();
	if (index != NONE)
		id = fill_locked(index, type, object);
	u_lock_drop(&lock);
	return id;
}

void u_idtab_del(uint64_t id)
{
	uint32_t index = (uint32_t)id;

	if ((uint8_t)(id >> 56) == 0 || index >= U_IDTAB_SLOTS)
		return;
	u_lock_take(&lock);
	if (atomic_load_explicit(&u_idtab_slots[index].id, memory_order_relaxed) == id) {
		atomic_store_explicit(&u_idtab_slots[index].id, 0, memory_order_release);
		free_append_locked(index);
	}
	u_lock_drop(&lock);
}

/* ---- children of fork() ---------------------------------------------------------------------- */

bool u_idtab_orphaned(void)
{
	return atomic_load_explicit(&chunks[0], memory_order_acquire) != NULL &&
	       atomic_load_explicit(&u_idtab_slots[0].id, memory_order_relaxed) != MARK;
}

/* Is it an id that was in use before this process was forked? */
static bool of_parent(uint64_t id)
{
	uint32_t index = (uint32_t)id;
	uint32_t generation = (uint32_t)(id >> 32) & GENERATION_MASK;
	const struct chunk *chunk;

	if (!in_child || generation == 0 || index >= U_IDTAB_SLOTS)
		return false;
	chunk = atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire);
	return chunk != NULL && generation <= chunk->parents[index % CHUNK];
}

U_COLD void u_idtab_refused(uint64_t id)
{
	if (u_unlikely(u_idtab_orphaned() || of_parent(id)) &&
	    !atomic_exchange_explicit(&told_of_child, true, memory_order_relaxed))
		u_warn("vip",
		       "process %d is a child of fork(): handles of its parent are refused; "
		       "open a NIC in this process",
		       (int)getpid());
}

/* Marks all ids that the chunk's slots had up to now as those of a parent. */
static void disown_chunk(struct chunk *chunk)
{
	for (uint32_t i = 0; i < CHUNK; i++) {
		/* Skips one: another thread of the parent may have been about to store its id. */
		chunk->generation[i] = (chunk->generation[i] + 1) & GENERATION_MASK;
		chunk->parents[i] = chunk->generation[i];
	}
}

/* The objects stay allocated: the child has a copy of them, but cannot free it. */
void u_idtab_forked(void)
{
	struct chunk *chunk;

	lock = (struct u_lock)U_LOCK_INIT;
	in_child = true;
	atomic_store_explicit(&told_of_child, false, memory_order_relaxed);
	chunk_count = free_count = 0;
	free_first = free_last = NONE;
	while (chunk_count < CHUNKS &&
	       (chunk = atomic_load_explicit(&chunks[chunk_count], memory_order_relaxed)) != NULL) {
		disown_chunk(chunk);
		/* If the kernel has emptied the table this changes nothing. */
		for (uint32_t i = 0; i < CHUNK; i++)
			atomic_store_explicit(&u_idtab_slots[chunk_count * CHUNK + i].id, 0,
					      memory_order_relaxed);
		give_slots_locked();
	}
	if (chunk_count != 0)
		atomic_store_explicit(&u_idtab_slots[0].id, MARK, memory_order_relaxed);
}
