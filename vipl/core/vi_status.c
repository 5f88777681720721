/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of errors: -errno, VIP_RETURN and descriptor status. */
#include <errno.h>
#include <stdio.h>

#include "u_base.h"
#include "vi_status.h"

/* The only table from -errno to VIP_RETURN.  Any -errno not listed becomes VIP_ERROR_RESOURCE. */
#define VI_RETURNS(X)                                                                              \
	X(EAGAIN, VIP_NOT_DONE)                                                                    \
	X(EINVAL, VIP_INVALID_PARAMETER)                                                           \
	X(ENOMEM, VIP_ERROR_RESOURCE)                                                              \
	X(ENOSPC, VIP_ERROR_RESOURCE)                                                              \
	X(ENOBUFS, VIP_ERROR_RESOURCE)                                                             \
	X(EBUSY, VIP_ERROR_RESOURCE)                                                               \
	X(EMFILE, VIP_ERROR_RESOURCE)                                                              \
	X(ENFILE, VIP_ERROR_RESOURCE)                                                              \
	X(ETIMEDOUT, VIP_TIMEOUT)                                                                  \
	X(ECONNREFUSED, VIP_REJECT)                                                                \
	X(EPROTOTYPE, VIP_INVALID_RELIABILITY_LEVEL)                                               \
	X(EMSGSIZE, VIP_INVALID_MTU)                                                               \
	X(EDOM, VIP_INVALID_QOS)                                                                   \
	X(EKEYREJECTED, VIP_INVALID_PTAG)                                                          \
	X(EACCES, VIP_INVALID_RDMAREAD)                                                            \
	X(EBADMSG, VIP_DESCRIPTOR_ERROR)                                                           \
	X(EISCONN, VIP_INVALID_STATE)                                                              \
	X(ENOENT, VIP_ERROR_NAMESERVICE)                                                           \
	X(ENOMSG, VIP_NO_MATCH)                                                                    \
	X(EHOSTUNREACH, VIP_NOT_REACHABLE)                                                         \
	X(EOPNOTSUPP, VIP_ERROR_NOT_SUPPORTED)

#define VI_RETURN_NAMES(X)                                                                         \
	X(VIP_SUCCESS)                                                                             \
	X(VIP_NOT_DONE)                                                                            \
	X(VIP_INVALID_PARAMETER)                                                                   \
	X(VIP_ERROR_RESOURCE)                                                                      \
	X(VIP_TIMEOUT)                                                                             \
	X(VIP_REJECT)                                                                              \
	X(VIP_INVALID_RELIABILITY_LEVEL)                                                           \
	X(VIP_INVALID_MTU)                                                                         \
	X(VIP_INVALID_QOS)                                                                         \
	X(VIP_INVALID_PTAG)                                                                        \
	X(VIP_INVALID_RDMAREAD)                                                                    \
	X(VIP_DESCRIPTOR_ERROR)                                                                    \
	X(VIP_INVALID_STATE)                                                                       \
	X(VIP_ERROR_NAMESERVICE)                                                                   \
	X(VIP_NO_MATCH)                                                                            \
	X(VIP_NOT_REACHABLE)                                                                       \
	X(VIP_ERROR_NOT_SUPPORTED)

U_COLD VIP_RETURN vi_return_error(int err)
{
	switch (-err) {
#define X(number, code)                                                                            \
	case number:                                                                               \
		return code;
		VI_RETURNS(X)
#undef X
	default:
		return VIP_ERROR_RESOURCE;
	}
}

const char *vi_return_name(VIP_RETURN code)
{
	switch ((int)code) {
#define X(name)                                                                                    \
	case name:                                                                                 \
		return #name;
		VI_RETURN_NAMES(X)
#undef X
	default:
		return "unknown return code";
	}
}

struct bit_name {
	uint32_t bit;
	const char *name;
};

static const struct bit_name error_bits[] = {
	{ VIP_STATUS_FORMAT_ERROR, "FORMAT_ERROR" },
	{ VIP_STATUS_PROTECTION_ERROR, "PROTECTION_ERROR" },
	{ VIP_STATUS_LENGTH_ERROR, "LENGTH_ERROR" },
	{ VIP_STATUS_PARTIAL_ERROR, "PARTIAL_ERROR" },
	{ VIP_STATUS_DESC_FLUSHED_ERROR, "DESC_FLUSHED_ERROR" },
	{ VIP_STATUS_TRANSPORT_ERROR, "TRANSPORT_ERROR" },
	{ VIP_STATUS_RDMA_PROT_ERROR, "RDMA_PROT_ERROR" },
	{ VIP_STATUS_REMOTE_DESC_ERROR, "REMOTE_DESC_ERROR" },
};

static const char *const op_names[8] = {
	"OP_SEND",	"OP_RECEIVE", "OP_RDMA_WRITE", "OP_REMOTE_RDMA_WRITE",
	"OP_RDMA_READ", "OP_ATOMIC",  "OP_6",	       "OP_7",
};

struct text {
	char *out;
	size_t size, len;
};

/* Appends the word, after "|" if it is not the first; t->len grows also by what does not fit. */
static void text_add(struct text *t, const char *word)
{
	size_t room = t->len < t->size ? t->size - t->len : 0;
	int n = snprintf(room != 0 ? t->out + t->len : NULL, room, "%s%s", t->len ? "|" : "", word);

	t->len += n > 0 ? (size_t)n : 0;
}

size_t vi_status_text(uint32_t status, char *out, size_t size)
{
	struct text t = { .out = out, .size = size };

	if (size > 0)
		out[0] = '\0';
	if (status & VIP_STATUS_DONE)
		text_add(&t, "DONE");
	for (size_t i = 0; i < U_ARRAY_SIZE(error_bits); i++) {
		if (status & error_bits[i].bit)
			text_add(&t, error_bits[i].name);
	}
	/* Operation 0 is a send: named only for descriptors that have completed. */
	if (status & (VIP_STATUS_DONE | VIP_STATUS_OP_MASK))
		text_add(&t, op_names[(status & VIP_STATUS_OP_MASK) >> 16]);
	if (status & VIP_STATUS_IMMEDIATE)
		text_add(&t, "IMMEDIATE");
	return t.len;
}
