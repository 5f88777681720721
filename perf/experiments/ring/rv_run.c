/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rv.h"

#define PATIENCE_NS INT64_C(60000000000)
#define NAP_NS 200	 /* of the profile, between polls */
#define NAP_MIN_NS 20000 /* of this machine */

/* The time between polls: short against the time of the operation. */
static long nap_of(const struct rv_task *t, uint64_t bytes)
{
	double ns = (double)bytes / 6.4 / 20; /* a twentieth of its time on a link */

	if (ns < NAP_NS)
		ns = NAP_NS;
	ns *= t->dilation;
	return ns > NAP_MIN_NS ? (long)ns : NAP_MIN_NS;
}

/* Waits for the oldest write. */
static int await_write(struct rv_path *w, long nap)
{
	int64_t deadline = rv_now() + PATIENCE_NS;
	int rc;

	while ((rc = rv_write_done(w)) == 0) {
		if (rv_now() > deadline) {
			ring_print_error("a write did not complete within a minute");
			return -1;
		}
		rv_nap(nap);
	}
	return rc < 0 ? -1 : 0;
}

static int await_word(const struct rv_path *w, uint64_t n, long nap)
{
	int64_t deadline = rv_now() + PATIENCE_NS;

	while (rv_target_word(w) != n) {
		if (rv_now() > deadline || atomic_load(&w->from->lost)) {
			ring_print_error("a write did not arrive");
			return -1;
		}
		rv_nap(nap);
	}
	return 0;
}

static int write_one(struct rv_path *w, uint64_t n, long nap)
{
	return rv_write_post(w, n) == 0 ? await_write(w, nap) : -1;
}

/*
 * A writer asks for a grant with its first write, and has it when a write needs no slot any more.
 * Over relays there are no grants.
 */
static int warm(struct rv_path *w, long nap)
{
	int64_t deadline = rv_now() + PATIENCE_NS;
	uint64_t bytes = w->bytes;
	uint64_t before, after = rv_slots_sent(w);
	int err;

	w->bytes = 64;
	do {
		before = after;
		err = write_one(w, 0, nap);
		rv_nap(1000000);
		after = rv_slots_sent(w);
	} while (err == 0 && rv_neighbours(w) && after != before && rv_now() < deadline);
	w->bytes = bytes;
	return err;
}

static int hosts_open(struct rv_host *h, unsigned int n)
{
	memset(h, 0, n * sizeof(*h));
	for (unsigned int i = 0; i < n; i++) {
		if (rv_host_open(&h[i], i) != 0)
			return -1;
	}
	return 0;
}

static void hosts_close(struct rv_host *h, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rv_host_close(&h[i]);
}

static int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	int err = pthread_create(thread, NULL, run, arg);

	if (err != 0)
		ring_print_error("a thread was sought and there is none: %s", strerror(err));
	return err == 0 ? 0 : -1;
}

/* ---- E1, E2 ---- */

#define STREAM_DEPTH 64u
#define STREAM_BYTES (UINT64_C(4) << 20)

struct stream {
	const struct rv_task *task;
	struct rv_path path;
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t ns;
	int err;
};

static int stream_writes(struct stream *s)
{
	const struct rv_task *t = s->task;
	unsigned int depth = s->path.depth;
	long nap = nap_of(t, 64);
	int64_t owed = 0;
	int err = 0;

	for (uint64_t n = 1; n <= t->count + depth && err == 0; n++) {
		if (n > depth)
			err = await_write(&s->path, nap);
		if (n > t->count || err != 0)
			continue;
		err = rv_write_post(&s->path, n);
		rv_charge(&owed, (int64_t)t->post_ns * t->dilation);
	}
	return err == 0 ? await_word(&s->path, t->count, nap) : err;
}

static void *stream_main(void *arg)
{
	struct stream *s = arg;
	int64_t began;

	s->err = warm(&s->path, nap_of(s->task, 64));
	pthread_barrier_wait(s->start);
	began = rv_now();
	if (s->err == 0)
		s->err = stream_writes(s);
	s->ns = rv_now() - began;
	return NULL;
}

/* As many writes under way as is usual in bandwidth tests, as long as their buffers are small. */
static unsigned int depth_of(const struct rv_task *t)
{
	uint64_t depth = STREAM_BYTES / t->bytes;

	if (depth > t->count)
		depth = t->count;
	return depth > STREAM_DEPTH ? STREAM_DEPTH : depth > 0 ? (unsigned int)depth : 1;
}

/* In the order in which more links are used: one, both of host 0, all. */
static int stream_open(struct stream *s, const struct rv_task *t, struct rv_host *hosts,
		       unsigned int i, pthread_barrier_t *start)
{
	unsigned int from = i / 2;
	unsigned int to = i % 2 == 0 ? (from + 1) % t->hosts : (from + t->hosts - 1) % t->hosts;

	s->task = t;
	s->start = start;
	return rv_path_open(&s->path, &hosts[from], &hosts[to], i, t->bytes, depth_of(t),
			    VIP_SERVICE_RELIABLE_DELIVERY);
}

