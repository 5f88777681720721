/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors, and their texts. */
#ifndef VI_STATUS_H
#define VI_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "u_base.h"
#include "vipl.h"

/*
 * The only translation of -errno to VIP_RETURN:
 * 0 VIP_SUCCESS, -EAGAIN NOT_DONE, -EINVAL INVALID_PARAMETER,
 * -ENOMEM/-ENOSPC/-ENOBUFS/-EBUSY/-EMFILE/-ENFILE ERROR_RESOURCE, -ETIMEDOUT TIMEOUT,
 * -ECONNREFUSED REJECT, -EPROTOTYPE INVALID_RELIABILITY_LEVEL, -EMSGSIZE INVALID_MTU,
 * -EDOM INVALID_QOS, -EKEYREJECTED INVALID_PTAG, -EACCES INVALID_RDMAREAD, -EBADMSG DESCRIPTOR_ERROR,
 * -EISCONN INVALID_STATE, -ENOENT ERROR_NAMESERVICE, -ENOMSG NO_MATCH, -EHOSTUNREACH NOT_REACHABLE,
 * -EOPNOTSUPP ERROR_NOT_SUPPORTED; anything else ERROR_RESOURCE.
 */
VIP_RETURN vi_return_error(int err);

/* As vi_return_error(); VIP_SUCCESS for 0 and above. */
static inline VIP_RETURN vi_return(int err)
{
	return u_likely(err >= 0) ? VIP_SUCCESS : vi_return_error(err);
}

/* A constant, such as "VIP_SUCCESS"; "unknown return code" for no code. */
const char *vi_return_name(VIP_RETURN code);

/* "DONE|LENGTH_ERROR|OP_RECEIVE", cut to size - 1 characters. Returns the uncut length. */
size_t vi_status_text(uint32_t status, char *out, size_t size);

#endif
