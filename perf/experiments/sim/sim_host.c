/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts, fragment by fragment, as docs/protocol.md describes them.  A host has application
 * threads, each with a sending and a receiving half, and transfer threads that
 * relay.  A flow belongs to one application thread at each end and hashes to one
 * transfer thread at each relay, so it stays in order.  Every flow has a buffer of
 * its own at each relay, as large as the one at its end, so a relay has room for
 * all that end-to-end credit allows.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim.h"
#include "sim_core.h"
#include "sim_wire.h"
#include "w_slot.h"

struct world;

/* A thread that takes fragments as they arrive: it relays them, or is their receiver. */
struct taker {
	struct world *world;
	struct sim_queue queue;
	bool running;
};

/* The sending half of an application thread: serves its flows that may send, in turn. */
struct sender {
	struct world *world;
	struct sim_flow *head, **tail;
	sg_sem_t work;
	bool running;
};

struct world {
	const struct sim_options *o;
	const struct sim_profile *p;
	const struct sim_net *net;
	struct sim_result *result;
	struct sim_wire *wires;
	bool *wired;
	struct taker *relays;	 /* hosts * threads */
	struct taker *receivers; /* hosts * apps */
	struct sender *senders;	 /* hosts * apps */
	struct sim_cores cores;
	sg_sem_t ended; /* flows that are complete */
	bool in_turn;
	int err;
};

static struct sender *sender_of(struct world *w, const struct sim_flow *flow)
{
	return &w->senders[flow->from * w->o->apps + flow->from_app];
}

static struct taker *receiver_of(struct world *w, const struct sim_flow *flow)
{
	return &w->receivers[flow->to * w->o->apps + flow->to_app];
}

static struct taker *relay_of(struct world *w, const struct sim_flow *flow, unsigned int host)
{
	return &w->relays[host * w->o->threads + flow->hash % w->o->threads];
}

/* The direction that a fragment takes after `hops` hops. */
static unsigned int dir_after(const struct world *w, const struct sim_frag *frag, unsigned int hops)
{
	const struct sim_flow *flow = frag->flow;

	if (!frag->is_credit)
		return flow->path[hops];
	return w->net->dirs[flow->path[flow->hops - 1 - hops]].back;
}

static void fragment_out(struct world *w, struct sim_frag *frag)
{
	struct sim_wire *wire = &w->wires[dir_after(w, frag, frag->hops)];

	if (w->p->dma)
		sim_wire_post(wire, frag);
	else
		sim_wire_store(wire, frag);
}

/* ---- sending ---- */

static uint32_t payload_of(const struct world *w, const struct sim_flow *flow)
{
	return w_payload_of_path(w->o->payload_bytes, flow->hops);
}

static bool has_credit(const struct world *w, const struct sim_flow *flow, uint32_t payload)
{
	uint32_t bytes = payload > W_INLINE_MAX ? sim_wire_bytes(payload) - W_PAYLOAD_ALIGN : 0;

	return flow->slots_out < w->o->slots && bytes <= payload_of(w, flow) - flow->bytes_out;
}

static uint32_t next_payload(const struct world *w, const struct sim_flow *flow)
{
	return sim_fragment_bytes(payload_of(w, flow), w->o->bytes, flow->message_left,
				  flow->slots_out);
}

static bool may_send(const struct world *w, const struct sim_flow *flow)
{
	return flow->messages_left > 0 && has_credit(w, flow, next_payload(w, flow));
}

static void flow_ready(struct world *w, struct sim_flow *flow)
{
	struct sender *s = sender_of(w, flow);

	if (flow->ready || !may_send(w, flow))
		return;
	flow->ready = true;
	flow->next = NULL;
	*s->tail = flow;
	s->tail = &flow->next;
	sg_sem_release(s->work);
}

static struct sim_flow *flow_take(struct sender *s)
{
	struct sim_flow *flow;

	sg_sem_acquire(s->work);
	flow = s->head;
	s->head = flow->next;
	if (s->head == NULL)
		s->tail = &s->head;
	flow->ready = false;
	return flow;
}

static struct sim_frag *fragment_make(struct world *w, struct sim_flow *flow)
{
	struct sim_frag *frag = calloc(1, sizeof(*frag));

