/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cpus.h"

#include <errno.h>
#include <stddef.h>

/* Reads a number below U_CPUS_END.  Returns the text behind it, or NULL. */
static const char *number(const char *text, int *out)
{
	int value = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		value = value * 10 + (*text - '0');
		if (value >= U_CPUS_END)
			return NULL;
	}
	*out = value;
	return text;
}

/* Reads "2" or "2-5".  Returns the text behind it, or NULL. */
static const char *range(const char *text, int *first, int *last)
{
	text = number(text, first);
	if (text == NULL)
		return NULL;
	*last = *first;
	if (*text == '-')
		text = number(text + 1, last);
	return text != NULL && *first <= *last ? text : NULL;
}

int u_cpus_parse(const char *text, unsigned int most, int *cpus_out, unsigned int *count_out)
{
	int first, last, cpus[U_CPUS_END];
	unsigned int i, count = 0;

	if (most > U_CPUS_END)
		most = U_CPUS_END;
	while (*text != '\0') {
		text = range(text, &first, &last);
		if (text == NULL || (*text != '\0' && (*text != ',' || text[1] == '\0')))
			return -EINVAL;
		for (; first <= last; first++) {
			if (count == most)
				return -E2BIG;
			cpus[count++] = first;
		}
		text += *text == ',';
	}
	for (i = 0; i < count; i++)
		cpus_out[i] = cpus[i];
	*count_out = count;
	return 0;
}
