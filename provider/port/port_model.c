/* SPDX-License-Identifier: BSD-2-Clause */
/* model: stores and doorbells arrive when a link of the profile would have carried them. */
#include "port_model.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port_deco.h"
#include "port_model_time.h"
#include "u_cancel.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_thread.h"
#include "u_time.h"

#define MODEL_PIECE 4096u	  /* a longer store is queued, and lands, in pieces */
#define MODEL_ITEMS 256u	  /* under way from one process over one port; a power of two */
#define MODEL_SPIN_NS 5000	  /* a shorter wait is not worth a sleep */
#define MODEL_GRAIN_NS 300	  /* of the profile, and ... */
#define MODEL_GRAIN_MAX_NS 100000 /* ... of the machine: no thread sleeps for less */
#define MODEL_LATE_NS 300 /* of the profile: by how much a wake-up may be late and not count */
#define MODEL_NAME_MAX 32u

enum model_kind { MODEL_STORE, MODEL_SPAD, MODEL_RING };

struct model_item {
	int64_t due;
	enum model_kind kind;
	const struct u_out *out; /* STORE */
	uint8_t *dst;
	bool combined;
	uint32_t n;    /* STORE: bytes; RING: bits; SPAD: index */
	uint32_t word; /* SPAD */
	uint8_t data[MODEL_PIECE];
};

/* In the order of arrival.  Both counts only grow. */
struct model_fifo {
	struct model_item *items;
	uint64_t pushed;
	uint64_t landed;
};

enum model_queue { MODEL_STORES, MODEL_RINGS, MODEL_QUEUES };

struct model {
	struct port port;
	struct model_time time;
	bool self;
	int fd; /* of `link`; -1 in a client */
	struct model_link *link;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t work;
	pthread_cond_t landed;
	struct model_fifo fifo[MODEL_QUEUES];
	bool combining; /* a store may still join the last one */
	pthread_t thread;
	bool started;
	bool stop;
};

struct model_map {
	struct model *model;
	struct port_map inner;
};

static _Thread_local int64_t busy_until; /* the calling thread's own time, when it is ahead */

static struct model *model_of(struct port *p)
{
	return u_container_of(p, struct model, port);
}

/* Threads run ahead of their time by so much rather than sleep often, and land stores so late. */
static int64_t grain(const struct model_time *t)
{
	int64_t ns = model_dilated(t, MODEL_GRAIN_NS);

	return ns < MODEL_GRAIN_MAX_NS ? ns : MODEL_GRAIN_MAX_NS;
}

/* The calling thread is busy until then. */
static void wait_until(const struct model_time *t, int64_t at)
{
	struct timespec ts = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };

	busy_until = at;
	if (at - u_now_ns() < grain(t))
		return;
	if (at - u_now_ns() > MODEL_SPIN_NS) {
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
	}
	while (u_now_ns() < at)
		u_pause();
}

/*
 * When work of the calling thread that takes so long and begins now ends: sleeps that end late, because
 * the machine was busy, are not to look like work of the thread.
 */
static int64_t work_until(const struct model_time *t, int64_t busy)
{
	busy_until =
		model_busy_until(busy_until, u_now_ns(), busy, model_dilated(t, MODEL_LATE_NS));
	return busy_until;
}

static void spend(const struct model_time *t, int64_t ns)
{
	wait_until(t, work_until(t, model_dilated(t, ns)));
}

/* ---- what is under way ---- */

static struct model_item *fifo_at(struct model_fifo *f, uint64_t n)
{
	return &f->items[n % MODEL_ITEMS];
}

static struct model_fifo *next_due(struct model *m)
{
	struct model_fifo *best = NULL;

	for (unsigned int q = 0; q < MODEL_QUEUES; q++) {
		struct model_fifo *f = &m->fifo[q];

		if (f->landed == f->pushed)
			continue;
		if (best == NULL || fifo_at(f, f->landed)->due < fifo_at(best, best->landed)->due)
			best = f;
	}
	return best;
}

