/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIMIT_H
#define LIMIT_H

#include <cstdlib>

/* What all limits of tests are multiplied by: more than 1 where a sanitizer or an emulator makes everything slow. */
inline unsigned limit_factor()
{
	const char *text = getenv("TEST_LIMIT_FACTOR");
	int factor = text ? atoi(text) : 1;

	return factor > 1 ? static_cast<unsigned>(factor) : 1;
}

#endif
