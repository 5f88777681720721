/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of clauses: what port.h promises, and what in the library needs it. */
#include "pst_priv.h"

const struct pst_clause pst_clauses[] = {
	{ "word", "an aligned word of 4 or 8 bytes arrives whole (u_out.h)",
	  "slots: the word that publishes a message, credit, notify requests", pst_word_write,
	  pst_word_read, NULL, 2, "values seen" },
	{ "order", "stores before a fence arrive before stores after it (port.h 1)",
	  "every message: the payload of a slot, then the word that publishes it; credit",
	  pst_order_write, pst_order_read, NULL, 4, "flags seen" },
	{ "bytes",
	  "each byte arrives where it was stored, of any alignment and length; the last store wins",
	  "payload of messages and RDMA writes", pst_bytes_write, pst_bytes_read, NULL, 3,
	  "batches" },
	{ "loads", "no load goes through an outbound slice (port.h 2)", "nothing", NULL, NULL,
	  "it is a rule for the software above the port", 0, "" },
	{ "atomics", "no atomics across the link (port.h 3)", "nothing", NULL, NULL,
	  "it is a rule for the software above the port", 0, "" },
	{ "flush", "after port_flush() earlier stores are visible to the peer (port.h 4)",
	  "a receiver that goes to sleep and looks once more; the end of an RDMA write",
	  pst_flush_write, pst_flush_read, NULL, 2, "flushes" },
	{ "slices", "slices are aligned, zero and whole, and a store lands in its own slice",
	  "connections: each has a slice of its own; isolation of processes", pst_slices_write,
	  pst_slices_read, NULL, 0, "pages" },
	{ "freed",
	  "stores through the map of a slice that was freed reach no memory that is used again",
	  "clean-up after a process that was killed; isolation of processes", pst_freed_write,
	  pst_freed_read, NULL, 0, "slices" },
	{ "ring-order", "stores fenced before a ring are visible to whoever clears the bit",
	  "receivers that sleep: one that wakes too early looks, finds nothing and sleeps for up to 256 ms",
	  pst_ring_order_write, pst_ring_order_read, NULL, 4, "rings" },
	{ "rings", "no ring is lost, and each wakes who waits for its bit (port.h 5)",
	  "receivers that sleep, and agents: a message would wait until the receiver looks by itself",
	  pst_rings_write, pst_rings_read, NULL, 3, "rings" },
	{ "bits", "each doorbell bit rings, also several at once",
	  "channels, which share the bits; the agents' own bits", pst_bits_write, pst_bits_read,
	  NULL, 0, "masks" },
	{ "clear", "clearing one doorbell bit leaves the others",
	  "processes and channels of one host that have different bits", pst_clear_write,
	  pst_clear_read, NULL, 0, "bits" },
	{ "mask", "a masked bit is not read, and is delivered when the mask is cleared (port.h 5)",
	  "threads that poll: they mask their bit and must miss nothing", pst_mask_write,
	  pst_mask_read, NULL, 0, "bits" },
	{ "pads", "each scratchpad is written and read from both sides", "the handshake of agents",
	  pst_pads_write, pst_pads_read, NULL, 1, "writes" },
	{ "pad-order",
	  "stores fenced before a scratchpad is written are visible to whoever reads it",
	  "the handshake of agents: tables of slices are in place when the scratchpads say so",
	  pst_pad_order_write, pst_pad_order_read, NULL, 2, "writes" },
	{ "hostile", "bytes of an inbound slice are hostile until checked (port.h 6)", "nothing",
	  NULL, NULL, "it is a rule for the software above the port", 0, "" },
	{ "view",
	  "a process cannot write scratchpads, the state of the link, or take slices (port.h 7)",
	  "isolation of processes from each other and from the agent", pst_view_both, pst_view_both,
	  NULL, 0, "refusals" },
	{ "link", "both ends learn that the link went down, and that it came up as another one",
	  "connections: they are reported as lost, and old slices are not used with a new peer",
	  pst_link_write, pst_link_read, NULL, 0, "changes" },
	{ "time", "", "", pst_time_write, pst_time_read, NULL, 1, "" },
};

const unsigned int pst_clause_count = sizeof(pst_clauses) / sizeof(pst_clauses[0]);

static const char *const whys[PST_WHYS] = {
	[PST_WHY_NOTHING] = "",
	[PST_WHY_NO_ANSWER] = "the peer did not answer, or what it stored did not arrive",
	[PST_WHY_LINK_ENDED] = "the link went down",
	[PST_WHY_SAME_ROLE] = "the peer judges, too: one end serves",
	[PST_WHY_ERROR] = "an operation failed with error",
	[PST_WHY_TORN] = "half of a word arrived, at value",
	[PST_WHY_FLAG_FIRST] =
		"a flag arrived before the payload that was fenced before it, at flag",
	[PST_WHY_BYTES] = "bytes differ from those stored, the first at",
	[PST_WHY_FLUSH_EARLY] = "a store was not visible after the flush, at flush",
	[PST_WHY_SLICE_SHORT] = "a slice is shorter than asked for, or not aligned, slice",
	[PST_WHY_SLICE_DIRTY] = "a new slice is not zero, slice",
	[PST_WHY_SLICE_STRAY] = "a store did not land in its place, or another did, at byte",
	[PST_WHY_SLICE_RANGE] = "a slice was opened for more bytes than it has, which are",
	[PST_WHY_SLICE_FREED] =
		"a store through the map of a freed slice changed another, in round",
	[PST_WHY_RING_FIRST] =
		"a ring arrived before the stores that were fenced before it, at ring",
	[PST_WHY_STORE_LOST] = "a ring arrived, the stores before it did not, at ring",
	[PST_WHY_RING_LOST] = "a ring did not arrive, ring",
	[PST_WHY_NO_WAKE] = "a bit was read and nobody woke, at ring",
	[PST_WHY_BITS_LOST] = "rung together with others or alone did not arrive the bits",
	[PST_WHY_CLEARED_MORE] = "when one bit was cleared were lost the bits",
	[PST_WHY_MASK_IGNORED] = "a masked bit was read, bit",
	[PST_WHY_MASK_LOSES] = "a ring was not delivered when its mask was cleared, bit",
	[PST_WHY_PAD_LOST] = "a write of the peer did not arrive, scratchpad",
	[PST_WHY_PAD_READ] = "reading across the link gives another value, scratchpad",
	[PST_WHY_PAD_RANGE] =
		"an index that is not there is accepted, or one that is refused, scratchpad",
	[PST_WHY_PAD_FIRST] =
		"a scratchpad was written before the stores that were fenced before it, at write",
	[PST_WHY_VIEW_MAY] = "a view may do what is the agent's, check",
	[PST_WHY_LINK_STILL_UP] = "the state of the link is up after it was taken down",
	[PST_WHY_LINK_UNTOLD] = "the other end did not learn that the link went down",
	[PST_WHY_LINK_GENERATION] = "the link came up again in the same generation,",
	[PST_WHY_LINK_REACHES] = "scratchpads of the peer are reached while the link is down",
};

const char *pst_why_text(uint32_t why)
{
	return why < PST_WHYS ? whys[why] : "";
}
