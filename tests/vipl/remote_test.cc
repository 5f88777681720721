/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Window memory of the other end, mapped for loads and stores: only as far as the other end allows; and a
 * program that goes on using it after the right has ended is not ended itself.
 */
#include "writer.h"

#include <atomic>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace conf;

namespace {

constexpr size_t kWindow = 1u << 16;

using Word = uint64_t;

Word load(void *at)
{
	return __atomic_load_n(static_cast<Word *>(at), __ATOMIC_SEQ_CST);
}

void store(void *at, Word value)
{
	__atomic_store_n(static_cast<Word *>(at), value, __ATOMIC_SEQ_CST);
}

VIP_RETURN map(VIP_VI_HANDLE vi, void *p, VIP_ULONG length, VIP_MEM_HANDLE h, void **out)
{
	return VipxMapRemote(vi, reinterpret_cast<uintptr_t>(p), length, h, out);
}

/* Window memory of side b that may be mapped. */
struct Window {
	explicit Window(Link &l, size_t bytes = kWindow, bool write = true, bool read = true,
			VIP_PROTECTION_HANDLE tag = nullptr)
	    : nic(l.nb)
	{
		VIP_MEM_ATTRIBUTES attrs = { tag, write, read };
		VIP_PVOID at = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipxAllocMem(nic.h, bytes, &attrs, &at, &h));
		p = static_cast<char *>(at);
	}
	~Window() { end(); }
	Window(const Window &) = delete;
	void end()
	{
		if (p != nullptr)
			EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic.h, p, h));
		p = nullptr;
	}
	Nic &nic;
	char *p = nullptr;
	VIP_MEM_HANDLE h = 0;
};

/* Loads and stores all words of a mapping until it is destroyed. */
struct Busy {
	Busy(void *p, size_t bytes)
	    : at(static_cast<char *>(p)), length(bytes), thread([this] { run(); })
	{
		EXPECT_TRUE(eventually([&] { return rounds > 1; }));
	}
	~Busy()
	{
		uint64_t before = rounds;
		EXPECT_TRUE(eventually([&] { return rounds > before + 1; })) << "it still runs";
		stop = true;
		thread.join();
	}
	void run()
	{
		for (Word n = 1; !stop; n++, rounds++)
			for (size_t off = 0; off < length; off += 512) {
				sum = sum + load(at + off);
				store(at + off, n);
			}
	}
	std::atomic<bool> stop{ false };
	std::atomic<uint64_t> rounds{ 0 };
	volatile Word sum = 0;
	char *at;
	size_t length;
	std::thread thread;
};

class Remote1 : public ::testing::Test {
protected:
	void SetUp() override
	{
		if (hops() != 0)
			GTEST_SKIP() << "memory of another host cannot be mapped";
	}
};

void expect_gone(void *at, Window &w)
{
	EXPECT_TRUE(eventually([&] {
		store(w.p, 77);
		return load(at) != 77;
	}));
	store(at, 5);
	EXPECT_EQ(5u, load(at)) << "private memory is there instead";
	EXPECT_EQ(77u, load(w.p)) << "it has no effect on the owner";
}

} // namespace

TEST_F(Remote1, LoadsAndStores)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxMapRemote: both ends see one memory, ") +
		     level.name);
		Link l(level.value);
		if (!offers_read(level)) {
			/* Without the right to read nothing may be loaded. */
			Window w(l, kWindow, true, true);
			void *at = nullptr;
			EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, kWindow, w.h, &at));
			continue;
		}
		Window w(l);
		void *at = nullptr;
		ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
		ASSERT_NE(w.p, at);
		for (size_t off = 0; off < kWindow; off += 8) {
			store(w.p + off, off + 1);
			EXPECT_EQ(off + 1, load(static_cast<char *>(at) + off));
			store(static_cast<char *>(at) + off, off + 2);
			EXPECT_EQ(off + 2, load(w.p + off));
		}
		EXPECT_TRUE(l.works());
		EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(*l.va, at)) << "twice";
		EXPECT_TRUE(l.works());
	}
}

