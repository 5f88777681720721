/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "w_slot.h"

#define FRAG_LEAST 4096u /* of a message alone */
#define EACH_HOPS 16u
#define STREAM_SLOTS 6u /* slots in flight that make it a stream */

/* Takes each pair of a pattern in turn; a value other than 0 ends it. */
typedef int pair_fn(void *arg, unsigned int from, unsigned int to);

/* Totals of a pattern, before its flows are made. */
struct survey {
	const struct sim_net *net;
	uint64_t pairs;
	uint64_t hops;
};

/* Draws `take` of the next `left`, each with equal probability. */
struct sample {
	uint64_t left, take;
	double weight; /* how many one of them stands for */
};

/* Some flows are followed along their paths, and some of these are simulated. */
struct maker {
	const struct sim_options *o;
	struct sim_net *net;
	struct sim_result *result;
	uint64_t state;
	struct sample follow, keep;
	unsigned int *sending, *receiving; /* of a host: its flows so far */
};

uint32_t sim_fragment_bytes(uint32_t payload_bytes, uint64_t total, uint64_t left,
			    uint32_t slots_out)
{
	uint64_t most = total / 4 < FRAG_LEAST ? FRAG_LEAST : total / 4;

	if (left <= W_INLINE_MAX)
		return (uint32_t)left;
	if (most > w_frag_max(payload_bytes) || slots_out >= STREAM_SLOTS)
		most = w_frag_max(payload_bytes);
	most &= ~(uint64_t)(W_PAYLOAD_ALIGN - 1);
	return (uint32_t)(left < most ? left : most);
}

static int pairs_alltoall(const struct sim_net *net, pair_fn *fn, void *arg)
{
	for (unsigned int step = 1; step < net->hosts; step++) {
		for (unsigned int from = 0; from < net->hosts; from++) {
			int err = fn(arg, from, (from + step) % net->hosts);

			if (err != 0)
				return err;
		}
	}
	return 0;
}

/* Each host sends to one other, each receives from one: a cycle through all, drawn at random. */
static int pairs_permuted(const struct sim_net *net, uint64_t *state, unsigned int *order,
			  pair_fn *fn, void *arg)
{
	int err = 0;

	for (unsigned int h = 0; h < net->hosts; h++)
		order[h] = h;
	for (unsigned int h = net->hosts - 1; h > 0; h--) {
		unsigned int other = (unsigned int)(sim_random(state) % h), mine = order[h];

		order[h] = order[other];
		order[other] = mine;
	}
	for (unsigned int h = 0; h < net->hosts && err == 0; h++)
		err = fn(arg, h, order[h]);
	return err;
}

static int pairs_random(const struct sim_options *o, const struct sim_net *net, pair_fn *fn,
			void *arg)
{
	unsigned int *order = calloc(net->hosts, sizeof(*order));
	uint64_t state = o->seed;
	int err = 0;

	if (order == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < o->per_pair && err == 0; i++)
		err = pairs_permuted(net, &state, order, fn, arg);
	free(order);
	return err;
}

static int pairs_neighbour(const struct sim_net *net, pair_fn *fn, void *arg)
{
	int err = 0;

	for (unsigned int d = 0; d < net->dir_count && err == 0; d++)
		err = fn(arg, net->dirs[d].from, net->dirs[d].to);
	return err;
}

static int both_ways(const struct sim_options *o, unsigned int a, unsigned int b, pair_fn *fn,
		     void *arg)
{
	int err = 0;

	for (unsigned int i = 0; i < o->per_pair && err == 0; i++) {
		err = fn(arg, a, b);
		if (err == 0)
			err = fn(arg, b, a);
	}
	return err;
}

/* The i-th host of one half with the i-th of the other. */
static int pairs_bisection(const struct sim_options *o, const struct sim_net *net, pair_fn *fn,
			   void *arg)
{
	unsigned int a = 0, b = 0;
	int err = 0;

	while (err == 0) {
		while (a < net->hosts && net->half[a])
			a++;
		while (b < net->hosts && !net->half[b])
			b++;
		if (a == net->hosts || b == net->hosts)
			break;
		err = both_ways(o, a++, b++, fn, arg);
	}
	return err;
}

/*
 * One pair for a number of hops: each up to EACH_HOPS and then an eighth more, or
 * those that double; and the most.
 */
static int pairs_by_hops(const struct sim_net *net, bool doubling, pair_fn *fn, void *arg)
{
	unsigned int from = net->centre_from, hops = 1;

	while (hops <= net->diameter) {
		unsigned int step = hops < EACH_HOPS ? 1 : hops / 8;
		unsigned int to = 0, next = hops + (doubling ? hops : step);
		int err;

		while (sim_net_distance(net, from, to) != hops)
			to++;
		err = fn(arg, from, to);
		if (err != 0)
			return err;
		hops = hops < net->diameter && next > net->diameter ? net->diameter : next;
	}
	return 0;
}

