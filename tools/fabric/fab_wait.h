/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for agents and links while a fabric starts, as long as something advances; signals can interrupt it. */
#ifndef FAB_WAIT_H
#define FAB_WAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "fab.h"

/* A fabric that is starting is stopped by these signals, unless they are ignored. */
void fab_end_signals(sigset_t *out);

/* Is one of fab_end_signals(), which are blocked, pending? */
bool fab_interrupted(void);

/*
 * When a wait is given up.  An agent that does not answer may just have no processor, so it is given more time than
 * a link between two that answer.
 */
struct fab_patience {
	int silent_ms; /* an agent owes an answer for so long, and nothing else has advanced */
	int quiet_ms;  /* all agents answer, and tell nothing new */
};

extern const struct fab_patience fab_links_patience;

/* What one agent has told of its ports so far. */
struct fab_ports {
	bool open;  /* there is a connection to the agent */
	bool asked; /* it owes an answer: about port `at` */
	int64_t asked_at;
	bool counted; /* it has told how many ports it has */
	bool passed; /* it has told of all that are waited for, since the others were asked last, too */
	uint32_t at, n; /* below W_PORTS_MAX */
	uint32_t up;	/* a bit for each port whose link was up */
	unsigned int peers[W_PORTS_MAX];
	char names[W_PORTS_MAX][16];
};

struct fab_links {
	int only; /* the host whose links are waited for; -1: those of all */
	struct cl_agent agents[CL_HOSTS_MAX];
	struct fab_ports ports[CL_HOSTS_MAX];
};

/* NULL: out of memory, which `error` says. */
struct fab_links *fab_links_create(int only, char *error);
void fab_links_destroy(struct fab_links *l);

/*
 * Greets the agents of these hosts.  Where the links of only one host are waited for, others may be missing.
 * Returns 0, -EINTR, or another error with its line.
 */
int fab_links_open(struct fab_links *l, const struct fabric *f, const unsigned int *hosts,
		   unsigned int count, const struct fab_patience *p, char *error);

/* Is port `i` of the host one that is waited for? */
bool fab_links_wanted(const struct fab_links *l, unsigned int host, uint32_t i);

/*
 * Waits until the links between the hosts that were greeted are up.  Returns 0, -EINTR, -ETIMEDOUT (a link stays down),
 * or another error; all but -EINTR with a line.
 */
int fab_links_wait(struct fab_links *l, const struct fab_patience *p, char *error);

#endif
