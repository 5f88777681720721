/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the program that becomes window memory, and private memory again. */
#include "apart.h"
#include "writer.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace conf;

namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
const size_t kLength = 16 * kPage;

char *map(size_t length, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
{
	void *got = map_apart(length, PROT_READ | PROT_WRITE, flags, fd);
	EXPECT_NE(MAP_FAILED, got);
	return static_cast<char *>(got);
}

/* Memory of the program, filled with known bytes. */
struct Pages {
	explicit Pages(size_t n = kLength) : length(n), p(map(n)) { fill(p, n, 3); }
	~Pages() { munmap(p, length); }
	Pages(const Pages &) = delete;
	size_t length;
	char *p;
};

/* Memory that a NIC has adopted while this lives. */
struct Adopted {
	Adopted(Nic &n, void *at, size_t length, VIP_ULONG flags = VIPX_ADOPT_NO_WRITERS,
		VIP_PROTECTION_HANDLE tag = nullptr)
	    : nic(n), p(static_cast<char *>(at))
	{
		VIP_MEM_ATTRIBUTES attrs = { tag, VIP_TRUE, VIP_TRUE };
		rc = VipxAdoptMem(nic.h, p, length, &attrs, flags, &h);
	}
	~Adopted() { end(); }
	Adopted(const Adopted &) = delete;
	void end()
	{
		if (rc == VIP_SUCCESS)
			EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(nic.h, p, h));
		rc = VIP_INVALID_STATE;
	}
	Nic &nic;
	char *p;
	VIP_MEM_HANDLE h = 0;
	VIP_RETURN rc;
};

struct Piece {
	VIP_PVOID p = nullptr;
	VIP_MEM_HANDLE h = 0;
};

/* Does a child of fork() get a copy of the memory? */
bool is_inherited(char *p)
{
	pid_t pid = fork();
	if (pid == 0) {
		unsigned char seen;
		_exit(mincore(p, kPage, &seen) == 0 ? 0 : 1);
	}
	return child_wait(pid) == 0;
}

/* The number of shared mappings, as window memory has them. */
size_t mappings()
{
	std::ifstream maps("/proc/self/maps");
	std::string line;
	size_t n = 0;
	while (std::getline(maps, line))
		n += line.find(" rw-s ") != std::string::npos;
	return n;
}

/* Forbids ptrace to this thread, by a filter of system calls. */
bool refuse_ptrace()
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class WindowAdopted : public ::testing::Test {
protected:
	void SetUp() override
	{
		Pages pages;
		Adopted adopted(nic(1), pages.p, kLength);
		if (adopted.rc == VIP_ERROR_NOT_SUPPORTED)
			GTEST_SKIP() << "memory cannot be adopted here";
		ASSERT_EQ(name_of(VIP_SUCCESS), name_of(adopted.rc));
	}
	/* Flags for an exact adoption: 0 if other threads can be stopped here. */
	static VIP_ULONG exact()
	{
		Pages pages;
		Adopted adopted(nic(1), pages.p, kLength, 0);
		return adopted.rc == VIP_ERROR_NOT_SUPPORTED ? VIPX_ADOPT_NO_WRITERS : 0;
	}
};

class SlowWindowAdopted : public WindowAdopted {};

} // namespace

