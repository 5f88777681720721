/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a call that a signal handler has interrupted goes on: as the kernel, if that handler was
 * installed with SA_RESTART.
 *
 * A sleep in poll() ends with EINTR in any case.  So handlers are entered through one of this library, which counts
 * for its thread; the program sees its own handlers only.  A signal may also come while a call looks before it
 * sleeps: the counts tell it, and from vs_handled_since() on the handler writes to a descriptor of the sleep.
 */
#ifndef VS_SIGNAL_H
#define VS_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Handlers without SA_RESTART that have run in this thread. */
uint32_t vs_interrupts(void);

/* Whether this thread may be in a handler of the program's; true for ever after one that was left by a jump. */
bool vs_in_handler(void);

/* All handlers that have run in this thread. */
uint32_t vs_handled(void);
/* Before a sleep that `fd`, an eventfd, ends: whether a handler ran since that count; the next one writes to fd. */
bool vs_handled_since(uint32_t before, int fd);
/* After it. */
void vs_handled_end(void);

/* A sleep that began at that count has ended with EINTR: whether the call goes on. */
bool vs_restarts(uint32_t before);

/* As sigaction(); a handler is called through one of this library, which `old` never shows. */
int vs_sigaction(int number, const struct sigaction *act, struct sigaction *old);

/*
 * After the C library has installed a handler by itself: puts one of this library before it, and returns the program's
 * own for the old one.  errno stays.
 */
sighandler_t vs_signal_done(int number, sighandler_t old);

#endif
