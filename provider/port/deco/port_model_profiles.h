/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles: the adapters whose delays the model can imitate. */
#ifndef PORT_MODEL_PROFILES_H
#define PORT_MODEL_PROFILES_H

#include <stdint.h>

/* Times in nanoseconds.  port_model_profiles.c says where each value is from. */
struct port_model_profile {
	const char *name;
	uint64_t line_rate;	    /* bytes a second, one direction, all bytes of packets */
	uint32_t payload_bytes;	    /* of the largest packet */
	uint32_t packet_bytes;	    /* bytes that a packet adds to its payload */
	uint32_t posted_bytes;	    /* bytes that the adapter buffers ahead of the link */
	uint32_t latency_ns;	    /* from the link to the memory of the peer */
	uint32_t register_write_ns; /* the processor's share of a posted register write */
	uint32_t register_read_ns;  /* of this host's adapter */
	uint32_t interrupt_ns; /* from the doorbell's arrival to the thread that waits for it */
	uint32_t dma_setup_ns; /* writing and starting a descriptor, seeing it done */
	uint64_t copy_rate;    /* bytes a second that one processor copies in memory */
};

/* Returns the profile of that name, or NULL. */
const struct port_model_profile *port_model_profile_find(const char *name);

#define PORT_MODEL_NAMES_MAX 128

/* Writes the names of all profiles, with commas between, and returns `text`. */
const char *port_model_profile_names(char text[PORT_MODEL_NAMES_MAX]);

#endif
