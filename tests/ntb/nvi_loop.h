/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two VIs of one NIC joined back to back over the emulated `self` port, with no
 * agent and no threads: nothing moves unless a test makes progress on it.  The test may also
 * write the slices itself, as a hostile peer would.
 */
#ifndef NVI_LOOP_H
#define NVI_LOOP_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdint.h>

#include "vipl.h"
#include "vipl_ext.h"

struct nvi_loop;
struct vi_nic;
struct vi_vi;

struct nvi_loop_cfg {
	uint32_t slots, payload_bytes;
	VIP_RELIABILITY_LEVEL level;
	const char *port;    /* "emu", "emu+strict", ... */
	const char *options; /* of port "fault", NULL: none */
	uint64_t seed;
	uint32_t max_transfer; /* 0: 16 MiB */
	int resumable;	       /* the connection outlives its path */
};

/* NULL when something is missing. The VIs are Connected, RDMA enabled, no ptag. */
struct nvi_loop *nvi_loop_open(const struct nvi_loop_cfg *cfg);
void nvi_loop_close(struct nvi_loop *loop);
/* Ends the connection and makes another. 0, or -1 when something is missing. */
int nvi_loop_reconnect(struct nvi_loop *loop);

struct vi_nic *nvi_loop_nic(struct nvi_loop *loop);
struct vi_vi *nvi_loop_vi(struct nvi_loop *loop, int end); /* 0 or 1 */
/* Sends as on a processor that can demote lines (1), or that cannot (0). */
void nvi_loop_set_demotes(struct nvi_loop *loop, int end, int demotes);
/* Sends as on a processor that gains by prefetching lines that it stores into (1), or that does not (0). */
void nvi_loop_set_prefetches(struct nvi_loop *loop, int end, int prefetches);
/* The inbound slice of an end, writable: what its peer could write. */
uint8_t *nvi_loop_inbound(struct nvi_loop *loop, int end, uint64_t *len_out);

/*
 * Makes progress on both ends until nothing moves any more, at most `limit` rounds; returns rounds.
 */
int nvi_loop_settle(struct nvi_loop *loop, int limit);
int nvi_loop_progress(struct nvi_loop *loop, int end);

VIP_MEM_HANDLE nvi_loop_register(struct nvi_loop *loop, void *addr, uint64_t len);
void nvi_loop_deregister(struct nvi_loop *loop, void *addr, VIP_MEM_HANDLE handle);
int nvi_loop_post_send(struct nvi_loop *loop, int end, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE h);
int nvi_loop_post_recv(struct nvi_loop *loop, int end, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE h);
/* As VipSendDone and VipRecvDone, without polling: 1 ok, 2 error, 0 in progress, -ENOENT empty. */
int nvi_loop_send_done(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **d_out);
int nvi_loop_recv_done(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **d_out);
/* As VipRecvDone, which polls. */
int nvi_loop_poll_recv(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **d_out);

/* As VipxPostSends; *posted_out is how many were posted. */
int nvi_loop_post_sends(struct nvi_loop *loop, int end, VIP_DESCRIPTOR *const *descs,
			uint64_t count, VIP_MEM_HANDLE h, uint64_t *posted_out);
/* As VipxRecvsDone; the count taken, or -errno. */
int nvi_loop_take_recvs(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **descs, uint64_t max);

VIP_VI_STATE nvi_loop_state(struct nvi_loop *loop, int end);
void nvi_loop_counters(struct nvi_loop *loop, int end, VIPX_COUNTERS *out);
/* As VipErrorCallback: the handler runs on a thread of the core. */
int nvi_loop_on_error(struct nvi_loop *loop, VIP_ERROR_HANDLER handler, void *context);
/* VIP_ERROR_CATASTROPHIC, which has nothing to do with a connection. */
void nvi_loop_raise(struct nvi_loop *loop);
/*
 * Takes what came, as a thread does that afterwards finds the lock for sending held by another one: nothing is sent
 * but what receiving itself sends.
 */
