// SPDX-License-Identifier: BSD-2-Clause vi_fabric waits for links as long as something advances.
// The test answers at the agents' sockets, and time passes only while vi_fabric sleeps, because the
// linker replaces the C library's functions by those below.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

extern "C" {
#include "fab_wait.h"
#include "w_ctl.h"

int __real_poll(pollfd *fds, nfds_t n, int ms);
int __wrap_poll(pollfd *fds, nfds_t n, int ms);
int __real_clock_gettime(clockid_t clock, timespec *ts);
int __wrap_clock_gettime(clockid_t clock, timespec *ts);
}

namespace {

constexpr int64_t kMs = 1000000;

int64_t now_ms = 1000;
std::function<void()> agents_run; // called whenever vi_fabric sleeps; unset: the system's time counts

struct Port {
	const char *name;
	unsigned int peer;
	int64_t up_at; // ms; < 0: never
};

constexpr int64_t kNever = -1;

// An agent that answers `late` ms after it has read a question, one question after the other, as on a busy machine.
class Agent {
public:
	Agent(int sock, std::vector<Port> ports) : sock_(sock), ports_(ports) {}
	~Agent() { hang_up(); }
	int64_t late = 0, stands_until = 0;
	unsigned int questions = 0;

	void run()
	{
		uint8_t buf[W_CTL_MAX];
		w_list ask;

		if (sock_ < 0 || now_ms < stands_until)
			return;
		if (due_ == 0 && recv(sock_, buf, sizeof(buf), MSG_DONTWAIT) == sizeof(ask)) {
			memcpy(&ask, buf, sizeof(ask));
			EXPECT_EQ(ask.what, unsigned(W_LIST_PORTS));
			asked_ = ask;
			due_ = now_ms + late;
			questions++;
		}
		if (due_ != 0 && now_ms >= due_)
			answer();
	}
	void hang_up()
	{
		if (sock_ >= 0)
			close(sock_);
		sock_ = -1;
	}

private:
	void answer()
	{
		w_listed l = {};

		l.token = asked_.token;
		if (asked_.index < ports_.size()) {
			const Port &p = ports_[asked_.index];
			bool up = p.up_at >= 0 && now_ms >= p.up_at;

			l.more = 1;
			snprintf(l.text, sizeof(l.text),
				 "{\"name\":\"%s\",\"link\":\"%s\",\"peer\":%u}", p.name,
				 up ? "up" : "down", p.peer);
		}
		w_ctl_init(&l, W_LISTED, sizeof(l));
		ASSERT_EQ(send(sock_, &l, sizeof(l), 0), ssize_t(sizeof(l)));
		due_ = 0;
	}

	int sock_;
	std::vector<Port> ports_;
	w_list asked_ = {};
	int64_t due_ = 0;
};

class FabricWait : public testing::Test {
protected:
	void SetUp() override
	{
		now_ms = 1000;
		links_ = fab_links_create(-1, error_);
		agents_run = [this] {
			if (now_ms >= kEnd)
				ADD_FAILURE() << "the wait does not end";
			for (auto &a : agents_) {
				if (now_ms >= kEnd)
					a.second.hang_up();
				a.second.run();
			}
		};
	}
	void TearDown() override
	{
		agents_run = nullptr;
		fab_links_destroy(links_);
	}
	Agent &agent(unsigned int host, std::vector<Port> ports)
	{
		int socks[2];

		EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
		links_->agents[host].sock = socks[0];
		links_->agents[host].doorbells_fd = links_->agents[host].status_fd = -1;
		links_->ports[host].open = true;
		return agents_
			.emplace(std::piecewise_construct, std::forward_as_tuple(host),
				 std::forward_as_tuple(socks[1], ports))
			.first->second;
	}
	int wait() { return fab_links_wait(links_, &patience_, error_); }

