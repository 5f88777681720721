/* SPDX-License-Identifier: BSD-2-Clause */
/* st_ready.h - what a stream is ready for */
#ifndef ST_READY_H
#define ST_READY_H

#include "st_process.h"

/*
 * As a poller looks: the events that are there, or ST_ERR where the stream's bytes do not go over a VI both ways; 0
 * also while another thread is at it.
 */
unsigned st_check(struct st_stream *s, unsigned events);
/*
 * After st_arm(): the other end has seen the arms, so a look after this decides; false also while another thread is at
 * it.
 */
bool st_arm_is_sure(struct st_stream *s, unsigned events);
/* The other end has not rung for the arm yet; false if that cannot be told. */
bool st_arm_holds(struct st_stream *s, unsigned events);

#endif
