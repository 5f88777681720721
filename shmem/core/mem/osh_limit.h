/* SPDX-License-Identifier: BSD-2-Clause */
/* Which limit of the shell has made a call fail that says no more than that something was short. */
#ifndef OSH_LIMIT_H
#define OSH_LIMIT_H

#include <stddef.h>

#define OSH_LIMIT_TEXT 128

/*
 * Tries what such calls take: descriptors, `bytes` of shared memory, a thread.  Returns `text`: which limit
 * is in the way and how to raise it, the first that is found, or an empty text, never NULL: it is none of these.
 */
const char *osh_limit_find(size_t bytes, char text[OSH_LIMIT_TEXT]);

#endif
