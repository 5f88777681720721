/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the service thread that looks at a connection has the core of the thread that makes the connection's calls.
 */
#ifndef U_PLACE_PAIR_H
#define U_PLACE_PAIR_H

#include "u_place.h"

/*
 * True: each core on which a thread of the application may run has a service thread that is held there, so that the two
 * threads of each connection can have one core.  `asks` and `d` are those of u_place(); only service threads count.  In
 * any case `out` says so in words.
 */
bool u_place_one_core(const struct u_place_case *c, const struct u_place_ask *asks, unsigned int n,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT]);

#endif