/* Stores that were combined land as the words that they were. */
static void land_store(const struct model_item *item)
{
	uint32_t step = item->combined ? sizeof(uint64_t) : item->n;

	for (uint32_t at = 0; at < item->n; at += step)
		deco_put(item->out, item->dst + at, item->data + at, step);
	u_out_fence(item->out);
}

static void land(struct model *m, const struct model_item *item)
{
	switch (item->kind) {
	case MODEL_STORE:
		land_store(item);
		break;
	case MODEL_SPAD:
		port_peer_spad_write(m->port.inner, item->n, item->word);
		break;
	case MODEL_RING:
		port_peer_db_ring(m->port.inner, item->n);
		break;
	}
}

static void sleep_until(struct model *m, int64_t due)
{
	struct timespec ts = { .tv_sec = due / 1000000000, .tv_nsec = due % 1000000000 };

	pthread_cond_timedwait(&m->work, &m->lock, &ts);
}

static void *deliver(void *arg)
{
	struct model *m = arg;
	bool in_turn = false; /* it is awake for a stream of stores, not for a single one */

	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		struct model_fifo *f = next_due(m);
		struct model_item *item;
		int64_t now;

		if (f == NULL) {
			pthread_cond_wait(&m->work, &m->lock);
			continue;
		}
		item = fifo_at(f, f->landed);
		now = u_now_ns();
		if (item->due > now) {
			if (in_turn && item->due < now + grain(&m->time))
				sleep_until(m, now + grain(&m->time));
			else
				sleep_until(m, item->due);
			in_turn = false;
			continue;
		}
		land(m, item);
		f->landed++;
		in_turn = true;
		pthread_cond_broadcast(&m->landed);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* The first store of a process starts its thread: an agent that only watches has none. */
static U_COLD int start(struct model *m)
{
	int err;

	for (unsigned int q = 0; q < MODEL_QUEUES; q++) {
		struct model_fifo *f = &m->fifo[q];

		if (f->items == NULL)
			f->items = calloc(MODEL_ITEMS, sizeof(*f->items));
		if (f->items == NULL)
			return -ENOMEM;
	}
	err = u_thread_start(&m->thread, "vi-model", deliver, m);
	m->started = err == 0;
	return err;
}

/* Called with the lock held. */
static void wait_landed(struct model *m)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();

	pthread_cond_wait(&m->landed, &m->lock);
}

/*
 * Makes room at the end of a queue; NULL when this process cannot have a thread, and what
 * was to be queued is lost as on a link that fails.  Called with the lock held.
 */
static struct model_item *claim(struct model *m, enum model_queue q)
{
	struct model_fifo *f = &m->fifo[q];

	if (u_unlikely(!m->started) && start(m) != 0)
		return NULL;
	while (f->pushed - f->landed == MODEL_ITEMS)
		wait_landed(m);
	return fifo_at(f, f->pushed);
}

/* Queues the item that claim() gave.  The thread sleeps until what is due first. */
static void commit(struct model *m, enum model_queue q)
{
	struct model_fifo *f = &m->fifo[q];

	if (f->pushed++ == f->landed)
		pthread_cond_signal(&m->work);
}

/* Waits until all that was queued before has landed.  Called with the lock held. */
static void drain(struct model *m)
{
	uint64_t pushed[MODEL_QUEUES];

	for (unsigned int q = 0; q < MODEL_QUEUES; q++)
		pushed[q] = m->fifo[q].pushed;
	for (unsigned int q = 0; q < MODEL_QUEUES; q++) {
		while ((int64_t)(pushed[q] - m->fifo[q].landed) > 0)
			wait_landed(m);
	}
}

/* ---- stores ---- */

/*
 * Words stored one behind the other, with no fence between, leave the processor as one
 * packet while they fill one line: write-combining.  Called with the lock held.
 */
