// SPDX-License-Identifier: BSD-2-Clause The output of oshrun when no thread can be started.  The
// linker gives run_sink.c the test's pthread_create().
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

extern "C" {
#include "run_sink.h"

int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
{
	return EAGAIN;
}
}

static bool IsTold()
{
	struct pollfd p = { run_sink_event(), POLLIN, 0 };

	return poll(&p, 1, 0) == 1;
}

TEST(SinkWithoutThread, WritesAndTellsOfErrors)
{
	int fds[2];
	char text[8] = "";

	ASSERT_EQ(pipe(fds), 0);
	run_sink_up(fds[1]);
	run_sink_put(RUN_SINK_UP, "one\n", 4);
	EXPECT_EQ(read(fds[0], text, sizeof(text)), 4);
	EXPECT_STREQ(text, "one\n");
	EXPECT_EQ(run_sink_error(RUN_SINK_UP), 0);
	EXPECT_FALSE(IsTold());

	signal(SIGPIPE, SIG_IGN);
	close(fds[0]);
	run_sink_put(RUN_SINK_UP, "two\n", 4);
	EXPECT_EQ(run_sink_error(RUN_SINK_UP), EPIPE);
	EXPECT_TRUE(IsTold()) << "nobody learns that it cannot be written";
	run_sink_seen();
	run_sink_put(RUN_SINK_UP, "three\n", 6);
	EXPECT_FALSE(IsTold()) << "it is told again and again";
	close(fds[1]);
}
