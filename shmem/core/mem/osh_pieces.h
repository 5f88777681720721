/* SPDX-License-Identifier: BSD-2-Clause */
/* The program's part of the symmetric heap: what of it is allocated. Thread-safe. */
#ifndef OSH_PIECES_H
#define OSH_PIECES_H

#include <stdbool.h>
#include <stddef.h>

int osh_pieces_open(void); /* 0, or -1: out of memory */
void osh_pieces_close(void);
bool osh_pieces_are_open(void);

/* The address of n bytes, or NULL: they do not fit. */
void *osh_pieces_alloc(size_t n, size_t alignment);
/* The length of the piece at this address, or 0: none begins there. */
size_t osh_pieces_length(const void *p);
void osh_pieces_free(void *p);
/* Makes the piece longer or shorter where it is.  False: it stays as it was. */
bool osh_pieces_resize(void *p, size_t n);
/* Are all of these bytes in one piece? */
bool osh_pieces_have(const void *addr, size_t n);
/* Bytes that are in use, there are in all, and of the longest free piece. */
void osh_pieces_count(size_t *used, size_t *all, size_t *longest);

#endif
