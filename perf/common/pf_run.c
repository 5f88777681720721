/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pf_role.h"

#define VERIFY_BUDGET (UINT64_C(256) << 20)
#define BATCH_NS 100000000.0

void pf_fill_source(struct pf_run *run, const struct pf_batch *batch)
{
	struct pf_ep *ep = &run->ep;
	uint32_t k, m;

	if (!ep->p.verify || ep->p.op != PF_READ)
		return;
	for (k = 0; k < ep->vi_count; k++) {
		for (m = 0; m < ep->send_slots; m++)
			pf_fill(pf_send_slot(ep, k, m), batch->size, k, m);
	}
}

/* ---- client ---- */

/* Checking needs a buffer per outstanding message: the window shrinks to the buffers that fit. */
static uint32_t window_in_effect(const struct pf_config *cfg, uint64_t max_size)
{
	uint64_t per_message = (max_size + 64) * 2 * cfg->vis, fit = VERIFY_BUDGET / per_message;
	uint32_t w = cfg->window;

	if (cfg->verify && fit < w)
		w = fit ? (uint32_t)fit : 1;
	return w > 1 ? w & ~1u : w;
}

static void make_params(const struct pf_config *cfg, struct pf_params *p)
{
	memset(p, 0, sizeof(*p));
	p->kind = cfg->tool->kind;
	p->op = cfg->op;
	p->wait = cfg->wait;
	p->level = cfg->level;
	p->cq = cfg->cq;
	p->verify = cfg->verify;
	p->bidir = cfg->bidir;
	p->window_memory = cfg->window_memory;
	p->adopt = cfg->adopt;
	p->spin = cfg->spin;
	p->segments = cfg->segments;
	p->vis = cfg->vis;
	p->busy = cfg->busy && cfg->busy < cfg->vis ? cfg->busy : cfg->vis;
	p->batch = cfg->batch;
	p->post_time = cfg->post_time;
	p->buffers = cfg->buffers;
	p->timeout_ms = (uint32_t)(cfg->timeout * 1000);
	p->max_size = pf_largest(&cfg->sizes);
	p->window = cfg->post_time ? PF_POSTS : window_in_effect(cfg, p->max_size);
}

static int client_batch(struct pf_run *run, const struct pf_batch *b)
{
	const struct pf_tool *tool = run->cfg->tool;
	struct pf_ctl_msg msg = { 0 };
	int rc;

	tool->prepare(run, b);
	msg.batch.size = b->size;
	msg.batch.count = b->count;
	msg.batch.first = b->first;
	rc = pf_ctl_send(&run->ctl, &msg, PF_CTL_BATCH);
	if (!rc)
		rc = pf_ctl_recv(&run->ctl, &msg, PF_CTL_READY, false);
	if (!rc)
		rc = tool->client(run, b);
	if (!rc)
		rc = pf_ctl_send(&run->ctl, &msg, PF_CTL_END);
	if (!rc)
		rc = pf_ctl_recv(&run->ctl, &msg, PF_CTL_DONE, false);
	if (!rc && msg.done.verify_errors)
		rc = pf_fail(&run->ep, "--verify: the server found wrong data");
	return rc;
}

/* Messages per VI of one unit of a batch: a sample of round trips, or a round. */
static uint32_t unit(const struct pf_run *run)
{
	return run->cfg->tool->kind == PF_LAT ? run->cfg->batch : pf_round_len(&run->ep.p);
}

static uint64_t to_units(const struct pf_run *run, uint64_t messages)
{
	return (messages + unit(run) - 1) / unit(run);
}

/* Small sizes often enough for the rare percentiles, large ones for about half a GiB in all. */
static uint64_t auto_count(const struct pf_run *run, uint64_t size)
{
	bool lat = run->cfg->tool->kind == PF_LAT;
	uint64_t most = lat ? 10000 : 100000, budget = UINT64_C(64) << (lat ? 20 : 23);
	uint64_t n = budget / (size ? size : 1);

	if (n > most)
		n = most;
	return n < 10 ? 10 : n;
}

