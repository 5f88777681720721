/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of variables in the environment that nothing reads, as they are written wrong. */
#ifndef U_CFG_NAMES_H
#define U_CFG_NAMES_H

#include <stddef.h>

/*
 * Warns of each variable of the environment that begins with VIADUCT_, is not one of the `count` names of `known`, and
 * is not read elsewhere, with the known name that is nearest to it.
 */
void u_cfg_names_check(const char *const *known, size_t count);

#endif
