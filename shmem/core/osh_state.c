/* SPDX-License-Identifier: BSD-2-Clause */
#include "osh_team.h"

struct osh_state osh_pe;
static const int nobody[1];
struct osh_ctx osh_default, osh_inner;
struct osh_ctx osh_no_ctx = { .pes = nobody };
struct osh_team *osh_world, *osh_shared, *osh_introducing;
