/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiles of the model port.  Each value says where it is from; "chosen" marks a value that no
 * source gives, and the reason for the choice.
 */
#include <stdio.h>
#include <string.h>

#include "port_model_profiles.h"
#include "u_base.h"

/*
 * What the sources of a profile do not say is as in gen3x8, whose comments give the reasons, so that profiles differ
 * only by what was published.  These values no other profile has a source for:
 */
#define PACKETS_AS_GEN3X8 .payload_bytes = 128, .packet_bytes = 26, .posted_bytes = 4096
#define HOST_AS_GEN3X8                                                                             \
	.register_write_ns = 150, .register_read_ns = 1000, .interrupt_ns = 3000,                  \
	.dma_setup_ns = 1000, .copy_rate = 10000000000
#define LATENCY_AS_GEN3X8 .latency_ns = 530

static const struct port_model_profile profiles[] = {
	/*
	 * Two hosts joined by adapters whose bridge is a PLX/Broadcom PEX87xx switch, PCIe 3.0,
	 * eight lanes, as in the OpenSHMEM prototypes of Lim, Park and Cha (IPDPSW 2019, doi
	 * 10.1109/IPDPSW.2019.00104) and Lim and Cha (JIPS 18(1), 2022, doi 10.3745/JIPS.01.0085).
	 * Large stores pass at 6.40 GB/s.
	 */
	{
		.name = "gen3x8",

		/*
		 * 8 GT/s x 8 lanes x 128/130 = 7.877 GB/s (PCI Express Base Specification 3.0),
		 * less 2.25 % for acknowledgements and flow control, which share the lanes
		 * (Neugebauer et al., "Understanding PCIe performance for end host networking",
		 * SIGCOMM 2018, doi 10.1145/3230543.3230560, puts packets of the data link layer at
		 * 8 to 10 % of a loaded duplex link; this value is chosen for one direction).
		 */
		.line_rate = 7700000000,

		/*
		 * The payload limit of the root ports of the servers of that time; NTSocks
		 * (ACM 2022, doi 10.1145/3555050.3569128) reports 128 for its NTB too.
		 */
		.payload_bytes = 128,

		/*
		 * Framing 4, sequence number 2, header 16 with a 64-bit address, check 4
		 * (PCI Express Base Specification 3.0).
		 */
		.packet_bytes = 26,

		/*
		 * Chosen: 64 lines, which a processor's write-combining buffers and the posted
		 * credits of a switch port hold together.  It decides how far a sender runs ahead
		 * of the link, not how fast the link is.
		 */
		.posted_bytes = 4096,

		/*
		 * Half of the round trip of 8 bytes over a polled NTB, 1.06 us (NTSocks).
		 * Dolphin publishes 0.54 us for its PXH810, an adapter with a PEX87xx; with the
		 * bridge inside of the processor it is below 0.3 us (Dolphin, "PCIe Networking
		 * over Intel NTB").
		 */
		.latency_ns = 530,

		/*
		 * Uncached stores leave a processor 50 to 300 ns apart (measurements in the Intel
		 * developer forum, thread 1186313).
		 */
		.register_write_ns = 150,

		/*
		 * A load over PCIe 3.0 takes 0.5 to 1 us in a server (Neugebauer et al. 2018
		 * measure about 0.55 us for 64 bytes over eight lanes without a switch); Marlin
		 * (Tu, Lee, Chiueh, ANCS 2014) reports 2.48 us for a register of its NTB.
		 */
		.register_read_ns = 1000,

		/*
		 * Message-signalled interrupt, its handler, and the wake-up of a thread that
		 * sleeps.  Chosen within the 2 to 5 us that servers without virtualization need;
		 * the papers wake a kernel thread by an interrupt, too.
		 */
		.interrupt_ns = 3000,

		/*
		 * The descriptor is written (two posted register writes and memory), the engine is
		 * started, and its completion is read.  Chosen as one register read: Marlin finds
		 * set-up and completion of a descriptor of that order.
		 */
		.dma_setup_ns = 1000,

		/*
		 * Source and target are not in the cache: one core of a server of that time copies
		 * 8 to 12 GB/s (STREAM copy of one thread, Xeon E5; this project measures 22 on a
		 * newer one).
		 */
		.copy_rate = 10000000000,
	},
	/*
	 * A ring of three hosts on PEX8733 and PEX8749: at most 3,500 MB/s and 2.6 GB/s by the copy engines of these
	 * chips (published with the ring; docs/experiments.md).  A line rate is that of the packets of which so many
	 * bytes are payload: 154 of 128.  Above 1 MiB, the buffer of the engine, the published rate collapses: that is
	 * not here, since a link has one rate for stores of any size.
	 */
	{ .name = "pex8733",
	  .line_rate = 4211000000,
	  LATENCY_AS_GEN3X8,
	  PACKETS_AS_GEN3X8,
	  HOST_AS_GEN3X8 },
	{ .name = "pex8749",
	  .line_rate = 3128200000,
	  LATENCY_AS_GEN3X8,
	  PACKETS_AS_GEN3X8,
	  HOST_AS_GEN3X8 },
	/*
	 * Dolphin PXH810, eight lanes of PCIe 3.0: 6.4 GB/s to a C program (published with a Java binding for it),
	 * 0.54 us (the vendor's figure).
	 */
	{ .name = "pxh810",
	  .line_rate = 7700000000,
	  .latency_ns = 540,
	  PACKETS_AS_GEN3X8,
	  HOST_AS_GEN3X8 },
	/*
	 * A bridge inside of the processor: 4 bytes are there and back in less than 600 ns, so one way in less than
	 * 300 (Dolphin, "PCIe Networking over Intel NTB").  Chosen: 290, to which a packet of 4 bytes adds 4.  No
	 * rate was published with it: chosen as gen3x8.
	 */
	{ .name = "cpu-ntb",
	  .line_rate = 7700000000,
	  .latency_ns = 290,
	  PACKETS_AS_GEN3X8,
	  HOST_AS_GEN3X8 },
	/*
	 * Renesas R-Car S4 as endpoint, what users of TCP over ntb_netdev get: 583 Mb/s, and 1.16 Gb/s with two queues
	 * (patches for several queues of ntb_netdev, linux-ntb, March 2026).  The copy at the receiver is what limits
	 * these, not the link, which is faster.
	 */
	{ .name = "rcar-s4",
	  .line_rate = 87700000,
	  LATENCY_AS_GEN3X8,
	  PACKETS_AS_GEN3X8,
	  HOST_AS_GEN3X8 },
	{ .name = "rcar-s4-2q",
	  .line_rate = 174500000,
	  LATENCY_AS_GEN3X8,
	  PACKETS_AS_GEN3X8,
	  HOST_AS_GEN3X8 },
};

const struct port_model_profile *port_model_profile_find(const char *name)
{
	for (size_t i = 0; i < U_ARRAY_SIZE(profiles); i++) {
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	}
	return NULL;
}

const char *port_model_profile_names(char text[PORT_MODEL_NAMES_MAX])
{
	size_t at = 0;

	for (size_t i = 0; i < U_ARRAY_SIZE(profiles) && at < PORT_MODEL_NAMES_MAX; i++)
		at += (size_t)snprintf(text + at, PORT_MODEL_NAMES_MAX - at, "%s%s",
				       i > 0 ? ", " : "", profiles[i].name);
	return text;
}
