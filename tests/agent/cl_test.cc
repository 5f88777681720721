// SPDX-License-Identifier: BSD-2-Clause
// The client's side: finding the agent, starting one on demand, names, refusals.
// VIADUCT_AGENT is the path of the viaductd under test.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lingering.h"
#include "probes.h"

extern "C" {
#include "cl_client.h"
#include "u_cfg.h"
#include "u_close.h"
}

namespace {

constexpr int kDeadlineMs = 20000;

std::atomic<int> children{ 0 };

void on_child(int)
{
	children++;
}

class ClientLib : public ::testing::Test {
protected:
	ClientLib()
	{
		static std::atomic<int> serial{ 0 };

		agent_path = getenv("VIADUCT_AGENT") != nullptr ? getenv("VIADUCT_AGENT") : "";
		name = "cl" + std::to_string(getpid()) + "." + std::to_string(serial++);
		set("VIADUCT_FABRIC", name.c_str());
	}

	~ClientLib() override
	{
		std::string error(CL_ERROR_MAX, 0);

		for (unsigned host = 0; host < 4; host++) {
			cl_agent a;
			if (cl_open_host(geteuid(), name.c_str(), host, W_KIND_TOOL, &a,
					 error.data()) != 0)
				continue;
			int pid = pidfd(a);
			EXPECT_EQ(cl_admin(&a, W_ADMIN_STOP, "", error.data()), 0);
			cl_close(&a);
			EXPECT_TRUE(ended(pid)) << "the agent outlives its stop";
		}
		for (const std::string &variable : changed)
			unsetenv(variable.c_str());
		setenv("VIADUCT_AGENT", agent_path.c_str(), 1);
		u_cfg_reset();
	}

	void set(const char *variable, const char *value)
	{
		setenv(variable, value, 1);
		changed.push_back(variable);
		u_cfg_reset();
	}

