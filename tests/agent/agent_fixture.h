/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agents as threads of the test, or with AGENT_STEPPED in its own thread (turns.h), and raw clients that speak w_ctl to
 * them.  Every wait has a deadline; nothing sleeps.
 */
#ifndef AGENT_FIXTURE_H
#define AGENT_FIXTURE_H

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

extern "C" {
#include "ag_agent.h"
#include "w_addr.h"
#include "w_cm.h"
#include "w_ctl.h"
#include "w_slot.h"
#include "w_tool.h"
}
#include "limit.h"
#include "open_fds.h"
#include "turns.h"

namespace agent_test {

constexpr int kDeadlineMs = 20000;

inline std::string unique_fabric()
{
	static std::atomic<int> serial{ 0 };

	return "t" + std::to_string(getpid()) + "." + std::to_string(serial++);
}

/* The end of a wait of `ms`, which is longer where the machine is slow; time that is virtual is not. */
inline int64_t deadline(int ms)
{
#ifdef AGENT_STEPPED
	unsigned factor = 1;
#else
	unsigned factor = limit_factor();
#endif

	return u_now_ns() + ms * INT64_C(1000000) * factor;
}

/* Gives other threads and processes time to run. */
inline void pause_ms(int ms)
{
	u_poll(nullptr, 0, u_now_ns() + ms * INT64_C(1000000));
}

/* Polls a condition that another thread or process makes true. */
inline bool eventually(const std::function<bool()> &done, int ms = kDeadlineMs)
{
	int64_t end = deadline(ms);

	while (!done()) {
		if (u_now_ns() > end)
			return false;
		pause_ms(2);
	}
	return true;
}

class Fabric {
public:
	using Tweak = std::function<void(ag_cfg &)>;

	/* Starts agents of the first `started` hosts; the others may be started later, or played by the test. */
	explicit Fabric(unsigned hosts, Tweak tweak = nullptr, unsigned started = ~0u)
	    : name_(unique_fabric()), hosts_(hosts), tweak_(std::move(tweak)), agents_(hosts),
	      threads_(hosts)
	{
		for (unsigned i = 0; i < hosts && i < started; i++)
			start(i);
	}

	~Fabric()
	{
		for (unsigned i = 0; i < hosts_; i++)
			stop(i);
	}

	ag_cfg config(unsigned host) const
	{
		ag_cfg cfg = {};

		cfg.fabric = name_.c_str();
		cfg.owner = geteuid();
		cfg.host_id = host;
		cfg.host_count = hosts_;
		cfg.group = AG_NO_GROUP;
		cfg.slots = 8;
		cfg.payload_bytes = 4096;
		cfg.window_bytes = 16 << 20;
#ifdef AGENT_STEPPED
		cfg.stepped = true;
#endif
		return cfg;
	}

	void start(unsigned host)
	{
		ag_cfg cfg = config(host);

		if (tweak_)
			tweak_(cfg);
		int rc = ag_create(&cfg, &agents_[host]);
		ASSERT_EQ(rc, 0) << strerror(-rc);
#ifdef AGENT_STEPPED
		Turns::begin(agents_[host]);
#else
		threads_[host] = std::thread([a = agents_[host]] { ag_run(a); });
#endif
	}

	/* Ends the agent's loop; its state can be read until finish(). */
	void pause(unsigned host)
	{
#ifdef AGENT_STEPPED
		Turns::end(agents_[host]);
#endif
		if (threads_[host].joinable()) {
			ag_stop(agents_[host]);
			threads_[host].join();
		}
	}

	void finish(unsigned host)
	{
		ag_destroy(agents_[host]);
		agents_[host] = nullptr;
	}

	void stop(unsigned host)
	{
		pause(host);
		finish(host);
	}

	ag_agent *agent(unsigned host)
	{
		return agents_[host];
	}

	const std::string &name() const
	{
		return name_;
	}

	unsigned hosts() const
	{
		return hosts_;
	}

private:
	std::string name_;
	unsigned hosts_;
	Tweak tweak_;
	std::vector<ag_agent *> agents_;
	std::vector<std::thread> threads_;
};

/* A received message with its descriptors. */
struct Msg {
	int type = -1; /* enum w_ctl_type; 0 hang-up; -1 nothing in time */
	alignas(8) uint8_t bytes[W_CTL_MAX] = {};
	std::vector<int> fds;

