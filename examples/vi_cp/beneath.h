/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening files that must lie below a directory. */
#ifndef VI_CP_BENEATH_H
#define VI_CP_BENEATH_H

/*
 * Opens `path` below the directory `dir`, with the flags of open(2).  Symbolic links are followed
 * only if `links`, and only while they stay below it.  Returns a descriptor or -errno: -EXDEV or
 * -ELOOP for a path that leads out.
 */
int beneath_open(int dir, const char *path, int flags, int links);

#endif
