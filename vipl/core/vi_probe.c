/* SPDX-License-Identifier: BSD-2-Clause */
#include "vi_probe.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "u_base.h"
#include "u_maps.h"
#include "vi_tpt.h"

/* Are all pages mapped, with whatever rights?  0, or -EINVAL: one is not. */
static int range_mapped(uint8_t *start, uint64_t len)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned char seen[256];

	while (len > 0) {
		uint64_t part = u_min64(len, page * sizeof(seen));

		if (mincore(start, part, seen) != 0)
			return -EINVAL;
		start += part;
		len -= part;
	}
	return 0;
}

/*
 * Does madvise() tell whether a page may be populated?  Linux before 5.14 refuses the advice for all memory, and
 * emulators of user programs accept any advice for all memory: the former shows at a page that can be read, the latter
 * at one that cannot.  True also if that cannot be found out now.
 */
static bool populate_tells(void)
{
	static _Atomic int answer; /* 0 not known yet, 1 no, 2 yes */
	int known = atomic_load_explicit(&answer, memory_order_relaxed);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bool tells;
	void *probe;

	if (known != 0)
		return known == 2;
	probe = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (probe == MAP_FAILED)
		return true;
	tells = u_maps_populate(probe, page, MADV_POPULATE_READ) == 0 &&
		mprotect(probe, page, PROT_NONE) == 0 &&
		u_maps_populate(probe, page, MADV_POPULATE_READ) != 0;
	munmap(probe, page);
	atomic_store_explicit(&answer, tells ? 2 : 1, memory_order_relaxed);
	return tells;
}

/*
 * Gives the rights to whole pages, from the list of mappings, which does not show that a file ends before its mapping.
 * 0, or -EINVAL: a page is not mapped or not readable.  Without the list both rights are assumed for memory that is
 * mapped.
 */
static int probe_mappings(uint8_t *start, uint64_t span, uint32_t *rights_out)
{
	bool writable;
	int err = u_maps_check(start, span, &writable);

	*rights_out = VI_READ | VI_WRITE;
	if (err == 0 && !writable)
		*rights_out = VI_READ;
	if (err == 0 || err == -EFAULT)
		return err == 0 ? 0 : -EINVAL;
	return range_mapped(start, span);
}

/*
 * Gives the rights to whole pages by populating every one; by the list if madvise() does not tell.  0; -EINVAL: a page
 * is not mapped or not readable; -ENOMEM: not all can be made present.
 */
static int probe_pages(uint8_t *start, uint64_t span, uint32_t *rights_out)
{
	int err;

	if (!populate_tells())
		return probe_mappings(start, span, rights_out);
	err = u_maps_populate(start, span, MADV_POPULATE_WRITE);
	*rights_out = VI_READ | VI_WRITE;
	if (err == 0)
		return 0;
	if (err == -EINVAL || err == -EFAULT) {
		*rights_out = VI_READ;
		err = u_maps_populate(start, span, MADV_POPULATE_READ);
	}
	if (err == -ENOMEM && range_mapped(start, span) == 0)
		return -ENOMEM;
	return err != 0 ? -EINVAL : 0;
}

int vi_probe_range(void *addr, uint64_t len, uint32_t *rights_out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *start = (uint8_t *)((uintptr_t)addr & ~(page - 1));
	uint64_t span = u_align_up((uint64_t)((uint8_t *)addr - start) + len, page);
	bool writable;

	if (u_maps_check_private(start, span, &writable) != 0)
		return probe_pages(start, span, rights_out);
	*rights_out = writable ? VI_READ | VI_WRITE : VI_READ;
	return 0;
}