	Msg() = default;
	Msg(Msg &&other) noexcept : type(other.type), fds(std::move(other.fds))
	{
		memcpy(bytes, other.bytes, sizeof(bytes));
		other.fds.clear();
	}
	Msg &operator=(Msg &&other) noexcept
	{
		std::swap(type, other.type);
		std::swap(fds, other.fds);
		memcpy(bytes, other.bytes, sizeof(bytes));
		return *this;
	}
	~Msg()
	{
		for (int fd : fds)
			close(fd);
	}
	template <typename T> const T &as() const { return *reinterpret_cast<const T *>(bytes); }
};

inline w_addr address(unsigned host, const std::string &disc)
{
	w_addr a = {};

	w_host_addr(static_cast<uint16_t>(host), a.host);
	a.host_len = W_HOST_ADDR_LEN;
	a.disc_len = static_cast<uint8_t>(disc.size());
	memcpy(a.disc, disc.data(), disc.size());
	return a;
}

inline w_vi_attrs attributes(uint32_t reliability = 2, uint64_t mtu = 65536, uint64_t qos = 0)
{
	w_vi_attrs a = {};

	a.reliability = reliability;
	a.max_transfer = mtu;
	a.qos = qos;
	return a;
}

class Client {
public:
	Client() = default;
	Client(const Fabric &f, unsigned host, uint32_t kind = W_KIND_NIC)
	{
		dial(f, host);
		hello(kind);
		Msg m = recv();
		ok_ = m.type == W_WELCOME;
		EXPECT_EQ(m.type, W_WELCOME);
		if (ok_)
			welcome = m.as<w_welcome>();
	}
	Client(const Client &) = delete;
	Client &operator=(const Client &) = delete;
	~Client() { hang_up(); }

	void dial(const Fabric &f, unsigned host)
	{
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, geteuid(), f.name().c_str(), host);

		sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		ASSERT_GE(sock, 0);
		ASSERT_EQ(connect(sock, reinterpret_cast<sockaddr *>(&un), len), 0)
			<< strerror(errno);
	}

	void hang_up()
	{
		if (sock >= 0)
			close(sock);
		sock = -1;
	}

	void hello(uint32_t kind)
	{
		w_hello m = {};

		m.kind = kind;
		m.pid = static_cast<uint32_t>(getpid());
		snprintf(m.program, sizeof(m.program), "agent-test");
		send(m, W_HELLO);
	}

	template <typename T> int send(T &m, w_ctl_type type)
	{
		w_ctl_init(&m, type, sizeof(m));
#ifdef AGENT_STEPPED
		int rc;

		while ((rc = w_ctl_try(sock, &m)) == -EAGAIN)
			pause_ms(1);
		return rc;
#else
		return w_ctl_send(sock, &m, nullptr, 0);
#endif
	}

	/* The next message, whatever it is. */
	Msg recv_any(int ms = kDeadlineMs)
	{
		Msg m;
		pollfd p = { sock, POLLIN, 0 };
		int fds[W_CTL_FDS];
		unsigned n = 0;

		if (u_poll(&p, 1, deadline(ms)) <= 0)
			return m;
		int len = w_ctl_recv(sock, m.bytes, sizeof(m.bytes), fds, &n);
		m.fds.assign(fds, fds + n);
		if (len <= 0) {
			m.type = 0;
			return m;
		}
		m.type = w_ctl_check(m.bytes, static_cast<uint32_t>(len));
		EXPECT_GT(m.type, 0);
		return m;
	}

	/* The next message except W_PORT; those are counted. */
	Msg recv(int ms = kDeadlineMs)
	{
		for (;;) {
			Msg m = recv_any(ms);
			if (m.type != W_PORT)
				return m;
			ports.emplace_back(m.as<w_port>().index, m.as<w_port>().link_generation);
		}
	}

	void connection(w_ctl_type type, uint64_t token, const w_addr &local, const w_addr &remote,
			const w_vi_attrs &attrs = attributes())
	{
		w_connect m = {};

		m.token = token;
		m.attrs = attrs;
		m.local = local;
		m.remote = remote;
		send(m, type);
	}

	void listen(uint64_t token, const w_addr &local)
	{
		connection(W_LISTEN, token, local, w_addr{});
	}

