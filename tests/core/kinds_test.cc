/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration of each kind of memory that a process may have. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <functional>
#include <thread>
#include <vector>

#include "apart.h"
#include "core_fixture.h"
#include "probes.h"

namespace {

class Kinds : public CoreTest {
protected:
	/* The return code of registering [at, at + len); nothing stays registered. */
	VIP_RETURN reg(const void *at, size_t len)
	{
		VIP_MEM_HANDLE h = 0;
		auto addr = const_cast<void *>(at);
		VIP_RETURN rc = VipRegisterMem(nic, addr, len, nullptr, &h);

		if (rc == VIP_SUCCESS) {
			writable = fake_tpt(nic, nullptr, addr, len, h, FAKE_WRITE) != nullptr;
			EXPECT_EQ(addr, fake_tpt(nic, nullptr, addr, len, h, FAKE_READ));
			EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, addr, h));
		}
		return rc;
	}

	static uint8_t *map(size_t len, int rights, int flags, int fd = -1)
	{
		void *at = mmap(nullptr, len, rights, flags, fd, 0);

		EXPECT_NE(MAP_FAILED, at);
		return static_cast<uint8_t *>(at);
	}

	static uint8_t *anonymous(size_t len)
	{
		return map(len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	}

	/* Anonymous memory; parts of it are to be unmapped. */
	static uint8_t *apart(size_t len)
	{
		void *at = map_apart(len, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);

		EXPECT_NE(MAP_FAILED, at);
		return static_cast<uint8_t *>(at);
	}

	size_t present(uint8_t *at, size_t len) const
	{
		std::vector<unsigned char> seen(len / page);

		EXPECT_EQ(0, mincore(at, len, seen.data()));
		return static_cast<size_t>(
			std::count_if(seen.begin(), seen.end(), [](auto c) { return c & 1; }));
	}

	const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	const int rw = PROT_READ | PROT_WRITE;
	bool writable = false; /* whether the last reg() registered writable memory */
};

TEST_F(Kinds, FilesAreRegisteredUpToTheirEnd)
{
	if (!probe_ends_of_files())
		GTEST_SKIP() << "the kernel does not tell that a file ends before its mapping";
	for (int flags : { MAP_SHARED, MAP_PRIVATE }) {
		int fd = memfd_create("kinds", MFD_CLOEXEC);

		ASSERT_EQ(0, ftruncate(fd, static_cast<off_t>(2 * page)));
		uint8_t *at = map(4 * page, rw, flags, fd);
		EXPECT_EQ(VIP_SUCCESS, reg(at, 2 * page));
		EXPECT_TRUE(writable);
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, 2 * page + 1));
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at + 2 * page, 1));
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, 4 * page));
		ASSERT_EQ(0, ftruncate(fd, static_cast<off_t>(page)));
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at + page, page));
		EXPECT_EQ(VIP_SUCCESS, reg(at, page));
		munmap(at, 4 * page);
		close(fd);
	}
}

TEST_F(Kinds, NoPageOfAnonymousMemoryIsTouched)
{
	const size_t len = 1u << 30;

	if (!probe_map_queries())
		GTEST_SKIP() << "the kernel has no PROCMAP_QUERY";
	uint8_t *at = anonymous(len);
	madvise(at, len, MADV_NOHUGEPAGE);
	EXPECT_EQ(VIP_SUCCESS, reg(at, len));
	EXPECT_TRUE(writable);
	EXPECT_EQ(VIP_SUCCESS, reg(at + 5, len - 9));
	EXPECT_EQ(0u, present(at, len));
	ASSERT_EQ(0, mprotect(at + len / 2, page, PROT_READ));
	EXPECT_EQ(VIP_SUCCESS, reg(at, len));
	EXPECT_FALSE(writable);
	EXPECT_EQ(VIP_SUCCESS, reg(at, len / 2));
	EXPECT_TRUE(writable);
	EXPECT_EQ(0u, present(at, len));
	munmap(at, len);
}

TEST_F(Kinds, GapsAreFoundWhereverTheyAre)
{
	const size_t len = 64u << 20;

	for (size_t where : { size_t(0), page, len / 2, len - page }) {
		for (bool mapped : { true, false }) {
			uint8_t *at = apart(len);

			ASSERT_EQ(0, mapped ? mprotect(at + where, page, PROT_NONE)
					    : munmap(at + where, page));
			EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len)) << where;
			EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at + where, 1)) << where;
			EXPECT_EQ(where != 0 ? VIP_SUCCESS : VIP_INVALID_PARAMETER, reg(at, where));
			munmap(at, len);
		}
	}
}

