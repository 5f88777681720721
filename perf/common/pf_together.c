/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "pf_together.h"

int pf_usage(const struct pf_tool *tool, const char *what, const char *found, const char *right)
{
	fprintf(stderr, "%s: %s%s%s: %s\n", tool->name, what, found ? " " : "", found ? found : "",
		right);
	return PF_EXIT_USAGE;
}

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

static int check_roles(const struct pf_config *cfg)
{
	const struct pf_tool *tool = cfg->tool;

	if (cfg->server && cfg->connect)
		return pf_usage(tool, "--server and --connect", NULL, "give one of them");
	if (cfg->hosts[0] && (cfg->server || cfg->connect))
		return pf_usage(tool, "--hosts", NULL, "starts both sides; give --host instead");
	if (cfg->host && !cfg->server && !cfg->connect)
		return pf_usage(tool, "--host", NULL,
				"goes with --server or --connect; else --hosts");
	return -1;
}

/* An expectation about a size that is not measured could never fail. */
static int check_expect_sizes(const struct pf_config *cfg)
{
	size_t i, k;

	for (i = 0; i < cfg->expect_count; i++) {
		bool found = cfg->expects[i].any_size;

		for (k = 0; k < cfg->sizes.n; k++)
			found |= cfg->sizes.v[k] == cfg->expects[i].size;
		if (!found)
			return pf_usage(cfg->tool, "--expect", cfg->expects[i].text,
					"its size is not among --sizes");
	}
	return -1;
}

static int check_together(const struct pf_config *cfg)
{
	const struct pf_tool *tool = cfg->tool;

	if (tool->kind == PF_LAT && cfg->op == PF_WRITE && cfg->wait == PF_BLOCK)
		return pf_usage(tool, "--op write --wait block", NULL,
				"a write wakes nobody at the target; use write-imm, or poll");
	if (tool->kind == PF_LAT && cfg->op == PF_WRITE && !smallest(&cfg->sizes))
		return pf_usage(tool, "--op write --sizes 0", NULL,
				"an empty write cannot be seen at the target; sizes from 1");
	if (cfg->iters && cfg->duration > 0)
		return pf_usage(tool, "--iters and --duration", NULL, "give one of them");
	if (cfg->spin && cfg->wait == PF_BLOCK)
		return pf_usage(tool, "--spin", NULL, "goes with --wait poll");
	if (cfg->busy > cfg->vis)
		return pf_usage(tool, "--busy", NULL, "more than --vis");
	if (cfg->post_time && (cfg->batch != 1 || cfg->op != PF_SEND))
		return pf_usage(tool, "--post-time", NULL, "goes with --op send, without --batch");
	if (cfg->buffers > 1 && (cfg->op == PF_SEND || cfg->verify || cfg->vis > 1))
		return pf_usage(tool, "--buffers", NULL,
				"goes with an RDMA operation on one VI, without --verify");
	if (cfg->buffers > 1 && cfg->buffers * pf_largest(&cfg->sizes) > PF_MAX_SIZE)
		return pf_usage(tool, "--buffers", NULL,
				"all of them, of the largest of --sizes, have at most 1 GiB");
	if (cfg->op == PF_READ && cfg->level == PF_UNRELIABLE)
		return pf_usage(tool, "--op read --level unreliable", NULL,
				"RDMA read needs a reliable level");
	return check_expect_sizes(cfg);
}

int pf_together(const struct pf_config *cfg)
{
	int rc = check_roles(cfg);

	return rc >= 0 ? rc : check_together(cfg);
}
