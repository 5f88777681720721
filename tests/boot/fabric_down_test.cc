// SPDX-License-Identifier: BSD-2-Clause
// The end of the hosts of a job, with the test as the clock.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdarg>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

extern "C" {
#include "run_fabric.h"

int64_t run_now(void);
void run_say(const char *fmt, ...);
const char *run_error(int err);
int __real_poll(pollfd *fds, nfds_t n, int ms);
int __wrap_poll(pollfd *fds, nfds_t n, int ms);
int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);
}

namespace {

int64_t now = 1;
int hold[2]; // vi_fabric ends when the other end is closed
int waits, killed;

} // namespace

int64_t run_now(void)
{
	return now;
}

void run_say(const char *, ...) {}

const char *run_error(int)
{
	return "";
}

// The first wait takes three minutes; then vi_fabric ends.
int __wrap_poll(pollfd *fds, nfds_t n, int)
{
	if (waits++ == 0) {
		now += INT64_C(180000000000);
		return 0;
	}
	if (waits == 2)
		close(hold[1]);
	return __real_poll(fds, n, -1);
}

int __wrap_kill(pid_t pid, int number)
{
	killed += number == SIGKILL;
	return __real_kill(pid, number);
}

TEST(FabricDown, TheTimeGrowsWithTheHosts)
{
	run_fabric f = {};
	sigset_t none;

	ASSERT_EQ(pipe(hold), 0);
	signal(SIGTERM, SIG_IGN);
	f.pid = fork();
	if (f.pid == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
	}
	ASSERT_GT(f.pid, 0);
	sigemptyset(&none);
	f.signals = signalfd(-1, &none, SFD_CLOEXEC | SFD_NONBLOCK);
	f.out = dup(hold[0]);
	f.up = true;
	f.hosts = 8;
	snprintf(f.program, sizeof(f.program), "/bin/false");
	run_fabric_down(&f);
	EXPECT_EQ(killed, 0);
	EXPECT_EQ(waits, 2);
	EXPECT_FALSE(f.up);
	close(f.signals);
	close(hold[0]);
}
