/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap grows by extents, pieces of window memory of their own.  An extent begins at one offset of the heap in all
 * PEs, but not at one address, and not where the one before it ends; so a block lies in one extent.
 *
 * All PEs make the same calls, so each knows by itself when the heap has to grow, and by how much.  Only whether all of
 * them got the memory has to be agreed on.  By then each has written into its heap where its extent is; the others read
 * that when they first use it (osh_map.c, osh_target.c), so PEs that do not use each other exchange nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osh_blocks.h"
#include "osh_env.h"
#include "osh_grow.h"
#include "osh_heap.h"
#include "osh_limit.h"
#include "osh_map.h"
#include "osh_reduce.h"

#define PAGE 4096u

/* What is agreed on, by the minimum of each. */
struct accord {
	uint64_t refused;	   /* the number of a PE that got no memory, or of no PE */
	uint64_t bytes, not_bytes; /* of the extent, and the complement */
};

static void *windows[OSH_EXTENTS]; /* what VipxAllocMem() gave */

/* The table of this PE. */
static struct osh_extent_table *table(void)
{
	return osh_heap_at(osh_pe.extents_at);
}

/* Combines by the minimum; an osh_combine. */
static void minima(void *into, const void *from, size_t n)
{
	const uint64_t *f = from;
	uint64_t *i = into;

	for (; n > 0; n--, i++, f++)
		*i = *i < *f ? *i : *f;
}

/* Prints, once, why this PE got no memory for an extent. */
static OSH_COLD void say_refused(const char *fn, size_t bytes, VIP_RETURN rc)
{
	char limit[OSH_LIMIT_TEXT] = "";
	VIP_NIC_ATTRIBUTES nic;
	static bool told;

	if (told)
		return;
	told = true;
	if (VipQueryNic(osh_pe.nic, &nic) == VIP_SUCCESS &&
	    bytes + OSH_ALIGN_MAX > nic.MaxRegisterBlockBytes)
		snprintf(limit, sizeof(limit), "this machine allows %llu bytes at a time",
			 (unsigned long long)nic.MaxRegisterBlockBytes);
	else
		osh_limit_find(bytes, limit);
	osh_warn("%s: %zu bytes more do not fit into the symmetric heap here: %s%s%s", fn, bytes,
		 rc == VIP_SUCCESS ? "out of memory" : VipxErrorString(rc),
		 limit[0] != '\0' ? ": " : "", limit);
}

/* Gives back what take() got for the extent s, all or part of it. */
static void give_back(int s)
{
	int k = s - OSH_EXTENT;

	if (windows[k] != NULL)
		VipxFreeMem(osh_pe.nic, windows[k], osh_pe.seg[s].handle);
	windows[k] = NULL;
	free(osh_pe.extent[k].peers);
	memset(&osh_pe.extent[k], 0, sizeof(osh_pe.extent[k]));
	memset(&osh_pe.seg[s], 0, sizeof(osh_pe.seg[s]));
}

/*
 * Gets all that the extent s needs in this PE, and enters it where others read it. False: it has nothing, and *rc is
 * what VipxAllocMem() returned.
 */
static bool take(int s, size_t bytes, VIP_RETURN *rc)
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_TRUE, VIP_TRUE };
	struct osh_segment *seg = &osh_pe.seg[s];
	struct osh_extent *x = &osh_pe.extent[s - OSH_EXTENT];
	VIP_PVOID at;

	/* As the heap begins, so that offsets and addresses have equal alignments. */
	*rc = VipxAllocMem(osh_pe.nic, bytes + OSH_ALIGN_MAX, &attrs, &at, &seg->handle);
	if (*rc != VIP_SUCCESS)
		return false;
	windows[s - OSH_EXTENT] = at;
	seg->base = (uint8_t *)osh_align_up((uintptr_t)at, OSH_ALIGN_MAX);
	seg->len = bytes;
	x->start = osh_align_up(osh_blocks_end(), OSH_ALIGN_MAX);
	x->peers = calloc((size_t)osh_pe.n, sizeof(*x->peers));
	if (x->peers == NULL || !osh_blocks_make_room(x->start + bytes)) {
		give_back(s);
		return false;
	}
	table()->at[s - OSH_EXTENT] = (struct osh_remote){ (uintptr_t)seg->base, seg->handle };
	return true;
}

/* Returns the first PE that got no memory, or osh_pe.n; PEs that ask for another number of bytes end the job. */
static int agree(const char *fn, bool taken, size_t bytes)
{
	struct accord a = { taken ? (uint64_t)osh_pe.n : (uint64_t)osh_pe.me, bytes,
			    ~(uint64_t)bytes };
	uint64_t *at = table()->accord;

	static_assert(sizeof(a) == sizeof(table()->accord), "the table has room for it");
	memcpy(at, &a, sizeof(a));
	osh_reduce(fn, osh_world, at, at, sizeof(*at), sizeof(a) / sizeof(*at), minima);
	memcpy(&a, at, sizeof(a));
	if (a.bytes != ~a.not_bytes)
		osh_fatal(
			"%s: the heap of one PE is to grow by %llu bytes, that of another by %llu: all "
			"have to allocate alike",
			fn, (unsigned long long)a.bytes, (unsigned long long)~a.not_bytes);
	return (int)a.refused;
}

/* Adds an extent of so many bytes, whole pages. False, at all PEs: some PE got no memory. */
static bool add(const char *fn, size_t bytes, bool last_try)
{
	int k = osh_extents(), s = OSH_EXTENT + k, first;
	VIP_RETURN rc = VIP_SUCCESS;
	bool taken = take(s, bytes, &rc);

	first = agree(fn, taken, bytes);
	if (first != osh_pe.n) {
		if (taken)
			give_back(s);
		if (first == osh_pe.me && last_try)
			say_refused(fn, bytes, rc);
		return false;
	}
	osh_extent_of(osh_pe.me, s)->at = osh_pe.seg[s].base;
	osh_map_publish_extent(osh_pe.me, s);
	/* A: all of the extent before it counts; pairs with osh_extents(). */
	atomic_store_explicit(&osh_pe.extents, k + 1, memory_order_release);
	osh_blocks_add(osh_pe.extent[k].start, bytes);
	return true;
}

/*
 * The heap doubles, so that few extents reach any bound; the last one takes all that is left of it.  Where that is
 * refused, an extent may do that has room for this allocation alone.
 */
bool osh_grow(const char *fn, size_t n, size_t alignment)
{
	int k = osh_extents();
	size_t have = osh_blocks_total(), most = osh_env.heap_max;
	size_t left = most > have ? most - have : 0, least, bytes;

	if (k == OSH_EXTENTS || n > left)
		return false;
	least = osh_align_up(n + (alignment > OSH_HEAP_UNIT ? alignment : 0), PAGE);
	if (least > left)
		return false;
	bytes = k == OSH_EXTENTS - 1 || have > left ? left : have;
	if (bytes < least)
		bytes = least;
	if (add(fn, bytes, bytes == least))
		return true;
	return bytes > least && add(fn, least, true);
}

void osh_grow_end(void)
{
	int k = osh_extents();

	atomic_store_explicit(&osh_pe.extents, 0, memory_order_relaxed);
	while (k > 0)
		give_back(OSH_EXTENT + --k);
}
