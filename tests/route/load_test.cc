// SPDX-License-Identifier: BSD-2-Clause
// Files of links, and the number of hosts that a text asks for.
#include <filesystem>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

extern "C" {
#include "rt_load.h"
}

namespace {

struct Lines {
	int rc;
	std::string spec, why;
};

Lines lines(const std::string &text, unsigned hosts = 0)
{
	static char spec[RT_SPEC_MAX];
	char why[200] = "";
	int rc = rt_lines_parse(text.data(), text.size(), hosts, spec, why, sizeof(why));

	return { rc, spec, why };
}

struct Loaded {
	int rc;
	unsigned hosts;
	std::string spec, why;
};

Loaded load(const std::string &text, unsigned given = 0, unsigned most = 64)
{
	struct rt_topo *t = nullptr;
	char why[256] = "";
	int rc = rt_load(text.c_str(), { given, 2, most }, &t, why, sizeof(why));
	Loaded got = { rc, 0, "", why };

	if (rc == 0) {
		got.hosts = rt_hosts(t);
		got.spec = rt_topo_spec(t);
		rt_topo_free(t);
	}
	return got;
}

/* A file that is removed at the end of the scope. */
class File {
public:
	explicit File(const std::string &text)
	{
		int fd = mkstemp(&path_[0]);

		EXPECT_GE(fd, 0);
		EXPECT_EQ(write(fd, text.data(), text.size()), (ssize_t)text.size());
		close(fd);
	}
	File(const File &) = delete;
	File &operator=(const File &) = delete;
	~File() { unlink(path_.c_str()); }
	std::string spec() const { return "file:" + path_; }

private:
	std::string path_ = std::filesystem::temp_directory_path() / "viaduct-links-XXXXXX";
};

TEST(Lines, LinksBlanksAndComments)
{
	Lines got = lines("# a triangle\n\n0-1\n  1-2\t# the far side\r\n2-0 \n#\n   \n0-1");

	ASSERT_EQ(got.rc, 0) << got.why;
	EXPECT_EQ(got.spec, "graph:0-1,1-2,2-0,0-1");
	EXPECT_EQ(lines("").spec, "graph:");
	EXPECT_EQ(lines("\n# nothing\n").spec, "graph:");
}

TEST(Lines, RefusedWithTheNumberOfTheLine)
{
	struct {
		std::string text;
		unsigned hosts;
		const char *why;
	} const cases[] = {
		{ "0-1\n1\n", 0, "line 2: \"1\" is not a link; write two host numbers, as in 0-1" },
		{ "0-1 1-2\n", 0, "line 1: \"0-1 1-2\" is not a link" },
		{ "0-1,1-2\n", 0, "line 1: \"0-1,1-2\" is not a link" },
		{ "0--1\n", 0, "line 1: \"0--1\" is not a link" },
		{ "a-b\n", 0, "line 1: \"a-b\" is not a link" },
		{ "0-12345\n", 0, "line 1: \"0-12345\" is not a link" },
		{ "\n\n3-3", 0, "line 3: link 3-3 joins a host to itself; leave it out" },
		{ "0-1\n\n1-4\n", 4, "line 3: no host 4 in a fabric of 4 hosts; use 0 to 3" },
		{ "0-1024\n", 0, "line 1: no host 1024 in a fabric of 1024 hosts" },
		{ "0-1\n0-1\n0-1\n0-1\n0-1\n0-1\n0-1\n0-1\n", 0,
		  "line 8: host 0 has more than 7 links; leave some out" },
		{ std::string("0-1\n0-\0002\n", 9), 0, "line 2: not a line of text" },
		{ "0-1\n" + std::string(100, '7') + "\n", 0, "line 2: not a line of text" },
		{ "0-1\n\x1b[2J\n", 0, "line 2: \"?[2J\" is not a link" },
	};

	for (auto &c : cases) {
		Lines got = lines(c.text, c.hosts);

		EXPECT_EQ(got.rc, -EINVAL) << c.why;
		EXPECT_EQ(got.why.rfind(c.why, 0), 0u) << got.why;
		EXPECT_EQ(got.why.find('\n'), std::string::npos);
	}
}

TEST(Lines, AMessageThatDoesNotFitIsCut)
{
	char spec[RT_SPEC_MAX], why[9] = "????????";

	for (size_t size = 1; size <= sizeof(why); size++) {
		EXPECT_EQ(rt_lines_parse("x", 1, 0, spec, why, size), -EINVAL);
		EXPECT_LT(strlen(why), size);
	}
}

TEST(Hosts, AsManyAsASpecAsksFor)
{
	EXPECT_EQ(rt_spec_hosts("mesh:4x3"), 12u);
	EXPECT_EQ(rt_spec_hosts("torus:1x9"), 9u);
	EXPECT_EQ(rt_spec_hosts("graph:0-1,7-1"), 8u);
	for (const char *open :
	     { "ring", "chain", "", "mesh", "mesh:", "mesh:4", "mesh:4x", "mesh:x3", "mesh:4x3x2",
	       "mesh:0x3", "torus:12345x1", "graph:", "graph:0-12345", "star" })
		EXPECT_EQ(rt_spec_hosts(open), 0u) << open;
}

TEST(Load, SpecsAndHosts)
{
	EXPECT_EQ(load("ring").hosts, 2u);
	EXPECT_EQ(load("ring", 5).hosts, 5u);
	EXPECT_EQ(load("torus:3x3").hosts, 9u);
	EXPECT_EQ(load("graph:2-0,0-1").spec, "graph:0-1,0-2");
	EXPECT_EQ(
		load("mesh:3x3", 4).why,
		"topology \"mesh:3x3\": that is 9 hosts, the fabric has 4; use a size such as mesh:2x2");
	EXPECT_EQ(load("mesh:9x9").why,
		  "topology \"mesh:9x9\": that is 81 hosts, a fabric has up to 64; use fewer");
	EXPECT_EQ(load("ring", 65).rc, -EINVAL);
}

TEST(Load, Files)
{
	File triangle("0-1\n1-2 # far\n2-0\n"), bad("0-1\n1-1\n"), two("0-1\n2-3\n"), empty("");
	std::string missing = "file:" + std::string("/nonexistent/links");

	EXPECT_EQ(load(triangle.spec()).spec, "graph:0-1,0-2,1-2");
	EXPECT_EQ(load(triangle.spec()).hosts, 3u);
	EXPECT_NE(load(triangle.spec(), 2).why.find("line 2: no host 2 in a fabric of 2 hosts"),
		  std::string::npos);
	EXPECT_NE(load(triangle.spec(), 4).why.find("no path from host 0 to host 3"),
		  std::string::npos);
	EXPECT_EQ(load(bad.spec()).rc, -EINVAL);
	EXPECT_NE(load(bad.spec()).why.find("line 2: link 1-1"), std::string::npos);
	EXPECT_NE(load(bad.spec()).why.find("file " + bad.spec().substr(5)), std::string::npos);
	EXPECT_NE(load(two.spec()).why.find("no path from host 0 to host 2"), std::string::npos);
	EXPECT_EQ(load(empty.spec(), 1).spec, "graph:");
	EXPECT_EQ(
		load(missing).why,
		"file /nonexistent/links cannot be read: No such file or directory; name a file of "
		"links A-B");
	EXPECT_NE(load("file:/").why.find("cannot be read: Is a directory"), std::string::npos);
	EXPECT_NE(load("file:").why.find("cannot be read"), std::string::npos);
}

TEST(Load, ALongFileIsRefused)
{
	File full("0-1\n" + std::string(RT_FILE_MAX - 4, '\n')),
		over("0-1\n" + std::string(RT_FILE_MAX - 3, '\n'));

	EXPECT_EQ(load(full.spec()).spec, "graph:0-1");
	EXPECT_NE(load(over.spec()).why.find("File too large"), std::string::npos);
}

TEST(Load, TheLargestGraphHasRoom)
{
	std::string text;

	for (unsigned h = 0; h < RT_HOSTS_MAX; h++) {
		for (unsigned k = 1; k <= 3; k++)
			text += std::to_string(h) + "-" + std::to_string((h + k) % RT_HOSTS_MAX) +
				"\n";
		if (h % 2 == 0)
			text += std::to_string(h) + "-" + std::to_string(h + 1) + "\n";
	}
	File file(text);

	EXPECT_EQ(load(file.spec(), 0, RT_HOSTS_MAX).hosts, RT_HOSTS_MAX);
}

} // namespace