	static int pidfd(const cl_agent &a)
	{
		ucred cred;
		socklen_t len = sizeof(cred);

		EXPECT_EQ(getsockopt(a.sock, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
		return static_cast<int>(syscall(SYS_pidfd_open, cred.pid, 0));
	}

	// Closes the descriptor.
	static bool ended(int fd)
	{
		pollfd p = { fd, POLLIN, 0 };
		bool yes = poll(&p, 1, kDeadlineMs) == 1;

		close(fd);
		return yes;
	}

	int open(const char *device, cl_agent *out)
	{
		return cl_open(device, W_KIND_NIC, out, error);
	}

	// Agents of a ring of n, by hand.
	void ring(unsigned n)
	{
		std::string hosts = std::to_string(n);

		for (unsigned i = 0; i < n; i++) {
			std::string id = std::to_string(i);
			const char *args[] = { "--fabric",	 name.c_str(), "--host-id",
					       id.c_str(),	 "--hosts",    hosts.c_str(),
					       "--alias",	 "store=1",    "--device-alias",
					       "/dev/clanvi0=1", nullptr };
			ASSERT_EQ(cl_spawn(agent_path.c_str(), args, error), 0) << error;
		}
	}

	std::string name, agent_path;
	std::vector<std::string> changed;
	char error[CL_ERROR_MAX] = "";
};

TEST_F(ClientLib, StartsAnAgentThatLeavesWithItsLastClient)
{
	cl_agent a;

	ASSERT_EQ(open(nullptr, &a), 0) << error;
	EXPECT_EQ(a.welcome.host_count, 1);
	EXPECT_GE(a.doorbells_fd, 0);
	EXPECT_GE(a.status_fd, 0);
	int agent = pidfd(a);
	cl_close(&a);
	EXPECT_TRUE(ended(agent));
}

TEST_F(ClientLib, StartedAgentIsNobodysChild)
{
	cl_agent a;
	struct sigaction sa = {}, before;
	int status;

	children = 0;
	sa.sa_handler = on_child;
	sigaction(SIGCHLD, &sa, &before);
	ASSERT_EQ(open("", &a), 0) << error;
	/* If each child signals its end, a program cannot be shielded from the end of an agent that it starts. */
	if (probe_silent_children()) {
		EXPECT_EQ(children, 0);
	}
	EXPECT_EQ(waitpid(-1, &status, WNOHANG), -1);
	EXPECT_EQ(errno, ECHILD);
	sigaction(SIGCHLD, &before, nullptr);
	cl_close(&a);
}

TEST_F(ClientLib, StartedAgentInheritsNoDescriptors)
{
	cl_agent a;
	int ends[2];
	char byte;

	ASSERT_EQ(pipe(ends), 0);
	ASSERT_EQ(open(nullptr, &a), 0) << error;
	close(ends[1]);
	pollfd p = { ends[0], POLLIN, 0 };
	EXPECT_EQ(poll(&p, 1, kDeadlineMs), 1);
	EXPECT_EQ(read(ends[0], &byte, 1), 0) << "somebody still holds the other end";
	close(ends[0]);
	cl_close(&a);
}

TEST_F(ClientLib, StartsFromAProcessWithoutStandardDescriptors)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		cl_agent a;
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		if (open(nullptr, &a) != 0)
			_exit(1);
		_exit(a.sock > 2 && a.doorbells_fd > 2 && a.status_fd > 2 ? 0 : 2);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST_F(ClientLib, OutOfDescriptors)
{
	rlimit before, few;
	cl_agent first, a;

	ASSERT_EQ(open(nullptr, &first), 0) << error;
	int lowest = dup(0);
	close(lowest);
	getrlimit(RLIMIT_NOFILE, &before);
	for (int spare : { 0, 1, 2 }) {
		few = before;
		few.rlim_cur = static_cast<rlim_t>(lowest + spare);
		std::string limit = "(limit " + std::to_string(few.rlim_cur) + ")";
		setrlimit(RLIMIT_NOFILE, &few);
		int rc = open(nullptr, &a);
		setrlimit(RLIMIT_NOFILE, &before);
		EXPECT_EQ(rc, -EMFILE);
		EXPECT_NE(strstr(error, "no file descriptor left"), nullptr) << error;
		EXPECT_NE(strstr(error, limit.c_str()), nullptr) << error;
	}
	cl_close(&first);
}

TEST_F(ClientLib, ManyStartAtOnceAndShareOneAgent)
{
	std::vector<std::thread> threads;
	std::atomic<int> agents{ 0 };
	std::vector<cl_agent> all(16);
	std::atomic<pid_t> pid{ 0 };

	for (cl_agent &a : all) {
		threads.emplace_back([&] {
			char text[CL_ERROR_MAX];
			ucred cred;
			socklen_t len = sizeof(cred);
			pid_t none = 0;
			ASSERT_EQ(cl_open(nullptr, W_KIND_NIC, &a, text), 0) << text;
			getsockopt(a.sock, SOL_SOCKET, SO_PEERCRED, &cred, &len);
			if (pid.compare_exchange_strong(none, cred.pid) || none != cred.pid)
				agents++;
		});
	}
	for (std::thread &t : threads)
		t.join();
	EXPECT_EQ(agents, 1);
	for (cl_agent &a : all)
		cl_close(&a);
}

TEST_F(ClientLib, NoneForbidsToStartOne)
{
	cl_agent a;

	set("VIADUCT_AGENT", "none");
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "VIADUCT_AGENT=none forbids"), nullptr) << error;
}

TEST_F(ClientLib, AgentProgramIsMissingOrWrong)
{
	cl_agent a;

	set("VIADUCT_AGENT", "/nowhere/viaductd");
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "viaductd was not found (/nowhere/viaductd)"), nullptr) << error;
	set("VIADUCT_AGENT", "/bin/true");
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "it ended at once"), nullptr) << error;
	set("VIADUCT_AGENT", "/bin");
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "cannot be executed"), nullptr) << error;
}

