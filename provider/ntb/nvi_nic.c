/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "nvi_nic.h"
#include "u_futex.h"

struct nvi_port *nvi_port_get(struct nvi_nic *nic, unsigned int index)
{
	struct nvi_port *p = NULL;

	if (index >= PORT_PER_HOST)
		return NULL;
	u_lock_take(&nic->chan_lock);
	p = nic->ports[index];
	if (p != NULL)
		atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
	u_lock_drop(&nic->chan_lock);
	return p;
}

void nvi_port_put(struct nvi_port *p)
{
	if (p != NULL && atomic_fetch_sub_explicit(&p->users, 1, memory_order_acq_rel) == 1) {
		port_close(p->port);
		free(p);
	}
}

uint32_t nvi_port_generation(const struct nvi_port *p)
{
	uint32_t generation = 0;

	return port_link_state(p->port, &generation) == PORT_LINK_UP ? generation : 0;
}

void nvi_engine_kick(struct nvi_nic *nic)
{
	uint32_t deep = atomic_load_explicit(&nic->engine_deep, memory_order_seq_cst);

	/* Sleeping threads do the engine's work: they have to wake, and to arm the channels again. */
	if (atomic_load_explicit(&nic->sleepers, memory_order_seq_cst) != 0 &&
	    atomic_load_explicit(&nic->polled, memory_order_seq_cst) != 0) {
		port_irq_kick(nic->irq, nic->db_mask);
		return;
	}
	if (u_likely(deep == NVI_AWAKE))
		return;
	if (!atomic_compare_exchange_strong(&nic->engine_deep, &deep, NVI_AWAKE))
		return;
	if (deep == NVI_DEEP) {
		port_irq_kick(nic->irq, nic->db_mask);
		return;
	}
	atomic_fetch_add_explicit(&nic->engine_park, 1, memory_order_seq_cst);
	u_futex_wake(&nic->engine_park, 1, UINT32_MAX, true);
}
