// SPDX-License-Identifier: BSD-2-Clause
#include "api.h"

#define COPY(kind, suffix, T, bytes)                                                               \
	API_CTX(void, suffix, (T * dest, const T *source, size_t nelems, int pe),                  \
		osh_##kind(fn, c, dest, source, osh_times(nelems, bytes), pe);)

#define STRIDED(kind, suffix, T, bytes)                                                            \
	API_CTX(void, suffix,                                                                      \
		(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),  \
		osh_##kind##_strided(fn, c, dest, source, osh_stride(dst, bytes),                  \
				     osh_stride(sst, bytes), bytes, nelems, pe);)

#define BLOCKS(kind, suffix, T, bytes)                                                             \
	API_CTX(void, suffix,                                                                      \
		(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,            \
		 size_t nblocks, int pe),                                                          \
		osh_##kind##_strided(fn, c, dest, source, osh_stride(dst, bytes),                  \
				     osh_stride(sst, bytes), osh_times(bsize, bytes), nblocks,     \
				     pe);)

#define TYPED(N, T)                                                                                \
	COPY(put, N##_put, T, sizeof(T))                                                           \
	COPY(get, N##_get, T, sizeof(T))                                                           \
	COPY(put_nbi, N##_put_nbi, T, sizeof(T))                                                   \
	COPY(get_nbi, N##_get_nbi, T, sizeof(T))                                                   \
	STRIDED(put, N##_iput, T, sizeof(T))                                                       \
	STRIDED(get, N##_iget, T, sizeof(T))                                                       \
	BLOCKS(put, N##_ibput, T, sizeof(T))                                                       \
	BLOCKS(get, N##_ibget, T, sizeof(T))                                                       \
	API_CTX(void, N##_p, (T * dest, T value, int pe),                                          \
		osh_put(fn, c, dest, &value, sizeof(T), pe);)                                      \
	API_CTX(T, N##_g, (const T *source, int pe), T value;                                      \
		osh_get(fn, c, &value, source, sizeof(T), pe); return value;)

#define SIZED(bits, bytes)                                                                         \
	COPY(put, put##bits, void, bytes)                                                          \
	COPY(get, get##bits, void, bytes)                                                          \
	COPY(put_nbi, put##bits##_nbi, void, bytes)                                                \
	COPY(get_nbi, get##bits##_nbi, void, bytes)                                                \
	STRIDED(put, iput##bits, void, bytes)                                                      \
	STRIDED(get, iget##bits, void, bytes)                                                      \
	BLOCKS(put, ibput##bits, void, bytes)                                                      \
	BLOCKS(get, ibget##bits, void, bytes)

API_RMA_TYPES(TYPED)
API_SIZES(SIZED)
COPY(put, putmem, void, 1)
COPY(get, getmem, void, 1)
COPY(put_nbi, putmem_nbi, void, 1)
COPY(get_nbi, getmem_nbi, void, 1)
