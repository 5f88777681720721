/* SPDX-License-Identifier: BSD-2-Clause */
/* oshrun's side of boot_wire.h: what PEs send is checked, and what breaks the rules ends the job. */
#ifndef RUN_CONN_H
#define RUN_CONN_H

#include "run_job.h"

/* Takes what the PE has sent, and sends it what is left to send.  `which`: RUN_SOCK or RUN_CONTROL. */
void run_conn_serve(struct run_job *job, struct run_pe *pe, enum run_event which);

/* A PE of another machine has joined; if it has already, the job ends. */
void run_conn_joined(struct run_job *job, struct run_pe *pe);
/* A PE has left the job; nothing changes unless it had joined. */
void run_conn_finished(struct run_pe *pe);

/*
 * All PEs of another machine have given their data to an exchange.  0, or -EPROTO: that cannot be.  What they
 * gave may end the job, also with 0.  The last to give has the data of all sent to all.
 */
int run_conn_far_given(struct run_job *job, const struct run_far *far, uint32_t number,
		       const void *data, uint32_t bytes);

/*
 * --serve: gives a copy of the data of all PEs of the job to those that are here, which ends the exchange. 0, or
 * -EPROTO: nobody waits for them, or so many; -ENOMEM.
 */
int run_conn_result(struct run_job *job, uint32_t number, const void *data, uint32_t bytes);

/*
 * A PE ends the job, with a text that may be empty; `lost`: because it cannot reach another, and then the end may come
 * RUN_LOST_MS later. Control characters of `text` become '?'. --serve tells the oshrun that has the job instead.
 */
void run_conn_abort(struct run_job *job, struct run_pe *pe, int status, bool lost, char *text);

/*
 * Can an exchange never be complete, because a PE has ended, or has one ended without joining while another is in the
 * job?  Then ends the job. --serve does nothing.
 */
void run_conn_check_ended(struct run_job *job);

/* Closes both sockets of the PE, and drops a result that was not sent in whole.  May be called again. */
void run_conn_close(struct run_pe *pe);

#endif
