/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cpus.h"

#include <errno.h>
#include <stddef.h>

#include "u_cpuset.h"

int u_cpus_parse(const char *text, unsigned int most, int *cpus_out, unsigned int *count_out)
{
	int first, last, cpus[U_CPUS_END];
	unsigned int i, count = 0;

	if (most > U_CPUS_END)
		most = U_CPUS_END;
	while (*text != '\0') {
		text = u_cpuset_range(text, U_CPUS_END, &first, &last);
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
