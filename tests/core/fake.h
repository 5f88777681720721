/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider that carries nothing: the test completes descriptors, breaks
 * connections and looks into the core by these functions.  Plain C types, since
 * the core's own headers are not C++.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdint.h>

#include "vipl.h"
#include "vipl_ext.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fake_access { FAKE_READ = 1, FAKE_WRITE = 2, FAKE_REMOTE_WRITE = 4, FAKE_REMOTE_READ = 8 };

/* Forgets counts, hooks and offers. */
void fake_reset(void);

/* States of a VI. */
void fake_connect(VIP_VI_HANDLE vi);
void fake_pending(VIP_VI_HANDLE vi);
void fake_break(VIP_VI_HANDLE vi, int raise, VIP_ERROR_CODE code);

/* Start entries after the completed ones (`next` moves past them); complete the i-th of them. */
void fake_start(VIP_VI_HANDLE vi, int is_recv, uint32_t count);
void fake_complete(VIP_VI_HANDLE vi, int is_recv, uint32_t i, uint32_t status, uint32_t length,
		   uint32_t imm);
/* Completes an entry given by its absolute number, as a provider that lost track would. */
void fake_complete_at(VIP_VI_HANDLE vi, int is_recv, uint32_t n, uint32_t status);
uint32_t fake_capacity(VIP_VI_HANDLE vi, int is_recv);
int fake_hot(VIP_VI_HANDLE vi, int is_recv);

/* Check the i-th entry after the completed ones. */
uint32_t fake_check_send(VIP_VI_HANDLE vi, uint32_t i);
uint32_t fake_check_recv(VIP_VI_HANDLE vi, uint32_t i, uint64_t bytes);
struct fake_piece {
	uint8_t *addr;
	uint32_t len;
};
/* Walks over `need` bytes of its segments in steps of `want`; how many pieces, or -errno of the step that failed. */
int fake_walk(VIP_VI_HANDLE vi, int is_recv, uint32_t i, uint64_t need, uint32_t want,
	      struct fake_piece *out, uint32_t max);

void *fake_tpt(VIP_NIC_HANDLE nic, VIP_PROTECTION_HANDLE ptag, const void *addr, uint64_t len,
	       uint32_t handle, uint32_t access);
/* Runs fn with the queue's lock held. */
void fake_locked(VIP_VI_HANDLE vi, int is_recv, void (*fn)(void *), void *arg);

void fake_raise(VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *desc, VIP_ERROR_CODE code);
/* Something has come for the VI: a poll of a CQ that watches its word visits it. */
void fake_arrive(VIP_VI_HANDLE vi);
/* So many messages came: each poll_recv() completes a receive with the next; the word tells while there are more. */
void fake_arrive_messages(VIP_VI_HANDLE vi, uint32_t count);
/* As vi_cq_unwatch() and, if that is due, vi_cq_grace(); returns whether it was due. */
int fake_unwatch(VIP_VI_HANDLE vi);
/* vi_cq_unwatch_later() */
void fake_unwatch_later(VIP_VI_HANDLE vi);
/* As fake_arrive(), but the word does not tell. */
void fake_arrive_unseen(VIP_VI_HANDLE vi);
/*
 * From now on VIs have such a word, and a poll_recv() that finds nothing does not return VI_POLL_PROGRESS.  Before this
 * call each poll_recv() does.
 */
void fake_watchable(void);
/* The times that a receive queue was polled. */
uint32_t fake_polls(VIP_VI_HANDLE vi);
void fake_mark(VIP_VI_HANDLE vi, int is_recv);
void fake_wait_mode(VIP_NIC_HANDLE nic, int mode);
/* As if other threads wanted the processor: the next `sleeps` waits sleep at once. */
void fake_contention(VIP_NIC_HANDLE nic, uint32_t sleeps);
uint32_t fake_notify_armed(VIP_NIC_HANDLE nic);

/* Hooks, called without locks of the VI: by progress_vi(), by progress(), once before a sleep. */
void fake_on_progress_vi(void (*fn)(VIP_VI_HANDLE vi, void *arg), void *arg);
void fake_on_doorbell(void (*fn)(void *arg), void *arg);
void fake_on_sleep(void (*fn)(void *arg), void *arg);

uint32_t fake_progress_calls(void);
uint32_t fake_doorbells(void);
uint32_t fake_arms(void);
uint32_t fake_wakes(void);
uint32_t fake_unrung(void); /* sleeps that no wake ended */
uint32_t fake_rejects(void);
uint32_t fake_windows(void); /* allocated and not freed */
uint32_t fake_posts(void);   /* calls of post_send() */

/* The next VipConnectWait() gets a request with these attributes. */
void fake_offer(const VIP_VI_ATTRIBUTES *attrs, const void *disc, uint16_t disc_len);
/* The error that connect_accept(), connect_request() and peer_done() return instead of success. */
void fake_connect_error(int err);

struct vi_mover;
/* That of the NIC, which has a lock; NULL: none. */
struct vi_mover *fake_mover(VIP_NIC_HANDLE nic);
void fake_place_lock(VIP_NIC_HANDLE nic);
void fake_place_unlock(VIP_NIC_HANDLE nic);

#define FAKE_HOSTS 4
extern const uint8_t fake_host[FAKE_HOSTS][6]; /* names host0..3; distances 0, 2, 1, 1 */

#ifdef __cplusplus
}
#endif

#endif
