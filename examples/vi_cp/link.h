/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The VIPL side of vi_cp: one connection with messages in both directions and a
 * window of large buffers.  Independent of files.
 *
 * Functions return 0 or -errno: -ENOTCONN when the peer is gone, -ETIMEDOUT,
 * -EPROTO.  The caller prints the error line, as it knows the purpose.
 */
#ifndef VI_CP_LINK_H
#define VI_CP_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "proto.h"

#define LINK_SENDS 24u /* messages that may wait for completion at a time */

/* The memory that the NIC reads and writes; one registered region. */
struct link_slot {
	VIP_DESCRIPTOR desc; /* first: a descriptor is its slot */
	char message[CP_MESSAGE_MAX];
};
static_assert(sizeof(struct link_slot) % VIP_DESCRIPTOR_ALIGNMENT == 0, "slots stay aligned");

struct link_memory {
	struct link_slot receive[CP_RECEIVES];
	struct link_slot send[LINK_SENDS];
	VIP_DESCRIPTOR write[CP_BUFFERS];
};

struct link {
	VIP_NIC_HANDLE nic;
	VIP_PROTECTION_HANDLE ptag;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE memory_handle, window_handle;
	struct link_memory *memory;
	char *window; /* CP_BUFFERS buffers: to read files into, or for the peer to write */
	bool send_busy[LINK_SENDS];
	bool write_busy[CP_BUFFERS];
	union {
		VIP_NET_ADDRESS addr;
		char room[sizeof(VIP_NET_ADDRESS) + 128];
	} here, there;
};

/* The result of link_receive(). */
struct link_event {
	bool is_data;	   /* the peer filled a buffer; else a message */
	uint32_t buffer;   /* of data: as the peer says, not checked */
	uint32_t length;   /* bytes of the message or in the buffer */
	const void *bytes; /* of a message, until link_release() */
	struct link_slot *slot;
};

/* Opens the NIC, registers memory, posts receives.  `target`: the peer may write into the window. */
int link_open(struct link *link, const char *service, bool target);
void link_close(struct link *link); /* any state of link_open(), also half-done */

/* Waits briefly for a peer, then connects.  -ETIMEDOUT when none came. */
int link_serve(struct link *link, unsigned int timeout_ms);

/* Finds the host to connect to: -ENOENT for an unknown one. */
int link_find(struct link *link, const char *host);

/* One attempt: -EAGAIN when no server runs there now, -EHOSTUNREACH. */
int link_connect(struct link *link, unsigned int timeout_ms);

/* Ends the connection and gets ready for another one. */
int link_reset(struct link *link);

/* Sends a copy of a message. */
int link_send(struct link *link, const void *message, size_t length);

/* The next message or write of the peer; it holds a receive until link_release(). */
int link_receive(struct link *link, unsigned int timeout_ms, struct link_event *event);
int link_release(struct link *link, const struct link_event *event);

/* Writes `length` bytes of own buffer `buffer` into the peer's buffer of that number. */
int link_write(struct link *link, uint32_t buffer, uint32_t length, const struct cp_welcome *there);

/* Waits until own buffer `buffer` may be changed again. */
int link_write_wait(struct link *link, uint32_t buffer);

static inline char *link_buffer(struct link *link, uint32_t buffer)
{
	return link->window + (size_t)buffer * CP_BUFFER_BYTES;
}

#endif
