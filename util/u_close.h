/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that other processes sent, or may have sent.
 *
 * Closing one may take as long as its sender likes: a TCP socket lingers, a file of a user's own
 * file system waits for that user's process.  Closing a socket takes as long if such descriptors
 * wait in its queue, and so does reading past them, because the kernel then closes them.  Hence:
 *
 * - the kernel refuses to put any into the queue of a socket (u_rights_pass(), Linux 6.16);
 * - the reader looks with MSG_PEEK first, which releases nothing, and does not read descriptors that it does not want;
 * - threads that have nothing else to do close such descriptors (u_close_apart()).
 */
#ifndef U_CLOSE_H
#define U_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

/* The most threads that close.  When that many descriptors are not closed yet, accept no more. */
#define U_CLOSE_MAX 64u

/*
 * Admits descriptors to the queue of a Unix socket, or refuses them: then sending some fails with
 * EPERM.  A connection inherits this from the listening socket when it is made.  False: they were to be
 * refused, and the kernel cannot do that.
 */
bool u_rights_pass(int sock, bool pass);

/* For tests: if `forget`, u_rights_pass() behaves as on a kernel that cannot refuse descriptors. */
void u_rights_forget(bool forget);

/*
 * Takes `fd` and closes it on a thread that may stay in the kernel for long; returns at once.  No epoll
 * set may watch `fd`: else a thread that waits there may drop the last reference, and so close it.  Without a thread
 * `fd` waits for one, see u_close_timers(); without memory it stays open.
 */
void u_close_apart(int fd);

/*
 * Shuts down a connected Unix socket and closes it: its peer notices at once, and can still read earlier messages.
 * The caller's thread closes it when no descriptors wait in its queue, else a spare thread does, as in
 * u_close_apart().  Takes `sock`.
 */
void u_hang_up(int sock);

/*
 * Takes a listening Unix socket: hangs up the connections that were not accepted yet, and closes it, on a spare thread
 * if one of them cannot be accepted.
 */
void u_hang_up_listener(int sock);

/*
 * Closes memory of memfd_create() and descriptors of viaduct.ko at once, as that never blocks, and anything else on a
 * spare thread.  Accepts -1.
 */
void u_close_foreign(int fd);

/*
 * In a child of fork(), before it has other threads: forgets the parent's spare threads.  Descriptors that those had
 * still to close stay open in the child.
 */
void u_close_forked(void);

/* Descriptors given to u_close_apart() that are not closed yet. */
unsigned int u_close_busy(void);

/*
 * A program that has an empty handler for `sig` lets u_close_timers() send it to closing threads that take long, which
 * ends the wait of a lingering socket.  Call it before any is given away: a thread that runs already goes on blocking
 * `sig`.
 */
void u_close_signal(int sig);

/*
 * Starts threads for descriptors that wait, and sends signals that are due at `now`, of u_now_ns().  Returns when to
 * call again, or U_NEVER.
 */
int64_t u_close_timers(int64_t now);

#endif
