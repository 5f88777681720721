/* SPDX-License-Identifier: BSD-2-Clause */
/* The model's arithmetic on times of the test's own, and the effect of a model on a port. */
#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "open_fds.h"
#include "rig.h"

extern "C" {
#include "port_model_time.h"
}

static const struct port_model_profile kPlain = { "plain", 1000000000, 128,  20,  1000,	     500,
						  100,	   700,	       3000, 900, 2000000000 };
static const struct model_time kTime = { &kPlain, 1 };
static const struct model_time kSlow = { &kPlain, 10 };

TEST(ModelTime, PacketsHaveHeaders)
{
	EXPECT_EQ(model_wire_bytes(&kPlain, 0), 0u);
	EXPECT_EQ(model_wire_bytes(&kPlain, 1), 21u);
	EXPECT_EQ(model_wire_bytes(&kPlain, 128), 148u);
	EXPECT_EQ(model_wire_bytes(&kPlain, 129), 169u);
	EXPECT_EQ(model_wire_bytes(&kPlain, 4096), 4096u + 32 * 20);
}

TEST(ModelTime, TimesAreThoseOfTheProfileTimesTheDilation)
{
	EXPECT_EQ(model_send_ns(&kTime, 128), 148);
	EXPECT_EQ(model_send_ns(&kSlow, 128), 1480);
	EXPECT_EQ(model_copy_ns(&kPlain, 1000000), 500000);
	EXPECT_EQ(model_lands_at(&kTime, 1000), 1500);
	EXPECT_EQ(model_lands_at(&kSlow, 1000), 6000);
	EXPECT_EQ(model_interrupts_at(&kSlow, 1000), 36000);
	EXPECT_EQ(model_accepted_at(&kTime, 5000), 5000 - 1160);
}

TEST(ModelTime, LongestTimesDoNotOverflow)
{
	struct model_time t = { port_model_profile_find("gen3x8"), PORT_MODEL_DILATION_MAX };

	EXPECT_GT(model_send_ns(&t, 4096), INT64_C(60000000));
	EXPECT_LT(model_send_ns(&t, 4096), INT64_C(70000000));
}

TEST(ModelLink, SendersQueueForIt)
{
	struct model_link link = {};

	EXPECT_EQ(model_reserve(&link, 100, 50), 150);
	EXPECT_EQ(model_reserve(&link, 110, 50), 200) << "behind the first";
	EXPECT_EQ(model_reserve(&link, 120, 10), 210);
	EXPECT_EQ(model_reserve(&link, 1000, 10), 1010) << "an idle link starts at once";
}

TEST(ModelLink, SendersOfManyThreadsShareIt)
{
	struct model_link link = {};
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([&] {
			for (int i = 0; i < 10000; i++)
				model_reserve(&link, 1, 7);
		});
	for (auto &t : threads)
		t.join();
	EXPECT_EQ(link.free_at, 1 + 4 * 10000 * 7);
}

TEST(ModelLink, GarbageInItDoesNotStopIt)
{
	struct model_link link = {};

	link.free_at = INT64_MAX;
	EXPECT_EQ(model_reserve(&link, 100, 50), 150);
	link.free_at = INT64_MIN;
	EXPECT_EQ(model_reserve(&link, 100, 50), 150);
}

TEST(ModelBusy, WorkInTurnIsNotPaidTwice)
{
	EXPECT_EQ(model_busy_until(1000, 1040, 100, 50), 1100) << "it woke up late";
	EXPECT_EQ(model_busy_until(1000, 1050, 100, 50), 1150) << "it did something else";
	EXPECT_EQ(model_busy_until(1000, 900, 100, 50), 1100) << "work that it still owes";
	EXPECT_EQ(model_busy_until(INT64_MAX, 900, 100, 50), 1000);
}

/* The GB/s that large stores have on a link of this profile. */
static double rate(const struct port_model_profile *p)
{
	return static_cast<double>(p->line_rate) * 1048576 /
	       static_cast<double>(model_wire_bytes(p, 1048576)) / 1e9;
}

