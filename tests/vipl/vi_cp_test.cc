/* SPDX-License-Identifier: BSD-2-Clause */
/* A hostile sender against the receiver of examples/vi_cp: its parser and its use of the file system. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <algorithm>
extern "C" {
#include "beneath.h"
#include "dest.h"
#include "proto.h"
}

namespace {

struct Dir : ::testing::Test {
	void SetUp() override
	{
		const char *dir = getenv("TMPDIR");
		path = std::string(dir != nullptr ? dir : P_tmpdir) + "/vi_cp_test.XXXXXX";
		ASSERT_NE(nullptr, mkdtemp(path.data()));
		ASSERT_EQ(0, mkdir((path + "/in").c_str(), 0700));
		ASSERT_EQ(0, mkdir((path + "/out").c_str(), 0700));
		root = open((path + "/in").c_str(), O_RDONLY | O_DIRECTORY);
		ASSERT_GE(root, 0);
	}
	void TearDown() override
	{
		close(root);
		ASSERT_EQ(0, system(("rm -rf " + path).c_str()));
	}
	bool exists(const std::string &name) const
	{
		struct stat st;
		return lstat((path + "/" + name).c_str(), &st) == 0;
	}
	int put(const std::string &name, const std::string &text)
	{
		struct dest_file file;
		int err = dest_file_create(root, name.c_str(), text.size(), &attrs, &file);
		if (!err)
			err = dest_file_write(&file, text.data(), text.size());
		return err ? err : dest_file_commit(&file, &attrs);
	}
	int resolve(const char *name, bool directory, int below)
	{
		int dir = dest_resolve(below, name, directory, left);
		if (dir >= 0)
			close(dir);
		return dir < 0 ? dir : 0;
	}
	struct dest_attrs attrs = [] {
		struct dest_attrs a = {};
		a.mode = 0640;
		a.mtime = { 1000, 5 };
		a.preserve = true;
		a.umask = 022;
		return a;
	}();
	char left[NAME_MAX + 1] = "";
	std::string path;
	int root = -1;
};

std::vector<char> bytes_of(const void *p, size_t n)
{
	return { static_cast<const char *>(p), static_cast<const char *>(p) + n };
}

/* The copy is exactly as long as the message, so that a sanitizer sees reads beyond it. */
int parse(const std::vector<char> &m, cp_message *out)
{
	std::unique_ptr<char[]> copy(new char[m.size()]);
	std::copy(m.begin(), m.end(), copy.get());
	return cp_parse(copy.get(), m.size(), out);
}

std::vector<std::vector<char>> good_messages()
{
	std::vector<std::vector<char>> all;
	cp_entry entry;
	for (auto type : { CP_HELLO, CP_SOURCE, CP_TOTAL, CP_DIR, CP_DIR_END, CP_FILE, CP_LINK })
		all.push_back(bytes_of(&entry, static_cast<size_t>(cp_entry_init(
						       &entry, type, "a/b c/d",
						       type == CP_LINK ? "../x" : nullptr))));
	cp_end end{};
	cp_header_init(&end.header, CP_END, sizeof(end));
	all.push_back(bytes_of(&end, sizeof(end)));
	cp_hole hole{};
	cp_header_init(&hole.header, CP_HOLE, sizeof(hole));
	hole.size = CP_HOLE_MAX;
	hole.buffer = CP_BUFFERS - 1;
	all.push_back(bytes_of(&hole, sizeof(hole)));
	cp_credit credit{};
	cp_header_init(&credit.header, CP_CREDIT, sizeof(credit));
	all.push_back(bytes_of(&credit, sizeof(credit)));
	cp_welcome welcome{};
	cp_header_init(&welcome.header, CP_WELCOME, offsetof(cp_welcome, name) + 4);
	welcome.buffers = CP_BUFFERS;
	welcome.buffer_bytes = CP_BUFFER_BYTES;
	welcome.name_length = 4;
	memcpy(welcome.name, "name", 4);
	all.push_back(bytes_of(&welcome, offsetof(cp_welcome, name) + 4));
	for (auto type : { CP_RESULT, CP_NOTE, CP_BYE }) {
		cp_result result;
		size_t length = cp_result_init(&result, type, CP_FAILED, "a\033b");
		all.push_back(bytes_of(&result, length));
	}
	cp_header header;
	cp_header_init(&header, CP_ABORT, sizeof(header));
	all.push_back(bytes_of(&header, sizeof(header)));
	return all;
}

} // namespace

