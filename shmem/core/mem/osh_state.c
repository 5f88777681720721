/* SPDX-License-Identifier: BSD-2-Clause */
#include "osh_state.h"

struct osh_state osh_pe;

_Noreturn OSH_COLD void osh_not_in_job(const char *fn)
{
	if (osh_pe.child)
		osh_fatal(
			"%s: called in a child of fork(), which is no PE: only the process that has called "
			"shmem_init may",
			fn != NULL ? fn : "a routine for a team");
	osh_fatal("%s: called before shmem_init or after shmem_finalize", fn);
}

int osh_extent_with(const void *addr, size_t n, size_t *offset)
{
	int end = OSH_EXTENT + osh_extents();

	for (int s = OSH_EXTENT; s < end; s++) {
		size_t off = (size_t)((uintptr_t)addr - (uintptr_t)osh_pe.seg[s].base);

		if (off < osh_pe.seg[s].len && n <= osh_pe.seg[s].len - off) {
			*offset = off;
			return s;
		}
	}
	return OSH_SEGMENTS;
}

void *osh_extent_near(const void *addr, size_t n, int pe)
{
	struct osh_peer_extent *x;
	size_t off = 0, span;
	int s = osh_extent_with(addr, n, &off);

	if (s == OSH_SEGMENTS || n == 0)
		return NULL;
	x = osh_extent_of(pe, s);
	/* R: pairs with osh_map_publish_extent(): `at` is set where the span is not 0. */
	span = atomic_load_explicit(&x->span, memory_order_acquire);
	return span > 0 ? x->at + off : NULL;
}

void osh_state_leave_to_parent(void)
{
	if (osh_pe.peers == NULL)
		return;
	osh_pe.child = true;
	osh_pe.peers = NULL; /* no routine reaches a PE from here on */
	osh_pe.n = 0;
}
