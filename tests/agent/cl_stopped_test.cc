// SPDX-License-Identifier: BSD-2-Clause
// Clients of agents that do not answer, for instance because their processes are stopped.  Time is virtual.
#include <cstdlib>
#include <set>

#include "agent_fixture.h"

extern "C" {
#include "cl_client.h"
#include "u_cfg.h"
}

using namespace agent_test;

namespace {

constexpr int64_t kSecond = 1000000000;

class Stopped : public ::testing::Test {
protected:
	~Stopped() override
	{
		vt_turns(nullptr, nullptr);
		for (const std::string &variable : changed)
			unsetenv(variable.c_str());
		u_cfg_reset();
	}

	void set(const char *variable, const std::string &value)
	{
		setenv(variable, value.c_str(), 1);
		changed.insert(variable);
		u_cfg_reset();
	}

	std::set<std::string> changed;
	char error[CL_ERROR_MAX] = "";
};

// Listens at the address of a host.
int listen_at(const std::string &fabric, unsigned host)
{
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, geteuid(), fabric.c_str(), host);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	EXPECT_EQ(bind(sock, reinterpret_cast<sockaddr *>(&un), len), 0);
	EXPECT_EQ(listen(sock, 8), 0);
	return sock;
}

// Listens, and never answers.
class Silent {
public:
	Silent(const std::string &fabric, unsigned hosts)
	{
		for (unsigned host = 0; host < hosts; host++)
			socks.push_back(listen_at(fabric, host));
	}
	~Silent()
	{
		for (int sock : socks)
			close(sock);
	}

private:
	std::vector<int> socks;
};

// Answers HELLO as the agent of a host.
class Answers {
public:
	Answers(std::string fabric, unsigned host)
	    : fabric_(std::move(fabric)), host_(host), listens_(listen_at(fabric_, host))
	{
	}
	~Answers()
	{
		for (int client : clients_)
			close(client);
		close(listens_);
	}

	// Answers one client; false: none waits.
	bool answer()
	{
		int client = accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
		char message[W_CTL_MAX];
		w_welcome m = {};

		if (client < 0)
			return false;
		clients_.push_back(client);
		EXPECT_GT(recv(client, message, sizeof(message), MSG_DONTWAIT), 0)
			<< "it said HELLO before";
		m.host_id = host_;
		m.host_count = CL_HOSTS_MAX;
		m.port_count = 1;
		m.slots = 128;
		m.payload_bytes = 256 << 10;
		w_host_addr(static_cast<uint16_t>(m.host_id), m.host_addr);
		snprintf(m.host_name, sizeof(m.host_name), "named");
		snprintf(m.fabric, sizeof(m.fabric), "%s", fabric_.c_str());
		w_ctl_init(&m, W_WELCOME, sizeof(m));
		EXPECT_EQ(w_ctl_send(client, &m, nullptr, 0), 0);
		return true;
	}

private:
	std::string fabric_;
	unsigned host_;
	int listens_;
	std::vector<int> clients_;
};

// Answers each HELLO as the agent of the fabric's last host, when a client waits.
class Last : public Answers {
public:
	explicit Last(const std::string &fabric) : Answers(fabric, CL_HOSTS_MAX - 1)
	{
		vt_turns([](void *self, int64_t) { return static_cast<Last *>(self)->answer(); },
			 this);
	}
	~Last() { vt_turns(nullptr, nullptr); }
};

struct Greeted {
	int answered = 0, silent = 0, calls = 0;
};

int count_greeted(void *arg, cl_greeted *g)
{
	auto *n = static_cast<Greeted *>(arg);

	n->calls++;
	n->answered += g->rc == 0 && g->agent.welcome.host_id == g->host;
	n->silent += g->rc == -ETIMEDOUT && g->pid == getpid() &&
		     strstr(g->error, "did not answer within 5 s") != nullptr;
	return 0;
}

} // namespace

TEST_F(Stopped, AgentDoesNotAnswerInTime)
{
	std::string name = unique_fabric();
	Silent silent(name, 1);
	int64_t begin = u_now_ns();
	cl_agent a;

	set("VIADUCT_FABRIC", name);
	EXPECT_EQ(cl_open(nullptr, W_KIND_NIC, &a, error), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "did not answer within 5 s"), nullptr) << error;
	EXPECT_EQ(u_now_ns() - begin, 5 * kSecond);
}

