/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <float.h>

#include <json-c/json.h>

#include "sim.h"

static void add_number(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, json_object_new_double(value));
}

static void add_count(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static double mean_hops(const struct sim_net *net)
{
	double hops = 0, pairs = 0;

	for (unsigned int h = 1; h <= net->diameter; h++) {
		hops += (double)h * (double)net->pairs_at[h];
		pairs += (double)net->pairs_at[h];
	}
	return pairs > 0 ? hops / pairs : 0;
}

static struct json_object *net_report(const struct sim_net *net, const struct sim_profile *p)
{
	struct json_object *o = json_object_new_object(), *at = json_object_new_array();

	for (unsigned int h = 1; h <= net->diameter; h++)
		json_object_array_add(at, json_object_new_int64((int64_t)net->pairs_at[h]));
	add_text(o, "topology", rt_topo_spec(net->topo));
	add_count(o, "hosts", net->hosts);
	add_count(o, "links", net->dir_count / 2);
	add_count(o, "diameter_hops", net->diameter);
	add_number(o, "mean_hops", mean_hops(net));
	json_object_object_add(o, "pairs_by_hops", at);
	add_count(o, "longest_way_hops", RT_PATH_MAX);
	add_count(o, "pairs_beyond_longest_way", net->beyond);
	add_count(o, "bisection_links", net->cut_links);
	add_number(o, "bisection_bytes_per_second", net->cut_links * 2 * sim_link_rate(p) * 1e6);
	return o;
}

static double rate_of(const struct sim_flow *flow)
{
	return (double)flow->total / (flow->end - flow->start) * 1e6;
}

static struct json_object *flow_report(const struct sim_flow *flow)
{
	struct json_object *o = json_object_new_object();

	add_count(o, "from", flow->from);
	add_count(o, "to", flow->to);
	add_count(o, "hops", flow->hops);
	add_number(o, "time_us", flow->end - flow->start);
	add_number(o, "bytes_per_second", rate_of(flow));
	return o;
}

/* Each flow by itself where there is one for each number of hops. */
static struct json_object *flows_report(const struct sim_result *r)
{
	struct json_object *a = json_object_new_array();

	for (unsigned int i = 0; i < r->count; i++)
		json_object_array_add(a, flow_report(&r->flows[i]));
	return a;
}

static void together_report(struct json_object *o, const struct sim_result *r)
{
	double least = DBL_MAX, most = 0, sum = 0, last = 0, bytes = 0;

	for (unsigned int i = 0; i < r->count; i++) {
		double rate = rate_of(&r->flows[i]);

		least = rate < least ? rate : least;
		most = rate > most ? rate : most;
		last = r->flows[i].end > last ? r->flows[i].end : last;
		sum += rate;
		bytes += (double)r->flows[i].total * r->flows[i].weight;
	}
	add_number(o, "finish_us", last);
	add_number(o, "aggregate_bytes_per_second", bytes / last * 1e6);
	add_number(o, "slowest_flow_bytes_per_second", least);
	add_number(o, "mean_flow_bytes_per_second", sum / r->count);
	add_number(o, "fastest_flow_bytes_per_second", most);
}

/* The loads of the directions, and the least time that the busiest needs. */
static struct json_object *loads_report(const struct sim_net *net, const struct sim_profile *p,
					const struct sim_result *r)
{
	struct json_object *o = json_object_new_object();
	double least = DBL_MAX, most = 0, sum = 0;

	for (unsigned int d = 0; d < net->dir_count; d++) {
		double bytes = net->dirs[d].bytes;

		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
		sum += bytes;
	}
	add_count(o, "directions", net->dir_count);
	add_count(o, "flows_followed", r->followed);
	add_number(o, "least_bytes", least);
	add_number(o, "mean_bytes", sum / net->dir_count);
	add_number(o, "most_bytes", most);
	add_number(o, "most_over_mean", sum > 0 ? most * net->dir_count / sum : 0);
	add_number(o, "busiest_needs_us", most / sim_link_rate(p));
	return o;
}

struct json_object *sim_report(const struct sim_options *o, const struct sim_profile *p,
			       const struct sim_net *net, const struct sim_result *r)
{
	struct json_object *root = json_object_new_object();
	bool in_turn = o->pattern == SIM_LATENCY || o->pattern == SIM_STREAM;

	json_object_object_add(root, "net", net_report(net, p));
	if (o->pattern == SIM_ROUTES || r->count == 0)
		return root;
	add_text(root, "model", r->model == SIM_FLUID ? "fluid" : "fragments");
	add_count(root, "bytes", o->bytes);
	add_count(root, "messages", o->messages);
	add_count(root, "flows", r->stand_for);
	add_count(root, "simulated_flows", r->count);
	add_number(root, "mean_flow_hops", (double)r->hops / (double)r->stand_for);
	if (in_turn) {
		json_object_object_add(root, "by_hops", flows_report(r));
		return root;
	}
	together_report(root, r);
	json_object_object_add(root, "loads", loads_report(net, p, r));
	return root;
}