TEST(Proto, GoodMessagesPass)
{
	auto out = std::make_unique<cp_message>();
	for (auto &m : good_messages())
		EXPECT_EQ(0, parse(m, out.get()));
}

TEST(Proto, EveryTruncationIsRefused)
{
	auto out = std::make_unique<cp_message>();
	for (auto &m : good_messages())
		for (size_t n = 0; n < m.size(); n++) {
			std::vector<char> cut(m.begin(), m.begin() + static_cast<ptrdiff_t>(n));
			EXPECT_EQ(-EPROTO, parse(cut, out.get())) << n;
			if (n >= 12) { /* the length field fits the cut */
				uint32_t length = static_cast<uint32_t>(n);
				memcpy(cut.data() + 8, &length, 4);
				EXPECT_EQ(-EPROTO, parse(cut, out.get())) << n;
			}
		}
}

TEST(Proto, RandomChangesNeverReadBeyond)
{
	std::mt19937 random(7);
	auto out = std::make_unique<cp_message>();
	auto good = good_messages();
	for (int i = 0; i < 200000; i++) {
		std::vector<char> m = good[random() % good.size()];
		for (unsigned n = 1 + random() % 4; n; n--)
			m[random() % m.size()] = static_cast<char>(
				random() % 3 ? random() : (random() & 1 ? 0xff : 0));
		if (parse(m, out.get()) == 0) {
			EXPECT_LT(out->type, CP_TYPES);
			EXPECT_NE(nullptr, memchr(out->path, 0, sizeof(out->path)));
		}
	}
}

TEST(Proto, TextsOfThePeerArePrintable)
{
	auto out = std::make_unique<cp_message>();
	for (auto &m : good_messages())
		if (parse(m, out.get()) == 0 && out->type == CP_RESULT) {
			EXPECT_STREQ("a?b", out->path);
		}
}

// A terminal treats control characters beyond ASCII, in UTF-8 and as single bytes, as commands, too.
TEST(Proto, TextsKeepTheirCharactersAndLoseControls)
{
	for (auto &[text, shown] : std::vector<std::pair<std::string, std::string>>{
		     { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		       "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		     { "a\xc2\x9b"
		       "31m",
		       "a??31m" },
		     { "a\x9b"
		       "31m",
		       "a?31m" },
		     { "\xc2\xa0", "\xc2\xa0" },
		     { "\xe2\x82", "??" },
		     { "\xc1\x81\xff", "???" },
	     }) {
		std::string copy = text;
		cp_make_printable(copy.data());
		EXPECT_EQ(shown, copy);
	}
}

TEST(Proto, HolesAreBounded)
{
	auto out = std::make_unique<cp_message>();
	cp_hole hole{};
	cp_header_init(&hole.header, CP_HOLE, sizeof(hole));
	for (uint64_t size : { uint64_t{ 0 }, uint64_t{ CP_HOLE_MAX } + 1, UINT64_MAX }) {
		hole.size = size;
		EXPECT_EQ(-EPROTO, parse(bytes_of(&hole, sizeof(hole)), out.get())) << size;
	}
	hole.size = 1;
	EXPECT_EQ(0, parse(bytes_of(&hole, sizeof(hole)), out.get()));
	hole.buffer = CP_BUFFERS;
	EXPECT_EQ(-EPROTO, parse(bytes_of(&hole, sizeof(hole)), out.get()));
}

TEST(Proto, Paths)
{
	for (auto path : { "a", "a/b", ".hidden", "...", "a/..b", "a b/c" })
		EXPECT_TRUE(cp_path_safe(path)) << path;
	for (auto path : { "", "/", "/etc/passwd", "..", "../x", "a/..", "a/../b", "a//b", "a/",
			   ".", "./a", "a/./b" })
		EXPECT_FALSE(cp_path_safe(path)) << path;
	EXPECT_TRUE(cp_path_safe(std::string(255, 'x').c_str()));
	EXPECT_FALSE(cp_path_safe(std::string(256, 'x').c_str()));
}

TEST_F(Dir, EscapesAreRefused)
{
	ASSERT_EQ(0, symlink("../out", (path + "/in/door").c_str()));
	for (std::string name :
	     { "../out/x", "/tmp/x", "a/../../out/x", "door/x", "..", "", ".x.vi_cp.1" }) {
		EXPECT_LT(put(name, "evil"), 0) << name;
		EXPECT_LT(dest_dir(root, name.c_str(), &attrs), 0) << name;
		EXPECT_LT(dest_link(root, name.c_str(), "/", &attrs), 0) << name;
		EXPECT_LT(dest_dir_finish(root, name.c_str(), &attrs), 0) << name;
	}
	EXPECT_LT(dest_dir(root, "door", &attrs), 0) << "a link is no directory";
	EXPECT_LT(dest_open(root, "door"), 0);
	EXPECT_FALSE(exists("out/x"));
}

