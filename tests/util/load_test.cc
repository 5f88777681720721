/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel counts of processors and threads. */
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
#include "u_load.h"
}

namespace {

namespace fs = std::filesystem;

/* A folder for the test, which takes it away. */
struct Folder {
	Folder()
	{
		char name[] = "/tmp/u-load-XXXXXX";

		path = mkdtemp(name);
	}
	~Folder() { fs::remove_all(path); }
	std::string write(const std::string &name, const std::string &text) const
	{
		fs::path at = fs::path(path) / name;

		fs::create_directories(at.parent_path());
		std::ofstream(at) << text;
		return at;
	}
	std::string path;
};

using Load = std::unique_ptr<u_load>;

Load read(const std::string &path, int rc = 0)
{
	Load out(new u_load());

	EXPECT_EQ(u_load_read(path.c_str(), out.get()), rc);
	return out;
}

} // namespace

TEST(Load, BetweenTwoReadings)
{
	Folder folder;
	std::string first = folder.write("first", "cpu  9 9 9 9 9 9 9 9 9 9\n"
						  "cpu0 100 0 50 1000 50 0 0 0 7 7\n"
						  "cpu1 0 0 0 500 0 0 0 0 0 0\n"
						  "cpu3 10 0 0 100 0 0 0 0 0 0\n"
						  "intr 1 2 3\ncpu5 1 1 1 1 1\n");
	std::string second = folder.write("second", "cpu  9 9 9 9 9 9 9 9 9 9\n"
						    "cpu0 110 5 60 1060 55 2 3 5 9 9\n"
						    "cpu1 0 0 0 600 0 0 0 0 0 0\n"
						    "cpu2 0 0 0 600 0 0 0 0 0 0\n"
						    "cpu3 5 0 0 205 0 0 0 0 0 0\n");
	Load before = read(first), after = read(second);
	std::unique_ptr<uint16_t[]> out(new uint16_t[U_CPUSET_END]);

	u_load_between(before.get(), after.get(), out.get());
	EXPECT_EQ(out[0], 350); /* 35 of 100 ticks: neither idle nor waiting for a disk */
	EXPECT_EQ(out[1], 0);
	EXPECT_EQ(out[2], 1000) << "it came online";
	EXPECT_EQ(out[3], 1000) << "a counter went back";
	EXPECT_EQ(out[4], 1000) << "there is none";
	EXPECT_EQ(out[5], 1000) << "a line of another kind came before";
	u_load_between(after.get(), after.get(), out.get());
	EXPECT_EQ(out[0], 1000) << "no time has passed";
}

/* Kernels before 2.6.33 and emulators leave fields out. */
TEST(Load, ShortAndStrangeLines)
{
	Folder folder;
	Load load = read(folder.write(
		"stat",
		"cpu0 1 2 3 4\ncpu1 1 2 3\ncpux 1 2 3 4\ncpu-1 1 2 3 4\ncpu9999 1 2 3 4\n"));

	EXPECT_EQ(load->all[0], 10u);
	EXPECT_EQ(load->used[0], 6u);
	EXPECT_EQ(load->all[1], 0u);
	read(folder.write("empty", ""), -ENODATA);
	read(folder.write("cut", "cpu  1 2 3 4\n"), -ENODATA);
	read(folder.path + "/none", -ENOENT);
}

TEST(Load, OfThisMachine)
{
	Load load = read(U_LOAD_FILE);
	int cpu = 0;

	while (cpu < U_CPUSET_END && load->all[cpu] == 0)
		cpu++;
	ASSERT_LT(cpu, U_CPUSET_END);
	EXPECT_LE(load->used[cpu], load->all[cpu]);
}

TEST(Load, OfAThread)
{
	Folder folder;
	u_load_thread t = {};

	folder.write("7/stat",
		     "7 (a) b) 1 2) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0 1 0 4711 99 99\n");
	EXPECT_EQ(u_load_read_thread(folder.path.c_str(), 7, &t), 0);
	EXPECT_EQ(t.used, 42u);
	EXPECT_EQ(t.started, 4711u);
	folder.write("8/stat", "8 (cut) S 1 2 3\n");
	EXPECT_EQ(u_load_read_thread(folder.path.c_str(), 8, &t), -ESRCH);
	folder.write("9/stat", "");
	EXPECT_EQ(u_load_read_thread(folder.path.c_str(), 9, &t), -ESRCH);
	EXPECT_EQ(u_load_read_thread(folder.path.c_str(), 10, &t), -ESRCH);
	t = {};
	EXPECT_EQ(u_load_read_thread(U_LOAD_THREADS, static_cast<int>(syscall(SYS_gettid)), &t), 0);
	EXPECT_GT(t.started, 0u);
}
