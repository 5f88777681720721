/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams over some lanes at once: the raw link, and the published protocol to a neighbour. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port_model.h"
#include "rg.h"

struct stream {
	const struct rg_task *task;
	struct rg_lane lane;
	pthread_barrier_t *start;
	uint8_t *data;
	pthread_t sender;
	pthread_t receiver;
	atomic_bool stop;
	struct rg_split split;
	int64_t began;
	int64_t ended;
	bool wrong; /* the data that arrived is wrong */
};

/* The last 8 bytes of each message are its number. */
static void number(struct stream *s, uint64_t n)
{
	memcpy(s->data + s->task->bytes - sizeof(n), &n, sizeof(n));
}

static _Atomic uint64_t *last_word(struct stream *s)
{
	return (_Atomic uint64_t *)(rg_slot_in(&s->lane, 0) + s->task->bytes - sizeof(uint64_t));
}

static void send_raw(struct stream *s)
{
	struct u_out *out = &s->lane.window.out.out;
	size_t body = s->task->bytes - sizeof(uint64_t);
	uint8_t *to = rg_slot_out(&s->lane, 0);

	for (uint64_t n = 1; n <= s->task->count; n++) {
		u_out_copy(out, to, s->data, body);
		u_out_store64(out, (_Atomic uint64_t *)(to + body), n);
		u_out_fence(out);
	}
	rg_word_wait(s->lane.to, last_word(s), s->task->count);
}

static void send_baseline(struct stream *s)
{
	struct rg_meta meta = { .kind = RG_DATA, .bytes = (uint32_t)s->task->bytes };

	for (uint64_t n = 1; n <= s->task->count; n++) {
		number(s, n);
		meta.seq = (uint32_t)n;
		rg_transfer(&s->lane, &meta, s->data, &s->split);
	}
	rg_word_wait(s->lane.from, &rg_words(&s->lane)->released[0], s->task->count);
}

static void *sender(void *arg)
{
	struct stream *s = arg;

	pthread_barrier_wait(s->start);
	s->began = port_model_now_ns(s->lane.from);
	if (s->task->baseline)
		send_baseline(s);
	else
		send_raw(s);
	s->ended = port_model_now_ns(s->lane.from);
	return NULL;
}

/* A neighbour's window is its heap: data arrives in its place and is only announced. */
static void *receiver(void *arg)
{
	struct stream *s = arg;
	struct rg_meta meta;

	while (rg_take(&s->lane, &meta, &s->stop)) {
		if (atomic_load_explicit(last_word(s), memory_order_acquire) != meta.seq)
			s->wrong = true;
		rg_release(&s->lane, meta.thread);
	}
	return NULL;
}

/* The lanes in the order in which more links are used: one, both of host 0, all. */
static int lane_ports(struct rg_fabric *f, unsigned int i, struct port **from, struct port **to)
{
	unsigned int host = i / 2;
	unsigned int peer = i % 2 == 0 ? (host + 1) % f->hosts : (host + f->hosts - 1) % f->hosts;

	if (host >= f->hosts)
		return -EINVAL;
	*from = i % 2 == 0 ? f->host[host].right : f->host[host].left;
	*to = i % 2 == 0 ? f->host[peer].left : f->host[peer].right;
	return 0;
}

static int stream_open(struct stream *s, const struct rg_task *t, struct port *from,
		       struct port *to, pthread_barrier_t *start)
{
	s->task = t;
	s->start = start;
	s->data = calloc(1, t->bytes);
	if (s->data == NULL)
		return -ENOMEM;
	return rg_lane_open(&s->lane, from, to, 1, t->bytes);
}

static int streams_run(struct stream *s, unsigned int n, pthread_barrier_t *start, bool baseline)
{
	unsigned int started = 0;
	int err = 0;

	for (; started < n && err == 0; started++) {
		if (baseline)
			err = -pthread_create(&s[started].receiver, NULL, receiver, &s[started]);
		if (err == 0)
			err = -pthread_create(&s[started].sender, NULL, sender, &s[started]);
	}
	if (err != 0) {
		ring_print_error("a thread was sought and there is none: %s", strerror(-err));
		exit(1);
	}
	pthread_barrier_wait(start);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(s[i].sender, NULL);
	for (unsigned int i = 0; i < n && baseline; i++) {
		atomic_store(&s[i].stop, true);
		pthread_join(s[i].receiver, NULL);
	}
	return 0;
}

static void split_mean(struct rg_split *split, const struct stream *s, uint64_t count)
{
	int64_t n = (int64_t)count;

	split->setup = s->split.setup / n;
	split->wait = s->split.wait / n;
	split->data = s->split.data / n;
	split->meta = s->split.meta / n;
	split->interrupt = s->lane.interrupts_ns / n;
}

static int conclude(const struct rg_task *t, const struct stream *s, unsigned int n,
		    struct rg_result *out)
{
	double sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (s[i].wrong) {
			ring_print_error("a message was announced before it was there");
			return -EIO;
		}
		sum += (double)(t->bytes * t->count) / (double)(s[i].ended - s[i].began);
	}
	out->value = sum / n;
	out->unit = "GB/s";
	if (t->baseline)
		split_mean(&out->split, &s[0], t->count);
	return 0;
}

int rg_rate(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out)
{
	struct stream *s = calloc(t->links, sizeof(*s));
	pthread_barrier_t start;
	struct port *from, *to;
	unsigned int open = 0;
	int err = s == NULL ? -ENOMEM : 0;

	pthread_barrier_init(&start, NULL, t->links + 1);
	for (; err == 0 && open < t->links; open++) {
		err = lane_ports(f,
				 t->links == f->hosts && t->first == 0 ? 2 * open : t->first + open,
				 &from, &to);
		if (err == 0)
			err = stream_open(&s[open], t, from, to, &start);
		if (err != 0)
			break;
	}
	if (err == 0)
		err = streams_run(s, t->links, &start, t->baseline);
	if (err == 0)
		err = conclude(t, s, t->links, out);
	for (unsigned int i = 0; i < open; i++)
		rg_lane_close(&s[i].lane);
	for (unsigned int i = 0; s != NULL && i < t->links; i++)
		free(s[i].data);
	free(s);
	pthread_barrier_destroy(&start);
	return err;
}
