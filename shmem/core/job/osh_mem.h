/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective allocation in the symmetric heap: as in the specification. */
#ifndef OSH_MEM_H
#define OSH_MEM_H

#include <stddef.h>

/*
 * A barrier, but for n = 0. NULL, at all PEs: the heap has no room, or n is 0. `hints` have no effect. As all of these,
 * it ends the process outside of a job.
 */
void *osh_malloc(const char *fn, size_t n, long hints);
/* As osh_malloc(), of zeros; a product that overflows has no room. */
void *osh_calloc(const char *fn, size_t count, size_t size);
/* As osh_malloc(). NULL also where the alignment is no power of two or above OSH_ALIGN_MAX; then it is no barrier. */
void *osh_align(const char *fn, size_t alignment, size_t n);
/*
 * A barrier; may move the block, and allocates one where p is NULL. NULL for lack of room leaves the block as it is;
 * n = 0 frees it. Where no block begins at p, the job ends.
 */
void *osh_realloc(const char *fn, void *p, size_t n);
/* A barrier, after which the block is free. Does nothing for NULL; where no block begins at p, the job ends. */
void osh_free(const char *fn, void *p);

#endif
