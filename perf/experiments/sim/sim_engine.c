/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>

/*
 * A route of SimGrid joins two hosts, and there is one for a pair.  Route i here is the one from
 * source i / side to sink i % side: these hosts only name routes, so any number of
 * routes may join two hosts of the fabric.
 */
static unsigned int side;
static sg_host_t *sources, *sinks;

/* The arguments of an actor. */
struct start {
	sim_actor_fn *fn;
	void *arg;
};

static void hosts_write(FILE *f)
{
	for (unsigned int i = 0; i < side; i++)
		fprintf(f, "<host id=\"s%u\" speed=\"1f\"/><host id=\"d%u\" speed=\"1f\"/>\n", i,
			i);
}

static void link_write(FILE *f, unsigned int i, const struct sim_link *l)
{
	fprintf(f, "<link id=\"%u\" bandwidth=\"%.17gBps\" latency=\"%.17gs\"/>\n", i, l->rate,
		l->latency);
}

static void route_write(FILE *f, unsigned int i, const struct sim_route *r)
{
	fprintf(f, "<route src=\"s%u\" dst=\"d%u\" symmetrical=\"NO\">", i / side, i % side);
	for (unsigned int l = 0; l < r->count; l++)
		fprintf(f, "<link_ctn id=\"%u\"/>", r->links[l]);
	fprintf(f, "</route>\n");
}

static int platform_write(FILE *f, const struct sim_link *links, unsigned int link_count,
			  const struct sim_route *routes, unsigned int route_count)
{
	fprintf(f, "<?xml version='1.0'?>\n"
		   "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
		   "<platform version=\"4.1\"><zone id=\"fabric\" routing=\"Full\">\n");
	hosts_write(f);
	for (unsigned int i = 0; i < link_count; i++)
		link_write(f, i, &links[i]);
	for (unsigned int i = 0; i < route_count; i++)
		route_write(f, i, &routes[i]);
	fprintf(f, "</zone></platform>\n");
	return fflush(f) == 0 ? 0 : -errno;
}

static int hosts_find(void)
{
	char name[16];

	sources = calloc(side, sizeof(sg_host_t));
	sinks = calloc(side, sizeof(sg_host_t));
	if (sources == NULL || sinks == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < side; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		sources[i] = sg_host_by_name(name);
		snprintf(name, sizeof(name), "d%u", i);
		sinks[i] = sg_host_by_name(name);
	}
	return 0;
}

/* Plain links: no factor, no window of TCP, no traffic of acknowledgements but the model's own. */
static void engine_init(void)
{
	static char name[] = "sim", model[] = "--cfg=network/model:CM02",
		    cross[] = "--cfg=network/crosstraffic:0",
		    window[] = "--cfg=network/TCP-gamma:1e300",
		    stack[] = "--cfg=contexts/stack-size:64", log[] = "--log=root.thresh:error",
		    quiet[] = "--log=no_loc";
	char *argv[] = { name, model, cross, window, stack, log, quiet, NULL };
	int argc = sizeof(argv) / sizeof(argv[0]) - 1;

	simgrid_init(&argc, argv);
}

/* The platform is a file in memory, so no file is left when the process is killed. */
int sim_engine_open(const struct sim_link *links, unsigned int link_count,
		    const struct sim_route *routes, unsigned int route_count)
{
	int fd = memfd_create("platform.xml", MFD_CLOEXEC), err;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	char path[48];

	if (f == NULL) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	for (side = 1; side * side < route_count; side++)
		continue;
	engine_init();
	err = platform_write(f, links, link_count, routes, route_count);
	if (err == 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		simgrid_load_platform(path);
		err = hosts_find();
	}
	fclose(f);
	return err;
}

static void actor_main(int argc, char *argv[])
{
	struct start start = *(struct start *)sg_actor_self_get_data();

	free(sg_actor_self_get_data());
	start.fn(start.arg);
}

int sim_engine_spawn(sim_actor_fn *fn, void *arg, bool daemon)
{
	struct start *start = malloc(sizeof(*start));
	sg_actor_t actor;

	if (start == NULL)
		return -ENOMEM;
	start->fn = fn;
	start->arg = arg;
	actor = sg_actor_init("actor", sources[0]);
	sg_actor_set_data(actor, start);
	if (daemon)
		sg_actor_daemonize(actor);
	sg_actor_start_(actor, actor_main, 0, NULL);
	return 0;
}

void sim_engine_run(void)
{
	simgrid_run();
}

double sim_engine_now(void)
{
	return simgrid_get_clock();
}

void sim_engine_sleep(double time)
{
	if (time > 0)
		sg_actor_sleep_for(time);
}

void sim_engine_transfer(unsigned int route, double bytes)
{
	sg_host_sendto(sources[route / side], sinks[route % side], bytes);
}
