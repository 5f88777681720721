/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of links: which ends a text names, and what is refused. */
#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>

#include <string>

extern "C" {
#include "ag_profile.h"
}

#define MODEL "emu+model:gen3x8:1000"

class Profiles : public ::testing::Test {
protected:
	struct rt_topo *topo = nullptr;
	char why[256] = "";

	void load(const char *spec, unsigned int hosts)
	{
		rt_topo_free(topo);
		topo = nullptr;
		ASSERT_EQ(rt_topo_parse(spec, hosts, &topo, why, sizeof(why)), 0) << why;
	}

	void SetUp() override { load("ring", 3); }
	void TearDown() override { rt_topo_free(topo); }

	int check(const char *text, const char *kind = MODEL)
	{
		return ag_profile_check(topo, kind, text, why, sizeof(why));
	}

	/* The kind of a port that has the text's profile. */
	std::string kind_of(const char *text, unsigned int host, unsigned int port)
	{
		struct rt_end end = { static_cast<uint16_t>(host), static_cast<uint8_t>(port) };
		char kind[PORT_KIND_MAX] = MODEL;

		EXPECT_EQ(check(text), 0) << text << ": " << why;
		EXPECT_EQ(ag_profile_apply(topo, text, end, kind), 0) << text;
		return kind;
	}
};

enum { SELF, LEFT, RIGHT };

TEST_F(Profiles, ALinkNamesBothEnds)
{
	const char *text = "0-1=pex8749,2-0=pex8733";

	EXPECT_EQ(kind_of(text, 0, RIGHT), "emu+model:pex8749:1000");
	EXPECT_EQ(kind_of(text, 1, LEFT), "emu+model:pex8749:1000");
	EXPECT_EQ(kind_of(text, 0, LEFT), "emu+model:pex8733:1000");
	EXPECT_EQ(kind_of(text, 2, RIGHT), "emu+model:pex8733:1000");
	EXPECT_EQ(kind_of(text, 1, RIGHT), MODEL) << "a link that no item names";
	EXPECT_EQ(kind_of(text, 2, LEFT), MODEL);
	EXPECT_EQ(kind_of("1-0=pex8749", 0, RIGHT), "emu+model:pex8749:1000") << "either order";
	for (unsigned int host = 0; host < 3; host++)
		EXPECT_EQ(kind_of(text, host, SELF), MODEL);
}

TEST_F(Profiles, APortNamesOneEnd)
{
	const char *text = "0.right=pxh810,1.right=cpu-ntb";

	EXPECT_EQ(kind_of(text, 0, RIGHT), "emu+model:pxh810:1000");
	EXPECT_EQ(kind_of(text, 1, LEFT), MODEL) << "the other end";
	EXPECT_EQ(kind_of(text, 1, RIGHT), "emu+model:cpu-ntb:1000");
	EXPECT_EQ(kind_of("0.right=pxh810,1.left=pex8733", 1, LEFT), "emu+model:pex8733:1000");
}

TEST_F(Profiles, NothingNamesNothing)
{
	EXPECT_EQ(kind_of("", 0, RIGHT), MODEL);
	EXPECT_EQ(kind_of(nullptr, 0, RIGHT), MODEL);
	EXPECT_EQ(check("", "emu"), 0) << "no profile asks for a model";
}

TEST_F(Profiles, ParallelLinksOfAGraph)
{
	load("graph:0-1,0-1,1-2", 3);
	EXPECT_EQ(kind_of("0-1=pex8733", 0, 1), "emu+model:pex8733:1000");
	EXPECT_EQ(kind_of("0-1=pex8733", 0, 2), "emu+model:pex8733:1000");
	EXPECT_EQ(kind_of("0-1=pex8733", 1, 3), MODEL);
	EXPECT_EQ(kind_of("0.to1.1=pex8733", 0, 1), MODEL);
	EXPECT_EQ(kind_of("0.to1.1=pex8733", 0, 2), "emu+model:pex8733:1000");
	EXPECT_EQ(kind_of("2.to1=pex8733", 2, 1), "emu+model:pex8733:1000");
}