static int streams_run(struct stream *s, const struct rv_task *t, struct rv_result *out)
{
	double sum = 0;
	int err = 0;

	for (unsigned int i = 0; i < t->links; i++) {
		if (thread_start(&s[i].thread, stream_main, &s[i]) != 0)
			exit(1); /* the others wait for it */
	}
	for (unsigned int i = 0; i < t->links; i++) {
		pthread_join(s[i].thread, NULL);
		err |= s[i].err;
		sum += (double)(t->bytes * t->count) * t->dilation / (double)s[i].ns;
	}
	out->value = sum / t->links;
	out->unit = "GB/s";
	return err;
}

int rv_rate(const struct rv_task *t, struct rv_result *out)
{
	struct rv_host hosts[RV_HOSTS_MAX];
	struct stream *s = calloc(t->links, sizeof(*s));
	pthread_barrier_t start;
	int err = s == NULL ? -1 : hosts_open(hosts, t->hosts);

	pthread_barrier_init(&start, NULL, t->links);
	for (unsigned int i = 0; i < t->hosts && err == 0; i++)
		err = rv_host_move(&hosts[i], nap_of(t, 64));
	for (unsigned int i = 0; i < t->links && err == 0; i++)
		err = stream_open(&s[i], t, hosts, t->first + i, &start);
	if (err == 0)
		err = streams_run(s, t, out);
	for (unsigned int i = 0; s != NULL && i < t->links; i++)
		rv_path_close(&s[i].path);
	hosts_close(hosts, t->hosts);
	pthread_barrier_destroy(&start);
	free(s);
	return err;
}

/* ---- E3, E4 ---- */

/* Puts to each other host in turn, over a path of its own to each. */
struct caller {
	const struct rv_task *task;
	struct rv_host *hosts;
	unsigned int source;
	unsigned int number;
	pthread_barrier_t *start;
	pthread_t thread;
	struct rv_path path[RV_HOSTS_MAX];
	int64_t ns;
	int err;
};

static unsigned int target_of(const struct caller *c, uint64_t n)
{
	return (c->source + 1 + (unsigned int)(n % (c->task->hosts - 1))) % c->task->hosts;
}

static int caller_open(struct caller *c)
{
	unsigned int base = (c->source * RV_CALLERS + c->number) * RV_HOSTS_MAX;
	int err = 0;

	for (uint64_t n = 0; n < c->task->hosts - 1 && err == 0; n++) {
		unsigned int to = target_of(c, n);

		err = rv_path_open(&c->path[to], &c->hosts[c->source], &c->hosts[to], base + to,
				   c->task->bytes, 1, VIP_SERVICE_RELIABLE_RECEPTION);
		if (err == 0)
			err = warm(&c->path[to], nap_of(c->task, 64));
	}
	return err;
}

static int caller_put(struct caller *c, uint64_t n, int64_t *owed)
{
	const struct rv_task *t = c->task;
	struct rv_path *w = &c->path[target_of(c, n)];
	int err = write_one(w, n, nap_of(t, t->bytes));

	rv_charge(owed, (int64_t)t->post_ns * t->dilation);
	if (err == 0 && rv_target_word(w) != n) {
		ring_print_error("a put completed that did not arrive");
		err = -1;
	}
	return err;
}

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	int64_t owed = 0;
	int64_t began;

	c->err = caller_open(c);
	pthread_barrier_wait(c->start);
	began = rv_now();
	for (uint64_t n = 1; n <= c->task->count && c->err == 0; n++)
		c->err = caller_put(c, n, &owed);
	c->ns = rv_now() - began;
	return NULL;
}

static int callers_run(struct caller *c, const struct rv_task *t, struct rv_result *out)
{
	unsigned int n = t->hosts * RV_CALLERS;
	double ns = 0;
	int err = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (thread_start(&c[i].thread, caller_main, &c[i]) != 0)
			exit(1); /* the others wait for it */
	}
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(c[i].thread, NULL);
		err |= c[i].err;
		ns += (double)c[i].ns / (double)t->count / t->dilation;
	}
	ns /= n;
	out->value = ns / 1e3;
	out->unit = "us";
	out->rate = (double)(t->bytes * RV_CALLERS) / ns;
	return err;
}

