/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agents that run step by step in the fuzzer's own thread, raw clients that
 * speak to them, and checks that must hold for both whatever others do.
 *
 * A step is one ag_step(), which handles what is ready and returns.  Time is
 * virtual: it stands still except for rig_pass().  So an input has the same
 * outcome each time, and a wait of the agent takes no real time.
 */
#ifndef RIG_H
#define RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_agent.h"
#include "ag_link.h"
#include "ag_state.h"
#include "w_addr.h"
#include "w_cm.h"
#include "w_ctl.h"
#include "w_tool.h"

#define RIG_HOSTS_MAX 3u /* of the fabric, a ring; of two, host 0 has `right` and host 1 `left` */
#define RIG_SLOTS 8u
#define RIG_PAYLOAD 4096u
#define RIG_WINDOW (8u << 20)
#define RIG_FDS 512 /* descriptors above are not looked at */

struct rig {
	char fabric[W_NAME_MAX];
	unsigned int hosts;
	struct ag_agent *agent[RIG_HOSTS_MAX]; /* NULL: not started */
	int admin[RIG_HOSTS_MAX];	       /* sockets of tools that may administer them */
};

struct rig_client {
	int sock; /* -1: none */
	unsigned int host;
};

struct rig_msg {
	_Alignas(8) uint8_t bytes[W_CTL_MAX];
	unsigned int nfds; /* descriptors that came with it; they are closed already */
};

/* Prints the error and aborts. */
_Noreturn void rig_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Opens a fabric of `hosts`; those in the mask `agents` have an agent. */
void rig_open(struct rig *r, unsigned int hosts, unsigned int agents);
void rig_close(struct rig *r);
/* Lets an agent handle what is ready; a step that computes for seconds is an error. */
void rig_step(struct rig *r, unsigned int host);
void rig_step_all(struct rig *r);
void rig_pass(unsigned int ms);
/* Steps until hosts 0 and 1 of a fabric of two are joined. */
void rig_link_up(struct rig *r);
/* Steps until that port of the host is joined. */
void rig_wait_link(struct rig *r, unsigned int host, unsigned int port);
/* Steps until the agents have no more messages for each other. */
void rig_drain(struct rig *r);
bool rig_linked(struct rig *r, unsigned int host);
void rig_admin(struct rig *r, unsigned int host, enum w_admin_verb verb, const char *name);

unsigned int rig_fds(void);
unsigned int rig_highest_fd(void);
struct rig_usage {
	struct ag_usage agent[RIG_HOSTS_MAX];
	unsigned int fds;
};
void rig_usage(struct rig *r, struct rig_usage *out);
/* Steps until nothing more is held than `before`; it is an error if that never happens. */
void rig_settle(struct rig *r, const struct rig_usage *before);

/* Negative when the agent cannot be reached now. */
int rig_dial(struct rig *r, struct rig_client *c, unsigned int host);
void rig_hang_up(struct rig_client *c);
int rig_send(struct rig_client *c, void *msg, enum w_ctl_type type, uint32_t len);
/* Type of the next message, 0 without any, -1 after a hang-up. What agents send is well-formed. */
int rig_recv(struct rig_client *c, struct rig_msg *m);

/* A client that keeps the rules: the agent must serve it. */
void rig_good(struct rig *r, struct rig_client *c, unsigned int host);
void rig_expect(struct rig *r, struct rig_client *c, int type, struct rig_msg *m);
/* Checks that it got no message that it did not ask for; `lost_allowed`: connections over a link may be lost. */
void rig_quiet(struct rig *r, struct rig_client *c, bool lost_allowed);

struct rig_pair {
	uint64_t client, server; /* conns */
};
void rig_join(struct rig *r, struct rig_client *c, struct rig_client *s, struct rig_pair *out);
void rig_part(struct rig *r, struct rig_client *c, struct rig_client *s,
	      const struct rig_pair *pair);

/* The discriminators of clients that keep the rules begin with this byte, all others do not. */
#define RIG_GOOD_DISC 0xff
void rig_addr(struct w_addr *out, unsigned int host, uint8_t first, uint8_t second);

#endif
