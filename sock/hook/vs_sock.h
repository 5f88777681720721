/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP socket: from socket() or accept() to the last close().
 *
 * It becomes a stream (st_stream.h) when both addresses are known and the peer's may be that of a
 * host of the fabric; from then on all its bytes pass through that.  All others stay with the kernel,
 * and are only counted.
 *
 * Calls return what the replaced call returns, and set errno as it does.
 */
#ifndef VS_SOCK_H
#define VS_SOCK_H

#include <sys/socket.h>

#include "st_stream.h"
#include "vs_obj.h"

/*
 * After socket(), accept(): gives the descriptor an object if it is a TCP socket, and some connection may be promoted
 * or statistics are asked for; one that was accepted has its listener's options, and is connected.  vs_sock_accepted()
 * does not ask whether it is TCP: vs_sock_is_accepted() does.
 */
void vs_sock_made(int fd, int family, int type, int protocol);
void vs_sock_accepted(int listener, int fd, bool nonblock);

/*
 * Whether accept() has given a TCP connection, and some may be promoted or statistics are asked for.  A listener for
 * MPTCP gives one for a peer that does not know that.  errno stays.
 */
bool vs_sock_is_accepted(int listener, int fd);

/*
 * After connect(), with what it returned as 0 or errno: the socket is connected, or may become so.  Does nothing for an
 * error that ends the attempt.
 */
void vs_sock_connect(struct vs_obj *o, int fd, int error);

/* After listen(): the socket stays with the kernel for ever. */
void vs_sock_listens(int fd);

/*
 * The stream of a socket, made now if it has become connected since the last call; NULL: it is the kernel's.  With the
 * policy `eager` the first call promotes it, and waits for that, 0.2 s at most.
 */
struct st_stream *vs_sock_stream(struct vs_obj *o, int fd);

/* No connection to come is promoted.  True: that was so before. */
bool vs_sock_bar_new(enum vs_why why);

/*
 * The object's part of close(), before the kernel's: for one descriptor, which is out of the table.  Only the last one
 * ends the connection, which waits as SO_LINGER says.
 */
void vs_sock_close(struct vs_obj *o, int fd);

/*
 * In a signal handler that has interrupted a use of the socket, or of any set: closes one descriptor as vs_sock_close()
 * does, but once that use is over.  Gets the caller's reference.  False: there is no such use, so that vs_sock_close()
 * may be called; the caller keeps its reference.
 */
bool vs_sock_close_late(struct vs_obj *o, int fd);
/* True: this is a signal handler, and the thread is in the middle of a call of the stream's, or may be. */
bool vs_sock_interrupted(struct vs_obj *o);
/* As vs_sock_interrupted(), of any socket of the table. */
bool vs_sock_any_interrupted(void);

/*
 * Other processes may have sockets of this one: file status flags are one for all, so the kernel has to be asked for
 * them.  vs_sock_share() notes that, for ever; vs_sock_shared() says whether it was noted.
 */
void vs_sock_share(void);
bool vs_sock_shared(void);
/*
 * Asks the kernel for O_NONBLOCK of `fd`, whether sockets are shared or not, and notes it in `o`.  A system call: the
 * caller looks at vs_sock_shared() first.  Keeps errno.
 */
void vs_sock_see_nonblock(struct vs_obj *o, int fd);

/* In a child of fork(). */
void vs_sock_forked(void);

#endif
