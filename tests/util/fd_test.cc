// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>

extern "C" {
#include "u_fd.h"
}

TEST(FdError, NamesTheLimitAndWhatRaisesIt)
{
	char text[U_FD_ERROR];
	rlimit rl;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	EXPECT_EQ(std::string(u_fd_error(EMFILE, text)), "no file descriptor left (limit " +
								 std::to_string(rl.rlim_cur) +
								 "); raise it with ulimit -n");
	EXPECT_NE(strstr(u_fd_error(ENFILE, text), "fs.file-max"), nullptr);
	EXPECT_STREQ(u_fd_error(ENOMEM, text), strerror(ENOMEM));
}

TEST(FdError, TheLongestLimitFits)
{
	char text[U_FD_ERROR];
	rlimit before, low;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 8;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	std::string told = u_fd_error(EMFILE, text);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	EXPECT_EQ(told, "no file descriptor left (limit 8); raise it with ulimit -n");
	EXPECT_LT(told.size() + strlen("18446744073709551615"), sizeof(text));
}

TEST(FdError, ScarceIsWhatCannotBeRaised)
{
	rlimit rl;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_max == RLIM_INFINITY)
		GTEST_SKIP() << "there is no limit";
	EXPECT_FALSE(u_fd_scarce(rl.rlim_max));
	EXPECT_TRUE(u_fd_scarce(rl.rlim_max + 1));
}