TEST(ModelProfile, Gen3x8CarriesWhatItSays)
{
	const struct port_model_profile *p = port_model_profile_find("gen3x8");

	ASSERT_NE(p, nullptr);
	EXPECT_NEAR(rate(p), 6.4, 0.05);
	EXPECT_EQ(port_model_profile_find("gen3"), nullptr);
	EXPECT_EQ(port_model_profile_find(""), nullptr);
}

TEST(ModelProfile, PublishedAdaptersCarryWhatWasPublished)
{
	const struct {
		const char *name;
		double gb;
		uint32_t latency_ns;
	} published[] = { { "gen3x8", 6.4, 530 },	  { "pex8733", 3.5, 530 },
			  { "pex8749", 2.6, 530 },	  { "pxh810", 6.4, 540 },
			  { "cpu-ntb", 6.4, 290 },	  { "rcar-s4", 0.583 / 8, 530 },
			  { "rcar-s4-2q", 1.16 / 8, 530 } };
	char names[PORT_MODEL_NAMES_MAX];
	std::string all;

	for (const auto &want : published) {
		const struct port_model_profile *p = port_model_profile_find(want.name);

		ASSERT_NE(p, nullptr) << want.name;
		EXPECT_NEAR(rate(p), want.gb, want.gb / 1000) << want.name;
		EXPECT_EQ(p->latency_ns, want.latency_ns) << want.name;
		all += (all.empty() ? "" : ", ") + std::string(want.name);
	}
	EXPECT_EQ(all, port_model_profile_names(names));
}

TEST(ModelProfile, DifferOnlyByWhatWasPublished)
{
	const struct port_model_profile *base = port_model_profile_find("gen3x8");

	for (const char *name :
	     { "pex8733", "pex8749", "pxh810", "cpu-ntb", "rcar-s4", "rcar-s4-2q" }) {
		struct port_model_profile same = *port_model_profile_find(name);

		EXPECT_EQ(same.payload_bytes, base->payload_bytes) << name;
		EXPECT_EQ(same.packet_bytes, base->packet_bytes) << name;
		EXPECT_EQ(same.posted_bytes, base->posted_bytes) << name;
		EXPECT_EQ(same.register_write_ns, base->register_write_ns) << name;
		EXPECT_EQ(same.register_read_ns, base->register_read_ns) << name;
		EXPECT_EQ(same.interrupt_ns, base->interrupt_ns) << name;
		EXPECT_EQ(same.dma_setup_ns, base->dma_setup_ns) << name;
		EXPECT_EQ(same.copy_rate, base->copy_rate) << name;
	}
}

/* 4 bytes over a bridge inside of the processor: published is a round trip of less than 600 ns. */
TEST(ModelProfile, FourBytesCrossAProcessorsBridgeInLessThan300Ns)
{
	struct model_time t = { port_model_profile_find("cpu-ntb"), 1 };

	EXPECT_LT(model_lands_at(&t, model_send_ns(&t, 4)), 300);
}

TEST(ModelProfile, SlowLinksAllowLessDilation)
{
	const struct port_model_profile *slow = port_model_profile_find("rcar-s4");
	uint32_t most = port_model_dilation_max(slow);
	struct model_time t = { slow, most }, more = { slow, most + 1 };

	EXPECT_EQ(port_model_dilation_max(port_model_profile_find("gen3x8")),
		  PORT_MODEL_DILATION_MAX);
	EXPECT_LE(model_send_ns(&t, MODEL_PIECE), MODEL_PIECE_NS_MAX);
	EXPECT_GT(model_send_ns(&more, MODEL_PIECE), MODEL_PIECE_NS_MAX - more.dilation);
	EXPECT_EQ(port_model_check(("rcar-s4:" + std::to_string(most)).c_str()), 0);
	EXPECT_EQ(port_model_check(("rcar-s4:" + std::to_string(most + 1)).c_str()), -EINVAL);
}

