// SPDX-License-Identifier: BSD-2-Clause
// The library with an agent that sends it descriptors of the wrong kind: between it and a correct agent stands one
// that passes on all messages of both, except the descriptors of one kind of message.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "agent_fixture.h"

using agent_test::eventually;

namespace {

constexpr VIP_ULONG kWaitMs = 20000;

// One name, which the library reads from its environment, for all agents that are passed on to.
const std::string &false_name()
{
	static const std::string name = [] {
		std::string n = agent_test::unique_fabric();

		setenv("VIADUCT_FABRIC", n.c_str(), 1);
		setenv("VIADUCT_AGENT", "none", 1);
		return n;
	}();
	return name;
}

struct Kind {
	const char *name;
	int (*make)();
};

int memory(size_t bytes, int seals)
{
	int fd = memfd_create("wrong", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
	EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

const Kind kKinds[] = {
	{ "a pipe",
	  [] {
		  int ends[2];
		  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
		  close(ends[1]);
		  return ends[0];
	  } },
	{ "memory that can shrink", [] { return memory(4 << 20, F_SEAL_GROW); } },
	{ "memory that is too short",
	  [] { return memory(0, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL); } },
	{ "/dev/zero", [] { return open("/dev/zero", O_RDWR | O_CLOEXEC); } },
	{ "a file", [] { return open("/proc/self/exe", O_RDONLY | O_CLOEXEC); } },
	{ "a directory", [] { return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); } },
	{ "an eventfd", [] { return eventfd(0, EFD_CLOEXEC); } },
	{ "an epoll descriptor", [] { return epoll_create1(EPOLL_CLOEXEC); } },
	{ "a socket", [] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); } },
};

// Puts descriptors of `kind` into messages of type `which`; if `kind` is NULL, none.
class FalseAgent {
public:
	FalseAgent(const agent_test::Fabric &f, int which, const Kind *kind)
	    : true_(f), which_(which), kind_(kind)
	{
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, geteuid(), false_name().c_str(), 0);

		listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr *>(&un), len), 0);
		EXPECT_EQ(listen(listener_, 8), 0);
		thread_ = std::thread([this] {
			for (int client;
			     (client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
				serve(client);
				close(client);
			}
		});
	}
	~FalseAgent()
	{
		shutdown(listener_, SHUT_RDWR);
		thread_.join();
		close(listener_);
	}

	unsigned replaced() const { return replaced_; }

private:
	bool pass(int from, int to)
	{
		alignas(8) uint8_t bytes[W_CTL_MAX];
		int fds[W_CTL_FDS];
		unsigned n = 0;
		w_ctl_hdr hdr;

		if (w_ctl_recv(from, bytes, sizeof(bytes), fds, &n) <= 0)
			return false;
		memcpy(&hdr, bytes, sizeof(hdr));
		for (unsigned i = 0; i < n && hdr.type == which_ && kind_ != nullptr; i++) {
			close(fds[i]);
			fds[i] = kind_->make();
			EXPECT_GE(fds[i], 0) << kind_->name;
			replaced_++;
		}
		int rc = w_ctl_send(to, bytes, fds, n);
		for (unsigned i = 0; i < n; i++)
			close(fds[i]);
		return rc == 0;
	}

	void serve(int client)
	{
		agent_test::Client agent;
		pollfd p[2] = { { client, POLLIN, 0 }, { -1, POLLIN, 0 } };
		bool on = true;

		agent.dial(true_, 0);
		p[1].fd = agent.sock;
		while (on && poll(p, 2, -1) > 0) {
			if (p[0].revents != 0)
				on = pass(client, agent.sock);
			if (on && p[1].revents != 0)
				on = pass(agent.sock, client);
		}
	}

	const agent_test::Fabric &true_;
	int which_;
	const Kind *kind_;
	int listener_;
	std::atomic<unsigned> replaced_{ 0 };
	std::thread thread_;
};

struct Address {
	Address(VIP_NIC_HANDLE nic, char disc, unsigned host = 0)
	{
		VIP_NIC_ATTRIBUTES attrs;
		VIP_NET_ADDRESS *p = get();

		EXPECT_EQ(VipQueryNic(nic, &attrs), VIP_SUCCESS);
		p->HostAddressLen = attrs.NicAddressLen;
		p->DiscriminatorLen = 1;
		w_host_addr(static_cast<uint16_t>(host), p->HostAddress);
		p->HostAddress[attrs.NicAddressLen] = static_cast<VIP_UINT8>(disc);
	}
	VIP_NET_ADDRESS *get() { return reinterpret_cast<VIP_NET_ADDRESS *>(room); }
	alignas(8) unsigned char room[64] = {};
};

VIP_RETURN allocate(VIP_NIC_HANDLE nic)
{
	VIP_MEM_HANDLE h;
	void *at = nullptr;
	VIP_RETURN rc = VipxAllocMem(nic, 65536, nullptr, &at, &h);

	if (rc == VIP_SUCCESS) {
		static_cast<char *>(at)[65535] = 1;
		EXPECT_EQ(VipxFreeMem(nic, at, h), VIP_SUCCESS);
	}
	return rc;
}

