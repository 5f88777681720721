// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "limit.h"

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

/* A process reads the variable once, so each value needs a process of its own. */
static int kept(const char *from)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setenv("VIADUCT_FD_FROM", from, 1);
		u_fd_reset();
		int fd = u_fd_above_std(open("/dev/null", O_RDONLY | O_CLOEXEC));
		bool closes = fcntl(fd, F_GETFD) == FD_CLOEXEC;

		_exit(fd < 0 || !closes ? 255 : fd >= 100 && fd < 200 ? 100 : fd < 100 ? 1 : 2);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

TEST(Fd, KeptNumbersBeginWhereTheVariableSays)
{
	EXPECT_EQ(kept("100"), 100);
	EXPECT_EQ(kept("3"), 1);
	EXPECT_EQ(kept(""), 1);
}

TEST(Fd, OneThatCannotBeMovedIsKept)
{
	rlimit before, low;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 100;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	EXPECT_EQ(kept("100"), 1);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
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

// A limit on memory that is far above what the test uses.
class MemoryLimit {
public:
	MemoryLimit(int which, rlim_t bytes) : which_(which)
	{
		getrlimit(which, &before_);
		rlimit low = before_;
		low.rlim_cur = bytes;
		good = setrlimit(which, &low) == 0 && getrlimit(which, &low) == 0 &&
		       low.rlim_cur == bytes;
	}
	~MemoryLimit() { setrlimit(which_, &before_); }
	bool good;

private:
	int which_;
	rlimit before_;
};

TEST(FdError, LimitsOfMemoryAreNamed)
{
	const rlim_t tib = rlim_t(1) << 40;
	char text[U_FD_ERROR];

	if (u_memory_limits(text) != nullptr)
		GTEST_SKIP() << text;
	EXPECT_STREQ(u_fd_error(ENOMEM, text), strerror(ENOMEM));
	MemoryLimit data(RLIMIT_DATA, tib);
	if (!data.good)
		GTEST_SKIP() << "a limit of memory does not hold here";
	EXPECT_STREQ(u_fd_error(ENOMEM, text),
		     "no memory left, and ulimit -d is 1073741824; raise it");
	if (kSanitizerFactor > 1)
		return; // these need more addresses than such a limit leaves
	MemoryLimit space(RLIMIT_AS, 2 * tib);
	ASSERT_TRUE(space.good);
	std::string told = u_fd_error(ENOMEM, text);
	EXPECT_EQ(told,
		  "no memory left, and ulimit -d is 1073741824, -v is 2147483648; raise them");
	EXPECT_LT(told.size() + 2 * strlen("18014398509481983") - strlen("10737418242147483648"),
		  sizeof(text));
}

TEST(FdError, SizeOfFilesNamesTheLimit)
{
	char text[U_FD_ERROR];
	rlimit before;

	ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	if (before.rlim_cur != RLIM_INFINITY)
		GTEST_SKIP() << "there is a limit";
	EXPECT_STREQ(u_fd_error(EFBIG, text), strerror(EFBIG));
	MemoryLimit files(RLIMIT_FSIZE, 1L << 40);
	ASSERT_TRUE(files.good);
	EXPECT_STREQ(u_fd_error(EFBIG, text),
		     "a file may have 1099511627776 bytes only; raise the limit with ulimit -f");
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
