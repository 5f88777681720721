/* SPDX-License-Identifier: BSD-2-Clause */
/* End points: opened, set up and closed; and all that their messages need. */
#ifndef PF_EP_H
#define PF_EP_H

#include "pf_calls.h"
#include "pf_fail.h"
#include "pf_move.h"
#include "pf_state.h"
#include "pf_take.h"

/* Opens the NIC of `host` (NULL: the default one).  Returns 0 or -errno with the cause noted. */
int pf_ep_open(struct pf_ep *ep, const char *host);

/* Allocates VIs and memory as p says and posts the receives.  The VIs are idle. */
int pf_ep_setup(struct pf_ep *ep, const struct pf_params *p);

/* Disconnects, reaps all descriptors and closes; works on a partly built end point. */
void pf_ep_close(struct pf_ep *ep);

/* Does the level, with its reads, exist on this NIC? And do window and segments fit? */
int pf_ep_check(struct pf_ep *ep, const struct pf_params *p);

#endif
