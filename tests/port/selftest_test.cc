/* SPDX-License-Identifier: BSD-2-Clause */
/* The self-test of a port: green on ports that keep port.h, red in the right clause on those that do not. */
#include <gtest/gtest.h>
#include <json-c/json.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "broken.h"
#include "rig.h"

extern "C" {
#include "pst.h"
}

typedef std::set<std::string> Clauses;

static const char *const kClauses[] = { "reach",     "word",	"order",  "bytes", "loads",
					"atomics",   "flush",	"slices", "freed", "ring-order",
					"rings",     "bits",	"clear",  "mask",  "pads",
					"pad-order", "hostile", "view",	  "link" };

static Clauses in_state(const struct pst_report &r, enum pst_state state)
{
	Clauses ids;

	for (unsigned int i = 0; i < r.clauses; i++) {
		if (r.clause[i].state == state)
			ids.insert(r.clause[i].id);
	}
	return ids;
}

/* Judges end 0 of the rig, with a thread at end 1 that helps. */
static void judge(Rig &rig, struct pst_report *r, int64_t lost_ns = 5 * kSecond)
{
	struct pst_cfg cfg = {};
	struct pst_cfg other;

	cfg.port = rig.agent[0];
	cfg.seconds = 0.2;
	cfg.lost_ns = lost_ns;
	cfg.gone_ns = kPatience;
	other = cfg;
	other.port = rig.agent[1];
	std::thread helper([&] { pst_help(&other); });
	EXPECT_EQ(pst_judge(&cfg, r), 0);
	helper.join();
	for (unsigned int i = 0; i < r->clauses; i++) {
		if (r->clause[i].state == PST_BROKEN)
			pst_text_verdict(stdout, &r->clause[i]);
	}
}

static std::string named_kind(const testing::TestParamInfo<const char *> &i)
{
	Variant v = { "pair", i.param, false };

	return v.name();
}

class Kept : public testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Kinds, Kept,
			 testing::Values("emu", "emu+strict", "emu+fault", "emu+model",
					 "emu+strict+model"),
			 named_kind);

TEST_P(Kept, EachClauseThatCanBeTested)
{
	Rig rig({ "pair", GetParam(), false });
	struct pst_report r;

	judge(rig, &r);
	EXPECT_EQ(in_state(r, PST_BROKEN), Clauses());
	EXPECT_EQ(in_state(r, PST_NOT_TESTABLE), Clauses({ "loads", "atomics", "hostile" }));
	EXPECT_EQ(r.broken, 0u);
	ASSERT_EQ(r.clauses, sizeof(kClauses) / sizeof(kClauses[0]));
	for (unsigned int i = 0; i < r.clauses; i++)
		EXPECT_STREQ(r.clause[i].id, kClauses[i]);
	EXPECT_GT(r.measures, 8u);
}

/* What other links are like: rings that nobody made are allowed, so nothing is broken. */
TEST(Selftest, SpuriousRingsBreakNothing)
{
	Rig rig({ "pair", "emu+fault", false }, Rig::Limits(), "spurious_db=0.2");
	struct pst_report r;

	judge(rig, &r);
	EXPECT_EQ(in_state(r, PST_BROKEN), Clauses());
}

TEST(Selftest, OneDoorbellBitLeavesSomeUntested)
{
	Rig rig({ "pair", "emu", false }, { 1, 8, 1 << 20 });
	struct pst_report r;

	judge(rig, &r);
	EXPECT_EQ(in_state(r, PST_BROKEN), Clauses());
	EXPECT_EQ(in_state(r, PST_NOT_TESTABLE),
		  Clauses({ "loads", "atomics", "hostile", "clear", "mask" }));
}

/* As little room as in the smallest windows with which links are made: some slices are made shorter. */
TEST(Selftest, SmallWindowsBreakNothing)
{
	Rig rig({ "pair", "emu", false }, { 16, 8, 160 << 10 });
	struct pst_report r;

	judge(rig, &r);
	EXPECT_EQ(in_state(r, PST_BROKEN), Clauses());
	EXPECT_EQ(in_state(r, PST_NOT_TESTABLE), Clauses({ "loads", "atomics", "hostile" }));
}

struct Case {
	const char *name;
	Flaw flaw;
	const char *kind;
	Clauses broken;
	Clauses allowed; /* what may follow */
};

static std::ostream &operator<<(std::ostream &os, const Case &c)
{
	return os << c.name;
}

