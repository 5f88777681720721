/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

std::string Variant::name() const
{
	std::string text = std::string(base) + "_" + kind + (client ? "_client" : "_agent");

	for (char &c : text)
		c = c == '+' ? '_' : c;
	return text;
}

std::ostream &operator<<(std::ostream &os, const Variant &v)
{
	return os << v.name();
}

std::vector<Variant> all_variants()
{
	std::vector<Variant> all;

	for (const char *base : { "self", "pair" }) {
		for (const char *kind : { "emu", "emu+strict", "emu+fault", "emu+strict+fault",
					  "emu+model", "emu+strict+model" }) {
			all.push_back({ base, kind, false });
			all.push_back({ base, kind, true });
		}
	}
	if (getenv("VIADUCT_TEST_ADAPTERS") != nullptr) {
		for (const char *kind : { "cdev", "cdev+strict", "cdev+fault" }) {
			all.push_back({ "pair", kind, false });
			all.push_back({ "pair", kind, true });
		}
	}
	return all;
}

static std::string adapter(int end)
{
	std::string both = getenv("VIADUCT_TEST_ADAPTERS");
	size_t comma = both.find(',');

	return end == 0 ? both.substr(0, comma) : both.substr(comma + 1);
}

void Rig::make_end(int end, const Limits &limits, const char *faults, uint64_t seed)
{
	struct port_emu_cfg cfg = {};
	struct port_host_cfg hc = {};
	const char *names[] = { "self", nullptr };
	std::string adapters;
	struct port *base = nullptr;

	hc.kind = variant.cdev() ? "cdev" : "emu";

	snprintf(cfg.name, sizeof(cfg.name), "%s",
		 variant.self() ? "self"
		 : end		? "left"
				: "right");
	cfg.db_bits = limits.db_bits;
	cfg.spads = limits.spads;
	cfg.window_bytes = limits.window_bytes;
	cfg.agent_bits = limits.agent_bits;
	names[1] = cfg.name;
	if (variant.cdev())
		adapters = std::string(cfg.name) + "=" + adapter(end);
	hc.adapters = adapters.c_str();
	hc.names = names;
	hc.ports = variant.self() ? 1 : 2;
	ASSERT_EQ(port_host_create(&hc, &host[end]), 0);
	irq[end] = port_host_irq(host[end]);
	cfg.index = variant.self() ? 0 : variant.cdev() ? 1 : end + 1;
	ASSERT_EQ(port_host_port(host[end], &cfg, &base), 0);
	ASSERT_EQ(port_decorate(base, variant.kind, faults, seed + end, &agent[end]), 0);
}

void Rig::plug()
{
	int pair[2];

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ASSERT_EQ(port_emu_plug(agent[0], pair[0]), 0);
	ASSERT_EQ(port_emu_plug(agent[1], pair[1]), 0);
}

Rig::Rig(const Variant &v, const Limits &limits, const char *faults, uint64_t seed) : variant(v)
{
	make_end(0, limits, faults, seed);
	if (v.self()) {
		agent[1] = agent[0];
		irq[1] = irq[0];
		host[1] = host[0];
	} else {
		make_end(1, limits, faults, seed);
		if (!v.cdev())
			plug();
		EXPECT_EQ(port_link_enable(agent[0]), 0);
		EXPECT_EQ(port_link_enable(agent[1]), 0);
		EXPECT_TRUE(settle_link(PORT_LINK_UP));
	}
	for (int end = 0; end < 2; end++)
		user[end] = v.client ? attach(end) : agent[end];
	if (v.cdev())
		witness = attach(1);
}

Rig::~Rig()
{
	for (struct port *view : views)
		port_close(view);
	port_close(agent[0]);
	if (!variant.self())
		port_close(agent[1]);
	port_host_destroy(host[0]);
	if (!variant.self())
		port_host_destroy(host[1]);
}

struct port *Rig::attach(int end, struct port_irq *with)
{
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS];
	int own[PORT_ATTACH_FDS];
	unsigned int nfds = 0;
	struct port *view = nullptr;

	EXPECT_EQ(port_export_view(agent[end], text, sizeof(text), fds, &nfds), 0);
	for (unsigned int i = 0; i < nfds; i++)
		own[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	EXPECT_EQ(port_attach(text, own, nfds, with != nullptr ? with : irq[end], &view), 0)
		<< text;
	views.push_back(view);
	return view;
}

void Rig::ring(uint32_t bits)
{
	uint32_t bits_there = UINT32_MAX >> (32 - agent[1]->limits.db_bits);
	int64_t deadline = u_now_ns() + kPatience;

	if (witness != nullptr)
		port_db_clear(witness, UINT32_MAX);
	port_peer_db_ring(user[0], bits);
	if (variant.late())
		port_flush(user[0]);
	while (witness != nullptr && (port_db_read(witness) & bits) != (bits & bits_there) &&
	       u_now_ns() < deadline)
		sched_yield();
}

bool Rig::settle(const std::function<bool()> &done)
{
	struct port *ports[] = { agent[0], agent[1], user[0], user[1] };
	int64_t deadline = u_now_ns() + kPatience;
	std::vector<struct pollfd> fds;

	for (struct port *p : ports) {
		if (p != nullptr)
			fds.push_back({ port_event_fd(p), POLLIN, 0 });
	}
	while (!done()) {
		if (u_now_ns() > deadline || poll(fds.data(), fds.size(), 1000) < 0)
			return false;
		for (struct port *p : ports)
			EXPECT_TRUE(p == nullptr || port_service(p) >= 0);
	}
	return true;
}

bool Rig::settle_link(enum port_link state)
{
	return settle([&] {
		return port_link_state(agent[0], nullptr) == state &&
		       port_link_state(agent[1], nullptr) == state;
	});
}

Window::Window(Rig &r, size_t len) : rig(r)
{
	EXPECT_EQ(port_slice_alloc(rig.agent[1], len, &slice), 0);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], slice.id, len, &out_fd), 0);
	EXPECT_EQ(port_map(rig.user[1], slice.fd, len, PORT_INBOUND, &in), 0);
	EXPECT_EQ(port_map(rig.user[0], out_fd, len, PORT_OUTBOUND, &out), 0);
}

Window::~Window()
{
	port_unmap(rig.user[0], &out);
	port_unmap(rig.user[1], &in);
	port_slice_free(rig.agent[1], slice.id);
	close(slice.fd);
	close(out_fd);
}

void Window::land()
{
	fence();
	if (rig.late())
		port_flush(rig.user[0]);
}

uint32_t Window::in32(size_t off)
{
	return __atomic_load_n(reinterpret_cast<uint32_t *>(in_bytes() + off), __ATOMIC_ACQUIRE);
}

bool is_asleep(int tid)
{
	std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
	std::string line;

	std::getline(file, line);
	return line.find(") S") != std::string::npos;
}
