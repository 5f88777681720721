/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters of this host, without their links being touched. */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "pt.h"

static int ask(const char *path, struct port_cdev_info *out)
{
	int fd, err = port_cdev_try(path, &fd);

	if (err != 0)
		return err;
	err = port_cdev_ask(fd, out);
	close(fd);
	return err;
}

static bool show(const char *path)
{
	struct port_cdev_info info;
	char text[U_FD_ERROR];
	int err = ask(path, &info);

	if (err != 0) {
		printf("%s: not accessible: %s\n", path, port_cdev_reason(err, text));
		return false;
	}
	printf("%s: link %s generation %" PRIu32 " doorbells 0x%" PRIx64 " scratchpads %" PRIu32
	       " windows %" PRIu32,
	       path, info.up ? "up" : "down", info.generation, info.db_bits, info.spads,
	       info.windows);
	for (uint32_t i = 0; i < info.windows; i++)
		printf(" window%" PRIu32 " in %" PRIu64 " out %" PRIu64, i, info.window[i].inbound,
		       info.window[i].outbound);
	putchar('\n');
	return true;
}

int pt_list(void)
{
	glob_t found;
	size_t shown = 0;

	if (glob("/dev/viaduct[0-9]*", 0, NULL, &found) != 0)
		return pt_fail(
			"/dev/viaductN was sought, there is none; is viaduct.ko loaded, and has "
			"it accepted an adapter? its reasons are in the kernel's log");
	for (size_t i = 0; i < found.gl_pathc; i++)
		shown += show(found.gl_pathv[i]);
	globfree(&found);
	return shown > 0 ? EXIT_OK : EXIT_FAIL;
}
