/* SPDX-License-Identifier: BSD-2-Clause */
/* Gates of the agent's log: what neighbours, relays and processes can cause is bounded. */
#include "ag_priv.h"
#include "u_time.h"

static struct u_log_gate gate(enum u_log_level level, const char *what, const char *whose)
{
	return (struct u_log_gate)U_LOG_GATE(level, "ag", what, whose);
}

void ag_gates_init(struct ag_agent *a)
{
	a->gate[AG_GATE_CLIENT] =
		gate(U_LOG_WARN, "processes that were dropped or turned away", NULL);
	a->gate[AG_GATE_CIRCUIT] = gate(U_LOG_WARN, "connections of others that were cut", NULL);
	a->gate[AG_GATE_LOST] = gate(U_LOG_INFO, "connections that were lost", NULL);
}

void ag_gates_init_link(struct ag_link *l)
{
	const char *name = l->port->limits.name;

	l->gate[AG_GATE_STATE] = gate(U_LOG_INFO, "ups and downs of link", name);
	l->gate[AG_GATE_SETUP] = gate(U_LOG_ERROR, "failures to set up link", name);
	l->gate[AG_GATE_CUT] = gate(U_LOG_WARN, "cuts and cables of link", name);
	l->gate[AG_GATE_RECORD] = gate(U_LOG_WARN, "bad records of port", name);
	l->gate[AG_GATE_ROOM] = gate(U_LOG_INFO, "want of room at port", name);
}

static int64_t tell(struct u_log_gate *gates, unsigned int count, int64_t next)
{
	unsigned int i;
	int64_t at;

	for (i = 0; i < count; i++) {
		at = u_log_gate_tell(&gates[i]);
		next = at < next ? at : next;
	}
	return next;
}

int64_t ag_gates_tell(struct ag_agent *a)
{
	int64_t next = tell(a->gate, AG_GATES, U_NEVER);
	uint32_t i;

	for (i = 0; i < a->link_count; i++)
		next = tell(a->links[i].gate, AG_LINK_GATES, next);
	return next;
}
