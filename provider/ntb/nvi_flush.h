/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting until everything that was posted has arrived at the peer. */
#ifndef NVI_FLUSH_H
#define NVI_FLUSH_H

#include "nvi_chan.h"

/* vi_provider_ops.flush */
int nvi_flush(struct vi_vi *vi, int64_t deadline);

#endif
