/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts of devices, in folders that replace those of the kernel. */
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

extern "C" {
#include "u_affinity.h"
#include "u_irq.h"
}

namespace fs = std::filesystem;

namespace {

struct Irq : testing::Test {
	void SetUp() override
	{
		std::string name = (fs::temp_directory_path() / "irq-XXXXXX").string();

		ASSERT_NE(mkdtemp(name.data()), nullptr);
		folder = name;
	}
	void TearDown() override { fs::remove_all(folder); }
	void put(const fs::path &at, const std::string &text)
	{
		fs::create_directories((folder / at).parent_path());
		std::ofstream(folder / at) << text;
	}
	std::string get(const fs::path &at)
	{
		std::ifstream file(folder / at);

		return { std::istreambuf_iterator<char>(file), {} };
	}
	std::vector<int> found(int max = 8)
	{
		std::vector<int> irqs(8, -1);

		irqs.resize(static_cast<size_t>(u_irq_find(folder.c_str(), irqs.data(), max)));
		return irqs;
	}
	fs::path folder;
};

u_cpuset cpus(const char *list)
{
	u_cpuset set = {};

	EXPECT_EQ(u_cpuset_parse(list, &set), 0);
	return set;
}

} // namespace

TEST_F(Irq, OfMsiBeforeThatOfThePin)
{
	EXPECT_TRUE(found().empty());
	put("irq", "0\n");
	EXPECT_TRUE(found().empty()) << "0 is none";
	put("irq", "11\n");
	EXPECT_EQ(found(), (std::vector<int>{ 11 }));
	EXPECT_TRUE(found(0).empty());
	for (const char *name : { "103", "27", "9", "x", "12y", "-4", "0" })
		put(fs::path("msi_irqs") / name, "msix\n");
	EXPECT_EQ(found(), (std::vector<int>{ 9, 27, 103 }));
	EXPECT_EQ(found(2).size(), 2u);
}

TEST_F(Irq, IsMovedByItsList)
{
	u_cpuset set = cpus("0,2-5");

	put("27/smp_affinity_list", "0-63\n");
	EXPECT_EQ(u_irq_move(folder.c_str(), 27, &set), 0);
	EXPECT_EQ(get("27/smp_affinity_list").substr(0, 6), "0,2-5\n");
	EXPECT_EQ(u_irq_move(folder.c_str(), 28, &set), -ENOENT);
	/* A list that the short text of a log would cut. */
	u_cpuset odd = {};
	for (int cpu = 1; cpu < 400; cpu += 2)
		u_cpuset_add(&odd, cpu);
	EXPECT_EQ(u_irq_move(folder.c_str(), 27, &odd), 0);
	std::string list = get("27/smp_affinity_list");
	EXPECT_EQ(list.substr(list.size() - 9), ",397,399\n");
}

TEST_F(Irq, AFailureSaysWhatToWrite)
{
	u_place_decision d = {};
	char text[U_PLACE_TEXT] = "";

	d.cpus = cpus("1");
	put("27/smp_affinity_list", "0\n");
	EXPECT_EQ(u_affinity_move_irq(folder.c_str(), 27, &d, text), 0);
	EXPECT_STREQ(text, "");
	EXPECT_EQ(get("27/smp_affinity_list"), "1\n");
	EXPECT_EQ(u_affinity_move_irq(folder.c_str(), 5, &d, text), -ENOENT);
	EXPECT_EQ(std::string(text),
		  "it was not moved (No such file or directory); as root: echo 1 > " +
			  folder.string() + "/5/smp_affinity_list");
}
