// SPDX-License-Identifier: BSD-2-Clause
// Messages of the agent that are handled while their VI is destroyed, or after that.
#include <atomic>
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>

#include "nvi_late.h"

namespace {

class Late : public ::testing::Test {
protected:
	void SetUp() override
	{
		nvi_loop_cfg cfg = {};

		cfg.slots = 16;
		cfg.payload_bytes = 1u << 14;
		cfg.level = VIP_SERVICE_RELIABLE_DELIVERY;
		cfg.seed = 1;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(nullptr, loop);
		late = nvi_late_open(loop);
		ASSERT_NE(nullptr, late);
	}

	void TearDown() override
	{
		nvi_late_close(late);
		nvi_loop_close(loop);
	}

	struct nvi_loop *loop = nullptr;
	struct nvi_late *late = nullptr;
};

TEST_F(Late, ASuspensionOfAConnectionThatIsOver)
{
	EXPECT_TRUE(nvi_late_stays_watched(late));
	EXPECT_EQ(0u, nvi_late_hot(late));
}

/* All VIs use the same memory, so that the thread finds one that is made or destroyed. */
TEST_F(Late, SuspensionsOfVIsThatGo)
{
	std::atomic<bool> stop{ false };
	std::thread control([&] {
		while (!stop)
			EXPECT_EQ(-ENOTCONN, nvi_late_suspend(late));
	});

	for (int round = 0; round < 20000; round++) {
		int err = nvi_late_replace(late);

		EXPECT_EQ(0, err);
		if (err != 0)
			break;
	}
	stop = true;
	control.join();
	EXPECT_EQ(0u, nvi_late_hot(late)) << "queues of VIs that are gone";
}

} // namespace
