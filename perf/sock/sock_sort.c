/* SPDX-License-Identifier: BSD-2-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sb.h"
#include "sr.h"

#ifndef VIADUCT_VERSION
#define VIADUCT_VERSION "of the source"
#endif

static const char usage[] =
	"usage: sock_sort --serve ADDRESS [--reducers N]\n"
	"       sock_sort --connect ADDRESS:PORT,... [--mappers N] [--records N] [--seed N]\n\n"
	"Sorts records of 100 bytes, by POSIX calls alone.  The mappers, each a process, make the records\n"
	"and send each to the reducer that has its range of keys; the reducers, each a process, sort what\n"
	"came and answer with its number and a sum.  The server says the port of each reducer on a line of\n"
	"its own, and serves until it is ended.  The client prints a JSON object.\n\n"
	"      --reducers N       so many reducers, at most 32 (2)\n"
	"      --mappers N        so many mappers, at most 32 (2)\n"
	"  -n, --records N        of all mappers (10000000)\n"
	"      --seed N           of the records (1)\n"
	"  -h, --help             print this and end\n"
	"  -V, --version          print the version and end\n\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { OPT_SERVE = 256, OPT_CONNECT, OPT_REDUCERS, OPT_MAPPERS, OPT_SEED };

static const struct option longs[] = {
	{ "serve", required_argument, NULL, OPT_SERVE },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	{ "reducers", required_argument, NULL, OPT_REDUCERS },
	{ "mappers", required_argument, NULL, OPT_MAPPERS },
	{ "records", required_argument, NULL, 'n' },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static void take(struct sr_options *options, int c)
{
	switch (c) {
	case OPT_SERVE:
		options->serve = optarg;
		break;
	case OPT_CONNECT:
		options->connect = optarg;
		break;
	case OPT_REDUCERS:
		options->reducers = (int)sb_number("--reducers", optarg, SR_MAX_PROCESSES);
		break;
	case OPT_MAPPERS:
		options->mappers = (int)sb_number("--mappers", optarg, SR_MAX_PROCESSES);
		break;
	case 'n':
		options->records = sb_number("--records", optarg, UINT64_C(1) << 40);
		break;
	case OPT_SEED:
		options->seed = sb_number("--seed", optarg, UINT64_MAX);
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		puts("sock_sort (Viaduct) " VIADUCT_VERSION);
		exit(0);
	default:
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sr_options options = { .reducers = 2, .mappers = 2, .records = 10000000, .seed = 1 };
	int c;

	while ((c = getopt_long(argc, argv, "n:hV", longs, NULL)) != -1)
		take(&options, c);
	if (optind < argc)
		sb_wrong("argument", argv[optind]);
	if (!options.serve == !options.connect)
		sb_wrong(options.serve ? "--serve" : "--connect",
			 options.serve ? "with --connect" : "");
	return options.serve ? sr_serve(options.serve, options.reducers) : sr_map(&options);
}
