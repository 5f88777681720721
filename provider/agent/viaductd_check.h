/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that the options of viaductd fit together and can be satisfied on this machine. */
#ifndef VIADUCTD_CHECK_H
#define VIADUCTD_CHECK_H

#include "viaductd_options.h"

/*
 * Checks all options and completes o->cfg, which points into `o` from then on.  0, or -EINVAL with
 * a complaint; o->bad_variable says whether a variable is to blame.
 */
int vd_check(struct vd_options *o);

#endif
