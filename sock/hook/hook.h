/* SPDX-License-Identifier: BSD-2-Clause */
/* For the files that define the replaced calls. */
#ifndef HOOK_H
#define HOOK_H

#include "vs_obj.h"
#include "vs_real.h"

/* The compiler's headers declare pointers as never NULL that some programs pass as NULL. */
#pragma GCC diagnostic ignored "-Wnonnull-compare"

#define VS_HOOK __attribute__((visibility("default")))
#if defined(__has_attribute) && __has_attribute(copy)
#define VS_LIKE(of) __attribute__((copy(of)))
#else
#define VS_LIKE(of)
#endif
/* Another name of a replaced call, declared like that. */
#define VS_ALSO(name, of) extern __typeof__(of) name VS_HOOK VS_LIKE(of) __attribute__((alias(#of)))

/* Flags of preadv2() and pwritev2() that a socket takes; RWF_NOWAIT counts, and 0x20 is RWF_NOAPPEND. */
#define VS_RWF_SOCKET (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | 0x20)

/* For programs compiled with _FORTIFY_SOURCE: ends one whose buffer is too small, as the C library does. */
void __chk_fail(void) __attribute__((noreturn));

/* Ends the program if n is more than `room`. */
static inline void vs_check_room(size_t n, size_t room)
{
	if (vs_unlikely(n > room))
		__chk_fail();
}

#endif
