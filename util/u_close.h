/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that others sent, or may have sent.
 *
 * Closing one may last as long as its sender likes: a TCP socket lingers, a file of a user's own file system waits
 * for that user's process.  Closing a socket in whose queue such descriptors wait lasts as long, and so does reading
 * past them, because the kernel then closes them.  Three things help:
 *
 * - the kernel lets none into the queue of a socket (u_rights_pass(), Linux 6.16);
 * - whoever reads looks with MSG_PEEK first, which gives up nothing, and does not read what should not be there;
 * - what has to be closed is closed by threads that can be spared (u_close_apart()).
 */
#ifndef U_CLOSE_H
#define U_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

/* Closing threads at once, and what waits for them, before callers should take nothing more in. */
#define U_CLOSE_MAX 64u

/*
 * Lets descriptors into the queue of a Unix socket, or keeps them out: then sending some fails with
 * EPERM.  A connection inherits this from the listening socket when it is made.  Returns whether the
 * kernel does as asked.
 */
bool u_rights_pass(int sock, bool pass);

/* For tests: be as on a kernel that cannot keep them out. */
void u_rights_forget(bool forget);

/* Takes `fd` and closes it on a thread that may stay in the kernel for long; returns at once. */
void u_close_apart(int fd);

/*
 * Hangs up a connected Unix socket: its peer notices at once, and can still read what it was told.  Closed here
 * when no descriptors wait in its queue, and apart when some do.
 */
void u_hang_up(int sock);

/* Closes a listening Unix socket; who was not accepted is hung up on. */
void u_hang_up_listener(int sock);

/* Closes memory, which waits for nobody, here, and anything else apart.  Accepts -1. */
void u_close_foreign(int fd);

/* In a child of fork(), before it has other threads: it has none of those that close, and nobody holds the lock. */
void u_close_forked(void);

/* Descriptors given to u_close_apart() that are not closed yet. */
unsigned int u_close_busy(void);

/*
 * A program that has an empty handler for `sig` lets u_close_timers() send it to closing threads that take long, which
 * ends the wait of a lingering socket.
 */
void u_close_signal(int sig);

/* Goes on with what waits.  Returns when to call again, U_NEVER when nothing is left. */
int64_t u_close_timers(int64_t now);

#endif
