/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The body of a W_TELL between providers: direct stores into window memory.
 *
 *	ASK{handle}    may I store into the memory of this handle?
 *	GIVE{handle, base, length} + the slice: yes, it begins at address `base`
 *	DENY{handle}   no: send it through slots
 *	TAKE{handle}   no more, or not now: unmap it, if it is mapped, and say
 *	GONE{handle}   it is not mapped (any more); also unasked for
 */
#ifndef W_GRANT_H
#define W_GRANT_H

#include <assert.h>
#include <stdint.h>

#include "w_ctl.h"

enum w_grant_kind { W_GRANT_ASK = 1, W_GRANT_GIVE, W_GRANT_DENY, W_GRANT_TAKE, W_GRANT_GONE };

struct w_grant {
	uint32_t kind;
	uint32_t handle;
	uint64_t base;
	uint64_t length;
};
static_assert(sizeof(struct w_grant) <= W_TELL_MAX, "w_grant");

#endif
