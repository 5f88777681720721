/* SPDX-License-Identifier: BSD-2-Clause */
/* The copies of u_copy.h, which C++ cannot read, for copy_test.cc. */
#include "copy_calls.h"
#include "u_copy.h"

void call_copy_shared(void *to, const void *from, size_t n)
{
	u_copy_shared(to, from, n);
}

void call_copy_last_last(void *to, const void *from, size_t n)
{
	u_copy_last_last(to, from, n);
}
