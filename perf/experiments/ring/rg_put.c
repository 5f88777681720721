/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts of the published protocol.  Data goes to the right, from host to host: into the window of
 * the neighbour, announced through the scratchpads, and there copied by a service thread into a
 * bypass buffer, from which it is sent on, or into the heap of the target.  The acknowledgement
 * continues round the ring to the source.  There are N transfer threads on each host, each with a
 * doorbell bit, a window slot and a bypass buffer of its own; each does one thing at a time, serving
 * an arrival or sending a put of its host.
 *
 * Callers on each host make puts to each other host in turn, always as many, with any number of
 * threads.  A caller's put waits for its thread: a host has at most one transfer under way for
 * each thread, so there are no more transfers of one thread number than hosts, while slots and
 * bypass buffers are twice as many: no cycle of full buffers can form.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port_model.h"
#include "rg.h"

#define QUEUE 16u /* transfers of one thread number that are announced: at most one a host */

struct node;

struct service {
	struct node *node;
	unsigned int number;
	pthread_mutex_t own;  /* held by the caller whose put is under way */
	pthread_mutex_t busy; /* one thing at a time: a message here, or sending a caller's put */
	pthread_t thread;
	uint8_t *bypass;
	struct rg_meta queue[QUEUE];
	unsigned int head, tail; /* under node->lock */
};

struct caller {
	struct node *node;
	unsigned int number;
	pthread_t thread;
	uint8_t *data;
	uint32_t acked; /* last acknowledged; under node->lock */
	int64_t ns;	/* of all puts */
	bool wrong;
};

struct ring;

struct node {
	struct ring *ring;
	unsigned int host;
	struct rg_lane *in;
	struct rg_lane *out;
	uint8_t *heap;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t handler;
	struct service service[RG_THREADS_MAX];
	struct caller caller[RG_CALLERS];
};

struct ring {
	const struct rg_task *task;
	struct rg_fabric *fabric;
	unsigned int hosts;
	unsigned int parts; /* of one put: 1 when each thread makes its own */
	size_t part_bytes;
	bool together; /* all threads of a host make one put */
	atomic_bool stop;
	pthread_barrier_t start;
	struct rg_lane lane[RG_HOSTS_MAX];
	struct node node[RG_HOSTS_MAX];
};

static size_t heap_offset(const struct ring *r, unsigned int source, unsigned int caller)
{
	return (source * RG_CALLERS + caller) * r->task->bytes;
}

/* ---- service ---- */

static void deliver_here(struct service *s, struct rg_meta *meta)
{
	struct node *n = s->node;

	port_model_copy(n->in->to, n->heap + (size_t)meta->offset_lines * 64,
			rg_slot_in(n->in, s->number), meta->bytes);
	rg_release(n->in, s->number);
	meta->kind = RG_ACK;
	rg_signal(n->out, meta);
}

static void pass_on(struct service *s, const struct rg_meta *meta)
{
	struct node *n = s->node;

	port_model_copy(n->in->to, s->bypass, rg_slot_in(n->in, s->number), meta->bytes);
	rg_release(n->in, s->number);
	rg_transfer(n->out, meta, s->bypass, NULL);
}

static void acknowledged(struct node *n, const struct rg_meta *meta)
{
	pthread_mutex_lock(&n->lock);
	n->caller[meta->caller % RG_CALLERS].acked = meta->seq;
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
}

static void serve(struct service *s, struct rg_meta *meta)
{
	struct node *n = s->node;

	if (meta->kind == RG_DATA && meta->target == n->host)
		deliver_here(s, meta);
	else if (meta->kind == RG_DATA)
		pass_on(s, meta);
	else if (meta->source == n->host)
		acknowledged(n, meta);
	else
		rg_signal(n->out, meta);
}

