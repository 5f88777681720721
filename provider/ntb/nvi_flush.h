/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting until the peer has all that was posted. */
#ifndef NVI_FLUSH_H
#define NVI_FLUSH_H

#include "nvi_chan.h"

/* vi_provider_ops.flush */
int nvi_flush(struct vi_vi *vi, int64_t deadline);

#endif
