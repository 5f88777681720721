/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments as values, for the parser. */
#ifndef U_OPTION_VALUE_H
#define U_OPTION_VALUE_H

#include <stdint.h>

#include "u_option.h"

/* The largest number that the option takes: its `max`, or without one the limit of the member's type. */
uint64_t u_option_most(const struct u_option *o);

/*
 * Sets the member of the structure `into`, or calls the option's function.  `arg` may be NULL where the option takes
 * none, or may lack it.  0; -EINVAL: the argument is not what is expected, or it is --help or --version; -ENOSPC: the
 * option is given too often; or what the function returned.
 */
int u_option_set(const struct u_option *o, void *into, const char *arg);

#endif
