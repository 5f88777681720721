/* SPDX-License-Identifier: BSD-2-Clause */
/* The VI of a stream from its making to its end, its memory, and the descriptors that complete. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "st_link.h"
#include "st_told.h"

#define RING_LEAST 65536u /* where the window has no more left */

/* Posts receive `i`; if that fails the VI is marked as broken, and the helper is not told. */
static void post_recv(struct st_link *l, unsigned i)
{
	VIP_DESCRIPTOR *d = &l->block->recvs[i];

	memset(d, 0, sizeof(*d));
	d->CS.SegCount = 1;
	d->CS.Length = sizeof(l->block->inbox[i]);
	d->DS[0].Local.Data.AddressBits = (uintptr_t)&l->block->inbox[i];
	d->DS[0].Local.Handle = l->block_handle;
	d->DS[0].Local.Length = sizeof(l->block->inbox[i]);
	if (VipPostRecv(l->vi, d, l->block_handle) != VIP_SUCCESS)
		atomic_store(&l->broken, true);
}

/* Makes the block and the ring, which is halved until the window has room; after -ENOBUFS a part may be there. */
static int make_memory(struct st_link *l)
{
	VIP_MEM_ATTRIBUTES open = { NULL, VIP_TRUE, VIP_TRUE },
			   closed = { NULL, VIP_FALSE, VIP_FALSE };
	VIP_PVOID at;

	l->block = mmap(NULL, sizeof(*l->block), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->block == MAP_FAILED) {
		l->block = NULL;
		return -ENOBUFS;
	}
	if (VipRegisterMem(st_process.nic, l->block, sizeof(*l->block), &closed,
			   &l->block_handle) != VIP_SUCCESS)
		return -ENOBUFS;
	while (VipxAllocMem(st_process.nic, l->ring_bytes + ST_WORDS_BYTES, &open, &at,
			    &l->ring_handle) != VIP_SUCCESS) {
		if (l->ring_bytes <= RING_LEAST)
			return -ENOBUFS;
		l->ring_bytes /= 2;
	}
	l->ring = at;
	l->words = (void *)(l->ring + l->ring_bytes);
	return 0;
}

int st_link_create(struct st_stream *s, uint32_t ring_bytes, VIP_CQ_HANDLE cq, struct st_link **out)
{
	VIP_VI_ATTRIBUTES attrs = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
				    .MaxTransferSize = st_process.nic_attributes.MaxTransferSize,
				    .EnableRdmaWrite = VIP_TRUE,
				    .EnableRdmaRead = VIP_TRUE };
	struct st_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOBUFS;
	l->ring_bytes = ring_bytes;
	l->key = st_random64() | 1ull << 63;
	if (make_memory(l) != 0 ||
	    VipCreateVi(st_process.nic, &attrs, cq, cq, &l->vi) != VIP_SUCCESS) {
		st_link_destroy(l);
		return -ENOBUFS;
	}
	VipxSetViContext(l->vi, s);
	for (unsigned i = 0; i < ST_RECVS; i++)
		post_recv(l, i);
	*out = l;
	return 0;
}

void st_link_cut(struct st_link *l)
{
	VIP_DESCRIPTOR *d;

	if (l->vi == NULL)
		return;
	VipDisconnect(l->vi);
	do
		d = NULL;
	while (VipRecvDone(l->vi, &d) != VIP_INVALID_PARAMETER && d != NULL);
	do
		d = NULL;
	while (VipSendDone(l->vi, &d) != VIP_INVALID_PARAMETER && d != NULL);
}

void st_link_destroy(struct st_link *l)
{
	if (l == NULL)
		return;
	if (l->vi != NULL)
		VipDestroyVi(l->vi);
	if (l->ring != NULL)
		VipxFreeMem(st_process.nic, l->ring, l->ring_handle);
	if (l->block_handle != 0)
		VipDeregisterMem(st_process.nic, l->block, l->block_handle);
	if (l->block != NULL)
		munmap(l->block, sizeof(*l->block));
	free(l);
}

/* ---- completions --------------------------------------------------------------------------------------------- */

void st_link_broke(struct st_stream *s, struct st_link *l)
{
	if (!atomic_exchange(&l->broken, true))
		st_look_after(s, 0);
}