TEST_F(ClientLib, AnothersFabricIsNotStarted)
{
	cl_agent a;
	std::string text = std::to_string(geteuid() + 1) + ":" + name;

	set("VIADUCT_FABRIC", text.c_str());
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "only its owner may start one"), nullptr) << error;
	set("VIADUCT_FABRIC", "no/such");
	EXPECT_EQ(open(nullptr, &a), -EINVAL);
}

TEST_F(ClientLib, HostsByNameAliasNumber)
{
	cl_agent a;

	ring(3);
	for (auto [text, host] : std::initializer_list<std::pair<const char *, int>>{
		     { "", 0 }, { "2", 2 }, { "host1", 1 }, { "store", 1 } }) {
		set("VIADUCT_HOST", text);
		ASSERT_EQ(open(nullptr, &a), 0) << error;
		EXPECT_EQ(a.welcome.host_id, host) << text;
		cl_close(&a);
	}
	for (const char *text : { "host3", "3", "nobody" }) {
		set("VIADUCT_HOST", text);
		EXPECT_EQ(open(nullptr, &a), -ENODEV);
		EXPECT_NE(strstr(error, "VIADUCT_HOST names host"), nullptr) << error;
	}
}

TEST_F(ClientLib, DevicesChooseHosts)
{
	cl_agent a;

	ring(3);
	set("VIADUCT_HOST", "2");
	set("VIADUCT_DEVICE", "VINIC=host0,nic7=1");
	for (auto [device, host] :
	     std::initializer_list<std::pair<const char *, int>>{ { "/dev/clanvi0", 1 },
								  { "VINIC", 0 },
								  { "nic7", 1 },
								  { "host1", 1 },
								  { "store", 1 },
								  { "unheard of", 2 },
								  { "nic", 2 },
								  { "", 2 } }) {
		ASSERT_EQ(open(device, &a), 0) << error;
		EXPECT_EQ(a.welcome.host_id, host) << device;
		cl_close(&a);
	}
	set("VIADUCT_DEFAULT_NIC", "no");
	EXPECT_EQ(open("unheard of", &a), -ENODEV);
	EXPECT_NE(strstr(error, "VIADUCT_DEFAULT_NIC=no"), nullptr) << error;
	ASSERT_EQ(open(nullptr, &a), 0) << error;
	cl_close(&a);
	set("VIADUCT_DEVICE", "VINIC=host9");
	EXPECT_EQ(open("VINIC", &a), -ENODEV);
	EXPECT_NE(strstr(error, "VIADUCT_DEVICE names host host9"), nullptr) << error;
}

TEST_F(ClientLib, HostWithoutAnAgent)
{
	std::string hosts = "2";
	const char *args[] = { "--fabric", name.c_str(),  "--host-id", "1",
			       "--hosts",  hosts.c_str(), nullptr };
	cl_agent a;

	ASSERT_EQ(cl_spawn(agent_path.c_str(), args, error), 0) << error;
	EXPECT_EQ(open("host0", &a), -EHOSTDOWN);
	EXPECT_NE(strstr(error, "host 0 of fabric"), nullptr) << error;
	EXPECT_NE(strstr(error, "vi_fabric up"), nullptr) << error;
}

TEST_F(ClientLib, Requests)
{
	cl_agent a;
	w_name found;
	w_route route;
	uint8_t host[W_HOST_ADDR_LEN];
	char text[400];

	ring(3);
	ASSERT_EQ(cl_open_host(geteuid(), name.c_str(), 0, W_KIND_TOOL, &a, error), 0) << error;
	EXPECT_EQ(a.doorbells_fd, -1);
	EXPECT_EQ(a.status_fd, -1);
	ASSERT_EQ(cl_name(&a, "store", 0, &found), 0);
	EXPECT_STREQ(found.name, "host1");
	EXPECT_EQ(cl_name(&a, "nobody", 0, &found), -ENOENT);
	EXPECT_EQ(cl_name(&a, std::string(99, 'x').c_str(), 0, &found), -ENOENT);
	w_host_addr(2, host);
	ASSERT_EQ(cl_addr_name(&a, host, &found), 0);
	EXPECT_STREQ(found.name, "host2");
	/* The agents have only just begun: until the link to host 2 is up the path takes the long way round. */
	for (int tries = 0; tries < 5000; tries++) {
		ASSERT_EQ(cl_route(&a, host, &route), 0);
		if (strcmp(route.port_name, "left") == 0)
			break;
		poll(nullptr, 0, 2);
	}
	EXPECT_STREQ(route.port_name, "left");
	EXPECT_EQ(cl_list(&a, W_LIST_HOSTS, 2, text), 0);
	EXPECT_EQ(cl_list(&a, W_LIST_HOSTS, 3, text), -ENOENT);
	EXPECT_EQ(cl_admin(&a, W_ADMIN_ALIAS, "x=nobody", error), -EINVAL);
	EXPECT_STREQ(error, "x=nobody: no such host in this fabric");
	cl_close(&a);
	cl_close(&a);
}

