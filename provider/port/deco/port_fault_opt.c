/* SPDX-License-Identifier: BSD-2-Clause */
#include "port_fault_opt.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "u_log.h"

/*
 * Parses digits with at most one point, in any locale.  False: another character, or not 1 to 18 digits; *out
 * is not to be used then.
 */
static bool parse_number(const char *text, size_t len, double *out)
{
	double v = 0;
	double unit = 1;
	bool point = false;
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '.' && !point) {
			point = true;
		} else if (text[i] >= '0' && text[i] <= '9') {
			v = v * 10 + (text[i] - '0');
			unit = point ? unit * 10 : 1;
			digits++;
		} else {
			return false;
		}
	}
	*out = v / unit;
	return digits > 0 && digits <= 18;
}

/* Parses a number from 0 to 1. */
static bool parse_probability(const char *text, size_t len, double *out)
{
	double v;

	if (!parse_number(text, len, &v) || v > 1)
		return false;
	*out = v;
	return true;
}

/*
 * Parses a count without a point, at most 10^12: so many milliseconds fit into 63 bits of nanoseconds.  False:
 * it is none, and *out is as before.
 */
static bool parse_count(const char *text, size_t len, uint64_t *out)
{
	double v;

	if (memchr(text, '.', len) != NULL || !parse_number(text, len, &v) || v > 1e12)
		return false;
	*out = (uint64_t)v;
	return true;
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* Parses one NAME=VALUE into its member.  False: there is no such name, or the value is bad. */
static bool parse_option(const char *text, size_t len, struct fault_options *opt)
{
	const char *equals = memchr(text, '=', len);
	size_t name = equals != NULL ? (size_t)(equals - text) : len;
	const char *value = text + name + 1;
	size_t rest = len - name - 1;

	if (equals == NULL)
		return false;
	if (is_word(text, name, "drop_db"))
		return parse_probability(value, rest, &opt->drop_db);
	if (is_word(text, name, "spurious_db"))
		return parse_probability(value, rest, &opt->spurious_db);
	if (is_word(text, name, "early_db"))
		return parse_probability(value, rest, &opt->early_db);
	if (is_word(text, name, "torn"))
		return parse_probability(value, rest, &opt->torn);
	if (is_word(text, name, "down_after"))
		return parse_count(value, rest, &opt->down_after);
	if (is_word(text, name, "down_ms"))
		return parse_count(value, rest, &opt->down_ms);
	return false;
}

int fault_parse(const char *text, struct fault_options *out)
{
	struct fault_options opt = { 0 };
	size_t len;

	for (const char *at = text; *at != '\0'; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		if (parse_option(at, len, &opt))
			continue;
		u_error("port",
			"a fault option was sought, \"%.*s\" is none; use drop_db=P, "
			"spurious_db=P, early_db=P, down_after=N, down_ms=N, torn=P with P from 0 "
			"to 1",
			(int)len, at);
		return -EINVAL;
	}
	*out = opt;
	return 0;
}
