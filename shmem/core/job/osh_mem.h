/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective allocation in the symmetric heap: as in the specification. */
#ifndef OSH_MEM_H
#define OSH_MEM_H

#include <stddef.h>

void *osh_malloc(const char *fn, size_t n, long hints);
void *osh_calloc(const char *fn, size_t count, size_t size);
void *osh_align(const char *fn, size_t alignment, size_t n);
void *osh_realloc(const char *fn, void *p, size_t n);
void osh_free(const char *fn, void *p);

#endif