// An agent played by the test, at the address of host 0 or another.
class Imposter {
public:
	Imposter(const std::string &fabric, uid_t owner, std::function<void(int)> serve,
		 unsigned host = 0)
	{
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, owner, fabric.c_str(), host);

		sock_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		EXPECT_EQ(bind(sock_, reinterpret_cast<sockaddr *>(&un), len), 0);
		EXPECT_EQ(listen(sock_, 8), 0);
		thread_ = std::thread([this, serve] {
			int client = accept(sock_, nullptr, nullptr);
			if (client >= 0) {
				serve(client);
				close(client);
			}
			close(sock_);
		});
	}
	~Imposter()
	{
		shutdown(sock_, SHUT_RDWR);
		thread_.join();
	}

private:
	int sock_;
	std::thread thread_;
};

TEST_F(ClientLib, AgentOfAnotherVersion)
{
	cl_agent a;
	Imposter agent(name, geteuid(), [](int client) {
		w_refused m = {};
		char hello[W_CTL_MAX];
		EXPECT_GT(recv(client, hello, sizeof(hello), 0), 0);
		w_ctl_init(&m, W_DONE, sizeof(m));
		m.hdr.version = 99;
		w_ctl_send(client, &m, nullptr, 0);
	});

	EXPECT_EQ(cl_open_host(geteuid(), name.c_str(), 0, W_KIND_NIC, &a, error),
		  -EPROTONOSUPPORT);
	EXPECT_EQ(error, "the agent speaks version 99, this library " +
				 std::to_string(W_CTL_VERSION) + "; use one release");
}

TEST_F(ClientLib, AgentThatTalksNonsense)
{
	cl_agent a;
	Imposter agent(name, geteuid(), [](int client) {
		w_token m = {};
		char hello[W_CTL_MAX];
		EXPECT_GT(recv(client, hello, sizeof(hello), 0), 0);
		w_ctl_init(&m, W_UNLISTENED, sizeof(m));
		int fds[2] = { 0, 1 };
		w_ctl_send(client, &m, fds, 2);
	});

	EXPECT_EQ(cl_open_host(geteuid(), name.c_str(), 0, W_KIND_NIC, &a, error), -EPROTO);
}

TEST_F(ClientLib, AgentThatHangsUp)
{
	cl_agent a;
	Imposter agent(name, geteuid(), [](int) {});

	EXPECT_EQ(cl_open_host(geteuid(), name.c_str(), 0, W_KIND_NIC, &a, error), -EPIPE);
	EXPECT_STREQ(error, "the agent did not answer: it hung up");
}

// This agent is only asked for a name; the agent of the right host lives.
TEST_F(ClientLib, AgentThatHangsUpBeforeItHasAnswered)
{
	const char *args[] = { "--fabric", name.c_str(), "--host-id", "1", "--hosts", "2", nullptr };
	cl_agent a;

	ASSERT_EQ(cl_spawn(agent_path.c_str(), args, error), 0) << error;
	ASSERT_EQ(cl_open_host(geteuid(), name.c_str(), 1, W_KIND_TOOL, &a, error), 0) << error;
	w_welcome welcome = a.welcome;
	cl_close(&a);
	welcome.host_id = 0;
	Imposter agent(name, geteuid(), [&](int client) {
		char message[W_CTL_MAX];
		EXPECT_GT(recv(client, message, sizeof(message), 0), 0);
		w_ctl_init(&welcome, W_WELCOME, sizeof(welcome));
		w_ctl_send(client, &welcome, nullptr, 0);
		EXPECT_GT(recv(client, message, sizeof(message), 0), 0);
	});

	ASSERT_EQ(cl_open("host1", W_KIND_TOOL, &a, error), 0) << error;
	EXPECT_EQ(a.welcome.host_id, 1u);
	cl_close(&a);
}

