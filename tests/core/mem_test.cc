/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions, protection tags and the memory that a handle gives access to. */
#include <sys/mman.h>

#include <atomic>
#include <set>

#include "apart.h"
#include "core_fixture.h"

namespace {

class Mem : public CoreTest {
protected:
	VIP_MEM_HANDLE reg(void *addr, VIP_ULONG len, VIP_PROTECTION_HANDLE ptag = nullptr,
			   bool write = false, bool read = false)
	{
		VIP_MEM_ATTRIBUTES a = { ptag, write, read };
		VIP_MEM_HANDLE h = 0;

		EXPECT_EQ(VIP_SUCCESS, VipRegisterMem(nic, addr, len, &a, &h));
		EXPECT_NE(0u, h);
		EXPECT_NE(0xffffffffu, h);
		return h;
	}

	void dereg(void *addr, VIP_MEM_HANDLE h)
	{
		EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, addr, h));
	}
};

TEST_F(Mem, CheckTable)
{
	VIP_PROTECTION_HANDLE a, b;
	uint8_t *base = data + 100;

	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &a));
	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &b));
	VIP_MEM_HANDLE plain = reg(base, 1000);
	VIP_MEM_HANDLE tagged = reg(base, 1000, a);
	VIP_MEM_HANDLE writable = reg(base, 1000, a, true, false);
	VIP_MEM_HANDLE readable = reg(base, 1000, a, false, true);
	const struct {
		VIP_PROTECTION_HANDLE vi_ptag;
		VIP_MEM_HANDLE h;
		int off;
		uint64_t len;
		uint32_t access;
		bool ok;
	} row[] = {
		/* bounds */
		{ nullptr, plain, 0, 1000, FAKE_READ | FAKE_WRITE, true },
		{ nullptr, plain, 0, 1001, FAKE_READ, false },
		{ nullptr, plain, -1, 1, FAKE_READ, false },
		{ nullptr, plain, 999, 1, FAKE_READ, true },
		{ nullptr, plain, 1000, 1, FAKE_READ, false },
		{ nullptr, plain, 1000, 0, FAKE_READ, true },
		{ nullptr, plain, 1001, 0, FAKE_READ, false },
		{ nullptr, plain, 10, UINT64_MAX, FAKE_READ, false },
		{ nullptr, plain, 0, UINT64_MAX - 50, FAKE_READ, false },
		/* tags: compared only if both are set */
		{ nullptr, tagged, 0, 1000, FAKE_READ, true },
		{ a, tagged, 0, 1000, FAKE_READ, true },
		{ b, tagged, 0, 1000, FAKE_READ, false },
		{ b, plain, 0, 1000, FAKE_READ, true },
		/* remote rights */
		{ a, plain, 0, 8, FAKE_REMOTE_WRITE, false },
		{ a, plain, 0, 8, FAKE_REMOTE_READ, false },
		{ a, writable, 0, 8, FAKE_REMOTE_WRITE, true },
		{ a, writable, 0, 8, FAKE_REMOTE_READ, false },
		{ b, writable, 0, 8, FAKE_REMOTE_WRITE, false },
		{ a, readable, 0, 8, FAKE_REMOTE_READ, true },
		{ a, readable, 0, 8, FAKE_REMOTE_WRITE, false },
		{ nullptr, writable, 1000, 1, FAKE_REMOTE_WRITE, false },
		/* handles */
		{ nullptr, 0, 0, 8, FAKE_READ, false },
		{ nullptr, 0xffffffff, 0, 8, FAKE_READ, false },
		{ nullptr, plain ^ 0x40000, 0, 8, FAKE_READ, false },
		{ nullptr, plain | 0x3f000, 0, 8, FAKE_READ, false },
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t *at = base + row[i].off;
		void *got = fake_tpt(nic, row[i].vi_ptag, at, row[i].len, row[i].h, row[i].access);

		EXPECT_EQ(row[i].ok ? at : nullptr, got) << "row " << i;
	}
	for (VIP_MEM_HANDLE h : { plain, tagged, writable, readable })
		dereg(base, h);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, a));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, b));
}