TEST_F(WindowAdopted, ContentStays)
{
	Nic &n = nic(0);
	const size_t big = 4u << 20;
	struct Kind {
		const char *what;
		size_t length;
		std::function<void *()> make;
		std::function<void(void *)> end;
	} all[] = {
		{ "mmap()", big, [=] { return map(big); }, [=](void *p) { munmap(p, big); } },
		{ "aligned_alloc()", big, [=] { return aligned_alloc(kPage, big); }, free },
		{ "malloc(), large", big, [=] { return malloc(big + kPage); }, free },
		{ "malloc(), small", 2 * kPage, [=] { return malloc(3 * kPage); }, free },
	};
	for (auto &kind : all)
		for (VIP_ULONG flags : { exact(), VIP_ULONG(VIPX_ADOPT_NO_WRITERS) }) {
			RULE(std::string("vipl_ext VipxAdoptMem: address and content stay, ") +
			     kind.what);
			void *block = kind.make();
			ASSERT_NE(nullptr, block);
			auto start = reinterpret_cast<uintptr_t>(block) + kPage - 1;
			char *p = reinterpret_cast<char *>(start & ~(kPage - 1));
			size_t length = kind.length;
			fill(p, length, 11);
			{
				Adopted adopted(n, p, length, flags);
				ASSERT_EQ(name_of(VIP_SUCCESS), name_of(adopted.rc));
				EXPECT_TRUE(same(p, length, 11));
				EXPECT_FALSE(is_inherited(p));
				fill(p, length, 12);
			}
			EXPECT_TRUE(same(p, length, 12));
			EXPECT_TRUE(is_inherited(p)) << "as any private memory";
			kind.end(block);
		}
}

TEST_F(WindowAdopted, Refusals)
{
	Nic other(0);
	Ptag foreign(other);
	VIP_MEM_ATTRIBUTES bad_tag = { foreign, VIP_FALSE, VIP_FALSE };
	Pages pages;
	char *hole = map(kLength), *shared = map(kLength, MAP_SHARED | MAP_ANONYMOUS);
	char *read_only = map(kLength), *mixed = map(kLength), *locked = map(kLength);
	int fd = memfd_create("adopt", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(fd, static_cast<off_t>(kPage)));
	char *file = map(kLength, MAP_PRIVATE, fd);
	VIP_PVOID window;
	VIP_MEM_HANDLE window_h;
	ASSERT_EQ(0, munmap(hole + 3 * kPage, kPage));
	ASSERT_EQ(0, mprotect(read_only, kLength, PROT_READ));
	ASSERT_EQ(0, mprotect(mixed + 5 * kPage, kPage, PROT_READ));
	ASSERT_RC(VIP_SUCCESS, VipxAllocMem(nic(0).h, kLength, nullptr, &window, &window_h));
	Pages taken;
	Adopted adopted(nic(0), taken.p, kLength);
	auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~(kPage - 1);
	const VIP_RETURN bad = VIP_INVALID_PARAMETER, kind = VIP_ERROR_NOT_SUPPORTED;
	struct Case {
		const char *rule;
		VIP_RETURN rc;
		void *at;
		VIP_ULONG length;
		VIP_MEM_ATTRIBUTES *attrs;
		VIP_ULONG flags;
	} all[] = {
		{ "Length 0", bad, pages.p, 0, nullptr, 0 },
		{ "NULL address", bad, nullptr, kPage, nullptr, 0 },
		{ "part of a page at the start", bad, pages.p + 64, kPage, nullptr, 0 },
		{ "part of a page at the end", bad, pages.p, kPage + 64, nullptr, 0 },
		{ "a Length that wraps round", bad, pages.p, ~0UL - kPage + 1, nullptr, 0 },
		{ "Length above MaxRegisterBlockBytes", bad, pages.p,
		  nic(0).attrs.MaxRegisterBlockBytes / kPage * kPage + kPage, nullptr, 0 },
		{ "an unknown flag", bad, pages.p, kLength, nullptr, 2 },
		{ "a gap", bad, hole, kLength, nullptr, 0 },
		{ "no mapping at all", bad, reinterpret_cast<void *>(kPage), kPage, nullptr, 0 },
		{ "a foreign tag", VIP_INVALID_PTAG, pages.p, kLength, &bad_tag, 0 },
		{ "read-only memory", kind, read_only, kLength, nullptr, 0 },
		{ "a part that is read-only", kind, mixed, kLength, nullptr, 0 },
		{ "shared memory", kind, shared, kLength, nullptr, 0 },
		{ "a private mapping behind the end of its file", kind, file, kLength, nullptr, 0 },
		{ "the stack of this thread", kind, reinterpret_cast<void *>(frame), kPage, nullptr,
		  0 },
		{ "window memory", kind, window, kLength, nullptr, 0 },
		{ "adopted memory", kind, taken.p, kLength, nullptr, 0 },
		{ "part of adopted memory", kind, taken.p + kPage, kPage, nullptr, 0 },
	};
	for (auto &c : all)
		for (VIP_ULONG flag : { 0, VIPX_ADOPT_NO_WRITERS }) {
			RULE(std::string("vipl_ext VipxAdoptMem: ") + c.rule + " is " +
			     name_of(c.rc));
			VIP_MEM_HANDLE h = 4711;
			size_t before = mappings();
			EXPECT_RC(c.rc, VipxAdoptMem(nic(0).h, c.at, c.length, c.attrs,
						     c.flags | flag, &h));
			EXPECT_EQ(4711u, h) << "the result is written only on success";
			EXPECT_EQ(before, mappings());
		}
	/* The sanitizers' mlock() does nothing. */
	if (syscall(SYS_mlock, locked, kPage) == 0) {
		RULE("vipl_ext VipxAdoptMem: locked memory is refused");
		VIP_MEM_HANDLE h;
		EXPECT_RC(kind, VipxAdoptMem(nic(0).h, locked, kLength, nullptr, 0, &h));
		ASSERT_EQ(0, syscall(SYS_munlock, locked, kPage));
	}
	EXPECT_TRUE(same(pages.p, kLength, 3));
	EXPECT_TRUE(same(taken.p, kLength, 3));
	EXPECT_TRUE(is_inherited(pages.p));
	EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic(0).h, window, window_h));
	close(fd);
	for (char *p : { hole, shared, read_only, mixed, locked, file })
		munmap(p, kLength);
}

