/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_lock.h"

#include "u_futex.h"
#include "u_time.h"

#define U_LOCK_SPINS 64

void u_lock_slow(struct u_lock *l)
{
	for (int i = 0; i < U_LOCK_SPINS; i++) {
		if (u_lock_try(l))
			return;
		u_pause();
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		u_futex_wait(&l->word, 2, UINT32_MAX, -1, true);
}

void u_lock_wake(struct u_lock *l)
{
	u_futex_wake(&l->word, 1, UINT32_MAX, true);
}