TEST_F(Remote1, PartOfTheMemory)
{
	RULE("vipl_ext VipxMapRemote: the address is that of the byte asked for");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	for (size_t off : { 8ul, 4096ul, 5000ul, kWindow - 8 }) {
		void *at = nullptr;
		ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p + off, 8, w.h, &at));
		memcpy(w.p + off, &off, 8);
		EXPECT_EQ(0, memcmp(at, &off, 8));
		EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at));
	}
}

TEST_F(Remote1, AtomicOperationsMeet)
{
	RULE("vipl_ext VipxMapRemote: atomic operations of the processor hold among both ends");
	constexpr int kAdds = 20000;
	Link l(VIP_SERVICE_RELIABLE_RECEPTION);
	Window w(l);
	void *at = nullptr;
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, 8, w.h, &at));
	auto add = [](void *p) {
		for (int i = 0; i < kAdds; i++)
			__atomic_fetch_add(static_cast<Word *>(p), 1, __ATOMIC_RELAXED);
	};
	std::thread near(add, at), far(add, w.p);
	near.join();
	far.join();
	EXPECT_EQ(2u * kAdds, load(w.p));
}

TEST_F(Remote1, BesideDirectStores)
{
	RULE("vipl_ext VipxMapRemote: an RDMA write that is complete is seen in the mapping");
	Link l(VIP_SERVICE_RELIABLE_RECEPTION);
	Window w(l);
	Writer writer(l, 4096);
	void *at = nullptr;
	ASSERT_TRUE(writer.warm(w.p, w.h));
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
	for (int i = 0; i < 50; i++) {
		memset(at, 0, kWindow);
		writer.write(w.p + 4096, w.h);
		EXPECT_TRUE(same(static_cast<char *>(at) + 4096, 4096, 9));
	}
	EXPECT_TRUE(writer.warm(w.p, w.h)) << "the grant for stores is another";
	w.end();
	EXPECT_TRUE(l.works());
}

TEST_F(Remote1, AdoptedMemory)
{
	RULE("vipl_ext VipxMapRemote: adopted memory, too");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	void *p =
		mmap(nullptr, kWindow, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	fill(p, kWindow, 3);
	VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_TRUE };
	VIP_MEM_HANDLE h;
	VIP_RETURN rc = VipxAdoptMem(l.nb.h, p, kWindow, &attrs, VIPX_ADOPT_NO_WRITERS, &h);
	if (rc == VIP_ERROR_NOT_SUPPORTED)
		GTEST_SKIP() << "memory cannot be adopted here";
	ASSERT_RC(VIP_SUCCESS, rc);
	void *at = nullptr;
	ASSERT_RC(VIP_SUCCESS, map(*l.va, p, kWindow, h, &at));
	EXPECT_TRUE(same(at, kWindow, 3));
	fill(at, kWindow, 4);
	EXPECT_TRUE(same(p, kWindow, 4));
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(l.nb.h, p, h));
	EXPECT_TRUE(same(p, kWindow, 4));
	fill(at, kWindow, 5);
	EXPECT_TRUE(same(p, kWindow, 4));
	munmap(p, kWindow);
}

TEST_F(Remote1, WrongArguments)
{
	RULE("vipl_ext VipxMapRemote: what is not open is not mapped");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	Mem plain(l.nb, 4096, true, true);
	Vi idle(l.na, l.va->attrs);
	void *at = &at;
	EXPECT_RC(VIP_INVALID_PARAMETER, map(nullptr, w.p, 8, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, 8, w.h, nullptr));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, 0, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p - 1, 8, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, kWindow + 1, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p + kWindow, 1, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p + 8, ~0ul, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, nullptr, 8, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, 8, w.h ^ 0x40000, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, 8, 0, &at));
	EXPECT_RC(VIP_ERROR_NOT_SUPPORTED, map(*l.va, plain.data, 8, plain.h, &at));
	EXPECT_RC(VIP_INVALID_STATE, map(idle, w.p, 8, w.h, &at));
	EXPECT_EQ(static_cast<void *>(&at), at) << "written only on success";
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(nullptr, w.p));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(*l.va, nullptr));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(*l.va, w.p));
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, 64, w.h, &at));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(*l.va, static_cast<char *>(at) + 8));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(idle, at));
	EXPECT_TRUE(l.works());
}

