// SPDX-License-Identifier: BSD-2-Clause
// Drawings, character by character; and none is wider or longer than it says.
#include <gtest/gtest.h>

#include <sstream>

#include "topo.h"

namespace {

std::string draw(const struct rt_topo *t, const uint8_t *up = nullptr,
		 const char *const *names = nullptr, unsigned here = RT_HOSTS_MAX)
{
	int length = rt_draw(t, up, names, here, nullptr, 0);
	std::string text((size_t)length + 1, '#');

	EXPECT_GT(length, 0);
	EXPECT_EQ(rt_draw(t, up, names, here, &text[0], text.size()), length);
	EXPECT_EQ(text.back(), '\0');
	text.pop_back();
	EXPECT_EQ(text.find('\0'), std::string::npos);
	EXPECT_EQ(text.find('#'), std::string::npos);
	return text;
}

TEST(Draw, Pairs)
{
	EXPECT_EQ(draw(Topo("ring", 1)), "[0]\n");
	EXPECT_EQ(draw(Topo("ring", 2)), "[0]-----[1]\n");
}

TEST(Draw, RingsOfTwoRows)
{
	EXPECT_EQ(draw(Topo("ring", 3)), "+--[0]-----[1]-----[2]\n"
					 "|                   |\n"
					 "+-------------------+\n");
	EXPECT_EQ(draw(Topo("ring", 5)), "+--[0]-----[1]-----[2]\n"
					 "|                   |\n"
					 "+----------[4]-----[3]\n");
}

TEST(Draw, NamesThisHostAndDownLinks)
{
	const char *names[] = { "ann", "ben", nullptr, "dora" };
	Topo t("ring", 4);
	Live live(4);

	live.cut({ 1, 2 });
	live.cut({ 0, 1 });
	EXPECT_EQ(draw(t, live, names, 1), "+--[ann]------<ben>\n"
					   "x                x\n"
					   "+--[dora]------[2]\n"
					   "<> this host\n"
					   "x  a link that is down\n");
}

TEST(Draw, Meshes)
{
	Topo t("mesh:3x2", 6);
	Live live(6);

	live.cut({ 0, 1 });
	live.cut({ 5, 2 });
	EXPECT_EQ(draw(t, live), "[0]--x--[1]-----[2]\n"
				 " |       |       x\n"
				 "[3]-----[4]-----[5]\n"
				 "x  a link that is down\n");
}

TEST(Draw, Tori)
{
	Topo t("torus:3x3", 9);
	Live live(9);

	live.cut({ 3, 1 });
	live.cut({ 7, 4 });
	EXPECT_EQ(draw(t, live), "    |       x       |\n"
				 "---[0]-----[1]-----[2]---\n"
				 "    |       |       |\n"
				 "x--[3]-----[4]-----[5]--x\n"
				 "    |       |       |\n"
				 "---[6]-----[7]-----[8]---\n"
				 "    |       x       |\n"
				 "x  a link that is down\n"
				 "Lines that leave the picture come in at the opposite edge.\n");
}

TEST(Draw, GraphsAreLists)
{
	Topo t("graph:0-1,0-1,1-2", 3);
	Live live(3);

	live.cut({ 1, 3 });
	EXPECT_EQ(draw(t, live, nullptr, 0), "<0> to1 1, to1.1 1\n"
					     "[1] to0 0, to0.1 0, to2 2 x\n"
					     "[2] to1 1 x\n"
					     "<> this host\n"
					     "x  a link that is down\n");
}

size_t count(const std::string &text, const std::string &what)
{
	size_t n = 0;

	for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
		n++;
	return n;
}

// Each host appears once, each link that is down has its mark, and nothing is wider than a terminal.
TEST(Draw, EveryHostEveryDownLinkInWidth)
{
	std::vector<Spec> specs = small_specs();

	for (unsigned n : { 31u, 32u, 64u, 100u, 256u })
		specs.insert(specs.end(), { { "ring", n }, { "chain", n } });
	specs.insert(specs.end(), { { "mesh:16x16", 256 }, { "torus:16x2", 32 } });
	for (const Spec &spec : specs) {
		Topo t(spec);
		std::vector<Link> links = links_of(t);
		Live live(spec.hosts);
		std::string text, line;

		if (!links.empty())
			live.cut(links[links.size() / 2].b);
		text = draw(t, live);
		for (unsigned h = 0; h < spec.hosts; h++)
			EXPECT_EQ(count(text, "[" + std::to_string(h) + "]"), 1u)
				<< spec.text << text;
		EXPECT_EQ(count(text, "x  a link that is down\n"), links.empty() ? 0 : 1) << text;
		std::istringstream lines(text);
		for (unsigned i = 0; std::getline(lines, line); i++) {
			EXPECT_LE(line.size(), 100u) << spec.text << "\n" << line;
			EXPECT_NE(line.back(), ' ');
		}
	}
}

TEST(Draw, WideNamesGiveWayToNumbers)
{
	std::string name(40, 'n');
	std::vector<const char *> names(9, name.c_str());

	EXPECT_EQ(draw(Topo("mesh:3x3", 9), nullptr, names.data()), draw(Topo("mesh:3x3", 9)));
}

TEST(Draw, AShortBufferIsRespected)
{
	Topo t("ring", 9);
	std::string full = draw(t);

	for (size_t size = 0; size <= full.size(); size++) {
		std::string text(full.size() + 2, '#');

		ASSERT_EQ(rt_draw(t, nullptr, nullptr, RT_HOSTS_MAX, &text[0], size),
			  (int)full.size());
		if (size > 0) {
			ASSERT_EQ(text.substr(0, size - 1), full.substr(0, size - 1));
			ASSERT_EQ(text[size - 1], '\0');
		}
		ASSERT_EQ(text[size], '#');
	}
}

} // namespace
