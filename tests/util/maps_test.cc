// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include "u_maps.h"
}

namespace {

/* Four pages, whose neighbours belong to somebody else. */
class Maps : public testing::Test {
protected:
	void SetUp() override
	{
		page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
		at = static_cast<char *>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
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
	EXPECT_TRUE(writable);
}

} // namespace