TEST_F(Remote1, RightsAreNeeded)
{
	RULE("vipl_ext VipxMapRemote: VI and memory enable RDMA writes and reads, and tags agree");
	void *at = nullptr;
	for (int missing = 0; missing < 6; missing++) {
		LinkOptions o;
		o.with_ptags = true;
		o.enable_write = missing != 0;
		o.enable_read = missing != 1;
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, o);
		Ptag other(l.nb);
		Window w(l, kWindow, missing != 2, missing != 3,
			 missing == 4 ? other.h : l.tag_b());
		EXPECT_RC(missing < 5 ? VIP_INVALID_PARAMETER : VIP_SUCCESS,
			  map(*l.va, w.p, 8, w.h, &at))
			<< missing;
		EXPECT_TRUE(l.works());
	}
}

TEST_F(Remote1, FreedWhileUsed)
{
	RULE("vipl_ext VipxMapRemote: memory that is freed is replaced under threads that use it");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	for (int round = 0; round < 20; round++) {
		Window w(l);
		void *at = nullptr, *again = nullptr;
		ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
		{
			Busy near(at, kWindow);
			char *was = w.p;
			w.end();
			EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, was, kWindow, w.h, &again));
		}
		EXPECT_TRUE(l.works());
		EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at));
	}
}

TEST_F(Remote1, AttributesEndIt)
{
	RULE("vipl_ext VipxMapRemote: no effect of a mapping after VipSetMemAttributes has returned");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	VIP_MEM_ATTRIBUTES closed = { nullptr, VIP_TRUE, VIP_FALSE },
			   open = { nullptr, VIP_TRUE, VIP_TRUE };
	void *at = nullptr, *again = nullptr;
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
	{
		Busy near(at, kWindow);
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(l.nb.h, w.p, w.h, &closed));
		memset(w.p, 0, kWindow);
		for (int look = 0; look < 1000; look++)
			EXPECT_EQ(0u, load(w.p + 512 * (look % 64)));
	}
	EXPECT_RC(VIP_INVALID_PARAMETER, map(*l.va, w.p, kWindow, w.h, &again));
	EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(l.nb.h, w.p, w.h, &open));
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &again));
	store(again, 9);
	EXPECT_EQ(9u, load(w.p));
	expect_gone(at, w);
}

TEST_F(Remote1, AskedWhileRightsChange)
{
	RULE("vipl_ext VipxMapRemote: a question meets a change of attributes");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	std::atomic<bool> stop{ false };
	std::thread owner([&] {
		VIP_MEM_ATTRIBUTES open = { nullptr, VIP_TRUE, VIP_TRUE };
		while (!stop)
			EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(l.nb.h, w.p, w.h, &open));
	});
	for (int i = 0; i < 300; i++) {
		void *at = nullptr;
		EXPECT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
		store(at, 1);
		EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at));
	}
	stop = true;
	owner.join();
}

TEST_F(Remote1, DisconnectedByTheOwner)
{
	RULE("vipl_ext VipxMapRemote: a disconnect of the other end leaves private memory");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	void *at = nullptr;
	for (int generation = 0; generation < 5; generation++) {
		ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
		{
			Busy near(at, kWindow);
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
			memset(w.p, 0, kWindow);
			EXPECT_EQ(0u, load(w.p));
			EXPECT_TRUE(l.va->reaches(VIP_STATE_ERROR));
		}
		expect_gone(at, w);
		EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at));
		EXPECT_RC(VIP_INVALID_STATE, map(*l.va, w.p, kWindow, w.h, &at));
		l.vb->drain();
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
		l.va->drain();
		connect(*l.va, *l.vb);
	}
}

