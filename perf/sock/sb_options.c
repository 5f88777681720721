/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sb.h"

#ifndef VIADUCT_VERSION
#define VIADUCT_VERSION "of the source"
#endif

static const char usage[] =
	"usage: sock_bench --serve PLACE\n"
	"       sock_bench --connect PLACE --test TEST [OPTION]...\n"
	"       sock_bench --test call [OPTION]...\n\n"
	"Measures stream sockets by POSIX calls alone.  A server carries out what one client asks of it\n"
	"and ends with it.  PLACE is ADDRESS:PORT, or unix:PATH; the server of an ADDRESS takes a free\n"
	"port and says which on its first line.  The client prints a JSON object a line for each figure.\n\n"
	"  -t, --test TEST        pingpong: half round trips by size; stream: bytes/s by size of the\n"
	"                         piece; connect: connections made, used once and closed, one after\n"
	"                         the other; epoll: half round trips with one busy of many connections\n"
	"                         in the server's epoll set; idle: processor time of both ends while\n"
	"                         nothing comes; memcached: requests/s to a memcached, for values by size;\n"
	"                         call: a read() of /dev/null, without a connection\n"
	"  -m, --sizes LIST       bytes, as 64,4K,1M (64)\n"
	"  -p, --poll             look again instead of sleeping, at both ends\n"
	"  -n, --connections N    of epoll, idle and memcached (1)\n"
	"  -i, --batches N        time so many batches, of which the median counts (41)\n"
	"      --batch-us US      a batch has as many operations as take so long (250)\n"
	"      --seconds SEC      of idle, while it counts; before, at most 2 (2)\n"
	"  -h, --help             print this and end\n"
	"  -V, --version          print the version and end\n\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static const char *const tests[] = { "pingpong", "stream",    "connect", "epoll",
				     "idle",	 "memcached", "call" };

/* Reads the bytes at *text, which is moved past them; 0 if there are none. */
static size_t take_size(const char **text)
{
	unsigned long value;
	char *end;

	if (**text < '0' || **text > '9')
		return 0;
	errno = 0;
	value = strtoul(*text, &end, 10);
	if (errno || value > SB_MAX_SIZE)
		return 0;
	if (*end == 'K')
		value <<= 10, end++;
	else if (*end == 'M')
		value <<= 20, end++;
	*text = end;
	return value > SB_MAX_SIZE ? 0 : value;
}

static void sizes(struct sb_options *options, const char *text)
{
	const char *whole = text;

	options->size_count = 0;
	do {
		size_t size = take_size(&text);

		if (!size || options->size_count == SB_MAX_SIZES || (*text && *text != ','))
			sb_wrong("--sizes", whole);
		options->sizes[options->size_count++] = size;
	} while (*text++);
}

static const char *test_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (strcmp(name, tests[i]) == 0)
			return tests[i];
	}
	sb_wrong("--test", name);
}

enum { OPT_BATCH_US = 256, OPT_SECONDS, OPT_SERVE, OPT_CONNECT };

static const struct option longs[] = {
	{ "serve", required_argument, NULL, OPT_SERVE },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	{ "test", required_argument, NULL, 't' },
	{ "sizes", required_argument, NULL, 'm' },
	{ "poll", no_argument, NULL, 'p' },
	{ "connections", required_argument, NULL, 'n' },
	{ "batches", required_argument, NULL, 'i' },
	{ "batch-us", required_argument, NULL, OPT_BATCH_US },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static void take_number(struct sb_options *options, int c)
{
	if (c == 'n')
		options->connections = (long)sb_number("--connections", optarg, SB_MAX_CONNECTIONS);
	else if (c == 'i')
		options->batches = (long)sb_number("--batches", optarg, 10000);
	else if (c == OPT_BATCH_US)
		options->batch_us = (long)sb_number("--batch-us", optarg, 10000000);
	else
		options->seconds = (long)sb_number("--seconds", optarg, 3600);
}

static void take(struct sb_options *options, int c)
{
	switch (c) {
	case OPT_SERVE:
		options->serve = optarg;
		break;
	case OPT_CONNECT:
		options->connect = optarg;
		break;
	case 't':
		options->test = test_named(optarg);
		break;
	case 'm':
		sizes(options, optarg);
		break;
	case 'p':
		options->polled = true;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		puts("sock_bench (Viaduct) " VIADUCT_VERSION);
		exit(0);
	case '?':
		exit(2);
	default:
		take_number(options, c);
	}
}

void sb_options_parse(struct sb_options *options, int argc, char **argv)
{
	int c;

	*options = (struct sb_options){ .sizes = { SB_SMALL },
					.size_count = 1,
					.batches = 41,
					.batch_us = 250,
					.connections = 1,
					.seconds = 2 };
	while ((c = getopt_long(argc, argv, "t:m:pn:i:hV", longs, NULL)) != -1)
		take(options, c);
	if (optind < argc)
		sb_wrong("argument", argv[optind]);
	if (options->serve && (options->connect || options->test))
		sb_wrong("--serve", "with --connect or --test");
	if (!options->serve && !options->test)
		sb_wrong("--test", "");
	if (!options->serve && !options->connect && strcmp(options->test, "call") != 0)
		sb_wrong("--connect", "");
}
