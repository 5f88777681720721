/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_together.h"

#include "u_option.h"

uint64_t pf_largest(const struct pf_sizes *s)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		v = s->v[i] > v ? s->v[i] : v;
	return v;
}

static uint64_t smallest(const struct pf_sizes *s)
{
	uint64_t v = UINT64_MAX;
	size_t i;

	for (i = 0; i < s->n; i++)
		v = s->v[i] < v ? s->v[i] : v;
	return v;
}

static int check_roles(const struct pf_config *cfg, const struct u_option_tool *t)
{
	if (cfg->server && cfg->connect)
		return u_option_refuse(t, "--server and --connect: give one of them");
	if (cfg->hosts[0] && (cfg->server || cfg->connect))
		return u_option_refuse(t, "--hosts: starts both sides; give --host instead");
	if (cfg->host && !cfg->server && !cfg->connect)
		return u_option_refuse(t, "--host: goes with --server or --connect; else --hosts");
	return -1;
}

/* An expectation about a size that is not measured could never fail. */
static int check_expect_sizes(const struct pf_config *cfg, const struct u_option_tool *t)
{
	size_t i, k;

	for (i = 0; i < cfg->expect_count; i++) {
		bool found = cfg->expects[i].any_size;

		for (k = 0; k < cfg->sizes.n; k++)
			found |= cfg->sizes.v[k] == cfg->expects[i].size;
		if (!found)
			return u_option_refuse(t, "--expect %.80s: its size is not among --sizes",
					       cfg->expects[i].text);
	}
	return -1;
}

static int check_together(const struct pf_config *cfg, const struct u_option_tool *t)
{
	const struct pf_tool *tool = cfg->tool;

	if (tool->kind == PF_LAT && cfg->op == PF_WRITE && cfg->wait == PF_BLOCK)
		return u_option_refuse(
			t, "--op write --wait block: "
			   "a write wakes nobody at the target; use write-imm, or poll");
	if (tool->kind == PF_LAT && cfg->op == PF_WRITE && !smallest(&cfg->sizes))
		return u_option_refuse(t,
				       "--op write --sizes 0: "
				       "an empty write cannot be seen at the target; sizes from 1");
	if (cfg->iters && cfg->duration > 0)
		return u_option_refuse(t, "--iters and --duration: give one of them");
	if (cfg->spin && cfg->wait == PF_BLOCK)
		return u_option_refuse(t, "--spin: goes with --wait poll");
	if (cfg->busy > cfg->vis)
		return u_option_refuse(t, "--busy: more than --vis");
	if (tool->kind != PF_LAT && cfg->batch > 1 && cfg->wait == PF_BLOCK)
		return u_option_refuse(t, "--batch: goes with --wait poll");
	if (cfg->post_time && (cfg->batch != 1 || cfg->op != PF_SEND))
		return u_option_refuse(t, "--post-time: goes with --op send, without --batch");
	if (cfg->buffers > 1 && (cfg->op == PF_SEND || cfg->verify || cfg->vis > 1))
		return u_option_refuse(t,
				       "--buffers: "
				       "goes with an RDMA operation on one VI, without --verify");
	if (cfg->buffers > 1 && cfg->buffers * pf_largest(&cfg->sizes) > PF_MAX_SIZE)
		return u_option_refuse(
			t, "--buffers: "
			   "all of them, of the largest of --sizes, have at most 1 GiB");
	if (cfg->op == PF_READ && cfg->level == PF_UNRELIABLE)
		return u_option_refuse(t, "--op read --level unreliable: "
					  "RDMA read needs a reliable level");
	return check_expect_sizes(cfg, t);
}

int pf_together(const struct pf_config *cfg, const struct u_option_tool *t)
{
	int rc = check_roles(cfg, t);

	return rc >= 0 ? rc : check_together(cfg, t);
}
