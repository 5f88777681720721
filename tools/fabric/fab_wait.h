/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for agents and links while a fabric starts, while something advances; signals can interrupt it. */
#ifndef FAB_WAIT_H
#define FAB_WAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "fab.h"

/* Gets the signals that stop a fabric which is starting: those that are not ignored. */
void fab_end_signals(sigset_t *out);

/* Is one of fab_end_signals(), which are blocked, pending? */
bool fab_interrupted(void);

/*
 * The limits after which a wait is given up.  An agent that does not answer may only lack processor time, so it gets
 * more time than a link between two agents that answer.
 */
struct fab_patience {
	int silent_ms; /* for an agent that owes an answer while nothing else advances */
	int quiet_ms;  /* while all agents answer, and report nothing new */
};

extern const struct fab_patience fab_links_patience;

/* The answers of one agent about its ports so far. */
struct fab_ports {
	bool open;  /* there is a connection to the agent */
	bool asked; /* it owes an answer: about port `at` */
	int64_t asked_at;
	bool counted; /* it has said how many ports it has */
	bool passed;  /* it has answered about all awaited ports since all agents were last asked */
	uint32_t at, n; /* below W_PORTS_MAX */
	uint32_t up;	/* a bit for each port whose link was up */
	unsigned int peers[W_PORTS_MAX];
	char names[W_PORTS_MAX][16];
};

struct fab_links {
	int only; /* the host whose links are awaited; -1: those of all hosts */
	struct cl_agent agents[CL_HOSTS_MAX];
	struct fab_ports ports[CL_HOSTS_MAX];
};

/* Makes an empty set.  NULL: out of memory, as `error` says. */
struct fab_links *fab_links_create(int only, char *error);
void fab_links_destroy(struct fab_links *l);

/*
 * Greets the agents of these hosts.  If only the links of one host are awaited, other agents may be missing.  Returns
 * 0, -EINTR, or another error with its line.
 */
int fab_links_open(struct fab_links *l, const struct fabric *f, const unsigned int *hosts,
		   unsigned int count, const struct fab_patience *p, char *error);

/* Is the link of port `i` of the host awaited? */
bool fab_links_wanted(const struct fab_links *l, unsigned int host, uint32_t i);

/*
 * Waits until the links between the hosts that were greeted are up.  Returns 0, -EINTR, -ETIMEDOUT (a link stays down),
 * or another error; all but -EINTR with a line.
 */
int fab_links_wait(struct fab_links *l, const struct fab_patience *p, char *error);

#endif
