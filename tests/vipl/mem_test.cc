/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.7: protection tags, registration of memory; window memory of vipl_ext.h. */
#include "harness.h"

#include <algorithm>
#include <set>

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

using namespace conf;

TEST(PtagOf, Lifetime)
{
	VIP_NIC_HANDLE n = nic(0).h;
	VIP_PROTECTION_HANDLE a, b;
	ASSERT_RC(VIP_SUCCESS, VipCreatePtag(n, &a));
	ASSERT_RC(VIP_SUCCESS, VipCreatePtag(n, &b));
	{
		RULE("VIPL 5.7 VipCreatePtag: tags are distinct and not NULL");
		EXPECT_NE(a, b);
		EXPECT_NE(nullptr, a);
	}
	{
		RULE("VIPL 5.7 VipDestroyPtag: VIP_ERROR_RESOURCE while used by a VI");
		Vi vi(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE, 64, a));
		EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyPtag(n, a));
		RULE("VIPL 5.2 VipSetViAttributes: lets go of the old tag");
		VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE, 64, b);
		EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(vi, &attrs));
		EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyPtag(n, b));
	}
	{
		RULE("VIPL 5.7 VipDestroyPtag: VIP_ERROR_RESOURCE while used by a region");
		Mem mem(nic(0), 64, false, false, a);
		EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyPtag(n, a));
		RULE("VIPL 5.7 VipSetMemAttributes: lets go of the old tag");
		VIP_MEM_ATTRIBUTES attrs = { b, VIP_FALSE, VIP_FALSE };
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(n, mem.data, mem.h, &attrs));
		EXPECT_RC(VIP_SUCCESS, VipDestroyPtag(n, a));
		EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyPtag(n, b));
	}
	EXPECT_RC(VIP_SUCCESS, VipDestroyPtag(n, b));
	for (void *wrong : { static_cast<void *>(a), static_cast<void *>(nullptr),
			     reinterpret_cast<void *>(0x99), static_cast<void *>(n) }) {
		RULE("VIPL 5.7 VipDestroyPtag: an unknown tag is VIP_INVALID_PTAG");
		EXPECT_RC(VIP_INVALID_PTAG, VipDestroyPtag(n, wrong));
	}
}

TEST(MemOf, WindowMemoryIsRegisteredAgain)
{
	VIP_NIC_HANDLE n = nic(0).h;
	VIP_PVOID at;
	VIP_MEM_HANDLE window, part;

	RULE("vipl_ext VipxAllocMem: window memory is memory, of which parts can be registered, too");
	ASSERT_RC(VIP_SUCCESS, VipxAllocMem(n, 16384, nullptr, &at, &window));
	VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_FALSE, VIP_FALSE };
	auto *middle = static_cast<char *>(at) + 5000;
	ASSERT_RC(VIP_SUCCESS, VipRegisterMem(n, middle, 7000, &attrs, &part));
	EXPECT_NE(window, part);
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(n, middle, part));
	EXPECT_RC(VIP_SUCCESS, VipxFreeMem(n, at, window));
}

TEST(MemOf, BadRegistrations)
{
	const VIP_NIC_ATTRIBUTES &na = nic(0).attrs;
	static char memory[64];
	Nic other(0);
	Ptag foreign(other);
	VIP_MEM_ATTRIBUTES bad_tag = { foreign, VIP_FALSE, VIP_FALSE };
	VIP_MEM_ATTRIBUTES invented = { reinterpret_cast<void *>(0x77), VIP_FALSE, VIP_FALSE };
	// Below the addresses that the kernel lets a program map: no other thread can map memory there.
	void *gone = reinterpret_cast<void *>(4096);
	struct Case {
		const char *rule;
		VIP_RETURN rc;
		void *address;
		VIP_ULONG length;
		VIP_MEM_ATTRIBUTES *attrs;
	} all[] = {
		{ "Length 0", VIP_INVALID_PARAMETER, memory, 0, nullptr },
		{ "Length above MaxRegisterBlockBytes", VIP_INVALID_PARAMETER, memory,
		  na.MaxRegisterBlockBytes + 1, nullptr },
		{ "a Length that wraps round", VIP_INVALID_PARAMETER, memory, ~0UL, nullptr },
		{ "NULL address", VIP_INVALID_PARAMETER, nullptr, 64, nullptr },
		{ "memory that is not mapped", VIP_INVALID_PARAMETER, gone, 4096, nullptr },
		{ "a tag of another open", VIP_INVALID_PTAG, memory, 64, &bad_tag },
		{ "a tag that never was", VIP_INVALID_PTAG, memory, 64, &invented },
	};
	for (auto &c : all) {
		RULE(std::string("VIPL 5.7 VipRegisterMem: ") + c.rule + " is " + name_of(c.rc));
		VIP_MEM_HANDLE h = 4711;
		EXPECT_RC(c.rc, VipRegisterMem(nic(0).h, c.address, c.length, c.attrs, &h));
		EXPECT_EQ(4711u, h) << "the result is written only on success";
	}
}

