/* SPDX-License-Identifier: BSD-2-Clause */
/* model: stores to outbound slices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port_model_priv.h"

struct model_map {
	struct model *model;
	struct port_map inner;
};

/*
 * Adds a word to the last store of the queue, if it follows that in the same line with no fence between: by
 * write-combining, such words leave the processor as one packet.  *end_out is when it has left.  False: it has
 * to be queued by itself.  Called with the lock held.
 */
static bool combine(const struct model_map *map, uint8_t *dst, const void *src, uint32_t n,
		    int64_t now, int64_t *end_out)
{
	struct model *m = map->model;
	struct model_fifo *f = &m->fifo[MODEL_STORES];
	struct model_item *last = model_item_at(f, f->pushed - 1);
	bool word = n == sizeof(uint64_t) && ((uintptr_t)dst & 7) == 0;

	if (!m->combining || f->landed == f->pushed || !word || ((uintptr_t)dst & 63) == 0 ||
	    last->out != &map->inner.out || last->dst + last->n != dst ||
	    !(last->combined || last->n == sizeof(uint64_t)))
		return false;
	*end_out = model_reserve(m->link, now, model_bytes_ns(&m->time, n));
	last->due = model_lands_at(&m->time, *end_out);
	memcpy(last->data + last->n, src, n);
	last->n += n;
	last->combined = true;
	return true;
}

/*
 * Queues a store; returns when its last packet has left, or `now` if it is lost.  Called with the lock held,
 * which is dropped while the queue is full.
 */
static int64_t push_store(const struct model_map *map, uint8_t *dst, const void *src, uint32_t n,
			  int64_t now)
{
	struct model *m = map->model;
	struct model_item *item = model_claim(m, MODEL_STORES);
	int64_t end;

	if (item == NULL)
		return now;
	end = model_reserve(m->link, now, model_send_ns(&m->time, n));
	item->due = model_lands_at(&m->time, end);
	item->kind = MODEL_STORE;
	item->out = &map->inner.out;
	item->dst = dst;
	item->n = n;
	item->combined = false;
	memcpy(item->data, src, n);
	m->combining = true;
	model_commit(m, MODEL_STORES);
	return end;
}

/*
 * Queues a store, alone or together with the last one.  The sender is ready at `now`; returns when it may go on.
 * Takes the lock.
 */
static int64_t queue_piece(const struct model_map *map, uint8_t *dst, const void *src, uint32_t n,
			   int64_t now)
{
	struct model *m = map->model;
	int64_t end, at;

	pthread_mutex_lock(&m->lock);
	if (!m->started || !combine(map, dst, src, n, now, &end))
		end = push_store(map, dst, src, n, now);
	pthread_mutex_unlock(&m->lock);
	at = model_accepted_at(&m->time, end);
	return at > now ? at : now;
}

/* Queues the store in pieces; the calling thread is busy until the adapter has taken all of them. */
static void model_store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	const struct model_map *map = out->priv;
	uint8_t *to = dst;
	const uint8_t *from = src;
	int64_t now = model_work_until(&map->model->time, 0);
	size_t piece;

	for (; n > 0; n -= piece, to += piece, from += piece) {
		piece = (size_t)u_min64(n, MODEL_PIECE - (uintptr_t)to % MODEL_PIECE);
		now = queue_piece(map, to, from, (uint32_t)piece, now);
		model_wait_until(&map->model->time, now);
	}
}

/* Nothing to do: all stores of a process land in their order. */
static void model_fence(const struct u_out *out) {}

static const struct u_out_ops model_out_ops = { .store = model_store, .fence = model_fence };

int model_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
{
	struct model *m = model_of(p);
	struct model_map *map;
	int err;

	if (dir == PORT_INBOUND || m->self)
		return port_map(p->inner, fd, len, dir, out);
	map = calloc(1, sizeof(*map));
	if (map == NULL)
		return -ENOMEM;
	err = port_map(p->inner, fd, len, dir, &map->inner);
	if (err != 0) {
		free(map);
		return err;
	}
	map->model = m;
	*out = (struct port_map){ .base = map->inner.base,
				  .len = map->inner.len,
				  .out = { .ops = &model_out_ops, .priv = map },
				  .priv = map };
	return 0;
}

void model_unmap(struct port *p, struct port_map *map)
{
	struct model *m = model_of(p);
	struct model_map *own = map->priv;

	if (map->out.ops != &model_out_ops) {
		port_unmap(p->inner, map);
		return;
	}
	pthread_mutex_lock(&m->lock);
	model_drain(m);
	pthread_mutex_unlock(&m->lock);
	port_unmap(p->inner, &own->inner);
	free(own);
	memset(map, 0, sizeof(*map));
}