TEST_F(Dir, ALinkInTheWayIsReplacedNotFollowed)
{
	ASSERT_EQ(0, symlink("../out/target", (path + "/in/f").c_str()));
	EXPECT_EQ(0, put("f", "text"));
	EXPECT_FALSE(exists("out/target"));
	struct stat st;
	ASSERT_EQ(0, lstat((path + "/in/f").c_str(), &st));
	EXPECT_TRUE(S_ISREG(st.st_mode));
	EXPECT_EQ(4, st.st_size);
	EXPECT_EQ(0640u, st.st_mode & 07777);
	EXPECT_EQ(1000, st.st_mtim.tv_sec);
	EXPECT_EQ(5, st.st_mtim.tv_nsec);
}

TEST_F(Dir, NothingUnderTheNameBeforeTheEnd)
{
	struct dest_file file;
	ASSERT_EQ(0, put("f", "old"));
	ASSERT_EQ(0, dest_file_create(root, "f", 100, &attrs, &file));
	ASSERT_EQ(0, dest_file_write(&file, "new", 3));
	struct stat st;
	ASSERT_EQ(0, stat((path + "/in/f").c_str(), &st));
	EXPECT_EQ(3, st.st_size);
	std::string temporary = "in/" + std::string(file.temporary);
	EXPECT_EQ("in/.f.vi_cp." + std::to_string(getpid()), temporary);
	EXPECT_TRUE(exists(temporary));
	dest_file_discard(&file);
	EXPECT_FALSE(exists(temporary));
	EXPECT_TRUE(exists("in/f"));
}

TEST_F(Dir, ImpossibleSizesAreRefusedAtOnce)
{
	struct dest_file file;
	EXPECT_LT(dest_file_create(root, "f", UINT64_MAX, &attrs, &file), 0);
	EXPECT_LT(dest_file_create(root, "f", UINT64_C(1) << 62, &attrs, &file), 0);
	EXPECT_EQ(0u, dest_clean(root)) << "no temporary is left";
	EXPECT_FALSE(exists("in/f"));
}

TEST_F(Dir, ADestinationIsADirectoryOrANewName)
{
	ASSERT_EQ(0, mkdir((path + "/in/sub").c_str(), 0700));
	ASSERT_EQ(0, put("file", "x"));
	ASSERT_EQ(0, symlink("../out", (path + "/in/door").c_str()));
	struct {
		const char *name;
		bool directory;
		int rc;
		const char *left;
	} const cases[] = {
		{ "", false, 0, "" },
		{ "sub", false, 0, "" },
		{ "sub/", false, 0, "" },
		{ "new", false, 0, "new" },
		{ "sub/new", false, 0, "new" },
		{ "file", false, 0, "file" },
		{ "file", true, -ENOTDIR, "" },
		{ "no/new", false, -ENOENT, "" },
		{ "../out", false, -EPERM, "" },
		{ "/tmp", false, -EPERM, "" },
		{ "door/x", false, -ENOTDIR, "" },
		{ "door", true, -ENOTDIR, "" },
	};
	for (auto &c : cases) {
		EXPECT_EQ(c.rc, resolve(c.name, c.directory, root)) << c.name;
		if (c.rc == 0) {
			EXPECT_STREQ(c.left, left) << c.name;
		}
	}
	EXPECT_FALSE(exists("in/new"));
	EXPECT_EQ(0, resolve("made/", false, root));
	EXPECT_TRUE(exists("in/made"));
	EXPECT_EQ(0, resolve((path + "/in/door").c_str(), true, -1)) << "anywhere, links count";
	EXPECT_STREQ("", left);
}