TEST_F(Remote1, DisconnectUnmaps)
{
	RULE("vipl_ext VipxMapRemote: the mapping ends with VipDisconnect of its VI");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	unsigned char there;
	void *at = nullptr;
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
	EXPECT_EQ(0, mincore(at, 4096, &there));
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
	EXPECT_EQ(-1, mincore(at, 4096, &there));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxUnmapRemote(*l.va, at));
	w.end();
}

TEST_F(Remote1, DisconnectedWhileAsking)
{
	RULE("vipl_ext VipxMapRemote: a question meets the end of its connection");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	for (int round = 0; round < 30; round++) {
		std::thread asking([&] {
			for (int i = 0; i < 20; i++) {
				void *at = nullptr;
				VIP_RETURN rc = map(*l.va, w.p, kWindow, w.h, &at);
				EXPECT_TRUE(rc == VIP_SUCCESS || rc == VIP_INVALID_STATE ||
					    rc == VIP_INVALID_PARAMETER)
					<< name_of(rc);
			}
		});
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(round % 2 ? *l.va : *l.vb));
		asking.join();
		for (Vi *vi : { l.va.get(), l.vb.get() }) {
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*vi));
			vi->drain();
		}
		connect(*l.va, *l.vb);
	}
}

TEST_F(Remote1, OwnerKilled)
{
	RULE("vipl_ext VipxMapRemote: the owner's death does not end a program that uses its memory");
	for (int round = 0; round < 3; round++) {
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, [] {
			LinkOptions o;
			o.connected = false;
			return o;
		}());
		std::string disc = unique_disc();
		VIP_DESCRIPTOR *recv = l.recv_a(16);
		pid_t pid = spawn_child("own", disc);
		ASSERT_GT(pid, 0);
		accept_one(*l.va, disc);
		ASSERT_EQ(recv, take_recv(*l.va));
		Word said[2];
		memcpy(said, recv->DS[0].Local.Data.Address, sizeof(said));
		void *at = nullptr;
		ASSERT_RC(VIP_SUCCESS, VipxMapRemote(*l.va, said[0], kWindow,
						     static_cast<VIP_MEM_HANDLE>(said[1]), &at));
		Word *counter = static_cast<Word *>(at) + 1;
		Word before = load(counter);
		EXPECT_TRUE(eventually([&] { return load(counter) != before; })) << "the owner's";
		{
			Busy near(at, kWindow);
			kill(pid, SIGKILL);
			EXPECT_EQ(-1, child_wait(pid));
			EXPECT_TRUE(l.va->reaches(VIP_STATE_ERROR));
		}
		EXPECT_TRUE(l.na.wait_event(VIP_ERROR_CONN_LOST, l.va->h));
		EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at));
	}
}

TEST_F(Remote1, Many)
{
	RULE("vipl_ext VipxMapRemote: 256 mappings of a VI, and no more");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	std::vector<std::unique_ptr<Window>> windows;
	std::vector<char *> at;
	void *more = nullptr;
	for (int i = 0; i < 8; i++)
		windows.push_back(std::make_unique<Window>(l));
	for (size_t i = 0; i < 256; i++) {
		Window &w = *windows[i % 8];
		ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p + 8 * i, 8, w.h, &more)) << i;
		at.push_back(static_cast<char *>(more));
	}
	EXPECT_RC(VIP_ERROR_RESOURCE, map(*l.va, windows[0]->p, 8, windows[0]->h, &more));
	for (size_t i = 0; i < 256; i++)
		store(at[i], i + 1);
	for (size_t i = 0; i < 256; i++)
		EXPECT_EQ(i + 1, load(windows[i % 8]->p + 8 * i));
	windows[3].reset();
	EXPECT_RC(VIP_SUCCESS, VipxUnmapRemote(*l.va, at[7]));
	EXPECT_RC(VIP_SUCCESS, map(*l.va, windows[0]->p, 8, windows[0]->h, &more));
	store(at[3], 1);
	windows.clear();
	for (char *p : at)
		if (p != at[7])
			store(p, 2);
}