/* Handles a receive and posts it again: a wake ends the own arm and wakes sleepers, a message is the helper's. */
static void take_recv(struct st_stream *s, struct st_link *l, unsigned i)
{
	VIP_DESCRIPTOR *d = &l->block->recvs[i];
	unsigned kind = d->CS.ImmediateData & 1;

	atomic_fetch_add(&l->news, 1);
	if (d->CS.Status & VIP_STATUS_ERROR_MASK) {
		st_link_broke(s, l);
		return;
	}
	if (d->CS.Length == 0) {
		st_count(&st_counts.wakes_received, 1);
		atomic_store(&l->confirmed[kind], false);
		atomic_store(&l->armed[kind], false);
		st_kick(s, s->wait);
	} else {
		st_lock(&l->inbox_lock);
		if (l->inbox_count < ST_RECVS && d->CS.Length == sizeof(struct st_message))
			l->inbox[l->inbox_count++] = l->block->inbox[i];
		else
			st_link_broke(s, l);
		st_unlock(&l->inbox_lock);
		st_look_after(s, 0);
	}
	post_recv(l, i);
}

/* Notes a completed send for st_link_reap(); one with an error breaks the VI. */
static void take_send(struct st_stream *s, struct st_link *l, unsigned i)
{
	if (l->block->sends[i].CS.Status & VIP_STATUS_ERROR_MASK)
		st_link_broke(s, l);
	atomic_store_explicit(&l->taken[i], 1, memory_order_release);
}

void st_link_entry(struct st_stream *s, struct st_link *l, VIP_DESCRIPTOR *d, bool recv)
{
	unsigned i;
	bool read;

	st_told_add(s->wait, s);
	if (recv) {
		take_recv(s, l, (unsigned)(d - l->block->recvs));
		return;
	}
	i = (unsigned)(d - l->block->sends);
	read = l->use[i] == ST_USE_READ;
	take_send(s, l, i);
	if (read) /* the sleeper that asked looks once more, and reaps it; nothing that was written is late */
		st_kick(s, s->wait);
	else /* the thread that posted it is gone: the helper looks at the arm words */
		st_look_after(s, 0);
}

void st_link_progress(struct st_stream *s, struct st_link *l)
{
	struct st_wait *w = s->wait;
	VIP_DESCRIPTOR *d = NULL;

	/* As the takers of the queue's entries do: messages stay in the order in which they came. */
	if (st_lock(&w->lock) != 0)
		return;
	while (VipRecvDone(l->vi, &d) != VIP_NOT_DONE && d != NULL) {
		st_link_entry(s, l, d, true);
		d = NULL;
		if (atomic_load_explicit(&l->broken, memory_order_relaxed))
			break;
	}
	st_unlock(&w->lock);
}

/* Handles a send that st_link_reap() frees: a read-back confirms an arm, and sleepers look again. */
static void sent(struct st_stream *s, struct st_link *l, unsigned i)
{
	if (l->use[i] == ST_USE_READ) {
		unsigned kind = l->block->sends[i].CS.ImmediateData & 1;

		atomic_store(&l->confirmed[kind], true);
		/* A sleeper has to look once more, this thread too. */
		atomic_fetch_add(&l->news, 1);
		st_kick(s, s->wait);
		if (!l->confirming)
			st_tell(s);
	}
}

unsigned st_link_reap(struct st_stream *s, struct st_link *l)
{
	VIP_DESCRIPTOR *d = NULL;

	for (;;) {
		for (; l->send_tail != l->send_head; l->send_tail++) {
			unsigned i = l->send_tail % ST_SENDS;

			if (!atomic_load_explicit(&l->taken[i], memory_order_acquire))
				break;
			sent(s, l, i);
		}
		if (st_link_settled(l) || VipSendDone(l->vi, &d) == VIP_NOT_DONE || d == NULL)
			break;
		take_send(s, l, (unsigned)(d - l->block->sends));
		d = NULL;
	}
	if (st_unlikely(l->starved) && ST_SENDS - (l->send_head - l->send_tail) >= ST_ARM_SENDS) {
		l->starved = false;
		atomic_fetch_add(&l->news, 1);
		st_tell(s);
	}
	if (l->send_tail == l->send_head) /* from the first slot again: it is in the caches */
		l->send_tail = l->send_head = 0;
	return ST_SENDS - (l->send_head - l->send_tail);
}
