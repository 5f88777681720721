/* SPDX-License-Identifier: BSD-2-Clause */
/* Ending connections that this process has to end itself, since no agent has noticed the cause yet. */
#ifndef NVI_CUT_H
#define NVI_CUT_H

#include "nvi_chan.h"

/*
 * Breaks the connection as lost, if the channel still carries `conn`, and makes the agent tell the other end.  In any
 * case removes the entries of windows that `conn` was given.  No locks held.
 */
void nvi_cut(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);
/* If a link has changed since the last call: cuts the connections over links that are gone, but no resumable ones. */
void nvi_check_links(struct nvi_nic *nic);

#endif
