/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_cp - copies files and trees from host to host by RDMA write.
 *
 * main.c	the command line
 * client.c	the program with SRC and DEST
 * server.c	the program with --serve
 * sender.c	reads, hashes, writes into the receiver's window
 * receiver.c	hashes, writes to disk, answers
 * walk.c	the files and trees to copy
 * dest.c	the receiver's directory: safe paths, temporaries, final names
 * proto.h	the protocol of the two
 * session.c	the part that sender and receiver have in common
 * link.c	VIPL: connection, messages, window
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "proto.h"
#include "server.h"

enum {
	OPT_SERVE = 256,
	OPT_ONCE,
	OPT_READ_ONLY,
	OPT_WRITE_ONLY,
	OPT_ANYWHERE,
	OPT_SPAWN,
	OPT_SERVICE,
	OPT_WAIT,
	OPT_IDLE,
	OPT_PROGRESS,
	OPT_STATS,
	OPT_HELP,
	OPT_VERSION
};

struct options {
	struct client_options client;
	struct server_options server;
};

static const struct option long_options[] = {
	{ "recursive", no_argument, NULL, 'r' },
	{ "preserve", no_argument, NULL, 'p' },
	{ "archive", no_argument, NULL, 'a' },
	{ "no-clobber", no_argument, NULL, 'n' },
	{ "serve", required_argument, NULL, OPT_SERVE },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "read-only", no_argument, NULL, OPT_READ_ONLY },
	{ "write-only", no_argument, NULL, OPT_WRITE_ONLY },
	{ "anywhere", no_argument, NULL, OPT_ANYWHERE }, /* of --spawn, not for people */
	{ "spawn", no_argument, NULL, OPT_SPAWN },
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "stats", no_argument, NULL, OPT_STATS },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: vi_cp [OPTIONS] SRC... HOST:DEST		push: copy to HOST\n"
	"       vi_cp [OPTIONS] HOST:SRC... DEST		pull: copy from HOST\n"
	"       vi_cp [OPTIONS] --serve DIR		serve DIR to both, on HOST\n"
	"\n"
	"DEST may be a directory or, for one SRC, a new name. A directory named with a slash at its end\n"
	"stands for its contents; SRC may be - (standard input) or a pipe, and DEST is a name then.\n"
	"Paths on HOST are below the DIR that is served there; with --spawn they are any path.\n"
	"Files go by RDMA write and are checked by SHA-256 before they get their name. Holes are kept.\n"
	"\n"
	"  -r, --recursive   copy directories with all they hold; symbolic links in them stay links\n"
	"  -p, --preserve    keep permissions and times\n"
	"  -a, --archive     -r -p, and links that are named stay links; owners too, where root receives\n"
	"  -n, --no-clobber  leave alone what is there already\n"
	"  --progress        tell how far it is, also where standard error is no terminal\n"
	"  --stats           tell what the time was spent on\n"
	"  --spawn           start the server too, as a process on emulated host HOST\n"
	"  --once            with --serve: leave after one client; the exit code tells how that went\n"
	"  --read-only       with --serve: take nothing\n"
	"  --write-only      with --serve: give nothing\n"
	"  --idle SECONDS    with --serve: drop a client that is silent for longer (60)\n"
	"  --wait SECONDS    wait so long for a server that is absent or busy (10)\n"
	"  --service NAME    the name both sides meet under (vi_cp)\n"
	"  -q, --quiet       no progress bar, no summary\n"
	"  -v, --verbose     print the SHA-256 of every file\n"
	"  --help, --version\n"
	"\n"
	"Exit code: 0 all copied, 1 something was not, 2 wrong usage.\n";

static int usage(const char *why, const char *what)
{
	fprintf(stderr, "vi_cp: %s%s; see vi_cp --help\n", why, what);
	return 2;
}

static int seconds(const char *text, unsigned int *out)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > 100000)
		return -1;
	*out = (unsigned int)value;
	return 0;
}

static int parse_seconds(const char *text, unsigned int *out)
{
	return seconds(text, out) ? usage("seconds from 1 to 100000 sought, found ", text) : 0;
}