static int run_units(struct pf_run *run, uint32_t size, uint64_t units, uint64_t *first)
{
	struct pf_batch b = { .size = size, .count = units, .first = *first };

	*first += units * unit(run);
	return units ? client_batch(run, &b) : 0;
}

/* Batches that grow until each takes about a tenth of a second, up to the time asked for. */
static int run_duration(struct pf_run *run, uint32_t size, uint64_t *first, uint64_t *units)
{
	double goal = run->cfg->duration * 1e9, left, n = 10;
	int64_t before = run->elapsed_ns;
	int rc = 0;

	while (!rc && (double)run->elapsed_ns < goal) {
		rc = run_units(run, size, (uint64_t)n, first);
		*units += (uint64_t)n;
		left = goal - (double)run->elapsed_ns;
		if (left > BATCH_NS)
			left = BATCH_NS;
		n *= left / (double)(run->elapsed_ns - before + 1);
		n = n < 1 ? 1 : n > 1e9 ? 1e9 : n;
		before = run->elapsed_ns;
	}
	return rc;
}

static void start_counting(struct pf_run *run)
{
	pf_hist_reset(&run->hist);
	run->elapsed_ns = 0;
}

static void make_result(struct pf_run *run, uint64_t size, uint64_t units, struct pf_result *r)
{
	bool lat = run->cfg->tool->kind == PF_LAT;
	bool answered = lat && run->cfg->op != PF_READ && !run->cfg->post_time;
	uint64_t directions = answered || run->cfg->bidir ? 2 : 1;

	r->size = size;
	r->iterations = units * unit(run);
	r->messages = r->iterations * directions * (lat ? 1 : run->cfg->vis);
	r->bytes = r->messages * size;
	r->elapsed_ns = run->elapsed_ns;
	r->hist = &run->hist;
}

static int measure_size(struct pf_run *run, uint64_t size, uint64_t *first, struct pf_result *r)
{
	const struct pf_config *cfg = run->cfg;
	uint64_t count = cfg->iters ? cfg->iters : auto_count(run, size);
	uint64_t warm = cfg->warmup == UINT64_MAX ? count / 10 : cfg->warmup, units = 0;
	int rc = run_units(run, (uint32_t)size, to_units(run, warm), first);

	start_counting(run);
	if (rc)
		return rc;
	if (cfg->duration > 0) {
		rc = run_duration(run, (uint32_t)size, first, &units);
	} else {
		units = to_units(run, count);
		rc = run_units(run, (uint32_t)size, units, first);
	}
	make_result(run, size, units, r);
	return rc;
}

int pf_measure(struct pf_run *run, struct pf_report *rep, unsigned int *missed)
{
	struct pf_result r = { 0 };
	uint64_t first = 1;
	size_t i;
	int rc = 0;

	*missed = 0;
	for (i = 0; !rc && i < run->cfg->sizes.n; i++) {
		rc = measure_size(run, run->cfg->sizes.v[i], &first, &r);
		if (rc)
			break;
		pf_report_add(rep, &r);
		*missed += pf_check_expects(run->cfg, &r);
	}
	return rc;
}

static const char *const path_names[] = { "none", "self", "neighbour", "relayed" };

static void learn_place(struct pf_run *run, const struct pf_ctl_msg *hello)
{
	struct pf_place *p = &run->place;
	VIPX_ROUTE route;

	p->client_pid = getpid();
	p->client_cpu = run->cfg->pin[0];
	p->server_pid = (int)hello->hello.pid;
	p->server_cpu = hello->hello.cpu;
	p->window = run->ep.p.window;
	p->path = "unknown";
	snprintf(p->server_host, sizeof(p->server_host), "%.63s", hello->hello.host);
	pf_own_host(&run->ep, p->client_host);
	if (pf_route_to(&run->ep, run->cfg->connect, &route))
		return;
	p->path = route.PathKind < 4 ? path_names[route.PathKind] : "unknown";
	p->hops = route.Hops;
	snprintf(p->port, sizeof(p->port), "%.15s", route.Port);
}

