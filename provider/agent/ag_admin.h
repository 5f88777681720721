/* SPDX-License-Identifier: BSD-2-Clause */
/* Administration: taking links down and up, adding names, stopping the agent. */
#ifndef AG_ADMIN_H
#define AG_ADMIN_H

#include "ag_client.h"
#include "w_ctl.h"
#include "w_tool.h"

/*
 * Handles W_ADMIN of a process: does it if the process is the owner's or root's, and answers by W_DONE: W_SUCCESS,
 * W_DENIED, or W_BAD_REQUEST with a line that says why, also where there is no memory.
 */
void ag_admin(struct ag_client *c, const struct w_admin *m);

#endif
