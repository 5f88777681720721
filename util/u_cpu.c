/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#define CLDEMOTE (1u << 25) /* leaf 7, ECX */
#define FAMILY_PLAIN 26u    /* AMD's first that gains nothing by prefetches */

bool u_can_demote(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & CLDEMOTE) != 0;
}

bool u_gains_by_prefetch(void)
{
	unsigned int a, b, c, d, family;

	if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx ||
	    d != signature_AMD_edx || !__get_cpuid(1, &a, &b, &c, &d))
		return true;
	family = a >> 8 & 0xf;
	if (family == 0xf)
		family += a >> 20 & 0xff;
	return family < FAMILY_PLAIN;
}
#else
bool u_can_demote(void)
{
	return false;
}

bool u_gains_by_prefetch(void)
{
	return true;
}
#endif