	void token(w_ctl_type type, uint64_t value)
	{
		w_token m = {};

		m.token = value;
		send(m, type);
	}

	void conn(w_ctl_type type, uint64_t id)
	{
		w_conn m = {};

		m.conn = id;
		send(m, type);
	}

	void accept(uint64_t id, uint64_t token, const w_vi_attrs &attrs = attributes())
	{
		w_accept m = {};

		m.conn = id;
		m.token = token;
		m.attrs = attrs;
		send(m, W_ACCEPT);
	}

	/* Waits for the answer to a request, which comes after everything sent before was handled. */
	void sync()
	{
		token(W_UNLISTEN, ~0ull);
		Msg m = recv();
		EXPECT_EQ(m.type, W_UNLISTENED);
	}

	std::string item(w_list_what what, uint32_t index)
	{
		w_list m = {};

		m.what = what;
		m.index = index;
		send(m, W_LIST);
		Msg answer = recv();
		EXPECT_EQ(answer.type, W_LISTED);
		return answer.as<w_listed>().text;
	}

	w_route route(unsigned host)
	{
		w_route m = {};

		w_host_addr(static_cast<uint16_t>(host), m.host_addr);
		send(m, W_ROUTE);
		Msg answer = recv();
		EXPECT_EQ(answer.type, W_ROUTED);
		return answer.as<w_route>();
	}

	int sock = -1;
	w_welcome welcome = {};
	std::vector<std::pair<uint32_t, uint32_t>> ports; // index and link generation of each W_PORT

	bool ok() const
	{
		return ok_;
	}

private:
	bool ok_ = false;
};

inline uint64_t number_in(const std::string &json, const std::string &key)
{
	size_t at = json.find("\"" + key + "\":");

	return at == std::string::npos ? ~0ull : strtoull(&json[at + key.size() + 3], nullptr, 10);
}

/* Waits until host `from` reaches host `to` through its agents. */
inline void wait_link(const Fabric &f, unsigned from, unsigned to)
{
	Client tool(f, from, W_KIND_TOOL);

	EXPECT_TRUE(eventually([&] { return tool.route(to).reachable == 1; }))
		<< "host " << from << " does not reach " << to;
}

/* Waits until all neighbours reach each other, both ways. */
inline void wait_links(const Fabric &f)
{
	for (unsigned i = 0; i < f.hosts() && f.hosts() > 1; i++) {
		wait_link(f, i, (i + 1) % f.hosts());
		wait_link(f, (i + 1) % f.hosts(), i);
	}
}

/*
 * Waits until every link of the fabric is up at both ends, and each host's paths to its neighbours use it: an agent
 * uses a link when the neighbour's update says that it is up there, too.
 */
inline void wait_ports(const Fabric &f)
{
	for (unsigned i = 0; i < f.hosts(); i++) {
		Client tool(f, i, W_KIND_TOOL);

		for (uint32_t k = 0; k < tool.welcome.port_count; k++)
			EXPECT_TRUE(eventually([&] {
				std::string port = tool.item(W_LIST_PORTS, k);
				auto peer = static_cast<unsigned>(number_in(port, "peer"));

				return port.find("\"link\":\"up\"") != std::string::npos &&
				       tool.route(peer).hops <= 1;
			})) << "host "
			    << i << " port " << k;
	}
}

/* Bytes of the host's windows that are allotted. */
inline uint64_t window_used(const Fabric &f, unsigned host)
{
	Client tool(f, host, W_KIND_TOOL);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tool.welcome.port_count; i++)
		sum += number_in(tool.item(W_LIST_PORTS, i), "window_used");
	return sum;
}

/* Connection ends and circuits of the host. */
inline uint64_t held(const Fabric &f, unsigned host)
{
	Client tool(f, host, W_KIND_TOOL);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tool.welcome.port_count; i++) {
		std::string port = tool.item(W_LIST_PORTS, i);
		sum += number_in(port, "conns") + number_in(port, "circuits");
	}
	return sum;
}