static void data_name(const struct pf_config *cfg, uint32_t k, char out[64])
{
	snprintf(out, 64, "%.50s/%u", cfg->name, k);
}

static void take_region(struct pf_ep *ep, const struct pf_ctl_msg *msg)
{
	ep->peer_region = msg->hello.region;
	ep->peer_handle = msg->hello.handle;
}

static int client_connect_data(struct pf_run *run)
{
	char name[64];
	uint32_t k;
	int rc = 0;

	for (k = 0; !rc && k < run->ep.vi_count; k++) {
		data_name(run->cfg, k, name);
		rc = pf_connect_vi(&run->ep, run->ep.vis[k].handle, run->cfg->connect, name);
	}
	return rc;
}

static void fill_hello(struct pf_run *run, struct pf_ctl_msg *msg, int cpu)
{
	memset(msg, 0, sizeof(*msg));
	msg->hello.params = run->ep.p;
	msg->hello.pid = (uint32_t)getpid();
	msg->hello.cpu = cpu;
	msg->hello.region = (uint64_t)(uintptr_t)run->ep.region;
	msg->hello.handle = run->ep.region_handle;
	pf_own_host(&run->ep, msg->hello.host);
}

static int client_hello(struct pf_run *run)
{
	struct pf_ctl_msg msg;
	int rc;

	fill_hello(run, &msg, run->cfg->pin[0]);
	rc = pf_ctl_send(&run->ctl, &msg, PF_CTL_HELLO);
	if (!rc)
		rc = pf_ctl_recv(&run->ctl, &msg, PF_CTL_HELLO, false);
	if (rc)
		return rc;
	take_region(&run->ep, &msg);
	learn_place(run, &msg);
	rc = client_connect_data(run);
	return rc ? rc : pf_ctl_send(&run->ctl, &msg, PF_CTL_REGION);
}

int pf_client_start(struct pf_run *run)
{
	struct pf_params p;
	int rc;

	make_params(run->cfg, &p);
	run->ep.p.timeout_ms = p.timeout_ms;
	rc = pf_ep_open(&run->ep, run->cfg->host);
	if (!rc)
		rc = pf_ep_check(&run->ep, &p);
	if (!rc)
		rc = pf_ctl_create(&run->ctl, &run->ep);
	if (!rc)
		rc = pf_connect_vi(&run->ep, run->ctl.vi, run->cfg->connect, run->cfg->name);
	if (!rc)
		rc = pf_ep_setup(&run->ep, &p);
	return rc ? rc : client_hello(run);
}

int pf_client_end(struct pf_run *run)
{
	struct pf_ctl_msg msg = { 0 };
	int rc = pf_ctl_send(&run->ctl, &msg, PF_CTL_BYE);

	/* The server closes its VIs once it has sent its answer, which may be here when that is noticed. */
	atomic_store(&run->ep.closing, 1);
	return rc ? rc : pf_ctl_recv(&run->ctl, &msg, PF_CTL_BYE, false);
}

/* ---- server ---- */

static bool params_ok(const struct pf_params *p, unsigned int kind)
{
	return p->kind == kind && p->op < PF_OP_COUNT && p->wait < PF_WAIT_COUNT &&
	       p->level < PF_LEVEL_COUNT && p->window >= 1 && p->window <= PF_MAX_WINDOW &&
	       p->segments >= 1 && p->segments <= PF_MAX_SEGMENTS && p->vis >= 1 &&
	       p->vis <= PF_MAX_VIS && p->busy >= 1 && p->busy <= p->vis && p->batch >= 1 &&
	       p->batch <= (kind == PF_LAT ? PF_MAX_BATCH : PF_MAX_CALL) && p->buffers >= 1 &&
	       p->buffers <= PF_MAX_BUFFERS &&
	       (p->buffers == 1 || (p->vis == 1 && p->buffers * p->max_size <= PF_MAX_SIZE)) &&
	       p->max_size <= PF_MAX_SIZE && p->timeout_ms >= 100 && p->timeout_ms <= 3600000;
}

