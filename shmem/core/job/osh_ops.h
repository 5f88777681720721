/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the routines of the specification call: everything below the types.  `fn` is the name of the
 * routine, for messages.  `pe` counts in the team of the context.  Lengths are bytes unless said.
 */
#ifndef OSH_OPS_H
#define OSH_OPS_H

#include "osh_amo.h"
#include "osh_barrier.h"
#include "osh_coll.h"
#include "osh_init.h"
#include "osh_lock.h"
#include "osh_mem.h"
#include "osh_order.h"
#include "osh_reduce.h"
#include "osh_rma.h"
#include "osh_set.h"
#include "osh_split.h"
#include "osh_team_ctx.h"
#include "osh_wait.h"

#endif
