/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_cp - copies files and trees from host to host by RDMA write.
 *
 * main.c	options, starting a receiver for --spawn
 * walk.c	the files and trees to copy
 * sender.c	reads, hashes, writes into the receiver's window
 * receiver.c	hashes, writes to disk, answers
 * dest.c	the receiver's directory: safe paths, temporaries, final names
 * proto.h	what the two say to each other
 * link.c	VIPL: connection, messages, window
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "receiver.h"
#include "sender.h"

enum {
	OPT_SERVE = 256,
	OPT_ONCE,
	OPT_SPAWN,
	OPT_SERVICE,
	OPT_WAIT,
	OPT_IDLE,
	OPT_HELP,
	OPT_VERSION
};

struct options {
	struct sender_options send;
	struct receiver_options receive;
	bool spawn;
};

static const struct option long_options[] = {
	{ "serve", required_argument, NULL, OPT_SERVE },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "spawn", no_argument, NULL, OPT_SPAWN },
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: vi_cp [OPTIONS] SRC... HOST:DIR		copy to a receiver on HOST, below its directory\n"
	"       vi_cp [OPTIONS] SRC... HOST:DIR --spawn	start the receiver too, on emulated host HOST;\n"
	"						DIR is then any directory\n"
	"       vi_cp [OPTIONS] --serve DIR		receive copies into DIR\n"
	"\n"
	"Files and trees go by RDMA write and are checked by SHA-256 before they get their name.\n"
	"Permissions, times and symbolic links are kept; owners, hard links and holes are not.\n"
	"\n"
	"  --once            leave after one sender; its exit code tells how that went\n"
	"  --idle SECONDS    drop a sender that is silent for longer (60)\n"
	"  --wait SECONDS    wait so long for a receiver that is absent or busy (10)\n"
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

/* Returns 0, an exit code to leave with, or -1 for leaving with success. */
static int parse_option(struct options *o, int opt)
{
	int err;

	switch (opt) {
	case OPT_SERVE:
		o->receive.dir = optarg;
		return 0;
	case OPT_ONCE:
		o->receive.once = true;
		return 0;
	case OPT_SPAWN:
		o->spawn = true;
		return 0;
	case OPT_SERVICE:
		o->send.service = o->receive.service = optarg;
		return 0;
	case OPT_WAIT:
		return parse_seconds(optarg, &o->send.wait_seconds);
	case OPT_IDLE:
		err = parse_seconds(optarg, &o->receive.idle_ms);
		o->receive.idle_ms *= 1000;
		return err;
	case 'q':
		o->send.quiet = o->receive.quiet = true;
		return 0;
	case 'v':
		o->send.verbose = true;
		return 0;
	case OPT_HELP:
		fputs(help_text, stdout);
		return -1;
	case OPT_VERSION:
		puts("vi_cp " VI_CP_VERSION);
		return -1;
	default:
		return 2; /* getopt has told which */
	}
}

static int parse_destination(struct options *o, char *text)
{
	char *colon = strchr(text, ':');

	if (!colon || colon == text)
		return usage("HOST:DIR sought as the last argument, found ", text);
	*colon = 0;
	o->send.host = text;
	o->send.dir = colon + 1;
	while (!strncmp(o->send.dir, "./", 2))
		o->send.dir += 2;
	if (!strcmp(o->send.dir, ".") && !o->spawn)
		o->send.dir = "";
	return 0;
}

/* Returns as parse_option(). */
static int parse(struct options *o, int argc, char **argv)
{
	int opt, err = 0;

	while (!err && (opt = getopt_long(argc, argv, "qv", long_options, NULL)) != -1)
		err = parse_option(o, opt);
	if (err)
		return err;
	if (o->receive.dir)
		return optind < argc || o->spawn ? usage("--serve takes nothing else", "") : 0;
	if (argc - optind < 2)
		return usage("SRC... HOST:DIR sought, found less", "");
	if (o->receive.once)
		return usage("--once belongs to --serve", "");
	o->send.sources = argv + optind;
	o->send.source_count = argc - optind - 1;
	return parse_destination(o, argv[argc - 1]);
}

/* The receiver as another process on emulated host HOST; it dies with this one. */
static void exec_receiver(const struct options *o, const char *service, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || setenv("VIADUCT_HOST", o->send.host, 1))
		_exit(1);
	execl("/proc/self/exe", "vi_cp", "--quiet", "--once", "--service", service, "--serve",
	      *o->send.dir ? o->send.dir : ".", (char *)NULL);
	fprintf(stderr, "vi_cp: the receiver cannot be started: %s; use --serve\n",
		strerror(errno));
	_exit(1);
}

static int run_spawned(struct options *o)
{
	pid_t parent = getpid(), child;
	char service[32];
	int result, status = 0;

	snprintf(service, sizeof(service), "vi_cp.%d", (int)parent);
	child = fork();
	if (child < 0) {
		fprintf(stderr, "vi_cp: a process for the receiver sought: %s; raise ulimit -u\n",
			strerror(errno));
		return 1;
	}
	if (!child)
		exec_receiver(o, service, parent);
	o->send.service = service;
	o->send.dir = "";
	o->send.receiver = child;
	result = sender_run(&o->send);
	if (result)
		kill(child, SIGTERM);
	waitpid(child, &status, 0);
	return result || status ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct options o = {
		.send = { .service = "vi_cp", .wait_seconds = 10 },
		.receive = { .service = "vi_cp", .idle_ms = 60000 },
	};
	int err = parse(&o, argc, argv);

	if (err)
		return err < 0 ? 0 : err;
	if (o.receive.dir)
		return receiver_run(&o.receive);
	return o.spawn ? run_spawned(&o) : sender_run(&o.send);
}
