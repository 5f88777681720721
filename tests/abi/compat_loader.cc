/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the manner of portable C++ transports: every function reached through a pointer of its exact
 * type; Control/Data descriptors; an address structure padded to 8 bytes and passed bare;
 * operations selected with a mask that leaves 0; completions by handlers that arm themselves again;
 * one work queue of a VI with a completion queue, the other without.  Two threads of one process,
 * one NIC handle each.
 */
#include <vipl.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

typedef VIP_RETURN (*OpenNic)(const VIP_CHAR *, VIP_NIC_HANDLE *);
typedef VIP_RETURN (*Post)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE);
typedef VIP_RETURN (*Done)(VIP_VI_HANDLE, VIP_DESCRIPTOR **);
typedef VIP_RETURN (*Wait)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR **);
typedef VIP_RETURN (*CQNotify)(VIP_CQ_HANDLE, VIP_PVOID,
			       void (*)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN));

struct Table {
	OpenNic open;
	Post send, recv;
	Done send_done, recv_done;
	Wait send_wait;
	CQNotify notify;
};

const Table vip = { VipOpenNic,	 VipPostSend, VipPostRecv, VipSendDone,
		    VipRecvDone, VipSendWait, VipCQNotify };

const unsigned rounds = 200;
const VIP_UINT32 bytes = 1500;
const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);

/* Eight bytes, as some compilers pad it; no room for a discriminator. */
struct Address {
	union {
		VIP_NET_ADDRESS address;
		VIP_UINT64 padding;
	};
	VIP_UINT8 guard[24];
};

[[noreturn]] void fail(const char *what, long code)
{
	std::fprintf(stderr, "%s: %ld\n", what, code);
	std::_Exit(1);
}

void check(VIP_RETURN rc, const char *what)
{
	if (rc != VIP_SUCCESS)
		fail(what, rc);
}

void in_time(const char *what)
{
	if (std::chrono::steady_clock::now() > deadline)
		fail(what, -1);
}

class Transport {
public:
	explicit Transport(const char *device)
	{
		check(vip.open(device, &nic_), "VipOpenNic");
		check(VipQueryNic(nic_, &nic_attrs_), "VipQueryNic");
		check(VipCreateCQ(nic_, 1, &cq_), "VipCreateCQ");
		VIP_VI_ATTRIBUTES attrs = VIP_VI_ATTRIBUTES();
		attrs.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
		attrs.MaxTransferSize = 32768;
		check(VipCreateVi(nic_, &attrs, nullptr, cq_, &vi_), "VipCreateVi");
		memory_.resize(64 * 1024 + 64);
		check(VipRegisterMem(nic_, memory_.data(), memory_.size(), nullptr, &handle_),
		      "VipRegisterMem");
		first_ = (char *)(((VIP_ULONG)memory_.data() + 63) & ~63UL);
	}

	~Transport()
	{
		VIP_DESCRIPTOR *d;

		check(VipDisconnect(vi_), "VipDisconnect");
		do
			vip.recv_done(vi_, &d);
		while (d);
		do
			vip.send_done(vi_, &d);
		while (d);
		check(VipDestroyVi(vi_), "VipDestroyVi");
		check(VipDestroyCQ(cq_), "VipDestroyCQ");
		check(VipDeregisterMem(nic_, memory_.data(), handle_), "VipDeregisterMem");
		check(VipCloseNic(nic_), "VipCloseNic");
	}

	/* Address of this NIC with `length` bytes of `discriminator`. */
	std::vector<VIP_UINT8> address(const char *discriminator, VIP_UINT16 length) const
	{
		std::vector<VIP_UINT8> out(sizeof(VIP_NET_ADDRESS) + nic_attrs_.NicAddressLen +
					   length);
		VIP_NET_ADDRESS *a = (VIP_NET_ADDRESS *)out.data();

		a->HostAddressLen = nic_attrs_.NicAddressLen;
		a->DiscriminatorLen = length;
		std::memcpy(a->HostAddress, nic_attrs_.LocalNicAddress, nic_attrs_.NicAddressLen);
		std::memcpy(a->HostAddress + a->HostAddressLen, discriminator, length);
		return out;
	}

	void post_recv(unsigned slot)
	{
		VIP_DESCRIPTOR *d = prepare(slot);

		d->Data[0].Length = 2048;
		d->Control.Length = 2048;
		check(vip.recv(vi_, d, handle_), "VipPostRecv");
	}

	void send(unsigned slot, unsigned number)
	{
		VIP_DESCRIPTOR *d = prepare(slot), *out;
		VIP_RETURN rc;

		std::memset(d->Data[0].Data.Address, (int)number, bytes);
		check(vip.send(vi_, d, handle_), "VipPostSend");
		do {
			rc = vip.send_wait(vi_, 100, &out);
			in_time("VipSendWait");
		} while (rc == VIP_TIMEOUT);
		if (rc != VIP_SUCCESS || out != d)
			fail("VipSendWait", rc);
	}

