/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osb.h"

#ifndef VIADUCT_VERSION
#define VIADUCT_VERSION "of the source"
#endif

#define MAX_SIZE (1ul << 30)

static _Noreturn void refuse(const struct osb_program *program, const char *option,
			     const char *text)
{
	fprintf(stderr, "%s: %s '%s' is not understood; see --help\n", program->name, option, text);
	exit(2);
}

static void help(const struct osb_program *program)
{
	int i;

	printf("Usage: oshrun -np N %s [OPTION]...\n%s\n\nOptions:\n", program->name,
	       program->about);
	if (program->sizes)
		printf("  -m, --sizes LIST    bytes, as 8,4K or 1..1M for powers of two (%s)\n",
		       program->sizes);
	printf("      --only FIGURE   measure only this one of the figures below\n"
	       "  -i, --batches N     time so many batches, of which the median counts (51)\n"
	       "      --batch-us US   a batch has as many operations as take so long (100)\n"
	       "  -j, --json          print a JSON object a line for each figure, as soon as it is known\n"
	       "  -h, --help          print this and end\n"
	       "  -V, --version       print the version and end\n\nFigures:");
	for (i = 0; i < program->figure_count; i++)
		printf(" %s", program->figures[i].name);
	printf("\n\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

/* Reads a number of bytes at *text, and moves that after it; 0 if there is none. */
static size_t take_size(const char **text)
{
	unsigned long value;
	char *end;

	if (**text < '0' || **text > '9')
		return 0;
	errno = 0;
	value = strtoul(*text, &end, 10);
	if (errno || value > MAX_SIZE)
		return 0;
	if (*end == 'K' || *end == 'k')
		value <<= 10, end++;
	else if (*end == 'M' || *end == 'm')
		value <<= 20, end++;
	*text = end;
	return value > MAX_SIZE ? 0 : value;
}

static int add_sizes(struct osb_options *options, size_t first, size_t last, size_t unit)
{
	size_t size;

	if (!first || last < first)
		return 0;
	for (size = first; size <= last; size *= 2) {
		if (size % unit) /* a range from 1 begins at the least possible size */
			continue;
		if (options->size_count == OSB_MAX_SIZES)
			return 0;
		options->sizes[options->size_count++] = size;
	}
	return 1;
}

static int parse_sizes(struct osb_options *options, const char *text, size_t unit)
{
	options->size_count = 0;
	for (;;) {
		size_t first = take_size(&text), last = first;

		if (!strncmp(text, "..", 2)) {
			text += 2;
			last = take_size(&text);
		}
		if (!add_sizes(options, first, last, unit))
			return 0;
		if (!*text)
			return options->size_count > 0;
		if (*text++ != ',')
			return 0;
	}
}

static double number(const struct osb_program *program, const char *option, const char *text,
		     double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 1) || value > most)
		refuse(program, option, text);
	return value;
}

static void choose(struct osb_options *options, const struct osb_program *program, const char *name)
{
	int i;

	for (i = 0; i < program->figure_count; i++)
		if (!strcmp(name, program->figures[i].name))
			options->only = name;
	if (!options->only)
		refuse(program, "--only", name);
}

static void take(struct osb_options *options, const struct osb_program *program, int c)
{
	switch (c) {
	case 'm':
		if (!program->sizes || !parse_sizes(options, optarg, program->unit))
			refuse(program, "--sizes", optarg);
		break;
	case 'o':
		choose(options, program, optarg);
		break;
	case 'i':
		options->batches = (long)number(program, "--batches", optarg, 1e6);
		break;
	case 'u':
		options->batch_us = number(program, "--batch-us", optarg, 1e7);
		break;
	case 'j':
		options->json = 1;
		break;
	case 'h':
		help(program);
		exit(0);
	case 'V':
		printf("%s (Viaduct) %s\n", program->name, VIADUCT_VERSION);
		exit(0);
	default:
		exit(2);
	}
}

void osb_options_parse(struct osb_options *options, const struct osb_program *program, int argc,
		       char **argv)
{
	static const struct option table[] = {
		{ "sizes", required_argument, NULL, 'm' },
		{ "only", required_argument, NULL, 'o' },
		{ "batches", required_argument, NULL, 'i' },
		{ "batch-us", required_argument, NULL, 'u' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	memset(options, 0, sizeof(*options));
	options->batches = 51;
	options->batch_us = 100;
	if (program->sizes)
		parse_sizes(options, program->sizes, program->unit);
	while ((c = getopt_long(argc, argv, "m:i:jhV", table, NULL)) != -1)
		take(options, program, c);
	if (optind < argc)
		refuse(program, "argument", argv[optind]);
}