static bool combine(const struct model_map *map, uint8_t *dst, const void *src, uint32_t n,
		    int64_t now, int64_t *end_out)
{
	struct model *m = map->model;
	struct model_fifo *f = &m->fifo[MODEL_STORES];
	struct model_item *last = fifo_at(f, f->pushed - 1);
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

static int64_t push_store(const struct model_map *map, uint8_t *dst, const void *src, uint32_t n,
			  int64_t now)
{
	struct model *m = map->model;
	struct model_item *item = claim(m, MODEL_STORES);
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
	commit(m, MODEL_STORES);
	return end;
}

/* The sender is ready at `now`; returns when it may go on. */
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

static void model_store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	const struct model_map *map = out->priv;
	uint8_t *to = dst;
	const uint8_t *from = src;
	int64_t now = work_until(&map->model->time, 0);
	size_t piece;

	for (; n > 0; n -= piece, to += piece, from += piece) {
		piece = (size_t)u_min64(n, MODEL_PIECE - (uintptr_t)to % MODEL_PIECE);
		now = queue_piece(map, to, from, (uint32_t)piece, now);
		wait_until(&map->model->time, now);
	}
}

/* All stores of a process land in their order. */
static void model_fence(const struct u_out *out) {}

static const struct u_out_ops model_out_ops = { .store = model_store, .fence = model_fence };

static int model_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
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

static void model_unmap(struct port *p, struct port_map *map)
{
	struct model *m = model_of(p);
	struct model_map *own = map->priv;

	if (map->out.ops != &model_out_ops) {
		port_unmap(p->inner, map);
		return;
	}
	pthread_mutex_lock(&m->lock);
	drain(m);
	pthread_mutex_unlock(&m->lock);
	port_unmap(p->inner, &own->inner);
	free(own);
	memset(map, 0, sizeof(*map));
}

/* ---- registers ---- */

/* A read across the link pushes what was posted before it; the answer comes a latency later. */
static void read_across(struct model *m)
{
	int64_t end;

	pthread_mutex_lock(&m->lock);
	end = model_reserve(m->link, work_until(&m->time, 0), 0);
	drain(m);
	pthread_mutex_unlock(&m->lock);
	wait_until(&m->time, model_lands_at(&m->time, model_lands_at(&m->time, end)));
}

static void model_flush(struct port *p)
{
	struct model *m = model_of(p);

	if (!m->self)
		read_across(m);
	port_flush(p->inner);
}

static void post_register(struct model *m, enum model_kind kind, uint32_t n, uint32_t word)
{
	enum model_queue q = kind == MODEL_RING ? MODEL_RINGS : MODEL_STORES;
	struct model_item *item;
	int64_t end;

	spend(&m->time, m->time.profile->register_write_ns);
	pthread_mutex_lock(&m->lock);
	item = claim(m, q);
	if (item != NULL) {
		end = model_reserve(m->link, busy_until, model_send_ns(&m->time, sizeof(word)));
		item->due = kind == MODEL_RING ? model_interrupts_at(&m->time, end)
					       : model_lands_at(&m->time, end);
		item->kind = kind;
		item->n = n;
		item->word = word;
		m->combining = false;
		commit(m, q);
	}
	pthread_mutex_unlock(&m->lock);
}

static void model_ring(struct port *p, uint32_t bits)
{
	struct model *m = model_of(p);

	if (m->self)
		port_peer_db_ring(p->inner, bits);
	else if (port_link_state(p->inner, NULL) == PORT_LINK_UP)
		post_register(m, MODEL_RING, bits, 0);
}

static uint32_t model_spad_read(struct port *p, unsigned int idx)
{
	struct model *m = model_of(p);

	if (!m->self)
		spend(&m->time, m->time.profile->register_read_ns);
	return port_spad_read(p->inner, idx);
}

static int model_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	struct model *m = model_of(p);

	if (!m->self)
		spend(&m->time, m->time.profile->register_write_ns);
	return port_spad_write(p->inner, idx, v);
}

