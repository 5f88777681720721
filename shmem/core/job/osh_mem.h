/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective allocation in the symmetric heap: as in the specification. */
#ifndef OSH_MEM_H
#define OSH_MEM_H

#include <stddef.h>

/* These three are barriers, but for 0 bytes. NULL, at all PEs: the heap has no room, or 0 bytes are asked for. */
void *osh_malloc(const char *fn, size_t n, long hints);
void *osh_calloc(const char *fn, size_t count, size_t size);
/* NULL also where the alignment is no power of two or above OSH_ALIGN_MAX; then it is no barrier. */
void *osh_align(const char *fn, size_t alignment, size_t n);
/*
 * A barrier, too; may move the block, and allocates one where p is NULL. NULL for lack of room leaves the block as it
 * is; n = 0 frees it. As osh_free() it ends the job where no block begins at p.
 */
void *osh_realloc(const char *fn, void *p, size_t n);
void osh_free(const char *fn, void *p);

#endif
