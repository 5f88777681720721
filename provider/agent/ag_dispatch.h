/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of processes: read, checked, and handed to the unit that each concerns. */
#ifndef AG_DISPATCH_H
#define AG_DISPATCH_H

#include <stdint.h>

#include "ag_client.h"

/* The socket of a client has these epoll events. */
void ag_dispatch_event(struct ag_client *c, uint32_t events);

/* The process has ended: reads the messages that it had sent, then drops it. */
void ag_dispatch_ended(struct ag_client *c);

#endif
