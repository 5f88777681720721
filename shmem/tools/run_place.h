/* SPDX-License-Identifier: BSD-2-Clause */
/* Where PEs run: the host, and the processors. */
#ifndef RUN_PLACE_H
#define RUN_PLACE_H

#include "run_options.h"
#include "u_topo_read.h"

/* The number of the emulated host of a PE, 0 where there is one. */
unsigned int run_place_host(const struct run_options *o, int pe);

/* The index of the machine of a PE, in jobs on several; when all slots are filled, it begins with the first again. */
int run_place_machine(const struct run_options *o, int pe);

/*
 * Before the first PE, for --bind-to: finds out what this process may use, and what the machine is.
 * Returns 0, or -errno and a line that says what is missing.
 */
int run_place_open(const struct run_options *o, char error[U_TOPO_ERROR]);

/* Binds this process as the n-th PE of this machine, from 0, after run_place_open(): 0; or -errno, and errno is set. */
int run_place_bind(const struct run_options *o, int n);

#endif
