/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of oshrun. */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

#include "run_options.h"

/* Fills *out from the command line. U_OPTION_GO_ON, or the exit status. */
int run_command_parse(int argc, char **argv, struct run_options *out);

#endif
