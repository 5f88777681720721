/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library of an earlier version, as far as the loader of Java looks.
 */
#include <vipl.h>

#pragma GCC visibility push(default)

VIP_RETURN VipxQueryVersion(VIP_ULONG *Extension, const char **Release);

VIP_RETURN VipxQueryVersion(VIP_ULONG *Extension, const char **Release)
{
	if (Extension)
		*Extension = 4;
	if (Release)
		*Release = "0.9.0";
	return VIP_SUCCESS;
}