static const Case cases[] = {
	{ "FenceDoesNothing",
	  Flaw::FenceDoesNothing,
	  "emu+strict",
	  { "order" },
	  { "ring-order", "pad-order" } },
	{ "RingBeforeStore", Flaw::RingBeforeStore, "emu", { "ring-order" }, {} },
	{ "RingLost", Flaw::RingLost, "emu", { "rings" }, { "bits" } },
	{ "LowestBitOnly", Flaw::LowestBitOnly, "emu", { "bits" }, {} },
	{ "ClearsAllBits", Flaw::ClearsAllBits, "emu", { "clear" }, {} },
	{ "MaskSwallows", Flaw::MaskSwallows, "emu", { "mask" }, {} },
	{ "FlushReturnsEarly", Flaw::FlushReturnsEarly, "emu+strict", { "flush" }, {} },
	{ "WordTorn", Flaw::WordTorn, "emu", { "word" }, {} },
	{ "SliceHalf", Flaw::SliceHalf, "emu", { "slices" }, {} },
	{ "PadWriteLost", Flaw::PadWriteLost, "emu", { "pads" }, {} },
	{ "LinkUntold", Flaw::LinkUntold, "emu", { "link" }, {} },
	{ "OneLinkOnly", Flaw::OneLinkOnly, "emu", { "link" }, {} },
	{ "FreedUsedAgain", Flaw::FreedUsedAgain, "emu", { "freed" }, {} },
};

class BrokenPort : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Flaws, BrokenPort, testing::ValuesIn(cases),
			 [](const testing::TestParamInfo<Case> &i) { return i.param.name; });

TEST_P(BrokenPort, IsFoundInItsClauseAndNoOther)
{
	const Case &c = GetParam();
	Rig rig({ "pair", c.kind, false });
	struct port *inner[] = { rig.agent[0], rig.agent[1] };
	struct pst_report r;
	Clauses broken;

	for (int end = 0; end < 2; end++)
		rig.agent[end] = rig.user[end] = broken_wrap(inner[end], c.flaw, inner[1 - end]);
	/* On these ports what was told has come: a short time finds what is lost, and nothing else. */
	judge(rig, &r, kSecond / 2);
	broken = in_state(r, PST_BROKEN);
	EXPECT_EQ(r.broken, broken.size());
	for (const std::string &id : c.broken)
		EXPECT_EQ(broken.count(id), 1u) << id << " was not found";
	for (const std::string &id : broken)
		EXPECT_TRUE(c.broken.count(id) != 0 || c.allowed.count(id) != 0) << id;
}

/* The wrapper by itself breaks nothing. */
TEST(Selftest, AWrapperWithoutAFlawBreaksNothing)
{
	Rig rig({ "pair", "emu+strict", false });
	struct port *inner[] = { rig.agent[0], rig.agent[1] };
	struct pst_report r;

	for (int end = 0; end < 2; end++)
		rig.agent[end] = rig.user[end] =
			broken_wrap(inner[end], Flaw::None, inner[1 - end]);
	judge(rig, &r);
	EXPECT_EQ(in_state(r, PST_BROKEN), Clauses());
}

/* A port without scratchpads has no way to begin, which is a verdict, too. */
TEST(Selftest, TooFewScratchpadsAreAVerdict)
{
	Rig rig({ "pair", "emu", false }, { 16, 2, 1 << 20 });
	struct pst_report r;

	judge(rig, &r);
	EXPECT_EQ(in_state(r, PST_BROKEN), Clauses({ "reach" }));
	EXPECT_EQ(r.broken, 1u);
}

TEST(Selftest, JsonHasTheReport)
{
	static struct pst_report r;
	struct pst_place place = {};
	char *text = nullptr;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	struct json_object *o;
	struct json_object *v;

	r.clauses = 1;
	r.clause[0].id = "word";
	r.clause[0].rule = "a rule";
	r.clause[0].needs = "all";
	r.clause[0].state = PST_BROKEN;
	r.clause[0].way[1].wrong = 7;
	r.broken = 1;
	r.limits.reads_back = PORT_READS_BACK_UNKNOWN;
	snprintf(place.device, sizeof(place.device), "emu:x");
	EXPECT_EQ(pst_json(f, &r, &place), 0);
	fclose(f);
	o = json_tokener_parse(text);
	ASSERT_NE(o, nullptr) << text;
	ASSERT_TRUE(json_object_object_get_ex(o, "schema", &v));
	EXPECT_STREQ(json_object_get_string(v), "viaduct.selftest");
	ASSERT_TRUE(json_object_object_get_ex(o, "state", &v));
	EXPECT_STREQ(json_object_get_string(v), "broken");
	ASSERT_TRUE(json_object_object_get_ex(o, "port", &v));
	ASSERT_TRUE(json_object_object_get_ex(v, "reads_back", &v));
	EXPECT_TRUE(json_object_is_type(v, json_type_null));
	ASSERT_TRUE(json_object_object_get_ex(o, "clauses", &v));
	v = json_object_array_get_idx(v, 0);
	ASSERT_TRUE(json_object_object_get_ex(v, "from_peer", &v));
	ASSERT_TRUE(json_object_object_get_ex(v, "wrong", &v));
	EXPECT_EQ(json_object_get_int(v), 7);
	json_object_put(o);
	free(text);
}
