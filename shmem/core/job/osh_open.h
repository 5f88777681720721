/* SPDX-License-Identifier: BSD-2-Clause */
/* The NIC of this PE and its segments. */
#ifndef OSH_OPEN_H
#define OSH_OPEN_H

#include "osh_state.h"

/*
 * Opens the NIC, makes the segments and begins to accept connections; tells the other PEs where they are, so all call
 * it.  After boot_start().  0, or -1 with a line in `error`; what was opened by then stays open.
 */
int osh_open(char error[BOOT_TEXT_MAX]);
/* After every PE has called boot_barrier(): ends all connections and gives all back. */
void osh_close(void);

#endif
