/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What oshrun writes: to standard output and error, and to the oshrun that has the job (--serve).  A thread for each
 * writes it, so that oshrun goes on where nobody reads.
 *
 * One thread calls these functions, and those that write use none of them.
 */
#ifndef RUN_SINK_H
#define RUN_SINK_H

#include <stdbool.h>
#include <stddef.h>

enum run_sink { RUN_SINK_OUT, RUN_SINK_ERR, RUN_SINK_UP, RUN_SINKS };

/*
 * A descriptor, made by the first call, that can be read when something was written, or could not be; -1: there is
 * none.
 */
int run_sink_event(void);
/* Makes the descriptor of run_sink_event() unreadable again. */
void run_sink_seen(void);

/* Where RUN_SINK_UP writes to. */
void run_sink_up(int fd);

/*
 * Takes a copy of all of it, whole lines where these shall not be mixed with those of other programs; does not wait.
 * After an error it is dropped.  A child of oshrun, or a sink without a thread, writes by itself, and waits.
 */
void run_sink_put(enum run_sink which, const char *data, size_t bytes);

/* Has it to write so much that nothing more should be put there? */
bool run_sink_full(enum run_sink which);
/* Has it to write so many bytes, or more?  What would make them more than RUN_SINK_MOST is not put there. */
#define RUN_SINK_MOST ((size_t)64 << 20)
bool run_sink_over(enum run_sink which, size_t bytes);

/* Is there something to write? */
bool run_sink_busy(enum run_sink which);

/* Why it cannot be written any more, an errno: what is put there is lost.  0: it can. */
int run_sink_error(enum run_sink which);

/* Nobody is waited for any more: what is not written, and what is put to a sink later, is lost. */
void run_sink_abandon(void);

/* Waits until all is written, so many ms at most for all sinks together. */
void run_sink_finish(int ms);

#endif
