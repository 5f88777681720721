/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pf_config.h"
#include "u_option.h"

static int parse_size(const char *text, uint64_t *out)
{
	return u_option_number(text, true, 0, PF_MAX_SIZE, out);
}

static int sizes_add(struct pf_sizes *s, uint64_t size)
{
	uint64_t *v = reallocarray(s->v, s->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	s->v = v;
	s->v[s->n++] = size;
	return 0;
}

/* a..b: a, 2a, 4a ... and b itself as the last; a range from 0 goes 0, 1, 2 ... */
static int sizes_add_range(struct pf_sizes *s, uint64_t first, uint64_t last)
{
	uint64_t v;
	int rc = 0;

	if (first > last)
		return -EINVAL;
	for (v = first; !rc && v < last; v = v ? v * 2 : 1)
		rc = sizes_add(s, v);
	return rc ? rc : sizes_add(s, last);
}

static int sizes_add_item(struct pf_sizes *s, char *item)
{
	char *dots = strstr(item, "..");
	uint64_t first, last;

	if (!dots)
		return parse_size(item, &first) ? -EINVAL : sizes_add(s, first);
	*dots = '\0';
	if (parse_size(item, &first) || parse_size(dots + 2, &last))
		return -EINVAL;
	return sizes_add_range(s, first, last);
}

/* Calls `add` for each item between commas; an empty item is an error. */
static int for_items(const char *text, int (*add)(void *ctx, char *item), void *ctx)
{
	char *copy = strdup(text), *rest = copy, *item;
	int rc = copy ? 0 : -ENOMEM;

	while (!rc && (item = strsep(&rest, ",")))
		rc = *item ? add(ctx, item) : -EINVAL;
	free(copy);
	return rc;
}

static int add_size_item(void *ctx, char *item)
{
	return sizes_add_item(ctx, item);
}

int pf_parse_sizes(const char *text, struct pf_sizes *out)
{
	struct pf_sizes s = { NULL, 0 };
	int rc = for_items(text, add_size_item, &s);

	if (rc) {
		free(s.v);
		return rc;
	}
	free(out->v);
	*out = s;
	return 0;
}

int pf_parse_hosts(const char *text, const char *out[2])
{
	const char *comma = strchr(text, ',');
	char *first;

	if (!comma || comma == text || !comma[1] || strchr(comma + 1, ',') || comma - text > 63 ||
	    strlen(comma + 1) > 63)
		return -EINVAL;
	first = strndup(text, (size_t)(comma - text));
	if (!first)
		return -ENOMEM;
	free((char *)out[0]);
	out[0] = first;
	out[1] = comma + 1;
	return 0;
}

struct percentiles {
	double v[PF_MAX_PERCENTILES];
	size_t n, max;
};

static int add_percentile_item(void *ctx, char *item)
{
	struct percentiles *p = ctx;
	double v;

	if (p->n == p->max)
		return -EINVAL;
	if (!strcmp(item, "max"))
		v = 100.0;
	else if (!strcmp(item, "min"))
		v = 0.0;
	else if (u_option_decimal(item, 0.0, 100.0, &v))
		return -EINVAL;
	p->v[p->n++] = v;
	return 0;
}

int pf_parse_percentiles(const char *text, double *out, size_t max, size_t *count_out)
{
	struct percentiles p = { .max = max < PF_MAX_PERCENTILES ? max : PF_MAX_PERCENTILES };
	int rc = for_items(text, add_percentile_item, &p);

	if (rc)
		return rc;
	memcpy(out, p.v, p.n * sizeof(*out));
	*count_out = p.n;
	return 0;
}

static int parse_compare(const char *text, enum pf_compare *out, size_t *len_out)
{
	bool equal = text[0] && text[1] == '=';

	if (text[0] == '<')
		*out = equal ? PF_LE : PF_LT;
	else if (text[0] == '>')
		*out = equal ? PF_GE : PF_GT;
	else
		return -EINVAL;
	*len_out = equal ? 2 : 1;
	return 0;
}

/* The part before the comparison: METRIC or METRIC@SIZE. */
static int parse_metric(const char *text, size_t len, struct pf_expect *e)
{
	char copy[64], *at;

	if (!len || len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	at = strchr(copy, '@');
	e->any_size = !at;
	if (at) {
		*at = '\0';
		if (parse_size(at + 1, &e->size))
			return -EINVAL;
	}
	if (!copy[0] || strlen(copy) >= sizeof(e->metric))
		return -EINVAL;
	strcpy(e->metric, copy);
	return 0;
}

int pf_parse_expect(const char *text, struct pf_expect *out)
{
	struct pf_expect e = { .text = text };
	size_t len = strcspn(text, "<>"), skip;

	if (parse_metric(text, len, &e) || parse_compare(text + len, &e.compare, &skip))
		return -EINVAL;
	if (u_option_decimal(text + len + skip, 0.0, 1e18, &e.value))
		return -EINVAL;
	*out = e;
	return 0;
}

static size_t find_name(const char *text, size_t len, const char *(*name)(size_t i), size_t count)
{
	size_t i = 0;

	while (i < count && (strlen(name(i)) != len || strncmp(name(i), text, len)))
		i++;
	return i;
}

static bool names_known(const char *text, const char *(*name)(size_t i), size_t count)
{
	size_t len;

	for (;; text += len + 1) {
		len = strcspn(text, ",");
		if (find_name(text, len, name, count) == count)
			return false;
		if (!text[len])
			return true;
	}
}

int pf_parse_names(const char *text, const char *(*name)(size_t i), size_t count, bool *out)
{
	size_t len;

	if (!names_known(text, name, count))
		return -EINVAL;
	memset(out, 0, count * sizeof(*out));
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		out[find_name(text, len, name, count)] = true;
		if (!text[len])
			return 0;
	}
}