TEST_F(Kinds, ReservedMemory)
{
	const size_t len = size_t(8) << 40;

	if (!probe_reservations())
		GTEST_SKIP() << "addresses without memory take memory here";
	void *at =
		mmap(nullptr, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	VIP_NIC_ATTRIBUTES a;

	if (at == MAP_FAILED)
		GTEST_SKIP() << "no 8 TiB of addresses";
	ASSERT_EQ(VIP_SUCCESS, VipQueryNic(nic, &a));
	const size_t most = a.MaxRegisterBlockBytes & ~(page - 1);
	ASSERT_LT(most, len);
	EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len)) << "above the limit";
	EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, most)) << "it cannot be read";
	if (probe_map_queries() && mprotect(at, len, rw) == 0) {
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len)) << "above the limit";
		EXPECT_EQ(VIP_SUCCESS, reg(at, most));
	}
	munmap(at, len);
}

TEST_F(Kinds, ManyMappings)
{
	const size_t pages = 200;
	uint8_t *at = anonymous(pages * page);

	for (size_t i = 0; i < pages; i += 2)
		ASSERT_EQ(0, mprotect(at + i * page, page, PROT_READ));
	EXPECT_EQ(VIP_SUCCESS, reg(at, pages * page));
	EXPECT_FALSE(writable);
	ASSERT_EQ(0, mprotect(at + 150 * page, page, PROT_NONE));
	EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, pages * page));
	munmap(at, pages * page);
}

TEST_F(Kinds, AnonymousNextToAFile)
{
	int fd = memfd_create("kinds", MFD_CLOEXEC);
	uint8_t *at = anonymous(3 * page);

	ASSERT_EQ(0, ftruncate(fd, static_cast<off_t>(page)));
	ASSERT_NE(MAP_FAILED, mmap(at + page, page, rw, MAP_SHARED | MAP_FIXED, fd, 0));
	EXPECT_EQ(VIP_SUCCESS, reg(at, 3 * page));
	EXPECT_TRUE(writable);
	ASSERT_EQ(0, ftruncate(fd, 0));
	if (probe_ends_of_files()) {
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, 3 * page));
	}
	EXPECT_EQ(VIP_SUCCESS, reg(at, page));
	munmap(at, 3 * page);
	close(fd);
}

TEST_F(Kinds, SharedAnonymousAndDevices)
{
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

	ASSERT_GE(zero, 0);
	for (int flags : { MAP_SHARED | MAP_ANONYMOUS, MAP_SHARED, MAP_PRIVATE }) {
		uint8_t *at = map(4 * page, rw, flags, flags & MAP_ANONYMOUS ? -1 : zero);

		EXPECT_EQ(VIP_SUCCESS, reg(at, 4 * page)) << flags;
		EXPECT_TRUE(writable);
		munmap(at, 4 * page);
	}
	close(zero);
}

TEST_F(Kinds, StacksThatGrowAreNotMappedBelow)
{
	uint8_t *room = apart(1024 * page), *at = room + 512 * page;

	ASSERT_EQ(0, munmap(room, 1024 * page));
	void *stack = mmap(at, page, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	ASSERT_NE(MAP_FAILED, stack);
	at = static_cast<uint8_t *>(stack);
	EXPECT_EQ(VIP_SUCCESS, reg(at, page));
	EXPECT_TRUE(writable);
	EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at - page, 2 * page));
	munmap(at, page);
}

/* The kernel's own mappings have no file either; some of them have pages that are not present. */
TEST_F(Kinds, MappingsOfTheKernel)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], name[256];
	uint64_t from, to;
	int seen = 0;

	if (maps == nullptr || !probe_ends_of_files())
		GTEST_SKIP() << "the kernel does not say what may be populated";
	while (fgets(line, sizeof(line), maps) != nullptr) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %255s", &from, &to,
			   name) != 3 ||
		    name[0] != '[' || name[1] != 'v')
			continue;
		auto at = reinterpret_cast<uint8_t *>(from);
		bool tells = madvise(at, to - from, 22 /* MADV_POPULATE_READ */) == 0;
		EXPECT_EQ(tells ? VIP_SUCCESS : VIP_INVALID_PARAMETER, reg(at, to - from)) << line;
		EXPECT_FALSE(writable) << line;
		seen++;
	}
	fclose(maps);
	if (seen == 0)
		GTEST_SKIP() << "none";
}