	static constexpr int64_t kEnd = 10000000;
	fab_patience patience_ = { 3000, 1000 };
	fab_links *links_ = nullptr;
	std::map<unsigned int, Agent> agents_;
	char error_[CL_ERROR_MAX] = "";
};

TEST_F(FabricWait, AllUp)
{
	agent(0, { { "loop", 0, 0 }, { "right", 1, 0 } });
	agent(1, { { "loop", 1, 0 }, { "left", 0, 0 } });
	EXPECT_EQ(wait(), 0) << error_;
	EXPECT_EQ(links_->ports[1].n, 2u);
}

TEST_F(FabricWait, AsManyPortsAsThereCanBe)
{
	std::vector<Port> ports(W_PORTS_MAX, { "to", 1, 0 });

	agent(0, ports);
	EXPECT_EQ(wait(), 0) << error_;
	EXPECT_EQ(links_->ports[0].n, W_PORTS_MAX);
}

// One link after the other: each comes in time after the one before it, the last long after the first.
TEST_F(FabricWait, LinksThatComeUpOneAfterTheOther)
{
	agent(0, { { "loop", 0, 0 },
		   { "a", 1, 1900 },
		   { "b", 2, 2800 },
		   { "c", 3, 3700 },
		   { "d", 4, 4600 } });
	EXPECT_EQ(wait(), 0) << error_;
	EXPECT_GE(now_ms, 4600);
}

TEST_F(FabricWait, AgentThatStandsForAWhile)
{
	agent(0, { { "loop", 0, 0 }, { "right", 1, 3600 } });
	agent(1, { { "loop", 1, 0 }, { "left", 0, 3600 } }).stands_until = 3500;
	EXPECT_EQ(wait(), 0) << error_;
}

// It stands longer than an agent may be silent, but links come up elsewhere during that time.
TEST_F(FabricWait, AgentThatStandsWhileOthersAdvance)
{
	agent(0, { { "a", 2, 2000 }, { "b", 3, 4000 }, { "c", 4, 6000 } });
	agent(1, { { "loop", 1, 0 } }).stands_until = 8000;
	EXPECT_EQ(wait(), 0) << error_;
}

// Each answer takes longer than vi_fabric waits for links on an idle machine.
TEST_F(FabricWait, AgentsThatAnswerLate)
{
	agent(0, { { "loop", 0, 0 }, { "right", 1, 15000 } }).late = 1500;
	agent(1, { { "loop", 1, 0 }, { "left", 0, 15000 } }).late = 1500;
	EXPECT_EQ(wait(), 0) << error_;
}

// A pass over its ports that are down takes longer than an agent may be silent, but it answers each question in time.
TEST_F(FabricWait, AgentThatAnswersLateAboutManyPorts)
{
	agent(0, { { "loop", 0, 0 }, { "a", 1, 20000 }, { "b", 2, 20000 }, { "c", 3, 20000 } })
		.late = 1500;
	EXPECT_EQ(wait(), 0) << error_;
}

TEST_F(FabricWait, AgentsThatAnswerLateAndHaveALinkThatStaysDown)
{
	agent(0, { { "loop", 0, 0 }, { "right", 1, kNever } }).late = 1500;
	EXPECT_EQ(wait(), -ETIMEDOUT);
}

TEST_F(FabricWait, MissingLinksAreNamed)
{
	Agent &first = agent(0, { { "loop", 0, 0 }, { "left", 2, 0 }, { "right", 1, kNever } });

	agent(1, { { "loop", 1, 0 }, { "left", 0, kNever }, { "right", 2, kNever } });
	agent(2, { { "loop", 2, 0 }, { "left", 1, 1500 }, { "right", 0, 0 } });
	EXPECT_EQ(wait(), -ETIMEDOUT);
	EXPECT_STREQ(
		error_,
		"links are down, and for 1 s no other came up: right of host 0, left of host 1, right of host 1; "
		"set VIADUCT_LOG_FILE to see");
	// Questions take processor time from the agents that bring links up, so vi_fabric asks more
	// and more rarely.
	EXPECT_LT(first.questions, 100u);
}

TEST_F(FabricWait, ManyMissingLinksHaveOneLine)
{
	for (unsigned int host = 0; host < CL_HOSTS_MAX; host++)
		agent(host, { { "loop", host, 0 }, { "left", 0, kNever }, { "right", 2, kNever } });
	EXPECT_EQ(wait(), -ETIMEDOUT);
	EXPECT_NE(std::string(error_).find("right of host 3, ...; set VIADUCT_LOG_FILE to see"),
		  std::string::npos)
		<< error_;
}

TEST_F(FabricWait, SilentAgentsAreNamed)
{
	agent(0, { { "loop", 0, 0 }, { "right", 1, kNever } });
	agent(1, { { "loop", 1, 0 } }).stands_until = kEnd;
	agent(2, { { "loop", 2, 0 } }).stands_until = kEnd;
	EXPECT_EQ(wait(), -EHOSTDOWN);
	EXPECT_STREQ(
		error_,
		"for 3 s no link came up, and the agents of hosts 1, 2 did not answer; is it stopped?");
}

TEST_F(FabricWait, AgentThatEnds)
{
	agent(0, { { "loop", 0, 0 }, { "right", 1, kNever } });
	agent(1, { { "loop", 1, 0 } }).hang_up();
	EXPECT_EQ(wait(), -EPIPE);
	EXPECT_EQ(std::string(error_).find("the agent of host 1 ended while links came up"), 0u)
		<< error_;
}

// One host is started while others run: links that these lack among themselves do not matter, nor
// that one of them ends.
TEST_F(FabricWait, LinksOfOneHost)
{
	links_->only = 1;
	agent(0, { { "loop", 0, 0 }, { "left", 3, kNever }, { "right", 1, 1500 } });
	agent(1, { { "loop", 1, 0 },
		   { "left", 0, 1500 },
		   { "right", 2, kNever },
		   { "more", 5, kNever } });
	agent(2, { { "left", 1, kNever } }).hang_up();
	EXPECT_EQ(wait(), 0) << error_;
	EXPECT_TRUE(fab_links_wanted(links_, 1, 1));
	EXPECT_FALSE(fab_links_wanted(links_, 1, 2));
	EXPECT_FALSE(fab_links_wanted(links_, 1, 3));
}

} // namespace

int __wrap_clock_gettime(clockid_t clock, timespec *ts)
{
	if (!agents_run)
		return __real_clock_gettime(clock, ts);
	ts->tv_sec = now_ms * kMs / (1000 * kMs);
	ts->tv_nsec = now_ms * kMs % (1000 * kMs);
	return 0;
}

int __wrap_poll(pollfd *fds, nfds_t n, int ms)
{
	int rc;

	if (!agents_run)
		return __real_poll(fds, n, ms);
	agents_run();
	while ((rc = __real_poll(fds, n, 0)) == 0 && ms-- > 0) {
		now_ms++;
		agents_run();
	}
	return rc;
}
