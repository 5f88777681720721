/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows as streams.  Those that meet on a link share it fairly, as SimGrid's
 * max-min model does; no stream is faster than its own connection would be alone,
 * and no host relays, sends or receives more than its threads can.  Delays of
 * fragments by each other are not modelled.
 *
 * The links of the platform are the directions, the duties of each host, then one
 * for each flow, as fast as the flow would be alone.  Where flows are a sample,
 * each stands for as many as its weight says.  By chance a link gets more or less
 * of them than its share, and its rate is corrected by that factor, so a stream's
 * share of a link is that of the flow among all flows.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim.h"
#include "sim_engine.h"
#include "w_slot.h"

struct stream {
	unsigned int route;
	struct sim_flow *flow;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The size of a message's fragments over `hops` links, in a stream. */
static uint32_t usual_payload(const struct sim_options *o, unsigned int hops)
{
	uint32_t buffer = w_payload_of_path(o->payload_bytes, hops);

	return sim_fragment_bytes(buffer, o->bytes, o->bytes, UINT32_MAX);
}

/* The time that a thread is busy: without DMA it includes storing the fragment. */
static struct sim_cost busy_of(const struct sim_profile *p, uint32_t payload)
{
	struct sim_cost c = sim_cost_of(p, payload);

	if (!p->dma) {
		c.send += c.link;
		c.relay += c.link;
		c.link = 0;
	}
	return c;
}

/* The time from the start of the first fragment until it is received. */
static double first_through(const struct sim_profile *p, unsigned int hops, uint32_t payload)
{
	struct sim_cost c = busy_of(p, payload);

	return c.send + (hops - 1) * c.relay + c.receive + hops * (c.link + p->link_latency);
}

static double credit_back(const struct sim_profile *p, unsigned int hops)
{
	struct sim_cost c = sim_cost_of(p, 0);

	return (hops - 1) * c.relay + hops * (c.link + p->link_latency);
}

/* The slowest stage of the pipeline, or the window's length over the path there and back. */
static double alone_rate(const struct sim_options *o, const struct sim_profile *p,
			 unsigned int hops)
{
	uint32_t payload = usual_payload(o, hops);
	struct sim_cost c = busy_of(p, payload);
	double stage = larger(larger(c.send, c.receive), c.link);
	double window = (double)o->slots * payload,
	       buffer = w_payload_of_path(o->payload_bytes, hops);
	double batch, turn;

	if (hops > 1)
		stage = larger(stage, c.relay);
	if (payload > W_INLINE_MAX && window > buffer)
		window = buffer;
	batch = larger(window / 4, payload);
	turn = first_through(p, hops, payload) + credit_back(p, hops);
	turn += (batch / payload - 1) * stage;
	return 1 / larger(stage / payload, turn / window);
}

static void duties_fill(const struct sim_options *o, const struct sim_profile *p,
			unsigned int hosts, struct sim_link *links)
{
	uint32_t payload = usual_payload(o, 1);
	struct sim_cost c = busy_of(p, payload);

	for (unsigned int h = 0; h < hosts; h++, links += SIM_DUTIES) {
		links[SIM_SEND].rate = o->apps * payload / larger(c.send, 1e-9);
		links[SIM_RELAY].rate = o->threads * payload / larger(c.relay, 1e-9);
		links[SIM_RECEIVE].rate = o->apps * payload / larger(c.receive, 1e-9);
	}
}

static double load_of(const struct sim_net *net, uint32_t link)
{
	return link < net->dir_count ? net->dirs[link].bytes : net->duties[link - net->dir_count];
}

/* Corrects by the share of the load that the streams have. */
static int rates_correct(const struct sim_net *net, const struct sim_result *r,
			 const struct sim_route *routes, struct sim_link *links)
{
	unsigned int shared = net->dir_count + net->hosts * SIM_DUTIES;
	double *brought = calloc(shared, sizeof(*brought));

	if (brought == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < r->count; i++) {
		for (unsigned int l = 1; l < routes[i].count; l++)
			brought[routes[i].links[l]] +=
				r->flows[i].weight * (double)r->flows[i].total;
	}
	for (unsigned int l = 0; l < shared; l++) {
		if (brought[l] > 0)
			links[l].rate *= brought[l] / load_of(net, l);
	}
	free(brought);
	return 0;
}

static void stream_link(const struct sim_options *o, const struct sim_profile *p,
			const struct sim_flow *flow, struct sim_link *link)
{
	double rate = alone_rate(o, p, flow->hops);
	uint32_t payload = usual_payload(o, flow->hops);
	double fill = first_through(p, flow->hops, payload) - payload / rate;

	link->rate = rate * flow->weight;
	link->latency = larger(fill, 0);
}

/* The links of a flow: first its own, then its ends', its directions and its relays'. */
static int stream_route(const struct sim_net *net, const struct sim_flow *flow, uint32_t own,
			struct sim_route *route)
{
	uint32_t duties = net->dir_count, n = 0;
	uint32_t *links = calloc((size_t)flow->hops * 2 + 2, sizeof(*links));

