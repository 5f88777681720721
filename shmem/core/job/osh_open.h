/* SPDX-License-Identifier: BSD-2-Clause */
/* The NIC of this PE and its segments. */
#ifndef OSH_OPEN_H
#define OSH_OPEN_H

#include "osh_state.h"

/* Opens the NIC and makes the segments; tells the other PEs where they are.  0, or -1 with a line in `error`. */
int osh_open(char error[BOOT_TEXT_MAX]);
/* After every PE has called boot_barrier(): ends all connections and gives all back. */
void osh_close(void);

#endif
