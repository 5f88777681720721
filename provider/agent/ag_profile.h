/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of links: which adapter the `model` of each port imitates.
 *
 * The text is LINK=PROFILE,... and all agents of a fabric get the same.  A LINK is A-B, both ends of all links
 * between two hosts, or A.PORT, the end at host A, which decides what host A sends; hosts by their numbers.  A port
 * that no item names has the profile of the kind of ports.  "" and NULL name none.
 */
#ifndef AG_PROFILE_H
#define AG_PROFILE_H

#include <stddef.h>

#include "port.h"
#include "rt_topo.h"

/*
 * Checks the text, for ports of that kind.  0; or -EINVAL, and `why` holds one line for people: what was sought, what
 * was found, what to do.
 */
int ag_profile_check(const struct rt_topo *t, const char *kind, const char *profiles, char *why,
		     size_t size);

/* Gives a kind of ports the profile of that port, if it has one in the text, which was checked.  0 or -EINVAL. */
int ag_profile_apply(const struct rt_topo *t, const char *profiles, struct rt_end port,
		     char kind[PORT_KIND_MAX]);

#endif
