/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placement of threads, carried out: the circumstances of this process for u_place(), and what it
 * decided, applied and told.
 */
#ifndef U_AFFINITY_H
#define U_AFFINITY_H

#include <pthread.h>
#include <stdbool.h>

#include "u_place.h"
#include "u_topo_read.h"

struct u_affinity {
	struct u_place_case c; /* points into this structure */
	struct u_place_rules rules;
	struct u_topo *topo;
	char topo_error[U_TOPO_ERROR]; /* why there is none */
};

enum {
	U_AFFINITY_FOREIGN = 1,	 /* the applications are other processes: an agent */
	U_AFFINITY_TOPOLOGY = 2, /* read it also where no rule needs it */
};

/*
 * Takes the rules of the text, or of VIADUCT_AFFINITY where it is NULL; the calling thread is the
 * application's.  Returns 0, -EINVAL after a log line for a text that is refused, or -ENOMEM.  What cannot be
 * found out of the machine is no error.
 */
int u_affinity_open(const char *rules, unsigned int flags, struct u_affinity **out);
void u_affinity_close(struct u_affinity *a);

/* Is there a rule at all? */
bool u_affinity_asked(const struct u_affinity *a);

/*
 * Decides for n threads; `names` are for the log, which gets a line for each that a rule asks for, but for those
 * with NULL.  Returns 0, or -ENXIO after a log line if the rules are strict and one of those named cannot be had
 * as asked.
 */
int u_affinity_decide(const struct u_affinity *a, const struct u_place_ask *asks,
		      const char *const *names, unsigned int n, struct u_place_decision *out);

/* The decision in words, with the reason why the topology is not known.  Returns `out`. */
char *u_affinity_text(const struct u_affinity *a, const struct u_place_ask *ask,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT]);

/* Moves a thread to the processors decided; to all of the process if there are none.  Logs a failure. */
int u_affinity_move(const struct u_affinity *a, pthread_t thread, const char *name,
		    const struct u_place_decision *d);

/* Moves the calling thread of the application, if the decision says so. */
int u_affinity_move_self(const struct u_affinity *a, const struct u_place_decision *d);

/*
 * Moves interrupt `irq` as decided; `folder` is U_IRQ_FOLDER but in tests.  0; or -errno after a log line, and then
 * `out` says what has to be written, and where.
 */
int u_affinity_move_irq(const char *folder, int irq, const struct u_place_decision *d,
			char out[U_PLACE_TEXT]);

/* For tests: the memory node of the first adapter below a folder such as /sys/class/misc. */
int u_affinity_node(const char *folder);

#endif