TEST_F(Remote1, ManyVis)
{
	RULE("vipl_ext VipxMapRemote: two regions for each of many peers");
	constexpr size_t kBig = 64u << 20;
	Link first(VIP_SERVICE_RELIABLE_DELIVERY);
	Window big(first, kBig), small(first);
	std::vector<std::unique_ptr<Link>> links;
	LinkOptions o;
	o.arena = 1u << 16;
	for (size_t i = 0; i < 64; i++) {
		void *b = nullptr, *s = nullptr;
		links.push_back(std::make_unique<Link>(VIP_SERVICE_RELIABLE_DELIVERY, o));
		ASSERT_RC(VIP_SUCCESS, map(*links[i]->va, big.p, kBig, big.h, &b));
		ASSERT_RC(VIP_SUCCESS, map(*links[i]->va, small.p, kWindow, small.h, &s));
		store(static_cast<char *>(b) + kBig - 8 - 8 * i, i + 1);
		store(static_cast<char *>(s) + 8 * i, i + 1);
	}
	for (size_t i = 0; i < 64; i++) {
		EXPECT_EQ(i + 1, load(big.p + kBig - 8 - 8 * i));
		EXPECT_EQ(i + 1, load(small.p + 8 * i));
	}
	big.end();
	small.end();
	for (auto &l : links)
		EXPECT_TRUE(l->works());
}

TEST_F(Remote1, ChildrenDoNotHaveIt)
{
	RULE("vipl_ext VipxMapRemote: a child of fork() does not have the mapping");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l), lost(l);
	void *at = nullptr, *gone = nullptr;
	ASSERT_RC(VIP_SUCCESS, map(*l.va, w.p, kWindow, w.h, &at));
	ASSERT_RC(VIP_SUCCESS, map(*l.va, lost.p, kWindow, lost.h, &gone));
	lost.end();
	pid_t pid = fork();
	if (pid == 0) {
		unsigned char there;
		_exit(mincore(at, 4096, &there) == -1 && mincore(gone, 4096, &there) == -1 ? 0 : 1);
	}
	EXPECT_EQ(0, child_wait(pid));
	store(at, 3);
	EXPECT_EQ(3u, load(w.p));
}

TEST(RemoteOther, HostIsRefused)
{
	if (hops() == 0)
		GTEST_SKIP() << "this is about two hosts";
	RULE("vipl_ext VipxMapRemote: memory of another host cannot be mapped");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l);
	void *at = nullptr;
	EXPECT_RC(VIP_ERROR_NOT_SUPPORTED, map(*l.va, w.p, kWindow, w.h, &at));
	EXPECT_EQ(nullptr, at);
	EXPECT_TRUE(l.works());
}

TEST(SlowRemote, StoppedOwner)
{
	if (hops() != 0)
		GTEST_SKIP() << "memory of another host cannot be mapped";
	RULE("vipl_ext VipxMapRemote: the wait for the other process ends");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY, [] {
		LinkOptions o;
		o.max_transfer = 16u << 20;
		o.connected = false;
		return o;
	}());
	void *at = nullptr;
	pid_t pid = connect_stopped(*l.va);
	ASSERT_GT(pid, 0);
	EXPECT_RC(VIP_TIMEOUT, VipxMapRemote(*l.va, 4096, 8, 1, &at));
	kill(pid,
	     SIGKILL); /* works on a stopped process, too; continued, it might end by itself before */
	EXPECT_EQ(-1, child_wait(pid));
}
