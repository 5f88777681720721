// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

extern "C" {
#include "apart.h"
#include "u_maps.h"
}

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

namespace {

/* Four pages, whose neighbours belong to other mappings. */
class Maps : public testing::Test {
protected:
	void SetUp() override
	{
		page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
		at = static_cast<char *>(
			map_apart(4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS));
		ASSERT_NE(at, MAP_FAILED);
		if (access("/proc/self/maps", R_OK) != 0)
			GTEST_SKIP() << "there is no /proc/self/maps";
	}

	void TearDown() override { munmap(at, 4 * page); }

	size_t page;
	char *at;
	bool writable = false;
};

TEST_F(Maps, AllThere)
{
	EXPECT_EQ(u_maps_check(at, 4 * page, &writable), 0);
	EXPECT_TRUE(writable);
	EXPECT_EQ(u_maps_check(at + 5, 1, &writable), 0);
	EXPECT_EQ(u_maps_check(&writable, sizeof(writable), &writable), 0);
	EXPECT_TRUE(writable);
}

TEST_F(Maps, ReadOnlyPartsAreNoneToWrite)
{
	ASSERT_EQ(mprotect(at + page, page, PROT_READ), 0);
	EXPECT_EQ(u_maps_check(at, 4 * page, &writable), 0);
	EXPECT_FALSE(writable);
	EXPECT_EQ(u_maps_check(at, page, &writable), 0);
	EXPECT_TRUE(writable);
	EXPECT_EQ(u_maps_check(at + 2 * page, 2 * page, &writable), 0);
	EXPECT_TRUE(writable);
}

TEST_F(Maps, GapsAndWhatCannotBeReadAreRefused)
{
	ASSERT_EQ(mprotect(at + page, page, PROT_NONE), 0);
	EXPECT_EQ(u_maps_check(at, 4 * page, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check(at + page, 1, &writable), -EFAULT);
	ASSERT_EQ(munmap(at + page, page), 0);
	EXPECT_EQ(u_maps_check(at, 4 * page, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check(at + 2 * page - 1, 2, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check(at, page, &writable), 0);
	EXPECT_EQ(u_maps_check(at + 2 * page, 2 * page, &writable), 0);
	EXPECT_EQ(u_maps_check(nullptr, 1, &writable), -EFAULT);
}

TEST_F(Maps, NothingIsWrittenForWhatIsRefused)
{
	writable = true;
	ASSERT_EQ(mprotect(at, page, PROT_NONE), 0);
	EXPECT_EQ(u_maps_check(at, page, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check_private(at, page, &writable), -EFAULT);
	EXPECT_TRUE(writable);
}

TEST_F(Maps, AddressesThatWrapRoundAreRefused)
{
	auto last = reinterpret_cast<void *>(~uintptr_t(0) - page + 1);

	EXPECT_EQ(u_maps_check(last, page, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check_private(last, page, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check(at, ~uint64_t(0), &writable), -EFAULT);
	EXPECT_EQ(u_maps_check_private(at, ~uint64_t(0), &writable), -EFAULT);
}

/* Long enough for both ways of checking. */
class MapsPrivate : public Maps {
protected:
	void SetUp() override
	{
		Maps::SetUp();
		big = map(kBig, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
		if (!IsSkipped() && u_maps_check_private(big, kBig, &writable) != 0)
			GTEST_SKIP() << "the kernel does not tell of a mapping by its address";
	}

	void TearDown() override
	{
		munmap(big, kBig);
		Maps::TearDown();
	}

	static char *map(size_t len, int flags, int fd = -1)
	{
		void *got = mmap(nullptr, len, PROT_READ | PROT_WRITE, flags, fd, 0);

		EXPECT_NE(got, MAP_FAILED);
		return static_cast<char *>(got);
	}

	static constexpr size_t kBig = 1u << 30;
	char *big;
};

TEST_F(MapsPrivate, Anonymous)
{
	EXPECT_EQ(u_maps_check_private(big, kBig, &writable), 0);
	EXPECT_TRUE(writable);
	ASSERT_EQ(mprotect(big + kBig / 2, page, PROT_READ), 0);
	EXPECT_EQ(u_maps_check_private(big, kBig, &writable), 0);
	EXPECT_FALSE(writable);
	ASSERT_EQ(mprotect(big + kBig / 2, page, PROT_NONE), 0);
	EXPECT_EQ(u_maps_check_private(big, kBig, &writable), -EFAULT);
	ASSERT_EQ(munmap(big + kBig / 2, page), 0);
	EXPECT_EQ(u_maps_check_private(big, kBig, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check_private(big, kBig / 2, &writable), 0);
	EXPECT_TRUE(writable);
}

/* Names may be given to anonymous memory, of 79 characters. */
TEST_F(MapsPrivate, AnonymousWithAName)
{
	std::string name(79, 'n');

	for (auto given : { name.c_str(), "inode", "" }) {
		if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, big, kBig, given) != 0)
			GTEST_SKIP() << "the kernel takes no names";
		EXPECT_EQ(u_maps_check_private(big, kBig, &writable), 0) << given;
		EXPECT_TRUE(writable);
	}
}

TEST_F(MapsPrivate, NotWhatHasAFileOrIsShared)
{
	int fd = memfd_create("maps", MFD_CLOEXEC), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

	ASSERT_EQ(ftruncate(fd, kBig), 0);
	const struct {
		int flags, fd;
	} all[] = { { MAP_SHARED, fd },
		    { MAP_PRIVATE, fd },
		    { MAP_SHARED | MAP_ANONYMOUS, -1 },
		    { MAP_SHARED, zero },
		    { MAP_PRIVATE, zero } };
	for (auto &one : all) {
		char *other = map(kBig, one.flags | MAP_NORESERVE, one.fd);

		EXPECT_EQ(u_maps_check_private(other, kBig, &writable), -EFAULT) << one.flags;
		munmap(other, kBig);
		other = map(page, one.flags, one.fd);
		EXPECT_EQ(u_maps_check_private(other, page, &writable), -EFAULT) << one.flags;
		EXPECT_EQ(u_maps_check(other, page, &writable), 0) << one.flags;
		munmap(other, page);
	}
	ASSERT_NE(mmap(big + kBig / 2, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		  MAP_FAILED);
	EXPECT_EQ(u_maps_check_private(big, kBig, &writable), -EFAULT);
	EXPECT_EQ(u_maps_check_private(big, kBig / 2, &writable), 0);
	close(fd);
	close(zero);
}

TEST_F(MapsPrivate, NotTheKernelsOwn)
{
	auto vdso = reinterpret_cast<void *>(getauxval(AT_SYSINFO_EHDR));

	if (vdso == nullptr)
		GTEST_SKIP() << "none";
	EXPECT_EQ(u_maps_check_private(vdso, 1, &writable), -EFAULT);
}

/* The descriptor of this process that shows its mappings, -1: none. */
int maps_descriptor()
{
	char path[64], target[64] = "";
	std::string own = "/proc/" + std::to_string(getpid()) + "/maps";

	for (int fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);

		if (n > 0 && std::string(target, static_cast<size_t>(n)) == own)
			return fd;
	}
	return -1;
}

TEST_F(Maps, AProgramMayCloseTheDescriptorByItsNumber)
{
	bool writable;
	int ends[2], fd;

	if (u_maps_check_private(at, page, &writable) != 0 || (fd = maps_descriptor()) < 0)
		GTEST_SKIP() << "the kernel has no query for a mapping";
	ASSERT_EQ(pipe(ends), 0);
	ASSERT_EQ(dup2(ends[1], fd), fd);
	u_maps_forked();
	EXPECT_EQ(fcntl(fd, F_GETFD), 0) << "a file of the program is not closed";
	EXPECT_EQ(u_maps_check_private(at, page, &writable), 0);
	fd = maps_descriptor();
	ASSERT_GE(fd, 0) << "another one was opened";
	ASSERT_EQ(dup2(ends[1], fd), fd);
	EXPECT_EQ(u_maps_check_private(at, page, &writable), 0);
	EXPECT_GE(maps_descriptor(), 0) << "the next check notices";
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

} // namespace