static void parse_flag(struct options *o, int opt)
{
	switch (opt) {
	case 'r':
		o->client.flags |= CP_RECURSIVE;
		break;
	case 'p':
		o->client.flags |= CP_PRESERVE;
		break;
	case 'a':
		o->client.flags |= CP_RECURSIVE | CP_PRESERVE | CP_ARCHIVE;
		break;
	case 'n':
		o->client.flags |= CP_NO_CLOBBER;
		break;
	case 'q':
		o->client.quiet = o->server.quiet = true;
		break;
	case 'v':
		o->client.verbose = true;
		break;
	case OPT_PROGRESS:
		o->client.progress = true;
		break;
	case OPT_STATS:
		o->client.stats = true;
		break;
	case OPT_SPAWN:
		o->client.spawn = true;
		break;
	case OPT_ONCE:
		o->server.once = true;
		break;
	case OPT_READ_ONLY:
		o->server.no_push = true;
		break;
	case OPT_WRITE_ONLY:
		o->server.no_pull = true;
		break;
	case OPT_ANYWHERE:
		o->server.anywhere = true;
		break;
	}
}

/* Returns 0, an exit code to leave with, or -1 for leaving with success. */
static int parse_option(struct options *o, int opt)
{
	int err;

	switch (opt) {
	case OPT_SERVE:
		o->server.dir = optarg;
		return 0;
	case OPT_SERVICE:
		o->client.service = o->server.service = optarg;
		return 0;
	case OPT_WAIT:
		return parse_seconds(optarg, &o->client.wait_seconds);
	case OPT_IDLE:
		err = parse_seconds(optarg, &o->server.idle_ms);
		o->server.idle_ms *= 1000;
		return err;
	case OPT_HELP:
		fputs(help_text, stdout);
		return -1;
	case OPT_VERSION:
		puts("vi_cp " VI_CP_VERSION);
		return -1;
	case '?':
		return 2; /* getopt has named the option */
	default:
		parse_flag(o, opt);
		return 0;
	}
}

/* HOST:PATH, as scp: a colon, and no slash before it.  Returns the path, or NULL. */
static char *split_remote(char *text)
{
	size_t length = strcspn(text, ":/");

	if (text[length] != ':' || length == 0)
		return NULL;
	text[length] = 0;
	return text + length + 1;
}

/* Paths of a server are relative to the directory that it serves. */
static char *tidy_remote(char *path)
{
	while (path[0] == '.' && path[1] == '/') {
		path += 2;
		while (*path == '/')
			path++;
	}
	return strcmp(path, ".") ? path : path + 1;
}

static int parse_pull(struct options *o, char **names, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		char *path = split_remote(names[i]);

		if (!path)
			return usage("HOST:PATH sought on one side, found ", names[i]);
		if (i > 0 && strcmp(names[i], o->client.host) != 0)
			return usage("one HOST for all SRC sought, found also ", names[i]);
		o->client.host = names[i];
		names[i] = tidy_remote(path);
	}
	o->client.pull = true;
	return 0;
}

static int parse_paths(struct options *o, char **names, int count)
{
	char *path = split_remote(names[count]);
	int i;

	o->client.sources = names;
	o->client.source_count = count;
	o->client.dest = names[count];
	if (!path)
		return parse_pull(o, names, count);
	o->client.host = names[count];
	o->client.dest = tidy_remote(path);
	for (i = 0; i < count; i++)
		if (split_remote(names[i]))
			return usage("one local side sought, found a second HOST:PATH of host ",
				     names[i]);
	return 0;
}

/* Returns as parse_option(). */
static int parse(struct options *o, int argc, char **argv)
{
	int opt, err = 0;

	while (!err && (opt = getopt_long(argc, argv, "rRpanqv", long_options, NULL)) != -1)
		err = parse_option(o, opt == 'R' ? 'r' : opt);
	if (err)
		return err;
	if (o->server.dir)
		return optind < argc || o->client.spawn ? usage("--serve takes nothing else", "")
							: 0;
	if (argc - optind < 2)
		return usage("SRC... HOST:DEST or HOST:SRC... DEST sought, found less", "");
	if (o->server.once)
		return usage("--once belongs to --serve", "");
	return parse_paths(o, argv + optind, argc - optind - 1);
}

int main(int argc, char **argv)
{
	struct options o = {
		.client = { .service = "vi_cp", .wait_seconds = 10 },
		.server = { .service = "vi_cp", .idle_ms = 60000 },
	};
	int err = parse(&o, argc, argv);

	if (err)
		return err < 0 ? 0 : err;
	return o.server.dir ? server_run(&o.server) : client_run(&o.client);
}