TEST_F(Kinds, AddressesThatNobodyHas)
{
	for (uintptr_t at : { ~uintptr_t(0), ~uintptr_t(0) - 4095, ~uintptr_t(0) - 8191,
			      uintptr_t(1) << 63, uintptr_t(4096) })
		for (size_t len : { size_t(1), size_t(4096), size_t(1) << 20 })
			EXPECT_EQ(VIP_INVALID_PARAMETER, reg(reinterpret_cast<void *>(at), len))
				<< at << ' ' << len;
}

/* ---- ways to check that are missing ---------------------------------------------------------- */

/* Runs `work` in a child with a NIC of its own. */
class KindsInChild : public Kinds {
protected:
	void in_child(const std::function<void()> &work)
	{
		pid_t pid = fork();
		int status = -1;

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(60);
			if (VipOpenNic("fake", &nic) != VIP_SUCCESS)
				_exit(2);
			work();
			_exit(HasFailure() ? 1 : 0);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
	}

	/* From here on the system call fails with `err`; with `arg` only if its second argument is that. */
	static bool refuse(uint32_t call, int err, uint32_t arg = 0)
	{
		const uint16_t load = BPF_LD | BPF_W | BPF_ABS, equal = BPF_JMP | BPF_JEQ | BPF_K;
		sock_filter code[] = {
			{ load, 0, 0, offsetof(seccomp_data, nr) },
			{ equal, 0, static_cast<uint8_t>(arg != 0 ? 3 : 1), call },
			{ load, 0, 0, offsetof(seccomp_data, args[1]) },
			{ equal, 0, 1, arg },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<uint32_t>(err) },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
		};
		if (arg == 0) { /* the argument does not matter */
			code[2] = code[4];
			code[3] = code[5];
		}
		sock_fprog program = { static_cast<uint16_t>(arg != 0 ? 6 : 4), code };

		return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
	}

	/* Registers every kind of memory once, by whatever way is left. */
	void all_kinds()
	{
		const size_t len = 64u << 20;
		uint8_t *at = apart(len);
		static uint8_t bss[64];
		int fd = memfd_create("kinds", MFD_CLOEXEC);

		EXPECT_EQ(VIP_SUCCESS, reg(at, len));
		EXPECT_TRUE(writable);
		EXPECT_EQ(VIP_SUCCESS, reg(bss, sizeof(bss)));
		EXPECT_TRUE(writable);
		EXPECT_EQ(VIP_SUCCESS, reg(&at, sizeof(at)));
		EXPECT_TRUE(writable);
		EXPECT_EQ(VIP_SUCCESS, reg("constant", 8));
		EXPECT_FALSE(writable);
		ASSERT_EQ(0, mprotect(at, page, PROT_READ));
		EXPECT_EQ(VIP_SUCCESS, reg(at, len));
		EXPECT_FALSE(writable);
		ASSERT_EQ(0, mprotect(at + len / 2, page, PROT_NONE));
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len));
		ASSERT_EQ(0, munmap(at + len / 2, page));
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len));
		munmap(at, len);
		ASSERT_EQ(0, ftruncate(fd, static_cast<off_t>(page)));
		at = map(2 * page, rw, MAP_SHARED, fd);
		EXPECT_EQ(VIP_SUCCESS, reg(at, page));
		EXPECT_TRUE(writable);
		if (probe_ends_of_files()) {
			EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, 2 * page));
		}
		munmap(at, 2 * page);
		close(fd);
	}

	static constexpr uint32_t kQuery = 0xc0686611;
};

TEST_F(KindsInChild, AllAreThere)
{
	in_child([&] { all_kinds(); });
}

TEST_F(KindsInChild, WithoutQueries)
{
	if (!probe_filters())
		GTEST_SKIP() << "no filters of system calls";
	for (int err : { ENOTTY, EPERM, EINVAL, ENOSYS }) {
		in_child([&] {
			ASSERT_TRUE(refuse(SYS_ioctl, err, kQuery));
			all_kinds();
			/* The list of mappings is read, which is worth it for a long range. */
			uint8_t *at = anonymous(1u << 30);
			EXPECT_EQ(VIP_SUCCESS, reg(at, 1u << 30));
			EXPECT_EQ(0u, present(at, 1u << 30));
			/* The list shows that this memory is not anonymous. */
			int fd = memfd_create("kinds", MFD_CLOEXEC);
			for (int flags : { MAP_SHARED, MAP_PRIVATE }) {
				at = map(1u << 30, rw, flags | MAP_NORESERVE, fd);
				if (probe_ends_of_files()) {
					EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, 1u << 30));
				}
			}
		});
	}
}