static uint32_t model_peer_spad_read(struct port *p, unsigned int idx)
{
	struct model *m = model_of(p);

	if (!m->self && m->fd >= 0)
		read_across(m);
	return port_peer_spad_read(p->inner, idx);
}

static int model_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	struct model *m = model_of(p);

	if (m->self || m->fd < 0)
		return port_peer_spad_write(p->inner, idx, v);
	if (idx >= p->limits.spads)
		return -EINVAL;
	if (port_link_state(p->inner, NULL) != PORT_LINK_UP)
		return -ENOTCONN;
	post_register(m, MODEL_SPAD, idx, v);
	return 0;
}

/* ---- making and ending ---- */

static int model_export(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			unsigned int *nfds_out)
{
	struct model *m = model_of(p);
	char segment[MODEL_NAME_MAX + 48];
	int err;

	if (m->fd < 0)
		return port_export_view(p->inner, text, size, fds, nfds_out);
	snprintf(segment, sizeof(segment), "model profile=%s dilation=%" PRIu32,
		 m->time.profile->name, m->time.dilation);
	err = deco_export(p, segment, text, size, fds, nfds_out);
	if (err != 0)
		return err;
	if (*nfds_out == PORT_ATTACH_FDS)
		return -ENOSPC;
	fds[(*nfds_out)++] = m->fd;
	return 0;
}

static void model_free(struct model *m)
{
	for (unsigned int q = 0; q < MODEL_QUEUES; q++)
		free(m->fifo[q].items);
	pthread_cond_destroy(&m->landed);
	pthread_cond_destroy(&m->work);
	pthread_mutex_destroy(&m->lock);
	if (m->link != NULL)
		munmap(m->link, sizeof(*m->link));
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

static void model_close(struct port *p)
{
	struct model *m = model_of(p);
	bool started;

	pthread_mutex_lock(&m->lock);
	started = m->started;
	if (started)
		drain(m);
	m->stop = true;
	pthread_cond_signal(&m->work);
	pthread_mutex_unlock(&m->lock);
	if (started)
		pthread_join(m->thread, NULL);
	port_close(p->inner);
	model_free(m);
}

static const struct port_ops model_ops = {
	.slice_alloc = deco_slice_alloc,
	.slice_free = deco_slice_free,
	.slice_share = deco_slice_share,
	.peer_slice_open = deco_peer_slice_open,
	.map = model_map,
	.unmap = model_unmap,
	.flush = model_flush,
	.peer_db_ring = model_ring,
	.db_read = deco_db_read,
	.db_clear = deco_db_clear,
	.db_set_mask = deco_db_set_mask,
	.db_clear_mask = deco_db_clear_mask,
	.spad_read = model_spad_read,
	.spad_write = model_spad_write,
	.peer_spad_read = model_peer_spad_read,
	.peer_spad_write = model_peer_spad_write,
	.link_enable = deco_link_enable,
	.link_disable = deco_link_disable,
	.link_state = deco_link_state,
	.event_fd = deco_event_fd,
	.service = deco_service,
	.export_view = model_export,
	.close = model_close,
};

static int init_conds(struct model *m)
{
	pthread_condattr_t attr;
	int err = -pthread_condattr_init(&attr);

	if (err != 0)
		return err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, &attr);
	pthread_cond_init(&m->landed, NULL);
	pthread_condattr_destroy(&attr);
	return 0;
}

static int map_link(struct model *m, int fd)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(*m->link))
		return -EINVAL;
	at = mmap(NULL, sizeof(*m->link), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	m->link = at;
	return 0;
}

static int model_new(struct port *inner, const struct model_time *time, struct model **out)
{
	struct model *m = calloc(1, sizeof(*m));
	int err;

	if (m == NULL)
		return -ENOMEM;
	err = init_conds(m);
	if (err != 0) {
		free(m);
		return err;
	}
	m->fd = -1;
	m->time = *time;
	m->self = strcmp(inner->limits.name, "self") == 0;
	deco_init(&m->port, &model_ops, "model", inner);
	*out = m;
	return 0;
}

