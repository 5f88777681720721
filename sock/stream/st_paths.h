/* SPDX-License-Identifier: BSD-2-Clause */
/* st_paths.h - receiving and sending on either path, and what moves a direction from one to the other */
#ifndef ST_PATHS_H
#define ST_PATHS_H

#include "st_error.h"
#include "st_link.h"

/* ---- rx, under its lock -------------------------------------------------------------------------------------- */

/* Takes tokens and marks that have come, and leaves an empty ring whose VI is lost. */
void st_rx_step(struct st_stream *s);
/* True: a part of a token is there that may be data, and is given to the program if no more follows for a while. */
bool st_rx_token_due(struct st_stream *s, uint64_t now);
/* After the last record that was sent over the ring: a mark follows on TCP. */
void st_rx_leave(struct st_stream *s);
/* After the record that ends the stream. */
void st_rx_ends(struct st_stream *s);
/* Looks at records from `scan` on; -EPROTO. */
int st_rx_scan(struct st_stream *s);
/* Payload that can be read without the kernel. */
uint64_t st_rx_own_bytes(struct st_stream *s);
/* Returns credit if `least` bytes of ring or more were read since; takes tx. */
void st_rx_credit(struct st_stream *s, uint64_t least);
ssize_t st_rx(struct st_stream *s, const struct iovec *iov, int count, int flags);

/* ---- tx, under its lock -------------------------------------------------------------------------------------- */

/* Ring room for payload, the reserve not counted. */
uint64_t st_tx_room(struct st_stream *s);
/* May a sleeper for ST_OUT wake? */
bool st_tx_writable(struct st_stream *s);
/* Goes from the ring, or from the way to it, back to TCP, with a mark first. */
void st_tx_leave(struct st_stream *s, bool lazy);
/* 0: nothing is pending.  -EAGAIN, or the kernel's error. */
int st_tx_pending(struct st_stream *s);
/* Sends the bytes that MSG_MORE kept back: 0, -EAGAIN. */
int st_tx_release(struct st_stream *s);
/* Writes the ring's end of the stream, after bytes that were kept back; while there is no room the helper retries. */
void st_tx_end(struct st_stream *s);
/* Sends bytes that are pending or were kept back, for the helper: an error is kept for the program. */
void st_tx_push(struct st_stream *s);
ssize_t st_tx(struct st_stream *s, const struct iovec *iov, int count, int flags);

#endif