static bool next_announced(struct service *s, struct rg_meta *out)
{
	struct node *n = s->node;
	bool got;

	pthread_mutex_lock(&n->lock);
	while (s->head == s->tail && !atomic_load(&n->ring->stop))
		pthread_cond_wait(&n->changed, &n->lock);
	got = s->head != s->tail;
	if (got)
		*out = s->queue[s->head++ % QUEUE];
	pthread_mutex_unlock(&n->lock);
	return got;
}

static void *service_main(void *arg)
{
	struct service *s = arg;
	struct rg_meta meta;

	while (next_announced(s, &meta)) {
		pthread_mutex_lock(&s->busy);
		serve(s, &meta);
		pthread_mutex_unlock(&s->busy);
	}
	return NULL;
}

/* The interrupt handler of a host reads the scratchpads for all its threads. */
static void *handler_main(void *arg)
{
	struct node *n = arg;
	struct rg_meta meta;

	while (rg_take(n->in, &meta, &n->ring->stop)) {
		struct service *s = &n->service[meta.thread % RG_THREADS_MAX];

		pthread_mutex_lock(&n->lock);
		s->queue[s->tail++ % QUEUE] = meta;
		pthread_cond_broadcast(&n->changed);
		pthread_mutex_unlock(&n->lock);
	}
	pthread_mutex_lock(&n->lock);
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* ---- puts ---- */

static void await_ack(struct caller *c, uint32_t seq)
{
	struct node *n = c->node;

	pthread_mutex_lock(&n->lock);
	while (c->acked != seq)
		pthread_cond_wait(&n->changed, &n->lock);
	pthread_mutex_unlock(&n->lock);
}

/* Are both ends of the data in the target's heap correct? */
static bool arrived(const struct caller *c, const struct rg_meta *meta)
{
	const struct ring *r = c->node->ring;
	const uint8_t *at = r->node[meta->target].heap + (size_t)meta->offset_lines * 64;

	return memcmp(at, c->data, 64) == 0 &&
	       memcmp(at + meta->bytes - 64, c->data + meta->bytes - 64, 64) == 0;
}

static void put(struct caller *c, uint32_t seq)
{
	struct ring *r = c->node->ring;
	unsigned int source = c->node->host;
	unsigned int target = (source + 1 + (seq - 1) % (r->hosts - 1)) % r->hosts;
	struct service *s = &c->node->service[c->number % r->task->threads];
	struct rg_meta meta = { .kind = RG_DATA,
				.thread = s->number,
				.source = source,
				.target = target,
				.seq = seq,
				.offset_lines = (uint32_t)(heap_offset(r, source, c->number) / 64),
				.bytes = (uint32_t)r->task->bytes,
				.caller = c->number };

	memset(c->data, (int)(seq * 7 + source * 31 + c->number), r->task->bytes);
	pthread_mutex_lock(&s->own);
	pthread_mutex_lock(&s->busy);
	rg_transfer(c->node->out, &meta, c->data, NULL);
	pthread_mutex_unlock(&s->busy);
	await_ack(c, seq);
	pthread_mutex_unlock(&s->own);
	if (!arrived(c, &meta))
		c->wrong = true;
}

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	struct ring *r = c->node->ring;
	struct port *port = c->node->out->from;
	int64_t began;

	pthread_barrier_wait(&r->start);
	began = port_model_now_ns(port);
	for (uint32_t seq = 1; seq <= r->task->count; seq++)
		put(c, seq);
	c->ns = port_model_now_ns(port) - began;
	return NULL;
}

/* ---- a run ---- */

static void thread_start(pthread_t *t, void *(*run)(void *), void *arg)
{
	int err = pthread_create(t, NULL, run, arg);

	if (err == 0)
		return;
	ring_print_error("a thread was sought and there is none: %s", strerror(err));
	exit(1);
}

static int service_open(struct service *s, struct node *n, unsigned int number)
{
	s->node = n;
	s->number = number;
	pthread_mutex_init(&s->own, NULL);
	pthread_mutex_init(&s->busy, NULL);
	s->bypass = malloc(n->ring->task->bytes);
	return s->bypass != NULL ? 0 : -ENOMEM;
}

