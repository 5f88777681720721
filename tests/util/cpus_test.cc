// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

extern "C" {
#include "u_cpus.h"
}

namespace {

struct Parsed {
	int rc;
	std::vector<int> cpus;
};

Parsed parse(const char *text, unsigned most = 8)
{
	int cpus[U_CPUS_END];
	unsigned count = 0;
	int rc = u_cpus_parse(text, most, cpus, &count);

	return { rc, std::vector<int>(cpus, cpus + count) };
}

using Cpus = std::vector<int>;

TEST(Cpus, ListsAndRanges)
{
	EXPECT_EQ(parse("").cpus, Cpus{});
	EXPECT_EQ(parse("0").cpus, Cpus{ 0 });
	EXPECT_EQ(parse("3,2").cpus, (Cpus{ 3, 2 }));
	EXPECT_EQ(parse("2-5").cpus, (Cpus{ 2, 3, 4, 5 }));
	EXPECT_EQ(parse("0,4-6,1").cpus, (Cpus{ 0, 4, 5, 6, 1 }));
	EXPECT_EQ(parse("7-7").cpus, Cpus{ 7 });
	EXPECT_EQ(parse("1023").cpus, Cpus{ 1023 });
	EXPECT_EQ(parse("0-7").cpus.size(), 8u);
	EXPECT_EQ(parse("0-1023", U_CPUS_END).cpus.size(), 1024u);
}

TEST(Cpus, Refused)
{
	for (const char *text : { ",", "1,", ",1", "1,,2", "-", "1-", "-1", "5-2", "a", "1a", "1 ",
				  " 1", "1-2-3", "0x1", "1024", "99999999999999999999", "1;2" })
		EXPECT_EQ(parse(text).rc, -EINVAL) << text;
	for (const char *text : { "0-8", "0,1,2,3,4,5,6,7,8", "0-1023" }) {
		EXPECT_EQ(parse(text).rc, -E2BIG) << text;
		EXPECT_EQ(parse(text).cpus, Cpus{}) << text;
	}
}

} // namespace
