// SPDX-License-Identifier: BSD-2-Clause
/* Tables of options: arguments that each kind takes and refuses, the error lines, --help. */
#include <gtest/gtest.h>

#include <getopt.h>

#include <cerrno>
#include <list>
#include <string>
#include <vector>

#include "comma.h"

extern "C" {
#include "u_option.h"
}

namespace {

enum { RED = 1, BLUE = 2 };

struct Into {
	bool loud = false, quiet = true;
	int small = -1;
	uint32_t color = 9;
	uint32_t even = 0;
	uint64_t bytes = 0, seed = 0;
	double seconds = 0;
	const char *name = nullptr;
	const char *files[3] = {};
	int both[2] = { -1, -1 }, one_or_both[2] = { -1, -1 };
	std::string called = "not";
	const char *format = nullptr, *optional = nullptr;
};

const char *const formats[] = { "sh", nullptr };
const char *const colors[] = { "red", "green", "blue", nullptr };

template <typename T>
u_option row(const char *name, char letter, const char *arg, const char *help, u_option_kind kind,
	     T Into::*member)
{
	u_option o = {};
	Into into;

	o.name = name;
	o.letter = letter;
	o.arg = arg;
	o.help = help;
	o.kind = kind;
	o.offset = (size_t)((char *)&(into.*member) - (char *)&into);
	o.bytes = sizeof(into.*member);
	return o;
}

u_option limits(u_option o, uint64_t min, uint64_t max)
{
	o.min = min;
	o.max = max;
	return o;
}

int call(void *into, const u_option *o, const char *arg)
{
	std::string text = arg ? arg : "nothing";

	if (text == "wrong")
		return -EINVAL;
	if (text == "told")
		return -ECANCELED;
	if (text == "full")
		return -ENOMEM;
	((Into *)into)->called = o->name + (" " + text);
	return 0;
}

std::vector<u_option> table()
{
	std::vector<u_option> v = {
		row("loud", 'l', nullptr, "say more", U_OPTION_FLAG, &Into::loud),
		row("not-quiet", 0, nullptr, "first line\nand a second", U_OPTION_FLAG,
		    &Into::quiet),
		limits(row("small", 's', "N", "a number", U_OPTION_NUMBER, &Into::small), 2, 12),
		row("any", 0, "N", "an int", U_OPTION_NUMBER, &Into::small),
		row("color", 0, "COLOR", "a word", U_OPTION_NUMBER, &Into::color),
		limits(row("blue", 0, nullptr, "as --color blue", U_OPTION_NUMBER, &Into::color), 2,
		       0),
		limits(row("even", 0, "N", "of red tools", U_OPTION_NUMBER, &Into::even), 4, 64),
		limits(row("bytes", 'b', "SIZE", "a size", U_OPTION_NUMBER, &Into::bytes), 65536,
		       UINT64_C(1) << 40),
		row("seed", 0, "N", "of 64 bits", U_OPTION_NUMBER, &Into::seed),
		row("seconds", 0, "SEC", "a time", U_OPTION_DECIMAL, &Into::seconds),
		limits(row("name", 0, "TEXT", "a text", U_OPTION_STRING, &Into::name), 1, 5),
		row("file", 0, "FILE", "files", U_OPTION_LIST, &Into::files),
		limits(row("both", 0, "A,B", "two", U_OPTION_PAIR, &Into::both), 0, 1023),
		limits(row("one-or-both", 0, "A[,B]", "two", U_OPTION_PAIR, &Into::one_or_both), 0,
		       7),
		u_option(),
		row("call", 'c', "WHAT", "a function", U_OPTION_FLAG, &Into::loud),
		row("maybe", 0, "[=WHAT]", "a function", U_OPTION_FLAG, &Into::loud),
		row("format", 0, "=sh", "as in --format=sh", U_OPTION_STRING, &Into::format),
		limits(row("optional", 0, "[=TEXT]", "a text", U_OPTION_STRING, &Into::optional), 1,
		       9),
		row("help", 'h', nullptr, "print this and end", U_OPTION_HELP, &Into::loud),
		row("version", 'V', nullptr, "print the version and end", U_OPTION_VERSION,
		    &Into::loud),
		u_option(),
	};

	v[1].off = true;
	v[4].words = colors;
	v[17].words = formats;
	v[6].step = 2;
	v[6].tools = RED;
	v[7].size = true;
	v[9].least = 0.5;
	v[9].most = 3600;
	v[14].help = "\nMore:";
	v[15].call = v[16].call = call;
	v[15].expected = "a thing";
	return v;
}

std::string line_said;

void keep(const char *line)
{
	line_said = line;
}

struct Done {
	int rc;
	Into into;
	std::string out, err;
	std::vector<std::string> operands;
};

Done parse(const std::vector<std::string> &args, int operands = 0, unsigned mask = RED,
	   void (*say)(const char *) = nullptr, bool starts_program = false)
{
	static std::list<std::vector<std::string>> kept; /* members point to arguments */
	std::vector<u_option> rows = table();
	u_option_tool tool = { "tool", "usage: tool\n\n", rows.data(), nullptr,	      "\nthe end\n",
			       mask,   operands,	  say,	       starts_program };
	std::vector<char *> argv = { (char *)"tool" };
	Done done = {};

	kept.push_back(args);
	for (std::string &arg : kept.back())
		argv.push_back(&arg[0]);
	argv.push_back(nullptr);
	::testing::internal::CaptureStdout();
	::testing::internal::CaptureStderr();
	done.rc = u_option_parse(&tool, (int)argv.size() - 1, argv.data(), &done.into);
	done.out = ::testing::internal::GetCapturedStdout();
	done.err = ::testing::internal::GetCapturedStderr();
	for (size_t i = (size_t)optind; argv[i]; i++)
		done.operands.push_back(argv[i]);
	return done;
}

Into good(const std::vector<std::string> &args)
{
	Done done = parse(args);

	EXPECT_EQ(done.rc, U_OPTION_GO_ON) << done.err;
	EXPECT_EQ(done.out + done.err, "");
	return done.into;
}

/* The error line, without the tool's name and the end of the line. */
std::string bad(const std::vector<std::string> &args, int rc = 2, unsigned mask = RED)
{
	Done done = parse(args, 0, mask);

	EXPECT_EQ(done.rc, rc);
	EXPECT_EQ(done.out, "");
	if (done.err.compare(0, 6, "tool: ") != 0 || done.err.find('\n') != done.err.size() - 1)
		return "not one line: " + done.err;
	return done.err.substr(6, done.err.size() - 7);
}

TEST(Option, Flags)
{
	EXPECT_FALSE(good({}).loud);
	EXPECT_TRUE(good({}).quiet);
	EXPECT_TRUE(good({ "--loud" }).loud);
	EXPECT_TRUE(good({ "-l" }).loud);
	EXPECT_FALSE(good({ "--not-quiet" }).quiet);
}

TEST(Option, NumbersWithinLimits)
{
	EXPECT_EQ(good({ "--small", "2" }).small, 2);
	EXPECT_EQ(good({ "--small=12" }).small, 12);
	EXPECT_EQ(good({ "-s7" }).small, 7);
	EXPECT_EQ(good({ "--any", "2147483647" }).small, INT32_MAX);
	EXPECT_EQ(good({ "--any", "0" }).small, 0);
	EXPECT_EQ(good({ "--seed", "18446744073709551615" }).seed, UINT64_MAX);
	for (const char *text :
	     { "", "1", "13", "2 ", " 2", "+2", "-2", "2k", "0x2", "two", "18446744073709551618" })
		EXPECT_EQ(bad({ "--small", text }),
			  "--small '" + std::string(text) +
				  "' is not a number from 2 to 12; see --help");
	EXPECT_EQ(bad({ "--any", "2147483648" }),
		  "--any '2147483648' is not a number from 0 to 2147483647; see --help");
	EXPECT_EQ(bad({ "--seed", "18446744073709551616" }),
		  "--seed '18446744073709551616' is not a number from 0; see --help");
}

TEST(Option, MultiplesAndSizes)
{
	EXPECT_EQ(good({ "--even", "6" }).even, 6u);
	EXPECT_EQ(bad({ "--even", "7" }),
		  "--even '7' is not a multiple of 2 from 4 to 64; see --help");
	EXPECT_EQ(good({ "--bytes", "65536" }).bytes, 65536u);
	EXPECT_EQ(good({ "--bytes", "64k" }).bytes, 65536u);
	EXPECT_EQ(good({ "--bytes", "3M" }).bytes, 3u << 20);
	EXPECT_EQ(good({ "-b", "2g" }).bytes, UINT64_C(2) << 30);
	EXPECT_EQ(good({ "-b", "1T" }).bytes, UINT64_C(1) << 40);
	for (const char *text :
	     { "", "k", "64", "2T", "64kk", "64x", "18446744073709551615k", "16777217T", "-1k" })
		EXPECT_EQ(bad({ "--bytes", text }),
			  "--bytes '" + std::string(text) +
				  "' is not a size from 64k to 1T; see --help");
}

TEST(Option, Words)
{
	EXPECT_EQ(good({ "--color", "red" }).color, 0u);
	EXPECT_EQ(good({ "--color", "blue" }).color, 2u);
	EXPECT_EQ(good({ "--blue" }).color, 2u);
	for (const char *text : { "", "re", "reds", "2" })
		EXPECT_EQ(bad({ "--color", text }),
			  "--color '" + std::string(text) +
				  "' is not red, green or blue; see --help");
}

TEST(Option, Decimals)
{
	EXPECT_EQ(good({ "--seconds", "0.5" }).seconds, 0.5);
	EXPECT_EQ(good({ "--seconds", "3600" }).seconds, 3600);
	for (const char *text : { "", "0.4", "3600.1", "nan", "inf", "1s", "-1", " 1" })
		EXPECT_EQ(bad({ "--seconds", text }),
			  "--seconds '" + std::string(text) +
				  "' is not a number from 0.5 to 3600; see --help");
}

TEST(Option, TextsAndLists)
{
	EXPECT_STREQ(good({ "--name", "12345" }).name, "12345");
	EXPECT_EQ(bad({ "--name", "" }),
		  "--name '' is not a text of 1 to 5 characters; see --help");
	EXPECT_EQ(bad({ "--name", "123456" }),
		  "--name '123456' is not a text of 1 to 5 characters; see --help");
	EXPECT_STREQ(good({ "--optional" }).optional, "");
	EXPECT_STREQ(good({ "--optional=x" }).optional, "x");
	EXPECT_EQ(bad({ "--optional=" }),
		  "--optional '' is not a text of 1 to 9 characters; see --help");
	Into into = good({ "--file", "a", "--file=b" });
	EXPECT_STREQ(into.files[0], "a");
	EXPECT_STREQ(into.files[1], "b");
	EXPECT_EQ(into.files[2], nullptr);
	EXPECT_EQ(bad({ "--file=a", "--file=b", "--file=c", "--file=d" }),
		  "--file is given too often");
}

TEST(Option, Pairs)
{
	Into into = good({ "--both", "3,1023", "--one-or-both", "5" });

	EXPECT_TRUE(into.both[0] == 3 && into.both[1] == 1023);
	EXPECT_TRUE(into.one_or_both[0] == 5 && into.one_or_both[1] == 5);
	EXPECT_EQ(good({ "--one-or-both", "0,7" }).one_or_both[1], 7);
	for (const char *text : { "", "0", ",", "0,", ",1", "0,1,2", "a,1", "0,-1", "0,1024",
				  "000000000000000000000000,1" })
		EXPECT_EQ(bad({ "--both", text }),
			  "--both '" + std::string(text) +
				  "' is not A,B with numbers from 0 to 1023; see --help");
	EXPECT_EQ(bad({ "--one-or-both", "8" }),
		  "--one-or-both '8' is not A[,B] with numbers from 0 to 7; see --help");
}

TEST(Option, Functions)
{
	EXPECT_EQ(good({ "--call", "x" }).called, "call x");
	EXPECT_EQ(good({ "-c", "x" }).called, "call x");
	EXPECT_EQ(good({ "--maybe" }).called, "maybe nothing");
	EXPECT_EQ(good({ "--maybe=x" }).called, "maybe x");
	EXPECT_STREQ(good({ "--format", "sh" }).format, "sh");
	EXPECT_EQ(bad({ "--format=csv" }), "--format 'csv' is not sh; see --help");
	EXPECT_EQ(bad({ "--call", "wrong" }), "--call 'wrong' is not a thing; see --help");
	EXPECT_EQ(bad({ "--maybe=wrong" }), "--maybe 'wrong' is not [=WHAT]; see --help");
	EXPECT_EQ(bad({ "--call", "full" }, 1), "--call: Cannot allocate memory");
	Done done = parse({ "--call", "told" });
	EXPECT_EQ(done.rc, 2);
	EXPECT_EQ(done.out + done.err, "");
}

TEST(Option, ErrorsOfTheCommandLine)
{
	EXPECT_EQ(bad({ "--small" }), "--small needs an argument; see --help");
	EXPECT_EQ(bad({ "-s" }), "--small needs an argument; see --help");
	EXPECT_EQ(bad({ "--loud=yes" }), "--loud takes no argument; see --help");
	EXPECT_EQ(bad({ "--sideways" }), "no option --sideways; see --help");
	EXPECT_EQ(bad({ "-z" }), "no option -z; see --help");
	EXPECT_EQ(bad({ "-lz" }), "no option -z; see --help");
	EXPECT_EQ(bad({ "stray" }), "no argument 'stray' is known; see --help");
	EXPECT_EQ(bad({ "--name", "a\nb\033[2Jc" }),
		  "--name 'a?b?[2Jc' is not a text of 1 to 5 characters; see --help");
	EXPECT_EQ(bad({ "--name", std::string(500, 'x') }),
		  "--name '" + std::string(80, 'x') +
			  "' is not a text of 1 to 5 characters; see --help");
}

TEST(Option, Abbreviations)
{
	EXPECT_EQ(good({ "--sma", "3" }).small, 3);
	EXPECT_EQ(good({ "--sma=3", "--see=4" }).seed, 4u);
	EXPECT_EQ(bad({ "--s", "3" }), "--s may be several options; see --help");
	EXPECT_EQ(bad({ "--lou=1" }), "--loud takes no argument; see --help");
}

TEST(Option, OperandsStandAnywhere)
{
	Done done = parse({ "a", "--small", "3", "b", "--", "-l" }, 3);

	EXPECT_EQ(done.rc, U_OPTION_GO_ON);
	EXPECT_EQ(done.into.small, 3);
	EXPECT_FALSE(done.into.loud);
	EXPECT_EQ(done.operands, (std::vector<std::string>{ "a", "b", "-l" }));
	done = parse({ "a", "b", "c" }, 2);
	EXPECT_EQ(done.rc, 2);
	EXPECT_EQ(done.err, "tool: no argument 'c' is known; see --help\n");
}

TEST(Option, OfAProgramThatStartsAnother)
{
	auto launch = [](const std::vector<std::string> &args) {
		return parse(args, 9, RED, nullptr, true);
	};
	Done done =
		launch({ "-small", "3", "-l", "-bytes=64k", "-s4", "echo", "-l", "--small", "9" });

	EXPECT_EQ(done.rc, U_OPTION_GO_ON) << done.err;
	EXPECT_EQ(done.into.small, 4);
	EXPECT_TRUE(done.into.loud);
	EXPECT_EQ(done.into.bytes, 65536u);
	EXPECT_EQ(done.operands, (std::vector<std::string>{ "echo", "-l", "--small", "9" }));
	EXPECT_EQ(launch({ "--", "-l" }).operands, (std::vector<std::string>{ "-l" }));
	EXPECT_EQ(launch({ "-none", "echo" }).err, "tool: no option -none; see --help\n");
	EXPECT_EQ(launch({ "-small" }).err, "tool: --small needs an argument; see --help\n");
	/* Nothing is shortened, nor read as a letter with something after it. */
	for (const char *word : { "-sma", "--sma", "-sx", "-lx", "-helping", "--byte=1" }) {
		done = launch({ word, "echo" });
		EXPECT_EQ(done.rc, 2) << word;
		EXPECT_EQ(done.err, std::string("tool: no option ") + word + "; see --help\n");
	}
	/* In other programs one dash begins letters. */
	EXPECT_EQ(parse({ "-small", "3" }, 9).rc, 2);
}

TEST(Option, ADecimalPointInEachLocale)
{
	Comma comma;
	double v = 0;

	if (!comma.there)
		GTEST_SKIP() << "no locale with a decimal comma";
	EXPECT_EQ(u_option_decimal("0.25", 0, 1, &v), 0);
	EXPECT_EQ(v, 0.25);
	EXPECT_NE(u_option_decimal("0,25", 0, 1, &v), 0);
}

TEST(Option, RowsOfOtherTools)
{
	EXPECT_EQ(bad({ "--even", "4" }, 2, BLUE), "no option --even; see --help");
	EXPECT_EQ(parse({ "--help" }, 0, BLUE).out.find("--even"), std::string::npos);
}

TEST(Option, ErrorLinesGoToTheTool)
{
	Done done = parse({ "--small", "x" }, 0, RED, keep);

	EXPECT_EQ(done.rc, 2);
	EXPECT_EQ(done.err, "");
	EXPECT_EQ(line_said, "--small 'x' is not a number from 2 to 12; see --help");
}

TEST(Option, HelpAndVersion)
{
	for (const char *option : { "--help", "-h" }) {
		Done done = parse({ option, "--small", "x" });

		EXPECT_EQ(done.rc, 0);
		EXPECT_EQ(done.out, "usage: tool\n"
				    "\n"
				    "  -l, --loud               say more\n"
				    "      --not-quiet          first line\n"
				    "                           and a second\n"
				    "  -s, --small N            a number\n"
				    "      --any N              an int\n"
				    "      --color COLOR        a word\n"
				    "      --blue               as --color blue\n"
				    "      --even N             of red tools\n"
				    "  -b, --bytes SIZE         a size\n"
				    "      --seed N             of 64 bits\n"
				    "      --seconds SEC        a time\n"
				    "      --name TEXT          a text\n"
				    "      --file FILE          files\n"
				    "      --both A,B           two\n"
				    "      --one-or-both A[,B]  two\n"
				    "\n"
				    "More:\n"
				    "  -c, --call WHAT          a function\n"
				    "      --maybe[=WHAT]       a function\n"
				    "      --format=sh          as in --format=sh\n"
				    "      --optional[=TEXT]    a text\n"
				    "  -h, --help               print this and end\n"
				    "  -V, --version            print the version and end\n"
				    "\n"
				    "the end\n");
	}
	for (const char *option : { "--version", "-V" }) {
		Done done = parse({ option });

		EXPECT_EQ(done.rc, 0);
		EXPECT_EQ(done.out.compare(0, 15, "tool (Viaduct) "), 0) << done.out;
	}
	EXPECT_EQ(parse({ "--small", "x", "--help" }).rc, 2);
}

} // namespace