TEST(MemOf, GoodRegistrations)
{
	Ptag tag(nic(0));
	std::vector<char> memory(3 * 4096);
	for (size_t offset : { 0, 1, 7, 63, 4095 })
		for (size_t length : { 1, 2, 63, 4096, 4097, 8000 })
			for (int bits = 0; bits < 8; bits++) {
				RULE("VIPL 5.7 VipRegisterMem: any alignment, length, rights; VipQueryMem tells");
				VIP_MEM_ATTRIBUTES attrs = { bits & 1 ? tag.h : nullptr,
							     (bits >> 1) & 1, (bits >> 2) & 1 },
						   got{};
				VIP_MEM_HANDLE h = 0;
				char *p = memory.data() + offset;
				EXPECT_RC(VIP_SUCCESS,
					  VipRegisterMem(nic(0).h, p, length, &attrs, &h));
				EXPECT_NE(0u, h);
				EXPECT_NE(0xffffffffu, h);
				EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, p, h, &got));
				EXPECT_EQ(attrs.Ptag, got.Ptag);
				EXPECT_EQ(attrs.EnableRdmaWrite, !!got.EnableRdmaWrite);
				EXPECT_EQ(attrs.EnableRdmaRead, !!got.EnableRdmaRead);
				EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(nic(0).h, p, h));
			}
}

TEST(MemOf, NullAttributes)
{
	RULE("VIPL 5.7 VipRegisterMem: NULL attributes are the default tag and no RDMA");
	static char memory[64];
	VIP_MEM_HANDLE h;
	VIP_MEM_ATTRIBUTES got = { memory, 1, 1 };
	ASSERT_RC(VIP_SUCCESS, VipRegisterMem(nic(0).h, memory, 64, nullptr, &h));
	EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, memory, h, &got));
	EXPECT_EQ(nullptr, got.Ptag);
	EXPECT_FALSE(got.EnableRdmaWrite);
	EXPECT_FALSE(got.EnableRdmaRead);
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(nic(0).h, memory, h));
}

TEST(MemOf, OverlapsAndRepeats)
{
	RULE("VIPL 5.7 VipRegisterMem: overlapping and repeated registrations give different handles and rights");
	std::vector<char> memory(4096);
	std::set<VIP_MEM_HANDLE> handles;
	std::vector<std::pair<char *, VIP_MEM_HANDLE>> list;
	for (int i = 0; i < 50; i++) {
		VIP_MEM_ATTRIBUTES attrs = { nullptr, i & 1, VIP_FALSE };
		VIP_MEM_HANDLE h;
		char *p = memory.data() + (i / 2) * 7;
		ASSERT_RC(VIP_SUCCESS, VipRegisterMem(nic(0).h, p, 1000, &attrs, &h));
		EXPECT_TRUE(handles.insert(h).second);
		list.emplace_back(p, h);
	}
	for (size_t i = 0; i < list.size(); i++) {
		VIP_MEM_ATTRIBUTES got{};
		EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, list[i].first, list[i].second, &got));
		EXPECT_EQ(int(i & 1), !!got.EnableRdmaWrite);
		EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(nic(0).h, list[i].first, list[i].second));
	}
}

