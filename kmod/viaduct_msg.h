/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of two modules through message registers, where an adapter has too few scratchpads or lets only
 * the sender set its windows.  Everything is a cell, a numbered 32-bit word:
 *
 *   register 0   the value of a cell
 *   register 1   the number of the sender's session, never 0
 *   register 2   the number of the receiver's, or 0 when the sender does not know it
 *   register 3   bits 0-3 acknowledged number, 4-7 number of this cell, 8-15 cell, 16-31 check; written last
 *
 * A side sends one cell at a time, numbered 1 to 15 in turn, and again until it is acknowledged.  A session begins
 * when the link comes up, and by VD_CELL_HELLO, which has no number and is repeated until the peer answers.
 */
#ifndef VIADUCT_MSG_H
#define VIADUCT_MSG_H

#include "viaduct_ioctl.h"

#define VD_MSG_VERSION 1
#define VD_MSG_REGS 4
#define VD_MSG_SPADS 8

enum {
	VD_CELL_HELLO, /* version << 16 | windows */
	VD_CELL_BYE, /* the memory of the sender goes away: acknowledged when it is not stored into any more */
	VD_CELL_WINDOW, /* for each window: address, its upper half, size in units of 4 KiB */
	VD_CELL_OWN = VD_CELL_WINDOW + 3 * VIADUCT_WINDOWS, /* a scratchpad of the sender */
	VD_CELL_PEER = VD_CELL_OWN + VD_MSG_SPADS, /* one of the receiver, that is written */
	VD_CELLS = VD_CELL_PEER + VD_MSG_SPADS,
	VD_CELL_NONE = 0xff, /* an acknowledgement only */
};

#endif
