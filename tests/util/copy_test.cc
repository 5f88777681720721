/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies into memory that another thread polls. */
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

extern "C" {
#include "copy_calls.h"
}

namespace {

/* A thread that polls sees each aligned word of a copy as it was before or as it is afterwards. */
void words_are_whole(void (*copy)(void *, const void *, size_t))
{
	constexpr size_t words = 8;
	alignas(64) static uint64_t polled[words];
	std::atomic<bool> done{ false };
	uint64_t torn = 0;

	std::memset(polled, 0, sizeof(polled));
	std::thread reader([&] {
		while (!done.load(std::memory_order_acquire)) {
			for (uint64_t &word : polled) {
				uint64_t seen = __atomic_load_n(&word, __ATOMIC_RELAXED);

				if (seen != 0 && seen != UINT64_MAX)
					torn = seen;
			}
		}
	});
	/* From an address that is not aligned as the target is, as a message's payload may be. */
	for (int i = 0; i < 200000; i++) {
		uint8_t from[sizeof(polled) + 1];

		std::memset(from, i % 2 ? 0xff : 0, sizeof(from));
		copy(polled, from + 1, sizeof(polled));
	}
	done.store(true, std::memory_order_release);
	reader.join();
	EXPECT_EQ(torn, 0U);
}

TEST(Copy, WordsOfSharedMemoryAreWhole)
{
	words_are_whole(call_copy_shared);
}

TEST(Copy, WordsThatArriveInOrderAreWhole)
{
	words_are_whole(call_copy_last_last);
}

TEST(Copy, AnyLengthAndAlignment)
{
	uint8_t from[64], to[64];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t at = 0; at < 9; at++) {
		for (size_t source = 0; source < 9; source++) {
			for (size_t n = 0; n < 40; n++) {
				std::memset(to, 0, sizeof(to));
				call_copy_shared(to + at, from + source, n);
				EXPECT_EQ(std::memcmp(to + at, from + source, n), 0);
				EXPECT_EQ(to[at + n], 0);
				EXPECT_TRUE(at == 0 || to[at - 1] == 0);
			}
		}
	}
}

} // namespace
