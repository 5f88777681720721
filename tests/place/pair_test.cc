/* SPDX-License-Identifier: BSD-2-Clause */
/* Service threads on the cores of the threads that they serve. */
#include "machines.h"

extern "C" {
#include "u_place_pair.h"
}

namespace {

struct Row {
	const char *machine, *rules, *allowed; /* "": all */
	unsigned int count;		       /* of service threads */
	const char *cpus;		       /* of each */
	const char *answer;
};

/* Asks for so many service threads. */
std::vector<u_place_ask> services(unsigned int count)
{
	std::vector<u_place_ask> asks;

	for (unsigned int i = 0; i < count; i++)
		asks.push_back({ U_PLACE_SERVICE, i, count, true });
	return asks;
}

std::string all(const std::vector<u_place_decision> &decisions)
{
	std::string out;

	for (const u_place_decision &d : decisions)
		out += (out.empty() ? "" : " ") + text(d.cpus);
	return out;
}

void check(const Row &row, unsigned int rank = 0, unsigned int ranks = 0)
{
	Topo topo = machine(row.machine);
	ASSERT_NE(topo, nullptr);
	Case c(topo.get(), row.rules, "0");
	char out[U_PLACE_TEXT];

	if (row.allowed[0] != '\0')
		c.c.allowed = cpus(row.allowed);
	c.c.rank = rank;
	c.c.ranks = ranks;
	std::vector<u_place_ask> asks = services(row.count);
	std::vector<u_place_decision> got = c.place(asks);
	bool one = u_place_one_core(&c.c, asks.data(), row.count, got.data(), out);

	EXPECT_EQ(all(got), row.cpus) << row.machine << " " << row.rules;
	EXPECT_STREQ(out, row.answer) << row.machine << " " << row.rules;
	EXPECT_EQ(one, std::string(row.answer) == "yes");
}

constexpr const char *kFour = "package:1 l3:1 core:4 pu:1";
constexpr const char *kSmt = "package:1 l3:1 core:4 pu:2";

} // namespace

TEST(PlacePair, OneCore)
{
	static const Row rows[] = {
		{ kFour, "application=0-3;service=same-core", "", 4, "0 1 2 3", "yes" },
		{ kFour, "application=1-2;service=same-core", "", 2, "1 2", "yes" },
		{ kFour, "application=0-1;service=same-core", "", 4, "0 1 0 1", "yes" },
		{ kFour, "application=2;service=same-core", "", 1, "2", "yes" },
		{ kFour, "application=2;service=same-core", "", 2, "2 2", "yes" },
		/* both processors of a core for both threads */
		{ kSmt, "application=0-7;service=same-core", "", 4, "0-1 2-3 4-5 6-7", "yes" },
		{ kSmt, "application=0,2;service=same-core", "", 2, "0-1 2-3", "yes" },
		{ kSmt, "application=0;service=same-core", "", 1, "1", "yes" },
		/* cores of several packages */
		{ "package:2 l3:1 core:2 pu:1", "application=0-3;service=same-core", "", 4,
		  "0 1 2 3", "yes" },
		{ kSmt, "application=0,2;service=same-core", "0,2-3", 2, "0 2-3", "yes" },
	};

	MACHINE(any, kFour);
	for (const Row &row : rows)
		check(row);
}

TEST(PlacePair, SeveralCores)
{
	static const Row rows[] = {
		{ kFour, "application=0-3;service=same-core", "", 3, "0,3 1 2",
		  "no: 3 service threads for 4 cores of the application; on processors 0,3 a thread has none on "
		  "its core" },
		{ kFour, "application=0-3;service=same-core", "", 1, "0-3",
		  "no: 1 service thread for 4 cores of the application; on processors 0-3 a thread has none on "
		  "its core" },
		{ kFour, "application=0;service=shared-cache", "", 1, "1-3",
		  "no: no service thread is placed by same-core" },
		{ kFour, "application=0;service=shared-cache", "", 3, "1 2 3",
		  "no: no service thread is placed by same-core" },
		{ kSmt, "application=0-3;service=0,2", "", 1, "0,2",
		  "no: no service thread is placed by same-core" },
		/* no rule makes connections follow their threads */
		{ kFour, "application=0-1;service=0-1", "", 2, "0 1",
		  "no: no service thread is placed by same-core" },
		{ kFour, "", "", 2, "", "no: no service thread is placed by same-core" },
		{ kFour, "application=0-1;service=same-core", "", 0, "",
		  "no: no service thread is placed by same-core" },
		/* one that may not use the application's core */
		{ kFour, "service=same-core", "1-3", 1, "1-3",
		  "no: no service thread is placed by same-core" },
	};

	MACHINE(any, kFour);
	for (const Row &row : rows)
		check(row);
}

/* Each process has threads of its own to serve: the shares are not those of all processes of the machine. */
TEST(PlacePair, ProcessesDoNotShare)
{
	const Row row = { kFour, "application=0-1;service=same-core", "", 2, "0 1", "yes" };

	MACHINE(any, kFour);
	for (unsigned int rank = 0; rank < 3; rank++)
		check(row, rank, 3);
}

TEST(PlacePair, OnlyServiceThreadsAreSharedOut)
{
	MACHINE(topo, kFour);
	Case c(topo.get(), "application=0-3;transfer=same-core", "0");
	u_place_decision d = c.one();

	EXPECT_EQ(text(d.cpus), "0-3");
	EXPECT_EQ(d.why, U_PLACE_LOOSE);
	Case s(topo.get(), "application=0-3;service=same-core", "0");
	EXPECT_EQ(
		s.line(U_PLACE_SERVICE),
		"processors 0-3; asked same-core, got same-core: as asked, for the threads that run there");
	d = s.one(U_PLACE_SERVICE);
	EXPECT_TRUE(u_place_met(&d));
}

TEST(PlacePair, UnknownMachineOrApplication)
{
	MACHINE(topo, kFour);
	Case nowhere(topo.get(), "service=same-core", ""), blind(nullptr, "service=same-core", "0");
	std::vector<u_place_ask> asks = services(1);
	std::vector<u_place_decision> d = nowhere.place(asks);
	char out[U_PLACE_TEXT];

	EXPECT_FALSE(u_place_one_core(&nowhere.c, asks.data(), 1, d.data(), out));
	EXPECT_STREQ(out, "no: the place of the application is not known");
	EXPECT_FALSE(u_place_one_core(&blind.c, asks.data(), 1, d.data(), out));
	EXPECT_STREQ(out, "no: nothing is known of this machine's cores");
}
