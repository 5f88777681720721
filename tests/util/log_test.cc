/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <regex.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "env_guard.h"

static std::vector<std::string> lines(const std::string &text)
{
	std::istringstream in(text);
	std::vector<std::string> out;
	std::string line;

	while (std::getline(in, line))
		out.push_back(line);
	return out;
}

/* Does all of `text` match the extended regular expression? */
static bool matches(const std::string &text, const std::string &pattern)
{
	regex_t regex;
	bool match;

	if (regcomp(&regex, ("^" + pattern + "$").c_str(), REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	match = regexec(&regex, text.c_str(), 0, nullptr, 0) == 0;
	regfree(&regex);
	return match;
}

#define STAMP "\\[[0-9]+[.][0-9]{6}\\] "

TEST(Log, LineFormat)
{
	EnvGuard env;

	u_error("port", "link %s is down", "left");
	EXPECT_TRUE(matches(env.log(), STAMP "[0-9]+:[0-9]+ port error: link left is down\n"))
		<< env.log();
}

TEST(Log, LineNamesTheHostWhenKnown)
{
	EnvGuard env;

	env.set("VIADUCT_HOST", "node7");
	u_warn("vi", "x");
	EXPECT_TRUE(matches(env.log(), STAMP "node7 [0-9]+:[0-9]+ vi warn: x\n")) << env.log();
}

TEST(Log, DefaultLevelIsWarn)
{
	EnvGuard env;

	u_error("vi", "one");
	u_warn("vi", "two");
	u_info("vi", "three");
	u_debug("vi", "four");
	EXPECT_EQ(lines(env.log()).size(), 2u) << env.log();
	EXPECT_TRUE(u_log_enabled(U_LOG_WARN, "vi"));
	EXPECT_FALSE(u_log_enabled(U_LOG_INFO, "vi"));
}

/* Lines are written with locks held. */
TEST(Log, IsNoCancellationPoint)
{
	EnvGuard env;
	bool written = false;
	pthread_t thread;
	void *result = nullptr;

	ASSERT_EQ(0, pthread_create(
			     &thread, nullptr,
			     [](void *flag) -> void * {
				     pthread_cancel(pthread_self());
				     u_error("vi", "one");
				     *static_cast<bool *>(flag) = true;
				     pthread_testcancel();
				     return nullptr;
			     },
			     &written));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_TRUE(written);
	EXPECT_EQ(PTHREAD_CANCELED, result);
	EXPECT_EQ(lines(env.log()).size(), 1u) << env.log();
}

TEST(Log, AreasHaveTheirOwnLevel)
{
	EnvGuard env;

	env.set("VIADUCT_LOG", "error,port=debug,ag=info");
	EXPECT_FALSE(u_log_enabled(U_LOG_WARN, "vi"));
	EXPECT_TRUE(u_log_enabled(U_LOG_ERROR, "vi"));
	EXPECT_TRUE(u_log_enabled(U_LOG_DEBUG, "port"));
	EXPECT_TRUE(u_log_enabled(U_LOG_INFO, "ag"));
	EXPECT_FALSE(u_log_enabled(U_LOG_DEBUG, "ag"));
	EXPECT_FALSE(u_log_enabled(U_LOG_WARN, "por"));
}

TEST(Log, ArgumentsOfDisabledLinesAreNotEvaluated)
{
	EnvGuard env;
	int evaluated = 0;

	u_debug("vi", "%d", ++evaluated);
	EXPECT_EQ(evaluated, 0);
}

TEST(Log, OneLineStaysOneLine)
{
	EnvGuard env;

	u_error("vi", "name '%s'", "a\nb\r\x1b[31mc");
	ASSERT_EQ(lines(env.log()).size(), 1u) << env.log();
	EXPECT_NE(env.log().find("name 'a b  [31mc'"), std::string::npos) << env.log();
}

TEST(Log, LongTextIsCutNotSpilt)
{
	EnvGuard env;

	u_error("vi", "%s", std::string(10000, 'y').c_str());
	ASSERT_EQ(lines(env.log()).size(), 1u);
	EXPECT_LE(env.log().size(), 1024u);
	EXPECT_GT(env.log().size(), 900u);
	EXPECT_EQ(env.log().back(), '\n');
}

TEST(Log, ErrnoSurvivesAndIsPrintable)
{
	EnvGuard env;

	errno = ENOSPC;
	u_error("vi", "why: %m");
	EXPECT_EQ(errno, ENOSPC);
	EXPECT_NE(env.log().find("why: No space left on device"), std::string::npos) << env.log();
}

TEST(Log, UnusableFileFallsBackToStandardError)
{
	EnvGuard env;

	env.set("VIADUCT_LOG_FILE", "/nonexistent/dir/log");
	testing::internal::CaptureStderr();
	u_error("vi", "still seen");
	std::string seen = testing::internal::GetCapturedStderr();
	EXPECT_NE(seen.find("/nonexistent/dir/log"), std::string::npos) << seen;
	EXPECT_NE(seen.find("vi error: still seen"), std::string::npos) << seen;
}

TEST(Log, FileIsAppendedTo)
{
	EnvGuard env;

	u_error("vi", "first");
	u_cfg_reset();
	u_error("vi", "second");
	EXPECT_EQ(lines(env.log()).size(), 2u) << env.log();
}

TEST(Log, ThreadsDoNotMixLines)
{
	EnvGuard env;
	const int threads = 4, each = 200;
	std::vector<std::thread> pool;
	std::set<std::string> seen;

	for (int t = 0; t < threads; t++)
		pool.emplace_back([t] {
			for (int i = 0; i < each; i++)
				u_error("vi", "thread %d line %d end", t, i);
		});
	for (auto &thread : pool)
		thread.join();
	for (auto &line : lines(env.log())) {
		ASSERT_TRUE(
			matches(line, STAMP "[0-9]+:[0-9]+ vi error: thread [0-9] line [0-9]+ end"))
			<< line;
		seen.insert(line.substr(line.find("thread")));
	}
	EXPECT_EQ(seen.size(), (size_t)threads * each);
}
