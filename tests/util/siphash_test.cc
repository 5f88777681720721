// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

extern "C" {
#include "u_siphash.h"
}

namespace {

// The vectors of the reference implementation: inputs 0, 1, 2 ... of each length.
TEST(SipHash, KnownAnswers)
{
	uint8_t key[16], input[64];

	for (uint8_t i = 0; i < 64; i++)
		input[i] = i;
	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	EXPECT_EQ(u_siphash(key, input, 0), 0x726fdb47dd0e0e31u);
	EXPECT_EQ(u_siphash(key, input, 1), 0x74f839c593dc67fdu);
	EXPECT_EQ(u_siphash(key, input, 8), 0x93f5f5799a932462u);
	EXPECT_EQ(u_siphash(key, input, 15), 0xa129ca6149be45e5u);
}

} // namespace