TEST_F(Dir, HolesStayHoles)
{
	struct dest_file file;
	struct stat st;
	ASSERT_EQ(0, dest_file_create(root, "f", 0, &attrs, &file));
	EXPECT_EQ(0, dest_file_hole(&file, 8 << 20));
	EXPECT_EQ(0, dest_file_write(&file, "x", 1));
	EXPECT_EQ(0, dest_file_hole(&file, 8 << 20));
	EXPECT_EQ(-EFBIG, dest_file_hole(&file, INT64_MAX));
	ASSERT_EQ(0, dest_file_commit(&file, &attrs));
	EXPECT_EQ(0, dest_sync(root));
	ASSERT_EQ(0, stat((path + "/in/f").c_str(), &st));
	EXPECT_EQ((16 << 20) + 1, st.st_size);
	EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

TEST_F(Dir, WhatIsThereCanBeLeftAlone)
{
	ASSERT_EQ(0, put("f", "old"));
	attrs.no_clobber = true;
	EXPECT_EQ(-EEXIST, put("f", "new"));
	EXPECT_EQ(-EEXIST, dest_link(root, "f", "x", &attrs));
	/* Also if it comes while the copy is under way. */
	struct dest_file file;
	ASSERT_EQ(0, dest_file_create(root, "g", 1, &attrs, &file));
	attrs.no_clobber = false;
	ASSERT_EQ(0, put("h", "old"));
	ASSERT_EQ(0, rename((path + "/in/h").c_str(), (path + "/in/g").c_str()));
	attrs.no_clobber = true;
	EXPECT_EQ(-EEXIST, dest_file_commit(&file, &attrs));
	EXPECT_EQ(0u, dest_clean(root)) << "no temporary is left";
}

TEST_F(Dir, ModesFollowTheUmaskUnlessKept)
{
	struct stat st;
	attrs.preserve = false;
	attrs.mode = 0666;
	ASSERT_EQ(0, put("f", "x"));
	ASSERT_EQ(0, stat((path + "/in/f").c_str(), &st));
	EXPECT_EQ(0644u, st.st_mode & 07777);
	EXPECT_NE(1000, st.st_mtim.tv_sec);
	ASSERT_EQ(0, chmod((path + "/in/f").c_str(), 0600));
	ASSERT_EQ(0, put("f", "y"));
	ASSERT_EQ(0, stat((path + "/in/f").c_str(), &st));
	EXPECT_EQ(0600u, st.st_mode & 07777) << "a file keeps the mode of the one it replaces";
}

/* Can paths be opened beneath a directory by one call? */
bool has_openat2()
{
	return syscall(SYS_openat2, -1, nullptr, nullptr, 0) < 0 && errno != ENOSYS &&
	       errno != EPERM;
}

TEST_F(Dir, SourcesStayBelowTheServedDirectory)
{
	ASSERT_EQ(0, put("f", "x"));
	ASSERT_EQ(0, symlink("f", (path + "/in/near").c_str()));
	ASSERT_EQ(0, symlink("../out", (path + "/in/far").c_str()));
	ASSERT_EQ(0, symlink("/", (path + "/in/root").c_str()));
	for (std::string name : { "f", "near", "./f", "" }) {
		if (name == "near" && !has_openat2())
			continue; /* without that call links are refused */
		int fd = beneath_open(root, name.c_str(), O_RDONLY, 1);
		EXPECT_GE(fd, 0) << name;
		close(fd);
	}
	for (auto name : { "far", "root", "root/etc", "far/x", "..", "../in/f", "/etc/passwd" })
		EXPECT_LT(beneath_open(root, name, O_RDONLY, 1), 0) << name;
	EXPECT_LT(beneath_open(root, "near", O_RDONLY, 0), 0);
}

TEST_F(Dir, LongNames)
{
	EXPECT_EQ(0, put(std::string(255, 'n'), "x"));
	EXPECT_LT(put(std::string(256, 'n'), "x"), 0);
}

TEST_F(Dir, OnlyTemporariesOfTheDeadAreCleaned)
{
	pid_t dead = fork();
	if (dead == 0)
		_exit(0);
	ASSERT_EQ(dead, waitpid(dead, nullptr, 0));
	std::string of_dead = "in/sub/.f.vi_cp." + std::to_string(dead),
		    of_living = "in/.f.vi_cp.1";
	ASSERT_EQ(0, mkdir((path + "/in/sub").c_str(), 0700));
	for (auto &name :
	     { of_dead, of_living, std::string("in/.vi_cp.5"), std::string("in/f.vi_cp.5"),
	       std::string("in/.f.vi_cp.5x"), std::string("in/.f.vi_cp.") })
		close(open((path + "/" + name).c_str(), O_CREAT | O_WRONLY, 0600));
	ASSERT_EQ(0, symlink("x", (path + "/in/.l.vi_cp." + std::to_string(dead)).c_str()));
	EXPECT_EQ(2u, dest_clean(root));
	EXPECT_FALSE(exists(of_dead));
	EXPECT_TRUE(exists(of_living));
	EXPECT_TRUE(exists("in/f.vi_cp.5"));
	EXPECT_TRUE(exists("in/.f.vi_cp.5x"));
}
