/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>

#include <string>
#include <thread>
#include <vector>

#include "env_guard.h"

static size_t count(const std::string &text, const std::string &part)
{
	size_t n = 0;

	for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
		n++;
	return n;
}

TEST(CfgTable, EntriesAreCompleteAndNamesUnique)
{
	for (int i = 0; i < U_CFG_COUNT; i++) {
		const struct u_cfg_entry *e = &u_cfg_table[i];

		ASSERT_NE(e->name, nullptr) << i;
		EXPECT_EQ(strncmp(e->name, "VIADUCT_", 8), 0) << e->name;
		EXPECT_NE(e->fallback, nullptr) << e->name;
		ASSERT_NE(e->help, nullptr) << e->name;
		EXPECT_NE(e->help[0], '\0') << e->name;
		EXPECT_EQ(e->type == U_CFG_ENUM, e->words != nullptr) << e->name;
		for (int j = 0; j < i; j++)
			EXPECT_STRNE(e->name, u_cfg_table[j].name);
	}
}

/* The default is a value a user could have set. */
TEST(CfgTable, EveryDefaultIsAccepted)
{
	EnvGuard env;

	for (int i = 0; i < U_CFG_COUNT; i++) {
		if (i == U_CFG_LOG_FILE || u_cfg_table[i].fallback[0] == '\0')
			continue;
		env.set(u_cfg_table[i].name, u_cfg_table[i].fallback);
		ASSERT_EQ(u_cfg_load(), 0) << u_cfg_table[i].name;
		EXPECT_EQ(u_cfg_origin((enum u_cfg_id)i), U_CFG_FROM_ENV);
	}
	EXPECT_EQ(env.log(), "");
}

TEST(Cfg, DefaultsWithoutEnvironment)
{
	EnvGuard env;

	ASSERT_EQ(u_cfg_load(), 0);
	EXPECT_STREQ(u_cfg_str(U_CFG_FABRIC), "default");
	EXPECT_STREQ(u_cfg_str(U_CFG_HOST), "");
	EXPECT_STREQ(u_cfg_str(U_CFG_PORT), "emu");
	EXPECT_STREQ(u_cfg_str(U_CFG_AGENT), "");
	EXPECT_STREQ(u_cfg_str(U_CFG_LOG), "warn");
	EXPECT_EQ(u_cfg_uint(U_CFG_DEFAULT_NIC), 1u);
	EXPECT_EQ(u_cfg_uint(U_CFG_SEED), 0u);
	EXPECT_EQ(u_cfg_uint(U_CFG_SLOTS), 128u);
	EXPECT_EQ(u_cfg_uint(U_CFG_RING_BYTES), 256u * 1024);
	EXPECT_EQ(u_cfg_uint(U_CFG_WINDOW_BYTES), UINT64_C(4) << 30);
	EXPECT_EQ(u_cfg_uint(U_CFG_DOORBELLS), 16u);
	EXPECT_EQ(u_cfg_uint(U_CFG_SCRATCHPADS), 8u);
	EXPECT_STREQ(u_cfg_table[U_CFG_WAIT].words[u_cfg_uint(U_CFG_WAIT)], "adaptive");
	EXPECT_EQ(u_cfg_origin(U_CFG_SLOTS), U_CFG_FROM_DEFAULT);
}

TEST(Cfg, EnvironmentWins)
{
	EnvGuard env;

	env.set("VIADUCT_SLOTS", "64");
	env.set("VIADUCT_RING_BYTES", "1M");
	env.set("VIADUCT_WAIT", "block");
	env.set("VIADUCT_DEFAULT_NIC", "no");
	env.set("VIADUCT_FABRIC", "alice:lab");
	ASSERT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(u_cfg_uint(U_CFG_SLOTS), 64u);
	EXPECT_STREQ(u_cfg_str(U_CFG_SLOTS), "64");
	EXPECT_EQ(u_cfg_origin(U_CFG_SLOTS), U_CFG_FROM_ENV);
	EXPECT_EQ(u_cfg_uint(U_CFG_RING_BYTES), 1u << 20);
	EXPECT_STREQ(u_cfg_str(U_CFG_RING_BYTES), "1M");
	EXPECT_STREQ(u_cfg_table[U_CFG_WAIT].words[u_cfg_uint(U_CFG_WAIT)], "block");
	EXPECT_EQ(u_cfg_uint(U_CFG_DEFAULT_NIC), 0u);
	EXPECT_STREQ(u_cfg_str(U_CFG_FABRIC), "alice:lab");
}

