/* SPDX-License-Identifier: BSD-2-Clause */
/* The transfer threads of this host: how many there are, their start and their end. */
#ifndef AG_TRANSFER_H
#define AG_TRANSFER_H

#include "ag_state.h"

/* Are the settings for transfer threads possible?  0 or -EINVAL; the log says why not. */
int ag_transfer_check(const struct ag_cfg *cfg);

/* Decides the number of transfer threads, before ports are made; 0 where nothing can be relayed. */
void ag_transfer_choose(struct ag_agent *a);

/*
 * Makes the relay over the ports that were made, if there are to be threads, which start with their first
 * circuits.  After ag_place_open().  0 or -errno.
 */
int ag_transfer_open(struct ag_agent *a);

/* Ends the relay; all circuits have been freed before. */
void ag_transfer_close(struct ag_agent *a);

#endif
