/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a client and of a server; pf_main() puts them together. */
#ifndef PF_ROLE_H
#define PF_ROLE_H

#include "pf_run.h"

/* All return 0 or -errno with the cause noted in run->ep. */

/* Opens the NIC, finds the server, agrees with it and connects everything. */
int pf_client_start(struct pf_run *run);
/* Every size; adds the expectations not met to *missed. */
int pf_measure(struct pf_run *run, struct pf_report *rep, unsigned int *missed);
int pf_client_end(struct pf_run *run);

/* Opens the NIC: after it, a client may come. */
int pf_server_start(struct pf_run *run);
/* Waits for a client and serves it to its end. */
int pf_server_serve(struct pf_run *run);

void pf_run_close(struct pf_run *run);

#endif
