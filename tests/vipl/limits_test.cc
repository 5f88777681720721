/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits VipQueryNic reports, and many of everything. */
#include "harness.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace conf;

TEST(Limits, FullQueuesOfAConnection)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 4.3: MaxDescriptorsPerQueue can be outstanding on both queues, none is lost, ") +
		     level.name);
		VIP_ULONG max = nic(0).attrs.MaxDescriptorsPerQueue;
		LinkOptions o;
		o.arena = max * 160;
		Link l(level.value, o);
		std::vector<VIP_DESCRIPTOR *> recvs, sends;
		for (VIP_ULONG i = 0; i < max; i++)
			recvs.push_back(l.recv_b(16));
		EXPECT_RC(VIP_ERROR_RESOURCE, VipPostRecv(*l.vb, make(l.b, 0, {}), l.b.mem.h));
		EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_VI_OVERRUN, l.vb->h));
		for (VIP_ULONG i = 0; i < max; i++) {
			Seg seg = l.seg_a(16);
			fill(seg.p, 16, i);
			sends.push_back(l.send_a({ seg }));
		}
		for (VIP_ULONG i = 0; i < max; i++) {
			ASSERT_EQ(recvs[i], take_recv(*l.vb)) << i;
			ASSERT_TRUE(has_status(recvs[i], VIP_STATUS_OP_RECEIVE));
			ASSERT_TRUE(same(recvs[i]->DS[0].Local.Data.Address, 16, i));
			ASSERT_EQ(sends[i], take_send(*l.va)) << i;
		}
	}
}

TEST(Limits, RdmaWritesOutstanding)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 4.3: 300 RDMA writes on one VI, ") + level.name);
		Link l(level.value);
		Mem target(l.nb, 300 * 1000, true);
		std::vector<VIP_DESCRIPTOR *> descs;
		for (int i = 0; i < 300; i++) {
			Seg seg = l.seg_a(1000);
			fill(seg.p, 1000, i);
			descs.push_back(l.write_a({ seg }, { target.data + i * 1000, target.h }));
		}
		for (auto *d : descs) {
			ASSERT_EQ(d, take_send(*l.va));
			ASSERT_TRUE(has_status(d, VIP_STATUS_OP_RDMA_WRITE));
		}
		EXPECT_TRUE(l.works());
		for (int i = 0; i < 300; i++)
			EXPECT_TRUE(same(target.data + i * 1000, 1000, i)) << i;
	}
}

TEST(Limits, ThousandVis)
{
	RULE("VIPL 4.3: 1000 VIs on one NIC handle, created, told apart and destroyed");
	std::vector<VIP_VI_HANDLE> vis(1000);
	std::set<VIP_VI_HANDLE> distinct;
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY, 4096);
	for (auto &vi : vis) {
		ASSERT_RC(VIP_SUCCESS, VipCreateVi(nic(0).h, &attrs, nullptr, nullptr, &vi));
		distinct.insert(vi);
	}
	EXPECT_EQ(1000u, distinct.size());
	for (auto &vi : vis)
		EXPECT_RC(VIP_SUCCESS, VipDestroyVi(vi));
}

TEST(Limits, ThousandConnectedVis)
{
	constexpr int kN = 1000;
	RULE("VIPL 4.3: 1000 connected VIs on one NIC handle, one CQ, each passes a message");
	Cq cq(nic(1), kN);
	Arena a(nic(0), nullptr, kN * 256), b(nic(1), nullptr, kN * 256);
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY, 4096);
	std::vector<std::unique_ptr<Vi>> clients, servers;
	std::string disc = unique_disc();
	for (int i = 0; i < kN; i++) {
		clients.push_back(std::make_unique<Vi>(nic(0), attrs));
		servers.push_back(std::make_unique<Vi>(nic(1), attrs, nullptr, cq));
		ASSERT_RC(VIP_SUCCESS,
			  VipPostRecv(*servers[i], make(b, 0, { { b.bytes(8), b.mem.h, 8 } }),
				      b.mem.h));
	}
	std::thread server([&] {
		for (int i = 0; i < kN; i++) {
			Addr here(nic(1), disc), from(nic(1), "");
			VIP_VI_ATTRIBUTES seen;
			VIP_CONN_HANDLE conn;
			ASSERT_RC(VIP_SUCCESS,
				  VipConnectWait(nic(1).h, here, kWaitMs, from, &seen, &conn));
			ASSERT_RC(VIP_SUCCESS, VipConnectAccept(conn, *servers[i]));
		}
	});
	Addr local(nic(0), "c"), remote(nic(1), disc);
	int connected = 0;
	for (int i = 0; i < kN; i++) {
		VIP_RETURN rc = VIP_NO_MATCH;
		VIP_VI_ATTRIBUTES theirs;
		eventually([&] {
			rc = VipConnectRequest(*clients[i], local, remote, kWaitMs, &theirs);
			return rc != VIP_NO_MATCH;
		});
		EXPECT_RC(VIP_SUCCESS, rc) << "connection " << i;
		if (rc != VIP_SUCCESS)
			break;
		connected++;
	}
	server.join();
	for (int i = 0; i < connected; i++) {
		VIP_DESCRIPTOR *send = make(a, 0, { { a.bytes(8), a.mem.h, 8 } });
		memcpy(send->DS[0].Local.Data.Address, &i, sizeof(i));
		ASSERT_RC(VIP_SUCCESS, VipPostSend(*clients[i], send, a.mem.h));
	}
	std::set<int> seen;
	for (int i = 0; i < connected; i++) {
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		VIP_DESCRIPTOR *desc;
		ASSERT_RC(VIP_SUCCESS, VipCQWait(cq, kWaitMs, &vi, &recv)) << i;
		ASSERT_RC(VIP_SUCCESS, VipRecvDone(vi, &desc));
		int value;
		memcpy(&value, desc->DS[0].Local.Data.Address, sizeof(value));
		EXPECT_EQ(servers[static_cast<size_t>(value)]->h, vi);
		seen.insert(value);
	}
	EXPECT_EQ(size_t(kN), seen.size());
}

