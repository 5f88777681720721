/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that takes what the agent sends. */
#ifndef NVI_CTL_H
#define NVI_CTL_H

void *nvi_ctl_thread(void *nic);

#endif
