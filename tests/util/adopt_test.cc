// SPDX-License-Identifier: BSD-2-Clause
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include "u_adopt.h"
}

namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

char *map(size_t len, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
{
	void *got = mmap(nullptr, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	EXPECT_NE(got, MAP_FAILED);
	return static_cast<char *>(got);
}

/* Memory with a known content, and pages that may take its place. */
class Adopt : public testing::Test {
protected:
	void SetUp() override
	{
		if (access("/proc/self/smaps", R_OK) != 0)
			GTEST_SKIP() << "there is no /proc/self/smaps";
		fd = memfd_create("adopt", MFD_CLOEXEC);
		ASSERT_EQ(ftruncate(fd, static_cast<off_t>(kLen)), 0);
		at = map(kLen);
		pages = map(kLen, MAP_SHARED, fd);
		void *twice = mremap(pages, 0, kPage, MREMAP_MAYMOVE);
		if (twice == MAP_FAILED)
			GTEST_SKIP() << "pages cannot be mapped a second time here";
		munmap(twice, kPage);
		for (size_t i = 0; i < kLen; i++)
			at[i] = byte(i);
	}

	void TearDown() override
	{
		if (at == nullptr)
			return;
		munmap(at, kLen);
		munmap(pages, kLen);
		close(fd);
	}

	static char byte(size_t i) { return static_cast<char>(i * 7 + i / 4096); }

	/* Adopts the memory.  Whether other threads can be stopped here is the subject of stop_test.cc. */
	int adopt(bool exact = false) { return u_adopt(at, kLen, pages, exact, why); }

	void expect_refused(int err, void *start, size_t len)
	{
		EXPECT_EQ(u_adopt(start, len, pages, false, why), err) << why;
		EXPECT_NE(why[0], '\0');
	}

	void expect_content() const
	{
		for (size_t i = 0; i < kLen; i++)
			ASSERT_EQ(at[i], byte(i)) << i;
	}

	/* The line of a mapping in the list. */
	static std::string line_of(const void *start)
	{
		std::ifstream maps("/proc/self/maps");
		std::string line;

		while (std::getline(maps, line))
			if (std::stoul(line, nullptr, 16) <= reinterpret_cast<uintptr_t>(start) &&
			    std::stoul(line.substr(line.find('-') + 1), nullptr, 16) >
				    reinterpret_cast<uintptr_t>(start))
				return line;
		return "";
	}

	bool is_shared(size_t offset) const
	{
		return line_of(at + offset).find("memfd:adopt") != std::string::npos;
	}

	size_t kLen = 8 * kPage;
	int fd = -1;
	char *at = nullptr, *pages = nullptr;
	char why[U_MAPS_WHY] = "";
};

TEST_F(Adopt, ContentStaysBothWays)
{
	ASSERT_EQ(adopt(), 0) << why;
	EXPECT_TRUE(is_shared(0));
	expect_content();
	pages[5] = 'x';
	EXPECT_EQ(at[5], 'x') << "the same pages";
	at[kPage] = 'y';
	EXPECT_EQ(pages[kPage], 'y');
	EXPECT_EQ(u_adopt_undo(at, kLen, pages, false), 0);
	EXPECT_FALSE(is_shared(0));
	EXPECT_EQ(at[5], 'x');
	EXPECT_EQ(at[kPage], 'y');
	at[6] = 'z';
	EXPECT_NE(pages[6], 'z') << "private again";
}

TEST_F(Adopt, ExactKeepsEveryStore)
{
	constexpr int kTurns = 40;
	std::atomic<bool> stop{ false };
	std::vector<std::thread> writers;
	std::vector<uint64_t> counts(4);
	int err = adopt(true);

	if (err == -EOPNOTSUPP)
		GTEST_SKIP() << why;
	ASSERT_EQ(err, 0) << why;
	ASSERT_EQ(u_adopt_undo(at, kLen, pages, true), 0);
	/* Each thread counts in a word of its own: a lost store would make the count go back. */
	for (size_t i = 0; i < counts.size(); i++)
		writers.emplace_back([&, i] {
			auto *word = reinterpret_cast<uint64_t *>(at + 2 * i * kPage + 64);
			uint64_t count = 0;

			__atomic_store_n(word, count, __ATOMIC_RELAXED);
			while (!stop) {
				if (__atomic_load_n(word, __ATOMIC_RELAXED) != count)
					break;
				__atomic_store_n(word, ++count, __ATOMIC_RELAXED);
			}
			counts[i] = count;
		});
	for (int turn = 0; turn < kTurns && err == 0; turn++) {
		err = adopt(true);
		EXPECT_EQ(err, 0) << why;
		if (err == 0)
			err = u_adopt_undo(at, kLen, pages, true);
		EXPECT_EQ(err, 0);
	}
	stop = true;
	for (auto &writer : writers)
		writer.join();
	for (size_t i = 0; i < counts.size(); i++)
		EXPECT_EQ(*reinterpret_cast<uint64_t *>(at + 2 * i * kPage + 64), counts[i]) << i;
}

TEST_F(Adopt, ReadersSeeNoGap)
{
	std::atomic<bool> stop{ false };
	std::atomic<int> wrong{ 0 };
	std::thread reader([&] {
		while (!stop)
			for (size_t i = 3; i < kLen; i += kPage)
				if (__atomic_load_n(at + i, __ATOMIC_RELAXED) != byte(i))
					wrong++;
	});

	for (int turn = 0; turn < 500; turn++) {
		EXPECT_EQ(adopt(), 0) << why;
		EXPECT_EQ(u_adopt_undo(at, kLen, pages, false), 0);
	}
	stop = true;
	reader.join();
	EXPECT_EQ(wrong, 0);
}

TEST_F(Adopt, GapsAreRefused)
{
	ASSERT_EQ(munmap(at + kPage, kPage), 0);
	expect_refused(-EFAULT, at, 2 * kPage);
	expect_refused(-EFAULT, at + kPage, kPage);
	EXPECT_EQ(at[0], byte(0));
	EXPECT_FALSE(is_shared(0));
}

TEST_F(Adopt, OtherProtectionIsRefused)
{
	for (int rights : { PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE | PROT_EXEC }) {
		if (mprotect(at + kPage, kPage, rights) != 0)
			continue; /* some kernels refuse memory that is writable and executable */
		expect_refused(-EOPNOTSUPP, at, kLen);
		EXPECT_FALSE(is_shared(0));
	}
}

TEST_F(Adopt, AttributesAreRefused)
{
	struct {
		int on, off;
	} advices[] = { { MADV_DONTFORK, MADV_DOFORK },
			{ MADV_WIPEONFORK, MADV_KEEPONFORK },
			{ MADV_DONTDUMP, MADV_DODUMP } };

	for (auto advice : advices) {
		ASSERT_EQ(madvise(at + kPage, kPage, advice.on), 0);
		expect_refused(-EOPNOTSUPP, at, kLen);
		ASSERT_EQ(madvise(at + kPage, kPage, advice.off), 0);
	}
	expect_content();
	EXPECT_EQ(adopt(), 0) << why;
}

TEST_F(Adopt, HintsAreTaken)
{
	madvise(at + kPage, kPage, MADV_HUGEPAGE);
	madvise(at + 2 * kPage, kPage, MADV_NOHUGEPAGE);
	madvise(at + 3 * kPage, kPage, MADV_RANDOM);
	EXPECT_EQ(adopt(), 0) << why;
	expect_content();
}

TEST_F(Adopt, LockedIsRefused)
{
	/* The sanitizers' mlock() does nothing. */
	if (syscall(SYS_mlock, at + kPage, kPage) != 0)
		GTEST_SKIP() << "no memory may be locked";
	expect_refused(-EOPNOTSUPP, at, kLen);
	EXPECT_NE(std::string(why).find("munlock"), std::string::npos) << why;
	ASSERT_EQ(syscall(SYS_munlock, at + kPage, kPage), 0);
	EXPECT_EQ(adopt(), 0) << why;
}

TEST_F(Adopt, SharedMemoryIsRefused)
{
	char *shared = map(kLen, MAP_SHARED | MAP_ANONYMOUS);

	expect_refused(-EOPNOTSUPP, shared, kLen);
	munmap(shared, kLen);
}

/* The variables of a program are such pages. */
TEST_F(Adopt, PrivatePagesOfFilesAreTaken)
{
	int file = memfd_create("file", MFD_CLOEXEC);

	ASSERT_EQ(ftruncate(file, static_cast<off_t>(kLen)), 0);
	ASSERT_EQ(pwrite(file, "file", 4, static_cast<off_t>(kPage)), 4);
	char *copy = map(kLen, MAP_PRIVATE, file);
	copy[0] = 1;
	EXPECT_EQ(u_adopt(copy, kLen, pages, false, why), 0) << why;
	EXPECT_EQ(copy[0], 1);
	EXPECT_EQ(memcmp(copy + kPage, "file", 4), 0);
	copy[kPage] = 'F';
	EXPECT_EQ(u_adopt_undo(copy, kLen, pages, false), 0);
	EXPECT_EQ(memcmp(copy + kPage, "File", 4), 0);
	char first = 'x';
	EXPECT_EQ(pread(file, &first, 1, static_cast<off_t>(kPage)), 1);
	EXPECT_EQ(first, 'f') << "the file is as it was";
	munmap(copy, kLen);
	close(file);
}

TEST_F(Adopt, PagesBehindTheEndOfAFileAreRefused)
{
	int file = memfd_create("file", MFD_CLOEXEC);

	ASSERT_EQ(ftruncate(file, static_cast<off_t>(kPage)), 0);
	char *copy = map(kLen, MAP_PRIVATE, file);
	expect_refused(-EOPNOTSUPP, copy, kLen);
	munmap(copy, kLen);
	close(file);
}

TEST_F(Adopt, AdoptedIsRefused)
{
	ASSERT_EQ(adopt(), 0) << why;
	expect_refused(-EOPNOTSUPP, at, kPage);
	expect_refused(-EOPNOTSUPP, at + kPage, 2 * kPage);
	expect_content();
}

TEST_F(Adopt, HugePagesAreRefused)
{
	size_t len = 2u << 20;
	void *huge = mmap(nullptr, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);

	if (huge == MAP_FAILED)
		GTEST_SKIP() << "this kernel has no huge pages: " << strerror(errno);
	expect_refused(-EOPNOTSUPP, huge, len);
	munmap(huge, len);
}

TEST_F(Adopt, GuardedPagesAreRefused)
{
	constexpr int kGuardInstall = 102;

	if (madvise(at + kPage, kPage, kGuardInstall) != 0)
		GTEST_SKIP() << "this kernel guards no pages";
	expect_refused(-EOPNOTSUPP, at, kLen);
	EXPECT_EQ(at[0], byte(0));
}

TEST_F(Adopt, UserfaultsOfTheProgramAreRefused)
{
	int user = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
	uffdio_api api = {};
	uffdio_register reg = {};

	if (user < 0)
		GTEST_SKIP() << "there is no userfaultfd for this process";
	api.api = UFFD_API;
	reg.range.start = reinterpret_cast<uintptr_t>(at);
	reg.range.len = kLen;
	reg.mode = UFFDIO_REGISTER_MODE_MISSING;
	ASSERT_EQ(ioctl(user, UFFDIO_API, &api), 0);
	ASSERT_EQ(ioctl(user, UFFDIO_REGISTER, &reg), 0);
	expect_refused(-EOPNOTSUPP, at, kLen);
	close(user);
	EXPECT_EQ(adopt(), 0) << why;
}

TEST_F(Adopt, StacksAreRefused)
{
	auto try_own = [&] {
		alignas(65536) volatile char room[65536];

		room[0] = 1;
		expect_refused(-EOPNOTSUPP, const_cast<char *>(room), sizeof(room));
		EXPECT_EQ(room[0], 1);
	};

	if (kPage > 65536)
		GTEST_SKIP() << "pages are too large";
	std::thread(try_own).join();
	auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~(kPage - 1);
	expect_refused(-EOPNOTSUPP, reinterpret_cast<void *>(frame), kPage);
}

TEST_F(Adopt, ManyMappingsInOneRange)
{
	for (size_t i = 0; i < 8; i += 2)
		ASSERT_EQ(madvise(at + i * kPage, kPage, MADV_NOHUGEPAGE), 0);
	ASSERT_EQ(adopt(), 0) << why;
	expect_content();
	EXPECT_EQ(u_adopt_undo(at, kLen, pages, false), 0);
	expect_content();
}

TEST_F(Adopt, PagesNeverTouched)
{
	char *fresh = map(kLen);

	EXPECT_EQ(u_adopt(fresh, kLen, pages, false, why), 0) << why;
	for (size_t i = 0; i < kLen; i++)
		ASSERT_EQ(fresh[i], 0);
	EXPECT_EQ(u_adopt_undo(fresh, kLen, pages, false), 0);
	munmap(fresh, kLen);
}

TEST_F(Adopt, PagesOfZerosAreNotTaken)
{
	char *fresh = map(kLen);
	struct stat st;

	fresh[kPage + 5] = 7;
	EXPECT_EQ(u_adopt(fresh, kLen, pages, false, why), 0) << why;
	ASSERT_EQ(fstat(fd, &st), 0);
	EXPECT_EQ(static_cast<size_t>(st.st_blocks) * 512, kPage);
	EXPECT_EQ(fresh[kPage + 5], 7);
	pages[2 * kPage] = 8;
	EXPECT_EQ(u_adopt_undo(fresh, kLen, pages, false), 0);
	for (size_t i = 0; i < kLen; i++)
		ASSERT_EQ(fresh[i], i == kPage + 5 ? 7 : i == 2 * kPage ? 8 : 0);
	munmap(fresh, kLen);
}

/* Memory after the program has broken the rules: its own mappings stay, and the rest is given back. */
TEST_F(Adopt, UndoLeavesOtherMappingsAlone)
{
	ASSERT_EQ(adopt(), 0) << why;
	ASSERT_EQ(munmap(at, kPage), 0);
	ASSERT_EQ(munmap(at + 3 * kPage, kPage), 0);
	ASSERT_EQ(mmap(at + 3 * kPage, kPage, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		  at + 3 * kPage);
	at[3 * kPage] = 'n';
	ASSERT_EQ(mprotect(at + 5 * kPage, kPage, PROT_READ), 0);
	EXPECT_EQ(u_adopt_undo(at, kLen, pages, false), 0);
	EXPECT_EQ(line_of(at), "");
	EXPECT_EQ(at[3 * kPage], 'n');
	for (size_t i = 1; i < 8; i++) {
		EXPECT_FALSE(is_shared(i * kPage)) << i;
		EXPECT_EQ(at[i * kPage + 9], i == 3 ? 0 : byte(i * kPage + 9)) << i;
	}
	EXPECT_NE(line_of(at + 5 * kPage).find(" r--p "), std::string::npos);
}

/* Other pages of the window's object are not those of the range. */
TEST_F(Adopt, UndoTellsPagesApart)
{
	ASSERT_EQ(adopt(), 0) << why;
	ASSERT_EQ(mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		       static_cast<off_t>(kPage)),
		  at);
	EXPECT_EQ(u_adopt_undo(at, kLen, pages, false), 0);
	EXPECT_TRUE(is_shared(0));
	EXPECT_FALSE(is_shared(kPage));
}

TEST_F(Adopt, ChildrenDoNotHaveIt)
{
	ASSERT_EQ(adopt(), 0) << why;
	pid_t pid = fork();
	ASSERT_GE(pid, 0);
	if (pid == 0) {
		unsigned char seen;

		_exit(mincore(at, kPage, &seen) != 0 && mincore(pages, kPage, &seen) != 0 ? 0 : 1);
	}
	int status = 0;
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(u_adopt_undo(at, kLen, pages, false), 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (pid == 0)
		_exit(at[1] == byte(1) ? 0 : 1);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

/* A handler that stores into the memory would wait for its own thread. */
TEST_F(Adopt, SignalsOfTheCallerWait)
{
	static char *volatile word;
	static volatile sig_atomic_t seen;
	struct sigaction action = {}, old;
	std::atomic<bool> stop{ false };
	pthread_t self = pthread_self();

	word = at;
	action.sa_handler = [](int) { word[100] = static_cast<char>(++seen); };
	ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
	std::thread sender([&] {
		while (!stop) {
			pthread_kill(self, SIGUSR1);
			sched_yield();
		}
	});
	for (int turn = 0; turn < 200; turn++) {
		int err = adopt(true);
		if (err == -EOPNOTSUPP)
			break;
		EXPECT_EQ(err, 0) << why;
		EXPECT_EQ(u_adopt_undo(at, kLen, pages, true), 0);
	}
	stop = true;
	sender.join();
	EXPECT_EQ(static_cast<char>(seen), at[100]);
	sigaction(SIGUSR1, &old, nullptr);
}

TEST_F(Adopt, NothingIsLeftBehind)
{
	auto lines = [] {
		std::ifstream maps("/proc/self/maps");
		std::string line;
		int n = 0;

		while (std::getline(maps, line))
			n++;
		return n;
	};
	auto cycle = [&](bool exact) {
		int err = adopt(exact);
		return err != 0 ? err : u_adopt_undo(at, kLen, pages, exact);
	};

	ASSERT_EQ(cycle(false), 0) << why;
	bool exact = cycle(true) == 0;
	int before = lines(), low = dup(0);
	close(low);
	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(cycle(exact && i % 2 != 0), 0) << why;
	EXPECT_LE(lines(), before + 2);
	int after = dup(0);
	EXPECT_EQ(low, after) << "no descriptor";
	close(after);
	expect_content();
}

} // namespace