TEST(Limits, ConnectAndDisconnectLeaveNothing)
{
	RULE("VIPL 5.3: connecting and disconnecting 300 times leaves no descriptor behind");
	auto open_fds = [] {
		std::set<int> fds;
		for (int fd = 0; fd < 4096; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				fds.insert(fd);
		return fds.size();
	};
	Vi a(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nic(1), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	size_t before = 0;
	for (int i = 0; i < 300; i++) {
		connect(a, b);
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(i & 1 ? a : b));
		EXPECT_TRUE((i & 1 ? b : a).reaches(VIP_STATE_ERROR));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(i & 1 ? b : a));
		if (i == 20)
			before = open_fds();
	}
	EXPECT_TRUE(eventually([&] { return open_fds() <= before; }))
		<< open_fds() << " against " << before;
}

TEST(Limits, NoDescriptorsForAConnection)
{
	RULE("VIPL 5.3 VipConnectPeerRequest: no descriptors left ends both sides at once");
	Nic na(0), nb(1);
	Vi a(na, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nb, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	connect(a, b);
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(a));
	EXPECT_TRUE(b.reaches(VIP_STATE_ERROR));
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(b));
	Addr at_a(na, unique_disc()), at_b(nb, unique_disc());
	rlimit before, none;
	VIP_VI_ATTRIBUTES seen;
	for (bool enough : { false, true }) {
		int lowest = dup(0);
		close(lowest);
		getrlimit(RLIMIT_NOFILE, &before);
		none = before;
		none.rlim_cur = static_cast<rlim_t>(lowest);
		if (!enough)
			setrlimit(RLIMIT_NOFILE, &none);
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(a, at_a, at_b, kWaitMs));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(b, at_b, at_a, kWaitMs));
		VIP_RETURN rc_a = VipConnectPeerWait(a, &seen), rc_b = VipConnectPeerWait(b, &seen);
		setrlimit(RLIMIT_NOFILE, &before);
		EXPECT_RC(enough ? VIP_SUCCESS : VIP_ERROR_RESOURCE, rc_a);
		EXPECT_RC(enough ? VIP_SUCCESS : VIP_ERROR_RESOURCE, rc_b);
	}
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(a));
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(b));
}

TEST(Limits, ManyRegions)
{
	constexpr int kN = 5000;
	RULE("VIPL 4.3: thousands of regions, handles distinct, never 0 or 0xffffffff");
	static char memory[4096];
	std::vector<VIP_MEM_HANDLE> handles(kN);
	for (int turn = 0; turn < 3; turn++) {
		std::set<VIP_MEM_HANDLE> distinct;
		for (auto &h : handles) {
			ASSERT_RC(VIP_SUCCESS,
				  VipRegisterMem(nic(0).h, memory, sizeof(memory), nullptr, &h));
			distinct.insert(h);
		}
		EXPECT_EQ(size_t(kN), distinct.size());
		EXPECT_EQ(0u, distinct.count(0) + distinct.count(0xffffffff));
		for (auto &h : handles)
			ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(nic(0).h, memory, h));
	}
}

