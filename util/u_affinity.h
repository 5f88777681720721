/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out the placement of threads: finds the circumstances of this process for u_place(), applies
 * its decisions and logs them.
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
	char topo_error[U_TOPO_ERROR]; /* why `topo` is NULL */
};

enum {
	U_AFFINITY_FOREIGN = 1,	 /* the applications are other processes: an agent */
	U_AFFINITY_TOPOLOGY = 2, /* read it even if no rule needs it */
};

/*
 * Takes the rules of the text, or of VIADUCT_AFFINITY if it is NULL; the calling thread is the
 * application's.  Returns 0, -EINVAL after a log line for a text that is refused, or -ENOMEM.  Unknown
 * properties of the machine are no error.  `flags`: U_AFFINITY_FOREIGN, for which the calling thread counts for
 * nothing, and U_AFFINITY_TOPOLOGY.  Moves no thread.
 */
int u_affinity_open(const char *rules, unsigned int flags, struct u_affinity **out);
/* Frees it; threads stay where they are.  Accepts NULL. */
void u_affinity_close(struct u_affinity *a);

/* Is there a rule at all? */
bool u_affinity_asked(const struct u_affinity *a);

/*
 * Decides for n threads; `names` are for the log, which gets a line for each thread that has a rule and a name; NULL:
 * no name.  Returns 0, or -ENXIO after a log line if the rules are strict and one with a name cannot be placed as
 * asked.  `out` gets n decisions also then.  Moves no thread.
 */
int u_affinity_decide(const struct u_affinity *a, const struct u_place_ask *asks,
		      const char *const *names, unsigned int n, struct u_place_decision *out);

/* The decision in words, with the reason why the topology is not known.  Returns `out`. */
char *u_affinity_text(const struct u_affinity *a, const struct u_place_ask *ask,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT]);

/*
 * Binds a thread to the processors of the decision; if it has none, to all of the process.  0, or -errno after a log
 * line.
 */
int u_affinity_move(const struct u_affinity *a, pthread_t thread, const char *name,
		    const struct u_place_decision *d);

/*
 * Moves the calling thread of the application, if the decision names processors, after u_thread_keep_cpus().  0, also
 * if it names none, or -errno after a log line.
 */
int u_affinity_move_self(const struct u_affinity *a, const struct u_place_decision *d);

/*
 * Moves interrupt `irq` as decided; `folder` is U_IRQ_FOLDER except in tests.  0, and `out` is left; or -errno after a
 * log line, and then `out` says what has to be written to which file.
 */
int u_affinity_move_irq(const char *folder, int irq, const struct u_place_decision *d,
			char out[U_PLACE_TEXT]);

/*
 * The memory node of the adapter with the lowest number that has one; U_TOPO_NONE: there is none.  `folder` is
 * /sys/class/misc except in tests.
 */
int u_affinity_node(const char *folder);

#endif
