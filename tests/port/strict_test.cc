/* SPDX-License-Identifier: BSD-2-Clause */
/* strict finds the errors that it is for: loads through outbound maps, stores through them, missing fences. */
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "rig.h"

class Strict : public testing::TestWithParam<Variant> {
protected:
	static Rig::Limits roomy() { return { 16, 8, 64 << 20 }; }
};

INSTANTIATE_TEST_SUITE_P(All, Strict,
			 testing::Values(Variant{ "self", "emu+strict", false },
					 Variant{ "pair", "emu+strict", false },
					 Variant{ "pair", "emu+strict+fault", false },
					 Variant{ "pair", "emu+fault+strict", false },
					 Variant{ "self", "emu+strict", true },
					 Variant{ "pair", "emu+strict+fault", true }),
			 [](const testing::TestParamInfo<Variant> &i) { return i.param.name(); });

TEST_P(Strict, OutboundMapsReadAsPoison)
{
	Rig rig(GetParam(), roomy());

	for (size_t len : { 4096, 200000, 70000 }) {
		Window w(rig, len);
		std::vector<uint8_t> data(len, 1);

		w.store(0, data.data(), len);
		w.fence();
		EXPECT_EQ(w.in_bytes()[len - 1], 1);
		for (size_t i = 0; i < len; i++)
			ASSERT_EQ(w.out_bytes()[i], PORT_STRICT_POISON);
	}
}

/* Does `f`, in a process of its own, die of the error? */
template <typename F> static bool dies(F f)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		f();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST_P(Strict, PlainStoresFault)
{
	Rig rig(GetParam(), roomy());
	Window w(rig, 8192);

	EXPECT_TRUE(dies([&] { __atomic_store_n(w.out32(0), 1, __ATOMIC_RELAXED); }));
	EXPECT_TRUE(dies([&] { __atomic_fetch_add(w.out32(8188), 1, __ATOMIC_RELAXED); }));
	EXPECT_FALSE(dies([&] { u_out_store32(&w.out.out, w.out32(8188), 1); }));
}

TEST_P(Strict, StoresAcrossTheEndFault)
{
	Rig rig(GetParam(), roomy());
	Window w(rig, 8192);
	char data[128] = {};

	EXPECT_TRUE(dies([&] { w.store(8192 - 64, data, 65); }));
}

/* Each seed: payload and flag without a fence between; is the flag seen without the payload? */
static int reorderings(const Variant &v, size_t payload_at, size_t flag_at, bool fenced, int seeds)
{
	int seen = 0;

	for (int seed = 0; seed < seeds; seed++) {
		Rig rig(v, Rig::Limits(), "", seed);
		Window w(rig, 8192);

		for (uint32_t n = 1; n <= 8; n++) {
			u_out_store32(&w.out.out, w.out32(payload_at), n);
			if (fenced)
				w.fence();
			u_out_store32(&w.out.out, w.out32(flag_at), n);
			if (w.in32(flag_at) == n && w.in32(payload_at) != n) {
				seen++;
				break;
			}
			w.fence();
			if (w.in32(flag_at) != n || w.in32(payload_at) != n)
				return -1;
		}
	}
	return seen;
}

TEST_P(Strict, MissingFencesAreCaught)
{
	EXPECT_GT(reorderings(GetParam(), 4096, 0, false, 20), 0);
	EXPECT_EQ(reorderings(GetParam(), 4096, 0, true, 20), 0);
	EXPECT_EQ(reorderings(GetParam(), 0, 60, true, 20), 0);
}

