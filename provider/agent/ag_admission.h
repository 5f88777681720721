/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admission: which users may use this agent, and limits by which one user leaves resources for
 * others.
 */
#ifndef AG_ADMISSION_H
#define AG_ADMISSION_H

#include <stdbool.h>
#include <sys/socket.h>

#include "ag_state.h"
#include "w_ctl.h"

/*
 * Connections that wait in the kernel to be accepted: enough that a few dozen unauthorised users
 * cannot keep others from connecting.
 */
#define AG_BACKLOG 1024

/* Sets the limits of the agent by the descriptors that this process may have. */
void ag_admission_limits(struct ag_agent *a);

/*
 * May the process at the other end of `sock` use the fabric?  It may if it is the owner's or root's, or in the group of
 * the configuration.  `cred` is filled in if it is known; if not, the process may not.
 */
bool ag_admission_allowed(struct ag_agent *a, int sock, struct ucred *cred);

/*
 * Tries to send one W_DONE with `status` and `text`, not NULL, to a process that does not become a client, and closes
 * the socket in any case.
 */
void ag_admission_turn_away(int sock, enum w_status status, const char *text);

/*
 * May new sockets be accepted?  False, and logged, while too many are being closed by threads of
 * their own (u_close.h).
 */
bool ag_admission_closing_keeps_up(struct ag_agent *a);

#endif
