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
 * After socket(), accept(): gives the descriptor an object if it is a TCP socket that matters; one that was accepted
 * has its listener's options, and is connected.
 */
void vs_sock_made(int fd, int family, int type, int protocol);
void vs_sock_accepted(int listener, int fd, bool nonblock);

/* Whether accept() on it gives TCP connections that matter. */
bool vs_sock_listener(int fd);
/* Whether a promotion was ever tried in this process. */
bool vs_sock_any_asked(void);

/*
 * After connect(), with what it returned as 0 or errno: the socket is connected, or may become so.  Does nothing for an
 * error that ends the attempt.
 */
void vs_sock_connect(struct vs_obj *o, int fd, int error);

/* After listen(): the socket stays with the kernel. */
void vs_sock_listens(int fd);

/*
 * The stream of a socket, made now if it has become connected since the last call; NULL: it is the kernel's.  With the
 * policy `eager` the first call promotes it, and waits for that.
 */
struct st_stream *vs_sock_stream(struct vs_obj *o, int fd);

/* The stream moved bytes: promotes it when that is due. */
void vs_sock_moved(struct vs_obj *o, bool sent, size_t bytes);
/*
 * Begins to move a connected socket from TCP to a VI, and does not wait: TCP carries its bytes until the peer has
 * agreed.  The first call decides, later ones do nothing.  Does nothing either for a socket that is not connected or
 * is barred, whose peer's address is not that of a fabric host, or while this thread holds vs_items_lock().
 */
void vs_sock_promote(struct vs_obj *o);

/* It has a VI, or may get one. */
bool vs_sock_uses_vi(struct vs_obj *o);

/*
 * The socket is not promoted any more; one that has a VI is counted as demoted for this reason.  Several that
 * may be joined to each other are all forbidden before the first is barred: the other end follows at once.
 */
void vs_sock_forbid(struct vs_obj *o, enum vs_why why);
/* As vs_sock_forbid(); a stream that has a VI also begins to go back, for which vs_sock_wait_tcp() waits. */
void vs_sock_bar(struct vs_obj *o, enum vs_why why);
/* Forbids it for all connections to come.  True: that was so before. */
bool vs_sock_bar_new(enum vs_why why);
/* Waits until all is with the kernel, at most ms.  0 or -ETIMEDOUT, which a child gets at once for its parent's. */
int vs_sock_wait_tcp(struct vs_obj *o, int ms);
/* Waits until a close by the kernel loses nothing, at most ms. */
void vs_sock_deliver(struct vs_obj *o, int ms);

/*
 * The object's part of close(), before the kernel's: for one descriptor, which is out of the table.  Only the last one
 * ends the connection, which waits as SO_LINGER says.
 */
void vs_sock_close(struct vs_obj *o, int fd);

/*
 * In a signal handler that has interrupted a use of the socket, or of any set: closes one descriptor as vs_sock_close()
 * does, but once that use is over.  Gets the caller's reference.  False: vs_sock_close() may be called.
 */
bool vs_sock_close_late(struct vs_obj *o, int fd);
/* This thread is in the middle of a call of the stream's, or may be. */
bool vs_sock_interrupted(struct vs_obj *o);
/* As vs_sock_interrupted(), of any socket of the table. */
bool vs_sock_any_interrupted(void);

/*
 * Other processes may have sockets of this one: file status flags, which are one for all, have to be asked for.
 * vs_sock_share() notes that, for ever; vs_sock_see_nonblock() asks for O_NONBLOCK.
 */
void vs_sock_share(void);
bool vs_sock_shared(void);
void vs_sock_see_nonblock(struct vs_obj *o, int fd);

/* In a child of fork(). */
void vs_sock_forked(void);

#endif
