/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "osh_blocks.h"
#include "osh_heap.h"
#include "osh_state.h"

static struct {
	pthread_mutex_t lock;
	struct osh_heap *heap;
} blocks = { .lock = PTHREAD_MUTEX_INITIALIZER };

int osh_blocks_open(void)
{
	blocks.heap = osh_heap_create(osh_pe.seg[OSH_HEAP].len - osh_pe.internal_bytes);
	return blocks.heap == NULL ? -1 : 0;
}

void osh_blocks_close(void)
{
	osh_heap_destroy(blocks.heap);
	blocks.heap = NULL;
}

bool osh_blocks_are_open(void)
{
	return blocks.heap != NULL;
}

/* The offset of an address in the program's part; any other address gives one that is too large for any block. */
static size_t offset_of(const void *p)
{
	size_t offset;
	int s = osh_segment_of(p, 1, &offset);

	if (s == OSH_HEAP)
		return offset - osh_pe.internal_bytes;
	if (s >= OSH_EXTENT && s < OSH_SEGMENTS)
		return osh_pe.extent[s - OSH_EXTENT].start + offset;
	return OSH_HEAP_NONE;
}

/* The address of an offset that the heap gave. */
static void *address_of(size_t offset)
{
	int k = osh_extents();

	while (k > 0 && offset < osh_pe.extent[k - 1].start)
		k--;
	if (k == 0)
		return osh_pe.seg[OSH_HEAP].base + osh_pe.internal_bytes + offset;
	return osh_pe.seg[OSH_EXTENT + k - 1].base + (offset - osh_pe.extent[k - 1].start);
}

void *osh_blocks_alloc(size_t n, size_t alignment)
{
	size_t offset;

	pthread_mutex_lock(&blocks.lock);
	offset = osh_heap_alloc(blocks.heap, n, alignment);
	pthread_mutex_unlock(&blocks.lock);
	return offset == OSH_HEAP_NONE ? NULL : address_of(offset);
}

size_t osh_blocks_length(const void *p)
{
	size_t n;

	pthread_mutex_lock(&blocks.lock);
	n = osh_heap_length(blocks.heap, offset_of(p));
	pthread_mutex_unlock(&blocks.lock);
	return n;
}

void osh_blocks_free(void *p)
{
	pthread_mutex_lock(&blocks.lock);
	osh_heap_free(blocks.heap, offset_of(p));
	pthread_mutex_unlock(&blocks.lock);
}

bool osh_blocks_resize(void *p, size_t n)
{
	bool done;

	pthread_mutex_lock(&blocks.lock);
	done = osh_heap_resize(blocks.heap, offset_of(p), n);
	pthread_mutex_unlock(&blocks.lock);
	return done;
}

bool osh_blocks_have(const void *addr, size_t n)
{
	bool inside;

	pthread_mutex_lock(&blocks.lock);
	inside = osh_heap_inside(blocks.heap, offset_of(addr), n);
	pthread_mutex_unlock(&blocks.lock);
	return inside;
}

void osh_blocks_count(size_t *used, size_t *all, size_t *longest)
{
	pthread_mutex_lock(&blocks.lock);
	*used = osh_heap_used(blocks.heap);
	*all = osh_heap_total(blocks.heap);
	*longest = osh_heap_longest(blocks.heap);
	pthread_mutex_unlock(&blocks.lock);
}

bool osh_blocks_make_room(size_t end)
{
	bool made;

	pthread_mutex_lock(&blocks.lock);
	made = osh_heap_make_room(blocks.heap, end);
	pthread_mutex_unlock(&blocks.lock);
	return made;
}

void osh_blocks_add(size_t at, size_t bytes)
{
	pthread_mutex_lock(&blocks.lock);
	osh_heap_add(blocks.heap, at, bytes);
	pthread_mutex_unlock(&blocks.lock);
}

size_t osh_blocks_end(void)
{
	size_t end;

	pthread_mutex_lock(&blocks.lock);
	end = osh_heap_end(blocks.heap);
	pthread_mutex_unlock(&blocks.lock);
	return end;
}

size_t osh_blocks_total(void)
{
	size_t total;

	pthread_mutex_lock(&blocks.lock);
	total = osh_heap_total(blocks.heap);
	pthread_mutex_unlock(&blocks.lock);
	return total;
}
