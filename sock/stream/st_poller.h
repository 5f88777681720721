/* SPDX-License-Identifier: BSD-2-Clause */
/* st_poller.h - threads that look at streams for those that would arm them */
#ifndef ST_POLLER_H
#define ST_POLLER_H

#include "st_process.h"

/* Starts those that st_config asks for, unless some run; the NIC is open.  After an error there are fewer, or none. */
void st_pollers_start(void);
/* True: one of them is held on a core with one processor, for which threads of the program may have to wait. */
bool st_pollers_share(void);
/* Ends them, and waits for that; what they had comes back to nobody, and wakers and watches are no longer valid. */
void st_pollers_end(void);
/* In a child of fork(), which has none of them: wakers and watches of the parent are no longer valid. */
void st_pollers_forked(void);

#endif