static int server_setup(struct pf_run *run, struct pf_ctl_msg *msg)
{
	struct pf_params p = msg->hello.params;
	int rc;

	if (!params_ok(&p, run->cfg->tool->kind))
		return pf_fail(&run->ep,
			       "the client is another tool, or asks for what %s cannot do",
			       run->cfg->tool->name);
	take_region(&run->ep, msg);
	rc = pf_ep_check(&run->ep, &p);
	if (!rc)
		rc = pf_ep_setup(&run->ep, &p);
	if (rc)
		return rc;
	fill_hello(run, msg, run->cfg->pin[1]);
	return pf_ctl_send(&run->ctl, msg, PF_CTL_HELLO);
}

static int server_connect_data(struct pf_run *run)
{
	char name[64];
	uint32_t k;
	int rc = 0;

	for (k = 0; !rc && k < run->ep.vi_count; k++) {
		data_name(run->cfg, k, name);
		rc = pf_serve_vi(&run->ep, run->ep.vis[k].handle, name, false);
	}
	return rc;
}

static int server_batch(struct pf_run *run, struct pf_ctl_msg *msg)
{
	const struct pf_tool *tool = run->cfg->tool;
	struct pf_batch b = { (uint32_t)msg->batch.size, msg->batch.count, msg->batch.first };
	int rc;

	if (msg->batch.size > run->ep.p.max_size)
		return pf_fail(&run->ep, "the client sent a batch larger than it announced");
	tool->prepare(run, &b);
	rc = pf_ctl_send(&run->ctl, msg, PF_CTL_READY);
	if (!rc)
		rc = tool->server(run, &b);
	if (!rc)
		rc = pf_ctl_recv(&run->ctl, msg, PF_CTL_END, true);
	if (rc)
		return rc;
	msg->done.verify_errors = run->ep.verify_errors;
	return pf_ctl_send(&run->ctl, msg, PF_CTL_DONE);
}

int pf_server_start(struct pf_run *run)
{
	int rc;

	run->ep.p.timeout_ms = (uint32_t)(run->cfg->timeout * 1000);
	rc = pf_ep_open(&run->ep, run->cfg->host);
	return rc ? rc : pf_ctl_create(&run->ctl, &run->ep);
}

int pf_server_serve(struct pf_run *run)
{
	struct pf_ctl_msg msg;
	int rc = pf_serve_vi(&run->ep, run->ctl.vi, run->cfg->name, true);

	if (!rc)
		rc = pf_ctl_recv(&run->ctl, &msg, PF_CTL_HELLO, false);
	if (!rc)
		rc = server_setup(run, &msg);
	if (!rc)
		rc = server_connect_data(run);
	if (!rc)
		rc = pf_ctl_recv(&run->ctl, &msg, PF_CTL_REGION, false);
	while (!rc) {
		rc = pf_ctl_recv(&run->ctl, &msg, PF_CTL_ANY, true);
		if (!rc && msg.type != PF_CTL_BATCH)
			break;
		if (!rc)
			rc = server_batch(run, &msg);
	}
	atomic_store(&run->ep.closing, 1);
	return rc ? rc : pf_ctl_send(&run->ctl, &msg, PF_CTL_BYE);
}

void pf_run_close(struct pf_run *run)
{
	atomic_store(&run->ep.closing, 1);
	pf_ctl_destroy(&run->ctl);
	pf_ep_close(&run->ep);
}