int rv_put(const struct rv_task *t, struct rv_result *out)
{
	unsigned int n = t->hosts * RV_CALLERS;
	struct rv_host hosts[RV_HOSTS_MAX];
	struct caller *c = calloc(n, sizeof(*c));
	pthread_barrier_t start;
	int err = c == NULL ? -1 : hosts_open(hosts, t->hosts);

	pthread_barrier_init(&start, NULL, n);
	for (unsigned int i = 0; i < t->hosts && err == 0; i++)
		err = rv_host_move(&hosts[i], nap_of(t, 64));
	for (unsigned int i = 0; i < n && err == 0; i++) {
		c[i].task = t;
		c[i].hosts = hosts;
		c[i].source = i / RV_CALLERS;
		c[i].number = i % RV_CALLERS;
		c[i].start = &start;
	}
	if (err == 0)
		err = callers_run(c, t, out);
	for (unsigned int i = 0; c != NULL && i < n; i++) {
		for (unsigned int k = 0; k < t->hosts; k++) {
			if (c[i].path[k].from != NULL)
				rv_path_close(&c[i].path[k]);
		}
	}
	hosts_close(hosts, t->hosts);
	pthread_barrier_destroy(&start);
	free(c);
	return err;
}

/* ---- one at a time ---- */

static int await_message(struct rv_path *w, bool back, long nap)
{
	int64_t deadline = rv_now() + PATIENCE_NS;
	int rc;

	while ((rc = rv_receive_done(w, back)) == 0) {
		if (rv_now() > deadline) {
			ring_print_error("a message did not arrive within a minute");
			return -1;
		}
		rv_nap(nap);
	}
	return rc < 0 ? -1 : 0;
}

/* One message and its answer; the receives of both are posted. */
static int round_trip(struct rv_path *w, long nap)
{
	int err = rv_send(w, false);

	if (err == 0)
		err = await_message(w, true, nap);
	if (err == 0)
		err = rv_receive_post(w, true);
	if (err == 0)
		err = rv_send(w, true);
	if (err == 0)
		err = await_message(w, false, nap);
	if (err == 0)
		err = rv_receive_post(w, false);
	if (err == 0)
		err = await_write(w, nap);
	return err;
}

static int64_t charge_of(const struct rv_task *t)
{
	return (int64_t)t->post_ns * t->dilation;
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The median: the time of a trip whose threads did not wait for a processor. */
static int hop_run(const struct rv_task *t, struct rv_path *w, struct rv_result *out)
{
	int64_t *trips = calloc(t->count, sizeof(*trips));
	int64_t began, owed = 0;
	int err = trips == NULL ? -1 : rv_receive_post(w, true) | rv_receive_post(w, false);

	for (uint64_t n = 0; n < t->count && err == 0; n++) {
		began = rv_now();
		err = round_trip(w, NAP_MIN_NS);
		rv_charge(&owed, 2 * charge_of(t));
		trips[n] = rv_now() - began;
	}
	if (err == 0) {
		qsort(trips, t->count, sizeof(*trips), by_length);
		out->value = (double)trips[t->count / 2] / t->dilation / 2e3;
		out->unit = "us";
	}
	free(trips);
	return err;
}

int rv_hop(const struct rv_task *t, struct rv_result *out)
{
	struct rv_host hosts[RV_HOSTS_MAX];
	struct rv_path w = { 0 };
	int err = hosts_open(hosts, t->hops + 1);

	if (err == 0)
		err = rv_path_open(&w, &hosts[0], &hosts[t->hops], 1, 64, 1,
				   VIP_SERVICE_RELIABLE_DELIVERY);
	if (err == 0)
		err = hop_run(t, &w, out);
	if (w.from != NULL)
		rv_path_close(&w);
	hosts_close(hosts, t->hops + 1);
	return err;
}

#define COST_BATCH 1000u

static int cost_run(struct rv_path *w, struct rv_result *out)
{
	double best = 0;
	int err = warm(w, NAP_MIN_NS);

	for (unsigned int batch = 0; batch < 20 && err == 0; batch++) {
		int64_t began = rv_now();

		for (unsigned int n = 0; n < COST_BATCH && err == 0; n++) {
			err = rv_write_post(w, n);
			while (err == 0 && rv_write_done(w) == 0)
				;
		}
		if (batch == 0 || (double)(rv_now() - began) < best)
			best = (double)(rv_now() - began);
	}
	out->value = best / COST_BATCH;
	out->unit = "ns";
	return err;
}

int rv_cost(const struct rv_task *t, struct rv_result *out)
{
	struct rv_host hosts[2];
	struct rv_path w = { 0 };
	int err = hosts_open(hosts, 2);

	if (err == 0)
		err = rv_path_open(&w, &hosts[0], &hosts[1], 1, 64, 1,
				   VIP_SERVICE_RELIABLE_DELIVERY);
	if (err == 0)
		err = rv_host_move(&hosts[1], NAP_MIN_NS);
	if (err == 0)
		err = cost_run(&w, out);
	if (w.from != NULL)
		rv_path_close(&w);
	hosts_close(hosts, 2);
	return err;
}