TEST_F(WindowAdopted, HugePages)
{
	const size_t length = 2u << 20;
	void *p = mmap(nullptr, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		GTEST_SKIP() << "this kernel has no huge pages";
	RULE("vipl_ext VipxAdoptMem: pages of MAP_HUGETLB are refused");
	VIP_MEM_HANDLE h;
	EXPECT_RC(VIP_ERROR_NOT_SUPPORTED, VipxAdoptMem(nic(0).h, p, length, nullptr, 0, &h));
	munmap(p, length);
}

TEST_F(WindowAdopted, HandleIsThatOfARegistration)
{
	Pages pages;
	VIP_MEM_ATTRIBUTES attrs{}, none{};
	Adopted adopted(nic(0), pages.p, kLength);
	{
		RULE("vipl_ext VipxAdoptMem: VipQueryMem and VipSetMemAttributes work on it");
		EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, pages.p, adopted.h, &attrs));
		EXPECT_TRUE(attrs.EnableRdmaWrite);
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(nic(0).h, pages.p, adopted.h, &none));
		EXPECT_RC(VIP_SUCCESS, VipQueryMem(nic(0).h, pages.p, adopted.h, &attrs));
		EXPECT_FALSE(attrs.EnableRdmaWrite);
	}
	{
		RULE("vipl_ext VipxAdoptMem: VipxFreeMem does not take it, nor VipDeregisterMem another address");
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxFreeMem(nic(0).h, pages.p, adopted.h));
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipDeregisterMem(nic(0).h, pages.p + kPage, adopted.h));
		EXPECT_FALSE(is_inherited(pages.p)) << "it is still adopted";
	}
	{
		RULE("vipl_ext VipxAdoptMem: given back once");
		adopted.end();
		EXPECT_RC(VIP_INVALID_PARAMETER, VipDeregisterMem(nic(0).h, pages.p, adopted.h));
		EXPECT_TRUE(same(pages.p, kLength, 3));
	}
	{
		RULE("vipl VipCloseNic: VIP_ERROR_RESOURCE while memory is adopted");
		Nic other(0);
		Adopted held(other, pages.p, kLength);
		EXPECT_RC(VIP_ERROR_RESOURCE, VipCloseNic(other.h));
	}
}