static int sealed_page(int *fd_out)
{
	int fd = u_fd_above_std(memfd_create("viaduct-model", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, 4096) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		err = -errno;
	if (err != 0)
		close(fd);
	else
		*fd_out = fd;
	return err;
}

static bool time_parse(const char *name, const char *dilation, struct model_time *out)
{
	char *end = NULL;
	unsigned long factor = 1;

	if (dilation != NULL) {
		factor = *dilation >= '0' && *dilation <= '9' ? strtoul(dilation, &end, 10) : 0;
		if (factor == 0 || factor > PORT_MODEL_DILATION_MAX || *end != '\0')
			return false;
	}
	out->dilation = (uint32_t)factor;
	out->profile = port_model_profile_find(name);
	return out->profile != NULL;
}

static bool options_parse(const char *options, struct model_time *out)
{
	char copy[MODEL_NAME_MAX];
	char *dilation;

	if (strlen(options) >= sizeof(copy))
		return false;
	memcpy(copy, options, strlen(options) + 1);
	dilation = strchr(copy, ':');
	if (dilation != NULL)
		*dilation++ = '\0';
	return time_parse(*options != '\0' ? copy : "gen3x8", dilation, out);
}

int port_model_check(const char *options)
{
	struct model_time time;

	return options_parse(options, &time) ? 0 : -EINVAL;
}

int port_model_wrap(struct port *inner, const char *options, struct port **out)
{
	struct model_time time;
	struct model *m;
	int err = port_ops_check(&model_ops);

	if (err == 0 && !options_parse(options, &time)) {
		u_error("port",
			"a model PROFILE[:DILATION] was sought, \"%s\" is none; use gen3x8 or "
			"gen3x8:N with N up to %u",
			options, PORT_MODEL_DILATION_MAX);
		return -EINVAL;
	}
	if (err == 0)
		err = model_new(inner, &time, &m);
	if (err != 0)
		return err;
	err = sealed_page(&m->fd);
	if (err == 0)
		err = map_link(m, m->fd);
	if (err != 0) {
		model_free(m);
		return err;
	}
	*out = &m->port;
	return 0;
}

int port_model_attach(struct port *inner, const char *segment, int fd, struct port **out)
{
	char name[MODEL_NAME_MAX];
	char dilation[16];
	struct model_time time;
	struct model *m;
	int end = 0;
	int err;

	if (sscanf(segment, "model profile=%31s dilation=%15s%n", name, dilation, &end) != 2 ||
	    segment[end] != '\0' || !time_parse(name, dilation, &time))
		return -EINVAL;
	err = model_new(inner, &time, &m);
	if (err != 0)
		return err;
	err = map_link(m, fd);
	if (err != 0) {
		model_free(m);
		return err;
	}
	*out = &m->port;
	return 0;
}

/* ---- for programs that charge their own work ---- */

static const struct model_time *time_of(struct port *p)
{
	while (p != NULL && p->ops != &model_ops)
		p = p->inner;
	return p != NULL ? &model_of(p)->time : NULL;
}

const struct port_model_profile *port_model_profile(struct port *p)
{
	const struct model_time *t = time_of(p);

	return t != NULL ? t->profile : NULL;
}

int64_t port_model_now_ns(struct port *p)
{
	const struct model_time *t = time_of(p);
	int64_t now = u_now_ns();

	return t == NULL ? now : (busy_until > now ? busy_until : now) / t->dilation;
}

void port_model_spend(struct port *p, int64_t ns)
{
	const struct model_time *t = time_of(p);

	if (t != NULL)
		spend(t, ns);
}

void port_model_copy(struct port *p, void *dst, const void *src, size_t n)
{
	const struct model_time *t = time_of(p);

	memcpy(dst, src, n);
	if (t != NULL)
		spend(t, model_copy_ns(t->profile, n));
}
