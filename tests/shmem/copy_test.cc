// SPDX-License-Identifier: BSD-2-Clause
// Long copies, made by an instruction of the processor where that is faster.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" {
#include "osh_copy.h"
}

TEST(OshCopy, AllOfItAndNothingElse)
{
	std::vector<uint8_t> from(OSH_COPY_LONG + 64);

	for (size_t i = 0; i < from.size(); i++)
		from[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
	for (size_t n : { OSH_COPY_LONG - 1, OSH_COPY_LONG, OSH_COPY_LONG + 17 }) {
		std::vector<uint8_t> to(n + 32, 0xee);

		osh_copy(&to[15], &from[3], n);
		EXPECT_TRUE(std::equal(to.begin() + 15, to.end() - 17, from.begin() + 3)) << n;
		EXPECT_EQ(to[14], 0xee) << n;
		EXPECT_EQ(to[n + 15], 0xee) << n;
	}
}
