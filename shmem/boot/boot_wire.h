/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire between a PE and oshrun.
 *
 * oshrun names the PE's stream socket in VIADUCT_OSHRUN as "FD:INODE"; the second number tells it from a
 * descriptor that has got the same number since.  Both sides send frames: a head, then `bytes` bytes.
 *
 *   PE       JOIN                    answered by WELCOME
 *            EXCHANGE arg, data      answered by RESULT arg, the data of all PEs, when all have sent it
 *            FINISH                  not answered; JOIN may follow
 *            ABORT arg, text         ends the job with the status arg; not on this socket but on the other;
 *                                    BOOT_WIRE_LOST in arg: because another PE cannot be reached
 *   oshrun   WELCOME arg, struct     with two descriptors: the file of the statuses, and the other socket
 *            RESULT arg, data
 *
 * `arg` of an exchange counts those of the PE.  WELCOME says how many it has made: a program that
 * follows another in a script goes on from there.
 *
 * The other socket keeps message boundaries.  oshrun never writes to it: its end is that of oshrun, and the
 * PE has the kernel kill it then.
 */
#ifndef BOOT_WIRE_H
#define BOOT_WIRE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BOOT_WIRE_VARIABLE "VIADUCT_OSHRUN"
#define BOOT_WIRE_MAGIC 0x4e52534fu /* "OSRN" */
#define BOOT_WIRE_VERSION 1
#define BOOT_WIRE_PES_MAX 4096u
#define BOOT_WIRE_DATA_MAX 65536u /* of a PE in one exchange */
#define BOOT_WIRE_TEXT_MAX 256u
#define BOOT_WIRE_LOST 0x100u
#define BOOT_WIRE_STATUS_STRIDE 65536u /* from a PE's status to the next; the largest page size */

enum boot_wire_kind {
	BOOT_WIRE_JOIN = 1,
	BOOT_WIRE_EXCHANGE,
	BOOT_WIRE_FINISH,
	BOOT_WIRE_ABORT,
	BOOT_WIRE_WELCOME,
	BOOT_WIRE_RESULT,
};

struct boot_wire_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t bytes; /* that follow */
	uint32_t arg;
};

struct boot_wire_welcome {
	uint64_t job;
	uint32_t pe, n_pes;
	uint32_t exchanges; /* that this PE has made */
	uint32_t reserved;
};

static inline struct boot_wire_head boot_wire_head(enum boot_wire_kind kind, uint32_t bytes,
						   uint32_t arg)
{
	return (struct boot_wire_head){ BOOT_WIRE_MAGIC, BOOT_WIRE_VERSION, (uint16_t)kind, bytes,
					arg };
}

/* Checks magic and version, not the kind.  0, -EPROTO: no head; -EPROTONOSUPPORT: another version. */
static inline int boot_wire_known(const struct boot_wire_head *h)
{
	if (h->magic != BOOT_WIRE_MAGIC)
		return -EPROTO;
	return h->version == BOOT_WIRE_VERSION ? 0 : -EPROTONOSUPPORT;
}

/* Checks the head of a frame from a PE.  0, -EPROTONOSUPPORT: another version; -EPROTO: no such kind, or too long. */
static inline int boot_wire_check_pe(const struct boot_wire_head *h)
{
	int rc = boot_wire_known(h);

	if (rc != 0)
		return rc;
	switch (h->kind) {
	case BOOT_WIRE_JOIN:
	case BOOT_WIRE_FINISH:
		return h->bytes == 0 ? 0 : -EPROTO;
	case BOOT_WIRE_EXCHANGE:
		return h->bytes <= BOOT_WIRE_DATA_MAX ? 0 : -EPROTO;
	case BOOT_WIRE_ABORT:
		return h->bytes < BOOT_WIRE_TEXT_MAX ? 0 : -EPROTO;
	default:
		return -EPROTO;
	}
}

/*
 * Checks the head of a frame from oshrun, where one of this kind and length is expected. 0, -EPROTO: another;
 * -EPROTONOSUPPORT: another version.
 */
static inline int boot_wire_check_run(const struct boot_wire_head *h, enum boot_wire_kind kind,
				      uint64_t bytes)
{
	int rc = boot_wire_known(h);

	if (rc != 0)
		return rc;
	return h->kind == kind && h->bytes == bytes ? 0 : -EPROTO;
}

/* Checks the numbers of a WELCOME. 0 or -EPROTO. */
static inline int boot_wire_check_welcome(const struct boot_wire_welcome *w)
{
	return w->n_pes >= 1 && w->n_pes <= BOOT_WIRE_PES_MAX && w->pe < w->n_pes ? 0 : -EPROTO;
}

/* A descriptor and its inode, from the text "FD:INODE", not NULL.  0; or -EINVAL with the outputs as before. */
static inline int boot_wire_variable(const char *text, int *fd_out, uint64_t *inode_out)
{
	uint64_t v[2] = { 0, 0 };
	unsigned int i, digits;

	for (i = 0; i < 2; i++) {
		for (digits = 0; *text >= '0' && *text <= '9'; text++, digits++) {
			if (v[i] > (UINT64_MAX - 9) / 10)
				return -EINVAL;
			v[i] = v[i] * 10 + (uint64_t)(*text - '0');
		}
		if (digits == 0 || *text++ != (i == 0 ? ':' : '\0'))
			return -EINVAL;
	}
	if (v[0] > INT32_MAX)
		return -EINVAL;
	*fd_out = (int)v[0];
	*inode_out = v[1];
	return 0;
}

#endif
