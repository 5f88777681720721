/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_fd.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

const char *u_fd_error(int err, char text[U_FD_ERROR])
{
	struct rlimit rl = { 0 };

	if (err == EMFILE) {
		getrlimit(RLIMIT_NOFILE, &rl);
		snprintf(text, U_FD_ERROR,
			 "no file descriptor left (limit %llu); raise it with ulimit -n",
			 (unsigned long long)rl.rlim_cur);
		return text;
	}
	if (err == ENFILE)
		return "no file descriptor left on this machine; raise fs.file-max with sysctl";
	return strerror(err);
}

bool u_fd_scarce(uint64_t wanted)
{
	struct rlimit rl;

	return getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_max < wanted;
}
