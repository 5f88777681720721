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
void words_are_whole(void (*copy)(void *, const void *, size_t), size_t bytes, size_t begin = 0)
{
	alignas(64) static uint64_t polled[64];
	std::atomic<bool> done{ false };
	uint64_t torn = 0;

	ASSERT_LE(begin + bytes, sizeof(polled));
	std::memset(polled, 0, sizeof(polled));
	std::thread reader([&] {
		while (!done.load(std::memory_order_acquire)) {
			for (size_t i = begin != 0; i < (begin + bytes) / 8; i++) {
				uint64_t seen = __atomic_load_n(&polled[i], __ATOMIC_RELAXED);

				if (seen != 0 && seen != UINT64_MAX)
					torn = seen;
			}
		}
	});
	/* From an address that is not aligned as the target is, as a message's payload may be. */
	for (int i = 0; i < 200000; i++) {
		uint8_t from[sizeof(polled) + 1];

		std::memset(from, i % 2 ? 0xff : 0, sizeof(from));
		copy(reinterpret_cast<uint8_t *>(polled) + begin, from + 1, bytes);
	}
	done.store(true, std::memory_order_release);
	reader.join();
	EXPECT_EQ(torn, 0U) << bytes;
}

TEST(Copy, WordsOfSharedMemoryAreWhole)
{
	for (size_t bytes : { 8, 20, 36, 64, 100, 300, 508, 512 })
		words_are_whole(call_copy_shared, bytes);
}

TEST(Copy, WordsThatArriveInOrderAreWhole)
{
	for (size_t bytes : { 8, 64, 100, 508, 512 })
		words_are_whole(call_copy_last_last, bytes);
	/* All words that lie in the target as a whole, also where it begins within one. */
	for (size_t bytes : { 60, 100, 300, 504 })
		words_are_whole(call_copy_last_last, bytes, 4);
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
