/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that other processes sent, or may have sent.
 *
 * Closing one may take as long as its sender likes: a TCP socket lingers, a file of a user's own
 * file system waits for that user's process.  Closing a socket takes as long if such descriptors
 * wait in its queue, and so does reading past them, because the kernel then closes them.  Hence:
 *
 * - the kernel lets none into the queue of a socket (u_rights_pass(), Linux 6.16);
 * - the reader looks with MSG_PEEK first, which gives up nothing, and does not read what should not be there;
 * - what has to be closed is closed by threads that can be spared (u_close_apart()).
 */
#ifndef U_CLOSE_H
#define U_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

/* Threads that close, and descriptors that wait for them; at this number accept no more. */
#define U_CLOSE_MAX 64u

/*
 * Admits descriptors to the queue of a Unix socket, or refuses them: then sending some fails with
 * EPERM.  A connection inherits this from the listening socket when it is made.  Returns whether the
 * kernel does as asked.
 */
bool u_rights_pass(int sock, bool pass);

/* For tests: behave as on a kernel that cannot refuse them. */
void u_rights_forget(bool forget);

/*
 * Takes `fd` and closes it on a thread that may stay in the kernel for long; returns at once.  No epoll
 * may watch `fd` any more: a thread that waits there may be the one whose last reference releases it.
 */
void u_close_apart(int fd);

/*
 * Shuts down a connected Unix socket and closes it: its peer notices at once, and can still read
 * earlier messages.  The caller's thread closes it when no descriptors wait in its queue, else a
 * spare thread does, as in u_close_apart().
 */
void u_hang_up(int sock);

/* Closes a listening Unix socket, and the connections that were not accepted yet. */
void u_hang_up_listener(int sock);

/* Closes memory, which never blocks, at once, and anything else by a spare thread.  Accepts -1. */
void u_close_foreign(int fd);

/* In a child of fork(), before it has other threads: forgets the parent's spare threads. */
void u_close_forked(void);

/* Descriptors given to u_close_apart() that are not closed yet. */
unsigned int u_close_busy(void);

/*
 * A program that has an empty handler for `sig` lets u_close_timers() send it to closing threads that take long, which
 * ends the wait of a lingering socket.
 */
void u_close_signal(int sig);

/* Continues with descriptors that wait.  Returns when to call again, U_NEVER for never. */
int64_t u_close_timers(int64_t now);

#endif
