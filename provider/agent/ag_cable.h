/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cables of the emulation: the socket by which the ports of two neighbours find each other.  One
 * of the two listens (rt_port_listens()), the other connects.
 */
#ifndef AG_CABLE_H
#define AG_CABLE_H

#include <stdint.h>

#include "ag_link.h"

/*
 * Listens at the address of the port.  0, -EBUSY (the address is taken, logged) or another -errno; then, too, the
 * socket stays in l->cable_sock.
 */
int ag_cable_listen(struct ag_link *l);

/*
 * The neighbour has connected: plugs its cable into the port, if it is the owner's or root's.  Where there is no
 * descriptor, or too many sockets are being closed, accepting stops until ag_cable_timers() begins it again.
 */
void ag_cable_accept(struct ag_link *l);

/*
 * Enables the port and connects, or accepts, again when it is time; nothing if an administrator has taken the link down
 * or the cable is plugged.  Returns the next deadline, or U_NEVER.
 */
int64_t ag_cable_timers(struct ag_link *l, int64_t now);

#endif