TEST(MemOf, WrongAddressOrHandle)
{
	Mem mem(nic(0), 4096), other(nic(0), 4096);
	VIP_MEM_HANDLE stale;
	ASSERT_RC(VIP_SUCCESS, VipRegisterMem(nic(0).h, mem.data, 64, nullptr, &stale));
	ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(nic(0).h, mem.data, stale));
	struct Case {
		const char *what;
		void *address;
		VIP_MEM_HANDLE h;
	} all[] = {
		{ "an address one byte on", mem.data + 1, mem.h },
		{ "an address one byte before", mem.data - 1, mem.h },
		{ "the address of another region", other.data, mem.h },
		{ "a NULL address", nullptr, mem.h },
		{ "handle 0", mem.data, 0 },
		{ "handle 0xffffffff", mem.data, 0xffffffff },
		{ "a stale handle", mem.data, stale },
		{ "the handle of another region", mem.data, other.h },
		{ "a handle with another generation", mem.data, mem.h ^ (1u << 20) },
	};
	struct Function {
		const char *name;
		VIP_RETURN (*call)(void *, VIP_MEM_HANDLE);
	} functions[] = {
		{ "VipQueryMem",
		  [](void *p, VIP_MEM_HANDLE h) {
			  VIP_MEM_ATTRIBUTES a;
			  return VipQueryMem(nic(0).h, p, h, &a);
		  } },
		{ "VipSetMemAttributes",
		  [](void *p, VIP_MEM_HANDLE h) {
			  VIP_MEM_ATTRIBUTES a{};
			  return VipSetMemAttributes(nic(0).h, p, h, &a);
		  } },
		{ "VipDeregisterMem",
		  [](void *p, VIP_MEM_HANDLE h) { return VipDeregisterMem(nic(0).h, p, h); } },
		{ "VipxFreeMem",
		  [](void *p, VIP_MEM_HANDLE h) { return VipxFreeMem(nic(0).h, p, h); } },
	};
	for (auto &f : functions)
		for (auto &c : all) {
			RULE(std::string("VIPL 5.7 ") + f.name + ": " + c.what +
			     " is VIP_INVALID_PARAMETER");
			EXPECT_RC(VIP_INVALID_PARAMETER, f.call(c.address, c.h));
		}
}

TEST(MemOf, SetAttributes)
{
	Nic second(0);
	Ptag tag(nic(0)), foreign(second);
	Mem mem(nic(0), 256);
	for (int bits = 0; bits < 8; bits++) {
		RULE("VIPL 5.7 VipSetMemAttributes: all attributes change");
		VIP_MEM_ATTRIBUTES attrs = { bits & 1 ? tag.h : nullptr, (bits >> 1) & 1,
					     (bits >> 2) & 1 },
				   got{};
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(nic(0).h, mem.data, mem.h, &attrs));
		EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, mem.data, mem.h, &got));
		EXPECT_EQ(attrs.Ptag, got.Ptag);
		EXPECT_EQ(attrs.EnableRdmaWrite, !!got.EnableRdmaWrite);
		EXPECT_EQ(attrs.EnableRdmaRead, !!got.EnableRdmaRead);
	}
	RULE("VIPL 5.7 VipSetMemAttributes: a foreign tag is VIP_INVALID_PTAG and nothing changes");
	VIP_MEM_ATTRIBUTES bad = { foreign, VIP_FALSE, VIP_FALSE }, got{};
	EXPECT_RC(VIP_INVALID_PTAG, VipSetMemAttributes(nic(0).h, mem.data, mem.h, &bad));
	EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, mem.data, mem.h, &got));
	EXPECT_EQ(tag.h, got.Ptag);
	EXPECT_TRUE(got.EnableRdmaWrite);
}

TEST(MemOf, KindsOfMemory)
{
	struct Kind {
		const char *what;
		void *p;
		size_t length;
	};
	static char in_bss[4096];
	char on_stack[256];
	std::vector<char> heap(10000);
	int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	ASSERT_GE(id, 0);
	void *sysv = shmat(id, nullptr, 0);
	shmctl(id, IPC_RMID, nullptr);
	ASSERT_NE(reinterpret_cast<void *>(-1), sysv);
	Kind all[] = { { "the program's data", in_bss, sizeof(in_bss) },
		       { "a stack", on_stack, sizeof(on_stack) },
		       { "malloc's", heap.data(), heap.size() },
		       { "System V shared memory", sysv, 8192 } };
	for (auto &level : levels())
		for (auto &kind : all) {
			RULE(std::string("VIPL 8: memory of ") + kind.what +
			     " can be registered and used, " + level.name);
			Link l(level.value);
			VIP_MEM_HANDLE h;
			VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_FALSE };
			ASSERT_RC(VIP_SUCCESS,
				  VipRegisterMem(l.nb.h, kind.p, kind.length, &attrs, &h));
			Seg seg = l.seg_a(200);
			fill(seg.p, 200, 8);
			memset(kind.p, 0, 200);
			l.write_a({ seg }, { kind.p, h });
			EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
			EXPECT_TRUE(l.works());
			EXPECT_TRUE(same(kind.p, 200, 8));
			EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(l.nb.h, kind.p, h));
		}
	shmdt(sysv);
}

