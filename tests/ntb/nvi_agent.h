/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands between the two ends of a loop in place of their agents and of the control thread: it passes
 * the messages of each end on to the other, or drops them, and delivers messages that nobody sent.
 *
 * The test makes its steps, or a thread of its own does.
 */
#ifndef NVI_AGENT_H
#define NVI_AGENT_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdbool.h>
#include <stdint.h>

#include "nvi_loop.h"

struct nvi_agent;

/* The connections of the ends get names of the agent's: end + 1, and + 2 with each reconnect. */
struct nvi_agent *nvi_agent_start(struct nvi_loop *loop, uint32_t revoke_ms);
/* Both ends are disconnected, and window memory is freed, before this. Ends the thread too. */
void nvi_agent_stop(struct nvi_agent *a);
/* Handles the messages that were sent; returns how many. */
int nvi_agent_step(struct nvi_agent *a);
/* From now on a thread does the steps. */
void nvi_agent_thread(struct nvi_agent *a);

/* Messages of these kinds (1 << enum w_grant_kind) are swallowed. */
void nvi_agent_swallow(struct nvi_agent *a, uint32_t kinds);
/* From now on slices cannot be handed over, or can again. */
void nvi_agent_no_slices(struct nvi_agent *a, bool yes);
/* How many of a kind were sent, by both ends. */
uint32_t nvi_agent_sent(struct nvi_agent *a, uint32_t kind);
uint32_t nvi_agent_closed(struct nvi_agent *a); /* CLOSE messages */
/* Hands the end a message about its connection, with a copy of the descriptor (-1: none). */
void nvi_agent_deliver(struct nvi_agent *a, int end, const void *body, uint32_t len, int fd);
/* The end is told that the other is gone. */
void nvi_agent_lost(struct nvi_agent *a, int end);
/* The end disconnects, as VipDisconnect() does; a step tells the other end. */
void nvi_agent_disconnect(struct nvi_agent *a, int end);
/* Connects both ends again; `between` (NULL: nothing) runs while they are Idle. */
int nvi_agent_reconnect(struct nvi_agent *a);
int nvi_agent_reconnect_after(struct nvi_agent *a, void (*between)(void *), void *arg);

/* Allocates window memory that is open to RDMA writes, or not. NULL when there is none. */
uint8_t *nvi_agent_alloc(struct nvi_agent *a, uint64_t len, bool open, VIP_MEM_HANDLE *handle_out);
void nvi_agent_free(struct nvi_agent *a, uint8_t *addr, VIP_MEM_HANDLE handle);
/* As VipSetMemAttributes(). */
int nvi_agent_open_memory(struct nvi_agent *a, uint8_t *addr, VIP_MEM_HANDLE handle, bool open);
/* A descriptor of window memory, borrowed. */
int nvi_agent_fd(struct nvi_agent *a, const uint8_t *addr);

uint32_t nvi_agent_held(struct nvi_agent *a, int end); /* grants that the end holds */
uint32_t nvi_agent_given(struct nvi_agent *a);	       /* grants of both ends' memory */

#ifdef __cplusplus
}
#endif

#endif
