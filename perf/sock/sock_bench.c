/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <unistd.h>

#include "sb.h"

static const struct {
	const char *name;
	void (*measure)(const struct sb_options *options, int fd);
} tests[] = {
	{ "pingpong", sb_pingpong }, { "stream", sb_stream }, { "connect", sb_connections },
	{ "epoll", sb_epoll },	     { "idle", sb_idle },
};

static void measure(const struct sb_options *options)
{
	int fd = sb_connect(options->connect);
	size_t i;

	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (strcmp(tests[i].name, options->test) == 0)
			tests[i].measure(options, fd);
	}
	sb_order(fd, SB_END, options->polled, 0, 0);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sb_options options;

	sb_options_parse(&options, argc, argv);
	if (options.serve)
		return sb_serve(options.serve);
	if (strcmp(options.test, "call") == 0)
		sb_call(&options);
	else if (strcmp(options.test, "memcached") == 0)
		sb_memcached(&options);
	else
		measure(&options);
	return 0;
}
