/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stream posts to its VI: messages, wakes, words and records. */
#include <errno.h>
#include <string.h>

#include "st_link.h"
#include "st_link_post.h"

#define BIG_WAIT_NS 1000000000u

/* Returns the descriptor for the next post(), which alone moves send_head; after room_for(). */
static inline VIP_DESCRIPTOR *next_send(struct st_link *l, enum st_send_use use)
{
	unsigned i = l->send_head % ST_SENDS;

	l->use[i] = use;
	atomic_store_explicit(&l->taken[i], 0, memory_order_relaxed);
	return &l->block->sends[i];
}

static inline uint8_t *slot_of(struct st_link *l)
{
	return l->block->slots[l->send_head % ST_SENDS];
}

/* Sees to a free descriptor for next_send(): 0, -EAGAIN: there is none, -EPIPE: broken. */
static inline int room_for(struct st_stream *s, struct st_link *l)
{
	if (st_unlikely(atomic_load_explicit(&l->broken, memory_order_relaxed)))
		return -EPIPE;
	if (st_unlikely(l->send_head - l->send_tail == ST_SENDS) && st_link_reap(s, l) == 0)
		return -EAGAIN;
	return 0;
}

static int post(struct st_stream *s, struct st_link *l, VIP_DESCRIPTOR *d)
{
	if (st_unlikely(VipPostSend(l->vi, d, l->block_handle) != VIP_SUCCESS)) {
		st_link_broke(s, l);
		return -EPIPE;
	}
	l->send_head++;
	if (st_link_reap(s, l) < ST_SENDS && st_unlikely(s->quiet))
		st_look_after(s, 0);
	return 0;
}

/* Fills a descriptor for a send of one local segment. */
static inline void fill(VIP_DESCRIPTOR *d, uint16_t control, uint32_t immediate, const void *from,
			VIP_MEM_HANDLE handle, uint32_t bytes)
{
	d->CS.Control = control;
	d->CS.SegCount = 1;
	d->CS.Reserved = 0;
	d->CS.ImmediateData = immediate;
	d->CS.Length = bytes;
	d->CS.Status = 0;
	d->DS[0].Local = (VIP_DATA_SEGMENT){ { (uintptr_t)from }, handle, bytes };
}

/* Fills one for an RDMA write or read, by `control`, of one local segment; the immediate data is left as it was. */
static inline void fill_remote(VIP_DESCRIPTOR *d, uint16_t control, const void *local,
			       VIP_MEM_HANDLE handle, uint32_t bytes, uint64_t remote,
			       uint32_t remote_handle)
{
	d->CS.Control = control;
	d->CS.SegCount = 2;
	d->CS.Reserved = 0;
	d->CS.Length = bytes;
	d->CS.Status = 0;
	d->DS[0].Remote = (VIP_ADDRESS_SEGMENT){ { remote }, remote_handle, 0 };
	d->DS[1].Local = (VIP_DATA_SEGMENT){ { (uintptr_t)local }, handle, bytes };
}

int st_link_send(struct st_stream *s, struct st_link *l, const struct st_message *m)
{
	int rc = room_for(s, l);
	VIP_DESCRIPTOR *d;

	if (rc != 0)
		return rc;
	memcpy(slot_of(l), m, sizeof(*m));
	d = next_send(l, ST_USE_WORD);
	fill(d, VIP_CONTROL_OP_SENDRECV, 0, slot_of(l), l->block_handle, sizeof(*m));
	l->mixed = true;
	return post(s, l, d);
}

int st_link_wake(struct st_stream *s, struct st_link *l, unsigned kind)
{
	int rc = room_for(s, l);
	VIP_DESCRIPTOR *d;

	if (rc != 0)
		return rc;
	d = next_send(l, ST_USE_WORD);
	fill(d, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, kind, slot_of(l), l->block_handle,
	     0);
	l->mixed = true;
	st_count(&st_counts.wakes_sent, 1);
	return post(s, l, d);
}

int st_link_word(struct st_stream *s, struct st_link *l, size_t at, const void *words,
		 uint32_t bytes)
{
	int rc = room_for(s, l);
	VIP_DESCRIPTOR *d;

	if (rc != 0)
		return rc;
	memcpy(slot_of(l), words, bytes);
	d = next_send(l, ST_USE_WORD);
	fill_remote(d, VIP_CONTROL_OP_RDMAWRITE, slot_of(l), l->block_handle, bytes,
		    l->peer.words + at, l->peer.handle);
	return post(s, l, d);
}

int st_link_read_back(struct st_stream *s, struct st_link *l, unsigned kind)
{
	int rc = room_for(s, l);
	VIP_DESCRIPTOR *d;

	if (rc != 0)
		return rc;
	d = next_send(l, ST_USE_READ);
	fill_remote(d, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_QFENCE, &l->block->read_back[kind],
		    l->block_handle, 8, l->peer.words + offsetof(struct st_words, arm) + 8 * kind,
		    l->peer.handle);
	d->CS.ImmediateData = kind;
	l->mixed = true;
	return post(s, l, d);
}

/* Copies `bytes` bytes from iov, which has as many after `skip`. */
static void gather(uint8_t *to, const struct iovec *iov, size_t skip, uint32_t bytes)
{
	for (; bytes > 0; iov++) {
		uint32_t n;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		n = iov->iov_len - skip < bytes ? (uint32_t)(iov->iov_len - skip) : bytes;
		memcpy(to, (const uint8_t *)iov->iov_base + skip, n);
		to += n;
		bytes -= n;
		skip = 0;
	}
}