// One time-out for each would take minutes.
TEST_F(Stopped, SixtyThreeAgents)
{
	std::string name = unique_fabric();
	Silent silent(name, CL_HOSTS_MAX - 1);
	int64_t begin = u_now_ns();
	Last last(name);
	cl_agent a;
	Greeted n;

	ASSERT_EQ(cl_open_some(geteuid(), name.c_str(), &a, error), 0) << error;
	EXPECT_EQ(a.welcome.host_id, CL_HOSTS_MAX - 1);
	cl_close(&a);
	EXPECT_LT(u_now_ns() - begin, 5 * kSecond);
	begin = u_now_ns();
	cl_greet_all(geteuid(), name.c_str(), CL_HOSTS_MAX, count_greeted, &n);
	EXPECT_EQ(n.calls, static_cast<int>(CL_HOSTS_MAX));
	EXPECT_EQ(n.answered, 1);
	EXPECT_EQ(n.silent, static_cast<int>(CL_HOSTS_MAX) - 1);
	EXPECT_EQ(u_now_ns() - begin, 5 * kSecond) << "all at the same time";
}

// The visit of host 1 takes longer than host 0 has to answer, which does so meanwhile.
TEST_F(Stopped, AnswersThatCameWhileAnotherWasVisitedCount)
{
	std::string name = unique_fabric();
	struct Hosts {
		explicit Hosts(const std::string &fabric) : first(fabric, 0), second(fabric, 1) {}
		Answers first, second;
		int visits[2] = {}, rc[2] = {};
	} hosts(name);

	vt_turns([](void *h, int64_t) { return static_cast<Hosts *>(h)->second.answer(); }, &hosts);
	cl_greet_all(
		geteuid(), name.c_str(), 2,
		[](void *arg, cl_greeted *g) {
			auto *h = static_cast<Hosts *>(arg);

			h->visits[g->host]++;
			h->rc[g->host] = g->rc;
			if (g->host == 1) {
				EXPECT_TRUE(h->first.answer());
				vt_pass(6 * kSecond);
			}
			return 0;
		},
		&hosts);
	for (int host : { 0, 1 }) {
		EXPECT_EQ(hosts.visits[host], 1);
		EXPECT_EQ(hosts.rc[host], 0);
	}
}

TEST_F(Stopped, OtherHostsAreReachedBesideOne)
{
	ag_alias store = { "store", 1 };
	Fabric f(3, [&](ag_cfg &cfg) {
		cfg.aliases = &store;
		cfg.alias_count = 1;
	});
	const char *fabric = f.name().c_str();
	int64_t begin;
	w_name found;
	cl_agent a;

	set("VIADUCT_FABRIC", f.name());
	ASSERT_EQ(cl_open_host(geteuid(), fabric, 0, W_KIND_TOOL, &a, error), 0) << error;
	ASSERT_EQ(cl_agent_pid(&a), getpid());
	ASSERT_EQ(cl_listener_pid(geteuid(), fabric, 0), getpid());
	Turns::end(f.agent(0));
	begin = u_now_ns();
	EXPECT_EQ(cl_name(&a, "host1", 0, &found), -ETIMEDOUT);
	EXPECT_TRUE(a.silent);
	EXPECT_EQ(u_now_ns() - begin, 5 * kSecond);
	EXPECT_EQ(cl_name(&a, "host1", 0, &found), -ETIMEDOUT);
	EXPECT_EQ(u_now_ns() - begin, 5 * kSecond) << "it is not waited for twice";
	cl_close(&a);
	for (const char *text : { "host1", "store", "2" }) {
		set("VIADUCT_HOST", text);
		ASSERT_EQ(cl_open(nullptr, W_KIND_NIC, &a, error), 0) << error;
		EXPECT_EQ(a.welcome.host_id, strcmp(text, "2") == 0 ? 2 : 1);
		cl_close(&a);
	}
	EXPECT_LT(u_now_ns() - begin, 10 * kSecond);
	set("VIADUCT_HOST", "host0");
	EXPECT_EQ(cl_open(nullptr, W_KIND_NIC, &a, error), -EHOSTDOWN);
	EXPECT_NE(strstr(error, ("(pid " + std::to_string(getpid()) + ")").c_str()), nullptr)
		<< error;
	EXPECT_EQ(cl_listener_pid(geteuid(), fabric, 0), getpid());
	Turns::begin(f.agent(0));
	ASSERT_EQ(cl_open(nullptr, W_KIND_NIC, &a, error), 0) << error;
	cl_close(&a);
}
