/* SPDX-License-Identifier: BSD-2-Clause */
#include "osh_team.h"

struct osh_state osh_pe;
struct osh_ctx osh_default, osh_inner;
struct osh_team *osh_world, *osh_shared, *osh_introducing;