TEST_F(WindowAdopted, TargetAndSource)
{
	for (auto &level : levels())
		for (size_t length : { 1, 64, 5000, 1 << 20 }) {
			RULE(std::string(
				     "vipl_ext VipxAdoptMem: all that registered memory is used for, ") +
			     level.name);
			Link l(level.value);
			Pages pages(2u << 20);
			VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_FALSE };
			VIP_MEM_HANDLE before;
			ASSERT_RC(VIP_SUCCESS,
				  VipRegisterMem(l.nb.h, pages.p, pages.length, &attrs, &before));
			Adopted adopted(l.nb, pages.p, pages.length);
			char *to = pages.p + 333;
			Seg seg = l.seg_a(length), back = l.seg_a(length);
			fill(seg.p, length, length);
			for (VIP_MEM_HANDLE h : { adopted.h, adopted.h, before, adopted.h }) {
				memset(to, 0, length);
				l.write_a({ seg }, { to, h });
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
				EXPECT_TRUE(l.works());
				EXPECT_TRUE(same(to, length, length));
			}
			if (offers_read(level)) {
				l.read_a({ back }, { to, adopted.h });
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_READ));
				EXPECT_TRUE(same(back.p, length, length));
			}
			memset(to, 0, length);
			auto *recv = make(l.b, 0, { { to, adopted.h, length } });
			l.post_recv_b(recv);
			l.send_a({ seg });
			EXPECT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(same(to, length, length));
			EXPECT_NE(nullptr, take_send(*l.va));
			adopted.end();
			EXPECT_TRUE(same(to, length, length));
			EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(l.nb.h, pages.p, before));
		}
}

TEST_F(WindowAdopted, WritesBecomeStoresAndEndWithTheRegistration)
{
	if (hops() > 1)
		GTEST_SKIP() << "memory is given to neighbours only";
	if (adapters())
		GTEST_SKIP() << "adopted memory lies behind no adapter";
	for (auto &level : levels()) {
		RULE(std::string(
			     "vipl_ext VipxAdoptMem: a granted write is refused once it is given back, ") +
		     level.name);
		Link l(level.value);
		Pages pages;
		Adopted adopted(l.nb, pages.p, kLength);
		Writer w(l, 100);
		ASSERT_TRUE(w.warm(pages.p + 77, adopted.h));
		EXPECT_TRUE(same(pages.p + 77, 100, 9));
		adopted.end();
		EXPECT_TRUE(same(pages.p + 77, 100, 9));
		memset(pages.p, 5, kLength);
		expect_refused(l, level, w, pages.p, adopted.h);
		for (size_t i = 0; i < kLength; i++)
			ASSERT_EQ(5, pages.p[i]) << i;
	}
}

TEST_F(WindowAdopted, GivenBackWhileThePeerWrites)
{
	RULE("vipl_ext VipxAdoptMem: no byte changes after VipDeregisterMem has returned");
	Link l(VIP_SERVICE_UNRELIABLE);
	Pages pages;
	Writer w(l, 4096);
	std::atomic<bool> stop{ false };
	std::atomic<VIP_MEM_HANDLE> handle{ 0 };
	std::thread writer([&] {
		while (!stop)
			w.write(pages.p, handle);
	});
	for (int round = 0; round < 20; round++) {
		auto value = static_cast<char>(100 + round);
		Adopted adopted(l.nb, pages.p, kLength);
		handle = adopted.h;
		memset(pages.p, 0, kLength);
		EXPECT_TRUE(eventually(
			[&] { return __atomic_load_n(pages.p + 1, __ATOMIC_RELAXED) != 0; }));
		adopted.end();
		memset(pages.p, value, kLength);
		for (int look = 0; look < 20; look++)
			for (size_t i = 0; i < kLength; i++)
				ASSERT_EQ(value, __atomic_load_n(pages.p + i, __ATOMIC_RELAXED))
					<< i;
	}
	stop = true;
	writer.join();
}