TEST_F(KindsInChild, QueriesAreTakenAwayLater)
{
	if (!probe_filters())
		GTEST_SKIP() << "no filters of system calls";
	in_child([&] {
		all_kinds();
		ASSERT_TRUE(refuse(SYS_ioctl, EPERM, kQuery));
		all_kinds();
	});
}

TEST_F(KindsInChild, WithoutTheListOfMappings)
{
	if (!probe_filters() || !probe_ends_of_files())
		GTEST_SKIP() << "no filters of system calls, or no other way to ask";
	for (int err : { ENOENT, EACCES, EMFILE })
		in_child([&] {
			ASSERT_TRUE(refuse(SYS_openat, err));
			all_kinds();
		});
}

TEST_F(KindsInChild, WithoutDescriptors)
{
	in_child([&] {
		uint8_t *at = anonymous(1u << 20);
		rlimit was, none;

		ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
		none = { 3, was.rlim_max };
		/* No member function is called before: the sanitizer of undefined behaviour opens a pipe for that. */
		VIP_NIC_HANDLE own = nic;
		VIP_MEM_HANDLE h;
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
		EXPECT_EQ(VIP_SUCCESS, VipRegisterMem(own, at, 1u << 20, nullptr, &h));
		EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(own, at, h));
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
		/* When there are descriptors again, one is kept. */
		madvise(at, 1u << 20, MADV_DONTNEED);
		int before = open_fds();
		EXPECT_EQ(VIP_SUCCESS, reg(at, 1u << 20));
		if (probe_map_queries()) {
			EXPECT_EQ(0u, present(at, 1u << 20));
			EXPECT_EQ(before + 1, open_fds());
		}
		all_kinds();
		EXPECT_LE(open_fds(), before + 1);
	});
}

/* The parent's descriptor shows the mappings of the parent. */
TEST_F(KindsInChild, HaveMappingsOfTheirOwn)
{
	const size_t len = 1u << 20;
	uint8_t *at = anonymous(len);

	EXPECT_EQ(VIP_SUCCESS, reg(at, len));
	in_child([&] {
		EXPECT_EQ(VIP_SUCCESS, reg(at, len));
		ASSERT_EQ(0, mprotect(at, len, PROT_NONE));
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len));
		munmap(at, len);
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len));
		in_child([&] {
			ASSERT_EQ(at, mmap(at, len, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
					   0));
			EXPECT_EQ(VIP_SUCCESS, reg(at, len));
		});
		EXPECT_EQ(VIP_INVALID_PARAMETER, reg(at, len));
	});
	EXPECT_EQ(VIP_SUCCESS, reg(at, len));
	munmap(at, len);
}

TEST_F(KindsInChild, DoNotKeepTheDescriptorOfTheParent)
{
	EXPECT_EQ(VIP_SUCCESS, reg(this, 1));
	int before = open_fds(), held = probe_map_queries() ? 1 : 0;

	in_child([&] {
		EXPECT_EQ(before - held, open_fds());
		EXPECT_EQ(VIP_SUCCESS, reg(this, 1));
		EXPECT_EQ(before, open_fds());
	});
}

/* Threads that register for the first time open one descriptor in all. */
TEST_F(KindsInChild, OneDescriptorForAllThreads)
{
	in_child([&] {
		static uint8_t bytes[8];
		std::atomic<int> ready{ 0 };
		std::vector<std::thread> threads;
		int before = open_fds();

		for (int i = 0; i < 8; i++)
			threads.emplace_back([&, i] {
				VIP_MEM_HANDLE h;
				ready++;
				while (ready < 8)
					std::this_thread::yield();
				EXPECT_EQ(VIP_SUCCESS,
					  VipRegisterMem(nic, bytes + i, 1, nullptr, &h));
				EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, bytes + i, h));
			});
		for (auto &t : threads)
			t.join();
		EXPECT_LE(open_fds(), before + 1);
	});
}

} // namespace
