/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the other end's agent about a connection, for an end of this host. */
#ifndef AG_REMOTE_H
#define AG_REMOTE_H

#include <stdbool.h>

#include "ag_link.h"
#include "w_cm.h"
#include "w_ctl.h"

/*
 * REQ: a process of another host asks for a connection.  A waiter at that address is used up, and its process
 * told (ARRIVED); else it is answered with REFUSE.  A repeated one is ignored.
 */
void ag_remote_request(struct ag_link *l, const struct w_cm *cm);

/*
 * REFUSE: the request of this end is refused, whose process is told and which is freed; or an attempt to resume
 * its connection, as ag_resume_refused() says.
 */
void ag_remote_refuse(struct ag_link *l, const struct w_cm *cm);

/*
 * ACCEPT and CONFIRM, each of which names a slice.  0, or -EAGAIN: the slice has not arrived, and
 * this is not the last chance.
 */
int ag_remote_accept(struct ag_link *l, const struct w_cm *cm, bool last_chance);
int ag_remote_confirm(struct ag_link *l, const struct w_cm *cm, bool last_chance);

/* CANCEL: the other end asked, and gave up before it was connected. */
void ag_remote_cancel(struct ag_link *l, const struct w_cm *cm);

/* CLOSE: the other end closed the connection or left the path. */
void ag_remote_close(struct ag_link *l, const struct w_cm *cm);

#endif