	if (frag == NULL)
		return NULL;
	frag->flow = flow;
	frag->payload = next_payload(w, flow);
	flow->slots_out++;
	if (frag->payload > W_INLINE_MAX)
		flow->bytes_out += sim_wire_bytes(frag->payload) - W_PAYLOAD_ALIGN;
	flow->message_left -= frag->payload;
	if (flow->message_left == 0) {
		frag->asks = w->o->bytes > W_INLINE_MAX;
		flow->messages_left--;
		flow->message_left = w->o->bytes;
	}
	return frag;
}

/* Without memory the simulation cannot continue: the driver is woken and ends it. */
static void give_up(struct world *w)
{
	w->err = -ENOMEM;
	sg_sem_release(w->ended);
}

static void send_loop(void *arg)
{
	struct sender *s = arg;
	struct world *w = s->world;

	for (;;) {
		struct sim_flow *flow = flow_take(s);
		struct sim_frag *frag = fragment_make(w, flow);
		struct sim_core *core;

		if (frag == NULL) {
			give_up(w);
			return;
		}
		core = sim_core_take(&w->cores, s);
		sim_engine_sleep(sim_cost_of(w->p, frag->payload).send);
		fragment_out(w, frag);
		sim_core_give(&w->cores, core);
		flow_ready(w, flow);
	}
}

/* ---- relaying and receiving ---- */

/* The next fragment; a thread that slept for it is woken by a doorbell. */
static struct sim_frag *take_next(struct taker *t)
{
	const struct world *w = t->world;
	bool slept;
	struct sim_frag *frag = sim_queue_get(&t->queue, &slept);

	if (slept && w->o->interrupts)
		sim_engine_sleep(w->p->register_write + w->p->interrupt);
	return frag;
}

static void relay_loop(void *arg)
{
	struct taker *t = arg;
	struct world *w = t->world;

	for (;;) {
		struct sim_frag *frag = take_next(t);
		struct sim_core *core = sim_core_take(&w->cores, t);

		sim_engine_sleep(sim_cost_of(w->p, frag->payload).relay);
		fragment_out(w, frag);
		sim_core_give(&w->cores, core);
	}
}

static void credit_send(struct world *w, struct sim_flow *flow)
{
	struct sim_frag *credit = calloc(1, sizeof(*credit));

	if (credit == NULL) {
		give_up(w);
		return;
	}
	credit->flow = flow;
	credit->is_credit = true;
	credit->slots = flow->slots_owed;
	credit->bytes = flow->bytes_owed;
	flow->slots_owed = flow->bytes_owed = 0;
	fragment_out(w, credit);
}

/* At once when it is asked for, otherwise after a quarter of the slots or of the payload buffer. */
static void credit_due(struct world *w, struct sim_flow *flow, bool asked)
{
	if (asked || flow->slots_owed >= w->o->slots / 4 ||
	    flow->bytes_owed >= payload_of(w, flow) / 4)
		credit_send(w, flow);
}

static void receive(struct world *w, struct sim_frag *frag)
{
	struct sim_flow *flow = frag->flow;

	flow->received += frag->payload;
	flow->slots_owed++;
	if (frag->payload > W_INLINE_MAX)
		flow->bytes_owed += sim_wire_bytes(frag->payload) - W_PAYLOAD_ALIGN;
	if (flow->received == flow->total) {
		flow->end = sim_engine_now();
		sg_sem_release(w->ended);
	}
	credit_due(w, flow, frag->asks);
	free(frag);
}

static void receive_loop(void *arg)
{
	struct taker *t = arg;
	struct world *w = t->world;

	for (;;) {
		struct sim_frag *frag = take_next(t);
		struct sim_core *core = sim_core_take(&w->cores, t);

		sim_engine_sleep(sim_cost_of(w->p, frag->payload).receive);
		receive(w, frag);
		sim_core_give(&w->cores, core);
	}
}

/* The sender finds credit in its own memory, which it loads before each fragment. */
static void credit_take(struct world *w, struct sim_frag *credit)
{
	struct sim_flow *flow = credit->flow;

	flow->slots_out -= credit->slots;
	flow->bytes_out -= credit->bytes;
	free(credit);
	flow_ready(w, flow);
}

/* A fragment has crossed a link. */
static void arrive(void *arg, struct sim_frag *frag)
{
	struct world *w = arg;
	const struct sim_flow *flow = frag->flow;
	unsigned int host = w->net->dirs[dir_after(w, frag, frag->hops)].to;

	frag->hops++;
	if (frag->hops < flow->hops)
		sim_queue_put(&relay_of(w, flow, host)->queue, frag);
	else if (frag->is_credit)
		credit_take(w, frag);
	else
		sim_queue_put(&receiver_of(w, flow)->queue, frag);
}