static int caller_open(struct caller *c, struct node *n, unsigned int number)
{
	c->node = n;
	c->number = number;
	c->data = malloc(n->ring->task->bytes);
	return c->data != NULL ? 0 : -ENOMEM;
}

static int node_open(struct ring *r, unsigned int host)
{
	struct node *n = &r->node[host];
	int err = 0;

	n->ring = r;
	n->host = host;
	n->out = &r->lane[host];
	n->in = &r->lane[(host + r->hosts - 1) % r->hosts];
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	n->heap = calloc(1, heap_offset(r, r->hosts, 0));
	for (unsigned int t = 0; t < r->task->threads && err == 0; t++)
		err = service_open(&n->service[t], n, t);
	for (unsigned int k = 0; k < RG_CALLERS && err == 0; k++)
		err = caller_open(&n->caller[k], n, k);
	return n->heap != NULL ? err : -ENOMEM;
}

static void node_close(struct node *n)
{
	for (unsigned int t = 0; t < RG_THREADS_MAX; t++)
		free(n->service[t].bypass);
	for (unsigned int k = 0; k < RG_CALLERS; k++)
		free(n->caller[k].data);
	free(n->heap);
}

static void run(struct ring *r)
{
	for (unsigned int i = 0; i < r->hosts; i++) {
		struct node *n = &r->node[i];

		thread_start(&n->handler, handler_main, n);
		for (unsigned int t = 0; t < r->task->threads; t++)
			thread_start(&n->service[t].thread, service_main, &n->service[t]);
		for (unsigned int k = 0; k < RG_CALLERS; k++)
			thread_start(&n->caller[k].thread, caller_main, &n->caller[k]);
	}
	for (unsigned int i = 0; i < r->hosts; i++) {
		for (unsigned int k = 0; k < RG_CALLERS; k++)
			pthread_join(r->node[i].caller[k].thread, NULL);
	}
	atomic_store(&r->stop, true);
	for (unsigned int i = 0; i < r->hosts; i++) {
		pthread_join(r->node[i].handler, NULL);
		for (unsigned int t = 0; t < r->task->threads; t++)
			pthread_join(r->node[i].service[t].thread, NULL);
	}
}

static int conclude(const struct ring *r, struct rg_result *out)
{
	const struct rg_task *t = r->task;
	double ns = 0;

	for (unsigned int i = 0; i < r->hosts; i++) {
		for (unsigned int k = 0; k < RG_CALLERS; k++) {
			const struct caller *c = &r->node[i].caller[k];

			if (c->wrong) {
				ring_print_error("a put was acknowledged that did not arrive");
				return -EIO;
			}
			ns += (double)c->ns / (double)t->count;
		}
	}
	ns /= r->hosts * RG_CALLERS;
	out->value = ns / 1e3;
	out->unit = "us";
	out->rate = (double)(t->bytes * RG_CALLERS) / ns;
	return 0;
}

int rg_put(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out)
{
	struct ring *r = calloc(1, sizeof(*r));
	unsigned int open = 0;
	int err = 0;

	if (r == NULL)
		return -ENOMEM;
	r->task = t;
	r->fabric = f;
	r->hosts = f->hosts;
	pthread_barrier_init(&r->start, NULL, RG_CALLERS * f->hosts);
	for (; open < f->hosts; open++) {
		err = rg_lane_open(&r->lane[open], f->host[open].right,
				   f->host[(open + 1) % f->hosts].left, t->threads, t->bytes);
		if (err != 0)
			break;
	}
	for (unsigned int i = 0; i < f->hosts && err == 0; i++)
		err = node_open(r, i);
	if (err == 0) {
		run(r);
		err = conclude(r, out);
	}
	for (unsigned int i = 0; i < f->hosts; i++)
		node_close(&r->node[i]);
	for (unsigned int i = 0; i < open; i++)
		rg_lane_close(&r->lane[i]);
	pthread_barrier_destroy(&r->start);
	free(r);
	return err;
}
