/* SPDX-License-Identifier: BSD-2-Clause */
/* The NIC of this PE, its segments, and connections to other PEs. */
#ifndef OSH_LINK_H
#define OSH_LINK_H

#include "osh_state.h"

/* Opens the NIC and makes the segments; tells the other PEs where they are.  0, or -1 with a line in `error`. */
int osh_link_open(char error[BOOT_TEXT_MAX]);
/* After every PE has called boot_barrier(): ends all connections and gives all back. */
void osh_link_close(void);

/* Connects a new VI to a PE; a failure ends the job. */
VIP_VI_HANDLE osh_link_connect(const char *fn, int pe);
void osh_link_disconnect(VIP_VI_HANDLE vi);

/* Ends the job with the reason that the agent of this host is gone, if it is: connections end of that, too. */
void osh_link_check_agent(void);

/* Maps the segments of a near PE, once.  False: it is far. */
bool osh_link_map(const char *fn, int pe);

#endif
