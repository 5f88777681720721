/* SPDX-License-Identifier: BSD-2-Clause */
/* The growth of the symmetric heap. */
#ifndef OSH_GROW_H
#define OSH_GROW_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Adds an extent to the heap in which n bytes, at least 1, at a multiple of `alignment` have room. Collective: all PEs
 * call it with equal arguments and heaps of equal state; others end the job. False, at all PEs, and nothing has
 * changed: the bound is reached, or a PE gets no memory, which the first of these says on standard error, once.
 */
bool osh_grow(const char *fn, size_t n, size_t alignment);

/* Frees all extents. No PE uses the memory of another any more, and none of another is mapped here. */
void osh_grow_end(void);

#endif
