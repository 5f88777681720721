/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to other PEs, and the memory of near ones. */
#ifndef OSH_LINK_H
#define OSH_LINK_H

#include "osh_state.h"

/* Begins to accept connections.  `host`: address of this host.  0 or -errno. */
int osh_link_begin(const uint8_t *host, size_t host_len);
/* Ends all connections, accepts no more. */
void osh_link_end(void);

/* Connects a new VI to a PE; a failure ends the job. */
VIP_VI_HANDLE osh_link_connect(const char *fn, int pe);
void osh_link_disconnect(VIP_VI_HANDLE vi);

/* Ends the job with the reason that the agent of this host is gone, if it is: connections end of that, too. */
void osh_link_check_agent(void);

/* The peer's segment s is at `at`: accesses may go there, but in the debug mode, where all are checked by functions. */
void osh_link_publish(struct osh_peer *p, int s);

/* Maps the segments of a near PE, once.  False: it is far. */
bool osh_link_map(const char *fn, int pe);

#endif
