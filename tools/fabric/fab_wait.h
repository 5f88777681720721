/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for links while a fabric starts, which signals can interrupt. */
#ifndef FAB_WAIT_H
#define FAB_WAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cl_client.h"

/* A fabric that is starting is stopped by these signals, unless they are ignored. */
void fab_end_signals(sigset_t *out);

/* Is one of fab_end_signals(), which are blocked, pending? */
bool fab_interrupted(void);

/* Waits until port `i` of the host has a link that is up; -ENOENT: there is no such port. */
int fab_port_wait(struct cl_agent *agent, uint32_t i, int64_t deadline);

#endif