TEST_F(Mem, SameMemoryTwiceGivesDifferentHandles)
{
	VIP_MEM_HANDLE one = reg(data, 100);
	VIP_MEM_HANDLE two = reg(data, 100, nullptr, true);

	EXPECT_NE(one, two);
	dereg(data, one);
	EXPECT_EQ(nullptr, fake_tpt(nic, nullptr, data, 1, one, FAKE_READ));
	EXPECT_EQ(data, fake_tpt(nic, nullptr, data, 1, two, FAKE_READ));
	dereg(data, two);
}

TEST_F(Mem, StaleHandlesStayStale)
{
	std::set<VIP_MEM_HANDLE> seen;

	for (int i = 0; i < 5000; i++) {
		VIP_MEM_HANDLE h = reg(data, 16);

		ASSERT_TRUE(seen.insert(h).second) << "handle " << h << " again after " << i;
		dereg(data, h);
	}
	for (VIP_MEM_HANDLE h : seen)
		ASSERT_EQ(nullptr, fake_tpt(nic, nullptr, data, 1, h, FAKE_READ));
}

TEST_F(Mem, AHandleOfAnotherNicIsNone)
{
	VIP_NIC_HANDLE other;
	VIP_MEM_HANDLE theirs;

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(other, memory, kDescBytes, nullptr, &theirs));
	EXPECT_NE(handle, theirs);
	EXPECT_EQ(nullptr, fake_tpt(nic, nullptr, memory, 1, theirs, FAKE_READ));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, memory, theirs));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCloseNic(other));
	EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(other, memory, theirs));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(other));
}

TEST_F(Mem, BadRegistrations)
{
	VIP_MEM_HANDLE h = 7;
	VIP_NIC_ATTRIBUTES a;
	void *map = map_apart(3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	uint8_t *gap = static_cast<uint8_t *>(map);

	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(VIP_SUCCESS, VipQueryNic(nic, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, nullptr, 8, nullptr, &h));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, data, 0, nullptr, &h));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, data, 8, nullptr, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipRegisterMem(nic, data, a.MaxRegisterBlockBytes + 1, nullptr, &h));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, data, ~0ul, nullptr, &h));
	munmap(gap + 4096, 4096);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, gap, 3 * 4096, nullptr, &h));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, gap + 4095, 2, nullptr, &h));
	mprotect(gap, 4096, PROT_NONE);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRegisterMem(nic, gap, 8, nullptr, &h));
	EXPECT_EQ(7u, h);
	munmap(gap, 3 * 4096);
}

TEST_F(Mem, ReadOnlyMemoryIsNeverWritten)
{
	VIP_MEM_ATTRIBUTES a = { nullptr, VIP_TRUE, VIP_TRUE };
	VIP_MEM_HANDLE h;
	void *page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(nic, page, 4096, &a, &h));
	EXPECT_EQ(page, fake_tpt(nic, nullptr, page, 8, h, FAKE_READ));
	EXPECT_EQ(page, fake_tpt(nic, nullptr, page, 8, h, FAKE_REMOTE_READ));
	EXPECT_EQ(nullptr, fake_tpt(nic, nullptr, page, 8, h, FAKE_WRITE));
	EXPECT_EQ(nullptr, fake_tpt(nic, nullptr, page, 8, h, FAKE_REMOTE_WRITE));
	ASSERT_EQ(VIP_SUCCESS, VipSetMemAttributes(nic, page, h, &a));
	EXPECT_EQ(nullptr, fake_tpt(nic, nullptr, page, 8, h, FAKE_REMOTE_WRITE));
	EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, page, h));
	munmap(page, 4096);
}

