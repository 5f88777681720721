/* SPDX-License-Identifier: BSD-2-Clause */
/* The futex system call with bit sets. */
#ifndef U_FUTEX_H
#define U_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Sleeps if *word == seen, until a wake that has a bit in common with `bits`.
 * timeout_ns: relative; negative means without limit.
 * `private_word`: the word is never shared between processes.
 * Returns 0 when woken, -EAGAIN when *word differed, -ETIMEDOUT, -EINTR.
 */
int u_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint32_t bits, int64_t timeout_ns,
		 bool private_word);

/* Wakes up to `count` sleepers that have a bit in common with `bits`; returns how many, or -errno. */
int u_futex_wake(_Atomic uint32_t *word, int count, uint32_t bits, bool private_word);

#endif