TEST(ModelOptions, NameAProfileAndADilation)
{
	for (const char *good : { "", "gen3x8", "gen3x8:1", "gen3x8:100000", "rcar-s4-2q" })
		EXPECT_EQ(port_model_check(good), 0) << good;
	for (const char *bad :
	     { ":", ":7", "gen3x8:", "gen3x8:0", "gen3x8:-1", "gen3x8:100001", "gen3x8:1x",
	       "gen3x8:1:1", "gen4x8", " gen3x8", "gen3x8:99999999999999999999999999" })
		EXPECT_EQ(port_model_check(bad), -EINVAL) << bad;
}

TEST(ModelKind, IsCheckedWithItsOptions)
{
	for (const char *good : { "emu", "emu+model", "emu+model:", "emu+model:gen3x8:1000",
				  "emu+fault+model", "emu+strict+model:gen3x8" })
		EXPECT_EQ(port_kind_check(good), 0) << good;
	for (const char *bad : { "", "model", "emu+", "emu+model:gen3x8:x", "emu+strict:1", "emux",
				 "emu+model+", "emu+models" })
		EXPECT_EQ(port_kind_check(bad), -EINVAL) << bad;
}

TEST(ModelKind, TakesAnotherProfile)
{
	const struct {
		const char *kind, *profile, *made;
	} cases[] = { { "emu+model", "pex8733", "emu+model:pex8733" },
		      { "emu+model:", "pex8733", "emu+model:pex8733" },
		      { "emu+model:gen3x8", "pex8733", "emu+model:pex8733" },
		      { "emu+model:gen3x8:7", "pex8733", "emu+model:pex8733:7" },
		      { "emu+model:gen3x8:1000+fault", "rcar-s4", "emu+model:rcar-s4:1000+fault" },
		      { "emu+strict+fault+model:gen3x8:1000", "rcar-s4-2q",
			"emu+strict+fault+model:rcar-s4-2q:1000" } };
	char out[PORT_KIND_MAX];

	for (const auto &c : cases) {
		ASSERT_EQ(port_kind_profile(c.kind, c.profile, out), 0) << c.kind;
		EXPECT_STREQ(out, c.made);
	}
	strcpy(out, "as before");
	for (const char *bad : { "", "emu", "emu+strict", "model", "emu+models", "emu+model:gen4x8",
				 "emu+model:gen3x8:0", "emu+model:gen3x8:100000" })
		EXPECT_EQ(port_kind_profile(bad, "rcar-s4", out), -EINVAL) << bad;
	for (const char *bad : { "", "gen4x8", "pex8733:1", "pex8733+fault", " pex8733",
				 "a-profile-whose-name-is-longer-than-the-room-for-kinds" })
		EXPECT_EQ(port_kind_profile("emu+model", bad, out), -EINVAL) << bad;
	EXPECT_STREQ(out, "as before");
}

/* So slow that a test sees what is still under way. */
static const Variant kModel = { "pair", "emu+model:gen3x8:200", true };

TEST(Model, StoresLandInTheirOrder)
{
	Rig rig(kModel);
	Window w(rig, 1 << 16);
	std::vector<uint8_t> data(1 << 15, 1);

	for (uint32_t n = 1; n <= 20; n++) {
		memset(data.data(), static_cast<int>(n), data.size());
		w.store(4096, data.data(), data.size());
		u_out_store32(&w.out.out, w.out32(0), n);
		while (w.in32(0) != n)
			std::this_thread::yield();
		ASSERT_EQ(w.in_bytes()[4096], n);
		ASSERT_EQ(w.in_bytes()[4096 + data.size() - 1], n);
	}
}

TEST(Model, WordsOfALineLandAsStored)
{
	Rig rig(kModel);
	Window w(rig, 1 << 16);

	for (uint32_t round = 1; round <= 100; round++) {
		for (uint32_t i = 0; i < 24; i++) {
			u_out_store64(&w.out.out, w.out64(i * 8), round * 1000 + i);
			if (i == round % 24)
				w.fence();
		}
		w.land();
		for (uint32_t i = 0; i < 24; i++)
			ASSERT_EQ(w.in32(i * 8), round * 1000 + i);
	}
}

