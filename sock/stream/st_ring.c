/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "st_ring.h"
#include "st_sys.h"

int st_record_check(const uint8_t *ring, uint32_t ring_bytes, uint64_t key, uint64_t position,
		    struct st_header *header)
{
	uint32_t at = st_header_at(ring_bytes, position);
	const uint64_t *words = (const void *)(ring + at);
	uint64_t first, tag = st_tag(key, position);

	/* Loads at the same time the cache line below the header's, where a short record has payload. */
	__builtin_prefetch(ring + at - (at < 64 ? 0 : 64));
	/* Pairs with the other end's RDMA write, whose last bytes arrive last. */
	if (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) != tag)
		return 0;
	first = __atomic_load_n(&words[0], __ATOMIC_RELAXED);
	*header = (struct st_header){ (uint32_t)first, (uint32_t)(first >> 32), tag };
	/*
	 * Payload lies below the header: there are `at` bytes.  Only where these are none a record of data is empty;
	 * others would keep a reader busy that takes empty ones without end.
	 */
	if (st_unlikely(header->kind > ST_REC_OVER || header->length > at ||
			(header->kind == ST_REC_DATA && header->length == 0 && at != 0) ||
			(header->kind != ST_REC_DATA && header->length != 0) ||
			(header->kind == ST_REC_OVER && !st_may_skip(ring_bytes, position))))
		return -EPROTO;
	return 1;
}