static void written(struct st_stream *s, uint32_t kind, uint32_t payload)
{
	s->tx.position = st_next_position(s->link->peer.ring_bytes, s->tx.position, kind, payload);
	s->tx.bytes += payload;
}

/* Takes the slots after that of the newest descriptor which its record also fills: they are free when it is. */
static void take_slots(struct st_link *l, uint32_t bytes)
{
	for (; bytes > ST_SLOT_BYTES && !st_link_settled(l); bytes -= ST_SLOT_BYTES) {
		next_send(l, ST_USE_DATA);
		atomic_store(&l->taken[l->send_head++ % ST_SENDS], 1);
	}
}

int st_link_record(struct st_stream *s, struct st_link *l, enum st_record_kind kind,
		   const struct iovec *iov, size_t skip, uint32_t bytes)
{
	uint32_t whole = st_record_bytes(bytes);
	struct st_header header = { bytes, (uint32_t)kind, st_tag(l->peer.key, s->tx.position) };
	int rc = room_for(s, l);
	VIP_DESCRIPTOR *d;
	uint8_t *end;
	uint64_t to;

	if (rc != 0)
		return rc;
	end = slot_of(l) + (whole > ST_SLOT_BYTES ? whole : ST_SLOT_BYTES) - sizeof(header);
	memcpy(end, &header, sizeof(header));
	gather(end - bytes, iov, skip, bytes);
	to = l->peer.ring + st_header_at(l->peer.ring_bytes, s->tx.position) + sizeof(header) -
	     whole;
	d = next_send(l, ST_USE_DATA);
	fill_remote(d, VIP_CONTROL_OP_RDMAWRITE, end + sizeof(header) - whole, l->block_handle,
		    whole, to, l->peer.handle);
	rc = post(s, l, d);
	if (rc == 0) {
		written(s, kind, bytes);
		take_slots(l, whole);
	}
	return rc;
}

/* Are the VI's writes stores now?  A slot that was sent shows that one was not. */
static bool writes_are_stores(struct st_link *l)
{
	if (l->mixed) {
		if (VipxFlush(l->vi, 0) != VIP_SUCCESS)
			return false;
		l->mixed = false;
	}
	return l->direct;
}

/* Spins until all sends are complete: 0, -EPIPE: broken; after BIG_WAIT_NS it disconnects the VI itself. */
static int wait_sent(struct st_stream *s, struct st_link *l)
{
	uint64_t until = 0;

	for (unsigned i = 0; l->send_tail != l->send_head; i++) {
		st_link_reap(s, l);
		if (atomic_load_explicit(&l->broken, memory_order_relaxed))
			return -EPIPE;
		if (i % 256 != 255)
			continue;
		if (until == 0)
			until = st_now_ns() + BIG_WAIT_NS;
		else if (st_now_ns() > until) {
			/* The memory is the caller's: nothing but the end of the connection frees it. */
			VipDisconnect(l->vi);
			st_link_broke(s, l);
			return -EPIPE;
		}
	}
	return 0;
}

bool st_link_lend(struct st_link *l, const void *from, uint32_t bytes, VIP_MEM_HANDLE *handle)
{
	return st_link_settled(l) && writes_are_stores(l) &&
	       VipRegisterMem(st_process.nic, (void *)(uintptr_t)from, bytes, NULL, handle) ==
		       VIP_SUCCESS;
}

int st_link_big(struct st_stream *s, struct st_link *l, const void *from, VIP_MEM_HANDLE handle,
		uint32_t bytes)
{
	struct st_header header = { bytes, ST_REC_DATA, st_tag(l->peer.key, s->tx.position) };
	uint32_t at = st_header_at(l->peer.ring_bytes, s->tx.position);
	int rc = room_for(s, l);
	VIP_DESCRIPTOR *d;

	if (rc != 0)
		return rc;
	d = next_send(l, ST_USE_BIG);
	fill_remote(d, VIP_CONTROL_OP_RDMAWRITE, from, handle, bytes, l->peer.ring + at - bytes,
		    l->peer.handle);
	rc = post(s, l, d);
	if (rc == 0 && !st_link_settled(l)) {
		l->direct = false;
		rc = wait_sent(s, l);
	}
	if (rc != 0)
		return rc;
	memcpy(slot_of(l), &header, sizeof(header));
	d = next_send(l, ST_USE_DATA);
	fill_remote(d, VIP_CONTROL_OP_RDMAWRITE, slot_of(l), l->block_handle, sizeof(header),
		    l->peer.ring + at, l->peer.handle);
	rc = post(s, l, d);
	if (rc == 0)
		written(s, ST_REC_DATA, bytes);
	return rc;
}

void st_link_ring(struct st_stream *s, struct st_link *l, unsigned kind)
{
	uint64_t asked;

	/* Earlier writes are on their way before the word is loaded. */
	atomic_thread_fence(memory_order_seq_cst);
	asked = __atomic_load_n(&l->words->arm[kind], __ATOMIC_RELAXED);
	if (st_likely(asked == l->rung[kind]))
		return;
	if (st_link_wake(s, l, kind) == 0) {
		l->rung[kind] = asked;
		return;
	}
	l->unrung = true;
	st_look_after(s, 0);
}