TEST(Model, DoorbellsComeBehindTheStoresBeforeThem)
{
	Rig rig(kModel);
	Window w(rig, 1 << 16);
	std::vector<uint8_t> data(1 << 15);

	for (uint32_t n = 1; n <= 20; n++) {
		memset(data.data(), static_cast<int>(n), data.size());
		w.store(4096, data.data(), data.size());
		port_peer_db_ring(rig.user[0], 1);
		while (port_db_read(rig.user[1]) == 0)
			std::this_thread::yield();
		ASSERT_EQ(w.in_bytes()[4096 + data.size() - 1], n);
		port_db_clear(rig.user[1], 1);
	}
}

TEST(Model, ScratchpadsComeBehindTheStoresBeforeThem)
{
	Variant agents = kModel;
	agents.client = false;
	Rig rig(agents);
	Window w(rig, 1 << 16);
	std::vector<uint8_t> data(1 << 14, 9);

	w.store(4096, data.data(), data.size());
	ASSERT_EQ(port_peer_spad_write(rig.user[0], 3, 77), 0);
	while (port_spad_read(rig.user[1], 3) != 77)
		std::this_thread::yield();
	EXPECT_EQ(w.in_bytes()[4096 + data.size() - 1], 9);
}

TEST(Model, UnmappedWindowsHaveGotAllThatWasStored)
{
	Rig rig(kModel);
	struct port_slice s;
	struct port_map in, out;
	std::vector<uint8_t> data(1 << 16, 5);
	int fd;

	ASSERT_EQ(port_slice_alloc(rig.agent[1], data.size(), &s), 0);
	ASSERT_EQ(port_peer_slice_open(rig.agent[0], s.id, data.size(), &fd), 0);
	ASSERT_EQ(port_map(rig.user[1], s.fd, data.size(), PORT_INBOUND, &in), 0);
	ASSERT_EQ(port_map(rig.user[0], fd, data.size(), PORT_OUTBOUND, &out), 0);
	u_out_copy(&out.out, out.base, data.data(), data.size());
	port_unmap(rig.user[0], &out);
	EXPECT_EQ(memcmp(in.base, data.data(), data.size()), 0);
	port_unmap(rig.user[1], &in);
	close(s.fd);
	close(fd);
}

TEST(Model, ViewsTellTheirProfileAndDilation)
{
	Rig rig({ "pair", "emu+model:gen3x8:7", true });
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS];
	unsigned int nfds;
	struct port *view = nullptr;
	int before;

	ASSERT_EQ(port_export_view(rig.agent[0], text, sizeof(text), fds, &nfds), 0);
	EXPECT_NE(std::string(text).find("| model profile=gen3x8 dilation=7"), std::string::npos);
	EXPECT_EQ(nfds, 2u);
	EXPECT_EQ(port_model_profile(rig.user[0]), port_model_profile_find("gen3x8"));
	EXPECT_EQ(port_model_dilation(rig.user[0]), 7u);
	EXPECT_STREQ(rig.user[0]->limits.kind, "emu+model");
	before = open_fds();
	for (const char *bad :
	     { " | model", " | model ", " | model profile=gen3x8",
	       " | model profile=gen3x8 dilation=0", " | model profile=x dilation=1",
	       " | model profile=gen3x8 dilation=1 x" }) {
		std::string edited = std::string(text).substr(0, std::string(text).find(" | "));

		edited += bad;
		EXPECT_EQ(port_attach(edited.c_str(), fds, nfds, rig.irq[0], &view), -EINVAL)
			<< edited;
		EXPECT_EQ(port_attach(edited.c_str(), fds, 0, rig.irq[0], &view), -EINVAL);
	}
	EXPECT_EQ(open_fds(), before);
}

TEST(Model, PortsWithoutOneChargeNothing)
{
	Rig rig({ "pair", "emu+strict", false });
	char a[8] = "one";
	char b[8] = "two";

	EXPECT_EQ(port_model_profile(rig.user[0]), nullptr);
	EXPECT_EQ(port_model_dilation(rig.user[0]), 1u);
	port_model_spend(rig.user[0], INT64_MAX);
	port_model_copy(rig.user[0], b, a, sizeof(a));
	EXPECT_STREQ(b, "one");
}
