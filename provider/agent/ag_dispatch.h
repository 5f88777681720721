/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of processes: each is read, checked, and passed to the unit that it concerns. */
#ifndef AG_DISPATCH_H
#define AG_DISPATCH_H

#include <stdint.h>

#include "ag_client.h"

/* Handles epoll events of a client's socket: reads messages, sends queued ones, or drops the client. */
void ag_dispatch_event(struct ag_client *c, uint32_t events);

/*
 * The process has ended: handles messages that it had sent, up to a fixed number and while it is not paused, then
 * drops it.
 */
void ag_dispatch_ended(struct ag_client *c);

#endif
