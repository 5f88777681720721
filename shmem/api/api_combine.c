// SPDX-License-Identifier: BSD-2-Clause
/*
 * Element i depends on elements i only, also when both regions are the same: the pragma tells the
 * compiler, which makes vector instructions of these loops.  1u makes integers unsigned, so that
 * they wrap around.
 */
#include "api_combine.h"

#define DEFINE(op, K, T, e)                                                                        \
	void api_##op##_##K(void *into, const void *from, size_t n)                                \
	{                                                                                          \
		T *left = into;                                                                    \
		const T *right = from;                                                             \
		_Pragma("GCC ivdep") for (size_t i = 0; i < n; i++)                                \
		{                                                                                  \
			T a = left[i], b = right[i];                                               \
			left[i] = (T)(e);                                                          \
		}                                                                                  \
	}

API_COMBINE_ALL(DEFINE)
