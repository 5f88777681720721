/* SPDX-License-Identifier: BSD-2-Clause */
/* Disconnecting (VipDisconnect). */
#ifndef NVI_DISCONNECT_H
#define NVI_DISCONNECT_H

#include "vi_core.h"

/* The longest wait for sends: since the start or the last loss of the path, and in total. */
#define NVI_DRAIN_MS 2000u
#define NVI_DRAIN_MOST_MS 6000u

/*
 * vi_provider_ops.disconnect: cancels attempts to connect, waits until sends are acknowledged,
 * takes back grants, and makes the VI Idle.  Returns 0.
 */
int nvi_disconnect(struct vi_vi *vi);

#endif