TEST_F(WindowAdopted, SeenByAPollerWhoMakesNoCall)
{
	for (int turn = 0; turn < 2; turn++) {
		RULE("vipl_ext VipxAdoptMem: stores of a peer are seen; a peer that dies keeps nobody waiting");
		Pages pages;
		Adopted adopted(nic(0), pages.p, kLength);
		Vi server(nic(0), writable());
		std::string disc = unique_disc();
		auto *word = reinterpret_cast<uint64_t *>(pages.p + 8 * kPage);
		uint64_t seen = 0, next = 0;
		*word = 0;
		pid_t pid = spawn_child(
			"store", disc + ":" + std::to_string(reinterpret_cast<uintptr_t>(word)) +
					 ":" + std::to_string(adopted.h));
		ASSERT_GT(pid, 0);
		accept_one(server, disc);
		for (int i = 0; i < 1000; i++) {
			ASSERT_TRUE(eventually([&] {
				next = __atomic_load_n(word, __ATOMIC_ACQUIRE);
				return next > seen;
			}));
			seen = next;
		}
		if (turn == 0) {
			kill(pid, SIGKILL);
			adopted.end();
			EXPECT_EQ(-1, child_wait(pid));
		} else {
			adopted.end(); /* during its writes, which break its connection */
			EXPECT_EQ(0, child_wait(pid));
		}
		EXPECT_GE(*word, seen);
		*word = 1;
		EXPECT_TRUE(server.reaches(VIP_STATE_ERROR));
		EXPECT_EQ(1u, *word);
		EXPECT_TRUE(is_inherited(pages.p));
	}
}

TEST_F(WindowAdopted, TwoNics)
{
	RULE("vipl_ext VipxAdoptMem: one NIC adopts, another may register the memory as any");
	Nic first(0), second(0);
	Pages pages;
	VIP_MEM_HANDLE plain, no;
	{
		Adopted adopted(first, pages.p, kLength);
		EXPECT_RC(VIP_SUCCESS, VipRegisterMem(second.h, pages.p, kLength, nullptr, &plain));
		EXPECT_RC(VIP_ERROR_NOT_SUPPORTED,
			  VipxAdoptMem(second.h, pages.p, kLength, nullptr, 0, &no));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipDeregisterMem(second.h, pages.p, adopted.h));
	}
	Adopted again(second, pages.p, kLength);
	EXPECT_EQ(name_of(VIP_SUCCESS), name_of(again.rc));
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(second.h, pages.p, plain));
	EXPECT_TRUE(same(pages.p, kLength, 3));
}

TEST_F(WindowAdopted, ThreadsAdoptTheSameMemory)
{
	RULE("vipl_ext VipxAdoptMem: of threads that adopt memory at one time one succeeds");
	for (VIP_ULONG flags : { exact(), VIP_ULONG(VIPX_ADOPT_NO_WRITERS) })
		for (int round = 0; round < 20; round++) {
			Pages pages;
			std::vector<std::thread> threads;
			std::vector<std::unique_ptr<Adopted>> got(4);
			for (auto &one : got)
				threads.emplace_back([&] {
					one = std::make_unique<Adopted>(nic(0), pages.p, kLength,
									flags);
				});
			for (auto &t : threads)
				t.join();
			int good = 0;
			for (auto &one : got) {
				good += one->rc == VIP_SUCCESS;
				EXPECT_TRUE(one->rc == VIP_SUCCESS ||
					    one->rc == VIP_ERROR_NOT_SUPPORTED);
			}
			EXPECT_EQ(1, good);
			got.clear();
			EXPECT_TRUE(same(pages.p, kLength, 3));
		}
}

