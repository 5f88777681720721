/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The body of a W_TELL between providers: direct stores into window memory, and mappings of it for
 * programs (VipxMapRemote()).
 *
 *	ASK{handle}    may I store into the memory of this handle?
 *	GIVE{handle, base, length} + the slice: yes, it begins at address `base`
 *	DENY{handle}   no: send it through slots
 *	TAKE{handle}   no longer, or not now: unmap it, if it is mapped, and answer GONE
 *	GONE{handle}   it is not mapped (any more); also sent without a TAKE
 *
 * `map` is 0 for direct stores.  Otherwise it is a number that the asking process chose for one mapping, never used
 * for another one on the connection; programs may also load from the mapping.  In a DENY of a mapping `base` is an
 * enum w_deny.
 */
#ifndef W_GRANT_H
#define W_GRANT_H

#include <assert.h>
#include <stdint.h>

#include "w_ctl.h"

enum w_grant_kind { W_GRANT_ASK = 1, W_GRANT_GIVE, W_GRANT_DENY, W_GRANT_TAKE, W_GRANT_GONE };

enum w_deny {
	W_DENY_RIGHTS = 0,    /* there is no such memory, or a right to it is missing */
	W_DENY_NO_WINDOW = 1, /* it cannot be mapped: not in a window, or on another host */
	W_DENY_NO_ROOM = 2,   /* there are too many mappings */
};

struct w_grant {
	uint32_t kind;
	uint32_t handle;
	uint64_t base;
	uint64_t length;
	uint64_t map;
};
static_assert(sizeof(struct w_grant) <= W_TELL_MAX, "w_grant");

#endif
