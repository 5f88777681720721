/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors and messages that cannot be sent. */
#include "nvi_refuse.h"
#include "nvi_fault.h"
#include "nvi_publish.h"

void nvi_refuse(struct nvi_chan *ch, uint32_t entry, uint32_t bits)
{
	if (bits & VIP_STATUS_PROTECTION_ERROR)
		ch->vi->counters.ProtectionErrors++;
	nvi_complete_send(&ch->vi->sq, entry, bits);
	if (ch->level != VIP_SERVICE_UNRELIABLE)
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0, 0 });
}

bool nvi_may_refuse(struct nvi_chan *ch, uint32_t entry)
{
	if (ch->level == VIP_SERVICE_UNRELIABLE)
		return true;
	/* One that waited before may have become fit. */
	if (!ch->tx.refuses || ch->tx.refuse_entry != entry) {
		ch->tx.refuses = true;
		ch->tx.refuse_entry = entry;
		ch->tx.refuse_end = ch->tx.seq;
	}
	return nvi_tx_consumed(ch, ch->tx.refuse_end) && nvi_sq_done(&ch->vi->sq) == entry;
}

/* Forgets the source of the message: its memory is not read any more, and may be freed. */
static void give_up_source(struct nvi_tx_message *m)
{
	m->sg.at_left = 0;
	m->sg.desc_handle = m->sg.handle = 0;
	m->sg.left = 1;
	m->sg.need = 1;
}

void nvi_abandon_message(struct nvi_chan *ch)
{
	struct nvi_tx_message *m = &ch->tx.msg;
	uint8_t op = m->op;

	if (op != W_OP_READ_RESP) {
		give_up_source(m);
		if (!nvi_may_refuse(ch, m->entry))
			return;
	}
	m->op = 0;
	if (op == W_OP_READ_RESP) {
		ch->vi->counters.ProtectionErrors++;
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAR_PROT);
		/* Its entry is the slot of the peer's request. */
		nvi_fault_tx(ch,
			     (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_RDMA_PROT, m->entry, 0 });
		return;
	}
	if (ch->level == VIP_SERVICE_UNRELIABLE && m->done > 0)
		nvi_publish_bare(ch, W_OP_ABORT, W_F_LAST);
	nvi_refuse(ch, m->entry, VIP_STATUS_PROTECTION_ERROR);
}
