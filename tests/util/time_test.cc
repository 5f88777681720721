// SPDX-License-Identifier: BSD-2-Clause
// The units that alone read clocks, draw random numbers and poll.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

extern "C" {
#include "u_poll.h"
#include "u_random.h"
#include "u_time.h"

ssize_t __real_getrandom(void *out, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t n, unsigned flags);
}

namespace {

bool no_numbers;	      // the kernel has none yet
std::atomic<unsigned> caught; // signals

uint64_t calendar()
{
	timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return static_cast<uint64_t>(ts.tv_sec) * 1000000000 + static_cast<uint64_t>(ts.tv_nsec);
}

} // namespace

// The linker replaces the function of the C library by it.
ssize_t __wrap_getrandom(void *out, size_t n, unsigned flags)
{
	if (!no_numbers)
		return __real_getrandom(out, n, flags);
	errno = EAGAIN;
	return -1;
}

TEST(Time, ANapEndsNotBeforeItsTime)
{
	int64_t at = u_now_ns() + 1000000;

	u_nap_until(at);
	EXPECT_GE(u_now_ns(), at);
	u_nap_until(at); /* that time has passed already */
	u_nap_until(0);
}

TEST(Time, TheCalendarIsTheKernels)
{
	uint64_t before = calendar(), now = u_calendar_ns();

	EXPECT_LE(before, now);
	EXPECT_LE(now, calendar());
}

TEST(Random, DrawsAsManyBytesAsWereAskedFor)
{
	for (bool none : { false, true }) {
		unsigned char a[33] = {}, b[33] = {};

		no_numbers = none;
		u_random(a, 32);
		u_random(b, 32);
		no_numbers = false;
		EXPECT_NE(memcmp(a, b, 32), 0);
		EXPECT_NE(memcmp(a, a + 8, 8), 0);
		EXPECT_EQ(a[32], 0);
		memset(a, 0, sizeof(a));
		no_numbers = none;
		u_random(a, 3);
		no_numbers = false;
		EXPECT_EQ(a[3], 0);
	}
}

class Poll : public testing::Test {
protected:
	void SetUp() override
	{
		epoll_event ev = {};

		event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		epoll = epoll_create1(EPOLL_CLOEXEC);
		ev.events = EPOLLIN;
		ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &ev), 0);
	}
	void TearDown() override
	{
		close(event);
		close(epoll);
	}

	int poll_once(int64_t deadline)
	{
		pollfd p = { event, POLLIN, 0 };

		return u_poll(&p, 1, deadline);
	}
	int events(int64_t deadline)
	{
		epoll_event ev[2];

		return u_poll_events(epoll, ev, 2, deadline);
	}

	// A signal handler runs in the thread of an endless wait again and again, then the descriptor is written.
	template <typename Wait> void interrupt(Wait wait)
	{
		struct sigaction act = {}, old;
		std::atomic<bool> begun{ false };
		int got = INT_MIN;

		act.sa_handler = [](int) { caught++; };
		ASSERT_EQ(sigaction(SIGUSR1, &act, &old), 0);
		std::thread t([&] {
			begun = true;
			got = wait();
		});
		while (!begun)
			std::this_thread::yield();
		for (unsigned i = 0; i < 50; i++) {
			unsigned before = caught;

			/*
			 * Repeats until it was caught: the thread sanitizer calls a handler only when a wait ends, and
			 * a signal just before the wait does not end it.
			 */
			do {
				pthread_kill(t.native_handle(), SIGUSR1);
				std::this_thread::yield();
			} while (caught == before);
		}
		eventfd_write(event, 1);
		t.join();
		EXPECT_EQ(got, 1);
		sigaction(SIGUSR1, &old, nullptr);
	}

	int event, epoll;
};

TEST_F(Poll, ZeroDoesNotWait)
{
	EXPECT_EQ(poll_once(0), 0);
	EXPECT_EQ(events(0), 0);
	eventfd_write(event, 1);
	EXPECT_EQ(poll_once(0), 1);
	EXPECT_EQ(events(0), 1);
	EXPECT_EQ(poll_once(U_NEVER), 1);
	EXPECT_EQ(events(U_NEVER), 1);
}

TEST_F(Poll, EndsAtItsDeadlineAndNotBefore)
{
	int64_t at = u_now_ns() + 1500000;

	EXPECT_EQ(poll_once(at), 0);
	EXPECT_GE(u_now_ns(), at);
	at = u_now_ns() + 1500000;
	EXPECT_EQ(events(at), 0);
	EXPECT_GE(u_now_ns(), at);
	EXPECT_EQ(events(1), 0) << "has passed";
}

TEST_F(Poll, AFarDeadlineIsNoPastOne)
{
	eventfd_write(event, 1);
	EXPECT_EQ(poll_once(U_NEVER - 1), 1);
	EXPECT_EQ(events(U_NEVER - 1), 1);
}

TEST_F(Poll, AnErrorIsReturned)
{
	epoll_event ev;

	EXPECT_EQ(u_poll_events(event, &ev, 1, 0), -EINVAL) << "no epoll descriptor";
	EXPECT_EQ(u_poll_events(-1, &ev, 1, 0), -EBADF);
	EXPECT_EQ(u_poll(nullptr, INT_MAX, 0), -EINVAL);
}

TEST_F(Poll, GoesOnAfterASignal)
{
	interrupt([this] { return poll_once(U_NEVER); });
}

TEST_F(Poll, OfEventsGoesOnAfterASignal)
{
	interrupt([this] { return events(U_NEVER); });
}
