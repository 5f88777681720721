/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The self-test of a port: does it keep the promises of port.h?
 *
 * Two processes run it, on the hosts at both ends of a link.  One judges and reports, the other helps.
 * Each clause is tried in both directions: one end stores, rings or writes, the other looks.  A clause is
 * broken when something was seen that port.h rules out, or when something that it promises did not come
 * within pst_cfg.lost_ns after the other end had said that it was on its way.  Speeds are reported and not
 * judged.
 */
#ifndef PST_H
#define PST_H

#include <stdio.h>

#include "port.h"

enum pst_state { PST_KEPT, PST_BROKEN, PST_NOT_TESTABLE };

#define PST_CLAUSES_MAX 24
#define PST_MEASURES_MAX 24
#define PST_TEXT 120

/* What the two ends saw of a clause in one direction. */
struct pst_counts {
	uint32_t tried, wrong;
	uint32_t extra; /* allowed, but of interest: rings that nobody made, writes that were made again */
	uint32_t why;			  /* enum pst_why of the first that was wrong */
	uint32_t at;			  /* where or when that was */
	uint32_t late50_ns, late_most_ns; /* how late what was early or late was */
};

struct pst_verdict {
	const char *id, *rule, *needs;
	enum pst_state state;
	struct pst_counts way[2]; /* to the peer, from the peer */
	char text[PST_TEXT];	  /* of what is broken, or why it cannot be tested */
};

struct pst_measure {
	const char *name, *unit;
	size_t bytes; /* of each store; 0: none */
	double mid, p99;
};

struct pst_report {
	unsigned int clauses, measures;
	struct pst_verdict clause[PST_CLAUSES_MAX];
	struct pst_measure measure[PST_MEASURES_MAX];
	unsigned int broken; /* how many clauses */
	struct port_limits limits;
	char peer_kernel[56];
	double seconds;
};

struct pst_cfg {
	struct port *port; /* of an agent, its link enabled */
	double seconds;	   /* that the clauses share */
	int64_t lost_ns;   /* what did not come in this time is lost */
	int64_t gone_ns;   /* a peer that has not answered for this time is gone */
	/* Called after each clause, if not NULL. */
	void (*heard)(void *arg, const struct pst_verdict *v);
	void *arg;
};

#define PST_LOST_NS INT64_C(3000000000)
#define PST_GONE_NS INT64_C(30000000000)

/* Judges.  Each clause has a verdict on return, also when the peer has not answered.  0 or -ENOMEM. */
int pst_judge(const struct pst_cfg *cfg, struct pst_report *out);
/* Helps a judge until it is done.  0; -ENOTCONN when the link ended before that; -errno. */
int pst_help(const struct pst_cfg *cfg);

/* What is known about the adapter and its host, for the report; "" where it is not. */
struct pst_place {
	char device[64], kernel[96], machine[72], driver[32], chip[32];
};

/* "kept", "broken" or "not testable". */
const char *pst_state_name(enum pst_state state);
/* Prints one clause: its rule, how often it was tried, and of a broken one what depends on it. */
void pst_text_verdict(FILE *to, const struct pst_verdict *v);
/* Prints what follows the clauses: costs, the adapter, and how many clauses were kept. */
void pst_text(FILE *to, const struct pst_report *r, const struct pst_place *place);
/* Writes JSON, schema viaduct.selftest.  0 or -errno. */
int pst_json(FILE *to, const struct pst_report *r, const struct pst_place *place);

#endif
