/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between tools and agents: lists, the counters of NICs, and requests to change something.
 */
#ifndef W_TOOL_H
#define W_TOOL_H

#include <assert.h>
#include <stdint.h>

#include "w_ctl.h"

/*
 * The topology is listed as its spec (rt_topo.h) and a mask of links for each host.  A spec may be longer than
 * a message: its items, one after the other, make it up.
 */
enum w_list_what {
	W_LIST_HOSTS = 1,
	W_LIST_PORTS,
	W_LIST_CLIENTS,
	W_LIST_ALIASES,
	W_LIST_TOPOLOGY, /* {"spec":"..."} */
	W_LIST_LINKS,	 /* of host `index`: {"host":0,"heard":true,"up":7,"bridges":0} */
	W_LIST_RELAY, /* transfer threads, and their counters; then their placement, see ag_place.c */
	W_LIST_WHAT_MAX
};

struct w_list {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t what;
	uint32_t index;
};

/* An item, as a JSON object in `text`; past the last `more` is 0 and `text` empty. */
struct w_listed {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t more;
	uint32_t reserved;
	char text[400];
};

#define W_COUNTERS 20u /* the fields of VIPX_COUNTERS after Size, in their order */

struct w_count {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t index;	 /* of the NIC in the agent's list of clients */
	uint32_t client; /* agent to process: id of the client that asks; echoed */
};

struct w_counted {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t index; /* agent to tool: 0 when there is no such NIC, else 1 */
	uint32_t client; /* process to agent: the client that asked; agent to tool: the NIC's client id */
	uint32_t pid;
	uint32_t reserved;
	char program[W_NAME_MAX];
	uint64_t counters[W_COUNTERS];
};
static_assert(sizeof(struct w_counted) <= W_CTL_MAX, "w_counted");

enum w_admin_verb {
	W_ADMIN_STOP = 1,  /* the agent leaves; its clients lose their NICs */
	W_ADMIN_LINK_DOWN, /* name: port */
	W_ADMIN_LINK_UP,
	W_ADMIN_ALIAS,	/* name: "alias=host" host alias of the name service */
	W_ADMIN_DEVICE, /* name: "device=host" device alias */
	W_ADMIN_LEAVE,	/* the agent leaves if it was started on demand and no NIC is open */
};

struct w_admin {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t verb;
	uint32_t reserved;
	char name[W_NAME_MAX * 2];
};

static_assert(sizeof(struct w_listed) <= W_CTL_MAX, "w_listed");

#endif
