/* SPDX-License-Identifier: BSD-2-Clause */
#include "machines.h"

#include <cerrno>

TEST(Cpuset, ListsAsText)
{
	for (const char *list :
	     { "0", "1", "63", "64", "0-1", "63-64", "0-2,5,7-9", "8191", "0-8191" })
		EXPECT_EQ(text(cpus(list)), list);
	EXPECT_EQ(text(cpus("3,2")), "2-3");
	EXPECT_EQ(text(cpus("1-4,2-6,6")), "1-6");
	EXPECT_EQ(text({}), "");
}

TEST(Cpuset, ATextThatDoesNotFitSaysSo)
{
	u_cpuset set = cpus("0,2,4,6,8,10");
	char out[12];

	EXPECT_STREQ(u_cpuset_text(&set, out, sizeof(out)), "0,2,4,6...");
	EXPECT_STREQ(u_cpuset_text(&set, out, 4), "...");
	set = cpus("10-11,20-21");
	EXPECT_STREQ(u_cpuset_text(&set, out, sizeof(out)), "10-11...");
}

TEST(Cpuset, Refused)
{
	for (const char *list :
	     { "", ",", "1,", ",1", "1,,2", "-", "1-", "-1", "5-2", "a", "1a", "1 ", " 1", "1-2-3",
	       "0x1", "8192", "0-8192", "99999999999999999999", "1;2" }) {
		u_cpuset set = cpus("7");

		EXPECT_EQ(u_cpuset_parse(list, &set), -EINVAL) << list;
		EXPECT_EQ(text(set), "7") << list;
	}
}

TEST(Cpuset, NumbersOutsideAreLeftOut)
{
	u_cpuset set = {};

	u_cpuset_add(&set, -1);
	u_cpuset_add(&set, U_CPUSET_END);
	EXPECT_TRUE(u_cpuset_empty(&set));
	EXPECT_FALSE(u_cpuset_has(&set, -1));
	EXPECT_FALSE(u_cpuset_has(&set, U_CPUSET_END));
	EXPECT_EQ(u_cpuset_next(&set, -1), -1);
	EXPECT_EQ(u_cpuset_next(&set, U_CPUSET_END), -1);
	u_cpuset_add(&set, U_CPUSET_END - 1);
	EXPECT_EQ(u_cpuset_next(&set, 0), U_CPUSET_END - 1);
	EXPECT_EQ(u_cpuset_count(&set), 1);
}

TEST(Cpuset, Algebra)
{
	u_cpuset a = cpus("0-3,64"), b = cpus("2-5,64"), c;

	EXPECT_TRUE(u_cpuset_meets(&a, &b));
	EXPECT_FALSE(u_cpuset_within(&a, &b));
	c = a;
	u_cpuset_and(&c, &b);
	EXPECT_EQ(text(c), "2-3,64");
	EXPECT_TRUE(u_cpuset_within(&c, &a));
	EXPECT_TRUE(u_cpuset_within(&c, &b));
	c = a;
	u_cpuset_or(&c, &b);
	EXPECT_EQ(text(c), "0-5,64");
	c = a;
	u_cpuset_less(&c, &b);
	EXPECT_EQ(text(c), "0-1");
	EXPECT_FALSE(u_cpuset_meets(&c, &b));
	EXPECT_EQ(u_cpuset_count(&a), 5);
	EXPECT_TRUE(u_cpuset_equal(&a, &a));
	EXPECT_FALSE(u_cpuset_equal(&a, &b));
}
