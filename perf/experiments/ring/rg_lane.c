/* SPDX-License-Identifier: BSD-2-Clause */
/* The published protocol's transfer, as its authors describe it, over the port contract. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "port_model.h"
#include "rg.h"
#include "u_time.h"

#define PATIENCE_MS 20000
#define WAIT_NS 20000000 /* of one sleep for a doorbell, after which `stop` is checked */
#define NAP_NS 100	 /* between checks of a word, of the profile */

/* ---- memory ---- */

/* The offer arrives over the cable, which the opener's port has to serve. */
static int open_offer(struct port *writer, uint32_t id, size_t len, int *fd_out)
{
	int64_t deadline = u_deadline_ms(PATIENCE_MS);
	int err;

	while ((err = port_peer_slice_open(writer, id, len, fd_out)) == -ENOENT) {
		if (u_now_ns() > deadline)
			return err;
		port_service(writer);
		u_nap_ns(50000);
	}
	return err;
}

/* `len` bytes of `owner` that its peer `writer` may write, mapped by both. */
static int mem_open(struct rg_mem *m, struct port *owner, struct port *writer, size_t len)
{
	int err = port_slice_alloc(owner, len, &m->slice);

	m->fd = -1;
	if (err != 0) {
		m->slice.fd = -1;
		return err;
	}
	err = open_offer(writer, m->slice.id, len, &m->fd);
	if (err == 0)
		err = port_map(owner, m->slice.fd, len, PORT_INBOUND, &m->in);
	if (err == 0)
		err = port_map(writer, m->fd, len, PORT_OUTBOUND, &m->out);
	return err;
}

static void mem_close(struct rg_mem *m, struct port *owner, struct port *writer)
{
	port_unmap(writer, &m->out);
	port_unmap(owner, &m->in);
	if (m->slice.id != 0)
		port_slice_free(owner, m->slice.id);
	if (m->fd >= 0)
		close(m->fd);
	if (m->slice.fd >= 0)
		close(m->slice.fd);
}

int rg_lane_open(struct rg_lane *l, struct port *from, struct port *to, unsigned int slots,
		 size_t slot_bytes)
{
	int err;

	memset(l, 0, sizeof(*l));
	l->from = from;
	l->to = to;
	l->slots = slots;
	l->slot_bytes = u_align_up(slot_bytes, 4096);
	l->words.fd = -1;
	l->words.slice.fd = -1;
	pthread_mutex_init(&l->spads, NULL);
	for (unsigned int i = 0; i < RG_THREADS_MAX; i++)
		pthread_mutex_init(&l->slot[i], NULL);
	err = mem_open(&l->window, to, from, slots * l->slot_bytes);
	if (err == 0)
		err = mem_open(&l->words, from, to, 4096);
	if (err != 0) {
		ring_print_error("a window of %u x %zu bytes could not be opened: %s", slots,
				 l->slot_bytes, strerror(-err));
		rg_lane_close(l);
	}
	return err;
}

void rg_lane_close(struct rg_lane *l)
{
	mem_close(&l->words, l->from, l->to);
	mem_close(&l->window, l->to, l->from);
	pthread_mutex_destroy(&l->spads);
	for (unsigned int i = 0; i < RG_THREADS_MAX; i++)
		pthread_mutex_destroy(&l->slot[i]);
}

struct rg_words *rg_words(const struct rg_lane *l)
{
	return l->words.in.base;
}

void rg_word_store(struct rg_lane *l, _Atomic uint64_t *word, uint64_t v)
{
	size_t off = (size_t)((uintptr_t)word - (uintptr_t)l->words.in.base);
	void *at = (uint8_t *)l->words.out.base + off;

	u_out_store64(&l->words.out.out, at, v);
	u_out_fence(&l->words.out.out);
}

void rg_word_wait(struct port *p, _Atomic uint64_t *word, uint64_t v)
{
	while (atomic_load_explicit(word, memory_order_acquire) < v)
		port_model_spend(p, NAP_NS);
}

/* ---- transfers ---- */

static int64_t lap(struct port *p, int64_t *at)
{
	int64_t before = *at;

	*at = port_model_now_ns(p);
	return *at - before;
}

/* One transfer's metadata at a time: the scratchpads are free when the last was read. */
static void announce(struct rg_lane *l, const struct rg_meta *meta, struct rg_split *split)
{
	uint32_t words[RG_SPADS];
	int64_t at = port_model_now_ns(l->from);

	memcpy(words, meta, sizeof(words));
	pthread_mutex_lock(&l->spads);
	rg_word_wait(l->from, &rg_words(l)->taken, l->issued);
	split->wait += lap(l->from, &at);
	for (unsigned int i = 0; i < RG_SPADS; i++)
		port_peer_spad_write(l->from, i, words[i]);
	split->meta += lap(l->from, &at);
	l->issued++;
	atomic_store(&l->rung_at, at);
	port_peer_db_ring(l->from, UINT32_C(1) << meta->thread);
	pthread_mutex_unlock(&l->spads);
}

void rg_transfer(struct rg_lane *l, const struct rg_meta *meta, const void *data,
		 struct rg_split *split)
{
	struct rg_split own = { 0 };
	unsigned int slot = meta->thread;
	int64_t at = port_model_now_ns(l->from);

	port_model_spend(l->from, port_model_profile(l->from)->dma_setup_ns);
	own.setup = lap(l->from, &at);
	pthread_mutex_lock(&l->slot[slot]);
	rg_word_wait(l->from, &rg_words(l)->released[slot], l->used[slot]);
	own.wait = lap(l->from, &at);
	u_out_copy(&l->window.out.out, rg_slot_out(l, slot), data, meta->bytes);
	u_out_fence(&l->window.out.out);
	own.data = lap(l->from, &at);
	l->used[slot]++;
	announce(l, meta, &own);
	pthread_mutex_unlock(&l->slot[slot]);
	if (split == NULL)
		return;
	split->setup += own.setup;
	split->wait += own.wait;
	split->data += own.data;
	split->meta += own.meta;
}

void rg_signal(struct rg_lane *l, const struct rg_meta *meta)
{
	struct rg_split ignored = { 0 };

	announce(l, meta, &ignored);
}

static void read_meta(struct rg_lane *l, struct rg_meta *meta)
{
	uint32_t words[RG_SPADS];

	for (unsigned int i = 0; i < RG_SPADS; i++)
		words[i] = port_spad_read(l->to, i);
	memcpy(meta, words, sizeof(words));
	rg_word_store(l, &rg_words(l)->taken, ++l->taken);
	l->interrupts_ns += port_model_now_ns(l->to) - atomic_load(&l->rung_at);
}

bool rg_take(struct rg_lane *l, struct rg_meta *meta, const atomic_bool *stop)
{
	uint32_t all = (UINT32_C(1) << RG_THREADS_MAX) - 1;

	while (!atomic_load(stop)) {
		uint32_t ticket = port_irq_ticket(l->to->irq);
		uint32_t rung = port_db_read(l->to) & all;

		if (rung != 0) {
			port_db_clear(l->to, rung);
			read_meta(l, meta);
			return true;
		}
		port_irq_wait(l->to->irq, ticket, all, WAIT_NS);
	}
	return false;
}

void rg_release(struct rg_lane *l, unsigned int slot)
{
	rg_word_store(l, &rg_words(l)->released[slot], ++l->released[slot]);
}
