/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_CP_RECEIVER_H
#define VI_CP_RECEIVER_H

#include "session.h"

struct receiver_options {
	int base;	/* everything arrives below this directory */
	uint32_t flags; /* of the HELLO */
	/* The names that the first component of a path may have; NULL: any. */
	const char *const *names;
	int name_count;
};

/*
 * Receives from a sender until its BYE.  0 after the BYE, though files may have failed
 * (s->copied.failures); else -errno as of a session; *removed_out: an unfinished file was removed.
 */
int receiver_run(struct session *s, const struct receiver_options *options, bool *removed_out);

#endif
