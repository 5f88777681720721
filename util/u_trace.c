/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of the library only if its trace points are stamps. */
#include "u_trace.h"

__thread struct u_trace_ring *u_trace_ring;
