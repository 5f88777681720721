/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_SENDER_H
#define VI_CP_SENDER_H

#include "session.h"
#include "walk.h"

struct sender_options {
	const struct walk_source *sources;
	int source_count;
	struct walk_options walk;
	bool no_clobber; /* the receiver says first whether it wants a file */
};

/*
 * Sends everything into the window of the receiver's WELCOME.  0 after the BYE, though
 * files may have failed (s->copied.failures); else -errno as of a session.
 */
int sender_run(struct session *s, const struct sender_options *options,
	       const struct cp_welcome *window);

#endif
