/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulation of a fabric of many hosts.  One process simulates one case: a
 * topology, a profile of its links, one pattern of traffic.
 *
 *	sim_profile	the costs of a link and a host
 *	sim_net		hosts, link directions and the paths of flows over them
 *	sim_traffic	the flows of a pattern
 *	sim_engine	SimGrid: platform, actors, time
 *	sim_wire	link directions: one fragment after the other
 *	sim_core	the cores that the threads share
 *	sim_host	the threads of hosts: fragments, credit, relaying
 *	sim_fluid	the flows as streams that share links
 *	sim_report	results as JSON
 *
 * Times are microseconds and rates bytes per microsecond; SimGrid's second
 * stands for a microsecond, so that its precision is far below a nanosecond.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt_topo.h"

struct json_object;

#define SIM_WHY 256u	/* bytes of the longest reason */
#define SIM_PROFILES 4u /* files of a profile */

enum sim_model {
	SIM_AUTO,
	SIM_FRAGMENTS, /* each fragment, each hop */
	SIM_FLUID,     /* flows as streams with fair shares of their links */
};

enum sim_pattern {
	SIM_LATENCY, /* one message alone, for numbers of hops up to the diameter */
	SIM_STREAM,  /* one stream alone, for numbers of hops that double */
	SIM_ALLTOALL,
	SIM_RANDOM,
	SIM_NEIGHBOUR,
	SIM_BISECTION,
	SIM_ROUTES, /* no traffic: results of the routes alone */
};

/* The costs of a link and a host, in bytes, microseconds and their quotients. */
struct sim_profile {
	double link_rate;
	double link_latency;
	double register_write;
	double register_read;
	double interrupt;
	double dma_setup;
	double copy_rate;
	double send_fragment; /* software, for each fragment: at its source */
	double relay_fragment;
	double receive_fragment;
	double cores; /* shared by all hosts; 0: each thread has its own */
	double core_switch;
	bool dma; /* an engine carries fragments; else threads store them themselves */
};

struct sim_options {
	const char *topology;
	const char *profiles[SIM_PROFILES];
	unsigned int profile_count;
	unsigned int hosts;
	enum sim_pattern pattern;
	enum sim_model model;
	uint64_t bytes;	       /* of a message */
	unsigned int messages; /* of a flow */
	unsigned int per_pair; /* flows of a host, or of a pair, where the pattern leaves it open */
	unsigned int threads;  /* transfer threads of a relaying host */
	unsigned int apps;     /* application threads of a host */
	bool dma;
	bool interrupts; /* threads sleep and are woken by interrupts; else all poll */
	uint32_t slots;
	uint32_t payload_bytes;
	uint64_t seed;
	uint64_t budget; /* fragments times hops, above which flows are streams */
	uint64_t fluid;	 /* streams squared times hops, above which they are sampled */
	uint64_t ways; /* flows whose paths are followed for the loads; if there are more, a sample */
};

/* One direction of a link. */
struct sim_dir {
	unsigned int from, to;
	unsigned int back; /* the other direction of the link */
	double bytes;
};

/* The work of the threads of a host. */
enum sim_duty { SIM_SEND, SIM_RELAY, SIM_RECEIVE, SIM_DUTIES };

struct sim_net {
	struct rt_topo *topo;
	unsigned int hosts;
	unsigned int dir_count;
	struct sim_dir *dirs;
	unsigned int *first;	  /* the first direction of each host, that of port 1 */
	double *duties;		  /* hosts * SIM_DUTIES bytes */
	uint16_t *distance;	  /* hosts * hosts hops */
	unsigned int diameter;	  /* hops of the worst pair */
	unsigned int centre_from; /* a host with a peer at that distance */
	uint64_t *pairs_at;	  /* ordered pairs by hops */
	uint64_t beyond; /* those pairs that are farther apart than the product's longest path */
	bool *half;	 /* the half that a host belongs to */
	unsigned int cut_links; /* links between the halves */
};

struct sim_flow {
	unsigned int from, to;
	unsigned int from_app, to_app; /* application threads of its ends, taken in turn */
	uint32_t hash;
	unsigned int hops;
	uint32_t *path; /* directions */
	double weight;	/* flows that it stands for */
	uint64_t total; /* bytes of the flow */
	double start, end;

	/* The connection, as its two ends know it. */
	uint64_t message_left; /* bytes of the message under way not yet sent */
	unsigned int messages_left;
	uint64_t received;
	uint32_t slots_out, bytes_out;	 /* sent, without credit yet */
	uint32_t slots_owed, bytes_owed; /* consumed, credit not yet given */
	bool ready;			 /* queued at its sender */
	struct sim_flow *next;
};

struct sim_result {
	struct sim_flow *flows;
	unsigned int count;
	uint64_t stand_for; /* flows of the whole pattern */
	uint64_t hops;	    /* the hops of all of them */
	enum sim_model model;
	uint64_t followed; /* flows that loads were taken from */
};

/* If several files have a key, the first one counts.  0, or -errno with one line in why. */
int sim_profile_read(const char *const *paths, unsigned int count, struct sim_profile *out,
		     char *why, size_t size);
/* Bytes of a fragment on a link: whole lines, its header among them. */
uint32_t sim_wire_bytes(uint32_t payload);

int sim_net_open(const struct sim_options *o, struct sim_net *net, char *why, size_t size);
void sim_net_close(struct sim_net *net);
/* The path of a flow: hops and directions (to be freed).  0 or -errno. */
int sim_net_path(const struct sim_net *net, struct sim_flow *flow);
unsigned int sim_net_distance(const struct sim_net *net, unsigned int from, unsigned int to);

uint64_t sim_random(uint64_t *state);
/* The flows of the pattern, with their paths; loads of directions are added up in net. */
int sim_traffic(const struct sim_options *o, struct sim_net *net, struct sim_result *out);
void sim_traffic_free(struct sim_result *r);
/* Bytes of the next fragment of a message. */
uint32_t sim_fragment_bytes(uint32_t payload_bytes, uint64_t total, uint64_t left,
			    uint32_t slots_out);

/* The cost of one hop of a fragment, for each thread or link that it occupies. */
struct sim_cost {
	double send, relay, receive; /* threads */
	double link;		     /* time on the link */
};

struct sim_cost sim_cost_of(const struct sim_profile *p, uint32_t payload);
/* Bytes per microsecond that one link direction carries. */
double sim_link_rate(const struct sim_profile *p);

/* Both set start and end of each flow.  in_turn: one after the other.  A process runs one, once. */
int sim_fragments_run(const struct sim_options *o, const struct sim_profile *p,
		      const struct sim_net *net, struct sim_result *r, bool in_turn);
int sim_fluid_run(const struct sim_options *o, const struct sim_profile *p,
		  const struct sim_net *net, struct sim_result *r);

struct json_object *sim_report(const struct sim_options *o, const struct sim_profile *p,
			       const struct sim_net *net, const struct sim_result *r);

#endif