	if (links == NULL)
		return -ENOMEM;
	links[n++] = own;
	links[n++] = duties + flow->from * SIM_DUTIES + SIM_SEND;
	for (unsigned int i = 0; i < flow->hops; i++) {
		if (i > 0)
			links[n++] =
				duties + net->dirs[flow->path[i]].from * SIM_DUTIES + SIM_RELAY;
		links[n++] = flow->path[i];
	}
	links[n++] = duties + flow->to * SIM_DUTIES + SIM_RECEIVE;
	route->links = links;
	route->count = n;
	return 0;
}

static int platform_open(const struct sim_options *o, const struct sim_profile *p,
			 const struct sim_net *net, const struct sim_result *r)
{
	unsigned int shared = net->dir_count + net->hosts * SIM_DUTIES;
	struct sim_link *links = calloc((size_t)shared + r->count, sizeof(*links));
	struct sim_route *routes = calloc((size_t)r->count + 1, sizeof(*routes));
	int err = links == NULL || routes == NULL ? -ENOMEM : 0;

	for (unsigned int d = 0; d < net->dir_count && err == 0; d++)
		links[d].rate = sim_link_rate(p) * usual_payload(o, 1) /
				sim_wire_bytes(usual_payload(o, 1));
	if (err == 0)
		duties_fill(o, p, net->hosts, links + net->dir_count);
	for (unsigned int i = 0; i < r->count && err == 0; i++) {
		stream_link(o, p, &r->flows[i], &links[shared + i]);
		err = stream_route(net, &r->flows[i], shared + i, &routes[i]);
	}
	if (err == 0)
		err = rates_correct(net, r, routes, links);
	if (err == 0)
		err = sim_engine_open(links, shared + r->count, routes, r->count);
	for (unsigned int i = 0; routes != NULL && i < r->count; i++)
		free((void *)routes[i].links);
	free(routes);
	free(links);
	return err;
}

static void stream_run(void *arg)
{
	struct stream *s = arg;

	s->flow->start = sim_engine_now();
	sim_engine_transfer(s->route, s->flow->weight * (double)s->flow->total);
	s->flow->end = sim_engine_now();
}

int sim_fluid_run(const struct sim_options *o, const struct sim_profile *p,
		  const struct sim_net *net, struct sim_result *r)
{
	struct stream *streams = calloc((size_t)r->count + 1, sizeof(*streams));
	int err = streams == NULL ? -ENOMEM : platform_open(o, p, net, r);

	for (unsigned int i = 0; i < r->count && err == 0; i++) {
		streams[i] = (struct stream){ .route = i, .flow = &r->flows[i] };
		err = sim_engine_spawn(stream_run, &streams[i], false);
	}
	if (err == 0)
		sim_engine_run();
	free(streams);
	return err;
}
