/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "osh_heap.h"
#include "osh_pieces.h"
#include "osh_state.h"

static struct {
	pthread_mutex_t lock;
	struct osh_heap *heap;
} pieces = { .lock = PTHREAD_MUTEX_INITIALIZER };

int osh_pieces_open(void)
{
	pieces.heap = osh_heap_create(osh_pe.seg[OSH_HEAP].len - osh_pe.inner);
	return pieces.heap == NULL ? -1 : 0;
}

void osh_pieces_close(void)
{
	osh_heap_destroy(pieces.heap);
	pieces.heap = NULL;
}

bool osh_pieces_are_open(void)
{
	return pieces.heap != NULL;
}

/* An address before the program's part gives an offset that is too large for any piece. */
static size_t offset_of(const void *p)
{
	return (size_t)((uintptr_t)p - (uintptr_t)osh_pe.seg[OSH_HEAP].base) - osh_pe.inner;
}

void *osh_pieces_alloc(size_t n, size_t alignment)
{
	size_t offset;

	pthread_mutex_lock(&pieces.lock);
	offset = osh_heap_alloc(pieces.heap, n, alignment);
	pthread_mutex_unlock(&pieces.lock);
	return offset == OSH_HEAP_NONE ? NULL : osh_pe.seg[OSH_HEAP].base + osh_pe.inner + offset;
}

size_t osh_pieces_length(const void *p)
{
	size_t n;

	pthread_mutex_lock(&pieces.lock);
	n = osh_heap_length(pieces.heap, offset_of(p));
	pthread_mutex_unlock(&pieces.lock);
	return n;
}

void osh_pieces_free(void *p)
{
	pthread_mutex_lock(&pieces.lock);
	osh_heap_free(pieces.heap, offset_of(p));
	pthread_mutex_unlock(&pieces.lock);
}

bool osh_pieces_resize(void *p, size_t n)
{
	bool done;

	pthread_mutex_lock(&pieces.lock);
	done = osh_heap_resize(pieces.heap, offset_of(p), n);
	pthread_mutex_unlock(&pieces.lock);
	return done;
}

bool osh_pieces_have(const void *addr, size_t n)
{
	bool inside;

	pthread_mutex_lock(&pieces.lock);
	inside = osh_heap_inside(pieces.heap, offset_of(addr), n);
	pthread_mutex_unlock(&pieces.lock);
	return inside;
}

void osh_pieces_count(size_t *used, size_t *all, size_t *longest)
{
	pthread_mutex_lock(&pieces.lock);
	*used = osh_heap_used(pieces.heap);
	*longest = osh_heap_longest(pieces.heap);
	pthread_mutex_unlock(&pieces.lock);
	*all = osh_pe.seg[OSH_HEAP].len - osh_pe.inner;
}
