/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "eventually.h"
#include "lingering.h"
#include "probes.h"

extern "C" {
#include "u_close.h"
}

namespace {

bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

// Another thread makes closes that take long; the peer ends them.
TEST(Close, ApartTakesAsLongAsItLikes)
{
	Lingering l;

	ASSERT_TRUE(l.ok());
	u_close_apart(std::exchange(l.fd, -1));
	EXPECT_EQ(u_close_busy(), 1u);
	close(std::exchange(l.peer, -1));
	EXPECT_TRUE(eventually([] { return u_close_busy() == 0; }));
}

TEST(Close, MemoryOfOthersIsClosedAtOnceAndTheRestApart)
{
	int memory = memfd_create("close", MFD_CLOEXEC);
	Lingering l;

	ASSERT_TRUE(l.ok());
	u_close_foreign(memory);
	EXPECT_FALSE(is_open(memory));
	EXPECT_EQ(u_close_busy(), 0u);
	u_close_foreign(-1);
	u_close_foreign(std::exchange(l.fd, -1));
	EXPECT_EQ(u_close_busy(), 1u);
	close(std::exchange(l.peer, -1));
	EXPECT_TRUE(eventually([] { return u_close_busy() == 0; }));
}

// A child of fork() lacks the threads that close its parent's descriptors, and closes its own itself.
TEST(Close, AChildBeginsAnew)
{
#ifdef __SANITIZE_THREAD__
	GTEST_SKIP() << "the sanitizer lets no child of a process with threads start one";
#endif
	Lingering l;
	int status = -1;

	ASSERT_TRUE(l.ok());
	u_close_apart(std::exchange(l.fd, -1));
	ASSERT_EQ(u_close_busy(), 1u);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		u_close_forked();
		if (u_close_busy() != 0)
			_exit(1);
		u_close_apart(dup(0));
		_exit(eventually([] { return u_close_busy() == 0; }) ? 0 : 2);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	close(std::exchange(l.peer, -1));
	EXPECT_TRUE(eventually([] { return u_close_busy() == 0; }));
}

// Another thread closes the socket only if a descriptor waits in its queue.
TEST(Close, HangingUpChecksWhatIsUnread)
{
	if (!probe_refused_fds_are_closed())
		GTEST_SKIP() << "here a check takes descriptors that it has no room for";
	for (bool with : { false, true }) {
		int pair[2];
		char byte = 'x';
		Lingering l;

		ASSERT_TRUE(l.ok());
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		ASSERT_EQ(send(pair[1], &byte, 1, 0), 1);
		if (with) {
			ASSERT_EQ(l.pass(pair[1], &byte, 1), 0);
		}
		u_hang_up(pair[0]);
		/* The end, or a reset if it was closed with unread data. */
		EXPECT_LE(recv(pair[1], &byte, 1, 0), 0) << "its peer notices at once";
		EXPECT_EQ(u_close_busy(), with ? 1u : 0u);
		close(std::exchange(l.peer, -1));
		EXPECT_TRUE(eventually([] { return u_close_busy() == 0; }));
		close(pair[1]);
	}
}

// The kernel reports a reset before the messages that came earlier; one of these may have a descriptor.
TEST(Close, HangingUpPeeksAgainAfterAReset)
{
	if (!probe_refused_fds_are_closed())
		GTEST_SKIP() << "here a check takes descriptors that it has no room for";
	int pair[2];
	char byte = 'x';
	Lingering l;

	ASSERT_TRUE(l.ok());
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ASSERT_EQ(Lingering::send_fds(pair[1], &byte, 1, l.fd), 0);
	close(std::exchange(l.fd, -1)); /* the one in the queue is the last reference */
	ASSERT_EQ(send(pair[0], &byte, 1, 0), 1);
	close(pair[1]); /* with unread data: a reset */

	std::atomic<bool> back = false;
	std::thread hanging([&] {
		u_hang_up(pair[0]);
		back = true;
	});
	EXPECT_TRUE(eventually([&] { return back.load(); }));
	close(std::exchange(l.peer, -1));
	hanging.join();
	EXPECT_TRUE(eventually([] { return u_close_busy() == 0; }));
}

} // namespace