/* A place of the table that is used often must not soon give an old handle again. */
TEST(Limits, HandlesAreNotSoonUsedAgain)
{
	RULE("VIPL 2: a memory handle just given back does not come again soon");
	static char memory[64];
	std::set<VIP_MEM_HANDLE> seen;
	for (int i = 0; i < 10000; i++) {
		VIP_MEM_HANDLE h;
		ASSERT_RC(VIP_SUCCESS,
			  VipRegisterMem(nic(0).h, memory, sizeof(memory), nullptr, &h));
		ASSERT_TRUE(seen.insert(h).second) << "after " << i;
		ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(nic(0).h, memory, h));
	}
}

TEST(Limits, ManyTagsAndCqs)
{
	RULE("VIPL 4.3: hundreds of protection tags and CQs");
	std::vector<std::unique_ptr<Ptag>> tags;
	std::vector<std::unique_ptr<Cq>> cqs;
	std::set<void *> distinct;
	for (int i = 0; i < 500; i++) {
		tags.push_back(std::make_unique<Ptag>(nic(0)));
		cqs.push_back(std::make_unique<Cq>(nic(0)));
		distinct.insert(tags.back()->h);
		distinct.insert(cqs.back()->h);
	}
	EXPECT_EQ(1000u, distinct.size());
}

TEST(Limits, RegisteredBytes)
{
	RULE("VIPL 4.3: MaxRegisterRegions is the true limit: one more is VIP_ERROR_RESOURCE");
	static char memory[64];
	VIP_ULONG max = nic(0).attrs.MaxRegisterRegions;
	Nic n(0);
	std::vector<VIP_MEM_HANDLE> handles(max);
	for (auto &h : handles)
		ASSERT_RC(VIP_SUCCESS, VipRegisterMem(n.h, memory, 1, nullptr, &h));
	VIP_MEM_HANDLE more = 0;
	EXPECT_RC(VIP_ERROR_RESOURCE, VipRegisterMem(n.h, memory, 1, nullptr, &more));
	for (auto &h : handles)
		ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(n.h, memory, h));
	EXPECT_RC(VIP_SUCCESS, VipRegisterMem(n.h, memory, 1, nullptr, &more));
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(n.h, memory, more));
}

