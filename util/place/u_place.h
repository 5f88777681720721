/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides where threads run, from the topology of the machine, the allowed processors and the rules.
 * docs/placement.md describes the rules.  Nothing here has a side effect.
 */
#ifndef U_PLACE_H
#define U_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "u_cpuset.h"
#include "u_place_parse.h"
#include "u_topo.h"

/* The circumstances. */
struct u_place_case {
	const struct u_topo *topo; /* NULL: unknown */
	const struct u_place_rules *rules;
	struct u_cpuset allowed;
	struct u_cpuset application; /* where its thread may run; empty: not known */
	int device_node;	     /* of the adapter; U_TOPO_NONE: not known, or no adapter */
	unsigned int rank, ranks;    /* of this process among those of the machine; `ranks` 0: 1 */
	bool foreign; /* the application is in other processes; its rule only says where it runs */
	bool application_polls; /* the application's thread never sleeps */
};

/* A thread to be placed: number `index` of the `count` of its role. */
struct u_place_ask {
	enum u_place_role role;
	unsigned int index, count;
	bool polls; /* never sleeps */
};

enum u_place_why {
	U_PLACE_NOT_ASKED, /* no rule, or the rule "none" */
	U_PLACE_AS_ASKED,  /* as the rule says */
	U_PLACE_LOOSE, /* as the rule says, but the application's thread may run there as well */
	U_PLACE_SHARED_OUT,  /* for U_PLACE_SAME_CORE: each has some of the application's cores */
	U_PLACE_EVERYWHERE,  /* for U_PLACE_DEVICE: no processor is nearer than another */
	U_PLACE_NOT_THERE,   /* the machine has no such processor; another place */
	U_PLACE_NOT_ALLOWED, /* the process may not use them; another place */
	U_PLACE_NO_CACHES,   /* the caches of the cores are not known; another place */
	U_PLACE_WIDE,	/* the application's thread may run under several caches; another place */
	U_PLACE_PARTLY, /* some of the list */
	/* From here on the thread is not placed. */
	U_PLACE_NO_TOPOLOGY,	/* nothing is known of the machine */
	U_PLACE_NO_APPLICATION, /* the place of the application's thread is not known */
	U_PLACE_TOO_WIDE,	/* the application's thread may run on several packages */
	U_PLACE_NO_DEVICE,	/* the adapter's node is not known */
	U_PLACE_NO_LIST,	/* the process may use no processor of the list */
};

enum {
	U_PLACE_SHARES_CPU = 1,	 /* with the thread `with`, which has no other place either */
	U_PLACE_SHARES_CORE = 2, /* with the thread `with`, but each has its own processor */
	U_PLACE_POLLS = 4,	 /* one of the two never sleeps */
	U_PLACE_TOO_MANY = 8,	 /* more threads never sleep than there are processors */
};

struct u_place_decision {
	struct u_cpuset cpus; /* empty: not placed */
	enum u_place_where got;
	enum u_place_why why;
	unsigned int warnings;
	unsigned int
		with; /* for U_PLACE_SHARES_*: the index of the other thread; `n`: the application */
};

/* Decides for n threads of one process together, out[i] for asks[i], and adds the warnings.  Places no thread. */
void u_place(const struct u_place_case *c, const struct u_place_ask *asks, unsigned int n,
	     struct u_place_decision *out);

/* Gives the processors on which the application's threads will run, none: not known.  True: by the rule for them. */
bool u_place_application(const struct u_place_case *c, struct u_cpuset *out);

/* Gives the processors of the place for all service threads of the process; empty: they are not placed. */
void u_place_of_service(const struct u_place_case *c, struct u_cpuset *out);

/* Does the decision give what the rule says? Also where there is none, and where no processor is nearer to a device. */
bool u_place_met(const struct u_place_decision *d);

#define U_PLACE_TEXT 200

/* Writes one line: the place of the rule, the place that the thread got, and why.  Returns `out`. */
char *u_place_text(const struct u_place_case *c, const struct u_place_ask *ask,
		   const struct u_place_decision *d, char out[U_PLACE_TEXT]);

/* Writes the gravest of the warnings for thread `index` in words, "" for none.  Returns `out`. */
char *u_place_warning(const struct u_place_ask *asks, unsigned int n, unsigned int index,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT]);

#endif