TEST_F(WindowAdopted, UnmappedByTheProgram)
{
	RULE("vipl_ext VipxAdoptMem: what the program unmapped, or mapped again, is left as it is");
	Pages pages;
	Adopted adopted(nic(0), pages.p, kLength);
	ASSERT_EQ(0, munmap(pages.p, 4 * kPage));
	void *at = mmap(pages.p, kPage, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ASSERT_EQ(pages.p, at);
	pages.p[0] = 'n';
	Pages copy(kLength);
	adopted.end();
	EXPECT_EQ('n', pages.p[0]);
	unsigned char seen;
	EXPECT_EQ(-1, mincore(pages.p + kPage, kPage, &seen)) << "the gap stays";
	EXPECT_EQ(0, memcmp(pages.p + 4 * kPage, copy.p + 4 * kPage, kLength - 4 * kPage));
	EXPECT_TRUE(is_inherited(pages.p + 4 * kPage));
}

/* Adopting needs a file descriptor, and so does giving back. */
TEST_F(WindowAdopted, StaysWhereItCannotBeGivenBack)
{
	RULE("vipl VipDeregisterMem: VIP_ERROR_RESOURCE without descriptors, and it stays registered");
	if (exact() != 0)
		GTEST_SKIP() << "the threads of this process cannot be stopped";
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Pages pages, other;
	Adopted adopted(l.nb, pages.p, kLength, 0);
	Writer w(l, 100);
	VIP_MEM_HANDLE h;
	struct rlimit before, none;
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	VIP_RETURN back = VipDeregisterMem(l.nb.h, pages.p, adopted.h);
	VIP_RETURN more = VipxAdoptMem(l.nb.h, other.p, kLength, nullptr, 0, &h);
	setrlimit(RLIMIT_NOFILE, &before);
	EXPECT_EQ(name_of(VIP_ERROR_RESOURCE), name_of(back));
	EXPECT_EQ(name_of(VIP_ERROR_RESOURCE), name_of(more));
	EXPECT_FALSE(is_inherited(pages.p));
	EXPECT_TRUE(is_inherited(other.p));
	EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE, w.write(pages.p, adopted.h));
	EXPECT_TRUE(l.works());
	EXPECT_TRUE(same(pages.p, 100, 9));
	adopted.end();
	EXPECT_TRUE(same(pages.p, 100, 9));
}

/* A program that forbids itself system calls after its set-up can still close its NIC. */
TEST_F(WindowAdopted, GivenBackBehindAFilterOfSystemCalls)
{
	RULE("vipl VipDeregisterMem: VIP_ERROR_NOT_SUPPORTED where threads cannot be stopped any more");
	if (exact() != 0)
		GTEST_SKIP() << "the threads of this process cannot be stopped";
	Pages written, unmapped, fresh;
	Adopted one(nic(0), written.p, kLength, 0), other(nic(0), unmapped.p, kLength, 0);
	VIP_MEM_HANDLE h;
	bool filtered = false;
	std::thread sandbox([&] {
		if (!refuse_ptrace())
			return;
		filtered = true;
		EXPECT_RC(VIP_ERROR_NOT_SUPPORTED,
			  VipxAdoptMem(nic(0).h, fresh.p, kLength, nullptr, 0, &h));
		EXPECT_RC(VIP_ERROR_NOT_SUPPORTED, VipDeregisterMem(nic(0).h, written.p, one.h));
		EXPECT_FALSE(is_inherited(written.p));
		EXPECT_EQ(0, mprotect(written.p, kLength, PROT_READ));
		one.end();
		EXPECT_EQ(0, mprotect(written.p, kLength, PROT_READ | PROT_WRITE));
		EXPECT_RC(VIP_ERROR_NOT_SUPPORTED, VipDeregisterMem(nic(0).h, unmapped.p, other.h));
		EXPECT_EQ(0, munmap(unmapped.p, kLength));
		other.end();
	});
	sandbox.join();
	if (!filtered)
		GTEST_SKIP() << "the kernel takes no filter";
	EXPECT_TRUE(same(written.p, kLength, 3));
	EXPECT_TRUE(is_inherited(written.p));
	EXPECT_TRUE(same(fresh.p, kLength, 3));
}

TEST_F(WindowAdopted, ChildrenOfFork)
{
	RULE("vipl_ext VipxAdoptMem: a child of fork() has neither the memory nor its handle");
	Pages pages;
	Adopted adopted(nic(0), pages.p, kLength);
	pid_t pid = fork();
	ASSERT_GE(pid, 0);
	if (pid == 0) {
		unsigned char seen;
		bool gone = mincore(pages.p, kPage, &seen) != 0;
		bool refused = VipDeregisterMem(nic(0).h, pages.p, adopted.h) ==
			       VIP_INVALID_PARAMETER;
		_exit(gone && refused ? 0 : 1);
	}
	EXPECT_EQ(0, child_wait(pid));
	EXPECT_TRUE(same(pages.p, kLength, 3));
}

