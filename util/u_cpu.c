/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#define CLDEMOTE (1u << 25) /* leaf 7, ECX */

bool u_can_demote(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & CLDEMOTE) != 0;
}
#else
bool u_can_demote(void)
{
	return false;
}
#endif
