/* SPDX-License-Identifier: BSD-2-Clause */
/* Granting window memory of this process to peers, and taking it back. */
#ifndef NVI_WINDOW_H
#define NVI_WINDOW_H

#include "nvi_chan.h"
#include "nvi_given.h"

#define NVI_REVOKE_MS 2000u

/*
 * Handles a message about grants from the process at the other end, with its descriptor or -1, which stays the
 * caller's; a malformed one is ignored.  No locks held.
 */
void nvi_grant_told(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_tell *msg, int fd);

/*
 * A disconnect begins: takes back all grants of the connection.  On return a correct peer stores
 * nothing any more; if it was too slow, the connection is broken.  Nothing is granted to the
 * channel until nvi_revoke_conn_end().  No locks held.
 */
void nvi_revoke_conn_begin(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t *conn_out);
/*
 * The disconnect that nvi_revoke_conn_begin() began, which gave `conn`, is over: forgets what the connection had been
 * granted.  Takes mem_lock.
 */
void nvi_revoke_conn_end(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);
/*
 * Takes the window back from all peers: asks for it, waits, and cuts the connection of a peer that does not answer.
 * On return no peer may store into it.  Does nothing for a window that was freed.  No locks held.
 */
void nvi_window_revoke(struct vi_nic *vi_nic, void *window);
/* Enters a window, which may then be granted.  Takes mem_lock. */
void nvi_window_enter(struct nvi_nic *nic, struct nvi_window *w);
/* Removes a window when its handle is gone; waits for threads that take it back.  Does not free it.  Takes mem_lock. */
void nvi_window_leave(struct nvi_nic *nic, struct nvi_window *w);

#endif