void nvi_loop_receive(struct nvi_loop *loop, int end);
/* Sends what can be sent, within a call that nvi_loop_enter() began. */
void nvi_loop_send(struct nvi_loop *loop, int end);
/* Is an answer to a read queued that was not begun?  Does anything wait for credit or answers?  Any thread. */
int nvi_loop_answers(struct nvi_loop *loop, int end);
int nvi_loop_waits(struct nvi_loop *loop, int end);
/* How long a disconnect waits for messages under way; without this call not at all. */
void nvi_loop_drain_ms(struct nvi_loop *loop, uint32_t ms);
/* Does a disconnect of the end wait now?  Any thread. */
int nvi_loop_drains(struct nvi_loop *loop, int end);
/* The end learns that its link is gone. */
void nvi_loop_lose(struct nvi_loop *loop, int end);
/* Takes the link up or down: stores made while it is down are lost.  Port "emu+fault". */
void nvi_loop_link(struct nvi_loop *loop, int up);
/* A resumable connection loses its path, and finds another.  0 or -errno of the end that cannot. */
int nvi_loop_lose_path(struct nvi_loop *loop);
int nvi_loop_find_path(struct nvi_loop *loop);
/* The two parts of nvi_loop_find_path(): both ends continue; both have told their agents. */
int nvi_loop_resume(struct nvi_loop *loop);
void nvi_loop_confirm(struct nvi_loop *loop);
/*
 * From now on fn(arg) runs after each slot that the end publishes, on the thread that
 * publishes, which holds the end's lock for sending.  Port "emu" only; one end at a time.
 */
void nvi_loop_on_publish(struct nvi_loop *loop, int end, void (*fn)(void *), void *arg);
/* Reads of its peer that the end took so far; -1: it found a protocol error. Any thread. */
int64_t nvi_loop_reads_consumed(struct nvi_loop *loop, int end);

/* The steps of a thread that waits in VIPL. */
uint32_t nvi_loop_arm(struct nvi_loop *loop);
/* Makes progress where it seems to be wanted, as a thread does that a doorbell woke. */
int nvi_loop_scan(struct nvi_loop *loop);
/* All that was stored for the peer has reached it. */
void nvi_loop_flush(struct nvi_loop *loop);
/* As if both ends had sent n slots, none of which asked for credit.  Nothing was sent yet. */
void nvi_loop_count_from(struct nvi_loop *loop, uint32_t n);
/* As if so many bytes of both payload buffers had been used and consumed.  Nothing was sent yet. */
void nvi_loop_payload_from(struct nvi_loop *loop, uint64_t cursor);
/* A flush that waits `ns` at most: 1: it is over; 0: its time is; or -errno. */
int nvi_loop_flush_sends(struct nvi_loop *loop, int end, int64_t ns);
/* Have all slots of the end been consumed?  Asks the peer by a slot if need be. */
int nvi_loop_drained(struct nvi_loop *loop, int end);
/* A call of the application that sends at that end begins, and ends. */
void nvi_loop_enter(struct nvi_loop *loop, int end);
void nvi_loop_leave(struct nvi_loop *loop, int end);
/* Makes the engine's tick for channels that the application polls. */
void nvi_loop_tick(struct nvi_loop *loop);
/* Makes the tick of an engine that has much to do. */
void nvi_loop_busy_tick(struct nvi_loop *loop);
void nvi_loop_wake(struct nvi_loop *loop);
/* Sleeps `ns` at most; returns whether it slept that long. */
int nvi_loop_overslept(struct nvi_loop *loop, uint32_t ticket, int64_t ns);
uint32_t nvi_loop_sleepers(struct nvi_loop *loop);
uint64_t nvi_loop_rung(struct nvi_loop *loop);	 /* doorbells, by both ends */
uint32_t nvi_loop_polled(struct nvi_loop *loop); /* ends that are not armed */

#ifdef __cplusplus
}
#endif

#endif