TEST(Cfg, EmptyCountsAsUnset)
{
	EnvGuard env;

	env.set("VIADUCT_SLOTS", "");
	ASSERT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(u_cfg_uint(U_CFG_SLOTS), 128u);
	EXPECT_EQ(u_cfg_origin(U_CFG_SLOTS), U_CFG_FROM_DEFAULT);
}

TEST(Cfg, ValuesAreReadOnce)
{
	EnvGuard env;

	ASSERT_EQ(u_cfg_load(), 0);
	setenv("VIADUCT_SLOTS", "64", 1);
	ASSERT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(u_cfg_uint(U_CFG_SLOTS), 128u);
}

struct Bad {
	const char *name;
	const char *value;
};

static void PrintTo(const Bad &bad, std::ostream *out)
{
	*out << bad.name << "='" << bad.value << "'";
}

class CfgBad : public testing::TestWithParam<Bad> {};

TEST_P(CfgBad, IsRefusedWithNameAndText)
{
	EnvGuard env;
	Bad bad = GetParam();

	env.set(bad.name, bad.value);
	EXPECT_EQ(u_cfg_load(), -EINVAL);
	EXPECT_EQ(u_cfg_load(), -EINVAL) << "the first result is kept";
	EXPECT_EQ(count(env.log(), "\n"), 1u) << env.log();
	EXPECT_NE(env.log().find(std::string(bad.name) + " is '" + bad.value + "'"),
		  std::string::npos)
		<< env.log();
}

INSTANTIATE_TEST_SUITE_P(
	Values, CfgBad,
	testing::Values(Bad{ "VIADUCT_SLOTS", "100" }, Bad{ "VIADUCT_SLOTS", "4" },
			Bad{ "VIADUCT_SLOTS", "8192" }, Bad{ "VIADUCT_SLOTS", "128x" },
			Bad{ "VIADUCT_SLOTS", "-128" }, Bad{ "VIADUCT_SLOTS", " 128" },
			Bad{ "VIADUCT_SLOTS", "0" }, Bad{ "VIADUCT_SLOTS", "64k" },
			Bad{ "VIADUCT_RING_BYTES", "2k" }, Bad{ "VIADUCT_RING_BYTES", "128M" },
			Bad{ "VIADUCT_RING_BYTES", "5000" }, Bad{ "VIADUCT_RING_BYTES", "big" },
			Bad{ "VIADUCT_WINDOW_BYTES", "18446744073709551616" },
			Bad{ "VIADUCT_WINDOW_BYTES", "1" }, Bad{ "VIADUCT_DOORBELLS", "1" },
			Bad{ "VIADUCT_DOORBELLS", "33" }, Bad{ "VIADUCT_SCRATCHPADS", "7" },
			Bad{ "VIADUCT_SCRATCHPADS", "65" }, Bad{ "VIADUCT_SEED", "0x" },
			Bad{ "VIADUCT_WAIT", "Spin" }, Bad{ "VIADUCT_WAIT", "sleep" },
			Bad{ "VIADUCT_DEFAULT_NIC", "maybe" }, Bad{ "VIADUCT_LOG", "loud" },
			Bad{ "VIADUCT_LOG", "warn,nvi" }, Bad{ "VIADUCT_LOG", "warn,=debug" },
			Bad{ "VIADUCT_LOG", "warn,zz=debug" },
			Bad{ "VIADUCT_LOG", "warn,por=debug" }, Bad{ "VIADUCT_DEVICE", "nic0" },
			Bad{ "VIADUCT_DEVICE", "==,,=" }, Bad{ "VIADUCT_DEVICE", "nic0=" },
			Bad{ "VIADUCT_DEVICE", "=host0" },
			Bad{ "VIADUCT_DEVICE", "nic0=host0,nic1" },
			Bad{ "VIADUCT_DEVICE", "nic0=host0,," },
			Bad{ "VIADUCT_DEVICE", "nic0=a=b" }));

TEST(Cfg, EveryAreaAndPairsAreAccepted)
{
	EnvGuard env;

	env.set("VIADUCT_LOG",
		"warn,vip=debug,vi=info,nvi=error,ag=warn,rl=debug,port=debug,u=info");
	env.set("VIADUCT_DEVICE", "nic0=host0,/dev/clanvi0=1");
	EXPECT_EQ(u_cfg_load(), 0);
	EXPECT_STREQ(u_cfg_str(U_CFG_DEVICE), "nic0=host0,/dev/clanvi0=1");
}

