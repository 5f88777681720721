/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that waits for the agent's doorbell bit and ends the wait of the event loop. */
#ifndef AG_IRQ_H
#define AG_IRQ_H

#include <stdbool.h>

#include "ag_state.h"

/* Has a neighbour rung since the loop cleared the bit?  Rings for processes do not concern it. */
bool ag_irq_rung(const struct ag_agent *a);

/* Starts the thread; the ports have been made.  0 or -errno. */
int ag_irq_start(struct ag_agent *a);

/* Ends the thread, if it was started. */
void ag_irq_end(struct ag_agent *a);

#endif
