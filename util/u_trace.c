/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of the library only where its points are stamps. */
#include "u_trace.h"

__thread struct u_trace_ring *u_trace_ring;
