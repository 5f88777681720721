/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads arguments as values, within the limits of their options. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "u_option.h"
#include "u_option_value.h"

int u_option_number(const char *text, bool size, uint64_t min, uint64_t max, uint64_t *out)
{
	static const char units[] = "kmgt";
	unsigned int shift = 0;
	unsigned long long v;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	unit = size && *end != '\0' ? strchr(units, tolower((unsigned char)*end)) : NULL;
	if (unit != NULL) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	if (errno != 0 || *end != '\0' || v > max >> shift || v << shift < min)
		return -EINVAL;
	*out = (uint64_t)v << shift;
	return 0;
}

/* As strtod(), but with a decimal point whatever the locale says. */
static double decimal(const char *text, char **end)
{
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double number;

	if (plain == (locale_t)0)
		return strtod(text, end);
	number = strtod_l(text, end, plain);
	freelocale(plain);
	return number;
}

int u_option_decimal(const char *text, double least, double most, double *out)
{
	char *end;
	double v;

	if ((!isdigit((unsigned char)text[0]) && text[0] != '.') || strpbrk(text, "xX") != NULL)
		return -EINVAL;
	v = decimal(text, &end);
	if (end == text || *end != '\0' || !isfinite(v) || v < least || v > most)
		return -EINVAL;
	*out = v;
	return 0;
}

uint64_t u_option_most(const struct u_option *o)
{
	if (o->max != 0)
		return o->max;
	return o->bytes == sizeof(uint64_t) && o->kind != U_OPTION_PAIR ? UINT64_MAX : INT_MAX;
}

/* Gives the index of the text among `words`. 0; or -EINVAL: it is none of them, and *out is as before. */
static int word_index(const char *const *words, const char *text, uint64_t *out)
{
	uint64_t i;

	for (i = 0; words[i] != NULL && strcmp(words[i], text) != 0; i++)
		;
	if (words[i] == NULL)
		return -EINVAL;
	*out = i;
	return 0;
}

/*
 * Sets a number of 4 or 8 bytes, by o->bytes: of the text, or its index among the words; without an argument the least.
 * 0; or -EINVAL, and it is as before.
 */
static int set_number(const struct u_option *o, void *at, const char *arg)
{
	uint64_t v = o->min;
	uint32_t narrow;
	int rc = 0;

	if (arg != NULL && o->words != NULL)
		rc = word_index(o->words, arg, &v);
	else if (arg != NULL && o->arg != NULL)
		rc = u_option_number(arg, o->size, o->min, u_option_most(o), &v);
	if (rc != 0 || (o->step != 0 && v % o->step != 0))
		return -EINVAL;
	narrow = (uint32_t)v;
	memcpy(at, o->bytes == sizeof(v) ? (void *)&v : &narrow, o->bytes);
	return 0;
}

/* Sets the pointer to the argument itself, or to "" where that is NULL. 0; or -EINVAL: its length, or no such word. */
static int set_string(const struct u_option *o, const char **at, const char *arg)
{
	size_t n = arg != NULL ? strlen(arg) : 0;
	uint64_t ignored;

	if (arg == NULL)
		arg = "";
	else if (o->words != NULL ? word_index(o->words, arg, &ignored) != 0
				  : n < o->min || n > (o->max != 0 ? o->max : SIZE_MAX))
		return -EINVAL;
	*at = arg;
	return 0;
}

/* Adds the argument, as set_string(), at the first NULL of the list. 0, -EINVAL; or -ENOSPC: that is full. */
static int set_list(const struct u_option *o, const char **at, const char *arg)
{
	size_t i = 0, n = o->bytes / sizeof(*at);

	while (i < n && at[i] != NULL)
		i++;
	return i < n ? set_string(o, &at[i], arg) : -ENOSPC;
}

/* Reads two numbers with a comma between, or one for both where the option allows that. 0; or -EINVAL, nothing set. */
static int set_pair(const struct u_option *o, int at[2], const char *arg)
{
	const char *comma = strchr(arg, ',');
	size_t n = comma != NULL ? (size_t)(comma - arg) : strlen(arg);
	uint64_t a = 0, b = 0;
	char first[24];

	if (n >= sizeof(first) || (comma == NULL && strchr(o->arg, '[') == NULL))
		return -EINVAL;
	memcpy(first, arg, n);
	first[n] = '\0';
	if (u_option_number(first, false, o->min, u_option_most(o), &a) != 0 ||
	    u_option_number(comma != NULL ? comma + 1 : arg, false, o->min, u_option_most(o), &b) !=
		    0)
		return -EINVAL;
	at[0] = (int)a;
	at[1] = (int)b;
	return 0;
}

int u_option_set(const struct u_option *o, void *into, const char *arg)
{
	void *at = (char *)into + o->offset;

	if (o->call != NULL)
		return o->call(into, o, arg);
	switch (o->kind) {
	case U_OPTION_FLAG:
		*(bool *)at = !o->off;
		return 0;
	case U_OPTION_NUMBER:
		return set_number(o, at, arg);
	case U_OPTION_DECIMAL:
		return u_option_decimal(arg, o->least, o->most, at);
	case U_OPTION_STRING:
		return set_string(o, at, arg);
	case U_OPTION_LIST:
		return set_list(o, at, arg);
	case U_OPTION_PAIR:
		return set_pair(o, at, arg);
	default:
		return -EINVAL;
	}
}