/* The order of arrival within one line, as seen by a reader of each word. */
TEST_P(Strict, LinesLandLateAndOutOfOrder)
{
	Rig rig(GetParam(), roomy());
	Window w(rig, 65536);
	int late = 0;
	int early = 0;
	int overtaken = 0;

	for (uint32_t round = 1; round <= 20; round++) {
		for (uint32_t i = 0; i < 32; i++)
			u_out_store32(&w.out.out, w.out32(i * 64), round);
		bool gap = false;
		for (uint32_t i = 0; i < 32; i++) {
			bool here = w.in32(i * 64) == round;
			early += here;
			late += !here;
			overtaken += here && gap;
			gap = gap || !here;
		}
		w.fence();
		for (uint32_t i = 0; i < 32; i++)
			ASSERT_EQ(w.in32(i * 64), round);
	}
	EXPECT_GT(early, 0);
	EXPECT_GT(late, early) << "most lines wait for the fence";
	EXPECT_GT(overtaken, 0);
}

TEST_P(Strict, JournalIsBounded)
{
	Rig rig(GetParam(), roomy());
	Window w(rig, 1 << 20);
	uint32_t landed = 0;

	for (uint32_t i = 0; i < 1 << 14; i++)
		u_out_store32(&w.out.out, w.out32(i * 64), 1);
	for (uint32_t i = 0; i < 1 << 14; i++)
		landed += w.in32(i * 64);
	EXPECT_GE(landed, (1u << 14) - 64);
	EXPECT_LT(landed, 1u << 14);
}

TEST_P(Strict, UnfencedStoresLandEventually)
{
	Rig rig(GetParam(), roomy());
	Window one(rig, 4096);
	Window two(rig, 4096);
	int rounds = 0;

	u_out_store32(&one.out.out, one.out32(0), 1);
	while (one.in32(0) != 1 && rounds++ < 1000) {
		u_out_store32(&two.out.out, two.out32(0), 2);
		two.fence();
	}
	EXPECT_EQ(one.in32(0), 1u);
}

TEST_P(Strict, UnmapLandsWhatWasStored)
{
	Rig rig(GetParam(), roomy());
	Window w(rig, 4096);
	struct port_map out;

	for (uint32_t n = 1; n < 20; n++) {
		ASSERT_EQ(port_map(rig.user[0], w.slice.fd, 4096, PORT_OUTBOUND, &out), 0);
		u_out_store32(&out.out, static_cast<uint32_t *>(out.base) + n, n);
		port_unmap(rig.user[0], &out);
		EXPECT_EQ(out.base, nullptr);
		port_unmap(rig.user[0], &out);
		EXPECT_EQ(w.in32(4 * n), n);
	}
}

/* A random program of stores ends as if each had been made at once. */
TEST_P(Strict, RandomStoresEndAsWritten)
{
	for (unsigned int seed = 0; seed < 10; seed++) {
		Rig rig(GetParam(), roomy(), "", seed);
		Window w(rig, 8192);
		std::mt19937 random(seed);
		std::vector<uint8_t> model(8192, 0);
		uint8_t data[300];

		for (int i = 0; i < 2000; i++) {
			size_t n = random() % sizeof(data);
			size_t off = random() % (8192 - n);

			for (size_t k = 0; k < n; k++)
				data[k] = model[off + k] = static_cast<uint8_t>(random());
			w.store(off, data, n);
			if (random() % 50 == 0)
				w.fence();
		}
		w.fence();
		ASSERT_EQ(memcmp(w.in.base, model.data(), 8192), 0) << seed;
	}
}

/* The same seed gives the same arrivals. */
TEST_P(Strict, SeedsReproduce)
{
	auto arrivals = [&](uint64_t seed) {
		Rig rig(GetParam(), roomy(), "", seed);
		Window w(rig, 8192);
		std::string seen;

		for (uint32_t i = 0; i < 100; i++) {
			u_out_store32(&w.out.out, w.out32(i * 64), 1);
			for (uint32_t k = 0; k <= i; k++)
				seen += w.in32(k * 64) ? '1' : '0';
		}
		return seen;
	};
	EXPECT_EQ(arrivals(5), arrivals(5));
	EXPECT_NE(arrivals(5), arrivals(6));
}
