/* SPDX-License-Identifier: BSD-2-Clause */
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

extern "C" {
#include "pt.h"
}

TEST(PortNumber, DecimalOrHexadecimal)
{
	uint64_t v = 1;

	EXPECT_EQ(pt_number("010", 99, &v), 0);
	EXPECT_EQ(v, 10u);
	EXPECT_EQ(pt_number("0xFfffffff", UINT32_MAX, &v), 0);
	EXPECT_EQ(v, UINT32_MAX);
	for (const char *bad : { "", "x", "0x", "-1", "+1", " 1", "1 ", "1k", "0x-1", "0xg", "100",
				 "18446744073709551616" })
		EXPECT_EQ(pt_number(bad, 99, &v), -EINVAL) << bad;
	EXPECT_EQ(v, UINT32_MAX) << "written though it was refused";
}

/* Each byte counts, also those of the last word, which is incomplete. */
TEST(PortPattern, EveryByteIsVerified)
{
	std::vector<unsigned char> buf(29);
	size_t wrong = 9, first = 9;

	pt_pattern(buf.data(), buf.size(), 7);
	ASSERT_EQ(pt_verify(buf.data(), buf.size(), 7, &wrong, &first), 0);
	EXPECT_EQ(wrong, 0u);
	for (size_t i = 0; i < buf.size(); i++) {
		buf[i] ^= 1;
		ASSERT_EQ(pt_verify(buf.data(), buf.size(), 7, &wrong, &first), 0);
		EXPECT_EQ(wrong, 1u);
		EXPECT_EQ(first, i);
		buf[i] ^= 1;
	}
}

/* Memory of an earlier run, and memory that nothing has arrived in, are wrong nearly everywhere. */
TEST(PortPattern, OtherMemoryIsWrong)
{
	std::vector<unsigned char> buf(4096);
	size_t wrong = 0, first;

	ASSERT_EQ(pt_verify(buf.data(), buf.size(), 7, &wrong, &first), 0);
	EXPECT_GT(wrong, 4000u);
	pt_pattern(buf.data(), buf.size(), 8);
	ASSERT_EQ(pt_verify(buf.data(), buf.size(), 7, &wrong, &first), 0);
	EXPECT_GT(wrong, 3500u);
}
