// SPDX-License-Identifier: BSD-2-Clause
#include "api.h"

#define PUT_SIGNAL(suffix, T, bytes, nbi)                                                          \
	API_CTX(void, suffix,                                                                      \
		(T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,    \
		 int sig_op, int pe),                                                              \
		osh_put_signal(fn, c, dest, source, osh_times(nelems, bytes), sig_addr, signal,    \
			       sig_op == SHMEM_SIGNAL_ADD, pe, nbi);)

#define TYPED(N, T)                                                                                \
	PUT_SIGNAL(N##_put_signal, T, sizeof(T), false)                                            \
	PUT_SIGNAL(N##_put_signal_nbi, T, sizeof(T), true)

#define SIZED(bits, bytes)                                                                         \
	PUT_SIGNAL(put##bits##_signal, void, bytes, false)                                         \
	PUT_SIGNAL(put##bits##_signal_nbi, void, bytes, true)

API_RMA_TYPES(TYPED)
API_SIZES(SIZED)
PUT_SIGNAL(putmem_signal, void, 1, false)
PUT_SIGNAL(putmem_signal_nbi, void, 1, true)

API_CTX(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe),
	osh_signal(fn, c, sig_addr, signal, true, pe);)
API_CTX(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe),
	osh_signal(fn, c, sig_addr, signal, false, pe);)

API(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr))
{
	return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}
