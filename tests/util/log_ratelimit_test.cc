// SPDX-License-Identifier: BSD-2-Clause
// Rate limits of the log, by a clock of the test's, and by threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "env_guard.h"

extern "C" {
#include "u_log_spec.h"
#include "u_time.h"
}

namespace {

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kPeriod = U_LOG_RATELIMIT_S * kSecond;

u_log_ratelimit ratelimit(const char *whose = nullptr, u_log_level level = U_LOG_WARN)
{
	u_log_ratelimit g = {};

	g.level = level;
	g.area = "ag";
	g.what = "bad records";
	g.whose = whose;
	return g;
}

// How many of `n` lines pass at `now`; the numbers that they have to report are added to `told`.
unsigned passed(u_log_ratelimit *g, int64_t now, unsigned n, uint64_t *told)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t left_out = 0;

		if (u_log_ratelimit_pass(g, now, &left_out)) {
			count++;
			*told += left_out;
		}
	}
	return count;
}

size_t count_of(const std::string &text, const std::string &what)
{
	size_t n = 0;

	for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
		n++;
	return n;
}

TEST(LogRateLimit, TheFirstOfEachPeriodPass)
{
	u_log_ratelimit g = ratelimit();
	uint64_t told = 0;

	EXPECT_EQ(passed(&g, 0, 100, &told), U_LOG_RATELIMIT_LINES);
	EXPECT_EQ(passed(&g, kPeriod - 1, 100, &told), 0u);
	EXPECT_EQ(told, 0u);
	EXPECT_EQ(passed(&g, kPeriod, 100, &told), U_LOG_RATELIMIT_LINES);
	EXPECT_EQ(told, 200u - U_LOG_RATELIMIT_LINES);
	told = 0;
	EXPECT_EQ(passed(&g, 1000 * kPeriod + 5, 3, &told), 3u);
	EXPECT_EQ(told, 100u - U_LOG_RATELIMIT_LINES);
}

TEST(LogRateLimit, FewLinesPassWithoutAWord)
{
	u_log_ratelimit g = ratelimit();
	uint64_t told = 0;

	for (int i = 0; i < 100; i++)
		EXPECT_EQ(passed(&g, i * kPeriod / U_LOG_RATELIMIT_LINES, 1, &told), 1u) << i;
	EXPECT_EQ(told, 0u);
}

TEST(LogRateLimit, AnOlderReadingOfTheClockOpensNothing)
{
	u_log_ratelimit g = ratelimit();
	uint64_t told = 0;

	EXPECT_EQ(passed(&g, 7 * kPeriod, 20, &told), U_LOG_RATELIMIT_LINES);
	EXPECT_EQ(passed(&g, 7 * kPeriod - 1, 20, &told), 0u);
	EXPECT_EQ(passed(&g, 7 * kPeriod + 1, 20, &told), 0u);
	EXPECT_EQ(u_log_ratelimit_end(&g), 8 * kPeriod);
}

TEST(LogRateLimit, ThreadsLoseNoCountAndPassNoMore)
{
	constexpr unsigned kThreads = 4, kLines = 20000, kPeriods = 50;
	u_log_ratelimit g = ratelimit();
	std::atomic<uint64_t> lines{ 0 }, told{ 0 };
	std::vector<std::thread> threads;

	for (unsigned t = 0; t < kThreads; t++) {
		threads.emplace_back([&] {
			for (unsigned i = 0; i < kLines; i++) {
				uint64_t sum = 0;
				lines += passed(&g, i / (kLines / kPeriods) * kPeriod, 1, &sum);
				told += sum;
			}
		});
	}
	for (std::thread &t : threads)
		t.join();
	EXPECT_EQ(lines + told + atomic_load(&g.left_out), kThreads * kLines);
	EXPECT_LE(lines, kPeriods * U_LOG_RATELIMIT_LINES);
	EXPECT_GE(lines, U_LOG_RATELIMIT_LINES);
}

TEST(LogRateLimit, TheLogIsBoundedAndSaysWhatIsMissing)
{
	EnvGuard env;
	u_log_ratelimit g = ratelimit("of port left");
	int64_t begin = u_now_ns();

	for (int i = 0; i < 5000; i++)
		u_log_ratelimited(&g, "record %d", i);
	uint64_t periods = static_cast<uint64_t>((u_now_ns() - begin) / kPeriod) + 2;
	EXPECT_LE(count_of(env.log(), "warn: record "), periods * U_LOG_RATELIMIT_LINES);
	EXPECT_GE(count_of(env.log(), "warn: record "), U_LOG_RATELIMIT_LINES);
	EXPECT_NE(env.log().find("ag warn: record 0\n"), std::string::npos);
	// Sets the state as if all that had been long ago.
	atomic_store(&g.left_out, uint64_t{ 4711 });
	atomic_store(&g.state, uint64_t{ 1 } << 32 | U_LOG_RATELIMIT_LINES);
	EXPECT_EQ(u_log_ratelimit_tell(&g), U_NEVER);
	EXPECT_NE(env.log().find("ag warn: 4711 more lines about bad records of port left were "
				 "left out\n"),
		  std::string::npos)
		<< env.log();
	EXPECT_EQ(u_log_ratelimit_tell(&g), U_NEVER);
	EXPECT_EQ(count_of(env.log(), "4711"), 1u);
}

TEST(LogRateLimit, OneLineIsSaidInTheSingular)
{
	EnvGuard env;
	u_log_ratelimit g = ratelimit();

	atomic_store(&g.left_out, uint64_t{ 1 });
	u_log_ratelimited(&g, "next");
	EXPECT_NE(env.log().find("1 more line about bad records was left out\n"), std::string::npos)
		<< env.log();
}

TEST(LogRateLimit, ALineThatPassesTellsFirst)
{
	EnvGuard env;
	u_log_ratelimit g = ratelimit();

	atomic_store(&g.left_out, uint64_t{ 3 });
	errno = ENOENT;
	u_log_ratelimited(&g, "next: %m");
	std::string log = env.log();
	EXPECT_LT(log.find("3 more lines about bad records were left out"), log.find("next: "))
		<< log;
	EXPECT_NE(log.find(strerror(ENOENT)), std::string::npos);
}

TEST(LogRateLimit, NothingIsToldWithinThePeriod)
{
	EnvGuard env;
	u_log_ratelimit g = ratelimit();
	int64_t now = u_now_ns();

	EXPECT_EQ(u_log_ratelimit_tell(&g), U_NEVER);
	// A period that ends an hour from now.
	atomic_store(&g.state, static_cast<uint64_t>((now + 3600 * kSecond) / kPeriod) << 32 |
				       U_LOG_RATELIMIT_LINES);
	u_log_ratelimited(&g, "left out");
	EXPECT_EQ(u_log_ratelimit_tell(&g), u_log_ratelimit_end(&g));
	EXPECT_EQ(env.log(), "");
}

TEST(LogRateLimit, ALevelThatIsOffIsNotCounted)
{
	EnvGuard env;
	u_log_ratelimit g = ratelimit(nullptr, U_LOG_INFO);

	for (int i = 0; i < 100; i++)
		u_log_ratelimited(&g, "quiet");
	EXPECT_EQ(atomic_load(&g.left_out), 0u);
	EXPECT_EQ(atomic_load(&g.state), 0u);
	env.set("VIADUCT_LOG", "info");
	u_log_ratelimited(&g, "loud");
	EXPECT_NE(env.log().find("ag info: loud\n"), std::string::npos);
}

} // namespace
