/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire between the oshrun that has a job and those that have PEs of it on other machines (oshrun --serve), over
 * the standard input and output of a remote shell.  Both send frames: a head, then `bytes` bytes.
 *
 *   oshrun   START        once: struct run_wire_start, numbers of PEs, programs, strings
 *            RESULT arg   the data of all PEs in exchange number arg
 *            SIGNAL arg   for all PEs of the machine, which are to leave, but for SIGUSR1 and SIGUSR2; 0: kill them
 *   --serve  HELLO        first of all, unasked
 *            STARTED      the process of each PE
 *            JOIN arg     PE arg calls shmem_init; FINISH arg: it has left
 *            EXCHANGE arg data of all its PEs in exchange number arg, in the order of START
 *            ABORT arg    PE arg ends the job: struct run_wire_abort, text
 *            EXITED arg   the process of PE arg has ended: status of wait()
 *            STATUS arg   struct boot_status of PE arg
 *            OUT arg, ERR arg   output of PE arg
 *            COMPLAIN     something else ends the job: struct run_wire_abort, text
 *            BYE          all have ended
 *            ALIVE        once in a second
 *
 * When the connection ends, --serve kills its PEs, and oshrun ends the job.  Both ends check each frame.
 */
#ifndef RUN_WIRE_H
#define RUN_WIRE_H

#include <stdint.h>

#include "boot_wire.h"

#define RUN_WIRE_MAGIC 0x5246534fu /* "OSFR" */
#define RUN_WIRE_VERSION 2
#define RUN_WIRE_START_MAX (1u << 20)
#define RUN_WIRE_OUTPUT_MAX 32768u
#define RUN_WIRE_TEXT_MAX 512u

enum run_wire_kind {
	RUN_WIRE_START = 1,
	RUN_WIRE_RESULT,
	RUN_WIRE_SIGNAL,
	RUN_WIRE_HELLO,
	RUN_WIRE_STARTED,
	RUN_WIRE_JOIN,
	RUN_WIRE_FINISH,
	RUN_WIRE_EXCHANGE,
	RUN_WIRE_ABORT,
	RUN_WIRE_EXITED,
	RUN_WIRE_STATUS,
	RUN_WIRE_OUT,
	RUN_WIRE_ERR,
	RUN_WIRE_COMPLAIN,
	RUN_WIRE_BYE,
	RUN_WIRE_ALIVE,
};

struct run_wire_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t arg;
	uint32_t bytes; /* that follow */
};

/*
 * Followed by `here` numbers of PEs, which grow, by `apps` programs, and by strings, each with its 0: machine, exports
 * for all, and of each program folder, exports, words.
 */
struct run_wire_start {
	uint64_t job;
	uint32_t pes, here;
	uint32_t exports, apps;
	uint32_t bind, map_by; /* as --bind-to and --map-by: run_options_bind() */
};

/* It has the PEs of the job with numbers below `end` that no program before it has. */
struct run_wire_app {
	uint32_t end, exports, words;
};

struct run_wire_abort {
	uint32_t status; /* of the job, below 256 */
	uint32_t lost;	 /* 1: because another PE cannot be reached */
};

static inline struct run_wire_head run_wire_head(enum run_wire_kind kind, uint32_t arg,
						 uint32_t bytes)
{
	return (struct run_wire_head){ RUN_WIRE_MAGIC, RUN_WIRE_VERSION, (uint16_t)kind, arg,
				       bytes };
}

/* Checks magic and version. 0, -EPROTO: no frame; -EPROTONOSUPPORT: one of another version. */
static inline int run_wire_known(const struct run_wire_head *h)
{
	if (h->magic != RUN_WIRE_MAGIC)
		return -EPROTO;
	return h->version == RUN_WIRE_VERSION ? 0 : -EPROTONOSUPPORT;
}

/* The most bytes that a frame to --serve may have; -1: there is no such frame. */
static inline int64_t run_wire_down_max(const struct run_wire_head *h, uint32_t n_total)
{
	switch (h->kind) {
	case RUN_WIRE_START:
		return RUN_WIRE_START_MAX;
	case RUN_WIRE_RESULT:
		return (int64_t)n_total * BOOT_WIRE_DATA_MAX;
	case RUN_WIRE_SIGNAL:
		return 0;
	default:
		return -1;
	}
}

/* The most bytes that a frame from an oshrun that has `here` PEs may have; -1: there is no such frame. */
static inline int64_t run_wire_up_max(const struct run_wire_head *h, uint32_t here)
{
	switch (h->kind) {
	case RUN_WIRE_HELLO:
	case RUN_WIRE_JOIN:
	case RUN_WIRE_FINISH:
	case RUN_WIRE_BYE:
	case RUN_WIRE_ALIVE:
		return 0;
	case RUN_WIRE_STARTED:
		return (int64_t)here * 4;
	case RUN_WIRE_EXCHANGE:
		return (int64_t)here * BOOT_WIRE_DATA_MAX;
	case RUN_WIRE_ABORT:
	case RUN_WIRE_COMPLAIN:
		return sizeof(struct run_wire_abort) + RUN_WIRE_TEXT_MAX - 1;
	case RUN_WIRE_EXITED:
		return 4;
	case RUN_WIRE_STATUS:
		return 128;
	case RUN_WIRE_OUT:
	case RUN_WIRE_ERR:
		return RUN_WIRE_OUTPUT_MAX;
	default:
		return -1;
	}
}

#endif