TEST_F(Mem, AttributesCanBeAskedAndChanged)
{
	VIP_PROTECTION_HANDLE tag;
	VIP_MEM_ATTRIBUTES a;
	VIP_MEM_HANDLE h = reg(data, 100, nullptr, true, false);

	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &tag));
	ASSERT_EQ(VIP_SUCCESS, VipQueryMem(nic, data, h, &a));
	EXPECT_EQ(nullptr, a.Ptag);
	EXPECT_TRUE(a.EnableRdmaWrite);
	EXPECT_FALSE(a.EnableRdmaRead);
	a = { tag, VIP_FALSE, VIP_TRUE };
	ASSERT_EQ(VIP_SUCCESS, VipSetMemAttributes(nic, data, h, &a));
	a = {};
	ASSERT_EQ(VIP_SUCCESS, VipQueryMem(nic, data, h, &a));
	EXPECT_EQ(tag, a.Ptag);
	EXPECT_FALSE(a.EnableRdmaWrite);
	EXPECT_TRUE(a.EnableRdmaRead);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, tag));
	a.Ptag = reinterpret_cast<void *>(0x1234);
	EXPECT_EQ(VIP_INVALID_PTAG, VipSetMemAttributes(nic, data, h, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSetMemAttributes(nic, data + 1, h, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSetMemAttributes(nic, data, h + 1, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSetMemAttributes(nic, data, h, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryMem(nic, data + 1, h, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, data + 1, h));
	dereg(data, h);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, data, h));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, tag));
}

TEST_F(Mem, Ptags)
{
	VIP_PROTECTION_HANDLE tag[9];
	VIP_NIC_HANDLE other;
	VIP_MEM_HANDLE h;

	for (int i = 0; i < 8; i++)
		ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &tag[i]));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCreatePtag(nic, &tag[8]));
	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	VIP_MEM_ATTRIBUTES a = { tag[0], VIP_FALSE, VIP_FALSE };
	EXPECT_EQ(VIP_INVALID_PTAG, VipRegisterMem(other, data, 8, &a, &h));
	EXPECT_EQ(VIP_INVALID_PTAG, VipDestroyPtag(other, tag[0]));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(other));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCloseNic(nic));
	VIP_VI_HANDLE vi = create_vi(nullptr, nullptr, tag[0]);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, tag[0]));
	destroy_vi(vi);
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, tag[i]));
	EXPECT_EQ(VIP_INVALID_PTAG, VipDestroyPtag(nic, tag[0]));
	EXPECT_EQ(VIP_INVALID_PTAG, VipDestroyPtag(nic, nullptr));
	EXPECT_EQ(VIP_INVALID_PTAG, VipRegisterMem(nic, data, 8, &a, &h));
}

TEST_F(Mem, RdmaReadNeedsANicThatHasIt)
{
	VIP_MEM_ATTRIBUTES a = { nullptr, VIP_FALSE, VIP_TRUE };
	VIP_NIC_HANDLE sparse;
	VIP_MEM_HANDLE h;

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("sparse", &sparse));
	EXPECT_EQ(VIP_INVALID_RDMAREAD, VipRegisterMem(sparse, data, 8, &a, &h));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(sparse));
}

TEST_F(Mem, WindowMemory)
{
	VIP_MEM_HANDLE h;
	void *addr = nullptr;

	ASSERT_EQ(VIP_SUCCESS, VipxAllocMem(nic, 100, nullptr, &addr, &h));
	EXPECT_EQ(1u, fake_windows());
	EXPECT_EQ(addr, fake_tpt(nic, nullptr, addr, 4096, h, FAKE_READ | FAKE_WRITE));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, addr, h));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxFreeMem(nic, memory, handle));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxFreeMem(nic, addr, handle));
	EXPECT_EQ(VIP_SUCCESS, VipxFreeMem(nic, addr, h));
	EXPECT_EQ(0u, fake_windows());
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxFreeMem(nic, addr, h));
	VIP_MEM_ATTRIBUTES bad = { reinterpret_cast<void *>(5), VIP_FALSE, VIP_FALSE };
	EXPECT_EQ(VIP_INVALID_PTAG, VipxAllocMem(nic, 100, &bad, &addr, &h));
	EXPECT_EQ(0u, fake_windows());
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxAllocMem(nic, 0, nullptr, &addr, &h));
}

/*
 * A copier checks and writes under the VI's lock while the owner deregisters
 * and unmaps the memory: never a write after deregistration returned.
 */
