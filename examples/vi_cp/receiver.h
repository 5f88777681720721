/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_RECEIVER_H
#define VI_CP_RECEIVER_H

#include "session.h"

struct receiver_options {
	int base;	/* everything arrives below this directory */
	uint32_t flags; /* of the HELLO */
	/* What the first components of all paths must be among; NULL: any. */
	const char *const *names;
	int name_count;
};

/*
 * Takes what a sender sends, until its BYE.  0 when all was said, though files may have failed
 * (s->copied.failures); else -errno as of a session; *removed_out: an unfinished file was removed.
 */
int receiver_run(struct session *s, const struct receiver_options *options, bool *removed_out);

#endif
