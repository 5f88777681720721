/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of operations that a VI uses while it is connected. */
#ifndef NVI_FAST_H
#define NVI_FAST_H

#include "vi_provider.h"

/* For connections that end with their path, for resumable ones, and while a disconnect waits. */
extern const struct vi_fast_ops nvi_fast, nvi_fast_resumable, nvi_fast_closing;

#endif