// A tool asks for the counters of a NIC whose process looks up the name of its host: here one that says that it is a
// tool, since WELCOME needs no descriptors then.
TEST_F(ClientLib, CountersOfANicThatIsBeingOpened)
{
	cl_agent a;
	w_name found;
	w_counted counted = {};
	Imposter agent(name, geteuid(), [&](int client) {
		alignas(8) char message[W_CTL_MAX];
		w_welcome welcome = {};
		welcome.host_count = 1;
		welcome.slots = 64;
		welcome.payload_bytes = 256 << 10;
		w_count count = {};
		EXPECT_GT(recv(client, message, sizeof(message), 0), 0);
		w_ctl_init(&welcome, W_WELCOME, sizeof(welcome));
		w_ctl_send(client, &welcome, nullptr, 0);
		EXPECT_GT(recv(client, message, sizeof(message), 0), 0);
		count.token = 77;
		count.client = 5;
		w_ctl_init(&count, W_COUNT, sizeof(count));
		w_ctl_send(client, &count, nullptr, 0);
		EXPECT_EQ(recv(client, &counted, sizeof(counted), 0),
			  static_cast<ssize_t>(sizeof(counted)));
		auto *named = reinterpret_cast<w_name *>(message);
		w_ctl_init(named, W_NAMED, sizeof(*named));
		w_ctl_send(client, named, nullptr, 0);
	});

	ASSERT_EQ(cl_open_host(geteuid(), name.c_str(), 0, W_KIND_TOOL, &a, error), 0) << error;
	EXPECT_EQ(cl_name(&a, "nic0", 0, &found), 0);
	EXPECT_EQ(counted.hdr.type, W_COUNTED);
	EXPECT_EQ(counted.token, 77u);
	EXPECT_EQ(counted.client, 5u);
	EXPECT_EQ(std::count(std::begin(counted.counters), std::end(counted.counters), 0u),
		  W_COUNTERS);
	cl_close(&a);
}

struct Greeted {
	int answered = 0, calls = 0;
};

int count_greeted(void *arg, cl_greeted *g)
{
	auto *n = static_cast<Greeted *>(arg);

	n->calls++;
	n->answered += g->rc == 0 && g->agent.welcome.host_id == g->host;
	return 0;
}

// There are descriptors for only a few of them at a time.
TEST_F(ClientLib, AllAreGreetedWithFewDescriptors)
{
	rlimit before, few;
	Greeted n;

	ring(4);
	int lowest = dup(0);
	close(lowest);
	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = static_cast<rlim_t>(lowest + 2);
	setrlimit(RLIMIT_NOFILE, &few);
	cl_greet_all(geteuid(), name.c_str(), CL_HOSTS_MAX, count_greeted, &n);
	setrlimit(RLIMIT_NOFILE, &before);
	EXPECT_EQ(n.calls, static_cast<int>(CL_HOSTS_MAX));
	EXPECT_EQ(n.answered, 4);
}

