// SPDX-License-Identifier: BSD-2-Clause
// The grammar of sizes in the environment (OpenSHMEM 1.6, section 8), and variables that are refused.
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "comma.h"

extern "C" {
#include "osh_env.h"
}

namespace {

size_t Size(const char *text)
{
	size_t bytes = 12345;

	return osh_env_size(text, &bytes) ? bytes : SIZE_MAX;
}

TEST(Env, SizesOfTheSpecification)
{
	EXPECT_EQ(Size("0"), 0u);
	EXPECT_EQ(Size("65536"), 65536u);
	EXPECT_EQ(Size("20k"), 20480u);
	EXPECT_EQ(Size("20K"), 20480u);
	EXPECT_EQ(Size("20kk"), 20480u); // text after the letter is ignored
	EXPECT_EQ(Size("3m"), 3u << 20);
	EXPECT_EQ(Size("2G"), size_t(2) << 30);
	EXPECT_EQ(Size("1t"), size_t(1) << 40);
	EXPECT_EQ(Size("0.5m"), 524288u);
	EXPECT_EQ(Size(".5m"), 524288u);
	EXPECT_EQ(Size("3.1M"), 3250586u); // rounded up
	EXPECT_EQ(Size("1.0000001"), 2u);
}

TEST(Env, WhatIsNoSizeIsRefused)
{
	for (const char *text : { "", "m", "x", "-1", "-0.5m", "nan", "inf", "0x10", "12q", "1e400",
				  "99999999999999t", "." })
		EXPECT_EQ(Size(text), SIZE_MAX) << text;
}

struct Variables : testing::Test {
	void SetUp() override
	{
		for (const char *v :
		     { "SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_HEAP_SIZE",
		       "XT_SYMMETRIC_HEAP_SIZE", "SHMEM_VIADUCT_BARRIER", "SHMEM_VIADUCT_REDUCE",
		       "SHMEM_DEBUG", "SMA_DEBUG", "SHMEM_VIADUCT_HEAP_MAX" })
			unsetenv(v);
	}
	void TearDown() override { SetUp(); }
	char error[BOOT_TEXT_MAX] = "";
};

TEST_F(Variables, AlgorithmsAreWords)
{
	setenv("SHMEM_VIADUCT_BARRIER", "Ring", 1);
	setenv("SHMEM_VIADUCT_REDUCE", "rounds", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.barrier, OSH_BARRIER_RING);
	EXPECT_EQ(osh_env.reduce, OSH_REDUCE_ROUNDS);
	for (const char *wrong : { "round", "", "flat,", "flat, rounds", "0" }) {
		setenv("SHMEM_VIADUCT_REDUCE", wrong, 1);
		EXPECT_NE(osh_env_read(error), 0) << wrong;
	}
	unsetenv("SHMEM_VIADUCT_BARRIER");
	unsetenv("SHMEM_VIADUCT_REDUCE");
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.barrier, OSH_AUTO);
	EXPECT_EQ(osh_env.reduce, OSH_AUTO);
}

TEST_F(Variables, TheNewerNameCounts)
{
	setenv("SMA_SYMMETRIC_SIZE", "1m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_bytes, 1u << 20);
	setenv("SHMEM_SYMMETRIC_SIZE", "2m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_bytes, 2u << 20);
}

TEST_F(Variables, TheBoundOfTheHeap)
{
	setenv("SHMEM_SYMMETRIC_SIZE", "2m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_max, 16u << 20) << "eight times the size";
	setenv("SHMEM_VIADUCT_HEAP_MAX", "5m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_max, 5u << 20);
	for (const char *less : { "0", "1m", "2m" }) {
		setenv("SHMEM_VIADUCT_HEAP_MAX", less, 1);
		ASSERT_EQ(osh_env_read(error), 0);
		EXPECT_EQ(osh_env.heap_max, 2u << 20) << less;
	}
	setenv("SHMEM_VIADUCT_HEAP_MAX", "plenty", 1);
	EXPECT_NE(osh_env_read(error), 0);
	EXPECT_NE(std::string(error).find("SHMEM_VIADUCT_HEAP_MAX is \"plenty\""),
		  std::string::npos);
}

TEST_F(Variables, TheHeapHasWholePages)
{
	for (const char *size : { "1", "4095", "4096" }) {
		setenv("SHMEM_SYMMETRIC_SIZE", size, 1);
		unsetenv("SHMEM_VIADUCT_HEAP_MAX");
		ASSERT_EQ(osh_env_read(error), 0);
		EXPECT_EQ(osh_env.heap_bytes, 4096u) << size;
		EXPECT_EQ(osh_env.heap_max, 8u * 4096) << size;
		setenv("SHMEM_VIADUCT_HEAP_MAX", "0", 1);
		ASSERT_EQ(osh_env_read(error), 0);
		EXPECT_EQ(osh_env.heap_max, 4096u) << size;
		setenv("SHMEM_VIADUCT_HEAP_MAX", "4097", 1);
		ASSERT_EQ(osh_env_read(error), 0);
		EXPECT_EQ(osh_env.heap_max, 8192u) << size;
	}
}

TEST_F(Variables, NamesOfOtherLibrariesCountLast)
{
	setenv("XT_SYMMETRIC_HEAP_SIZE", "4m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_bytes, 4u << 20);
	setenv("SHMEM_SYMMETRIC_HEAP_SIZE", "3m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_bytes, 3u << 20);
	setenv("SMA_SYMMETRIC_SIZE", "2m", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_EQ(osh_env.heap_bytes, 2u << 20);
}

TEST(Size, ADecimalPointInEachLocale)
{
	Comma comma;
	size_t bytes = 0;

	if (!comma.there)
		GTEST_SKIP() << "no locale with a decimal comma";
	ASSERT_EQ(strtod("1,5", nullptr), 1.5);
	EXPECT_TRUE(osh_env_size("1.5k", &bytes));
	EXPECT_EQ(bytes, 1536u);
	EXPECT_TRUE(osh_env_size(".5g", &bytes));
	EXPECT_EQ(bytes, 512u << 20);
}

TEST_F(Variables, ARefusalNamesVariableAndValue)
{
	setenv("SHMEM_SYMMETRIC_HEAP_SIZE", "lots", 1);
	EXPECT_NE(osh_env_read(error), 0);
	EXPECT_NE(std::string(error).find("SHMEM_SYMMETRIC_HEAP_SIZE is \"lots\""),
		  std::string::npos);
	unsetenv("SHMEM_SYMMETRIC_HEAP_SIZE");
	setenv("SHMEM_SYMMETRIC_SIZE", "much", 1);
	EXPECT_NE(osh_env_read(error), 0);
	EXPECT_NE(std::string(error).find("SHMEM_SYMMETRIC_SIZE is \"much\""), std::string::npos);
	unsetenv("SHMEM_SYMMETRIC_SIZE");
	setenv("SHMEM_VIADUCT_BARRIER", "magic", 1);
	EXPECT_NE(osh_env_read(error), 0);
	EXPECT_NE(std::string(error).find("\"magic\""), std::string::npos);
}

TEST_F(Variables, DebugIsOnUnlessZero)
{
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_FALSE(osh_env.debug);
	setenv("SMA_DEBUG", "0", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_FALSE(osh_env.debug);
	setenv("SHMEM_DEBUG", "1", 1);
	ASSERT_EQ(osh_env_read(error), 0);
	EXPECT_TRUE(osh_env.debug);
}

} // namespace
