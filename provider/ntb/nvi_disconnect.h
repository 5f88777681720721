/* SPDX-License-Identifier: BSD-2-Clause */
/* Disconnecting (VipDisconnect). */
#ifndef NVI_DISCONNECT_H
#define NVI_DISCONNECT_H

#include "vi_core.h"

#define NVI_DRAIN_MS 2000u	/* behind the last loss of the path, if there was one; */
#define NVI_DRAIN_MOST_MS 6000u /* in all */

int nvi_disconnect(struct vi_vi *vi);

#endif
