/* SPDX-License-Identifier: BSD-2-Clause */
/* st_paths.h - receiving and sending on either path, and what moves a direction from one to the other */
#ifndef ST_PATHS_H
#define ST_PATHS_H

#include "st_error.h"
#include "st_link.h"
#include "st_link_post.h"

/* ---- rx, under its lock -------------------------------------------------------------------------------------- */

/* Takes tokens and marks that have come, and leaves an empty ring whose VI is lost. */
void st_rx_step(struct st_stream *s);
/*
 * True: a part of a token is there that may be data.  If no more has followed for a while, it gives that part to the
 * program, goes back to TCP, and returns false.
 */
bool st_rx_token_due(struct st_stream *s, uint64_t now);
/* Begins to wait for the mark on TCP, after the last record that was sent over the ring. */
void st_rx_leave(struct st_stream *s);
/* Marks the end of the stream, after the record that tells of it. */
void st_rx_ends(struct st_stream *s);
/* Moves `scan` over the records that have come: 0, -EPROTO: a bad one. */
int st_rx_scan(struct st_stream *s);
/* Payload that can be read without the kernel: of the stash and, after a scan, of the ring. */
uint64_t st_rx_own_bytes(struct st_stream *s);
/*
 * After a scan: how many bytes of a mark the kernel has to receive before those of the program that follow the own
 * ones; -1: nothing of the kernel's follows yet.
 */
int st_rx_kernel_after(struct st_stream *s);
/*
 * In phase UP, returns credit if `least` bytes of ring or more, and some, were read since the last, and rings for it;
 * takes tx.  Where no slot is free the helper does so.
 */
void st_rx_credit(struct st_stream *s, uint64_t least);
/* Reads what has come on either path, without waiting: bytes; 0 at the end; -EAGAIN, or an error, given once. */
ssize_t st_rx(struct st_stream *s, const struct iovec *iov, int count, int flags);

/* ---- tx, under its lock -------------------------------------------------------------------------------------- */

/*
 * On the ring: its room for payload, the reserve not counted, by the credit that has come; 0 also after bad credit,
 * which resets.
 */
uint64_t st_tx_room(struct st_stream *s);
/* May a sleeper for ST_OUT wake?  On the ring only: false on TCP, where the kernel tells. */
bool st_tx_writable(struct st_stream *s);
/*
 * Goes from the ring, or from the way to it, back to TCP, while there is a VI.  The mark is pending then, and goes by
 * st_tx_push() or before the next bytes; `lazy`: only before these.
 */
void st_tx_leave(struct st_stream *s, bool lazy);
/* Sends what is pending of a token or mark over TCP.  0: nothing is left.  -EAGAIN, or the kernel's error. */
int st_tx_pending(struct st_stream *s);
/*
 * Sends the bytes that MSG_MORE kept back, on the present path: 0: none is left; -EAGAIN, also on the way to the ring;
 * on TCP also the kernel's error.
 */
int st_tx_release(struct st_stream *s);
/* Writes the ring's end of the stream, after bytes that were kept back; while there is no room the helper retries. */
void st_tx_end(struct st_stream *s);
/*
 * Sends bytes that are pending, but for a lazy mark, or were kept back, for the helper: an error drops them, and but
 * for -EPIPE is kept for the program.
 */
void st_tx_push(struct st_stream *s);
/*
 * Sends on the present path, without waiting: bytes, which may be fewer; -EAGAIN, also on the way to the ring; -EPIPE;
 * a kept error first.
 */
ssize_t st_tx(struct st_stream *s, const struct iovec *iov, int count, int flags);

#endif
