/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of oshrun. */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

#include "run_options.h"

/*
 * Fills *out, which is all zeros, from the command line. U_OPTION_GO_ON; or the exit status, after a line or --help.
 * *out points into argv, in which colons between programs become NULL.
 */
int run_command_parse(int argc, char **argv, struct run_options *out);

#endif