	/* Lets the handler be called for the next completion; it checks the message and arms itself again. */
	void arm() { check(vip.notify(cq_, this, on_entry), "VipCQNotify"); }

	void await(unsigned count)
	{
		while (received_.load() < count) {
			in_time("messages");
			std::this_thread::yield();
		}
	}

	VIP_NIC_HANDLE nic() const { return nic_; }
	VIP_VI_HANDLE vi() const { return vi_; }

private:
	static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi,
			     VIP_BOOLEAN recv_queue)
	{
		Transport *t = static_cast<Transport *>(context);
		VIP_DESCRIPTOR *d = nullptr;

		if (nic != t->nic_ || vi != t->vi_ || !recv_queue)
			fail("handler", recv_queue);
		VIP_RETURN rc = vip.recv_done(vi, &d);
		check(rc, "VipRecvDone");
		const unsigned number = t->received_.load();
		const char *data = static_cast<const char *>(d->Data[0].Data.Address);
		if (d->Control.Length != bytes || data[0] != (char)number ||
		    data[bytes - 1] != (char)number)
			fail("message", (long)number);
		d->Control.Status = 0;
		d->Control.Length = 2048;
		check(vip.recv(vi, d, t->handle_), "VipPostRecv");
		t->received_.store(number + 1);
		if (number + 1 < rounds)
			t->arm();
	}

	VIP_DESCRIPTOR *prepare(unsigned slot)
	{
		VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(first_ + slot * 64);

		d->Control.SegCount = 1;
		d->Control.Control = VIP_CONTROL_OP_SENDRECV & VIP_CONTROL_IMMEDIATE;
		d->Control.Reserved = 0;
		d->Control.Length = bytes;
		d->Control.Status = 0;
		d->Data[0].Data.Address = first_ + 1024 + slot * 2048 + 1;
		d->Data[0].Handle = handle_;
		d->Data[0].Length = bytes;
		return d;
	}

	VIP_NIC_HANDLE nic_;
	VIP_NIC_ATTRIBUTES nic_attrs_;
	VIP_CQ_HANDLE cq_;
	VIP_VI_HANDLE vi_;
	VIP_MEM_HANDLE handle_;
	std::vector<char> memory_;
	char *first_;
	std::atomic<unsigned> received_{ 0 };
};

/* Accepts a connection; its address fits into `remote`, so no byte after it may be written. */
void serve(Transport &t)
{
	std::vector<VIP_UINT8> local = t.address("srv", 3);
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	Address remote;

	std::memset(&remote, 0xA5, sizeof(remote));
	VIP_RETURN rc = VipConnectWait(t.nic(), (VIP_NET_ADDRESS *)local.data(), 0, &remote.address,
				       &attrs, &conn);
	while (rc == VIP_TIMEOUT) {
		in_time("VipConnectWait");
		rc = VipConnectWait(t.nic(), (VIP_NET_ADDRESS *)local.data(), 20, &remote.address,
				    &attrs, &conn);
	}
	check(rc, "VipConnectWait");
	const VIP_UINT8 *raw = (const VIP_UINT8 *)&remote;
	for (size_t i = 4u + remote.address.HostAddressLen + remote.address.DiscriminatorLen;
	     i < sizeof(remote); i++)
		if (raw[i] != 0xA5)
			fail("written behind the address", (long)i);
	check(VipConnectAccept(conn, t.vi()), "VipConnectAccept");
}

void request(Transport &t)
{
	std::vector<VIP_UINT8> local = t.address("", 0), remote = t.address("srv", 3);
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;

	if (VipConnectRequest(t.vi(), (VIP_NET_ADDRESS *)local.data(),
			      (VIP_NET_ADDRESS *)remote.data(), 0, &attrs) != VIP_INVALID_PARAMETER)
		fail("VipConnectRequest: timeout", 0);
	do {
		rc = VipConnectRequest(t.vi(), (VIP_NET_ADDRESS *)local.data(),
				       (VIP_NET_ADDRESS *)remote.data(), 500, &attrs);
		in_time("VipConnectRequest");
	} while (rc == VIP_NO_MATCH || rc == VIP_TIMEOUT);
	check(rc, "VipConnectRequest");
}

/* One message at a time each way: an unreliable VI drops what meets no receive. */
void talk(Transport &t, bool first)
{
	for (unsigned slot = 0; slot < 4; slot++)
		t.post_recv(slot);
	t.arm();
	if (first)
		request(t);
	else
		serve(t);
	for (unsigned i = 0; i < rounds; i++) {
		if (!first)
			t.await(i + 1);
		t.send(5, i);
		if (first)
			t.await(i + 1);
	}
}

} /* namespace */

int main()
{
	std::atomic<int> ready{ 0 };
	auto side = [&ready](const char *device, bool first) {
		Transport t(device);

		talk(t, first);
		for (ready.fetch_add(1); ready.load() < 2; std::this_thread::yield())
			in_time("the other thread");
	};
	std::thread server(side, "VINIC", false);

	side("VINIC0", true);
	server.join();
	std::puts("ok");
	return 0;
}