// Two VIs of one NIC connect as peers; returns the better of their two results.
VIP_RETURN meet(VIP_NIC_HANDLE nic)
{
	VIP_VI_ATTRIBUTES attrs{}, seen;
	VIP_VI_HANDLE vi[2];
	VIP_RETURN rc[2];

	attrs.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	attrs.MaxTransferSize = 4096;
	for (auto &v : vi)
		EXPECT_EQ(VipCreateVi(nic, &attrs, nullptr, nullptr, &v), VIP_SUCCESS);
	Address a(nic, 'a'), b(nic, 'b');
	EXPECT_EQ(VipConnectPeerRequest(vi[0], a.get(), b.get(), kWaitMs), VIP_SUCCESS);
	EXPECT_EQ(VipConnectPeerRequest(vi[1], b.get(), a.get(), kWaitMs), VIP_SUCCESS);
	for (int i = 0; i < 2; i++)
		rc[i] = VipConnectPeerWait(vi[i], &seen);
	for (auto &v : vi) {
		VipDisconnect(v);
		EXPECT_EQ(VipDestroyVi(v), VIP_SUCCESS);
	}
	return rc[0] == VIP_SUCCESS ? rc[0] : rc[1];
}

// A VI connects to a process of the neighbour, which accepts: the port between them is announced before.
VIP_RETURN reach(VIP_NIC_HANDLE nic, const agent_test::Fabric &f)
{
	agent_test::Client far(f, 1);
	VIP_VI_ATTRIBUTES attrs{}, seen;
	VIP_VI_HANDLE vi;

	attrs.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	attrs.MaxTransferSize = 4096;
	EXPECT_EQ(VipCreateVi(nic, &attrs, nullptr, nullptr, &vi), VIP_SUCCESS);
	far.listen(1, agent_test::address(1, "f"));
	far.sync();
	std::thread server([&] {
		/* If the port cannot be attached, the request may end before it arrives. */
		agent_test::Msg arrived = far.recv();
		if (arrived.type == W_ARRIVED)
			far.accept(arrived.as<w_arrived>().conn, 2, arrived.as<w_arrived>().attrs);
	});
	Address a(nic, 'a'), b(nic, 'f', 1);
	VIP_RETURN rc = VipConnectRequest(vi, a.get(), b.get(), kWaitMs, &seen);
	shutdown(far.sock, SHUT_RDWR);
	server.join();
	VipDisconnect(vi);
	EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
	return rc;
}

struct Outcome {
	VIP_RETURN open, alloc, connect;
	unsigned replaced;
};

Outcome use(const agent_test::Fabric &f, int which, const Kind *kind)
{
	FalseAgent between(f, which, kind);
	VIP_NIC_HANDLE nic;
	Outcome o = { VIP_SUCCESS, VIP_SUCCESS, VIP_SUCCESS, 0 };

	o.open = VipOpenNic("nic0", &nic);
	if (o.open == VIP_SUCCESS) {
		if (which == W_ALLOCATED)
			o.alloc = allocate(nic);
		else
			o.connect = which == W_PORT ? reach(nic, f) : meet(nic);
		EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
	}
	o.replaced = between.replaced();
	return o;
}

class FalseAgents : public ::testing::Test {
protected:
	void SetUp() override
	{
		false_name();
		testing::internal::CaptureStderr();
		wait_links(fabric);
		for (int which : { W_WELCOME, W_PORT, W_ALLOCATED, W_LINKED }) {
			Outcome o = use(fabric, which, nullptr);
			EXPECT_EQ(o.open, VIP_SUCCESS);
			EXPECT_EQ(o.alloc, VIP_SUCCESS);
			EXPECT_EQ(o.connect, VIP_SUCCESS);
		}
		before = open_fds();
	}
	void TearDown() override
	{
		EXPECT_TRUE(eventually([&] { return open_fds() <= before; }));
		testing::internal::GetCapturedStderr();
	}

	agent_test::Fabric fabric{ 2 };
	int before = 0;
};

TEST_F(FalseAgents, OpenNoNicWithWhatIsNoPage)
{
	for (auto &kind : kKinds) {
		Outcome o = use(fabric, W_WELCOME, &kind);
		EXPECT_NE(o.open, VIP_SUCCESS) << kind.name;
		EXPECT_GT(o.replaced, 0u) << kind.name;
	}
}

TEST_F(FalseAgents, AttachNoPortWithWhatIsNoPage)
{
	for (auto &kind : kKinds) {
		Outcome o = use(fabric, W_PORT, &kind);
		EXPECT_EQ(o.open, VIP_SUCCESS) << kind.name;
		EXPECT_NE(o.connect, VIP_SUCCESS) << kind.name;
		EXPECT_GT(o.replaced, 0u) << kind.name;
	}
}

TEST_F(FalseAgents, MapNoWindowMemoryOfAnotherKind)
{
	for (auto &kind : kKinds) {
		Outcome o = use(fabric, W_ALLOCATED, &kind);
		EXPECT_EQ(o.open, VIP_SUCCESS) << kind.name;
		EXPECT_NE(o.alloc, VIP_SUCCESS) << kind.name;
		EXPECT_EQ(o.replaced, 1u) << kind.name;
	}
}

TEST_F(FalseAgents, ConnectNoViByMemoryOfAnotherKind)
{
	for (auto &kind : kKinds) {
		Outcome o = use(fabric, W_LINKED, &kind);
		EXPECT_EQ(o.open, VIP_SUCCESS) << kind.name;
		EXPECT_NE(o.connect, VIP_SUCCESS) << kind.name;
		EXPECT_GT(o.replaced, 0u) << kind.name;
	}
}

} // namespace
