/* SPDX-License-Identifier: BSD-2-Clause */
/* st_switch.h - the steps of a direction from TCP to a VI and back */
#ifndef ST_SWITCH_H
#define ST_SWITCH_H

#include "st_paths.h"

/* Messages of the other end, and the steps to a VI and back that do not wait for it; when to come again. */
uint64_t st_switch_step(struct st_stream *s, uint64_t now);

#endif