TEST_F(WindowAdopted, UntilTheWindowIsFull)
{
	RULE("vipl_ext VipxAdoptMem: VIP_ERROR_RESOURCE when the window is full, and the memory is as before");
	Nic n(0);
	Pages pages;
	std::vector<Piece> pieces;
	for (VIP_ULONG length = 1u << 29; length >= kPage; length /= 2) {
		Piece piece;
		while (VipxAllocMem(n.h, length, nullptr, &piece.p, &piece.h) == VIP_SUCCESS)
			pieces.push_back(piece);
	}
	ASSERT_FALSE(pieces.empty());
	size_t before = mappings();
	VIP_MEM_HANDLE h;
	for (int i = 0; i < 10; i++)
		EXPECT_RC(VIP_ERROR_RESOURCE,
			  VipxAdoptMem(n.h, pages.p, kLength, nullptr, VIPX_ADOPT_NO_WRITERS, &h));
	EXPECT_EQ(before, mappings());
	EXPECT_TRUE(same(pages.p, kLength, 3));
	EXPECT_TRUE(is_inherited(pages.p));
	for (auto &piece : pieces)
		EXPECT_RC(VIP_SUCCESS, VipxFreeMem(n.h, piece.p, piece.h));
	EXPECT_RC(VIP_SUCCESS,
		  VipxAdoptMem(n.h, pages.p, kLength, nullptr, VIPX_ADOPT_NO_WRITERS, &h));
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(n.h, pages.p, h));
}

TEST_F(WindowAdopted, UntilThereAreNoMorePieces)
{
	RULE("vipl_ext VipxAdoptMem: pieces side by side, until VIP_ERROR_RESOURCE");
	const size_t count = 100;
	Nic n(0);
	Pages pages((count + 1) * kPage);
	std::vector<Piece> pieces(1);
	std::vector<VIP_MEM_HANDLE> handles(count + 1);
	while (VipxAllocMem(n.h, kPage, nullptr, &pieces.back().p, &pieces.back().h) == VIP_SUCCESS)
		pieces.emplace_back();
	pieces.pop_back();
	ASSERT_GT(pieces.size(), count);
	for (size_t i = 0; i < count; i++, pieces.pop_back())
		EXPECT_RC(VIP_SUCCESS, VipxFreeMem(n.h, pieces.back().p, pieces.back().h));
	for (size_t i = 0; i <= count; i++)
		EXPECT_RC(i < count ? VIP_SUCCESS : VIP_ERROR_RESOURCE,
			  VipxAdoptMem(n.h, pages.p + i * kPage, kPage, nullptr,
				       VIPX_ADOPT_NO_WRITERS, &handles[i]));
	EXPECT_TRUE(same(pages.p, pages.length, 3));
	EXPECT_TRUE(is_inherited(pages.p + count * kPage));
	for (size_t i = 0; i < count; i++)
		ASSERT_RC(VIP_SUCCESS, VipDeregisterMem(n.h, pages.p + i * kPage, handles[i]));
	EXPECT_TRUE(same(pages.p, pages.length, 3));
	for (auto &piece : pieces)
		EXPECT_RC(VIP_SUCCESS, VipxFreeMem(n.h, piece.p, piece.h));
}

TEST_F(SlowWindowAdopted, TenThousandTimes)
{
	RULE("vipl_ext VipxAdoptMem: adopted and given back 10,000 times nothing is left");
	Pages pages;
	VIP_ULONG flags[] = { exact(), VIPX_ADOPT_NO_WRITERS };
	size_t before = 0;
	int low = -1;
	for (int i = 0; i < 10000; i++) {
		Adopted adopted(nic(0), pages.p, kLength, flags[i % 2]);
		ASSERT_EQ(name_of(VIP_SUCCESS), name_of(adopted.rc)) << i;
		adopted.end();
		if (i != 100)
			continue;
		before = mappings();
		low = dup(0);
		close(low);
	}
	EXPECT_EQ(before, mappings());
	int after = dup(0);
	close(after);
	EXPECT_EQ(low, after) << "no descriptor is left";
	EXPECT_TRUE(same(pages.p, kLength, 3));
}
