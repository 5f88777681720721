/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory at an address that the kernel does not choose for mmap() with any address. */
#ifndef APART_H
#define APART_H

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

/*
 * As mmap() with any address.  The kernel chooses addresses from the top, so memory that is unmapped here is not mapped
 * again by another thread or by an allocator: a gap stays a gap.  The addresses are low enough for all sanitizers.
 */
inline void *map_apart(size_t length, int rights, int flags, int fd = -1)
{
	const uintptr_t step = uintptr_t(64) << 20, first = 4 * step, last = 31 * step;

	for (uintptr_t at = first; at < last; at += step) {
		void *want = reinterpret_cast<void *>(at);
		void *got = mmap(want, length, rights, flags | MAP_FIXED_NOREPLACE, fd, 0);

		if (got == want)
			return got;
		/* Kernels before 4.17 treat the address as a hint. */
		if (got != MAP_FAILED)
			munmap(got, length);
	}
	return MAP_FAILED;
}

#endif