TEST(Cfg, ARefusedAreaIsToldTheKnownOnes)
{
	EnvGuard env;

	env.set("VIADUCT_LOG", "warn,zz=debug");
	EXPECT_EQ(u_cfg_load(), -EINVAL);
	EXPECT_NE(env.log().find("areas vip, vi, nvi, ag, rl, port, u"), std::string::npos)
		<< env.log();
}

TEST(Cfg, EveryBadVariableIsReported)
{
	EnvGuard env;

	env.set("VIADUCT_SLOTS", "100");
	env.set("VIADUCT_WAIT", "never");
	EXPECT_EQ(u_cfg_load(), -EINVAL);
	EXPECT_EQ(count(env.log(), "\n"), 2u) << env.log();
	EXPECT_NE(env.log().find("spin, yield, block, adaptive"), std::string::npos) << env.log();
	EXPECT_NE(env.log().find("a power of two from 8 to 4096"), std::string::npos) << env.log();
	EXPECT_EQ(u_cfg_uint(U_CFG_SLOTS), 128u) << "the default stays in effect";
}

TEST(Cfg, UnknownNameIsWarnedOfOnceWithTheNearestName)
{
	EnvGuard env;

	env.set("VIADUCT_SLOT", "64");
	EXPECT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(count(env.log(), "VIADUCT_SLOT is not"), 1u) << env.log();
	EXPECT_EQ(count(env.log(), "did you mean VIADUCT_SLOTS?"), 1u) << env.log();
}

TEST(Cfg, UnknownNameFarFromAllPointsToTheList)
{
	EnvGuard env;

	env.set("VIADUCT_SOMETHING_ELSE_ENTIRELY", "1");
	env.set("VIADUCT_" + std::string(200, 'X'), "1");
	EXPECT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(count(env.log(), "see vi_info --env"), 2u) << env.log();
	EXPECT_EQ(count(env.log(), "did you mean"), 0u) << env.log();
}

TEST(Cfg, VariablesOfScriptsAndOfTheLauncherAreNoMistake)
{
	EnvGuard env;

	env.set("VIADUCT_BUILD", "build");
	env.set("VIADUCT_OSHRUN", "3:4");
	EXPECT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(env.log(), "");
}

TEST(Cfg, ForeignNamesAreNoBusinessOfOurs)
{
	EnvGuard env;

	setenv("VIADUC_SLOTS", "1", 1);
	setenv("XVIADUCT_SLOTS", "1", 1);
	EXPECT_EQ(u_cfg_load(), 0);
	EXPECT_EQ(env.log(), "");
	unsetenv("VIADUC_SLOTS");
	unsetenv("XVIADUCT_SLOTS");
}

TEST(Cfg, ThreadsLoadOnce)
{
	EnvGuard env;
	std::vector<std::thread> threads;
	std::vector<int> results(8, 1);

	env.set("VIADUCT_SLOTS", "100");
	for (size_t i = 0; i < results.size(); i++)
		threads.emplace_back([&results, i] { results[i] = u_cfg_load(); });
	for (auto &thread : threads)
		thread.join();
	for (int result : results)
		EXPECT_EQ(result, -EINVAL);
	EXPECT_EQ(count(env.log(), "\n"), 1u) << env.log();
}

TEST(CfgBytes, Accepted)
{
	struct {
		const char *text;
		uint64_t bytes;
	} const cases[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "64k", 65536 },
		{ "64K", 65536 },
		{ "1M", UINT64_C(1) << 20 },
		{ "2g", UINT64_C(2) << 30 },
		{ "3T", UINT64_C(3) << 40 },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", UINT64_C(16777215) << 40 },
	};

	for (auto &c : cases) {
		uint64_t v = 7;

		EXPECT_EQ(u_cfg_parse_bytes(c.text, &v), 0) << c.text;
		EXPECT_EQ(v, c.bytes) << c.text;
	}
}

TEST(CfgBytes, RefusedAndOutputUntouched)
{
	for (const char *text : { "", "k", "-1", "+1", "1kB", "1 k", "0x10", "1.5M", "1P",
				  "18446744073709551616", "16777216T", "1\n" }) {
		uint64_t v = 7;

		EXPECT_EQ(u_cfg_parse_bytes(text, &v), -EINVAL) << text;
		EXPECT_EQ(v, 7u) << text;
	}
}

TEST(CfgSeed, FullRangeAndHexadecimal)
{
	EnvGuard env;

	env.set("VIADUCT_SEED", "18446744073709551615");
	EXPECT_EQ(u_cfg_uint(U_CFG_SEED), UINT64_MAX);
	env.set("VIADUCT_SEED", "0xDeadBeef");
	EXPECT_EQ(u_cfg_uint(U_CFG_SEED), 0xdeadbeefu);
}
