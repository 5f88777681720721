/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leaving a path: the process is told to suspend the connection, the path is told that it is left
 * (CLOSE), and the connection waits on self, with no path: it is *suspended*.  ag_resume.c finds
 * the next path.
 */
#ifndef AG_SUSPEND_H
#define AG_SUSPEND_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_conn.h"
#include "ag_link.h"
#include "rt_topo.h"
#include "w_cm.h"
#include "w_ctl.h"

/* A connection that has no path for so long is lost. */
#define AG_RESUME_NS (800 * INT64_C(1000000))
/* Time between attempts to find a path for it. */
#define AG_ASK_NS (50 * INT64_C(1000000))

/* A RESUME that came before the process had suspended the connection. */
struct ag_pending_resume {
	struct ag_link *link;
	struct rt_path path;
	struct w_cm cm;
};

/* Is it reliable, and has each link of its path an alternative path?  Both ends come to the same answer. */
bool ag_suspend_can_resume(const struct ag_conn *conn);

/* Is it connected and resumable, and its process still there? */
bool ag_suspend_is_resumable(const struct ag_conn *conn);

/* Sets the state of its resuming, and whether the timers of ag_resume_ask.c apply: in all states but AG_ON_PATH. */
void ag_suspend_set(struct ag_conn *conn, enum ag_resume resume);

/* Starts the time within which a path must be found, AG_RESUME_NS from now. */
void ag_suspend_begin_timers(struct ag_conn *conn);

/*
 * The path is lost, or there is a shorter one: tells the process, which must exist, to suspend the connection,
 * and ends the shares of memory over it.  Its time to find a path begins, unless it runs.  The path is left
 * when the process has answered.
 */
void ag_suspend_begin(struct ag_conn *conn);

/* Moves the connection to self, without a path. */
void ag_suspend_to_self(struct ag_conn *conn);

/* Sends CLOSE over the connection's path and moves it to self; the slice is retired. */
void ag_suspend_leave_path(struct ag_conn *conn, enum w_lost reason);

/*
 * The attempt to resume the connection failed: frees the slice, into which no process stores, and
 * suspends the connection again.
 */
void ag_suspend_give_up(struct ag_conn *conn);

/*
 * The attempt failed after this end sent ACCEPT: the other end may already store, so the path is
 * left as in ag_suspend_leave_path().
 */
void ag_suspend_leave_attempt(struct ag_conn *conn);

/*
 * Calls off the attempt to resume it that is under way; false: there is none.  The end that asked tells the other
 * one; the end that was asked leaves the path, on which the other one may already store.  The caller sets the state.
 */
bool ag_suspend_withdraw(struct ag_conn *conn, enum w_lost reason);

/* Frees the pending RESUME, if there is one. */
void ag_suspend_drop_pending(struct ag_conn *conn);

/* The connection is not to be resumed any more: refuses the pending RESUME, if there is one, and ends its timers. */
void ag_suspend_forget(struct ag_conn *conn);

#endif