TEST_F(Profiles, OtherTextsAreRefused)
{
	for (const char *bad : { "x",
				 "0",
				 "0-1",
				 "0-1=",
				 "=pex8733",
				 "0-=pex8733",
				 "-1=pex8733",
				 "0=pex8733",
				 "0.=pex8733",
				 ".left=pex8733",
				 "0-1=pex8733,",
				 ",0-1=pex8733",
				 "0-1=pex8733,,1-2=pex8733",
				 " 0-1=pex8733",
				 "0-1 =pex8733",
				 "0 -1=pex8733",
				 "00000-1=pex8733",
				 "99999-1=pex8733",
				 "+0-1=pex8733",
				 "0-1-2=pex8733",
				 "0.right.left.right=pex8733",
				 "0-1=a-profile-of-a-name-that-is-longer-than-any-kind" }) {
		EXPECT_EQ(check(bad), -EINVAL) << bad;
		EXPECT_NE(std::string(why).find("LINK=PROFILE expected, as in 0-1=pex8733"),
			  std::string::npos)
			<< bad << ": " << why;
	}
}

TEST_F(Profiles, RefusalsSayWhatIsWrong)
{
	const struct {
		const char *text, *kind, *why;
	} cases[] = {
		{ "0-1=pex", MODEL,
		  "0-1=pex: there is no such profile; use one of gen3x8, pex8733" },
		{ "0-1=pex8733:7", MODEL, "there is no such profile" },
		{ "0-3=pex8733", MODEL,
		  "hosts 0 and 3 of this fabric of 3 are not joined by a link" },
		{ "1-1=pex8733", MODEL, "hosts 1 and 1 of this fabric of 3 are not joined" },
		{ "0.up=pex8733", MODEL, "host 0 has no port up; it has left, right" },
		{ "0.self=pex8733", MODEL, "host 0 has no port self; it has left, right" },
		{ "3.left=pex8733", MODEL, "there is no host 3; use 0 to 2" },
		{ "0-1=pex8749,1.left=pex8733", MODEL,
		  "1.left=pex8733: port left of host 1 has a profile already" },
		{ "0.right=pex8749,0-1=pex8749", MODEL,
		  "port right of host 0 has a profile already" },
		{ "0-1=pex8733", "emu",
		  "ports of kind emu have no model; use a kind such as emu+model" },
		{ "0-1=rcar-s4", "emu+model:gen3x8:10000",
		  "more dilation than this slow link allows; use up to " },
	};

	for (const auto &c : cases) {
		EXPECT_EQ(check(c.text, c.kind), -EINVAL) << c.text;
		EXPECT_NE(std::string(why).find(c.why), std::string::npos) << c.text << ": " << why;
		EXPECT_EQ(std::string(why).find('\n'), std::string::npos) << c.text;
	}
}

TEST_F(Profiles, AHostAloneHasNoLinks)
{
	load("ring", 1);
	EXPECT_EQ(check("0-1=pex8733"), -EINVAL);
	EXPECT_EQ(check("0.left=pex8733"), -EINVAL);
	EXPECT_NE(std::string(why).find("host 0 has no port left; it has none"), std::string::npos)
		<< why;
}

TEST_F(Profiles, MessagesFitWhateverTheTextIs)
{
	std::string text = "0-1=" + std::string(40, 'x') + "," + std::string(100000, 'y');
	char small[8];

	EXPECT_EQ(check(text.c_str()), -EINVAL);
	EXPECT_LT(std::string(why).size(), 160u) << why;
	EXPECT_EQ(ag_profile_check(topo, MODEL, text.c_str(), small, sizeof(small)), -EINVAL);
	EXPECT_LT(strlen(small), sizeof(small));
}

TEST_F(Profiles, AnUncheckedTextChangesNothing)
{
	char kind[PORT_KIND_MAX] = MODEL;

	EXPECT_EQ(ag_profile_apply(topo, "0-1", { 0, RIGHT }, kind), -EINVAL);
	EXPECT_EQ(ag_profile_apply(topo, "0-1=pex", { 0, RIGHT }, kind), -EINVAL);
	EXPECT_STREQ(kind, MODEL);
}