// The application's signals interrupt a call that waits for an agent that is busy.
TEST_F(ClientLib, SignalsWhileTheAgentIsBusy)
{
	constexpr int kSignals = 50;
	cl_agent a;
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, geteuid(), name.c_str(), 0);
	auto *addr = reinterpret_cast<sockaddr *>(&un);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sigaction sa = {}, before;
	std::vector<int> queued;
	int rc;

	ASSERT_EQ(bind(sock, addr, len), 0);
	ASSERT_EQ(listen(sock, 0), 0);
	do {
		queued.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
		rc = connect(queued.back(), addr, len);
	} while (rc == 0);
	ASSERT_EQ(errno, EAGAIN);
	sa.sa_handler = on_child;
	sigaction(SIGUSR1, &sa, &before);
	std::thread agent([&, caller = pthread_self()] {
		for (int i = 0; i < kSignals; i++) {
			pthread_kill(caller, SIGUSR1);
			poll(nullptr, 0, 2);
		}
		for (int fd; (fd = accept(sock, nullptr, nullptr)) >= 0;)
			close(fd);
	});
	EXPECT_EQ(cl_open_host(geteuid(), name.c_str(), 0, W_KIND_NIC, &a, error), -EPIPE);
	EXPECT_STREQ(error, "the agent did not answer: it hung up");
	shutdown(sock, SHUT_RDWR);
	agent.join();
	sigaction(SIGUSR1, &before, nullptr);
	for (int fd : queued)
		close(fd);
	close(sock);
}

TEST_F(ClientLib, AnotherUserAtTheAddressIsNotTrusted)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	int ready[2], done[2];
	char byte;
	cl_agent a;

	ASSERT_EQ(pipe(ready), 0);
	ASSERT_EQ(pipe(done), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, 0, name.c_str(), 0);
		int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		close(done[1]);
		if (setuid(31337) != 0 || bind(sock, reinterpret_cast<sockaddr *>(&un), len) != 0 ||
		    listen(sock, 8) != 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		/* Its descriptor would block the thread that closes it. */
		Lingering linger[2];
		linger[0].pass(accept(sock, nullptr, nullptr), "x", 1);
		linger[1].pass(accept(sock, nullptr, nullptr), "x", 1);
		_exit(read(done[0], &byte, 1) != 0);
	}
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	u_rights_forget(true);
	EXPECT_EQ(open(nullptr, &a), -EHOSTDOWN);
	u_rights_forget(false);
	EXPECT_NE(strstr(error, "which is neither uid 0 nor root: not trusted"), nullptr) << error;
	EXPECT_NE(strstr(error, "uid 31337, pid "), nullptr) << error;
	for (int fd : { ready[0], ready[1], done[0], done[1] })
		close(fd);
	waitpid(pid, nullptr, 0);
}

// A set-user-ID program has started it: the caller of that program must not be able to stop the agent.
TEST_F(ClientLib, AnAgentHasOneUserWhoeverStartsIt)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	const char *path = getenv("VIADUCT_AGENT");
	int ready[2];
	char line[64] = "", file[64], text[4096] = "";

	ASSERT_NE(path, nullptr);
	ASSERT_EQ(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		std::string fd = std::to_string(ready[1]);
		if (setresgid(31337, 31338, 31338) != 0 || setresuid(31337, 31338, 31338) != 0)
			_exit(1);
		execl(path, path, "--ready-fd", fd.c_str(), "--fabric", name.c_str(), nullptr);
		_exit(errno == EACCES ? 77 : 1);
	}
	close(ready[1]);
	ssize_t got = read(ready[0], line, sizeof(line) - 1);
	close(ready[0]);
	if (got > 0) {
		snprintf(file, sizeof(file), "/proc/%d/status", static_cast<int>(pid));
		FILE *status = fopen(file, "r");
		EXPECT_GT(fread(text, 1, sizeof(text) - 1, status), 0u);
		fclose(status);
		EXPECT_NE(strstr(text, "Uid:\t31338\t31338\t31338\t31338"), nullptr) << text;
		EXPECT_NE(strstr(text, "Gid:\t31338\t31338\t31338\t31338"), nullptr) << text;
		EXPECT_STREQ(line, "ready\n");
	}
	kill(pid, SIGKILL);
	int end = 0;
	waitpid(pid, &end, 0);
	if (got <= 0 && WIFEXITED(end) && WEXITSTATUS(end) == 77)
		GTEST_SKIP() << "another user may not execute " << path;
	EXPECT_GT(got, 0);
}

} // namespace