TEST_F(Mem, DeregistrationWaitsForCopies)
{
	struct Shared {
		VIP_NIC_HANDLE nic;
		std::atomic<uint8_t *> page{ nullptr };
		std::atomic<VIP_MEM_HANDLE> handle{ 0 };
		std::atomic<bool> stop{ false };
		std::atomic<unsigned> written{ 0 };
	} s;
	VIP_VI_HANDLE vi = create_vi();

	s.nic = nic;
	struct Copier {
		Shared *shared;
		int recv;
	} copier[2] = { { &s, 0 }, { &s, 1 } };
	std::vector<std::thread> copiers;
	for (auto &mine : copier) {
		copiers.emplace_back([&mine, vi] {
			while (!mine.shared->stop) {
				fake_locked(
					vi, mine.recv,
					[](void *arg) {
						auto *c = static_cast<Copier *>(arg);
						Shared *sh = c->shared;
						uint8_t *at = sh->page;
						void *to = fake_tpt(sh->nic, nullptr, at, 4096,
								    sh->handle, FAKE_WRITE);

						if (to != nullptr) {
							memset(at + c->recv * 64, 1, 64);
							sh->written++;
						}
					},
					&mine);
				std::this_thread::yield();
			}
		});
	}
	for (int i = 0; i < 100; i++) {
		void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned before = s.written;
		VIP_MEM_HANDLE h;

		ASSERT_NE(MAP_FAILED, page);
		ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(nic, page, 4096, nullptr, &h));
		s.page = static_cast<uint8_t *>(page);
		s.handle = h;
		ASSERT_TRUE(eventually([&] { return s.written != before; }));
		ASSERT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, page, h));
		/* A late write would now end the test with a signal. */
		munmap(page, 4096);
	}
	s.stop = true;
	for (auto &t : copiers)
		t.join();
	destroy_vi(vi);
}

/* (tag a, RDMA write) and (tag b, none) alternate: (b, RDMA write) must never be seen. */
TEST_F(Mem, ChangeOfAttributesShowsNoMixture)
{
	VIP_PROTECTION_HANDLE a, b;
	std::atomic<bool> stop{ false };
	std::atomic<unsigned> allowed{ 0 }, mixed{ 0 };

	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &a));
	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &b));
	VIP_VI_HANDLE vi = create_vi();
	VIP_MEM_HANDLE h = reg(data, 100, a, true);
	auto look = [&] {
		if (fake_tpt(nic, a, data, 8, h, FAKE_REMOTE_WRITE) != nullptr)
			allowed++;
		if (fake_tpt(nic, b, data, 8, h, FAKE_REMOTE_WRITE) != nullptr)
			mixed++;
	};
	std::thread reader([&] {
		while (!stop)
			fake_locked(
				vi, 1, [](void *fn) { (*static_cast<decltype(look) *>(fn))(); },
				&look);
	});
	VIP_MEM_ATTRIBUTES one = { a, VIP_TRUE, VIP_FALSE };
	VIP_MEM_ATTRIBUTES two = { b, VIP_FALSE, VIP_FALSE };
	EXPECT_TRUE(eventually([&] { return allowed > 0; }));
	for (int i = 0; i < 1000; i++) {
		ASSERT_EQ(VIP_SUCCESS, VipSetMemAttributes(nic, data, h, &two));
		ASSERT_EQ(VIP_SUCCESS, VipSetMemAttributes(nic, data, h, &one));
	}
	stop = true;
	reader.join();
	EXPECT_EQ(0u, mixed);
	dereg(data, h);
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, a));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, b));
}

TEST_F(Mem, ManyRegions)
{
	std::vector<VIP_MEM_HANDLE> all;

	for (int i = 0; i < 5000; i++)
		all.push_back(reg(data + i, 10));
	for (int i = 0; i < 5000; i++) {
		EXPECT_EQ(data + i, fake_tpt(nic, nullptr, data + i, 10, all[i], FAKE_WRITE));
		EXPECT_EQ(nullptr, fake_tpt(nic, nullptr, data + i, 11, all[i], FAKE_WRITE));
	}
	for (int i = 0; i < 5000; i++)
		dereg(data + i, all[i]);
}

} // namespace
