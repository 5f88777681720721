/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_result.h"
#include "u_option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lat_keys[] = { "avg_us", "min_us", "max_us", "stddev_us", NULL };
static const char *const bw_keys[] = { "bandwidth_mb_per_s",
				       "messages_per_s",
				       "round_avg_us",
				       "round_min_us",
				       "round_max_us",
				       "round_stddev_us",
				       NULL };
static const char *const rate_keys[] = { "messages_per_s",
					 "bandwidth_mb_per_s",
					 "round_avg_us",
					 "round_min_us",
					 "round_max_us",
					 "round_stddev_us",
					 NULL };

static const char *const *fixed_keys(const struct pf_tool *tool)
{
	switch (tool->kind) {
	case PF_LAT:
		return lat_keys;
	case PF_BW:
		return bw_keys;
	default:
		return rate_keys;
	}
}

double pf_sample_scale(const struct pf_config *cfg)
{
	double whole = cfg->tool->kind == PF_LAT && cfg->batch ? 1.0 / cfg->batch : 1.0;

	if (cfg->tool->kind != PF_LAT || cfg->op == PF_READ || cfg->post_time)
		return whole;
	return whole / 2;
}

static const char *prefix_of(const struct pf_tool *tool)
{
	return tool->kind == PF_LAT ? "" : "round_";
}

/* pNN_us with '.' or '_' as the decimal sign, after the tool's prefix. */
static int parse_percentile_key(const struct pf_tool *tool, const char *key, double *out)
{
	const char *prefix = prefix_of(tool);
	size_t skip = strlen(prefix), len = strlen(key);
	char digits[32], *underscore;

	if (strncmp(key, prefix, skip) || key[skip] != 'p' || len < skip + 5 || len >= 32)
		return -EINVAL;
	if (strcmp(key + len - 3, "_us"))
		return -EINVAL;
	memcpy(digits, key + skip + 1, len - skip - 4);
	digits[len - skip - 4] = '\0';
	underscore = strchr(digits, '_');
	if (underscore)
		*underscore = '.';
	return u_option_decimal(digits, 0, 100, out);
}

bool pf_metric_known(const struct pf_tool *tool, const char *metric)
{
	const char *const *k;
	double p;

	for (k = fixed_keys(tool); *k; k++) {
		if (!strcmp(*k, metric))
			return true;
	}
	return !parse_percentile_key(tool, metric, &p);
}

void pf_percentile_key(const struct pf_config *cfg, double p, char out[32])
{
	char *dot;

	if (p <= 0 || p >= 100)
		snprintf(out, 32, "%s%s_us", prefix_of(cfg->tool), p <= 0 ? "min" : "max");
	else
		snprintf(out, 32, "%sp%.10g_us", prefix_of(cfg->tool), p);
	dot = strchr(out, '.');
	if (dot)
		*dot = '_';
}

static double per_second(double amount, const struct pf_result *r)
{
	return r->elapsed_ns > 0 ? amount * 1e9 / (double)r->elapsed_ns : 0;
}

static int duration_metric(const struct pf_result *r, const char *key, double *ns)
{
	if (!strcmp(key, "avg_us"))
		*ns = pf_hist_mean(r->hist);
	else if (!strcmp(key, "min_us"))
		*ns = r->hist->count ? (double)r->hist->min : 0;
	else if (!strcmp(key, "max_us"))
		*ns = (double)r->hist->max;
	else if (!strcmp(key, "stddev_us"))
		*ns = pf_hist_stddev(r->hist);
	else
		return -EINVAL;
	return 0;
}

int pf_metric_value(const struct pf_config *cfg, const struct pf_result *r, const char *key,
		    double *out)
{
	size_t skip = strlen(prefix_of(cfg->tool));
	double ns, p;

	if (!pf_metric_known(cfg->tool, key))
		return -EINVAL;
	if (!strcmp(key, "bandwidth_mb_per_s")) {
		*out = per_second((double)r->bytes, r) / 1e6;
		return 0;
	}
	if (!strcmp(key, "messages_per_s")) {
		*out = per_second((double)r->messages, r);
		return 0;
	}
	if (!parse_percentile_key(cfg->tool, key, &p))
		ns = (double)pf_hist_percentile(r->hist, p);
	else if (duration_metric(r, key + skip, &ns))
		return -EINVAL;
	*out = ns * pf_sample_scale(cfg) / 1000.0;
	return 0;
}

static void add_metric(const struct pf_config *cfg, const struct pf_result *r, const char *key,
		       struct pf_metric *out, size_t *n)
{
	size_t i;

	for (i = 0; i < *n; i++) {
		if (!strcmp(out[i].key, key))
			return;
	}
	snprintf(out[*n].key, sizeof(out[*n].key), "%s", key);
	if (!pf_metric_value(cfg, r, key, &out[*n].value))
		++*n;
}

size_t pf_metrics(const struct pf_config *cfg, const struct pf_result *r, struct pf_metric *out)
{
	const char *const *k;
	char key[32];
	size_t n = 0, i;

	for (k = fixed_keys(cfg->tool); *k; k++)
		add_metric(cfg, r, *k, out, &n);
	for (i = 0; i < cfg->percentile_count; i++) {
		pf_percentile_key(cfg, cfg->percentiles[i], key);
		add_metric(cfg, r, key, out, &n);
	}
	return n;
}

static bool holds(const struct pf_expect *e, double value)
{
	switch (e->compare) {
	case PF_LT:
		return value < e->value;
	case PF_LE:
		return value <= e->value;
	case PF_GT:
		return value > e->value;
	default:
		return value >= e->value;
	}
}

unsigned int pf_check_expects(const struct pf_config *cfg, const struct pf_result *r)
{
	unsigned int missed = 0;
	double value = 0;
	size_t i;

	for (i = 0; i < cfg->expect_count; i++) {
		const struct pf_expect *e = &cfg->expects[i];

		if (!e->any_size && e->size != r->size)
			continue;
		if (!pf_metric_value(cfg, r, e->metric, &value) && holds(e, value))
			continue;
		fprintf(stderr, "%s: expected %s, found %.3f at size %llu\n", cfg->tool->name,
			e->text, value, (unsigned long long)r->size);
		missed++;
	}
	return missed;
}
