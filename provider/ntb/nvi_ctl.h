/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that handles the messages of the agent. */
#ifndef NVI_CTL_H
#define NVI_CTL_H

void *nvi_ctl_thread(void *nic);

#endif
