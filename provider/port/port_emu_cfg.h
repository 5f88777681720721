/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of a port of `emu`, or of a kind that is like it. */
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
	 * Doorbell bits that only agents ring and read.  No other process can ring or clear them.
	 */
	uint32_t agent_bits;
};

#endif
