/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that turns rings of the agent's doorbell bit into a readable descriptor. */
#include "ag_irq.h"

#include "ag_link.h"
#include "ag_loop.h"
#include "ag_state.h"
#include "port.h"
#include "u_thread.h"

#define IRQ_CHECK_NS INT64_C(1000000000)

bool ag_irq_rung(const struct ag_agent *a)
{
	uint32_t i;

	for (i = 1; i < a->link_count; i++) {
		if ((port_db_read(a->links[i].port) & UINT32_C(1) << AG_DB_BIT) != 0)
			return true;
	}
	return false;
}

/* The thread: wakes the event loop when a neighbour has rung, until ag_irq_end(). */
static void *irq_run(void *arg)
{
	struct ag_agent *a = arg;
	uint32_t ticket;

	for (;;) {
		/* The ticket comes first: a kick after the check of irq_stop then ends the wait. */
		ticket = port_irq_ticket(a->agent_irq);
		if (atomic_load(&a->irq_stop))
			return NULL;
		if (ag_irq_rung(a))
			ag_loop_wake(a);
		/* The wait has a limit because a neighbour's agent can overwrite the registers. */
		port_irq_wait(a->agent_irq, ticket, UINT32_C(1) << AG_DB_BIT, IRQ_CHECK_NS);
	}
}

int ag_irq_start(struct ag_agent *a)
{
	int rc = u_thread_start(&a->irq_thread, "vi-agent-irq", irq_run, a);

	a->irq_started = rc == 0;
	return rc;
}

void ag_irq_end(struct ag_agent *a)
{
	if (!a->irq_started)
		return;
	atomic_store(&a->irq_stop, true);
	port_irq_kick(a->agent_irq, UINT32_C(1) << AG_DB_BIT);
	u_thread_join(a->irq_thread);
	a->irq_started = false;
}
