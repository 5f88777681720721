/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_fault.h"
#include "nvi_notify.h"

/*
 * Marks the fault, and makes the engine check the channel in case the calling thread cannot break
 * the connection.
 */
static void fault_found(struct nvi_chan *ch, uint32_t which)
{
	atomic_fetch_or_explicit(&ch->breaking.faults, which, memory_order_relaxed);
	atomic_store_explicit(&ch->arm.by_app, 0, memory_order_relaxed);
	nvi_disarm(ch);
	nvi_engine_kick(ch->nic);
}

void nvi_fault_tx(struct nvi_chan *ch, struct nvi_fault fault)
{
	if (nvi_chan_has_fault(ch, NVI_FAULT_TX))
		return;
	ch->breaking.tx_fault = fault;
	fault_found(ch, NVI_FAULT_TX);
}

void nvi_fault_rx(struct nvi_chan *ch, struct nvi_fault fault)
{
	if (nvi_chan_has_fault(ch, NVI_FAULT_RX))
		return;
	ch->breaking.rx_fault = fault;
	fault_found(ch, NVI_FAULT_RX);
}
