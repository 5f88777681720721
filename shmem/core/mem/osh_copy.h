/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef OSH_COPY_H
#define OSH_COPY_H

#include <stddef.h>
#include <string.h>

/* From here on the caches do not hold the data. */
#define OSH_COPY_LONG ((size_t)16 << 20)

/* As memcpy(), but without a result, for OSH_COPY_LONG bytes or more; fewer are slow, not wrong. */
void osh_copy_long(void *to, const void *from, size_t n);

/* As memcpy(). */
static inline void osh_copy(void *to, const void *from, size_t n)
{
	if (__builtin_expect(n < OSH_COPY_LONG, 1))
		memcpy(to, from, n);
	else
		osh_copy_long(to, from, n);
}

#endif
