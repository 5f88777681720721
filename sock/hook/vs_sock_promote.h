/* SPDX-License-Identifier: BSD-2-Clause */
/* Promotion of a connected socket to a VI, and its way back to TCP. */
#ifndef VS_SOCK_PROMOTE_H
#define VS_SOCK_PROMOTE_H

#include "vs_obj.h"

/* Whether a promotion was ever tried in this process. */
bool vs_sock_any_asked(void);

/* The stream moved so many more bytes: counts them for the policy, and promotes it when that is due. */
void vs_sock_moved(struct vs_obj *o, bool sent, size_t bytes);
/*
 * Begins to move a connected socket from TCP to a VI, and does not wait: TCP carries its bytes until the peer has
 * agreed.  The first call decides, later ones do nothing.  Does nothing either for a socket that is not connected or
 * is barred, whose peer's address is not that of a fabric host, or while this thread holds vs_items_lock().
 */
void vs_sock_promote(struct vs_obj *o);
/*
 * The first use of a socket that is promoted eagerly waits until that is done or over, 0.2 s at most: programs under
 * test whose connections are short would else prove nothing about VIs.  errno stays.
 */
void vs_sock_wait_promoted(struct vs_obj *o, int fd);

/* It has a VI, or may get one; not a stream of the parent's in a child. */
bool vs_sock_uses_vi(struct vs_obj *o);

/*
 * The socket is not promoted any more; one that has a VI is counted as demoted for this reason.  Several that
 * may be joined to each other are all forbidden before the first is barred: the other end follows at once.
 */
void vs_sock_forbid(struct vs_obj *o, enum vs_why why);
/* Bars promotion, and nothing else; the reason of the first call stays. */
void vs_sock_bar_promotion(struct vs_sock *k, enum vs_why why);
/* Counts the connection as demoted, once. */
void vs_sock_count_demoted(struct vs_sock *k, enum vs_why why);
/* As vs_sock_forbid(); a stream that has a VI also begins to go back, for which vs_sock_wait_tcp() waits. */
void vs_sock_bar(struct vs_obj *o, enum vs_why why);
/* Waits until all is with the kernel, at most ms.  0 or -ETIMEDOUT, which a child gets at once for its parent's. */
int vs_sock_wait_tcp(struct vs_obj *o, int ms);
/* Waits until a close by the kernel loses nothing, at most ms. */
void vs_sock_deliver(struct vs_obj *o, int ms);

#endif
