/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port of `emu`, or of a kind that is like it, shall have. */
#ifndef PORT_EMU_CFG_H
#define PORT_EMU_CFG_H

#include <stdint.h>

#include "port.h"

struct port_emu_cfg {
	char name[PORT_NAME_MAX];
	uint32_t index;	       /* of the port on its host, < PORT_PER_HOST; self is 0 */
	uint32_t db_bits;      /* 1..PORT_DB_MAX; 0: 16 */
	uint32_t spads;	       /* 1..PORT_SPAD_MAX; 0: 8 */
	uint64_t window_bytes; /* 0: 4 GiB */
	/*
	 * Doorbell bits that only agents ring and read.  A process that rings or clears them
	 * reaches no other.
	 */
	uint32_t agent_bits;
};

#endif
