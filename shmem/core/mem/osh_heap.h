/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which parts of a region, and of regions added to it, are in use, recorded outside of them.  Two heaps of equal size
 * that got the same calls give the same offsets.  A block lies in one region.  For one thread at a time.
 */
#ifndef OSH_HEAP_H
#define OSH_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSH_HEAP_NONE SIZE_MAX
#define OSH_HEAP_UNIT 64 /* offsets and lengths are multiples of it: a cache line */

struct osh_heap;

/* A region of `bytes`, all free; has none of the region's memory itself.  NULL: no memory. */
struct osh_heap *osh_heap_create(size_t bytes);
void osh_heap_destroy(struct osh_heap *heap);

/*
 * Gets the memory that osh_heap_add() of a region up to the offset `end` needs; the heap is as before. False: no
 * memory.
 */
bool osh_heap_make_room(struct osh_heap *heap, size_t end);
/*
 * Adds a region of `bytes` at the offset `at`, a multiple of OSH_HEAP_UNIT at or after the end of all others.
 * osh_heap_make_room() for its end came before, and nothing was allocated since.
 */
void osh_heap_add(struct osh_heap *heap, size_t at, size_t bytes);
/* The offset of the end of the last region. */
size_t osh_heap_end(const struct osh_heap *heap);
/* Bytes of all regions. */
size_t osh_heap_total(const struct osh_heap *heap);

/*
 * The offset of `bytes`, at least 1, at a multiple of `alignment`, a power of two; or OSH_HEAP_NONE: it does not fit,
 * or there is no memory for its record.
 */
size_t osh_heap_alloc(struct osh_heap *heap, size_t bytes, size_t alignment);
/* The length of the block at this offset, or 0: none begins there. */
size_t osh_heap_length(const struct osh_heap *heap, size_t offset);
/* Frees the block that begins at this offset. False: none does. */
bool osh_heap_free(struct osh_heap *heap, size_t offset);
/*
 * Makes the block that begins there longer or shorter where it is. False: none does, there is no room, or `bytes` is 0;
 * it stays as it was. True without memory for a record: it is as long as asked, or longer.
 */
bool osh_heap_resize(struct osh_heap *heap, size_t offset, size_t bytes);
/* Is every byte of [offset, offset + bytes) in one block that is in use? */
bool osh_heap_inside(const struct osh_heap *heap, size_t offset, size_t bytes);
/* Bytes that are in use. */
size_t osh_heap_used(const struct osh_heap *heap);
/* Bytes of the longest free block; visits all that are free. */
size_t osh_heap_longest(const struct osh_heap *heap);

#endif
