/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control connection of a measurement: one VI of its own, always reliable delivery, over which
 * the client sends the server its parameters, both send the addresses of their buffers, and every
 * batch begins and ends.
 *
 *	client -> server  HELLO{params}
 *	server -> client  HELLO{region}              buffers are ready, or FAIL{text}
 *	both              connect the data VIs, discriminators NAME/0, NAME/1 ...
 *	client -> server  REGION{region}             all are connected
 *	client -> server  BATCH{size, count}         server: READY when it may begin
 *	both              measure; client END, server DONE{verify errors}
 *	client -> server  BYE                        server: BYE, then both disconnect
 */
#ifndef PF_CTL_H
#define PF_CTL_H

#include "pf_ep.h"

#define PF_CTL_MAGIC 0x46506956u
#define PF_CTL_VERSION 4u
#define PF_CTL_DEPTH 4u

enum pf_ctl_type {
	PF_CTL_ANY = 0, /* pf_ctl_recv(): any message except FAIL */
	PF_CTL_HELLO = 1,
	PF_CTL_REGION,
	PF_CTL_BATCH,
	PF_CTL_READY,
	PF_CTL_END,
	PF_CTL_DONE,
	PF_CTL_BYE,
	PF_CTL_FAIL,
};

struct pf_ctl_msg {
	uint32_t magic, version, type, reserved;
	union {
		struct {
			struct pf_params params;
			uint32_t pid;
			int32_t cpu;
			uint64_t region;
			uint32_t handle;
			char host[64];
		} hello;
		struct {
			uint64_t size, count, first;
		} batch;
		struct {
			uint64_t verify_errors;
		} done;
		char text[240];
	};
};

struct pf_ctl {
	struct pf_ep *ep;
	VIP_VI_HANDLE vi;
	void *memory; /* descriptors and messages: PF_CTL_DEPTH receives, one send */
	VIP_MEM_HANDLE handle;
};

/* Both return 0 or -errno with the cause noted in ep. */
int pf_ctl_create(struct pf_ctl *ctl, struct pf_ep *ep);
void pf_ctl_destroy(struct pf_ctl *ctl);

/* Sends a message of `type` whose body the caller filled; waits until it left. */
int pf_ctl_send(struct pf_ctl *ctl, struct pf_ctl_msg *msg, enum pf_ctl_type type);
/*
 * Receives a message of `type`.  FAIL becomes the cause.  `patient` waits for the client or server
 * as long as it lives; otherwise the silence allowed is that of the end point.
 */
int pf_ctl_recv(struct pf_ctl *ctl, struct pf_ctl_msg *msg, enum pf_ctl_type type, bool patient);
/* After a failure: adds the peer's FAIL message, if there is one, to the cause. */
void pf_ctl_ask_cause(struct pf_ctl *ctl);

/*
 * Connection of a VI.  The server waits until a client comes, `first` without end; the client
 * looks for the server until the end point's silence has passed.
 */
int pf_serve_vi(struct pf_ep *ep, VIP_VI_HANDLE vi, const char *name, bool first);
int pf_connect_vi(struct pf_ep *ep, VIP_VI_HANDLE vi, const char *host, const char *name);

/* Name of the own host, "unknown" if there is none. */
void pf_own_host(struct pf_ep *ep, char out[64]);
/* Route to a host, NULL for the own one.  Returns 0 or -ENOENT. */
int pf_route_to(struct pf_ep *ep, const char *host, VIPX_ROUTE *out);

#endif
