/* SPDX-License-Identifier: BSD-2-Clause */
/* The program's part of the symmetric heap: what of it is allocated. Thread-safe. */
#ifndef OSH_BLOCKS_H
#define OSH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

/* All bytes are free then. After osh_open(), which makes the heap, and before all others but osh_blocks_are_open(). */
int osh_blocks_open(void); /* 0, or -1: out of memory */
void osh_blocks_close(void);
bool osh_blocks_are_open(void);

/* The address of n bytes, in this PE alone, at a multiple of a power of two; or NULL: they do not fit, or n is 0. */
void *osh_blocks_alloc(size_t n, size_t alignment);
/* The length of the block at this address, or 0: none begins there. */
size_t osh_blocks_length(const void *p);
/* Does nothing where no block begins at this address. */
void osh_blocks_free(void *p);
/* Makes the block longer or shorter where it is.  False: no room, no block, or n is 0; it stays as it was. */
bool osh_blocks_resize(void *p, size_t n);
/* Are all of these bytes in one block that is in use? */
bool osh_blocks_have(const void *addr, size_t n);
/*
 * For the growth of the heap: osh_heap_make_room() and osh_heap_add(), osh_heap_end() and osh_heap_total() of the
 * program's part.  An extent that is added has its entry in osh_pe, and counts there.
 */
bool osh_blocks_make_room(size_t end);
void osh_blocks_add(size_t at, size_t bytes);
size_t osh_blocks_end(void);
size_t osh_blocks_total(void);
/* Stores the bytes in use, all bytes of the program's part of the heap, and those of the longest free block. */
void osh_blocks_count(size_t *used, size_t *all, size_t *longest);

#endif