/* A mapping that only reserves addresses: nothing may read all of it, or make its pages present. */
TEST(Limits, MoreThanTheMachineHas)
{
	VIP_ULONG most = nic(0).attrs.MaxRegisterBlockBytes;
	for (VIP_ULONG length : { most + 1, VIP_ULONG(8) << 40, VIP_ULONG(64) << 40 })
		for (int prot : { PROT_NONE, PROT_READ | PROT_WRITE }) {
			RULE("VIPL 5.7 VipRegisterMem: more than MaxRegisterBlockBytes is refused at once");
			if (length <= most)
				continue;
			void *at = mmap(nullptr, length, prot,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (at == MAP_FAILED)
				continue;
			VIP_MEM_HANDLE h = 4711;
			EXPECT_RC(VIP_INVALID_PARAMETER,
				  VipRegisterMem(nic(0).h, at, length, nullptr, &h));
			EXPECT_EQ(4711u, h);
			std::vector<unsigned char> seen(256);
			EXPECT_EQ(0, mincore(at, 256 * static_cast<size_t>(sysconf(_SC_PAGESIZE)),
					     seen.data()));
			EXPECT_EQ(256, std::count(seen.begin(), seen.end(), 0)) << "made present";
			munmap(at, length);
		}
	EXPECT_LE(most, static_cast<VIP_ULONG>(sysconf(_SC_PHYS_PAGES)) *
					static_cast<VIP_ULONG>(sysconf(_SC_PAGESIZE)) +
				(1ul << 30));
}

/* Does the kernel have one huge page of zeros for memory that is only read? */
static bool huge_zero_page()
{
	char line[64] = "";
	int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 && !strstr(line, "[never]");
}

/*
 * One block registered again and again: each registration counts.  It is all one page of zeros; with small
 * pages, reading 64 TiB would take minutes.
 */
TEST(Limits, BytesToTheLimit)
{
	RULE("VIPL 4.3: MaxRegisterBlockBytes and MaxRegisterBytes are the true limits");
	Nic n(0);
	VIP_ULONG block = n.attrs.MaxRegisterBlockBytes, left = n.attrs.MaxRegisterBytes;
	if (!huge_zero_page())
		GTEST_SKIP() << "needs huge pages (transparent_hugepage/enabled)";
	char *at = static_cast<char *>(mmap(nullptr, block, PROT_READ,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	ASSERT_NE(MAP_FAILED, static_cast<void *>(at));
	madvise(at, block, MADV_HUGEPAGE);
	std::vector<VIP_MEM_HANDLE> handles;
	VIP_ULONG last = 0;
	while (left > 0) {
		VIP_MEM_HANDLE h;
		last = std::min(block, left);
		ASSERT_RC(VIP_SUCCESS, VipRegisterMem(n.h, at, last, nullptr, &h))
			<< handles.size();
		handles.push_back(h);
		left -= last;
	}
	VIP_MEM_HANDLE more = 4711;
	EXPECT_RC(VIP_ERROR_RESOURCE, VipRegisterMem(n.h, at, 1, nullptr, &more));
	EXPECT_EQ(4711u, more);
	ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(n.h, at, handles.back()));
	EXPECT_RC(last < block ? VIP_ERROR_RESOURCE : VIP_INVALID_PARAMETER,
		  VipRegisterMem(n.h, at, last + 1, nullptr, &more));
	EXPECT_RC(VIP_SUCCESS, VipRegisterMem(n.h, at, last, nullptr, &handles.back()));
	for (auto &h : handles)
		ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(n.h, at, h));
	munmap(at, block);
}

TEST(Limits, SegmentsToTheLimit)
{
	for (auto &level : levels()) {
		VIP_ULONG max = nic(0).attrs.MaxSegmentsPerDesc;
		for (VIP_ULONG count : { max, max + 1 })
			for (bool write : { false, true }) {
				RULE(std::string(
					     "VIPL 4.3: MaxSegmentsPerDesc, with the address segment, ") +
				     level.name);
				Link l(level.value);
				Mem target(l.nb, max, true);
				std::vector<Seg> segs;
				for (VIP_ULONG i = write; i < count; i++) {
					segs.push_back(l.seg_a(1));
					*static_cast<char *>(segs.back().p) = static_cast<char>(i);
				}
				VIP_DESCRIPTOR *recv = write ? nullptr : l.recv_b(max);
				VIP_DESCRIPTOR *d =
					write ? l.write_a(segs, { target.data, target.h })
					      : l.send_a(segs);
				ASSERT_EQ(d, take_send(*l.va));
				VIP_UINT32 op = write ? VIP_STATUS_OP_RDMA_WRITE
						      : VIP_STATUS_OP_SEND;
				if (count > max) {
					EXPECT_TRUE(has_status(d, op | VIP_STATUS_FORMAT_ERROR));
					continue;
				}
				EXPECT_TRUE(has_status(d, op));
				char *got = target.data;
				if (!write) {
					ASSERT_EQ(recv, take_recv(*l.vb));
					got = static_cast<char *>(recv->DS[0].Local.Data.Address);
				}
				EXPECT_TRUE(eventually([&] {
					for (VIP_ULONG i = write; i < count; i++)
						if (got[i - write] != static_cast<char>(i))
							return false;
					return true;
				}));
			}
	}
}

TEST(Limits, TagsToTheLimit)
{
	RULE("VIPL 4.3: MaxPtags is the true limit: one more is VIP_ERROR_RESOURCE");
	Nic n(0);
	std::vector<VIP_PROTECTION_HANDLE> tags(n.attrs.MaxPtags);
	for (auto &t : tags)
		ASSERT_RC(VIP_SUCCESS, VipCreatePtag(n.h, &t));
	VIP_PROTECTION_HANDLE more;
	EXPECT_RC(VIP_ERROR_RESOURCE, VipCreatePtag(n.h, &more));
	for (auto &t : tags)
		ASSERT_RC(VIP_SUCCESS, VipDestroyPtag(n.h, t));
}

TEST(Limits, CqsToTheLimit)
{
	RULE("VIPL 4.3: MaxCQ is the true limit: one more is VIP_ERROR_RESOURCE");
	Nic n(0);
	std::vector<VIP_CQ_HANDLE> cqs(n.attrs.MaxCQ);
	for (auto &c : cqs)
		ASSERT_RC(VIP_SUCCESS, VipCreateCQ(n.h, 1, &c));
	VIP_CQ_HANDLE more;
	EXPECT_RC(VIP_ERROR_RESOURCE, VipCreateCQ(n.h, 1, &more));
	for (auto &c : cqs)
		ASSERT_RC(VIP_SUCCESS, VipDestroyCQ(c));
}

TEST(Limits, VisToTheLimit)
{
	RULE("VIPL 4.3: MaxVI is the true limit: one more is VIP_ERROR_RESOURCE");
	Nic n(0);
	std::vector<VIP_VI_HANDLE> vis(n.attrs.MaxVI);
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE);
	for (auto &v : vis)
		ASSERT_RC(VIP_SUCCESS, VipCreateVi(n.h, &attrs, nullptr, nullptr, &v));
	VIP_VI_HANDLE more;
	EXPECT_RC(VIP_ERROR_RESOURCE, VipCreateVi(n.h, &attrs, nullptr, nullptr, &more));
	for (auto &v : vis)
		ASSERT_RC(VIP_SUCCESS, VipDestroyVi(v));
}
