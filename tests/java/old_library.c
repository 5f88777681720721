/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that the loader of Java takes for one of an earlier version. */
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
