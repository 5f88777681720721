/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that a child of vfork() hands to the next program.
 *
 * Such a child is made by fork() here, and has its own copy of the objects, but the VIs are its parent's.  So the
 * parent waits, as vfork() does, and moves the sockets that the child asks for back to the kernel: at dup2(), since the
 * child may close all other descriptors after that, and before exec.
 */
#ifndef VS_ASK_H
#define VS_ASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "vs_obj.h"

/*
 * Before this thread makes the child: ends[0] is the parent's, ends[1] the child's.  False: no socket has a VI, so it
 * has nothing to ask for, or it cannot; neither end is open then.  errno stays.
 */
bool vs_ask_open(int ends[2]);
/*
 * In the parent: serves the child, and returns when that has another program, or has ended; at once for a `child` of
 * -1, which was not made.  Closes both ends.  errno stays.
 */
void vs_ask_serve(int ends[2], pid_t child);
/* In the child: keeps its end for vs_ask_for(), and closes the parent's. */
void vs_ask_begin(int ends[2]);
/*
 * Asks for it, if it is a socket and this is such a child; returns when the kernel has its bytes, or the parent has
 * waited a second for that, or has ended.
 */
void vs_ask_for(struct vs_obj *o);
/*
 * In each child of fork(): closes the inherited ends of other calls of vfork(), so that this process can ask nobody.
 * The end that this thread has opened for it stays.
 */
void vs_ask_forked(void);

#endif