/* Waits until a record gets from each host to each other one and back. */
inline void wait_ways(const Fabric &f)
{
	for (unsigned from = 0; from < f.hosts(); from++) {
		Client probe(f, from);

		for (unsigned to = 0; to < f.hosts(); to++) {
			EXPECT_TRUE(eventually([&] {
				probe.connection(W_CONNECT, 1, address(from, "probe"),
						 address(to, "nobody is called so"));
				Msg m = probe.recv();
				return m.type == W_REFUSED &&
				       m.as<w_refused>().status == W_NO_MATCH;
			})) << "host "
			    << from << " to host " << to;
		}
	}
}

/* Bytes of one inbound slice of the fabric's geometry. */
inline uint64_t slice_bytes(const Fabric &f)
{
	ag_cfg cfg = f.config(0);

	return (w_slice_bytes(cfg.slots, cfg.payload_bytes) + 4095) & ~4095ull;
}

/* A fabric whose links are up, and in which nothing may be allotted in the end. */
class FabricTest : public ::testing::Test {
protected:
	void up(unsigned hosts, Fabric::Tweak tweak = nullptr)
	{
		fabric = std::make_unique<Fabric>(hosts, std::move(tweak));
		wait_links(*fabric);
		wait_ports(*fabric);
		for (unsigned i = 0; i < hosts; i++)
			idle_.push_back(window_used(*fabric, i));
	}

	/* All clients have hung up by now. */
	void TearDown() override
	{
		if (fabric != nullptr)
			settle();
		for (unsigned i = 0; fabric != nullptr && i < fabric->hosts(); i++) {
			EXPECT_TRUE(eventually([&] { return window_used(*fabric, i) == idle_[i]; }))
				<< "host " << i << " lends out " << window_used(*fabric, i)
				<< " bytes, " << idle_[i] << " at first";
			ag_usage_is_clean(i);
		}
	}

	/* Returns when the agents have noticed the hang-ups and told each other. */
	void settle()
	{
		unsigned n = fabric->hosts();

		for (unsigned i = 0; i < n; i++) {
			Client tool(*fabric, i, W_KIND_TOOL);
			EXPECT_TRUE(
				eventually([&] { return tool.item(W_LIST_CLIENTS, 0).empty(); }));
		}
		for (unsigned i = 0; i < n; i++) {
			for (unsigned to : { (i + 1) % n, (i + n - 1) % n }) {
				Client probe(*fabric, i);
				/* While much is still under way the refusal has another reason. */
				EXPECT_TRUE(eventually([&] {
					probe.connection(W_CONNECT, 1, address(i, "probe"),
							 address(to, "nobody is called so"));
					Msg m = probe.recv();
					return m.type == W_REFUSED &&
					       m.as<w_refused>().status == W_NO_MATCH;
				}));
			}
		}
	}

	void ag_usage_is_clean(unsigned host)
	{
		ag_usage_t u = {};

		fabric->pause(host);
		ag_usage(fabric->agent(host), &u);
		EXPECT_EQ(u.conns, 0u) << "host " << host;
		EXPECT_EQ(u.listens, 0u) << "host " << host;
		EXPECT_EQ(u.allocs, 0u) << "host " << host;
		EXPECT_EQ(u.offers, 0u) << "host " << host;
		EXPECT_EQ(u.circuits, 0u) << "host " << host;
	}

	using ag_usage_t = struct ag_usage;
	std::unique_ptr<Fabric> fabric;

private:
	std::vector<uint64_t> idle_;
};

/* A connection that was made: its ids at both ends, and the messages with its slices. */
struct Pair {
	uint64_t client_conn = 0, server_conn = 0;
	Msg client_linked, server_linked;
};

/* Makes a connection by client and server. */
inline Pair join(Client &c, Client &s, const std::string &disc = "x")
{
	Pair p;
	w_addr at = address(s.welcome.host_id, disc);

	s.listen(1, at);
	s.sync();
	c.connection(W_CONNECT, 2, address(c.welcome.host_id, "c"), at);
	Msg arrived = s.recv();
	EXPECT_EQ(arrived.type, W_ARRIVED);
	p.server_conn = arrived.as<w_arrived>().conn;
	s.accept(p.server_conn, 3);
	p.client_linked = c.recv();
	EXPECT_EQ(p.client_linked.type, W_LINKED);
	p.client_conn = p.client_linked.as<w_linked>().conn;
	c.conn(W_CONFIRM, p.client_conn);
	p.server_linked = s.recv();
	EXPECT_EQ(p.server_linked.type, W_LINKED);
	return p;
}

} // namespace agent_test

#endif
