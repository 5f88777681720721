/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_port - windows, doorbells, scratchpads and the link of a port, without an agent. */
#include <stdio.h>
#include <string.h>

#include "port/pt.h"
#include "tool_out.h"
#include "u_option.h"

#define AT(field) U_OPTION_AT(struct pt_options, field)
#define TIMEOUT_DEFAULT 60.0
#define BYTES_DEFAULT (1ul << 20)
#define SECONDS_DEFAULT 600.0

static const struct u_option options[] = {
	{ "timeout", 't', "S", "seconds to wait, 0 for ever (default: 60)", AT(timeout), .least = 0,
	  .most = 86400 },
	{ "bytes", 'b', "N", "serve, check: bytes of this host's slice (default: 1M)", AT(bytes),
	  .min = 1, .max = PT_BYTES_MAX, .size = true },
	{ "peer", 'p', NULL, "spad: of the other side", AT(peer) },
	{ "seconds", 's', "S", "selftest: that its clauses share (default: 600)", AT(seconds),
	  .least = 0.1, .most = 86400 },
	{ "json", 'j', "FILE", "selftest: the report, as JSON", AT(json), .min = 1, .max = 4096 },
	{ "serve", 'S', NULL, "selftest: help the other host, which judges", AT(serve) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "vi_port",
	.head = "usage: vi_port list\n"
		"       vi_port DEVICE link [up|down|watch]\n"
		"       vi_port DEVICE spad [--peer] [INDEX [VALUE]]\n"
		"       vi_port DEVICE ring BITS\n"
		"       vi_port DEVICE listen [BITS]\n"
		"       vi_port DEVICE serve|check [--bytes N]\n"
		"       vi_port DEVICE selftest [--serve] [--seconds S] [--json FILE]\n\n"
		"Verifies an adapter and its cable by the registers and windows of its port, without an agent.\n"
		"DEVICE is /dev/viaductN, which one process can have; its link is down when that ends. Or it is\n"
		"emu:NAME, an emulated port, whose cable leads to the other vi_port of this user with that NAME;\n"
		"emu+strict:NAME, emu+fault:NAME and emu+model:NAME are worse ones.\n"
		"Numbers are decimal, or begin with 0x; BITS is a mask.\n\n"
		"  list    adapters: link, doorbell bits, scratchpads, bytes of each window\n"
		"  link    its state; up: until the peer ends; down; watch: each change\n"
		"  spad    reads scratchpads, or writes one\n"
		"  ring    rings doorbell bits at the peer\n"
		"  listen  prints bits that are rung, until all BITS were, without BITS to the end of the time\n"
		"  serve, check\n"
		"          on one host each: store a pattern into the other's memory, which verifies it, both ways\n"
		"  selftest\n"
		"          judges whether the port keeps what Viaduct needs, clause by clause; with --serve on the\n"
		"          other host. DEVICE emu, emu+strict, ... without a NAME: both ends, here\n\n",
	.options = options,
	.tail = "\nexit status: 0 done, 1 failure, 2 bad usage\n",
	.operands = 4,
};

enum command { LIST, LINK, SPAD, RING, LISTEN, SERVE, CHECK, SELFTEST, COMMANDS };

/* Which options have an effect, and how many arguments there can be. */
static const struct {
	const char *name, *form;
	int least, most;
	bool timeout, bytes, peer, selftest;
} commands[COMMANDS] = {
	[LIST] = { "list", "list", 0, 0, false, false, false, false },
	[LINK] = { "link", "DEVICE link [up|down|watch]", 0, 1, true, false, false, false },
	[SPAD] = { "spad", "DEVICE spad [--peer] [INDEX [VALUE]]", 0, 2, true, false, true, false },
	[RING] = { "ring", "DEVICE ring BITS", 1, 1, true, false, false, false },
	[LISTEN] = { "listen", "DEVICE listen [BITS]", 0, 1, true, false, false, false },
	[SERVE] = { "serve", "DEVICE serve [--bytes N]", 0, 0, true, true, false, false },
	[CHECK] = { "check", "DEVICE check [--bytes N]", 0, 0, true, true, false, false },
	[SELFTEST] = { "selftest", "DEVICE selftest [--serve] [--seconds S] [--json FILE]", 0, 0,
		       true, false, false, true },
};

static int command_find(const char *name)
{
	int c = 0;

	while (c < COMMANDS && strcmp(commands[c].name, name) != 0)
		c++;
	return c;
}

static int refuse_option(const char *option, int c)
{
	return u_option_refuse(&tool, "--%s is none of '%s'; see --help", option, commands[c].name);
}

/* Members are negative, 0 or false until an option sets them. */
static int options_check(const struct pt_options *o, int c, char *const *args, int n)
{
	if (n < commands[c].least || n > commands[c].most)
		return u_option_refuse(&tool,
				       "'%s' with %d argument%s is not known; it is vi_port %s",
				       commands[c].name, n, n == 1 ? "" : "s", commands[c].form);
	if (o->timeout >= 0 && !commands[c].timeout)
		return refuse_option("timeout", c);
	if (o->bytes != 0 && !commands[c].bytes)
		return refuse_option("bytes", c);
	if (o->peer && !commands[c].peer)
		return refuse_option("peer", c);
	if (!commands[c].selftest && (o->serve || o->seconds >= 0 || o->json != NULL))
		return refuse_option(o->serve ? "serve" : o->json != NULL ? "json" : "seconds", c);
	if (o->serve && (o->seconds >= 0 || o->json != NULL))
		return u_option_refuse(
			&tool, "--%s is for the end that judges, not for --serve; see --help",
			o->json != NULL ? "json" : "seconds");
	if (c == LINK && n == 1 && strcmp(args[0], "up") != 0 && strcmp(args[0], "down") != 0 &&
	    strcmp(args[0], "watch") != 0)
		return u_option_refuse(
			&tool, "link '%s' was asked for, it can be up, down or watch", args[0]);
	return U_OPTION_GO_ON;
}

static int run(const struct pt_options *o, const char *device, int c, char *const *args, int n)
{
	const char *first = n > 0 ? args[0] : NULL, *second = n > 1 ? args[1] : NULL;
	const double timeout = o->timeout >= 0 ? o->timeout : TIMEOUT_DEFAULT;
	const double seconds = o->seconds >= 0 ? o->seconds : SECONDS_DEFAULT;
	struct pt_port t;
	int rc;

	if (c == SELFTEST && pt_is_kind(device))
		return o->serve ? u_option_refuse(
					  &tool,
					  "'%s' has no other end to serve; name a cable, %s:NAME",
					  device, device)
				: pt_selftest_alone(device, timeout, seconds, o->json);
	rc = pt_open(&t, device, timeout);
	if (rc != EXIT_OK) {
		/* Nothing was begun. */
	} else if (c == LINK) {
		rc = pt_link(&t, first);
	} else if (c == SPAD) {
		rc = pt_spad(&t, o->peer, first, second);
	} else if (c == RING) {
		rc = pt_ring(&t, first);
	} else if (c == LISTEN) {
		rc = pt_listen(&t, first);
	} else if (c == SELFTEST) {
		rc = pt_selftest(&t, o->serve, seconds, o->json);
	} else {
		rc = pt_transfer(&t, c == SERVE, o->bytes != 0 ? o->bytes : BYTES_DEFAULT);
	}
	pt_close(&t);
	return rc;
}

static int port_main(int argc, char **argv)
{
	struct pt_options o = { .timeout = -1, .seconds = -1 };
	int c, n, rc = u_option_parse(&tool, argc, argv, &o);

	if (rc != U_OPTION_GO_ON)
		return rc;
	argv += optind;
	n = argc - optind;
	if (n > 0 && strcmp(argv[0], "list") == 0) {
		rc = options_check(&o, LIST, argv + 1, n - 1);
		return rc == U_OPTION_GO_ON ? pt_list() : rc;
	}
	if (n == 0)
		return u_option_refuse(&tool, "a DEVICE or 'list' is missing; see --help");
	if (n == 1)
		return u_option_refuse(
			&tool, "'%s' is not 'list', and as a DEVICE lacks a command; see --help",
			argv[0]);
	c = command_find(argv[1]);
	if (c == COMMANDS || c == LIST)
		return u_option_refuse(&tool, "'%s' is no command of a DEVICE; see --help",
				       argv[1]);
	rc = options_check(&o, c, argv + 2, n - 2);
	return rc == U_OPTION_GO_ON ? run(&o, argv[0], c, argv + 2, n - 2) : rc;
}

int main(int argc, char **argv)
{
	tool_out_begin();
	return tool_out_end("vi_port", port_main(argc, argv));
}
