/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that handles the messages of the agent. */
#ifndef NVI_CTL_H
#define NVI_CTL_H

/* The control thread: handles messages until the agent is gone or the socket was shut down.  Returns NULL. */
void *nvi_ctl_thread(void *nic);

#endif
