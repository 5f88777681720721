/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments as values, for the parser. */
#ifndef U_OPTION_VALUE_H
#define U_OPTION_VALUE_H

#include <stdint.h>

#include "u_option.h"

/* The largest number that the option takes. */
uint64_t u_option_most(const struct u_option *o);

/*
 * Sets the member of the structure `into`.  0; -EINVAL: the argument is not what is expected; -ENOSPC: the option is
 * given too often; or what the option's function returned.
 */
int u_option_set(const struct u_option *o, void *into, const char *arg);

#endif