static int each_pair(const struct sim_options *o, const struct sim_net *net, pair_fn *fn, void *arg)
{
	switch (o->pattern) {
	case SIM_LATENCY:
		return pairs_by_hops(net, false, fn, arg);
	case SIM_STREAM:
		return pairs_by_hops(net, true, fn, arg);
	case SIM_ALLTOALL:
		return pairs_alltoall(net, fn, arg);
	case SIM_RANDOM:
		return pairs_random(o, net, fn, arg);
	case SIM_NEIGHBOUR:
		return pairs_neighbour(net, fn, arg);
	case SIM_BISECTION:
		return pairs_bisection(o, net, fn, arg);
	default:
		return 0;
	}
}

static int survey_pair(void *arg, unsigned int from, unsigned int to)
{
	struct survey *s = arg;

	s->pairs++;
	s->hops += sim_net_distance(s->net, from, to);
	return 0;
}

static uint64_t fragments_of(const struct sim_options *o)
{
	uint64_t most = w_frag_max(o->payload_bytes);

	return ((o->bytes + most - 1) / most) * o->messages;
}

static enum sim_model choose_model(const struct sim_options *o, uint64_t hops)
{
	if (o->model != SIM_AUTO)
		return o->model;
	if (o->pattern == SIM_LATENCY || o->pattern == SIM_STREAM)
		return SIM_FRAGMENTS;
	return hops * fragments_of(o) <= o->budget ? SIM_FRAGMENTS : SIM_FLUID;
}

static uint64_t choose_count(const struct sim_options *o, const struct survey *s,
			     enum sim_model model)
{
	double hops = (double)s->hops / (double)s->pairs;
	double most = sqrt((double)o->fluid / hops);

	if (model == SIM_FRAGMENTS || (double)s->pairs <= most)
		return s->pairs;
	return most < 1 ? 1 : (uint64_t)most;
}

static void sample_start(struct sample *s, uint64_t take, uint64_t of)
{
	s->left = of;
	s->take = take;
	s->weight = take > 0 ? (double)of / (double)take : 0;
}

static bool sample_takes(struct sample *s, uint64_t *state)
{
	bool taken = sim_random(state) % s->left-- < s->take;

	s->take -= taken;
	return taken;
}

static void load_add(struct sim_net *net, const struct sim_flow *flow, double bytes)
{
	net->duties[flow->from * SIM_DUTIES + SIM_SEND] += bytes;
	net->duties[flow->to * SIM_DUTIES + SIM_RECEIVE] += bytes;
	for (unsigned int i = 0; i < flow->hops; i++) {
		struct sim_dir *dir = &net->dirs[flow->path[i]];

		dir->bytes += bytes;
		if (i > 0)
			net->duties[dir->from * SIM_DUTIES + SIM_RELAY] += bytes;
	}
}

static void flow_keep(struct maker *m, struct sim_flow *flow)
{
	flow->weight = m->keep.weight * m->follow.weight;
	flow->messages_left = m->o->messages;
	flow->message_left = m->o->bytes;
	flow->from_app = m->sending[flow->from]++ % m->o->apps;
	flow->to_app = m->receiving[flow->to]++ % m->o->apps;
	m->result->flows[m->result->count++] = *flow;
}

static int make_pair(void *arg, unsigned int from, unsigned int to)
{
	struct maker *m = arg;
	struct sim_flow flow = { .from = from, .to = to };
	int err;

	flow.total = m->o->bytes * m->o->messages;
	flow.hash = (uint32_t)(sim_random(&m->state) >> 32);
	if (!sample_takes(&m->follow, &m->state))
		return 0;
	err = sim_net_path(m->net, &flow);
	if (err == 0) {
		load_add(m->net, &flow, m->follow.weight * (double)flow.total);
		if (sample_takes(&m->keep, &m->state)) {
			flow_keep(m, &flow);
			return 0;
		}
	}
	free(flow.path);
	return err;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int flows_make(struct maker *m, uint64_t kept)
{
	int err = -ENOMEM;

	m->result->flows = calloc(kept, sizeof(*m->result->flows));
	m->sending = calloc(m->net->hosts, sizeof(*m->sending));
	m->receiving = calloc(m->net->hosts, sizeof(*m->receiving));
	if (m->result->flows != NULL && m->sending != NULL && m->receiving != NULL)
		err = each_pair(m->o, m->net, make_pair, m);
	free(m->sending);
	free(m->receiving);
	return err;
}

int sim_traffic(const struct sim_options *o, struct sim_net *net, struct sim_result *out)
{
	struct survey s = { .net = net };
	struct maker m = { .o = o, .net = net, .result = out, .state = ~o->seed };
	int err = each_pair(o, net, survey_pair, &s);
	uint64_t kept;

	if (err != 0)
		return err;
	memset(out, 0, sizeof(*out));
	out->model = choose_model(o, s.hops);
	out->stand_for = s.pairs;
	out->hops = s.hops;
	if (s.pairs == 0)
		return 0;
	out->followed = out->model == SIM_FRAGMENTS ? s.pairs : smaller(s.pairs, o->ways);
	kept = smaller(choose_count(o, &s, out->model), out->followed);
	sample_start(&m.follow, out->followed, s.pairs);
	sample_start(&m.keep, kept, out->followed);
	return flows_make(&m, kept);
}

void sim_traffic_free(struct sim_result *r)
{
	for (unsigned int i = 0; i < r->count; i++)
		free(r->flows[i].path);
	free(r->flows);
	memset(r, 0, sizeof(*r));
}