/* ---- the simulation ---- */

static void drive(void *arg)
{
	struct world *w = arg;
	struct sim_result *r = w->result;

	for (unsigned int i = 0; i < r->count && w->err == 0; i++) {
		if (w->in_turn) /* each flow finds the cores idle and without a thread */
			sim_cores_forget(&w->cores);
		r->flows[i].start = sim_engine_now();
		flow_ready(w, &r->flows[i]);
		if (w->in_turn)
			sg_sem_acquire(w->ended);
	}
	for (unsigned int i = 0; i < r->count && !w->in_turn && w->err == 0; i++)
		sg_sem_acquire(w->ended);
}

static int taker_start(struct world *w, struct taker *t, sim_actor_fn *loop)
{
	if (t->running)
		return 0;
	t->world = w;
	t->running = true;
	sim_queue_init(&t->queue);
	return sim_engine_spawn(loop, t, true);
}

static int sender_start(struct world *w, struct sender *s)
{
	if (s->running)
		return 0;
	s->world = w;
	s->running = true;
	s->tail = &s->head;
	s->work = sg_sem_init(0);
	return sim_engine_spawn(send_loop, s, true);
}

static int wire_start(struct world *w, unsigned int dir)
{
	if (w->wired[dir])
		return 0;
	w->wired[dir] = true;
	return sim_wire_open(&w->wires[dir], dir, w->p->link_latency, w->p->dma, arrive, w);
}

/* Starts the threads and links that the flow needs, there and back. */
static int flow_prepare(struct world *w, const struct sim_flow *flow)
{
	int err = sender_start(w, sender_of(w, flow));

	if (err == 0)
		err = taker_start(w, receiver_of(w, flow), receive_loop);
	for (unsigned int i = 0; i < flow->hops && err == 0; i++) {
		const struct sim_dir *dir = &w->net->dirs[flow->path[i]];

		err = wire_start(w, flow->path[i]);
		if (err == 0)
			err = wire_start(w, dir->back);
		if (err == 0 && i > 0)
			err = taker_start(w, relay_of(w, flow, dir->from), relay_loop);
	}
	return err;
}

static int links_open(const struct world *w)
{
	unsigned int count = w->net->dir_count;
	struct sim_link *links = calloc(count + 1, sizeof(*links));
	struct sim_route *routes = calloc(count + 1, sizeof(*routes));
	uint32_t *ids = calloc(count + 1, sizeof(*ids));
	int err = links == NULL || routes == NULL || ids == NULL ? -ENOMEM : 0;

	for (unsigned int i = 0; i < count && err == 0; i++) {
		links[i].rate = sim_link_rate(w->p);
		ids[i] = i;
		routes[i].links = &ids[i];
		routes[i].count = 1;
	}
	if (err == 0)
		err = sim_engine_open(links, count, routes, count);
	free(links);
	free(routes);
	free(ids);
	return err;
}

static int world_make(struct world *w)
{
	unsigned int hosts = w->net->hosts;

	w->wires = calloc(w->net->dir_count, sizeof(*w->wires));
	w->wired = calloc(w->net->dir_count, sizeof(*w->wired));
	w->relays = calloc((size_t)hosts * w->o->threads, sizeof(*w->relays));
	w->receivers = calloc((size_t)hosts * w->o->apps, sizeof(*w->receivers));
	w->senders = calloc((size_t)hosts * w->o->apps, sizeof(*w->senders));
	if (w->wires == NULL || w->wired == NULL || w->relays == NULL || w->receivers == NULL ||
	    w->senders == NULL)
		return -ENOMEM;
	return links_open(w);
}

/*
 * Actors that never end may still refer to the arrays, which therefore live until the process ends.
 */
int sim_fragments_run(const struct sim_options *o, const struct sim_profile *p,
		      const struct sim_net *net, struct sim_result *r, bool in_turn)
{
	static struct world w;
	int err;

	w = (struct world){ .o = o, .p = p, .net = net, .result = r, .in_turn = in_turn };
	err = world_make(&w);
	if (err != 0)
		return err;
	w.ended = sg_sem_init(0);
	err = sim_cores_open(&w.cores, (unsigned int)p->cores, p->core_switch);
	for (unsigned int i = 0; i < r->count && err == 0; i++)
		err = flow_prepare(&w, &r->flows[i]);
	if (err == 0)
		err = sim_engine_spawn(drive, &w, false);
	if (err == 0)
		sim_engine_run();
	return err != 0 ? err : w.err;
}
