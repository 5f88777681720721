/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration of each kind of memory that a process may have. */
#include <sys/mman.h>
#include <unistd.h>

#include "core_fixture.h"
#include "probes.h"

namespace {

class Kinds : public CoreTest {
protected:
	/* What registering [at, at + len) answers; nothing stays registered. */
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

	const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	const int rw = PROT_READ | PROT_WRITE;
	bool writable = false; /* what the last reg() registered */
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

} // namespace
