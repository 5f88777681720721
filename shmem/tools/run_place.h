/* SPDX-License-Identifier: BSD-2-Clause */
/* Where PEs run: the host, and the processor. */
#ifndef RUN_PLACE_H
#define RUN_PLACE_H

#include "run_options.h"

unsigned int run_place_host(const struct run_options *o, int pe);

/* Binds this process to the processor of the PE: of those that it may use, the next in turn. */
int run_place_bind(int pe);

#endif
