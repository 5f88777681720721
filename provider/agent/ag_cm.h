/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records about connections: sending and answering them, and handing the slices that they name to a
 * process.
 */
#ifndef AG_CM_H
#define AG_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_conn.h"
#include "ag_link.h"
#include "ag_state.h"
#include "w_cm.h"
#include "w_ctl.h"

/*
 * Sends a record about `conn`, with its ids, addresses, geometry and path, to the agent of its other end.  It is
 * dropped while the link is not up (ag_ctl_send()).  The state is not changed.
 */
void ag_cm_send(struct ag_conn *conn, enum w_ctl_type type, uint32_t status);

/*
 * Answers the record `req`, which came over `l`, in the name of its destination.  Without a path back it sends
 * nothing.
 */
void ag_cm_answer(struct ag_link *l, const struct w_cm *req, enum w_ctl_type type,
		  enum w_status status);

/* Answers the record `req` as ag_cm_answer() does, with a REFUSE. */
void ag_cm_refuse(struct ag_link *l, const struct w_cm *req, enum w_status status);

/* Returns the status for `err`, 0 or -errno, of a connection: W_SUCCESS, W_NOT_REACHABLE, or for most W_NO_RESOURCE. */
enum w_status ag_cm_status(int err);

/*
 * Returns the end of this host that a record over `l` concerns: that of its id or, where the record has none, that
 * whose other end has the sender's id.  NULL: there is none, or it has another link, epoch or other end than the
 * record says.
 */
struct ag_conn *ag_cm_end_of(struct ag_link *l, const struct w_cm *cm);

/* Does a request come from the host that it names, and is it for this one? */
bool ag_cm_addresses_ok(struct ag_agent *a, const struct w_cm *cm);

/*
 * Opens the slice that the other end named; the caller closes *fd_out.  0, -errno (logged), or
 * -EAGAIN: it has not arrived, and this is not the last chance.
 */
int ag_cm_outbound(struct ag_link *l, const struct w_geometry *g, bool last_chance, int *fd_out);

/*
 * Hands both slices of a connection to its process, by a message of that type, after that about the port if it lacks
 * it.  The end has its slice (ag_conn_slice_alloc()), which its process holds from then on; the caller sets the state.
 * Takes over `out_fd` in any case.  0, or -EMFILE: nothing was sent.
 */
int ag_cm_linked(struct ag_conn *conn, enum w_ctl_type type, const struct w_cm *cm, int out_fd);

#endif