TEST(MemOf, FirstUse)
{
	const size_t length = 8u << 20, part = 100000;
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 8: memory whose pages were never used can be a source and a target, ") +
		     level.name);
		Link l(level.value);
		VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_FALSE };
		char *p[2];
		VIP_MEM_HANDLE h[2];
		for (int i = 0; i < 2; i++) {
			void *at = mmap(nullptr, length, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			ASSERT_NE(MAP_FAILED, at);
			p[i] = static_cast<char *>(at);
			ASSERT_RC(VIP_SUCCESS, VipRegisterMem(i == 0 ? l.na.h : l.nb.h, at, length,
							      &attrs, &h[i]));
		}
		Seg seg = l.seg_a(part);
		fill(seg.p, part, 8);
		l.write_a({ seg }, { p[1] + length / 2 + 77, h[1] });
		EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
		EXPECT_TRUE(l.works());
		EXPECT_TRUE(same(p[1] + length / 2 + 77, part, 8));
		EXPECT_EQ(0, p[1][length / 2 + 76]);
		Seg unused = { p[0] + 5, h[0], part };
		l.write_a({ unused }, { p[1] + length / 2 + 77, h[1] });
		EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
		EXPECT_TRUE(l.works());
		EXPECT_EQ(part, static_cast<size_t>(std::count(p[1] + length / 2 + 77,
							       p[1] + length / 2 + 77 + part, 0)));
		EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(l.na.h, p[0], h[0]));
		EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(l.nb.h, p[1], h[1]));
		munmap(p[0], length);
		munmap(p[1], length);
	}
}

TEST(Window, Allocation)
{
	Nic second(0);
	Ptag foreign(second);
	VIP_MEM_ATTRIBUTES bad = { foreign, VIP_FALSE, VIP_FALSE };
	struct Case {
		const char *rule;
		VIP_RETURN rc;
		VIP_ULONG length;
		VIP_MEM_ATTRIBUTES *attrs;
	} all[] = {
		{ "Length 0 is VIP_INVALID_PARAMETER", VIP_INVALID_PARAMETER, 0, nullptr },
		{ "Length above MaxRegisterBlockBytes is VIP_INVALID_PARAMETER",
		  VIP_INVALID_PARAMETER, nic(0).attrs.MaxRegisterBlockBytes + 1, nullptr },
		{ "a foreign tag is VIP_INVALID_PTAG", VIP_INVALID_PTAG, 64, &bad },
		{ "one byte", VIP_SUCCESS, 1, nullptr },
		{ "a page and a byte", VIP_SUCCESS, 4097, nullptr },
		{ "a megabyte", VIP_SUCCESS, 1u << 20, nullptr },
	};
	for (auto &c : all) {
		RULE(std::string("vipl_ext VipxAllocMem: ") + c.rule);
		VIP_PVOID p = nullptr;
		VIP_MEM_HANDLE h = 0;
		EXPECT_RC(c.rc, VipxAllocMem(nic(0).h, c.length, c.attrs, &p, &h));
		if (c.rc != VIP_SUCCESS)
			continue;
		EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(p) % 4096) << "page-aligned";
		for (size_t i = 0; i < c.length; i += 61)
			EXPECT_EQ(0, static_cast<char *>(p)[i]) << "zeroed";
		VIP_MEM_ATTRIBUTES got;
		EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, p, h, &got));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipDeregisterMem(nic(0).h, p, h));
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipxFreeMem(nic(0).h, static_cast<char *>(p) + 64, h));
		EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic(0).h, p, h));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxFreeMem(nic(0).h, p, h));
	}
}

TEST(Window, TargetOfRdma)
{
	for (auto &level : levels())
		for (size_t length : { 1, 64, 5000, 1 << 20 }) {
			RULE(std::string(
				     "vipl_ext VipxAllocMem: window memory is a target of RDMA like any other, ") +
			     level.name);
			Link l(level.value);
			VIP_PVOID p;
			VIP_MEM_HANDLE h;
			VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_TRUE };
			ASSERT_RC(VIP_SUCCESS, VipxAllocMem(l.nb.h, 1u << 20, &attrs, &p, &h));
			Seg seg = l.seg_a(length), back = l.seg_a(length);
			fill(seg.p, length, length);
			for (int turn = 0; turn < 3; turn++) {
				memset(p, 0, length);
				l.write_a({ seg }, { p, h });
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
				EXPECT_TRUE(l.works());
				EXPECT_TRUE(same(p, length, length));
			}
			if (offers_read(level)) {
				l.read_a({ back }, { p, h });
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_READ));
				EXPECT_TRUE(same(back.p, length, length));
			}
			EXPECT_RC(VIP_SUCCESS, VipxFreeMem(l.nb.h, p, h));
		}
}
